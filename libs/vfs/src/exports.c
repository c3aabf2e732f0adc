/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of exports: built anew from every map, ordered by path. A directory that an older table
 * has already found is taken over, so that service goes on while the walks of the new one run.
 */
#include <stdlib.h>
#include <string.h>

#include "vfs_priv.h"

#define RETRY_NS (2 * HF_NS_PER_SEC)

bool export_admits(const struct export *e, const struct sockaddr *peer)
{
    struct addr a;

    if (e->any)
        return true;
    if (!addr_from(peer, &a))
        return false;
    for (size_t i = 0; i < e->nprefixes; i++)
        if (prefix_match(&e->prefixes[i], &a))
            return true;
    return false;
}

static int export_init(struct export *e, const Hf__ExportEntry *x)
{
    size_t n = x->n_clients < PREFIXES_MAX ? x->n_clients : PREFIXES_MAX;

    *e = (struct export){
        .entry = x,
        .pub = {.id = x->id,
                .read_only = x->read_only,
                .squash = x->squash == 0   ? HF_SQUASH_NONE
                          : x->squash == 1 ? HF_SQUASH_ROOT
                                           : HF_SQUASH_ALL, /* unknown: the safest */
                .anon_uid = x->anon_uid,
                .anon_gid = x->anon_gid},
    };
    e->prefixes = calloc(n ? n : 1, sizeof(e->prefixes[0]));
    if (!e->prefixes)
        return HF_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct prefix p;

        if (prefix_parse(x->clients[i], &p))
            continue; /* what nobody understands admits nobody */
        e->any = e->any || p.bits == 0;
        e->prefixes[e->nprefixes++] = p;
    }
    return 0;
}

static void table_free(struct export *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(t[i].prefixes);
    free(t);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct export *)a)->entry->path, ((const struct export *)b)->entry->path);
}

static int table_make(const Hf__MapGetRep *map, struct export **ret, size_t *ret_n)
{
    size_t n = map->n_exports < EXPORTS_MAX ? map->n_exports : EXPORTS_MAX;
    struct export *t = calloc(n ? n : 1, sizeof(t[0]));

    if (!t)
        return HF_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (export_init(&t[i], map->exports[i])) {
            table_free(t, i);
            return HF_E_NOMEM;
        }
    }
    qsort(t, n, sizeof(t[0]), by_path);
    *ret = t;
    *ret_n = n;
    return 0;
}

/* Fills m; what the old table knows of the same directory is carried over. */
static int table_index(struct hf_vfs *v, struct export *t, size_t n, struct hf_map *m)
{
    for (size_t i = 0; i < n; i++) {
        const struct export *old = hf_map_get(&v->by_id, t[i].pub.id);

        if (old && old->resolved && old->entry && strcmp(old->entry->dir, t[i].entry->dir) == 0) {
            t[i].resolved = t[i].tried = true;
            t[i].pub.root_ino = old->pub.root_ino;
            t[i].pub.root_gen = old->pub.root_gen;
        }
        if (hf_map_put(m, t[i].pub.id, &t[i]))
            return HF_E_NOMEM;
    }
    return 0;
}

static Hf__MapGetRep *map_copy(const Hf__MapGetRep *map)
{
    size_t n = hf__map_get_rep__get_packed_size(map);
    uint8_t *p = malloc(n ? n : 1);
    Hf__MapGetRep *copy = NULL;

    if (p)
        copy = hf__map_get_rep__unpack(NULL, hf__map_get_rep__pack(map, p), p);
    free(p);
    return copy;
}

static int map_adopt(struct hf_vfs *v, Hf__MapGetRep *map)
{
    struct hf_map index = {0};
    struct export *t;
    size_t n;
    int rc = table_make(map, &t, &n);

    if (rc)
        return rc;
    rc = table_index(v, t, n, &index);
    if (rc) {
        table_free(t, n);
        hf_map_fini(&index);
        return rc;
    }
    exports_fini(v);
    v->exports = t;
    v->nexports = n;
    v->by_id = index;
    v->map = map;
    v->fsid = map->fsid;
    memcpy(v->key, map->handle_key.data, sizeof(v->key));
    v->generation++;
    return 0;
}

void hf_vfs_map_changed(struct hf_vfs *v, const Hf__MapGetRep *map)
{
    Hf__MapGetRep *copy;

    if (map->handle_key.len != HANDLE_KEY_BYTES)
        return; /* no handle could be made; the map before stays in force */
    copy = map_copy(map);
    if (!copy || map_adopt(v, copy)) {
        if (copy)
            hf__map_get_rep__free_unpacked(copy, NULL);
        hf_timer_set(&v->retry, RETRY_NS); /* no memory: the map before stays, for now */
        return;
    }
    resolve_orphan_all(v);
    for (size_t i = 0; i < v->nexports; i++)
        resolve_start(v, &v->exports[i]);
}

void exports_resolved(struct hf_vfs *v, uint64_t generation, uint32_t id, int status, uint64_t ino,
                      uint32_t gen)
{
    struct export *e = generation == v->generation ? hf_map_get(&v->by_id, id) : NULL;

    if (!e)
        return;
    e->tried = true;
    e->status = status;
    if (status == 0) {
        e->resolved = true;
        e->pub.root_ino = ino;
        e->pub.root_gen = gen;
        return;
    }
    /* Gone for certain, or only out of reach just now: then what was known stays. */
    if (status == HF_E_NOENT || status == HF_E_NOTDIR)
        e->resolved = false;
    hf_timer_set(&v->retry, RETRY_NS);
}

void exports_retry(struct hf_timer *t)
{
    struct hf_vfs *v = hf_container_of(t, struct hf_vfs, retry);
    const Hf__MapGetRep *map = hf_client_map(v->client);

    if (map && (!v->map || map->version != v->map->version)) {
        hf_vfs_map_changed(v, map);
        return;
    }
    for (size_t i = 0; i < v->nexports; i++)
        if (v->exports[i].status)
            resolve_start(v, &v->exports[i]);
}

void exports_fini(struct hf_vfs *v)
{
    table_free(v->exports, v->nexports);
    hf_map_fini(&v->by_id);
    if (v->map)
        hf__map_get_rep__free_unpacked(v->map, NULL);
    v->map = NULL;
}

bool hf_vfs_ready(const struct hf_vfs *v)
{
    if (!v->map)
        return false;
    for (size_t i = 0; i < v->nexports; i++)
        if (!v->exports[i].tried)
            return false;
    return true;
}

uint64_t hf_vfs_fsid(const struct hf_vfs *v)
{
    return v->fsid;
}

void hf_vfs_exports(struct hf_vfs *v, void (*fn)(void *arg, const Hf__ExportEntry *e), void *arg)
{
    for (size_t i = 0; i < v->nexports; i++)
        fn(arg, v->exports[i].entry);
}

/* "/main/" names "/main". */
static struct hf_slice trim_slashes(struct hf_slice s)
{
    const char *p = s.data;

    while (s.len > 1 && p[s.len - 1] == '/')
        s.len--;
    return s;
}

static bool is_below(struct hf_slice path, struct hf_slice exported)
{
    const char *p = path.data;

    if (exported.len == 1)
        return true; /* "/" */
    return path.len > exported.len && memcmp(p, exported.data, exported.len) == 0 &&
           p[exported.len] == '/';
}

int hf_vfs_mount(struct hf_vfs *v, struct hf_slice path, const struct sockaddr *peer,
                 struct hf_vfs_obj *ret)
{
    bool below = false;

    if (!v->map)
        return HF_E_JUKEBOX;
    path = trim_slashes(path);
    if (path.len == 0)
        return HF_E_NOENT;
    for (size_t i = 0; i < v->nexports; i++) {
        const struct export *e = &v->exports[i];
        struct hf_slice mine = trim_slashes(hf_slice_str(e->entry->path));

        if (!hf_slice_eq(mine, path)) {
            below = below || (mine.len && is_below(path, mine));
            continue;
        }
        if (!export_admits(e, peer))
            return HF_E_ACCES;
        if (!e->resolved)
            return e->tried && e->status == HF_E_NOENT ? HF_E_NOENT : HF_E_JUKEBOX;
        *ret = (struct hf_vfs_obj){e->pub, e->pub.root_ino, e->pub.root_gen};
        return 0;
    }
    return below ? HF_E_ACCES : HF_E_NOENT;
}

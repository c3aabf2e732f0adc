/* SPDX-License-Identifier: Apache-2.0 */
#include "node_conf.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/dirs.h"
#include "holdfast/err.h"
#include "holdfast/map.h"

#define POOLS_MAX         16
#define POOL_SEGMENTS_MAX 64
#define CHUNK_BYTES       (4u << 20)

const struct hf_conf_key node_conf_keys[] = {
#define X(section, key, kind, type, def, min, max, help)                                           \
    {#section, #key, HF_CONF_##kind, def,                                                          \
     min,      max,  help,           offsetof(struct node_conf, section##_##key)},
#include "../fuse/conf.def"
#include "../meta/conf.def"
#include "../nfs/conf.def"
#include "../segment/conf.def"
#include "conf.def"
#include "holdfast/rpc_limits.def"
#undef X
};
const size_t node_conf_nkeys = HF_ARRAY_LEN(node_conf_keys);

static char *join(struct hf_arena *a, const char *format, const char *x, const char *y)
{
    size_t n = strlen(format) + strlen(x) + strlen(y) + 1;
    char *s = hf_arena_alloc(a, n);

    if (s) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats are those of paths() below */
        (void)snprintf(s, n, format, x, y);
#pragma GCC diagnostic pop
    }
    return s;
}

/* ---- directories and URLs ---- */

static int make_dir(const char *path, char *err, size_t err_bytes)
{
    int rc = hf_dir_make(path);

    if (rc)
        (void)snprintf(err, err_bytes, "node.dir: cannot make %s: %s", path, hf_err_text(rc));
    return rc;
}

static int absolute_dir(const char *path, struct hf_arena *a, char **ret, char *err,
                        size_t err_bytes)
{
    char real[PATH_MAX];
    struct stat st;
    int rc = make_dir(path, err, err_bytes);

    if (rc)
        return rc;
    if (!realpath(path, real) || stat(real, &st) || !S_ISDIR(st.st_mode) ||
        access(real, W_OK | X_OK)) {
        (void)snprintf(err, err_bytes, "node.dir: %s: %s", path,
                       errno ? strerror(errno) : "not a directory that this user can write");
        return HF_E_ACCES;
    }
    *ret = hf_arena_strdup(a, real);
    return *ret ? 0 : HF_E_NOMEM;
}

/* Names inside the process and sockets in run/: derived from the directory, so that the cluster map
 * does not change from start to start. */
static int paths(struct node_plan *p, struct hf_arena *a, char *err, size_t err_bytes)
{
    char tag[17];

    (void)snprintf(tag, sizeof(tag), "%016" PRIx64,
                   hf_hash_bytes(p->dir, strlen(p->dir), 0x686f6c64u));
    p->meta_dir = join(a, "%s/meta%s", p->dir, "");
    p->segment_dir = join(a, "%s/segments%s", p->dir, "");
    p->run_dir = join(a, "%s/run%s", p->dir, "");
    p->meta_inproc = join(a, "inproc://holdfast-%s/meta-%s", tag, "%u");
    p->meta_inproc_0 = join(a, "inproc://holdfast-%s/meta-%s", tag, "0");
    p->segment_inproc = join(a, "inproc://holdfast-%s/segment%s", tag, "");
    p->meta_ipc = join(a, "ipc://%s/run/meta-%s.sock", p->dir, "%u");
    p->segment_ipc = join(a, "ipc://%s/run/segment.sock%s", p->dir, "");
    p->admin_ipc = join(a, "ipc://%s/run/admin.sock%s", p->dir, "");
    if (!p->meta_dir || !p->segment_dir || !p->run_dir || !p->meta_inproc || !p->meta_inproc_0 ||
        !p->segment_inproc || !p->meta_ipc || !p->segment_ipc || !p->admin_ipc)
        return HF_E_NOMEM;
    /* What the cluster map says: native clients are in other processes. */
    p->meta_urls = join(a, "%s %s", p->meta_inproc, p->meta_ipc);
    p->segment_urls = join(a, "%s %s", p->segment_inproc, p->segment_ipc);
    if (!p->meta_urls || !p->segment_urls)
        return HF_E_NOMEM;
    if (strlen(p->segment_ipc) - strlen("ipc://") >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        (void)snprintf(
            err, err_bytes, "node.dir: %s is too long for the sockets in run/ (at most %zu bytes)",
            p->dir, sizeof(((struct sockaddr_un *)0)->sun_path) - strlen("/run/segment.sock") - 1);
        return HF_E_CONF;
    }
    return make_dir(p->run_dir, err, err_bytes);
}

static int plugin_dir(const char *conf, struct hf_arena *a, char **ret)
{
    static const char *const places[] = {"/../lib/holdfast", "/../lib/x86_64-linux-gnu/holdfast",
                                         "/../lib/aarch64-linux-gnu/holdfast"};
    char self[PATH_MAX];
    ssize_t n;

    if (conf[0]) {
        *ret = hf_arena_strdup(a, conf);
        return *ret ? 0 : HF_E_NOMEM;
    }
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return hf_err_from_errno(errno);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < HF_ARRAY_LEN(places); i++) {
        *ret = join(a, "%s%s", self, places[i]);
        if (!*ret)
            return HF_E_NOMEM;
        if (access(*ret, R_OK | X_OK) == 0)
            return 0;
    }
    *ret = join(a, "%s%s", self, places[0]);
    return *ret ? 0 : HF_E_NOMEM;
}

/* ---- roles and level ---- */

static int roles(const struct node_conf *c, struct node_plan *p, char *err, size_t err_bytes)
{
    for (size_t i = 0; i < c->node_roles.n; i++) {
        const char *r = c->node_roles.items[i];

        if (strcmp(r, "meta") == 0)
            p->meta = true;
        else if (strcmp(r, "segment") == 0)
            p->segment = true;
        else if (strcmp(r, "nfs") == 0)
            p->nfs = true;
        else {
            (void)snprintf(err, err_bytes,
                           "node.roles: '%s' is not a role; allowed: meta, segment, nfs", r);
            return HF_E_CONF;
        }
    }
    if (!p->meta || !p->segment) {
        (void)snprintf(err, err_bytes,
                       "node.roles: a node needs meta and segment; nfs alone is holdfast-nfs");
        return HF_E_CONF;
    }
    return 0;
}

static int level(const struct node_conf *c, struct node_plan *p, char *err, size_t err_bytes)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
        if (strcmp(c->node_log_level, names[i]) == 0) {
            p->level = (enum hf_level)i;
            return 0;
        }
    (void)snprintf(err, err_bytes, "node.log_level: '%s'; allowed: debug, info, warn, error",
                   c->node_log_level);
    return HF_E_CONF;
}

static int wal_sizes(const struct node_conf *c, char *err, size_t err_bytes)
{
    if (c->wal_max_bytes / 2 >= c->wal_file_bytes)
        return 0;
    (void)snprintf(err, err_bytes,
                   "wal.max_bytes: %" PRIu64 " does not hold two files of wal.file_bytes %" PRIu64,
                   (uint64_t)c->wal_max_bytes, (uint64_t)c->wal_file_bytes);
    return HF_E_CONF;
}

/* ---- pools ---- */

static int bad_pool(const char *item, char *err, size_t err_bytes)
{
    (void)snprintf(err, err_bytes,
                   "node.pools: '%s'; each pool is NAME:BACKEND:SEGMENTS, for example hot:posix:2 "
                   "(1 to %d segments)",
                   item, POOL_SEGMENTS_MAX);
    return HF_E_CONF;
}

/* "hot:posix:2" -> a pool entry and its segments. The backend may hold colons in no place. */
static int add_pool(struct node_plan *p, const char *item, struct hf_arena *a, char *err,
                    size_t err_bytes)
{
    Hf__PoolEntry *pool = hf_arena_zalloc(a, sizeof(*pool));
    char *text = hf_arena_strdup(a, item);
    char *backend, *count, *end;
    unsigned long n;

    if (!pool || !text)
        return HF_E_NOMEM;
    backend = strchr(text, ':');
    count = strrchr(text, ':');
    if (!backend || backend == count || backend == text || count == backend + 1)
        return bad_pool(item, err, err_bytes);
    *backend++ = '\0';
    *count++ = '\0';
    errno = 0;
    n = strtoul(count, &end, 10);
    if (errno || *end || end == count || n < 1 || n > POOL_SEGMENTS_MAX)
        return bad_pool(item, err, err_bytes);
    hf__pool_entry__init(pool);
    pool->id = (uint32_t)p->map.n_pools;
    pool->name = text;
    pool->backend = backend;
    pool->chunk_bytes = CHUNK_BYTES;
    pool->width = (uint32_t)n;
    p->map.pools[p->map.n_pools++] = pool;
    for (unsigned long i = 0; i < n; i++) {
        Hf__SegmentEntry *seg = hf_arena_zalloc(a, sizeof(*seg));

        if (!seg)
            return HF_E_NOMEM;
        hf__segment_entry__init(seg);
        seg->id = p->nsegments + 1;
        seg->pool = pool->id;
        seg->url = p->segment_urls;
        p->segments[p->nsegments++] = (struct node_pool_segment){.id = seg->id, .spec = backend};
        p->map.segments[p->map.n_segments++] = seg;
    }
    return 0;
}

static int pools(const struct node_conf *c, struct node_plan *p, struct hf_arena *a, char *err,
                 size_t err_bytes)
{
    p->map.pools = hf_arena_zalloc(a, POOLS_MAX * sizeof(Hf__PoolEntry *));
    p->map.segments =
        hf_arena_zalloc(a, (size_t)POOLS_MAX * POOL_SEGMENTS_MAX * sizeof(Hf__SegmentEntry *));
    p->segments = hf_arena_zalloc(a, (size_t)POOLS_MAX * POOL_SEGMENTS_MAX * sizeof(*p->segments));
    if (!p->map.pools || !p->map.segments || !p->segments)
        return HF_E_NOMEM;
    if (c->node_pools.n < 1 || c->node_pools.n > POOLS_MAX) {
        (void)snprintf(err, err_bytes, "node.pools: 1 to %d pools are allowed", POOLS_MAX);
        return HF_E_CONF;
    }
    for (size_t i = 0; i < c->node_pools.n; i++) {
        int rc = add_pool(p, c->node_pools.items[i], a, err, err_bytes);

        if (rc)
            return rc;
    }
    return 0;
}

/* ---- the new file system ---- */

/* The first export: the whole file system for programs of this machine. */
static int first_export(struct node_plan *p, struct hf_arena *a)
{
    static const char *const loopback[] = {"127.0.0.0/8", "::1/128"};
    Hf__ExportEntry *e = hf_arena_zalloc(a, sizeof(*e));
    Hf__ExportEntry **list = hf_arena_zalloc(a, sizeof(Hf__ExportEntry *));
    char **clients = hf_arena_zalloc(a, HF_ARRAY_LEN(loopback) * sizeof(char *));

    if (!e || !list || !clients)
        return HF_E_NOMEM;
    hf__export_entry__init(e);
    e->id = 1;
    e->path = join(a, "/%s%s", p->map.fs_name, "");
    e->dir = hf_arena_strdup(a, "/");
    for (size_t i = 0; i < HF_ARRAY_LEN(loopback); i++)
        clients[i] = hf_arena_strdup(a, loopback[i]);
    e->clients = clients;
    e->n_clients = HF_ARRAY_LEN(loopback);
    e->anon_uid = e->anon_gid = 65534;
    list[0] = e;
    p->map.exports = list;
    p->map.n_exports = 1;
    return e->path && e->dir && clients[0] && clients[1] ? 0 : HF_E_NOMEM;
}

static int new_fs(const struct node_conf *c, struct hf_env *env, struct node_plan *p,
                  struct hf_arena *a)
{
    p->map.fs_name = hf_arena_strdup(a, c->node_fs);
    p->map.handle_key.data = hf_arena_alloc(a, 16);
    if (!p->map.fs_name || !p->map.handle_key.data)
        return HF_E_NOMEM;
    p->map.handle_key.len = 16;
    hf_env_random(env, p->map.handle_key.data, 16);
    p->map.version = 1;
    p->map.fsid = hf_env_random_u64(env);
    p->map.root_ino = 2;
    p->map.root_gen = (uint32_t)hf_env_random_u64(env) | 1u;
    p->map.shard_count = (uint32_t)c->meta_shards;
    p->map.inline_max = (uint32_t)c->meta_inline_max;
    return first_export(p, a);
}

int node_plan_make(const struct node_conf *c, struct hf_env *env, struct hf_arena *a,
                   struct node_plan *ret, char *err, size_t err_bytes)
{
    struct node_plan p = {0};
    int rc;

    (void)snprintf(err, err_bytes, "out of memory");
    hf__map_get_rep__init(&p.map);
    if (!c->node_fs[0] || strchr(c->node_fs, '/')) {
        (void)snprintf(err, err_bytes, "node.fs: '%s' is not a name (no '/')", c->node_fs);
        return HF_E_CONF;
    }
    rc = roles(c, &p, err, err_bytes);
    if (rc == 0)
        rc = level(c, &p, err, err_bytes);
    if (rc == 0)
        rc = wal_sizes(c, err, err_bytes);
    if (rc == 0)
        rc = absolute_dir(c->node_dir, a, &p.dir, err, err_bytes);
    if (rc == 0)
        rc = paths(&p, a, err, err_bytes);
    if (rc == 0)
        rc = plugin_dir(c->node_plugins, a, &p.plugins);
    if (rc == 0)
        rc = pools(c, &p, a, err, err_bytes);
    if (rc == 0)
        rc = new_fs(c, env, &p, a);
    if (rc == 0)
        *ret = p;
    return rc;
}

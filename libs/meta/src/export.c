/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored cluster map and the exports in it (shard 0).
 */
#include <arpa/inet.h>

#include "meta_priv.h"

#define MAP_BYTES_MAX (96u << 10)
#define PATH_MAX_LEN  1023u
#define CLIENTS_MAX   256u

int hf_meta_map(struct hf_meta *m, struct hf_arena *a, Hf__MapGetRep **ret)
{
    ProtobufCAllocator pa = hf_arena_allocator(a);
    struct hf_slice val, packed;
    Hf__MapGetRep *map;
    int r = hf_store_get(m->store, HF_T_META, hf_slice_str(HF_ROW_MAP), &val);

    if (r == 0)
        r = hf_map_decode(val, &packed);
    if (r)
        return r;
    map = hf__map_get_rep__unpack(&pa, packed.len, packed.data);
    if (!map)
        return HF_E_CORRUPT;
    *ret = map;
    return 0;
}

int hf_map_store(struct hf_store *store, const Hf__MapGetRep *map)
{
    size_t head = sizeof(struct hf_map_disk), n = hf__map_get_rep__get_packed_size(map);
    struct hf_buf row = {0};
    int r;

    if (n > MAP_BYTES_MAX)
        return HF_E_NOSPC;
    r = hf_buf_reserve(&row, head + n);
    if (r == 0) {
        hf_map_encode_head((uint32_t)n, row.data);
        hf__map_get_rep__pack(map, row.data + head);
        r = hf_store_put(store, HF_T_META, hf_slice_str(HF_ROW_MAP), hf_slice(row.data, head + n));
    }
    hf_buf_fini(&row);
    return r;
}

int hf_meta_map_put(struct hf_meta *m, const Hf__MapGetRep *map)
{
    struct hf_arena a;
    Hf__MapGetRep *stored;
    int r;

    hf_arena_init(&a, 0);
    r = hf_meta_map(m, &a, &stored);
    if (r == 0) {
        stored->shard_count = map->shard_count;
        stored->shards = map->shards;
        stored->n_shards = map->n_shards;
        stored->pools = map->pools;
        stored->n_pools = map->n_pools;
        stored->segments = map->segments;
        stored->n_segments = map->n_segments;
        stored->version++;
        r = hf_map_store(m->store, stored);
    }
    hf_arena_fini(&a);
    return r;
}

int hf_meta_op_map_get(struct hf_meta *m, struct hf_meta_op *op, const Hf__MapGetReq *q,
                       Hf__MapGetRep *p)
{
    Hf__MapGetRep *map;
    int r = hf_meta_map(m, op->arena, &map);

    if (r)
        return r == HF_E_NOENT ? HF_E_NOTSUPP : r;
    if (map->version == q->known_version)
        p->version = map->version;
    else
        *p = *map;
    return 0;
}

/* ---- exports ---- */

/* Absolute, without empty, "." or ".." parts; "/" is the root. */
static bool path_ok(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > PATH_MAX_LEN || s[0] != '/')
        return false;
    if (n == 1)
        return true;
    for (const char *part = s + 1;; part++) {
        size_t len = strcspn(part, "/");
        struct hf_slice name = hf_slice(part, len);

        if (hf_name_check(name) || hf_name_is_dot(name) || hf_name_is_dotdot(name))
            return false;
        for (size_t k = 0; k < len; k++)
            if ((unsigned char)part[k] < 0x20 || part[k] == 0x7f)
                return false;
        part += len;
        if (*part == 0)
            return true;
    }
}

/* "*", address, address/prefix. */
static bool client_ok(const char *s)
{
    char addr[INET6_ADDRSTRLEN];
    uint8_t bin[16];
    size_t n = strcspn(s, "/");
    unsigned long bits = 0, most;

    if (strcmp(s, "*") == 0)
        return true;
    if (n == 0 || n >= sizeof(addr))
        return false;
    memcpy(addr, s, n);
    addr[n] = 0;
    if (inet_pton(AF_INET, addr, bin) == 1)
        most = 32;
    else if (inet_pton(AF_INET6, addr, bin) == 1)
        most = 128;
    else
        return false;
    if (s[n] == 0)
        return true;
    s += n + 1;
    if (*s == 0 || strlen(s) > 3)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        bits = bits * 10 + (unsigned long)(*s - '0');
    }
    return bits <= most;
}

static bool entry_ok(const Hf__ExportEntry *e)
{
    if (!path_ok(e->path) || !path_ok(e->dir) || e->squash > 2 || e->n_clients == 0 ||
        e->n_clients > CLIENTS_MAX)
        return false;
    for (size_t k = 0; k < e->n_clients; k++)
        if (!client_ok(e->clients[k]))
            return false;
    return true;
}

static size_t export_find(const Hf__MapGetRep *map, const char *path)
{
    size_t k = 0;

    while (k < map->n_exports && strcmp(map->exports[k]->path, path) != 0)
        k++;
    return k;
}

/* The id after the last one that was ever given out: ids are part of file handles, so that one that
 * is gone must never name another export. */
static int next_id(struct hf_meta *m, const Hf__MapGetRep *map, uint32_t *ret)
{
    struct hf_slice val;
    uint64_t last = 0;
    int r = hf_store_get(m->store, HF_T_META, hf_slice_str(HF_ROW_EXPORT), &val);

    if (r == 0)
        r = hf_counter_decode(val, &last);
    if (r && r != HF_E_NOENT)
        return r;
    for (size_t k = 0; k < map->n_exports; k++)
        if (map->exports[k]->id > last)
            last = map->exports[k]->id;
    if (last >= UINT32_MAX)
        return HF_E_NOSPC;
    *ret = (uint32_t)last + 1;
    return 0;
}

static int id_put(struct hf_meta *m, uint32_t id)
{
    uint8_t val[sizeof(struct hf_counter_disk)];

    hf_counter_encode(id, val);
    return hf_store_put(m->store, HF_T_META, hf_slice_str(HF_ROW_EXPORT),
                        hf_slice(val, sizeof(val)));
}

static int map_for_change(struct hf_meta *m, struct hf_meta_op *op, Hf__MapGetRep **ret)
{
    int r = hf_meta_map(m, op->arena, ret);

    if (r)
        return r == HF_E_NOENT ? HF_E_NOTSUPP : r;
    op->event.op = HF__EVENT_OP__EV_SYSTEM;
    op->event.time_ns = op->now_ns;
    return 0;
}

int hf_meta_op_export_set(struct hf_meta *m, struct hf_meta_op *op, const Hf__ExportSetReq *q,
                          Hf__ExportSetRep *p)
{
    Hf__ExportEntry **list, entry;
    Hf__MapGetRep *map;
    uint32_t id;
    int r = map_for_change(m, op, &map);

    if (r)
        return r;
    if (!q->entry || !entry_ok(q->entry))
        return HF_E_INVAL;
    if (export_find(map, q->entry->path) < map->n_exports)
        return HF_E_EXIST;
    if (!op->may_grow)
        return HF_E_NOSPC;
    r = next_id(m, map, &id);
    if (r)
        return r;
    list = hf_arena_alloc(op->arena, (map->n_exports + 1) * sizeof(Hf__ExportEntry *));
    if (!list)
        return HF_E_NOMEM;
    if (map->n_exports)
        memcpy(list, map->exports, map->n_exports * sizeof(Hf__ExportEntry *));
    entry = *q->entry;
    entry.id = id;
    list[map->n_exports++] = &entry;
    map->exports = list;
    map->version++;
    r = hf_map_store(m->store, map);
    if (r == 0)
        r = id_put(m, id);
    p->id = id;
    p->map_version = map->version;
    return r;
}

int hf_meta_op_export_del(struct hf_meta *m, struct hf_meta_op *op, const Hf__ExportDelReq *q,
                          Hf__ExportDelRep *p)
{
    Hf__MapGetRep *map;
    uint32_t next;
    size_t at;
    int r = map_for_change(m, op, &map);

    if (r)
        return r;
    at = export_find(map, q->path);
    if (at == map->n_exports)
        return HF_E_NOENT;
    r = next_id(m, map, &next);
    if (r == 0)
        r = id_put(m, next - 1);
    if (r)
        return r;
    for (size_t k = at; k + 1 < map->n_exports; k++)
        map->exports[k] = map->exports[k + 1];
    map->n_exports--;
    map->version++;
    p->map_version = map->version;
    return hf_map_store(m->store, map);
}

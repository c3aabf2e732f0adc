/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions and slots, exports and the map, formatting.
 */
#include <stdio.h>

#include "support_meta.h"

static int session_open(struct shard *s, uint64_t id, uint32_t slots)
{
    Hf__SessionOpenReq q = HF__SESSION_OPEN_REQ__INIT;
    const Hf__SessionOpenRep *p;
    static char client[] = "test";

    q.session = id;
    q.slots = slots;
    q.client = client;
    return do_session_open(s, &q, &p);
}

static int session_close(struct shard *s, uint64_t id)
{
    Hf__SessionCloseReq q = HF__SESSION_CLOSE_REQ__INIT;
    const Hf__SessionCloseRep *p;

    q.session = id;
    return do_session_close(s, &q, &p);
}

static int slot(struct shard *s, uint64_t id, uint32_t n, uint64_t seq, int *status,
                struct hf_slice *reply)
{
    enum hf_meta_slot what;
    int r = hf_meta_slot_check(s->meta, id, n, seq, &what, status, reply);

    return r ? r : (int)what;
}

BOTH_STORES(state, slots)
{
    struct shard s;
    struct hf_slice reply;
    int status;

    shard_open(&s, kind);
    cr_status(session_open(&s, 0, 1), HF_E_INVAL);
    cr_status(session_open(&s, 5, 0), HF_E_INVAL);
    cr_status(session_open(&s, 5, 1025), HF_E_INVAL);
    cr_status(slot(&s, 5, 0, 1, &status, &reply), HF_E_NOSESSION);
    cr_ok(session_open(&s, 5, 4));
    cr_status(slot(&s, 5, 4, 1, &status, &reply), HF_E_INVAL);
    cr_status(slot(&s, 5, 0, 0, &status, &reply), HF_E_SEQUENCE);
    cr_assert_eq(slot(&s, 5, 0, 1, &status, &reply), HF_SLOT_RUN);
    cr_ok(hf_meta_slot_store(s.meta, 5, 0, 1, HF_E_EXIST, hf_slice("reply", 5)));
    cr_assert_eq(slot(&s, 5, 0, 1, &status, &reply), HF_SLOT_REPLAY);
    cr_assert(status == HF_E_EXIST && reply.len == 5 && memcmp(reply.data, "reply", 5) == 0);
    cr_assert_eq(slot(&s, 5, 0, 2, &status, &reply), HF_SLOT_RUN);
    cr_assert_eq(slot(&s, 5, 0, 7, &status, &reply), HF_SLOT_RUN); /* gaps are normal */
    cr_ok(hf_meta_slot_store(s.meta, 5, 0, 7, 0, hf_slice(NULL, 0)));
    cr_status(slot(&s, 5, 0, 6, &status, &reply), HF_E_SEQUENCE);
    cr_status(slot(&s, 5, 0, 1, &status, &reply), HF_E_SEQUENCE);
    cr_ok(session_open(&s, 5, 2)); /* again: its slots stay */
    cr_assert_eq(slot(&s, 5, 0, 7, &status, &reply), HF_SLOT_REPLAY);
    cr_assert_eq(slot(&s, 5, 3, 1, &status, &reply), HF_SLOT_RUN);
    static uint8_t big[4097];
    cr_ok(hf_meta_slot_store(s.meta, 5, 3, 1, 0, hf_slice(big, 4096)));
    cr_status(hf_meta_slot_store(s.meta, 5, 3, 1, 0, hf_slice(big, 4097)), HF_E_TOOBIG);
    shard_reopen(&s);
    cr_assert_eq(slot(&s, 5, 3, 1, &status, &reply), HF_SLOT_REPLAY);
    cr_assert_eq(reply.len, 4096);
    cr_ok(session_open(&s, 6, 1));
    cr_ok(hf_meta_slot_store(s.meta, 6, 0, 1, 0, hf_slice("six", 3)));
    cr_ok(session_close(&s, 5));
    cr_status(session_close(&s, 5), HF_E_NOSESSION);
    cr_status(slot(&s, 5, 0, 8, &status, &reply), HF_E_NOSESSION);
    cr_assert_eq(hf_store_count(s.store, HF_T_SLOT), 1);
    cr_assert_eq(slot(&s, 6, 0, 1, &status, &reply), HF_SLOT_REPLAY);
    shard_close(&s);
}

/* Clients that come and go leave nothing behind for ever; one that works stays. */
BOTH_STORES(state, idle_sessions_go)
{
    struct shard s;
    struct hf_slice reply;
    int status;

    shard_open(&s, kind);
    cr_ok(session_open(&s, 1, 4));
    for (uint64_t k = 0; k < 200; k++) {
        cr_ok(session_open(&s, 100 + k, 4));
        cr_ok(hf_meta_slot_store(s.meta, 100 + k, 0, 1, 0, hf_slice("x", 1)));
        s.now_ns += INT64_C(3600) * 1000000000;
        cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, NULL));
        cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
        cr_assert_eq(slot(&s, 1, 0, k + 1, &status, &reply), HF_SLOT_RUN);
        cr_ok(hf_meta_slot_store(s.meta, 1, 0, k + 1, 0, hf_slice("y", 1)));
    }
    cr_assert(hf_store_count(s.store, HF_T_SESS) < 30, "%zu",
              (size_t)hf_store_count(s.store, HF_T_SESS));
    cr_assert(hf_store_count(s.store, HF_T_SLOT) < 30);
    cr_assert_eq(slot(&s, 1, 0, 200, &status, &reply), HF_SLOT_REPLAY);
    shard_close(&s);
}

struct export_case {
    const char *path, *dir, *client;
    uint32_t squash;
    int want;
};

static int export_set(struct shard *s, const struct export_case *c, const Hf__ExportSetRep **p)
{
    Hf__ExportSetReq q = HF__EXPORT_SET_REQ__INIT;
    Hf__ExportEntry e = HF__EXPORT_ENTRY__INIT;
    char *client = (char *)(uintptr_t)c->client;

    e.path = (char *)(uintptr_t)c->path;
    e.dir = (char *)(uintptr_t)c->dir;
    e.clients = &client;
    e.n_clients = client ? 1 : 0;
    e.squash = c->squash;
    q.entry = &e;
    return do_export_set(s, &q, p);
}

static int export_del(struct shard *s, const char *path)
{
    Hf__ExportDelReq q = HF__EXPORT_DEL_REQ__INIT;
    const Hf__ExportDelRep *p;

    q.path = (char *)(uintptr_t)path;
    return do_export_del(s, &q, &p);
}

BOTH_STORES(state, exports)
{
    static const struct export_case cases[] = {
        {"/main", "/", "*", 1, 0},
        {"/main", "/x", "*", 1, HF_E_EXIST},
        {"/a/b", "/a/b", "10.0.0.0/8", 0, 0},
        {"/v6", "/", "fe80::1/64", 2, 0},
        {"/addr", "/", "192.168.1.7", 2, 0},
        {"/", "/", "*", 0, 0},
        {"main", "/", "*", 0, HF_E_INVAL},
        {"", "/", "*", 0, HF_E_INVAL},
        {"/c/", "/", "*", 0, HF_E_INVAL},
        {"//c", "/", "*", 0, HF_E_INVAL},
        {"/c/../d", "/", "*", 0, HF_E_INVAL},
        {"/c/./d", "/", "*", 0, HF_E_INVAL},
        {"/c\n", "/", "*", 0, HF_E_INVAL},
        {"/c", "", "*", 0, HF_E_INVAL},
        {"/c", "d/", "*", 0, HF_E_INVAL},
        {"/c", "/", NULL, 0, HF_E_INVAL},
        {"/c", "/", "", 0, HF_E_INVAL},
        {"/c", "/", "host", 0, HF_E_INVAL},
        {"/c", "/", "10.0.0.0/33", 0, HF_E_INVAL},
        {"/c", "/", "10.0.0.0/", 0, HF_E_INVAL},
        {"/c", "/", "10.0.0.0/8x", 0, HF_E_INVAL},
        {"/c", "/", "fe80::/129", 0, HF_E_INVAL},
        {"/c", "/", "10.0.0.0/4294967297", 0, HF_E_INVAL},
        {"/c", "/", "*", 3, HF_E_INVAL},
    };
    const Hf__ExportSetRep *p;
    Hf__MapGetReq mq = HF__MAP_GET_REQ__INIT;
    const Hf__MapGetRep *map;
    struct shard s;
    uint32_t last = 0;
    uint64_t version = 1;

    shard_open(&s, kind);
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        int r = export_set(&s, &cases[k], &p);

        cr_assert(r == cases[k].want, "case %zu: %s", k, hf_err_name(r));
        if (r == 0) {
            cr_assert(p->id == last + 1 && p->map_version == version + 1);
            last = p->id;
            version = p->map_version;
        }
    }
    cr_ok(do_map_get(&s, &mq, &map));
    cr_assert(map->version == version && map->n_exports == 5 && map->n_segments == 4 &&
              map->n_pools == 2);
    cr_assert_str_eq(map->fs_name, "main");
    cr_assert(map->exports[0]->squash == 1 && map->exports[0]->id == 1);
    mq.known_version = version;
    cr_ok(do_map_get(&s, &mq, &map));
    cr_assert(map->version == version && map->n_exports == 0 && map->n_pools == 0);
    cr_status(export_del(&s, "/none"), HF_E_NOENT);
    cr_ok(export_del(&s, "/"));
    cr_status(export_del(&s, "/"), HF_E_NOENT);
    cr_ok(export_set(&s, &cases[5], &p));
    cr_assert(p->id == last + 1, "the id of an export that is gone is not used again");
    cr_ok(do_map_get(&s, &mq, &map));
    cr_assert(map->version == version + 2);
    shard_close(&s);
}

/* The same for an export that came with the first map. */
BOTH_STORES(state, export_of_first_map)
{
    static const struct export_case again = {"/main", "/", "*", 0, 0};
    static char main_path[] = "/main", root[] = "/";
    Hf__MapGetRep map = HF__MAP_GET_REP__INIT;
    Hf__ExportEntry e = HF__EXPORT_ENTRY__INIT, *list = &e;
    struct hf_meta_format f = {.now_ns = T_START_NS, .root_gen = 77, .map = &map};
    struct shard s = {.now_ns = T_START_NS, .may_grow = true};
    const Hf__ExportSetRep *p;

    e.id = 9;
    e.path = main_path;
    e.dir = root;
    map.version = 5;
    map.exports = &list;
    map.n_exports = 1;
    s.store = store_open(kind, s.dir);
    hf_arena_init(&s.arena, 0);
    cr_ok(hf_meta_format(s.store, &f));
    shard_reopen(&s);
    cr_ok(export_del(&s, "/main"));
    cr_ok(export_set(&s, &again, &p));
    cr_assert(p->id == 10 && p->map_version == 7);
    shard_close(&s);
}

BOTH_STORES(state, map_put)
{
    Hf__MapGetRep map = HF__MAP_GET_REP__INIT, *got;
    Hf__SegmentEntry e = HF__SEGMENT_ENTRY__INIT, *list = &e;
    struct hf_arena a;
    struct shard s;

    shard_open(&s, kind);
    e.id = 42;
    map.segments = &list;
    map.n_segments = 1;
    map.shard_count = 3;
    cr_ok(hf_meta_map_put(s.meta, &map));
    hf_arena_init(&a, 0);
    cr_ok(hf_meta_map(s.meta, &a, &got));
    cr_assert(got->version == 2 && got->n_segments == 1 && got->segments[0]->id == 42 &&
              got->n_pools == 0);
    cr_assert(got->shard_count == 3 && got->root_ino == HF_META_ROOT_INO);
    hf_arena_fini(&a);
    shard_close(&s);
}

BOTH_STORES(state, format)
{
    struct hf_meta_format f = {.shard = 7, .now_ns = T_START_NS};
    struct hf_meta_opts o = {.shard = 7, .inline_max = T_INLINE_MAX};
    Hf__MapGetReq mq = HF__MAP_GET_REQ__INIT;
    const Hf__MapGetRep *map;
    struct hf_store *st;
    struct hf_meta *m;
    struct shard s;
    char dir[64];

    st = store_open(kind, dir);
    o.store = st;
    cr_status(hf_meta_open(&o, &m), HF_E_NOENT);
    cr_ok(hf_meta_format(st, &f));
    cr_status(hf_meta_format(st, &f), HF_E_EXIST);
    o.shard = 8;
    cr_status(hf_meta_open(&o, &m), HF_E_INVAL);
    o.shard = 7;
    cr_ok(hf_meta_open(&o, &m));
    s = (struct shard){.store = st, .meta = m, .now_ns = T_START_NS};
    hf_arena_init(&s.arena, 0);
    cr_status(do_map_get(&s, &mq, &map), HF_E_NOTSUPP);
    cr_status(t_lookup(&s, &t_root, t_root_dir, "x", NULL), HF_E_STALE);
    hf_arena_fini(&s.arena);
    hf_meta_free(m);
    /* another format, a row that is cut */
    cr_ok(
        hf_store_put(st, HF_T_META, hf_slice_str(HF_ROW_FORMAT), hf_slice("\1\0\0\0\2\0\0\0", 8)));
    cr_status(hf_meta_open(&o, &m), HF_E_VERSION);
    cr_ok(
        hf_store_put(st, HF_T_META, hf_slice_str(HF_ROW_FORMAT), hf_slice("\1\0\0\0\1\0\0\0", 8)));
    cr_status(hf_meta_open(&o, &m), HF_E_CORRUPT);
    store_close(st, dir);
}

/* An arena without room: NOMEM, and nothing has changed (the harness compares the redo). */
BOTH_STORES(state, no_memory)
{
    struct shard s;
    struct fh f, d;
    int r = 0;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "f", 0644, &f));
    cr_ok(t_write(&s, &t_root, f, 0, "0123456789", 10));
    for (size_t limit = 1; limit < 8000; limit += 16) {
        static char bytes[2000];
        int got[6];

        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[0] = t_write(&s, &t_root, f, 0, bytes, sizeof(bytes));
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[1] = t_create(&s, &t_root, d, "g", 0644, NULL);
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[2] = t_rename(&s, &t_root, d, "g", t_root_dir, "g");
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[3] = t_remove(&s, &t_root, got[2] ? d : t_root_dir, "g", false);
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[4] = t_truncate(&s, &t_root, f, 1000);
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        got[5] = t_symlink(&s, &t_root, d, "l", "a target", NULL);
        for (int k = 0; k < 6; k++)
            r |= got[k] == HF_E_NOMEM ? 1 << k : 0;
        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, 0);
        t_remove(&s, &t_root, d, "g", false);
        t_remove(&s, &t_root, d, "l", false);
        cr_assert_eq(shard_check(&s, NULL), 0);
    }
    cr_assert_eq(r, 63, "each ran out of memory somewhere");
    shard_close(&s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of operations on a shard in memory. The input chooses methods of the generated service
 * descriptor, so that a new operation is fuzzed without an edit here; its message is either made
 * field by field (inode numbers of objects that exist, names that are used again) or parsed from
 * bytes as a server does. Between them: the steps that the shard engine takes by itself.
 *
 * What must hold: the closure is called once; what fails changes nothing; what changes something
 * tells; the redo of it all, applied to a second store, gives the same rows; hf_meta_check finds
 * nothing.
 */
#include "fuzz.h"
#include "holdfast/err.h"
#include "holdfast/map.h"
#include "layout.h"

#define OPS_MAX   96u
#define INOS_MAX  48u
#define START_NS  INT64_C(1700000000000000000)
#define ROOT_GEN  77u
#define INLINE    4096u
#define ARENA_MAX ((size_t)64 << 20)

static const char *const words[] = {"a",
                                    "b",
                                    "c",
                                    "A",
                                    "dir",
                                    "user.a",
                                    "user.b",
                                    "trusted.t",
                                    "security.capability",
                                    "security.selinux",
                                    "system.posix_acl_access",
                                    "system.posix_acl_default",
                                    "user.holdfast.layout.allocation",
                                    "holdfast.allocation",
                                    ".",
                                    "..",
                                    "",
                                    "a/b",
                                    "local",
                                    "round-robin"};

struct world {
    struct hf_store *store, *copy;
    struct hf_meta *meta;
    struct hf_arena arena;
    struct hf_meta_op op;
    struct hf_buf redo;
    int64_t now_ns;
    uint64_t random, boot;
    unsigned closures;
    uint64_t inos[INOS_MAX];
    uint32_t gens[INOS_MAX];
    size_t ninos, next_ino;
    struct hf_meta_gc gc;
    bool have_gc;
};

static const Hf__MapGetRep *map_of(void)
{
    static Hf__PoolEntry pool;
    static Hf__SegmentEntry seg[3];
    static Hf__PoolEntry *pools[] = {&pool};
    static Hf__SegmentEntry *segs[] = {&seg[0], &seg[1], &seg[2]};
    static Hf__MapGetRep map;
    static char name[] = "default", url[] = "inproc://seg", fs[] = "main";

    hf__map_get_rep__init(&map);
    hf__pool_entry__init(&pool);
    pool.name = name;
    pool.chunk_bytes = 4u << 20;
    pool.width = 2;
    for (uint32_t k = 0; k < 3; k++) {
        hf__segment_entry__init(&seg[k]);
        seg[k].id = 10 + k;
        seg[k].url = url;
    }
    map.version = 1;
    map.fs_name = fs;
    map.pools = pools;
    map.n_pools = 1;
    map.segments = segs;
    map.n_segments = 3;
    map.inline_max = INLINE;
    map.root_ino = HF_META_ROOT_INO;
    map.root_gen = ROOT_GEN;
    return &map;
}

static struct hf_store *store_new(void)
{
    struct hf_store_opts o = {.kind = HF_STORE_MEM,
                              .tables = hf_meta_tables,
                              .ntables = hf_meta_ntables,
                              .format = HF_META_FORMAT};
    struct hf_store *s;

    FUZZ_CHECK(hf_store_open(&o, &s) == 0);
    hf_store_batch(s, 1);
    return s;
}

static void meta_open(struct world *w)
{
    struct hf_meta_opts o = {.store = w->store, .inline_max = INLINE};

    hf_meta_free(w->meta);
    w->meta = NULL;
    FUZZ_CHECK(hf_meta_open(&o, &w->meta) == 0);
    FUZZ_CHECK(hf_meta_set_map(w->meta, map_of()) == 0);
    w->boot++;
}

static void world_open(struct world *w)
{
    struct hf_meta_format f = {
        .cookie_key = "0123456789abcde", .now_ns = START_NS, .root_gen = ROOT_GEN, .map = map_of()};

    *w = (struct world){.now_ns = START_NS, .boot = 4711, .ninos = 1};
    w->inos[0] = HF_META_ROOT_INO;
    w->gens[0] = ROOT_GEN;
    hf_arena_init(&w->arena, ARENA_MAX);
    w->store = store_new();
    w->copy = store_new();
    FUZZ_CHECK(hf_meta_format(w->store, &f) == 0);
    meta_open(w);
}

static void world_close(struct world *w)
{
    hf_meta_free(w->meta);
    hf_store_close(w->store);
    hf_store_close(w->copy);
    hf_arena_fini(&w->arena);
    hf_buf_fini(&w->redo);
}

/* ---- operations ---- */

/* Objects that replies tell of are used in later operations. */
static void learn(void *arg, const ProtobufCMessage *m)
{
    struct world *w = arg;
    const Hf__Attr *a = (const Hf__Attr *)m;

    if (m->descriptor != &hf__attr__descriptor || a->ino == 0)
        return;
    for (size_t k = 0; k < w->ninos; k++) {
        if (w->inos[k] == a->ino && w->gens[k] == a->gen)
            return;
    }
    if (w->ninos < INOS_MAX) {
        w->next_ino = w->ninos++;
    } else {
        w->next_ino = 1 + w->next_ino % (INOS_MAX - 1);
    }
    w->inos[w->next_ino] = a->ino;
    w->gens[w->next_ino] = a->gen;
}

static void on_reply(const ProtobufCMessage *rep, void *data)
{
    struct world *w = ((struct hf_meta_op *)data)->user;

    FUZZ_CHECK(rep);
    w->closures++;
    /* As it is sent, so that every byte of it is looked at. */
    FUZZ_CHECK(protobuf_c_message_get_packed_size(rep) <= (8u << 20));
    if (w->op.status == 0) {
        uint8_t *packed = hf_arena_alloc(&w->arena, protobuf_c_message_get_packed_size(rep) + 1);

        if (packed)
            protobuf_c_message_pack(rep, packed);
    }
    fuzz_pb_each(rep, learn, w);
}

static void take_redo(struct world *w)
{
    hf_buf_reset(&w->redo);
    FUZZ_CHECK(hf_store_redo_take(w->store, &w->redo) == 0);
    FUZZ_CHECK(hf_store_redo_apply(w->copy, hf_buf_slice(&w->redo)) == 0);
}

static void operation(struct world *w, struct fuzz *f, unsigned method)
{
    ProtobufCService *s = hf_meta_service(w->meta);
    const ProtobufCMethodDescriptor *m = &s->descriptor->methods[method];
    struct fuzz_pb pb = {.arena = &w->arena,
                         .inos = w->inos,
                         .gens = w->gens,
                         .ninos = w->ninos,
                         .words = words,
                         .nwords = sizeof(words) / sizeof(words[0])};
    uint8_t how = fuzz_u8(f);
    const ProtobufCMessage *q;
    struct hf_slice bulk;
    bool changed;

    hf_arena_reset(&w->arena);
    if (how & 1)
        q = fuzz_pb_parse(&w->arena, m->input, fuzz_bytes(f, fuzz_uint(f, 2) & 0x3ff));
    else
        q = fuzz_pb_make(f, &pb, m->input);
    if (!q)
        return;
    bulk = how & 2 ? fuzz_bytes(f, fuzz_uint(f, how & 4 ? 2 : 1)) : hf_slice(NULL, 0);
    w->random = hf_hash_u64(w->random + 1);
    w->op = (struct hf_meta_op){.now_ns = w->now_ns,
                                .random = w->random,
                                .may_grow = (how & 8) == 0,
                                .bulk = bulk,
                                .arena = &w->arena,
                                .boot = w->boot,
                                .session = (how >> 4) & 3,
                                .status = 1,
                                .user = w};
    w->closures = 0;
    s->invoke(s, method, q, on_reply, &w->op);
    hf_store_untracked(w->store, false);
    changed = hf_store_redo_bytes(w->store) > 0;
    FUZZ_CHECK(w->closures == 1, "%s: %u closures", m->name, w->closures);
    FUZZ_CHECK(w->op.status <= 0, "%s: status %d", m->name, w->op.status);
    FUZZ_CHECK(w->op.status != HF_E_CORRUPT && w->op.status != HF_E_IO, "%s: %s", m->name,
               hf_err_name(w->op.status));
    FUZZ_CHECK(!changed || w->op.status == 0, "%s: %s, and something changed", m->name,
               hf_err_name(w->op.status));
    FUZZ_CHECK(changed == (w->op.event.op != HF__EVENT_OP__EV_NONE), "%s: event %d, changed %d",
               m->name, (int)w->op.event.op, changed);
    FUZZ_CHECK(!hf_store_broken(w->store));
    take_redo(w);
}

/* ---- what the engine does by itself ---- */

static bool fine(int rc)
{
    return rc == 0 || rc == HF_E_NOENT;
}

static void collect(struct world *w)
{
    struct hf_meta_gc g;

    if (hf_meta_gc_next(w->meta, w->have_gc ? &w->gc : NULL, w->now_ns, &g)) {
        w->have_gc = false;
        return;
    }
    FUZZ_CHECK(g.nsegments > 0 && g.nsegments <= 64 && g.first_chunk < g.nchunks);
    w->gc = g;
    w->have_gc = true;
    FUZZ_CHECK(hf_meta_gc_done(w->meta, &g) == 0);
}

static void expire(struct world *w)
{
    uint64_t cursor = 0, id;

    if (hf_meta_opens_expired(w->meta, w->now_ns, &cursor, &id) == 0)
        FUZZ_CHECK(fine(hf_meta_opens_expire(w->meta, id, w->now_ns, 8)));
    cursor = 0;
    if (hf_meta_orphans_next(w->meta, w->now_ns, &cursor, &id) == 0)
        FUZZ_CHECK(fine(hf_meta_orphan_del(w->meta, id, w->now_ns)));
    if (hf_meta_append_late(w->meta, w->now_ns, &id) == 0)
        FUZZ_CHECK(fine(hf_meta_append_drop(w->meta, id)));
}

static void slot(struct world *w, struct fuzz *f)
{
    uint64_t session = fuzz_u8(f) & 3, sequence = fuzz_number(f);
    uint32_t nth = (uint32_t)fuzz_number(f);
    enum hf_meta_slot what;
    struct hf_slice reply;
    int status;

    if (hf_meta_slot_check(w->meta, session, nth, sequence, &what, &status, &reply) ||
        what != HF_SLOT_RUN)
        return;
    FUZZ_CHECK(hf_meta_slot_store(w->meta, session, nth, sequence, 0, fuzz_bytes(f, 40)) == 0);
    FUZZ_CHECK(hf_meta_slot_check(w->meta, session, nth, sequence, &what, &status, &reply) == 0);
    FUZZ_CHECK(what == HF_SLOT_REPLAY);
}

static void engine(struct world *w, struct fuzz *f, unsigned what)
{
    switch (what % 8) {
    case 0:
        w->now_ns += 1000000000;
        break;
    case 1:
        w->now_ns += 3600 * INT64_C(1000000000);
        break;
    case 2: /* a restart of the shard */
        FUZZ_CHECK(hf_store_checkpoint(w->store, hf_store_applied(w->store) + 1) == 0);
        meta_open(w);
        break;
    case 3:
        hf_meta_set_segment_free(w->meta, 10 + fuzz_u8(f) % 4, fuzz_number(f));
        break;
    case 4:
    case 5:
        collect(w);
        break;
    case 6:
        slot(w, f);
        break;
    default:
        expire(w);
        break;
    }
    take_redo(w);
}

/* ---- at the end ---- */

static void on_problem(void *arg, const char *kind, uint64_t ino, struct hf_slice name,
                       const char *detail)
{
    (void)arg;
    fprintf(stderr, "problem: %s ino %llx name %.*s: %s\n", kind, (unsigned long long)ino,
            (int)name.len, (const char *)name.data, detail);
}

struct compare {
    struct hf_store *with;
    unsigned table;
    uint64_t rows;
};

static int same_row(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct compare *c = arg;
    struct hf_slice got;

    FUZZ_CHECK(hf_store_get(c->with, c->table, key, &got) == 0, "table %u", c->table);
    FUZZ_CHECK(hf_slice_eq(val, got), "table %u", c->table);
    c->rows++;
    return 0;
}

static void verify(struct world *w)
{
    struct hf_meta_check c = {.problem = on_problem};
    struct hf_store_snap *snap;

    FUZZ_CHECK(hf_store_checkpoint(w->store, hf_store_applied(w->store) + 1) == 0);
    FUZZ_CHECK(hf_store_snap_open(w->store, &snap) == 0);
    FUZZ_CHECK(hf_meta_check(snap, &c) == 0);
    for (unsigned t = 0; t < hf_meta_ntables; t++) {
        struct compare cmp = {.with = w->copy, .table = t};

        FUZZ_CHECK(hf_store_snap_scan(snap, t, hf_slice(NULL, 0), same_row, &cmp) == 0);
        FUZZ_CHECK(hf_store_count(w->copy, t) == cmp.rows, "table %u", t);
    }
    hf_store_snap_close(snap);
    FUZZ_CHECK(c.problems == 0, "%llu problems", (unsigned long long)c.problems);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {data, size};
    struct world w;
    unsigned nmethods;

    world_open(&w);
    take_redo(&w); /* of the format */
    nmethods = hf_meta_service(w.meta)->descriptor->n_methods;
    for (unsigned k = 0; k < OPS_MAX && f.left > 0; k++) {
        unsigned what = fuzz_u8(&f) % (nmethods + 8);

        w.now_ns += 1000;
        if (what < nmethods)
            operation(&w, &f, what);
        else
            engine(&w, &f, what - nmethods);
    }
    verify(&w);
    world_close(&w);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support_meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/map.h"

static uint32_t u1_groups[] = {500}, u2_groups[] = {500};
Hf__Cred t_root = {PROTOBUF_C_MESSAGE_INIT(&hf__cred__descriptor), 0, 0, 0, NULL};
Hf__Cred t_u1 = {PROTOBUF_C_MESSAGE_INIT(&hf__cred__descriptor), 1001, 1001, 1, u1_groups};
Hf__Cred t_u2 = {PROTOBUF_C_MESSAGE_INIT(&hf__cred__descriptor), 1002, 1002, 1, u2_groups};
const struct fh t_root_dir = {HF_META_ROOT_INO, 77};

struct hf_store *store_open(enum hf_store_kind kind, char dir[64])
{
    struct hf_store_opts o = {.kind = kind,
                              .dir = dir,
                              .tables = hf_meta_tables,
                              .ntables = hf_meta_ntables,
                              .format = HF_META_FORMAT,
                              .map_bytes = 1u << 30,
                              .reserve_bytes = 1u << 20};
    struct hf_store *st;

    snprintf(dir, 64, "/tmp/hf-meta-XXXXXX");
    cr_assert(mkdtemp(dir));
    cr_ok(hf_store_open(&o, &st));
    return st;
}

static void remove_file(const char *dir, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
}

void store_close(struct hf_store *st, const char *dir)
{
    hf_store_close(st);
    remove_file(dir, "data.mdb");
    remove_file(dir, "lock.mdb");
    rmdir(dir);
}

static Hf__MapGetRep *test_map(void)
{
    static Hf__PoolEntry pool[2];
    static Hf__SegmentEntry seg[4];
    static Hf__PoolEntry *pools[2];
    static Hf__SegmentEntry *segs[4];
    static Hf__MapGetRep map;
    static char hot[] = "hot", cold[] = "cold", url[] = "inproc://seg", fs[] = "main";

    hf__map_get_rep__init(&map);
    for (uint32_t k = 0; k < 2; k++) {
        hf__pool_entry__init(&pool[k]);
        pool[k].id = k;
        pool[k].name = k ? hot : cold;
        pool[k].chunk_bytes = 4u << 20;
        pool[k].width = 2;
        pools[k] = &pool[k];
    }
    for (uint32_t k = 0; k < 4; k++) {
        hf__segment_entry__init(&seg[k]);
        seg[k].id = 10 + k;
        seg[k].pool = k ? 1 : 0;
        seg[k].url = url;
        segs[k] = &seg[k];
    }
    map.version = 1;
    map.fs_name = fs;
    map.pools = pools;
    map.n_pools = 2;
    map.segments = segs;
    map.n_segments = 4;
    map.inline_max = T_INLINE_MAX;
    map.root_ino = HF_META_ROOT_INO;
    map.root_gen = t_root_dir.gen;
    return &map;
}

void shard_reopen(struct shard *s)
{
    struct hf_meta_opts o = {.store = s->store, .inline_max = T_INLINE_MAX};

    hf_meta_free(s->meta);
    s->meta = NULL;
    cr_ok(hf_meta_open(&o, &s->meta));
    cr_ok(hf_meta_set_map(s->meta, test_map()));
}

void shard_open(struct shard *s, enum hf_store_kind kind)
{
    struct hf_meta_format f = {.cookie_key = "0123456789abcde",
                               .now_ns = T_START_NS,
                               .root_gen = t_root_dir.gen,
                               .map = test_map()};

    *s = (struct shard){.now_ns = T_START_NS, .may_grow = true};
    s->store = store_open(kind, s->dir);
    hf_store_batch(s->store, 1);
    hf_arena_init(&s->arena, 0);
    cr_status(hf_meta_is_formatted(s->store), HF_E_NOENT);
    cr_ok(hf_meta_format(s->store, &f));
    cr_ok(hf_meta_is_formatted(s->store));
    shard_reopen(s);
}

void shard_close(struct shard *s)
{
    hf_meta_free(s->meta);
    hf_arena_fini(&s->arena);
    store_close(s->store, s->dir);
}

void shard_checkpoint(struct shard *s)
{
    cr_ok(hf_store_checkpoint(s->store, hf_store_applied(s->store) + 1));
}

struct kinds {
    char *text;
    size_t len;
};

static void on_problem(void *arg, const char *kind, uint64_t ino, struct hf_slice name,
                       const char *detail)
{
    struct kinds *k = arg;

    if (k->text)
        k->len += (size_t)snprintf(k->text + k->len, 512 - k->len, "%s ", kind);
    else
        fprintf(stderr, "problem: %s ino %llx name %.*s: %s\n", kind, (unsigned long long)ino,
                (int)name.len, (const char *)name.data, detail);
    if (k->len > 480)
        k->len = 480;
}

uint64_t shard_check(struct shard *s, char kinds[512])
{
    struct kinds k = {.text = kinds};
    struct hf_meta_check c = {.arg = &k, .problem = on_problem};
    struct hf_store_snap *snap;

    if (kinds)
        kinds[0] = 0;
    shard_checkpoint(s);
    cr_ok(hf_store_snap_open(s->store, &snap));
    cr_ok(hf_meta_check(snap, &c));
    hf_store_snap_close(snap);
    return c.problems;
}

/* ---- operations ---- */

static void begin(struct shard *s)
{
    s->now_ns += 1000;
    s->random = hf_hash_u64(s->random + 1);
    hf_arena_reset(&s->arena);
    s->op = (struct hf_meta_op){.now_ns = s->now_ns,
                                .random = s->random,
                                .may_grow = s->may_grow,
                                .bulk = s->bulk,
                                .arena = &s->arena,
                                .boot = s->boot ? s->boot : 4711,
                                .session = s->session,
                                .status = 1,
                                .user = s};
    s->bulk = hf_slice(NULL, 0);
    s->rep = NULL;
}

/* An operation that fails leaves the redo untouched; one that changes something tells what. */
static int end(struct shard *s, size_t redo_before)
{
    bool changed = hf_store_redo_bytes(s->store) != redo_before;

    cr_assert(s->rep, "the closure was not called");
    cr_assert(s->op.status <= 0, "no status");
    cr_assert(!changed || s->op.status == 0, "an operation that failed changed something");
    cr_assert(changed == (s->op.event.op != HF__EVENT_OP__EV_NONE), "event %u, changed %d",
              s->op.event.op, changed);
    return s->op.status;
}

#define X(name, Name)                                                                              \
    static void on_##name(const Hf__##Name##Rep *rep, void *data)                                  \
    {                                                                                              \
        struct hf_meta_op *op = data;                                                              \
        struct shard *s = op->user;                                                                \
                                                                                                   \
        cr_assert(!s->rep && rep);                                                                 \
        s->rep = rep;                                                                              \
    }                                                                                              \
    int do_##name(struct shard *s, const Hf__##Name##Req *q, const Hf__##Name##Rep **rep)          \
    {                                                                                              \
        size_t before = hf_store_redo_bytes(s->store);                                             \
                                                                                                   \
        begin(s);                                                                                  \
        hf__meta__##name(hf_meta_service(s->meta), q, on_##name, &s->op);                          \
        *rep = s->rep;                                                                             \
        return end(s, before);                                                                     \
    }
#include "ops.def"
#undef X

/* ---- plain forms ---- */

ProtobufCBinaryData t_bytes(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

struct fh t_fh(const Hf__Attr *a)
{
    return (struct fh){a->ino, a->gen};
}

static void give(struct fh *ret, const Hf__Attr *a)
{
    if (ret && a)
        *ret = t_fh(a);
}

int t_create(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, uint32_t mode,
             struct fh *ret)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__CreateReq q = HF__CREATE_REQ__INIT;
    const Hf__CreateRep *p;
    int r;

    set.set_mode = true;
    set.mode = mode;
    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    q.how = HF__CREATE_HOW__CREATE_GUARDED;
    q.set = &set;
    r = do_create(s, &q, &p);
    give(ret, p->obj);
    return r;
}

int t_make(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, uint32_t type,
           uint32_t mode, struct fh *ret)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__MakeReq q = HF__MAKE_REQ__INIT;
    const Hf__MakeRep *p;
    int r;

    set.set_mode = true;
    set.mode = mode;
    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    q.type = type;
    q.set = &set;
    q.target = t_bytes("target");
    q.rdev_major = 8;
    q.rdev_minor = 1;
    r = do_make(s, &q, &p);
    give(ret, p->obj);
    return r;
}

int t_symlink(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, const char *target,
              struct fh *ret)
{
    Hf__MakeReq q = HF__MAKE_REQ__INIT;
    const Hf__MakeRep *p;
    int r;

    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    q.type = HF__FILE_TYPE__FT_LNK;
    q.target = t_bytes(target);
    r = do_make(s, &q, &p);
    give(ret, p->obj);
    return r;
}

int t_lookup(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, struct fh *ret)
{
    Hf__LookupReq q = HF__LOOKUP_REQ__INIT;
    const Hf__LookupRep *p;
    int r;

    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    r = do_lookup(s, &q, &p);
    give(ret, p->obj);
    return r;
}

int t_remove(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, bool is_dir)
{
    Hf__RemoveReq q = HF__REMOVE_REQ__INIT;
    const Hf__RemoveRep *p;

    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    q.is_dir = is_dir;
    return do_remove(s, &q, &p);
}

int t_rename(struct shard *s, Hf__Cred *c, struct fh from, const char *name, struct fh to,
             const char *to_name)
{
    Hf__RenameReq q = HF__RENAME_REQ__INIT;
    const Hf__RenameRep *p;

    q.cred = c;
    q.from_dir = from.ino;
    q.from_gen = from.gen;
    q.from_name = t_bytes(name);
    q.to_dir = to.ino;
    q.to_gen = to.gen;
    q.to_name = t_bytes(to_name);
    return do_rename(s, &q, &p);
}

int t_link(struct shard *s, Hf__Cred *c, struct fh o, struct fh dir, const char *name)
{
    Hf__LinkReq q = HF__LINK_REQ__INIT;
    const Hf__LinkRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.dir = dir.ino;
    q.dir_gen = dir.gen;
    q.name = t_bytes(name);
    return do_link(s, &q, &p);
}

int t_setattr(struct shard *s, Hf__Cred *c, struct fh o, Hf__SetAttrs *set)
{
    Hf__SetattrReq q = HF__SETATTR_REQ__INIT;
    const Hf__SetattrRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.set = set;
    return do_setattr(s, &q, &p);
}

int t_chmod(struct shard *s, Hf__Cred *c, struct fh o, uint32_t mode)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_mode = true;
    set.mode = mode;
    return t_setattr(s, c, o, &set);
}

int t_chown(struct shard *s, Hf__Cred *c, struct fh o, int64_t uid, int64_t gid)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_uid = uid >= 0;
    set.uid = (uint32_t)uid;
    set.set_gid = gid >= 0;
    set.gid = (uint32_t)gid;
    return t_setattr(s, c, o, &set);
}

int t_truncate(struct shard *s, Hf__Cred *c, struct fh o, uint64_t size)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_size = true;
    set.size = size;
    return t_setattr(s, c, o, &set);
}

int t_write(struct shard *s, Hf__Cred *c, struct fh o, uint64_t offset, const void *data,
            uint32_t len)
{
    Hf__WriteReq q = HF__WRITE_REQ__INIT;
    const Hf__WriteRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.offset = offset;
    q.len = len;
    q.stable = HF__STABLE__FILE_SYNC;
    if (offset + len <= T_INLINE_MAX)
        s->bulk = hf_slice(data, len);
    return do_write(s, &q, &p);
}

int t_read(struct shard *s, Hf__Cred *c, struct fh o, uint64_t offset, uint32_t len)
{
    Hf__ReadReq q = HF__READ_REQ__INIT;
    const Hf__ReadRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.offset = offset;
    q.len = len;
    return do_read(s, &q, &p);
}

Hf__Attr t_attr(struct shard *s, struct fh o)
{
    Hf__GetattrReq q = HF__GETATTR_REQ__INIT;
    const Hf__GetattrRep *p;

    q.ino = o.ino;
    q.gen = o.gen;
    cr_ok(do_getattr(s, &q, &p));
    return *p->obj;
}

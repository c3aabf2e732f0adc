/* SPDX-License-Identifier: Apache-2.0
 *
 * The shard of support_shard.h by the real namespace library on a store in memory: one shard, every
 * call one durable batch, answered as the shard engine does.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/meta.h"
#include "support_shard.h"

struct real {
    struct hf_store *store;
    struct hf_meta *meta;
    uint64_t batch;
    uint64_t boot;
    int64_t now_ns;
};

struct running {
    struct hf_meta_op op;
    struct wmeta *m;
    struct hf_rpc_req *req;
    size_t redo_before;
};

static struct real *real_of(struct wmeta *m)
{
    return m->real;
}

static void on_reply(const ProtobufCMessage *rep, void *data)
{
    struct running *r = hf_container_of((struct hf_meta_op *)data, struct running, op);
    struct real *x = real_of(r->m);
    struct world *w = r->m->w;
    struct hf_rpc_req *req = r->req;
    uint8_t packed[4096];
    size_t n = protobuf_c_message_get_packed_size(rep);

    if (req->session && hf_store_redo_bytes(x->store) != r->redo_before) {
        cr_assert_leq(n, sizeof(packed));
        protobuf_c_message_pack(rep, packed);
        cr_assert_eq(hf_meta_slot_store(x->meta, req->session, req->slot, req->sequence,
                                        r->op.status, hf_slice(packed, n)),
                     0);
    }
    if (w->drop_replies) {
        w->drop_replies--;
        hf_rpc_req_drop(req);
        cr_assert_eq(hf_rpc_sim_cut(w->env, r->m->url), 0);
        return;
    }
    hf_rpc_reply(req, r->op.status, rep, &r->op.reply_bulk, r->op.reply_bulk.len ? 1 : 0);
}

/* True: answered or refused by its slot. */
static bool by_slot(struct wmeta *m, struct hf_rpc_req *req)
{
    enum hf_meta_slot what;
    struct hf_slice stored;
    int status, rc;

    rc = hf_meta_slot_check(real_of(m)->meta, req->session, req->slot, req->sequence, &what,
                            &status, &stored);
    if (rc) {
        hf_rpc_reply(req, rc, NULL, NULL, 0);
        return true;
    }
    if (what == HF_SLOT_RUN)
        return false;
    m->w->replays++;
    hf_rpc_reply_packed(req, status, stored, NULL, 0);
    return true;
}

static void dispatch(void *arg, struct hf_rpc_req *req)
{
    struct wmeta *m = arg;
    struct real *x = real_of(m);
    ProtobufCService *impl = hf_meta_service(x->meta);
    struct running r = {.m = m, .req = req};
    struct hf_buf redo = {0};

    if (req->session && by_slot(m, req))
        return;
    hf_store_batch(x->store, ++x->batch);
    x->now_ns += 1000;
    r.op = (struct hf_meta_op){
        .now_ns = x->now_ns,
        .random = hf_env_random_u64(m->w->env) << 32 | 1, /* the probes want generation 1 */
        .may_grow = true,
        .bulk = req->bulk,
        .arena = req->arena,
        .boot = x->boot,
    };
    r.redo_before = hf_store_redo_bytes(x->store);
    impl->invoke(impl, req->method, req->msg, on_reply, &r.op);
    cr_assert_eq(hf_store_redo_take(x->store, &redo), 0);
    hf_store_durable(x->store, x->batch);
    hf_buf_fini(&redo);
}

static void format(struct wmeta *m)
{
    struct real *x = real_of(m);
    struct hf_store_opts so = {.kind = HF_STORE_MEM,
                               .dir = "",
                               .tables = hf_meta_tables,
                               .ntables = hf_meta_ntables,
                               .format = HF_META_FORMAT};
    struct hf_meta_opts mo = {.inline_max = W_INLINE_MAX};
    Hf__MapGetRep map = HF__MAP_GET_REP__INIT;
    Hf__PoolEntry pool = HF__POOL_ENTRY__INIT, *pools[1] = {&pool};
    Hf__ShardEntry shard = HF__SHARD_ENTRY__INIT, *shards[1] = {&shard};
    Hf__SegmentEntry seg[W_SERVERS], *segs[W_SERVERS];
    struct hf_meta_format f = {.now_ns = 1, .root_gen = 1, .map = &map};
    static char name[] = "hot", path[] = "/main", dir[] = "/", all[] = "*", *clients[1] = {all};
    static uint8_t key[16] = "0123456789abcdef";
    Hf__ExportEntry export = HF__EXPORT_ENTRY__INIT, *exports[1] = {&export};

    pool.id = 1;
    pool.name = name;
    pool.chunk_bytes = W_CHUNK;
    pool.width = W_SERVERS;
    shard.url = m->url;
    for (uint32_t i = 0; i < W_SERVERS; i++) {
        hf__segment_entry__init(&seg[i]);
        seg[i].id = i + 1;
        seg[i].pool = 1;
        seg[i].url = m->w->seg[i].url;
        segs[i] = &seg[i];
        snprintf(m->w->seg[i].url, sizeof(m->w->seg[i].url), "sim://s%u", i);
    }
    export.id = 1;
    export.path = path;
    export.dir = dir;
    export.clients = clients;
    export.n_clients = 1;
    map.exports = exports;
    map.n_exports = 1;
    map.handle_key = (ProtobufCBinaryData){sizeof(key), key};
    map.version = 1;
    map.shard_count = 1;
    map.shards = shards;
    map.n_shards = 1;
    map.pools = pools;
    map.n_pools = 1;
    map.segments = segs;
    map.n_segments = W_SERVERS;
    map.inline_max = W_INLINE_MAX;
    map.root_ino = HF_META_ROOT_INO;
    map.root_gen = 1;
    cr_assert_eq(hf_store_open(&so, &x->store), 0);
    hf_store_batch(x->store, ++x->batch);
    cr_assert_eq(hf_meta_format(x->store, &f), 0);
    mo.store = x->store;
    cr_assert_eq(hf_meta_open(&mo, &x->meta), 0);
    cr_assert_eq(hf_meta_set_map(x->meta, &map), 0);
}

void shard_server_init(struct world *w, unsigned index)
{
    struct wmeta *m = &w->meta[index];
    struct hf_rpc_server_opts o = {.dispatch = dispatch, .arg = m};

    m->w = w;
    m->index = index;
    snprintf(m->url, sizeof(m->url), "sim://m%u", index);
    if (index > 0)
        return; /* one shard, one server */
    m->real = calloc(1, sizeof(struct real));
    cr_assert(m->real);
    real_of(m)->boot = hf_env_random_u64(w->env);
    format(m);
    cr_assert_eq(hf_loop_new(w->env, "shard", &m->loop), 0);
    cr_assert_eq(hf_rpc_server_new(m->loop, &o, &m->server), 0);
    cr_assert_eq(hf_rpc_server_add(m->server, hf_meta_service(real_of(m)->meta)), 0);
    cr_assert_eq(hf_rpc_server_listen(m->server, m->url), 0);
}

static void on_problem(void *arg, const char *kind, uint64_t ino, struct hf_slice name,
                       const char *detail)
{
    (void)arg;
    (void)name;
    cr_assert_fail("fsck: %s, inode %lu: %s", kind, (unsigned long)ino, detail);
}

void shard_server_fini(struct wmeta *m)
{
    struct hf_meta_check check = {.problem = on_problem};
    struct real *x = real_of(m);
    struct hf_store_snap *snap;

    if (!x)
        return;
    hf_rpc_server_stop(m->server);
    hf_rpc_server_free(m->server);
    hf_loop_free(m->loop);
    cr_assert_eq(hf_store_checkpoint(x->store, 1), 0);
    cr_assert_eq(hf_store_snap_open(x->store, &snap), 0);
    cr_assert_eq(hf_meta_check(snap, &check), 0);
    hf_store_snap_close(snap);
    hf_meta_free(x->meta);
    hf_store_close(x->store);
    free(x);
}

void world_release_held(struct world *w)
{
    (void)w; /* nothing is ever held here */
}

static void on_create(const Hf__CreateRep *rep, void *arg)
{
    struct hf_client_call *call = arg;

    cr_assert_eq(call->status, 0);
    cr_assert(rep->obj);
    cr_assert_eq(rep->obj->gen, 1);
    *(uint64_t *)call->arg = rep->obj->ino;
}

uint64_t shard_make_file(struct world *w, struct hf_client *c)
{
    Hf__CreateReq req = HF__CREATE_REQ__INIT;
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__Cred root = HF__CRED__INIT;
    static uint8_t name[] = "file";
    uint64_t ino = 0;
    struct hf_client_call call = {.ino = HF_META_ROOT_INO, .arg = &ino};

    req.cred = &root;
    req.dir = HF_META_ROOT_INO;
    req.gen = 1;
    req.name = (ProtobufCBinaryData){4, name};
    req.set = &set;
    hf_client_create(c, &req, on_create, &call);
    while (!ino)
        cr_assert(hf_sim_step(w->env));
    return ino;
}

bool shard_limits_size(struct world *w, uint64_t ino)
{
    (void)w;
    (void)ino;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "shard.h"

#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/map.h"
#include "shard_batch.h"

/* Methods of the Meta service that never write; everything else queues while a checkpoint is
 * pending. */
static const char *const read_methods[] = {"Lookup",   "Getattr",   "Access", "Readlink",
                                           "Readdir",  "Fsstat",    "Commit", "MapGet",
                                           "Getxattr", "Listxattr", "Seek"};

/* One bit per method, from the descriptor, so that the order in meta.proto does not matter here. */
static bool is_read_method(unsigned method)
{
    const char *name = hf__meta__descriptor.methods[method].name;

    for (size_t i = 0; i < HF_ARRAY_LEN(read_methods); i++)
        if (strcmp(read_methods[i], name) == 0)
            return true;
    return false;
}

int64_t shard_now_ns(struct shard *s)
{
    int64_t now = hf_env_wall_ns(s->conf.env);

    if (now <= s->now_ns)
        now =
            s->now_ns + 1; /* stamps of one shard order its changes even if the clock steps back */
    s->now_ns = now;
    return now;
}

/* Generations of objects tell a reused name from an old handle; they need not be secret (handles
 * carry a MAC), so one system call per operation would be wasted. splitmix64. */
static uint64_t next_random(struct shard *s)
{
    s->random += 0x9e3779b97f4a7c15u;
    return hf_hash_u64(s->random);
}

bool shard_seen_durable(const struct shard *s)
{
    return hf_store_seen(s->store) == 0;
}

/* ---- one call ---- */

/* What a call needs while it runs; on the stack of run_call. */
struct running {
    struct hf_meta_op op;
    struct shard *shard;
    struct hf_rpc_req *req;
    size_t redo_before;
    bool replied;
};

static int pack_into(struct hf_arena *arena, const ProtobufCMessage *rep, struct hf_slice *ret)
{
    size_t len = protobuf_c_message_get_packed_size(rep);
    uint8_t *p = hf_arena_alloc(arena, len ? len : 1);

    if (!p)
        return HF_E_NOMEM;
    protobuf_c_message_pack(rep, p);
    *ret = hf_slice(p, len);
    return 0;
}

/* The call changed the shard: its reply, stored in the session's slot, leaves with the batch. */
static void finish_change(struct running *r, const ProtobufCMessage *rep)
{
    struct shard *s = r->shard;
    struct hf_rpc_req *req = r->req;
    uint64_t seen = hf_store_seen(s->store);
    struct hf_slice body = {NULL, 0};

    hf_metric_add(&s->conf.metrics->changes, 1);
    if (pack_into(req->arena, rep, &body))
        r->op.status = HF_E_NOMEM;
    if (req->session &&
        hf_meta_slot_store(s->meta, req->session, req->slot, req->sequence, r->op.status, body))
        batch_fatal(s, "cannot store a reply in its session slot");
    batch_event(s, &r->op.event);
    if (!r->op.lazy)
        batch_park(s, s->next_seq, req, r->op.status, body, r->op.reply_bulk);
    else if (seen)
        batch_park(s, seen, req, r->op.status, body, r->op.reply_bulk);
    else
        hf_rpc_reply_packed(req, r->op.status, body, &r->op.reply_bulk,
                            r->op.reply_bulk.len ? 1 : 0);
}

static void finish_read(struct running *r, const ProtobufCMessage *rep)
{
    struct shard *s = r->shard;
    uint64_t seen = r->op.barrier ? batch_newest(s) : hf_store_seen(s->store);
    struct hf_slice body = {NULL, 0};

    if (!seen) {
        hf_rpc_reply(r->req, r->op.status, rep, &r->op.reply_bulk, r->op.reply_bulk.len ? 1 : 0);
        return;
    }
    hf_metric_add(&s->conf.metrics->waits, 1);
    if (pack_into(r->req->arena, rep, &body))
        r->op.status = HF_E_NOMEM;
    batch_park(s, seen, r->req, r->op.status, body, r->op.reply_bulk);
}

/* The generated methods call this with their reply: synchronously, exactly once. */
static void on_reply(const ProtobufCMessage *rep, void *data)
{
    struct hf_meta_op *op = data;
    struct running *r = hf_container_of(op, struct running, op);

    HF_ASSERT(!r->replied);
    r->replied = true;
    hf_store_untracked(r->shard->store, false);
    if (batch_broken(r->shard)) { /* the answer may be made of half a change */
        hf_rpc_req_drop(r->req);
        return;
    }
    if (op->status)
        hf_metric_add(&r->shard->conf.metrics->errors, 1);
    if (hf_store_redo_bytes(r->shard->store) != r->redo_before)
        finish_change(r, rep);
    else
        finish_read(r, rep);
}

/* True: the call has been answered from its slot or refused. */
static bool answered_by_slot(struct shard *s, struct hf_rpc_req *req)
{
    enum hf_meta_slot what;
    struct hf_slice stored;
    int status, rc;

    rc = hf_meta_slot_check(s->meta, req->session, req->slot, req->sequence, &what, &status,
                            &stored);
    if (rc) {
        if (batch_broken(s))
            hf_rpc_req_drop(req);
        else
            hf_rpc_reply(req, rc, NULL, NULL, 0);
        return true;
    }
    if (what == HF_SLOT_RUN)
        return false;
    hf_metric_add(&s->conf.metrics->replays, 1);
    uint64_t seen = hf_store_seen(s->store);
    if (!seen) {
        hf_rpc_reply_packed(req, status, stored, NULL, 0);
        return true;
    }
    void *copy = hf_arena_dup(req->arena, stored.data, stored.len);
    if (!copy && stored.len)
        hf_rpc_reply(req, HF_E_NOMEM, NULL, NULL, 0);
    else
        batch_park(s, seen, req, status, hf_slice(copy, stored.len), hf_slice(NULL, 0));
    return true;
}

static void run_call(struct shard *s, struct hf_rpc_req *req)
{
    struct running r = {.shard = s, .req = req};
    ProtobufCService *impl = hf_meta_service(s->meta);

    hf_metric_add(&s->conf.metrics->calls, 1);
    hf_store_seen_reset(s->store);
    if (req->session && answered_by_slot(s, req))
        return;
    r.op = (struct hf_meta_op){
        .now_ns = shard_now_ns(s),
        .random = next_random(s),
        .may_grow = hf_store_may_grow(s->store, hf_loop_now_ns(s->conf.loop)) &&
                    hf_log_may_grow(s->conf.wal),
        .bulk = req->bulk,
        .arena = req->arena,
        .boot = s->boot,
        .session = req->session,
    };
    hf_metric_set(&s->conf.metrics->nospace, !r.op.may_grow);
    r.redo_before = hf_store_redo_bytes(s->store);
    batch_begin(s);
    impl->invoke(impl, req->method, req->msg, on_reply, &r.op);
    HF_ASSERT(r.replied);
    batch_end(s);
}

void shard_call(struct shard *s, struct hf_rpc_req *req)
{
    if (s->dead) {
        hf_rpc_req_drop(req);
        return;
    }
    if (s->checkpointing && !is_read_method(req->method)) {
        hf_list_push_back(&s->queue, &req->link);
        hf_metric_add(&s->conf.metrics->queued, 1);
        return;
    }
    run_call(s, req);
}

void shard_run_queue(struct shard *s)
{
    struct hf_list *n;

    while (!s->checkpointing && !s->dead && (n = hf_list_pop_front(&s->queue))) {
        hf_metric_add(&s->conf.metrics->queued, (uint64_t)-1);
        run_call(s, hf_container_of(n, struct hf_rpc_req, link));
    }
}

bool shard_change(struct shard *s, int (*fn)(struct shard *s, void *arg), void *arg)
{
    Hf__Event event = HF__EVENT__INIT;
    char text[128];
    int rc;

    if (s->checkpointing || s->dead)
        return false;
    event.op = HF__EVENT_OP__EV_SYSTEM;
    event.time_ns = shard_now_ns(s);
    batch_begin(s);
    rc = fn(s, arg);
    if (rc) {
        (void)snprintf(text, sizeof(text), "a change of its own failed: %s", hf_err_text(rc));
        batch_fatal(s, text);
    } else {
        batch_event(s, &event);
    }
    batch_end(s);
    return true;
}

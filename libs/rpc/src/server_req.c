/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, recycled with their arenas, and replies.
 */
#include "server_priv.h"

#include <stdlib.h>

#include "holdfast/err.h"

#define REQUEST_ARENA_MAX ((size_t)64 << 20) /* one request may unpack to this */
#define FREE_REQUESTS_MAX 256u
#define INPLACE_BODY      1024u
/* Where the bulk of an in-place reply lies in its frame. */
#define INPLACE_BULK (HF_WIRE_HEADER + HF_WIRE_ENTRY + INPLACE_BODY)

_Static_assert((INPLACE_BULK + 4) % 16 == 0, "bulk is 16-byte aligned");
/* NOLINTNEXTLINE(misc-redundant-expression): that both sides are the same is what it asserts */
_Static_assert(HF_RPC_BULK_MAX == HF_WIRE_BULK_MAX && HF_RPC_BODY_MAX == HF_WIRE_BODY_MAX &&
                   HF_RPC_BATCH_CALLS == HF_WIRE_CALLS_MAX,
               "one set of limits");

static struct request *request_of(struct hf_rpc_req *req)
{
    return hf_container_of(req, struct request, pub);
}

/* ---- requests ---- */

static struct request *request_new(struct hf_rpc_server *s)
{
    struct request *r = s->free_reqs;

    if (r) {
        s->free_reqs = r->next_free;
        s->nfree--;
        return r;
    }
    r = calloc(1, sizeof(*r));
    if (r)
        hf_arena_init(&r->arena, REQUEST_ARENA_MAX);
    return r;
}

static void request_recycle(struct hf_rpc_server *s, struct request *r)
{
    if (s->nfree >= FREE_REQUESTS_MAX) {
        hf_arena_fini(&r->arena);
        free(r);
        return;
    }
    hf_arena_reset(&r->arena);
    r->next_free = s->free_reqs;
    s->free_reqs = r;
    s->nfree++;
}

static void request_end(struct request *r)
{
    struct hf_rpc_server *s = r->server;

    srv_add(&s->stats.inflight, (uint64_t)-1);
    r->peer->inflight--;
    r->peer->active_ns = hf_loop_now_ns(s->loop);
    srv_add(&s->stats.request_bytes, 0 - (uint64_t)r->pub.bulk.len);
    hf_rpc_msg_unref(r->msg);
    hf_rpc_msg_unref(r->inplace);
    srv_peer_unref(r->peer);
    request_recycle(s, r);
    if (s->pending.n > 0 && !s->pumping)
        hf_loop_defer(s->loop, &s->turn_end);
}

/* An answer that needs no request. */
static void refuse(struct peer *p, uint64_t id, int status)
{
    struct hf_wire_entry e = {.flags = HF_WIRE_REPLY, .id = id, .status = status};
    const struct chan_body none = {0};

    if (p->gone)
        return;
    if (chan_add(&p->chan, &e, &none, NULL, 0) != 0) {
        srv_drop(p); /* better than to leave the caller waiting */
        return;
    }
    srv_add(&p->server->stats.calls_out, 1);
    srv_mark_dirty(p);
}

ProtobufCService *srv_find_service(const struct hf_rpc_server *s, uint32_t id)
{
    for (unsigned i = 0; i < s->nservices; i++) {
        if (s->services[i].id == id)
            return s->services[i].impl;
    }
    return NULL;
}

/* A peer has too many calls under way, or does not take its replies: it has to try again later. One
 * that goes on all the same is dropped. */
static bool too_much(struct peer *p)
{
    const struct hf_rpc_limits *l = &p->server->opts.limits;
    size_t held = chan_held_bytes(&p->chan);

    if (held > 2 * l->max_peer_reply_bytes) {
        srv_add(&p->server->stats.peers_stalled, 1);
        srv_drop(p);
        return true;
    }
    return p->inflight >= l->max_peer_inflight || held > l->max_peer_reply_bytes ||
           (p->server->stats.reply_bytes > l->max_reply_bytes && held > 0);
}

static void request_fill(struct request *r, const struct hf_wire_entry *e, struct hf_slice bulk)
{
    struct hf_rpc_server *s = r->server;

    r->id = e->id;
    r->pub.method = e->method;
    r->pub.bulk = bulk;
    r->pub.target = e->target;
    r->pub.session = e->session;
    r->pub.slot = e->slot;
    r->pub.sequence = e->sequence;
    r->pub.deadline_ns = srv_now_ns(s) + e->timeout_us * HF_NS_PER_US;
    r->pub.peer = r->peer->id;
    r->pub.arena = &r->arena;
    r->pub.user = NULL;
    hf_list_init(&r->pub.link);
}

void srv_dispatch(struct peer *p, struct hf_rpc_msg *m, const struct hf_wire_entry *e,
                  struct hf_slice body, struct hf_slice bulk)
{
    struct hf_rpc_server *s = p->server;
    ProtobufCService *impl = srv_find_service(s, e->service);
    ProtobufCAllocator alloc;
    struct request *r;

    if (e->flags != HF_WIRE_CALL)
        return; /* void, or a reply to a call that we do not make */
    srv_add(&s->stats.calls_in, 1);
    if (!impl || e->method >= impl->descriptor->n_methods) {
        refuse(p, e->id, HF_E_NOTSUPP);
        return;
    }
    if (too_much(p)) {
        srv_add(&s->stats.busy, 1);
        refuse(p, e->id, HF_E_BUSY);
        return;
    }
    r = request_new(s);
    if (!r) {
        refuse(p, e->id, HF_E_NOMEM);
        return;
    }
    alloc = chan_allocator(&r->arena);
    r->pub.msg = protobuf_c_message_unpack(impl->descriptor->methods[e->method].input, &alloc,
                                           body.len, body.data);
    if (!r->pub.msg) {
        request_recycle(s, r);
        refuse(p, e->id, HF_E_PROTO);
        return;
    }
    r->server = s;
    r->peer = p;
    r->msg = m;
    r->inplace = NULL;
    r->pub.service = impl->descriptor;
    request_fill(r, e, bulk);
    p->refs++;
    hf_rpc_msg_ref(m);
    srv_add(&s->stats.inflight, 1);
    p->inflight++;
    srv_add(&s->stats.request_bytes, bulk.len);
    if (s->opts.dispatch)
        s->opts.dispatch(s->opts.arg, &r->pub);
    else
        hf_rpc_req_invoke(&r->pub, impl);
}

/* ---- replies ---- */

/* Replies without what did not fit; the caller must not be left waiting. */
static void reply_error(struct request *r, int status)
{
    refuse(r->peer, r->id, status);
    request_end(r);
}

static void reply(struct request *r, int status, const struct chan_body *body,
                  const struct hf_slice *bulk, unsigned bulk_n)
{
    struct hf_wire_entry e = {.flags = HF_WIRE_REPLY, .id = r->id, .status = status};
    int rc;

    HF_ASSERT(status <= 0);
    if (!r->peer->gone) {
        rc = chan_add(&r->peer->chan, &e, body, bulk, bulk_n);
        if (rc) {
            reply_error(r, rc);
            return;
        }
        srv_add(&r->server->stats.calls_out, 1);
        srv_mark_dirty(r->peer);
    }
    request_end(r);
}

void hf_rpc_reply(struct hf_rpc_req *req, int status, const ProtobufCMessage *body,
                  const struct hf_slice *bulk, unsigned bulk_n)
{
    const struct chan_body b = {.msg = body};

    reply(request_of(req), status, &b, bulk, bulk_n);
}

void hf_rpc_reply_packed(struct hf_rpc_req *req, int status, struct hf_slice body,
                         const struct hf_slice *bulk, unsigned bulk_n)
{
    const struct chan_body b = {.packed = body};

    reply(request_of(req), status, &b, bulk, bulk_n);
}

void *hf_rpc_reply_bulk(struct hf_rpc_req *req, size_t len)
{
    struct request *r = request_of(req);
    struct hf_tr *tr = r->peer->chan.tr;

    HF_ASSERT(!r->inplace && len <= HF_RPC_BULK_MAX);
    if (r->peer->gone) /* a place to write to, all the same */
        r->inplace = hf_rpc_msg_plain(NULL, INPLACE_BULK + len);
    else
        r->inplace = tr->ops->msg_new(tr, INPLACE_BULK + len);
    r->inplace_len = len;
    return r->inplace ? r->inplace->data + INPLACE_BULK : NULL;
}

void hf_rpc_reply_inplace(struct hf_rpc_req *req, int status, const ProtobufCMessage *body,
                          size_t used)
{
    static const struct hf_wire_frame f = {.count = 1};
    struct request *r = request_of(req);
    struct hf_rpc_msg *m = r->inplace;
    size_t body_len = body ? protobuf_c_message_get_packed_size(body) : 0;
    struct hf_wire_entry e = {.flags = HF_WIRE_REPLY, .id = r->id, .status = status};
    uint8_t *p;

    HF_ASSERT(m && used <= r->inplace_len && status <= 0);
    if (body_len > INPLACE_BODY) {
        reply_error(r, HF_E_TOOBIG);
        return;
    }
    e.body_len = (uint32_t)body_len;
    e.pad = INPLACE_BODY - e.body_len;
    e.bulk_len = (uint32_t)used;
    m->len = INPLACE_BULK + used;
    p = m->data + HF_WIRE_HEADER;
    hf_wire_put_header(m->data, &f, m->len);
    hf_wire_put_entry(p, &e);
    if (body)
        protobuf_c_message_pack(body, p + HF_WIRE_ENTRY);
    memset(p + HF_WIRE_ENTRY + body_len, 0, e.pad);
    if (!r->peer->gone) {
        chan_add_msg(&r->peer->chan, m);
        r->inplace = NULL;
        srv_add(&r->server->stats.calls_out, 1);
        srv_mark_dirty(r->peer);
    }
    request_end(r);
}

void hf_rpc_req_drop(struct hf_rpc_req *req)
{
    request_end(request_of(req));
}

static void invoke_done(const ProtobufCMessage *rep, void *closure_data)
{
    hf_rpc_reply(closure_data, 0, rep, NULL, 0);
}

void hf_rpc_req_invoke(struct hf_rpc_req *req, ProtobufCService *impl)
{
    HF_ASSERT(impl->descriptor == req->service);
    impl->invoke(impl, req->method, req->msg, invoke_done, req);
}

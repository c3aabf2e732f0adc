/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving side.
 *
 * Received messages wait in `pending` and are taken entry by entry while fewer than max_inflight
 * calls are being served (and their bulk is below a limit); beyond that the transport is paused, so
 * that the peers' windows fill and they stop sending. A message counts as taken, and its sender is
 * told so, when its last entry has become a request.
 *
 * Replies are packed where the method gives them, gather per peer, and leave at the end of the
 * turn. A peer that does not take its replies for STALL_NS loses its connection, so that it cannot
 * hold memory for ever.
 *
 * A request outlives its connection: it holds a reference to its peer, and its reply goes nowhere.
 */
#include <stdlib.h>

#include "chan.h"
#include "holdfast/err.h"
#include "holdfast/map.h"

#define INFLIGHT_DEFAULT  4096u
#define INFLIGHT_BULK_MAX ((size_t)256 << 20)
#define REQUEST_ARENA_MAX ((size_t)64 << 20) /* one request may unpack to this */
#define FREE_REQUESTS_MAX 256u
#define SERVICES_MAX      16u
#define LISTENERS_MAX     8u
#define URL_SIZE          256u
#define STALL_NS          (30 * HF_NS_PER_SEC)
#define INPLACE_BODY      1024u
/* Where the bulk of an in-place reply lies in its frame. */
#define INPLACE_BULK (HF_WIRE_HEADER + HF_WIRE_ENTRY + INPLACE_BODY)

_Static_assert((INPLACE_BULK + 4) % 16 == 0, "bulk is 16-byte aligned");
/* NOLINTNEXTLINE(misc-redundant-expression): that both sides are the same is what it asserts */
_Static_assert(HF_RPC_BULK_MAX == HF_WIRE_BULK_MAX && HF_RPC_BODY_MAX == HF_WIRE_BODY_MAX &&
                   HF_RPC_BATCH_CALLS == HF_WIRE_CALLS_MAX,
               "one set of limits");

struct peer {
    struct chan chan;
    struct hf_rpc_server *server;
    uint64_t id;
    size_t refs; /* requests and pending messages, and one while connected */
    bool gone;
    struct hf_list dirty;    /* of server->dirty: has something to send */
    struct hf_list link;     /* of server->peers */
    uint32_t stall_acked;    /* what it had acknowledged when the stall began */
    uint64_t stall_since_ns; /* 0: it keeps up */
};

struct request {
    struct hf_rpc_req pub;
    struct hf_rpc_server *server;
    struct peer *peer;
    uint64_t id;
    struct hf_rpc_msg *msg;     /* what pub.bulk points into */
    struct hf_rpc_msg *inplace; /* from hf_rpc_reply_bulk */
    size_t inplace_len;
    struct hf_arena arena;
    struct request *next_free;
};

struct service {
    uint32_t id;
    ProtobufCService *impl;
};

struct hf_rpc_server {
    struct hf_loop *loop;
    struct hf_tr *tr[HF_TR_KINDS]; /* opened by the first URL of the kind */
    bool stopped;
    struct hf_rpc_server_opts opts;
    struct service services[SERVICES_MAX];
    unsigned nservices;
    char urls[LISTENERS_MAX][URL_SIZE];
    unsigned nurls;

    struct hf_map by_id;  /* connected peers */
    struct hf_list peers; /* the same */
    struct hf_list dirty;
    struct hf_msgq pending;
    struct hf_wire_reader reader; /* of the first pending message */
    bool paused, pumping;
    size_t inflight, inflight_bulk;
    struct request *free_reqs;
    size_t nfree;
    struct hf_task turn_end;
    struct hf_timer stall_timer;
    struct hf_rpc_stats stats;
};

static struct request *request_of(struct hf_rpc_req *req)
{
    return hf_container_of(req, struct request, pub);
}

static uint64_t now_ns(const struct hf_rpc_server *s)
{
    return hf_env_mono_ns(hf_loop_env(s->loop));
}

/* ---- peers ---- */

static void peer_unref(struct peer *p)
{
    if (--p->refs > 0)
        return;
    chan_fini(&p->chan);
    free(p);
}

static void peer_gone(struct peer *p)
{
    struct hf_rpc_server *s = p->server;

    p->gone = true;
    hf_list_remove(&p->dirty);
    hf_list_remove(&p->link);
    (void)hf_map_del(&s->by_id, p->id);
    s->stats.peers--;
    peer_unref(p);
}

static void mark_dirty(struct peer *p)
{
    if (hf_list_empty(&p->dirty))
        hf_list_push_back(&p->server->dirty, &p->dirty);
    hf_loop_defer(p->server->loop, &p->server->turn_end);
}

static void stall_check(struct peer *p)
{
    struct hf_rpc_server *s = p->server;

    if (!chan_pending(&p->chan) || p->chan.acked != p->stall_acked)
        p->stall_since_ns = 0;
    if (!chan_pending(&p->chan) || p->stall_since_ns)
        return;
    p->stall_acked = p->chan.acked;
    p->stall_since_ns = now_ns(s);
    if (!hf_timer_armed(&s->stall_timer))
        hf_timer_set(&s->stall_timer, STALL_NS);
}

static void on_stall_timer(struct hf_timer *timer)
{
    struct hf_rpc_server *s = hf_container_of(timer, struct hf_rpc_server, stall_timer);
    uint64_t now = now_ns(s);
    bool again = false;

    HF_LIST_FOREACH(it, &s->peers)
    {
        struct peer *p = hf_container_of(it, struct peer, link);

        stall_check(p);
        if (p->stall_since_ns && now - p->stall_since_ns >= STALL_NS)
            p->chan.tr->ops->drop(p->chan.tr, p->id);
        again = again || p->stall_since_ns;
    }
    if (again && !hf_timer_armed(timer))
        hf_timer_set(timer, STALL_NS / 4);
}

static void peer_flush(struct peer *p)
{
    struct hf_rpc_server *s = p->server;
    struct hf_rpc_msg *m;

    while ((m = chan_next(&p->chan)) != NULL) {
        s->stats.msgs_out++;
        s->stats.bytes_out += m->len;
        chan_send(&p->chan, p->id, m);
    }
    chan_tell(&p->chan, p->id);
    stall_check(p);
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

    s->inflight--;
    s->inflight_bulk -= r->pub.bulk.len;
    hf_rpc_msg_unref(r->msg);
    hf_rpc_msg_unref(r->inplace);
    peer_unref(r->peer);
    request_recycle(s, r);
    if (s->pending.n > 0 && !s->pumping)
        hf_loop_defer(s->loop, &s->turn_end);
}

/* An answer that needs no request. */
static void refuse(struct peer *p, uint64_t id, int status)
{
    struct hf_wire_entry e = {.flags = HF_WIRE_REPLY, .id = id, .status = status};
    const struct chan_body none = {0};

    if (chan_add(&p->chan, &e, &none, NULL, 0) != 0) {
        p->chan.tr->ops->drop(p->chan.tr, p->id); /* better than to leave the caller waiting */
        return;
    }
    p->server->stats.calls_out++;
    mark_dirty(p);
}

static ProtobufCService *find_service(const struct hf_rpc_server *s, uint32_t id)
{
    for (unsigned i = 0; i < s->nservices; i++) {
        if (s->services[i].id == id)
            return s->services[i].impl;
    }
    return NULL;
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
    r->pub.deadline_ns = now_ns(s) + e->timeout_us * HF_NS_PER_US;
    r->pub.peer = r->peer->id;
    r->pub.arena = &r->arena;
    r->pub.user = NULL;
    hf_list_init(&r->pub.link);
}

static void dispatch(struct peer *p, struct hf_rpc_msg *m, const struct hf_wire_entry *e,
                     struct hf_slice body, struct hf_slice bulk)
{
    struct hf_rpc_server *s = p->server;
    ProtobufCService *impl = find_service(s, e->service);
    ProtobufCAllocator alloc;
    struct request *r;

    if (e->flags != HF_WIRE_CALL)
        return; /* void, or a reply to a call that we do not make */
    s->stats.calls_in++;
    if (!impl || e->method >= impl->descriptor->n_methods) {
        refuse(p, e->id, HF_E_NOTSUPP);
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
    s->inflight++;
    s->inflight_bulk += bulk.len;
    if (s->opts.dispatch)
        s->opts.dispatch(s->opts.arg, &r->pub);
    else
        hf_rpc_req_invoke(&r->pub, impl);
}

/* Dispatches entries of the first pending message; false if it must wait for room. */
static bool take_entries(struct hf_rpc_server *s, struct hf_rpc_msg *m)
{
    struct peer *p = hf_map_get(&s->by_id, m->peer);
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    bool done = true;

    if (!p)
        return true;
    p->refs++; /* a method may stop the server */
    while (!p->gone && s->reader.left > 0) {
        if (s->inflight >= s->opts.max_inflight || s->inflight_bulk >= INFLIGHT_BULK_MAX) {
            done = false;
            break;
        }
        (void)hf_wire_next(&s->reader, &e, &body, &bulk);
        dispatch(p, m, &e, body, bulk);
    }
    if (done && !p->gone) {
        chan_took(&p->chan);
        mark_dirty(p);
    }
    peer_unref(p);
    return done;
}

/* Turns pending entries into requests as far as there is room. */
static void pump(struct hf_rpc_server *s)
{
    s->pumping = true;
    while (s->pending.head && take_entries(s, s->pending.head)) {
        hf_rpc_msg_unref(hf_msgq_pop(&s->pending));
        if (s->pending.head)
            s->reader = chan_entries(s->pending.head);
    }
    s->pumping = false;
    if (s->paused == (s->pending.n > 0))
        return;
    s->paused = !s->paused;
    for (unsigned i = 0; i < HF_TR_KINDS; i++) {
        if (s->tr[i])
            s->tr[i]->ops->pause(s->tr[i], s->paused);
    }
}

static void on_turn_end(struct hf_task *task)
{
    struct hf_rpc_server *s = hf_container_of(task, struct hf_rpc_server, turn_end);
    struct hf_list *it;

    if (s->stopped)
        return;
    pump(s);
    while ((it = hf_list_pop_front(&s->dirty)) != NULL)
        peer_flush(hf_container_of(it, struct peer, dirty));
}

/* ---- replies ---- */

/* Replies without what did not fit; the caller must not be left waiting. */
static void reply_error(struct request *r, int status)
{
    if (!r->peer->gone)
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
        r->server->stats.calls_out++;
        mark_dirty(r->peer);
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
        r->server->stats.calls_out++;
        mark_dirty(r->peer);
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

/* ---- events ---- */

static void on_up(void *arg, struct hf_tr *t, uint64_t id)
{
    struct hf_rpc_server *s = arg;
    struct peer *p = calloc(1, sizeof(*p));

    if (!p || hf_map_put(&s->by_id, id, p) != 0) {
        free(p);
        t->ops->drop(t, id);
        return;
    }
    chan_init(&p->chan, t);
    p->server = s;
    p->id = id;
    p->refs = 1;
    hf_list_init(&p->dirty);
    hf_list_push_back(&s->peers, &p->link);
    s->stats.peers++;
}

static void on_down(void *arg, uint64_t id)
{
    struct hf_rpc_server *s = arg;
    struct peer *p = hf_map_get(&s->by_id, id);

    if (p)
        peer_gone(p);
}

static void on_recv(void *arg, uint64_t id, struct hf_rpc_msg *m)
{
    struct hf_rpc_server *s = arg;
    struct peer *p = hf_map_get(&s->by_id, id);
    struct hf_wire_reader rd;
    struct hf_wire_frame f;
    int rc;

    s->stats.msgs_in++;
    s->stats.bytes_in += m->len;
    rc = hf_wire_open(m->data, m->len, &f, &rd);
    if (!p)
        goto out;
    rc = rc ? rc : chan_check(&p->chan, &f);
    if (rc < 0) {
        s->stats.bad_frames++;
        p->chan.tr->ops->drop(p->chan.tr, id);
        goto out;
    }
    if (chan_pending(&p->chan))
        mark_dirty(p); /* the window may have opened */
    if (rc == 0)
        goto out;
    m->peer = id;
    if (!s->pending.head)
        s->reader = rd;
    hf_msgq_push(&s->pending, m);
    pump(s);
    return;
out:
    hf_rpc_msg_unref(m);
}

/* ---- life ---- */

static const struct hf_tr_events server_events = {on_up, on_down, on_recv};

int hf_rpc_server_new(struct hf_loop *loop, const struct hf_rpc_server_opts *opts,
                      struct hf_rpc_server **ret)
{
    struct hf_rpc_server *s = calloc(1, sizeof(*s));

    if (!s)
        return HF_E_NOMEM;
    s->loop = loop;
    if (opts)
        s->opts = *opts;
    if (s->opts.max_inflight == 0)
        s->opts.max_inflight = INFLIGHT_DEFAULT;
    hf_list_init(&s->peers);
    hf_list_init(&s->dirty);
    s->turn_end.fn = on_turn_end;
    hf_timer_init(&s->stall_timer, loop, on_stall_timer);
    *ret = s;
    return 0;
}

int hf_rpc_server_add(struct hf_rpc_server *s, ProtobufCService *impl)
{
    uint32_t id = hf_wire_service_id(impl->descriptor->name);

    if (find_service(s, id))
        return HF_E_EXIST;
    if (s->nservices == SERVICES_MAX)
        return HF_E_TOOBIG;
    s->services[s->nservices++] = (struct service){id, impl};
    return 0;
}

int hf_rpc_server_listen(struct hf_rpc_server *s, const char *url)
{
    int rc = hf_rpc_url_check(url, hf_env_is_sim(hf_loop_env(s->loop)), s->opts.insecure);
    struct hf_tr **tr;

    if (rc)
        return rc;
    if (s->stopped)
        return HF_E_CLOSED;
    if (s->nurls == LISTENERS_MAX)
        return HF_E_TOOBIG;
    tr = &s->tr[hf_tr_kind(url)];
    if (!*tr)
        rc = hf_tr_open(hf_tr_kind(url), s->loop, true, &server_events, s, tr);
    if (rc == 0)
        rc = (*tr)->ops->listen(*tr, url, s->urls[s->nurls], URL_SIZE);
    if (rc)
        return rc;
    s->nurls++;
    return 0;
}

const char *hf_rpc_server_url(const struct hf_rpc_server *s, unsigned nth)
{
    return nth < s->nurls ? s->urls[nth] : NULL;
}

void hf_rpc_server_stop(struct hf_rpc_server *s)
{
    struct hf_list *it;

    if (s->stopped)
        return;
    s->stopped = true;
    for (unsigned i = 0; i < HF_TR_KINDS; i++) {
        if (s->tr[i])
            s->tr[i]->ops->close(s->tr[i]);
        s->tr[i] = NULL;
    }
    hf_timer_cancel(&s->stall_timer);
    hf_loop_cancel(s->loop, &s->turn_end);
    if (!s->pumping)
        hf_msgq_clear(&s->pending);
    while ((it = hf_list_pop_front(&s->peers)) != NULL)
        peer_gone(hf_container_of(it, struct peer, link));
}

void hf_rpc_server_free(struct hf_rpc_server *s)
{
    if (!s)
        return;
    hf_rpc_server_stop(s);
    HF_ASSERT(s->inflight == 0);
    while (s->free_reqs) {
        struct request *r = s->free_reqs;

        s->free_reqs = r->next_free;
        hf_arena_fini(&r->arena);
        free(r);
    }
    hf_map_fini(&s->by_id);
    free(s);
}

void hf_rpc_server_stats(const struct hf_rpc_server *s, struct hf_rpc_stats *ret)
{
    *ret = s->stats;
    ret->inflight = s->inflight;
}

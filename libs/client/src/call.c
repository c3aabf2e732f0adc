/* SPDX-License-Identifier: Apache-2.0
 *
 * One metadata call from the stub to the closure.
 *
 *   stub ─> route ─┬─> in flight ──> finish
 *                  ├─> waiting: no map yet, or no free session slot; its timer is the deadline
 *                  └─> back-off: its timer is the next try; in flight again, until the deadline
 *
 * A call is always in exactly one list (p.link), so that a shard that moves and a client that
 * closes find every call. The hot path of a read allocates nothing and arms no timer: the deadline
 * is rpc's.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

static void call_send(struct hf_client_call *call, struct shard *s, const ProtobufCMessage *input);
static void route(struct hf_client_call *call, const ProtobufCMessage *input);

static bool is_waiting(const struct hf_client_call *call)
{
    return call->p.state == CALL_WAITING || call->p.state == CALL_BACKOFF;
}

static void unpark(struct hf_client_call *call)
{
    if (is_waiting(call)) {
        hf_timer_cancel(&call->p.timer);
        call->p.client->stats.waiting--;
    }
    hf_list_remove(&call->p.link);
}

static enum slot_fate fate_of(const struct hf_client_call *call, int status)
{
    bool answered = call->p.state == CALL_INFLIGHT && call->p.rpc.msg;

    if (!answered && status != HF_E_TIMEDOUT && status != HF_E_CLOSED)
        return call->p.doubt ? SLOT_DOUBT : SLOT_NOT_RUN; /* never left this process */
    if (call->p.state != CALL_INFLIGHT)
        return call->p.doubt ? SLOT_DOUBT : SLOT_NOT_RUN;
    switch (status) {
    case HF_E_TIMEDOUT:
    case HF_E_CLOSED:
    case HF_E_CONNRESET:
    case HF_E_CANCELED:
    case HF_E_SEQUENCE:
    case HF_E_PROTO:
        return SLOT_DOUBT;
    default:
        return SLOT_RAN;
    }
}

void call_finish(struct hf_client_call *call, const ProtobufCMessage *body, int status)
{
    struct hf_client *c = call->p.client;
    struct hf_rpc_call *rpc = &call->p.rpc;
    enum slot_fate fate = fate_of(call, status);

    unpark(call);
    call->status = status;
    if (call->p.state == CALL_INFLIGHT) {
        call->reply_bulk = rpc->reply_bulk;
        call->msg = rpc->msg;
    } else {
        call->reply_bulk = (struct hf_slice){NULL, 0};
        call->msg = NULL;
    }
    call->p.state = CALL_REFUSED;
    if (call->p.packed && call->p.packed != call->p.inbuf)
        free(call->p.packed);
    call->p.packed = NULL;
    if (call->p.slot)
        session_release(c->shards[ino_shard(call->ino)], call, fate);
    call->p.closure(body, call);
}

/* Ends a call that was not accepted, in a later turn. */
static void refuse(struct hf_client_call *call, int status)
{
    call->p.state = CALL_REFUSED;
    call->status = status;
    hf_list_push_back(&call->p.client->refused, &call->p.link);
    refuse_later(call->p.client);
}

static void on_timer(struct hf_timer *t)
{
    struct hf_client_call *call = hf_container_of(t, struct hf_client_call, p.timer);

    if (hf_loop_now_ns(call->p.client->loop) >= call->p.deadline_ns) {
        call_finish(call, NULL, HF_E_TIMEDOUT);
        return;
    }
    call_resume(call);
}

static void park(struct hf_client_call *call, struct hf_list *list, enum call_state state,
                 uint64_t delay_ns)
{
    struct hf_client *c = call->p.client;
    uint64_t now = hf_loop_now_ns(c->loop);
    uint64_t left = call->p.deadline_ns > now ? call->p.deadline_ns - now : 0;

    call->p.state = (uint8_t)state;
    c->stats.waiting++;
    hf_list_push_back(list, &call->p.link);
    hf_timer_init(&call->p.timer, c->loop, on_timer);
    hf_timer_set(&call->p.timer, delay_ns < left ? delay_ns : left);
}

/* A new call that cannot go yet; bounded. */
static void park_new(struct hf_client_call *call, struct hf_list *list)
{
    if (call->p.tries == 0 && call->p.client->stats.waiting >= call->p.client->opts.queue_max) {
        refuse(call, HF_E_JUKEBOX);
        return;
    }
    park(call, list, CALL_WAITING, ~0ull);
}

static void back_off(struct hf_client_call *call)
{
    struct hf_client *c = call->p.client;

    call->p.tries++;
    c->stats.meta_retries++;
    if (c->closing)
        refuse(call, HF_E_CLOSED);
    else
        park(call, &c->backoff, CALL_BACKOFF, backoff_ns(c, call->p.tries));
}

void call_resume(struct hf_client_call *call)
{
    unpark(call);
    call_route(call);
}

/* Routes a call whose request is not at hand as a message. */
void call_route(struct hf_client_call *call)
{
    const ProtobufCMessageDescriptor *d = call->p.service->methods[call->p.method].input;
    ProtobufCMessage *m;

    if (call->p.req) {
        route(call, call->p.req);
        return;
    }
    m = protobuf_c_message_unpack(d, NULL, call->p.packed_len, call->p.packed);
    if (!m) {
        back_off(call); /* we packed it: only memory can be missing */
        return;
    }
    route(call, m);
    protobuf_c_message_free_unpacked(m, NULL);
}

static void route(struct hf_client_call *call, const ProtobufCMessage *input)
{
    struct hf_client *c = call->p.client;
    struct shard *s;

    if (c->closing) {
        refuse(call, HF_E_CLOSED);
        return;
    }
    if (!c->map) {
        park_new(call, &c->nomap);
        return;
    }
    if (ino_shard(call->ino) >= c->nshards) {
        refuse(call, HF_E_STALE); /* shards are never renumbered: no such object ever was */
        return;
    }
    s = map_shard(c, call->ino);
    if (!s) {
        hf_client_map_refresh(c);
        back_off(call);
        return;
    }
    /* Those that wait go first: nobody overtakes, so nobody starves. */
    if (call->change && !call->p.slot) {
        if (!session_take(s, call)) {
            park_new(call, &s->waiting);
            session_wake(s);
            return;
        }
    }
    call_send(call, s, input);
}

/* NOSESSION and SEQUENCE: the slot is of no use any more. What certainly did not run starts again.
 */
static void slot_refused(struct hf_client_call *call, struct shard *s, int status)
{
    const struct slot *slot = call->p.slot;

    if (status == HF_E_NOSESSION)
        session_lost(s, slot->session);
    if (call->p.doubt) {
        call_finish(call, NULL, HF_E_TIMEDOUT);
        return;
    }
    hf_list_remove(&call->p.link);
    session_release(s, call, SLOT_DOUBT);
    back_off(call);
}

static void on_reply(const ProtobufCMessage *body, void *arg)
{
    struct hf_rpc_call *rpc = arg;
    struct hf_client_call *call = hf_container_of(rpc, struct hf_client_call, p.rpc);
    struct hf_client *c = call->p.client;

    switch (rpc->status) {
    case HF_E_CONNRESET:
    case HF_E_CANCELED:
        call->p.doubt = true;
        break;
    case HF_E_NOTLEADER:
        hf_client_map_refresh(c);
        break;
    case HF_E_CONNREFUSED:
    case HF_E_BUSY:
        break;
    case HF_E_NOSESSION:
    case HF_E_SEQUENCE:
        if (call->p.slot) {
            slot_refused(call, c->shards[rpc->target], rpc->status);
            return;
        }
        call_finish(call, body, rpc->status);
        return;
    default:
        call_finish(call, body, rpc->status);
        return;
    }
    hf_list_remove(&call->p.link);
    back_off(call);
}

static void call_send(struct hf_client_call *call, struct shard *s, const ProtobufCMessage *input)
{
    struct hf_client *c = call->p.client;
    struct hf_rpc_call *rpc = &call->p.rpc;
    const struct slot *slot = call->p.slot;
    uint64_t now = hf_loop_now_ns(c->loop);

    if (now >= call->p.deadline_ns) {
        call->p.tries++;
        park(call, &c->backoff, CALL_BACKOFF, 0);
        return;
    }
    memset(rpc, 0, sizeof(*rpc));
    rpc->timeout_ns = call->p.deadline_ns - now;
    rpc->target = s->id;
    if (slot) {
        rpc->session = slot->session->id;
        rpc->slot = slot->index;
        rpc->sequence = slot->sequence;
    }
    for (unsigned i = 0; i < call->bulk_n; i++)
        rpc->bulk[i] = call->bulk[i];
    rpc->bulk_n = call->bulk_n;
    call->p.state = CALL_INFLIGHT;
    hf_list_push_back(&s->inflight, &call->p.link);
    s->server->service->invoke(s->server->service, call->p.method, input, on_reply, rpc);
}

/* Keeps the request for retries, unless the caller does. */
static int keep_request(struct hf_client_call *call, const ProtobufCMessage *input)
{
    size_t n;

    call->p.packed = NULL;
    call->p.packed_len = 0;
    call->p.req = call->req_stays ? input : NULL;
    if (call->req_stays)
        return 0;
    n = protobuf_c_message_get_packed_size(input);
    if (n > HF_RPC_BODY_MAX)
        return HF_E_TOOBIG;
    call->p.packed = n <= sizeof(call->p.inbuf) ? call->p.inbuf : malloc(n);
    if (!call->p.packed)
        return HF_E_NOMEM;
    call->p.packed_len = protobuf_c_message_pack(input, call->p.packed);
    return 0;
}

static void meta_invoke(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
                        ProtobufCClosure closure, void *arg)
{
    struct hf_client *c = hf_container_of(service, struct hf_client, service);
    struct hf_client_call *call = arg;
    int rc;

    HF_ASSERT(call->bulk_n <= HF_RPC_BULK_IOV);
    c->stats.meta_calls++;
    call->status = 0;
    call->msg = NULL;
    call->reply_bulk = (struct hf_slice){NULL, 0};
    call->p.client = c;
    call->p.service = service->descriptor;
    call->p.method = method;
    call->p.closure = closure;
    call->p.deadline_ns = call->deadline_ns
                              ? call->deadline_ns
                              : hf_loop_now_ns(c->loop) + c->opts.timeout_ms * HF_NS_PER_MS;
    call->p.slot = NULL;
    call->p.tries = 0;
    call->p.doubt = false;
    call->p.state = CALL_REFUSED;
    hf_list_init(&call->p.link);
    rc = keep_request(call, input);
    if (rc)
        refuse(call, rc);
    else
        route(call, input);
}

static void service_destroy(ProtobufCService *service)
{
    (void)service; /* lives in the client */
}

void call_service_init(struct hf_client *c)
{
    c->service = (ProtobufCService){
        .descriptor = &hf__meta__descriptor,
        .invoke = meta_invoke,
        .destroy = service_destroy,
    };
}

ProtobufCService *hf_client_meta(struct hf_client *c)
{
    return &c->service;
}

void call_shard_moved(struct shard *s)
{
    struct hf_list moved;

    /* Canceled calls may be sent to the new server at once: do not meet them again. */
    hf_list_init(&moved);
    while (!hf_list_empty(&s->inflight))
        hf_list_push_back(&moved, hf_list_pop_front(&s->inflight));
    while (!hf_list_empty(&moved)) {
        struct hf_client_call *call =
            hf_container_of(hf_list_pop_front(&moved), struct hf_client_call, p.link);

        hf_rpc_cancel(&call->p.rpc);
    }
    if (s->opening)
        hf_rpc_cancel(&s->open_rpc);
}

static bool close_list(struct hf_list *list)
{
    bool any = false;

    while (!hf_list_empty(list)) {
        call_finish(hf_container_of(list->next, struct hf_client_call, p.link), NULL, HF_E_CLOSED);
        any = true;
    }
    return any;
}

void call_drain(struct hf_client *c)
{
    close_list(&c->nomap);
    close_list(&c->backoff);
    close_list(&c->refused);
    for (uint32_t i = 0; i < c->nshards; i++)
        if (c->shards[i])
            close_list(&c->shards[i]->waiting);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The calling side.
 *
 * A call is packed in the stub, straight into the entry that will travel, and queued in the
 * channel; at the end of the turn what has gathered leaves as messages, as far as the window
 * allows. A call that ends before it is sent (deadline, cancel) stays in its packed message; its
 * entry is marked void when the message leaves, so that the server does not run what nobody waits
 * for.
 *
 * Call ids are slot numbers of a table with a generation in the upper half, so that a reply finds
 * its call without a search and a late one finds nobody. Deadlines are a wheel of 1 ms slots: a
 * call sits in the slot of its deadline modulo one turn of the wheel, and is looked at when the
 * hand passes; setting and clearing cost O(1) whatever the mix of timeouts, and the timer sleeps
 * until the next slot that holds anything.
 *
 * A closure may do anything, including to free the client: `busy` defers that to the end of the
 * library's own loop over the calls.
 */
#include <stdlib.h>

#include "chan.h"
#include "holdfast/err.h"

#define OUTSTANDING_DEFAULT 8192u
#define TIMEOUT_DEFAULT_NS  (30 * HF_NS_PER_SEC)
#define QUEUED_BYTES_MAX    ((size_t)256 << 20) /* packed and not yet sent */
#define WHEEL               1024u
#define TICK_NS             HF_NS_PER_MS

struct call_slot {
    struct hf_rpc_call *call; /* NULL: free */
    uint32_t gen;
    uint32_t next_free;
};

struct client_service {
    ProtobufCService base;
    struct hf_rpc_client *client;
    uint32_t id;
    struct client_service *next;
};

struct hf_rpc_client {
    struct hf_loop *loop;
    struct hf_tr *tr;
    struct chan chan;
    struct client_service *services;
    uint64_t peer; /* 0: not connected */
    uint64_t epoch;

    struct call_slot *slots;
    uint32_t nslots, free_slot; /* free_slot: ~0 = none */
    size_t outstanding, max_outstanding;
    struct hf_list failed; /* calls refused in the stub, completed at the end of the turn */

    struct hf_list wheel[WHEEL];
    uint64_t wheel_used[WHEEL / 64]; /* which slots are not empty, at least */
    uint64_t hand;                   /* the tick up to which the wheel has been looked at */
    struct hf_timer timer;
    struct hf_task flush_task;
    unsigned busy;
    bool dead;
};

/* ---- deadlines ---- */

static uint64_t tick_of(uint64_t ns)
{
    return (ns + TICK_NS - 1) / TICK_NS;
}

/* Ticks from the hand to the next slot that may hold a call; 0: none. */
static uint64_t wheel_next(const struct hf_rpc_client *c)
{
    for (uint64_t d = 1; d <= WHEEL;) {
        uint64_t slot = (c->hand + d) % WHEEL;
        uint64_t word = c->wheel_used[slot / 64] >> (slot % 64);

        if (word)
            return d + (uint64_t)__builtin_ctzll(word);
        d += 64 - slot % 64;
    }
    return 0;
}

static void wheel_arm(struct hf_rpc_client *c, uint64_t at_ns)
{
    uint64_t now = hf_env_mono_ns(hf_loop_env(c->loop));

    if (!hf_timer_armed(&c->timer) || c->timer.at_ns > at_ns)
        hf_timer_set(&c->timer, at_ns > now ? at_ns - now : 0);
}

static void wheel_add(struct hf_rpc_client *c, struct hf_rpc_call *call, uint64_t now)
{
    uint64_t tick = tick_of(call->p.deadline_ns), ahead;
    uint64_t slot;

    if (c->outstanding == 0)
        c->hand = now / TICK_NS;
    if (tick <= c->hand)
        tick = c->hand + 1;
    slot = tick % WHEEL;
    hf_list_push_back(&c->wheel[slot], &call->p.link);
    c->wheel_used[slot / 64] |= 1ull << (slot % 64);
    /* Seen first when the hand comes to the slot, a turn or more early for a far deadline. */
    ahead = (slot - c->hand) % WHEEL;
    wheel_arm(c, (c->hand + (ahead ? ahead : WHEEL)) * TICK_NS);
}

/* ---- completing ---- */

static struct hf_rpc_call *call_of(const struct hf_rpc_client *c, uint64_t id)
{
    uint32_t i = (uint32_t)id;

    return i < c->nslots && c->slots[i].gen == id >> 32 ? c->slots[i].call : NULL;
}

static void client_destroy(struct hf_rpc_client *c)
{
    for (struct client_service *s = c->services, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    chan_fini(&c->chan);
    free(c->slots);
    free(c);
}

static void complete_failed(struct hf_rpc_client *c);

/* The counterpart of busy++. */
static void leave(struct hf_rpc_client *c)
{
    if (c->busy == 1 && c->dead)
        complete_failed(c); /* what closures have still tried to call */
    if (--c->busy == 0 && c->dead)
        client_destroy(c);
}

static void finish(struct hf_rpc_call *call, int status, const ProtobufCMessage *rep)
{
    struct hf_loop *waiter = call->p.waiter;

    call->status = status;
    call->p.client = NULL;
    call->p.done = true;
    call->p.closure(rep, call);
    if (waiter && !hf_env_is_sim(hf_loop_env(waiter)))
        hf_loop_stop(waiter); /* hf_rpc_wait keeps the call alive */
}

/* Takes the call out of table and wheel and tells the caller. */
static void complete(struct hf_rpc_client *c, struct hf_rpc_call *call, int status,
                     const ProtobufCMessage *rep)
{
    uint32_t i = (uint32_t)call->p.id;

    hf_list_remove(&call->p.link);
    if (call->p.id) {
        c->slots[i].call = NULL;
        c->slots[i].gen = c->slots[i].gen == UINT32_MAX ? 1 : c->slots[i].gen + 1;
        c->slots[i].next_free = c->free_slot;
        c->free_slot = i;
        c->outstanding--;
    }
    finish(call, status, rep);
}

/* The caller has the client busy. */
static void complete_slots(struct hf_rpc_client *c, int status, bool only_sent)
{
    for (uint32_t i = 0; i < c->nslots && (!c->dead || status == HF_E_CLOSED); i++) {
        struct hf_rpc_call *call = c->slots[i].call;

        if (call && (call->p.sent || !only_sent))
            complete(c, call, status, NULL);
    }
}

static void complete_all(struct hf_rpc_client *c, int status, bool only_sent)
{
    c->busy++;
    complete_slots(c, status, only_sent);
    leave(c);
}

static void complete_failed(struct hf_rpc_client *c)
{
    struct hf_list *it;

    while ((it = hf_list_pop_front(&c->failed)) != NULL) {
        struct hf_rpc_call *call = hf_container_of(it, struct hf_rpc_call, p.link);

        complete(c, call, call->status, NULL);
    }
}

/* Looks at one slot; what is not due yet stays for the next time around. */
static void wheel_slot(struct hf_rpc_client *c, uint64_t slot, uint64_t now)
{
    struct hf_list due;

    hf_list_init(&due);
    HF_LIST_FOREACH_SAFE(it, tmp, &c->wheel[slot])
    {
        struct hf_rpc_call *call = hf_container_of(it, struct hf_rpc_call, p.link);

        if (call->p.deadline_ns <= now) {
            hf_list_remove(it);
            hf_list_push_back(&due, it);
        }
    }
    if (hf_list_empty(&c->wheel[slot]))
        c->wheel_used[slot / 64] &= ~(1ull << (slot % 64));
    /* Closures may cancel others that are due: complete() and cancel take them off this list. */
    while (!hf_list_empty(&due))
        complete(c, hf_container_of(due.next, struct hf_rpc_call, p.link), HF_E_TIMEDOUT, NULL);
}

static void on_timer(struct hf_timer *timer)
{
    struct hf_rpc_client *c = hf_container_of(timer, struct hf_rpc_client, timer);
    uint64_t now = hf_env_mono_ns(hf_loop_env(c->loop)), next;

    c->busy++;
    while (!c->dead && (next = wheel_next(c)) != 0) {
        if (c->hand + next > now / TICK_NS) {
            wheel_arm(c, (c->hand + next) * TICK_NS);
            break;
        }
        c->hand += next;
        wheel_slot(c, c->hand % WHEEL, now);
    }
    leave(c);
}

/* ---- sending ---- */

/* Last touch before the message leaves: what is left of each call's time, and who is gone. */
static void stamp(struct hf_rpc_client *c, struct hf_rpc_msg *m)
{
    struct hf_wire_reader rd = chan_entries(m);
    uint64_t now = hf_env_mono_ns(hf_loop_env(c->loop));
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    uint8_t *at = m->data + HF_WIRE_HEADER;

    for (; hf_wire_next(&rd, &e, &body, &bulk); at = m->data + ((size_t)(rd.pos - m->data))) {
        struct hf_rpc_call *call = call_of(c, e.id);

        if (call) {
            uint64_t left = call->p.deadline_ns > now ? call->p.deadline_ns - now : 0;

            call->p.sent = true;
            left /= HF_NS_PER_US;
            e.timeout_us = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
        } else {
            e.flags |= HF_WIRE_VOID;
        }
        hf_wire_put_entry(at, &e);
    }
}

static void flush(struct hf_rpc_client *c)
{
    struct hf_rpc_msg *m;

    if (!c->peer)
        return;
    while ((m = chan_next(&c->chan)) != NULL) {
        stamp(c, m);
        chan_send(&c->chan, c->peer, m);
    }
    chan_tell(&c->chan, c->peer);
}

static void on_flush(struct hf_task *task)
{
    struct hf_rpc_client *c = hf_container_of(task, struct hf_rpc_client, flush_task);

    c->busy++;
    flush(c);
    complete_failed(c);
    leave(c);
}

/* Completes with status at the end of the turn. */
static void fail_later(struct hf_rpc_client *c, struct hf_rpc_call *call, int status)
{
    call->status = status;
    call->p.id = 0;
    hf_list_push_back(&c->failed, &call->p.link);
    if (!c->dead)
        hf_loop_defer(c->loop, &c->flush_task);
}

static int slots_grow(struct hf_rpc_client *c)
{
    uint32_t n = c->nslots ? c->nslots * 2 : 64;
    struct call_slot *s = realloc(c->slots, n * sizeof(*s));

    if (!s)
        return HF_E_NOMEM;
    for (uint32_t i = n; i-- > c->nslots;) {
        s[i] = (struct call_slot){.gen = 1, .next_free = c->free_slot};
        c->free_slot = i;
    }
    c->slots = s;
    c->nslots = n;
    return 0;
}

static int enqueue(struct hf_rpc_client *c, struct hf_rpc_call *call, uint32_t service,
                   unsigned method, const ProtobufCMessage *input)
{
    struct hf_wire_entry e = {.flags = HF_WIRE_CALL,
                              .method = (uint16_t)method,
                              .service = service,
                              .session = call->session,
                              .sequence = call->sequence,
                              .target = call->target,
                              .slot = call->slot};
    const struct chan_body body = {.msg = input};
    int rc;

    if (c->dead)
        return HF_E_CLOSED;
    if (c->outstanding >= c->max_outstanding || c->chan.bytes > QUEUED_BYTES_MAX)
        return HF_E_BUSY;
    if (call->bulk_n > HF_RPC_BULK_IOV)
        return HF_E_INVAL;
    if (c->free_slot == ~0u && (rc = slots_grow(c)) != 0)
        return rc;
    e.id = (uint64_t)c->slots[c->free_slot].gen << 32 | c->free_slot;
    rc = chan_add(&c->chan, &e, &body, call->bulk, call->bulk_n);
    if (rc)
        return rc;
    call->p.id = e.id;
    return 0;
}

static void invoke(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
                   ProtobufCClosure closure, void *closure_data)
{
    struct client_service *s = hf_container_of(service, struct client_service, base);
    struct hf_rpc_client *c = s->client;
    struct hf_rpc_call *call = closure_data;
    uint64_t now = hf_env_mono_ns(hf_loop_env(c->loop));
    uint64_t timeout = call->timeout_ns ? call->timeout_ns : TIMEOUT_DEFAULT_NS;
    uint32_t i;
    int rc;

    HF_ASSERT(hf_loop_in_thread(c->loop));
    call->reply_bulk = hf_slice(NULL, 0);
    call->msg = NULL;
    memset(&call->p, 0, sizeof(call->p));
    hf_list_init(&call->p.link);
    call->p.client = c;
    call->p.output = service->descriptor->methods[method].output;
    call->p.closure = closure;
    call->p.deadline_ns = timeout < ~0ull - now ? now + timeout : ~0ull;
    rc = enqueue(c, call, s->id, method, input);
    if (rc) {
        fail_later(c, call, rc);
        return;
    }
    i = (uint32_t)call->p.id;
    c->free_slot = c->slots[i].next_free;
    c->slots[i].call = call;
    wheel_add(c, call, now);
    c->outstanding++;
    hf_loop_defer(c->loop, &c->flush_task);
}

void hf_rpc_cancel(struct hf_rpc_call *call)
{
    struct hf_rpc_client *c = call->p.client;

    if (!c)
        return;
    c->busy++;
    complete(c, call, HF_E_CANCELED, NULL);
    leave(c);
}

/* ---- receiving ---- */

static void on_reply(struct hf_rpc_client *c, struct hf_rpc_msg *m, const struct hf_wire_entry *e,
                     struct hf_slice body, struct hf_slice bulk)
{
    struct hf_rpc_call *call = e->flags == HF_WIRE_REPLY ? call_of(c, e->id) : NULL;
    ProtobufCAllocator alloc = chan_allocator(&m->arena);
    ProtobufCMessage *rep = NULL;
    int status = e->status;

    if (!call)
        return; /* given up meanwhile */
    if (status == 0 || body.len > 0) {
        rep = protobuf_c_message_unpack(call->p.output, &alloc, body.len, body.data);
        if (!rep)
            status = HF_E_PROTO;
    }
    call->msg = m;
    call->reply_bulk = bulk;
    complete(c, call, status, rep);
}

static void on_recv(void *arg, uint64_t peer, struct hf_rpc_msg *m)
{
    struct hf_rpc_client *c = arg;
    struct hf_wire_frame f;
    struct hf_wire_reader rd;
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    int rc = hf_wire_open(m->data, m->len, &f, &rd);

    if (peer != c->peer || !c->peer)
        goto out;
    rc = rc ? rc : chan_check(&c->chan, &f);
    if (rc < 0) {
        c->tr->ops->drop(c->tr, peer);
        goto out;
    }
    c->busy++;
    while (rc == 1 && !c->dead && hf_wire_next(&rd, &e, &body, &bulk))
        on_reply(c, m, &e, body, bulk);
    if (rc == 1)
        chan_took(&c->chan);
    /* The window may have opened, or an answer be due. */
    if (!c->dead)
        hf_loop_defer(c->loop, &c->flush_task);
    leave(c);
out:
    hf_rpc_msg_unref(m);
}

static void on_up(void *arg, struct hf_tr *t, uint64_t peer)
{
    struct hf_rpc_client *c = arg;

    (void)t;
    c->peer = peer;
    c->epoch++;
    chan_restart(&c->chan);
    chan_hello(&c->chan, peer);
    hf_loop_defer(c->loop, &c->flush_task);
}

static void on_down(void *arg, uint64_t peer)
{
    struct hf_rpc_client *c = arg;

    if (peer != c->peer)
        return;
    c->peer = 0;
    complete_all(c, HF_E_CONNRESET, true);
}

/* ---- life ---- */

static const struct hf_tr_events client_events = {on_up, on_down, on_recv};

int hf_rpc_client_new(struct hf_loop *loop, const char *urls, const struct hf_rpc_client_opts *opts,
                      struct hf_rpc_client **ret)
{
    struct hf_rpc_client *c;
    char url[256];
    int rc = hf_rpc_url_pick(loop, urls, opts && opts->insecure, url, sizeof(url));

    if (rc)
        return rc;
    c = calloc(1, sizeof(*c));
    if (!c)
        return HF_E_NOMEM;
    c->loop = loop;
    c->max_outstanding =
        opts && opts->max_outstanding ? opts->max_outstanding : OUTSTANDING_DEFAULT;
    c->free_slot = ~0u;
    c->flush_task.fn = on_flush;
    hf_list_init(&c->failed);
    for (unsigned i = 0; i < WHEEL; i++)
        hf_list_init(&c->wheel[i]);
    hf_timer_init(&c->timer, loop, on_timer);
    rc = hf_tr_open(hf_tr_kind(url), loop, false, &client_events, c, &c->tr);
    if (rc) {
        free(c);
        return rc;
    }
    chan_init(&c->chan, c->tr);
    rc = c->tr->ops->dial(c->tr, url);
    if (rc) {
        hf_rpc_client_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

void hf_rpc_client_free(struct hf_rpc_client *c)
{
    if (!c || c->dead)
        return;
    c->dead = true;
    c->busy++;
    c->peer = 0;
    c->tr->ops->close(c->tr);
    complete_slots(c, HF_E_CLOSED, false);
    hf_timer_cancel(&c->timer);
    hf_loop_cancel(c->loop, &c->flush_task);
    leave(c);
}

ProtobufCService *hf_rpc_client_service(struct hf_rpc_client *c,
                                        const ProtobufCServiceDescriptor *d)
{
    struct client_service *s;

    for (s = c->services; s; s = s->next) {
        if (s->base.descriptor == d)
            return &s->base;
    }
    s = calloc(1, sizeof(*s));
    HF_ASSERT(s != NULL); /* the stubs have no way to say so */
    s->base.descriptor = d;
    s->base.invoke = invoke;
    s->client = c;
    s->id = hf_wire_service_id(d->name);
    s->next = c->services;
    c->services = s;
    return &s->base;
}

bool hf_rpc_client_connected(const struct hf_rpc_client *c)
{
    return c->peer != 0;
}

uint64_t hf_rpc_client_epoch(const struct hf_rpc_client *c)
{
    return c->epoch;
}

int hf_rpc_wait(struct hf_loop *loop, struct hf_rpc_call *call)
{
    int rc;

    if (hf_env_is_sim(hf_loop_env(loop))) {
        while (!call->p.done && hf_sim_step(hf_loop_env(loop)))
            ;
        return call->p.done ? call->status : HF_E_TIMEDOUT;
    }
    if (!call->p.done) {
        call->p.waiter = loop;
        rc = hf_loop_run(loop);
        if (rc)
            return rc;
    }
    /* Stopped by someone else before the call was done. */
    return call->p.done ? call->status : HF_E_CANCELED;
}

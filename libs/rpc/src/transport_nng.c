/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages over nng 1.5.2: a raw REQ socket per client, a raw REP socket per server.
 *
 * Raw mode gives what we need (whole messages, many peers on one socket, the peer's pipe id on each
 * received message, a way to send to one pipe) without REQ's state machine, whose resends would
 * execute calls twice. The protocol wants each message to begin with a 4-byte request id that has
 * the top bit set; we put a constant there, as part of the body, so that frames lie at the same
 * alignment over every transport.
 *
 * Threads. nng calls back on its own threads: when a message has come, when one has been handed to
 * a pipe, when a pipe comes or goes. Each callback takes `mu`, queues an event and posts one task
 * to the loop if none is posted yet; nothing else. A receive or a send is started again inside the
 * callback, under mu, so that no hop through the loop is paid for it. No nng operation is started
 * once `stopping` is set, which nng 1.5.2 does not survive reliably.
 *
 * One receive and one send operation per socket keep messages in order. What has been received and
 * not yet drained by the loop is bounded (QUEUE_MSGS, QUEUE_BYTES): beyond it no receive is armed,
 * and the transport pushes back on the peers.
 *
 * Pipes. ADD_PRE comes before any message of a pipe, REM_POST before nng dials again. A client is
 * told of the loss in that order, so messages queued for a lost connection are never sent to the
 * next one: the send that may be waiting for a pipe is cancelled inside REM_POST.
 */
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "holdfast/map.h"
#include "holdfast/wire.h"
#include "transport.h"

#define PREFIX      4u /* the SP request id */
#define QUEUE_MSGS  64u
#define QUEUE_BYTES ((size_t)16 << 20)
#define PIPES_MAX   4096u /* connections of one server; more are refused */

enum event_kind { EV_MSG, EV_UP, EV_DOWN };

struct event {
    struct event *next;
    enum event_kind kind;
    uint64_t peer;
    struct hf_rpc_msg *msg; /* EV_MSG; such events are freed one by one */
};

/* Both events of a pipe, allocated when it comes, so that its loss can always be told. Freed with
 * the second. */
struct pipe_rec {
    struct event up, down;
};

struct nng_tr {
    struct hf_tr base;
    struct hf_loop *loop;
    bool server;
    nng_socket sock;
    nng_aio *recv_aio, *send_aio;
    struct hf_task task;
    struct event *draining; /* loop thread only, as the next two */
    bool in_drain;
    bool closed; /* inside an event; the drain frees t */

    pthread_mutex_t mu; /* guards all below */
    struct event *head, *tail;
    size_t queued_msgs, queued_bytes; /* received, not yet drained */
    struct hf_msgq sendq;
    struct hf_map pipes; /* id -> pipe_rec, from ADD_PRE to REM_POST */
    bool posted;         /* task is on its way to the loop */
    bool receiving, sending, paused, stopping;
};

static struct nng_tr *nng_tr_of(struct hf_tr *base)
{
    return hf_container_of(base, struct nng_tr, base);
}

static int err_from_nng(int rv)
{
    switch (rv) {
    case 0:
        return 0;
    case NNG_ENOMEM:
        return HF_E_NOMEM;
    case NNG_EADDRINUSE:
        return HF_E_ADDRINUSE;
    case NNG_EADDRINVAL:
    case NNG_EINVAL:
    case NNG_ENOTSUP:
        return HF_E_INVAL;
    case NNG_EPERM:
        return HF_E_ACCES;
    default:
        return HF_E_IO;
    }
}

static void impl_free(void *impl)
{
    nng_msg_free(impl);
}

static struct hf_rpc_msg *wrap(nng_msg *nm, size_t skip)
{
    return hf_rpc_msg_wrap(nm, impl_free, (uint8_t *)nng_msg_body(nm) + skip,
                           nng_msg_len(nm) - skip);
}

/* ---- nng's threads ---- */

/* With mu held. True: the caller posts the task after it has released mu. */
static bool push(struct nng_tr *t, struct event *e)
{
    bool wake = !t->posted && !t->stopping;

    e->next = NULL;
    if (t->tail)
        t->tail->next = e;
    else
        t->head = e;
    t->tail = e;
    t->posted = t->posted || wake;
    return wake;
}

/* With mu held. */
static void receive_if_room(struct nng_tr *t)
{
    if (t->receiving || t->paused || t->stopping || t->queued_msgs >= QUEUE_MSGS ||
        t->queued_bytes >= QUEUE_BYTES)
        return;
    t->receiving = true;
    nng_recv_aio(t->sock, t->recv_aio);
}

static void on_received(void *arg)
{
    struct nng_tr *t = arg;
    nng_msg *nm = nng_aio_result(t->recv_aio) == 0 ? nng_aio_get_msg(t->recv_aio) : NULL;
    struct event *e = nm ? malloc(sizeof(*e)) : NULL;
    struct hf_rpc_msg *m = e ? wrap(nm, 0) : NULL;
    bool wake = false;

    if (nm && !m) {
        /* No memory for it: to lose one message silently would leave calls hanging. */
        (void)nng_pipe_close(nng_msg_get_pipe(nm));
        nng_msg_free(nm);
        free(e);
    }
    (void)pthread_mutex_lock(&t->mu);
    t->receiving = false;
    if (m) {
        *e = (struct event){.kind = EV_MSG, .msg = m};
        e->peer = m->peer = (uint64_t)nng_pipe_id(nng_msg_get_pipe(nm));
        t->queued_msgs++;
        t->queued_bytes += m->len;
        wake = push(t, e);
    }
    if (nm)
        receive_if_room(t);
    (void)pthread_mutex_unlock(&t->mu);
    if (wake)
        hf_loop_post(t->loop, &t->task);
}

/* With mu held: starts the next send if none runs. */
static void send_next(struct nng_tr *t)
{
    struct hf_rpc_msg *m;
    nng_msg *nm;

    if (t->sending || t->stopping || (m = hf_msgq_pop(&t->sendq)) == NULL)
        return;
    nm = m->impl;
    m->impl = NULL;
    hf_rpc_msg_unref(m);
    t->sending = true;
    nng_aio_set_msg(t->send_aio, nm);
    nng_send_aio(t->sock, t->send_aio);
}

static void on_sent(void *arg)
{
    struct nng_tr *t = arg;

    if (nng_aio_result(t->send_aio) != 0)
        nng_msg_free(nng_aio_get_msg(t->send_aio));
    nng_aio_set_msg(t->send_aio, NULL);
    (void)pthread_mutex_lock(&t->mu);
    t->sending = false;
    send_next(t);
    (void)pthread_mutex_unlock(&t->mu);
}

static void on_pipe_add(struct nng_tr *t, nng_pipe p)
{
    uint64_t id = (uint64_t)nng_pipe_id(p);
    struct pipe_rec *rec = calloc(1, sizeof(*rec));
    bool wake = false, refused = true;

    (void)pthread_mutex_lock(&t->mu);
    if (rec && !t->stopping && t->pipes.len < PIPES_MAX && hf_map_put(&t->pipes, id, rec) == 0) {
        refused = false;
        rec->up = (struct event){.kind = EV_UP, .peer = id};
        rec->down = (struct event){.kind = EV_DOWN, .peer = id};
        wake = push(t, &rec->up);
    }
    (void)pthread_mutex_unlock(&t->mu);
    if (refused) {
        free(rec);
        (void)nng_pipe_close(p);
    }
    if (wake)
        hf_loop_post(t->loop, &t->task);
}

static void on_pipe_rem(struct nng_tr *t, nng_pipe p)
{
    struct pipe_rec *rec;
    bool wake = false;

    (void)pthread_mutex_lock(&t->mu);
    rec = hf_map_del(&t->pipes, (uint64_t)nng_pipe_id(p));
    if (rec) {
        wake = push(t, &rec->down);
        if (!t->server) {
            hf_msgq_clear(&t->sendq);
            nng_aio_cancel(t->send_aio);
        }
    }
    (void)pthread_mutex_unlock(&t->mu);
    if (wake)
        hf_loop_post(t->loop, &t->task);
}

static void on_pipe(nng_pipe p, nng_pipe_ev ev, void *arg)
{
    if (ev == NNG_PIPE_EV_ADD_PRE)
        on_pipe_add(arg, p);
    else if (ev == NNG_PIPE_EV_REM_POST)
        on_pipe_rem(arg, p);
}

/* ---- the loop's thread ---- */

static void event_free(struct event *e)
{
    if (e->kind == EV_MSG) {
        hf_rpc_msg_unref(e->msg);
        free(e);
    } else if (e->kind == EV_DOWN) {
        free(hf_container_of(e, struct pipe_rec, down));
    }
}

static void nng_tr_destroy(struct nng_tr *t)
{
    for (struct event *e = t->draining, *next; e; e = next) {
        next = e->next;
        event_free(e);
    }
    for (struct event *e = t->head, *next; e; e = next) {
        next = e->next;
        event_free(e);
    }
    hf_msgq_clear(&t->sendq);
    hf_map_fini(&t->pipes);
    (void)pthread_mutex_destroy(&t->mu);
    free(t);
}

static void raise_event(struct nng_tr *t, struct event *e)
{
    const struct hf_tr_events *ev = t->base.ev;

    switch (e->kind) {
    case EV_UP:
        ev->up(t->base.arg, &t->base, e->peer);
        break;
    case EV_DOWN:
        ev->down(t->base.arg, e->peer);
        break;
    case EV_MSG:
        ev->recv(t->base.arg, e->peer, e->msg);
        e->msg = NULL;
        break;
    }
    event_free(e);
}

static void drain(struct hf_task *task)
{
    struct nng_tr *t = hf_container_of(task, struct nng_tr, task);
    struct event *e;

    (void)pthread_mutex_lock(&t->mu);
    t->posted = false;
    t->draining = t->head;
    t->head = t->tail = NULL;
    t->queued_msgs = t->queued_bytes = 0;
    (void)pthread_mutex_unlock(&t->mu);
    t->in_drain = true;
    while ((e = t->draining) != NULL && !t->closed) {
        t->draining = e->next;
        raise_event(t, e);
    }
    t->in_drain = false;
    if (t->closed) {
        nng_tr_destroy(t);
        return;
    }
    (void)pthread_mutex_lock(&t->mu);
    receive_if_room(t);
    (void)pthread_mutex_unlock(&t->mu);
}

static struct hf_rpc_msg *nng_tr_msg_new(struct hf_tr *base, size_t len)
{
    struct hf_rpc_msg *m;
    nng_msg *nm;

    (void)base;
    if (nng_msg_alloc(&nm, PREFIX + len) != 0)
        return NULL;
    memset(nng_msg_body(nm), 0, PREFIX);
    *(uint8_t *)nng_msg_body(nm) = 0x80;
    m = wrap(nm, PREFIX);
    if (!m)
        nng_msg_free(nm);
    return m;
}

static void nng_tr_send(struct hf_tr *base, uint64_t peer, struct hf_rpc_msg *m)
{
    struct nng_tr *t = nng_tr_of(base);
    nng_msg *nm = m->impl;
    size_t len = PREFIX + m->len;

    (void)nng_msg_chop(nm, nng_msg_len(nm) - len);
    if (t->server && nng_msg_header_append_u32(nm, (uint32_t)peer) != 0) {
        hf_rpc_msg_unref(m);
        base->ops->drop(base, peer);
        return;
    }
    (void)pthread_mutex_lock(&t->mu);
    if (!t->stopping && hf_map_get(&t->pipes, peer)) {
        hf_msgq_push(&t->sendq, m);
        send_next(t);
        m = NULL;
    }
    (void)pthread_mutex_unlock(&t->mu);
    hf_rpc_msg_unref(m);
}

static void nng_tr_pause(struct hf_tr *base, bool paused)
{
    struct nng_tr *t = nng_tr_of(base);

    (void)pthread_mutex_lock(&t->mu);
    t->paused = paused;
    receive_if_room(t);
    (void)pthread_mutex_unlock(&t->mu);
}

static void nng_tr_drop(struct hf_tr *base, uint64_t peer)
{
    const nng_pipe p = {.id = (uint32_t)peer};

    (void)base;
    (void)nng_pipe_close(p);
}

/* nng 1.5.2 wants this order: nothing is started any more, operations are stopped, then the socket
 * is closed (which waits for its pipes and their callbacks), then memory goes. */
static void nng_tr_close(struct hf_tr *base)
{
    struct nng_tr *t = nng_tr_of(base);

    (void)pthread_mutex_lock(&t->mu);
    t->stopping = true;
    (void)pthread_mutex_unlock(&t->mu);
    nng_aio_stop(t->recv_aio);
    nng_aio_stop(t->send_aio);
    (void)nng_close(t->sock);
    nng_aio_free(t->recv_aio);
    nng_aio_free(t->send_aio);
    hf_loop_cancel(t->loop, &t->task);
    t->closed = true;
    if (!t->in_drain)
        nng_tr_destroy(t);
}

/* What does not exist on the transport at hand is not an error. */
static int opt(int rv)
{
    return rv == NNG_ENOTSUP ? 0 : rv;
}

static int nng_tr_listen(struct hf_tr *base, const char *url, char *ret_url, size_t ret_size)
{
    struct nng_tr *t = nng_tr_of(base);
    const char *port = strrchr(url, ':');
    nng_listener l;
    int rv, bound = 0;

    rv = nng_listener_create(&l, t->sock, url);
    if (rv)
        return err_from_nng(rv);
    if ((rv = opt(nng_listener_set_size(l, NNG_OPT_RECVMAXSZ, HF_WIRE_FRAME_MAX + 64))) != 0 ||
        (rv = opt(nng_listener_set_bool(l, NNG_OPT_TCP_NODELAY, true))) != 0 ||
        (rv = opt(nng_listener_set_bool(l, NNG_OPT_TCP_KEEPALIVE, true))) != 0 ||
        (rv = opt(nng_listener_set_int(l, NNG_OPT_IPC_PERMISSIONS, 0600))) != 0 ||
        (rv = nng_listener_start(l, 0)) != 0) {
        (void)nng_listener_close(l);
        return err_from_nng(rv);
    }
    if (strncmp(url, "tcp://", 6) == 0 &&
        nng_listener_get_int(l, NNG_OPT_TCP_BOUND_PORT, &bound) == 0)
        (void)snprintf(ret_url, ret_size, "%.*s:%d", (int)(port - url), url, bound);
    else
        (void)snprintf(ret_url, ret_size, "%s", url);
    return 0;
}

static int nng_tr_dial(struct hf_tr *base, const char *url)
{
    struct nng_tr *t = nng_tr_of(base);
    nng_dialer d;
    int rv = nng_dialer_create(&d, t->sock, url);

    if (rv)
        return err_from_nng(rv);
    if ((rv = opt(nng_dialer_set_size(d, NNG_OPT_RECVMAXSZ, HF_WIRE_FRAME_MAX + 64))) != 0 ||
        (rv = opt(nng_dialer_set_bool(d, NNG_OPT_TCP_NODELAY, true))) != 0 ||
        (rv = opt(nng_dialer_set_bool(d, NNG_OPT_TCP_KEEPALIVE, true))) != 0 ||
        (rv = nng_dialer_set_ms(d, NNG_OPT_RECONNMINT, 10)) != 0 ||
        (rv = nng_dialer_set_ms(d, NNG_OPT_RECONNMAXT, 1000)) != 0 ||
        (rv = nng_dialer_start(d, NNG_FLAG_NONBLOCK)) != 0) {
        (void)nng_dialer_close(d);
        return err_from_nng(rv);
    }
    return 0;
}

static const struct hf_tr_ops nng_tr_ops = {
    .listen = nng_tr_listen,
    .dial = nng_tr_dial,
    .msg_new = nng_tr_msg_new,
    .send = nng_tr_send,
    .pause = nng_tr_pause,
    .drop = nng_tr_drop,
    .close = nng_tr_close,
};

#ifdef __SANITIZE_ADDRESS__
static void register_fini(void)
{
    (void)atexit(nng_fini);
}
#endif

/* nng frees what belonged to a closed socket a moment later, in a thread of its own. A leak checker
 * that looks at exit must not look before that; nobody else needs to wait. */
static void settle_at_exit(void)
{
#ifdef __SANITIZE_ADDRESS__
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, register_fini);
#endif
}

int hf_tr_nng_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                   struct hf_tr **ret)
{
    struct nng_tr *t = calloc(1, sizeof(*t));
    int rv;

    if (!t)
        return HF_E_NOMEM;
    t->base = (struct hf_tr){&nng_tr_ops, ev, arg};
    t->loop = loop;
    t->server = server;
    t->task.fn = drain;
    settle_at_exit();
    (void)pthread_mutex_init(&t->mu, NULL);
    rv = server ? nng_rep0_open_raw(&t->sock) : nng_req0_open_raw(&t->sock);
    if (rv) {
        nng_tr_destroy(t);
        return err_from_nng(rv);
    }
    if ((rv = nng_aio_alloc(&t->recv_aio, on_received, t)) != 0 ||
        (rv = nng_aio_alloc(&t->send_aio, on_sent, t)) != 0 ||
        (rv = nng_pipe_notify(t->sock, NNG_PIPE_EV_ADD_PRE, on_pipe, t)) != 0 ||
        (rv = nng_pipe_notify(t->sock, NNG_PIPE_EV_REM_POST, on_pipe, t)) != 0) {
        nng_tr_close(&t->base);
        return err_from_nng(rv);
    }
    nng_aio_set_timeout(t->recv_aio, NNG_DURATION_INFINITE);
    nng_aio_set_timeout(t->send_aio, NNG_DURATION_INFINITE);
    (void)pthread_mutex_lock(&t->mu);
    receive_if_room(t);
    (void)pthread_mutex_unlock(&t->mu);
    *ret = &t->base;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages over nng 1.5.2's byte streams (ipc, tcp), one stream per connection.
 *
 * Why not its sockets: the REQ and REP protocols of 1.5.2 (raw or not) chain operations on a pipe
 * in callbacks. When a connection closes between two parts of a message, the next part is started
 * on an operation that is already stopped, whose callback then never comes: nng's reaper thread
 * waits for it for ever, and with it every later close and reconnect of the process (seen here
 * within minutes of restarts under load). They also leak the message in hand and drop replies
 * beyond 64 per connection. On a stream we start every operation ourselves, under a lock, and never
 * on a closed connection.
 *
 * The frame's own header delimits messages; there is no other handshake. A header that is not one
 * is handed up as it is, so that it is counted and costs the connection. A server expects the first
 * bytes within HELLO_MS of the connection, so that silent strangers do not keep places.
 *
 * Threads. nng calls back on its own threads when an operation has ended. Each callback takes `mu`,
 * moves bytes into messages, queues events, starts the next operation and posts one task to the
 * loop if none is posted yet. Lock order: mu is a leaf for us; nng's locks are taken inside it, and
 * nng calls back from its task threads only, never from inside a call.
 *
 * What has been received and not yet drained by the loop is bounded (QUEUE_MSGS, QUEUE_BYTES):
 * beyond it no receive is started, and the stream pushes back on the peers.
 *
 * A connection ends in steps: closed (no operation is started any more), both its operations back,
 * DOWN queued, DOWN raised on the loop, memory freed.
 */
#include <nng/nng.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/map.h"
#include "holdfast/wire.h"
#include "transport.h"

#define QUEUE_MSGS     64u
#define QUEUE_BYTES    ((size_t)16 << 20)
#define CONNS_MAX      4096u /* of one server; more are closed at once */
#define LISTENERS_MAX  8u
#define BUF_BYTES      ((size_t)32 << 10)
#define SEND_IOV       8u /* nng's limit */
#define HELLO_MS       10000
#define DIAL_MS        10000
#define BACKOFF_MIN_NS (10 * HF_NS_PER_MS)
#define BACKOFF_MAX_NS (1000 * HF_NS_PER_MS)
#define ACCEPT_WAIT_NS                                                                             \
    (100 * HF_NS_PER_MS) /* after an error of accept, e.g. no descriptors left                     \
                          */

enum kind { KIND_MSG, KIND_UP, KIND_DOWN, KIND_RETRY };

/* Guarded by mu, but for what the loop's thread alone frees. */
struct conn {
    struct hf_list link; /* of tr->conns */
    struct st_tr *tr;
    uint64_t id;
    nng_stream *stream;
    nng_aio *rx, *tx;
    bool receiving, sending, closed;
    bool deaf;                  /* has sent what is no frame */
    struct hf_rpc_msg up, down; /* events, queued among the messages */

    size_t have;             /* bytes in buf */
    struct hf_rpc_msg *part; /* a message that is being received in place */
    size_t part_have;
    struct hf_msgq sendq;
    size_t sent; /* bytes of the first message in sendq */
    uint8_t buf[BUF_BYTES];
};

struct listener {
    struct st_tr *tr;
    nng_stream_listener *l;
    nng_aio *aio;
    bool accepting;
};

struct st_tr {
    struct hf_tr base;
    struct hf_loop *loop;
    bool server;
    struct hf_task task;
    struct hf_timer retry_timer;
    uint64_t backoff_ns;
    struct hf_msgq draining; /* loop thread only, as the next two */
    bool in_drain, destroyed;
    nng_stream_dialer *dialer;
    nng_aio *dial_aio;

    pthread_mutex_t mu; /* guards all below, and the connections */
    struct listener listeners[LISTENERS_MAX];
    unsigned nlisteners;
    struct hf_list conns;
    struct hf_map by_id;
    uint64_t next_id;
    struct hf_msgq queue;
    struct hf_rpc_msg retry; /* event: dial or accept again later */
    bool retry_queued;
    size_t queued_msgs, queued_bytes; /* received, not yet drained */
    bool posted, paused, stopping;
};

static struct st_tr *st_tr_of(struct hf_tr *base)
{
    return hf_container_of(base, struct st_tr, base);
}

static void lock(struct st_tr *t)
{
    HF_ASSERT(pthread_mutex_lock(&t->mu) == 0);
}

static void unlock(struct st_tr *t)
{
    HF_ASSERT(pthread_mutex_unlock(&t->mu) == 0);
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

/* ---- with mu held ---- */

static void push(struct st_tr *t, struct hf_rpc_msg *m)
{
    hf_msgq_push(&t->queue, m);
    if (t->posted || t->stopping)
        return;
    t->posted = true;
    hf_loop_post(t->loop, &t->task);
}

/* The last step but one of a connection's end. */
static void conn_down_if_idle(struct conn *c)
{
    if (c->closed && !c->receiving && !c->sending && c->down.kind == KIND_DOWN) {
        c->down.kind = KIND_DOWN | 0x80; /* once */
        push(c->tr, &c->down);
    }
}

static void conn_close(struct conn *c)
{
    if (c->closed)
        return;
    c->closed = true;
    nng_stream_close(c->stream);
    hf_msgq_clear(&c->sendq);
    conn_down_if_idle(c);
}

static void deliver(struct conn *c, struct hf_rpc_msg *m)
{
    m->kind = KIND_MSG;
    m->peer = c->id;
    c->tr->queued_msgs++;
    c->tr->queued_bytes += m->len;
    push(c->tr, m);
}

/* The length of the frame that begins at p, 0 if it is not one. */
static size_t frame_len(const uint8_t *p)
{
    size_t len = hf_get_le32(p + 8);

    return hf_get_le32(p) == HF_WIRE_MAGIC && len >= HF_WIRE_HEADER && len <= HF_WIRE_FRAME_MAX
               ? len
               : 0;
}

/* Cuts what is in buf into messages. False: no memory. */
static bool cut(struct conn *c)
{
    size_t at = 0;

    while (!c->part && c->have - at >= HF_WIRE_HEADER) {
        size_t len = frame_len(c->buf + at), n;
        struct hf_rpc_msg *m;

        if (len == 0) { /* nothing after this makes sense; the owner will drop the peer */
            c->deaf = true;
            len = c->have - at;
        }
        n = c->have - at < len ? c->have - at : len;
        if (n < len && len <= BUF_BYTES / 2)
            break; /* small: the rest comes with what follows it */
        m = hf_rpc_msg_plain(NULL, len);
        if (!m)
            return false;
        memcpy(m->data, c->buf + at, n);
        at += n;
        if (n == len) {
            deliver(c, m);
        } else {
            c->part = m;
            c->part_have = n;
        }
    }
    c->have -= at;
    memmove(c->buf, c->buf + at, c->have);
    return true;
}

static void receive(struct conn *c)
{
    struct st_tr *t = c->tr;
    nng_iov iov[2];
    unsigned n = 0;

    if (c->receiving || c->closed || c->deaf || t->paused || t->stopping ||
        t->queued_msgs >= QUEUE_MSGS || t->queued_bytes >= QUEUE_BYTES)
        return;
    if (c->part)
        iov[n++] = (nng_iov){c->part->data + c->part_have, c->part->len - c->part_have};
    iov[n++] = (nng_iov){c->buf + c->have, BUF_BYTES - c->have};
    c->receiving = true;
    (void)nng_aio_set_iov(c->rx, n, iov);
    nng_stream_recv(c->stream, c->rx);
}

static void send_next(struct conn *c)
{
    nng_iov iov[SEND_IOV];
    size_t skip = c->sent;
    unsigned n = 0;

    if (c->sending || c->closed || c->tr->stopping || c->sendq.n == 0)
        return;
    for (struct hf_rpc_msg *m = c->sendq.head; m && n < SEND_IOV; m = m->next) {
        iov[n++] = (nng_iov){m->data + skip, m->len - skip};
        skip = 0;
    }
    c->sending = true;
    (void)nng_aio_set_iov(c->tx, n, iov);
    nng_stream_send(c->stream, c->tx);
}

static void retry_later(struct st_tr *t)
{
    if (t->retry_queued)
        return;
    t->retry_queued = true;
    push(t, &t->retry);
}

/* ---- nng's threads ---- */

static void on_received(void *arg)
{
    struct conn *c = arg;
    struct st_tr *t = c->tr;
    int rv = nng_aio_result(c->rx);
    size_t n = nng_aio_count(c->rx), into = 0;

    lock(t);
    c->receiving = false;
    nng_aio_set_timeout(c->rx, NNG_DURATION_INFINITE);
    if (rv == 0 && !c->closed) {
        if (c->part) {
            into = c->part->len - c->part_have < n ? c->part->len - c->part_have : n;
            c->part_have += into;
            if (c->part_have == c->part->len) {
                deliver(c, c->part);
                c->part = NULL;
            }
        }
        c->have += n - into;
        if (!cut(c))
            conn_close(c);
    } else {
        conn_close(c);
    }
    receive(c);
    conn_down_if_idle(c);
    unlock(t);
}

static void on_sent(void *arg)
{
    struct conn *c = arg;
    struct st_tr *t = c->tr;
    size_t n = nng_aio_count(c->tx);

    lock(t);
    c->sending = false;
    if (nng_aio_result(c->tx) != 0)
        conn_close(c);
    if (!c->closed)
        c->sent += n;
    while (c->sendq.head && c->sent >= c->sendq.head->len) {
        c->sent -= c->sendq.head->len;
        hf_rpc_msg_unref(hf_msgq_pop(&c->sendq));
    }
    send_next(c);
    conn_down_if_idle(c);
    unlock(t);
}

static void conn_free(struct conn *c)
{
    nng_aio_free(c->rx);
    nng_aio_free(c->tx);
    if (c->stream)
        nng_stream_free(c->stream);
    hf_rpc_msg_unref(c->part);
    hf_msgq_clear(&c->sendq);
    free(c);
}

/* Takes the stream. */
static void conn_new(struct st_tr *t, nng_stream *stream)
{
    struct conn *c = calloc(1, sizeof(*c));
    bool ok;

    if (!c) {
        nng_stream_free(stream);
        return;
    }
    c->tr = t;
    c->stream = stream;
    c->up.kind = KIND_UP;
    c->down.kind = KIND_DOWN;
    ok = nng_aio_alloc(&c->rx, on_received, c) == 0 && nng_aio_alloc(&c->tx, on_sent, c) == 0;
    lock(t);
    c->id = c->up.peer = c->down.peer = t->next_id;
    ok = ok && !t->stopping && t->by_id.len < CONNS_MAX && hf_map_put(&t->by_id, c->id, c) == 0;
    if (ok) {
        t->next_id++;
        hf_list_push_back(&t->conns, &c->link);
        nng_aio_set_timeout(c->rx, t->server ? HELLO_MS : NNG_DURATION_INFINITE);
        nng_aio_set_timeout(c->tx, NNG_DURATION_INFINITE);
        push(t, &c->up);
        receive(c);
    }
    unlock(t);
    if (!ok)
        conn_free(c);
}

static void on_dialed(void *arg)
{
    struct st_tr *t = arg;

    if (nng_aio_result(t->dial_aio) == 0) {
        conn_new(t, nng_aio_get_output(t->dial_aio, 0));
        return;
    }
    lock(t);
    retry_later(t);
    unlock(t);
}

static void accept_next(struct listener *l)
{
    if (l->accepting || l->tr->stopping)
        return;
    l->accepting = true;
    nng_stream_listener_accept(l->l, l->aio);
}

static void on_accepted(void *arg)
{
    struct listener *l = arg;
    int rv = nng_aio_result(l->aio);

    if (rv == 0)
        conn_new(l->tr, nng_aio_get_output(l->aio, 0));
    lock(l->tr);
    l->accepting = false;
    if (rv == 0)
        accept_next(l);
    else
        retry_later(l->tr);
    unlock(l->tr);
}

/* ---- the loop's thread ---- */

static void on_retry(struct hf_timer *timer)
{
    struct st_tr *t = hf_container_of(timer, struct st_tr, retry_timer);

    if (!t->server) {
        nng_stream_dialer_dial(t->dialer, t->dial_aio);
        return;
    }
    lock(t);
    for (unsigned i = 0; i < t->nlisteners; i++)
        accept_next(&t->listeners[i]);
    unlock(t);
}

static void retry(struct st_tr *t)
{
    uint64_t delay = ACCEPT_WAIT_NS;

    if (!t->server) { /* half fixed, half random, so that many clients do not come at once */
        delay =
            t->backoff_ns / 2 + hf_env_random_u64(hf_loop_env(t->loop)) % (t->backoff_ns / 2 + 1);
        t->backoff_ns = t->backoff_ns * 2 < BACKOFF_MAX_NS ? t->backoff_ns * 2 : BACKOFF_MAX_NS;
    }
    hf_timer_set(&t->retry_timer, delay);
}

static void raise_down(struct st_tr *t, struct hf_rpc_msg *m)
{
    struct conn *c = hf_container_of(m, struct conn, down);
    uint64_t id = c->id;

    lock(t);
    hf_list_remove(&c->link);
    (void)hf_map_del(&t->by_id, id);
    unlock(t);
    conn_free(c);
    t->base.ev->down(t->base.arg, id);
    if (!t->destroyed && !t->server)
        retry(t);
}

static void raise_event(struct st_tr *t, struct hf_rpc_msg *m)
{
    switch (m->kind) {
    case KIND_MSG:
        t->base.ev->recv(t->base.arg, m->peer, m);
        break;
    case KIND_UP:
        t->backoff_ns = BACKOFF_MIN_NS;
        t->base.ev->up(t->base.arg, &t->base, m->peer);
        break;
    case KIND_RETRY:
        lock(t);
        t->retry_queued = false;
        unlock(t);
        retry(t);
        break;
    default:
        raise_down(t, m);
        break;
    }
}

static void receive_all(struct st_tr *t)
{
    HF_LIST_FOREACH(it, &t->conns)
    receive(hf_container_of(it, struct conn, link));
}

static void drain(struct hf_task *task)
{
    struct st_tr *t = hf_container_of(task, struct st_tr, task);
    struct hf_rpc_msg *m;
    bool full;

    lock(t);
    t->posted = false;
    t->draining = t->queue;
    t->queue = (struct hf_msgq){0};
    full = t->queued_msgs >= QUEUE_MSGS || t->queued_bytes >= QUEUE_BYTES;
    t->queued_msgs = t->queued_bytes = 0;
    unlock(t);
    t->in_drain = true;
    while (!t->destroyed && (m = hf_msgq_pop(&t->draining)) != NULL)
        raise_event(t, m);
    t->in_drain = false;
    if (t->destroyed) {
        free(t);
        return;
    }
    if (full) {
        lock(t);
        receive_all(t);
        unlock(t);
    }
}

static void st_send(struct hf_tr *base, uint64_t peer, struct hf_rpc_msg *m)
{
    struct st_tr *t = st_tr_of(base);
    struct conn *c;

    lock(t);
    c = hf_map_get(&t->by_id, peer);
    if (c && !c->closed) {
        hf_msgq_push(&c->sendq, m);
        send_next(c);
        m = NULL;
    }
    unlock(t);
    hf_rpc_msg_unref(m);
}

static void st_pause(struct hf_tr *base, bool paused)
{
    struct st_tr *t = st_tr_of(base);

    lock(t);
    t->paused = paused;
    if (!paused)
        receive_all(t);
    unlock(t);
}

static void st_drop(struct hf_tr *base, uint64_t peer)
{
    struct st_tr *t = st_tr_of(base);
    struct conn *c;

    lock(t);
    c = hf_map_get(&t->by_id, peer);
    if (c)
        conn_close(c);
    unlock(t);
}

static void queue_clear(struct hf_msgq *q)
{
    struct hf_rpc_msg *m;

    while ((m = hf_msgq_pop(q)) != NULL) {
        if (m->kind == KIND_MSG)
            hf_rpc_msg_unref(m); /* the others are part of something */
    }
}

static void st_close(struct hf_tr *base)
{
    struct st_tr *t = st_tr_of(base);
    struct hf_list *first;

    lock(t);
    t->stopping = true; /* nothing is started from here on */
    HF_LIST_FOREACH(it, &t->conns)
    conn_close(hf_container_of(it, struct conn, link));
    unlock(t);
    if (t->dialer)
        nng_stream_dialer_close(t->dialer);
    nng_aio_stop(t->dial_aio);
    for (unsigned i = 0; i < t->nlisteners; i++) {
        nng_stream_listener_close(t->listeners[i].l);
        nng_aio_free(t->listeners[i].aio);
        nng_stream_listener_free(t->listeners[i].l);
    }
    nng_aio_free(t->dial_aio);
    if (t->dialer)
        nng_stream_dialer_free(t->dialer);
    HF_LIST_FOREACH(it, &t->conns)
    {
        nng_aio_stop(hf_container_of(it, struct conn, link)->rx);
        nng_aio_stop(hf_container_of(it, struct conn, link)->tx);
    }
    queue_clear(&t->draining); /* before the connections, which hold some of the events */
    queue_clear(&t->queue);
    while ((first = hf_list_pop_front(&t->conns)) != NULL)
        conn_free(hf_container_of(first, struct conn, link));
    hf_timer_cancel(&t->retry_timer);
    hf_loop_cancel(t->loop, &t->task);
    hf_map_fini(&t->by_id);
    (void)pthread_mutex_destroy(&t->mu);
    t->destroyed = true;
    if (!t->in_drain)
        free(t);
}

/* What does not exist on the transport at hand is not an error. */
static int opt(int rv)
{
    return rv == NNG_ENOTSUP ? 0 : rv;
}

static int st_listen(struct hf_tr *base, const char *url, char *ret_url, size_t ret_size)
{
    struct st_tr *t = st_tr_of(base);
    struct listener *l = &t->listeners[t->nlisteners];
    const char *port = strrchr(url, ':');
    int rv, bound = 0;

    if (t->nlisteners == LISTENERS_MAX)
        return HF_E_TOOBIG;
    *l = (struct listener){.tr = t};
    rv = nng_stream_listener_alloc(&l->l, url);
    if (rv)
        return err_from_nng(rv);
    if ((rv = opt(nng_stream_listener_set_bool(l->l, NNG_OPT_TCP_NODELAY, true))) != 0 ||
        (rv = opt(nng_stream_listener_set_bool(l->l, NNG_OPT_TCP_KEEPALIVE, true))) != 0 ||
        (rv = opt(nng_stream_listener_set_int(l->l, NNG_OPT_IPC_PERMISSIONS, 0600))) != 0 ||
        (rv = nng_aio_alloc(&l->aio, on_accepted, l)) != 0 ||
        (rv = nng_stream_listener_listen(l->l)) != 0) {
        nng_aio_free(l->aio);
        nng_stream_listener_free(l->l);
        return err_from_nng(rv);
    }
    if (strncmp(url, "tcp://", 6) == 0 &&
        nng_stream_listener_get_int(l->l, NNG_OPT_TCP_BOUND_PORT, &bound) == 0)
        (void)snprintf(ret_url, ret_size, "%.*s:%d", (int)(port - url), url, bound);
    else
        (void)snprintf(ret_url, ret_size, "%s", url);
    lock(t);
    t->nlisteners++;
    accept_next(l);
    unlock(t);
    return 0;
}

static int st_dial(struct hf_tr *base, const char *url)
{
    struct st_tr *t = st_tr_of(base);
    int rv = nng_stream_dialer_alloc(&t->dialer, url);

    if (rv)
        return err_from_nng(rv);
    if ((rv = opt(nng_stream_dialer_set_bool(t->dialer, NNG_OPT_TCP_NODELAY, true))) != 0 ||
        (rv = opt(nng_stream_dialer_set_bool(t->dialer, NNG_OPT_TCP_KEEPALIVE, true))) != 0)
        return err_from_nng(rv);
    nng_aio_set_timeout(t->dial_aio, DIAL_MS);
    nng_stream_dialer_dial(t->dialer, t->dial_aio);
    return 0;
}

static const struct hf_tr_ops st_ops = {
    .listen = st_listen,
    .dial = st_dial,
    .msg_new = hf_rpc_msg_plain,
    .send = st_send,
    .pause = st_pause,
    .drop = st_drop,
    .close = st_close,
};

#ifdef __SANITIZE_ADDRESS__
static void register_fini(void)
{
    (void)atexit(nng_fini);
}
#endif

/* nng frees what belonged to a closed stream a moment later, in a thread of its own. A leak checker
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
    struct st_tr *t = calloc(1, sizeof(*t));
    int rv;

    if (!t)
        return HF_E_NOMEM;
    settle_at_exit();
    t->base = (struct hf_tr){&st_ops, ev, arg};
    t->loop = loop;
    t->server = server;
    t->task.fn = drain;
    t->next_id = 1;
    t->backoff_ns = BACKOFF_MIN_NS;
    t->retry.kind = KIND_RETRY;
    hf_list_init(&t->conns);
    hf_timer_init(&t->retry_timer, loop, on_retry);
    rv = nng_aio_alloc(&t->dial_aio, on_dialed, t);
    if (rv) {
        free(t);
        return err_from_nng(rv);
    }
    (void)pthread_mutex_init(&t->mu, NULL);
    *ret = &t->base;
    return 0;
}

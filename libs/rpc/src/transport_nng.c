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
#include "transport_nng.h"

#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"

#define DIAL_MS        10000
#define BACKOFF_MIN_NS (10 * HF_NS_PER_MS)
#define BACKOFF_MAX_NS (1000 * HF_NS_PER_MS)
/* After an error of accept, e.g. no descriptors left. */
#define ACCEPT_WAIT_NS (100 * HF_NS_PER_MS)

static struct st_tr *st_tr_of(struct hf_tr *base)
{
    return hf_container_of(base, struct st_tr, base);
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

/* With mu held. */
static void retry_later(struct st_tr *t)
{
    if (t->retry_queued)
        return;
    t->retry_queued = true;
    st_push(t, &t->retry);
}

/* ---- nng's threads ---- */

static void on_dialed(void *arg)
{
    struct st_tr *t = arg;

    if (nng_aio_result(t->dial_aio) == 0) {
        st_conn_new(t, nng_aio_get_output(t->dial_aio, 0));
        return;
    }
    st_lock(t);
    retry_later(t);
    st_unlock(t);
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
        st_conn_new(l->tr, nng_aio_get_output(l->aio, 0));
    st_lock(l->tr);
    l->accepting = false;
    if (rv == 0)
        accept_next(l);
    else
        retry_later(l->tr);
    st_unlock(l->tr);
}

/* ---- the loop's thread ---- */

static void on_retry(struct hf_timer *timer)
{
    struct st_tr *t = hf_container_of(timer, struct st_tr, retry_timer);

    if (!t->server) {
        nng_stream_dialer_dial(t->dialer, t->dial_aio);
        return;
    }
    st_lock(t);
    for (unsigned i = 0; i < t->nlisteners; i++)
        accept_next(&t->listeners[i]);
    st_unlock(t);
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

    st_lock(t);
    hf_list_remove(&c->link);
    (void)hf_map_del(&t->by_id, id);
    st_unlock(t);
    st_conn_free(c);
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
        st_lock(t);
        t->retry_queued = false;
        st_unlock(t);
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
    st_conn_receive(hf_container_of(it, struct conn, link));
}

static void drain(struct hf_task *task)
{
    struct st_tr *t = hf_container_of(task, struct st_tr, task);
    struct hf_rpc_msg *m;
    bool full;

    st_lock(t);
    t->posted = false;
    t->draining = t->queue;
    t->queue = (struct hf_msgq){0};
    full = t->queued_msgs >= QUEUE_MSGS || t->queued_bytes >= QUEUE_BYTES;
    t->queued_msgs = t->queued_bytes = 0;
    st_unlock(t);
    t->in_drain = true;
    while (!t->destroyed && (m = hf_msgq_pop(&t->draining)) != NULL)
        raise_event(t, m);
    t->in_drain = false;
    if (t->destroyed) {
        free(t);
        return;
    }
    if (full) {
        st_lock(t);
        receive_all(t);
        st_unlock(t);
    }
}

static void st_send(struct hf_tr *base, uint64_t peer, struct hf_rpc_msg *m)
{
    struct st_tr *t = st_tr_of(base);
    struct conn *c;

    st_lock(t);
    c = hf_map_get(&t->by_id, peer);
    if (c && !c->closed) {
        hf_msgq_push(&c->sendq, m);
        st_conn_send(c);
        m = NULL;
    }
    st_unlock(t);
    hf_rpc_msg_unref(m);
}

static void st_pause(struct hf_tr *base, bool paused)
{
    struct st_tr *t = st_tr_of(base);

    st_lock(t);
    t->paused = paused;
    if (!paused)
        receive_all(t);
    st_unlock(t);
}

static void st_drop(struct hf_tr *base, uint64_t peer)
{
    struct st_tr *t = st_tr_of(base);
    struct conn *c;

    st_lock(t);
    c = hf_map_get(&t->by_id, peer);
    if (c)
        st_conn_close(c);
    st_unlock(t);
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

    st_lock(t);
    t->stopping = true; /* nothing is started from here on */
    HF_LIST_FOREACH(it, &t->conns)
    st_conn_close(hf_container_of(it, struct conn, link));
    st_unlock(t);
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
        st_conn_free(hf_container_of(first, struct conn, link));
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
    st_lock(t);
    t->nlisteners++;
    accept_next(l);
    st_unlock(t);
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

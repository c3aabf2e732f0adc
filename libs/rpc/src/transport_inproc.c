/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between loops of one env: the sender's message itself is queued at the receiving
 * transport, and one task wakes the receiver's loop. Nothing is copied, and no third thread is
 * involved: over nng's own inproc a message passes through four task hand-overs, which at one call
 * in flight is most of the round trip.
 *
 * One mutex per env (`mu`) guards who listens, who is connected and what is queued; it is held for
 * a few pointer moves. Posting to a loop happens under it, so that a transport which has detached
 * itself under it is never posted to again. Lock order: mu is a leaf.
 *
 * A receiver that is paused needs no help here: its peers' windows bound what can be queued, and
 * the memory is that of the same process anyway.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "transport.h"

#define LISTENERS_MAX  8u
#define URL_SIZE       256u
#define BACKOFF_MIN_NS (1 * HF_NS_PER_MS)
#define BACKOFF_MAX_NS (100 * HF_NS_PER_MS)

struct in_net {
    pthread_mutex_t mu;
    struct hf_list listeners; /* in_listener.link */
    uint64_t next_id;
};

struct in_listener {
    struct hf_list link;
    struct in_tr *tr;
    char url[URL_SIZE];
};

enum kind { KIND_MSG, KIND_UP, KIND_DOWN };

/* One side of a connection. Guarded by mu. */
struct in_end {
    struct hf_list link; /* of tr->ends */
    struct in_tr *tr;
    struct in_end *other; /* NULL: gone */
    uint64_t id;
    struct hf_rpc_msg up, down; /* events, queued among the messages */
    bool ending;                /* down is queued */
};

struct in_tr {
    struct hf_tr base;
    struct hf_loop *loop;
    struct in_net *net;
    bool server;
    struct hf_task task;
    struct hf_timer dial_timer;
    uint64_t backoff_ns;
    char url[URL_SIZE];
    struct hf_msgq draining; /* loop thread only, as the next two */
    bool in_drain, closed;

    /* Guarded by mu. */
    struct in_listener listeners[LISTENERS_MAX];
    unsigned nlisteners;
    struct hf_list ends;
    struct hf_msgq queue;
    bool posted;
};

static struct in_tr *in_tr_of(struct hf_tr *base)
{
    return hf_container_of(base, struct in_tr, base);
}

static void net_lock(struct in_net *n)
{
    HF_ASSERT(pthread_mutex_lock(&n->mu) == 0);
}

static void net_unlock(struct in_net *n)
{
    HF_ASSERT(pthread_mutex_unlock(&n->mu) == 0);
}

static void net_destroy(void *net)
{
    struct in_net *n = net;

    (void)pthread_mutex_destroy(&n->mu);
    free(n);
}

static int net_get(struct hf_env *env, struct in_net **ret)
{
    struct in_net *n = hf_env_net(env), *set;

    if (!n) {
        n = calloc(1, sizeof(*n));
        if (!n)
            return HF_E_NOMEM;
        (void)pthread_mutex_init(&n->mu, NULL);
        hf_list_init(&n->listeners);
        n->next_id = 1ull << 32;
        set = hf_env_net_set(env, n, net_destroy);
        if (set != n)
            net_destroy(n);
        n = set;
    }
    *ret = n;
    return 0;
}

/* ---- with mu held ---- */

static struct in_listener *net_find(const struct in_net *n, const char *url)
{
    HF_LIST_FOREACH(it, &n->listeners)
    {
        struct in_listener *l = hf_container_of(it, struct in_listener, link);

        if (strcmp(l->url, url) == 0)
            return l;
    }
    return NULL;
}

static struct in_end *end_find(const struct in_tr *t, uint64_t id)
{
    HF_LIST_FOREACH(it, &t->ends)
    {
        struct in_end *e = hf_container_of(it, struct in_end, link);

        if (e->id == id)
            return e;
    }
    return NULL;
}

static void push(struct in_tr *t, struct hf_rpc_msg *m)
{
    hf_msgq_push(&t->queue, m);
    if (t->posted)
        return;
    t->posted = true;
    hf_loop_post(t->loop, &t->task);
}

static void end_ending(struct in_end *e)
{
    if (e->ending)
        return;
    e->ending = true;
    push(e->tr, &e->down);
}

static void end_unlink(struct in_end *e)
{
    if (e->other)
        e->other->other = NULL;
    hf_list_remove(&e->link);
}

/* ---- the loop's thread ---- */

static struct in_end *end_new(struct in_tr *t)
{
    struct in_end *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->tr = t;
    e->up.kind = KIND_UP;
    e->down.kind = KIND_DOWN;
    hf_list_init(&e->link);
    return e;
}

static void redial(struct in_tr *t)
{
    hf_timer_set(&t->dial_timer, t->backoff_ns);
    t->backoff_ns = t->backoff_ns * 2 < BACKOFF_MAX_NS ? t->backoff_ns * 2 : BACKOFF_MAX_NS;
}

static void connect_ends(struct in_net *n, struct in_end *a, struct in_end *b)
{
    a->id = b->id = a->up.peer = a->down.peer = b->up.peer = b->down.peer = n->next_id++;
    a->other = b;
    b->other = a;
    hf_list_push_back(&a->tr->ends, &a->link);
    hf_list_push_back(&b->tr->ends, &b->link);
    push(a->tr, &a->up);
    push(b->tr, &b->up);
}

static void on_dial(struct hf_timer *timer)
{
    struct in_tr *t = hf_container_of(timer, struct in_tr, dial_timer);
    struct in_end *mine = end_new(t), *theirs = end_new(NULL);
    struct in_listener *l;

    net_lock(t->net);
    l = net_find(t->net, t->url);
    if (l && mine && theirs) {
        theirs->tr = l->tr;
        connect_ends(t->net, mine, theirs);
        mine = theirs = NULL;
    }
    net_unlock(t->net);
    if (!mine && !theirs) {
        t->backoff_ns = BACKOFF_MIN_NS;
        return;
    }
    free(mine);
    free(theirs);
    redial(t);
}

static void in_tr_destroy(struct in_tr *t)
{
    free(t);
}

static void raise_down(struct in_tr *t, struct hf_rpc_msg *m)
{
    struct in_end *e = hf_container_of(m, struct in_end, down);
    uint64_t id = e->id;

    net_lock(t->net);
    end_unlink(e);
    net_unlock(t->net);
    free(e);
    t->base.ev->down(t->base.arg, id);
    if (!t->closed && !t->server)
        redial(t);
}

static void drain(struct hf_task *task)
{
    struct in_tr *t = hf_container_of(task, struct in_tr, task);
    struct hf_rpc_msg *m;

    net_lock(t->net);
    t->posted = false;
    t->draining = t->queue;
    t->queue = (struct hf_msgq){0};
    net_unlock(t->net);
    t->in_drain = true;
    while (!t->closed && (m = hf_msgq_pop(&t->draining)) != NULL) {
        if (m->kind == KIND_UP)
            t->base.ev->up(t->base.arg, &t->base, m->peer);
        else if (m->kind == KIND_DOWN)
            raise_down(t, m);
        else
            t->base.ev->recv(t->base.arg, m->peer, m);
    }
    t->in_drain = false;
    if (t->closed)
        in_tr_destroy(t);
}

/* ---- operations ---- */

static int in_listen(struct hf_tr *base, const char *url, char *ret_url, size_t ret_size)
{
    struct in_tr *t = in_tr_of(base);
    struct in_listener *l = &t->listeners[t->nlisteners];
    int rc = 0;

    net_lock(t->net);
    if (net_find(t->net, url)) {
        rc = HF_E_ADDRINUSE;
    } else if (t->nlisteners == LISTENERS_MAX) {
        rc = HF_E_TOOBIG;
    } else {
        l->tr = t;
        (void)snprintf(l->url, sizeof(l->url), "%s", url);
        hf_list_push_back(&t->net->listeners, &l->link);
        t->nlisteners++;
        (void)snprintf(ret_url, ret_size, "%s", url);
    }
    net_unlock(t->net);
    return rc;
}

static int in_dial(struct hf_tr *base, const char *url)
{
    struct in_tr *t = in_tr_of(base);

    (void)snprintf(t->url, sizeof(t->url), "%s", url);
    hf_timer_set(&t->dial_timer, 0);
    return 0;
}

static void in_send(struct hf_tr *base, uint64_t peer, struct hf_rpc_msg *m)
{
    struct in_tr *t = in_tr_of(base);
    struct in_end *e;

    net_lock(t->net);
    e = end_find(t, peer);
    if (e && e->other && !e->ending && !e->other->ending) {
        m->peer = peer;
        push(e->other->tr, m);
        m = NULL;
    }
    net_unlock(t->net);
    hf_rpc_msg_unref(m);
}

static void in_pause(struct hf_tr *base, bool paused)
{
    (void)base;
    (void)paused;
}

static void in_drop(struct hf_tr *base, uint64_t peer)
{
    struct in_tr *t = in_tr_of(base);
    struct in_end *e;

    net_lock(t->net);
    e = end_find(t, peer);
    if (e) {
        end_ending(e);
        if (e->other)
            end_ending(e->other);
    }
    net_unlock(t->net);
}

static void queue_clear(struct hf_msgq *q)
{
    struct hf_rpc_msg *m;

    while ((m = hf_msgq_pop(q)) != NULL) {
        if (m->kind == KIND_MSG)
            hf_rpc_msg_unref(m); /* the others are part of their ends */
    }
}

static void in_close(struct hf_tr *base)
{
    struct in_tr *t = in_tr_of(base);
    struct hf_list *it;

    net_lock(t->net);
    for (unsigned i = 0; i < t->nlisteners; i++)
        hf_list_remove(&t->listeners[i].link);
    queue_clear(&t->draining);
    queue_clear(&t->queue);
    while ((it = hf_list_pop_front(&t->ends)) != NULL) {
        struct in_end *e = hf_container_of(it, struct in_end, link);

        if (e->other)
            end_ending(e->other);
        end_unlink(e);
        free(e);
    }
    net_unlock(t->net);
    hf_timer_cancel(&t->dial_timer);
    hf_loop_cancel(t->loop, &t->task);
    t->closed = true;
    if (!t->in_drain)
        in_tr_destroy(t);
}

static const struct hf_tr_ops in_ops = {
    .listen = in_listen,
    .dial = in_dial,
    .msg_new = hf_rpc_msg_plain,
    .send = in_send,
    .pause = in_pause,
    .drop = in_drop,
    .close = in_close,
};

int hf_tr_inproc_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                      struct hf_tr **ret)
{
    struct in_tr *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return HF_E_NOMEM;
    rc = net_get(hf_loop_env(loop), &t->net);
    if (rc) {
        free(t);
        return rc;
    }
    t->base = (struct hf_tr){&in_ops, ev, arg};
    t->loop = loop;
    t->server = server;
    t->task.fn = drain;
    t->backoff_ns = BACKOFF_MIN_NS;
    hf_list_init(&t->ends);
    hf_timer_init(&t->dial_timer, loop, on_dial);
    *ret = &t->base;
    return 0;
}

bool hf_tr_inproc_served(struct hf_env *env, const char *url)
{
    struct in_net *n = hf_env_net(env);
    bool served;

    if (!n)
        return false;
    net_lock(n);
    served = net_find(n, url) != NULL;
    net_unlock(n);
    return served;
}

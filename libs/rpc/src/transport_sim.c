/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on virtual time. A connection is two ends, each owned by its side's transport; what one
 * side does to the other travels as a packet: a task posted to the other loop, which sets a timer
 * for the time of arrival. The network itself (who listens where, which faults are on) hangs on the
 * simulated env. Everything runs in one thread, so nothing is locked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "holdfast/rpc_sim.h"
#include "transport.h"

#define LISTENERS_MAX  8u
#define URL_SIZE       256u
#define BACKOFF_MIN_NS (10 * HF_NS_PER_MS)
#define BACKOFF_MAX_NS (1000 * HF_NS_PER_MS)
#define LATENCY_MIN_NS (50 * HF_NS_PER_US)
#define LATENCY_MAX_NS (150 * HF_NS_PER_US)

struct sim_net {
    struct hf_env *env;
    struct hf_rpc_sim_faults faults;
    struct hf_list listeners; /* sim_listener.link */
    uint64_t next_id;         /* of connections */
};

struct sim_listener {
    struct hf_list link;
    struct sim_tr *tr;
    char url[URL_SIZE];
    bool parted;
};

struct sim_end {
    struct hf_list link; /* of tr->ends */
    struct sim_tr *tr;
    struct sim_end *other; /* NULL: gone */
    uint64_t id;           /* the same at both ends; what the owner knows as its peer */
    bool up;               /* the owner has been told */
    bool dropping;
    uint64_t last_at_ns; /* arrival of the last packet to here */
    char url[URL_SIZE];
};

struct sim_tr {
    struct hf_tr base;
    struct hf_loop *loop;
    struct sim_net *net;
    bool server, paused, closed;
    unsigned raising; /* inside an event */
    struct sim_listener listeners[LISTENERS_MAX];
    unsigned nlisteners;
    struct hf_list ends;
    struct hf_list packets; /* on their way here */
    char url[URL_SIZE];     /* client: where to */
    struct hf_timer dial_timer;
    uint64_t backoff_ns;
};

enum packet_kind { PK_UP, PK_DOWN, PK_MSG };

struct packet {
    struct hf_list link; /* of to->packets */
    struct hf_task task;
    struct hf_timer timer;
    struct sim_tr *to;
    enum packet_kind kind;
    uint64_t id;
    uint64_t at_ns;
    bool held; /* arrived while paused */
    struct hf_rpc_msg *msg;
};

static struct sim_tr *sim_tr_of(struct hf_tr *base)
{
    return hf_container_of(base, struct sim_tr, base);
}

/* ---- the network ---- */

static int net_get(struct hf_env *env, struct sim_net **ret)
{
    struct sim_net *n = hf_env_net(env);

    if (!n) {
        n = calloc(1, sizeof(*n));
        if (!n)
            return HF_E_NOMEM;
        n->env = env;
        n->next_id = 1ull << 32;
        hf_list_init(&n->listeners);
        (void)hf_env_net_set(env, n, free); /* one thread */
    }
    *ret = n;
    return 0;
}

static struct sim_listener *net_find(const struct sim_net *n, const char *url)
{
    HF_LIST_FOREACH(it, &n->listeners)
    {
        struct sim_listener *l = hf_container_of(it, struct sim_listener, link);

        if (strcmp(l->url, url) == 0)
            return l;
    }
    return NULL;
}

static bool parted(const struct sim_net *n, const char *url)
{
    const struct sim_listener *l = net_find(n, url);

    return l && l->parted;
}

/* True once in a million / ppm. */
static bool chance(const struct sim_net *n, uint32_t ppm)
{
    return ppm > 0 && hf_env_random_u64(n->env) % 1000000 < ppm;
}

static uint64_t latency(const struct sim_net *n)
{
    uint64_t min = n->faults.latency_min_ns, max = n->faults.latency_max_ns;

    if (max == 0) {
        min = LATENCY_MIN_NS;
        max = LATENCY_MAX_NS;
    }
    return max > min ? min + hf_env_random_u64(n->env) % (max - min) : min;
}

static struct sim_end *end_find(const struct sim_tr *t, uint64_t id)
{
    HF_LIST_FOREACH(it, &t->ends)
    {
        struct sim_end *e = hf_container_of(it, struct sim_end, link);

        if (e->id == id)
            return e;
    }
    return NULL;
}

static void end_free(struct sim_end *e)
{
    if (e->other)
        e->other->other = NULL;
    hf_list_remove(&e->link);
    free(e);
}

/* ---- packets ---- */

static void packet_free(struct packet *p)
{
    hf_list_remove(&p->link);
    hf_timer_cancel(&p->timer);
    hf_loop_cancel(p->to->loop, &p->task);
    hf_rpc_msg_unref(p->msg);
    free(p);
}

static void sim_tr_destroy(struct sim_tr *t)
{
    free(t);
}

static void redial(struct sim_tr *t);

static void raise_event(struct sim_tr *t, const struct packet *p, struct hf_rpc_msg *msg)
{
    struct sim_end *e = end_find(t, p->id);
    const struct hf_tr_events *ev = t->base.ev;
    bool was_up;

    if (!e || (p->kind == PK_MSG && !e->up)) {
        hf_rpc_msg_unref(msg);
        return;
    }
    t->raising++;
    switch (p->kind) {
    case PK_UP:
        e->up = true;
        t->backoff_ns = BACKOFF_MIN_NS;
        ev->up(t->base.arg, &t->base, p->id);
        break;
    case PK_DOWN:
        was_up = e->up;
        end_free(e);
        if (was_up)
            ev->down(t->base.arg, p->id);
        if (!t->closed && !t->server)
            redial(t);
        break;
    case PK_MSG:
        ev->recv(t->base.arg, p->id, msg);
        break;
    }
    if (--t->raising == 0 && t->closed)
        sim_tr_destroy(t);
}

static void on_arrival(struct hf_timer *timer)
{
    struct packet *p = hf_container_of(timer, struct packet, timer);
    struct sim_tr *t = p->to;
    struct hf_rpc_msg *msg = p->msg;
    struct packet copy = *p;

    if (t->paused && p->kind == PK_MSG) {
        p->held = true;
        return;
    }
    p->msg = NULL;
    packet_free(p);
    raise_event(t, &copy, msg);
}

/* On the receiving loop, whose timers only it may set. */
static void on_posted(struct hf_task *task)
{
    struct packet *p = hf_container_of(task, struct packet, task);
    uint64_t now = hf_env_mono_ns(p->to->net->env);

    hf_timer_set(&p->timer, p->at_ns > now ? p->at_ns - now : 0);
}

/* Takes msg. Without memory the packet is lost, which the numbering notices. */
static void packet_send(struct sim_end *to, enum packet_kind kind, struct hf_rpc_msg *msg,
                        uint64_t delay, bool in_order)
{
    struct packet *p = calloc(1, sizeof(*p));
    uint64_t now = hf_env_mono_ns(to->tr->net->env);

    if (!p) {
        hf_rpc_msg_unref(msg);
        return;
    }
    p->to = to->tr;
    p->kind = kind;
    p->id = to->id;
    p->msg = msg;
    p->at_ns = now + delay;
    if (in_order) {
        if (p->at_ns < to->last_at_ns)
            p->at_ns = to->last_at_ns;
        to->last_at_ns = p->at_ns;
    }
    p->task.fn = on_posted;
    hf_timer_init(&p->timer, to->tr->loop, on_arrival);
    hf_list_push_back(&to->tr->packets, &p->link);
    hf_loop_post(to->tr->loop, &p->task);
}

/* ---- connecting ---- */

static struct sim_end *end_new(struct sim_tr *t, const char *url, uint64_t id)
{
    struct sim_end *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->tr = t;
    e->id = id;
    (void)snprintf(e->url, sizeof(e->url), "%s", url);
    hf_list_push_back(&t->ends, &e->link);
    return e;
}

static void redial(struct sim_tr *t)
{
    uint64_t half = t->backoff_ns / 2;

    hf_timer_set(&t->dial_timer, half + hf_env_random_u64(t->net->env) % (half + 1));
    t->backoff_ns = t->backoff_ns * 2 < BACKOFF_MAX_NS ? t->backoff_ns * 2 : BACKOFF_MAX_NS;
}

static void on_dial(struct hf_timer *timer)
{
    struct sim_tr *t = hf_container_of(timer, struct sim_tr, dial_timer);
    struct sim_listener *l = net_find(t->net, t->url);
    struct sim_end *mine, *theirs;
    uint64_t id = t->net->next_id;

    if (!l || l->parted) {
        redial(t);
        return;
    }
    mine = end_new(t, t->url, id);
    theirs = end_new(l->tr, t->url, id);
    if (!mine || !theirs) {
        if (mine)
            end_free(mine);
        if (theirs)
            end_free(theirs);
        redial(t);
        return;
    }
    t->net->next_id++;
    mine->other = theirs;
    theirs->other = mine;
    packet_send(theirs, PK_UP, NULL, latency(t->net), true);
    packet_send(mine, PK_UP, NULL, latency(t->net), true);
}

/* ---- operations ---- */

static int sim_listen(struct hf_tr *base, const char *url, char *ret_url, size_t ret_size)
{
    struct sim_tr *t = sim_tr_of(base);
    struct sim_listener *l = &t->listeners[t->nlisteners];

    if (net_find(t->net, url))
        return HF_E_ADDRINUSE;
    if (t->nlisteners == LISTENERS_MAX)
        return HF_E_TOOBIG;
    l->tr = t;
    (void)snprintf(l->url, sizeof(l->url), "%s", url);
    hf_list_push_back(&t->net->listeners, &l->link);
    t->nlisteners++;
    (void)snprintf(ret_url, ret_size, "%s", url);
    return 0;
}

static int sim_dial(struct hf_tr *base, const char *url)
{
    struct sim_tr *t = sim_tr_of(base);

    (void)snprintf(t->url, sizeof(t->url), "%s", url);
    hf_timer_set(&t->dial_timer, 0);
    return 0;
}

static void sim_drop(struct hf_tr *base, uint64_t peer)
{
    struct sim_end *e = end_find(sim_tr_of(base), peer);

    if (!e || e->dropping)
        return;
    e->dropping = true;
    packet_send(e, PK_DOWN, NULL, 0, true);
    if (e->other && !e->other->dropping && !parted(e->tr->net, e->url)) {
        e->other->dropping = true;
        packet_send(e->other, PK_DOWN, NULL, latency(e->tr->net), true);
    }
}

static void sim_send(struct hf_tr *base, uint64_t peer, struct hf_rpc_msg *m)
{
    struct sim_tr *t = sim_tr_of(base);
    const struct sim_net *n = t->net;
    struct sim_end *e = end_find(t, peer);
    bool lost = !e || parted(n, e->url) || chance(n, n->faults.drop_ppm);
    struct hf_rpc_msg *twin;

    if (lost || !e->other || e->dropping) {
        hf_rpc_msg_unref(m);
        if (!lost && !e->other)
            sim_drop(base, peer); /* nobody there any more: reset */
        return;
    }
    if (chance(n, n->faults.dup_ppm) && (twin = hf_rpc_msg_plain(base, m->len)) != NULL) {
        memcpy(twin->data, m->data, m->len);
        packet_send(e->other, PK_MSG, twin, latency(n), true);
    }
    if (chance(n, n->faults.reorder_ppm))
        packet_send(e->other, PK_MSG, m, latency(n) * 4, false);
    else
        packet_send(e->other, PK_MSG, m, latency(n), true);
}

static void sim_pause(struct hf_tr *base, bool paused)
{
    struct sim_tr *t = sim_tr_of(base);

    t->paused = paused;
    if (paused)
        return;
    HF_LIST_FOREACH(it, &t->packets)
    {
        struct packet *p = hf_container_of(it, struct packet, link);

        if (p->held) {
            p->held = false;
            hf_timer_set(&p->timer, 0);
        }
    }
}

static void sim_close(struct hf_tr *base)
{
    struct sim_tr *t = sim_tr_of(base);
    struct hf_list *it;

    for (unsigned i = 0; i < t->nlisteners; i++)
        hf_list_remove(&t->listeners[i].link);
    hf_timer_cancel(&t->dial_timer);
    while ((it = hf_list_pop_front(&t->packets)) != NULL)
        packet_free(hf_container_of(it, struct packet, link));
    while ((it = hf_list_pop_front(&t->ends)) != NULL) {
        struct sim_end *e = hf_container_of(it, struct sim_end, link);

        if (e->other && !e->other->dropping && !parted(t->net, e->url)) {
            e->other->dropping = true;
            packet_send(e->other, PK_DOWN, NULL, latency(t->net), true);
        }
        end_free(e);
    }
    t->closed = true;
    if (!t->raising)
        sim_tr_destroy(t);
}

static const struct hf_tr_ops sim_ops = {
    .listen = sim_listen,
    .dial = sim_dial,
    .msg_new = hf_rpc_msg_plain,
    .send = sim_send,
    .pause = sim_pause,
    .drop = sim_drop,
    .close = sim_close,
};

int hf_tr_sim_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                   struct hf_tr **ret)
{
    struct sim_tr *t = calloc(1, sizeof(*t));
    int rc;

    if (!t)
        return HF_E_NOMEM;
    rc = net_get(hf_loop_env(loop), &t->net);
    if (rc) {
        free(t);
        return rc;
    }
    t->base = (struct hf_tr){&sim_ops, ev, arg};
    t->loop = loop;
    t->server = server;
    t->backoff_ns = BACKOFF_MIN_NS;
    hf_list_init(&t->ends);
    hf_list_init(&t->packets);
    hf_timer_init(&t->dial_timer, loop, on_dial);
    *ret = &t->base;
    return 0;
}

/* ---- faults ---- */

int hf_rpc_sim_faults(struct hf_env *env, const struct hf_rpc_sim_faults *f)
{
    struct sim_net *n;
    int rc = net_get(env, &n);

    if (rc == 0)
        n->faults = *f;
    return rc;
}

int hf_rpc_sim_partition(struct hf_env *env, const char *url, bool on)
{
    struct sim_net *n;
    struct sim_listener *l;
    int rc = net_get(env, &n);

    if (rc)
        return rc;
    l = net_find(n, url);
    if (!l)
        return HF_E_INVAL;
    l->parted = on;
    return 0;
}

int hf_rpc_sim_cut(struct hf_env *env, const char *url)
{
    struct sim_net *n;
    struct sim_listener *l;
    int rc = net_get(env, &n);

    if (rc)
        return rc;
    l = net_find(n, url);
    if (!l)
        return HF_E_INVAL;
    HF_LIST_FOREACH(it, &l->tr->ends)
    {
        struct sim_end *e = hf_container_of(it, struct sim_end, link);

        if (strcmp(e->url, url) == 0)
            sim_drop(&l->tr->base, e->id);
    }
    return 0;
}

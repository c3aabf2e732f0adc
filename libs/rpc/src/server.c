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
 * turn. A peer that does not take its replies for a while loses its connection, so that it cannot
 * hold memory for ever; until then what it can make us hold is bounded (struct hf_rpc_limits).
 *
 * A request outlives its connection: it holds a reference to its peer, and its reply goes nowhere.
 */
#include "server_priv.h"

#include <stdlib.h>

#include "holdfast/err.h"

static const struct hf_rpc_limits limits_default = {
    .max_peers = 4096,
    .max_inflight = 4096,
    .max_request_bytes = (size_t)256 << 20,
    .max_peer_inflight = 2048,
    .max_peer_reply_bytes = (size_t)128 << 20,
    .max_reply_bytes = (size_t)512 << 20,
    .stall_timeout_ms = 30000,
    .idle_timeout_ms = 600000,
};

/* ---- peers ---- */

void srv_peer_unref(struct peer *p)
{
    if (--p->refs == 0)
        free(p);
}

static void peer_gone(struct peer *p)
{
    struct hf_rpc_server *s = p->server;

    p->gone = true;
    chan_fini(&p->chan);
    srv_add(&s->stats.reply_bytes, 0 - (uint64_t)p->counted);
    p->counted = 0;
    hf_list_remove(&p->dirty);
    hf_list_remove(&p->link);
    (void)hf_map_del(&s->by_id, p->id);
    srv_add(&s->stats.peers, (uint64_t)-1);
    srv_peer_unref(p);
}

void srv_drop(struct peer *p)
{
    struct hf_tr *tr = p->chan.tr;
    uint64_t id = p->id;

    if (p->gone)
        return;
    peer_gone(p);
    tr->ops->drop(tr, id);
}

void srv_recount(struct peer *p)
{
    size_t now = p->gone ? 0 : chan_held_bytes(&p->chan);

    srv_add(&p->server->stats.reply_bytes, (uint64_t)now - p->counted);
    p->counted = now;
}

void srv_mark_dirty(struct peer *p)
{
    srv_recount(p);
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
    p->stall_since_ns = srv_now_ns(s);
    if (!hf_timer_armed(&s->stall_timer))
        hf_timer_set(&s->stall_timer, s->opts.limits.stall_timeout_ms * HF_NS_PER_MS);
}

static void on_stall_timer(struct hf_timer *timer)
{
    struct hf_rpc_server *s = hf_container_of(timer, struct hf_rpc_server, stall_timer);
    uint64_t now = srv_now_ns(s), most = s->opts.limits.stall_timeout_ms * HF_NS_PER_MS;
    bool again = false;

    HF_LIST_FOREACH_SAFE(it, tmp, &s->peers)
    {
        struct peer *p = hf_container_of(it, struct peer, link);

        stall_check(p);
        if (p->stall_since_ns && now - p->stall_since_ns >= most) {
            srv_add(&s->stats.peers_stalled, 1);
            srv_drop(p);
        } else if (p->stall_since_ns) {
            again = true;
        }
    }
    if (again && !hf_timer_armed(timer))
        hf_timer_set(timer, most / 4);
}

static void on_idle_timer(struct hf_timer *timer)
{
    struct hf_rpc_server *s = hf_container_of(timer, struct hf_rpc_server, idle_timer);
    uint64_t now = srv_now_ns(s), most = s->opts.limits.idle_timeout_ms * HF_NS_PER_MS;

    HF_LIST_FOREACH_SAFE(it, tmp, &s->peers)
    {
        struct peer *p = hf_container_of(it, struct peer, link);

        if (p->inflight == 0 && now - p->active_ns >= most) {
            srv_add(&s->stats.peers_idle, 1);
            srv_drop(p);
        }
    }
    if (s->stats.peers)
        hf_timer_set(timer, most / 4 + 1);
}

static void peer_flush(struct peer *p)
{
    struct hf_rpc_server *s = p->server;
    struct hf_rpc_msg *m;

    while ((m = chan_next(&p->chan)) != NULL) {
        srv_add(&s->stats.msgs_out, 1);
        srv_add(&s->stats.bytes_out, m->len);
        chan_send(&p->chan, p->id, m);
    }
    chan_tell(&p->chan, p->id);
    srv_recount(p);
    stall_check(p);
}

/* ---- what is pending ---- */

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
        if (s->stats.inflight >= s->opts.limits.max_inflight ||
            s->stats.request_bytes >= s->opts.limits.max_request_bytes) {
            done = false;
            break;
        }
        (void)hf_wire_next(&s->reader, &e, &body, &bulk);
        srv_dispatch(p, m, &e, body, bulk);
    }
    if (done && !p->gone) {
        chan_took(&p->chan);
        srv_mark_dirty(p);
    }
    srv_peer_unref(p);
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

/* ---- events ---- */

static void on_up(void *arg, struct hf_tr *t, uint64_t id)
{
    struct hf_rpc_server *s = arg;
    bool full = s->stats.peers >= s->opts.limits.max_peers;
    struct peer *p = full ? NULL : calloc(1, sizeof(*p));

    if (!p || hf_map_put(&s->by_id, id, p) != 0) {
        srv_add(&s->stats.peers_refused, 1);
        free(p);
        t->ops->drop(t, id);
        return;
    }
    chan_init(&p->chan, t);
    p->active_ns = srv_now_ns(s);
    if (!hf_timer_armed(&s->idle_timer))
        hf_timer_set(&s->idle_timer, s->opts.limits.idle_timeout_ms * HF_NS_PER_MS / 4 + 1);
    p->server = s;
    p->id = id;
    p->refs = 1;
    hf_list_init(&p->dirty);
    hf_list_push_back(&s->peers, &p->link);
    srv_add(&s->stats.peers, 1);
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

    srv_add(&s->stats.msgs_in, 1);
    srv_add(&s->stats.bytes_in, m->len);
    rc = hf_wire_open(m->data, m->len, &f, &rd);
    if (!p)
        goto out;
    p->active_ns = hf_loop_now_ns(s->loop);
    rc = rc ? rc : chan_check(&p->chan, &f);
    srv_recount(p);
    if (rc < 0) {
        srv_add(&s->stats.bad_frames, 1);
        srv_drop(p);
        goto out;
    }
    if (chan_pending(&p->chan))
        srv_mark_dirty(p); /* the window may have opened */
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

static void limits_fill(struct hf_rpc_limits *l)
{
#define FILL(field) l->field = l->field ? l->field : limits_default.field
    FILL(max_peers);
    FILL(max_inflight);
    FILL(max_request_bytes);
    FILL(max_peer_inflight);
    FILL(max_peer_reply_bytes);
    FILL(max_reply_bytes);
    FILL(stall_timeout_ms);
    FILL(idle_timeout_ms);
#undef FILL
}

const struct hf_rpc_limits *hf_rpc_server_limits(const struct hf_rpc_server *s)
{
    return &s->opts.limits;
}

int hf_rpc_server_new(struct hf_loop *loop, const struct hf_rpc_server_opts *opts,
                      struct hf_rpc_server **ret)
{
    struct hf_rpc_server *s = calloc(1, sizeof(*s));

    if (!s)
        return HF_E_NOMEM;
    s->loop = loop;
    if (opts)
        s->opts = *opts;
    limits_fill(&s->opts.limits);
    hf_list_init(&s->peers);
    hf_list_init(&s->dirty);
    s->turn_end.fn = on_turn_end;
    hf_timer_init(&s->stall_timer, loop, on_stall_timer);
    hf_timer_init(&s->idle_timer, loop, on_idle_timer);
    *ret = s;
    return 0;
}

int hf_rpc_server_add(struct hf_rpc_server *s, ProtobufCService *impl)
{
    uint32_t id = hf_wire_service_id(impl->descriptor->name);

    if (srv_find_service(s, id))
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
    hf_timer_cancel(&s->idle_timer);
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
    HF_ASSERT(s->stats.inflight == 0);
    while (s->free_reqs) {
        struct request *r = s->free_reqs;

        s->free_reqs = r->next_free;
        hf_arena_fini(&r->arena);
        free(r);
    }
    hf_map_fini(&s->by_id);
    free(s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: what makes a change run exactly once.
 *
 * A session at a shard has numbered slots. A change takes a slot and the slot's next sequence
 * number and keeps both until its answer is known; a connection lost in between means the same slot
 * and sequence again, and the shard answers from the stored reply if the change had run. Three ends
 * of a change:
 *
 *   RAN      the shard answered: the slot is free, the sequence is used up
 *   NOT_RUN  certainly nobody ran it: the slot is free, the sequence is taken back
 *   DOUBT    nobody will ever know (deadline passed): the slot is abandoned, for a late copy of the
 * change may still arrive under its sequence. When half of the slots are abandoned the session is
 *            retired and a new one opened; at the shard its lease ends it.
 *
 * A session that the shard does not know (expired, or the shard lost it) is retired as well, and
 * then a change that is in doubt cannot be asked about any more: it ends with TIMEDOUT; all others
 * start again under the new session, whose id is a new one.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

#define CLOSE_NS (2 * HF_NS_PER_SEC)

static void session_open(struct shard *s);

bool session_take(struct shard *s, struct hf_client_call *call)
{
    struct slot *slot;

    if (!s->session || !s->session->free)
        return false;
    slot = s->session->free;
    s->session->free = slot->next;
    s->session->used++;
    slot->sequence++;
    call->p.slot = slot;
    return true;
}

static void retire(struct shard *s)
{
    struct session *ss = s->session;

    s->session = NULL;
    ss->retired = true;
    if (ss->used == 0)
        free(ss);
}

void session_release(struct shard *s, struct hf_client_call *call, enum slot_fate fate)
{
    struct slot *slot = call->p.slot;
    struct session *ss = slot->session;

    call->p.slot = NULL;
    ss->used--;
    if (ss->retired) {
        if (ss->used == 0)
            free(ss);
        return;
    }
    if (fate == SLOT_DOUBT) {
        ss->abandoned++;
        if (ss->abandoned * 2 > s->client->opts.slots)
            retire(s);
    } else {
        if (fate == SLOT_NOT_RUN)
            slot->sequence--;
        slot->next = ss->free;
        ss->free = slot;
    }
    session_wake(s);
}

void session_lost(struct shard *s, const struct session *session)
{
    if (s->session == session)
        retire(s);
}

void session_wake(struct shard *s)
{
    if (hf_list_empty(&s->waiting) || s->client->closing)
        return;
    if (!s->session) {
        session_open(s);
        return;
    }
    while (!hf_list_empty(&s->waiting) && s->session && s->session->free)
        call_resume(hf_container_of(s->waiting.next, struct hf_client_call, p.link));
}

/* ---- opens: sessions that are renewed ---- */

static void session_told(struct shard *s, const Hf__SessionOpenRep *rep)
{
    struct hf_client *c = s->client;
    bool lost = rep->opens_lost || (s->session_boot && s->session_boot != rep->boot);

    s->renewed_ns = hf_loop_now_ns(c->loop);
    s->lease_ns = rep->lease_ms * HF_NS_PER_MS;
    s->session_boot = rep->boot;
    s->wanted = true;
    if (lost && c->opts.on_opens_lost)
        c->opts.on_opens_lost(c->opts.arg, s->id);
}

static void on_renewed(const Hf__SessionOpenRep *rep, void *arg)
{
    struct shard *s = hf_container_of(arg, struct shard, renew_rpc);

    s->renewing = false;
    if (s->client->closing || s->renew_rpc.status || !rep)
        return; /* the next tick tries again */
    session_told(s, rep);
}

static void session_request(const struct shard *s, uint64_t id, Hf__SessionOpenReq *req)
{
    const struct hf_client *c = s->client;

    hf__session_open_req__init(req);
    req->session = id;
    req->slots = c->opts.slots;
    req->client = (char *)(uintptr_t)(c->strings + strlen(c->strings) + 1);
    req->opens = c->opts.opens;
}

static void session_renew(struct shard *s)
{
    Hf__SessionOpenReq req;

    s->renewing = true;
    s->session_epoch = hf_rpc_client_epoch(s->server->rpc);
    s->renew_rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS, .target = s->id};
    session_request(s, s->session->id, &req);
    hf__meta__session_open(s->server->service, &req, on_renewed, &s->renew_rpc);
}

void sessions_tick(struct hf_client *c)
{
    uint64_t now = hf_loop_now_ns(c->loop);

    if (!c->opts.opens || c->closing)
        return;
    for (uint32_t i = 0; i < c->nshards; i++) {
        struct shard *s = c->shards[i];

        if (!s || !s->server || !s->wanted || s->renewing)
            continue;
        if (!s->session)
            session_open(s);
        else if (hf_rpc_client_epoch(s->server->rpc) != s->session_epoch ||
                 now - s->renewed_ns >= s->lease_ns / 3)
            session_renew(s);
    }
}

static int session_make(struct shard *s)
{
    unsigned n = s->client->opts.slots;
    struct session *ss = calloc(1, sizeof(*ss) + n * sizeof(ss->slots[0]));

    if (!ss)
        return HF_E_NOMEM;
    ss->id = s->open_id;
    for (unsigned i = n; i-- > 0;) {
        ss->slots[i] = (struct slot){.session = ss, .next = ss->free, .index = i};
        ss->free = &ss->slots[i];
    }
    s->session = ss;
    return 0;
}

static void on_open(const Hf__SessionOpenRep *rep, void *arg)
{
    struct shard *s = hf_container_of(arg, struct shard, open_rpc);
    struct hf_client *c = s->client;
    int status = s->open_rpc.status;

    s->opening = false;
    if (c->closing)
        return;
    if (status == 0 && !rep)
        status = HF_E_PROTO;
    if (status == 0)
        status = session_make(s);
    if (status == 0) {
        s->open_tries = 0;
        s->session_epoch = hf_rpc_client_epoch(s->server->rpc);
        session_told(s, rep);
        session_wake(s);
        return;
    }
    if (status == HF_E_NOTLEADER)
        hf_client_map_refresh(c);
    hf_timer_set(&s->open_timer, backoff_ns(c, ++s->open_tries));
}

static void on_open_timer(struct hf_timer *t)
{
    session_wake(hf_container_of(t, struct shard, open_timer));
}

/* Each try with a new id: the answer to an older one may have been lost. */
static void session_open(struct shard *s)
{
    struct hf_client *c = s->client;
    Hf__SessionOpenReq req;

    if (s->opening || (s->open_timer.fn && hf_timer_armed(&s->open_timer)))
        return;
    if (!s->open_timer.fn)
        hf_timer_init(&s->open_timer, c->loop, on_open_timer);
    do {
        s->open_id = hf_env_random_u64(c->env);
    } while (s->open_id == 0);
    s->opening = true;
    s->open_rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS, .target = s->id};
    session_request(s, s->open_id, &req);
    hf__meta__session_open(s->server->service, &req, on_open, &s->open_rpc);
}

/* ---- the end ---- */

struct session_closing {
    struct hf_client *client;
    struct hf_rpc_call rpc;
};

static void close_done(struct hf_client *c)
{
    hf_timer_cancel(&c->close_timer);
    if (c->closed) {
        void (*closed)(void *arg) = c->closed;

        c->closed = NULL;
        closed(c->closed_arg);
    }
}

static void on_close_timer(struct hf_timer *t)
{
    close_done(hf_container_of(t, struct hf_client, close_timer));
}

static void on_session_closed(const Hf__SessionCloseRep *rep, void *arg)
{
    struct session_closing *k = hf_container_of(arg, struct session_closing, rpc);
    struct hf_client *c = k->client;

    (void)rep;
    free(k);
    if (--c->closes == 0 && !c->freeing)
        close_done(c);
}

static void session_close(struct shard *s)
{
    Hf__SessionCloseReq req = HF__SESSION_CLOSE_REQ__INIT;
    struct session_closing *k = calloc(1, sizeof(*k));

    if (!k)
        return; /* its lease ends it */
    k->client = s->client;
    k->rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS, .target = s->id};
    req.session = s->session->id;
    s->client->closes++;
    hf__meta__session_close(s->server->service, &req, on_session_closed, &k->rpc);
}

void hf_client_close(struct hf_client *c, void (*closed)(void *arg), void *arg)
{
    c->closing = true;
    c->closed = closed;
    c->closed_arg = arg;
    hf_timer_init(&c->close_timer, c->loop, on_close_timer);
    for (uint32_t i = 0; i < c->nshards; i++)
        if (c->shards[i] && c->shards[i]->session && c->shards[i]->server)
            session_close(c->shards[i]);
    hf_timer_set(&c->close_timer, c->closes ? CLOSE_NS : 0);
}

void session_fini(struct shard *s)
{
    if (s->open_timer.fn)
        hf_timer_cancel(&s->open_timer);
    if (s->session)
        retire(s);
}

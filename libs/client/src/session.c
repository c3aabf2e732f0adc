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
    Hf__SessionOpenReq req = HF__SESSION_OPEN_REQ__INIT;

    if (s->opening || (s->open_timer.fn && hf_timer_armed(&s->open_timer)))
        return;
    if (!s->open_timer.fn)
        hf_timer_init(&s->open_timer, c->loop, on_open_timer);
    do {
        s->open_id = hf_env_random_u64(c->env);
    } while (s->open_id == 0);
    s->opening = true;
    s->open_rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS, .target = s->id};
    req.session = s->open_id;
    req.slots = c->opts.slots;
    req.client = c->strings + strlen(c->strings) + 1;
    hf__meta__session_open(s->server->service, &req, on_open, &s->open_rpc);
}

void session_fini(struct shard *s)
{
    if (s->open_timer.fn)
        hf_timer_cancel(&s->open_timer);
    if (s->session)
        retire(s);
}

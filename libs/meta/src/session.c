/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions and their reply slots: what makes a repeated change run once.
 *
 * A session lives until it is closed or was idle for SESSION_IDLE_NS: the row's seen time is moved
 * forward by its changes, at most once a minute, and every SESSION_OPEN removes a few that have
 * been idle. So clients that come and go leave a bounded number of rows.
 */
#include "holdfast/endian.h"
#include "meta_priv.h"

/* Of its opens; its reply slots live longer. */
#define SESSION_LEASE_NS (INT64_C(90) * HF_NSEC_PER_SEC)
#define SESSION_IDLE_NS  (INT64_C(24) * 3600 * HF_NSEC_PER_SEC)
#define SEEN_STEP_NS     (INT64_C(60) * HF_NSEC_PER_SEC)
#define EXPIRE_BATCH     4u

static int sess_get(struct hf_meta *m, uint64_t id, struct hf_sess *ret)
{
    uint8_t key[HF_KEY_SESS];
    struct hf_slice val;
    int r;

    hf_put_be64(key, id);
    r = hf_store_get(m->store, HF_T_SESS, hf_slice(key, sizeof(key)), &val);
    return r ? r : hf_sess_decode(val, ret);
}

static int sess_put(struct hf_meta *m, uint64_t id, const struct hf_sess *s)
{
    uint8_t key[HF_KEY_SESS], val[HF_SESS_VALUE_MAX];
    size_t n = hf_sess_encode(s, val);

    hf_put_be64(key, id);
    return hf_store_put(m->store, HF_T_SESS, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

/* The session and all of its slots. */
static int sess_del(struct hf_meta *m, uint64_t id)
{
    uint8_t key[HF_KEY_SLOT];
    struct hf_store_iter it;
    struct hf_slice k, v;
    int r;

    hf_put_be64(key, id);
    for (;;) {
        r = hf_store_seek(m->store, HF_T_SLOT, hf_slice(key, 8), hf_slice(key, 8), &it);
        if (r)
            return r;
        r = hf_store_next(&it, &k, &v);
        if (r == 0 && k.len != HF_KEY_SLOT)
            r = HF_E_CORRUPT;
        if (r == 0)
            memcpy(key, k.data, HF_KEY_SLOT);
        hf_store_iter_end(&it);
        if (r == HF_E_NOENT)
            break;
        if (r == 0)
            r = hf_store_del(m->store, HF_T_SLOT, hf_slice(key, HF_KEY_SLOT));
        if (r)
            return r;
    }
    return hf_store_del(m->store, HF_T_SESS, hf_slice(key, HF_KEY_SESS));
}

#define DROP_AT_ONCE 256u

/* With what it has open. Of very many opens the rest goes by the lease: the index of rows finds it.
 */
static int sess_end(struct hf_meta *m, uint64_t id, int64_t now_ns)
{
    unsigned n;
    int r = hf_opens_drop(m, id, now_ns, DROP_AT_ONCE, &n);

    return r ? r : sess_del(m, id);
}

/* Up to EXPIRE_BATCH sessions that have been idle too long. */
static int find_idle(struct hf_meta *m, int64_t now_ns, uint64_t ids[EXPIRE_BATCH], size_t *ret_n)
{
    struct hf_store_iter it;
    struct hf_slice key, val;
    struct hf_sess s;
    size_t n = 0;
    int r = hf_store_seek(m->store, HF_T_SESS, hf_slice(NULL, 0), hf_slice("", 1), &it);

    if (r)
        return r;
    while (r == 0 && n < EXPIRE_BATCH) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = key.len == HF_KEY_SESS ? hf_sess_decode(val, &s) : HF_E_CORRUPT;
        if (r == 0 && now_ns - s.seen_ns > SESSION_IDLE_NS)
            ids[n++] = hf_get_be64(key.data);
    }
    hf_store_iter_end(&it);
    if (r && r != HF_E_NOENT)
        return r;
    *ret_n = n;
    return 0;
}

int hf_meta_op_session_open(struct hf_meta *m, struct hf_meta_op *op, const Hf__SessionOpenReq *q,
                            Hf__SessionOpenRep *p)
{
    struct hf_sess s = {.opened_ns = op->now_ns}, old;
    uint64_t idle[EXPIRE_BATCH];
    size_t n;
    int r;

    if (q->session == 0 || q->slots == 0 || q->slots > HF_SESS_SLOTS_MAX)
        return HF_E_INVAL;
    s.client = hf_slice_str(q->client);
    if (s.client.len > HF_CLIENT_NAME_MAX)
        s.client.len = HF_CLIENT_NAME_MAX;
    r = sess_get(m, q->session, &old);
    if (r && r != HF_E_NOENT)
        return r;
    s.nslots = q->slots;
    s.flags = q->opens ? HF_SESS_OPENS : 0;
    p->opens_lost = true;
    if (r == 0) { /* a repeated call, or a client that comes back: its slots stay */
        p->opens_lost = (old.flags & HF_SESS_LOST) != 0;
        s.opened_ns = old.opened_ns;
        if (old.nslots > s.nslots)
            s.nslots = old.nslots;
    }
    s.seen_ns = op->now_ns;
    r = find_idle(m, op->now_ns, idle, &n);
    if (r)
        return r;
    op->event.op = HF__EVENT_OP__EV_SYSTEM;
    op->event.time_ns = op->now_ns;
    for (size_t k = 0; k < n && r == 0; k++)
        r = sess_end(m, idle[k], op->now_ns);
    if (r == 0)
        r = sess_put(m, q->session, &s);
    m->seen_session = 0;
    p->lease_ms = (uint32_t)(SESSION_LEASE_NS / 1000000);
    p->boot = op->boot;
    return r;
}

int hf_meta_op_session_close(struct hf_meta *m, struct hf_meta_op *op, const Hf__SessionCloseReq *q,
                             Hf__SessionCloseRep *p)
{
    struct hf_sess s;
    int r = sess_get(m, q->session, &s);

    (void)p;
    if (r)
        return r == HF_E_NOENT ? HF_E_NOSESSION : r;
    op->event.op = HF__EVENT_OP__EV_SYSTEM;
    op->event.time_ns = op->now_ns;
    m->seen_session = 0;
    return sess_end(m, q->session, op->now_ns);
}

/* ---- leases ---- */

/* seen is moved forward by changes, but only once in SEEN_STEP_NS. */
bool hf_session_late(struct hf_meta *m, uint64_t session, int64_t now_ns)
{
    struct hf_sess s;

    if (!m->started_ns || now_ns - m->started_ns < SESSION_LEASE_NS)
        return false; /* nobody could renew himself while the shard was away */
    return sess_get(m, session, &s) || now_ns - s.seen_ns > SESSION_LEASE_NS + SEEN_STEP_NS;
}

int hf_session_lose_opens(struct hf_meta *m, uint64_t session)
{
    uint8_t client[HF_CLIENT_NAME_MAX];
    struct hf_sess s;
    int r = sess_get(m, session, &s);

    if (r)
        return r == HF_E_NOENT ? 0 : r;
    if (s.flags & HF_SESS_LOST)
        return 0;
    if (s.client.len)
        memcpy(client, s.client.data, s.client.len);
    s.client.data = client;
    s.flags |= HF_SESS_LOST;
    return sess_put(m, session, &s);
}

int hf_session_any_opens(struct hf_meta *m, bool *ret)
{
    struct hf_store_iter it;
    struct hf_slice key, val;
    struct hf_sess s;
    int r = hf_store_seek(m->store, HF_T_SESS, hf_slice(NULL, 0), hf_slice("", 1), &it);

    *ret = false;
    if (r)
        return r;
    while (r == 0 && !*ret) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = hf_sess_decode(val, &s);
        if (r == 0)
            *ret = (s.flags & HF_SESS_OPENS) && !(s.flags & HF_SESS_LOST);
    }
    hf_store_iter_end(&it);
    return r == HF_E_NOENT ? 0 : r;
}

bool hf_session_grace(const struct hf_meta *m, int64_t now_ns)
{
    return m->grace && now_ns - m->started_ns < SESSION_LEASE_NS;
}

int hf_meta_slot_check(struct hf_meta *m, uint64_t session, uint32_t slot, uint64_t sequence,
                       enum hf_meta_slot *ret, int *ret_status, struct hf_slice *ret_reply)
{
    struct hf_slot stored = {.sequence = 0};
    uint8_t key[HF_KEY_SLOT];
    struct hf_slice val;
    struct hf_sess s;
    int r = sess_get(m, session, &s);

    if (r)
        return r == HF_E_NOENT ? HF_E_NOSESSION : r;
    if (slot >= s.nslots)
        return HF_E_INVAL;
    m->seen_session = session;
    m->seen_ns = s.seen_ns;
    hf_key_slot(key, session, (uint16_t)slot);
    r = hf_store_get(m->store, HF_T_SLOT, hf_slice(key, sizeof(key)), &val);
    if (r == 0)
        r = hf_slot_decode(val, &stored);
    if (r && r != HF_E_NOENT)
        return r;
    if (sequence == stored.sequence && r == 0) {
        *ret = HF_SLOT_REPLAY;
        *ret_status = stored.status;
        *ret_reply = stored.reply;
        return 0;
    }
    if (sequence <= stored.sequence)
        return HF_E_SEQUENCE;
    *ret = HF_SLOT_RUN;
    return 0;
}

static int sess_touch(struct hf_meta *m, uint64_t session)
{
    uint8_t client[HF_CLIENT_NAME_MAX];
    struct hf_sess s;
    int r;

    if (session == m->seen_session && m->now_ns - m->seen_ns < SEEN_STEP_NS)
        return 0;
    r = sess_get(m, session, &s);
    if (r)
        return r == HF_E_NOENT ? HF_E_NOSESSION : r;
    if (m->now_ns - s.seen_ns < SEEN_STEP_NS)
        return 0;
    if (s.client.len)
        memcpy(client, s.client.data, s.client.len);
    s.client.data = client;
    s.seen_ns = m->now_ns;
    return sess_put(m, session, &s);
}

int hf_meta_slot_store(struct hf_meta *m, uint64_t session, uint32_t slot, uint64_t sequence,
                       int status, struct hf_slice reply)
{
    struct hf_slot s = {.status = status, .sequence = sequence, .reply = reply};
    uint8_t key[HF_KEY_SLOT], val[HF_SLOT_VALUE_MAX];
    size_t n;
    int r;

    if (reply.len > HF_SLOT_REPLY_MAX)
        return HF_E_TOOBIG;
    if (slot >= HF_SESS_SLOTS_MAX)
        return HF_E_INVAL;
    r = sess_touch(m, session);
    if (r)
        return r;
    n = hf_slot_encode(&s, val);
    hf_key_slot(key, session, (uint16_t)slot);
    return hf_store_put(m->store, HF_T_SLOT, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens: who has which object open, so that one whose last name goes stays until its last open is
 * closed.
 *
 * An open is two rows of table opn: (ino, session), which tells whether an object is open, and
 * (0xff, session, ino), by which a session that ends is found. Inode numbers are positive, so the
 * two do not mix. A client counts its own opens; here a session has an object open or not.
 *
 * Nobody waits for an open to be durable: reading many small files would become a matter of fsyncs.
 * So a restart of the shard may lose the latest opens. A removal before the crash is lost with
 * them, for the log is in order. For what is removed after the restart there is a grace period, if
 * any session holds opens: a file whose last name goes is kept, as if it were open; sessions open
 * again what they have open when they see that the shard has restarted; and then what nobody has
 * opened goes (hf_meta_orphans_next). Nobody else sees such a file: without opens its handle is
 * stale.
 *
 * An object without names that is open has link count 0 and a row in table orph. The close that
 * ends its last open removes it, in the same record. A session that does not renew itself within
 * its lease loses its opens, in slices (hf_meta_opens_expire).
 */
#include "holdfast/endian.h"
#include "meta_priv.h"

#define KEY_OPEN  16u
#define KEY_INDEX 17u
#define CLOSE_MAX 256u
#define OPENS_MAX (1u << 20) /* of one session */

static const uint8_t row[8] = {HF_VALUE_VERSION};

static void key_open(uint8_t key[KEY_OPEN], uint64_t ino, uint64_t session)
{
    hf_put_be64(key, ino);
    hf_put_be64(key + 8, session);
}

static void key_index(uint8_t key[KEY_INDEX], uint64_t session, uint64_t ino)
{
    key[0] = 0xff;
    hf_put_be64(key + 1, session);
    hf_put_be64(key + 9, ino);
}

static int orph_set(struct hf_meta *m, uint64_t ino, bool on)
{
    uint8_t key[8];

    hf_put_be64(key, ino);
    if (!on)
        return hf_store_del(m->store, HF_T_ORPH, hf_slice(key, sizeof(key)));
    return hf_store_put(m->store, HF_T_ORPH, hf_slice(key, sizeof(key)),
                        hf_slice(row, sizeof(row)));
}

/* ---- rows ---- */

/* 0 or NOENT. */
static int first_with(struct hf_meta *m, struct hf_slice prefix, uint8_t *found, size_t len)
{
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r = hf_store_seek(m->store, HF_T_OPN, prefix, prefix, &it);

    if (r)
        return r;
    r = hf_store_next(&it, &key, &val);
    if (r == 0 && key.len != len)
        r = HF_E_CORRUPT;
    if (r == 0)
        memcpy(found, key.data, len);
    hf_store_iter_end(&it);
    return r;
}

int hf_open_any(struct hf_meta *m, uint64_t ino)
{
    uint8_t prefix[8], found[KEY_OPEN];

    hf_put_be64(prefix, ino);
    return first_with(m, hf_slice(prefix, sizeof(prefix)), found, sizeof(found));
}

/* 0, or NOENT. */
static int open_get(struct hf_meta *m, uint64_t ino, uint64_t session)
{
    uint8_t open[KEY_OPEN];
    struct hf_slice val;

    key_open(open, ino, session);
    return hf_store_get(m->store, HF_T_OPN, hf_slice(open, sizeof(open)), &val);
}

/* How many objects a session has open is only in memory; without memory for it the bound is not
 * sharp, which does no harm. */
static void count_add(struct hf_meta *m, uint64_t session, int n)
{
    uintptr_t count = (uintptr_t)hf_map_get(&m->opens, session);

    if (n < 0 && count == 0)
        return;
    count = n < 0 ? count - 1 : count + 1;
    (void)hf_map_put(&m->opens, session, (void *)count);
}

int hf_open_room(struct hf_meta *m, uint64_t ino, uint64_t session, bool *ret_new)
{
    int r = ino ? open_get(m, ino, session) : HF_E_NOENT;

    *ret_new = r == HF_E_NOENT;
    if (r != HF_E_NOENT)
        return r;
    return (uintptr_t)hf_map_get(&m->opens, session) < OPENS_MAX ? 0 : HF_E_NOSPC;
}

int hf_open_put(struct hf_meta *m, uint64_t ino, uint64_t session)
{
    uint8_t open[KEY_OPEN], index[KEY_INDEX];
    int r = open_get(m, ino, session);

    if (r != HF_E_NOENT)
        return r;
    key_open(open, ino, session);
    key_index(index, session, ino);
    count_add(m, session, 1);
    r = hf_store_put(m->store, HF_T_OPN, hf_slice(open, sizeof(open)), hf_slice(row, sizeof(row)));
    if (r == 0)
        r = hf_store_put(m->store, HF_T_OPN, hf_slice(index, sizeof(index)),
                         hf_slice(row, sizeof(row)));
    return r;
}

/* An open less; an object that nothing holds any more goes, but not while others may yet open it
 * again. Only the two rows are lazy: gc waits until what gave it its entries is durable, and so
 * must see the rest. */
static int open_del(struct hf_meta *m, uint64_t ino, uint64_t session, int64_t now_ns, bool lazy)
{
    uint8_t open[KEY_OPEN], index[KEY_INDEX];
    struct hf_inode i;
    int r = open_get(m, ino, session);

    if (r == 0)
        count_add(m, session, -1);
    else if (r != HF_E_NOENT)
        return r;
    key_open(open, ino, session);
    key_index(index, session, ino);
    hf_store_untracked(m->store, lazy);
    r = hf_store_del(m->store, HF_T_OPN, hf_slice(open, sizeof(open)));
    if (r == 0)
        r = hf_store_del(m->store, HF_T_OPN, hf_slice(index, sizeof(index)));
    hf_store_untracked(m->store, false);
    if (r == 0)
        r = hf_ino_get(m, ino, &i);
    if (r)
        return r == HF_E_NOENT ? 0 : r;
    if (i.nlink > 0 || i.type == HF__FILE_TYPE__FT_DIR || hf_session_grace(m, now_ns))
        return 0;
    r = hf_open_any(m, ino);
    if (r != HF_E_NOENT)
        return r;
    r = orph_set(m, ino, false);
    return r ? r : hf_obj_del(m, &i, now_ns);
}

int hf_open_orphan(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o)
{
    int r = orph_set(m, o->i.ino, true);

    if (r)
        return r;
    o->i.nlink = 0;
    o->i.parent = 0;
    hf_touch(&o->i, op->now_ns, false);
    return hf_obj_save(m, o);
}

int hf_opens_load(struct hf_meta *m)
{
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r = hf_store_seek(m->store, HF_T_OPN, hf_slice("\xff", 1), hf_slice("\xff", 1), &it);

    if (r)
        return r;
    while (r == 0) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0 && key.len != KEY_INDEX)
            r = HF_E_CORRUPT;
        if (r == 0)
            count_add(m, hf_get_be64((const uint8_t *)key.data + 1), 1);
    }
    hf_store_iter_end(&it);
    return r == HF_E_NOENT ? 0 : r;
}

/* ---- sessions that end ---- */

int hf_opens_drop(struct hf_meta *m, uint64_t session, int64_t now_ns, unsigned max,
                  unsigned *ret_n)
{
    uint8_t prefix[9], found[KEY_INDEX];
    unsigned n = 0;
    int r = 0;

    prefix[0] = 0xff;
    hf_put_be64(prefix + 1, session);
    while (n < max) {
        r = first_with(m, hf_slice(prefix, sizeof(prefix)), found, sizeof(found));
        if (r == 0)
            r = open_del(m, hf_get_be64(found + 9), session, now_ns, false);
        if (r)
            break;
        n++;
    }
    *ret_n = n;
    return r == HF_E_NOENT ? 0 : r;
}

/* The session of the first row at or after (session, 0): NOENT. */
static int next_session(struct hf_meta *m, uint64_t session, uint64_t *ret)
{
    uint8_t from[KEY_INDEX];
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    key_index(from, session, 0);
    r = hf_store_seek(m->store, HF_T_OPN, hf_slice(from, 1), hf_slice(from, sizeof(from)), &it);
    if (r)
        return r;
    r = hf_store_next(&it, &key, &val);
    if (r == 0 && key.len != KEY_INDEX)
        r = HF_E_CORRUPT;
    if (r == 0)
        *ret = hf_get_be64((const uint8_t *)key.data + 1);
    hf_store_iter_end(&it);
    return r;
}

int hf_meta_opens_expired(struct hf_meta *m, int64_t now_ns, uint64_t *cursor, uint64_t *ret)
{
    uint64_t session;
    int r;

    for (unsigned looked = 0; looked < 64; looked++) {
        r = next_session(m, *cursor, &session);
        if (r) {
            *cursor = 0;
            return r;
        }
        *cursor = session + 1;
        if (hf_session_late(m, session, now_ns)) {
            *ret = session;
            return 0;
        }
        if (*cursor == 0)
            break;
    }
    return HF_E_NOENT;
}

int hf_meta_opens_expire(struct hf_meta *m, uint64_t session, int64_t now_ns, unsigned max)
{
    unsigned n;
    int r = hf_session_lose_opens(m, session);

    return r ? r : hf_opens_drop(m, session, now_ns, max, &n);
}

/* ---- orphans ---- */

int hf_meta_orphans_next(struct hf_meta *m, int64_t now_ns, uint64_t *cursor, uint64_t *ret)
{
    struct hf_store_iter it;
    struct hf_slice key, val;
    uint8_t from[8];
    int r;

    if (hf_session_grace(m, now_ns) || !m->started_ns)
        return HF_E_NOENT;
    for (unsigned looked = 0; looked < 64; looked++) {
        uint64_t ino = 0;

        hf_put_be64(from, *cursor);
        r = hf_store_seek(m->store, HF_T_ORPH, hf_slice(NULL, 0), hf_slice(from, sizeof(from)),
                          &it);
        if (r == 0) {
            r = hf_store_next(&it, &key, &val);
            if (r == 0)
                ino = key.len == 8 ? hf_get_be64(key.data) : 0;
            hf_store_iter_end(&it);
        }
        if (r) {
            *cursor = 0;
            return r;
        }
        *cursor = ino + 1;
        r = hf_open_any(m, ino);
        if (r) {
            *ret = ino;
            return r == HF_E_NOENT ? 0 : r;
        }
    }
    return HF_E_NOENT;
}

int hf_meta_orphan_del(struct hf_meta *m, uint64_t ino, int64_t now_ns)
{
    struct hf_inode i;
    int r = hf_open_any(m, ino);

    if (r != HF_E_NOENT)
        return r;
    r = orph_set(m, ino, false);
    if (r == 0)
        r = hf_ino_get(m, ino, &i);
    if (r == HF_E_NOENT || (r == 0 && i.nlink > 0))
        return 0;
    return r ? r : hf_obj_del(m, &i, now_ns);
}

/* ---- operations ---- */

int hf_open_check(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, uint32_t want)
{
    if ((want & HF_W) && i->type == HF__FILE_TYPE__FT_DIR)
        return HF_E_ISDIR;
    return want ? hf_may(m, i, c, want & (HF_R | HF_W | HF_X)) : 0;
}

static int truncate_open(struct hf_meta *m, struct hf_meta_op *op, const Hf__OpenReq *q,
                         Hf__OpenRep *p, struct hf_obj *o)
{
    struct hf_resize z;
    int r = hf_size_prepare(m, op, o, 0, &z, &p->layout);

    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_TRUNCATE, &o->i, o->i.parent, hf_slice(NULL, 0), q->cred);
    if (r == 0)
        r = hf_size_apply(m, op, &o->i, q->cred, &z, &p->layout);
    if (r)
        return r;
    hf_touch(&o->i, op->now_ns, true);
    return hf_obj_save(m, o);
}

int hf_open_hold(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i,
                 const Hf__Cred *c)
{
    int r = 0;

    if (op->event.op == HF__EVENT_OP__EV_NONE) {
        op->lazy = true;
        r = hf_event(op, HF__EVENT_OP__EV_SYSTEM, i, 0, hf_slice(NULL, 0), c);
    }
    hf_store_untracked(m->store, true);
    return r ? r : hf_open_put(m, i->ino, op->session);
}

int hf_meta_op_open(struct hf_meta *m, struct hf_meta_op *op, const Hf__OpenReq *q, Hf__OpenRep *p)
{
    bool hold = q->hold && op->session;
    struct hf_obj o;
    int r = hf_obj_load_orphan(m, op, q->ino, q->gen, &o, &p->obj);

    if (r == 0 && o.i.nlink == 0 && !(hold && hf_session_grace(m, op->now_ns))) {
        r = hf_open_any(m, o.i.ino);
        r = r == HF_E_NOENT ? HF_E_STALE : r;
    }
    if (r)
        return r;
    r = hf_open_check(m, &o.i, q->cred, q->want | (q->truncate ? HF_W : 0u));
    if (r == 0 && q->truncate)
        r = hf_size_check(&o.i, 0);
    hold &= o.i.type != HF__FILE_TYPE__FT_DIR;
    if (r == 0 && hold)
        r = hf_open_room(m, o.i.ino, op->session, &hold);
    if (r == 0 && q->truncate)
        r = truncate_open(m, op, q, p, &o);
    return r || !hold ? r : hf_open_hold(m, op, &o.i, q->cred);
}

int hf_meta_op_close(struct hf_meta *m, struct hf_meta_op *op, const Hf__CloseReq *q,
                     Hf__CloseRep *p)
{
    int r = 0;

    (void)p;
    if (q->n_inos > CLOSE_MAX)
        return HF_E_INVAL;
    if (!op->session)
        return HF_E_NOSESSION;
    for (size_t k = 0; k < q->n_inos && r == 0; k++) {
        r = open_get(m, q->inos[k], op->session);
        if (r == 0) {
            op->event.op = HF__EVENT_OP__EV_SYSTEM;
            op->event.time_ns = op->now_ns;
            r = open_del(m, q->inos[k], op->session, op->now_ns, true);
        }
        r = r == HF_E_NOENT ? 0 : r;
    }
    op->lazy = r == 0;
    return r;
}

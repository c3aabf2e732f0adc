/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include "holdfast/assert.h"
#include "holdfast/err.h"

/* About what LMDB keeps in a page with others; beyond: pages of its own. */
#define VALUE_INLINE_MAX 2000u
#define PAGE_BYTES       4096u

void layers_init(struct layers *l)
{
    l->active = &l->tables[0];
}

void layers_fini(struct layers *l)
{
    mt_fini(&l->tables[0]);
    mt_fini(&l->tables[1]);
}

/* ---- one key ---- */

/* What frozen and base have. */
static int get_below(struct layers *l, unsigned table, struct hf_slice key,
                     struct hf_slice *ret_val)
{
    const struct mt_entry *e = l->frozen ? mt_find(l->frozen, table, key) : NULL;

    if (!e)
        return l->ops->get(l->p, table, key, ret_val);
    if (e->gone)
        return HF_E_NOENT;
    *ret_val = mt_val(e);
    return 0;
}

static void miss_set(struct layers_miss *m, struct hf_slice key)
{
    m->len = key.len <= sizeof(m->key) ? key.len : 0;
    memcpy(m->key, key.data, m->len);
}

static bool exists_below(struct layers *l, unsigned table, struct hf_slice key, int *rc)
{
    const struct layers_miss *m = &l->miss[table];
    struct hf_slice val;

    *rc = 0;
    if (m->len && hf_slice_eq(key, hf_slice(m->key, m->len)))
        return false;
    *rc = get_below(l, table, key, &val);
    if (*rc != HF_E_NOENT)
        return *rc == 0;
    *rc = 0;
    return false;
}

int layers_get(struct layers *l, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    const struct mt_entry *e = mt_find(l->active, table, key);
    int rc;

    if (e && e->gone)
        return HF_E_NOENT;
    if (e) {
        *ret_val = mt_val(e);
        return 0;
    }
    rc = get_below(l, table, key, ret_val);
    if (rc == HF_E_NOENT)
        miss_set(&l->miss[table], key);
    return rc;
}

/* An upper bound of what a new entry adds to the base: B-tree pages may stay half empty. */
static uint64_t growth(struct hf_slice key, struct hf_slice val)
{
    uint64_t n = 2 * (key.len + val.len + 16);

    return val.len > VALUE_INLINE_MAX ? n + PAGE_BYTES : n;
}

int layers_put(struct layers *l, unsigned table, struct hf_slice key, struct hf_slice val)
{
    struct memtable *m = l->active;
    struct mt_entry *e = mt_find(m, table, key);
    bool existed;
    int rc = 0;

    if (e) {
        existed = !e->gone;
        m->grown += val.len > e->vcap ? growth(key, val) : 0;
        rc = mt_set(m, e, val);
    } else {
        existed = exists_below(l, table, key, &rc);
        if (rc == 0)
            rc = mt_add(m, table, key, val, false);
        m->grown += growth(key, val);
        l->pos[table].scan = 0;
    }
    if (rc)
        return rc;
    m->delta[table] += !existed;
    m->changes++;
    return 0;
}

int layers_del(struct layers *l, unsigned table, struct hf_slice key)
{
    struct memtable *m = l->active;
    struct mt_entry *e = mt_find(m, table, key);
    int rc = 0;

    if (e) {
        if (e->gone)
            return HF_E_NOENT;
        e->gone = true;
    } else {
        if (!exists_below(l, table, key, &rc))
            return rc ? rc : HF_E_NOENT;
        rc = mt_add(m, table, key, hf_slice(NULL, 0), true);
        l->pos[table].scan = 0;
    }
    if (rc)
        return rc;
    m->delta[table]--;
    m->changes++;
    return 0;
}

int layers_count(struct layers *l, unsigned table, uint64_t *ret)
{
    int rc = l->ops->count(l->p, table, ret);

    *ret += (uint64_t)l->active->delta[table];
    if (l->frozen)
        *ret += (uint64_t)l->frozen->delta[table];
    return rc;
}

/* ---- in order ---- */

static int base_step(struct layers *l, unsigned table, struct hf_slice from, bool after)
{
    struct layers_pos *pos = &l->pos[table];
    int rc = l->ops->seek(l->p, table, from, after, pos->base_scan, &pos->base_key, &pos->base_val);

    pos->base_taken = false;
    pos->base_end = rc == HF_E_NOENT;
    return pos->base_end ? 0 : rc;
}

static int pos_start(struct layers *l, unsigned table, struct hf_slice from, bool after,
                     uint64_t scan)
{
    struct layers_pos *pos = &l->pos[table];

    pos->scan = scan;
    pos->base_scan = ++l->base_scans;
    pos->active = mt_seek(l->active, table, from, after);
    pos->frozen = l->frozen ? mt_seek(l->frozen, table, from, after) : NULL;
    return base_step(l, table, from, after);
}

/* The smallest key at which a layer stands; false: all are at their ends. */
static bool pos_least(const struct layers_pos *pos, struct hf_slice *ret)
{
    bool any = !pos->base_end;

    if (any)
        *ret = pos->base_key;
    if (pos->frozen && (!any || store_key_cmp(mt_key(pos->frozen), *ret) < 0)) {
        *ret = mt_key(pos->frozen);
        any = true;
    }
    if (pos->active && (!any || store_key_cmp(mt_key(pos->active), *ret) < 0)) {
        *ret = mt_key(pos->active);
        any = true;
    }
    return any;
}

/* A memtable's entry of the key, if it stands there; it steps on. */
static const struct mt_entry *take(struct mt_entry **at, struct hf_slice key)
{
    const struct mt_entry *e = *at;

    if (!e || store_key_cmp(mt_key(e), key) != 0)
        return NULL;
    *at = e->next[0];
    return e;
}

/* Takes the key from every layer that stands at it. True: the newest of them says that it is gone.
 */
static bool pos_take(struct layers_pos *pos, struct hf_slice key, struct hf_slice *ret_val)
{
    const struct mt_entry *a = take(&pos->active, key), *f = take(&pos->frozen, key);
    const struct mt_entry *e = a ? a : f;

    *ret_val = e ? mt_val(e) : pos->base_val;
    pos->base_taken = !pos->base_end && store_key_cmp(pos->base_key, key) == 0;
    return e && e->gone;
}

int layers_seek(struct layers *l, unsigned table, struct hf_slice from, bool after, uint64_t scan,
                struct hf_slice *ret_key, struct hf_slice *ret_val)
{
    struct layers_pos *pos = &l->pos[table];
    int rc = 0;

    if (!after || pos->scan != scan)
        rc = pos_start(l, table, from, after, scan);
    for (;;) {
        if (rc == 0 && pos->base_taken)
            rc = base_step(l, table, pos->base_key, true);
        if (rc)
            return rc;
        if (!pos_least(pos, ret_key))
            return HF_E_NOENT;
        if (!pos_take(pos, *ret_key, ret_val))
            return 0;
    }
}

/* ---- checkpoints ---- */

/* Entries have changed their layers. */
static void forget_positions(struct layers *l)
{
    for (unsigned t = 0; t < l->ntables; t++) {
        l->pos[t].scan = 0;
        l->miss[t].len = 0;
    }
}

void layers_freeze(struct layers *l, uint64_t applied)
{
    HF_ASSERT(!l->frozen);
    l->frozen = l->active;
    l->active = l->frozen == &l->tables[0] ? &l->tables[1] : &l->tables[0];
    l->frozen_applied = applied;
    forget_positions(l);
}

static int flush_table(struct layers *l, unsigned table)
{
    int rc = 0;

    for (const struct mt_entry *e = l->frozen->first[table][0]; e && rc == 0; e = e->next[0])
        rc = e->gone ? l->ops->del(l->p, table, mt_key(e))
                     : l->ops->put(l->p, table, mt_key(e), mt_val(e));
    return rc;
}

int layers_flush(struct layers *l)
{
    int rc = l->ops->begin(l->p);

    if (rc)
        return rc;
    for (unsigned t = 0; t < l->ntables && rc == 0; t++)
        rc = flush_table(l, t);
    if (rc == 0)
        return l->ops->commit(l->p, l->frozen_applied);
    l->ops->abort(l->p);
    return rc;
}

int layers_thaw(struct layers *l)
{
    HF_ASSERT(l->frozen);
    mt_reset(l->frozen);
    l->frozen = NULL;
    forget_positions(l);
    return l->ops->renew(l->p);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The front of the store: limits, redo capture, dependency tracking, scans and the space rule, the
 * same for every provider (provider.h).
 *
 * A put goes first into the redo buffer and from there into the provider. So the redo can never
 * miss a change that the provider has, and a value that the caller got from the store itself (and
 * that the provider may move while it inserts) is safe.
 */
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "provider.h"
#include "redo.h"
#include "seen.h"

#define MAP_BYTES_DEFAULT     (64ull << 30)
#define RESERVE_BYTES_DEFAULT (64ull << 20)
#define FILL_INTERVAL_NS      1000000000ull
/* What a change may add beyond its bytes: the page it falls on. */
#define PAGE_BYTES 4096u

struct hf_store {
    const struct store_ops *ops;
    void *p;
    unsigned ntables;
    bool broken;
    struct redo redo;
    struct seen seen;
    bool untracked; /* changes are not entered in `seen` */
    uint64_t applied;
    size_t dirty;
    uint64_t scans; /* numbers scans */
    uint64_t limit_bytes, reserve_bytes;
    struct store_fill fill;
    bool filled;
    uint64_t fill_ns;
    uint64_t checkpoints, fill_checkpoints;
    uint64_t grown_commit, grown_fill; /* bytes since the last commit; since the one `fill` shows */
};

struct hf_store_snap {
    const struct store_ops *ops;
    void *snap;
    unsigned ntables;
};

int hf_store_open(const struct hf_store_opts *o, struct hf_store **ret)
{
    struct hf_store *s;
    int rc;

    if (o->ntables == 0 || o->ntables > HF_STORE_TABLES_MAX)
        return HF_E_INVAL;
    s = calloc(1, sizeof(*s));
    if (!s)
        return HF_E_NOMEM;
    s->ntables = o->ntables;
    s->limit_bytes = o->map_bytes ? o->map_bytes : MAP_BYTES_DEFAULT;
    s->reserve_bytes = o->reserve_bytes ? o->reserve_bytes : RESERVE_BYTES_DEFAULT;
    if (o->kind == HF_STORE_MEM)
        rc = store_mem_open(o, &s->ops, &s->p, &s->applied);
    else
        rc = store_lmdb_open(o, &s->ops, &s->p, &s->applied);
    if (rc == 0) {
        rc = s->ops->fill(s->p, &s->fill);
        if (rc)
            s->ops->close(s->p);
    }
    if (rc) {
        free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void hf_store_close(struct hf_store *s)
{
    if (!s)
        return;
    s->ops->close(s->p);
    hf_buf_fini(&s->redo.buf);
    seen_fini(&s->seen);
    free(s);
}

/* After an error inside the provider nobody knows what the transaction holds. */
static int fail(struct hf_store *s, int rc)
{
    s->broken = true;
    return rc;
}

static int check_key(const struct hf_store *s, unsigned table, struct hf_slice key)
{
    if (s->broken)
        return HF_E_STOPPED;
    if (table >= s->ntables || key.len == 0)
        return HF_E_INVAL;
    return key.len > HF_STORE_KEY_MAX ? HF_E_TOOBIG : 0;
}

int hf_store_get(struct hf_store *s, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    int rc = check_key(s, table, key);

    if (rc)
        return rc;
    seen_read_key(&s->seen, table, key);
    rc = s->ops->get(s->p, table, key, ret_val);
    return rc && rc != HF_E_NOENT ? fail(s, rc) : rc;
}

/* Applies one change; NOENT for a delete of nothing. */
static int apply(struct hf_store *s, const struct redo_op *op)
{
    int rc;

    if (op->del) {
        rc = s->ops->del(s->p, op->table, op->key);
        if (rc)
            return rc == HF_E_NOENT ? rc : fail(s, rc);
    } else {
        uint64_t grow = PAGE_BYTES + op->key.len + op->val.len;

        rc = s->ops->put(s->p, op->table, op->key, op->val);
        if (rc)
            return fail(s, rc);
        s->grown_commit += grow;
        s->grown_fill += grow;
    }
    s->dirty++;
    return 0;
}

static int change(struct hf_store *s, const struct redo_op *op)
{
    size_t mark = s->redo.buf.len;
    struct redo_op stored;
    int rc = redo_add(&s->redo, op, &stored);

    if (rc)
        return rc;
    rc = s->untracked ? 0 : seen_changed(&s->seen, op->table, op->key);
    if (rc == 0)
        rc = apply(s, &stored);
    if (rc)
        redo_undo(&s->redo, mark);
    return rc;
}

int hf_store_put(struct hf_store *s, unsigned table, struct hf_slice key, struct hf_slice val)
{
    struct redo_op op = {.table = table, .key = key, .val = val};
    int rc = check_key(s, table, key);

    if (rc)
        return rc;
    if (val.len > HF_STORE_VAL_MAX)
        return HF_E_TOOBIG;
    return change(s, &op);
}

int hf_store_del(struct hf_store *s, unsigned table, struct hf_slice key)
{
    struct redo_op op = {.table = table, .key = key, .del = true};
    int rc = check_key(s, table, key);

    if (rc == 0)
        rc = change(s, &op);
    return rc == HF_E_NOENT ? 0 : rc;
}

/* ---- scans ---- */

int hf_store_seek(struct hf_store *s, unsigned table, struct hf_slice prefix, struct hf_slice from,
                  struct hf_store_iter *it)
{
    struct hf_slice start = store_key_cmp(from, prefix) > 0 ? from : prefix;

    if (s->broken)
        return HF_E_STOPPED;
    if (table >= s->ntables || prefix.len > sizeof(it->prefix))
        return HF_E_INVAL;
    if (from.len > HF_STORE_KEY_MAX)
        return HF_E_TOOBIG;
    seen_read_scan(&s->seen, table, prefix);
    it->s = s;
    it->cursor = (void *)(uintptr_t)++s->scans;
    it->table = table;
    it->prefix_len = prefix.len;
    if (prefix.len)
        memcpy(it->prefix, prefix.data, prefix.len);
    it->started = false;
    it->from_len = start.len;
    if (start.len)
        memcpy(it->from, start.data, start.len);
    return 0;
}

int hf_store_next(struct hf_store_iter *it, struct hf_slice *ret_key, struct hf_slice *ret_val)
{
    struct hf_store *s = it->s;
    struct hf_slice key, val;
    int rc;

    if (!s)
        return HF_E_NOENT;
    if (s->broken)
        return HF_E_STOPPED;
    rc = s->ops->seek(s->p, it->table, hf_slice(it->from, it->from_len), it->started,
                      (uint64_t)(uintptr_t)it->cursor, &key, &val);
    if (rc)
        return rc == HF_E_NOENT ? rc : fail(s, rc);
    if (key.len < it->prefix_len || memcmp(key.data, it->prefix, it->prefix_len) != 0)
        return HF_E_NOENT;
    HF_ASSERT(key.len <= sizeof(it->from));
    memcpy(it->from, key.data, key.len);
    it->from_len = key.len;
    it->started = true;
    *ret_key = key;
    *ret_val = val;
    return 0;
}

void hf_store_iter_end(struct hf_store_iter *it)
{
    it->s = NULL;
}

/* ---- redo, batches, checkpoints ---- */

size_t hf_store_redo_bytes(const struct hf_store *s)
{
    return s->redo.nops ? s->redo.buf.len : 0;
}

int hf_store_redo_take(struct hf_store *s, struct hf_buf *out)
{
    return s->broken ? HF_E_STOPPED : redo_take(&s->redo, out);
}

int hf_store_redo_apply(struct hf_store *s, struct hf_slice redo)
{
    struct redo_reader rd;
    struct redo_op op;
    int rc;

    if (s->broken)
        return HF_E_STOPPED;
    rc = redo_validate(redo, s->ntables);
    if (rc)
        return rc;
    rc = redo_read_begin(&rd, redo);
    while (rc == 0 && (rc = redo_read_next(&rd, s->ntables, &op)) == 0) {
        rc = apply(s, &op);
        if (rc == HF_E_NOENT)
            rc = 0;
    }
    return rc == HF_E_NOENT ? 0 : rc;
}

void hf_store_batch(struct hf_store *s, uint64_t batch)
{
    HF_ASSERT(batch >= s->seen.batch);
    s->seen.batch = batch;
}

void hf_store_durable(struct hf_store *s, uint64_t batch)
{
    seen_durable(&s->seen, batch);
}

void hf_store_untracked(struct hf_store *s, bool on)
{
    s->untracked = on;
}

void hf_store_seen_reset(struct hf_store *s)
{
    s->seen.newest = 0;
}

uint64_t hf_store_seen(const struct hf_store *s)
{
    return s->seen.newest > s->seen.durable ? s->seen.newest : 0;
}

int hf_store_checkpoint(struct hf_store *s, uint64_t applied)
{
    int rc;

    if (s->broken)
        return HF_E_STOPPED;
    rc = s->ops->commit(s->p, applied);
    if (rc)
        return fail(s, rc);
    s->applied = applied;
    s->dirty = 0;
    s->grown_commit = 0;
    s->checkpoints++;
    return 0;
}

bool hf_store_broken(const struct hf_store *s)
{
    return s->broken;
}

size_t hf_store_dirty(const struct hf_store *s)
{
    return s->dirty;
}

uint64_t hf_store_applied(const struct hf_store *s)
{
    return s->applied;
}

/* ---- space ---- */

static bool has_room(const struct hf_store *s)
{
    uint64_t need = s->fill.used_bytes + s->grown_fill + s->reserve_bytes;

    return need <= s->limit_bytes && s->fill.fs_free_bytes >= s->reserve_bytes;
}

bool hf_store_may_grow(struct hf_store *s, uint64_t mono_ns)
{
    bool due;

    if (s->broken)
        return false;
    /* grown_fill overestimates. When it says full, the truth is looked up after each checkpoint. */
    due = !s->filled || mono_ns - s->fill_ns >= FILL_INTERVAL_NS ||
          (!has_room(s) && s->fill_checkpoints != s->checkpoints);
    if (due) {
        if (s->ops->fill(s->p, &s->fill) != 0)
            return false;
        s->filled = true;
        s->fill_ns = mono_ns;
        s->fill_checkpoints = s->checkpoints;
        s->grown_fill = s->grown_commit;
    }
    return has_room(s);
}

void hf_store_space(const struct hf_store *s, struct hf_store_space *ret)
{
    ret->used_bytes = s->fill.used_bytes;
    ret->limit_bytes = s->limit_bytes;
    ret->fs_free_bytes = s->fill.fs_free_bytes;
}

uint64_t hf_store_count(struct hf_store *s, unsigned table)
{
    uint64_t n = 0;
    int rc;

    if (s->broken || table >= s->ntables)
        return 0;
    rc = s->ops->count(s->p, table, &n);
    if (rc)
        fail(s, rc);
    return n;
}

/* ---- snapshots ---- */

int hf_store_snap_open(struct hf_store *s, struct hf_store_snap **ret)
{
    struct hf_store_snap *p = calloc(1, sizeof(*p));
    int rc;

    if (!p)
        return HF_E_NOMEM;
    p->ops = s->ops;
    p->ntables = s->ntables;
    rc = s->ops->snap_open(s->p, &p->snap);
    if (rc) {
        free(p);
        return rc;
    }
    *ret = p;
    return 0;
}

void hf_store_snap_close(struct hf_store_snap *p)
{
    if (!p)
        return;
    p->ops->snap_close(p->snap);
    free(p);
}

int hf_store_snap_get(struct hf_store_snap *p, unsigned table, struct hf_slice key,
                      struct hf_slice *ret_val)
{
    if (table >= p->ntables || key.len == 0)
        return HF_E_INVAL;
    if (key.len > HF_STORE_KEY_MAX)
        return HF_E_TOOBIG;
    return p->ops->snap_get(p->snap, table, key, ret_val);
}

int hf_store_snap_scan(struct hf_store_snap *p, unsigned table, struct hf_slice from,
                       int (*fn)(void *arg, struct hf_slice key, struct hf_slice val), void *arg)
{
    if (table >= p->ntables)
        return HF_E_INVAL;
    if (from.len > HF_STORE_KEY_MAX)
        return HF_E_TOOBIG;
    return p->ops->snap_scan(p->snap, table, from, fn, arg);
}

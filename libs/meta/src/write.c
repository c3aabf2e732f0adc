/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing. The bytes of an inline file are written here; those of a chunked one go to segments, by
 * the writer, in three steps: WRITE hands out the layout, the writer writes the chunks, WRITE_END
 * moves size and times.
 *
 * A file that outgrows inline_max moves to chunks ("promotion"): WRITE hands out a layout and the
 * present content, the writer writes both to the chunks and PROMOTE swaps, if nothing changed
 * meanwhile. Until then the chunks belong to an entry of the gc table which is made together with
 * the layout, so that a writer that dies leaves no orphans; PROMOTE takes it back, if it has not
 * fallen due.
 *
 * An append to chunks is two steps as well, and nobody else may append in between: the shard's
 * memory has an entry for the file, with a token that WRITE_END or PROMOTE must show. A second
 * append meanwhile is told to try again. An append whose writer is gone ends after APPEND_NS: the
 * fence is raised before the next one may begin, so that late bytes of the first are refused; the
 * service looks for such entries now and then (hf_meta_append_late), so that they do not fill the
 * table. A writer that fails says so with a WRITE_END of no bytes. A restart of
 * the shard forgets the entries; then WRITE_END of an older start is refused and the tail is
 * trimmed, as for every write beyond the end (see hf_layout_settle).
 *
 * Every chunk that is handed out is first entered in its ranges (see layout.h). A layout's fence
 * rises with each truncation and again when its trimming is done: who still holds an older one is
 * sent back to WRITE.
 */
#include <stdlib.h>

#include "meta_priv.h"

#define APPEND_NS     (INT64_C(30) * HF_NSEC_PER_SEC)
#define APPENDS_MAX   65536u
#define PROMOTE_NS    (INT64_C(600) * HF_NSEC_PER_SEC)
#define ALLOC_INLINE  512u
#define ALLOC_CHUNKED 65536u

/* Size and times after content was written up to `end`. */
static int written(struct hf_meta *m, struct hf_inode *i, const Hf__Cred *c, uint64_t end,
                   int64_t now_ns)
{
    if (end > i->size)
        i->size = end;
    if (i->kind == HF_KIND_CHUNKS) {
        uint64_t most = hf_round_up(hf_layout_bytes(&i->lay, i->size), ALLOC_CHUNKED);

        if (hf_round_up(end, ALLOC_CHUNKED) > i->allocated)
            i->allocated = hf_round_up(end, ALLOC_CHUNKED);
        if (i->allocated > most)
            i->allocated = most;
    }
    hf_touch(i, now_ns, true);
    return hf_kill_suid(m, i, c);
}

/* What an UNSTABLE write does may be lost until it is committed: nobody waits for it. */
static void set_lazy(struct hf_meta *m, struct hf_meta_op *op, uint32_t stable)
{
    op->lazy = stable == HF__STABLE__UNSTABLE;
    hf_store_untracked(m->store, op->lazy);
}

static int write_inline(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteReq *q,
                        struct hf_obj *o)
{
    size_t head = sizeof(struct hf_data_disk), at = (size_t)q->offset, end = at + q->len, len;
    struct hf_slice old;
    uint8_t *row;
    int r;

    if (op->bulk.len != q->len)
        return HF_E_INVAL;
    r = hf_data_get(m, o->i.ino, &old);
    if (r)
        return r;
    len = old.len > end ? old.len : end;
    row = hf_arena_alloc(op->arena, head + len);
    if (!row)
        return HF_E_NOMEM;
    if (old.len)
        memcpy(row + head, old.data, old.len);
    if (at > old.len)
        memset(row + head + old.len, 0, at - old.len);
    memcpy(row + head + at, op->bulk.data, q->len);
    r = hf_event(op, HF__EVENT_OP__EV_WRITE, &o->i, o->i.parent, hf_slice(NULL, 0), q->cred);
    if (r)
        return r;
    set_lazy(m, op, q->stable);
    r = hf_data_put(m, o->i.ino, row, (uint32_t)len);
    if (r)
        return r;
    o->i.allocated = hf_round_up(len, ALLOC_INLINE);
    r = written(m, &o->i, q->cred, end, op->now_ns);
    if (r)
        return r;
    op->event.size = o->i.size;
    return hf_obj_save(m, o);
}

/* ---- appends ---- */

struct hf_append {
    uint64_t token;
    int64_t until_ns;
};

void hf_append_forget(struct hf_meta *m, uint64_t ino)
{
    free(hf_map_del(&m->appends, ino));
}

/* The operation that began it fails. One before it that has run out stays so. */
static void append_undo(struct hf_meta *m, uint64_t ino, bool late)
{
    struct hf_append *a = hf_map_get(&m->appends, ino);

    if (!late || !a) {
        hf_append_forget(m, ino);
        return;
    }
    a->until_ns = INT64_MIN;
    a->token = 0;
}

void hf_appends_fini(struct hf_meta *m)
{
    size_t pos = 0;
    uint64_t ino;
    void *a;

    while (hf_map_next(&m->appends, &pos, &ino, &a))
        free(a);
    hf_map_fini(&m->appends);
}

/* JUKEBOX: another is under way. *ret_late: one before this has run out. */
static int append_begin(struct hf_meta *m, const struct hf_meta_op *op, uint64_t ino,
                        uint64_t *ret_token, bool *ret_late)
{
    struct hf_append *a = hf_map_get(&m->appends, ino);

    *ret_late = a != NULL;
    if (a && op->now_ns < a->until_ns)
        return HF_E_JUKEBOX;
    if (!a) {
        if (m->appends.len >= APPENDS_MAX)
            return HF_E_JUKEBOX;
        a = malloc(sizeof(*a));
        if (!a || hf_map_put(&m->appends, ino, a)) {
            free(a);
            return HF_E_NOMEM;
        }
    }
    a->token = op->random | 1;
    a->until_ns = op->now_ns + APPEND_NS;
    *ret_token = a->token;
    return 0;
}

/* The append with this token ends here, whatever comes of it. CHANGED: it is not under way any
 * more. */
static int append_take(struct hf_meta *m, uint64_t ino, uint64_t token)
{
    const struct hf_append *a = hf_map_get(&m->appends, ino);

    if (!token)
        return 0;
    if (!a || a->token != token)
        return HF_E_CHANGED;
    hf_append_forget(m, ino);
    return 0;
}

int hf_meta_append_late(struct hf_meta *m, int64_t now_ns, uint64_t *ret)
{
    size_t pos = 0;
    uint64_t ino;
    void *v;

    while (hf_map_next(&m->appends, &pos, &ino, &v)) {
        const struct hf_append *a = v;

        if (now_ns >= a->until_ns) {
            *ret = ino;
            return 0;
        }
    }
    return HF_E_NOENT;
}

int hf_meta_append_drop(struct hf_meta *m, uint64_t ino)
{
    struct hf_inode i;
    int r = hf_ino_get(m, ino, &i);

    hf_append_forget(m, ino);
    if (r)
        return r == HF_E_NOENT ? 0 : r;
    if (i.kind != HF_KIND_CHUNKS)
        return 0;
    i.lay.fence++;
    return hf_ino_put(m, &i);
}

static int layout_event(struct hf_meta_op *op, const struct hf_inode *i, const Hf__Cred *c)
{
    return hf_event(op, HF__EVENT_OP__EV_LAYOUT, i, i->parent, hf_slice(NULL, 0), c);
}

/* The file is chunked, or becomes so here because it has no content yet. */
static int write_chunks(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteReq *q,
                        Hf__WriteRep *p, struct hf_obj *o)
{
    struct hf_layout *l = &o->i.lay;
    bool fresh = o->i.kind == HF_KIND_INLINE, changed, late = false;
    int r = fresh ? hf_place_pick(&m->place, hf_ino_alloc_how(&o->i), q->prefer, q->n_prefer,
                                  op->random, l)
                  : 0;

    if (r)
        return r;
    if (fresh) {
        l->gen = ++o->i.layout_gens;
        l->fence = 1;
        l->boot = op->boot;
        o->i.kind = HF_KIND_CHUNKS;
    }
    if (q->append)
        r = append_begin(m, op, o->i.ino, &p->append_token, &late);
    if (r)
        return r;
    changed = fresh || late;
    if (late)
        l->fence++;
    if (q->offset + q->len > o->i.size)
        changed |= hf_layout_settle(l, o->i.size, op->boot);
    changed |= hf_layout_reserve(l, q->offset, q->offset + q->len);
    p->next = HF__WRITE_NEXT__WRITE_CHUNKS;
    r = hf_layout_msg(op, l, true, &p->layout);
    if (r == 0 && changed)
        r = layout_event(op, &o->i, q->cred);
    if (r && q->append)
        append_undo(m, o->i.ino, late);
    return r || !changed ? r : hf_obj_save(m, o);
}

static int write_promote(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteReq *q,
                         Hf__WriteRep *p, struct hf_obj *o)
{
    struct hf_slice content;
    struct hf_layout l;
    uint64_t end = q->offset + q->len;
    bool late = false, begun = false; /* late: its layout was another, so no fence is needed */
    int r =
        hf_place_pick(&m->place, hf_ino_alloc_how(&o->i), q->prefer, q->n_prefer, op->random, &l);

    if (r == 0)
        r = hf_data_get(m, o->i.ino, &content);
    if (r == 0 && q->append) {
        r = append_begin(m, op, o->i.ino, &p->append_token, &late);
        begun = r == 0;
    }
    if (r)
        return r;
    l.gen = ++o->i.layout_gens;
    l.fence = 1;
    hf_layout_reserve(&l, 0, content.len);
    hf_layout_reserve(&l, q->offset, end);
    op->reply_bulk = hf_slice(hf_arena_dup(op->arena, content.data, content.len), content.len);
    r = op->reply_bulk.data ? 0 : HF_E_NOMEM;
    p->next = HF__WRITE_NEXT__WRITE_PROMOTE;
    p->promote_change = o->i.change;
    if (r == 0)
        r = hf_layout_msg(op, &l, false, &p->layout);
    if (r == 0)
        r = layout_event(op, &o->i, q->cred);
    if (r && begun)
        append_undo(m, o->i.ino, late);
    if (r == 0)
        r = hf_gc_put(m, o->i.ino, &l, op->now_ns + PROMOTE_NS);
    return r ? r : hf_obj_save(m, o);
}

/* What holds for [offset, offset + len) whoever writes. */
static int range_check(const struct hf_inode *i, uint64_t offset, uint64_t len)
{
    if (offset > HF_META_FILE_MAX || len > HF_META_FILE_MAX)
        return i->type == HF__FILE_TYPE__FT_REG ? HF_E_FBIG : HF_E_INVAL;
    return hf_size_check(i, offset + len);
}

int hf_meta_op_write(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteReq *given,
                     Hf__WriteRep *p)
{
    Hf__WriteReq at_end = *given;
    const Hf__WriteReq *q = given->append ? &at_end : given;
    uint64_t end;
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    p->boot = op->boot;
    p->next = HF__WRITE_NEXT__WRITE_DONE;
    if (r == 0) {
        at_end.offset = o.i.size;
        p->offset = q->offset;
        r = range_check(&o.i, q->offset, q->len);
    }
    if (r == 0 && !q->opened)
        r = hf_may_data(m, &o.i, q->cred, HF_W, q->owner_override);
    if (r || q->len == 0)
        return r;
    end = q->offset + q->len;
    if (!op->may_grow && (end > o.i.size || end > o.i.allocated))
        return HF_E_NOSPC;
    if (o.i.kind == HF_KIND_INLINE && end <= m->inline_max)
        return write_inline(m, op, q, &o);
    if (o.i.kind == HF_KIND_CHUNKS || o.i.allocated == 0)
        return write_chunks(m, op, q, p, &o);
    return write_promote(m, op, q, p, &o);
}

/* Finishes a write to chunks: the inode only. */
static int finish(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, const Hf__Cred *c,
                  uint64_t offset, uint64_t len)
{
    uint64_t end = offset + len;
    int r;

    if (len)
        hf_layout_reserve(&o->i.lay, offset, end);
    r = written(m, &o->i, c, end, op->now_ns);
    if (r)
        return r;
    op->event.size = o->i.size;
    return hf_obj_save(m, o);
}

/* A range that was punched or zeroed in place of written. Parts of it may have been holes before:
 * what is left is never said to be nothing unless it is, for archivers take a file of no blocks for
 * one of no data. */
static int finish_zero(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteEndReq *q,
                       struct hf_obj *o)
{
    uint64_t whole = q->len / ALLOC_CHUNKED * ALLOC_CHUNKED;
    bool all = q->offset == 0 && q->len >= o->i.size;
    int r = hf_kill_suid(m, &o->i, q->cred);

    if (q->punch && all)
        o->i.allocated = 0;
    else if (q->punch && o->i.allocated > whole + ALLOC_CHUNKED)
        o->i.allocated -= whole;
    else if (q->punch && o->i.allocated > ALLOC_CHUNKED)
        o->i.allocated = ALLOC_CHUNKED;
    hf_touch(&o->i, op->now_ns, true);
    op->event.size = o->i.size;
    return r ? r : hf_obj_save(m, o);
}

static int write_end_check(struct hf_meta *m, const struct hf_meta_op *op, const Hf__WriteEndReq *q,
                           const struct hf_inode *i)
{
    int r = append_take(m, i->ino, q->append_token);

    if (r)
        return r;
    if (i->kind != HF_KIND_CHUNKS || i->lay.gen != q->layout_gen || i->lay.fence != q->fence)
        return HF_E_CHANGED;
    r = hf_size_trim_due(i, q->offset + q->len);
    if (r == 0 && q->offset + q->len > i->size && (q->zero || i->lay.boot != op->boot))
        r = HF_E_CHANGED; /* handed out by an earlier start: Write looks at the tail first */
    return r;
}

int hf_meta_op_write_end(struct hf_meta *m, struct hf_meta_op *op, const Hf__WriteEndReq *q,
                         Hf__WriteEndRep *p)
{
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    p->boot = op->boot;
    if (r == 0)
        r = range_check(&o.i, q->offset, q->len);
    if (r == 0 && q->len == 0)
        return append_take(m, o.i.ino, q->append_token); /* given up */
    if (r == 0)
        r = write_end_check(m, op, q, &o.i);
    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_WRITE, &o.i, o.i.parent, hf_slice(NULL, 0), q->cred);
    if (r)
        return r;
    if (q->zero)
        return finish_zero(m, op, q, &o);
    set_lazy(m, op, q->stable);
    return finish(m, op, &o, q->cred, q->offset, q->len);
}

int hf_meta_op_promote(struct hf_meta *m, struct hf_meta_op *op, const Hf__PromoteReq *q,
                       Hf__PromoteRep *p)
{
    Hf__Layout *msg;
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    p->boot = op->boot;
    if (r == 0)
        r = range_check(&o.i, q->offset, q->len);
    if (r == 0)
        r = append_take(m, o.i.ino, q->append_token);
    if (r)
        return r;
    if (o.i.kind != HF_KIND_INLINE || o.i.change != q->promote_change)
        return HF_E_CHANGED;
    r = hf_gc_claim(m, o.i.ino, q->layout_gen, op->now_ns, &o.i.lay);
    if (r)
        return r;
    o.i.kind = HF_KIND_CHUNKS;
    o.i.lay.fence = 1;
    o.i.lay.boot = op->boot; /* nobody else has written under this generation */
    r = hf_layout_msg(op, &o.i.lay, false, &msg);
    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_WRITE, &o.i, o.i.parent, hf_slice(NULL, 0), q->cred);
    if (r == 0)
        r = hf_gc_unput(m, o.i.ino, &o.i.lay);
    if (r == 0)
        r = hf_data_del(m, o.i.ino);
    if (r)
        return r;
    p->layout = msg;
    if (hf_round_up(o.i.allocated, ALLOC_CHUNKED) > o.i.allocated)
        o.i.allocated = hf_round_up(o.i.allocated, ALLOC_CHUNKED);
    return finish(m, op, &o, q->cred, q->offset, q->len);
}

int hf_meta_op_trim_done(struct hf_meta *m, struct hf_meta_op *op, const Hf__TrimDoneReq *q,
                         Hf__TrimDoneRep *p)
{
    struct hf_layout *l;
    Hf__Attr *attr;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &attr);

    if (r)
        return r;
    if (o.i.kind != HF_KIND_CHUNKS)
        return HF_E_CHANGED;
    l = &o.i.lay;
    r = hf_layout_msg(op, l, true, &p->layout);
    if (r || !l->trim || l->gen != q->layout_gen || l->fence != q->fence)
        return r;
    r = layout_event(op, &o.i, NULL);
    if (r)
        return r;
    /* Two writers may trim at once. With the fence moved on, what the second one still has under
     * way is refused where new data has been written meanwhile. */
    hf_layout_trimmed(l);
    hf_layout_msg_refresh(p->layout, l);
    return hf_obj_save(m, &o);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * FALLOCATE and SEEK: fallocate(2), SEEK_DATA and SEEK_HOLE of lseek(2).
 *
 * Inline content is punched and zeroed here. Of a chunked file the caller does it, as it does
 * writes: it gets the layout and the part of the range that exists, and ends with WRITE_END. Making
 * a file longer is a change of size like that of SETATTR, with the same trim duty, and is made here
 * first.
 */
#include "meta_priv.h"

struct falloc {
    const Hf__FallocateReq *q;
    uint64_t end;  /* of what is asked for */
    uint64_t stop; /* of that below the present size */
    bool grows;
};

static int check(struct hf_meta *m, const struct hf_inode *i, struct falloc *f)
{
    const Hf__FallocateReq *q = f->q;

    if (i->type == HF__FILE_TYPE__FT_DIR)
        return HF_E_ISDIR;
    if (i->type != HF__FILE_TYPE__FT_REG)
        return HF_E_NODEV;
    if (q->mode > HF__FALLOCATE_MODE__FA_ZERO ||
        (q->mode == HF__FALLOCATE_MODE__FA_PUNCH && !q->keep_size))
        return HF_E_NOTSUPP;
    if (q->len == 0)
        return HF_E_INVAL;
    if (q->offset > HF_META_FILE_MAX || q->len > HF_META_FILE_MAX)
        return HF_E_FBIG;
    f->end = q->offset + q->len;
    f->stop = f->end < i->size ? f->end : i->size;
    f->grows = !q->keep_size && f->end > i->size;
    if (!q->keep_size && hf_size_check(i, f->end))
        return HF_E_FBIG;
    return q->opened ? 0 : hf_may_data(m, i, q->cred, HF_W, false);
}

/* Chunks are never written in place, so nothing can be promised; what is not there now is refused.
 */
static int check_space(struct hf_meta *m, const struct hf_meta_op *op, const struct falloc *f)
{
    if (f->q->mode == HF__FALLOCATE_MODE__FA_PUNCH)
        return 0;
    if (!op->may_grow)
        return HF_E_NOSPC;
    if (f->q->mode == HF__FALLOCATE_MODE__FA_ALLOCATE && f->end > m->inline_max &&
        f->q->len > hf_place_free(&m->place))
        return HF_E_NOSPC;
    return 0;
}

/* The inline content with zeros in the range; NULL: nothing to change. */
static int zeroed_row(struct hf_meta *m, struct hf_meta_op *op, const struct falloc *f,
                      const struct hf_inode *i, uint8_t **ret, uint32_t *ret_len)
{
    size_t head = sizeof(struct hf_data_disk), from = (size_t)f->q->offset, to;
    struct hf_slice content;
    uint8_t *row;
    int r = hf_data_get(m, i->ino, &content);

    *ret = NULL;
    if (r || f->q->offset >= content.len)
        return r;
    row = hf_arena_alloc(op->arena, head + content.len);
    if (!row)
        return HF_E_NOMEM;
    to = f->end < content.len ? (size_t)f->end : content.len;
    memcpy(row + head, content.data, content.len);
    memset(row + head + from, 0, to - from);
    /* zeros at the end are not kept */
    *ret_len = (uint32_t)(to == content.len ? from : content.len);
    *ret = row;
    return 0;
}

static int put_zeroed(struct hf_meta *m, struct hf_inode *i, uint8_t *row, uint32_t len)
{
    i->allocated = hf_round_up(len, 512);
    return len ? hf_data_put(m, i->ino, row, len) : hf_data_del(m, i->ino);
}

static bool zeroes(const struct falloc *f)
{
    return f->q->mode != HF__FALLOCATE_MODE__FA_ALLOCATE && f->q->offset < f->stop;
}

static int apply(struct hf_meta *m, struct hf_meta_op *op, const struct falloc *f, struct hf_obj *o,
                 const struct hf_resize *z, uint8_t *row, uint32_t row_len, Hf__FallocateRep *p)
{
    Hf__Layout *duty = NULL;
    int r = 0;

    if (row)
        r = put_zeroed(m, &o->i, row, row_len);
    if (r == 0 && f->grows)
        r = hf_size_apply(m, op, &o->i, f->q->cred, z, &duty);
    else if (r == 0)
        r = hf_kill_suid(m, &o->i, f->q->cred);
    if (r)
        return r;
    hf_touch(&o->i, op->now_ns, true);
    op->event.size = o->i.size;
    if (p->layout)
        hf_layout_msg_refresh(p->layout, &o->i.lay);
    return hf_obj_save(m, o);
}

int hf_meta_op_fallocate(struct hf_meta *m, struct hf_meta_op *op, const Hf__FallocateReq *q,
                         Hf__FallocateRep *p)
{
    struct falloc f = {.q = q};
    struct hf_resize z;
    uint32_t row_len = 0;
    uint8_t *row = NULL;
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    p->boot = op->boot;
    p->next = HF__WRITE_NEXT__WRITE_DONE;
    if (r == 0)
        r = check(m, &o.i, &f);
    if (r == 0)
        r = check_space(m, op, &f);
    if (r)
        return r;
    if (f.grows)
        r = hf_size_prepare(m, op, &o, f.end, &z,
                            &p->layout); /* CHANGED: a trim duty comes first */
    if (r)
        return r;
    p->layout = NULL;
    if (zeroes(&f) && o.i.kind == HF_KIND_INLINE)
        r = zeroed_row(m, op, &f, &o.i, &row, &row_len);
    if (r == 0 && zeroes(&f) && o.i.kind == HF_KIND_CHUNKS) {
        r = hf_layout_msg(op, &o.i.lay, true, &p->layout);
        p->next = HF__WRITE_NEXT__WRITE_CHUNKS;
        p->offset = q->offset;
        p->len = f.stop - q->offset;
    }
    if (r || (!f.grows && !row))
        return r;
    r = hf_event(op, HF__EVENT_OP__EV_WRITE, &o.i, o.i.parent, hf_slice(NULL, 0), q->cred);
    return r ? r : apply(m, op, &f, &o, &z, row, row_len, p);
}

/* ---- SEEK ---- */

static int seek_inline(struct hf_meta *m, const Hf__SeekReq *q, const struct hf_inode *i,
                       Hf__SeekRep *p)
{
    struct hf_slice content;
    int r = hf_data_get(m, i->ino, &content);

    if (r)
        return r;
    p->found = true;
    p->offset = q->offset;
    if (q->hole)
        p->offset = q->offset < content.len ? content.len : q->offset;
    else if (q->offset >= content.len)
        return HF_E_NXIO;
    return 0;
}

/* Between ranges there is nothing; inside them the chunks know. */
static int seek_chunks(struct hf_meta_op *op, const Hf__SeekReq *q, const struct hf_inode *i,
                       Hf__SeekRep *p)
{
    const struct hf_layout *l = &i->lay;

    for (unsigned k = 0; k < l->nranges; k++) {
        uint64_t from = (uint64_t)l->ranges[k].from * l->chunk_bytes;
        uint64_t to = (uint64_t)l->ranges[k].to * l->chunk_bytes;

        if (to <= q->offset || from >= i->size)
            continue;
        if (q->hole && from > q->offset)
            break;
        p->offset = from > q->offset ? from : q->offset;
        p->range_end = to < i->size ? to : i->size;
        return hf_layout_msg(op, l, false, &p->layout);
    }
    if (!q->hole)
        return HF_E_NXIO;
    p->found = true;
    p->offset = q->offset;
    return 0;
}

int hf_meta_op_seek(struct hf_meta *m, struct hf_meta_op *op, const Hf__SeekReq *q, Hf__SeekRep *p)
{
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    if (o.i.type != HF__FILE_TYPE__FT_REG)
        return HF_E_INVAL;
    if (q->offset >= o.i.size)
        return HF_E_NXIO;
    return o.i.kind == HF_KIND_CHUNKS ? seek_chunks(op, q, &o.i, p) : seek_inline(m, q, &o.i, p);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * READ, COMMIT (RFC 1813 3.3.6, 3.3.21).
 */
#include "meta_priv.h"

/* Zeros behind the content of an inline file (made longer by SETATTR) are sent, not implied; a
 * reply holds at most this many bytes. */
#define INLINE_READ_MAX (256u << 10)

/* The bytes [offset, offset + len) of an inline file; len fits the file. */
static int inline_read(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i,
                       uint64_t offset, uint32_t len)
{
    struct hf_slice content;
    size_t have = 0;
    uint8_t *out;
    int r = hf_data_get(m, i->ino, &content);

    if (r)
        return r;
    out = hf_arena_alloc(op->arena, len);
    if (!out)
        return HF_E_NOMEM;
    if (offset < content.len) {
        have = content.len - (size_t)offset;
        if (have > len)
            have = len;
        memcpy(out, (const uint8_t *)content.data + offset, have);
    }
    memset(out + have, 0, len - have);
    op->reply_bulk = hf_slice(out, len);
    return 0;
}

int hf_meta_op_read(struct hf_meta *m, struct hf_meta_op *op, const Hf__ReadReq *q, Hf__ReadRep *p)
{
    uint64_t left, len = q->len;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    if (o.i.type != HF__FILE_TYPE__FT_REG)
        return HF_E_INVAL;
    r = q->opened ? 0 : hf_may_data(m, &o.i, q->cred, HF_R, q->owner_override);
    if (r)
        return r;
    left = q->offset < o.i.size ? o.i.size - q->offset : 0;
    if (o.i.kind == HF_KIND_CHUNKS) {
        r = hf_layout_msg(op, &o.i.lay, false, &p->layout);
    } else {
        if (len > INLINE_READ_MAX)
            len = INLINE_READ_MAX;
        if (len > left)
            len = left;
        if (len)
            r = inline_read(m, op, &o.i, q->offset, (uint32_t)len);
    }
    p->eof = len >= left;
    if (r == 0 && q->len)
        r = hf_touch_atime(m, op, &o);
    return r;
}

/* Reading the inode is the point: the reply then waits until it is durable, and the data with it.
 * The right to write was checked when the data was written. */
/* So that the client does not ask for each of the chunks that a sparse file lacks. */
static int commit_ranges(struct hf_meta_op *op, const struct hf_layout *l, Hf__CommitRep *p)
{
    size_t n = l->nranges > 0 ? l->nranges : 1;

    p->ranges = hf_arena_alloc(op->arena, 2 * n * sizeof(p->ranges[0]));
    if (!p->ranges)
        return HF_E_NOMEM;
    p->n_ranges = 2 * n;
    p->ranges[0] = p->ranges[1] = 0;
    for (size_t k = 0; k < l->nranges; k++) {
        p->ranges[2 * k] = l->ranges[k].from;
        p->ranges[2 * k + 1] = l->ranges[k].to;
    }
    return 0;
}

int hf_meta_op_commit(struct hf_meta *m, struct hf_meta_op *op, const Hf__CommitReq *q,
                      Hf__CommitRep *p)
{
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    p->boot = op->boot;
    op->barrier = true;
    if (r)
        return r;
    if (o.i.type != HF__FILE_TYPE__FT_REG)
        return HF_E_INVAL;
    if (o.i.kind != HF_KIND_CHUNKS)
        return 0;
    r = hf_layout_msg(op, &o.i.lay, true, &p->layout);
    return r ? r : commit_ranges(op, &o.i.lay, p);
}

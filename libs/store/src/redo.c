/* SPDX-License-Identifier: Apache-2.0 */
#include "redo.h"

#include "holdfast/endian.h"
#include "holdfast/err.h"

static size_t varint_put(uint8_t *p, uint32_t v)
{
    size_t n = 0;

    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

static int varint_get(struct redo_reader *rd, uint32_t max, uint32_t *ret)
{
    uint32_t v = 0;

    for (unsigned shift = 0; shift < 21; shift += 7) {
        uint8_t b;

        if (rd->p == rd->end)
            return HF_E_CORRUPT;
        b = *rd->p++;
        v |= (uint32_t)(b & 0x7f) << shift;
        if (b & 0x80)
            continue;
        if (v > max)
            return HF_E_CORRUPT;
        *ret = v;
        return 0;
    }
    return HF_E_CORRUPT;
}

int redo_add(struct redo *r, const struct redo_op *op, struct redo_op *ret_stored)
{
    uint8_t *p;
    size_t n;
    int rc = hf_buf_reserve(&r->buf, REDO_HEADER + REDO_OP_MAX + op->key.len + op->val.len);

    if (rc)
        return rc;
    if (r->buf.len == 0) {
        memset(r->buf.data, 0, REDO_HEADER);
        r->buf.data[0] = REDO_VERSION;
        r->buf.len = REDO_HEADER;
    }
    p = r->buf.data + r->buf.len;
    n = 0;
    p[n++] = (uint8_t)(op->table | (op->del ? REDO_DEL : 0));
    n += varint_put(p + n, (uint32_t)op->key.len);
    if (!op->del)
        n += varint_put(p + n, (uint32_t)op->val.len);
    memcpy(p + n, op->key.data, op->key.len);
    *ret_stored = *op;
    ret_stored->key.data = p + n;
    n += op->key.len;
    if (!op->del) {
        if (op->val.len)
            memcpy(p + n, op->val.data, op->val.len);
        ret_stored->val.data = p + n;
        n += op->val.len;
    }
    r->buf.len += n;
    r->nops++;
    return 0;
}

void redo_undo(struct redo *r, size_t mark)
{
    r->buf.len = mark;
    r->nops--;
}

int redo_take(struct redo *r, struct hf_buf *out)
{
    int rc;

    if (r->nops > 0) {
        hf_put_le32(r->buf.data + 1, r->nops);
        rc = hf_buf_append(out, r->buf.data, r->buf.len);
        if (rc)
            return rc;
    }
    hf_buf_reset(&r->buf);
    r->nops = 0;
    return 0;
}

int redo_read_begin(struct redo_reader *rd, struct hf_slice redo)
{
    *rd = (struct redo_reader){0};
    if (redo.len == 0)
        return 0;
    rd->p = redo.data;
    rd->end = rd->p + redo.len;
    if (redo.len < REDO_HEADER || rd->p[0] != REDO_VERSION)
        return HF_E_CORRUPT;
    rd->left = hf_get_le32(rd->p + 1);
    rd->p += REDO_HEADER;
    return 0;
}

int redo_read_next(struct redo_reader *rd, unsigned ntables, struct redo_op *ret)
{
    struct redo_op op = {0};
    uint32_t klen, vlen = 0;
    uint8_t head;
    int rc;

    if (rd->left == 0)
        return rd->p == rd->end ? HF_E_NOENT : HF_E_CORRUPT;
    if (rd->p == rd->end)
        return HF_E_CORRUPT;
    head = *rd->p++;
    op.del = head & REDO_DEL;
    op.table = head & ~(unsigned)REDO_DEL;
    if (op.table >= ntables)
        return HF_E_CORRUPT;
    rc = varint_get(rd, HF_STORE_KEY_MAX, &klen);
    if (rc == 0 && !op.del)
        rc = varint_get(rd, HF_STORE_VAL_MAX, &vlen);
    if (rc)
        return rc;
    /* Both are bounded far below 2^31, so that their sum is safe. */
    if (klen == 0 || (size_t)(rd->end - rd->p) < (size_t)klen + vlen)
        return HF_E_CORRUPT;
    op.key = hf_slice(rd->p, klen);
    op.val = hf_slice(rd->p + klen, vlen);
    rd->p += (size_t)klen + vlen;
    rd->left--;
    *ret = op;
    return 0;
}

int redo_validate(struct hf_slice redo, unsigned ntables)
{
    struct redo_reader rd;
    struct redo_op op;
    int rc = redo_read_begin(&rd, redo);

    while (rc == 0)
        rc = redo_read_next(&rd, ntables, &op);
    return rc == HF_E_NOENT ? 0 : rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading. A block's checksum covers all its valid bytes, so a piece that holds them all is read
 * into the caller's memory and checked there; of any other the whole block is read aside. The
 * caller never sees bytes that were not checked: if one block fails, the whole buffer is zeroed.
 */
#include "seg_priv.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"

static void fail(struct seg_run *r, unsigned block, int status, const char *what)
{
    seg_report(r->c, block, status, what);
    memset(r->op->data, 0, r->op->len);
    r->op->len_done = 0;
}

/* Bytes of the piece that the block holds; the rest is zeros. */
static uint32_t held(const struct seg_piece *p)
{
    if (p->e.len <= p->off)
        return 0;
    return p->e.len - p->off < p->len ? p->e.len - p->off : p->len;
}

/* Checks the block, gives the piece to the caller, and its crc. */
static bool piece_finish(struct seg_piece *p, uint32_t *crc)
{
    uint32_t n = held(p);

    if (n > 0) {
        if (hf_crc32c(0, p->bounce ? p->bounce : p->data, p->e.len) != p->e.crc)
            return false;
        if (p->bounce)
            memcpy(p->data, p->bounce + p->off, n);
    }
    memset(p->data + n, 0, p->len - n);
    if (crc)
        *crc =
            n == p->len && p->off == 0 && n == p->e.len ? p->e.crc : hf_crc32c(0, p->data, p->len);
    return true;
}

static void read_done(struct seg_run *r)
{
    struct seg_chunk *c = r->c;
    struct hf_seg_op *op = r->op;
    int status = 0;

    if (r->status) {
        status = seg_io_error(r->status) == HF_E_NOMEM ? HF_E_NOMEM : HF_E_IO;
        fail(r, r->pieces[0].block, status, "read failed");
    }
    for (unsigned i = 0; i < r->npieces && !status; i++) {
        if (piece_finish(&r->pieces[i], op->crcs ? &op->crcs[i] : NULL))
            continue;
        status = HF_E_CORRUPT;
        fail(r, r->pieces[i].block, status, "checksum does not match");
    }
    seg_run_free(r);
    c->nread--;
    seg_finish(op, status);
    seg_pump(c);
}

/* Everything is a hole: no backend operation, and no pump. */
static void read_zeros(struct seg_run *r)
{
    struct hf_seg_op *op = r->op;

    for (unsigned i = 0; i < r->npieces; i++)
        (void)piece_finish(&r->pieces[i], op->crcs ? &op->crcs[i] : NULL);
    seg_run_free(r);
    seg_finish(op, 0);
}

void seg_read(struct seg_chunk *c, struct hf_seg_op *op)
{
    uint32_t n = 0;
    struct seg_run *r;

    c->seg->stat.reads++;
    if (op->offset < c->len)
        n = c->len - op->offset < op->len ? c->len - op->offset : op->len;
    r = seg_run_new(c, op, n);
    if (!r) {
        seg_finish(op, HF_E_NOMEM);
        return;
    }
    op->len_done = n;
    if (n < op->len)
        memset((uint8_t *)op->data + n, 0, op->len - n);
    for (unsigned i = 0; i < r->npieces; i++) {
        struct seg_piece *p = &r->pieces[i];

        p->e = c->e[p->block];
        if (held(p) == 0)
            continue;
        if (p->off > 0 || p->len < p->e.len) {
            p->bounce = malloc(HF_SEG_BLOCK_BYTES);
            if (!p->bounce) {
                seg_run_free(r);
                seg_finish(op, HF_E_NOMEM);
                return;
            }
        }
        seg_run_add(r, HF_BE_READ, seg_slot_offset(p->e.slot), p->bounce ? p->bounce : p->data,
                    p->e.len);
    }
    if (r->nios == 0) {
        read_zeros(r);
        return;
    }
    c->nread++;
    seg_run_go(r, hf_fault(c->seg->o.faults, HF_FAULT_SEG_READ), read_done);
}

/* Of a block the valid bytes are data. Nothing is read. */
void seg_seek(struct seg_chunk *c, struct hf_seg_op *op)
{
    uint32_t at = op->offset, end = op->offset + op->len;

    while (at < end && !op->found) {
        uint32_t start = at / HF_SEG_BLOCK_BYTES * HF_SEG_BLOCK_BYTES;
        uint32_t stop = start + c->e[at / HF_SEG_BLOCK_BYTES].len; /* of its data */

        if (!op->hole && at < stop) {
            op->found = true;
        } else if (op->hole && at >= stop) {
            op->found = true;
        } else if (op->hole) {
            at = stop;
            op->found = at < end && stop < start + HF_SEG_BLOCK_BYTES;
        } else {
            at = start + HF_SEG_BLOCK_BYTES;
        }
    }
    op->found_at = at;
    seg_finish(op, 0);
}

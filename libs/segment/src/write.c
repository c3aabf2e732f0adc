/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing. What a piece does to its block:
 *   it covers all valid bytes     new slot, the caller's crc is the block's
 *   it begins behind them         same slot, written in place behind them; the crc goes on from the
 * old one (unless the block was cut and that is not yet durable) anything else                 the
 * old block is read and checked, both are merged into a new slot The map changes only after every
 * piece is on the backend, so a failed write leaves the old content.
 */
#include "seg_priv.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"

uint64_t seg_op_mask(const struct hf_seg_op *op)
{
    unsigned n = hf_seg_ncrcs(op->offset, op->len);

    if (n == 0)
        return 0;
    return (n == 64 ? ~0ull : (1ull << n) - 1) << (op->offset / HF_SEG_BLOCK_BYTES);
}

/* ---- slots ---- */

static bool slot_free(const struct seg_chunk *c, unsigned slot)
{
    return !seg_slot_has(&c->used, slot) && !seg_slot_has(&c->prot, slot);
}

static bool run_free(const struct seg_chunk *c, unsigned first, unsigned n)
{
    if (first + n > SEG_SLOTS)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (!slot_free(c, first + i))
            return false;
    }
    return true;
}

/* Where n blocks from `block` on should go so that they, and the blocks before and after them, lie
 * in order: behind the block before, in the block's own place in the lower or the upper half,
 * anywhere. */
static int run_find(const struct seg_chunk *c, unsigned block, unsigned n)
{
    if (block > 0 && c->e[block - 1].len > 0 && run_free(c, c->e[block - 1].slot + 1u, n))
        return c->e[block - 1].slot + 1;
    if (run_free(c, block, n))
        return (int)block;
    if (run_free(c, block + HF_SEG_BLOCKS, n))
        return (int)(block + HF_SEG_BLOCKS);
    for (unsigned s = 0; s + n <= SEG_SLOTS; s++) {
        if (run_free(c, s, n))
            return (int)s;
    }
    return -1;
}

static void reserve(struct seg_chunk *c, struct seg_piece *p, unsigned slot)
{
    p->e.slot = (uint8_t)slot;
    p->reserved = true;
    seg_slot_set(&c->used, slot);
    seg_slot_set(&c->touched, slot);
}

static void unreserve(struct seg_run *r)
{
    for (unsigned i = 0; i < r->npieces; i++) {
        if (r->pieces[i].reserved)
            seg_slot_clear(&r->c->used, r->pieces[i].e.slot);
        r->pieces[i].reserved = false;
    }
}

/* Not if it goes behind the valid bytes in place. */
static bool needs_slot(const struct seg_chunk *c, const struct seg_piece *p)
{
    return c->e[p->block].len == 0 || p->off < c->e[p->block].len || ((c->cut >> p->block) & 1u);
}

/* Gives each piece its slot; false (and nothing reserved) if there are not enough. */
static bool reserve_all(struct seg_run *r)
{
    struct seg_chunk *c = r->c;

    for (unsigned i = 0; i < r->npieces;) {
        unsigned n = 0, want;
        int at = -1;

        if (!needs_slot(c, &r->pieces[i])) {
            r->pieces[i].e.slot = c->e[r->pieces[i].block].slot;
            i++;
            continue;
        }
        while (i + n < r->npieces && needs_slot(c, &r->pieces[i + n]))
            n++;
        for (want = n; want > 0 && at < 0; want -= at < 0 ? 1 : 0)
            at = run_find(c, r->pieces[i].block, want);
        if (at < 0) {
            unreserve(r);
            return false;
        }
        for (unsigned k = 0; k < want; k++)
            reserve(c, &r->pieces[i + k], (unsigned)at + k);
        i += want;
    }
    return true;
}

/* ---- phases ---- */

static void write_end(struct seg_run *r, int status)
{
    struct seg_chunk *c = r->c;
    struct hf_seg_op *op = r->op;

    if (status)
        unreserve(r);
    c->busy &= ~seg_op_mask(op);
    c->nwrite--;
    seg_run_free(r);
    if (status == 0 && op->stable)
        hf_list_push_back(&c->waiters, &op->link);
    else
        seg_finish(op, status);
    seg_pump(c);
}

/* The data is on the backend: the map follows. */
static void data_done(struct seg_run *r)
{
    struct seg_chunk *c = r->c;
    uint32_t end = r->op->offset + r->op->len;

    if (r->status) {
        if (r->status != HF_BE_ENOSPC)
            seg_report(c, r->pieces[0].block, seg_io_error(r->status), "write failed");
        write_end(r, seg_io_error(r->status));
        return;
    }
    for (unsigned i = 0; i < r->npieces; i++) {
        struct seg_piece *p = &r->pieces[i];
        struct seg_entry *e = &c->e[p->block];

        if (e->len > 0 && e->slot != p->e.slot)
            seg_slot_clear(&c->used, e->slot);
        *e = p->e;
        p->reserved = false;
        c->fresh |= 1ull << p->block;
    }
    if (end > c->len)
        c->len = end;
    c->dirty = c->exists = true;
    seg_age_enter(c);
    write_end(r, 0);
}

static void piece_write(struct seg_run *r, struct seg_piece *p, uint32_t op_crc)
{
    const struct seg_entry *old = &r->c->e[p->block];
    uint64_t base = seg_slot_offset(p->e.slot);

    p->e.len = p->off + p->len > old->len ? p->off + p->len : old->len;
    if (p->off == 0 && !p->merge) {
        p->e.crc = op_crc;
        seg_run_add(r, HF_BE_WRITE, base, p->data, p->len);
    } else if (p->merge) {
        memset(p->bounce + old->len, 0, HF_SEG_BLOCK_BYTES - old->len);
        memcpy(p->bounce + p->off, p->data, p->len);
        p->e.crc = hf_crc32c(0, p->bounce, p->e.len);
        seg_run_add(r, HF_BE_WRITE, base, p->bounce, p->e.len);
    } else if (p->bounce) {
        /* a gap behind the valid bytes: its zeros are part of the block from now on */
        uint32_t gap = p->off - old->len;

        memset(p->bounce, 0, gap);
        memcpy(p->bounce + gap, p->data, p->len);
        p->e.crc = hf_crc32c(old->len ? old->crc : 0, p->bounce, gap + p->len);
        seg_run_add(r, HF_BE_WRITE, base + old->len, p->bounce, gap + p->len);
    } else {
        p->e.crc = hf_crc32c(old->crc, p->data, p->len);
        seg_run_add(r, HF_BE_WRITE, base + p->off, p->data, p->len);
    }
}

static void merge_read(struct seg_run *r)
{
    struct seg_chunk *c = r->c;

    if (r->status) {
        seg_report(c, r->pieces[0].block, seg_io_error(r->status), "read before write failed");
        write_end(r, seg_io_error(r->status) == HF_E_NOMEM ? HF_E_NOMEM : HF_E_IO);
        return;
    }
    for (unsigned i = 0; i < r->npieces; i++) {
        struct seg_piece *p = &r->pieces[i];
        const struct seg_entry *old = &c->e[p->block];

        if (p->merge && hf_crc32c(0, p->bounce, old->len) != old->crc) {
            seg_report(c, p->block, HF_E_CORRUPT, "checksum does not match before write");
            write_end(r, HF_E_CORRUPT);
            return;
        }
    }
    r->nios = 0;
    for (unsigned i = 0; i < r->npieces; i++)
        piece_write(r, &r->pieces[i], r->op->crcs[i]);
    seg_run_go(r, hf_fault(c->seg->o.faults, HF_FAULT_SEG_WRITE), data_done);
}

/* Which pieces need the old block or memory of ours. */
static int plan(struct seg_run *r)
{
    for (unsigned i = 0; i < r->npieces; i++) {
        struct seg_piece *p = &r->pieces[i];
        const struct seg_entry *old = &r->c->e[p->block];

        p->merge = old->len > 0 && needs_slot(r->c, p) && !(p->off == 0 && p->len >= old->len);
        if (!p->merge && p->off <= old->len)
            continue;
        p->bounce = malloc(HF_SEG_BLOCK_BYTES);
        if (!p->bounce)
            return HF_E_NOMEM;
        if (p->merge)
            seg_run_add(r, HF_BE_READ, seg_slot_offset(old->slot), p->bounce, old->len);
    }
    return 0;
}

static int check(const struct seg_chunk *c, const struct seg_run *r)
{
    if (r->op->fence < c->fence)
        return HF_E_FENCED;
    for (unsigned i = 0; i < r->npieces; i++) {
        const struct seg_piece *p = &r->pieces[i];

        if (hf_crc32c(0, p->data, p->len) != r->op->crcs[i])
            return HF_E_CORRUPT;
    }
    return 0;
}

int seg_write(struct seg_chunk *c, struct hf_seg_op *op)
{
    struct seg_run *r = seg_run_new(c, op, op->len);
    int rc = r ? check(c, r) : HF_E_NOMEM;

    if (rc == 0 && op->len > 0 && !reserve_all(r)) {
        seg_run_free(r);
        return HF_E_BUSY;
    }
    if (rc == 0)
        rc = plan(r);
    if (rc || op->len == 0) {
        if (r) {
            unreserve(r);
            seg_run_free(r);
        }
        if (rc == 0 && op->stable && c->dirty)
            hf_list_push_back(&c->waiters, &op->link);
        else
            seg_finish(op, rc);
        return 0;
    }
    c->seg->stat.writes++;
    if (op->fence > c->fence) {
        c->fence = op->fence;
        c->dirty = true;
    }
    c->busy |= seg_op_mask(op);
    c->nwrite++;
    seg_run_go(r, r->nios ? hf_fault(c->seg->o.faults, HF_FAULT_SEG_MERGE) : 0, merge_read);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * TRUNC, PUNCH and DELETE, which run alone on their chunk (c->excl).
 */
#include "seg_priv.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"

struct cut {
    struct seg_io io;
    struct seg_chunk *c;
    uint8_t *buf; /* the block that is cut */
};

static void cut_free(struct cut *k)
{
    if (k)
        free(k->buf);
    free(k);
}

static void excl_end(struct seg_chunk *c, int status)
{
    struct hf_seg_op *op = c->excl;

    c->excl = NULL;
    seg_finish(op, status);
    seg_pump(c);
}

/* Changes the map and commits it. buf: the cut block's content, checked, or NULL if no block is
 * cut. */
static void cut_apply(struct seg_chunk *c, const uint8_t *buf)
{
    struct hf_seg_op *op = c->excl;
    uint32_t len = op->len < c->len ? op->len : c->len;

    for (unsigned b = len / HF_SEG_BLOCK_BYTES; b < HF_SEG_BLOCKS; b++) {
        struct seg_entry *e = &c->e[b];
        uint32_t start = b * HF_SEG_BLOCK_BYTES, keep = len > start ? len - start : 0;

        if (e->len <= keep)
            continue;
        c->fresh |= 1ull << b;
        c->cut |= 1ull << b;
        if (keep == 0)
            seg_slot_clear(&c->used, e->slot);
        else
            e->crc = hf_crc32c(0, buf, keep);
        e->len = keep;
    }
    if (len != c->len || op->fence > c->fence)
        c->dirty = true;
    c->len = len;
    if (op->fence > c->fence)
        c->fence = op->fence;
    if (!c->dirty) {
        excl_end(c, 0);
        return;
    }
    seg_age_enter(c);
    seg_commit(c);
}

static void cut_read(struct seg_io *io)
{
    struct cut *k = io->arg;
    struct seg_chunk *c = k->c;
    unsigned b = c->excl->len / HF_SEG_BLOCK_BYTES;
    int rc = 0;

    if (io->io.status) {
        rc = HF_E_IO;
        seg_report(c, b, rc, "read before truncate failed");
    } else if (hf_crc32c(0, k->buf, c->e[b].len) != c->e[b].crc) {
        rc = HF_E_CORRUPT;
        seg_report(c, b, rc, "checksum does not match before truncate");
    }
    if (rc)
        excl_end(c, rc);
    else
        cut_apply(c, k->buf);
    cut_free(k);
}

void seg_trunc(struct seg_chunk *c, struct hf_seg_op *op)
{
    unsigned b = op->len / HF_SEG_BLOCK_BYTES;
    int rc = op->fence < c->fence ? HF_E_FENCED : hf_fault(c->seg->o.faults, HF_FAULT_SEG_TRUNC);
    struct cut *k;

    if (rc) {
        excl_end(c, rc);
        return;
    }
    if (op->len >= c->len || c->e[b].len <= op->len % HF_SEG_BLOCK_BYTES ||
        op->len % HF_SEG_BLOCK_BYTES == 0) {
        cut_apply(c, NULL);
        return;
    }
    k = calloc(1, sizeof(*k));
    if (k)
        k->buf = malloc(HF_SEG_BLOCK_BYTES);
    if (!k || !k->buf) {
        cut_free(k);
        excl_end(c, HF_E_NOMEM);
        return;
    }
    k->c = c;
    k->io.io = (struct hf_be_io){.op = HF_BE_READ,
                                 .offset = seg_slot_offset(c->e[b].slot),
                                 .data = k->buf,
                                 .len = c->e[b].len};
    k->io.done = cut_read;
    k->io.arg = k;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_CUT));
}

static void tail_cut(struct seg_io *io)
{
    struct cut *k = io->arg;
    struct seg_chunk *c = k->c;

    if (io->io.status)
        seg_report(c, ~0u, seg_io_error(io->io.status), "space behind the end was not freed");
    cut_free(k);
    excl_end(c, 0);
}

/* The shorter chunk is durable, so no header that counts refers to a slot behind its last one: the
 * space is given back. Without it nothing is wrong but the space. */
void seg_trunc_committed(struct seg_chunk *c, int status)
{
    struct cut *k = status ? NULL : calloc(1, sizeof(*k));
    unsigned slots = SEG_SLOTS;

    if (!k) {
        excl_end(c, status);
        return;
    }
    while (slots > 0 && !seg_slot_has(&c->used, slots - 1))
        slots--;
    k->c = c;
    k->io.io = (struct hf_be_io){.op = HF_BE_TRUNCATE, .offset = seg_slot_offset(slots)};
    k->io.done = tail_cut;
    k->io.arg = k;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_SHRINK));
}

/* Ends like a TRUNC: with a commit, and the space behind the last slot given back; that of the
 * other slots goes when the chunk has been idle (punch.c). */
void seg_punch_blocks(struct seg_chunk *c, struct hf_seg_op *op)
{
    unsigned first = (op->offset + HF_SEG_BLOCK_BYTES - 1) / HF_SEG_BLOCK_BYTES;
    unsigned end = (op->offset + op->len) / HF_SEG_BLOCK_BYTES;
    int rc = op->fence < c->fence ? HF_E_FENCED : hf_fault(c->seg->o.faults, HF_FAULT_SEG_TRUNC);

    if (rc || (!c->exists && !c->dirty)) {
        excl_end(c, rc);
        return;
    }
    for (unsigned b = first; b < end; b++) {
        struct seg_entry *e = &c->e[b];

        if (e->len == 0)
            continue;
        seg_slot_clear(&c->used, e->slot);
        *e = (struct seg_entry){0};
        c->fresh |= 1ull << b;
        c->dirty = true;
    }
    if (op->fence > c->fence) {
        c->fence = op->fence;
        c->dirty = true;
    }
    if (!c->dirty) {
        excl_end(c, 0);
        return;
    }
    seg_age_enter(c);
    seg_commit(c);
}

static void deleted(struct seg_io *io)
{
    struct cut *k = io->arg;
    struct seg_chunk *c = k->c;
    int rc = io->io.status ? HF_E_IO : 0;

    if (rc) {
        seg_report(c, ~0u, rc, "delete failed");
        /* Whether it is there is unknown: look again. */
        if (!c->failed) {
            seg_age_leave(c);
            seg_reset(c);
            c->state = SEG_NEW;
        }
    } else {
        c->seg->stat.deletes++;
        c->excl->freed = io->io.allocated;
        seg_age_leave(c);
        seg_reset(c);
        c->state = SEG_READY;
        if (c->failed)
            c->seg->nfailed--;
        c->failed = false;
    }
    cut_free(k);
    excl_end(c, rc);
}

void seg_delete(struct seg_chunk *c, struct hf_seg_op *op)
{
    struct cut *k = calloc(1, sizeof(*k));

    (void)op;
    if (!k) {
        excl_end(c, HF_E_NOMEM);
        return;
    }
    k->c = c;
    k->io.io = (struct hf_be_io){.op = HF_BE_DELETE};
    k->io.done = deleted;
    k->io.arg = k;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_DELETE));
}

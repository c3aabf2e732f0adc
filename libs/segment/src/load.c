/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a chunk: its headers, the check of an unmarked one, the repair of a commit that was cut
 * off.
 */
#include "seg_priv.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"

struct load {
    struct seg_io io;
    struct seg_chunk *c;
    struct seg_header newest, other;
    int other_status; /* 0: other is valid; NOENT: its place was never written */
    unsigned place;   /* of newest */
    unsigned block;   /* being checked */
    uint8_t *buf;     /* one block, or the two headers */
};

_Static_assert(2 * SEG_HDR_BYTES <= HF_SEG_BLOCK_BYTES, "one buffer for both");

/* An open may have to write; to an operation that adds nothing, no space is a failed disk. */
static int status_of(const struct hf_seg_op *op, int status)
{
    bool adds = op->kind == HF_SEG_WRITE || op->kind == HF_SEG_TRUNC || op->kind == HF_SEG_PUNCH;

    return status == HF_E_NOSPC && !adds ? HF_E_IO : status;
}

static void load_end(struct load *ld, int status)
{
    struct seg_chunk *c = ld->c;
    struct hf_list *l;

    free(ld->buf);
    free(ld);
    c->state = status ? SEG_NEW : SEG_READY;
    while (status && (l = hf_list_pop_front(&c->queue)) != NULL) {
        struct hf_seg_op *op = hf_container_of(l, struct hf_seg_op, link);

        seg_finish(op, status_of(op, status));
    }
    seg_pump(c);
}

static void step(struct load *ld, uint32_t op, uint64_t offset, size_t len,
                 void (*done)(struct seg_io *io))
{
    enum hf_fault_point p = op != HF_BE_READ ? HF_FAULT_SEG_SETTLE
                            : offset > 0     ? HF_FAULT_SEG_CHECK
                                             : HF_FAULT_SEG_LOAD;

    ld->io.io = (struct hf_be_io){.op = op, .offset = offset, .data = ld->buf, .len = len};
    ld->io.done = done;
    ld->io.arg = ld;
    seg_io_submit(ld->c, &ld->io, hf_fault(ld->c->seg->o.faults, p));
}

static void repaired(struct seg_io *io)
{
    struct load *ld = io->arg;
    struct seg_chunk *c = ld->c;

    if (io->io.status) {
        seg_report(c, ~0u, HF_E_IO, "sync at open failed");
        load_end(ld, seg_io_error(io->io.status));
        return;
    }
    c->seq = ld->newest.seq;
    c->place = ld->place ^ 1u;
    c->exists = true;
    c->dirty = false;
    c->marked = ld->newest.clean;
    if (!c->marked)
        seg_age_enter(c);
    load_end(ld, 0);
}

static void repair_written(struct seg_io *io)
{
    struct load *ld = io->arg;

    if (io->io.status) {
        seg_report(ld->c, ~0u, HF_E_IO, "repair at open failed");
        load_end(ld, seg_io_error(io->io.status));
        return;
    }
    step(ld, HF_BE_SYNC, 0, 0, repaired);
}

/* The newest commit was cut off. What was durable before it is committed again in its place, under
 * a higher sequence. */
static void fall_back(struct load *ld)
{
    struct seg_header none = {.len = 0};
    uint64_t seq = ld->newest.seq + 1;

    ld->newest = ld->other_status == 0 ? ld->other : none;
    ld->newest.seq = seq;
    ld->newest.fresh = 0;
    ld->newest.clean = ld->newest.copy = false;
    seg_set_header(ld->c, &ld->newest);
    seg_header_encode(&ld->c->id, &ld->newest, ld->buf);
    step(ld, HF_BE_WRITE, (uint64_t)ld->place * SEG_HDR_BYTES, SEG_HDR_BYTES, repair_written);
}

static void check_next(struct load *ld);

static void checked(struct seg_io *io)
{
    struct load *ld = io->arg;
    const struct seg_entry *e = &ld->newest.e[ld->block];

    if (io->io.status) {
        seg_report(ld->c, ld->block, HF_E_IO, "read at open failed");
        load_end(ld, seg_io_error(io->io.status));
        return;
    }
    if (hf_crc32c(0, ld->buf, e->len) == e->crc) {
        ld->block++;
        check_next(ld);
    } else if (ld->other_status == HF_E_CORRUPT) {
        /* Decay, for a torn commit leaves the older header whole. Reads of the block will say
         * CORRUPT. */
        seg_report(ld->c, ld->block, HF_E_CORRUPT,
                   "block does not match and the older header is gone");
        ld->block++;
        check_next(ld);
    } else {
        fall_back(ld);
    }
}

static void check_next(struct load *ld)
{
    const struct seg_header *h = &ld->newest;

    while (ld->block < HF_SEG_BLOCKS &&
           (!((h->fresh >> ld->block) & 1u) || h->e[ld->block].len == 0))
        ld->block++;
    if (ld->block < HF_SEG_BLOCKS) {
        step(ld, HF_BE_READ, seg_slot_offset(h->e[ld->block].slot), h->e[ld->block].len, checked);
        return;
    }
    /* All there, though perhaps only in memory: make sure before a slot of the older header is
     * used. */
    seg_set_header(ld->c, h);
    step(ld, HF_BE_SYNC, 0, 0, repaired);
}

static void headers_read(struct seg_io *io)
{
    struct load *ld = io->arg;
    struct seg_chunk *c = ld->c;
    int rc;

    if (io->io.status == HF_BE_ENOENT) {
        seg_reset(c);
        load_end(ld, 0);
        return;
    }
    if (io->io.status) {
        seg_report(c, ~0u, HF_E_IO, "header read failed");
        load_end(ld, seg_io_error(io->io.status));
        return;
    }
    rc = seg_header_pick(&c->id, ld->buf, &ld->newest, &ld->other, &ld->place, &ld->other_status);
    if (rc == HF_E_NOENT) {
        seg_reset(c);
        c->exists = true;
        load_end(ld, 0);
        return;
    }
    if (rc) {
        seg_report(c, ~0u, HF_E_CORRUPT,
                   rc == HF_E_VERSION ? "header is of a later version" : "no valid header");
        load_end(ld, HF_E_CORRUPT);
        return;
    }
    if (!ld->newest.clean) {
        check_next(ld);
        return;
    }
    seg_set_header(c, &ld->newest);
    if (ld->newest.copy) { /* the original has decayed: the copy must be on disk before its place is
                              used */
        seg_report(c, ~0u, HF_E_CORRUPT, "a header has decayed; its copy is used");
        step(ld, HF_BE_SYNC, 0, 0, repaired);
        return;
    }
    c->seq = ld->newest.seq;
    c->place = ld->place ^ 1u;
    c->exists = c->marked = true;
    c->dirty = false;
    load_end(ld, 0);
}

void seg_load(struct seg_chunk *c)
{
    struct load *ld = calloc(1, sizeof(*ld));

    c->state = SEG_LOADING;
    if (ld)
        ld->buf = malloc(HF_SEG_BLOCK_BYTES);
    if (!ld || !ld->buf) {
        struct hf_list *l;

        free(ld);
        c->state = SEG_NEW;
        while ((l = hf_list_pop_front(&c->queue)) != NULL)
            seg_finish(hf_container_of(l, struct hf_seg_op, link), HF_E_NOMEM);
        return;
    }
    ld->c = c;
    step(ld, HF_BE_READ, 0, 2 * (size_t)SEG_HDR_BYTES, headers_read);
}

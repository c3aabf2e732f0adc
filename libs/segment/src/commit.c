/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a chunk durable: header, sync; and the clean mark.
 */
#include "seg_priv.h"

#include <stdlib.h>

struct commit {
    struct seg_io io;
    struct seg_chunk *c;
    uint8_t buf[SEG_HDR_BYTES];
};

/* The chunk's map becomes that of the header, which is durable. */
void seg_set_header(struct seg_chunk *c, const struct seg_header *h)
{
    c->fence = h->fence;
    c->len = h->len;
    memcpy(c->e, h->e, sizeof(c->e));
    c->used = c->prot = c->touched = seg_header_slots(h->e);
    c->fresh = c->cut = 0;
}

/* The chunk as one that has no object. */
void seg_reset(struct seg_chunk *c)
{
    struct seg_header none = {.len = 0};

    seg_set_header(c, &none);
    c->exists = c->dirty = false;
    c->marked = true;
    c->place = 0;
    c->seq = 0;
}

static void encode(struct commit *k, uint64_t seq, bool clean)
{
    struct seg_header h = {
        .seq = seq, .fresh = k->c->fresh, .fence = k->c->fence, .len = k->c->len, .clean = clean};

    memcpy(h.e, k->c->e, sizeof(h.e));
    seg_header_encode(&k->c->id, &h, k->buf);
}

/* Whoever shares the commit is told; with the chunk failed, later ops are refused in the queue. */
static void commit_end(struct seg_chunk *c, int status)
{
    struct hf_list *l;

    c->header_busy = c->want_commit = false;
    c->group = 0;
    while ((l = hf_list_pop_front(&c->sharing)) != NULL)
        seg_finish(hf_container_of(l, struct hf_seg_op, link), status);
    if (status && c->short_of_slots && !hf_list_empty(&c->queue)) {
        l = hf_list_pop_front(&c->queue); /* it cannot run, and must not try for ever */
        seg_finish(hf_container_of(l, struct hf_seg_op, link), status);
    }
    c->short_of_slots = false;
    if (c->excl)
        seg_trunc_committed(c, status);
    else
        seg_pump(c);
}

/* The device can no longer be trusted with this chunk. */
static void commit_fatal(struct commit *k, int be_status, const char *what)
{
    struct seg_chunk *c = k->c;

    seg_report(c, ~0u, HF_E_IO, what);
    c->failed = true;
    c->seg->nfailed++;
    seg_age_leave(c);
    free(k);
    commit_end(c, be_status == HF_BE_ENOSPC ? HF_E_NOSPC : HF_E_IO);
}

static void sync_done(struct seg_io *io)
{
    struct commit *k = io->arg;
    struct seg_chunk *c = k->c;

    if (io->io.status) {
        commit_fatal(k, io->io.status, "sync failed");
        return;
    }
    c->seg->stat.syncs++;
    c->seq++;
    c->place ^= 1u;
    c->prot = c->used;
    c->fresh = c->cut = 0;
    c->dirty = c->marked = false;
    seg_age_leave(c);
    seg_age_enter(c);
    free(k);
    commit_end(c, 0);
}

static void header_done(struct seg_io *io)
{
    struct commit *k = io->arg;
    struct seg_chunk *c = k->c;
    int rc;

    if (io->io.status == HF_BE_ENOSPC || io->io.status == HF_BE_ENOMEM) {
        /* Nothing is lost: the older header stands, and the next commit tries again. */
        seg_age_leave(c);
        seg_age_enter(c);
        rc = io->io.status;
        free(k);
        commit_end(c, rc);
        return;
    }
    if (io->io.status) {
        commit_fatal(k, io->io.status, "header write failed");
        return;
    }
    c->exists = true;
    k->io.io.op = HF_BE_SYNC;
    k->io.io.data = NULL;
    k->io.io.len = 0;
    k->io.done = sync_done;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_SYNC));
}

void seg_commit(struct seg_chunk *c)
{
    struct commit *k = calloc(1, sizeof(*k));
    struct hf_list *l;

    while ((l = hf_list_pop_front(&c->waiters)) != NULL)
        hf_list_push_back(&c->sharing, l);
    if (!k) {
        commit_end(c, HF_E_NOMEM);
        return;
    }
    c->header_busy = true;
    k->c = c;
    encode(k, c->seq + 1, false);
    k->io.io = (struct hf_be_io){.op = HF_BE_WRITE,
                                 .offset = (uint64_t)c->place * SEG_HDR_BYTES,
                                 .data = k->buf,
                                 .len = SEG_HDR_BYTES};
    k->io.done = header_done;
    k->io.arg = k;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_HEADER));
}

static void copy_done(struct seg_io *io)
{
    struct commit *k = io->arg;
    struct seg_chunk *c = k->c;

    if (io->io.status)
        seg_report(c, ~0u, seg_io_error(io->io.status), "clean mark failed");
    /* Without its mark the chunk is checked when it is next opened: nothing worse. */
    c->marked = true;
    c->header_busy = false;
    free(k);
    if (!c->dirty)
        seg_age_leave(c);
    if (!seg_punch(c))
        seg_pump(c);
}

/* The older header has served: the durable one takes its place too, so that decay of one header is
 * not taken for a commit that was cut off, and old or no content for the present one. Torn by a
 * crash, the copy is only invalid. */
static void mark_done(struct seg_io *io)
{
    struct commit *k = io->arg;
    struct seg_chunk *c = k->c;

    if (io->io.status) {
        copy_done(io);
        return;
    }
    seg_header_make_copy(k->buf);
    k->io.io = (struct hf_be_io){.op = HF_BE_WRITE,
                                 .offset = (uint64_t)c->place * SEG_HDR_BYTES,
                                 .data = k->buf,
                                 .len = SEG_HDR_BYTES};
    k->io.done = copy_done;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_COPY));
}

void seg_mark(struct seg_chunk *c)
{
    struct commit *k = calloc(1, sizeof(*k));

    if (!k)
        return; /* the timer comes again */
    c->header_busy = true;
    k->c = c;
    encode(k, c->seq, true);
    k->io.io = (struct hf_be_io){.op = HF_BE_WRITE,
                                 .offset = (uint64_t)(c->place ^ 1u) * SEG_HDR_BYTES,
                                 .data = k->buf,
                                 .len = SEG_MARK_BYTES};
    k->io.done = mark_done;
    k->io.arg = k;
    seg_io_submit(c, &k->io, hf_fault(c->seg->o.faults, HF_FAULT_SEG_MARK));
}

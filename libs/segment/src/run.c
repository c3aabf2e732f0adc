/* SPDX-License-Identifier: Apache-2.0
 *
 * An operation cut into blocks, and its backend operations. Neighbours in the object and in memory
 * become one backend operation, so that an aligned 1 MiB is one.
 */
#include "seg_priv.h"

#include <stdlib.h>

struct seg_run *seg_run_new(struct seg_chunk *c, struct hf_seg_op *op, uint32_t len)
{
    unsigned n = hf_seg_ncrcs(op->offset, len);
    struct seg_run *r = calloc(1, sizeof(*r));
    uint32_t at = op->offset, end = op->offset + len;
    uint8_t *data = op->data;

    if (!r)
        return NULL;
    r->op = op;
    r->c = c;
    r->npieces = n;
    if (n == 0)
        return r;
    r->pieces = calloc(n, sizeof(*r->pieces));
    r->ios = calloc(n, sizeof(*r->ios));
    if (!r->pieces || !r->ios) {
        seg_run_free(r);
        return NULL;
    }
    for (unsigned i = 0; i < n; i++) {
        struct seg_piece *p = &r->pieces[i];

        p->block = at / HF_SEG_BLOCK_BYTES;
        p->off = at % HF_SEG_BLOCK_BYTES;
        p->len = HF_SEG_BLOCK_BYTES - p->off < end - at ? HF_SEG_BLOCK_BYTES - p->off : end - at;
        p->data = data;
        data += p->len;
        at += p->len;
    }
    return r;
}

void seg_run_free(struct seg_run *r)
{
    for (unsigned i = 0; r->pieces && i < r->npieces; i++)
        free(r->pieces[i].bounce);
    free(r->pieces);
    free(r->ios);
    free(r);
}

void seg_run_add(struct seg_run *r, uint32_t be_op, uint64_t offset, void *data, size_t len)
{
    if (r->nios) {
        struct hf_be_io *last = &r->ios[r->nios - 1].io;

        if (last->op == be_op && last->offset + last->len == offset &&
            (uint8_t *)last->data + last->len == (uint8_t *)data) {
            last->len += len;
            return;
        }
    }
    r->ios[r->nios++].io =
        (struct hf_be_io){.op = be_op, .offset = offset, .data = data, .len = len};
}

static void one_done(struct seg_io *io)
{
    struct seg_run *r = io->arg;

    if (io->io.status && !r->status)
        r->status = io->io.status;
    if (--r->left == 0)
        r->phase_done(r);
}

void seg_run_go(struct seg_run *r, int fault, void (*done)(struct seg_run *r))
{
    unsigned n = r->nios;

    r->phase_done = done;
    r->left = n;
    if (n == 0) {
        done(r);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        r->ios[i].done = one_done;
        r->ios[i].arg = r;
        seg_io_submit(r->c, &r->ios[i], fault);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Giving back the space of slots that held older versions. It is done when a chunk has been idle,
 * after its clean mark: no header that counts refers to them, and a chunk that is being rewritten
 * keeps its slots.
 */
#include "seg_priv.h"

#include <stdlib.h>

struct punch {
    struct seg_chunk *c;
    unsigned left;
    struct seg_io ios[SEG_SLOTS / 2]; /* runs of slots; two runs have a gap between them */
};

static bool dead(const struct seg_chunk *c, unsigned slot)
{
    return seg_slot_has(&c->touched, slot) && !seg_slot_has(&c->used, slot) &&
           !seg_slot_has(&c->prot, slot);
}

static void punch_done(struct seg_io *io)
{
    struct punch *k = io->arg;
    struct seg_chunk *c = k->c;

    if (io->io.status == HF_BE_ENOTSUPP)
        c->seg->no_punch = true; /* the backend can, its file system cannot */
    else if (io->io.status)
        seg_report(c, ~0u, seg_io_error(io->io.status), "space of old content was not freed");
    if (--k->left > 0)
        return;
    free(k);
    c->header_busy = false;
    seg_pump(c);
}

bool seg_punch(struct seg_chunk *c)
{
    const struct hf_backend_ops *ops = hf_plug_ops(c->seg->o.backend);
    struct punch *k;

    if (c->seg->no_punch || !(ops->caps & HF_BE_CAP_PUNCH))
        return false;
    k = calloc(1, sizeof(*k));
    if (!k)
        return false;
    k->c = c;
    for (unsigned s = 0; s < SEG_SLOTS; s++) {
        unsigned n = 0;

        while (s + n < SEG_SLOTS && dead(c, s + n))
            n++;
        if (n == 0)
            continue;
        k->ios[k->left].io = (struct hf_be_io){
            .op = HF_BE_PUNCH, .offset = seg_slot_offset(s), .len = (size_t)n * HF_SEG_BLOCK_BYTES};
        k->ios[k->left].done = punch_done;
        k->ios[k->left].arg = k;
        k->left++;
        s += n;
    }
    c->touched = c->used;
    if (k->left == 0) {
        free(k);
        return false;
    }
    c->header_busy = true;
    for (unsigned i = 0, n = k->left; i < n; i++)
        seg_io_submit(c, &k->ios[i], hf_fault(c->seg->o.faults, HF_FAULT_SEG_PUNCH));
    return true;
}

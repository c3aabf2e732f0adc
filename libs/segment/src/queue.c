/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk's queue: which operations may run beside which (see seg_priv.h).
 */
#include "seg_priv.h"

bool seg_is_idle(const struct seg_chunk *c)
{
    return c->state != SEG_LOADING && hf_list_empty(&c->queue) && hf_list_empty(&c->waiters) &&
           hf_list_empty(&c->sharing) && !c->excl && c->nread == 0 && c->nwrite == 0 &&
           !c->header_busy;
}

static bool start_read(struct seg_chunk *c, struct hf_seg_op *op)
{
    if (c->nwrite > 0)
        return false;
    hf_list_remove(&op->link);
    if (op->kind == HF_SEG_SEEK)
        seg_seek(c, op);
    else
        seg_read(c, op);
    return true;
}

static bool start_write(struct seg_chunk *c, struct hf_seg_op *op)
{
    if (c->nread > 0 || c->header_busy || (c->busy & seg_op_mask(op)) || c->group >= SEG_GROUP_MAX)
        return false;
    hf_list_remove(&op->link);
    if (seg_write(c, op) == HF_E_BUSY) {
        hf_list_push_front(&c->queue, &op->link);
        c->short_of_slots = c->want_commit = true;
        return false;
    }
    c->short_of_slots = false;
    if (!hf_list_empty(&c->waiters))
        c->group++;
    return true;
}

static bool start_sync(struct seg_chunk *c, struct hf_seg_op *op)
{
    if (c->header_busy)
        return false;
    hf_list_remove(&op->link);
    if (c->dirty)
        hf_list_push_back(&c->waiters, &op->link);
    else
        seg_finish(op, 0);
    return true;
}

static bool start_excl(struct seg_chunk *c, struct hf_seg_op *op)
{
    if (c->nread > 0 || c->nwrite > 0 || c->header_busy || !hf_list_empty(&c->waiters))
        return false;
    hf_list_remove(&op->link);
    c->excl = op;
    if (op->kind == HF_SEG_TRUNC)
        seg_trunc(c, op);
    else if (op->kind == HF_SEG_PUNCH)
        seg_punch_blocks(c, op);
    else
        seg_delete(c, op);
    return true;
}

static bool start(struct seg_chunk *c, struct hf_seg_op *op)
{
    if (c->failed && op->kind != HF_SEG_DELETE) {
        hf_list_remove(&op->link);
        seg_finish(op, HF_E_IO);
        return true;
    }
    switch (op->kind) {
    case HF_SEG_READ:
    case HF_SEG_SEEK:
        return start_read(c, op);
    case HF_SEG_WRITE:
        return start_write(c, op);
    case HF_SEG_SYNC:
        return start_sync(c, op);
    default:
        return start_excl(c, op);
    }
}

static void pump_once(struct seg_chunk *c)
{
    if (c->state == SEG_LOADING || c->excl)
        return;
    while (!hf_list_empty(&c->queue)) {
        struct hf_seg_op *op = hf_container_of(c->queue.next, struct hf_seg_op, link);

        if (c->state == SEG_NEW && op->kind != HF_SEG_DELETE) {
            seg_load(c);
            return;
        }
        if (!start(c, op))
            break;
        if (c->excl)
            return;
    }
    if (c->want_commit && !c->dirty)
        c->want_commit = false;
    if (c->nwrite == 0 && !c->header_busy && (c->want_commit || !hf_list_empty(&c->waiters)))
        seg_commit(c);
}

/* What ends while it is being started comes here from inside; it is noted and done again from
 * outside. */
void seg_pump(struct seg_chunk *c)
{
    if (c->pumping) {
        c->pump_again = true;
        return;
    }
    c->pumping = true;
    do {
        c->pump_again = false;
        pump_once(c);
    } while (c->pump_again);
    c->pumping = false;
    if (seg_is_idle(c))
        seg_chunk_idle(c);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which chunks of a file may exist: a few ranges of chunk numbers. One more than fit, and the two
 * that are nearest to each other become one, so that a sparse file costs roughly what was written,
 * and not what its size is.
 */
#include "holdfast/assert.h"
#include "meta_priv.h"

#define STEP_MAX 64u /* chunks that a growing range runs ahead */

uint32_t hf_layout_nchunks(const struct hf_layout *l)
{
    return l->nranges ? l->ranges[l->nranges - 1].to : 0;
}

uint64_t hf_layout_bytes(const struct hf_layout *l, uint64_t size)
{
    uint64_t bytes = 0;

    for (unsigned k = 0; k < l->nranges; k++) {
        uint64_t from = (uint64_t)l->ranges[k].from * l->chunk_bytes;
        uint64_t to = (uint64_t)l->ranges[k].to * l->chunk_bytes;

        if (to > size)
            to = size;
        if (from < to)
            bytes += to - from;
    }
    return bytes;
}

/* Puts a range among the others; there may be one too many afterwards. */
static unsigned range_insert(struct hf_range r[HF_RANGES_MAX + 1], unsigned n, struct hf_range add)
{
    unsigned at = 0, end;

    while (at < n && r[at].to < add.from)
        at++;
    for (end = at; end < n && r[end].from <= add.to; end++) {
        if (r[end].from < add.from)
            add.from = r[end].from;
        if (r[end].to > add.to)
            add.to = r[end].to;
    }
    memmove(&r[at + 1], &r[end], (n - end) * sizeof(r[0])); /* r[at..end) become one */
    r[at] = add;
    return n - (end - at) + 1;
}

static void merge_nearest(struct hf_range *r, unsigned n)
{
    unsigned best = 0;

    for (unsigned k = 1; k + 1 < n; k++)
        if (r[k + 1].from - r[k].to < r[best + 1].from - r[best].to)
            best = k;
    r[best].to = r[best + 1].to;
    memmove(&r[best + 1], &r[best + 2], (n - best - 2) * sizeof(r[0]));
}

/* A range that is continued grows in steps that double up to STEP_MAX. */
static uint32_t grown(const struct hf_range *old, uint64_t to)
{
    uint64_t len = to - old->from, step = 1;

    while (step < len && step < STEP_MAX)
        step *= 2;
    to = old->from + hf_round_up(len, step);
    return to > UINT32_MAX ? UINT32_MAX : (uint32_t)to;
}

bool hf_layout_reserve(struct hf_layout *l, uint64_t offset, uint64_t end)
{
    uint64_t to = (end + l->chunk_bytes - 1) / l->chunk_bytes;
    struct hf_range all[HF_RANGES_MAX + 1], add;
    unsigned n = l->nranges;

    HF_ASSERT(offset < end && to <= UINT32_MAX); /* hf_size_check */
    add = (struct hf_range){(uint32_t)(offset / l->chunk_bytes), (uint32_t)to};
    for (unsigned k = 0; k < n; k++) {
        const struct hf_range *r = &l->ranges[k];

        if (r->from <= add.from && add.to <= r->to)
            return false;
        if (r->from <= add.from && add.from <= r->to)
            add.to = grown(r, add.to);
    }
    memcpy(all, l->ranges, n * sizeof(all[0]));
    n = range_insert(all, n, add);
    if (n > HF_RANGES_MAX)
        merge_nearest(all, n--);
    memcpy(l->ranges, all, n * sizeof(all[0]));
    l->nranges = (uint16_t)n;
    return true;
}

bool hf_layout_stale(const struct hf_layout *l, uint64_t *ret_from, uint64_t *ret_to)
{
    for (unsigned k = 0; l->trim && k < l->nranges; k++) {
        uint64_t from = (uint64_t)l->ranges[k].from * l->chunk_bytes;
        uint64_t to = (uint64_t)l->ranges[k].to * l->chunk_bytes;

        if (from < l->trim_from)
            from = l->trim_from;
        if (to > l->trim_to)
            to = l->trim_to;
        if (from < to) {
            *ret_from = from;
            *ret_to = to;
            return true;
        }
    }
    return false;
}

/* Holes are left out: what may be stale begins where a range does. */
static void trim_settle(struct hf_layout *l)
{
    uint64_t from, to;

    l->trim = hf_layout_stale(l, &from, &to);
    if (l->trim)
        l->trim_from = from;
    else
        l->trim_from = l->trim_to = 0;
}

void hf_layout_cut(struct hf_layout *l, uint64_t size)
{
    uint64_t end = (uint64_t)hf_layout_nchunks(l) * l->chunk_bytes;

    if (end <= size)
        return;
    l->trim_from = l->trim && l->trim_from < size ? l->trim_from : size;
    l->trim_to = l->trim && l->trim_to > end ? l->trim_to : end;
    l->trim = true;
    l->fence++;
    trim_settle(l);
}

bool hf_layout_settle(struct hf_layout *l, uint64_t size, uint64_t boot)
{
    if (l->boot == boot)
        return false;
    l->boot = boot;
    hf_layout_cut(l, size);
    return true;
}

void hf_layout_trimmed(struct hf_layout *l)
{
    uint64_t from, to;

    if (hf_layout_stale(l, &from, &to))
        l->trim_from = to;
    l->fence++;
    trim_settle(l);
}

int hf_layout_msg(struct hf_meta_op *op, const struct hf_layout *l, bool with_trim,
                  Hf__Layout **ret)
{
    Hf__Layout *msg = hf_arena_alloc(op->arena, sizeof(*msg));
    uint32_t *segs = hf_arena_dup(op->arena, l->segs, l->nsegs * sizeof(l->segs[0]));

    if (!msg || !segs)
        return HF_E_NOMEM;
    hf__layout__init(msg);
    msg->pool = l->pool;
    msg->chunk_bytes = l->chunk_bytes;
    msg->segments = segs;
    msg->n_segments = l->nsegs;
    msg->gen = l->gen;
    msg->fence = l->fence;
    if (with_trim)
        hf_layout_msg_refresh(msg, l);
    *ret = msg;
    return 0;
}

void hf_layout_msg_refresh(Hf__Layout *msg, const struct hf_layout *l)
{
    msg->fence = l->fence;
    msg->trim_from = msg->trim_to = 0;
    msg->trim = hf_layout_stale(l, &msg->trim_from, &msg->trim_to);
}

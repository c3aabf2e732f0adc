/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop's timers: a binary heap ordered by (due time, order of arming), so that timers due at the
 * same instant fire in the order they were set. Arming a timer, not the heap, can need memory;
 * running out of it there stops the process, because a time-out that never fires would hang its
 * request silently.
 */
#include <stdlib.h>

#include "rt_priv.h"

#define NOT_ARMED    (~(size_t)0)
#define HEAP_MIN_CAP ((size_t)64)

static bool earlier(const struct hf_timer *a, const struct hf_timer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void heap_put(struct hf_loop *l, size_t i, struct hf_timer *t)
{
    l->heap[i] = t;
    t->heap_index = i;
}

static void sift_up(struct hf_loop *l, size_t i, struct hf_timer *t)
{
    while (i > 0 && earlier(t, l->heap[(i - 1) / 2])) {
        heap_put(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(l, i, t);
}

static void sift_down(struct hf_loop *l, size_t i, struct hf_timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= l->ntimers)
            break;
        if (child + 1 < l->ntimers && earlier(l->heap[child + 1], l->heap[child]))
            child++;
        if (!earlier(l->heap[child], t))
            break;
        heap_put(l, i, l->heap[child]);
        i = child;
    }
    heap_put(l, i, t);
}

static void heap_remove(struct hf_loop *l, struct hf_timer *t)
{
    size_t i = t->heap_index;
    struct hf_timer *last = l->heap[--l->ntimers];

    t->heap_index = NOT_ARMED;
    if (last == t)
        return;
    if (i > 0 && earlier(last, l->heap[(i - 1) / 2]))
        sift_up(l, i, last);
    else
        sift_down(l, i, last);
}

void hf_timer_init(struct hf_timer *t, struct hf_loop *l, void (*fn)(struct hf_timer *t))
{
    *t = (struct hf_timer){.loop = l, .fn = fn, .heap_index = NOT_ARMED};
}

void hf_timer_set(struct hf_timer *t, uint64_t delay_ns)
{
    struct hf_loop *l = t->loop;
    uint64_t now = hf_env_mono_ns(l->env); /* not the cached one: a long turn must not shorten it */

    HF_ASSERT(hf_loop_in_thread(l));
    if (t->heap_index != NOT_ARMED)
        heap_remove(l, t);
    if (l->ntimers == l->heap_cap) {
        size_t cap = l->heap_cap ? l->heap_cap * 2 : HEAP_MIN_CAP;
        struct hf_timer **heap = realloc(l->heap, cap * sizeof(struct hf_timer *));

        HF_ASSERT(heap != NULL);
        l->heap = heap;
        l->heap_cap = cap;
    }
    t->at_ns = delay_ns < ~0ull - now ? now + delay_ns : ~0ull - 1;
    t->seq = l->timer_seq++;
    sift_up(l, l->ntimers++, t);
}

void hf_timer_cancel(struct hf_timer *t)
{
    if (t->heap_index == NOT_ARMED)
        return;
    HF_ASSERT(hf_loop_in_thread(t->loop));
    heap_remove(t->loop, t);
}

bool hf_timer_armed(const struct hf_timer *t)
{
    return t->heap_index != NOT_ARMED;
}

struct hf_timer *timer_pop_due(struct hf_loop *l)
{
    struct hf_timer *t;

    if (l->ntimers == 0)
        return NULL;
    t = l->heap[0];
    if (t->at_ns > l->now_ns || t->seq >= l->turn_seq)
        return NULL;
    heap_remove(l, t);
    return t;
}

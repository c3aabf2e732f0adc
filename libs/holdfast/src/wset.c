/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "wset.h"

#define SMALL_CAP  512u  /* memory of a small extent is a multiple of it */
#define STREAM_MIN 4096u /* longer ones get room to grow */

void wset_init(struct wset *s)
{
    *s = (struct wset){.charge = 0};
    hf_list_init(&s->fifo);
}

void ext_free(struct ext *x)
{
    free(x);
}

static struct ext **bucket(const struct wset *s, uint64_t off)
{
    return (struct ext **)(uintptr_t)&s->buckets[off / WSET_BLOCK % WSET_BUCKETS];
}

static uint64_t charge_of(const struct ext *x)
{
    return sizeof(*x) + x->cap;
}

void wset_remove(struct wset *s, struct ext *x)
{
    struct ext **at = bucket(s, x->off);

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    x->next = NULL;
    hf_list_remove(&x->fifo);
    s->charge -= charge_of(x);
    s->n--;
}

void wset_insert(struct wset *s, struct ext *x)
{
    struct ext **at = bucket(s, x->off);
    struct hf_list *after = s->fifo.prev;

    while (*at && (*at)->off < x->off)
        at = &(*at)->next;
    x->next = *at;
    *at = x;
    /* Nearly always it is the newest. */
    while (after != &s->fifo && hf_container_of(after, struct ext, fifo)->seq > x->seq)
        after = after->prev;
    hf_list_insert_(&x->fifo, after, after->next);
    s->charge += charge_of(x);
    s->n++;
}

void wset_fini(struct wset *s)
{
    while (!hf_list_empty(&s->fifo)) {
        struct ext *x = hf_container_of(s->fifo.next, struct ext, fifo);

        wset_remove(s, x);
        ext_free(x);
    }
}

/* The first extent of one block that ends at or beyond `off` (touch) or beyond it. */
static struct ext *find_in_block(const struct wset *s, uint64_t off, uint64_t end, bool touch)
{
    for (struct ext *x = *bucket(s, off); x; x = x->next) {
        if (touch ? x->off > end : x->off >= end)
            return NULL;
        if ((touch ? ext_end(x) >= off : ext_end(x) > off) &&
            x->off / WSET_BLOCK == off / WSET_BLOCK)
            return x;
    }
    return NULL;
}

static uint64_t block_end(uint64_t off)
{
    return (off / WSET_BLOCK + 1) * WSET_BLOCK;
}

struct ext *wset_find(const struct wset *s, uint64_t off, uint64_t end)
{
    uint64_t blocks = end > off ? (end - 1) / WSET_BLOCK - off / WSET_BLOCK + 1 : 0;
    struct ext *first = NULL;

    if (s->n == 0)
        return NULL;
    if (blocks > s->n) { /* a long range with little in it */
        HF_LIST_FOREACH(it, &s->fifo)
        {
            struct ext *x = hf_container_of(it, struct ext, fifo);

            /* the analyzer does not see that freed extents have left the list
             * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
            if (x->off < end && ext_end(x) > off && (!first || x->off < first->off))
                first = x;
        }
        return first;
    }
    for (uint64_t at = off; at < end && !first; at = block_end(at))
        first = find_in_block(s, at, end < block_end(at) ? end : block_end(at), false);
    return first;
}

static uint32_t cap_for(uint64_t off, uint32_t len)
{
    uint64_t room = block_end(off) - off;
    uint64_t cap = len <= STREAM_MIN ? len : (uint64_t)len * 4;

    cap = (cap + SMALL_CAP - 1) / SMALL_CAP * SMALL_CAP;
    return (uint32_t)(cap < room ? cap : room);
}

/* One extent for all that touch [off, end), with memory to put new bytes into. */
static struct ext *merge(struct wset *s, uint64_t off, uint64_t end, uint64_t seq)
{
    uint64_t lo = off, hi = end;
    struct ext *x, *m;

    for (x = find_in_block(s, off, end, true);
         x && x->off <= end && x->off / WSET_BLOCK == off / WSET_BLOCK; x = x->next) {
        lo = x->off < lo ? x->off : lo;
        hi = ext_end(x) > hi ? ext_end(x) : hi;
    }
    m = malloc(sizeof(*m) + cap_for(lo, (uint32_t)(hi - lo)));
    if (!m)
        return NULL;
    *m = (struct ext){
        .off = lo, .len = (uint32_t)(hi - lo), .cap = cap_for(lo, (uint32_t)(hi - lo)), .seq = seq};
    hf_list_init(&m->fifo);
    while ((x = find_in_block(s, off, end, true)) != NULL) {
        memcpy(m->data + (x->off - lo), x->data, x->len);
        m->seq = x->seq < m->seq ? x->seq : m->seq;
        m->sync |= x->sync;
        wset_remove(s, x);
        ext_free(x);
    }
    wset_insert(s, m);
    return m;
}

int wset_write(struct wset *s, uint64_t off, const void *data, uint32_t len, uint64_t seq,
               bool sync)
{
    uint64_t end = off + len;
    struct ext *x = find_in_block(s, off, end, true);

    HF_ASSERT(len > 0 && end <= block_end(off));
    if (!x || x->off > off || end > x->off + x->cap ||
        (x->next && x->next->off <= end && x->next->off / WSET_BLOCK == off / WSET_BLOCK)) {
        x = merge(s, off, end, seq);
        if (!x)
            return HF_E_NOMEM;
    }
    memcpy(x->data + (off - x->off), data, len);
    if (ext_end(x) < end)
        x->len = (uint32_t)(end - x->off);
    x->sync |= sync;
    return 0;
}

static int cut_one(struct wset *s, struct ext *x, uint64_t off, uint64_t end)
{
    uint64_t x_end = ext_end(x);
    struct ext *tail = NULL;
    int rc = 0;

    if (x_end > end) {
        uint32_t len = (uint32_t)(x_end - end);

        tail = malloc(sizeof(*tail) + len);
        if (!tail) {
            rc = HF_E_NOMEM;
        } else {
            *tail = *x;
            tail->off = end;
            tail->len = tail->cap = len;
            hf_list_init(&tail->fifo);
            memcpy(tail->data, x->data + (end - x->off), len);
        }
    }
    if (x->off < off) {
        x->len = (uint32_t)(off - x->off);
    } else {
        wset_remove(s, x);
        ext_free(x);
    }
    if (tail)
        wset_insert(s, tail);
    return rc;
}

int wset_cut(struct wset *s, uint64_t off, uint64_t end)
{
    struct ext *x;
    int rc = 0;

    while ((x = wset_find(s, off, end)) != NULL) {
        int r = cut_one(s, x, off, end);

        rc = r ? r : rc;
    }
    return rc;
}

uint64_t wset_end(const struct wset *s)
{
    uint64_t end = 0;

    HF_LIST_FOREACH(it, &s->fifo)
    {
        const struct ext *x = hf_container_of(it, struct ext, fifo);

        if (ext_end(x) > end)
            end = ext_end(x);
    }
    return end;
}

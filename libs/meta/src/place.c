/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the chunks of a new file go: `width` different segments of a pool, drawn by free space, or
 * as the file's directory says otherwise (enum hf_alloc).
 */
#include "meta_priv.h"

#include <stdlib.h>

#include "holdfast/map.h"

#define CHUNK_BYTES_DEFAULT (4u << 20)
#define CHUNK_BYTES_MIN     (64u << 10)
#define FREE_UNIT           (UINT64_C(64) << 20) /* weights count these: less than one is full */
#define FREE_UNKNOWN        (UINT64_C(1) << 40)  /* taken for a segment that has not said */
#define SEGS_LIMIT          65536u

void hf_place_fini(struct hf_place *p)
{
    free(p->pools);
    free(p->segs);
    *p = (struct hf_place){0};
}

static struct hf_place_seg *seg_find(const struct hf_place *p, uint32_t id)
{
    for (size_t k = 0; k < p->nsegs; k++)
        if (p->segs[k].id == id)
            return &p->segs[k];
    return NULL;
}

static void pool_set(struct hf_place_pool *pool, const Hf__PoolEntry *e)
{
    bool usable = e->chunk_bytes >= CHUNK_BYTES_MIN && e->chunk_bytes <= CHUNK_BYTES_DEFAULT &&
                  (e->chunk_bytes & (e->chunk_bytes - 1)) == 0;

    pool->id = e->id;
    pool->chunk_bytes = usable ? e->chunk_bytes : CHUNK_BYTES_DEFAULT;
    pool->width = e->width < 1 ? 1 : e->width > HF_SEGS_MAX ? HF_SEGS_MAX : e->width;
    pool->hot = strcmp(e->name, "hot") == 0;
}

int hf_place_set(struct hf_place *p, const Hf__MapGetRep *map)
{
    struct hf_place n = {.npools = map->n_pools, .nsegs = map->n_segments};

    if (n.npools > SEGS_LIMIT || n.nsegs > SEGS_LIMIT)
        return HF_E_INVAL;
    n.pools = calloc(n.npools + 1, sizeof(*n.pools));
    n.segs = calloc(n.nsegs + 1, sizeof(*n.segs));
    if (!n.pools || !n.segs) {
        hf_place_fini(&n);
        return HF_E_NOMEM;
    }
    for (size_t k = 0; k < n.npools; k++)
        pool_set(&n.pools[k], map->pools[k]);
    for (size_t k = 0; k < n.nsegs; k++) {
        const Hf__SegmentEntry *e = map->segments[k];
        const struct hf_place_seg *old = seg_find(p, e->id);

        if (old)
            n.segs[k] = *old;
        n.segs[k].id = e->id;
        n.segs[k].pool = e->pool;
    }
    n.turn = n.nsegs ? p->turn % n.nsegs : 0;
    hf_place_fini(p);
    *p = n;
    return 0;
}

void hf_place_set_free(struct hf_place *p, uint32_t segment, uint64_t free_bytes)
{
    struct hf_place_seg *s = seg_find(p, segment);

    if (s) {
        s->known = true;
        s->free_bytes = free_bytes;
    }
}

/* The pool "hot", else the first one that has segments. */
static const struct hf_place_pool *pool_pick(const struct hf_place *p)
{
    const struct hf_place_pool *best = NULL;

    for (size_t k = 0; k < p->npools; k++) {
        if (best && !p->pools[k].hot)
            continue;
        for (size_t s = 0; s < p->nsegs; s++) {
            if (p->segs[s].pool == p->pools[k].id) {
                best = &p->pools[k];
                break;
            }
        }
    }
    return best;
}

uint64_t hf_place_free(const struct hf_place *p)
{
    const struct hf_place_pool *pool = pool_pick(p);
    uint64_t most = 0;

    for (size_t k = 0; pool && k < p->nsegs; k++) {
        const struct hf_place_seg *s = &p->segs[k];

        if (s->pool != pool->id)
            continue;
        if (!s->known)
            return ~0ull;
        if (s->free_bytes > most) /* segments may share a disk: their sum would promise too much */
            most = s->free_bytes;
    }
    return most;
}

/* Weights of the pool's segments; the sum. If all are full they count the same, and the segments
 * say so. */
static uint64_t weigh(struct hf_place *p, uint32_t pool)
{
    uint64_t total = 0, equal = 0;

    for (size_t k = 0; k < p->nsegs; k++) {
        struct hf_place_seg *s = &p->segs[k];
        uint64_t free_bytes = s->known ? s->free_bytes : FREE_UNKNOWN;

        s->weight = s->pool == pool ? free_bytes / FREE_UNIT : 0;
        if (s->weight > UINT32_MAX)
            s->weight = UINT32_MAX;
        total += s->weight;
    }
    if (total)
        return total;
    for (size_t k = 0; k < p->nsegs; k++) {
        p->segs[k].weight = p->segs[k].pool == pool;
        equal += p->segs[k].weight;
    }
    return equal;
}

static void take(struct hf_place_seg *s, struct hf_layout *l, uint64_t *total)
{
    l->segs[l->nsegs++] = s->id;
    *total -= s->weight;
    s->weight = 0;
}

/* The next ones in turn, whatever space they have as long as it is some. */
static void pick_round_robin(struct hf_place *p, unsigned width, struct hf_layout *l,
                             uint64_t *total)
{
    size_t last = p->turn;

    if (p->nsegs == 0)
        return;
    for (size_t n = 0; n < p->nsegs && l->nsegs < width; n++) {
        size_t k = (p->turn + n) % p->nsegs;

        if (p->segs[k].weight) {
            take(&p->segs[k], l, total);
            last = k;
        }
    }
    p->turn = (last + 1) % p->nsegs;
}

static void pick_preferred(struct hf_place *p, const uint32_t *prefer, size_t nprefer,
                           unsigned width, struct hf_layout *l, uint64_t *total)
{
    for (size_t n = 0; n < nprefer && n < HF_SEGS_MAX && l->nsegs < width; n++) {
        struct hf_place_seg *s = seg_find(p, prefer[n]);

        if (s && s->weight) /* full ones, and those of other pools, have none */
            take(s, l, total);
    }
}

int hf_place_pick(struct hf_place *p, enum hf_alloc how, const uint32_t *prefer, size_t nprefer,
                  uint64_t random, struct hf_layout *ret)
{
    const struct hf_place_pool *pool = pool_pick(p);
    uint64_t total;

    if (!pool)
        return HF_E_NOSPC;
    memset(ret, 0, offsetof(struct hf_layout, segs));
    ret->pool = pool->id;
    ret->chunk_bytes = pool->chunk_bytes;
    total = weigh(p, pool->id);
    if (how == HF_ALLOC_ROUND_ROBIN)
        pick_round_robin(p, pool->width, ret, &total);
    else if (how == HF_ALLOC_LOCAL)
        pick_preferred(p, prefer, nprefer, pool->width, ret, &total);
    while (ret->nsegs < pool->width && total) {
        uint64_t at = hf_hash_u64(random + ret->nsegs) % total;
        size_t k = 0;

        while (at >= p->segs[k].weight)
            at -= p->segs[k++].weight;
        take(&p->segs[k], ret, &total);
    }
    return 0;
}

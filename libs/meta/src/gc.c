/* SPDX-License-Identifier: Apache-2.0
 *
 * The gc table: chunks that nothing refers to, or (due in the future) that a promotion may still
 * claim.
 */
#include "meta_priv.h"

/* One row for each range of chunks. */
int hf_gc_put(struct hf_meta *m, uint64_t ino, const struct hf_layout *l, int64_t due_ns)
{
    struct hf_gc g = {
        .pool = l->pool, .chunk_bytes = l->chunk_bytes, .due_ns = due_ns, .nsegs = l->nsegs};
    uint8_t key[HF_KEY_GC], val[HF_GC_VALUE_MAX];
    int r = 0;

    memcpy(g.segs, l->segs, l->nsegs * sizeof(g.segs[0]));
    for (unsigned k = 0; k < l->nranges && r == 0; k++) {
        size_t n;

        g.nchunks = l->ranges[k].to;
        n = hf_gc_encode(&g, val);
        hf_key_gc(key, ino, l->gen, l->ranges[k].from);
        r = hf_store_put(m->store, HF_T_GC, hf_slice(key, sizeof(key)), hf_slice(val, n));
    }
    return r;
}

static int gc_del(struct hf_meta *m, uint64_t ino, uint32_t gen, uint32_t from)
{
    uint8_t key[HF_KEY_GC];

    hf_key_gc(key, ino, gen, from);
    return hf_store_del(m->store, HF_T_GC, hf_slice(key, sizeof(key)));
}

int hf_gc_unput(struct hf_meta *m, uint64_t ino, const struct hf_layout *l)
{
    int r = 0;

    for (unsigned k = 0; k < l->nranges && r == 0; k++)
        r = gc_del(m, ino, l->gen, l->ranges[k].from);
    return r;
}

/* One more row of the layout. CORRUPT: more than a layout can have, or out of order. */
static int claim_add(struct hf_slice key, struct hf_slice val, int64_t now_ns, struct hf_layout *l)
{
    uint32_t gen, from;
    struct hf_gc g;
    uint64_t ino;
    int r = hf_key_gc_parse(key, &ino, &gen, &from);

    if (r == 0)
        r = hf_gc_decode(val, &g);
    if (r)
        return r;
    if (g.due_ns <= now_ns)
        return HF_E_CHANGED;
    if (l->nranges == HF_RANGES_MAX || from >= g.nchunks ||
        (l->nranges && from <= hf_layout_nchunks(l)))
        return HF_E_CORRUPT;
    l->ranges[l->nranges++] = (struct hf_range){from, g.nchunks};
    l->pool = g.pool;
    l->chunk_bytes = g.chunk_bytes;
    l->gen = gen;
    l->nsegs = g.nsegs;
    memcpy(l->segs, g.segs, g.nsegs * sizeof(g.segs[0]));
    return 0;
}

int hf_gc_claim(struct hf_meta *m, uint64_t ino, uint32_t gen, int64_t now_ns,
                struct hf_layout *ret)
{
    uint8_t from[HF_KEY_GC];
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    memset(ret, 0, offsetof(struct hf_layout, segs));
    hf_key_gc(from, ino, gen, 0);
    r = hf_store_seek(m->store, HF_T_GC, hf_slice(from, 12), hf_slice(from, 12), &it);
    if (r)
        return r;
    while (r == 0) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = claim_add(key, val, now_ns, ret);
    }
    hf_store_iter_end(&it);
    if (r != HF_E_NOENT)
        return r;
    return ret->nranges ? 0 : HF_E_CHANGED;
}

static int gc_found(struct hf_slice key, struct hf_slice val, int64_t now_ns,
                    struct hf_meta_gc *ret)
{
    struct hf_gc g;
    uint64_t ino;
    uint32_t gen, from;
    int r = hf_key_gc_parse(key, &ino, &gen, &from);

    if (r == 0)
        r = hf_gc_decode(val, &g);
    if (r)
        return r;
    if (g.due_ns > now_ns)
        return HF_E_NOENT;
    ret->ino = ino;
    ret->layout_gen = gen;
    ret->first_chunk = from;
    ret->nchunks = g.nchunks;
    ret->nsegments = g.nsegs;
    memcpy(ret->segments, g.segs, g.nsegs * sizeof(g.segs[0]));
    return 0;
}

int hf_meta_gc_next(struct hf_meta *m, const struct hf_meta_gc *after, int64_t now_ns,
                    struct hf_meta_gc *ret)
{
    uint8_t from[HF_KEY_GC + 1] = {0};
    size_t n = 1;
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    if (after) {
        hf_key_gc(from, after->ino, after->layout_gen, after->first_chunk);
        n = sizeof(from); /* the next longer key */
    }
    r = hf_store_seek(m->store, HF_T_GC, hf_slice(NULL, 0), hf_slice(from, n), &it);
    if (r)
        return r;
    do {
        r = hf_store_next(&it, &key, &val);
        if (r == 0) {
            r = gc_found(key, val, now_ns, ret);
            if (r == 0)
                break;
            if (r == HF_E_NOENT)
                r = 0;
        }
    } while (r == 0);
    hf_store_iter_end(&it);
    return r;
}

int hf_meta_gc_done(struct hf_meta *m, const struct hf_meta_gc *g)
{
    return gc_del(m, g->ino, g->layout_gen, g->first_chunk);
}

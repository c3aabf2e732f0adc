/* SPDX-License-Identifier: Apache-2.0
 *
 * The gc table: chunks that nothing refers to, or (due in the future) that a promotion may still
 * claim.
 */
#include "meta_priv.h"

int hf_gc_put(struct hf_meta *m, uint64_t ino, const struct hf_layout *l, int64_t due_ns)
{
    struct hf_gc g = {.nchunks = l->nchunks,
                      .pool = l->pool,
                      .chunk_bytes = l->chunk_bytes,
                      .due_ns = due_ns,
                      .nsegs = l->nsegs};
    uint8_t key[HF_KEY_GC], val[HF_GC_VALUE_MAX];
    size_t n;

    memcpy(g.segs, l->segs, l->nsegs * sizeof(g.segs[0]));
    n = hf_gc_encode(&g, val);
    hf_key_gc(key, ino, l->gen);
    return hf_store_put(m->store, HF_T_GC, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

int hf_gc_del(struct hf_meta *m, uint64_t ino, uint32_t gen)
{
    uint8_t key[HF_KEY_GC];

    hf_key_gc(key, ino, gen);
    return hf_store_del(m->store, HF_T_GC, hf_slice(key, sizeof(key)));
}

int hf_gc_claim(struct hf_meta *m, uint64_t ino, uint32_t gen, int64_t now_ns,
                struct hf_layout *ret)
{
    uint8_t key[HF_KEY_GC];
    struct hf_slice val;
    struct hf_gc g;
    int r;

    hf_key_gc(key, ino, gen);
    r = hf_store_get(m->store, HF_T_GC, hf_slice(key, sizeof(key)), &val);
    if (r == 0)
        r = hf_gc_decode(val, &g);
    if (r)
        return r;
    if (g.due_ns <= now_ns)
        return HF_E_NOENT;
    memset(ret, 0, offsetof(struct hf_layout, segs));
    ret->pool = g.pool;
    ret->chunk_bytes = g.chunk_bytes;
    ret->gen = gen;
    ret->nchunks = g.nchunks;
    ret->nsegs = g.nsegs;
    memcpy(ret->segs, g.segs, g.nsegs * sizeof(g.segs[0]));
    return 0;
}

static int gc_found(struct hf_slice key, struct hf_slice val, int64_t now_ns,
                    struct hf_meta_gc *ret)
{
    struct hf_gc g;
    uint64_t ino;
    uint32_t gen;
    int r = hf_key_gc_parse(key, &ino, &gen);

    if (r == 0)
        r = hf_gc_decode(val, &g);
    if (r)
        return r;
    if (g.due_ns > now_ns)
        return HF_E_NOENT;
    ret->ino = ino;
    ret->layout_gen = gen;
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
        hf_key_gc(from, after->ino, after->layout_gen);
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
    return hf_gc_del(m, g->ino, g->layout_gen);
}

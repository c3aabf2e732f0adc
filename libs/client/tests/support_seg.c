/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment server in memory. Every chunk has two images: what was written, and what a crash
 * leaves.
 */
#include "support_seg.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/crc32c.h"

#define BLOCK (64u << 10)

static struct wchunk *chunk_find(struct wseg *s, const Hf__ChunkId *id, bool make)
{
    struct wchunk *unused = NULL;

    for (unsigned i = 0; i < W_CHUNKS; i++) {
        struct wchunk *k = &s->chunks[i];

        if (!k->used) {
            unused = unused ? unused : k;
            continue;
        }
        if (k->id.ino == id->ino && k->id.index == id->index && k->id.gen == id->gen)
            return k;
    }
    if (!make)
        return NULL;
    cr_assert(unused, "the test needs more chunks");
    unused->used = true;
    unused->id = *id;
    unused->fence = 0;
    unused->len = unused->stable_len = 0;
    unused->data = calloc(1, W_CHUNK);
    unused->stable = calloc(1, W_CHUNK);
    cr_assert(unused->data && unused->stable);
    return unused;
}

static void make_stable(struct wchunk *k)
{
    memcpy(k->stable, k->data, W_CHUNK);
    k->stable_len = k->len;
}

static unsigned crcs_of(const uint8_t *p, uint32_t offset, uint32_t len, uint32_t *ret)
{
    unsigned n = 0;

    while (len > 0) {
        uint32_t left = BLOCK - offset % BLOCK;

        left = left < len ? left : len;
        ret[n++] = hf_crc32c(0, p, left);
        p += left;
        offset += left;
        len -= left;
    }
    return n;
}

static void seg_write(Hf__Segment_Service *service, const Hf__SegWriteReq *q,
                      Hf__SegWriteRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    struct hf_rpc_req *req = data;
    Hf__SegWriteRep rep = HF__SEG_WRITE_REP__INIT;
    uint32_t crcs[W_CHUNK / BLOCK + 1];
    struct wchunk *k;
    unsigned n;

    (void)closure;
    cr_assert_eq(req->bulk.len, q->len);
    cr_assert_leq(q->offset + q->len, W_CHUNK);
    cr_assert_eq(q->chunk->segment, s->index + 1);
    n = crcs_of(req->bulk.data, q->offset, q->len, crcs);
    cr_assert_eq(q->n_crcs, n);
    if (s->corrupt_writes) {
        s->corrupt_writes--;
        crcs[0] ^= 1;
    }
    if (memcmp(crcs, q->crcs, n * sizeof(crcs[0])) != 0) {
        hf_rpc_reply(req, HF_E_CORRUPT, NULL, NULL, 0);
        return;
    }
    k = chunk_find(s, q->chunk, true);
    if (q->fence < k->fence) {
        hf_rpc_reply(req, HF_E_FENCED, NULL, NULL, 0);
        return;
    }
    k->fence = q->fence;
    memcpy(k->data + q->offset, req->bulk.data, q->len);
    k->len = k->len > q->offset + q->len ? k->len : q->offset + q->len;
    if (q->stable)
        make_stable(k);
    rep.boot = s->boot;
    hf_rpc_reply(req, 0, &rep.base, NULL, 0);
}

static void seg_read(Hf__Segment_Service *service, const Hf__SegReadReq *q,
                     Hf__SegReadRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegReadRep rep = HF__SEG_READ_REP__INIT;
    struct wchunk *k = chunk_find(s, q->chunk, false);
    uint32_t crcs[W_CHUNK / BLOCK + 1];
    struct hf_slice bulk = {NULL, 0};
    uint8_t *bad = NULL;

    (void)closure;
    rep.boot = s->boot;
    rep.crcs = crcs;
    if (k && k->len > q->offset) {
        rep.len = k->len - q->offset < q->len ? k->len - q->offset : q->len;
        rep.n_crcs = crcs_of(k->data + q->offset, q->offset, rep.len, crcs);
        bulk = (struct hf_slice){k->data + q->offset, rep.len};
    }
    if (s->corrupt_reads && rep.len) {
        s->corrupt_reads--;
        bad = malloc(rep.len);
        memcpy(bad, bulk.data, rep.len);
        bad[rep.len / 2] ^= 0x10;
        bulk.data = bad;
    }
    hf_rpc_reply(data, 0, &rep.base, &bulk, 1);
    free(bad);
}

static void seg_sync(Hf__Segment_Service *service, const Hf__SegSyncReq *q,
                     Hf__SegSyncRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegSyncRep rep = HF__SEG_SYNC_REP__INIT;
    struct wchunk *k = chunk_find(s, q->chunk, false);

    (void)closure;
    if (k)
        make_stable(k);
    rep.boot = s->boot;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void seg_trunc(Hf__Segment_Service *service, const Hf__SegTruncReq *q,
                      Hf__SegTruncRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegTruncRep rep = HF__SEG_TRUNC_REP__INIT;
    struct wchunk *k = chunk_find(s, q->chunk, true);

    (void)closure;
    if (q->fence < k->fence) {
        hf_rpc_reply(data, HF_E_FENCED, NULL, NULL, 0);
        return;
    }
    k->fence = q->fence;
    if (k->len > q->len) {
        memset(k->data + q->len, 0, k->len - q->len);
        k->len = q->len;
    }
    make_stable(k);
    rep.boot = s->boot;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void seg_punch(Hf__Segment_Service *service, const Hf__SegPunchReq *q,
                      Hf__SegPunchRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegPunchRep rep = HF__SEG_PUNCH_REP__INIT;
    struct wchunk *k = chunk_find(s, q->chunk, false);

    (void)closure;
    cr_assert(q->len > 0 && q->offset + q->len <= W_CHUNK);
    if (k && q->fence < k->fence) {
        hf_rpc_reply(data, HF_E_FENCED, NULL, NULL, 0);
        return;
    }
    if (k) {
        k->fence = q->fence;
        memset(k->data + q->offset, 0, q->len);
        make_stable(k);
    }
    rep.boot = s->boot;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

/* By the byte. */
static void seg_seek(Hf__Segment_Service *service, const Hf__SegSeekReq *q,
                     Hf__SegSeekRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegSeekRep rep = HF__SEG_SEEK_REP__INIT;
    const struct wchunk *k = chunk_find(s, q->chunk, false);

    (void)closure;
    cr_assert(q->offset <= q->end && q->end <= W_CHUNK);
    for (uint32_t o = q->offset; o < q->end && !rep.found; o++) {
        bool hole = !k || o >= k->len || k->data[o] == 0;

        rep.found = hole == (q->hole != 0);
        rep.offset = o;
    }
    rep.boot = s->boot;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void seg_stat(Hf__Segment_Service *service, const Hf__SegStatReq *q,
                     Hf__SegStatRep_Closure closure, void *data)
{
    struct wseg *s = hf_container_of(service, struct wseg, impl);
    Hf__SegStatRep rep = HF__SEG_STAT_REP__INIT;
    Hf__SegStat stat = HF__SEG_STAT__INIT;
    Hf__SegStat *stats[1] = {&stat};

    (void)q;
    (void)closure;
    stat.id = s->index + 1;
    stat.capacity_bytes = 1000 + s->index;
    stat.free_bytes = 100;
    rep.segments = stats;
    rep.n_segments = 1;
    rep.boot = s->boot;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

void seg_server_init(struct world *w, unsigned index)
{
    struct wseg *s = &w->seg[index];

    s->w = w;
    s->index = index;
    s->boot = hf_env_random_u64(w->env);
    snprintf(s->url, sizeof(s->url), "sim://s%u", index);
    s->impl = (Hf__Segment_Service){
        .base = HF__SEGMENT__BASE_INIT,
        .write_chunk = seg_write,
        .read_chunk = seg_read,
        .sync_chunk = seg_sync,
        .truncate_chunk = seg_trunc,
        .punch_chunk = seg_punch,
        .seek_chunk = seg_seek,
        .stat = seg_stat,
    };
    cr_assert_eq(hf_loop_new(w->env, "seg", &s->loop), 0);
    cr_assert_eq(hf_rpc_server_new(s->loop, &(struct hf_rpc_server_opts){0}, &s->server), 0);
    cr_assert_eq(hf_rpc_server_add(s->server, &s->impl.base), 0);
    cr_assert_eq(hf_rpc_server_listen(s->server, s->url), 0);
}

void seg_server_fini(struct wseg *s)
{
    hf_rpc_server_stop(s->server);
    hf_rpc_server_free(s->server);
    hf_loop_free(s->loop);
    for (unsigned i = 0; i < W_CHUNKS; i++) {
        free(s->chunks[i].data);
        free(s->chunks[i].stable);
    }
}

void world_restart_seg(struct world *w, unsigned index)
{
    struct wseg *s = &w->seg[index];

    s->boot = hf_env_random_u64(w->env);
    for (unsigned i = 0; i < W_CHUNKS; i++) {
        struct wchunk *k = &s->chunks[i];

        if (k->used) {
            memcpy(k->data, k->stable, W_CHUNK);
            k->len = k->stable_len;
        }
    }
    cr_assert_eq(hf_rpc_sim_cut(w->env, s->url), 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of segment.proto but ListChunks: check every field, hand the request to its segment,
 * answer when that is done. A request's operation lives in the request's arena.
 */
#include "svc_priv.h"

#include "holdfast/assert.h"

struct call {
    struct hf_seg_op op;
    struct hf_segsvc *svc;
    struct hf_rpc_req *req;
    uint32_t crcs[HF_SEG_BLOCKS];
};

static struct hf_segsvc *svc_of(Hf__Segment_Service *service)
{
    return hf_container_of(service, struct hf_segsvc, impl);
}

struct segment *svc_segment(struct hf_segsvc *s, const Hf__ChunkId *id)
{
    for (unsigned i = 0; id && i < s->nsegments; i++) {
        if (s->segments[i].id == id->segment)
            return s->segments[i].seg ? &s->segments[i] : NULL;
    }
    return NULL;
}

void svc_fail(struct hf_segsvc *s, struct hf_rpc_req *req, int status)
{
    hf_metric_add(&s->m.failed, 1);
    hf_rpc_reply(req, status, NULL, NULL, 0);
}

void svc_refuse(struct hf_segsvc *s, struct hf_rpc_req *req)
{
    hf_metric_add(&s->m.refused, 1);
    hf_rpc_reply(req, HF_E_INVAL, NULL, NULL, 0);
}

static bool too_late(struct hf_segsvc *s, struct hf_rpc_req *req)
{
    if (req->deadline_ns == 0 || hf_loop_now_ns(s->loop) < req->deadline_ns)
        return false;
    svc_fail(s, req, HF_E_TIMEDOUT);
    return true;
}

static bool range_ok(uint32_t offset, uint32_t len)
{
    return offset <= HF_SEG_CHUNK_BYTES && len <= HF_SEG_CHUNK_BYTES - offset &&
           len <= HF_RPC_BULK_MAX;
}

/* NULL: the request was answered. */
static struct call *call_new(struct hf_segsvc *s, struct hf_rpc_req *req, enum hf_seg_op_kind kind,
                             const Hf__ChunkId *id, void (*done)(struct hf_seg_op *op))
{
    struct call *c;

    if (too_late(s, req))
        return NULL;
    c = hf_arena_zalloc(req->arena, sizeof(*c));
    if (!c) {
        svc_fail(s, req, HF_E_NOMEM);
        return NULL;
    }
    c->svc = s;
    c->req = req;
    c->op.kind = kind;
    c->op.id = (struct hf_chunk_id){.ino = id->ino, .index = id->index, .gen = id->gen};
    c->op.crcs = c->crcs;
    c->op.done = done;
    c->op.arg = c;
    return c;
}

/* ---- WriteChunk ---- */

static void write_done(struct hf_seg_op *op)
{
    struct call *c = op->arg;
    Hf__SegWriteRep rep = HF__SEG_WRITE_REP__INIT;

    if (op->status == HF_E_CORRUPT)
        hf_metric_add(&c->svc->m.checksum_errors, 1);
    if (op->status) {
        svc_fail(c->svc, c->req, op->status);
        return;
    }
    hf_metric_add(&c->svc->m.write_bytes, op->len);
    rep.boot = c->svc->boot;
    hf_rpc_reply(c->req, 0, &rep.base, NULL, 0);
}

static void svc_write_chunk(Hf__Segment_Service *service, const Hf__SegWriteReq *in,
                            Hf__SegWriteRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct call *c;

    (void)closure;
    hf_metric_add(&s->m.writes, 1);
    if (!seg || !range_ok(in->offset, in->len) || req->bulk.len != in->len ||
        in->n_crcs != hf_seg_ncrcs(in->offset, in->len)) {
        svc_refuse(s, req);
        return;
    }
    if (svc_grave_has(s, in->chunk)) {
        svc_fail(s, req, HF_E_FENCED);
        return;
    }
    if (!svc_has_room(seg, in->len)) {
        svc_fail(s, req, HF_E_NOSPC);
        return;
    }
    c = call_new(s, req, HF_SEG_WRITE, in->chunk, write_done);
    if (!c)
        return;
    c->op.fence = in->fence;
    c->op.offset = in->offset;
    c->op.len = in->len;
    c->op.stable = in->stable;
    memcpy(&c->op.data, &req->bulk.data, sizeof(c->op.data)); /* WRITE does not change it */
    if (in->n_crcs)
        memcpy(c->crcs, in->crcs, in->n_crcs * sizeof(c->crcs[0]));
    hf_metric_add(&s->m.stable_writes, in->stable ? 1 : 0);
    hf_seg_submit(seg->seg, &c->op);
}

/* ---- ReadChunk ---- */

static void read_done(struct hf_seg_op *op)
{
    struct call *c = op->arg;
    Hf__SegReadRep rep = HF__SEG_READ_REP__INIT;

    if (op->status) {
        svc_fail(c->svc, c->req, op->status);
        return;
    }
    hf_metric_add(&c->svc->m.read_bytes, op->len_done);
    rep.boot = c->svc->boot;
    rep.len = op->len_done;
    rep.crcs = c->crcs;
    rep.n_crcs = hf_seg_ncrcs(op->offset, op->len_done);
    if (op->data)
        hf_rpc_reply_inplace(c->req, 0, &rep.base, op->len_done);
    else
        hf_rpc_reply(c->req, 0, &rep.base, NULL, 0);
}

static void svc_read_chunk(Hf__Segment_Service *service, const Hf__SegReadReq *in,
                           Hf__SegReadRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct call *c;

    (void)closure;
    hf_metric_add(&s->m.reads, 1);
    if (!seg || !range_ok(in->offset, in->len)) {
        svc_refuse(s, req);
        return;
    }
    c = call_new(s, req, HF_SEG_READ, in->chunk, read_done);
    if (!c)
        return;
    c->op.offset = in->offset;
    c->op.len = in->len;
    if (in->len > 0) {
        c->op.data = hf_rpc_reply_bulk(req, in->len);
        if (!c->op.data) {
            svc_fail(s, req, HF_E_NOMEM);
            return;
        }
    }
    hf_seg_submit(seg->seg, &c->op);
}

/* ---- SyncChunk, TruncateChunk ---- */

static void sync_done(struct hf_seg_op *op)
{
    struct call *c = op->arg;
    Hf__SegSyncRep rep = HF__SEG_SYNC_REP__INIT;

    if (op->status) {
        svc_fail(c->svc, c->req, op->status);
        return;
    }
    rep.boot = c->svc->boot;
    hf_rpc_reply(c->req, 0, &rep.base, NULL, 0);
}

static void svc_sync_chunk(Hf__Segment_Service *service, const Hf__SegSyncReq *in,
                           Hf__SegSyncRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct call *c;

    (void)closure;
    hf_metric_add(&s->m.syncs, 1);
    if (!seg) {
        svc_refuse(s, req);
        return;
    }
    c = call_new(s, req, HF_SEG_SYNC, in->chunk, sync_done);
    if (c)
        hf_seg_submit(seg->seg, &c->op);
}

static void truncate_done(struct hf_seg_op *op)
{
    struct call *c = op->arg;
    Hf__SegTruncRep rep = HF__SEG_TRUNC_REP__INIT;

    if (op->status) {
        svc_fail(c->svc, c->req, op->status);
        return;
    }
    rep.boot = c->svc->boot;
    hf_rpc_reply(c->req, 0, &rep.base, NULL, 0);
}

static void svc_truncate_chunk(Hf__Segment_Service *service, const Hf__SegTruncReq *in,
                               Hf__SegTruncRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct call *c;

    (void)closure;
    hf_metric_add(&s->m.truncates, 1);
    if (!seg || in->len > HF_SEG_CHUNK_BYTES) {
        svc_refuse(s, req);
        return;
    }
    if (svc_grave_has(s, in->chunk)) { /* it would be made, to remember the fence */
        svc_fail(s, req, HF_E_FENCED);
        return;
    }
    c = call_new(s, req, HF_SEG_TRUNC, in->chunk, truncate_done);
    if (!c)
        return;
    c->op.fence = in->fence;
    c->op.len = in->len;
    hf_seg_submit(seg->seg, &c->op);
}

/* ---- DeleteChunks ---- */

struct delete_call {
    struct hf_segsvc *svc;
    struct hf_rpc_req *req;
    size_t left;
    int status; /* the first error */
    uint64_t freed;
};

static void delete_done(struct hf_seg_op *op)
{
    struct delete_call *d = op->arg;
    Hf__SegDeleteRep rep = HF__SEG_DELETE_REP__INIT;

    if (op->status && !d->status)
        d->status = op->status;
    d->freed += op->freed;
    if (--d->left > 0)
        return;
    if (d->status) {
        svc_fail(d->svc, d->req, d->status);
        return;
    }
    rep.freed_bytes = d->freed;
    hf_rpc_reply(d->req, 0, &rep.base, NULL, 0);
}

static void svc_delete_chunks(Hf__Segment_Service *service, const Hf__SegDeleteReq *in,
                              Hf__SegDeleteRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct hf_rpc_req *req = data;
    bool ok = in->n_chunks <= SVC_DELETE_MAX;
    Hf__SegDeleteRep none = HF__SEG_DELETE_REP__INIT;
    struct delete_call *d;
    struct hf_seg_op *ops;

    (void)closure;
    for (size_t i = 0; ok && i < in->n_chunks; i++)
        ok = svc_segment(s, in->chunks[i]) != NULL;
    if (!ok) {
        svc_refuse(s, req);
        return;
    }
    if (too_late(s, req))
        return;
    if (in->n_chunks == 0) {
        hf_rpc_reply(req, 0, &none.base, NULL, 0);
        return;
    }
    d = hf_arena_zalloc(req->arena, sizeof(*d));
    ops = hf_arena_zalloc(req->arena, in->n_chunks * sizeof(*ops));
    if (!d || !ops) {
        svc_fail(s, req, HF_E_NOMEM);
        return;
    }
    d->svc = s;
    d->req = req;
    d->left = in->n_chunks;
    hf_metric_add(&s->m.deletes, in->n_chunks);
    for (size_t i = 0; i < in->n_chunks; i++) {
        const Hf__ChunkId *id = in->chunks[i];

        svc_grave_add(s, id);
        ops[i].kind = HF_SEG_DELETE;
        ops[i].id = (struct hf_chunk_id){.ino = id->ino, .index = id->index, .gen = id->gen};
        ops[i].done = delete_done;
        ops[i].arg = d;
        hf_seg_submit(svc_segment(s, id)->seg, &ops[i]);
    }
}

/* ---- Stat ---- */

struct counter_list {
    Hf__SegCounter *counters;
    Hf__SegCounter **pointers;
    struct hf_arena *arena;
    size_t n;
};

static void counter_add(void *arg, const char *name, uint64_t value)
{
    struct counter_list *l = arg;
    Hf__SegCounter *c = &l->counters[l->n];

    hf__seg_counter__init(c);
    c->name = hf_arena_strdup(l->arena, name);
    c->value = value;
    if (c->name)
        l->pointers[l->n++] = c;
}

static void stat_one(struct segment *g, Hf__SegStat *out)
{
    struct hf_seg_stat st = {0};

    hf__seg_stat__init(out);
    out->id = g->id;
    out->backend = g->spec;
    if (!g->seg || hf_seg_stat(g->seg, &st))
        return; /* zero capacity tells that it has none to offer */
    out->capacity_bytes = st.capacity_bytes;
    out->free_bytes =
        st.free_bytes > g->svc->reserve_bytes ? st.free_bytes - g->svc->reserve_bytes : 0;
    out->domain = st.domain;
    out->chunks = st.chunks;
    out->used_bytes = st.used_bytes;
    out->errors = st.errors + st.checksum_errors;
}

static void svc_stat(Hf__Segment_Service *service, const Hf__SegStatReq *in,
                     Hf__SegStatRep_Closure closure, void *data)
{
    enum {
        COUNTERS = (sizeof(struct svc_metrics) + sizeof(struct hf_rpc_stats)) / sizeof(uint64_t)
    };
    struct hf_segsvc *s = svc_of(service);
    struct hf_rpc_req *req = data;
    struct counter_list l = {.arena = req->arena};
    Hf__SegStatRep rep = HF__SEG_STAT_REP__INIT;
    Hf__SegStat *stats = hf_arena_alloc(req->arena, s->nsegments * sizeof(*stats));

    (void)in;
    (void)closure;
    rep.segments = hf_arena_alloc(req->arena, s->nsegments * sizeof(Hf__SegStat *));
    l.counters = hf_arena_alloc(req->arena, COUNTERS * sizeof(*l.counters));
    l.pointers = hf_arena_alloc(req->arena, COUNTERS * sizeof(Hf__SegCounter *));
    if (!stats || !rep.segments || !l.counters || !l.pointers) {
        svc_fail(s, req, HF_E_NOMEM);
        return;
    }
    for (unsigned i = 0; i < s->nsegments; i++) {
        stat_one(&s->segments[i], &stats[i]);
        rep.segments[rep.n_segments++] = &stats[i];
    }
    hf_segsvc_counters(s, counter_add, &l);
    rep.counters = l.pointers;
    rep.n_counters = l.n;
    rep.boot = s->boot;
    hf_rpc_reply(req, 0, &rep.base, NULL, 0);
}

void svc_methods(Hf__Segment_Service *impl)
{
    *impl = (Hf__Segment_Service)HF__SEGMENT__INIT(svc_);
}

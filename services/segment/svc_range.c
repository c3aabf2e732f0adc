/* SPDX-License-Identifier: Apache-2.0
 *
 * PunchChunk and SeekChunk. Whole blocks of a punched range become holes; of the block at either
 * end the part that has data is written with zeros, as any write is.
 */
#include "svc_priv.h"

#include "holdfast/crc32c.h"

/* A part of a block: at the beginning and at the end of the range. */
struct piece {
    uint32_t from, to;
};

struct punch {
    struct hf_seg_op op;
    struct hf_segsvc *svc;
    struct hf_seg *seg;
    struct hf_rpc_req *req;
    const Hf__SegPunchReq *in;
    struct piece pieces[2];
    unsigned npieces, next;
    uint32_t crc;
    uint8_t *zeros;
};

static struct hf_segsvc *svc_of(Hf__Segment_Service *service)
{
    return hf_container_of(service, struct hf_segsvc, impl);
}

static void punch_step(struct punch *k);

static void punch_op(struct punch *k, enum hf_seg_op_kind kind, void (*done)(struct hf_seg_op *op))
{
    const Hf__ChunkId *id = k->in->chunk;

    k->op = (struct hf_seg_op){.kind = kind,
                               .id = {.ino = id->ino, .index = id->index, .gen = id->gen},
                               .fence = k->in->fence,
                               .done = done,
                               .arg = k};
}

static void piece_zeroed(struct hf_seg_op *op)
{
    struct punch *k = op->arg;

    if (op->status)
        svc_fail(k->svc, k->req, op->status);
    else
        punch_step(k);
}

/* From the piece's start to the hole behind it there is data. */
static void piece_sought(struct hf_seg_op *op)
{
    struct punch *k = op->arg;
    const struct piece *p = &k->pieces[k->next++];
    uint32_t end = op->found ? op->found_at : p->to;

    if (op->status) {
        svc_fail(k->svc, k->req, op->status);
        return;
    }
    if (end <= p->from) {
        punch_step(k);
        return;
    }
    punch_op(k, HF_SEG_WRITE, piece_zeroed);
    k->op.offset = p->from;
    k->op.len = end - p->from;
    k->op.data = k->zeros;
    k->crc = hf_crc32c(0, k->zeros, k->op.len);
    k->op.crcs = &k->crc;
    hf_seg_submit(k->seg, &k->op);
}

static void punched(struct hf_seg_op *op)
{
    struct punch *k = op->arg;
    Hf__SegPunchRep rep = HF__SEG_PUNCH_REP__INIT;

    if (op->status) {
        svc_fail(k->svc, k->req, op->status);
        return;
    }
    rep.boot = k->svc->boot;
    hf_rpc_reply(k->req, 0, &rep.base, NULL, 0);
}

/* The pieces one after the other, then the blocks: their commit makes all of it durable. */
static void punch_step(struct punch *k)
{
    if (k->next < k->npieces) {
        punch_op(k, HF_SEG_SEEK, piece_sought);
        k->op.hole = true;
        k->op.offset = k->pieces[k->next].from;
        k->op.len = k->pieces[k->next].to - k->pieces[k->next].from;
    } else {
        punch_op(k, HF_SEG_PUNCH, punched);
        k->op.offset = k->in->offset;
        k->op.len = k->in->len;
    }
    hf_seg_submit(k->seg, &k->op);
}

static void cut_pieces(struct punch *k)
{
    uint32_t from = k->in->offset, to = from + k->in->len;
    uint32_t head_end = (from / HF_SEG_BLOCK_BYTES + 1) * HF_SEG_BLOCK_BYTES;
    uint32_t tail = to / HF_SEG_BLOCK_BYTES * HF_SEG_BLOCK_BYTES;

    if (from % HF_SEG_BLOCK_BYTES) {
        k->pieces[k->npieces++] = (struct piece){from, to < head_end ? to : head_end};
        if (to <= head_end)
            return;
    }
    if (to % HF_SEG_BLOCK_BYTES)
        k->pieces[k->npieces++] = (struct piece){tail, to};
}

static bool range_ok(uint32_t offset, uint64_t len)
{
    return offset <= HF_SEG_CHUNK_BYTES && len <= HF_SEG_CHUNK_BYTES - offset;
}

void svc_punch_chunk(Hf__Segment_Service *service, const Hf__SegPunchReq *in,
                     Hf__SegPunchRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct punch *k;

    (void)closure;
    hf_metric_add(&s->m.punches, 1);
    if (!seg || !range_ok(in->offset, in->len) || in->len == 0) {
        svc_refuse(s, req);
        return;
    }
    k = hf_arena_zalloc(req->arena, sizeof(*k));
    if (k)
        k->zeros = hf_arena_zalloc(req->arena, HF_SEG_BLOCK_BYTES);
    if (!k || !k->zeros) {
        svc_fail(s, req, HF_E_NOMEM);
        return;
    }
    k->svc = s;
    k->seg = seg->seg;
    k->req = req;
    k->in = in;
    cut_pieces(k);
    punch_step(k);
}

/* ---- SeekChunk ---- */

struct seek {
    struct hf_seg_op op;
    struct hf_segsvc *svc;
    struct hf_rpc_req *req;
};

static void sought(struct hf_seg_op *op)
{
    struct seek *k = op->arg;
    Hf__SegSeekRep rep = HF__SEG_SEEK_REP__INIT;

    if (op->status) {
        svc_fail(k->svc, k->req, op->status);
        return;
    }
    rep.boot = k->svc->boot;
    rep.found = op->found;
    rep.offset = op->found_at;
    hf_rpc_reply(k->req, 0, &rep.base, NULL, 0);
}

void svc_seek_chunk(Hf__Segment_Service *service, const Hf__SegSeekReq *in,
                    Hf__SegSeekRep_Closure closure, void *data)
{
    struct hf_segsvc *s = svc_of(service);
    struct segment *seg = svc_segment(s, in->chunk);
    struct hf_rpc_req *req = data;
    struct seek *k;

    (void)closure;
    hf_metric_add(&s->m.seeks, 1);
    if (!seg || in->end < in->offset || !range_ok(in->offset, in->end - in->offset)) {
        svc_refuse(s, req);
        return;
    }
    k = hf_arena_zalloc(req->arena, sizeof(*k));
    if (!k) {
        svc_fail(s, req, HF_E_NOMEM);
        return;
    }
    k->svc = s;
    k->req = req;
    k->op = (struct hf_seg_op){
        .kind = HF_SEG_SEEK,
        .id = {.ino = in->chunk->ino, .index = in->chunk->index, .gen = in->chunk->gen},
        .offset = in->offset,
        .len = in->end - in->offset,
        .hole = in->hole,
        .done = sought,
        .arg = k};
    hf_seg_submit(seg->seg, &k->op);
}

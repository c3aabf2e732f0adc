/* SPDX-License-Identifier: Apache-2.0
 *
 * fallocate and seek: ranges of any length.
 *
 *   Fallocate ─┬─ DONE
 *              ├─ CHANGED with a layout: trim duty ─> Fallocate
 *              └─ CHUNKS: [trim duty ─> Fallocate] punch the chunks, stable ─> WriteEnd
 *
 *   Seek ─┬─ found
 *         └─ a range of chunks: asked some at a time, in order ─┬─ found
 *                                                              └─ Seek from its end
 */
#include <stdlib.h>

#include "client_priv.h"

#define SEEK_CHUNKS 16u /* asked at a time */

struct range_op {
    struct hf_client *client;
    struct hf_client_range *r;
    struct hf_client_call call;
    union {
        Hf__FallocateReq falloc;
        Hf__WriteEndReq end;
        Hf__SeekReq seek;
    } req;
    struct layout layout;
    struct trim_duty trim;
    struct seg_run run;
    uint64_t deadline_ns;
    unsigned again;
    uint64_t offset, len;    /* fallocate: of the part in chunks */
    uint64_t pos, end, size; /* seek: what is to be asked, and the file's size */
};

static void falloc_begin(struct range_op *op);
static void seek_begin(struct range_op *op, uint64_t offset);

static void range_end(struct range_op *op, const Hf__Wcc *wcc, int status)
{
    struct hf_client_range *r = op->r;

    r->status = status == HF_E_PROTO ? HF_E_IO : status;
    r->wcc = wcc;
    r->op = NULL;
    seg_run_fini(&op->run);
    r->done(r);
    free(op);
}

static bool starts_again(int status)
{
    return status == HF_E_CHANGED || status == HF_E_FENCED;
}

/* True: the operation may go on. */
static bool may_begin(struct range_op *op)
{
    int rc = op->client->closing                                   ? HF_E_CLOSED
             : ++op->again > START_AGAIN_MAX                       ? HF_E_JUKEBOX
             : hf_loop_now_ns(op->client->loop) >= op->deadline_ns ? HF_E_TIMEDOUT
                                                                   : 0;

    if (rc)
        range_end(op, NULL, rc);
    return rc == 0;
}

/* NULL: refused, will complete. */
static struct range_op *range_new(struct hf_client *c, struct hf_client_range *r)
{
    struct range_op *op = c->closing ? NULL : calloc(1, sizeof(*op));

    r->status = 0;
    r->wcc = NULL;
    r->at = 0;
    r->op = op;
    hf_list_init(&r->link);
    if (!op) {
        client_range_refuse(c, r, c->closing ? HF_E_CLOSED : HF_E_NOMEM);
        return NULL;
    }
    op->client = c;
    op->r = r;
    op->deadline_ns = hf_loop_now_ns(c->loop) + c->opts.timeout_ms * HF_NS_PER_MS;
    op->call.ino = r->ino;
    op->call.req_stays = true;
    op->call.deadline_ns = op->deadline_ns;
    hf_list_init(&op->run.calls);
    hf_list_init(&op->trim.run.calls);
    return op;
}

/* ---- fallocate ---- */

static void on_zeroed(const Hf__WriteEndRep *rep, void *arg)
{
    struct range_op *op = hf_container_of(arg, struct range_op, call);

    if (starts_again(op->call.status))
        falloc_begin(op);
    else
        range_end(op, rep ? rep->obj : NULL, op->call.status ? op->call.status : rep ? 0 : HF_E_IO);
}

static void on_punched(struct seg_run *run)
{
    struct range_op *op = hf_container_of(run, struct range_op, run);
    Hf__WriteEndReq *q = &op->req.end;

    if (starts_again(run->status)) {
        falloc_begin(op);
        return;
    }
    if (run->status) {
        range_end(op, NULL, run->status);
        return;
    }
    hf__write_end_req__init(q);
    q->cred = (Hf__Cred *)(uintptr_t)op->r->cred;
    q->ino = op->r->ino;
    q->gen = op->r->gen;
    q->offset = op->offset;
    q->len = op->len;
    q->stable = HF__STABLE__FILE_SYNC;
    q->layout_gen = op->layout.gen;
    q->fence = op->layout.fence;
    q->zero = q->keep_size = true;
    q->punch = op->r->mode == HF__FALLOCATE_MODE__FA_PUNCH;
    op->call.change = true;
    hf__meta__write_end(hf_client_meta(op->client), q, on_zeroed, &op->call);
}

static void on_trimmed(struct trim_duty *t, int status)
{
    struct range_op *op = hf_container_of(t, struct range_op, trim);

    if (status && !starts_again(status))
        range_end(op, NULL, status);
    else
        falloc_begin(op);
}

static void falloc_trim(struct range_op *op)
{
    op->trim.client = op->client;
    op->trim.ino = op->r->ino;
    op->trim.gen = op->r->gen;
    op->trim.layout = &op->layout;
    op->trim.deadline_ns = op->deadline_ns;
    op->trim.done = on_trimmed;
    trim_start(&op->trim);
}

static void falloc_punch(struct range_op *op, const Hf__FallocateRep *rep)
{
    struct seg_run *run = &op->run;

    op->offset = rep->offset;
    op->len = rep->len;
    run->client = op->client;
    run->kind = SEG_PUNCH;
    run->layout = &op->layout;
    run->ino = op->r->ino;
    run->pos = op->offset;
    run->end = op->offset + op->len;
    run->deadline_ns = op->deadline_ns;
    run->stable = true;
    run->nsrc = 0;
    run->done = on_punched;
    seg_run_start(run);
}

static void on_fallocate(const Hf__FallocateRep *rep, void *arg)
{
    struct range_op *op = hf_container_of(arg, struct range_op, call);
    int status = op->call.status;

    if (status == 0 && !rep)
        status = HF_E_IO;
    if (rep && rep->layout && (status == 0 || status == HF_E_CHANGED)) {
        if (layout_take(rep->layout, &op->layout) ||
            (status == 0 && (rep->offset > (uint64_t)INT64_MAX || rep->len > (uint64_t)INT64_MAX)))
            range_end(op, NULL, HF_E_IO);
        else if (op->layout.trim)
            falloc_trim(op);
        else if (status)
            falloc_begin(op);
        else
            falloc_punch(op, rep);
        return;
    }
    if (starts_again(status))
        falloc_begin(op);
    else
        range_end(op, rep ? rep->obj : NULL, status);
}

static void falloc_begin(struct range_op *op)
{
    Hf__FallocateReq *q = &op->req.falloc;
    const struct hf_client_range *r = op->r;

    if (!may_begin(op))
        return;
    seg_run_fini(&op->run);
    hf__fallocate_req__init(q);
    q->cred = (Hf__Cred *)(uintptr_t)r->cred;
    q->ino = r->ino;
    q->gen = r->gen;
    q->mode = r->mode;
    q->keep_size = r->keep_size;
    q->offset = r->offset;
    q->len = r->len;
    q->opened = r->opened;
    op->call.change = true;
    hf__meta__fallocate(hf_client_meta(op->client), q, on_fallocate, &op->call);
}

void hf_client_fallocate(struct hf_client *c, struct hf_client_range *r)
{
    struct range_op *op = range_new(c, r);

    if (op)
        falloc_begin(op);
}

/* ---- seek ---- */

static void seek_some(struct range_op *op);

static void seek_found(struct range_op *op, uint64_t at)
{
    op->r->at = at < op->size ? at : op->size;
    range_end(op, NULL, 0);
}

/* The calls of a run are in the order of their chunks. */
static void on_sought(struct seg_run *run)
{
    struct range_op *op = hf_container_of(run, struct range_op, run);

    if (run->status) {
        range_end(op, NULL, run->status);
        return;
    }
    HF_LIST_FOREACH(it, &run->calls)
    {
        const struct seg_call *call = hf_container_of(it, struct seg_call, link);

        if (call->found) {
            seek_found(op, (uint64_t)call->id.index * op->layout.chunk_bytes + call->found_at);
            return;
        }
    }
    op->pos = run->end;
    if (op->pos < op->end)
        seek_some(op);
    else if (op->r->hole && op->end >= op->size)
        seek_found(op, op->size);
    else
        seek_begin(op, op->end);
}

static void seek_some(struct range_op *op)
{
    struct seg_run *run = &op->run;
    uint64_t most = (op->pos / op->layout.chunk_bytes + SEEK_CHUNKS) * op->layout.chunk_bytes;

    seg_run_fini(run);
    run->client = op->client;
    run->kind = SEG_SEEK;
    run->layout = &op->layout;
    run->ino = op->r->ino;
    run->pos = op->pos;
    run->end = op->end < most ? op->end : most;
    run->deadline_ns = op->deadline_ns;
    run->hole = op->r->hole;
    run->nsrc = 0;
    run->done = on_sought;
    seg_run_start(run);
}

static void on_seek(const Hf__SeekRep *rep, void *arg)
{
    struct range_op *op = hf_container_of(arg, struct range_op, call);
    int status = op->call.status;

    if (status == 0 && (!rep || !rep->obj))
        status = HF_E_IO;
    if (status) {
        range_end(op, NULL, status);
        return;
    }
    op->size = rep->obj->size;
    if (rep->found) {
        seek_found(op, rep->offset);
        return;
    }
    op->pos = rep->offset;
    op->end = rep->range_end;
    if (layout_take(rep->layout, &op->layout) || op->end <= op->pos ||
        op->end > (uint64_t)INT64_MAX) {
        range_end(op, NULL, HF_E_IO);
        return;
    }
    op->again = 0; /* it gets on */
    seek_some(op);
}

static void seek_begin(struct range_op *op, uint64_t offset)
{
    Hf__SeekReq *q = &op->req.seek;

    if (!may_begin(op))
        return;
    hf__seek_req__init(q);
    q->cred = (Hf__Cred *)(uintptr_t)op->r->cred;
    q->ino = op->r->ino;
    q->gen = op->r->gen;
    q->offset = offset;
    q->hole = op->r->hole;
    op->call.change = false;
    hf__meta__seek(hf_client_meta(op->client), q, on_seek, &op->call);
}

void hf_client_seek(struct hf_client *c, struct hf_client_range *r)
{
    struct range_op *op = range_new(c, r);

    if (op)
        seek_begin(op, r->offset);
}

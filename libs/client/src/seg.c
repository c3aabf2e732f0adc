/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: a range of a file, cut at chunk boundaries, through one method of the segment service, at
 * most RUN_WINDOW calls at a time. The methods are idempotent, so a call that a lost connection
 * left in doubt is repeated as it is. Data is never copied here: a piece of a write is a window on
 * the caller's slices.
 *
 * Checksums: made here over what is sent; a segment that received something else says CORRUPT.
 * Checked here over what was received; a mismatch is asked for once more, then it is IO.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

#define MOVED_TRIES 8u

static void seg_send(struct seg_call *call);
static void run_go(struct seg_run *run);

int layout_take(const Hf__Layout *m, struct layout *ret)
{
    if (!m || m->n_segments == 0 || m->n_segments > LAYOUT_SEGMENTS_MAX || m->chunk_bytes == 0 ||
        m->chunk_bytes > CHUNK_BYTES_MAX || m->chunk_bytes % BLOCK_BYTES != 0)
        return HF_E_PROTO;
    ret->chunk_bytes = m->chunk_bytes;
    ret->gen = m->gen;
    ret->fence = m->fence;
    ret->nsegments = (uint32_t)m->n_segments;
    memcpy(ret->segments, m->segments, m->n_segments * sizeof(m->segments[0]));
    ret->trim = m->trim;
    ret->trim_from = m->trim_from;
    ret->trim_to = m->trim_to;
    return 0;
}

/* ---- seg_calls ---- */

static struct seg_call *seg_call_new(struct seg_run *run)
{
    struct hf_client *c = run->client;
    struct hf_list *n = hf_list_pop_front(&c->seg_pool);
    struct seg_call *call;

    if (n)
        c->nseg_pool--;
    call = n ? hf_container_of(n, struct seg_call, link) : malloc(sizeof(*call));
    if (!call)
        return NULL;
    call->run = run;
    call->server = NULL;
    call->tries = call->corrupt = 0;
    call->ndata = 0;
    call->msg = NULL;
    call->got = (struct hf_slice){NULL, 0};
    call->found = false;
    hf_list_init(&call->wlink);
    hf_list_push_back(&run->calls, &call->link);
    return call;
}

static void seg_call_free(struct seg_call *call)
{
    struct hf_client *c = call->run->client;

    if (call->msg)
        hf_rpc_msg_unref(call->msg);
    hf_list_remove(&call->link);
    if (c->nseg_pool >= POOLED_MAX || c->closing) {
        free(call);
        return;
    }
    hf_list_push_front(&c->seg_pool, &call->link);
    c->nseg_pool++;
}

static void seg_call_end(struct seg_call *call, int status)
{
    struct seg_run *run = call->run;

    if (status && run->status == 0)
        run->status = status;
    if (run->kind != SEG_READ && run->kind != SEG_SEEK)
        seg_call_free(call);
    run->inflight--;
    run_go(run);
}

static void on_seg_timer(struct hf_timer *t)
{
    struct seg_call *call = hf_container_of(t, struct seg_call, timer);
    struct hf_client *c = call->run->client;

    hf_list_remove(&call->wlink);
    if (c->closing)
        seg_call_end(call, HF_E_CLOSED);
    else if (hf_loop_now_ns(c->loop) >= call->run->deadline_ns)
        seg_call_end(call, HF_E_TIMEDOUT);
    else if (call->run->status) /* another piece has failed for good */
        seg_call_end(call, call->run->status);
    else
        seg_send(call);
}

/* Later again, or at the deadline the end. */
static void seg_wait(struct seg_call *call)
{
    struct hf_client *c = call->run->client;
    uint64_t now = hf_loop_now_ns(c->loop);
    uint64_t left = call->run->deadline_ns > now ? call->run->deadline_ns - now : 0;
    uint64_t delay = backoff_ns(c, ++call->tries);

    hf_list_push_back(&c->seg_waiting, &call->wlink);
    hf_timer_init(&call->timer, c->loop, on_seg_timer);
    hf_timer_set(&call->timer, delay < left ? delay : left);
}

void seg_drain(struct hf_client *c)
{
    struct hf_list *it;

    while ((it = hf_list_pop_front(&c->seg_waiting)) != NULL) {
        struct seg_call *call = hf_container_of(it, struct seg_call, wlink);

        hf_timer_cancel(&call->timer);
        on_seg_timer(&call->timer);
    }
}

/* ---- replies ---- */

/* The parts of a reply that need judging by method: boot, and the data of a read. */
static int take_read(struct seg_call *call, const Hf__SegReadRep *rep)
{
    struct hf_slice bulk = call->rpc.reply_bulk;
    uint32_t crcs[CHUNK_BLOCKS_MAX];
    unsigned n;

    if (rep->len > call->len || bulk.len != rep->len)
        return HF_E_PROTO;
    n = crc_blocks(&bulk, 1, call->offset, rep->len, crcs);
    if (rep->n_crcs < n)
        return HF_E_PROTO;
    if (n && memcmp(crcs, rep->crcs, n * sizeof(crcs[0])) != 0)
        return HF_E_CORRUPT;
    call->got = bulk;
    call->msg = call->rpc.msg;
    if (call->msg)
        hf_rpc_msg_ref(call->msg);
    return 0;
}

static int take_seek(struct seg_call *call, const Hf__SegSeekRep *rep)
{
    if (rep->found && (rep->offset < call->offset || rep->offset >= call->offset + call->len))
        return HF_E_PROTO;
    call->found = rep->found;
    call->found_at = rep->offset;
    return 0;
}

static int take_reply(struct seg_call *call, const ProtobufCMessage *body, uint64_t *ret_boot)
{
    if (!body)
        return HF_E_PROTO;
    switch (call->run->kind) {
    case SEG_READ:
        *ret_boot = ((const Hf__SegReadRep *)body)->boot;
        return take_read(call, (const Hf__SegReadRep *)body);
    case SEG_WRITE:
        *ret_boot = ((const Hf__SegWriteRep *)body)->boot;
        return 0;
    case SEG_SYNC:
        *ret_boot = ((const Hf__SegSyncRep *)body)->boot;
        return 0;
    case SEG_TRUNC:
        *ret_boot = ((const Hf__SegTruncRep *)body)->boot;
        return 0;
    case SEG_PUNCH:
        *ret_boot = ((const Hf__SegPunchRep *)body)->boot;
        return 0;
    case SEG_SEEK:
        *ret_boot = ((const Hf__SegSeekRep *)body)->boot;
        return take_seek(call, (const Hf__SegSeekRep *)body);
    }
    return HF_E_INTERNAL;
}

static void seg_answered(struct seg_call *call, uint64_t boot)
{
    struct seg_run *run = call->run;

    boot_server_seen(call->server, boot);
    if (!run->answered) {
        run->answered = true;
        run->epoch = run->client->boot_epoch;
    }
}

static void on_seg_reply(const ProtobufCMessage *body, void *arg)
{
    struct seg_call *call = hf_container_of(arg, struct seg_call, rpc);
    struct hf_client *c = call->run->client;
    int status = call->rpc.status;
    uint64_t boot = 0;

    call->server->inflight--;
    if (status == 0)
        status = take_reply(call, body, &boot);
    switch (status) {
    case 0:
        seg_answered(call, boot);
        break;
    case HF_E_CONNRESET:
    case HF_E_CONNREFUSED:
    case HF_E_CANCELED:
    case HF_E_BUSY:
        seg_wait(call);
        return;
    case HF_E_INVAL: /* the segment has moved: the request itself is right */
        hf_client_map_refresh(c);
        if (call->tries < MOVED_TRIES) {
            seg_wait(call);
            return;
        }
        status = HF_E_IO;
        break;
    case HF_E_CORRUPT:
        c->stats.checksum_errors++;
        if (call->corrupt++ == 0) {
            seg_wait(call);
            return;
        }
        status = HF_E_IO;
        break;
    case HF_E_PROTO:
        status = HF_E_IO;
        break;
    default:
        break;
    }
    seg_call_end(call, status);
}

/* The generated stubs, by kind; the one closure tells the bodies apart by the same. */
static void seg_invoke(struct seg_call *call)
{
    ProtobufCService *service = call->server->service;

    switch (call->run->kind) {
    case SEG_READ:
        hf__segment__read_chunk(service, &call->req.read, (Hf__SegReadRep_Closure)on_seg_reply,
                                &call->rpc);
        break;
    case SEG_WRITE:
        hf__segment__write_chunk(service, &call->req.write, (Hf__SegWriteRep_Closure)on_seg_reply,
                                 &call->rpc);
        break;
    case SEG_SYNC:
        hf__segment__sync_chunk(service, &call->req.sync, (Hf__SegSyncRep_Closure)on_seg_reply,
                                &call->rpc);
        break;
    case SEG_TRUNC:
        hf__segment__truncate_chunk(service, &call->req.trunc,
                                    (Hf__SegTruncRep_Closure)on_seg_reply, &call->rpc);
        break;
    case SEG_PUNCH:
        hf__segment__punch_chunk(service, &call->req.punch, (Hf__SegPunchRep_Closure)on_seg_reply,
                                 &call->rpc);
        break;
    case SEG_SEEK:
        hf__segment__seek_chunk(service, &call->req.seek, (Hf__SegSeekRep_Closure)on_seg_reply,
                                &call->rpc);
        break;
    }
}

static void seg_send(struct seg_call *call)
{
    struct hf_client *c = call->run->client;
    uint64_t now = hf_loop_now_ns(c->loop);
    struct seg_server *s = hf_map_get(&c->segs, call->id.segment);

    if (!s || now >= call->run->deadline_ns || c->closing) {
        if (!s)
            hf_client_map_refresh(c);
        seg_wait(call);
        return;
    }
    memset(&call->rpc, 0, sizeof(call->rpc));
    call->rpc.timeout_ns = call->run->deadline_ns - now;
    for (unsigned i = 0; i < call->ndata; i++)
        call->rpc.bulk[i] = call->data[i];
    call->rpc.bulk_n = call->ndata;
    call->server = s;
    s->inflight++;
    seg_invoke(call);
}

/* ---- runs ---- */

/* The next len bytes of the caller's slices. */
static void take_data(struct seg_run *run, struct seg_call *call)
{
    uint32_t left = call->len;

    while (left > 0 && run->src_i < run->nsrc) {
        const struct hf_slice *s = &run->src[run->src_i];
        size_t n = s->len - run->src_off;

        if (n > left)
            n = left;
        if (n > 0)
            call->data[call->ndata++] =
                (struct hf_slice){(const uint8_t *)s->data + run->src_off, n};
        left -= (uint32_t)n;
        run->src_off += n;
        if (run->src_off == s->len) {
            run->src_i++;
            run->src_off = 0;
        }
    }
}

static void fill_request(struct seg_run *run, struct seg_call *call)
{
    switch (run->kind) {
    case SEG_READ:
        hf__seg_read_req__init(&call->req.read);
        call->req.read.chunk = &call->id;
        call->req.read.offset = call->offset;
        call->req.read.len = call->len;
        break;
    case SEG_WRITE:
        take_data(run, call);
        hf__seg_write_req__init(&call->req.write);
        call->req.write.chunk = &call->id;
        call->req.write.fence = run->layout->fence;
        call->req.write.offset = call->offset;
        call->req.write.len = call->len;
        call->req.write.stable = run->stable;
        call->req.write.crcs = call->crcs;
        call->req.write.n_crcs =
            crc_blocks(call->data, call->ndata, call->offset, call->len, call->crcs);
        break;
    case SEG_SYNC:
        hf__seg_sync_req__init(&call->req.sync);
        call->req.sync.chunk = &call->id;
        break;
    case SEG_TRUNC:
        hf__seg_trunc_req__init(&call->req.trunc);
        call->req.trunc.chunk = &call->id;
        call->req.trunc.fence = run->layout->fence;
        call->req.trunc.len = call->offset;
        break;
    case SEG_PUNCH:
        hf__seg_punch_req__init(&call->req.punch);
        call->req.punch.chunk = &call->id;
        call->req.punch.fence = run->layout->fence;
        call->req.punch.offset = call->offset;
        call->req.punch.len = call->len;
        call->req.punch.stable = run->stable;
        break;
    case SEG_SEEK:
        hf__seg_seek_req__init(&call->req.seek);
        call->req.seek.chunk = &call->id;
        call->req.seek.offset = call->offset;
        call->req.seek.end = call->offset + call->len;
        call->req.seek.hole = run->hole;
        break;
    }
}

/* The piece of the range that lies in the next chunk. */
static int next_piece(struct seg_run *run)
{
    const struct layout *l = run->layout;
    uint64_t index = run->pos / l->chunk_bytes;
    uint32_t offset = (uint32_t)(run->pos % l->chunk_bytes);
    uint64_t len = l->chunk_bytes - offset;
    struct seg_call *call;

    if (index > UINT32_MAX)
        return HF_E_FBIG;
    call = seg_call_new(run);
    if (!call)
        return HF_E_NOMEM;
    if (len > run->end - run->pos)
        len = run->end - run->pos;
    hf__chunk_id__init(&call->id);
    call->id.segment = l->segments[index % l->nsegments];
    call->id.ino = run->ino;
    call->id.index = (uint32_t)index;
    call->id.gen = l->gen;
    call->offset = offset;
    call->len = (uint32_t)len;
    fill_request(run, call);
    run->pos += len;
    run->inflight++;
    seg_send(call);
    return 0;
}

/* Over what has no chunks. */
static void skip_holes(struct seg_run *run)
{
    uint64_t chunk = run->layout->chunk_bytes;

    if (run->kind != SEG_SYNC)
        return; /* a pooled run may hold an old list */
    for (unsigned k = 0; k + 1 < run->nonly; k += 2) {
        if (run->pos < run->only[k + 1] * chunk) {
            if (run->pos < run->only[k] * chunk)
                run->pos = run->only[k] * chunk;
            return;
        }
    }
    if (run->nonly)
        run->pos = run->end;
}

/* Keeps the window full; at the end says so, as its last statement. */
static void run_go(struct seg_run *run)
{
    while (run->status == 0 && run->inflight < RUN_WINDOW) {
        int rc;

        skip_holes(run);
        if (run->pos >= run->end)
            break;
        rc = run->client->closing ? HF_E_CLOSED : next_piece(run);
        if (rc)
            run->status = rc;
    }
    if (run->inflight == 0)
        run->done(run);
}

void seg_run_start(struct seg_run *run)
{
    hf_list_init(&run->calls);
    run->status = 0;
    run->answered = false;
    run->epoch = run->client->boot_epoch;
    run->inflight = 0;
    run->src_i = 0;
    run->src_off = 0;
    run_go(run);
}

void seg_run_fini(struct seg_run *run)
{
    struct hf_list *it;

    while ((it = hf_list_pop_front(&run->calls)) != NULL)
        seg_call_free(hf_container_of(it, struct seg_call, link));
}

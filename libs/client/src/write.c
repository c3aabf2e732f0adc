/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes. The shard decides where the bytes go:
 *
 *   Write ─┬─ DONE      they were inline and came with the request
 *          ├─ CHUNKS    [trim duty] ─> segments ─> WriteEnd
 *          └─ PROMOTE   present content and new bytes to the segments, stable ─> Promote
 *
 * FENCED (a truncation overtook us at a segment) and CHANGED (the layout or the content moved on at
 * the shard) lead back to Write, at once the first time, with a back-off later, START_AGAIN_MAX
 * times at most. Nothing was acknowledged until then, so bytes that the earlier round left behind
 * are of no consequence: in chunks of a layout that lost they are garbage, in chunks that were cut
 * they are cut or will be.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

static void write_begin(struct io_op *op);
static void write_data(struct io_op *op);
static void write_new_bytes(struct io_op *op);

static void write_finish(struct io_op *op, int status)
{
    struct hf_client *c = op->client;
    struct hf_client_io *io = op->io;

    io->status = status;
    if (status == 0) {
        io->count = io->len;
        io->at = op->offset;
        c->stats.write_bytes += io->len;
        io->verifier = boot_verifier(c, io->ino);
        /* Something restarted while we wrote: a value that no commit returns, so that the caller,
         * if it relies on memory at all, writes again. */
        if (op->epoch_known && op->epoch != c->boot_epoch)
            io->verifier = hf_env_random_u64(c->env);
    }
    io->done(io);
    op_free(op);
}

/* Tells the shard that an append will not be ended, so that others need not wait. */
struct append_cancel {
    struct hf_client_call call;
    Hf__WriteEndReq req;
};

static void on_canceled(const Hf__WriteEndRep *rep, void *arg)
{
    (void)rep;
    free(hf_container_of(arg, struct append_cancel, call));
}

static void append_cancel(struct io_op *op)
{
    struct append_cancel *a = op->append_token ? calloc(1, sizeof(*a)) : NULL;

    if (a) {
        hf__write_end_req__init(&a->req);
        a->req.ino = op->io->ino;
        a->req.gen = op->io->gen;
        a->req.append_token = op->append_token;
        a->call.ino = op->io->ino;
        a->call.req_stays = true;
        hf__meta__write_end(hf_client_meta(op->client), &a->req, on_canceled, &a->call);
    }
    op->append_token = 0;
}

/* From the reply that is being looked at: good until its closure returns. */
static void write_end(struct io_op *op, const Hf__Wcc *wcc, int status)
{
    append_cancel(op);
    op->io->wcc = wcc;
    write_finish(op, status == HF_E_PROTO ? HF_E_IO : status);
}

static void write_again(struct io_op *op)
{
    int rc = op_again(op);

    append_cancel(op);

    seg_run_fini(&op->run);
    if (op->held)
        hf_rpc_msg_unref(op->held);
    op->held = NULL;
    op->epoch_known = false;
    op->promote = false;
    if (rc)
        write_end(op, NULL, rc);
    else if (op->again == 1)
        write_begin(op);
    else
        op_pause(op, write_begin);
}

static bool starts_again(int status)
{
    return status == HF_E_CHANGED || status == HF_E_FENCED;
}

/* ---- the last step: WriteEnd or Promote ---- */

static void write_last(struct io_op *op, const Hf__Wcc *wcc, bool body, uint64_t boot)
{
    int status = op->call.status;

    if (starts_again(status)) {
        write_again(op);
        return;
    }
    if (status == 0 && !body)
        status = HF_E_IO;
    if (status == 0)
        boot_shard_seen(op->client, op->io->ino, boot);
    write_end(op, wcc, status);
}

static void on_write_end(const Hf__WriteEndRep *rep, void *arg)
{
    write_last(hf_container_of(arg, struct io_op, call), rep ? rep->obj : NULL, rep,
               rep ? rep->boot : 0);
}

static void on_promote(const Hf__PromoteRep *rep, void *arg)
{
    write_last(hf_container_of(arg, struct io_op, call), rep ? rep->obj : NULL, rep,
               rep ? rep->boot : 0);
}

static void send_write_end(struct io_op *op)
{
    const struct hf_client_io *io = op->io;
    Hf__WriteEndReq *req = &op->req.end;

    hf__write_end_req__init(req);
    req->cred = (Hf__Cred *)(uintptr_t)io->cred;
    req->ino = io->ino;
    req->gen = io->gen;
    req->offset = op->offset;
    req->len = io->len;
    req->stable = io->stable;
    req->layout_gen = op->layout.gen;
    req->fence = op->layout.fence;
    req->append_token = op->append_token;
    op->append_token = 0; /* ends with this, whatever the answer */
    hf__meta__write_end(hf_client_meta(op->client), req, on_write_end, &op->call);
}

static void send_promote(struct io_op *op)
{
    const struct hf_client_io *io = op->io;
    Hf__PromoteReq *req = &op->req.promote;

    op->client->stats.promotes++;
    hf__promote_req__init(req);
    req->cred = (Hf__Cred *)(uintptr_t)io->cred;
    req->ino = io->ino;
    req->gen = io->gen;
    req->promote_change = op->promote_change;
    req->layout_gen = op->layout.gen;
    req->offset = op->offset;
    req->len = io->len;
    req->stable = io->stable;
    req->append_token = op->append_token;
    op->append_token = 0;
    hf__meta__promote(hf_client_meta(op->client), req, on_promote, &op->call);
}

/* ---- bytes to the segments ---- */

static void run_prepare(struct io_op *op, uint64_t pos, uint64_t end)
{
    struct seg_run *run = &op->run;

    run->client = op->client;
    run->kind = SEG_WRITE;
    run->layout = &op->layout;
    run->ino = op->io->ino;
    run->pos = pos;
    run->end = end;
    run->deadline_ns = op->deadline_ns;
    run->stable = op->promote || op->io->stable != HF__STABLE__UNSTABLE;
    run->nsrc = 0;
}

/* True: the run ended well; else the operation went on another way. */
static bool run_ok(struct io_op *op)
{
    const struct seg_run *run = &op->run;

    if (starts_again(run->status)) {
        write_again(op);
        return false;
    }
    if (run->status) {
        write_end(op, NULL, run->status);
        return false;
    }
    if (run->answered && !op->epoch_known) {
        op->epoch_known = true;
        op->epoch = run->epoch;
    }
    return true;
}

static void on_new_bytes(struct seg_run *run)
{
    struct io_op *op = hf_container_of(run, struct io_op, run);

    if (!run_ok(op))
        return;
    op->call.bulk_n = 0;
    op->call.change = true;
    if (op->promote)
        send_promote(op);
    else
        send_write_end(op);
}

static void on_content(struct seg_run *run)
{
    struct io_op *op = hf_container_of(run, struct io_op, run);

    if (!run_ok(op))
        return;
    op->content.len = 0;
    write_new_bytes(op);
}

/* The caller's bytes, with the present content before them in one request where they adjoin. */
static void write_new_bytes(struct io_op *op)
{
    const struct hf_client_io *io = op->io;
    struct seg_run *run = &op->run;

    run_prepare(op, op->content.len ? 0 : op->offset, op->offset + io->len);
    if (op->content.len)
        run->src[run->nsrc++] = op->content;
    for (unsigned i = 0; i < io->data_n; i++)
        run->src[run->nsrc++] = io->data[i];
    run->done = on_new_bytes;
    seg_run_start(run);
}

static void write_data(struct io_op *op)
{
    struct seg_run *run = &op->run;

    if (op->content.len >= op->offset || op->content.len == 0) {
        if (op->content.len > op->offset)
            op->content.len = op->offset; /* the rest is written over */
        write_new_bytes(op);
        return;
    }
    run_prepare(op, 0, op->content.len);
    run->src[run->nsrc++] = op->content;
    run->done = on_content;
    seg_run_start(run);
}

/* ---- the first step: Write ---- */

static void on_trimmed(struct trim_duty *t, int status)
{
    struct io_op *op = hf_container_of(t, struct io_op, trim);

    if (starts_again(status))
        write_again(op);
    else if (status)
        write_end(op, NULL, status);
    else
        write_data(op);
}

static void write_trim(struct io_op *op)
{
    op->trim.client = op->client;
    op->trim.ino = op->io->ino;
    op->trim.gen = op->io->gen;
    op->trim.layout = &op->layout;
    op->trim.deadline_ns = op->deadline_ns;
    op->trim.done = on_trimmed;
    trim_start(&op->trim);
}

static void write_promote(struct io_op *op, const Hf__WriteRep *rep)
{
    op->promote = true;
    op->promote_change = rep->promote_change;
    op->content = op->call.reply_bulk;
    if (op->content.len > op->layout.chunk_bytes) {
        write_end(op, rep->obj, HF_E_IO);
        return;
    }
    /* A stored reply (exactly once) has lost its bulk; there always is one, though it may be
     * shorter than the file: what truncation has added is not kept. */
    if (op->call.change && op->content.len == 0) {
        write_again(op);
        return;
    }
    op->held = op->call.msg;
    hf_rpc_msg_ref(op->held);
    write_data(op);
}

static void on_write(const Hf__WriteRep *rep, void *arg)
{
    struct io_op *op = hf_container_of(arg, struct io_op, call);
    int status = op->call.status;

    if (status == 0 && !rep)
        status = HF_E_IO;
    if (status == 0) {
        op->offset = op->io->append ? rep->offset : op->io->offset;
        op->append_token = rep->append_token;
        if (op->offset > (uint64_t)INT64_MAX - op->io->len)
            status = HF_E_IO;
    }
    if (status == HF_E_JUKEBOX && op->io->append && !op->client->closing && !op_late(op)) {
        op_pause(op, write_begin); /* somebody else appends */
        return;
    }
    if (starts_again(status)) {
        write_again(op);
        return;
    }
    if (status == 0 && rep->next != HF__WRITE_NEXT__WRITE_DONE)
        status = layout_take(rep->layout, &op->layout);
    if (status) {
        write_end(op, rep ? rep->obj : NULL, status);
        return;
    }
    op->content = (struct hf_slice){NULL, 0};
    switch (rep->next) {
    case HF__WRITE_NEXT__WRITE_DONE:
        boot_shard_seen(op->client, op->io->ino, rep->boot);
        write_end(op, rep->obj, 0);
        break;
    case HF__WRITE_NEXT__WRITE_CHUNKS:
        if (op->layout.trim)
            write_trim(op);
        else
            write_data(op);
        break;
    case HF__WRITE_NEXT__WRITE_PROMOTE:
        write_promote(op, rep);
        break;
    default:
        write_end(op, rep->obj, HF_E_IO);
        break;
    }
}

static void write_begin(struct io_op *op)
{
    struct hf_client *c = op->client;
    const struct hf_client_io *io = op->io;
    Hf__WriteReq *req = &op->req.write;
    uint32_t inline_max;

    if (!c->map || c->closing) { /* the map tells how much may be inline */
        int rc = c->closing ? HF_E_CLOSED : op_late(op);

        if (rc)
            write_end(op, NULL, rc);
        else
            op_pause(op, write_begin);
        return;
    }
    inline_max = c->map->inline_max;
    hf__write_req__init(req);
    req->cred = (Hf__Cred *)(uintptr_t)io->cred;
    req->ino = io->ino;
    req->gen = io->gen;
    req->offset = io->offset;
    req->len = io->len;
    req->stable = io->stable;
    req->owner_override = io->owner_override;
    req->opened = io->opened;
    req->append = io->append;
    op->offset = io->offset;
    op->append_token = 0;
    op->call.bulk_n = 0;
    if (io->len <= inline_max && (io->append || io->offset <= inline_max - io->len))
        for (unsigned i = 0; i < io->data_n; i++)
            op->call.bulk[op->call.bulk_n++] = io->data[i];
    else
        map_prefer(c, req);
    /* Without data it only asks where to: harmless to repeat, and a stored reply would come without
     * the content to promote. */
    op->call.change = op->call.bulk_n > 0;
    hf__meta__write(hf_client_meta(c), req, on_write, &op->call);
}

static bool data_ok(const struct hf_client_io *io)
{
    uint64_t n = 0;

    if (io->len > HF_CLIENT_IO_MAX || io->data_n > HF_RPC_BULK_IOV - 1)
        return false;
    for (unsigned i = 0; i < io->data_n; i++)
        n += io->data[i].len;
    return n == io->len;
}

void hf_client_write(struct hf_client *c, struct hf_client_io *io)
{
    struct io_op *op = op_new(c, io);
    int rc = 0;

    if (!op)
        return;
    c->stats.writes++;
    if (!data_ok(io))
        rc = HF_E_INVAL;
    else if (io->offset > (uint64_t)INT64_MAX - io->len)
        rc = HF_E_FBIG; /* and nothing below can overflow; the shard knows the exact limit */
    else if (!c->map && c->stats.waiting >= c->opts.queue_max)
        rc = HF_E_JUKEBOX;
    if (rc) {
        op_free(op);
        client_io_refuse(c, io, rc);
        return;
    }
    write_begin(op);
}

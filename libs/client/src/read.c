/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads: the shard says where the bytes are (or has them), the segments give them. What a segment
 * does not have is zeros. Nothing is copied: pieces point into the messages that came.
 */
#include <string.h>

#include "client_priv.h"

static void read_end(struct io_op *op, int status)
{
    struct hf_client *c = op->client;
    struct hf_client_io *io = op->io;

    io->status = status;
    if (status) {
        io->count = 0;
        io->npieces = 0;
        io->eof = false;
    }
    c->stats.read_bytes += io->count;
    io->done(io);
    op_free(op);
}

static bool add_piece(struct hf_client_io *io, struct hf_slice data, struct hf_rpc_msg *msg)
{
    if (data.len == 0)
        return true;
    if (!msg && io->npieces > 0 && !io->pieces[io->npieces - 1].msg) {
        io->pieces[io->npieces - 1].data.len += data.len;
    } else {
        if (io->npieces == HF_CLIENT_PIECES)
            return false; /* a short read */
        io->pieces[io->npieces++] = (struct hf_client_piece){data, msg};
    }
    io->count += (uint32_t)data.len;
    return true;
}

static void on_chunks(struct seg_run *run)
{
    struct io_op *op = hf_container_of(run, struct io_op, run);
    struct hf_client_io *io = op->io;

    if (run->status) {
        read_end(op, run->status);
        return;
    }
    HF_LIST_FOREACH(it, &run->calls)
    {
        struct seg_call *call = hf_container_of(it, struct seg_call, link);

        if (!add_piece(io, call->got, call->msg) ||
            !add_piece(io, (struct hf_slice){NULL, call->len - call->got.len}, NULL))
            break;
    }
    io->eof = io->offset + io->count >= io->attr->size;
    read_end(op, 0);
}

static void read_inline(struct io_op *op, const Hf__ReadRep *rep)
{
    struct hf_client_io *io = op->io;
    struct hf_slice bulk = op->call.reply_bulk;

    if (bulk.len > io->len) {
        read_end(op, HF_E_IO);
        return;
    }
    add_piece(io, bulk, op->call.msg);
    io->eof = rep->eof;
    read_end(op, 0);
}

static void read_chunks(struct io_op *op, const Hf__ReadRep *rep)
{
    struct hf_client_io *io = op->io;
    struct seg_run *run = &op->run;
    uint64_t end, last;

    if (!rep->obj || layout_take(rep->layout, &op->layout)) {
        read_end(op, HF_E_IO);
        return;
    }
    if (io->offset >= rep->obj->size) {
        io->eof = true;
        read_end(op, 0);
        return;
    }
    end = rep->obj->size - io->offset < io->len ? rep->obj->size : io->offset + io->len;
    /* As many chunks as there are pieces for an answer. */
    last = (io->offset / op->layout.chunk_bytes + HF_CLIENT_PIECES) * op->layout.chunk_bytes;
    op->held = op->call.msg;
    hf_rpc_msg_ref(op->held);
    run->client = op->client;
    run->kind = SEG_READ;
    run->layout = &op->layout;
    run->ino = io->ino;
    run->pos = io->offset;
    run->end = end < last ? end : last;
    run->deadline_ns = op->deadline_ns;
    run->nsrc = 0;
    run->done = on_chunks;
    seg_run_start(run);
}

static void on_read(const Hf__ReadRep *rep, void *arg)
{
    struct io_op *op = hf_container_of(arg, struct io_op, call);

    op->io->attr = rep ? rep->obj : NULL;
    if (op->call.status)
        read_end(op, op->call.status);
    else if (!rep)
        read_end(op, HF_E_IO);
    else if (!rep->layout)
        read_inline(op, rep);
    else
        read_chunks(op, rep);
}

void hf_client_read(struct hf_client *c, struct hf_client_io *io)
{
    struct io_op *op = op_new(c, io);
    Hf__ReadReq *req;

    if (!op)
        return;
    c->stats.reads++;
    if (io->len > HF_CLIENT_IO_MAX)
        io->len = HF_CLIENT_IO_MAX;
    req = &op->req.read;
    hf__read_req__init(req);
    req->cred = (Hf__Cred *)(uintptr_t)io->cred; /* the message is only read */
    req->ino = io->ino;
    req->gen = io->gen;
    req->offset = io->offset;
    req->len = io->len;
    req->owner_override = io->owner_override;
    req->opened = io->opened;
    hf__meta__read(hf_client_meta(c), req, on_read, &op->call);
}

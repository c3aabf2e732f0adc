/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits. The shard makes the inode and inline data durable and tells the layout; then every chunk
 * of the range is synced at its segment. All of them, not only those that this client wrote: data
 * may have come through another gateway that is gone. A clean chunk costs its segment a look-up.
 */
#include "client_priv.h"

static void commit_end(struct io_op *op, int status)
{
    struct hf_client_io *io = op->io;

    io->status = status;
    if (status == 0)
        io->verifier = boot_verifier(op->client, io->ino);
    io->done(io);
    op_free(op);
}

static void on_synced(struct seg_run *run)
{
    commit_end(hf_container_of(run, struct io_op, run), run->status);
}

static void on_commit(const Hf__CommitRep *rep, void *arg)
{
    struct io_op *op = hf_container_of(arg, struct io_op, call);
    struct hf_client_io *io = op->io;
    struct seg_run *run = &op->run;
    uint64_t size;

    io->wcc = rep ? rep->obj : NULL;
    if (op->call.status || !rep) {
        commit_end(op, op->call.status ? op->call.status : HF_E_IO);
        return;
    }
    boot_shard_seen(op->client, io->ino, rep->boot);
    if (!rep->layout) {
        commit_end(op, 0);
        return;
    }
    if (!rep->obj || !rep->obj->after || layout_take(rep->layout, &op->layout) ||
        rep->n_ranges > (size_t)2 * RUN_RANGES_MAX || rep->n_ranges % 2 != 0) {
        commit_end(op, HF_E_IO);
        return;
    }
    size = rep->obj->after->size;
    op->held = op->call.msg;
    hf_rpc_msg_ref(op->held);
    run->client = op->client;
    run->kind = SEG_SYNC;
    run->layout = &op->layout;
    run->ino = io->ino;
    run->pos = io->offset;
    run->end =
        io->len && size > io->offset && size - io->offset > io->len ? io->offset + io->len : size;
    run->deadline_ns = op->deadline_ns;
    run->nsrc = 0;
    run->nonly = (unsigned)rep->n_ranges;
    for (unsigned k = 0; k < run->nonly; k++)
        run->only[k] = rep->ranges[k];
    run->done = on_synced;
    seg_run_start(run);
}

void hf_client_commit(struct hf_client *c, struct hf_client_io *io)
{
    struct io_op *op = op_new(c, io);
    Hf__CommitReq *req;

    if (!op)
        return;
    c->stats.commits++;
    req = &op->req.commit;
    hf__commit_req__init(req);
    req->cred = (Hf__Cred *)(uintptr_t)io->cred;
    req->ino = io->ino;
    req->gen = io->gen;
    req->owner_override = io->owner_override;
    req->opened = io->opened;
    hf__meta__commit(hf_client_meta(c), req, on_commit, &op->call);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The trim duty. A truncation only lowers the size at the shard and raises the layout's fence;
 * bytes above the new size stay in the chunks until somebody cuts them: whoever finds `trim` set in
 * a layout that it was given. First every chunk that the stale range touches is cut, which also
 * makes the segments refuse late writes under the old fence; then TrimDone tells the shard. The
 * shard lets nobody make the file longer before that, so stale bytes never show.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

static void on_trim_done(const Hf__TrimDoneRep *rep, void *arg)
{
    struct trim_duty *t = hf_container_of(arg, struct trim_duty, call);
    int status = t->call.status;

    if (status == 0) {
        t->layout->trim = false;
        if (rep && rep->layout)
            status = layout_take(rep->layout, t->layout);
        if (status == 0 && t->layout->trim)
            status = HF_E_CHANGED; /* truncated again meanwhile */
    }
    t->done(t, status);
}

static void on_cut(struct seg_run *run)
{
    struct trim_duty *t = hf_container_of(run, struct trim_duty, run);

    if (run->status) {
        t->done(t, run->status == HF_E_FENCED ? HF_E_CHANGED : run->status);
        return;
    }
    hf__trim_done_req__init(&t->req);
    t->req.ino = t->ino;
    t->req.gen = t->gen;
    t->req.layout_gen = t->layout->gen;
    t->req.fence = t->layout->fence;
    t->call.ino = t->ino;
    t->call.change = true;
    t->call.req_stays = true;
    t->call.deadline_ns = t->deadline_ns;
    t->call.bulk_n = 0;
    hf__meta__trim_done(hf_client_meta(t->client), &t->req, on_trim_done, &t->call);
}

void trim_start(struct trim_duty *t)
{
    t->client->stats.trims++;
    t->run.client = t->client;
    t->run.kind = SEG_TRUNC;
    t->run.layout = t->layout;
    t->run.ino = t->ino;
    t->run.pos = t->layout->trim_from;
    t->run.end = t->layout->trim_to;
    t->run.deadline_ns = t->deadline_ns;
    t->run.nsrc = 0;
    t->run.done = on_cut;
    seg_run_start(&t->run);
}

/* ---- SETATTR, OPEN and CREATE with the duty that they may leave ----
 *
 * OK with a trim due: the change is made, the duty is done before it is answered; if that fails the
 * change stands and the duty is left to who extends the file next.
 * CHANGED with a layout: the change would extend a file whose trim is pending: duty first, then the
 * change again, as a new one. */
struct duty_op {
    struct hf_client *client;
    struct hf_client_call *call;
    const ProtobufCMessage *req;
    ProtobufCClosure closure;
    const ProtobufCMessage *body; /* of the reply that is kept: in *msg */
    struct hf_rpc_msg *msg;
    struct hf_client_call inner;
    struct layout layout;
    struct trim_duty trim;
    uint64_t deadline_ns;
    unsigned again;
};

static void duty_call(struct duty_op *d);

static void duty_end(struct duty_op *d, const ProtobufCMessage *body, int status)
{
    struct hf_client_call *call = d->call;
    ProtobufCClosure closure = d->closure;
    struct hf_rpc_msg *msg = d->msg;

    call->status = status;
    call->msg = msg;
    free(d);
    closure(body, call);
    if (msg)
        hf_rpc_msg_unref(msg);
}

static void on_duty_again(struct trim_duty *t, int status)
{
    struct duty_op *d = hf_container_of(t, struct duty_op, trim);

    if (status == HF_E_CHANGED)
        status = 0; /* somebody else saw to it */
    if (status == 0 && d->client->closing)
        status = HF_E_CLOSED;
    if (status == 0 && ++d->again > START_AGAIN_MAX)
        status = HF_E_JUKEBOX;
    if (status == 0 && hf_loop_now_ns(d->client->loop) >= d->deadline_ns)
        status = HF_E_TIMEDOUT;
    if (status) {
        duty_end(d, d->body, status);
        return;
    }
    if (d->msg)
        hf_rpc_msg_unref(d->msg);
    d->msg = NULL;
    d->body = NULL;
    duty_call(d);
}

static void on_duty_last(struct trim_duty *t, int status)
{
    struct duty_op *d = hf_container_of(t, struct duty_op, trim);

    (void)status; /* the change stands either way */
    duty_end(d, d->body, 0);
}

/* The layout and the object of either reply. */
static const Hf__Layout *reply_layout(const struct duty_op *d, const ProtobufCMessage *body,
                                      uint64_t *ret_ino, uint32_t *ret_gen)
{
    if (!body)
        return NULL;
    if (body->descriptor == &hf__setattr_rep__descriptor) {
        const Hf__SetattrReq *req = (const Hf__SetattrReq *)d->req;

        *ret_ino = req->ino;
        *ret_gen = req->gen;
        return ((const Hf__SetattrRep *)body)->layout;
    } else if (body->descriptor == &hf__open_rep__descriptor) {
        const Hf__OpenReq *req = (const Hf__OpenReq *)d->req;

        *ret_ino = req->ino;
        *ret_gen = req->gen;
        return ((const Hf__OpenRep *)body)->layout;
    } else {
        const Hf__CreateRep *rep = (const Hf__CreateRep *)body;

        if (!rep->obj)
            return NULL;
        *ret_ino = rep->obj->ino;
        *ret_gen = rep->obj->gen;
        return rep->layout;
    }
}

static void on_duty_reply(const ProtobufCMessage *body, void *arg)
{
    struct duty_op *d = hf_container_of(arg, struct duty_op, inner);
    int status = d->inner.status;
    struct trim_duty *t = &d->trim;
    const Hf__Layout *layout = reply_layout(d, body, &t->ino, &t->gen);

    d->msg = d->inner.msg;
    d->body = body;
    if (d->msg)
        hf_rpc_msg_ref(d->msg);
    if ((status != 0 && status != HF_E_CHANGED) || !layout || !layout->trim ||
        layout_take(layout, &d->layout) || d->client->closing) {
        duty_end(d, body, status == HF_E_CHANGED ? HF_E_JUKEBOX : status);
        return;
    }
    t->client = d->client;
    t->layout = &d->layout;
    t->deadline_ns = d->deadline_ns;
    t->done = status == 0 ? on_duty_last : on_duty_again;
    trim_start(t);
}

static void invoke(struct hf_client *c, const ProtobufCMessage *req, ProtobufCClosure closure,
                   struct hf_client_call *call)
{
    ProtobufCService *meta = hf_client_meta(c);

    call->change = true;
    if (req->descriptor == &hf__setattr_req__descriptor)
        hf__meta__setattr(meta, (const Hf__SetattrReq *)req, (Hf__SetattrRep_Closure)closure, call);
    else if (req->descriptor == &hf__open_req__descriptor)
        hf__meta__open(meta, (const Hf__OpenReq *)req, (Hf__OpenRep_Closure)closure, call);
    else
        hf__meta__create(meta, (const Hf__CreateReq *)req, (Hf__CreateRep_Closure)closure, call);
}

static void duty_call(struct duty_op *d)
{
    d->inner.ino = d->call->ino;
    d->inner.deadline_ns = d->deadline_ns;
    d->inner.req_stays = true;
    invoke(d->client, d->req, on_duty_reply, &d->inner);
}

static void duty_start(struct hf_client *c, const ProtobufCMessage *req, ProtobufCClosure closure,
                       struct hf_client_call *call)
{
    struct duty_op *d = calloc(1, sizeof(*d));

    if (!d) {
        /* Without memory for the duty: a plain call. A trim that it leaves is seen to by the next
         * who extends the file; CHANGED reaches the caller, who tries again. */
        invoke(c, req, closure, call);
        return;
    }
    d->client = c;
    d->call = call;
    d->req = req;
    d->closure = closure;
    d->deadline_ns = call->deadline_ns
                         ? call->deadline_ns
                         : hf_loop_now_ns(c->loop) + c->opts.timeout_ms * HF_NS_PER_MS;
    call->reply_bulk = (struct hf_slice){NULL, 0};
    duty_call(d);
}

void hf_client_setattr(struct hf_client *c, const Hf__SetattrReq *req,
                       Hf__SetattrRep_Closure closure, struct hf_client_call *call)
{
    duty_start(c, &req->base, (ProtobufCClosure)closure, call);
}

void hf_client_create(struct hf_client *c, const Hf__CreateReq *req, Hf__CreateRep_Closure closure,
                      struct hf_client_call *call)
{
    duty_start(c, &req->base, (ProtobufCClosure)closure, call);
}

void hf_client_open(struct hf_client *c, const Hf__OpenReq *req, Hf__OpenRep_Closure closure,
                    struct hf_client_call *call)
{
    duty_start(c, &req->base, (ProtobufCClosure)closure, call);
}

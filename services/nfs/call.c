/* SPDX-License-Identifier: Apache-2.0
 *
 * From a record to its procedure and back: header, credentials, arguments, duplicate-request cache,
 * reply.
 */
#include "svc_priv.h"

/* ---- requests ---- */

static struct nfs_req *req_alloc(struct hf_nfssvc *s)
{
    struct hf_list *l = hf_list_pop_front(&s->spare_reqs);

    if (l) {
        s->nspare_reqs--;
        return hf_container_of(l, struct nfs_req, link);
    }
    return malloc(sizeof(struct nfs_req));
}

static struct nfs_req *req_new(struct nfs_conn *c, struct nfs_record_out *out)
{
    struct hf_nfssvc *s = c->svc;
    struct nfs_req *r = req_alloc(s);

    if (!r)
        goto fail;
    r->rec = out->buf;
    r->rec_cap = out->cap;
    r->rec_len = out->data.len;
    if (!r->rec) {
        /* In place in the scratch memory: it has to move, its bytes are used until the reply. */
        r->rec = r->inl;
        if (r->rec_len > sizeof(r->inl))
            r->rec = nfs_mem_get(&s->mem, r->rec_len, &r->rec_cap);
        if (!r->rec)
            goto fail;
        if (r->rec_len)
            memcpy(r->rec, out->data.data, r->rec_len);
    }
    r->svc = s;
    r->conn = c;
    r->drc = NULL;
    r->expect = 0;
    r->auth_none = r->transient = false;
    r->proc = NULL;
    hf_list_init(&r->waiter_link);
    hf_list_init(&r->link);
    hf_list_push_back(&c->reqs, &r->link);
    c->inflight++;
    s->inflight++;
    nfs_mem_charge(&s->mem, sizeof(*r));
    hf_metric_set(&s->m.requests_in_progress, s->inflight);
    return r;
fail:
    free(r);
    nfs_mem_put(&s->mem, out->buf, out->cap);
    hf_metric_add(&s->m.no_memory, 1);
    return NULL;
}

void nfs_req_free(struct nfs_req *r)
{
    struct hf_nfssvc *s = r->svc;

    hf_list_remove(&r->link);
    hf_list_remove(&r->waiter_link);
    if (r->conn) {
        r->conn->inflight--;
        r->conn->expected -= r->expect;
        if (r->conn->paused || r->conn->draining)
            nfs_conn_touch(r->conn);
    }
    if (r->rec != r->inl)
        nfs_mem_put(&s->mem, r->rec, r->rec_cap);
    nfs_mem_release(&s->mem, sizeof(*r) + r->expect);
    s->inflight--;
    hf_metric_set(&s->m.requests_in_progress, s->inflight);
    if (!hf_list_empty(&s->paused))
        hf_loop_defer(s->loop, &s->flush);
    if (s->nspare_reqs < NFS_REQ_SPARE) {
        hf_list_push_back(&s->spare_reqs, &r->link);
        s->nspare_reqs++;
    } else {
        free(r);
    }
}

void nfs_expect(struct nfs_req *r, size_t bytes)
{
    r->expect = bytes;
    r->conn->expected += bytes;
    nfs_mem_charge(&r->svc->mem, bytes);
}

/* ---- replies ---- */

XDR *nfs_reply_begin(struct nfs_req *r)
{
    struct hf_nfssvc *s = r->svc;

    xdrmem_create(&s->xdr, (char *)s->encode + ONC_REPLY_HEAD, NFS_ENCODE_BYTES - ONC_REPLY_HEAD,
                  XDR_ENCODE);
    return &s->xdr;
}

/* Whoever waits for the same call gets the same bytes. */
static void answer_waiters(struct nfs_req *r, const uint8_t *reply, size_t len)
{
    struct hf_list *l;

    while ((l = hf_list_pop_front(&r->drc->waiters)) != NULL) {
        struct nfs_req *w = hf_container_of(l, struct nfs_req, waiter_link);

        if (w->conn && len)
            nfs_conn_send(w->conn, reply, len);
        nfs_req_free(w);
    }
}

/* Sends a complete reply (len 0: none) and ends the request. */
static void finish(struct nfs_req *r, const uint8_t *reply, size_t len)
{
    struct hf_nfssvc *s = r->svc;

    if (s->closing)
        len = 0;
    if (r->conn && len)
        nfs_conn_send(r->conn, reply, len);
    if (r->drc) {
        answer_waiters(r, reply, len);
        if (len == 0 || r->transient)
            nfs_drc_forget(s->drc, r->drc);
        else
            nfs_drc_done(s->drc, r->drc, reply, len, hf_loop_now_ns(s->loop));
        hf_metric_set(&s->m.drc_entries, nfs_drc_entries(s->drc));
        hf_metric_set(&s->m.drc_bytes, nfs_drc_bytes(s->drc));
    }
    nfs_req_free(r);
}

void nfs_reply_end(struct nfs_req *r, bool ok)
{
    struct hf_nfssvc *s = r->svc;
    size_t body = ok ? xdr_getpos(&s->xdr) : 0;
    size_t head = onc_reply_accepted(s->encode, r->xid, ok ? ONC_SUCCESS : ONC_SYSTEM_ERR, body);

    if (!ok)
        r->transient = true;
    finish(r, s->encode, head + body);
}

bool nfs_reply_head(struct nfs_req *r, bool ok, size_t body)
{
    struct hf_nfssvc *s = r->svc;
    size_t results, head;

    if (!ok || !r->conn || s->closing) {
        nfs_reply_end(r, ok);
        return false;
    }
    results = xdr_getpos(&s->xdr);
    head = onc_reply_accepted(s->encode, r->xid, ONC_SUCCESS, results + body);
    nfs_conn_send(r->conn, s->encode, head + results);
    return true;
}

static void refuse(struct nfs_req *r, uint64_t *counter, size_t len)
{
    hf_metric_add(counter, 1);
    r->transient = true;
    finish(r, r->svc->encode, len);
}

void nfs3_garbage(struct nfs_req *r)
{
    struct hf_nfssvc *s = r->svc;

    refuse(r, &s->m.rpc_garbage, onc_reply_accepted(s->encode, r->xid, ONC_GARBAGE_ARGS, 0));
}

/* ---- calls ---- */

/* false: answered. */
static bool find_proc(struct nfs_req *r, const struct onc_call *call)
{
    struct hf_nfssvc *s = r->svc;
    const bool nfs = call->prog == NFS_PROGRAM;
    size_t len;

    if (!nfs && call->prog != MOUNT_PROGRAM) {
        len = onc_reply_accepted(s->encode, r->xid, ONC_PROG_UNAVAIL, 0);
    } else if (call->vers != NFS_V3) { /* the same number for both */
        len = onc_reply_prog_mismatch(s->encode, r->xid, NFS_V3, NFS_V3);
    } else if (call->proc >= (nfs ? NFS3_PROCS : MOUNT3_PROCS)) {
        len = onc_reply_accepted(s->encode, r->xid, ONC_PROC_UNAVAIL, 0);
    } else {
        r->proc = nfs ? &nfs3_procs[call->proc] : &mount3_procs[call->proc];
        hf_metric_add(nfs ? &s->m.nfs_calls[call->proc] : &s->m.mount_calls[call->proc], 1);
        return true;
    }
    refuse(r, &s->m.rpc_unavailable, len);
    return false;
}

static void take_cred(struct nfs_req *r, const struct onc_call *call)
{
    r->auth_none = call->auth_none;
    r->cred.uid = call->uid;
    r->cred.gid = call->gid;
    r->cred.ngroups = call->ngroups;
    memcpy(r->cred.groups, call->groups, call->ngroups * sizeof(call->groups[0]));
}

/* The sender's address without its port. */
static void key_addr(struct nfs_drc_key *k, const struct sockaddr_storage *peer)
{
    k->family = peer->ss_family;
    if (peer->ss_family == AF_INET6)
        memcpy(k->addr, &((const struct sockaddr_in6 *)peer)->sin6_addr, 16);
    else
        memcpy(k->addr, &((const struct sockaddr_in *)peer)->sin_addr, 4);
}

/* true: run it now. */
static bool drc_admits(struct nfs_req *r, const struct onc_call *call)
{
    struct hf_nfssvc *s = r->svc;
    struct nfs_drc_key k = {.xid = call->xid,
                            .prog = call->prog,
                            .vers = call->vers,
                            .proc = call->proc,
                            .uid = call->uid};
    struct nfs_drc_entry *e;

    key_addr(&k, &r->conn->peer);
    nfs_drc_key_args(s->drc, &k, hf_slice(r->rec + call->args_off, r->rec_len - call->args_off));
    switch (nfs_drc_begin(s->drc, &k, hf_loop_now_ns(s->loop), &e)) {
    case NFS_DRC_NEW:
        r->drc = e;
        return true;
    case NFS_DRC_WAIT:
        hf_metric_add(&s->m.drc_waits, 1);
        hf_list_push_back(&e->waiters, &r->waiter_link);
        return false;
    case NFS_DRC_REPLAY:
        hf_metric_add(&s->m.drc_hits, 1);
        finish(r, e->reply, e->reply_len);
        return false;
    case NFS_DRC_FULL:
        hf_metric_add(&s->m.drc_full, 1);
        return true;
    }
    return true;
}

static void run(struct nfs_req *r, const struct onc_call *call)
{
    XDR x;

    r->prog = call->prog;
    r->proc_no = call->proc;
    if (!find_proc(r, call))
        return;
    take_cred(r, call);
    xdrmem_create(&x, (char *)r->rec + call->args_off, (u_int)(r->rec_len - call->args_off),
                  XDR_DECODE);
    memset(&r->a, 0, sizeof(r->a));
    if (!r->proc->decode(&x, &r->a)) {
        nfs3_garbage(r);
        return;
    }
    if (r->proc->remembered && !drc_admits(r, call))
        return;
    r->proc->run(r);
}

bool nfs_call(struct nfs_conn *c, struct nfs_record_out *out)
{
    struct hf_nfssvc *s = c->svc;
    struct nfs_req *r = req_new(c, out);
    struct onc_call call;

    if (!r)
        return false;
    switch (onc_call_parse(r->rec, r->rec_len, &call)) {
    case ONC_NOT_CALL:
        hf_metric_add(&s->m.bad_records, 1);
        nfs_req_free(r);
        return false;
    case ONC_MISMATCH:
        refuse(r, &s->m.rpc_denied, onc_reply_mismatch(s->encode, call.xid));
        return true;
    case ONC_DENIED:
        refuse(r, &s->m.rpc_denied, onc_reply_denied(s->encode, call.xid, call.auth));
        return true;
    case ONC_CALL:
        break;
    }
    r->xid = call.xid;
    run(r, &call);
    return true;
}

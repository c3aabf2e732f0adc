/* SPDX-License-Identifier: Apache-2.0 */
#include "svc_priv.h"

bool nfs3_handle(struct nfs_req *r, const nfs_fh3 *fh, struct hf_vfs_obj *ret)
{
    int rc = hf_vfs_fh_decode(r->svc->vfs, *fh, (const struct sockaddr *)&r->conn->peer, ret);

    if (rc) {
        nfs3_fail(r, rc);
        return false;
    }
    if (r->auth_none) {
        r->cred.uid = ret->exp.anon_uid;
        r->cred.gid = ret->exp.anon_gid;
    }
    return true;
}

struct hf_vfs_req *nfs3_vfs(struct nfs_req *r, void (*done)(struct hf_vfs_req *v))
{
    memset(&r->v, 0, sizeof(r->v));
    r->v.cred = r->cred;
    r->v.done = done;
    r->v.arg = r;
    return &r->v;
}

nfsstat3 nfs3_status(struct nfs_req *r, int rc)
{
    struct hf_nfssvc *s = r->svc;

    if (nfs_status_allowed(r->proc->errors, rc))
        return nfs_status_nfs3(rc);
    hf_metric_add(&s->m.status_folded, 1);
    if (hf_log_rate_ok(&s->status_rate, 5))
        hf_log(s->log, HF_WARN, "nfs", "%s: %s is not an error of this procedure; SERVERFAULT sent",
               r->proc->name, hf_err_name(rc));
    return NFS3ERR_SERVERFAULT;
}

void nfs3_reply(struct nfs_req *r, union nfs_res *res)
{
    /* Every result begins with its status. */
    nfsstat3 st = res->getattr.status;

    if (st != NFS3_OK) {
        hf_metric_add(&r->svc->m.nfs_errors[r->proc_no], 1);
        r->transient = st == NFS3ERR_JUKEBOX;
    }
    nfs_reply_end(r, r->proc->encode(nfs_reply_begin(r), res));
}

void nfs3_fail(struct nfs_req *r, int rc)
{
    union nfs_res res;

    /* Zeros are the empty attributes of every result's failure arm. */
    memset(&res, 0, sizeof(res));
    res.getattr.status = nfs3_status(r, rc);
    nfs3_reply(r, &res);
}

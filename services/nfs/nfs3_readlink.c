/* SPDX-License-Identifier: Apache-2.0
 *
 * READLINK, RFC 1813 section 3.3.5.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__ReadlinkRep *rep = v->rep;
    READLINK3resok *ok;
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && !rep)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, rep ? rep->obj : NULL))
        return;
    res.readlink.status = nfs3_status(r, rc);
    if (rc == 0) {
        ok = &res.readlink.READLINK3res_u.resok;
        ok->data = hf_slice(rep->target.data, rep->target.len);
        nfs3_post_attr(r->svc, rep->obj, &ok->symlink_attributes);
    } else {
        nfs3_post_attr(r->svc, rep ? rep->obj : NULL,
                       &res.readlink.READLINK3res_u.symlink_attributes);
    }
    nfs3_reply(r, &res);
}

void nfs3_readlink(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.readlink.symlink, &r->obj))
        hf_vfs_readlink(r->svc->vfs, nfs3_vfs(r, done), &r->obj);
}

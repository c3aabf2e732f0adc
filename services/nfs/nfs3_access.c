/* SPDX-License-Identifier: Apache-2.0
 *
 * ACCESS, RFC 1813 section 3.3.4.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__AccessRep *rep = v->rep;
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && !rep)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, rep ? rep->obj : NULL))
        return;
    res.access.status = nfs3_status(r, rc);
    if (rc == 0) {
        res.access.ACCESS3res_u.resok.access = rep->granted & r->a.access.access;
        nfs3_post_attr(r->svc, rep->obj, &res.access.ACCESS3res_u.resok.obj_attributes);
    } else {
        nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &res.access.ACCESS3res_u.obj_attributes);
    }
    nfs3_reply(r, &res);
}

void nfs3_access(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.access.object, &r->obj))
        hf_vfs_access(r->svc->vfs, nfs3_vfs(r, done), &r->obj, r->a.access.access);
}

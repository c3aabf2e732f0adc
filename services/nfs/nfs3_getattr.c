/* SPDX-License-Identifier: Apache-2.0
 *
 * GETATTR, RFC 1813 section 3.3.1.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__GetattrRep *rep = v->rep;
    union nfs_res res;

    if (v->status || !rep || !rep->obj) {
        nfs3_fail(r, v->status ? v->status : HF_E_INTERNAL);
        return;
    }
    res.getattr.status = NFS3_OK;
    nfs3_fattr(r->svc, rep->obj, &res.getattr.GETATTR3res_u.obj_attributes);
    nfs3_reply(r, &res);
}

void nfs3_getattr(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.getattr.object, &r->obj))
        hf_vfs_getattr(r->svc->vfs, nfs3_vfs(r, done), &r->obj);
}

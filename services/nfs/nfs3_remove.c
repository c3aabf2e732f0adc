/* SPDX-License-Identifier: Apache-2.0
 *
 * REMOVE and RMDIR, RFC 1813 sections 3.3.12 and 3.3.13.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__RemoveRep *rep = v->rep;
    union nfs_res res;

    if (nfs3_blind_failure(r, v->status, rep && rep->dir ? rep->dir->after : NULL))
        return;
    res.remove.status = nfs3_status(r, v->status);
    nfs3_wcc(r->svc, rep ? rep->dir : NULL, &res.remove.dir_wcc);
    nfs3_reply(r, &res);
}

void nfs3_remove(struct nfs_req *r)
{
    const diropargs3 *a = &r->a.remove.object;

    if (nfs3_handle(r, &a->dir, &r->obj))
        hf_vfs_remove(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->name, false);
}

void nfs3_rmdir(struct nfs_req *r)
{
    const diropargs3 *a = &r->a.rmdir.object;

    if (nfs3_handle(r, &a->dir, &r->obj))
        hf_vfs_remove(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->name, true);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * RENAME, RFC 1813 section 3.3.14.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__RenameRep *rep = v->rep;
    union nfs_res res;

    if (nfs3_blind_failure(r, v->status, rep && rep->from ? rep->from->after : NULL))
        return;
    res.rename.status = nfs3_status(r, v->status);
    nfs3_wcc(r->svc, rep ? rep->from : NULL, &res.rename.fromdir_wcc);
    nfs3_wcc(r->svc, rep ? rep->to : NULL, &res.rename.todir_wcc);
    nfs3_reply(r, &res);
}

void nfs3_rename(struct nfs_req *r)
{
    const RENAME3args *a = &r->a.rename;

    if (nfs3_handle(r, &a->from.dir, &r->obj) && nfs3_handle(r, &a->to.dir, &r->obj2))
        hf_vfs_rename(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->from.name, &r->obj2, a->to.name);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * LINK, RFC 1813 section 3.3.15.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__LinkRep *rep = v->rep;
    union nfs_res res;

    if (nfs3_blind_failure(r, v->status, rep && rep->dir ? rep->dir->after : NULL))
        return;
    res.link.status = nfs3_status(r, v->status);
    nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &res.link.file_attributes);
    nfs3_wcc(r->svc, rep ? rep->dir : NULL, &res.link.linkdir_wcc);
    nfs3_reply(r, &res);
}

void nfs3_link(struct nfs_req *r)
{
    const LINK3args *a = &r->a.link;

    if (nfs3_handle(r, &a->file, &r->obj) && nfs3_handle(r, &a->link.dir, &r->obj2))
        hf_vfs_link(r->svc->vfs, nfs3_vfs(r, done), &r->obj, &r->obj2, a->link.name);
}

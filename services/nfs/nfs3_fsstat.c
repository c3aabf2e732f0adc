/* SPDX-License-Identifier: Apache-2.0
 *
 * FSSTAT, RFC 1813 section 3.3.18. invarsec 0: the figures may change at once.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__FsstatRep *rep = v->rep;
    union nfs_res res;
    FSSTAT3resok *ok;

    if (nfs3_blind_failure(r, v->status, rep ? rep->obj : NULL))
        return;
    memset(&res.fsstat, 0, sizeof(res.fsstat));
    res.fsstat.status = nfs3_status(r, v->status);
    if (v->status) {
        nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &res.fsstat.FSSTAT3res_u.obj_attributes);
    } else {
        ok = &res.fsstat.FSSTAT3res_u.resok;
        nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &ok->obj_attributes);
        ok->tbytes = v->space.total_bytes;
        ok->fbytes = ok->abytes = v->space.free_bytes;
        ok->tfiles = v->space.total_files;
        ok->ffiles = ok->afiles = v->space.free_files;
    }
    nfs3_reply(r, &res);
}

void nfs3_fsstat(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.fsstat.fsroot, &r->obj))
        hf_vfs_fsstat(r->svc->vfs, nfs3_vfs(r, done), &r->obj);
}

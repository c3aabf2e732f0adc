/* SPDX-License-Identifier: Apache-2.0
 *
 * LOOKUP, RFC 1813 section 3.3.3.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__LookupRep *rep = v->rep;
    LOOKUP3resok *ok;
    uint8_t fh[HF_VFS_FH_MAX];
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && (!rep || !rep->obj))
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, rep ? rep->dir : NULL))
        return;
    res.lookup.status = nfs3_status(r, rc);
    if (rc == 0) {
        ok = &res.lookup.LOOKUP3res_u.resok;
        ok->object = hf_slice(
            fh, hf_vfs_fh_encode(r->svc->vfs, &r->obj.exp, rep->obj->ino, rep->obj->gen, fh));
        nfs3_post_attr(r->svc, rep->obj, &ok->obj_attributes);
        nfs3_post_attr(r->svc, rep->dir, &ok->dir_attributes);
    } else {
        nfs3_post_attr(r->svc, rep ? rep->dir : NULL, &res.lookup.LOOKUP3res_u.dir_attributes);
    }
    nfs3_reply(r, &res);
}

void nfs3_lookup(struct nfs_req *r)
{
    const diropargs3 *a = &r->a.lookup.what;

    if (nfs3_handle(r, &a->dir, &r->obj))
        hf_vfs_lookup(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->name);
}

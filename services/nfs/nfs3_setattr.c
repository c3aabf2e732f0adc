/* SPDX-License-Identifier: Apache-2.0
 *
 * SETATTR, RFC 1813 section 3.3.2. The guard is compared in meta, in nanoseconds.
 */
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__SetattrRep *rep = v->rep;
    union nfs_res res;

    if (nfs3_blind_failure(r, v->status, rep && rep->obj ? rep->obj->after : NULL))
        return;
    res.setattr.status = nfs3_status(r, v->status);
    nfs3_wcc(r->svc, rep ? rep->obj : NULL, &res.setattr.obj_wcc);
    nfs3_reply(r, &res);
}

void nfs3_setattr(struct nfs_req *r)
{
    const SETATTR3args *a = &r->a.setattr;
    const nfstime3 *guard = &a->guard.sattrguard3_u.obj_ctime;
    int64_t guard_ns = 0;
    int rc;

    if (!nfs3_handle(r, &a->object, &r->obj))
        return;
    rc = nfs3_sattr(&a->new_attributes, &r->s.set);
    if (rc == 0 && a->guard.check) {
        guard_ns = (int64_t)guard->seconds * (int64_t)HF_NS_PER_SEC + guard->nseconds;
        if (guard->nseconds >= HF_NS_PER_SEC)
            rc = HF_E_INVAL;
    }
    if (rc)
        nfs3_fail_attr(r, rc);
    else
        hf_vfs_setattr(r->svc->vfs, nfs3_vfs(r, done), &r->obj, &r->s.set, a->guard.check,
                       guard_ns);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * CREATE, RFC 1813 section 3.3.8. How the modes behave, also on a repeated EXCLUSIVE, is meta's
 * business.
 */
#include "holdfast/endian.h"
#include "nfs3_make.h"

static void done(struct hf_vfs_req *v)
{
    const Hf__CreateRep *rep = v->rep;

    nfs3_made(v->arg, v->status, rep ? rep->obj : NULL, rep ? rep->dir : NULL);
}

void nfs3_create(struct nfs_req *r)
{
    const CREATE3args *a = &r->a.create;
    uint64_t verf = 0;
    uint32_t how = HF__CREATE_HOW__CREATE_UNCHECKED;
    int rc = 0;

    if (!nfs3_handle(r, &a->where.dir, &r->obj))
        return;
    if (a->how.mode == EXCLUSIVE) {
        how = HF__CREATE_HOW__CREATE_EXCLUSIVE;
        verf = hf_get_be64(a->how.createhow3_u.verf);
        hf__set_attrs__init(&r->s.set);
    } else {
        if (a->how.mode == GUARDED)
            how = HF__CREATE_HOW__CREATE_GUARDED;
        rc = nfs3_sattr(&a->how.createhow3_u.obj_attributes, &r->s.set);
    }
    if (rc)
        nfs3_fail_attr(r, rc);
    else
        hf_vfs_create(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->where.name, how, &r->s.set, verf);
}

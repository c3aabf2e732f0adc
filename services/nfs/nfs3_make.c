/* SPDX-License-Identifier: Apache-2.0 */
#include "nfs3_make.h"

void nfs3_made(struct nfs_req *r, int rc, const Hf__Attr *obj, const Hf__Wcc *dir)
{
    CREATE3resok *ok;
    uint8_t fh[HF_VFS_FH_MAX];
    union nfs_res res;

    if (rc == 0 && !obj)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, dir ? dir->after : NULL))
        return;
    res.create.status = nfs3_status(r, rc);
    if (rc == 0) {
        ok = &res.create.CREATE3res_u.resok;
        nfs3_post_fh(r, obj, fh, &ok->obj);
        nfs3_post_attr(r->svc, obj, &ok->obj_attributes);
        nfs3_wcc(r->svc, dir, &ok->dir_wcc);
    } else {
        nfs3_wcc(r->svc, dir, &res.create.CREATE3res_u.dir_wcc);
    }
    nfs3_reply(r, &res);
}

static void done(struct hf_vfs_req *v)
{
    const Hf__MakeRep *rep = v->rep;

    nfs3_made(v->arg, v->status, rep ? rep->obj : NULL, rep ? rep->dir : NULL);
}

void nfs3_make(struct nfs_req *r, const diropargs3 *where, uint32_t type, const sattr3 *attrs,
               struct hf_slice target, specdata3 spec)
{
    int rc;

    if (!nfs3_handle(r, &where->dir, &r->obj))
        return;
    rc = nfs3_sattr(attrs, &r->s.set);
    if (rc)
        nfs3_fail_attr(r, rc);
    else
        hf_vfs_make(r->svc->vfs, nfs3_vfs(r, done), &r->obj, where->name, type, &r->s.set, target,
                    spec.specdata1, spec.specdata2);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "svc_priv.h"

bool nfs3_handle(struct nfs_req *r, const nfs_fh3 *fh, struct hf_vfs_obj *ret)
{
    int rc = hf_vfs_fh_decode(r->svc->vfs, *fh, (const struct sockaddr *)&r->conn->peer, ret);

    if (rc) {
        nfs3_fail(r, rc);
        return false;
    }
    if (r->auth_none) {
        r->cred.uid = ret->exp.anon_uid;
        r->cred.gid = ret->exp.anon_gid;
    }
    return true;
}

struct hf_vfs_req *nfs3_vfs(struct nfs_req *r, void (*done)(struct hf_vfs_req *v))
{
    memset(&r->v, 0, sizeof(r->v));
    r->v.cred = r->cred;
    r->v.done = done;
    r->v.arg = r;
    return &r->v;
}

nfsstat3 nfs3_status(struct nfs_req *r, int rc)
{
    struct hf_nfssvc *s = r->svc;

    if (nfs_status_allowed(r->proc->errors, rc))
        return nfs_status_nfs3(rc);
    hf_metric_add(&s->m.status_folded, 1);
    if (hf_log_rate_ok(&s->status_rate, 5))
        hf_log(s->log, HF_WARN, "nfs", "%s: %s is not an error of this procedure; SERVERFAULT sent",
               r->proc->name, hf_err_name(rc));
    return NFS3ERR_SERVERFAULT;
}

void nfs3_reply(struct nfs_req *r, union nfs_res *res)
{
    /* Every result begins with its status. */
    nfsstat3 st = res->getattr.status;

    if (st != NFS3_OK) {
        hf_metric_add(&r->svc->m.nfs_errors[r->proc_no], 1);
        r->transient = st == NFS3ERR_JUKEBOX;
    }
    nfs_reply_end(r, r->proc->encode(nfs_reply_begin(r), res));
}

void nfs3_fail(struct nfs_req *r, int rc)
{
    union nfs_res res;

    /* Zeros are the empty attributes of every result's failure arm. */
    memset(&res, 0, sizeof(res));
    res.getattr.status = nfs3_status(r, rc);
    nfs3_reply(r, &res);
}

/* ---- failures whose attributes are not known ---- */

/* The failure arms of all results of one kind lie at the same place, so one member stands for all.
 */
#define ATTR_OFFSET offsetof(LOOKUP3res, LOOKUP3res_u.dir_attributes)
#define WCC_OFFSET  offsetof(SETATTR3res, obj_wcc)
_Static_assert(offsetof(ACCESS3res, ACCESS3res_u.obj_attributes) == ATTR_OFFSET, "ACCESS");
_Static_assert(offsetof(READLINK3res, READLINK3res_u.symlink_attributes) == ATTR_OFFSET,
               "READLINK");
_Static_assert(offsetof(READ3res, READ3res_u.file_attributes) == ATTR_OFFSET, "READ");
_Static_assert(offsetof(READDIR3res, READDIR3res_u.dir_attributes) == ATTR_OFFSET, "READDIR");
_Static_assert(offsetof(FSSTAT3res, FSSTAT3res_u.obj_attributes) == ATTR_OFFSET, "FSSTAT");
_Static_assert(offsetof(FSINFO3res, FSINFO3res_u.obj_attributes) == ATTR_OFFSET, "FSINFO");
_Static_assert(offsetof(PATHCONF3res, PATHCONF3res_u.obj_attributes) == ATTR_OFFSET, "PATHCONF");
_Static_assert(offsetof(WRITE3res, WRITE3res_u.file_wcc) == WCC_OFFSET, "WRITE");
_Static_assert(offsetof(CREATE3res, CREATE3res_u.dir_wcc) == WCC_OFFSET, "CREATE");
_Static_assert(offsetof(REMOVE3res, dir_wcc) == WCC_OFFSET, "REMOVE");
_Static_assert(offsetof(COMMIT3res, COMMIT3res_u.file_wcc) == WCC_OFFSET, "COMMIT");

static void fail_encode(struct nfs_req *r)
{
    const post_op_attr *attr = r->s.fail.attr;
    union nfs_res res;

    memset(&res, 0, sizeof(res));
    res.getattr.status = nfs3_status(r, r->s.fail.rc);
    switch (r->proc->failure) {
    case NFS_FAIL_NONE:
        break;
    case NFS_FAIL_ATTR:
        res.lookup.LOOKUP3res_u.dir_attributes = attr[0];
        break;
    case NFS_FAIL_WCC:
        res.setattr.obj_wcc.after = attr[0];
        break;
    case NFS_FAIL_RENAME:
        res.rename.fromdir_wcc.after = attr[0];
        res.rename.todir_wcc.after = attr[1];
        break;
    case NFS_FAIL_LINK:
        res.link.file_attributes = attr[0];
        res.link.linkdir_wcc.after = attr[1];
        break;
    }
    nfs3_reply(r, &res);
}

static void second_fetched(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__GetattrRep *rep = v->rep;

    nfs3_post_attr(r->svc, v->status == 0 && rep ? rep->obj : NULL, &r->s.fail.attr[1]);
    fail_encode(r);
}

static void first_fetched(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__GetattrRep *rep = v->rep;

    nfs3_post_attr(r->svc, v->status == 0 && rep ? rep->obj : NULL, &r->s.fail.attr[0]);
    if (r->proc->failure == NFS_FAIL_RENAME || r->proc->failure == NFS_FAIL_LINK)
        hf_vfs_getattr(r->svc->vfs, nfs3_vfs(r, second_fetched), &r->obj2);
    else
        fail_encode(r);
}

void nfs3_fail_attr(struct nfs_req *r, int rc)
{
    r->s.fail.rc = rc;
    hf_vfs_getattr(r->svc->vfs, nfs3_vfs(r, first_fetched), &r->obj);
}

bool nfs3_blind_failure(struct nfs_req *r, int rc, const Hf__Attr *known)
{
    const nfsstat3 st = nfs_status_nfs3(rc);

    /* These say that nothing can be learned of the object just now, or at all. */
    if (rc == 0 || known || st == NFS3ERR_JUKEBOX || st == NFS3ERR_STALE ||
        st == NFS3ERR_BADHANDLE || st == NFS3ERR_SERVERFAULT || r->svc->closing)
        return false;
    nfs3_fail_attr(r, rc);
    return true;
}

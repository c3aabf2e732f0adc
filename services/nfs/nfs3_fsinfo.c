/* SPDX-License-Identifier: Apache-2.0
 *
 * FSINFO and PATHCONF, RFC 1813 sections 3.3.19 and 3.3.20: constants, beside the attributes.
 */
#include "svc_priv.h"

#define MULTIPLE 4096u
/* The limits that meta enforces (HF_META_*). */
#define MAX_LINKS 65000u
#define MAX_NAME  255u
#define MAX_FILE  (UINT64_C(1) << 53)

static void fsinfo_done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__GetattrRep *rep = v->rep;
    union nfs_res res;
    FSINFO3resok *ok = &res.fsinfo.FSINFO3res_u.resok;

    if (v->status) {
        nfs3_fail(r, v->status);
        return;
    }
    res.fsinfo.status = NFS3_OK;
    *ok = (FSINFO3resok){
        .rtmax = NFS_IO_MAX,
        .rtpref = NFS_IO_MAX,
        .rtmult = MULTIPLE,
        .wtmax = NFS_IO_MAX,
        .wtpref = NFS_IO_MAX,
        .wtmult = MULTIPLE,
        .dtpref = NFS_DIR_PREF,
        .maxfilesize = MAX_FILE,
        .time_delta = {0, 1},
        .properties = FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
    };
    nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &ok->obj_attributes);
    nfs3_reply(r, &res);
}

void nfs3_fsinfo(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.fsinfo.fsroot, &r->obj))
        hf_vfs_getattr(r->svc->vfs, nfs3_vfs(r, fsinfo_done), &r->obj);
}

static void pathconf_done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const Hf__GetattrRep *rep = v->rep;
    union nfs_res res;
    PATHCONF3resok *ok = &res.pathconf.PATHCONF3res_u.resok;

    if (v->status) {
        nfs3_fail(r, v->status);
        return;
    }
    res.pathconf.status = NFS3_OK;
    *ok = (PATHCONF3resok){
        .linkmax = MAX_LINKS,
        .name_max = MAX_NAME,
        .no_trunc = true,
        .chown_restricted = true,
        .case_insensitive = false,
        .case_preserving = true,
    };
    nfs3_post_attr(r->svc, rep ? rep->obj : NULL, &ok->obj_attributes);
    nfs3_reply(r, &res);
}

void nfs3_pathconf(struct nfs_req *r)
{
    if (nfs3_handle(r, &r->a.pathconf.object, &r->obj))
        hf_vfs_getattr(r->svc->vfs, nfs3_vfs(r, pathconf_done), &r->obj);
}

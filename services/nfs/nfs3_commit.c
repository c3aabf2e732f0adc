/* SPDX-License-Identifier: Apache-2.0
 *
 * COMMIT, RFC 1813 section 3.3.21.
 */
#include "holdfast/endian.h"
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const struct hf_client_io *io = v->io;
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && !io)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, io && io->wcc ? io->wcc->after : NULL))
        return;
    res.commit.status = nfs3_status(r, rc);
    if (rc == 0) {
        nfs3_wcc(r->svc, io->wcc, &res.commit.COMMIT3res_u.resok.file_wcc);
        hf_put_be64(res.commit.COMMIT3res_u.resok.verf, io->verifier);
    } else {
        nfs3_wcc(r->svc, io ? io->wcc : NULL, &res.commit.COMMIT3res_u.file_wcc);
    }
    nfs3_reply(r, &res);
}

void nfs3_commit(struct nfs_req *r)
{
    const COMMIT3args *a = &r->a.commit;

    if (nfs3_handle(r, &a->file, &r->obj))
        hf_vfs_commit(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->offset, a->count);
}

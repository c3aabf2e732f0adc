/* SPDX-License-Identifier: Apache-2.0
 *
 * WRITE, RFC 1813 section 3.3.7. The data stays where it was received. DATA_SYNC is carried out,
 * and answered, as FILE_SYNC. Of more than wtmax bytes only wtmax are written, as the count tells.
 */
#include "holdfast/endian.h"
#include "svc_priv.h"

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const struct hf_client_io *io = v->io;
    WRITE3resok *ok;
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && !io)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, io && io->wcc ? io->wcc->after : NULL))
        return;
    res.write.status = nfs3_status(r, rc);
    if (rc == 0) {
        ok = &res.write.WRITE3res_u.resok;
        nfs3_wcc(r->svc, io->wcc, &ok->file_wcc);
        ok->count = io->count;
        ok->committed = r->a.write.stable == UNSTABLE ? UNSTABLE : FILE_SYNC;
        hf_put_be64(ok->verf, io->verifier);
    } else {
        nfs3_wcc(r->svc, io ? io->wcc : NULL, &res.write.WRITE3res_u.file_wcc);
    }
    nfs3_reply(r, &res);
}

void nfs3_write(struct nfs_req *r)
{
    const WRITE3args *a = &r->a.write;
    const uint32_t stable = a->stable == UNSTABLE ? HF__STABLE__UNSTABLE : HF__STABLE__FILE_SYNC;

    if ((uint32_t)a->stable > FILE_SYNC || a->count != a->data.len) {
        nfs3_garbage(r);
        return;
    }
    if (!nfs3_handle(r, &a->file, &r->obj))
        return;
    r->s.data = a->data;
    if (r->s.data.len > NFS_IO_MAX)
        r->s.data.len = NFS_IO_MAX;
    hf_vfs_write(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->offset, &r->s.data,
                 r->s.data.len ? 1 : 0, stable);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * MKNOD, RFC 1813 section 3.3.11. Types that other procedures make, and unknown ones, are BADTYPE.
 */
#include "nfs3_make.h"

void nfs3_mknod(struct nfs_req *r)
{
    const MKNOD3args *a = &r->a.mknod;
    const mknoddata3 *w = &a->what;
    const devicedata3 *dev = &w->mknoddata3_u.device;

    switch (w->type) {
    case NF3CHR:
    case NF3BLK:
        nfs3_make(r, &a->where, w->type == NF3CHR ? HF__FILE_TYPE__FT_CHR : HF__FILE_TYPE__FT_BLK,
                  &dev->dev_attributes, hf_slice("", 0), dev->spec);
        break;
    case NF3SOCK:
    case NF3FIFO:
        nfs3_make(r, &a->where,
                  w->type == NF3SOCK ? HF__FILE_TYPE__FT_SOCK : HF__FILE_TYPE__FT_FIFO,
                  &w->mknoddata3_u.pipe_attributes, hf_slice("", 0), (specdata3){0, 0});
        break;
    default:
        if (nfs3_handle(r, &a->where.dir, &r->obj))
            nfs3_fail_attr(r, HF_E_BADTYPE);
    }
}

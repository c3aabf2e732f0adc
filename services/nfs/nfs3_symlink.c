/* SPDX-License-Identifier: Apache-2.0
 *
 * SYMLINK, RFC 1813 section 3.3.10. The target's bytes are kept as they are.
 */
#include "nfs3_make.h"

void nfs3_symlink(struct nfs_req *r)
{
    const SYMLINK3args *a = &r->a.symlink;

    nfs3_make(r, &a->where, HF__FILE_TYPE__FT_LNK, &a->symlink_attributes, a->symlink_data,
              (specdata3){0, 0});
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * MKDIR, RFC 1813 section 3.3.9.
 */
#include "nfs3_make.h"

void nfs3_mkdir(struct nfs_req *r)
{
    const MKDIR3args *a = &r->a.mkdir;

    nfs3_make(r, &a->where, HF__FILE_TYPE__FT_DIR, &a->attributes, hf_slice("", 0),
              (specdata3){0, 0});
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What CREATE, MKDIR, SYMLINK and MKNOD share: one result type.
 */
#ifndef HF_NFS_NFS3_MAKE_H
#define HF_NFS_NFS3_MAKE_H

#include "svc_priv.h"

/* Answers. obj, dir may be NULL. */
void nfs3_made(struct nfs_req *r, int rc, const Hf__Attr *obj, const Hf__Wcc *dir);
/* Runs hf_vfs_make for `where` and answers. type: enum Hf__FileType. */
void nfs3_make(struct nfs_req *r, const diropargs3 *where, uint32_t type, const sattr3 *attrs,
               struct hf_slice target, specdata3 spec);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Who has mounted what, as MOUNT's DUMP tells it: what clients said, nothing depends on it. In
 * memory only; bounded, the oldest entry goes first.
 */
#ifndef HF_NFS_MOUNTS_H
#define HF_NFS_MOUNTS_H

#include "holdfast/buf.h"
#include "holdfast/list.h"

#define NFS_MOUNTS_MAX    1024u
#define NFS_MOUNTS_DIRLEN 1024u

struct nfs_mounts {
    struct hf_list list; /* of struct nfs_mount, oldest first */
    unsigned n;
};

struct nfs_mount {
    struct hf_list link;
    char host[48]; /* address */
    size_t dir_len;
    char dir[];
};

void nfs_mounts_init(struct nfs_mounts *m);
void nfs_mounts_fini(struct nfs_mounts *m);
/* Known ones are only moved to the end. Without memory it is forgotten. */
void nfs_mounts_add(struct nfs_mounts *m, const char *host, struct hf_slice dir);
/* dir NULL data: all of the host. */
void nfs_mounts_del(struct nfs_mounts *m, const char *host, struct hf_slice dir);

#endif

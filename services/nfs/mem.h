/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of records: counted, so that all requests together can be bounded, and kept for reuse when
 * large, so that a stream of 1 MiB writes does not fault the same pages in again and again.
 */
#ifndef HF_NFS_MEM_H
#define HF_NFS_MEM_H

#include <stdint.h>
#include <stdlib.h>

#define NFS_MEM_MID   (160u << 10)
#define NFS_MEM_BIG   ((1u << 20) + (64u << 10))
#define NFS_MEM_SPARE 16u

struct nfs_mem {
    uint64_t in_use; /* bytes handed out, and what callers add with nfs_mem_charge */
    void *mid[NFS_MEM_SPARE], *big[NFS_MEM_SPARE];
    unsigned mid_n, big_n;
};

void nfs_mem_fini(struct nfs_mem *m);
/* At least need bytes (<= NFS_MEM_BIG), 16-byte aligned, not zeroed; NULL: none. Give *ret_cap
 * back. */
void *nfs_mem_get(struct nfs_mem *m, size_t need, size_t *ret_cap);
void nfs_mem_put(struct nfs_mem *m, void *p, size_t cap);

static inline void nfs_mem_charge(struct nfs_mem *m, size_t bytes)
{
    m->in_use += bytes;
}
static inline void nfs_mem_release(struct nfs_mem *m, size_t bytes)
{
    m->in_use -= bytes;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "mem.h"

#include "holdfast/assert.h"

void nfs_mem_fini(struct nfs_mem *m)
{
    while (m->mid_n)
        free(m->mid[--m->mid_n]);
    while (m->big_n)
        free(m->big[--m->big_n]);
}

void *nfs_mem_get(struct nfs_mem *m, size_t need, size_t *ret_cap)
{
    size_t cap = need;
    void *p = NULL;

    HF_ASSERT(need <= NFS_MEM_BIG);
    if (need > NFS_MEM_MID) {
        cap = NFS_MEM_BIG;
        if (m->big_n)
            p = m->big[--m->big_n];
    } else if (need > NFS_MEM_MID / 5) {
        cap = NFS_MEM_MID;
        if (m->mid_n)
            p = m->mid[--m->mid_n];
    }
    if (!p)
        p = malloc(cap ? cap : 1);
    if (!p)
        return NULL;
    m->in_use += cap;
    *ret_cap = cap;
    return p;
}

void nfs_mem_put(struct nfs_mem *m, void *p, size_t cap)
{
    if (!p)
        return;
    HF_ASSERT(m->in_use >= cap);
    m->in_use -= cap;
    if (cap == NFS_MEM_BIG && m->big_n < NFS_MEM_SPARE)
        m->big[m->big_n++] = p;
    else if (cap == NFS_MEM_MID && m->mid_n < NFS_MEM_SPARE)
        m->mid[m->mid_n++] = p;
    else
        free(p);
}

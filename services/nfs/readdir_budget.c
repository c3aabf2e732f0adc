/* SPDX-License-Identifier: Apache-2.0 */
#include "readdir_budget.h"

static struct nfs_dir_budget budget(uint32_t count, uint32_t dir_limit, uint32_t overhead,
                                    uint32_t dir_max, uint32_t entries_max)
{
    /* The shortest entry has a name of one byte, padded to four. */
    const uint32_t shortest = NFS_DIR_ENTRY + 4;
    struct nfs_dir_budget b = {
        .limit = count < dir_max ? count : dir_max,
        .overhead = overhead,
        .dir_limit = dir_limit,
        .max_entries = dir_limit / shortest,
    };

    b.max_bytes = b.limit > NFS_DIR_FIXED ? b.limit - NFS_DIR_FIXED : 0;
    if (b.max_entries > entries_max)
        b.max_entries = entries_max;
    if (b.max_entries == 0)
        b.max_entries = 1;
    return b;
}

struct nfs_dir_budget nfs_dir_budget(uint32_t count, uint32_t dir_max, uint32_t entries_max)
{
    return budget(count, UINT32_MAX, NFS_DIR_ENTRY, dir_max, entries_max);
}

struct nfs_dir_budget nfs_dir_budget_plus(uint32_t dircount, uint32_t maxcount, uint32_t fh_len,
                                          uint32_t dir_max, uint32_t entries_max)
{
    /* attributes follow + attributes, handle follows + length + handle */
    const uint32_t plus = 4 + NFS_FATTR3_BYTES + 4 + 4 + nfs_dir_pad(fh_len);

    return budget(maxcount, dircount, NFS_DIR_ENTRY + plus, dir_max, entries_max);
}

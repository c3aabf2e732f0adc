/* SPDX-License-Identifier: Apache-2.0
 *
 * How many bytes a directory reply may use. READDIR's count and READDIRPLUS' maxcount bound the
 * whole READDIR3resok / READDIRPLUS3resok with all XDR overhead (RFC 1813 sections 3.3.16, 3.3.17);
 * dircount bounds only the names' part of the entries.
 */
#ifndef HF_NFS_READDIR_BUDGET_H
#define HF_NFS_READDIR_BUDGET_H

#include <stdint.h>

#define NFS_FATTR3_BYTES 84u
/* post_op_attr with attributes, verifier, end of list, eof */
#define NFS_DIR_FIXED (4u + NFS_FATTR3_BYTES + 8u + 4u + 4u)
/* an entry without its name: value follows, fileid, length of the name, cookie */
#define NFS_DIR_ENTRY (4u + 8u + 4u + 8u)

struct nfs_dir_budget {
    uint32_t limit;     /* bytes of the whole resok: never exceeded */
    uint32_t max_bytes; /* for the entries: sum of overhead + padded name */
    uint32_t overhead;  /* of an entry without its name */
    uint32_t dir_limit; /* of the names' part; one entry is given even if it is too small */
    uint32_t max_entries;
};

static inline uint32_t nfs_dir_pad(uint32_t n)
{
    return (n + 3) & ~3u;
}

/* count: as the client gave it. dir_max, entries_max: this server's bounds. */
struct nfs_dir_budget nfs_dir_budget(uint32_t count, uint32_t dir_max, uint32_t entries_max);
/* fh_len: of the handles in the reply. */
struct nfs_dir_budget nfs_dir_budget_plus(uint32_t dircount, uint32_t maxcount, uint32_t fh_len,
                                          uint32_t dir_max, uint32_t entries_max);

#endif

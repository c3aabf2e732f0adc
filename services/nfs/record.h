/* SPDX-License-Identifier: Apache-2.0
 *
 * Record marking (RFC 5531 section 11): a stream of fragments, each with a 4-byte header (top bit:
 * last fragment of the record; the rest: its length), put together to records. Pure: no sockets.
 *
 * A record that lies whole in what was read is handed out in place. Any other is gathered in memory
 * of its own, into which the caller may read from the socket directly (nfs_record_space).
 */
#ifndef HF_NFS_RECORD_H
#define HF_NFS_RECORD_H

#include <stdbool.h>

#include "holdfast/buf.h"
#include "mem.h"

#define NFS_RECORD_MAX       NFS_MEM_BIG /* 1 MiB of data and what surrounds it */
#define NFS_RECORD_FRAGMENTS 1024u       /* per record: nobody sends more, but an attacker */

struct nfs_record {
    struct nfs_mem *mem;
    uint8_t hdr[4];
    unsigned hdr_len;
    bool in_frag, last;
    uint32_t frag_left;
    unsigned frags;
    uint8_t *buf; /* gathered so far */
    size_t len, cap;
};

enum nfs_record_result {
    NFS_RECORD_MORE,  /* all input taken, nothing complete */
    NFS_RECORD_READY, /* *ret is a record; more input may be left */
    NFS_RECORD_BAD,   /* the stream is lost: close */
    NFS_RECORD_NOMEM,
};

/* A complete record. buf NULL: data points into the input; else into buf, whose owner is the caller
 * now (nfs_mem_put(mem, buf, cap)). */
struct nfs_record_out {
    struct hf_slice data;
    uint8_t *buf;
    size_t cap;
};

void nfs_record_init(struct nfs_record *r, struct nfs_mem *mem);
void nfs_record_fini(struct nfs_record *r);
/* Nothing of a record has been seen. */
static inline bool nfs_record_at_boundary(const struct nfs_record *r)
{
    return !r->in_frag && r->hdr_len == 0 && !r->buf && r->frags == 0;
}
/* Takes from *in; what is left of it belongs to the next record. */
enum nfs_record_result nfs_record_feed(struct nfs_record *r, struct hf_slice *in,
                                       struct nfs_record_out *ret);
/* Where the rest of the current fragment may be read to; length 0: nowhere. Then tell how much
 * came. */
size_t nfs_record_space(struct nfs_record *r, uint8_t **ret);
enum nfs_record_result nfs_record_filled(struct nfs_record *r, size_t n,
                                         struct nfs_record_out *ret);

#endif

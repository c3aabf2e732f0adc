/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments: chunks of file data with checksums on a backend (architecture section 8).
 *
 * A chunk holds up to 4 MiB in blocks of 64 KiB, each with a crc32c. On the backend it is one
 * object: two headers written in turn, then block slots. A block that has been made durable is
 * never overwritten: new content goes to a free slot, and a new header (sequence + 1) refers to it.
 * One sync makes data and header durable together; when a chunk is opened after a crash, the newest
 * header whose new blocks match their checksums is taken. So an acknowledged stable write reads
 * back, and one that was not acknowledged reads as old or new, never as a checksum error.
 *
 * Threads: an hf_seg belongs to one loop; every call and every completion is on it. Backends
 * complete on their own threads; the library brings completions back.
 */
#ifndef HOLDFAST_SEGMENT_H
#define HOLDFAST_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/fault.h"
#include "holdfast/list.h"
#include "holdfast/plug.h"
#include "holdfast/rt.h"

#define HF_SEG_BLOCK_BYTES (64u << 10)
#define HF_SEG_CHUNK_BYTES (4u << 20)
#define HF_SEG_BLOCKS      (HF_SEG_CHUNK_BYTES / HF_SEG_BLOCK_BYTES)

struct hf_seg;

struct hf_chunk_id {
    uint64_t ino;
    uint32_t index;
    uint32_t gen;
};

struct hf_seg_opts {
    uint32_t id; /* segment number */
    struct hf_loop *loop;
    struct hf_plug_be *backend; /* borrowed; outlives the segment */
    size_t cache_chunks;        /* chunk indexes kept in memory; 0 = 4096 */
    uint64_t writeback_ms;      /* dirty chunks are committed after this; 0 = 5000 */
    struct hf_faults *faults;
    /* Told of a checksum mismatch or device error, for log and counters. May be NULL. */
    void (*on_error)(void *arg, const struct hf_chunk_id *id, uint32_t block, int err,
                     const char *what);
    void *arg;
};

int hf_seg_open(const struct hf_seg_opts *o, struct hf_seg **ret);
/* Stops accepting (later ops: CLOSED); commits what is dirty; calls closed(arg) on the loop when
 * the last operation ended, never from inside this call. The segment is gone by then. */
void hf_seg_close(struct hf_seg *s, void (*closed)(void *arg), void *arg);

enum hf_seg_op_kind {
    HF_SEG_READ,
    HF_SEG_WRITE,
    HF_SEG_SYNC,
    HF_SEG_TRUNC,
    HF_SEG_DELETE,
    HF_SEG_PUNCH, /* the whole blocks in [offset, offset + len) become holes; durable with all that
                   * was written before. Of a chunk that does not exist: nothing */
    HF_SEG_SEEK,  /* the first byte of [offset, offset + len) that is data, or a hole (`hole`) */
};

/* One operation. Caller-owned, valid until done. */
struct hf_seg_op {
    enum hf_seg_op_kind kind;
    struct hf_chunk_id id;
    uint32_t fence; /* WRITE, TRUNC: FENCED if the chunk has seen a higher one. A TRUNC with a fence
                     * makes the chunk if it does not exist, to remember the fence */
    uint32_t offset, len; /* TRUNC: len = new length; never makes the chunk longer */
    void *data;           /* READ: filled (len bytes, zeros beyond the chunk's end); WRITE: const */
    uint32_t *crcs; /* one per block touched, each over the piece of the request in that block.
                     * WRITE: checked before anything is stored (CORRUPT); READ: filled for
                     * [offset, offset + len_done), may be NULL */
    bool stable;    /* WRITE: durable before done */
    bool hole;      /* SEEK */
    void (*done)(struct hf_seg_op *op); /* at the end of a turn, never from inside hf_seg_submit */
    void *arg;
    /* results */
    int status;        /* 0, IO, CORRUPT (a block's checksum does not match), NOSPC, FENCED, INVAL,
                        * NOMEM, CLOSED. On an error of READ data is all zeros.
                        * READ, SYNC of a chunk that does not exist: 0 with len_done 0. */
    uint32_t len_done; /* READ: bytes of the range below the chunk's end */
    uint64_t freed;    /* DELETE */
    bool found;        /* SEEK; then: */
    uint32_t found_at;
    /* private */
    struct hf_list link;
    struct hf_seg *seg;
    void *chunk;
    unsigned state;
};

void hf_seg_submit(struct hf_seg *s, struct hf_seg_op *op);

/* How many crcs a range has: the blocks of [offset, offset+len). */
static inline unsigned hf_seg_ncrcs(uint32_t offset, uint32_t len)
{
    return len ? (offset + len - 1) / HF_SEG_BLOCK_BYTES - offset / HF_SEG_BLOCK_BYTES + 1 : 0;
}

struct hf_seg_stat {
    uint64_t capacity_bytes, free_bytes, chunks, used_bytes;
    uint64_t domain; /* see struct hf_be_space */
    uint64_t reads, writes, syncs, deletes, errors, checksum_errors, dirty_chunks, cached_chunks;
};
/* May block briefly in the backend's space(). */
int hf_seg_stat(struct hf_seg *s, struct hf_seg_stat *ret);

/* Lists chunks in the order of their ids, after `after` (NULL: from the start); blocking, on any
 * thread. Sees what is on the backend: what is not yet committed has the old length. Calls fn until
 * it returns non-zero. verify: reads and checks every block; status tells. */
struct hf_seg_info {
    struct hf_chunk_id id;
    uint32_t len;
    uint64_t allocated;
    int status; /* 0, CORRUPT, IO */
};
int hf_seg_list(struct hf_plug_be *backend, const struct hf_chunk_id *after, bool verify,
                int (*fn)(void *arg, const struct hf_seg_info *info), void *arg);

#endif

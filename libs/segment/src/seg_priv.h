/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of libs/segment.
 *
 * The object of a chunk
 *   0        header A  4 KiB       written in turn with B; sequence + 1 each time
 *   4096     header B  4 KiB
 *   64 KiB   slots     128 x 64 KiB, each holds at most one block
 *
 * A header maps each of the 64 blocks to a slot, the number of valid bytes in it, and the crc32c of
 * these bytes; a block without a slot, and what lies behind the valid bytes up to the chunk's
 * length, is zeros.
 *
 * Which slots may be written: `used` are those of the map in memory and those being written; `prot`
 * are those of the last header known to be durable. New content goes to a slot in neither. The one
 * exception is an append to a block: bytes behind the valid ones of a slot are in no header, so
 * they are written in place. With 128 slots for 64 blocks a commit always makes room: after it used
 * and prot are the same.
 *
 * Commit: header (seq + 1) to the place of the older header, then one backend SYNC for data and
 * header. No data is written while a commit runs, so the header describes what the SYNC covers.
 * Only its success moves `prot` on.
 *
 * Opening a chunk after a crash: the valid header with the higher sequence is the newest. Its SYNC
 * may not have happened, so the blocks that it changed (`fresh`) are read and checked. If they
 * match, a SYNC makes sure of them before any slot of the older header is used again. If one does
 * not match, the commit was cut off: the older header is what was durable, and it is committed
 * again with a higher sequence over the broken one, so that the broken one can never come true
 * later. What a chunk loses this way was never acknowledged. Checking costs reads and cannot tell a
 * torn commit from decay, so a header that is known to be durable is marked clean when the chunk
 * has been idle (writeback_ms, eviction, close): its first 512 bytes are written again with the
 * flag. A disk writes sectors whole, so this needs no sync: with or without the flag the header is
 * the same. Then it is copied over the older header, so that either one may decay. A clean header
 * is never second-guessed: a block that does not match is CORRUPT.
 *
 * A chunk's operations wait in one queue. Reads run together, writes of different blocks run
 * together, reads and writes never do; a commit runs beside reads; TRUNC and DELETE run alone.
 * Stable writes and SYNCs whose data is written wait for the next commit, which all of them share.
 */
#ifndef HF_SEG_PRIV_H
#define HF_SEG_PRIV_H

#include "holdfast/segment.h"

#include "holdfast/err.h"
#include "holdfast/map.h"

#define SEG_HDR_BYTES   4096u
#define SEG_MARK_BYTES  512u /* what a clean mark rewrites */
#define SEG_SLOTS       128u
#define SEG_DATA_OFFSET 65536u
#define SEG_GROUP_MAX   64u /* writes that may join a commit before it must start */

struct seg_entry {
    uint32_t len; /* valid bytes; 0 = hole, slot and crc mean nothing */
    uint32_t crc;
    uint8_t slot;
};

struct seg_header {
    uint64_t seq;
    uint64_t fresh; /* bit per block: its entry differs from the header before */
    uint32_t fence, len;
    bool clean;
    bool copy; /* of the header in the other place, made with the clean mark */
    struct seg_entry e[HF_SEG_BLOCKS];
};

struct seg_slots {
    uint64_t bits[2];
};

/* One backend operation on a chunk; done runs on the loop. */
struct seg_io {
    struct hf_be_io io;
    struct hf_task task;
    struct hf_seg *seg;
    void (*done)(struct seg_io *io);
    void *arg;
};

enum seg_chunk_state { SEG_NEW, SEG_LOADING, SEG_READY };

struct seg_chunk {
    struct hf_seg *seg;
    struct hf_chunk_id id;
    uint64_t hash;
    struct seg_chunk *hash_next;
    struct hf_list lru;     /* in seg->lru: idle, clean and marked */
    struct hf_list age;     /* in seg->age: dirty or not marked, oldest first */
    uint64_t age_ns;        /* when it came into seg->age */
    struct hf_list queue;   /* ops not yet started */
    struct hf_list waiters; /* ops that wait for the next commit */
    struct hf_list sharing; /* ops of the commit that runs */
    struct hf_seg_op *excl; /* the TRUNC or DELETE that runs */
    enum seg_chunk_state state;
    unsigned nread, nwrite, group, close_tries;
    uint64_t busy;       /* blocks being written */
    bool exists;         /* the backend has the object */
    bool dirty;          /* the map differs from the durable header */
    bool marked;         /* the durable header says clean */
    bool failed;         /* a sync failed: nothing but DELETE until the segment is opened again */
    bool header_busy;    /* a commit or a mark runs */
    bool want_commit;    /* commit although nobody waits */
    bool short_of_slots; /* the first op of the queue needs the room that a commit makes */
    bool pumping, pump_again;
    unsigned place; /* of the next header */
    uint64_t seq;   /* of the last header */
    uint64_t fresh; /* blocks whose entry differs from the durable header */
    uint64_t cut;   /* blocks that were shortened since the durable header: no append in place */
    uint32_t fence, len;
    struct seg_entry e[HF_SEG_BLOCKS];
    struct seg_slots used, prot;
    struct seg_slots touched; /* written since the last punch: may take space */
};

struct hf_seg {
    struct hf_seg_opts o;
    struct hf_map chunks; /* hash -> chain of seg_chunk */
    size_t nchunks;
    size_t nfailed;
    uint64_t seed;
    struct hf_list lru, age;
    struct hf_list finished; /* ops whose done is due */
    struct hf_task finish_task, close_task;
    struct hf_timer timer;
    uint64_t inflight; /* ops submitted and not done, backend io not completed */
    bool closing, closed_called, no_punch;
    void (*closed)(void *arg);
    void *closed_arg;
    struct hf_seg_stat stat;
};

static inline uint64_t seg_slot_offset(unsigned slot)
{
    return SEG_DATA_OFFSET + (uint64_t)slot * HF_SEG_BLOCK_BYTES;
}

static inline bool seg_slot_has(const struct seg_slots *s, unsigned slot)
{
    return (s->bits[slot / 64] >> (slot % 64)) & 1u;
}

static inline void seg_slot_set(struct seg_slots *s, unsigned slot)
{
    s->bits[slot / 64] |= 1ull << (slot % 64);
}

static inline void seg_slot_clear(struct seg_slots *s, unsigned slot)
{
    s->bits[slot / 64] &= ~(1ull << (slot % 64));
}

/* header.c */
void seg_object_id(const struct hf_chunk_id *id, uint8_t ret[HF_BE_ID_BYTES]);
bool seg_object_id_parse(const uint8_t *be_id, struct hf_chunk_id *ret);
void seg_header_encode(const struct hf_chunk_id *id, const struct seg_header *h,
                       uint8_t buf[SEG_HDR_BYTES]);
/* Flags an encoded header as a copy of the one in the other place. */
void seg_header_make_copy(uint8_t buf[SEG_HDR_BYTES]);
/* NOENT: all zeros; CORRUPT: not a valid header of this chunk; VERSION: valid, of a later format.
 */
int seg_header_decode(const struct hf_chunk_id *id, const uint8_t buf[SEG_HDR_BYTES],
                      struct seg_header *ret);
/* Both headers of an object. *ret_place: of the newest; *ret_other: 0 if *other is valid, NOENT if
 * the other place was never written, CORRUPT. NOENT: nothing was ever committed; CORRUPT, VERSION.
 */
int seg_header_pick(const struct hf_chunk_id *id, const uint8_t *two, struct seg_header *newest,
                    struct seg_header *other, unsigned *ret_place, int *ret_other);
struct seg_slots seg_header_slots(const struct seg_entry *e);

/* seg.c */
int seg_io_error(int be_status);
/* fault: 0, or the status with which the io ends instead of reaching the backend. */
void seg_io_submit(struct seg_chunk *c, struct seg_io *io, int fault);
void seg_finish(struct hf_seg_op *op, int status);
void seg_report(struct seg_chunk *c, unsigned block, int err, const char *what);
/* The chunk became dirty or unmarked / clean and marked. */
void seg_age_enter(struct seg_chunk *c);
void seg_age_leave(struct seg_chunk *c);
/* The chunk has nothing to do: keep, drop or evict. c may be gone afterwards. */
void seg_chunk_idle(struct seg_chunk *c);

/* queue.c. Starts what can start. c may be gone afterwards. */
void seg_pump(struct seg_chunk *c);
bool seg_is_idle(const struct seg_chunk *c);

/* load.c. Ends in seg_pump, with the chunk ready, or with every op of its queue failed. */
void seg_load(struct seg_chunk *c);

/* run.c: a READ or WRITE in pieces, one per block. */
struct seg_piece {
    unsigned block;
    uint32_t off, len;  /* within the block */
    uint8_t *data;      /* the caller's bytes */
    uint8_t *bounce;    /* one block, where the caller's memory cannot be used; or NULL */
    struct seg_entry e; /* READ: what to verify; WRITE: what the block becomes */
    bool reserved;      /* e.slot is new */
    bool merge;         /* WRITE: the old block must be read first */
};

struct seg_run {
    struct hf_seg_op *op;
    struct seg_chunk *c;
    void (*phase_done)(struct seg_run *r);
    unsigned npieces, nios, left;
    int status; /* the first error of an io, as the backend said it */
    struct seg_piece *pieces;
    struct seg_io *ios; /* one per piece at most */
};

/* Pieces of [offset, offset+len); NULL: no memory. */
struct seg_run *seg_run_new(struct seg_chunk *c, struct hf_seg_op *op, uint32_t len);
void seg_run_free(struct seg_run *r);
/* Adds an io; merges it into the last one if both object and memory go on there. */
void seg_run_add(struct seg_run *r, uint32_t be_op, uint64_t offset, void *data, size_t len);
/* Submits what was added and calls done (on the loop) after the last; at once if there is nothing.
 */
void seg_run_go(struct seg_run *r, int fault, void (*done)(struct seg_run *r));

/* read.c, write.c: start an op; end in seg_pump unless they end at once. */
void seg_read(struct seg_chunk *c, struct hf_seg_op *op);
/* BUSY: no room for its blocks before a commit, nothing was started. */
int seg_write(struct seg_chunk *c, struct hf_seg_op *op);
uint64_t seg_op_mask(const struct hf_seg_op *op);

/* commit.c */
void seg_commit(struct seg_chunk *c);
void seg_mark(struct seg_chunk *c);
void seg_set_header(struct seg_chunk *c, const struct seg_header *h);
void seg_reset(struct seg_chunk *c);

/* punch.c. Frees the space of dead slots; true: seg_pump comes when that is done. */
bool seg_punch(struct seg_chunk *c);

/* read.c */
void seg_seek(struct seg_chunk *c, struct hf_seg_op *op);

/* change.c */
void seg_punch_blocks(struct seg_chunk *c, struct hf_seg_op *op);
void seg_trunc(struct seg_chunk *c, struct hf_seg_op *op);
void seg_trunc_committed(struct seg_chunk *c, int status);
void seg_delete(struct seg_chunk *c, struct hf_seg_op *op);

#endif

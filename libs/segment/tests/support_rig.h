/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment on a disk (support_disk.h) in simulated time, and operations on it.
 */
#ifndef HF_SEG_SUPPORT_RIG_H
#define HF_SEG_SUPPORT_RIG_H

#include "support_disk.h"

#include "holdfast/segment.h"

struct rig {
    struct hf_env *env;
    struct hf_loop *loop;
    struct disk *disk;
    struct hf_plug_be *be;
    struct hf_seg *seg;
    struct hf_faults *faults; /* owned by the test */
    size_t cache_chunks;
    uint64_t writeback_ms;
    uint64_t rng;
    unsigned errors, corrupt; /* what on_error told */
    bool closed;
};

void rig_open(struct rig *r, struct disk *d, uint64_t seed, bool auto_run);
/* Clean close; the disk stays. */
void rig_close(struct rig *r);
/* As kill -9: nothing of the segment reaches the disk any more. */
void rig_kill(struct rig *r);
/* Runs disk and loop until *done, or everything is idle. */
void rig_run(struct rig *r, const bool *done);
/* Advances virtual time by ms, running everything. */
void rig_sleep(struct rig *r, uint64_t ms);

/* An operation with its own memory. */
struct rig_op {
    struct hf_seg_op op;
    uint32_t crcs[HF_SEG_BLOCKS];
    bool done;
};

struct hf_chunk_id rig_chunk(uint64_t ino);
void rig_submit(struct rig *r, struct rig_op *o);
/* Fills o->crcs for a WRITE. */
void rig_crcs(struct rig_op *o);
/* Checks o->crcs of a READ that is done. */
void rig_check_crcs(const struct rig_op *o);

int rig_write(struct rig *r, uint64_t ino, uint32_t offset, const void *data, uint32_t len,
              bool stable);
int rig_read(struct rig *r, uint64_t ino, uint32_t offset, void *data, uint32_t len,
             uint32_t *ret_len);
int rig_sync(struct rig *r, uint64_t ino);
int rig_trunc(struct rig *r, uint64_t ino, uint32_t fence, uint32_t len);
int rig_punch(struct rig *r, uint64_t ino, uint32_t fence, uint32_t offset, uint32_t len);
int rig_seek(struct rig *r, uint64_t ino, uint32_t offset, uint32_t len, bool hole, bool *ret_found,
             uint32_t *ret_at);
int rig_delete(struct rig *r, uint64_t ino, uint64_t *ret_freed);
void rig_fill(void *data, size_t len, uint64_t seed);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that can lose power: a backend that remembers which writes were not yet synced. Operations
 * are queued and run one at a time, in any order, when the test says so. A crash image keeps, for
 * each page of 4 KiB or each sector of 512 bytes, what some prefix of its unsynced writes left
 * there.
 */
#ifndef HF_SEG_SUPPORT_DISK_H
#define HF_SEG_SUPPORT_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/plug.h"

struct disk;  /* the medium */
struct hf_be; /* an open backend on it */

struct disk *disk_new(void);
void disk_free(struct disk *d);
/* What a power failure leaves. torn: sectors of a page go their own ways. */
struct disk *disk_crash(const struct disk *d, uint64_t *rng, bool torn);
/* A process that died: everything written is there, nothing more is synced. */
struct disk *disk_clone(const struct disk *d);
/* Flips a bit of object n's byte at offset. */
void disk_rot(struct disk *d, uint64_t ino, uint64_t offset);

/* A backend on the disk. auto_run: operations run inside submit. */
struct hf_plug_be *disk_open(struct disk *d, bool auto_run);
/* Runs one queued operation, a random one; false if there is none. */
bool disk_step(struct hf_plug_be *be, uint64_t *rng);
/* From now on nothing reaches the disk and everything fails, the queued operations too. */
void disk_kill(struct hf_plug_be *be);

struct disk_counts {
    unsigned ops[8]; /* by HF_BE_ */
    uint64_t largest_read, largest_write;
};
struct disk_counts *disk_counts(struct hf_plug_be *be);
/* Fails the operations of one kind: the next `times` after `skip`. */
void disk_fail(struct hf_plug_be *be, uint32_t op, unsigned skip, unsigned times, int status);

static inline uint64_t disk_rand(uint64_t *rng)
{
    uint64_t x = (*rng += 0x9e3779b97f4a7c15ull);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

#endif

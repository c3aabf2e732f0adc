/* SPDX-License-Identifier: Apache-2.0
 *
 * What a disk may hold after a power failure, worked out from a trace.
 *
 * A file's content is what was durable plus the changes since. A change is durable when a sync of
 * its file that began after it has ended well, or when it went through a descriptor with O_DSYNC.
 * Of the others any subset may be there, and a write may be there in part, cut at sectors of 512
 * bytes: LMDB's meta page, the wal's header and the clean mark of a chunk rely on that unit, and
 * on nothing larger.
 *
 * A folder's names are those that were durable plus a prefix of what was done since in this folder.
 * A name that is not there takes its file with it, however often the file was synced.
 *
 * One thread.
 */
#ifndef HF_TESTS_DISK_H
#define HF_TESTS_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

struct disk;

struct disk *disk_new(void);
void disk_free(struct disk *d);
/* Takes the next record; its data must stay. Ends the test on one that it does not understand. */
void disk_apply(struct disk *d, const struct trace_rec *r);
/* Makes in dir, which must be empty, one of the states that the disk may be in now. */
void disk_image(struct disk *d, const char *dir, uint64_t *rng);
/* Whether dir is exactly what the trace says without a power failure (lock.mdb's content, which is
 * mapped memory, and run/ excepted); false: prints what differs. */
bool disk_matches(struct disk *d, const char *dir);

struct disk_stats {
    uint64_t open_writes; /* images: writes not durable at the time */
    uint64_t torn, left_out, names_left_out;
};
const struct disk_stats *disk_stats(const struct disk *d);

#endif

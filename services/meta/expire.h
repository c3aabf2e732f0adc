/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody asks for: opens of sessions that have not renewed themselves end, objects without
 * names that nobody has open go, and so do appends whose writer is gone. In small changes between
 * calls.
 */
#ifndef HF_META_EXPIRE_H
#define HF_META_EXPIRE_H

#include "shard.h"

struct expire {
    uint64_t session, orphan; /* where the next look begins */
};

/* Looks a little further; to be called every now and then, on the shard's thread. */
void expire_step(struct shard *s, struct expire *e);

#endif

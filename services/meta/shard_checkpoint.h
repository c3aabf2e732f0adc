/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a shard. Private to the shard engine; on its loop's thread.
 */
#ifndef HOLDFAST_META_SHARD_CHECKPOINT_H
#define HOLDFAST_META_SHARD_CHECKPOINT_H

#include "shard.h"

void checkpoint_init(struct shard *s);
/* After changes: begins a checkpoint if one is due, or has further changes wait if one is due again
 * before the last one has been written. */
void checkpoint_changed(struct shard *s);
/* After records have become durable. */
void checkpoint_durable(struct shard *s);
/* Called when changes that were queued may run again. In shard.c. */
void shard_run_queue(struct shard *s);

#endif

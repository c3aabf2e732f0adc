/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches and checkpoints of a shard: what happens between an operation and the release of its
 * reply. Private to the shard engine.
 */
#ifndef HOLDFAST_META_SHARD_BATCH_H
#define HOLDFAST_META_SHARD_BATCH_H

#include "shard.h"

/* Around every operation that may write. begin opens a batch if none is open (cheap if nothing is
 * written in it later); end decides when the batch leaves and whether a checkpoint is due. */
void batch_begin(struct shard *s);
void batch_end(struct shard *s);
/* Adds the event of the operation that just ran (none if op is EV_NONE). */
void batch_event(struct shard *s, const Hf__Event *event);
/* The reply leaves when batch `seq` is durable. body and bulk live in the request's arena. */
void batch_park(struct shard *s, uint64_t seq, struct hf_rpc_req *req, int status,
                struct hf_slice body, struct hf_slice bulk);
/* The newest batch that is not durable and holds changes; 0: none. */
uint64_t batch_newest(const struct shard *s);
/* Sends the open batch now. */
void batch_send(struct shard *s);
/* Asks for a checkpoint as soon as no record is in flight. */
void batch_checkpoint(struct shard *s);
/* The shard must not go on: nothing is acknowledged from here. */
void batch_fatal(struct shard *s, const char *what);
/* Whether the shard is dead; it is from now on if its store has failed. */
bool batch_broken(struct shard *s);
/* Called by the batch code when a checkpoint has ended: runs what queued up. In shard.c. */
void shard_run_queue(struct shard *s);

int batch_init(struct shard *s);
void batch_fini(struct shard *s);

#endif

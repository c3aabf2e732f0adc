/* SPDX-License-Identifier: Apache-2.0
 *
 * One shard in virtual time, with its log and its folder and without RPC.
 */
#ifndef HOLDFAST_TESTS_SUPPORT_WORLD_H
#define HOLDFAST_TESTS_SUPPORT_WORLD_H

#include "expire.h"
#include "support_meta.h"

#define SEC UINT64_C(1000000000)

struct world {
    struct fixture f; /* its folder */
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_pool *pool;
    struct hf_wal *wal;
    struct meta_metrics metrics;
    struct shard *shard;
    struct expire expire;
    char shard_dir[96], wal_dir[96];
    uint64_t random;
    uint64_t checkpoint_changes, checkpoint_idle_ns;
};

/* A new shard. Checkpoints: when so many keys have changed, or after that time without a change;
 * 0, 0: none. */
void world_new(struct world *w, uint64_t checkpoint_changes, uint64_t checkpoint_idle_ns);
void world_advance(struct world *w, uint64_t ns);
/* The process is gone: what was not sent to the log is lost, and so is what the store held in
 * memory. */
void world_crash(struct world *w);
void world_free(struct world *w);

#endif

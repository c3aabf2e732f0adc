/* SPDX-License-Identifier: Apache-2.0 */
#include "support_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void world_open(struct world *w)
{
    struct hf_meta_format format = {.root_gen = 1, .now_ns = 1, .map = &w->f.map};
    char err[512];

    cr_assert_eq(hf_wal_open(w->env, &(struct hf_wal_opts){.dir = w->wal_dir, .shards = 1}, &w->wal,
                             err, sizeof(err)),
                 0, "%s", err);
    cr_assert_eq(shard_open(&(struct shard_conf){.loop = w->loop,
                                                 .env = w->env,
                                                 .metrics = &w->metrics,
                                                 .wal = hf_wal_log(w->wal, 0),
                                                 .pool = w->pool,
                                                 .dir = w->shard_dir,
                                                 .inline_max = 8192,
                                                 .checkpoint_changes = w->checkpoint_changes,
                                                 .checkpoint_idle_ns = w->checkpoint_idle_ns,
                                                 .map_bytes = 64 << 20,
                                                 .reserve_bytes = 1 << 20},
                            &format, &w->shard, err, sizeof(err)),
                 0, "%s", err);
    cr_assert_eq(hf_meta_set_map(w->shard->meta, &w->f.map), 0);
    w->expire = (struct expire){0};
}

void world_new(struct world *w, uint64_t checkpoint_changes, uint64_t checkpoint_idle_ns)
{
    memset(w, 0, sizeof(*w));
    w->checkpoint_changes = checkpoint_changes ? checkpoint_changes : UINT64_C(1) << 40;
    w->checkpoint_idle_ns = checkpoint_idle_ns ? checkpoint_idle_ns : UINT64_C(1) << 62;
    fixture_init(&w->f, NULL);
    (void)snprintf(w->shard_dir, sizeof(w->shard_dir), "%s/shard", w->f.dir);
    (void)snprintf(w->wal_dir, sizeof(w->wal_dir), "%s/wal", w->f.dir);
    cr_assert_eq(hf_env_sim_new(1, INT64_C(1700000000000000000), &w->env), 0);
    cr_assert_eq(hf_loop_new(w->env, "shard", &w->loop), 0);
    cr_assert_eq(hf_pool_new(w->env, "checkpoint", 1, 1, &w->pool), 0);
    world_open(w);
}

void world_advance(struct world *w, uint64_t ns)
{
    (void)hf_sim_run(w->env, hf_env_mono_ns(w->env) + ns);
}

/* In the service's order; the loop's timers go with it. */
static void world_end(struct world *w)
{
    hf_wal_close(w->wal);
    shard_free(w->shard);
    hf_loop_free(w->loop);
}

void world_crash(struct world *w)
{
    world_end(w);
    cr_assert_eq(hf_loop_new(w->env, "shard", &w->loop), 0);
    world_advance(w, SEC);
    world_open(w);
}

void world_free(struct world *w)
{
    world_end(w);
    hf_pool_free(w->pool);
    hf_env_free(w->env);
    fixture_fini(&w->f);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints beside the changes, in virtual time: what has been written, what goes on meanwhile,
 * and what a crash leaves. Rows of no meaning go straight into one table.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "shard_batch.h"
#include "support_world.h"

#define TABLE (hf_meta_ntables - 1)
#define MS    UINT64_C(1000000)

static struct world w;

static struct hf_slice row(unsigned k, uint8_t buf[16])
{
    return hf_slice(buf, (size_t)snprintf((char *)buf, 16, "row %u", k));
}

static int put(struct shard *s, void *arg)
{
    uint8_t key[16];

    return hf_store_put(s->store, TABLE, row(*(unsigned *)arg, key), hf_slice_str("value"));
}

static bool change(unsigned k)
{
    return shard_change(w.shard, put, &k);
}

static bool has(unsigned k)
{
    struct hf_slice val;
    uint8_t key[16];

    return hf_store_get(w.shard->store, TABLE, row(k, key), &val) == 0;
}

/* Rows 0..n-1 and no other. */
static void check_rows(unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        cr_assert(has(k), "row %u of %u", k, n);
    cr_assert_not(has(n));
}

static uint64_t checkpoints(void)
{
    return hf_metric_get(&w.metrics.checkpoints);
}

static void on_drained(void *arg)
{
    (*(unsigned *)arg)++;
}

Test(checkpoint, changes_go_on_beside_it)
{
    unsigned n = 0;

    world_new(&w, 100, 0);
    for (; n < 100; n++)
        cr_assert(change(n));
    cr_assert_eq(w.shard->checkpoint.state, CHECKPOINT_WAITS, "its record is in flight");
    cr_assert(hf_store_frozen(w.shard->store));
    for (; n < 200; n++)
        cr_assert(change(n), "%u", n);
    cr_assert_not(change(n), "as much again, and the first is not written");
    check_rows(n);
    world_advance(&w, MS);
    cr_assert_eq(checkpoints(), 2);
    cr_assert_eq(w.shard->checkpoint.state, CHECKPOINT_NONE);
    cr_assert_eq(hf_store_dirty(w.shard->store), 0);
    check_rows(n);
    cr_assert(change(n));
    world_free(&w);
}

/* The records of what came after it have to be replayed, and no others. */
Test(checkpoint, a_crash_after_it)
{
    unsigned n = 0;

    world_new(&w, 100, 0);
    for (; n < 100; n++)
        cr_assert(change(n));
    for (; n < 150; n++)
        cr_assert(change(n));
    world_advance(&w, SEC);
    cr_assert_eq(checkpoints(), 1);
    cr_assert_eq(hf_store_dirty(w.shard->store), 50);
    world_crash(&w);
    check_rows(n);
    cr_assert_eq(hf_metric_get(&w.metrics.recovered), 1);
    world_free(&w);
}

/* Frozen, and its records durable; then the power goes before it is written. */
Test(checkpoint, a_crash_before_it_is_written)
{
    unsigned n = 0;

    world_new(&w, 100, 0);
    for (; n < 130; n++)
        cr_assert(change(n));
    batch_send(w.shard);
    hf_wal_close(w.wal);
    w.wal = NULL;
    world_crash(&w);
    cr_assert_eq(checkpoints(), 0);
    check_rows(n);
    world_free(&w);
}

static void on_turn(struct hf_task *t)
{
    (void)t;
    cr_assert(change(0));
}

/* In a turn of the loop, whose clock it moves on. */
static void change_in_turn(void)
{
    struct hf_task t = {.fn = on_turn};

    hf_loop_post(w.loop, &t);
    world_advance(&w, 0);
}

Test(checkpoint, an_idle_shard_is_written)
{
    world_new(&w, 0, 300 * MS);
    change_in_turn();
    world_advance(&w, 250 * MS);
    cr_assert_eq(checkpoints(), 0);
    change_in_turn();
    world_advance(&w, 250 * MS);
    cr_assert_eq(checkpoints(), 0);
    world_advance(&w, 100 * MS);
    cr_assert_eq(checkpoints(), 1);
    world_advance(&w, 60 * SEC);
    cr_assert_eq(checkpoints(), 1, "there was nothing more to write");
    world_free(&w);
}

/* One that does little, but always something, must not keep the log of all from being trimmed. */
Test(checkpoint, a_shard_that_is_never_idle_is_written)
{
    world_new(&w, 0, 300 * MS);
    for (unsigned k = 0; k < 300; k++) {
        change_in_turn();
        world_advance(&w, 100 * MS);
    }
    cr_assert_geq(checkpoints(), 2, "in 30 seconds");
    cr_assert_leq(checkpoints(), 4);
    world_free(&w);
}

/* Who asks while one is under way gets all that was changed until he asked. */
Test(checkpoint, drain)
{
    unsigned n = 0, told = 0;

    world_new(&w, 100, 0);
    shard_drain(w.shard, on_drained, &told);
    cr_assert_eq(told, 1, "nothing to write");
    for (; n < 120; n++)
        cr_assert(change(n));
    shard_drain(w.shard, on_drained, &told);
    for (; n < 130; n++)
        cr_assert(change(n));
    cr_assert_eq(told, 1);
    world_advance(&w, MS);
    cr_assert_eq(told, 2);
    cr_assert_eq(checkpoints(), 2);
    cr_assert_eq(hf_store_dirty(w.shard->store), 0);
    check_rows(n);
    world_free(&w);
}

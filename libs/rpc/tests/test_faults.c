/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated network at its worst: whatever is lost, doubled or late, a call completes once,
 * runs at most once, and an answer is the right one.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "holdfast/rpc_sim.h"
#include "support_rpc.h"

#define CALLS  2000u
#define WINDOW 100u

struct storm {
    struct world w;
    struct probe p[CALLS];
    unsigned char seen[CALLS];
    unsigned started, done, ok, reset, timed_out;
};

static void storm_done(struct probe *p)
{
    struct storm *s = p->arg;
    uint64_t i = (uint64_t)(p - s->p);

    s->done++;
    cr_assert_eq(p->done, 1);
    switch (p->call.status) {
    case 0:
        s->ok++;
        cr_assert_eq(p->boot, i);
        cr_assert_eq(s->seen[i], 1);
        break;
    case HF_E_CONNRESET:
        s->reset++;
        break;
    case HF_E_TIMEDOUT:
        s->timed_out++;
        break;
    default:
        cr_assert(false, "status %s", hf_err_name(p->call.status));
    }
}

static bool storm_step(void *arg)
{
    struct storm *s = arg;

    while (s->w.nheld > 0)
        answer_held(&s->w, (unsigned)(hf_env_random_u64(s->w.env) % s->w.nheld));
    while (s->started < CALLS && s->started < s->done + WINDOW) {
        struct probe *p = &s->p[s->started];

        p->then = storm_done;
        p->arg = s;
        p->call.timeout_ns = 2 * HF_NS_PER_SEC;
        probe_hold(&s->w, p, s->started++);
    }
    return s->done == CALLS;
}

static struct storm *storm_new(const struct hf_rpc_sim_faults *f)
{
    struct storm *s = calloc(1, sizeof(*s));

    cr_assert_not_null(s);
    world_init(&s->w, "sim", NULL, NULL);
    s->w.seen = s->seen;
    cr_assert_eq(hf_rpc_sim_faults(s->w.env, f), 0);
    return s;
}

static void storm_free(struct storm *s)
{
    for (unsigned i = 0; i < CALLS; i++)
        cr_assert_leq(s->seen[i], 1, "call %u ran %u times", i, s->seen[i]);
    world_fini(&s->w);
    free(s);
}

Test(faults, doubled_messages_change_nothing)
{
    const struct hf_rpc_sim_faults f = {.dup_ppm = 300000};
    struct storm *s = storm_new(&f);

    cr_assert(world_until(&s->w, storm_step, s));
    cr_assert_eq(s->ok, CALLS);
    storm_free(s);
}

Test(faults, lost_messages_break_the_connection)
{
    const struct hf_rpc_sim_faults f = {.drop_ppm = 60000};
    struct storm *s = storm_new(&f);

    cr_assert(world_until(&s->w, storm_step, s));
    cr_assert_gt(s->ok, CALLS / 4);
    cr_assert_gt(s->reset, 0);
    cr_assert_gt(hf_rpc_client_epoch(s->w.client), 1);
    storm_free(s);
}

Test(faults, everything_at_once)
{
    const struct hf_rpc_sim_faults f = {.latency_min_ns = 1000,
                                        .latency_max_ns = 5 * HF_NS_PER_MS,
                                        .drop_ppm = 10000,
                                        .dup_ppm = 50000,
                                        .reorder_ppm = 10000};
    struct storm *s = storm_new(&f);

    cr_assert(world_until(&s->w, storm_step, s));
    cr_assert_gt(s->ok, CALLS / 10);
    storm_free(s);
}

Test(faults, partition_and_healing)
{
    const struct hf_rpc_sim_faults f = {0};
    struct storm *s = storm_new(&f);
    struct probe p = {0}, q = {0}, r = {0};

    cr_assert(world_until(&s->w, world_connected, &s->w));
    cr_assert_eq(hf_rpc_sim_partition(s->w.env, "sim://nobody", true), HF_E_INVAL);
    cr_assert_eq(hf_rpc_sim_partition(s->w.env, s->w.url, true), 0);
    p.call.timeout_ns = HF_NS_PER_SEC;
    probe_echo(&s->w, &p, 1);
    cr_assert_eq(probe_wait(&s->w, &p), HF_E_TIMEDOUT);
    cr_assert_eq(hf_rpc_sim_partition(s->w.env, s->w.url, false), 0);
    probe_echo(&s->w, &q, 2); /* the gap breaks the connection */
    cr_assert_eq(probe_wait(&s->w, &q), HF_E_CONNRESET);
    probe_echo(&s->w, &r, 3);
    cr_assert_eq(probe_wait(&s->w, &r), 0);
    cr_assert_eq(s->w.executed, 1);
    storm_free(s);
}

static bool all_started_held(void *arg)
{
    return ((struct storm *)arg)->w.nheld == 10;
}

Test(faults, cut_connection)
{
    const struct hf_rpc_sim_faults f = {0};
    struct storm *s = storm_new(&f);

    for (unsigned i = 0; i < 10; i++)
        probe_hold(&s->w, &s->p[i], i);
    cr_assert(world_until(&s->w, all_started_held, s));
    cr_assert_eq(hf_rpc_sim_cut(s->w.env, s->w.url), 0);
    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(probe_wait(&s->w, &s->p[i]), HF_E_CONNRESET);
    while (s->w.nheld > 0)
        answer_held(&s->w, 0); /* to a peer that is gone */
    cr_assert(world_until(&s->w, world_connected, &s->w));
    storm_free(s);
}

Test(faults, same_seed_same_run)
{
    const struct hf_rpc_sim_faults f = {.drop_ppm = 20000, .reorder_ppm = 20000};
    unsigned ok[2];
    uint64_t at[2];

    for (int i = 0; i < 2; i++) {
        struct storm *s = storm_new(&f);

        cr_assert(world_until(&s->w, storm_step, s));
        ok[i] = s->ok;
        at[i] = hf_env_mono_ns(s->w.env);
        storm_free(s);
    }
    cr_assert_eq(ok[0], ok[1]);
    cr_assert_eq(at[0], at[1]);
}

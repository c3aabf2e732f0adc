/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "holdfast/map.h"
#include "support_rt.h"

#define LOOPS  5
#define STEPS  3000
#define NO_END (~0ull)

/* Loops that post to each other, set timers and use a pool, all driven by the env's randomness; the
 * hash of everything that happens is the trace. */
struct actor {
    struct hf_loop *loop;
    struct hf_task task;
    struct hf_task flush;
    struct hf_timer timer;
    struct hf_work work;
    bool working;
    struct world *world;
};

struct world {
    struct hf_env *env;
    struct hf_pool *pool;
    struct actor actors[LOOPS];
    uint64_t trace;
    unsigned steps;
};

static void record(struct actor *a, char what)
{
    struct world *w = a->world;

    cr_assert(hf_loop_in_thread(a->loop));
    cr_assert_eq(hf_loop_now_ns(a->loop), hf_env_mono_ns(w->env));
    w->trace = hf_hash_u64(w->trace ^ (uint64_t)(a - w->actors) ^ (uint64_t)what << 8 ^
                           hf_env_mono_ns(w->env) << 16);
    w->steps++;
}

static void act(struct actor *a)
{
    struct world *w = a->world;
    struct actor *peer = &w->actors[hf_env_random_u64(w->env) % LOOPS];

    if (w->steps >= STEPS)
        return;
    if (!peer->task.queued)
        hf_loop_post(peer->loop, &peer->task);
    hf_timer_set(&a->timer, hf_env_random_u64(w->env) % 1000);
    hf_loop_defer(a->loop, &a->flush);
    if (!a->working) {
        a->working = true;
        cr_assert_eq(hf_pool_submit(w->pool, &a->work), 0);
    }
}

static void task_fn(struct hf_task *t)
{
    struct actor *a = hf_container_of(t, struct actor, task);

    record(a, 'p');
    act(a);
}
static void flush_fn(struct hf_task *t)
{
    record(hf_container_of(t, struct actor, flush), 'd');
}
static void timer_fn(struct hf_timer *t)
{
    struct actor *a = hf_container_of(t, struct actor, timer);

    record(a, 't');
    act(a);
}
static void work_run(struct hf_work *work)
{
    struct actor *a = hf_container_of(work, struct actor, work);

    cr_assert_not(hf_loop_in_thread(a->loop));
    a->world->trace = hf_hash_u64(a->world->trace + 1);
}
static void work_done(struct hf_task *t)
{
    struct actor *a = hf_container_of(t, struct actor, work.done);

    a->working = false;
    record(a, 'w');
}

static uint64_t run_world(uint64_t seed, bool by_steps)
{
    struct world w = {0};

    cr_assert_eq(hf_env_sim_new(seed, 0, &w.env), 0);
    cr_assert_eq(hf_pool_new(w.env, "io", 3, 100, &w.pool), 0);
    for (unsigned i = 0; i < LOOPS; i++) {
        struct actor *a = &w.actors[i];

        a->world = &w;
        cr_assert_eq(hf_loop_new(w.env, "actor", &a->loop), 0);
        a->task.fn = task_fn;
        a->flush.fn = flush_fn;
        a->work = (struct hf_work){.done = {.fn = work_done}, .run = work_run, .loop = a->loop};
        hf_timer_init(&a->timer, a->loop, timer_fn);
        hf_loop_post(a->loop, &a->task);
        cr_assert_eq(hf_loop_start(a->loop), 0);
    }
    if (by_steps)
        while (hf_sim_step(w.env))
            ;
    else
        cr_assert_geq(hf_sim_run(w.env, NO_END), STEPS);
    cr_assert_geq(w.steps, STEPS);
    hf_pool_free(w.pool);
    for (unsigned i = 0; i < LOOPS; i++) {
        hf_loop_join(w.actors[i].loop);
        hf_loop_free(w.actors[i].loop);
    }
    hf_env_free(w.env);
    return w.trace;
}

Test(sim, same_seed_same_trace_other_seed_other_trace)
{
    uint64_t traces[20];

    for (uint64_t seed = 0; seed < 20; seed++) {
        traces[seed] = run_world(seed, false);
        cr_assert_eq(run_world(seed, seed % 2 == 0), traces[seed]);
        for (uint64_t i = 0; i < seed; i++)
            cr_assert_neq(traces[i], traces[seed]);
    }
}

/* ---- order of ready loops ---- */

struct mark {
    struct hf_task task;
    unsigned id;
};
static unsigned marks[6], nmarks;

static void mark_fn(struct hf_task *t)
{
    marks[nmarks++] = hf_container_of(t, struct mark, task)->id;
}

Test(sim, every_order_of_two_loops_happens_but_a_loop_keeps_its_own)
{
    unsigned first_a = 0, interleaved = 0;

    for (uint64_t seed = 0; seed < 200; seed++) {
        struct mark m[4];
        struct hf_env *env;
        struct hf_loop *a, *b;

        nmarks = 0;
        cr_assert_eq(hf_env_sim_new(seed, 0, &env), 0);
        cr_assert_eq(hf_loop_new(env, "a", &a), 0);
        cr_assert_eq(hf_loop_new(env, "b", &b), 0);
        for (unsigned i = 0; i < 4; i++) {
            m[i] = (struct mark){.task = {.fn = mark_fn}, .id = i};
            hf_loop_post(i < 2 ? a : b, &m[i].task);
        }
        cr_assert_eq(hf_sim_run(env, NO_END), 4);
        unsigned at[4];
        for (unsigned i = 0; i < 4; i++)
            at[marks[i]] = i;
        cr_assert_lt(at[0], at[1]);
        cr_assert_lt(at[2], at[3]);
        first_a += at[0] == 0;
        interleaved += at[1] > at[2] && at[3] > at[0];
        hf_loop_free(a);
        hf_loop_free(b);
        hf_env_free(env);
    }
    cr_assert_gt(first_a, 60);
    cr_assert_lt(first_a, 140);
    cr_assert_gt(interleaved, 40);
}

/* ---- time ---- */

static void nothing_fn(struct hf_timer *t)
{
    (void)t;
}

Test(sim, time_moves_only_when_idle_and_in_slices)
{
    struct hf_env *env;
    struct hf_loop *l;
    struct hf_timer t;
    struct mark m = {.task = {.fn = mark_fn}};

    cr_assert_eq(hf_env_sim_new(1, 1000, &env), 0);
    cr_assert(hf_env_is_sim(env));
    cr_assert_eq(hf_loop_new(env, "l", &l), 0);
    cr_assert_null(hf_loop_base(l));
    cr_assert_eq(hf_env_wall_ns(env), 1000);
    cr_assert_not(hf_sim_step(env));
    hf_timer_init(&t, l, nothing_fn);
    hf_timer_set(&t, 50);
    hf_loop_post(l, &m.task);
    cr_assert(hf_sim_step(env));
    cr_assert_eq(nmarks, 1);
    cr_assert_eq(hf_env_mono_ns(env), 0);
    cr_assert_eq(hf_sim_run(env, 49), 0);
    cr_assert_eq(hf_env_mono_ns(env), 49);
    cr_assert(hf_timer_armed(&t));
    cr_assert_eq(hf_sim_run(env, 50), 1);
    cr_assert_eq(hf_env_mono_ns(env), 50);
    cr_assert_eq(hf_env_wall_ns(env), 1050);
    cr_assert_eq(hf_sim_run(env, NO_END), 0);
    cr_assert_eq(hf_env_mono_ns(env), 50);
    hf_loop_free(l);
    hf_env_free(env);
}

Test(sim, randomness_does_not_change_the_schedule)
{
    unsigned order[2][6];

    for (int draw = 0; draw < 2; draw++) {
        struct mark m[6];
        struct hf_env *env;
        struct hf_loop *l[3];
        uint8_t bytes[13];

        nmarks = 0;
        cr_assert_eq(hf_env_sim_new(77, 0, &env), 0);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(hf_loop_new(env, "l", &l[i]), 0);
        if (draw)
            hf_env_random(env, bytes, sizeof(bytes));
        for (unsigned i = 0; i < 6; i++) {
            m[i] = (struct mark){.task = {.fn = mark_fn}, .id = i};
            hf_loop_post(l[i % 3], &m[i].task);
        }
        cr_assert_eq(hf_sim_run(env, NO_END), 6);
        memcpy(order[draw], marks, sizeof(marks));
        for (int i = 0; i < 3; i++)
            hf_loop_free(l[i]);
        hf_env_free(env);
    }
    cr_assert(memcmp(order[0], order[1], sizeof(order[0])) == 0);
}

static void net_destroy(void *net)
{
    ++*(unsigned *)net;
}

Test(sim, the_network_goes_with_the_env)
{
    struct hf_env *env;
    unsigned destroyed = 0, late = 0;

    cr_assert_eq(hf_env_sim_new(1, 0, &env), 0);
    cr_assert_null(hf_env_net(env));
    cr_assert_eq(hf_env_net_set(env, &destroyed, net_destroy), &destroyed);
    cr_assert_eq(hf_env_net_set(env, &late, net_destroy), &destroyed, "the first one stays");
    cr_assert_eq(hf_env_net(env), &destroyed);
    cr_assert_eq(destroyed, 0);
    hf_env_free(env);
    cr_assert_eq(destroyed, 1);
    cr_assert_eq(late, 0);
}

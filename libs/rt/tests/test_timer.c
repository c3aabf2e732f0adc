/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support_rt.h"

#define TIMERS 2000

struct alarm {
    struct hf_timer timer;
    uint64_t due;
    unsigned fired;
    bool cancelled;
};

static struct hf_env *env;
static struct hf_loop *loop;
static struct alarm alarms[TIMERS];
static unsigned nfired, want;
static uint64_t last_due, worst_late;

static void setup_real(void)
{
    cr_assert_eq(hf_env_real_new(&env), 0);
    cr_assert_eq(hf_loop_new(env, "timers", &loop), 0);
}

static void setup_sim(void)
{
    cr_assert_eq(hf_env_sim_new(1, 0, &env), 0);
    cr_assert_eq(hf_loop_new(env, "timers", &loop), 0);
}

static void teardown(void)
{
    hf_loop_free(loop);
    hf_env_free(env);
}

TestSuite(timer, .init = setup_real, .fini = teardown);
TestSuite(timer_sim, .init = setup_sim, .fini = teardown);

static void on_alarm(struct hf_timer *t)
{
    struct alarm *a = hf_container_of(t, struct alarm, timer);
    uint64_t now = hf_env_mono_ns(env);

    cr_assert_geq(now, a->due, "fired early");
    cr_assert_geq(a->due, last_due, "out of order");
    cr_assert_not(a->cancelled);
    cr_assert_not(hf_timer_armed(t));
    last_due = a->due;
    if (now - a->due > worst_late)
        worst_late = now - a->due;
    a->fired++;
    if (++nfired == want)
        hf_loop_stop(loop);
}

static void arm(struct alarm *a, uint64_t delay)
{
    hf_timer_set(&a->timer, delay);
    a->due = a->timer.at_ns;
}

/* Sets, resets and cancels at random; then every armed one fires once, in order of time. */
static void shuffle(uint64_t span_ns)
{
    srand(11);
    for (unsigned i = 0; i < TIMERS; i++)
        hf_timer_init(&alarms[i].timer, loop, on_alarm);
    for (unsigned op = 0; op < TIMERS * 10; op++) {
        struct alarm *a = &alarms[rand() % TIMERS];

        a->cancelled = rand() % 3 == 0;
        if (a->cancelled)
            hf_timer_cancel(&a->timer);
        else
            arm(a, (uint64_t)rand() % span_ns);
        cr_assert_eq(hf_timer_armed(&a->timer), !a->cancelled);
    }
    for (unsigned i = 0; i < TIMERS; i++)
        want += hf_timer_armed(&alarms[i].timer);
}

static void check_all_fired(void)
{
    cr_assert_eq(nfired, want);
    for (unsigned i = 0; i < TIMERS; i++) {
        cr_assert_leq(alarms[i].fired, 1);
        cr_assert_not(hf_timer_armed(&alarms[i].timer));
    }
}

Test(timer, random_timers_fire_once_in_order)
{
    shuffle(100 * HF_NS_PER_MS);
    support_run(loop);
    check_all_fired();
}

Test(timer_sim, random_timers_fire_once_in_order_and_exactly)
{
    shuffle(3600 * HF_NS_PER_SEC);
    cr_assert_eq(hf_sim_run(env, ~0ull), want);
    check_all_fired();
    cr_assert_eq(worst_late, 0);
    cr_assert_eq(hf_env_mono_ns(env), last_due);
}

/* 200 steps of 50 us would take 200 ms if the resolution were 1 ms. */
static unsigned ticks;
static uint64_t started;

static void on_tick(struct hf_timer *t)
{
    if (++ticks == 200)
        hf_loop_stop(loop);
    else
        hf_timer_set(t, 50 * HF_NS_PER_US);
}

Test(timer, resolution_is_finer_than_a_millisecond)
{
    struct hf_timer t;
    uint64_t best = ~0ull;

    hf_timer_init(&t, loop, on_tick);
    /* The best of several, since others use this machine too. */
    for (int i = 0; i < 10; i++) {
        ticks = 0;
        started = hf_env_mono_ns(env);
        hf_timer_set(&t, 50 * HF_NS_PER_US);
        support_run(loop);
        if (hf_env_mono_ns(env) - started < best)
            best = hf_env_mono_ns(env) - started;
    }
    cr_assert_geq(best, 200 * 50 * HF_NS_PER_US);
    cr_assert_leq(best, 100 * HF_NS_PER_MS);
}

/* An earlier timer set while the loop already waits for a later one. */
static void on_task(struct hf_task *task)
{
    (void)task;
    arm(&alarms[1], HF_NS_PER_MS);
}

Test(timer, an_earlier_timer_shortens_the_sleep)
{
    struct hf_task task = {.fn = on_task};

    hf_timer_init(&alarms[0].timer, loop, on_alarm);
    hf_timer_init(&alarms[1].timer, loop, on_alarm);
    arm(&alarms[0], 3600 * HF_NS_PER_SEC);
    want = 1;
    hf_loop_post(loop, &task);
    support_run(loop);
    cr_assert_eq(alarms[1].fired, 1);
    cr_assert(hf_timer_armed(&alarms[0].timer));
    hf_timer_cancel(&alarms[0].timer);
    hf_timer_cancel(&alarms[0].timer);
}

static void on_zero(struct hf_timer *t)
{
    if (++ticks < 1000)
        hf_timer_set(t, 0);
    else
        hf_loop_stop(loop);
}
static void count_turns(struct hf_task *task)
{
    want++;
    if (ticks < 1000)
        hf_loop_defer(loop, task);
}

Test(timer, zero_delays_let_other_things_run)
{
    struct hf_task turn = {.fn = count_turns};
    struct hf_timer t;

    hf_timer_init(&t, loop, on_zero);
    hf_timer_set(&t, 0);
    hf_loop_defer(loop, &turn);
    support_run(loop);
    cr_assert_eq(ticks, 1000);
    cr_assert_geq(want, 999);
}

static unsigned order[3], norder;
static struct hf_timer same[3];

static void on_same(struct hf_timer *t)
{
    order[norder++] = (unsigned)(t - same);
}

Test(timer_sim, same_instant_keeps_the_order_of_setting_and_far_future_is_safe)
{
    struct hf_timer never;

    for (unsigned i = 0; i < 3; i++)
        hf_timer_init(&same[i], loop, on_same);
    hf_timer_set(&same[2], 5);
    hf_timer_set(&same[0], 5);
    hf_timer_set(&same[1], 5);
    hf_timer_init(&never, loop, on_same);
    hf_timer_set(&never, ~0ull);
    cr_assert_eq(hf_sim_run(env, HF_NS_PER_SEC), 3);
    cr_assert(order[0] == 2 && order[1] == 0 && order[2] == 1);
    cr_assert_eq(hf_env_mono_ns(env), HF_NS_PER_SEC);
    cr_assert(hf_timer_armed(&never));
}

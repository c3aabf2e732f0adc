/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_rt.h"

static struct hf_env *env;
static struct hf_loop *loop;

static void setup(void)
{
    cr_assert_eq(hf_env_real_new(&env), 0);
    cr_assert_eq(hf_loop_new(env, "test", &loop), 0);
}

static void teardown(void)
{
    hf_loop_free(loop);
    hf_env_free(env);
}

TestSuite(loop, .init = setup, .fini = teardown);

/* ---- posting from many threads ---- */

#define POSTERS   4
#define PER_POST  250000
#define NOT_SEEN  0
#define SEEN_ONCE 1

struct item {
    struct hf_task task;
    unsigned poster, number;
    unsigned seen;
};

static struct {
    struct item *items[POSTERS];
    unsigned next[POSTERS];
    unsigned total;
    unsigned mistakes;
    pthread_t thread;
    sem_t done;
} flood;

static void flood_fn(struct hf_task *t)
{
    struct item *it = hf_container_of(t, struct item, task);

    flood.mistakes += it->number != flood.next[it->poster] || it->seen != NOT_SEEN ||
                      !pthread_equal(flood.thread, pthread_self()) || !hf_loop_in_thread(loop);
    it->seen++;
    flood.next[it->poster] = it->number + 1;
    if (++flood.total == POSTERS * PER_POST)
        sem_post(&flood.done);
}

static void *flood_post(void *arg)
{
    struct item *items = arg;

    for (unsigned i = 0; i < PER_POST; i++) {
        hf_loop_post(loop, &items[i].task);
        /* Let the loop fall asleep now and then: the wake-up is what is at stake. */
        if (i % 1000 == 999)
            sched_yield();
    }
    return NULL;
}

static void note_thread(struct hf_task *t)
{
    (void)t;
    flood.thread = pthread_self();
}

Test(loop, a_million_posts_from_four_threads_in_order_once, .timeout = 110)
{
    struct hf_task first = {.fn = note_thread};
    pthread_t th[POSTERS];

    sem_init(&flood.done, 0, 0);
    hf_loop_post(loop, &first);
    cr_assert_eq(hf_loop_start(loop), 0);
    for (unsigned p = 0; p < POSTERS; p++) {
        flood.items[p] = calloc(PER_POST, sizeof(struct item));
        cr_assert_not_null(flood.items[p]);
        for (unsigned i = 0; i < PER_POST; i++)
            flood.items[p][i] = (struct item){.task = {.fn = flood_fn}, .poster = p, .number = i};
        cr_assert_eq(pthread_create(&th[p], NULL, flood_post, flood.items[p]), 0);
    }
    for (unsigned p = 0; p < POSTERS; p++)
        pthread_join(th[p], NULL);
    support_wait(&flood.done);
    hf_loop_join(loop);
    cr_assert_eq(flood.total, POSTERS * PER_POST);
    cr_assert_eq(flood.mistakes, 0);
    for (unsigned p = 0; p < POSTERS; p++) {
        for (unsigned i = 0; i < PER_POST; i++)
            cr_assert_eq(flood.items[p][i].seen, SEEN_ONCE);
        free(flood.items[p]);
    }
}

/* ---- ping-pong: every post meets a sleeping loop ---- */

static struct {
    struct hf_loop *other;
    struct hf_task ping, pong;
    unsigned rounds;
    sem_t done;
} rally;

static void ping_fn(struct hf_task *t)
{
    (void)t;
    hf_loop_post(rally.other, &rally.pong);
}

static void pong_fn(struct hf_task *t)
{
    (void)t;
    if (++rally.rounds == 20000)
        sem_post(&rally.done);
    else
        hf_loop_post(loop, &rally.ping);
}

Test(loop, no_wake_up_is_lost)
{
    sem_init(&rally.done, 0, 0);
    rally.ping.fn = ping_fn;
    rally.pong.fn = pong_fn;
    cr_assert_eq(hf_loop_new(env, "a-name-longer-than-fifteen", &rally.other), 0);
    cr_assert_eq(hf_loop_start(loop), 0);
    cr_assert_eq(hf_loop_start(rally.other), 0);
    hf_loop_post(loop, &rally.ping);
    support_wait(&rally.done);
    hf_loop_join(loop);
    hf_loop_join(rally.other);
    hf_loop_free(rally.other);
    cr_assert_eq(rally.rounds, 20000);
}

/* ---- order inside a turn ---- */

static char trace[64];
static unsigned ntrace;
static struct hf_task deferred_a, deferred_b, posted_1, posted_2, last;

static void note(char what)
{
    if (ntrace < sizeof(trace) - 1)
        trace[ntrace++] = what;
}

static void deferred_b_fn(struct hf_task *t)
{
    (void)t;
    note('b');
}
static void deferred_a_fn(struct hf_task *t)
{
    (void)t;
    note('a');
    hf_loop_defer(loop, &deferred_b);
}
static void last_fn(struct hf_task *t)
{
    (void)t;
    note('$');
    hf_loop_stop(loop);
}
static void posted_1_fn(struct hf_task *t)
{
    (void)t;
    note('1');
    hf_loop_defer(loop, &deferred_a);
    hf_loop_defer(loop, &deferred_a);
    hf_loop_post(loop, &last);
}
static void posted_2_fn(struct hf_task *t)
{
    (void)t;
    note('2');
    hf_loop_defer(loop, &deferred_a);
}
static void timer_fn(struct hf_timer *t)
{
    (void)t;
    note('t');
}
static void fd_fn(evutil_socket_t fd, short what, void *arg)
{
    char byte;

    (void)what;
    (void)arg;
    cr_assert_eq(read(fd, &byte, 1), 1);
    note('f');
}

Test(loop, descriptors_timers_posts_deferred)
{
    struct hf_timer timer;
    struct event *ev;
    int fds[2];

    deferred_a.fn = deferred_a_fn;
    deferred_b.fn = deferred_b_fn;
    posted_1.fn = posted_1_fn;
    posted_2.fn = posted_2_fn;
    last.fn = last_fn;
    cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    cr_assert_eq(write(fds[1], "x", 1), 1);
    ev = event_new(hf_loop_base(loop), fds[0], EV_READ | EV_PERSIST, fd_fn, NULL);
    cr_assert_eq(event_add(ev, NULL), 0);
    hf_timer_init(&timer, loop, timer_fn);
    hf_timer_set(&timer, 0);
    hf_loop_post(loop, &posted_1);
    hf_loop_post(loop, &posted_2);
    support_run(loop);
    event_free(ev);
    close(fds[0]);
    close(fds[1]);
    cr_assert_str_eq(trace, "ft12a$b");
}

/* ---- fairness ---- */

static struct {
    struct hf_task again;
    unsigned posts, reads;
    int fds[2];
} fair;

static void again_fn(struct hf_task *t)
{
    fair.posts++;
    hf_loop_post(loop, t);
}
static void fair_fd_fn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    /* Never read: always ready. */
    if (++fair.reads == 1000)
        hf_loop_stop(loop);
}

Test(loop, tasks_and_sockets_do_not_starve_each_other)
{
    struct event *ev;

    cr_assert_eq(pipe2(fair.fds, O_CLOEXEC | O_NONBLOCK), 0);
    cr_assert_eq(write(fair.fds[1], "x", 1), 1);
    ev = event_new(hf_loop_base(loop), fair.fds[0], EV_READ | EV_PERSIST, fair_fd_fn, NULL);
    cr_assert_eq(event_add(ev, NULL), 0);
    fair.again.fn = again_fn;
    hf_loop_post(loop, &fair.again);
    support_run(loop);
    event_free(ev);
    close(fair.fds[0]);
    close(fair.fds[1]);
    cr_assert_geq(fair.posts, 990);
    cr_assert_leq(fair.posts, 1010);
}

/* ---- cancelling ---- */

static struct {
    struct hf_task canceller;
    struct hf_task a, b, c, d, e;
} gone;

static void gone_a_fn(struct hf_task *t)
{
    (void)t;
    note('a');
}
static void gone_b_fn(struct hf_task *t)
{
    (void)t;
    note('b');
}
static void gone_c_fn(struct hf_task *t)
{
    (void)t;
    note('c');
}
static void gone_d_fn(struct hf_task *t)
{
    (void)t;
    note('d');
}
static void gone_e_fn(struct hf_task *t)
{
    (void)t;
    note('e');
    hf_loop_stop(loop);
}

/* Runs first: a is in the same batch, b deferred, c and d posted for the next turn. */
static void canceller_fn(struct hf_task *t)
{
    hf_loop_defer(loop, &gone.b);
    hf_loop_post(loop, &gone.c);
    hf_loop_post(loop, &gone.d);
    hf_loop_cancel(loop, t);
    hf_loop_cancel(loop, &gone.a);
    hf_loop_cancel(loop, &gone.b);
    hf_loop_cancel(loop, &gone.c);
    hf_loop_cancel(loop, &gone.c);
    /* Cancelled ones can be queued again; d keeps its place before what is posted later. */
    hf_loop_post(loop, &gone.a);
    hf_loop_post(loop, &gone.e);
}

Test(loop, cancelled_tasks_do_not_run_and_others_keep_their_order)
{
    gone.canceller.fn = canceller_fn;
    gone.a.fn = gone_a_fn;
    gone.b.fn = gone_b_fn;
    gone.c.fn = gone_c_fn;
    gone.d.fn = gone_d_fn;
    gone.e.fn = gone_e_fn;
    hf_loop_post(loop, &gone.canceller);
    hf_loop_post(loop, &gone.a);
    support_run(loop);
    cr_assert_str_eq(trace, "dae");
    cr_assert_not(gone.b.queued || gone.c.queued);
}

/* ---- stopping ---- */

static void count_fn(struct hf_task *t)
{
    (void)t;
    ntrace++;
}

Test(loop, what_was_posted_before_stop_runs_and_the_loop_can_run_again)
{
    struct hf_task a = {.fn = count_fn}, b = {.fn = count_fn};

    for (int i = 0; i < 200; i++) {
        cr_assert_eq(hf_loop_start(loop), 0);
        hf_loop_post(loop, &a);
        hf_loop_stop(loop);
        hf_loop_join(loop);
        cr_assert_eq(ntrace, (unsigned)i + 1);
    }
    hf_loop_join(loop);
    /* Left behind: dropped by hf_loop_free. */
    hf_loop_post(loop, &b);
}

Test(loop, join_races_with_start)
{
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(hf_loop_start(loop), 0);
        hf_loop_join(loop);
    }
    cr_assert(hf_loop_in_thread(loop));
}

static atomic_bool foreign_says;

static void *ask_from_elsewhere(void *arg)
{
    atomic_store(&foreign_says, hf_loop_in_thread(arg));
    return NULL;
}
static void ask_fn(struct hf_task *t)
{
    pthread_t th;

    (void)t;
    cr_assert(hf_loop_in_thread(loop));
    cr_assert_eq(pthread_create(&th, NULL, ask_from_elsewhere, loop), 0);
    pthread_join(th, NULL);
    hf_loop_stop(loop);
}

Test(loop, knows_its_thread)
{
    struct hf_task ask = {.fn = ask_fn};

    atomic_store(&foreign_says, true);
    hf_loop_post(loop, &ask);
    support_run(loop);
    cr_assert_not(atomic_load(&foreign_says));
    cr_assert_eq(hf_loop_env(loop), env);
    cr_assert_not(hf_env_is_sim(env));
}

Test(env, clocks_and_randomness)
{
    struct hf_env *e;
    uint8_t big[5000] = {0};
    unsigned zeros = 0;
    uint64_t a;

    cr_assert_eq(hf_env_real_new(&e), 0);
    a = hf_env_mono_ns(e);
    cr_assert_leq(a, hf_env_mono_ns(e));
    cr_assert_gt(hf_env_wall_ns(e), 1700000000ll * (int64_t)HF_NS_PER_SEC);
    cr_assert_neq(hf_env_random_u64(e), hf_env_random_u64(e));
    hf_env_random(e, big, sizeof(big));
    for (size_t i = 0; i < sizeof(big); i++)
        zeros += big[i] == 0;
    cr_assert_leq(zeros, 100);
    hf_env_free(e);
}

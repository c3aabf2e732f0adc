/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "support_rt.h"

#define WORKS 20000

struct job {
    struct hf_work work;
    atomic_uint ran;
    unsigned completed;
};

static struct hf_env *env;
static struct hf_loop *loop;
static struct hf_pool *pool;
static struct job *jobs;
static unsigned ncompleted;
static sem_t entered, release, finished;

static void job_run(struct hf_work *w)
{
    atomic_fetch_add(&hf_container_of(w, struct job, work)->ran, 1);
    cr_assert_not(hf_loop_in_thread(loop));
}

static void job_done(struct hf_task *t)
{
    struct job *j = hf_container_of(t, struct job, work.done);

    cr_assert(hf_loop_in_thread(loop));
    cr_assert_eq(atomic_load(&j->ran), 1);
    j->completed++;
    if (++ncompleted == WORKS)
        sem_post(&finished);
}

static void make_jobs(void)
{
    jobs = calloc(WORKS, sizeof(*jobs));
    cr_assert_not_null(jobs);
    for (unsigned i = 0; i < WORKS; i++)
        jobs[i].work = (struct hf_work){.done = {.fn = job_done}, .run = job_run, .loop = loop};
}

static void check_jobs(void)
{
    for (unsigned i = 0; i < WORKS; i++) {
        cr_assert_eq(atomic_load(&jobs[i].ran), 1);
        cr_assert_eq(jobs[i].completed, 1);
    }
    free(jobs);
}

static void setup(void)
{
    sem_init(&entered, 0, 0);
    sem_init(&release, 0, 0);
    sem_init(&finished, 0, 0);
    cr_assert_eq(hf_env_real_new(&env), 0);
    cr_assert_eq(hf_loop_new(env, "test", &loop), 0);
}

static void teardown(void)
{
    hf_loop_free(loop);
    hf_env_free(env);
}

TestSuite(pool, .init = setup, .fini = teardown);

static void *submit_half(void *arg)
{
    struct job *from = arg;

    for (unsigned i = 0; i < WORKS / 2; i++)
        cr_assert_eq(hf_pool_submit(pool, &from[i].work), 0);
    return NULL;
}

Test(pool, every_work_runs_and_completes_once)
{
    pthread_t th[2];

    make_jobs();
    cr_assert_eq(hf_pool_new(env, "io", 4, WORKS, &pool), 0);
    cr_assert_eq(hf_loop_start(loop), 0);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&th[i], NULL, submit_half, jobs + i * (WORKS / 2)), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(th[i], NULL);
    support_wait(&finished);
    hf_pool_free(pool);
    hf_loop_join(loop);
    check_jobs();
}

static void gate_run(struct hf_work *w)
{
    (void)w;
    sem_post(&entered);
    support_wait(&release);
}

static void count_run(struct hf_work *w)
{
    atomic_fetch_add(&hf_container_of(w, struct job, work)->ran, 1);
}

Test(pool, full_queue_is_busy_and_free_waits_for_the_queue)
{
    struct hf_work gates[2] = {{.run = gate_run}, {.run = gate_run}};
    struct job queued[3] = {0};

    cr_assert_eq(hf_pool_new(env, "io", 2, 3, &pool), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(hf_pool_submit(pool, &gates[i]), 0);
    for (int i = 0; i < 2; i++)
        support_wait(&entered);
    for (int i = 0; i < 3; i++) {
        queued[i].work.run = count_run;
        cr_assert_eq(hf_pool_submit(pool, &queued[i].work), 0);
    }
    struct hf_work extra = {.run = gate_run};
    cr_assert_eq(hf_pool_submit(pool, &extra), HF_E_BUSY);
    sem_post(&release);
    sem_post(&release);
    hf_pool_free(pool);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(atomic_load(&queued[i].ran), 1);
}

static void free_run(struct hf_work *w)
{
    free(w);
    sem_post(&finished);
}

Test(pool, without_a_loop_run_may_free_the_work)
{
    cr_assert_eq(hf_pool_new(env, "io", 1, 100, &pool), 0);
    for (int i = 0; i < 50; i++) {
        struct hf_work *w = calloc(1, sizeof(*w));

        w->run = free_run;
        cr_assert_eq(hf_pool_submit(pool, w), 0);
    }
    hf_pool_free(pool);
    for (int i = 0; i < 50; i++)
        support_wait(&finished);
}

Test(pool, bad_arguments)
{
    cr_assert_eq(hf_pool_new(env, "io", 0, 1, &pool), HF_E_INVAL);
    cr_assert_eq(hf_pool_new(env, "io", 1, 0, &pool), HF_E_INVAL);
}

/* ---- simulated ---- */

Test(pool_sim, every_work_runs_and_completes_once)
{
    struct hf_work extra = {.run = job_run};

    cr_assert_eq(hf_env_sim_new(9, 0, &env), 0);
    cr_assert_eq(hf_loop_new(env, "test", &loop), 0);
    cr_assert_eq(hf_pool_new(env, "io", 4, WORKS, &pool), 0);
    make_jobs();
    for (unsigned i = 0; i < WORKS; i++)
        cr_assert_eq(hf_pool_submit(pool, &jobs[i].work), 0);
    cr_assert_eq(hf_pool_submit(pool, &extra), HF_E_BUSY);
    cr_assert_eq(ncompleted, 0, "nothing runs inside submit");
    cr_assert_eq(hf_sim_run(env, ~0ull), 2 * WORKS);
    hf_pool_free(pool);
    check_jobs();
    hf_loop_free(loop);
    hf_env_free(env);
}

Test(pool_sim, free_finishes_the_queue)
{
    cr_assert_eq(hf_env_sim_new(9, 0, &env), 0);
    cr_assert_eq(hf_loop_new(env, "test", &loop), 0);
    cr_assert_eq(hf_pool_new(env, "io", 2, 10, &pool), 0);
    struct job j[3] = {0};
    for (int i = 0; i < 3; i++) {
        j[i].work = (struct hf_work){.done = {.fn = job_done}, .run = count_run, .loop = loop};
        cr_assert_eq(hf_pool_submit(pool, &j[i].work), 0);
    }
    hf_pool_free(pool);
    cr_assert_eq(hf_sim_run(env, ~0ull), 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(j[i].completed, 1);
    hf_loop_free(loop);
    hf_env_free(env);
}

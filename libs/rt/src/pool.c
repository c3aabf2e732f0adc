/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads for what blocks. The queue is bounded: beyond it hf_pool_submit answers BUSY and the
 * caller decides. A work item belongs to the pool from submit until its completion is posted (or,
 * without a loop, until run is entered, which may free it).
 *
 * On a simulated env the pool is a loop of its own: one item per task, taken at random from the
 * first `threads` queued, which are those that real threads would be working on at the same time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "rt_priv.h"

struct hf_pool {
    struct hf_env *env;
    size_t queue_max;
    unsigned nthreads;
    pthread_t *threads;

    pthread_mutex_t lock; /* guards what follows; nothing else is locked under it */
    pthread_cond_t wake;
    struct hf_list queue;
    size_t queued;
    bool closing;

    struct hf_loop *sim_loop; /* simulated env only */
    struct hf_task sim_task;
};

static void work_run(struct hf_work *w)
{
    struct hf_loop *loop = w->loop; /* without one, run may free w */

    w->run(w);
    if (loop)
        hf_loop_post(loop, &w->done);
}

static void *pool_thread(void *arg)
{
    struct hf_pool *p = arg;

    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        struct hf_list *n = hf_list_pop_front(&p->queue);

        if (n) {
            p->queued--;
            (void)pthread_mutex_unlock(&p->lock);
            work_run(hf_container_of(n, struct hf_work, link));
            (void)pthread_mutex_lock(&p->lock);
        } else if (p->closing) {
            break;
        } else {
            (void)pthread_cond_wait(&p->wake, &p->lock);
        }
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- simulated ---- */

static void sim_run_one(struct hf_pool *p)
{
    uint64_t concurrent = p->queued < p->nthreads ? p->queued : p->nthreads;
    uint64_t skip = sim_choose(p->env->sim, concurrent);
    struct hf_list *n = p->queue.next;

    while (skip-- > 0)
        n = n->next;
    hf_list_remove(n);
    p->queued--;
    work_run(hf_container_of(n, struct hf_work, link));
}

static void sim_task_fn(struct hf_task *t)
{
    struct hf_pool *p = hf_container_of(t, struct hf_pool, sim_task);

    sim_run_one(p);
    if (p->queued > 0 && !p->sim_task.queued)
        hf_loop_post(p->sim_loop, &p->sim_task);
}

static int sim_submit(struct hf_pool *p, struct hf_work *w)
{
    if (p->queued >= p->queue_max)
        return HF_E_BUSY;
    hf_list_push_back(&p->queue, &w->link);
    p->queued++;
    if (!p->sim_task.queued)
        hf_loop_post(p->sim_loop, &p->sim_task);
    return 0;
}

/* ---- the interface ---- */

int hf_pool_new(struct hf_env *env, const char *name, unsigned threads, size_t queue_max,
                struct hf_pool **ret)
{
    struct hf_pool *p;
    char thread_name[LOOP_NAME_BYTES];
    int rc = 0;

    if (threads == 0 || queue_max == 0)
        return HF_E_INVAL;
    p = calloc(1, sizeof(*p));
    if (!p)
        return HF_E_NOMEM;
    p->env = env;
    p->queue_max = queue_max;
    hf_list_init(&p->queue);
    p->sim_task.fn = sim_task_fn;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->wake, NULL);
    if (env->sim) {
        p->nthreads = threads;
        rc = hf_loop_new(env, name, &p->sim_loop);
        if (rc)
            goto fail;
        *ret = p;
        return 0;
    }
    p->threads = calloc(threads, sizeof(*p->threads));
    if (!p->threads) {
        rc = HF_E_NOMEM;
        goto fail;
    }
    for (; p->nthreads < threads; p->nthreads++) {
        (void)snprintf(thread_name, sizeof(thread_name), "%.11s.%u", name, p->nthreads % 1000);
        rc = thread_start(&p->threads[p->nthreads], thread_name, pool_thread, p);
        if (rc)
            goto fail;
    }
    *ret = p;
    return 0;
fail:
    hf_pool_free(p);
    return rc;
}

void hf_pool_free(struct hf_pool *p)
{
    if (!p)
        return;
    if (p->env->sim) {
        while (p->queued > 0)
            sim_run_one(p);
        hf_loop_free(p->sim_loop);
    } else {
        (void)pthread_mutex_lock(&p->lock);
        p->closing = true;
        (void)pthread_cond_broadcast(&p->wake);
        (void)pthread_mutex_unlock(&p->lock);
        for (unsigned i = 0; i < p->nthreads; i++)
            HF_ASSERT(pthread_join(p->threads[i], NULL) == 0);
        free(p->threads);
    }
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int hf_pool_submit(struct hf_pool *p, struct hf_work *w)
{
    int rc = HF_E_BUSY;

    if (p->env->sim)
        return sim_submit(p, w);
    (void)pthread_mutex_lock(&p->lock);
    if (p->queued < p->queue_max) {
        hf_list_push_back(&p->queue, &w->link);
        p->queued++;
        (void)pthread_cond_signal(&p->wake);
        rc = 0;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return rc;
}

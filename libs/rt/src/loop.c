/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop.
 *
 * A loop runs in turns. A turn
 *   1. asks libevent once for ready descriptors and runs their callbacks (real env only);
 *   2. runs the timers that are due and were armed before the turn;
 *   3. takes what is in the inbox at that moment, in the order posted, and runs it;
 *   4. runs what was deferred until then.
 * Each step works on a snapshot: what the callbacks post, arm (delay 0) or defer in step 4 waits
 * for the next turn, so tasks that keep posting tasks cannot starve sockets and sockets cannot
 * starve tasks. loop_step() is steps 2 to 4 one callback at a time, and is what the simulator calls
 * too.
 *
 * The inbox is a stack with an atomic head: posting is one compare-and-swap, taking is one
 * exchange, and the batch taken is reversed to get the order of posting. There is no pop of single
 * elements, hence no ABA problem.
 *
 * Sleeping. Before it blocks, the loop raises may_sleep and then looks at the inbox; a poster
 * pushes and then looks at may_sleep. Both sides are sequentially consistent, so at least one of
 * them sees the other: either the loop finds the task and does not block, or the poster finds
 * may_sleep, lowers it and writes to wake_fd. Lowering it makes later posters of the same batch
 * skip the system call. The loop lowers it itself as soon as it is awake.
 *
 * Timers use one timerfd, set lazily: it is touched only when the earliest timer is earlier than
 * what it is set to. Time-outs that are armed and cancelled all the time therefore cost no system
 * calls, at the price of a rare empty turn.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "rt_priv.h"

void task_queue_push(struct task_queue *q, struct hf_task *t)
{
    t->next = NULL;
    if (q->tail)
        q->tail->next = t;
    else
        q->head = t;
    q->tail = t;
}

struct hf_task *task_queue_pop(struct task_queue *q)
{
    struct hf_task *t = q->head;

    if (!t)
        return NULL;
    q->head = t->next;
    if (!q->head)
        q->tail = NULL;
    t->next = NULL;
    return t;
}

/* ---- making and freeing ---- */

static void drain_fd(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof(count));

    /* EAGAIN is fine: being awake is all that matters. */
    (void)n;
    (void)what;
    (void)arg;
}

static void on_timer_fd(evutil_socket_t fd, short what, void *arg)
{
    struct hf_loop *l = arg;

    drain_fd(fd, what, NULL);
    l->armed_at_ns = ~0ull;
}

static int loop_init_real(struct hf_loop *l)
{
    struct event_config *cfg = event_config_new();

    if (!cfg)
        return HF_E_NOMEM;
    /* One thread per base: hf_loop_post is the only way in from others, so libevent needs no lock.
     */
    (void)event_config_set_flag(cfg, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
                                         EVENT_BASE_FLAG_PRECISE_TIMER);
    l->base = event_base_new_with_config(cfg);
    event_config_free(cfg);
    if (!l->base)
        return HF_E_NOMEM;
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0)
        return hf_err_from_errno(errno);
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->timer_fd < 0)
        return hf_err_from_errno(errno);
    l->wake_event = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, drain_fd, NULL);
    l->timer_event = event_new(l->base, l->timer_fd, EV_READ | EV_PERSIST, on_timer_fd, l);
    if (!l->wake_event || !l->timer_event || event_add(l->wake_event, NULL) != 0 ||
        event_add(l->timer_event, NULL) != 0)
        return HF_E_NOMEM;
    return 0;
}

int hf_loop_new(struct hf_env *env, const char *name, struct hf_loop **ret)
{
    struct hf_loop *l = calloc(1, sizeof(*l));
    int rc;

    if (!l)
        return HF_E_NOMEM;
    l->env = env;
    l->wake_fd = l->timer_fd = -1;
    l->armed_at_ns = ~0ull;
    l->now_ns = hf_env_mono_ns(env);
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    if (env->sim) {
        sim_loop_add(env->sim, l);
        *ret = l;
        return 0;
    }
    rc = loop_init_real(l);
    if (rc) {
        hf_loop_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void hf_loop_free(struct hf_loop *l)
{
    if (!l)
        return;
    HF_ASSERT(atomic_load(&l->owner) == OWNER_NONE);
    if (l->env->sim)
        sim_loop_remove(l->env->sim, l);
    if (l->wake_event)
        event_free(l->wake_event);
    if (l->timer_event)
        event_free(l->timer_event);
    if (l->base)
        event_base_free(l->base);
    if (l->wake_fd >= 0)
        (void)close(l->wake_fd);
    if (l->timer_fd >= 0)
        (void)close(l->timer_fd);
    free(l->heap);
    free(l);
}

/* ---- the turn ---- */

/* Appends what is in the inbox to q, oldest first. */
static void inbox_drain(struct hf_loop *l, struct task_queue *q)
{
    struct hf_task *t = atomic_exchange(&l->inbox, NULL);
    struct hf_task *oldest = NULL;

    while (t) {
        struct hf_task *older = t->next;

        t->next = oldest;
        oldest = t;
        t = older;
    }
    while (oldest) {
        struct hf_task *newer = oldest->next;

        task_queue_push(q, oldest);
        oldest = newer;
    }
}

static void inbox_take(struct hf_loop *l)
{
    l->batch = l->carry; /* the batch is empty in this phase */
    l->carry = (struct task_queue){0};
    inbox_drain(l, &l->batch);
}

static bool run_next(struct hf_loop *l)
{
    struct hf_task *t = task_queue_pop(&l->batch);

    if (!t)
        return false;
    t->queued = false; /* before fn, which may queue or free it */
    t->fn(t);
    return true;
}

bool loop_step(struct hf_loop *l)
{
    struct hf_timer *timer;

    switch (l->phase) {
    case PHASE_TIMERS:
        timer = timer_pop_due(l);
        if (timer) {
            timer->fn(timer);
            return true;
        }
        inbox_take(l);
        l->phase = PHASE_POSTED;
        /* fall through */
    case PHASE_POSTED:
        if (run_next(l))
            return true;
        l->batch = l->deferred;
        l->deferred = (struct task_queue){0};
        l->phase = PHASE_DEFERRED;
        /* fall through */
    case PHASE_DEFERRED:
        if (run_next(l))
            return true;
        break;
    }
    l->phase = PHASE_TIMERS;
    l->turn_seq = l->timer_seq;
    return false;
}

bool loop_is_ready(const struct hf_loop *l)
{
    return l->batch.head || l->deferred.head || l->carry.head || atomic_load(&l->inbox) ||
           timer_next_ns(l) <= l->now_ns;
}

/* Makes timer_fd fire when the earliest timer is due. */
static void timer_fd_arm(struct hf_loop *l)
{
    uint64_t at = timer_next_ns(l);
    struct itimerspec its = {.it_value = {.tv_sec = (time_t)(at / HF_NS_PER_SEC),
                                          .tv_nsec = (long)(at % HF_NS_PER_SEC)}};

    if (at >= l->armed_at_ns)
        return;
    HF_ASSERT(timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) == 0);
    l->armed_at_ns = at;
}

/* Step 1 of a turn; blocks until there is something to do. */
static int wait_for_events(struct hf_loop *l, bool may_block)
{
    int flags = EVLOOP_ONCE | EVLOOP_NONBLOCK;

    l->now_ns = hf_env_mono_ns(l->env);
    if (may_block && !loop_is_ready(l)) {
        timer_fd_arm(l);
        atomic_store(&l->may_sleep, true);
        if (!atomic_load(&l->inbox) && !atomic_load(&l->stop))
            flags = EVLOOP_ONCE;
    }
    if (event_base_loop(l->base, flags) < 0)
        return HF_E_INTERNAL;
    atomic_store(&l->may_sleep, false);
    l->now_ns = hf_env_mono_ns(l->env);
    return 0;
}

int hf_loop_run(struct hf_loop *l)
{
    bool stop = false;
    int rc = 0;

    HF_ASSERT(!l->env->sim);
    atomic_store(&l->owner, (uintptr_t)pthread_self());
    /* stop is read before the turn, so that what was posted before hf_loop_stop still runs. */
    while (!stop && rc == 0) {
        stop = atomic_load(&l->stop);
        rc = wait_for_events(l, !stop);
        if (rc == 0) {
            l->turn_seq = l->timer_seq;
            while (loop_step(l))
                ;
        }
    }
    atomic_store(&l->stop, false);
    atomic_store(&l->owner, OWNER_NONE);
    return rc;
}

static void *loop_thread(void *arg)
{
    struct hf_loop *l = arg;
    int rc = hf_loop_run(l);

    /* epoll itself is broken: nobody could be told through a loop that no longer runs. */
    HF_ASSERT(rc == 0);
    return NULL;
}

int hf_loop_start(struct hf_loop *l)
{
    int rc = 0;

    HF_ASSERT(!l->started);
    if (!l->env->sim) {
        atomic_store(&l->owner, OWNER_STARTING);
        rc = thread_start(&l->thread, l->name, loop_thread, l);
        if (rc)
            atomic_store(&l->owner, OWNER_NONE);
    }
    l->started = rc == 0;
    return rc;
}

void hf_loop_join(struct hf_loop *l)
{
    if (!l->started)
        return;
    l->started = false;
    if (l->env->sim)
        return;
    hf_loop_stop(l);
    HF_ASSERT(pthread_join(l->thread, NULL) == 0);
    /* The thread may have ended by an earlier stop and left ours behind. */
    atomic_store(&l->stop, false);
}

/* ---- from any thread ---- */

static void loop_wake(struct hf_loop *l)
{
    const uint64_t one = 1;

    if (!atomic_load(&l->may_sleep) || !atomic_exchange(&l->may_sleep, false))
        return;
    if (atomic_load_explicit(&l->owner, memory_order_relaxed) == (uintptr_t)pthread_self())
        return; /* a descriptor's callback: awake, and the inbox comes after it */
    /* Fails only when the counter is full, and then it is readable. */
    if (write(l->wake_fd, &one, sizeof(one)) < 0)
        HF_ASSERT(errno == EAGAIN || errno == EINTR);
}

void hf_loop_stop(struct hf_loop *l)
{
    atomic_store(&l->stop, true);
    loop_wake(l);
}

void hf_loop_post(struct hf_loop *l, struct hf_task *t)
{
    HF_ASSERT(!t->queued);
    t->queued = true;
    t->next = atomic_load_explicit(&l->inbox, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&l->inbox, &t->next, t))
        ;
    /* From here on t may have run and be gone. */
    loop_wake(l);
}

/* ---- on the loop's thread ---- */

void hf_loop_defer(struct hf_loop *l, struct hf_task *t)
{
    HF_ASSERT(hf_loop_in_thread(l));
    if (t->queued)
        return;
    t->queued = true;
    task_queue_push(&l->deferred, t);
}

static void task_queue_remove(struct task_queue *q, const struct hf_task *t)
{
    struct task_queue rest = {0};
    struct hf_task *it;

    while ((it = task_queue_pop(q)) != NULL) {
        if (it != t)
            task_queue_push(&rest, it);
    }
    *q = rest;
}

void hf_loop_cancel(struct hf_loop *l, struct hf_task *t)
{
    HF_ASSERT(hf_loop_in_thread(l));
    if (!t->queued)
        return;
    inbox_drain(l, &l->carry);
    task_queue_remove(&l->carry, t);
    task_queue_remove(&l->batch, t);
    task_queue_remove(&l->deferred, t);
    t->queued = false;
}

struct hf_env *hf_loop_env(struct hf_loop *l)
{
    return l->env;
}

uint64_t hf_loop_now_ns(struct hf_loop *l)
{
    return l->now_ns;
}

struct event_base *hf_loop_base(struct hf_loop *l)
{
    return l->base;
}

bool hf_loop_in_thread(const struct hf_loop *l)
{
    uintptr_t owner;

    if (l->env->sim)
        return !l->env->sim->current || l->env->sim->current == l;
    owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
    return owner == OWNER_NONE || owner == (uintptr_t)pthread_self();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of rt share.
 */
#ifndef HOLDFAST_RT_PRIV_H
#define HOLDFAST_RT_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/rt.h"

#define LOOP_NAME_BYTES 16

struct event;

/* First in, first out; owned by the loop's thread. */
struct task_queue {
    struct hf_task *head, *tail;
};

/* Where a loop is in its turn; see loop.c. */
enum loop_phase { PHASE_TIMERS, PHASE_POSTED, PHASE_DEFERRED };

struct hf_loop {
    /* Written by any thread. */
    _Atomic(struct hf_task *) inbox; /* newest first */
    atomic_bool may_sleep;           /* the next post must write to wake_fd */
    atomic_bool stop;
    _Atomic(uintptr_t) owner; /* pthread_t of the running thread, or one of OWNER_* */

    /* The rest belongs to the loop's thread (before it runs: to who made it). */
    struct hf_env *env;
    char name[LOOP_NAME_BYTES];
    uint64_t now_ns;
    enum loop_phase phase;
    struct task_queue batch;    /* what this phase runs */
    struct task_queue deferred; /* for the end of the turn */
    struct task_queue carry; /* out of the inbox already (hf_loop_cancel), before the rest of it */

    struct hf_timer **heap; /* binary heap by (at_ns, seq) */
    size_t ntimers, heap_cap;
    uint64_t timer_seq;   /* of the next timer armed */
    uint64_t turn_seq;    /* timers armed since the turn began wait for the next turn */
    uint64_t armed_at_ns; /* what timer_fd is set to; ~0 = not set */

    struct event_base *base; /* NULL on a simulated env */
    struct event *wake_event, *timer_event;
    int wake_fd, timer_fd;
    pthread_t thread;
    bool started;

    struct hf_list sim_link; /* of the sim env's loops */
    bool in_turn;            /* sim: between the first loop_step of a turn and its last */
};

#define OWNER_NONE     ((uintptr_t)0)  /* not running: whoever sets it up owns it */
#define OWNER_STARTING (~(uintptr_t)0) /* its thread is about to claim it */

struct hf_sim {
    uint64_t now_ns;
    int64_t wall_start_ns;
    uint64_t schedule; /* state of the generator that orders loops */
    uint64_t random;   /* state of the generator behind hf_env_random */
    struct hf_list loops;
    size_t nloops;
    struct hf_loop *current; /* whose task runs now */
};

struct hf_env {
    struct hf_sim *sim;                     /* NULL: the real one */
    _Atomic(void *) net;                    /* see hf_env_net */
    void (*_Atomic net_destroy)(void *net); /* of whoever set net; all give the same one */
};

/* loop.c: runs one expired timer, posted or deferred task; false when the turn is over. */
bool loop_step(struct hf_loop *l);
/* Whether loop_step has something to do at l->now_ns. */
bool loop_is_ready(const struct hf_loop *l);
void task_queue_push(struct task_queue *q, struct hf_task *t);
struct hf_task *task_queue_pop(struct task_queue *q);

/* timer.c */
/* Takes out the earliest timer if it is due at l->now_ns and was armed before this turn. */
struct hf_timer *timer_pop_due(struct hf_loop *l);
/* When the earliest timer is due; ~0 if there is none. */
static inline uint64_t timer_next_ns(const struct hf_loop *l)
{
    return l->ntimers > 0 ? l->heap[0]->at_ns : ~0ull;
}

/* sim.c */
void sim_loop_add(struct hf_sim *s, struct hf_loop *l);
void sim_loop_remove(struct hf_sim *s, struct hf_loop *l);
/* 0..n-1, from the stream that decides schedules. */
uint64_t sim_choose(struct hf_sim *s, uint64_t n);
void sim_random(struct hf_sim *s, void *buf, size_t len);

/* env.c: a named thread with all signals blocked, which are the main thread's business. */
int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg);

#endif

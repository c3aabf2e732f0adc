/* SPDX-License-Identifier: Apache-2.0
 *
 * The run time: everything that is not deterministic comes in through struct hf_env, so that a
 * whole cluster can run in one process on virtual time.
 *
 *   env    clocks, randomness, how loops run        real (threads, libevent) or simulated (hf_sim)
 *   loop   one thread's work: posted tasks, timers, (real only) file descriptors through libevent
 *   pool   threads for what blocks (file I/O); completions return to a loop
 *
 * A loop is owned by the thread that runs it. Only hf_loop_post and hf_loop_stop may be called from
 * other threads.
 */
#ifndef HOLDFAST_RT_H
#define HOLDFAST_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/list.h"

#define HF_NS_PER_SEC 1000000000ull
#define HF_NS_PER_MS  1000000ull
#define HF_NS_PER_US  1000ull

struct event_base;
struct hf_loop;
struct hf_env;
struct hf_sim;

/* ---- process ---- */

/* For main(): what every server of ours wants of its process. Raises the limit of open files, and
 * makes malloc keep big buffers: messages of a mebibyte come and go thousands of times a second,
 * and mapping and unmapping each costs more than the work on it. Up to 256 MiB may stay resident.
 */
void hf_process_tune(void);

/* ---- environment ---- */

/* The real one: CLOCK_MONOTONIC, CLOCK_REALTIME, getrandom, threads. */
int hf_env_real_new(struct hf_env **ret);
void hf_env_free(struct hf_env *env); /* after all its loops and pools */

uint64_t hf_env_mono_ns(struct hf_env *env);
int64_t hf_env_wall_ns(struct hf_env *env); /* since 1970 */
void hf_env_random(struct hf_env *env, void *buf, size_t len);
uint64_t hf_env_random_u64(struct hf_env *env);
bool hf_env_is_sim(const struct hf_env *env);

/* What connects the parts of one env with each other: one object of the rpc library, made at its
 * first use and destroyed with the env. Any thread. NULL until set. */
void *hf_env_net(struct hf_env *env);
/* Sets it unless somebody was faster; returns the one that is set. */
void *hf_env_net_set(struct hf_env *env, void *net, void (*destroy)(void *net));

/* The simulated one: virtual time starts at wall_start_ns, moves only when every loop is idle, to
 * the next timer; randomness and the order of ready loops come from the seed. Single-threaded: call
 * hf_sim_run* from one thread; loops of a sim env are never given to hf_loop_run/hf_loop_start. */
int hf_env_sim_new(uint64_t seed, int64_t wall_start_ns, struct hf_env **ret);
/* Runs until nothing is ready and no timer is left, or `until_ns` of virtual mono time (~0: no
 * limit). A finite `until_ns` is also where time stands afterwards. Returns the number of tasks and
 * timers run. */
uint64_t hf_sim_run(struct hf_env *env, uint64_t until_ns);
/* Runs one ready task, or advances to the next timer and runs it. false if there is nothing at all.
 */
bool hf_sim_step(struct hf_env *env);

/* ---- loop ---- */

struct hf_task {
    struct hf_task *next; /* private while queued */
    void (*fn)(struct hf_task *t);
    bool queued; /* private */
};

/* name: for thread names and logs, copied (15 bytes used). */
int hf_loop_new(struct hf_env *env, const char *name, struct hf_loop **ret);
/* Not while running. Tasks still queued are dropped; timers of the loop must not be touched again.
 */
void hf_loop_free(struct hf_loop *l);
struct hf_env *hf_loop_env(struct hf_loop *l);
/* Runs in the calling thread until hf_loop_stop. */
int hf_loop_run(struct hf_loop *l);
/* Runs in a new thread; hf_loop_join stops and joins it. On a simulated env both only mark it. */
int hf_loop_start(struct hf_loop *l);
void hf_loop_join(struct hf_loop *l);
/* Any thread. The loop ends after the current turn. */
void hf_loop_stop(struct hf_loop *l);
/* Queue t to run on the loop's thread, in the order posted. Any thread; lock-free. t must stay
 * valid until it runs and must not be queued already. A sleeping loop is woken once per batch. */
void hf_loop_post(struct hf_loop *l, struct hf_task *t);
/* Loop thread only: run t at the end of the present turn, after all ready descriptors, timers and
 * posted tasks (where batches are sent). Deferring a queued task again is harmless. */
void hf_loop_defer(struct hf_loop *l, struct hf_task *t);
/* Loop thread only: t, posted or deferred, will not run (harmless if it is not queued). Nobody may
 * be posting t at the same time. For owners that go away with a task still queued. */
void hf_loop_cancel(struct hf_loop *l, struct hf_task *t);
/* Loop thread only, cached: the mono time at the start of the turn. */
uint64_t hf_loop_now_ns(struct hf_loop *l);
/* For code that speaks libevent (gateways' sockets). NULL on a simulated env. */
struct event_base *hf_loop_base(struct hf_loop *l);
/* Any thread: whether the caller may use the loop's own functions, that is, runs it (simulated: is
 * a task of it), or the loop does not run (simulated: no task does), so that whoever set it up owns
 * it. */
bool hf_loop_in_thread(const struct hf_loop *l);

struct hf_timer {
    struct hf_loop *loop;
    void (*fn)(struct hf_timer *t);
    uint64_t at_ns;
    size_t heap_index; /* private; ~0 = not armed */
    uint64_t seq;      /* private: timers due at the same time fire in the order they were set */
};

/* Loop thread only. Resolution 100 us or better. */
void hf_timer_init(struct hf_timer *t, struct hf_loop *l, void (*fn)(struct hf_timer *t));
void hf_timer_set(struct hf_timer *t, uint64_t delay_ns); /* re-arms if armed */
void hf_timer_cancel(struct hf_timer *t);                 /* harmless if not armed */
bool hf_timer_armed(const struct hf_timer *t);

/* ---- pool ---- */

struct hf_pool;

struct hf_work {
    struct hf_task done;            /* posted to `loop` after run returned; set done.fn */
    void (*run)(struct hf_work *w); /* on a pool thread; may block */
    struct hf_loop *loop;           /* NULL: nobody is told */
    struct hf_list link;            /* private */
};

/* queue_max: hf_pool_submit answers BUSY beyond it. On a simulated env work runs as a task of its
 * loop. */
int hf_pool_new(struct hf_env *env, const char *name, unsigned threads, size_t queue_max,
                struct hf_pool **ret);
/* Waits for running and queued work. */
void hf_pool_free(struct hf_pool *p);
int hf_pool_submit(struct hf_pool *p, struct hf_work *w); /* any thread */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated env: every loop in one thread, on virtual time, in an order that a seed decides.
 *
 * A step picks one of the loops that have something to do, at random, and runs one callback of it;
 * a loop keeps its own order, as on a real thread. Time moves only when no loop has anything to do,
 * to the earliest timer. The schedule and hf_env_random draw from two generators, so that code
 * which asks for one random number more does not change the order of everything after it.
 */
#include <stdlib.h>
#include <string.h>

#include "holdfast/err.h"
#include "rt_priv.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_u64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

int hf_env_sim_new(uint64_t seed, int64_t wall_start_ns, struct hf_env **ret)
{
    struct hf_env *env = calloc(1, sizeof(*env));
    struct hf_sim *s = calloc(1, sizeof(*s));

    if (!env || !s) {
        free(env);
        free(s);
        return HF_E_NOMEM;
    }
    s->wall_start_ns = wall_start_ns;
    s->schedule = next_u64(&seed);
    s->random = next_u64(&seed);
    hf_list_init(&s->loops);
    env->sim = s;
    *ret = env;
    return 0;
}

void sim_loop_add(struct hf_sim *s, struct hf_loop *l)
{
    hf_list_push_back(&s->loops, &l->sim_link);
    s->nloops++;
}

void sim_loop_remove(struct hf_sim *s, struct hf_loop *l)
{
    HF_ASSERT(s->current != l);
    hf_list_remove(&l->sim_link);
    s->nloops--;
}

uint64_t sim_choose(struct hf_sim *s, uint64_t n)
{
    return next_u64(&s->schedule) % n; /* n is tiny: the bias does not matter */
}

void sim_random(struct hf_sim *s, void *buf, size_t len)
{
    uint8_t *p = buf;

    while (len > 0) {
        uint64_t v = next_u64(&s->random);
        size_t n = len < sizeof(v) ? len : sizeof(v);

        memcpy(p, &v, n);
        p += n;
        len -= n;
    }
}

/* A random one of the ready loops, NULL if all are idle. */
static struct hf_loop *pick_ready(struct hf_sim *s)
{
    struct hf_loop *picked = NULL;
    uint64_t n = 0;

    HF_LIST_FOREACH(it, &s->loops)
    {
        struct hf_loop *l = hf_container_of(it, struct hf_loop, sim_link);

        l->now_ns = s->now_ns;
        if (loop_is_ready(l) && sim_choose(s, ++n) == 0)
            picked = l;
    }
    return picked;
}

/* Runs one callback at the present time; false if every loop is idle. */
static bool step_now(struct hf_sim *s)
{
    struct hf_loop *l;

    HF_ASSERT(!s->current); /* not from inside a callback */
    while ((l = pick_ready(s)) != NULL) {
        bool ran;

        /* Between turns, timers armed since the last one become eligible. */
        if (l->phase == PHASE_TIMERS && !l->in_turn) {
            l->turn_seq = l->timer_seq;
            l->in_turn = true;
        }
        s->current = l;
        ran = loop_step(l);
        s->current = NULL;
        if (ran)
            return true;
        l->in_turn = false;
    }
    return false;
}

static uint64_t next_timer_ns(const struct hf_sim *s)
{
    uint64_t at = ~0ull;

    HF_LIST_FOREACH(it, &s->loops)
    {
        const struct hf_loop *l = hf_container_of(it, struct hf_loop, sim_link);

        if (timer_next_ns(l) < at)
            at = timer_next_ns(l);
    }
    return at;
}

/* One callback, no later than until_ns. */
static bool step_until(struct hf_sim *s, uint64_t until_ns)
{
    uint64_t at;

    if (step_now(s))
        return true;
    at = next_timer_ns(s);
    if (at == ~0ull || at > until_ns)
        return false;
    s->now_ns = at;
    return step_now(s);
}

bool hf_sim_step(struct hf_env *env)
{
    return step_until(env->sim, ~0ull);
}

uint64_t hf_sim_run(struct hf_env *env, uint64_t until_ns)
{
    struct hf_sim *s = env->sim;
    uint64_t n = 0;

    while (step_until(s, until_ns))
        n++;
    /* So that runs in slices of time see time pass. */
    if (until_ns != ~0ull && s->now_ns < until_ns)
        s->now_ns = until_ns;
    return n;
}

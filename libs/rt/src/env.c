/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "holdfast/err.h"
#include "rt_priv.h"

int hf_env_real_new(struct hf_env **ret)
{
    struct hf_env *env = calloc(1, sizeof(*env));

    if (!env)
        return HF_E_NOMEM;
    *ret = env;
    return 0;
}

void hf_env_free(struct hf_env *env)
{
    if (!env)
        return;
    if (env->sim)
        HF_ASSERT(hf_list_empty(&env->sim->loops));
    if (atomic_load(&env->net))
        atomic_load (&env->net_destroy)(atomic_load(&env->net));
    free(env->sim);
    free(env);
}

void *hf_env_net(struct hf_env *env)
{
    return atomic_load(&env->net);
}

void *hf_env_net_set(struct hf_env *env, void *net, void (*destroy)(void *net))
{
    void *none = NULL;

    atomic_store(&env->net_destroy, destroy);
    return atomic_compare_exchange_strong(&env->net, &none, net) ? net : none;
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    HF_ASSERT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * (int64_t)HF_NS_PER_SEC + ts.tv_nsec;
}

uint64_t hf_env_mono_ns(struct hf_env *env)
{
    return env->sim ? env->sim->now_ns : (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

int64_t hf_env_wall_ns(struct hf_env *env)
{
    if (env->sim)
        return env->sim->wall_start_ns + (int64_t)env->sim->now_ns;
    return clock_ns(CLOCK_REALTIME);
}

void hf_env_random(struct hf_env *env, void *buf, size_t len)
{
    uint8_t *p = buf;

    if (env->sim) {
        sim_random(env->sim, buf, len);
        return;
    }
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);

        /* Going on without randomness would hand out guessable identities. */
        HF_ASSERT(n > 0 || errno == EINTR);
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
}

uint64_t hf_env_random_u64(struct hf_env *env)
{
    uint64_t v;

    hf_env_random(env, &v, sizeof(v));
    return v;
}

bool hf_env_is_sim(const struct hf_env *env)
{
    return env->sim != NULL;
}

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg)
{
    sigset_t all, old;
    int rc;

    (void)sigfillset(&all);
    rc = pthread_sigmask(SIG_SETMASK, &all, &old);
    if (rc)
        return hf_err_from_errno(rc);
    rc = pthread_create(ret, NULL, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return hf_err_from_errno(rc);
    (void)pthread_setname_np(*ret, name); /* only for people who look at the process */
    return 0;
}

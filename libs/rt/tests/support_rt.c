/* SPDX-License-Identifier: Apache-2.0 */
#include "support_rt.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <time.h>

#define DEADLINE_S 30

void support_wait(sem_t *sem)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec += DEADLINE_S;
    while (sem_timedwait(sem, &ts) != 0)
        cr_assert_eq(errno, EINTR, "the deadline has passed");
}

struct watchdog {
    struct hf_timer timer;
    bool fired;
};

static void on_deadline(struct hf_timer *t)
{
    hf_container_of(t, struct watchdog, timer)->fired = true;
    hf_loop_stop(t->loop);
}

void support_run(struct hf_loop *l)
{
    struct watchdog w = {.fired = false};

    hf_timer_init(&w.timer, l, on_deadline);
    hf_timer_set(&w.timer, DEADLINE_S * HF_NS_PER_SEC);
    cr_assert_eq(hf_loop_run(l), 0);
    hf_timer_cancel(&w.timer);
    cr_assert_not(w.fired, "the deadline has passed");
}

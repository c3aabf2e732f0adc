/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for a condition with a deadline, and a deadline for a loop run in the test's thread.
 */
#ifndef HOLDFAST_SUPPORT_RT_H
#define HOLDFAST_SUPPORT_RT_H

#include <semaphore.h>

#include "holdfast/rt.h"

/* Waits up to 30 s for a post; fails the test after that. */
void support_wait(sem_t *sem);
/* Runs the loop in this thread until somebody stops it; fails the test after 30 s. */
void support_run(struct hf_loop *l);

#endif

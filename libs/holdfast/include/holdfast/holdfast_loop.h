/* SPDX-License-Identifier: Apache-2.0
 *
 * For front ends that are part of Holdfast (FUSE): the engines' loops, to put descriptors on. Not
 * installed.
 */
#ifndef HOLDFAST_HOLDFAST_LOOP_H
#define HOLDFAST_HOLDFAST_LOOP_H

#include "holdfast/holdfast.h"
#include "holdfast/rt.h"

unsigned hf_fs_nloops(const struct hf_fs *fs);
/* i < hf_fs_nloops. A call made on the loop that owns its object runs at once, without a hop. */
struct hf_loop *hf_fs_loop(struct hf_fs *fs, unsigned i);
/* Calls whose callbacks have not been called. Any thread. */
uint64_t hf_fs_in_flight(const struct hf_fs *fs);

#endif

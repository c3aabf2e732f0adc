/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/err.h"
#include "transport.h"
int hf_tr_sim_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                   struct hf_tr **ret)
{
    (void)loop;
    (void)server;
    (void)ev;
    (void)arg;
    (void)ret;
    return HF_E_NOTSUPP;
}

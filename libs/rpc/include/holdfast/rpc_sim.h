/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated network under sim:// URLs: what goes wrong on it. For simulations and tests.
 *
 * Connections deliver in order after a random latency. A message lost, or late behind a younger
 * one, makes the receiver end the connection (see chan.h in the sources), as a real network's loss
 * of a connection would; a message doubled is ignored. A client looks for its server for ever (10
 * ms .. 1 s), so hf_sim_run without a limit does not end while one is not there.
 */
#ifndef HOLDFAST_RPC_SIM_H
#define HOLDFAST_RPC_SIM_H

#include "holdfast/rt.h"

struct hf_rpc_sim_faults {
    uint64_t latency_min_ns, latency_max_ns; /* both 0: 50 .. 150 us */
    uint32_t drop_ppm;                       /* messages lost, of a million */
    uint32_t dup_ppm;                        /* delivered twice */
    uint32_t reorder_ppm;                    /* delivered later than the next ones */
};

/* From now on, for the whole env. NOMEM. */
int hf_rpc_sim_faults(struct hf_env *env, const struct hf_rpc_sim_faults *f);
/* While on, messages from and to the server at url are lost without notice and connections to it
 * are not made. INVAL if nobody listens there. Off: connections over which something was lost break
 * at the next message. */
int hf_rpc_sim_partition(struct hf_env *env, const char *url, bool on);
/* Breaks the connections of the server at url; both sides notice. */
int hf_rpc_sim_cut(struct hf_env *env, const char *url);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What peers may hold of a server (struct hf_rpc_limits), on a transport with threads and, for the
 * clocks, on the simulated one.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "support_rpc.h"

static struct hf_rpc_stats stats_of(const struct world *w)
{
    struct hf_rpc_stats st = {0};

    hf_rpc_server_stats(w->server, &st);
    return st;
}

static bool four_held(void *arg)
{
    return ((struct world *)arg)->nheld == 4;
}

Test(limits, calls_of_one_peer)
{
    static const struct hf_rpc_server_opts opts = {.limits.max_peer_inflight = 4};
    struct probe held[4] = {0}, more = {0}, again = {0};
    struct world w;

    world_init(&w, "ipc", &opts, NULL);
    for (unsigned i = 0; i < 4; i++)
        probe_hold(&w, &held[i], i);
    cr_assert(world_until(&w, four_held, &w));
    probe_echo(&w, &more, 1);
    cr_assert_eq(probe_wait(&w, &more), HF_E_BUSY);
    cr_assert_eq(stats_of(&w).busy, 1);
    while (w.nheld > 0)
        answer_held(&w, 0);
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(probe_wait(&w, &held[i]), 0);
    probe_echo(&w, &again, 2);
    cr_assert_eq(probe_wait(&w, &again), 0);
    cr_assert_eq(stats_of(&w).inflight, 0);
    world_fini(&w);
}

static bool one_idle(void *arg)
{
    return stats_of(arg).peers_idle > 0;
}

static bool back_again(void *arg)
{
    return hf_rpc_client_epoch(((struct world *)arg)->client) > 1;
}

static void idle_peers_go(const char *scheme)
{
    static const struct hf_rpc_server_opts opts = {.limits.idle_timeout_ms = 40};
    struct probe first = {0}, held = {0}, later = {0};
    uint64_t idle;
    struct world w;

    world_init(&w, scheme, &opts, NULL);
    probe_echo(&w, &first, 1);
    cr_assert_eq(probe_wait(&w, &first), 0);
    cr_assert(world_until(&w, one_idle, &w));
    cr_assert(world_until(&w, back_again, &w)); /* the client connects again by itself */
    probe_echo(&w, &later, 2);
    cr_assert_eq(probe_wait(&w, &later), 0);
    probe_hold(&w, &held, 3); /* who waits for an answer is not idle */
    world_run_for(&w, 200 * HF_NS_PER_MS);
    cr_assert_eq(w.nheld, 1);
    idle = stats_of(&w).peers_idle;
    answer_held(&w, 0); /* and who has just been answered is not either: the answer is on its way */
    if (strcmp(scheme, "sim") == 0) {
        world_run_for(&w, 30 * HF_NS_PER_MS);
        cr_assert_eq(stats_of(&w).peers_idle, idle);
    }
    cr_assert_eq(probe_wait(&w, &held), 0);
    world_fini(&w);
}

Test(limits, idle_peers_go_ipc)
{
    idle_peers_go("ipc");
}

Test(limits, idle_peers_go_sim)
{
    idle_peers_go("sim");
}

static bool one_refused(void *arg)
{
    return stats_of(arg).peers_refused > 0;
}

Test(limits, connections)
{
    static const struct hf_rpc_server_opts opts = {.limits.max_peers = 1};
    struct hf_rpc_client *second;
    struct probe p = {0}, q = {0};
    struct world w;

    world_init(&w, "ipc", &opts, NULL);
    probe_echo(&w, &p, 1);
    cr_assert_eq(probe_wait(&w, &p), 0);
    cr_assert_eq(hf_rpc_client_new(w.cloop, w.url, NULL, &second), 0);
    cr_assert(world_until(&w, one_refused, &w));
    probe_echo(&w, &q, 2);
    cr_assert_eq(probe_wait(&w, &q), 0);
    cr_assert_eq(stats_of(&w).peers, 1);
    hf_rpc_client_free(second);
    world_fini(&w);
}

/* Replies that nobody takes: with a small limit, calls are refused while they lie there, and
 * everything is answered in the end. */
Test(limits, untaken_replies)
{
    enum { N = 64, BYTES = 256 << 10 };
    static const struct hf_rpc_server_opts opts = {.limits.max_peer_reply_bytes = 1 << 20};
    struct probe *p = calloc(N, sizeof(*p));
    unsigned ok = 0, busy = 0;
    struct world w;

    cr_assert_not_null(p);
    world_init(&w, "ipc", &opts, NULL);
    for (unsigned i = 0; i < N; i++)
        probe_read(&w, &p[i], false, BYTES);
    for (unsigned i = 0; i < N; i++) {
        int rc = probe_wait(&w, &p[i]);

        ok += rc == 0;
        busy += rc == HF_E_BUSY;
    }
    cr_assert_eq(ok + busy, N);
    cr_assert_gt(ok, 3);
    cr_assert_gt(busy, 0);
    cr_assert_eq(stats_of(&w).busy, busy);
    world_fini(&w);
    free(p);
}

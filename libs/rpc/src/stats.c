/* SPDX-License-Identifier: Apache-2.0
 *
 * A server's figures and limits, for those who show them.
 */
#include "server_priv.h"

/* Every field of struct hf_rpc_stats. */
#define STATS(X)                                                                                   \
    X(msgs_in, "holdfast_rpc_messages_in_total")                                                   \
    X(msgs_out, "holdfast_rpc_messages_out_total")                                                 \
    X(calls_in, "holdfast_rpc_calls_total")                                                        \
    X(calls_out, "holdfast_rpc_replies_total")                                                     \
    X(bytes_in, "holdfast_rpc_bytes_in_total")                                                     \
    X(bytes_out, "holdfast_rpc_bytes_out_total")                                                   \
    X(bad_frames, "holdfast_rpc_bad_frames_total")                                                 \
    X(inflight, "holdfast_rpc_requests")                                                           \
    X(peers, "holdfast_rpc_connections")                                                           \
    X(request_bytes, "holdfast_rpc_request_bytes")                                                 \
    X(reply_bytes, "holdfast_rpc_reply_bytes")                                                     \
    X(busy, "holdfast_rpc_busy_total")                                                             \
    X(peers_refused, "holdfast_rpc_connections_refused_total")                                     \
    X(peers_stalled, "holdfast_rpc_connections_stalled_total")                                     \
    X(peers_idle, "holdfast_rpc_connections_idle_total")

void hf_rpc_server_stats(const struct hf_rpc_server *s, struct hf_rpc_stats *sum)
{
#define X(field, name) sum->field += __atomic_load_n(&s->stats.field, __ATOMIC_RELAXED);
    STATS(X)
#undef X
}

void hf_rpc_stats_each(const struct hf_rpc_stats *st,
                       void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
#define X(field, name) fn(arg, name, st->field);
    STATS(X)
#undef X
}

void hf_rpc_limits_each(const struct hf_rpc_stats *st, const struct hf_rpc_limits *l, unsigned n,
                        void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                        void *arg)
{
    fn(arg, "connections", st->peers, (uint64_t)l->max_peers * n);
    fn(arg, "requests", st->inflight, (uint64_t)l->max_inflight * n);
    fn(arg, "request bytes", st->request_bytes, (uint64_t)l->max_request_bytes * n);
    fn(arg, "reply bytes", st->reply_bytes, (uint64_t)l->max_reply_bytes * n);
}

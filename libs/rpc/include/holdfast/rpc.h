/* SPDX-License-Identifier: Apache-2.0
 *
 * Batched remote procedure calls over message transports (design: architecture section 4).
 *
 * Messages are the scarce thing, so every message carries many calls: calls queued for a peer in
 * one loop turn leave in one message at the end of the turn; replies are batched the same way and
 * come in any order. Calls are protobuf-c service methods: a client object gives a ProtobufCService
 * for each service, the generated stubs (hf__meta__lookup(...)) send through it; a server
 * dispatches through the generated ProtobufCService vtable it was given. Nobody writes a switch
 * over op numbers.
 *
 * The closure_data given to a generated client stub must be a struct hf_rpc_call *; the
 * closure_data that a server method receives is a struct hf_rpc_req *. Bulk bytes travel beside the
 * protobuf body and are not parsed.
 *
 * Threads: a client or a server belongs to one loop; every function here is called on that loop's
 * thread, every callback comes on it. Transports' own threads are hidden.
 *
 * URLs: inproc://name (between loops of one env), ipc:///path, tcp://127.0.0.1:port (nng's
 * streams); sim://name (simulated env only, see rpc_sim.h). Plain tcp to or on anything but
 * loopback is refused (HF_E_PERM) unless opts.insecure. A client may be given several URLs of one
 * server with spaces between them: each connection attempt takes the first that can be used
 * (inproc names that nobody serves in this process are skipped, then failed ones in turn).
 */
#ifndef HOLDFAST_RPC_H
#define HOLDFAST_RPC_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/arena.h"
#include "holdfast/buf.h"
#include "holdfast/list.h"
#include "holdfast/rt.h"

struct hf_rpc_client;
struct hf_rpc_server;
struct hf_rpc_msg; /* a received message, reference counted; bulk and bodies point into it */

#define HF_RPC_BULK_MAX    (4u << 20) /* bytes of bulk per call */
#define HF_RPC_BODY_MAX    (1u << 20) /* bytes of protobuf body per call */
#define HF_RPC_BATCH_CALLS 64         /* calls per message */
#define HF_RPC_BULK_IOV    8          /* pieces of bulk per call */

/* References to a received message. Any thread. */
void hf_rpc_msg_ref(struct hf_rpc_msg *m);
void hf_rpc_msg_unref(struct hf_rpc_msg *m);

/* ---- client ---- */

struct hf_rpc_client_opts {
    size_t max_outstanding; /* calls not yet answered; beyond it one ends with BUSY. 0 = 8192 */
    bool insecure;          /* allow plain tcp beyond loopback */
};

/* One call. Caller-owned; zero it, fill the inputs, keep it valid until the closure has been
 * called. The closure is called exactly once, never from inside the stub. */
struct hf_rpc_call {
    /* inputs */
    uint64_t timeout_ns; /* from now; 0 = 30 s. At the deadline the call completes with TIMEDOUT */
    uint32_t target;     /* shard number; 0 where a service has no use for it */
    uint64_t session;    /* changes only; 0: no exactly-once for this call */
    uint32_t slot;
    uint64_t sequence;
    struct hf_slice bulk[HF_RPC_BULK_IOV]; /* sent in order; copied once, in the stub */
    unsigned bulk_n;
    void *arg; /* the caller's own */
    /* outputs, valid from the closure on */
    int status; /* 0, what the method said, or CONNREFUSED/CONNRESET/TIMEDOUT/BUSY/CLOSED */
    struct hf_slice reply_bulk; /* into *msg */
    /* The reply's message; take a reference to keep reply and bulk beyond the closure. */
    struct hf_rpc_msg *msg;
    /* private */
    struct {
        struct hf_list link;
        struct hf_rpc_client *client;
        const ProtobufCMessageDescriptor *output;
        ProtobufCClosure closure;
        uint64_t id;
        uint64_t deadline_ns;
        struct hf_loop *waiter; /* hf_rpc_wait runs it */
        bool sent, done;
    } p;
};

/* Connects in the background and again after a loss (back-off 10 ms .. 1 s). Calls made while not
 * connected wait for the connection until their deadline. Calls that were sent when a connection
 * broke complete with CONNRESET; calls not yet sent wait. */
int hf_rpc_client_new(struct hf_loop *loop, const char *url, const struct hf_rpc_client_opts *opts,
                      struct hf_rpc_client **ret);
/* Outstanding calls complete with CLOSED, inside this call. */
void hf_rpc_client_free(struct hf_rpc_client *c);
/* For the generated stubs. Lives as long as the client; one per descriptor, made at the first use.
 */
ProtobufCService *hf_rpc_client_service(struct hf_rpc_client *c,
                                        const ProtobufCServiceDescriptor *d);
/* Completes the call with CANCELED (the server may still run it). */
void hf_rpc_cancel(struct hf_rpc_call *call);
bool hf_rpc_client_connected(const struct hf_rpc_client *c);
/* Counts up at every new connection (to notice a restarted server). */
uint64_t hf_rpc_client_epoch(const struct hf_rpc_client *c);

/* Synchronous use (CLI, tests): runs the loop in the calling thread until the call has completed.
 */
int hf_rpc_wait(struct hf_loop *loop, struct hf_rpc_call *call);

/* ---- server ---- */

/* One call being served. Owned by the rpc library; ends with exactly one hf_rpc_reply*. */
struct hf_rpc_req {
    const ProtobufCServiceDescriptor *service;
    unsigned method;             /* index in service->methods */
    const ProtobufCMessage *msg; /* the parsed body, valid until the reply */
    struct hf_slice bulk;        /* valid until the reply */
    uint32_t target;
    uint64_t session;
    uint32_t slot;
    uint64_t sequence;
    uint64_t deadline_ns;   /* mono; work past it need not be started */
    uint64_t peer;          /* identifies the connection */
    struct hf_arena *arena; /* the request's memory, dies with the reply */
    struct hf_list link;    /* free for the owner's queues until the reply */
    void *user;             /* the same */
};

/* What peers may hold of a server, each 0 = default. */
struct hf_rpc_limits {
    size_t max_peers;         /* connections; more are closed. 4096 */
    size_t max_inflight;      /* calls being served; beyond it receiving pauses. 4096 */
    size_t max_request_bytes; /* bulk of calls being served; beyond it receiving pauses. 256 MiB */
    size_t max_peer_inflight; /* calls of one peer; beyond it they get BUSY. 2048 */
    size_t max_peer_reply_bytes; /* replies that a peer has not taken; beyond it its calls get BUSY,
                                  * beyond twice that it is dropped. 128 MiB */
    size_t max_reply_bytes;      /* the same of all peers: calls get BUSY. 512 MiB */
    uint64_t stall_timeout_ms;   /* a peer that takes no replies is dropped. 30 s */
    uint64_t
        idle_timeout_ms; /* a peer that sends nothing and waits for nothing is dropped. 10 min */
};

/* From a struct that has the keys of rpc_limits.def. */
#define HF_RPC_LIMITS_OF(c)                                                                        \
    {                                                                                              \
        .max_peers = (c)->rpc_max_connections, .max_inflight = (c)->rpc_max_requests,              \
        .max_request_bytes = (c)->rpc_max_request_bytes,                                           \
        .max_peer_inflight = (c)->rpc_max_requests_per_connection,                                 \
        .max_peer_reply_bytes = (c)->rpc_max_reply_bytes_per_connection,                           \
        .max_reply_bytes = (c)->rpc_max_reply_bytes, .stall_timeout_ms = (c)->rpc_stall_timeout,   \
        .idle_timeout_ms = (c)->rpc_idle_timeout                                                   \
    }

struct hf_rpc_server_opts {
    struct hf_rpc_limits limits;
    bool insecure;
    /* Called instead of the service's vtable, if set: the owner queues the request or invokes
     * req->service's vtable itself with hf_rpc_req_invoke. */
    void (*dispatch)(void *arg, struct hf_rpc_req *req);
    void *arg;
};

int hf_rpc_server_new(struct hf_loop *loop, const struct hf_rpc_server_opts *opts,
                      struct hf_rpc_server **ret);
/* impl: a generated HF__X__INIT(...) structure of the caller, which must outlive the server. */
int hf_rpc_server_add(struct hf_rpc_server *s, ProtobufCService *impl);
/* May be called for several URLs. ADDRINUSE, INVAL, PERM (see top), IO. For tcp port 0 and after a
 * successful listen, hf_rpc_server_url tells the real URL of the nth listener. */
int hf_rpc_server_listen(struct hf_rpc_server *s, const char *url);
const char *hf_rpc_server_url(const struct hf_rpc_server *s, unsigned nth);
/* Stops receiving; requests not yet answered may still be answered (dropped) until free. */
void hf_rpc_server_stop(struct hf_rpc_server *s);
/* All requests must have been answered or abandoned with hf_rpc_req_drop. */
void hf_rpc_server_free(struct hf_rpc_server *s);

/* Calls the generated method of the service that the request names, on the given implementation.
 * The closure given to the method replies with status 0; methods use hf_rpc_reply for anything
 * else. */
void hf_rpc_req_invoke(struct hf_rpc_req *req, ProtobufCService *impl);
/* body may be NULL (empty). bulk is copied. The request is gone afterwards. */
void hf_rpc_reply(struct hf_rpc_req *req, int status, const ProtobufCMessage *body,
                  const struct hf_slice *bulk, unsigned bulk_n);
/* The same with a body that is already packed (stored replies). */
void hf_rpc_reply_packed(struct hf_rpc_req *req, int status, struct hf_slice body,
                         const struct hf_slice *bulk, unsigned bulk_n);
/* Room for `len` bytes of bulk inside the reply's own message, to be filled before the reply (by
 * any thread, e.g. a pread), so that data is not copied again. NULL: no memory. Then reply with
 * hf_rpc_reply_inplace, which sends the first `used` bytes of it. The body must pack to <= 1 KiB.
 */
void *hf_rpc_reply_bulk(struct hf_rpc_req *req, size_t len);
void hf_rpc_reply_inplace(struct hf_rpc_req *req, int status, const ProtobufCMessage *body,
                          size_t used);
/* Ends the request without an answer (the connection is gone, the server stops). */
void hf_rpc_req_drop(struct hf_rpc_req *req);

struct hf_rpc_stats {
    uint64_t msgs_in, msgs_out, calls_in, calls_out, bytes_in, bytes_out, bad_frames, inflight,
        peers, request_bytes, reply_bytes;
    uint64_t busy, peers_refused, peers_stalled, peers_idle; /* what the limits did */
};
/* Any thread. Adds to *sum, so that the servers of a service come in one. */
void hf_rpc_server_stats(const struct hf_rpc_server *s, struct hf_rpc_stats *sum);
/* Name ("holdfast_rpc_calls_total") and value of each. */
void hf_rpc_stats_each(const struct hf_rpc_stats *st,
                       void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
/* The limits that fill up, of n servers together: name, what is used, what is allowed. */
void hf_rpc_limits_each(const struct hf_rpc_stats *st, const struct hf_rpc_limits *l, unsigned n,
                        void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                        void *arg);
/* With the defaults filled in. */
const struct hf_rpc_limits *hf_rpc_server_limits(const struct hf_rpc_server *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the serving side: server.c (peers, what is pending, life) and server_req.c (requests
 * and replies). All of it belongs to the server's loop.
 */
#ifndef HOLDFAST_SERVER_PRIV_H
#define HOLDFAST_SERVER_PRIV_H

#include "chan.h"
#include "holdfast/map.h"

#define SERVICES_MAX  16u
#define LISTENERS_MAX 8u
#define URL_SIZE      256u

struct peer {
    struct chan chan;
    struct hf_rpc_server *server;
    uint64_t id;
    size_t refs; /* requests, and one while connected */
    bool gone;
    struct hf_list dirty;    /* of server->dirty: has something to send */
    struct hf_list link;     /* of server->peers */
    uint32_t stall_acked;    /* what it had acknowledged when the stall began */
    uint64_t stall_since_ns; /* 0: it keeps up */
    uint64_t active_ns;      /* its last message, or the last answer to it */
    size_t inflight;         /* its calls being served */
    size_t counted;          /* its part of server->reply_bytes */
};

struct request {
    struct hf_rpc_req pub;
    struct hf_rpc_server *server;
    struct peer *peer;
    uint64_t id;
    struct hf_rpc_msg *msg;     /* what pub.bulk points into */
    struct hf_rpc_msg *inplace; /* from hf_rpc_reply_bulk */
    size_t inplace_len;
    struct hf_arena arena;
    struct request *next_free;
};

struct service {
    uint32_t id;
    ProtobufCService *impl;
};

struct hf_rpc_server {
    struct hf_loop *loop;
    struct hf_tr *tr[HF_TR_KINDS]; /* opened by the first URL of the kind */
    bool stopped;
    struct hf_rpc_server_opts opts;
    struct service services[SERVICES_MAX];
    unsigned nservices;
    char urls[LISTENERS_MAX][URL_SIZE];
    unsigned nurls;

    struct hf_map by_id;  /* connected peers */
    struct hf_list peers; /* the same */
    struct hf_list dirty;
    struct hf_msgq pending;
    struct hf_wire_reader reader; /* of the first pending message */
    bool paused, pumping;
    struct request *free_reqs;
    size_t nfree;
    struct hf_task turn_end;
    struct hf_timer stall_timer, idle_timer;
    struct hf_rpc_stats stats;
};

static inline uint64_t srv_now_ns(const struct hf_rpc_server *s)
{
    return hf_env_mono_ns(hf_loop_env(s->loop));
}

/* Statistics have one writer, the server's loop, and readers anywhere. */
static inline void srv_add(uint64_t *m, uint64_t n)
{
    __atomic_store_n(m, *m + n, __ATOMIC_RELAXED);
}

void srv_peer_unref(struct peer *p);
/* Ends its connection and forgets at once what is held for it; the caller holds a reference or does
 * not touch it again. */
void srv_drop(struct peer *p);
/* What is held for the peer has changed. */
void srv_recount(struct peer *p);
/* The peer has something to be sent at the end of the turn. */
void srv_mark_dirty(struct peer *p);

/* NULL: none. */
ProtobufCService *srv_find_service(const struct hf_rpc_server *s, uint32_t id);
/* Makes a request of an entry of m and gives it to its method, or refuses it. */
void srv_dispatch(struct peer *p, struct hf_rpc_msg *m, const struct hf_wire_entry *e,
                  struct hf_slice body, struct hf_slice bulk);

#endif

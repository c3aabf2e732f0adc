/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the transport over nng's streams: transport_nng.c (dialing, accepting, events on the
 * loop) and nng_conn.c (connections: bytes into messages). The essay is in transport_nng.c.
 */
#ifndef HOLDFAST_TRANSPORT_NNG_H
#define HOLDFAST_TRANSPORT_NNG_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "holdfast/map.h"
#include "transport.h"

#define QUEUE_MSGS    64u
#define QUEUE_BYTES   ((size_t)16 << 20)
#define LISTENERS_MAX 8u
#define BUF_BYTES     ((size_t)32 << 10)

enum kind { KIND_MSG, KIND_UP, KIND_DOWN, KIND_RETRY };

/* Guarded by mu, but for what the loop's thread alone frees. */
struct conn {
    struct hf_list link; /* of tr->conns */
    struct st_tr *tr;
    uint64_t id;
    nng_stream *stream;
    nng_aio *rx, *tx;
    bool receiving, sending, closed;
    bool deaf;                  /* has sent what is no frame */
    struct hf_rpc_msg up, down; /* events, queued among the messages */

    size_t have;             /* bytes in buf */
    struct hf_rpc_msg *part; /* a message that is being received in place */
    size_t part_have;
    struct hf_msgq sendq;
    size_t sent; /* bytes of the first message in sendq */
    uint8_t buf[BUF_BYTES];
};

struct listener {
    struct st_tr *tr;
    nng_stream_listener *l;
    nng_aio *aio;
    bool accepting;
};

struct st_tr {
    struct hf_tr base;
    struct hf_loop *loop;
    bool server;
    struct hf_task task;
    struct hf_timer retry_timer;
    uint64_t backoff_ns;
    struct hf_msgq draining; /* loop thread only, as the next two */
    bool in_drain, destroyed;
    nng_stream_dialer *dialer;
    nng_aio *dial_aio;

    pthread_mutex_t mu; /* guards all below, and the connections */
    struct listener listeners[LISTENERS_MAX];
    unsigned nlisteners;
    struct hf_list conns;
    struct hf_map by_id;
    uint64_t next_id;
    struct hf_msgq queue;
    struct hf_rpc_msg retry; /* event: dial or accept again later */
    bool retry_queued;
    size_t queued_msgs, queued_bytes; /* received, not yet drained */
    size_t part_bytes;                /* of messages that are being received in place */
    bool posted, paused, stopping;
};

static inline void st_lock(struct st_tr *t)
{
    HF_ASSERT(pthread_mutex_lock(&t->mu) == 0);
}

static inline void st_unlock(struct st_tr *t)
{
    HF_ASSERT(pthread_mutex_unlock(&t->mu) == 0);
}

/* With mu held: queues an event or message for the loop. */
void st_push(struct st_tr *t, struct hf_rpc_msg *m);

/* Takes the stream. Without mu. */
void st_conn_new(struct st_tr *t, nng_stream *stream);
/* With mu held. Starts the connection's end. */
void st_conn_close(struct conn *c);
/* With mu held. Starts the next operation, if none is under way and there is something to do. */
void st_conn_receive(struct conn *c);
void st_conn_send(struct conn *c);
/* Without mu; nothing of the connection is under way or queued. */
void st_conn_free(struct conn *c);

#endif

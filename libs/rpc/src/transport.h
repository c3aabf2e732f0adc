/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rpc library wants from a transport: whole messages between a server and its peers, in
 * order, or the loss of the connection. One instance serves one client (one peer at a time) or one
 * server (many peers). All calls and all events are on the owner's loop thread; an event is never
 * raised from inside a call.
 */
#ifndef HOLDFAST_RPC_TRANSPORT_H
#define HOLDFAST_RPC_TRANSPORT_H

#include <stdatomic.h>

#include "holdfast/arena.h"
#include "holdfast/rpc.h"

/* A message, received or being built. data has room for len bytes of frame. */
struct hf_tr;

struct hf_rpc_msg {
    atomic_uint refs;
    uint8_t kind;            /* the transport's */
    struct hf_rpc_msg *next; /* for whoever queues it */
    uint64_t peer;           /* received: from whom */
    uint8_t *data;           /* 4 bytes past a multiple of 16 */
    size_t len;
    void *impl; /* the transport's */
    void (*impl_free)(void *impl);
    struct hf_arena arena; /* what was unpacked from it; the loop thread's until it is shared */
};

struct hf_msgq {
    struct hf_rpc_msg *head, *tail;
    size_t n;
};

void hf_msgq_push(struct hf_msgq *q, struct hf_rpc_msg *m);
struct hf_rpc_msg *hf_msgq_pop(struct hf_msgq *q); /* NULL if empty */
void hf_msgq_clear(struct hf_msgq *q);
/* A message with one reference around what the transport has. NULL: no memory, impl is untouched.
 */
struct hf_rpc_msg *hf_rpc_msg_wrap(void *impl, void (*impl_free)(void *impl), uint8_t *data,
                                   size_t len);

/* One in plain memory. */
struct hf_rpc_msg *hf_rpc_msg_plain(struct hf_tr *t, size_t len);

/* Peers are numbers that a transport does not use again soon, never 0; nng's are below 2^32, the
 * others' above. */
struct hf_tr_events {
    void (*up)(void *arg, struct hf_tr *t, uint64_t peer);
    void (*down)(void *arg, uint64_t peer); /* once for each up; the last event of that peer */
    void (*recv)(void *arg, uint64_t peer, struct hf_rpc_msg *m); /* takes the reference */
};

struct hf_tr {
    const struct hf_tr_ops *ops;
    const struct hf_tr_events *ev;
    void *arg;
};

struct hf_tr_ops {
    /* The real URL (a chosen port filled in) in ret_url. ADDRINUSE, INVAL, IO, NOMEM. */
    int (*listen)(struct hf_tr *t, const char *url, char *ret_url, size_t ret_size);
    /* Connects in the background, again and again. */
    int (*dial)(struct hf_tr *t, const char *url);
    /* A message to fill; NULL: no memory. */
    struct hf_rpc_msg *(*msg_new)(struct hf_tr *t, size_t len);
    /* Takes the message (the only reference). m->len may have been reduced. What was given before
     * is sent before. To a peer that is gone: dropped. */
    void (*send)(struct hf_tr *t, uint64_t peer, struct hf_rpc_msg *m);
    /* While paused a bounded number of messages may still arrive. */
    void (*pause)(struct hf_tr *t, bool paused);
    /* Ends the connection; `down` follows. */
    void (*drop)(struct hf_tr *t, uint64_t peer);
    /* No events any more; blocks until the transport's threads have let go; frees t. */
    void (*close)(struct hf_tr *t);
};

int hf_tr_nng_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                   struct hf_tr **ret);
int hf_tr_sim_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                   struct hf_tr **ret);
int hf_tr_inproc_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
                      struct hf_tr **ret);

/* Whether somebody of this env listens there now. */
bool hf_tr_inproc_served(struct hf_env *env, const char *url);

enum hf_tr_kind { HF_TR_NNG, HF_TR_INPROC, HF_TR_SIM, HF_TR_KINDS };
/* The transport of a URL that hf_rpc_url_check has passed. */
enum hf_tr_kind hf_tr_kind(const char *url);
int hf_tr_open(enum hf_tr_kind kind, struct hf_loop *loop, bool server,
               const struct hf_tr_events *ev, void *arg, struct hf_tr **ret);

/* url.c: INVAL for a URL that the env's transports do not speak, PERM for plain tcp beyond
 * loopback. */
int hf_rpc_url_check(const char *url, bool sim, bool insecure);
/* Of several URLs of one server, with spaces between them, the first that can be used from here:
 * inproc names that nobody serves are passed over. Every one must pass the check. */
int hf_rpc_url_pick(struct hf_loop *loop, const char *urls, bool insecure, char *ret, size_t size);

#endif

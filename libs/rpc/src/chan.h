/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction pair of a connection: gathers entries into messages, numbers them, and keeps the
 * number of messages under way below a window. Used by a client for its server and by a server for
 * each of its peers. Loop thread only.
 *
 * Why a window: it bounds what a peer that does not read can make the other keep, and what one turn
 * can put on the wire before anything comes back. Each side sends at most CHAN_WINDOW messages that
 * the other has not yet said to have taken (`acked` in every frame, or in an empty frame of its own
 * when there is nothing to send). The numbering turns any message lost or doubled below us into the
 * loss of the connection, or nothing: a call is then failed at once instead of at its deadline.
 */
#ifndef HOLDFAST_RPC_CHAN_H
#define HOLDFAST_RPC_CHAN_H

#include "holdfast/wire.h"
#include "transport.h"

#define CHAN_WINDOW       16u               /* numbered messages under way */
#define CHAN_ACK_AFTER    (CHAN_WINDOW / 2) /* taken but not yet said so: send an empty frame */
#define CHAN_GATHER_BYTES ((size_t)256 << 10)
#define CHAN_OWN_BYTES    ((size_t)16 << 10) /* an entry this big gets a message of its own */

struct chan {
    struct hf_tr *tr;
    struct hf_buf gather; /* entries, in wire form, for the next message */
    unsigned gathered;
    struct hf_msgq ready; /* complete but for the header's numbers */
    size_t bytes;         /* in gather and ready */
    uint32_t sent, acked; /* numbers of the last message sent, and taken by the peer */
    uint32_t received;    /* the last message that came from the peer */
    uint32_t taken, told; /* how many of those are dealt with, and what the peer knows of that */
    size_t lens[CHAN_WINDOW]; /* of the messages under way, by number */
    size_t under_way_bytes;
};

/* The body of an entry: one of the two, or none. */
struct chan_body {
    const ProtobufCMessage *msg;
    struct hf_slice packed;
};

void chan_init(struct chan *c, struct hf_tr *tr);
void chan_fini(struct chan *c);
/* A new connection: numbers start again; what is queued stays. */
void chan_restart(struct chan *c);
/* Queues one entry; its lengths are filled in here. TOOBIG (nothing queued), NOMEM. */
int chan_add(struct chan *c, struct hf_wire_entry *e, const struct chan_body *body,
             const struct hf_slice *bulk, unsigned bulk_n);
/* Queues a message that holds one entry already. */
void chan_add_msg(struct chan *c, struct hf_rpc_msg *m);
static inline bool chan_pending(const struct chan *c)
{
    return c->gathered > 0 || c->ready.n > 0;
}
static inline uint32_t chan_under_way(const struct chan *c)
{
    return c->sent - c->acked;
}
/* What is kept for a peer that has not taken it. */
static inline size_t chan_held_bytes(const struct chan *c)
{
    return c->bytes + c->under_way_bytes;
}
/* The next message that may be sent now, without numbers; NULL: none. */
struct hf_rpc_msg *chan_next(struct chan *c);
/* Numbers a message from chan_next and gives it to the transport. */
void chan_send(struct chan *c, uint64_t peer, struct hf_rpc_msg *m);
/* The entries of a message from chan_next. */
struct hf_wire_reader chan_entries(const struct hf_rpc_msg *m);
/* An empty frame if one is due. */
void chan_tell(struct chan *c, uint64_t peer);
/* An empty frame in any case: the first thing that a client says on a connection. */
void chan_hello(struct chan *c, uint64_t peer);
/* Checks a received frame's numbers: 1 new, 0 to be ignored (empty or seen before), PROTO a message
 * is missing. The message counts as taken once chan_took is called, in order. */
int chan_check(struct chan *c, const struct hf_wire_frame *f);
static inline void chan_took(struct chan *c)
{
    c->taken++;
}

/* A ProtobufCAllocator on an arena. */
ProtobufCAllocator chan_allocator(struct hf_arena *a);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of one shard (architecture section 5).
 *
 *            call -> run in the open write transaction -> [batch: redo + events + parked replies]
 *                                                             | end of turn
 *                                                             v
 *                     log append (in flight, FIFO) -> durable -> replies released in order
 *
 *  - An operation runs once, here, on the shard's thread; it changes nothing unless it succeeds.
 *  - The batch that is open collects the operations of one loop turn. At the end of the turn its
 * redo and events become one log record. The next batch opens at once.
 *  - A reply to a change is parked on its batch; a reply to a read that saw a change which is not
 * yet durable is parked on that change's batch. Everything else leaves at once.
 *  - What a lazy change did is not waited for by readers either: it may be lost until a COMMIT,
 * which waits for everything before it.
 *  - A batch that holds only lazy changes (UNSTABLE writes, access times) and no parked reply may
 * stay open for LAZY_MS, so that a stream of such writes does not cost an fsync each.
 *  - A checkpoint holds only what is durable in the log: when one is due, the open batch is sent,
 * calls that may change something queue up, and when no record is in flight the transaction is
 * committed.
 *
 * Everything here belongs to the shard's loop thread.
 */
#ifndef HOLDFAST_META_SHARD_H
#define HOLDFAST_META_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/fault.h"
#include "holdfast/list.h"
#include "holdfast/log.h"
#include "holdfast/logger.h"
#include "holdfast/meta.h"
#include "holdfast/metrics.h"
#include "holdfast/rpc.h"
#include "holdfast/rt.h"
#include "holdfast/store.h"

struct meta_metrics {
#define X(field, kind, name, help) uint64_t field;
#include "metrics.def"
#undef X
};

/* One batch of operations: one log record. */
struct batch {
    struct shard *shard;
    struct hf_list link; /* shard->inflight */
    uint64_t seq;
    struct hf_list parked; /* struct parked: replies that leave when this is durable */
    struct hf_buf events;  /* the record's first fields, packed */
    struct hf_buf redo;
    uint8_t redo_head[16]; /* tag and length of the record's redo field */
    bool urgent;           /* somebody waits for it: send at the end of this turn */
    struct hf_log_append append;
};

struct shard_conf {
    struct hf_loop *loop;
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct meta_metrics *metrics; /* the service's, shared by its shards */
    struct hf_log *wal;           /* this shard's log */
    const char *dir;              /* this shard's LMDB directory */
    uint32_t id;
    uint32_t inline_max;
    uint64_t checkpoint_changes;
    uint64_t checkpoint_idle_ns;
    uint64_t map_bytes, reserve_bytes;
    bool noatime;
    void (*fatal)(void *arg, const char *what);
    void *fatal_arg;
};

struct shard {
    struct shard_conf conf;
    struct hf_store *store;
    struct hf_meta *meta;
    uint64_t boot;           /* random per start: part of write verifiers */
    int64_t now_ns;          /* wall clock that never goes back */
    uint64_t random;         /* state of the generator of object generations; seeded at start */
    struct batch *open;      /* NULL: nothing changed since the last one was sent */
    struct hf_list inflight; /* batches sent to the log and not yet durable, oldest first */
    struct hf_list spare;    /* batches for reuse */
    uint64_t next_seq;       /* of the batch that changes go to now */
    uint64_t last_pos;       /* log position of the newest batch sent */
    bool checkpointing;      /* waits for in-flight records; changes queue */
    bool dead;               /* met an I/O error: answers nothing any more */
    struct hf_list queue;    /* struct hf_rpc_req: calls that wait for the checkpoint */
    uint64_t changes_limit;  /* adapts so that a checkpoint stays short */
    uint64_t checkpoint_end; /* monotonic ns of the last one */
    uint64_t last_change_ns;
    void (*drained)(void *arg); /* set by shard_drain */
    void *drained_arg;
    struct hf_task flush;
    struct hf_timer lazy_timer;
    struct hf_timer idle_timer;
};

/* Opens the store and replays the log; formats a new shard if the directory holds none and `format`
 * is given (NOENT otherwise). Blocking; before the loop runs. err: one line. */
int shard_open(const struct shard_conf *c, const struct hf_meta_format *format, struct shard **ret,
               char *err, size_t err_bytes);
/* After shard_drain (or a failed start). */
void shard_free(struct shard *s);

/* Runs or queues one call of the Meta service; replies now or later. */
void shard_call(struct shard *s, struct hf_rpc_req *req);

/* A change made by the service itself (garbage collection): fn runs in the open transaction and
 * becomes part of the batch; nobody waits for it. False while a checkpoint is pending: try again
 * later. */
bool shard_change(struct shard *s, int (*fn)(struct shard *s, void *arg), void *arg);
/* True if nothing that was read since hf_store_seen_reset depends on a change that is not yet
 * durable. */
bool shard_seen_durable(const struct shard *s);

/* Asks for a checkpoint; done(arg) is called when it has been made (at once if nothing changed
 * since the last one). One asker at a time; later changes are not waited for. */
void shard_drain(struct shard *s, void (*done)(void *arg), void *arg);
int64_t shard_now_ns(struct shard *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard's log: the ordered, durable sequence of its changes. The log is the truth; the store is
 * its checkpointed view. Drivers stand behind struct hf_log_ops: `wal` here, `kafka` later.
 *
 * Positions are dense within a shard, from 1. A record is atomic, at most HF_LOG_RECORD_MAX bytes.
 */
#ifndef HOLDFAST_LOG_H
#define HOLDFAST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/fault.h"
#include "holdfast/rt.h"

#define HF_LOG_RECORD_MAX (512u << 10)

struct hf_log;

/* One append in flight. Caller-owned, valid until done.fn was called on `loop`. */
struct hf_log_append {
    struct hf_task done; /* set done.fn; posted to loop when durable or lost */
    struct hf_loop *loop;
    struct hf_slice parts[3]; /* the record is their concatenation; valid until done */
    unsigned nparts;
    /* results */
    int status;   /* 0: durable. IO: lost (it may or may not come back at the next start) and so is
                   * every later one; the owner stops. NOSPC: not written; nothing later of any
                   * shard is written either, so that positions stay dense; the owner stops */
    uint64_t pos; /* assigned when queued */
    /* private */
    struct hf_log_append *next;
    struct hf_log *log;
};

struct hf_log_ops {
    /* Queue; completions come in order of position. Owner's thread. TOOBIG. */
    int (*append)(struct hf_log *l, struct hf_log_append *a);
    /* Blocking, at start: calls fn for every record from `from` on, in order, until it returns
     * non-zero, which is returned. NOENT: the log does not go back (or forward) to `from`; end() is
     * fine. CORRUPT, IO. Owner's thread; sees what was durable when it was called. */
    int (*read)(struct hf_log *l, uint64_t from,
                int (*fn)(void *arg, uint64_t pos, struct hf_slice rec), void *arg);
    /* The next position to be assigned. */
    uint64_t (*end)(struct hf_log *l);
    /* Records below `upto` are no longer needed by this shard. Any thread. */
    void (*trim)(struct hf_log *l, uint64_t upto);
    /* false: only appends that free space should go on. Any thread. */
    bool (*may_grow)(struct hf_log *l);
};

struct hf_log {
    const struct hf_log_ops *ops;
};

static inline int hf_log_append(struct hf_log *l, struct hf_log_append *a)
{
    return l->ops->append(l, a);
}
static inline int hf_log_read(struct hf_log *l, uint64_t from,
                              int (*fn)(void *arg, uint64_t pos, struct hf_slice rec), void *arg)
{
    return l->ops->read(l, from, fn, arg);
}
static inline uint64_t hf_log_end(struct hf_log *l)
{
    return l->ops->end(l);
}
static inline void hf_log_trim(struct hf_log *l, uint64_t upto)
{
    l->ops->trim(l, upto);
}
static inline bool hf_log_may_grow(struct hf_log *l)
{
    return l->ops->may_grow(l);
}

/* ---- wal: one file set per process, shared by its shards ---- */

struct hf_wal;

struct hf_wal_opts {
    const char *dir;     /* created if missing */
    unsigned shards;     /* shard numbers 0..shards-1 */
    uint64_t file_bytes; /* preallocated size of each file, 16 KiB..1 GiB; 0 = 64 MiB. An append
                          * that does not fit into one file: TOOBIG */
    uint64_t
        max_bytes; /* of all files, at least two; may_grow turns false short of it; 0 = 4 GiB */
    uint64_t reserve_bytes; /* room kept for removals, in max_bytes and on the file system; 0 = 128
                               MiB */
    struct hf_faults *faults; /* may be NULL */
};

/* Scans the files. A torn tail is cut: a bad record after which there is nothing valid but parts of
 * the same, never acknowledged, write. A bad record that had been durable: CORRUPT, nothing is
 * changed, *err says file, offset and shard; CORRUPT also for a missing file or position. VERSION
 * for another format. CONF: fewer shards than the files know. BUSY: in use. INVAL: options. Starts
 * the writer thread, and one that prepares files. On a simulated env there are no threads: append
 * writes at once. err: >= 512 bytes, may be NULL. */
int hf_wal_open(struct hf_env *env, const struct hf_wal_opts *o, struct hf_wal **ret, char *err,
                size_t err_bytes);
/* Waits for queued appends. Their done tasks have been posted when it returns. */
void hf_wal_close(struct hf_wal *w);
/* Lives as long as the wal. */
struct hf_log *hf_wal_log(struct hf_wal *w, unsigned shard);

struct hf_wal_stats {
    uint64_t records, bytes, fsyncs, files, used_bytes, recycled;
    uint64_t fsync_ns_sum, fsync_ns_max;
};
void hf_wal_stats(struct hf_wal *w, struct hf_wal_stats *ret);

#endif

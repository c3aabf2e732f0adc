/* SPDX-License-Identifier: Apache-2.0
 *
 * The metadata service: shards of a file system, each an LMDB environment plus a log, served over
 * RPC.
 *
 * Threads: `threads` loops; shard n belongs to loop n % threads and to nobody else. Each loop has
 * its own RPC server, so a call arrives on the thread that owns its shard. One more thread writes
 * the wal.
 */
#ifndef HOLDFAST_SVC_META_H
#define HOLDFAST_SVC_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/fault.h"
#include "holdfast/logger.h"
#include "holdfast/rpc.h"
#include "holdfast/rt.h"
#include "holdfast/wire/meta.pb-c.h"

struct hf_metasvc;

struct hf_metasvc_opts {
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults; /* may be NULL */
    const char *dir;          /* holds shards/NNNNN/ and wal/ */
    unsigned threads;         /* 0 = 1 */
    /* Each thread's RPC server listens on every URL of this list; "%u" in it becomes the thread's
     * number. The first one of thread t is what the cluster map says of its shards, or map_url if
     * that is set: several URLs with spaces between them. */
    const char *const *listen;
    unsigned nlisten;
    const char *map_url;
    bool insecure;               /* plain tcp beyond loopback */
    struct hf_rpc_limits limits; /* of each thread's server */
    /* What a new file system is made of, and where pools and segments are reachable at this start
     * (a change of URLs makes a new map version): fs_name, fsid, handle_key, shard_count,
     * inline_max, pools, segments, exports (only used when the file system is made). */
    const Hf__MapGetRep *map;
    uint64_t checkpoint_changes;  /* puts and deletes between checkpoints under load; 0 = 8192 */
    uint64_t checkpoint_idle_ms;  /* 0 = 300 */
    uint64_t map_bytes;           /* LMDB size limit of a shard; 0 = 64 GiB */
    uint64_t store_reserve_bytes; /* 0 = 64 MiB */
    uint64_t wal_file_bytes, wal_max_bytes, wal_reserve_bytes; /* 0 = the log library's defaults */
    bool noatime;
    /* Called once, on any thread, when a shard met an error that it must not survive (log or LMDB
     * I/O). The process is expected to end without touching the service again. NULL: abort(). */
    void (*fatal)(void *arg, const char *what);
    void *arg;
};

/* Opens or makes every shard, replays logs, starts serving. err: >= 512 bytes, one line.
 * VERSION, CORRUPT, IO, ADDRINUSE, ACCES, ... ; nothing on disk is changed on VERSION and CORRUPT.
 */
int hf_metasvc_new(const struct hf_metasvc_opts *o, struct hf_metasvc **ret, char *err,
                   size_t err_bytes);
/* Stops serving, waits for what is in flight, checkpoints every shard, closes. */
void hf_metasvc_free(struct hf_metasvc *s);
/* The URL of thread 0 (shard 0). */
const char *hf_metasvc_url(const struct hf_metasvc *s);
/* Name and value of each counter, any thread. */
void hf_metasvc_counters(const struct hf_metasvc *s,
                         void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
/* What fills up: name, used, allowed. Any thread. */
void hf_metasvc_limits(const struct hf_metasvc *s,
                       void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                       void *arg);

/* Checks every shard on a fresh checkpoint, and the chunks of the segments against it. Blocking;
 * any thread but the service's own. Findings come through fn. The totals and the number of problems
 * in *ret (findings are not filled). */
int hf_metasvc_fsck(struct hf_metasvc *s, bool chunks,
                    void (*fn)(void *arg, const Hf__FsckFinding *f), void *arg, Hf__FsckRep *ret,
                    char *err, size_t err_bytes);

#endif

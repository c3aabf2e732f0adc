/* SPDX-License-Identifier: Apache-2.0
 *
 * The namespace of one shard: operations on a store transaction. Pure: knows no network, no log, no
 * threads, no clock; what it needs comes with the operation.
 *
 * The operations are the methods of the generated Hf__Meta_Service (meta.proto): the shard engine
 * invokes them on hf_meta_service() with a struct hf_meta_op as closure_data. Every method calls
 * its closure exactly once, synchronously, also on errors (the body then holds the attributes that
 * are known); the status is in op->status. All checks come before the first write, so an operation
 * that fails has changed nothing and there is no rollback.
 *
 * Permission checks live here and nowhere else: POSIX owner/group/other with up to 16+ groups,
 * ACLs, uid 0 as superuser, sticky directories, setuid/setgid clearing, BSD/SysV group inheritance
 * (setgid directory), owner override for reads and writes that ask for it.
 */
#ifndef HOLDFAST_META_H
#define HOLDFAST_META_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/arena.h"
#include "holdfast/buf.h"
#include "holdfast/store.h"
#include "holdfast/wire/meta.pb-c.h"
#include "holdfast/wire/record.pb-c.h"

#define HF_META_FORMAT      1u
#define HF_META_ROOT_INO    2u /* shard 0, local 2 */
#define HF_META_NAME_MAX    255u
#define HF_META_LINK_MAX    65000u
#define HF_META_SYMLINK_MAX 4095u
#define HF_META_FILE_MAX    (UINT64_C(1) << 53) /* bytes; beyond it FBIG */

/* For hf_store_open. */
extern const char *const hf_meta_tables[];
extern const unsigned hf_meta_ntables;

static inline uint32_t hf_meta_ino_shard(uint64_t ino)
{
    return (uint32_t)(ino >> 47) & 0xffffu;
}

struct hf_meta;

struct hf_meta_op {
    /* given by the engine */
    int64_t now_ns;         /* wall clock; the engine makes it monotonic */
    uint64_t random;        /* fresh for every operation */
    bool may_grow;          /* false: answer NOSPC to what needs space */
    struct hf_slice bulk;   /* WriteReq's data, SetxattrReq's value */
    struct hf_arena *arena; /* for replies; dies with the operation */
    uint64_t boot;          /* this shard's start, for write verifiers */
    uint64_t session;       /* of the caller; 0: none */
    /* given back, before the closure is called */
    int status;
    struct hf_slice reply_bulk; /* in the arena */
    Hf__Event event;            /* op != EV_NONE: what happened; bytes in the arena */
    /* While a lazy operation writes, hf_store_untracked is on; the engine turns it off again. */
    bool lazy;    /* the reply need not wait for this operation's own change to be durable
                   * (UNSTABLE writes, access times) */
    bool barrier; /* the reply waits for every change made so far to be durable (COMMIT) */
    void *user;   /* the engine's */
};

/* Writes a new, empty shard into a store that has just been created: format row, counters, the key
 * of the cookie hash; in shard 0 also the root directory (mode 0755, root:root) and the cluster
 * map. */
struct hf_meta_format {
    uint32_t shard;
    uint8_t cookie_key[16]; /* one per file system */
    int64_t now_ns;
    uint32_t root_gen;
    const Hf__MapGetRep *map; /* shard 0 only: the first map, version 1; exports included */
};
int hf_meta_format(struct hf_store *store, const struct hf_meta_format *f);
/* NOENT: the store holds no shard yet. */
int hf_meta_is_formatted(struct hf_store *store);

struct hf_meta_opts {
    struct hf_store *store; /* borrowed */
    uint32_t shard;
    uint32_t inline_max; /* bytes; at most 32 KiB */
    bool noatime; /* never update access times on reads; default is relatime: when the old one
                   * is not newer than mtime or ctime, or older than 24 h */
};
/* VERSION, CORRUPT, NOENT; INVAL: the store holds another shard. Loads counters into memory; call
 * again after replaying redo. */
int hf_meta_open(const struct hf_meta_opts *o, struct hf_meta **ret);
void hf_meta_free(struct hf_meta *m);
ProtobufCService *hf_meta_service(struct hf_meta *m);
/* Pools and segments for new layouts (copied). Call before the first write and at every change. */
int hf_meta_set_map(struct hf_meta *m, const Hf__MapGetRep *map);
/* Free bytes of a segment, for weighted allocation. Unknown segments are ignored. */
void hf_meta_set_segment_free(struct hf_meta *m, uint32_t segment, uint64_t free_bytes);
/* Shard 0: the stored map, unpacked into the arena. */
int hf_meta_map(struct hf_meta *m, struct hf_arena *a, Hf__MapGetRep **ret);

/* Shard 0: makes shards, pools and segments of `map` those of the stored map, as its next version;
 * exports, names and keys stay. A change like any other: captured in the redo. */
int hf_meta_map_put(struct hf_meta *m, const Hf__MapGetRep *map);

/* ---- exactly once: the reply slots of sessions ---- */

enum hf_meta_slot { HF_SLOT_RUN, HF_SLOT_REPLAY };
/* RUN: first time: any sequence above the stored one; gaps are normal, for an operation that
 * changed nothing (failed, or had nothing to do) is not stored and yet uses its sequence up.
 * REPLAY: *ret_status and *ret_reply (valid until the next store call) are the stored answer.
 * SEQUENCE: older than the stored one; NOSESSION; INVAL: slot out of range. */
int hf_meta_slot_check(struct hf_meta *m, uint64_t session, uint32_t slot, uint64_t sequence,
                       enum hf_meta_slot *ret, int *ret_status, struct hf_slice *ret_reply);
/* In the same transaction as the change. reply: the packed body (<= 4 KiB). */
int hf_meta_slot_store(struct hf_meta *m, uint64_t session, uint32_t slot, uint64_t sequence,
                       int status, struct hf_slice reply);

/* ---- opens whose session is gone, objects that nothing holds: found by looking, ended by a change
 * ---- */

/* A session with opens that has not renewed itself: 0, or NOENT for now. Looks at a bounded number;
 * *cursor is the caller's, 0 at first. */
int hf_meta_opens_expired(struct hf_meta *m, int64_t now_ns, uint64_t *cursor, uint64_t *ret);
/* Ends up to max of its opens; objects that nothing else holds go with them. */
int hf_meta_opens_expire(struct hf_meta *m, uint64_t session, int64_t now_ns, unsigned max);
/* An object without names that nobody has open; likewise. */
int hf_meta_orphans_next(struct hf_meta *m, int64_t now_ns, uint64_t *cursor, uint64_t *ret);
int hf_meta_orphan_del(struct hf_meta *m, uint64_t ino, int64_t now_ns);
/* A file with an append to its chunks that has run out: 0, or NOENT. Drop shuts late bytes of it
 * out. */
int hf_meta_append_late(struct hf_meta *m, int64_t now_ns, uint64_t *ret);
int hf_meta_append_drop(struct hf_meta *m, uint64_t ino);

/* ---- garbage: chunks whose file or layout is gone ---- */

/* Chunks first_chunk <= i < nchunks of a layout. A layout may have several entries. */
struct hf_meta_gc {
    uint64_t ino;
    uint32_t layout_gen;
    uint32_t nchunks; /* the end, not a count */
    uint32_t nsegments;
    uint32_t segments[64]; /* chunk i lies on segments[i % nsegments] */
    uint32_t first_chunk;
};
/* The first entry after `after` (NULL: the first) that is due at now_ns. NOENT. A layout handed out
 * for a promotion is entered in advance and falls due 10 minutes later unless Promote removed it.
 */
int hf_meta_gc_next(struct hf_meta *m, const struct hf_meta_gc *after, int64_t now_ns,
                    struct hf_meta_gc *ret);
/* Removes the entry; its chunks are gone from the segments. */
int hf_meta_gc_done(struct hf_meta *m, const struct hf_meta_gc *g);

/* ---- check (fsck), on a snapshot, any thread ---- */

struct hf_meta_check {
    uint32_t shard;
    void *arg;
    /* A problem: kind is a stable word ("dangling-name", "unreachable", "nlink", "parent", "size",
     * "inline", "duplicate-name", "bad-value", "cookie", "xattr", "dangling-xattr", "acl", ...). */
    void (*problem)(void *arg, const char *kind, uint64_t ino, struct hf_slice name,
                    const char *detail);
    /* Every chunk that may exist: (ino, index < nchunks, gen) on segment segments[index % n]; also
     * those of gc entries (gc = true). May be NULL. */
    void (*layout)(void *arg, uint64_t ino, uint32_t gen, uint32_t nchunks,
                   const uint32_t *segments, uint32_t nsegments, uint64_t size, bool gc);
    uint64_t inodes, dentries, bytes, problems; /* results */
};
int hf_meta_check(struct hf_store_snap *snap, struct hf_meta_check *c);

#endif

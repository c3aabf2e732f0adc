/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard's key-value state: typed tables with ordered keys, one open write transaction, redo
 * capture, checkpoints. Two providers behind one API: LMDB and an in-memory fake for tests.
 *
 * The owner (one thread) reads and writes inside the one open write transaction. Every put and
 * delete is recorded; the record of a batch of operations (its redo) goes to the shard's log. A
 * checkpoint commits the transaction together with the log position that it contains. After a crash
 * the store stands at its last checkpoint and redo from the log brings it forward.
 *
 * Dependency tracking: a reply may leave only when everything it read is durable. The store
 * remembers, per key and per object (the first 8 bytes of the key), the batch that changed it last,
 * until that batch is durable; hf_store_seen tells the newest such batch that the reads since
 * hf_store_seen_reset touched.
 *
 * Threads: everything belongs to the owner's thread, but snapshots (hf_store_snap_*), which any
 * thread may open and use (each snapshot in one thread). The owner may change right after open or a
 * checkpoint, before any other call (LMDB's write lock belongs to a thread); after it ended, any
 * thread may close. After IO or any error not named at a function the store is broken: every later
 * call says STOPPED; the process is expected to stop. It never retries.
 */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/fault.h"

#define HF_STORE_KEY_MAX    511
#define HF_STORE_VAL_MAX    (128u << 10)
#define HF_STORE_TABLES_MAX 32

struct hf_store;

enum hf_store_kind { HF_STORE_LMDB, HF_STORE_MEM };

struct hf_store_opts {
    enum hf_store_kind kind;
    const char *dir;           /* LMDB: created if missing */
    const char *const *tables; /* names; a table's id is its index */
    unsigned ntables;
    uint32_t format; /* the caller's format version; another one found: VERSION, nothing touched */
    uint64_t map_bytes;       /* LMDB: logical size limit of the environment; 0 = 64 GiB */
    uint64_t reserve_bytes;   /* growth is refused when less than this is left; 0 = 64 MiB */
    struct hf_faults *faults; /* may be NULL */
};

/* INVAL; IO, ACCES, ... of the folder; BUSY: somebody has it open; VERSION: another format, or an
 * LMDB environment that is not a store; CORRUPT: not LMDB or damaged. Nothing is changed by a
 * refusal. */
int hf_store_open(const struct hf_store_opts *o, struct hf_store **ret);
/* Removes the LMDB files in dir, which nobody may have open. For a store that was being made when
 * the power failed: LMDB's first pages are not synced before the first commit, so that a part of
 * them may be all there is, and open says CORRUPT. The caller must know that nothing was ever
 * committed to it. Errors of unlink and fsync. */
int hf_store_discard(const char *dir);
/* Discards what was not checkpointed (the log has it). After all snapshots. */
void hf_store_close(struct hf_store *s);

/* ---- inside the write transaction ---- */

/* NOENT. *ret_val stays valid until the next put, del, checkpoint or redo call. */
int hf_store_get(struct hf_store *s, unsigned table, struct hf_slice key, struct hf_slice *ret_val);
/* Captured in the redo. key 1..511 bytes (INVAL, TOOBIG), val up to HF_STORE_VAL_MAX (TOOBIG);
 * NOMEM: nothing was changed. key and val may point into the store. */
int hf_store_put(struct hf_store *s, unsigned table, struct hf_slice key, struct hf_slice val);
/* A key that is absent: 0, nothing captured. */
int hf_store_del(struct hf_store *s, unsigned table, struct hf_slice key);

/* Ordered scan. seek positions at the first key >= `from` that starts with `prefix` (up to 16
 * bytes); each next gives the following one. Key and value slices are valid until the next store
 * call. put/del end the scan (seek again). Embedded; hf_store_iter_end releases (harmless when
 * repeated). */
struct hf_store_iter {
    struct hf_store *s;
    void *cursor;
    unsigned table;
    uint8_t prefix[16];
    size_t prefix_len;
    bool started;
    uint8_t from[HF_STORE_KEY_MAX];
    size_t from_len;
};
int hf_store_seek(struct hf_store *s, unsigned table, struct hf_slice prefix, struct hf_slice from,
                  struct hf_store_iter *it);
/* NOENT at the end. */
int hf_store_next(struct hf_store_iter *it, struct hf_slice *ret_key, struct hf_slice *ret_val);
void hf_store_iter_end(struct hf_store_iter *it);

/* ---- redo, batches, checkpoints ---- */

/* Bytes of redo captured since the last take. */
size_t hf_store_redo_bytes(const struct hf_store *s);
/* Appends the redo of everything since the last take to out and starts the next one. */
int hf_store_redo_take(struct hf_store *s, struct hf_buf *out);
/* Applies redo made by take (replay, standby). CORRUPT if it does not parse; then nothing is
 * applied. */
int hf_store_redo_apply(struct hf_store *s, struct hf_slice redo);
/* The batch that changes from now on belong to (rises by one per batch, from 1). Before the first
 * call nothing is tracked (replay: what is applied is durable). */
void hf_store_batch(struct hf_store *s, uint64_t batch);
/* All batches up to this one are durable. */
void hf_store_durable(struct hf_store *s, uint64_t batch);
/* Changes made while this is on are such that whoever reads them need not wait for their batch
 * (what an UNSTABLE write did to size and times may be lost anyway): hf_store_seen does not count
 * them. */
void hf_store_untracked(struct hf_store *s, bool on);
void hf_store_seen_reset(struct hf_store *s);
/* The newest not yet durable batch that reads depend on; 0: none. A get counts its key, a scan the
 * object that its prefix begins with (first 8 bytes), or the whole table if the prefix is shorter.
 */
uint64_t hf_store_seen(const struct hf_store *s);

/* Commits the open transaction with the log position `applied` and opens the next one. The caller
 * has made sure that everything in it is durable in the log. Changes since the last checkpoint: */
int hf_store_checkpoint(struct hf_store *s, uint64_t applied);
/* An operation failed in a way that leaves open what the store holds (anything but NOENT and the
 * caller's own mistakes): everything says STOPPED from now on, and the process has to end. */
bool hf_store_broken(const struct hf_store *s);
size_t hf_store_dirty(const struct hf_store *s); /* puts and deletes */
uint64_t hf_store_applied(const struct hf_store *s);

/* ---- space ---- */

/* false: only operations that free space should go on (answer NOSPC to the others). Cheap; looks at
 * the map's fill every call and at the file system's free space at most once per second of
 * `mono_ns`. */
bool hf_store_may_grow(struct hf_store *s, uint64_t mono_ns);
struct hf_store_space {
    uint64_t used_bytes, limit_bytes, fs_free_bytes;
};
void hf_store_space(const struct hf_store *s, struct hf_store_space *ret);
uint64_t hf_store_count(struct hf_store *s, unsigned table); /* entries in a table */

/* ---- snapshots of the last checkpoint, other threads ---- */

struct hf_store_snap;
int hf_store_snap_open(struct hf_store *s, struct hf_store_snap **ret);
void hf_store_snap_close(struct hf_store_snap *p);
int hf_store_snap_get(struct hf_store_snap *p, unsigned table, struct hf_slice key,
                      struct hf_slice *ret_val);
/* Calls fn for each entry with key >= from in order until it returns non-zero, which is returned.
 */
int hf_store_snap_scan(struct hf_store_snap *p, unsigned table, struct hf_slice from,
                       int (*fn)(void *arg, struct hf_slice key, struct hf_slice val), void *arg);

#endif

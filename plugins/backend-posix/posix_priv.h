/* SPDX-License-Identifier: Apache-2.0
 *
 * The posix backend: one file per object.
 *
 *   PATH/format          "holdfast-posix 1\n"
 *   PATH/lock            flock'ed while open, so that two processes never share a segment
 *   PATH/h/h/HEXID       the objects: 16 x 16 folders, made when the backend is first opened
 *
 * The folder is a hash of the first 10 bytes of the id, so that objects that are likely to be
 * deleted together (a file's chunks) share a folder and its sync. 256 folders keep a million
 * objects at 4000 files each, and listing sorts in memory (list.c), so the folder need not follow
 * the order of ids.
 *
 * Durability of names: each folder counts its changes (changed) and knows up to which one it was
 * synced (synced). A file remembers the count at which its name was certainly there. Folders start
 * as changed once and never synced, because an earlier process may have died before its sync. A
 * SYNC of a file whose name is not covered yet, and each DELETE, syncs the folder; threads that
 * wait for the same folder share one.
 *
 * Threads: submit runs on the caller's thread and serves reads that the page cache holds
 * (RWF_NOWAIT); all else goes through a queue to the pool. Locks: cache.lock (file table), dir.lock
 * (one per folder, held over its fsync), dir.names (one per folder), pool.lock (queue), list.lock
 * (listing). None is taken while holding another.
 */
#ifndef HF_BACKEND_POSIX_H
#define HF_BACKEND_POSIX_H

#include <holdfast/backend.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define PX_DIRS       256u
#define PX_FD_BUCKETS 1024u
#define PX_NAME_BYTES (4 + 2 * HF_BE_ID_BYTES + 1) /* "h/h/" and the id */

struct px_dir {
    pthread_mutex_t lock;  /* held over the fsync: guards synced, failed */
    pthread_mutex_t names; /* held over a change of names and its counting, so that who sees the
                            * change and then takes it sees the count too */
    atomic_uint_fast64_t changed;
    uint64_t synced;
    bool failed;
};

/* An open file. */
struct px_file {
    struct px_file *hash_next;
    struct px_file *lru_prev, *lru_next; /* linked while refs == 0 */
    uint8_t id[HF_BE_ID_BYTES];
    int fd;
    unsigned refs;
    atomic_uint_fast64_t name_at; /* value of its folder's changed that covers its name */
    atomic_bool dirty;            /* written since the last sync */
    atomic_bool failed; /* a sync failed: stays in the table, and every later SYNC fails */
    bool dead;          /* deleted: not in the table any more, closed with the last reference */
};

struct px_cache {
    pthread_mutex_t lock; /* guards all of this and the files' links and refs */
    struct px_file *buckets[PX_FD_BUCKETS];
    struct px_file lru; /* head; lru.lru_next is the oldest */
    unsigned open, max;
};

struct hf_be {
    int root; /* descriptor of PATH */
    int lock_fd;
    struct px_dir dirs[PX_DIRS];
    struct px_cache cache;
    struct {
        pthread_mutex_t lock; /* guards head, tail, stop */
        pthread_cond_t cond;
        struct hf_be_io *head, *tail;
        bool stop;
        pthread_t *threads;
        unsigned nthreads;
    } pool;
    struct {
        pthread_mutex_t lock; /* guards the window */
        uint8_t (*ids)[HF_BE_ID_BYTES];
        size_t n;
        bool valid, from_start, to_end;
        uint8_t after[HF_BE_ID_BYTES]; /* the window holds the ids behind this one */
        uint64_t version;
    } list;
    atomic_uint_fast64_t version; /* of the set of names */
    atomic_uint_fast64_t objects;
};

unsigned px_dir_of(const uint8_t *id);
/* buf gets "h/h/HEXID". */
void px_name(const uint8_t *id, char buf[PX_NAME_BYTES]);
int px_status(int errno_value);

/* files.c. A reference to the object's file; with create it is made. ENOENT, EIO, ENOSPC, ENOMEM.
 */
int px_file_get(struct hf_be *be, const uint8_t *id, bool create, struct px_file **ret);
/* Only if it is open already. */
struct px_file *px_file_peek(struct hf_be *be, const uint8_t *id);
void px_file_put(struct hf_be *be, struct px_file *f);
/* Forgets the file; it is closed with its last reference. */
void px_file_drop(struct hf_be *be, const uint8_t *id);
void px_files_init(struct hf_be *be, unsigned max);
int px_files_fini(struct hf_be *be);
/* The count that covers every name seen in folder d so far. */
uint64_t px_dir_changed(struct hf_be *be, unsigned d);
/* Makes the names of folder d durable up to `want`. */
int px_dir_sync(struct hf_be *be, unsigned d, uint64_t want);

/* io.c. Runs one operation, blocking, and sets io->status. */
void px_run(struct hf_be *be, struct hf_be_io *io);
/* A read that needs no disk: true if done. */
bool px_try_read(struct hf_be *be, struct hf_be_io *io);

/* list.c */
int px_list(struct hf_be *be, const uint8_t *after, int (*fn)(void *arg, const uint8_t *id),
            void *arg);
/* Counts the objects (at open). */
int px_count(struct hf_be *be, uint64_t *ret);

#endif

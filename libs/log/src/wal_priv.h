/* SPDX-License-Identifier: Apache-2.0
 *
 * The wal driver's state and the parts of its implementation:
 *   wal.c        open, close, appending, reading, statistics
 *   wal_scan.c   what stands in the files at start
 *   wal_write.c  the writer thread: groups, rolling to the next file
 *   wal_space.c  spare files, recycling, the room that is left
 */
#ifndef HF_LOG_WAL_PRIV_H
#define HF_LOG_WAL_PRIV_H

#include <pthread.h>

#include "files.h"
#include "holdfast/list.h"
#include "holdfast/log.h"
#include "wal_format.h"

#define WAL_PATH_BYTES  4096
#define WAL_GROUP_BYTES (4u << 20) /* of one write; bounds what a crash can leave half-written */
#define WAL_SPARES_MAX  4          /* more trimmed files than that are removed */

struct wal_file {
    struct hf_list link;
    char name[24]; /* wal-XXXXXXXX.log */
    int fd;
    uint64_t bytes;
    /* of its present life; 0: never used */
    uint64_t seq;
    uint32_t salt, shards;
    uint64_t *start;  /* next position of each shard when it was begun */
    uint64_t end_off; /* end of its durable records */
};

struct wal_shard {
    struct hf_log log;
    struct hf_wal *w;
    unsigned shard;
    uint64_t next; /* position; the owner's thread */
    uint64_t trim; /* w->lock; positions below are not needed */
};

struct hf_wal {
    struct hf_env *env;
    struct hf_wal_opts o;
    char dir[WAL_PATH_BYTES];
    const struct wal_files *files;
    int lock_fd;
    struct wal_shard *shards;
    bool threads; /* false in a simulation: appends write at once, in the caller's thread */
    pthread_t writer, prep;

    /* ---- guarded by lock ---- */
    pthread_mutex_t lock;
    pthread_cond_t queue_cond; /* appends or stop: the writer waits */
    pthread_cond_t prep_cond;  /* something to prepare or remove, or stop: prep waits */
    pthread_cond_t spare_cond; /* `creating` ended: the writer waits */
    struct hf_log_append *head, **tail;
    bool writer_idle, stop;
    int dead;               /* IO or NOSPC: nothing is written any more */
    struct hf_list used;    /* oldest first; the last one is written to */
    struct hf_list spares;  /* ready to be begun, oldest seq first */
    struct hf_list garbage; /* to be removed, when seq < header_oldest */
    unsigned nspares, nfiles;
    uint64_t total_bytes; /* of all files */
    bool creating;
    uint32_t next_id;       /* of file names */
    uint64_t header_oldest; /* as the present file's header says on disk */
    uint64_t cur_left;      /* bytes left in the present file */
    uint64_t fs_free, fs_free_ns;
    struct hf_wal_stats st;

    /* ---- the writer's ---- */
    struct wal_file *cur;
    uint64_t off;      /* where the next group goes */
    bool need_start;   /* the start record comes first */
    uint64_t *pos;     /* next position of each shard in the file */
    struct hf_buf buf; /* the group being gathered */
};

/* hf_wal_open over other files. */
int wal_open_files(struct hf_env *env, const struct hf_wal_opts *o, const struct wal_files *files,
                   struct hf_wal **ret, char *err, size_t err_bytes);

/* Path of a file in the wal's folder. */
void wal_path(const struct hf_wal *w, const char *name, char out[WAL_PATH_BYTES + 32]);
void wal_file_free(struct hf_wal *w, struct wal_file *f);

/* Reads all files and sets used, spares, garbage, pos, off, need_start up. Changes nothing on disk
 * but, after all checks, what a torn last write left. */
int wal_scan(struct hf_wal *w, char *err, size_t err_bytes);

void *wal_writer_main(void *arg);
/* Writes a list of appends and completes them. */
void wal_write_list(struct hf_wal *w, struct hf_log_append *list);
/* Begins the next file. Writer only. NOSPC, IO. */
int wal_roll(struct hf_wal *w);
/* At open: more shards than the present file knows of. */
int wal_reshard(struct hf_wal *w);

void *wal_prep_main(void *arg);
/* A spare for the writer, which is taken out of the list; made on the spot if there is none. */
int wal_spare_take(struct hf_wal *w, struct wal_file **ret);
/* Removes what may be removed. */
void wal_sweep(struct hf_wal *w);
/* Both: lock held. */
void wal_recycle(struct hf_wal *w);
uint64_t wal_room(const struct hf_wal *w);

#endif

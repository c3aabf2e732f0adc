/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the metadata service share.
 */
#ifndef HOLDFAST_SVC_META_PRIV_H
#define HOLDFAST_SVC_META_PRIV_H

#include <pthread.h>
#include <semaphore.h>

#include "holdfast/log.h"
#include "holdfast/rpc.h"
#include "holdfast/svc_meta.h"
#include "shard.h"

struct gc;

/* One loop thread and the shards that it owns: those with id % nthreads == index. */
struct meta_thread {
    struct hf_metasvc *svc;
    unsigned index;
    struct hf_loop *loop;
    struct hf_rpc_server *server;
    struct hf_rpc_client **segments; /* one per svc->map segment; equal URLs share a client */
    struct gc *gc;
    Hf__MetaAdmin_Service admin;
    struct hf_task stop;
    unsigned running_shards; /* 1 once started; while stopping: shards not yet drained */
    sem_t stopped;
    bool stopping;
};

struct hf_metasvc {
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct hf_metasvc_opts opts; /* strings are owned by `strings` */
    struct hf_arena strings;
    Hf__MapGetRep *map; /* pools, segments and shards as reachable now; in `strings` */
    struct hf_wal *wal;
    struct shard **shards;
    unsigned nshards;
    struct meta_thread *threads;
    unsigned nthreads;
    struct hf_task store_map;  /* at start: the map to be stored by shard 0 */
    struct hf_pool *pool;      /* fsck */
    pthread_mutex_t fsck_lock; /* one check at a time */
    struct meta_metrics metrics;
    char *url;
};

/* gc.c: frees chunks of removed files, tells shards how full segments are. On the thread's loop. */
int gc_new(struct meta_thread *t, struct gc **ret);
void gc_start(struct gc *g); /* on the loop's thread */
void gc_free(struct gc *g);  /* after the loop has ended */

/* fsck.c: the MetaAdmin.Fsck call. */
void fsck_serve(struct meta_thread *t, struct hf_rpc_req *req, const Hf__FsckReq *in);

/* svc_open.c */
int svc_open_shards(struct hf_metasvc *s, char *err, size_t err_bytes);

#endif

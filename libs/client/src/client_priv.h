/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the client: who is who.
 *
 *   hf_client     the map, the tables below, one list for every state in which a call can be
 *   meta_server   one rpc connection per distinct metadata URL
 *   shard         where a shard is served, our session there, calls waiting and in flight
 *   session/slot  exactly-once identities of changes (session.c)
 *   seg_server    one rpc connection per distinct segment URL, its last known boot and capacity
 *   seg_run       a range of a file, chunk by chunk, through one method of the segment service
 * (seg.c) io_op         a read, write or commit under way (read.c, write.c, commit.c) trim_duty
 * cutting chunks after a truncation (trim.c)
 */
#ifndef HF_CLIENT_PRIV_H
#define HF_CLIENT_PRIV_H

#include "holdfast/client.h"
#include "holdfast/err.h"
#include "holdfast/map.h"

#define LAYOUT_SEGMENTS_MAX 64u
#define BLOCK_BYTES         (64u << 10)
#define CHUNK_BYTES_MAX     (4u << 20)
#define CHUNK_BLOCKS_MAX    (CHUNK_BYTES_MAX / BLOCK_BYTES)
#define RUN_WINDOW          16u  /* segment calls in flight per run */
#define START_AGAIN_MAX     64u  /* CHANGED or FENCED in one operation */
#define POOLED_MAX          256u /* recycled io_ops and seg_calls kept */
#define SMALL_RPC_NS        (5 * HF_NS_PER_SEC)

/* ---- metadata side ---- */

struct meta_server {
    struct hf_list link; /* hf_client.meta_servers */
    struct hf_rpc_client *rpc;
    ProtobufCService *service;
    bool keep; /* in the present map, or meta_url */
    char url[];
};

struct session;
struct slot {
    struct session *session;
    struct slot *next; /* free list */
    uint64_t sequence; /* of the last change under it */
    uint32_t index;
};
struct session {
    uint64_t id;
    unsigned used;      /* slots held by calls */
    unsigned abandoned; /* slots whose last change is in doubt for ever */
    bool retired;       /* not the shard's session any more; freed with its last slot */
    struct slot *free;
    struct slot slots[];
};

struct shard {
    struct hf_client *client;
    uint32_t id;
    struct meta_server *server;
    uint64_t boot, prev_boot;
    struct session *session;
    bool opening;
    unsigned open_tries;
    uint64_t open_id;
    struct hf_rpc_call open_rpc;
    struct hf_timer open_timer;
    /* renewals, if the client holds opens */
    bool wanted; /* there was a session: there should be one again */
    bool renewing;
    struct hf_rpc_call renew_rpc;
    uint64_t renewed_ns, lease_ns, session_boot, session_epoch;
    struct hf_list waiting;  /* changes that wait for a slot or a session */
    struct hf_list inflight; /* hf_client_call.p.link */
};

enum call_state { CALL_REFUSED, CALL_WAITING, CALL_BACKOFF, CALL_INFLIGHT };

/* ---- data side ---- */

struct seg_server {
    struct hf_list link; /* hf_client.seg_servers */
    struct hf_client *client;
    struct hf_rpc_client *rpc;
    ProtobufCService *service;
    uint64_t boot;
    uint64_t capacity, free;
    struct hf_rpc_call stat_rpc;
    bool stat_busy;
    bool keep;
    unsigned inflight; /* seg_calls */
    char url[];
};

struct layout {
    uint32_t chunk_bytes, gen, fence;
    uint32_t nsegments;
    uint32_t segments[LAYOUT_SEGMENTS_MAX];
    bool trim;
    uint64_t trim_from, trim_to;
};

enum seg_kind { SEG_READ, SEG_WRITE, SEG_SYNC, SEG_TRUNC, SEG_PUNCH, SEG_SEEK };

struct seg_run;
struct seg_call {
    struct hf_list link;  /* run->calls, or the pool of free ones */
    struct hf_list wlink; /* hf_client.seg_waiting */
    struct seg_run *run;
    struct seg_server *server;
    struct hf_rpc_call rpc;
    struct hf_timer timer;
    Hf__ChunkId id;
    union {
        Hf__SegReadReq read;
        Hf__SegWriteReq write;
        Hf__SegSyncReq sync;
        Hf__SegTruncReq trunc;
        Hf__SegPunchReq punch;
        Hf__SegSeekReq seek;
    } req;
    uint32_t offset, len; /* in the chunk */
    unsigned tries, corrupt;
    struct hf_slice data[HF_RPC_BULK_IOV];
    unsigned ndata;
    uint32_t crcs[CHUNK_BLOCKS_MAX];
    struct hf_rpc_msg *msg; /* READ: owns got */
    struct hf_slice got;
    bool found; /* SEEK; then: */
    uint32_t found_at;
};

/* Set the inputs, call seg_run_start; `done` is called when nothing is in flight any more, perhaps
 * from inside seg_run_start. READ, SEEK: results stay in `calls`, in order, until seg_run_fini. */
#define RUN_RANGES_MAX 8u

struct seg_run {
    /* inputs */
    struct hf_client *client;
    enum seg_kind kind;
    const struct layout *layout;
    uint64_t ino;
    uint64_t pos, end; /* the range in the file */
    uint64_t deadline_ns;
    bool stable;                          /* WRITE, PUNCH */
    bool hole;                            /* SEEK */
    struct hf_slice src[HF_RPC_BULK_IOV]; /* WRITE: end - pos bytes */
    unsigned nsrc;
    uint32_t only[2 * RUN_RANGES_MAX]; /* SYNC: pairs of chunks, first and end: no others */
    unsigned nonly;                    /* 0: all */
    void (*done)(struct seg_run *run);
    /* results */
    int status;
    bool answered;  /* any reply came; then: */
    uint64_t epoch; /* the client's boot epoch just after the first of them */
    struct hf_list calls;
    /* private */
    unsigned inflight;
    unsigned src_i;
    size_t src_off;
};

struct trim_duty {
    /* inputs */
    struct hf_client *client;
    uint64_t ino;
    uint32_t gen;
    struct layout *layout; /* brought up to date */
    uint64_t deadline_ns;
    void (*done)(struct trim_duty *t, int status); /* CHANGED: the layout moved on, start again */
    /* private */
    struct seg_run run;
    struct hf_client_call call;
    Hf__TrimDoneReq req;
};

struct io_op {
    struct hf_list link; /* pool of free ones */
    struct hf_client *client;
    struct hf_client_io *io;
    uint64_t deadline_ns;
    struct hf_client_call call;
    union {
        Hf__ReadReq read;
        Hf__WriteReq write;
        Hf__WriteEndReq end;
        Hf__PromoteReq promote;
        Hf__CommitReq commit;
    } req;
    struct hf_rpc_msg *held; /* owns attr, wcc or the content being promoted */
    struct layout layout;
    struct seg_run run;
    struct trim_duty trim;
    struct hf_timer timer; /* back-off before starting again */
    void (*resume)(struct io_op *op);
    unsigned again;
    uint64_t epoch;
    bool epoch_known;
    bool promote;
    uint64_t offset; /* write: of the bytes; an append learns it from the shard */
    uint64_t append_token;
    uint64_t promote_change;
    struct hf_slice content;
};

struct hf_client {
    struct hf_loop *loop;
    struct hf_env *env;
    struct hf_client_opts opts;
    ProtobufCService service; /* hf_client_meta */
    bool closing;             /* nothing new is begun */
    bool freeing;

    /* map (map.c) */
    const Hf__MapGetRep *map;
    struct hf_rpc_msg *map_msg, *map_old_msg;
    struct meta_server *home; /* meta_url */
    struct hf_rpc_call map_rpc;
    struct hf_timer map_timer;
    bool map_busy, map_again;
    unsigned map_tries;
    struct shard **shards;
    uint32_t nshards;
    struct hf_list meta_servers, seg_servers;
    struct hf_map segs;                  /* segment id -> seg_server */
    uint32_t local[LAYOUT_SEGMENTS_MAX]; /* segments on this machine, if others are not */
    unsigned nlocal;

    /* calls that are not in flight */
    struct hf_list nomap, backoff, refused, refused_io, refused_ranges;
    struct hf_list seg_waiting;
    struct hf_list op_waiting; /* io_op.link while in op_pause */
    struct hf_timer refuse_timer;

    /* hf_client_close */
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned closes; /* SessionClose calls without an answer */
    struct hf_timer close_timer;

    /* boots */
    uint64_t seg_mix;    /* of all segments' boots */
    uint64_t boot_epoch; /* counts boots seen to change */
    struct hf_timer stat_timer;
    uint64_t space_used_ns; /* when the space was last asked for */

    struct hf_list op_pool, seg_pool;
    unsigned nop_pool, nseg_pool;
    struct hf_client_stats stats;
    char strings[]; /* meta_url, name */
};

/* client.c */
uint64_t backoff_ns(struct hf_client *c, unsigned tries);
void refuse_later(struct hf_client *c);
void client_io_refuse(struct hf_client *c, struct hf_client_io *io, int status);
void client_range_refuse(struct hf_client *c, struct hf_client_range *r, int status);
struct io_op *op_new(struct hf_client *c, struct hf_client_io *io);
void op_free(struct io_op *op);
/* Calls `resume` after a back-off. */
void op_pause(struct io_op *op, void (*resume)(struct io_op *op));
/* Restarts of an operation: 0 go on, else the status to end with. */
int op_again(struct io_op *op);
int op_late(const struct io_op *op); /* TIMEDOUT when the deadline has passed */
void op_drain(struct hf_client *c);

/* call.c */
void call_service_init(struct hf_client *c);
void call_route(struct hf_client_call *call);
void call_resume(struct hf_client_call *call); /* takes it out of its waiting list first */
void call_finish(struct hf_client_call *call, const ProtobufCMessage *body, int status);
void call_shard_moved(struct shard *s); /* calls at the old server start again at the new one */
void call_drain(struct hf_client *c);   /* closing: all that wait end with CLOSED */

/* session.c */
bool session_take(struct shard *s, struct hf_client_call *call); /* false: it must wait */
enum slot_fate { SLOT_RAN, SLOT_NOT_RUN, SLOT_DOUBT };
void session_release(struct shard *s, struct hf_client_call *call, enum slot_fate fate);
void session_lost(struct shard *s, const struct session *session);
void session_wake(
    struct shard *s); /* gives free slots to waiting calls, opens a session if need be */
void session_fini(struct shard *s);
/* Every second: renews sessions that are due, or whose shard has restarted. */
void sessions_tick(struct hf_client *c);

/* map.c */
int map_init(struct hf_client *c);
void map_fini_servers(struct hf_client *c);
void map_fini(struct hf_client *c);
struct shard *map_shard(struct hf_client *c, uint64_t ino); /* NULL: not in the map */
/* Tells which segments are near, for allocation "local". */
void map_prefer(struct hf_client *c, Hf__WriteReq *req);

/* boot.c */
void boot_shard_seen(struct hf_client *c, uint64_t ino, uint64_t boot);
void boot_server_seen(struct seg_server *s, uint64_t boot);
void boot_mix(struct hf_client *c);
uint64_t boot_verifier(struct hf_client *c, uint64_t ino);
void stat_init(struct hf_client *c);
void stat_send(struct seg_server *s);

/* seg.c */
int layout_take(const Hf__Layout *m, struct layout *ret);
void seg_run_start(struct seg_run *run);
void seg_run_fini(struct seg_run *run);
void seg_drain(struct hf_client *c);
/* seg_crc.c */
unsigned crc_blocks(const struct hf_slice *data, unsigned n, uint32_t offset, uint32_t len,
                    uint32_t crcs[CHUNK_BLOCKS_MAX]);

/* trim.c */
void trim_start(struct trim_duty *t);

static inline uint32_t ino_shard(uint64_t ino)
{
    return (uint32_t)(ino >> 47) & 0xffffu;
}

#endif

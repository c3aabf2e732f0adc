/* SPDX-License-Identifier: Apache-2.0
 *
 * A small cluster in the test's process, on virtual time: shards and segment servers in memory that
 * follow the wire contract and nothing more, with handles to make them fail.
 *
 *   metadata servers  sim://m0, sim://m1; shard n is served by server n % 2 unless moved
 *   segment servers   sim://s0, sim://s1; segment 1 on s0, 2 on s1
 */
#ifndef CLIENT_SUPPORT_WORLD_H
#define CLIENT_SUPPORT_WORLD_H

#include "holdfast/client.h"
#include "holdfast/err.h"
#include "holdfast/rpc_sim.h"

#define W_SHARDS     4u
#define W_SERVERS    2u
#define W_INLINE_MAX 4096u
#define W_CHUNK      (128u << 10)
#define W_FILES      16u
#define W_CHUNKS     512u
#define W_SESSIONS   512u
#define W_SLOTS      64u

struct wfile {
    uint64_t ino;
    uint64_t size, change;
    bool chunked;
    uint8_t content[W_INLINE_MAX];
    uint32_t layout_gen, fence;
    bool trim;
    uint64_t trim_from, trim_to, handed_out;
    uint64_t append_token; /* of the append under way */
    unsigned appends, canceled;
    unsigned renames; /* a change that counts how often it ran */
};

struct wslot {
    uint64_t sequence;
    int status;
    uint8_t reply[1024];
    size_t len;
};
struct wsession {
    uint64_t id;
    uint32_t shard;
    bool opens;
    struct wslot slots[W_SLOTS];
};

struct wchunk {
    bool used;
    Hf__ChunkId id;
    uint32_t fence, len, stable_len;
    uint8_t *data, *stable; /* what a crash leaves */
};

struct world;
struct wmeta {
    struct world *w;
    unsigned index;
    char url[32];
    struct hf_loop *loop;
    struct hf_rpc_server *server;
    Hf__Meta_Service impl;
    void *real; /* of real_shard.c */
};
struct wseg {
    struct world *w;
    unsigned index;
    char url[32];
    struct hf_loop *loop;
    struct hf_rpc_server *server;
    Hf__Segment_Service impl;
    uint64_t boot;
    unsigned corrupt_reads; /* the next ones return a flipped bit */
    unsigned corrupt_writes;
    void *real; /* of real_seg.c */
    struct wchunk chunks[W_CHUNKS];
};

struct world {
    struct hf_env *env;
    struct hf_loop *loop; /* of the clients */
    struct wmeta meta[W_SERVERS];
    struct wseg seg[W_SERVERS];
    unsigned place[W_SHARDS]; /* shard -> metadata server */
    uint64_t boot[W_SHARDS];
    uint64_t map_version;
    struct wfile files[W_FILES];
    unsigned nfiles;
    uint32_t next_layout;
    struct wsession *sessions;
    unsigned nsessions;
    unsigned replays;
    unsigned drop_replies; /* execute, then cut the connection instead of answering */
    bool hold;             /* keep requests (but MapGet and SessionOpen) unanswered */
    unsigned not_leader;   /* answer that to the next calls */
    unsigned answer_busy;
    struct hf_list held;
    unsigned nheld;
    unsigned client_maps;
    unsigned renewals, closes; /* of sessions */
    bool lose_opens;           /* the next renewal says so */
    bool deaf_to_close;        /* SessionClose is not answered */
    unsigned lost[W_SHARDS];   /* on_opens_lost */
    uint32_t lease_ms;
    uint32_t prefer[8]; /* of the last write */
    unsigned nprefer;
};

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);
/* Fills in what is left zero. */
struct hf_client *world_client(struct world *w, const struct hf_client_opts *o);
bool world_until(struct world *w, bool (*cond)(void *arg), void *arg, uint64_t ms);
void world_run(struct world *w, uint64_t ms);

struct wfile *world_file(struct world *w, uint64_t ino); /* made if new */
static inline uint64_t world_ino(uint32_t shard, uint64_t local)
{
    return (uint64_t)shard << 47 | local;
}
/* New boots; the segment's unsynced data is gone. Connections break. */
void world_restart_shard(struct world *w, uint32_t shard);
void world_restart_seg(struct world *w, unsigned index);
/* The shard is served by the other server from now on; the map says so. */
void world_move_shard(struct world *w, uint32_t shard, unsigned server);
void world_forget_sessions(struct world *w);
void world_release_held(struct world *w);

/* ---- calls and ios that remember their end ---- */

struct probe {
    struct hf_client_call call;
    unsigned done;
    bool have_body;
    uint64_t size;
};
bool probe_done(void *probe);
void probe_getattr(struct hf_client *c, struct probe *p, uint64_t ino);
/* A change: its count in the file rises by one each time it runs. */
void probe_rename(struct hf_client *c, struct probe *p, uint64_t ino);
void probe_truncate(struct hf_client *c, struct probe *p, uint64_t ino, uint64_t size);

struct ioprobe {
    struct hf_client_io io;
    unsigned done;
    uint8_t *buf; /* read: count bytes of it are filled */
    bool have_attr;
};
bool io_done(void *ioprobe);
void io_read(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len,
             uint8_t *buf);
void io_write(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len,
              const uint8_t *data, uint32_t stable);
void io_append(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint32_t len,
               const uint8_t *data, uint32_t stable);
void io_commit(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len);

struct rangeprobe {
    struct hf_client_range r;
    unsigned done;
};
bool range_done(void *rangeprobe);
void range_fallocate(struct hf_client *c, struct rangeprobe *p, uint64_t ino, uint32_t mode,
                     bool keep_size, uint64_t offset, uint64_t len);
void range_seek(struct hf_client *c, struct rangeprobe *p, uint64_t ino, uint64_t offset,
                bool hole);

#endif

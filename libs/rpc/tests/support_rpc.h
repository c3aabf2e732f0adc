/* SPDX-License-Identifier: Apache-2.0
 *
 * A client and a server of the service hf.Segment, whose methods here do what the tests need:
 *   TruncateChunk  echo: boot = len
 *   WriteChunk     boot = crc32c of the bulk
 *   ReadChunk      `len` bytes of pattern; offset 0: copied in three pieces, 1: in place
 *   SyncChunk      is held until the test answers it; boot = ino
 *   DeleteChunks   NOSPC, with a body (freed_bytes = 77)
 *   Stat           NOENT, without a body
 */
#ifndef HOLDFAST_RPC_SUPPORT_H
#define HOLDFAST_RPC_SUPPORT_H

#include "holdfast/rpc.h"
#include "holdfast/wire/segment.pb-c.h"

#define SUPPORT_DEADLINE_NS (20 * HF_NS_PER_SEC)

struct world {
    struct hf_env *env;
    struct hf_loop *cloop, *sloop; /* one loop for both where transports have threads */
    struct hf_rpc_server *server;
    struct hf_rpc_server_opts server_opts;
    Hf__Segment_Service impl;
    struct hf_rpc_client *client;
    ProtobufCService *service;
    char url[256];
    char dir[64]; /* for sockets */

    struct hf_list held; /* SyncChunk requests, by req->link */
    unsigned nheld, held_max;
    unsigned executed;   /* calls that reached a method */
    unsigned char *seen; /* executions of SyncChunk by ino, if not NULL */
};

/* A call and what came of it. */
struct probe {
    struct hf_rpc_call call;
    unsigned done; /* times the closure was called */
    uint64_t boot; /* of the reply, or freed_bytes */
    bool have_rep;
    uint32_t bulk_crc;
    size_t bulk_len;
    bool bulk_aligned;
    void (*then)(struct probe *p);
    void *arg;
};

/* scheme: "inproc", "ipc", "tcp", "sim". */
void world_init(struct world *w, const char *scheme, const struct hf_rpc_server_opts *sopts,
                const struct hf_rpc_client_opts *copts);
void world_fini(struct world *w);
void world_server_start(struct world *w); /* again, at the same url */
void world_server_stop(struct world *w);  /* drops held requests */
/* Runs the loops until cond or the deadline; returns cond. */
bool world_until(struct world *w, bool (*cond)(void *arg), void *arg);
void world_run_for(struct world *w, uint64_t ns);
bool world_connected(void *world);

void probe_echo(struct world *w, struct probe *p, uint32_t n);
void probe_write(struct world *w, struct probe *p, const struct hf_slice *bulk, unsigned n);
void probe_read(struct world *w, struct probe *p, bool inplace, uint32_t len);
void probe_hold(struct world *w, struct probe *p, uint64_t ino);
void probe_delete(struct world *w, struct probe *p);
void probe_stat(struct world *w, struct probe *p);
bool probe_done(void *probe);
/* Waits and returns the status. */
int probe_wait(struct world *w, struct probe *p);
/* Answers the nth held request. */
void answer_held(struct world *w, unsigned nth);
/* The bytes that ReadChunk gives. */
void pattern_fill(uint8_t *p, size_t len);
uint32_t pattern_crc(size_t len);

#endif

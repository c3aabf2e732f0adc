/* SPDX-License-Identifier: Apache-2.0
 *
 * The client side of a file system: cluster map, routing to shards and segments, sessions and
 * retries, striping with checksums. What gateways and native mounts stand on.
 *
 * Threads: a client belongs to one loop; all calls and callbacks are on it.
 */
#ifndef HOLDFAST_CLIENT_H
#define HOLDFAST_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/arena.h"
#include "holdfast/buf.h"
#include "holdfast/rpc.h"
#include "holdfast/rt.h"
#include "holdfast/wire/meta.pb-c.h"
#include "holdfast/wire/segment.pb-c.h"

struct hf_client;

struct hf_client_opts {
    struct hf_loop *loop;
    const char *meta_url; /* where shard 0 answers; several with spaces between, see rpc.h */
    const char *name;     /* of this client, for logs at the servers */
    uint64_t timeout_ms;  /* of one operation, retries included; 0 = 30 s */
    uint64_t map_poll_ms; /* how often a new cluster map is looked for; 0 = 1000 */
    unsigned slots;       /* changes in flight per shard; 0 = 256; more wait in a queue */
    size_t queue_max;     /* operations waiting; beyond it JUKEBOX. 0 = 16384 */
    bool insecure;
    /* We hold opens (OpenReq, CreateReq.open): sessions are renewed within their lease, and
     * on_opens_lost tells that a shard has none of our opens any more (a new session, or the old
     * one was not renewed in time): what is still open has to be opened again. */
    bool opens;
    void (*on_opens_lost)(void *arg, uint32_t shard);
    void (*on_map)(void *arg,
                   const Hf__MapGetRep *map); /* at the first and every changed map. May be NULL */
    void *arg;
};

int hf_client_new(const struct hf_client_opts *o, struct hf_client **ret);
/* Refuses what is new (CLOSED) and tells the shards that our sessions end, with what they have
 * open; calls closed(arg) when they have answered, after 2 s at the latest, never from inside this
 * call. hf_client_free follows. */
void hf_client_close(struct hf_client *c, void (*closed)(void *arg), void *arg);
/* Not from inside a closure or completion of this client. Operations in flight complete with
 * CLOSED, inside this call; sessions are closed in the background by their lease. */
void hf_client_free(struct hf_client *c);
/* NULL until the first map came. Valid until the next turn of the loop. */
const Hf__MapGetRep *hf_client_map(const struct hf_client *c);
/* Another value after any of our connections to a server was made anew: whoever relies on what a
 * server had in memory looks again. */
uint64_t hf_client_epoch(const struct hf_client *c);
/* Looks for a new map at once. */
void hf_client_map_refresh(struct hf_client *c);

/* ---- metadata: the generated stubs of Hf__Meta through hf_client_meta() ----
 *
 *   struct hf_client_call call = {.ino = dir, .change = true};
 *   hf__meta__create(hf_client_meta(c), &req, closure, &call);
 *
 * The request message is packed inside the stub. The closure comes exactly once, never from inside
 * the stub, with the body (may be NULL) and call->status. A call that a lost connection left in
 * doubt is repeated: reads as they are, changes under their session slot, so that they run once.
 * Status: what the method said, or TIMEDOUT, JUKEBOX (queue full), CLOSED. */
struct hf_client_call {
    uint64_t ino;                          /* routes to its shard */
    bool change;                           /* carries a session slot */
    struct hf_slice bulk[HF_RPC_BULK_IOV]; /* must stay valid until the closure (retries) */
    unsigned bulk_n;
    void *arg;            /* the caller's own */
    uint64_t deadline_ns; /* mono; 0: timeout_ms from now */
    bool req_stays; /* the request message stays valid until the closure: no copy for retries */
    /* outputs */
    int status;
    struct hf_slice reply_bulk;
    struct hf_rpc_msg *msg; /* take a reference to keep body and bulk beyond the closure */
    /* private */
    struct {
        struct hf_list link;
        struct hf_client *client;
        struct hf_rpc_call rpc;
        const ProtobufCServiceDescriptor *service;
        unsigned method;
        ProtobufCClosure closure;
        const ProtobufCMessage *req; /* req_stays; else: */
        uint8_t *packed;             /* the request, for retries; inbuf or malloc */
        size_t packed_len;
        uint64_t deadline_ns;
        void *slot;
        unsigned tries;
        uint8_t state;
        bool doubt; /* a try may have run without our knowing */
        struct hf_timer timer;
        uint8_t inbuf[192];
    } p;
};
ProtobufCService *hf_client_meta(struct hf_client *c);

/* ---- data ---- */

#define HF_CLIENT_IO_MAX (4u << 20)
#define HF_CLIENT_PIECES 4

/* Bytes of a read: zeros where msg is NULL. */
struct hf_client_piece {
    struct hf_slice data; /* data.data NULL: zeros */
    struct hf_rpc_msg
        *msg; /* owns the bytes; the io holds a reference until its completion returns */
};

struct hf_client_io {
    /* inputs; caller-owned until done */
    const Hf__Cred *cred;
    uint64_t ino;
    uint32_t gen;
    uint64_t offset;
    uint32_t len;    /* <= HF_CLIENT_IO_MAX */
    uint32_t stable; /* write: enum Hf__Stable */
    bool owner_override;
    bool opened; /* permission was checked when the file was opened */
    bool append; /* write: at the end of the file, atomically over all clients; offset is ignored */
    struct hf_slice data[HF_RPC_BULK_IOV - 1]; /* write: len bytes in all */
    unsigned data_n;
    void (*done)(struct hf_client_io *io);
    void *arg;
    /* outputs, valid inside done */
    int status;
    const Hf__Attr *attr; /* read: attributes (may be NULL on errors) */
    const Hf__Wcc *wcc;   /* write, commit, setattr: (may be NULL) */
    bool eof;             /* read */
    uint32_t count;       /* read: bytes in pieces; write: len on success */
    struct hf_client_piece pieces[HF_CLIENT_PIECES];
    unsigned npieces;
    uint64_t at; /* write: where the bytes went (offset, or the end of the file for an append) */
    uint64_t verifier; /* write, commit: changes whenever anything that may have held uncommitted
                        * data of the file restarted */
    /* private: owned by the client while in flight */
    void *op;
    struct hf_list link;
};

/* Checksums are made here for writes and checked here for reads. A read never returns bytes whose
 * checksum does not match: IO. */
void hf_client_read(struct hf_client *c, struct hf_client_io *io);
/* FILE_SYNC and DATA_SYNC are on stable storage when done; UNSTABLE after a commit with equal
 * verifier. */
void hf_client_write(struct hf_client *c, struct hf_client_io *io);
/* offset/len: the range, len 0 = to the end of the file. */
void hf_client_commit(struct hf_client *c, struct hf_client_io *io);

/* fallocate and seek: a range of any length. */
struct hf_client_range {
    /* inputs; caller-owned until done */
    const Hf__Cred *cred;
    uint64_t ino;
    uint32_t gen;
    uint32_t mode; /* fallocate: enum Hf__FallocateMode */
    bool keep_size;
    bool opened;
    bool hole; /* seek: SEEK_HOLE, else SEEK_DATA */
    uint64_t offset, len;
    void (*done)(struct hf_client_range *r);
    void *arg;
    /* outputs, valid inside done */
    int status;         /* seek: NXIO if there is none */
    const Hf__Wcc *wcc; /* fallocate (may be NULL) */
    uint64_t at;        /* seek */
    /* private */
    void *op;
    struct hf_list link;
};
/* Durable when done, as all changes of the namespace are. */
void hf_client_fallocate(struct hf_client *c, struct hf_client_range *r);
void hf_client_seek(struct hf_client *c, struct hf_client_range *r);
/* As hf_client_setattr, for an open with truncate. */
void hf_client_open(struct hf_client *c, const Hf__OpenReq *req, Hf__OpenRep_Closure closure,
                    struct hf_client_call *call);

/* SetattrReq and CreateReq (UNCHECKED with a size) can leave a trim duty; these run the call and
 * the duty. The closure sees the final reply. req must stay valid until the closure. */
void hf_client_setattr(struct hf_client *c, const Hf__SetattrReq *req,
                       Hf__SetattrRep_Closure closure, struct hf_client_call *call);
void hf_client_create(struct hf_client *c, const Hf__CreateReq *req, Hf__CreateRep_Closure closure,
                      struct hf_client_call *call);

/* Capacity of all segments of all pools, cached for a second; zeros until known. */
struct hf_client_space {
    uint64_t capacity_bytes, free_bytes;
};
void hf_client_space(struct hf_client *c, struct hf_client_space *ret);

struct hf_client_stats {
    uint64_t meta_calls, meta_retries, reads, writes, commits, read_bytes, write_bytes, trims,
        promotes, checksum_errors, waiting;
};
void hf_client_stats(const struct hf_client *c, struct hf_client_stats *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The NFS gateway: NFSv3 (RFC 1813) and MOUNT3 (RFC 1813 appendix I) over ONC RPC on TCP (RFC
 * 5531), both programs on the same ports. Files are libs/vfs's business.
 *
 * Threads: a gateway runs one loop thread of its own with its own client and vfs. The functions
 * here may be called from any other thread, but hf_nfssvc_free only once and after all others have
 * returned.
 */
#ifndef HOLDFAST_SVC_NFS_H
#define HOLDFAST_SVC_NFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/logger.h"
#include "holdfast/rt.h"

struct hf_nfssvc;

struct hf_nfssvc_opts {
    struct hf_env *env;    /* a real one; borrowed */
    struct hf_logger *log; /* borrowed; may be NULL */
    const char *meta_url;  /* where shard 0 answers */
    const char *listen;    /* "address:port", several separated by commas; IPv6 as [::1]:port;
                            * port 0: any free port. NULL: 127.0.0.1:20490 */
    bool insecure;         /* plain tcp beyond loopback to the file system's own services */
    bool rpcbind;          /* announce the programs to the local rpcbind; failure is only logged */
    /* Limits; 0 means the value in parentheses. */
    unsigned max_connections;             /* (1024) more wait in the backlog */
    unsigned max_requests_per_connection; /* (256) in progress; then the connection is not read */
    uint64_t
        max_request_bytes;    /* (256 MiB) memory of all requests; beyond it nothing new is read */
    uint64_t max_reply_bytes; /* (16 MiB) unsent replies per connection; then it is not read */
    uint64_t idle_timeout_ms; /* (360 s) a connection without a call is closed */
    uint64_t
        stall_timeout_ms; /* (60 s) a peer that takes no reply, or sends half a call, is dropped */
    unsigned drc_entries; /* (32768) remembered replies of changes */
    uint64_t drc_bytes;   /* (16 MiB) */
};

/* Listens, then connects to the file system in the background; connections are accepted once it is
 * ready. ADDRINUSE, ACCES, INVAL (listen address), NOMEM, ...: err (>= 256 bytes) then holds one
 * line for people. */
int hf_nfssvc_new(const struct hf_nfssvc_opts *o, struct hf_nfssvc **ret, char *err,
                  size_t err_bytes);
/* The file system is reachable and its exports are known. */
bool hf_nfssvc_ready(const struct hf_nfssvc *s);
/* The first listener's real address, "127.0.0.1:20490", and port. */
const char *hf_nfssvc_listen(const struct hf_nfssvc *s);
int hf_nfssvc_port(const struct hf_nfssvc *s);
/* Stops accepting and reading, gives requests in progress up to 2 s, closes, frees. */
void hf_nfssvc_free(struct hf_nfssvc *s);

/* Hands out every counter: fn(arg, "nfs3_getattr_calls", 17). Names are static strings. */
void hf_nfssvc_counters(const struct hf_nfssvc *s,
                        void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
/* What fills up: name, used, allowed. Any thread. */
void hf_nfssvc_limits(const struct hf_nfssvc *s,
                      void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                      void *arg);

#endif

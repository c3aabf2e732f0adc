/* SPDX-License-Identifier: Apache-2.0
 *
 * A raw, blocking NFS client for tests: bytes in, bytes out, with a deadline on everything.
 */
#ifndef HF_NFS_SUPPORT_CLIENT_H
#define HF_NFS_SUPPORT_CLIENT_H

#include "holdfast/svc_nfs.h"
#include "support_fakevfs.h"
#include "svc_priv.h"

/* A running gateway on a free port, over the fake vfs. */
struct gateway {
    struct hf_env *env;
    struct hf_nfssvc *svc;
};
void gateway_start(struct gateway *g, const struct hf_nfssvc_opts *o); /* o may be NULL */
void gateway_stop(struct gateway *g);
uint64_t gateway_counter(const struct gateway *g, const char *name);
/* Waits until the counter is at least this. */
void gateway_wait_counter(const struct gateway *g, const char *name, uint64_t at_least);

struct call_buf {
    uint8_t b[4096] __attribute__((aligned(16)));
    size_t n;
};
/* Starts a call with AUTH_SYS 1000/100 and no groups; arguments are appended by the XDR stream. */
void call_begin(struct call_buf *c, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc);
void call_args(struct call_buf *c, bool (*encode)(XDR *x, void *arg), void *arg);
void call_u32(struct call_buf *c, uint32_t v);
void call_bytes(struct call_buf *c, const void *data, uint32_t len); /* as XDR opaque<> */
void call_fh(struct call_buf *c, uint64_t ino);

int client_connect(const struct gateway *g);
void client_send(int fd, const void *data, size_t len);
void client_call(int fd, const struct call_buf *c); /* as one fragment */

struct reply {
    uint8_t *b; /* malloc, 16-byte aligned, without the record mark */
    size_t n;
    uint32_t xid;
    XDR x; /* after the accepted header; only if accepted() is RPC success */
};
/* false: the connection ended. */
bool client_recv(int fd, struct reply *r);
void reply_free(struct reply *r);
uint32_t reply_word(const struct reply *r, size_t i);
/* Expects an accepted, successful reply to xid. */
void client_recv_ok(int fd, uint32_t xid, struct reply *r);
/* The connection is closed by the other side, without another byte. */
bool client_closed(int fd);

#endif

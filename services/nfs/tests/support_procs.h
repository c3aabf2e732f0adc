/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of single procedures share: one gateway and one connection to it per test (each test
 * is a process of its own), calls of NFS version 3, and what the fake vfs must have answered.
 */
#ifndef HOLDFAST_NFS_SUPPORT_PROCS_H
#define HOLDFAST_NFS_SUPPORT_PROCS_H

#include "support_client.h"

struct procs {
    struct gateway g;
    int fd;
    uint32_t xid; /* of the last call */
};

struct procs *procs(void);
void procs_start(void);
void procs_stop(void);

/* The header of a call of a procedure and its file handle. */
void procs_begin(struct call_buf *c, uint32_t proc, uint64_t ino);
void procs_zeros(struct call_buf *c, unsigned words);
/* A plain valid call of every procedure, on object 100. */
void procs_any_call(struct call_buf *c, uint32_t proc);
bool procs_decode(uint32_t proc, XDR *x, union nfs_res *res);
/* Calls and decodes; the reply stays in *r, its stream after the decoded part. */
void procs_call(const struct call_buf *c, uint32_t proc, struct reply *r, union nfs_res *res);

void procs_check_attr(const post_op_attr *a, uint64_t ino);
void procs_check_wcc(const wcc_data *w, uint64_t ino);
void procs_check_fh(struct hf_slice fh, uint64_t ino);

#endif

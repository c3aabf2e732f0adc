/* SPDX-License-Identifier: Apache-2.0
 *
 * Between conn.c and conn_read.c.
 */
#ifndef HF_NFS_CONN_PRIV_H
#define HF_NFS_CONN_PRIV_H

#include "svc_priv.h"

void nfs_conn_readable(evutil_socket_t fd, short what, void *arg);
/* Turns waiting for input on or off. */
void nfs_conn_reading(struct nfs_conn *c, bool on);
void nfs_conn_stash_drop(struct nfs_conn *c);
/* Looks at the paused connections again. */
void nfs_conn_resume_all(struct hf_nfssvc *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the node share.
 */
#ifndef HOLDFAST_NODE_PRIV_H
#define HOLDFAST_NODE_PRIV_H

#include "holdfast/fault.h"
#include "holdfast/rpc.h"
#include "holdfast/svc_fuse.h"
#include "holdfast/svc_meta.h"
#include "holdfast/svc_nfs.h"
#include "holdfast/svc_node.h"
#include "holdfast/svc_segment.h"
#include "holdfast/wire/node.pb-c.h"
#include "node_conf.h"

struct hf_node {
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct hf_conf *conf;
    struct node_conf keys;
    struct hf_arena arena;
    struct node_plan plan;
    int lock_fd; /* holds DIR/lock for as long as the process uses DIR */
    bool fsck, json;
    uint64_t start_ns;
    struct hf_segsvc *segment;
    struct hf_metasvc *meta;
    struct hf_nfssvc *nfs;
    struct hf_fusesvc *fuse;
    struct hf_loop *admin_loop;
    struct hf_rpc_server *admin_server;
    Hf__Node_Service admin;
};

/* node_admin.c: the admin socket. */
int node_admin_start(struct hf_node *n, char *err, size_t err_bytes);
void node_admin_stop(struct hf_node *n);

#endif

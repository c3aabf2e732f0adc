/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration of a node: its own keys and those of its roles in one table, and the cluster map
 * made of it.
 */
#ifndef HOLDFAST_NODE_CONF_H
#define HOLDFAST_NODE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/arena.h"
#include "holdfast/conf.h"
#include "holdfast/logger.h"
#include "holdfast/rt.h"
#include "holdfast/wire/meta.pb-c.h"

struct node_conf {
#define X(section, key, kind, type, def, min, max, help) type section##_##key;
#include "../fuse/conf.def"
#include "../meta/conf.def"
#include "../nfs/conf.def"
#include "../segment/conf.def"
#include "conf.def"
#include "holdfast/rpc_limits.def"
#undef X
};

extern const struct hf_conf_key node_conf_keys[];
extern const size_t node_conf_nkeys;

struct node_pool_segment {
    uint32_t id;
    const char *spec; /* backend stack */
};

/* What follows from the configuration; strings in the arena. */
struct node_plan {
    char *dir; /* absolute */
    char *meta_dir, *segment_dir, *run_dir;
    char *meta_inproc;   /* URL pattern with %u for the thread */
    char *meta_inproc_0; /* the same of thread 0 */
    char *meta_ipc;
    char *segment_inproc, *segment_ipc, *admin_ipc;
    char *meta_urls, *segment_urls; /* what the cluster map says: inproc, and ipc for others */
    char *plugins;
    enum hf_level level;
    bool meta, segment, nfs;
    struct node_pool_segment *segments;
    unsigned nsegments;
    Hf__MapGetRep map; /* what a new file system is made of */
};

/* CONF with a one-line explanation. Makes node_dir and run/ if missing. */
int node_plan_make(const struct node_conf *c, struct hf_env *env, struct hf_arena *a,
                   struct node_plan *ret, char *err, size_t err_bytes);

#endif

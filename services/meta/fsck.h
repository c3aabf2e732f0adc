/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of a check: the shards' tables (fsck_meta.c) and the segments' chunks
 * (fsck_chunks.c). All on the checking thread.
 */
#ifndef HOLDFAST_SVC_META_FSCK_H
#define HOLDFAST_SVC_META_FSCK_H

#include "holdfast/map.h"
#include "svc_priv.h"

/* What one file's layout allows to exist on segments. */
struct fsck_layout {
    uint32_t gen, nchunks, nsegments;
    uint32_t segments[];
};

struct fsck {
    struct hf_metasvc *svc;
    void (*fn)(void *arg, const Hf__FsckFinding *f);
    void *arg;
    Hf__FsckRep *totals;
    bool want_layouts;
    struct hf_map layouts; /* (ino, gen) mixed -> struct fsck_layout */
    int status;            /* NOMEM while collecting */
};

void fsck_report(struct fsck *f, const char *kind, uint64_t ino, struct hf_slice name,
                 const char *detail);
/* Checks every shard on a fresh checkpoint and collects layouts. */
int fsck_meta(struct fsck *f, char *err, size_t err_bytes);
void fsck_layouts_clear(struct fsck *f);
/* NULL: no layout allows this chunk. */
const struct fsck_layout *fsck_layout_find(const struct fsck *f, uint64_t ino, uint32_t gen);
/* Lists the chunks of every segment and compares. */
int fsck_chunks(struct fsck *f, char *err, size_t err_bytes);

#endif

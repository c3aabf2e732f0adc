/* SPDX-License-Identifier: Apache-2.0
 *
 * The segment service: serves segments (holdfast/segment.h) over RPC (segment.proto).
 *
 * Threads: one loop thread owns the RPC server and every segment; one pool thread lists and
 * verifies; backends have their own. hf_segsvc_counters and hf_segsvc_url may be called from any
 * thread, new and free from the owner's.
 */
#ifndef HOLDFAST_SVC_SEGMENT_H
#define HOLDFAST_SVC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/fault.h"
#include "holdfast/logger.h"
#include "holdfast/rpc.h"
#include "holdfast/rt.h"

struct hf_segsvc;

struct hf_segsvc_segment {
    uint32_t id;
    const char *spec; /* a backend stack, see holdfast/plug.h; NULL or "" = "posix" */
};

/* Everything is copied but env, log and faults, which outlive the service. */
struct hf_segsvc_opts {
    struct hf_env *env;
    struct hf_logger *log;
    const char *dir;        /* segment n lives in dir/segment-NNNN; made if its parent exists */
    const char *plugin_dir; /* where backend-NAME.so lie */
    struct hf_segsvc_segment *segments;
    unsigned nsegments;
    const char *const *listen;
    unsigned nlisten;
    struct hf_faults *faults; /* may be NULL */
    bool insecure;            /* plain tcp beyond loopback */
    struct hf_rpc_limits limits;
    /* Writes are refused with NOSPC while a backend has less than this free: what shares its disk
     * (shards, logs) must be able to go on, and removals need room too. 0 = none. */
    uint64_t reserve_bytes;
};

/* Opens every segment, listens, starts serving. err: >= 512 bytes, one line.
 * INVAL (no or twice the same segment), NOENT, VERSION, CONF (backend), IO, ADDRINUSE, PERM, NOMEM.
 */
int hf_segsvc_new(const struct hf_segsvc_opts *o, struct hf_segsvc **ret, char *err,
                  size_t err_bytes);
/* Stops serving, ends what is in flight, commits every dirty chunk, closes. On a simulated env it
 * runs the simulation meanwhile. */
void hf_segsvc_free(struct hf_segsvc *s);
/* The real URL of the nth listener. */
const char *hf_segsvc_url(const struct hf_segsvc *s, unsigned nth);
/* Name and value of each counter. */
void hf_segsvc_counters(const struct hf_segsvc *s,
                        void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
/* What fills up: name, used, allowed. Any thread. */
void hf_segsvc_limits(const struct hf_segsvc *s,
                      void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                      void *arg);

#endif

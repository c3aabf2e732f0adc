/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the segment service. Everything here belongs to the loop thread, but what ListChunks
 * gives to the pool (svc_list.c), and the counters.
 */
#ifndef HF_SVC_SEGMENT_PRIV_H
#define HF_SVC_SEGMENT_PRIV_H

#include "holdfast/svc_segment.h"

#include <semaphore.h>

#include "holdfast/err.h"
#include "holdfast/metrics.h"
#include "holdfast/plug.h"
#include "holdfast/rpc.h"
#include "holdfast/segment.h"
#include "holdfast/wire/segment.pb-c.h"

#define SVC_LIST_MAX     1000u /* chunks in a page */
#define SVC_DELETE_MAX   4096u /* chunks in a call */
#define SVC_SEGMENTS_MAX 1024u

struct segment {
    struct hf_segsvc *svc;
    uint32_t id;
    char *spec;
    struct hf_plug_be *be;
    struct hf_seg *seg; /* NULL once closed */
    struct hf_log_rate rate;
    uint64_t
        room_bytes; /* what may still be written before the backend is asked again; svc_space.c */
    uint64_t room_checked_ns;
};

struct svc_graves;

struct svc_metrics {
#define X(field, kind, name, help) uint64_t field;
#include "metrics.def"
#undef X
};

struct hf_segsvc {
    Hf__Segment_Service impl;
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct hf_loop *loop;
    struct hf_rpc_server *server;
    struct hf_pool *pool; /* ListChunks */
    struct hf_plug *plug;
    struct segment *segments;
    unsigned nsegments, nopen; /* nopen: segments not yet closed */
    unsigned nlists;           /* lists that the pool has */
    struct svc_graves *graves; /* chunks deleted lately; NULL: none */
    bool started, stopping, stopped;
    uint64_t reserve_bytes;
    uint64_t boot; /* differs at each start: unstable writes of an earlier one may be lost */
    struct hf_task stop_task;
    sem_t stopped_sem;
    struct svc_metrics m;
};

void svc_methods(Hf__Segment_Service *impl);
struct segment *svc_segment(struct hf_segsvc *s, const Hf__ChunkId *id);
/* Answers with an error and counts it. */
void svc_refuse(struct hf_segsvc *s, struct hf_rpc_req *req);
void svc_fail(struct hf_segsvc *s, struct hf_rpc_req *req, int status);
void svc_list_chunks(Hf__Segment_Service *service, const Hf__SegListReq *in,
                     Hf__SegListRep_Closure closure, void *data);
/* svc_graves.c */
void svc_grave_add(struct hf_segsvc *s, const Hf__ChunkId *id);
bool svc_grave_has(const struct hf_segsvc *s, const Hf__ChunkId *id);
void svc_graves_fini(struct hf_segsvc *s);
/* svc_range.c */
void svc_punch_chunk(Hf__Segment_Service *service, const Hf__SegPunchReq *in,
                     Hf__SegPunchRep_Closure closure, void *data);
void svc_seek_chunk(Hf__Segment_Service *service, const Hf__SegSeekReq *in,
                    Hf__SegSeekRep_Closure closure, void *data);
/* svc_space.c: whether len bytes may be written without touching the reserve. */
bool svc_has_room(struct segment *seg, uint32_t len);
/* svc_made.c: around the opening of segment `id` at `path` in the service's `dir`. NOENT: it was
 * made and is gone. */
int svc_made_check(const char *dir, const char *path, uint32_t id, char *err, size_t err_bytes);
int svc_made_note(const char *dir, const char *path, uint32_t id, struct hf_faults *faults,
                  char *err, size_t err_bytes);
/* Ends a stop once nothing is left. */
void svc_stop_step(struct hf_segsvc *s);

#endif

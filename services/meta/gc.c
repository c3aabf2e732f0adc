/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage: chunks whose file or layout is gone. A removed file leaves a row in its shard's gc
 * table, in the same record as the removal. When that record is durable, the chunks are deleted on
 * their segments, and then the row. Killed anywhere, the row is still there and the work is done
 * again: deleting a chunk that does not exist succeeds.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "expire.h"
#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/wire/segment.pb-c.h"
#include "shard_batch.h"
#include "svc_priv.h"

#define GC_TICK_NS     (500 * HF_NS_PER_MS)
#define STAT_TICK_NS   (5 * HF_NS_PER_SEC)
#define GC_CALL_CHUNKS 128

/* The one entry of a shard that is being freed. */
struct gc_job {
    struct gc *gc;
    struct shard *shard;
    bool active;
    struct expire expire;
    struct hf_meta_gc entry;
    uint32_t column; /* index into entry.segments */
    uint32_t next;   /* chunk index, a multiple of nsegments plus column */
    struct hf_rpc_call call;
    Hf__SegDeleteReq req;
    Hf__ChunkId ids[GC_CALL_CHUNKS];
    Hf__ChunkId *id_ptrs[GC_CALL_CHUNKS];
};

struct stat_call {
    struct gc *gc;
    struct hf_rpc_call call;
    bool busy;
};

struct gc {
    struct meta_thread *t;
    struct hf_timer tick, stat_tick;
    struct gc_job *jobs; /* one per shard of this thread */
    unsigned njobs;
    struct stat_call
        *stats; /* one per segment of the map; only those with an own client are used */
};

static void job_start(struct gc_job *j);
static void job_step(struct gc_job *j);

static struct hf_rpc_client *client_of(struct meta_thread *t, uint32_t segment)
{
    const Hf__MapGetRep *map = t->svc->map;

    for (size_t i = 0; i < map->n_segments; i++)
        if (map->segments[i]->id == segment)
            return t->segments[i];
    return NULL;
}

static int remove_row(struct shard *s, void *arg)
{
    return hf_meta_gc_done(s->meta, arg);
}

/* All chunks are gone: the row goes too, then the next entry. */
static void job_done(struct gc_job *j)
{
    struct meta_thread *t = j->gc->t;

    if (!shard_change(j->shard, remove_row, &j->entry)) {
        j->active = false; /* a checkpoint is pending: found again at the next tick */
        return;
    }
    hf_metric_add(&t->svc->metrics.gc_chunks, j->entry.nchunks - j->entry.first_chunk);
    j->active = false;
    job_start(j);
}

static void on_deleted(const Hf__SegDeleteRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct gc_job *j = call->arg;
    struct meta_thread *t = j->gc->t;

    (void)rep;
    if (t->stopping) {
        j->active = false;
        return;
    }
    if (call->status) {
        hf_metric_add(&t->svc->metrics.gc_errors, 1);
        hf_log(t->svc->log, HF_WARN, "meta",
               "shard=%" PRIu32 " ino=%" PRIu64 ": cannot free chunks: %s; will retry",
               j->shard->conf.id, j->entry.ino, hf_err_text(call->status));
        j->active = false;
        return;
    }
    job_step(j);
}

/* The first chunk of a column at or above the entry's first one: chunk i lies on segment i %
 * nsegments. */
static uint32_t column_start(const struct hf_meta_gc *g, uint32_t column)
{
    return g->first_chunk + (column + g->nsegments - g->first_chunk % g->nsegments) % g->nsegments;
}

/* Deletes the next slice: up to GC_CALL_CHUNKS chunks of one segment. */
static void job_step(struct gc_job *j)
{
    const struct hf_meta_gc *g = &j->entry;
    struct hf_rpc_client *client = NULL;
    size_t n = 0;

    while (j->column < g->nsegments && j->next >= g->nchunks) {
        j->column++;
        if (j->column < g->nsegments)
            j->next = column_start(g, j->column);
    }
    if (j->column >= g->nsegments) {
        job_done(j);
        return;
    }
    client = client_of(j->gc->t, g->segments[j->column]);
    if (!client) {
        hf_metric_add(&j->gc->t->svc->metrics.gc_errors, 1);
        j->active = false;
        return;
    }
    for (; n < GC_CALL_CHUNKS && j->next < g->nchunks; n++, j->next += g->nsegments) {
        hf__chunk_id__init(&j->ids[n]);
        j->ids[n].segment = g->segments[j->column];
        j->ids[n].ino = g->ino;
        j->ids[n].index = j->next;
        j->ids[n].gen = g->layout_gen;
        j->id_ptrs[n] = &j->ids[n];
    }
    hf__seg_delete_req__init(&j->req);
    j->req.n_chunks = n;
    j->req.chunks = j->id_ptrs;
    j->call = (struct hf_rpc_call){.arg = j};
    hf__segment__delete_chunks(hf_rpc_client_service(client, &hf__segment__descriptor), &j->req,
                               on_deleted, &j->call);
}

/* Takes the next entry that is due and durable. */
static void job_start(struct gc_job *j)
{
    struct shard *s = j->shard;
    int rc;

    if (j->active || s->dead || j->gc->t->stopping)
        return;
    hf_store_seen_reset(s->store);
    rc = hf_meta_gc_next(s->meta, NULL, hf_env_wall_ns(s->conf.env), &j->entry);
    if (batch_broken(s) || rc)
        return;
    if (!shard_seen_durable(s)) {
        hf_timer_set(&j->gc->tick, 5 * HF_NS_PER_MS);
        return;
    }
    j->active = true;
    j->column = 0;
    j->next = j->entry.nsegments ? column_start(&j->entry, 0) : 0;
    job_step(j);
}

static void on_tick(struct hf_timer *timer)
{
    struct gc *g = hf_container_of(timer, struct gc, tick);

    if (g->t->stopping)
        return;
    hf_timer_set(timer, GC_TICK_NS);
    for (unsigned i = 0; i < g->njobs; i++) {
        expire_step(g->jobs[i].shard, &g->jobs[i].expire);
        job_start(&g->jobs[i]);
    }
}

/* ---- how full segments are ---- */

static void on_stat(const Hf__SegStatRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct stat_call *st = call->arg;
    struct meta_thread *t = st->gc->t;

    st->busy = false;
    if (call->status || !rep || t->stopping)
        return;
    for (size_t i = 0; i < rep->n_segments; i++)
        for (unsigned s = t->index; s < t->svc->nshards; s += t->svc->nthreads)
            hf_meta_set_segment_free(t->svc->shards[s]->meta, rep->segments[i]->id,
                                     rep->segments[i]->free_bytes);
}

/* True if no earlier segment of the map has the same client. */
static bool first_of_client(const struct meta_thread *t, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (t->segments[k] == t->segments[i])
            return false;
    return true;
}

static void on_stat_tick(struct hf_timer *timer)
{
    static const Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;
    struct gc *g = hf_container_of(timer, struct gc, stat_tick);

    if (g->t->stopping)
        return;
    hf_timer_set(timer, STAT_TICK_NS);
    for (size_t i = 0; i < g->t->svc->map->n_segments; i++) {
        struct stat_call *st = &g->stats[i];

        if (st->busy || !first_of_client(g->t, i))
            continue;
        st->busy = true;
        st->call = (struct hf_rpc_call){.arg = st, .timeout_ns = STAT_TICK_NS};
        hf__segment__stat(hf_rpc_client_service(g->t->segments[i], &hf__segment__descriptor), &req,
                          on_stat, &st->call);
    }
}

int gc_new(struct meta_thread *t, struct gc **ret)
{
    struct gc *g = calloc(1, sizeof(*g));

    if (!g)
        return HF_E_NOMEM;
    g->t = t;
    for (unsigned s = t->index; s < t->svc->nshards; s += t->svc->nthreads)
        g->njobs++;
    g->jobs = calloc(g->njobs + 1, sizeof(*g->jobs));
    g->stats = calloc(t->svc->map->n_segments + 1, sizeof(*g->stats));
    if (!g->jobs || !g->stats) {
        gc_free(g);
        return HF_E_NOMEM;
    }
    for (unsigned i = 0; i < g->njobs; i++) {
        g->jobs[i].gc = g;
        g->jobs[i].shard = t->svc->shards[t->index + i * t->svc->nthreads];
    }
    for (size_t i = 0; i < t->svc->map->n_segments; i++)
        g->stats[i].gc = g;
    hf_timer_init(&g->tick, t->loop, on_tick);
    hf_timer_init(&g->stat_tick, t->loop, on_stat_tick);
    *ret = g;
    return 0;
}

void gc_start(struct gc *g)
{
    hf_timer_set(&g->tick, GC_TICK_NS);
    hf_timer_set(&g->stat_tick, 0);
}

void gc_free(struct gc *g)
{
    if (!g)
        return;
    free(g->jobs);
    free(g->stats);
    free(g);
}

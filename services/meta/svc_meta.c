/* SPDX-License-Identifier: Apache-2.0
 *
 * Life of the metadata service: threads, RPC servers, dispatch to shards, counters.
 */
#include "holdfast/svc_meta.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "svc_priv.h"

/* ---- calls ---- */

static void dispatch(void *arg, struct hf_rpc_req *req)
{
    struct meta_thread *t = arg;

    if (req->service == &hf__meta_admin__descriptor)
        hf_rpc_req_invoke(req, &t->admin.base);
    else if (req->target >= t->svc->nshards || req->target % t->svc->nthreads != t->index)
        hf_rpc_reply(req, HF_E_NOTLEADER, NULL, NULL, 0);
    else
        shard_call(t->svc->shards[req->target], req);
}

struct counter_list {
    Hf__StatusRep rep;
    Hf__CounterEntry entries[64];
    Hf__CounterEntry *ptrs[64];
};

static void add_counter(void *arg, const char *name, uint64_t value)
{
    struct counter_list *l = arg;
    size_t i = l->rep.n_counters;

    if (i == HF_ARRAY_LEN(l->entries))
        return;
    hf__counter_entry__init(&l->entries[i]);
    /* protobuf-c's strings are not const; the message is only packed */
    l->entries[i].name = (char *)(uintptr_t)name;
    l->entries[i].value = value;
    l->ptrs[i] = &l->entries[i];
    l->rep.n_counters++;
}

static void admin_status(Hf__MetaAdmin_Service *impl, const Hf__StatusReq *in,
                         Hf__StatusRep_Closure closure, void *data)
{
    struct meta_thread *t = hf_container_of(impl, struct meta_thread, admin);
    struct counter_list l;
    static char role[] = "meta", state[] = "serving";

    (void)in;
    hf__status_rep__init(&l.rep);
    l.rep.counters = l.ptrs;
    l.rep.role = role;
    l.rep.state = state;
    hf_metasvc_counters(t->svc, add_counter, &l);
    closure(&l.rep, data);
}

static void admin_fsck(Hf__MetaAdmin_Service *impl, const Hf__FsckReq *in,
                       Hf__FsckRep_Closure closure, void *data)
{
    (void)closure; /* answers through the request itself, later */
    fsck_serve(hf_container_of(impl, struct meta_thread, admin), data, in);
}

static struct hf_rpc_stats rpc_stats(const struct hf_metasvc *s)
{
    struct hf_rpc_stats st = {0};

    for (unsigned i = 0; i < s->nthreads; i++)
        hf_rpc_server_stats(s->threads[i].server, &st);
    return st;
}

void hf_metasvc_limits(const struct hf_metasvc *s,
                       void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                       void *arg)
{
    const struct hf_rpc_stats st = rpc_stats(s);

    hf_rpc_limits_each(&st, hf_rpc_server_limits(s->threads[0].server), s->nthreads, fn, arg);
}

void hf_metasvc_counters(const struct hf_metasvc *s,
                         void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
    const struct hf_rpc_stats st = rpc_stats(s);
    struct hf_wal_stats w;

    hf_rpc_stats_each(&st, fn, arg);
#define X(field, kind, name, help) fn(arg, name, hf_metric_get(&s->metrics.field));
#include "metrics.def"
#undef X
    hf_wal_stats(s->wal, &w);
    fn(arg, "holdfast_wal_records_total", w.records);
    fn(arg, "holdfast_wal_bytes_total", w.bytes);
    fn(arg, "holdfast_wal_fsyncs_total", w.fsyncs);
    fn(arg, "holdfast_wal_fsync_ns_total", w.fsync_ns_sum);
    fn(arg, "holdfast_wal_fsync_ns_max", w.fsync_ns_max);
    fn(arg, "holdfast_wal_used_bytes", w.used_bytes);
}

/* ---- start ---- */

static char *format_url(struct hf_metasvc *s, const char *pattern, unsigned thread)
{
    struct hf_buf b = {0};
    const char *at;
    char *url = NULL;
    int rc = 0;

    for (; rc == 0 && (at = strstr(pattern, "%u")) != NULL; pattern = at + 2)
        rc = hf_buf_printf(&b, "%.*s%u", (int)(at - pattern), pattern, thread);
    if (rc == 0)
        rc = hf_buf_printf(&b, "%s", pattern);
    if (rc == 0)
        url = hf_arena_strdup(&s->strings, (const char *)b.data);
    hf_buf_fini(&b);
    return url;
}

static int listen_thread(struct hf_metasvc *s, struct meta_thread *t, char *err, size_t err_bytes)
{
    for (unsigned i = 0; i < s->opts.nlisten; i++) {
        const char *url = format_url(s, s->opts.listen[i], t->index);
        int rc = url ? hf_rpc_server_listen(t->server, url) : HF_E_NOMEM;

        if (rc) {
            (void)snprintf(err, err_bytes, "cannot listen on %s: %s", url ? url : "?",
                           hf_err_text(rc));
            return rc;
        }
    }
    return 0;
}

/* The map's segments as clients of this thread; equal URLs share one. */
static int connect_segments(struct hf_metasvc *s, struct meta_thread *t)
{
    const Hf__MapGetRep *map = s->map;
    const struct hf_rpc_client_opts opts = {.insecure = s->opts.insecure};

    t->segments = calloc(map->n_segments + 1, sizeof(struct hf_rpc_client *));
    if (!t->segments)
        return HF_E_NOMEM;
    for (size_t i = 0; i < map->n_segments; i++) {
        for (size_t k = 0; k < i && !t->segments[i]; k++)
            if (strcmp(map->segments[k]->url, map->segments[i]->url) == 0)
                t->segments[i] = t->segments[k];
        if (t->segments[i])
            continue;
        int rc = hf_rpc_client_new(t->loop, map->segments[i]->url, &opts, &t->segments[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static int start_thread(struct hf_metasvc *s, struct meta_thread *t, char *err, size_t err_bytes)
{
    const struct hf_rpc_server_opts opts = {
        .dispatch = dispatch, .arg = t, .limits = s->opts.limits, .insecure = s->opts.insecure};
    int rc = hf_rpc_server_new(t->loop, &opts, &t->server);

    t->admin = (Hf__MetaAdmin_Service){
        .base = {.descriptor = &hf__meta_admin__descriptor,
                 .invoke = protobuf_c_service_invoke_internal},
        .status = admin_status,
        .fsck = admin_fsck,
    };
    if (rc == 0)
        rc = hf_rpc_server_add(t->server, hf_meta_service(s->shards[t->index]->meta));
    if (rc == 0)
        rc = hf_rpc_server_add(t->server, &t->admin.base);
    if (rc == 0)
        rc = connect_segments(s, t);
    if (rc == 0)
        rc = gc_new(t, &t->gc);
    if (rc) {
        (void)snprintf(err, err_bytes, "cannot start metadata thread %u: %s", t->index,
                       hf_err_text(rc));
        return rc;
    }
    rc = listen_thread(s, t, err, err_bytes);
    if (rc)
        return rc;
    gc_start(t->gc);
    rc = hf_loop_start(t->loop);
    if (rc)
        (void)snprintf(err, err_bytes, "cannot start metadata thread %u: %s", t->index,
                       hf_err_text(rc));
    else
        t->running_shards = 1; /* marks the loop as started; counts shards while stopping */
    return rc;
}

static void default_fatal(void *arg, const char *what)
{
    struct hf_metasvc *s = arg;

    hf_log(s->log, HF_ERROR, "meta", "%s; stopping at once, nothing more is acknowledged", what);
    abort();
}

/* The caller's map with this process' shards in it, in memory of our own. */
static int copy_map(struct hf_metasvc *s, const Hf__MapGetRep *map)
{
    Hf__ShardEntry *entries = hf_arena_zalloc(&s->strings, map->shard_count * sizeof(*entries));
    Hf__ShardEntry **ptrs =
        hf_arena_zalloc(&s->strings, map->shard_count * sizeof(Hf__ShardEntry *));

    s->map = hf_arena_dup(&s->strings, map, sizeof(*map));
    if (!entries || !ptrs || !s->map)
        return HF_E_NOMEM;
    for (uint32_t i = 0; i < map->shard_count; i++) {
        hf__shard_entry__init(&entries[i]);
        entries[i].shard = i;
        entries[i].url =
            format_url(s, s->opts.map_url ? s->opts.map_url : s->opts.listen[0], i % s->nthreads);
        ptrs[i] = &entries[i];
        if (!entries[i].url)
            return HF_E_NOMEM;
    }
    s->map->n_shards = map->shard_count;
    s->map->shards = ptrs;
    return 0;
}

static int init(struct hf_metasvc *s, const struct hf_metasvc_opts *o)
{
    s->env = o->env;
    s->log = o->log;
    s->faults = o->faults;
    s->opts = *o;
    if (!s->opts.checkpoint_changes)
        s->opts.checkpoint_changes = 8192;
    if (!s->opts.checkpoint_idle_ms)
        s->opts.checkpoint_idle_ms = 300;
    if (!s->opts.fatal) {
        s->opts.fatal = default_fatal;
        s->opts.arg = s;
    }
    hf_arena_init(&s->strings, 0);
    if (pthread_mutex_init(&s->fsck_lock, NULL))
        return HF_E_NOMEM;
    if (o->map->shard_count == 0)
        return HF_E_INVAL;
    s->nshards = o->map->shard_count;
    s->nthreads = o->threads ? o->threads : 1;
    if (s->nthreads > s->nshards)
        s->nthreads = s->nshards;
    s->shards = calloc(s->nshards, sizeof(struct shard *));
    s->threads = calloc(s->nthreads, sizeof(*s->threads));
    if (!s->shards || !s->threads)
        return HF_E_NOMEM;
    for (unsigned i = 0; i < s->nthreads; i++) {
        char name[16];
        int rc;

        (void)snprintf(name, sizeof(name), "meta-%u", i);
        s->threads[i].svc = s;
        s->threads[i].index = i;
        if (sem_init(&s->threads[i].stopped, 0, 0))
            return HF_E_NOMEM;
        rc = hf_loop_new(s->env, name, &s->threads[i].loop);
        if (rc)
            return rc;
    }
    return copy_map(s, o->map);
}

int hf_metasvc_new(const struct hf_metasvc_opts *o, struct hf_metasvc **ret, char *err,
                   size_t err_bytes)
{
    struct hf_metasvc *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return HF_E_NOMEM;
    (void)snprintf(err, err_bytes, "cannot start the metadata service");
    rc = init(s, o);
    if (rc == 0)
        rc = svc_open_shards(s, err, err_bytes);
    if (rc == 0)
        rc = hf_pool_new(s->env, "meta-fsck", 1, 4, &s->pool);
    for (unsigned i = 0; i < s->nthreads && rc == 0; i++)
        rc = start_thread(s, &s->threads[i], err, err_bytes);
    if (rc) {
        hf_metasvc_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

const char *hf_metasvc_url(const struct hf_metasvc *s)
{
    return s->map->shards[0]->url;
}

/* ---- stop ---- */

/* A shard that is being stopped: drained until nothing is queued, open, in flight or dirty. */
struct stopping_shard {
    struct hf_task task;
    struct meta_thread *t;
    struct shard *shard;
};

/* The last shard of a thread tells who waits in hf_metasvc_free. */
static void shard_stopped(struct meta_thread *t)
{
    if (--t->running_shards == 0)
        (void)sem_post(&t->stopped);
}

static void on_stop_drained(void *arg)
{
    struct stopping_shard *ss = arg;

    hf_loop_post(ss->t->loop, &ss->task); /* look again after what had queued has run */
}

static void stop_step(struct hf_task *task)
{
    struct stopping_shard *ss = hf_container_of(task, struct stopping_shard, task);
    struct shard *s = ss->shard;
    struct meta_thread *t = ss->t;

    if (!s->dead && (s->checkpointing || !hf_list_empty(&s->queue) ||
                     !hf_list_empty(&s->inflight) || hf_store_dirty(s->store))) {
        if (!s->drained)
            shard_drain(s, on_stop_drained, ss);
        else
            hf_loop_post(t->loop, task);
        return;
    }
    free(ss);
    shard_stopped(t);
}

static void stop_thread(struct hf_task *task)
{
    struct meta_thread *t = hf_container_of(task, struct meta_thread, stop);

    t->stopping = true;
    hf_rpc_server_stop(t->server);
    t->running_shards = 1;
    for (unsigned i = t->index; i < t->svc->nshards; i += t->svc->nthreads) {
        struct stopping_shard *ss = calloc(1, sizeof(*ss));

        if (!ss)
            continue; /* not checkpointed; the log has everything */
        *ss = (struct stopping_shard){.task.fn = stop_step, .t = t, .shard = t->svc->shards[i]};
        t->running_shards++;
        hf_loop_post(t->loop, &ss->task);
    }
    shard_stopped(t);
}

static void free_segments(struct meta_thread *t)
{
    size_t n = t->svc->map ? t->svc->map->n_segments : 0;

    if (!t->segments)
        return;
    for (size_t i = 0; i < n; i++) {
        struct hf_rpc_client *c = t->segments[i];

        if (!c)
            continue;
        for (size_t k = i; k < n; k++)
            if (t->segments[k] == c)
                t->segments[k] = NULL;
        hf_rpc_client_free(c);
    }
    free(t->segments);
}

void hf_metasvc_free(struct hf_metasvc *s)
{
    if (!s)
        return;
    if (s->pool)
        hf_pool_free(s->pool); /* a check in progress ends first: it needs the shards' threads */
    for (unsigned i = 0; s->threads && i < s->nthreads; i++) {
        struct meta_thread *t = &s->threads[i];

        if (!t->running_shards)
            continue;
        t->stop.fn = stop_thread;
        hf_loop_post(t->loop, &t->stop);
    }
    for (unsigned i = 0; s->threads && i < s->nthreads; i++) {
        struct meta_thread *t = &s->threads[i];

        if (!t->stop.fn)
            continue;
        while (sem_wait(&t->stopped))
            ;
        hf_loop_join(t->loop);
    }
    for (unsigned i = 0; s->threads && i < s->nthreads; i++) {
        s->threads[i].stopping = true;
        free_segments(&s->threads[i]);
        gc_free(s->threads[i].gc);
    }
    /* Appends that a shard that died still has in flight complete here; nobody runs their tasks. */
    if (s->wal)
        hf_wal_close(s->wal);
    for (unsigned i = 0; s->shards && i < s->nshards; i++)
        shard_free(s->shards[i]);
    for (unsigned i = 0; s->threads && i < s->nthreads; i++) {
        if (s->threads[i].server)
            hf_rpc_server_free(s->threads[i].server);
        if (s->threads[i].loop)
            hf_loop_free(s->threads[i].loop);
    }
    free(s->shards);
    free(s->threads);
    hf_arena_fini(&s->strings);
    (void)pthread_mutex_destroy(&s->fsck_lock);
    free(s);
}

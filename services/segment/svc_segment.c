/* SPDX-License-Identifier: Apache-2.0
 *
 * Start and stop of the segment service.
 */
#include "svc_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/dirs.h"

#define LIST_QUEUE 64u

static void on_error(void *arg, const struct hf_chunk_id *id, uint32_t block, int err,
                     const char *what)
{
    struct segment *g = arg;
    struct hf_segsvc *s = g->svc;

    hf_metric_add(err == HF_E_CORRUPT ? &s->m.checksum_errors : &s->m.device_errors, 1);
    if (!hf_log_rate_ok(&g->rate, 5))
        return;
    if (block < HF_SEG_BLOCKS)
        hf_log(s->log, HF_ERROR, "segment",
               "segment=%" PRIu32 " chunk=%" PRIx64 ".%" PRIu32 ".%" PRIu32 " block=%" PRIu32
               ": %s (%s)",
               g->id, id->ino, id->index, id->gen, block, what, hf_err_name(err));
    else
        hf_log(s->log, HF_ERROR, "segment",
               "segment=%" PRIu32 " chunk=%" PRIx64 ".%" PRIu32 ".%" PRIu32 ": %s (%s)", g->id,
               id->ino, id->index, id->gen, what, hf_err_name(err));
}

/* ---- stop ---- */

void svc_stop_step(struct hf_segsvc *s)
{
    if (!s->stopping || s->stopped || s->nopen > 0 || s->nlists > 0)
        return;
    s->stopped = true;
    (void)sem_post(&s->stopped_sem);
}

static void seg_closed(void *arg)
{
    struct segment *g = arg;

    g->svc->nopen--;
    svc_stop_step(g->svc);
}

static void stop_task(struct hf_task *t)
{
    struct hf_segsvc *s = hf_container_of(t, struct hf_segsvc, stop_task);

    hf_rpc_server_stop(s->server);
    s->stopping = true;
    for (unsigned i = 0; i < s->nsegments; i++) {
        struct hf_seg *seg = s->segments[i].seg;

        s->segments[i].seg = NULL;
        if (seg)
            hf_seg_close(seg, seg_closed, &s->segments[i]);
    }
    svc_stop_step(s);
}

static void stop_and_wait(struct hf_segsvc *s)
{
    s->stop_task.fn = stop_task;
    hf_loop_post(s->loop, &s->stop_task);
    if (hf_env_is_sim(s->env)) {
        while (!s->stopped && hf_sim_step(s->env))
            ;
        HF_ASSERT(s->stopped);
    } else {
        while (sem_wait(&s->stopped_sem) && errno == EINTR)
            ;
    }
    hf_loop_join(s->loop);
}

/* Frees what there is; also after a failed start, when the loop never ran and no segment is open.
 */
static void destroy(struct hf_segsvc *s)
{
    if (s->pool)
        hf_pool_free(s->pool);
    if (s->server)
        hf_rpc_server_free(s->server);
    svc_graves_fini(s);
    for (unsigned i = 0; i < s->nsegments; i++) {
        hf_plug_close(s->segments[i].be);
        free(s->segments[i].spec);
    }
    free(s->segments);
    hf_plug_free(s->plug);
    if (s->loop)
        hf_loop_free(s->loop);
    (void)sem_destroy(&s->stopped_sem);
    free(s);
}

void hf_segsvc_free(struct hf_segsvc *s)
{
    if (!s)
        return;
    stop_and_wait(s);
    destroy(s);
}

/* ---- start ---- */

static int open_segment(struct hf_segsvc *s, const struct hf_segsvc_opts *o, unsigned i, char *err,
                        size_t err_bytes)
{
    const char *spec = o->segments[i].spec;
    struct segment *g = &s->segments[i];
    char path[4200], why[512];
    int rc;

    g->svc = s;
    g->id = o->segments[i].id;
    for (unsigned k = 0; k < i; k++) {
        if (s->segments[k].id == g->id) {
            (void)snprintf(err, err_bytes, "segment %" PRIu32 " is named twice", g->id);
            return HF_E_INVAL;
        }
    }
    g->spec = strdup(spec && *spec ? spec : "posix");
    if (!g->spec)
        return HF_E_NOMEM;
    rc = snprintf(path, sizeof(path), "%s/segment-%04" PRIu32, o->dir, g->id);
    if (rc < 0 || (size_t)rc >= sizeof(path)) {
        (void)snprintf(err, err_bytes, "segment %" PRIu32 ": path is too long", g->id);
        return HF_E_NAMETOOLONG;
    }
    rc = svc_made_check(o->dir, path, g->id, err, err_bytes);
    if (rc)
        return rc;
    (void)snprintf(why, sizeof(why), "fault");
    rc = hf_fault(o->faults, HF_FAULT_SEG_OPEN);
    if (rc == 0)
        rc = hf_plug_open(s->plug, g->spec, path, 0, &g->be, why, sizeof(why));
    if (rc)
        (void)snprintf(err, err_bytes, "segment %" PRIu32 ": %.400s", g->id, why);
    else if (hf_plug_ops(g->be)->caps & HF_BE_CAP_PERSISTENT)
        rc = svc_made_note(o->dir, path, g->id, o->faults, err, err_bytes);
    return rc;
}

static int open_backends(struct hf_segsvc *s, const struct hf_segsvc_opts *o, char *err,
                         size_t err_bytes)
{
    int rc;

    if (o->nsegments == 0 || o->nsegments > SVC_SEGMENTS_MAX) {
        (void)snprintf(err, err_bytes, "1 to %u segments are needed", SVC_SEGMENTS_MAX);
        return HF_E_INVAL;
    }
    s->segments = calloc(o->nsegments, sizeof(*s->segments));
    if (!s->segments)
        return HF_E_NOMEM;
    rc = hf_dir_make(o->dir);
    if (rc) {
        (void)snprintf(err, err_bytes, "cannot make %.300s: %s", o->dir, hf_err_text(rc));
        return rc;
    }
    for (unsigned i = 0; i < o->nsegments; i++) {
        s->nsegments = i + 1;
        rc = open_segment(s, o, i, err, err_bytes);
        if (rc)
            return rc;
    }
    return 0;
}

static int serve(struct hf_segsvc *s, const struct hf_segsvc_opts *o, char *err, size_t err_bytes)
{
    struct hf_rpc_server_opts so = {.insecure = o->insecure, .limits = o->limits};
    int rc = hf_rpc_server_new(s->loop, &so, &s->server);

    if (rc)
        return rc;
    svc_methods(&s->impl);
    rc = hf_rpc_server_add(s->server, &s->impl.base);
    for (unsigned i = 0; i < o->nlisten && rc == 0; i++) {
        rc = hf_rpc_server_listen(s->server, o->listen[i]);
        if (rc)
            (void)snprintf(err, err_bytes, "cannot listen on %.300s: %s", o->listen[i],
                           hf_err_text(rc));
    }
    return rc;
}

/* Last, for from here on the loop must run to end it again. */
static int start(struct hf_segsvc *s, const struct hf_segsvc_opts *o)
{
    int rc = 0;

    for (unsigned i = 0; i < s->nsegments && rc == 0; i++) {
        struct segment *g = &s->segments[i];
        struct hf_seg_opts so = {.id = g->id,
                                 .loop = s->loop,
                                 .backend = g->be,
                                 .faults = o->faults,
                                 .on_error = on_error,
                                 .arg = g};

        rc = hf_seg_open(&so, &g->seg);
        s->nopen += rc == 0 ? 1 : 0;
    }
    if (rc == 0 || s->nopen > 0)
        s->started = hf_loop_start(s->loop) == 0;
    return rc == 0 && !s->started ? HF_E_NOMEM : rc;
}

int hf_segsvc_new(const struct hf_segsvc_opts *o, struct hf_segsvc **ret, char *err,
                  size_t err_bytes)
{
    struct hf_segsvc *s = calloc(1, sizeof(*s));
    int rc;

    (void)snprintf(err, err_bytes, "out of memory");
    if (!s)
        return HF_E_NOMEM;
    (void)sem_init(&s->stopped_sem, 0, 0);
    s->env = o->env;
    s->log = o->log;
    s->faults = o->faults;
    s->boot = hf_env_random_u64(o->env);
    s->reserve_bytes = o->reserve_bytes;
    rc = hf_loop_new(o->env, "segment", &s->loop);
    if (rc == 0)
        rc = hf_pool_new(o->env, "seg-list", 1, LIST_QUEUE, &s->pool);
    if (rc == 0)
        rc = hf_plug_new(o->plugin_dir, &s->plug);
    if (rc == 0)
        rc = open_backends(s, o, err, err_bytes);
    if (rc == 0)
        rc = serve(s, o, err, err_bytes);
    if (rc == 0)
        rc = start(s, o);
    if (rc) {
        if (s->started)
            stop_and_wait(s);
        destroy(s);
        return rc;
    }
    *ret = s;
    return 0;
}

const char *hf_segsvc_url(const struct hf_segsvc *s, unsigned nth)
{
    return hf_rpc_server_url(s->server, nth);
}

void hf_segsvc_limits(const struct hf_segsvc *s,
                      void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                      void *arg)
{
    struct hf_rpc_stats st = {0};

    hf_rpc_server_stats(s->server, &st);
    hf_rpc_limits_each(&st, hf_rpc_server_limits(s->server), 1, fn, arg);
}

void hf_segsvc_counters(const struct hf_segsvc *s,
                        void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
    struct hf_rpc_stats st = {0};

    hf_rpc_server_stats(s->server, &st);
    hf_rpc_stats_each(&st, fn, arg);
#define X(field, kind, name, help) fn(arg, name, hf_metric_get(&s->m.field));
#include "metrics.def"
#undef X
}

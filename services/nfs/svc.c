/* SPDX-License-Identifier: Apache-2.0
 *
 * Life of a gateway.
 *
 *   new     the caller's thread binds the listening sockets (so that it can say why not), starts
 * the loop thread and waits for its set-up there: client, vfs, timers ready   the map has come and
 * its exports are resolved: accepting begins. Until then clients wait in the backlog, instead of
 * being told that their handles are stale free    nothing new is read; requests in progress get
 * STOP_NS to end; then the client library completes what is left, whose replies are dropped
 * (clients repeat those elsewhere or later)
 */
#include <stdio.h>

#include "svc_priv.h"

#define STOP_NS       (2 * HF_NS_PER_SEC)
#define SWEEP_NS      HF_NS_PER_SEC
#define READY_POLL_NS (2 * HF_NS_PER_MS)

#define DEFAULT_(field, value) (o->field = o->field ? o->field : (value))

static void fill_defaults(struct hf_nfssvc_opts *o)
{
    DEFAULT_(max_connections, 1024);
    DEFAULT_(max_requests_per_connection, 256);
    DEFAULT_(max_request_bytes, 256ull << 20);
    DEFAULT_(max_reply_bytes, 16ull << 20);
    DEFAULT_(idle_timeout_ms, 360000);
    DEFAULT_(stall_timeout_ms, 60000);
    DEFAULT_(drc_entries, 32768);
    DEFAULT_(drc_bytes, 16ull << 20);
    if (!o->listen)
        o->listen = "127.0.0.1:20490";
}

/* ---- on the loop thread ---- */

static void on_map(void *arg, const Hf__MapGetRep *map)
{
    struct hf_nfssvc *s = arg;

    if (s->vfs)
        hf_vfs_map_changed(s->vfs, map);
}

static void on_ready_poll(struct hf_timer *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, ready_poll);

    if (s->stopping)
        return;
    if (!hf_vfs_ready(s->vfs) || nfs_listen_start(s) != 0) {
        hf_timer_set(t, READY_POLL_NS);
        return;
    }
    __atomic_store_n(&s->ready, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < s->nlisteners; i++)
        hf_log(s->log, HF_INFO, "nfs", "serving NFSv3 and MOUNT3 on %s", s->listeners[i].name);
}

static void on_sweep(struct hf_timer *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, sweep);
    struct hf_client_stats st;

    hf_timer_set(t, SWEEP_NS);
    nfs_conn_sweep(s);
    nfs_drc_expire(s->drc, hf_loop_now_ns(s->loop));
    nfs_listen_resume(s);
    hf_loop_defer(s->loop, &s->flush);
    hf_client_stats(s->client, &st);
    hf_metric_set(&s->m.meta_retries, st.meta_retries);
    hf_metric_set(&s->m.checksum_errors, st.checksum_errors);
    hf_metric_set(&s->m.request_bytes, s->mem.in_use);
    hf_metric_set(&s->m.reply_bytes, s->out_bytes);
    hf_metric_set(&s->m.drc_entries, nfs_drc_entries(s->drc));
    hf_metric_set(&s->m.drc_bytes, nfs_drc_bytes(s->drc));
}

static int set_up(struct hf_nfssvc *s)
{
    const struct hf_client_opts co = {
        .loop = s->loop,
        .meta_url = s->o.meta_url,
        .name = s->listeners[0].name,
        .insecure = s->o.insecure,
        .on_map = on_map,
        .arg = s,
    };
    int rc = hf_client_new(&co, &s->client);

    if (rc == 0)
        rc = hf_vfs_new(s->loop, s->client, &s->vfs);
    if (rc)
        return rc;
    hf_timer_set(&s->ready_poll, 0);
    hf_timer_set(&s->sweep, SWEEP_NS);
    return 0;
}

static void on_init(struct hf_task *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, init_task);
    int rc = set_up(s);

    pthread_mutex_lock(&s->life_lock);
    s->init_rc = rc;
    s->init_done = true;
    pthread_cond_signal(&s->life_cond);
    pthread_mutex_unlock(&s->life_lock);
}

/* Step 3 of stopping: everything has completed. */
static void on_end(struct hf_task *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, end_task);

    if (s->inflight > 0) {
        /* Refusals that the vfs has posted. */
        hf_loop_post(s->loop, t);
        return;
    }
    while (!hf_list_empty(&s->conns))
        nfs_conn_free(hf_container_of(s->conns.next, struct nfs_conn, link));
    hf_vfs_free(s->vfs);
    s->vfs = NULL;
    pthread_mutex_lock(&s->life_lock);
    s->ended = true;
    pthread_cond_signal(&s->life_cond);
    pthread_mutex_unlock(&s->life_lock);
}

/* Step 2: all replies are sent, or the time is over. */
static void on_stop_timer(struct hf_timer *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, stop_timer);
    bool over = hf_loop_now_ns(s->loop) >= s->stop_at_ns;

    if (!over && (s->inflight > 0 || !hf_list_empty(&s->conns))) {
        hf_timer_set(t, READY_POLL_NS);
        return;
    }
    s->closing = true;
    hf_timer_cancel(&s->sweep);
    hf_client_free(s->client);
    s->client = NULL;
    on_end(&s->end_task);
}

/* Step 1. */
static void on_stop(struct hf_task *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, stop_task);

    s->stopping = true;
    s->stop_at_ns = hf_loop_now_ns(s->loop) + STOP_NS;
    hf_timer_cancel(&s->ready_poll);
    nfs_listen_close(s);
    HF_LIST_FOREACH(l, &s->conns)
    nfs_conn_drain(hf_container_of(l, struct nfs_conn, link));
    hf_timer_set(&s->stop_timer, 0);
}

/* ---- any thread ---- */

/* All that needs no loop thread; on failure svc_dispose cleans up. */
static int svc_make(const struct hf_nfssvc_opts *o, struct hf_nfssvc *s, char *err,
                    size_t err_bytes)
{
    int rc;

    s->o = *o;
    fill_defaults(&s->o);
    s->log = o->log;
    s->flush.fn = nfs_conn_flush_task;
    s->init_task.fn = on_init;
    s->stop_task.fn = on_stop;
    s->end_task.fn = on_end;
    s->drc = nfs_drc_new(s->o.drc_entries, s->o.drc_bytes, hf_env_random_u64(o->env));
    s->scratch = malloc(NFS_SCRATCH);
    s->encode = malloc(NFS_ENCODE_BYTES);
    if (!s->drc || !s->scratch || !s->encode)
        return HF_E_NOMEM;
    rc = nfs_listen_open(s, s->o.listen, err, err_bytes);
    if (rc == 0)
        rc = hf_loop_new(o->env, "nfs", &s->loop);
    if (rc)
        return rc;
    if (!hf_loop_base(s->loop)) {
        (void)snprintf(err, err_bytes, "nfs: sockets need a real environment");
        return HF_E_INVAL;
    }
    hf_timer_init(&s->sweep, s->loop, on_sweep);
    hf_timer_init(&s->ready_poll, s->loop, on_ready_poll);
    hf_timer_init(&s->stop_timer, s->loop, on_stop_timer);
    return hf_loop_start(s->loop);
}

static void svc_dispose(struct hf_nfssvc *s)
{
    struct hf_list *l;

    nfs_listen_close(s);
    if (s->loop) {
        hf_loop_join(s->loop);
        hf_loop_free(s->loop);
    }
    while ((l = hf_list_pop_front(&s->spare_reqs)) != NULL)
        free(hf_container_of(l, struct nfs_req, link));
    nfs_drc_free(s->drc);
    nfs_mounts_fini(&s->mounts);
    nfs_mem_fini(&s->mem);
    free(s->scratch);
    free(s->encode);
    pthread_mutex_destroy(&s->life_lock);
    pthread_cond_destroy(&s->life_cond);
    free(s);
}

static int wait_for_set_up(struct hf_nfssvc *s)
{
    hf_loop_post(s->loop, &s->init_task);
    pthread_mutex_lock(&s->life_lock);
    while (!s->init_done)
        pthread_cond_wait(&s->life_cond, &s->life_lock);
    pthread_mutex_unlock(&s->life_lock);
    return s->init_rc;
}

int hf_nfssvc_new(const struct hf_nfssvc_opts *o, struct hf_nfssvc **ret, char *err,
                  size_t err_bytes)
{
    struct hf_nfssvc *s = calloc(1, sizeof(*s));
    int rc = HF_E_NOMEM;

    if (err_bytes)
        err[0] = '\0';
    if (!s)
        goto fail;
    hf_list_init(&s->conns);
    hf_list_init(&s->dirty);
    hf_list_init(&s->paused);
    hf_list_init(&s->spare_reqs);
    nfs_mounts_init(&s->mounts);
    pthread_mutex_init(&s->life_lock, NULL);
    pthread_cond_init(&s->life_cond, NULL);
    for (unsigned i = 0; i < NFS_LISTENERS; i++)
        s->listeners[i].fd = -1;
    rc = svc_make(o, s, err, err_bytes);
    if (rc == 0)
        rc = wait_for_set_up(s);
    if (rc)
        goto fail;
    if (s->o.rpcbind)
        nfs_rpcbind_set(s);
    *ret = s;
    return 0;
fail:
    if (err_bytes && err[0] == '\0')
        (void)snprintf(err, err_bytes, "nfs: %s", hf_err_text(rc));
    if (s && s->client)
        hf_nfssvc_free(s);
    else if (s)
        svc_dispose(s);
    return rc;
}

bool hf_nfssvc_ready(const struct hf_nfssvc *s)
{
    return __atomic_load_n(&s->ready, __ATOMIC_ACQUIRE);
}

const char *hf_nfssvc_listen(const struct hf_nfssvc *s)
{
    return s->listeners[0].name;
}

int hf_nfssvc_port(const struct hf_nfssvc *s)
{
    return s->listeners[0].port;
}

void hf_nfssvc_free(struct hf_nfssvc *s)
{
    if (!s)
        return;
    nfs_rpcbind_unset(s);
    hf_loop_post(s->loop, &s->stop_task);
    /* The loop ends by itself; join would end it at once. */
    pthread_mutex_lock(&s->life_lock);
    while (!s->ended)
        pthread_cond_wait(&s->life_cond, &s->life_lock);
    pthread_mutex_unlock(&s->life_lock);
    svc_dispose(s);
}

void hf_nfssvc_counters(const struct hf_nfssvc *s,
                        void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
#define X(name, kind, help) fn(arg, #name, hf_metric_get(&s->m.name));
#include "metrics.def"
#undef X
    fn(arg, "nfs3_null_calls", hf_metric_get(&s->m.nfs_calls[0]));
#define X(num, NAME, name, remembered, failure, errors)                                            \
    fn(arg, "nfs3_" #name "_calls", hf_metric_get(&s->m.nfs_calls[num]));                          \
    fn(arg, "nfs3_" #name "_errors", hf_metric_get(&s->m.nfs_errors[num]));
#include "procs.def"
#undef X
    fn(arg, "mount3_mnt_calls", hf_metric_get(&s->m.mount_calls[1]));
    fn(arg, "mount3_mnt_errors", hf_metric_get(&s->m.mount_errors[1]));
    fn(arg, "mount3_dump_calls", hf_metric_get(&s->m.mount_calls[2]));
    fn(arg, "mount3_umnt_calls", hf_metric_get(&s->m.mount_calls[3]));
    fn(arg, "mount3_umntall_calls", hf_metric_get(&s->m.mount_calls[4]));
    fn(arg, "mount3_export_calls", hf_metric_get(&s->m.mount_calls[5]));
}

void hf_nfssvc_limits(const struct hf_nfssvc *s,
                      void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                      void *arg)
{
    fn(arg, "connections", hf_metric_get(&s->m.connections), s->o.max_connections);
    fn(arg, "request bytes", hf_metric_get(&s->m.request_bytes), s->o.max_request_bytes);
    /* beyond it the clients that do not take theirs get less room: conn_read.c */
    fn(arg, "reply bytes", hf_metric_get(&s->m.reply_bytes), s->o.max_request_bytes);
    fn(arg, "remembered replies", hf_metric_get(&s->m.drc_entries), s->o.drc_entries);
    fn(arg, "remembered bytes", hf_metric_get(&s->m.drc_bytes), s->o.drc_bytes);
}

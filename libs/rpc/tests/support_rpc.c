/* SPDX-License-Identifier: Apache-2.0 */
#include "support_rpc.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/crc32c.h"
#include "holdfast/err.h"

/* ---- the service ---- */

static struct world *world_of(const Hf__Segment_Service *s)
{
    return (struct world *)(void *)((char *)(uintptr_t)s - offsetof(struct world, impl));
}

void pattern_fill(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 7 + (i >> 8));
}

uint32_t pattern_crc(size_t len)
{
    uint8_t *p = malloc(len + 1);
    uint32_t crc;

    cr_assert_not_null(p);
    pattern_fill(p, len);
    crc = hf_crc32c(0, p, len);
    free(p);
    return crc;
}

static void serve_truncate(Hf__Segment_Service *s, const Hf__SegTruncReq *in,
                           Hf__SegTruncRep_Closure closure, void *data)
{
    Hf__SegTruncRep rep = HF__SEG_TRUNC_REP__INIT;

    world_of(s)->executed++;
    rep.boot = in->len;
    closure(&rep, data);
}

static void serve_write(Hf__Segment_Service *s, const Hf__SegWriteReq *in,
                        Hf__SegWriteRep_Closure closure, void *data)
{
    struct hf_rpc_req *req = data;
    Hf__SegWriteRep rep = HF__SEG_WRITE_REP__INIT;

    world_of(s)->executed++;
    cr_assert_eq(in->len, req->bulk.len);
    rep.boot = hf_crc32c(0, req->bulk.data, req->bulk.len);
    closure(&rep, data);
}

static void serve_read(Hf__Segment_Service *s, const Hf__SegReadReq *in,
                       Hf__SegReadRep_Closure closure, void *data)
{
    Hf__SegReadRep rep = HF__SEG_READ_REP__INIT;
    struct hf_rpc_req *req = data;
    uint8_t *p;

    (void)closure;
    world_of(s)->executed++;
    rep.len = in->len;
    if (in->offset == 1) {
        p = hf_rpc_reply_bulk(req, in->len < HF_RPC_BULK_MAX ? in->len + 1 : in->len);
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % 16, 0);
        pattern_fill(p, in->len);
        hf_rpc_reply_inplace(req, 0, &rep.base, in->len);
    } else {
        size_t third = in->len / 3;

        p = malloc(in->len + 1);
        cr_assert_not_null(p);
        pattern_fill(p, in->len);
        struct hf_slice bulk[3] = {hf_slice(p, third), hf_slice(p + third, third),
                                   hf_slice(p + 2 * third, in->len - 2 * third)};
        hf_rpc_reply(req, 0, &rep.base, bulk, 3);
        free(p);
    }
}

static void serve_sync(Hf__Segment_Service *s, const Hf__SegSyncReq *in,
                       Hf__SegSyncRep_Closure closure, void *data)
{
    struct world *w = world_of(s);
    struct hf_rpc_req *req = data;

    (void)closure;
    w->executed++;
    if (w->seen && w->seen[in->chunk->ino] < 255)
        w->seen[in->chunk->ino]++;
    hf_list_push_back(&w->held, &req->link);
    if (++w->nheld > w->held_max)
        w->held_max = w->nheld;
}

static void serve_delete(Hf__Segment_Service *s, const Hf__SegDeleteReq *in,
                         Hf__SegDeleteRep_Closure closure, void *data)
{
    Hf__SegDeleteRep rep = HF__SEG_DELETE_REP__INIT;

    (void)in;
    (void)closure;
    world_of(s)->executed++;
    rep.freed_bytes = 77;
    hf_rpc_reply(data, HF_E_NOSPC, &rep.base, NULL, 0);
}

static void serve_stat(Hf__Segment_Service *s, const Hf__SegStatReq *in,
                       Hf__SegStatRep_Closure closure, void *data)
{
    (void)in;
    (void)closure;
    world_of(s)->executed++;
    hf_rpc_reply(data, HF_E_NOENT, NULL, NULL, 0);
}

void answer_held(struct world *w, unsigned nth)
{
    struct hf_list *it = w->held.next;
    Hf__SegSyncRep rep = HF__SEG_SYNC_REP__INIT;
    struct hf_rpc_req *req;

    cr_assert_lt(nth, w->nheld);
    while (nth-- > 0)
        it = it->next;
    hf_list_remove(it);
    w->nheld--;
    req = hf_container_of(it, struct hf_rpc_req, link);
    rep.boot = ((const Hf__SegSyncReq *)(const void *)req->msg)->chunk->ino;
    hf_rpc_reply(req, 0, &rep.base, NULL, 0);
}

/* ---- the world ---- */

void world_server_start(struct world *w)
{
    int rc;

    cr_assert_eq(hf_rpc_server_new(w->sloop, &w->server_opts, &w->server), 0);
    cr_assert_eq(hf_rpc_server_add(w->server, &w->impl.base), 0);
    rc = hf_rpc_server_listen(w->server, w->url);
    cr_assert_eq(rc, 0, "listen %s: %s", w->url, hf_err_text(rc));
    (void)snprintf(w->url, sizeof(w->url), "%s", hf_rpc_server_url(w->server, 0));
}

void world_server_stop(struct world *w)
{
    struct hf_list *it;

    hf_rpc_server_stop(w->server);
    while ((it = hf_list_pop_front(&w->held)) != NULL)
        hf_rpc_req_drop(hf_container_of(it, struct hf_rpc_req, link));
    w->nheld = 0;
    hf_rpc_server_free(w->server);
    w->server = NULL;
}

void world_init(struct world *w, const char *scheme, const struct hf_rpc_server_opts *sopts,
                const struct hf_rpc_client_opts *copts)
{
    bool sim = strcmp(scheme, "sim") == 0;

    *w = (struct world){.dir = "/tmp/hf-rpc-test-XXXXXX"};
    cr_assert_not_null(mkdtemp(w->dir));
    hf_list_init(&w->held);
    if (sopts)
        w->server_opts = *sopts;
    w->impl = (Hf__Segment_Service){.base = HF__SEGMENT__BASE_INIT,
                                    .write_chunk = serve_write,
                                    .read_chunk = serve_read,
                                    .sync_chunk = serve_sync,
                                    .truncate_chunk = serve_truncate,
                                    .delete_chunks = serve_delete,
                                    .stat = serve_stat};
    if (strcmp(scheme, "ipc") == 0)
        (void)snprintf(w->url, sizeof(w->url), "ipc://%s/s", w->dir);
    else if (strcmp(scheme, "tcp") == 0)
        (void)snprintf(w->url, sizeof(w->url), "tcp://127.0.0.1:0");
    else
        (void)snprintf(w->url, sizeof(w->url), "%s://test", scheme);
    cr_assert_eq(sim ? hf_env_sim_new(1, 0, &w->env) : hf_env_real_new(&w->env), 0);
    cr_assert_eq(hf_loop_new(w->env, "client", &w->cloop), 0);
    w->sloop = w->cloop;
    if (sim)
        cr_assert_eq(hf_loop_new(w->env, "server", &w->sloop), 0);
    world_server_start(w);
    cr_assert_eq(hf_rpc_client_new(w->cloop, w->url, copts, &w->client), 0);
    w->service = hf_rpc_client_service(w->client, &hf__segment__descriptor);
}

void world_fini(struct world *w)
{
    char path[80];

    hf_rpc_client_free(w->client);
    if (w->server)
        world_server_stop(w);
    if (w->sloop != w->cloop)
        hf_loop_free(w->sloop);
    hf_loop_free(w->cloop);
    hf_env_free(w->env);
    (void)snprintf(path, sizeof(path), "%s/s", w->dir);
    (void)unlink(path);
    (void)rmdir(w->dir);
}

struct waiter {
    struct hf_timer timer;
    bool (*cond)(void *arg);
    void *arg;
    uint64_t until_ns;
};

static void on_wait_timer(struct hf_timer *t)
{
    struct waiter *wt = hf_container_of(t, struct waiter, timer);

    if (wt->cond(wt->arg) || hf_env_mono_ns(hf_loop_env(t->loop)) >= wt->until_ns)
        hf_loop_stop(t->loop);
    else
        hf_timer_set(t, HF_NS_PER_MS / 2);
}

bool world_until(struct world *w, bool (*cond)(void *arg), void *arg)
{
    struct waiter wt = {.cond = cond, .arg = arg};

    wt.until_ns = hf_env_mono_ns(w->env) + SUPPORT_DEADLINE_NS;
    if (hf_env_is_sim(w->env)) {
        while (!cond(arg) && hf_env_mono_ns(w->env) < wt.until_ns && hf_sim_step(w->env))
            ;
        return cond(arg);
    }
    hf_timer_init(&wt.timer, w->cloop, on_wait_timer);
    hf_timer_set(&wt.timer, 0);
    cr_assert_eq(hf_loop_run(w->cloop), 0);
    hf_timer_cancel(&wt.timer);
    return cond(arg);
}

static bool time_is_up(void *arg)
{
    const struct {
        struct hf_env *env;
        uint64_t at;
    } *a = arg;

    return hf_env_mono_ns(a->env) >= a->at;
}

void world_run_for(struct world *w, uint64_t ns)
{
    struct {
        struct hf_env *env;
        uint64_t at;
    } a = {w->env, hf_env_mono_ns(w->env) + ns};

    if (hf_env_is_sim(w->env))
        (void)hf_sim_run(w->env, a.at);
    else
        cr_assert(world_until(w, time_is_up, &a));
}

bool world_connected(void *world)
{
    const struct world *w = world;

    return hf_rpc_client_connected(w->client);
}

/* ---- probes ---- */

static void probe_finish(struct hf_rpc_call *call, bool have_rep, uint64_t boot)
{
    struct probe *p = call->arg;

    p->done++;
    p->have_rep = have_rep;
    p->boot = boot;
    p->bulk_len = call->reply_bulk.len;
    p->bulk_crc = hf_crc32c(0, call->reply_bulk.data, call->reply_bulk.len);
    p->bulk_aligned = (uintptr_t)call->reply_bulk.data % 16 == 0;
    if (p->then)
        p->then(p);
}

#define PROBE_CLOSURE(name, type, field)                                                           \
    static void name(const type *rep, void *data)                                                  \
    {                                                                                              \
        probe_finish(data, rep != NULL, rep ? rep->field : 0);                                     \
    }
PROBE_CLOSURE(on_echo, Hf__SegTruncRep, boot)
PROBE_CLOSURE(on_write, Hf__SegWriteRep, boot)
PROBE_CLOSURE(on_read, Hf__SegReadRep, len)
PROBE_CLOSURE(on_hold, Hf__SegSyncRep, boot)
PROBE_CLOSURE(on_delete, Hf__SegDeleteRep, freed_bytes)
PROBE_CLOSURE(on_stat, Hf__SegStatRep, boot)

/* The probe's inputs (timeout, bulk) stay. */
static struct hf_rpc_call *probe_call(struct probe *p)
{
    p->call.arg = p;
    p->done = 0;
    return &p->call;
}

void probe_echo(struct world *w, struct probe *p, uint32_t n)
{
    Hf__SegTruncReq req = HF__SEG_TRUNC_REQ__INIT;

    req.len = n;
    hf__segment__truncate_chunk(w->service, &req, on_echo, probe_call(p));
}

void probe_write(struct world *w, struct probe *p, const struct hf_slice *bulk, unsigned n)
{
    Hf__SegWriteReq req = HF__SEG_WRITE_REQ__INIT;

    for (unsigned i = 0; i < n; i++) {
        p->call.bulk[i] = bulk[i];
        req.len += (uint32_t)bulk[i].len;
    }
    p->call.bulk_n = n;
    hf__segment__write_chunk(w->service, &req, on_write, probe_call(p));
}

void probe_read(struct world *w, struct probe *p, bool inplace, uint32_t len)
{
    Hf__SegReadReq req = HF__SEG_READ_REQ__INIT;

    req.offset = inplace;
    req.len = len;
    hf__segment__read_chunk(w->service, &req, on_read, probe_call(p));
}

void probe_hold(struct world *w, struct probe *p, uint64_t ino)
{
    Hf__ChunkId id = HF__CHUNK_ID__INIT;
    Hf__SegSyncReq req = HF__SEG_SYNC_REQ__INIT;

    id.ino = ino;
    req.chunk = &id;
    hf__segment__sync_chunk(w->service, &req, on_hold, probe_call(p));
}

void probe_delete(struct world *w, struct probe *p)
{
    Hf__SegDeleteReq req = HF__SEG_DELETE_REQ__INIT;

    hf__segment__delete_chunks(w->service, &req, on_delete, probe_call(p));
}

void probe_stat(struct world *w, struct probe *p)
{
    Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;

    hf__segment__stat(w->service, &req, on_stat, probe_call(p));
}

bool probe_done(void *probe)
{
    const struct probe *p = probe;

    return p->done > 0;
}

int probe_wait(struct world *w, struct probe *p)
{
    cr_assert(world_until(w, probe_done, p), "no answer in time");
    return p->call.status;
}

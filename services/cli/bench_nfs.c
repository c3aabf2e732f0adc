/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases of a run: connect, mount, prepare the files, measure, wait for the calls in flight,
 * remove the files.
 */
#include "bench.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "holdfast/err.h"

#define TICK_US   100000L
#define DRAIN_SEC 30

uint64_t bn_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t bn_rand(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static double cpu_now(void)
{
    struct rusage ru;

    if (getrusage(RUSAGE_SELF, &ru) != 0) {
        return 0;
    }
    return (double)ru.ru_utime.tv_sec + (double)ru.ru_stime.tv_sec +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* ---- streams ---- */

static void stream_stop(struct bn_stream *s)
{
    if (!s->stopped) {
        s->stopped = true;
        s->run->active--;
    }
}

/* An operation begins when the one before it ended: a stream never pauses. */
static void stream_next(struct bn_stream *s, uint64_t now)
{
    bool mid_op = s->step != 0;

    if (s->run->conn_lost || (s->run->stopping && !mid_op)) {
        stream_stop(s);
        return;
    }
    if (!mid_op) {
        s->t0_ns = now;
    }
    if (!s->run->mix->next(s)) {
        stream_stop(s);
    }
}

static void count_error(struct bn_run *run, const struct bn_stream *s, const struct bn_reply *r)
{
    if (run->res.errors == 0) {
        run->res.first_error = r->ok_rpc ? r->status : UINT32_MAX;
        run->res.first_error_proc = s->proc;
    }
    run->res.errors++;
    run->res.op[s->proc].errors++;
}

static void stream_done(struct bn_slot *slot, const struct bn_reply *r)
{
    struct bn_stream *s = slot->arg;
    struct bn_run *run = s->run;
    struct bn_reply copy = *r;
    uint64_t now;
    bool error = false;

    if (s->conn->dead) {
        run->conn_lost = true;
        run->stopping = true;
        run->res.lost++;
        stream_stop(s);
        return;
    }
    now = bn_now_ns();
    if (run->mix->done(s, &copy, &error) && run->measuring) {
        run->res.ops++;
        bn_hist_add(&run->res.all, now - s->t0_ns);
        bn_hist_add(&run->res.op[s->proc].hist, now - s->t0_ns);
        run->end_ns = now;
    }
    if (error && run->measuring) {
        count_error(run, s, r);
    }
    stream_next(s, now);
}

static int streams_init(struct bn_run *run)
{
    run->nstreams = run->o.connections * run->o.depth;
    run->streams = calloc(run->nstreams, sizeof(*run->streams));
    if (run->streams == NULL) {
        return HF_E_NOMEM;
    }
    for (unsigned i = 0; i < run->nstreams; i++) {
        struct bn_stream *s = &run->streams[i];

        s->run = run;
        s->id = i;
        s->conn_id = i / run->o.depth;
        s->conn = &run->conns[s->conn_id];
        s->slot = &s->conn->slots[i % run->o.depth];
        s->rng = run->o.seed ^ ((uint64_t)(i + 1) << 32);
    }
    return 0;
}

/* Starts every stream and turns the loop until all have stopped. */
static void streams_run(struct bn_run *run, uint64_t stop_ns)
{
    uint64_t now = bn_now_ns();

    run->active = run->nstreams;
    run->stopping = false;
    for (unsigned i = 0; i < run->nstreams; i++) {
        struct bn_stream *s = &run->streams[i];

        s->stopped = false;
        s->step = 0;
        s->slot->done = stream_done;
        s->slot->arg = s;
        s->conn->in_turn = true;
        stream_next(s, now);
        s->conn->in_turn = false;
        if (i % run->o.depth == run->o.depth - 1) {
            bn_conn_flush(s->conn);
        }
    }
    while (run->active > 0) {
        now = bn_now_ns();
        if (now >= stop_ns) {
            run->stopping = true;
            if (now > stop_ns + DRAIN_SEC * 1000000000ull) {
                run->res.lost += run->active;
                break;
            }
        }
        if (event_base_loop(run->base, EVLOOP_ONCE) < 0) {
            break;
        }
    }
}

/* ---- phases ---- */

static int open_all(struct bn_run *run, char *err, size_t cap)
{
    const struct bn_opts *o = &run->o;

    run->conns = calloc(o->connections, sizeof(*run->conns));
    if (run->conns == NULL) {
        return HF_E_NOMEM;
    }
    for (unsigned i = 0; i < o->connections; i++) {
        run->conns[i].fd = -1;
    }
    for (unsigned i = 0; i < o->connections; i++) {
        int rc =
            bn_conn_open(run->base, o->host, o->port, o->depth, o->uid, o->gid, &run->conns[i]);

        if (rc != 0) {
            (void)snprintf(err, cap, "cannot connect to %s port %s: %s", o->host, o->port,
                           hf_err_text(rc));
            return rc;
        }
    }
    return 0;
}

static int prepare(struct bn_run *run, char *err, size_t cap)
{
    const struct bn_opts *o = &run->o;
    int rc;

    if (o->mix == BN_MIX_NULL) {
        return 0;
    }
    rc = bn_sync_mount(run->base, o, &run->tree.export_root);
    if (rc != 0) {
        if (rc > 0) {
            (void)snprintf(err, cap, "the server refuses to mount %s: MOUNT status %d",
                           o->export_path, rc);
        } else {
            (void)snprintf(err, cap, "cannot mount %s at %s port %s: %s", o->export_path, o->host,
                           o->mount_port, hf_err_text(rc));
        }
        return HF_E_CONNREFUSED;
    }
    rc = bn_sync_fsinfo(&run->conns[0], &run->tree.export_root, &run->rtmax, &run->wtmax);
    if (rc == 0 && (run->rtmax < 8192 || run->wtmax < 8192)) {
        rc = HF_E_PROTO;
    }
    if (rc == 0) {
        rc = bn_tree_make(run, &run->mix->spec);
    }
    if (rc != 0) {
        if (rc > 0) {
            (void)snprintf(err, cap, "preparing the files failed: NFS status %d", rc);
        } else {
            (void)snprintf(err, cap, "preparing the files failed: %s", hf_err_text(rc));
        }
        return HF_E_IO;
    }
    return 0;
}

static void measure(struct bn_run *run)
{
    struct bn_result *res = &run->res;
    double cpu = cpu_now();

    run->start_ns = run->end_ns = bn_now_ns();
    run->measuring = true;
    streams_run(run, run->start_ns + run->o.seconds * 1000000000ull);
    run->measuring = false;
    res->seconds = (double)(run->end_ns - run->start_ns) / 1e9;
    res->cpu_seconds = cpu_now() - cpu;
}

static void clean_up(struct bn_run *run)
{
    if (run->o.keep || run->o.mix == BN_MIX_NULL) {
        return;
    }
    if (run->streams != NULL && run->mix->dirs_per_conn > 0 && !run->conn_lost) {
        const struct bn_mix *mix = run->mix;
        struct bn_mix cleanup = bn_mix_cleanup;

        cleanup.dirs_per_conn = mix->dirs_per_conn;
        run->mix = &cleanup;
        streams_run(run, UINT64_MAX - DRAIN_SEC * 1000000000ull);
        run->mix = mix;
    }
    run->res.left_behind = bn_tree_remove(run);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg; /* its only use: the loop turns, and deadlines are looked at */
}

static void on_interrupt(evutil_socket_t fd, short what, void *arg)
{
    struct bn_run *run = arg;

    (void)fd;
    (void)what;
    run->stopping = true;
}

static int run_phases(struct bn_run *run, char *err, size_t cap)
{
    uint64_t rng = run->o.seed;
    int rc = open_all(run, err, cap);

    if (rc != 0) {
        return rc;
    }
    run->payload = malloc(BN_PAYLOAD);
    if (run->payload == NULL) {
        return HF_E_NOMEM;
    }
    for (size_t i = 0; i < BN_PAYLOAD; i += 8) {
        uint64_t v = bn_rand(&rng);

        memcpy(run->payload + i, &v, 8);
    }
    rc = prepare(run, err, cap);
    if (rc == 0) {
        rc = streams_init(run);
    }
    if (rc == 0) {
        measure(run);
    }
    clean_up(run);
    return rc;
}

int bn_run(const struct bn_opts *o, struct bn_result *ret, char *err, size_t err_cap)
{
    struct bn_run *run = calloc(1, sizeof(*run));
    struct timeval tick = {.tv_usec = TICK_US};
    struct event *ticker = NULL, *sigint = NULL;
    int rc = HF_E_NOMEM;

    err[0] = '\0';
    if (run == NULL) {
        return rc;
    }
    run->o = *o;
    run->mix = bn_mix_get(o->mix);
    run->base = event_base_new();
    if (run->base != NULL) {
        ticker = event_new(run->base, -1, EV_PERSIST, on_tick, NULL);
        sigint = evsignal_new(run->base, SIGINT, on_interrupt, run);
    }
    if (ticker != NULL && sigint != NULL && event_add(ticker, &tick) == 0 &&
        event_add(sigint, NULL) == 0) {
        (void)signal(SIGPIPE, SIG_IGN);
        rc = run_phases(run, err, err_cap);
        *ret = run->res;
    }
    for (unsigned i = 0; run->conns != NULL && i < o->connections; i++) {
        bn_conn_close(&run->conns[i]);
    }
    if (ticker != NULL) {
        event_free(ticker);
    }
    if (sigint != NULL) {
        event_free(sigint);
    }
    if (run->base != NULL) {
        event_base_free(run->base);
    }
    free(run->conns);
    free(run->streams);
    free(run->payload);
    free(run->tree.dirs);
    free(run->tree.files);
    free(run->tree.links);
    free(run);
    return rc;
}

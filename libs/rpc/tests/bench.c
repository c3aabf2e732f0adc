/* SPDX-License-Identifier: Apache-2.0
 *
 * hf-rpc-bench [SECONDS]: small calls over each transport, as many in flight as the column says.
 * Client and server are two threads of one process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "holdfast/rpc.h"
#include "holdfast/wire/segment.pb-c.h"

#define IN_FLIGHT_MAX 1000u

struct bench {
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_rpc_client *client;
    ProtobufCService *service;
    struct hf_rpc_call calls[IN_FLIGHT_MAX];
    unsigned in_flight, running;
    uint64_t until_ns, done;
    int status;
};

static void serve_truncate(Hf__Segment_Service *service, const Hf__SegTruncReq *in,
                           Hf__SegTruncRep_Closure closure, void *closure_data)
{
    Hf__SegTruncRep rep = HF__SEG_TRUNC_REP__INIT;

    (void)service;
    rep.boot = in->len;
    closure(&rep, closure_data);
}

static void on_done(const Hf__SegTruncRep *rep, void *closure_data);

static void call(struct bench *b, struct hf_rpc_call *c)
{
    Hf__ChunkId id = HF__CHUNK_ID__INIT;
    Hf__SegTruncReq req = HF__SEG_TRUNC_REQ__INIT;

    id.ino = 1ull << 40;
    id.segment = 1;
    req.chunk = &id;
    req.len = 42;
    *c = (struct hf_rpc_call){.arg = b};
    b->running++;
    hf__segment__truncate_chunk(b->service, &req, on_done, c);
}

static void on_done(const Hf__SegTruncRep *rep, void *closure_data)
{
    struct hf_rpc_call *c = closure_data;
    struct bench *b = c->arg;

    b->running--;
    if (c->status != 0 || !rep || rep->boot != 42)
        b->status = c->status ? c->status : HF_E_PROTO;
    b->done++;
    if (b->status == 0 && hf_loop_now_ns(b->loop) < b->until_ns)
        call(b, c);
    else if (b->running == 0)
        hf_loop_stop(b->loop);
}

static int run(struct bench *b, const char *url, unsigned in_flight, double seconds)
{
    uint64_t start;
    int rc = hf_rpc_client_new(b->loop, url, NULL, &b->client);

    if (rc)
        return rc;
    b->service = hf_rpc_client_service(b->client, &hf__segment__descriptor);
    b->done = b->running = 0;
    /* One call to connect, unmeasured. */
    b->until_ns = 0;
    call(b, &b->calls[0]);
    rc = hf_loop_run(b->loop);
    start = hf_env_mono_ns(b->env);
    b->until_ns = start + (uint64_t)(seconds * 1e9);
    b->done = 0;
    for (unsigned i = 0; i < in_flight; i++)
        call(b, &b->calls[i]);
    rc = rc ? rc : hf_loop_run(b->loop);
    rc = rc ? rc : b->status;
    if (rc == 0) {
        double s = (double)(hf_env_mono_ns(b->env) - start) / 1e9;

        printf("%-8.6s %9u %12.0f %10.1f\n", url, in_flight, (double)b->done / s,
               s * 1e6 * in_flight / (double)b->done);
        (void)fflush(stdout);
    }
    hf_rpc_client_free(b->client);
    return rc;
}

static int run_all(struct bench *b, struct hf_loop *server_loop, const char *dir, double seconds)
{
    static const unsigned in_flight[] = {1, 8, 32, 64, 1000};
    Hf__Segment_Service impl = {.base = HF__SEGMENT__BASE_INIT, .truncate_chunk = serve_truncate};
    struct hf_rpc_server *server;
    char ipc[128];
    int rc = hf_rpc_server_new(server_loop, NULL, &server);

    if (rc)
        return rc;
    (void)snprintf(ipc, sizeof(ipc), "ipc://%s/bench", dir);
    rc = hf_rpc_server_add(server, &impl.base);
    rc = rc ? rc : hf_rpc_server_listen(server, "inproc://bench");
    rc = rc ? rc : hf_rpc_server_listen(server, ipc);
    rc = rc ? rc : hf_rpc_server_listen(server, "tcp://127.0.0.1:0");
    rc = rc ? rc : hf_loop_start(server_loop);
    printf("%-8s %9s %12s %10s\n", "", "in flight", "calls/s", "mean us");
    for (unsigned u = 0; u < 3 && rc == 0; u++) {
        for (unsigned i = 0; i < sizeof(in_flight) / sizeof(in_flight[0]) && rc == 0; i++)
            rc = run(b, hf_rpc_server_url(server, u), in_flight[i], seconds);
    }
    hf_loop_join(server_loop);
    hf_rpc_server_free(server);
    return rc;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct hf_loop *server_loop;
    char dir[] = "/tmp/hf-rpc-bench-XXXXXX", path[64];
    int rc;

    if (!mkdtemp(dir) || hf_env_real_new(&b.env) != 0)
        return 1;
    if (hf_loop_new(b.env, "client", &b.loop) != 0 ||
        hf_loop_new(b.env, "server", &server_loop) != 0)
        return 1;
    rc = run_all(&b, server_loop, dir, argc > 1 ? strtod(argv[1], NULL) : 2.0);
    if (rc)
        (void)fprintf(stderr, "hf-rpc-bench: %s\n", hf_err_text(rc));
    hf_loop_free(server_loop);
    hf_loop_free(b.loop);
    hf_env_free(b.env);
    (void)snprintf(path, sizeof(path), "%s/bench", dir);
    (void)unlink(path);
    (void)rmdir(dir);
    return rc != 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends of life under load, with client and server on threads of their own: each call completes
 * once, nothing hangs, nothing leaks (under the address sanitizer).
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_rpc.h"

#define CALLS 64u

struct loader {
    struct hf_loop *loop;
    struct hf_rpc_client *client;
    ProtobufCService *service;
    struct hf_rpc_call calls[CALLS];
    struct hf_task start, stop;
    uint8_t data[40000];
    unsigned running;
    bool stopping;
    atomic_uint ok, failed, closed;
};

static void on_done(const Hf__SegWriteRep *rep, void *data);

static void next_call(struct loader *l, struct hf_rpc_call *c)
{
    Hf__SegWriteReq req = HF__SEG_WRITE_REQ__INIT;
    size_t i = (size_t)(c - l->calls);

    *c = (struct hf_rpc_call){.arg = l};
    req.len = i % 4 == 0 ? sizeof(l->data) : 100;
    c->bulk[0] = hf_slice(l->data, req.len);
    c->bulk_n = 1;
    l->running++;
    hf__segment__write_chunk(l->service, &req, on_done, c);
}

static void on_done(const Hf__SegWriteRep *rep, void *data)
{
    struct hf_rpc_call *c = data;
    struct loader *l = c->arg;

    l->running--;
    if (c->status == 0 && rep)
        atomic_fetch_add(&l->ok, 1);
    else
        atomic_fetch_add(c->status == HF_E_CLOSED ? &l->closed : &l->failed, 1);
    if (!l->stopping)
        next_call(l, c);
}

static void loader_start(struct hf_task *t)
{
    struct loader *l = hf_container_of(t, struct loader, start);

    for (unsigned i = 0; i < CALLS; i++)
        next_call(l, &l->calls[i]);
}

static void loader_stop(struct hf_task *t)
{
    struct loader *l = hf_container_of(t, struct loader, stop);

    l->stopping = true;
    hf_rpc_client_free(l->client);
    l->client = NULL;
    hf_loop_stop(l->loop);
}

static bool progressed(void *arg)
{
    struct loader *l = arg;

    return atomic_load(&l->ok) > 2000;
}

/* The server restarts `restarts` times while the client keeps CALLS under way, then the client goes
 * first or the server does. */
static void under_load(const char *scheme, unsigned restarts, bool client_first)
{
    struct loader *l = calloc(1, sizeof(*l));
    struct world w;

    cr_assert_not_null(l);
    world_init(&w, scheme, NULL, NULL);
    cr_assert_eq(hf_loop_new(w.env, "load", &l->loop), 0);
    cr_assert_eq(hf_rpc_client_new(l->loop, w.url, NULL, &l->client), 0);
    l->service = hf_rpc_client_service(l->client, &hf__segment__descriptor);
    l->start.fn = loader_start;
    l->stop.fn = loader_stop;
    hf_loop_post(l->loop, &l->start);
    cr_assert_eq(hf_loop_start(l->loop), 0);
    for (unsigned i = 0; i <= restarts; i++) {
        if (i > 0) {
            world_server_stop(&w);
            world_server_start(&w);
        }
        atomic_store(&l->ok, 0);
        cr_assert(world_until(&w, progressed, l), "restart %u: %u ok", i, atomic_load(&l->ok));
    }
    if (!client_first)
        world_server_stop(&w);
    hf_loop_post(l->loop, &l->stop);
    hf_loop_join(l->loop);
    cr_assert_eq(l->running, 0);
    cr_assert_eq(atomic_load(&l->closed), CALLS);
    if (restarts == 0 && client_first)
        cr_assert_eq(atomic_load(&l->failed), 0);
    hf_loop_free(l->loop);
    world_fini(&w);
    free(l);
}

Test(load, client_first_inproc)
{
    under_load("inproc", 0, true);
}
Test(load, client_first_ipc)
{
    under_load("ipc", 0, true);
}
Test(load, client_first_tcp)
{
    under_load("tcp", 0, true);
}
Test(load, server_first_inproc)
{
    under_load("inproc", 0, false);
}
Test(load, server_first_ipc)
{
    under_load("ipc", 0, false);
}
Test(load, server_first_tcp)
{
    under_load("tcp", 0, false);
}
Test(load, restarts_inproc)
{
    under_load("inproc", 10, true);
}
Test(load, restarts_ipc)
{
    under_load("ipc", 10, true);
}
Test(load, restarts_tcp)
{
    under_load("tcp", 10, true);
}

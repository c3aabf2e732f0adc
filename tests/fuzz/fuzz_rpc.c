/* SPDX-License-Identifier: Apache-2.0
 *
 * A stranger's messages to a real RPC server, over the simulated transport: raw bytes, or frames
 * whose header and lengths are right and whose entries are anything. The server answers or drops
 * the connection; it keeps nothing.
 */
#include "fuzz.h"
#include "holdfast/err.h"
#include "holdfast/rpc.h"
#include "holdfast/wire.h"
#include "holdfast/wire/segment.pb-c.h"
#include "transport.h"

#define MESSAGES_MAX 8u

struct world {
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_rpc_server *server;
    ProtobufCService impl; /* dispatch answers for it */
    struct hf_tr *tr;
    uint64_t peer; /* 0: not connected */
    uint32_t seq;
};

static void up(void *arg, struct hf_tr *t, uint64_t peer)
{
    (void)t;
    ((struct world *)arg)->peer = peer;
    ((struct world *)arg)->seq = 0;
}

static void down(void *arg, uint64_t peer)
{
    (void)peer;
    ((struct world *)arg)->peer = 0;
}

/* What a server sends is well-formed. */
static void recv_reply(void *arg, uint64_t peer, struct hf_rpc_msg *m)
{
    struct hf_wire_frame fr;
    struct hf_wire_reader rd;
    struct hf_wire_entry e;
    struct hf_slice body, bulk;

    (void)arg;
    (void)peer;
    FUZZ_CHECK(hf_wire_open(m->data, m->len, &fr, &rd) == 0);
    while (hf_wire_next(&rd, &e, &body, &bulk))
        FUZZ_CHECK((e.flags & HF_WIRE_REPLY) && e.status <= 0);
    hf_rpc_msg_unref(m);
}

static void dispatch(void *arg, struct hf_rpc_req *req)
{
    struct hf_slice bulk = req->bulk;
    const uint8_t *p = bulk.data;

    (void)arg;
    for (size_t k = 0; k < bulk.len; k += 64)
        (void)*(const volatile uint8_t *)(p + k);
    FUZZ_CHECK(req->msg && req->method < req->service->n_methods);
    FUZZ_CHECK(req->msg->descriptor == req->service->methods[req->method].input);
    (void)protobuf_c_message_get_packed_size(req->msg);
    hf_rpc_reply(req, HF_E_INVAL, NULL, &bulk, bulk.len ? 1 : 0);
}

/* One entry with lengths that are right. */
static size_t entry(struct fuzz *f, uint8_t *out, size_t at)
{
    uint8_t how = fuzz_u8(f);
    struct hf_wire_entry e = {.flags = how & 7u, .method = fuzz_u8(f)};
    struct hf_slice body, bulk;

    e.service = how & 8 ? (uint32_t)fuzz_uint(f, 4) : hf_wire_service_id("hf.Segment");
    if ((how & 0x10) == 0)
        e.flags = HF_WIRE_CALL;
    if (how & 0x20) {
        e.id = fuzz_uint(f, 8);
        e.session = fuzz_uint(f, 8);
        e.sequence = fuzz_uint(f, 8);
        e.target = (uint32_t)fuzz_uint(f, 4);
        e.slot = (uint32_t)fuzz_uint(f, 4);
        e.status = (int32_t)fuzz_uint(f, 4);
    }
    e.timeout_us = (uint32_t)fuzz_uint(f, 4);
    body = fuzz_bytes(f, fuzz_uint(f, 1));
    bulk = fuzz_bytes(f, how & 0x40 ? fuzz_uint(f, 1) : 0);
    e.body_len = (uint32_t)body.len;
    e.bulk_len = (uint32_t)bulk.len;
    e.pad = hf_wire_pad(at, body.len, bulk.len);
    if (how & 0x80)
        e.pad = fuzz_u8(f);
    hf_wire_put_entry(out, &e);
    memcpy(out + HF_WIRE_ENTRY, body.data, body.len);
    memset(out + HF_WIRE_ENTRY + body.len, 0, e.pad);
    if (bulk.len)
        memcpy(out + HF_WIRE_ENTRY + body.len + e.pad, bulk.data, bulk.len);
    return HF_WIRE_ENTRY + body.len + e.pad + bulk.len;
}

static size_t frame(struct world *w, struct fuzz *f, uint8_t *out, size_t max)
{
    uint8_t how = fuzz_u8(f);
    struct hf_wire_frame fr = {.count = how & 0xf};
    size_t len = HF_WIRE_HEADER;

    if (how & 0x80) { /* bytes */
        struct hf_slice s = fuzz_bytes(f, fuzz_uint(f, 2) % max);

        if (s.len)
            memcpy(out, s.data, s.len);
        return s.len;
    }
    fr.seq = how & 0x40 ? (uint32_t)fuzz_uint(f, 4) : ++w->seq;
    fr.acked = how & 0x20 ? (uint32_t)fuzz_uint(f, 4) : 0;
    for (unsigned k = 0; k < fr.count; k++)
        len += entry(f, out + len, len - HF_WIRE_HEADER);
    hf_wire_put_header(out, &fr, len);
    return len;
}

static void check_wire(const uint8_t *p, size_t len)
{
    struct hf_wire_frame fr;
    struct hf_wire_reader rd;
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    unsigned n = 0;

    if (hf_wire_open(p, len, &fr, &rd))
        return;
    while (hf_wire_next(&rd, &e, &body, &bulk)) {
        const uint8_t *b = body.data, *k = bulk.data;

        n++;
        FUZZ_CHECK(body.len == 0 || (b >= p && body.len <= len && b + body.len <= p + len));
        FUZZ_CHECK(bulk.len == 0 || (k >= p && bulk.len <= len && k + bulk.len <= p + len));
    }
    FUZZ_CHECK(n == fr.count && n <= HF_WIRE_CALLS_MAX);
}

static void settle(struct world *w)
{
    (void)hf_sim_run(w->env, hf_env_mono_ns(w->env) + HF_NS_PER_SEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hf_tr_events ev = {up, down, recv_reply};
    static uint8_t out[65536];
    struct world w = {.impl = {.descriptor = &hf__segment__descriptor}};
    struct hf_rpc_server_opts o = {.dispatch = dispatch, .arg = &w};
    struct fuzz f = {data, size};
    struct hf_rpc_stats st = {0};

    FUZZ_CHECK(hf_env_sim_new(1, 0, &w.env) == 0 && hf_loop_new(w.env, "rpc", &w.loop) == 0);
    FUZZ_CHECK(hf_rpc_server_new(w.loop, &o, &w.server) == 0);
    FUZZ_CHECK(hf_rpc_server_add(w.server, &w.impl) == 0);
    FUZZ_CHECK(hf_rpc_server_listen(w.server, "sim://x") == 0);
    FUZZ_CHECK(hf_tr_open(HF_TR_SIM, w.loop, false, &ev, &w, &w.tr) == 0);
    FUZZ_CHECK(w.tr->ops->dial(w.tr, "sim://x") == 0);
    for (unsigned k = 0; k < MESSAGES_MAX && f.left > 0; k++) {
        size_t len;
        struct hf_rpc_msg *m;

        settle(&w);
        FUZZ_CHECK(w.peer, "not connected again");
        len = frame(&w, &f, out, sizeof(out));
        check_wire(out, len);
        m = w.tr->ops->msg_new(w.tr, len);
        FUZZ_CHECK(m);
        memcpy(m->data, out, len);
        w.tr->ops->send(w.tr, w.peer, m);
    }
    settle(&w);
    hf_rpc_server_stats(w.server, &st);
    FUZZ_CHECK(st.inflight == 0 && st.request_bytes == 0, "%llu calls, %llu bytes",
               (unsigned long long)st.inflight, (unsigned long long)st.request_bytes);
    w.tr->ops->close(w.tr);
    hf_rpc_server_stop(w.server);
    hf_rpc_server_free(w.server);
    hf_loop_free(w.loop);
    hf_env_free(w.env);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What every transport must do, run over each. EACH(name) makes one test of static void
 * name(scheme) per transport.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/crc32c.h"
#include "holdfast/err.h"
#include "support_rpc.h"

#define EACH(name)                                                                                 \
    Test(conformance, name##_inproc)                                                               \
    {                                                                                              \
        name("inproc");                                                                            \
    }                                                                                              \
    Test(conformance, name##_ipc)                                                                  \
    {                                                                                              \
        name("ipc");                                                                               \
    }                                                                                              \
    Test(conformance, name##_tcp)                                                                  \
    {                                                                                              \
        name("tcp");                                                                               \
    }                                                                                              \
    Test(conformance, name##_sim)                                                                  \
    {                                                                                              \
        name("sim");                                                                               \
    }

static void echo(const char *scheme)
{
    struct world w;
    struct probe p = {0};
    struct hf_rpc_stats st = {0};

    world_init(&w, scheme, NULL, NULL);
    probe_echo(&w, &p, 4711);
    cr_assert_eq(p.done, 0, "not from inside the stub");
    cr_assert_eq(probe_wait(&w, &p), 0);
    cr_assert_eq(p.boot, 4711);
    cr_assert(hf_rpc_client_connected(w.client));
    cr_assert_eq(hf_rpc_client_epoch(w.client), 1);
    hf_rpc_server_stats(w.server, &st);
    cr_assert_eq(st.calls_in, 1);
    cr_assert_eq(st.calls_out, 1);
    cr_assert_eq(st.inflight, 0);
    cr_assert_eq(st.peers, 1);
    world_fini(&w);
}
EACH(echo)

static void wait_runs_the_loop(const char *scheme)
{
    struct world w;
    struct probe p = {0};

    world_init(&w, scheme, NULL, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        probe_echo(&w, &p, i);
        cr_assert_eq(hf_rpc_wait(w.cloop, &p.call), 0);
        cr_assert_eq(p.boot, i);
    }
    world_fini(&w);
}
EACH(wait_runs_the_loop)

#define MANY   10000u
#define WINDOW 1000u

struct many {
    struct world w;
    struct probe *probes;
    unsigned started, done;
    uint64_t random;
};

static void many_done(struct probe *p)
{
    struct many *m = p->arg;

    cr_assert_eq(p->call.status, 0);
    cr_assert_eq(p->boot, (uint64_t)(p - m->probes));
    m->done++;
}

static void many_start(struct many *m)
{
    struct probe *p = &m->probes[m->started];

    p->then = many_done;
    p->arg = m;
    probe_hold(&m->w, p, m->started++);
}

/* Keeps WINDOW calls under way; answers what is held in random order. */
static bool many_step(void *arg)
{
    struct many *m = arg;

    while (m->w.nheld > 0) {
        m->random = m->random * 6364136223846793005u + 1442695040888963407u;
        answer_held(&m->w, (unsigned)(m->random >> 33) % (m->w.nheld < 50 ? m->w.nheld : 50));
    }
    while (m->started < MANY && m->started < m->done + WINDOW)
        many_start(m);
    return m->done == MANY;
}

static void many_in_random_order(const char *scheme)
{
    struct many m = {.random = 1};

    world_init(&m.w, scheme, NULL, NULL);
    m.probes = calloc(MANY, sizeof(*m.probes));
    cr_assert_not_null(m.probes);
    cr_assert(world_until(&m.w, many_step, &m), "%u of %u done", m.done, MANY);
    for (unsigned i = 0; i < MANY; i++)
        cr_assert_eq(m.probes[i].done, 1);
    cr_assert_eq(m.w.executed, MANY);
    world_fini(&m.w);
    free(m.probes);
}
EACH(many_in_random_order)

static void bulk_both_ways(const char *scheme)
{
    static const uint32_t sizes[] = {1,     15,    16,      17,       1000,    16384,
                                     65536, 99999, 1000000, 1u << 20, 4u << 20};
    struct world w;
    uint8_t *data = malloc(4u << 20);

    cr_assert_not_null(data);
    pattern_fill(data, 4u << 20);
    world_init(&w, scheme, NULL, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t n = sizes[i], half = n / 2;
        struct hf_slice bulk[2] = {hf_slice(data, half), hf_slice(data + half, n - half)};
        struct probe p = {0};

        probe_write(&w, &p, bulk, 2);
        cr_assert_eq(probe_wait(&w, &p), 0);
        cr_assert_eq(p.boot, pattern_crc(n), "%u bytes", n);
        for (int inplace = 0; inplace < 2; inplace++) {
            p = (struct probe){0};
            probe_read(&w, &p, inplace, n);
            cr_assert_eq(probe_wait(&w, &p), 0);
            cr_assert_eq(p.bulk_len, n);
            cr_assert_eq(p.bulk_crc, pattern_crc(n), "%u bytes", n);
            cr_assert(p.bulk_aligned);
        }
    }
    world_fini(&w);
    free(data);
}
EACH(bulk_both_ways)

static void errors_with_and_without_body(const char *scheme)
{
    struct world w;
    struct probe a = {0}, b = {0};

    world_init(&w, scheme, NULL, NULL);
    probe_delete(&w, &a);
    probe_stat(&w, &b);
    cr_assert_eq(probe_wait(&w, &a), HF_E_NOSPC);
    cr_assert_eq(a.boot, 77);
    cr_assert_eq(probe_wait(&w, &b), HF_E_NOENT);
    cr_assert(!b.have_rep);
    world_fini(&w);
}
EACH(errors_with_and_without_body)

static void keep_message(struct probe *p)
{
    hf_rpc_msg_ref(p->call.msg);
}

static void reply_outlives_the_closure(const char *scheme)
{
    struct world w;
    struct probe p = {.then = keep_message};

    world_init(&w, scheme, NULL, NULL);
    probe_read(&w, &p, true, 100000);
    cr_assert_eq(probe_wait(&w, &p), 0);
    world_fini(&w);
    cr_assert_eq(hf_crc32c(0, p.call.reply_bulk.data, p.call.reply_bulk.len), pattern_crc(100000));
    hf_rpc_msg_unref(p.call.msg);
}
EACH(reply_outlives_the_closure)

static bool one_held(void *world)
{
    return ((struct world *)world)->nheld == 1;
}

static void deadline(const char *scheme)
{
    struct world w;
    struct probe p = {0}, q = {0};
    uint64_t start;

    world_init(&w, scheme, NULL, NULL);
    p.call.timeout_ns = 50 * HF_NS_PER_MS;
    start = hf_env_mono_ns(w.env);
    probe_hold(&w, &p, 1);
    cr_assert_eq(probe_wait(&w, &p), HF_E_TIMEDOUT);
    cr_assert_geq(hf_env_mono_ns(w.env) - start, 50 * HF_NS_PER_MS);
    cr_assert_leq(hf_env_mono_ns(w.env) - start, 5 * HF_NS_PER_SEC);
    cr_assert(world_until(&w, one_held, &w));
    answer_held(&w, 0); /* too late: nobody is told */
    probe_echo(&w, &q, 1);
    cr_assert_eq(probe_wait(&w, &q), 0);
    cr_assert_eq(p.done, 1);
    world_fini(&w);
}
EACH(deadline)

static bool all_done(void *arg)
{
    struct probe *p = arg;

    for (unsigned i = 0; i < 64; i++) {
        if (!p[i].done)
            return false;
    }
    return true;
}

/* Deadlines far beyond one turn of the wheel, and mixed. */
static void deadlines_of_all_lengths(const char *scheme)
{
    struct world w;
    struct probe p[64] = {0};
    uint64_t start, at = 0;

    world_init(&w, scheme, NULL, NULL);
    start = hf_env_mono_ns(w.env);
    for (unsigned i = 0; i < 64; i++) {
        p[i].call.timeout_ns = (1 + i * 37 % 64) * 35 * HF_NS_PER_MS; /* up to 2.2 s */
        probe_hold(&w, &p[i], i);
    }
    while (at < 64 * 35 * HF_NS_PER_MS) {
        at += 140 * HF_NS_PER_MS;
        world_run_for(&w, start + at - hf_env_mono_ns(w.env));
        for (unsigned i = 0; i < 64; i++) {
            if (p[i].call.timeout_ns > hf_env_mono_ns(w.env) - start)
                cr_assert_eq(p[i].done, 0, "too early");
        }
    }
    cr_assert(world_until(&w, all_done, p));
    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(p[i].call.status, HF_E_TIMEDOUT);
    world_fini(&w);
}
EACH(deadlines_of_all_lengths)

static void cancel(const char *scheme)
{
    struct world w;
    struct probe p = {0}, q = {0}, r = {0};

    world_init(&w, scheme, NULL, NULL);
    probe_hold(&w, &p, 1);
    cr_assert(world_until(&w, one_held, &w));
    hf_rpc_cancel(&p.call);
    cr_assert_eq(p.done, 1);
    cr_assert_eq(p.call.status, HF_E_CANCELED);
    hf_rpc_cancel(&p.call); /* harmless */
    answer_held(&w, 0);
    probe_hold(&w, &r, 2); /* cancelled before it is sent: never runs */
    hf_rpc_cancel(&r.call);
    probe_echo(&w, &q, 3);
    cr_assert_eq(probe_wait(&w, &q), 0);
    cr_assert_eq(p.done, 1);
    cr_assert_eq(r.call.status, HF_E_CANCELED);
    cr_assert_eq(w.nheld, 0);
    cr_assert_eq(w.executed, 2);
    world_fini(&w);
}
EACH(cancel)

/* The server goes away between execution and reply. */
static void reset_once_and_not_run_twice(const char *scheme)
{
    struct world w;
    struct probe p = {0}, q = {0};

    world_init(&w, scheme, NULL, NULL);
    probe_hold(&w, &p, 1);
    cr_assert(world_until(&w, one_held, &w));
    world_server_stop(&w);
    cr_assert_eq(probe_wait(&w, &p), HF_E_CONNRESET);
    cr_assert_eq(w.executed, 1);
    world_server_start(&w);
    probe_echo(&w, &q, 5);
    cr_assert_eq(probe_wait(&w, &q), 0);
    cr_assert_eq(q.boot, 5);
    cr_assert_eq(w.executed, 2, "the lost call is not sent again");
    cr_assert_eq(p.done, 1);
    cr_assert_eq(hf_rpc_client_epoch(w.client), 2);
    world_fini(&w);
}
EACH(reset_once_and_not_run_twice)

static bool disconnected(void *world)
{
    return !world_connected(world);
}

/* Calls made while the server is away wait for it, or for their deadline. */
static void unsent_calls_wait(const char *scheme)
{
    struct world w;
    struct probe p = {0}, q = {0}, r = {0};

    world_init(&w, scheme, NULL, NULL);
    cr_assert(world_until(&w, world_connected, &w));
    world_server_stop(&w);
    cr_assert(world_until(&w, disconnected, &w));
    q.call.timeout_ns = 30 * HF_NS_PER_MS;
    probe_echo(&w, &p, 8);
    probe_hold(&w, &q, 1);
    cr_assert_eq(probe_wait(&w, &q), HF_E_TIMEDOUT);
    cr_assert_eq(p.done, 0);
    world_server_start(&w);
    cr_assert_eq(probe_wait(&w, &p), 0);
    cr_assert_eq(p.boot, 8);
    probe_echo(&w, &r, 9);
    cr_assert_eq(probe_wait(&w, &r), 0);
    cr_assert_eq(w.nheld, 0, "an expired call is not run");
    cr_assert_eq(w.executed, 2);
    world_fini(&w);
}
EACH(unsent_calls_wait)

static void oversize_is_refused_here(const char *scheme)
{
    struct world w;
    struct probe p = {0}, q = {0};
    uint8_t *data = calloc(1, HF_RPC_BULK_MAX);
    struct hf_slice bulk[2] = {hf_slice(data, HF_RPC_BULK_MAX), hf_slice("x", 1)};

    cr_assert_not_null(data);
    world_init(&w, scheme, NULL, NULL);
    probe_write(&w, &p, bulk, 2);
    cr_assert_eq(p.done, 0);
    cr_assert_eq(probe_wait(&w, &p), HF_E_TOOBIG);
    probe_echo(&w, &q, 1);
    cr_assert_eq(probe_wait(&w, &q), 0);
    cr_assert_eq(w.executed, 1);
    cr_assert_eq(hf_rpc_client_epoch(w.client), 1, "no reconnect");
    world_fini(&w);
    free(data);
}
EACH(oversize_is_refused_here)

static void busy_beyond_the_bound(const char *scheme)
{
    static const struct hf_rpc_client_opts opts = {.max_outstanding = 10};
    struct world w;
    struct probe p[11] = {0};

    world_init(&w, scheme, NULL, &opts);
    for (unsigned i = 0; i < 11; i++)
        probe_echo(&w, &p[i], i);
    cr_assert_eq(p[10].done, 0);
    cr_assert_eq(probe_wait(&w, &p[10]), HF_E_BUSY);
    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(probe_wait(&w, &p[i]), 0);
    probe_echo(&w, &p[10], 10);
    cr_assert_eq(probe_wait(&w, &p[10]), 0);
    world_fini(&w);
}
EACH(busy_beyond_the_bound)

#define PRESSED 500u

struct pressed {
    struct world w;
    struct probe p[PRESSED];
};

static bool eight_held(void *arg)
{
    return ((struct pressed *)arg)->w.nheld == 8;
}

static bool press_step(void *arg)
{
    struct pressed *s = arg;

    while (s->w.nheld > 0)
        answer_held(&s->w, 0);
    for (unsigned i = 0; i < PRESSED; i++) {
        if (!s->p[i].done)
            return false;
    }
    return true;
}

static void max_inflight_holds_back(const char *scheme)
{
    static const struct hf_rpc_server_opts opts = {.limits.max_inflight = 8};
    struct pressed *s = calloc(1, sizeof(*s));

    cr_assert_not_null(s);
    world_init(&s->w, scheme, &opts, NULL);
    for (unsigned i = 0; i < PRESSED; i++)
        probe_hold(&s->w, &s->p[i], i);
    cr_assert(world_until(&s->w, eight_held, s));
    world_run_for(&s->w, 20 * HF_NS_PER_MS);
    cr_assert_eq(s->w.nheld, 8);
    cr_assert(world_until(&s->w, press_step, s));
    cr_assert_eq(s->w.held_max, 8);
    for (unsigned i = 0; i < PRESSED; i++)
        cr_assert_eq(s->p[i].call.status, 0);
    world_fini(&s->w);
    free(s);
}
EACH(max_inflight_holds_back)

static bool pressed_all_held(void *arg)
{
    return ((struct pressed *)arg)->w.nheld == PRESSED;
}

/* More messages in one turn, each way, than nng's queue of a connection holds (64). */
static void no_message_is_lost_in_a_burst(const char *scheme)
{
    struct pressed *s = calloc(1, sizeof(*s));
    uint8_t *data = malloc(20000);
    struct hf_slice bulk = hf_slice(data, 20000);
    uint32_t crc = pattern_crc(20000);

    cr_assert(s && data);
    pattern_fill(data, 20000);
    world_init(&s->w, scheme, NULL, NULL);
    for (unsigned i = 0; i < PRESSED; i++)
        probe_write(&s->w, &s->p[i], &bulk, 1); /* each in a message of its own */
    for (unsigned i = 0; i < PRESSED; i++) {
        cr_assert_eq(probe_wait(&s->w, &s->p[i]), 0);
        cr_assert_eq(s->p[i].boot, crc);
    }
    for (unsigned i = 0; i < PRESSED; i++) {
        s->p[i] = (struct probe){0};
        probe_read(&s->w, &s->p[i], i % 2, 20000);
    }
    for (unsigned i = 0; i < PRESSED; i++) {
        cr_assert_eq(probe_wait(&s->w, &s->p[i]), 0);
        cr_assert_eq(s->p[i].bulk_crc, crc);
    }
    for (unsigned i = 0; i < PRESSED; i++) {
        s->p[i] = (struct probe){0};
        probe_hold(&s->w, &s->p[i], i);
    }
    cr_assert(world_until(&s->w, pressed_all_held, s));
    cr_assert(world_until(&s->w, press_step, s));
    cr_assert_eq(hf_rpc_client_epoch(s->w.client), 1);
    world_fini(&s->w);
    free(s);
    free(data);
}
EACH(no_message_is_lost_in_a_burst)

static void free_with_outstanding(const char *scheme)
{
    struct world w;
    struct probe p[100] = {0};

    world_init(&w, scheme, NULL, NULL);
    for (unsigned i = 0; i < 50; i++)
        probe_hold(&w, &p[i], i);
    world_run_for(&w, HF_NS_PER_MS * 5);
    for (unsigned i = 50; i < 100; i++)
        probe_hold(&w, &p[i], i);
    hf_rpc_client_free(w.client);
    w.client = NULL;
    for (unsigned i = 0; i < 100; i++) {
        cr_assert_eq(p[i].done, 1);
        cr_assert_eq(p[i].call.status, HF_E_CLOSED);
    }
    world_run_for(&w, HF_NS_PER_MS * 5);
    world_fini(&w);
}
EACH(free_with_outstanding)

static void free_client(struct probe *p)
{
    struct world *w = p->arg;
    struct hf_rpc_client *c = w->client;

    w->client = NULL;
    hf_rpc_client_free(c);
}

static void free_inside_a_closure(const char *scheme)
{
    struct world w;
    struct probe p[10] = {0};

    world_init(&w, scheme, NULL, NULL);
    p[4].then = free_client;
    p[4].arg = &w;
    for (unsigned i = 0; i < 10; i++)
        probe_echo(&w, &p[i], i);
    for (unsigned i = 0; i < 10; i++) {
        int st = probe_wait(&w, &p[i]);

        cr_assert_eq(st, i <= 4 ? 0 : HF_E_CLOSED);
        cr_assert_eq(p[i].done, 1);
    }
    world_fini(&w);
}
EACH(free_inside_a_closure)

static void on_raw(const ProtobufCMessage *rep, void *data)
{
    struct probe *p = ((struct hf_rpc_call *)data)->arg;

    p->have_rep = rep != NULL;
    p->done++;
}

static void unknown_service(const char *scheme)
{
    struct world w;
    struct probe p = {.call.arg = &p};
    ProtobufCServiceDescriptor other = hf__segment__descriptor;
    Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;

    world_init(&w, scheme, NULL, NULL);
    other.name = "hf.NotThere";
    w.service = hf_rpc_client_service(w.client, &other);
    w.service->invoke(w.service, 0, &req.base, on_raw, &p.call);
    cr_assert_eq(probe_wait(&w, &p), HF_E_NOTSUPP);
    cr_assert(!p.have_rep);
    world_fini(&w);
}
EACH(unknown_service)

static void urls_are_checked(const char *scheme)
{
    struct world w;
    struct hf_rpc_client *c;
    bool sim = strcmp(scheme, "sim") == 0;

    world_init(&w, scheme, NULL, NULL);
    cr_assert(world_until(&w, world_connected, &w));
    cr_assert_eq(hf_rpc_server_listen(w.server, w.url), HF_E_ADDRINUSE);
    cr_assert_eq(hf_rpc_client_new(w.cloop, sim ? "tcp://127.0.0.1:1" : "sim://x", NULL, &c),
                 HF_E_INVAL);
    if (!sim) {
        static const char *const refused[] = {"tcp://192.168.1.1:80", "tcp://0.0.0.0:80",
                                              "tcp://[::]:80", "tcp://example.org:80"};
        static const char *const invalid[] = {"tcp://127.0.0.1",
                                              "tcp://127.0.0.1:x",
                                              "tcp://127.0.0.1:99999",
                                              "tcp://127.0.0.1;1.2.3.4:80",
                                              "http://x",
                                              "inproc://",
                                              ""};

        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
            cr_assert_eq(hf_rpc_client_new(w.cloop, refused[i], NULL, &c), HF_E_PERM);
            cr_assert_eq(hf_rpc_server_listen(w.server, refused[i]), HF_E_PERM);
        }
        for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
            cr_assert_eq(hf_rpc_client_new(w.cloop, invalid[i], NULL, &c), HF_E_INVAL);
    }
    world_fini(&w);
}
EACH(urls_are_checked)

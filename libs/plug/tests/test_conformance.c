/* SPDX-License-Identifier: Apache-2.0
 *
 * What every backend must do (holdfast/backend.h). One line in specs[] applies all of it to another
 * backend or stack.
 */
#include "support_dir.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/plug.h"

struct spec {
    char text[64];
};

static struct spec specs[] = {
    {"posix"},
    {"posix(fds=4)"},
    {"mem"},
    {"delay(ms=1)+mem"},
    {"delay(us=200,op=write)+posix"},
    {"error(op=any,every=3)+posix"}, /* no status: nothing is hit */
    {"error+delay(us=100)+mem"},
};

struct fixture {
    char dir[256], path[300];
    const char *spec;
    struct hf_plug *plug;
    struct hf_plug_be *be;
};

#define CONFORMANCE(name)                                                                          \
    ParameterizedTestParameters(conformance, name)                                                 \
    {                                                                                              \
        return cr_make_param_array(struct spec, specs, HF_ARRAY_LEN(specs), NULL);                 \
    }                                                                                              \
    static void name##_body(struct fixture *f);                                                    \
    ParameterizedTest(struct spec *s, conformance, name)                                           \
    {                                                                                              \
        struct fixture f;                                                                          \
        setup(&f, s->text);                                                                        \
        name##_body(&f);                                                                           \
        teardown(&f);                                                                              \
    }                                                                                              \
    static void name##_body(struct fixture *f)

static void be_open(struct fixture *f)
{
    char err[512] = "";
    int rc = hf_plug_open(f->plug, f->spec, f->path, 3, &f->be, err, sizeof(err));

    cr_assert_eq(rc, 0, "%s: %s", f->spec, err);
}

static void setup(struct fixture *f, const char *spec)
{
    memset(f, 0, sizeof(*f));
    f->spec = spec;
    support_dir_make(f->dir, sizeof(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/objects", f->dir);
    cr_assert_eq(hf_plug_new(getenv("HF_PLUGIN_DIR"), &f->plug), 0);
    be_open(f);
}

static void teardown(struct fixture *f)
{
    hf_plug_close(f->be);
    hf_plug_free(f->plug);
    support_dir_remove(f->dir);
}

static void make_id(uint8_t id[HF_BE_ID_BYTES], uint64_t n)
{
    memset(id, 0, HF_BE_ID_BYTES);
    for (unsigned i = 0; i < 8; i++)
        id[i] = (uint8_t)(n >> (56 - 8 * i));
    id[11] = 7;
}

static struct hf_be_io io_for(uint32_t op, uint64_t n, uint64_t offset, void *data, size_t len)
{
    struct hf_be_io io = {.op = op, .offset = offset, .data = data, .len = len, .status = 1};

    make_id(io.id, n);
    return io;
}

static int run(struct fixture *f, uint32_t op, uint64_t n, uint64_t offset, void *data, size_t len)
{
    struct hf_be_io io = io_for(op, n, offset, data, len);

    return hf_plug_do(f->be, &io);
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static bool all_zero(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i])
            return false;
    }
    return true;
}

CONFORMANCE(read_write_at_odd_offsets)
{
    static const struct {
        uint64_t offset;
        size_t len;
    } parts[] = {{0, 1}, {1, 4095}, {4097, 70001}, {200000, 3}, {65535, 2}, {1048575, 1048577}};
    size_t total = 2u << 20;
    uint8_t *model = calloc(1, total), *got = malloc(total);

    cr_assert(model && got);
    for (unsigned i = 0; i < HF_ARRAY_LEN(parts); i++) {
        fill(model + parts[i].offset, parts[i].len, i + 1);
        cr_assert_eq(run(f, HF_BE_WRITE, 1, parts[i].offset, model + parts[i].offset, parts[i].len),
                     0);
        memset(got, 0xaa, total);
        cr_assert_eq(run(f, HF_BE_READ, 1, 0, got, total), 0);
        cr_assert_eq(memcmp(got, model, total), 0, "after write %u", i);
    }
    cr_assert_eq(run(f, HF_BE_READ, 1, 4099, got, 12345), 0);
    cr_assert_eq(memcmp(got, model + 4099, 12345), 0);
    free(model);
    free(got);
}

CONFORMANCE(holes_and_end_read_as_zeros)
{
    uint8_t a[100], got[4096];

    fill(a, sizeof(a), 5);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 1000000, a, sizeof(a)), 0);
    memset(got, 0xaa, sizeof(got));
    cr_assert_eq(run(f, HF_BE_READ, 1, 500000, got, sizeof(got)), 0);
    cr_assert(all_zero(got, sizeof(got)));
    memset(got, 0xaa, sizeof(got));
    cr_assert_eq(run(f, HF_BE_READ, 1, 1000050, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(got, a + 50, 50), 0);
    cr_assert(all_zero(got + 50, sizeof(got) - 50));
    memset(got, 0xaa, sizeof(got));
    cr_assert_eq(run(f, HF_BE_READ, 1, 5000000, got, sizeof(got)), 0);
    cr_assert(all_zero(got, sizeof(got)));
}

CONFORMANCE(truncate_and_extend)
{
    struct hf_be_io st;
    uint8_t a[200000], got[200000];

    fill(a, sizeof(a), 6);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 0, a, sizeof(a)), 0);
    cr_assert_eq(run(f, HF_BE_TRUNCATE, 1, 70001, NULL, 0), 0);
    st = io_for(HF_BE_STAT, 1, 0, NULL, 0);
    cr_assert_eq(hf_plug_do(f->be, &st), 0);
    cr_assert_eq(st.size, 70001);
    cr_assert_eq(run(f, HF_BE_TRUNCATE, 1, 200000, NULL, 0), 0);
    st = io_for(HF_BE_STAT, 1, 0, NULL, 0);
    cr_assert_eq(hf_plug_do(f->be, &st), 0);
    cr_assert_eq(st.size, 200000);
    cr_assert_eq(run(f, HF_BE_READ, 1, 0, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(got, a, 70001), 0);
    cr_assert(all_zero(got + 70001, sizeof(got) - 70001));
}

CONFORMANCE(stat_tells_size_and_space)
{
    struct hf_be_io st = io_for(HF_BE_STAT, 1, 0, NULL, 0);
    uint8_t *a = malloc(1u << 20);

    cr_assert_not_null(a);
    fill(a, 1u << 20, 6);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 3u << 20, a, 1u << 20), 0);
    cr_assert_eq(run(f, HF_BE_SYNC, 1, 0, NULL, 0), 0);
    cr_assert_eq(hf_plug_do(f->be, &st), 0);
    cr_assert_eq(st.size, 4u << 20);
    cr_assert_geq(st.allocated, 1u << 20);
    cr_assert_lt(st.allocated, 4u << 20, "holes take space");
    free(a);
}

CONFORMANCE(punch_makes_a_hole)
{
    uint8_t *a = malloc(512 << 10), *got = malloc(512 << 10);
    size_t n = 512 << 10;

    cr_assert(a && got);
    fill(a, n, 9);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 0, a, n), 0);
    cr_assert_eq(run(f, HF_BE_PUNCH, 1, 65536, NULL, 131072), 0);
    memset(a + 65536, 0, 131072);
    cr_assert_eq(run(f, HF_BE_READ, 1, 0, got, n), 0);
    cr_assert_eq(memcmp(a, got, n), 0);
    cr_assert(hf_plug_ops(f->be)->caps & HF_BE_CAP_PUNCH);
    free(a);
    free(got);
}

CONFORMANCE(missing_objects)
{
    uint8_t b[16];

    cr_assert_eq(run(f, HF_BE_READ, 9, 0, b, sizeof(b)), HF_BE_ENOENT);
    cr_assert_eq(run(f, HF_BE_SYNC, 9, 0, NULL, 0), HF_BE_ENOENT);
    cr_assert_eq(run(f, HF_BE_TRUNCATE, 9, 10, NULL, 0), HF_BE_ENOENT);
    cr_assert_eq(run(f, HF_BE_STAT, 9, 0, NULL, 0), HF_BE_ENOENT);
    cr_assert_eq(run(f, HF_BE_DELETE, 9, 0, NULL, 0), 0);
    /* reading and syncing did not make it */
    cr_assert_eq(run(f, HF_BE_STAT, 9, 0, NULL, 0), HF_BE_ENOENT);
}

CONFORMANCE(out_of_bounds_is_refused)
{
    uint8_t b[16] = {0};

    cr_assert_eq(run(f, HF_BE_WRITE, 1, HF_BE_OBJECT_MAX, b, sizeof(b)), HF_BE_EINVAL);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, UINT64_MAX - 4, b, sizeof(b)), HF_BE_EINVAL);
    cr_assert_eq(run(f, 99, 1, 0, b, sizeof(b)) < 0, 1);
}

CONFORMANCE(deleted_is_gone)
{
    struct hf_be_io del = io_for(HF_BE_DELETE, 1, 0, NULL, 0);
    struct hf_be_space sp;
    uint8_t b[100], *big = calloc(1, 1u << 20);

    cr_assert_not_null(big);
    fill(b, sizeof(b), 1);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 0, big, 1u << 20), 0);
    cr_assert_eq(run(f, HF_BE_WRITE, 2, 0, b, sizeof(b)), 0);
    cr_assert_eq(run(f, HF_BE_SYNC, 1, 0, NULL, 0), 0);
    cr_assert_eq(hf_plug_do(f->be, &del), 0);
    cr_assert(del.allocated == 0 || del.allocated >= 1u << 20);
    cr_assert_eq(run(f, HF_BE_READ, 1, 0, b, sizeof(b)), HF_BE_ENOENT);
    cr_assert_eq(run(f, HF_BE_READ, 2, 0, b, sizeof(b)), 0);
    cr_assert_eq(hf_plug_ops(f->be)->space(hf_plug_handle(f->be), &sp), 0);
    cr_assert_eq(sp.objects, 1);
    cr_assert_gt(sp.capacity_bytes, 0);
    cr_assert_leq(sp.free_bytes, sp.capacity_bytes);
    /* and can come again, without its old content */
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 4000, b, 1), 0);
    memset(b, 0xaa, sizeof(b));
    cr_assert_eq(run(f, HF_BE_READ, 1, 0, b, sizeof(b)), 0);
    cr_assert(all_zero(b, sizeof(b)));
    free(big);
}

struct listing {
    uint8_t (*ids)[HF_BE_ID_BYTES];
    size_t n, max;
};

static int list_one(void *arg, const uint8_t *id)
{
    struct listing *l = arg;

    memcpy(l->ids[l->n++], id, HF_BE_ID_BYTES);
    return l->n == l->max;
}

CONFORMANCE(list_is_ordered_and_resumes)
{
    enum { N = 300, PAGE = 37 };
    const struct hf_backend_ops *ops = hf_plug_ops(f->be);
    struct hf_be *h = hf_plug_handle(f->be);
    uint8_t ids[N + 1][HF_BE_ID_BYTES], want[HF_BE_ID_BYTES], after[HF_BE_ID_BYTES];
    struct listing l = {.ids = ids, .max = N + 1};
    size_t total = 0;

    for (uint64_t i = 0; i < N; i++)
        cr_assert_eq(run(f, HF_BE_WRITE, i * i * 1000003u + i, 0, want, 1), 0);
    cr_assert_eq(ops->list(h, NULL, list_one, &l), 0);
    cr_assert_eq(l.n, N);
    for (uint64_t i = 0; i < N; i++) {
        make_id(want, i * i * 1000003u + i);
        cr_assert_eq(memcmp(ids[i], want, sizeof(want)), 0, "place %u", (unsigned)i);
    }
    for (;;) {
        l.n = 0;
        l.max = PAGE;
        cr_assert_eq(ops->list(h, total ? after : NULL, list_one, &l), 0);
        if (l.n == 0)
            break;
        for (size_t i = 0; i < l.n; i++) {
            make_id(want, (total + i) * (total + i) * 1000003u + total + i);
            cr_assert_eq(memcmp(ids[i], want, sizeof(want)), 0);
        }
        memcpy(after, ids[l.n - 1], sizeof(after));
        total += l.n;
    }
    cr_assert_eq(total, N);
    /* after an id that does not exist, and a change between pages */
    make_id(after, 1);
    l.n = 0;
    l.max = 1;
    cr_assert_eq(ops->list(h, after, list_one, &l), 0);
    make_id(want, 1000004u);
    cr_assert_eq(memcmp(ids[0], want, sizeof(want)), 0);
    cr_assert_eq(run(f, HF_BE_DELETE, 1000004u, 0, NULL, 0), 0);
    l.n = 0;
    cr_assert_eq(ops->list(h, after, list_one, &l), 0);
    make_id(want, 4000014u);
    cr_assert_eq(memcmp(ids[0], want, sizeof(want)), 0);
}

CONFORMANCE(persistent_across_open)
{
    bool persistent = (hf_plug_ops(f->be)->caps & HF_BE_CAP_PERSISTENT) != 0;
    uint8_t a[70000], got[70000];

    fill(a, sizeof(a), 8);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 10, a, sizeof(a)), 0);
    cr_assert_eq(run(f, HF_BE_SYNC, 1, 0, NULL, 0), 0);
    hf_plug_close(f->be);
    be_open(f);
    if (!persistent) {
        cr_assert_eq(run(f, HF_BE_READ, 1, 10, got, sizeof(got)), HF_BE_ENOENT);
        return;
    }
    cr_assert_eq(run(f, HF_BE_READ, 1, 10, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(got, a, sizeof(a)), 0);
    cr_assert_eq(run(f, HF_BE_WRITE, 1, 0, a, 10), 0);
    cr_assert_eq(run(f, HF_BE_SYNC, 1, 0, NULL, 0), 0);
}

enum { WORKERS = 4, INFLIGHT = 16, ROUNDS = 8 };

struct flight {
    struct hf_be_io io;
    atomic_uint completions;
    struct crowd *crowd;
};

struct crowd {
    struct fixture *f;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned left;
    unsigned worker;
    bool ok;
};

static void flight_done(struct hf_be_io *io)
{
    struct flight *fl = hf_container_of(io, struct flight, io);
    struct crowd *c = fl->crowd;

    atomic_fetch_add(&fl->completions, 1);
    pthread_mutex_lock(&c->lock);
    if (--c->left == 0)
        pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->lock);
}

static void crowd_run(struct crowd *c, struct flight *fl, uint32_t op, unsigned round,
                      uint8_t (*data)[9000])
{
    c->left = INFLIGHT;
    for (unsigned i = 0; i < INFLIGHT; i++) {
        fl[i].io =
            io_for(op, c->worker * 4 + i % 4, (uint64_t)i * 9001 + round, data[i], sizeof(data[i]));
        fl[i].io.done = flight_done;
        fl[i].crowd = c;
        atomic_store(&fl[i].completions, 0);
    }
    for (unsigned i = 0; i < INFLIGHT; i++)
        hf_plug_submit(c->f->be, &fl[i].io);
    pthread_mutex_lock(&c->lock);
    while (c->left)
        pthread_cond_wait(&c->cond, &c->lock);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < INFLIGHT; i++) {
        if (fl[i].io.status || atomic_load(&fl[i].completions) != 1)
            c->ok = false;
    }
}

static void *crowd_thread(void *arg)
{
    struct crowd *c = arg;
    struct flight *fl = calloc(INFLIGHT, sizeof(*fl));
    uint8_t(*out)[9000] = calloc(INFLIGHT, sizeof(*out)),
    (*in)[9000] = calloc(INFLIGHT, sizeof(*in));

    c->ok = fl && in && out;
    for (unsigned r = 0; r < ROUNDS && c->ok; r++) {
        for (unsigned i = 0; i < INFLIGHT; i++)
            fill(out[i], sizeof(out[i]), r * 1000 + c->worker * 100 + i);
        crowd_run(c, fl, HF_BE_WRITE, r, out);
        crowd_run(c, fl, HF_BE_SYNC, r, out);
        crowd_run(c, fl, HF_BE_READ, r, in);
        if (memcmp(in, out, INFLIGHT * sizeof(*in)) != 0)
            c->ok = false;
    }
    free(fl);
    free(in);
    free(out);
    return NULL;
}

/* 64 at once from 4 threads, each completed exactly once. */
CONFORMANCE(many_at_once)
{
    struct crowd c[WORKERS];
    pthread_t t[WORKERS];

    for (unsigned i = 0; i < WORKERS; i++) {
        c[i] = (struct crowd){.f = f, .worker = i, .ok = false};
        pthread_mutex_init(&c[i].lock, NULL);
        pthread_cond_init(&c[i].cond, NULL);
        cr_assert_eq(pthread_create(&t[i], NULL, crowd_thread, &c[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(t[i], NULL);
        cr_assert(c[i].ok, "worker %u", i);
        pthread_cond_destroy(&c[i].cond);
        pthread_mutex_destroy(&c[i].lock);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The wal in good health: order, groups, files, trimming, space.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "support_log.h"

Test(wal, append_read_reopen)
{
    struct harness *h = harness_new(3);

    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned s = 0; s < 3; s++)
            cr_assert_eq(harness_check(h, s, 1, 700), round * 20 * (s + 1));
        for (unsigned i = 0; i < 20; i++) {
            for (unsigned s = 0; s < 3; s++) {
                for (unsigned k = 0; k <= s; k++)
                    harness_append(h, s, 700);
            }
        }
        cr_assert_eq(harness_wait(h), 0);
        /* also without a restart, and from the middle */
        cr_assert_eq(harness_check(h, 1, 1, 700), (round + 1) * 40);
        cr_assert_eq(harness_check(h, 2, 7, 700), (round + 1) * 60 - 6);
        harness_close(h);
        cr_assert_eq(harness_open(h), 0, "%s", h->err);
    }
    harness_free(h);
}

static int stop_at(void *arg, uint64_t pos, struct hf_slice rec)
{
    (void)rec;
    return pos == *(uint64_t *)arg ? 77 : 0;
}

Test(wal, read_limits)
{
    struct harness *h = harness_new(2);
    uint64_t at = 3;
    struct hf_log *l;

    cr_assert_eq(harness_open(h), 0);
    l = hf_wal_log(h->w, 1);
    cr_assert_eq(hf_log_end(l), 1);
    cr_assert_eq(hf_log_read(l, 1, stop_at, &at), 0);
    cr_assert_eq(hf_log_read(l, 2, stop_at, &at), HF_E_NOENT);
    cr_assert_eq(hf_log_read(l, 0, stop_at, &at), HF_E_NOENT);
    for (unsigned i = 0; i < 5; i++)
        harness_append(h, 1, 10);
    cr_assert_eq(harness_wait(h), 0);
    cr_assert_eq(hf_log_read(l, 1, stop_at, &at), 77);
    cr_assert_eq(hf_log_read(l, 4, stop_at, &at), 0);
    cr_assert_eq(hf_log_end(l), 6);
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 0)), 1);
    harness_free(h);
}

static void no_task(struct hf_task *t)
{
    (void)t;
}

Test(wal, record_sizes)
{
    struct harness *h = harness_new(1);
    uint8_t *big = calloc(1, HF_LOG_RECORD_MAX);
    struct hf_log_append a = {.done.fn = no_task, .loop = h->loop, .nparts = 2};

    cr_assert_not_null(big);
    h->o.file_bytes = 1u << 20;
    h->o.max_bytes = 8u << 20;
    cr_assert_eq(harness_open(h), 0);
    a.parts[0] = hf_slice(big, HF_LOG_RECORD_MAX);
    a.parts[1] = hf_slice(big, 1);
    cr_assert_eq(hf_log_append(hf_wal_log(h->w, 0), &a), HF_E_TOOBIG);
    a.parts[0].len = SIZE_MAX;
    cr_assert_eq(hf_log_append(hf_wal_log(h->w, 0), &a), HF_E_TOOBIG);
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 0)), 1, "no position was used");
    for (unsigned i = 0; i < 8; i++)
        harness_append(h, 0, HF_LOG_RECORD_MAX);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(harness_check(h, 0, 1, HF_LOG_RECORD_MAX), 8);
    harness_free(h);

    /* What no file can hold is refused at once. */
    h = harness_new(1);
    cr_assert_eq(harness_open(h), 0);
    a.parts[0].len = h->o.file_bytes - WAL_DATA_OFF - 2 * WAL_REC_BYTES;
    cr_assert_eq(hf_log_append(hf_wal_log(h->w, 0), &a), HF_E_TOOBIG);
    harness_free(h);
    free(big);
}

Test(wal, trimmed_files_are_recycled)
{
    struct harness *h = harness_new(4);
    struct hf_wal_stats st;
    uint64_t trimmed[4];

    cr_assert_eq(harness_open(h), 0);
    /* Shard 3 writes once and then only trims, as an idle shard does after its checkpoint. */
    harness_append(h, 3, 1000);
    cr_assert_eq(harness_wait(h), 0);
    hf_log_trim(hf_wal_log(h->w, 3), 2);
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 30; i++)
            harness_append(h, i % 3, 2000);
        cr_assert_eq(harness_wait(h), 0, "round %u", round);
        for (unsigned s = 0; s < 3; s++) {
            trimmed[s] = hf_log_end(hf_wal_log(h->w, s)) - 5;
            hf_log_trim(hf_wal_log(h->w, s), trimmed[s]);
        }
        if (round % 50 == 49) {
            hf_wal_stats(h->w, &st);
            cr_assert_gt(st.recycled, 15u);
            cr_assert_leq(st.files, 8u);
            harness_close(h);
            cr_assert_eq(harness_open(h), 0, "%s", h->err);
            for (unsigned s = 0; s < 3; s++) {
                cr_assert_eq(harness_check(h, s, trimmed[s], 2000), 5);
                hf_log_trim(hf_wal_log(h->w, s), trimmed[s]);
            }
            hf_log_trim(hf_wal_log(h->w, 3), 2);
        }
    }
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 3)), 2, "an idle shard keeps its position");
    cr_assert_eq(hf_log_read(hf_wal_log(h->w, 0), 1, NULL, NULL), HF_E_NOENT, "trimmed away");
    cr_assert_eq(hf_log_read(hf_wal_log(h->w, 3), 1, NULL, NULL), HF_E_NOENT);
    harness_free(h);
}

Test(wal, many_spares_are_removed_and_not_missed)
{
    struct harness *h = harness_new(2);
    struct hf_wal_stats st;
    struct timespec until, now;

    h->o.max_bytes = 4u << 20;
    cr_assert_eq(harness_open(h), 0);
    for (unsigned i = 0; i < 900; i++)
        harness_append(h, i % 2, 4000);
    cr_assert_eq(harness_wait(h), 0);
    hf_wal_stats(h->w, &st);
    cr_assert_gt(st.files, 20u);
    for (unsigned s = 0; s < 2; s++)
        hf_log_trim(hf_wal_log(h->w, s), hf_log_end(hf_wal_log(h->w, s)));
    /* The present header still counts them as needed. */
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    for (unsigned s = 0; s < 2; s++)
        hf_log_trim(hf_wal_log(h->w, s), hf_log_end(hf_wal_log(h->w, s)));
    for (unsigned i = 0; i < 60; i++)
        harness_append(h, i % 2, 4000);
    cr_assert_eq(harness_wait(h), 0);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 30;
    do {
        hf_wal_stats(h->w, &st);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (st.files > WAL_SPARES_MAX + 4 && now.tv_sec < until.tv_sec);
    cr_assert_leq(st.files, WAL_SPARES_MAX + 4u);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 0)), 481);
    harness_free(h);
}

Test(wal, groups_share_a_sync)
{
    struct harness *h = harness_new(8);
    struct hf_wal_stats st;

    h->o.file_bytes = 8u << 20;
    h->o.max_bytes = 64u << 20;
    cr_assert_eq(harness_open(h), 0);
    for (unsigned i = 0; i < 4000; i++)
        harness_append(h, i % 8, 500);
    cr_assert_eq(harness_wait(h), 0);
    hf_wal_stats(h->w, &st);
    cr_assert_eq(st.records, 4000);
    cr_assert_lt(st.fsyncs, 1000u, "%lu syncs", (unsigned long)st.fsyncs);
    cr_assert_gt(st.fsyncs, 0u);
    cr_assert_geq(st.fsync_ns_sum, st.fsync_ns_max);
    harness_free(h);
}

Test(wal, close_completes_what_is_queued)
{
    struct harness *h = harness_new(2);

    for (unsigned round = 0; round < 20; round++) {
        cr_assert_eq(harness_open(h), 0, "%s", h->err);
        cr_assert_eq(harness_check(h, 0, 1, 300), round * 20);
        for (unsigned i = 0; i < 40; i++)
            harness_append(h, i % 2, 300);
        hf_wal_close(h->w);
        h->w = NULL;
        cr_assert_eq(harness_wait(h), 0);
    }
    harness_free(h);
}

Test(wal, full_log_stops_growth_first)
{
    struct harness *h = harness_new(2);
    struct hf_log *l;
    uint64_t grown, end;

    cr_assert_eq(harness_open(h), 0);
    l = hf_wal_log(h->w, 0);
    while (hf_log_may_grow(l)) {
        harness_append(h, 0, 4000);
        cr_assert_eq(harness_wait(h), 0);
        cr_assert_lt(hf_log_end(l), 10000u);
    }
    grown = hf_log_end(l);
    cr_assert_gt(grown, 300u);
    /* The reserve: half of it goes in at least (a file that is begun may have to stay partly
     * empty). */
    for (unsigned i = 0; i < 30; i++)
        harness_append(h, 0, 4000);
    cr_assert_eq(harness_wait(h), 0);
    /* Removing freed the log: growth goes on. */
    hf_log_trim(l, hf_log_end(l));
    cr_assert(hf_log_may_grow(l));
    for (unsigned i = 0; i < 100; i++)
        harness_append(h, 0, 4000);
    cr_assert_eq(harness_wait(h), 0);

    /* A caller that ignores it gets NOSPC, for this and all later appends. */
    for (unsigned i = 0; i < 1000; i++)
        harness_append(h, i % 2, 4000);
    cr_assert_eq(harness_wait(h), HF_E_NOSPC);
    cr_assert_not(hf_log_may_grow(l));
    harness_append(h, 1, 10);
    cr_assert_eq(harness_wait(h), HF_E_NOSPC);
    end = h->done_pos[1] + 1;
    grown = h->done_pos[0] + 1;
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 0)), grown, "no hole, nothing after it");
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 1)), end);
    harness_free(h);
}

Test(wal, options_and_owners)
{
    struct harness *h = harness_new(2);
    struct hf_wal *other;
    struct hf_wal_opts bad = h->o;
    struct hf_buf b;
    char name[24];
    uint64_t end;

    bad.shards = 0;
    cr_assert_eq(hf_wal_open(h->env, &bad, &other, NULL, 0), HF_E_INVAL);
    bad = h->o;
    bad.file_bytes = 100;
    cr_assert_eq(hf_wal_open(h->env, &bad, &other, NULL, 0), HF_E_INVAL);
    bad = h->o;
    bad.dir = "/proc/nowhere/x";
    cr_assert_lt(hf_wal_open(h->env, &bad, &other, h->err, sizeof(h->err)), 0);
    cr_assert_neq(h->err[0], 0);
    cr_assert_eq(harness_open(h), 0);
    cr_assert_eq(hf_wal_open(h->env, &h->o, &other, h->err, sizeof(h->err)), HF_E_BUSY);
    harness_append(h, 1, 100);
    cr_assert_eq(harness_wait(h), 0);
    current_name(h, name, &end);
    harness_close(h);

    h->o.shards = 1;
    cr_assert_eq(harness_open(h), HF_E_CONF);
    h->o.shards = 5;
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(harness_check(h, 1, 1, 100), 1);
    harness_append(h, 4, 100);
    cr_assert_eq(harness_wait(h), 0, "a file that knows fewer shards is not continued for them");
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(harness_check(h, 4, 1, 100), 1);
    harness_close(h);

    /* Another format. */
    b = file_load(h->dir, name);
    b.data[8] = 9;
    file_store(h->dir, name, b.data, b.len);
    cr_assert_eq(harness_open(h), HF_E_VERSION);
    cr_assert_not_null(strstr(h->err, name));
    hf_buf_fini(&b);
    harness_free(h);
}

/* ---- 16 shards on 4 loops ---- */

#define LOOPS     4
#define PER_SHARD 300

struct stream {
    struct hf_log_append a;
    struct hf_task begin;
    struct hf_log *l;
    unsigned shard;
    size_t max;
    atomic_int *left;
    uint8_t data[2000];
};

static void stream_next(struct stream *s)
{
    uint64_t pos = hf_log_end(s->l);
    size_t len = record_len(s->shard, pos, s->max);

    record_fill(s->shard, 0, pos, s->data, len);
    s->a.parts[0] = hf_slice(s->data, len);
    s->a.nparts = 1;
    cr_assert_eq(hf_log_append(s->l, &s->a), 0);
}

static void stream_done(struct hf_task *t)
{
    struct stream *s = hf_container_of(t, struct stream, a.done);

    cr_assert_eq(s->a.status, 0);
    hf_log_trim(s->l, s->a.pos > 40 ? s->a.pos - 40 : 1);
    (void)hf_log_may_grow(s->l);
    if (s->a.pos == PER_SHARD)
        atomic_fetch_sub(s->left, 1);
    else
        stream_next(s);
}

static void stream_begin(struct hf_task *t)
{
    stream_next(hf_container_of(t, struct stream, begin));
}

Test(wal, sixteen_shards_on_four_loops)
{
    struct harness *h = harness_new(16);
    struct stream *s = calloc(16, sizeof(*s));
    struct hf_loop *loops[LOOPS];
    atomic_int left = 16;
    struct timespec now;
    time_t until;
    struct hf_wal_stats st;

    cr_assert_not_null(s);
    h->o.max_bytes = 4u << 20;
    cr_assert_eq(harness_open(h), 0);
    for (unsigned i = 0; i < LOOPS; i++)
        cr_assert_eq(hf_loop_new(h->env, "shards", &loops[i]), 0);
    for (unsigned i = 0; i < 16; i++) {
        s[i].a.done.fn = stream_done;
        s[i].a.loop = loops[i % LOOPS];
        s[i].begin.fn = stream_begin;
        s[i].l = hf_wal_log(h->w, i);
        s[i].shard = i;
        s[i].max = sizeof(s[i].data);
        s[i].left = &left;
        hf_loop_post(s[i].a.loop, &s[i].begin);
    }
    for (unsigned i = 0; i < LOOPS; i++)
        cr_assert_eq(hf_loop_start(loops[i]), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    until = now.tv_sec + 100;
    while (atomic_load(&left) > 0 && now.tv_sec < until) {
        hf_wal_stats(h->w, &st);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    cr_assert_eq(atomic_load(&left), 0);
    for (unsigned i = 0; i < LOOPS; i++) {
        hf_loop_join(loops[i]);
        hf_loop_free(loops[i]);
    }
    hf_wal_stats(h->w, &st);
    cr_assert_eq(st.records, 16u * PER_SHARD);
    cr_assert_lt(st.fsyncs, st.records / 2);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    for (unsigned i = 0; i < 16; i++)
        cr_assert_eq(harness_check(h, i, PER_SHARD - 40, sizeof(s->data)), 41);
    free(s);
    harness_free(h);
}

/* ---- simulation: no threads ---- */

static void sim_done(struct hf_task *t)
{
    struct hf_log_append *a = hf_container_of(t, struct hf_log_append, done);

    cr_assert_eq(a->status, 0);
    a->done.fn = NULL;
}

Test(wal, simulated_env_writes_at_once)
{
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_wal *w;
    char *dir = temp_dir_new();
    struct hf_wal_opts o = {.dir = dir,
                            .shards = 1,
                            .file_bytes = 64u << 10,
                            .max_bytes = 1u << 20,
                            .reserve_bytes = 128u << 10};
    uint8_t data[1000] = {0};

    cr_assert_eq(hf_env_sim_new(1, 0, &env), 0);
    cr_assert_eq(hf_loop_new(env, "sim", &loop), 0);
    cr_assert_eq(hf_loop_start(loop), 0);
    cr_assert_eq(hf_wal_open(env, &o, &w, NULL, 0), 0);
    for (unsigned i = 0; i < 500; i++) {
        struct hf_log_append a = {
            .done.fn = sim_done, .loop = loop, .nparts = 1, .parts = {{data, sizeof(data)}}};

        cr_assert_eq(hf_log_append(hf_wal_log(w, 0), &a), 0);
        hf_sim_run(env, ~0ull);
        cr_assert_null(a.done.fn);
        hf_log_trim(hf_wal_log(w, 0), a.pos);
    }
    hf_wal_close(w);
    hf_loop_join(loop);
    hf_loop_free(loop);
    hf_env_free(env);
    temp_dir_free(dir);
}

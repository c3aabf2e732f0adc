/* SPDX-License-Identifier: Apache-2.0
 *
 * Data: inline, promotion, chunks, holes, checksums, truncation, verifiers.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support_world.h"

#define F     world_ino(0, 5)
#define BYTES (1u << 20)

static uint8_t *pattern(uint8_t seed)
{
    uint8_t *p = malloc(BYTES);

    cr_assert(p);
    for (uint32_t i = 0; i < BYTES; i++)
        p[i] = (uint8_t)(i * 31 + i / 251 + seed);
    return p;
}

static void wait_io(struct world *w, struct ioprobe *p, int status)
{
    cr_assert(world_until(w, io_done, p, 120000));
    cr_assert_eq(p->done, 1);
    cr_assert_eq(p->io.status, status, "status %s", hf_err_name(p->io.status));
}

static uint64_t put(struct world *w, struct hf_client *c, uint64_t off, uint32_t len,
                    const uint8_t *data, uint32_t stable)
{
    struct ioprobe p;

    io_write(c, &p, F, off, len, data, stable);
    cr_assert_eq(p.done, 0);
    wait_io(w, &p, 0);
    cr_assert_eq(p.io.count, len);
    return p.io.verifier;
}

/* Reads all of the range, as many calls as it takes. */
static void check(struct world *w, struct hf_client *c, uint64_t off, uint32_t len,
                  const uint8_t *want)
{
    uint8_t *buf = malloc(len);
    uint32_t at = 0;

    while (at < len) {
        struct ioprobe p;

        io_read(c, &p, F, off + at, len - at, buf + at);
        wait_io(w, &p, 0);
        cr_assert_gt(p.io.count, 0);
        at += p.io.count;
        cr_assert(p.have_attr);
        cr_assert_eq(p.io.eof, off + at == world_file(w, F)->size);
    }
    cr_assert_eq(memcmp(buf, want, len), 0);
    free(buf);
}

Test(io, inline_then_promoted_then_chunks)
{
    uint8_t *a = pattern(1), *model = calloc(1, BYTES);
    struct hf_client_stats st;
    struct hf_client *c;
    struct world w;

    world_init(&w, 1);
    c = world_client(&w, NULL);
    put(&w, c, 0, 1000, a, 0);
    memcpy(model, a, 1000);
    check(&w, c, 0, 1000, model);
    cr_assert_not(world_file(&w, F)->chunked);
    put(&w, c, 900, 10000, a + 900, 0); /* overlaps what is inline */
    memcpy(model + 900, a + 900, 10000);
    cr_assert(world_file(&w, F)->chunked);
    check(&w, c, 0, 10900, model);
    put(&w, c, W_CHUNK - 100, 2 * W_CHUNK, a, 2); /* three chunks, a hole before */
    memcpy(model + W_CHUNK - 100, a, 2 * W_CHUNK);
    check(&w, c, 0, 3 * W_CHUNK - 100, model);
    put(&w, c, 6 * W_CHUNK + 5, 1, a + 7, 0); /* far away */
    model[6 * W_CHUNK + 5] = a[7];
    check(&w, c, 0, 6 * W_CHUNK + 6, model);
    check(&w, c, 3 * W_CHUNK - 1000, 3 * W_CHUNK, model + 3 * W_CHUNK - 1000);
    hf_client_stats(c, &st);
    cr_assert_eq(st.promotes, 1);
    cr_assert_eq(st.checksum_errors, 0);
    hf_client_free(c);
    world_fini(&w);
    free(a);
    free(model);
}

Test(io, promotion_with_a_hole_and_by_exact_append)
{
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *a = pattern(2), *model = calloc(1, BYTES);
        uint32_t at = i ? 3000 : 3 * W_CHUNK - 7;
        struct hf_client *c;
        struct world w;

        world_init(&w, 2);
        c = world_client(&w, NULL);
        put(&w, c, 0, 3000, a, 2);
        put(&w, c, at, W_CHUNK, a + 11, 0);
        memcpy(model, a, 3000);
        memcpy(model + at, a + 11, W_CHUNK);
        world_restart_seg(&w, 0); /* what a promotion moves is stable */
        world_restart_seg(&w, 1);
        check(&w, c, 0, at + W_CHUNK, model);
        hf_client_free(c);
        world_fini(&w);
        free(a);
        free(model);
    }
}

Test(io, reads_at_and_beyond_the_end)
{
    uint8_t *a = pattern(3), buf[100];
    struct hf_client *c;
    struct ioprobe p;
    struct world w;

    world_init(&w, 3);
    c = world_client(&w, NULL);
    io_read(c, &p, F, 0, 100, buf); /* empty and inline */
    wait_io(&w, &p, 0);
    cr_assert_eq(p.io.count, 0);
    cr_assert(p.io.eof);
    put(&w, c, 0, W_CHUNK, a, 0);
    io_read(c, &p, F, W_CHUNK - 10, 100, buf);
    wait_io(&w, &p, 0);
    cr_assert_eq(p.io.count, 10);
    cr_assert(p.io.eof);
    io_read(c, &p, F, W_CHUNK, 100, buf);
    wait_io(&w, &p, 0);
    cr_assert_eq(p.io.count, 0);
    cr_assert(p.io.eof);
    io_read(c, &p, F, ~0ull - 5, 100, buf);
    wait_io(&w, &p, 0);
    cr_assert_eq(p.io.count, 0);
    hf_client_free(c);
    world_fini(&w);
    free(a);
}

Test(io, bad_arguments_are_refused)
{
    uint8_t *a = pattern(3);
    struct hf_client *c;
    struct ioprobe p;
    struct world w;

    world_init(&w, 4);
    c = world_client(&w, NULL);
    io_write(c, &p, F, (uint64_t)INT64_MAX - 5, 10, a, 0);
    cr_assert_eq(p.done, 0);
    wait_io(&w, &p, HF_E_FBIG);
    hf_client_free(c);
    world_fini(&w);
    free(a);
}

Test(io, corrupted_reads_are_asked_for_again_and_then_refused)
{
    uint8_t *a = pattern(4), *buf = malloc(BYTES);
    struct hf_client_stats st;
    struct hf_client *c;
    struct ioprobe p;
    struct world w;

    world_init(&w, 5);
    c = world_client(&w, NULL);
    put(&w, c, 0, 100000, a, 0);
    w.seg[0].corrupt_reads = 1;
    check(&w, c, 0, 100000, a);
    hf_client_stats(c, &st);
    cr_assert_eq(st.checksum_errors, 1);
    w.seg[0].corrupt_reads = 2;
    io_read(c, &p, F, 1, 90000, buf);
    wait_io(&w, &p, HF_E_IO);
    cr_assert_eq(p.io.count, 0);
    cr_assert_eq(p.io.npieces, 0);
    w.seg[0].corrupt_writes = 1;
    put(&w, c, 5, 70000, a, 0);
    w.seg[0].corrupt_writes = 2;
    io_write(c, &p, F, 5, 70000, a, 0);
    wait_io(&w, &p, HF_E_IO);
    hf_client_free(c);
    world_fini(&w);
    free(a);
    free(buf);
}

Test(io, truncate_and_extend_shows_zeros)
{
    uint8_t *a = pattern(5), *model = calloc(1, BYTES);
    struct hf_client_stats st;
    struct hf_client *c;
    struct probe p;
    struct world w;

    world_init(&w, 6);
    c = world_client(&w, NULL);
    put(&w, c, 0, 4 * W_CHUNK, a, 0);
    probe_truncate(c, &p, F, 100);
    cr_assert(world_until(&w, probe_done, &p, 1000));
    cr_assert_eq(p.call.status, 0);
    cr_assert(p.have_body);
    cr_assert_not(world_file(&w, F)->trim);
    probe_truncate(c, &p, F, 3 * W_CHUNK);
    cr_assert(world_until(&w, probe_done, &p, 1000));
    memcpy(model, a, 100);
    check(&w, c, 0, 3 * W_CHUNK, model);
    hf_client_stats(c, &st);
    cr_assert_eq(st.trims, 1);
    hf_client_free(c);
    world_fini(&w);
    free(a);
    free(model);
}

/* Who truncated is gone before the duty was done: the next one who extends does it. */
Test(io, an_abandoned_trim_is_done_by_who_extends)
{
    for (unsigned by_write = 0; by_write < 2; by_write++) {
        uint8_t *a = pattern(6), *model = calloc(1, BYTES);
        struct hf_client *dying, *c;
        struct probe p, q;
        struct world w;

        world_init(&w, 7);
        dying = world_client(&w, NULL);
        c = world_client(&w, NULL);
        put(&w, dying, 0, 4 * W_CHUNK, a, 0);
        cr_assert_eq(hf_rpc_sim_partition(w.env, w.seg[0].url, true), 0);
        probe_truncate(dying, &p, F, 50);
        while (!world_file(&w, F)->trim)
            cr_assert(hf_sim_step(w.env));
        hf_client_free(dying);
        cr_assert_eq(p.done, 1);
        cr_assert_eq(hf_rpc_sim_partition(w.env, w.seg[0].url, false), 0);
        memcpy(model, a, 50);
        if (by_write) {
            put(&w, c, 3 * W_CHUNK, 10, a, 0);
            memcpy(model + 3 * W_CHUNK, a, 10);
        } else {
            probe_truncate(c, &q, F, 3 * W_CHUNK + 10);
            cr_assert(world_until(&w, probe_done, &q, 60000));
            cr_assert_eq(q.call.status, 0);
        }
        check(&w, c, 0, 3 * W_CHUNK + 10, model);
        hf_client_free(c);
        world_fini(&w);
        free(a);
        free(model);
    }
}

/* A write that was under way when the file was truncated is fenced off and starts again. */
Test(io, a_late_write_is_fenced)
{
    uint8_t *a = pattern(7), *b = pattern(8), *model = calloc(1, BYTES);
    struct hf_client *slow, *c;
    struct ioprobe late;
    struct probe p;
    struct world w;
    unsigned hit = 0;

    /* The truncation falls into every stage of the write, by seed and number of steps. */
    for (unsigned steps = 1; steps < 60; steps++) {
        world_init(&w, steps);
        slow = world_client(&w, NULL);
        c = world_client(&w, NULL);
        put(&w, c, 0, 2 * W_CHUNK, a, 0);
        put(&w, slow, 0, 10, a, 0);
        io_write(slow, &late, F, W_CHUNK / 2, W_CHUNK, b, 0);
        for (unsigned i = 0; i < steps; i++)
            hf_sim_step(w.env);
        hit += !late.done;
        probe_truncate(c, &p, F, 100);
        cr_assert(world_until(&w, probe_done, &p, 60000));
        cr_assert_eq(p.call.status, 0);
        wait_io(&w, &late, 0);
        memset(model, 0, BYTES);
        memcpy(model, a, 100);
        if (world_file(&w, F)->size > 100) /* the write came after the truncation */
            memcpy(model + W_CHUNK / 2, b, W_CHUNK);
        probe_truncate(c, &p, F, 3 * W_CHUNK);
        cr_assert(world_until(&w, probe_done, &p, 60000));
        cr_assert_eq(p.call.status, 0);
        check(&w, c, 0, 3 * W_CHUNK, model);
        hf_client_free(c);
        hf_client_free(slow);
        world_fini(&w);
    }
    cr_assert_gt(hit, 10);
    free(a);
    free(b);
    free(model);
}

Test(io, two_clients_promote_at_once)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint8_t *a = pattern(9), *b = pattern(10), *model = calloc(1, BYTES);
        struct hf_client *c, *d;
        struct ioprobe p, q;
        struct world w;

        world_init(&w, seed);
        c = world_client(&w, NULL);
        d = world_client(&w, NULL);
        put(&w, c, 0, 2000, a, 0);
        put(&w, d, 2000, 1000, a + 2000, 0);
        io_write(c, &p, F, 3000, 9000, b, 0);
        io_write(d, &q, F, 12000, W_CHUNK, b + 9000, 0);
        wait_io(&w, &p, 0);
        wait_io(&w, &q, 0);
        memcpy(model, a, 3000);
        memcpy(model + 3000, b, 9000 + W_CHUNK);
        check(&w, c, 0, 12000 + W_CHUNK, model);
        hf_client_free(c);
        hf_client_free(d);
        world_fini(&w);
        free(a);
        free(b);
        free(model);
    }
}

static uint64_t sync_file(struct world *w, struct hf_client *c, uint64_t off, uint32_t len)
{
    struct ioprobe p;

    io_commit(c, &p, F, off, len);
    wait_io(w, &p, 0);
    cr_assert(p.have_attr);
    return p.io.verifier;
}

Test(io, verifier_changes_with_restarts_only)
{
    uint8_t *a = pattern(11);
    struct hf_client *c, *d;
    uint64_t v, v2;
    struct world w;

    world_init(&w, 13);
    c = world_client(&w, NULL);
    d = world_client(&w, NULL);
    world_run(&w, 100);
    v = put(&w, c, 0, 100, a, 0); /* inline */
    cr_assert_eq(sync_file(&w, c, 0, 0), v);
    cr_assert_eq(put(&w, c, 100, 20000, a, 0), v); /* promoted */
    cr_assert_eq(put(&w, c, 3 * W_CHUNK, 1, a, 0), v);
    cr_assert_eq(put(&w, c, 0, 10, a, 2), v);
    cr_assert_eq(sync_file(&w, c, 0, 0), v);
    cr_assert_eq(sync_file(&w, c, 0, 10), v);
    /* Another gateway that knows the same boots says the same. */
    cr_assert_eq(put(&w, d, 0, 10, a, 0), v);

    world_restart_seg(&w, 1); /* segment 2 holds chunk 3 and was written unstable before its sync */
    v2 = sync_file(&w, c, 0, 0);
    cr_assert_neq(v2, v);
    cr_assert_eq(put(&w, c, 0, 10, a, 0), v2);
    cr_assert_eq(sync_file(&w, c, 0, 0), v2);

    world_restart_shard(&w, 0);
    v = sync_file(&w, c, 0, 0);
    cr_assert_neq(v, v2);
    cr_assert_eq(put(&w, c, 0, 10, a, 0), v);

    world_restart_shard(&w, 1); /* not this file's */
    cr_assert_eq(sync_file(&w, c, 0, 0), v);
    hf_client_free(c);
    hf_client_free(d);
    world_fini(&w);
    free(a);
}

/* Whatever a commit vouches for, or a stable write, survives a restart of the segments at any
 * moment. */
Test(io, committed_data_survives)
{
    uint8_t *a = pattern(12), *buf = malloc(BYTES);

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct hf_client *c;
        struct ioprobe p, q;
        struct world w;
        bool committed;

        world_init(&w, seed);
        c = world_client(&w, NULL);
        put(&w, c, 0, 4 * W_CHUNK, a + 1, 2);
        io_write(c, &p, F, 1000, 3 * W_CHUNK, a, 0);
        for (uint64_t i = 0; i < seed % 30; i++)
            hf_sim_step(w.env);
        world_restart_seg(&w, seed % 2);
        wait_io(&w, &p, 0);
        io_commit(c, &q, F, 0, 0);
        if (seed % 3 == 0) {
            for (uint64_t i = 0; i < seed / 2; i++)
                hf_sim_step(w.env);
            world_restart_seg(&w, 1 - seed % 2);
        }
        wait_io(&w, &q, 0);
        committed = p.io.verifier == q.io.verifier;
        world_restart_seg(&w, 0);
        world_restart_seg(&w, 1);
        if (committed)
            check(&w, c, 1000, 3 * W_CHUNK, a);
        hf_client_free(c);
        world_fini(&w);
    }
    free(a);
    free(buf);
}

Test(io, space_is_the_sum_of_the_segments)
{
    struct hf_client_space s;
    struct hf_client *c;
    struct world w;

    world_init(&w, 15);
    c = world_client(&w, NULL);
    hf_client_space(c, &s);
    cr_assert_eq(s.capacity_bytes, 0);
    world_run(&w, 2000);
    hf_client_space(c, &s);
    cr_assert_eq(s.capacity_bytes, 2001);
    cr_assert_eq(s.free_bytes, 200);
    hf_client_free(c);
    world_fini(&w);
}

Test(io, free_completes_data_operations_with_closed)
{
    uint8_t *a = pattern(13), *buf = malloc(BYTES);

    for (unsigned steps = 0; steps < 60; steps++) {
        struct hf_client *c;
        struct ioprobe p[3];
        struct probe t;
        struct world w;

        world_init(&w, steps);
        c = world_client(&w, NULL);
        put(&w, c, 0, 4 * W_CHUNK, a, 0);
        io_write(c, &p[0], F, 100, 3 * W_CHUNK, a, 0);
        io_read(c, &p[1], F, 0, 2 * W_CHUNK, buf);
        io_commit(c, &p[2], F, 0, 0);
        probe_truncate(c, &t, F, 3 * W_CHUNK);
        for (unsigned i = 0; i < steps; i++)
            hf_sim_step(w.env);
        if (steps % 2)
            hf_rpc_sim_cut(w.env, w.seg[0].url);
        hf_client_free(c);
        for (unsigned i = 0; i < 3; i++) {
            cr_assert_eq(p[i].done, 1);
            cr_assert(p[i].io.status == 0 || p[i].io.status == HF_E_CLOSED);
        }
        cr_assert_eq(t.done, 1);
        world_fini(&w);
    }
    free(a);
    free(buf);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What native clients need beyond NFS gateways: opens and the sessions that hold them, appends,
 * fallocate and seek, hints where to put new files.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support_world.h"

#define F     world_ino(0, 5)
#define BYTES (4 * W_CHUNK)

static struct world w;
static uint8_t *data, *got;

static void setup(void)
{
    data = malloc(BYTES);
    got = malloc(BYTES);
    cr_assert(data && got);
    for (uint32_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(1 + (i * 31 + i / 251) % 255); /* no zeros: those are holes */
    world_init(&w, 11);
}

static void teardown(void)
{
    world_fini(&w);
    free(data);
    free(got);
}

TestSuite(native, .init = setup, .fini = teardown, .timeout = 30);

static struct hf_client *open_client(void)
{
    return world_client(&w, &(struct hf_client_opts){.opens = true});
}

static void change(struct hf_client *c)
{
    struct probe p;

    probe_rename(c, &p, F);
    cr_assert(world_until(&w, probe_done, &p, 60000));
    cr_assert_eq(p.call.status, 0);
}

static void put(struct hf_client *c, uint64_t offset, uint32_t len)
{
    struct ioprobe p;

    io_write(c, &p, F, offset, len, data, 2);
    cr_assert(world_until(&w, io_done, &p, 60000));
    cr_assert_eq(p.io.status, 0);
    cr_assert_eq(p.io.at, offset);
}

static void get(struct hf_client *c, uint64_t offset, uint32_t len)
{
    for (uint32_t at = 0; at < len;) {
        struct ioprobe p;

        io_read(c, &p, F, offset + at, len - at, got + at);
        cr_assert(world_until(&w, io_done, &p, 60000));
        cr_assert_eq(p.io.status, 0);
        cr_assert_gt(p.io.count, 0);
        at += p.io.count;
    }
}

static uint64_t append(struct hf_client *c, uint32_t len, int status)
{
    struct ioprobe p;

    io_append(c, &p, F, len, data, 2);
    cr_assert(world_until(&w, io_done, &p, 60000));
    cr_assert_eq(p.io.status, status, "%s", hf_err_name(p.io.status));
    return p.io.at;
}

static void fallocate(struct hf_client *c, uint32_t mode, uint64_t offset, uint64_t len, int status)
{
    struct rangeprobe p;

    range_fallocate(c, &p, F, mode, true, offset, len);
    cr_assert(world_until(&w, range_done, &p, 60000));
    cr_assert_eq(p.done, 1);
    cr_assert_eq(p.r.status, status, "%s", hf_err_name(p.r.status));
}

static uint64_t seek(struct hf_client *c, uint64_t offset, bool hole, int status)
{
    struct rangeprobe p;

    range_seek(c, &p, F, offset, hole);
    cr_assert(world_until(&w, range_done, &p, 60000));
    cr_assert_eq(p.r.status, status, "%s", hf_err_name(p.r.status));
    return p.r.at;
}

/* ---- sessions ---- */

Test(native, a_session_with_opens_is_renewed_within_its_lease)
{
    struct hf_client *c = open_client();
    unsigned lost;

    change(c);
    cr_assert(w.sessions[0].opens);
    lost = w.lost[0];
    world_run(&w, 10 * w.lease_ms);
    cr_assert(w.renewals >= 28 && w.renewals <= 32, "every third of the lease: %u", w.renewals);
    cr_assert_eq(w.nsessions, 1);
    cr_assert_eq(w.lost[0], lost);
    w.lose_opens = true;
    world_run(&w, w.lease_ms / 2);
    cr_assert_eq(w.lost[0], lost + 1, "what a renewal says is passed on");
    hf_client_free(c);
}

Test(native, a_client_without_opens_does_not_renew)
{
    struct hf_client *c = world_client(&w, NULL);

    change(c);
    world_run(&w, 3 * w.lease_ms);
    cr_assert_eq(w.renewals, 0);
    cr_assert_not(w.sessions[0].opens);
    hf_client_free(c);
}

Test(native, a_session_that_the_shard_has_lost_is_replaced_and_told)
{
    struct hf_client *c = open_client();
    unsigned lost;

    change(c);
    lost = w.lost[0];
    world_forget_sessions(&w);
    change(c); /* NOSESSION: a new one, and the change runs */
    cr_assert_eq(w.lost[0], lost + 1);
    cr_assert_eq(w.nsessions, 1);
    world_restart_shard(&w, 0); /* the session is kept there, its opens may not be */
    world_run(&w, 5000);
    cr_assert_eq(w.lost[0], lost + 2, "without any call of ours");
    hf_client_free(c);
}

static void on_closed(void *arg)
{
    ++*(unsigned *)arg;
}

static bool is_closed(void *arg)
{
    return *(unsigned *)arg > 0;
}

Test(native, close_ends_the_sessions)
{
    struct hf_client *c = open_client();
    unsigned closed = 0;

    change(c);
    hf_client_close(c, on_closed, &closed);
    cr_assert_eq(closed, 0, "not from inside");
    cr_assert(world_until(&w, is_closed, &closed, 1900));
    cr_assert_eq(w.closes, 1);
    world_run(&w, 5000);
    cr_assert_eq(closed, 1);
    hf_client_free(c);
}

Test(native, close_waits_two_seconds_at_most)
{
    struct hf_client *c = open_client();
    uint64_t begin;
    unsigned closed = 0;

    change(c);
    w.deaf_to_close = true;
    begin = hf_env_mono_ns(w.env);
    hf_client_close(c, on_closed, &closed);
    cr_assert(world_until(&w, is_closed, &closed, 10000));
    cr_assert_leq(hf_env_mono_ns(w.env) - begin, 2100 * HF_NS_PER_MS);
    hf_client_free(c);
    cr_assert_eq(closed, 1);
}

Test(native, close_without_sessions_and_what_comes_after_it)
{
    struct hf_client *c = open_client();
    struct rangeprobe range;
    struct ioprobe io;
    struct probe call;
    unsigned closed = 0;

    hf_client_close(c, on_closed, &closed);
    cr_assert(world_until(&w, is_closed, &closed, 100));
    io_read(c, &io, F, 0, 10, got);
    range_seek(c, &range, F, 0, true);
    probe_getattr(c, &call, F);
    cr_assert_eq(io.done + range.done + call.done, 0, "not from inside");
    world_run(&w, 100);
    cr_assert_eq(range.done, 1);
    cr_assert_eq(range.r.status, HF_E_CLOSED);
    cr_assert_eq(io.done, 1);
    cr_assert_eq(io.io.status, HF_E_CLOSED);
    cr_assert_eq(call.done, 1);
    cr_assert_eq(call.call.status, HF_E_CLOSED);
    hf_client_free(c);
}

/* ---- appends ---- */

Test(native, an_append_goes_to_the_end)
{
    struct hf_client *a = world_client(&w, NULL), *b = world_client(&w, NULL);
    uint64_t end = 0;

    for (unsigned i = 0; i < 12; i++) {
        uint32_t len = 1000 + i * 3000; /* inline, promotion, chunks */

        cr_assert_eq(append(i % 2 ? a : b, len, 0), end);
        end += len;
        cr_assert_eq(world_file(&w, F)->size, end);
        get(a, end - len, len);
        cr_assert_eq(memcmp(got, data, len), 0);
    }
    cr_assert(world_file(&w, F)->chunked);
    cr_assert_eq(world_file(&w, F)->append_token, 0, "each was ended");
    hf_client_free(a);
    hf_client_free(b);
}

Test(native, an_append_waits_for_another)
{
    struct hf_client *c = world_client(&w, NULL);
    struct ioprobe p;

    put(c, 0, W_CHUNK);
    world_file(&w, F)->append_token = 77; /* somebody else's */
    io_append(c, &p, F, 500, data, 2);
    world_run(&w, 2000);
    cr_assert_eq(p.done, 0);
    world_file(&w, F)->append_token = 0;
    cr_assert(world_until(&w, io_done, &p, 1000));
    cr_assert_eq(p.io.status, 0);
    cr_assert_eq(p.io.at, W_CHUNK);
    hf_client_free(c);
}

Test(native, an_append_that_fails_is_given_up_at_the_shard)
{
    struct hf_client *c = world_client(&w, NULL);

    put(c, 0, W_CHUNK);
    w.seg[0].corrupt_writes = w.seg[1].corrupt_writes = 100;
    append(c, 500, HF_E_IO);
    world_run(&w, 100);
    cr_assert_eq(world_file(&w, F)->canceled, 1);
    cr_assert_eq(world_file(&w, F)->append_token, 0);
    w.seg[0].corrupt_writes = w.seg[1].corrupt_writes = 0;
    cr_assert_eq(append(c, 500, 0), W_CHUNK);
    hf_client_free(c);
}

/* ---- ranges ---- */

Test(native, punch_and_zero_read_as_zeros_and_are_holes)
{
    struct hf_client *c = world_client(&w, NULL);
    uint64_t change_before;

    put(c, 0, BYTES);
    change_before = world_file(&w, F)->change;
    fallocate(c, HF__FALLOCATE_MODE__FA_PUNCH, 1000, 2 * W_CHUNK, 0);
    fallocate(c, HF__FALLOCATE_MODE__FA_ZERO, 3 * W_CHUNK, 10, 0);
    cr_assert_gt(world_file(&w, F)->change, change_before);
    cr_assert_eq(world_file(&w, F)->size, BYTES);
    world_restart_seg(&w, 0); /* it was durable */
    world_restart_seg(&w, 1);
    get(c, 0, BYTES);
    memset(data + 1000, 0, 2 * W_CHUNK);
    memset(data + 3 * W_CHUNK, 0, 10);
    cr_assert_eq(memcmp(got, data, BYTES), 0);
    cr_assert_eq(seek(c, 0, true, 0), 1000);
    cr_assert_eq(seek(c, 0, false, 0), 0);
    cr_assert_eq(seek(c, 1000, false, 0), 1000 + 2 * W_CHUNK, "over a chunk that is all hole");
    cr_assert_eq(seek(c, 1000 + 2 * W_CHUNK, true, 0), 3 * W_CHUNK);
    cr_assert_eq(seek(c, 3 * W_CHUNK + 10, true, 0), BYTES, "at the end there is one");
    seek(c, BYTES, false, HF_E_NXIO);
    fallocate(c, HF__FALLOCATE_MODE__FA_PUNCH, W_CHUNK, BYTES, 0);
    seek(c, 2 * W_CHUNK, false, HF_E_NXIO);
    hf_client_free(c);
}

Test(native, seek_looks_at_many_chunks_some_at_a_time)
{
    struct hf_client *c = world_client(&w, NULL);

    put(c, 0, W_CHUNK);
    put(c, 100 * (uint64_t)W_CHUNK + 7, 10);
    cr_assert_eq(seek(c, W_CHUNK, false, 0), 100 * (uint64_t)W_CHUNK + 7);
    cr_assert_eq(seek(c, 5, true, 0), W_CHUNK);
    hf_client_free(c);
}

Test(native, fallocate_does_a_trim_first_and_starts_again_when_fenced)
{
    struct hf_client *c = world_client(&w, NULL);
    struct hf_client_stats st;
    struct probe p;

    put(c, 0, BYTES);
    probe_truncate(c, &p, F, W_CHUNK);
    cr_assert(world_until(&w, probe_done, &p, 60000));
    world_file(&w, F)->trim = true; /* as if nobody had done it */
    world_file(&w, F)->trim_from = W_CHUNK;
    world_file(&w, F)->trim_to = BYTES;
    fallocate(c, HF__FALLOCATE_MODE__FA_PUNCH, 0, 10, 0);
    hf_client_stats(c, &st);
    cr_assert_eq(st.trims, 2);
    cr_assert_not(world_file(&w, F)->trim);
    get(c, 0, 11);
    cr_assert_eq(got[9], 0);
    cr_assert_eq(got[10], data[10]);
    hf_client_free(c);
}

Test(native, ranges_end_when_the_client_does)
{
    struct hf_client *c = world_client(&w, NULL);
    struct rangeprobe a, b;

    put(c, 0, BYTES);
    w.hold = true;
    range_fallocate(c, &a, F, HF__FALLOCATE_MODE__FA_PUNCH, true, 0, 10);
    range_seek(c, &b, F, 0, false);
    world_run(&w, 100);
    cr_assert_eq(a.done + b.done, 0);
    hf_client_free(c);
    cr_assert_eq(a.done, 1);
    cr_assert_eq(a.r.status, HF_E_CLOSED);
    cr_assert_eq(b.done, 1);
    cr_assert_eq(b.r.status, HF_E_CLOSED);
}

/* ---- hints ---- */

Test(native, no_segments_are_preferred_when_none_or_all_are_near)
{
    struct hf_client *c = world_client(&w, NULL);

    w.nprefer = 99;
    put(c, 0, W_CHUNK);
    cr_assert_eq(w.nprefer, 0);
    hf_client_free(c);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Single properties of chunks: errors, limits, what reaches the backend and how often.
 */
#include "support_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

enum { MIB = 1 << 20 };

static struct rig r;
static uint8_t *data, *got;

static void setup(void)
{
    memset(&r, 0, sizeof(r));
    data = malloc(HF_SEG_CHUNK_BYTES);
    got = malloc(HF_SEG_CHUNK_BYTES);
    cr_assert(data && got);
    rig_fill(data, HF_SEG_CHUNK_BYTES, 4711);
    rig_open(&r, disk_new(), 1, true);
}

static void teardown(void)
{
    rig_close(&r);
    disk_free(r.disk);
    free(data);
    free(got);
}

static void reopen(void)
{
    rig_close(&r);
    rig_open(&r, r.disk, 2, true);
}

static void power_failure(void)
{
    uint64_t rng = 5;
    struct disk *old = r.disk, *d = disk_crash(old, &rng, true);

    rig_kill(&r);
    disk_free(old);
    rig_open(&r, d, 3, true);
}

TestSuite(chunk, .init = setup, .fini = teardown, .timeout = 60);

Test(chunk, a_mebibyte_is_one_backend_operation)
{
    struct disk_counts *n = disk_counts(r.be);

    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(rig_write(&r, 1, i * MIB, data + (size_t)i * MIB, MIB, false), 0);
    cr_assert_eq(n->ops[HF_BE_WRITE], 4);
    cr_assert_eq(n->ops[HF_BE_SYNC], 0);
    cr_assert_eq(rig_sync(&r, 1), 0);
    cr_assert_eq(n->ops[HF_BE_WRITE], 5);
    cr_assert_eq(n->ops[HF_BE_SYNC], 1);
    memset(n, 0, sizeof(*n));
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(rig_read(&r, 1, i * MIB, got + (size_t)i * MIB, MIB, NULL), 0);
    cr_assert_eq(n->ops[HF_BE_READ], 4);
    cr_assert_eq(n->largest_read, MIB);
    cr_assert_eq(memcmp(data, got, 4 * MIB), 0);
    /* written again: other slots, but again one operation */
    memset(n, 0, sizeof(*n));
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(rig_write(&r, 1, i * MIB, data + (size_t)i * MIB, MIB, true), 0);
    cr_assert_eq(n->ops[HF_BE_WRITE], 8);
    cr_assert_eq(n->largest_write, MIB);
    cr_assert_eq(n->ops[HF_BE_READ], 0);
}

Test(chunk, small_appends_are_written_in_place)
{
    struct disk_counts *n = disk_counts(r.be);

    for (uint32_t at = 0; at < 200000; at += 1000)
        cr_assert_eq(rig_write(&r, 1, at, data + at, 1000, false), 0);
    cr_assert_eq(n->ops[HF_BE_READ], 1, "only the header");
    cr_assert_leq(n->ops[HF_BE_WRITE], 204);
    cr_assert_eq(rig_read(&r, 1, 0, got, 300000, NULL), 0);
    cr_assert_eq(memcmp(data, got, 200000), 0);
}

Test(chunk, stable_writes_share_a_sync)
{
    struct rig_op *o = calloc(40, sizeof(*o));
    struct disk_counts *n = disk_counts(r.be);
    bool all;

    for (unsigned i = 0; i < 40; i++) {
        o[i].op = (struct hf_seg_op){.kind = HF_SEG_WRITE,
                                     .id = rig_chunk(1),
                                     .offset = i * HF_SEG_BLOCK_BYTES,
                                     .len = HF_SEG_BLOCK_BYTES,
                                     .data = data + (size_t)i * HF_SEG_BLOCK_BYTES,
                                     .stable = true};
        rig_crcs(&o[i]);
        rig_submit(&r, &o[i]);
    }
    do {
        cr_assert(hf_sim_step(r.env));
        all = true;
        for (unsigned i = 0; i < 40; i++)
            all = all && o[i].done;
    } while (!all);
    for (unsigned i = 0; i < 40; i++)
        cr_assert_eq(o[i].op.status, 0);
    cr_assert_leq(n->ops[HF_BE_SYNC], 2);
    power_failure();
    cr_assert_eq(rig_read(&r, 1, 0, got, 40 * HF_SEG_BLOCK_BYTES, NULL), 0);
    cr_assert_eq(memcmp(data, got, 40 * (size_t)HF_SEG_BLOCK_BYTES), 0);
    free(o);
}

/* More unstable versions than there are slots: commits make room. */
Test(chunk, slots_never_run_out)
{
    for (unsigned i = 0; i < 12; i++)
        cr_assert_eq(rig_write(&r, 1, 0, data + i, HF_SEG_CHUNK_BYTES - 64, false), 0);
    cr_assert_eq(rig_read(&r, 1, 0, got, HF_SEG_CHUNK_BYTES - 64, NULL), 0);
    cr_assert_eq(memcmp(data + 11, got, HF_SEG_CHUNK_BYTES - 64), 0);
}

Test(chunk, fence_is_kept)
{
    struct rig_op o = {.op = {.kind = HF_SEG_WRITE, .len = 10, .data = data, .fence = 3}};

    cr_assert_eq(rig_write(&r, 1, 0, data, 100000, true), 0);
    cr_assert_eq(rig_trunc(&r, 1, 4, 65546), 0);
    cr_assert_eq(rig_trunc(&r, 2, 4, 0), 0, "does not exist");
    power_failure();
    for (uint64_t ino = 1; ino <= 2; ino++) {
        o.op.id = rig_chunk(ino);
        rig_crcs(&o);
        rig_submit(&r, &o);
        rig_run(&r, &o.done);
        cr_assert_eq(o.op.status, HF_E_FENCED);
        cr_assert_eq(rig_trunc(&r, ino, 3, 0), HF_E_FENCED);
        cr_assert_eq(rig_trunc(&r, ino, 4, 0), 0);
    }
}

Test(chunk, truncate_then_longer_reads_zeros)
{
    uint32_t len;

    cr_assert_eq(rig_write(&r, 1, 0, data, 200000, true), 0);
    cr_assert_eq(rig_trunc(&r, 1, 1, 70000), 0);
    cr_assert_eq(rig_write(&r, 1, 300000, data, 10, true), 0);
    power_failure();
    cr_assert_eq(rig_read(&r, 1, 0, got, 400000, &len), 0);
    cr_assert_eq(len, 300010);
    memset(data + 70000, 0, 230000);
    cr_assert_eq(memcmp(got, data, 300000), 0);
}

/* A truncation that could not be committed must not let an append destroy what the header still
 * names. */
Test(chunk, append_after_failed_truncate)
{
    cr_assert_eq(rig_write(&r, 1, 0, data, 30000, true), 0);
    disk_fail(r.be, HF_BE_WRITE, 0, 1, HF_BE_ENOSPC);
    cr_assert_eq(rig_trunc(&r, 1, 1, 10000), HF_E_NOSPC);
    cr_assert_eq(rig_write(&r, 1, 10000, data + 77, 5000, false), 0);
    rig_kill(&r); /* everything written stays, nothing more is committed */
    rig_open(&r, r.disk, 9, true);
    cr_assert_eq(rig_read(&r, 1, 0, got, 30000, NULL), 0);
    cr_assert_eq(memcmp(got, data, 30000), 0);
}

Test(chunk, full_device_keeps_old_content)
{
    cr_assert_eq(rig_write(&r, 1, 0, data, 300000, true), 0);
    disk_fail(r.be, HF_BE_WRITE, 0, 1, HF_BE_ENOSPC);
    cr_assert_eq(rig_write(&r, 1, 1000, data, 250000, true), HF_E_NOSPC);
    cr_assert_eq(rig_read(&r, 1, 0, got, 300000, NULL), 0);
    cr_assert_eq(memcmp(got, data, 300000), 0);
    cr_assert_eq(r.errors, 0);
    cr_assert_eq(rig_write(&r, 1, 0, data + 9, 300000, true), 0);
}

Test(chunk, failed_sync_is_final)
{
    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, true), 0);
    disk_fail(r.be, HF_BE_SYNC, 0, 1, HF_BE_EIO);
    cr_assert_eq(rig_write(&r, 1, 0, data + 1, 1000, true), HF_E_IO);
    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, false), HF_E_IO);
    cr_assert_eq(rig_read(&r, 1, 0, got, 1000, NULL), HF_E_IO);
    cr_assert_eq(rig_sync(&r, 1), HF_E_IO);
    cr_assert_eq(rig_trunc(&r, 1, 9, 0), HF_E_IO);
    cr_assert_gt(r.errors, 0);
    reopen();
    cr_assert_eq(rig_read(&r, 1, 0, got, 1000, NULL), 0);
    cr_assert(memcmp(got, data, 1000) == 0 || memcmp(got, data + 1, 1000) == 0);
}

Test(chunk, decay_is_never_returned)
{
    cr_assert_eq(rig_write(&r, 1, 0, data, 200000, true), 0);
    reopen(); /* clean: what does not match from here on is decay, not a torn commit */
    disk_rot(r.disk, 1, 65536 + 100000);
    memset(got, 1, 200000);
    cr_assert_eq(rig_read(&r, 1, 0, got, 200000, NULL), HF_E_CORRUPT);
    for (unsigned i = 0; i < 200000; i++)
        cr_assert_eq(got[i], 0, "byte %u got out", i);
    cr_assert_eq(rig_read(&r, 1, 100001, got, 10, NULL), HF_E_CORRUPT);
    cr_assert_eq(rig_read(&r, 1, 0, got, 65536, NULL), 0, "other blocks");
    cr_assert_eq(rig_write(&r, 1, 70000, data, 10, true), HF_E_CORRUPT, "merging with it");
    cr_assert_eq(rig_trunc(&r, 1, 2, 70000), HF_E_CORRUPT, "cutting it");
    cr_assert_eq(r.corrupt, 4);
    cr_assert_eq(rig_write(&r, 1, 65536, data, 65536, true), 0, "replacing it");
    cr_assert_eq(rig_read(&r, 1, 65536, got, 65536, NULL), 0);
}

Test(chunk, decayed_headers)
{
    uint32_t len = 1;

    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, true), 0);
    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, true), 0);
    reopen();
    disk_rot(r.disk, 1, 4096 + 600);
    disk_rot(r.disk, 1, 600);
    cr_assert_eq(rig_read(&r, 1, 0, got, 1000, &len), HF_E_CORRUPT);
    cr_assert_eq(len, 0);
    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, true), HF_E_CORRUPT,
                 "not taken for an empty chunk");
    cr_assert_eq(rig_delete(&r, 1, NULL), 0);
    cr_assert_eq(rig_write(&r, 1, 0, data, 1000, true), 0);
}

/* One decayed header of a clean chunk, whichever and however young the chunk: the present content,
 * not an older one and not an empty chunk. */
Test(chunk, one_decayed_header_is_survived)
{
    for (uint32_t commits = 1; commits <= 3; commits++)
        for (uint64_t header = 0; header < 2; header++) {
            uint64_t ino = 10 + commits * 2 + header;

            for (uint32_t k = 1; k <= commits; k++)
                cr_assert_eq(rig_write(&r, ino, 0, data + k, 70000, true), 0);
            reopen();
            disk_rot(r.disk, ino, header * 4096 + 3);
            cr_assert_eq(rig_read(&r, ino, 0, got, 70000, NULL), 0);
            cr_assert_eq(memcmp(got, data + commits, 70000), 0, "%u commits", commits);
            cr_assert_eq(rig_write(&r, ino, 100, data, 10, true), 0);
            reopen();
            cr_assert_eq(rig_read(&r, ino, 0, got, 70000, NULL), 0);
            cr_assert_eq(memcmp(got + 110, data + commits + 110, 60000), 0);
            cr_assert_eq(memcmp(got + 100, data, 10), 0);
        }
}

Test(chunk, clean_chunks_are_not_checked_at_open)
{
    struct disk_counts *n;

    cr_assert_eq(rig_write(&r, 1, 0, data, MIB, true), 0);
    reopen();
    n = disk_counts(r.be);
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), 0);
    cr_assert_eq(n->ops[HF_BE_READ], 2, "headers, one block");
    cr_assert_eq(n->ops[HF_BE_SYNC] + n->ops[HF_BE_WRITE], 0);
    cr_assert_eq(rig_write(&r, 1, 0, data, MIB, true), 0);
    rig_kill(&r);
    rig_open(&r, r.disk, 4, true);
    n = disk_counts(r.be);
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), 0);
    cr_assert_eq(n->ops[HF_BE_READ], 18, "headers, 16 blocks to check, one block");
    cr_assert_eq(n->ops[HF_BE_SYNC], 1);
}

Test(chunk, dirty_chunks_are_written_back)
{
    struct hf_seg_stat st;
    struct disk_counts *n = disk_counts(r.be);

    cr_assert_eq(rig_write(&r, 1, 0, data, 100, false), 0);
    cr_assert_eq(hf_seg_stat(r.seg, &st), 0);
    cr_assert_eq(st.dirty_chunks, 1);
    cr_assert_eq(st.used_bytes, 600);
    rig_sleep(&r, 4900);
    cr_assert_eq(n->ops[HF_BE_SYNC], 0);
    rig_sleep(&r, 200);
    cr_assert_eq(n->ops[HF_BE_SYNC], 1);
    cr_assert_eq(hf_seg_stat(r.seg, &st), 0);
    cr_assert_eq(st.dirty_chunks, 0);
    cr_assert_eq(n->ops[HF_BE_WRITE], 2);
    rig_sleep(&r, 6000);
    cr_assert_eq(n->ops[HF_BE_WRITE], 4, "the clean mark and the copy");
    rig_sleep(&r, 60000);
    cr_assert_eq(n->ops[HF_BE_WRITE], 4);
    power_failure();
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), 0);
    cr_assert_eq(memcmp(got, data, 100), 0);
}

/* A chunk not marked clean is made sure of at its next open, which may find the disk full. */
Test(chunk, a_read_is_not_told_that_there_is_no_space)
{
    const char *bad;

    cr_assert_eq(rig_write(&r, 1, 0, data, 100, true), 0);
    rig_kill(&r);
    cr_assert_eq(hf_faults_new("segment.settle=nospace@1", &r.faults, &bad), 0);
    rig_open(&r, r.disk, 8, true);
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), HF_E_IO);
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), 0);
    cr_assert_eq(memcmp(got, data, 100), 0);
    rig_kill(&r);
    hf_faults_free(r.faults);
    cr_assert_eq(hf_faults_new("segment.settle=nospace@1", &r.faults, &bad), 0);
    rig_open(&r, r.disk, 8, true);
    cr_assert_eq(rig_write(&r, 1, 0, data, 100, true), HF_E_NOSPC);
    rig_close(&r);
    hf_faults_free(r.faults);
    r.faults = NULL;
    rig_open(&r, r.disk, 8, true);
    cr_assert_eq(rig_read(&r, 1, 0, got, 100, NULL), 0);
}

Test(chunk, punched_blocks_are_holes_and_their_space_is_given_back)
{
    const struct disk_counts *n = disk_counts(r.be);
    static const uint8_t zeros[MIB];
    uint32_t at = 0;
    bool found;

    cr_assert_eq(rig_punch(&r, 1, 1, 0, MIB), 0, "a chunk that does not exist");
    cr_assert_eq(rig_write(&r, 1, 0, data, MIB, false), 0);
    cr_assert_eq(rig_seek(&r, 1, 5, MIB - 5, false, &found, &at), 0);
    cr_assert(found && at == 5, "uncommitted writes are data");
    cr_assert_eq(rig_seek(&r, 1, 0, MIB, true, &found, &at), 0);
    cr_assert_not(found);
    cr_assert_eq(rig_punch(&r, 1, 1, HF_SEG_BLOCK_BYTES - 1, 3 * HF_SEG_BLOCK_BYTES), 0);
    power_failure(); /* the punch was durable, and what was written before it */
    n = disk_counts(r.be);
    cr_assert_eq(rig_read(&r, 1, 0, got, MIB, NULL), 0);
    cr_assert_eq(memcmp(got, data, HF_SEG_BLOCK_BYTES), 0);
    cr_assert_eq(memcmp(got + HF_SEG_BLOCK_BYTES, zeros, 2 * HF_SEG_BLOCK_BYTES), 0);
    cr_assert_eq(memcmp(got + 3 * HF_SEG_BLOCK_BYTES, data + 3 * HF_SEG_BLOCK_BYTES,
                        MIB - 3 * HF_SEG_BLOCK_BYTES),
                 0);
    cr_assert_eq(rig_seek(&r, 1, 100, MIB - 100, true, &found, &at), 0);
    cr_assert(found && at == HF_SEG_BLOCK_BYTES);
    cr_assert_eq(rig_seek(&r, 1, at + 7, MIB - at - 7, false, &found, &at), 0);
    cr_assert(found && at == 3 * HF_SEG_BLOCK_BYTES);
    cr_assert_eq(rig_seek(&r, 9, 0, MIB, false, &found, &at), 0);
    cr_assert_not(found, "a chunk that does not exist is a hole");
    cr_assert_eq(rig_punch(&r, 1, 1, 4 * HF_SEG_BLOCK_BYTES, 2 * HF_SEG_BLOCK_BYTES), 0);
    cr_assert_eq(n->ops[HF_BE_PUNCH], 0);
    rig_sleep(&r, 12000);
    cr_assert_geq(n->ops[HF_BE_PUNCH], 1, "given back when the chunk is idle");
}

Test(chunk, punches_are_fenced_and_bounded)
{
    bool found;
    uint32_t at;

    cr_assert_eq(rig_write(&r, 1, 0, data, MIB, true), 0);
    cr_assert_eq(rig_trunc(&r, 1, 5, MIB), 0);
    cr_assert_eq(rig_punch(&r, 1, 4, 0, MIB), HF_E_FENCED);
    cr_assert_eq(rig_punch(&r, 1, 6, 0, 1), 0, "no whole block: only its fence");
    cr_assert_eq(rig_trunc(&r, 1, 5, 0), HF_E_FENCED);
    cr_assert_eq(rig_read(&r, 1, 0, got, MIB, NULL), 0);
    cr_assert_eq(memcmp(got, data, MIB), 0);
    cr_assert_eq(rig_punch(&r, 1, 6, HF_SEG_CHUNK_BYTES - 10, 11), HF_E_INVAL);
    cr_assert_eq(rig_punch(&r, 1, 6, UINT32_MAX, 11), HF_E_INVAL);
    cr_assert_eq(rig_seek(&r, 1, HF_SEG_CHUNK_BYTES, 1, true, &found, &at), HF_E_INVAL);
    cr_assert_eq(rig_seek(&r, 1, HF_SEG_CHUNK_BYTES, 0, true, &found, &at), 0);
    cr_assert_not(found);
}

Test(chunk, space_of_old_content_is_given_back)
{
    struct disk_counts *n = disk_counts(r.be);

    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(rig_write(&r, 1, 0, data + i, MIB, true), 0);
    cr_assert_eq(n->ops[HF_BE_PUNCH], 0, "not while it is being written");
    rig_sleep(&r, 12000);
    cr_assert_eq(n->ops[HF_BE_PUNCH], 1, "one run of slots");
    reopen();
    cr_assert_eq(rig_read(&r, 1, 0, got, MIB, NULL), 0);
    cr_assert_eq(memcmp(got, data + 2, MIB), 0);
    cr_assert_eq(rig_write(&r, 1, 0, data + 2, MIB, true), 0);
    rig_sleep(&r, 12000);
    cr_assert_eq(disk_counts(r.be)->ops[HF_BE_PUNCH], 1, "what was there at open");
    cr_assert_eq(rig_write(&r, 1, 0, data + 3, MIB, false), 0);
    power_failure();
    cr_assert_eq(rig_read(&r, 1, 0, got, MIB, NULL), 0);
    cr_assert_eq(memcmp(got, data + 2, MIB), 0);
}

Test(chunk, the_table_is_bounded)
{
    struct hf_seg_stat st;

    rig_close(&r);
    r.cache_chunks = 8;
    rig_open(&r, r.disk, 5, true);
    for (uint64_t i = 0; i < 60; i++) {
        cr_assert_eq(rig_write(&r, i, 0, data + i, 1000, i % 2 == 0), 0);
        rig_sleep(&r, 1);
        cr_assert_eq(hf_seg_stat(r.seg, &st), 0);
        cr_assert_leq(st.cached_chunks, 10);
    }
    for (uint64_t i = 0; i < 60; i++) {
        cr_assert_eq(rig_read(&r, i, 0, got, 1000, NULL), 0);
        cr_assert_eq(memcmp(got, data + i, 1000), 0);
    }
}

static int take_info(void *arg, const struct hf_seg_info *info)
{
    struct hf_seg_info *out = arg;

    out[info->id.ino] = *info;
    return info->id.ino == 3;
}

Test(chunk, list_and_verify)
{
    struct hf_seg_info infos[8] = {{.len = 0}};
    struct hf_chunk_id after = rig_chunk(1);

    for (uint64_t i = 1; i <= 4; i++)
        cr_assert_eq(rig_write(&r, i, 0, data, 1000 * (uint32_t)i, true), 0);
    rig_close(&r);
    rig_open(&r, r.disk, 2, true);
    disk_rot(r.disk, 3, 65536 + 2999);
    cr_assert_eq(hf_seg_list(r.be, &after, false, take_info, infos), 0);
    cr_assert_eq(infos[1].len, 0);
    cr_assert_eq(infos[2].len, 2000);
    cr_assert_eq(infos[3].len, 3000);
    cr_assert_eq(infos[3].status, 0);
    cr_assert_eq(infos[4].len, 0, "stopped at 3");
    cr_assert_eq(hf_seg_list(r.be, NULL, true, take_info, infos), 0);
    cr_assert_eq(infos[1].len, 1000);
    cr_assert_eq(infos[2].status, 0);
    cr_assert_eq(infos[3].status, HF_E_CORRUPT);
}

static void nothing(void *arg)
{
    *(bool *)arg = true;
}

Test(chunk, refusals)
{
    struct rig_op o = {.op = {.kind = HF_SEG_READ, .id = rig_chunk(1), .data = got}};
    static const struct {
        enum hf_seg_op_kind kind;
        uint32_t offset, len;
    } bad[] = {{HF_SEG_READ, HF_SEG_CHUNK_BYTES, 1},
               {HF_SEG_READ, UINT32_MAX, 2},
               {HF_SEG_WRITE, 1, HF_SEG_CHUNK_BYTES},
               {HF_SEG_TRUNC, 0, HF_SEG_CHUNK_BYTES + 1},
               {(enum hf_seg_op_kind)77, 0, 0}};
    bool closed = false;

    for (unsigned i = 0; i < HF_ARRAY_LEN(bad); i++) {
        o.op.kind = bad[i].kind;
        o.op.offset = bad[i].offset;
        o.op.len = bad[i].len;
        rig_submit(&r, &o);
        rig_run(&r, &o.done);
        cr_assert_eq(o.op.status, HF_E_INVAL, "case %u", i);
    }
    o.op.kind = HF_SEG_WRITE;
    o.op.offset = 0;
    o.op.len = 10;
    o.crcs[0] = 12345;
    rig_submit(&r, &o);
    rig_run(&r, &o.done);
    cr_assert_eq(o.op.status, HF_E_CORRUPT);
    cr_assert_eq(rig_read(&r, 1, 0, got, 10, NULL), 0);
    rig_close(&r);
    rig_open(&r, r.disk, 8, true);
    hf_seg_close(r.seg, nothing, &closed);
    o.op.kind = HF_SEG_SYNC;
    rig_submit(&r, &o);
    rig_run(&r, &closed);
    cr_assert(o.done && closed);
    cr_assert_eq(o.op.status, HF_E_CLOSED);
    hf_loop_free(r.loop);
    hf_env_free(r.env);
    hf_plug_close(r.be);
    rig_open(&r, r.disk, 8, true);
}

static int fault_write(const char *spec)
{
    const char *bad;
    int rc;

    cr_assert_eq(hf_faults_new(spec, &r.faults, &bad), 0);
    rig_close(&r);
    rig_open(&r, r.disk, 8, true);
    rc = rig_write(&r, 1, 0, data, 1000, true);
    if (rc == 0)
        rc = rig_trunc(&r, 1, 2, 500);
    if (rc == 0)
        rc = rig_delete(&r, 1, NULL);
    rig_close(&r);
    hf_faults_free(r.faults);
    r.faults = NULL;
    rig_open(&r, r.disk, 8, true);
    cr_assert_eq(rig_delete(&r, 1, NULL), 0);
    return rc;
}

Test(chunk, fault_points)
{
    cr_assert_eq(fault_write("segment.write=error@1"), HF_E_IO);
    cr_assert_eq(fault_write("segment.write=nospace@1"), HF_E_NOSPC);
    cr_assert_eq(fault_write("segment.header=error@1"), HF_E_IO);
    cr_assert_eq(fault_write("segment.header=nospace@1"), HF_E_NOSPC);
    cr_assert_eq(fault_write("segment.sync=error@1"), HF_E_IO);
    cr_assert_eq(fault_write("segment.truncate=error@1"), HF_E_IO);
    cr_assert_eq(fault_write("segment.delete=error@1"), HF_E_IO);
    cr_assert_eq(fault_write(""), 0);
}

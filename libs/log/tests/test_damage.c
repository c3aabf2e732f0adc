/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found at start after a torn write (mended) and after damage (refused, nothing changed).
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_log.h"

#define REC_MAX 300

/* Two shards with ten records each, one write per record, closed. */
static struct harness *ten_records(char name[24], uint64_t *ret_last, uint64_t *ret_end)
{
    struct harness *h = harness_new(2);

    cr_assert_eq(harness_open(h), 0);
    for (unsigned i = 0; i < 20; i++) {
        *ret_last = h->w->off;
        harness_append(h, i % 2, REC_MAX);
        cr_assert_eq(harness_wait(h), 0);
    }
    current_name(h, name, ret_end);
    harness_close(h);
    return h;
}

/* The last record (shard 1, position 10) is damaged in one way: the rest is there, and goes on. */
static void expect_cut(struct harness *h, const char *what, uint64_t at)
{
    cr_assert_eq(harness_open(h), 0, "%s at %lu: %s", what, (unsigned long)at, h->err);
    cr_assert_eq(harness_check(h, 0, 1, REC_MAX), 10);
    cr_assert_eq(harness_check(h, 1, 1, REC_MAX), 9, "%s at %lu", what, (unsigned long)at);
    h->done_pos[1] = 9;
    harness_append(h, 1, REC_MAX);
    harness_append(h, 0, REC_MAX);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "again, %s at %lu: %s", what, (unsigned long)at, h->err);
    cr_assert_eq(harness_check(h, 0, 1, REC_MAX), 11);
    cr_assert_eq(harness_check(h, 1, 1, REC_MAX), 10);
    harness_close(h);
    h->done_pos[0] = 10;
    /* Files that were begun or prepared meanwhile. */
    for (unsigned i = 1; i < 8; i++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/wal-%08x.log", h->dir, i);
        unlink(path);
    }
}

Test(damage, torn_at_every_byte_of_the_last_record)
{
    char name[24];
    uint64_t last, end;
    struct harness *h = ten_records(name, &last, &end);
    struct hf_buf good = file_load(h->dir, name);
    uint8_t *bad = malloc(good.len);
    struct wal_rec r;
    uint64_t bytes;

    cr_assert_not_null(bad);
    cr_assert(wal_rec_decode(good.data + last, good.len - last, h->o.shards ? 1 : 0,
                             (uint32_t)(good.data[32] | good.data[33] << 8 | good.data[34] << 16) |
                                 (uint32_t)good.data[35] << 24,
                             &r));
    bytes = WAL_REC_BYTES + r.len; /* the padding behind it does not count */
    for (uint64_t at = last; at < last + bytes; at++) {
        memcpy(bad, good.data, good.len);
        memset(bad + at, 0, end - at);
        if (memcmp(bad, good.data, good.len) == 0)
            continue; /* it was zero already: not torn */
        file_store(h->dir, name, bad, good.len);
        expect_cut(h, "zeros from", at);
        memset(bad + at, 0xa5, good.len - at);
        file_store(h->dir, name, bad, good.len);
        expect_cut(h, "old bytes from", at);
        if ((at - last) % 16 != 0)
            continue;
        file_store(h->dir, name, good.data, at);
        expect_cut(h, "file ends", at);
    }
    free(bad);
    hf_buf_fini(&good);
    harness_free(h);
}

/* Refused, and every file is as it was. */
static void expect_refused(struct harness *h, const char *name, const void *data, size_t len,
                           int want, const char *what)
{
    struct hf_buf after;

    cr_assert_eq(harness_open(h), want, "%s: %s", what, h->err);
    cr_assert_not_null(strstr(h->err, name), "%s: %s", what, h->err);
    after = file_load(h->dir, name);
    cr_assert(hf_slice_eq(hf_buf_slice(&after), hf_slice(data, len)), "%s: changed", what);
    hf_buf_fini(&after);
}

Test(damage, flipped_bits_before_the_last_record)
{
    char name[24], what[64], shard[16];
    uint64_t last, end, seed = 1;
    struct harness *h = ten_records(name, &last, &end);
    struct hf_buf good = file_load(h->dir, name);
    unsigned hits = 0;

    for (unsigned i = 0; i < 600; i++) {
        uint64_t at = WAL_DATA_OFF + rnd(&seed) % (last - WAL_DATA_OFF);
        uint8_t was = good.data[at];

        good.data[at] ^= (uint8_t)(1u << rnd(&seed) % 8);
        file_store(h->dir, name, good.data, good.len);
        snprintf(what, sizeof(what), "byte %lu", (unsigned long)at);
        if (harness_open(h) == 0) {
            /* Only padding may be wrong without being missed. */
            cr_assert_eq(harness_check(h, 0, 1, REC_MAX), 10, "%s", what);
            cr_assert_eq(harness_check(h, 1, 1, REC_MAX), 10, "%s", what);
            harness_close(h);
        } else {
            hits++;
            expect_refused(h, name, good.data, good.len, HF_E_CORRUPT, what);
            cr_assert_not_null(strstr(h->err, "offset"), "%s: %s", what, h->err);
        }
        good.data[at] = was;
    }
    cr_assert_gt(hits, 540u);

    /* The message names the shard of the damaged record. */
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = WAL_DATA_OFF + wal_rec_span(16);

        if (i == 1)
            at += wal_rec_span(record_len(0, 1, REC_MAX));
        good.data[at + 30] ^= 1;
        file_store(h->dir, name, good.data, good.len);
        snprintf(shard, sizeof(shard), "shard %u", i);
        expect_refused(h, name, good.data, good.len, HF_E_CORRUPT, shard);
        cr_assert_not_null(strstr(h->err, shard), "%s", h->err);
        good.data[at + 30] ^= 1;
    }
    file_store(h->dir, name, good.data, good.len);
    cr_assert_eq(harness_open(h), 0);
    hf_buf_fini(&good);
    harness_free(h);
}

Test(damage, headers_and_missing_files)
{
    struct harness *h = harness_new(1);
    struct hf_buf f[3];
    const char *names[3] = {"wal-00000000.log", "wal-00000001.log", "wal-00000002.log"};
    char path[1024];

    cr_assert_eq(harness_open(h), 0);
    while (h->w->cur->seq < 3) {
        harness_append(h, 0, 3000);
        cr_assert_eq(harness_wait(h), 0);
    }
    harness_append(h, 0, 3000);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    for (unsigned i = 0; i < 3; i++)
        f[i] = file_load(h->dir, names[i]);
    for (unsigned i = 0; i < 3; i++) {
        /* any bit of the header */
        for (unsigned bit = 0; bit < 8 * WAL_HEADER_BYTES; bit += 37) {
            int want = bit / 8 >= 8 && bit / 8 < 12 ? HF_E_VERSION : HF_E_CORRUPT;

            f[i].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            file_store(h->dir, names[i], f[i].data, f[i].len);
            expect_refused(h, names[i], f[i].data, f[i].len, want, names[i]);
            f[i].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        /* the start record */
        f[i].data[WAL_DATA_OFF + 50] ^= 4;
        file_store(h->dir, names[i], f[i].data, f[i].len);
        expect_refused(h, names[i], f[i].data, f[i].len, HF_E_CORRUPT, names[i]);
        f[i].data[WAL_DATA_OFF + 50] ^= 4;
        file_store(h->dir, names[i], f[i].data, f[i].len);
    }
    /* Missing: the first and the middle one are noticed. */
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", h->dir, names[i]);
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(harness_open(h), HF_E_CORRUPT);
        cr_assert_not_null(strstr(h->err, "missing"), "%s", h->err);
        file_store(h->dir, names[i], f[i].data, f[i].len);
    }
    /* The same file twice. */
    file_store(h->dir, names[1], f[0].data, f[0].len);
    cr_assert_eq(harness_open(h), HF_E_CORRUPT);
    file_store(h->dir, names[1], f[1].data, f[1].len);
    /* The end of a file that is not the last is missing. */
    memset(f[1].data + f[1].len - 20000, 0, 20000);
    file_store(h->dir, names[1], f[1].data, f[1].len);
    cr_assert_eq(harness_open(h), HF_E_CORRUPT);
    cr_assert_not_null(strstr(h->err, "end at"), "%s", h->err);
    for (unsigned i = 0; i < 3; i++)
        hf_buf_fini(&f[i]);
    harness_free(h);
}

Test(damage, strange_files_are_left_alone)
{
    struct harness *h = harness_new(1);
    struct hf_buf b;

    file_store(h->dir, "wal-1.log", "x", 1);
    file_store(h->dir, "wal-0000000g.log", "x", 1);
    file_store(h->dir, "README", "x", 1);
    file_store(h->dir, "wal-00000005.log", "", 0); /* as a crash during creation leaves it */
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    for (unsigned i = 0; i < 100; i++)
        harness_append(h, 0, 3000);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    b = file_load(h->dir, "README");
    cr_assert_eq(b.len, 1);
    hf_buf_fini(&b);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(harness_check(h, 0, 1, 3000), 100);
    harness_close(h);

    file_store(h->dir, "wal-00000009.log", "not a log file, but of some length.....", 39);
    cr_assert_eq(harness_open(h), 0, "shorter than a header: %s", h->err);
    harness_close(h);
    {
        char junk[2000];

        memset(junk, 'j', sizeof(junk));
        file_store(h->dir, "wal-0000000a.log", junk, sizeof(junk));
        expect_refused(h, "wal-0000000a.log", junk, sizeof(junk), HF_E_CORRUPT, "junk");
    }
    harness_free(h);
}

/* A payload may hold the exact image of records: of this file and of others. */
Test(damage, payload_that_looks_like_records)
{
    char name[24];
    uint64_t last, end;
    struct harness *h = ten_records(name, &last, &end);
    struct hf_buf image = file_load(h->dir, name);
    struct wal_rec fake = {.shard = 0, .len = 0, .pos = 11, .seq = 1, .group = 60000};
    uint8_t rec[WAL_REC_BYTES], *p;
    struct hf_buf f;

    /* The attacker knows all but the salt. */
    wal_rec_encode(&fake, 0, rec);
    cr_assert_eq(harness_open(h), 0);
    harness_append(h, 0, REC_MAX);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    f = file_load(h->dir, name);
    /* A torn last record whose payload is such records. */
    for (p = f.data + end + 56; p + WAL_REC_BYTES < f.data + f.len; p += WAL_REC_BYTES)
        memcpy(p, rec, sizeof(rec));
    file_store(h->dir, name, f.data, f.len);
    h->done_pos[0] = 0;
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_eq(harness_check(h, 0, 1, REC_MAX), 10);
    hf_buf_fini(&f);
    hf_buf_fini(&image);
    harness_free(h);
}

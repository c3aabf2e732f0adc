/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame: what is written reads back, and no truncation or mutation is read out of bounds (run
 * under the address sanitizer each frame is a heap block of exactly its length).
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/wire.h"

struct sample {
    struct hf_wire_entry e;
    const char *body;
    const char *bulk;
};

static const struct sample samples[] = {
    {{.flags = HF_WIRE_CALL,
      .method = 3,
      .service = 77,
      .id = 1ull << 40,
      .session = 5,
      .sequence = 9,
      .target = 2,
      .slot = 8,
      .timeout_us = 30000000},
     "body of the first",
     ""},
    {{.flags = HF_WIRE_REPLY, .id = 12, .status = HF_E_NOENT}, "", "bulk bytes, aligned"},
    {{.flags = HF_WIRE_CALL | HF_WIRE_VOID, .id = 13}, "", ""},
    {{.flags = HF_WIRE_REPLY, .id = ~0ull}, "x", "y"},
};

/* A frame of all samples; the caller frees it. */
static uint8_t *build(size_t *ret_len)
{
    static const struct hf_wire_frame f = {7, 6, HF_ARRAY_LEN(samples)};
    uint8_t *b = calloc(1, 4096);
    size_t at = HF_WIRE_HEADER;

    cr_assert_not_null(b);
    for (size_t i = 0; i < HF_ARRAY_LEN(samples); i++) {
        struct hf_wire_entry e = samples[i].e;
        size_t body = strlen(samples[i].body), bulk = strlen(samples[i].bulk);

        e.body_len = (uint32_t)body;
        e.bulk_len = (uint32_t)bulk;
        e.pad = hf_wire_pad(at - HF_WIRE_HEADER, body, bulk);
        hf_wire_put_entry(b + at, &e);
        memcpy(b + at + HF_WIRE_ENTRY, samples[i].body, body);
        memcpy(b + at + HF_WIRE_ENTRY + body + e.pad, samples[i].bulk, bulk);
        at += HF_WIRE_ENTRY + body + e.pad + bulk;
    }
    hf_wire_put_header(b, &f, at);
    *ret_len = at;
    return b;
}

/* Reads everything that the frame offers; the sum keeps the reads. */
static unsigned touch_all(const uint8_t *b, size_t len)
{
    struct hf_wire_frame f;
    struct hf_wire_reader rd;
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    unsigned sum = 0, n = 0;

    if (hf_wire_open(b, len, &f, &rd) != 0)
        return 0;
    while (hf_wire_next(&rd, &e, &body, &bulk)) {
        const uint8_t *p = body.data, *q = bulk.data;

        cr_assert(p >= b && body.len <= (size_t)(b + len - p));
        cr_assert(q >= b && bulk.len <= (size_t)(b + len - q));
        for (size_t i = 0; i < body.len; i++)
            sum += p[i];
        for (size_t i = 0; i < bulk.len; i++)
            sum += q[i];
        n++;
    }
    cr_assert_eq(n, f.count);
    return 1 + (sum & 0xff);
}

Test(frame, what_is_written_reads_back)
{
    struct hf_wire_frame f;
    struct hf_wire_reader rd;
    struct hf_wire_entry e;
    struct hf_slice body, bulk;
    size_t len, i = 0;
    uint8_t *b = build(&len);

    cr_assert_eq(hf_wire_open(b, len, &f, &rd), 0);
    cr_assert_eq(f.seq, 7);
    cr_assert_eq(f.acked, 6);
    cr_assert_eq(f.count, HF_ARRAY_LEN(samples));
    while (hf_wire_next(&rd, &e, &body, &bulk)) {
        const struct sample *s = &samples[i++];

        cr_assert_eq(e.flags, s->e.flags);
        cr_assert_eq(e.method, s->e.method);
        cr_assert_eq(e.service, s->e.service);
        cr_assert_eq(e.id, s->e.id);
        cr_assert_eq(e.session, s->e.session);
        cr_assert_eq(e.sequence, s->e.sequence);
        cr_assert_eq(e.target, s->e.target);
        cr_assert_eq(e.slot, s->e.slot);
        cr_assert_eq(e.timeout_us, s->e.timeout_us);
        cr_assert_eq(e.status, s->e.status);
        cr_assert(hf_slice_eq(body, hf_slice_str(s->body)));
        cr_assert(hf_slice_eq(bulk, hf_slice_str(s->bulk)));
        if (bulk.len)
            cr_assert_eq(((size_t)((const uint8_t *)bulk.data - b) + 4) % 16, 0);
    }
    cr_assert_eq(i, HF_ARRAY_LEN(samples));
    free(b);
}

Test(frame, empty_frame_is_an_acknowledgement)
{
    struct hf_wire_frame f = {0, 41, 0};
    struct hf_wire_reader rd;
    uint8_t b[HF_WIRE_HEADER];

    hf_wire_put_header(b, &f, sizeof(b));
    cr_assert_eq(hf_wire_open(b, sizeof(b), &f, &rd), 0);
    cr_assert_eq(f.acked, 41);
    cr_assert_eq(rd.left, 0);
}

Test(frame, every_truncation_is_refused)
{
    size_t len;
    uint8_t *b = build(&len);

    for (size_t n = 0; n < len; n++) {
        uint8_t *cut = malloc(n ? n : 1);

        cr_assert_not_null(cut);
        memcpy(cut, b, n);
        cr_assert_eq(touch_all(cut, n), 0, "cut at %zu", n);
        if (n >= HF_WIRE_HEADER) { /* also when the header admits to the shorter length */
            hf_put_le32(cut + 8, (uint32_t)n);
            cr_assert_eq(touch_all(cut, n), 0, "cut at %zu", n);
        }
        free(cut);
    }
    free(b);
}

Test(frame, lengths_beyond_limits_are_refused)
{
    static const struct {
        size_t at;
        uint32_t value;
    } bad[] = {
        {0, 0x12345678},                   /* magic */
        {8, 0xffffffff},                   /* length */
        {24, 1},                           /* reserved */
        {HF_WIRE_HEADER, 0},               /* neither call nor reply */
        {HF_WIRE_HEADER, 3},               /* both */
        {HF_WIRE_HEADER, 0x8001},          /* unknown flag */
        {HF_WIRE_HEADER + 44, 1},          /* positive status */
        {HF_WIRE_HEADER + 48, 0xffffffff}, /* body */
        {HF_WIRE_HEADER + 48, HF_WIRE_BODY_MAX + 1},
        {HF_WIRE_HEADER + 52, HF_WIRE_PAD_MAX + 1}, /* pad */
        {HF_WIRE_HEADER + 56, 0xffffffc0},          /* bulk: the sum would wrap in 32 bits */
        {HF_WIRE_HEADER + 60, 1},                   /* reserved */
    };

    for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
        size_t len;
        uint8_t *b = build(&len);

        hf_put_le32(b + bad[i].at, bad[i].value);
        cr_assert_eq(touch_all(b, len), 0, "case %zu", i);
        free(b);
    }
}

Test(frame, count_and_version_are_checked)
{
    struct hf_wire_frame f;
    struct hf_wire_reader rd;
    size_t len;
    uint8_t *b = build(&len);

    for (unsigned n = 0; n <= 0xffff; n++) {
        hf_put_le16(b + 6, (uint16_t)n);
        cr_assert_eq(hf_wire_open(b, len, &f, &rd) == 0, n == HF_ARRAY_LEN(samples));
    }
    hf_put_le16(b + 6, HF_ARRAY_LEN(samples));
    hf_put_le16(b + 4, HF_WIRE_VERSION + 1);
    cr_assert_eq(hf_wire_open(b, len, &f, &rd), HF_E_VERSION);
    free(b);
}

Test(frame, random_mutations_stay_in_bounds)
{
    uint64_t x = 88172645463325252ull; /* xorshift64: the same cases in every run */
    unsigned accepted = 0;

    for (unsigned round = 0; round < 100000; round++) {
        size_t len;
        uint8_t *whole = build(&len), *b = malloc(len);

        cr_assert_not_null(b);
        memcpy(b, whole, len);
        for (unsigned k = 0; k < 1 + round % 4; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            b[(x >> 8) % len] = (uint8_t)x;
        }
        accepted += touch_all(b, len) != 0;
        free(b);
        free(whole);
    }
    cr_assert_gt(accepted, 0); /* bodies and ids may change freely, so some must pass */
}

Test(frame, service_id_is_stable)
{
    cr_assert_eq(hf_wire_service_id("123456789"), 0xe3069283);
    cr_assert_neq(hf_wire_service_id("hf.Segment"), hf_wire_service_id("hf.Meta"));
}

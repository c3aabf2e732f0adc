/* SPDX-License-Identifier: Apache-2.0
 *
 * Record marking: every way to cut a stream, and streams that are not records.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/endian.h"
#include "record.h"

static struct nfs_mem mem;
static struct nfs_record rec;

static void setup(void)
{
    nfs_record_init(&rec, &mem);
}

static void teardown(void)
{
    nfs_record_fini(&rec);
    cr_assert_eq(mem.in_use, 0);
    nfs_mem_fini(&mem);
}

TestSuite(record, .init = setup, .fini = teardown);

static size_t put_fragment(uint8_t *p, bool last, const void *data, uint32_t len)
{
    hf_put_be32(p, (last ? 0x80000000u : 0) | len);
    if (len)
        memmove(p + 4, data, len);
    return 4 + (size_t)len;
}

static void expect(const struct nfs_record_out *out, const char *text)
{
    cr_assert_eq(out->data.len, strlen(text));
    cr_assert_eq(memcmp(out->data.data, text, out->data.len), 0);
    nfs_mem_put(&mem, out->buf, out->cap);
}

Test(record, whole_record_is_handed_out_in_place)
{
    uint8_t s[64];
    struct hf_slice in = hf_slice(s, put_fragment(s, true, "hello", 5));
    struct nfs_record_out out;

    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_READY);
    cr_assert_null(out.buf);
    cr_assert_eq(out.data.data, s + 4);
    cr_assert_eq(in.len, 0);
    expect(&out, "hello");
    cr_assert(nfs_record_at_boundary(&rec));
}

/* Three records, the second of several fragments (an empty one among them), cut in two at every
 * byte, and fed byte by byte. */
static size_t make_stream(uint8_t *s)
{
    size_t n = put_fragment(s, true, "first", 5);

    n += put_fragment(s + n, false, "se", 2);
    n += put_fragment(s + n, false, "", 0);
    n += put_fragment(s + n, false, "con", 3);
    n += put_fragment(s + n, true, "d", 1);
    n += put_fragment(s + n, false, "thir", 4);
    n += put_fragment(s + n, true, "d", 1);
    return n;
}

static unsigned feed_all(const uint8_t *s, size_t len, unsigned seen)
{
    static const char *const texts[] = {"first", "second", "third"};
    struct hf_slice in = hf_slice(s, len);
    struct nfs_record_out out;
    enum nfs_record_result res;

    while ((res = nfs_record_feed(&rec, &in, &out)) == NFS_RECORD_READY) {
        cr_assert_lt(seen, 3);
        expect(&out, texts[seen++]);
        if (in.len == 0)
            break;
    }
    cr_assert(res == NFS_RECORD_READY || res == NFS_RECORD_MORE);
    return seen;
}

Test(record, every_cut_gives_the_same_records)
{
    uint8_t s[128];
    size_t n = make_stream(s);

    for (size_t cut = 1; cut < n; cut++) {
        unsigned seen = feed_all(s, cut, 0);

        seen = feed_all(s + cut, n - cut, seen);
        cr_assert_eq(seen, 3, "cut at %zu", cut);
        cr_assert(nfs_record_at_boundary(&rec));
    }
}

Test(record, byte_by_byte)
{
    uint8_t s[128];
    size_t n = make_stream(s);
    unsigned seen = 0;

    for (size_t i = 0; i < n; i++)
        seen = feed_all(s + i, 1, seen);
    cr_assert_eq(seen, 3);
}

Test(record, every_truncation_only_wants_more)
{
    uint8_t s[128];
    size_t n = put_fragment(s, false, "abc", 3);

    n += put_fragment(s + n, true, "defg", 4);
    for (size_t cut = 0; cut < n; cut++) {
        struct hf_slice in = hf_slice(s, cut);
        struct nfs_record_out out;

        cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_MORE);
        cr_assert_eq(in.len, 0);
        nfs_record_fini(&rec);
    }
}

Test(record, length_limits)
{
    uint8_t s[4];
    struct nfs_record_out out;
    const uint32_t bad[] = {NFS_RECORD_MAX + 1, 0x7fffffffu, 0x80000000u | (NFS_RECORD_MAX + 1),
                            0xffffffffu};
    struct hf_slice in;

    for (size_t i = 0; i < 4; i++) {
        hf_put_be32(s, bad[i]);
        in = hf_slice(s, 4);
        cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_BAD);
        nfs_record_fini(&rec);
    }
    hf_put_be32(s, 0x80000000u | NFS_RECORD_MAX);
    in = hf_slice(s, 4);
    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_MORE);
    cr_assert_leq(mem.in_use, NFS_MEM_BIG);
}

Test(record, fragments_together_are_limited)
{
    uint8_t *s = calloc(1, NFS_RECORD_MAX + 16);
    size_t n = put_fragment(s, false, s + 8, NFS_RECORD_MAX / 2);
    struct hf_slice in = hf_slice(s, n);
    struct nfs_record_out out;

    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_MORE);
    hf_put_be32(s, NFS_RECORD_MAX / 2 + 1);
    in = hf_slice(s, 4);
    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_BAD);
    free(s);
}

Test(record, endless_empty_fragments_are_bad)
{
    static const uint8_t empty[4];
    enum nfs_record_result res = NFS_RECORD_MORE;
    unsigned n = 0;

    while (res == NFS_RECORD_MORE && n < 10 * NFS_RECORD_FRAGMENTS) {
        struct hf_slice in = hf_slice(empty, 4);
        struct nfs_record_out out;

        res = nfs_record_feed(&rec, &in, &out);
        n++;
    }
    cr_assert_eq(res, NFS_RECORD_BAD);
    cr_assert_eq(n, NFS_RECORD_FRAGMENTS + 1);
}

Test(record, empty_record)
{
    uint8_t s[4];
    struct hf_slice in = hf_slice(s, put_fragment(s, true, "", 0));
    struct nfs_record_out out;

    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_READY);
    expect(&out, "");
}

Test(record, rest_is_read_into_place)
{
    uint8_t s[64];
    uint8_t *space;
    struct nfs_record_out out;
    struct hf_slice in;

    (void)put_fragment(s, true, "0123456789", 10);
    cr_assert_eq(nfs_record_space(&rec, &space), 0);
    in = hf_slice(s, 7);
    cr_assert_eq(nfs_record_feed(&rec, &in, &out), NFS_RECORD_MORE);
    cr_assert_eq(nfs_record_space(&rec, &space), 7);
    memcpy(space, "3456", 4);
    cr_assert_eq(nfs_record_filled(&rec, 4, &out), NFS_RECORD_MORE);
    cr_assert_eq(nfs_record_space(&rec, &space), 3);
    memcpy(space, "789", 3);
    cr_assert_eq(nfs_record_filled(&rec, 3, &out), NFS_RECORD_READY);
    expect(&out, "0123456789");
    cr_assert(nfs_record_at_boundary(&rec));
}

/* Random streams: no crash, no leak, memory within bounds. */
Test(record, random_bytes)
{
    srand(7);
    for (int round = 0; round < 2000; round++) {
        uint8_t s[256];
        struct hf_slice in = hf_slice(s, (size_t)(rand() % 256));
        struct nfs_record_out out;
        enum nfs_record_result res = NFS_RECORD_READY;

        for (size_t i = 0; i < sizeof(s); i++)
            s[i] = rand() % 4 ? 0 : (uint8_t)rand();
        while (in.len && res == NFS_RECORD_READY) {
            res = nfs_record_feed(&rec, &in, &out);
            if (res == NFS_RECORD_READY) {
                cr_assert_leq(out.data.len, sizeof(s));
                nfs_mem_put(&mem, out.buf, out.cap);
            }
        }
        cr_assert_leq(mem.in_use, NFS_MEM_BIG);
        nfs_record_fini(&rec);
        cr_assert_eq(mem.in_use, 0);
    }
}

Test(record, large_buffers_are_reused)
{
    size_t cap, cap2;
    void *p = nfs_mem_get(&mem, 1u << 20, &cap);
    void *q;

    nfs_mem_put(&mem, p, cap);
    q = nfs_mem_get(&mem, 900u << 10, &cap2);
    cr_assert_eq(p, q);
    cr_assert_eq(cap, cap2);
    nfs_mem_put(&mem, q, cap2);
}

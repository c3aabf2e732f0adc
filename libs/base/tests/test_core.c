/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors, buffers, CRC-32C, byte orders, lists, metrics.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/buf.h"
#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/list.h"
#include "holdfast/metrics.h"

Test(err, names_and_texts)
{
    cr_assert_str_eq(hf_err_name(0), "OK");
    cr_assert_str_eq(hf_err_name(HF_E_NOENT), "NOENT");
    cr_assert_str_eq(hf_err_text(HF_E_STOPPED), "stopped after an i/o error");
    cr_assert_str_eq(hf_err_name(2), "UNKNOWN");
    cr_assert_str_eq(hf_err_name(-9999), "UNKNOWN");
    cr_assert_str_eq(hf_err_text(-9999), "unknown error");
    cr_assert_eq(HF_E_NOENT, -2);
    cr_assert_eq(HF_E_NOMEM, -40);
}

Test(err, from_errno)
{
    cr_assert_eq(hf_err_from_errno(0), 0);
    cr_assert_eq(hf_err_from_errno(ENOENT), HF_E_NOENT);
    cr_assert_eq(hf_err_from_errno(EAGAIN), HF_E_BUSY);
    cr_assert_eq(hf_err_from_errno(ENOSPC), HF_E_NOSPC);
    cr_assert_eq(hf_err_from_errno(EL2HLT), HF_E_IO);
}

Test(buf, grows_and_keeps_content)
{
    struct hf_buf b = {0};

    cr_assert_eq(hf_buf_append(&b, NULL, 0), 0);
    for (unsigned i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i * 7);

        cr_assert_eq(hf_buf_append(&b, &byte, 1), 0);
    }
    cr_assert_eq(b.len, 10000);
    for (unsigned i = 0; i < 10000; i++)
        cr_assert_eq(b.data[i], (uint8_t)(i * 7));
    hf_buf_reset(&b);
    cr_assert_eq(b.len, 0);
    cr_assert_geq(b.cap, 10000);
    hf_buf_fini(&b);
    cr_assert_null(b.data);
}

Test(buf, printf_appends)
{
    struct hf_buf b = {0};
    char big[5000];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    cr_assert_eq(hf_buf_printf(&b, "a%d", 12), 0);
    cr_assert_eq(hf_buf_printf(&b, "%s", big), 0);
    cr_assert_eq(b.len, 3 + sizeof(big) - 1);
    cr_assert(memcmp(b.data, "a12xxx", 6) == 0);
    cr_assert(hf_slice_eq(hf_slice(b.data, 3), hf_slice_str("a12")));
    hf_buf_fini(&b);
}

Test(buf, absurd_sizes_are_refused)
{
    struct hf_buf b = {0};

    cr_assert_eq(hf_buf_append(&b, "x", 1), 0);
    cr_assert_eq(hf_buf_reserve(&b, SIZE_MAX), HF_E_NOMEM);
    cr_assert_eq(hf_buf_reserve(&b, SIZE_MAX / 2), HF_E_NOMEM);
    cr_assert_eq(b.len, 1);
    hf_buf_fini(&b);
}

/* RFC 3720, appendix B.4. */
Test(crc32c, vectors)
{
    uint8_t bytes[32];

    cr_assert_eq(hf_crc32c(0, "123456789", 9), 0xe3069283u);
    cr_assert_eq(hf_crc32c(0, NULL, 0), 0);
    memset(bytes, 0, sizeof(bytes));
    cr_assert_eq(hf_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aau);
    memset(bytes, 0xff, sizeof(bytes));
    cr_assert_eq(hf_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43u);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    cr_assert_eq(hf_crc32c(0, bytes, sizeof(bytes)), 0x46dd794eu);
}

/* Bit by bit, as the polynomial says. */
static uint32_t crc_model(const uint8_t *p, size_t len)
{
    uint32_t crc = ~0u;

    while (len-- > 0) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

Test(crc32c, any_length_and_split_continues)
{
    uint8_t bytes[3000];

    srand(1);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rand();
    for (size_t len = 0; len < sizeof(bytes); len += 1 + len / 7) {
        uint32_t want = crc_model(bytes, len);
        size_t cut = len ? (size_t)rand() % len : 0;

        cr_assert_eq(hf_crc32c(0, bytes, len), want, "length %zu", len);
        cr_assert_eq(hf_crc32c(hf_crc32c(0, bytes, cut), bytes + cut, len - cut), want);
    }
}

Test(endian, orders)
{
    uint8_t b[8];

    hf_put_be32(b, 0x01020304u);
    cr_assert(memcmp(b, "\1\2\3\4", 4) == 0);
    hf_put_le64(b, 0x0102030405060708ull);
    cr_assert(memcmp(b, "\x8\7\6\5\4\3\2\1", 8) == 0);
    cr_assert_eq(hf_get_le64(b), 0x0102030405060708ull);
    cr_assert_eq(hf_get_be64(b), 0x0807060504030201ull);
}

Test(list, order_and_double_removal)
{
    struct hf_list head, n[4];
    int seen = 0;

    hf_list_init(&head);
    cr_assert_null(hf_list_pop_front(&head));
    for (int i = 1; i < 4; i++)
        hf_list_push_back(&head, &n[i]);
    hf_list_push_front(&head, &n[0]);
    hf_list_remove(&n[2]);
    hf_list_remove(&n[2]);
    HF_LIST_FOREACH(it, &head)
    {
        static const int want[] = {0, 1, 3};

        cr_assert_eq(it, &n[want[seen++]]);
    }
    cr_assert_eq(seen, 3);
    cr_assert_eq(hf_list_pop_front(&head), &n[0]);
}

Test(metrics, text_exposition)
{
    const struct hf_metric_desc descs[] = {{"holdfast_a_total", HF_COUNTER, "what a is"},
                                           {"holdfast_b", HF_GAUGE, "what b is"}};
    uint64_t values[2] = {0};
    struct hf_buf out = {0};
    const char *want = "# HELP holdfast_a_total what a is\n"
                       "# TYPE holdfast_a_total counter\n"
                       "holdfast_a_total 3\n"
                       "# HELP holdfast_b what b is\n"
                       "# TYPE holdfast_b gauge\n"
                       "holdfast_b 18446744073709551615\n"
                       "holdfast_a_total{shard=\"3\"} 3\n"
                       "holdfast_b{shard=\"3\"} 18446744073709551615\n";

    hf_metric_add(&values[0], 1);
    hf_metric_add(&values[0], 2);
    hf_metric_set(&values[1], UINT64_MAX);
    cr_assert_eq(hf_metrics_print(&out, descs, values, 2, NULL), 0);
    cr_assert_eq(hf_metrics_print(&out, descs, values, 2, "shard=\"3\""), 0);
    cr_assert(hf_slice_eq(hf_buf_slice(&out), hf_slice_str(want)), "%.*s", (int)out.len,
              (char *)out.data);
    hf_buf_fini(&out);
}

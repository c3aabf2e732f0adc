/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "bench.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

Test(hist, empty)
{
    struct bn_hist *h = calloc(1, sizeof(*h));

    cr_assert_eq(bn_hist_quantile(h, 0.5), 0);
    free(h);
}

/* Quantiles are within the width of a bucket (1/32) of those of the sorted values. */
Test(hist, quantiles_match_sorted_values)
{
    enum { N = 20000 };
    static const double qs[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0};
    struct bn_hist *h = calloc(1, sizeof(*h));
    uint64_t *v = calloc(N, sizeof(*v));
    uint64_t rng = 42, sum = 0;

    for (unsigned i = 0; i < N; i++) {
        v[i] = bn_rand(&rng) >> (20 + bn_rand(&rng) % 40);
        sum += v[i];
        bn_hist_add(h, v[i]);
    }
    qsort(v, N, sizeof(*v), by_value);
    cr_assert_eq(h->count, N);
    cr_assert_eq(h->sum_ns, sum);
    cr_assert_eq(h->max_ns, v[N - 1]);
    for (unsigned i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
        double want = (double)v[(size_t)(qs[i] * N + 0.5) - 1];
        double got = (double)bn_hist_quantile(h, qs[i]);

        cr_assert(got >= want * 0.96 - 1 && got <= want * 1.04 + 1, "q %g: %g, sorted %g", qs[i],
                  got, want);
    }
    free(h);
    free(v);
}

Test(hist, extremes)
{
    struct bn_hist *h = calloc(1, sizeof(*h));

    bn_hist_add(h, 0);
    bn_hist_add(h, UINT64_MAX);
    cr_assert_eq(bn_hist_quantile(h, 0.5), 0);
    cr_assert_eq(h->max_ns, UINT64_MAX);
    cr_assert_geq(bn_hist_quantile(h, 1.0), UINT64_MAX / 32 * 31);
    free(h);
}

Test(mix, names)
{
    static const char *const names[] = {"null", "getattr", "lookup",  "create4k",
                                        "sfs",  "seqread", "seqwrite"};
    enum bn_mix_id id;

    for (unsigned i = 0; i < 7; i++) {
        cr_assert_eq(bn_mix_find(names[i], &id), 0);
        cr_assert_str_eq(bn_mix_get(id)->name, names[i]);
    }
    cr_assert_lt(bn_mix_find("nothing", &id), 0);
}

/* Replies are bytes from a network: what is too short is refused, whatever it claims. */
Test(decode, short_replies)
{
    static const uint8_t bytes[] = {0, 0, 0, 1, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    struct bn_fh fh;

    for (size_t len = 0; len <= sizeof(bytes); len++) {
        struct bn_reply r = {.body = bytes, .len = len};

        cr_assert_eq(bn_get_opt_fh(&r, &fh), len == sizeof(bytes), "length %zu", len);
    }
    cr_assert_eq(fh.len, 8);
}

Test(decode, lying_lengths)
{
    static const uint32_t lens[] = {0, 65, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    uint8_t bytes[80] = {0};
    struct bn_fh fh;

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct bn_reply r = {.body = bytes, .len = sizeof(bytes)};

        for (unsigned k = 0; k < 4; k++) {
            bytes[k] = (uint8_t)(lens[i] >> (24 - 8 * k));
        }
        cr_assert_not(bn_get_fh(&r, &fh), "length 0x%x", lens[i]);
    }
}

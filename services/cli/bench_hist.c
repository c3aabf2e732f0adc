/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

static unsigned bucket_of(uint64_t ns)
{
    unsigned log2;

    if (ns < (1u << BN_HIST_SUB)) {
        return (unsigned)ns;
    }
    log2 = 63u - (unsigned)__builtin_clzll(ns);
    return ((log2 - BN_HIST_SUB + 1) << BN_HIST_SUB) +
           (unsigned)((ns >> (log2 - BN_HIST_SUB)) & ((1u << BN_HIST_SUB) - 1));
}

/* The middle of a bucket. */
static uint64_t bucket_value(unsigned b)
{
    unsigned shift;
    uint64_t base;

    if (b < (1u << BN_HIST_SUB)) {
        return b;
    }
    shift = (b >> BN_HIST_SUB) - 1;
    base = ((1ull << BN_HIST_SUB) | (b & ((1u << BN_HIST_SUB) - 1))) << shift;
    return base + ((1ull << shift) >> 1);
}

void bn_hist_add(struct bn_hist *h, uint64_t ns)
{
    h->count++;
    h->sum_ns += ns;
    if (ns > h->max_ns) {
        h->max_ns = ns;
    }
    h->bucket[bucket_of(ns)]++;
}

uint64_t bn_hist_quantile(const struct bn_hist *h, double q)
{
    uint64_t seen = 0;
    uint64_t need = (uint64_t)((double)h->count * q + 0.5);

    if (h->count == 0) {
        return 0;
    }
    if (need == 0) {
        need = 1;
    }
    for (unsigned b = 0; b < BN_HIST_BUCKETS; b++) {
        seen += h->bucket[b];
        if (seen >= need) {
            uint64_t v = bucket_value(b);

            return v < h->max_ns ? v : h->max_ns;
        }
    }
    return h->max_ns;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Metric tables. A service declares its counters once in metrics.def, X(name, KIND, "help"), and
 * embeds one uint64_t per row; a table describes them for Prometheus text and the status call.
 * Updates are relaxed atomics: any thread.
 */
#ifndef HOLDFAST_METRICS_H
#define HOLDFAST_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"

enum hf_metric_kind { HF_COUNTER, HF_GAUGE };

struct hf_metric_desc {
    const char *name; /* "holdfast_meta_ops_total" without labels */
    enum hf_metric_kind kind;
    const char *help;
};

static inline void hf_metric_add(uint64_t *m, uint64_t n)
{
    __atomic_fetch_add(m, n, __ATOMIC_RELAXED);
}
static inline void hf_metric_set(uint64_t *m, uint64_t v)
{
    __atomic_store_n(m, v, __ATOMIC_RELAXED);
}
static inline uint64_t hf_metric_get(const uint64_t *m)
{
    return __atomic_load_n(m, __ATOMIC_RELAXED);
}
/* Appends Prometheus text exposition (version 0.0.4) of n metrics; labels like `shard="3"` or NULL.
 */
int hf_metrics_print(struct hf_buf *out, const struct hf_metric_desc *descs, const uint64_t *values,
                     size_t n, const char *labels);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/metrics.h"

#include <inttypes.h>

/* The text format wants HELP and TYPE once per metric, also when several tables (one per shard,
 * say) are printed into the same page. */
static bool told_already(const struct hf_buf *out, const char *name, struct hf_buf *scratch)
{
    hf_buf_reset(scratch);
    if (hf_buf_printf(scratch, "# TYPE %s ", name) != 0)
        return false;
    return out->len > 0 && memmem(out->data, out->len, scratch->data, scratch->len) != NULL;
}

int hf_metrics_print(struct hf_buf *out, const struct hf_metric_desc *descs, const uint64_t *values,
                     size_t n, const char *labels)
{
    struct hf_buf scratch = {0};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct hf_metric_desc *d = &descs[i];

        if (!told_already(out, d->name, &scratch))
            rc = hf_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", d->name, d->help, d->name,
                               d->kind == HF_COUNTER ? "counter" : "gauge");
        if (rc == 0)
            rc = hf_buf_printf(out, "%s%s%s%s %" PRIu64 "\n", d->name, labels ? "{" : "",
                               labels ? labels : "", labels ? "}" : "", hf_metric_get(&values[i]));
    }
    hf_buf_fini(&scratch);
    return rc;
}

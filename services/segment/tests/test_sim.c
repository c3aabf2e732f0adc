/* SPDX-License-Identifier: Apache-2.0
 *
 * The same service in simulated time: everything on one thread, deterministic.
 */
#include "support_svc.h"

#include <criterion/criterion.h>
#include <string.h>

#include "holdfast/err.h"

Test(sim, serves_and_stops, .timeout = 60)
{
    static uint8_t data[300000], got[300000];
    struct bed b;
    uint64_t boot;

    bed_make(&b);
    hf_env_free(b.env);
    cr_assert_eq(hf_env_sim_new(42, 0, &b.env), 0);
    b.url = "sim://segment";
    bed_fill(data, sizeof(data), 1);
    bed_start(&b, "mem");
    cr_assert_eq(bed_write(&b, 1, 1000, data, sizeof(data), true), 0);
    boot = b.boot;
    cr_assert_eq(bed_write(&b, 1, 500000, data, 10, false), 0);
    cr_assert_eq(bed_read(&b, 1, 1000, got, sizeof(got)), 0);
    cr_assert_eq(b.len, sizeof(data));
    cr_assert_eq(memcmp(data, got, sizeof(data)), 0);
    bed_stop(&b);
    bed_start(&b, "mem");
    cr_assert_eq(bed_read(&b, 1, 0, got, 10), 0);
    cr_assert_eq(b.len, 0, "memory is gone");
    cr_assert_neq(b.boot, boot);
    bed_stop(&b);
    bed_remove(&b);
}

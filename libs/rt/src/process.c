/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <sys/resource.h>

#include "holdfast/rt.h"

void hf_process_tune(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    (void)mallopt(M_TOP_PAD, 16 << 20);
}

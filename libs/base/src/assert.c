/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void hf_assert_fail(const char *file, int line, const char *text)
{
    (void)fprintf(stderr, "holdfast: %s:%d: assertion failed: %s\n", file, line, text);
    (void)fflush(stderr);
    abort();
}

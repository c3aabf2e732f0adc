/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/crc32c.h"

#include <isa-l/crc.h>

/* isa-l counts in int; stay aligned to cache lines. */
#define CHUNK ((size_t)1 << 30)

uint32_t hf_crc32c(uint32_t crc, const void *data, size_t len)
{
    /* crc32_iscsi takes and returns the bare register: no inversion before or after. Its parameter
     * lacks a const it deserves. */
    unsigned char *p = (unsigned char *)(uintptr_t)data;

    crc = ~crc;
    while (len > 0) {
        size_t n = len < CHUNK ? len : CHUNK;

        crc = crc32_iscsi(p, (int)n, crc);
        p += n;
        len -= n;
    }
    return ~crc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_CRC32C_H
#define HOLDFAST_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, RFC 3720 appendix B.4) of data, continued from crc (0 to start):
 * hf_crc32c(hf_crc32c(0, a), b) is the crc of a followed by b. crc of "123456789" is 0xe3069283.
 * Computed by isa-l with the processor's instructions. Any length, any thread. */
uint32_t hf_crc32c(uint32_t crc, const void *data, size_t len);

#endif

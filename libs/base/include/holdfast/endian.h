/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed byte orders for keys (big-endian, so that memcmp sorts) and values (little-endian).
 */
#ifndef HOLDFAST_ENDIAN_H
#define HOLDFAST_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define HF_ENDIAN_DEFINE_(bits, order, to, from)                                                   \
    static inline void hf_put_##order##bits(void *p, uint##bits##_t v)                             \
    {                                                                                              \
        v = to(v);                                                                                 \
        memcpy(p, &v, sizeof(v));                                                                  \
    }                                                                                              \
    static inline uint##bits##_t hf_get_##order##bits(const void *p)                               \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof(v));                                                                  \
        return from(v);                                                                            \
    }

HF_ENDIAN_DEFINE_(16, le, htole16, le16toh)
HF_ENDIAN_DEFINE_(32, le, htole32, le32toh)
HF_ENDIAN_DEFINE_(64, le, htole64, le64toh)
HF_ENDIAN_DEFINE_(16, be, htobe16, be16toh)
HF_ENDIAN_DEFINE_(32, be, htobe32, be32toh)
HF_ENDIAN_DEFINE_(64, be, htobe64, be64toh)

#endif

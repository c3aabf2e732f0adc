/* SPDX-License-Identifier: Apache-2.0 */
#include "fold.h"

#include <sodium.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "layout.h"

struct fold_range {
    uint32_t first, last;
    int32_t step, delta;
};
#include "casefold_table.h"

static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == 8, "siphash24");

uint32_t hf_fold_code_point(uint32_t c)
{
    size_t lo = 0, hi = HF_ARRAY_LEN(fold_ranges);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct fold_range *r = &fold_ranges[mid];

        if (c < r->first)
            hi = mid;
        else if (c > r->last)
            lo = mid + 1;
        else
            return (c - r->first) % (uint32_t)r->step ? c : (uint32_t)((int32_t)c + r->delta);
    }
    return c;
}

/* Length of the valid UTF-8 sequence at p (RFC 3629: no overlong forms, no surrogates, at most
 * U+10FFFF), or 0. */
static size_t utf8_decode(const uint8_t *p, size_t left, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    uint32_t c;

    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return 0;
    c = p[0] & (0x7fu >> n);
    for (size_t k = 1; k < n; k++) {
        if ((p[k] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[k] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

static size_t utf8_encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

size_t hf_fold(struct hf_slice name, uint8_t out[HF_FOLD_MAX])
{
    const uint8_t *p = name.data;
    size_t n = 0;

    HF_ASSERT(name.len <= HF_META_NAME_MAX);
    for (size_t k = 0; k < name.len;) {
        uint32_t c;
        size_t used;

        if (p[k] < 0x80) {
            out[n++] = p[k] >= 'A' && p[k] <= 'Z' ? (uint8_t)(p[k] + 32) : p[k];
            k++;
            continue;
        }
        used = utf8_decode(p + k, name.len - k, &c);
        if (used == 0) {
            out[n++] = p[k++];
            continue;
        }
        n += utf8_encode(hf_fold_code_point(c), out + n);
        k += used;
    }
    return n;
}

uint64_t hf_cookie_base(const uint8_t key[16], struct hf_slice name)
{
    uint8_t folded[HF_FOLD_MAX], hash[crypto_shorthash_BYTES];
    size_t n = hf_fold(name, folded);
    uint64_t h;

    crypto_shorthash(hash, folded, n, key);
    h = hf_get_le64(hash) >> (64 - HF_HASH_BITS);
    return (h ? h : 1) << HF_SLOT_BITS;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Names as hash keys: case folding and the hash of a directory cookie. Both are part of the stored
 * format.
 */
#ifndef HOLDFAST_META_FOLD_H
#define HOLDFAST_META_FOLD_H

#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/meta.h"

/* A folded code point can be one byte longer in UTF-8 (2 bytes to 3). */
#define HF_FOLD_MAX (HF_META_NAME_MAX * 3u / 2u + 2u)

/* Simple case folding (statuses C and S of CaseFolding.txt) of Unicode 15.0; bytes that are not
 * UTF-8 stand for themselves. name: at most HF_META_NAME_MAX bytes. Returns the length. */
size_t hf_fold(struct hf_slice name, uint8_t out[HF_FOLD_MAX]);
uint32_t hf_fold_code_point(uint32_t c);

/* The first cookie of the bucket of a name: the upper 50 bits of SipHash-2-4 of the folded name,
 * never 0, shifted over the slot bits. */
uint64_t hf_cookie_base(const uint8_t key[16], struct hf_slice name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants of our own code; they stay on in release. Input from outside never reaches one.
 */
#ifndef HOLDFAST_ASSERT_H
#define HOLDFAST_ASSERT_H

#include <stddef.h>

/* Prints file, line and text to stderr and aborts. */
_Noreturn void hf_assert_fail(const char *file, int line, const char *text);

#define HF_ASSERT(cond) ((cond) ? (void)0 : hf_assert_fail(__FILE__, __LINE__, #cond))

#define hf_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define HF_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))

#endif

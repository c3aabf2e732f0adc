/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte slices (borrowed) and growable buffers (owned).
 */
#ifndef HOLDFAST_BUF_H
#define HOLDFAST_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that belong to someone else. */
struct hf_slice {
    const void *data;
    size_t len;
};

static inline struct hf_slice hf_slice(const void *data, size_t len)
{
    return (struct hf_slice){data, len};
}
static inline struct hf_slice hf_slice_str(const char *s)
{
    return (struct hf_slice){s, strlen(s)};
}
static inline bool hf_slice_eq(struct hf_slice a, struct hf_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* A growable buffer. Zero-initialised is empty and valid. Not thread-safe. */
struct hf_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

void hf_buf_fini(struct hf_buf *b);
/* Keeps the memory, forgets the content. */
static inline void hf_buf_reset(struct hf_buf *b)
{
    b->len = 0;
}
/* Room for `more` bytes after len; NOMEM. */
int hf_buf_reserve(struct hf_buf *b, size_t more);
int hf_buf_append(struct hf_buf *b, const void *data, size_t len);
int hf_buf_printf(struct hf_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline struct hf_slice hf_buf_slice(const struct hf_buf *b)
{
    return (struct hf_slice){b->data, b->len};
}

#endif

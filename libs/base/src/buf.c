/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"

#define BUF_MIN ((size_t)64)

void hf_buf_fini(struct hf_buf *b)
{
    free(b->data);
    *b = (struct hf_buf){0};
}

int hf_buf_reserve(struct hf_buf *b, size_t more)
{
    size_t cap = b->cap < BUF_MIN ? BUF_MIN : b->cap;
    uint8_t *data;

    if (more <= b->cap - b->len)
        return 0;
    if (more > SIZE_MAX / 2 - b->len)
        return HF_E_NOMEM;
    while (cap < b->len + more)
        cap *= 2;
    data = realloc(b->data, cap);
    if (!data)
        return HF_E_NOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

int hf_buf_append(struct hf_buf *b, const void *data, size_t len)
{
    int rc = hf_buf_reserve(b, len);

    if (rc)
        return rc;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

int hf_buf_printf(struct hf_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;
    int rc;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return HF_E_INVAL;
    /* vsnprintf wants room for its NUL, which is not part of the content. */
    rc = hf_buf_reserve(b, (size_t)n + 1);
    if (rc)
        return rc;
    va_start(ap, fmt);
    (void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

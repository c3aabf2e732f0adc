/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/logger.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/err.h"

#define LINE_MAX_BYTES 2048

struct hf_logger {
    int fd;
    atomic_int min;
};

int hf_logger_new(int fd, enum hf_level min, struct hf_logger **ret)
{
    struct hf_logger *lg = malloc(sizeof(*lg));

    if (!lg)
        return HF_E_NOMEM;
    lg->fd = fd;
    atomic_init(&lg->min, (int)min);
    *ret = lg;
    return 0;
}

void hf_logger_free(struct hf_logger *lg)
{
    free(lg);
}

void hf_logger_level(struct hf_logger *lg, enum hf_level min)
{
    atomic_store_explicit(&lg->min, (int)min, memory_order_relaxed);
}

/* "2026-11-30T12:00:00.123Z WARN meta: "; the length, never more than bytes - 1. */
static size_t line_prefix(char *line, size_t bytes, enum hf_level level, const char *component)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    struct timespec ts = {0};
    struct tm tm = {0};
    size_t n;
    int m;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    n = strftime(line, bytes, "%Y-%m-%dT%H:%M:%S", &tm);
    m = snprintf(line + n, bytes - n, ".%03ldZ %s %.64s: ", ts.tv_nsec / 1000000,
                 names[(unsigned)level & 3u], component);
    if (m < 0)
        return n;
    n += (size_t)m;
    return n < bytes ? n : bytes - 1;
}

/* Copies text, control bytes as \xNN, as far as there is room; the new length. */
static size_t line_text(char *line, size_t n, size_t bytes, const char *text)
{
    static const char hex[] = "0123456789abcdef";

    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool control = *p < 0x20 || *p == 0x7f;

        if (bytes - n < (control ? 4u : 1u))
            break;
        if (control) {
            line[n++] = '\\';
            line[n++] = 'x';
            line[n++] = hex[*p >> 4];
            line[n++] = hex[*p & 15];
        } else {
            line[n++] = (char)*p;
        }
    }
    return n;
}

static void line_write(int fd, const char *line, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, line, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* nowhere left to complain to */
        line += w;
        n -= (size_t)w;
    }
}

void hf_log(struct hf_logger *lg, enum hf_level level, const char *component, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    char line[LINE_MAX_BYTES];
    int saved_errno = errno;
    va_list ap;
    size_t n;
    int m;

    if (!lg || (int)level < atomic_load_explicit(&lg->min, memory_order_relaxed))
        return;
    va_start(ap, fmt);
    m = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (m >= 0) {
        n = line_prefix(line, sizeof(line), level, component);
        n = line_text(line, n, sizeof(line) - 1, text);
        line[n++] = '\n';
        line_write(lg->fd, line, n);
    }
    errno = saved_errno;
}

bool hf_log_rate_ok(struct hf_log_rate *r, unsigned burst)
{
    struct timespec ts = {0};
    unsigned long long second;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    second =
        (unsigned long long)ts.tv_sec + 1; /* never 0, which is the state before the first call */
    if (burst == 0)
        burst = 1;
    if (r->second != second) {
        r->second = second;
        r->count = 0;
    } else if (r->count == 1) {
        r->suppressed = 0; /* the first line of this second has told */
    }
    if (r->count < burst) {
        r->count++;
        return true;
    }
    if (r->count == burst)
        r->count++; /* so that the reset above happens once */
    r->suppressed++;
    return false;
}

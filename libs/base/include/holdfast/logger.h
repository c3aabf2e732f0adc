/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines of services: one line each, "2026-11-30T12:00:00.123Z WARN meta: shard=3 text".
 * Libraries return errors; services log them, once.
 */
#ifndef HOLDFAST_LOGGER_H
#define HOLDFAST_LOGGER_H

#include <stdbool.h>

enum hf_level { HF_DEBUG, HF_INFO, HF_WARN, HF_ERROR };

struct hf_logger;

/* fd is borrowed (2 for stderr). One write(2) per line, so lines of threads do not mix. */
int hf_logger_new(int fd, enum hf_level min, struct hf_logger **ret);
void hf_logger_free(struct hf_logger *lg);
void hf_logger_level(struct hf_logger *lg, enum hf_level min);
/* Control bytes in the text are escaped. lg == NULL discards. Any thread. At most 2 KiB a line. */
void hf_log(struct hf_logger *lg, enum hf_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* As hf_log, but at most `burst` lines per second and call site (state: zero-initialised, static is
 * not needed: keep it in the object); after it said yes, `suppressed` is the number of lines
 * dropped before this one, to be told in it. One thread per hf_log_rate. */
struct hf_log_rate {
    unsigned long long second;
    unsigned count, suppressed;
};
bool hf_log_rate_ok(struct hf_log_rate *r, unsigned burst);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/logger.h"

/* A pipe to write to; the text that came out. */
static size_t drain(int fd, char *buf, size_t bytes)
{
    size_t n = 0;
    ssize_t r;

    while (n < bytes - 1 && (r = read(fd, buf + n, bytes - 1 - n)) > 0)
        n += (size_t)r;
    buf[n] = '\0';
    return n;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t re;
    bool yes;

    cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    yes = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return yes;
}

Test(logger, line_format_levels_and_escapes)
{
    struct hf_logger *lg;
    char out[8192];
    int fds[2];

    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    cr_assert_eq(hf_logger_new(fds[1], HF_INFO, &lg), 0);
    hf_log(NULL, HF_ERROR, "meta", "goes nowhere");
    hf_log(lg, HF_DEBUG, "meta", "too quiet");
    errno = ENOENT;
    hf_log(lg, HF_WARN, "meta", "shard=%d evil\n\x1b[2J\x7f end", 3);
    cr_assert_eq(errno, ENOENT);
    hf_logger_level(lg, HF_ERROR);
    hf_log(lg, HF_WARN, "meta", "too quiet now");
    hf_logger_free(lg);
    close(fds[1]);
    drain(fds[0], out, sizeof(out));
    cr_assert(
        matches(out,
                "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z WARN meta: "
                "shard=3 evil\\\\x0a\\\\x1b\\[2J\\\\x7f end\n$"),
        "got: %s", out);
    close(fds[0]);
}

Test(logger, long_lines_are_cut)
{
    struct hf_logger *lg;
    char out[8192];
    char text[5000];
    int fds[2];

    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
    cr_assert_eq(hf_logger_new(fds[1], HF_DEBUG, &lg), 0);
    hf_log(lg, HF_ERROR, text, "%s", text);
    hf_logger_free(lg);
    close(fds[1]);
    cr_assert_leq(drain(fds[0], out, sizeof(out)), 2048);
    cr_assert_eq(out[strlen(out) - 1], '\n');
    close(fds[0]);
}

struct writer {
    struct hf_logger *lg;
    int id;
};

static void *write_lines(void *arg)
{
    struct writer *w = arg;

    for (int i = 0; i < 500; i++)
        hf_log(w->lg, HF_INFO, "t", "writer=%d line=%d", w->id, i);
    return NULL;
}

Test(logger, lines_of_threads_do_not_mix)
{
    char path[] = "/tmp/hf-logger-XXXXXX";
    int fd = mkstemp(path);
    struct hf_logger *lg;
    pthread_t th[4];
    struct writer w[4];
    char line[256];
    int lines = 0;
    FILE *f;

    cr_assert_geq(fd, 0);
    unlink(path);
    cr_assert_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
    cr_assert_eq(hf_logger_new(fd, HF_DEBUG, &lg), 0);
    for (int i = 0; i < 4; i++) {
        w[i] = (struct writer){lg, i};
        cr_assert_eq(pthread_create(&th[i], NULL, write_lines, &w[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(th[i], NULL);
    hf_logger_free(lg);
    f = fdopen(fd, "r");
    rewind(f);
    for (; fgets(line, sizeof(line), f); lines++)
        cr_assert(matches(line, "Z INFO t: writer=[0-3] line=[0-9]+\n$"), "mixed: %s", line);
    cr_assert_eq(lines, 2000);
    fclose(f);
}

Test(logger, rate_counts_what_it_drops)
{
    struct hf_log_rate r = {0};
    unsigned ok = 0;

    /* Within one second; a tick of the clock meanwhile lets at most another burst through. */
    for (int i = 0; i < 1000; i++)
        ok += hf_log_rate_ok(&r, 5);
    cr_assert_geq(ok, 5);
    cr_assert_leq(ok, 10);
    /* The next second, without waiting for it. */
    r.second = 1;
    r.count = 6;
    r.suppressed = 995;
    cr_assert(hf_log_rate_ok(&r, 5));
    cr_assert_eq(r.suppressed, 995);
    r.second = 1;
    r.count = 0;
    r.suppressed = 0;
    cr_assert(hf_log_rate_ok(&r, 1));
    cr_assert_eq(r.suppressed, 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the registered tests, each in a child. The runner itself never has a thread, so that a child
 * may start some: ThreadSanitizer does not support threads after a fork of a process with threads.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HF_CR_TIMEOUT_SCALE 5u
#define HF_CR_JOBS_MAX      64u
#define HF_CR_SKIPPED       77

struct job {
    pid_t pid; /* 0: free */
    const struct hf_cr_test *test;
    size_t param;
};

struct runner {
    struct job jobs[HF_CR_JOBS_MAX];
    unsigned max, running;
    unsigned tested, passed, failed, skipped;
    const char *filter; /* may be NULL */
};

static struct {
    struct hf_cr_test *first, **tail;
} registry;

/* Of the child: checks that failed, and what redirected streams were replaced by. */
static unsigned failures;
static int redirected[3] = {-1, -1, -1};

void hf_cr_register(struct hf_cr_test *t)
{
    if (!registry.tail)
        registry.tail = &registry.first;
    *registry.tail = t;
    registry.tail = &t->next;
}

void hf_cr_failed(bool fatal, const char *file, int line, const char *what, const char *fmt, ...)
{
    char message[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s:%d: failed: %s%s\n", file, line, what, message);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    if (fatal) {
        fflush(NULL);
        _exit(1); /* other threads go on; nothing of them may be torn down */
    }
}

void hf_cr_skip(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    fflush(NULL);
    _exit(HF_CR_SKIPPED);
}

void hf_cr_redirect(int fd)
{
    int m = memfd_create("redirected", MFD_CLOEXEC);

    fflush(NULL);
    if (m < 0 || dup2(m, fd) < 0)
        hf_cr_failed(true, __FILE__, __LINE__, "redirect", "%s", strerror(errno));
    redirected[fd] = m;
}

bool hf_cr_redirected_eq(int fd, const char *want)
{
    size_t len = strlen(want), have = 0;
    char *text = malloc(len + 1);
    bool eq;

    fflush(NULL);
    if (!text)
        return false;
    while (have <= len) {
        ssize_t n = pread(redirected[fd], text + have, len + 1 - have, (off_t)have);

        if (n <= 0)
            break;
        have += (size_t)n;
    }
    eq = have == len && memcmp(text, want, len) == 0;
    free(text);
    return eq;
}

static const struct hf_cr_test *suite_of(const struct hf_cr_test *t)
{
    for (const struct hf_cr_test *s = registry.first; s; s = s->next) {
        if (!s->name && strcmp(s->suite, t->suite) == 0)
            return s;
    }
    return NULL;
}

static double timeout_of(const struct hf_cr_test *t)
{
    const struct hf_cr_test *s = suite_of(t);

    return t->opt.timeout > 0 ? t->opt.timeout : s ? s->opt.timeout : 0;
}

static void child(const struct hf_cr_test *t, void *param)
{
    const struct hf_cr_test *s = suite_of(t);
    void (*init)(void) = t->opt.init ? t->opt.init : s ? s->opt.init : NULL;
    void (*fini)(void) = t->opt.fini ? t->opt.fini : s ? s->opt.fini : NULL;
    double seconds = timeout_of(t);

    if (seconds > 0)
        alarm((unsigned)(seconds * HF_CR_TIMEOUT_SCALE) + 1);
    if (init)
        init();
    if (t->fn)
        t->fn();
    else
        t->fn_param(param);
    if (fini)
        fini();
    exit(failures ? 1 : 0); /* not _exit: the sanitizer reports at exit */
}

/* Waits for one child. */
static void reap(struct runner *r)
{
    const struct hf_cr_test *t;
    struct job *j = NULL;
    int status;
    pid_t pid;
    bool ok;

    do {
        pid = waitpid(-1, &status, 0);
    } while (pid < 0 && errno == EINTR);
    for (unsigned k = 0; k < r->max; k++) {
        if (pid > 0 && r->jobs[k].pid == pid)
            j = &r->jobs[k];
    }
    if (!j)
        return;
    t = j->test;
    j->pid = 0;
    r->running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == HF_CR_SKIPPED) {
        printf("[SKIP] %s/%s\n", t->suite, t->name);
        r->skipped++;
        return;
    }
    ok = WIFSIGNALED(status) ? WTERMSIG(status) == t->opt.signal
                             : t->opt.signal == 0 && WEXITSTATUS(status) == t->opt.exit_code;
    if (ok) {
        r->passed++;
        return;
    }
    r->failed++;
    printf("[FAIL] %s/%s[%zu]: %s %d%s\n", t->suite, t->name, j->param,
           WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
           WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " (timeout)" : "");
}

static void start(struct runner *r, const struct hf_cr_test *t, size_t at, void *param)
{
    struct job *j = r->jobs;

    while (r->running >= r->max)
        reap(r);
    while (j->pid)
        j++;
    fflush(NULL);
    *j = (struct job){fork(), t, at};
    if (j->pid == 0)
        child(t, param);
    r->tested++;
    if (j->pid > 0) {
        r->running++;
        return;
    }
    perror("fork");
    j->pid = 0;
    r->failed++;
}

static bool wanted(const struct runner *r, const struct hf_cr_test *t)
{
    const struct hf_cr_test *s = suite_of(t);
    char full[512];

    if (!t->name || t->opt.disabled || (s && s->opt.disabled))
        return false;
    snprintf(full, sizeof(full), "%s/%s", t->suite, t->name);
    return !r->filter || fnmatch(r->filter, full, 0) == 0;
}

static void run_all(struct runner *r)
{
    for (const struct hf_cr_test *t = registry.first; t; t = t->next) {
        struct criterion_test_params p = {0};

        if (!wanted(r, t))
            continue;
        if (!t->params) {
            start(r, t, 0, NULL);
            continue;
        }
        p = t->params();
        for (size_t k = 0; k < p.length; k++)
            start(r, t, k, (char *)p.params + k * p.size);
    }
    while (r->running)
        reap(r);
}

int main(int argc, char **argv)
{
    struct runner r = {.max = 1};
    bool list = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int k = 1; k < argc; k++) {
        const char *eq = strchr(argv[k], '=');
        const char *value = eq ? eq + 1 : k + 1 < argc ? argv[k + 1] : "";

        if (strcmp(argv[k], "--list") == 0) {
            list = true;
        } else if (strncmp(argv[k], "--jobs", 6) == 0 || strncmp(argv[k], "-j", 2) == 0) {
            unsigned long n = strtoul(value, NULL, 10);

            r.max = n < 1 ? 1 : n > HF_CR_JOBS_MAX ? HF_CR_JOBS_MAX : (unsigned)n;
            k += !eq;
        } else if (strncmp(argv[k], "--filter", 8) == 0) {
            r.filter = value;
            k += !eq;
        } else {
            fprintf(stderr, "%s: unknown: %s\n", argv[0], argv[k]);
            return 2;
        }
    }
    for (const struct hf_cr_test *t = registry.first; list && t; t = t->next) {
        if (wanted(&r, t))
            printf("%s/%s\n", t->suite, t->name);
    }
    if (list)
        return 0;
    run_all(&r);
    printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Skipped: %u\n", r.tested,
           r.passed, r.failed, r.skipped);
    return r.failed || (r.tested == 0 && r.filter) ? 1 : 0;
}

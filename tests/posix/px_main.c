/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner: each case in a directory of its own, TAP on standard output, and at the end how many
 * passed, failed and were skipped.
 *
 *   posix-suite --dir DIR [--dir2 DIR] [--only PATTERN]... [--skip PATTERN=REASON]... [--list]
 *
 * DIR2 is the same directory through another mount. Patterns are the shell's (`rename.*`).
 */
#include "px.h"

#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>

/* clang-format off */
#define PX_GROUPS(X) \
    X(chmod) X(chown) X(create) X(setid) X(open) X(link) X(mkdir) X(mknod) X(rename) \
    X(rename_kinds) X(rename_flags) X(rmdir) X(symlink) X(unlink) X(orphan) X(sticky) \
    X(truncate) X(utimens) X(access) X(io) X(append) X(fallocate) X(seek) X(offsets) X(names) \
    X(xattr) X(acl) X(acl_default) X(flock) X(fcntl_lock) X(ofd_lock) X(statvfs) X(readdir) \
    X(mmap) X(two)
/* clang-format on */

#define X(g) extern const struct px_group px_group_##g;
PX_GROUPS(X)
#undef X

#define X(g) &px_group_##g,
static const struct px_group *const groups[] = {PX_GROUPS(X)};
#undef X

#define PATTERNS_MAX 64u
#define CASE_SECONDS 180u

enum outcome { PASSED, FAILED, SKIPPED };

static struct {
    const char *dir, *dir2;
    char base[64], path[4096], second[4096], self[4096], reason[256];
    const char *only[PATTERNS_MAX], *skip[PATTERNS_MAX];
    size_t nonly, nskip;
    bool list;
    /* the case that runs */
    const char *name;
    size_t failures;
    bool child;
    sigjmp_buf out;
    size_t count[3], number;
} px;

/* ---- what cases say ---- */

static void vsay(const char *file, int line, const char *fmt, va_list ap)
{
    const char *slash = strrchr(file, '/');

    printf("# %s:%d: ", slash != NULL ? slash + 1 : file, line);
    vprintf(fmt, ap);
    printf("\n");
    fflush(stdout);
    px.failures++;
}

void px_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsay(file, line, fmt, ap);
    va_end(ap);
}

static _Noreturn void leave(int how)
{
    if (px.child) {
        fflush(stdout);
        _exit(1);
    }
    siglongjmp(px.out, how);
}

_Noreturn void px_skip(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(px.reason, sizeof(px.reason), fmt, ap);
    va_end(ap);
    leave(2);
}

long long px_ok(const char *file, int line, const char *what, long long got)
{
    if (got < 0) {
        px_fail(file, line, "%s: %s", what, px_errno_name(errno));
        leave(1);
    }
    return got;
}

void px_err(const char *file, int line, const char *what, long long got, int e1, int e2)
{
    int e = got < 0 ? errno : 0;

    if (e == e1 || e == e2) {
        return;
    }
    if (e1 == e2) {
        px_fail(file, line, "%s: %s, expected %s", what, px_errno_name(e), px_errno_name(e1));
    } else {
        px_fail(file, line, "%s: %s, expected %s or %s", what, px_errno_name(e), px_errno_name(e1),
                px_errno_name(e2));
    }
}

void px_check(const char *file, int line, const char *what, bool ok)
{
    if (!ok) {
        px_fail(file, line, "not so: %s", what);
    }
}

void px_eq(const char *file, int line, const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        px_fail(file, line, "%s is %llu (0x%llx, 0%llo), expected %llu (0x%llx, 0%llo)", what,
                (unsigned long long)got, (unsigned long long)got, (unsigned long long)got,
                (unsigned long long)want, (unsigned long long)want, (unsigned long long)want);
    }
}

void px_says(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (strcmp(got, want) != 0) {
        px_fail(file, line, "%s is \"%.200s\", expected \"%.200s\"", what, got, want);
    }
}

size_t px_failures(void)
{
    return px.failures;
}

const char *px_self(void)
{
    return px.self;
}

const char *px_second(void)
{
    if (px.dir2 == NULL) {
        return NULL;
    }
    if ((size_t)snprintf(px.second, sizeof(px.second), "%s/%s/%s", px.dir2, px.base, px.name) >=
        sizeof(px.second)) {
        return NULL;
    }
    return px.second;
}

pid_t px_spawn(void (*fn)(void *arg), void *arg)
{
    pid_t pid;

    fflush(stdout);
    pid = (pid_t)PX_OK(fork());
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        px.child = true;
        px.failures = 0;
        fn(arg);
        fflush(stdout);
        _exit(px.failures > 0);
    }
    return pid;
}

/* ---- running ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    if (remove(path) != 0) {
        px_fail(PX_AT, "cleaning up: %.300s: %s", path, px_errno_name(errno));
    }
    return 0;
}

static void on_alarm(int sig)
{
    static const char text[] = "# the case hangs\nnot ok - a case hangs\n";

    (void)sig;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

/* A page of a map that the file system could not give. */
static void on_bus_error(int sig)
{
    (void)sig;
    px_fail(PX_AT, "SIGBUS: a page of a map could not be read");
    leave(1);
}

static bool matches(const char *const *patterns, size_t n, const char *name, const char **ret)
{
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(patterns[i], '=');
        char p[128];

        snprintf(p, sizeof(p), "%.*s", eq != NULL ? (int)(eq - patterns[i]) : 120, patterns[i]);
        if (fnmatch(p, name, 0) == 0) {
            *ret = eq != NULL ? eq + 1 : "";
            return true;
        }
    }
    return false;
}

static void enter(const char *name)
{
    px.name = name;
    if ((size_t)snprintf(px.path, sizeof(px.path), "%s/%s/%s", px.dir, px.base, name) >=
        sizeof(px.path)) {
        px_skip("the path of DIR is too long");
    }
    umask(0);
    PX_OK(mkdir(px.path, 0777));
    PX_OK(chdir(px.path));
    umask(022);
}

static enum outcome run_here(const char *name, void (*fn)(void), size_t matrix)
{
    volatile int how;

    px.failures = 0;
    how = sigsetjmp(px.out, 1);
    if (how == 0) {
        enter(name);
        if (fn != NULL) {
            fn();
        } else {
            px_matrix_run(matrix);
        }
    }
    px_root();
    umask(022);
    if (chdir("/") == 0 && px.path[0] != '\0') {
        nftw(px.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    return px.failures > 0 ? FAILED : how == 2 ? SKIPPED : PASSED;
}

static void run_one(const char *name, void (*fn)(void), size_t matrix)
{
    const char *reason = "";
    struct timespec t0, t1;
    enum outcome o;

    if (px.nonly > 0 && !matches(px.only, px.nonly, name, &reason)) {
        return;
    }
    if (px.list) {
        printf("%s\n", name);
        return;
    }
    px.number++;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    if (matches(px.skip, px.nskip, name, &reason)) {
        snprintf(px.reason, sizeof(px.reason), "%s", reason);
        o = SKIPPED;
    } else {
        alarm(CASE_SECONDS);
        o = run_here(name, fn, matrix);
        alarm(0);
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    px.count[o]++;
    if (o == SKIPPED) {
        printf("ok %zu - %s # SKIP %s\n", px.number, name, px.reason);
    } else {
        printf("%s %zu - %s # %.2f s\n", o == PASSED ? "ok" : "not ok", px.number, name,
               (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
    }
    fflush(stdout);
}

static void run_all(void)
{
    char name[256];

    for (size_t i = 0; i < px_matrix_count(); i++) {
        px_matrix_name(i, name, sizeof(name));
        run_one(name, NULL, i);
    }
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (size_t i = 0; i < groups[g]->n; i++) {
            snprintf(name, sizeof(name), "%s.%s", groups[g]->name, groups[g]->tests[i].name);
            run_one(name, groups[g]->tests[i].fn, 0);
        }
    }
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(a, "--list") == 0) {
            px.list = true;
            continue;
        }
        if (v == NULL) {
            return false;
        }
        i++;
        if (strcmp(a, "--dir") == 0) {
            px.dir = v;
        } else if (strcmp(a, "--dir2") == 0) {
            px.dir2 = v;
        } else if (strcmp(a, "--only") == 0 && px.nonly < PATTERNS_MAX) {
            px.only[px.nonly++] = v;
        } else if (strcmp(a, "--skip") == 0 && px.nskip < PATTERNS_MAX && strchr(v, '=') != NULL) {
            px.skip[px.nskip++] = v;
        } else {
            return false;
        }
    }
    return px.list || px.dir != NULL;
}

/* What a case runs to have a program that is busy: ends when its standard input does. */
static int hold(void)
{
    char c = 'r';

    (void)!write(STDOUT_FILENO, &c, 1);
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
    return 0;
}

int main(int argc, char **argv)
{
    char real[PATH_MAX], real2[PATH_MAX];

    if (argc == 2 && strcmp(argv[1], "--hold") == 0) {
        return hold();
    }
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: posix-suite --dir DIR [--dir2 DIR] [--only PATTERN]... [--skip "
                        "PATTERN=REASON]...\n"
                        "       posix-suite --list [--only PATTERN]...\n");
        return 2;
    }
    if (px.list) {
        run_all();
        return 0;
    }
    if (geteuid() != 0) {
        fprintf(stderr, "posix: users are changed, which needs root\n");
        return 2;
    }
    if (realpath(px.dir, real) == NULL || (px.dir2 != NULL && realpath(px.dir2, real2) == NULL) ||
        readlink("/proc/self/exe", px.self, sizeof(px.self) - 1) < 0) {
        perror("posix");
        return 2;
    }
    px.dir = real;
    px.dir2 = px.dir2 != NULL ? real2 : NULL;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    signal(SIGBUS, on_bus_error);
    px_root();
    umask(022);
    snprintf(px.base, sizeof(px.base), "px.%d", (int)getpid());
    if (chdir(px.dir) != 0 || mkdir(px.base, 0755) != 0) {
        perror(px.dir);
        return 2;
    }
    run_all();
    printf("1..%zu\n", px.number);
    printf("# passed %zu, failed %zu, skipped %zu\n", px.count[PASSED], px.count[FAILED],
           px.count[SKIPPED]);
    if (chdir(px.dir) != 0 || rmdir(px.base) != 0) {
        perror(px.base);
        return 1;
    }
    return px.count[FAILED] > 0 || px.number == 0;
}

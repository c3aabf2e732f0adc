/* SPDX-License-Identifier: Apache-2.0
 *
 * The POSIX suite's own small language. A case is a function; it starts in an empty directory of
 * its own (mode 0777, owned by root) and says what each call must answer:
 *
 *     px_file("f", 0644);
 *     px_user(U1, G1);
 *     PX_ERR(chmod("f", 0600), EPERM);
 *     px_root();
 *     PX_EQ(px_mode("f"), 0644);
 *
 * PX_OK ends the case when the call fails (what follows would make no sense); the others note the
 * failure and go on. The runner removes what a case leaves behind and counts as a failure if that
 * does not work. One thread; a case may fork (px_in_child, px_spawn).
 *
 * Users are changed in the process itself, real and effective ids, keeping 0 as the saved id, so
 * that px_root() leads back; the kernel drops the capabilities with the effective id.
 */
#ifndef PX_H
#define PX_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Users and groups with nothing to do with the machine's. */
#define U1 65533u
#define U2 64001u
#define U3 64002u
#define G1 65532u
#define G2 64011u
#define G3 64012u

#define KI UINT64_C(1024)
#define MI (KI * KI)
#define GI (KI * MI)

struct px_test {
    const char *name;
    void (*fn)(void);
};

struct px_group {
    const char *name;
    const struct px_test *tests;
    size_t n;
};

#define PX_GROUP(g, ...)                                                                           \
    static const struct px_test px_##g##_tests[] = {__VA_ARGS__};                                  \
    const struct px_group px_group_##g = {#g, px_##g##_tests,                                      \
                                          sizeof(px_##g##_tests) / sizeof(px_##g##_tests[0])}
#define T(f)                                                                                       \
    {                                                                                              \
#f, f                                                                                      \
    }

#define PX_AT           __FILE__, __LINE__
#define PX_OK(call)     px_ok(PX_AT, #call, (errno = 0, (long long)(call)))
#define PX_ERR(call, e) px_err(PX_AT, #call, (errno = 0, (long long)(call)), e, e)
/* Where POSIX or the kernels leave a choice. */
#define PX_ERR2(call, e1, e2) px_err(PX_AT, #call, (errno = 0, (long long)(call)), e1, e2)
#define PX_CHECK(cond)        px_check(PX_AT, #cond, cond)
#define PX_EQ(a, b)           px_eq(PX_AT, #a, (uint64_t)(a), (uint64_t)(b))
#define PX_SAYS(a, b)         px_says(PX_AT, #a, a, b)
#define PX_FAIL(...)          px_fail(PX_AT, __VA_ARGS__)
/* Ends the case. */
#define PX_SKIP(...) px_skip(__VA_ARGS__)
/* What of "mtime" and "ctime" moved since px_see; "m", "c", "cm" or "". */
#define PX_MOVED(name, before, which) px_moved(PX_AT, name, before, which)

long long px_ok(const char *file, int line, const char *what, long long got);
void px_err(const char *file, int line, const char *what, long long got, int e1, int e2);
void px_check(const char *file, int line, const char *what, bool ok);
void px_eq(const char *file, int line, const char *what, uint64_t got, uint64_t want);
void px_says(const char *file, int line, const char *what, const char *got, const char *want);
void px_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void px_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *px_errno_name(int e);

/* ---- what a case is made of; each ends the case when it cannot ---- */

void px_file(const char *name, mode_t mode);                 /* empty, exactly this mode */
void px_dir(const char *name, mode_t mode);                  /* exactly this mode */
void px_own(const char *name, uid_t uid, gid_t gid);         /* lchown; clears setuid and setgid */
void px_put(const char *name, const void *data, size_t len); /* made 0666 or replaced */
/* All types: "file dir link dangling fifo sock" made with these names in the current directory. */
void px_zoo(void);
extern const char *const px_zoo_names[]; /* ends with NULL */

struct stat px_stat(const char *name); /* lstat */
mode_t px_mode(const char *name);      /* the 12 bits */
nlink_t px_nlink(const char *name);
uint64_t px_size(const char *name);
bool px_exists(const char *name); /* lstat; anything but ENOENT ends the case */
/* true: name holds exactly this. */
bool px_holds(const char *name, const void *data, size_t len);

/* lstat, and the file system's clock has moved when it returns. */
struct stat px_see(const char *name);
void px_tick(void);
int px_time_cmp(struct timespec a, struct timespec b);
void px_moved(const char *file, int line, const char *name, const struct stat *before,
              const char *which);

void px_user(uid_t uid, gid_t gid); /* no other groups */
void px_user_in(uid_t uid, gid_t gid, const gid_t *groups, size_t n);
void px_root(void);

/* A pattern that depends on the position: px_fill writes what px_filled checks. */
void px_fill(uint32_t seed, uint64_t off, void *buf, size_t len);
bool px_filled(uint32_t seed, uint64_t off, const void *buf, size_t len);
bool px_zeros(const void *buf, size_t len);

/* A new process; what fails there fails here. */
void px_in_child(void (*fn)(void *arg), void *arg);
/* Without waiting; px_join fails the case unless the child went well within 60 s. */
pid_t px_spawn(void (*fn)(void *arg), void *arg);
void px_join(pid_t pid);

/* Memory that cannot be read or written. */
void *px_bad_pointer(void);
/* A directory on another file system, NULL if none is found. */
const char *px_elsewhere(void);
/* The same directory through another mount (--dir2), for the current case; NULL without --dir2. */
const char *px_second(void);
const char *px_self(void); /* the path of this program */
size_t px_failures(void);

/* ---- the matrix: each path call with each errno every path can have ---- */

size_t px_matrix_count(void);
void px_matrix_name(size_t i, char *buf, size_t room);
void px_matrix_run(size_t i);

struct px_call {
    const char *name;
    int (*fn)(const char *path);
    unsigned flags;
};

#define PX_MAKES   1u  /* the name must not be there */
#define PX_CHANGES 2u  /* the file system, so EROFS */
#define PX_PARENT  4u  /* an entry of the directory: write permission there */
#define PX_FOLLOWS 8u  /* a symlink at the end */
#define PX_DIR     16u /* wants a directory */
#define PX_READS   32u /* needs the name only */

extern const struct px_call px_calls[];
extern const size_t px_ncalls;

#endif

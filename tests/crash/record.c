/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder: a preloaded object for tests, which writes down what a process does to the files
 * below one folder. What matters for a power failure is recorded, reads are not.
 *
 * Which file a descriptor stands for is the reader's business (disk.c); here it is only known
 * whether it lies below the folder, and its path, for the calls that are relative to it. run/ holds
 * sockets and is left out. A call that cannot be described is recorded as unknown, and the test
 * fails on it.
 *
 * _exit takes the lock too, so that a crash of HF_FAULT falls between a call and its record never.
 */
/* With it open and open64 would be one name; both are to be caught. */
#undef _FILE_OFFSET_BITS
#include "trace.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX   4096
#define PATH_MAX_ 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *base; /* NULL: nothing is recorded */
static char top[PATH_MAX_];
static size_t top_len;
static char *paths[FDS_MAX]; /* below the folder; "" is the folder itself */
static bool dsync[FDS_MAX];
static uint64_t syncs;

static void die(const char *what)
{
    (void)!write(STDERR_FILENO, what, strlen(what));
    abort();
}

static void put(uint32_t kind, int fd, uint64_t a, uint64_t b, const struct iovec *v, int n)
{
    struct trace_head *h = (struct trace_head *)(void *)base;
    struct trace_rec *r;
    uint64_t len = 0, at;
    uint8_t *p;

    for (int i = 0; i < n; i++)
        len += v[i].iov_len;
    at = atomic_fetch_add(&h->end, trace_span(len));
    if (at + trace_span(len) > TRACE_BYTES)
        die("recorder: the trace is full\n");
    r = (struct trace_rec *)(void *)(base + at);
    r->fd = fd;
    r->a = a;
    r->b = b;
    r->len = len;
    p = (uint8_t *)(r + 1);
    for (int i = 0; i < n; i++) {
        memcpy(p, v[i].iov_base, v[i].iov_len);
        p += v[i].iov_len;
    }
    atomic_thread_fence(memory_order_release);
    *(volatile uint32_t *)&r->kind = kind;
}

static void put_text(uint32_t kind, int fd, uint64_t a, const char *s)
{
    struct iovec v = {(void *)(uintptr_t)s, strlen(s)};

    put(kind, fd, a, 0, &v, 1);
}

static __attribute__((constructor)) void begin(void)
{
    const char *file = getenv(TRACE_FILE), *dir = getenv(TRACE_DIR);
    int fd;

    if (!file || !dir || strlen(dir) >= sizeof(top))
        return;
    fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        die("recorder: no trace\n");
    base = mmap(NULL, TRACE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    (void)syscall(SYS_close, fd);
    if (base == MAP_FAILED)
        die("recorder: cannot map the trace\n");
    top_len = strlen(dir);
    memcpy(top, dir, top_len + 1);
    put(TR_PROCESS, -1, 0, 0, NULL, 0);
}

/* ---- what is ours ---- */

/* The path below the folder; false: it is not there, or in run/. */
static bool ours(int dirfd, const char *path, char out[PATH_MAX_])
{
    char cwd[PATH_MAX_];
    int n;

    if (!base)
        return false;
    if (path[0] == '/' || dirfd == AT_FDCWD) {
        if (path[0] == '/')
            n = snprintf(cwd, sizeof(cwd), "%s", path);
        else if (getcwd(out, PATH_MAX_))
            n = snprintf(cwd, sizeof(cwd), "%s/%s", out, path);
        else
            return false;
        if (n >= (int)sizeof(cwd) || strncmp(cwd, top, top_len) != 0 ||
            (cwd[top_len] != '/' && cwd[top_len] != '\0'))
            return false;
        n = snprintf(out, PATH_MAX_, "%s", cwd + top_len + (cwd[top_len] == '/'));
    } else {
        if (dirfd < 0 || dirfd >= FDS_MAX || !paths[dirfd])
            return false;
        n = snprintf(out, PATH_MAX_, "%s%s%s", paths[dirfd], paths[dirfd][0] ? "/" : "", path);
    }
    return n < PATH_MAX_ && strncmp(out, "run/", 4) != 0 && strcmp(out, "run") != 0;
}

/* A regular file of ours. A stale entry (closed by the C library itself) shows here. */
static bool ours_fd(int fd)
{
    struct stat st;

    if (!base || fd < 0 || fd >= FDS_MAX || !paths[fd])
        return false;
    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static void forget(int fd)
{
    if (fd < 0 || fd >= FDS_MAX)
        return;
    free(paths[fd]);
    paths[fd] = NULL;
}

static void remember(int fd, const char *path, int flags)
{
    if (fd >= FDS_MAX)
        die("recorder: too many files\n");
    forget(fd);
    paths[fd] = strdup(path);
    dsync[fd] = (flags & O_DSYNC) != 0; /* O_SYNC holds this bit too */
}

static void unknown(const char *call, int dirfd, const char *path)
{
    char p[PATH_MAX_];

    if (ours(dirfd, path, p))
        put_text(TR_UNKNOWN, -1, 0, call);
}

/* ---- names ---- */

static int do_open(int dirfd, const char *path, int flags, mode_t mode)
{
    char p[PATH_MAX_];
    int fd;

    if (!base)
        return (int)syscall(SYS_openat, dirfd, path, flags, mode);
    pthread_mutex_lock(&lock);
    fd = (int)syscall(SYS_openat, dirfd, path, flags, mode);
    if (fd >= 0) {
        if (ours(dirfd, path, p)) {
            remember(fd, p, flags);
            put_text(TR_OPEN, fd, (uint64_t)flags, p);
        } else {
            forget(fd);
        }
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...);                                                    \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        mode_t m;                                                                                  \
                                                                                                   \
        va_start(ap, flags);                                                                       \
        m = mode_of(flags, ap);                                                                    \
        va_end(ap);                                                                                \
        return do_open(AT_FDCWD, path, flags, m);                                                  \
    }
#define OPENAT(name)                                                                               \
    int name(int dirfd, const char *path, int flags, ...);                                         \
    int name(int dirfd, const char *path, int flags, ...)                                          \
    {                                                                                              \
        va_list ap;                                                                                \
        mode_t m;                                                                                  \
                                                                                                   \
        va_start(ap, flags);                                                                       \
        m = mode_of(flags, ap);                                                                    \
        va_end(ap);                                                                                \
        return do_open(dirfd, path, flags, m);                                                     \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return do_open(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    return do_open(AT_FDCWD, path, flags, 0);
}
int __openat_2(int dirfd, const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags)
{
    return do_open(dirfd, path, flags, 0);
}
int creat(const char *path, mode_t mode)
{
    return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* Streams write from inside of the C library. Reading is nothing to us. */
#define FOPEN(name)                                                                                \
    FILE *name(const char *path, const char *mode);                                                \
    FILE *name(const char *path, const char *mode)                                                 \
    {                                                                                              \
        FILE *(*real)(const char *, const char *);                                                 \
                                                                                                   \
        *(void **)(&real) = dlsym(RTLD_NEXT, #name);                                               \
        if (mode[0] != 'r' || strchr(mode, '+'))                                                   \
            unknown(#name, AT_FDCWD, path);                                                        \
        return real(path, mode);                                                                   \
    }
FOPEN(fopen)
FOPEN(fopen64)

static void closed(int fd)
{
    if (base && fd >= 0 && fd < FDS_MAX && paths[fd]) {
        put(TR_CLOSE, fd, 0, 0, NULL, 0);
        forget(fd);
    }
}

int close(int fd)
{
    int rc;

    pthread_mutex_lock(&lock);
    closed(fd);
    rc = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&lock);
    return rc;
}

int closedir(DIR *d)
{
    int (*real)(DIR *);
    int rc;

    *(void **)(&real) = dlsym(RTLD_NEXT, "closedir");
    pthread_mutex_lock(&lock);
    closed(dirfd(d));
    rc = real(d);
    pthread_mutex_unlock(&lock);
    return rc;
}

int dup(int fd)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_dup, fd);
    if (rc >= 0 && ours_fd(fd)) {
        remember(rc, paths[fd], dsync[fd] ? O_DSYNC : 0);
        put(TR_DUP, rc, (uint64_t)fd, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int do_path(long call, uint32_t kind, int dirfd, const char *path, unsigned arg)
{
    char p[PATH_MAX_];
    int rc;

    pthread_mutex_lock(&lock);
    rc = (int)syscall(call, dirfd, path, arg);
    if (rc == 0 && ours(dirfd, path, p))
        put_text(kind, -1, 0, p);
    pthread_mutex_unlock(&lock);
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    return do_path(SYS_mkdirat, TR_MKDIR, AT_FDCWD, path, mode);
}
int mkdirat(int dirfd, const char *path, mode_t mode)
{
    return do_path(SYS_mkdirat, TR_MKDIR, dirfd, path, mode);
}
int unlink(const char *path)
{
    return do_path(SYS_unlinkat, TR_UNLINK, AT_FDCWD, path, 0);
}
int unlinkat(int dirfd, const char *path, int flags)
{
    return do_path(SYS_unlinkat, flags & AT_REMOVEDIR ? TR_RMDIR : TR_UNLINK, dirfd, path,
                   (unsigned)flags);
}
int rmdir(const char *path)
{
    return do_path(SYS_unlinkat, TR_RMDIR, AT_FDCWD, path, AT_REMOVEDIR);
}

/* Nobody renames or links: if someone begins to, disk.c has to learn what may be left of it. */
int renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags)
{
    unknown("rename", fd, from);
    unknown("rename", fd2, to);
    return (int)syscall(SYS_renameat2, fd, from, fd2, to, flags);
}
int renameat(int fd, const char *from, int fd2, const char *to)
{
    return renameat2(fd, from, fd2, to, 0);
}
int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int remove(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path);
}
int linkat(int fd, const char *from, int fd2, const char *to, int flags)
{
    unknown("link", fd2, to);
    return (int)syscall(SYS_linkat, fd, from, fd2, to, flags);
}
int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int symlinkat(const char *what, int fd, const char *path)
{
    unknown("symlink", fd, path);
    return (int)syscall(SYS_symlinkat, what, fd, path);
}
int symlink(const char *what, const char *path)
{
    return symlinkat(what, AT_FDCWD, path);
}
int truncate(const char *path, off_t size)
{
    unknown("truncate", AT_FDCWD, path);
    return (int)syscall(SYS_truncate, path, size);
}

/* ---- content ---- */

static void wrote(int fd, uint64_t off, const struct iovec *v, int n, ssize_t done)
{
    struct iovec part[64];
    size_t left = (size_t)done;
    int k = 0;

    for (; k < n && left > 0; k++) {
        if (k == 64)
            die("recorder: too many pieces\n");
        part[k] = v[k];
        if (part[k].iov_len > left)
            part[k].iov_len = left;
        left -= part[k].iov_len;
    }
    put(dsync[fd] ? TR_WRITE_SYNC : TR_WRITE, fd, off, 0, part, k);
}

/* off < 0: at the file's own position. */
static ssize_t do_write(int fd, const struct iovec *v, int n, off_t off)
{
    ssize_t done;

    pthread_mutex_lock(&lock);
    done = off < 0 ? syscall(SYS_writev, fd, v, n) : syscall(SYS_pwritev, fd, v, n, off, 0);
    if (done > 0 && ours_fd(fd)) {
        int e = errno;

        if (off < 0)
            off = lseek(fd, 0, SEEK_CUR) - done;
        wrote(fd, (uint64_t)off, v, n, done);
        errno = e;
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    struct iovec v = {(void *)(uintptr_t)buf, len};

    /* Not a file of ours, e.g. a socket: it may block, without the lock. */
    return ours_fd(fd) ? do_write(fd, &v, 1, -1) : syscall(SYS_write, fd, buf, len);
}
ssize_t writev(int fd, const struct iovec *v, int n)
{
    return ours_fd(fd) ? do_write(fd, v, n, -1) : syscall(SYS_writev, fd, v, n);
}
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
    struct iovec v = {(void *)(uintptr_t)buf, len};

    return ours_fd(fd) ? do_write(fd, &v, 1, off) : syscall(SYS_pwrite64, fd, buf, len, off);
}
ssize_t pwrite64(int fd, const void *buf, size_t len, off_t off)
{
    return pwrite(fd, buf, len, off);
}
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t off)
{
    return ours_fd(fd) ? do_write(fd, v, n, off) : syscall(SYS_pwritev, fd, v, n, off, 0);
}
ssize_t pwritev64(int fd, const struct iovec *v, int n, off_t off)
{
    return pwritev(fd, v, n, off);
}
ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t off, int flags)
{
    if (ours_fd(fd))
        put_text(TR_UNKNOWN, fd, 0, "pwritev2");
    return syscall(SYS_pwritev2, fd, v, n, off, 0, flags);
}

static int print(int fd, const char *fmt, va_list ap)
{
    char text[4096];
    int n = vsnprintf(text, sizeof(text), fmt, ap);

    if (n < 0 || n >= (int)sizeof(text))
        die("recorder: long dprintf\n");
    return write(fd, text, (size_t)n) == n ? n : -1;
}
int vdprintf(int fd, const char *fmt, va_list ap)
{
    return print(fd, fmt, ap);
}
int dprintf(int fd, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = print(fd, fmt, ap);
    va_end(ap);
    return n;
}
int __dprintf_chk(int fd, int flag, const char *fmt, ...);
int __dprintf_chk(int fd, int flag, const char *fmt, ...)
{
    va_list ap;
    int n;

    (void)flag;
    va_start(ap, fmt);
    n = print(fd, fmt, ap);
    va_end(ap);
    return n;
}

int ftruncate(int fd, off_t size)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_ftruncate, fd, size);
    if (rc == 0 && ours_fd(fd))
        put(TR_TRUNCATE, fd, (uint64_t)size, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return rc;
}
int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

int fallocate(int fd, int mode, off_t off, off_t len)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = (int)syscall(SYS_fallocate, fd, mode, off, len);
    if (rc == 0 && ours_fd(fd)) {
        if (mode == 0)
            put(TR_ALLOCATE, fd, (uint64_t)(off + len), 0, NULL, 0);
        else if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
            put(TR_PUNCH, fd, (uint64_t)off, (uint64_t)len, NULL, 0);
        else
            put_text(TR_UNKNOWN, fd, 0, "fallocate");
    }
    pthread_mutex_unlock(&lock);
    return rc;
}
int fallocate64(int fd, int mode, off_t off, off_t len)
{
    return fallocate(fd, mode, off, len);
}
int posix_fallocate(int fd, off_t off, off_t len)
{
    return fallocate(fd, 0, off, len) == 0 ? 0 : errno;
}

/* ---- syncing: without the lock, so that syncs overlap with writes as they do otherwise ---- */

static int do_sync(int fd, long call)
{
    bool mine = ours_fd(fd);
    uint64_t id = 0;
    int rc;

    if (mine) {
        pthread_mutex_lock(&lock);
        id = ++syncs;
        put(TR_SYNC_BEGIN, fd, id, 0, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    rc = (int)syscall(call, fd);
    if (mine) {
        int e = errno;

        pthread_mutex_lock(&lock);
        put(TR_SYNC_END, fd, id, rc == 0, NULL, 0);
        pthread_mutex_unlock(&lock);
        errno = e;
    }
    return rc;
}

int fsync(int fd)
{
    return do_sync(fd, SYS_fsync);
}
int fdatasync(int fd)
{
    return do_sync(fd, SYS_fdatasync);
}
int syncfs(int fd)
{
    if (ours_fd(fd))
        put_text(TR_UNKNOWN, fd, 0, "syncfs");
    return (int)syscall(SYS_syncfs, fd);
}
int sync_file_range(int fd, off_t off, off_t len, unsigned flags)
{
    if (ours_fd(fd))
        put_text(TR_UNKNOWN, fd, 0, "sync_file_range");
    return (int)syscall(SYS_sync_file_range, fd, off, len, flags);
}
int msync(void *addr, size_t len, int flags)
{
    if (base)
        put_text(TR_UNKNOWN, -1, 0, "msync");
    return (int)syscall(SYS_msync, addr, len, flags);
}

void _exit(int status)
{
    pthread_mutex_lock(&lock);
    (void)syscall(SYS_exit_group, status);
    abort();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, closing and the pool of the posix backend. Argument: fds=N, files kept open (default
 * 512).
 */
#include "posix_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FORMAT          "holdfast-posix 1\n"
#define THREADS_DEFAULT 4u
#define THREADS_MAX     64u

static void *pool_thread(void *arg)
{
    struct hf_be *be = arg;

    pthread_mutex_lock(&be->pool.lock);
    for (;;) {
        struct hf_be_io *io = be->pool.head;

        if (!io && be->pool.stop)
            break;
        if (!io) {
            pthread_cond_wait(&be->pool.cond, &be->pool.lock);
            continue;
        }
        be->pool.head = io->be[0];
        pthread_mutex_unlock(&be->pool.lock);
        px_run(be, io);
        io->done(io);
        pthread_mutex_lock(&be->pool.lock);
    }
    pthread_mutex_unlock(&be->pool.lock);
    return NULL;
}

static void posix_submit(struct hf_be *be, struct hf_be_io *io)
{
    if (io->op == HF_BE_READ && px_try_read(be, io)) {
        io->done(io);
        return;
    }
    io->be[0] = NULL;
    pthread_mutex_lock(&be->pool.lock);
    if (be->pool.head)
        be->pool.tail->be[0] = io;
    else
        be->pool.head = io;
    be->pool.tail = io;
    pthread_cond_signal(&be->pool.cond);
    pthread_mutex_unlock(&be->pool.lock);
}

static void pool_stop(struct hf_be *be)
{
    pthread_mutex_lock(&be->pool.lock);
    be->pool.stop = true;
    pthread_cond_broadcast(&be->pool.cond);
    pthread_mutex_unlock(&be->pool.lock);
    for (unsigned i = 0; i < be->pool.nthreads; i++)
        pthread_join(be->pool.threads[i], NULL);
    free(be->pool.threads);
}

static int pool_start(struct hf_be *be, unsigned threads)
{
    be->pool.threads = calloc(threads, sizeof(*be->pool.threads));
    if (!be->pool.threads)
        return HF_BE_ENOMEM;
    while (be->pool.nthreads < threads) {
        if (pthread_create(&be->pool.threads[be->pool.nthreads], NULL, pool_thread, be)) {
            pool_stop(be);
            return HF_BE_ENOMEM;
        }
        be->pool.nthreads++;
    }
    return 0;
}

static int fail(char *err, size_t err_bytes, const char *path, const char *what)
{
    int e = errno;

    (void)snprintf(err, err_bytes, "posix: %s %.150s: %s", what, path, strerror(e));
    return px_status(e);
}

/* Takes the lock of the folder; another holder is named. */
static int lock_take(struct hf_be *be, const char *path, char *err, size_t err_bytes)
{
    char pid[32] = "";
    ssize_t n;

    be->lock_fd = openat(be->root, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (be->lock_fd < 0)
        return fail(err, err_bytes, path, "cannot make the lock file in");
    if (flock(be->lock_fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return fail(err, err_bytes, path, "cannot lock");
        n = pread(be->lock_fd, pid, sizeof(pid) - 1, 0);
        pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
        (void)snprintf(err, err_bytes, "posix: %.150s is in use by process %s", path,
                       pid[0] ? pid : "(unknown)");
        return HF_BE_EIO;
    }
    (void)snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(be->lock_fd, 0) ||
        pwrite(be->lock_fd, pid, strlen(pid), 0) != (ssize_t)strlen(pid))
        return fail(err, err_bytes, path, "cannot write the lock file in");
    return 0;
}

/* Makes the 16 x 16 folders and syncs the ones that hold new names. */
static int dirs_make(struct hf_be *be, const char *path, char *err, size_t err_bytes)
{
    static const char hex[] = "0123456789abcdef";

    for (unsigned i = 0; i < 16; i++) {
        const char top[] = {hex[i], '\0'};
        int fd;

        if (mkdirat(be->root, top, 0700) && errno != EEXIST)
            return fail(err, err_bytes, path, "cannot make a folder in");
        fd = openat(be->root, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return fail(err, err_bytes, path, "cannot open a folder in");
        for (unsigned j = 0; j < 16; j++) {
            const char sub[] = {hex[j], '\0'};

            if (mkdirat(fd, sub, 0700) && errno != EEXIST) {
                close(fd);
                return fail(err, err_bytes, path, "cannot make a folder in");
            }
        }
        if (fsync(fd)) {
            close(fd);
            return fail(err, err_bytes, path, "cannot sync a folder in");
        }
        close(fd);
    }
    return 0;
}

/* An existing folder must be of this format; a new one is made. The format file is written last, so
 * a folder without one is new or was left half made. */
static int format_check(struct hf_be *be, const char *path, char *err, size_t err_bytes)
{
    char text[64] = "";
    int fd = openat(be->root, "format", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;
    ssize_t n;

    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        if (n == (ssize_t)strlen(FORMAT) && memcmp(text, FORMAT, (size_t)n) == 0) {
            /* perhaps of a process that was killed before it could sync */
            rc = fsync(fd) || fsync(be->root);
            close(fd);
            return rc ? fail(err, err_bytes, path, "cannot sync the format file in") : 0;
        }
        close(fd);
        if (n != 0) { /* empty: its writing was cut off */
            (void)snprintf(err, err_bytes,
                           "posix: %.150s has a format that this version does not know", path);
            return HF_BE_EINVAL;
        }
    } else if (errno != ENOENT) {
        return fail(err, err_bytes, path, "cannot read the format file in");
    }
    rc = dirs_make(be, path, err, err_bytes);
    if (rc)
        return rc;
    fd = openat(be->root, "format", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail(err, err_bytes, path, "cannot make the format file in");
    if (write(fd, FORMAT, strlen(FORMAT)) != (ssize_t)strlen(FORMAT) || fsync(fd) ||
        fsync(be->root)) {
        close(fd);
        return fail(err, err_bytes, path, "cannot write the format file in");
    }
    close(fd);
    return 0;
}

static int parse_args(const char *args, unsigned *ret_fds, char *err, size_t err_bytes)
{
    char *end = NULL;
    unsigned long n = 0;

    if (!args || !*args)
        return 0;
    errno = 0;
    if (strncmp(args, "fds=", 4) == 0)
        n = strtoul(args + 4, &end, 10);
    if (!end || *end || errno || n < 1 || n > 1000000) {
        (void)snprintf(err, err_bytes, "posix: '%.64s' is not fds=N", args);
        return HF_BE_EINVAL;
    }
    *ret_fds = (unsigned)n;
    return 0;
}

/* Opens and checks the folder; on failure the caller closes what was opened. */
static int root_open(struct hf_be *be, const char *path, char *err, size_t err_bytes)
{
    uint64_t n = 0;
    int rc;

    if (mkdir(path, 0700) && errno != EEXIST)
        return fail(err, err_bytes, path, "cannot make");
    be->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (be->root < 0)
        return fail(err, err_bytes, path, "cannot open");
    rc = lock_take(be, path, err, err_bytes);
    if (rc == 0)
        rc = format_check(be, path, err, err_bytes);
    if (rc)
        return rc;
    rc = px_count(be, &n);
    if (rc)
        (void)snprintf(err, err_bytes, "posix: cannot list %.150s", path);
    atomic_store(&be->objects, n);
    return rc;
}

static void root_close(struct hf_be *be)
{
    if (be->lock_fd >= 0)
        close(be->lock_fd);
    if (be->root >= 0)
        close(be->root);
}

static int posix_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    unsigned fds = 512, threads = o->threads ? o->threads : THREADS_DEFAULT;
    struct hf_be *be;
    int rc;

    if (!o->path || !*o->path) {
        (void)snprintf(err, err_bytes, "posix: a path is needed");
        return HF_BE_EINVAL;
    }
    rc = parse_args(o->args, &fds, err, err_bytes);
    if (rc)
        return rc;
    be = calloc(1, sizeof(*be));
    if (!be) {
        (void)snprintf(err, err_bytes, "posix: out of memory");
        return HF_BE_ENOMEM;
    }
    be->root = be->lock_fd = -1;
    px_files_init(be, fds);
    pthread_mutex_init(&be->pool.lock, NULL);
    pthread_cond_init(&be->pool.cond, NULL);
    pthread_mutex_init(&be->list.lock, NULL);
    rc = root_open(be, o->path, err, err_bytes);
    if (rc)
        goto fail;
    rc = pool_start(be, threads < THREADS_MAX ? threads : THREADS_MAX);
    if (rc) {
        (void)snprintf(err, err_bytes, "posix: cannot start threads");
        goto fail;
    }
    *ret = be;
    return 0;
fail:
    root_close(be);
    px_files_fini(be);
    pthread_mutex_destroy(&be->list.lock);
    pthread_cond_destroy(&be->pool.cond);
    pthread_mutex_destroy(&be->pool.lock);
    free(be);
    return rc;
}

static void posix_close(struct hf_be *be)
{
    pool_stop(be);
    px_files_fini(be);
    root_close(be);
    free(be->list.ids);
    pthread_mutex_destroy(&be->list.lock);
    pthread_cond_destroy(&be->pool.cond);
    pthread_mutex_destroy(&be->pool.lock);
    free(be);
}

static int posix_space(struct hf_be *be, struct hf_be_space *ret)
{
    struct statvfs st;
    struct stat root;

    if (fstatvfs(be->root, &st) || fstat(be->root, &root))
        return px_status(errno);
    ret->domain = (uint64_t)root.st_dev + 1;
    ret->capacity_bytes = (uint64_t)st.f_blocks * st.f_frsize;
    ret->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
    ret->objects = atomic_load(&be->objects);
    return 0;
}

static const struct hf_backend_ops ops = {
    .struct_size = sizeof(ops),
    .abi_major = HF_BE_ABI_MAJOR,
    .abi_minor = HF_BE_ABI_MINOR,
    .name = "posix",
    .caps = HF_BE_CAP_PERSISTENT | HF_BE_CAP_PUNCH,
    .open = posix_open,
    .close = posix_close,
    .submit = posix_submit,
    .space = posix_space,
    .list = px_list,
};

const struct hf_backend_ops *hf_backend_plugin(void);
__attribute__((visibility("default"))) const struct hf_backend_ops *hf_backend_plugin(void)
{
    return &ops;
}

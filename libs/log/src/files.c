/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "holdfast/err.h"

static int last_error(void)
{
    return hf_err_from_errno(errno);
}

static int posix_open(const struct wal_files *f, const char *path, bool create, int *ret_fd)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);

    (void)f;
    if (fd < 0)
        return last_error();
    *ret_fd = fd;
    return 0;
}

static void posix_close(const struct wal_files *f, int fd)
{
    (void)f;
    close(fd);
}

static int posix_size(const struct wal_files *f, int fd, uint64_t *ret)
{
    struct stat st;

    (void)f;
    if (fstat(fd, &st) != 0)
        return last_error();
    if (!S_ISREG(st.st_mode))
        return HF_E_INVAL;
    *ret = (uint64_t)st.st_size;
    return 0;
}

static int posix_read(const struct wal_files *f, int fd, uint64_t off, void *buf, size_t len)
{
    char *p = buf;

    (void)f;
    while (len > 0) {
        ssize_t n = pread(fd, p, len, (off_t)off);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return last_error();
        if (n == 0)
            return HF_E_IO;
        p += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static int posix_write(const struct wal_files *f, int fd, uint64_t off, const void *buf, size_t len)
{
    const char *p = buf;

    (void)f;
    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, (off_t)off);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return last_error();
        p += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static int posix_sync(const struct wal_files *f, int fd)
{
    (void)f;
    return fdatasync(fd) != 0 ? last_error() : 0;
}

static int posix_allocate(const struct wal_files *f, int fd, uint64_t bytes)
{
    int rc;

    (void)f;
    do {
        rc = fallocate(fd, 0, 0, (off_t)bytes);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return last_error();
    /* A file system without it: the size at least; zeroing takes the blocks. */
    return ftruncate(fd, (off_t)bytes) != 0 ? last_error() : 0;
}

static int posix_remove(const struct wal_files *f, const char *path)
{
    (void)f;
    return unlink(path) != 0 ? last_error() : 0;
}

static int posix_sync_dir(const struct wal_files *f, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    (void)f;
    if (fd < 0)
        return last_error();
    rc = fsync(fd) != 0 ? last_error() : 0;
    close(fd);
    return rc;
}

static int posix_space(const struct wal_files *f, const char *path, uint64_t *ret_free_bytes)
{
    struct statvfs v;

    (void)f;
    if (statvfs(path, &v) != 0)
        return last_error();
    *ret_free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    return 0;
}

const struct wal_files wal_files_posix = {
    .open = posix_open,
    .close = posix_close,
    .size = posix_size,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .allocate = posix_allocate,
    .remove = posix_remove,
    .sync_dir = posix_sync_dir,
    .space = posix_space,
};

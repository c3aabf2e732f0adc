/* SPDX-License-Identifier: Apache-2.0
 *
 * The waiting form of each call: the asynchronous one, and a callback that stores the result and
 * wakes the caller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs_priv.h"

struct waiter {
    pthread_mutex_t lock; /* guards done */
    pthread_cond_t cond;
    bool done;
    int64_t n; /* 0, a count, or a negative errno */
    struct hf_attr *attr;
    struct hf_file *file;
    struct hf_statfs *st;
    uint8_t *buf; /* data goes here, up to cap */
    size_t cap;
    struct hf_dirent *page;
    size_t entries;
    bool eof;
};

static int begin(struct waiter *w, const struct hf_fs *fs)
{
    for (unsigned i = 0; i < fs->nengines; i++)
        if (engine_here(fs->engines[i]))
            return -EDEADLK;
    *w = (struct waiter){.done = false};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, NULL);
    return 0;
}

static void wake(struct waiter *w, int64_t n)
{
    pthread_mutex_lock(&w->lock);
    w->n = n;
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static int64_t await(struct waiter *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->done)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->lock);
    return w->n;
}

static void got_done(void *arg, int err)
{
    wake(arg, err);
}

static void got_attr(void *arg, int err, const struct hf_attr *a)
{
    struct waiter *w = arg;

    if (a && w->attr)
        *w->attr = *a;
    wake(w, err);
}

static void got_open(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct waiter *w = arg;

    w->file = f;
    got_attr(w, err, a);
}

static void got_data(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    struct waiter *w = arg;
    size_t at = 0;

    for (unsigned i = 0; i < niov && at < w->cap; i++) {
        size_t len = iov[i].iov_len < w->cap - at ? iov[i].iov_len : w->cap - at;

        memcpy(w->buf + at, iov[i].iov_base, len);
        at += len;
    }
    wake(w, err ? err : (int64_t)n);
}

static void got_size(void *arg, int64_t n)
{
    wake(arg, n);
}

static void got_statfs(void *arg, int err, const struct hf_statfs *st)
{
    struct waiter *w = arg;

    if (st)
        *w->st = *st;
    wake(w, err);
}

/* ---- objects ---- */

#define BEGIN_OR_RETURN(w, fs)                                                                     \
    do {                                                                                           \
        int rc_ = begin(w, fs);                                                                    \
        if (rc_)                                                                                   \
            return rc_;                                                                            \
    } while (0)

int hf_lookup(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
              struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_lookup_async(fs, u, dir, name, got_attr, &w);
    return (int)await(&w);
}

int hf_getattr(struct hf_fs *fs, struct hf_handle h, struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_getattr_async(fs, h, got_attr, &w);
    return (int)await(&w);
}

int hf_setattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, struct hf_file *f,
               const struct hf_setattr *set, struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_setattr_async(fs, u, h, f, set, got_attr, &w);
    return (int)await(&w);
}

int hf_access(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int mask)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_access_async(fs, u, h, mask, got_done, &w);
    return (int)await(&w);
}

ssize_t hf_readlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, char *buf,
                    size_t bytes)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.buf = (uint8_t *)buf;
    w.cap = bytes;
    hf_readlink_async(fs, u, h, got_data, &w);
    return (ssize_t)await(&w);
}

int hf_mkdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
             mode_t mode, mode_t umask, struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_mkdir_async(fs, u, dir, name, mode, umask, got_attr, &w);
    return (int)await(&w);
}

int hf_mknod(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
             mode_t mode, mode_t umask, uint32_t rdev_major, uint32_t rdev_minor,
             struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_mknod_async(fs, u, dir, name, mode, umask, rdev_major, rdev_minor, got_attr, &w);
    return (int)await(&w);
}

int hf_symlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
               const char *target, struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_symlink_async(fs, u, dir, name, target, got_attr, &w);
    return (int)await(&w);
}

int hf_link(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, struct hf_handle dir,
            const char *name, struct hf_attr *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret;
    hf_link_async(fs, u, h, dir, name, got_attr, &w);
    return (int)await(&w);
}

int hf_unlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_unlink_async(fs, u, dir, name, got_done, &w);
    return (int)await(&w);
}

int hf_rmdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_rmdir_async(fs, u, dir, name, got_done, &w);
    return (int)await(&w);
}

int hf_rename(struct hf_fs *fs, const struct hf_user *u, struct hf_handle from_dir,
              const char *from, struct hf_handle to_dir, const char *to, unsigned flags)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_rename_async(fs, u, from_dir, from, to_dir, to, flags, got_done, &w);
    return (int)await(&w);
}

int hf_statfs(struct hf_fs *fs, struct hf_statfs *ret)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.st = ret;
    hf_statfs_async(fs, got_statfs, &w);
    return (int)await(&w);
}

/* ---- extended attributes ---- */

/* What came must fit, unless only the length was asked for. */
static ssize_t fit(struct waiter *w)
{
    int64_t n = await(w);

    return n > 0 && w->cap > 0 && (uint64_t)n > w->cap ? -ERANGE : (ssize_t)n;
}

ssize_t hf_getxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name,
                    void *buf, size_t bytes)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.buf = buf;
    w.cap = bytes;
    hf_getxattr_async(fs, u, h, name, got_data, &w);
    return fit(&w);
}

int hf_setxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name,
                const void *value, size_t len, int flags)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_setxattr_async(fs, u, h, name, value, len, flags, got_done, &w);
    return (int)await(&w);
}

ssize_t hf_listxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, char *buf,
                     size_t bytes)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    w.buf = (uint8_t *)buf;
    w.cap = bytes;
    hf_listxattr_async(fs, u, h, got_data, &w);
    return fit(&w);
}

int hf_removexattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, fs);
    hf_removexattr_async(fs, u, h, name, got_done, &w);
    return (int)await(&w);
}

/* ---- listings ---- */

/* The page is valid until the callback returns: a copy that the caller can walk. */
static void got_page(void *arg, int err, const struct hf_dirent *e, size_t n, bool eof)
{
    struct waiter *w = arg;
    size_t names = 0;
    struct hf_attr *a;
    char *name;

    for (size_t i = 0; i < n; i++)
        names += strlen(e[i].name) + 1;
    w->eof = eof;
    w->entries = n;
    w->page = n ? malloc(n * (sizeof(*e) + sizeof(*a)) + names) : NULL;
    if (n && !w->page) {
        wake(w, -ENOMEM);
        return;
    }
    a = (struct hf_attr *)(void *)(w->page + n);
    name = (char *)(a + n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(e[i].name) + 1;

        w->page[i] = e[i];
        w->page[i].name = memcpy(name, e[i].name, len);
        name += len;
        if (e[i].attr) {
            a[i] = *e[i].attr;
            w->page[i].attr = &a[i];
        }
    }
    wake(w, err);
}

#define PAGE_ENTRIES 1024u

int hf_readdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, unsigned flags,
               int (*each)(void *arg, const struct hf_dirent *e), void *arg)
{
    uint64_t cookie = 0;
    struct waiter w;
    int rc;

    do {
        BEGIN_OR_RETURN(&w, fs);
        hf_readdir_async(fs, u, dir, cookie, PAGE_ENTRIES, flags, got_page, &w);
        rc = (int)await(&w);
        for (size_t i = 0; i < w.entries && rc == 0; i++) {
            cookie = w.page[i].cookie;
            rc = each(arg, &w.page[i]);
        }
        free(w.page);
    } while (rc == 0 && !w.eof);
    return rc;
}

/* ---- files ---- */

int hf_open(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int flags,
            struct hf_file **ret)
{
    struct waiter w;
    int rc;

    BEGIN_OR_RETURN(&w, fs);
    hf_open_async(fs, u, h, flags, got_open, &w);
    rc = (int)await(&w);
    if (rc == 0)
        *ret = w.file;
    return rc;
}

int hf_create(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
              int flags, mode_t mode, mode_t umask, struct hf_file **ret, struct hf_attr *ret_attr)
{
    struct waiter w;
    int rc;

    BEGIN_OR_RETURN(&w, fs);
    w.attr = ret_attr;
    hf_create_async(fs, u, dir, name, flags, mode, umask, got_open, &w);
    rc = (int)await(&w);
    if (rc == 0)
        *ret = w.file;
    return rc;
}

ssize_t hf_read(struct hf_file *f, void *buf, size_t len, uint64_t offset)
{
    size_t got = 0;
    struct waiter w;

    do {
        size_t want = len - got < HF_CLIENT_IO_MAX ? len - got : HF_CLIENT_IO_MAX;
        int64_t n;

        BEGIN_OR_RETURN(&w, f->fs);
        w.buf = (uint8_t *)buf + got;
        w.cap = want;
        hf_read_async(f, offset + got, want, got_data, &w);
        n = await(&w);
        if (n < 0)
            return got ? (ssize_t)got : (ssize_t)n;
        got += (size_t)n;
        if ((size_t)n < want)
            break;
    } while (got < len);
    return (ssize_t)got;
}

ssize_t hf_write(struct hf_file *f, const void *buf, size_t len, uint64_t offset)
{
    size_t put = 0;
    struct waiter w;

    do {
        size_t want = len - put < HF_CLIENT_IO_MAX ? len - put : HF_CLIENT_IO_MAX;
        struct iovec v = {(uint8_t *)(uintptr_t)buf + put, want};
        int64_t n;

        BEGIN_OR_RETURN(&w, f->fs);
        hf_write_async(f, &v, 1, offset + put, got_size, &w);
        n = await(&w);
        if (n < 0)
            return put ? (ssize_t)put : (ssize_t)n;
        put += (size_t)n;
        if ((size_t)n < want)
            break;
    } while (put < len);
    return (ssize_t)put;
}

int hf_flush(struct hf_file *f)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, f->fs);
    hf_flush_async(f, got_done, &w);
    return (int)await(&w);
}

int hf_fsync(struct hf_file *f, bool data_only)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, f->fs);
    hf_fsync_async(f, data_only, got_done, &w);
    return (int)await(&w);
}

int hf_fallocate(struct hf_file *f, int mode, uint64_t offset, uint64_t len)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, f->fs);
    hf_fallocate_async(f, mode, offset, len, got_done, &w);
    return (int)await(&w);
}

int64_t hf_seek(struct hf_file *f, uint64_t offset, int whence)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, f->fs);
    hf_seek_async(f, offset, whence, got_size, &w);
    return await(&w);
}

int hf_close(struct hf_file *f)
{
    struct waiter w;

    BEGIN_OR_RETURN(&w, f->fs);
    hf_close_async(f, got_done, &w);
    return (int)await(&w);
}

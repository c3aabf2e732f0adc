/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation on one file.
 */
#include "posix_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

int px_status(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
        return HF_BE_ENOENT;
    case ENOSPC:
    case EDQUOT:
        return HF_BE_ENOSPC;
    case ENOMEM:
        return HF_BE_ENOMEM;
    case EINVAL:
        return HF_BE_EINVAL;
    case EOPNOTSUPP:
        return HF_BE_ENOTSUPP;
    default:
        return HF_BE_EIO;
    }
}

static int read_full(int fd, uint8_t *data, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pread(fd, data, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return px_status(errno);
        if (n == 0) {
            memset(data, 0, len);
            return 0;
        }
        data += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int write_full(int fd, const uint8_t *data, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? px_status(errno) : HF_BE_EIO;
        data += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int truncate_to(int fd, uint64_t size)
{
    int rc;

    do {
        rc = ftruncate(fd, (off_t)size);
    } while (rc < 0 && errno == EINTR);
    return rc ? px_status(errno) : 0;
}

static int punch(int fd, uint64_t offset, size_t len)
{
    int rc;

    if (len == 0)
        return 0;
    do {
        rc = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len);
    } while (rc < 0 && errno == EINTR);
    return rc ? px_status(errno) : 0;
}

static int sync_file(struct hf_be *be, struct px_file *f, const uint8_t *id)
{
    if (atomic_load(&f->failed))
        return HF_BE_EIO;
    /* Cleared before: a write meanwhile sets it again and is for the next sync. */
    atomic_store(&f->dirty, false);
    if (fdatasync(f->fd)) {
        atomic_store(&f->failed, true);
        return HF_BE_EIO;
    }
    return px_dir_sync(be, px_dir_of(id), atomic_load(&f->name_at));
}

static int stat_file(int fd, struct hf_be_io *io)
{
    struct stat st;

    if (fstat(fd, &st))
        return px_status(errno);
    io->size = (uint64_t)st.st_size;
    io->allocated = (uint64_t)st.st_blocks * 512u;
    return 0;
}

/* Removes the name; *ret_at: the count of its folder that covers its absence. */
static int unlink_file(struct hf_be *be, unsigned d, const char *name, uint64_t *ret_at)
{
    int rc = 0;

    pthread_mutex_lock(&be->dirs[d].names);
    if (unlinkat(be->root, name, 0) == 0) {
        atomic_fetch_add(&be->dirs[d].changed, 1);
        atomic_fetch_add(&be->version, 1);
        atomic_fetch_sub(&be->objects, 1);
    } else if (errno != ENOENT) {
        rc = px_status(errno);
    }
    *ret_at = atomic_load(&be->dirs[d].changed);
    pthread_mutex_unlock(&be->dirs[d].names);
    return rc;
}

static int delete_file(struct hf_be *be, struct hf_be_io *io)
{
    unsigned d = px_dir_of(io->id);
    char name[PX_NAME_BYTES];
    struct stat st;
    uint64_t at;
    int rc;

    px_name(io->id, name);
    io->allocated = 0;
    if (fstatat(be->root, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        io->allocated = (uint64_t)st.st_blocks * 512u;
    rc = unlink_file(be, d, name, &at);
    px_file_drop(be, io->id);
    /* Also if it was not there: an earlier process may have died between unlink and sync. */
    return rc ? rc : px_dir_sync(be, d, at);
}

static int run(struct hf_be *be, struct hf_be_io *io)
{
    struct px_file *f;
    int rc;

    if (io->offset > HF_BE_OBJECT_MAX || io->len > HF_BE_OBJECT_MAX - io->offset)
        return HF_BE_EINVAL;
    if (io->op == HF_BE_DELETE)
        return delete_file(be, io);
    rc = px_file_get(be, io->id, io->op == HF_BE_WRITE, &f);
    if (rc)
        return rc;
    if (io->op == HF_BE_WRITE || io->op == HF_BE_TRUNCATE || io->op == HF_BE_PUNCH)
        atomic_store(&f->dirty, true);
    switch (io->op) {
    case HF_BE_READ:
        rc = read_full(f->fd, io->data, io->len, io->offset);
        break;
    case HF_BE_WRITE:
        rc = write_full(f->fd, io->data, io->len, io->offset);
        break;
    case HF_BE_SYNC:
        rc = sync_file(be, f, io->id);
        break;
    case HF_BE_TRUNCATE:
        rc = truncate_to(f->fd, io->offset);
        break;
    case HF_BE_PUNCH:
        rc = punch(f->fd, io->offset, io->len);
        break;
    case HF_BE_STAT:
        rc = stat_file(f->fd, io);
        break;
    default:
        rc = HF_BE_EINVAL;
        break;
    }
    px_file_put(be, f);
    return rc;
}

void px_run(struct hf_be *be, struct hf_be_io *io)
{
    io->status = run(be, io);
}

bool px_try_read(struct hf_be *be, struct hf_be_io *io)
{
    struct iovec iov = {io->data, io->len};
    struct px_file *f;
    ssize_t n;

    if (io->len == 0 || io->offset > HF_BE_OBJECT_MAX || io->len > HF_BE_OBJECT_MAX - io->offset)
        return false;
    f = px_file_peek(be, io->id);
    if (!f)
        return false;
    n = preadv2(f->fd, &iov, 1, (off_t)io->offset, RWF_NOWAIT);
    px_file_put(be, f);
    io->status = 0;
    return n >= 0 && (size_t)n == io->len;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Open files. libholdfast buffers, reads ahead and writes back; the kernel keeps pages of files
 * between opens as long as the change counter says that they are good (close-to-open).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fuse_priv.h"

/* An open or create whose answer repeats what the kernel said. */
struct opening {
    fuse_req_t req;
    struct fuse_file_info fi;
};

static struct opening *opening_new(fuse_req_t req, const struct fuse_file_info *fi)
{
    struct opening *o = malloc(sizeof(*o));

    if (o)
        *o = (struct opening){req, *fi};
    else
        reply_err(req, -ENOMEM);
    return o;
}

static void close_unheard(void *arg, int err)
{
    (void)arg;
    (void)err;
}

/* The kernel puts the bytes of an append where it believes the file to end, and other clients
 * append too: with O_APPEND its pages would be wrong. */
static void set_caching(struct opening *o, const struct hf_attr *a, struct hf_file *f)
{
    bool good = node_pages_good(svc_of(o->req), a);

    o->fi.fh = (uint64_t)(uintptr_t)f;
    o->fi.direct_io = (o->fi.flags & O_DIRECT) ||
                      ((o->fi.flags & O_APPEND) && (o->fi.flags & O_ACCMODE) != O_RDONLY);
    o->fi.keep_cache = good;
}

static void on_open(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct opening *o = arg;

    if (err) {
        reply_err(o->req, err);
    } else {
        set_caching(o, a, f);
        if (fuse_reply_open(o->req, &o->fi)) /* interrupted: no release will come */
            hf_close_async(f, close_unheard, NULL);
    }
    free(o);
}

void op_open(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
    struct opening *o;
    struct hf_handle h;
    struct who w;

    if (object_of(req, id, &h) && (o = opening_new(req, fi)) != NULL)
        hf_open_async(svc_of(req)->fs, who_asks(req, &w), h, fi->flags, on_open, o);
}

static void on_create(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct opening *o = arg;
    struct fuse_entry_param e = {0};

    if (err == 0) {
        err = entry_fill(svc_of(o->req), a, &e);
        if (err)
            hf_close_async(f, close_unheard, NULL);
    }
    if (err) {
        reply_err(o->req, err);
    } else {
        set_caching(o, a, f);
        if (fuse_reply_create(o->req, &e, &o->fi)) {
            node_forget(svc_of(o->req), e.ino, 1);
            hf_close_async(f, close_unheard, NULL);
        }
    }
    free(o);
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
               struct fuse_file_info *fi)
{
    struct hf_handle dir;
    struct opening *o;
    struct who w;

    if (object_of(req, parent, &dir) && (o = opening_new(req, fi)) != NULL)
        hf_create_async(svc_of(req)->fs, who_asks(req, &w), dir, name, fi->flags, mode,
                        fuse_req_ctx(req)->umask, on_create, o);
}

static void on_read(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    if (err)
        reply_err(arg, err);
    else if (n == 0)
        (void)fuse_reply_buf(arg, NULL, 0);
    else
        (void)fuse_reply_iov(arg, iov, (int)niov);
}

void op_read(fuse_req_t req, fuse_ino_t id, size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)id;
    hf_read_async(file_of(fi), (uint64_t)off, size, on_read, req);
}

struct writing {
    fuse_req_t req;
    struct request_buf *buf; /* has the bytes */
};

static void on_write(void *arg, int64_t n)
{
    struct writing *w = arg;

    request_buf_put(w->buf);
    if (n < 0)
        reply_err(w->req, (int)n);
    else
        (void)fuse_reply_write(w->req, (size_t)n);
    free(w);
}

void op_write(fuse_req_t req, fuse_ino_t id, const char *buf, size_t size, off_t off,
              struct fuse_file_info *fi)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = size};
    struct writing *w = malloc(sizeof(*w));

    (void)id;
    if (!w || !(w->buf = request_buf_take(svc_of(req)))) {
        free(w);
        reply_err(req, -ENOMEM);
        return;
    }
    w->req = req;
    hf_write_async(file_of(fi), &iov, 1, (uint64_t)off, on_write, w);
}

void op_flush(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
    (void)id;
    hf_flush_async(file_of(fi), reply_done, req);
}

void op_fsync(fuse_req_t req, fuse_ino_t id, int datasync, struct fuse_file_info *fi)
{
    (void)id;
    hf_fsync_async(file_of(fi), datasync != 0, reply_done, req);
}

void op_release(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
    (void)id;
    hf_close_async(file_of(fi), reply_done, req);
}

void op_fallocate(fuse_req_t req, fuse_ino_t id, int mode, off_t off, off_t len,
                  struct fuse_file_info *fi)
{
    (void)id;
    hf_fallocate_async(file_of(fi), mode, (uint64_t)off, (uint64_t)len, reply_done, req);
}

static void on_seek(void *arg, int64_t n)
{
    if (n < 0)
        reply_err(arg, (int)n);
    else
        (void)fuse_reply_lseek(arg, n);
}

void op_lseek(fuse_req_t req, fuse_ino_t id, off_t off, int whence, struct fuse_file_info *fi)
{
    (void)id;
    hf_seek_async(file_of(fi), (uint64_t)off, whence, on_seek, req);
}

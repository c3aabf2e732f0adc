/* SPDX-License-Identifier: Apache-2.0
 *
 * Names: looking up, making, removing, renaming.
 */
#include <errno.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fuse_priv.h"

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_lookup_async(svc_of(req)->fs, who_asks(req, &w), dir, name, reply_entry, req);
}

void op_forget(fuse_req_t req, fuse_ino_t id, uint64_t nlookup)
{
    node_forget(svc_of(req), id, nlookup);
    fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *f)
{
    for (size_t i = 0; i < n; i++)
        node_forget(svc_of(req), f[i].ino, f[i].nlookup);
    fuse_reply_none(req);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_mknod_async(svc_of(req)->fs, who_asks(req, &w), dir, name, mode,
                       fuse_req_ctx(req)->umask, major(rdev), minor(rdev), reply_entry, req);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_mkdir_async(svc_of(req)->fs, who_asks(req, &w), dir, name, mode,
                       fuse_req_ctx(req)->umask, reply_entry, req);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_unlink_async(svc_of(req)->fs, who_asks(req, &w), dir, name, reply_done, req);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_rmdir_async(svc_of(req)->fs, who_asks(req, &w), dir, name, reply_done, req);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct hf_handle dir;
    struct who w;

    if (object_of(req, parent, &dir))
        hf_symlink_async(svc_of(req)->fs, who_asks(req, &w), dir, name, target, reply_entry, req);
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
               const char *newname, unsigned int flags)
{
    struct hf_handle from, to;
    struct who w;

    _Static_assert(RENAME_NOREPLACE == HF_RENAME_NOREPLACE, "rename flags");
    _Static_assert(RENAME_EXCHANGE == HF_RENAME_EXCHANGE, "rename flags");
    if (flags & ~(HF_RENAME_NOREPLACE | HF_RENAME_EXCHANGE)) {
        reply_err(req, -EINVAL);
        return;
    }
    if (object_of(req, parent, &from) && object_of(req, newparent, &to))
        hf_rename_async(svc_of(req)->fs, who_asks(req, &w), from, name, to, newname, flags,
                        reply_done, req);
}

void op_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t newparent, const char *newname)
{
    struct hf_handle h, dir;
    struct who w;

    if (object_of(req, id, &h) && object_of(req, newparent, &dir))
        hf_link_async(svc_of(req)->fs, who_asks(req, &w), h, dir, newname, reply_entry, req);
}

static void on_readlink(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    (void)n;
    if (err)
        reply_err(arg, err);
    else
        (void)fuse_reply_iov(arg, iov, (int)niov);
}

void op_readlink(fuse_req_t req, fuse_ino_t id)
{
    struct hf_handle h;
    struct who w;

    if (object_of(req, id, &h))
        hf_readlink_async(svc_of(req)->fs, who_asks(req, &w), h, on_readlink, req);
}

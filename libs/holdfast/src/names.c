/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that are one call of a shard: names, links, special files, permission.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs_priv.h"

static const uint32_t type_modes[] = {
    [HF__FILE_TYPE__FT_REG] = S_IFREG,  [HF__FILE_TYPE__FT_DIR] = S_IFDIR,
    [HF__FILE_TYPE__FT_BLK] = S_IFBLK,  [HF__FILE_TYPE__FT_CHR] = S_IFCHR,
    [HF__FILE_TYPE__FT_LNK] = S_IFLNK,  [HF__FILE_TYPE__FT_SOCK] = S_IFSOCK,
    [HF__FILE_TYPE__FT_FIFO] = S_IFIFO,
};

mode_t type_mode(uint32_t type)
{
    return type < HF_ARRAY_LEN(type_modes) ? type_modes[type] : 0;
}

void attr_fill(struct hf_fs *fs, const Hf__Attr *m, struct hf_attr *a)
{
    *a = (struct hf_attr){
        .handle = {.ino = m->ino, .gen = m->gen},
        .mode = (m->mode & 07777) | type_mode(m->type),
        .nlink = m->nlink,
        .uid = m->uid,
        .gid = m->gid,
        .rdev_major = m->rdev_major,
        .rdev_minor = m->rdev_minor,
        .size = m->size,
        .allocated = m->allocated,
        .atime_ns = m->atime_ns,
        .mtime_ns = m->mtime_ns,
        .ctime_ns = m->ctime_ns,
        .btime_ns = m->btime_ns,
        .change = m->change,
        .flags = m->flags & (HF_ATTR_XATTR | HF_ATTR_ACL | HF_ATTR_DEFAULT_ACL),
    };
    sizes_apply(&fs->sizes, a);
}

/* ---- lookup, getattr, access, readlink ---- */

static void on_lookup(const Hf__LookupRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    req_attr(r, r->c.call.status, rep ? rep->obj : NULL);
}

static void run_lookup(struct req *r)
{
    Hf__LookupReq q = HF__LOOKUP_REQ__INIT;

    q.cred = &r->cred;
    q.dir = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    req_call(r, q.dir, false);
    hf__meta__lookup(meta_of(r), &q, on_lookup, &r->c.call);
}

void hf_lookup_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_lookup,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name});
}

static void on_getattr(const Hf__GetattrRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    req_attr(r, r->c.call.status, rep ? rep->obj : NULL);
}

static void run_getattr(struct req *r)
{
    Hf__GetattrReq q = HF__GETATTR_REQ__INIT;

    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    req_call(r, q.ino, false);
    hf__meta__getattr(meta_of(r), &q, on_getattr, &r->c.call);
}

void hf_getattr_async(struct hf_fs *fs, struct hf_handle h, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_getattr,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .h = h});
}

#define ACCESS_BITS (uint32_t)(R_OK | W_OK | X_OK) /* 4, 2, 1, as the shard has them */

static void on_access(const Hf__AccessRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    int err = r->c.call.status;

    if (err == 0 && !rep)
        err = HF_E_IO;
    if (err == 0 && ((uint32_t)r->a.flags & ACCESS_BITS & ~rep->granted))
        err = HF_E_ACCES;
    req_done(r, err);
}

static void run_access(struct req *r)
{
    Hf__AccessReq q = HF__ACCESS_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.want = ACCESS_BITS;
    q.posix = true;
    req_call(r, q.ino, false);
    hf__meta__access(meta_of(r), &q, on_access, &r->c.call);
}

void hf_access_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int mask,
                     hf_done_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_access,
                              .kind = K_DONE,
                              .fn.done = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .flags = mask});
}

static void on_readlink(const Hf__ReadlinkRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    struct iovec v = {0};
    int err = r->c.call.status;

    if (err == 0 && !rep)
        err = HF_E_IO;
    if (err == 0)
        v = (struct iovec){rep->target.data, rep->target.len};
    req_data(r, err, &v, v.iov_len > 0, v.iov_len);
}

static void run_readlink(struct req *r)
{
    Hf__ReadlinkReq q = HF__READLINK_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    req_call(r, q.ino, false);
    hf__meta__readlink(meta_of(r), &q, on_readlink, &r->c.call);
}

void hf_readlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       hf_data_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_readlink,
                              .kind = K_DATA,
                              .fn.data = fn,
                              .arg = arg,
                              .u = u,
                              .h = h});
}

/* ---- mkdir, mknod, symlink ---- */

static uint32_t type_of(mode_t mode)
{
    for (uint32_t t = 1; t < HF_ARRAY_LEN(type_modes); t++)
        if (type_modes[t] == (mode & S_IFMT))
            return t;
    return HF__FILE_TYPE__FT_NONE;
}

static void on_make(const Hf__MakeRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    req_attr(r, r->c.call.status, rep ? rep->obj : NULL);
}

static void on_mkreg(const Hf__CreateRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    req_attr(r, r->c.call.status, rep ? rep->obj : NULL);
}

static void make_set(struct req *r)
{
    hf__set_attrs__init(&r->set);
    r->set.set_mode = true;
    r->set.mode = r->a.mode & 07777;
}

/* mknod(2) of a regular file. */
static void run_mkreg(struct req *r)
{
    Hf__CreateReq q = HF__CREATE_REQ__INIT;

    make_set(r);
    q.cred = &r->cred;
    q.dir = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    q.how = HF__CREATE_HOW__CREATE_GUARDED;
    q.set = &r->set;
    q.umask = r->a.umask;
    req_call(r, q.dir, true);
    hf__meta__create(meta_of(r), &q, on_mkreg, &r->c.call);
}

static void run_make(struct req *r)
{
    Hf__MakeReq q = HF__MAKE_REQ__INIT;

    make_set(r);
    q.cred = &r->cred;
    q.dir = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    q.type = type_of(r->a.mode);
    q.set = &r->set;
    q.umask = r->a.umask;
    q.rdev_major = r->a.major;
    q.rdev_minor = r->a.minor;
    if (r->a.name2)
        q.target = req_name(r->a.name2);
    req_call(r, q.dir, true);
    hf__meta__make(meta_of(r), &q, on_make, &r->c.call);
}

static void run_mknod(struct req *r)
{
    switch (r->a.mode & S_IFMT) {
    case 0:
    case S_IFREG:
        run_mkreg(r);
        break;
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        run_make(r);
        break;
    default:
        req_fail(r, HF_E_INVAL);
    }
}

void hf_mkdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, mode_t mode, mode_t umask, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_make,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name,
                              .mode = (mode & 07777) | S_IFDIR,
                              .umask = umask & 0777});
}

void hf_mknod_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, mode_t mode, mode_t umask, uint32_t rdev_major,
                    uint32_t rdev_minor, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_mknod,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name,
                              .mode = mode,
                              .umask = umask & 0777,
                              .major = rdev_major,
                              .minor = rdev_minor});
}

void hf_symlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                      const char *name, const char *target, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_make,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name,
                              .name2 = target,
                              .mode = 0777 | S_IFLNK});
}

/* ---- link, unlink, rename ---- */

static void on_link(const Hf__LinkRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    req_attr(r, r->c.call.status, rep ? rep->obj : NULL);
}

static void run_link(struct req *r)
{
    Hf__LinkReq q = HF__LINK_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.dir = r->a.h2.ino;
    q.dir_gen = r->a.h2.gen;
    q.name = req_name(r->a.name);
    req_call(r, q.dir, true); /* who owns the resulting name drives it */
    hf__meta__link(meta_of(r), &q, on_link, &r->c.call);
}

void hf_link_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                   struct hf_handle dir, const char *name, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_link,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .h2 = dir,
                              .name = name});
}

static void on_remove(const Hf__RemoveRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    (void)rep;
    req_done(r, r->c.call.status);
}

static void run_remove(struct req *r)
{
    Hf__RemoveReq q = HF__REMOVE_REQ__INIT;

    q.cred = &r->cred;
    q.dir = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    q.is_dir = r->a.flags != 0;
    req_call(r, q.dir, true);
    hf__meta__remove(meta_of(r), &q, on_remove, &r->c.call);
}

static void submit_remove(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                          const char *name, bool is_dir, hf_done_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_remove,
                              .kind = K_DONE,
                              .fn.done = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name,
                              .flags = is_dir});
}

void hf_unlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, hf_done_fn *fn, void *arg)
{
    submit_remove(fs, u, dir, name, false, fn, arg);
}

void hf_rmdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, hf_done_fn *fn, void *arg)
{
    submit_remove(fs, u, dir, name, true, fn, arg);
}

static void on_rename(const Hf__RenameRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    (void)rep;
    req_done(r, r->c.call.status);
}

static void run_rename(struct req *r)
{
    Hf__RenameReq q = HF__RENAME_REQ__INIT;

    q.cred = &r->cred;
    q.from_dir = r->a.h.ino;
    q.from_gen = r->a.h.gen;
    q.from_name = req_name(r->a.name);
    q.to_dir = r->a.h2.ino;
    q.to_gen = r->a.h2.gen;
    q.to_name = req_name(r->a.name2);
    q.flags = (uint32_t)r->a.flags;
    req_call(r, q.to_dir, true); /* who owns the resulting name drives it */
    hf__meta__rename(meta_of(r), &q, on_rename, &r->c.call);
}

void hf_rename_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle from_dir,
                     const char *from, struct hf_handle to_dir, const char *to, unsigned flags,
                     hf_done_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, from_dir.ino),
                              .run = run_rename,
                              .kind = K_DONE,
                              .fn.done = fn,
                              .arg = arg,
                              .u = u,
                              .h = from_dir,
                              .h2 = to_dir,
                              .name = from,
                              .name2 = to,
                              .flags = (int)flags});
}

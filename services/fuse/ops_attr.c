/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of objects and of the file system.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuse_priv.h"

#define NS INT64_C(1000000000)

void op_getattr(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
    struct hf_handle h;

    (void)fi;
    if (object_of(req, id, &h))
        hf_getattr_async(svc_of(req)->fs, h, reply_attr, req);
}

/* The kernel's seconds are 64 bit, ours are ns in 64 bit: years 1678 to 2262. */
static int64_t ns_of(const struct timespec *t)
{
    const int64_t most = INT64_MAX / NS - 1;

    if (t->tv_sec > most)
        return most * NS;
    if (t->tv_sec < -most)
        return -most * NS;
    return t->tv_sec * NS + t->tv_nsec;
}

/* ---- setattr ---- */

/* Before somebody who is not the owner writes, the kernel takes setuid and setgid away: a SETATTR
 * of the mode in that user's name, which libfuse 3.14 cannot tell it not to send. The shard refuses
 * it as it refuses a chmod. It is known by what it asks for: the bits that a write clears, of a
 * mode that has them. Nobody else can ask for that, the kernel has refused any chmod but the
 * owner's. */
struct change {
    fuse_req_t req;
    struct hf_handle h;
    struct hf_file *file;
    struct hf_setattr set;
};

static mode_t without_powers(mode_t mode)
{
    return mode & ~(mode_t)(S_ISUID | (mode & S_IXGRP ? S_ISGID : 0));
}

static void on_mode_known(void *arg, int err, const struct hf_attr *a)
{
    static const struct hf_user root = {0};
    struct change *c = arg;
    struct who w;

    if (err == 0 && c->set.mode != without_powers(a->mode & 07777))
        err = -EPERM;
    if (err) {
        reply_err(c->req, err);
    } else if (c->set.set == HF_SET_MODE) {
        hf_setattr_async(svc_of(c->req)->fs, &root, c->h, NULL, &c->set, reply_attr, c->req);
    } else { /* truncate: the shard clears the bits by itself */
        c->set.set &= ~(uint32_t)HF_SET_MODE;
        hf_setattr_async(svc_of(c->req)->fs, who_asks(c->req, &w), c->h, c->file, &c->set,
                         reply_attr, c->req);
    }
    free(c);
}

static void on_changed(void *arg, int err, const struct hf_attr *a)
{
    struct change *c = arg;

    if (err == -EPERM) {
        hf_getattr_async(svc_of(c->req)->fs, c->h, on_mode_known, c);
        return;
    }
    reply_attr(c->req, err, a);
    free(c);
}

static void change(fuse_req_t req, struct hf_handle h, struct hf_file *file,
                   const struct hf_setattr *set)
{
    struct change *c = NULL;
    struct who w;

    if ((set->set & HF_SET_MODE) && fuse_req_ctx(req)->uid != 0 &&
        set->mode == without_powers(set->mode)) {
        c = malloc(sizeof(*c));
        if (!c) {
            reply_err(req, -ENOMEM);
            return;
        }
        *c = (struct change){.req = req, .h = h, .file = file, .set = *set};
    }
    hf_setattr_async(svc_of(req)->fs, who_asks(req, &w), h, file, set, c ? on_changed : reply_attr,
                     c ? (void *)c : (void *)req);
}

void op_setattr(fuse_req_t req, fuse_ino_t id, struct stat *st, int to_set,
                struct fuse_file_info *fi)
{
    static const struct {
        int fuse;
        uint32_t ours;
    } bits[] = {
        {FUSE_SET_ATTR_MODE, HF_SET_MODE},
        {FUSE_SET_ATTR_UID, HF_SET_UID},
        {FUSE_SET_ATTR_GID, HF_SET_GID},
        {FUSE_SET_ATTR_SIZE, HF_SET_SIZE},
        {FUSE_SET_ATTR_ATIME, HF_SET_ATIME},
        {FUSE_SET_ATTR_MTIME, HF_SET_MTIME},
        {FUSE_SET_ATTR_ATIME_NOW, HF_SET_ATIME_NOW},
        {FUSE_SET_ATTR_MTIME_NOW, HF_SET_MTIME_NOW},
    };
    struct hf_setattr set = {
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .atime_ns = ns_of(&st->st_atim),
        .mtime_ns = ns_of(&st->st_mtim),
    };
    struct hf_handle h;

    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
        if (to_set & bits[i].fuse)
            set.set |= bits[i].ours;
    if (set.set & HF_SET_ATIME_NOW)
        set.set &= ~HF_SET_ATIME;
    if (set.set & HF_SET_MTIME_NOW)
        set.set &= ~HF_SET_MTIME;
    if (!object_of(req, id, &h))
        return;
    if (set.set == 0) /* a change time alone: the servers' own */
        hf_getattr_async(svc_of(req)->fs, h, reply_attr, req);
    else
        change(req, h, fi ? file_of(fi) : NULL, &set);
}

void op_access(fuse_req_t req, fuse_ino_t id, int mask)
{
    struct hf_handle h;
    struct who w;

    if (object_of(req, id, &h))
        hf_access_async(svc_of(req)->fs, who_asks(req, &w), h, mask, reply_done, req);
}

static void on_statfs(void *arg, int err, const struct hf_statfs *st)
{
    struct statvfs v = {0};

    if (err) {
        reply_err(arg, err);
        return;
    }
    v.f_bsize = v.f_frsize = st->block_bytes;
    v.f_blocks = st->total_bytes / st->block_bytes;
    v.f_bfree = v.f_bavail = st->free_bytes / st->block_bytes;
    v.f_files = st->total_files;
    v.f_ffree = v.f_favail = st->free_files;
    v.f_namemax = st->name_max;
    (void)fuse_reply_statfs(arg, &v);
}

void op_statfs(fuse_req_t req, fuse_ino_t id)
{
    (void)id;
    hf_statfs_async(svc_of(req)->fs, on_statfs, req);
}

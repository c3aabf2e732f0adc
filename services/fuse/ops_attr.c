/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of objects and of the file system.
 */
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
    struct who w;

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
        hf_setattr_async(svc_of(req)->fs, who_asks(req, &w), h, fi ? file_of(fi) : NULL, &set,
                         reply_attr, req);
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

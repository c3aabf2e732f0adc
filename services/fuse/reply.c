/* SPDX-License-Identifier: Apache-2.0
 *
 * What requests have in common: who asks, about what, and the answers.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fuse_priv.h"

#define NS           1000000000
#define STAT_BLKSIZE (64u << 10)

/* The groups are in /proc only, which costs a system call or three: the superuser needs none. */
const struct hf_user *who_asks(fuse_req_t req, struct who *w)
{
    const struct fuse_ctx *c = fuse_req_ctx(req);
    int n = 0;

    w->user = (struct hf_user){.uid = c->uid, .gid = c->gid, .groups = w->groups};
    if (c->uid != 0)
        n = fuse_req_getgroups(req, FUSE_GROUPS_MAX, w->groups);
    if (n > FUSE_GROUPS_MAX)
        n = FUSE_GROUPS_MAX;
    w->user.ngroups = n > 0 ? (uint32_t)n : 0;
    return &w->user;
}

static struct timespec when(int64_t ns)
{
    int64_t sec = ns / NS, rest = ns % NS;

    if (rest < 0) {
        rest += NS;
        sec--;
    }
    return (struct timespec){.tv_sec = sec, .tv_nsec = rest};
}

void stat_fill(struct hf_fusesvc *s, const struct hf_attr *a, struct stat *st)
{
    *st = (struct stat){
        .st_ino = a->handle.ino == s->root.ino ? FUSE_ROOT_ID : a->handle.ino,
        .st_mode = a->mode,
        .st_nlink = a->nlink,
        .st_uid = a->uid,
        .st_gid = a->gid,
        .st_rdev = makedev(a->rdev_major, a->rdev_minor),
        .st_size = (off_t)a->size,
        .st_blksize = STAT_BLKSIZE,
        .st_blocks = (blkcnt_t)((a->allocated + 511) / 512),
        .st_atim = when(a->atime_ns),
        .st_mtim = when(a->mtime_ns),
        .st_ctim = when(a->ctime_ns),
    };
}

void reply_err(fuse_req_t req, int err)
{
    (void)fuse_reply_err(req, -err);
}

void reply_done(void *arg, int err)
{
    reply_err(arg, err);
}

int entry_fill(struct hf_fusesvc *s, const struct hf_attr *a, struct fuse_entry_param *e)
{
    *e = (struct fuse_entry_param){
        .ino = node_lookup(s, a),
        .generation = a->handle.gen,
        .attr_timeout = s->attr_s,
        .entry_timeout = s->entry_s,
    };
    stat_fill(s, a, &e->attr);
    return e->ino ? 0 : -ENOMEM;
}

void reply_entry(void *arg, int err, const struct hf_attr *a)
{
    struct hf_fusesvc *s = svc_of(arg);
    struct fuse_entry_param e = {.entry_timeout = s->negative_s};

    if (err == -ENOENT && s->negative_s > 0) {
        (void)fuse_reply_entry(arg, &e);
        return;
    }
    if (err == 0)
        err = entry_fill(s, a, &e);
    if (err)
        reply_err(arg, err);
    else if (fuse_reply_entry(arg, &e)) /* interrupted: the kernel does not have it */
        node_forget(s, e.ino, 1);
}

void reply_attr(void *arg, int err, const struct hf_attr *a)
{
    struct hf_fusesvc *s = svc_of(arg);
    struct stat st;

    if (err) {
        reply_err(arg, err);
        return;
    }
    node_seen(s, a);
    stat_fill(s, a, &st);
    (void)fuse_reply_attr(arg, &st, s->attr_s);
}

bool object_of(fuse_req_t req, fuse_ino_t id, struct hf_handle *ret)
{
    if (node_handle(svc_of(req), id, ret))
        return true;
    reply_err(req, -ESTALE);
    return false;
}

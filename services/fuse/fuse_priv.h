/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the FUSE service.
 *
 *   hf_fusesvc   the mount: libfuse's session, libholdfast's file system, the node table
 *   channel      one per engine: the device on the engine's loop (channel.c)
 *   node         an object that the kernel knows (nodes.c): nodeid -> handle and lookup count
 *   call         a request whose answer needs more than libfuse's own handle
 *
 * A request is parsed by libfuse on an engine, becomes a call of libholdfast, and is answered in
 * its callback. Nothing here waits.
 */
#ifndef HF_FUSE_PRIV_H
#define HF_FUSE_PRIV_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/holdfast.h"
#include "holdfast/map.h"
#include "holdfast/svc_fuse.h"

#define FUSE_GROUPS_MAX 256
#define FUSE_IO_MAX     (1u << 20) /* bytes of one read or write request */

/* ---- the mount ---- */

struct channel;

struct hf_fusesvc {
    struct hf_fusesvc_opts opts;
    struct hf_fs *fs;
    struct fuse_session *session;
    bool mounted;
    bool selinux;                       /* this kernel uses labels */
    double attr_s, entry_s, negative_s; /* the kernel's caches */
    uint64_t attr_ns;
    struct hf_handle root; /* of the mount: the file system's or opts.subdir */
    struct channel *channels;
    unsigned nchannels;
    atomic_uint running; /* channels that still read the device */
    atomic_bool ending;  /* hf_fusesvc_free unmounts: nobody is told */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool inited;         /* the kernel's INIT has been answered */
    struct hf_map nodes; /* nodeid -> struct node */
};

static inline struct hf_fusesvc *svc_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

extern const struct fuse_lowlevel_ops fuse_ops;

/* ---- channel.c ---- */

/* Puts the device on every engine's loop. */
int channels_start(struct hf_fusesvc *s);
/* Takes it off; returns when no engine reads it any more. Any thread but an engine's. */
void channels_stop(struct hf_fusesvc *s);
/* The buffer of the request being processed stays valid until request_buf_put; NULL: no memory.
 * Write requests that cannot be taken over at once keep their bytes by it. */
struct request_buf;
struct request_buf *request_buf_take(struct hf_fusesvc *s);
void request_buf_put(struct request_buf *b);

/* ---- nodes.c ---- */

/* The kernel learns of an object: counts a lookup and returns its nodeid, 0 without memory. */
fuse_ino_t node_lookup(struct hf_fusesvc *s, const struct hf_attr *a);
void node_forget(struct hf_fusesvc *s, fuse_ino_t id, uint64_t nlookup);
/* False: the kernel should not know it. */
bool node_handle(struct hf_fusesvc *s, fuse_ino_t id, struct hf_handle *ret);
/* Attributes that the kernel is told. */
void node_seen(struct hf_fusesvc *s, const struct hf_attr *a);
/* An extended attribute is being set. */
void node_has_xattr(struct hf_fusesvc *s, fuse_ino_t id);
/* True if it is certain, by attributes not older than the kernel's own, that there are none. */
bool node_no_xattrs(struct hf_fusesvc *s, fuse_ino_t id);
/* A file is being opened: whether the pages that the kernel has of it are those of this change. The
 * kernel is told to ask for the attributes again if those it has are of another. */
bool node_pages_good(struct hf_fusesvc *s, const struct hf_attr *a);
void nodes_fini(struct hf_fusesvc *s);

/* ---- reply.c ---- */

/* Who asks. */
struct who {
    struct hf_user user;
    uint32_t groups[FUSE_GROUPS_MAX];
};
const struct hf_user *who_asks(fuse_req_t req, struct who *w);

void stat_fill(struct hf_fusesvc *s, const struct hf_attr *a, struct stat *st);
/* err: 0 or negative errno. */
void reply_err(fuse_req_t req, int err);
/* Callbacks of libholdfast; arg is the fuse_req_t. */
void reply_done(void *arg, int err);
void reply_entry(void *arg, int err, const struct hf_attr *a);
void reply_attr(void *arg, int err, const struct hf_attr *a);
/* Fills e and counts the lookup. ENOMEM. */
int entry_fill(struct hf_fusesvc *s, const struct hf_attr *a, struct fuse_entry_param *e);

/* The handle of a nodeid; false: the request has been answered with ESTALE. */
bool object_of(fuse_req_t req, fuse_ino_t id, struct hf_handle *ret);
static inline struct hf_file *file_of(const struct fuse_file_info *fi)
{
    return (struct hf_file *)(uintptr_t)fi->fh;
}

/* ---- operations: ops_names.c, ops_attr.c, ops_file.c, ops_dir.c, ops_xattr.c ---- */

#define OPS(X)                                                                                     \
    X(lookup, (fuse_req_t req, fuse_ino_t parent, const char *name))                               \
    X(forget, (fuse_req_t req, fuse_ino_t id, uint64_t nlookup))                                   \
    X(forget_multi, (fuse_req_t req, size_t n, struct fuse_forget_data * f))                       \
    X(mknod, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev))       \
    X(mkdir, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode))                   \
    X(unlink, (fuse_req_t req, fuse_ino_t parent, const char *name))                               \
    X(rmdir, (fuse_req_t req, fuse_ino_t parent, const char *name))                                \
    X(symlink, (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name))          \
    X(rename, (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,          \
               const char *newname, unsigned int flags))                                           \
    X(link, (fuse_req_t req, fuse_ino_t id, fuse_ino_t newparent, const char *newname))            \
    X(readlink, (fuse_req_t req, fuse_ino_t id))                                                   \
    X(getattr, (fuse_req_t req, fuse_ino_t id, struct fuse_file_info * fi))                        \
    X(setattr,                                                                                     \
      (fuse_req_t req, fuse_ino_t id, struct stat * st, int to_set, struct fuse_file_info *fi))    \
    X(access, (fuse_req_t req, fuse_ino_t id, int mask))                                           \
    X(statfs, (fuse_req_t req, fuse_ino_t id))                                                     \
    X(open, (fuse_req_t req, fuse_ino_t id, struct fuse_file_info * fi))                           \
    X(create, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,                   \
               struct fuse_file_info *fi))                                                         \
    X(read, (fuse_req_t req, fuse_ino_t id, size_t size, off_t off, struct fuse_file_info * fi))   \
    X(write, (fuse_req_t req, fuse_ino_t id, const char *buf, size_t size, off_t off,              \
              struct fuse_file_info *fi))                                                          \
    X(flush, (fuse_req_t req, fuse_ino_t id, struct fuse_file_info * fi))                          \
    X(fsync, (fuse_req_t req, fuse_ino_t id, int datasync, struct fuse_file_info *fi))             \
    X(release, (fuse_req_t req, fuse_ino_t id, struct fuse_file_info * fi))                        \
    X(fallocate,                                                                                   \
      (fuse_req_t req, fuse_ino_t id, int mode, off_t off, off_t len, struct fuse_file_info *fi))  \
    X(lseek, (fuse_req_t req, fuse_ino_t id, off_t off, int whence, struct fuse_file_info *fi))    \
    X(opendir, (fuse_req_t req, fuse_ino_t id, struct fuse_file_info * fi))                        \
    X(readdir,                                                                                     \
      (fuse_req_t req, fuse_ino_t id, size_t size, off_t off, struct fuse_file_info * fi))         \
    X(readdirplus,                                                                                 \
      (fuse_req_t req, fuse_ino_t id, size_t size, off_t off, struct fuse_file_info * fi))         \
    X(fsyncdir, (fuse_req_t req, fuse_ino_t id, int datasync, struct fuse_file_info *fi))          \
    X(setxattr, (fuse_req_t req, fuse_ino_t id, const char *name, const char *value, size_t size,  \
                 int flags))                                                                       \
    X(getxattr, (fuse_req_t req, fuse_ino_t id, const char *name, size_t size))                    \
    X(listxattr, (fuse_req_t req, fuse_ino_t id, size_t size))                                     \
    X(removexattr, (fuse_req_t req, fuse_ino_t id, const char *name))
#define X(name, args) void op_##name args;
OPS(X)
#undef X

#endif

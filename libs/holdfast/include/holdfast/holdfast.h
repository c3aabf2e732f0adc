/* SPDX-License-Identifier: Apache-2.0
 *
 * libholdfast: files of a Holdfast file system without a mount and without a gateway. Reads and
 * writes go from the calling process straight to the segment servers, in parallel; everything else
 * goes to the metadata shards. This is the only header that programs include.
 *
 *   struct hf_fs_opts o = {.struct_size = sizeof(o), .url = "ipc:///srv/holdfast/run/meta-0.sock"};
 *   struct hf_fs *fs;
 *   struct hf_file *f;
 *
 *   hf_fs_open(&o, &fs);
 *   hf_path_open(fs, &me, "/report", O_CREAT | O_WRONLY, 0644, &f);
 *   hf_write(f, "hello\n", 6, 0);
 *   hf_fsync(f, false);
 *   hf_close(f);
 *   hf_fs_close(fs);
 *
 * Errors: functions return 0 (or a count) or a negative errno value, as -ENOENT. ETIMEDOUT: the
 * servers did not answer in time; whether a change was made is not known. ESTALE: the object of a
 * handle is gone. EUCLEAN never comes; data whose checksum does not match is EIO.
 *
 * Threads: every function may be called from any thread at any time, except hf_fs_close and
 * hf_close, which end their object's use. Work is done on the library's own engine threads.
 *
 * Two forms of each call. `hf_x(...)` waits; not to be called from inside a callback (EDEADLK).
 * `hf_x_async(..., fn, arg)` returns at once and calls fn exactly once, on an engine thread,
 * perhaps before it returns; fn must not block. (A call that is refused, with EAGAIN, ENOMEM or
 * ESHUTDOWN, ends at once on the calling thread.) Arguments given by pointer (names, users, data,
 * attributes) are needed until fn is called for data and values, and only until the call returns
 * for all else. What fn gets by pointer is valid until it returns.
 *
 * Consistency: close-to-open. What one client has closed or fsynced, another sees when it opens.
 * Changes of the namespace and appends (O_APPEND) are atomic over all clients, and durable when
 * they return. A write is buffered (see dirty_max_bytes) and durable after hf_fsync; with O_SYNC or
 * O_DSYNC when it returns. An error of a buffered write is reported once, by the next hf_write,
 * hf_fsync, hf_flush or hf_close of each file that was open then.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_fs;   /* a connection to a file system: its sessions, buffers and engine threads */
struct hf_file; /* an open file */

/* ---- connecting ---- */

struct hf_fs_opts {
    size_t struct_size;  /* sizeof(struct hf_fs_opts): fields are only appended; 0 = default */
    const char *url;     /* where shard 0 answers; several URLs with a space between them: the first
                          * that can be used */
    const char *name;    /* of this client in the servers' logs; NULL: the program's name */
    unsigned threads;    /* engines, each with its own connections; an object belongs to one. 0 = 1;
                          * at most 16 */
    uint64_t timeout_ms; /* of one call, retries included; 0 = 30 s */
    uint64_t dirty_max_bytes; /* buffered writes of all files; beyond it writers wait. 0 = 64 MiB */
    uint64_t file_dirty_bytes; /* of one file. 0 = 16 MiB */
    uint64_t readahead_bytes;  /* of one file that is read in order. 0 = 8 MiB */
    uint64_t readahead_max;    /* of all files. 0 = 128 MiB */
    uint32_t writeback_ms;     /* a buffered write leaves after this at the latest. 0 = 1000 */
    uint32_t max_calls;        /* calls in flight; beyond it EAGAIN. 0 = 65536 */
    bool insecure;             /* plain tcp to other machines is allowed */
    void *env; /* struct hf_env of a program that is part of Holdfast; NULL: an own one */
};

/* Connects and waits for the first cluster map (timeout_ms). ETIMEDOUT, EINVAL, ENOMEM. */
int hf_fs_open(const struct hf_fs_opts *o, struct hf_fs **ret);
/* Writes what is buffered, closes open files' sessions and ends the threads. All files must have
 * been closed and all callbacks have come, else they get ESHUTDOWN first. 0, or the error of a
 * write that could not be made. Not from inside a callback. */
int hf_fs_close(struct hf_fs *fs);

/* ---- who and what ---- */

/* On whose behalf: uid 0 is the superuser. Up to 1024 groups. */
struct hf_user {
    uint32_t uid, gid;
    uint32_t ngroups;
    const uint32_t *groups;
};

/* An object, for ever: valid over restarts, renames and on other machines, until it is removed. */
struct hf_handle {
    uint64_t ino;
    uint32_t gen;
    uint32_t reserved; /* 0 */
};
struct hf_handle hf_root(struct hf_fs *fs);

/* Times are ns since 1970, may be negative. */
struct hf_attr {
    struct hf_handle handle;
    uint32_t mode; /* S_IFMT and permission bits */
    uint32_t nlink, uid, gid;
    uint32_t rdev_major, rdev_minor;
    uint64_t size, allocated; /* bytes; own buffered writes included */
    int64_t atime_ns, mtime_ns, ctime_ns, btime_ns;
    uint64_t change; /* another value after every change */
    uint32_t flags;  /* HF_ATTR_* */
};
#define HF_ATTR_XATTR       2u /* has extended attributes */
#define HF_ATTR_ACL         4u /* has an access ACL */
#define HF_ATTR_DEFAULT_ACL 8u /* a directory with a default ACL */

#define HF_SET_MODE      1u
#define HF_SET_UID       2u
#define HF_SET_GID       4u
#define HF_SET_SIZE      8u
#define HF_SET_ATIME     16u
#define HF_SET_MTIME     32u
#define HF_SET_ATIME_NOW 64u
#define HF_SET_MTIME_NOW 128u
struct hf_setattr {
    uint32_t set; /* HF_SET_* */
    uint32_t mode, uid, gid;
    uint64_t size;
    int64_t atime_ns, mtime_ns;
};

struct hf_dirent {
    uint64_t ino;
    uint64_t cookie;            /* where to go on after this entry; below 2^63 */
    uint32_t type;              /* DT_* */
    const char *name;           /* NUL-terminated */
    const struct hf_attr *attr; /* with HF_READDIR_PLUS, may be NULL */
};

struct hf_statfs {
    uint64_t total_bytes, free_bytes, total_files, free_files;
    uint32_t name_max, block_bytes;
};

/* ---- callbacks ---- */

typedef void hf_done_fn(void *arg, int err);
typedef void hf_attr_fn(void *arg, int err, const struct hf_attr *attr); /* attr NULL on errors */
typedef void hf_open_fn(void *arg, int err, struct hf_file *f, const struct hf_attr *attr);
/* n bytes in all; err or 0. Fewer than asked for: the file ends. */
typedef void hf_data_fn(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n);
typedef void hf_size_fn(void *arg, int64_t n); /* a count or offset, or a negative errno */
/* An empty page without eof does not come. */
typedef void hf_readdir_fn(void *arg, int err, const struct hf_dirent *e, size_t n, bool eof);
typedef void hf_statfs_fn(void *arg, int err, const struct hf_statfs *st);

/* ---- objects, by handle ---- */

void hf_lookup_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, hf_attr_fn *fn, void *arg);
void hf_getattr_async(struct hf_fs *fs, struct hf_handle h, hf_attr_fn *fn, void *arg);
/* f: an open file of the object or NULL; with one, permission to set the size is that of the open.
 */
void hf_setattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                      struct hf_file *f, const struct hf_setattr *set, hf_attr_fn *fn, void *arg);
/* mask: R_OK, W_OK, X_OK. EACCES. */
void hf_access_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int mask,
                     hf_done_fn *fn, void *arg);
/* The target as data. */
void hf_readlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       hf_data_fn *fn, void *arg);
/* umask is taken from mode unless the directory has a default ACL. */
void hf_mkdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, mode_t mode, mode_t umask, hf_attr_fn *fn, void *arg);
/* mode: S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK with permissions. */
void hf_mknod_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, mode_t mode, mode_t umask, uint32_t rdev_major,
                    uint32_t rdev_minor, hf_attr_fn *fn, void *arg);
void hf_symlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                      const char *name, const char *target, hf_attr_fn *fn, void *arg);
void hf_link_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                   struct hf_handle dir, const char *name, hf_attr_fn *fn, void *arg);
void hf_unlink_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, hf_done_fn *fn, void *arg);
void hf_rmdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                    const char *name, hf_done_fn *fn, void *arg);
#define HF_RENAME_NOREPLACE 1u
#define HF_RENAME_EXCHANGE  2u
void hf_rename_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle from_dir,
                     const char *from, struct hf_handle to_dir, const char *to, unsigned flags,
                     hf_done_fn *fn, void *arg);
/* Entries after `cookie` (0: from the start; "." and ".." are entries), in a fixed order that
 * survives changes and restarts: a name that stays is listed exactly once. max: entries, up to
 * 4096. */
#define HF_READDIR_PLUS 1u
void hf_readdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                      uint64_t cookie, unsigned max, unsigned flags, hf_readdir_fn *fn, void *arg);
void hf_statfs_async(struct hf_fs *fs, hf_statfs_fn *fn, void *arg);

/* Extended attributes: ENODATA, EEXIST (XATTR_CREATE), E2BIG (more than 64 KiB), EPERM, EOPNOTSUPP.
 * The value, or the names each with a NUL, come as data. */
void hf_getxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       const char *name, hf_data_fn *fn, void *arg);
void hf_setxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       const char *name, const void *value, size_t len, int flags, hf_done_fn *fn,
                       void *arg);
void hf_listxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                        hf_data_fn *fn, void *arg);
void hf_removexattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                          const char *name, hf_done_fn *fn, void *arg);

/* ---- files ---- */

/* flags: O_RDONLY, O_WRONLY, O_RDWR with O_APPEND, O_TRUNC, O_EXCL, O_SYNC, O_DSYNC; others are
 * ignored. An open file keeps its object when the last name goes. */
void hf_open_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int flags,
                   hf_open_fn *fn, void *arg);
/* Creates (or, without O_EXCL, opens) a regular file. */
void hf_create_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, int flags, mode_t mode, mode_t umask, hf_open_fn *fn,
                     void *arg);
struct hf_handle hf_file_handle(const struct hf_file *f);
/* EBADF: not open for it. Up to 4 MiB at once; more is cut. */
void hf_read_async(struct hf_file *f, uint64_t offset, size_t len, hf_data_fn *fn, void *arg);
/* O_APPEND: offset is ignored. Up to 16 pieces and 4 MiB. */
void hf_write_async(struct hf_file *f, const struct iovec *iov, unsigned niov, uint64_t offset,
                    hf_size_fn *fn, void *arg);
/* Sends what is buffered to the servers; others then see it. Not durable yet. */
void hf_flush_async(struct hf_file *f, hf_done_fn *fn, void *arg);
/* On stable storage everywhere it lies. */
void hf_fsync_async(struct hf_file *f, bool data_only, hf_done_fn *fn, void *arg);
/* mode: FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE (with KEEP_SIZE), FALLOC_FL_ZERO_RANGE, 0; others
 * EOPNOTSUPP. */
void hf_fallocate_async(struct hf_file *f, int mode, uint64_t offset, uint64_t len, hf_done_fn *fn,
                        void *arg);
/* whence: SEEK_DATA, SEEK_HOLE. ENXIO. Own buffered writes are data. */
void hf_seek_async(struct hf_file *f, uint64_t offset, int whence, hf_size_fn *fn, void *arg);
/* Flushes and ends the file, whatever fn says. max_calls does not hold for it. */
void hf_close_async(struct hf_file *f, hf_done_fn *fn, void *arg);

/* ---- the same, waiting ---- */

int hf_lookup(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
              struct hf_attr *ret);
int hf_getattr(struct hf_fs *fs, struct hf_handle h, struct hf_attr *ret);
int hf_setattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, struct hf_file *f,
               const struct hf_setattr *set, struct hf_attr *ret);
int hf_access(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int mask);
/* Cut to bytes, no NUL; returns the target's whole length. */
ssize_t hf_readlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, char *buf,
                    size_t bytes);
int hf_mkdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
             mode_t mode, mode_t umask, struct hf_attr *ret);
int hf_mknod(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
             mode_t mode, mode_t umask, uint32_t rdev_major, uint32_t rdev_minor,
             struct hf_attr *ret);
int hf_symlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
               const char *target, struct hf_attr *ret);
int hf_link(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, struct hf_handle dir,
            const char *name, struct hf_attr *ret);
int hf_unlink(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name);
int hf_rmdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name);
int hf_rename(struct hf_fs *fs, const struct hf_user *u, struct hf_handle from_dir,
              const char *from, struct hf_handle to_dir, const char *to, unsigned flags);
/* Calls each (on the calling thread) for a page of entries until it returns non-zero, which is then
 * the result, or the directory ends. */
int hf_readdir(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, unsigned flags,
               int (*each)(void *arg, const struct hf_dirent *e), void *arg);
int hf_statfs(struct hf_fs *fs, struct hf_statfs *ret);
/* bytes 0: only the length. ERANGE: it does not fit. */
ssize_t hf_getxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name,
                    void *buf, size_t bytes);
int hf_setxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name,
                const void *value, size_t len, int flags);
ssize_t hf_listxattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, char *buf,
                     size_t bytes);
int hf_removexattr(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, const char *name);
int hf_open(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int flags,
            struct hf_file **ret);
int hf_create(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, const char *name,
              int flags, mode_t mode, mode_t umask, struct hf_file **ret, struct hf_attr *ret_attr);
/* Any length: done in pieces. A short count: end of the file (read), or an error after it (write).
 */
ssize_t hf_read(struct hf_file *f, void *buf, size_t len, uint64_t offset);
ssize_t hf_write(struct hf_file *f, const void *buf, size_t len, uint64_t offset);
int hf_flush(struct hf_file *f);
int hf_fsync(struct hf_file *f, bool data_only);
int hf_fallocate(struct hf_file *f, int mode, uint64_t offset, uint64_t len);
int64_t hf_seek(struct hf_file *f, uint64_t offset, int whence);
int hf_close(struct hf_file *f);

/* ---- by path (waiting) ----
 *
 * Absolute within the file system; symbolic links are followed up to 40 (ELOOP), a link's absolute
 * target starts at the root of the file system. ENAMETOOLONG beyond 4095 bytes. */

/* follow: whether a link at the end is followed. */
int hf_path_lookup(struct hf_fs *fs, const struct hf_user *u, const char *path, bool follow,
                   struct hf_attr *ret);
/* The directory of the last component, and where in path that is. EINVAL for "/". */
int hf_path_parent(struct hf_fs *fs, const struct hf_user *u, const char *path,
                   struct hf_handle *ret_dir, const char **ret_name);
/* flags also O_CREAT, O_DIRECTORY, O_NOFOLLOW. mode is used as it is (no umask). */
int hf_path_open(struct hf_fs *fs, const struct hf_user *u, const char *path, int flags,
                 mode_t mode, struct hf_file **ret);

/* ---- figures ---- */

struct hf_fs_stats {
    size_t struct_size;
    uint64_t calls, calls_in_flight, dirty_bytes, readahead_bytes, open_files, write_errors,
        read_bytes, write_bytes, cache_hits;
};
void hf_fs_stats(struct hf_fs *fs, struct hf_fs_stats *ret);

/* "no such file or directory" for -ENOENT. */
const char *hf_strerror(int err);

#ifdef __cplusplus
}
#endif

#endif

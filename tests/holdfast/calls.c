/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call in its waiting form, with the errors that a program may meet.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lf.h"

static void t_names(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_attr d, a, b;
    struct hf_file *f;
    char target[16];
    char longest[257];

    memset(longest, 'n', 256);
    longest[256] = '\0';
    LF_OK(hf_mkdir(fs, &lf_root, dir, "d", 0777, 022, &d));
    NT_EQ(d.mode, S_IFDIR | 0755);
    NT_EQ(d.nlink, 2);
    LF_IS(hf_mkdir(fs, &lf_root, dir, "d", 0777, 0, &a), -EEXIST);
    LF_IS(hf_mkdir(fs, &lf_root, dir, longest, 0777, 0, &a), -ENAMETOOLONG);
    longest[255] = '\0';
    LF_OK(hf_mkdir(fs, &lf_root, dir, longest, 0777, 0, &a));
    LF_OK(hf_rmdir(fs, &lf_root, dir, longest));
    LF_IS(hf_rmdir(fs, &lf_root, dir, longest), -ENOENT);
    LF_OK(hf_create(fs, &lf_root, dir, "f", O_RDWR, 0666, 027, &f, &a));
    NT_EQ(a.mode, S_IFREG | 0640);
    NT_EQ(a.size, 0);
    NT_EQ(a.handle.ino, hf_file_handle(f).ino);
    LF_IS(hf_create(fs, &lf_root, dir, "f", O_RDWR | O_EXCL, 0666, 0, &f, NULL), -EEXIST);
    LF_OK(hf_close(f));
    LF_OK(hf_link(fs, &lf_root, a.handle, d.handle, "g", &b));
    NT_EQ(b.nlink, 2);
    NT_EQ(b.handle.ino, a.handle.ino);
    LF_IS(hf_link(fs, &lf_root, d.handle, dir, "dd", &b), -EPERM);
    LF_IS(hf_rmdir(fs, &lf_root, dir, "d"), -ENOTEMPTY);
    LF_IS(hf_unlink(fs, &lf_root, dir, "d"), -EISDIR);
    LF_IS(hf_rmdir(fs, &lf_root, dir, "f"), -ENOTDIR);
    LF_OK(hf_rename(fs, &lf_root, dir, "f", d.handle, "h", 0));
    LF_IS(hf_lookup(fs, &lf_root, dir, "f", &b), -ENOENT);
    LF_OK(hf_lookup(fs, &lf_root, d.handle, "h", &b));
    LF_IS(hf_lookup(fs, &lf_root, b.handle, "x", &b), -ENOTDIR);
    LF_IS(hf_rename(fs, &lf_root, dir, "d", d.handle, "loop", 0), -EINVAL);
    LF_OK(hf_unlink(fs, &lf_root, d.handle, "g"));
    LF_OK(hf_symlink(fs, &lf_root, dir, "s", "d/h", &b));
    NT_EQ(b.mode & S_IFMT, S_IFLNK);
    LF_IS(hf_readlink(fs, &lf_root, b.handle, target, sizeof(target)), 3);
    NT_CHECK(memcmp(target, "d/h", 3) == 0);
    LF_IS(hf_readlink(fs, &lf_root, b.handle, target, 2), 3);
    LF_IS(hf_readlink(fs, &lf_root, d.handle, target, 2), -EINVAL);
    LF_OK(hf_mknod(fs, &lf_root, dir, "dev", S_IFCHR | 0600, 0, 7, 9, &b));
    NT_CHECK(S_ISCHR(b.mode) && b.rdev_major == 7 && b.rdev_minor == 9);
    LF_OK(hf_mknod(fs, &lf_root, dir, "fifo", S_IFIFO | 0666, 022, 0, 0, &b));
    NT_EQ(b.mode, S_IFIFO | 0644);
    LF_OK(hf_mknod(fs, &lf_root, dir, "reg", S_IFREG | 0600, 0, 0, 0, &b));
    NT_EQ(b.mode, S_IFREG | 0600);
    LF_IS(hf_mknod(fs, &lf_root, dir, "x", S_IFDIR | 0600, 0, 0, 0, &b), -EINVAL);
    lf_close(fs);
}

static void t_rename_flags(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_attr a, b, c;

    LF_OK(hf_mknod(fs, &lf_root, dir, "a", S_IFREG | 0600, 0, 0, 0, &a));
    LF_OK(hf_mkdir(fs, &lf_root, dir, "b", 0700, 0, &b));
    LF_IS(hf_rename(fs, &lf_root, dir, "a", dir, "b", HF_RENAME_NOREPLACE), -EEXIST);
    LF_OK(hf_rename(fs, &lf_root, dir, "a", dir, "b", HF_RENAME_EXCHANGE));
    LF_OK(hf_lookup(fs, &lf_root, dir, "b", &c));
    NT_EQ(c.handle.ino, a.handle.ino);
    LF_OK(hf_lookup(fs, &lf_root, dir, "a", &c));
    NT_EQ(c.handle.ino, b.handle.ino);
    LF_IS(hf_rename(fs, &lf_root, dir, "a", dir, "none", HF_RENAME_EXCHANGE), -ENOENT);
    LF_OK(hf_rename(fs, &lf_root, dir, "b", dir, "new", HF_RENAME_NOREPLACE));
    LF_IS(hf_rename(fs, &lf_root, dir, "a", dir, "new", 7), -EINVAL);
    lf_close(fs);
}

static void t_attributes(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_setattr s = {.set =
                               HF_SET_MODE | HF_SET_UID | HF_SET_GID | HF_SET_ATIME | HF_SET_MTIME,
                           .mode = 0711,
                           .uid = 1000,
                           .gid = 1001,
                           .atime_ns = -5000000001,
                           .mtime_ns = 999999999};
    struct hf_handle wrong;
    struct hf_attr a, b;

    LF_OK(hf_mknod(fs, &lf_root, dir, "a", S_IFREG | 0600, 0, 0, 0, &a));
    LF_OK(hf_setattr(fs, &lf_root, a.handle, NULL, &s, &b));
    LF_OK(hf_getattr(fs, a.handle, &a));
    NT_CHECK(memcmp(&a, &b, sizeof(a)) == 0);
    NT_EQ(a.mode, S_IFREG | 0711);
    NT_CHECK(a.uid == 1000 && a.gid == 1001 && a.atime_ns == -5000000001 &&
             a.mtime_ns == 999999999);
    LF_OK(hf_access(fs, &lf_user, a.handle, R_OK | W_OK | X_OK));
    LF_IS(hf_access(fs, &(struct hf_user){.uid = 5, .gid = 5}, a.handle, R_OK), -EACCES);
    LF_OK(hf_access(fs, &(struct hf_user){.uid = 5, .gid = 5}, a.handle, X_OK));
    LF_IS(hf_setattr(fs, &(struct hf_user){.uid = 5, .gid = 5}, a.handle, NULL, &s, &b), -EPERM);
    wrong = (struct hf_handle){.ino = a.handle.ino, .gen = a.handle.gen + 1};
    LF_IS(hf_getattr(fs, wrong, &b), -ESTALE);
    wrong = (struct hf_handle){.ino = 1ull << 60};
    LF_IS(hf_getattr(fs, wrong, &b), -ESTALE);
    lf_close(fs);
}

static void t_open(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_setattr cut = {.set = HF_SET_SIZE, .size = 5};
    struct hf_attr a, b;
    struct hf_file *f;
    uint8_t buf[8];

    LF_OK(hf_mknod(fs, &lf_user, dir, "a", S_IFREG | 0400, 0, 0, 0, &a));
    LF_IS(hf_open(fs, &lf_user, a.handle, O_WRONLY, &f), -EACCES);
    LF_IS(hf_open(fs, &(struct hf_user){.uid = 5}, a.handle, O_RDONLY, &f), -EACCES);
    LF_OK(hf_open(fs, &lf_user, a.handle, O_RDONLY, &f));
    LF_IS(hf_write(f, "x", 1, 0), -EBADF);
    LF_IS(hf_fallocate(f, 0, 0, 10), -EBADF);
    LF_IS(hf_read(f, buf, sizeof(buf), 0), 0);
    LF_IS(hf_read(f, buf, sizeof(buf), ~0ull - 3), 0);
    LF_IS(hf_setattr(fs, &lf_user, a.handle, f, &cut, &b), -EINVAL);
    LF_OK(hf_close(f));
    /* Whoever made a file may write to it, whatever its mode. */
    LF_OK(hf_create(fs, &lf_user, dir, "ro", O_RDWR | O_EXCL, 0400, 0, &f, NULL));
    LF_IS(hf_write(f, "0123456789", 10, 0), 10);
    LF_OK(hf_fsync(f, false));
    LF_OK(hf_setattr(fs, &lf_user, hf_file_handle(f), f, &cut, &b));
    NT_EQ(b.size, 5);
    LF_IS(hf_read(f, buf, sizeof(buf), 0), 5);
    LF_OK(hf_close(f));
    LF_OK(hf_create(fs, &lf_user, dir, "wo", O_WRONLY, 0600, 0, &f, NULL));
    LF_IS(hf_read(f, buf, sizeof(buf), 0), -EBADF);
    LF_IS(hf_write(f, "x", 0, 5), 0);
    LF_OK(hf_close(f));
    LF_OK(hf_unlink(fs, &lf_root, dir, "wo"));
    LF_IS(hf_open(fs, &lf_user, (struct hf_handle){.ino = a.handle.ino, .gen = a.handle.gen + 1},
                  O_RDONLY, &f),
          -ESTALE);
    lf_close(fs);
}

struct listing {
    unsigned n, dots, with_attr;
    uint64_t names; /* bits of f0 .. f63 */
    unsigned stop_after;
};

static int list_one(void *arg, const struct hf_dirent *d)
{
    struct listing *l = arg;

    if (d->name[0] == '.') {
        l->dots++;
        NT_EQ(d->type, DT_DIR);
    } else {
        l->names |= 1ull << strtoul(d->name + 1, NULL, 10);
        NT_EQ(d->type, DT_REG);
        if (d->attr != NULL) {
            l->with_attr++;
            NT_EQ(d->attr->handle.ino, d->ino);
        }
    }
    l->n++;
    return l->stop_after == l->n ? 77 : 0;
}

static void t_readdir(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct listing l = {0};
    struct hf_attr a;

    for (unsigned k = 0; k < 64; k++) {
        char name[16];

        snprintf(name, sizeof(name), "f%u", k);
        LF_OK(hf_mknod(fs, &lf_root, dir, name, S_IFREG | 0600, 0, 0, 0, &a));
    }
    LF_OK(hf_readdir(fs, &lf_root, dir, 0, list_one, &l));
    NT_CHECK(l.names == ~0ull && l.dots == 2 && l.n == 66 && l.with_attr == 0);
    l = (struct listing){0};
    LF_OK(hf_readdir(fs, &lf_root, dir, HF_READDIR_PLUS, list_one, &l));
    NT_CHECK(l.names == ~0ull && l.n == 66 && l.with_attr == 64);
    l = (struct listing){.stop_after = 5};
    LF_IS(hf_readdir(fs, &lf_root, dir, 0, list_one, &l), 77);
    NT_EQ(l.n, 5);
    LF_IS(hf_readdir(fs, &lf_root, a.handle, 0, list_one, &l), -ENOTDIR);
    lf_close(fs);
}

static void t_statfs(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_statfs st;

    LF_OK(hf_statfs(fs, &st));
    NT_CHECK(st.total_bytes > 0 && st.free_bytes <= st.total_bytes && st.total_files > 0);
    NT_EQ(st.name_max, 255);
    lf_close(fs);
}

static void t_xattrs(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    uint8_t *big = malloc(65537), *got = malloc(65537);
    char names[64];
    struct hf_attr a;

    nt_pattern(3, 0, big, 65537);
    LF_OK(hf_mknod(fs, &lf_root, dir, "x", S_IFREG | 0600, 0, 0, 0, &a));
    LF_IS(hf_getxattr(fs, &lf_root, a.handle, "user.a", got, 10), -ENODATA);
    LF_OK(hf_setxattr(fs, &lf_root, a.handle, "user.a", "hello", 5, 0));
    LF_IS(hf_setxattr(fs, &lf_root, a.handle, "user.a", "x", 1, XATTR_CREATE), -EEXIST);
    LF_IS(hf_setxattr(fs, &lf_root, a.handle, "user.b", "x", 1, XATTR_REPLACE), -ENODATA);
    LF_IS(hf_setxattr(fs, &lf_root, a.handle, "user.b", "x", 1, 99), -EINVAL);
    LF_IS(hf_getxattr(fs, &lf_root, a.handle, "user.a", got, 65537), 5);
    NT_CHECK(memcmp(got, "hello", 5) == 0);
    LF_IS(hf_getxattr(fs, &lf_root, a.handle, "user.a", NULL, 0), 5);
    LF_IS(hf_getxattr(fs, &lf_root, a.handle, "user.a", got, 4), -ERANGE);
    LF_OK(hf_setxattr(fs, &lf_root, a.handle, "user.big", big, 65536, 0));
    LF_IS(hf_getxattr(fs, &lf_root, a.handle, "user.big", got, 65536), 65536);
    NT_CHECK(memcmp(got, big, 65536) == 0);
    LF_IS(hf_setxattr(fs, &lf_root, a.handle, "user.big", big, 65537, 0), -E2BIG);
    LF_IS(hf_listxattr(fs, &lf_root, a.handle, names, sizeof(names)), 7 + 9);
    LF_IS(hf_listxattr(fs, &lf_root, a.handle, names, 3), -ERANGE);
    LF_OK(hf_getattr(fs, a.handle, &a));
    NT_CHECK(a.flags & HF_ATTR_XATTR);
    LF_OK(hf_removexattr(fs, &lf_root, a.handle, "user.a"));
    LF_IS(hf_removexattr(fs, &lf_root, a.handle, "user.a"), -ENODATA);
    free(big);
    free(got);
    lf_close(fs);
}

static void t_fallocate_seek(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_file *f = lf_create(fs, lf_dir(e, fs), "fa", 0);
    const uint64_t mib = 1u << 20;

    lf_put(f, 1, 0, 12 * mib);
    LF_OK(hf_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * mib, 6 * mib));
    lf_check(f, 1, 0, 2 * mib);
    lf_check_zero(f, 2 * mib, 6 * mib);
    lf_check(f, 1, 8 * mib, 4 * mib);
    LF_IS(hf_seek(f, 0, SEEK_DATA), 0);
    NT_CHECK(hf_seek(f, 0, SEEK_HOLE) >= (int64_t)(2 * mib));
    NT_CHECK(hf_seek(f, 0, SEEK_HOLE) < (int64_t)(8 * mib));
    NT_CHECK(hf_seek(f, 5 * mib, SEEK_DATA) <= (int64_t)(8 * mib));
    LF_IS(hf_seek(f, 12 * mib, SEEK_DATA), -ENXIO);
    LF_IS(hf_seek(f, 12 * mib - 1, SEEK_HOLE), (int64_t)(12 * mib));
    LF_IS(hf_seek(f, 0, SEEK_SET), -EINVAL);
    LF_OK(hf_fallocate(f, 0, 12 * mib, mib));
    NT_EQ(lf_size(fs, hf_file_handle(f)), 13 * mib);
    LF_OK(hf_fallocate(f, FALLOC_FL_KEEP_SIZE, 20 * mib, mib));
    NT_EQ(lf_size(fs, hf_file_handle(f)), 13 * mib);
    LF_OK(hf_fallocate(f, FALLOC_FL_ZERO_RANGE, 9 * mib, mib));
    lf_check(f, 1, 8 * mib, mib);
    lf_check_zero(f, 9 * mib, mib);
    lf_check(f, 1, 10 * mib, 2 * mib);
    LF_IS(hf_fallocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, mib), -EOPNOTSUPP);
    LF_IS(hf_fallocate(f, 0, 0, 0), -EINVAL);
    LF_IS(hf_fallocate(f, 0, INT64_MAX, 1), -EFBIG);
    LF_OK(hf_close(f));
    lf_close(fs);
}

/* ---- paths ---- */

static void t_paths(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs), parent;
    char base[80], path[8192];
    const char *last;
    struct hf_attr a, d, sub;
    struct hf_file *f;

    snprintf(base, sizeof(base), "/%s", e->dir_name);
#define P(suffix) (snprintf(path, sizeof(path), "%s%s", base, suffix), path)
    LF_OK(hf_path_lookup(fs, &lf_root, "/", true, &a));
    NT_EQ(a.handle.ino, hf_root(fs).ino);
    LF_OK(hf_path_lookup(fs, &lf_root, "//..//.", true, &a));
    NT_EQ(a.handle.ino, hf_root(fs).ino);
    LF_OK(hf_path_lookup(fs, &lf_root, P(""), true, &a));
    NT_EQ(a.handle.ino, dir.ino);
    LF_OK(hf_mkdir(fs, &lf_root, dir, "d", 0755, 0, &d));
    LF_OK(hf_mkdir(fs, &lf_root, d.handle, "sub", 0755, 0, &sub));
    LF_OK(hf_path_open(fs, &lf_root, P("/d/f"), O_CREAT | O_RDWR, 0640, &f));
    LF_IS(hf_write(f, "hello", 5, 0), 5);
    LF_OK(hf_close(f));
    LF_OK(hf_path_lookup(fs, &lf_root, P("/d/sub/../f"), true, &a));
    NT_EQ(a.size, 5);
    NT_EQ(a.mode, S_IFREG | 0640);
    LF_IS(hf_path_lookup(fs, &lf_root, P("/d/f/"), true, &a), -ENOTDIR);
    LF_IS(hf_path_lookup(fs, &lf_root, P("/d/f/x"), true, &a), -ENOTDIR);
    LF_IS(hf_path_lookup(fs, &lf_root, P("/d/none/x"), true, &a), -ENOENT);
    LF_IS(hf_path_lookup(fs, &lf_root, "", true, &a), -ENOENT);
    LF_OK(hf_symlink(fs, &lf_root, dir, "rel", "d/f", &a));
    LF_OK(hf_symlink(fs, &lf_root, d.handle, "abs", P("/rel"), &a));
    LF_OK(hf_symlink(fs, &lf_root, dir, "todir", "d/", &a));
    LF_OK(hf_symlink(fs, &lf_root, dir, "self", "self", &a));
    LF_OK(hf_symlink(fs, &lf_root, dir, "dangling", "d/made", &a));
    LF_OK(hf_path_lookup(fs, &lf_root, P("/d/abs"), true, &a));
    NT_EQ(a.size, 5);
    LF_OK(hf_path_lookup(fs, &lf_root, P("/d/abs"), false, &a));
    NT_CHECK(S_ISLNK(a.mode));
    LF_OK(hf_path_lookup(fs, &lf_root, P("/todir/sub"), false, &a));
    NT_EQ(a.handle.ino, sub.handle.ino);
    LF_OK(hf_path_lookup(fs, &lf_root, P("/todir/"), false, &a));
    NT_EQ(a.handle.ino, d.handle.ino);
    LF_IS(hf_path_lookup(fs, &lf_root, P("/self"), true, &a), -ELOOP);
    LF_IS(hf_path_lookup(fs, &lf_root, P("/self/x"), false, &a), -ELOOP);
    LF_IS(hf_path_open(fs, &lf_root, P("/rel"), O_RDONLY | O_NOFOLLOW, 0, &f), -ELOOP);
    LF_OK(hf_path_open(fs, &lf_root, P("/rel"), O_RDONLY, 0, &f));
    LF_OK(hf_close(f));
    LF_IS(hf_path_open(fs, &lf_root, P("/dangling"), O_RDONLY, 0, &f), -ENOENT);
    LF_IS(hf_path_open(fs, &lf_root, P("/dangling"), O_CREAT | O_EXCL | O_RDWR, 0600, &f), -EEXIST);
    LF_OK(hf_path_open(fs, &lf_root, P("/dangling"), O_CREAT | O_RDWR, 0600, &f));
    LF_OK(hf_close(f));
    LF_OK(hf_lookup(fs, &lf_root, d.handle, "made", &a));
    LF_IS(hf_path_open(fs, &lf_root, P("/d"), O_CREAT | O_RDONLY, 0, &f), -EISDIR);
    LF_IS(hf_path_open(fs, &lf_root, P("/d"), O_WRONLY, 0, &f), -EISDIR);
    LF_IS(hf_path_open(fs, &lf_root, P("/rel"), O_RDONLY | O_DIRECTORY, 0, &f), -ENOTDIR);
    LF_IS(hf_path_open(fs, &lf_root, P("/d/new/"), O_CREAT | O_RDWR, 0600, &f), -EISDIR);
    LF_IS(hf_path_open(fs, &lf_root, "/", O_CREAT | O_RDWR, 0600, &f), -EISDIR);
    LF_OK(hf_path_open(fs, &lf_root, P("/d/f"), O_RDWR | O_TRUNC, 0, &f));
    LF_OK(hf_close(f));
    LF_OK(hf_path_lookup(fs, &lf_root, P("/d/f"), true, &a));
    NT_EQ(a.size, 0);
    LF_OK(hf_path_parent(fs, &lf_root, P("/todir/sub///"), &parent, &last));
    NT_EQ(parent.ino, d.handle.ino);
    NT_CHECK(strcmp(last, "sub///") == 0);
    LF_IS(hf_path_parent(fs, &lf_root, "/", &parent, &last), -EINVAL);
    LF_IS(hf_path_parent(fs, &lf_root, P("/d/f/x"), &parent, &last), -ENOTDIR);
    memset(path, '/', 4096);
    path[4095] = '\0';
    LF_OK(hf_path_lookup(fs, &lf_root, path, true, &a));
    path[4095] = '/';
    path[4096] = '\0';
    LF_IS(hf_path_lookup(fs, &lf_root, path, true, &a), -ENAMETOOLONG);
    memset(path, 'x', 300);
    path[0] = '/';
    path[300] = '\0';
    LF_IS(hf_path_lookup(fs, &lf_root, path, true, &a), -ENAMETOOLONG);
    LF_IS(hf_path_open(fs, &lf_root, path, O_CREAT | O_RDWR, 0600, &f), -ENAMETOOLONG);
#undef P
    lf_close(fs);
}

/* Forty links are followed, one more is not. */
static void t_links(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    char name[16], to[16], path[100];
    struct hf_attr a;

    for (unsigned k = 0; k <= 40; k++) {
        snprintf(name, sizeof(name), "l%u", k);
        snprintf(to, sizeof(to), k == 0 ? "." : "l%u", k - 1);
        LF_OK(hf_symlink(fs, &lf_root, dir, name, to, &a));
    }
    snprintf(path, sizeof(path), "/%s/l39", e->dir_name);
    LF_OK(hf_path_lookup(fs, &lf_root, path, true, &a));
    NT_EQ(a.handle.ino, dir.ino);
    snprintf(path, sizeof(path), "/%s/l40", e->dir_name);
    LF_IS(hf_path_lookup(fs, &lf_root, path, true, &a), -ELOOP);
    lf_close(fs);
}

static void t_connect(struct nt_env *e)
{
    struct hf_fs_opts o = {.struct_size = sizeof(o)};
    struct hf_fs *fs;

    (void)e;
    LF_IS(hf_fs_open(&o, &fs), -EINVAL);
    o.url = "ipc:///x";
    o.threads = 17;
    LF_IS(hf_fs_open(&o, &fs), -EINVAL);
    o.threads = 1;
    o.struct_size = 4;
    LF_IS(hf_fs_open(&o, &fs), -EINVAL);
    o.struct_size = sizeof(o);
    o.url = "nonsense";
    LF_IS(hf_fs_open(&o, &fs), -EINVAL);
    LF_OK(hf_fs_close(NULL));
    NT_CHECK(strcmp(hf_strerror(-ENOENT), "no such file or directory") == 0);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"connect", t_connect, true},
        {"names", t_names, true},
        {"attributes", t_attributes, true},
        {"open", t_open, true},
        {"readdir", t_readdir, true},
        {"statfs", t_statfs, true},
        {"paths", t_paths, true},
        {"links", t_links, true},
        {"xattrs", t_xattrs, true},
        {"rename_flags", t_rename_flags, true},
        {"fallocate_seek", t_fallocate_seek, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

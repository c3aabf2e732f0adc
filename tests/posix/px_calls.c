/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call that takes a path, as one table, for what all paths have in common. The kernel's calls
 * themselves, so that a bad pointer reaches the kernel and not a wrapper's check.
 *
 * The second path of a call with two is "other", a file that is there, or "made", which is not.
 */
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "px.h"

#define CALL(name, ...)                                                                            \
    static int name(const char *path)                                                              \
    {                                                                                              \
        return (int)syscall(__VA_ARGS__);                                                          \
    }
#define HERE AT_FDCWD

CALL(call_stat, SYS_newfstatat, HERE, path, &(struct stat){0}, 0)
CALL(call_lstat, SYS_newfstatat, HERE, path, &(struct stat){0}, AT_SYMLINK_NOFOLLOW)
CALL(call_access, SYS_faccessat, HERE, path, F_OK)
CALL(call_statfs, SYS_statfs, path, &(struct statfs){0})
CALL(call_readlink, SYS_readlinkat, HERE, path, (char[8]){0}, 8)
CALL(call_chmod, SYS_fchmodat, HERE, path, 0644)
CALL(call_chown, SYS_fchownat, HERE, path, -1, -1, 0)
CALL(call_lchown, SYS_fchownat, HERE, path, -1, -1, AT_SYMLINK_NOFOLLOW)
CALL(call_utimens, SYS_utimensat, HERE, path, NULL, 0)
CALL(call_lutimens, SYS_utimensat, HERE, path, NULL, AT_SYMLINK_NOFOLLOW)
CALL(call_truncate, SYS_truncate, path, 0L)
CALL(call_mkdir, SYS_mkdirat, HERE, path, 0755)
CALL(call_rmdir, SYS_unlinkat, HERE, path, AT_REMOVEDIR)
CALL(call_unlink, SYS_unlinkat, HERE, path, 0)
CALL(call_mkfifo, SYS_mknodat, HERE, path, S_IFIFO | 0644, 0)
CALL(call_mknod, SYS_mknodat, HERE, path, S_IFSOCK | 0644, 0)
CALL(call_mknod_file, SYS_mknodat, HERE, path, S_IFREG | 0644, 0)
CALL(call_symlink, SYS_symlinkat, "target", HERE, path)
CALL(call_link_from, SYS_linkat, HERE, path, HERE, "made", 0)
CALL(call_link_to, SYS_linkat, HERE, "other", HERE, path, 0)
CALL(call_rename_from, SYS_renameat, HERE, path, HERE, "made")
CALL(call_rename_to, SYS_renameat, HERE, "other", HERE, path)
CALL(call_exchange, SYS_renameat2, HERE, path, HERE, "other", 2 /* RENAME_EXCHANGE */)
CALL(call_getxattr, SYS_getxattr, path, "user.px", NULL, 0UL)
CALL(call_setxattr, SYS_setxattr, path, "user.px", "v", 1UL, 0)
CALL(call_listxattr, SYS_listxattr, path, NULL, 0UL)
CALL(call_llistxattr, SYS_llistxattr, path, NULL, 0UL)
CALL(call_removexattr, SYS_removexattr, path, "user.px")
CALL(call_chdir, SYS_chdir, path)
CALL(call_exec, SYS_execve, path, NULL, NULL)

static int open_close(const char *path, int flags)
{
    int fd = (int)syscall(SYS_openat, HERE, path, flags, 0644);

    return fd < 0 ? fd : close(fd);
}

static int call_open_read(const char *path)
{
    return open_close(path, O_RDONLY | O_NONBLOCK);
}

static int call_open_write(const char *path)
{
    return open_close(path, O_RDWR | O_NONBLOCK);
}

static int call_open_dir(const char *path)
{
    return open_close(path, O_RDONLY | O_DIRECTORY);
}

static int call_open_creat(const char *path)
{
    return open_close(path, O_WRONLY | O_CREAT);
}

static int call_open_excl(const char *path)
{
    return open_close(path, O_WRONLY | O_CREAT | O_EXCL);
}

static int call_open_trunc(const char *path)
{
    return open_close(path, O_WRONLY | O_TRUNC);
}

static int call_open_path(const char *path)
{
    return open_close(path, O_PATH);
}

#define MAKES (PX_MAKES | PX_CHANGES | PX_PARENT)
#define TAKES (PX_CHANGES | PX_PARENT)

const struct px_call px_calls[] = {
    {"stat", call_stat, PX_FOLLOWS | PX_READS},
    {"lstat", call_lstat, PX_READS},
    {"access", call_access, PX_FOLLOWS | PX_READS},
    {"statfs", call_statfs, PX_FOLLOWS | PX_READS},
    {"readlink", call_readlink, 0},
    {"chmod", call_chmod, PX_FOLLOWS | PX_CHANGES},
    {"chown", call_chown, PX_FOLLOWS | PX_CHANGES},
    {"lchown", call_lchown, PX_CHANGES},
    {"utimensat", call_utimens, PX_FOLLOWS | PX_CHANGES},
    {"utimensat_nofollow", call_lutimens, PX_CHANGES},
    {"truncate", call_truncate, PX_FOLLOWS | PX_CHANGES},
    {"mkdir", call_mkdir, MAKES},
    {"rmdir", call_rmdir, TAKES | PX_DIR},
    {"unlink", call_unlink, TAKES},
    {"mkfifo", call_mkfifo, MAKES},
    {"mknod", call_mknod, MAKES},
    {"mknod_file", call_mknod_file, MAKES},
    {"symlink", call_symlink, MAKES},
    {"link_from", call_link_from, PX_CHANGES},
    {"link_to", call_link_to, MAKES},
    {"rename_from", call_rename_from, TAKES},
    {"rename_to", call_rename_to, MAKES},
    {"exchange", call_exchange, TAKES},
    {"getxattr", call_getxattr, PX_FOLLOWS},
    {"setxattr", call_setxattr, PX_FOLLOWS | PX_CHANGES},
    {"listxattr", call_listxattr, PX_FOLLOWS | PX_READS},
    {"llistxattr", call_llistxattr, PX_READS},
    {"removexattr", call_removexattr, PX_FOLLOWS | PX_CHANGES},
    {"chdir", call_chdir, PX_FOLLOWS | PX_DIR},
    {"exec", call_exec, PX_FOLLOWS},
    {"open_read", call_open_read, PX_FOLLOWS | PX_READS},
    {"open_write", call_open_write, PX_FOLLOWS | PX_CHANGES},
    {"open_dir", call_open_dir, PX_FOLLOWS | PX_DIR},
    {"open_creat", call_open_creat, MAKES | PX_FOLLOWS},
    {"open_excl", call_open_excl, MAKES},
    {"open_trunc", call_open_trunc, PX_FOLLOWS | PX_CHANGES},
    {"open_path", call_open_path, PX_FOLLOWS | PX_READS},
};
const size_t px_ncalls = sizeof(px_calls) / sizeof(px_calls[0]);

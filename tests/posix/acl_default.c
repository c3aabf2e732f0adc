/* SPDX-License-Identifier: Apache-2.0
 *
 * Default ACLs: what new objects get from their directory; then the umask has no say.
 */
#include <sys/xattr.h>

#include "px_acl.h"

#define DEF "u::rwx,u:64001:rwx,g::r-x,m::rwx,o::---"

static void make(const char *name, mode_t mode)
{
    PX_OK(close((int)PX_OK(open(name, O_CREAT | O_EXCL | O_WRONLY, mode))));
}

static void of_a_file(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    DEF_IS("d", DEF);
    ACL_IS("d", "");
    PX_EQ(px_mode("d"), 0777);
    umask(077);
    make("d/f", 0666);
    ACL_IS("d/f", "u::rw-,u:64001:rwx,g::r-x,m::rw-,o::---");
    DEF_IS("d/f", "");
    PX_EQ(px_mode("d/f"), 0660);
    make("d/g", 0640);
    ACL_IS("d/g", "u::rw-,u:64001:rwx,g::r-x,m::r--,o::---");
    make("d/h", 0777);
    ACL_IS("d/h", "u::rwx,u:64001:rwx,g::r-x,m::rwx,o::---");
    make("d/i", 0);
    ACL_IS("d/i", "u::---,u:64001:rwx,g::r-x,m::---,o::---");
}

static void of_a_directory(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    umask(077);
    PX_OK(mkdir("d/e", 0777));
    ACL_IS("d/e", "u::rwx,u:64001:rwx,g::r-x,m::rwx,o::---");
    DEF_IS("d/e", DEF);
    PX_EQ(px_mode("d/e"), 0770);
    PX_OK(mkdir("d/e/f", 0750));
    ACL_IS("d/e/f", "u::rwx,u:64001:rwx,g::r-x,m::r-x,o::---");
    DEF_IS("d/e/f", DEF);
    make("d/e/f/g", 0666);
    ACL_IS("d/e/f/g", "u::rw-,u:64001:rwx,g::r-x,m::rw-,o::---");
}

static void of_other_kinds(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    umask(077);
    PX_OK(mkfifo("d/p", 0666));
    ACL_IS("d/p", "u::rw-,u:64001:rwx,g::r-x,m::rw-,o::---");
    PX_OK(mknod("d/s", S_IFSOCK | 0600, 0));
    PX_EQ(px_mode("d/s"), 0600);
    PX_OK(mknod("d/f", S_IFREG | 0666, 0));
    ACL_IS("d/f", "u::rw-,u:64001:rwx,g::r-x,m::rw-,o::---");
    PX_OK(symlink("x", "d/l"));
    PX_EQ(px_mode("d/l"), 0777);
}

static void three_entries_replace_the_umask(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", "u::rwx,g::r-x,o::--x");
    DEF_IS("d", "u::rwx,g::r-x,o::--x");
    umask(0777);
    make("d/f", 0666);
    PX_EQ(px_mode("d/f"), 0640);
    ACL_IS("d/f", "");
    PX_OK(mkdir("d/e", 0777));
    PX_EQ(px_mode("d/e"), 0751);
    DEF_IS("d/e", "u::rwx,g::r-x,o::--x");
}

static void without_one_the_umask_rules(void)
{
    px_dir("d", 0777);
    px_acl_set("d", "u::rwx,u:64001:rwx,g::rwx,m::rwx,o::rwx");
    umask(027);
    make("d/f", 0666);
    PX_EQ(px_mode("d/f"), 0640);
    ACL_IS("d/f", "");
}

static void decides(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", "u::rw-,u:64001:r--,u:64002:rw-,g::---,m::rw-,o::---");
    umask(0);
    px_user(U1, G1);
    make("d/f", 0666);
    px_user(U2, G2);
    PX_OK(close((int)PX_OK(open("d/f", O_RDONLY))));
    PX_ERR(open("d/f", O_WRONLY), EACCES);
    px_user(U3, G2);
    PX_OK(close((int)PX_OK(open("d/f", O_RDWR))));
    px_user(60000, G1);
    PX_ERR(open("d/f", O_RDONLY), EACCES);
}

static void with_setgid(void)
{
    struct stat st;

    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    PX_OK(chown("d", 0, G2));
    PX_OK(chmod("d", 02777));
    px_user(U1, G1);
    make("d/f", 0666);
    PX_OK(mkdir("d/e", 0777));
    st = px_stat("d/f");
    PX_EQ(st.st_gid, G2);
    st = px_stat("d/e");
    PX_EQ(st.st_gid, G2);
    PX_EQ(st.st_mode & 07777, 02770);
    DEF_IS("d/e", DEF);
}

static void directories_only(void)
{
    uint8_t buf[256];
    size_t n = px_acl_bytes(DEF, buf, sizeof(buf));

    px_file("f", 0644);
    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    PX_ERR(setxattr("f", DEFAULT_ACL, buf, n, 0), EACCES);
    DEF_IS("f", "");
    n = px_acl_bytes("u::rw-,u:64001:r--,g::r--,o::---", buf, sizeof(buf));
    PX_ERR(setxattr("d", DEFAULT_ACL, buf, n, 0), EINVAL);
    DEF_IS("d", DEF);
}

static void rights(void)
{
    uint8_t buf[256];
    size_t n = px_acl_bytes(DEF, buf, sizeof(buf));

    px_dir("d", 0777);
    px_own("d", U1, G1);
    px_acl_set_default("d", DEF);
    px_user(U2, G2);
    PX_ERR(setxattr("d", DEFAULT_ACL, buf, n, 0), EPERM);
    PX_ERR(removexattr("d", DEFAULT_ACL), EPERM);
    DEF_IS("d", DEF);
    px_user(U1, G1);
    PX_OK(removexattr("d", DEFAULT_ACL));
    DEF_IS("d", "");
    px_root();
    umask(022);
    make("d/f", 0666);
    PX_EQ(px_mode("d/f"), 0644);
    ACL_IS("d/f", "");
}

static void what_is_there_stays(void)
{
    px_dir("d", 0777);
    px_file("d/f", 0644);
    px_acl_set_default("d", DEF);
    ACL_IS("d/f", "");
    PX_EQ(px_mode("d/f"), 0644);
    px_file("g", 0644);
    PX_OK(rename("g", "d/g")); /* moving is not making */
    ACL_IS("d/g", "");
    PX_OK(link("d/g", "d/h"));
    ACL_IS("d/h", "");
}

static void chmod_of_the_directory(void)
{
    px_dir("d", 0777);
    px_acl_set_default("d", DEF);
    PX_OK(chmod("d", 0700));
    DEF_IS("d", DEF); /* concerns the access ACL only */
    ACL_IS("d", "");
}

PX_GROUP(acl_default, T(of_a_file), T(of_a_directory), T(of_other_kinds),
         T(three_entries_replace_the_umask), T(without_one_the_umask_rules), T(decides),
         T(with_setgid), T(directories_only), T(rights), T(what_is_there_stays),
         T(chmod_of_the_directory));

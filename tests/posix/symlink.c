/* SPDX-License-Identifier: Apache-2.0
 *
 * symlink and readlink: any bytes as the target, and following them (F5).
 */
#include <limits.h>

#include "px.h"

static void target_is_kept(const char *target)
{
    static char buf[PATH_MAX + 1];
    size_t len = strlen(target);

    PX_OK(symlink(target, "l"));
    memset(buf, '#', sizeof(buf));
    PX_EQ(PX_OK(readlink("l", buf, sizeof(buf))), len);
    PX_CHECK(memcmp(buf, target, len) == 0 && buf[len] == '#');
    PX_EQ(px_size("l"), len);
    PX_EQ(px_stat("l").st_mode & S_IFMT, S_IFLNK);
    PX_OK(unlink("l"));
}

static void targets(void)
{
    static char longest[4096];

    target_is_kept("x");
    target_is_kept("/etc/passwd");
    target_is_kept("../../../..");
    target_is_kept("a//b/./c/");
    target_is_kept("\x01\xff\xfe not UTF-8 \x80");
    memset(longest, 't', 4095);
    for (size_t i = 200; i < 4095; i += 200) {
        longest[i] = '/';
    }
    target_is_kept(longest); /* 4095 bytes */
    longest[255] = '\0';
    target_is_kept(longest);
}

static void too_long(void)
{
    static char t[4098];

    memset(t, 't', 4096);
    PX_ERR(symlink(t, "l"), ENAMETOOLONG);
    PX_ERR(symlink("", "l"), ENOENT);
    PX_CHECK(!px_exists("l"));
}

static void short_buffers_are_filled(void)
{
    char buf[8] = "#######";

    PX_OK(symlink("abcdefgh", "l"));
    PX_EQ(PX_OK(readlink("l", buf, 3)), 3);
    PX_CHECK(memcmp(buf, "abc#", 4) == 0);
    PX_ERR(readlink("l", buf, 0), EINVAL);
}

static void not_a_link(void)
{
    char buf[8];

    px_zoo();
    PX_ERR(readlink("file", buf, sizeof(buf)), EINVAL);
    PX_ERR(readlink("dir", buf, sizeof(buf)), EINVAL);
    PX_ERR(readlink("fifo", buf, sizeof(buf)), EINVAL);
    PX_ERR(readlink("nothing", buf, sizeof(buf)), ENOENT);
}

static void followed(void)
{
    px_dir("d", 0755);
    px_put("d/f", "abc", 3);
    PX_OK(symlink("d", "ld"));
    PX_OK(symlink("d/f", "lf"));
    PX_OK(symlink("../d/../ld/f", "d/up"));
    PX_CHECK(px_holds("ld/f", "abc", 3));
    PX_CHECK(px_holds("lf", "abc", 3));
    PX_CHECK(px_holds("d/up", "abc", 3));
    PX_EQ(px_stat("ld/").st_ino, px_stat("d").st_ino);
    PX_OK(mkdir("ld/sub", 0755));
    PX_CHECK(px_exists("d/sub"));
}

static void chains(void)
{
    char name[16], to[16] = "end";

    px_put("end", "abc", 3);
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        PX_OK(symlink(to, name));
        memcpy(to, name, sizeof(to));
    }
    PX_CHECK(px_holds("c40", "abc", 3));
    PX_ERR(open("c41", O_RDONLY), ELOOP);
    PX_OK(rename("c41", "moved")); /* the link itself is not followed */
    PX_OK(unlink("moved"));
}

static void readable_by_all(void)
{
    char buf[8];

    PX_OK(symlink("target", "l"));
    px_own("l", U1, G1);
    px_user(U2, G2);
    PX_EQ(PX_OK(readlink("l", buf, sizeof(buf))), 6);
    px_root();
    px_dir("d", 0700);
    PX_OK(symlink("target", "d/l"));
    px_user(U2, G2);
    PX_ERR(readlink("d/l", buf, sizeof(buf)), EACCES);
}

static void no_umask_and_no_chmod(void)
{
    umask(077);
    PX_OK(symlink("target", "l"));
    PX_EQ(px_mode("l"), 0777);
    PX_ERR2(fchmodat(AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP, ENOTSUP);
    PX_EQ(px_mode("l"), 0777);
}

static void the_target_may_come_and_go(void)
{
    struct stat st;

    PX_OK(symlink("f", "l"));
    PX_ERR(stat("l", &st), ENOENT);
    px_file("f", 0644);
    PX_OK(stat("l", &st));
    PX_OK(unlink("l"));
    PX_CHECK(px_exists("f"));
}

PX_GROUP(symlink, T(targets), T(too_long), T(short_buffers_are_filled), T(not_a_link), T(followed),
         T(chains), T(readable_by_all), T(no_umask_and_no_chmod), T(the_target_may_come_and_go));

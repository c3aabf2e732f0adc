/* SPDX-License-Identifier: Apache-2.0
 *
 * mkdir and rmdir: counts of links, depth, what may not be removed.
 */
#include "px.h"

static void links_of_the_parent(void)
{
    px_dir("d", 0755);
    PX_EQ(px_nlink("d"), 2);
    for (unsigned i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d/s%u", i);
        PX_OK(mkdir(name, 0755));
        PX_EQ(px_nlink("d"), 3 + i);
        PX_EQ(px_nlink(name), 2);
    }
    px_file("d/f", 0644);
    PX_OK(symlink("x", "d/l"));
    PX_EQ(px_nlink("d"), 22);
    for (unsigned i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d/s%u", i);
        PX_OK(rmdir(name));
        PX_EQ(px_nlink("d"), 21 - i);
    }
}

static void dots(void)
{
    struct stat d, dot, up;

    px_dir("d", 0755);
    px_dir("d/e", 0755);
    d = px_stat("d");
    dot = px_stat("d/.");
    up = px_stat("d/e/..");
    PX_EQ(d.st_ino, dot.st_ino);
    PX_EQ(d.st_ino, up.st_ino);
}

static void trailing_slash(void)
{
    PX_OK(mkdir("d/", 0755));
    PX_OK(mkdir("d/e///", 0755));
    PX_OK(rmdir("d/e/"));
    PX_OK(rmdir("d/"));
}

static void type_bits_and_setgid_are_not_asked_for(void)
{
    umask(0);
    PX_OK(mkdir("d", 07777));
    /* the set-user-id and set-group-id bits: implementation-defined; Linux drops them */
    PX_EQ(px_mode("d") & 01777, 01777);
}

static void deep(void)
{
    int depth = 0;

    for (; depth < 500; depth++) {
        PX_OK(mkdir("0123456789", 0755));
        PX_OK(chdir("0123456789"));
    }
    px_file("bottom", 0644);
    PX_OK(unlink("bottom"));
    for (; depth > 0; depth--) {
        PX_EQ(px_nlink("."), 2);
        PX_OK(chdir(".."));
        PX_EQ(px_nlink("."), 3);
        PX_OK(rmdir("0123456789"));
    }
}

static void rights(void)
{
    px_dir("d", 0755);
    px_user(U1, G1);
    PX_ERR(mkdir("d/e", 0755), EACCES);
    PX_ERR(mkdir("d", 0755), EEXIST);
    PX_ERR(mkdir("d/.", 0755), EEXIST);
    px_root();
    px_own("d", U1, G1);
    px_user(U1, G1);
    PX_OK(mkdir("d/e", 0));
    PX_ERR(mkdir("d/e/f", 0755), EACCES);
}

PX_GROUP(mkdir, T(links_of_the_parent), T(dots), T(trailing_slash),
         T(type_bits_and_setgid_are_not_asked_for), T(deep), T(rights));

static void empty_ones_only(void)
{
    static const char *const in[] = {"d/f", "d/l", "d/p", "d/e"};

    px_dir("d", 0755);
    for (size_t i = 0; i < 4; i++) {
        if (i == 0) {
            px_file(in[i], 0644);
        } else if (i == 1) {
            PX_OK(symlink("nothing", in[i]));
        } else if (i == 2) {
            PX_OK(mkfifo(in[i], 0644));
        } else {
            px_dir(in[i], 0755);
        }
        PX_ERR2(rmdir("d"), ENOTEMPTY, EEXIST);
        PX_OK(i == 3 ? rmdir(in[i]) : unlink(in[i]));
    }
    PX_OK(rmdir("d"));
    PX_ERR(rmdir("d"), ENOENT);
}

static void not_files(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        if (strcmp(px_zoo_names[i], "dir") != 0) {
            PX_ERR(rmdir(px_zoo_names[i]), ENOTDIR);
        }
    }
    PX_OK(symlink("dir", "todir"));
    PX_ERR(rmdir("todir"), ENOTDIR);
    PX_ERR(rmdir("todir/"), ENOTDIR);
    PX_OK(rmdir("dir"));
}

static void dot_and_dotdot(void)
{
    px_dir("d", 0755);
    px_dir("d/e", 0755);
    PX_ERR(rmdir("d/e/."), EINVAL);
    PX_ERR2(rmdir("d/e/.."), ENOTEMPTY, EEXIST);
    PX_CHECK(px_exists("d/e"));
}

static void attributes_of_what_is_gone(void)
{
    struct stat st;
    int fd;

    px_dir("d", 0755);
    fd = (int)PX_OK(open("d", O_RDONLY));
    PX_OK(chdir("d"));
    PX_OK(rmdir("../d"));
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 0);
    PX_OK(stat(".", &st));
    PX_OK(chdir("/"));
    PX_OK(close(fd));
}

static void in_use(void)
{
    int fd;

    px_dir("d", 0755);
    fd = (int)PX_OK(open("d", O_RDONLY));
    PX_OK(chdir("d"));
    PX_OK(rmdir("../d"));
    PX_ERR(openat(fd, "f", O_CREAT | O_WRONLY, 0644), ENOENT);
    PX_ERR(mkdir("e", 0755), ENOENT);
    PX_ERR(open("f", O_RDONLY), ENOENT);
    PX_OK(chdir("/"));
    PX_OK(close(fd));
}

static void rmdir_times(void)
{
    struct stat here;

    px_dir("d", 0755);
    here = px_see(".");
    PX_OK(rmdir("d"));
    PX_MOVED(".", &here, "cm");
    px_dir("d", 0755);
    px_file("d/f", 0644);
    here = px_see(".");
    PX_ERR2(rmdir("d"), ENOTEMPTY, EEXIST);
    PX_MOVED(".", &here, "");
}

static void rmdir_rights(void)
{
    px_dir("d", 0755);
    px_dir("d/e", 0777);
    px_own("d/e", U1, G1);
    px_user(U1, G1);
    PX_ERR(rmdir("d/e"), EACCES);
    px_root();
    px_own("d", U1, G1);
    px_dir("d/g", 0);
    px_user(U1, G1);
    PX_OK(rmdir("d/g")); /* what is removed need not be one's own */
    PX_OK(rmdir("d/e"));
}

static void mount_point(void)
{
    PX_ERR(rmdir("/proc"), EBUSY);
}

PX_GROUP(rmdir, T(empty_ones_only), T(not_files), T(dot_and_dotdot), T(in_use),
         T(attributes_of_what_is_gone), T(rmdir_times), T(rmdir_rights), T(mount_point));

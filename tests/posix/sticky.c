/* SPDX-License-Identifier: Apache-2.0
 *
 * E4: in a directory with the sticky bit only the owner of the entry, of the directory, or root
 * removes and renames. POSIX unlink, rmdir, rename; XBD 4.3 Directory Protection.
 */
#include "px.h"

/* d belongs to U3, 1777; in it objects of U1. */
static void scene(void)
{
    px_dir("d", 0777);
    px_file("d/f", 0666);
    px_dir("d/sub", 0777);
    PX_OK(symlink("f", "d/l"));
    PX_OK(mkfifo("d/p", 0666));
    px_own("d/f", U1, G1);
    px_own("d/sub", U1, G1);
    px_own("d/l", U1, G1);
    px_own("d/p", U1, G1);
    px_own("d", U3, G3);
    PX_OK(chmod("d", 01777));
    px_dir("out", 0777);
}

static void others_may_not(void)
{
    scene();
    px_user(U2, G1);
    PX_ERR2(unlink("d/f"), EPERM, EACCES);
    PX_ERR2(unlink("d/l"), EPERM, EACCES);
    PX_ERR2(unlink("d/p"), EPERM, EACCES);
    PX_ERR2(rmdir("d/sub"), EPERM, EACCES);
    PX_ERR2(rename("d/f", "d/g"), EPERM, EACCES);
    PX_ERR2(rename("d/f", "out/f"), EPERM, EACCES);
    PX_ERR2(rename("d/sub", "out/sub"), EPERM, EACCES);
    PX_ERR2(rename("d/l", "out/l"), EPERM, EACCES);
    px_root();
    PX_CHECK(px_exists("d/f") && px_exists("d/sub") && px_exists("d/l") && px_exists("d/p"));
}

static void not_over_them_either(void)
{
    scene();
    px_user(U2, G2);
    PX_OK(close((int)PX_OK(open("d/mine", O_CREAT | O_WRONLY, 0666))));
    PX_OK(close((int)PX_OK(open("out/mine", O_CREAT | O_WRONLY, 0666))));
    PX_OK(mkdir("out/dir", 0777));
    PX_ERR2(rename("d/mine", "d/f"), EPERM, EACCES);
    PX_ERR2(rename("out/mine", "d/f"), EPERM, EACCES);
    PX_ERR2(rename("out/dir", "d/sub"), EPERM, EACCES);
    PX_EQ(px_stat("d/f").st_uid, U1);
    PX_OK(rename("out/mine", "d/mine")); /* over one's own */
    PX_OK(rename("d/mine", "d/mine2"));
    PX_OK(unlink("d/mine2"));
}

static void who_may(void)
{
    scene();
    px_user(U1, G1); /* of the entry */
    PX_OK(rename("d/f", "d/g"));
    PX_OK(unlink("d/g"));
    PX_OK(rmdir("d/sub"));
    px_user(U3, G3); /* of the directory */
    PX_OK(rename("d/l", "out/l"));
    px_root();
    PX_OK(unlink("d/p"));
    px_dir("e", 0777);
    px_file("e/f", 0666);
    px_own("e/f", U1, G1);
    PX_OK(chmod("e", 01777)); /* root's own directory */
    px_user(U2, G2);
    PX_ERR2(unlink("e/f"), EPERM, EACCES);
    px_root();
    PX_OK(unlink("e/f"));
}

static void without_the_bit(void)
{
    scene();
    PX_OK(chmod("d", 0777));
    px_user(U2, G2);
    PX_OK(rename("d/f", "out/f"));
    PX_OK(unlink("d/l"));
    PX_OK(rmdir("d/sub"));
}

static void exchange_counts_both(void)
{
    scene();
    px_user(U2, G2);
    PX_OK(close((int)PX_OK(open("d/mine", O_CREAT | O_WRONLY, 0666))));
    if (renameat2(AT_FDCWD, "d/mine", AT_FDCWD, "d/f", 2) == 0) {
        PX_FAIL("RENAME_EXCHANGE moved an entry of somebody else");
    } else {
        PX_CHECK(errno == EPERM || errno == EACCES || errno == EINVAL || errno == ENOSYS);
    }
    PX_EQ(px_stat("d/f").st_uid, U1);
}

static void the_bit_is_the_directorys(void)
{
    px_dir("d", 0777);
    px_file("d/f", 01666); /* on the file it says nothing */
    px_own("d/f", U1, G1);
    px_user(U2, G2);
    PX_OK(unlink("d/f"));
}

PX_GROUP(sticky, T(others_may_not), T(not_over_them_either), T(who_may), T(without_the_bit),
         T(exchange_counts_both), T(the_bit_is_the_directorys));

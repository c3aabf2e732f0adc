/* SPDX-License-Identifier: Apache-2.0
 *
 * chmod and fchmod: who may, what is set, which bits go silently, which times move.
 */
#include "px.h"

static void every_mode(void)
{
    px_file("f", 0644);
    px_dir("d", 0755);
    for (unsigned m = 0; m <= 07777; m += 7) {
        PX_OK(chmod("f", m));
        PX_EQ(px_mode("f"), m);
    }
    for (unsigned m = 0; m <= 07777; m += 77) {
        PX_OK(chmod("d", m));
        PX_EQ(px_mode("d"), m);
    }
}

static void other_bits_are_dropped(void)
{
    px_file("f", 0644);
    PX_OK(chmod("f", S_IFDIR | 0600));
    PX_EQ(px_stat("f").st_mode, S_IFREG | 0600);
}

static void every_kind(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        const char *n = px_zoo_names[i];
        mode_t kind = px_stat(n).st_mode & S_IFMT;

        if (kind == S_IFLNK) {
            continue;
        }
        PX_OK(chmod(n, 0421));
        PX_EQ(px_stat(n).st_mode, kind | 0421);
    }
}

static void follows_links(void)
{
    px_file("f", 0644);
    PX_OK(symlink("f", "l"));
    PX_OK(chmod("l", 0600));
    PX_EQ(px_mode("f"), 0600);
    PX_EQ(px_stat("l").st_mode & S_IFMT, S_IFLNK);
}

static void only_the_owner(void)
{
    px_file("f", 0666);
    px_own("f", U1, G1);
    px_dir("d", 0777);
    px_own("d", U1, G1);
    px_user(U2, G1); /* the group is not enough */
    PX_ERR(chmod("f", 0600), EPERM);
    PX_ERR(chmod("d", 0700), EPERM);
    px_user(U1, G2);
    PX_OK(chmod("f", 0600));
    PX_OK(chmod("d", 0700));
    px_root();
    PX_EQ(px_mode("f"), 0600);
    PX_EQ(px_mode("d"), 0700);
    PX_OK(chmod("f", 0640));
}

static void fchmod_of_a_reader(void)
{
    int fd;

    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U2, G2);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_ERR(fchmod(fd, 0600), EPERM);
    PX_OK(close(fd));
    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_OK(fchmod(fd, 0400));
    PX_EQ(px_mode("f"), 0400);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_PATH));
    PX_ERR(fchmod(fd, 0600), EBADF);
    PX_OK(close(fd));
}

static void ctime_moves(void)
{
    struct stat f, d;

    px_file("f", 0644);
    f = px_see("f");
    d = px_stat(".");
    PX_OK(chmod("f", 0600));
    PX_MOVED("f", &f, "c");
    PX_MOVED(".", &d, "");
    f = px_see("f");
    PX_OK(chmod("f", 0600)); /* also when nothing changes */
    PX_MOVED("f", &f, "c");
}

static void ctime_stays_on_failure(void)
{
    struct stat f;

    px_file("f", 0644);
    f = px_see("f");
    px_user(U1, G1);
    PX_ERR(chmod("f", 0600), EPERM);
    PX_MOVED("f", &f, "");
}

/* The owner, outside the file's group: S_ISGID goes without a word (E3). */
static void setgid_needs_the_group(void)
{
    gid_t more[] = {G2};

    px_file("f", 0755);
    px_own("f", U1, G2);
    px_user(U1, G1);
    PX_OK(chmod("f", 02755));
    PX_EQ(px_mode("f"), 0755);
    PX_OK(chmod("f", 06755));
    PX_EQ(px_mode("f"), 04755);
    px_user_in(U1, G1, more, 1);
    PX_OK(chmod("f", 02755));
    PX_EQ(px_mode("f"), 02755);
    px_user(U1, G2);
    PX_OK(chmod("f", 06711));
    PX_EQ(px_mode("f"), 06711);
    px_root(); /* who may do all */
    PX_OK(chmod("f", 02755));
    PX_EQ(px_mode("f"), 02755);
}

static void setgid_without_execute_stays(void)
{
    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U1, G1);
    PX_OK(chmod("f", 02644));
    PX_EQ(px_mode("f"), 02644);
}

static void sticky_on_files(void)
{
    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U1, G1);
    PX_OK(chmod("f", 01644)); /* Linux lets the owner */
    PX_EQ(px_mode("f"), 01644);
}

/* E8 */
static void an_open_file_goes_on(void)
{
    char c;
    int fd;

    px_file("f", 0666);
    px_own("f", U1, G1);
    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_RDWR));
    px_root();
    PX_OK(chmod("f", 0));
    px_own("f", U2, G2);
    px_user(U1, G1);
    PX_EQ(PX_OK(pwrite(fd, "x", 1, 0)), 1);
    PX_EQ(PX_OK(pread(fd, &c, 1, 0)), 1);
    PX_EQ(c, 'x');
    PX_OK(ftruncate(fd, 100));
    PX_OK(fsync(fd));
    PX_EQ(px_stat("f").st_mode, S_IFREG);
    PX_ERR(open("f", O_RDONLY), EACCES);
    PX_ERR(open("f", O_WRONLY), EACCES);
    PX_EQ(PX_OK(pwrite(fd, "y", 1, 50)), 1);
    PX_OK(close(fd));
    px_root();
    PX_EQ(px_size("f"), 100);
}

PX_GROUP(chmod, T(every_mode), T(other_bits_are_dropped), T(every_kind), T(follows_links),
         T(only_the_owner), T(fchmod_of_a_reader), T(ctime_moves), T(ctime_stays_on_failure),
         T(setgid_needs_the_group), T(setgid_without_execute_stays), T(sticky_on_files),
         T(an_open_file_goes_on));

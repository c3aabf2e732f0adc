/* SPDX-License-Identifier: Apache-2.0
 *
 * E3: the bits that lend rights do not outlive a change by somebody else. POSIX chmod, chown,
 * write; Linux does the same for truncate and fallocate.
 */
#include "px.h"

/* A program of U1 that U2 may change. */
static int lent(mode_t mode, int flags)
{
    int fd;

    px_file("f", 0777);
    px_put("f", "0123456789", 10);
    px_own("f", U1, G1);
    PX_OK(chmod("f", mode));
    px_user(U2, G2);
    fd = (int)PX_OK(open("f", flags));
    PX_EQ(px_mode("f"), mode);
    return fd;
}

static void done(int fd, mode_t want)
{
    if (fd >= 0) {
        PX_OK(close(fd));
    }
    PX_EQ(px_mode("f"), want);
    px_root();
    PX_OK(unlink("f"));
}

static void write_clears(void)
{
    int fd = lent(06777, O_WRONLY);

    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    done(fd, 0777);
    fd = lent(04777, O_WRONLY);
    PX_EQ(PX_OK(pwrite(fd, "x", 1, 100000)), 1);
    done(fd, 0777);
    fd = lent(02777, O_WRONLY | O_APPEND);
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    done(fd, 0777);
}

static void write_seen_before_close(void)
{
    int fd = lent(06777, O_WRONLY);

    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_EQ(px_mode("f"), 0777);
    done(fd, 0777);
}

static void write_of_nothing_keeps(void)
{
    int fd = lent(06777, O_WRONLY);

    PX_EQ(PX_OK(write(fd, "", 0)), 0);
    done(fd, 06777);
}

static void truncate_clears(void)
{
    int fd = lent(06777, O_WRONLY);

    PX_OK(ftruncate(fd, 5));
    done(fd, 0777);
    fd = lent(06777, O_RDONLY);
    PX_OK(truncate("f", 5));
    done(fd, 0777);
    fd = lent(06777, O_WRONLY | O_NONBLOCK);
    PX_OK(close((int)PX_OK(open("f", O_WRONLY | O_TRUNC))));
    done(fd, 0777);
}

static void fallocate_clears(void)
{
    int fd = lent(06777, O_WRONLY);

    if (fallocate(fd, 0, 0, 4096) != 0 && errno == EOPNOTSUPP) {
        PX_OK(close(fd));
        px_root();
        PX_SKIP("fallocate is not supported");
    }
    done(fd, 0777);
}

/* S_ISGID without group execute is no set-group-id program. A writer outside the file's group may
 * lose it all the same: kernels differ (v6.2 and later clear it then). */
static void setgid_without_execute(void)
{
    int fd = lent(02767, O_WRONLY);

    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_CHECK(px_mode("f") == 02767 || px_mode("f") == 0767);
    done(fd, px_mode("f"));
}

static void owner_too(void)
{
    int fd;

    px_file("f", 0755);
    px_own("f", U1, G1);
    PX_OK(chmod("f", 06755));
    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    done(fd, 0755);
}

static void root_keeps(void)
{
    int fd;

    px_file("f", 0755);
    px_own("f", U1, G1);
    PX_OK(chmod("f", 06755));
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_OK(ftruncate(fd, 0));
    done(fd, 06755);
}

static void reading_keeps(void)
{
    char c;
    int fd = lent(06777, O_RDWR);

    PX_EQ(PX_OK(read(fd, &c, 1)), 1);
    PX_OK(utimensat(AT_FDCWD, "f", NULL, 0));
    PX_EQ(px_mode("f"), 06777);
    done(fd, 06777);
}

static void create_with_the_bits(void)
{
    umask(0);
    px_user(U1, G1);
    PX_OK(close((int)PX_OK(open("f", O_CREAT | O_EXCL | O_WRONLY, 06755))));
    PX_EQ(px_mode("f"), 06755);
    PX_OK(mkdir("d", 01755));
    PX_EQ(px_mode("d"), 01755);
}

PX_GROUP(setid, T(write_clears), T(write_seen_before_close), T(write_of_nothing_keeps),
         T(truncate_clears), T(fallocate_clears), T(setgid_without_execute), T(owner_too),
         T(root_keeps), T(reading_keeps), T(create_with_the_bits));

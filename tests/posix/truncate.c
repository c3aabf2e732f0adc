/* SPDX-License-Identifier: Apache-2.0
 *
 * truncate and ftruncate.
 */
#include <signal.h>
#include <sys/resource.h>

#include "px.h"

static const uint64_t sizes[] = {
    0,     1,     4095,  4096,       4097,   8191,       8192,   8193,
    65535, 65536, 65537, 4 * MI - 1, 4 * MI, 4 * MI + 1, 9 * MI,
};
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Up and down between all the sizes that matter; what was cut does not come back. */
static void up_and_down(void)
{
    static char buf[9 * MI];

    for (size_t i = 0; i < NSIZES; i++) {
        for (size_t k = 0; k < NSIZES; k++) {
            uint64_t kept = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            uint64_t full = sizes[k] + 10000 < sizeof(buf) ? sizes[k] + 10000 : sizeof(buf);
            int fd = (int)PX_OK(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));

            px_fill(1, 0, buf, sizes[i]);
            PX_EQ(PX_OK(pwrite(fd, buf, sizes[i], 0)), sizes[i]);
            PX_OK(ftruncate(fd, (off_t)sizes[k]));
            PX_EQ(px_size("f"), sizes[k]);
            PX_OK(ftruncate(fd, (off_t)full));
            memset(buf, 0xee, full);
            PX_EQ(PX_OK(pread(fd, buf, full, 0)), full);
            PX_CHECK(px_filled(1, 0, buf, kept));
            PX_CHECK(px_zeros(buf + kept, full - kept));
            PX_OK(close(fd));
        }
    }
}

static void by_path(void)
{
    px_put("f", "0123456789", 10);
    PX_OK(truncate("f", 4));
    PX_CHECK(px_holds("f", "0123", 4));
    PX_OK(truncate("f", 6));
    PX_CHECK(px_holds("f", "0123\0\0", 6));
    PX_OK(symlink("f", "l"));
    PX_OK(truncate("l", 1));
    PX_EQ(px_size("f"), 1);
}

static void the_offset_stays(void)
{
    char c;
    int fd;

    px_put("f", "0123456789", 10);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_EQ(PX_OK(lseek(fd, 8, SEEK_SET)), 8);
    PX_OK(ftruncate(fd, 2));
    PX_EQ(PX_OK(lseek(fd, 0, SEEK_CUR)), 8);
    PX_EQ(PX_OK(read(fd, &c, 1)), 0);
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", "01\0\0\0\0\0\0x", 9));
}

static void what_it_is_not_for(void)
{
    int fd;

    px_zoo();
    PX_ERR(truncate("dir", 0), EISDIR);
    PX_ERR(truncate("file", -1), EINVAL);
    PX_ERR(truncate("fifo", 0), EINVAL);
    PX_ERR(truncate("sock", 0), EINVAL);
    fd = (int)PX_OK(open("file", O_RDWR));
    PX_ERR(ftruncate(fd, -1), EINVAL);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("dir", O_RDONLY));
    PX_ERR2(ftruncate(fd, 0), EINVAL, EBADF);
    PX_OK(close(fd));
    PX_ERR(ftruncate(fd, 0), EBADF);
}

static void too_large(void)
{
    px_file("f", 0644);
    if (truncate("f", INT64_MAX) == 0) {
        PX_EQ(px_size("f"),
              INT64_MAX); /* a file system in memory may hold all that off_t can say */
        return;
    }
    PX_CHECK(errno == EFBIG || errno == EINVAL);
    PX_EQ(px_size("f"), 0);
}

static void beyond_the_limit_of_the_process(void)
{
    struct rlimit old, small = {100, 100};
    struct sigaction ign = {.sa_handler = SIG_IGN}, was;
    int fd;

    px_file("f", 0644);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_OK(getrlimit(RLIMIT_FSIZE, &old));
    small.rlim_max = old.rlim_max;
    PX_OK(sigaction(SIGXFSZ, &ign, &was));
    PX_OK(setrlimit(RLIMIT_FSIZE, &small));
    PX_ERR(ftruncate(fd, 101), EFBIG);
    PX_ERR(pwrite(fd, "x", 1, 100), EFBIG);
    PX_EQ(PX_OK(pwrite(fd, "xyz", 3, 98)), 2); /* as much as there is room for */
    PX_OK(setrlimit(RLIMIT_FSIZE, &old));
    PX_OK(sigaction(SIGXFSZ, &was, NULL));
    PX_OK(close(fd));
    PX_EQ(px_size("f"), 100);
}

static void rights(void)
{
    int fd;

    px_put("f", "abc", 3);
    px_own("f", U1, G1);
    PX_OK(chmod("f", 0644));
    px_user(U2, G2);
    PX_ERR(truncate("f", 0), EACCES);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_ERR2(ftruncate(fd, 0), EINVAL, EBADF);
    PX_OK(close(fd));
    px_user(U1, G1);
    PX_OK(chmod("f", 0444));
    PX_ERR(truncate("f", 0), EACCES);
    PX_OK(chmod("f", 0200));
    PX_OK(truncate("f", 1));
    PX_EQ(px_size("f"), 1);
}

static void times(void)
{
    struct stat st, d;

    px_put("f", "abc", 3);
    st = px_see("f");
    d = px_stat(".");
    PX_OK(truncate("f", 1));
    PX_MOVED("f", &st, "cm");
    PX_MOVED(".", &d, "");
    st = px_see("f");
    PX_OK(truncate("f", 10));
    PX_MOVED("f", &st, "cm");
    st = px_see("f");
    px_user(U2, G2);
    PX_ERR(truncate("f", 0), EACCES);
    PX_MOVED("f", &st, "");
}

/* O_TRUNC and ftruncate mark the times even of an empty file; truncate to the same size may. */
static void times_of_an_empty_file(void)
{
    struct stat st;
    int fd;

    px_file("f", 0644);
    st = px_see("f");
    fd = (int)PX_OK(open("f", O_WRONLY | O_TRUNC));
    PX_MOVED("f", &st, "cm");
    st = px_see("f");
    PX_OK(ftruncate(fd, 0));
    PX_MOVED("f", &st, "cm");
    PX_OK(close(fd));
}

PX_GROUP(truncate, T(up_and_down), T(by_path), T(the_offset_stays), T(what_it_is_not_for),
         T(too_large), T(beyond_the_limit_of_the_process), T(rights), T(times),
         T(times_of_an_empty_file));

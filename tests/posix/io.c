/* SPDX-License-Identifier: Apache-2.0
 *
 * read and write: exact bytes over the sizes and borders that matter, appending, sparse files,
 * offsets of 2^31 and more (D4).
 */
#include <limits.h>
#include <sys/uio.h>

#include "px.h"

static char big[9 * MI], back[9 * MI];

static void every_size(void)
{
    static const size_t sizes[] = {1,          100,    4095,       4096,      8191,    8192,
                                   8193,       65535,  65536,      65537,     1048575, 1048576,
                                   4 * MI - 1, 4 * MI, 4 * MI + 1, 9 * MI - 1};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int fd = (int)PX_OK(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));

        px_fill((uint32_t)i, 0, big, sizes[i]);
        PX_EQ(PX_OK(write(fd, big, sizes[i])), sizes[i]);
        PX_EQ(px_size("f"), sizes[i]);
        PX_EQ(PX_OK(pread(fd, back, sizeof(back), 0)), sizes[i]);
        PX_CHECK(memcmp(big, back, sizes[i]) == 0);
        PX_OK(close(fd));
        fd = (int)PX_OK(open("f", O_RDONLY));
        memset(back, 0, sizes[i]);
        PX_EQ(PX_OK(read(fd, back, sizeof(back))), sizes[i]);
        PX_CHECK(memcmp(big, back, sizes[i]) == 0);
        PX_EQ(PX_OK(read(fd, back, 1)), 0);
        PX_EQ(PX_OK(pread(fd, back, 10, (off_t)sizes[i])), 0);
        PX_EQ(PX_OK(pread(fd, back, 10, (off_t)sizes[i] + 100000)), 0);
        PX_OK(close(fd));
    }
}

static void overwrites_at_borders(void)
{
    static const uint64_t at[] = {0,      4090,       8190,       65530,  65536,
                                  131000, 4 * MI - 6, 4 * MI - 1, 4 * MI, 8 * MI - 3};
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    px_fill(1, 0, big, sizeof(big));
    PX_EQ(PX_OK(write(fd, big, sizeof(big))), sizeof(big));
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        px_fill(2 + (uint32_t)i, at[i], big + at[i], 100);
        PX_EQ(PX_OK(pwrite(fd, big + at[i], 100, (off_t)at[i])), 100);
    }
    PX_EQ(PX_OK(pread(fd, back, sizeof(back), 0)), sizeof(back));
    PX_CHECK(memcmp(big, back, sizeof(big)) == 0);
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_EQ(PX_OK(pread(fd, back, sizeof(back), 0)), sizeof(back));
    PX_CHECK(memcmp(big, back, sizeof(big)) == 0);
    PX_OK(close(fd));
}

static void byte_by_byte(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    px_fill(1, 0, big, 10000);
    for (int i = 0; i < 10000; i++) {
        PX_EQ(PX_OK(write(fd, big + i, 1)), 1);
    }
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", big, 10000));
}

static void backwards(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    px_fill(1, 0, big, 300000);
    for (int i = 299; i >= 0; i--) {
        PX_EQ(PX_OK(pwrite(fd, big + i * 1000, 1000, i * 1000)), 1000);
    }
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", big, 300000));
}

static void holes_are_zeros(void)
{
    static const uint64_t at[] = {0, 5000, 10000, 70000, 200000, 4 * MI + 17, 8 * MI + 5};
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    memset(big, 0, sizeof(big));
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        px_fill((uint32_t)i, at[i], big + at[i], 10);
        PX_EQ(PX_OK(pwrite(fd, big + at[i], 10, (off_t)at[i])), 10);
        PX_EQ(PX_OK(pread(fd, back, sizeof(back), 0)), at[i] + 10);
        PX_CHECK(memcmp(big, back, at[i] + 10) == 0);
    }
    PX_OK(close(fd));
}

static void vectors(void)
{
    struct iovec v[3] = {{big, 5000}, {big + 5000, 0}, {big + 5000, 70000}};
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    px_fill(1, 0, big, 75000);
    PX_EQ(PX_OK(writev(fd, v, 3)), 75000);
    v[0].iov_base = back;
    v[2].iov_base = back + 5000;
    PX_EQ(PX_OK(preadv(fd, v, 3, 0)), 75000);
    PX_CHECK(memcmp(big, back, 75000) == 0);
    PX_ERR(preadv(fd, v, 3, -1), EINVAL);
    PX_ERR(pread(fd, back, 1, -1), EINVAL);
    PX_ERR(lseek(fd, -1, SEEK_SET), EINVAL);
    PX_ERR2(write(fd, px_bad_pointer(), 10), EFAULT, EFAULT);
    PX_EQ(PX_OK(pread(fd, back, 0, 0)), 0);
    PX_OK(close(fd));
}

static void two_descriptions_see_each_other(void)
{
    int a = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));
    int b = (int)PX_OK(open("f", O_RDWR));
    struct stat st;

    for (int i = 0; i < 200; i++) {
        char want[512], got[512];

        px_fill((uint32_t)i, 0, want, sizeof(want));
        PX_EQ(PX_OK(pwrite(i % 2 ? a : b, want, 512, i * 512)), 512);
        PX_OK(fstat(i % 2 ? b : a, &st));
        PX_EQ(st.st_size, (i + 1) * 512);
        PX_EQ(PX_OK(pread(i % 2 ? b : a, got, 512, i * 512)), 512);
        PX_CHECK(memcmp(want, got, 512) == 0);
    }
    PX_OK(close(a));
    PX_OK(close(b));
}

static void child_reads(void *arg)
{
    int fd = (int)PX_OK(open("f", O_RDONLY));

    (void)arg;
    PX_EQ(PX_OK(pread(fd, back, 70000, 0)), 70000);
    PX_CHECK(px_filled(8, 0, back, 70000));
    PX_OK(close(fd));
}

static void two_processes_see_each_other(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    px_fill(8, 0, big, 70000);
    PX_EQ(PX_OK(write(fd, big, 70000)), 70000);
    px_in_child(child_reads, NULL); /* neither closed nor synced */
    PX_OK(close(fd));
}

static void sync_flags(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR | O_SYNC, 0644));

    px_fill(1, 0, big, 100000);
    PX_EQ(PX_OK(write(fd, big, 100000)), 100000);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDWR | O_DSYNC));
    PX_EQ(PX_OK(pwrite(fd, big, 10, 0)), 10);
    PX_OK(fdatasync(fd));
    PX_OK(fsync(fd));
    PX_OK(syncfs(fd));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", big, 100000));
}

static void direct(void)
{
    char *b = NULL;
    int fd = open("f", O_CREAT | O_RDWR | O_DIRECT, 0644);

    if (fd < 0 && errno == EINVAL) {
        PX_SKIP("O_DIRECT is not supported");
    }
    PX_OK(fd);
    if (posix_memalign((void **)&b, 4096, MI) != 0) {
        PX_SKIP("no memory");
    }
    px_fill(1, 0, b, MI);
    PX_EQ(PX_OK(pwrite(fd, b, MI, 0)), MI);
    memset(b, 0, MI);
    PX_EQ(PX_OK(pread(fd, b, MI, 0)), MI);
    PX_CHECK(px_filled(1, 0, b, MI));
    PX_EQ(PX_OK(pread(fd, b, MI, (off_t)MI - 4096)), 4096);
    PX_OK(close(fd));
    free(b);
}

static void copied_in_the_server(void)
{
    off_t from = 1000, to = 70000;
    int a, b;
    ssize_t n;

    px_fill(1, 0, big, 500000);
    px_put("a", big, 500000);
    a = (int)PX_OK(open("a", O_RDONLY));
    b = (int)PX_OK(open("b", O_CREAT | O_RDWR, 0644));
    for (size_t left = 300000; left > 0; left -= (size_t)n) {
        n = copy_file_range(a, &from, b, &to, left, 0);
        if (n < 0 && (errno == EOPNOTSUPP || errno == EXDEV || errno == ENOSYS)) {
            PX_SKIP("copy_file_range is not supported");
        }
        PX_CHECK(PX_OK(n) > 0);
        if (n <= 0) {
            break;
        }
    }
    PX_EQ(px_size("b"), 370000);
    PX_EQ(PX_OK(pread(b, back, 400000, 0)), 370000);
    PX_CHECK(px_zeros(back, 70000));
    PX_CHECK(memcmp(back + 70000, big + 1000, 300000) == 0);
    PX_OK(close(a));
    PX_OK(close(b));
}

PX_GROUP(io, T(every_size), T(overwrites_at_borders), T(byte_by_byte), T(backwards),
         T(holes_are_zeros), T(vectors), T(two_descriptions_see_each_other),
         T(two_processes_see_each_other), T(sync_flags), T(direct), T(copied_in_the_server));

/* ---- appending ---- */

static void at_the_end(void)
{
    int a = (int)PX_OK(open("f", O_CREAT | O_WRONLY | O_APPEND, 0644));
    int b = (int)PX_OK(open("f", O_RDWR));

    PX_EQ(PX_OK(write(a, "ab", 2)), 2);
    PX_EQ(PX_OK(pwrite(b, "0123456789", 10, 0)), 10);
    PX_EQ(PX_OK(lseek(a, 0, SEEK_SET)), 0);
    PX_EQ(PX_OK(write(a, "cd", 2)), 2); /* wherever the offset was */
    PX_EQ(PX_OK(lseek(a, 0, SEEK_CUR)), 12);
    PX_OK(ftruncate(b, 4));
    PX_EQ(PX_OK(write(a, "ef", 2)), 2);
    PX_OK(close(a));
    PX_OK(close(b));
    PX_CHECK(px_holds("f", "0123ef", 6));
}

static void turned_on_later(void)
{
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_OK(fcntl(fd, F_SETFL, O_APPEND));
    PX_EQ(PX_OK(write(fd, "d", 1)), 1);
    PX_OK(fcntl(fd, F_SETFL, 0));
    PX_EQ(PX_OK(pwrite(fd, "A", 1, 0)), 1);
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", "Abcd", 4));
}

#define RECORDS 400
#define RECORD  100

static void appender(void *arg)
{
    int fd = (int)PX_OK(open("f", O_WRONLY | O_APPEND));
    char rec[RECORD];

    for (int i = 0; i < RECORDS; i++) {
        memset(rec, 'a' + *(int *)arg, sizeof(rec));
        memcpy(rec, &i, sizeof(i));
        PX_EQ(PX_OK(write(fd, rec, sizeof(rec))), RECORD);
    }
    PX_OK(close(fd));
}

/* No record is lost, torn or overwritten, and those of each writer stay in order. */
static void several_writers(void)
{
    int ids[4], next[4] = {0}, fd;
    pid_t pids[4];

    px_file("f", 0644);
    for (int i = 0; i < 4; i++) {
        ids[i] = i;
        pids[i] = px_spawn(appender, &ids[i]);
    }
    for (int i = 0; i < 4; i++) {
        px_join(pids[i]);
    }
    PX_EQ(px_size("f"), 4 * RECORDS * RECORD);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_EQ(PX_OK(read(fd, back, 4 * RECORDS * RECORD)), 4 * RECORDS * RECORD);
    PX_OK(close(fd));
    for (int r = 0; r < 4 * RECORDS; r++) {
        const char *p = back + r * RECORD;
        int who = p[RECORD - 1] - 'a', n;

        memcpy(&n, p, sizeof(n));
        if (who < 0 || who > 3 || n != next[who]) {
            PX_FAIL("record %d is not the next one of its writer", r);
            return;
        }
        for (size_t i = sizeof(n); i < RECORD; i++) {
            PX_CHECK(p[i] == 'a' + who);
        }
        next[who]++;
    }
}

PX_GROUP(append, T(at_the_end), T(turned_on_later), T(several_writers));

/* ---- D4 ---- */

static void far_bytes(void)
{
    static const uint64_t at[] = {
        2 * GI - 1, 2 * GI,     2 * GI + 1,    4 * GI - 1, 4 * GI,        4 * GI + 1,
        3 * GI,     6 * GI + 7, 1024 * GI - 1, 1024 * GI,  1024 * GI + 1,
    };
    struct stat st;
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));
    uint64_t end = 0;

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        char c = (char)('A' + i);

        PX_EQ(PX_OK(pwrite(fd, &c, 1, (off_t)at[i])), 1);
        end = at[i] + 1 > end ? at[i] + 1 : end;
        PX_EQ(px_size("f"), end);
    }
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDWR));
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        char c;

        PX_EQ(PX_OK(pread(fd, &c, 1, (off_t)at[i])), 1);
        PX_EQ(c, 'A' + (int)i);
    }
    PX_EQ(PX_OK(pread(fd, back, 4096, (off_t)(5 * GI))), 4096);
    PX_CHECK(px_zeros(back, 4096));
    PX_EQ(PX_OK(lseek(fd, 0, SEEK_END)), 1024 * GI + 2);
    PX_EQ(PX_OK(lseek(fd, 5 * GI, SEEK_SET)), 5 * GI);
    PX_OK(fstat(fd, &st));
    PX_CHECK((uint64_t)st.st_blocks * 512 < GI); /* sparse */
    PX_OK(close(fd));
}

static void data_across(uint64_t border)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));
    off_t at = (off_t)(border - 100000);

    px_fill(9, (uint64_t)at, big, 200000);
    PX_EQ(PX_OK(pwrite(fd, big, 200000, at)), 200000);
    PX_EQ(px_size("f"), border + 100000);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_EQ(PX_OK(pread(fd, back, 200000, at)), 200000);
    PX_CHECK(px_filled(9, (uint64_t)at, back, 200000));
    PX_EQ(PX_OK(pread(fd, back, 4096, (off_t)(border & 0x7fffffff))), 4096);
    PX_CHECK(px_zeros(back, 4096)); /* not wrapped to a low offset */
    PX_OK(close(fd));
    PX_OK(truncate("f", (off_t)border));
    PX_EQ(px_size("f"), border);
    PX_OK(truncate("f", (off_t)border + 50000));
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_EQ(PX_OK(pread(fd, back, 100000, (off_t)border - 50000)), 100000);
    PX_CHECK(px_filled(9, border - 50000, back, 50000));
    PX_CHECK(px_zeros(back + 50000, 50000));
    PX_OK(close(fd));
}

static void across_2_31(void)
{
    data_across(2 * GI);
}

static void across_2_32(void)
{
    data_across(4 * GI);
}

static void across_2_40(void)
{
    data_across(1024 * GI);
}

static void sizes(void)
{
    static const uint64_t at[] = {2 * GI - 1, 2 * GI, 4 * GI - 1, 4 * GI, 1024 * GI, 4096 * GI};

    px_file("f", 0644);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        PX_OK(truncate("f", (off_t)at[i]));
        PX_EQ(px_size("f"), at[i]);
    }
    PX_OK(truncate("f", 0));
    PX_EQ(px_size("f"), 0);
}

PX_GROUP(offsets, T(far_bytes), T(across_2_31), T(across_2_32), T(across_2_40), T(sizes));

/* SPDX-License-Identifier: Apache-2.0
 *
 * fallocate, and SEEK_HOLE and SEEK_DATA (D2).
 */
#include <linux/falloc.h>

#include "px.h"

static char data[9 * MI], got[9 * MI];

/* A file of len bytes of pattern. */
static int full(size_t len)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));

    px_fill(1, 0, data, len);
    PX_EQ(PX_OK(write(fd, data, len)), len);
    return fd;
}

static void try(int fd, int mode, uint64_t off, uint64_t len)
{
    if (fallocate(fd, mode, (off_t)off, (off_t)len) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) {
            PX_SKIP("fallocate mode 0x%x is not supported", (unsigned)mode);
        }
        PX_OK(-1);
    }
}

static void is(int fd, size_t len)
{
    struct stat st;

    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_size, len);
    PX_EQ(PX_OK(pread(fd, got, sizeof(got), 0)), len);
    PX_CHECK(memcmp(got, data, len) == 0);
}

static void grows(void)
{
    int fd = full(1000);

    try(fd, 0, 0, 500);
    is(fd, 1000);
    try(fd, 0, 500, 99500);
    memset(data + 1000, 0, 99000);
    is(fd, 100000);
    PX_OK(close(fd));
    is((fd = (int)PX_OK(open("f", O_RDONLY))), 100000);
    PX_OK(close(fd));
}

static void keep_size(void)
{
    int fd = full(1000);

    try(fd, FALLOC_FL_KEEP_SIZE, 0, 5 * MI);
    is(fd, 1000);
    PX_OK(ftruncate(fd, 2000));
    memset(data + 1000, 0, 1000);
    is(fd, 2000);
    PX_OK(close(fd));
}

/* Zeros over [off, off+len) in each of the ways that give zeros. */
static void zeros_in(int mode, size_t size, uint64_t off, uint64_t len, uint64_t end)
{
    int fd = full(size);

    try(fd, mode, off, len);
    if (end > size) {
        memset(data + size, 0, end - size);
    }
    if (off < end) {
        memset(data + off, 0, (off + len < end ? off + len : end) - off);
    }
    is(fd, end);
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDWR));
    is(fd, end);
    px_fill(2, off, data + off, 10); /* and may be written again */
    PX_EQ(PX_OK(pwrite(fd, data + off, 10, (off_t)off)), 10);
    if (off > end) {
        memset(data + end, 0, off - end);
    }
    is(fd, off + 10 > end ? off + 10 : end);
    PX_OK(close(fd));
}

static const struct {
    size_t size;
    uint64_t off, len;
} ranges[] = {
    {1000, 0, 10},
    {1000, 100, 200},
    {8192, 4096, 4096},
    {8000, 0, 8000},
    {20000, 4000, 9000},
    {300000, 65536, 65536},
    {300000, 65000, 70000},
    {300000, 1, 299998},
    {9 * MI - 5, 4 * MI - 100, 200},
    {9 * MI - 5, 4 * MI, 4 * MI},
    {9 * MI - 5, 10, 8 * MI},
};
#define NRANGES (sizeof(ranges) / sizeof(ranges[0]))

static void punch(void)
{
    for (size_t i = 0; i < NRANGES; i++) {
        zeros_in(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ranges[i].size, ranges[i].off,
                 ranges[i].len, ranges[i].size);
    }
}

static void punch_over_the_end(void)
{
    zeros_in(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1000, 900, 50000, 1000);
    zeros_in(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100000, 60000, MI, 100000);
    zeros_in(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1000, 5000, 100, 1000);
}

static void punch_frees(void)
{
    struct stat before, after;
    int fd = full(9 * MI);

    PX_OK(fsync(fd));
    PX_OK(fstat(fd, &before));
    try(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 9 * MI);
    PX_OK(fsync(fd));
    PX_OK(fstat(fd, &after));
    PX_CHECK(after.st_blocks < before.st_blocks);
    PX_OK(close(fd));
}

static void zero_range(void)
{
    for (size_t i = 0; i < NRANGES; i++) {
        zeros_in(FALLOC_FL_ZERO_RANGE, ranges[i].size, ranges[i].off, ranges[i].len,
                 ranges[i].size);
    }
    zeros_in(FALLOC_FL_ZERO_RANGE, 1000, 900, 50000, 50900);
    zeros_in(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 1000, 900, 50000, 1000);
}

static void times_and_errnos(void)
{
    struct stat st;
    int fd = full(1000), ro;

    st = px_see("f");
    try(fd, 0, 0, 2000);
    PX_CHECK(px_time_cmp(px_stat("f").st_ctim, st.st_ctim) > 0);
    PX_ERR(fallocate(fd, 0, -1, 10), EINVAL);
    PX_ERR(fallocate(fd, 0, 0, 0), EINVAL);
    PX_ERR(fallocate(fd, 0, 0, -1), EINVAL);
    PX_ERR2(fallocate(fd, 0, INT64_MAX - 10, 100), EFBIG, EINVAL);
    PX_ERR2(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP, EINVAL); /* KEEP_SIZE is due */
    PX_EQ(px_size("f"), 2000);
    ro = (int)PX_OK(open("f", O_RDONLY));
    PX_ERR(fallocate(ro, 0, 0, 10), EBADF);
    PX_OK(close(ro));
    PX_OK(close(fd));
    px_dir("d", 0755);
    ro = (int)PX_OK(open("d", O_RDONLY));
    PX_ERR2(fallocate(ro, 0, 0, 10), EBADF, EISDIR);
    PX_OK(close(ro));
}

static void punch_moves_times(void)
{
    struct stat st;
    int fd = full(100000);

    st = px_see("f");
    try(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536);
    PX_MOVED("f", &st, "cm");
    PX_OK(close(fd));
}

static void posix_fallocate_works(void)
{
    int fd = full(10);

    PX_EQ(posix_fallocate(fd, 0, 200000), 0); /* the C library writes if need be */
    memset(data + 10, 0, 199990);
    is(fd, 200000);
    PX_OK(close(fd));
}

PX_GROUP(fallocate, T(grows), T(keep_size), T(punch), T(punch_over_the_end), T(punch_frees),
         T(zero_range), T(times_and_errnos), T(punch_moves_times), T(posix_fallocate_works));

/* ---- SEEK_HOLE, SEEK_DATA ---- */

/* Walks the map and checks it against what the file holds: data must never lie in a hole. */
static void map_is_true(int fd, uint64_t size)
{
    off_t at = 0;

    PX_EQ(PX_OK(pread(fd, got, size, 0)), size);
    while (at < (off_t)size) {
        off_t d = lseek(fd, at, SEEK_DATA), h;

        if (d < 0 && errno == ENXIO) {
            d = (off_t)size; /* a hole up to the end */
        }
        PX_OK(d);
        PX_CHECK(d >= at && d <= (off_t)size);
        if (!px_zeros(got + at, (size_t)(d - at))) {
            PX_FAIL("data in what is called a hole, %llu to %llu", (unsigned long long)at,
                    (unsigned long long)d);
        }
        if (d == (off_t)size) {
            return;
        }
        h = (off_t)PX_OK(lseek(fd, d, SEEK_HOLE));
        PX_CHECK(h > d && h <= (off_t)size);
        if (h <= at) {
            return;
        }
        at = h;
    }
}

static void right_after_a_write(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));
    uint32_t r = 12345;
    uint64_t size = 0;

    for (int i = 0; i < 60; i++) {
        uint64_t off, len;

        r = r * 1103515245u + 12345u;
        off = (r >> 4) % (8 * MI);
        len = 1 + (r >> 8) % 100000;
        px_fill(r, off, data, len);
        PX_EQ(PX_OK(pwrite(fd, data, len, (off_t)off)), len);
        size = off + len > size ? off + len : size;
        PX_EQ(PX_OK(lseek(fd, (off_t)off, SEEK_DATA)), off);
        PX_CHECK(PX_OK(lseek(fd, (off_t)off, SEEK_HOLE)) >= (off_t)(off + len));
        map_is_true(fd, size);
    }
    PX_OK(fsync(fd));
    map_is_true(fd, size);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_RDONLY));
    map_is_true(fd, size);
    PX_OK(close(fd));
}

static void small_files(void)
{
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_EQ(PX_OK(lseek(fd, 0, SEEK_DATA)), 0);
    PX_EQ(PX_OK(lseek(fd, 0, SEEK_HOLE)), 3); /* there is one at the end of every file */
    PX_EQ(PX_OK(lseek(fd, 2, SEEK_DATA)), 2);
    PX_ERR(lseek(fd, 3, SEEK_DATA), ENXIO);
    PX_ERR(lseek(fd, 3, SEEK_HOLE), ENXIO);
    PX_ERR(lseek(fd, 4, SEEK_HOLE), ENXIO);
    PX_ERR2(lseek(fd, -1, SEEK_DATA), ENXIO, EINVAL);
    PX_OK(ftruncate(fd, 0));
    PX_ERR(lseek(fd, 0, SEEK_DATA), ENXIO);
    PX_ERR(lseek(fd, 0, SEEK_HOLE), ENXIO);
    PX_OK(close(fd));
}

/* What another process has written is data, though this one's description is older. */
static void child_writes(void *arg)
{
    int fd = (int)PX_OK(open("f", O_WRONLY));

    (void)arg;
    px_fill(5, 3 * MI, data, 128 * 1024);
    PX_EQ(PX_OK(pwrite(fd, data, 128 * 1024, 3 * MI)), 128 * 1024);
    PX_OK(close(fd));
}

static void of_somebody_else(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    PX_OK(ftruncate(fd, 6 * MI));
    map_is_true(fd, 6 * MI);
    px_in_child(child_writes, NULL);
    map_is_true(fd, 6 * MI);
    PX_EQ(PX_OK(lseek(fd, 3 * MI, SEEK_DATA)), 3 * MI);
    PX_OK(close(fd));
}

static void punched(void)
{
    int fd = full(9 * MI);

    try(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MI, 5 * MI);
    map_is_true(fd, 9 * MI);
    PX_EQ(PX_OK(lseek(fd, 0, SEEK_DATA)), 0);
    PX_CHECK(PX_OK(lseek(fd, 0, SEEK_HOLE)) >= (off_t)MI);
    PX_EQ(PX_OK(lseek(fd, 6 * MI, SEEK_DATA)), 6 * MI);
    PX_OK(close(fd));
}

PX_GROUP(seek, T(right_after_a_write), T(small_files), T(of_somebody_else), T(punched));

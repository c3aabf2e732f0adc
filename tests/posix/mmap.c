/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps, shared and private, beside read and write.
 */
#include <sys/mman.h>

#include "px.h"

#define LEN (5 * MI + 123)

static char data[LEN], got[LEN];

static char *map(size_t len, int prot, int flags, int fd, off_t off)
{
    char *m = mmap(NULL, len, prot, flags, fd, off);

    if (m == MAP_FAILED) {
        if (errno == ENODEV) {
            PX_SKIP("maps are not supported");
        }
        PX_OK(-1);
    }
    return m;
}

static int full(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_TRUNC | O_RDWR, 0644));

    px_fill(1, 0, data, LEN);
    PX_EQ(PX_OK(write(fd, data, LEN)), LEN);
    return fd;
}

static void reads_what_was_written(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ, MAP_SHARED, fd, 0);

    PX_CHECK(memcmp(m, data, LEN) == 0);
    PX_CHECK(px_zeros(m + LEN, 4096 - LEN % 4096)); /* the rest of the last page */
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void writes_are_read(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    for (size_t i = 0; i < LEN; i += 70001) {
        m[i] = data[i] = 'M';
    }
    PX_EQ(PX_OK(pread(fd, got, LEN, 0)), LEN); /* without msync */
    PX_CHECK(memcmp(got, data, LEN) == 0);
    PX_OK(msync(m, LEN, MS_SYNC));
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", data, LEN));
}

static void writes_survive_unmap_and_close(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    PX_OK(close(fd));
    memset(m + 100, 'Z', 200000);
    memset(data + 100, 'Z', 200000);
    PX_OK(munmap(m, LEN));
    PX_CHECK(px_holds("f", data, LEN));
    PX_EQ(px_size("f"), LEN);
}

static void write_is_seen_in_the_map(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ, MAP_SHARED, fd, 0);
    volatile char c = m[1000];

    PX_EQ((uint8_t)c, (uint8_t)data[1000]);
    PX_EQ(PX_OK(pwrite(fd, "WWWW", 4, 1000)), 4);
    PX_CHECK(memcmp(m + 1000, "WWWW", 4) == 0);
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void private_stays_private(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    memset(m, 'P', LEN);
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", data, LEN));
}

static void with_an_offset(void)
{
    int fd = full();
    char *m = map(MI, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * MI - 65536);

    PX_CHECK(memcmp(m, data + 4 * MI - 65536, MI) == 0);
    memset(m + 65536 - 10, 'O', 20); /* over a chunk's border */
    memset(data + 4 * MI - 10, 'O', 20);
    PX_OK(msync(m, MI, MS_ASYNC));
    PX_OK(munmap(m, MI));
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", data, LEN));
}

static void nothing_beyond_the_end(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    memset(m + LEN, 'E', 100); /* in the last page, after the file */
    PX_OK(msync(m, LEN, MS_SYNC));
    PX_OK(munmap(m, LEN));
    PX_EQ(px_size("f"), LEN);
    PX_OK(ftruncate(fd, LEN + 200));
    PX_EQ(PX_OK(pread(fd, got, 200, LEN)), 200);
    PX_CHECK(px_zeros(got, 200));
    PX_OK(close(fd));
}

static void into_a_hole(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));
    char *m;

    PX_OK(ftruncate(fd, LEN));
    m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    PX_CHECK(px_zeros(m, LEN));
    memset(data, 0, LEN);
    m[2 * MI] = data[2 * MI] = 'h';
    m[LEN - 1] = data[LEN - 1] = 'e';
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", data, LEN));
}

static void child_looks(void *arg)
{
    int fd = (int)PX_OK(open("f", O_RDWR));
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)arg;
    PX_CHECK(memcmp(m, "from the parent", 15) == 0);
    memcpy(m + 4096, "from the child", 14);
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void shared_by_processes(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    memcpy(m, "from the parent", 15);
    px_in_child(child_looks, NULL);
    PX_CHECK(memcmp(m + 4096, "from the child", 14) == 0);
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void rights(void)
{
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_CHECK(mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
             errno == EACCES);
    PX_OK(munmap(map(3, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), 3));
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_CHECK(mmap(NULL, 3, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
    PX_OK(close(fd));
}

static void truncated_and_grown_again(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ, MAP_SHARED, fd, 0);
    volatile char c = m[3 * MI];

    (void)c;
    PX_OK(ftruncate(fd, MI));
    PX_OK(ftruncate(fd, LEN));
    PX_CHECK(memcmp(m, data, MI) == 0);
    PX_CHECK(px_zeros(m + MI, LEN - MI)); /* not what was there before */
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void times(void)
{
    int fd = full();
    char *m = map(LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct stat st = px_see("f");

    m[0] = 'x';
    PX_OK(msync(m, LEN, MS_SYNC));
    PX_MOVED("f", &st, "cm");
    PX_OK(munmap(m, LEN));
    PX_OK(close(fd));
}

static void of_an_append_descriptor(void)
{
    int fd;
    char *m;

    px_put("f", "abcdef", 6);
    fd = (int)PX_OK(open("f", O_RDWR | O_APPEND));
    m = map(6, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    m[0] = 'A';
    PX_EQ(PX_OK(write(fd, "gh", 2)), 2);
    PX_OK(munmap(m, 6));
    PX_OK(close(fd));
    PX_CHECK(px_holds("f", "Abcdefgh", 8));
}

PX_GROUP(mmap, T(reads_what_was_written), T(writes_are_read), T(writes_survive_unmap_and_close),
         T(write_is_seen_in_the_map), T(private_stays_private), T(with_an_offset),
         T(nothing_beyond_the_end), T(into_a_hole), T(shared_by_processes), T(rights),
         T(truncated_and_grown_again), T(times), T(of_an_append_descriptor));

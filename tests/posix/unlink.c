/* SPDX-License-Identifier: Apache-2.0
 *
 * unlink, and files that live on without a name (B12).
 */
#include "px.h"

#include <sys/mman.h>

static void every_kind(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        const char *n = px_zoo_names[i];

        if (strcmp(n, "dir") == 0) {
            PX_ERR2(unlink(n), EISDIR, EPERM);
            PX_CHECK(px_exists(n));
        } else {
            PX_OK(unlink(n));
            PX_CHECK(!px_exists(n));
            PX_ERR(unlink(n), ENOENT);
        }
    }
}

static void links_are_not_followed(void)
{
    px_zoo();
    PX_OK(unlink("link"));
    PX_CHECK(px_exists("file"));
}

static void times(void)
{
    struct stat f, d;

    px_file("a", 0644);
    PX_OK(link("a", "b"));
    f = px_stat("a");
    d = px_see(".");
    PX_OK(unlink("a"));
    PX_MOVED("b", &f, "c");
    PX_MOVED(".", &d, "cm");
    d = px_see(".");
    PX_ERR(unlink("a"), ENOENT);
    PX_MOVED(".", &d, "");
}

static void rights_are_the_directorys(void)
{
    px_dir("d", 0755);
    px_file("d/f", 0666);
    px_own("d/f", U1, G1);
    px_file("mine_to_remove", 0);
    px_user(U1, G1);
    PX_ERR(unlink("d/f"), EACCES);
    PX_OK(unlink("mine_to_remove")); /* the directory is 0777 */
    px_root();
    PX_OK(chmod("d", 0733));
    px_user(U2, G2);
    PX_OK(unlink("d/f"));
}

PX_GROUP(unlink, T(every_kind), T(links_are_not_followed), T(times), T(rights_are_the_directorys));

static void lives_on(void)
{
    static char buf[300000], got[300000];
    struct stat st;
    int fd, fd2;

    px_fill(3, 0, buf, sizeof(buf));
    px_put("f", buf, sizeof(buf));
    fd = (int)PX_OK(open("f", O_RDWR));
    fd2 = (int)PX_OK(open("f", O_RDONLY));
    PX_OK(unlink("f"));
    PX_CHECK(!px_exists("f"));
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 0);
    PX_EQ(st.st_size, sizeof(buf));
    PX_EQ(PX_OK(pread(fd, got, sizeof(got), 0)), sizeof(got));
    PX_CHECK(memcmp(buf, got, sizeof(got)) == 0);
    PX_EQ(PX_OK(pwrite(fd, "zz", 2, 299999)), 2);
    PX_OK(fsync(fd));
    PX_OK(fstat(fd2, &st));
    PX_EQ(st.st_size, 300001);
    PX_OK(ftruncate(fd, 10));
    PX_OK(fchmod(fd, 0600));
    PX_OK(fchown(fd, U1, G1));
    PX_OK(fstat(fd2, &st));
    PX_EQ(st.st_size, 10);
    PX_EQ(st.st_mode, S_IFREG | 0600);
    PX_EQ(st.st_uid, U1);
    PX_EQ(PX_OK(pread(fd2, got, sizeof(got), 0)), 10);
    PX_CHECK(memcmp(buf, got, 10) == 0);
    PX_OK(close(fd));
    PX_EQ(PX_OK(pread(fd2, got, sizeof(got), 0)), 10); /* the other one still has it */
    PX_OK(close(fd2));
}

static void small_file_lives_on(void)
{
    char got[8];
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_OK(unlink("f"));
    PX_EQ(PX_OK(pread(fd, got, 8, 0)), 3);
    PX_EQ(PX_OK(pwrite(fd, "defgh", 5, 3)), 5);
    PX_EQ(PX_OK(pread(fd, got, 8, 0)), 8);
    PX_CHECK(memcmp(got, "abcdefgh", 8) == 0);
    PX_OK(close(fd));
}

static void a_new_file_of_that_name_is_another(void)
{
    struct stat a, b;
    char got[4];
    int fd;

    px_put("f", "old", 3);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_OK(unlink("f"));
    px_put("f", "new", 3);
    PX_OK(fstat(fd, &a));
    b = px_stat("f");
    PX_CHECK(a.st_ino != b.st_ino);
    PX_EQ(PX_OK(pread(fd, got, 3, 0)), 3);
    PX_CHECK(memcmp(got, "old", 3) == 0);
    PX_EQ(PX_OK(pwrite(fd, "OLD", 3, 0)), 3);
    PX_OK(fsync(fd));
    PX_CHECK(px_holds("f", "new", 3));
    PX_OK(close(fd));
}

static void replaced_by_rename(void)
{
    struct stat st;
    char got[4];
    int fd;

    px_put("a", "old", 3);
    px_put("b", "new", 3);
    fd = (int)PX_OK(open("a", O_RDWR));
    PX_OK(rename("b", "a"));
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 0);
    PX_EQ(PX_OK(pread(fd, got, 3, 0)), 3);
    PX_CHECK(memcmp(got, "old", 3) == 0);
    PX_OK(close(fd));
    PX_CHECK(px_holds("a", "new", 3));
}

static void mapped(void)
{
    static char buf[100000];
    char *m;
    int fd;

    px_fill(4, 0, buf, sizeof(buf));
    px_put("f", buf, sizeof(buf));
    fd = (int)PX_OK(open("f", O_RDWR));
    m = mmap(NULL, sizeof(buf), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) {
        PX_SKIP("shared maps are not supported: %s", px_errno_name(errno));
    }
    PX_OK(unlink("f"));
    PX_OK(close(fd)); /* the map alone keeps it */
    PX_CHECK(memcmp(m, buf, sizeof(buf)) == 0);
    m[99999] = 'x';
    PX_OK(msync(m, sizeof(buf), MS_SYNC));
    PX_OK(munmap(m, sizeof(buf)));
}

static void created_removed_and_written(void)
{
    static char buf[70000], got[70000];

    for (int i = 0; i < 50; i++) {
        int fd = (int)PX_OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0600));

        PX_OK(unlink("f"));
        px_fill((uint32_t)i, 0, buf, sizeof(buf));
        PX_EQ(PX_OK(write(fd, buf, sizeof(buf))), sizeof(buf));
        PX_EQ(PX_OK(pread(fd, got, sizeof(got), 0)), sizeof(got));
        PX_CHECK(memcmp(buf, got, sizeof(got)) == 0);
        PX_OK(close(fd));
    }
}

/* Every name goes, but one description keeps it. */
static void last_of_many_names(void)
{
    struct stat st;
    int fd;

    px_file("a", 0644);
    PX_OK(link("a", "b"));
    fd = (int)PX_OK(open("a", O_RDWR));
    PX_OK(unlink("a"));
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 1);
    PX_OK(unlink("b"));
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 0);
    PX_OK(close(fd));
}

static void in_a_directory_that_went(void)
{
    int fd;
    char got[4];

    px_dir("d", 0755);
    px_put("d/f", "abc", 3);
    fd = (int)PX_OK(open("d/f", O_RDONLY));
    PX_OK(unlink("d/f"));
    PX_OK(rmdir("d"));
    PX_EQ(PX_OK(pread(fd, got, 4, 0)), 3);
    PX_OK(close(fd));
}

PX_GROUP(orphan, T(lives_on), T(small_file_lives_on), T(a_new_file_of_that_name_is_another),
         T(replaced_by_rename), T(mapped), T(created_removed_and_written), T(last_of_many_names),
         T(in_a_directory_that_went));

/* SPDX-License-Identifier: Apache-2.0
 *
 * rename: what moves, what is counted, who may, which times move. Types: rename_kinds.c.
 */
#include "px.h"

#include <dirent.h>

static void keeps_the_object(void)
{
    px_zoo();
    px_dir("to", 0755);
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        struct stat a = px_stat(px_zoo_names[i]), b;
        char path[64];

        PX_OK(rename(px_zoo_names[i], "new"));
        PX_CHECK(!px_exists(px_zoo_names[i]));
        b = px_stat("new");
        PX_EQ(a.st_ino, b.st_ino);
        PX_EQ(a.st_mode, b.st_mode);
        PX_EQ(a.st_nlink, b.st_nlink);
        snprintf(path, sizeof(path), "to/%s", px_zoo_names[i]);
        PX_OK(rename("new", path));
        PX_EQ(px_stat(path).st_ino, a.st_ino);
        PX_CHECK(!px_exists("new"));
    }
}

static void replaces(void)
{
    struct stat a;
    int fd;

    px_put("a", "aaa", 3);
    px_put("b", "bbbbb", 5);
    PX_OK(link("b", "b2"));
    a = px_stat("a");
    fd = (int)PX_OK(open("b", O_RDONLY));
    PX_OK(rename("a", "b"));
    PX_EQ(px_stat("b").st_ino, a.st_ino);
    PX_CHECK(px_holds("b", "aaa", 3));
    PX_CHECK(px_holds("b2", "bbbbb", 5));
    PX_EQ(px_nlink("b"), 1);
    PX_EQ(px_nlink("b2"), 1);
    PX_CHECK(!px_exists("a"));
    PX_OK(close(fd));
}

/* C1 */
static void two_names_of_one_object(void)
{
    px_file("a", 0644);
    px_dir("d", 0755);
    PX_OK(link("a", "b"));
    PX_OK(link("a", "d/c"));
    PX_OK(rename("a", "b"));
    PX_OK(rename("a", "d/c"));
    PX_CHECK(px_exists("a") && px_exists("b") && px_exists("d/c"));
    PX_EQ(px_nlink("a"), 3);
    PX_OK(rename("a", "a"));
    PX_CHECK(px_exists("a"));
    px_dir("e", 0755);
    PX_OK(rename("e", "e"));
    PX_OK(rename("e", "./e"));
    PX_CHECK(px_exists("e"));
}

static void into_its_own_subtree(void)
{
    px_dir("a", 0755);
    px_dir("a/b", 0755);
    px_dir("a/b/c", 0755);
    PX_ERR(rename("a", "a/x"), EINVAL);
    PX_ERR(rename("a", "a/b"), EINVAL);
    PX_ERR(rename("a", "a/b/x"), EINVAL);
    PX_ERR(rename("a", "a/b/c/x"), EINVAL);
    PX_ERR2(rename("a/b/c", "a"), ENOTEMPTY, EEXIST);
    PX_ERR2(rename("a/b/c", "a/b"), ENOTEMPTY, EEXIST);
    PX_CHECK(px_exists("a/b/c"));
    PX_OK(rename("a/b/c", "a/c"));
    PX_OK(rename("a/b", "b"));
}

static void dots(void)
{
    px_dir("a", 0755);
    px_dir("a/b", 0755);
    PX_ERR2(rename("a/.", "x"), EBUSY, EINVAL);
    PX_ERR2(rename("a/b/..", "x"), EBUSY, EINVAL);
    PX_ERR2(rename("a", "a/b/.."), EBUSY, EINVAL);
    PX_ERR2(rename("a/b", "."), EBUSY, EINVAL);
    PX_CHECK(!px_exists("x"));
}

static void links_of_directories(void)
{
    px_dir("a", 0755);
    px_dir("b", 0755);
    px_dir("a/d", 0755);
    px_dir("b/e", 0755);
    PX_OK(rename("a/d", "b/d"));
    PX_EQ(px_nlink("a"), 2);
    PX_EQ(px_nlink("b"), 4);
    PX_EQ(px_stat("b/d/..").st_ino, px_stat("b").st_ino);
    PX_OK(rename("b/d", "b/e")); /* over an empty one */
    PX_EQ(px_nlink("b"), 3);
    PX_OK(rename("b/e", "a/e"));
    PX_EQ(px_nlink("a"), 3);
    PX_EQ(px_nlink("b"), 2);
    PX_EQ(px_stat("a/e/..").st_ino, px_stat("a").st_ino);
    PX_OK(rename("a/e", "a/f"));
    PX_EQ(px_nlink("a"), 3);
}

static void full_directories_stay(void)
{
    px_dir("a", 0755);
    px_dir("b", 0755);
    px_file("b/f", 0644);
    PX_ERR2(rename("a", "b"), ENOTEMPTY, EEXIST);
    PX_OK(unlink("b/f"));
    px_file("a/g", 0644);
    PX_OK(rename("a", "b"));
    PX_CHECK(px_exists("b/g"));
}

static void moves_what_is_below(void)
{
    char path[64];

    px_dir("a", 0755);
    px_dir("a/b", 0755);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "a/b/f%d", i);
        px_put(path, path, strlen(path));
    }
    PX_OK(rename("a", "z"));
    PX_ERR(open("a/b/f1", O_RDONLY), ENOENT);
    for (int i = 0; i < 50; i++) {
        char old[64];

        snprintf(old, sizeof(old), "a/b/f%d", i);
        snprintf(path, sizeof(path), "z/b/f%d", i);
        PX_CHECK(px_holds(path, old, strlen(old)));
    }
}

static void across_file_systems(void)
{
    const char *other = px_elsewhere();
    char path[256];

    if (other == NULL) {
        PX_SKIP("no other file system");
    }
    snprintf(path, sizeof(path), "%s/px.rename.%d", other, (int)getpid());
    px_file("f", 0644);
    PX_ERR(rename("f", path), EXDEV);
    PX_CHECK(px_exists("f"));
}

static void rights_at_both_ends(void)
{
    px_dir("closed", 0755);
    px_file("closed/f", 0666);
    px_own("closed/f", U1, G1);
    px_dir("open", 0777);
    px_user(U1, G1);
    PX_OK(close((int)PX_OK(open("open/g", O_CREAT | O_WRONLY, 0644))));
    PX_ERR(rename("closed/f", "open/f"), EACCES);
    PX_ERR(rename("open/g", "closed/g"), EACCES);
    PX_ERR(rename("open/g", "closed/f"), EACCES);
    PX_ERR(rename("closed/f", "closed/g"), EACCES);
    PX_OK(rename("open/g", "open/h"));
}

/* A directory that changes its parent is written to (its ".."). Linux and POSIX: EACCES. */
static void moving_a_directory_needs_write_in_it(void)
{
    px_dir("from", 0777);
    px_dir("to", 0777);
    px_dir("from/d", 0555);
    px_own("from/d", U2, G2);
    px_user(U1, G1);
    PX_ERR(rename("from/d", "to/d"), EACCES);
    PX_OK(rename("from/d", "from/e")); /* in the same directory nothing is written in it */
    px_root();
    PX_OK(chmod("from/e", 0777));
    px_user(U1, G1);
    PX_OK(rename("from/e", "to/e"));
}

static void times(void)
{
    struct stat f, a, b;

    px_dir("a", 0755);
    px_dir("b", 0755);
    px_file("a/f", 0644);
    f = px_stat("a/f");
    a = px_stat("a");
    b = px_see("b");
    PX_OK(rename("a/f", "b/f"));
    PX_MOVED("b/f", &f, "c");
    PX_MOVED("a", &a, "cm");
    PX_MOVED("b", &b, "cm");
    f = px_stat("b/f");
    b = px_see("b");
    PX_ERR(rename("b/f", "b/f/x"), ENOTDIR);
    PX_ERR(rename("b/none", "b/f"), ENOENT);
    PX_MOVED("b/f", &f, "");
    PX_MOVED("b", &b, "");
}

static void ctime_of_the_replaced(void)
{
    struct stat b;

    px_file("a", 0644);
    px_file("b", 0644);
    PX_OK(link("b", "b2"));
    b = px_see("b2");
    PX_OK(rename("a", "b"));
    PX_MOVED("b2", &b, "c");
    PX_EQ(px_nlink("b2"), 1);
}

static void nothing_is_lost_on_the_way(void)
{
    DIR *d;
    struct dirent *e;
    int seen = 0;

    px_file("a", 0644);
    for (int i = 0; i < 200; i++) {
        PX_OK(rename(i % 2 ? "b" : "a", i % 2 ? "a" : "b"));
    }
    d = opendir(".");
    while (d != NULL && (e = readdir(d)) != NULL) {
        seen += e->d_name[0] != '.';
    }
    PX_OK(d == NULL ? -1 : closedir(d));
    PX_EQ(seen, 1);
}

static void reader(void *arg)
{
    char c;

    (void)arg;
    for (int i = 0; i < 500; i++) {
        int fd = (int)PX_OK(open("f", O_RDONLY)); /* always there */

        PX_EQ(PX_OK(read(fd, &c, 1)), 1);
        PX_OK(close(fd));
    }
}

static void replacing_leaves_no_gap(void)
{
    pid_t pid;

    px_put("f", "x", 1);
    pid = px_spawn(reader, NULL);
    for (int i = 0; i < 500; i++) {
        px_put("f.new", "y", 1);
        PX_OK(rename("f.new", "f"));
    }
    px_join(pid);
}

static void trailing_slashes(void)
{
    px_file("f", 0644);
    px_dir("d", 0755);
    PX_ERR(rename("f", "g/"), ENOTDIR);
    PX_ERR(rename("f/", "g"), ENOTDIR);
    PX_OK(rename("d/", "e/"));
    PX_OK(rename("e", "d/"));
    PX_CHECK(px_exists("d") && px_exists("f"));
}

PX_GROUP(rename, T(keeps_the_object), T(replaces), T(two_names_of_one_object),
         T(into_its_own_subtree), T(dots), T(links_of_directories), T(full_directories_stay),
         T(moves_what_is_below), T(across_file_systems), T(rights_at_both_ends),
         T(moving_a_directory_needs_write_in_it), T(times), T(ctime_of_the_replaced),
         T(nothing_is_lost_on_the_way), T(replacing_leaves_no_gap), T(trailing_slashes));

/* SPDX-License-Identifier: Apache-2.0
 *
 * link and linkat, and the count of links (C3).
 */
#include "px.h"

static void one_object_two_names(void)
{
    struct stat a, b;

    px_put("a", "abc", 3);
    PX_OK(link("a", "b"));
    a = px_stat("a");
    b = px_stat("b");
    PX_EQ(a.st_ino, b.st_ino);
    PX_EQ(a.st_nlink, 2);
    PX_EQ(b.st_nlink, 2);
    PX_OK(chmod("b", 0601));
    PX_OK(chown("b", U1, G1));
    PX_EQ(px_mode("a"), 0601);
    PX_EQ(px_stat("a").st_uid, U1);
    px_put("b", "changed", 7);
    PX_CHECK(px_holds("a", "changed", 7));
    PX_OK(unlink("a"));
    PX_EQ(px_nlink("b"), 1);
    PX_CHECK(px_holds("b", "changed", 7));
    PX_CHECK(!px_exists("a"));
}

static void every_kind(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        const char *n = px_zoo_names[i];

        if (strcmp(n, "dir") == 0) {
            PX_ERR(link(n, "new"), EPERM);
            continue;
        }
        PX_OK(link(n, "new")); /* of a symlink itself, on Linux */
        PX_EQ(px_stat("new").st_ino, px_stat(n).st_ino);
        PX_EQ(px_nlink(n), 2);
        PX_OK(unlink("new"));
        PX_EQ(px_nlink(n), 1);
    }
}

static void following(void)
{
    px_zoo();
    PX_OK(linkat(AT_FDCWD, "link", AT_FDCWD, "new", AT_SYMLINK_FOLLOW));
    PX_EQ(px_stat("new").st_ino, px_stat("file").st_ino);
    PX_ERR(linkat(AT_FDCWD, "dangling", AT_FDCWD, "new2", AT_SYMLINK_FOLLOW), ENOENT);
}

static void taken(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        PX_ERR(link("file", px_zoo_names[i]), EEXIST);
    }
    PX_EQ(px_nlink("file"), 1);
}

static void across_file_systems(void)
{
    const char *other = px_elsewhere();
    char path[256];

    if (other == NULL) {
        PX_SKIP("no other file system");
    }
    snprintf(path, sizeof(path), "%s/px.link.%d", other, (int)getpid());
    px_file("f", 0644);
    PX_ERR(link("f", path), EXDEV);
}

static void rights(void)
{
    px_file("f", 0666);
    px_own("f", U1, G1);
    px_dir("closed", 0755);
    px_dir("open", 0777);
    px_user(U1, G1);
    PX_ERR(link("f", "closed/f"), EACCES);
    PX_OK(link("f", "open/f"));
    PX_EQ(px_nlink("f"), 2);
}

static void times(void)
{
    struct stat f, here, d;

    px_file("f", 0644);
    px_dir("d", 0755);
    f = px_stat("f");
    here = px_stat(".");
    d = px_see("d");
    PX_OK(link("f", "d/f"));
    PX_MOVED("f", &f, "c");
    PX_MOVED(".", &here, "");
    PX_MOVED("d", &d, "cm");
    f = px_see("f");
    d = px_stat("d");
    PX_ERR(link("f", "d/f"), EEXIST);
    PX_MOVED("f", &f, "");
    PX_MOVED("d", &d, "");
}

/* C3: a thousand links in ten directories; the first name goes first. */
static void a_thousand(void)
{
    char name[64];

    px_file("f", 0644);
    for (unsigned d = 0; d < 10; d++) {
        snprintf(name, sizeof(name), "d%u", d);
        px_dir(name, 0755);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "d%u/l%u", i % 10, i);
        PX_OK(link("f", name));
        if (i % 100 == 0) {
            PX_EQ(px_nlink(name), i + 2);
        }
    }
    PX_EQ(px_nlink("f"), 1001);
    PX_OK(unlink("f"));
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "d%u/l%u", i % 10, i);
        PX_EQ(px_nlink(name), 1000 - i);
        PX_OK(unlink(name));
    }
}

static void racer(void *arg)
{
    char name[32];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "r%d.%d", *(int *)arg, i);
        PX_OK(link("f", name));
        if (i % 2 == 0) {
            PX_OK(unlink(name));
        }
    }
}

static void at_the_same_time(void)
{
    pid_t pids[8];
    int ids[8];

    px_file("f", 0644);
    for (int i = 0; i < 8; i++) {
        ids[i] = i;
        pids[i] = px_spawn(racer, &ids[i]);
    }
    for (int i = 0; i < 8; i++) {
        px_join(pids[i]);
    }
    PX_EQ(px_nlink("f"), 1 + 8 * 50);
}

static void limit(void)
{
    struct timespec t0, now;
    char name[32];
    unsigned i;

    px_file("f", 0644);
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (i = 0; i < 70000; i++) {
        snprintf(name, sizeof(name), "l%u", i);
        if (link("f", name) != 0) {
            break;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - t0.tv_sec > 15) {
            PX_EQ(px_nlink("f"), i + 2);
            PX_SKIP("%u links took 15 s", i + 1);
        }
    }
    if (i < 70000) {
        PX_EQ(errno, EMLINK);
        PX_EQ(px_nlink("f"), i + 1);
    } else {
        PX_SKIP("more than 70000 links are allowed");
    }
}

static void to_a_removed_name(void)
{
    px_file("f", 0644);
    PX_OK(unlink("f"));
    PX_ERR(link("f", "g"), ENOENT);
}

PX_GROUP(link, T(one_object_two_names), T(every_kind), T(following), T(taken),
         T(across_file_systems), T(rights), T(times), T(a_thousand), T(at_the_same_time), T(limit),
         T(to_a_removed_name));

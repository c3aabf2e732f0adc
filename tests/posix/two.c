/* SPDX-License-Identifier: Apache-2.0
 *
 * One file system through two mounts (--dir and --dir2). What an open sees is what the last close
 * left (close-to-open); names and attributes may be a caching time old, so these are waited for.
 */
#include <dirent.h>
#include <limits.h>
#include <poll.h>

#include "px.h"

#define WAIT_MS 10000

static char data[5 * MI], got[5 * MI];

/* The path of name through the other mount. */
static const char *there(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    const char *dir = px_second();
    char *p = paths[next++ % 4];

    if (dir == NULL) {
        PX_SKIP("needs --dir2, the same directory through another mount");
    }
    if ((size_t)snprintf(p, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX) {
        PX_SKIP("the path is too long");
    }
    return p;
}

static bool within(bool (*fn)(const char *path, uint64_t v), const char *path, uint64_t v)
{
    for (int ms = 0; ms < WAIT_MS; ms += 10) {
        if (fn(path, v)) {
            return true;
        }
        poll(NULL, 0, 10);
    }
    return false;
}

static bool has_size(const char *path, uint64_t v)
{
    struct stat st;

    return lstat(path, &st) == 0 && (uint64_t)st.st_size == v;
}

static bool has_links(const char *path, uint64_t v)
{
    struct stat st;

    return lstat(path, &st) == 0 && st.st_nlink == v;
}

static bool has_mode(const char *path, uint64_t v)
{
    struct stat st;

    return lstat(path, &st) == 0 && (st.st_mode & 07777) == v;
}

static bool is_gone(const char *path, uint64_t v)
{
    struct stat st;

    (void)v;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

static void new_names_are_there_at_once(void)
{
    char name[32];

    (void)there("");
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        if (i % 2 == 0) {
            PX_ERR(open(there(name), O_RDONLY), ENOENT);
            px_put(name, name, strlen(name));
            PX_CHECK(px_holds(there(name), name, strlen(name)));
        } else {
            px_put(there(name), name, strlen(name));
            PX_CHECK(px_holds(name, name, strlen(name)));
        }
    }
}

static void close_to_open(void)
{
    static const size_t sizes[] = {10, 5000, 20000, 70000, 3, 5 * MI, 100000, 8192, 1};

    (void)there("");
    for (uint32_t i = 0; i < 45; i++) {
        size_t n = sizes[i % 9];

        px_fill(i, 0, data, n);
        px_put(i % 2 ? "f" : there("f"), data, n);
        PX_CHECK(px_holds(i % 2 ? there("f") : "f", data, n));
    }
}

/* The writer syncs and goes on; the reader opens anew. */
static void sync_is_seen(void)
{
    int fd = (int)PX_OK(open("f", O_CREAT | O_RDWR, 0644));

    (void)there("");
    for (uint32_t i = 0; i < 50; i++) {
        px_fill(i, i * 3000u, data + i * 3000u, 3000);
        PX_EQ(PX_OK(pwrite(fd, data + i * 3000u, 3000, i * 3000u)), 3000);
        PX_OK(fsync(fd));
        PX_CHECK(px_holds(there("f"), data, (i + 1) * 3000u));
    }
    PX_OK(close(fd));
}

static void overwrites_are_seen(void)
{
    (void)there("");
    memset(data, 'o', 200000);
    px_put("f", data, 200000);
    PX_CHECK(px_holds(there("f"), data, 200000)); /* now it is in that mount's cache */
    for (int i = 0; i < 20; i++) {
        int fd = (int)PX_OK(open("f", O_WRONLY));

        memset(data + i * 9000, 'a' + i, 100); /* the size stays */
        PX_EQ(PX_OK(pwrite(fd, data + i * 9000, 100, i * 9000)), 100);
        PX_OK(close(fd));
        PX_CHECK(px_holds(there("f"), data, 200000));
    }
}

static void attributes(void)
{
    px_file("f", 0644);
    PX_CHECK(within(has_mode, there("f"), 0644));
    PX_OK(chmod("f", 0601));
    PX_CHECK(within(has_mode, there("f"), 0601));
    PX_OK(chmod(there("f"), 0640));
    PX_CHECK(within(has_mode, "f", 0640));
    PX_OK(truncate("f", 12345));
    PX_CHECK(within(has_size, there("f"), 12345));
    PX_OK(truncate(there("f"), 5));
    PX_CHECK(within(has_size, "f", 5));
}

static void removed_and_renamed(void)
{
    px_file("f", 0644);
    px_file("g", 0644);
    px_dir("d", 0755);
    PX_CHECK(within(has_mode, there("f"), 0644));
    PX_CHECK(within(has_mode, there("g"), 0644));
    PX_OK(unlink("f"));
    PX_CHECK(within(is_gone, there("f"), 0));
    PX_OK(rename("g", "d/h"));
    PX_CHECK(within(is_gone, there("g"), 0));
    PX_CHECK(within(has_mode, there("d/h"), 0644));
    PX_OK(rename(there("d"), there("e")));
    PX_CHECK(within(has_mode, "e/h", 0644));
    PX_CHECK(within(is_gone, "d", 0));
    PX_OK(unlink(there("e/h")));
    PX_OK(rmdir("e"));
    PX_CHECK(within(is_gone, there("e"), 0));
}

/* C3 */
static void links(void)
{
    char name[32];

    px_file("f", 0644);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        PX_OK(i % 2 ? link("f", name) : link(there("f"), there(name)));
    }
    PX_CHECK(within(has_links, "f", 201));
    PX_CHECK(within(has_links, there("f"), 201));
    PX_OK(unlink(there("f")));
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        PX_OK(i % 2 ? unlink(there(name)) : unlink(name));
    }
    PX_CHECK(within(is_gone, "l199", 0));
}

static void exclusive_create_has_one_winner(void)
{
    char name[32];

    (void)there("");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        PX_OK(
            close((int)PX_OK(open(i % 2 ? name : there(name), O_CREAT | O_EXCL | O_WRONLY, 0644))));
        PX_ERR(open(i % 2 ? there(name) : name, O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
    }
}

#define RECORDS 300
#define RECORD  64

static void appender(void *arg)
{
    int who = *(int *)arg, fd;
    char rec[RECORD];

    fd = (int)PX_OK(open(who % 2 ? there("log") : "log", O_WRONLY | O_APPEND));
    for (int i = 0; i < RECORDS; i++) {
        memset(rec, 'a' + who, sizeof(rec));
        memcpy(rec, &i, sizeof(i));
        PX_EQ(PX_OK(write(fd, rec, sizeof(rec))), RECORD);
    }
    PX_OK(fsync(fd));
    PX_OK(close(fd));
}

/* O_APPEND over clients: no record lost, torn or overwritten. */
static void appends(void)
{
    int ids[4], next[4] = {0}, fd;
    pid_t pids[4];

    px_file("log", 0644);
    (void)there("");
    for (int i = 0; i < 4; i++) {
        ids[i] = i;
        pids[i] = px_spawn(appender, &ids[i]);
    }
    for (int i = 0; i < 4; i++) {
        px_join(pids[i]);
    }
    fd = (int)PX_OK(open("log", O_RDONLY));
    PX_EQ(PX_OK(read(fd, got, sizeof(got))), 4 * RECORDS * RECORD);
    PX_OK(close(fd));
    for (int r = 0; r < 4 * RECORDS; r++) {
        const char *p = got + r * RECORD;
        int who = p[RECORD - 1] - 'a', n;

        memcpy(&n, p, sizeof(n));
        if (who < 0 || who > 3 || n != next[who]++) {
            PX_FAIL("record %d is not the next one of its writer", r);
            return;
        }
    }
}

static void listing(void)
{
    struct dirent *e;
    char name[32];
    int n = 0;
    DIR *d;

    (void)there("");
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        px_file(i % 2 ? name : there(name), 0644);
    }
    d = opendir(there("."));
    PX_OK(d == NULL ? -1 : 0);
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == 'f') {
            PX_OK(unlink(n % 2 ? e->d_name : there(e->d_name)));
            n++;
        }
    }
    PX_EQ(n, 1000);
    PX_OK(closedir(d));
}

/* B12: removed through the other mount; this one has it open. */
static void removed_while_open(void)
{
    int fd;

    px_fill(1, 0, data, 300000);
    px_put("f", data, 300000);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_OK(unlink(there("f")));
    PX_EQ(PX_OK(pread(fd, got, 300000, 0)), 300000);
    PX_CHECK(memcmp(data, got, 300000) == 0);
    PX_EQ(PX_OK(pwrite(fd, "x", 1, 0)), 1);
    PX_OK(fsync(fd));
    PX_OK(close(fd));
}

/* E8 */
static void mode_changed_while_open(void)
{
    int fd;

    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_RDWR));
    px_root();
    PX_OK(chmod(there("f"), 0));
    px_user(U1, G1);
    PX_EQ(PX_OK(write(fd, "abc", 3)), 3);
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    PX_CHECK(within(has_mode, "f", 0));
    PX_ERR(open("f", O_RDONLY), EACCES);
    PX_ERR(open(there("f"), O_RDONLY), EACCES);
}

PX_GROUP(two, T(new_names_are_there_at_once), T(close_to_open), T(sync_is_seen),
         T(overwrites_are_seen), T(attributes), T(removed_and_renamed), T(links),
         T(exclusive_create_has_one_winner), T(appends), T(listing), T(removed_while_open),
         T(mode_changed_while_open));

/* SPDX-License-Identifier: Apache-2.0
 *
 * rename of each kind of object over each kind, with and without the flags of renameat2.
 */
#include "px.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
#endif

static const char kinds[] = "fdDlps"; /* file, empty and full directory, link, fifo, socket */

static void make(char kind, const char *name)
{
    char in[64];

    if (kind == 'f') {
        px_file(name, 0644);
    } else if (kind == 'd' || kind == 'D') {
        px_dir(name, 0755);
    } else if (kind == 'l') {
        PX_OK(symlink("nothing", name));
    } else if (kind == 'p') {
        PX_OK(mkfifo(name, 0644));
    } else {
        PX_OK(mknod(name, S_IFSOCK | 0644, 0));
    }
    if (kind == 'D') {
        snprintf(in, sizeof(in), "%s/in", name);
        px_file(in, 0644);
    }
}

static void drop(char kind, const char *name)
{
    char in[64];

    if (kind == 'D') {
        snprintf(in, sizeof(in), "%s/in", name);
        PX_OK(unlink(in));
    }
    PX_OK(kind == 'd' || kind == 'D' ? rmdir(name) : unlink(name));
}

static bool is_dir(char kind)
{
    return kind == 'd' || kind == 'D';
}

static void each_pair(void (*fn)(char from, char to))
{
    for (const char *a = kinds; *a != '\0'; a++) {
        for (const char *b = kinds; *b != '\0'; b++) {
            size_t before = px_failures();

            fn(*a, *b);
            if (px_failures() > before) {
                PX_FAIL("that was kind '%c' over kind '%c'", *a, *b);
            }
        }
    }
}

static void over_one(char from, char to)
{
    struct stat a, b;
    int rc;

    make(from, "a");
    make(to, "b");
    a = px_stat("a");
    b = px_stat("b");
    errno = 0;
    rc = rename("a", "b");
    if (is_dir(from) && !is_dir(to)) {
        px_err(PX_AT, "rename of a directory over a file", rc, ENOTDIR, ENOTDIR);
    } else if (!is_dir(from) && is_dir(to)) {
        px_err(PX_AT, "rename of a file over a directory", rc, EISDIR, EISDIR);
    } else if (to == 'D') {
        px_err(PX_AT, "rename over a full directory", rc, ENOTEMPTY, EEXIST);
    } else {
        PX_EQ(rc, 0);
        PX_CHECK(!px_exists("a"));
        PX_EQ(px_stat("b").st_ino, a.st_ino);
        drop(from, "b");
        return;
    }
    PX_EQ(px_stat("a").st_ino, a.st_ino);
    PX_EQ(px_stat("b").st_ino, b.st_ino);
    drop(from, "a");
    drop(to, "b");
}

static void over(void)
{
    each_pair(over_one);
}

static int rename_flags(const char *a, const char *b, unsigned flags)
{
    int rc = renameat2(AT_FDCWD, a, AT_FDCWD, b, flags);

    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) {
        PX_SKIP("renameat2 flags are not supported");
    }
    return rc;
}

static void noreplace_one(char from, char to)
{
    struct stat a, b;

    make(from, "a");
    make(to, "b");
    a = px_stat("a");
    b = px_stat("b");
    PX_ERR(rename_flags("a", "b", RENAME_NOREPLACE), EEXIST);
    PX_EQ(px_stat("a").st_ino, a.st_ino);
    PX_EQ(px_stat("b").st_ino, b.st_ino);
    drop(to, "b");
    PX_OK(rename_flags("a", "b", RENAME_NOREPLACE));
    PX_CHECK(!px_exists("a"));
    PX_EQ(px_stat("b").st_ino, a.st_ino);
    drop(from, "b");
}

static void noreplace(void)
{
    each_pair(noreplace_one);
}

static void exchange_one(char from, char to)
{
    struct stat a, b;

    make(from, "a");
    px_dir("there", 0755);
    make(to, "there/b");
    a = px_stat("a");
    b = px_stat("there/b");
    PX_OK(rename_flags("a", "there/b", RENAME_EXCHANGE));
    PX_EQ(px_stat("a").st_ino, b.st_ino);
    PX_EQ(px_stat("there/b").st_ino, a.st_ino);
    PX_EQ(px_nlink("there"), is_dir(from) ? 3 : 2);
    if (is_dir(from)) {
        PX_EQ(px_stat("there/b/..").st_ino, px_stat("there").st_ino);
    }
    drop(to, "a");
    drop(from, "there/b");
    PX_OK(rmdir("there"));
}

static void exchange(void)
{
    each_pair(exchange_one);
}

PX_GROUP(rename_kinds, T(over), T(noreplace), T(exchange));

static void exchange_needs_both(void)
{
    px_file("a", 0644);
    if (renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE) != 0 && errno == EINVAL) {
        PX_SKIP("RENAME_EXCHANGE is not supported");
    }
    PX_ERR(rename_flags("a", "b", RENAME_EXCHANGE), ENOENT);
    PX_ERR(rename_flags("b", "a", RENAME_EXCHANGE), ENOENT);
    PX_CHECK(px_exists("a") && !px_exists("b"));
}

static void exchange_loops(void)
{
    px_file("probe", 0644);
    px_file("probe2", 0644);
    PX_OK(rename_flags("probe", "probe2", RENAME_EXCHANGE));
    px_dir("a", 0755);
    px_dir("a/b", 0755);
    PX_ERR(renameat2(AT_FDCWD, "a", AT_FDCWD, "a/b", RENAME_EXCHANGE), EINVAL);
    PX_ERR(renameat2(AT_FDCWD, "a/b", AT_FDCWD, "a", RENAME_EXCHANGE), EINVAL);
    PX_CHECK(px_exists("a/b"));
}

static void exchange_with_itself(void)
{
    px_file("a", 0644);
    PX_OK(link("a", "b"));
    PX_OK(rename_flags("a", "b", RENAME_EXCHANGE));
    PX_OK(rename_flags("a", "a", RENAME_EXCHANGE));
    PX_EQ(px_nlink("a"), 2);
}

static void exchange_content(void)
{
    struct stat a, b, d;

    px_put("a", "aaa", 3);
    px_put("b", "bbbb", 4);
    a = px_stat("a");
    b = px_stat("b");
    d = px_see(".");
    PX_OK(rename_flags("a", "b", RENAME_EXCHANGE));
    PX_CHECK(px_holds("a", "bbbb", 4));
    PX_CHECK(px_holds("b", "aaa", 3));
    PX_MOVED(".", &d, "cm");
    PX_MOVED("b", &a, "c");
    PX_MOVED("a", &b, "c");
}

static void both_flags_make_no_sense(void)
{
    px_file("a", 0644);
    px_file("b", 0644);
    PX_ERR(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
    PX_ERR(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", 0x1000), EINVAL);
}

static void noreplace_of_itself(void)
{
    px_file("a", 0644);
    PX_ERR(rename_flags("a", "a", RENAME_NOREPLACE), EEXIST);
    PX_OK(link("a", "b"));
    PX_ERR(rename_flags("a", "b", RENAME_NOREPLACE), EEXIST);
}

static void contender(void *arg)
{
    char mine[16];
    int won = 0;

    snprintf(mine, sizeof(mine), "m%d", *(int *)arg);
    for (int i = 0; i < 100; i++) {
        char goal[16];

        snprintf(goal, sizeof(goal), "g%d", i);
        px_file(mine, 0644);
        if (renameat2(AT_FDCWD, mine, AT_FDCWD, goal, RENAME_NOREPLACE) == 0) {
            won++;
        } else {
            PX_EQ(errno, EEXIST);
            PX_OK(unlink(mine));
        }
    }
    snprintf(mine, sizeof(mine), "won%d", *(int *)arg);
    px_put(mine, &won, sizeof(won));
}

static void one_winner(void)
{
    int ids[4], sum = 0;
    pid_t pids[4];

    px_file("a", 0644);
    PX_OK(rename_flags("a", "b", RENAME_NOREPLACE));
    for (int i = 0; i < 4; i++) {
        ids[i] = i;
        pids[i] = px_spawn(contender, &ids[i]);
    }
    for (int i = 0; i < 4; i++) {
        char name[16];
        int won = 0, fd;

        px_join(pids[i]);
        snprintf(name, sizeof(name), "won%d", i);
        fd = (int)PX_OK(open(name, O_RDONLY));
        PX_EQ(PX_OK(read(fd, &won, sizeof(won))), sizeof(won));
        PX_OK(close(fd));
        sum += won;
    }
    PX_EQ(sum, 100);
}

PX_GROUP(rename_flags, T(exchange_needs_both), T(exchange_loops), T(exchange_with_itself),
         T(exchange_content), T(both_flags_make_no_sense), T(noreplace_of_itself), T(one_winner));

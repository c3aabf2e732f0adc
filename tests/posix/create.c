/* SPDX-License-Identifier: Apache-2.0
 *
 * What every new object is like, whichever call made it: owner, group, umask, set-group-id
 * directories, times of the object and of its directory, EEXIST.
 */
#include "px.h"

static int make_open(const char *name, mode_t mode)
{
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, mode);

    return fd < 0 ? fd : close(fd);
}

static int make_creat(const char *name, mode_t mode)
{
    int fd = creat(name, mode);

    return fd < 0 ? fd : close(fd);
}

static int make_mknod(const char *name, mode_t mode)
{
    return mknod(name, S_IFREG | mode, 0);
}

static int make_sock(const char *name, mode_t mode)
{
    return mknod(name, S_IFSOCK | mode, 0);
}

static int make_symlink(const char *name, mode_t mode)
{
    (void)mode;
    return symlink("target", name);
}

static const struct {
    const char *name;
    int (*fn)(const char *name, mode_t mode);
    mode_t kind;
} makers[] = {
    {"open", make_open, S_IFREG},       {"creat", make_creat, S_IFREG},
    {"mknod", make_mknod, S_IFREG},     {"mknod_sock", make_sock, S_IFSOCK},
    {"mkfifo", mkfifo, S_IFIFO},        {"mkdir", mkdir, S_IFDIR},
    {"symlink", make_symlink, S_IFLNK},
};
#define NMAKERS (sizeof(makers) / sizeof(makers[0]))

static void drop(size_t i)
{
    PX_OK(makers[i].kind == S_IFDIR ? rmdir("new") : unlink("new"));
}

static void owner_and_group(void)
{
    px_user(U1, G1);
    for (size_t i = 0; i < NMAKERS; i++) {
        struct stat st;

        PX_OK(makers[i].fn("new", 0644));
        st = px_stat("new");
        PX_EQ(st.st_uid, U1);
        PX_EQ(st.st_gid, G1);
        PX_EQ(st.st_mode & S_IFMT, makers[i].kind);
        PX_EQ(st.st_nlink, makers[i].kind == S_IFDIR ? 2 : 1);
        drop(i);
    }
}

static void masked(void)
{
    static const mode_t masks[] = {0, 022, 077, 0177, 0345, 0777};

    for (size_t i = 0; i < NMAKERS; i++) {
        for (size_t m = 0; m < 6 && makers[i].kind != S_IFLNK; m++) {
            umask(masks[m]);
            PX_OK(makers[i].fn("new", 0777));
            PX_EQ(px_mode("new"), 0777 & ~masks[m]);
            drop(i);
            PX_OK(makers[i].fn("new", 0151));
            PX_EQ(px_mode("new"), 0151 & ~masks[m]);
            drop(i);
        }
    }
}

static void group_of_a_setgid_directory(void)
{
    umask(022);
    px_dir("d", 0777);
    PX_OK(chown("d", U2, G2));
    PX_OK(chmod("d", 02777));
    PX_OK(chdir("d"));
    px_user(U1, G1);
    for (size_t i = 0; i < NMAKERS; i++) {
        struct stat st;

        PX_OK(makers[i].fn("new", 0775));
        st = px_stat("new");
        PX_EQ(st.st_uid, U1);
        PX_EQ(st.st_gid, G2);
        if (makers[i].kind == S_IFDIR) {
            PX_EQ(st.st_mode & 07777, 02755); /* and below as well */
        } else if (makers[i].kind != S_IFLNK) {
            PX_EQ(st.st_mode & 07777, 0755);
        }
        drop(i);
    }
}

static void setgid_asked_for_in_anothers_group(void)
{
    umask(0);
    px_dir("d", 0777);
    PX_OK(chown("d", U2, G2));
    PX_OK(chmod("d", 02777));
    px_user(U1, G1);
    PX_OK(make_open("d/f", 02775));
    PX_EQ(px_stat("d/f").st_gid, G2);
    PX_EQ(px_mode("d/f"), 0775); /* a set-group-id program of a group one is not in: no */
}

static void times(void)
{
    for (size_t i = 0; i < NMAKERS; i++) {
        struct stat d = px_see("."), st;
        struct timespec t0, t1;

        clock_gettime(CLOCK_REALTIME_COARSE, &t0);
        PX_OK(makers[i].fn("new", 0644));
        px_tick();
        clock_gettime(CLOCK_REALTIME, &t1);
        PX_MOVED(".", &d, "cm");
        st = px_stat("new");
        PX_CHECK(px_time_cmp(st.st_ctim, t0) >= 0 && px_time_cmp(st.st_ctim, t1) <= 0);
        PX_CHECK(px_time_cmp(st.st_mtim, t0) >= 0 && px_time_cmp(st.st_mtim, t1) <= 0);
        PX_CHECK(px_time_cmp(st.st_atim, t0) >= 0 && px_time_cmp(st.st_atim, t1) <= 0);
        drop(i);
    }
}

static void times_on_failure(void)
{
    struct stat d;

    px_file("new", 0644);
    d = px_see(".");
    for (size_t i = 0; i < NMAKERS; i++) {
        if (makers[i].fn != make_creat) {
            PX_ERR(makers[i].fn("new", 0644), EEXIST);
            PX_MOVED(".", &d, "");
        }
    }
}

static void names_are_taken_once(void)
{
    px_user(U1, G1);
    for (size_t i = 0; i < NMAKERS; i++) {
        PX_OK(makers[i].fn("new", 0644));
        for (size_t k = 0; k < NMAKERS; k++) {
            if (makers[k].fn != make_creat) {
                PX_ERR(makers[k].fn("new", 0600), EEXIST);
            }
        }
        PX_EQ(px_stat("new").st_mode & S_IFMT, makers[i].kind);
        drop(i);
    }
}

static void in_a_removed_directory(void)
{
    px_dir("d", 0777);
    PX_OK(chdir("d"));
    PX_OK(rmdir("../d"));
    for (size_t i = 0; i < NMAKERS; i++) {
        PX_ERR(makers[i].fn("new", 0644), ENOENT);
    }
    PX_OK(chdir("/"));
}

static void write_and_search_are_both_needed(void)
{
    static const mode_t modes[] = {0, 0100, 0200, 0400, 0500, 0600};

    px_dir("d", 0777);
    px_own("d", U1, G1);
    for (size_t m = 0; m < 6; m++) {
        px_root();
        PX_OK(chmod("d", modes[m]));
        px_user(U1, G1);
        for (size_t i = 0; i < NMAKERS; i++) {
            PX_ERR(makers[i].fn("d/new", 0644), EACCES);
        }
    }
    px_root();
    PX_OK(chmod("d", 0300));
    px_user(U1, G1);
    for (size_t i = 0; i < NMAKERS; i++) {
        PX_OK(makers[i].fn("d/new", 0644));
        PX_OK(makers[i].kind == S_IFDIR ? rmdir("d/new") : unlink("d/new"));
    }
}

static void root_needs_nothing(void)
{
    px_dir("d", 0);
    for (size_t i = 0; i < NMAKERS; i++) {
        PX_OK(makers[i].fn("d/new", 0));
        PX_OK(makers[i].kind == S_IFDIR ? rmdir("d/new") : unlink("d/new"));
    }
}

PX_GROUP(create, T(owner_and_group), T(masked), T(group_of_a_setgid_directory),
         T(setgid_asked_for_in_anothers_group), T(times), T(times_on_failure),
         T(names_are_taken_once), T(in_a_removed_directory), T(write_and_search_are_both_needed),
         T(root_needs_nothing));

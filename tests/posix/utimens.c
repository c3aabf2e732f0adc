/* SPDX-License-Identifier: Apache-2.0
 *
 * utimensat and futimens: exact times, special values, rights; the times other calls set; access.
 */
#include "px.h"

static void set_and_see(int64_t sec, long ns)
{
    struct timespec t[2] = {{.tv_sec = sec, .tv_nsec = ns}, {.tv_sec = sec + 1, .tv_nsec = ns}};
    struct stat st;

    PX_OK(utimensat(AT_FDCWD, "f", t, 0));
    st = px_stat("f");
    PX_EQ(st.st_atim.tv_sec, sec);
    PX_EQ(st.st_atim.tv_nsec, ns);
    PX_EQ(st.st_mtim.tv_sec, sec + 1);
    PX_EQ(st.st_mtim.tv_nsec, ns);
}

/* E1 */
static void seconds_of_all_years(void)
{
    static const int64_t secs[] = {
        0,
        1,
        -1,
        -2,
        -14245441,            /* 1969-07-20 */
        -INT64_C(2147483640), /* 1901 */
        INT64_C(2147483646),
        INT64_C(2147483647), /* 2038 */
        INT64_C(2147483648),
        INT64_C(4294967295), /* 2106 */
        INT64_C(4294967296),
        INT64_C(4300000000),
        INT64_C(7258118400), /* 2200 */
    };

    px_file("f", 0644);
    for (size_t i = 0; i < sizeof(secs) / sizeof(secs[0]); i++) {
        set_and_see(secs[i], 0);
        set_and_see(secs[i], 1);
        set_and_see(secs[i], 750000000);
        set_and_see(secs[i], 999999999);
    }
}

/* Beyond what a file system keeps: the nearest it can, never another year by chance. */
static void far_future_is_not_wrapped(void)
{
    struct timespec t[2] = {{.tv_sec = INT64_C(13569465600)}, {.tv_sec = INT64_C(13569465600)}};
    struct stat st;

    px_file("f", 0644);
    PX_OK(utimensat(AT_FDCWD, "f", t, 0)); /* the year 2400 */
    st = px_stat("f");
    PX_CHECK(st.st_mtim.tv_sec <= t[1].tv_sec && st.st_mtim.tv_sec > INT64_C(4294967296));
    PX_CHECK(st.st_mtim.tv_nsec >= 0 && st.st_mtim.tv_nsec < 1000000000);
}

static void every_kind(void)
{
    struct timespec t[2] = {{1000, 5}, {2000, 7}};

    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        struct stat st;

        PX_OK(utimensat(AT_FDCWD, px_zoo_names[i], t, AT_SYMLINK_NOFOLLOW));
        st = px_stat(px_zoo_names[i]);
        PX_EQ(st.st_atim.tv_sec, 1000);
        PX_EQ(st.st_mtim.tv_sec, 2000);
        PX_EQ(st.st_mtim.tv_nsec, 7);
    }
}

static void omit_and_now(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}};
    struct timespec omit_m[2] = {{3000, 3}, {0, UTIME_OMIT}};
    struct timespec omit_a[2] = {{0, UTIME_OMIT}, {4000, 4}};
    struct timespec now_m[2] = {{5000, 5}, {0, UTIME_NOW}};
    struct timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    struct timespec before;
    struct stat st;

    px_file("f", 0644);
    PX_OK(utimensat(AT_FDCWD, "f", t, 0));
    PX_OK(utimensat(AT_FDCWD, "f", omit_m, 0));
    PX_OK(utimensat(AT_FDCWD, "f", omit_a, 0));
    st = px_stat("f");
    PX_EQ(st.st_atim.tv_sec, 3000);
    PX_EQ(st.st_mtim.tv_sec, 4000);
    st = px_see("f");
    PX_OK(utimensat(AT_FDCWD, "f", omit, 0));
    PX_MOVED("f", &st, "");
    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    PX_OK(utimensat(AT_FDCWD, "f", now_m, 0));
    st = px_stat("f");
    PX_EQ(st.st_atim.tv_sec, 5000);
    PX_CHECK(px_time_cmp(st.st_mtim, before) >= 0);
    PX_OK(utimensat(AT_FDCWD, "f", NULL, 0));
    st = px_stat("f");
    PX_CHECK(px_time_cmp(st.st_atim, before) >= 0);
}

static void ctime_moves(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}};
    struct stat st, d;

    px_file("f", 0644);
    st = px_see("f");
    d = px_stat(".");
    PX_OK(utimensat(AT_FDCWD, "f", t, 0));
    PX_CHECK(px_time_cmp(px_stat("f").st_ctim, st.st_ctim) > 0);
    PX_MOVED(".", &d, "");
    st = px_see("f");
    px_user(U1, G1);
    PX_ERR(utimensat(AT_FDCWD, "f", t, 0), EPERM);
    PX_ERR(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
    PX_MOVED("f", &st, "");
}

/* Now: the owner or who may write. A chosen time: the owner. */
static void rights(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}};
    struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    struct timespec half[2] = {{0, UTIME_NOW}, {2000, 2}};
    struct timespec omit[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};

    px_file("f", 0666);
    px_own("f", U1, G1);
    px_user(U2, G2);
    PX_OK(utimensat(AT_FDCWD, "f", NULL, 0));
    PX_OK(utimensat(AT_FDCWD, "f", now, 0));
    PX_ERR(utimensat(AT_FDCWD, "f", t, 0), EPERM);
    PX_ERR(utimensat(AT_FDCWD, "f", half, 0), EPERM);
    PX_ERR(utimensat(AT_FDCWD, "f", omit, 0), EPERM);
    px_root();
    PX_OK(chmod("f", 0444));
    px_user(U2, G2);
    PX_ERR(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
    PX_ERR(utimensat(AT_FDCWD, "f", now, 0), EACCES);
    px_user(U1, G1);
    PX_OK(utimensat(AT_FDCWD, "f", NULL, 0));
    PX_OK(utimensat(AT_FDCWD, "f", t, 0));
    PX_EQ(px_stat("f").st_mtim.tv_sec, 2000);
    px_root();
    PX_OK(utimensat(AT_FDCWD, "f", now, 0));
}

static void bad_nanoseconds(void)
{
    struct timespec t[2] = {{1000, 1000000000}, {2000, 2}};
    struct timespec u[2] = {{1000, 1}, {2000, -1}};

    px_file("f", 0644);
    PX_ERR(utimensat(AT_FDCWD, "f", t, 0), EINVAL);
    PX_ERR(utimensat(AT_FDCWD, "f", u, 0), EINVAL);
}

static void by_descriptor(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}};
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_OK(futimens(fd, t)); /* a buffered write must not move it again */
    PX_EQ(px_stat("f").st_mtim.tv_sec, 2000);
    PX_OK(fsync(fd));
    PX_EQ(px_stat("f").st_mtim.tv_sec, 2000);
    PX_OK(close(fd));
    PX_EQ(px_stat("f").st_mtim.tv_sec, 2000);
    PX_EQ(px_stat("f").st_mtim.tv_nsec, 2);
}

static void write_moves_read_does_not(void)
{
    struct stat st;
    char c;
    int fd;

    px_put("f", "abc", 3);
    st = px_see("f");
    fd = (int)PX_OK(open("f", O_RDWR));
    PX_EQ(PX_OK(read(fd, &c, 1)), 1);
    PX_MOVED("f", &st, "");
    PX_EQ(PX_OK(write(fd, "", 0)), 0);
    PX_MOVED("f", &st, "");
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_OK(close(fd));
    PX_MOVED("f", &st, "cm");
}

static void read_moves_atime_once(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}};
    struct stat st;
    char c;
    int fd;

    px_put("f", "abc", 3);
    PX_OK(utimensat(AT_FDCWD, "f", t, 0)); /* atime older than mtime: also relatime moves it */
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_EQ(PX_OK(read(fd, &c, 1)), 1);
    PX_OK(close(fd));
    st = px_stat("f");
    if (st.st_atim.tv_sec == 1000) {
        PX_SKIP("access times are not kept (noatime)");
    }
    PX_CHECK(st.st_atim.tv_sec > 2000);
    PX_EQ(st.st_mtim.tv_sec, 2000);
}

PX_GROUP(utimens, T(seconds_of_all_years), T(far_future_is_not_wrapped), T(every_kind),
         T(omit_and_now), T(ctime_moves), T(rights), T(bad_nanoseconds), T(by_descriptor),
         T(write_moves_read_does_not), T(read_moves_atime_once));

static void like_the_real_thing(void)
{
    static const struct {
        uid_t uid;
        gid_t gid;
        unsigned shift;
    } who[] = {{U1, G2, 6}, {U2, G1, 3}, {U2, G2, 0}};

    px_file("f", 0);
    px_own("f", U1, G1);
    for (size_t w = 0; w < 3; w++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            px_root();
            PX_OK(chmod("f", bits << who[w].shift));
            px_user(who[w].uid, who[w].gid);
            for (int ask = 1; ask < 8; ask++) {
                if ((bits & (unsigned)ask) == (unsigned)ask) {
                    PX_OK(access("f", ask));
                } else {
                    PX_ERR(access("f", ask), EACCES);
                }
            }
            PX_OK(access("f", F_OK));
        }
    }
}

static void of_root(void)
{
    px_file("f", 0);
    px_dir("d", 0);
    PX_OK(access("f", R_OK | W_OK));
    PX_ERR(access("f", X_OK), EACCES); /* some execute bit is needed */
    PX_OK(chmod("f", 0001));
    PX_OK(access("f", R_OK | W_OK | X_OK));
    PX_OK(access("d", R_OK | W_OK | X_OK));
    PX_ERR(access("f", 0xff), EINVAL);
}

PX_GROUP(access, T(like_the_real_thing), T(of_root));

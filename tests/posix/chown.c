/* SPDX-License-Identifier: Apache-2.0
 *
 * chown, lchown, fchown: who may, -1, the bits that go, times.
 */
#include "px.h"

static void by_root(void)
{
    struct stat st;

    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        PX_OK(lchown(px_zoo_names[i], U1, G1));
        st = px_stat(px_zoo_names[i]);
        PX_EQ(st.st_uid, U1);
        PX_EQ(st.st_gid, G1);
        PX_OK(lchown(px_zoo_names[i], U2, (gid_t)-1));
        PX_OK(lchown(px_zoo_names[i], (uid_t)-1, G2));
        st = px_stat(px_zoo_names[i]);
        PX_EQ(st.st_uid, U2);
        PX_EQ(st.st_gid, G2);
        PX_OK(lchown(px_zoo_names[i], (uid_t)-1, (gid_t)-1));
        PX_EQ(px_stat(px_zoo_names[i]).st_uid, U2);
    }
}

static void large_ids(void)
{
    struct stat st;

    px_file("f", 0644);
    PX_OK(chown("f", 0x7fffffff, 0x80000000u));
    st = px_stat("f");
    PX_EQ(st.st_uid, 0x7fffffff);
    PX_EQ(st.st_gid, 0x80000000u);
    PX_OK(chown("f", 0xfffffffeu, 0xfffffffeu));
    st = px_stat("f");
    PX_EQ(st.st_uid, 0xfffffffeu);
    PX_EQ(st.st_gid, 0xfffffffeu);
}

static void follows_links(void)
{
    px_file("f", 0644);
    PX_OK(symlink("f", "l"));
    PX_OK(chown("l", U1, G1));
    PX_EQ(px_stat("f").st_uid, U1);
    PX_EQ(px_stat("l").st_uid, 0);
    PX_OK(lchown("l", U2, G2));
    PX_EQ(px_stat("f").st_uid, U1);
    PX_EQ(px_stat("l").st_uid, U2);
}

static void users_give_nothing_away(void)
{
    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U1, G1);
    PX_ERR(chown("f", U2, (gid_t)-1), EPERM);
    PX_ERR(chown("f", U2, G1), EPERM);
    PX_ERR(chown("f", (uid_t)-1, G2), EPERM);
    PX_ERR(chown("f", U1, G2), EPERM);
    PX_OK(chown("f", U1, G1));
    PX_OK(chown("f", (uid_t)-1, G1));
    px_user(U2, G1);
    PX_ERR(chown("f", U2, (gid_t)-1), EPERM);
    PX_ERR(chown("f", (uid_t)-1, G1), EPERM);
    PX_EQ(px_stat("f").st_uid, U1);
    PX_EQ(px_stat("f").st_gid, G1);
}

static void to_a_group_of_ones_own(void)
{
    gid_t more[] = {G2, G3};

    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user_in(U1, G1, more, 2);
    PX_OK(chown("f", (uid_t)-1, G2));
    PX_EQ(px_stat("f").st_gid, G2);
    PX_OK(chown("f", U1, G3));
    PX_EQ(px_stat("f").st_gid, G3);
    PX_OK(lchown("f", U1, G1));
    PX_EQ(px_stat("f").st_gid, G1);
    px_user(U1, G1);
    PX_ERR(chown("f", (uid_t)-1, G2), EPERM);
}

static void many_groups(void)
{
    gid_t more[40];

    for (unsigned i = 0; i < 40; i++) {
        more[i] = 70000 + i;
    }
    px_file("f", 0644);
    px_own("f", U1, G1);
    px_file("g", 0060);
    px_own("g", 0, more[33]);
    px_user_in(U1, G1, more, 40);
    PX_OK(chown("f", (uid_t)-1, more[39]));
    PX_EQ(px_stat("f").st_gid, more[39]);
    PX_OK(close((int)PX_OK(open("g", O_RDWR))));
}

static void setid_bits_go(void)
{
    static const struct {
        mode_t before, after;
    } modes[] = {
        {06755, 0755}, {04755, 0755},
        {02755, 0755}, {02644, 02644}, /* without group execute it is no set-group-id program */
        {04644, 0644}, {01755, 01755},
    };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        px_file("f", 0644);
        PX_OK(chown("f", U1, G1));
        PX_OK(chmod("f", modes[i].before));
        px_user(U1, G1);
        PX_OK(chown("f", (uid_t)-1, G1));
        PX_EQ(px_mode("f"), modes[i].after);
        px_root();
        PX_OK(chmod("f", modes[i].before));
        PX_OK(chown("f", U2, G2)); /* Linux: root's chown too */
        PX_EQ(px_mode("f"), modes[i].after);
        PX_OK(unlink("f"));
    }
}

static void directories_keep_setgid(void)
{
    px_dir("d", 0755);
    PX_OK(chmod("d", 02755));
    PX_OK(chown("d", U1, G1));
    PX_EQ(px_mode("d"), 02755);
    px_user(U1, G1);
    PX_OK(chown("d", U1, G1));
    PX_EQ(px_mode("d"), 02755);
}

static void fchown_works(void)
{
    int fd;

    px_file("f", 0644);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_OK(fchown(fd, U1, G1));
    PX_EQ(px_stat("f").st_uid, U1);
    px_user(U2, G2);
    PX_ERR(fchown(fd, U2, G2), EPERM);
    PX_OK(close(fd));
}

static void times(void)
{
    struct stat f, d;

    px_file("f", 0644);
    px_own("f", U1, G1);
    f = px_see("f");
    d = px_stat(".");
    PX_OK(chown("f", U2, G2));
    PX_MOVED("f", &f, "c");
    PX_MOVED(".", &d, "");
    f = px_see("f");
    px_user(U1, G1);
    PX_ERR(chown("f", U1, G1), EPERM);
    PX_MOVED("f", &f, "");
}

/* With the owner his rights go. */
static void rights_follow(void)
{
    px_file("f", 0600);
    px_own("f", U1, G1);
    px_user(U1, G1);
    PX_OK(close((int)PX_OK(open("f", O_RDWR))));
    px_root();
    px_own("f", U2, G2);
    px_user(U1, G1);
    PX_ERR(open("f", O_RDONLY), EACCES);
    px_user(U2, G2);
    PX_OK(close((int)PX_OK(open("f", O_RDWR))));
}

PX_GROUP(chown, T(by_root), T(large_ids), T(follows_links), T(users_give_nothing_away),
         T(to_a_group_of_ones_own), T(many_groups), T(setid_bits_go), T(directories_keep_setgid),
         T(fchown_works), T(times), T(rights_follow));

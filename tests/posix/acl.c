/* SPDX-License-Identifier: Apache-2.0
 *
 * Access ACLs: POSIX 1003.1e draft 17, 23.1: the algorithm, the mask, and how the mode follows.
 */
#include <sys/xattr.h>

#include "px_acl.h"

static void ends(uid_t uid, gid_t gid, const char *name, int want)
{
    px_user(uid, gid);
    for (int ask = 1; ask < 8; ask++) {
        if ((want & ask) == ask) {
            PX_OK(access(name, ask));
        } else {
            PX_ERR(access(name, ask), EACCES);
        }
    }
    if (want & 4) {
        PX_OK(close((int)PX_OK(open(name, O_RDONLY))));
    } else {
        PX_ERR(open(name, O_RDONLY), EACCES);
    }
    if (want & 2) {
        PX_OK(close((int)PX_OK(open(name, O_WRONLY))));
    } else {
        PX_ERR(open(name, O_WRONLY), EACCES);
    }
    px_root();
}

static void kept_as_given(void)
{
    static const char *const acls[] = {
        "u::rw-,u:64001:r--,g::r--,m::rw-,o::---",
        "u::rwx,u:1:---,u:64001:rwx,u:64002:-wx,g::r-x,g:64011:-w-,g:64012:r--,m::r-x,o::--x",
        "u::---,g::---,g:64011:rwx,m::rwx,o::---",
        "u::rw-,g::r--,m::r--,o::r--", /* a mask and nothing else */
    };

    px_file("f", 0644);
    px_dir("d", 0755);
    for (size_t i = 0; i < 4; i++) {
        px_acl_set("f", acls[i]);
        ACL_IS("f", acls[i]);
        px_acl_set("d", acls[i]);
        ACL_IS("d", acls[i]);
        DEF_IS("d", "");
    }
}

static void many_entries(void)
{
    char text[2048];
    size_t n = (size_t)snprintf(text, sizeof(text), "u::rw-");

    for (int i = 0; i < 60; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, ",u:%d:r--", 1000 + i);
    }
    snprintf(text + n, sizeof(text) - n, ",g::r--,m::r--,o::---");
    px_file("f", 0644);
    px_acl_set("f", text);
    ACL_IS("f", text);
    ends(1033, G1, "f", 4);
    ends(1060, G1, "f", 0);
}

static void the_mode_shows_the_mask(void)
{
    px_file("f", 0600);
    px_acl_set("f", "u::rwx,u:64001:r--,g::r--,m::rw-,o::--x");
    PX_EQ(px_mode("f"), 0761);
    px_acl_set("f", "u::r--,u:64001:rwx,g::rwx,m::---,o::---");
    PX_EQ(px_mode("f"), 0400);
}

static void chmod_sets_the_mask(void)
{
    px_file("f", 0600);
    px_acl_set("f", "u::rw-,u:64001:rw-,g::r--,m::rw-,o::---");
    PX_OK(chmod("f", 0741));
    ACL_IS("f", "u::rwx,u:64001:rw-,g::r--,m::r--,o::--x");
    PX_EQ(px_mode("f"), 0741);
    ends(U1, G3, "f", 1); /* of the others */
    ends(U2, G3, "f", 4); /* named, but masked: no writing */
    PX_OK(chmod("f", 0660));
    ACL_IS("f", "u::rw-,u:64001:rw-,g::r--,m::rw-,o::---");
    ends(U2, G3, "f", 6);
}

/* Without a mask there is nothing but the mode. */
static void three_entries_are_a_mode(void)
{
    px_file("f", 0600);
    px_acl_set("f", "u::rwx,g::r-x,o::r--");
    PX_EQ(px_mode("f"), 0754);
    ACL_IS("f", "");
    PX_EQ(PX_OK(listxattr("f", NULL, 0)), 0);
}

static void named_users(void)
{
    px_file("f", 0600);
    px_own("f", U1, G1);
    px_acl_set("f", "u::r--,u:64001:rw-,u:64002:---,g::rwx,m::rwx,o::rwx");
    ends(U1, G1, "f", 4); /* the owner's entry and no other */
    ends(U2, G1, "f", 6); /* the named one before the groups */
    ends(U3, G1, "f", 0); /* named and shut out */
    ends(60000, G1, "f", 7);
    ends(60000, 60000, "f", 7);
}

static void the_mask_limits(void)
{
    px_file("f", 0600);
    px_own("f", U1, G1);
    px_acl_set("f", "u::rwx,u:64001:rwx,g::rwx,g:64011:rwx,m::r--,o::rwx");
    ends(U1, G1, "f", 7); /* not the owner */
    ends(U2, G3, "f", 4);
    ends(60000, G1, "f", 4);
    ends(60000, G2, "f", 4);
    ends(60000, 60000, "f", 7); /* and not the others */
}

static void groups(void)
{
    gid_t both[] = {G1, G2}, second[] = {G3, G2};

    px_file("f", 0600);
    px_own("f", U1, G1);
    px_acl_set("f", "u::---,g::r--,g:64011:-w-,g:64012:---,m::rwx,o::rwx");
    ends(60000, G1, "f", 4);
    ends(60000, G2, "f", 2);
    ends(60000, G3, "f", 0); /* a group that matches is enough to not be one of the others */
    px_user_in(60000, 60000, both, 2);
    PX_OK(access("f", R_OK));
    PX_OK(access("f", W_OK));
    PX_ERR(access("f", R_OK | W_OK), EACCES); /* one entry must give all of it */
    px_user_in(60000, 60000, second, 2);
    PX_OK(access("f", W_OK));
    PX_ERR(access("f", R_OK), EACCES);
}

static void directories(void)
{
    struct stat st;

    px_dir("d", 0700);
    px_file("d/f", 0644);
    px_acl_set("d", "u::rwx,u:64001:--x,u:64002:-wx,g::---,m::rwx,o::---");
    px_user(U2, G2);
    PX_OK(stat("d/f", &st));
    PX_ERR(open("d", O_RDONLY), EACCES);
    PX_ERR(open("d/g", O_CREAT | O_WRONLY, 0644), EACCES);
    PX_ERR(unlink("d/f"), EACCES);
    px_user(U3, G3);
    PX_OK(close((int)PX_OK(open("d/g", O_CREAT | O_WRONLY, 0644))));
    PX_OK(unlink("d/f"));
    px_user(U1, G1);
    PX_ERR(stat("d/g", &st), EACCES);
    px_root();
    ACL_IS("d/g", "");
}

static void root_is_above(void)
{
    px_file("f", 0600);
    px_acl_set("f", "u::---,u:0:---,g::---,m::---,o::---");
    PX_OK(close((int)PX_OK(open("f", O_RDWR))));
    PX_ERR(access("f", X_OK), EACCES);
}

static void invalid_ones(void)
{
    static const char *const bad[] = {
        "u::rw-,u:64001:r--,g::r--,o::---",   /* named, and no mask */
        "u::rw-,g::r--",                      /* no others */
        "g::r--,o::---",                      /* no owner */
        "u::rw-,u::rw-,g::r--,o::---",        /* twice */
        "u::rw-,g::r--,m::r--,m::r--,o::---", /* two masks */
        "o::---,g::r--,u::rw-",               /* not in order */
        "",                                   /* nothing: removes it on Linux */
    };
    uint8_t buf[256];
    size_t n;

    px_file("f", 0640);
    px_acl_set("f", "u::rw-,u:64001:r--,g::r--,m::r--,o::---");
    for (size_t i = 0; i < 6; i++) {
        n = px_acl_bytes(bad[i], buf, sizeof(buf));
        PX_ERR(setxattr("f", ACCESS_ACL, buf, n, 0), EINVAL);
    }
    n = px_acl_bytes("u::rw-,g::r--,o::---", buf, sizeof(buf));
    PX_ERR(setxattr("f", ACCESS_ACL, buf, n - 1, 0), EINVAL);
    PX_ERR(setxattr("f", ACCESS_ACL, buf, 3, 0), EINVAL);
    buf[0] = 1; /* another version */
    PX_ERR2(setxattr("f", ACCESS_ACL, buf, n, 0), EOPNOTSUPP, EINVAL);
    buf[0] = 2;
    buf[6] = 9; /* no such permission */
    PX_ERR(setxattr("f", ACCESS_ACL, buf, n, 0), EINVAL);
    ACL_IS("f", "u::rw-,u:64001:r--,g::r--,m::r--,o::---");
}

static void only_the_owner_sets(void)
{
    uint8_t buf[256];
    size_t n = px_acl_bytes("u::rw-,u:64002:rw-,g::r--,m::rw-,o::---", buf, sizeof(buf));

    px_file("f", 0666);
    px_own("f", U1, G1);
    px_acl_set("f", "u::rw-,u:64001:rw-,g::rw-,m::rw-,o::rw-");
    px_user(U2, G1);
    PX_ERR(setxattr("f", ACCESS_ACL, buf, n, 0), EPERM);
    PX_ERR(removexattr("f", ACCESS_ACL), EPERM);
    ACL_IS("f", "u::rw-,u:64001:rw-,g::rw-,m::rw-,o::rw-"); /* all may read it */
    px_user(U1, G1);
    PX_OK(setxattr("f", ACCESS_ACL, buf, n, 0));
    PX_EQ(px_mode("f"), 0660);
}

static void removed(void)
{
    px_file("f", 0640);
    px_acl_set("f", "u::rw-,u:64001:rw-,g::---,m::rw-,o::---");
    PX_OK(removexattr("f", ACCESS_ACL));
    ACL_IS("f", "");
    PX_EQ(px_mode("f"), 0660);
    ends(U2, G3, "f", 0);
    PX_EQ(PX_OK(listxattr("f", NULL, 0)), 0);
}

static void not_on_links(void)
{
    uint8_t buf[256];
    size_t n = px_acl_bytes("u::rw-,g::r--,o::---", buf, sizeof(buf));

    px_zoo();
    px_acl_set("file", "u::rw-,g::r--,o::---");
    PX_ERR(lsetxattr("link", ACCESS_ACL, buf, n, 0), EOPNOTSUPP);
    PX_OK(setxattr("fifo", ACCESS_ACL, buf, n, 0));
    PX_EQ(px_mode("fifo"), 0640);
}

static void listed(void)
{
    char list[256];

    px_file("f", 0640);
    px_acl_set("f", "u::rw-,u:64001:rw-,g::---,m::rw-,o::---");
    PX_EQ(PX_OK(listxattr("f", list, sizeof(list))), sizeof(ACCESS_ACL));
    PX_SAYS(list, ACCESS_ACL);
}

static void setgid_goes_with_a_foreign_group(void)
{
    uint8_t buf[256];
    size_t n = px_acl_bytes("u::rwx,u:64001:r-x,g::r-x,m::r-x,o::---", buf, sizeof(buf));

    px_file("f", 0750);
    px_own("f", U1, G2);
    px_acl_set("f", "u::rwx,g::r-x,o::---");
    PX_OK(chmod("f", 02750));
    px_user(U1, G1);
    PX_OK(setxattr("f", ACCESS_ACL, buf, n, 0));
    PX_EQ(px_mode("f"), 0750);
}

static void times(void)
{
    struct stat st;

    px_file("f", 0640);
    st = px_see("f");
    px_acl_set("f", "u::rw-,u:64001:rw-,g::---,m::rw-,o::---");
    PX_MOVED("f", &st, "c");
    st = px_see("f");
    PX_OK(removexattr("f", ACCESS_ACL));
    PX_MOVED("f", &st, "c");
}

static void they_stay_with_the_object(void)
{
    static const char acl[] = "u::rw-,u:64001:rw-,g::---,m::rw-,o::---";

    px_file("f", 0640);
    px_dir("d", 0755);
    px_acl_set("f", acl);
    PX_OK(link("f", "d/g"));
    ACL_IS("d/g", acl);
    PX_OK(rename("f", "h"));
    ACL_IS("h", acl);
    PX_OK(chown("h", U3, G3));
    ACL_IS("h", acl);
    PX_OK(truncate("h", 10));
    ACL_IS("h", acl);
}

PX_GROUP(acl, T(kept_as_given), T(many_entries), T(the_mode_shows_the_mask), T(chmod_sets_the_mask),
         T(three_entries_are_a_mode), T(named_users), T(the_mask_limits), T(groups), T(directories),
         T(root_is_above), T(invalid_ones), T(only_the_owner_sets), T(removed), T(not_on_links),
         T(listed), T(setgid_goes_with_a_foreign_group), T(times), T(they_stay_with_the_object));

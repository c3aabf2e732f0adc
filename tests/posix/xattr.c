/* SPDX-License-Identifier: Apache-2.0
 *
 * E7: extended attributes, the protocol of sizes, the name spaces and who may see them.
 */
#include <linux/limits.h>
#include <sys/xattr.h>

#include "px.h"

static char big[XATTR_SIZE_MAX + 1], back[XATTR_SIZE_MAX + 1];

/* Where values this long do not fit (ext4 without ea_inode) the case says so. */
static void set(const char *name, const char *attr, const void *v, size_t len)
{
    if (setxattr(name, attr, v, len, 0) != 0) {
        if (errno == EOPNOTSUPP) {
            PX_SKIP("extended attributes (%s) are not supported", attr);
        }
        if (errno == ENOSPC && len > 2000) {
            PX_SKIP("values of %zu bytes do not fit in this file system", len);
        }
        PX_OK(-1);
    }
}

static void value_is(const char *name, const char *attr, const void *v, size_t len)
{
    memset(back, '#', sizeof(back));
    PX_EQ(PX_OK(getxattr(name, attr, back, sizeof(back))), len);
    PX_CHECK(memcmp(back, v, len) == 0 && (len == sizeof(back) || back[len] == '#'));
}

static void set_and_get(void)
{
    static const char *const values[] = {"x", "hello", "a longer value, with spaces"};

    px_zoo();
    for (size_t i = 0; i < 3; i++) {
        set("file", "user.a", values[i], strlen(values[i]));
        value_is("file", "user.a", values[i], strlen(values[i]));
        set("dir", "user.a", values[i], strlen(values[i]));
        value_is("dir", "user.a", values[i], strlen(values[i]));
    }
    set("file", "user.empty", "", 0);
    value_is("file", "user.empty", "", 0);
    set("file", "user.nul", "a\0b\0", 4);
    value_is("file", "user.nul", "a\0b\0", 4);
    value_is("link", "user.a", values[2], strlen(values[2])); /* followed */
}

static void sized(size_t len)
{
    px_file("f", 0644);
    px_fill((uint32_t)len, 0, big, len);
    set("f", "user.v", big, len);
    value_is("f", "user.v", big, len);
    PX_EQ(PX_OK(getxattr("f", "user.v", NULL, 0)), len);
    PX_ERR(getxattr("f", "user.v", back, len - 1), len == 1 ? 0 : ERANGE);
    set("f", "user.v", "short", 5); /* shorter again */
    value_is("f", "user.v", "short", 5);
    PX_OK(removexattr("f", "user.v"));
}

static void size_1(void)
{
    sized(1);
}

static void size_1000(void)
{
    sized(1000);
}

static void size_4_KiB(void)
{
    sized(4096);
}

static void size_64_KiB(void)
{
    sized(65536);
}

static void several_of_64_KiB(void)
{
    px_file("f", 0644);
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof(name), "user.v%u", i);
        px_fill(i, 0, big, 65536);
        set("f", name, big, 65536);
    }
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof(name), "user.v%u", i);
        px_fill(i, 0, big, 65536);
        value_is("f", name, big, 65536);
    }
}

static void size_over_64_KiB(void)
{
    px_file("f", 0644);
    set("f", "user.v", "x", 1);
    PX_ERR2(setxattr("f", "user.v", big, 65537, 0), E2BIG, ENOSPC);
    value_is("f", "user.v", "x", 1);
}

static void sizes_asked_for(void)
{
    px_file("f", 0644);
    set("f", "user.v", "0123456789", 10);
    PX_EQ(PX_OK(getxattr("f", "user.v", NULL, 0)), 10);
    PX_ERR(getxattr("f", "user.v", back, 9), ERANGE);
    PX_ERR(getxattr("f", "user.v", back, 1), ERANGE);
    PX_EQ(PX_OK(getxattr("f", "user.v", back, 10)), 10);
    PX_ERR(getxattr("f", "user.none", NULL, 0), ENODATA);
    PX_ERR(getxattr("f", "user.none", back, 100), ENODATA);
}

static void create_and_replace(void)
{
    px_file("f", 0644);
    set("f", "user.probe", "1", 1);
    PX_ERR(setxattr("f", "user.v", "1", 1, XATTR_REPLACE), ENODATA);
    PX_OK(setxattr("f", "user.v", "1", 1, XATTR_CREATE));
    PX_ERR(setxattr("f", "user.v", "2", 1, XATTR_CREATE), EEXIST);
    value_is("f", "user.v", "1", 1);
    PX_OK(setxattr("f", "user.v", "3", 1, XATTR_REPLACE));
    value_is("f", "user.v", "3", 1);
    PX_ERR(setxattr("f", "user.v", "3", 1, 8), EINVAL);
    PX_OK(removexattr("f", "user.v"));
    PX_ERR(removexattr("f", "user.v"), ENODATA);
    PX_ERR(getxattr("f", "user.v", NULL, 0), ENODATA);
    PX_OK(setxattr("f", "user.v", "4", 1, XATTR_CREATE));
}

static void names(void)
{
    char name[300];

    px_file("f", 0644);
    memset(name, 'n', sizeof(name));
    memcpy(name, "user.", 5);
    name[255] = '\0';
    set("f", name, "v", 1);
    value_is("f", name, "v", 1);
    PX_EQ(PX_OK(listxattr("f", back, sizeof(back))), 256);
    PX_SAYS(back, name);
    name[255] = 'n';
    name[256] = '\0';
    PX_ERR(setxattr("f", name, "v", 1, 0), ERANGE);
    PX_ERR(setxattr("f", "", "v", 1, 0), ERANGE);
    PX_ERR(setxattr("f", "user.", "v", 1, 0), EINVAL);
    PX_ERR(setxattr("f", "nothing", "v", 1, 0), EOPNOTSUPP);
    PX_ERR(setxattr("f", "bogus.name", "v", 1, 0), EOPNOTSUPP);
    PX_ERR2(getxattr("f", "bogus.name", NULL, 0), EOPNOTSUPP, ENODATA);
    set("f", "user.\xe6\xbc\xa2 \xff", "v", 1);
    value_is("f", "user.\xe6\xbc\xa2 \xff", "v", 1);
    set("f", "user.A", "1", 1);
    set("f", "user.a", "2", 1);
    value_is("f", "user.A", "1", 1);
}

/* name among the NUL-ended strings of a list. */
static bool in_list(const char *list, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i += strlen(list + i) + 1) {
        if (strcmp(list + i, name) == 0) {
            return true;
        }
    }
    return false;
}

static void lists(void)
{
    size_t want = 0, len;
    char name[32];

    px_file("f", 0644);
    PX_EQ(PX_OK(listxattr("f", NULL, 0)), 0);
    PX_EQ(PX_OK(listxattr("f", back, sizeof(back))), 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "user.name%d", i);
        set("f", name, "v", 1);
        want += strlen(name) + 1;
    }
    len = (size_t)PX_OK(listxattr("f", NULL, 0));
    PX_EQ(len, want);
    PX_ERR(listxattr("f", back, len - 1), ERANGE);
    PX_EQ(PX_OK(listxattr("f", back, len)), len);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "user.name%d", i);
        PX_CHECK(in_list(back, len, name));
    }
    for (int i = 0; i < 40; i += 2) {
        snprintf(name, sizeof(name), "user.name%d", i);
        PX_OK(removexattr("f", name));
    }
    len = (size_t)PX_OK(listxattr("f", back, sizeof(back)));
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "user.name%d", i);
        PX_EQ(in_list(back, len, name), i % 2);
    }
}

static void user_names_need_a_file_or_directory(void)
{
    px_zoo();
    set("file", "user.a", "v", 1);
    PX_ERR(lsetxattr("link", "user.a", "v", 1, 0), EPERM);
    PX_ERR2(lgetxattr("link", "user.a", NULL, 0), ENODATA, EPERM);
    PX_ERR(setxattr("fifo", "user.a", "v", 1, 0), EPERM);
    PX_ERR(setxattr("sock", "user.a", "v", 1, 0), EPERM);
    PX_EQ(PX_OK(llistxattr("link", back, sizeof(back))), 0);
}

static void user_names_and_rights(void)
{
    px_file("f", 0644);
    px_own("f", U1, G1);
    set("f", "user.a", "v", 1);
    px_user(U2, G2);
    value_is("f", "user.a", "v", 1);
    PX_ERR(setxattr("f", "user.a", "w", 1, 0), EACCES);
    PX_ERR(removexattr("f", "user.a"), EACCES);
    px_root();
    PX_OK(chmod("f", 0622));
    px_user(U2, G2);
    PX_ERR(getxattr("f", "user.a", back, 10), EACCES);
    PX_OK(setxattr("f", "user.a", "w", 1, 0));
    px_user(U1, G1);
    value_is("f", "user.a", "w", 1);
    PX_OK(removexattr("f", "user.a"));
}

static void trusted_names(void)
{
    size_t len;

    px_file("f", 0666);
    px_own("f", U1, G1);
    set("f", "trusted.a", "secret", 6);
    value_is("f", "trusted.a", "secret", 6);
    len = (size_t)PX_OK(listxattr("f", back, sizeof(back)));
    PX_CHECK(in_list(back, len, "trusted.a"));
    PX_OK(symlink("f", "l"));
    PX_OK(lsetxattr("l", "trusted.b", "v", 1, 0)); /* also on a link */
    PX_EQ(PX_OK(lgetxattr("l", "trusted.b", back, 10)), 1);
    px_user(U1, G1);
    PX_ERR(setxattr("f", "trusted.a", "x", 1, 0), EPERM);
    PX_ERR2(getxattr("f", "trusted.a", back, 10), ENODATA, EPERM);
    PX_ERR2(removexattr("f", "trusted.a"), EPERM, ENODATA);
    len = (size_t)PX_OK(listxattr("f", back, sizeof(back)));
    PX_CHECK(!in_list(back, len, "trusted.a"));
}

static void security_names(void)
{
    px_file("f", 0666);
    px_own("f", U1, G1);
    set("f", "security.px", "label", 5);
    value_is("f", "security.px", "label", 5);
    px_user(U1, G1);
    value_is("f", "security.px", "label", 5);
    PX_ERR(setxattr("f", "security.px", "x", 1, 0), EPERM);
    PX_ERR(removexattr("f", "security.px"), EPERM);
    px_root();
    PX_OK(removexattr("f", "security.px"));
}

/* struct vfs_cap_data, revision 2, CAP_NET_BIND_SERVICE permitted. */
static const uint8_t capability[20] = {0, 0, 0, 2, 0, 4};

static void capabilities_go_with_a_write(void)
{
    int fd;

    px_file("f", 0777);
    set("f", "security.capability", capability, sizeof(capability));
    value_is("f", "security.capability", capability, sizeof(capability));
    px_own("f", U1, G1);
    PX_ERR(getxattr("f", "security.capability", NULL, 0), ENODATA);
    set("f", "security.capability", capability, sizeof(capability));
    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_EQ(PX_OK(write(fd, "x", 1)), 1);
    PX_OK(close(fd));
    PX_ERR(getxattr("f", "security.capability", NULL, 0), ENODATA);
}

static void times(void)
{
    struct stat st, d;

    px_file("f", 0644);
    set("f", "user.probe", "1", 1);
    st = px_see("f");
    d = px_stat(".");
    PX_OK(setxattr("f", "user.a", "1", 1, 0));
    PX_MOVED("f", &st, "c");
    PX_MOVED(".", &d, "");
    st = px_see("f");
    PX_OK(removexattr("f", "user.a"));
    PX_MOVED("f", &st, "c");
    st = px_see("f");
    PX_ERR(removexattr("f", "user.a"), ENODATA);
    PX_ERR(setxattr("f", "user.a", "1", 1, XATTR_REPLACE), ENODATA);
    PX_EQ(PX_OK(getxattr("f", "user.probe", back, 10)), 1);
    PX_MOVED("f", &st, "");
}

static void they_belong_to_the_object(void)
{
    int fd;

    px_file("f", 0644);
    set("f", "user.a", "v", 1);
    PX_OK(link("f", "g"));
    value_is("g", "user.a", "v", 1);
    PX_OK(rename("f", "h"));
    value_is("h", "user.a", "v", 1);
    fd = (int)PX_OK(open("h", O_RDWR));
    PX_OK(unlink("h"));
    PX_OK(unlink("g"));
    PX_EQ(PX_OK(fgetxattr(fd, "user.a", back, 10)), 1);
    PX_OK(fsetxattr(fd, "user.b", "w", 1, 0));
    PX_OK(fremovexattr(fd, "user.a"));
    PX_EQ(PX_OK(flistxattr(fd, back, sizeof(back))), 7);
    PX_OK(close(fd));
    px_file("h", 0644); /* a new object of that name has none */
    PX_ERR(getxattr("h", "user.b", NULL, 0), ENODATA);
}

static void in_a_directory_moved(void)
{
    px_dir("d", 0755);
    px_dir("d/e", 0755);
    set("d", "user.a", "1", 1);
    set("d/e", "user.a", "2", 1);
    PX_OK(rename("d", "x"));
    value_is("x", "user.a", "1", 1);
    value_is("x/e", "user.a", "2", 1);
    PX_OK(rmdir("x/e"));
    PX_OK(rmdir("x"));
}

PX_GROUP(xattr, T(set_and_get), T(size_1), T(size_1000), T(size_4_KiB), T(size_64_KiB),
         T(several_of_64_KiB), T(size_over_64_KiB), T(sizes_asked_for), T(create_and_replace),
         T(names), T(lists), T(user_names_need_a_file_or_directory), T(user_names_and_rights),
         T(trusted_names), T(security_names), T(capabilities_go_with_a_write), T(times),
         T(they_belong_to_the_object), T(in_a_directory_moved));

/* SPDX-License-Identifier: Apache-2.0
 *
 * F1: names are bytes, 1 to 255 of them, and come back as they were given. And statvfs.
 */
#include <dirent.h>
#include <sys/statvfs.h>

#include "px.h"

static bool listed(const char *name)
{
    DIR *d = opendir(".");
    struct dirent *e;
    bool found = false;

    while (d != NULL && (e = readdir(d)) != NULL) {
        found = found || strcmp(e->d_name, name) == 0;
    }
    PX_OK(d == NULL ? -1 : closedir(d));
    return found;
}

static void repeat(char *buf, const char *unit, size_t n)
{
    size_t len = strlen(unit);

    for (size_t i = 0; i < n; i++) {
        memcpy(buf + i * len, unit, len);
    }
    buf[n * len] = '\0';
}

static void fits(const char *name)
{
    px_put(name, "abc", 3);
    PX_CHECK(listed(name));
    PX_CHECK(px_holds(name, "abc", 3));
    PX_OK(rename(name, "short"));
    PX_OK(rename("short", name));
    PX_CHECK(listed(name));
    PX_OK(unlink(name));
    PX_OK(mkdir(name, 0755));
    PX_OK(rmdir(name));
    PX_OK(symlink(name, "l"));
    PX_OK(unlink("l"));
}

static void longest(void)
{
    char name[300];

    repeat(name, "a", 255);
    fits(name);
    repeat(name, "\xe6\xbc\xa2", 85); /* three bytes each */
    fits(name);
    repeat(name, "\xd0\xb6", 127); /* 254 bytes */
    fits(name);
    repeat(name, "\xf0\x9f\x90\xa7", 63);
    fits(name);
}

static void too_long(void)
{
    char name[300];

    repeat(name, "a", 256);
    PX_ERR(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
    PX_ERR(mkdir(name, 0755), ENAMETOOLONG);
    repeat(name, "\xd0\xb6", 128); /* 128 letters, 256 bytes */
    PX_ERR(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
    px_file("f", 0644);
    PX_ERR(rename("f", name), ENAMETOOLONG);
    PX_ERR(link("f", name), ENAMETOOLONG);
}

static void any_bytes(void)
{
    char name[3] = "x?";

    for (int c = 1; c < 256; c++) {
        if (c == '/') {
            continue;
        }
        name[1] = (char)c;
        px_file(name, 0644);
        PX_CHECK(listed(name));
        PX_OK(unlink(name));
    }
    fits("a:b");
    fits("Jr.");
    fits("x ");
    fits("con");
    fits("q?*\"<>|\\");
    fits("...");
    fits("-rf");
    fits("\n");
    fits("\xff\xfe\xfd"); /* not UTF-8 */
}

/* Neither case nor the forms of Unicode are folded. */
static void different_bytes_are_different_names(void)
{
    static const char *const names[] = {"a",        "A",        "\xc3\xa9", "e\xcc\x81",
                                        "\xc3\x9f", "ss",       "\xc4\xb0", "i",
                                        "I",        "\xcf\x82", "\xcf\x83", "\xce\xa3"};
    const size_t n = sizeof(names) / sizeof(names[0]);

    for (size_t i = 0; i < n; i++) {
        px_put(names[i], names[i], strlen(names[i]));
    }
    for (size_t i = 0; i < n; i++) {
        PX_CHECK(px_holds(names[i], names[i], strlen(names[i])));
        PX_CHECK(listed(names[i]));
        PX_OK(unlink(names[i]));
        PX_CHECK(!px_exists(names[i]));
    }
}

static void a_rename_of_case_only(void)
{
    px_put("Report.TXT", "abc", 3);
    PX_OK(rename("Report.TXT", "report.txt"));
    PX_CHECK(listed("report.txt") && !listed("Report.TXT"));
}

PX_GROUP(names, T(longest), T(too_long), T(any_bytes), T(different_bytes_are_different_names),
         T(a_rename_of_case_only));

static void plausible(void)
{
    struct statvfs v, w;
    int fd;

    PX_OK(statvfs(".", &v));
    PX_CHECK(v.f_bsize >= 512 && v.f_frsize >= 512 && v.f_frsize <= 16 * MI);
    PX_CHECK(v.f_blocks > 0 && v.f_bfree <= v.f_blocks && v.f_bavail <= v.f_bfree);
    PX_CHECK(v.f_files == 0 || v.f_ffree <= v.f_files);
    PX_EQ(v.f_namemax, 255);
    PX_CHECK(!(v.f_flag & ST_RDONLY));
    fd = (int)PX_OK(open(".", O_RDONLY));
    PX_OK(fstatvfs(fd, &w));
    PX_OK(close(fd));
    PX_EQ(v.f_blocks, w.f_blocks);
    PX_EQ(v.f_fsid, w.f_fsid);
    PX_EQ(PX_OK(pathconf(".", _PC_NAME_MAX)), 255);
    PX_CHECK(PX_OK(pathconf(".", _PC_LINK_MAX)) >= 8);
}

static void of_users(void)
{
    struct statvfs v;

    px_user(U1, G1);
    PX_OK(statvfs(".", &v));
    PX_CHECK(v.f_blocks > 0);
}

static void one_device(void)
{
    struct stat a, b;

    px_file("f", 0644);
    px_dir("d", 0755);
    px_file("d/f", 0644);
    a = px_stat("f");
    b = px_stat("d/f");
    PX_EQ(a.st_dev, b.st_dev);
    PX_CHECK(a.st_ino != b.st_ino);
    PX_CHECK(a.st_blksize >= 512);
}

static void blocks_are_counted(void)
{
    static char buf[1000000];
    struct stat st;
    int fd;

    px_fill(1, 0, buf, sizeof(buf));
    px_put("f", buf, sizeof(buf));
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_OK(fsync(fd));
    PX_OK(close(fd));
    st = px_stat("f");
    PX_CHECK(st.st_blocks * 512 >= 1000000 && st.st_blocks * 512 < 3000000);
    px_file("empty", 0644);
    PX_CHECK(px_stat("empty").st_blocks < 100);
}

PX_GROUP(statvfs, T(plausible), T(of_users), T(one_device), T(blocks_are_counted));

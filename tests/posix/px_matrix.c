/* SPDX-License-Identifier: Apache-2.0
 *
 * Each path call with each errno that every path can have: POSIX.1-2017 volume 2, the ERRORS of the
 * calls, and 4.13 Pathname Resolution. A failing call must also have changed nothing: the directory
 * is looked at before and after.
 */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>

#include "px.h"

/* Names, modes, sizes, owners and change times of all that is here, as one number. */
static uint64_t digest(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    uint64_t sum = 0;

    PX_CHECK(d != NULL);
    while (d != NULL && (e = readdir(d)) != NULL) {
        char path[PATH_MAX];
        struct stat st;
        uint64_t h = 0xcbf29ce484222325u;

        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, "..") == 0 || lstat(path, &st) != 0) {
            continue;
        }
        for (const char *c = e->d_name; *c != '\0'; c++) {
            h = (h ^ (uint8_t)*c) * 0x100000001b3u;
        }
        h = (h ^ st.st_ino) * 0x100000001b3u;
        h = (h ^ st.st_mode) * 0x100000001b3u;
        h = (h ^ st.st_nlink) * 0x100000001b3u;
        h = (h ^ st.st_uid) * 0x100000001b3u;
        h = (h ^ (uint64_t)st.st_size) * 0x100000001b3u;
        h = (h ^ (uint64_t)st.st_mtim.tv_nsec) * 0x100000001b3u;
        h = (h ^ (uint64_t)st.st_ctim.tv_nsec) * 0x100000001b3u;
        sum += h;
    }
    if (d != NULL) {
        closedir(d);
    }
    return sum;
}

static void refuses(const struct px_call *c, const char *path, int e1, int e2)
{
    uint64_t before = digest(".");

    errno = 0;
    px_err(PX_AT, c->name, c->fn(path), e1, e2);
    if (digest(".") != before) {
        PX_FAIL("%s of %.60s failed and changed something", c->name, path);
    }
}

/* ---- one function per errno ---- */

static void no_entry(const struct px_call *c)
{
    PX_OK(symlink("nowhere", "dangling"));
    refuses(c, "none/x", ENOENT, ENOENT);
    refuses(c, "dangling/x", ENOENT, ENOENT);
    refuses(c, "", ENOENT, ENOENT);
    if (!(c->flags & PX_MAKES)) {
        refuses(c, "none", ENOENT, ENOENT);
        if (c->flags & PX_FOLLOWS) {
            refuses(c, "dangling", ENOENT, ENOENT);
        }
    }
}

static void not_a_directory(const struct px_call *c)
{
    PX_OK(mkfifo("fifo", 0666));
    PX_OK(symlink("fifo", "to_fifo"));
    refuses(c, "other/x", ENOTDIR, ENOTDIR);
    refuses(c, "fifo/x", ENOTDIR, ENOTDIR);
    refuses(c, "to_fifo/x", ENOTDIR, ENOTDIR);
    refuses(c, "other/../other", ENOTDIR, ENOTDIR);
    if (!(c->flags & PX_MAKES)) {
        refuses(c, "other/", ENOTDIR, ENOTDIR);
    }
    if (c->flags & PX_DIR) {
        refuses(c, "other", ENOTDIR, ENOTDIR);
        refuses(c, "fifo", ENOTDIR, ENOTDIR);
    }
}

static void name_too_long(const struct px_call *c)
{
    char name[302];

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    refuses(c, name, ENAMETOOLONG, ENAMETOOLONG);
    name[256] = '/';
    name[257] = 'x';
    name[258] = '\0';
    refuses(c, name, ENAMETOOLONG, ENAMETOOLONG);
}

static void path_too_long(const struct px_call *c)
{
    static char path[PATH_MAX + 8];

    for (size_t i = 0; i < PATH_MAX; i += 2) {
        memcpy(path + i, "./", 2);
    }
    path[PATH_MAX] = 'x';
    refuses(c, path, ENAMETOOLONG, ENAMETOOLONG);
    memcpy(path + PATH_MAX - 1, "x", 2); /* PATH_MAX bytes without the NUL: one too many */
    refuses(c, path, ENAMETOOLONG, ENAMETOOLONG);
}

static void search_denied(const struct px_call *c)
{
    px_dir("locked", 0766); /* all but search for others */
    px_dir("locked/sub", 0777);
    px_file("locked/x", 0777);
    px_own("locked/x", U1, G1);
    px_own("other", U1, G1);
    px_user(U1, G1);
    refuses(c, "locked/x", EACCES, EACCES);
    refuses(c, "locked/none", EACCES, EACCES);
    refuses(c, "locked/sub/x", EACCES, EACCES);
    px_root();
    PX_OK(chmod("locked", 0677)); /* now for the owner of what is in it, not for its own */
    px_own("locked", U1, G1);
    PX_OK(chmod("locked", 0677));
    px_user(U1, G1);
    refuses(c, "locked/x", EACCES, EACCES);
}

static void loops(const struct px_call *c)
{
    PX_OK(symlink("self", "self"));
    PX_OK(symlink("b", "a"));
    PX_OK(symlink("a", "b"));
    refuses(c, "self/x", ELOOP, ELOOP);
    refuses(c, "a/x", ELOOP, ELOOP);
    if (c->flags & PX_FOLLOWS) {
        refuses(c, "self", ELOOP, ELOOP);
        refuses(c, "b", ELOOP, ELOOP);
    }
}

static void bad_pointer(const struct px_call *c)
{
    refuses(c, px_bad_pointer(), EFAULT, EFAULT);
}

static void write_denied(const struct px_call *c)
{
    px_dir("sub", 0755);
    px_own("other", U1, G1);
    if (c->flags & PX_DIR) {
        px_dir("sub/x", 0755);
    } else if (!(c->flags & PX_MAKES)) {
        px_file("sub/x", 0666);
    }
    if (px_exists("sub/x")) {
        px_own("sub/x", U1, G1);
    }
    px_user(U1, G1);
    refuses(c, "sub/x", EACCES, EACCES);
    px_root();
    px_own("sub", U1, G1);
    PX_OK(chmod("sub", 0577));
    px_user(U1, G1);
    refuses(c, "sub/x", EACCES, EACCES);
}

static void read_only_in(void *arg)
{
    const struct px_call *c = arg;
    const char *path = c->flags & PX_MAKES ? "made" : c->flags & PX_DIR ? "empty" : "victim";

    if (unshare(CLONE_NEWNS) != 0) {
        PX_FAIL("no mount namespace of the case's own: %s", px_errno_name(errno));
        return;
    }
    PX_OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    PX_OK(mount("ro", "ro", NULL, MS_BIND, NULL));
    PX_OK(mount(NULL, "ro", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
    PX_OK(chdir("ro"));
    refuses(c, path, EROFS, EROFS);
    PX_OK(chdir(".."));
    PX_OK(umount2("ro", MNT_DETACH));
}

static void read_only(const struct px_call *c)
{
    struct px_call copy = *c;

    px_dir("ro", 0777);
    px_dir("ro/empty", 0777);
    px_file("ro/victim", 0666);
    px_file("ro/other", 0666);
    px_in_child(read_only_in, &copy);
}

static void is_there(const struct px_call *c)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        refuses(c, px_zoo_names[i], EEXIST, EEXIST);
    }
    refuses(c, ".", EEXIST, EEXIST);
    refuses(c, "dir/..", EEXIST, EEXIST);
    refuses(c, "/", EEXIST, EEXIST);
}

static void link_chain(const struct px_call *c)
{
    char name[16], to[16] = "dir";

    px_dir("dir", 0777);
    if (!(c->flags & PX_MAKES)) {
        if (c->flags & PX_DIR) {
            px_dir("dir/x", 0777);
        } else {
            px_file("dir/x", 0666);
        }
    }
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        PX_OK(symlink(to, name));
        memcpy(to, name, sizeof(to));
    }
    refuses(c, "c41/x", ELOOP, ELOOP); /* Linux follows 40 */
    errno = 0;
    if (c->fn("c40/x") != 0 && errno == ELOOP) {
        PX_FAIL("%s follows fewer than 40 links", c->name);
    }
}

/* ---- which go with which ---- */

static const struct column {
    const char *name;
    void (*fn)(const struct px_call *c);
    unsigned only; /* all of these flags */
} columns[] = {
    {"ENOENT", no_entry, 0},
    {"ENOTDIR", not_a_directory, 0},
    {"ENAMETOOLONG_name", name_too_long, 0},
    {"ENAMETOOLONG_path", path_too_long, 0},
    {"EACCES_search", search_denied, 0},
    {"ELOOP", loops, 0},
    {"ELOOP_chain", link_chain, 0},
    {"EFAULT", bad_pointer, 0},
    {"EACCES_write", write_denied, PX_PARENT},
    {"EROFS", read_only, PX_CHANGES},
    {"EEXIST", is_there, PX_MAKES},
};
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool fits(size_t cell)
{
    const struct px_call *c = &px_calls[cell / NCOLUMNS];
    const struct column *col = &columns[cell % NCOLUMNS];

    if ((c->flags & col->only) != col->only) {
        return false;
    }
    if (col->fn == is_there) { /* what is there is taken by these: files of their own see to it */
        return strcmp(c->name, "rename_to") != 0 && strcmp(c->name, "open_creat") != 0;
    }
    return true;
}

static size_t cell_of(size_t i)
{
    size_t cell = 0;

    for (;; cell++) {
        if (fits(cell) && i-- == 0) {
            return cell;
        }
    }
}

size_t px_matrix_count(void)
{
    size_t n = 0;

    for (size_t cell = 0; cell < px_ncalls * NCOLUMNS; cell++) {
        n += fits(cell);
    }
    return n;
}

void px_matrix_name(size_t i, char *buf, size_t room)
{
    size_t cell = cell_of(i);

    snprintf(buf, room, "%s.%s", px_calls[cell / NCOLUMNS].name, columns[cell % NCOLUMNS].name);
}

void px_matrix_run(size_t i)
{
    size_t cell = cell_of(i);

    px_file("other", 0777);
    columns[cell % NCOLUMNS].fn(&px_calls[cell / NCOLUMNS]);
}

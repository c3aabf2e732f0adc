/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths, component by component on the calling thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs_priv.h"

#define PATH_BYTES 4096 /* with the NUL */
#define NAME_BYTES 256
#define LINKS_MAX  40u

struct walk {
    struct hf_fs *fs;
    const struct hf_user *u;
    struct hf_handle dir; /* where `rest` starts */
    char buf[2][PATH_BYTES];
    unsigned which; /* the buffer that rest points into */
    char *rest;
    unsigned links;
    char name[NAME_BYTES]; /* the component taken last */
    bool slash;            /* it was followed by a slash */
};

static int start(struct walk *w, struct hf_fs *fs, const struct hf_user *u, const char *path)
{
    size_t n = strnlen(path, PATH_BYTES);

    if (n == 0)
        return -ENOENT;
    if (n == PATH_BYTES)
        return -ENAMETOOLONG;
    w->fs = fs;
    w->u = u;
    w->dir = hf_root(fs);
    w->which = 0;
    w->links = 0;
    memcpy(w->buf[0], path, n + 1);
    w->rest = w->buf[0];
    return 0;
}

/* The next component to w->name; 0: there is none, 1: there is one, or an error. */
static int next(struct walk *w)
{
    size_t n;

    while (*w->rest == '/')
        w->rest++;
    n = strcspn(w->rest, "/");
    if (n == 0)
        return 0;
    if (n >= NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(w->name, w->rest, n);
    w->name[n] = '\0';
    w->rest += n;
    w->slash = *w->rest == '/';
    return 1;
}

static bool is_last(const struct walk *w)
{
    return w->rest[strspn(w->rest, "/")] == '\0';
}

/* The link's target comes before what is left. */
static int follow(struct walk *w, struct hf_handle link)
{
    char *to = w->buf[1 - w->which];
    size_t left = strlen(w->rest) + 1;
    ssize_t n;

    if (++w->links > LINKS_MAX)
        return -ELOOP;
    n = hf_readlink(w->fs, w->u, link, to, PATH_BYTES);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return -ENOENT;
    if ((size_t)n + left > PATH_BYTES)
        return -ENAMETOOLONG;
    memcpy(to + n, w->rest, left);
    w->which = 1 - w->which;
    w->rest = to;
    if (*to == '/')
        w->dir = hf_root(w->fs);
    return 0;
}

/* Goes on to the end. at_link: a link at the very end is taken as it is. */
static int walk(struct walk *w, bool at_link, struct hf_attr *ret)
{
    bool any = false;
    int rc;

    while ((rc = next(w)) == 1) {
        bool last = is_last(w);

        rc = hf_lookup(w->fs, w->u, w->dir, w->name, ret);
        if (rc)
            return rc;
        any = true;
        if (S_ISLNK(ret->mode) && !(last && at_link && !w->slash)) {
            rc = follow(w, ret->handle);
            if (rc)
                return rc;
            any = false;
            continue;
        }
        if (!S_ISDIR(ret->mode) && (!last || w->slash))
            return -ENOTDIR;
        w->dir = ret->handle;
    }
    if (rc == 0 && !any)
        rc = hf_getattr(w->fs, w->dir, ret);
    return rc;
}

static struct walk *walk_new(void)
{
    return malloc(sizeof(struct walk));
}

int hf_path_lookup(struct hf_fs *fs, const struct hf_user *u, const char *path, bool follow_last,
                   struct hf_attr *ret)
{
    struct walk *w = walk_new();
    struct hf_attr a;
    int rc = w ? start(w, fs, u, path) : -ENOMEM;

    if (rc == 0)
        rc = walk(w, !follow_last, &a);
    if (rc == 0)
        *ret = a;
    free(w);
    return rc;
}

/* Cuts the last component off; *ret_at is where it begins. */
static int split(struct walk *w, size_t *ret_at)
{
    char *path = w->rest;
    size_t end = strlen(path), at;

    while (end > 0 && path[end - 1] == '/')
        end--;
    if (end == 0)
        return -EINVAL;
    for (at = end; at > 0 && path[at - 1] != '/';)
        at--;
    if (end - at >= NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(w->name, path + at, end - at);
    w->name[end - at] = '\0';
    w->slash = path[end] == '/';
    path[at] = '\0';
    *ret_at = at;
    return 0;
}

/* The directory of w->name in w->dir. */
static int parent(struct walk *w, size_t *ret_at)
{
    struct hf_attr a;
    char name[NAME_BYTES];
    bool slash;
    int rc = split(w, ret_at);

    if (rc)
        return rc;
    memcpy(name, w->name, sizeof(name));
    slash = w->slash;
    rc = walk(w, false, &a);
    if (rc == 0 && !S_ISDIR(a.mode))
        rc = -ENOTDIR;
    if (rc)
        return rc;
    w->dir = a.handle;
    memcpy(w->name, name, sizeof(name));
    w->slash = slash;
    return 0;
}

int hf_path_parent(struct hf_fs *fs, const struct hf_user *u, const char *path,
                   struct hf_handle *ret_dir, const char **ret_name)
{
    struct walk *w = walk_new();
    size_t at = 0;
    int rc = w ? start(w, fs, u, path) : -ENOMEM;

    if (rc == 0)
        rc = parent(w, &at);
    if (rc == 0) {
        *ret_dir = w->dir;
        *ret_name = path + at;
    }
    free(w);
    return rc;
}

static int open_found(struct hf_fs *fs, const struct hf_user *u, const struct hf_attr *a, int flags,
                      struct hf_file **ret)
{
    if (S_ISLNK(a->mode))
        return -ELOOP; /* O_NOFOLLOW */
    if ((flags & O_DIRECTORY) && !S_ISDIR(a->mode))
        return -ENOTDIR;
    if (S_ISDIR(a->mode) && ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC))))
        return -EISDIR;
    return hf_open(fs, u, a->handle, flags, ret);
}

/* Opens w->name in w->dir, making it if it is not there. 1: it is a link, w goes on at its target.
 */
static int open_or_create(struct walk *w, int flags, mode_t mode, struct hf_file **ret)
{
    struct hf_attr a;
    int rc;

    for (unsigned tries = 0;; tries++) {
        rc = hf_lookup(w->fs, w->u, w->dir, w->name, &a);
        if (rc == 0 && (flags & O_EXCL))
            return -EEXIST;
        if (rc == 0 && S_ISLNK(a.mode) && !(flags & O_NOFOLLOW)) {
            w->rest = w->buf[w->which] + PATH_BYTES - 1; /* nothing is left behind it */
            *w->rest = '\0';
            rc = follow(w, a.handle);
            return rc ? rc : 1;
        }
        if (rc == 0) {
            rc = open_found(w->fs, w->u, &a, flags, ret);
            if (rc != -ESTALE || tries >= LINKS_MAX)
                return rc;
            continue; /* removed in between */
        }
        if (rc != -ENOENT)
            return rc;
        if (w->slash)
            return -EISDIR;
        rc = hf_create(w->fs, w->u, w->dir, w->name, flags | O_EXCL, mode, 0, ret, NULL);
        if (rc != -EEXIST || (flags & O_EXCL) || tries >= LINKS_MAX)
            return rc;
    }
}

int hf_path_open(struct hf_fs *fs, const struct hf_user *u, const char *path, int flags,
                 mode_t mode, struct hf_file **ret)
{
    struct walk *w = walk_new();
    struct hf_attr a;
    size_t at;
    int rc = w ? start(w, fs, u, path) : -ENOMEM;

    if (rc == 0 && !(flags & O_CREAT)) {
        rc = walk(w, flags & O_NOFOLLOW, &a);
        if (rc == 0)
            rc = open_found(fs, u, &a, flags, ret);
    } else if (rc == 0) {
        do {
            rc = parent(w, &at);
            if (rc == 0)
                rc = open_or_create(w, flags, mode, ret);
        } while (rc == 1);
        if (rc == -EINVAL)
            rc = -EISDIR; /* "/" */
    }
    free(w);
    return rc;
}

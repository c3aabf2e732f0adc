/* SPDX-License-Identifier: Apache-2.0
 *
 * Which errors apply to an operation. Where several do, any of them is right: POSIX does not order
 * its checks.
 */
#include "model_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "holdfast/holdfast.h"

enum { R = 4, W = 2, X = 1 };

void errors_add(struct errors *s, int e)
{
    if (!errors_has(s, e) && s->n < sizeof(s->e) / sizeof(s->e[0]))
        s->e[s->n++] = e;
}

bool errors_has(const struct errors *s, int e)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->e[i] == e)
            return true;
    return false;
}

static bool may_do(const struct object *o, const struct user *u, unsigned bits)
{
    unsigned granted = o->mode & 7;

    if (u->uid == 0)
        granted = R | W | (o->type == S_IFDIR || (o->mode & 0111) ? X : 0);
    else if (u->uid == o->uid)
        granted = o->mode >> 6 & 7;
    else if (user_in_group(u, o->gid))
        granted = o->mode >> 3 & 7;
    return (granted & bits) == bits;
}

bool resolve(const struct model *m, const struct user *u, const struct path *p, struct at *ret,
             struct errors *e)
{
    struct object *o = m->root;

    for (unsigned i = 0; i < p->n; i++) {
        unsigned before = e->n, name = p->name[i];

        if (o->type != S_IFDIR)
            errors_add(e, ENOTDIR);
        if (name == NAMES - 1)
            errors_add(e, ENAMETOOLONG);
        if (o->type == S_IFDIR && !may_do(o, u, X))
            errors_add(e, EACCES);
        *ret =
            (struct at){.dir = o, .obj = o->type == S_IFDIR ? o->child[name] : NULL, .name = name};
        if (e->n > before)
            return false;
        o = ret->obj;
        if (!o && i + 1 < p->n) {
            errors_add(e, ENOENT);
            return false;
        }
    }
    return true;
}

static void need(const struct object *o, const struct user *u, unsigned bits, struct errors *e)
{
    if (!may_do(o, u, bits))
        errors_add(e, EACCES);
}

static void sticky(const struct object *dir, const struct object *victim, const struct user *u,
                   struct errors *e)
{
    if ((dir->mode & S_ISVTX) && u->uid != 0 && u->uid != dir->uid && u->uid != victim->uid) {
        errors_add(e, EPERM);
        errors_add(e, EACCES);
    }
}

static bool is_empty(const struct object *dir)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (dir->child[i])
            return false;
    return true;
}

static bool inside(const struct object *dir, const struct object *top)
{
    for (;; dir = dir->parent) {
        if (dir == top)
            return true;
        if (dir == dir->parent)
            return false;
    }
}

/* ---- the operations ---- */

static void check_create(const struct at *at, const struct user *u, const struct op *op,
                         struct errors *must, struct errors *may)
{
    static const int no_file[] = {EEXIST, ELOOP, EINVAL, ENXIO, EOPNOTSUPP, EACCES};

    if (!at->obj) {
        need(at->dir, u, W, must);
    } else if (op->kind != OP_CREATE || (op->flags & O_EXCL)) {
        errors_add(must, EEXIST);
        need(at->dir, u, W, may);
    } else if (at->obj->type == S_IFREG) {
        need(at->obj, u, R | W, must);
    } else if (at->obj->type == S_IFDIR) {
        errors_add(must, EISDIR);
        errors_add(may, EEXIST);
        errors_add(may, EACCES);
    } else {
        for (unsigned i = 0; i < sizeof(no_file) / sizeof(no_file[0]); i++)
            errors_add(must, no_file[i]);
    }
}

static void check_remove(const struct at *at, const struct user *u, const struct op *op,
                         struct errors *must)
{
    bool dir = at->obj && at->obj->type == S_IFDIR;

    need(at->dir, u, W, must);
    if (!at->obj) {
        errors_add(must, ENOENT);
        return;
    }
    sticky(at->dir, at->obj, u, must);
    if (op->kind == OP_UNLINK && dir) {
        errors_add(must, EISDIR);
        errors_add(must, EPERM);
    } else if (op->kind == OP_RMDIR && !dir) {
        errors_add(must, ENOTDIR);
    } else if (op->kind == OP_RMDIR && !is_empty(at->obj)) {
        errors_add(must, ENOTEMPTY);
        errors_add(must, EEXIST);
    }
}

static void check_link(const struct model *m, const struct at *at, const struct user *u,
                       const struct op *op, struct errors *must)
{
    struct at to;

    if (at->obj->type == S_IFDIR)
        errors_add(must, EPERM);
    if (!resolve(m, u, &op->to, &to, must))
        return;
    if (to.obj)
        errors_add(must, EEXIST);
    need(to.dir, u, W, must);
}

/* Taking the place of what is there. */
static void check_replace(const struct at *from, const struct at *to, const struct user *u,
                          struct errors *must, struct errors *may)
{
    bool from_dir = from->obj->type == S_IFDIR, to_dir = to->obj->type == S_IFDIR;

    sticky(to->dir, to->obj, u, must);
    if (from_dir && !to_dir)
        errors_add(must, ENOTDIR);
    if (!from_dir && to_dir) {
        errors_add(must, EISDIR);
        errors_add(may, EEXIST);
        errors_add(may, ENOTEMPTY);
    }
    if (to_dir && !is_empty(to->obj)) {
        errors_add(must, ENOTEMPTY);
        errors_add(must, EEXIST);
        if (inside(from->dir, to->obj))
            errors_add(may, EINVAL);
    }
}

/* Its ".." changes. */
static void check_move(const struct at *from, const struct at *to, const struct user *u,
                       struct errors *must, struct errors *may)
{
    if (from->obj->type != S_IFDIR)
        return;
    if (inside(to->dir, from->obj))
        errors_add(must, EINVAL);
    if (from->dir != to->dir)
        need(from->obj, u, W, may);
}

static void check_rename(const struct model *m, const struct at *from, const struct user *u,
                         const struct op *op, struct errors *must, struct errors *may)
{
    bool exchange = op->flags & HF_RENAME_EXCHANGE;
    struct at to;

    if (!from->obj)
        errors_add(must, ENOENT);
    if (!resolve(m, u, &op->to, &to, must))
        return;
    if (from->obj && to.obj == from->obj) { /* two names of one object: nothing to do */
        if (op->flags & HF_RENAME_NOREPLACE)
            errors_add(must, EEXIST);
        need(from->dir, u, W, may);
        need(to.dir, u, W, may);
        sticky(from->dir, from->obj, u, may);
        sticky(to.dir, to.obj, u, may);
        return;
    }
    need(from->dir, u, W, must);
    need(to.dir, u, W, must);
    if (!to.obj && exchange)
        errors_add(must, ENOENT);
    if (to.obj && (op->flags & HF_RENAME_NOREPLACE))
        errors_add(must, EEXIST);
    if (!from->obj)
        return;
    sticky(from->dir, from->obj, u, must);
    check_move(from, &to, u, must, may);
    if (to.obj && exchange) {
        sticky(to.dir, to.obj, u, must);
        check_move(&to, from, u, must, may);
    } else if (to.obj && !(op->flags & HF_RENAME_NOREPLACE)) {
        check_replace(from, &to, u, must, may);
    }
}

static void check_chown(const struct object *o, const struct user *u, const struct op *op,
                        struct errors *must, struct errors *may)
{
    bool uid = op->uid != UINT32_MAX, gid = op->gid != UINT32_MAX;
    bool same = (!uid || op->uid == o->uid) && (!gid || op->gid == o->gid);

    if (u->uid == 0 || (!uid && !gid))
        return;
    if (u->uid != o->uid)
        errors_add(same ? may : must, EPERM);
    else if ((uid && op->uid != o->uid) || (gid && op->gid != o->gid && !user_in_group(u, op->gid)))
        errors_add(must, EPERM);
}

static void check_xattr(const struct object *o, const struct user *u, const struct op *op,
                        struct errors *must, struct errors *may)
{
    bool get = op->kind == OP_GETXATTR;

    if (o->type != S_IFREG && o->type != S_IFDIR) {
        errors_add(must, EPERM);
        errors_add(must, EACCES);
        errors_add(must, get || op->kind == OP_REMOVEXATTR ? ENODATA : EPERM);
        return;
    }
    need(o, u, get ? R : W, must);
    if (!get && o->type == S_IFDIR && (o->mode & S_ISVTX) && u->uid != 0 && u->uid != o->uid)
        errors_add(must, EPERM);
    if (op->kind == OP_SETXATTR && (op->flags & XATTR_CREATE) && o->xattr[op->xattr].set)
        errors_add(must, EEXIST);
    if ((op->kind != OP_SETXATTR || (op->flags & XATTR_REPLACE)) && !o->xattr[op->xattr].set)
        errors_add(must, ENODATA);
    (void)may;
}

static void check_object(const struct object *o, const struct user *u, const struct op *op,
                         struct errors *must, struct errors *may)
{
    switch (op->kind) {
    case OP_CHMOD:
        if (u->uid != 0 && u->uid != o->uid)
            errors_add(must, EPERM);
        if (o->type == S_IFLNK)
            errors_add(may, EOPNOTSUPP);
        break;
    case OP_CHOWN:
        check_chown(o, u, op, must, may);
        break;
    case OP_TRUNCATE:
        need(o, u, W, must);
        if (o->type != S_IFREG)
            errors_add(must, EINVAL);
        if (o->type == S_IFDIR)
            errors_add(must, EISDIR);
        break;
    case OP_OPEN: /* the system's side opens nothing else */
        if (o->type != S_IFREG)
            errors_add(must, EINVAL);
        else
            need(o, u,
                 (op->flags & O_ACCMODE) == O_RDONLY   ? R
                 : (op->flags & O_ACCMODE) == O_WRONLY ? W
                                                       : R | W,
                 must);
        break;
    case OP_READDIR:
        if (o->type != S_IFDIR)
            errors_add(must, ENOTDIR);
        need(o, u, R, must);
        break;
    case OP_ACCESS:
        need(o, u, op->mode, must);
        if (o->type != S_IFREG && o->type != S_IFDIR && (op->mode & X))
            errors_add(may, EACCES); /* nothing to execute */
        break;
    case OP_SETXATTR:
    case OP_GETXATTR:
    case OP_REMOVEXATTR:
        check_xattr(o, u, op, must, may);
        break;
    default:
        break;
    }
}

static void check_slot(const struct slot *s, const struct op *op, struct errors *must)
{
    bool readable = s->obj && (s->flags & O_ACCMODE) != O_WRONLY;
    bool writable = s->obj && (s->flags & O_ACCMODE) != O_RDONLY;

    if (!s->obj)
        return;
    if (op->kind == OP_READ && !readable)
        errors_add(must, EBADF);
    if ((op->kind == OP_WRITE || op->kind == OP_PUNCH) && !writable)
        errors_add(must, EBADF);
    if (op->kind == OP_FTRUNCATE && !writable) {
        errors_add(must, EBADF);
        errors_add(must, EINVAL);
    }
    if (op->kind == OP_PUNCH && op->len == 0)
        errors_add(must, EINVAL);
}

void model_check(const struct model *m, const struct op *op, struct errors *must,
                 struct errors *may)
{
    const struct user *u = &users[op->user];
    struct at at;

    memset(must, 0, sizeof(*must));
    memset(may, 0, sizeof(*may));
    if (op_is_of_slot(op)) {
        check_slot(&m->slot[op->slot], op, must);
        return;
    }
    if (op->kind == OP_OPEN && m->slot[op->slot].obj)
        return;
    if (!resolve(m, u, &op->path, &at, must)) {
        struct at to;

        if (op->kind == OP_LINK || op->kind == OP_RENAME)
            (void)resolve(m, u, &op->to, &to, may); /* the other side's may come first */
        return;
    }
    switch (op->kind) {
    case OP_CREATE:
    case OP_MKDIR:
    case OP_MKNOD:
    case OP_SYMLINK:
        check_create(&at, u, op, must, may);
        break;
    case OP_UNLINK:
    case OP_RMDIR:
        check_remove(&at, u, op, must);
        break;
    case OP_RENAME:
        check_rename(m, &at, u, op, must, may);
        break;
    default:
        if (!at.obj)
            errors_add(must, ENOENT);
        else if (op->kind == OP_LINK)
            check_link(m, &at, u, op, must);
        else
            check_object(at.obj, u, op, must, may);
    }
}

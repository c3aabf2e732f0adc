/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's objects and how they change. Which errors apply is in check.c.
 */
#include "model_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "holdfast/holdfast.h"

static struct object *object_new(uint32_t type, uint32_t mode)
{
    struct object *o = calloc(1, sizeof(*o));

    if (!o)
        abort();
    o->type = type;
    o->mode = mode;
    o->nlink = type == S_IFDIR ? 2 : 1;
    return o;
}

static void object_free(struct object *o)
{
    free(o->data);
    free(o);
}

static void drop_if_unused(struct object *o)
{
    if (o->nlink == 0 && o->opens == 0)
        object_free(o);
}

struct model *model_new(void)
{
    struct model *m = calloc(1, sizeof(*m));

    if (!m)
        abort();
    m->root = object_new(S_IFDIR, 0777);
    m->root->parent = m->root;
    return m;
}

static void tree_free(struct object *o)
{
    for (unsigned i = 0; i < NAMES; i++) {
        struct object *c = o->child[i];

        if (!c)
            continue;
        if (c->type == S_IFDIR)
            tree_free(c);
        else if (--c->nlink == 0)
            drop_if_unused(c);
    }
    object_free(o);
}

void model_free(struct model *m)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct object *o = m->slot[i].obj;

        if (o) {
            o->opens--;
            drop_if_unused(o);
        }
    }
    tree_free(m->root);
    free(m);
}

/* ---- names ---- */

static void attach(struct object *dir, unsigned name, struct object *o)
{
    dir->child[name] = o;
    if (o->type == S_IFDIR) {
        o->parent = dir;
        dir->nlink++;
    }
}

static void detach(struct object *dir, unsigned name)
{
    if (dir->child[name]->type == S_IFDIR)
        dir->nlink--;
    dir->child[name] = NULL;
}

static void unlink_object(struct object *dir, unsigned name)
{
    struct object *o = dir->child[name];

    detach(dir, name);
    o->nlink = o->type == S_IFDIR ? 0 : o->nlink - 1;
    drop_if_unused(o);
}

static struct object *make(struct object *dir, unsigned name, uint32_t type, uint32_t mode,
                           const struct user *u)
{
    struct object *o = object_new(type, mode & 07777);

    o->uid = u->uid;
    o->gid = dir->mode & S_ISGID ? dir->gid : u->gid;
    if ((dir->mode & S_ISGID) && type == S_IFDIR)
        o->mode |= S_ISGID;
    attach(dir, name, o);
    return o;
}

static void rename_object(const struct at *from, const struct at *to, uint32_t flags)
{
    struct object *a = from->obj, *b = to->obj;

    if (a == b)
        return;
    if (flags & HF_RENAME_EXCHANGE) {
        detach(from->dir, from->name);
        detach(to->dir, to->name);
        attach(from->dir, from->name, b);
        attach(to->dir, to->name, a);
        return;
    }
    if (b)
        unlink_object(to->dir, to->name);
    detach(from->dir, from->name);
    attach(to->dir, to->name, a);
}

/* ---- content ---- */

static void resize(struct object *o, uint64_t size)
{
    uint8_t *p = realloc(o->data, size ? size : 1);

    if (!p)
        abort();
    if (size > o->size)
        memset(p + o->size, 0, size - o->size);
    o->data = p;
    o->size = size;
}

static void changed(struct model *m, struct object *o, unsigned client)
{
    o->changed[client] = ++m->seq;
}

static void write_data(struct model *m, const struct slot *s, const struct op *op)
{
    struct object *o = s->obj;
    uint64_t at = s->flags & O_APPEND ? o->size : op->offset;

    if (op->len == 0)
        return;
    if (at + op->len > o->size)
        resize(o, at + op->len);
    for (uint32_t i = 0; i < op->len; i++)
        o->data[at + i] = (uint8_t)(op->fill + i % 251);
    changed(m, o, s->client);
}

static void punch(struct model *m, const struct slot *s, const struct op *op)
{
    struct object *o = s->obj;

    if (op->offset < o->size)
        memset(o->data + op->offset, 0,
               op->len < o->size - op->offset ? op->len : o->size - op->offset);
    changed(m, o, s->client);
}

bool model_stale(const struct model *m, const struct op *op)
{
    const struct slot *s = &m->slot[op->slot];

    for (unsigned c = 0; s->obj && c < CLIENTS; c++)
        if (c != s->client && s->obj->changed[c] > s->since)
            return true;
    return false;
}

/* ---- what is seen ---- */

static void see_attr(const struct object *o, struct seen *ret)
{
    ret->have_attr = true;
    ret->mode = o->type | o->mode;
    ret->nlink = o->nlink;
    ret->uid = o->uid;
    ret->gid = o->gid;
    ret->size = o->type == S_IFREG ? o->size : 0;
}

static void see_entries(const struct object *dir, struct seen *ret)
{
    ret->have_entries = true;
    for (unsigned i = 0; i < NAMES; i++)
        if (dir->child[i])
            ret->entries[ret->nentries++] = (struct seen_entry){(uint8_t)i, dir->child[i]->type};
}

static void see_data(const struct object *o, uint64_t offset, uint32_t len, struct seen *ret)
{
    ret->have_data = true;
    ret->data = o->data ? o->data + (offset < o->size ? offset : o->size) : NULL;
    ret->len = offset >= o->size ? 0 : len < o->size - offset ? len : o->size - offset;
}

/* ---- applying ---- */

static void apply_slot(struct model *m, const struct op *op, struct seen *ret)
{
    struct slot *s = &m->slot[op->slot];

    if (!s->obj)
        return;
    switch (op->kind) {
    case OP_CLOSE:
        s->obj->opens--;
        drop_if_unused(s->obj);
        s->obj = NULL;
        break;
    case OP_WRITE:
        write_data(m, s, op);
        break;
    case OP_READ:
        see_data(s->obj, op->offset, op->len, ret);
        break;
    case OP_FTRUNCATE:
        resize(s->obj, op->len);
        changed(m, s->obj, s->client);
        break;
    case OP_PUNCH:
        punch(m, s, op);
        break;
    default:
        see_attr(s->obj, ret);
    }
}

static void open_slot(struct model *m, const struct op *op, struct object *o)
{
    struct slot *s = &m->slot[op->slot];

    if (op->flags & O_TRUNC) {
        resize(o, 0);
        changed(m, o, op->client);
    }
    *s = (struct slot){.obj = o, .flags = op->flags, .client = op->client, .since = m->seq};
    o->opens++;
}

static void set_mode(struct object *o, uint32_t mode, const struct user *u)
{
    if (u->uid != 0 && !user_in_group(u, o->gid))
        mode &= ~(uint32_t)S_ISGID;
    o->mode = mode;
}

static void apply_xattr(struct object *o, const struct op *op, struct seen *ret)
{
    struct xattr *x = &o->xattr[op->xattr];

    if (op->kind == OP_SETXATTR) {
        x->set = true;
        x->len = op->len;
        memset(x->value, op->fill, op->len);
    } else if (op->kind == OP_REMOVEXATTR) {
        x->set = false;
    } else {
        ret->have_data = true;
        ret->data = x->value;
        ret->len = x->len;
    }
}

static void apply_object(struct model *m, const struct op *op, struct object *o, struct seen *ret)
{
    switch (op->kind) {
    case OP_CHMOD:
        set_mode(o, op->mode, &users[op->user]);
        break;
    case OP_CHOWN:
        o->uid = op->uid == UINT32_MAX ? o->uid : op->uid;
        o->gid = op->gid == UINT32_MAX ? o->gid : op->gid;
        break;
    case OP_TRUNCATE:
        resize(o, op->len);
        changed(m, o, op->client);
        break;
    case OP_OPEN:
        open_slot(m, op, o);
        break;
    case OP_READDIR:
        see_entries(o, ret);
        return;
    case OP_SETXATTR:
    case OP_GETXATTR:
    case OP_REMOVEXATTR:
        apply_xattr(o, op, ret);
        return;
    case OP_ACCESS:
        return;
    default:
        break;
    }
    see_attr(o, ret);
}

static void apply_new(const struct op *op, struct at *at)
{
    static const uint32_t types[OP_KINDS] = {
        [OP_CREATE] = S_IFREG, [OP_MKDIR] = S_IFDIR, [OP_MKNOD] = S_IFIFO, [OP_SYMLINK] = S_IFLNK};

    if (!at->obj)
        at->obj = make(at->dir, at->name, types[op->kind],
                       op->kind == OP_SYMLINK ? 0777 : op->mode & ~(uint32_t)(S_ISUID | S_ISGID),
                       &users[op->user]);
}

void model_apply(struct model *m, const struct op *op, struct seen *ret)
{
    struct errors none = {0};
    struct at at, to;

    memset(ret, 0, sizeof(*ret));
    if (op_is_of_slot(op) || (op->kind == OP_OPEN && m->slot[op->slot].obj)) {
        if (op->kind != OP_OPEN)
            apply_slot(m, op, ret);
        return;
    }
    resolve(m, &users[op->user], &op->path, &at, &none);
    switch (op->kind) {
    case OP_CREATE:
    case OP_MKDIR:
    case OP_MKNOD:
    case OP_SYMLINK:
        apply_new(op, &at);
        see_attr(at.obj, ret);
        break;
    case OP_UNLINK:
    case OP_RMDIR:
        unlink_object(at.dir, at.name);
        break;
    case OP_LINK:
        resolve(m, &users[op->user], &op->to, &to, &none);
        attach(to.dir, to.name, at.obj);
        at.obj->nlink++;
        see_attr(at.obj, ret);
        break;
    case OP_RENAME:
        resolve(m, &users[op->user], &op->to, &to, &none);
        rename_object(&at, &to, op->flags);
        break;
    default:
        apply_object(m, op, at.obj, ret);
    }
}

static int visit(const struct object *dir, struct path *p,
                 int (*fn)(void *arg, const struct path *path, const struct seen *seen), void *arg)
{
    int rc = 0;

    for (unsigned i = 0; i < NAMES && rc == 0 && p->n < DEPTH_MAX; i++) {
        const struct object *o = dir->child[i];
        struct seen seen = {0};

        if (!o)
            continue;
        p->name[p->n++] = (uint8_t)i;
        see_attr(o, &seen);
        if (o->type == S_IFREG)
            see_data(o, 0, UINT32_MAX, &seen);
        else if (o->type == S_IFDIR)
            see_entries(o, &seen);
        rc = fn(arg, p, &seen);
        if (rc == 0 && o->type == S_IFDIR)
            rc = visit(o, p, fn, arg);
        p->n--;
    }
    return rc;
}

int model_visit(const struct model *m,
                int (*fn)(void *arg, const struct path *path, const struct seen *seen), void *arg)
{
    struct path p = {0};

    return visit(m->root, &p, fn, arg);
}

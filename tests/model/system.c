/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations on the system: several clients of libholdfast, and as many users. Paths are walked
 * here, a look-up for each component, as a kernel does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/holdfast.h"
#include "model.h"

#define BUF_BYTES (16u << 20)

struct system {
    struct hf_fs *fs[CLIENTS];
    struct hf_handle dir;
    char name[64];
    unsigned runs;
    struct {
        struct hf_file *file;
        unsigned client;
    } slot[SLOTS];
    uint8_t *buf;
};

static const struct hf_user root_user;

static struct hf_user user_of(const struct op *op)
{
    const struct user *u = &users[op->user];

    return (struct hf_user){
        .uid = u->uid, .gid = u->gid, .ngroups = u->ngroups, .groups = u->groups};
}

int system_new(const char *url, struct system **ret)
{
    struct system *s = calloc(1, sizeof(*s));
    int rc = 0;

    if (!s || !(s->buf = malloc(BUF_BYTES)))
        abort();
    for (unsigned i = 0; i < CLIENTS && rc == 0; i++) {
        char name[16];
        struct hf_fs_opts o = {.struct_size = sizeof(o), .url = url, .name = name};

        (void)snprintf(name, sizeof(name), "model%u", i);
        rc = hf_fs_open(&o, &s->fs[i]);
    }
    *ret = s;
    return rc;
}

void system_free(struct system *s)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        if (s->fs[i])
            (void)hf_fs_close(s->fs[i]);
    free(s->buf);
    free(s);
}

int system_begin(struct system *s)
{
    struct hf_setattr set = {.set = HF_SET_MODE, .mode = 0777};
    struct hf_attr a;
    int rc;

    (void)snprintf(s->name, sizeof(s->name), "model-%d-%u", (int)getpid(), s->runs++);
    rc = hf_mkdir(s->fs[0], &root_user, hf_root(s->fs[0]), s->name, 0777, 0, &a);
    if (rc == 0)
        rc = hf_setattr(s->fs[0], &root_user, a.handle, NULL, &set, &a);
    s->dir = a.handle;
    return rc;
}

/* ---- removing all ---- */

struct listing {
    unsigned n;
    struct {
        char name[256];
        bool dir;
    } e[NAMES + 4];
};

static int collect(void *arg, const struct hf_dirent *e)
{
    struct listing *l = arg;

    if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
        return 0;
    if (l->n == NAMES + 4)
        return -EOVERFLOW;
    (void)snprintf(l->e[l->n].name, sizeof(l->e[l->n].name), "%s", e->name);
    l->e[l->n++].dir = e->type == (S_IFDIR >> 12);
    return 0;
}

/* remove: else only counts */
static int walk(struct system *s, struct hf_handle dir, bool remove, size_t *count)
{
    struct listing *l = calloc(1, sizeof(*l));
    int rc = hf_readdir(s->fs[0], &root_user, dir, 0, collect, l);

    for (unsigned i = 0; i < l->n && rc == 0; i++) {
        struct hf_attr a;

        ++*count;
        if (l->e[i].dir) {
            rc = hf_lookup(s->fs[0], &root_user, dir, l->e[i].name, &a);
            if (rc == 0)
                rc = walk(s, a.handle, remove, count);
            if (rc == 0 && remove)
                rc = hf_rmdir(s->fs[0], &root_user, dir, l->e[i].name);
        } else if (remove) {
            rc = hf_unlink(s->fs[0], &root_user, dir, l->e[i].name);
        }
    }
    free(l);
    return rc;
}

int system_count(struct system *s, size_t *ret)
{
    *ret = 0;
    return walk(s, s->dir, false, ret);
}

int system_end(struct system *s)
{
    size_t n = 0;
    int rc = 0, e;

    for (unsigned i = 0; i < SLOTS; i++) {
        if (!s->slot[i].file)
            continue;
        e = hf_close(s->slot[i].file);
        rc = rc ? rc : e;
        s->slot[i].file = NULL;
    }
    e = walk(s, s->dir, true, &n);
    rc = rc ? rc : e;
    e = hf_rmdir(s->fs[0], &root_user, hf_root(s->fs[0]), s->name);
    return rc ? rc : e;
}

/* ---- operations ---- */

static void see(const struct hf_attr *a, struct seen *ret)
{
    ret->have_attr = true;
    ret->mode = a->mode;
    ret->nlink = a->nlink;
    ret->uid = a->uid;
    ret->gid = a->gid;
    ret->size = S_ISREG(a->mode) ? a->size : 0;
}

static int see_bytes(struct system *s, ssize_t n, struct seen *ret)
{
    if (n < 0)
        return (int)n;
    ret->have_data = true;
    ret->data = s->buf;
    ret->len = (size_t)n;
    return 0;
}

static int parent_of(struct hf_fs *fs, const struct hf_user *u, struct hf_handle top,
                     const struct path *p, struct hf_handle *ret)
{
    struct hf_attr a = {.handle = top};
    int rc = 0;

    for (unsigned i = 0; i + 1 < p->n && rc == 0; i++)
        rc = hf_lookup(fs, u, a.handle, name_text(p->name[i]), &a);
    *ret = a.handle;
    return rc;
}

static int add_entry(void *arg, const struct hf_dirent *e)
{
    struct seen *seen = arg;

    if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
        return 0;
    for (unsigned i = 0; i < NAMES; i++) {
        if (strcmp(name_text(i), e->name) == 0) {
            if (seen->nentries == NAMES)
                return -EOVERFLOW;
            seen->entries[seen->nentries++] = (struct seen_entry){(uint8_t)i, e->type << 12};
            return 0;
        }
    }
    return -EILSEQ;
}

static int list(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir, struct seen *ret)
{
    ret->have_entries = true;
    return hf_readdir(fs, u, dir, 0, add_entry, ret);
}

static int run_open(struct system *s, const struct op *op, const struct hf_user *u,
                    const struct hf_attr *a, struct seen *ret)
{
    struct hf_fs *fs = s->fs[op->client];
    struct hf_attr now;
    int rc;

    if (!S_ISREG(a->mode))
        return -EINVAL; /* see check.c */
    rc = hf_open(fs, u, a->handle, (int)op->flags, &s->slot[op->slot].file);
    if (rc) {
        s->slot[op->slot].file = NULL;
        return rc;
    }
    s->slot[op->slot].client = op->client;
    rc = hf_getattr(fs, a->handle, &now);
    see(&now, ret);
    return rc;
}

static int run_slot(struct system *s, const struct op *op, struct seen *ret)
{
    struct hf_file *f = s->slot[op->slot].file;
    struct hf_fs *fs = s->fs[s->slot[op->slot].client];
    struct hf_setattr set = {.set = HF_SET_SIZE, .size = op->len};
    struct hf_user u = user_of(op);
    struct hf_attr a;
    ssize_t n;
    int rc;

    if (!f)
        return 0;
    switch (op->kind) {
    case OP_CLOSE:
        s->slot[op->slot].file = NULL;
        return hf_close(f);
    case OP_WRITE:
        for (uint32_t i = 0; i < op->len; i++)
            s->buf[i] = (uint8_t)(op->fill + i % 251);
        n = hf_write(f, s->buf, op->len, op->offset);
        if (n < 0)
            return (int)n;
        return (size_t)n == op->len ? hf_flush(f) : -EIO;
    case OP_READ:
        return see_bytes(s, hf_read(f, s->buf, op->len, op->offset), ret);
    case OP_FTRUNCATE:
        rc = hf_setattr(fs, &u, hf_file_handle(f), f, &set, &a);
        if (rc == 0)
            see(&a, ret);
        ret->have_attr = false;
        return rc;
    case OP_PUNCH:
        return hf_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, op->offset, op->len);
    default:
        rc = hf_getattr(fs, hf_file_handle(f), &a);
        if (rc == 0)
            see(&a, ret);
        return rc;
    }
}

static const char *xattr_name(const struct op *op, char buf[16])
{
    (void)snprintf(buf, 16, "user.x%u", op->xattr);
    return buf;
}

static int run_setattr(struct hf_fs *fs, const struct hf_user *u, const struct op *op,
                       struct hf_attr *a)
{
    struct hf_setattr set = {.mode = op->mode, .uid = op->uid, .gid = op->gid, .size = op->len};

    if (op->kind == OP_CHMOD)
        set.set = HF_SET_MODE;
    else if (op->kind == OP_TRUNCATE)
        set.set = HF_SET_SIZE;
    else
        set.set =
            (op->uid != UINT32_MAX ? HF_SET_UID : 0) | (op->gid != UINT32_MAX ? HF_SET_GID : 0);
    return set.set ? hf_setattr(fs, u, a->handle, NULL, &set, a) : 0;
}

static int run_object(struct system *s, const struct op *op, const struct hf_user *u,
                      struct hf_handle dir, struct seen *ret)
{
    struct hf_fs *fs = s->fs[op->client];
    struct hf_handle to;
    struct hf_attr a;
    char name[16];
    int rc = hf_lookup(fs, u, dir, name_text(op->path.name[op->path.n - 1]), &a);

    if (rc)
        return rc;
    switch (op->kind) {
    case OP_LOOKUP:
        break;
    case OP_LINK:
        rc = parent_of(fs, u, s->dir, &op->to, &to);
        if (rc == 0)
            rc = hf_link(fs, u, a.handle, to, name_text(op->to.name[op->to.n - 1]), &a);
        break;
    case OP_OPEN:
        return run_open(s, op, u, &a, ret);
    case OP_READDIR:
        return list(fs, u, a.handle, ret);
    case OP_ACCESS:
        return hf_access(fs, u, a.handle, (int)op->mode);
    case OP_SETXATTR:
        memset(s->buf, op->fill, op->len);
        return hf_setxattr(fs, u, a.handle, xattr_name(op, name), s->buf, op->len, (int)op->flags);
    case OP_GETXATTR:
        return see_bytes(s, hf_getxattr(fs, u, a.handle, xattr_name(op, name), s->buf, BUF_BYTES),
                         ret);
    case OP_REMOVEXATTR:
        return hf_removexattr(fs, u, a.handle, xattr_name(op, name));
    default:
        rc = run_setattr(fs, u, op, &a);
    }
    if (rc == 0)
        see(&a, ret);
    return rc;
}

static int run_name(struct system *s, const struct op *op, const struct hf_user *u,
                    struct hf_handle dir, struct seen *ret)
{
    const char *name = name_text(op->path.name[op->path.n - 1]);
    struct hf_fs *fs = s->fs[op->client];
    struct hf_file *f;
    struct hf_handle to;
    struct hf_attr a;
    int rc, e;

    switch (op->kind) {
    case OP_CREATE:
        rc = hf_create(fs, u, dir, name, (int)(O_RDWR | op->flags),
                       op->mode & ~(uint32_t)(S_ISUID | S_ISGID), 0, &f, &a);
        if (rc == 0) {
            e = hf_close(f);
            rc = rc ? rc : e;
        }
        break;
    case OP_MKDIR:
        rc = hf_mkdir(fs, u, dir, name, op->mode & ~(uint32_t)(S_ISUID | S_ISGID), 0, &a);
        break;
    case OP_MKNOD:
        rc = hf_mknod(fs, u, dir, name, S_IFIFO | (op->mode & ~(uint32_t)(S_ISUID | S_ISGID)), 0, 0,
                      0, &a);
        break;
    case OP_SYMLINK:
        rc = hf_symlink(fs, u, dir, name, "some/target", &a);
        break;
    case OP_UNLINK:
        return hf_unlink(fs, u, dir, name);
    case OP_RMDIR:
        return hf_rmdir(fs, u, dir, name);
    default:
        rc = parent_of(fs, u, s->dir, &op->to, &to);
        if (rc == 0)
            rc = hf_rename(fs, u, dir, name, to, name_text(op->to.name[op->to.n - 1]), op->flags);
        return rc;
    }
    if (rc == 0)
        see(&a, ret);
    return rc;
}

static bool is_name_op(const struct op *op)
{
    return op->kind == OP_CREATE || op->kind == OP_MKDIR || op->kind == OP_MKNOD ||
           op->kind == OP_SYMLINK || op->kind == OP_UNLINK || op->kind == OP_RMDIR ||
           op->kind == OP_RENAME;
}

static bool is_slot_op(const struct op *op)
{
    return op->kind == OP_CLOSE || op->kind == OP_WRITE || op->kind == OP_READ ||
           op->kind == OP_FTRUNCATE || op->kind == OP_PUNCH || op->kind == OP_FSTAT;
}

int system_run(struct system *s, const struct op *op, struct seen *ret)
{
    struct hf_user u = user_of(op);
    struct hf_handle dir;
    int rc;

    memset(ret, 0, sizeof(*ret));
    if (is_slot_op(op))
        return -run_slot(s, op, ret);
    if (op->kind == OP_OPEN && s->slot[op->slot].file)
        return 0;
    rc = parent_of(s->fs[op->client], &u, s->dir, &op->path, &dir);
    if (rc == 0)
        rc = is_name_op(op) ? run_name(s, op, &u, dir, ret) : run_object(s, op, &u, dir, ret);
    return -rc;
}

int system_look(struct system *s, unsigned client, const struct path *p, struct seen *ret)
{
    struct hf_fs *fs = s->fs[client];
    struct hf_handle dir;
    struct hf_file *f;
    struct hf_attr a;
    int rc, e;

    memset(ret, 0, sizeof(*ret));
    rc = parent_of(fs, &root_user, s->dir, p, &dir);
    if (rc == 0)
        rc = hf_lookup(fs, &root_user, dir, name_text(p->name[p->n - 1]), &a);
    if (rc)
        return rc;
    see(&a, ret);
    if (S_ISDIR(a.mode))
        return list(fs, &root_user, a.handle, ret);
    if (!S_ISREG(a.mode))
        return 0;
    rc = hf_open(fs, &root_user, a.handle, O_RDONLY, &f);
    if (rc)
        return rc;
    rc = see_bytes(s, hf_read(f, s->buf, BUF_BYTES, 0), ret);
    e = hf_close(f);
    return rc ? rc : e;
}

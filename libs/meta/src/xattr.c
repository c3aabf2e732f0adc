/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes: GETXATTR, SETXATTR, LISTXATTR, REMOVEXATTR. Who may what is as Linux has it
 * (xattr(7)):
 *
 *   user.*      as the content, and only of regular files and directories; a sticky directory's
 * only by its owner trusted.*   only root, for everybody else they do not exist security.*  read by
 * all, set by root; security.capability goes when somebody writes or owns anew, as setuid does
 *   system.*    the two ACLs (acl.c): read by all, set by the owner
 *   holdfast.allocation  of directories: in the inode's flags, set by the owner
 */
#include "acl.h"

/* A name taken apart. */
struct attr_name {
    uint8_t ns; /* enum hf_xat_ns, or 0: holdfast.allocation */
    struct hf_slice name;
};

static const char *const alloc_names[] = {
    [HF_ALLOC_UNSET] = "",
    [HF_ALLOC_FREE_SPACE] = "free-space",
    [HF_ALLOC_ROUND_ROBIN] = "round-robin",
    [HF_ALLOC_LOCAL] = "local",
};

static bool starts(struct hf_slice s, const char *with)
{
    size_t n = strlen(with);

    return s.len >= n && memcmp(s.data, with, n) == 0;
}

/* RANGE, INVAL, NOTSUPP. */
static int name_parse(struct hf_slice full, struct attr_name *ret)
{
    if (full.len == 0 || full.len > HF_XAT_NAME_MAX)
        return HF_E_RANGE;
    if (memchr(full.data, 0, full.len))
        return HF_E_INVAL;
    *ret = (struct attr_name){0, full};
    if (hf_slice_eq(full, hf_slice_str(HF_XAT_ALLOCATION)))
        return 0;
    for (int k = HF_XAT_USER; k < HF_XAT_NS_END; k++) {
        uint8_t ns = (uint8_t)k;
        size_t n = strlen(hf_xat_prefix(ns));

        if (!starts(full, hf_xat_prefix(ns)))
            continue;
        ret->ns = ns;
        ret->name = hf_slice((const uint8_t *)full.data + n, full.len - n);
        if (ns == HF_XAT_SYSTEM && hf_xat_flag(ns, ret->name) == 0)
            return HF_E_NOTSUPP;
        return ret->name.len ? 0 : HF_E_INVAL;
    }
    return HF_E_NOTSUPP;
}

static bool is_file_or_dir(const struct hf_inode *i)
{
    return i->type == HF__FILE_TYPE__FT_REG || i->type == HF__FILE_TYPE__FT_DIR;
}

static int may_read(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, uint8_t ns)
{
    if (!c)
        return HF_E_ACCES;
    switch (ns) {
    case HF_XAT_USER:
        return is_file_or_dir(i) ? hf_may(m, i, c, HF_R) : HF_E_NODATA;
    case HF_XAT_TRUSTED:
        return hf_cred_is_root(c) ? 0 : HF_E_NODATA;
    case HF_XAT_SYSTEM:
        return i->type == HF__FILE_TYPE__FT_LNK ? HF_E_NOTSUPP : 0;
    default:
        return 0;
    }
}

static int may_set(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, uint8_t ns)
{
    if (!c)
        return HF_E_ACCES;
    switch (ns) {
    case HF_XAT_USER:
        if (!is_file_or_dir(i))
            return HF_E_PERM;
        if (i->type == HF__FILE_TYPE__FT_DIR && (i->mode & 01000) && !hf_cred_owns(c, i))
            return HF_E_PERM;
        return hf_may(m, i, c, HF_W);
    case HF_XAT_TRUSTED:
    case HF_XAT_SECURITY:
        return hf_cred_is_root(c) ? 0 : HF_E_PERM;
    case HF_XAT_SYSTEM:
        if (i->type == HF__FILE_TYPE__FT_LNK)
            return HF_E_NOTSUPP;
        return hf_cred_owns(c, i) ? 0 : HF_E_PERM;
    default:
        if (i->type != HF__FILE_TYPE__FT_DIR)
            return HF_E_NOTDIR;
        return hf_cred_owns(c, i) ? 0 : HF_E_PERM;
    }
}

/* ---- reading ---- */

static int give(struct hf_meta_op *op, struct hf_slice value)
{
    uint8_t *copy;

    if (value.len == 0)
        return 0;
    copy = hf_arena_dup(op->arena, value.data, value.len);
    op->reply_bulk = hf_slice(copy, value.len);
    return copy ? 0 : HF_E_NOMEM;
}

static int get_allocation(struct hf_meta_op *op, const struct hf_inode *i)
{
    enum hf_alloc how = hf_ino_alloc_how(i);

    if (i->type != HF__FILE_TYPE__FT_DIR || how == HF_ALLOC_UNSET)
        return HF_E_NODATA;
    return give(op, hf_slice_str(alloc_names[how]));
}

/* A stored access ACL as it is in force: with the mode's bits. */
static int give_acl(struct hf_meta_op *op, const struct hf_inode *i, struct hf_slice value)
{
    uint8_t *copy = hf_arena_dup(op->arena, value.data, value.len);

    if (!copy)
        return HF_E_NOMEM;
    hf_acl_set_mode(copy, value.len, i->mode);
    op->reply_bulk = hf_slice(copy, value.len);
    return 0;
}

int hf_meta_op_getxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__GetxattrReq *q,
                        Hf__GetxattrRep *p)
{
    struct attr_name n;
    struct hf_xat_row row;
    struct hf_slice value;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r == 0)
        r = name_parse(hf_name(&q->name), &n);
    if (r == 0)
        r = may_read(m, &o.i, q->cred, n.ns);
    if (r)
        return r;
    if (n.ns == 0)
        return get_allocation(op, &o.i);
    r = hf_xat_find(m, &o.i, n.ns, n.name, &row, &value);
    if (r)
        return r;
    if (!row.found)
        return HF_E_NODATA;
    return hf_xat_flag(n.ns, n.name) == HF_INO_ACL ? give_acl(op, &o.i, value) : give(op, value);
}

struct list {
    bool root;
    uint8_t *out; /* NULL: only count */
    size_t len;
};

static void list_add(struct list *l, const char *prefix, struct hf_slice name)
{
    size_t n = strlen(prefix);

    if (l->out) {
        memcpy(l->out + l->len, prefix, n);
        memcpy(l->out + l->len + n, name.data, name.len);
        l->out[l->len + n + name.len] = 0;
    }
    l->len += n + name.len + 1;
}

static int on_list(void *arg, uint8_t ns, const struct hf_xat *x)
{
    struct list *l = arg;

    if (ns != HF_XAT_TRUSTED || l->root)
        list_add(l, hf_xat_prefix(ns), x->name);
    return 0;
}

static int list_all(struct hf_meta *m, const struct hf_inode *i, struct list *l)
{
    l->len = 0;
    if (i->type == HF__FILE_TYPE__FT_DIR && hf_ino_alloc_how(i) != HF_ALLOC_UNSET)
        list_add(l, "", hf_slice_str(HF_XAT_ALLOCATION));
    return hf_xat_each(m, i, on_list, l);
}

int hf_meta_op_listxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__ListxattrReq *q,
                         Hf__ListxattrRep *p)
{
    struct list l = {.root = hf_cred_is_root(q->cred)};
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    if (!q->cred)
        return HF_E_ACCES;
    r = list_all(m, &o.i, &l);
    if (r || l.len == 0)
        return r;
    if (l.len > HF_XAT_LIST_MAX)
        return HF_E_CORRUPT;
    l.out = hf_arena_alloc(op->arena, l.len);
    if (!l.out)
        return HF_E_NOMEM;
    r = list_all(m, &o.i, &l);
    op->reply_bulk = hf_slice(l.out, l.len);
    return r;
}

/* ---- changing ---- */

static int event(struct hf_meta_op *op, const struct hf_inode *i, struct hf_slice full,
                 const Hf__Cred *c)
{
    return hf_event(op, HF__EVENT_OP__EV_XATTR, i, i->parent, full, c);
}

static int save(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o)
{
    hf_touch(&o->i, op->now_ns, false);
    return hf_obj_save(m, o);
}

static int set_plain(struct hf_meta *m, struct hf_meta_op *op, const Hf__SetxattrReq *q,
                     const struct attr_name *n, struct hf_obj *o)
{
    struct hf_xat_row row;
    int r = hf_xat_find(m, &o->i, n->ns, n->name, &row, NULL);

    if (r == 0 && row.found && q->flags == HF__XATTR_FLAG__XA_CREATE)
        r = HF_E_EXIST;
    if (r == 0 && !row.found && q->flags == HF__XATTR_FLAG__XA_REPLACE)
        r = HF_E_NODATA;
    if (r == 0)
        r = hf_xat_prepare(m, op, &o->i, n->ns, n->name, op->bulk, &row);
    if (r == 0)
        r = event(op, &o->i, hf_name(&q->name), q->cred);
    if (r == 0)
        r = hf_xat_put(m, &o->i, &row);
    return r ? r : save(m, op, o);
}

/* The ACL's bits become the mode's. As with chmod, who is not in the group cannot keep setgid. */
static void apply_mode(struct hf_inode *i, const Hf__Cred *c, const struct hf_acl *a)
{
    i->mode = (uint16_t)((i->mode & 07000) | hf_acl_mode(a));
    if (!hf_cred_is_root(c) && !hf_cred_in_group(c, i->gid))
        i->mode = (uint16_t)(i->mode & ~02000u);
}

/* As Linux, without a look at the flags; an ACL without entries removes, whether there is one or
 * not. */
static int set_acl(struct hf_meta *m, struct hf_meta_op *op, struct hf_slice full,
                   const Hf__Cred *c, struct hf_slice blob, const struct attr_name *n,
                   struct hf_obj *o)
{
    bool access = hf_xat_flag(n->ns, n->name) == HF_INO_ACL, store;
    uint8_t *own = NULL;
    struct hf_xat_row row;
    struct hf_acl a;
    int r = hf_acl_parse(blob, &a);

    if (r)
        return r;
    if (!access && o->i.type != HF__FILE_TYPE__FT_DIR)
        return a.blob.len ? HF_E_ACCES : 0;
    store = access ? a.has_mask : a.blob.len != 0;
    r = hf_xat_find(m, &o->i, n->ns, n->name, &row, NULL);
    if (r || (a.blob.len == 0 && !row.found))
        return r;
    if (store && !(own = hf_arena_dup(op->arena, a.blob.data, a.blob.len)))
        return HF_E_NOMEM;
    if (store) {
        hf_acl_normalize(own, a.blob.len);
        r = hf_xat_prepare(m, op, &o->i, n->ns, n->name, hf_slice(own, a.blob.len), &row);
    }
    if (r == 0)
        r = event(op, &o->i, full, c);
    if (r == 0 && store)
        r = hf_xat_put(m, &o->i, &row);
    else if (r == 0 && row.found)
        r = hf_xat_del(m, &o->i, &row);
    if (r)
        return r;
    if (access && a.blob.len)
        apply_mode(&o->i, c, &a);
    return save(m, op, o);
}

static int set_allocation(struct hf_meta *m, struct hf_meta_op *op, struct hf_slice full,
                          const Hf__Cred *c, enum hf_alloc how, struct hf_obj *o)
{
    int r = event(op, &o->i, full, c);

    if (r)
        return r;
    o->i.flags = (o->i.flags & ~HF_INO_ALLOC) | (uint32_t)how << HF_INO_ALLOC_SHIFT;
    return save(m, op, o);
}

static int set_virtual(struct hf_meta *m, struct hf_meta_op *op, const Hf__SetxattrReq *q,
                       struct hf_obj *o)
{
    bool found = hf_ino_alloc_how(&o->i) != HF_ALLOC_UNSET;
    unsigned how = HF_ALLOC_FREE_SPACE;

    while (how <= HF_ALLOC_LOCAL && !hf_slice_eq(op->bulk, hf_slice_str(alloc_names[how])))
        how++;
    if (how > HF_ALLOC_LOCAL)
        return HF_E_INVAL;
    if (found && q->flags == HF__XATTR_FLAG__XA_CREATE)
        return HF_E_EXIST;
    if (!found && q->flags == HF__XATTR_FLAG__XA_REPLACE)
        return HF_E_NODATA;
    return set_allocation(m, op, hf_name(&q->name), q->cred, (enum hf_alloc)how, o);
}

int hf_meta_op_setxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__SetxattrReq *q,
                        Hf__SetxattrRep *p)
{
    struct attr_name n;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r == 0)
        r = name_parse(hf_name(&q->name), &n);
    if (r == 0 && q->flags > HF__XATTR_FLAG__XA_REPLACE)
        r = HF_E_INVAL;
    if (r == 0 && op->bulk.len > HF_XAT_VALUE_MAX)
        r = HF_E_TOOBIG;
    if (r == 0)
        r = may_set(m, &o.i, q->cred, n.ns);
    if (r)
        return r;
    if (n.ns == 0)
        return set_virtual(m, op, q, &o);
    if (n.ns == HF_XAT_SYSTEM)
        return set_acl(m, op, hf_name(&q->name), q->cred, op->bulk, &n, &o);
    return set_plain(m, op, q, &n, &o);
}

static int remove_plain(struct hf_meta *m, struct hf_meta_op *op, const Hf__RemovexattrReq *q,
                        const struct attr_name *n, struct hf_obj *o)
{
    struct hf_xat_row row;
    int r = hf_xat_find(m, &o->i, n->ns, n->name, &row, NULL);

    if (r == 0 && !row.found)
        r = HF_E_NODATA;
    if (r == 0)
        r = event(op, &o->i, hf_name(&q->name), q->cred);
    if (r == 0)
        r = hf_xat_del(m, &o->i, &row);
    return r ? r : save(m, op, o);
}

int hf_meta_op_removexattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__RemovexattrReq *q,
                           Hf__RemovexattrRep *p)
{
    struct attr_name n;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r == 0)
        r = name_parse(hf_name(&q->name), &n);
    if (r == 0)
        r = may_set(m, &o.i, q->cred, n.ns);
    if (r)
        return r;
    if (n.ns == HF_XAT_SYSTEM)
        return set_acl(m, op, hf_name(&q->name), q->cred, hf_slice(NULL, 0), &n, &o);
    if (n.ns)
        return remove_plain(m, op, q, &n, &o);
    if (hf_ino_alloc_how(&o.i) == HF_ALLOC_UNSET)
        return HF_E_NODATA;
    return set_allocation(m, op, hf_name(&q->name), q->cred, HF_ALLOC_UNSET, &o);
}

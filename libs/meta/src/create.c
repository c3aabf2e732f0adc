/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that make an object: CREATE (RFC 1813 3.3.8) and MKDIR, SYMLINK, MKNOD (3.3.9
 * to 3.3.11).
 */
#include "acl.h"
#include "holdfast/assert.h"

static const Hf__SetAttrs no_attrs = HF__SET_ATTRS__INIT;

/* Owner, group and mode of a new object in dir. A setgid directory hands on its group, and to
 * directories the bit itself. Only root gives objects away: others' uid and gid are ignored, as
 * clients send along what they believe the result will be. */
static void set_owner(struct hf_inode *i, const struct hf_inode *dir, const Hf__Cred *c,
                      const Hf__SetAttrs *s, uint32_t default_mode)
{
    uint32_t mode = s->set_mode ? s->mode & 07777 : default_mode;
    bool root = hf_cred_is_root(c);

    i->uid = root && s->set_uid && s->uid != UINT32_MAX ? s->uid : c->uid;
    i->gid = c->gid;
    if (dir->mode & 02000) {
        i->gid = dir->gid;
        if (i->type == HF__FILE_TYPE__FT_DIR)
            mode |= 02000;
    }
    if (root && s->set_gid && s->gid != UINT32_MAX)
        i->gid = s->gid;
    if (i->type != HF__FILE_TYPE__FT_DIR && !root && !hf_cred_in_group(c, i->gid))
        mode &= ~02000u;
    i->mode = (uint16_t)mode;
}

/* Everything else that a new file or directory has from the one that it is made in, and umask. */
static int inherit(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *dir,
                   struct hf_inode *i, uint32_t umask, struct hf_inherit *h)
{
    if (i->type == HF__FILE_TYPE__FT_REG || i->type == HF__FILE_TYPE__FT_DIR)
        i->flags |= dir->flags & HF_INO_ALLOC;
    return hf_inherit_prepare(m, op, dir, i, umask, h);
}

static int check_attrs(const Hf__SetAttrs *s)
{
    if (s->set_atime > HF__SET_TIME__TIME_CLIENT || s->set_mtime > HF__SET_TIME__TIME_CLIENT)
        return HF_E_INVAL;
    return 0;
}

/* The writes that every new object shares: its number, its name, its directory, its ACLs. */
static int commit_new(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *dir,
                      struct hf_obj *o, const struct hf_dent *d, struct hf_slice name,
                      struct hf_inherit *h)
{
    int r = hf_ino_alloc(m, &o->i.ino);

    if (r)
        return r;
    op->event.ino = o->i.ino;
    o->i.parent = dir->i.ino;
    r = hf_dent_put(m, dir->i.ino, d->cookie, o->i.ino, o->i.type, name);
    if (r)
        return r;
    if (o->i.type == HF__FILE_TYPE__FT_DIR)
        dir->i.nlink++;
    hf_touch(&dir->i, op->now_ns, true);
    r = hf_obj_save(m, dir);
    if (r == 0)
        r = hf_inherit_put(m, &o->i, h);
    return r ? r : hf_obj_save(m, o);
}

static int create_new(struct hf_meta *m, struct hf_meta_op *op, const Hf__CreateReq *q,
                      Hf__CreateRep *p, struct hf_obj *dir, const struct hf_dent *d)
{
    const Hf__SetAttrs *s = q->set ? q->set : &no_attrs;
    bool exclusive = q->how == HF__CREATE_HOW__CREATE_EXCLUSIVE, hold = q->open && op->session;
    struct hf_inherit h;
    struct hf_obj o;
    int r = check_attrs(s);

    if (r == 0 && hold)
        r = hf_open_room(m, 0, op->session, &hold);
    if (r == 0)
        r = hf_obj_new(op, HF__FILE_TYPE__FT_REG, &o, &p->obj);
    if (r == 0 && s->set_size)
        r = hf_size_check(&o.i, s->size);
    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_CREATE, &o.i, dir->i.ino, hf_name(&q->name), q->cred);
    if (r == 0) {
        set_owner(&o.i, &dir->i, q->cred, s, 0);
        r = inherit(m, op, &dir->i, &o.i, q->umask, &h);
    }
    if (r) {
        p->obj = NULL;
        return r;
    }
    hf_set_times(&o.i, s, op->now_ns);
    if (exclusive) {
        o.i.flags |= HF_INO_EXCLUSIVE;
        o.i.verf = q->verf;
    }
    if (s->set_size)
        o.i.size = s->size;
    op->event.size = o.i.size;
    p->created = true;
    r = commit_new(m, op, dir, &o, d, hf_name(&q->name), &h);
    return r || !hold ? r : hf_open_put(m, o.i.ino, op->session);
}

static int truncate_existing(struct hf_meta *m, struct hf_meta_op *op, const Hf__CreateReq *q,
                             Hf__CreateRep *p, struct hf_obj *o)
{
    struct hf_resize z;
    int r = hf_size_check(&o->i, q->set->size);

    if (r == 0)
        r = hf_may_data(m, &o->i, q->cred, HF_W, !q->open);
    if (r == 0)
        r = hf_size_prepare(m, op, o, q->set->size, &z, &p->layout);
    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_TRUNCATE, &o->i, o->i.parent, hf_name(&q->name), q->cred);
    if (r == 0)
        r = hf_size_apply(m, op, &o->i, q->cred, &z, &p->layout);
    if (r)
        return r;
    hf_touch(&o->i, op->now_ns, true);
    return hf_obj_save(m, o);
}

/* The name is taken. */
static int create_existing(struct hf_meta *m, struct hf_meta_op *op, const Hf__CreateReq *q,
                           Hf__CreateRep *p, const struct hf_dent *d)
{
    bool hold = q->open && op->session;
    Hf__Attr *attr;
    struct hf_obj o;
    int r;

    if (q->how == HF__CREATE_HOW__CREATE_GUARDED || d->type != HF__FILE_TYPE__FT_REG)
        return HF_E_EXIST;
    r = hf_obj_load_child(m, op, d->child, &o, &attr);
    if (r)
        return r;
    if (q->how == HF__CREATE_HOW__CREATE_EXCLUSIVE) {
        if (!(o.i.flags & HF_INO_EXCLUSIVE) || o.i.verf != q->verf)
            return HF_E_EXIST;
        p->obj = attr; /* this caller made it, in a call whose answer got lost */
        r = hold ? hf_open_room(m, o.i.ino, op->session, &hold) : 0;
        return r || !hold ? r : hf_open_hold(m, op, &o.i, q->cred);
    }
    p->obj = attr;
    if (q->open)
        r = hf_open_check(m, &o.i, q->cred, q->want);
    if (r == 0 && hold)
        r = hf_open_room(m, o.i.ino, op->session, &hold);
    if (r == 0 && q->set && q->set->set_size)
        r = truncate_existing(m, op, q, p, &o);
    return r || !hold ? r : hf_open_hold(m, op, &o.i, q->cred);
}

int hf_meta_op_create(struct hf_meta *m, struct hf_meta_op *op, const Hf__CreateReq *q,
                      Hf__CreateRep *p)
{
    struct hf_obj dir;
    struct hf_dent d;
    int r = hf_dir_load_wcc(m, op, q->dir, q->gen, &dir, &p->dir);

    if (r)
        return r;
    if (q->how > HF__CREATE_HOW__CREATE_EXCLUSIVE)
        return HF_E_INVAL;
    r = hf_dir_search(m, &dir.i, q->cred, hf_name(&q->name), HF_E_EXIST, &d);
    if (r == 0)
        return create_existing(m, op, q, p, &d);
    if (r != HF_E_NOENT)
        return r;
    r = hf_may(m, &dir.i, q->cred, HF_W | HF_X);
    if (r)
        return r;
    if (!op->may_grow || !d.cookie)
        return HF_E_NOSPC;
    return create_new(m, op, q, p, &dir, &d);
}

/* ---- mkdir, symlink, mknod ---- */

static Hf__EventOp make_event(uint32_t type)
{
    switch (type) {
    case HF__FILE_TYPE__FT_DIR:
        return HF__EVENT_OP__EV_MKDIR;
    case HF__FILE_TYPE__FT_LNK:
        return HF__EVENT_OP__EV_SYMLINK;
    default:
        return HF__EVENT_OP__EV_MKNOD;
    }
}

static int make_check(const Hf__MakeReq *q, const Hf__SetAttrs *s)
{
    switch (q->type) {
    case HF__FILE_TYPE__FT_DIR:
    case HF__FILE_TYPE__FT_SOCK:
    case HF__FILE_TYPE__FT_FIFO:
        break;
    case HF__FILE_TYPE__FT_BLK:
    case HF__FILE_TYPE__FT_CHR:
        if (!hf_cred_is_root(q->cred))
            return HF_E_PERM;
        break;
    case HF__FILE_TYPE__FT_LNK:
        if (q->target.len == 0 || memchr(q->target.data, 0, q->target.len))
            return HF_E_INVAL;
        if (q->target.len > HF_META_SYMLINK_MAX)
            return HF_E_NAMETOOLONG;
        break;
    default:
        return HF_E_BADTYPE;
    }
    return check_attrs(s);
}

/* The row that holds a link's target. */
static int target_row(struct hf_meta_op *op, struct hf_inode *i, const Hf__MakeReq *q,
                      uint8_t **ret)
{
    uint8_t *row = hf_arena_alloc(op->arena, sizeof(struct hf_data_disk) + q->target.len);

    if (!row)
        return HF_E_NOMEM;
    memcpy(row + sizeof(struct hf_data_disk), q->target.data, q->target.len);
    i->size = q->target.len;
    i->allocated = hf_round_up(i->size, 512);
    *ret = row;
    return 0;
}

int hf_meta_op_make(struct hf_meta *m, struct hf_meta_op *op, const Hf__MakeReq *q, Hf__MakeRep *p)
{
    const Hf__SetAttrs *s = q->set ? q->set : &no_attrs;
    bool link = q->type == HF__FILE_TYPE__FT_LNK;
    struct hf_inherit h = {.access = false};
    struct hf_obj dir, o;
    Hf__Attr *attr;
    uint8_t *row = NULL;
    struct hf_dent d;
    int r = hf_dir_load_wcc(m, op, q->dir, q->gen, &dir, &p->dir);

    if (r == 0)
        r = hf_dir_may_add(m, op, &dir.i, q->cred, hf_name(&q->name), &d);
    if (r == 0)
        r = make_check(q, s);
    if (r == 0)
        r = hf_obj_new(op, (uint8_t)q->type, &o, &attr);
    if (r == 0 && link)
        r = target_row(op, &o.i, q, &row);
    if (r == 0)
        r = hf_event(op, make_event(q->type), &o.i, dir.i.ino, hf_name(&q->name), q->cred);
    if (r)
        return r;
    set_owner(&o.i, &dir.i, q->cred, s, 0);
    if (link)
        o.i.mode = 0777;
    else
        r = inherit(m, op, &dir.i, &o.i, q->umask, &h);
    if (r)
        return r;
    hf_set_times(&o.i, s, op->now_ns);
    if (q->type == HF__FILE_TYPE__FT_BLK || q->type == HF__FILE_TYPE__FT_CHR) {
        o.i.rdev_major = q->rdev_major;
        o.i.rdev_minor = q->rdev_minor;
    }
    r = commit_new(m, op, &dir, &o, &d, hf_name(&q->name), &h);
    if (r == 0 && link)
        r = hf_data_put(m, o.i.ino, row, (uint32_t)q->target.len);
    if (r == 0)
        p->obj = attr;
    return r;
}

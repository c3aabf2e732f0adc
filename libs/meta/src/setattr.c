/* SPDX-License-Identifier: Apache-2.0
 *
 * SETATTR: RFC 1813 3.3.2, chmod, chown, utimensat and truncate of POSIX.
 */
#include "meta_priv.h"

#define ID_NONE UINT32_MAX /* (uid_t)-1: "do not change" to chown, never an owner */

static bool changes_anything(const Hf__SetAttrs *s)
{
    return s &&
           (s->set_mode || s->set_uid || s->set_gid || s->set_size || s->set_atime || s->set_mtime);
}

static int check_owner(const struct hf_inode *i, const Hf__Cred *c, const Hf__SetAttrs *s)
{
    bool owns = hf_cred_owns(c, i);

    if ((s->set_uid && s->uid == ID_NONE) || (s->set_gid && s->gid == ID_NONE))
        return HF_E_INVAL;
    if (s->set_mode && !owns)
        return HF_E_PERM;
    if (s->set_uid && !hf_cred_is_root(c) && !(owns && s->uid == i->uid))
        return HF_E_PERM;
    if (s->set_gid && !hf_cred_is_root(c) &&
        !(owns && (s->gid == i->gid || hf_cred_in_group(c, s->gid))))
        return HF_E_PERM;
    return 0;
}

static int check_times(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c,
                       const Hf__SetAttrs *s)
{
    if (s->set_atime > HF__SET_TIME__TIME_CLIENT || s->set_mtime > HF__SET_TIME__TIME_CLIENT)
        return HF_E_INVAL;
    if (hf_cred_owns(c, i) || (!s->set_atime && !s->set_mtime))
        return 0;
    if (s->set_atime == HF__SET_TIME__TIME_CLIENT || s->set_mtime == HF__SET_TIME__TIME_CLIENT)
        return HF_E_PERM;
    return hf_may(m, i, c, HF_W);
}

static int check(struct hf_meta *m, const struct hf_inode *i, const Hf__SetattrReq *q)
{
    const Hf__SetAttrs *s = q->set;
    const Hf__Cred *c = q->cred;
    int r;

    if (!c)
        return HF_E_ACCES;
    r = check_owner(i, c, s);
    if (r == 0)
        r = check_times(m, i, c, s);
    if (r || !s->set_size)
        return r;
    r = hf_size_check(i, s->size);
    return r || q->opened ? r : hf_may_data(m, i, c, HF_W, !q->no_override);
}

void hf_set_times(struct hf_inode *i, const Hf__SetAttrs *s, int64_t now_ns)
{
    if (s->set_atime)
        i->atime_ns = s->set_atime == HF__SET_TIME__TIME_CLIENT ? s->atime_ns : now_ns;
    if (s->set_mtime)
        i->mtime_ns = s->set_mtime == HF__SET_TIME__TIME_CLIENT ? s->mtime_ns : now_ns;
}

/* A new owner does not inherit the powers of setuid and setgid, even if root gives the file away,
 * and even if the same call sets them. */
static int apply_owner_and_mode(struct hf_meta *m, struct hf_inode *i, const Hf__Cred *c,
                                const Hf__SetAttrs *s)
{
    bool chown = s->set_uid || s->set_gid;
    int r = 0;

    if (s->set_uid)
        i->uid = s->uid;
    if (s->set_gid)
        i->gid = s->gid;
    if (s->set_mode)
        i->mode = (uint16_t)(s->mode & 07777);
    if (chown && i->type != HF__FILE_TYPE__FT_DIR)
        r = hf_kill_suid(m, i, NULL);
    if (s->set_mode && !hf_cred_is_root(c) && !hf_cred_in_group(c, i->gid))
        i->mode = (uint16_t)(i->mode & ~02000u);
    return r;
}

/* A tail that nobody vouches for is noted for trimming even though the call is refused: the one
 * refusal that changes something, so that who comes next finds the duty. */
static int settle(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, uint64_t size)
{
    int r;

    if (o->i.kind != HF_KIND_CHUNKS || size <= o->i.size ||
        !hf_layout_settle(&o->i.lay, o->i.size, op->boot) || !o->i.lay.trim)
        return 0;
    r = hf_event(op, HF__EVENT_OP__EV_LAYOUT, &o->i, o->i.parent, hf_slice(NULL, 0), NULL);
    return r ? r : hf_obj_save(m, o);
}

int hf_size_prepare(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, uint64_t size,
                    struct hf_resize *z, Hf__Layout **ret_duty)
{
    const struct hf_inode *i = &o->i;
    int r = settle(m, op, o, size);

    *z = (struct hf_resize){.size = size};
    if (r == 0 && i->kind == HF_KIND_CHUNKS)
        r = hf_layout_msg(op, &i->lay, true, &z->layout);
    if (r == 0) {
        r = hf_size_trim_due(i, size);
        if (r)
            *ret_duty = z->layout;
    }
    return r ? r : hf_size_scratch(m, op, i, size, &z->scratch);
}

int hf_size_apply(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i, const Hf__Cred *c,
                  const struct hf_resize *z, Hf__Layout **ret_duty)
{
    int r = hf_size_set(m, op, i, z->size, z->scratch);

    if (r)
        return r;
    r = hf_kill_suid(m, i, c);
    if (r)
        return r;
    op->event.size = i->size;
    if (i->kind == HF_KIND_CHUNKS && z->layout && i->lay.trim) {
        hf_layout_msg_refresh(z->layout, &i->lay);
        *ret_duty = z->layout;
    }
    return 0;
}

int hf_meta_op_setattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__SetattrReq *q,
                       Hf__SetattrRep *p)
{
    const Hf__SetAttrs *s = q->set;
    struct hf_resize z;
    struct hf_obj o;
    int r = hf_obj_load_wcc(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    if (q->guard && q->guard_ctime_ns != o.i.ctime_ns)
        return HF_E_NOT_SYNC;
    if (!changes_anything(s))
        return 0;
    r = check(m, &o.i, q);
    if (r == 0 && s->set_size)
        r = hf_size_prepare(m, op, &o, s->size, &z, &p->layout);
    if (r == 0)
        r = hf_event(op, s->set_size ? HF__EVENT_OP__EV_TRUNCATE : HF__EVENT_OP__EV_SETATTR, &o.i,
                     o.i.parent, hf_slice(NULL, 0), q->cred);
    if (r)
        return r;
    if (s->set_size) {
        r = hf_size_apply(m, op, &o.i, q->cred, &z, &p->layout);
        if (r)
            return r;
    }
    r = apply_owner_and_mode(m, &o.i, q->cred, s);
    if (r)
        return r;
    hf_touch(&o.i, op->now_ns, s->set_size);
    hf_set_times(&o.i, s, op->now_ns);
    return hf_obj_save(m, &o);
}

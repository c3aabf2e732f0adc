/* SPDX-License-Identifier: Apache-2.0
 *
 * Links: REMOVE and RMDIR (RFC 1813 3.3.12, 3.3.13), LINK (3.3.15), and what happens when the last
 * one goes.
 */
#include "meta_priv.h"

static int xattrs_del(struct hf_meta *m, uint64_t ino)
{
    uint8_t prefix[HF_KEY_INO], found[HF_STORE_KEY_MAX];
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    hf_key_ino(prefix, ino);
    for (;;) {
        size_t n = 0;

        r = hf_store_seek(m->store, HF_T_XAT, hf_slice(prefix, 8), hf_slice(prefix, 8), &it);
        if (r)
            return r;
        r = hf_store_next(&it, &key, &val);
        if (r == 0) {
            n = key.len;
            memcpy(found, key.data, n);
        }
        hf_store_iter_end(&it);
        if (r)
            return r == HF_E_NOENT ? 0 : r;
        r = hf_store_del(m->store, HF_T_XAT, hf_slice(found, n));
        if (r)
            return r;
    }
}

int hf_obj_del(struct hf_meta *m, const struct hf_inode *i, int64_t now_ns)
{
    int r = 0;

    hf_append_forget(m, i->ino);
    if (i->kind == HF_KIND_INLINE && i->allocated)
        r = hf_data_del(m, i->ino);
    else if (i->kind == HF_KIND_CHUNKS)
        r = hf_gc_put(m, i->ino, &i->lay, now_ns);
    if (r == 0 && (i->flags & HF_INO_XATTR))
        r = xattrs_del(m, i->ino);
    return r ? r : hf_ino_del(m, i->ino);
}

int hf_obj_unlink(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, uint64_t dir)
{
    struct hf_inode *i = &o->i;
    int r;

    if (i->type == HF__FILE_TYPE__FT_REG && i->nlink == 1) {
        r = hf_session_grace(m, op->now_ns) ? 0 : hf_open_any(m, i->ino);
        if (r != HF_E_NOENT)
            return r ? r : hf_open_orphan(m, op, o);
    }
    if (i->type == HF__FILE_TYPE__FT_DIR || i->nlink == 1)
        return hf_obj_del(m, i, op->now_ns);
    i->nlink--;
    if (i->parent == dir)
        i->parent = 0;
    hf_touch(i, op->now_ns, false);
    return hf_obj_save(m, o);
}

int hf_meta_op_remove(struct hf_meta *m, struct hf_meta_op *op, const Hf__RemoveReq *q,
                      Hf__RemoveRep *p)
{
    struct hf_obj dir, o;
    struct hf_dent d;
    bool last;
    int r = hf_dir_load_wcc(m, op, q->dir, q->gen, &dir, &p->dir);

    if (r == 0)
        r = hf_dir_search(m, &dir.i, q->cred, hf_name(&q->name), HF_E_INVAL, &d);
    if (r == 0)
        r = hf_obj_load_child(m, op, d.child, &o, NULL);
    if (r == 0)
        r = hf_may_remove(m, &dir.i, &o.i, q->cred);
    if (r)
        return r;
    if (q->is_dir && o.i.type != HF__FILE_TYPE__FT_DIR)
        return HF_E_NOTDIR;
    if (!q->is_dir && o.i.type == HF__FILE_TYPE__FT_DIR)
        return HF_E_ISDIR;
    r = q->is_dir ? hf_dir_is_empty(m, &o.i) : 0;
    if (r == 0)
        r = hf_event(op, q->is_dir ? HF__EVENT_OP__EV_RMDIR : HF__EVENT_OP__EV_UNLINK, &o.i,
                     dir.i.ino, hf_name(&q->name), q->cred);
    if (r)
        return r;
    last = q->is_dir || o.i.nlink == 1;
    p->ino = o.i.ino;
    p->last_link = last;
    op->event.replaced = last ? o.i.ino : 0;
    r = hf_dent_del(m, dir.i.ino, d.cookie);
    if (r == 0)
        r = hf_obj_unlink(m, op, &o, dir.i.ino);
    if (r)
        return r;
    if (q->is_dir && dir.i.nlink > 2)
        dir.i.nlink--;
    hf_touch(&dir.i, op->now_ns, true);
    return hf_obj_save(m, &dir);
}

int hf_meta_op_link(struct hf_meta *m, struct hf_meta_op *op, const Hf__LinkReq *q, Hf__LinkRep *p)
{
    struct hf_obj dir, o;
    struct hf_dent d;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);
    int rd = hf_dir_load_wcc(m, op, q->dir, q->dir_gen, &dir, &p->dir);

    if (r || rd)
        return r ? r : rd;
    if (o.i.type == HF__FILE_TYPE__FT_DIR)
        return HF_E_PERM;
    if (o.i.nlink == 0)
        return HF_E_NOENT; /* it is only open */
    r = hf_dir_may_add(m, op, &dir.i, q->cred, hf_name(&q->name), &d);
    if (r == 0 && o.i.nlink >= HF_META_LINK_MAX)
        r = HF_E_MLINK;
    if (r == 0)
        r = hf_event(op, HF__EVENT_OP__EV_LINK, &o.i, dir.i.ino, hf_name(&q->name), q->cred);
    if (r == 0)
        r = hf_dent_put(m, dir.i.ino, d.cookie, o.i.ino, o.i.type, hf_name(&q->name));
    if (r)
        return r;
    o.i.nlink++;
    if (o.i.parent == 0)
        o.i.parent = dir.i.ino;
    hf_touch(&o.i, op->now_ns, false);
    hf_touch(&dir.i, op->now_ns, true);
    r = hf_obj_save(m, &o);
    return r ? r : hf_obj_save(m, &dir);
}

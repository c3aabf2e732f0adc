/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that look at one object: lookup, getattr, access, readlink, fsstat.
 */
#include "meta_priv.h"

int hf_meta_op_lookup(struct hf_meta *m, struct hf_meta_op *op, const Hf__LookupReq *q,
                      Hf__LookupRep *p)
{
    struct hf_slice name = hf_name(&q->name);
    struct hf_obj dir, child;
    struct hf_dent d;
    int r = hf_obj_load(m, op, q->dir, q->gen, &dir, &p->dir);

    if (r)
        return r;
    if (dir.i.type != HF__FILE_TYPE__FT_DIR)
        return HF_E_NOTDIR;
    r = hf_dir_search(m, &dir.i, q->cred, name, HF_E_EXIST, &d);
    if (r == HF_E_EXIST) /* "." or ".." */
        d.child = hf_name_is_dot(name) ? dir.i.ino : dir.i.parent;
    else if (r)
        return r;
    return hf_obj_load_child(m, op, d.child, &child, &p->obj);
}

int hf_meta_op_getattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__GetattrReq *q,
                       Hf__GetattrRep *p)
{
    struct hf_obj o;

    return hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);
}

/* RFC 1813 3.3.4 */
enum {
    ACCESS_READ = 0x01,
    ACCESS_LOOKUP = 0x02,
    ACCESS_MODIFY = 0x04,
    ACCESS_EXTEND = 0x08,
    ACCESS_DELETE = 0x10,
    ACCESS_EXECUTE = 0x20,
};

/* A bit is granted when the operations that it stands for would be. Entries of a directory are
 * changed with write and search; DELETE is about them, so that only directories have it. */
static uint32_t access_granted(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c)
{
    uint32_t granted = hf_may(m, i, c, HF_R) == 0 ? ACCESS_READ : 0;

    if (i->type == HF__FILE_TYPE__FT_DIR) {
        if (hf_may(m, i, c, HF_X) == 0)
            granted |= ACCESS_LOOKUP;
        if (hf_may(m, i, c, HF_W | HF_X) == 0)
            granted |= ACCESS_MODIFY | ACCESS_EXTEND | ACCESS_DELETE;
        return granted;
    }
    if (hf_may(m, i, c, HF_W) == 0)
        granted |= ACCESS_MODIFY | ACCESS_EXTEND;
    if (i->type == HF__FILE_TYPE__FT_REG && hf_may(m, i, c, HF_X) == 0)
        granted |= ACCESS_EXECUTE;
    return granted;
}

/* Each bit of access(2) alone. */
static uint32_t posix_granted(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c)
{
    uint32_t granted = 0;

    for (unsigned bit = HF_X; bit <= HF_R; bit <<= 1)
        if (hf_may(m, i, c, bit) == 0)
            granted |= bit;
    return granted;
}

int hf_meta_op_access(struct hf_meta *m, struct hf_meta_op *op, const Hf__AccessReq *q,
                      Hf__AccessRep *p)
{
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    p->granted = q->posix ? posix_granted(m, &o.i, q->cred) : access_granted(m, &o.i, q->cred);
    p->granted &= q->want;
    return 0;
}

int hf_meta_op_readlink(struct hf_meta *m, struct hf_meta_op *op, const Hf__ReadlinkReq *q,
                        Hf__ReadlinkRep *p)
{
    struct hf_slice target;
    struct hf_obj o;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    if (o.i.type != HF__FILE_TYPE__FT_LNK)
        return HF_E_INVAL;
    if (!q->cred)
        return HF_E_ACCES;
    r = hf_data_get(m, o.i.ino, &target);
    if (r)
        return r;
    if (target.len != o.i.size || target.len == 0)
        return HF_E_CORRUPT;
    p->target.data = hf_arena_dup(op->arena, target.data, target.len);
    if (!p->target.data)
        return HF_E_NOMEM;
    p->target.len = target.len;
    return hf_touch_atime(m, op, &o);
}

/* An object costs about this much of the store: inode, name, some inline content. */
#define BYTES_PER_FILE 1024u

int hf_meta_op_fsstat(struct hf_meta *m, struct hf_meta_op *op, const Hf__FsstatReq *q,
                      Hf__FsstatRep *p)
{
    struct hf_store_space sp;
    struct hf_obj o;
    uint64_t left;
    int r = hf_obj_load(m, op, q->ino, q->gen, &o, &p->obj);

    if (r)
        return r;
    hf_store_space(m->store, &sp);
    left = sp.limit_bytes > sp.used_bytes ? sp.limit_bytes - sp.used_bytes : 0;
    if (left > sp.fs_free_bytes)
        left = sp.fs_free_bytes;
    p->files_used = hf_store_count(m->store, HF_T_INO);
    p->files_free = left / BYTES_PER_FILE;
    p->inline_bytes = sp.used_bytes;
    p->meta_free_bytes = left;
    return 0;
}

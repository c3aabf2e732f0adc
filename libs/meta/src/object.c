/* SPDX-License-Identifier: Apache-2.0 */
#include "meta_priv.h"

#define INO_STEP        1024u
#define RELATIME_OLD_NS (INT64_C(24) * 3600 * HF_NSEC_PER_SEC)

int hf_ino_get(struct hf_meta *m, uint64_t ino, struct hf_inode *ret)
{
    uint8_t key[HF_KEY_INO];
    struct hf_slice val;
    int r;

    hf_key_ino(key, ino);
    r = hf_store_get(m->store, HF_T_INO, hf_slice(key, sizeof(key)), &val);
    return r ? r : hf_ino_decode(val, ino, ret);
}

int hf_ino_put(struct hf_meta *m, const struct hf_inode *i)
{
    uint8_t key[HF_KEY_INO], val[HF_INO_VALUE_MAX];
    size_t n = hf_ino_encode(i, val);

    hf_key_ino(key, i->ino);
    return hf_store_put(m->store, HF_T_INO, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

int hf_ino_del(struct hf_meta *m, uint64_t ino)
{
    uint8_t key[HF_KEY_INO];

    hf_key_ino(key, ino);
    return hf_store_del(m->store, HF_T_INO, hf_slice(key, sizeof(key)));
}

/* The stored counter runs ahead by INO_STEP, in the transaction that uses the first of them:
 * numbers that were handed out before a crash lie below it. */
int hf_ino_alloc(struct hf_meta *m, uint64_t *ret)
{
    if (m->next_local > HF_INO_LOCAL_MAX - INO_STEP)
        return HF_E_NOSPC;
    if (m->next_local == m->end_local) {
        uint8_t val[sizeof(struct hf_counter_disk)];
        int r;

        hf_counter_encode(m->end_local + INO_STEP, val);
        r = hf_store_put(m->store, HF_T_META, hf_slice_str(HF_ROW_NEXT),
                         hf_slice(val, sizeof(val)));
        if (r)
            return r;
        m->end_local += INO_STEP;
    }
    *ret = (uint64_t)m->shard << HF_INO_LOCAL_BITS | m->next_local++;
    return 0;
}

void hf_attr_fill(Hf__Attr *a, const struct hf_inode *i)
{
    hf__attr__init(a);
    a->type = i->type;
    a->mode = i->mode;
    a->nlink = i->nlink;
    a->uid = i->uid;
    a->gid = i->gid;
    a->size = i->size;
    a->allocated = i->allocated;
    a->rdev_major = i->rdev_major;
    a->rdev_minor = i->rdev_minor;
    a->ino = i->ino;
    a->gen = i->gen;
    a->atime_ns = i->atime_ns;
    a->mtime_ns = i->mtime_ns;
    a->ctime_ns = i->ctime_ns;
    a->btime_ns = i->btime_ns;
    a->change = i->change;
    a->parent = i->parent;
    a->flags = i->flags & (HF_INO_XATTR | HF_INO_ACL | HF_INO_DEFAULT_ACL);
    if (i->type == HF__FILE_TYPE__FT_DIR && (i->flags & HF_INO_ALLOC))
        a->flags |= HF__ATTR_FLAG__AF_XATTR; /* the virtual one */
}

static int attach_attr(struct hf_meta_op *op, struct hf_obj *o, Hf__Attr **ret_attr)
{
    Hf__Attr *a = hf_arena_alloc(op->arena, sizeof(*a));

    if (!a)
        return HF_E_NOMEM;
    hf_attr_fill(a, &o->i);
    o->attr = *ret_attr = a;
    return 0;
}

int hf_obj_load_orphan(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                       struct hf_obj *o, Hf__Attr **ret_attr)
{
    int r = hf_ino_get(m, ino, &o->i);

    o->attr = NULL;
    if (r == HF_E_NOENT || (r == 0 && o->i.gen != gen))
        return HF_E_STALE;
    return r ? r : attach_attr(op, o, ret_attr);
}

int hf_obj_load(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                struct hf_obj *o, Hf__Attr **ret_attr)
{
    int r = hf_obj_load_orphan(m, op, ino, gen, o, ret_attr);

    if (r || o->i.nlink > 0)
        return r;
    r = hf_open_any(m, ino);
    return r == HF_E_NOENT ? HF_E_STALE : r;
}

int hf_obj_load_wcc(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                    struct hf_obj *o, Hf__Wcc **ret_wcc)
{
    Hf__Wcc *w = hf_arena_alloc(op->arena, sizeof(*w));
    int r;

    if (!w)
        return HF_E_NOMEM;
    hf__wcc__init(w);
    r = hf_obj_load(m, op, ino, gen, o, &w->after);
    if (r)
        return r;
    w->have_before = true;
    w->size = o->i.size;
    w->mtime_ns = o->i.mtime_ns;
    w->ctime_ns = o->i.ctime_ns;
    *ret_wcc = w;
    return 0;
}

int hf_dir_load_wcc(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                    struct hf_obj *o, Hf__Wcc **ret_wcc)
{
    int r = hf_obj_load_wcc(m, op, ino, gen, o, ret_wcc);

    if (r)
        return r;
    return o->i.type == HF__FILE_TYPE__FT_DIR ? 0 : HF_E_NOTDIR;
}

int hf_obj_load_child(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, struct hf_obj *o,
                      Hf__Attr **ret_attr)
{
    int r = hf_ino_get(m, ino, &o->i);

    o->attr = NULL;
    if (r)
        return r == HF_E_NOENT ? HF_E_CORRUPT : r;
    return ret_attr ? attach_attr(op, o, ret_attr) : 0;
}

int hf_obj_new(struct hf_meta_op *op, uint8_t type, struct hf_obj *o, Hf__Attr **ret_attr)
{
    struct hf_inode *i = &o->i;

    memset(i, 0, offsetof(struct hf_inode, lay));
    i->type = type;
    i->kind = type == HF__FILE_TYPE__FT_REG || type == HF__FILE_TYPE__FT_LNK ? HF_KIND_INLINE
                                                                             : HF_KIND_NONE;
    i->nlink = type == HF__FILE_TYPE__FT_DIR ? 2 : 1;
    i->gen = (uint32_t)op->random ? (uint32_t)op->random : 1;
    i->atime_ns = i->mtime_ns = i->ctime_ns = i->btime_ns = op->now_ns;
    i->change = 1;
    return attach_attr(op, o, ret_attr);
}

int hf_obj_save(struct hf_meta *m, struct hf_obj *o)
{
    if (o->attr)
        hf_attr_fill(o->attr, &o->i);
    return hf_ino_put(m, &o->i);
}

void hf_touch(struct hf_inode *i, int64_t now_ns, bool mtime)
{
    i->change++;
    i->ctime_ns = now_ns > i->ctime_ns ? now_ns : i->ctime_ns + 1;
    if (mtime)
        i->mtime_ns = i->ctime_ns;
}

int hf_touch_atime(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o)
{
    const struct hf_inode *i = &o->i;
    int r;

    if (m->noatime || !op->may_grow || op->now_ns <= i->atime_ns)
        return 0;
    if (i->atime_ns > i->mtime_ns && i->atime_ns > i->ctime_ns &&
        op->now_ns - i->atime_ns < RELATIME_OLD_NS)
        return 0;
    r = hf_event(op, HF__EVENT_OP__EV_ATIME, i, i->parent, hf_slice(NULL, 0), NULL);
    if (r)
        return r;
    o->i.atime_ns = op->now_ns;
    op->lazy = true;
    hf_store_untracked(m->store, true);
    return hf_obj_save(m, o);
}

int hf_event(struct hf_meta_op *op, Hf__EventOp what, const struct hf_inode *i, uint64_t parent,
             struct hf_slice name, const Hf__Cred *cred)
{
    Hf__Event *e = &op->event;

    if (name.len) {
        e->name.data = hf_arena_dup(op->arena, name.data, name.len);
        if (!e->name.data)
            return HF_E_NOMEM;
        e->name.len = name.len;
    }
    e->op = what;
    e->ino = i->ino;
    e->parent = parent;
    e->size = i->size;
    e->uid = cred ? cred->uid : 0;
    e->time_ns = op->now_ns;
    return 0;
}

static void *arena_pb_alloc(void *arena, size_t bytes)
{
    return hf_arena_alloc(arena, bytes);
}

static void arena_pb_free(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

ProtobufCAllocator hf_arena_allocator(struct hf_arena *a)
{
    return (ProtobufCAllocator){arena_pb_alloc, arena_pb_free, a};
}

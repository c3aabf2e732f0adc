/* SPDX-License-Identifier: Apache-2.0
 *
 * RENAME (RFC 1813 3.3.14, rename of POSIX), inside one shard.
 */
#include "fold.h"
#include "meta_priv.h"

#define DEPTH_MAX (1u << 20) /* a chain of parents longer than this is a loop */

struct rename {
    struct hf_obj from, to_store;
    struct hf_obj *to; /* &from if it is the same directory: there is one copy of each inode */
    struct hf_obj src, dst;
    struct hf_dent sd, dd;
    struct hf_slice sname, dname;
    uint64_t cookie; /* of the new entry */
    bool replace, is_dir, moves;
};

/* Both before-images are given whenever the directories exist. */
static int load_dirs(struct hf_meta *m, struct hf_meta_op *op, const Hf__RenameReq *q,
                     Hf__RenameRep *p, struct rename *n)
{
    int r = hf_dir_load_wcc(m, op, q->from_dir, q->from_gen, &n->from, &p->from), rt;

    n->moves = q->from_dir != q->to_dir;
    if (n->moves) {
        n->to = &n->to_store;
        rt = hf_dir_load_wcc(m, op, q->to_dir, q->to_gen, n->to, &p->to);
        return r ? r : rt;
    }
    n->to = &n->from;
    if (q->to_gen != q->from_gen)
        return HF_E_STALE;
    if (p->from) {
        p->to = hf_arena_dup(op->arena, p->from, sizeof(*p->from));
        if (!p->to)
            return HF_E_NOMEM;
    }
    return r;
}

/* Finds both names. EXIST here means: both are names of one object, and nothing is to be done. */
static int find_names(struct hf_meta *m, struct hf_meta_op *op, const Hf__RenameReq *q,
                      struct rename *n)
{
    int r, rd;

    n->sname = hf_name(&q->from_name);
    n->dname = hf_name(&q->to_name);
    r = hf_dir_search(m, &n->from.i, q->cred, n->sname, HF_E_INVAL, &n->sd);
    if (r)
        return r;
    rd = hf_dir_search(m, &n->to->i, q->cred, n->dname, HF_E_INVAL, &n->dd);
    if (rd && rd != HF_E_NOENT)
        return rd;
    n->replace = rd == 0;
    if (n->replace && n->dd.child == n->sd.child)
        return HF_E_EXIST;
    r = hf_obj_load_child(m, op, n->sd.child, &n->src, NULL);
    if (r == 0 && n->replace)
        r = hf_obj_load_child(m, op, n->dd.child, &n->dst, NULL);
    n->is_dir = n->src.i.type == HF__FILE_TYPE__FT_DIR;
    return r;
}

/* The directory must not move into itself: walks from its new parent to the root. */
static int check_loop(struct hf_meta *m, const struct rename *n)
{
    uint64_t at = n->to->i.ino, up = n->to->i.parent;
    struct hf_inode i;

    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        int r;

        if (at == n->src.i.ino)
            return HF_E_INVAL;
        if (at == up)
            return 0;
        r = hf_ino_get(m, up, &i);
        if (r)
            return r == HF_E_NOENT ? HF_E_CORRUPT : r;
        at = up;
        up = i.parent;
    }
    return HF_E_CORRUPT;
}

static int check_permissions(struct hf_meta *m, const struct rename *n, const Hf__Cred *c)
{
    int r = hf_may_remove(m, &n->from.i, &n->src.i, c);

    if (r == 0)
        r = n->replace ? hf_may_remove(m, &n->to->i, &n->dst.i, c)
                       : hf_may(m, &n->to->i, c, HF_W | HF_X);
    if (r == 0 && n->is_dir && n->moves)
        r = hf_may(m, &n->src.i, c, HF_W); /* its ".." changes */
    return r;
}

static int check_types(struct hf_meta *m, const struct rename *n)
{
    if (!n->replace)
        return 0;
    if (n->is_dir)
        return n->dst.i.type == HF__FILE_TYPE__FT_DIR ? hf_dir_is_empty(m, &n->dst.i) : HF_E_NOTDIR;
    return n->dst.i.type == HF__FILE_TYPE__FT_DIR ? HF_E_ISDIR : 0;
}

/* A replaced name keeps its place; a name that changes in case only takes over its own. */
static int choose_cookie(struct hf_meta *m, struct rename *n)
{
    uint64_t base = hf_cookie_base(m->cookie_key, n->dname);

    if (!n->replace && !n->moves && n->sd.cookie >> HF_SLOT_BITS == base >> HF_SLOT_BITS)
        n->cookie = n->sd.cookie;
    else
        n->cookie = n->dd.cookie;
    return n->cookie ? 0 : HF_E_NOSPC;
}

static int set_event(struct hf_meta_op *op, const struct rename *n, const Hf__Cred *c)
{
    Hf__Event *e = &op->event;
    int r = hf_event(op, HF__EVENT_OP__EV_RENAME, &n->src.i, n->to->i.ino, n->dname, c);

    if (r)
        return r;
    e->old_name.data = hf_arena_dup(op->arena, n->sname.data, n->sname.len);
    if (!e->old_name.data)
        return HF_E_NOMEM;
    e->old_name.len = n->sname.len;
    e->old_parent = n->from.i.ino;
    e->replaced = n->replace ? n->dst.i.ino : 0;
    return 0;
}

/* The entries and the two objects. */
static int move_entry(struct hf_meta *m, struct hf_meta_op *op, struct rename *n)
{
    struct hf_inode *i = &n->src.i;
    int r = n->replace ? hf_obj_unlink(m, op, &n->dst, n->to->i.ino) : 0;

    if (r == 0)
        r = hf_dent_put(m, n->to->i.ino, n->cookie, i->ino, i->type, n->dname);
    if (r == 0 && (n->moves || n->cookie != n->sd.cookie))
        r = hf_dent_del(m, n->from.i.ino, n->sd.cookie);
    if (r)
        return r;
    if (n->is_dir || i->nlink == 1 || i->parent == n->from.i.ino || i->parent == 0)
        i->parent = n->to->i.ino;
    hf_touch(i, op->now_ns, false);
    return hf_obj_save(m, &n->src);
}

static int save_dirs(struct hf_meta *m, struct hf_meta_op *op, struct rename *n)
{
    int r;

    if (n->is_dir) {
        if (n->moves) {
            n->from.i.nlink--;
            n->to->i.nlink++;
        }
        if (n->replace)
            n->to->i.nlink--;
    }
    hf_touch(&n->from.i, op->now_ns, true);
    r = hf_obj_save(m, &n->from);
    if (r || !n->moves)
        return r;
    hf_touch(&n->to->i, op->now_ns, true);
    return hf_obj_save(m, n->to);
}

int hf_meta_op_rename(struct hf_meta *m, struct hf_meta_op *op, const Hf__RenameReq *q,
                      Hf__RenameRep *p)
{
    struct rename n;
    int r = load_dirs(m, op, q, p, &n);

    if (r == 0)
        r = find_names(m, op, q, &n);
    if (r == HF_E_EXIST) {
        p->ino = n.sd.child;
        return 0;
    }
    if (r == 0 && n.is_dir && n.moves)
        r = check_loop(m, &n);
    if (r == 0)
        r = check_permissions(m, &n, q->cred);
    if (r == 0)
        r = check_types(m, &n);
    if (r == 0)
        r = choose_cookie(m, &n);
    if (r == 0)
        r = set_event(op, &n, q->cred);
    if (r == 0)
        r = move_entry(m, op, &n);
    if (r == 0)
        r = save_dirs(m, op, &n);
    if (r)
        return r;
    p->ino = n.src.i.ino;
    p->replaced = n.replace ? n.dst.i.ino : 0;
    return 0;
}

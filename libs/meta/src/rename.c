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
    bool exchange; /* dst takes the place of src */
    bool same;     /* both are names of one object: nothing is to be done */
};

static bool is_dir(const struct hf_obj *o)
{
    return o->i.type == HF__FILE_TYPE__FT_DIR;
}

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

/* Finds both names. */
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
    if (n->replace && (q->flags & HF__RENAME_FLAG__RENAME_NOREPLACE))
        return HF_E_EXIST;
    if (n->exchange && !n->replace)
        return HF_E_NOENT;
    n->same = n->replace && n->dd.child == n->sd.child;
    if (n->same)
        return 0;
    r = hf_obj_load_child(m, op, n->sd.child, &n->src, NULL);
    if (r == 0 && n->replace)
        r = hf_obj_load_child(m, op, n->dd.child, &n->dst, NULL);
    n->is_dir = n->src.i.type == HF__FILE_TYPE__FT_DIR;
    return r;
}

/* The directory must not move into itself: walks from its new parent to the root. */
static int check_loop(struct hf_meta *m, const struct hf_inode *moved, const struct hf_inode *to)
{
    uint64_t at = to->ino, up = to->parent;
    struct hf_inode i;

    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        int r;

        if (at == moved->ino)
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
    if (r == 0 && n->exchange && n->moves && is_dir(&n->dst))
        r = hf_may(m, &n->dst.i, c, HF_W);
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
    int r = hf_event(op, n->exchange ? HF__EVENT_OP__EV_EXCHANGE : HF__EVENT_OP__EV_RENAME,
                     &n->src.i, n->to->i.ino, n->dname, c);

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

/* ---- exchange ---- */

static void moved(struct hf_meta_op *op, struct hf_inode *i, uint64_t from, uint64_t to)
{
    if (i->type == HF__FILE_TYPE__FT_DIR || i->nlink == 1 || i->parent == from || i->parent == 0)
        i->parent = to;
    hf_touch(i, op->now_ns, false);
}

/* Names keep their places; what they lead to changes. */
static int exchange_entries(struct hf_meta *m, struct hf_meta_op *op, struct rename *n)
{
    int r = hf_dent_put(m, n->to->i.ino, n->dd.cookie, n->src.i.ino, n->src.i.type, n->dname);

    if (r == 0)
        r = hf_dent_put(m, n->from.i.ino, n->sd.cookie, n->dst.i.ino, n->dst.i.type, n->sname);
    if (r)
        return r;
    moved(op, &n->src.i, n->from.i.ino, n->to->i.ino);
    moved(op, &n->dst.i, n->to->i.ino, n->from.i.ino);
    if (n->moves) {
        n->from.i.nlink += (uint32_t)is_dir(&n->dst) - (uint32_t)n->is_dir;
        n->to->i.nlink += (uint32_t)n->is_dir - (uint32_t)is_dir(&n->dst);
    }
    r = hf_obj_save(m, &n->src);
    if (r == 0)
        r = hf_obj_save(m, &n->dst);
    hf_touch(&n->from.i, op->now_ns, true);
    if (r == 0)
        r = hf_obj_save(m, &n->from);
    if (r || !n->moves)
        return r;
    hf_touch(&n->to->i, op->now_ns, true);
    return hf_obj_save(m, n->to);
}

static int check_loops(struct hf_meta *m, const struct rename *n)
{
    int r = 0;

    if (n->is_dir && n->moves)
        r = check_loop(m, &n->src.i, &n->to->i);
    if (r == 0 && n->exchange && n->moves && is_dir(&n->dst))
        r = check_loop(m, &n->dst.i, &n->from.i);
    return r;
}

static int take_flags(const Hf__RenameReq *q, struct rename *n)
{
    n->exchange = (q->flags & HF__RENAME_FLAG__RENAME_EXCHANGE) != 0;
    n->same = false;
    return q->flags > HF__RENAME_FLAG__RENAME_EXCHANGE ? HF_E_INVAL : 0;
}

int hf_meta_op_rename(struct hf_meta *m, struct hf_meta_op *op, const Hf__RenameReq *q,
                      Hf__RenameRep *p)
{
    struct rename n;
    int r = load_dirs(m, op, q, p, &n);

    if (r == 0)
        r = take_flags(q, &n);
    if (r == 0)
        r = find_names(m, op, q, &n);
    if (r == 0 && n.same) {
        p->ino = n.sd.child;
        return 0;
    }
    if (r == 0)
        r = check_loops(m, &n);
    if (r == 0)
        r = check_permissions(m, &n, q->cred);
    if (r == 0 && !n.exchange)
        r = check_types(m, &n);
    if (r == 0 && !n.exchange)
        r = choose_cookie(m, &n);
    if (r == 0)
        r = set_event(op, &n, q->cred);
    if (r)
        return r;
    p->ino = n.src.i.ino;
    if (n.exchange)
        return exchange_entries(m, op, &n);
    p->replaced = n.replace ? n.dst.i.ino : 0;
    r = move_entry(m, op, &n);
    return r ? r : save_dirs(m, op, &n);
}

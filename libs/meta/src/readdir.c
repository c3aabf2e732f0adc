/* SPDX-License-Identifier: Apache-2.0
 *
 * READDIR and READDIRPLUS (RFC 1813 3.3.16, 3.3.17): one scan of the directory's entries in cookie
 * order. A cookie is a key, not a position: what is removed between two pages moves nothing.
 */
#include "meta_priv.h"

#define COOKIE_DOT    1u
#define COOKIE_DOTDOT 2u
#define PAGE_MAX      2048u /* entries: bounds a call's time, and its reply to less than 1 MiB */
#define NAME_PAD      4u

struct page {
    struct hf_meta *m;
    struct hf_meta_op *op;
    const Hf__ReaddirReq *q;
    Hf__ReaddirRep *p;
    size_t max;     /* room in p->entries */
    uint64_t bytes; /* used of q->max_bytes */
    bool attrs;
};

static int page_init(struct page *g)
{
    uint64_t least = (uint64_t)g->q->entry_overhead + NAME_PAD;
    uint64_t max = g->q->max_bytes / least + 1;

    if (g->q->max_entries && max > g->q->max_entries)
        max = g->q->max_entries;
    g->max = max > PAGE_MAX ? PAGE_MAX : (size_t)max;
    g->p->entries = hf_arena_alloc(g->op->arena, g->max * sizeof(Hf__Dirent *));
    return g->p->entries ? 0 : HF_E_NOMEM;
}

/* A name without an object (the check reports it) is still listed. */
static int add_attr(struct page *g, Hf__Dirent *e)
{
    struct hf_obj o;
    int r = hf_obj_load_child(g->m, g->op, e->ino, &o, &e->attr);

    return r == HF_E_CORRUPT ? 0 : r;
}

/* 1: the page is full. */
static int add(struct page *g, uint64_t ino, uint64_t cookie, uint8_t type, struct hf_slice name)
{
    uint64_t need = g->q->entry_overhead + hf_round_up(name.len, NAME_PAD);
    Hf__Dirent *e;

    if (g->bytes + need > g->q->max_bytes)
        return g->p->n_entries ? 1 : HF_E_TOOSMALL;
    if (g->p->n_entries == g->max)
        return 1;
    e = hf_arena_alloc(g->op->arena, sizeof(*e));
    if (!e)
        return HF_E_NOMEM;
    hf__dirent__init(e);
    e->ino = ino;
    e->cookie = cookie;
    e->type = type;
    e->name.data = hf_arena_dup(g->op->arena, name.data, name.len);
    if (!e->name.data)
        return HF_E_NOMEM;
    e->name.len = name.len;
    g->bytes += need;
    g->p->entries[g->p->n_entries++] = e;
    return g->attrs ? add_attr(g, e) : 0;
}

static int add_dots(struct page *g, const struct hf_inode *dir)
{
    int r = 0;

    if (g->q->cookie < COOKIE_DOT)
        r = add(g, dir->ino, COOKIE_DOT, dir->type, hf_slice_str("."));
    if (r == 0 && g->q->cookie < COOKIE_DOTDOT)
        r = add(g, dir->parent, COOKIE_DOTDOT, HF__FILE_TYPE__FT_DIR, hf_slice_str(".."));
    return r;
}

/* NOENT: the directory ends here. */
static int add_entries(struct page *g, const struct hf_inode *dir)
{
    uint64_t after = g->q->cookie < COOKIE_DOTDOT ? COOKIE_DOTDOT : g->q->cookie, cookie, ino;
    uint8_t from[HF_KEY_DENT];
    struct hf_store_iter it;
    struct hf_slice key, val;
    struct hf_dentry d;
    int r;

    hf_key_dent(from, dir->ino, after + 1);
    r = hf_store_seek(g->m->store, HF_T_DENT, hf_slice(from, 8), hf_slice(from, 16), &it);
    if (r)
        return r;
    while (r == 0) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = hf_key_dent_parse(key, &ino, &cookie);
        if (r == 0)
            r = hf_dent_decode(val, &d);
        if (r == 0)
            r = add(g, d.child, cookie, d.type, d.name);
    }
    hf_store_iter_end(&it);
    return r;
}

int hf_meta_op_readdir(struct hf_meta *m, struct hf_meta_op *op, const Hf__ReaddirReq *q,
                       Hf__ReaddirRep *p)
{
    struct page g = {.m = m, .op = op, .q = q, .p = p};
    struct hf_obj dir;
    int r = hf_obj_load(m, op, q->dir, q->gen, &dir, &p->dir);

    if (r)
        return r;
    if (dir.i.type != HF__FILE_TYPE__FT_DIR)
        return HF_E_NOTDIR;
    r = hf_may(m, &dir.i, q->cred, HF_R);
    if (r)
        return r;
    if (q->cookie > INT64_MAX)
        return HF_E_BAD_COOKIE;
    /* Attributes of entries are what lookups would give: they need search permission. */
    g.attrs = q->plus && hf_may(m, &dir.i, q->cred, HF_X) == 0;
    r = page_init(&g);
    if (r == 0)
        r = add_dots(&g, &dir.i);
    if (r == 0)
        r = add_entries(&g, &dir.i);
    if (r != 1 && r != HF_E_NOENT) {
        p->n_entries = 0;
        return r;
    }
    p->eof = r == HF_E_NOENT;
    return hf_touch_atime(m, op, &dir);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Random operations against a model of a POSIX namespace that is a table; then the check, and a
 * second store that is fed with the redo only and must end up the same.
 */
#include <stdio.h>

#include "support_meta.h"

#include "holdfast/map.h"

enum { OBJS = 160, NAMES = 14, BYTES = 256 };

/* Some differ in case only. */
static const char *const names[NAMES] = {"a",
                                         "A",
                                         "b",
                                         "file",
                                         "File",
                                         "FILE",
                                         "\xc3\xa4",
                                         "\xc3\x84",
                                         "\xff\xfe",
                                         "x y",
                                         "long name with words",
                                         "...",
                                         "k",
                                         "\xe2\x84\xaa"};

struct obj {
    bool live;
    uint32_t type, nlink;
    struct fh fh;
    int parent; /* of a directory */
    uint32_t size;
    uint8_t bytes[BYTES];
    int entries[NAMES]; /* of a directory: object, -1 none */
};

struct model {
    struct shard s;
    struct hf_store *copy;
    char copy_dir[64];
    uint64_t rnd;
    struct obj o[OBJS];
};

static uint32_t pick(struct model *m, uint32_t n)
{
    m->rnd = hf_hash_u64(m->rnd + 0x9e3779b97f4a7c15);
    return (uint32_t)(m->rnd % n);
}

static void obj_init(struct obj *o, uint32_t type, struct fh fh, int parent)
{
    *o = (struct obj){
        .live = true, .type = type, .nlink = type == DIR_ ? 2 : 1, .fh = fh, .parent = parent};
    for (int k = 0; k < NAMES; k++)
        o->entries[k] = -1;
}

static int free_obj(struct model *m)
{
    for (int k = 1; k < OBJS; k++)
        if (!m->o[k].live)
            return k;
    return -1;
}

static unsigned live(const struct model *m)
{
    unsigned n = 0;

    for (int k = 0; k < OBJS; k++)
        n += m->o[k].live;
    return n;
}

/* Any object, alive or gone (its handle is stale then). type 0: any. */
static int any(struct model *m, uint32_t type)
{
    for (unsigned tries = 0; tries < 1000; tries++) {
        int k = (int)pick(m, OBJS);

        if (m->o[k].fh.ino && (!type || m->o[k].type == type) && (m->o[k].live || pick(m, 20) == 0))
            return k;
    }
    return 0;
}

static bool is_empty(const struct obj *o)
{
    for (int k = 0; k < NAMES; k++)
        if (o->entries[k] >= 0)
            return false;
    return true;
}

static void drop(struct model *m, int dir, int name)
{
    struct obj *o = &m->o[m->o[dir].entries[name]];

    m->o[dir].entries[name] = -1;
    if (o->type == DIR_) {
        o->live = false;
        m->o[dir].nlink--;
    } else if (--o->nlink == 0) {
        o->live = false;
    }
}

/* A name, mostly one that the directory has. */
static int a_name(struct model *m, const struct obj *dir)
{
    int n = (int)pick(m, NAMES);

    for (unsigned tries = pick(m, 12); tries && dir->entries[n] < 0; tries--)
        n = (int)pick(m, NAMES);
    return n;
}

/* ---- one function per operation: what should happen, what happens ---- */

static int expect_dir(const struct obj *d)
{
    return !d->live ? HF_E_STALE : d->type != DIR_ ? HF_E_NOTDIR : 0;
}

static void step_make(struct model *m)
{
    static const uint32_t types[] = {REG, REG, DIR_, LNK, FIFO};
    int d = any(m, pick(m, 10) ? (uint32_t)DIR_ : 0), n = (int)pick(m, NAMES), k = free_obj(m);
    uint32_t type = types[pick(m, 5)];
    struct obj *dir = &m->o[d];
    int want = expect_dir(dir), got;
    struct fh fh;

    if (k < 0)
        return;
    if (want == 0 && dir->entries[n] >= 0)
        want = HF_E_EXIST;
    if (type == REG)
        got = t_create(&m->s, &t_root, dir->fh, names[n], 0644, &fh);
    else
        got = t_make(&m->s, &t_root, dir->fh, names[n], type, 0755, &fh);
    cr_status(got, want);
    if (got)
        return;
    obj_init(&m->o[k], type, fh, d);
    m->o[k].size = type == LNK ? 6 : 0;
    dir->entries[n] = k;
    dir->nlink += type == DIR_;
}

static void step_remove(struct model *m)
{
    int d = any(m, DIR_);
    struct obj *dir = &m->o[d], *o;
    int n = a_name(m, dir);
    bool fits = dir->entries[n] >= 0 && m->o[dir->entries[n]].type == DIR_;
    bool rmdir = pick(m, 8) ? fits : !fits;
    int want = expect_dir(dir);

    if (want == 0 && dir->entries[n] < 0)
        want = HF_E_NOENT;
    if (want == 0) {
        o = &m->o[dir->entries[n]];
        if (rmdir)
            want = o->type != DIR_ ? HF_E_NOTDIR : is_empty(o) ? 0 : HF_E_NOTEMPTY;
        else
            want = o->type == DIR_ ? HF_E_ISDIR : 0;
    }
    cr_status(t_remove(&m->s, &t_root, dir->fh, names[n], rmdir), want);
    if (want == 0)
        drop(m, d, n);
}

static void step_link(struct model *m)
{
    int d = any(m, DIR_), n = (int)pick(m, NAMES), k = any(m, 0);
    struct obj *dir = &m->o[d], *o = &m->o[k];
    int want = !o->live ? HF_E_STALE : expect_dir(dir);

    if (want == 0)
        want = o->type == DIR_ ? HF_E_PERM : dir->entries[n] >= 0 ? HF_E_EXIST : 0;
    cr_status(t_link(&m->s, &t_root, o->fh, dir->fh, names[n]), want);
    if (want)
        return;
    dir->entries[n] = k;
    o->nlink++;
}

static bool is_inside(struct model *m, int dir, int top)
{
    while (dir != top && dir != 0)
        dir = m->o[dir].parent;
    return dir == top;
}

static int expect_rename(struct model *m, int d1, int n1, int d2, int n2, bool *same)
{
    int r1 = expect_dir(&m->o[d1]), r2 = expect_dir(&m->o[d2]), s, t;
    struct obj *src, *dst;

    *same = false;
    if (r1 || r2)
        return r1 ? r1 : r2;
    s = m->o[d1].entries[n1];
    t = m->o[d2].entries[n2];
    if (s < 0)
        return HF_E_NOENT;
    if (s == t) {
        *same = true;
        return 0;
    }
    src = &m->o[s];
    if (src->type == DIR_ && d1 != d2 && is_inside(m, d2, s))
        return HF_E_INVAL;
    if (t < 0)
        return 0;
    dst = &m->o[t];
    if (src->type == DIR_)
        return dst->type != DIR_ ? HF_E_NOTDIR : is_empty(dst) ? 0 : HF_E_NOTEMPTY;
    return dst->type == DIR_ ? HF_E_ISDIR : 0;
}

static void step_rename(struct model *m)
{
    int d1 = any(m, DIR_), d2 = pick(m, 2) ? any(m, DIR_) : d1;
    int n1 = a_name(m, &m->o[d1]), n2 = a_name(m, &m->o[d2]), s;
    bool same;
    int want = expect_rename(m, d1, n1, d2, n2, &same);

    cr_status(t_rename(&m->s, &t_root, m->o[d1].fh, names[n1], m->o[d2].fh, names[n2]), want);
    if (want || same)
        return;
    s = m->o[d1].entries[n1];
    if (m->o[d2].entries[n2] >= 0)
        drop(m, d2, n2);
    m->o[d1].entries[n1] = -1;
    m->o[d2].entries[n2] = s;
    if (m->o[s].type == DIR_) {
        m->o[s].parent = d2;
        m->o[d1].nlink--;
        m->o[d2].nlink++;
    }
}

static void step_write(struct model *m)
{
    struct obj *o = &m->o[any(m, REG)];
    uint32_t at = pick(m, BYTES - 32), len = pick(m, 32);
    uint8_t bytes[32];
    int want = !o->live ? HF_E_STALE : o->type != REG ? HF_E_INVAL : 0;

    memset(bytes, (int)pick(m, 256), sizeof(bytes));
    cr_status(t_write(&m->s, &t_root, o->fh, at, bytes, len), want);
    if (want || len == 0)
        return;
    memcpy(o->bytes + at, bytes, len);
    if (at + len > o->size)
        o->size = at + len;
}

static void step_truncate(struct model *m)
{
    struct obj *o = &m->o[any(m, REG)];
    uint32_t size = pick(m, BYTES);
    int want = !o->live ? HF_E_STALE : o->type != REG ? HF_E_INVAL : 0;

    cr_status(t_truncate(&m->s, &t_root, o->fh, size), want);
    if (want)
        return;
    memset(o->bytes + size, 0, BYTES - size);
    o->size = size;
}

static void step_look(struct model *m)
{
    struct obj *d = &m->o[any(m, DIR_)], *o = &m->o[any(m, 0)];
    int n = (int)pick(m, NAMES), want = expect_dir(d);
    struct fh fh;
    Hf__Attr a;

    if (want == 0 && d->entries[n] < 0)
        want = HF_E_NOENT;
    cr_status(t_lookup(&m->s, &t_root, d->fh, names[n], &fh), want);
    cr_assert(want || fh.ino == m->o[d->entries[n]].fh.ino);
    if (!o->live)
        return;
    a = t_attr(&m->s, o->fh);
    cr_assert(a.type == o->type && a.nlink == o->nlink, "nlink %u, want %u", a.nlink, o->nlink);
    cr_assert(o->type != DIR_ || a.parent == m->o[o->parent].fh.ino);
    cr_assert(o->type == DIR_ || a.size == o->size);
    if (o->type != REG)
        return;
    cr_ok(t_read(&m->s, &t_root, o->fh, 0, BYTES));
    cr_assert(m->s.op.reply_bulk.len == o->size &&
              (o->size == 0 || memcmp(m->s.op.reply_bulk.data, o->bytes, o->size) == 0));
}

static void step_list(struct model *m)
{
    struct obj *d = &m->o[any(m, DIR_)];
    Hf__ReaddirReq q = HF__READDIR_REQ__INIT;
    const Hf__ReaddirRep *p;
    int n = 2, seen = 0;

    q.cred = &t_root;
    q.dir = d->fh.ino;
    q.gen = d->fh.gen;
    q.max_bytes = 1 << 20;
    cr_status(do_readdir(&m->s, &q, &p), expect_dir(d));
    if (m->s.op.status)
        return;
    for (int k = 0; k < NAMES; k++)
        n += d->entries[k] >= 0;
    cr_assert(p->eof && p->n_entries == (size_t)n);
    for (size_t e = 2; e < p->n_entries; e++)
        for (int k = 0; k < NAMES; k++)
            if (d->entries[k] >= 0 &&
                hf_slice_eq(hf_slice_str(names[k]),
                            hf_slice(p->entries[e]->name.data, p->entries[e]->name.len)))
                seen += p->entries[e]->ino == m->o[d->entries[k]].fh.ino &&
                        p->entries[e]->type == m->o[d->entries[k]].type;
    cr_assert_eq(seen, n - 2);
}

static void step(struct model *m)
{
    static void (*const steps[])(struct model *) = {
        step_make,   step_make,  step_make,  step_remove,   step_remove, step_link, step_rename,
        step_rename, step_write, step_write, step_truncate, step_look,   step_look, step_list,
    };

    if (live(m) > OBJS * 3 / 4 && pick(m, 2))
        step_remove(m);
    else
        steps[pick(m, HF_ARRAY_LEN(steps))](m);
}

/* ---- the second store ---- */

static void feed_copy(struct model *m)
{
    struct hf_buf redo = {0};

    cr_ok(hf_store_redo_take(m->s.store, &redo));
    if (redo.len)
        cr_ok(hf_store_redo_apply(m->copy, hf_buf_slice(&redo)));
    hf_buf_fini(&redo);
}

static int collect(void *arg, struct hf_slice key, struct hf_slice val)
{
    uint32_t lens[2] = {(uint32_t)key.len, (uint32_t)val.len};

    cr_ok(hf_buf_append(arg, lens, sizeof(lens)));
    cr_ok(hf_buf_append(arg, key.data, key.len));
    return hf_buf_append(arg, val.data, val.len);
}

static void table_bytes(struct hf_store *s, unsigned table, struct hf_buf *out)
{
    struct hf_store_snap *snap;

    hf_buf_reset(out);
    cr_ok(hf_store_snap_open(s, &snap));
    cr_ok(hf_store_snap_scan(snap, table, hf_slice("", 1), collect, out));
    hf_store_snap_close(snap);
}

static void expect_same(struct model *m)
{
    struct hf_buf a = {0}, b = {0};
    size_t total = 0;

    feed_copy(m);
    shard_checkpoint(&m->s);
    cr_ok(hf_store_checkpoint(m->copy, 1));
    for (unsigned t = 0; t < hf_meta_ntables; t++) {
        table_bytes(m->s.store, t, &a);
        table_bytes(m->copy, t, &b);
        cr_assert(hf_slice_eq(hf_buf_slice(&a), hf_buf_slice(&b)), "table %s differs",
                  hf_meta_tables[t]);
        total += a.len;
    }
    cr_assert(total > 1000);
    hf_buf_fini(&a);
    hf_buf_fini(&b);
}

static void run(enum hf_store_kind kind, uint64_t seed, unsigned steps)
{
    static struct model m;
    unsigned full = 0;

    memset(&m, 0, sizeof(m));
    m.rnd = seed;
    shard_open(&m.s, kind);
    m.copy = store_open(kind, m.copy_dir);
    hf_store_batch(m.copy, 1);
    obj_init(&m.o[0], DIR_, t_root_dir, 0);
    for (unsigned k = 0; k < steps; k++) {
        step(&m);
        full += live(&m) == OBJS;
        if (k % 301 == 0)
            feed_copy(&m);
        if (k % 4999 == 0)
            shard_reopen(&m.s);
        if (k % 25000 == 24999)
            cr_assert_eq(shard_check(&m.s, NULL), 0);
    }
    cr_assert_eq(shard_check(&m.s, NULL), 0);
    expect_same(&m);
    cr_assert(full < steps / 2, "the table was full most of the time: nothing could be made");
    store_close(m.copy, m.copy_dir);
    shard_close(&m.s);
}

Test(model, mem, .timeout = 110)
{
    run(HF_STORE_MEM, 1, 100000);
}

Test(model, mem_other_seed, .timeout = 110)
{
    run(HF_STORE_MEM, 20261130, 30000);
}

Test(model, lmdb, .timeout = 110)
{
    run(HF_STORE_LMDB, 3, 20000);
}

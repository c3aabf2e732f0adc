/* SPDX-License-Identifier: Apache-2.0
 *
 * The check finds what is wrong: each kind of damage is made by hand.
 */
#include <stdio.h>

#include "support_meta.h"

#include "meta_priv.h"

struct world {
    struct shard s;
    struct fh d, sub, f, l;
};

static void world_open(struct world *w)
{
    shard_open(&w->s, HF_STORE_MEM);
    cr_ok(t_make(&w->s, &t_root, t_root_dir, "d", DIR_, 0755, &w->d));
    cr_ok(t_make(&w->s, &t_root, w->d, "sub", DIR_, 0755, &w->sub));
    cr_ok(t_create(&w->s, &t_root, w->d, "f", 0644, &w->f));
    cr_ok(t_write(&w->s, &t_root, w->f, 0, "hello", 5));
    cr_ok(t_symlink(&w->s, &t_root, w->d, "l", "target", &w->l));
    cr_assert_eq(shard_check(&w->s, NULL), 0);
}

/* Exactly these problems, in this order. */
static void expect(struct world *w, const char *want)
{
    char kinds[512];

    shard_check(&w->s, kinds);
    cr_assert_str_eq(kinds, want);
    shard_close(&w->s);
}

static struct hf_inode get(struct world *w, struct fh o)
{
    struct hf_inode i;

    cr_ok(hf_ino_get(w->s.meta, o.ino, &i));
    return i;
}

static uint64_t cookie_of(struct world *w, struct fh dir, const char *name)
{
    struct hf_dent d;

    cr_ok(hf_dent_find(w->s.meta, dir.ino, hf_slice_str(name), &d));
    return d.cookie;
}

Test(check, dangling_name)
{
    struct world w;

    world_open(&w);
    cr_ok(hf_ino_del(w.s.meta, w.f.ino));
    expect(&w, "dangling-name inline ");
}

Test(check, unreachable_file)
{
    struct world w;

    world_open(&w);
    cr_ok(hf_dent_del(w.s.meta, w.d.ino, cookie_of(&w, w.d, "f")));
    expect(&w, "unreachable parent ");
}

Test(check, unreachable_directory)
{
    struct world w;

    world_open(&w);
    cr_ok(hf_dent_del(w.s.meta, w.d.ino, cookie_of(&w, w.d, "sub")));
    char kinds[512];
    cr_assert_eq(shard_check(&w.s, kinds), 2);
    cr_assert(strstr(kinds, "unreachable ") && strstr(kinds, "nlink "));
    shard_close(&w.s);
}

/* d/sub and a directory x in sub: sub is taken out of d and put into x. */
Test(check, loop)
{
    struct world w;
    struct hf_inode i;
    struct hf_dent e;
    struct fh x;

    world_open(&w);
    cr_ok(t_make(&w.s, &t_root, w.sub, "x", DIR_, 0755, &x));
    cr_ok(hf_dent_del(w.s.meta, w.d.ino, cookie_of(&w, w.d, "sub")));
    cr_status(hf_dent_find(w.s.meta, x.ino, hf_slice_str("sub"), &e), HF_E_NOENT);
    cr_ok(hf_dent_put(w.s.meta, x.ino, e.cookie, w.sub.ino, DIR_, hf_slice_str("sub")));
    i = get(&w, w.d);
    i.nlink--;
    cr_ok(hf_ino_put(w.s.meta, &i));
    i = get(&w, x);
    i.nlink++;
    cr_ok(hf_ino_put(w.s.meta, &i));
    i = get(&w, w.sub);
    i.parent = x.ino;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "unreachable ");
}

Test(check, link_counts)
{
    struct world w;
    struct hf_inode i;

    world_open(&w);
    i = get(&w, w.f);
    i.nlink = 2;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "nlink ");
    world_open(&w);
    i = get(&w, w.d);
    i.nlink = 2;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "nlink ");
}

Test(check, second_name_of_directory)
{
    struct world w;
    struct hf_dent e;

    world_open(&w);
    cr_status(hf_dent_find(w.s.meta, w.d.ino, hf_slice_str("again"), &e), HF_E_NOENT);
    cr_ok(hf_dent_put(w.s.meta, w.d.ino, e.cookie, w.sub.ino, DIR_, hf_slice_str("again")));
    char kinds[512];
    cr_assert_eq(shard_check(&w.s, kinds), 2);
    cr_assert_str_eq(kinds, "nlink nlink ");
    shard_close(&w.s);
}

Test(check, parents)
{
    struct world w;
    struct hf_inode i;

    world_open(&w);
    i = get(&w, w.f);
    i.parent = w.sub.ino;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "parent ");
    world_open(&w);
    i = get(&w, w.sub);
    i.parent = t_root_dir.ino;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "parent ");
    world_open(&w);
    i = get(&w, w.f);
    i.parent = 0; /* not known: allowed */
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "");
}

Test(check, names)
{
    struct world w;
    uint64_t c;

    world_open(&w);
    c = cookie_of(&w, w.d, "f");
    cr_ok(hf_dent_put(w.s.meta, w.d.ino, c + 5, w.f.ino, REG, hf_slice_str("f")));
    expect(&w, "duplicate-name nlink ");
    world_open(&w);
    cr_ok(hf_dent_put(w.s.meta, w.d.ino, c, w.f.ino, REG, hf_slice_str("g")));
    expect(&w, "cookie ");
    world_open(&w);
    cr_ok(hf_dent_put(w.s.meta, w.d.ino, c, w.f.ino, FIFO, hf_slice_str("f")));
    expect(&w, "type ");
    world_open(&w);
    c = cookie_of(&w, w.d, "f");
    cr_ok(hf_dent_put(w.s.meta, 12345, c, w.f.ino, REG, hf_slice_str("f")));
    expect(&w, "dangling-name ");
}

Test(check, content)
{
    struct world w;
    struct hf_inode i;
    uint8_t row[64] = {0};

    world_open(&w);
    cr_ok(hf_data_del(w.s.meta, w.f.ino));
    expect(&w, "inline ");
    world_open(&w);
    i = get(&w, w.f);
    i.size = 4;
    cr_ok(hf_ino_put(w.s.meta, &i));
    expect(&w, "inline ");
    world_open(&w);
    cr_ok(hf_data_put(w.s.meta, w.l.ino, row, 5));
    expect(&w, "size ");
    world_open(&w);
    cr_ok(hf_data_put(w.s.meta, w.d.ino, row, 5));
    expect(&w, "inline ");
    world_open(&w);
    cr_ok(hf_data_put(w.s.meta, 4711, row, 5));
    expect(&w, "inline ");
}

static void damage(struct world *w, enum hf_meta_table t, const uint8_t *key, size_t len)
{
    cr_ok(hf_store_put(w->s.store, t, hf_slice(key, len), hf_slice("\1rubbish", 8)));
}

Test(check, values)
{
    uint8_t ino[HF_KEY_INO], dent[HF_KEY_DENT], gc[HF_KEY_GC];
    struct world w;

    world_open(&w);
    hf_key_ino(ino, 999);
    damage(&w, HF_T_INO, ino, sizeof(ino));
    expect(&w, "bad-value ");
    world_open(&w);
    hf_key_dent(dent, w.d.ino, 99999);
    damage(&w, HF_T_DENT, dent, sizeof(dent));
    expect(&w, "bad-value ");
    world_open(&w);
    damage(&w, HF_T_DENT, dent, 5);
    expect(&w, "bad-value ");
    world_open(&w);
    hf_key_gc(gc, 1, 1, 0);
    damage(&w, HF_T_GC, gc, sizeof(gc));
    expect(&w, "bad-value ");
    world_open(&w);
    damage(&w, HF_T_DATA, ino, sizeof(ino));
    expect(&w, "bad-value ");
    world_open(&w);
    hf_key_ino(ino, w.f.ino); /* and the operations say so, too */
    damage(&w, HF_T_INO, ino, sizeof(ino));
    cr_status(t_lookup(&w.s, &t_root, w.d, "f", NULL), HF_E_CORRUPT);
    cr_status(t_write(&w.s, &t_root, w.f, 0, "x", 1), HF_E_CORRUPT);
    expect(&w, "bad-value dangling-name inline ");
}

struct layouts {
    unsigned live, gc;
    uint32_t nchunks;
};

static void on_layout(void *arg, uint64_t ino, uint32_t gen, uint32_t nchunks,
                      const uint32_t *segments, uint32_t nsegments, uint64_t size, bool gc)
{
    struct layouts *l = arg;

    cr_assert(ino && gen == 1 && nsegments == 2 && segments[0] >= 10 && (gc || size == 100000));
    l->live += !gc;
    l->gc += gc;
    l->nchunks += nchunks;
}

Test(check, layouts)
{
    Hf__WriteEndReq q = HF__WRITE_END_REQ__INIT;
    const Hf__WriteEndRep *p;
    struct layouts l = {0};
    struct hf_meta_check c = {.arg = &l, .layout = on_layout};
    struct hf_store_snap *snap;
    struct world w;
    struct fh gone;

    world_open(&w);
    cr_ok(t_create(&w.s, &t_root, w.d, "big", 0644, &w.f));
    cr_ok(t_write(&w.s, &t_root, w.f, 0, NULL, 100000));
    q.cred = &t_root;
    q.ino = w.f.ino;
    q.gen = w.f.gen;
    q.len = 100000;
    q.layout_gen = q.fence = 1;
    cr_ok(do_write_end(&w.s, &q, &p));
    cr_ok(t_create(&w.s, &t_root, w.d, "gone", 0644, &gone));
    cr_ok(t_write(&w.s, &t_root, gone, 0, NULL, 9000000));
    cr_ok(t_remove(&w.s, &t_root, w.d, "gone", false));
    shard_checkpoint(&w.s);
    cr_ok(hf_store_snap_open(w.s.store, &snap));
    cr_ok(hf_meta_check(snap, &c));
    hf_store_snap_close(snap);
    cr_assert(l.live == 1 && l.gc == 1 && l.nchunks == 1 + 3);
    cr_assert(c.inodes == 6 && c.dentries == 5 && c.problems == 0 && c.bytes == 5 + 6 + 100000);
    shard_close(&w.s);
}

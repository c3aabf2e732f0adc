/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast.allocation: the attribute, its inheritance, and where chunks go.
 */
#include "support_xattr.h"

#include <stdio.h>

#include "meta_priv.h"

#define NAME "holdfast.allocation"

/* The pool "hot" of the test map: segments 11, 12, 13, two of them for each file. */
enum { SEG_FIRST = 11, SEGS = 3, WIDTH = 2 };

static int set(struct shard *s, struct fh o, const char *how)
{
    return t_setx(s, &t_root, o, NAME, hf_slice_str(how), 0);
}

static void expect(struct shard *s, struct fh o, const char *how)
{
    int r = t_getx(s, &t_u2, o, NAME);

    if (!how) {
        cr_status(r, HF_E_NODATA);
        return;
    }
    cr_ok(r);
    cr_assert(hf_slice_eq(s->op.reply_bulk, hf_slice_str(how)));
}

BOTH_STORES(allocation, attribute)
{
    static const char *const all[] = {"free-space", "round-robin", "local"};
    static const char *const wrong[] = {"",           "local ",    "Local",
                                        "roundrobin", "free-spac", "free-space2"};
    struct shard s;
    struct fh d, f;
    Hf__Attr before;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "f", 0644, &f));
    expect(&s, d, NULL);
    cr_assert_eq(t_attr(&s, d).flags, 0);
    cr_status(t_delx(&s, &t_root, d, NAME), HF_E_NODATA);
    cr_status(t_setx(&s, &t_root, d, NAME, hf_slice_str("local"), HF__XATTR_FLAG__XA_REPLACE),
              HF_E_NODATA);
    for (size_t k = 0; k < 3; k++) {
        before = t_attr(&s, d);
        cr_ok(set(&s, d, all[k]));
        cr_assert_eq(s.op.event.op, HF__EVENT_OP__EV_XATTR);
        expect(&s, d, all[k]);
        cr_assert(t_attr(&s, d).change > before.change && t_attr(&s, d).ctime_ns > before.ctime_ns);
        cr_assert_eq(t_attr(&s, d).flags, HF__ATTR_FLAG__AF_XATTR);
        cr_status(t_setx(&s, &t_root, d, NAME, hf_slice_str("local"), HF__XATTR_FLAG__XA_CREATE),
                  HF_E_EXIST);
    }
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
        cr_status(set(&s, d, wrong[k]), HF_E_INVAL);
    cr_status(set(&s, f, "local"), HF_E_NOTDIR);
    expect(&s, f, NULL);
    expect(&s, d, "local");
    cr_ok(t_delx(&s, &t_root, d, NAME));
    expect(&s, d, NULL);
    cr_assert_eq(t_attr(&s, d).flags, 0);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

static enum hf_alloc how_of(struct shard *s, struct fh o)
{
    struct hf_inode i;

    cr_ok(hf_ino_get(s->meta, o.ino, &i));
    return hf_ino_alloc_how(&i);
}

Test(allocation, inherited)
{
    struct shard s;
    struct fh d, sub, f, old, p, l;

    shard_open(&s, HF_STORE_MEM);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "old", 0644, &old));
    cr_ok(set(&s, d, "round-robin"));
    cr_ok(t_make(&s, &t_root, d, "sub", DIR_, 0755, &sub));
    cr_ok(t_create(&s, &t_root, sub, "f", 0644, &f));
    cr_ok(t_make(&s, &t_root, sub, "p", FIFO, 0644, &p));
    cr_ok(t_symlink(&s, &t_root, sub, "l", "t", &l));
    expect(&s, sub, "round-robin");
    cr_assert_eq(how_of(&s, f), HF_ALLOC_ROUND_ROBIN);
    cr_assert_eq(t_attr(&s, f).flags, 0);
    cr_assert(how_of(&s, old) == HF_ALLOC_UNSET && how_of(&s, p) == HF_ALLOC_UNSET &&
              how_of(&s, l) == HF_ALLOC_UNSET);
    cr_ok(set(&s, sub, "local")); /* its own, from now on */
    expect(&s, d, "round-robin");
    cr_assert_eq(how_of(&s, f), HF_ALLOC_ROUND_ROBIN);
    cr_ok(t_chmod(&s, &t_root, sub, 0700));
    expect(&s, sub, "local");
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* ---- where chunks go ---- */

static void segments(struct shard *s, struct fh dir, const char *name, const uint32_t *prefer,
                     size_t nprefer, uint32_t ret[WIDTH])
{
    Hf__WriteReq q = HF__WRITE_REQ__INIT;
    const Hf__WriteRep *p;
    struct fh f;

    cr_ok(t_create(s, &t_root, dir, name, 0644, &f));
    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.len = 1u << 20;
    q.prefer = (uint32_t *)(uintptr_t)prefer;
    q.n_prefer = nprefer;
    cr_ok(do_write(s, &q, &p));
    cr_assert_eq(p->next, HF__WRITE_NEXT__WRITE_CHUNKS);
    cr_assert_eq(p->layout->n_segments, WIDTH);
    cr_assert_eq(p->layout->pool, 1);
    cr_assert_neq(p->layout->segments[0], p->layout->segments[1]);
    for (size_t k = 0; k < WIDTH; k++) {
        ret[k] = p->layout->segments[k];
        cr_assert(ret[k] >= SEG_FIRST && ret[k] < SEG_FIRST + SEGS);
    }
    cr_ok(t_remove(s, &t_root, dir, name, false));
}

static void count(struct shard *s, struct fh dir, unsigned files, unsigned n[SEGS])
{
    uint32_t seg[WIDTH];

    memset(n, 0, SEGS * sizeof(n[0]));
    for (unsigned k = 0; k < files; k++) {
        segments(s, dir, "f", NULL, 0, seg);
        for (size_t j = 0; j < WIDTH; j++)
            n[seg[j] - SEG_FIRST]++;
    }
}

static void space(struct shard *s, uint64_t a, uint64_t b, uint64_t c)
{
    hf_meta_set_segment_free(s->meta, 11, a << 30);
    hf_meta_set_segment_free(s->meta, 12, b << 30);
    hf_meta_set_segment_free(s->meta, 13, c << 30);
}

Test(allocation, round_robin)
{
    struct hf_layout l;
    struct shard s;
    unsigned n[SEGS];
    struct fh d;

    shard_open(&s, HF_STORE_MEM);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(set(&s, d, "round-robin"));
    count(&s, d, 300, n);
    cr_assert(n[0] == 200 && n[1] == 200 && n[2] == 200);
    space(&s, 1, 1000, 50); /* space makes no difference */
    count(&s, d, 30, n);
    cr_assert(n[0] == 20 && n[1] == 20 && n[2] == 20);
    space(&s, 5, 0, 5); /* unless there is none */
    count(&s, d, 30, n);
    cr_assert(n[0] == 30 && n[1] == 0 && n[2] == 30);
    space(&s, 0, 0, 5); /* the full ones are left out, as ever */
    cr_ok(hf_place_pick(&s.meta->place, HF_ALLOC_ROUND_ROBIN, NULL, 0, 1, &l));
    cr_assert(l.nsegs == 1 && l.segs[0] == 13);
    shard_close(&s);
}

Test(allocation, free_space)
{
    static const char *const hows[] = {NULL, "free-space"};

    for (unsigned k = 0; k < 2; k++) {
        struct shard s;
        unsigned n[SEGS];
        struct fh d;

        shard_open(&s, HF_STORE_MEM);
        cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
        if (hows[k])
            cr_ok(set(&s, d, hows[k]));
        space(&s, 1000, 10, 10);
        count(&s, d, 300, n);
        cr_assert_gt(n[0], 280);
        cr_assert(n[1] > 100 && n[2] > 100); /* the second of each file */
        shard_close(&s);
    }
}

Test(allocation, local)
{
    static const uint32_t mine[] = {12}, both[] = {13, 12}, odd[] = {99, 10, 0, 13, 13, 13};
    uint32_t seg[WIDTH], many[70];
    struct shard s;
    struct fh d, other;

    shard_open(&s, HF_STORE_MEM);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_make(&s, &t_root, t_root_dir, "other", DIR_, 0755, &other));
    cr_ok(set(&s, d, "local"));
    space(&s, 100000, 1, 1);
    for (unsigned k = 0; k < 20; k++) {
        segments(&s, d, "f", mine, 1, seg);
        cr_assert(seg[0] == 12 && seg[1] != 12);
        segments(&s, d, "f", both, 2, seg);
        cr_assert(seg[0] == 13 && seg[1] == 12);
        segments(&s, d, "f", odd, 6, seg); /* unknown, of another pool, repeated */
        cr_assert(seg[0] == 13 && seg[1] != 13);
        segments(&s, other, "f", both, 2, seg); /* only where it was asked for */
        cr_assert(seg[0] == 11 || seg[1] == 11);
    }
    for (size_t k = 0; k < 70; k++)
        many[k] = 12;
    segments(&s, d, "f", many, 70, seg);
    cr_assert_eq(seg[0], 12);
    space(&s, 100, 0, 100); /* full: not even for its own machine */
    for (unsigned k = 0; k < 20; k++) {
        segments(&s, d, "f", mine, 1, seg);
        cr_assert(seg[0] != 12 && seg[1] != 12);
        segments(&s, d, "f", NULL, 0, seg);
        cr_assert(seg[0] != 12 && seg[1] != 12);
    }
    space(&s, 0, 0, 0); /* all full: the segments say so themselves */
    segments(&s, d, "f", mine, 1, seg);
    shard_close(&s);
}

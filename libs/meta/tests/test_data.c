/* SPDX-License-Identifier: Apache-2.0
 *
 * Content: inline, promotion, chunks, truncation and trimming, garbage.
 */
#include <stdlib.h>

#include "support_meta.h"

#define CHUNK (UINT64_C(4) << 20)

struct file {
    struct shard s;
    struct fh f;
};

static void file_open(struct file *x, enum hf_store_kind kind)
{
    shard_open(&x->s, kind);
    cr_ok(t_create(&x->s, &t_root, t_root_dir, "f", 0644, &x->f));
}

static void file_close(struct file *x)
{
    cr_assert_eq(shard_check(&x->s, NULL), 0);
    shard_close(&x->s);
}

static int write_at(struct file *x, uint64_t offset, uint32_t len, uint32_t stable,
                    const Hf__WriteRep **p)
{
    static uint8_t bytes[T_INLINE_MAX];
    Hf__WriteReq q = HF__WRITE_REQ__INIT;

    memset(bytes, 'w', sizeof(bytes));
    q.cred = &t_root;
    q.ino = x->f.ino;
    q.gen = x->f.gen;
    q.offset = offset;
    q.len = len;
    q.stable = stable;
    if (offset <= T_INLINE_MAX && offset + len <= T_INLINE_MAX)
        x->s.bulk = hf_slice(bytes, len);
    return do_write(&x->s, &q, p);
}

static int write_end(struct file *x, uint64_t offset, uint32_t len, uint32_t gen, uint32_t fence,
                     const Hf__WriteEndRep **p)
{
    Hf__WriteEndReq q = HF__WRITE_END_REQ__INIT;

    q.cred = &t_root;
    q.ino = x->f.ino;
    q.gen = x->f.gen;
    q.offset = offset;
    q.len = len;
    q.layout_gen = gen;
    q.fence = fence;
    return do_write_end(&x->s, &q, p);
}

static int promote(struct file *x, uint64_t change, uint32_t gen, uint64_t offset, uint32_t len,
                   const Hf__PromoteRep **p)
{
    Hf__PromoteReq q = HF__PROMOTE_REQ__INIT;

    q.cred = &t_root;
    q.ino = x->f.ino;
    q.gen = x->f.gen;
    q.promote_change = change;
    q.layout_gen = gen;
    q.offset = offset;
    q.len = len;
    return do_promote(&x->s, &q, p);
}

static int trim_done(struct file *x, uint32_t gen, uint32_t fence, const Hf__TrimDoneRep **p)
{
    Hf__TrimDoneReq q = HF__TRIM_DONE_REQ__INIT;

    q.ino = x->f.ino;
    q.gen = x->f.gen;
    q.layout_gen = gen;
    q.fence = fence;
    return do_trim_done(&x->s, &q, p);
}

/* A chunked file of `size` bytes. Its layout's gen and fence are 1. */
static void make_chunked(struct file *x, uint64_t size)
{
    const Hf__WriteRep *p;
    const Hf__WriteEndRep *e;

    for (uint64_t at = CHUNK; at < size; at += CHUNK)
        cr_ok(write_at(x, at - CHUNK, (uint32_t)CHUNK, 2, &p));

    cr_ok(write_at(x, size - 1, 1, 2, &p));
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_CHUNKS && p->layout->gen == 1 &&
              p->layout->fence == 1);
    cr_ok(write_end(x, size - 1, 1, 1, 1, &e));
    cr_assert(e->obj->after->size == size);
}

static int truncate_rep(struct file *x, uint64_t size, const Hf__SetattrRep **p)
{
    int r = t_truncate(&x->s, &t_root, x->f, size);

    *p = x->s.rep;
    return r;
}

static size_t gc_count(struct file *x, int64_t now_ns, struct hf_meta_gc *ret)
{
    struct hf_meta_gc g, *after = NULL;
    size_t n = 0;

    while (hf_meta_gc_next(x->s.meta, after, now_ns, ret) == 0) {
        g = *ret;
        after = &g;
        n++;
    }
    if (after)
        *ret = g;
    return n;
}

static void expect_content(struct file *x, uint64_t offset, uint32_t len, const char *want,
                           size_t want_len, bool eof)
{
    const Hf__ReadRep *p;

    cr_ok(t_read(&x->s, &t_root, x->f, offset, len));
    p = x->s.rep;
    cr_assert(!p->layout && x->s.op.reply_bulk.len == want_len, "%zu bytes",
              x->s.op.reply_bulk.len);
    cr_assert(want_len == 0 || memcmp(x->s.op.reply_bulk.data, want, want_len) == 0);
    cr_assert_eq(p->eof, eof);
}

BOTH_STORES(data, inline_content)
{
    struct file x;
    Hf__Attr a;

    file_open(&x, kind);
    expect_content(&x, 0, 100, "", 0, true);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "hello", 5));
    expect_content(&x, 0, 100, "hello", 5, true);
    expect_content(&x, 0, 5, "hello", 5, true);
    expect_content(&x, 0, 4, "hell", 4, false);
    expect_content(&x, 1, 3, "ell", 3, false);
    expect_content(&x, 5, 1, "", 0, true);
    expect_content(&x, UINT64_MAX, 1, "", 0, true);
    cr_ok(t_write(&x.s, &t_root, x.f, 8, "X", 1));
    expect_content(&x, 0, 100, "hello\0\0\0X", 9, true);
    cr_ok(t_write(&x.s, &t_root, x.f, 1, "EL", 2));
    expect_content(&x, 0, 100, "hELlo\0\0\0X", 9, true);
    cr_ok(t_truncate(&x.s, &t_root, x.f, 3));
    cr_ok(t_truncate(&x.s, &t_root, x.f, 6));
    expect_content(&x, 0, 100, "hEL\0\0\0", 6, true);
    a = t_attr(&x.s, x.f);
    cr_assert(a.size == 6 && a.allocated == 512);
    cr_ok(t_truncate(&x.s, &t_root, x.f, 0));
    cr_assert(t_attr(&x.s, x.f).allocated == 0);
    cr_assert_eq(hf_store_count(x.s.store, HF_T_DATA), 0);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "back", 4));
    cr_ok(t_remove(&x.s, &t_root, t_root_dir, "f", false));
    cr_assert_eq(hf_store_count(x.s.store, HF_T_DATA), 0);
    cr_assert_eq(hf_store_count(x.s.store, HF_T_GC), 0);
    file_close(&x);
}

BOTH_STORES(data, write_errors)
{
    Hf__WriteReq q = HF__WRITE_REQ__INIT;
    const Hf__WriteRep *p;
    const Hf__WriteEndRep *e;
    struct file x;
    struct fh f;

    file_open(&x, kind);
    cr_status(write_at(&x, HF_META_FILE_MAX, 1, 2, &p), HF_E_FBIG);
    cr_status(write_at(&x, UINT64_MAX, 1, 2, &p), HF_E_FBIG);
    cr_status(write_at(&x, UINT64_MAX - 5, 100, 2, &p), HF_E_FBIG);
    cr_assert(p->obj->have_before && p->boot == 4711);
    cr_status(t_write(&x.s, &t_root, t_root_dir, 0, "x", 1), HF_E_INVAL);
    cr_status(t_read(&x.s, &t_root, t_root_dir, 0, 1), HF_E_INVAL);
    cr_ok(t_symlink(&x.s, &t_root, t_root_dir, "l", "x", &f));
    cr_status(t_write(&x.s, &t_root, f, 0, "x", 1), HF_E_INVAL);
    cr_status(t_write(&x.s, &t_root, f, UINT64_MAX, "x", 1), HF_E_INVAL);
    cr_status(t_write(&x.s, NULL, x.f, 0, "x", 1), HF_E_ACCES);
    q.cred = &t_root; /* the bulk does not have the length it says */
    q.ino = x.f.ino;
    q.gen = x.f.gen;
    q.len = 10;
    x.s.bulk = hf_slice("short", 5);
    cr_status(do_write(&x.s, &q, &p), HF_E_INVAL);
    cr_status(do_write(&x.s, &q, &p), HF_E_INVAL);
    cr_status(write_end(&x, 0, 1, 1, 1, &e), HF_E_CHANGED);
    cr_status(write_end(&x, UINT64_MAX, 1, 1, 1, &e), HF_E_FBIG);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "abc", 3));
    x.s.may_grow = false;
    cr_status(t_write(&x.s, &t_root, x.f, 1, "abc", 3), HF_E_NOSPC);
    cr_status(write_at(&x, 100000, 1, 2, &p), HF_E_NOSPC);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "xyz", 3));
    cr_ok(t_truncate(&x.s, &t_root, x.f, 1));
    x.s.may_grow = true;
    cr_ok(t_remove(&x.s, &t_root, t_root_dir, "f", false));
    cr_status(write_at(&x, 0, 1, 2, &p), HF_E_STALE);
    cr_status(write_end(&x, 0, 1, 1, 1, &e), HF_E_STALE);
    file_close(&x);
}

BOTH_STORES(data, lazy)
{
    const Hf__WriteRep *p;
    struct file x;

    file_open(&x, kind);
    cr_ok(write_at(&x, 0, 10, HF__STABLE__UNSTABLE, &p));
    cr_assert(x.s.op.lazy && x.s.op.event.op == HF__EVENT_OP__EV_WRITE && x.s.op.event.size == 10);
    cr_ok(write_at(&x, 0, 10, HF__STABLE__DATA_SYNC, &p));
    cr_assert(!x.s.op.lazy);
    cr_ok(write_at(&x, 0, 10, HF__STABLE__FILE_SYNC, &p));
    cr_assert(!x.s.op.lazy);
    cr_ok(t_read(&x.s, &t_root, x.f, 0, 10)); /* relatime: not read since it was written */
    cr_assert(x.s.op.lazy && x.s.op.event.op == HF__EVENT_OP__EV_ATIME);
    cr_assert(t_attr(&x.s, x.f).atime_ns > t_attr(&x.s, x.f).mtime_ns);
    cr_ok(t_read(&x.s, &t_root, x.f, 0, 10));
    cr_assert(!x.s.op.lazy && x.s.op.event.op == HF__EVENT_OP__EV_NONE);
    x.s.now_ns += INT64_C(25) * 3600 * 1000000000;
    cr_ok(t_read(&x.s, &t_root, x.f, 0, 10));
    cr_assert(x.s.op.lazy);
    cr_ok(write_at(&x, 20000, 10, HF__STABLE__UNSTABLE, &p));
    cr_assert(!x.s.op.lazy, "what reserves chunks is durable before they are written");
    file_close(&x);
}

BOTH_STORES(data, chunks)
{
    const Hf__WriteRep *p;
    const Hf__WriteEndRep *e;
    const Hf__ReadRep *rp;
    struct file x;
    struct hf_meta_gc g;

    file_open(&x, kind);
    cr_ok(write_at(&x, 0, 100000, 2, &p));
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_CHUNKS && !p->layout->trim);
    cr_assert(p->layout->pool == 1 && p->layout->chunk_bytes == CHUNK &&
              p->layout->n_segments == 2);
    cr_assert(p->layout->segments[0] != p->layout->segments[1] && p->layout->segments[0] >= 11);
    cr_assert(p->obj->after->size == 0, "size moves at the end");
    cr_ok(write_end(&x, 0, 100000, 1, 1, &e));
    cr_assert(e->obj->after->size == 100000 && e->obj->after->allocated == 131072 &&
              e->boot == 4711);
    cr_status(write_end(&x, 0, 1, 2, 1, &e), HF_E_CHANGED);
    cr_status(write_end(&x, 0, 1, 1, 2, &e), HF_E_CHANGED);
    cr_status(write_end(&x, 0, 1, 1, 0, &e), HF_E_CHANGED);
    cr_ok(write_at(&x, 0, 10, 2, &p)); /* small, with bulk: still to the chunks */
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_CHUNKS && x.s.op.event.op == HF__EVENT_OP__EV_NONE);
    cr_ok(t_read(&x.s, &t_root, x.f, 0, 50));
    rp = x.s.rep;
    cr_assert(rp->layout && rp->layout->gen == 1 && !rp->eof && x.s.op.reply_bulk.len == 0);
    cr_ok(t_read(&x.s, &t_root, x.f, 99999, 1));
    cr_assert(((const Hf__ReadRep *)x.s.rep)->eof);
    cr_ok(write_at(&x, 5 * CHUNK, 1, 2, &p)); /* the writer dies here */
    cr_ok(t_remove(&x.s, &t_root, t_root_dir, "f", false));
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 2);
    cr_assert(g.ino == x.f.ino && g.layout_gen == 1 && g.nsegments == 2);
    cr_assert(g.first_chunk == 5 && g.nchunks == 6);
    cr_ok(hf_meta_gc_done(x.s.meta, &g));
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 1);
    cr_assert(g.first_chunk == 0 && g.nchunks == 1);
    cr_ok(hf_meta_gc_done(x.s.meta, &g));
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 0);
    file_close(&x);
}

BOTH_STORES(data, promote)
{
    const Hf__WriteRep *p;
    const Hf__PromoteRep *pr;
    struct hf_meta_gc g;
    struct file x;
    uint64_t change;

    file_open(&x, kind);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "content", 7));
    cr_ok(write_at(&x, T_INLINE_MAX - 1, 2, 2, &p));
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_PROMOTE && p->layout->gen == 1 && !x.s.op.lazy);
    cr_assert(x.s.op.reply_bulk.len == 7 && memcmp(x.s.op.reply_bulk.data, "content", 7) == 0);
    change = p->promote_change;
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 0, "not due yet");
    expect_content(&x, 0, 100, "content", 7, true);
    cr_status(promote(&x, change + 1, 1, T_INLINE_MAX - 1, 2, &pr), HF_E_CHANGED);
    cr_status(promote(&x, change, 2, T_INLINE_MAX - 1, 2, &pr), HF_E_CHANGED);
    cr_ok(promote(&x, change, 1, T_INLINE_MAX - 1, 2, &pr));
    cr_assert(pr->obj->after->size == T_INLINE_MAX + 1 && pr->layout->gen == 1 &&
              pr->layout->fence == 1);
    cr_assert(pr->obj->after->allocated == 65536 && pr->obj->after->change == change + 1);
    cr_assert_eq(gc_count(&x, INT64_MAX, &g), 0, "the layout is in use");
    cr_assert_eq(hf_store_count(x.s.store, HF_T_DATA), 0);
    cr_status(promote(&x, change + 1, 1, 0, 2, &pr), HF_E_CHANGED);
    file_close(&x);
}

BOTH_STORES(data, promote_lost)
{
    const Hf__WriteRep *p;
    const Hf__PromoteRep *pr;
    struct hf_meta_gc g;
    struct file x;
    uint64_t change;

    file_open(&x, kind);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "content", 7));
    cr_ok(write_at(&x, 9000, 10, 2, &p));
    change = p->promote_change;
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "C", 1)); /* another writer comes between */
    cr_status(promote(&x, change, 1, 9000, 10, &pr), HF_E_CHANGED);
    cr_ok(write_at(&x, 9000, 10, 2, &p));
    cr_assert(p->layout->gen == 2, "chunks of an earlier try are never used again");
    change = p->promote_change;
    x.s.now_ns += INT64_C(600) * 1000000000; /* the entry falls due: its chunks may be going */
    cr_status(promote(&x, change, 2, 9000, 10, &pr), HF_E_CHANGED);
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 2);
    cr_assert(g.layout_gen == 2 && g.nchunks == 1);
    cr_ok(hf_meta_gc_done(x.s.meta, &g));
    cr_ok(write_at(&x, 9000, 10, 2, &p));
    cr_assert(p->layout->gen == 3);
    cr_ok(promote(&x, p->promote_change, 3, 9000, 10, &pr));
    cr_assert(pr->obj->after->size == 9010);
    file_close(&x);
}

/* An inline file made long by SETATTR, and an empty one. */
BOTH_STORES(data, sparse)
{
    const Hf__ReadRep *p;
    const Hf__WriteRep *w;
    struct file x;
    struct fh f2;

    file_open(&x, kind);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "abc", 3));
    cr_ok(t_truncate(&x.s, &t_root, x.f, UINT64_C(1) << 40));
    expect_content(&x, 1, 4, "bc\0\0", 4, false);
    cr_ok(t_read(&x.s, &t_root, x.f, (UINT64_C(1) << 40) - 5, 100));
    p = x.s.rep;
    cr_assert(p->eof && x.s.op.reply_bulk.len == 5);
    cr_ok(t_read(&x.s, &t_root, x.f, 0, 1 << 20));
    cr_assert(x.s.op.reply_bulk.len == 256 << 10 && !((const Hf__ReadRep *)x.s.rep)->eof);
    cr_ok(t_write(&x.s, &t_root, x.f, 5, "z", 1));
    expect_content(&x, 0, 8, "abc\0\0z\0\0", 8, false);
    cr_ok(write_at(&x, UINT64_C(1) << 30, 1, 2, &w));
    cr_assert(w->next == HF__WRITE_NEXT__WRITE_PROMOTE && x.s.op.reply_bulk.len == 6);
    cr_ok(t_create(&x.s, &t_root, t_root_dir, "e", 0644, &f2));
    cr_ok(t_truncate(&x.s, &t_root, f2, UINT64_C(1) << 40));
    cr_ok(t_read(&x.s, &t_root, f2, 0, 10));
    p = x.s.rep;
    cr_assert(p->layout && !p->eof);
    cr_ok(t_truncate(&x.s, &t_root, f2, 1));
    cr_assert(!((const Hf__SetattrRep *)x.s.rep)->layout, "no chunk was ever handed out");
    file_close(&x);
}

/* The trim duty, from SETATTR and from WRITE. */
BOTH_STORES(data, trim)
{
    const Hf__SetattrRep *sp;
    const Hf__TrimDoneRep *tp;
    const Hf__WriteEndRep *e;
    const Hf__WriteRep *p;
    struct file x;

    file_open(&x, kind);
    make_chunked(&x, 10 * CHUNK);
    cr_ok(truncate_rep(&x, 100, &sp));
    cr_assert(sp->layout && sp->layout->trim && sp->layout->fence == 2 &&
              sp->layout->trim_from == 100 && sp->layout->trim_to >= 10 * CHUNK);
    cr_assert(sp->obj->after->size == 100 && sp->obj->after->allocated == 65536);
    cr_status(write_end(&x, 0, 10, 1, 1, &e), HF_E_CHANGED);   /* the old fence */
    cr_status(write_end(&x, 200, 10, 1, 2, &e), HF_E_CHANGED); /* would uncover old bytes */
    cr_ok(write_end(&x, 50, 10, 1, 2, &e));
    cr_status(truncate_rep(&x, 101, &sp), HF_E_CHANGED);
    cr_assert(sp->layout && sp->layout->trim && sp->layout->fence == 2 &&
              sp->obj->after->size == 100);
    cr_ok(truncate_rep(&x, 100, &sp));
    cr_assert(sp->layout && sp->layout->trim && sp->layout->fence == 2, "still due");
    cr_ok(truncate_rep(&x, 40, &sp));
    cr_assert(sp->layout->fence == 3 && sp->layout->trim_from == 40 &&
              sp->layout->trim_to >= 10 * CHUNK);
    cr_ok(trim_done(&x, 1, 2, &tp)); /* of the truncation before */
    cr_assert(tp->layout->trim && tp->layout->fence == 3);
    cr_ok(write_at(&x, 30, 20, 2, &p));
    cr_assert(p->layout->trim && p->layout->trim_from == 40);
    cr_ok(trim_done(&x, 1, 3, &tp));
    cr_assert(!tp->layout->trim && tp->layout->fence == 4);
    cr_ok(trim_done(&x, 1, 3, &tp)); /* another trimmer, later */
    cr_assert(!tp->layout->trim && tp->layout->fence == 4);
    cr_status(write_end(&x, 30, 20, 1, 3, &e), HF_E_CHANGED);
    cr_ok(write_end(&x, 30, 20, 1, 4, &e));
    cr_assert(e->obj->after->size == 50);
    cr_ok(truncate_rep(&x, UINT64_C(1) << 40, &sp));
    cr_assert(!sp->layout);
    cr_ok(truncate_rep(&x, UINT64_C(1) << 39, &sp)); /* beyond every chunk: nothing to cut */
    cr_assert(!sp->layout);
    file_close(&x);
}

BOTH_STORES(data, create_over_chunks)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__CreateReq q = HF__CREATE_REQ__INIT;
    const Hf__CreateRep *p;
    const Hf__TrimDoneRep *tp;
    struct file x;

    file_open(&x, kind);
    make_chunked(&x, 3 * CHUNK);
    q.cred = &t_root;
    q.dir = t_root_dir.ino;
    q.gen = t_root_dir.gen;
    q.name = t_bytes("f");
    q.set = &set;
    set.set_size = true;
    set.size = 1;
    cr_ok(do_create(&x.s, &q, &p));
    cr_assert(!p->created && p->obj->size == 1 && p->layout->trim && p->layout->trim_from == 1);
    set.size = 5;
    cr_status(do_create(&x.s, &q, &p), HF_E_CHANGED);
    cr_assert(p->layout->trim && p->obj->size == 1);
    cr_ok(trim_done(&x, p->layout->gen, p->layout->fence, &tp));
    cr_ok(do_create(&x.s, &q, &p));
    cr_assert(p->obj->size == 5 && !p->layout);
    file_close(&x);
}

/* Cut to nothing: the chunks are garbage at once, the file starts again, and who still writes to
 * them is sent back. */
BOTH_STORES(data, cut_to_nothing)
{
    const Hf__WriteEndRep *e;
    const Hf__TrimDoneRep *tp;
    const Hf__SetattrRep *sp;
    const Hf__WriteRep *p;
    struct hf_meta_gc g;
    struct file x;

    file_open(&x, kind);
    make_chunked(&x, 3 * CHUNK);
    cr_ok(truncate_rep(&x, 1, &sp)); /* a duty that nobody sees to */
    cr_ok(truncate_rep(&x, 0, &sp));
    cr_assert(!sp->layout && sp->obj->after->size == 0 && sp->obj->after->allocated == 0);
    cr_assert_eq(gc_count(&x, x.s.now_ns, &g), 1);
    cr_assert(g.layout_gen == 1 && g.first_chunk == 0 && g.nchunks >= 3);
    cr_status(write_end(&x, 0, 10, 1, 2, &e), HF_E_CHANGED);
    cr_status(trim_done(&x, 1, 2, &tp), HF_E_CHANGED);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "new", 3));
    expect_content(&x, 0, 10, "new", 3, true);
    cr_ok(truncate_rep(&x, 0, &sp));
    cr_ok(write_at(&x, 0, 100000, 2, &p));
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_CHUNKS && p->layout->gen == 2 && !p->layout->trim);
    file_close(&x);
}

/* D4: a byte here and there up to the largest offset. Removal names few chunks. */
BOTH_STORES(data, very_sparse)
{
    static const uint64_t at[] = {(UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,
                                  (UINT64_C(1) << 32) - 1, UINT64_C(1) << 32,
                                  UINT64_C(1) << 40,       HF_META_FILE_MAX - 1};
    const Hf__WriteEndRep *e;
    const Hf__WriteRep *p;
    const Hf__SetattrRep *sp;
    const Hf__TrimDoneRep *tp;
    struct hf_meta_gc g;
    struct file x;
    uint64_t chunks = 0;
    unsigned duties = 0;

    file_open(&x, kind);
    for (size_t k = 0; k < HF_ARRAY_LEN(at); k++) {
        cr_ok(write_at(&x, at[k], 1, 2, &p));
        cr_ok(write_end(&x, at[k], 1, 1, 1, &e));
        cr_assert(e->obj->after->size == at[k] + 1);
        cr_assert(e->obj->after->allocated <= (k + 1) * 2 * CHUNK, "holes take no space");
    }
    cr_status(write_at(&x, HF_META_FILE_MAX, 1, 2, &p), HF_E_FBIG);
    cr_ok(truncate_rep(&x, (UINT64_C(1) << 31) + 1, &sp));
    for (const Hf__Layout *l = sp->layout; l->trim; l = tp->layout) {
        cr_assert(l->trim_to - l->trim_from <= 2 * CHUNK);
        cr_ok(trim_done(&x, l->gen, l->fence, &tp));
        duties++;
    }
    cr_assert(duties >= 4 && duties <= 6, "%u", duties);
    cr_ok(truncate_rep(&x, HF_META_FILE_MAX, &sp));
    cr_ok(t_remove(&x.s, &t_root, t_root_dir, "f", false));
    while (hf_meta_gc_next(x.s.meta, NULL, x.s.now_ns, &g) == 0) {
        chunks += g.nchunks - g.first_chunk;
        cr_ok(hf_meta_gc_done(x.s.meta, &g));
    }
    cr_assert(chunks >= 6 && chunks <= 10, "%llu", (unsigned long long)chunks);
    file_close(&x);
}

BOTH_STORES(data, commit)
{
    Hf__CommitReq q = HF__COMMIT_REQ__INIT;
    const Hf__CommitRep *p;
    const Hf__TrimDoneRep *tp;
    struct file x;

    file_open(&x, kind);
    q.cred = &t_u2;
    q.ino = x.f.ino;
    q.gen = x.f.gen;
    cr_ok(do_commit(&x.s, &q, &p));
    cr_assert(!p->layout && p->boot == 4711 && p->obj->have_before && p->obj->after);
    cr_status(trim_done(&x, 1, 1, &tp), HF_E_CHANGED);
    make_chunked(&x, CHUNK);
    cr_ok(do_commit(&x.s, &q, &p));
    cr_assert(p->layout && p->layout->gen == 1);
    q.ino = t_root_dir.ino;
    q.gen = t_root_dir.gen;
    cr_status(do_commit(&x.s, &q, &p), HF_E_INVAL);
    q.gen++;
    cr_status(do_commit(&x.s, &q, &p), HF_E_STALE);
    file_close(&x);
}

/* Segments are drawn by free space; full ones are left out; another pool never. */
Test(data, placement)
{
    unsigned hits[16] = {0};
    struct file x;
    const Hf__WriteRep *p;

    file_open(&x, HF_STORE_MEM);
    hf_meta_set_segment_free(x.s.meta, 11, UINT64_C(300) << 30);
    hf_meta_set_segment_free(x.s.meta, 12, UINT64_C(100) << 30);
    hf_meta_set_segment_free(x.s.meta, 13, 0);
    hf_meta_set_segment_free(x.s.meta, 99, 5);
    for (unsigned k = 0; k < 2000; k++) {
        cr_ok(t_create(&x.s, &t_root, t_root_dir, "p", 0644, &x.f));
        cr_ok(write_at(&x, 0, 100000, 2, &p));
        cr_assert_eq(p->layout->n_segments, 2);
        hits[p->layout->segments[0]]++;
        cr_ok(t_remove(&x.s, &t_root, t_root_dir, "p", false));
    }
    cr_assert(hits[10] == 0 && hits[13] == 0);
    cr_assert(hits[11] > 1350 && hits[11] < 1650, "%u", hits[11]);
    hf_meta_set_segment_free(x.s.meta, 11, 0);
    hf_meta_set_segment_free(x.s.meta, 12, 0);
    cr_ok(t_create(&x.s, &t_root, t_root_dir, "p", 0644, &x.f));
    cr_ok(write_at(&x, 0, 100000, 2, &p)); /* all full: the segment will say so */
    file_close(&x);
}

Test(data, no_segments)
{
    Hf__MapGetRep map = HF__MAP_GET_REP__INIT;
    const Hf__WriteRep *p;
    struct file x;

    file_open(&x, HF_STORE_MEM);
    cr_ok(hf_meta_set_map(x.s.meta, &map));
    cr_status(write_at(&x, 0, 100000, 2, &p), HF_E_NOSPC);
    cr_ok(t_write(&x.s, &t_root, x.f, 0, "abc", 3));
    cr_status(write_at(&x, 0, 100000, 2, &p), HF_E_NOSPC);
    cr_ok(t_truncate(&x.s, &t_root, x.f, 100000));
    file_close(&x);
}

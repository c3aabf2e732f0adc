/* SPDX-License-Identifier: Apache-2.0
 *
 * FALLOCATE and SEEK as tables of cases, on inline files and on chunks.
 */
#include <stdlib.h>

#include "support_meta.h"

#define CHUNK (UINT64_C(4) << 20)
#define MAX   HF_META_FILE_MAX

enum { ALLOC = 0, PUNCH = 1, ZERO = 2 };

static int falloc_as(struct shard *s, Hf__Cred *c, struct fh f, uint32_t mode, bool keep,
                     uint64_t offset, uint64_t len, bool opened, const Hf__FallocateRep **p)
{
    Hf__FallocateReq q = HF__FALLOCATE_REQ__INIT;

    q.cred = c;
    q.ino = f.ino;
    q.gen = f.gen;
    q.mode = mode;
    q.keep_size = keep;
    q.offset = offset;
    q.len = len;
    q.opened = opened;
    return do_fallocate(s, &q, p);
}

static int falloc(struct shard *s, struct fh f, uint32_t mode, bool keep, uint64_t offset,
                  uint64_t len, const Hf__FallocateRep **p)
{
    return falloc_as(s, &t_root, f, mode, keep, offset, len, false, p);
}

static int seek(struct shard *s, struct fh f, uint64_t offset, bool hole, const Hf__SeekRep **p)
{
    Hf__SeekReq q = HF__SEEK_REQ__INIT;

    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.offset = offset;
    q.hole = hole;
    return do_seek(s, &q, p);
}

static void finish(struct shard *s)
{
    cr_assert_eq(shard_check(s, NULL), 0);
    shard_close(s);
}

struct refusal {
    uint32_t mode;
    bool keep;
    uint64_t offset, len;
    int status;
};

BOTH_STORES(falloc, refusals)
{
    static const struct refusal cases[] = {
        {ALLOC, false, 0, 0, HF_E_INVAL},
        {PUNCH, true, 0, 0, HF_E_INVAL},
        {ZERO, false, 5, 0, HF_E_INVAL},
        {PUNCH, false, 0, 10, HF_E_NOTSUPP},
        {3, false, 0, 10, HF_E_NOTSUPP},
        {UINT32_MAX, true, 0, 10, HF_E_NOTSUPP},
        {ALLOC, false, MAX, 1, HF_E_FBIG},
        {ALLOC, false, MAX - 10, 11, HF_E_FBIG},
        {ZERO, false, 1, MAX, HF_E_FBIG},
        {ALLOC, true, MAX + 1, 1, HF_E_FBIG},
        {PUNCH, true, 0, UINT64_MAX, HF_E_FBIG},
        {PUNCH, true, UINT64_MAX, UINT64_MAX, HF_E_FBIG},
        {PUNCH, true, MAX, MAX, 0},
    };
    static const uint32_t types[] = {DIR_, LNK, FIFO, SOCK, BLK, CHR};
    const Hf__FallocateRep *p;
    const Hf__SeekRep *k;
    struct shard s;
    struct fh f, o;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(t_write(&s, &t_root, f, 0, "0123456789", 10));
    for (size_t n = 0; n < HF_ARRAY_LEN(cases); n++) {
        const struct refusal *c = &cases[n];
        int r = falloc(&s, f, c->mode, c->keep, c->offset, c->len, &p);

        cr_assert(r == c->status, "case %zu: %s", n, hf_err_name(r));
        cr_assert_eq(t_attr(&s, f).size, 10, "case %zu", n);
    }
    for (size_t n = 0; n < HF_ARRAY_LEN(types); n++) {
        cr_ok(t_make(&s, &t_root, t_root_dir, "o", types[n], 0777, &o));
        cr_status(falloc(&s, o, ALLOC, false, 0, 10, &p),
                  types[n] == DIR_ ? HF_E_ISDIR : HF_E_NODEV);
        cr_status(seek(&s, o, 0, false, &k), HF_E_INVAL);
        cr_ok(t_remove(&s, &t_root, t_root_dir, "o", types[n] == DIR_));
    }
    cr_status(falloc_as(&s, &t_u1, f, ALLOC, false, 0, 20, false, &p), HF_E_ACCES);
    cr_ok(falloc_as(&s, &t_u1, f, ALLOC, false, 0, 20, true, &p));
    cr_assert_eq(t_attr(&s, f).size, 20);
    s.may_grow = false;
    cr_status(falloc(&s, f, ALLOC, false, 0, 30, &p), HF_E_NOSPC);
    cr_ok(falloc(&s, f, PUNCH, true, 0, 30, &p));
    s.may_grow = true;
    finish(&s);
}

struct inline_case {
    uint32_t mode;
    bool keep;
    uint64_t offset, len, size;
    const char *want; /* '.' is a NUL */
};

BOTH_STORES(falloc, inline_content)
{
    static const struct inline_case cases[] = {
        {ALLOC, false, 0, 5, 10, "0123456789"},  {ALLOC, false, 0, 12, 12, "0123456789.."},
        {ALLOC, true, 0, 12, 10, "0123456789"},  {ALLOC, false, 20, 1, 21, "0123456789..........."},
        {PUNCH, true, 2, 3, 10, "01...56789"},   {PUNCH, true, 0, 10, 10, ".........."},
        {PUNCH, true, 7, 100, 10, "0123456..."}, {PUNCH, true, 10, 5, 10, "0123456789"},
        {PUNCH, true, 50, 5, 10, "0123456789"},  {ZERO, false, 2, 3, 10, "01...56789"},
        {ZERO, false, 8, 4, 12, "01234567...."}, {ZERO, true, 8, 4, 10, "01234567.."},
        {ZERO, true, 20, 4, 10, "0123456789"},   {ZERO, false, 12, 2, 14, "0123456789...."},
    };
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    for (size_t n = 0; n < HF_ARRAY_LEN(cases); n++) {
        const struct inline_case *c = &cases[n];
        Hf__Attr before, after;

        cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
        cr_ok(t_write(&s, &t_root, f, 0, "0123456789", 10));
        before = t_attr(&s, f);
        cr_ok(falloc(&s, f, c->mode, c->keep, c->offset, c->len, &p));
        cr_assert_eq(p->next, HF__WRITE_NEXT__WRITE_DONE);
        after = t_attr(&s, f);
        cr_assert_eq(after.size, c->size, "case %zu: size %lu", n, (unsigned long)after.size);
        cr_ok(t_read(&s, &t_root, f, 0, 100));
        cr_assert_eq(s.op.reply_bulk.len, c->size);
        for (size_t k = 0; k < c->size; k++)
            cr_assert_eq(((const uint8_t *)s.op.reply_bulk.data)[k],
                         c->want[k] == '.' ? 0 : (uint8_t)c->want[k], "case %zu, byte %zu", n, k);
        if (after.size != before.size)
            cr_assert(after.mtime_ns > before.mtime_ns && after.change > before.change);
        cr_assert_eq(shard_check(&s, NULL), 0, "case %zu", n);
        cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    }
    shard_close(&s);
}

/* setuid goes as with a write. */
BOTH_STORES(falloc, clears_setuid)
{
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh d, f;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    cr_ok(t_create(&s, &t_u1, d, "f", 04766, &f));
    cr_ok(falloc_as(&s, &t_root, f, ALLOC, false, 0, 10, false, &p));
    cr_assert_eq(t_attr(&s, f).mode, 04766);
    cr_ok(falloc_as(&s, &t_u2, f, ALLOC, false, 0, 20, false, &p));
    cr_assert_eq(t_attr(&s, f).mode, 0766);
    finish(&s);
}

/* ---- chunks ---- */

static void write_chunked(struct shard *s, struct fh f, uint64_t offset, uint32_t len)
{
    Hf__WriteReq q = HF__WRITE_REQ__INIT;
    Hf__WriteEndReq e = HF__WRITE_END_REQ__INIT;
    const Hf__WriteRep *p;
    const Hf__WriteEndRep *ep;

    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.offset = offset;
    q.len = len;
    cr_ok(do_write(s, &q, &p));
    cr_assert_eq(p->next, HF__WRITE_NEXT__WRITE_CHUNKS);
    e.cred = &t_root;
    e.ino = f.ino;
    e.gen = f.gen;
    e.offset = offset;
    e.len = len;
    e.layout_gen = p->layout->gen;
    e.fence = p->layout->fence;
    cr_ok(do_write_end(s, &e, &ep));
}

/* The reply of one operation dies with the next. */
struct pending {
    uint64_t offset, len;
    uint32_t gen, fence;
};

static struct pending keep(const Hf__FallocateRep *p)
{
    return (struct pending){p->offset, p->len, p->layout->gen, p->layout->fence};
}

static int zero_end(struct shard *s, struct fh f, const struct pending *p, bool punch)
{
    Hf__WriteEndReq e = HF__WRITE_END_REQ__INIT;
    const Hf__WriteEndRep *ep;

    e.cred = &t_root;
    e.ino = f.ino;
    e.gen = f.gen;
    e.offset = p->offset;
    e.len = p->len;
    e.layout_gen = p->gen;
    e.fence = p->fence;
    e.zero = true;
    e.keep_size = true;
    e.punch = punch;
    return do_write_end(s, &e, &ep);
}

struct chunk_case {
    uint32_t mode;
    bool keep;
    uint64_t offset, len; /* asked for */
    uint64_t size;        /* afterwards */
    uint64_t cut;         /* the part that the caller has to do; 0: nothing */
};

#define SIZE UINT64_C(1000000)

BOTH_STORES(falloc, chunks)
{
    static const struct chunk_case cases[] = {
        {PUNCH, true, 0, SIZE, SIZE, SIZE},
        {PUNCH, true, 1000, 5, SIZE, 5},
        {PUNCH, true, SIZE - 10, 100, SIZE, 10},
        {PUNCH, true, SIZE, 100, SIZE, 0},
        {PUNCH, true, 100, MAX, SIZE, SIZE - 100},
        {ZERO, true, SIZE - 10, 100, SIZE, 10},
        {ZERO, false, SIZE - 10, 100, SIZE + 90, 10},
        {ZERO, false, 10 * SIZE, 100, 10 * SIZE + 100, 0},
        {ZERO, false, 10, 10, SIZE, 10},
        {ALLOC, false, 0, 10, SIZE, 0},
        {ALLOC, false, 0, SIZE + 1, SIZE + 1, 0},
        {ALLOC, true, 0, SIZE + 1, SIZE, 0},
    };
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    for (size_t n = 0; n < HF_ARRAY_LEN(cases); n++) {
        const struct chunk_case *c = &cases[n];
        Hf__Attr before;

        cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
        write_chunked(&s, f, 0, SIZE);
        cr_ok(falloc(&s, f, c->mode, c->keep, c->offset, c->len, &p));
        cr_assert_eq(p->next, c->cut ? HF__WRITE_NEXT__WRITE_CHUNKS : HF__WRITE_NEXT__WRITE_DONE,
                     "case %zu", n);
        if (c->cut) {
            cr_assert(p->layout && p->offset == c->offset && p->len == c->cut, "case %zu: %lu", n,
                      (unsigned long)p->len);
            struct pending k = keep(p);
            before = t_attr(&s, f);
            cr_ok(zero_end(&s, f, &k, c->mode == PUNCH));
            cr_assert(t_attr(&s, f).mtime_ns > before.mtime_ns);
        }
        cr_assert_eq(t_attr(&s, f).size, c->size, "case %zu", n);
        cr_assert_eq(shard_check(&s, NULL), 0, "case %zu", n);
        cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    }
    shard_close(&s);
}

/* What is said to be allocated goes down, and is nothing only when all was punched. */
BOTH_STORES(falloc, allocated)
{
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    write_chunked(&s, f, 0, SIZE);
    uint64_t all = t_attr(&s, f).allocated;
    cr_assert_geq(all, SIZE);
    for (unsigned k = 0; k < 40; k++) {
        cr_ok(falloc(&s, f, PUNCH, true, 0, 65536, &p));
        struct pending c = keep(p);
        cr_ok(zero_end(&s, f, &c, true));
        cr_assert_lt(t_attr(&s, f).allocated, all);
        cr_assert_gt(t_attr(&s, f).allocated, 0, "the rest is still there");
    }
    cr_ok(falloc(&s, f, PUNCH, true, 0, SIZE, &p));
    struct pending c = keep(p);
    cr_ok(zero_end(&s, f, &c, true));
    cr_assert_eq(t_attr(&s, f).allocated, 0);
    finish(&s);
}

/* A punch whose file was cut meanwhile is refused. */
BOTH_STORES(falloc, truncated_meanwhile)
{
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    write_chunked(&s, f, 0, SIZE);
    cr_ok(falloc(&s, f, PUNCH, true, 0, SIZE, &p));
    struct pending c = keep(p);
    cr_ok(t_truncate(&s, &t_root, f, 100));
    cr_status(zero_end(&s, f, &c, true), HF_E_CHANGED);
    finish(&s);
}

/* More than there is free. */
BOTH_STORES(falloc, no_space)
{
    const Hf__FallocateRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    for (uint32_t k = 10; k < 14; k++)
        hf_meta_set_segment_free(s.meta, k, 100 << 20);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(falloc(&s, f, ALLOC, false, 0, 50 << 20, &p));
    cr_status(falloc(&s, f, ALLOC, false, 0, UINT64_C(1) << 40, &p), HF_E_NOSPC);
    cr_status(falloc(&s, f, ALLOC, true, 0, UINT64_C(1) << 40, &p), HF_E_NOSPC);
    cr_assert_eq(t_attr(&s, f).size, 50 << 20);
    finish(&s);
}

/* ---- SEEK ---- */

struct seek_case {
    uint64_t offset;
    bool hole;
    int status;
    bool found;
    uint64_t at, end;
};

static void seek_all(struct shard *s, struct fh f, const struct seek_case *cases, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct seek_case *c = &cases[k];
        const Hf__SeekRep *p;
        int r = seek(s, f, c->offset, c->hole, &p);

        cr_assert(r == c->status, "case %zu: %s", k, hf_err_name(r));
        if (r)
            continue;
        cr_assert_eq(p->found, c->found, "case %zu", k);
        cr_assert_eq(p->offset, c->at, "case %zu: %lu", k, (unsigned long)p->offset);
        if (!p->found)
            cr_assert(p->layout && p->range_end == c->end, "case %zu: %lu", k,
                      (unsigned long)p->range_end);
    }
}

BOTH_STORES(falloc, seek_inline)
{
    static const struct seek_case cases[] = {
        {0, false, 0, true, 0, 0},       {9, false, 0, true, 9, 0},
        {10, false, HF_E_NXIO, 0, 0, 0}, {0, true, 0, true, 10, 0},
        {50, true, 0, true, 50, 0},      {99, true, 0, true, 99, 0},
        {100, true, HF_E_NXIO, 0, 0, 0}, {UINT64_MAX, true, HF_E_NXIO, 0, 0, 0},
    };
    static const struct seek_case full[] = {{0, true, 0, true, 10, 0}, {9, true, 0, true, 10, 0}};
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(t_write(&s, &t_root, f, 0, "0123456789", 10));
    seek_all(&s, f, full, HF_ARRAY_LEN(full)); /* the end counts as a hole */
    cr_ok(t_truncate(&s, &t_root, f, 100));
    seek_all(&s, f, cases, HF_ARRAY_LEN(cases));
    finish(&s);
}

/* Chunk 0 and chunk 10 of a file of 20 chunks. What was handed out and never ended may be data, and
 * is never called a hole. */
BOTH_STORES(falloc, seek_chunks)
{
    static const struct seek_case cases[] = {
        {0, false, 0, false, 0, CHUNK},
        {CHUNK, false, 0, false, 10 * CHUNK, 11 * CHUNK},
        {10 * CHUNK + 5, false, 0, false, 10 * CHUNK + 5, 11 * CHUNK},
        {11 * CHUNK, false, HF_E_NXIO, 0, 0, 0},
        {0, true, 0, false, 0, CHUNK},
        {CHUNK, true, 0, true, CHUNK, 0},
        {10 * CHUNK, true, 0, false, 10 * CHUNK, 11 * CHUNK},
        {11 * CHUNK, true, 0, true, 11 * CHUNK, 0},
        {20 * CHUNK, true, HF_E_NXIO, 0, 0, 0},
    };
    static const struct seek_case later[] = {{15 * CHUNK, true, 0, false, 15 * CHUNK, 16 * CHUNK},
                                             {14 * CHUNK, true, 0, true, 14 * CHUNK, 0}};
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    write_chunked(&s, f, 0, 100000);
    write_chunked(&s, f, 10 * CHUNK, 100000);
    cr_ok(t_truncate(&s, &t_root, f, 20 * CHUNK));
    seek_all(&s, f, cases, HF_ARRAY_LEN(cases));
    cr_ok(t_write(&s, &t_root, f, 15 * CHUNK, NULL, 100)); /* no WRITE_END comes */
    seek_all(&s, f, later, HF_ARRAY_LEN(later));
    finish(&s);
}

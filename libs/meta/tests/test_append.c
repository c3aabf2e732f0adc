/* SPDX-License-Identifier: Apache-2.0
 *
 * Appends of several writers, and writers that do not come back.
 */
#include "support_meta.h"

#define SEC INT64_C(1000000000)

static int append(struct shard *s, struct fh f, uint32_t len, const Hf__WriteRep **p)
{
    static uint8_t bytes[T_INLINE_MAX];
    Hf__WriteReq q = HF__WRITE_REQ__INIT;

    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.offset = 77777; /* ignored */
    q.len = len;
    q.stable = HF__STABLE__FILE_SYNC;
    q.append = true;
    if (len <= sizeof(bytes))
        s->bulk = hf_slice(bytes, len);
    return do_write(s, &q, p);
}

static int end(struct shard *s, struct fh f, const Hf__WriteRep *w, uint32_t len)
{
    Hf__WriteEndReq q = HF__WRITE_END_REQ__INIT;
    const Hf__WriteEndRep *p;

    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.offset = w->offset;
    q.len = len;
    q.stable = HF__STABLE__FILE_SYNC;
    q.layout_gen = w->layout->gen;
    q.fence = w->layout->fence;
    q.append_token = w->append_token;
    return do_write_end(s, &q, &p);
}

static int promote(struct shard *s, struct fh f, const Hf__WriteRep *w, uint32_t len)
{
    Hf__PromoteReq q = HF__PROMOTE_REQ__INIT;
    const Hf__PromoteRep *p;

    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.promote_change = w->promote_change;
    q.layout_gen = w->layout->gen;
    q.offset = w->offset;
    q.len = len;
    q.stable = HF__STABLE__FILE_SYNC;
    q.append_token = w->append_token;
    return do_promote(s, &q, &p);
}

/* The reply of one operation dies with the next: what an append has to remember. */
struct pending {
    Hf__WriteRep rep;
    Hf__Layout layout;
};

static const Hf__WriteRep *keep(struct pending *k, const Hf__WriteRep *p)
{
    k->rep = *p;
    k->layout = *p->layout;
    k->layout.segments = NULL;
    k->layout.n_segments = 0;
    k->rep.layout = &k->layout;
    k->rep.obj = NULL;
    return &k->rep;
}

/* A file of chunks, len bytes long. */
static void chunked(struct shard *s, enum hf_store_kind kind, struct fh *f, uint32_t len)
{
    const Hf__WriteRep *p;
    struct pending k;

    shard_open(s, kind);
    cr_ok(t_create(s, &t_root, t_root_dir, "f", 0644, f));
    cr_ok(append(s, *f, len, &p));
    cr_assert_eq(p->next, HF__WRITE_NEXT__WRITE_CHUNKS);
    cr_assert(p->append_token && p->offset == 0);
    cr_ok(end(s, *f, keep(&k, p), len));
    cr_assert_eq(t_attr(s, *f).size, len);
}

static void finish(struct shard *s)
{
    cr_assert_eq(shard_check(s, NULL), 0);
    shard_close(s);
}

BOTH_STORES(append, inline_in_one_step)
{
    const Hf__WriteRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    for (unsigned k = 0; k < 10; k++) {
        cr_ok(append(&s, f, 100, &p));
        cr_assert(p->next == HF__WRITE_NEXT__WRITE_DONE && p->append_token == 0);
        cr_assert_eq(p->offset, k * 100);
    }
    cr_assert_eq(t_attr(&s, f).size, 1000);
    cr_ok(t_truncate(&s, &t_root, f, 10));
    cr_ok(append(&s, f, 5, &p));
    cr_assert_eq(p->offset, 10);
    finish(&s);
}

BOTH_STORES(append, one_at_a_time)
{
    const Hf__WriteRep *p;
    struct pending a, b;
    struct shard s;
    struct fh f, g;

    chunked(&s, kind, &f, 100000);
    cr_ok(append(&s, f, 5000, &p));
    cr_assert_eq(p->offset, 100000);
    keep(&a, p);
    cr_status(append(&s, f, 5000, &p), HF_E_JUKEBOX);
    cr_ok(t_create(&s, &t_root, t_root_dir, "g", 0644, &g));
    cr_ok(append(&s, g, 100000, &p)); /* another file does not wait */
    cr_ok(end(&s, f, &a.rep, 5000));
    cr_status(end(&s, f, &a.rep, 5000), HF_E_CHANGED);
    cr_ok(append(&s, f, 7, &p));
    cr_assert_eq(p->offset, 105000);
    keep(&b, p);
    cr_assert(a.rep.append_token != b.rep.append_token);
    cr_status(end(&s, f, &a.rep, 5000), HF_E_CHANGED); /* not its own */
    cr_ok(end(&s, f, &b.rep, 7));
    cr_assert_eq(t_attr(&s, f).size, 105007);
    finish(&s);
}

/* A writer that fails says so; the next one need not wait. */
BOTH_STORES(append, given_up)
{
    const Hf__WriteRep *p;
    struct pending a;
    struct shard s;
    struct fh f;

    chunked(&s, kind, &f, 100000);
    cr_ok(append(&s, f, 5000, &p));
    keep(&a, p);
    cr_ok(end(&s, f, &a.rep, 0));
    cr_assert_eq(t_attr(&s, f).size, 100000);
    cr_ok(append(&s, f, 10, &p));
    cr_assert_eq(p->offset, 100000);
    keep(&a, p);
    cr_ok(end(&s, f, &a.rep, 10));
    finish(&s);
}

/* A writer that is gone: after 30 s the next one may, under a fence that shuts the first one out,
 * whether the next one comes first or the service looks first. */
static void writer_gone(enum hf_store_kind kind, bool service_looks)
{
    const Hf__WriteRep *p;
    struct pending a, b;
    struct shard s;
    uint64_t ino;
    struct fh f;

    chunked(&s, kind, &f, 100000);
    cr_ok(append(&s, f, 5000, &p));
    keep(&a, p);
    s.now_ns += 29 * SEC;
    cr_status(append(&s, f, 10, &p), HF_E_JUKEBOX);
    cr_status(hf_meta_append_late(s.meta, s.now_ns, &ino), HF_E_NOENT);
    s.now_ns += 2 * SEC;
    cr_ok(hf_meta_append_late(s.meta, s.now_ns, &ino));
    cr_assert_eq(ino, f.ino);
    if (service_looks) {
        cr_ok(hf_meta_append_drop(s.meta, ino));
        cr_status(hf_meta_append_late(s.meta, s.now_ns, &ino), HF_E_NOENT);
    }
    cr_ok(append(&s, f, 10, &p));
    keep(&b, p);
    cr_assert_gt(b.layout.fence, a.layout.fence);
    cr_assert_eq(b.rep.offset, 100000);
    cr_status(end(&s, f, &a.rep, 5000), HF_E_CHANGED);
    cr_ok(end(&s, f, &b.rep, 10));
    cr_assert_eq(t_attr(&s, f).size, 100010);
    finish(&s);
}

BOTH_STORES(append, writer_gone_and_the_next_comes)
{
    writer_gone(kind, false);
}

BOTH_STORES(append, writer_gone_and_the_service_looks)
{
    writer_gone(kind, true);
}

/* The shard's memory forgets; the writer of before is refused, and its bytes are to be trimmed
 * before the file grows over them. */
BOTH_STORES(append, restart)
{
    const Hf__WriteRep *p;
    struct pending a;
    struct shard s;
    struct fh f;

    chunked(&s, kind, &f, 100000);
    cr_ok(append(&s, f, 5000, &p));
    keep(&a, p);
    shard_reopen(&s);
    s.boot = 4712;
    cr_status(end(&s, f, &a.rep, 5000), HF_E_CHANGED);
    cr_ok(append(&s, f, 10, &p));
    cr_assert(p->layout->trim && p->layout->trim_from == 100000);
    cr_assert_gt(p->layout->fence, a.layout.fence);
    finish(&s);
}

/* A file that goes takes its append along; a truncation sends the writer back. */
BOTH_STORES(append, removed_and_cut)
{
    const Hf__WriteRep *p;
    struct pending a;
    struct shard s;
    uint64_t ino;
    struct fh f;

    chunked(&s, kind, &f, 100000);
    cr_ok(append(&s, f, 5000, &p));
    keep(&a, p);
    cr_ok(t_truncate(&s, &t_root, f, 50));
    cr_status(end(&s, f, &a.rep, 5000), HF_E_CHANGED);
    cr_ok(append(&s, f, 5000, &p)); /* at once */
    cr_assert_eq(p->offset, 50);
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    s.now_ns += 31 * SEC;
    cr_status(hf_meta_append_late(s.meta, s.now_ns, &ino), HF_E_NOENT);
    finish(&s);
}

/* Out of inline: two that want to move the file, and a small one in between. */
BOTH_STORES(append, promotion)
{
    const Hf__WriteRep *p;
    struct pending a;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(append(&s, f, 100, &p));
    cr_ok(append(&s, f, 100000, &p));
    cr_assert(p->next == HF__WRITE_NEXT__WRITE_PROMOTE && p->offset == 100);
    keep(&a, p);
    cr_status(append(&s, f, 100000, &p), HF_E_JUKEBOX);
    cr_ok(append(&s, f, 5, &p)); /* this one fits: it comes first */
    cr_assert_eq(p->offset, 100);
    cr_status(promote(&s, f, &a.rep, 100000), HF_E_CHANGED);
    cr_ok(append(&s, f, 100000, &p));
    cr_assert_eq(p->offset, 105);
    keep(&a, p);
    cr_ok(promote(&s, f, &a.rep, 100000));
    cr_assert_eq(t_attr(&s, f).size, 100105);
    cr_ok(append(&s, f, 10, &p)); /* nothing is under way any more */
    finish(&s);
}

/* An append that fails for want of memory leaves nothing behind. */
Test(append, no_memory)
{
    const Hf__WriteRep *p;
    unsigned failed = 0;
    struct pending a;
    struct shard s;
    struct fh f;

    chunked(&s, HF_STORE_MEM, &f, 100000);
    for (size_t limit = 1; limit < 4000; limit += 8) {
        int r;

        hf_arena_fini(&s.arena);
        hf_arena_init(&s.arena, limit);
        r = append(&s, f, 10, &p);
        if (r == 0) {
            keep(&a, p);
            hf_arena_fini(&s.arena);
            hf_arena_init(&s.arena, 0);
            cr_ok(end(&s, f, &a.rep, 0));
        }
        failed += r == HF_E_NOMEM;
        cr_assert(r == 0 || r == HF_E_NOMEM, "%s", hf_err_name(r));
    }
    cr_assert_gt(failed, 0);
    hf_arena_fini(&s.arena);
    hf_arena_init(&s.arena, 0);
    finish(&s);
}

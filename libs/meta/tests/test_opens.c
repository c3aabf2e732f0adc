/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens: who keeps a file without names, and what ends that: closes, ends of sessions, leases, the
 * grace period after a restart.
 */
#include <stdio.h>

#include "meta_priv.h"
#include "support_meta.h"

#define SEC     INT64_C(1000000000)
#define LEASE   (90 * SEC)
#define EXPIRED (LEASE + 61 * SEC) /* lease, and what a session's last sign of life may be late */

static int session_open(struct shard *s, uint64_t id, bool opens, const Hf__SessionOpenRep **p)
{
    Hf__SessionOpenReq q = HF__SESSION_OPEN_REQ__INIT;
    static char client[] = "test";

    q.session = id;
    q.slots = 4;
    q.client = client;
    q.opens = opens;
    return do_session_open(s, &q, p);
}

static int session_close(struct shard *s, uint64_t id)
{
    Hf__SessionCloseReq q = HF__SESSION_CLOSE_REQ__INIT;
    const Hf__SessionCloseRep *p;

    q.session = id;
    return do_session_close(s, &q, &p);
}

static int open_as(struct shard *s, uint64_t session, Hf__Cred *c, struct fh o, uint32_t want,
                   bool truncate)
{
    Hf__OpenReq q = HF__OPEN_REQ__INIT;
    const Hf__OpenRep *p;
    int r;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.want = want;
    q.truncate = truncate;
    q.hold = true;
    s->session = session;
    r = do_open(s, &q, &p);
    s->session = 0;
    return r;
}

static int close_as(struct shard *s, uint64_t session, struct fh o)
{
    Hf__CloseReq q = HF__CLOSE_REQ__INIT;
    const Hf__CloseRep *p;
    uint64_t ino = o.ino;
    int r;

    q.inos = &ino;
    q.n_inos = 1;
    s->session = session;
    r = do_close(s, &q, &p);
    s->session = 0;
    return r;
}

static int getattr(struct shard *s, struct fh o)
{
    Hf__GetattrReq q = HF__GETATTR_REQ__INIT;
    const Hf__GetattrRep *p;

    q.ino = o.ino;
    q.gen = o.gen;
    return do_getattr(s, &q, &p);
}

static size_t rows(struct shard *s, unsigned table)
{
    return (size_t)hf_store_count(s->store, table);
}

/* What the service does now and then. */
static unsigned expire(struct shard *s)
{
    uint64_t cursor = 0, id;
    unsigned n = 0;

    while (hf_meta_opens_expired(s->meta, s->now_ns, &cursor, &id) == 0) {
        cr_ok(hf_meta_opens_expire(s->meta, id, s->now_ns, 2));
        cursor = id;
        n++;
    }
    cursor = 0;
    while (hf_meta_orphans_next(s->meta, s->now_ns, &cursor, &id) == 0) {
        cr_ok(hf_meta_orphan_del(s->meta, id, s->now_ns));
        n++;
    }
    return n;
}

static void setup(struct shard *s, enum hf_store_kind kind, struct fh *f)
{
    const Hf__SessionOpenRep *p;

    shard_open(s, kind);
    cr_ok(session_open(s, 1, true, &p));
    cr_ok(session_open(s, 2, true, &p));
    cr_ok(t_create(s, &t_root, t_root_dir, "f", 0644, f));
    cr_ok(t_write(s, &t_root, *f, 0, "hello", 5));
}

static void finish(struct shard *s)
{
    cr_assert_eq(shard_check(s, NULL), 0);
    shard_close(s);
}

BOTH_STORES(opens, last_close_removes)
{
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_assert(s.op.lazy, "nobody waits for an open");
    cr_ok(open_as(&s, 2, &t_root, f, HF_R, false));
    cr_assert_eq(rows(&s, HF_T_OPN), 4);
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_status(t_lookup(&s, &t_root, t_root_dir, "f", NULL), HF_E_NOENT);
    cr_assert_eq(t_attr(&s, f).nlink, 0);
    cr_assert_eq(rows(&s, HF_T_ORPH), 1);
    cr_assert_eq(shard_check(&s, NULL), 0);
    /* all that a handle can do */
    cr_ok(t_write(&s, &t_root, f, 5, " world", 6));
    cr_ok(t_read(&s, &t_root, f, 0, 100));
    cr_assert_eq(s.op.reply_bulk.len, 11);
    cr_assert(memcmp(s.op.reply_bulk.data, "hello world", 11) == 0);
    cr_ok(t_truncate(&s, &t_root, f, 4));
    cr_ok(t_chmod(&s, &t_root, f, 0600));
    cr_status(t_link(&s, &t_root, f, t_root_dir, "again"), HF_E_NOENT);
    cr_ok(close_as(&s, 1, f));
    cr_assert(s.op.lazy);
    cr_ok(getattr(&s, f));
    cr_ok(close_as(&s, 2, f));
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_status(open_as(&s, 1, &t_root, f, HF_R, false), HF_E_STALE);
    cr_assert(rows(&s, HF_T_OPN) == 0 && rows(&s, HF_T_ORPH) == 0 && rows(&s, HF_T_DATA) == 0);
    finish(&s);
}

/* The chunks of one that goes are for gc, not before. */
BOTH_STORES(opens, chunks_go_with_the_last_close)
{
    struct hf_meta_gc g;
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(t_truncate(&s, &t_root, f, 0));
    cr_ok(t_write(&s, &t_root, f, 0, NULL, 1u << 20)); /* hands chunks out */
    cr_ok(open_as(&s, 1, &t_root, f, HF_W, false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_status(hf_meta_gc_next(s.meta, NULL, s.now_ns, &g), HF_E_NOENT);
    cr_ok(close_as(&s, 1, f));
    cr_ok(hf_meta_gc_next(s.meta, NULL, s.now_ns, &g));
    cr_assert_eq(g.ino, f.ino);
    finish(&s);
}

BOTH_STORES(opens, replaced_by_rename)
{
    struct shard s;
    struct fh f, g;

    setup(&s, kind, &f);
    cr_ok(t_create(&s, &t_root, t_root_dir, "g", 0644, &g));
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(t_rename(&s, &t_root, t_root_dir, "g", t_root_dir, "f"));
    cr_ok(t_read(&s, &t_root, f, 0, 5));
    cr_assert(memcmp(s.op.reply_bulk.data, "hello", 5) == 0);
    cr_ok(close_as(&s, 1, f));
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_ok(getattr(&s, g));
    finish(&s);
}

/* Two names, then one, then none. */
BOTH_STORES(opens, only_the_last_name_counts)
{
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(t_link(&s, &t_root, f, t_root_dir, "g"));
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_assert_eq(rows(&s, HF_T_ORPH), 0);
    cr_ok(close_as(&s, 1, f));
    cr_assert_eq(t_attr(&s, f).nlink, 1);
    cr_ok(t_remove(&s, &t_root, t_root_dir, "g", false));
    cr_status(getattr(&s, f), HF_E_STALE);
    finish(&s);
}

/* A repeated open, an unknown close: nothing changes, and nothing is told (the harness compares the
 * redo with the event). */
BOTH_STORES(opens, repeated_and_unknown)
{
    uint64_t many[257] = {0};
    Hf__CloseReq q = HF__CLOSE_REQ__INIT;
    const Hf__CloseRep *p;
    struct shard s;
    struct fh f;
    size_t redo;

    setup(&s, kind, &f);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    redo = hf_store_redo_bytes(s.store);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R | HF_W, false));
    cr_ok(close_as(&s, 2, f));
    cr_ok(close_as(&s, 1, (struct fh){12345, 1}));
    cr_assert_eq(hf_store_redo_bytes(s.store), redo);
    cr_status(close_as(&s, 0, f), HF_E_NOSESSION);
    q.inos = many;
    q.n_inos = 257;
    s.session = 1;
    cr_status(do_close(&s, &q, &p), HF_E_INVAL);
    q.n_inos = 256;
    many[255] = f.ino;
    cr_ok(do_close(&s, &q, &p));
    s.session = 0;
    cr_assert_eq(rows(&s, HF_T_OPN), 0);
    finish(&s);
}

struct want_case {
    const char *what;
    uint32_t type, mode, want;
    bool truncate, u2;
    int status;
};

BOTH_STORES(opens, permissions)
{
    static const struct want_case cases[] = {
        {"read 0444", REG, 0444, HF_R, false, true, 0},
        {"write 0444", REG, 0444, HF_W, false, true, HF_E_ACCES},
        {"write 0444, owner", REG, 0444, HF_W, false, false, HF_E_ACCES},
        {"read and write 0666", REG, 0666, HF_R | HF_W, false, true, 0},
        {"execute 0644", REG, 0644, HF_X, false, true, HF_E_ACCES},
        {"execute 0755", REG, 0755, HF_X, false, true, 0},
        {"truncate 0444", REG, 0444, HF_R, true, true, HF_E_ACCES},
        {"truncate 0666", REG, 0666, HF_R, true, true, 0},
        {"read a directory", DIR_, 0755, HF_R, false, true, 0},
        {"write a directory", DIR_, 0777, HF_W, false, true, HF_E_ISDIR},
        {"truncate a directory", DIR_, 0777, HF_R, true, true, HF_E_ISDIR},
        {"read a directory 0700", DIR_, 0700, HF_R, false, true, HF_E_ACCES},
        {"truncate a fifo", FIFO, 0666, HF_W, true, true, HF_E_INVAL},
        {"nothing 0000", REG, 0000, 0, false, true, 0},
    };
    struct shard s;
    struct fh f, d;

    setup(&s, kind, &f);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        const struct want_case *c = &cases[k];
        struct fh o;
        int r;

        if (c->type == REG)
            cr_ok(t_create(&s, &t_u1, d, "x", c->mode, &o));
        else
            cr_ok(t_make(&s, &t_u1, d, "x", c->type, c->mode, &o));
        if (c->type == REG)
            cr_ok(t_write(&s, &t_root, o, 0, "12345", 5));
        r = open_as(&s, 1, c->u2 ? &t_u2 : &t_u1, o, c->want, c->truncate);
        cr_assert(r == c->status, "%s: %s", c->what, hf_err_name(r));
        if (c->type == REG)
            cr_assert_eq(t_attr(&s, o).size, r == 0 && c->truncate ? 0 : 5, "%s", c->what);
        cr_assert_eq(rows(&s, HF_T_OPN), r == 0 && c->type != DIR_ ? 2 : 0, "%s", c->what);
        cr_ok(close_as(&s, 1, o));
        cr_ok(t_remove(&s, &t_root, d, "x", c->type == DIR_));
    }
    finish(&s);
}

static int create_open(struct shard *s, uint64_t session, Hf__Cred *c, struct fh dir, uint32_t mode,
                       uint32_t want, bool truncate, struct fh *ret)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__CreateReq q = HF__CREATE_REQ__INIT;
    const Hf__CreateRep *p;
    int r;

    set.set_mode = true;
    set.mode = mode;
    set.set_size = truncate;
    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes("new");
    q.how = HF__CREATE_HOW__CREATE_UNCHECKED;
    q.set = &set;
    q.open = true;
    q.want = want;
    s->session = session;
    r = do_create(s, &q, &p);
    s->session = 0;
    if (p->obj)
        *ret = t_fh(p->obj);
    return r;
}

/* Who makes a file has it open for writing, whatever its mode; and by `opened` goes on to write. */
BOTH_STORES(opens, create_holds)
{
    Hf__WriteReq w = HF__WRITE_REQ__INIT;
    const Hf__WriteRep *wp;
    struct shard s;
    struct fh f, d, o, again;

    setup(&s, kind, &f);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    cr_ok(create_open(&s, 1, &t_u1, d, 0444, HF_R | HF_W, false, &o));
    cr_assert(!s.op.lazy, "a create is waited for");
    cr_assert_eq(rows(&s, HF_T_OPN), 2);
    w.cred = &t_u1;
    w.ino = o.ino;
    w.gen = o.gen;
    w.len = 3;
    w.stable = HF__STABLE__FILE_SYNC;
    s.bulk = hf_slice("abc", 3);
    cr_status(do_write(&s, &w, &wp), HF_E_ACCES);
    w.opened = true;
    s.bulk = hf_slice("abc", 3);
    cr_ok(do_write(&s, &w, &wp));
    /* the same call when it is there: now its mode counts */
    cr_status(create_open(&s, 2, &t_u1, d, 0444, HF_R | HF_W, false, &again), HF_E_ACCES);
    cr_assert_eq(rows(&s, HF_T_OPN), 2);
    cr_ok(create_open(&s, 2, &t_u1, d, 0444, HF_R, false, &again));
    cr_assert(again.ino == o.ino && s.op.lazy);
    cr_assert_eq(rows(&s, HF_T_OPN), 4);
    cr_ok(create_open(&s, 2, &t_root, d, 0444, HF_W, true, &again));
    cr_assert(!s.op.lazy, "a truncation is waited for");
    cr_assert_eq(t_attr(&s, o).size, 0);
    cr_ok(t_remove(&s, &t_root, d, "new", false));
    cr_ok(close_as(&s, 1, o));
    cr_ok(close_as(&s, 2, o));
    cr_status(getattr(&s, o), HF_E_STALE);
    finish(&s);
}

BOTH_STORES(opens, session_end)
{
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(open_as(&s, 2, &t_root, f, HF_R, false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_ok(session_close(&s, 1));
    cr_ok(getattr(&s, f));
    cr_ok(session_close(&s, 2));
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_assert_eq(rows(&s, HF_T_OPN), 0);
    finish(&s);
}

/* More opens than one change ends: the rest goes by the lease, though the session is gone. */
Test(opens, session_end_with_many)
{
    const Hf__SessionOpenRep *p;
    struct shard s;
    struct fh f, o;
    char name[16];

    setup(&s, HF_STORE_MEM, &f);
    for (unsigned k = 0; k < 300; k++) {
        snprintf(name, sizeof(name), "m%u", k);
        cr_ok(t_create(&s, &t_root, t_root_dir, name, 0644, &o));
        cr_ok(open_as(&s, 1, &t_root, o, HF_R, false));
        cr_ok(t_remove(&s, &t_root, t_root_dir, name, false));
    }
    cr_ok(session_close(&s, 1));
    cr_assert_eq(rows(&s, HF_T_ORPH), 44);
    cr_assert_eq(expire(&s), 0, "not before the shard has been up for a lease");
    s.now_ns += LEASE;
    cr_ok(session_open(&s, 2, true, &p));
    cr_assert_gt(expire(&s), 0);
    cr_assert(rows(&s, HF_T_OPN) == 0 && rows(&s, HF_T_ORPH) == 0);
    finish(&s);
}

BOTH_STORES(opens, lease)
{
    const Hf__SessionOpenRep *p;
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(session_open(&s, 3, true, &p));
    cr_assert(p->opens_lost && p->lease_ms == 90000, "a new session has none");
    cr_ok(session_open(&s, 3, true, &p));
    cr_assert(!p->opens_lost);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(open_as(&s, 2, &t_root, f, HF_R, false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    for (unsigned k = 0; k < 4; k++) { /* 1 renews itself, 2 does not */
        s.now_ns += EXPIRED / 3;
        cr_ok(session_open(&s, 1, true, &p));
        cr_assert(!p->opens_lost);
        expire(&s);
        cr_ok(getattr(&s, f));
    }
    cr_assert_eq(rows(&s, HF_T_OPN), 2);
    cr_ok(session_open(&s, 2, true, &p));
    cr_assert(p->opens_lost, "it is told");
    cr_ok(session_open(&s, 2, true, &p));
    cr_assert(!p->opens_lost, "once");
    s.now_ns += EXPIRED;
    cr_assert_gt(expire(&s), 0);
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_assert(rows(&s, HF_T_OPN) == 0 && rows(&s, HF_T_ORPH) == 0);
    finish(&s);
}

/* All opens are lost by a crash of the shard: a file that is removed before its holder has opened
 * it again is kept for that long; nobody else sees it. */
BOTH_STORES(opens, grace)
{
    const Hf__SessionOpenRep *p;
    struct shard s;
    struct fh f, g;

    setup(&s, kind, &f);
    cr_ok(t_create(&s, &t_root, t_root_dir, "g", 0644, &g));
    shard_reopen(&s); /* 1 had both open, and the log does not tell of it */
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "g", false));
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_assert_eq(expire(&s), 0);
    cr_ok(session_open(&s, 1, true, &p));
    cr_assert(!p->opens_lost);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(getattr(&s, f));
    /* a close meanwhile takes nothing from others who have not come yet */
    cr_ok(close_as(&s, 2, g));
    cr_assert_eq(rows(&s, HF_T_ORPH), 2);
    cr_ok(close_as(&s, 1, f));
    cr_ok(open_as(&s, 2, &t_root, f, HF_R, false));
    s.now_ns += LEASE;
    cr_ok(session_open(&s, 2, true, &p));
    expire(&s);
    cr_ok(getattr(&s, f));
    cr_status(getattr(&s, g), HF_E_STALE);
    cr_assert_eq(rows(&s, HF_T_ORPH), 1);
    cr_ok(close_as(&s, 2, f));
    cr_assert_eq(rows(&s, HF_T_ORPH), 0);
    finish(&s);
}

/* Sessions that hold no opens ask for no grace: what is removed goes at once. */
BOTH_STORES(opens, no_grace_without_holders)
{
    const Hf__SessionOpenRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(session_open(&s, 1, false, &p));
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    shard_reopen(&s);
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    cr_assert_eq(rows(&s, HF_T_ORPH), 0);
    finish(&s);
}

/* Everybody is gone: what only they had open goes when their leases are over. */
BOTH_STORES(opens, after_a_crash_of_everybody)
{
    struct shard s;
    struct fh f;

    setup(&s, kind, &f);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    shard_reopen(&s);
    s.now_ns += EXPIRED; /* the shard was away; the lease begins with its start */
    cr_ok(getattr(&s, f));
    cr_assert_eq(expire(&s), 0);
    cr_ok(getattr(&s, f));
    s.now_ns += EXPIRED;
    cr_ok(getattr(&s, f));
    cr_assert_gt(expire(&s), 0);
    cr_status(getattr(&s, f), HF_E_STALE);
    cr_assert(rows(&s, HF_T_OPN) == 0 && rows(&s, HF_T_ORPH) == 0);
    finish(&s);
}

/* The bound is per session; it is counted anew at a start, and a close makes room. */
Test(opens, bound)
{
    struct shard s;
    struct fh f, g;
    bool fresh;

    setup(&s, HF_STORE_MEM, &f);
    cr_ok(t_create(&s, &t_root, t_root_dir, "g", 0644, &g));
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    shard_reopen(&s);
    for (uint64_t k = 1; k < (1u << 20); k++)
        cr_assert_eq(hf_open_put(s.meta, UINT64_C(1) << 40 | k, 1), 0);
    cr_status(open_as(&s, 1, &t_root, g, HF_R, false), HF_E_NOSPC);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false)); /* it has this one */
    cr_ok(open_as(&s, 2, &t_root, g, HF_R, false));
    cr_ok(close_as(&s, 1, f));
    cr_ok(hf_open_room(s.meta, g.ino, 1, &fresh));
    cr_assert(fresh);
    cr_ok(open_as(&s, 1, &t_root, g, HF_R, false));
    cr_status(open_as(&s, 1, &t_root, f, HF_R, false), HF_E_NOSPC);
    shard_close(&s);
}

/* ---- fsck ---- */

static void raw(struct shard *s, unsigned table, const uint8_t *key, size_t len, bool on)
{
    if (on)
        cr_ok(hf_store_put(s->store, table, hf_slice(key, len), hf_slice("\1", 1)));
    else
        cr_ok(hf_store_del(s->store, table, hf_slice(key, len)));
}

static void expect(struct shard *s, const char *want)
{
    char kinds[512];

    shard_check(s, kinds);
    cr_assert_str_eq(kinds, want);
}

Test(opens, fsck)
{
    uint8_t open[16] = {0}, index[17] = {0xff}, orph[8] = {0};
    struct shard s;
    struct fh f;

    setup(&s, HF_STORE_MEM, &f);
    cr_ok(open_as(&s, 1, &t_root, f, HF_R, false));
    for (unsigned k = 0; k < 8; k++)
        open[k] = index[9 + k] = orph[k] = (uint8_t)(f.ino >> (56 - 8 * k));
    open[15] = index[8] = 1;
    expect(&s, "");
    raw(&s, HF_T_OPN, index, sizeof(index), false);
    expect(&s, "open ");
    raw(&s, HF_T_OPN, open, sizeof(open), false);
    expect(&s, "");
    raw(&s, HF_T_OPN, index, sizeof(index), true);
    expect(&s, "open ");
    raw(&s, HF_T_OPN, open, sizeof(open), true);
    expect(&s, "");
    raw(&s, HF_T_OPN, open, 9, true);
    expect(&s, "bad-value ");
    raw(&s, HF_T_OPN, open, 9, false);
    raw(&s, HF_T_ORPH, orph, sizeof(orph), true);
    expect(&s, "orphan "); /* it has a name */
    raw(&s, HF_T_ORPH, orph, sizeof(orph), false);
    cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
    expect(&s, "");
    raw(&s, HF_T_ORPH, orph, sizeof(orph), false);
    expect(&s, "orphan "); /* nobody would remove it */
    raw(&s, HF_T_ORPH, orph, sizeof(orph), true);
    cr_ok(close_as(&s, 1, f));
    expect(&s, "");
    raw(&s, HF_T_ORPH, orph, sizeof(orph), true);
    expect(&s, "orphan "); /* it does not exist */
    raw(&s, HF_T_ORPH, orph, sizeof(orph), false);
    raw(&s, HF_T_OPN, open, sizeof(open), true);
    expect(&s, "open ");
    shard_close(&s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * RENAME_NOREPLACE and RENAME_EXCHANGE, over every pair of types.
 */
#include <stdio.h>

#include "support_meta.h"

enum { NOREPLACE = 1, EXCHANGE = 2 };

static int rename_flags(struct shard *s, Hf__Cred *c, struct fh from, const char *name,
                        struct fh to, const char *to_name, uint32_t flags)
{
    Hf__RenameReq q = HF__RENAME_REQ__INIT;
    const Hf__RenameRep *p;

    q.cred = c;
    q.from_dir = from.ino;
    q.from_gen = from.gen;
    q.from_name = t_bytes(name);
    q.to_dir = to.ino;
    q.to_gen = to.gen;
    q.to_name = t_bytes(to_name);
    q.flags = flags;
    return do_rename(s, &q, &p);
}

static void make(struct shard *s, struct fh dir, const char *name, uint32_t type, struct fh *ret)
{
    if (type == REG)
        cr_ok(t_create(s, &t_u1, dir, name, 0644, ret));
    else if (type == LNK)
        cr_ok(t_symlink(s, &t_u1, dir, name, "target", ret));
    else
        cr_ok(t_make(s, type == BLK || type == CHR ? &t_root : &t_u1, dir, name, type, 0755, ret));
}

static void expect(struct shard *s, struct fh dir, const char *name, struct fh want,
                   const char *what)
{
    struct fh got;

    cr_ok(t_lookup(s, &t_root, dir, name, &got));
    cr_assert(got.ino == want.ino && got.gen == want.gen, "%s: %s", what, name);
}

static const uint32_t types[] = {REG, DIR_, LNK, BLK, CHR, FIFO, SOCK};

/* In one directory, and between two; names keep their places, links and parents are right. */
BOTH_STORES(exchange, every_pair_of_types)
{
    struct shard s;
    struct fh d1, d2;
    char what[64];

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d1", DIR_, 0777, &d1));
    cr_ok(t_make(&s, &t_root, t_root_dir, "d2", DIR_, 0777, &d2));
    for (size_t a = 0; a < HF_ARRAY_LEN(types); a++)
        for (size_t b = 0; b < HF_ARRAY_LEN(types); b++)
            for (int two = 0; two < 2; two++) {
                struct fh to = two ? d2 : d1, oa, ob;
                bool da = types[a] == DIR_, db = types[b] == DIR_;

                snprintf(what, sizeof(what), "types %u and %u, %d", types[a], types[b], two);
                make(&s, d1, "a", types[a], &oa);
                make(&s, to, "b", types[b], &ob);
                cr_ok(rename_flags(&s, &t_u1, d1, "a", to, "b", EXCHANGE));
                cr_assert_eq(s.op.event.op, HF__EVENT_OP__EV_EXCHANGE);
                expect(&s, d1, "a", ob, what);
                expect(&s, to, "b", oa, what);
                cr_assert_eq(t_attr(&s, oa).parent, to.ino, "%s", what);
                cr_assert_eq(t_attr(&s, ob).parent, d1.ino, "%s", what);
                cr_assert_eq(t_attr(&s, d1).nlink, 2u + db + (two ? 0 : da), "%s", what);
                cr_assert_eq(t_attr(&s, d2).nlink, 2u + (two ? da : 0), "%s", what);
                cr_assert_eq(shard_check(&s, NULL), 0, "%s", what);
                cr_ok(t_remove(&s, &t_root, d1, "a", db));
                cr_ok(t_remove(&s, &t_root, to, "b", da));
            }
    shard_close(&s);
}

BOTH_STORES(exchange, refusals)
{
    struct shard s;
    struct fh a, b, sub, f, got;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "a", DIR_, 0777, &a));
    cr_ok(t_make(&s, &t_root, a, "b", DIR_, 0777, &b));
    cr_ok(t_make(&s, &t_root, b, "sub", DIR_, 0777, &sub));
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(t_link(&s, &t_root, f, t_root_dir, "g"));
    cr_status(rename_flags(&s, &t_root, t_root_dir, "f", a, "none", EXCHANGE), HF_E_NOENT);
    cr_status(rename_flags(&s, &t_root, a, "none", t_root_dir, "f", EXCHANGE), HF_E_NOENT);
    /* a directory may not go below itself, whichever of the two it is */
    cr_status(rename_flags(&s, &t_root, t_root_dir, "a", b, "sub", EXCHANGE), HF_E_INVAL);
    cr_status(rename_flags(&s, &t_root, b, "sub", t_root_dir, "a", EXCHANGE), HF_E_INVAL);
    cr_status(rename_flags(&s, &t_root, t_root_dir, "a", a, "b", EXCHANGE), HF_E_INVAL);
    cr_status(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "a", EXCHANGE | NOREPLACE),
              HF_E_INVAL);
    cr_status(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "a", 4), HF_E_INVAL);
    /* one object: nothing to do, but it is there */
    cr_ok(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "g", EXCHANGE));
    cr_ok(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "g", 0));
    cr_ok(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "f", EXCHANGE));
    cr_status(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "g", NOREPLACE), HF_E_EXIST);
    cr_status(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "f", NOREPLACE), HF_E_EXIST);
    cr_ok(t_lookup(&s, &t_root, t_root_dir, "f", &got));
    cr_ok(t_lookup(&s, &t_root, t_root_dir, "g", &got));
    /* a full directory and a file */
    cr_ok(rename_flags(&s, &t_root, t_root_dir, "f", t_root_dir, "a", EXCHANGE));
    expect(&s, t_root_dir, "f", a, "swapped");
    expect(&s, t_root_dir, "a", f, "swapped");
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(exchange, noreplace)
{
    struct shard s;
    struct fh f, d, o;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    for (size_t k = 0; k < HF_ARRAY_LEN(types); k++) {
        make(&s, d, "x", types[k], &o);
        cr_status(rename_flags(&s, &t_root, t_root_dir, "f", d, "x", NOREPLACE), HF_E_EXIST);
        expect(&s, d, "x", o, "kept");
        cr_ok(t_remove(&s, &t_root, d, "x", types[k] == DIR_));
    }
    cr_ok(rename_flags(&s, &t_root, t_root_dir, "f", d, "x", NOREPLACE));
    cr_assert_eq(s.op.event.op, HF__EVENT_OP__EV_RENAME);
    expect(&s, d, "x", f, "moved");
    cr_status(t_lookup(&s, &t_root, t_root_dir, "f", NULL), HF_E_NOENT);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* Taking a name out of a sticky directory is for owners: of either side. A directory that moves is
 * written to. */
BOTH_STORES(exchange, permissions)
{
    struct shard s;
    struct fh sticky, open, mine, other, locked;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "sticky", DIR_, 01777, &sticky));
    cr_ok(t_make(&s, &t_root, t_root_dir, "open", DIR_, 0777, &open));
    cr_ok(t_create(&s, &t_u1, sticky, "mine", 0644, &mine));
    cr_ok(t_create(&s, &t_u2, sticky, "other", 0644, &other));
    cr_ok(t_create(&s, &t_u1, open, "free", 0644, NULL));
    cr_ok(t_make(&s, &t_u2, open, "locked", DIR_, 0755, &locked));
    cr_status(rename_flags(&s, &t_u1, sticky, "mine", sticky, "other", EXCHANGE), HF_E_PERM);
    cr_status(rename_flags(&s, &t_u1, sticky, "other", sticky, "mine", EXCHANGE), HF_E_PERM);
    cr_status(rename_flags(&s, &t_u1, open, "free", sticky, "other", EXCHANGE), HF_E_PERM);
    cr_ok(rename_flags(&s, &t_u1, open, "free", sticky, "mine", EXCHANGE));
    cr_status(rename_flags(&s, &t_u1, sticky, "mine", open, "locked", EXCHANGE), HF_E_ACCES);
    cr_status(rename_flags(&s, &t_u1, open, "locked", sticky, "mine", EXCHANGE), HF_E_ACCES);
    cr_status(rename_flags(&s, &t_u1, open, "free", t_root_dir, "sticky", EXCHANGE), HF_E_ACCES);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

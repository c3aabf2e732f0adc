/* SPDX-License-Identifier: Apache-2.0
 *
 * RENAME: every status, what moves; names that share a bucket.
 */
#include "support_meta.h"

BOTH_STORES(rename, errors)
{
    struct shard s;
    struct tree t;
    struct fh deep, other, u2dir;

    shard_open(&s, kind);
    tree_make(&s, &t);
    cr_ok(t_make(&s, &t_u1, t.sub, "deep", DIR_, 0755, &deep));
    cr_ok(t_make(&s, &t_root, t_root_dir, "other", DIR_, 0777, &other));
    cr_ok(t_make(&s, &t_u1, other, "empty", DIR_, 0755, NULL));
    cr_ok(t_make(&s, &t_u2, other, "u2dir", DIR_, 0755, &u2dir));
    cr_ok(t_create(&s, &t_u2, t.sticky, "s2", 0666, NULL));
    const struct {
        Hf__Cred *c;
        struct fh from;
        const char *name;
        struct fh to;
        const char *to_name;
        int want;
    } cases[] = {
        {&t_u1, t.d, "none", t.d, "y", HF_E_NOENT},
        {&t_u1, t.d, ".", t.d, "y", HF_E_INVAL},
        {&t_u1, t.d, "..", t.d, "y", HF_E_INVAL},
        {&t_u1, t.d, "f", t.d, ".", HF_E_INVAL},
        {&t_u1, t.d, "f", t.d, "..", HF_E_INVAL},
        {&t_u1, t.d, "", t.d, "y", HF_E_INVAL},
        {&t_u1, t.d, "f", t.d, "", HF_E_INVAL},
        {&t_u1, t.d, "f", t.d, "a/b", HF_E_INVAL},
        {&t_u1, t.d, name256, t.d, "y", HF_E_NAMETOOLONG},
        {&t_u1, t.d, "f", t.d, name256, HF_E_NAMETOOLONG},
        {&t_u1, t.f, "f", t.d, "y", HF_E_NOTDIR},
        {&t_u1, t.d, "f", t.x, "y", HF_E_NOTDIR},
        {&t_u1, t.wrong, "f", t.d, "y", HF_E_STALE},
        {&t_u1, t.d, "f", t.wrong, "y", HF_E_STALE},
        {&t_u1, t.d, "f", t.gone, "y", HF_E_STALE},
        {&t_u2, t.d, "f", other, "y", HF_E_ACCES},
        {&t_u1, t.d, "f", t.ro, "y", HF_E_ACCES},
        {&t_u1, t.d, "f", t.closed, "y", HF_E_ACCES},
        {&t_u1, t.d, "f", t.d, "sub", HF_E_ISDIR},
        {&t_u1, t.d, "sub", t.d, "f", HF_E_NOTDIR},
        {&t_u1, other, "empty", t.d, "sub", HF_E_NOTEMPTY},
        {&t_u1, t.d, "sub", deep, "y", HF_E_INVAL},
        {&t_u1, t.d, "sub", t.sub, "y", HF_E_INVAL},
        {&t_root, t_root_dir, "d", deep, "y", HF_E_INVAL},
        {&t_u1, other, "u2dir", t.d, "y", HF_E_ACCES}, /* its ".." would change: w on it */
        {&t_u2, t.sticky, "s1", other, "y", HF_E_PERM},
        {&t_u2, t.sticky, "s2", t.sticky, "s1", HF_E_PERM},
        {&t_u2, t.sticky, "s1", t.sticky, "y", HF_E_PERM},
        {NULL, t.d, "f", t.d, "y", HF_E_ACCES},
    };
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        int r =
            t_rename(&s, cases[k].c, cases[k].from, cases[k].name, cases[k].to, cases[k].to_name);
        const Hf__RenameRep *p = s.rep;

        cr_assert(r == cases[k].want, "case %zu: %s", k, hf_err_name(r));
        if (r != HF_E_STALE)
            cr_assert(p->from && p->from->have_before && p->from->after && p->to && p->to->after,
                      "case %zu: attributes", k);
    }
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(rename, moves)
{
    struct shard s;
    struct tree t;
    struct fh o, other;
    Hf__Attr a;

    shard_open(&s, kind);
    tree_make(&s, &t);
    cr_ok(t_make(&s, &t_root, t_root_dir, "other", DIR_, 0777, &other));
    /* C1: both names of one object stay. */
    cr_ok(t_link(&s, &t_u1, t.f, t.sub, "f2"));
    a = t_attr(&s, t.f);
    cr_ok(t_rename(&s, &t_u1, t.d, "f", t.sub, "f2"));
    cr_assert(s.op.event.op == HF__EVENT_OP__EV_NONE);
    cr_assert(t_attr(&s, t.f).nlink == 2 && t_attr(&s, t.f).change == a.change);
    cr_ok(t_rename(&s, &t_u1, t.d, "f", t.d, "f"));
    cr_ok(t_lookup(&s, &t_u1, t.d, "f", NULL));
    cr_ok(t_lookup(&s, &t_u1, t.sub, "f2", NULL));
    /* over another file: its last link goes, its attributes of the rest do not change */
    cr_ok(t_rename(&s, &t_u1, t.sub, "x", t.d, "f"));
    cr_assert(s.op.event.replaced == t.f.ino && s.op.event.op == HF__EVENT_OP__EV_RENAME);
    cr_assert(s.op.event.old_parent == t.sub.ino && s.op.event.parent == t.d.ino);
    cr_ok(t_lookup(&s, &t_u1, t.d, "f", &o));
    cr_assert(o.ino == t.x.ino && t_attr(&s, t.x).parent == t.d.ino);
    cr_assert(t_attr(&s, t.f).nlink == 1);
    cr_status(t_lookup(&s, &t_u1, t.sub, "x", NULL), HF_E_NOENT);
    cr_ok(t_rename(&s, &t_u1, t.d, "f", t.sub, "f2"));
    cr_status(t_link(&s, &t_u1, t.f, t.d, "again"), HF_E_STALE);
    /* directories: link counts and ".." */
    cr_assert(t_attr(&s, t.d).nlink == 3 && t_attr(&s, other).nlink == 2);
    cr_ok(t_rename(&s, &t_u1, t.d, "sub", other, "moved"));
    cr_assert(t_attr(&s, t.d).nlink == 2 && t_attr(&s, other).nlink == 3);
    cr_ok(t_lookup(&s, &t_u1, t.sub, "..", &o));
    cr_assert(o.ino == other.ino && t_attr(&s, t.sub).parent == other.ino);
    cr_ok(t_make(&s, &t_u1, other, "empty", DIR_, 0755, &o));
    cr_ok(t_rename(&s, &t_u1, other, "moved", other, "empty"));
    cr_assert(t_attr(&s, other).nlink == 3);
    cr_status(t_lookup(&s, &t_u1, o, ".", NULL), HF_E_STALE);
    cr_ok(t_lookup(&s, &t_u1, other, "empty", &o));
    cr_assert(o.ino == t.sub.ino);
    s.may_grow = false;
    cr_ok(t_rename(&s, &t_u1, other, "empty", t.d, "a much longer name than before"));
    s.may_grow = true;
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* Names that differ in case only share a bucket; each is its own object. */
BOTH_STORES(rename, case_variants)
{
    static const char *const names[] = {"report",
                                        "Report",
                                        "REPORT",
                                        "rEPORT",
                                        "stra\xc3\x9f"
                                        "e",
                                        "STRA\xe1\xba\x9e"
                                        "E"};
    struct shard s;
    struct fh o[6], got;

    shard_open(&s, kind);
    for (size_t k = 0; k < 6; k++)
        cr_ok(t_create(&s, &t_root, t_root_dir, names[k], 0644, &o[k]));
    for (size_t k = 0; k < 6; k++) {
        cr_ok(t_lookup(&s, &t_root, t_root_dir, names[k], &got));
        cr_assert(got.ino == o[k].ino);
    }
    cr_ok(t_remove(&s, &t_root, t_root_dir, "report", false)); /* slot 0 is free now */
    for (size_t k = 1; k < 6; k++)
        cr_ok(t_lookup(&s, &t_root, t_root_dir, names[k], NULL));
    cr_status(t_lookup(&s, &t_root, t_root_dir, "report", NULL), HF_E_NOENT);
    cr_ok(t_rename(&s, &t_root, t_root_dir, "Report", t_root_dir, "report"));
    cr_status(t_lookup(&s, &t_root, t_root_dir, "Report", NULL), HF_E_NOENT);
    cr_ok(t_lookup(&s, &t_root, t_root_dir, "report", &got));
    cr_assert(got.ino == o[1].ino);
    cr_ok(t_rename(&s, &t_root, t_root_dir, "REPORT", t_root_dir, "report"));
    cr_ok(t_lookup(&s, &t_root, t_root_dir, "report", &got));
    cr_assert(got.ino == o[2].ino);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* 8192 names of one hash fill a bucket; then NOSPC, and a freed slot is used again. The 8193rd is
 * written with U+212A, the Kelvin sign, which folds to k. */
Test(rename, bucket_full, .timeout = 100)
{
    static const char kelvin[] = "kkkkkkkkkkkk\xe2\x84\xaa";
    struct shard s;
    struct fh d;
    char name[14] = {0};

    shard_open(&s, HF_STORE_MEM);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "stranger", 0644, NULL));
    for (unsigned k = 0; k < HF_SLOT_COUNT; k++) {
        for (unsigned b = 0; b < 13; b++)
            name[b] = (k >> b & 1) ? 'K' : 'k';
        cr_ok(t_create(&s, &t_root, d, name, 0644, NULL));
    }
    cr_status(t_create(&s, &t_root, d, kelvin, 0644, NULL), HF_E_NOSPC);
    cr_status(t_rename(&s, &t_root, d, "stranger", d, kelvin), HF_E_NOSPC);
    cr_ok(t_rename(&s, &t_root, d, "kKkkkkkkkkkkk", d, kelvin)); /* takes over its slot */
    cr_status(t_lookup(&s, &t_root, d, "kKkkkkkkkkkkk", NULL), HF_E_NOENT);
    cr_ok(t_remove(&s, &t_root, d, "kkKkkkkkkkkkk", false));
    cr_ok(t_create(&s, &t_root, d, "kKkkkkkkkkkkk", 0644, NULL));
    cr_status(t_create(&s, &t_root, d, "kkKkkkkkkkkkk", 0644, NULL), HF_E_NOSPC);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

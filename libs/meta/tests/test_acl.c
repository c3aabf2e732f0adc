/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX ACLs: their format, how they go with the mode, the rule, inheritance.
 */
#include "support_xattr.h"

#include <stdio.h>

#include "holdfast/endian.h"
#include "holdfast/map.h"

struct world {
    struct shard s;
    struct fh d, f; /* of u1: 0755 and 0644 */
};

static void world_open(struct world *w, enum hf_store_kind kind)
{
    shard_open(&w->s, kind);
    cr_ok(t_make(&w->s, &t_root, t_root_dir, "d", DIR_, 0755, &w->d));
    cr_ok(t_chown(&w->s, &t_root, w->d, 1001, 1001));
    cr_ok(t_create(&w->s, &t_u1, w->d, "f", 0644, &w->f));
}

static void world_close(struct world *w)
{
    cr_assert_eq(shard_check(&w->s, NULL), 0);
    shard_close(&w->s);
}

static void expect_acl(struct world *w, struct fh o, const char *name, const char *want)
{
    char text[512];

    cr_assert_str_eq(t_get_acl(&w->s, o, name, text), want);
}

/* ---- format ---- */

Test(acl, entries)
{
    static const struct {
        const char *text;
        int want;
    } cases[] = {
        {"u::rwx,g::r-x,o::---", 0},
        {"u::rwx,g::r-x,m::rwx,o::---", 0},
        {"u::---,u:7:rwx,g::r-x,m::rwx,o::---", 0},
        {"u::rwx,u:7:rwx,u:8:---,g::r-x,g:7:r--,g:0:r--,m::rwx,o::---", 0},
        {"u::rwx,u:8:rwx,u:7:rwx,g::r-x,m::rwx,o::---", 0}, /* in any order of their ids */
        {"u::rwx,u:7:rwx,g::r-x,o::---", HF_E_INVAL},       /* no mask */
        {"u::rwx,g::r-x,g:7:rwx,o::---", HF_E_INVAL},
        {"u::rwx,u:7:rwx,u:7:rwx,g::r-x,m::rwx,o::---", HF_E_INVAL}, /* twice */
        {"u::rwx,u:7:rwx,u:8:rwx,u:7:---,g::r-x,m::rwx,o::---", HF_E_INVAL},
        {"u::rwx,g::r-x,g:7:rwx,g:7:rwx,m::rwx,o::---", HF_E_INVAL},
        {"u::rwx,u::rwx,g::r-x,o::---", HF_E_INVAL},
        {"u::rwx,g::r-x,g::r-x,o::---", HF_E_INVAL},
        {"u::rwx,g::r-x,m::rwx,m::rwx,o::---", HF_E_INVAL},
        {"u::rwx,g::r-x,o::---,o::---", HF_E_INVAL},
        {"g::r-x,o::---", HF_E_INVAL}, /* missing */
        {"u::rwx,o::---", HF_E_INVAL},
        {"u::rwx,g::r-x", HF_E_INVAL},
        {"m::rwx", HF_E_INVAL},
        {"g::r-x,u::rwx,o::---", HF_E_INVAL}, /* out of order */
        {"u::rwx,o::---,g::r-x", HF_E_INVAL},
        {"u::rwx,g::r-x,u:7:rwx,m::rwx,o::---", HF_E_INVAL},
        {"u::rwx,u:7:rwx,m::rwx,g::r-x,o::---", HF_E_INVAL},
        {"u:7:rwx,u::rwx,g::r-x,m::rwx,o::---", HF_E_INVAL},
        {"u::rwx,u:4294967295:rwx,g::r-x,m::rwx,o::---", HF_E_INVAL}, /* nobody's id */
        {"u::rwx,g::r-x,g:4294967295:rwx,m::rwx,o::---", HF_E_INVAL},
    };
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        cr_assert_eq(t_set_acl(&w.s, &t_u1, w.d, T_ACL_ACCESS, cases[k].text), cases[k].want, "%s",
                     cases[k].text);
        cr_assert_eq(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, cases[k].text), cases[k].want, "%s",
                     cases[k].text);
        if (cases[k].want == 0)
            expect_acl(&w, w.d, T_ACL_DEFAULT, cases[k].text);
    }
    world_close(&w);
}

static int set_raw(struct world *w, const uint8_t *blob, size_t len)
{
    return t_setx(&w->s, &t_u1, w->f, T_ACL_ACCESS, hf_slice(blob, len), 0);
}

Test(acl, bytes)
{
    const char *text = "u::rwx,u:7:rwx,g::r-x,m::rwx,o::---";
    uint8_t blob[T_ACL_BYTES];
    size_t n = t_acl(text, blob);
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t len = 1; len < n; len++)
        cr_status(set_raw(&w, blob, len), len == 4 ? 0 : HF_E_INVAL); /* 4: no entries */
    cr_assert_eq(t_attr(&w.s, w.f).flags, 0);
    cr_status(set_raw(&w, blob, n + 1), HF_E_INVAL);
    for (uint32_t v = 0; v < 5; v++) {
        hf_put_le32(blob, v == 4 ? 0x02000000 : v);
        cr_status(set_raw(&w, blob, n), v == 2 ? 0 : HF_E_INVAL);
    }
    for (size_t at = 4; at < n; at += 8) { /* permissions and tags that there are not */
        static const uint16_t bad_perm[] = {8, 0xfff8, 0x100}, bad_tag[] = {0, 3, 0x40, 0x8000, 5};

        n = t_acl(text, blob);
        for (size_t k = 0; k < 3; k++) {
            hf_put_le16(blob + at + 2, bad_perm[k]);
            cr_status(set_raw(&w, blob, n), HF_E_INVAL);
        }
        n = t_acl(text, blob);
        for (size_t k = 0; k < 5; k++) {
            hf_put_le16(blob + at, bad_tag[k]);
            cr_status(set_raw(&w, blob, n), HF_E_INVAL);
        }
    }
    world_close(&w);
}

Test(acl, most_entries)
{
    uint8_t blob[T_ACL_BYTES], end[T_ACL_BYTES];
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t named = 508; named <= 509; named++) {
        size_t n = t_acl("u::rwx", blob), tail = t_acl("g::r-x,m::rwx,o::---", end);

        for (size_t k = 0; k < named; k++, n += 8) {
            hf_put_le16(blob + n, 2);
            hf_put_le16(blob + n + 2, 5);
            hf_put_le32(blob + n + 4, (uint32_t)(2000 - k));
        }
        memcpy(blob + n, end + 4, tail - 4);
        n += tail - 4;
        cr_status(set_raw(&w, blob, n), named == 508 ? 0 : HF_E_INVAL);
    }
    cr_assert_eq(t_attr(&w.s, w.f).mode, 0770);
    cr_ok(t_getx(&w.s, &t_root, w.f, T_ACL_ACCESS));
    cr_assert_eq(w.s.op.reply_bulk.len, 4 + 512 * 8);
    world_close(&w);
}

/* ---- with the mode ---- */

Test(acl, mode)
{
    static const struct {
        uint32_t before;
        const char *acl;
        uint32_t after;
        bool stored;
        uint32_t chmod; /* then */
        const char *last;
    } cases[] = {
        {0644, "u::rwx,g::r-x,o::--x", 0751, false, 0600, ""},
        {0644, "u::rw-,g::r--,o::r--", 0644, false, 0777, ""},
        {0644, "u::rw-,u:7:rwx,g::r--,m::rwx,o::r--", 0674, true, 0751,
         "u::rwx,u:7:rwx,g::r--,m::r-x,o::--x"},
        {0644, "u::---,u:7:rwx,g::rwx,m::---,o::---", 0000, true, 0777,
         "u::rwx,u:7:rwx,g::rwx,m::rwx,o::rwx"},
        {0644, "u::rw-,g::rwx,m::r--,o::---", 0640, true, 0660, "u::rw-,g::rwx,m::rw-,o::---"},
        {01777, "u::rwx,g::---,g:8:r--,m::r--,o::---", 01740, true, 0,
         "u::---,g::---,g:8:r--,m::---,o::---"},
        {04755, "u::rwx,g::r-x,o::r-x", 04755, false, 0755, ""},
    };
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        Hf__Attr a;

        cr_ok(t_chmod(&w.s, &t_u1, w.f, cases[k].before));
        cr_ok(t_set_acl(&w.s, &t_u1, w.f, T_ACL_ACCESS, cases[k].acl));
        a = t_attr(&w.s, w.f);
        cr_assert_eq(a.mode, cases[k].after, "%s: %o", cases[k].acl, a.mode);
        cr_assert_eq(a.flags,
                     cases[k].stored ? HF__ATTR_FLAG__AF_XATTR | HF__ATTR_FLAG__AF_ACL : 0);
        expect_acl(&w, w.f, T_ACL_ACCESS, cases[k].stored ? cases[k].acl : "");
        cr_ok(t_chmod(&w.s, &t_u1, w.f, cases[k].chmod));
        cr_assert_eq(t_attr(&w.s, w.f).mode, cases[k].chmod);
        expect_acl(&w, w.f, T_ACL_ACCESS, cases[k].last);
        cr_ok(t_delx(&w.s, &t_u1, w.f, T_ACL_ACCESS)); /* whether there is one or not, as Linux */
        cr_assert_eq(t_attr(&w.s, w.f).flags, 0);
        cr_assert_eq(t_attr(&w.s, w.f).mode, cases[k].chmod);
    }
    world_close(&w);
}

/* Removing: by an empty value, by one without entries, by an ACL that the mode can say, by name. */
BOTH_STORES(acl, removal)
{
    const char *acl = "u::rw-,u:7:rwx,g::r--,m::rwx,o::r--", *plain = "u::rw-,g::r--,o::r--";
    uint8_t none[T_ACL_BYTES];
    struct world w;

    world_open(&w, kind);
    for (unsigned k = 0; k < 4; k++) {
        cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_ACCESS, acl));
        cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, acl));
        cr_assert_eq(t_attr(&w.s, w.d).flags, HF__ATTR_FLAG__AF_XATTR | HF__ATTR_FLAG__AF_ACL |
                                                  HF__ATTR_FLAG__AF_DEFAULT_ACL);
        if (k == 0)
            cr_ok(t_setx(&w.s, &t_u1, w.d, T_ACL_ACCESS, hf_slice(NULL, 0), 0));
        if (k == 1)
            cr_ok(t_setx(&w.s, &t_u1, w.d, T_ACL_ACCESS, hf_slice(none, t_acl("", none)), 0));
        if (k == 2)
            cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_ACCESS, plain));
        if (k == 3)
            cr_ok(t_delx(&w.s, &t_u1, w.d, T_ACL_ACCESS));
        cr_assert_eq(t_attr(&w.s, w.d).mode, k == 2 ? 0644 : 0674);
        cr_assert_eq(t_attr(&w.s, w.d).flags,
                     HF__ATTR_FLAG__AF_XATTR | HF__ATTR_FLAG__AF_DEFAULT_ACL);
        if (k == 0)
            cr_ok(t_setx(&w.s, &t_u1, w.d, T_ACL_DEFAULT, hf_slice(NULL, 0), 0));
        else if (k != 2)
            cr_ok(t_delx(&w.s, &t_u1, w.d, T_ACL_DEFAULT));
        else {
            cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, plain)); /* is one all the same */
            expect_acl(&w, w.d, T_ACL_DEFAULT, plain);
            cr_ok(t_delx(&w.s, &t_u1, w.d, T_ACL_DEFAULT));
        }
        cr_assert_eq(t_attr(&w.s, w.d).flags, 0);
        cr_ok(t_delx(&w.s, &t_u1, w.d, T_ACL_DEFAULT));
    }
    world_close(&w);
}

Test(acl, who_may)
{
    const char *acl = "u::rw-,u:1002:rwx,g::r--,m::rwx,o::r--";
    struct world w;
    struct fh l;

    world_open(&w, HF_STORE_MEM);
    cr_ok(t_symlink(&w.s, &t_u1, w.d, "l", "f", &l));
    cr_status(t_set_acl(&w.s, &t_u2, w.f, T_ACL_ACCESS, acl), HF_E_PERM);
    cr_ok(t_set_acl(&w.s, &t_root, w.f, T_ACL_ACCESS, acl));
    cr_status(t_set_acl(&w.s, &t_u2, w.f, T_ACL_ACCESS, acl), HF_E_PERM); /* rwx is not enough */
    cr_status(t_delx(&w.s, &t_u2, w.f, T_ACL_ACCESS), HF_E_PERM);
    cr_ok(t_getx(&w.s, &t_u2, w.f, T_ACL_ACCESS));
    cr_status(t_set_acl(&w.s, &t_u1, w.f, T_ACL_DEFAULT, acl), HF_E_ACCES);
    cr_status(t_set_acl(&w.s, &t_u2, w.f, T_ACL_DEFAULT, acl), HF_E_PERM);
    cr_ok(t_setx(&w.s, &t_u1, w.f, T_ACL_DEFAULT, hf_slice(NULL, 0), 0));
    cr_ok(t_delx(&w.s, &t_u1, w.f, T_ACL_DEFAULT));
    cr_status(t_getx(&w.s, &t_u1, w.f, T_ACL_DEFAULT), HF_E_NODATA);
    cr_status(t_set_acl(&w.s, &t_u1, l, T_ACL_ACCESS, acl), HF_E_NOTSUPP);
    cr_status(t_getx(&w.s, &t_u1, l, T_ACL_ACCESS), HF_E_NOTSUPP);
    cr_status(t_delx(&w.s, &t_u1, l, T_ACL_ACCESS), HF_E_NOTSUPP);
    world_close(&w);
}

/* setgid stays only for who is in the group, as with chmod. */
Test(acl, setgid)
{
    const char *acl = "u::rwx,u:7:rwx,g::r-x,m::rwx,o::r-x";
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (unsigned k = 0; k < 4; k++) {
        bool in_group = k & 1, root = k & 2;

        cr_ok(t_chown(&w.s, &t_root, w.f, 1001, in_group ? 500 : 777));
        cr_ok(t_chmod(&w.s, &t_root, w.f, 06755));
        cr_ok(t_set_acl(&w.s, root ? &t_root : &t_u1, w.f, T_ACL_ACCESS, acl));
        cr_assert_eq(t_attr(&w.s, w.f).mode, in_group || root ? 06775 : 04775);
    }
    world_close(&w);
}

/* ---- the rule ---- */

enum { A_READ = 1, A_LOOKUP = 2, A_MODIFY = 4, A_EXECUTE = 32 };

static unsigned rwx(struct shard *s, Hf__Cred *c, struct fh f)
{
    uint32_t a = t_access(s, c, f);

    return (a & A_READ ? 4u : 0) | (a & A_MODIFY ? 2u : 0) | (a & A_EXECUTE ? 1u : 0);
}

/* u1: uid 1001, gid 1001, group 500; u2: uid 1002, gid 1002, group 500. The file is of uid 1003 and
 * group 600, unless said otherwise. */
Test(acl, rule)
{
    static const struct {
        const char *acl;
        uint32_t uid, gid;
        unsigned u1;
    } cases[] = {
        {"u::rwx,u:7:---,g::---,m::rwx,o::r--", 1001, 600, 7}, /* the owner, without the mask */
        {"u::r--,u:1001:rwx,g::rwx,m::rwx,o::rwx", 1001, 600, 4},
        {"u::---,u:1001:rwx,g::---,m::rwx,o::---", 1003, 600, 7},
        {"u::---,u:1001:rwx,g::---,m::r--,o::---", 1003, 600, 4},
        {"u::---,u:1001:rw-,g::---,m::---,o::rwx", 1003, 600, 0}, /* named, so not others */
        {"u::rwx,u:1001:---,g::rwx,m::rwx,o::rwx", 1003, 1001, 0},
        {"u::rwx,u:1001:r--,g::rwx,m::rwx,o::rwx", 1003, 500, 4},
        {"u::---,u:1002:rwx,g::---,m::rwx,o::r-x", 1003, 600, 5},
        {"u::---,g::r--,g:500:-w-,m::rwx,o::--x", 1003, 1001, 6}, /* each alone; not both at once */
        {"u::---,g::r--,g:500:rw-,m::r--,o::rwx", 1003, 1001, 4},
        {"u::---,g::---,g:500:rwx,m::-w-,o::r--", 1003, 600, 2},
        {"u::---,g::---,g:500:---,m::rwx,o::rwx", 1003, 600, 0}, /* in a group, so not others */
        {"u::---,g::rwx,g:501:rwx,m::rwx,o::r--", 1003, 600, 4},
        {"u::---,g::r-x,m::-wx,o::---", 1003, 500, 1},
    };
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        cr_ok(t_chown(&w.s, &t_root, w.f, cases[k].uid, cases[k].gid));
        cr_ok(t_set_acl(&w.s, &t_root, w.f, T_ACL_ACCESS, cases[k].acl));
        cr_assert_eq(rwx(&w.s, &t_u1, w.f), cases[k].u1, "%s: %u", cases[k].acl,
                     rwx(&w.s, &t_u1, w.f));
        cr_assert_eq(rwx(&w.s, NULL, w.f), 0);
        cr_assert_geq(rwx(&w.s, &t_root, w.f), 6);
    }
    /* Permissions that only two entries have together are not granted at once. */
    cr_ok(t_chown(&w.s, &t_root, w.d, 1003, 1001));
    cr_ok(t_set_acl(&w.s, &t_root, w.d, T_ACL_ACCESS, "u::---,g::-w-,g:500:--x,m::rwx,o::---"));
    cr_assert_eq(t_access(&w.s, &t_u1, w.d), A_LOOKUP);
    cr_status(t_create(&w.s, &t_u1, w.d, "new", 0600, NULL), HF_E_ACCES);
    cr_status(t_make(&w.s, &t_u1, w.d, "new", DIR_, 0700, NULL), HF_E_ACCES);
    cr_status(t_remove(&w.s, &t_u1, w.d, "f", false), HF_E_ACCES);
    cr_status(t_rename(&w.s, &t_u1, w.d, "f", w.d, "g"), HF_E_ACCES);
    world_close(&w);
}

struct rnd {
    uint64_t state;
};

static uint32_t pick(struct rnd *r, uint32_t n)
{
    r->state = hf_hash_u64(r->state + 0x9e3779b97f4a7c15);
    return (uint32_t)(r->state % n);
}

/* A random ACL, as numbers and as text; ids 1..3, -1: no such entry. */
struct plain {
    int user_obj, group_obj, mask, other, user[4], group[4];
};

static size_t put(char *out, size_t n, char tag, int id, int perm)
{
    char name[16] = "";

    if (id)
        snprintf(name, sizeof(name), "%d", id);
    return n + (size_t)snprintf(out + n, 512 - n, "%s%c:%s:%s%s%s", n ? "," : "", tag, name,
                                perm & 4 ? "r" : "-", perm & 2 ? "w" : "-", perm & 1 ? "x" : "-");
}

static void random_acl(struct rnd *r, struct plain *p, char text[512])
{
    size_t n = 0;

    p->user_obj = (int)pick(r, 8);
    p->group_obj = (int)pick(r, 8);
    p->mask = (int)pick(r, 8);
    p->other = (int)pick(r, 8);
    n = put(text, n, 'u', 0, p->user_obj);
    for (int k = 1; k < 4; k++) {
        p->user[k] = (int)pick(r, 16) - 8;
        if (p->user[k] >= 0)
            n = put(text, n, 'u', k, p->user[k]);
    }
    n = put(text, n, 'g', 0, p->group_obj);
    for (int k = 1; k < 4; k++) {
        p->group[k] = (int)pick(r, 16) - 8;
        if (p->group[k] >= 0)
            n = put(text, n, 'g', k, p->group[k]);
    }
    n = put(text, n, 'm', 0, p->mask);
    put(text, n, 'o', 0, p->other);
}

static bool in_group(const Hf__Cred *c, uint32_t gid)
{
    bool in = c->gid == gid;

    for (size_t k = 0; k < c->n_groups; k++)
        in |= c->groups[k] == gid;
    return in;
}

/* POSIX.1e 23.1.5 in its own words: one bit at a time, and which are granted together. */
static bool granted(const struct plain *p, const Hf__Attr *a, const Hf__Cred *c, int bits)
{
    bool matched = false;

    if (c->uid == 0)
        return true;
    if (c->uid == a->uid)
        return (p->user_obj & bits) == bits;
    if (p->user[c->uid] >= 0)
        return (p->user[c->uid] & p->mask & bits) == bits;
    if (in_group(c, a->gid)) {
        matched = true;
        if ((p->group_obj & p->mask & bits) == bits)
            return true;
    }
    for (uint32_t g = 1; g < 4; g++) {
        if (p->group[g] < 0 || !in_group(c, g))
            continue;
        matched = true;
        if ((p->group[g] & p->mask & bits) == bits)
            return true;
    }
    return !matched && (p->other & bits) == bits;
}

static void check_one(struct world *w, struct rnd *r, const struct plain *p)
{
    uint32_t groups[3], access;
    Hf__Cred c = HF__CRED__INIT;
    Hf__Attr f = t_attr(&w->s, w->f), d = t_attr(&w->s, w->d);

    c.uid = pick(r, 4);
    c.gid = pick(r, 5);
    c.groups = groups;
    c.n_groups = pick(r, 4);
    for (size_t k = 0; k < c.n_groups; k++)
        groups[k] = pick(r, 5);
    access = t_access(&w->s, &c, w->f);
    cr_assert_eq(!!(access & A_READ), granted(p, &f, &c, 4));
    cr_assert_eq(!!(access & A_MODIFY), granted(p, &f, &c, 2));
    if (c.uid)
        cr_assert_eq(!!(access & A_EXECUTE), granted(p, &f, &c, 1));
    cr_status(t_read(&w->s, &c, w->f, 0, 1), granted(p, &f, &c, 4) ? 0 : HF_E_ACCES);
    cr_status(t_write(&w->s, &c, w->f, 0, "x", 1), granted(p, &f, &c, 2) ? 0 : HF_E_ACCES);
    cr_status(t_getx(&w->s, &c, w->f, "user.a"), granted(p, &f, &c, 4) ? HF_E_NODATA : HF_E_ACCES);
    access = t_access(&w->s, &c, w->d);
    cr_assert_eq(!!(access & A_LOOKUP), granted(p, &d, &c, 1));
    cr_assert_eq(!!(access & A_MODIFY), granted(p, &d, &c, 3));
    cr_status(t_lookup(&w->s, &c, w->d, "f", NULL), granted(p, &d, &c, 1) ? 0 : HF_E_ACCES);
    cr_status(t_remove(&w->s, &c, w->d, "none", false),
              granted(p, &d, &c, 1) ? HF_E_NOENT : HF_E_ACCES);
}

BOTH_STORES(acl, rule_random)
{
    struct rnd r = {3};
    struct plain p;
    struct world w;
    char text[512], got[512];

    world_open(&w, kind);
    for (unsigned k = 0; k < (kind == HF_STORE_MEM ? 4000u : 400u); k++) {
        uint32_t uid = pick(&r, 4), gid = pick(&r, 4);

        random_acl(&r, &p, text);
        cr_ok(t_chown(&w.s, &t_root, w.f, uid, gid));
        cr_ok(t_chown(&w.s, &t_root, w.d, uid, gid));
        cr_ok(t_set_acl(&w.s, &t_root, w.f, T_ACL_ACCESS, text));
        cr_ok(t_set_acl(&w.s, &t_root, w.d, T_ACL_ACCESS, text));
        cr_assert_str_eq(t_get_acl(&w.s, w.f, T_ACL_ACCESS, got), text);
        if (pick(&r, 2)) { /* the mode has its say afterwards */
            uint32_t mode = pick(&r, 01000);

            cr_ok(t_chmod(&w.s, &t_root, w.f, mode));
            cr_ok(t_chmod(&w.s, &t_root, w.d, mode));
            p.user_obj = (int)(mode >> 6 & 7);
            p.mask = (int)(mode >> 3 & 7);
            p.other = (int)(mode & 7);
        }
        for (unsigned n = 0; n < 4; n++)
            check_one(&w, &r, &p);
    }
    world_close(&w);
}

/* ---- inheritance ---- */

static int make(struct world *w, const char *name, uint32_t type, uint32_t mode, uint32_t umask,
                struct fh *ret)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__CreateReq c = HF__CREATE_REQ__INIT;
    Hf__MakeReq q = HF__MAKE_REQ__INIT;
    const Hf__CreateRep *cp;
    const Hf__MakeRep *p;
    int r;

    set.set_mode = true;
    set.mode = mode;
    c.cred = q.cred = &t_u1;
    c.dir = q.dir = w->d.ino;
    c.gen = q.gen = w->d.gen;
    c.name = q.name = t_bytes(name);
    c.set = q.set = &set;
    c.umask = q.umask = umask;
    q.type = type;
    if (type == REG) {
        c.how = HF__CREATE_HOW__CREATE_GUARDED;
        r = do_create(&w->s, &c, &cp);
        if (r == 0)
            *ret = t_fh(cp->obj);
        if (r == 0)
            cr_assert_eq(cp->obj->mode, t_attr(&w->s, *ret).mode);
        return r;
    }
    if (type == LNK)
        q.target = t_bytes("target");
    r = do_make(&w->s, &q, &p);
    if (r == 0)
        *ret = t_fh(p->obj);
    return r;
}

BOTH_STORES(acl, inherit)
{
    static const struct {
        const char *dflt;
        uint32_t mode, umask, want;
        const char *access;
    } cases[] = {
        {"", 0777, 022, 0755, ""},
        {"", 0666, 077, 0600, ""},
        {"", 06777, 07777, 06000, ""}, /* umask is about rwx */
        {"u::rwx,g::r-x,o::---", 0666, 077, 0640, ""},
        {"u::r-x,g::r-x,o::---", 0777, 0777, 0550, ""},
        {"u::rwx,u:7:rwx,g::r-x,m::rwx,o::r-x", 0666, 077, 0664,
         "u::rw-,u:7:rwx,g::r-x,m::rw-,o::r--"},
        {"u::rwx,u:7:rwx,g::r-x,m::r-x,o::---", 0777, 0, 0750,
         "u::rwx,u:7:rwx,g::r-x,m::r-x,o::---"},
        {"u::rwx,g::rwx,g:9:-w-,m::rwx,o::rwx", 0, 0, 0, "u::---,g::rwx,g:9:-w-,m::---,o::---"},
    };
    static const uint32_t types[] = {REG, DIR_, FIFO, SOCK};
    struct world w;

    world_open(&w, kind);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        bool dflt = cases[k].dflt[0];

        cr_ok(t_setx(&w.s, &t_u1, w.d, T_ACL_DEFAULT, hf_slice(NULL, 0), 0));
        if (dflt)
            cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, cases[k].dflt));
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            bool dir = types[t] == DIR_;
            struct fh o;

            cr_ok(make(&w, "new", types[t], cases[k].mode, cases[k].umask, &o));
            cr_assert_eq(t_attr(&w.s, o).mode, cases[k].want, "%s: %o", cases[k].dflt,
                         t_attr(&w.s, o).mode);
            expect_acl(&w, o, T_ACL_ACCESS, cases[k].access);
            expect_acl(&w, o, T_ACL_DEFAULT, dir ? cases[k].dflt : "");
            cr_assert_eq(t_attr(&w.s, o).flags,
                         (cases[k].access[0] ? HF__ATTR_FLAG__AF_ACL : 0u) |
                             (dir && dflt ? HF__ATTR_FLAG__AF_DEFAULT_ACL : 0u) |
                             (cases[k].access[0] || (dir && dflt) ? HF__ATTR_FLAG__AF_XATTR : 0u));
            cr_assert_eq(shard_check(&w.s, NULL), 0);
            cr_ok(t_remove(&w.s, &t_root, w.d, "new", dir));
        }
    }
    {
        struct fh l;

        cr_ok(make(&w, "l", LNK, 0, 077, &l));
        cr_assert(t_attr(&w.s, l).mode == 0777 && t_attr(&w.s, l).flags == 0);
    }
    world_close(&w);
}

/* Down a tree: what is made in an inherited directory inherits again. A rename inherits nothing. */
Test(acl, inherit_deep)
{
    const char *dflt = "u::rwx,u:1002:r-x,g::---,m::r-x,o::---";
    struct world w;
    struct fh a, b, f;

    world_open(&w, HF_STORE_MEM);
    cr_ok(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, dflt));
    cr_ok(make(&w, "a", DIR_, 0777, 022, &a));
    cr_ok(t_make(&w.s, &t_u1, a, "b", DIR_, 0777, &b));
    cr_ok(t_create(&w.s, &t_u1, b, "f", 0666, &f));
    expect_acl(&w, b, T_ACL_DEFAULT, dflt);
    expect_acl(&w, f, T_ACL_ACCESS, "u::rw-,u:1002:r-x,g::---,m::r--,o::---");
    cr_ok(t_chmod(&w.s, &t_u1, w.d, 0755));
    cr_ok(t_lookup(&w.s, &t_u2, b, "f", NULL));
    cr_ok(t_read(&w.s, &t_u2, f, 0, 1));
    cr_status(t_write(&w.s, &t_u2, f, 0, "x", 1), HF_E_ACCES);
    cr_ok(t_rename(&w.s, &t_u1, w.d, "f", b, "moved"));
    expect_acl(&w, w.f, T_ACL_ACCESS, "");
    world_close(&w);
}

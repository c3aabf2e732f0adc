/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes: names, who may what, flags, sizes, limits, full stores, capabilities.
 */
#include "support_xattr.h"

#include <stdio.h>
#include <stdlib.h>

#include "meta_priv.h"
#include "xat.h"

#define VALUE(text) hf_slice(text, sizeof(text) - 1)
#define VALUE_MAX   65536u
#define REDO_MAX    (512u << 10)

struct world {
    struct shard s;
    struct fh d, f, l, fifo; /* of u1, 0755 and 0644 */
    struct fh sticky;        /* of root, 1777 */
};

static void world_open(struct world *w, enum hf_store_kind kind)
{
    struct shard *s = &w->s;

    shard_open(s, kind);
    cr_ok(t_make(s, &t_root, t_root_dir, "d", DIR_, 0755, &w->d));
    cr_ok(t_chown(s, &t_root, w->d, 1001, 1001));
    cr_ok(t_create(s, &t_u1, w->d, "f", 0644, &w->f));
    cr_ok(t_symlink(s, &t_u1, w->d, "l", "target", &w->l));
    cr_ok(t_make(s, &t_u1, w->d, "p", FIFO, 0644, &w->fifo));
    cr_ok(t_make(s, &t_root, t_root_dir, "sticky", DIR_, 01777, &w->sticky));
}

static void world_close(struct world *w)
{
    cr_assert_eq(shard_check(&w->s, NULL), 0);
    shard_close(&w->s);
}

static void expect_value(struct world *w, struct fh o, const char *name, struct hf_slice want)
{
    cr_ok(t_getx(&w->s, &t_root, o, name));
    cr_assert(hf_slice_eq(w->s.op.reply_bulk, want), "%s", name);
}

Test(xattr, names)
{
    static const struct {
        const char *name;
        int set, get;
    } cases[] = {
        {"user.a", 0, 0},
        {"user.A", 0, 0},
        {"user.\xff\xfe /:", 0, 0},
        {"trusted.a", 0, 0},
        {"trusted.overlay.opaque", 0, 0},
        {"security.selinux", 0, 0},
        {"security.capability", 0, 0},
        {"", HF_E_RANGE, HF_E_RANGE},
        {"user.", HF_E_INVAL, HF_E_INVAL},
        {"trusted.", HF_E_INVAL, HF_E_INVAL},
        {"security.", HF_E_INVAL, HF_E_INVAL},
        {"user", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"User.a", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"system.", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"system.posix_acl", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"system.nfs4_acl", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"other.a", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"a", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"holdfast.", HF_E_NOTSUPP, HF_E_NOTSUPP},
        {"holdfast.allocation2", HF_E_NOTSUPP, HF_E_NOTSUPP},
    };
    Hf__SetxattrReq q = HF__SETXATTR_REQ__INIT;
    char longest[257] = "user.";
    const Hf__SetxattrRep *p;
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        cr_status(t_getx(&w.s, &t_root, w.f, cases[k].name),
                  cases[k].get ? cases[k].get : HF_E_NODATA);
        cr_status(t_setx(&w.s, &t_root, w.f, cases[k].name, VALUE("x"), 0), cases[k].set);
        cr_status(t_getx(&w.s, &t_root, w.f, cases[k].name), cases[k].get);
        cr_status(t_delx(&w.s, &t_root, w.f, cases[k].name), cases[k].set);
        cr_status(t_delx(&w.s, &t_root, w.f, cases[k].name),
                  cases[k].set ? cases[k].set : HF_E_NODATA);
    }
    cr_assert_eq(t_attr(&w.s, w.f).flags, 0);
    memset(longest + 5, 'n', 250);
    cr_ok(t_setx(&w.s, &t_root, w.f, longest, VALUE("long"), 0));
    expect_value(&w, w.f, longest, VALUE("long"));
    longest[255] = 'n';
    cr_status(t_setx(&w.s, &t_root, w.f, longest, VALUE("long"), 0), HF_E_RANGE);
    cr_status(t_getx(&w.s, &t_root, w.f, longest), HF_E_RANGE);
    cr_status(t_delx(&w.s, &t_root, w.f, longest), HF_E_RANGE);
    q.cred = &t_root;
    q.ino = w.f.ino;
    q.gen = w.f.gen;
    q.name = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t) "user.a\0b"};
    cr_status(do_setxattr(&w.s, &q, &p), HF_E_INVAL);
    q.gen++;
    cr_status(do_setxattr(&w.s, &q, &p), HF_E_STALE);
    world_close(&w);
}

/* What each caller gets told who sets, reads and removes. */
Test(xattr, who_may)
{
    enum { D, F, L, P, STICKY };
    static const struct {
        unsigned object;
        const char *name;
        uint32_t mode;      /* of the object; 0: as it is */
        int set[3], get[3]; /* root, u1 (the owner), u2; get is asked when it is set */
    } cases[] = {
        {F, "user.a", 0644, {0, 0, HF_E_ACCES}, {0, 0, 0}},
        {F, "user.a", 0640, {0, 0, HF_E_ACCES}, {0, 0, HF_E_ACCES}},
        {F, "user.a", 0606, {0, 0, 0}, {0, 0, 0}},
        {F, "user.a", 0444, {0, HF_E_ACCES, HF_E_ACCES}, {0, 0, 0}},
        {F, "user.a", 0222, {0, 0, 0}, {0, HF_E_ACCES, HF_E_ACCES}},
        {D, "user.a", 0755, {0, 0, HF_E_ACCES}, {0, 0, 0}},
        {D, "user.a", 01777, {0, 0, HF_E_PERM}, {0, 0, 0}},
        {STICKY, "user.a", 0, {0, HF_E_PERM, HF_E_PERM}, {0, 0, 0}},
        {L,
         "user.a",
         0,
         {HF_E_PERM, HF_E_PERM, HF_E_PERM},
         {HF_E_NODATA, HF_E_NODATA, HF_E_NODATA}},
        {P,
         "user.a",
         0,
         {HF_E_PERM, HF_E_PERM, HF_E_PERM},
         {HF_E_NODATA, HF_E_NODATA, HF_E_NODATA}},
        {F, "trusted.a", 0666, {0, HF_E_PERM, HF_E_PERM}, {0, HF_E_NODATA, HF_E_NODATA}},
        {L, "trusted.a", 0, {0, HF_E_PERM, HF_E_PERM}, {0, HF_E_NODATA, HF_E_NODATA}},
        {F, "security.a", 0600, {0, HF_E_PERM, HF_E_PERM}, {0, 0, 0}},
        {L, "security.a", 0, {0, HF_E_PERM, HF_E_PERM}, {0, 0, 0}},
        {P, "security.capability", 0, {0, HF_E_PERM, HF_E_PERM}, {0, 0, 0}},
        {F,
         "holdfast.allocation",
         0,
         {HF_E_NOTDIR, HF_E_NOTDIR, HF_E_NOTDIR},
         {HF_E_NODATA, HF_E_NODATA, HF_E_NODATA}},
        {D, "holdfast.allocation", 0777, {0, 0, HF_E_PERM}, {0, 0, 0}},
    };
    Hf__Cred *who[3] = {&t_root, &t_u1, &t_u2};
    struct world w;

    world_open(&w, HF_STORE_MEM);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct fh all[] = {w.d, w.f, w.l, w.fifo, w.sticky}, o = all[cases[k].object];
        bool exists = cases[k].set[0] == 0;

        if (cases[k].mode)
            cr_ok(t_chmod(&w.s, &t_root, o, cases[k].mode));
        for (size_t c = 0; c < 3; c++) {
            int set = cases[k].set[c];

            cr_status(t_setx(&w.s, who[c], o, cases[k].name, VALUE("local"), 0), set);
            cr_status(t_delx(&w.s, who[c], o, cases[k].name), set);
            if (exists) {
                cr_ok(t_setx(&w.s, &t_root, o, cases[k].name, VALUE("local"), 0));
                cr_status(t_delx(&w.s, who[c], o, cases[k].name), set);
                cr_ok(t_setx(&w.s, &t_root, o, cases[k].name, VALUE("local"), 0));
            }
            cr_status(t_getx(&w.s, who[c], o, cases[k].name), cases[k].get[c]);
            cr_status(t_getx(&w.s, NULL, o, cases[k].name), HF_E_ACCES);
            cr_status(t_setx(&w.s, NULL, o, cases[k].name, VALUE("local"), 0), HF_E_ACCES);
            cr_status(t_delx(&w.s, NULL, o, cases[k].name), HF_E_ACCES);
            if (exists)
                cr_ok(t_delx(&w.s, &t_root, o, cases[k].name));
        }
    }
    world_close(&w);
}

Test(xattr, flags)
{
    struct world w;

    world_open(&w, HF_STORE_MEM);
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("1"), HF__XATTR_FLAG__XA_REPLACE),
              HF_E_NODATA);
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("2"), HF__XATTR_FLAG__XA_CREATE));
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("3"), HF__XATTR_FLAG__XA_CREATE),
              HF_E_EXIST);
    expect_value(&w, w.f, "user.a", VALUE("2"));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("4"), HF__XATTR_FLAG__XA_REPLACE));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("five"), 0));
    expect_value(&w, w.f, "user.a", VALUE("five"));
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("6"), 3), HF_E_INVAL);
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("6"), 4), HF_E_INVAL);
    world_close(&w);
}

/* What a change moves, and what it tells. */
BOTH_STORES(xattr, times_and_event)
{
    Hf__Attr before, after;
    struct world w;

    world_open(&w, kind);
    for (unsigned k = 0; k < 3; k++) {
        before = t_attr(&w.s, w.f);
        if (k < 2)
            cr_ok(t_setx(&w.s, &t_u1, w.f, "user.name", VALUE("v"), 0));
        else
            cr_ok(t_delx(&w.s, &t_u1, w.f, "user.name"));
        cr_assert_eq(w.s.op.event.op, HF__EVENT_OP__EV_XATTR);
        cr_assert(hf_slice_eq(hf_slice(w.s.op.event.name.data, w.s.op.event.name.len),
                              VALUE("user.name")));
        cr_assert(w.s.op.event.ino == w.f.ino && w.s.op.event.uid == 1001);
        after = t_attr(&w.s, w.f);
        cr_assert(after.ctime_ns > before.ctime_ns && after.change > before.change);
        cr_assert(after.mtime_ns == before.mtime_ns && after.atime_ns == before.atime_ns);
        cr_assert_eq(after.flags, k < 2 ? HF__ATTR_FLAG__AF_XATTR : 0);
    }
    before = t_attr(&w.s, w.f);
    cr_status(t_delx(&w.s, &t_u1, w.f, "user.name"), HF_E_NODATA);
    cr_status(t_getx(&w.s, &t_u1, w.f, "user.name"), HF_E_NODATA);
    cr_assert_eq(t_attr(&w.s, w.f).change, before.change);
    world_close(&w);
}

BOTH_STORES(xattr, sizes)
{
    static const size_t sizes[] = {0, 1, 255, 4096, 65535, VALUE_MAX};
    uint8_t *big = malloc(VALUE_MAX + 1);
    size_t before;
    struct world w;

    cr_assert(big);
    for (size_t k = 0; k <= VALUE_MAX; k++)
        big[k] = (uint8_t)(k * 31 + (k >> 8));
    world_open(&w, kind);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        before = hf_store_redo_bytes(w.s.store);
        cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", hf_slice(big, sizes[k]), 0));
        cr_assert_lt(hf_store_redo_bytes(w.s.store) - before, REDO_MAX);
        expect_value(&w, w.f, "user.a", hf_slice(big, sizes[k]));
    }
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", hf_slice(big, VALUE_MAX + 1), 0), HF_E_TOOBIG);
    expect_value(&w, w.f, "user.a", hf_slice(big, VALUE_MAX));
    cr_ok(t_setx(&w.s, &t_root, w.l, "trusted.a", hf_slice(big, VALUE_MAX), 0));
    shard_checkpoint(&w.s);
    cr_assert_eq(hf_store_count(w.s.store, HF_T_XAT), 2);
    cr_ok(t_remove(&w.s, &t_u1, w.d, "f", false));
    cr_ok(t_remove(&w.s, &t_u1, w.d, "l", false));
    cr_assert_eq(hf_store_count(w.s.store, HF_T_XAT), 0);
    world_close(&w);
    free(big);
}

Test(xattr, list)
{
    struct world w;
    char out[512];

    world_open(&w, HF_STORE_MEM);
    cr_ok(t_listx(&w.s, &t_u2, w.d, out, sizeof(out)));
    cr_assert_str_eq(out, "");
    cr_status(t_listx(&w.s, NULL, w.d, out, sizeof(out)), HF_E_ACCES);
    cr_ok(t_setx(&w.s, &t_root, w.d, "user.b", VALUE("1"), 0));
    cr_ok(t_setx(&w.s, &t_root, w.d, "user.a", VALUE("1"), 0));
    cr_ok(t_setx(&w.s, &t_root, w.d, "trusted.t", VALUE("1"), 0));
    cr_ok(t_setx(&w.s, &t_root, w.d, "security.s", VALUE("1"), 0));
    cr_ok(t_setx(&w.s, &t_root, w.d, "holdfast.allocation", VALUE("local"), 0));
    cr_ok(t_set_acl(&w.s, &t_root, w.d, T_ACL_ACCESS, "u::rwx,u:5:rwx,g::r--,m::rwx,o::---"));
    cr_ok(t_set_acl(&w.s, &t_root, w.d, T_ACL_DEFAULT, "u::rwx,g::r--,o::---"));
    cr_ok(t_chmod(&w.s, &t_root, w.d, 0)); /* a list needs no permission */
    cr_ok(t_listx(&w.s, &t_root, w.d, out, sizeof(out)));
    cr_assert_str_eq(out, "holdfast.allocation security.s " T_ACL_ACCESS " " T_ACL_DEFAULT
                          " trusted.t user.a user.b ");
    cr_ok(t_listx(&w.s, &t_u2, w.d, out, sizeof(out)));
    cr_assert_str_eq(out, "holdfast.allocation security.s " T_ACL_ACCESS " " T_ACL_DEFAULT
                          " user.a user.b ");
    world_close(&w);
}

static int set_number(struct world *w, struct fh o, unsigned k, size_t name_len)
{
    char name[256];

    memset(name, 'x', sizeof(name));
    snprintf(name, sizeof(name), "user.%04u", k);
    name[9] = name_len > 9 ? 'x' : 0;
    name[name_len] = 0;
    return t_setx(&w->s, &t_root, o, name, VALUE("v"), 0);
}

/* 1024 attributes; 64 KiB of names, which always leaves room for the virtual one. */
BOTH_STORES(xattr, limits)
{
    struct world w;
    struct fh f2;
    size_t before;

    world_open(&w, kind);
    for (unsigned k = 0; k < HF_XAT_COUNT_MAX; k++)
        cr_ok(set_number(&w, w.f, k, 9));
    cr_status(set_number(&w, w.f, HF_XAT_COUNT_MAX, 9), HF_E_NOSPC);
    cr_ok(set_number(&w, w.f, 7, 9));
    cr_ok(t_delx(&w.s, &t_root, w.f, "user.0007"));
    cr_ok(set_number(&w, w.f, HF_XAT_COUNT_MAX, 9));
    for (unsigned k = 0; k < 255; k++)
        cr_ok(set_number(&w, w.d, k, 255));
    cr_status(set_number(&w, w.d, 255, 255), HF_E_NOSPC);
    cr_status(set_number(&w, w.d, 255, 235 + 1), HF_E_NOSPC);
    cr_ok(set_number(&w, w.d, 255, 235));
    cr_ok(t_setx(&w.s, &t_root, w.d, "holdfast.allocation", VALUE("local"), 0));
    {
        char *out = malloc(1u << 20);

        cr_assert(out);
        cr_ok(t_listx(&w.s, &t_root, w.d, out, 1u << 20));
        cr_assert_eq(w.s.op.reply_bulk.len, HF_XAT_LIST_MAX);
        free(out);
    }
    cr_ok(t_create(&w.s, &t_root, t_root_dir, "f2", 0644, &f2));
    before = hf_store_redo_bytes(w.s.store);
    cr_ok(t_rename(&w.s, &t_root, t_root_dir, "f2", w.d, "f")); /* replaces one that has 1024 */
    cr_assert_lt(hf_store_redo_bytes(w.s.store) - before, REDO_MAX);
    cr_assert_eq(hf_store_count(w.s.store, HF_T_XAT), 256);
    world_close(&w);
}

/* A full store refuses what grows and nothing else. */
BOTH_STORES(xattr, no_space)
{
    struct world w;

    world_open(&w, kind);
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("1234"), 0));
    cr_ok(t_set_acl(&w.s, &t_u1, w.f, T_ACL_ACCESS, "u::rw-,u:5:rw-,g::r--,m::rw-,o::---"));
    w.s.may_grow = false;
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("12345"), 0), HF_E_NOSPC);
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.b", VALUE(""), 0), HF_E_NOSPC);
    cr_status(
        t_set_acl(&w.s, &t_u1, w.f, T_ACL_ACCESS, "u::rw-,u:5:rw-,u:6:r--,g::r--,m::rw-,o::---"),
        HF_E_NOSPC);
    cr_status(t_set_acl(&w.s, &t_u1, w.d, T_ACL_DEFAULT, "u::rw-,g::r--,o::---"), HF_E_NOSPC);
    expect_value(&w, w.f, "user.a", VALUE("1234"));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("abcd"), 0));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("abc"), 0));
    cr_ok(t_set_acl(&w.s, &t_u1, w.f, T_ACL_ACCESS, "u::rw-,u:6:rw-,g::r--,m::rw-,o::---"));
    cr_ok(t_chmod(&w.s, &t_u1, w.f, 0600));
    cr_ok(t_set_acl(&w.s, &t_u1, w.f, T_ACL_ACCESS, "u::rw-,g::r--,o::---"));
    cr_ok(t_setx(&w.s, &t_u1, w.d, "holdfast.allocation", VALUE("local"), 0));
    cr_ok(t_delx(&w.s, &t_u1, w.f, "user.a"));
    cr_assert_eq(t_attr(&w.s, w.f).flags, 0);
    world_close(&w);
}

/* ---- capabilities (E3) ---- */

#define CAP "security.capability"

static void give_cap(struct world *w)
{
    cr_ok(t_setx(&w->s, &t_root, w->f, CAP, VALUE("cap"), 0));
}

static void expect_cap(struct world *w, bool there)
{
    cr_status(t_getx(&w->s, &t_u2, w->f, CAP), there ? 0 : HF_E_NODATA);
    cr_assert_eq(t_attr(&w->s, w->f).flags, there ? HF__ATTR_FLAG__AF_XATTR : 0);
}

static void write_chunks(struct world *w, Hf__Cred *c)
{
    Hf__WriteReq q = HF__WRITE_REQ__INIT;
    Hf__WriteEndReq e = HF__WRITE_END_REQ__INIT;
    const Hf__WriteEndRep *ep;
    const Hf__WriteRep *p;

    q.cred = e.cred = c;
    q.ino = e.ino = w->f.ino;
    q.gen = e.gen = w->f.gen;
    e.len = q.len = 1u << 20;
    q.stable = e.stable = HF__STABLE__FILE_SYNC;
    cr_ok(do_write(&w->s, &q, &p));
    cr_assert_eq(p->next, HF__WRITE_NEXT__WRITE_CHUNKS);
    e.layout_gen = p->layout->gen;
    e.fence = p->layout->fence;
    cr_ok(do_write_end(&w->s, &e, &ep));
}

BOTH_STORES(xattr, capability_goes)
{
    struct world w;

    world_open(&w, kind);
    cr_ok(t_chmod(&w.s, &t_u1, w.f, 0666));
    give_cap(&w);
    expect_cap(&w, true);
    cr_ok(t_chmod(&w.s, &t_u1, w.f, 0777)); /* not by chmod, reading, or a write of nothing */
    cr_ok(t_read(&w.s, &t_u2, w.f, 0, 10));
    cr_ok(t_write(&w.s, &t_u2, w.f, 0, "", 0));
    cr_status(t_write(&w.s, &t_u2, w.f, UINT64_C(1) << 60, "", 0), HF_E_FBIG);
    expect_cap(&w, true);
    cr_ok(t_write(&w.s, &t_u2, w.f, 0, "x", 1));
    expect_cap(&w, false);
    give_cap(&w);
    cr_ok(t_write(&w.s, &t_root, w.f, 0, "x", 1)); /* root too: the content is another */
    expect_cap(&w, false);
    give_cap(&w);
    cr_ok(t_truncate(&w.s, &t_u2, w.f, 0));
    expect_cap(&w, false);
    give_cap(&w);
    cr_ok(t_chown(&w.s, &t_root, w.f, 1002, -1));
    expect_cap(&w, false);
    give_cap(&w);
    cr_ok(t_chown(&w.s, &t_root, w.f, -1, 500));
    expect_cap(&w, false);
    give_cap(&w);
    write_chunks(&w, &t_u2);
    expect_cap(&w, false);
    /* Of several attributes only this one goes. */
    give_cap(&w);
    cr_ok(t_setx(&w.s, &t_root, w.f, "user.a", VALUE("1"), 0));
    write_chunks(&w, &t_root);
    expect_value(&w, w.f, "user.a", VALUE("1"));
    cr_status(t_getx(&w.s, &t_root, w.f, CAP), HF_E_NODATA);
    world_close(&w);
}

/* ---- buckets ---- */

/* Another name in a slot of the bucket of "user.a", as if it had the same hash. */
static void occupy(struct world *w, unsigned slot)
{
    struct hf_xat x = {VALUE("other"), VALUE("v")};
    uint8_t key[HF_KEY_XAT], val[64];
    uint64_t hash = hf_xat_hash(w->s.meta->cookie_key, HF_XAT_USER, VALUE("a"));

    hf_key_xat(key, w->f.ino, HF_XAT_USER, hash + slot);
    cr_ok(hf_store_put(w->s.store, HF_T_XAT, hf_slice(key, sizeof(key)),
                       hf_slice(val, hf_xat_encode(&x, val))));
}

static void vacate(struct world *w, unsigned slot)
{
    uint8_t key[HF_KEY_XAT];
    uint64_t hash = hf_xat_hash(w->s.meta->cookie_key, HF_XAT_USER, VALUE("a"));

    hf_key_xat(key, w->f.ino, HF_XAT_USER, hash + slot);
    cr_ok(hf_store_del(w->s.store, HF_T_XAT, hf_slice(key, sizeof(key))));
}

static unsigned slot_of_a(struct world *w)
{
    struct hf_xat_row row;
    struct hf_inode i;

    cr_ok(hf_ino_get(w->s.meta, w->f.ino, &i));
    cr_ok(hf_xat_find(w->s.meta, &i, HF_XAT_USER, VALUE("a"), &row, NULL));
    cr_assert(row.found);
    return row.key[16];
}

BOTH_STORES(xattr, one_hash)
{
    struct world w;

    world_open(&w, kind);
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.keep", VALUE("k"), 0)); /* the flag stays */
    occupy(&w, 0);
    occupy(&w, 1);
    occupy(&w, 3);
    cr_status(t_getx(&w.s, &t_u1, w.f, "user.a"), HF_E_NODATA);
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("mine"), 0));
    cr_assert_eq(slot_of_a(&w), 2);
    expect_value(&w, w.f, "user.a", VALUE("mine"));
    vacate(&w, 0);
    expect_value(&w, w.f, "user.a", VALUE("mine"));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("again"), HF__XATTR_FLAG__XA_REPLACE));
    cr_assert_eq(slot_of_a(&w), 2);
    cr_ok(t_delx(&w.s, &t_u1, w.f, "user.a"));
    cr_ok(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("new"), 0));
    cr_assert_eq(slot_of_a(&w), 0);
    cr_ok(t_delx(&w.s, &t_u1, w.f, "user.a"));
    for (unsigned k = 0; k < HF_XAT_SLOTS; k++)
        occupy(&w, k);
    cr_status(t_setx(&w.s, &t_u1, w.f, "user.a", VALUE("x"), 0), HF_E_NOSPC);
    for (unsigned k = 0; k < HF_XAT_SLOTS; k++)
        vacate(&w, k);
    world_close(&w);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Random changes of attributes against a plain model, on a store whose redo is applied to a second
 * one all the time: at the end both hold the same, byte for byte, and the check finds nothing.
 */
#include "support_xattr.h"

#include <stdio.h>

#include "holdfast/map.h"

enum { OBJECTS = 5, NAMES = 24, VALUE_MOST = 3000 };

static const char *const acls[] = {
    "u::rwx,u:1002:r-x,g::r-x,m::rwx,o::---",
    "u::rw-,g::r--,g:500:rw-,m::rw-,o::r--",
    "u::rwx,u:7:rwx,u:8:-w-,g::---,g:9:r-x,m::r-x,o::--x",
};

struct value {
    bool there;
    size_t len;
    uint8_t seed;
};

struct object {
    struct fh fh;
    bool exists, dir;
    struct value v[NAMES];
    int acl, dflt; /* index into acls, -1: none */
    uint32_t mode; /* 0777 bits */
};

struct model {
    struct shard s;
    struct hf_store *copy;
    char copy_dir[64];
    uint64_t rnd;
    struct object o[OBJECTS];
    uint8_t bytes[VALUE_MOST + 256];
};

static uint32_t pick(struct model *m, uint32_t n)
{
    m->rnd = hf_hash_u64(m->rnd + 0x9e3779b97f4a7c15);
    return (uint32_t)(m->rnd % n);
}

static void name_of(unsigned k, char out[32])
{
    static const char *const ns[] = {"user.", "trusted.", "security."};

    snprintf(out, 32, "%sname%u", ns[k % 3], k / 3);
}

static struct hf_slice bytes(const struct model *m, const struct value *v)
{
    return hf_slice(m->bytes + v->seed, v->len);
}

static const char *slot_name(unsigned k)
{
    static const char *const names[OBJECTS] = {"a", "b", "c", "d", "e"};

    return names[k];
}

/* ---- one step each ---- */

static void step_set(struct model *m, struct object *o)
{
    struct value *v,
        n = {true, pick(m, 8) ? pick(m, 40) : pick(m, VALUE_MOST), (uint8_t)pick(m, 256)};
    unsigned k = pick(m, NAMES);
    uint32_t flags = pick(m, 3);
    char name[32];
    int want;

    name_of(k, name);
    v = &o->v[k];
    want = flags == HF__XATTR_FLAG__XA_CREATE && v->there     ? HF_E_EXIST
           : flags == HF__XATTR_FLAG__XA_REPLACE && !v->there ? HF_E_NODATA
           : !m->s.may_grow && (!v->there || n.len > v->len)  ? HF_E_NOSPC
                                                              : 0;
    cr_status(t_setx(&m->s, &t_root, o->fh, name, bytes(m, &n), flags), want);
    if (want == 0)
        *v = n;
}

static void step_remove(struct model *m, struct object *o)
{
    unsigned k = pick(m, NAMES);
    char name[32];

    name_of(k, name);
    cr_status(t_delx(&m->s, &t_root, o->fh, name), o->v[k].there ? 0 : HF_E_NODATA);
    o->v[k].there = false;
}

static uint32_t mode_of(const char *acl)
{
    const char *m = strstr(acl, "m::"), *at[3] = {acl + 3, m + 3, strstr(acl, "o::") + 3};
    uint32_t mode = 0;

    for (unsigned k = 0; k < 9; k++)
        mode = mode << 1 | (at[k / 3][k % 3] != '-');
    return mode;
}

static void step_acl(struct model *m, struct object *o)
{
    bool access = !o->dir || pick(m, 2);
    const char *name = access ? T_ACL_ACCESS : T_ACL_DEFAULT;
    int which = (int)pick(m, 4) - 1, *has = access ? &o->acl : &o->dflt;

    if (which < 0)
        cr_ok(t_delx(&m->s, &t_root, o->fh, name));
    else if (!m->s.may_grow)
        return; /* test_xattr has this */
    else
        cr_ok(t_set_acl(&m->s, &t_root, o->fh, name, acls[which]));
    *has = which;
    if (access && which >= 0)
        o->mode = mode_of(acls[which]);
}

static void step_chmod(struct model *m, struct object *o)
{
    o->mode = pick(m, 01000);
    cr_ok(t_chmod(&m->s, &t_root, o->fh, o->mode));
}

/* Away with it, and another of the same name, sometimes under a default ACL. */
static void step_again(struct model *m, unsigned k)
{
    struct object *o = &m->o[k], *in = &m->o[0];
    struct fh dir = k ? in->fh : t_root_dir;

    if (k == 0 || !m->s.may_grow)
        return;
    if (o->exists)
        cr_ok(t_remove(&m->s, &t_root, dir, slot_name(k), o->dir));
    *o = (struct object){.exists = true, .dir = pick(m, 2), .acl = in->dflt, .dflt = -1};
    o->mode = 0777;
    if (in->dflt >= 0)
        o->mode &= mode_of(acls[in->dflt]);
    if (o->dir) {
        o->dflt = in->dflt;
        cr_ok(t_make(&m->s, &t_root, dir, slot_name(k), DIR_, 0777, &o->fh));
    } else {
        cr_ok(t_create(&m->s, &t_root, dir, slot_name(k), 0777, &o->fh));
    }
}

/* ---- the two agree ---- */

static void expect_acl(struct model *m, struct object *o, const char *name, int which, bool access)
{
    char got[512];

    t_get_acl(&m->s, o->fh, name, got);
    if (which < 0) {
        cr_assert_str_eq(got, "");
        return;
    }
    cr_assert_neq(got[0], 0);
    if (access)
        cr_assert_eq(mode_of(got), o->mode);
    else
        cr_assert_str_eq(got, acls[which]);
}

static void compare(struct model *m, struct object *o)
{
    unsigned n = 0, spaces = 0;
    char list[1024], name[32];
    Hf__Attr a = t_attr(&m->s, o->fh);

    for (unsigned k = 0; k < NAMES; k++) {
        name_of(k, name);
        cr_status(t_getx(&m->s, &t_root, o->fh, name), o->v[k].there ? 0 : HF_E_NODATA);
        if (o->v[k].there)
            cr_assert(hf_slice_eq(m->s.op.reply_bulk, bytes(m, &o->v[k])));
        n += o->v[k].there;
    }
    n += o->acl >= 0;
    n += o->dflt >= 0;
    cr_ok(t_listx(&m->s, &t_root, o->fh, list, sizeof(list)));
    for (const char *at = list; *at; at++)
        spaces += *at == ' ';
    cr_assert_eq(spaces, n);
    cr_assert_eq(a.mode, o->mode);
    cr_assert_eq(a.flags, (n ? HF__ATTR_FLAG__AF_XATTR : 0u) |
                              (o->acl >= 0 ? HF__ATTR_FLAG__AF_ACL : 0u) |
                              (o->dflt >= 0 ? HF__ATTR_FLAG__AF_DEFAULT_ACL : 0u));
    expect_acl(m, o, T_ACL_ACCESS, o->acl, true);
    if (o->dir)
        expect_acl(m, o, T_ACL_DEFAULT, o->dflt, false);
}

static void feed_copy(struct model *m)
{
    struct hf_buf redo = {0};

    cr_ok(hf_store_redo_take(m->s.store, &redo));
    if (redo.len)
        cr_ok(hf_store_redo_apply(m->copy, hf_buf_slice(&redo)));
    hf_buf_fini(&redo);
}

static int collect(void *arg, struct hf_slice key, struct hf_slice val)
{
    cr_ok(hf_buf_append(arg, key.data, key.len));
    return hf_buf_append(arg, val.data, val.len);
}

static void expect_same(struct model *m, unsigned table)
{
    struct hf_store *both[2] = {m->s.store, m->copy};
    struct hf_buf b[2] = {{0}, {0}};
    struct hf_store_snap *snap;

    for (unsigned k = 0; k < 2; k++) {
        cr_ok(hf_store_snap_open(both[k], &snap));
        cr_ok(hf_store_snap_scan(snap, table, hf_slice("", 1), collect, &b[k]));
        hf_store_snap_close(snap);
    }
    cr_assert(hf_slice_eq(hf_buf_slice(&b[0]), hf_buf_slice(&b[1])));
    hf_buf_fini(&b[0]);
    hf_buf_fini(&b[1]);
}

static void step(struct model *m)
{
    unsigned k = pick(m, OBJECTS);
    struct object *o = &m->o[k];

    m->s.may_grow = pick(m, 10) != 0;
    if (!o->exists) {
        step_again(m, k);
        return;
    }
    switch (pick(m, 32)) {
    case 0:
        step_again(m, k);
        break;
    case 1:
    case 2:
        step_chmod(m, o);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        step_acl(m, o);
        break;
    case 7:
        compare(m, o);
        break;
    default:
        if (pick(m, 5) < 3)
            step_set(m, o);
        else
            step_remove(m, o);
    }
}

static void run(struct model *m, enum hf_store_kind kind, unsigned steps)
{
    for (size_t k = 0; k < sizeof(m->bytes); k++)
        m->bytes[k] = (uint8_t)hf_hash_u64(k);
    shard_open(&m->s, kind);
    m->copy = store_open(kind, m->copy_dir);
    m->o[0] = (struct object){.exists = true, .dir = true, .acl = -1, .dflt = -1, .mode = 0777};
    cr_ok(t_make(&m->s, &t_root, t_root_dir, slot_name(0), DIR_, 0777, &m->o[0].fh));
    for (unsigned n = 0; n < steps; n++) {
        step(m);
        if (pick(m, 50) == 0)
            feed_copy(m);
        if (pick(m, 3000) == 0)
            shard_reopen(&m->s);
    }
    feed_copy(m);
    cr_assert_eq(shard_check(&m->s, NULL), 0);
    cr_ok(hf_store_checkpoint(m->copy, 1));
    for (unsigned t = 0; t < hf_meta_ntables; t++)
        expect_same(m, t);
    for (unsigned k = 0; k < OBJECTS; k++)
        if (m->o[k].exists)
            compare(m, &m->o[k]);
    store_close(m->copy, m->copy_dir);
    shard_close(&m->s);
}

Test(xattr_model, mem)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        static struct model m;

        m = (struct model){.rnd = seed};
        run(&m, HF_STORE_MEM, 20000);
    }
}

Test(xattr_model, lmdb)
{
    static struct model m = {.rnd = 99};

    run(&m, HF_STORE_LMDB, 10000);
}

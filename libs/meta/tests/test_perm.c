/* SPDX-License-Identifier: Apache-2.0
 *
 * ACCESS and the operations agree: for random modes, owners and callers, what ACCESS grants works,
 * and what it does not is refused with ACCES.
 */
#include "support_meta.h"

#include "holdfast/map.h"

enum { A_READ = 1, A_LOOKUP = 2, A_MODIFY = 4, A_EXTEND = 8, A_DELETE = 16, A_EXECUTE = 32 };

struct rnd {
    uint64_t state;
};

static uint32_t pick(struct rnd *r, uint32_t n)
{
    r->state = hf_hash_u64(r->state + 0x9e3779b97f4a7c15);
    return (uint32_t)(r->state % n);
}

static uint32_t access_bits(struct shard *s, Hf__Cred *c, struct fh o)
{
    Hf__AccessReq q = HF__ACCESS_REQ__INIT;
    const Hf__AccessRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.want = 0x3f;
    cr_ok(do_access(s, &q, &p));
    cr_assert(p->obj);
    return p->granted;
}

static int readdir_once(struct shard *s, Hf__Cred *c, struct fh dir)
{
    Hf__ReaddirReq q = HF__READDIR_REQ__INIT;
    const Hf__ReaddirRep *p;

    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.max_bytes = 4096;
    return do_readdir(s, &q, &p);
}

static void random_cred(struct rnd *r, Hf__Cred *c, uint32_t groups[4])
{
    hf__cred__init(c);
    c->uid = pick(r, 4);
    c->gid = pick(r, 4);
    c->n_groups = pick(r, 4);
    c->groups = groups;
    for (size_t k = 0; k < c->n_groups; k++)
        groups[k] = pick(r, 4);
}

/* The POSIX rule once more, in the plainest words. */
static uint32_t expect_rwx(const Hf__Attr *a, const Hf__Cred *c)
{
    bool group = c->gid == a->gid;

    for (size_t k = 0; k < c->n_groups; k++)
        group |= c->groups[k] == a->gid;
    if (c->uid == 0)
        return 6 | (a->type == DIR_ || (a->mode & 0111) ? 1 : 0);
    return (c->uid == a->uid ? a->mode >> 6 : group ? a->mode >> 3 : a->mode) & 7;
}

static void check_file(struct shard *s, Hf__Cred *c, struct fh f)
{
    Hf__Attr a = t_attr(s, f);
    uint32_t granted = access_bits(s, c, f), rwx = expect_rwx(&a, c);

    cr_assert(!!(granted & A_READ) == !!(rwx & 4));
    cr_assert(!!(granted & A_EXECUTE) == !!(rwx & 1));
    cr_assert(!!(granted & A_MODIFY) == !!(rwx & 2) && !!(granted & A_EXTEND) == !!(rwx & 2));
    cr_assert(!(granted & (A_LOOKUP | A_DELETE)));
    cr_status(t_read(s, c, f, 0, 10), granted & A_READ ? 0 : HF_E_ACCES);
    cr_status(t_write(s, c, f, 0, "ab", 2), granted & A_MODIFY ? 0 : HF_E_ACCES);
    cr_status(t_truncate(s, c, f, 3), granted & A_MODIFY || c->uid == a.uid ? 0 : HF_E_ACCES);
}

static void check_dir(struct shard *s, Hf__Cred *c, struct fh d)
{
    Hf__Attr a = t_attr(s, d);
    uint32_t granted = access_bits(s, c, d), rwx = expect_rwx(&a, c);
    bool search = granted & A_LOOKUP, change = granted & A_MODIFY;

    cr_assert(!!(granted & A_READ) == !!(rwx & 4) && search == !!(rwx & 1) &&
              change == ((rwx & 3) == 3));
    cr_assert(!!(granted & A_EXTEND) == change && !!(granted & A_DELETE) == change);
    cr_assert(!(granted & A_EXECUTE));
    cr_status(readdir_once(s, c, d), granted & A_READ ? 0 : HF_E_ACCES);
    cr_status(t_lookup(s, c, d, "in", NULL), search ? 0 : HF_E_ACCES);
    cr_status(t_create(s, c, d, "new", 0600, NULL), change ? 0 : HF_E_ACCES);
    cr_status(t_make(s, c, d, "newdir", DIR_, 0700, NULL), change ? 0 : HF_E_ACCES);
    cr_status(t_link(s, c, (struct fh){a.ino, a.gen}, d, "ln"), HF_E_PERM);
    if (change) {
        cr_ok(t_rename(s, c, d, "new", d, "new2"));
        cr_ok(t_remove(s, c, d, "new2", false));
        cr_ok(t_remove(s, c, d, "newdir", true));
    } else {
        cr_status(t_rename(s, c, d, "in", d, "in2"), HF_E_ACCES);
        cr_status(t_remove(s, c, d, "in", false), HF_E_ACCES);
    }
}

BOTH_STORES(perm, access_agrees)
{
    struct rnd r = {1};
    uint32_t groups[4];
    struct shard s;
    struct fh d, f, in;
    Hf__Cred c;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0700, &d));
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0600, &f));
    cr_ok(t_create(&s, &t_root, d, "in", 0600, &in));
    for (unsigned k = 0; k < (kind == HF_STORE_MEM ? 5000u : 500u); k++) {
        cr_ok(t_chown(&s, &t_root, d, pick(&r, 4), pick(&r, 4)));
        cr_ok(t_chown(&s, &t_root, f, pick(&r, 4), pick(&r, 4)));
        cr_ok(t_chmod(&s, &t_root, d, pick(&r, 01000)));
        cr_ok(t_chmod(&s, &t_root, f, pick(&r, 01000)));
        random_cred(&r, &c, groups);
        check_file(&s, &c, f);
        check_dir(&s, &c, d);
    }
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* Sticky directories (E4): who may take away or replace a name. */
BOTH_STORES(perm, sticky)
{
    struct rnd r = {2};
    uint32_t groups[4];
    struct shard s;
    struct fh d, o, v;
    Hf__Cred c;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 01777, &d));
    cr_ok(t_make(&s, &t_root, t_root_dir, "o", DIR_, 0777, &o));
    for (unsigned k = 0; k < 500; k++) {
        uint32_t dir_owner = pick(&r, 4), file_owner = pick(&r, 4);
        bool may;

        random_cred(&r, &c, groups);
        may = c.uid == 0 || c.uid == dir_owner || c.uid == file_owner;
        cr_ok(t_chown(&s, &t_root, d, dir_owner, -1));
        cr_ok(t_create(&s, &t_root, d, "v", 0666, &v));
        cr_ok(t_chown(&s, &t_root, v, file_owner, -1));
        cr_ok(t_create(&s, &c, d, "own", 0666, NULL));
        cr_status(t_rename(&s, &c, d, "v", d, "v2"), may ? 0 : HF_E_PERM);
        cr_status(t_rename(&s, &c, d, may ? "v2" : "v", o, "v"), may ? 0 : HF_E_PERM);
        if (may)
            cr_ok(t_rename(&s, &t_root, o, "v", d, "v"));
        cr_status(t_rename(&s, &c, d, "own", d, "v"), may ? 0 : HF_E_PERM);
        cr_ok(t_remove(&s, &t_root, d, "v", false));
        if (!may)
            cr_ok(t_remove(&s, &c, d, "own", false));
    }
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

/* RFC 1813 4.4, B14: the owner writes a file made read-only; a program that may only be executed
 * can be read. */
BOTH_STORES(perm, owner_override)
{
    Hf__WriteReq w = HF__WRITE_REQ__INIT;
    Hf__ReadReq q = HF__READ_REQ__INIT;
    const Hf__WriteRep *wp;
    const Hf__ReadRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0444, &f));
    cr_ok(t_chown(&s, &t_root, f, 1001, 1001));
    w.ino = q.ino = f.ino;
    w.gen = q.gen = f.gen;
    w.len = q.len = 1;
    w.owner_override = q.owner_override = true;
    w.cred = &t_u1;
    s.bulk = hf_slice("x", 1);
    cr_ok(do_write(&s, &w, &wp));
    w.owner_override = false;
    s.bulk = hf_slice("x", 1);
    cr_status(do_write(&s, &w, &wp), HF_E_ACCES);
    w.owner_override = true;
    w.cred = &t_u2;
    s.bulk = hf_slice("x", 1);
    cr_status(do_write(&s, &w, &wp), HF_E_ACCES);
    cr_assert(wp->obj->have_before && wp->obj->after->size == 1);
    cr_ok(t_chmod(&s, &t_root, f, 0011));
    q.cred = &t_u2;
    cr_ok(do_read(&s, &q, &p));
    q.owner_override = false;
    cr_status(do_read(&s, &q, &p), HF_E_ACCES);
    cr_ok(t_chmod(&s, &t_root, f, 0));
    q.owner_override = true;
    cr_status(do_read(&s, &q, &p), HF_E_ACCES);
    q.cred = &t_u1;
    cr_ok(do_read(&s, &q, &p));
    shard_close(&s);
}

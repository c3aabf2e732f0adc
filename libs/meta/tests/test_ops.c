/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, links, attributes: what each operation does and every status it can give.
 */
#include <stdio.h>

#include "support_meta.h"

BOTH_STORES(ops, lookup)
{
    struct shard s;
    struct tree t;
    struct fh o;

    shard_open(&s, kind);
    tree_make(&s, &t);
    const struct {
        struct fh dir;
        const char *name;
        Hf__Cred *c;
        int want;
        struct fh obj;
    } cases[] = {
        {t_root_dir, "d", &t_u2, 0, t.d},
        {t.d, "f", &t_u2, 0, t.f},
        {t.d, ".", &t_u2, 0, t.d},
        {t.d, "..", &t_u2, 0, t_root_dir},
        {t_root_dir, "..", &t_u2, 0, t_root_dir},
        {t.sub, "..", &t_u2, 0, t.d},
        {t.d, "F", &t_u2, HF_E_NOENT, {0, 0}},
        {t.d, "none", &t_u2, HF_E_NOENT, {0, 0}},
        {t.f, "x", &t_u2, HF_E_NOTDIR, {0, 0}},
        {t.l, "x", &t_u2, HF_E_NOTDIR, {0, 0}},
        {t.closed, "x", &t_u2, HF_E_ACCES, {0, 0}},
        {t.closed, ".", &t_u2, HF_E_ACCES, {0, 0}},
        {t.d, "f", NULL, HF_E_ACCES, {0, 0}},
        {t.wrong, "f", &t_root, HF_E_STALE, {0, 0}},
        {t.gone, "f", &t_root, HF_E_STALE, {0, 0}},
        {t.d, "", &t_root, HF_E_INVAL, {0, 0}},
        {t.d, "a/b", &t_root, HF_E_INVAL, {0, 0}},
        {t.d, name255, &t_root, HF_E_NOENT, {0, 0}},
        {t.d, name256, &t_root, HF_E_NAMETOOLONG, {0, 0}},
    };
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        int r = t_lookup(&s, cases[k].c, cases[k].dir, cases[k].name, &o);

        cr_assert(r == cases[k].want, "case %zu: %s", k, hf_err_name(r));
        cr_assert(r || (o.ino == cases[k].obj.ino && o.gen == cases[k].obj.gen), "case %zu", k);
    }
    shard_close(&s);
}

BOTH_STORES(ops, nul_in_name)
{
    struct shard s;
    Hf__LookupReq q = HF__LOOKUP_REQ__INIT;
    const Hf__LookupRep *p;

    shard_open(&s, kind);
    q.cred = &t_root;
    q.dir = t_root_dir.ino;
    q.gen = t_root_dir.gen;
    q.name = (ProtobufCBinaryData){3, (uint8_t *)(uintptr_t) "a\0b"};
    cr_status(do_lookup(&s, &q, &p), HF_E_INVAL);
    cr_assert(p->dir, "attributes of the directory come with errors");
    shard_close(&s);
}

/* CREATE, MKDIR, SYMLINK, MKNOD and LINK share their checks of directory and name. */
BOTH_STORES(ops, add_name)
{
    struct shard s;
    struct tree t;

    shard_open(&s, kind);
    tree_make(&s, &t);
    const struct {
        struct fh dir;
        const char *name;
        Hf__Cred *c;
        int want;
    } cases[] = {
        {t.d, "f", &t_u1, HF_E_EXIST},      {t.d, "sub", &t_u1, HF_E_EXIST},
        {t.d, "l", &t_u1, HF_E_EXIST},      {t.d, ".", &t_u1, HF_E_EXIST},
        {t.d, "..", &t_u1, HF_E_EXIST},     {t.d, "", &t_u1, HF_E_INVAL},
        {t.d, "a/b", &t_u1, HF_E_INVAL},    {t.d, name256, &t_u1, HF_E_NAMETOOLONG},
        {t.f, "x", &t_u1, HF_E_NOTDIR},     {t.wrong, "x", &t_u1, HF_E_STALE},
        {t.gone, "x", &t_u1, HF_E_STALE},   {t.d, "x", &t_u2, HF_E_ACCES},
        {t.d, "f", &t_u2, HF_E_EXIST}, /* search first, then what is there, then write */
        {t.closed, "x", &t_u2, HF_E_ACCES}, {t.d, "x", NULL, HF_E_ACCES},
    };
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        int r[5] = {
            t_create(&s, cases[k].c, cases[k].dir, cases[k].name, 0644, NULL),
            t_make(&s, cases[k].c, cases[k].dir, cases[k].name, DIR_, 0755, NULL),
            t_symlink(&s, cases[k].c, cases[k].dir, cases[k].name, "x", NULL),
            t_make(&s, cases[k].c, cases[k].dir, cases[k].name, FIFO, 0644, NULL),
            t_link(&s, cases[k].c, t.x, cases[k].dir, cases[k].name),
        };
        for (int n = 0; n < 5; n++)
            cr_assert(r[n] == cases[k].want, "case %zu op %d: %s", k, n, hf_err_name(r[n]));
    }
    s.may_grow = false;
    cr_status(t_create(&s, &t_u1, t.d, "n", 0644, NULL), HF_E_NOSPC);
    cr_status(t_make(&s, &t_u1, t.d, "n", DIR_, 0644, NULL), HF_E_NOSPC);
    cr_status(t_symlink(&s, &t_u1, t.d, "n", "x", NULL), HF_E_NOSPC);
    cr_status(t_link(&s, &t_u1, t.x, t.d, "n"), HF_E_NOSPC);
    cr_status(t_create(&s, &t_u1, t.d, "f", 0644, NULL), HF_E_EXIST);
    s.may_grow = true;
    cr_ok(t_create(&s, &t_u1, t.d, name255, 0644, NULL));
    cr_ok(t_lookup(&s, &t_u1, t.d, name255, NULL));
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(ops, make_types)
{
    struct shard s;
    struct tree t;
    static char long_target[5000];
    struct fh o;
    Hf__Attr a;

    shard_open(&s, kind);
    tree_make(&s, &t);
    const struct {
        uint32_t type;
        Hf__Cred *c;
        int want;
    } cases[] = {
        {FIFO, &t_u1, 0},           {SOCK, &t_u1, 0},         {BLK, &t_u1, HF_E_PERM},
        {CHR, &t_u1, HF_E_PERM},    {BLK, &t_root, 0},        {CHR, &t_root, 0},
        {REG, &t_u1, HF_E_BADTYPE}, {0, &t_u1, HF_E_BADTYPE}, {99, &t_u1, HF_E_BADTYPE},
    };
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        char name[16];

        snprintf(name, sizeof(name), "m%zu", k);
        int r = t_make(&s, cases[k].c, t.d, name, cases[k].type, 0640, &o);
        cr_assert(r == cases[k].want, "case %zu: %s", k, hf_err_name(r));
        if (r)
            continue;
        bool device = cases[k].type == BLK || cases[k].type == CHR;
        a = t_attr(&s, o);
        cr_assert(a.type == cases[k].type && a.mode == 0640 && a.nlink == 1 && a.parent == t.d.ino);
        cr_assert(a.rdev_major == (device ? 8u : 0u) && a.rdev_minor == (device ? 1u : 0u));
    }
    cr_status(t_symlink(&s, &t_u1, t.d, "e", "", NULL), HF_E_INVAL);
    memset(long_target, 't', 4096);
    cr_status(t_symlink(&s, &t_u1, t.d, "e", long_target, NULL), HF_E_NAMETOOLONG);
    long_target[4095] = 0;
    cr_ok(t_symlink(&s, &t_u1, t.d, "e", long_target, &o));
    a = t_attr(&s, o);
    cr_assert(a.size == 4095 && a.mode == 0777 && a.type == LNK);

    Hf__ReadlinkReq q = HF__READLINK_REQ__INIT;
    const Hf__ReadlinkRep *p;
    q.cred = &t_u2;
    q.ino = o.ino;
    q.gen = o.gen;
    cr_ok(do_readlink(&s, &q, &p));
    cr_assert(p->target.len == 4095 && memcmp(p->target.data, long_target, 4095) == 0);
    q.ino = t.f.ino;
    q.gen = t.f.gen;
    cr_status(do_readlink(&s, &q, &p), HF_E_INVAL);
    cr_assert(p->obj);
    q.gen++;
    cr_status(do_readlink(&s, &q, &p), HF_E_STALE);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

static int create_how(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, uint32_t how,
                      uint64_t verf, Hf__SetAttrs *set, const Hf__CreateRep **p)
{
    Hf__CreateReq q = HF__CREATE_REQ__INIT;

    q.cred = c;
    q.dir = dir.ino;
    q.gen = dir.gen;
    q.name = t_bytes(name);
    q.how = how;
    q.verf = verf;
    q.set = set;
    return do_create(s, &q, p);
}

/* B1: verifiers with all bits, none, and after SETATTR. */
BOTH_STORES(ops, create_exclusive)
{
    static const uint64_t verfs[] = {1, 0, UINT64_MAX, UINT64_C(0x8000000000000000), 0xffffffff};
    struct shard s;
    const Hf__CreateRep *p;
    struct fh o;

    shard_open(&s, kind);
    for (size_t k = 0; k < HF_ARRAY_LEN(verfs); k++) {
        Hf__SetAttrs set = HF__SET_ATTRS__INIT;
        char name[16];

        snprintf(name, sizeof(name), "e%zu", k);
        cr_ok(create_how(&s, &t_root, t_root_dir, name, 2, verfs[k], NULL, &p));
        cr_assert(p->created);
        o = t_fh(p->obj);
        cr_ok(create_how(&s, &t_root, t_root_dir, name, 2, verfs[k], NULL, &p));
        cr_assert(!p->created && p->obj->ino == o.ino && p->obj->gen == o.gen);
        cr_status(create_how(&s, &t_root, t_root_dir, name, 2, verfs[k] ^ 2, NULL, &p), HF_E_EXIST);
        cr_assert(p->dir && p->dir->have_before && p->dir->after);
        set.set_mode = true;
        set.mode = 0600;
        set.set_mtime = HF__SET_TIME__TIME_CLIENT;
        set.mtime_ns = -5;
        cr_ok(t_setattr(&s, &t_root, o, &set));
        shard_reopen(&s);
        cr_ok(create_how(&s, &t_root, t_root_dir, name, 2, verfs[k], NULL, &p));
        cr_assert(p->obj->ino == o.ino && p->obj->mtime_ns == -5 && p->obj->mode == 0600);
    }
    cr_ok(t_create(&s, &t_root, t_root_dir, "plain", 0644, NULL));
    cr_status(create_how(&s, &t_root, t_root_dir, "plain", 2, 0, NULL, &p), HF_E_EXIST);
    cr_status(create_how(&s, &t_root, t_root_dir, "plain", 3, 0, NULL, &p), HF_E_INVAL);
    shard_close(&s);
}

BOTH_STORES(ops, create_unchecked)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct shard s;
    struct tree t;
    const Hf__CreateRep *p;

    shard_open(&s, kind);
    tree_make(&s, &t);
    cr_ok(t_write(&s, &t_u1, t.f, 0, "hello", 5));
    set.set_mode = set.set_uid = true;
    set.mode = 0777;
    set.uid = 0;
    cr_ok(create_how(&s, &t_u1, t.d, "f", 0, 0, &set, &p));
    cr_assert(!p->created && p->obj->ino == t.f.ino && p->obj->mode == 0644 && p->obj->size == 5 &&
              p->obj->uid == 1001);
    cr_ok(
        create_how(&s, &t_u2, t.d, "f", 0, 0, &set, &p)); /* the name is there: no w on d needed */
    set.set_size = true;
    cr_status(create_how(&s, &t_u2, t.d, "f", 0, 0, &set, &p), HF_E_ACCES);
    cr_ok(create_how(&s, &t_u1, t.d, "f", 0, 0, &set, &p));
    cr_assert(p->obj->size == 0 && p->obj->allocated == 0);
    set.size = HF_META_FILE_MAX + 1;
    cr_status(create_how(&s, &t_u1, t.d, "f", 0, 0, &set, &p), HF_E_FBIG);
    cr_status(create_how(&s, &t_u1, t.d, "n", 0, 0, &set, &p), HF_E_FBIG);
    set.size = 100;
    cr_ok(create_how(&s, &t_u1, t.d, "n", 0, 0, &set, &p));
    cr_assert(p->created && p->obj->size == 100 && p->obj->mode == 0777 && p->obj->uid == 1001);
    cr_status(create_how(&s, &t_u1, t.d, "sub", 0, 0, NULL, &p), HF_E_EXIST);
    cr_status(create_how(&s, &t_u1, t.d, "l", 0, 0, NULL, &p), HF_E_EXIST);
    cr_status(create_how(&s, &t_u1, t.d, "f", 1, 0, NULL, &p), HF_E_EXIST);
    set.set_size = false;
    set.set_atime = 7;
    cr_status(create_how(&s, &t_u1, t.d, "n2", 0, 0, &set, &p), HF_E_INVAL);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(ops, owner_of_new)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct shard s;
    const Hf__CreateRep *p;
    struct fh g, o;
    Hf__Attr a;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "g", DIR_, 02777, &g));
    cr_ok(t_chown(&s, &t_root, g, 0, 700));
    cr_ok(t_make(&s, &t_u1, g, "dir", DIR_, 0755, &o));
    a = t_attr(&s, o);
    cr_assert(a.gid == 700 && a.mode == 02755 && a.uid == 1001);
    cr_ok(t_create(&s, &t_u1, g, "f", 02755, &o));
    a = t_attr(&s, o);
    cr_assert(a.gid == 700 && a.mode == 0755, "setgid for a group one is not in: %o", a.mode);
    cr_ok(t_chown(&s, &t_root, g, 0, 500));
    cr_ok(t_create(&s, &t_u1, g, "f2", 02755, &o));
    a = t_attr(&s, o);
    cr_assert(a.gid == 500 && a.mode == 02755);
    set.set_uid = set.set_gid = true;
    set.uid = 55;
    set.gid = 66;
    cr_ok(create_how(&s, &t_root, t_root_dir, "r", 1, 0, &set, &p));
    cr_assert(p->obj->uid == 55 && p->obj->gid == 66 && p->obj->mode == 0);
    cr_ok(t_chmod(&s, &t_root, t_root_dir, 0777));
    cr_ok(create_how(&s, &t_u1, t_root_dir, "u", 1, 0, &set, &p));
    cr_assert(p->obj->uid == 1001 && p->obj->gid == 1001);
    shard_close(&s);
}

BOTH_STORES(ops, remove)
{
    struct shard s;
    struct tree t;

    shard_open(&s, kind);
    tree_make(&s, &t);
    const struct {
        struct fh dir;
        const char *name;
        Hf__Cred *c;
        int file, dir_;
    } cases[] = {
        {t.d, "none", &t_u1, HF_E_NOENT, HF_E_NOENT},
        {t.d, ".", &t_u1, HF_E_INVAL, HF_E_INVAL},
        {t.d, "..", &t_u1, HF_E_INVAL, HF_E_INVAL},
        {t.d, "", &t_u1, HF_E_INVAL, HF_E_INVAL},
        {t.d, "a/b", &t_u1, HF_E_INVAL, HF_E_INVAL},
        {t.d, name256, &t_u1, HF_E_NAMETOOLONG, HF_E_NAMETOOLONG},
        {t.f, "x", &t_u1, HF_E_NOTDIR, HF_E_NOTDIR},
        {t.wrong, "x", &t_u1, HF_E_STALE, HF_E_STALE},
        {t.d, "f", &t_u2, HF_E_ACCES, HF_E_ACCES},
        {t.d, "none", &t_u2, HF_E_NOENT, HF_E_NOENT},
        {t.closed, "x", &t_u2, HF_E_ACCES, HF_E_ACCES},
        {t.sticky, "s1", &t_u2, HF_E_PERM, HF_E_PERM},
        {t.d, "sub", &t_u1, HF_E_ISDIR, HF_E_NOTEMPTY},
        {t_root_dir, "d", &t_root, HF_E_ISDIR, HF_E_NOTEMPTY},
    };
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        int r = t_remove(&s, cases[k].c, cases[k].dir, cases[k].name, false);

        cr_assert(r == cases[k].file, "case %zu: %s", k, hf_err_name(r));
        r = t_remove(&s, cases[k].c, cases[k].dir, cases[k].name, true);
        cr_assert(r == cases[k].dir_, "case %zu rmdir: %s", k, hf_err_name(r));
    }
    cr_status(t_remove(&s, &t_u1, t.d, "f", true), HF_E_NOTDIR);
    s.may_grow = false; /* removal goes on when space is gone */
    cr_ok(t_remove(&s, &t_u1, t.sub, "x", false));
    cr_ok(t_remove(&s, &t_u1, t.d, "sub", true));
    cr_assert(t_attr(&s, t.d).nlink == 2);
    cr_status(t_lookup(&s, &t_u1, t.sub, "x", NULL), HF_E_STALE);
    cr_ok(t_remove(&s, &t_u1, t.sticky, "s1", false)); /* its owner */
    s.may_grow = true;
    cr_ok(t_create(&s, &t_u1, t.sticky, "s1", 0644, NULL));
    cr_ok(t_chown(&s, &t_root, t.sticky, 1002, 0));
    cr_ok(t_remove(&s, &t_u2, t.sticky, "s1", false)); /* the directory's owner */
    cr_ok(t_create(&s, &t_u1, t.sticky, "s1", 0644, NULL));
    cr_ok(t_remove(&s, &t_root, t.sticky, "s1", false));
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(ops, link)
{
    struct shard s;
    struct tree t;
    Hf__Attr a, before;

    shard_open(&s, kind);
    tree_make(&s, &t);
    before = t_attr(&s, t.f);
    cr_ok(t_link(&s, &t_u1, t.f, t.sub, "f2"));
    a = t_attr(&s, t.f);
    cr_assert(a.nlink == 2 && a.parent == t.d.ino && a.change > before.change &&
              a.ctime_ns > before.ctime_ns && a.mtime_ns == before.mtime_ns);
    cr_ok(t_link(&s, &t_u1, t.l, t.sub, "l2")); /* of a symbolic link itself */
    cr_status(t_link(&s, &t_root, t.sub, t.d, "s2"), HF_E_PERM);
    cr_status(t_link(&s, &t_root, t.gone, t.d, "s2"), HF_E_STALE);
    cr_ok(t_remove(&s, &t_u1, t.d, "f", false));
    a = t_attr(&s, t.f);
    cr_assert(a.nlink == 1 && a.parent == 0);
    cr_assert_eq(shard_check(&s, NULL), 0);
    cr_ok(t_link(&s, &t_u1, t.f, t.d, "f3"));
    cr_assert(t_attr(&s, t.f).parent == t.d.ino);
    cr_assert_eq(shard_check(&s, NULL), 0);
    cr_ok(t_remove(&s, &t_u1, t.sub, "f2", false));
    cr_ok(t_remove(&s, &t_u1, t.d, "f3", false));
    cr_assert(s.op.event.replaced == t.f.ino && s.op.event.op == HF__EVENT_OP__EV_UNLINK);
    cr_status(t_link(&s, &t_u1, t.f, t.d, "f4"), HF_E_STALE);
    shard_close(&s);
}

Test(ops, link_limit, .timeout = 60)
{
    struct shard s;
    struct fh f, d;
    char name[16];

    shard_open(&s, HF_STORE_MEM);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "f", 0644, &f));
    for (unsigned k = 1; k < HF_META_LINK_MAX; k++) {
        snprintf(name, sizeof(name), "l%u", k);
        cr_ok(t_link(&s, &t_root, f, d, name));
    }
    cr_status(t_link(&s, &t_root, f, d, "more"), HF_E_MLINK);
    cr_assert(t_attr(&s, f).nlink == HF_META_LINK_MAX);
    cr_assert_eq(shard_check(&s, NULL), 0);
    shard_close(&s);
}

BOTH_STORES(ops, wcc_and_times)
{
    struct shard s;
    struct tree t;
    const Hf__CreateRep *p;
    Hf__Attr before;

    shard_open(&s, kind);
    tree_make(&s, &t);
    before = t_attr(&s, t.d);
    cr_ok(create_how(&s, &t_u1, t.d, "n", 1, 0, NULL, &p));
    cr_assert(p->dir->have_before && p->dir->size == before.size &&
              p->dir->mtime_ns == before.mtime_ns && p->dir->ctime_ns == before.ctime_ns);
    cr_assert(p->dir->after->mtime_ns > before.mtime_ns &&
              p->dir->after->ctime_ns > before.ctime_ns &&
              p->dir->after->change == before.change + 1);
    /* The clock stands still: times still move. */
    s.now_ns = T_START_NS;
    before = t_attr(&s, t.d);
    s.now_ns = T_START_NS;
    cr_ok(t_create(&s, &t_u1, t.d, "n2", 0644, NULL));
    cr_assert(t_attr(&s, t.d).ctime_ns == before.ctime_ns + 1);
    cr_assert(t_attr(&s, t.d).mtime_ns == before.ctime_ns + 1);
    shard_close(&s);
}

BOTH_STORES(ops, inode_numbers_are_not_used_again)
{
    struct shard s;
    uint64_t last = 0;
    struct fh o;

    shard_open(&s, kind);
    for (unsigned k = 0; k < 3000; k++) {
        cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &o));
        cr_assert(o.ino > last && o.gen != 0);
        last = o.ino;
        cr_ok(t_remove(&s, &t_root, t_root_dir, "f", false));
        if (k % 700 == 0)
            shard_reopen(&s);
    }
    shard_close(&s);
}

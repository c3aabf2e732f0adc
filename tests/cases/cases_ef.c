/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bugs, groups E and F, and D4: attributes, permissions, names, targets, large offsets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cs.h"
#include "lf.h"

#define NS 1000000000ll

/* ---- D4 ---- */

static void t_d4(struct nt_env *e)
{
    struct nt *c = e->root;
    uint64_t max, at[7] = {(1ull << 31) - 1, 1ull << 31, (1ull << 32) - 1, 1ull << 32, 1ull << 40};
    struct nt_fh fh;

    NT_OK(nt_fsinfo(c, &e->dir));
    max = c->r.fsinfo.maxfilesize;
    printf("# maxfilesize 2^53 %+lld\n", (long long)(max - (1ull << 53)));
    NT_CHECK(max >= (1ull << 53) - 1);
    at[5] = max - 1;
    nt_mk_file(c, &e->dir, "f", 0644, &fh);
    for (unsigned i = 0; i < 6; i++) {
        uint8_t b = (uint8_t)(i + 1);

        NT_OK(nt_write(c, &fh, at[i], &b, 1, i % 2 == 0 ? FILE_SYNC : UNSTABLE));
        NT_EQ(c->r.count, 1);
        NT_OK(nt_getattr(c, &fh));
        NT_EQ(c->r.attr.size, at[i] + 1);
    }
    NT_STATUS(nt_write(c, &fh, max, "x", 1, FILE_SYNC), NFS3ERR_FBIG);
    NT_STATUS(nt_write(c, &fh, 0xffffffffffffffffull, "x", 1, FILE_SYNC), NFS3ERR_FBIG);
    NT_OK(nt_commit(c, &fh, (1ull << 32) - 4096, 8192));
    NT_OK(nt_commit(c, &fh, 0, 0));
    cs_restart_node(e, 9);
    c = e->root;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t from = at[i] - 5; /* five bytes that were not written, or the one before */

        NT_OK(nt_read(c, &fh, from, 6));
        NT_EQ(c->r.count, 6);
        NT_EQ(c->data[5], i + 1);
        NT_EQ(c->data[0], 0);
        NT_EQ(c->data[4], i == 1 || i == 3 ? i : 0);
    }
    NT_OK(nt_read(c, &fh, at[5], 100));
    NT_EQ(c->r.count, 1);
    NT_CHECK(c->r.eof);
    NT_OK(nt_read(c, &fh, max, 100));
    NT_EQ(c->r.count, 0);
    NT_OK(nt_getattr(c, &fh));
    NT_EQ(c->r.attr.size, max);
    NT_CHECK(c->r.attr.used <= 8 * (4u << 20)); /* sparse: counted by chunks of 4 MiB */
    NT_OK(nt_remove(c, &e->dir, "f"));
}

/* ---- E1 ---- */

/* Sets by NFSv3 what its 32 bits can say, and finds it again after a restart. */
static void t_e1_nfs(struct nt_env *e)
{
    static const nfstime3 t[] = {{0, 0},
                                 {0, 999999999},
                                 {0x7fffffff, 999999999},
                                 {0x80000000u, 0}, /* 2038-01-19 */
                                 {2147558400u, 1}, /* 2038-01-20 */
                                 {0xffffffffu, 999999999}};
    enum { N = sizeof(t) / sizeof(t[0]) };
    struct nt_set set = NT_SET_NONE;
    struct nt_fh fh[N];
    nfstime3 before;

    for (unsigned i = 0; i < N; i++) {
        char name[16];

        snprintf(name, sizeof(name), "t%u", i);
        nt_mk_file(e->root, &e->dir, name, 0644, &fh[i]);
        set.mtime_how = set.atime_how = SET_TO_CLIENT_TIME;
        set.mtime = t[i];
        set.atime = t[N - 1 - i];
        NT_OK(nt_setattr(e->root, &fh[i], &set, NULL));
    }
    cs_restart_node(e, 9);
    for (unsigned i = 0; i < N; i++) {
        NT_OK(nt_getattr(e->root, &fh[i]));
        NT_CHECK(nt_time_eq(e->root->r.attr.mtime, t[i]));
        NT_CHECK(nt_time_eq(e->root->r.attr.atime, t[N - 1 - i]));
    }
    before = e->root->r.attr.mtime;
    for (unsigned i = 0; i < 2; i++) {
        set.mtime = (nfstime3){100, i == 0 ? 1000000000u : 0xffffffffu};
        NT_STATUS(nt_setattr(e->root, &fh[N - 1], &set, NULL), NFS3ERR_INVAL);
    }
    NT_OK(nt_getattr(e->root, &fh[N - 1]));
    NT_CHECK(nt_time_eq(e->root->r.attr.mtime, before));
}

/* Times that NFSv3 cannot say, set by libholdfast: exact there, clamped here, never wrapped. */
static void t_e1_clamped(struct nt_env *e)
{
    static const struct {
        int64_t ns;
        nfstime3 v3;
    } t[] = {
        {-14245441ll * NS - NS / 4 * 3, {0, 0}}, /* 1969-07-20 02:55:58.25 */
        {-1, {0, 0}},
        {-5822193600ll * NS, {0, 0}}, /* 1785 */
        {0, {0, 0}},
        {1, {0, 1}},
        {4294967295ll * NS + 999999999, {0xffffffffu, 999999999}},
        {4294967296ll * NS, {0xffffffffu, 999999999}},     /* 2106-02-07 06:28:16 */
        {4295030400ll * NS + 5, {0xffffffffu, 999999999}}, /* 2106-02-08 */
        {9223372036ll * NS, {0xffffffffu, 999999999}},     /* 2262 */
        {INT64_MIN, {0, 0}},
        {INT64_MAX, {0xffffffffu, 999999999}},
    };
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);

    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct hf_setattr set = {
            .set = HF_SET_MTIME | HF_SET_ATIME, .mtime_ns = t[i].ns, .atime_ns = t[i].ns};
        struct nt_entry *en = NULL;
        struct hf_attr a;
        struct hf_file *f;
        char name[16];

        snprintf(name, sizeof(name), "t%u", i);
        f = lf_create(fs, dir, name, 0);
        LF_OK(hf_setattr(fs, &lf_root, hf_file_handle(f), NULL, &set, &a));
        LF_OK(hf_getattr(fs, hf_file_handle(f), &a));
        NT_EQ(a.mtime_ns, t[i].ns);
        NT_EQ(a.atime_ns, t[i].ns);
        LF_OK(hf_close(f));
        NT_OK(nt_lookup(e->root, &e->dir, name));
        NT_CHECK(nt_time_eq(e->root->r.attr.mtime, t[i].v3));
        NT_CHECK(nt_time_eq(e->root->r.attr.atime, t[i].v3));
        NT_OK(nt_getattr(e->root, &e->root->r.fh));
        NT_CHECK(nt_time_eq(e->root->r.attr.mtime, t[i].v3));
        NT_OK(nt_readdirplus(e->root, &e->dir, 0, NULL, 65536, 65536));
        for (unsigned k = 0; k < e->root->r.nentries; k++) {
            if (strcmp(e->root->entries[k].name, name) == 0) {
                en = &e->root->entries[k];
            }
        }
        NT_CHECK(en != NULL && en->have_attr && nt_time_eq(en->attr.mtime, t[i].v3));
    }
    lf_close(fs);
}

/* ---- E3 ---- */

static void with_bits(struct nt *root, const struct nt_fh *dir, const char *name, uint32_t mode,
                      struct nt_fh *ret)
{
    struct nt_set own = NT_SET_NONE;

    nt_mk_file(root, dir, name, 0600, ret);
    NT_OK(nt_write(root, ret, 0, "0123456789", 10, FILE_SYNC));
    own.uid = 1001;
    own.gid = 500;
    NT_OK(nt_setattr(root, ret, &own, NULL));
    NT_OK(nt_setattr(root, ret, &NT_SET_MODE(mode), NULL));
    NT_EQ(root->r.wcc.after.mode & 07777, mode);
}

static void mode_is(struct nt *c, const struct nt_fh *fh, uint32_t want)
{
    NT_OK(nt_getattr(c, fh));
    NT_EQ(c->r.attr.mode & 07777, want);
}

static void t_e3(struct nt_env *e)
{
    static const uint32_t g500[] = {500};
    struct nt *r = e->root, *u2 = nt_open(&e->node, 1002, 1002, 1, g500);
    struct nt *u1 = nt_open(&e->node, 1001, 1001, 1, g500);
    struct nt *u1_out = nt_open(&e->node, 1001, 1001, 0, NULL);
    struct nt_set set;
    struct nt_fh fh;

    with_bits(r, &e->dir, "w", 06775, &fh);
    NT_OK(nt_write(u2, &fh, 0, "", 0, FILE_SYNC)); /* nothing written, nothing changed */
    mode_is(r, &fh, 06775);
    NT_OK(nt_write(r, &fh, 0, "r", 1, FILE_SYNC)); /* root keeps them */
    mode_is(r, &fh, 06775);
    NT_OK(nt_write(u2, &fh, 0, "w", 1, FILE_SYNC));
    mode_is(r, &fh, 0775);
    with_bits(r, &e->dir, "unstable", 06775, &fh);
    NT_OK(nt_write(u2, &fh, 0, "w", 1, UNSTABLE));
    mode_is(r, &fh, 0775);
    with_bits(r, &e->dir, "large", 06775, &fh); /* beyond what is inline: the other write path */
    NT_OK(nt_write(u2, &fh, 1u << 20, "w", 1, UNSTABLE));
    mode_is(r, &fh, 0775);
    with_bits(r, &e->dir, "nox", 06765, &fh); /* setgid without group execute is no privilege */
    NT_OK(nt_write(u2, &fh, 0, "w", 1, FILE_SYNC));
    mode_is(r, &fh, 02765);
    with_bits(r, &e->dir, "trunc", 06775, &fh);
    set = NT_SET_NONE;
    set.set_size = true;
    set.size = 3;
    NT_OK(nt_setattr(u2, &fh, &set, NULL));
    mode_is(r, &fh, 0775);
    with_bits(r, &e->dir, "chown", 06755, &fh);
    set = NT_SET_NONE;
    set.gid = 500;
    NT_OK(nt_setattr(u1, &fh, &set, NULL)); /* by the owner */
    mode_is(r, &fh, 0755);
    with_bits(r, &e->dir, "chmod", 0755, &fh); /* group 500, of which he is no member */
    NT_OK(nt_setattr(u1_out, &fh, &NT_SET_MODE(02755), NULL));
    mode_is(r, &fh, 0755);
    NT_OK(nt_setattr(u1, &fh, &NT_SET_MODE(02755), NULL));
    mode_is(r, &fh, 02755);
    NT_STATUS(nt_setattr(u2, &fh, &NT_SET_MODE(06755), NULL), NFS3ERR_PERM);
    mode_is(r, &fh, 02755);
    nt_close(u1);
    nt_close(u1_out);
    nt_close(u2);
}

/* ---- E4 ---- */

static void t_e4(struct nt_env *e)
{
    struct nt *u0 = nt_open(&e->node, 1000, 1000, 0, NULL);
    struct nt *u1 = nt_open(&e->node, 1001, 1001, 0, NULL);
    struct nt *u2 = nt_open(&e->node, 1002, 1002, 0, NULL);
    struct nt_fh d, out, fh, sub;

    NT_OK(nt_mkdir(u0, &e->dir, "d", &NT_SET_MODE(0777)));
    d = u0->r.fh;
    NT_OK(nt_setattr(u0, &d, &NT_SET_MODE(01777), NULL));
    nt_mk_dir(e->root, &e->dir, "out", 0777, &out);
    NT_OK(nt_setattr(e->root, &out, &NT_SET_MODE(0777), NULL));
    nt_mk_file(u1, &d, "f", 0666, &fh);
    nt_mk_dir(u1, &d, "sub", 0777, &sub);
    nt_mk_file(u2, &d, "own", 0666, &fh);
    nt_mk_file(u2, &out, "new", 0666, &fh);
    NT_ONE_OF(nt_remove(u2, &d, "f"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rmdir(u2, &d, "sub"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(u2, &d, "f", &out, "f"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(u2, &d, "sub", &out, "sub"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(u2, &d, "f", &d, "g"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(u2, &out, "new", &d, "f"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(u2, &d, "own", &d, "f"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_OK(nt_lookup(u2, &d, "f"));
    NT_OK(nt_lookup(u2, &d, "own"));
    NT_OK(nt_rename(u2, &d, "own", &d, "mine")); /* his own */
    NT_OK(nt_rename(u0, &d, "f", &d, "g"));      /* the directory's owner */
    NT_OK(nt_remove(u0, &d, "g"));
    NT_OK(nt_rmdir(u0, &d, "sub"));
    NT_OK(nt_remove(e->root, &d, "mine"));
    nt_close(u0);
    nt_close(u1);
    nt_close(u2);
}

/* ---- E5 ---- */

static struct nt_fh export_of(struct nt_env *e, const char *path)
{
    uint64_t deadline = cs_after(10);
    struct nt *m = nt_try_open(&e->node, e->node.mount_port);
    struct nt_fh fh;

    NT_CHECK(m != NULL);
    while (nt_mount(m, path) != MNT3_OK) {
        NT_CHECK(nt_now_ns() < deadline);
        cs_nap_ms(10);
    }
    fh = m->r.fh;
    nt_close(m);
    return fh;
}

/* ACCESS says READ, and MODIFY, exactly where READ and WRITE work. */
static void agrees(struct nt *c, const struct nt_fh *fh, bool read, bool write)
{
    NT_OK(nt_access(c, fh, 0x3f));
    NT_EQ((c->r.access & ACCESS3_READ) != 0, read);
    NT_EQ((c->r.access & ACCESS3_MODIFY) != 0, write);
    NT_STATUS(nt_read(c, fh, 0, 1), read ? NFS3_OK : NFS3ERR_ACCES);
    NT_STATUS(nt_write(c, fh, 0, "x", 1, FILE_SYNC), write ? NFS3_OK : NFS3ERR_ACCES);
}

static void t_e5_root(struct nt_env *e)
{
    static const uint32_t g500[] = {0, 500};
    struct nt *u1 = nt_open(&e->node, 1001, 1001, 0, NULL), *r500;
    struct nt_fh sq, priv, shared, fh;
    struct nt_set set = NT_SET_NONE;
    char path[80];

    snprintf(path, sizeof(path), "/%s", e->dir_name);
    cs_cli(e, "export", "add", "/e5r", "--dir", path, "--squash", "root", "--anon-uid", "4000",
           "--anon-gid", "4001", NULL);
    sq = export_of(e, "/e5r");
    NT_OK(nt_create(e->root, &sq, "made", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(e->root->r.attr.uid, 4000);
    NT_EQ(e->root->r.attr.gid, 4001);
    NT_OK(nt_mkdir(u1, &sq, "priv", &NT_SET_MODE(0700)));
    priv = u1->r.fh;
    nt_mk_file(u1, &priv, "f", 0600, &fh);
    NT_STATUS(nt_lookup(e->root, &priv, "f"), NFS3ERR_ACCES);
    NT_STATUS(nt_readdir(e->root, &priv, 0, NULL, 4096), NFS3ERR_ACCES);
    agrees(e->root, &fh, false, false);
    agrees(u1, &fh, true, true);
    /* root with groups {0, 500} on a 0770 of group 500: root's ids are squashed wherever they
     * stand, other groups are kept, as docs/operations.md says */
    nt_mk_dir(e->root, &e->dir, "shared", 0770, &shared);
    set.gid = 500;
    NT_OK(nt_setattr(e->root, &shared, &set, NULL));
    NT_OK(nt_lookup(e->root, &sq, "shared"));
    shared = e->root->r.fh;
    r500 = nt_open(&e->node, 0, 0, 2, g500);
    NT_OK(nt_readdir(r500, &shared, 0, NULL, 4096));
    NT_OK(nt_access(r500, &shared, 0x3f));
    NT_CHECK((r500->r.access & ACCESS3_READ) != 0);
    NT_STATUS(nt_readdir(e->root, &shared, 0, NULL, 4096), NFS3ERR_ACCES);
    NT_OK(nt_access(e->root, &shared, 0x3f));
    NT_EQ(e->root->r.access, 0);
    nt_mk_dir(e->root, &e->dir, "zero", 0770, &shared); /* of group 0: no longer one of his */
    NT_OK(nt_lookup(e->root, &sq, "zero"));
    shared = e->root->r.fh;
    NT_STATUS(nt_readdir(r500, &shared, 0, NULL, 4096), NFS3ERR_ACCES);
    /* nor may it hand out ownership, or set mode bits of what is not its own */
    NT_STATUS(nt_setattr(e->root, &fh, &NT_SET_MODE(0666), NULL), NFS3ERR_PERM);
    cs_cli(e, "export", "remove", "/e5r", NULL);
    nt_close(r500);
    nt_close(u1);
}

static void t_e5_all(struct nt_env *e)
{
    static const uint32_t g500[] = {500};
    struct nt *u = nt_open(&e->node, 77, 77, 1, g500);
    struct nt *u1 = nt_open(&e->node, 1001, 1001, 0, NULL);
    struct nt_fh sq, fh, other;
    char path[80];

    snprintf(path, sizeof(path), "/%s", e->dir_name);
    cs_cli(e, "export", "add", "/e5a", "--dir", path, "--squash", "all", "--anon-uid", "1001",
           "--anon-gid", "1001", NULL);
    sq = export_of(e, "/e5a");
    NT_OK(nt_create(u, &sq, "f", GUARDED, &NT_SET_MODE(0600), NULL));
    fh = u->r.fh;
    NT_EQ(u->r.attr.uid, 1001);
    NT_EQ(u->r.attr.gid, 1001);
    agrees(u, &fh, true, true);
    agrees(e->root, &fh, true, true); /* root too is 1001 here */
    nt_mk_file(e->root, &e->dir, "roots", 0600, &other);
    NT_OK(nt_lookup(e->root, &sq, "roots"));
    other = e->root->r.fh;
    agrees(e->root, &other, false, false);
    agrees(u, &other, false, false);
    NT_OK(nt_lookup(u1, &e->dir, "f")); /* the same file by the export that squashes nobody */
    fh = u1->r.fh;
    agrees(u1, &fh, true, true);
    agrees(u, &fh, false, false);
    cs_cli(e, "export", "remove", "/e5a", NULL);
    nt_close(u);
    nt_close(u1);
}

static void t_e5_groups(struct nt_env *e)
{
    uint32_t groups[16];
    struct nt *c, *none = nt_open(&e->node, 78, 78, 0, NULL);
    struct nt_set set = NT_SET_NONE;
    struct nt_fh fh;

    for (unsigned i = 0; i < 16; i++) {
        groups[i] = 5000 + i;
    }
    c = nt_open(&e->node, 77, 77, 16, groups);
    for (unsigned i = 0; i <= 16; i++) { /* the 17th cannot be told by AUTH_SYS: no member */
        char name[16];

        snprintf(name, sizeof(name), "g%u", i);
        nt_mk_file(e->root, &e->dir, name, 0660, &fh);
        set.gid = 5000 + i;
        NT_OK(nt_setattr(e->root, &fh, &set, NULL));
        agrees(c, &fh, i < 16, i < 16);
        agrees(none, &fh, false, false);
    }
    nt_close(c);
    nt_close(none);
}

/* ---- F1 ---- */

static void repeat(char *to, size_t cap, const char *unit, unsigned n)
{
    size_t k = strlen(unit), at = 0;

    for (unsigned i = 0; i < n && at + k < cap; i++) {
        memcpy(to + at, unit, k);
        at += k;
    }
    to[at] = '\0';
}

static void t_f1(struct nt_env *e)
{
    static const struct {
        const char *unit;
        unsigned n;
        bool ok;
    } t[] = {
        {"a", 255, true},
        {"\xe6\xb0\xb4", 85, true},       /* 85 x 3 bytes */
        {"\xd0\xb6", 127, true},          /* 254 bytes */
        {"\xd0\xb6", 128, false},         /* 256 bytes of Cyrillic */
        {"\xf0\x9f\x98\x80", 63, true},   /* 252 bytes */
        {"\xf0\x9f\x98\x80", 127, false}, /* 508 bytes, 254 UTF-16 units */
        {"b", 256, false},
    };
    struct nt *c = e->root;
    char name[600], to[600];
    struct nt_fh fh, d;

    NT_OK(nt_pathconf(c, &e->dir));
    NT_EQ(c->r.pathconf.name_max, 255);
    NT_CHECK(c->r.pathconf.no_trunc != 0);
    nt_mk_file(c, &e->dir, "short", 0644, &fh);
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        uint32_t want = t[i].ok ? NFS3_OK : NFS3ERR_NAMETOOLONG;

        repeat(name, sizeof(name), t[i].unit, t[i].n);
        NT_STATUS(nt_create(c, &e->dir, name, GUARDED, &NT_SET_MODE(0644), NULL), want);
        NT_STATUS(nt_lookup(c, &e->dir, name), want);
        NT_STATUS(nt_remove(c, &e->dir, name), want);
        NT_STATUS(nt_mkdir(c, &e->dir, name, &NT_SET_MODE(0755)), want);
        NT_STATUS(nt_rmdir(c, &e->dir, name), want);
        NT_STATUS(nt_symlink(c, &e->dir, name, "t", NULL), want);
        NT_STATUS(nt_remove(c, &e->dir, name), want);
        NT_STATUS(nt_link(c, &fh, &e->dir, name), want);
        NT_STATUS(nt_remove(c, &e->dir, name), want);
        NT_STATUS(nt_rename(c, &e->dir, "short", &e->dir, name), want);
        if (t[i].ok) {
            bool seen = false;

            NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, 65536, 65536));
            for (unsigned k = 0; k < c->r.nentries; k++) {
                seen = seen || strcmp(c->entries[k].name, name) == 0;
            }
            NT_CHECK(seen);
            nt_mk_dir(c, &e->dir, "d", 0755, &d);
            repeat(to, sizeof(to), t[i].unit, t[i].n);
            NT_OK(nt_rename(c, &e->dir, name, &d, to));
            NT_OK(nt_rename(c, &d, to, &e->dir, "short"));
            NT_OK(nt_rmdir(c, &e->dir, "d"));
        }
        NT_OK(nt_lookup(c, &e->dir, "short"));
    }
}

/* The bytes that pad names in a listing are zero: nothing of the server's memory leaks. */
static void t_f1_padding(struct nt_env *e)
{
    static uint8_t rep[65536];
    struct nt_buf m;
    ssize_t n;
    size_t at;
    int fd = nt_raw_connect(e->node.port);
    unsigned names = 0;
    char name[300];

    for (unsigned i = 1; i <= 255; i += 7) {
        repeat(name, sizeof(name), "p", i);
        NT_OK(nt_create(e->root, &e->dir, name, GUARDED, &NT_SET_MODE(0644), NULL));
    }
    nt_raw_call(&m, 4711, NFS_PROGRAM, 3, 16);
    nt_raw_opaque(&m, e->dir.data, e->dir.len);
    for (int i = 0; i < 4; i++) {
        nt_raw_u32(&m, 0); /* cookie, verifier */
    }
    nt_raw_u32(&m, 60000);
    nt_raw_seal(&m);
    NT_CHECK(nt_raw_send(fd, m.b, m.n));
    n = nt_raw_recv(fd, rep, sizeof(rep));
    NT_CHECK(n > 200);
    NT_STATUS(nt_raw_get(rep + 24), NFS3_OK);
    at = 28 + 4 + 84 + 8; /* attributes, verifier */
    while (nt_raw_get(rep + at) == 1) {
        uint32_t len = nt_raw_get(rep + at + 12);

        NT_CHECK(len <= 255 && at + 16 + len + 16 <= (size_t)n);
        for (uint32_t k = len; k % 4 != 0; k++) {
            NT_EQ(rep[at + 16 + k], 0);
        }
        at += 16 + ((len + 3) & ~3u) + 8;
        names++;
    }
    NT_EQ(names, 37 + 2);
    NT_EQ(at + 8, n);
    close(fd);
}

/* ---- F5 ---- */

static void target_is(struct nt *c, const struct nt_fh *dir, const char *name, const char *want)
{
    NT_OK(nt_lookup(c, dir, name));
    NT_EQ(c->r.attr.type, NF3LNK);
    NT_EQ(c->r.attr.size, strlen(want));
    NT_OK(nt_readlink(c, &c->r.fh));
    NT_CHECK(strcmp(c->r.target, want) == 0);
}

static void t_f5(struct nt_env *e)
{
    static const char *const odd[] = {"/etc/passwd",   "../../../../..", "l",
                                      "a b\n\xff\x01", "//x//",          "."};
    struct nt *c = e->root;
    char name[16], to[16];
    char *longest = malloc(4200);

    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(name, sizeof(name), "o%u", i);
        NT_OK(nt_symlink(c, &e->dir, name, odd[i], NULL));
        target_is(c, &e->dir, name, odd[i]);
    }
    NT_OK(nt_symlink(c, &e->dir, "l", "l", NULL)); /* loops */
    NT_OK(nt_symlink(c, &e->dir, "a", "b", NULL));
    NT_OK(nt_symlink(c, &e->dir, "b", "a", NULL));
    for (unsigned i = 0; i < 41; i++) { /* a chain */
        snprintf(name, sizeof(name), "c%u", i);
        snprintf(to, sizeof(to), "c%u", i + 1);
        NT_OK(nt_symlink(c, &e->dir, name, to, NULL));
        target_is(c, &e->dir, name, to);
    }
    repeat(longest, 4200, "x", 1000); /* 4095 and 4096: e2e.nfs3_procs symlink_longest */
    NT_OK(nt_symlink(c, &e->dir, "long", longest, NULL));
    target_is(c, &e->dir, "long", longest);
    /* the server follows none: a link is not a directory */
    NT_OK(nt_symlink(c, &e->dir, "dir", "/", NULL));
    NT_ONE_OF(nt_lookup(c, &c->r.fh, "x"), NFS3ERR_NOTDIR);
    NT_OK(nt_lookup(c, &e->dir, "dir"));
    NT_STATUS(nt_readdir(c, &c->r.fh, 0, NULL, 4096), NFS3ERR_NOTDIR);
    NT_OK(nt_lookup(c, &e->dir, "o0"));
    NT_ONE_OF(nt_read(c, &c->r.fh, 0, 10), NFS3ERR_INVAL);
    cs_cli(e, "fsck", NULL); /* a walker that ends */
    free(longest);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"D4 2 GiB, 4 GiB, maxfilesize", t_d4, true},
        {"E1 every time that NFSv3 can say", t_e1_nfs, true},
        {"E1 times it cannot say are clamped", t_e1_clamped, true},
        {"E3 setuid and setgid go when others write", t_e3, false},
        {"E4 who may remove and rename in a sticky directory", t_e4, false},
        {"E5 root_squash", t_e5_root, true},
        {"E5 all_squash", t_e5_all, true},
        {"E5 sixteen groups and one more", t_e5_groups, false},
        {"F1 names of 255 and 256 bytes", t_f1, false},
        {"F1 nothing leaks in the padding of names", t_f1_padding, false},
        {"F5 loops, chains and long targets", t_f5, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

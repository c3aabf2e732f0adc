/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bugs, group B: retries, verifiers, handles. Two gateways on one file system where the
 * case names two.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cs.h"

#define MIB (1u << 20)

/* ---- B1 ---- */

static void t_b1(struct nt_env *e)
{
    static const char v1[8] = {(char)0xff, (char)0xfe, 0, 1, (char)0x80, 0, 0, (char)0xff};
    static const char v2[8] = {(char)0xff, (char)0xfe, 0, 1, (char)0x80, 0, 0, 0}, zero[8];
    static const enum cs_who restarts[] = {CS_GW_A, CS_META};
    struct nt_set set = NT_SET_MODE(0604);
    struct cs_layout l = {0};
    struct nt_fh fh, z, plain;
    struct nt *c;

    (void)e;
    cs_layout_start(&l);
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "plain", 0644, &plain);
    NT_OK(nt_create(c, &l.root, "x", EXCLUSIVE, NULL, v1));
    fh = c->r.fh;
    NT_OK(nt_create(c, &l.root, "z", EXCLUSIVE, NULL, zero));
    z = c->r.fh;
    for (unsigned i = 0; i < 3; i++) {
        NT_OK(nt_create(c, &l.root, "x", EXCLUSIVE, NULL, v1));
        NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
        NT_STATUS(nt_create(c, &l.root, "x", EXCLUSIVE, NULL, v2), NFS3ERR_EXIST);
        NT_OK(nt_create(c, &l.root, "z", EXCLUSIVE, NULL, zero));
        NT_CHECK(nt_fh_eq(&c->r.fh, &z));
        NT_STATUS(nt_create(c, &l.root, "plain", EXCLUSIVE, NULL, zero), NFS3ERR_EXIST);
        if (i < 2) {
            nt_close(c);
            cs_bounce(&l, restarts[i]);
            c = cs_gw(&l, 0);
        }
    }
    nt_close(c);
    c = cs_gw(&l, 1); /* a client that is moved to the other gateway */
    NT_OK(nt_create(c, &l.root, "x", EXCLUSIVE, NULL, v1));
    NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
    set.mtime_how = set.atime_how = SET_TO_CLIENT_TIME;
    set.mtime = (nfstime3){1234567890, 123456789};
    set.atime = (nfstime3){987654321, 987654321};
    NT_OK(nt_setattr(c, &fh, &set, NULL));
    NT_ONE_OF(nt_create(c, &l.root, "x", EXCLUSIVE, NULL, v1), NFS3_OK, NFS3ERR_EXIST);
    printf("# the verifier after SETATTR: %s\n", nt_status_name(c->r.status));
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_eq(c->r.attr.mtime, set.mtime) && nt_time_eq(c->r.attr.atime, set.atime));
    NT_EQ(c->r.attr.mode & 07777, 0604);
    nt_close(c);
    cs_layout_stop(&l);
}

/* ---- B3 ---- */

struct call {
    const char *what;
    uint32_t proc;
    const char *a, *b;
};

static void put_name(struct nt_buf *m, const struct nt_fh *dir, const char *name)
{
    nt_raw_opaque(m, dir->data, dir->len);
    nt_raw_opaque(m, name, (uint32_t)strlen(name));
}

static void make_call(struct nt_buf *m, uint32_t xid, const struct call *k, const struct nt_fh *dir,
                      const struct nt_fh *file)
{
    nt_raw_call(m, xid, NFS_PROGRAM, 3, k->proc);
    if (k->proc == 15) {
        nt_raw_opaque(m, file->data, file->len);
    }
    put_name(m, dir, k->a);
    if (k->b != NULL) {
        put_name(m, dir, k->b);
    }
    for (int i = 0; i < 6 && k->proc == 9; i++) {
        nt_raw_u32(m, 0); /* MKDIR: no attributes */
    }
    nt_raw_seal(m);
}

static const struct call b3_calls[] = {
    {"MKDIR", 9, "made", NULL},
    {"REMOVE", 12, "victim", NULL},
    {"RENAME", 14, "old", "new"},
    {"LINK", 15, "hard", NULL},
};

/* Whether the call has had its effect. */
static bool done_yet(struct nt *c, const struct nt_fh *dir, unsigned i)
{
    const struct call *k = &b3_calls[i];

    if (k->proc == 12) {
        return nt_lookup(c, dir, k->a) == NFS3ERR_NOENT;
    }
    return nt_lookup(c, dir, k->b != NULL ? k->b : k->a) == NFS3_OK;
}

/* Sends from a new source port; the reply must be OK. Twice: with the first reply lost. */
static void lost_reply(struct nt *c, const struct nt_node *n, const struct nt_fh *dir,
                       const struct nt_fh *file, unsigned i, unsigned reads)
{
    uint32_t xid = (uint32_t)nt_now_ns() + i;
    uint8_t rep[512];
    struct nt_buf m;
    uint64_t deadline = cs_after(30);
    int fd = nt_raw_connect(n->port);

    make_call(&m, xid, &b3_calls[i], dir, file);
    NT_CHECK(nt_raw_send(fd, m.b, m.n));
    while (!done_yet(c, dir, i)) {
        NT_CHECK(nt_now_ns() < deadline);
    }
    close(fd); /* nobody has read the reply */
    NT_OK(nt_getattr(c, dir));
    nfstime3 ctime = c->r.attr.ctime;
    NT_OK(cs_many(c, CS_READ, dir, file, "", 0, reads));
    for (int k = 0; k < 2; k++) {
        fd = nt_raw_connect(n->port);
        NT_CHECK(nt_raw_send(fd, m.b, m.n));
        NT_CHECK(nt_raw_recv(fd, rep, sizeof(rep)) >= 28);
        NT_EQ(nt_raw_get(rep), xid);
        nt_status(__FILE__, __LINE__, b3_calls[i].what, nt_raw_get(rep + 24), NFS3_OK);
        close(fd);
    }
    NT_OK(nt_getattr(c, dir)); /* the directory has changed once */
    NT_CHECK(nt_time_eq(c->r.attr.ctime, ctime));
}

static void t_b3(struct nt_env *e)
{
    struct nt_fh file, fh;

    nt_mk_file(e->root, &e->dir, "file", 0644, &file);
    NT_OK(nt_write(e->root, &file, 0, "x", 1, FILE_SYNC));
    nt_mk_file(e->root, &e->dir, "victim", 0644, &fh);
    nt_mk_file(e->root, &e->dir, "old", 0644, &fh);
    for (unsigned i = 0; i < 4; i++) {
        lost_reply(e->root, &e->node, &e->dir, &file, i, 10000);
    }
    NT_OK(nt_getattr(e->root, &file));
    NT_EQ(e->root->r.attr.nlink, 2);
}

/* The first still runs (the log of the metadata server is slow) when the same call comes again. */
static void t_b3_running(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_fh file, fh;
    struct nt *c;

    (void)e;
    cs_layout_start(&l);
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "file", 0644, &file);
    nt_mk_file(c, &l.root, "victim", 0644, &fh);
    nt_mk_file(c, &l.root, "old", 0644, &fh);
    snprintf(l.fault[CS_META], sizeof(l.fault[0]), "shard.durable=delay:1500");
    cs_bounce(&l, CS_META);
    for (unsigned i = 0; i < 4; i++) {
        int a = nt_raw_connect(l.gw[0].port), b = nt_raw_connect(l.gw[0].port);
        uint8_t first[512], again[512];
        uint64_t t0 = nt_now_ns();
        struct nt_buf m;
        ssize_t n;

        make_call(&m, (uint32_t)t0, &b3_calls[i], &l.root, &file);
        NT_CHECK(nt_raw_send(a, m.b, m.n));
        cs_nap_ms(200); /* part of the case: the second comes while the first runs */
        NT_CHECK(nt_raw_send(b, m.b, m.n));
        n = nt_raw_recv(a, first, sizeof(first));
        NT_CHECK(n >= 28 && nt_now_ns() - t0 > 1000000000ull);
        nt_status(__FILE__, __LINE__, b3_calls[i].what, nt_raw_get(first + 24), NFS3_OK);
        NT_CHECK(nt_raw_send(b, m.b, m.n)); /* the second may have been dropped */
        NT_CHECK(nt_raw_recv(b, again, sizeof(again)) == n);
        NT_CHECK(memcmp(first, again, (size_t)n) == 0);
        close(a);
        close(b);
    }
    NT_OK(nt_getattr(c, &file));
    NT_EQ(c->r.attr.nlink, 2);
    nt_close(c);
    cs_layout_stop(&l);
}

/* ---- B5 ---- */

static void t_b5(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_set a = NT_SET_MODE(0600), b = NT_SET_MODE(0640);
    struct nt_fh fh;
    nfstime3 t;

    nt_mk_file(c, &e->dir, "f", 0644, &fh);
    for (unsigned i = 0; i < 500; i++) {
        NT_OK(nt_getattr(c, &fh));
        t = c->r.attr.ctime;
        NT_OK(nt_setattr(c, &fh, &a, &t));
        NT_STATUS(nt_setattr(c, &fh, &b, &t), NFS3ERR_NOT_SYNC);
        NT_OK(nt_getattr(c, &fh));
        NT_EQ(c->r.attr.mode & 07777, 0600);
        NT_CHECK(nt_time_cmp(c->r.attr.ctime, t) > 0);
        t = c->r.attr.ctime;
        t.nseconds ^= 1; /* one ns beside it */
        NT_STATUS(nt_setattr(c, &fh, &b, &t), NFS3ERR_NOT_SYNC);
    }
}

/* ---- B6, B7 ---- */

static void write_all(struct nt *c, const struct nt_fh *fh, uint32_t seed, unsigned mib,
                      char verf[8], bool *ret_same)
{
    uint8_t *b = malloc(MIB);

    *ret_same = true;
    for (unsigned i = 0; i < mib; i++) {
        nt_pattern(seed, (uint64_t)i * MIB, b, MIB);
        NT_OK(nt_write(c, fh, (uint64_t)i * MIB, b, MIB, UNSTABLE));
        NT_EQ(c->r.count, MIB);
        if (i == 0) {
            memcpy(verf, c->r.verf, 8);
        }
        *ret_same = *ret_same && memcmp(verf, c->r.verf, 8) == 0;
    }
    free(b);
}

static void read_all(struct nt *c, const struct nt_fh *fh, uint32_t seed, unsigned mib)
{
    for (unsigned i = 0; i < mib; i++) {
        NT_OK(nt_read(c, fh, (uint64_t)i * MIB, MIB));
        NT_EQ(c->r.count, MIB);
        NT_CHECK(nt_pattern_ok(seed, (uint64_t)i * MIB, c->data, MIB));
    }
}

static void t_b6(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt *a, *b;
    struct nt_fh fh;
    char verf[8];
    bool same;

    (void)e;
    cs_layout_start(&l);
    a = cs_gw(&l, 0);
    b = cs_gw(&l, 1);
    nt_mk_file(a, &l.root, "f", 0644, &fh);
    write_all(a, &fh, 1, 32, verf, &same); /* chunks of 4 MiB lie on both segment servers */
    NT_CHECK(same);
    NT_CHECK(cs_du(l.seg_dir[0]) >= 8 * MIB && cs_du(l.seg_dir[1]) >= 8 * MIB);
    NT_OK(nt_commit(a, &fh, 0, 0));
    NT_CHECK(memcmp(verf, a->r.verf, 8) == 0);
    NT_OK(nt_write(b, &fh, 0, "x", 1, UNSTABLE));
    NT_CHECK(memcmp(verf, b->r.verf, 8) == 0);
    NT_OK(nt_commit(b, &fh, 0, 0));
    NT_CHECK(memcmp(verf, b->r.verf, 8) == 0);
    nt_mk_file(b, &l.root, "small", 0644, &fh); /* in the shard, not in a segment */
    NT_OK(nt_write(b, &fh, 0, "x", 1, UNSTABLE));
    NT_CHECK(memcmp(verf, b->r.verf, 8) == 0);
    cs_bounce(&l, CS_GW_B); /* held nothing that was uncommitted */
    nt_close(b);
    b = cs_gw(&l, 1);
    NT_OK(nt_commit(b, &fh, 0, 0));
    NT_CHECK(memcmp(verf, b->r.verf, 8) == 0);
    nt_close(a);
    nt_close(b);
    cs_layout_stop(&l);
}

/* 64 MiB UNSTABLE through GW-A, one process dies, COMMIT. If that shows a new verifier, the client
 * sends all again. Then everything is killed: what was committed is there. */
static void loses(struct cs_layout *l, enum cs_who victim, const char *name, bool must_change)
{
    enum { N = 64 };
    uint32_t seed = (uint32_t)victim + 10;
    struct nt *c = cs_gw(l, 0);
    struct nt_fh fh;
    char verf[8];
    uint64_t t0;
    bool same;

    nt_mk_file(c, &l->root, name, 0644, &fh);
    write_all(c, &fh, seed, N, verf, &same);
    NT_CHECK(same);
    cs_end(l, victim, SIGKILL);
    cs_start(l, victim);
    t0 = nt_now_ns();
    if (victim == CS_GW_A) {
        cs_wait_serves(l);
        nt_close(c);
        c = cs_gw(l, 0);
    }
    NT_ONE_OF(nt_commit(c, &fh, 0, 0), NFS3_OK, NFS3ERR_IO);
    same = c->r.status == NFS3_OK && memcmp(verf, c->r.verf, 8) == 0;
    printf("# %s: COMMIT %s, verifier %s, %.2f s\n", name, nt_status_name(c->r.status),
           same ? "the same" : "new", (double)(nt_now_ns() - t0) / 1e9);
    NT_CHECK(nt_now_ns() - t0 < 60000000000ull);
    NT_CHECK(!must_change || !same);
    if (!same) {
        write_all(c, &fh, seed, N, verf, &same);
        NT_CHECK(same);
        NT_OK(nt_commit(c, &fh, 0, 0));
        NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    }
    nt_close(c);
    for (int i = 0; i < CS_PROCS; i++) {
        cs_end(l, (enum cs_who)i, SIGKILL);
    }
    for (int i = 0; i < CS_PROCS; i++) {
        cs_start(l, (enum cs_who)i);
    }
    cs_wait_serves(l);
    c = cs_gw(l, 1);
    read_all(c, &fh, seed, N);
    nt_close(c);
}

static void t_b7(struct nt_env *e)
{
    struct cs_layout l = {0};

    (void)e;
    cs_layout_start(&l);
    loses(&l, CS_SEG1, "first segment server", true);
    loses(&l, CS_SEG2, "second segment server", true);
    loses(&l, CS_META, "metadata server", true);
    loses(&l, CS_GW_A, "gateway", false);
    cs_layout_stop(&l);
}

/* The disk of one segment says EIO on flush. */
static void t_b7_eio(struct nt_env *e)
{
    struct cs_layout l = {0};
    char verf[8];
    struct nt_fh fh;
    struct nt *c;
    bool same;

    (void)e;
    cs_layout_start(&l);
    snprintf(l.fault[CS_SEG2], sizeof(l.fault[0]), "segment.sync=error");
    cs_bounce(&l, CS_SEG2);
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "f", 0644, &fh);
    write_all(c, &fh, 5, 64, verf, &same);
    NT_STATUS(nt_commit(c, &fh, 0, 0), NFS3ERR_IO);
    NT_STATUS(nt_commit(c, &fh, 0, 0), NFS3ERR_IO); /* and it stays so: nothing is forgotten */
    l.fault[CS_SEG2][0] = '\0';
    cs_bounce(&l, CS_SEG2);
    NT_OK(nt_commit(c, &fh, 0, 0));
    NT_CHECK(memcmp(verf, c->r.verf, 8) != 0);
    write_all(c, &fh, 5, 64, verf, &same);
    NT_CHECK(same);
    NT_OK(nt_commit(c, &fh, 0, 0));
    NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    read_all(c, &fh, 5, 64);
    nt_close(c);
    cs_layout_stop(&l);
}

/* ---- B8, B9 ---- */

static void t_b8(struct nt_env *e)
{
    struct cs_layout l = {0};

    (void)e;
    cs_layout_start(&l);
    for (unsigned i = 0; i < 12; i++) {
        struct nt *c = cs_gw(&l, i % 2);
        struct nt_fh fh;
        char a[16], b[16];

        snprintf(a, sizeof(a), "a%u", i);
        snprintf(b, sizeof(b), "b%u", i);
        if (i % 3 == 0) {
            NT_OK(nt_create(c, &l.root, b, GUARDED, &NT_SET_MODE(0644), NULL));
        } else if (i % 3 == 1) {
            NT_OK(nt_mkdir(c, &l.root, b, &NT_SET_MODE(0755)));
        } else {
            nt_mk_file(c, &l.root, a, 0644, &fh);
            NT_OK(nt_rename(c, &l.root, a, &l.root, b));
        }
        fh = i % 3 == 2 ? fh : c->r.fh;
        cs_bounce(&l, CS_META); /* at once */
        NT_OK(nt_lookup(c, &l.root, b));
        NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
        NT_STATUS(nt_lookup(c, &l.root, a), NFS3ERR_NOENT);
        nt_close(c);
    }
    cs_layout_stop(&l);
}

static void old_handles(struct nt *c, const struct nt_fh fh[4], const fattr3 want[4],
                        const struct nt_fh *gone)
{
    for (unsigned i = 0; i < 4; i++) {
        NT_OK(nt_getattr(c, &fh[i]));
        NT_EQ(c->r.attr.fileid, want[i].fileid);
        NT_EQ(c->r.attr.fsid, want[i].fsid);
        NT_EQ(c->r.attr.type, want[i].type);
    }
    NT_OK(nt_read(c, &fh[2], 0, 10));
    NT_EQ(c->r.count, 5);
    NT_OK(nt_lookup(c, &fh[1], "f"));
    NT_CHECK(nt_fh_eq(&c->r.fh, &fh[2]));
    NT_STATUS(nt_getattr(c, gone), NFS3ERR_STALE);
}

static void take_handles(struct nt *c, const struct nt_fh *root, struct nt_fh fh[4], fattr3 at[4],
                         struct nt_fh *gone)
{
    fh[0] = *root;
    nt_mk_dir(c, root, "b9", 0755, &fh[1]);
    nt_mk_file(c, &fh[1], "f", 0644, &fh[2]);
    NT_OK(nt_write(c, &fh[2], 0, "hello", 5, FILE_SYNC));
    NT_OK(nt_symlink(c, &fh[1], "l", "f", NULL));
    fh[3] = c->r.fh;
    nt_mk_file(c, &fh[1], "gone", 0644, gone);
    NT_OK(nt_remove(c, &fh[1], "gone"));
    for (unsigned i = 0; i < 4; i++) {
        NT_OK(nt_getattr(c, &fh[i]));
        at[i] = c->r.attr;
    }
}

static void t_b9(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_fh fh[4], gone;
    fattr3 at[4];
    struct nt *c;

    (void)e;
    cs_layout_start(&l);
    c = cs_gw(&l, 0);
    take_handles(c, &l.root, fh, at, &gone);
    nt_close(c);
    c = cs_gw(&l, 1); /* the address moves to GW-B */
    old_handles(c, fh, at, &gone);
    nt_close(c);
    cs_bounce(&l, CS_GW_A);
    c = cs_gw(&l, 0);
    old_handles(c, fh, at, &gone);
    nt_close(c);
    for (int i = CS_PROCS; i-- > 0;) {
        cs_end(&l, (enum cs_who)i, i % 2 == 0 ? SIGKILL : SIGTERM);
    }
    for (int i = CS_PROCS; i-- > 0;) { /* in the other order: each waits for what it needs */
        cs_start(&l, (enum cs_who)i);
    }
    cs_wait_serves(&l);
    c = cs_gw(&l, 0);
    old_handles(c, fh, at, &gone);
    nt_close(c);
    cs_layout_stop(&l);
}

/* Another export is added, and is the first of the list. */
static void t_b9_exports(struct nt_env *e)
{
    struct nt_fh fh[4], gone;
    fattr3 at[4];

    take_handles(e->root, &e->dir, fh, at, &gone);
    cs_cli(e, "export", "add", "/aaa", NULL);
    old_handles(e->root, fh, at, &gone);
    cs_restart_node(e, SIGKILL);
    old_handles(e->root, fh, at, &gone);
    cs_cli(e, "export", "remove", "/aaa", NULL);
    old_handles(e->root, fh, at, &gone);
}

/* ---- B12, B14 ---- */

/* A client's silly rename: the name goes to .nfsXXXX, the file lives on, its removal frees it. */
static void t_b12(struct nt_env *e)
{
    uint8_t *b = malloc(MIB);
    char segs[300];
    uint64_t before, deadline;
    struct nt_fh fh;

    snprintf(segs, sizeof(segs), "%s/data/segments", e->node.dir);
    before = cs_du(segs);
    nt_mk_file(e->root, &e->dir, "f", 0644, &fh);
    for (unsigned i = 0; i < 16; i++) {
        nt_pattern(3, (uint64_t)i * MIB, b, MIB);
        NT_OK(nt_write(e->root, &fh, (uint64_t)i * MIB, b, MIB, FILE_SYNC));
    }
    NT_OK(nt_rename(e->root, &e->dir, "f", &e->dir, ".nfs0000000000000001"));
    NT_STATUS(nt_lookup(e->root, &e->dir, "f"), NFS3ERR_NOENT);
    cs_restart_node(e, SIGKILL);
    read_all(e->root, &fh, 3, 16);
    NT_CHECK(cs_du(segs) >= before + 16 * MIB);
    NT_OK(nt_remove(e->root, &e->dir, ".nfs0000000000000001"));
    NT_STATUS(nt_getattr(e->root, &fh), NFS3ERR_STALE);
    deadline = cs_after(30);
    while (cs_du(segs) > before + MIB) {
        NT_CHECK(nt_now_ns() < deadline);
        cs_nap_ms(20);
    }
    NT_OK(nt_readdir(e->root, &e->dir, 0, NULL, 4096));
    NT_EQ(e->root->r.nentries, 2);
    free(b);
}

static void t_b14(struct nt_env *e)
{
    struct nt *owner = nt_open(&e->node, 1000, 1000, 0, NULL);
    struct nt *second = nt_open(&e->node, 1000, 1000, 0, NULL);
    struct nt *stranger = nt_open(&e->node, 1001, 1001, 0, NULL);
    struct nt_set ro = NT_SET_MODE(0444);
    struct nt_fh fh;

    NT_OK(nt_create(owner, &e->dir, "f", EXCLUSIVE, NULL, "verifier"));
    fh = owner->r.fh;
    NT_OK(nt_setattr(owner, &fh, &ro, NULL)); /* as clients do after EXCLUSIVE */
    NT_OK(nt_write(owner, &fh, 0, "hello", 5, UNSTABLE));
    NT_OK(nt_commit(owner, &fh, 0, 0));
    NT_OK(nt_create(owner, &e->dir, "g", GUARDED, &ro, NULL));
    NT_OK(nt_write(owner, &owner->r.fh, 0, "hello", 5, FILE_SYNC));
    NT_OK(nt_access(second, &fh, 0x3f)); /* what a second open(O_WRONLY) goes by */
    NT_EQ(second->r.access & (ACCESS3_MODIFY | ACCESS3_EXTEND), 0);
    NT_CHECK((second->r.access & ACCESS3_READ) != 0);
    NT_STATUS(nt_write(stranger, &fh, 0, "x", 1, FILE_SYNC), NFS3ERR_ACCES);
    NT_OK(nt_read(stranger, &fh, 0, 10));
    NT_EQ(stranger->r.count, 5);
    NT_CHECK(memcmp(stranger->data, "hello", 5) == 0);
    nt_close(owner);
    nt_close(second);
    nt_close(stranger);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"B1 EXCLUSIVE repeated over restarts and gateways", t_b1, true},
        {"B3 a lost reply is sent again, not the change", t_b3, false},
        {"B3 a repeat while the first runs", t_b3_running, true},
        {"B5 the guard of SETATTR is compared exactly", t_b5, false},
        {"B6 one verifier for all servers and gateways", t_b6, true},
        {"B7 a restart before COMMIT is seen, data survives", t_b7, true},
        {"B7 a failed flush is not reported as done", t_b7_eio, true},
        {"B8 what was replied is there after kill -9", t_b8, true},
        {"B9 handles outlive restarts and gateways", t_b9, true},
        {"B9 handles do not depend on the list of exports", t_b9_exports, true},
        {"B12 a .nfs file is readable, and frees its space", t_b12, true},
        {"B14 create 0444, then write", t_b14, false},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Every NFSv3 and MOUNT3 procedure and the errors it can answer (RFC 1813 chapters 3 and 5); weak
 * cache consistency data with successes and errors.
 */
#include <string.h>

#include "../support/nt.h"

/* The things most tests need. */
struct things {
    struct nt_fh file, dir, link, fifo, gone, bad;
};

static void make_things(struct nt_env *e, struct things *t)
{
    struct nt *c = e->root;

    nt_mk_file(c, &e->dir, "file", 0644, &t->file);
    nt_mk_dir(c, &e->dir, "dir", 0755, &t->dir);
    NT_OK(nt_symlink(c, &e->dir, "link", "file", NULL));
    t->link = c->r.fh;
    NT_OK(nt_mknod(c, &e->dir, "fifo", NF3FIFO, &NT_SET_MODE(0644), 0, 0));
    t->fifo = c->r.fh;
    nt_mk_file(c, &e->dir, "gone", 0644, &t->gone);
    NT_OK(nt_remove(c, &e->dir, "gone"));
    t->bad = t->file;
    t->bad.data[t->bad.len - 1] ^= 0x5a;
}

/* A change that failed: what is told of the directory must be present and show no change. */
static void wcc_unchanged(const struct nt_wcc *w)
{
    NT_CHECK(w->have_after);
    if (w->have_before) {
        NT_CHECK(nt_time_eq(w->before.ctime, w->after.ctime));
        NT_CHECK(nt_time_eq(w->before.mtime, w->after.mtime));
        NT_EQ(w->before.size, w->after.size);
    }
}

/* A change that happened: both sides are present, and time moved. */
static void wcc_changed(const struct nt_wcc *w)
{
    NT_CHECK(w->have_before);
    NT_CHECK(w->have_after);
    NT_CHECK(nt_time_cmp(w->before.ctime, w->after.ctime) < 0);
    NT_CHECK(nt_time_cmp(w->before.mtime, w->after.mtime) < 0);
}

static void t_null(struct nt_env *e)
{
    NT_OK(nt_null(e->root));
}

static void t_getattr(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_getattr(c, &t.file));
    NT_EQ(c->r.attr.type, NF3REG);
    NT_EQ(c->r.attr.mode & 07777, 0644);
    NT_EQ(c->r.attr.nlink, 1);
    NT_EQ(c->r.attr.size, 0);
    NT_EQ(c->r.attr.uid, 0);
    NT_OK(nt_getattr(c, &t.dir));
    NT_EQ(c->r.attr.type, NF3DIR);
    NT_EQ(c->r.attr.nlink, 2);
    NT_OK(nt_getattr(c, &t.link));
    NT_EQ(c->r.attr.type, NF3LNK);
    NT_EQ(c->r.attr.size, 4);
    NT_OK(nt_getattr(c, &t.fifo));
    NT_EQ(c->r.attr.type, NF3FIFO);
    NT_STATUS(nt_getattr(c, &t.gone), NFS3ERR_STALE);
    NT_STATUS(nt_getattr(c, &t.bad), NFS3ERR_BADHANDLE);
}

static void t_setattr(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_set s = NT_SET_NONE;
    struct things t;

    make_things(e, &t);
    s.mode = 0600;
    s.uid = 12;
    s.gid = 34;
    s.mtime_how = SET_TO_CLIENT_TIME;
    s.mtime = (nfstime3){.seconds = 1000000000, .nseconds = 123456789};
    s.atime_how = SET_TO_CLIENT_TIME;
    s.atime = (nfstime3){.seconds = 1000000001, .nseconds = 987654321};
    NT_OK(nt_setattr(c, &t.file, &s, NULL));
    NT_CHECK(c->r.wcc.have_before && c->r.wcc.have_after);
    NT_OK(nt_getattr(c, &t.file));
    NT_EQ(c->r.attr.mode & 07777, 0600);
    NT_EQ(c->r.attr.uid, 12);
    NT_EQ(c->r.attr.gid, 34);
    NT_CHECK(nt_time_eq(c->r.attr.mtime, s.mtime));
    NT_CHECK(nt_time_eq(c->r.attr.atime, s.atime));
    s = NT_SET_NONE;
    s.mtime_how = SET_TO_SERVER_TIME;
    NT_OK(nt_setattr(c, &t.file, &s, NULL));
    NT_CHECK(c->r.wcc.after.mtime.seconds > 1700000000);
    s = NT_SET_NONE;
    s.set_size = true;
    s.size = 10;
    NT_OK(nt_setattr(c, &t.file, &s, NULL));
    NT_EQ(c->r.wcc.after.size, 10);
    NT_ONE_OF(nt_setattr(c, &t.dir, &s, NULL), NFS3ERR_INVAL, NFS3ERR_ISDIR);
    NT_ONE_OF(nt_setattr(c, &t.fifo, &s, NULL), NFS3ERR_INVAL, NFS3_OK);
    s.size = UINT64_MAX;
    NT_ONE_OF(nt_setattr(c, &t.file, &s, NULL), NFS3ERR_FBIG, NFS3ERR_INVAL);
    wcc_unchanged(&c->r.wcc);
    s = NT_SET_MODE(0644);
    NT_STATUS(nt_setattr(c, &t.gone, &s, NULL), NFS3ERR_STALE);
    NT_STATUS(nt_setattr(c, &t.bad, &s, NULL), NFS3ERR_BADHANDLE);
}

/* B5: the guard is the exact ctime. */
static void t_setattr_guard(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    for (unsigned i = 0; i < 500; i++) {
        struct nt_set s = NT_SET_MODE(0600 + i % 8);
        struct nt_set other = NT_SET_MODE(0640);
        nfstime3 guard;

        NT_OK(nt_getattr(c, &t.file));
        guard = c->r.attr.ctime;
        NT_OK(nt_setattr(c, &t.file, &s, &guard));
        NT_STATUS(nt_setattr(c, &t.file, &other, &guard), NFS3ERR_NOT_SYNC);
        NT_CHECK(c->r.wcc.have_after);
        NT_EQ(c->r.wcc.after.mode & 07777, 0600 + i % 8);
    }
}

static void t_lookup(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh parent;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_lookup(c, &e->dir, "file"));
    NT_CHECK(nt_fh_eq(&c->r.fh, &t.file));
    NT_CHECK(c->r.have_attr && c->r.have_dir);
    NT_EQ(c->r.attr.type, NF3REG);
    NT_OK(nt_lookup(c, &t.dir, "."));
    NT_CHECK(nt_fh_eq(&c->r.fh, &t.dir));
    NT_OK(nt_lookup(c, &t.dir, ".."));
    NT_CHECK(nt_fh_eq(&c->r.fh, &e->dir));
    NT_OK(nt_lookup(c, &e->dir, ".."));
    parent = c->r.fh;
    NT_CHECK(nt_fh_eq(&parent, &e->export_fh));
    NT_OK(nt_lookup(c, &e->export_fh, "..")); /* the export's root is its own parent */
    NT_CHECK(nt_fh_eq(&c->r.fh, &e->export_fh));
    NT_STATUS(nt_lookup(c, &e->dir, "absent"), NFS3ERR_NOENT);
    NT_CHECK(c->r.have_dir);
    NT_STATUS(nt_lookup(c, &t.file, "x"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_lookup(c, &t.gone, "x"), NFS3ERR_STALE);
    NT_STATUS(nt_lookup(c, &t.bad, "x"), NFS3ERR_BADHANDLE);
    NT_CHECK(nt_lookup(c, &e->dir, "") != NFS3_OK);
    NT_CHECK(nt_lookup(c, &e->dir, "dir/..") != NFS3_OK);
}

static void t_access_readlink(struct nt_env *e)
{
    struct nt *c = e->root;
    char longest[1001];
    struct things t;

    make_things(e, &t);
    NT_OK(nt_access(c, &t.dir, 0x3f));
    NT_CHECK(c->r.have_attr);
    NT_EQ(c->r.access &
              (ACCESS3_READ | ACCESS3_LOOKUP | ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE),
          ACCESS3_READ | ACCESS3_LOOKUP | ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE);
    NT_OK(nt_access(c, &t.file, ACCESS3_READ | ACCESS3_MODIFY));
    NT_EQ(c->r.access, ACCESS3_READ | ACCESS3_MODIFY); /* only what was asked about */
    NT_STATUS(nt_access(c, &t.gone, 0x3f), NFS3ERR_STALE);
    NT_STATUS(nt_access(c, &t.bad, 0x3f), NFS3ERR_BADHANDLE);
    NT_OK(nt_readlink(c, &t.link));
    NT_CHECK(strcmp(c->r.target, "file") == 0);
    NT_STATUS(nt_readlink(c, &t.file), NFS3ERR_INVAL);
    NT_STATUS(nt_readlink(c, &t.dir), NFS3ERR_INVAL);
    NT_STATUS(nt_readlink(c, &t.gone), NFS3ERR_STALE);
    NT_STATUS(nt_readlink(c, &t.bad), NFS3ERR_BADHANDLE);
    memset(longest, 'x', sizeof(longest));
    longest[1000] = '\0';
    NT_OK(nt_symlink(c, &e->dir, "long", longest, NULL));
    NT_OK(nt_readlink(c, &c->r.fh));
    NT_CHECK(strcmp(c->r.target, longest) == 0);
}

/* Targets of 4095 and 4096 bytes: more than libnfs encodes. */
static void t_symlink_longest(struct nt_env *e)
{
    static char target[4096];
    int fd = nt_raw_connect(e->node.port);

    memset(target, 'x', sizeof(target));
    for (uint32_t len = 4095; len <= 4096; len++) {
        struct nt_buf m;
        uint8_t rep[512];

        nt_raw_call(&m, (uint32_t)nt_now_ns(), NFS_PROGRAM, 3, 10);
        nt_raw_opaque(&m, e->dir.data, e->dir.len);
        nt_raw_opaque(&m, len == 4095 ? "fits" : "not", len == 4095 ? 4 : 3);
        for (int i = 0; i < 6; i++) {
            nt_raw_u32(&m, 0);
        }
        nt_raw_opaque(&m, target, len);
        nt_raw_seal(&m);
        NT_CHECK(nt_raw_send(fd, m.b, m.n));
        NT_CHECK(nt_raw_recv(fd, rep, sizeof(rep)) >= 28);
        NT_EQ(nt_raw_get(rep + 20), 0);
        if (len == 4095) {
            NT_STATUS(nt_raw_get(rep + 24), NFS3_OK);
        } else {
            NT_ONE_OF(nt_raw_get(rep + 24), NFS3ERR_NAMETOOLONG, NFS3ERR_INVAL);
        }
    }
    NT_OK(nt_lookup(e->root, &e->dir, "fits"));
    NT_EQ(e->root->r.attr.size, 4095);
    NT_OK(nt_readlink(e->root, &e->root->r.fh));
    NT_EQ(strlen(e->root->r.target), 4095);
}

static void t_read_write_errors(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_write(c, &t.file, 0, "hello", 5, FILE_SYNC));
    NT_EQ(c->r.count, 5);
    NT_EQ(c->r.committed, FILE_SYNC);
    wcc_changed(&c->r.wcc);
    NT_EQ(c->r.wcc.before.size, 0);
    NT_EQ(c->r.wcc.after.size, 5);
    NT_OK(nt_read(c, &t.file, 1, 100));
    NT_EQ(c->r.count, 4);
    NT_CHECK(c->r.eof && c->r.have_attr && memcmp(c->data, "ello", 4) == 0);
    NT_OK(nt_read(c, &t.file, 0, 5));
    NT_EQ(c->r.count, 5);
    NT_CHECK(c->r.eof);
    NT_OK(nt_read(c, &t.file, 0, 4));
    NT_CHECK(!c->r.eof);
    NT_OK(nt_read(c, &t.file, 5, 10));
    NT_EQ(c->r.count, 0);
    NT_CHECK(c->r.eof);
    NT_OK(nt_read(c, &t.file, 1ull << 40, 10));
    NT_EQ(c->r.count, 0);
    NT_CHECK(c->r.eof);
    NT_OK(nt_read(c, &t.file, 0, 0));
    NT_EQ(c->r.count, 0);
    NT_OK(nt_write(c, &t.file, 0, "", 0, FILE_SYNC)); /* nothing to write is no error */
    NT_EQ(c->r.count, 0);
    NT_OK(nt_getattr(c, &t.file));
    NT_EQ(c->r.attr.size, 5);
    NT_ONE_OF(nt_read(c, &t.dir, 0, 10), NFS3ERR_INVAL, NFS3ERR_ISDIR);
    NT_CHECK(c->r.have_attr);
    NT_STATUS(nt_read(c, &t.link, 0, 10), NFS3ERR_INVAL);
    NT_STATUS(nt_read(c, &t.gone, 0, 10), NFS3ERR_STALE);
    NT_STATUS(nt_read(c, &t.bad, 0, 10), NFS3ERR_BADHANDLE);
    NT_ONE_OF(nt_write(c, &t.dir, 0, "x", 1, FILE_SYNC), NFS3ERR_INVAL, NFS3ERR_ISDIR);
    NT_STATUS(nt_write(c, &t.link, 0, "x", 1, FILE_SYNC), NFS3ERR_INVAL);
    NT_STATUS(nt_write(c, &t.gone, 0, "x", 1, FILE_SYNC), NFS3ERR_STALE);
    NT_STATUS(nt_write(c, &t.bad, 0, "x", 1, FILE_SYNC), NFS3ERR_BADHANDLE);
    NT_ONE_OF(nt_write(c, &t.file, UINT64_MAX - 1, "xxx", 3, FILE_SYNC), NFS3ERR_FBIG,
              NFS3ERR_INVAL);
    wcc_unchanged(&c->r.wcc);
}

static void t_commit(struct nt_env *e)
{
    struct nt *c = e->root;
    char verf[8];
    struct things t;

    make_things(e, &t);
    NT_OK(nt_write(c, &t.file, 0, "hello", 5, UNSTABLE));
    memcpy(verf, c->r.verf, 8);
    NT_OK(nt_commit(c, &t.file, 0, 0));
    NT_CHECK(c->r.wcc.have_after && memcmp(verf, c->r.verf, 8) == 0);
    NT_OK(nt_commit(c, &t.file, 2, 2));
    NT_ONE_OF(nt_commit(c, &t.dir, 0, 0), NFS3ERR_INVAL, NFS3ERR_ISDIR);
    NT_STATUS(nt_commit(c, &t.gone, 0, 0), NFS3ERR_STALE);
    NT_STATUS(nt_commit(c, &t.bad, 0, 0), NFS3ERR_BADHANDLE);
}

static void t_create(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_set s = NT_SET_MODE(0640);
    struct nt_fh fh;
    struct things t;

    make_things(e, &t);
    s.uid = 5;
    s.gid = 6;
    NT_OK(nt_create(c, &e->dir, "new", UNCHECKED, &s, NULL));
    NT_CHECK(c->r.have_fh && c->r.have_attr);
    wcc_changed(&c->r.wcc);
    NT_EQ(c->r.attr.mode & 07777, 0640);
    NT_EQ(c->r.attr.uid, 5);
    NT_EQ(c->r.attr.gid, 6);
    fh = c->r.fh;
    NT_OK(nt_write(c, &fh, 0, "hello", 5, FILE_SYNC));
    NT_OK(nt_create(c, &e->dir, "new", UNCHECKED, &NT_SET_NONE, NULL)); /* keeps what is there */
    NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
    NT_EQ(c->r.attr.size, 5);
    s = NT_SET_NONE;
    s.set_size = true;
    NT_OK(nt_create(c, &e->dir, "new", UNCHECKED, &s, NULL)); /* size 0 truncates */
    NT_EQ(c->r.attr.size, 0);
    NT_STATUS(nt_create(c, &e->dir, "new", GUARDED, &s, NULL), NFS3ERR_EXIST);
    wcc_unchanged(&c->r.wcc);
    NT_ONE_OF(nt_create(c, &e->dir, "dir", UNCHECKED, &s, NULL), NFS3ERR_EXIST, NFS3ERR_ISDIR);
    NT_STATUS(nt_create(c, &e->dir, "dir", GUARDED, &s, NULL), NFS3ERR_EXIST);
    NT_STATUS(nt_create(c, &t.file, "x", GUARDED, &s, NULL), NFS3ERR_NOTDIR);
    NT_STATUS(nt_create(c, &t.gone, "x", GUARDED, &s, NULL), NFS3ERR_STALE);
    NT_STATUS(nt_create(c, &t.bad, "x", GUARDED, &s, NULL), NFS3ERR_BADHANDLE);
    NT_CHECK(nt_create(c, &e->dir, "a/b", GUARDED, &s, NULL) != NFS3_OK);
    NT_CHECK(nt_create(c, &e->dir, "", GUARDED, &s, NULL) != NFS3_OK);
    NT_ONE_OF(nt_create(c, &e->dir, ".", GUARDED, &s, NULL), NFS3ERR_EXIST, NFS3ERR_INVAL,
              NFS3ERR_ACCES, NFS3ERR_ISDIR);
    NT_ONE_OF(nt_create(c, &e->dir, "..", GUARDED, &s, NULL), NFS3ERR_EXIST, NFS3ERR_INVAL,
              NFS3ERR_ACCES, NFS3ERR_ISDIR);
}

/* B1 without the restart, which nfs3_restart.c does. */
static void t_create_exclusive(struct nt_env *e)
{
    static const char v1[8] = {(char)0xff, (char)0x80, 3, 4, (char)0xf5, 6, 7, (char)0x88};
    static const char v2[8] = {1, 2, 3, 4, 5, 6, 7, 8}, zero[8];
    struct nt *c = e->root;
    struct nt_set s = NT_SET_MODE(0611);
    struct nt_fh fh;

    NT_OK(nt_create(c, &e->dir, "x", EXCLUSIVE, NULL, v1));
    NT_CHECK(c->r.have_fh);
    fh = c->r.fh;
    NT_OK(nt_create(c, &e->dir, "x", EXCLUSIVE, NULL, v1));
    NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
    NT_STATUS(nt_create(c, &e->dir, "x", EXCLUSIVE, NULL, v2), NFS3ERR_EXIST);
    NT_CHECK(c->r.wcc.have_after);
    s.mtime_how = s.atime_how = SET_TO_CLIENT_TIME;
    s.mtime.seconds = 1234567890;
    s.mtime.nseconds = 999999999;
    s.atime.seconds = 1234567891;
    NT_OK(nt_setattr(c, &fh, &s, NULL));
    NT_OK(nt_getattr(c, &fh));
    NT_EQ(c->r.attr.mode & 07777, 0611);
    NT_CHECK(nt_time_eq(c->r.attr.mtime, s.mtime) && nt_time_eq(c->r.attr.atime, s.atime));
    nt_mk_file(c, &e->dir, "plain", 0644, &fh);
    NT_STATUS(nt_create(c, &e->dir, "plain", EXCLUSIVE, NULL, zero), NFS3ERR_EXIST);
    NT_OK(nt_create(c, &e->dir, "z", EXCLUSIVE, NULL, zero));
    NT_OK(nt_create(c, &e->dir, "z", EXCLUSIVE, NULL, zero));
    NT_STATUS(nt_create(c, &e->dir, "z", EXCLUSIVE, NULL, v1), NFS3ERR_EXIST);
}

static void t_mkdir_rmdir(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_set s = NT_SET_MODE(0750);
    struct nt_fh sub;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_getattr(c, &e->dir));
    NT_EQ(c->r.attr.nlink, 3);
    NT_OK(nt_mkdir(c, &e->dir, "sub", &s));
    NT_CHECK(c->r.have_fh && c->r.have_attr);
    wcc_changed(&c->r.wcc);
    NT_EQ(c->r.wcc.after.nlink, 4);
    NT_EQ(c->r.attr.mode & 07777, 0750);
    sub = c->r.fh;
    NT_STATUS(nt_mkdir(c, &e->dir, "sub", &s), NFS3ERR_EXIST);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_mkdir(c, &e->dir, "file", &s), NFS3ERR_EXIST);
    NT_STATUS(nt_mkdir(c, &t.file, "x", &s), NFS3ERR_NOTDIR);
    NT_STATUS(nt_mkdir(c, &t.gone, "x", &s), NFS3ERR_STALE);
    NT_STATUS(nt_mkdir(c, &t.bad, "x", &s), NFS3ERR_BADHANDLE);
    NT_CHECK(nt_mkdir(c, &e->dir, ".", &s) != NFS3_OK);
    NT_CHECK(nt_mkdir(c, &e->dir, "..", &s) != NFS3_OK);
    NT_OK(nt_mkdir(c, &sub, "inner", &s));
    NT_STATUS(nt_rmdir(c, &e->dir, "sub"), NFS3ERR_NOTEMPTY);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_rmdir(c, &e->dir, "file"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_rmdir(c, &e->dir, "link"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_rmdir(c, &e->dir, "absent"), NFS3ERR_NOENT);
    NT_ONE_OF(nt_rmdir(c, &sub, "."), NFS3ERR_INVAL);
    NT_ONE_OF(nt_rmdir(c, &sub, ".."), NFS3ERR_INVAL, NFS3ERR_EXIST, NFS3ERR_NOTEMPTY);
    NT_OK(nt_rmdir(c, &sub, "inner"));
    NT_OK(nt_rmdir(c, &e->dir, "sub"));
    wcc_changed(&c->r.wcc);
    NT_EQ(c->r.wcc.after.nlink, 3);
    NT_STATUS(nt_getattr(c, &sub), NFS3ERR_STALE);
    NT_STATUS(nt_create(c, &sub, "x", GUARDED, &s, NULL), NFS3ERR_STALE);
    NT_STATUS(nt_rmdir(c, &t.file, "x"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_rmdir(c, &t.gone, "x"), NFS3ERR_STALE);
    NT_STATUS(nt_rmdir(c, &t.bad, "x"), NFS3ERR_BADHANDLE);
}

static void t_symlink(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_symlink(c, &e->dir, "s", "../else/where", NULL));
    NT_CHECK(c->r.have_fh && c->r.have_attr);
    wcc_changed(&c->r.wcc);
    NT_EQ(c->r.attr.type, NF3LNK);
    NT_EQ(c->r.attr.size, 13);
    NT_STATUS(nt_symlink(c, &e->dir, "s", "x", NULL), NFS3ERR_EXIST);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_symlink(c, &t.file, "s", "x", NULL), NFS3ERR_NOTDIR);
    NT_STATUS(nt_symlink(c, &t.gone, "s", "x", NULL), NFS3ERR_STALE);
    NT_STATUS(nt_symlink(c, &t.bad, "s", "x", NULL), NFS3ERR_BADHANDLE);
}

static void t_mknod(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_set s = NT_SET_MODE(0600);
    struct nt *user;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_mknod(c, &e->dir, "chr", NF3CHR, &s, 300, 70000));
    NT_EQ(c->r.attr.type, NF3CHR);
    NT_EQ(c->r.attr.rdev.specdata1, 300);
    NT_EQ(c->r.attr.rdev.specdata2, 70000);
    wcc_changed(&c->r.wcc);
    NT_OK(nt_mknod(c, &e->dir, "blk", NF3BLK, &s, 8, 1));
    NT_EQ(c->r.attr.type, NF3BLK);
    NT_OK(nt_mknod(c, &e->dir, "sock", NF3SOCK, &s, 0, 0));
    NT_EQ(c->r.attr.type, NF3SOCK);
    NT_STATUS(nt_mknod(c, &e->dir, "sock", NF3SOCK, &s, 0, 0), NFS3ERR_EXIST);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_mknod(c, &t.file, "s", NF3FIFO, &s, 0, 0), NFS3ERR_NOTDIR);
    NT_STATUS(nt_mknod(c, &t.gone, "s", NF3FIFO, &s, 0, 0), NFS3ERR_STALE);
    NT_STATUS(nt_mknod(c, &t.bad, "s", NF3FIFO, &s, 0, 0), NFS3ERR_BADHANDLE);
    user = nt_open(&e->node, 1000, 1000, 0, NULL);
    NT_ONE_OF(nt_mknod(user, &e->dir, "dev", NF3BLK, &s, 8, 1), NFS3ERR_PERM, NFS3ERR_ACCES);
    NT_OK(nt_mknod(user, &e->dir, "ufifo", NF3FIFO, &s, 0, 0));
    NT_EQ(user->r.attr.uid, 1000);
    nt_close(user);
}

/* MKNOD of types that it does not make. libnfs does not send those, so bytes are sent. */
static void t_mknod_badtype(struct nt_env *e)
{
    static const uint32_t types[] = {NF3REG, NF3DIR, NF3LNK};
    int fd = nt_raw_connect(e->node.port);

    for (unsigned i = 0; i < 3; i++) {
        struct nt_buf m;
        uint8_t rep[512];

        nt_raw_call(&m, 0x1000 + i, NFS_PROGRAM, 3, 11);
        nt_raw_opaque(&m, e->dir.data, e->dir.len);
        nt_raw_opaque(&m, "bt", 2);
        nt_raw_u32(&m, types[i]);
        nt_raw_seal(&m);
        NT_CHECK(nt_raw_send(fd, m.b, m.n));
        NT_CHECK(nt_raw_recv(fd, rep, sizeof(rep)) >= 28);
        NT_EQ(nt_raw_get(rep + 20), 0); /* accepted: SUCCESS */
        NT_STATUS(nt_raw_get(rep + 24), NFS3ERR_BADTYPE);
    }
    NT_STATUS(nt_lookup(e->root, &e->dir, "bt"), NFS3ERR_NOENT);
}

static void t_remove(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_ONE_OF(nt_remove(c, &e->dir, "dir"), NFS3ERR_ISDIR, NFS3ERR_PERM);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_remove(c, &e->dir, "absent"), NFS3ERR_NOENT);
    wcc_unchanged(&c->r.wcc);
    NT_STATUS(nt_remove(c, &t.file, "x"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_remove(c, &t.gone, "x"), NFS3ERR_STALE);
    NT_STATUS(nt_remove(c, &t.bad, "x"), NFS3ERR_BADHANDLE);
    NT_CHECK(nt_remove(c, &e->dir, ".") != NFS3_OK);
    NT_CHECK(nt_remove(c, &e->dir, "..") != NFS3_OK);
    NT_OK(nt_remove(c, &e->dir, "file"));
    wcc_changed(&c->r.wcc);
    NT_STATUS(nt_getattr(c, &t.file), NFS3ERR_STALE);
    NT_OK(nt_remove(c, &e->dir, "link"));
    NT_OK(nt_remove(c, &e->dir, "fifo"));
    NT_OK(nt_rmdir(c, &e->dir, "dir"));
    NT_OK(nt_readdir(c, &e->dir, 0, NULL, 4096));
    NT_EQ(c->r.nentries, 2);
}

static void t_rename(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh fh, sub, inner;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_rename(c, &e->dir, "file", &t.dir, "moved"));
    wcc_changed(&c->r.wcc);
    wcc_changed(&c->r.wcc2);
    NT_STATUS(nt_lookup(c, &e->dir, "file"), NFS3ERR_NOENT);
    NT_OK(nt_lookup(c, &t.dir, "moved"));
    NT_CHECK(nt_fh_eq(&c->r.fh, &t.file));
    nt_mk_file(c, &e->dir, "target", 0644, &fh);
    NT_OK(nt_rename(c, &t.dir, "moved", &e->dir, "target")); /* replaces */
    NT_STATUS(nt_getattr(c, &fh), NFS3ERR_STALE);
    NT_STATUS(nt_rename(c, &e->dir, "absent", &e->dir, "x"), NFS3ERR_NOENT);
    wcc_unchanged(&c->r.wcc);
    wcc_unchanged(&c->r.wcc2);
    nt_mk_dir(c, &e->dir, "sub", 0755, &sub);
    nt_mk_dir(c, &sub, "inner", 0755, &inner);
    NT_ONE_OF(nt_rename(c, &e->dir, "target", &e->dir, "sub"), NFS3ERR_EXIST, NFS3ERR_ISDIR);
    NT_ONE_OF(nt_rename(c, &e->dir, "sub", &e->dir, "target"), NFS3ERR_EXIST, NFS3ERR_NOTDIR);
    NT_ONE_OF(nt_rename(c, &e->dir, "dir", &e->dir, "sub"), NFS3ERR_NOTEMPTY, NFS3ERR_EXIST);
    NT_STATUS(nt_rename(c, &e->dir, "sub", &inner, "loop"), NFS3ERR_INVAL);
    NT_STATUS(nt_rename(c, &e->dir, "sub", &sub, "loop"), NFS3ERR_INVAL);
    NT_ONE_OF(nt_rename(c, &e->dir, ".", &e->dir, "x"), NFS3ERR_INVAL, NFS3ERR_EXIST);
    NT_ONE_OF(nt_rename(c, &e->dir, "dir", &e->dir, ".."), NFS3ERR_INVAL, NFS3ERR_EXIST,
              NFS3ERR_NOTEMPTY);
    NT_STATUS(nt_rename(c, &t.file, "x", &e->dir, "y"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_rename(c, &e->dir, "target", &t.file, "y"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_rename(c, &t.gone, "x", &e->dir, "y"), NFS3ERR_STALE);
    NT_STATUS(nt_rename(c, &e->dir, "target", &t.gone, "y"), NFS3ERR_STALE);
    NT_STATUS(nt_rename(c, &t.bad, "x", &e->dir, "y"), NFS3ERR_BADHANDLE);
    /* a directory moves: link counts and ".." follow */
    NT_OK(nt_rename(c, &sub, "inner", &t.dir, "inner"));
    NT_OK(nt_getattr(c, &sub));
    NT_EQ(c->r.attr.nlink, 2);
    NT_OK(nt_getattr(c, &t.dir));
    NT_EQ(c->r.attr.nlink, 3);
    NT_OK(nt_lookup(c, &inner, ".."));
    NT_CHECK(nt_fh_eq(&c->r.fh, &t.dir));
    NT_OK(nt_rename(c, &t.dir, "inner", &e->dir, "sub")); /* over an empty directory */
    NT_OK(nt_lookup(c, &e->dir, "sub"));
    NT_CHECK(nt_fh_eq(&c->r.fh, &inner));
    NT_STATUS(nt_getattr(c, &sub), NFS3ERR_STALE);
    NT_OK(nt_rename(c, &e->dir, "sub", &e->dir, "sub")); /* onto itself */
}

/* C1: two names of one file; both stay. */
static void t_rename_same_inode(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_link(c, &t.file, &e->dir, "other"));
    NT_OK(nt_link(c, &t.file, &t.dir, "third"));
    NT_OK(nt_rename(c, &e->dir, "file", &e->dir, "other"));
    NT_OK(nt_rename(c, &e->dir, "file", &t.dir, "third"));
    NT_OK(nt_lookup(c, &e->dir, "file"));
    NT_OK(nt_lookup(c, &e->dir, "other"));
    NT_OK(nt_lookup(c, &t.dir, "third"));
    NT_EQ(c->r.attr.nlink, 3);
}

static void t_link(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_link(c, &t.file, &t.dir, "hard"));
    NT_CHECK(c->r.have_attr);
    NT_EQ(c->r.attr.nlink, 2);
    wcc_changed(&c->r.wcc);
    NT_OK(nt_remove(c, &e->dir, "file"));
    NT_OK(nt_getattr(c, &t.file));
    NT_EQ(c->r.attr.nlink, 1);
    NT_STATUS(nt_link(c, &t.file, &t.dir, "hard"), NFS3ERR_EXIST);
    wcc_unchanged(&c->r.wcc);
    NT_CHECK(c->r.have_attr);
    NT_ONE_OF(nt_link(c, &t.dir, &e->dir, "d2"), NFS3ERR_PERM, NFS3ERR_ISDIR, NFS3ERR_INVAL);
    NT_STATUS(nt_link(c, &t.file, &t.file, "x"), NFS3ERR_NOTDIR);
    NT_STATUS(nt_link(c, &t.gone, &e->dir, "x"), NFS3ERR_STALE);
    NT_STATUS(nt_link(c, &t.file, &t.gone, "x"), NFS3ERR_STALE);
    NT_STATUS(nt_link(c, &t.bad, &e->dir, "x"), NFS3ERR_BADHANDLE);
    NT_STATUS(nt_link(c, &t.file, &t.bad, "x"), NFS3ERR_BADHANDLE);
    NT_OK(nt_link(c, &t.fifo, &e->dir, "fifo2"));
    NT_OK(nt_link(c, &t.link, &e->dir, "link2"));
}

static void t_fs(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;

    make_things(e, &t);
    NT_OK(nt_fsinfo(c, &e->export_fh));
    NT_EQ(c->r.fsinfo.rtmax, 1u << 20);
    NT_EQ(c->r.fsinfo.wtmax, 1u << 20);
    NT_CHECK(c->r.fsinfo.rtpref > 0 && c->r.fsinfo.rtpref <= c->r.fsinfo.rtmax);
    NT_CHECK(c->r.fsinfo.wtpref > 0 && c->r.fsinfo.wtpref <= c->r.fsinfo.wtmax);
    NT_CHECK(c->r.fsinfo.rtmult > 0 && c->r.fsinfo.wtmult > 0 && c->r.fsinfo.dtpref > 0);
    NT_CHECK(c->r.fsinfo.maxfilesize >= 1ull << 40);
    NT_EQ(c->r.fsinfo.properties & (FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME),
          FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME);
    NT_EQ(c->r.fsinfo.time_delta.seconds, 0);
    NT_STATUS(nt_fsinfo(c, &t.gone), NFS3ERR_STALE);
    NT_STATUS(nt_fsinfo(c, &t.bad), NFS3ERR_BADHANDLE);
    NT_OK(nt_fsstat(c, &e->export_fh));
    NT_CHECK(c->r.fsstat.tbytes > 0 && c->r.fsstat.fbytes <= c->r.fsstat.tbytes);
    NT_CHECK(c->r.fsstat.abytes <= c->r.fsstat.fbytes);
    NT_CHECK(c->r.fsstat.tfiles > 0 && c->r.fsstat.ffiles <= c->r.fsstat.tfiles);
    NT_CHECK(c->r.have_attr);
    NT_STATUS(nt_fsstat(c, &t.gone), NFS3ERR_STALE);
    NT_STATUS(nt_fsstat(c, &t.bad), NFS3ERR_BADHANDLE);
    NT_OK(nt_pathconf(c, &t.file));
    NT_EQ(c->r.pathconf.name_max, 255);
    NT_CHECK(c->r.pathconf.linkmax >= 1000);
    NT_CHECK(c->r.pathconf.no_trunc && c->r.pathconf.chown_restricted);
    NT_CHECK(!c->r.pathconf.case_insensitive && c->r.pathconf.case_preserving);
    NT_STATUS(nt_pathconf(c, &t.gone), NFS3ERR_STALE);
    NT_STATUS(nt_pathconf(c, &t.bad), NFS3ERR_BADHANDLE);
}

/* Forged handles: no bit of a handle may be changed; other lengths are none of ours either. */
static void t_forged_handles(struct nt_env *e)
{
    struct nt *c = e->root;
    struct things t;
    struct nt_fh fh;

    make_things(e, &t);
    for (unsigned bit = 0; bit < t.file.len * 8; bit++) {
        fh = t.file;
        fh.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        NT_ONE_OF(nt_getattr(c, &fh), NFS3ERR_BADHANDLE, NFS3ERR_STALE);
    }
    for (uint32_t len = 0; len <= NT_FH_MAX; len++) {
        fh = t.file;
        fh.len = len;
        if (len != t.file.len) {
            NT_ONE_OF(nt_getattr(c, &fh), NFS3ERR_BADHANDLE, NFS3ERR_STALE);
        }
    }
}

static void t_names(struct nt_env *e)
{
    struct nt *c = e->root;
    char n255[257], n256[258];
    struct things t;

    make_things(e, &t);
    memset(n255, 'n', sizeof(n255));
    n255[255] = '\0';
    memset(n256, 'n', sizeof(n256));
    n256[256] = '\0';
    NT_OK(nt_create(c, &e->dir, n255, GUARDED, &NT_SET_NONE, NULL));
    NT_OK(nt_lookup(c, &e->dir, n255));
    NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, 65536, 65536));
    NT_STATUS(nt_lookup(c, &e->dir, n256), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_create(c, &e->dir, n256, UNCHECKED, &NT_SET_NONE, NULL), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_mkdir(c, &e->dir, n256, &NT_SET_NONE), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_symlink(c, &e->dir, n256, "x", NULL), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_mknod(c, &e->dir, n256, NF3FIFO, &NT_SET_NONE, 0, 0), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_link(c, &t.file, &e->dir, n256), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_rename(c, &e->dir, "file", &e->dir, n256), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_rename(c, &e->dir, n256, &e->dir, "x"), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_remove(c, &e->dir, n256), NFS3ERR_NAMETOOLONG);
    NT_STATUS(nt_rmdir(c, &e->dir, n256), NFS3ERR_NAMETOOLONG);
    NT_OK(nt_rename(c, &e->dir, n255, &t.dir, n255));
    NT_OK(nt_remove(c, &t.dir, n255));
    /* names are bytes: what is not UTF-8 stays what it is; case counts */
    NT_OK(nt_create(c, &e->dir, "\xff\xfe\x80 \n\t", GUARDED, &NT_SET_NONE, NULL));
    NT_OK(nt_lookup(c, &e->dir, "\xff\xfe\x80 \n\t"));
    NT_OK(nt_create(c, &e->dir, "Case", GUARDED, &NT_SET_NONE, NULL));
    NT_STATUS(nt_lookup(c, &e->dir, "case"), NFS3ERR_NOENT);
    NT_OK(nt_create(c, &e->dir, "case", GUARDED, &NT_SET_NONE, NULL));
    NT_OK(nt_create(c, &e->dir, "CASE", GUARDED, &NT_SET_NONE, NULL));
    NT_OK(nt_remove(c, &e->dir, "case"));
    NT_OK(nt_lookup(c, &e->dir, "Case"));
    NT_OK(nt_lookup(c, &e->dir, "CASE"));
}

static void t_mount(struct nt_env *e)
{
    struct nt *m = nt_try_open(&e->node, e->node.mount_port);
    char path[1024];

    NT_CHECK(m != NULL);
    NT_STATUS(nt_mount(m, e->node.export_path), MNT3_OK);
    NT_CHECK(m->r.have_fh && nt_fh_eq(&m->r.fh, &e->export_fh));
    NT_ONE_OF(nt_mount(m, "/no/such/export"), MNT3ERR_NOENT, MNT3ERR_ACCES);
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    path[1000] = '\0';
    NT_CHECK(nt_mount(m, path) != MNT3_OK);
    NT_CHECK(nt_mount(m, "") != MNT3_OK);
    nt_close(m);
}

/* MOUNT's other procedures by their bytes: NULL, DUMP, UMNT, UMNTALL, EXPORT. */
static void t_mount_procs(struct nt_env *e)
{
    static const uint32_t procs[] = {0, 2, 3, 4, 5};
    int fd = nt_raw_connect(e->node.mount_port);
    static uint8_t rep[65536];

    for (unsigned i = 0; i < 5; i++) {
        struct nt_buf m;
        ssize_t n;

        nt_raw_call(&m, 0x2000 + i, 100005, 3, procs[i]);
        if (procs[i] == 3) {
            nt_raw_opaque(&m, e->node.export_path, (uint32_t)strlen(e->node.export_path));
        }
        nt_raw_seal(&m);
        NT_CHECK(nt_raw_send(fd, m.b, m.n));
        n = nt_raw_recv(fd, rep, sizeof(rep));
        NT_CHECK(n >= 24);
        NT_EQ(nt_raw_get(rep + 20), 0);
        if (procs[i] == 5) { /* EXPORT lists the export's path */
            NT_CHECK(memmem(rep, (size_t)n, e->node.export_path, strlen(e->node.export_path)) !=
                     NULL);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"null", t_null, false},
        {"getattr", t_getattr, false},
        {"setattr", t_setattr, false},
        {"setattr_guard", t_setattr_guard, false},
        {"lookup", t_lookup, false},
        {"access_readlink", t_access_readlink, false},
        {"symlink_longest", t_symlink_longest, false},
        {"read_write_errors", t_read_write_errors, false},
        {"commit", t_commit, false},
        {"create", t_create, false},
        {"create_exclusive", t_create_exclusive, false},
        {"mkdir_rmdir", t_mkdir_rmdir, false},
        {"symlink", t_symlink, false},
        {"mknod", t_mknod, false},
        {"mknod_badtype", t_mknod_badtype, false},
        {"remove", t_remove, false},
        {"rename", t_rename, false},
        {"rename_same_inode", t_rename_same_inode, false},
        {"link", t_link, false},
        {"fs", t_fs, false},
        {"forged_handles", t_forged_handles, true},
        {"names", t_names, false},
        {"mount", t_mount, false},
        {"mount_procs", t_mount_procs, false},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

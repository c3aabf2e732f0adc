/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own file system as a second opinion: random ACLs, modes, umasks and callers on a
 * local file and in a shard, results and errors compared. Skipped where the tests may not become
 * other users or the file system of /tmp has no ACLs.
 */
#include "support_xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "holdfast/endian.h"
#include "holdfast/map.h"

struct peer {
    struct shard s;
    struct fh d; /* 0777, as the folder is */
    char dir[64];
    uint64_t rnd;
};

static uint32_t pick(struct peer *p, uint32_t n)
{
    p->rnd = hf_hash_u64(p->rnd + 0x9e3779b97f4a7c15);
    return (uint32_t)(p->rnd % n);
}

static const char *path(const struct peer *p, const char *name)
{
    static char out[128];

    snprintf(out, sizeof(out), "%s/%s", p->dir, name);
    return out;
}

static bool peer_open(struct peer *p)
{
    uint8_t blob[T_ACL_BYTES];
    size_t n = t_acl("u::rwx,u:1:r-x,g::rwx,m::rwx,o::rwx", blob);

    *p = (struct peer){.rnd = 7};
    snprintf(p->dir, sizeof(p->dir), "/tmp/hf-acl-XXXXXX");
    cr_assert(mkdtemp(p->dir));
    umask(0);
    if (geteuid() != 0 || setxattr(p->dir, T_ACL_ACCESS, blob, n, 0)) {
        rmdir(p->dir);
        return false;
    }
    cr_assert_eq(removexattr(p->dir, T_ACL_ACCESS), 0);
    cr_assert_eq(chmod(p->dir, 0777), 0);
    shard_open(&p->s, HF_STORE_MEM);
    cr_ok(t_make(&p->s, &t_root, t_root_dir, "d", DIR_, 0777, &p->d));
    return true;
}

static void peer_close(struct peer *p)
{
    cr_assert_eq(rmdir(p->dir), 0);
    cr_assert_eq(shard_check(&p->s, NULL), 0);
    shard_close(&p->s);
}

/* ---- random things; ids are 0..3, that many users meet their own entries ---- */

static size_t put(uint8_t *out, size_t n, uint16_t tag, uint16_t perm, uint32_t id)
{
    hf_put_le16(out + n, tag);
    hf_put_le16(out + n + 2, perm);
    hf_put_le32(out + n + 4, id);
    return n + 8;
}

static size_t random_acl(struct peer *p, uint8_t *out)
{
    size_t n = 4;
    bool named = false;

    hf_put_le32(out, 2);
    n = put(out, n, 1, (uint16_t)pick(p, 8), UINT32_MAX);
    for (uint32_t id = 0; id < 4; id++)
        if (pick(p, 3) == 0 && (named = true))
            n = put(out, n, 2, (uint16_t)pick(p, 8), id);
    n = put(out, n, 4, (uint16_t)pick(p, 8), UINT32_MAX);
    for (uint32_t id = 0; id < 4; id++)
        if (pick(p, 3) == 0 && (named = true))
            n = put(out, n, 8, (uint16_t)pick(p, 8), id);
    if (named || pick(p, 2))
        n = put(out, n, 16, (uint16_t)pick(p, 8), UINT32_MAX);
    return put(out, n, 32, (uint16_t)pick(p, 8), UINT32_MAX);
}

static void random_cred(struct peer *p, Hf__Cred *c, uint32_t groups[4])
{
    hf__cred__init(c);
    c->uid = pick(p, 4);
    c->gid = pick(p, 4);
    c->n_groups = pick(p, 4);
    c->groups = groups;
    for (size_t k = 0; k < c->n_groups; k++)
        groups[k] = pick(p, 4);
}

/* ---- on the local file system, as somebody else ---- */

struct seen {
    int access, get_user, set_user, set_acl, trusted, security;
};

static int err_of(long r)
{
    return r < 0 ? errno : 0;
}

static void become(const Hf__Cred *c)
{
    gid_t groups[4];

    for (size_t k = 0; k < c->n_groups; k++)
        groups[k] = c->groups[k];
    if (setgroups(c->n_groups, groups) || setresgid(c->gid, c->gid, c->gid) ||
        setresuid(c->uid, c->uid, c->uid))
        _exit(1);
}

static struct seen look(const char *name, const Hf__Cred *c, const uint8_t *acl, size_t len,
                        bool dir)
{
    struct seen s = {0};
    int pipes[2], status;
    char buf[8];
    pid_t pid;

    cr_assert_eq(pipe(pipes), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        become(c);
        for (int bit = 1; bit < 8; bit <<= 1) {
            int ask = dir && bit == W_OK ? W_OK | X_OK : bit; /* as what changes a directory does */

            if (faccessat(AT_FDCWD, name, ask, AT_EACCESS) == 0)
                s.access |= bit;
        }
        s.get_user = err_of(getxattr(name, "user.none", buf, sizeof(buf)));
        s.set_user = err_of(setxattr(name, "user.a", "x", 1, 0));
        s.trusted = err_of(setxattr(name, "trusted.a", "x", 1, 0));
        s.security = err_of(setxattr(name, "security.hf", "x", 1, 0));
        s.set_acl = err_of(setxattr(name, T_ACL_ACCESS, acl, len, 0));
        _exit(write(pipes[1], &s, sizeof(s)) != sizeof(s));
    }
    cr_assert_eq(read(pipes[0], &s, sizeof(s)), sizeof(s));
    cr_assert(waitpid(pid, &status, 0) == pid && status == 0);
    close(pipes[0]);
    close(pipes[1]);
    return s;
}

static struct seen look_shard(struct peer *p, struct fh o, Hf__Cred *c, const uint8_t *acl,
                              size_t len, bool dir)
{
    uint32_t a = t_access(&p->s, c, o);
    struct seen s = {.access = a & 1 ? R_OK : 0};

    if (dir)
        s.access |= (a & 2 ? X_OK : 0) | (a & 4 ? W_OK : 0);
    else
        s.access |= (a & 4 ? W_OK : 0) | (a & 32 ? X_OK : 0);
    s.get_user = hf_err_to_errno(t_getx(&p->s, c, o, "user.none"));
    s.set_user = hf_err_to_errno(t_setx(&p->s, c, o, "user.a", hf_slice("x", 1), 0));
    s.trusted = hf_err_to_errno(t_setx(&p->s, c, o, "trusted.a", hf_slice("x", 1), 0));
    s.security = hf_err_to_errno(t_setx(&p->s, c, o, "security.hf", hf_slice("x", 1), 0));
    s.set_acl = hf_err_to_errno(t_setx(&p->s, c, o, T_ACL_ACCESS, hf_slice(acl, len), 0));
    return s;
}

/* Mode and both ACLs of the two. */
static void compare(struct peer *p, const char *name, struct fh o)
{
    static const char *const which[] = {T_ACL_ACCESS, T_ACL_DEFAULT};
    uint8_t buf[T_ACL_BYTES];
    struct stat st;

    cr_assert_eq(stat(name, &st), 0);
    cr_assert_eq(t_attr(&p->s, o).mode, st.st_mode & 07777, "%o, the kernel has %o",
                 t_attr(&p->s, o).mode, st.st_mode & 07777);
    for (size_t k = 0; k < 2; k++) {
        ssize_t n = getxattr(name, which[k], buf, sizeof(buf));
        int r = t_getx(&p->s, &t_root, o, which[k]);

        cr_assert_eq(n < 0 ? errno : 0, hf_err_to_errno(r));
        if (n >= 0)
            cr_assert(hf_slice_eq(p->s.op.reply_bulk, hf_slice(buf, (size_t)n)), "%s", which[k]);
    }
}

static void own(struct peer *p, const char *name, struct fh o, uint32_t mode)
{
    uint32_t uid = pick(p, 4), gid = pick(p, 4);

    cr_assert(chown(name, uid, gid) == 0 && chmod(name, mode) == 0);
    cr_ok(t_chown(&p->s, &t_root, o, uid, gid));
    cr_ok(t_chmod(&p->s, &t_root, o, mode));
}

/* A mask of 000: the kernel does not look at the ACL then, and gives a named user what others have.
 * POSIX.1e gives him nothing, and so do we. */
static bool kernel_skips_acl(struct peer *p, struct fh o)
{
    return (t_attr(&p->s, o).mode & 070) == 0;
}

static void one_access(struct peer *p, const char *name, struct fh o, bool dir)
{
    uint8_t acl[T_ACL_BYTES], other[T_ACL_BYTES];
    size_t n = random_acl(p, acl), m = random_acl(p, other);
    uint32_t groups[4];
    struct seen a, b;
    Hf__Cred c;

    own(p, name, o, pick(p, 02000) | (pick(p, 4) == 0 ? 02000u : 0));
    cr_assert_eq(setxattr(name, T_ACL_ACCESS, acl, n, 0), 0);
    cr_ok(t_setx(&p->s, &t_root, o, T_ACL_ACCESS, hf_slice(acl, n), 0));
    compare(p, name, o);
    if (pick(p, 2)) {
        uint32_t mode = pick(p, 010000);

        cr_assert_eq(chmod(name, mode), 0);
        cr_ok(t_chmod(&p->s, &t_root, o, mode));
        compare(p, name, o);
    }
    if (kernel_skips_acl(p, o))
        return;
    random_cred(p, &c, groups);
    a = look(name, &c, other, m, dir);
    b = look_shard(p, o, &c, other, m, dir);
    cr_assert_eq(a.access, b.access, "access %d, the kernel has %d", b.access, a.access);
    cr_assert_eq(a.get_user, b.get_user, "%d, the kernel has %d", b.get_user, a.get_user);
    cr_assert_eq(a.set_user, b.set_user, "%d, the kernel has %d", b.set_user, a.set_user);
    cr_assert_eq(a.set_acl, b.set_acl, "%d, the kernel has %d", b.set_acl, a.set_acl);
    cr_assert_eq(a.trusted, b.trusted, "%d, the kernel has %d", b.trusted, a.trusted);
    cr_assert_eq(a.security, b.security, "%d, the kernel has %d", b.security, a.security);
    compare(p, name, o);
}

Test(acl_peer, access, .timeout = 100)
{
    struct peer p;
    struct fh f, d;

    if (!peer_open(&p))
        cr_skip("no root or no ACLs");
    cr_assert_eq(close(open(path(&p, "f"), O_CREAT | O_WRONLY, 0600)), 0);
    cr_assert_eq(mkdir(path(&p, "d"), 0700), 0);
    cr_ok(t_create(&p.s, &t_root, p.d, "f", 0600, &f));
    cr_ok(t_make(&p.s, &t_root, p.d, "d", DIR_, 0700, &d));
    for (unsigned k = 0; k < 1000; k++)
        one_access(&p, path(&p, k % 2 ? "d" : "f"), k % 2 ? d : f, k % 2);
    cr_assert(unlink(path(&p, "f")) == 0 && rmdir(path(&p, "d")) == 0);
    peer_close(&p);
}

/* Bytes that are nearly an ACL. */
Test(acl_peer, bytes)
{
    unsigned good = 0, bad = 0;
    struct peer p;

    if (!peer_open(&p))
        cr_skip("no root or no ACLs");
    for (unsigned k = 0; k < 20000; k++) {
        const char *which = k % 2 ? T_ACL_ACCESS : T_ACL_DEFAULT;
        uint8_t acl[T_ACL_BYTES];
        size_t n = random_acl(&p, acl);
        int r, want;

        for (uint32_t flips = pick(&p, 3); flips; flips--)
            acl[pick(&p, (uint32_t)n)] = (uint8_t)(pick(&p, 2) ? 1u << pick(&p, 6) : pick(&p, 9));
        if (pick(&p, 10) == 0)
            n -= pick(&p, 12);
        want = err_of(setxattr(p.dir, which, acl, n, 0));
        r = hf_err_to_errno(t_setx(&p.s, &t_root, p.d, which, hf_slice(acl, n), 0));
        if (r == EINVAL && want == EOPNOTSUPP && n >= 4 && hf_get_le32(acl) != 2)
            want = EINVAL; /* another version */
        /* The kernel takes ids twice; the second entry never counts. */
        if (r == EINVAL && want == 0) {
            bool twice = false;

            for (size_t i = 4; i < n; i += 8)
                for (size_t j = i + 8; j < n; j += 8)
                    twice |= memcmp(acl + i, acl + j, 2) == 0 &&
                             memcmp(acl + i + 4, acl + j + 4, 4) == 0;
            cr_assert(twice, "refused what the kernel takes");
            cr_ok(t_delx(&p.s, &t_root, p.d, which));
            cr_assert_eq(removexattr(p.dir, which), 0);
            cr_assert(chmod(p.dir, 0777) == 0);
            cr_ok(t_chmod(&p.s, &t_root, p.d, 0777));
            continue;
        }
        cr_assert_eq(r, want, "%d, the kernel says %d", r, want);
        good += r == 0;
        bad += r != 0;
        if (k % 8 == 0)
            compare(&p, p.dir, p.d);
    }
    cr_assert(good > 2000 && bad > 2000);
    peer_close(&p);
}

static int make_both(struct peer *p, unsigned type, mode_t mode, mode_t mask, struct fh *ret)
{
    static const uint32_t types[] = {REG, DIR_, FIFO, SOCK};
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__CreateReq c = HF__CREATE_REQ__INIT;
    Hf__MakeReq q = HF__MAKE_REQ__INIT;
    const Hf__CreateRep *cp;
    const Hf__MakeRep *mp;
    const char *name = path(p, "new");
    int fd, r;

    umask(mask);
    if (type == 0) {
        fd = open(name, O_CREAT | O_EXCL | O_WRONLY, mode);
        cr_assert(fd >= 0 && close(fd) == 0);
    } else {
        r = type == 1 ? mkdir(name, mode) : mknod(name, mode | (type == 2 ? S_IFIFO : S_IFSOCK), 0);
        cr_assert_eq(r, 0);
    }
    umask(0);
    set.set_mode = true;
    set.mode = mode;
    c.cred = q.cred = &t_root;
    c.dir = q.dir = p->d.ino;
    c.gen = q.gen = p->d.gen;
    c.name = q.name = t_bytes("new");
    c.set = q.set = &set;
    c.umask = q.umask = mask;
    c.how = HF__CREATE_HOW__CREATE_GUARDED;
    q.type = types[type];
    r = type == 0 ? do_create(&p->s, &c, &cp) : do_make(&p->s, &q, &mp);
    if (r == 0)
        *ret = t_fh(type == 0 ? cp->obj : mp->obj);
    return r;
}

Test(acl_peer, inherit)
{
    struct peer p;

    if (!peer_open(&p))
        cr_skip("no root or no ACLs");
    for (unsigned k = 0; k < 3000; k++) {
        uint8_t acl[T_ACL_BYTES];
        size_t n = random_acl(&p, acl);
        unsigned type = pick(&p, 4);
        struct fh o;

        if (k % 8 == 0) {
            (void)removexattr(p.dir, T_ACL_DEFAULT);
            cr_ok(t_delx(&p.s, &t_root, p.d, T_ACL_DEFAULT));
        } else {
            cr_assert_eq(setxattr(p.dir, T_ACL_DEFAULT, acl, n, 0), 0);
            cr_ok(t_setx(&p.s, &t_root, p.d, T_ACL_DEFAULT, hf_slice(acl, n), 0));
        }
        cr_ok(make_both(&p, type, pick(&p, 01000), pick(&p, 01000), &o));
        compare(&p, path(&p, "new"), o);
        cr_assert_eq(type == 1 ? rmdir(path(&p, "new")) : unlink(path(&p, "new")), 0);
        cr_ok(t_remove(&p.s, &t_root, p.d, "new", type == 1));
    }
    peer_close(&p);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own file system as a second opinion on owners and modes: random owners, modes,
 * callers and changes in a local folder and in a shard; errors and what became of mode, owner and
 * group compared (E3, E4). Skipped where the tests may not become other users.
 */
#include "support_meta.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/map.h"

enum what { CREATE, MKDIR, UNLINK, RENAME, CHMOD_F, CHMOD_D, CHOWN_F, CHOWN_D, WRITE, WHATS };

struct step {
    enum what what;
    uint32_t mode;
    int64_t uid, gid; /* -1: as it is */
    Hf__Cred cred;
    uint32_t groups[4];
};

struct peer {
    struct shard s;
    struct fh d, f;
    char dir[64], d_path[80], f_path[96], new_path[96], moved_path[96];
    uint64_t rnd;
};

static uint32_t pick(struct peer *p, uint32_t n)
{
    p->rnd = hf_hash_u64(p->rnd + 0x9e3779b97f4a7c15);
    return (uint32_t)(p->rnd % n);
}

static uint32_t pick_mode(struct peer *p)
{
    return pick(p, 2) ? pick(p, 010000) : (pick(p, 8) << 9 | 0777);
}

/* ---- on the local file system, as somebody else ---- */

static int err_of(long r)
{
    return r < 0 ? errno : 0;
}

static int write_one(const char *path)
{
    int fd = open(path, O_WRONLY), e = err_of(fd);

    if (fd >= 0) {
        e = write(fd, "x", 1) == 1 ? 0 : errno;
        close(fd);
    }
    return e;
}

static int act(const struct peer *p, const struct step *t)
{
    uid_t uid = (uid_t)t->uid;
    gid_t gid = (gid_t)t->gid;

    switch (t->what) {
    case CREATE:
        return err_of(open(p->new_path, O_CREAT | O_EXCL | O_WRONLY, t->mode));
    case MKDIR:
        return err_of(mkdir(p->new_path, t->mode));
    case UNLINK:
        return err_of(unlink(p->f_path));
    case RENAME:
        return err_of(rename(p->f_path, p->moved_path));
    case CHMOD_F:
        return err_of(chmod(p->f_path, t->mode));
    case CHMOD_D:
        return err_of(chmod(p->d_path, t->mode));
    case CHOWN_F:
        return err_of(chown(p->f_path, uid, gid));
    case CHOWN_D:
        return err_of(chown(p->d_path, uid, gid));
    default:
        return write_one(p->f_path);
    }
}

static int act_as(const struct peer *p, const struct step *t)
{
    gid_t groups[4];
    int status;
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        for (size_t k = 0; k < t->cred.n_groups; k++)
            groups[k] = t->groups[k];
        umask(0);
        if (setgroups(t->cred.n_groups, groups) ||
            setresgid(t->cred.gid, t->cred.gid, t->cred.gid) ||
            setresuid(t->cred.uid, t->cred.uid, t->cred.uid))
            _exit(255);
        _exit(act(p, t));
    }
    cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int act_shard(struct peer *p, struct step *t, struct fh *made)
{
    struct shard *s = &p->s;
    Hf__Cred *c = &t->cred;

    switch (t->what) {
    case CREATE:
        return t_create(s, c, p->d, "new", t->mode, made);
    case MKDIR: /* mkdir(2) passes the nine bits and the sticky one */
        return t_make(s, c, p->d, "new", DIR_, t->mode & 01777, made);
    case UNLINK:
        return t_remove(s, c, p->d, "f", false);
    case RENAME:
        return t_rename(s, c, p->d, "f", p->d, "moved");
    case CHMOD_F:
        return t_chmod(s, c, p->f, t->mode);
    case CHMOD_D:
        return t_chmod(s, c, p->d, t->mode);
    case CHOWN_F:
        return t_chown(s, c, p->f, t->uid, t->gid);
    case CHOWN_D:
        return t_chown(s, c, p->d, t->uid, t->gid);
    default: { /* open(2) looks for the name first */
        int r = t_lookup(s, c, p->d, "f", NULL);

        return r ? r : t_write(s, c, p->f, 0, "x", 1);
    }
    }
}

/* ---- the two compared ---- */

static void compare(struct peer *p, const struct step *t, const char *path, struct fh o)
{
    Hf__Attr a = t_attr(&p->s, o);
    struct stat st;

    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(a.mode, st.st_mode & 07777, "change %d (%o) by %u: mode %o, the kernel has %o",
                 t->what, t->mode, t->cred.uid, a.mode, st.st_mode & 07777);
    cr_assert(a.uid == st.st_uid && a.gid == st.st_gid,
              "change %d: owner %u:%u, the kernel has %u:%u", t->what, a.uid, a.gid, st.st_uid,
              st.st_gid);
}

static void prepare(struct peer *p)
{
    uint32_t du = pick(p, 4), dg = pick(p, 4), dm = pick_mode(p), fu = pick(p, 4), fg = pick(p, 4),
             fm = pick_mode(p);
    struct shard *s = &p->s;

    cr_assert_eq(mkdir(p->d_path, 0700), 0);
    cr_assert_eq(close(open(p->f_path, O_CREAT | O_WRONLY, 0600)), 0);
    cr_assert(chown(p->f_path, fu, fg) == 0 && chmod(p->f_path, fm) == 0);
    cr_assert(chown(p->d_path, du, dg) == 0 && chmod(p->d_path, dm) == 0);
    cr_ok(t_make(s, &t_root, t_root_dir, "d", DIR_, 0700, &p->d));
    cr_ok(t_create(s, &t_root, p->d, "f", 0600, &p->f));
    cr_ok(t_chown(s, &t_root, p->f, fu, fg));
    cr_ok(t_chmod(s, &t_root, p->f, fm));
    cr_ok(t_chown(s, &t_root, p->d, du, dg));
    cr_ok(t_chmod(s, &t_root, p->d, dm));
}

static void tidy(struct peer *p)
{
    static const char *const names[] = {"f", "new", "moved"};

    (void)unlink(p->f_path);
    (void)unlink(p->moved_path);
    if (unlink(p->new_path))
        (void)rmdir(p->new_path);
    cr_assert_eq(rmdir(p->d_path), 0);
    for (size_t k = 0; k < 3; k++)
        if (t_remove(&p->s, &t_root, p->d, names[k], false) == HF_E_ISDIR)
            cr_ok(t_remove(&p->s, &t_root, p->d, names[k], true));
    cr_ok(t_remove(&p->s, &t_root, t_root_dir, "d", true));
}

static void random_step(struct peer *p, struct step *t)
{
    t->what = pick(p, WHATS);
    t->mode = pick_mode(p);
    if (t->what == CREATE && (t->mode & 02000))
        t->mode |= 0010; /* see undecided() */
    t->uid = (int64_t)pick(p, 5) - 1;
    t->gid = (int64_t)pick(p, 5) - 1;
    if (t->uid < 0 && t->gid < 0)
        t->uid = 0; /* a chown that changes nothing is no call of ours */
    hf__cred__init(&t->cred);
    t->cred.uid = pick(p, 4);
    t->cred.gid = pick(p, 4);
    t->cred.n_groups = pick(p, 4);
    t->cred.groups = t->groups;
    for (size_t k = 0; k < t->cred.n_groups; k++)
        t->groups[k] = pick(p, 4);
}

static bool in_group(const Hf__Cred *c, uint32_t gid)
{
    bool in = c->gid == gid;

    for (size_t k = 0; k < c->n_groups; k++)
        in |= c->groups[k] == gid;
    return in;
}

/* Where setgid without group execute stands for locking, or nothing, kernels differ among each
 * other about what a stranger's change does to it. */
static bool undecided(const struct step *t, const struct stat *f)
{
    return (t->what == WRITE || t->what == CHOWN_F) && (f->st_mode & 02010) == 02000 &&
           !in_group(&t->cred, f->st_gid);
}

Test(attr_peer, changes, .timeout = 110)
{
    unsigned done[WHATS] = {0}, refused = 0;
    static struct peer p = {.rnd = 11};
    struct peer *pp = &p;

    snprintf(p.dir, sizeof(p.dir), "/tmp/hf-attr-XXXXXX");
    if (geteuid() != 0)
        cr_skip("not root");
    cr_assert(mkdtemp(p.dir) && chmod(p.dir, 0755) == 0);
    snprintf(p.d_path, sizeof(p.d_path), "%s/d", p.dir);
    snprintf(p.f_path, sizeof(p.f_path), "%s/f", p.d_path);
    snprintf(p.new_path, sizeof(p.new_path), "%s/new", p.d_path);
    snprintf(p.moved_path, sizeof(p.moved_path), "%s/moved", p.d_path);
    shard_open(&p.s, HF_STORE_MEM);
    for (unsigned k = 0; k < 3000; k++) {
        struct fh made = {0};
        struct stat before;
        struct step t;
        int want, got;

        prepare(pp);
        random_step(pp, &t);
        cr_assert_eq(stat(p.f_path, &before), 0);
        if (!undecided(&t, &before)) {
            /* A path needs search permission; an operation on an open object does not. */
            bool path = t.what == CHMOD_F || t.what == CHOWN_F;

            got = path ? t_lookup(&p.s, &t.cred, p.d, "f", NULL) : 0;
            got = hf_err_to_errno(got ? got : act_shard(pp, &t, &made));
            want = act_as(pp, &t);
            cr_assert_eq(got, want,
                         "change %d by %u to %d:%d, mode %o of %u:%u: %s, the kernel says %s",
                         t.what, t.cred.uid, (int)t.uid, (int)t.gid, before.st_mode, before.st_uid,
                         before.st_gid, strerror(got), strerror(want));
            if (t.what != UNLINK || want)
                compare(pp, &t, t.what == RENAME && want == 0 ? p.moved_path : p.f_path, p.f);
            compare(pp, &t, p.d_path, p.d);
            if (made.ino)
                compare(pp, &t, p.new_path, made);
            done[t.what] += want == 0;
            refused += want != 0;
        }
        tidy(pp);
    }
    for (unsigned k = 0; k < WHATS; k++)
        cr_assert_gt(done[k], 20, "%u", k);
    cr_assert_gt(refused, 500);
    cr_assert_eq(shard_check(&p.s, NULL), 0);
    shard_close(&p.s);
    cr_assert_eq(rmdir(p.dir), 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Permissions: what ACCESS says is what operations do; owner override; sticky directories; setuid
 * and setgid bits; groups; who may change which attribute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/nt.h"

#define OWNER  1000u
#define GROUP  2000u
#define OTHER  1001u
#define MEMBER 1002u

/* Three identities: owner, member of the group, stranger. */
struct people {
    struct nt *owner, *member, *other;
};

static void people_open(struct nt_env *e, struct people *p)
{
    const uint32_t groups[1] = {GROUP};

    p->owner = nt_open(&e->node, OWNER, 1, 0, NULL);
    p->member = nt_open(&e->node, MEMBER, 2, 1, groups);
    p->other = nt_open(&e->node, OTHER, 3, 0, NULL);
}

static void people_close(struct people *p)
{
    nt_close(p->owner);
    nt_close(p->member);
    nt_close(p->other);
}

static void set_owner(struct nt_env *e, const struct nt_fh *fh, uint32_t mode)
{
    struct nt_set s = NT_SET_NONE;

    s.uid = OWNER;
    s.gid = GROUP;
    NT_OK(nt_setattr(e->root, fh, &s, NULL));
    NT_OK(nt_setattr(e->root, fh, &NT_SET_MODE(mode), NULL)); /* a change of owner clears setuid */
}

static bool did(uint32_t status)
{
    if (status != NFS3_OK && status != NFS3ERR_ACCES && status != NFS3ERR_PERM) {
        nt_fail(__FILE__, __LINE__, "answers %s, expected OK or ACCES", nt_status_name(status));
    }
    return status == NFS3_OK;
}

static void file_agrees(struct nt *c, const struct nt_fh *fh, uint32_t mode, bool owner)
{
    bool may_read, may_write, may_exec, read_ok, write_ok;

    NT_OK(nt_access(c, fh, 0x3f));
    may_read = (c->r.access & ACCESS3_READ) != 0;
    may_write =
        (c->r.access & (ACCESS3_MODIFY | ACCESS3_EXTEND)) == (ACCESS3_MODIFY | ACCESS3_EXTEND);
    may_exec = (c->r.access & ACCESS3_EXECUTE) != 0;
    NT_EQ(may_read, (mode & 4) != 0);
    NT_EQ(may_write, (mode & 2) != 0);
    NT_EQ(may_exec, (mode & 1) != 0);
    read_ok = did(nt_read(c, fh, 0, 10));
    write_ok = did(nt_write(c, fh, 0, "0123456789", 10, UNSTABLE));
    if (owner) { /* RFC 1813 section 4.4: a file just created with mode 0444 can be written */
        NT_CHECK(read_ok && write_ok);
        return;
    }
    NT_CHECK(read_ok == may_read || (read_ok && may_exec)); /* to run a program is to read it */
    NT_EQ(write_ok, may_write);
}

static void t_access_files(struct nt_env *e)
{
    struct people p;
    struct nt_fh fh;

    people_open(e, &p);
    nt_mk_file(e->root, &e->dir, "f", 0, &fh);
    for (uint32_t bits = 0; bits < 8; bits++) {
        set_owner(e, &fh, bits << 6);
        file_agrees(p.owner, &fh, bits, true);
        file_agrees(p.member, &fh, 0, false);
        file_agrees(p.other, &fh, 0, false);
        set_owner(e, &fh, bits << 3);
        file_agrees(p.owner, &fh, 0, true);
        file_agrees(p.member, &fh, bits, false);
        file_agrees(p.other, &fh, 0, false);
        set_owner(e, &fh, bits);
        file_agrees(p.owner, &fh, 0, true);
        file_agrees(p.member, &fh, 0, false);
        file_agrees(p.other, &fh, bits, false);
        NT_OK(nt_access(e->root, &fh, ACCESS3_READ | ACCESS3_MODIFY));
        NT_EQ(e->root->r.access, ACCESS3_READ | ACCESS3_MODIFY);
    }
    people_close(&p);
}

static void dir_agrees(struct nt *c, const struct nt_fh *dir, uint32_t mode)
{
    bool may_list, may_look, may_change;

    NT_OK(nt_access(c, dir, 0x3f));
    may_list = (c->r.access & ACCESS3_READ) != 0;
    may_look = (c->r.access & ACCESS3_LOOKUP) != 0;
    may_change = (c->r.access & ACCESS3_MODIFY) != 0;
    NT_EQ(may_list, (mode & 4) != 0);
    NT_EQ(may_look, (mode & 1) != 0);
    NT_EQ(did(nt_readdir(c, dir, 0, NULL, 4096)), may_list);
    NT_EQ(did(nt_readdirplus(c, dir, 0, NULL, 4096, 4096)), may_list);
    NT_EQ(did(nt_lookup(c, dir, "there")), may_look);
    NT_EQ(did(nt_create(c, dir, "new", UNCHECKED, &NT_SET_MODE(0666), NULL)), (mode & 3) == 3);
    NT_EQ(did(nt_mkdir(c, dir, "newdir", &NT_SET_MODE(0777))), (mode & 3) == 3);
    NT_EQ(did(nt_symlink(c, dir, "newlink", "x", NULL)), (mode & 3) == 3);
    NT_EQ(did(nt_rename(c, dir, "there", dir, "elsewhere")), (mode & 3) == 3);
    if ((mode & 3) == 3) {
        NT_CHECK(may_change);
        NT_OK(nt_rename(c, dir, "elsewhere", dir, "there"));
        NT_OK(nt_remove(c, dir, "new"));
        NT_OK(nt_remove(c, dir, "newlink"));
        NT_OK(nt_rmdir(c, dir, "newdir"));
    } else {
        NT_CHECK(!did(nt_remove(c, dir, "there")));
    }
}

static void t_access_dirs(struct nt_env *e)
{
    struct people p;
    struct nt_fh dir, f;

    people_open(e, &p);
    nt_mk_dir(e->root, &e->dir, "d", 0755, &dir);
    nt_mk_file(e->root, &dir, "there", 0666, &f);
    for (uint32_t bits = 0; bits < 8; bits++) {
        set_owner(e, &dir, bits << 6);
        dir_agrees(p.owner, &dir, bits);
        dir_agrees(p.member, &dir, 0);
        set_owner(e, &dir, bits << 3);
        dir_agrees(p.owner, &dir, 0);
        dir_agrees(p.member, &dir, bits);
        dir_agrees(p.other, &dir, 0);
        set_owner(e, &dir, bits);
        dir_agrees(p.member, &dir, 0);
        dir_agrees(p.other, &dir, bits);
    }
    people_close(&p);
}

/* B14: made with mode 0444, then written by its maker. */
static void t_create_0444(struct nt_env *e)
{
    struct people p;
    struct nt_fh fh;

    people_open(e, &p);
    nt_mk_file(p.owner, &e->dir, "ro", 0444, &fh);
    NT_OK(nt_write(p.owner, &fh, 0, "data", 4, FILE_SYNC));
    NT_OK(nt_commit(p.owner, &fh, 0, 0));
    NT_OK(nt_access(p.owner, &fh, 0x3f));
    NT_EQ(p.owner->r.access & (ACCESS3_MODIFY | ACCESS3_EXTEND), 0); /* so open(O_WRONLY) fails */
    NT_STATUS(nt_write(p.other, &fh, 0, "x", 1, FILE_SYNC), NFS3ERR_ACCES);
    NT_CHECK(p.other->r.wcc.have_after);
    NT_OK(nt_read(p.other, &fh, 0, 10));
    NT_EQ(p.other->r.count, 4);
    people_close(&p);
}

static void t_sticky(struct nt_env *e)
{
    struct people p;
    struct nt_fh dir, f, g;

    people_open(e, &p);
    nt_mk_dir(e->root, &e->dir, "tmp", 01777, &dir);
    nt_mk_file(p.owner, &dir, "mine", 0666, &f);
    nt_mk_file(p.other, &dir, "theirs", 0666, &g);
    NT_ONE_OF(nt_remove(p.other, &dir, "mine"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(p.other, &dir, "mine", &dir, "x"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_ONE_OF(nt_rename(p.other, &dir, "theirs", &dir, "mine"), NFS3ERR_ACCES, NFS3ERR_PERM);
    NT_OK(nt_rename(p.owner, &dir, "mine", &dir, "still_mine"));
    NT_OK(nt_remove(p.owner, &dir, "still_mine"));
    NT_OK(nt_remove(e->root, &dir, "theirs"));
    set_owner(e, &dir, 01777); /* the directory's owner may, too */
    nt_mk_file(p.other, &dir, "theirs", 0666, &g);
    NT_OK(nt_remove(p.owner, &dir, "theirs"));
    people_close(&p);
}

static uint32_t mode_of(struct nt_env *e, const struct nt_fh *fh)
{
    NT_OK(nt_getattr(e->root, fh));
    return e->root->r.attr.mode & 07777;
}

static void t_setuid(struct nt_env *e)
{
    struct nt_set s = NT_SET_NONE;
    struct people p;
    struct nt_fh fh;

    people_open(e, &p);
    nt_mk_file(e->root, &e->dir, "prog", 0777, &fh);
    set_owner(e, &fh, 06777);
    NT_EQ(mode_of(e, &fh), 06777);
    NT_OK(nt_write(p.other, &fh, 0, "x", 1, FILE_SYNC)); /* a write takes the bits away */
    NT_EQ(mode_of(e, &fh), 0777);
    set_owner(e, &fh, 06777);
    s.set_size = true;
    s.size = 0;
    NT_OK(nt_setattr(p.other, &fh, &s, NULL)); /* so does a truncation */
    NT_EQ(mode_of(e, &fh), 0777);
    set_owner(e, &fh, 06777);
    s = NT_SET_NONE;
    s.gid = 1;                                 /* the owner's own group */
    NT_OK(nt_setattr(p.owner, &fh, &s, NULL)); /* and a change of group */
    NT_EQ(mode_of(e, &fh), 0777);
    s = NT_SET_NONE;
    s.gid = GROUP;
    NT_OK(nt_setattr(e->root, &fh, &s, NULL));
    s = NT_SET_MODE(02755); /* setgid for a group that the owner is not in */
    NT_OK(nt_setattr(p.owner, &fh, &s, NULL));
    NT_EQ(mode_of(e, &fh), 0755);
    people_close(&p);
}

static void t_setgid_dir(struct nt_env *e)
{
    struct people p;
    struct nt_fh dir;

    people_open(e, &p);
    nt_mk_dir(e->root, &e->dir, "sg", 0777, &dir);
    set_owner(e, &dir, 02777);
    NT_OK(nt_create(p.other, &dir, "f", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(p.other->r.attr.gid, GROUP);
    NT_OK(nt_mkdir(p.other, &dir, "d", &NT_SET_MODE(0755)));
    NT_EQ(p.other->r.attr.gid, GROUP);
    NT_EQ(p.other->r.attr.mode & 07777, 02755);
    NT_OK(nt_create(p.other, &e->dir, "plain", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(p.other->r.attr.gid, 3); /* else the creator's */
    NT_EQ(p.other->r.attr.uid, OTHER);
    people_close(&p);
}

static void t_who_may_set(struct nt_env *e)
{
    struct nt_set s = NT_SET_NONE;
    struct people p;
    struct nt_fh fh;

    people_open(e, &p);
    nt_mk_file(e->root, &e->dir, "f", 0, &fh);
    set_owner(e, &fh, 0662);
    s.uid = OTHER;
    NT_ONE_OF(nt_setattr(p.owner, &fh, &s, NULL), NFS3ERR_PERM, NFS3ERR_ACCES);
    s = NT_SET_NONE;
    s.gid = 4711;
    NT_ONE_OF(nt_setattr(p.owner, &fh, &s, NULL), NFS3ERR_PERM, NFS3ERR_ACCES);
    NT_ONE_OF(nt_setattr(p.member, &fh, &NT_SET_MODE(0777), NULL), NFS3ERR_PERM, NFS3ERR_ACCES);
    NT_CHECK(p.member->r.wcc.have_after);
    NT_EQ(p.member->r.wcc.after.mode & 07777, 0662);
    NT_OK(nt_setattr(p.owner, &fh, &NT_SET_MODE(0666), NULL));
    s = NT_SET_NONE;
    s.mtime_how = SET_TO_CLIENT_TIME;
    s.mtime.seconds = 1;
    NT_ONE_OF(nt_setattr(p.other, &fh, &s, NULL), NFS3ERR_PERM, NFS3ERR_ACCES);
    NT_OK(nt_setattr(p.owner, &fh, &s, NULL));
    s.mtime_how = SET_TO_SERVER_TIME;
    NT_OK(nt_setattr(p.other, &fh, &s, NULL)); /* who can write may touch */
    set_owner(e, &fh, 0644);
    NT_ONE_OF(nt_setattr(p.other, &fh, &s, NULL), NFS3ERR_PERM, NFS3ERR_ACCES);
    s = NT_SET_NONE;
    s.set_size = true;
    NT_STATUS(nt_setattr(p.other, &fh, &s, NULL), NFS3ERR_ACCES);
    people_close(&p);
}

static void t_sixteen_groups(struct nt_env *e)
{
    uint32_t groups[16];
    struct nt *c;
    struct nt_fh fh;

    for (unsigned i = 0; i < 16; i++) {
        groups[i] = 5000 + i;
    }
    c = nt_open(&e->node, 77, 77, 16, groups);
    for (unsigned i = 0; i < 16; i++) {
        char name[16];
        struct nt_set s = NT_SET_NONE;

        snprintf(name, sizeof(name), "g%u", i);
        nt_mk_file(e->root, &e->dir, name, 0640, &fh);
        s.gid = groups[i];
        NT_OK(nt_setattr(e->root, &fh, &s, NULL));
        NT_OK(nt_read(c, &fh, 0, 1));
        NT_STATUS(nt_write(c, &fh, 0, "x", 1, FILE_SYNC), NFS3ERR_ACCES);
    }
    nt_mk_file(e->root, &e->dir, "none", 0640, &fh);
    NT_STATUS(nt_read(c, &fh, 0, 1), NFS3ERR_ACCES);
    nt_close(c);
}

/* Permissions on the way count at every step, also when the last step is a change. */
static void t_paths(struct nt_env *e)
{
    struct people p;
    struct nt_fh closed, f;

    people_open(e, &p);
    nt_mk_dir(e->root, &e->dir, "closed", 0700, &closed);
    nt_mk_file(e->root, &closed, "f", 0666, &f);
    NT_STATUS(nt_lookup(p.other, &closed, "f"), NFS3ERR_ACCES);
    NT_CHECK(p.other->r.have_dir);
    NT_STATUS(nt_lookup(p.other, &closed, "absent"), NFS3ERR_ACCES); /* tells nothing */
    NT_STATUS(nt_rename(p.other, &closed, "f", &e->dir, "f"), NFS3ERR_ACCES);
    NT_STATUS(nt_link(p.other, &f, &closed, "g"), NFS3ERR_ACCES);
    NT_STATUS(nt_rmdir(p.other, &closed, "f"), NFS3ERR_ACCES);
    NT_OK(nt_read(p.other, &f, 0, 1)); /* by handle: NFS has no path any more */
    people_close(&p);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"access_files", t_access_files, false},
        {"access_dirs", t_access_dirs, false},
        {"create_0444", t_create_0444, false},
        {"sticky", t_sticky, false},
        {"setuid", t_setuid, false},
        {"setgid_dir", t_setgid_dir, false},
        {"who_may_set", t_who_may_set, false},
        {"sixteen_groups", t_sixteen_groups, false},
        {"paths", t_paths, false},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

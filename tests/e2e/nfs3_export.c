/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports, made and removed with the CLI while the node runs: read-only, squashing, who may mount,
 * directories below the root, and what handles of one export mean in another.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/nt.h"

#define WAIT_SEC 10

static void cli(struct nt_env *e, int want, const char *a0, ...)
{
    const char *args[16] = {a0};
    char out[4096] = "";
    va_list ap;
    unsigned n = 1;
    int rc;

    va_start(ap, a0);
    while (n < 15 && (args[n] = va_arg(ap, const char *)) != NULL) {
        n++;
    }
    va_end(ap);
    rc = nt_cli(&e->node, out, sizeof(out), args);
    if (rc != want) {
        nt_fail(__FILE__, __LINE__, "holdfast %s %s: exit status %d, expected %d: %s", args[0],
                args[1] != NULL ? args[1] : "", rc, want, out);
    }
}

/* MOUNT's answer becomes `want` within a few seconds of a change. */
static void mount_becomes(struct nt_env *e, const char *path, uint32_t want, struct nt_fh *ret)
{
    uint64_t deadline = nt_now_ns() + WAIT_SEC * 1000000000ull;
    struct timespec nap = {.tv_nsec = 5000000};
    struct nt *m = nt_try_open(&e->node, e->node.mount_port);
    uint32_t st;

    NT_CHECK(m != NULL);
    while ((st = nt_mount(m, path)) != want && nt_now_ns() < deadline) {
        nanosleep(&nap, NULL);
    }
    if (st != want) {
        nt_fail(__FILE__, __LINE__, "MNT %s answers %u, expected %u", path, st, want);
    }
    if (ret != NULL && st == MNT3_OK) {
        *ret = m->r.fh;
    }
    nt_close(m);
}

static const char *full(struct nt_env *e, const char *name, char *buf, size_t cap)
{
    snprintf(buf, cap, "/%s%s%s", e->dir_name, name[0] != '\0' ? "/" : "", name);
    return buf;
}

/* A read-only export of the test's directory: every change is refused, everything else works. */
static void t_read_only(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh rw_file, rw_dir, ro, file, dir;
    struct nt_set s = NT_SET_MODE(0777);
    char path[300];

    nt_mk_file(c, &e->dir, "file", 0666, &rw_file);
    NT_OK(nt_write(c, &rw_file, 0, "hello", 5, FILE_SYNC));
    nt_mk_dir(c, &e->dir, "dir", 0777, &rw_dir);
    cli(e, 0, "export", "add", "/ro", "--dir", full(e, "", path, sizeof(path)), "--ro", "--squash",
        "none", NULL);
    mount_becomes(e, "/ro", MNT3_OK, &ro);
    NT_OK(nt_lookup(c, &ro, "file"));
    file = c->r.fh;
    NT_OK(nt_lookup(c, &ro, "dir"));
    dir = c->r.fh;
    NT_OK(nt_getattr(c, &file));
    NT_OK(nt_read(c, &file, 0, 10));
    NT_EQ(c->r.count, 5);
    NT_OK(nt_readdirplus(c, &ro, 0, NULL, 4096, 4096));
    NT_OK(nt_fsinfo(c, &ro));
    NT_OK(nt_fsstat(c, &ro));
    NT_OK(nt_pathconf(c, &ro));
    NT_OK(nt_access(c, &ro, 0x3f));
    NT_EQ(c->r.access & (ACCESS3_MODIFY | ACCESS3_EXTEND | ACCESS3_DELETE), 0);
    NT_EQ(c->r.access & (ACCESS3_READ | ACCESS3_LOOKUP), ACCESS3_READ | ACCESS3_LOOKUP);
    NT_STATUS(nt_setattr(c, &file, &s, NULL), NFS3ERR_ROFS);
    NT_STATUS(nt_write(c, &file, 0, "x", 1, FILE_SYNC), NFS3ERR_ROFS);
    NT_STATUS(nt_create(c, &ro, "new", UNCHECKED, &s, NULL), NFS3ERR_ROFS);
    NT_STATUS(nt_create(c, &ro, "new", EXCLUSIVE, NULL, "12345678"), NFS3ERR_ROFS);
    NT_STATUS(nt_mkdir(c, &ro, "new", &s), NFS3ERR_ROFS);
    NT_STATUS(nt_symlink(c, &ro, "new", "x", NULL), NFS3ERR_ROFS);
    NT_STATUS(nt_mknod(c, &ro, "new", NF3FIFO, &s, 0, 0), NFS3ERR_ROFS);
    NT_STATUS(nt_remove(c, &ro, "file"), NFS3ERR_ROFS);
    NT_STATUS(nt_rmdir(c, &ro, "dir"), NFS3ERR_ROFS);
    NT_STATUS(nt_rename(c, &ro, "file", &dir, "file"), NFS3ERR_ROFS);
    NT_STATUS(nt_link(c, &file, &dir, "hard"), NFS3ERR_ROFS);
    NT_OK(nt_read(c, &rw_file, 0, 10)); /* the other export is as it was */
    NT_EQ(c->r.count, 5);
    NT_OK(nt_write(c, &rw_file, 0, "j", 1, FILE_SYNC));
    cli(e, 0, "export", "remove", "/ro", NULL);
    mount_becomes(e, "/ro", MNT3ERR_NOENT, NULL);
    NT_STATUS(nt_getattr(c, &file), NFS3ERR_STALE);
    NT_OK(nt_getattr(c, &rw_file));
}

static void t_squash(struct nt_env *e)
{
    struct nt *user = nt_open(&e->node, 1000, 1000, 0, NULL);
    struct nt_fh root_sq, all_sq, secret, fh;
    char path[300];

    nt_mk_file(user, &e->dir, "secret", 0600, &secret);
    full(e, "", path, sizeof(path));
    cli(e, 0, "export", "add", "/rootsq", "--dir", path, "--anon-uid", "4000", "--anon-gid", "4001",
        NULL);
    cli(e, 0, "export", "add", "/allsq", "--dir", path, "--squash", "all", "--anon-uid", "5000",
        "--anon-gid", "5001", NULL);
    mount_becomes(e, "/rootsq", MNT3_OK, &root_sq);
    mount_becomes(e, "/allsq", MNT3_OK, &all_sq);
    NT_OK(nt_lookup(e->root, &root_sq, "secret"));
    fh = e->root->r.fh;
    NT_STATUS(nt_read(e->root, &fh, 0, 1), NFS3ERR_ACCES); /* root is nobody special */
    NT_OK(nt_read(user, &fh, 0, 1));
    NT_OK(nt_create(e->root, &root_sq, "by_root", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(e->root->r.attr.uid, 4000);
    NT_EQ(e->root->r.attr.gid, 4001);
    NT_OK(nt_create(user, &root_sq, "by_user", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(user->r.attr.uid, 1000);
    NT_OK(nt_create(user, &all_sq, "by_all", GUARDED, &NT_SET_MODE(0644), NULL));
    NT_EQ(user->r.attr.uid, 5000);
    NT_EQ(user->r.attr.gid, 5001);
    NT_OK(nt_lookup(user, &all_sq, "secret"));
    NT_STATUS(nt_read(user, &user->r.fh, 0, 1), NFS3ERR_ACCES);
    cli(e, 0, "export", "remove", "/rootsq", NULL);
    cli(e, 0, "export", "remove", "/allsq", NULL);
    nt_close(user);
}

static void t_clients(struct nt_env *e)
{
    struct nt_fh fh, in;

    cli(e, 0, "export", "add", "/far", "--clients", "192.0.2.7,2001:db8::/32", NULL);
    cli(e, 0, "export", "add", "/near", "--clients", "10.0.0.0/8,127.0.0.0/8", NULL);
    cli(e, 0, "export", "add", "/exact", "--clients", "127.0.0.1", NULL);
    cli(e, 0, "export", "add", "/star", "--clients", "*", NULL);
    mount_becomes(e, "/near", MNT3_OK, &fh);
    mount_becomes(e, "/exact", MNT3_OK, &fh);
    mount_becomes(e, "/star", MNT3_OK, &in);
    mount_becomes(e, "/far", MNT3ERR_ACCES, NULL);
    /* admission counts at every call, not at MOUNT alone: narrow the list, keep the handle */
    NT_OK(nt_getattr(e->root, &in));
    cli(e, 0, "export", "remove", "/star", NULL);
    mount_becomes(e, "/star", MNT3ERR_NOENT, NULL);
    NT_STATUS(nt_getattr(e->root, &in), NFS3ERR_STALE);
    cli(e, 0, "export", "remove", "/far", NULL);
    cli(e, 0, "export", "remove", "/near", NULL);
    cli(e, 0, "export", "remove", "/exact", NULL);
}

/* Exports of directories: ".." ends at their root, and nothing is moved from one to another. */
static void t_subdirectory(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh a, b, ea, eb, f;
    char path[300], below[400];

    nt_mk_dir(c, &e->dir, "a", 0777, &a);
    nt_mk_dir(c, &e->dir, "b", 0777, &b);
    nt_mk_file(c, &a, "f", 0666, &f);
    cli(e, 0, "export", "add", "/a", "--dir", full(e, "a", path, sizeof(path)), "--squash", "none",
        NULL);
    cli(e, 0, "export", "add", "/b", "--dir", full(e, "b", path, sizeof(path)), "--squash", "none",
        NULL);
    mount_becomes(e, "/a", MNT3_OK, &ea);
    mount_becomes(e, "/b", MNT3_OK, &eb);
    NT_OK(nt_lookup(c, &ea, ".."));
    NT_CHECK(nt_fh_eq(&c->r.fh, &ea));
    NT_OK(nt_lookup(c, &ea, "f"));
    f = c->r.fh;
    NT_STATUS(nt_rename(c, &ea, "f", &eb, "f"), NFS3ERR_XDEV);
    NT_STATUS(nt_link(c, &f, &eb, "f"), NFS3ERR_XDEV);
    NT_OK(nt_create(c, &ea, "g", GUARDED, &NT_SET_NONE, NULL));
    NT_OK(nt_lookup(c, &a, "g")); /* one file system */
    snprintf(below, sizeof(below), "%s/%s", e->node.export_path, e->dir_name);
    mount_becomes(e, below, MNT3ERR_ACCES, NULL); /* below an export is not an export */
    cli(e, 0, "export", "remove", "/a", NULL);
    cli(e, 0, "export", "remove", "/b", NULL);
}

/* Handles name exports by number, not by order: others coming and going changes nothing. */
static void t_handles_stay(struct nt_env *e)
{
    struct nt_fh fh, again;

    cli(e, 0, "export", "add", "/first", NULL);
    mount_becomes(e, "/first", MNT3_OK, NULL);
    cli(e, 0, "export", "add", "/second", NULL);
    mount_becomes(e, "/second", MNT3_OK, &fh);
    cli(e, 0, "export", "remove", "/first", NULL);
    mount_becomes(e, "/first", MNT3ERR_NOENT, NULL);
    NT_OK(nt_getattr(e->root, &fh));
    nt_node_kill(&e->node, 15);
    nt_node_start(&e->node);
    nt_reconnect(e);
    mount_becomes(e, "/second", MNT3_OK, &again);
    NT_CHECK(nt_fh_eq(&fh, &again));
    NT_OK(nt_getattr(e->root, &fh));
    cli(e, 0, "export", "remove", "/second", NULL);
}

static void t_cli_errors(struct nt_env *e)
{
    char out[8192] = "";
    static const char *const list[] = {"--json", "export", "list", NULL};

    cli(e, 1, "export", "add", e->node.export_path, NULL); /* taken */
    cli(e, 1, "export", "remove", "/absent", NULL);
    cli(e, 1, "export", "add", "/x", "--dir", "relative", NULL);
    cli(e, 1, "export", "add", "/x", "--clients", "not-an-address", NULL);
    cli(e, 1, "export", "add", "/x", "--clients", "10.0.0.0/33", NULL);
    cli(e, 2, "export", "add", NULL);
    cli(e, 2, "export", "add", "relative", NULL);
    cli(e, 2, "export", "add", "/x", "--squash", "some", NULL);
    cli(e, 2, "export", "add", "/x", "--anon-uid", "-1", NULL);
    cli(e, 2, "export", "frobnicate", NULL);
    cli(e, 2, "nothing", NULL);
    cli(e, 2, "pool", NULL);
    cli(e, 2, "fsck", "--fast", NULL);
    cli(e, 0, "pool", "list", NULL);
    cli(e, 0, "status", "--counters", NULL);
    cli(e, 0, "fsck", "--help", NULL);
    cli(e, 0, "help", "export", NULL);
    NT_EQ(nt_cli(&e->node, out, sizeof(out), list), 0);
    NT_CHECK(strstr(out, "\"path\": \"/main\"") != NULL);
    NT_CHECK(strstr(out, "/x") == NULL);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"read_only", t_read_only, true},       {"squash", t_squash, true},
        {"clients", t_clients, true},           {"subdirectory", t_subdirectory, true},
        {"handles_stay", t_handles_stay, true}, {"cli_errors", t_cli_errors, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

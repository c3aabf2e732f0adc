/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client keeps over a restart of the node, stopped or killed: handles, acknowledged changes,
 * exclusive creations, stable data; and what must change: the write verifier.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/nt.h"

static void restart(struct nt_env *e, int sig)
{
    nt_node_kill(&e->node, sig);
    nt_node_start(&e->node);
    nt_reconnect(e);
}

/* B9 */
static void handles(struct nt_env *e, int sig)
{
    struct nt_fh fh[4], gone;
    fattr3 before[4];

    fh[0] = e->export_fh;
    fh[1] = e->dir;
    nt_mk_file(e->root, &e->dir, "f", 0640, &fh[2]);
    NT_OK(nt_write(e->root, &fh[2], 0, "hello", 5, FILE_SYNC));
    NT_OK(nt_symlink(e->root, &e->dir, "l", "f", NULL));
    fh[3] = e->root->r.fh;
    nt_mk_file(e->root, &e->dir, "gone", 0640, &gone);
    NT_OK(nt_remove(e->root, &e->dir, "gone"));
    for (unsigned i = 0; i < 4; i++) {
        NT_OK(nt_getattr(e->root, &fh[i]));
        before[i] = e->root->r.attr;
    }
    restart(e, sig);
    for (unsigned i = 0; i < 4; i++) {
        NT_OK(nt_getattr(e->root, &fh[i]));
        NT_EQ(e->root->r.attr.fileid, before[i].fileid);
        NT_EQ(e->root->r.attr.fsid, before[i].fsid);
        NT_EQ(e->root->r.attr.mode, before[i].mode);
        NT_CHECK(nt_time_eq(e->root->r.attr.ctime, before[i].ctime));
        NT_CHECK(nt_time_eq(e->root->r.attr.mtime, before[i].mtime));
    }
    NT_OK(nt_read(e->root, &fh[2], 0, 10));
    NT_EQ(e->root->r.count, 5);
    NT_OK(nt_lookup(e->root, &fh[1], "f"));
    NT_CHECK(nt_fh_eq(&e->root->r.fh, &fh[2]));
    NT_STATUS(nt_getattr(e->root, &gone), NFS3ERR_STALE);
    /* a number is not used again for another object under an old handle */
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        struct nt_fh n;

        snprintf(name, sizeof(name), "n%u", i);
        nt_mk_file(e->root, &e->dir, name, 0644, &n);
        NT_CHECK(!nt_fh_eq(&n, &gone));
    }
}

static void t_handles_stop(struct nt_env *e)
{
    handles(e, SIGTERM);
}

static void t_handles_kill(struct nt_env *e)
{
    handles(e, SIGKILL);
}

/* B1 with restarts of both kinds. */
static void t_exclusive(struct nt_env *e)
{
    static const char v1[8] = {(char)0xff, (char)0xfe, 0, 1, (char)0x80, 0, 0, (char)0xff};
    static const char v2[8] = {(char)0xff, (char)0xfe, 0, 1, (char)0x80, 0, 0, 0}, zero[8];
    struct nt_fh fh, z;

    NT_OK(nt_create(e->root, &e->dir, "x", EXCLUSIVE, NULL, v1));
    fh = e->root->r.fh;
    NT_OK(nt_create(e->root, &e->dir, "z", EXCLUSIVE, NULL, zero));
    z = e->root->r.fh;
    for (int i = 0; i < 2; i++) {
        restart(e, i == 0 ? SIGKILL : SIGTERM);
        NT_OK(nt_create(e->root, &e->dir, "x", EXCLUSIVE, NULL, v1));
        NT_CHECK(nt_fh_eq(&e->root->r.fh, &fh));
        NT_STATUS(nt_create(e->root, &e->dir, "x", EXCLUSIVE, NULL, v2), NFS3ERR_EXIST);
        NT_OK(nt_create(e->root, &e->dir, "z", EXCLUSIVE, NULL, zero));
        NT_CHECK(nt_fh_eq(&e->root->r.fh, &z));
    }
}

/* B7: the verifier tells that unstable data may be lost; stable data is not. */
static void verifier(struct nt_env *e, uint32_t size)
{
    uint8_t *b = malloc(size);
    char verf[8], name[32];
    struct nt_fh fh, sync;

    snprintf(name, sizeof(name), "u%u", size);
    nt_mk_file(e->root, &e->dir, name, 0644, &fh);
    snprintf(name, sizeof(name), "s%u", size);
    nt_mk_file(e->root, &e->dir, name, 0644, &sync);
    nt_pattern(1, 0, b, size);
    NT_OK(nt_write(e->root, &sync, 0, b, size, FILE_SYNC));
    NT_EQ(e->root->r.count, size);
    NT_OK(nt_write(e->root, &fh, 0, b, size, UNSTABLE));
    NT_EQ(e->root->r.count, size);
    memcpy(verf, e->root->r.verf, 8);
    restart(e, SIGKILL);
    NT_OK(nt_commit(e->root, &fh, 0, 0));
    NT_CHECK(memcmp(verf, e->root->r.verf, 8) != 0);
    NT_OK(nt_write(e->root, &fh, 0, b, size, UNSTABLE)); /* as a client does: again, then COMMIT */
    memcpy(verf, e->root->r.verf, 8);
    NT_OK(nt_commit(e->root, &fh, 0, 0));
    NT_CHECK(memcmp(verf, e->root->r.verf, 8) == 0);
    restart(e, SIGKILL);
    NT_OK(nt_read(e->root, &fh, 0, size));
    NT_EQ(e->root->r.count, size);
    NT_CHECK(nt_pattern_ok(1, 0, e->root->data, size));
    NT_OK(nt_read(e->root, &sync, 0, size));
    NT_EQ(e->root->r.count, size);
    NT_CHECK(nt_pattern_ok(1, 0, e->root->data, size));
    free(b);
}

static void t_verifier_small(struct nt_env *e)
{
    verifier(e, 3000);
}

static void t_verifier_large(struct nt_env *e)
{
    verifier(e, 1u << 20);
}

/* B8: kill at once after the reply; one operation of each kind. */
static void t_replied_stays(struct nt_env *e)
{
    struct nt_fh fh;

    NT_OK(nt_create(e->root, &e->dir, "f", GUARDED, &NT_SET_MODE(0600), NULL));
    fh = e->root->r.fh;
    restart(e, SIGKILL);
    NT_OK(nt_lookup(e->root, &e->dir, "f"));
    NT_OK(nt_mkdir(e->root, &e->dir, "d", &NT_SET_MODE(0755)));
    restart(e, SIGKILL);
    NT_OK(nt_lookup(e->root, &e->dir, "d"));
    NT_OK(nt_rename(e->root, &e->dir, "f", &e->dir, "g"));
    restart(e, SIGKILL);
    NT_OK(nt_lookup(e->root, &e->dir, "g"));
    NT_STATUS(nt_lookup(e->root, &e->dir, "f"), NFS3ERR_NOENT);
    NT_OK(nt_link(e->root, &fh, &e->dir, "h"));
    restart(e, SIGKILL);
    NT_OK(nt_lookup(e->root, &e->dir, "h"));
    NT_EQ(e->root->r.attr.nlink, 2);
    NT_OK(nt_setattr(e->root, &fh, &NT_SET_MODE(0604), NULL));
    restart(e, SIGKILL);
    NT_OK(nt_getattr(e->root, &fh));
    NT_EQ(e->root->r.attr.mode & 07777, 0604);
    NT_OK(nt_remove(e->root, &e->dir, "g"));
    restart(e, SIGKILL);
    NT_STATUS(nt_lookup(e->root, &e->dir, "g"), NFS3ERR_NOENT);
    NT_OK(nt_rmdir(e->root, &e->dir, "d"));
    NT_OK(nt_symlink(e->root, &e->dir, "s", "target", NULL));
    restart(e, SIGKILL);
    NT_STATUS(nt_lookup(e->root, &e->dir, "d"), NFS3ERR_NOENT);
    NT_OK(nt_lookup(e->root, &e->dir, "s"));
}

/* fsck finds nothing, with the node running and stopped. */
static void t_fsck(struct nt_env *e)
{
    static const char *const online[] = {"fsck", NULL};
    static const char *const offline[] = {"fsck", "--offline", NULL};
    char out[4096] = "";
    struct nt_fh fh;
    uint8_t *b = malloc(1u << 20);

    nt_mk_file(e->root, &e->dir, "f", 0600, &fh);
    nt_pattern(1, 0, b, 1u << 20);
    NT_OK(nt_write(e->root, &fh, 0, b, 1u << 20, FILE_SYNC));
    free(b);
    if (nt_cli(&e->node, out, sizeof(out), online) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck: %s", out);
    }
    nt_node_kill(&e->node, SIGTERM);
    if (nt_cli(&e->node, out, sizeof(out), offline) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck --offline: %s", out);
    }
    NT_EQ(nt_cli(&e->node, NULL, 0, online), 3); /* not running */
    nt_node_start(&e->node);
    nt_reconnect(e);
}

/* What was lost is asked for, never made anew: not by a check either. */
static void t_lost_folders(struct nt_env *e)
{
    static const char *const offline[] = {"fsck", "--offline", NULL};
    static const char *const lost[] = {"segments", "segments/segment-0002", "meta/shards"};
    char dir[400], aside[400], out[4096];

    nt_node_kill(&e->node, SIGTERM);
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        out[0] = '\0';
        snprintf(dir, sizeof(dir), "%s/data/%s", e->node.dir, lost[i]);
        snprintf(aside, sizeof(aside), "%s/aside", e->node.dir);
        NT_EQ(rename(dir, aside), 0);
        if (nt_cli(&e->node, out, sizeof(out), offline) == 0 || strstr(out, lost[i]) == NULL) {
            nt_fail(__FILE__, __LINE__, "without %s: %s", lost[i], out);
        }
        NT_EQ(access(dir, F_OK), -1);
        NT_EQ(rename(aside, dir), 0);
    }
    out[0] = '\0';
    if (nt_cli(&e->node, out, sizeof(out), offline) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck --offline: %s", out);
    }
    nt_node_start(&e->node);
    nt_reconnect(e);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"handles_stop", t_handles_stop, true},
        {"handles_kill", t_handles_kill, true},
        {"exclusive", t_exclusive, true},
        {"verifier_small", t_verifier_small, true},
        {"verifier_large", t_verifier_large, true},
        {"replied_stays", t_replied_stays, true},
        {"fsck", t_fsck, true},
        {"lost_folders", t_lost_folders, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

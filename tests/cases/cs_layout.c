/* SPDX-License-Identifier: Apache-2.0 */
#include "cs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const programs[] = {"holdfast-segment", "holdfast-segment", "holdfast-meta",
                                       "holdfast-nfs", "holdfast-nfs"};

/* The flags of one process; they point into buf. */
struct flags {
    const char *argv[32];
    char buf[10][512];
    unsigned n, nbuf;
};

static void flag(struct flags *f, const char *key, const char *value)
{
    f->argv[f->n++] = key;
    snprintf(f->buf[f->nbuf], sizeof(f->buf[0]), "%s", value);
    f->argv[f->n++] = f->buf[f->nbuf++];
}

static void add_extra(struct flags *f, char extra[4][64])
{
    for (unsigned i = 0; i < 4 && extra[i][0] != '\0'; i++) {
        f->argv[f->n++] = extra[i];
    }
}

static void make_flags(struct cs_layout *l, enum cs_who who, struct flags *f)
{
    char text[512];

    f->n = 1;
    f->nbuf = 0;
    if (who == CS_SEG1 || who == CS_SEG2) {
        flag(f, "--segment-dir", l->seg_dir[who]);
        snprintf(text, sizeof(text), "ipc://%s/seg%d.sock", l->dir, who);
        flag(f, "--segment-listen", text);
        flag(f, "--segment-segments", who == CS_SEG1 ? "1" : "2");
        add_extra(f, l->seg_args);
    } else if (who == CS_META) {
        flag(f, "--meta-dir", l->meta_dir);
        snprintf(text, sizeof(text), "ipc://%s/meta.sock", l->dir);
        flag(f, "--meta-listen", text);
        snprintf(text, sizeof(text), "hot:1:ipc://%s/seg0.sock,hot:2:ipc://%s/seg1.sock", l->dir,
                 l->dir);
        flag(f, "--meta-segments", text);
        add_extra(f, l->meta_args);
    } else {
        snprintf(text, sizeof(text), "ipc://%s/meta.sock", l->dir);
        flag(f, "--meta-url", text);
        snprintf(text, sizeof(text), "127.0.0.1:%d", l->gw[who - CS_GW_A].port);
        flag(f, "--nfs-listen", text);
    }
    f->argv[f->n] = NULL;
}

void cs_start(struct cs_layout *l, enum cs_who who)
{
    char prog[512], log[300];
    struct flags f;
    pid_t parent = getpid();

    snprintf(prog, sizeof(prog), "%s/%s", getenv("HF_BIN_DIR"), programs[who]);
    snprintf(log, sizeof(log), "%s/log%d", l->dir, who);
    make_flags(l, who, &f);
    f.argv[0] = prog;
    l->pid[who] = fork();
    if (l->pid[who] == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
            _exit(126); /* nothing stays behind a test that died */
        }
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        if (l->fault[who][0] != '\0') {
            setenv("HF_FAULT", l->fault[who], 1);
        } else {
            unsetenv("HF_FAULT");
        }
        execv(prog, (char *const *)(uintptr_t)f.argv);
        _exit(127);
    }
}

int cs_end(struct cs_layout *l, enum cs_who who, int sig)
{
    int status = 0;

    if (l->pid[who] > 0) {
        kill(l->pid[who], sig);
        while (waitpid(l->pid[who], &status, 0) < 0 && errno == EINTR) {
        }
        l->pid[who] = 0;
    }
    return status;
}

static void show_logs(const struct cs_layout *l)
{
    for (unsigned i = 0; i < CS_PROCS; i++) {
        struct nt_node n = {0};
        char path[300], as[300];

        snprintf(n.dir, sizeof(n.dir), "%s", l->dir);
        snprintf(path, sizeof(path), "%s/log%u", l->dir, i);
        snprintf(as, sizeof(as), "%s/log", l->dir);
        if (rename(path, as) == 0) {
            nt_node_log(&n);
        }
    }
}

static bool gateway_serves(struct cs_layout *l, unsigned which)
{
    struct nt *c = nt_try_open(&l->gw[which], l->gw[which].port);
    bool ok = false;

    if (c != NULL) {
        c->tolerant = true;
        ok = nt_mount(c, "/main") == MNT3_OK;
        if (ok) {
            l->root = c->r.fh;
            rpc_set_auth(c->rpc, libnfs_authunix_create("hf-test", 0, 0, 0, NULL));
            ok = nt_getattr(c, &l->root) == NFS3_OK;
        }
        nt_close(c);
    }
    return ok;
}

void cs_wait_serves(struct cs_layout *l)
{
    uint64_t deadline = cs_after(60);

    for (unsigned i = 0; i < 2; i++) {
        while (l->pid[CS_GW_A + i] > 0 && !gateway_serves(l, i)) {
            if (nt_now_ns() > deadline) {
                show_logs(l);
                nt_fail(__FILE__, __LINE__, "gateway %u does not serve", i);
            }
            cs_nap_ms(10);
        }
    }
}

void cs_layout_start(struct cs_layout *l)
{
    const char *base = getenv("TMPDIR");

    snprintf(l->dir, sizeof(l->dir), "%s/hf-cases.XXXXXX", base != NULL ? base : "/tmp");
    NT_CHECK(mkdtemp(l->dir) != NULL);
    for (unsigned i = 0; i < 3; i++) {
        char *d = i < 2 ? l->seg_dir[i] : l->meta_dir;

        if (d[0] == '\0') {
            char path[300];

            snprintf(path, sizeof(path), "%s/%s%u", l->dir, i < 2 ? "seg" : "meta", i);
            NT_CHECK(strlen(path) < 200 && mkdir(path, 0755) == 0);
            memcpy(d, path, strlen(path) + 1);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        l->gw[i].foreign = true;
        l->gw[i].port = l->gw[i].mount_port = nt_free_port();
    }
    for (unsigned i = 0; i < CS_PROCS; i++) {
        cs_start(l, (enum cs_who)i);
    }
    cs_wait_serves(l);
}

void cs_bounce(struct cs_layout *l, enum cs_who who)
{
    cs_end(l, who, SIGKILL);
    cs_start(l, who);
    cs_wait_serves(l);
}

void cs_layout_stop(struct cs_layout *l)
{
    for (unsigned i = CS_PROCS; i-- > 0;) {
        cs_end(l, (enum cs_who)i, SIGKILL);
    }
    if (l->dir[0] != '\0') {
        nt_remove_tree(l->dir);
    }
}

struct nt *cs_gw(struct cs_layout *l, unsigned which)
{
    return nt_open(&l->gw[which], 0, 0, 0, NULL);
}

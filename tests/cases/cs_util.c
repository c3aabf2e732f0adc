/* SPDX-License-Identifier: Apache-2.0 */
#include "cs.h"

#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

long cs_rss_kib(pid_t pid)
{
    struct nt_node n = {.pid = pid};

    return nt_node_rss_kib(&n);
}

void cs_nap_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&ts, NULL);
}

uint64_t cs_after(unsigned sec)
{
    return nt_now_ns() + sec * 1000000000ull;
}

uint64_t cs_du(const char *dir)
{
    char *paths[] = {(char *)(uintptr_t)dir, NULL};
    FTS *f = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t bytes = 0;
    FTSENT *t;

    while (f != NULL && (t = fts_read(f)) != NULL) {
        if (t->fts_info == FTS_F) {
            bytes += (uint64_t)t->fts_statp->st_blocks * 512;
        }
    }
    if (f != NULL) {
        fts_close(f);
    }
    return bytes;
}

void cs_tmpfs(const char *base, const char *name, unsigned mib, char *dir)
{
    char opts[64], path[300];

    snprintf(path, sizeof(path), "%s/%s", base, name);
    snprintf(opts, sizeof(opts), "size=%um", mib);
    NT_CHECK(strlen(path) < 200);
    memcpy(dir, path, strlen(path) + 1);
    if (mkdir(dir, 0755) != 0 || mount("tmpfs", dir, "tmpfs", 0, opts) != 0) {
        nt_fail(__FILE__, __LINE__, "a tmpfs on %s (needs root)", dir);
    }
}

void cs_tmpfs_end(const char *dir)
{
    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

void cs_cli(struct nt_env *e, const char *a0, ...)
{
    const char *args[16] = {a0};
    char out[4096] = "";
    unsigned n = 1;
    va_list ap;

    va_start(ap, a0);
    while (n < 15 && (args[n] = va_arg(ap, const char *)) != NULL) {
        n++;
    }
    va_end(ap);
    if (nt_cli(&e->node, out, sizeof(out), args) != 0) {
        nt_fail(__FILE__, __LINE__, "holdfast %s: %s", a0, out);
    }
}

void cs_restart_node(struct nt_env *e, int sig)
{
    nt_node_kill(&e->node, sig);
    nt_node_start(&e->node);
    nt_reconnect(e);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner: starts a node, runs each test in a directory of its own, prints TAP, shows the node's
 * log if anything failed. A test that fails is left by a jump; its connections are then lost, which
 * a short-lived program can bear.
 *
 *   PROGRAM [--server HOST:PORT:MOUNTPORT:/EXPORT] [--only NAME] [--list]
 */
#include "nt.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static jmp_buf on_fail;
static bool in_test;

uint64_t nt_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

_Noreturn void nt_fail(const char *file, int line, const char *fmt, ...)
{
    const char *slash = strrchr(file, '/');
    va_list ap;

    printf("# %s:%d: ", slash != NULL ? slash + 1 : file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    if (in_test) {
        longjmp(on_fail, 1);
    }
    exit(1);
}

void nt_eq(const char *file, int line, const char *what, uint64_t a, uint64_t b)
{
    if (a != b) {
        nt_fail(file, line, "%s is %llu (0x%llx), expected %llu (0x%llx)", what,
                (unsigned long long)a, (unsigned long long)a, (unsigned long long)b,
                (unsigned long long)b);
    }
}

void nt_status(const char *file, int line, const char *what, uint32_t got, uint32_t want)
{
    if (got != want) {
        nt_fail(file, line, "%s answers %s, expected %s", what, nt_status_name(got),
                nt_status_name(want));
    }
}

void nt_one_of(const char *file, int line, const char *what, uint32_t got, const uint32_t *want)
{
    for (size_t i = 0; want[i] != NT_END; i++) {
        if (want[i] == got) {
            return;
        }
    }
    nt_fail(file, line, "%s answers %s, expected %s or the like", what, nt_status_name(got),
            nt_status_name(want[0]));
}

const char *nt_status_name(uint32_t status)
{
    static const struct {
        uint32_t v;
        const char *name;
    } names[] = {
        {NFS3_OK, "OK"},
        {NFS3ERR_PERM, "PERM"},
        {NFS3ERR_NOENT, "NOENT"},
        {NFS3ERR_IO, "IO"},
        {NFS3ERR_NXIO, "NXIO"},
        {NFS3ERR_ACCES, "ACCES"},
        {NFS3ERR_EXIST, "EXIST"},
        {NFS3ERR_XDEV, "XDEV"},
        {NFS3ERR_NODEV, "NODEV"},
        {NFS3ERR_NOTDIR, "NOTDIR"},
        {NFS3ERR_ISDIR, "ISDIR"},
        {NFS3ERR_INVAL, "INVAL"},
        {NFS3ERR_FBIG, "FBIG"},
        {NFS3ERR_NOSPC, "NOSPC"},
        {NFS3ERR_ROFS, "ROFS"},
        {NFS3ERR_MLINK, "MLINK"},
        {NFS3ERR_NAMETOOLONG, "NAMETOOLONG"},
        {NFS3ERR_NOTEMPTY, "NOTEMPTY"},
        {NFS3ERR_DQUOT, "DQUOT"},
        {NFS3ERR_STALE, "STALE"},
        {NFS3ERR_BADHANDLE, "BADHANDLE"},
        {NFS3ERR_NOT_SYNC, "NOT_SYNC"},
        {NFS3ERR_BAD_COOKIE, "BAD_COOKIE"},
        {NFS3ERR_NOTSUPP, "NOTSUPP"},
        {NFS3ERR_TOOSMALL, "TOOSMALL"},
        {NFS3ERR_SERVERFAULT, "SERVERFAULT"},
        {NFS3ERR_BADTYPE, "BADTYPE"},
        {NFS3ERR_JUKEBOX, "JUKEBOX"},
        {NT_NO_REPLY, "(no reply)"},
    };
    static char other[32];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].v == status) {
            return names[i].name;
        }
    }
    snprintf(other, sizeof(other), "status %u", status);
    return other;
}

/* ---- small helpers of tests ---- */

void nt_mk_file(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t mode,
                struct nt_fh *ret)
{
    struct nt_set set = NT_SET_MODE(mode);

    NT_OK(nt_create(c, dir, name, GUARDED, &set, NULL));
    NT_CHECK(c->r.have_fh);
    *ret = c->r.fh;
}

void nt_mk_dir(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t mode,
               struct nt_fh *ret)
{
    struct nt_set set = NT_SET_MODE(mode);

    NT_OK(nt_mkdir(c, dir, name, &set));
    NT_CHECK(c->r.have_fh);
    *ret = c->r.fh;
}

bool nt_fh_eq(const struct nt_fh *a, const struct nt_fh *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

int nt_time_cmp(nfstime3 a, nfstime3 b)
{
    if (a.seconds != b.seconds) {
        return a.seconds < b.seconds ? -1 : 1;
    }
    return a.nseconds < b.nseconds ? -1 : a.nseconds > b.nseconds;
}

bool nt_time_eq(nfstime3 a, nfstime3 b)
{
    return nt_time_cmp(a, b) == 0;
}

static uint8_t pattern_byte(uint32_t seed, uint64_t off)
{
    uint64_t z = (off >> 3) * 0x9e3779b97f4a7c15ull + seed * 0xbf58476d1ce4e5b9ull;

    z = (z ^ (z >> 29)) * 0x94d049bb133111ebull;
    return (uint8_t)(z >> (8 * (off & 7)));
}

void nt_pattern(uint32_t seed, uint64_t off, uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = pattern_byte(seed, off + i);
    }
}

bool nt_pattern_ok(uint32_t seed, uint64_t off, const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != pattern_byte(seed, off + i)) {
            printf("# first wrong byte at offset %llu\n", (unsigned long long)(off + i));
            return false;
        }
    }
    return true;
}

/* ---- running ---- */

void nt_reconnect(struct nt_env *e)
{
    nt_close(e->root);
    e->root = NULL; /* opening may fail, and the next test begins here */
    e->root = nt_open(&e->node, 0, 0, 0, NULL);
}

static void mount_export(struct nt_env *e)
{
    struct nt *m = nt_try_open(&e->node, e->node.mount_port);

    if (m == NULL || nt_mount(m, e->node.export_path) != MNT3_OK) {
        fprintf(stderr, "cannot mount %s\n", e->node.export_path);
        exit(1);
    }
    e->export_fh = m->r.fh;
    nt_close(m);
}

static bool run_one(struct nt_env *e, const struct nt_test *t, size_t number)
{
    struct nt_set set = NT_SET_MODE(0777);
    uint64_t t0 = nt_now_ns();
    bool ok = false;

    if (t->needs_node && e->node.foreign) {
        printf("ok %zu - %s # SKIP needs a node of its own\n", number, t->name);
        return true;
    }
    in_test = true;
    if (setjmp(on_fail) == 0) {
        if (!e->node.foreign && !nt_node_alive(&e->node)) {
            nt_node_start(&e->node);
        }
        nt_reconnect(e);
        snprintf(e->dir_name, sizeof(e->dir_name), "%s.%d", t->name, (int)getpid());
        NT_OK(nt_mkdir(e->root, &e->export_fh, e->dir_name, &set));
        e->dir = e->root->r.fh;
        t->fn(e);
        if (!e->node.foreign && !nt_node_alive(&e->node)) {
            nt_fail(__FILE__, __LINE__, "the node has died");
        }
        ok = true;
    }
    in_test = false;
    printf("%s %zu - %s # %.2f s\n", ok ? "ok" : "not ok", number, t->name,
           (double)(nt_now_ns() - t0) / 1e9);
    fflush(stdout);
    return ok;
}

static void parse_server(struct nt_node *n, char *text)
{
    char *host = strtok(text, ":");
    char *port = strtok(NULL, ":");
    char *mport = strtok(NULL, ":");
    char *path = strtok(NULL, "");

    if (host == NULL || port == NULL || mport == NULL || path == NULL ||
        strcmp(host, "127.0.0.1") != 0) {
        fprintf(stderr, "--server 127.0.0.1:PORT:MOUNTPORT:/EXPORT\n");
        exit(2);
    }
    n->foreign = true;
    n->port = (int)strtol(port, NULL, 10);
    n->mount_port = (int)strtol(mport, NULL, 10);
    snprintf(n->export_path, sizeof(n->export_path), "%s", path);
}

int nt_main(int argc, char **argv, const struct nt_test *tests, size_t n, const char *extra_conf)
{
    static struct nt_env e;
    const char *only = NULL;
    size_t failed = 0;

    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--server") == 0 && i + 1 < argc) {
            parse_server(&e.node, argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--server 127.0.0.1:PORT:MOUNTPORT:/EXPORT] [--only TEST]\n",
                    argv[0]);
            return 2;
        }
    }
    if (extra_conf != NULL) {
        snprintf(e.node.extra, sizeof(e.node.extra), "%s", extra_conf);
    }
    if (!e.node.foreign) {
        nt_node_start(&e.node);
    }
    mount_export(&e);
    printf("1..%zu\n", n);
    for (size_t i = 0; i < n; i++) {
        if (only == NULL || strcmp(only, tests[i].name) == 0) {
            failed += !run_one(&e, &tests[i], i + 1);
        }
    }
    nt_close(e.root);
    if (failed > 0) {
        printf("# %zu of %zu failed\n", failed, n);
        nt_node_log(&e.node);
    }
    nt_node_remove(&e.node);
    return failed > 0;
}

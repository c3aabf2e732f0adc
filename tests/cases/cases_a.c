/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bugs, group A: listing directories. A6 and A7 run scaled down; with --full at their
 * size (1,000,000 files; 5,000,000 files).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cs.h"

static bool full_size(void)
{
    return getenv("HF_CASES_FULL") != NULL;
}

/* ---- A1 ---- */

/* Lists d by pages of 4 KiB, removes what each page shows before it asks for the next. */
static void remove_pages(struct nt_env *e, bool plus, int restart_sig)
{
    enum { N = 5000 };
    struct cs_census s;
    struct nt_fh d;
    uint64_t cookie = 0;
    char verf[8] = {0};
    bool eof = false;

    nt_mk_dir(e->root, &e->dir, "d", 0755, &d);
    NT_OK(cs_many(e->root, CS_CREATE, &d, NULL, "f", 0, N));
    cs_census_init(&s, "f", N);
    for (unsigned page = 0; !eof; page++) {
        struct nt *c = e->root;
        struct nt_entry *got;
        unsigned n;

        NT_OK(plus ? nt_readdirplus(c, &d, cookie, verf, 4096, 4096)
                   : nt_readdir(c, &d, cookie, verf, 4096));
        memcpy(verf, c->r.verf, 8);
        eof = c->r.eof;
        n = c->r.nentries;
        got = calloc(n + 1, sizeof(*got));
        memcpy(got, c->entries, n * sizeof(*got));
        for (unsigned i = 0; i < n; i++) {
            cookie = got[i].cookie;
            cs_census_add(&s, got[i].name);
            if (got[i].name[0] != '.') {
                NT_OK(nt_remove(c, &d, got[i].name));
            }
        }
        free(got);
        if (page == 2 && restart_sig != 0) {
            cs_restart_node(e, restart_sig);
        }
    }
    NT_EQ(s.other, 0);
    cs_census_check(&s, 0);
    NT_OK(nt_rmdir(e->root, &e->dir, "d"));
}

static void t_a1(struct nt_env *e)
{
    remove_pages(e, true, 0);
    remove_pages(e, false, 0);
}

static void t_a1_restart(struct nt_env *e)
{
    remove_pages(e, true, SIGTERM);
    remove_pages(e, false, SIGKILL);
}

/* ---- A2, A5 ---- */

static void t_a2(struct nt_env *e)
{
    struct cs_census s;

    NT_OK(cs_many(e->root, CS_CREATE, &e->dir, NULL, "f", 0, 2500));
    for (int plus = 0; plus < 2; plus++) {
        cs_census_init(&s, "f", 2500);
        cs_list(e->root, &e->dir, plus != 0, 4096, &s); /* checks that cookies advance */
        NT_CHECK(s.pages > 10);
        NT_EQ(s.eofs, 1);
        NT_EQ(s.other, 0);
        cs_census_check(&s, 0);
    }
}

/* All entries of a listing, copied; `cap` at most. */
static unsigned collect(struct nt *c, const struct nt_fh *dir, bool plus, struct nt_entry *to,
                        unsigned cap)
{
    char verf[8] = {0};
    unsigned n = 0;

    do {
        uint64_t cookie = n > 0 ? to[n - 1].cookie : 0;

        NT_OK(plus ? nt_readdirplus(c, dir, cookie, verf, 65536, 65536)
                   : nt_readdir(c, dir, cookie, verf, 8192));
        memcpy(verf, c->r.verf, 8);
        NT_CHECK(n + c->r.nentries <= cap);
        memcpy(to + n, c->entries, c->r.nentries * sizeof(*to));
        n += c->r.nentries;
    } while (!c->r.eof);
    return n;
}

static void t_a5(struct nt_env *e)
{
    enum { N = 3000 };
    struct nt *c = e->root;
    struct nt_entry *plus = calloc(N + 2, sizeof(*plus)), *plain = calloc(N + 2, sizeof(*plain));

    NT_OK(cs_many(c, CS_CREATE, &e->dir, NULL, "f", 0, N));
    NT_EQ(collect(c, &e->dir, true, plus, N + 2), N + 2);
    NT_EQ(collect(c, &e->dir, false, plain, N + 2), N + 2);
    for (unsigned i = 0; i < N + 2; i++) {
        NT_CHECK(strcmp(plus[i].name, plain[i].name) == 0);
        NT_EQ(plus[i].cookie, plain[i].cookie);
        NT_EQ(plus[i].fileid, plain[i].fileid);
        NT_CHECK(plus[i].cookie <= 0x7fffffffffffffffull && plus[i].have_attr);
        NT_EQ(plus[i].attr.fileid, plus[i].fileid);
    }
    for (unsigned i = 0; i < N + 2; i += 50) {
        NT_OK(nt_lookup(c, &e->dir, plus[i].name));
        NT_OK(nt_getattr(c, &c->r.fh));
        NT_EQ(c->r.attr.fileid, plus[i].fileid);
    }
    free(plus);
    free(plain);
}

/* ---- A6 ---- */

struct other {
    struct nt *c;
    struct nt_fh dir;
    bool stop;
    uint32_t bad;
    unsigned n, cap;
    uint64_t *ns; /* of each operation */
};

static bool timed(struct other *o, uint32_t status, uint64_t t0)
{
    if (status != NFS3_OK) {
        o->bad = status;
    }
    if (o->n == o->cap) {
        o->cap = o->cap ? 2 * o->cap : 4096;
        o->ns = reallocarray(o->ns, o->cap, sizeof(*o->ns));
    }
    o->ns[o->n++] = nt_now_ns() - t0;
    return o->bad == NFS3_OK;
}

/* CREATE, LOOKUP, REMOVE in the directory that is being listed. */
static void *busy(void *arg)
{
    struct other *o = arg;
    struct nt_set set = NT_SET_MODE(0644);

    while (!__atomic_load_n(&o->stop, __ATOMIC_RELAXED)) {
        uint64_t t0 = nt_now_ns();

        if (!timed(o, nt_create(o->c, &o->dir, "busy", GUARDED, &set, NULL), t0)) {
            break;
        }
        t0 = nt_now_ns();
        if (!timed(o, nt_lookup(o->c, &o->dir, "busy"), t0)) {
            break;
        }
        t0 = nt_now_ns();
        if (!timed(o, nt_remove(o->c, &o->dir, "busy"), t0)) {
            break;
        }
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void t_a6(struct nt_env *e)
{
    unsigned n = full_size() ? 1000000 : 100000, lists = full_size() ? 1 : 3;
    struct other o = {.dir = e->dir};
    pthread_t th;
    uint64_t t0, p99, most;

    NT_OK(cs_many(e->root, CS_CREATE, &e->dir, NULL, "f", 0, n));
    o.c = nt_open(&e->node, 0, 0, 0, NULL);
    o.c->tolerant = true;
    NT_EQ(pthread_create(&th, NULL, busy, &o), 0);
    t0 = nt_now_ns();
    for (unsigned i = 0; i < lists; i++) {
        struct cs_census s;

        cs_census_init(&s, "f", n);
        cs_list(e->root, &e->dir, true, 1u << 20, &s);
        NT_CHECK(s.other <= 1); /* "busy" */
        printf("# listing %u: %u pages, largest %zu bytes, %.2f s\n", i, s.pages, s.most_bytes,
               (double)(nt_now_ns() - t0) / 1e9);
        cs_census_check(&s, 0);
    }
    __atomic_store_n(&o.stop, true, __ATOMIC_RELAXED);
    pthread_join(th, NULL);
    NT_STATUS(o.bad, NFS3_OK);
    NT_CHECK(o.n > 100);
    qsort(o.ns, o.n, sizeof(*o.ns), by_value);
    p99 = o.ns[o.n * 99 / 100];
    most = o.ns[o.n - 1];
    printf("# %u files; the other client: %u operations, p50 %.2f ms, p99 %.2f ms, longest %.2f "
           "ms\n",
           n, o.n, (double)o.ns[o.n / 2] / 1e6, (double)p99 / 1e6, (double)most / 1e6);
    NT_CHECK(p99 < 1000000000ull);
    NT_CHECK(most < 10000000000ull);
    free(o.ns);
    nt_close(o.c);
    NT_OK(cs_many(e->root, CS_REMOVE, &e->dir, NULL, "f", 0, n));
}

/* ---- A7 ---- */

/* `find -ls`: each directory by READDIRPLUS. */
static void walk(struct nt *c, const struct nt_fh *dirs, unsigned ndirs, unsigned each)
{
    for (unsigned i = 0; i < ndirs; i++) {
        struct cs_census s;

        cs_census_init(&s, "f", each);
        cs_list(c, &dirs[i], true, 65536, &s);
        cs_census_check(&s, 0);
    }
}

static void sample(const struct cs_layout *l, const char *what, long kib[2])
{
    kib[0] = cs_rss_kib(l->pid[CS_GW_A]);
    kib[1] = cs_rss_kib(l->pid[CS_META]);
    printf("# %s: gateway %ld KiB, metadata server %ld KiB\n", what, kib[0], kib[1]);
}

static void t_a7(struct nt_env *e)
{
    unsigned each = 2000, ndirs = full_size() ? 2500 : 100;
    struct nt_fh *dirs = calloc(ndirs, sizeof(*dirs));
    struct cs_layout l = {0};
    uint64_t deadline;
    long first[2], now[2];
    struct nt *c;

    (void)e;
    cs_layout_start(&l);
    c = cs_gw(&l, 0);
    for (unsigned i = 0; i < ndirs; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d%u", i);
        nt_mk_dir(c, &l.root, name, 0755, &dirs[i]);
        NT_OK(cs_many(c, CS_CREATE, &dirs[i], NULL, "f", 0, each));
    }
    sample(&l, "made", now);
    walk(c, dirs, ndirs, each);
    sample(&l, "first walk", first);
    for (int k = 2; k <= 3; k++) {
        walk(c, dirs, ndirs, each);
        sample(&l, k == 2 ? "second walk" : "third walk", now);
        NT_CHECK(now[0] <= first[0] + first[0] / 5);
        NT_CHECK(now[1] <= first[1] + first[1] / 5);
    }
    memcpy(first, now, sizeof(first));
    deadline = cs_after(full_size() ? 600 : 3);
    while (nt_now_ns() < deadline) { /* idle */
        cs_nap_ms(200);
        now[0] = cs_rss_kib(l.pid[CS_GW_A]);
        now[1] = cs_rss_kib(l.pid[CS_META]);
        NT_CHECK(now[0] <= first[0] + 1024 && now[1] <= first[1] + 4096);
    }
    sample(&l, "idle", now);
    NT_CHECK(now[0] < 512 * 1024);
    nt_close(c);
    free(dirs);
    cs_layout_stop(&l);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"A1 removing entries while paging keeps the cookie good", t_a1, false},
        {"A1 the same over a restart after page 3", t_a1_restart, true},
        {"A2 READDIR alone: each name once, eof once", t_a2, false},
        {"A5 cookies and file ids below 2^63 and the same", t_a5, false},
        {"A6 a huge listing does not starve others", t_a6, false},
        {"A7 walking a tree does not grow the servers", t_a7, true},
    };

    if (argc > 1 && strcmp(argv[1], "--full") == 0) {
        setenv("HF_CASES_FULL", "1", 1);
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bugs, group C: links and renames, through two gateways.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cs.h"

/* ---- C1 ---- */

static void both_stay(struct nt *c, const struct nt_fh *da, const char *a, const struct nt_fh *db,
                      const char *b)
{
    struct nt_fh fh;

    nt_mk_file(c, da, a, 0644, &fh);
    NT_OK(nt_link(c, &fh, db, b));
    for (int i = 0; i < 2; i++) { /* either way */
        NT_OK(i == 0 ? nt_rename(c, da, a, db, b) : nt_rename(c, db, b, da, a));
        NT_OK(nt_lookup(c, da, a));
        NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
        NT_OK(nt_lookup(c, db, b));
        NT_CHECK(nt_fh_eq(&c->r.fh, &fh));
        NT_EQ(c->r.attr.nlink, 2);
    }
    NT_OK(nt_rename(c, da, a, da, a)); /* onto itself */
    NT_OK(nt_remove(c, da, a));
    NT_OK(nt_lookup(c, db, b));
    NT_EQ(c->r.attr.nlink, 1);
    NT_OK(nt_rename(c, db, b, db, b));
    NT_OK(nt_getattr(c, &fh));
    NT_EQ(c->r.attr.nlink, 1);
}

static void t_c1(struct nt_env *e)
{
    struct nt_fh other;

    both_stay(e->root, &e->dir, "a", &e->dir, "b");
    nt_mk_dir(e->root, &e->dir, "other", 0755, &other);
    both_stay(e->root, &e->dir, "c", &other, "d");
    cs_cli(e, "fsck", NULL);
}

/* ---- C3 ---- */

enum { DIRS = 10, EACH = 100, WORKERS = 4 };

struct worker {
    struct nt *c;
    const struct nt_fh *dirs, *fh;
    unsigned me;
    enum cs_op op;
    unsigned skip; /* of directory 0: already removed */
    uint32_t bad;
};

/* Its share of the names of each directory. */
static void *work(void *arg)
{
    struct worker *w = arg;
    unsigned lo = EACH / WORKERS * w->me, hi = lo + EACH / WORKERS;

    for (unsigned d = 0; d < DIRS && w->bad == NFS3_OK; d++) {
        unsigned from = d == 0 && w->skip > lo ? (w->skip < hi ? w->skip : hi) : lo;

        w->bad = cs_many(w->c, w->op, &w->dirs[d], w->fh, "l", from, hi);
    }
    return NULL;
}

static void in_parallel(struct nt_node *const gw[2], const struct nt_fh *dirs,
                        const struct nt_fh *fh, enum cs_op op, unsigned skip)
{
    struct worker w[WORKERS];
    pthread_t th[WORKERS];

    for (unsigned i = 0; i < WORKERS; i++) {
        w[i] = (struct worker){.c = nt_open(gw[i % 2], 0, 0, 0, NULL),
                               .dirs = dirs,
                               .fh = fh,
                               .me = i,
                               .op = op,
                               .skip = skip};
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        NT_EQ(pthread_create(&th[i], NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(th[i], NULL);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        nt_close(w[i].c);
        NT_STATUS(w[i].bad, NFS3_OK);
    }
}

static void nlink_is(struct nt *const c[2], const struct nt_fh *fh, unsigned want)
{
    for (unsigned i = 0; i < 2; i++) {
        NT_OK(nt_getattr(c[i], fh));
        NT_EQ(c[i]->r.attr.nlink, want);
    }
}

static void many_links(struct nt_node *const gw[2], const struct nt_fh *top)
{
    struct nt *c[2] = {nt_open(gw[0], 0, 0, 0, NULL), nt_open(gw[1], 0, 0, 0, NULL)};
    struct nt_fh dirs[DIRS], fh;

    nt_mk_file(c[0], top, "original", 0644, &fh);
    for (unsigned d = 0; d < DIRS; d++) {
        char name[16];

        snprintf(name, sizeof(name), "d%u", d);
        nt_mk_dir(c[d % 2], top, name, 0755, &dirs[d]);
    }
    in_parallel(gw, dirs, &fh, CS_LINK, 0);
    nlink_is(c, &fh, DIRS * EACH + 1);
    NT_OK(nt_remove(c[1], top, "original"));
    nlink_is(c, &fh, DIRS * EACH);
    for (unsigned i = 0; i < 20; i++) { /* one by one: exact on both */
        char name[16];

        snprintf(name, sizeof(name), "l%u", i);
        NT_OK(nt_remove(c[i % 2], &dirs[0], name));
        nlink_is(c, &fh, DIRS * EACH - 1 - i);
    }
    in_parallel(gw, dirs, &fh, CS_REMOVE, 20);
    NT_STATUS(nt_getattr(c[0], &fh), NFS3ERR_STALE);
    NT_STATUS(nt_getattr(c[1], &fh), NFS3ERR_STALE);
    for (unsigned d = 0; d < DIRS; d++) {
        char name[16];

        snprintf(name, sizeof(name), "d%u", d);
        NT_OK(nt_rmdir(c[0], top, name));
    }
    nt_close(c[0]);
    nt_close(c[1]);
}

static void t_c3(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_node *const gw[2] = {&l.gw[0], &l.gw[1]};

    (void)e;
    cs_layout_start(&l);
    many_links(gw, &l.root);
    cs_layout_stop(&l);
}

static void t_c3_fsck(struct nt_env *e)
{
    struct nt_node *const gw[2] = {&e->node, &e->node};

    many_links(gw, &e->dir);
    cs_cli(e, "fsck", NULL);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"C1 rename of a name to the same file's other name", t_c1, true},
        {"C3 1000 links by two gateways in parallel", t_c3, true},
        {"C3 the same on one node, then fsck", t_c3_fsck, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * READDIR and READDIRPLUS: cookies, verifiers, budgets, listings while names come and go.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/nt.h"

#define COOKIE_MAX 0x7fffffffffffffffull

/* How often each of the names f0 .. f(n-1), "." and ".." was seen. */
struct census {
    unsigned n;
    unsigned *seen;
    unsigned dot, dotdot, other;
};

static void census_init(struct census *s, unsigned n)
{
    *s = (struct census){.n = n, .seen = calloc(n, sizeof(unsigned))};
}

static void census_add(struct census *s, const char *name)
{
    char *end = NULL;

    if (strcmp(name, ".") == 0) {
        s->dot++;
    } else if (strcmp(name, "..") == 0) {
        s->dotdot++;
    } else if (name[0] == 'f') {
        unsigned long v = strtoul(name + 1, &end, 10);

        if (*end == '\0' && v < s->n) {
            s->seen[v]++;
        } else {
            s->other++;
        }
    } else {
        s->other++;
    }
}

/* Every name from lo on exactly once. Ends the census. */
static void census_check(struct census *s, unsigned lo)
{
    NT_EQ(s->dot, 1);
    NT_EQ(s->dotdot, 1);
    NT_EQ(s->other, 0);
    for (unsigned i = lo; i < s->n; i++) {
        if (s->seen[i] != 1) {
            nt_fail(__FILE__, __LINE__, "f%u was listed %u times", i, s->seen[i]);
        }
    }
    free(s->seen);
}

static void fill_dir(struct nt *c, const struct nt_fh *dir, unsigned n)
{
    struct nt_set s = NT_SET_MODE(0644);
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        NT_OK(nt_create(c, dir, name, UNCHECKED, &s, NULL));
    }
}

/* Lists the whole directory; plus: with READDIRPLUS. */
static void list_all(struct nt *c, const struct nt_fh *dir, bool plus, uint32_t count,
                     struct census *s)
{
    uint64_t cookie = 0;
    char verf[8] = {0};

    for (unsigned pages = 0;; pages++) {
        NT_OK(plus ? nt_readdirplus(c, dir, cookie, verf, count, count)
                   : nt_readdir(c, dir, cookie, verf, count));
        NT_CHECK(c->r.have_dir);
        if (c->r.reply_bytes > count) {
            nt_fail(__FILE__, __LINE__, "%zu bytes where %u were allowed", c->r.reply_bytes, count);
        }
        memcpy(verf, c->r.verf, 8);
        for (unsigned i = 0; i < c->r.nentries; i++) {
            NT_CHECK(c->entries[i].cookie > cookie);      /* A2: they strictly advance */
            NT_CHECK(c->entries[i].cookie <= COOKIE_MAX); /* A5 */
            NT_CHECK(c->entries[i].fileid != 0 && c->entries[i].fileid <= COOKIE_MAX);
            cookie = c->entries[i].cookie;
            census_add(s, c->entries[i].name);
        }
        if (c->r.eof) {
            return;
        }
        NT_CHECK(c->r.nentries > 0);
        NT_CHECK(pages < 100000);
    }
}

/* A2: READDIR alone, small pages. */
static void t_readdir_pages(struct nt_env *e)
{
    static const uint32_t counts[] = {512, 4096, 65536, 1u << 20};
    struct nt *c = e->root;

    fill_dir(c, &e->dir, 2500);
    for (unsigned i = 0; i < 4; i++) {
        struct census s;

        census_init(&s, 2500);
        list_all(c, &e->dir, false, counts[i], &s);
        census_check(&s, 0);
        census_init(&s, 2500);
        list_all(c, &e->dir, true, counts[i], &s);
        census_check(&s, 0);
    }
}

/* A5: the same number in GETATTR, READDIR and READDIRPLUS; handles and attributes agree. */
static void t_fileids(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_entry *plus;
    unsigned n;

    fill_dir(c, &e->dir, 50);
    NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, 65536, 65536));
    n = c->r.nentries;
    NT_EQ(n, 52);
    plus = calloc(n, sizeof(*plus));
    memcpy(plus, c->entries, n * sizeof(*plus));
    NT_OK(nt_readdir(c, &e->dir, 0, NULL, 65536));
    NT_EQ(c->r.nentries, n);
    for (unsigned i = 0; i < n; i++) {
        NT_CHECK(strcmp(plus[i].name, c->entries[i].name) == 0);
        NT_EQ(plus[i].fileid, c->entries[i].fileid);
        NT_EQ(plus[i].cookie, c->entries[i].cookie);
    }
    for (unsigned i = 0; i < n; i++) {
        NT_OK(nt_lookup(c, &e->dir, plus[i].name));
        NT_EQ(c->r.attr.fileid, plus[i].fileid);
        if (plus[i].have_fh) {
            NT_CHECK(nt_fh_eq(&c->r.fh, &plus[i].fh));
        }
        NT_CHECK(plus[i].have_attr);
        NT_EQ(plus[i].attr.fileid, plus[i].fileid);
        NT_EQ(plus[i].attr.type, c->r.attr.type);
    }
    free(plus);
}

/* A1: names are removed while the listing goes on. */
static void remove_while_listing(struct nt_env *e, bool plus, bool restart)
{
    struct nt *c = e->root;
    struct nt_fh d;
    struct census s;
    uint64_t cookie = 0;
    char verf[8] = {0}, name[260];
    bool eof = false;
    unsigned n = restart ? 1000 : 5000;

    snprintf(name, sizeof(name), "d%d%d", plus, restart);
    nt_mk_dir(c, &e->dir, name, 0755, &d);
    fill_dir(c, &d, n);
    census_init(&s, n);
    for (unsigned page = 0; !eof; page++) {
        struct nt_entry *page_entries;
        unsigned k;

        NT_OK(plus ? nt_readdirplus(c, &d, cookie, verf, 4096, 4096)
                   : nt_readdir(c, &d, cookie, verf, 4096));
        memcpy(verf, c->r.verf, 8);
        eof = c->r.eof;
        k = c->r.nentries;
        page_entries = calloc(k + 1, sizeof(*page_entries));
        memcpy(page_entries, c->entries, k * sizeof(*page_entries));
        for (unsigned i = 0; i < k; i++) {
            cookie = page_entries[i].cookie;
            census_add(&s, page_entries[i].name);
            if (page_entries[i].name[0] == 'f') {
                NT_OK(nt_remove(c, &d, page_entries[i].name));
            }
        }
        free(page_entries);
        if (restart && page == 2) {
            nt_node_kill(&e->node, SIGTERM);
            nt_node_start(&e->node);
            nt_reconnect(e);
            c = e->root;
        }
    }
    census_check(&s, 0);
    NT_OK(nt_rmdir(c, &e->dir, name));
}

static void t_remove_while_listing(struct nt_env *e)
{
    remove_while_listing(e, true, false);
    remove_while_listing(e, false, false);
}

static void t_remove_listing_restart(struct nt_env *e)
{
    remove_while_listing(e, true, true);
    remove_while_listing(e, false, true);
}

/* Names that come while a listing goes on may show or not; those that stay show exactly once. */
static void t_create_while_listing(struct nt_env *e)
{
    struct nt *c = e->root;
    struct census s;
    uint64_t cookie = 0;
    char name[32];
    unsigned extra = 0;
    bool eof = false;

    fill_dir(c, &e->dir, 2000);
    census_init(&s, 2000);
    while (!eof) {
        NT_OK(nt_readdir(c, &e->dir, cookie, NULL, 2048));
        eof = c->r.eof;
        for (unsigned i = 0; i < c->r.nentries; i++) {
            cookie = c->entries[i].cookie;
            if (c->entries[i].name[0] != 'n') {
                census_add(&s, c->entries[i].name);
            }
        }
        for (unsigned i = 0; i < 5 && extra < 500; i++) {
            snprintf(name, sizeof(name), "n%u", extra++);
            NT_OK(nt_create(c, &e->dir, name, UNCHECKED, &NT_SET_NONE, NULL));
        }
    }
    census_check(&s, 0);
}

static void t_budgets(struct nt_env *e)
{
    static const uint32_t sizes[] = {300, 400, 512, 700, 1000, 1500, 3000, 8192, 20000, 40000};
    struct nt *c = e->root;
    char name[256];

    memset(name, 'L', sizeof(name));
    for (unsigned i = 0; i < 200; i++) { /* names of all lengths */
        name[50 + i] = '\0';
        NT_OK(nt_create(c, &e->dir, name, UNCHECKED, &NT_SET_NONE, NULL));
        name[50 + i] = 'L';
    }
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        NT_OK(nt_readdir(c, &e->dir, 0, NULL, sizes[i]));
        NT_CHECK(c->r.reply_bytes <= sizes[i]);
        NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, sizes[i], sizes[i]));
        NT_CHECK(c->r.reply_bytes <= sizes[i]);
        NT_CHECK(c->r.nentries >= 1);
        /* dircount bounds the names alone; whatever it is, a listing must get on */
        NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, sizes[i], 1u << 20));
        NT_CHECK(c->r.nentries >= 1);
    }
    NT_STATUS(nt_readdir(c, &e->dir, 0, NULL, 16), NFS3ERR_TOOSMALL);
    NT_STATUS(nt_readdirplus(c, &e->dir, 0, NULL, 16, 16), NFS3ERR_TOOSMALL);
    NT_STATUS(nt_readdir(c, &e->dir, 0, NULL, 0), NFS3ERR_TOOSMALL);
    NT_OK(nt_readdir(c, &e->dir, 0, NULL, UINT32_MAX)); /* more than fits is less than asked */
    NT_OK(nt_readdirplus(c, &e->dir, 0, NULL, UINT32_MAX, UINT32_MAX));
}

static void t_errors(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh file, gone;

    nt_mk_file(c, &e->dir, "file", 0644, &file);
    nt_mk_dir(c, &e->dir, "gone", 0755, &gone);
    NT_OK(nt_readdir(c, &gone, 0, NULL, 4096)); /* an empty directory: "." and ".." */
    NT_EQ(c->r.nentries, 2);
    NT_CHECK(c->r.eof);
    NT_OK(nt_rmdir(c, &e->dir, "gone"));
    NT_STATUS(nt_readdir(c, &file, 0, NULL, 4096), NFS3ERR_NOTDIR);
    NT_STATUS(nt_readdirplus(c, &file, 0, NULL, 4096, 4096), NFS3ERR_NOTDIR);
    NT_STATUS(nt_readdir(c, &gone, 0, NULL, 4096), NFS3ERR_STALE);
    NT_STATUS(nt_readdirplus(c, &gone, 0, NULL, 4096, 4096), NFS3ERR_STALE);
    NT_ONE_OF(nt_readdir(c, &e->dir, UINT64_MAX, NULL, 4096), NFS3ERR_BAD_COOKIE, NFS3_OK);
    if (c->r.status == NFS3_OK) {
        NT_EQ(c->r.nentries, 0);
        NT_CHECK(c->r.eof);
    }
}

/* C3: a thousand names of one file in ten directories, counted, then removed, the first one first.
 */
static void t_many_links(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh file, dirs[10];
    char name[32];

    nt_mk_file(c, &e->dir, "first", 0644, &file);
    for (unsigned d = 0; d < 10; d++) {
        snprintf(name, sizeof(name), "d%u", d);
        nt_mk_dir(c, &e->dir, name, 0755, &dirs[d]);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "l%u", i);
        NT_OK(nt_link(c, &file, &dirs[i % 10], name));
        NT_EQ(c->r.attr.nlink, i + 2);
    }
    NT_OK(nt_remove(c, &e->dir, "first"));
    for (unsigned i = 0; i < 1000; i++) {
        NT_OK(nt_getattr(c, &file));
        NT_EQ(c->r.attr.nlink, 1000 - i);
        snprintf(name, sizeof(name), "l%u", i);
        NT_OK(nt_remove(c, &dirs[i % 10], name));
    }
    NT_STATUS(nt_getattr(c, &file), NFS3ERR_STALE);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"readdir_pages", t_readdir_pages, false},
        {"fileids", t_fileids, false},
        {"remove_while_listing", t_remove_while_listing, false},
        {"remove_listing_restart", t_remove_listing_restart, true},
        {"create_while_listing", t_create_while_listing, false},
        {"budgets", t_budgets, false},
        {"errors", t_errors, false},
        {"many_links", t_many_links, false},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

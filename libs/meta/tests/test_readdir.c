/* SPDX-License-Identifier: Apache-2.0
 *
 * READDIR: cookies, pages, removal between pages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support_meta.h"

struct list {
    char (*names)[256];
    uint64_t *cookies;
    size_t n;
};

static void list_fini(struct list *l)
{
    free(l->names);
    free(l->cookies);
}

static void list_add(struct list *l, const Hf__Dirent *e)
{
    if (l->n % 1024 == 0) {
        l->names = realloc(l->names, (l->n + 1024) * sizeof(l->names[0]));
        l->cookies = realloc(l->cookies, (l->n + 1024) * sizeof(l->cookies[0]));
        cr_assert(l->names && l->cookies);
    }
    memcpy(l->names[l->n], e->name.data, e->name.len);
    l->names[l->n][e->name.len] = 0;
    l->cookies[l->n++] = e->cookie;
}

static int page(struct shard *s, struct fh d, uint64_t cookie, uint32_t bytes, uint32_t overhead,
                uint32_t entries, bool plus, const Hf__ReaddirRep **p)
{
    Hf__ReaddirReq q = HF__READDIR_REQ__INIT;

    q.cred = &t_root;
    q.dir = d.ino;
    q.gen = d.gen;
    q.cookie = cookie;
    q.max_bytes = bytes;
    q.entry_overhead = overhead;
    q.max_entries = entries;
    q.plus = plus;
    return do_readdir(s, &q, p);
}

/* Lists all; with remove: takes away every name of a page before asking for the next one. */
static void list_all(struct shard *s, struct fh d, uint32_t bytes, bool plus, bool remove,
                     bool reopen, struct list *l)
{
    const Hf__ReaddirRep *p;
    uint64_t cookie = 0;
    bool eof = false;

    for (unsigned pages = 0; !eof; pages++) {
        size_t first = l->n;

        cr_ok(page(s, d, cookie, bytes, plus ? 160 : 24, 0, plus, &p));
        cr_assert(p->n_entries || p->eof);
        for (size_t k = 0; k < p->n_entries; k++) {
            const Hf__Dirent *e = p->entries[k];

            cr_assert(e->cookie > cookie && e->cookie <= INT64_MAX, "cookies advance, below 2^63");
            cookie = e->cookie;
            cr_assert(!plus || (e->attr && e->attr->ino == e->ino && e->attr->type == e->type));
            cr_assert(plus || !e->attr);
            list_add(l, e);
        }
        eof = p->eof;
        for (size_t k = first; remove && k < l->n; k++)
            if (l->names[k][0] != '.')
                cr_ok(t_remove(s, &t_root, d, l->names[k], false));
        if (reopen && pages == 3)
            shard_reopen(s);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void expect_unique(struct list *l, size_t n)
{
    cr_assert_eq(l->n, n, "%zu names, want %zu", l->n, n);
    cr_assert_str_eq(l->names[0], ".");
    cr_assert_str_eq(l->names[1], "..");
    cr_assert(l->cookies[0] == 1 && l->cookies[1] == 2);
    qsort(l->names, l->n, sizeof(l->names[0]), by_name);
    for (size_t k = 1; k < l->n; k++)
        cr_assert_str_neq(l->names[k - 1], l->names[k]);
}

static void fill(struct shard *s, unsigned n, struct fh *d)
{
    char name[32];

    cr_ok(t_make(s, &t_root, t_root_dir, "d", DIR_, 0755, d));
    for (unsigned k = 0; k < n; k++) {
        snprintf(name, sizeof(name), "file-%u", k);
        cr_ok(t_create(s, &t_root, *d, name, 0644, NULL));
    }
}

BOTH_STORES(readdir, pages)
{
    struct shard s;
    struct fh d;

    shard_open(&s, kind);
    fill(&s, 10000, &d);
    for (int plus = 0; plus < 2; plus++) {
        static const uint32_t sizes[] = {600, 4096, 65536, 1 << 20, UINT32_MAX};

        for (size_t k = 0; k < HF_ARRAY_LEN(sizes); k++) {
            struct list l = {0};

            list_all(&s, d, sizes[k], plus, false, false, &l);
            expect_unique(&l, 10002);
            list_fini(&l);
        }
    }
    shard_close(&s);
}

/* A1 */
BOTH_STORES(readdir, remove_between_pages)
{
    for (int plus = 0; plus < 2; plus++) {
        struct list l = {0};
        struct shard s;
        struct fh d;

        shard_open(&s, kind);
        fill(&s, 5000, &d);
        list_all(&s, d, 4096, plus, true, true, &l);
        expect_unique(&l, 5002);
        cr_ok(t_remove(&s, &t_root, t_root_dir, "d", true));
        cr_assert_eq(shard_check(&s, NULL), 0);
        list_fini(&l);
        shard_close(&s);
    }
}

/* Names of one bucket, more than a page of them, with gaps. */
BOTH_STORES(readdir, one_bucket)
{
    struct list l = {0};
    struct shard s;
    struct fh d;
    char name[12] = {0};

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    for (unsigned k = 0; k < 512; k++) {
        for (unsigned b = 0; b < 9; b++)
            name[b] = (k >> b & 1) ? 'B' : 'b';
        cr_ok(t_create(&s, &t_root, d, name, 0644, NULL));
    }
    for (unsigned k = 0; k < 512; k += 3) {
        for (unsigned b = 0; b < 9; b++)
            name[b] = (k >> b & 1) ? 'B' : 'b';
        cr_ok(t_remove(&s, &t_root, d, name, false));
    }
    list_all(&s, d, 1024, true, false, false, &l);
    expect_unique(&l, 512 - 171 + 2);
    list_fini(&l);
    shard_close(&s);
}

BOTH_STORES(readdir, limits)
{
    const Hf__ReaddirRep *p;
    struct shard s;
    struct fh d, f;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0755, &d));
    cr_ok(t_create(&s, &t_root, d, "123456789", 0644, &f)); /* 9 bytes count as 12 */
    cr_status(page(&s, d, 0, 0, 24, 0, false, &p), HF_E_TOOSMALL);
    cr_status(page(&s, d, 0, 27, 24, 0, false, &p), HF_E_TOOSMALL);
    cr_ok(page(&s, d, 0, 28, 24, 0, false, &p));
    cr_assert(p->n_entries == 1 && !p->eof && p->dir);
    cr_ok(page(&s, d, 0, 28 * 2 + 35, 24, 0, false, &p));
    cr_assert(p->n_entries == 2 && !p->eof);
    cr_ok(page(&s, d, 0, 28 * 2 + 36, 24, 0, false, &p));
    cr_assert(p->n_entries == 3 && p->eof);
    cr_assert(p->entries[0]->ino == d.ino && p->entries[1]->ino == t_root_dir.ino &&
              p->entries[2]->ino == f.ino);
    cr_status(page(&s, d, 2, 35, 24, 0, false, &p), HF_E_TOOSMALL);
    cr_ok(page(&s, d, 0, 4096, 24, 2, false, &p));
    cr_assert(p->n_entries == 2 && !p->eof);
    cr_ok(page(&s, d, INT64_MAX, 4096, 24, 0, false, &p));
    cr_assert(p->n_entries == 0 && p->eof);
    cr_status(page(&s, d, UINT64_C(1) << 63, 4096, 24, 0, false, &p), HF_E_BAD_COOKIE);
    cr_status(page(&s, d, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX, false, &p), HF_E_TOOSMALL);
    cr_status(page(&s, f, 0, 4096, 24, 0, false, &p), HF_E_NOTDIR);
    cr_assert(p->dir);
    d.gen++;
    cr_status(page(&s, d, 0, 4096, 24, 0, false, &p), HF_E_STALE);
    shard_close(&s);
}

/* Read without search permission: names, but no attributes. */
BOTH_STORES(readdir, attributes_need_search)
{
    Hf__ReaddirReq q = HF__READDIR_REQ__INIT;
    const Hf__ReaddirRep *p;
    struct shard s;
    struct fh d;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0744, &d));
    cr_ok(t_create(&s, &t_root, d, "f", 0644, NULL));
    q.cred = &t_u1;
    q.dir = d.ino;
    q.gen = d.gen;
    q.max_bytes = 4096;
    q.plus = true;
    cr_ok(do_readdir(&s, &q, &p));
    cr_assert(p->n_entries == 3 && !p->entries[2]->attr);
    cr_ok(t_chmod(&s, &t_root, d, 0711));
    cr_status(do_readdir(&s, &q, &p), HF_E_ACCES);
    shard_close(&s);
}

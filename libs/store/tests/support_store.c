/* SPDX-License-Identifier: Apache-2.0 */
#include "support_store.h"
#include "holdfast/err.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *const test_tables[3] = {"one", "two", "three"};

char *temp_dir_new(void)
{
    const char *base = getenv("TMPDIR");
    struct hf_buf b = {0};

    cr_assert_eq(hf_buf_printf(&b, "%s/hf-store-XXXXXX", base ? base : "/tmp"), 0);
    cr_assert_eq(hf_buf_append(&b, "", 1), 0);
    cr_assert_not_null(mkdtemp((char *)b.data));
    return (char *)b.data;
}

void temp_dir_free(char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[1024];

    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (unlink(path) != 0) {
            char *sub = strdup(path);

            cr_assert_not_null(sub);
            temp_dir_free(sub);
        }
    }
    if (d)
        closedir(d);
    rmdir(dir);
    free(dir);
}

uint64_t rnd(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

struct hf_store_opts test_opts(enum hf_store_kind kind, const char *dir)
{
    return (struct hf_store_opts){.kind = kind,
                                  .dir = dir,
                                  .tables = test_tables,
                                  .ntables = 3,
                                  .format = 7,
                                  .map_bytes = 256u << 20,
                                  .reserve_bytes = 1u << 20};
}

static int cmp(const struct model_entry *e, unsigned table, struct hf_slice key)
{
    size_t n = e->klen < key.len ? e->klen : key.len;
    int c;

    if (e->table != table)
        return e->table < table ? -1 : 1;
    c = n ? memcmp(e->key, key.data, n) : 0;
    return c ? c : (e->klen > key.len) - (e->klen < key.len);
}

size_t model_find(const struct model *m, unsigned table, struct hf_slice key, bool *ret_equal)
{
    size_t lo = 0, hi = m->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (cmp(&m->e[mid], table, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_equal = lo < m->n && cmp(&m->e[lo], table, key) == 0;
    return lo;
}

static uint8_t *dup_bytes(struct hf_slice s)
{
    uint8_t *p = malloc(s.len + 1);

    cr_assert_not_null(p);
    if (s.len)
        memcpy(p, s.data, s.len);
    return p;
}

void model_fini(struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->e[i].key);
        free(m->e[i].val);
    }
    free(m->e);
    *m = (struct model){0};
}

void model_put(struct model *m, unsigned table, struct hf_slice key, struct hf_slice val)
{
    bool equal;
    size_t i = model_find(m, table, key, &equal);

    if (!equal) {
        if (m->n == m->cap) {
            m->cap = m->cap ? m->cap * 2 : 64;
            m->e = realloc(m->e, m->cap * sizeof(*m->e));
            cr_assert_not_null(m->e);
        }
        memmove(m->e + i + 1, m->e + i, (m->n - i) * sizeof(*m->e));
        m->n++;
        m->e[i] = (struct model_entry){.table = table, .klen = key.len, .key = dup_bytes(key)};
    }
    free(m->e[i].val);
    m->e[i].val = dup_bytes(val);
    m->e[i].vlen = val.len;
}

bool model_del(struct model *m, unsigned table, struct hf_slice key)
{
    bool equal;
    size_t i = model_find(m, table, key, &equal);

    if (!equal)
        return false;
    free(m->e[i].key);
    free(m->e[i].val);
    m->n--;
    memmove(m->e + i, m->e + i + 1, (m->n - i) * sizeof(*m->e));
    return true;
}

void model_check(const struct model *m, struct hf_store *s)
{
    size_t i = 0;

    for (unsigned t = 0; t < 3; t++) {
        struct hf_store_iter it;
        struct hf_slice k, v, got;
        uint64_t n = 0;
        int rc;

        cr_assert_eq(hf_store_seek(s, t, hf_slice("", 0), hf_slice("", 0), &it), 0);
        while ((rc = hf_store_next(&it, &k, &v)) == 0) {
            cr_assert_lt(i, m->n, "more entries than the model");
            cr_assert_eq(m->e[i].table, t);
            cr_assert(hf_slice_eq(k, hf_slice(m->e[i].key, m->e[i].klen)), "key of entry %zu", i);
            cr_assert(hf_slice_eq(v, hf_slice(m->e[i].val, m->e[i].vlen)), "value of entry %zu", i);
            cr_assert_eq(hf_store_get(s, t, hf_slice(m->e[i].key, m->e[i].klen), &got), 0);
            cr_assert(hf_slice_eq(got, v));
            i++;
            n++;
        }
        cr_assert_eq(rc, HF_E_NOENT);
        hf_store_iter_end(&it);
        hf_store_iter_end(&it);
        cr_assert_eq(hf_store_count(s, t), n);
    }
    cr_assert_eq(i, m->n, "fewer entries than the model: %zu of %zu", i, m->n);
}

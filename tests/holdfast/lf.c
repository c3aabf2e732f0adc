/* SPDX-License-Identifier: Apache-2.0 */
#include "lf.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const struct hf_user lf_root, lf_user = {.uid = 1000, .gid = 1000};

static const char *name_of(int64_t v, char *buf, size_t cap)
{
    snprintf(buf, cap, "%lld%s%s", (long long)v, v < 0 ? " " : "",
             v < 0 && v > -4096 ? strerrorname_np((int)-v) : "");
    return buf;
}

void lf_is(const char *file, int line, const char *what, int64_t got, int64_t want)
{
    char a[64], b[64];

    if (got != want) {
        nt_fail(file, line, "%s returns %s, expected %s", what, name_of(got, a, sizeof(a)),
                name_of(want, b, sizeof(b)));
    }
}

struct hf_fs *lf_open(struct nt_env *e, const struct hf_fs_opts *o)
{
    struct hf_fs_opts all = o != NULL ? *o : (struct hf_fs_opts){0};
    struct hf_fs *fs = NULL;
    char url[400];

    snprintf(url, sizeof(url), "ipc://%s/data/run/meta-0.sock", e->node.dir);
    all.struct_size = sizeof(all);
    all.url = url;
    if (all.name == NULL) {
        all.name = "test";
    }
    LF_OK(hf_fs_open(&all, &fs));
    return fs;
}

void lf_close(struct hf_fs *fs)
{
    LF_OK(hf_fs_close(fs));
}

struct hf_handle lf_dir(struct nt_env *e, struct hf_fs *fs)
{
    struct hf_attr a;

    LF_OK(hf_lookup(fs, &lf_root, hf_root(fs), e->dir_name, &a));
    return a.handle;
}

struct hf_file *lf_create(struct hf_fs *fs, struct hf_handle dir, const char *name, int flags)
{
    struct hf_file *f = NULL;

    LF_OK(hf_create(fs, &lf_root, dir, name, O_RDWR | O_EXCL | flags, 0644, 0, &f, NULL));
    return f;
}

struct hf_file *lf_open_name(struct hf_fs *fs, struct hf_handle dir, const char *name, int flags)
{
    struct hf_file *f = NULL;
    struct hf_attr a;

    LF_OK(hf_lookup(fs, &lf_root, dir, name, &a));
    LF_OK(hf_open(fs, &lf_root, a.handle, flags, &f));
    return f;
}

void lf_put(struct hf_file *f, uint32_t seed, uint64_t off, size_t len)
{
    uint8_t *b = malloc(len);

    NT_CHECK(b != NULL);
    nt_pattern(seed, off, b, len);
    LF_IS(hf_write(f, b, len, off), (int64_t)len);
    free(b);
}

void lf_check(struct hf_file *f, uint32_t seed, uint64_t off, size_t len)
{
    uint8_t *b = malloc(len);
    int64_t n;
    bool ok;

    NT_CHECK(b != NULL);
    n = hf_read(f, b, len, off);
    ok = n == (int64_t)len && nt_pattern_ok(seed, off, b, len);
    free(b);
    if (!ok) {
        nt_fail(__FILE__, __LINE__, "%zu bytes at %llu: %lld read, or others", len,
                (unsigned long long)off, (long long)n);
    }
}

void lf_check_zero(struct hf_file *f, uint64_t off, size_t len)
{
    uint8_t *b = malloc(len);
    int64_t n;

    NT_CHECK(b != NULL);
    n = hf_read(f, b, len, off);
    LF_IS(n, (int64_t)len);
    for (size_t i = 0; i < len; i++) {
        if (b[i] != 0) {
            nt_fail(__FILE__, __LINE__, "byte %llu is %u, not 0", (unsigned long long)off + i,
                    b[i]);
        }
    }
    free(b);
}

uint64_t lf_size(struct hf_fs *fs, struct hf_handle h)
{
    struct hf_attr a;

    LF_OK(hf_getattr(fs, h, &a));
    return a.size;
}

struct hf_fs_stats lf_stats(struct hf_fs *fs)
{
    struct hf_fs_stats st = {.struct_size = sizeof(st)};

    hf_fs_stats(fs, &st);
    return st;
}

void lf_until(bool (*cond)(void *arg), void *arg, const char *what)
{
    uint64_t deadline = nt_now_ns() + 10000000000ull;
    struct timespec ts = {.tv_nsec = 1000000};

    while (!cond(arg)) {
        if (nt_now_ns() > deadline) {
            nt_fail(__FILE__, __LINE__, "not within 10 s: %s", what);
        }
        nanosleep(&ts, NULL); /* between two looks at a condition with a deadline */
    }
}

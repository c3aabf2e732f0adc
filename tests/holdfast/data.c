/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes: write-behind, reading ahead, bounds, appends, close-to-open.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lf.h"

#define MIB (1u << 20)

static const size_t sizes[] = {1,       511, 4096,    8191,    8192,        8193,    100000,
                               MIB - 1, MIB, MIB + 1, 4 * MIB, 4 * MIB + 5, 9 * MIB, 20 * MIB + 3};

/* Each size: written, read before it is sent, after the flush, after fsync, and by another client.
 */
static void t_sizes(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL), *other = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);

    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        char name[32];
        struct hf_file *f, *g;

        snprintf(name, sizeof(name), "s%zu", sizes[k]);
        f = lf_create(fs, dir, name, 0);
        lf_put(f, 7, 0, sizes[k]);
        NT_EQ(lf_size(fs, hf_file_handle(f)), sizes[k]);
        lf_check(f, 7, 0, sizes[k]);
        LF_OK(hf_flush(f));
        lf_check(f, 7, 0, sizes[k]);
        LF_OK(hf_fsync(f, false));
        lf_check(f, 7, 0, sizes[k]);
        LF_OK(hf_close(f));
        g = lf_open_name(other, dir, name, O_RDONLY);
        NT_EQ(lf_size(other, hf_file_handle(g)), sizes[k]);
        lf_check(g, 7, 0, sizes[k]);
        LF_OK(hf_close(g));
    }
    NT_EQ(lf_stats(fs).dirty_bytes, 0);
    lf_close(other);
    lf_close(fs);
}

/* Random pieces over each other, compared with memory, with a flush or an fsync now and then. */
static void t_pieces(struct nt_env *e)
{
    enum { BYTES = 6 * MIB };
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_file *f = lf_create(fs, lf_dir(e, fs), "pieces", 0);
    uint8_t *mem = calloc(1, BYTES), *buf = malloc(BYTES);
    unsigned seed = 5;
    size_t size = 0;

    for (unsigned k = 0; k < 2000; k++) {
        size_t off = (size_t)rand_r(&seed) % BYTES,
               len = (size_t)rand_r(&seed) % (k % 8 ? 9000 : 700000);

        len = len > BYTES - off ? BYTES - off : len;
        if (k % 3) {
            for (size_t i = 0; i < len; i++) {
                mem[off + i] = (uint8_t)rand_r(&seed);
            }
            LF_IS(hf_write(f, mem + off, len, off), (int64_t)len);
            size = len && off + len > size ? off + len : size;
        } else {
            int64_t want = off >= size ? 0 : (int64_t)(len < size - off ? len : size - off);

            LF_IS(hf_read(f, buf, len, off), want);
            NT_CHECK(memcmp(buf, mem + off, (size_t)want) == 0);
        }
        if (k % 50 == 0) {
            LF_OK(k % 100 ? hf_flush(f) : hf_fsync(f, false));
        }
        if (k % 70 == 0) {
            struct hf_setattr set = {.set = HF_SET_SIZE, .size = size / 2};
            struct hf_attr a;

            LF_OK(hf_setattr(fs, &lf_root, hf_file_handle(f), f, &set, &a));
            NT_EQ(a.size, size / 2);
            memset(mem + size / 2, 0, BYTES - size / 2);
            size /= 2;
        }
        if (k % 20 == 0) {
            NT_EQ(lf_size(fs, hf_file_handle(f)), size);
        }
    }
    LF_IS(hf_read(f, buf, BYTES, 0), (int64_t)size);
    NT_CHECK(memcmp(buf, mem, size) == 0);
    LF_OK(hf_close(f));
    free(mem);
    free(buf);
    lf_close(fs);
}

/* What one has closed, the other sees when it opens; what is read ahead does not hide it. */
static void t_close_to_open(struct nt_env *e)
{
    struct hf_fs *a = lf_open(e, NULL), *b = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, a);
    struct hf_file *f = lf_create(a, dir, "cto", 0);

    for (uint32_t k = 0; k < 8; k++) {
        size_t len = 3 * MIB + 1000 * k;
        struct hf_file *g;

        lf_put(f, k, 0, len);
        LF_OK(k % 2 ? hf_flush(f) : hf_fsync(f, true));
        g = lf_open_name(b, dir, "cto", O_RDONLY);
        NT_EQ(lf_size(b, hf_file_handle(g)), len);
        for (size_t off = 0; off < len; off += 100000) {
            lf_check(g, k, off, len - off < 100000 ? len - off : 100000);
        }
        LF_OK(hf_close(g));
    }
    NT_CHECK(lf_stats(b).cache_hits > 0);
    for (uint32_t k = 0; k < 4; k++) { /* not committed here, cut there */
        struct hf_setattr cut = {.set = HF_SET_SIZE, .size = 100 + k};
        struct hf_file *g;
        struct hf_attr attr;
        uint8_t bytes[200];

        lf_put(f, k, 0, 1000);
        LF_OK(hf_flush(f));
        LF_OK(hf_setattr(b, &lf_root, hf_file_handle(f), NULL, &cut, &attr));
        g = lf_open_name(a, dir, "cto", O_RDONLY);
        NT_EQ(lf_size(a, hf_file_handle(g)), 100 + k);
        LF_IS(hf_read(g, bytes, sizeof(bytes), 0), 100 + k);
        LF_OK(hf_close(g));
    }
    LF_OK(hf_close(f));
    lf_close(b);
    lf_close(a);
}

/* A long file in order: everything comes right, most of it was there before it was asked for; a
 * write in between is seen. */
static void t_readahead(struct nt_env *e)
{
    enum { LEN = 40 * MIB, STEP = 128 << 10 };
    struct hf_fs_opts o = {.readahead_max = 16 * MIB};
    struct hf_fs *fs = lf_open(e, &o);
    struct hf_file *f = lf_create(fs, lf_dir(e, fs), "long", 0);
    uint64_t hits;

    lf_put(f, 1, 0, LEN);
    LF_OK(hf_fsync(f, false));
    for (uint64_t off = 0; off < LEN; off += STEP) {
        lf_check(f, 1, off, STEP);
        NT_CHECK(lf_stats(fs).readahead_bytes <= o.readahead_max);
    }
    hits = lf_stats(fs).cache_hits;
    NT_CHECK(hits > LEN / STEP / 2);
    for (uint64_t off = 0; off < 10 * MIB; off += STEP) {
        lf_check(f, off == 5 * MIB ? 2 : 1, off, STEP);
        if (off == 4 * MIB) {
            lf_put(f, 2, 5 * MIB, STEP);
        }
    }
    hits = lf_stats(fs).cache_hits;
    for (unsigned k = 0; k < 50; k++) { /* here and there: nothing is fetched in advance */
        lf_check(f, 1, (uint64_t)(k * 7919 % 150 + 160) * STEP + k, 5000);
    }
    NT_EQ(lf_stats(fs).cache_hits, hits);
    LF_OK(hf_close(f));
    NT_EQ(lf_stats(fs).readahead_bytes, 0);
    lf_close(fs);
}

struct appender {
    pthread_t thread;
    struct hf_fs *fs;
    struct hf_handle h;
    uint32_t who, n, len;
    int64_t failed;
};

/* Records: who and which in the first 8 bytes, then bytes of the pattern. */
static void record_make(uint8_t *b, uint32_t who, uint32_t k, uint32_t len)
{
    memcpy(b, &who, 4);
    memcpy(b + 4, &k, 4);
    nt_pattern(who, (uint64_t)k * len, b + 8, len - 8);
}

static void *append_main(void *arg)
{
    struct appender *a = arg;
    uint8_t *b = malloc(a->len);
    struct hf_file *f;

    a->failed = hf_open(a->fs, &lf_root, a->h, O_WRONLY | O_APPEND, &f);
    for (uint32_t k = 0; k < a->n && a->failed == 0; k++) {
        int64_t n;

        record_make(b, a->who, k, a->len);
        n = hf_write(f, b, a->len, 12345);
        a->failed = n == a->len ? 0 : n < 0 ? n : -EIO;
    }
    free(b);
    if (a->failed == 0) {
        a->failed = hf_close(f);
    }
    return NULL;
}

static void append_from_two(struct nt_env *e, const char *name, uint32_t n, uint32_t len)
{
    struct hf_fs *fs[2] = {lf_open(e, NULL), lf_open(e, NULL)};
    struct hf_handle dir = lf_dir(e, fs[0]);
    struct hf_file *f = lf_create(fs[0], dir, name, 0);
    struct appender a[4];
    uint8_t *b = malloc(len), *want = malloc(len);
    uint32_t next[4] = {0};

    for (uint32_t k = 0; k < 4; k++) {
        a[k] = (struct appender){
            .fs = fs[k % 2], .h = hf_file_handle(f), .who = k, .n = n, .len = len};
        NT_CHECK(pthread_create(&a[k].thread, NULL, append_main, &a[k]) == 0);
    }
    for (uint32_t k = 0; k < 4; k++) {
        pthread_join(a[k].thread, NULL);
    }
    for (uint32_t k = 0; k < 4; k++) {
        LF_OK(a[k].failed);
    }
    NT_EQ(lf_size(fs[0], hf_file_handle(f)), (uint64_t)4 * n * len);
    for (uint32_t k = 0; k < 4 * n; k++) {
        uint32_t who;

        LF_IS(hf_read(f, b, len, (uint64_t)k * len), len);
        memcpy(&who, b, 4);
        NT_CHECK(who < 4);
        record_make(want, who, next[who]++, len);
        NT_CHECK(memcmp(b, want, len) == 0);
    }
    free(b);
    free(want);
    LF_OK(hf_close(f));
    lf_close(fs[1]);
    lf_close(fs[0]);
}

/* Every record once, whole, each writer's in its order; small files and such as lie in chunks. */
static void t_append(struct nt_env *e)
{
    append_from_two(e, "log.small", 20, 100);
    append_from_two(e, "log.grows", 60, 1000);
    append_from_two(e, "log.large", 20, 70000);
}

/* Buffered bytes go first: an append lands behind them. */
static void t_append_after_buffered(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "mixed", 0);
    struct hf_file *g = lf_open_name(fs, dir, "mixed", O_WRONLY | O_APPEND);

    lf_put(f, 3, 0, 50000);
    LF_IS(hf_write(g, "tail", 4, 0), 4);
    NT_EQ(lf_size(fs, hf_file_handle(f)), 50004);
    lf_check(f, 3, 0, 50000);
    LF_OK(hf_close(g));
    LF_OK(hf_close(f));
    lf_close(fs);
}

/* Writers wait when the buffers are full: memory stays within the bound. */
static void t_bounds(struct nt_env *e)
{
    struct hf_fs_opts o = {.dirty_max_bytes = 4 * MIB, .file_dirty_bytes = 2 * MIB};
    struct hf_fs *fs = lf_open(e, &o);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f[6];

    for (unsigned k = 0; k < 6; k++) {
        char name[16];

        snprintf(name, sizeof(name), "b%u", k);
        f[k] = lf_create(fs, dir, name, 0);
    }
    for (uint64_t off = 0; off < 8 * MIB; off += 300000) {
        for (uint32_t k = 0; k < 6; k++) {
            lf_put(f[k], k, off, 300000);
            NT_CHECK(lf_stats(fs).dirty_bytes <= o.dirty_max_bytes + MIB);
        }
    }
    lf_put(f[0], 9, 0, 5 * MIB); /* more than there is room for at once */
    lf_check(f[0], 9, 0, 5 * MIB);
    for (uint32_t k = 0; k < 6; k++) {
        LF_OK(hf_fsync(f[k], false));
        lf_check(f[k], k, 6 * MIB, MIB);
        LF_OK(hf_close(f[k]));
    }
    NT_EQ(lf_stats(fs).dirty_bytes, 0);
    lf_close(fs);
}

static bool nothing_buffered(void *arg)
{
    return lf_stats(arg).dirty_bytes == 0;
}

/* Without being asked, buffered bytes are written soon and then committed. */
static void t_writeback_time(struct nt_env *e)
{
    struct hf_fs_opts o = {.writeback_ms = 100};
    struct hf_fs *fs = lf_open(e, &o), *other = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "soon", 0);

    lf_put(f, 4, 0, 100);
    lf_put(f, 4, 5 * MIB, 100);
    NT_CHECK(lf_stats(fs).dirty_bytes > 0);
    lf_until(nothing_buffered, fs, "buffers are written and committed");
    NT_EQ(lf_size(other, hf_file_handle(f)), 5 * MIB + 100);
    LF_OK(hf_close(f));
    lf_close(other);
    lf_close(fs);
}

/* O_SYNC: nothing is left to lose when the write returns. */
static void t_sync(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL), *other = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "sync", O_SYNC);
    struct hf_file *g = lf_open_name(fs, dir, "sync", O_RDWR);

    lf_put(f, 5, 0, 3000);
    NT_EQ(lf_stats(fs).dirty_bytes, 0);
    NT_EQ(lf_size(other, hf_file_handle(f)), 3000);
    lf_put(g, 6, 1000, 1000); /* buffered: the next stable write comes after it */
    lf_put(f, 5, 1500, 200000);
    NT_EQ(lf_size(other, hf_file_handle(f)), 201500);
    lf_check(f, 5, 0, 1000);
    lf_check(f, 6, 1000, 500);
    lf_check(f, 5, 1500, 200000);
    LF_OK(hf_close(g));
    LF_OK(hf_close(f));
    lf_close(other);
    lf_close(fs);
}

/* Attributes of buffered writes; times that are set are not overwritten by older writes. */
static void t_attributes(struct nt_env *e)
{
    struct hf_fs_opts o = {.threads = 3}; /* names and objects on different engines */
    struct hf_fs *fs = lf_open(e, &o);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_setattr set = {.set = HF_SET_MTIME, .mtime_ns = 1234567890};
    struct hf_attr a, b;

    for (unsigned k = 0; k < 8; k++) {
        char name[16];
        struct hf_file *f;

        snprintf(name, sizeof(name), "a%u", k);
        f = lf_create(fs, dir, name, 0);
        LF_OK(hf_lookup(fs, &lf_root, dir, name, &a));
        NT_EQ(a.size, 0);
        lf_put(f, 1, 0, 777);
        LF_OK(hf_lookup(fs, &lf_root, dir, name, &b));
        NT_EQ(b.size, 777);
        NT_CHECK(b.change != a.change && b.mtime_ns >= a.mtime_ns && b.ctime_ns >= a.ctime_ns);
        LF_OK(hf_setattr(fs, &lf_root, a.handle, f, &set, &b));
        NT_EQ(b.mtime_ns, set.mtime_ns);
        LF_OK(hf_close(f));
        LF_OK(hf_getattr(fs, a.handle, &b));
        NT_EQ(b.mtime_ns, set.mtime_ns);
        NT_EQ(b.size, 777);
    }
    lf_close(fs);
}

/* Holes, reads beyond the end, truncation with buffers, O_TRUNC. */
static void t_holes(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "holes", 0), *g;
    struct hf_setattr cut = {.set = HF_SET_SIZE, .size = 100};
    uint8_t b[16];
    struct hf_attr a;

    lf_put(f, 1, 2 * MIB, 1000);
    lf_check_zero(f, 0, 2 * MIB);
    LF_IS(hf_read(f, b, sizeof(b), 2 * MIB + 1000), 0);
    LF_IS(hf_read(f, b, sizeof(b), 2 * MIB + 995), 5);
    LF_OK(hf_flush(f));
    lf_check_zero(f, 0, 2 * MIB);
    lf_check(f, 1, 2 * MIB, 1000);
    lf_put(f, 2, 0, 5000);
    LF_OK(hf_setattr(fs, &lf_root, hf_file_handle(f), f, &cut, &a));
    NT_EQ(a.size, 100);
    lf_check(f, 2, 0, 100);
    LF_IS(hf_read(f, b, sizeof(b), 100), 0);
    cut.size = 10000;
    LF_OK(hf_setattr(fs, &lf_root, hf_file_handle(f), f, &cut, &a));
    lf_check_zero(f, 100, 9900);
    lf_put(f, 3, 50, 1000);
    g = lf_open_name(fs, dir, "holes", O_RDWR | O_TRUNC);
    NT_EQ(lf_size(fs, hf_file_handle(f)), 0);
    LF_IS(hf_read(f, b, sizeof(b), 0), 0);
    LF_OK(hf_fsync(f, false));
    NT_EQ(lf_size(fs, hf_file_handle(f)), 0);
    LF_IS(hf_write(f, b, 1, INT64_MAX), -EFBIG);
    LF_OK(hf_close(g));
    LF_OK(hf_close(f));
    lf_close(fs);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"sizes", t_sizes, true},
        {"pieces", t_pieces, true},
        {"close_to_open", t_close_to_open, true},
        {"readahead", t_readahead, true},
        {"append", t_append, true},
        {"append_after_buffered", t_append_after_buffered, true},
        {"bounds", t_bounds, true},
        {"writeback_time", t_writeback_time, true},
        {"sync", t_sync, true},
        {"attributes", t_attributes, true},
        {"holes", t_holes, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

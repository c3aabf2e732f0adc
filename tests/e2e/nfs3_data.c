/* SPDX-License-Identifier: Apache-2.0
 *
 * File contents: holes, sizes, transfers of up to 1 MiB, files over the borders of inline content,
 * checksum blocks, chunks and stripes, write verifiers.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/nt.h"

#define MIB (1u << 20)

static uint8_t *buffer(void)
{
    return malloc(NT_IO_MAX);
}

static void write_at(struct nt *c, const struct nt_fh *fh, uint32_t seed, uint64_t off,
                     uint32_t len, uint32_t stable)
{
    uint8_t *b = buffer();

    nt_pattern(seed, off, b, len);
    for (uint32_t at = 0; at < len; at += c->r.count) {
        NT_OK(nt_write(c, fh, off + at, b + at, len - at, stable));
        NT_CHECK(c->r.count > 0 && c->r.committed >= stable);
    }
    free(b);
}

/* [off, off + len) holds the pattern; short reads are allowed before the end only if they get on.
 */
static void check_at(struct nt *c, const struct nt_fh *fh, uint32_t seed, uint64_t off,
                     uint64_t len)
{
    for (uint64_t at = 0; at < len; at += c->r.count) {
        uint32_t n = len - at < MIB ? (uint32_t)(len - at) : MIB;

        NT_OK(nt_read(c, fh, off + at, n));
        NT_CHECK(c->r.count > 0);
        NT_CHECK(nt_pattern_ok(seed, off + at, c->data, c->r.count));
    }
}

static void check_zero(struct nt *c, const struct nt_fh *fh, uint64_t off, uint64_t len)
{
    for (uint64_t at = 0; at < len; at += c->r.count) {
        uint32_t n = len - at < MIB ? (uint32_t)(len - at) : MIB;

        NT_OK(nt_read(c, fh, off + at, n));
        NT_CHECK(c->r.count > 0);
        for (uint32_t i = 0; i < c->r.count; i++) {
            if (c->data[i] != 0) {
                nt_fail(__FILE__, __LINE__, "byte %llu of a hole is 0x%x",
                        (unsigned long long)(off + at + i), c->data[i]);
            }
        }
    }
}

static void check_size(struct nt *c, const struct nt_fh *fh, uint64_t size)
{
    NT_OK(nt_getattr(c, fh));
    NT_EQ(c->r.attr.size, size);
}

static void set_size(struct nt *c, const struct nt_fh *fh, uint64_t size)
{
    struct nt_set s = NT_SET_NONE;

    s.set_size = true;
    s.size = size;
    NT_OK(nt_setattr(c, fh, &s, NULL));
    NT_EQ(c->r.wcc.after.size, size);
}

/* Sizes around every border: inline limit, checksum block, chunk, stripe. */
static void t_borders(struct nt_env *e)
{
    static const uint64_t borders[] = {4096, 8192, 65536, MIB, 4 * MIB, 8 * MIB};
    struct nt *c = e->root;
    char name[16];

    for (unsigned i = 0; i < sizeof(borders) / sizeof(borders[0]); i++) {
        for (int d = -1; d <= 1; d++) {
            uint64_t size = borders[i] + (uint64_t)(int64_t)d;
            struct nt_fh fh;

            name[0] = (char)('a' + (int)i);
            name[1] = (char)('1' + d);
            name[2] = '\0';
            nt_mk_file(c, &e->dir, name, 0644, &fh);
            for (uint64_t at = 0; at < size; at += MIB) {
                write_at(c, &fh, i, at, size - at < MIB ? (uint32_t)(size - at) : MIB, UNSTABLE);
            }
            NT_OK(nt_commit(c, &fh, 0, 0));
            check_size(c, &fh, size);
            check_at(c, &fh, i, 0, size);
            NT_OK(nt_read(c, &fh, size - 1, 10));
            NT_EQ(c->r.count, 1);
            NT_CHECK(c->r.eof);
            write_at(c, &fh, 77, size - 3, 7, FILE_SYNC); /* across the old end */
            check_size(c, &fh, size + 4);
            check_at(c, &fh, 77, size - 3, 7);
            check_at(c, &fh, i, 0, size - 3);
        }
    }
}

static void t_holes(struct nt_env *e)
{
    static const uint64_t offs[] = {10, 9000, 70000, 5 * MIB + 1, 40ull * MIB + 12345};
    struct nt *c = e->root;
    struct nt_fh fh;

    for (unsigned i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
        char name[8] = {'h', (char)('0' + (int)i), '\0'};

        nt_mk_file(c, &e->dir, name, 0644, &fh);
        write_at(c, &fh, i, offs[i], 100, FILE_SYNC);
        check_size(c, &fh, offs[i] + 100);
        check_zero(c, &fh, 0, offs[i]);
        check_at(c, &fh, i, offs[i], 100);
    }
    nt_mk_file(c, &e->dir, "sparse", 0644, &fh);
    write_at(c, &fh, 9, 1ull << 36, 4096, FILE_SYNC); /* 64 GiB of nothing, then a page */
    check_size(c, &fh, (1ull << 36) + 4096);
    check_at(c, &fh, 9, 1ull << 36, 4096);
    check_zero(c, &fh, (1ull << 36) - MIB, MIB);
    check_zero(c, &fh, 1ull << 35, 1000);
}

/* What a file has lost by truncation never comes back. */
static void t_truncate(struct nt_env *e)
{
    static const uint64_t sizes[] = {100, 8192, 9000, 65536, 100000, 4 * MIB, 4 * MIB + 5, 9 * MIB};
    struct nt *c = e->root;
    struct nt_fh fh;

    nt_mk_file(c, &e->dir, "t", 0644, &fh);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t size = sizes[i], cut = size / 2 + 1;

        for (uint64_t at = 0; at < size; at += MIB) {
            write_at(c, &fh, i, at, size - at < MIB ? (uint32_t)(size - at) : MIB, UNSTABLE);
        }
        set_size(c, &fh, cut);
        check_at(c, &fh, i, 0, cut);
        NT_OK(nt_read(c, &fh, cut, 10));
        NT_EQ(c->r.count, 0);
        set_size(c, &fh, size);
        check_at(c, &fh, i, 0, cut);
        check_zero(c, &fh, cut, size - cut);
        set_size(c, &fh, cut);
        write_at(c, &fh, 50 + i, size - 10, 10, FILE_SYNC); /* grows by a write: the gap is zeros */
        check_zero(c, &fh, cut, size - 10 - cut);
        check_at(c, &fh, 50 + i, size - 10, 10);
        set_size(c, &fh, 0);
        check_size(c, &fh, 0);
    }
}

static void t_one_mib(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh fh;
    uint8_t *b = buffer();

    nt_mk_file(c, &e->dir, "m", 0644, &fh);
    nt_pattern(3, 0, b, MIB);
    NT_OK(nt_write(c, &fh, 0, b, MIB, FILE_SYNC));
    NT_EQ(c->r.count, MIB);
    NT_OK(nt_read(c, &fh, 0, MIB));
    NT_EQ(c->r.count, MIB);
    NT_CHECK(nt_pattern_ok(3, 0, c->data, MIB));
    nt_pattern(4, 12345, b, MIB);
    NT_OK(nt_write(c, &fh, 12345, b, MIB, FILE_SYNC)); /* off every boundary */
    NT_EQ(c->r.count, MIB);
    NT_OK(nt_read(c, &fh, 12345, MIB));
    NT_EQ(c->r.count, MIB);
    NT_CHECK(nt_pattern_ok(4, 12345, c->data, MIB));
    nt_pattern(5, 4 * MIB - 500000, b, MIB);
    NT_OK(nt_write(c, &fh, 4 * MIB - 500000, b, MIB, FILE_SYNC)); /* over a chunk's border */
    NT_OK(nt_read(c, &fh, 4 * MIB - 500000, MIB));
    NT_EQ(c->r.count, MIB);
    NT_CHECK(nt_pattern_ok(5, 4 * MIB - 500000, c->data, MIB));
    NT_OK(nt_read(c, &fh, 0, 4 * MIB)); /* more than rtmax: at most that */
    NT_CHECK(c->r.count >= 1 && c->r.count <= MIB);
    free(b);
}

/* Random writes, truncations and reads against a copy in memory. */
static void t_random(struct nt_env *e)
{
    enum { SPAN = 12 * MIB };
    struct nt *c = e->root;
    struct nt_fh fh;
    uint8_t *model = calloc(1, SPAN + MIB), *b = buffer();
    uint64_t size = 0, rng = 12345;

    nt_mk_file(c, &e->dir, "r", 0644, &fh);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t off, len;

        rng = rng * 6364136223846793005ull + 1442695040888963407ull;
        off = (rng >> 20) % (i < 100 ? 20000 : SPAN - MIB);
        len = 1 + (rng >> 45) % (i % 3 == 0 ? MIB : 3000);
        if (i % 10 == 9) {
            set_size(c, &fh, off);
            if (off < size) {
                memset(model + off, 0, size - off);
            }
            size = off;
        } else {
            nt_pattern(i, off, b, len);
            memcpy(model + off, b, len);
            NT_OK(nt_write(c, &fh, off, b, (uint32_t)len, i % 4 == 0 ? FILE_SYNC : UNSTABLE));
            NT_EQ(c->r.count, len);
            size = off + len > size ? off + len : size;
        }
        if (i % 20 == 19) {
            NT_OK(nt_commit(c, &fh, 0, 0));
            check_size(c, &fh, size);
            for (uint64_t at = 0; at < size; at += c->r.count) {
                NT_OK(nt_read(c, &fh, at, MIB));
                NT_CHECK(c->r.count > 0 && at + c->r.count <= size);
                NT_CHECK(memcmp(model + at, c->data, c->r.count) == 0);
            }
        }
    }
    free(model);
    free(b);
}

/* B6: WRITE and COMMIT agree on the verifier, over several segments. */
static void t_verifiers(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh fh, small;
    char verf[8];

    nt_mk_file(c, &e->dir, "v", 0644, &fh);
    nt_mk_file(c, &e->dir, "s", 0644, &small);
    write_at(c, &fh, 1, 0, MIB, UNSTABLE);
    memcpy(verf, c->r.verf, 8);
    for (unsigned i = 1; i < 32; i++) {
        write_at(c, &fh, 1, (uint64_t)i * MIB, MIB, UNSTABLE);
        NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    }
    NT_OK(nt_commit(c, &fh, 0, 0));
    NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    write_at(c, &fh, 1, 0, 1000, FILE_SYNC);
    NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    write_at(c, &small, 2, 0, 100, UNSTABLE);
    memcpy(verf, c->r.verf, 8);
    NT_OK(nt_commit(c, &small, 0, 0));
    NT_CHECK(memcmp(verf, c->r.verf, 8) == 0);
    check_at(c, &fh, 1, 0, 32 * MIB);
}

static void t_times(struct nt_env *e)
{
    struct nt *c = e->root;
    struct nt_fh fh;
    fattr3 a;

    nt_mk_file(c, &e->dir, "t", 0644, &fh);
    NT_OK(nt_getattr(c, &fh));
    a = c->r.attr;
    write_at(c, &fh, 1, 0, 10, FILE_SYNC);
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_cmp(c->r.attr.mtime, a.mtime) > 0 &&
             nt_time_cmp(c->r.attr.ctime, a.ctime) > 0);
    a = c->r.attr;
    set_size(c, &fh, 5);
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_cmp(c->r.attr.mtime, a.mtime) > 0 &&
             nt_time_cmp(c->r.attr.ctime, a.ctime) > 0);
    a = c->r.attr;
    NT_OK(nt_setattr(c, &fh, &NT_SET_MODE(0600), NULL));
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_eq(c->r.attr.mtime, a.mtime) && nt_time_cmp(c->r.attr.ctime, a.ctime) > 0);
    a = c->r.attr;
    NT_OK(nt_link(c, &fh, &e->dir, "t2"));
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_cmp(c->r.attr.ctime, a.ctime) > 0);
    NT_OK(nt_read(c, &fh, 0, 5));
    NT_OK(nt_getattr(c, &fh));
    NT_CHECK(nt_time_cmp(c->r.attr.atime, a.mtime) >= 0); /* relatime */
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"borders", t_borders, false},   {"holes", t_holes, false},
        {"truncate", t_truncate, false}, {"one_mib", t_one_mib, false},
        {"random", t_random, false},     {"verifiers", t_verifiers, false},
        {"times", t_times, false},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

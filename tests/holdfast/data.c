/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes: write-behind, reading ahead, bounds, appends, close-to-open.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lf.h"

#define MIB (1u << 20)

static const size_t sizes[] = {1,      511,        4096,       8191,        8192,       8193,
                               100000, MIB - 1,    MIB,        MIB + 1,     4 * MIB,    4 * MIB + 5,
                               9 * MIB, 20 * MIB + 3};

/* Each size: written, read before it is sent, after the flush, after fsync, and by another client. */
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
        size_t off = (size_t)rand_r(&seed) % BYTES, len = (size_t)rand_r(&seed) % (k % 8 ? 9000 : 700000);

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

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"sizes", t_sizes, true},
        {"pieces", t_pieces, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

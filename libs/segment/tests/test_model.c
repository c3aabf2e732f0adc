/* SPDX-License-Identifier: Apache-2.0
 *
 * Random operations against arrays of bytes, with clean and unclean restarts.
 */
#include "support_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/err.h"

enum { CHUNKS = 3 };

struct model {
    uint8_t *bytes;
    uint32_t len;
};

static uint32_t pick(uint64_t *rng, uint32_t limit)
{
    return (uint32_t)(disk_rand(rng) % limit);
}

/* An offset that likes block edges. */
static uint32_t pick_offset(uint64_t *rng)
{
    uint32_t block = pick(rng, 4) ? pick(rng, 6) : pick(rng, HF_SEG_BLOCKS);
    uint32_t o = block * HF_SEG_BLOCK_BYTES;

    switch (pick(rng, 4)) {
    case 0:
        return o;
    case 1:
        return o + pick(rng, HF_SEG_BLOCK_BYTES);
    case 2:
        return o + HF_SEG_BLOCK_BYTES - 1 - pick(rng, 8);
    default:
        return o + 4096 * pick(rng, 16);
    }
}

static uint32_t pick_len(uint64_t *rng, uint32_t offset)
{
    uint32_t n = pick(rng, 3) ? 1 + pick(rng, 70000) : 1 + pick(rng, 8) * HF_SEG_BLOCK_BYTES;

    return n < HF_SEG_CHUNK_BYTES - offset ? n : HF_SEG_CHUNK_BYTES - offset;
}

/* The model has no holes but zeros: data may be reported where the bytes are zero, never the other
 * way round. */
static void check_seek(struct rig *r, const struct model *m, unsigned i, uint32_t from,
                       uint32_t len)
{
    uint32_t at = 0;
    bool found;

    cr_assert_eq(rig_seek(r, i, from, len, false, &found, &at), 0);
    at = found ? at : from + len;
    cr_assert(at >= from && at <= from + len);
    for (uint32_t o = from; o < at; o++)
        cr_assert_eq(m->bytes[o], 0, "chunk %u has data at %u, before %u", i, o, at);
    cr_assert_eq(rig_seek(r, i, from, len, true, &found, &at), 0);
    if (found) {
        uint32_t edge = (at / HF_SEG_BLOCK_BYTES + 1) * HF_SEG_BLOCK_BYTES;

        cr_assert(at >= from && at < from + len);
        for (uint32_t o = at; o < edge; o++)
            cr_assert_eq(m->bytes[o], 0, "chunk %u has data at %u, in the hole at %u", i, o, at);
    }
}

static void punch(struct rig *r, struct model *m, unsigned i, uint32_t offset, uint32_t len)
{
    uint32_t from = (offset + HF_SEG_BLOCK_BYTES - 1) / HF_SEG_BLOCK_BYTES * HF_SEG_BLOCK_BYTES;
    uint32_t to = (offset + len) / HF_SEG_BLOCK_BYTES * HF_SEG_BLOCK_BYTES, at = 0;
    bool found;

    cr_assert_eq(rig_punch(r, i, 1, offset, len), 0);
    if (from >= to)
        return;
    memset(m->bytes + from, 0, to - from);
    cr_assert_eq(rig_seek(r, i, from, to - from, false, &found, &at), 0);
    cr_assert_not(found, "no data is left");
}

static void check_all(struct rig *r, struct model *m, uint8_t *buf)
{
    for (unsigned i = 0; i < CHUNKS; i++) {
        uint32_t len = 0;

        cr_assert_eq(rig_read(r, i, 0, buf, HF_SEG_CHUNK_BYTES, &len), 0);
        cr_assert_eq(len, m[i].len, "chunk %u: %u, not %u", i, len, m[i].len);
        cr_assert_eq(memcmp(buf, m[i].bytes, HF_SEG_CHUNK_BYTES), 0, "chunk %u", i);
    }
}

static void one_op(struct rig *r, struct model *m, uint8_t *buf, uint64_t *rng)
{
    unsigned i = pick(rng, CHUNKS);
    uint32_t offset = pick_offset(rng), len = pick_len(rng, offset), got = 0, want;

    switch (pick(rng, 15)) {
    default:
        if (pick(rng, 3) == 0) { /* sequential, as files are written */
            offset = m[i].len < HF_SEG_CHUNK_BYTES ? m[i].len : 0;
            len = pick_len(rng, offset);
        }
        rig_fill(buf, len, disk_rand(rng));
        cr_assert_eq(rig_write(r, i, offset, buf, len, pick(rng, 3) == 0), 0);
        memcpy(m[i].bytes + offset, buf, len);
        if (offset + len > m[i].len)
            m[i].len = offset + len;
        break;
    case 6:
    case 7:
    case 8:
        memset(buf, 0xaa, len);
        cr_assert_eq(rig_read(r, i, offset, buf, len, &got), 0);
        want = offset < m[i].len ? m[i].len - offset : 0;
        cr_assert_eq(got, want < len ? want : len);
        cr_assert_eq(memcmp(buf, m[i].bytes + offset, len), 0);
        break;
    case 9:
        cr_assert_eq(rig_sync(r, i), 0);
        break;
    case 10:
        cr_assert_eq(rig_trunc(r, i, 1, offset), 0);
        if (offset < m[i].len) {
            memset(m[i].bytes + offset, 0, m[i].len - offset);
            m[i].len = offset;
        }
        break;
    case 12:
        punch(r, &m[i], i, offset, len);
        break;
    case 13:
        check_seek(r, &m[i], i, offset, len);
        break;
    case 11:
        if (pick(rng, 6))
            break;
        cr_assert_eq(rig_delete(r, i, NULL), 0);
        memset(m[i].bytes, 0, HF_SEG_CHUNK_BYTES);
        m[i].len = 0;
        break;
    }
}

static int no_bad(void *arg, const struct hf_seg_info *info)
{
    (*(unsigned *)arg)++;
    cr_assert_eq(info->status, 0);
    return 0;
}

static void run_seed(uint64_t seed, unsigned ops)
{
    struct rig r = {.cache_chunks = seed % 2 ? 2 : 0, .writeback_ms = 20};
    struct model m[CHUNKS] = {{0}};
    uint8_t *buf = malloc(HF_SEG_CHUNK_BYTES);
    struct disk *d = disk_new();
    uint64_t rng = seed;

    for (unsigned i = 0; i < CHUNKS; i++)
        m[i].bytes = calloc(1, HF_SEG_CHUNK_BYTES);
    rig_open(&r, d, seed, seed % 3 == 0);
    for (unsigned n = 0; n < ops; n++) {
        one_op(&r, m, buf, &rng);
        if (pick(&rng, 10) == 0)
            rig_sleep(&r, 15);
        if (pick(&rng, 40) == 0) {
            unsigned listed = 0;

            if (pick(&rng, 2)) {
                rig_close(&r);
            } else { /* kill -9 after a sync of everything */
                for (unsigned i = 0; i < CHUNKS; i++)
                    cr_assert_eq(rig_sync(&r, i), 0);
                rig_kill(&r);
            }
            rig_open(&r, d, ++seed, false);
            check_all(&r, m, buf);
            cr_assert_eq(r.errors + r.corrupt, 0);
            rig_close(&r);
            rig_open(&r, d, ++seed, true);
            cr_assert_eq(hf_seg_list(r.be, NULL, true, no_bad, &listed), 0);
            cr_assert_leq(listed, CHUNKS);
        }
    }
    check_all(&r, m, buf);
    cr_assert_eq(r.errors + r.corrupt, 0);
    rig_close(&r);
    disk_free(d);
    for (unsigned i = 0; i < CHUNKS; i++)
        free(m[i].bytes);
    free(buf);
}

Test(model, random_operations, .timeout = 110)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        run_seed(seed * 1000, 250);
}

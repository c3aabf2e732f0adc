/* SPDX-License-Identifier: Apache-2.0
 *
 * Power failures. Random operations, many at once, backend operations in any order; at random
 * moments the power fails. Of every image that the disk may then hold: what was acknowledged as
 * stable is there, every block is one of its versions since, and no block is CORRUPT. One image
 * becomes the new disk, and it goes on.
 */
#include "support_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/map.h"

enum {
    CHUNKS = 2,
    BLOCKS = 5, /* of each chunk are used */
    INFLIGHT = 6,
    VERSIONS = 4096,
    SPAN = BLOCKS * (int)HF_SEG_BLOCK_BYTES,
};

struct block {
    uint64_t *hash; /* of each version, in the order in which they were submitted */
    unsigned n;
    unsigned acked;   /* the newest version whose write was answered */
    unsigned durable; /* the oldest version that may be read after a crash */
};

struct flight {
    struct rig_op o;
    uint8_t *data;
    struct world *w;
    unsigned chunk;
    unsigned version[BLOCKS]; /* WRITE, TRUNC, PUNCH: what it made, ~0 = nothing; SYNC: what must be
                                 durable */
    bool used;
};

struct world {
    struct rig r;
    uint8_t *now[CHUNKS]; /* content with everything submitted */
    uint32_t len[CHUNKS];
    struct block b[CHUNKS][BLOCKS];
    struct flight f[INFLIGHT];
    uint64_t rng, images;
    bool dying;
    uint8_t *buf;
};

static uint32_t pick(struct world *w, uint32_t limit)
{
    return (uint32_t)(disk_rand(&w->rng) % limit);
}

static uint64_t hash_block(const uint8_t *p)
{
    return hf_hash_bytes(p, HF_SEG_BLOCK_BYTES, 12345);
}

static void flight_done(struct hf_seg_op *op)
{
    struct flight *f = op->arg;
    struct world *w = f->w;

    f->used = false;
    if (w->dying)
        return; /* what it says is never sent */
    cr_assert_eq(op->status, 0, "kind %d: %s", (int)op->kind, hf_err_name(op->status));
    for (unsigned b = 0; b < BLOCKS; b++) {
        struct block *bl = &w->b[f->chunk][b];

        if (f->version[b] == ~0u)
            continue;
        if (op->kind != HF_SEG_SYNC && f->version[b] > bl->acked)
            bl->acked = f->version[b];
        if ((op->kind != HF_SEG_WRITE || op->stable) && f->version[b] > bl->durable)
            bl->durable = f->version[b];
    }
}

/* Records the versions that a change of now[chunk] made. */
static void versions_make(struct world *w, struct flight *f, uint32_t from, uint32_t to)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        struct block *bl = &w->b[f->chunk][b];

        f->version[b] = ~0u;
        if (from >= (b + 1) * HF_SEG_BLOCK_BYTES || to <= b * HF_SEG_BLOCK_BYTES)
            continue;
        cr_assert_lt(bl->n, (unsigned)VERSIONS);
        bl->hash[bl->n] = hash_block(w->now[f->chunk] + (size_t)b * HF_SEG_BLOCK_BYTES);
        f->version[b] = bl->n++;
    }
}

static void make_write(struct world *w, struct flight *f)
{
    struct hf_seg_op *op = &f->o.op;
    unsigned c = f->chunk;
    uint32_t offset = pick(w, SPAN), len;

    if (pick(w, 3) == 0)
        offset &= ~(HF_SEG_BLOCK_BYTES - 1);
    else if (pick(w, 2) && w->len[c] < SPAN)
        offset = w->len[c];
    len = pick(w, 2) ? 1 + pick(w, 5000) : 1 + pick(w, 150000);
    if (len > SPAN - offset)
        len = SPAN - offset;
    rig_fill(f->data, len, disk_rand(&w->rng));
    *op = (struct hf_seg_op){.kind = HF_SEG_WRITE,
                             .offset = offset,
                             .len = len,
                             .data = f->data,
                             .stable = pick(w, 2) == 0};
    op->crcs = f->o.crcs;
    rig_crcs(&f->o);
    memcpy(w->now[c] + offset, f->data, len);
    if (offset + len > w->len[c])
        w->len[c] = offset + len;
    versions_make(w, f, offset, offset + len);
}

static void submit(struct world *w, struct flight *f)
{
    struct hf_seg_op *op = &f->o.op;

    f->chunk = pick(w, CHUNKS);
    f->used = true;
    f->w = w;
    switch (pick(w, 11)) {
    default:
        make_write(w, f);
        break;
    case 8: {
        uint32_t len = pick(w, SPAN), old = w->len[f->chunk];

        *op = (struct hf_seg_op){.kind = HF_SEG_TRUNC, .len = len};
        if (len < old) {
            memset(w->now[f->chunk] + len, 0, old - len);
            w->len[f->chunk] = len;
        }
        versions_make(w, f, len < old ? len : 0, len < old ? old : 0);
        break;
    }
    case 10: {
        uint32_t from = pick(w, BLOCKS) * HF_SEG_BLOCK_BYTES;
        uint32_t len = (1 + pick(w, BLOCKS)) * HF_SEG_BLOCK_BYTES;

        len = len < SPAN - from ? len : SPAN - from;
        *op = (struct hf_seg_op){.kind = HF_SEG_PUNCH, .offset = from, .len = len};
        memset(w->now[f->chunk] + from, 0, len);
        versions_make(w, f, from, from + len);
        break;
    }
    case 9:
        *op = (struct hf_seg_op){.kind = HF_SEG_SYNC};
        for (unsigned b = 0; b < BLOCKS; b++)
            f->version[b] = w->b[f->chunk][b].acked;
        break;
    }
    op->id = rig_chunk(f->chunk);
    op->done = flight_done;
    op->arg = f;
    hf_seg_submit(w->r.seg, op);
}

/* Reads an image's blocks and checks that each is an allowed version; with adopt it becomes the
 * truth. */
static void check_image(struct world *w, struct rig *r, bool adopt)
{
    w->images++;
    for (unsigned c = 0; c < CHUNKS; c++) {
        uint32_t len = 0;

        cr_assert_eq(rig_read(r, c, 0, w->buf, SPAN, &len), 0, "chunk %u does not read", c);
        for (unsigned b = 0; b < BLOCKS; b++) {
            struct block *bl = &w->b[c][b];
            uint64_t h = hash_block(w->buf + (size_t)b * HF_SEG_BLOCK_BYTES);
            bool found = false;

            for (unsigned v = bl->durable; v < bl->n; v++)
                found = found || bl->hash[v] == h;
            cr_assert(found, "chunk %u block %u is none of its %u versions", c, b,
                      bl->n - bl->durable);
            if (adopt) {
                bl->hash[0] = h;
                bl->n = 1;
                bl->acked = bl->durable = 0;
            }
        }
        if (adopt) {
            memcpy(w->now[c], w->buf, SPAN);
            w->len[c] = len;
        }
    }
    cr_assert_eq(r->corrupt, 0);
}

static void check_images(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct disk *img = disk_crash(w->r.disk, &w->rng, i % 2 == 0);
        struct rig r = {.writeback_ms = 50};

        rig_open(&r, img, disk_rand(&w->rng), true);
        check_image(w, &r, false);
        rig_close(&r);
        disk_free(img);
    }
}

static void run_for(struct world *w, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        struct flight *f = &w->f[pick(w, INFLIGHT)];

        if (!f->used && pick(w, 3) == 0)
            submit(w, f);
        if (pick(w, 2) == 0)
            (void)disk_step(w->r.be, &w->rng);
        else
            (void)hf_sim_step(w->r.env);
    }
}

/* The end of one life: power failure, or only the process dies. */
static void die(struct world *w)
{
    struct disk *next;

    check_images(w, 4);
    next =
        pick(w, 4) == 0 ? disk_clone(w->r.disk) : disk_crash(w->r.disk, &w->rng, pick(w, 2) == 0);
    w->dying = true;
    rig_kill(&w->r);
    w->dying = false;
    disk_free(w->r.disk);
    rig_open(&w->r, next, disk_rand(&w->rng), false);
    check_image(w, &w->r, true);
}

static uint64_t run_seed(uint64_t seed, unsigned lives)
{
    struct world *w = calloc(1, sizeof(*w));
    uint64_t images;

    cr_assert_not_null(w);
    w->rng = seed;
    w->r.writeback_ms = 1 + seed % 50;
    w->buf = malloc(SPAN);
    for (unsigned i = 0; i < INFLIGHT; i++)
        w->f[i].data = malloc(SPAN);
    rig_open(&w->r, disk_new(), seed, false);
    for (unsigned c = 0; c < CHUNKS; c++) {
        w->now[c] = calloc(1, SPAN);
        for (unsigned b = 0; b < BLOCKS; b++) {
            w->b[c][b].hash = calloc(VERSIONS, sizeof(uint64_t));
            w->b[c][b].hash[0] = hash_block(w->now[c]);
            w->b[c][b].n = 1;
        }
    }
    for (unsigned i = 0; i < lives; i++) {
        run_for(w, 20 + pick(w, 200));
        die(w);
    }
    images = w->images;
    rig_close(&w->r);
    disk_free(w->r.disk);
    for (unsigned c = 0; c < CHUNKS; c++) {
        free(w->now[c]);
        for (unsigned b = 0; b < BLOCKS; b++)
            free(w->b[c][b].hash);
    }
    for (unsigned i = 0; i < INFLIGHT; i++)
        free(w->f[i].data);
    free(w->buf);
    free(w);
    return images;
}

static void run_seeds(uint64_t first)
{
    uint64_t images = 0;

    for (uint64_t seed = first; seed < first + 25; seed++)
        images += run_seed(seed, 10);
    cr_assert_geq(images, 1200);
}

Test(torn, images_a, .timeout = 110)
{
    run_seeds(1);
}

Test(torn, images_b, .timeout = 110)
{
    run_seeds(10001);
}

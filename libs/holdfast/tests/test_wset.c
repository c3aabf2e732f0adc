/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of buffered bytes against a plain array: random writes, cuts and moves.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "wset.h"

#define SPACE (5u * WSET_BLOCK + 12345u)

struct model {
    uint8_t *bytes;
    uint8_t *there; /* 1: has a byte */
};

static void check(const struct wset *s, const struct model *m)
{
    uint64_t pos = 0, charge = 0, seq = 0;
    struct ext *x;
    size_t n = 0;

    while ((x = wset_find(s, pos, SPACE)) != NULL) {
        cr_assert_geq(x->off, pos);
        cr_assert_eq(x->off / WSET_BLOCK, (ext_end(x) - 1) / WSET_BLOCK, "crosses a border");
        cr_assert_leq(x->len, x->cap);
        cr_assert_eq(memchr(m->there + pos, 1, x->off - pos), NULL, "bytes are missing");
        cr_assert_eq(memchr(m->there + x->off, 0, x->len), NULL, "bytes too many");
        cr_assert_eq(memcmp(m->bytes + x->off, x->data, x->len), 0);
        charge += sizeof(*x) + x->cap;
        pos = ext_end(x);
        n++;
    }
    cr_assert_eq(memchr(m->there + pos, 1, SPACE - pos), NULL);
    cr_assert_eq(s->n, n);
    cr_assert_eq(s->charge, charge);
    cr_assert_eq(wset_end(s), pos);
    HF_LIST_FOREACH(it, &s->fifo)
    {
        x = hf_container_of(it, struct ext, fifo);
        cr_assert_geq(x->seq, seq, "not in the order of writing");
        seq = x->seq;
    }
}

static void put(struct wset *s, struct model *m, unsigned *seed, uint64_t seq)
{
    uint64_t off = (uint64_t)rand_r(seed) % SPACE;
    uint64_t room = WSET_BLOCK - off % WSET_BLOCK;
    uint32_t len = (uint32_t)rand_r(seed) % (rand_r(seed) % 3 ? 3000u : 400000u) + 1;
    uint8_t *b;

    room = room < SPACE - off ? room : SPACE - off;
    len = len < room ? len : (uint32_t)room;
    b = malloc(len);
    for (uint32_t i = 0; i < len; i++)
        b[i] = (uint8_t)rand_r(seed);
    cr_assert_eq(wset_write(s, off, b, len, seq, false), 0);
    memcpy(m->bytes + off, b, len);
    memset(m->there + off, 1, len);
    free(b);
}

static void cut(struct wset *s, struct model *m, unsigned *seed)
{
    uint64_t off = (uint64_t)rand_r(seed) % SPACE;
    uint64_t len = (uint64_t)rand_r(seed) % (2u * WSET_BLOCK);

    len = len < SPACE - off ? len : SPACE - off;
    cr_assert_eq(wset_cut(s, off, off + len), 0);
    memset(m->there + off, 0, len);
}

Test(wset, random)
{
    for (unsigned round = 0; round < 30; round++) {
        unsigned seed = round;
        struct model m = {malloc(SPACE), calloc(1, SPACE)};
        struct wset s;

        wset_init(&s);
        for (unsigned k = 0; k < 300; k++) {
            if (rand_r(&seed) % 5)
                put(&s, &m, &seed, k);
            else
                cut(&s, &m, &seed);
            if (k % 20 == 0)
                check(&s, &m);
        }
        check(&s, &m);
        wset_fini(&s);
        cr_assert_eq(s.charge, 0);
        cr_assert_eq(s.n, 0);
        free(m.bytes);
        free(m.there);
    }
}

/* A stream of small writes is one extent for each block, copied a few times only. */
Test(wset, stream)
{
    uint8_t b[1000] = {0};
    struct wset s;
    size_t most = 0;

    wset_init(&s);
    for (uint64_t off = 0; off + 1000 <= WSET_BLOCK; off += 1000) {
        cr_assert_eq(wset_write(&s, off, b, 1000, off, false), 0);
        most = s.n > most ? s.n : most;
    }
    cr_assert_eq(most, 1);
    cr_assert_leq(s.charge, WSET_BLOCK + sizeof(struct ext));
    wset_fini(&s);
}

/* What is merged is as old as its oldest write, and stable if any of it is to be. */
Test(wset, merged)
{
    struct wset s;
    struct ext *x;

    wset_init(&s);
    cr_assert_eq(wset_write(&s, 0, "aaaa", 4, 1, false), 0);
    cr_assert_eq(wset_write(&s, 8, "cccc", 4, 2, true), 0);
    cr_assert_eq(s.n, 2);
    cr_assert_eq(wset_write(&s, 4, "bbbb", 4, 3, false), 0);
    cr_assert_eq(s.n, 1);
    x = wset_find(&s, 0, 1);
    cr_assert(x && x->len == 12 && x->seq == 1 && x->sync);
    cr_assert_eq(memcmp(x->data, "aaaabbbbcccc", 12), 0);
    wset_fini(&s);
}

/* Blocks that share a bucket, and ranges of any length. */
Test(wset, far_apart)
{
    const uint64_t far = (uint64_t)WSET_BUCKETS * WSET_BLOCK;
    struct wset s;

    wset_init(&s);
    for (uint64_t k = 0; k < 5; k++)
        cr_assert_eq(wset_write(&s, k * far + 10, "x", 1, 9 - k, false), 0);
    cr_assert_eq(s.n, 5);
    cr_assert_eq(wset_find(&s, 0, 10), NULL);
    cr_assert_eq(wset_find(&s, 0, ~0ull)->off, 10);
    cr_assert_eq(wset_find(&s, 11, ~0ull)->off, far + 10);
    cr_assert_eq(wset_find(&s, 2 * far, 2 * far + 11)->off, 2 * far + 10);
    cr_assert_eq(wset_cut(&s, far, ~0ull), 0);
    cr_assert_eq(s.n, 1);
    cr_assert_eq(wset_end(&s), 11);
    wset_fini(&s);
}

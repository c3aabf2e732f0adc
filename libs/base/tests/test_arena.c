/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "holdfast/arena.h"

Test(arena, pieces_are_aligned_and_do_not_overlap)
{
    struct hf_arena a;
    uint8_t *p[2000];
    size_t len[2000];

    hf_arena_init(&a, 0);
    srand(3);
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 2000; i++) {
            len[i] = (size_t)(rand() % (i % 100 == 0 ? 100000 : 200));
            p[i] = hf_arena_alloc(&a, len[i]);
            cr_assert_not_null(p[i]);
            cr_assert_eq((uintptr_t)p[i] % 16, 0);
            memset(p[i], (int)(i & 0xff), len[i]);
        }
        for (unsigned i = 0; i < 2000; i++)
            for (size_t j = 0; j < len[i]; j++)
                if (p[i][j] != (i & 0xff))
                    cr_assert_fail("piece %u overwritten at %zu", i, j);
        hf_arena_reset(&a);
        cr_assert_leq(a.total, 65536);
    }
    hf_arena_fini(&a);
    cr_assert_eq(a.total, 0);
}

Test(arena, limit_holds_to_the_byte)
{
    struct hf_arena a;
    size_t got = 0;

    hf_arena_init(&a, 10000);
    cr_assert_null(hf_arena_alloc(&a, 10001));
    cr_assert_null(hf_arena_alloc(&a, SIZE_MAX));
    cr_assert_null(hf_arena_alloc(&a, SIZE_MAX - 8));
    while (hf_arena_alloc(&a, 100))
        got++;
    cr_assert_leq(a.total, 10000);
    /* 112 bytes each; block ends waste less than one each. */
    cr_assert_geq(got, 85);
    hf_arena_reset(&a);
    cr_assert_not_null(hf_arena_alloc(&a, 100));
    hf_arena_fini(&a);
    hf_arena_init(&a, 10000);
    cr_assert_not_null(hf_arena_alloc(&a, 10000));
    cr_assert_null(hf_arena_alloc(&a, 1));
    hf_arena_fini(&a);
}

Test(arena, a_big_piece_does_not_waste_the_current_block)
{
    struct hf_arena a;
    char *before, *after;

    hf_arena_init(&a, 0);
    before = hf_arena_alloc(&a, 16);
    cr_assert_not_null(hf_arena_alloc(&a, 1 << 20));
    after = hf_arena_alloc(&a, 16);
    cr_assert_eq(after, before + 16);
    hf_arena_fini(&a);
}

Test(arena, copies)
{
    struct hf_arena a;
    char *z;

    hf_arena_init(&a, 0);
    memset(hf_arena_alloc(&a, 4000), 0xff, 4000);
    hf_arena_reset(&a);
    z = hf_arena_zalloc(&a, 4000);
    for (int i = 0; i < 4000; i++)
        cr_assert_eq(z[i], 0);
    cr_assert_str_eq(hf_arena_strdup(&a, "text"), "text");
    cr_assert(memcmp(hf_arena_dup(&a, "ab\0cd", 5), "ab\0cd", 5) == 0);
    cr_assert_not_null(hf_arena_dup(&a, NULL, 0));
    hf_arena_fini(&a);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "holdfast/map.h"

#define KEYS 512

/* Random operations against an array; few keys, so that chains form, break and wrap around. */
static void run_against_model(unsigned seed, uint64_t stride)
{
    static int values[KEYS * 4];
    struct hf_map m = {0};
    int *model[KEYS] = {0};
    size_t len = 0;

    srand(seed);
    for (int op = 0; op < 50000; op++) {
        size_t k = (size_t)rand() % KEYS;
        uint64_t key = k * stride;
        int *v = &values[rand() % (KEYS * 4)];
        int what = rand() % 100;

        if (what < (op / 5000 % 2 ? 30 : 60)) {
            len += model[k] == NULL;
            model[k] = v;
            cr_assert_eq(hf_map_put(&m, key, v), 0);
        } else if (what < 90) {
            cr_assert_eq(hf_map_del(&m, key), model[k]);
            len -= model[k] != NULL;
            model[k] = NULL;
        } else {
            cr_assert_eq(hf_map_get(&m, key), model[k]);
        }
        cr_assert_eq(m.len, len);
        if (op % 1000 == 0) {
            size_t pos = 0, n = 0;
            uint64_t ret_key;
            void *ret_value;

            while (hf_map_next(&m, &pos, &ret_key, &ret_value)) {
                cr_assert_eq(model[ret_key / stride], ret_value);
                n++;
            }
            cr_assert_eq(n, len);
            for (size_t i = 0; i < KEYS; i++)
                cr_assert_eq(hf_map_get(&m, i * stride), model[i]);
        }
        if (op == 25000) {
            hf_map_clear(&m);
            memset(model, 0, sizeof(model));
            len = 0;
        }
    }
    hf_map_fini(&m);
}

Test(map, random_operations_match_model)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        run_against_model(seed, 1);
    run_against_model(5, 1ull << 32);
    run_against_model(6, 0x9e3779b97f4a7c15ull >> 10);
}

Test(map, empty_map_and_special_keys)
{
    struct hf_map m = {0};
    int a, b;
    size_t pos = 0;

    cr_assert_null(hf_map_get(&m, 0));
    cr_assert_null(hf_map_del(&m, 0));
    cr_assert_not(hf_map_next(&m, &pos, NULL, NULL));
    hf_map_clear(&m);
    cr_assert_eq(hf_map_put(&m, 0, &a), 0);
    cr_assert_eq(hf_map_put(&m, UINT64_MAX, &b), 0);
    cr_assert_eq(hf_map_get(&m, 0), &a);
    cr_assert_eq(hf_map_get(&m, UINT64_MAX), &b);
    cr_assert_eq(hf_map_put(&m, 0, NULL), 0);
    cr_assert_null(hf_map_get(&m, 0));
    cr_assert_eq(m.len, 1);
    hf_map_fini(&m);
}

Test(map, many_entries)
{
    struct hf_map m = {0};
    const uint64_t n = 200000;

    for (uint64_t i = 0; i < n; i++)
        cr_assert_eq(hf_map_put(&m, i << 12, (void *)(uintptr_t)(i + 1)), 0);
    for (uint64_t i = 0; i < n; i++)
        cr_assert_eq((uintptr_t)hf_map_get(&m, i << 12), i + 1);
    cr_assert_leq(m.cap, 4 * n);
    for (uint64_t i = 0; i < n; i++)
        cr_assert_eq((uintptr_t)hf_map_del(&m, i << 12), i + 1);
    cr_assert_eq(m.len, 0);
    hf_map_fini(&m);
}

Test(hash, bytes_depend_on_everything)
{
    uint8_t data[40] = {0};
    uint64_t base = hf_hash_bytes(data, sizeof(data), 1);

    cr_assert_eq(hf_hash_bytes(data, sizeof(data), 1), base);
    cr_assert_neq(hf_hash_bytes(data, sizeof(data), 2), base);
    for (size_t len = 0; len < sizeof(data); len++)
        cr_assert_neq(hf_hash_bytes(data, len, 1), base);
    for (size_t i = 0; i < sizeof(data) * 8; i++) {
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        uint64_t flipped = hf_hash_bytes(data, sizeof(data), 1) ^ base;
        data[i / 8] ^= (uint8_t)(1u << i % 8);
        /* A good hash changes about half of its bits. */
        cr_assert_geq(__builtin_popcountll(flipped), 10);
        cr_assert_leq(__builtin_popcountll(flipped), 54);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/map.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/endian.h"
#include "holdfast/err.h"

/* An empty slot is one whose value is NULL: a stored NULL reads as absent anyway, so put(NULL)
 * deletes. */
struct hf_map_slot {
    uint64_t key;
    void *value;
};

#define MAP_MIN ((size_t)16)

uint64_t hf_hash_u64(uint64_t v)
{
    v ^= v >> 30;
    v *= 0xbf58476d1ce4e5b9ull;
    v ^= v >> 27;
    v *= 0x94d049bb133111ebull;
    v ^= v >> 31;
    return v;
}

/* Each step is a bijection of the state, so no input word can swallow what came before it. */
static uint64_t hash_step(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

uint64_t hf_hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const uint8_t *p = data;
    uint64_t h = hf_hash_u64(seed ^ (uint64_t)len);
    uint8_t tail[8] = {0};

    for (; len >= 8; p += 8, len -= 8)
        h = hash_step(h, hf_get_le64(p));
    if (len > 0) {
        memcpy(tail, p, len);
        h = hash_step(h, hf_get_le64(tail));
    }
    return hf_hash_u64(h);
}

static size_t slot_home(const struct hf_map *m, uint64_t key)
{
    return (size_t)hf_hash_u64(key + 0x9e3779b97f4a7c15ull) & (m->cap - 1);
}

/* The slot of the key, or the empty one where it belongs. cap > len, so there is an empty one. */
static size_t slot_find(const struct hf_map *m, uint64_t key)
{
    size_t i = slot_home(m, key);

    while (m->slots[i].value && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void hf_map_fini(struct hf_map *m)
{
    free(m->slots);
    *m = (struct hf_map){0};
}

void hf_map_clear(struct hf_map *m)
{
    if (m->len > 0)
        memset(m->slots, 0, m->cap * sizeof(*m->slots));
    m->len = 0;
}

void *hf_map_get(const struct hf_map *m, uint64_t key)
{
    return m->len == 0 ? NULL : m->slots[slot_find(m, key)].value;
}

static int map_grow(struct hf_map *m)
{
    struct hf_map bigger = {.cap = m->cap ? m->cap * 2 : MAP_MIN, .len = m->len};

    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return HF_E_NOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].value)
            bigger.slots[slot_find(&bigger, m->slots[i].key)] = m->slots[i];
    free(m->slots);
    *m = bigger;
    return 0;
}

int hf_map_put(struct hf_map *m, uint64_t key, void *value)
{
    size_t i;

    if (!value) {
        (void)hf_map_del(m, key);
        return 0;
    }
    /* At most three quarters full. An overwrite at the edge may grow early, which does no harm. */
    if (m->len + 1 > m->cap / 4 * 3) {
        int rc = map_grow(m);

        if (rc)
            return rc;
    }
    i = slot_find(m, key);
    if (!m->slots[i].value)
        m->len++;
    m->slots[i] = (struct hf_map_slot){key, value};
    return 0;
}

void *hf_map_del(struct hf_map *m, uint64_t key)
{
    size_t mask = m->cap - 1;
    size_t hole;
    void *value;

    if (m->len == 0)
        return NULL;
    hole = slot_find(m, key);
    value = m->slots[hole].value;
    if (!value)
        return NULL;
    /* Backward shift: move into the hole whatever probed over it on its way from home. */
    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = slot_home(m, m->slots[i].key);

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].value = NULL;
    m->len--;
    return value;
}

bool hf_map_next(const struct hf_map *m, size_t *pos, uint64_t *ret_key, void **ret_value)
{
    for (; *pos < m->cap; ++*pos) {
        const struct hf_map_slot *s = &m->slots[*pos];

        if (!s->value)
            continue;
        if (ret_key)
            *ret_key = s->key;
        if (ret_value)
            *ret_value = s->value;
        ++*pos;
        return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "memtable.h"

#include "holdfast/err.h"
#include "provider.h"

#define VALUE_STEP ((size_t)16) /* the arena's alignment: what a value may grow by for nothing */

static uint64_t key_hash(unsigned table, struct hf_slice key)
{
    return hf_hash_bytes(key.data, key.len, 0x6d656d00u + table);
}

/* A quarter of the entries of a level are in the next one too. */
static unsigned levels_of(uint64_t hash)
{
    unsigned n = 1;

    for (hash >>= 32; n < MT_LEVELS && (hash & 3) == 0; hash >>= 2)
        n++;
    return n;
}

void mt_reset(struct memtable *m)
{
    hf_map_clear(&m->by_hash);
    hf_arena_reset(&m->arena);
    memset(m->first, 0, sizeof(m->first));
    memset(m->levels, 0, sizeof(m->levels));
    memset(m->delta, 0, sizeof(m->delta));
    m->changes = 0;
    m->grown = 0;
}

void mt_fini(struct memtable *m)
{
    hf_map_fini(&m->by_hash);
    hf_arena_fini(&m->arena);
    *m = (struct memtable){0};
}

/* ---- values ---- */

static int value_set(struct memtable *m, struct mt_entry *e, struct hf_slice val)
{
    if (val.len > e->vcap) {
        size_t cap = (val.len + VALUE_STEP - 1) & ~(VALUE_STEP - 1);
        uint8_t *p = hf_arena_alloc(&m->arena, cap);

        if (!p)
            return HF_E_NOMEM;
        e->val = p;
        e->vcap = (uint32_t)cap;
    }
    if (val.len)
        memcpy(e->val, val.data, val.len);
    e->vlen = (uint32_t)val.len;
    return 0;
}

int mt_set(struct memtable *m, struct mt_entry *e, struct hf_slice val)
{
    int rc = value_set(m, e, val);

    if (rc == 0)
        e->gone = false;
    return rc;
}

/* ---- by key ---- */

struct mt_entry *mt_find(const struct memtable *m, unsigned table, struct hf_slice key)
{
    struct mt_entry *e;

    if (m->by_hash.len == 0)
        return NULL;
    e = hf_map_get(&m->by_hash, key_hash(table, key));
    while (e && (e->table != table || !hf_slice_eq(mt_key(e), key)))
        e = e->same_hash;
    return e;
}

/* ---- in order ---- */

/* The first entry at or after `from` (after: after it), and of each level in use the last one
 * before that (NULL: none). An entry at which a higher level stopped is not compared again. */
static struct mt_entry *descend(const struct memtable *m, unsigned table, struct hf_slice from,
                                bool after, struct mt_entry *before[MT_LEVELS])
{
    struct mt_entry *at = NULL, *e = NULL;

    for (unsigned level = m->levels[table]; level-- > 0;) {
        const struct mt_entry *stop = e;

        while ((e = at ? at->next[level] : m->first[table][level]) != NULL && e != stop) {
            int c = store_key_cmp(mt_key(e), from);

            if (c > 0 || (c == 0 && !after))
                break;
            at = e;
        }
        before[level] = at;
    }
    return e;
}

struct mt_entry *mt_seek(const struct memtable *m, unsigned table, struct hf_slice from, bool after)
{
    struct mt_entry *before[MT_LEVELS];

    return descend(m, table, from, after, before);
}

int mt_add(struct memtable *m, unsigned table, struct hf_slice key, struct hf_slice val, bool gone)
{
    uint64_t hash = key_hash(table, key);
    unsigned levels = levels_of(hash);
    struct mt_entry *before[MT_LEVELS] = {0}, *e;
    int rc;

    e = hf_arena_zalloc(&m->arena, sizeof(*e) + levels * sizeof(void *) + key.len);
    if (!e)
        return HF_E_NOMEM;
    e->klen = (uint16_t)key.len;
    e->table = (uint8_t)table;
    e->levels = (uint8_t)levels;
    e->gone = gone;
    memcpy(&e->next[levels], key.data, key.len);
    e->same_hash = hf_map_get(&m->by_hash, hash);
    rc = gone ? 0 : value_set(m, e, val);
    if (rc == 0)
        rc = hf_map_put(&m->by_hash, hash, e);
    if (rc)
        return rc;
    (void)descend(m, table, key, false, before);
    if (m->levels[table] < levels)
        m->levels[table] = (uint8_t)levels;
    for (unsigned level = 0; level < levels; level++) {
        struct mt_entry **link =
            before[level] ? &before[level]->next[level] : &m->first[table][level];

        e->next[level] = *link;
        *link = e;
    }
    return 0;
}

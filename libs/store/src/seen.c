/* SPDX-License-Identifier: Apache-2.0 */
#include "seen.h"

#include <stdlib.h>

#include "holdfast/err.h"

/* A batch is kept in the map's pointer-sized value. */
static void *batch_ptr(uint64_t batch)
{
    return (void *)(uintptr_t)batch;
}

static uint64_t batch_of(const struct seen *s, uint64_t hash)
{
    return (uint64_t)(uintptr_t)hf_map_get(&s->last, hash);
}

static uint64_t key_hash(unsigned table, struct hf_slice key)
{
    return hf_hash_bytes(key.data, key.len, 0x6b657900u + table);
}

static uint64_t object_hash(unsigned table, struct hf_slice key)
{
    size_t n = key.len < SEEN_OBJECT ? key.len : SEEN_OBJECT;

    return hf_hash_bytes(key.data, n, 0x6f626a00u + table);
}

void seen_fini(struct seen *s)
{
    hf_map_fini(&s->last);
    free(s->ring);
}

static int ring_reserve(struct seen *s, size_t more)
{
    size_t cap = s->cap ? s->cap : 256;
    struct seen_change *ring;

    if (s->cap - s->len >= more)
        return 0;
    while (cap - s->len < more)
        cap *= 2;
    ring = malloc(cap * sizeof(*ring));
    if (!ring)
        return HF_E_NOMEM;
    for (size_t i = 0; i < s->len; i++)
        ring[i] = s->ring[(s->head + i) & (s->cap - 1)];
    free(s->ring);
    s->ring = ring;
    s->cap = cap;
    s->head = 0;
    return 0;
}

static int note(struct seen *s, uint64_t hash)
{
    int rc;

    if (batch_of(s, hash) == s->batch)
        return 0;
    rc = hf_map_put(&s->last, hash, batch_ptr(s->batch));
    if (rc)
        return rc;
    s->ring[(s->head + s->len++) & (s->cap - 1)] = (struct seen_change){hash, s->batch};
    return 0;
}

int seen_changed(struct seen *s, unsigned table, struct hf_slice key)
{
    int rc;

    if (s->batch == 0)
        return 0;
    rc = ring_reserve(s, 2);
    if (rc == 0)
        rc = note(s, key_hash(table, key));
    if (rc == 0)
        rc = note(s, object_hash(table, key));
    if (rc == 0)
        s->tables[table] = s->batch;
    return rc;
}

void seen_durable(struct seen *s, uint64_t batch)
{
    if (batch > s->durable)
        s->durable = batch;
    while (s->len > 0 && s->ring[s->head].batch <= batch) {
        const struct seen_change *c = &s->ring[s->head];

        if (batch_of(s, c->hash) == c->batch)
            hf_map_del(&s->last, c->hash);
        s->head = (s->head + 1) & (s->cap - 1);
        s->len--;
    }
}

static void count(struct seen *s, uint64_t batch)
{
    if (batch > s->durable && batch > s->newest)
        s->newest = batch;
}

void seen_read_key(struct seen *s, unsigned table, struct hf_slice key)
{
    if (s->last.len > 0)
        count(s, batch_of(s, key_hash(table, key)));
}

void seen_read_scan(struct seen *s, unsigned table, struct hf_slice prefix)
{
    if (prefix.len < SEEN_OBJECT)
        count(s, s->tables[table]);
    else if (s->last.len > 0)
        count(s, batch_of(s, object_hash(table, prefix)));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks that were deleted lately. A chunk is deleted when its layout is gone for good (its
 * generation is never used again), but a writer who still has that layout may have a write under
 * way: it must not bring the chunk back, for nobody would ever delete it again. Such a writer is
 * told FENCED and asks the shard anew.
 *
 * Bounded: a ring of the last GRAVES ids. Across a restart nothing is remembered; connections with
 * writes under way end with it.
 */
#include "svc_priv.h"

#include <stdlib.h>

#include "holdfast/map.h"

#define GRAVES 65536u

struct svc_graves {
    struct hf_map set; /* key -> how often it is in the ring */
    uint64_t ring[GRAVES];
    unsigned next;
    bool full;
};

static uint64_t key_of(const Hf__ChunkId *id)
{
    return hf_hash_u64(
        id->ino ^ hf_hash_u64(((uint64_t)id->index << 32 | id->gen) ^ hf_hash_u64(id->segment)));
}

static void forget(struct svc_graves *g, uint64_t key)
{
    uintptr_t n = (uintptr_t)hf_map_get(&g->set, key);

    if (n > 1)
        (void)hf_map_put(&g->set, key, (void *)(n - 1));
    else
        (void)hf_map_del(&g->set, key);
}

void svc_grave_add(struct hf_segsvc *s, const Hf__ChunkId *id)
{
    uint64_t key = key_of(id);
    struct svc_graves *g = s->graves;
    uintptr_t n;

    if (!g)
        g = s->graves = calloc(1, sizeof(*g));
    if (!g)
        return; /* without memory: as after a restart */
    if (g->full)
        forget(g, g->ring[g->next]);
    n = (uintptr_t)hf_map_get(&g->set, key);
    if (hf_map_put(&g->set, key, (void *)(n + 1)))
        return;
    g->ring[g->next] = key;
    g->next = (g->next + 1) % GRAVES;
    g->full = g->full || g->next == 0;
}

bool svc_grave_has(const struct hf_segsvc *s, const Hf__ChunkId *id)
{
    return s->graves && hf_map_get(&s->graves->set, key_of(id));
}

void svc_graves_fini(struct hf_segsvc *s)
{
    if (s->graves)
        hf_map_fini(&s->graves->set);
    free(s->graves);
}

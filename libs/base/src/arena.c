/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN ((size_t)16)
#define BLOCK_MIN   ((size_t)4096)
#define BLOCK_MAX   ((size_t)65536)

/* The header is a multiple of the alignment, so that data is aligned as malloc aligns the block. */
struct hf_arena_block {
    struct hf_arena_block *next;
    size_t cap;
    _Alignas(16) uint8_t data[];
};

void hf_arena_init(struct hf_arena *a, size_t limit)
{
    *a = (struct hf_arena){.limit = limit};
}

void hf_arena_fini(struct hf_arena *a)
{
    while (a->head) {
        struct hf_arena_block *b = a->head;

        a->head = b->next;
        free(b);
    }
    a->used = a->total = 0;
}

void hf_arena_reset(struct hf_arena *a)
{
    struct hf_arena_block *keep = NULL;
    struct hf_arena_block *next;

    for (struct hf_arena_block *b = a->head; b; b = next) {
        next = b->next;
        if (b->cap <= BLOCK_MAX && (!keep || b->cap > keep->cap)) {
            free(keep);
            keep = b;
        } else {
            free(b);
        }
    }
    if (keep)
        keep->next = NULL;
    a->head = keep;
    a->used = 0;
    a->total = keep ? keep->cap : 0;
}

/* A block for at least `bytes` (aligned), as big as growth and limit allow. */
static struct hf_arena_block *block_new(struct hf_arena *a, size_t bytes)
{
    size_t room = a->limit ? a->limit - a->total : SIZE_MAX - sizeof(struct hf_arena_block);
    size_t cap = a->total < BLOCK_MIN ? BLOCK_MIN : a->total;
    struct hf_arena_block *b;

    if (bytes > room)
        return NULL;
    if (cap > BLOCK_MAX)
        cap = BLOCK_MAX;
    if (cap > room)
        cap = room & ~(ARENA_ALIGN - 1);
    if (cap < bytes)
        cap = bytes;
    b = malloc(sizeof(*b) + cap);
    if (!b)
        return NULL;
    b->cap = cap;
    a->total += cap;
    return b;
}

void *hf_arena_alloc(struct hf_arena *a, size_t bytes)
{
    struct hf_arena_block *b = a->head;
    void *p;

    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + (bytes == 0) + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (!b || bytes > b->cap - a->used) {
        b = block_new(a, bytes);
        if (!b)
            return NULL;
        /* A block filled by one big piece goes behind the current one, which may have room left. */
        if (a->head && b->cap == bytes) {
            b->next = a->head->next;
            a->head->next = b;
            return b->data;
        }
        b->next = a->head;
        a->head = b;
        a->used = 0;
    }
    p = b->data + a->used;
    a->used += bytes;
    return p;
}

void *hf_arena_zalloc(struct hf_arena *a, size_t bytes)
{
    void *p = hf_arena_alloc(a, bytes);

    if (p)
        memset(p, 0, bytes);
    return p;
}

void *hf_arena_dup(struct hf_arena *a, const void *data, size_t len)
{
    void *p = hf_arena_alloc(a, len);

    if (p && len > 0)
        memcpy(p, data, len);
    return p;
}

char *hf_arena_strdup(struct hf_arena *a, const char *s)
{
    return hf_arena_dup(a, s, strlen(s) + 1);
}

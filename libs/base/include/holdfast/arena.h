/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's memory: allocated piece by piece, released at once. Not thread-safe.
 */
#ifndef HOLDFAST_ARENA_H
#define HOLDFAST_ARENA_H

#include <stddef.h>

struct hf_arena_block;

struct hf_arena {
    struct hf_arena_block *head; /* current block; older ones follow */
    size_t used;                 /* in the current block */
    size_t total;                /* bytes of all blocks */
    size_t limit;                /* allocation fails beyond it; 0 = none */
};

/* limit: bytes of all blocks together, 0 = none. The first block is allocated at the first use. */
void hf_arena_init(struct hf_arena *a, size_t limit);
void hf_arena_fini(struct hf_arena *a);
/* Keeps one block (up to 64 KiB) for reuse. */
void hf_arena_reset(struct hf_arena *a);
/* 16-byte aligned, not zeroed; NULL when memory or the limit is exhausted. */
void *hf_arena_alloc(struct hf_arena *a, size_t bytes);
void *hf_arena_zalloc(struct hf_arena *a, size_t bytes);
void *hf_arena_dup(struct hf_arena *a, const void *data, size_t len);
char *hf_arena_strdup(struct hf_arena *a, const char *s);

#endif

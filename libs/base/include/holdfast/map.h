/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash map from a 64-bit key to a pointer-sized value: open addressing, linear probing,
 * backward-shift deletion. Zero-initialised is empty and valid. Any key value is allowed. Not
 * thread-safe. Keys that a peer can choose are hashed with a per-map random-free mixer, which is
 * enough because callers bound the number of entries; use hf_hash_bytes() with a secret seed to
 * make keys from bytes.
 */
#ifndef HOLDFAST_MAP_H
#define HOLDFAST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_map_slot;

struct hf_map {
    struct hf_map_slot *slots;
    size_t cap; /* power of two or 0 */
    size_t len;
};

void hf_map_fini(struct hf_map *m);
void hf_map_clear(struct hf_map *m); /* keeps the memory */
/* NULL if absent (a stored NULL reads as absent; store something else). */
void *hf_map_get(const struct hf_map *m, uint64_t key);
/* Insert or replace; NOMEM. */
int hf_map_put(struct hf_map *m, uint64_t key, void *value);
/* Removes and returns the value, NULL if absent. */
void *hf_map_del(struct hf_map *m, uint64_t key);
/* Iterate: start with *pos = 0; false at the end. No insertion or deletion meanwhile. */
bool hf_map_next(const struct hf_map *m, size_t *pos, uint64_t *ret_key, void **ret_value);

/* 64-bit mixing (for keys that are already numbers) and a fast non-cryptographic hash of bytes. */
uint64_t hf_hash_u64(uint64_t v);
uint64_t hf_hash_bytes(const void *data, size_t len, uint64_t seed);

#endif

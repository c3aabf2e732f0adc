/* SPDX-License-Identifier: Apache-2.0
 *
 * Which not yet durable batch changed a key, an object (first 8 bytes of the key) or a table last.
 * Keys and objects are known by a 64-bit hash: a collision makes a reply wait longer, never too
 * short. Each change is also queued in order of batches, so that forgetting durable ones costs no
 * search.
 */
#ifndef HF_STORE_SEEN_H
#define HF_STORE_SEEN_H

#include "holdfast/map.h"
#include "holdfast/store.h"

#define SEEN_OBJECT 8

struct seen_change {
    uint64_t hash, batch;
};

struct seen {
    struct hf_map last;       /* hash -> batch */
    struct seen_change *ring; /* cap entries, a power of two or 0 */
    size_t head, len, cap;
    uint64_t tables[HF_STORE_TABLES_MAX];
    uint64_t batch; /* 0: nothing is tracked yet */
    uint64_t durable;
    uint64_t newest; /* of the reads since reset */
};

void seen_fini(struct seen *s);
/* The current batch changes this key. NOMEM. */
int seen_changed(struct seen *s, unsigned table, struct hf_slice key);
void seen_durable(struct seen *s, uint64_t batch);
void seen_read_key(struct seen *s, unsigned table, struct hf_slice key);
/* A scan of keys with this prefix: the object, or the whole table if the prefix does not name one.
 */
void seen_read_scan(struct seen *s, unsigned table, struct hf_slice prefix);

#endif

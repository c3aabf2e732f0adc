/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a file in memory: a set of extents that do not overlap and do not cross a border of
 * WSET_BLOCK bytes. Pure: knows no network.
 */
#ifndef HF_WSET_H
#define HF_WSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/list.h"

#define WSET_BLOCK   (1u << 20)
#define WSET_BUCKETS 64u

struct ext {
    struct hf_list fifo; /* wset.fifo, by seq */
    struct ext *next;    /* in its bucket, by offset */
    uint64_t off;
    uint32_t len, cap;
    uint64_t seq;      /* of the oldest write in it */
    bool sync;         /* is to be written stable */
    uint64_t verifier; /* written, not committed: what the server said */
    uint64_t era;      /* the same: commits that had been started when it was written */
    uint8_t data[];
};

struct wset {
    struct hf_list fifo;
    uint64_t charge; /* bytes of memory */
    size_t n;
    struct ext *buckets[WSET_BUCKETS];
};

void wset_init(struct wset *s);
void wset_fini(struct wset *s); /* frees the extents */
static inline uint64_t ext_end(const struct ext *x)
{
    return x->off + x->len;
}
/* Puts bytes over what is there. NOMEM: nothing changed. The range must lie within one block. */
int wset_write(struct wset *s, uint64_t off, const void *data, uint32_t len, uint64_t seq,
               bool sync);
/* The first extent that has bytes of [off, end), NULL if none has. */
struct ext *wset_find(const struct wset *s, uint64_t off, uint64_t end);
/* Moves between sets; insert: it must not overlap. */
void wset_remove(struct wset *s, struct ext *x);
void wset_insert(struct wset *s, struct ext *x);
/* Forgets the bytes of [off, end). NOMEM: an extent could not be divided; its second part is gone.
 */
int wset_cut(struct wset *s, uint64_t off, uint64_t end);
/* The end of the last byte, 0 if empty. */
uint64_t wset_end(const struct wset *s);
void ext_free(struct ext *x);

#endif

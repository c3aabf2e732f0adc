/* SPDX-License-Identifier: Apache-2.0
 *
 * What the owner of a store sees: its changes since the last checkpoint began (active), over those
 * that a checkpoint which is under way writes (frozen), over the provider's view of the last one
 * that has ended (base).
 *
 *      put, del -> active -- freeze --> frozen -- flush (any thread) --> the provider's next commit
 *                                         |                                      |
 *                                         +--- thaw: forgotten, the view renewed +
 *
 * flush reads `frozen` beside the owner, who reads it too: nobody changes it.
 */
#ifndef HF_STORE_LAYERS_H
#define HF_STORE_LAYERS_H

#include "memtable.h"
#include "provider.h"

/* Where the scan that stepped last in a table stands: in each layer the next entry that it has not
 * yet returned. */
struct layers_pos {
    uint64_t scan;      /* 0: nowhere */
    uint64_t base_scan; /* the provider's number; it steps from where the base stands, so a new
                         * start needs a new one */
    struct mt_entry *active, *frozen;
    struct hf_slice base_key, base_val;
    bool base_end, base_taken; /* it has no more; what it stands at has been returned */
};

/* The key of the last get in a table that neither frozen nor base has: a put of it, which often
 * follows, need not ask again. */
struct layers_miss {
    size_t len; /* 0: none */
    uint8_t key[40];
};

struct layers {
    const struct store_ops *ops;
    void *p;
    unsigned ntables;
    struct memtable tables[2], *active, *frozen; /* frozen NULL: no checkpoint is under way */
    uint64_t frozen_applied;
    uint64_t base_scans; /* numbers them */
    struct layers_pos pos[HF_STORE_TABLES_MAX];
    struct layers_miss miss[HF_STORE_TABLES_MAX];
};

/* With ops, p and ntables set and all else zero. */
void layers_init(struct layers *l);
void layers_fini(struct layers *l); /* not the provider */

int layers_get(struct layers *l, unsigned table, struct hf_slice key, struct hf_slice *ret_val);
/* The first entry with a key >= from (after: > from). NOENT. `scan` as in provider.h. */
int layers_seek(struct layers *l, unsigned table, struct hf_slice from, bool after, uint64_t scan,
                struct hf_slice *ret_key, struct hf_slice *ret_val);
int layers_count(struct layers *l, unsigned table, uint64_t *ret);
/* key and val do not point into the store. */
int layers_put(struct layers *l, unsigned table, struct hf_slice key, struct hf_slice val);
int layers_del(struct layers *l, unsigned table, struct hf_slice key); /* NOENT */

/* See the functions of the same names in store.h. */
void layers_freeze(struct layers *l, uint64_t applied);
int layers_flush(struct layers *l);
int layers_thaw(struct layers *l);

#endif

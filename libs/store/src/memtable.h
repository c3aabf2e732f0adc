/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that no checkpoint holds yet: the newest value of each key, or that it is gone, by key
 * (hash) and in key order (a skip list per table). Entries never move and are never removed but all
 * at once, so that a scan may keep a pointer to the one at which it stands.
 *
 * One thread changes it; nobody else looks at it then. One that is not changed any more may be read
 * by any number of threads.
 */
#ifndef HF_STORE_MEMTABLE_H
#define HF_STORE_MEMTABLE_H

#include "holdfast/arena.h"
#include "holdfast/map.h"
#include "holdfast/store.h"

#define MT_LEVELS 12 /* at a quarter per level: 16 million entries */

struct mt_entry {
    struct mt_entry *same_hash; /* the next entry whose hash is the same */
    uint8_t *val;
    uint32_t vlen, vcap;
    uint16_t klen;
    uint8_t table, levels;
    bool gone;               /* deleted; no value */
    struct mt_entry *next[]; /* in key order, of each level; the key's bytes follow */
};

struct memtable {
    struct hf_arena arena;
    struct hf_map by_hash;
    struct mt_entry *first[HF_STORE_TABLES_MAX][MT_LEVELS];
    uint8_t levels[HF_STORE_TABLES_MAX]; /* in use */
    int64_t delta[HF_STORE_TABLES_MAX];  /* entries more than in what lies below */
    size_t changes;                      /* puts and deletes */
    uint64_t grown;                      /* bytes by which a checkpoint may make the store grow */
};

/* Zero-initialised is empty and valid. Reset keeps a little memory. */
void mt_reset(struct memtable *m);
void mt_fini(struct memtable *m);

static inline struct hf_slice mt_key(const struct mt_entry *e)
{
    return hf_slice(&e->next[e->levels], e->klen);
}
static inline struct hf_slice mt_val(const struct mt_entry *e)
{
    return hf_slice(e->val, e->vlen);
}

/* NULL: nothing is known of the key here. */
struct mt_entry *mt_find(const struct memtable *m, unsigned table, struct hf_slice key);
/* Sets the value of an entry; NOMEM, nothing changed. */
int mt_set(struct memtable *m, struct mt_entry *e, struct hf_slice val);
/* An entry for a key that has none, with a value, or gone; NOMEM, nothing changed. */
int mt_add(struct memtable *m, unsigned table, struct hf_slice key, struct hf_slice val, bool gone);
/* The first entry with a key >= from (after: > from), gone or not; NULL. */
struct mt_entry *mt_seek(const struct memtable *m, unsigned table, struct hf_slice from,
                         bool after);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind the store's front (store.c): ordered tables with one open write transaction.
 * The front has checked table numbers and lengths, keeps the redo and the dependencies, and stops
 * calling after the first error that is not NOENT.
 *
 * Scans carry no provider state: the front keeps the last key and asks for the following one, so
 * that there is nothing to release and nothing that a put or a commit could leave dangling. `scan`
 * is a number unique to the scan: a provider that still has a cursor at its last key may step
 * instead of searching again.
 */
#ifndef HF_STORE_PROVIDER_H
#define HF_STORE_PROVIDER_H

#include "holdfast/store.h"

struct store_fill {
    uint64_t used_bytes; /* of committed data, without free pages; may be a second old */
    uint64_t fs_free_bytes;
};

struct store_ops {
    int (*get)(void *p, unsigned table, struct hf_slice key, struct hf_slice *ret_val);
    int (*put)(void *p, unsigned table, struct hf_slice key, struct hf_slice val);
    int (*del)(void *p, unsigned table, struct hf_slice key); /* NOENT */
    /* The first entry with a key >= from (after: > from). NOENT. */
    int (*seek)(void *p, unsigned table, struct hf_slice from, bool after, uint64_t scan,
                struct hf_slice *ret_key, struct hf_slice *ret_val);
    int (*count)(void *p, unsigned table, uint64_t *ret);
    int (*commit)(void *p, uint64_t applied);
    /* Refreshes *ret; called at most once per second. */
    int (*fill)(void *p, struct store_fill *ret);
    /* Any thread, until close. */
    int (*snap_open)(void *p, void **ret);
    void (*snap_close)(void *snap);
    int (*snap_get)(void *snap, unsigned table, struct hf_slice key, struct hf_slice *ret_val);
    int (*snap_scan)(void *snap, unsigned table, struct hf_slice from,
                     int (*fn)(void *arg, struct hf_slice key, struct hf_slice val), void *arg);
    void (*close)(void *p);
};

/* *ret_applied: the position of the checkpoint found; 0 for a new store. */
int store_mem_open(const struct hf_store_opts *o, const struct store_ops **ret_ops, void **ret,
                   uint64_t *ret_applied);
int store_lmdb_open(const struct hf_store_opts *o, const struct store_ops **ret_ops, void **ret,
                    uint64_t *ret_applied);

/* memcmp order, the shorter first among equals. */
static inline int store_key_cmp(struct hf_slice a, struct hf_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0;

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "drc.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"
#include "holdfast/map.h"

struct nfs_drc {
    struct hf_map map;
    struct hf_list lru; /* finished entries, oldest first */
    size_t max_entries, max_bytes, bytes;
    uint64_t seed;
};

struct nfs_drc *nfs_drc_new(size_t max_entries, size_t max_bytes, uint64_t seed)
{
    struct nfs_drc *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    hf_list_init(&d->lru);
    d->max_entries = max_entries;
    d->max_bytes = max_bytes;
    d->seed = seed;
    return d;
}

static void entry_free(struct nfs_drc *d, struct nfs_drc_entry *e)
{
    (void)hf_map_del(&d->map, e->id);
    hf_list_remove(&e->lru);
    d->bytes -= e->reply_len;
    free(e->reply);
    free(e);
}

void nfs_drc_free(struct nfs_drc *d)
{
    void *e;
    uint64_t key;

    if (!d)
        return;
    for (size_t pos = 0; hf_map_next(&d->map, &pos, &key, &e);) {
        free(((struct nfs_drc_entry *)e)->reply);
        free(e);
    }
    hf_map_fini(&d->map);
    free(d);
}

void nfs_drc_key_args(const struct nfs_drc *d, struct nfs_drc_key *k, struct hf_slice args)
{
    k->args_len = (uint32_t)args.len;
    k->args_crc = hf_crc32c(0, args.data, args.len);
    k->args_hash = hf_hash_bytes(args.data, args.len, d->seed);
}

static bool key_eq(const struct nfs_drc_key *a, const struct nfs_drc_key *b)
{
    return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->family == b->family &&
           a->xid == b->xid && a->prog == b->prog && a->vers == b->vers && a->proc == b->proc &&
           a->uid == b->uid && a->args_len == b->args_len && a->args_crc == b->args_crc &&
           a->args_hash == b->args_hash;
}

static uint64_t key_id(const struct nfs_drc *d, const struct nfs_drc_key *k)
{
    const uint32_t words[] = {k->family, k->xid, k->prog, k->vers, k->proc, k->uid, k->args_len};
    uint64_t h = hf_hash_bytes(k->addr, sizeof(k->addr), d->seed ^ k->args_hash);

    return hf_hash_bytes(words, sizeof(words), h);
}

static bool evict_oldest(struct nfs_drc *d)
{
    if (hf_list_empty(&d->lru))
        return false;
    entry_free(d, hf_container_of(d->lru.next, struct nfs_drc_entry, lru));
    return true;
}

void nfs_drc_expire(struct nfs_drc *d, uint64_t now_ns)
{
    while (!hf_list_empty(&d->lru)) {
        struct nfs_drc_entry *e = hf_container_of(d->lru.next, struct nfs_drc_entry, lru);

        if (now_ns - e->at_ns < NFS_DRC_AGE_NS)
            return;
        entry_free(d, e);
    }
}

enum nfs_drc_verdict nfs_drc_begin(struct nfs_drc *d, const struct nfs_drc_key *k, uint64_t now_ns,
                                   struct nfs_drc_entry **ret)
{
    uint64_t id = key_id(d, k);
    struct nfs_drc_entry *e;

    *ret = NULL;
    nfs_drc_expire(d, now_ns);
    e = hf_map_get(&d->map, id);
    if (e) {
        if (!key_eq(&e->key, k))
            return NFS_DRC_FULL; /* two keys of one hash: only one of them is remembered */
        *ret = e;
        return e->running ? NFS_DRC_WAIT : NFS_DRC_REPLAY;
    }
    while (d->map.len >= d->max_entries) {
        if (!evict_oldest(d))
            return NFS_DRC_FULL;
    }
    e = calloc(1, sizeof(*e));
    if (!e)
        return NFS_DRC_FULL;
    e->key = *k;
    e->id = id;
    e->running = true;
    hf_list_init(&e->lru);
    hf_list_init(&e->waiters);
    if (hf_map_put(&d->map, id, e) != 0) {
        free(e);
        return NFS_DRC_FULL;
    }
    *ret = e;
    return NFS_DRC_NEW;
}

void nfs_drc_done(struct nfs_drc *d, struct nfs_drc_entry *e, const void *reply, size_t len,
                  uint64_t now_ns)
{
    HF_ASSERT(e->running && hf_list_empty(&e->waiters));
    while (d->bytes + len > d->max_bytes && evict_oldest(d))
        ;
    if (d->bytes + len <= d->max_bytes)
        e->reply = malloc(len);
    if (!e->reply) {
        entry_free(d, e);
        return;
    }
    memcpy(e->reply, reply, len);
    e->reply_len = len;
    e->running = false;
    e->at_ns = now_ns;
    d->bytes += len;
    hf_list_push_back(&d->lru, &e->lru);
}

void nfs_drc_forget(struct nfs_drc *d, struct nfs_drc_entry *e)
{
    HF_ASSERT(hf_list_empty(&e->waiters));
    entry_free(d, e);
}

size_t nfs_drc_entries(const struct nfs_drc *d)
{
    return d->map.len;
}

size_t nfs_drc_bytes(const struct nfs_drc *d)
{
    return d->bytes;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Duplicate-request cache (RFC 1813 section 4.1 asks for one): remembers the replies of changes, so
 * that a call sent again after a lost reply is answered as the first time instead of running again.
 * A copy that comes while the first still runs waits for its reply.
 *
 * A call is known by the client's address (not its port: it may have reconnected), xid, procedure,
 * user, and a hash over its arguments, so that an xid used again for something else is not
 * mistaken. Credentials are not hashed: some clients stamp them anew.
 *
 * Bounded in entries and reply bytes; the least recently made are dropped first, and after
 * NFS_DRC_AGE_NS. Running entries are never dropped. Pure: time is given. Not thread-safe.
 */
#ifndef HF_NFS_DRC_H
#define HF_NFS_DRC_H

#include <netinet/in.h>
#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/list.h"

#define NFS_DRC_AGE_NS (120ull * 1000000000ull)

struct nfs_drc;

struct nfs_drc_key {
    uint8_t addr[16]; /* IPv4 in the first 4 */
    uint32_t family;
    uint32_t xid, prog, vers, proc, uid;
    uint32_t args_len, args_crc;
    uint64_t args_hash;
};

struct nfs_drc_entry {
    struct nfs_drc_key key;
    uint64_t id; /* key's hash: in the map */
    struct hf_list lru;
    struct hf_list waiters; /* of the caller's objects; the caller empties it */
    bool running;
    uint64_t at_ns;
    uint8_t *reply;
    size_t reply_len;
};

enum nfs_drc_verdict {
    NFS_DRC_NEW,    /* run it, then nfs_drc_done or nfs_drc_forget; *ret is its entry */
    NFS_DRC_WAIT,   /* it runs: join ret->waiters */
    NFS_DRC_REPLAY, /* answer with ret->reply */
    NFS_DRC_FULL,   /* run it without remembering; *ret is NULL */
};

/* seed: secret, so that clients cannot make collisions. NULL: no memory. */
struct nfs_drc *nfs_drc_new(size_t max_entries, size_t max_bytes, uint64_t seed);
void nfs_drc_free(struct nfs_drc *d); /* nothing may wait any more */
/* args: the call's arguments. Fills the hashes of k; the other fields are the caller's. */
void nfs_drc_key_args(const struct nfs_drc *d, struct nfs_drc_key *k, struct hf_slice args);
enum nfs_drc_verdict nfs_drc_begin(struct nfs_drc *d, const struct nfs_drc_key *k, uint64_t now_ns,
                                   struct nfs_drc_entry **ret);
/* Remembers the reply (copied). Without memory or room for it the entry is forgotten. */
void nfs_drc_done(struct nfs_drc *d, struct nfs_drc_entry *e, const void *reply, size_t len,
                  uint64_t now_ns);
/* The outcome is not to be remembered: the client is to run it again. */
void nfs_drc_forget(struct nfs_drc *d, struct nfs_drc_entry *e);
void nfs_drc_expire(struct nfs_drc *d, uint64_t now_ns);
size_t nfs_drc_entries(const struct nfs_drc *d);
size_t nfs_drc_bytes(const struct nfs_drc *d);

#endif

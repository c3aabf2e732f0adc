/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_VFS_PRIV_H
#define HF_VFS_PRIV_H

#include "holdfast/err.h"
#include "holdfast/map.h"
#include "holdfast/vfs.h"

#define HANDLE_KEY_BYTES 16u
#define EXPORTS_MAX      4096u
#define PREFIXES_MAX     1024u /* per export */

/* An address or a range of them; IPv4 as v4-mapped IPv6. */
struct addr {
    uint8_t b[16];
};
struct prefix {
    struct addr addr;
    uint8_t bits; /* 0..128 */
};
/* "10.1.0.0/16", "fd00::/8", "192.0.2.7", "*"; INVAL. */
int prefix_parse(const char *text, struct prefix *ret);
bool prefix_match(const struct prefix *p, const struct addr *a);
/* False for what is neither IPv4 nor IPv6. */
bool addr_from(const struct sockaddr *sa, struct addr *ret);

/* One export of the present map. */
struct export
{
    struct hf_vfs_export pub;
    bool resolved; /* pub.root_* are known */
    bool tried;    /* a walk to its directory has ended, well or not */
    bool any;      /* admits every address */
    int status;    /* why it is not resolved */
    size_t nprefixes;
    struct prefix *prefixes;
    const Hf__ExportEntry *entry; /* in hf_vfs.map */
};

struct resolver;

struct hf_vfs {
    struct hf_loop *loop;
    struct hf_client *client;
    Hf__MapGetRep *map; /* our own copy; NULL: none yet */
    uint8_t key[HANDLE_KEY_BYTES];
    uint64_t fsid;
    struct export *exports; /* by path */
    size_t nexports;
    struct hf_map by_id;      /* export id -> struct export */
    struct hf_list resolvers; /* walks under way */
    uint64_t generation;      /* of the table */
    struct hf_timer retry;    /* walks again what is not resolved */
};

/* exports.c */
void exports_fini(struct hf_vfs *v);
void exports_retry(struct hf_timer *t);
bool export_admits(const struct export *e, const struct sockaddr *peer);
/* resolve.c */
void resolve_start(struct hf_vfs *v, const struct export *e);
void resolve_orphan_all(struct hf_vfs *v);
void exports_resolved(struct hf_vfs *v, uint64_t generation, uint32_t id, int status, uint64_t ino,
                      uint32_t gen);

#endif

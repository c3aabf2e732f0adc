/* SPDX-License-Identifier: Apache-2.0
 *
 * File handles: 37 bytes, little-endian, the same from every gateway, good for ever.
 *
 *   0  version 1        1  fsid 8          9  export id 4      13  ino 8
 *  21  generation 4    25  snapshot epoch 4 (0: the live one)  29  MAC 8
 *
 * The MAC is SipHash-2-4 with the file system's handle key over all that stands before it. Without
 * the key nobody can make a handle for an object that was not shown to him, nor move one to another
 * export.
 */
#include <sodium.h>

#include "holdfast/endian.h"
#include "vfs_priv.h"

#define FH_VERSION 1u

struct fh {
    uint64_t fsid;
    uint32_t export_id;
    uint64_t ino;
    uint32_t gen;
    uint32_t epoch;
};

enum {
    FH_AT_VERSION = 0,
    FH_AT_FSID = 1,
    FH_AT_EXPORT = 9,
    FH_AT_INO = 13,
    FH_AT_GEN = 21,
    FH_AT_EPOCH = 25,
    FH_AT_MAC = 29,
    FH_BYTES = 37,
};

_Static_assert(FH_BYTES - FH_AT_MAC == crypto_shorthash_BYTES, "the MAC ends the handle");
_Static_assert(HANDLE_KEY_BYTES == crypto_shorthash_KEYBYTES, "the map's key is the MAC's");
_Static_assert(FH_BYTES <= HF_VFS_FH_MAX, "RFC 1813 2.5: at most 64 bytes");

uint32_t hf_vfs_fh_encode(struct hf_vfs *v, const struct hf_vfs_export *exp, uint64_t ino,
                          uint32_t gen, void *buf)
{
    uint8_t *p = buf;

    p[FH_AT_VERSION] = FH_VERSION;
    hf_put_le64(p + FH_AT_FSID, v->fsid);
    hf_put_le32(p + FH_AT_EXPORT, exp->id);
    hf_put_le64(p + FH_AT_INO, ino);
    hf_put_le32(p + FH_AT_GEN, gen);
    hf_put_le32(p + FH_AT_EPOCH, 0);
    crypto_shorthash(p + FH_AT_MAC, p, FH_AT_MAC, v->key);
    return FH_BYTES;
}

/* BADHANDLE unless this file system's key made it. */
static int fh_parse(const struct hf_vfs *v, struct hf_slice in, struct fh *ret)
{
    const uint8_t *p = in.data;
    uint8_t mac[crypto_shorthash_BYTES];

    if (in.len != FH_BYTES || p[FH_AT_VERSION] != FH_VERSION || !v->map)
        return HF_E_BADHANDLE;
    crypto_shorthash(mac, p, FH_AT_MAC, v->key);
    if (sodium_memcmp(mac, p + FH_AT_MAC, sizeof(mac)) != 0)
        return HF_E_BADHANDLE;
    *ret = (struct fh){
        .fsid = hf_get_le64(p + FH_AT_FSID),
        .export_id = hf_get_le32(p + FH_AT_EXPORT),
        .ino = hf_get_le64(p + FH_AT_INO),
        .gen = hf_get_le32(p + FH_AT_GEN),
        .epoch = hf_get_le32(p + FH_AT_EPOCH),
    };
    return 0;
}

int hf_vfs_fh_decode(struct hf_vfs *v, struct hf_slice in, const struct sockaddr *peer,
                     struct hf_vfs_obj *ret)
{
    const struct export *e;
    struct fh fh;
    int rc;

    if (!v->map)
        return HF_E_JUKEBOX;
    rc = fh_parse(v, in, &fh);
    if (rc)
        return rc;
    e = hf_map_get(&v->by_id, fh.export_id);
    if (fh.fsid != v->fsid || fh.epoch != 0 || !e)
        return HF_E_STALE;
    if (!export_admits(e, peer))
        return HF_E_ACCES;
    if (!e->resolved)
        return e->tried && e->status == HF_E_NOENT ? HF_E_STALE : HF_E_JUKEBOX;
    *ret = (struct hf_vfs_obj){.exp = e->pub, .ino = fh.ino, .gen = fh.gen};
    return 0;
}

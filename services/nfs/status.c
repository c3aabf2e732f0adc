/* SPDX-License-Identifier: Apache-2.0 */
#include "svc_priv.h"

struct row {
    nfsstat3 nfs;
    mountstat3 mount;
};

static const struct row table[] = {
#define X(name, nfs, mount) [-HF_E_##name] = {nfs, mount},
#include "status.def"
#undef X
};

static const struct row *find(int rc)
{
    static const struct row unknown = {NFS3ERR_SERVERFAULT, MNT3ERR_SERVERFAULT};
    size_t i = rc < 0 ? 0 - (size_t)rc : HF_ARRAY_LEN(table);

    if (i >= HF_ARRAY_LEN(table) || table[i].nfs == NFS3_OK)
        return &unknown;
    return &table[i];
}

nfsstat3 nfs_status_nfs3(int rc)
{
    return rc == 0 ? NFS3_OK : find(rc)->nfs;
}

mountstat3 nfs_status_mount3(int rc)
{
    return rc == 0 ? MNT3_OK : find(rc)->mount;
}

bool nfs_status_allowed(uint64_t mask, int rc)
{
    switch (nfs_status_nfs3(rc)) {
    case NFS3_OK:
    case NFS3ERR_IO:
    case NFS3ERR_ACCES:
    case NFS3ERR_STALE:
    case NFS3ERR_BADHANDLE:
    case NFS3ERR_SERVERFAULT:
    case NFS3ERR_JUKEBOX:
        return true;
    default:
        return rc > -64 && (mask >> -rc & 1) != 0;
    }
}

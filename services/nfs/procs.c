/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of procedures, made from procs.def: adding one means a row there, its types in the .x
 * file and its own file.
 */
#include "svc_priv.h"

#define X(num, NAME, name, remembered, failure, errors)                                            \
    static bool decode_##name(XDR *x, union nfs_args *a)                                           \
    {                                                                                              \
        return xdr_##NAME##3args(x, &a->name);                                                     \
    }                                                                                              \
    static bool encode_##name(XDR *x, union nfs_res *res)                                          \
    {                                                                                              \
        return xdr_##NAME##3res(x, &res->name);                                                    \
    }
#include "procs.def"
#undef X

static bool decode_none(XDR *x, union nfs_args *a)
{
    (void)x;
    (void)a;
    return true;
}

static bool decode_mnt(XDR *x, union nfs_args *a)
{
    return xdr_MNT3args(x, &a->mnt);
}

void nfs3_null(struct nfs_req *r)
{
    (void)nfs_reply_begin(r);
    nfs_reply_end(r, true);
}

#define E(name) (1ull << -HF_E_##name)

const struct nfs_proc nfs3_procs[NFS3_PROCS] = {
    [0] = {"null", decode_none, NULL, nfs3_null, false, NFS_FAIL_NONE, 0},
#define X(num, NAME, name, remembered, failure, errors)                                            \
    [num] = {#name,      decode_##name,      encode_##name, nfs3_##name,                           \
             remembered, NFS_FAIL_##failure, errors},
#include "procs.def"
#undef X
};

const struct nfs_proc mount3_procs[MOUNT3_PROCS] = {
    [0] = {"null", decode_none, NULL, nfs3_null, false, NFS_FAIL_NONE, 0},
    [1] = {"mnt", decode_mnt, NULL, mount3_mnt, false, NFS_FAIL_NONE, 0},
    [2] = {"dump", decode_none, NULL, mount3_dump, false, NFS_FAIL_NONE, 0},
    [3] = {"umnt", decode_mnt, NULL, mount3_umnt, false, NFS_FAIL_NONE, 0},
    [4] = {"umntall", decode_none, NULL, mount3_umntall, false, NFS_FAIL_NONE, 0},
    [5] = {"export", decode_none, NULL, mount3_export, false, NFS_FAIL_NONE, 0},
};

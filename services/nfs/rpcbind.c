/* SPDX-License-Identifier: Apache-2.0
 *
 * Announces the two programs to the local rpcbind, for clients that ask for ports instead of being
 * told. Only what was set is unset: another server's registration stays.
 */
#include <rpc/pmap_clnt.h>

#include "svc_priv.h"

static const struct {
    const char *name;
    u_long prog, vers;
} programs[] = {{"NFS 3", NFS_PROGRAM, NFS_V3}, {"MOUNT 3", MOUNT_PROGRAM, MOUNT_V3}};

void nfs_rpcbind_set(struct hf_nfssvc *s)
{
    for (size_t i = 0; i < HF_ARRAY_LEN(programs); i++) {
        s->registered[i] =
            pmap_set(programs[i].prog, programs[i].vers, IPPROTO_TCP, s->listeners[0].port);
        if (s->registered[i])
            hf_log(s->log, HF_INFO, "nfs", "rpcbind: %s announced on port %d", programs[i].name,
                   s->listeners[0].port);
        else
            hf_log(s->log, HF_WARN, "nfs",
                   "rpcbind: %s could not be announced (no rpcbind, or taken by another server); "
                   "clients must be told the port",
                   programs[i].name);
    }
}

void nfs_rpcbind_unset(struct hf_nfssvc *s)
{
    for (size_t i = 0; i < HF_ARRAY_LEN(programs); i++) {
        if (s->registered[i])
            (void)pmap_unset(programs[i].prog, programs[i].vers);
        s->registered[i] = false;
    }
}

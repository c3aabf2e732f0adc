/* SPDX-License-Identifier: Apache-2.0
 *
 * Until the client has them.
 */
#include "fs_priv.h"

__attribute__((weak)) void hf_client_open(struct hf_client *c, const Hf__OpenReq *req,
                                          Hf__OpenRep_Closure closure, struct hf_client_call *call)
{
    hf__meta__open(hf_client_meta(c), req, closure, call);
}

__attribute__((weak)) void hf_client_fallocate(struct hf_client *c, struct hf_client_range *r)
{
    (void)c;
    r->status = HF_E_NOTSUPP;
    r->done(r);
}

__attribute__((weak)) void hf_client_seek(struct hf_client *c, struct hf_client_range *r)
{
    (void)c;
    r->status = HF_E_NOTSUPP;
    r->done(r);
}

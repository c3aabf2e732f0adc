/* SPDX-License-Identifier: Apache-2.0 */
#include "meta_priv.h"

int hf_meta_op_open(struct hf_meta *m, struct hf_meta_op *op, const Hf__OpenReq *q, Hf__OpenRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

int hf_meta_op_close(struct hf_meta *m, struct hf_meta_op *op, const Hf__CloseReq *q,
                     Hf__CloseRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

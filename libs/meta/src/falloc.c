/* SPDX-License-Identifier: Apache-2.0 */
#include "meta_priv.h"

int hf_meta_op_fallocate(struct hf_meta *m, struct hf_meta_op *op, const Hf__FallocateReq *q,
                         Hf__FallocateRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

int hf_meta_op_seek(struct hf_meta *m, struct hf_meta_op *op, const Hf__SeekReq *q, Hf__SeekRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

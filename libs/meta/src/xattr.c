/* SPDX-License-Identifier: Apache-2.0 */
#include "meta_priv.h"

int hf_meta_op_getxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__GetxattrReq *q,
                        Hf__GetxattrRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

int hf_meta_op_setxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__SetxattrReq *q,
                        Hf__SetxattrRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

int hf_meta_op_listxattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__ListxattrReq *q,
                         Hf__ListxattrRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

int hf_meta_op_removexattr(struct hf_meta *m, struct hf_meta_op *op, const Hf__RemovexattrReq *q,
                           Hf__RemovexattrRep *p)
{
    (void)m;
    (void)op;
    (void)q;
    (void)p;
    return HF_E_NOTSUPP;
}

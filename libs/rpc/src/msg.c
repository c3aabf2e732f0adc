/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "transport.h"

/* What one received message may unpack to: small repeated fields grow in memory, and a peer chooses
 * them. */
#define MSG_ARENA_MAX ((size_t)64 << 20)
#define PREFIX        4u /* see wire.h: brings bulk to a multiple of 16 */

struct hf_rpc_msg *hf_rpc_msg_wrap(void *impl, void (*impl_free)(void *impl), uint8_t *data,
                                   size_t len)
{
    struct hf_rpc_msg *m = malloc(sizeof(*m));

    if (!m)
        return NULL;
    *m = (struct hf_rpc_msg){.data = data, .len = len, .impl = impl, .impl_free = impl_free};
    atomic_init(&m->refs, 1);
    hf_arena_init(&m->arena, MSG_ARENA_MAX);
    return m;
}

void hf_rpc_msg_ref(struct hf_rpc_msg *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

void hf_rpc_msg_unref(struct hf_rpc_msg *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (m->impl)
        m->impl_free(m->impl);
    hf_arena_fini(&m->arena);
    free(m);
}

void hf_msgq_push(struct hf_msgq *q, struct hf_rpc_msg *m)
{
    m->next = NULL;
    if (q->tail)
        q->tail->next = m;
    else
        q->head = m;
    q->tail = m;
    q->n++;
}

struct hf_rpc_msg *hf_msgq_pop(struct hf_msgq *q)
{
    struct hf_rpc_msg *m = q->head;

    if (!m)
        return NULL;
    q->head = m->next;
    if (!q->head)
        q->tail = NULL;
    q->n--;
    return m;
}

void hf_msgq_clear(struct hf_msgq *q)
{
    struct hf_rpc_msg *m;

    while ((m = hf_msgq_pop(q)) != NULL)
        hf_rpc_msg_unref(m);
}

struct hf_rpc_msg *hf_rpc_msg_plain(struct hf_tr *t, size_t len)
{
    uint8_t *block = malloc(PREFIX + len);
    struct hf_rpc_msg *m = block ? hf_rpc_msg_wrap(block, free, block + PREFIX, len) : NULL;

    (void)t;
    if (!m)
        free(block);
    return m;
}

enum hf_tr_kind hf_tr_kind(const char *url)
{
    if (strncmp(url, "sim:", 4) == 0)
        return HF_TR_SIM;
    return strncmp(url, "inproc:", 7) == 0 ? HF_TR_INPROC : HF_TR_NNG;
}

int hf_tr_open(enum hf_tr_kind kind, struct hf_loop *loop, bool server,
               const struct hf_tr_events *ev, void *arg, struct hf_tr **ret)
{
    static int (*const open[HF_TR_KINDS])(struct hf_loop *, bool, const struct hf_tr_events *,
                                          void *, struct hf_tr **) = {
        [HF_TR_NNG] = hf_tr_nng_open,
        [HF_TR_INPROC] = hf_tr_inproc_open,
        [HF_TR_SIM] = hf_tr_sim_open,
    };

    return open[kind](loop, server, ev, arg, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "transport.h"

/* What one received message may unpack to: small repeated fields grow in memory, and a peer chooses
 * them. */
#define MSG_ARENA_MAX ((size_t)64 << 20)

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

int hf_tr_open(struct hf_loop *loop, bool server, const struct hf_tr_events *ev, void *arg,
               struct hf_tr **ret)
{
    return hf_env_is_sim(hf_loop_env(loop)) ? hf_tr_sim_open(loop, server, ev, arg, ret)
                                            : hf_tr_nng_open(loop, server, ev, arg, ret);
}

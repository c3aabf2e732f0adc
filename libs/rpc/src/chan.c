/* SPDX-License-Identifier: Apache-2.0 */
#include "chan.h"

#include "holdfast/endian.h"
#include "holdfast/err.h"

void chan_init(struct chan *c, struct hf_tr *tr)
{
    *c = (struct chan){.tr = tr};
}

void chan_fini(struct chan *c)
{
    hf_buf_fini(&c->gather);
    hf_msgq_clear(&c->ready);
}

void chan_restart(struct chan *c)
{
    c->sent = c->acked = c->received = c->taken = c->told = 0;
    c->under_way_bytes = 0;
}

/* Writes the entry at p, where its size has been made room for. */
static void put_entry(uint8_t *p, const struct hf_wire_entry *e, const struct chan_body *body,
                      const struct hf_slice *bulk, unsigned bulk_n)
{
    hf_wire_put_entry(p, e);
    p += HF_WIRE_ENTRY;
    if (body->msg)
        protobuf_c_message_pack(body->msg, p);
    else if (e->body_len)
        memcpy(p, body->packed.data, e->body_len);
    p += e->body_len;
    memset(p, 0, e->pad);
    p += e->pad;
    for (unsigned i = 0; i < bulk_n; i++) {
        if (bulk[i].len)
            memcpy(p, bulk[i].data, bulk[i].len);
        p += bulk[i].len;
    }
}

/* Turns what has gathered into a message. */
static int seal(struct chan *c)
{
    const struct hf_wire_frame f = {.count = c->gathered};
    size_t len = HF_WIRE_HEADER + c->gather.len;
    struct hf_rpc_msg *m;

    if (c->gathered == 0)
        return 0;
    m = c->tr->ops->msg_new(c->tr, len);
    if (!m)
        return HF_E_NOMEM;
    hf_wire_put_header(m->data, &f, len);
    memcpy(m->data + HF_WIRE_HEADER, c->gather.data, c->gather.len);
    hf_buf_reset(&c->gather);
    c->gathered = 0;
    hf_msgq_push(&c->ready, m);
    return 0;
}

void chan_add_msg(struct chan *c, struct hf_rpc_msg *m)
{
    /* Without memory for what came before, the order changes; nothing promises it. */
    (void)seal(c);
    c->bytes += m->len - HF_WIRE_HEADER;
    hf_msgq_push(&c->ready, m);
}

static int add_own(struct chan *c, struct hf_wire_entry *e, const struct chan_body *body,
                   const struct hf_slice *bulk, unsigned bulk_n)
{
    static const struct hf_wire_frame f = {.count = 1};
    struct hf_rpc_msg *m;
    size_t len;

    e->pad = hf_wire_pad(0, e->body_len, e->bulk_len);
    len = (size_t)HF_WIRE_HEADER + HF_WIRE_ENTRY + e->body_len + e->pad + e->bulk_len;
    m = c->tr->ops->msg_new(c->tr, len);
    if (!m)
        return HF_E_NOMEM;
    hf_wire_put_header(m->data, &f, len);
    put_entry(m->data + HF_WIRE_HEADER, e, body, bulk, bulk_n);
    chan_add_msg(c, m);
    return 0;
}

int chan_add(struct chan *c, struct hf_wire_entry *e, const struct chan_body *body,
             const struct hf_slice *bulk, unsigned bulk_n)
{
    size_t body_len = body->msg ? protobuf_c_message_get_packed_size(body->msg) : body->packed.len;
    size_t bulk_len = 0, size;
    int rc;

    for (unsigned i = 0; i < bulk_n; i++) {
        if (bulk[i].len > HF_WIRE_BULK_MAX - bulk_len)
            return HF_E_TOOBIG;
        bulk_len += bulk[i].len;
    }
    if (body_len > HF_WIRE_BODY_MAX)
        return HF_E_TOOBIG;
    e->body_len = (uint32_t)body_len;
    e->bulk_len = (uint32_t)bulk_len;
    if (body_len + bulk_len > CHAN_OWN_BYTES)
        return add_own(c, e, body, bulk, bulk_n);
    if (c->gathered == HF_WIRE_CALLS_MAX || c->gather.len > CHAN_GATHER_BYTES) {
        rc = seal(c);
        if (rc)
            return rc;
    }
    e->pad = hf_wire_pad(c->gather.len, body_len, bulk_len);
    size = HF_WIRE_ENTRY + body_len + e->pad + bulk_len;
    rc = hf_buf_reserve(&c->gather, size);
    if (rc)
        return rc;
    put_entry(c->gather.data + c->gather.len, e, body, bulk, bulk_n);
    c->gather.len += size;
    c->gathered++;
    c->bytes += size;
    return 0;
}

struct hf_rpc_msg *chan_next(struct chan *c)
{
    struct hf_rpc_msg *m;

    if (chan_under_way(c) >= CHAN_WINDOW)
        return NULL;
    if (c->ready.n == 0 && seal(c) != 0)
        return NULL; /* no memory: again at the next turn */
    m = hf_msgq_pop(&c->ready);
    if (m)
        c->bytes -= m->len - HF_WIRE_HEADER;
    return m;
}

struct hf_wire_reader chan_entries(const struct hf_rpc_msg *m)
{
    return (struct hf_wire_reader){m->data + HF_WIRE_HEADER, hf_get_le16(m->data + 6)};
}

void chan_send(struct chan *c, uint64_t peer, struct hf_rpc_msg *m)
{
    struct hf_wire_frame f = {.count = chan_entries(m).left, .acked = c->taken};

    f.seq = ++c->sent;
    c->told = c->taken;
    c->lens[c->sent % CHAN_WINDOW] = m->len;
    c->under_way_bytes += m->len;
    hf_wire_put_header(m->data, &f, m->len);
    c->tr->ops->send(c->tr, peer, m);
}

void chan_hello(struct chan *c, uint64_t peer)
{
    const struct hf_wire_frame f = {.acked = c->taken};
    struct hf_rpc_msg *m;

    m = c->tr->ops->msg_new(c->tr, HF_WIRE_HEADER);
    if (!m)
        return; /* again at the next turn */
    hf_wire_put_header(m->data, &f, HF_WIRE_HEADER);
    c->told = c->taken;
    c->tr->ops->send(c->tr, peer, m);
}

void chan_tell(struct chan *c, uint64_t peer)
{
    if (c->taken - c->told >= CHAN_ACK_AFTER)
        chan_hello(c, peer);
}

int chan_check(struct chan *c, const struct hf_wire_frame *f)
{
    uint32_t newly = f->acked - c->acked;

    if (newly <= chan_under_way(c))
        while (c->acked != f->acked)
            c->under_way_bytes -= c->lens[++c->acked % CHAN_WINDOW];
    else if (c->acked - f->acked > CHAN_WINDOW * 2) /* neither ahead nor a late one */
        return HF_E_PROTO;
    if (f->count == 0 || f->seq - c->received > UINT32_MAX / 2 || f->seq == c->received)
        return 0;
    if (f->seq != c->received + 1)
        return HF_E_PROTO;
    c->received = f->seq;
    return 1;
}

static void *arena_alloc(void *data, size_t size)
{
    return hf_arena_alloc(data, size);
}

static void arena_free(void *data, void *p)
{
    (void)data; /* dies with the arena */
    (void)p;
}

ProtobufCAllocator chan_allocator(struct hf_arena *a)
{
    return (ProtobufCAllocator){arena_alloc, arena_free, a};
}

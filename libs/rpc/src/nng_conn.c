/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection over one of nng's streams: cuts what comes into messages, sends what is queued, and
 * ends in the steps that transport_nng.c describes.
 */
#include "transport_nng.h"

#include <stdlib.h>

#include "holdfast/endian.h"
#include "holdfast/wire.h"

#define CONNS_MAX 4096u /* of one server; more are closed at once */
#define SEND_IOV  8u    /* nng's limit */
#define HELLO_MS  10000

/* Of a server, so that peers that begin messages and do not end them hold little, and not for long.
 */
#define PARTS_BYTES_MAX ((size_t)256 << 20)
#define PART_MS         30000 /* between two pieces of a message */

/* ---- with mu held ---- */

void st_push(struct st_tr *t, struct hf_rpc_msg *m)
{
    hf_msgq_push(&t->queue, m);
    if (t->posted || t->stopping)
        return;
    t->posted = true;
    hf_loop_post(t->loop, &t->task);
}

/* The last step but one of a connection's end. */
static void conn_down_if_idle(struct conn *c)
{
    if (c->closed && !c->receiving && !c->sending && c->down.kind == KIND_DOWN) {
        c->down.kind = KIND_DOWN | 0x80; /* once */
        st_push(c->tr, &c->down);
    }
}

void st_conn_close(struct conn *c)
{
    if (c->closed)
        return;
    c->closed = true;
    if (c->part) /* freed with the connection: a receive may still be filling it */
        c->tr->part_bytes -= c->part->len;
    nng_stream_close(c->stream);
    hf_msgq_clear(&c->sendq);
    conn_down_if_idle(c);
}

static void deliver(struct conn *c, struct hf_rpc_msg *m)
{
    m->kind = KIND_MSG;
    m->peer = c->id;
    c->tr->queued_msgs++;
    c->tr->queued_bytes += m->len;
    st_push(c->tr, m);
}

/* The length of the frame that begins at p, 0 if it is not one. */
static size_t frame_len(const uint8_t *p)
{
    size_t len = hf_get_le32(p + 8);

    return hf_get_le32(p) == HF_WIRE_MAGIC && len >= HF_WIRE_HEADER && len <= HF_WIRE_FRAME_MAX
               ? len
               : 0;
}

/* Cuts what is in buf into messages. False: no memory. */
static bool cut(struct conn *c)
{
    size_t at = 0;

    while (!c->part && c->have - at >= HF_WIRE_HEADER) {
        size_t len = frame_len(c->buf + at), n;
        struct hf_rpc_msg *m;

        if (len == 0) { /* nothing after this makes sense; the owner will drop the peer */
            c->deaf = true;
            len = c->have - at;
        }
        n = c->have - at < len ? c->have - at : len;
        if (n < len && len <= BUF_BYTES / 2)
            break; /* small: the rest comes with what follows it */
        if (n < len && c->tr->server && c->tr->part_bytes + len > PARTS_BYTES_MAX)
            return false;
        m = hf_rpc_msg_plain(NULL, len);
        if (!m)
            return false;
        memcpy(m->data, c->buf + at, n);
        at += n;
        if (n == len) {
            deliver(c, m);
        } else {
            c->part = m;
            c->part_have = n;
            c->tr->part_bytes += len;
        }
    }
    c->have -= at;
    memmove(c->buf, c->buf + at, c->have);
    return true;
}

void st_conn_receive(struct conn *c)
{
    struct st_tr *t = c->tr;
    nng_iov iov[2];
    unsigned n = 0;

    if (c->receiving || c->closed || c->deaf || t->paused || t->stopping ||
        t->queued_msgs >= QUEUE_MSGS || t->queued_bytes >= QUEUE_BYTES)
        return;
    if (c->part)
        iov[n++] = (nng_iov){c->part->data + c->part_have, c->part->len - c->part_have};
    iov[n++] = (nng_iov){c->buf + c->have, BUF_BYTES - c->have};
    c->receiving = true;
    (void)nng_aio_set_iov(c->rx, n, iov);
    nng_stream_recv(c->stream, c->rx);
}

void st_conn_send(struct conn *c)
{
    nng_iov iov[SEND_IOV];
    size_t skip = c->sent;
    unsigned n = 0;

    if (c->sending || c->closed || c->tr->stopping || c->sendq.n == 0)
        return;
    for (struct hf_rpc_msg *m = c->sendq.head; m && n < SEND_IOV; m = m->next) {
        iov[n++] = (nng_iov){m->data + skip, m->len - skip};
        skip = 0;
    }
    c->sending = true;
    (void)nng_aio_set_iov(c->tx, n, iov);
    nng_stream_send(c->stream, c->tx);
}

/* ---- nng's threads ---- */

static void on_received(void *arg)
{
    struct conn *c = arg;
    struct st_tr *t = c->tr;
    int rv = nng_aio_result(c->rx);
    size_t n = nng_aio_count(c->rx), into = 0;

    st_lock(t);
    c->receiving = false;
    nng_aio_set_timeout(c->rx, NNG_DURATION_INFINITE);
    if (rv == 0 && !c->closed) {
        if (c->part) {
            into = c->part->len - c->part_have < n ? c->part->len - c->part_have : n;
            c->part_have += into;
            if (c->part_have == c->part->len) {
                c->tr->part_bytes -= c->part->len;
                deliver(c, c->part);
                c->part = NULL;
            }
        }
        c->have += n - into;
        if (!cut(c))
            st_conn_close(c);
        else if (c->part && t->server)
            nng_aio_set_timeout(c->rx, PART_MS);
    } else {
        st_conn_close(c);
    }
    st_conn_receive(c);
    conn_down_if_idle(c);
    st_unlock(t);
}

static void on_sent(void *arg)
{
    struct conn *c = arg;
    struct st_tr *t = c->tr;
    size_t n = nng_aio_count(c->tx);

    st_lock(t);
    c->sending = false;
    if (nng_aio_result(c->tx) != 0)
        st_conn_close(c);
    if (!c->closed)
        c->sent += n;
    while (c->sendq.head && c->sent >= c->sendq.head->len) {
        c->sent -= c->sendq.head->len;
        hf_rpc_msg_unref(hf_msgq_pop(&c->sendq));
    }
    st_conn_send(c);
    conn_down_if_idle(c);
    st_unlock(t);
}

void st_conn_free(struct conn *c)
{
    nng_aio_free(c->rx);
    nng_aio_free(c->tx);
    if (c->stream)
        nng_stream_free(c->stream);
    hf_rpc_msg_unref(c->part);
    hf_msgq_clear(&c->sendq);
    free(c);
}

/* Takes the stream. */
void st_conn_new(struct st_tr *t, nng_stream *stream)
{
    struct conn *c = calloc(1, sizeof(*c));
    bool ok;

    if (!c) {
        nng_stream_free(stream);
        return;
    }
    c->tr = t;
    c->stream = stream;
    c->up.kind = KIND_UP;
    c->down.kind = KIND_DOWN;
    ok = nng_aio_alloc(&c->rx, on_received, c) == 0 && nng_aio_alloc(&c->tx, on_sent, c) == 0;
    st_lock(t);
    c->id = c->up.peer = c->down.peer = t->next_id;
    ok = ok && !t->stopping && t->by_id.len < CONNS_MAX && hf_map_put(&t->by_id, c->id, c) == 0;
    if (ok) {
        t->next_id++;
        hf_list_push_back(&t->conns, &c->link);
        nng_aio_set_timeout(c->rx, t->server ? HELLO_MS : NNG_DURATION_INFINITE);
        nng_aio_set_timeout(c->tx, NNG_DURATION_INFINITE);
        st_push(t, &c->up);
        st_conn_receive(c);
    }
    st_unlock(t);
    if (!ok)
        st_conn_free(c);
}

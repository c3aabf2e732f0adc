/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and ending a client, and what all operations share: back-off, refusals, the pool of
 * operations.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

#define SLOTS_MAX      1024u /* what a shard takes */
#define BACKOFF_MIN_NS (10 * HF_NS_PER_MS)
#define BACKOFF_MAX_NS (500 * HF_NS_PER_MS)

/* 10 ms doubling to 500 ms, half of it at random. tries from 1. */
uint64_t backoff_ns(struct hf_client *c, unsigned tries)
{
    uint64_t d = tries > 6 ? BACKOFF_MAX_NS : BACKOFF_MIN_NS << (tries - 1);

    if (d > BACKOFF_MAX_NS)
        d = BACKOFF_MAX_NS;
    return d / 2 + hf_env_random_u64(c->env) % (d / 2 + 1);
}

/* ---- refusals: completed in a later turn, never inside the call ---- */

static bool drain_refused(struct hf_client *c)
{
    struct hf_list *n;
    bool any = false;

    while (!hf_list_empty(&c->refused)) {
        struct hf_client_call *call =
            hf_container_of(c->refused.next, struct hf_client_call, p.link);

        call_finish(call, NULL, call->status);
        any = true;
    }
    while ((n = hf_list_pop_front(&c->refused_io)) != NULL) {
        struct hf_client_io *io = hf_container_of(n, struct hf_client_io, link);

        io->done(io);
        any = true;
    }
    while ((n = hf_list_pop_front(&c->refused_ranges)) != NULL) {
        struct hf_client_range *r = hf_container_of(n, struct hf_client_range, link);

        r->done(r);
        any = true;
    }
    return any;
}

static void on_refuse(struct hf_timer *t)
{
    drain_refused(hf_container_of(t, struct hf_client, refuse_timer));
}

void refuse_later(struct hf_client *c)
{
    if (!c->freeing && !hf_timer_armed(&c->refuse_timer)) /* freeing: hf_client_free drains */
        hf_timer_set(&c->refuse_timer, 0);
}

void client_io_refuse(struct hf_client *c, struct hf_client_io *io, int status)
{
    io->status = status;
    hf_list_push_back(&c->refused_io, &io->link);
    refuse_later(c);
}

void client_range_refuse(struct hf_client *c, struct hf_client_range *r, int status)
{
    r->status = status;
    hf_list_push_back(&c->refused_ranges, &r->link);
    refuse_later(c);
}

/* ---- operations ---- */

/* NULL: refused, will complete. */
struct io_op *op_new(struct hf_client *c, struct hf_client_io *io)
{
    struct hf_list *n = hf_list_pop_front(&c->op_pool);
    struct io_op *op;

    io->status = 0;
    io->attr = NULL;
    io->wcc = NULL;
    io->eof = false;
    io->count = 0;
    io->npieces = 0;
    io->verifier = 0;
    io->op = NULL;
    hf_list_init(&io->link);
    if (n)
        c->nop_pool--;
    op = n ? hf_container_of(n, struct io_op, link) : calloc(1, sizeof(*op));
    if (!op || c->closing) {
        if (op)
            free(op);
        client_io_refuse(c, io, c->closing ? HF_E_CLOSED : HF_E_NOMEM);
        return NULL;
    }
    op->client = c;
    op->io = io;
    op->deadline_ns = hf_loop_now_ns(c->loop) + c->opts.timeout_ms * HF_NS_PER_MS;
    op->call.bulk_n = 0;
    op->call.change = false;
    op->call.req_stays = true;
    op->call.ino = io->ino;
    op->call.deadline_ns = op->deadline_ns;
    op->held = NULL;
    op->again = 0;
    op->epoch_known = false;
    op->promote = false;
    op->append_token = 0;
    hf_list_init(&op->link);
    hf_list_init(&op->run.calls);
    hf_list_init(&op->trim.run.calls);
    io->op = op;
    return op;
}

void op_free(struct io_op *op)
{
    struct hf_client *c = op->client;

    seg_run_fini(&op->run);
    if (op->held)
        hf_rpc_msg_unref(op->held);
    op->held = NULL;
    hf_list_remove(&op->link);
    if (c->nop_pool >= POOLED_MAX || c->closing) {
        free(op);
        return;
    }
    hf_list_push_front(&c->op_pool, &op->link);
    c->nop_pool++;
}

static void on_pause(struct hf_timer *t)
{
    struct io_op *op = hf_container_of(t, struct io_op, timer);

    hf_list_remove(&op->link);
    op->client->stats.waiting--;
    op->resume(op);
}

void op_pause(struct io_op *op, void (*resume)(struct io_op *op))
{
    op->resume = resume;
    op->client->stats.waiting++;
    hf_timer_init(&op->timer, op->client->loop, on_pause);
    hf_timer_set(&op->timer, backoff_ns(op->client, op->again ? op->again : 1));
    hf_list_push_back(&op->client->op_waiting, &op->link);
}

int op_late(const struct io_op *op)
{
    return hf_loop_now_ns(op->client->loop) >= op->deadline_ns ? HF_E_TIMEDOUT : 0;
}

int op_again(struct io_op *op)
{
    if (op->client->closing)
        return HF_E_CLOSED;
    if (++op->again > START_AGAIN_MAX)
        return HF_E_JUKEBOX;
    return op_late(op);
}

/* Their next step finds the client closing. */
void op_drain(struct hf_client *c)
{
    while (!hf_list_empty(&c->op_waiting)) {
        struct io_op *op = hf_container_of(c->op_waiting.next, struct io_op, link);

        hf_timer_cancel(&op->timer);
        on_pause(&op->timer);
    }
}

/* ---- life ---- */

static int opts_take(const struct hf_client_opts *o, struct hf_client **ret)
{
    const char *name = o->name ? o->name : "";
    size_t url_len, name_len = strnlen(name, 255);
    struct hf_client *c;

    if (!o->loop || !o->meta_url || !o->meta_url[0] || strlen(o->meta_url) > 255)
        return HF_E_INVAL;
    url_len = strlen(o->meta_url);
    c = calloc(1, sizeof(*c) + url_len + 1 + name_len + 1);
    if (!c)
        return HF_E_NOMEM;
    memcpy(c->strings, o->meta_url, url_len);
    memcpy(c->strings + url_len + 1, name, name_len);
    c->loop = o->loop;
    c->env = hf_loop_env(o->loop);
    c->opts = *o;
    if (c->opts.timeout_ms == 0)
        c->opts.timeout_ms = 30000;
    if (c->opts.map_poll_ms == 0)
        c->opts.map_poll_ms = 1000;
    if (c->opts.slots == 0)
        c->opts.slots = 256;
    if (c->opts.slots > SLOTS_MAX)
        c->opts.slots = SLOTS_MAX;
    if (c->opts.queue_max == 0)
        c->opts.queue_max = 16384;
    *ret = c;
    return 0;
}

int hf_client_new(const struct hf_client_opts *o, struct hf_client **ret)
{
    struct hf_client *c;
    int rc = opts_take(o, &c);

    if (rc)
        return rc;
    hf_list_init(&c->meta_servers);
    hf_list_init(&c->seg_servers);
    hf_list_init(&c->nomap);
    hf_list_init(&c->backoff);
    hf_list_init(&c->refused);
    hf_list_init(&c->refused_io);
    hf_list_init(&c->refused_ranges);
    hf_list_init(&c->seg_waiting);
    hf_list_init(&c->op_waiting);
    hf_list_init(&c->op_pool);
    hf_list_init(&c->seg_pool);
    hf_timer_init(&c->refuse_timer, c->loop, on_refuse);
    call_service_init(c);
    rc = map_init(c);
    if (rc) {
        free(c);
        return rc;
    }
    stat_init(c);
    *ret = c;
    return 0;
}

static void pools_free(struct hf_client *c)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(&c->op_pool)) != NULL)
        free(hf_container_of(n, struct io_op, link));
    while ((n = hf_list_pop_front(&c->seg_pool)) != NULL)
        free(hf_container_of(n, struct seg_call, link));
}

void hf_client_free(struct hf_client *c)
{
    if (!c)
        return;
    c->closing = true;
    c->freeing = true;
    c->closed = NULL;
    if (c->close_timer.fn)
        hf_timer_cancel(&c->close_timer);
    hf_timer_cancel(&c->stat_timer);
    hf_timer_cancel(&c->refuse_timer);
    map_fini_servers(c);
    /* Completions may start new operations, which are refused: until nothing is left. */
    do {
        call_drain(c);
        seg_drain(c);
        op_drain(c);
    } while (drain_refused(c) || !hf_list_empty(&c->seg_waiting) || !hf_list_empty(&c->op_waiting));
    map_fini(c);
    pools_free(c);
    free(c);
}

void hf_client_stats(const struct hf_client *c, struct hf_client_stats *ret)
{
    *ret = c->stats;
}

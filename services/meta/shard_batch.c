/* SPDX-License-Identifier: Apache-2.0 */
#include "shard_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define LAZY_MS            20           /* a batch of only lazy changes may stay open this long */
#define BATCH_BYTES        (192u << 10) /* a batch is cut here; one operation adds at most ~200 KiB */
#define CHECKPOINT_NS_HIGH (10 * HF_NS_PER_MS) /* above: make checkpoints smaller */
#define CHECKPOINT_NS_LOW  (4 * HF_NS_PER_MS)
#define CHECKPOINT_NS_MOST (40 * HF_NS_PER_MS) /* the longest pause that throughput is worth */
#define CHECKPOINT_SHARE   5                   /* checkpoints take up to a fifth of the time */
#define CHANGES_START      2048                /* until this disk is known */
#define CHANGES_MIN        512

/* Field tags of hf.Record (record.proto), written by hand so that events are packed as they happen
 * and the redo is not copied into a message. */
#define TAG_VERSION 0x08
#define TAG_EVENT   0x12
#define TAG_REDO    0x1a

/* A reply that waits; lives in its request's arena. */
struct parked {
    struct hf_list link;
    struct hf_rpc_req *req;
    int status;
    struct hf_slice body, bulk;
};

static size_t put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;

    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

void batch_fatal(struct shard *s, const char *what)
{
    char text[256];

    if (s->dead)
        return;
    s->dead = true;
    (void)snprintf(text, sizeof(text), "shard %" PRIu32 ": %s", s->conf.id, what);
    s->conf.fatal(s->conf.fatal_arg, text);
}

bool batch_broken(struct shard *s)
{
    if (hf_store_broken(s->store))
        batch_fatal(s, "LMDB failed");
    return s->dead;
}

/* ---- life of a batch ---- */

static void on_durable(struct hf_task *t);

static struct batch *batch_get(struct shard *s)
{
    static const uint8_t head[] = {TAG_VERSION, 1};
    struct hf_list *n = hf_list_pop_front(&s->spare);
    struct batch *b = n ? hf_container_of(n, struct batch, link) : calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->shard = s;
    b->urgent = false;
    hf_list_init(&b->link);
    hf_list_init(&b->parked);
    hf_buf_reset(&b->events);
    hf_buf_reset(&b->redo);
    if (hf_buf_append(&b->events, head, sizeof(head))) {
        free(b);
        return NULL;
    }
    return b;
}

static void batch_put(struct batch *b)
{
    hf_list_push_front(&b->shard->spare, &b->link);
}

static void batch_destroy(struct batch *b)
{
    hf_buf_fini(&b->events);
    hf_buf_fini(&b->redo);
    free(b);
}

void batch_begin(struct shard *s)
{
    if (s->open || s->dead)
        return;
    s->open = batch_get(s);
    if (!s->open) {
        batch_fatal(s, "out of memory");
        return;
    }
    s->open->seq = s->next_seq;
    hf_store_batch(s->store, s->next_seq);
}

void batch_event(struct shard *s, const Hf__Event *event)
{
    size_t len = protobuf_c_message_get_packed_size(&event->base);
    uint8_t head[11];
    size_t n;

    if (event->op == HF__EVENT_OP__EV_NONE || s->dead)
        return;
    head[0] = TAG_EVENT;
    n = 1 + put_varint(head + 1, len);
    if (hf_buf_append(&s->open->events, head, n) || hf_buf_reserve(&s->open->events, len)) {
        batch_fatal(s, "out of memory");
        return;
    }
    protobuf_c_message_pack(&event->base, s->open->events.data + s->open->events.len);
    s->open->events.len += len;
}

static struct batch *batch_find(struct shard *s, uint64_t seq)
{
    if (s->open && s->open->seq == seq)
        return s->open;
    HF_LIST_FOREACH(n, &s->inflight)
    {
        struct batch *b = hf_container_of(n, struct batch, link);

        if (b->seq == seq)
            return b;
    }
    return NULL;
}

void batch_park(struct shard *s, uint64_t seq, struct hf_rpc_req *req, int status,
                struct hf_slice body, struct hf_slice bulk)
{
    struct batch *b = batch_find(s, seq);
    struct parked *p = hf_arena_alloc(req->arena, sizeof(*p));

    HF_ASSERT(b);
    if (!p) {
        batch_fatal(s, "out of memory"); /* the change may be logged, but nobody could be told */
        hf_rpc_req_drop(req);
        return;
    }
    *p = (struct parked){.req = req, .status = status, .body = body, .bulk = bulk};
    hf_list_push_back(&b->parked, &p->link);
    b->urgent = true;
}

uint64_t batch_newest(const struct shard *s)
{
    if (s->open && hf_store_redo_bytes(s->store))
        return s->open->seq;
    if (hf_list_empty(&s->inflight))
        return 0;
    return hf_container_of(s->inflight.prev, struct batch, link)->seq;
}

static void release(struct batch *b)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(&b->parked))) {
        struct parked *p = hf_container_of(n, struct parked, link);

        hf_rpc_reply_packed(p->req, p->status, p->body, &p->bulk, p->bulk.len ? 1 : 0);
    }
}

static void drop_parked(struct batch *b)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(&b->parked)))
        hf_rpc_req_drop(hf_container_of(n, struct parked, link)->req);
}

/* ---- sending ---- */

void batch_send(struct shard *s)
{
    struct batch *b = s->open;
    int rc;

    if (!b || s->dead)
        return;
    hf_timer_cancel(&s->lazy_timer);
    s->open = NULL;
    if (hf_store_redo_bytes(s->store) == 0) { /* only reads so far; nothing can be parked on it */
        HF_ASSERT(hf_list_empty(&b->parked));
        batch_put(b);
        return;
    }
    rc = hf_store_redo_take(s->store, &b->redo);
    if (rc == 0)
        rc = hf_fault(s->conf.faults, HF_FAULT_SHARD_APPEND);
    if (rc == 0) {
        size_t n = 1 + put_varint(b->redo_head + 1, b->redo.len);

        b->redo_head[0] = TAG_REDO;
        b->append = (struct hf_log_append){
            .done.fn = on_durable,
            .loop = s->conf.loop,
            .parts = {hf_buf_slice(&b->events), hf_slice(b->redo_head, n), hf_buf_slice(&b->redo)},
            .nparts = 3,
        };
        hf_metric_add(&s->conf.metrics->batches, 1);
        hf_metric_add(&s->conf.metrics->batch_bytes, b->events.len + n + b->redo.len);
        rc = hf_log_append(s->conf.wal, &b->append);
    }
    hf_list_push_back(&s->inflight, &b->link);
    s->next_seq++;
    if (rc) {
        hf_list_remove(&b->link);
        drop_parked(b);
        batch_destroy(b);
        batch_fatal(s, "cannot append to the log");
        return;
    }
    s->last_pos = b->append.pos;
}

static void on_flush(struct hf_task *t)
{
    struct shard *s = hf_container_of(t, struct shard, flush);

    if (s->open && (s->open->urgent || s->checkpointing))
        batch_send(s);
}

static void on_lazy(struct hf_timer *t)
{
    batch_send(hf_container_of(t, struct shard, lazy_timer));
}

void batch_end(struct shard *s)
{
    size_t redo = hf_store_redo_bytes(s->store);

    if (s->dead || !s->open)
        return;
    if (redo == 0)
        return; /* the empty batch stays open for the next call */
    s->last_change_ns = hf_loop_now_ns(s->conf.loop);
    if (!hf_timer_armed(&s->idle_timer))
        hf_timer_set(&s->idle_timer, s->conf.checkpoint_idle_ns);
    if (redo + s->open->events.len >= BATCH_BYTES)
        batch_send(s);
    else if (s->open->urgent)
        hf_loop_defer(s->conf.loop, &s->flush);
    else if (!hf_timer_armed(&s->lazy_timer))
        hf_timer_set(&s->lazy_timer, LAZY_MS * HF_NS_PER_MS);
    if (hf_store_dirty(s->store) >= s->changes_limit)
        batch_checkpoint(s);
}

/* ---- checkpoints ---- */

/* Smaller checkpoints when they take long, larger ones when they are cheap; but when they take a
 * large part of the time, as with random keys in a large table, larger ones that take longer: small
 * ones would only come more often. */
static void adapt(struct shard *s, uint64_t start, uint64_t ns)
{
    struct meta_metrics *m = s->conf.metrics;
    bool often = ns > (start + ns - s->checkpoint_end) / CHECKPOINT_SHARE;
    uint64_t high = often ? CHECKPOINT_NS_MOST : CHECKPOINT_NS_HIGH;
    uint64_t low = often ? CHECKPOINT_NS_MOST * 3 / 4 : CHECKPOINT_NS_LOW;

    hf_metric_add(&m->checkpoints, 1);
    hf_metric_add(&m->checkpoint_ns, ns);
    if (ns > hf_metric_get(&m->checkpoint_ns_max))
        hf_metric_set(&m->checkpoint_ns_max, ns);
    s->checkpoint_end = start + ns;
    if (ns > high && s->changes_limit / 2 >= CHANGES_MIN)
        s->changes_limit /= 2;
    else if (ns < low && s->changes_limit < s->conf.checkpoint_changes)
        s->changes_limit += s->changes_limit / 8;
}

static void checkpoint_now(struct shard *s)
{
    uint64_t start = hf_env_mono_ns(s->conf.env);
    int rc = hf_fault(s->conf.faults, HF_FAULT_SHARD_CHECKPOINT);

    if (rc == 0)
        rc = hf_store_checkpoint(s->store, s->last_pos);
    if (rc) {
        batch_fatal(s, "cannot commit a checkpoint");
        return;
    }
    adapt(s, start, hf_env_mono_ns(s->conf.env) - start);
    hf_log_trim(s->conf.wal, s->last_pos + 1);
}

/* Goes on with a checkpoint that waits for records in flight. */
static void checkpoint_step(struct shard *s)
{
    if (!s->checkpointing || s->dead || !hf_list_empty(&s->inflight))
        return;
    if (hf_store_dirty(s->store))
        checkpoint_now(s);
    if (s->dead)
        return;
    s->checkpointing = false;
    if (s->drained) {
        void (*done)(void *) = s->drained;

        s->drained = NULL;
        done(s->drained_arg);
    }
    shard_run_queue(s);
}

void batch_checkpoint(struct shard *s)
{
    if (s->checkpointing || s->dead)
        return;
    s->checkpointing = true;
    batch_send(s);
    checkpoint_step(s);
}

void shard_drain(struct shard *s, void (*done)(void *arg), void *arg)
{
    HF_ASSERT(!s->drained);
    s->drained = done;
    s->drained_arg = arg;
    batch_checkpoint(s);
}

static void on_idle(struct hf_timer *t)
{
    struct shard *s = hf_container_of(t, struct shard, idle_timer);
    uint64_t idle = hf_loop_now_ns(s->conf.loop) - s->last_change_ns;

    if (s->dead || hf_store_dirty(s->store) == 0)
        return;
    if (idle < s->conf.checkpoint_idle_ns)
        hf_timer_set(t, s->conf.checkpoint_idle_ns - idle);
    else
        batch_checkpoint(s);
}

static void on_durable(struct hf_task *t)
{
    struct hf_log_append *a = hf_container_of(t, struct hf_log_append, done);
    struct batch *b = hf_container_of(a, struct batch, append);
    struct shard *s = b->shard;

    hf_list_remove(&b->link);
    if (a->status == 0 && !s->dead)
        a->status = hf_fault(s->conf.faults, HF_FAULT_SHARD_DURABLE);
    if (a->status || s->dead) {
        drop_parked(b);
        batch_destroy(b);
        batch_fatal(s, "the log lost a record");
        return;
    }
    hf_store_durable(s->store, b->seq);
    release(b);
    batch_put(b);
    checkpoint_step(s);
}

int batch_init(struct shard *s)
{
    hf_list_init(&s->inflight);
    hf_list_init(&s->spare);
    hf_list_init(&s->queue);
    s->next_seq = 1;
    s->changes_limit =
        s->conf.checkpoint_changes < CHANGES_START ? s->conf.checkpoint_changes : CHANGES_START;
    s->flush.fn = on_flush;
    hf_timer_init(&s->lazy_timer, s->conf.loop, on_lazy);
    hf_timer_init(&s->idle_timer, s->conf.loop, on_idle);
    return 0;
}

static void destroy_list(struct hf_list *l)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(l))) {
        struct batch *b = hf_container_of(n, struct batch, link);

        drop_parked(b);
        batch_destroy(b);
    }
}

void batch_fini(struct shard *s)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(&s->queue)))
        hf_rpc_req_drop(hf_container_of(n, struct hf_rpc_req, link));
    if (s->open) {
        drop_parked(s->open);
        batch_destroy(s->open);
        s->open = NULL;
    }
    destroy_list(&s->inflight);
    destroy_list(&s->spare);
}

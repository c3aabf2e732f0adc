/* SPDX-License-Identifier: Apache-2.0
 *
 *      NONE -- due, idle or asked for: frozen --> WAITS -- its records are durable --> WRITING
 *        ^                                                                              |
 *        +--------------- a thread of the pool has written it: thawed ------------------+
 *
 * How much is written at once: with random keys in a large table each change costs a page, unless
 * many changes meet on it; so a checkpoint is as large as memory allows, for it holds nobody up.
 */
#include "shard_checkpoint.h"

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "shard_batch.h"

/* What has to be read again at a start; and the age at which a shard that is never idle, but does
 * little, gives up its part of the log that all shards share. */
#define LOG_BYTES_MAX ((uint64_t)256 << 20)
#define AGE_MAX_NS    (10 * HF_NS_PER_SEC)

static void begin(struct shard *s);
static void begin_if_due(struct shard *s);

/* ---- the end of one ---- */

static void tell_drained(struct shard *s)
{
    void (*done)(void *) = s->checkpoint.drained;

    s->checkpoint.drained = NULL;
    if (done)
        done(s->checkpoint.drained_arg);
}

/* The one that was under way is over. */
static void settle(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;
    bool again = c->again && !s->dead;

    c->state = CHECKPOINT_NONE;
    c->full = false;
    c->again = false;
    if (again)
        begin(s);
    else
        tell_drained(s);
    begin_if_due(s);
    shard_run_queue(s);
}

static void measure(struct shard *s)
{
    struct meta_metrics *m = s->conf.metrics;

    hf_metric_add(&m->checkpoints, 1);
    hf_metric_add(&m->checkpoint_ns, s->checkpoint.ns);
    if (s->checkpoint.ns > hf_metric_get(&m->checkpoint_ns_max))
        hf_metric_set(&m->checkpoint_ns_max, s->checkpoint.ns);
}

static void on_written(struct hf_task *t)
{
    struct shard *s = hf_container_of(t, struct shard, checkpoint.work.done);

    if (hf_store_thaw(s->store, s->checkpoint.status) != 0) {
        batch_fatal(s, "cannot commit a checkpoint");
    } else if (!s->dead) {
        measure(s);
        hf_log_trim(s->conf.wal, hf_store_applied(s->store) + 1);
    }
    settle(s);
}

/* ---- the writing, on a thread of the pool ---- */

static void write_it(struct hf_work *w)
{
    struct shard *s = hf_container_of(w, struct shard, checkpoint.work);
    uint64_t start = hf_env_mono_ns(s->conf.env);
    int rc = hf_fault(s->conf.faults, HF_FAULT_SHARD_CHECKPOINT);

    s->checkpoint.status = rc ? rc : hf_store_flush(s->store);
    s->checkpoint.ns = hf_env_mono_ns(s->conf.env) - start;
}

/* ---- the beginning ---- */

void checkpoint_durable(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;

    if (c->state != CHECKPOINT_WAITS || s->dead)
        return;
    if (!hf_list_empty(&s->inflight) &&
        hf_container_of(s->inflight.next, struct batch, link)->seq <= c->seq)
        return;
    c->state = CHECKPOINT_WRITING;
    if (hf_pool_submit(s->conf.pool, &c->work) != 0) {
        c->state = CHECKPOINT_WAITS;
        batch_fatal(s, "cannot commit a checkpoint: no thread takes it");
    }
}

static void begin(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;

    HF_ASSERT(c->state == CHECKPOINT_NONE);
    batch_send(s);
    if (s->dead)
        return;
    if (hf_store_dirty(s->store) == 0) {
        tell_drained(s);
        return;
    }
    if (hf_store_freeze(s->store, s->last_pos) != 0) {
        batch_fatal(s, "cannot begin a checkpoint");
        return;
    }
    c->log_bytes = 0;
    c->oldest_ns = hf_loop_now_ns(s->conf.loop);
    c->seq = s->next_seq - 1;
    c->state = CHECKPOINT_WAITS;
    checkpoint_durable(s);
}

static void begin_if_due(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;

    if (s->dead ||
        (c->log_bytes < LOG_BYTES_MAX && !hf_store_due(s->store, s->conf.checkpoint_changes)))
        return;
    if (c->state == CHECKPOINT_NONE)
        begin(s);
    else
        c->full = true;
}

void checkpoint_changed(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;

    c->last_ns = hf_loop_now_ns(s->conf.loop);
    if (!hf_timer_armed(&c->idle_timer)) {
        c->oldest_ns = c->last_ns;
        hf_timer_set(&c->idle_timer, s->conf.checkpoint_idle_ns);
    }
    begin_if_due(s);
}

void shard_drain(struct shard *s, void (*done)(void *arg), void *arg)
{
    struct shard_checkpoint *c = &s->checkpoint;

    HF_ASSERT(!c->drained);
    c->drained = done;
    c->drained_arg = arg;
    if (c->state != CHECKPOINT_NONE && !s->dead)
        c->again = true;
    else if (!s->dead)
        begin(s);
    if (s->dead && c->state != CHECKPOINT_WRITING)
        tell_drained(s);
}

/* Whether to write what there is although it is not much. */
static bool is_time(const struct shard *s, uint64_t idle)
{
    return idle >= s->conf.checkpoint_idle_ns || !hf_log_may_grow(s->conf.wal) ||
           hf_loop_now_ns(s->conf.loop) - s->checkpoint.oldest_ns >= AGE_MAX_NS;
}

static void on_idle(struct hf_timer *t)
{
    struct shard *s = hf_container_of(t, struct shard, checkpoint.idle_timer);
    uint64_t idle = hf_loop_now_ns(s->conf.loop) - s->checkpoint.last_ns;

    if (s->dead || hf_store_dirty(s->store) == 0)
        return;
    if (s->checkpoint.state == CHECKPOINT_NONE && is_time(s, idle))
        begin(s);
    else
        hf_timer_set(t, idle < s->conf.checkpoint_idle_ns ? s->conf.checkpoint_idle_ns - idle
                                                          : s->conf.checkpoint_idle_ns);
}

void checkpoint_init(struct shard *s)
{
    struct shard_checkpoint *c = &s->checkpoint;

    c->work.run = write_it;
    c->work.done.fn = on_written;
    c->work.loop = s->conf.loop;
    hf_timer_init(&c->idle_timer, s->conf.loop, on_idle);
}

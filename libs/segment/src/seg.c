/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment: its table of chunks, the age list and its timer, closing.
 */
#include "seg_priv.h"

#include <stdlib.h>

#define CACHE_DEFAULT     4096u
#define WRITEBACK_DEFAULT 5000u
#define RETIRE_PER_TICK   64u

int seg_io_error(int be_status)
{
    switch (be_status) {
    case 0:
    case HF_BE_ENOSPC:
    case HF_BE_ENOMEM:
        return be_status;
    default:
        return HF_E_IO;
    }
}

void seg_report(struct seg_chunk *c, unsigned block, int err, const char *what)
{
    struct hf_seg *s = c->seg;

    if (err == HF_E_CORRUPT)
        s->stat.checksum_errors++;
    else
        s->stat.errors++;
    if (s->o.on_error)
        s->o.on_error(s->o.arg, &c->id, block, err, what);
}

/* ---- backend operations ---- */

static void close_step(struct hf_seg *s);

static void io_task(struct hf_task *t)
{
    struct seg_io *io = hf_container_of(t, struct seg_io, task);
    struct hf_seg *s = io->seg;

    io->done(io); /* io may be gone */
    s->inflight--;
    if (s->closing)
        close_step(s);
}

static void io_done(struct hf_be_io *be)
{
    struct seg_io *io = hf_container_of(be, struct seg_io, io);

    hf_loop_post(io->seg->o.loop, &io->task);
}

void seg_io_submit(struct seg_chunk *c, struct seg_io *io, int fault)
{
    struct hf_seg *s = c->seg;

    io->seg = s;
    io->task = (struct hf_task){.fn = io_task};
    io->io.done = io_done;
    seg_object_id(&c->id, io->io.id);
    s->inflight++;
    if (fault) {
        io->io.status = fault;
        io_done(&io->io);
        return;
    }
    hf_plug_submit(s->o.backend, &io->io);
}

/* ---- ends of operations ---- */

static void finish_task(struct hf_task *t)
{
    struct hf_seg *s = hf_container_of(t, struct hf_seg, finish_task);
    struct hf_list batch, *l;

    hf_list_init(&batch);
    while ((l = hf_list_pop_front(&s->finished)) != NULL)
        hf_list_push_back(&batch, l);
    while ((l = hf_list_pop_front(&batch)) != NULL) {
        struct hf_seg_op *op = hf_container_of(l, struct hf_seg_op, link);

        s->inflight--;
        op->done(op); /* op may be gone, or submitted again */
    }
    if (s->closing)
        close_step(s);
}

/* done is called at the end of the turn, never from inside hf_seg_submit. */
void seg_finish(struct hf_seg_op *op, int status)
{
    struct hf_seg *s = op->seg;

    op->status = status;
    hf_list_push_back(&s->finished, &op->link);
    hf_loop_defer(s->o.loop, &s->finish_task);
}

/* ---- the table ---- */

static uint64_t id_hash(const struct hf_seg *s, const struct hf_chunk_id *id)
{
    uint8_t b[HF_BE_ID_BYTES];

    seg_object_id(id, b);
    return hf_hash_bytes(b, sizeof(b), s->seed);
}

static bool id_eq(const struct hf_chunk_id *a, const struct hf_chunk_id *b)
{
    return a->ino == b->ino && a->index == b->index && a->gen == b->gen;
}

static struct seg_chunk *chunk_get(struct hf_seg *s, const struct hf_chunk_id *id)
{
    uint64_t hash = id_hash(s, id);
    struct seg_chunk *head = hf_map_get(&s->chunks, hash), *c;

    for (c = head; c; c = c->hash_next) {
        if (id_eq(&c->id, id))
            return c;
    }
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->hash_next = head;
    if (hf_map_put(&s->chunks, hash, c)) {
        free(c);
        return NULL;
    }
    c->seg = s;
    c->id = *id;
    c->hash = hash;
    c->marked = true;
    hf_list_init(&c->lru);
    hf_list_init(&c->age);
    hf_list_init(&c->queue);
    hf_list_init(&c->waiters);
    hf_list_init(&c->sharing);
    s->nchunks++;
    return c;
}

static void chunk_drop(struct seg_chunk *c)
{
    struct hf_seg *s = c->seg;
    struct seg_chunk *head = hf_map_get(&s->chunks, c->hash);

    HF_ASSERT(seg_is_idle(c));
    if (head == c) {
        if (c->hash_next)
            (void)hf_map_put(&s->chunks, c->hash, c->hash_next); /* replaces: needs no memory */
        else
            (void)hf_map_del(&s->chunks, c->hash);
    } else {
        while (head->hash_next != c)
            head = head->hash_next;
        head->hash_next = c->hash_next;
    }
    hf_list_remove(&c->lru);
    seg_age_leave(c);
    if (c->failed)
        s->nfailed--;
    s->nchunks--;
    free(c);
}

/* ---- the age list ---- */

static void timer_arm(struct hf_seg *s)
{
    uint64_t due, now;

    if (hf_list_empty(&s->age) || hf_timer_armed(&s->timer) || s->closing)
        return;
    due = hf_container_of(s->age.next, struct seg_chunk, age)->age_ns +
          s->o.writeback_ms * HF_NS_PER_MS;
    now = hf_loop_now_ns(s->o.loop);
    hf_timer_set(&s->timer, due > now ? due - now : HF_NS_PER_MS);
}

void seg_age_enter(struct seg_chunk *c)
{
    struct hf_seg *s = c->seg;

    if (!hf_list_empty(&c->age))
        return;
    hf_list_remove(&c->lru);
    c->age_ns = hf_loop_now_ns(s->o.loop);
    hf_list_push_back(&s->age, &c->age);
    timer_arm(s);
}

void seg_age_leave(struct seg_chunk *c)
{
    hf_list_remove(&c->age);
}

/* Commits what is dirty, marks what is clean. c may be gone afterwards. */
static void retire(struct seg_chunk *c)
{
    if (c->dirty) {
        c->want_commit = true;
        seg_pump(c);
    } else if (seg_is_idle(c) && !c->marked) {
        seg_mark(c);
    }
}

static void age_timer(struct hf_timer *t)
{
    struct hf_seg *s = hf_container_of(t, struct hf_seg, timer);
    uint64_t now = hf_loop_now_ns(s->o.loop), wait = s->o.writeback_ms * HF_NS_PER_MS;

    for (unsigned n = 0; n < RETIRE_PER_TICK && !hf_list_empty(&s->age); n++) {
        struct seg_chunk *c = hf_container_of(s->age.next, struct seg_chunk, age);

        if (c->age_ns + wait > now)
            break;
        /* To the end: it comes again if this does not settle it. */
        hf_list_remove(&c->age);
        c->age_ns = now;
        hf_list_push_back(&s->age, &c->age);
        retire(c);
    }
    timer_arm(s);
}

/* Keeps the table within its bound. Chunks that are busy or dirty may exceed it for the time that
 * it takes to commit them. */
static void evict(struct hf_seg *s)
{
    struct hf_list *it;

    while (s->nchunks > s->o.cache_chunks && (it = hf_list_pop_front(&s->lru)) != NULL)
        chunk_drop(hf_container_of(it, struct seg_chunk, lru));
    if (s->nchunks > s->o.cache_chunks && !hf_list_empty(&s->age)) {
        struct seg_chunk *c = hf_container_of(s->age.next, struct seg_chunk, age);

        hf_list_remove(&c->age);
        c->age_ns = hf_loop_now_ns(s->o.loop);
        hf_list_push_back(&s->age, &c->age);
        retire(c);
    }
}

void seg_chunk_idle(struct seg_chunk *c)
{
    struct hf_seg *s = c->seg;

    if (c->failed)
        return; /* must be remembered */
    if (!c->exists || c->state == SEG_NEW) {
        chunk_drop(c);
        return;
    }
    hf_list_remove(&c->lru);
    if (hf_list_empty(&c->age))
        hf_list_push_back(&s->lru, &c->lru);
    if (s->nchunks > s->o.cache_chunks && !s->closing)
        evict(s);
}

/* ---- public ---- */

int hf_seg_open(const struct hf_seg_opts *o, struct hf_seg **ret)
{
    struct hf_seg *s = calloc(1, sizeof(*s));

    if (!s)
        return HF_E_NOMEM;
    s->o = *o;
    if (s->o.cache_chunks == 0)
        s->o.cache_chunks = CACHE_DEFAULT;
    if (s->o.writeback_ms == 0)
        s->o.writeback_ms = WRITEBACK_DEFAULT;
    s->seed = hf_env_random_u64(hf_loop_env(o->loop));
    hf_list_init(&s->lru);
    hf_list_init(&s->age);
    hf_list_init(&s->finished);
    s->finish_task = (struct hf_task){.fn = finish_task};
    hf_timer_init(&s->timer, o->loop, age_timer);
    *ret = s;
    return 0;
}

static int op_check(const struct hf_seg *s, const struct hf_seg_op *op)
{
    if (s->closing)
        return HF_E_CLOSED;
    if (s->nfailed >= s->o.cache_chunks && op->kind != HF_SEG_DELETE)
        return HF_E_IO; /* the device is gone; what failed must stay remembered, and that is bounded
                         */
    switch (op->kind) {
    case HF_SEG_READ:
    case HF_SEG_WRITE:
        if (op->offset > HF_SEG_CHUNK_BYTES || op->len > HF_SEG_CHUNK_BYTES - op->offset)
            return HF_E_INVAL;
        if (op->len > 0 && (!op->data || (op->kind == HF_SEG_WRITE && !op->crcs)))
            return HF_E_INVAL;
        return 0;
    case HF_SEG_PUNCH:
    case HF_SEG_SEEK:
        return op->offset <= HF_SEG_CHUNK_BYTES && op->len <= HF_SEG_CHUNK_BYTES - op->offset
                   ? 0
                   : HF_E_INVAL;
    case HF_SEG_TRUNC:
        return op->len <= HF_SEG_CHUNK_BYTES ? 0 : HF_E_INVAL;
    case HF_SEG_SYNC:
    case HF_SEG_DELETE:
        return 0;
    default:
        return HF_E_INVAL;
    }
}

void hf_seg_submit(struct hf_seg *s, struct hf_seg_op *op)
{
    struct seg_chunk *c;
    int rc;

    hf_list_init(&op->link);
    op->seg = s;
    op->status = 0;
    op->len_done = 0;
    op->freed = 0;
    op->found = false;
    s->inflight++;
    rc = op_check(s, op);
    c = rc ? NULL : chunk_get(s, &op->id);
    if (!c) {
        seg_finish(op, rc ? rc : HF_E_NOMEM);
        return;
    }
    hf_list_remove(&c->lru);
    op->chunk = c;
    hf_list_push_back(&c->queue, &op->link);
    seg_pump(c);
}

int hf_seg_stat(struct hf_seg *s, struct hf_seg_stat *ret)
{
    struct hf_be_space sp = {0};
    int rc = hf_plug_ops(s->o.backend)->space(hf_plug_handle(s->o.backend), &sp);

    if (rc)
        return seg_io_error(rc);
    *ret = s->stat;
    ret->capacity_bytes = sp.capacity_bytes;
    ret->free_bytes = sp.free_bytes;
    ret->used_bytes = sp.capacity_bytes > sp.free_bytes ? sp.capacity_bytes - sp.free_bytes : 0;
    ret->chunks = sp.objects;
    ret->domain = sp.domain;
    ret->cached_chunks = s->nchunks;
    HF_LIST_FOREACH(l, &s->age)
    ret->dirty_chunks += hf_container_of(l, struct seg_chunk, age)->dirty ? 1 : 0;
    return 0;
}

static void close_end(struct hf_seg *s)
{
    void (*closed)(void *arg) = s->closed;
    void *arg = s->closed_arg;
    uint64_t key;
    void *value;

    for (size_t pos = 0; hf_map_next(&s->chunks, &pos, &key, &value);) {
        for (struct seg_chunk *c = value, *next; c; c = next) {
            next = c->hash_next;
            free(c);
        }
    }
    hf_map_fini(&s->chunks);
    hf_timer_cancel(&s->timer);
    free(s);
    closed(arg);
}

/* Commits and marks a few at a time until nothing is left, then ends. A chunk that cannot be
 * committed is given up: its loss was never acknowledged as durable. */
static void close_step(struct hf_seg *s)
{
    if (s->closed_called)
        return;
    while (s->inflight < RETIRE_PER_TICK && !hf_list_empty(&s->age)) {
        struct seg_chunk *c = hf_container_of(s->age.next, struct seg_chunk, age);

        if (!seg_is_idle(c))
            break; /* its own end comes back here */
        if (c->close_tries++ > 2) {
            seg_report(c, ~0u, HF_E_IO, "not committed at close");
            seg_age_leave(c);
            continue;
        }
        hf_list_remove(&c->age);
        hf_list_push_back(&s->age, &c->age);
        retire(c);
    }
    if (s->inflight == 0 && hf_list_empty(&s->age)) {
        s->closed_called = true;
        close_end(s);
    }
}

static void close_task(struct hf_task *t)
{
    struct hf_seg *s = hf_container_of(t, struct hf_seg, close_task);

    s->inflight--;
    close_step(s);
}

void hf_seg_close(struct hf_seg *s, void (*closed)(void *arg), void *arg)
{
    HF_ASSERT(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_arg = arg;
    hf_timer_cancel(&s->timer);
    s->inflight++;
    s->close_task = (struct hf_task){.fn = close_task};
    hf_loop_post(s->o.loop, &s->close_task);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes of programs, flush and close. A write is copied and done; when the file's or the engine's
 * buffers are full it waits for room, in order. O_SYNC and O_DSYNC: the copy leaves at once as a
 * stable write, and the call ends with it. O_APPEND: what was buffered before leaves first, then
 * the bytes go to the end of the file, wherever that then is, one append of a file at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "fs_priv.h"

#define OVERHEAD   512u /* of a small write in memory */
#define APPEND_NS  (5 * HF_NS_PER_MS)
#define SYNC_FLAGS (O_SYNC | O_DSYNC)

/* ---- flush ---- */

static void flush_step(struct req *r)
{
    struct inode *i = r->inode;

    if (wb_clean(i, r->seq)) {
        r->then(r);
        return;
    }
    if (i->flush_seq < r->seq)
        i->flush_seq = i->wseq;
    hf_list_push_back(&i->waiters, &r->link);
    wb_pump(i);
}

void flush_then(struct req *r, void (*then)(struct req *r))
{
    r->seq = r->inode->wseq;
    r->then = then;
    r->step = flush_step;
    flush_step(r);
}

static void flush_end(struct req *r)
{
    req_done(r, file_error(r->a.f));
}

static void run_flush(struct req *r)
{
    (void)file_inode(r);
    flush_then(r, flush_end);
}

void hf_flush_async(struct hf_file *f, hf_done_fn *fn, void *arg)
{
    submit_file(f, &(struct args){.run = run_flush, .kind = K_DONE, .fn.done = fn, .arg = arg});
}

static void close_end(struct req *r)
{
    int err = file_error(r->a.f);

    file_free(r->a.f);
    r->a.f = NULL;
    req_done(r, err);
}

static void run_close(struct req *r)
{
    (void)file_inode(r);
    if (file_writes(r->a.f))
        flush_then(r, close_end);
    else
        close_end(r);
}

void hf_close_async(struct hf_file *f, hf_done_fn *fn, void *arg)
{
    submit_file(f,
                &(struct args){
                    .run = run_close, .kind = K_DONE, .always = true, .fn.done = fn, .arg = arg});
}

/* ---- write ---- */

static void sync_end(struct req *r)
{
    int err = file_error(r->a.f);

    req_size(r, err, (int64_t)r->a.len);
}

static void put(struct req *r)
{
    struct hf_file *f = r->a.f;
    struct inode *i = r->inode;
    bool sync = f->flags & SYNC_FLAGS;
    int64_t n;

    i->wcred.uid = f->cred.uid;
    i->wcred.gid = f->cred.gid;
    n = wb_write(i, r->a.off, r->a.iov, r->a.niov, r->a.len, sync);
    if (n < 0) {
        req_size(r, (int)n, 0);
        return;
    }
    ra_cut(i, r->a.off, r->a.off + (uint64_t)n);
    r->a.len = (uint64_t)n;
    if (sync)
        flush_then(r, sync_end);
    else
        req_size(r, 0, n);
}

static bool under_pressure(const struct engine *e)
{
    uint64_t mem = atomic_load_explicit(&e->mem, memory_order_relaxed);

    return mem > e->mem_max / 4 * 3 || e->unstable > e->mem_max / 2;
}

static void queue(struct req *r)
{
    struct inode *i = r->inode;

    hf_list_push_back(&i->writers, &r->link);
    if (hf_list_empty(&i->starved_link))
        hf_list_push_back(&i->e->starved, &i->starved_link);
    wb_flush(i);
}

static void write_buffered(struct req *r)
{
    struct inode *i = r->inode;
    struct engine *e = i->e;

    if (!hf_list_empty(&i->writers) || !wb_room(i, r->a.len + OVERHEAD))
        queue(r);
    else
        put(r);
    if (under_pressure(e))
        wb_press(e);
}

/* Writers of one inode in their order; false: there is no room for the first. */
static bool admit(struct inode *i)
{
    while (!hf_list_empty(&i->writers)) {
        struct req *r = hf_container_of(i->writers.next, struct req, link);

        if (!wb_room(i, r->a.len + OVERHEAD))
            return false;
        hf_list_remove(&r->link);
        put(r);
    }
    return true;
}

/* Callbacks may make others wait meanwhile. */
void write_admit(struct engine *e)
{
    struct hf_list now, *l;

    if (hf_list_empty(&e->starved))
        return;
    hf_list_init(&now);
    while ((l = hf_list_pop_front(&e->starved)))
        hf_list_push_back(&now, l);
    while ((l = hf_list_pop_front(&now))) {
        struct inode *i = hf_container_of(l, struct inode, starved_link);

        i->refs++;
        if (!admit(i)) {
            if (hf_list_empty(&i->starved_link))
                hf_list_push_back(&e->starved, &i->starved_link);
            wb_flush(i);
        }
        inode_put(i);
    }
    if (under_pressure(e))
        wb_press(e);
}

/* ---- append ---- */

static void append_send(struct req *r);

/* The first in the queue is under way. */
static void append_next(struct inode *i)
{
    if (!hf_list_empty(&i->appends))
        flush_then(hf_container_of(i->appends.next, struct req, order), append_send);
}

static void on_append_timer(struct hf_timer *t)
{
    struct req *r = hf_container_of(t, struct req, c.timer);

    append_next(r->inode);
}

static void append_ended(struct req *r, int status, uint64_t at, const Hf__Wcc *wcc)
{
    struct inode *i = r->inode;

    free(r->bytes);
    r->bytes = NULL;
    hf_list_remove(&r->order);
    if (status == 0) {
        wb_cut(i, at, at + r->a.len, false);
        ra_cut(i, at, at + r->a.len);
        atomic_fetch_add_explicit(&i->e->fs->write_bytes, r->a.len, memory_order_relaxed);
    }
    if (wcc)
        inode_changed(i, wcc->after);
    append_next(i);
    req_size(r, status, (int64_t)r->a.len);
}

static void on_append(struct hf_client_io *io)
{
    struct req *r = io->arg;
    struct engine *e = r->a.e;

    /* Another client's append is under way. */
    if (io->status == HF_E_JUKEBOX && hf_loop_now_ns(e->loop) < r->deadline_ns) {
        hf_timer_init(&r->c.timer, e->loop, on_append_timer);
        hf_timer_set(&r->c.timer, APPEND_NS + hf_env_random_u64(e->fs->env) % APPEND_NS);
        return;
    }
    append_ended(r, io->status == HF_E_JUKEBOX ? HF_E_TIMEDOUT : io->status, io->at, io->wcc);
}

static void append_send(struct req *r)
{
    struct inode *i = r->inode;
    struct hf_client_io *io = &r->c.io;

    *io = (struct hf_client_io){
        .cred = &r->a.f->cred,
        .ino = i->ino,
        .gen = i->gen,
        .len = (uint32_t)r->a.len,
        .stable = HF__STABLE__FILE_SYNC,
        .opened = true,
        .append = true,
        .done = on_append,
        .arg = r,
    };
    io->data_n = r->bytes ? 1 : r->a.niov;
    for (unsigned k = 0; k < io->data_n; k++)
        io->data[k] = (struct hf_slice){r->a.iov[k].iov_base, r->a.iov[k].iov_len};
    if (r->bytes)
        io->data[0] = (struct hf_slice){r->bytes, r->a.len};
    hf_client_write(r->a.e->client, io);
}

/* More pieces than a call may have become one. */
static int gather(struct req *r)
{
    size_t at = 0;

    if (r->a.niov < HF_RPC_BULK_IOV)
        return 0;
    r->bytes = malloc(r->a.len);
    if (!r->bytes)
        return HF_E_NOMEM;
    for (unsigned k = 0; k < r->a.niov; k++) {
        memcpy((uint8_t *)r->bytes + at, r->a.iov[k].iov_base, r->a.iov[k].iov_len);
        at += r->a.iov[k].iov_len;
    }
    return 0;
}

static void append(struct req *r)
{
    struct inode *i = r->inode;
    int rc = gather(r);

    if (rc) {
        req_fail(r, rc);
        return;
    }
    r->deadline_ns = hf_loop_now_ns(i->e->loop) + i->e->fs->opts.timeout_ms * HF_NS_PER_MS;
    hf_list_push_back(&i->appends, &r->order);
    if (i->appends.next == &r->order)
        append_next(i);
}

/* ---- the call ---- */

/* At most HF_CLIENT_IO_MAX bytes, and r->a.len of them in the pieces. */
static void cut_iov(struct req *r)
{
    struct iovec *v = (struct iovec *)(uintptr_t)r->a.iov; /* our copy */
    unsigned n = 0;

    r->a.len = 0;
    for (unsigned k = 0; k < r->a.niov && r->a.len < HF_CLIENT_IO_MAX; k++) {
        uint64_t room = HF_CLIENT_IO_MAX - r->a.len;

        if (v[k].iov_len == 0)
            continue;
        v[n] = v[k];
        if (v[n].iov_len > room)
            v[n].iov_len = room;
        r->a.len += v[n++].iov_len;
    }
    r->a.niov = n;
}

static void run_write(struct req *r)
{
    struct hf_file *f = r->a.f;
    int err = file_writes(f) ? file_error(f) : HF_E_BADF;

    (void)file_inode(r);
    cut_iov(r);
    if (err == 0 && r->inode->stale)
        err = HF_E_STALE;
    if (err == 0 && !(f->flags & O_APPEND) && r->a.off > (uint64_t)INT64_MAX - r->a.len)
        err = HF_E_FBIG;
    if (err || r->a.len == 0)
        req_size(r, err, 0);
    else if (f->flags & O_APPEND)
        append(r);
    else
        write_buffered(r);
}

void hf_write_async(struct hf_file *f, const struct iovec *iov, unsigned niov, uint64_t offset,
                    hf_size_fn *fn, void *arg)
{
    submit_file(f, &(struct args){.run = run_write,
                                  .kind = K_SIZE,
                                  .fn.size = fn,
                                  .arg = arg,
                                  .iov = iov,
                                  .niov = niov,
                                  .off = offset});
}

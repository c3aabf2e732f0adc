/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits and fsync. The answer to a write and the answer to a commit carry a verifier that changes
 * whenever anything that may have held the bytes restarted. What was written under another verifier
 * than the commit's may be lost, and is sent again: it becomes dirty where nothing newer lies over
 * it, under its old number, so that an fsync which waits for that number goes on waiting.
 */
#include "fs_priv.h"

bool wb_uncommitted(const struct inode *i)
{
    return i->wb && i->wb->unstable.n;
}

/* The first range of [from, end) that newer bytes cover; false: none. */
static bool newer(const struct inode *i, uint64_t from, uint64_t end, uint64_t *ret_from,
                  uint64_t *ret_end)
{
    const struct ext *a = wset_find(&i->wb->dirty, from, end);
    const struct ext *b = wset_find(&i->wb->sending, from, end);
    const struct ext *x = !a || (b && b->off < a->off) ? b : a;

    if (!x)
        return false;
    *ret_from = x->off > from ? x->off : from;
    *ret_end = ext_end(x);
    return true;
}

static void send_again(struct inode *i, struct ext *x)
{
    uint64_t at = x->off, end = ext_end(x), from, to;
    int rc = 0;

    x->sync = true; /* once is enough */
    if (!newer(i, at, end, &from, &to)) {
        wset_insert(&i->wb->dirty, x);
        return;
    }
    while (at < end && rc == 0) {
        if (!newer(i, at, end, &from, &to))
            from = to = end;
        if (from > at)
            rc = wset_write(&i->wb->dirty, at, x->data + (at - x->off), (uint32_t)(from - at),
                            x->seq, true);
        at = to;
    }
    if (rc)
        inode_error(i, rc);
    ext_free(x);
}

static bool gave_no_answer(int status)
{
    return status == HF_E_TIMEDOUT || status == HF_E_JUKEBOX || status == HF_E_CLOSED;
}

/* What the commit covers: written before it was sent. While a truncation is under way nothing
 * becomes dirty again, for it would count as newer than that; the next commit sees to it. */
static void settle(struct inode *i, const struct hf_client_io *io)
{
    uint64_t again = 0;

    if (io->status && (!gave_no_answer(io->status) || i->e->draining))
        inode_error(i, io->status);
    else if (io->status)
        return; /* it is kept */
    HF_LIST_FOREACH_SAFE(it, tmp, &i->wb->unstable.fifo)
    {
        struct ext *x = hf_container_of(it, struct ext, fifo);

        if (x->era >= i->commits_started)
            continue;
        if (io->status == 0 && x->verifier != io->verifier && i->barriers) {
            i->commit_status = HF_E_CHANGED;
            continue;
        }
        wset_remove(&i->wb->unstable, x);
        if (io->status == 0 && x->verifier != io->verifier) {
            again = x->seq > again ? x->seq : again;
            send_again(i, x);
        } else {
            ext_free(x);
        }
    }
    if (again > i->flush_seq)
        i->flush_seq = again;
}

static void on_commit(struct hf_client_io *io)
{
    struct inode *i = io->arg;
    struct engine *e = i->e;

    e->commits--;
    i->committing = false;
    i->commits_done = i->commits_started;
    i->commit_status = io->status;
    if (i->wb)
        settle(i, io);
    if (io->wcc)
        inode_seen(i, io->wcc->after);
    wb_pump(i);
    wb_changed(i);
    inode_wake(i);
    inode_put(i);
    write_admit(e);
}

void wb_commit(struct inode *i)
{
    if (i->committing || !wb_uncommitted(i))
        return;
    i->committing = true;
    i->commits_started++;
    i->e->commits++;
    i->refs++;
    i->commit = (struct hf_client_io){
        .cred = &i->wcred,
        .ino = i->ino,
        .gen = i->gen,
        .opened = true,
        .done = on_commit,
        .arg = i,
    };
    hf_client_commit(i->e->client, &i->commit);
}

/* ---- fsync ---- */

void wb_prefer_sync(struct inode *i)
{
    struct wbuf *b = i->wb;

    if (b && b->dirty.n == 1 && !b->sending.n && !b->unstable.n)
        hf_container_of(b->dirty.fifo.next, struct ext, fifo)->sync = true;
}

static void fsync_end(struct req *r, int err)
{
    int e = file_error(r->a.f);

    req_done(r, e ? e : err);
}

/* r->seq: what must be safe. r->need: the commit that covers it, once all of it has been written.
 */
static void fsync_step(struct req *r)
{
    struct inode *i = r->inode;

    if (r->need && i->commits_done >= r->need && i->commit_status == HF_E_CHANGED)
        r->need = 0;
    if (r->need && i->commits_done >= r->need && i->commit_status) {
        fsync_end(r, i->commit_status);
        return;
    }
    if (!wb_clean(i, r->seq)) {
        r->need = 0;
        if (i->flush_seq < r->seq)
            wb_flush(i);
        else
            wb_pump(i);
    } else if (!wb_uncommitted(i) || (r->need && i->commits_done >= r->need)) {
        fsync_end(r, 0);
        return;
    } else {
        if (!r->need)
            r->need = i->commits_started + 1;
        wb_commit(i);
    }
    if (hf_loop_now_ns(i->e->loop) >= r->deadline_ns)
        fsync_end(r, HF_E_TIMEDOUT);
    else
        hf_list_push_back(&i->waiters, &r->link);
}

static void run_fsync(struct req *r)
{
    struct inode *i = file_inode(r);

    r->seq = i->wseq;
    r->step = fsync_step;
    /* Each wait below ends within the time of a call: this bounds their number. */
    r->deadline_ns = hf_loop_now_ns(i->e->loop) + i->e->fs->opts.timeout_ms * HF_NS_PER_MS;
    wb_prefer_sync(i);
    fsync_step(r);
}

void hf_fsync_async(struct hf_file *f, bool data_only, hf_done_fn *fn, void *arg)
{
    submit_file(
        f, &(struct args){
               .run = run_fsync, .kind = K_DONE, .fn.done = fn, .arg = arg, .flags = data_only});
}

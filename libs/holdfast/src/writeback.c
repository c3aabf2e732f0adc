/* SPDX-License-Identifier: Apache-2.0
 *
 * Write-behind. A buffered byte goes through three sets of its inode:
 *
 *   dirty      not sent. New writes merge into it
 *   sending    in a write that is in flight; does not change. What overlaps it stays dirty until
 *              the answer came, so that writes of the same place arrive in order
 *   unstable   at the servers, which may still lose it: kept until a commit says otherwise
 *              (commit.c)
 *
 * None of the sets has a place twice, and what is newer wins: dirty over sending over unstable.
 *
 * Bytes leave when a group (GROUP_BYTES, aligned: a chunk) is complete, or a block is and nothing
 * is in flight, and all else after writeback_ms, at a flush, or when memory is short. Every write
 * has a number (inode.wseq); flush_seq is the number up to which all must leave, and a flush of
 * write n is done when nothing up to n is dirty or in flight.
 *
 * An error drops the bytes and is told once to each file that is open (inode_error).
 */
#include <stdlib.h>

#include "fs_priv.h"

#define GROUP_BYTES  HF_CLIENT_IO_MAX
#define SENDING_MAX  16u /* writes in flight of one inode */
#define PIECES       (HF_RPC_BULK_IOV - 1)
#define UNSTABLE_NS  (2 * HF_NS_PER_SEC) /* then they are committed without being asked */
#define PRESS_INODES 16u                 /* at a time */
#define COMMITS_MAX  32u                 /* of the engine's own accord, in flight */

struct sent {
    struct hf_client_io io;
    struct inode *inode;
    struct ext *x[PIECES];
    unsigned n;
};

static uint64_t mem_of(const struct engine *e)
{
    return atomic_load_explicit(&e->mem, memory_order_relaxed);
}

static uint64_t now_of(const struct engine *e)
{
    return hf_loop_now_ns(e->loop);
}

/* ---- books ---- */

static void account(struct inode *i)
{
    const struct wbuf *b = i->wb;
    uint64_t unstable = b->unstable.charge;
    uint64_t all = b->dirty.charge + b->sending.charge + unstable;
    struct engine *e = i->e;

    atomic_store_explicit(&e->mem, mem_of(e) + all - i->charged, memory_order_relaxed);
    e->unstable += unstable - i->charged_unstable;
    i->charged = all;
    i->charged_unstable = unstable;
}

static void arm(struct engine *e)
{
    uint64_t at = ~0ull, now = now_of(e), wait = e->fs->opts.writeback_ms * HF_NS_PER_MS;

    if (!hf_list_empty(&e->dirty))
        at = hf_container_of(e->dirty.next, struct inode, dirty_link)->dirty_ns + wait;
    if (!hf_list_empty(&e->uncommitted)) {
        uint64_t u = hf_container_of(e->uncommitted.next, struct inode, unstable_link)->unstable_ns;

        at = u + UNSTABLE_NS < at ? u + UNSTABLE_NS : at;
    }
    if (at != ~0ull && (!hf_timer_armed(&e->write_timer) || at < e->write_timer.at_ns))
        hf_timer_set(&e->write_timer, at > now ? at - now : HF_NS_PER_MS);
}

static bool in_list(const struct hf_list *l)
{
    return !hf_list_empty(l);
}

static void tell_sizes(struct inode *i, const struct sizes_entry *now)
{
    i->sizes_in = sizes_put(&i->e->fs->sizes, i->ino, &i->sizes, now) == 0;
}

/* Everything has been sent. A server that restarts may lose what is not committed, and then would
 * tell a size that we have told otherwise. */
static void all_sent(struct inode *i)
{
    struct sizes_entry now = i->sizes;

    if (!i->sizes_in)
        return;
    now.written = true;
    now.change = i->own_change;
    now.size = wset_end(&i->wb->unstable);
    if (i->wb->unstable.n == 0 || i->hidden) {
        sizes_del(&i->e->fs->sizes, i->ino);
        i->sizes_in = false;
    } else if (!i->sizes.written || i->sizes.size != now.size || i->sizes.change != now.change) {
        tell_sizes(i, &now);
    }
}

static void update_lists(struct inode *i)
{
    struct engine *e = i->e;
    bool dirty = i->wb->dirty.n || i->wb->sending.n;

    if (dirty && !in_list(&i->dirty_link)) {
        i->dirty_ns = now_of(e);
        hf_list_push_back(&e->dirty, &i->dirty_link);
    }
    if (!dirty) {
        hf_list_remove(&i->dirty_link);
        all_sent(i);
    }
    if (i->wb->unstable.n && !in_list(&i->unstable_link)) {
        i->unstable_ns = now_of(e);
        hf_list_push_back(&e->uncommitted, &i->unstable_link);
    }
    if (!i->wb->unstable.n) {
        hf_list_remove(&i->unstable_link);
        i->hidden = false;
    }
    arm(e);
}

/* The caller holds a reference. */
void wb_changed(struct inode *i)
{
    struct wbuf *b = i->wb;

    if (!b)
        return;
    account(i);
    update_lists(i);
    if (!b->dirty.n && !b->sending.n && !b->unstable.n) {
        free(b);
        i->wb = NULL;
    }
    engine_check_drained(i->e);
}

/* ---- taking bytes ---- */

bool wb_room(const struct inode *i, uint64_t len)
{
    const struct engine *e = i->e;
    uint64_t own = i->wb ? i->wb->dirty.charge + i->wb->sending.charge : 0, mem = mem_of(e);

    return (mem == 0 || mem + len <= e->mem_max) && (own == 0 || own + len <= e->file_max);
}

static int wb_make(struct inode *i)
{
    if (i->wb)
        return 0;
    i->wb = malloc(sizeof(*i->wb));
    if (!i->wb)
        return HF_E_NOMEM;
    wset_init(&i->wb->dirty);
    wset_init(&i->wb->sending);
    wset_init(&i->wb->unstable);
    i->charged = i->charged_unstable = 0;
    return 0;
}

static bool blocked(const struct inode *i, const struct ext *x)
{
    return i->wb->sending.n && wset_find(&i->wb->sending, x->off, ext_end(x));
}

static void send(struct inode *i, struct ext *x, bool full);

static bool is_full(const struct ext *x)
{
    return x && x->len == WSET_BLOCK;
}

/* A block is complete. */
static void block_full(struct inode *i, struct ext *x)
{
    uint64_t base = x->off / GROUP_BYTES * GROUP_BYTES;
    bool group = true;

    if (i->barriers || i->sending >= SENDING_MAX || blocked(i, x))
        return;
    for (uint64_t at = base; at < base + GROUP_BYTES && group; at += WSET_BLOCK)
        group = is_full(wset_find(&i->wb->dirty, at, at + WSET_BLOCK));
    if (group || i->sending == 0)
        send(i, x, true);
}

static int put(struct inode *i, uint64_t off, const uint8_t *data, uint32_t len, bool sync)
{
    int rc = wset_write(&i->wb->dirty, off, data, len, i->wseq, sync);
    struct ext *x;

    if (rc)
        return rc;
    x = wset_find(&i->wb->dirty, off, off + 1);
    if (is_full(x))
        block_full(i, x);
    return 0;
}

static void told_size(struct inode *i, uint64_t end)
{
    struct sizes_entry now = i->sizes_in ? i->sizes : (struct sizes_entry){.count = i->sizes.count};

    now.size = end > now.size ? end : now.size;
    now.mtime_ns = hf_env_wall_ns(i->e->fs->env);
    now.count++;
    now.written = false;
    tell_sizes(i, &now);
}

int64_t wb_write(struct inode *i, uint64_t off, const struct iovec *iov, unsigned niov,
                 uint64_t len, bool sync)
{
    uint64_t done = 0;
    int rc = wb_make(i);

    if (rc)
        return rc;
    i->refs++;
    i->wseq++;
    for (unsigned k = 0; k < niov && rc == 0; k++) {
        const uint8_t *data = iov[k].iov_base;
        uint64_t left = iov[k].iov_len < len - done ? iov[k].iov_len : len - done;

        while (left && rc == 0) {
            uint64_t room = WSET_BLOCK - (off + done) % WSET_BLOCK, n = left < room ? left : room;

            rc = put(i, off + done, data, (uint32_t)n, sync);
            if (rc == 0) {
                done += n;
                data += n;
                left -= n;
            }
        }
    }
    if (done)
        told_size(i, off + done);
    wb_changed(i);
    inode_put(i);
    return done || rc == 0 ? (int64_t)done : rc;
}

/* ---- sending ---- */

bool wb_clean(const struct inode *i, uint64_t seq)
{
    if (!i->wb)
        return true;
    if (i->wb->dirty.n && hf_container_of(i->wb->dirty.fifo.next, struct ext, fifo)->seq <= seq)
        return false;
    return !i->wb->sending.n ||
           hf_container_of(i->wb->sending.fifo.next, struct ext, fifo)->seq > seq;
}

static void on_sent(struct hf_client_io *io);

/* x and what adjoins it in its group. full: only complete blocks. */
static unsigned gather(const struct inode *i, struct ext *x, bool full, struct ext *to[PIECES])
{
    const struct wset *dirty = &i->wb->dirty;
    uint64_t base = x->off / GROUP_BYTES * GROUP_BYTES;
    struct ext *first = x, *y;
    unsigned n = 0;

    for (unsigned left = PIECES - 1; left && first->off > base; left--) {
        y = wset_find(dirty, first->off - 1, first->off);
        if (!y || blocked(i, y) || (full && !is_full(y)))
            break;
        first = y;
    }
    for (y = first; y && n < PIECES; n++) {
        uint64_t end = ext_end(y);

        to[n] = y;
        y = end < base + GROUP_BYTES ? wset_find(dirty, end, end + 1) : NULL;
        if (y && (blocked(i, y) || (full && !is_full(y))))
            y = NULL;
    }
    return n;
}

static void send(struct inode *i, struct ext *x, bool full)
{
    struct sent *s = calloc(1, sizeof(*s));
    bool sync = false;

    if (!s) {
        arm(i->e); /* again later */
        return;
    }
    s->inode = i;
    s->n = gather(i, x, full, s->x);
    for (unsigned k = 0; k < s->n; k++) {
        struct ext *y = s->x[k];

        sync |= y->sync;
        wset_remove(&i->wb->dirty, y);
        wset_insert(&i->wb->sending, y);
        s->io.data[k] = (struct hf_slice){y->data, y->len};
        s->io.len += y->len;
    }
    s->io.data_n = s->n;
    s->io.cred = &i->wcred;
    s->io.ino = i->ino;
    s->io.gen = i->gen;
    s->io.offset = s->x[0]->off;
    s->io.stable = sync ? HF__STABLE__FILE_SYNC : HF__STABLE__UNSTABLE;
    s->io.opened = true;
    s->io.done = on_sent;
    i->sending++;
    i->refs++;
    hf_client_write(i->e->client, &s->io);
}

void wb_pump(struct inode *i)
{
    struct hf_list *it;

    if (!i->wb || i->barriers)
        return;
    for (it = i->wb->dirty.fifo.next; it != &i->wb->dirty.fifo && i->sending < SENDING_MAX;) {
        struct ext *x = hf_container_of(it, struct ext, fifo);
        size_t before = i->wb->dirty.n;

        if (x->seq > i->flush_seq)
            break;
        it = it->next;
        if (blocked(i, x))
            continue;
        send(i, x, false);
        if (i->wb->dirty.n == before)
            break;                   /* no memory */
        it = i->wb->dirty.fifo.next; /* more than x may have gone */
    }
    wb_changed(i);
}

static void keep_unstable(struct inode *i, struct ext *x, uint64_t verifier)
{
    if (wset_cut(&i->wb->unstable, x->off, ext_end(x)))
        inode_error(i, HF_E_NOMEM);
    x->verifier = verifier;
    x->era = i->commits_started;
    if (i->wb->unstable.n == 0)
        i->unstable_epoch = hf_client_epoch(i->e->client);
    wset_insert(&i->wb->unstable, x);
    /* Something restarted: see soon what it lost. */
    if (i->verifier != verifier && i->wb->unstable.n > 1)
        wb_commit(i);
    i->verifier = verifier;
}

static void written(struct sent *s)
{
    struct inode *i = s->inode;

    for (unsigned k = 0; k < s->n; k++) {
        struct ext *x = s->x[k];

        wset_remove(&i->wb->sending, x);
        ra_cut(i, x->off, ext_end(x)); /* fetched while these bytes were here only */
        if (s->io.status == 0 && s->io.stable == HF__STABLE__UNSTABLE) {
            keep_unstable(i, x, s->io.verifier);
            continue;
        }
        if (s->io.status == 0 && wset_cut(&i->wb->unstable, x->off, ext_end(x)))
            inode_error(i, HF_E_NOMEM);
        ext_free(x);
    }
    if (s->io.status)
        inode_error(i, s->io.status);
    else
        atomic_fetch_add_explicit(&i->e->fs->write_bytes, s->io.len, memory_order_relaxed);
    if (s->io.wcc)
        inode_changed(i, s->io.wcc->after);
}

static void on_sent(struct hf_client_io *io)
{
    struct sent *s = hf_container_of(io, struct sent, io);
    struct inode *i = s->inode;
    struct engine *e = i->e;

    i->sending--;
    written(s);
    free(s);
    wb_pump(i);
    wb_changed(i);
    inode_wake(i);
    inode_put(i);
    write_admit(e);
}

void wb_flush(struct inode *i)
{
    i->flush_seq = i->wseq;
    wb_pump(i);
}

/* ---- order with other changes of the object ---- */

void wb_barrier(struct inode *i)
{
    i->barriers++;
}

void wb_barrier_end(struct inode *i)
{
    i->barriers--;
    wb_pump(i);
    inode_wake(i);
}

void wb_cut(struct inode *i, uint64_t from, uint64_t to, bool dirty)
{
    int rc;

    if (!i->wb)
        return;
    rc = wset_cut(&i->wb->unstable, from, to);
    if (rc == 0 && dirty)
        rc = wset_cut(&i->wb->dirty, from, to);
    if (rc)
        inode_error(i, rc);
    if (i->sizes_in) {
        struct sizes_entry now = i->sizes;
        uint64_t a = wset_end(&i->wb->dirty), b = wset_end(&i->wb->sending),
                 c = i->hidden ? 0 : wset_end(&i->wb->unstable);

        now.size = a > b ? a : b;
        now.size = c > now.size ? c : now.size;
        tell_sizes(i, &now);
    }
    wb_changed(i);
}

void wb_opened(struct inode *i, const Hf__Attr *a)
{
    if (!i->wb || !i->wb->unstable.n || a->change == i->own_change)
        return;
    i->hidden = true;
    wb_commit(i);
    wb_changed(i);
}

/* ---- time and space ---- */

static void commit_some(struct engine *e, uint64_t until_ns)
{
    for (unsigned n = 0; n < PRESS_INODES && e->commits < COMMITS_MAX; n++) {
        struct inode *i;

        if (hf_list_empty(&e->uncommitted))
            return;
        i = hf_container_of(e->uncommitted.next, struct inode, unstable_link);
        if (i->unstable_ns > until_ns)
            return;
        hf_list_remove(&i->unstable_link);
        hf_list_push_back(&e->uncommitted, &i->unstable_link);
        i->unstable_ns = now_of(e);
        wb_commit(i);
    }
}

void wb_press(struct engine *e)
{
    for (unsigned n = 0; n < PRESS_INODES && !hf_list_empty(&e->dirty); n++) {
        struct inode *i = hf_container_of(e->dirty.next, struct inode, dirty_link);

        hf_list_remove(&i->dirty_link);
        hf_list_push_back(&e->dirty, &i->dirty_link);
        i->refs++;
        wb_flush(i);
        inode_put(i);
    }
    if (e->unstable > e->mem_max / 2 || e->draining)
        commit_some(e, ~0ull);
}

static void on_write_timer(struct hf_timer *t)
{
    struct engine *e = hf_container_of(t, struct engine, write_timer);
    uint64_t now = now_of(e), wait = e->fs->opts.writeback_ms * HF_NS_PER_MS;

    if (e->draining) {
        wb_drain(e);
        return;
    }
    while (!hf_list_empty(&e->dirty)) {
        struct inode *i = hf_container_of(e->dirty.next, struct inode, dirty_link);

        if (i->dirty_ns + wait > now)
            break;
        i->dirty_ns = now;
        hf_list_remove(&i->dirty_link);
        hf_list_push_back(&e->dirty, &i->dirty_link);
        i->refs++;
        wb_flush(i);
        inode_put(i);
    }
    commit_some(e, now > UNSTABLE_NS ? now - UNSTABLE_NS : 0);
    arm(e);
}

/* The end: everything leaves and is committed; called again until nothing is left. */
void wb_drain(struct engine *e)
{
    size_t n = 0;

    HF_LIST_FOREACH(it, &e->dirty) n++;
    for (; n > 0 && !hf_list_empty(&e->dirty); n--)
        wb_press(e);
    commit_some(e, ~0ull);
    if (mem_of(e) > 0)
        hf_timer_set(&e->write_timer, 10 * HF_NS_PER_MS);
}

void wb_init(struct engine *e)
{
    const struct hf_fs_opts *o = &e->fs->opts;

    hf_list_init(&e->dirty);
    hf_list_init(&e->uncommitted);
    hf_list_init(&e->starved);
    hf_timer_init(&e->write_timer, e->loop, on_write_timer);
    e->mem_max = o->dirty_max_bytes / e->fs->nengines;
    e->file_max = o->file_dirty_bytes < e->mem_max ? o->file_dirty_bytes : e->mem_max;
}

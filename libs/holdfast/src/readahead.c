/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading ahead. A file that is read from where the last read ended gets a window, doubling from
 * WINDOW_MIN to readahead_bytes; what lies in the window is fetched in blocks and kept until it is
 * read, at most readahead_max bytes of all files. Reads at other places pass by.
 *
 * A block is served for READ_AHEAD_NS after it came, and then only if the file's change counter has
 * been seen again since and is the same. Own writes and truncations drop what they touch.
 */
#include <stdlib.h>

#include "fs_priv.h"

#define BLOCK      (1u << 20)
#define WINDOW_MIN (256u << 10)
#define SLACK      (1u << 20) /* parallel reads of a stream come in any order within this */

struct ra {
    struct hf_list link; /* inode.ras; not if it is dropped while on its way */
    struct hf_list lru;  /* engine.ra_lru, once it is here */
    struct inode *inode;
    uint64_t off, change, fetched_ns;
    uint32_t len, got;
    bool ready;
    struct hf_list waiters; /* req.link */
    struct hf_client_io io; /* its pieces are ours once ready */
};

static uint64_t bytes_of(const struct engine *e)
{
    return atomic_load_explicit(&e->ra_bytes, memory_order_relaxed);
}

static void ra_free(struct ra *a)
{
    struct engine *e = a->inode->e;

    if (a->ready)
        for (unsigned k = 0; k < a->io.npieces; k++)
            if (a->io.pieces[k].msg)
                hf_rpc_msg_unref(a->io.pieces[k].msg);
    hf_list_remove(&a->link);
    hf_list_remove(&a->lru);
    atomic_store_explicit(&e->ra_bytes, bytes_of(e) - a->len, memory_order_relaxed);
    free(a);
}

static void drop(struct ra *a)
{
    if (a->ready)
        ra_free(a);
    else
        hf_list_remove(&a->link); /* goes when it comes */
}

void ra_cut(struct inode *i, uint64_t from, uint64_t to)
{
    HF_LIST_FOREACH_SAFE(it, tmp, &i->ras)
    {
        struct ra *a = hf_container_of(it, struct ra, link);

        if (a->off < to && a->off + a->len > from)
            drop(a);
    }
}

void ra_drop(struct inode *i)
{
    ra_cut(i, 0, ~0ull);
}

static void on_fetched(struct hf_client_io *io)
{
    struct ra *a = hf_container_of(io, struct ra, io);
    struct inode *i = a->inode;
    struct hf_list now, *l;

    hf_list_init(&now);
    while ((l = hf_list_pop_front(&a->waiters)))
        hf_list_push_back(&now, l);
    if (io->attr) {
        inode_seen(i, io->attr);
        a->change = io->attr->change;
    }
    if (io->status || io->count == 0 || hf_list_empty(&a->link)) {
        ra_free(a); /* who waits reads for himself */
    } else {
        for (unsigned k = 0; k < io->npieces; k++)
            if (io->pieces[k].msg)
                hf_rpc_msg_ref(io->pieces[k].msg);
        a->ready = true;
        a->got = io->count;
        a->fetched_ns = hf_loop_now_ns(i->e->loop);
        hf_list_push_back(&i->e->ra_lru, &a->lru);
    }
    while ((l = hf_list_pop_front(&now)))
        read_step(hf_container_of(l, struct req, link));
    inode_put(i);
}

static bool make_room(struct engine *e, uint32_t len)
{
    while (bytes_of(e) + len > e->ra_max && !hf_list_empty(&e->ra_lru))
        ra_free(hf_container_of(e->ra_lru.next, struct ra, lru));
    return bytes_of(e) + len <= e->ra_max;
}

static bool fetch(struct hf_file *f, uint64_t off, uint32_t len)
{
    struct inode *i = f->inode;
    struct engine *e = i->e;
    struct hf_list *after;
    struct ra *a;

    if (!make_room(e, len) || (a = calloc(1, sizeof(*a))) == NULL)
        return false;
    a->inode = i;
    a->off = off;
    a->len = len;
    hf_list_init(&a->lru);
    hf_list_init(&a->waiters);
    for (after = i->ras.prev;
         after != &i->ras && hf_container_of(after, struct ra, link)->off > off;)
        after = after->prev;
    hf_list_insert_(&a->link, after, after->next);
    atomic_store_explicit(&e->ra_bytes, bytes_of(e) + len, memory_order_relaxed);
    i->refs++;
    i->rcred.uid = f->cred.uid;
    i->rcred.gid = f->cred.gid;
    a->io.cred = &i->rcred;
    a->io.ino = i->ino;
    a->io.gen = i->gen;
    a->io.offset = off;
    a->io.len = len;
    a->io.opened = true;
    a->io.done = on_fetched;
    hf_client_read(e->client, &a->io);
    return true;
}

/* ---- what a read finds ---- */

static bool fresh(const struct ra *a)
{
    const struct inode *i = a->inode;
    uint64_t now = hf_loop_now_ns(i->e->loop);

    return now - a->fetched_ns < READ_AHEAD_NS ||
           (i->change == a->change && now - i->seen_ns < READ_AHEAD_NS);
}

static bool add_pieces(struct req *r, const struct ra *a, uint64_t stop)
{
    uint64_t at = a->off;

    for (unsigned k = 0; k < a->io.npieces && r->s.read.pos < stop; k++) {
        const struct hf_client_piece *p = &a->io.pieces[k];
        uint64_t end = at + p->data.len, to = end < stop ? end : stop, from = r->s.read.pos;

        if (from >= at && from < to &&
            !read_add(r, p->data.data ? (const uint8_t *)p->data.data + (from - at) : NULL,
                      (size_t)(to - from), p->msg))
            return false;
        at = end;
    }
    return true;
}

enum ra_has ra_take(struct req *r, uint64_t *stop)
{
    struct inode *i = r->inode;
    const struct read_state *s = &r->s.read;

    HF_LIST_FOREACH_SAFE(it, tmp, &i->ras)
    {
        struct ra *a = hf_container_of(it, struct ra, link);
        uint64_t end = a->off + (a->ready ? a->got : a->len);

        if (a->off >= *stop)
            break;
        if (a->ready && (end <= s->pos || !fresh(a))) {
            if (a->off + a->len <= s->pos || !fresh(a))
                drop(a); /* passed, or too old */
            continue;
        }
        if (end <= s->pos)
            continue;
        if (a->off > s->pos) {
            *stop = a->off;
            break;
        }
        if (!a->ready) {
            hf_list_push_back(&a->waiters, &r->link);
            return RA_WAIT;
        }
        atomic_fetch_add_explicit(&i->e->fs->cache_hits, 1, memory_order_relaxed);
        if (!add_pieces(r, a, *stop))
            return RA_NOMEM;
        if (s->pos >= end)
            drop(a); /* read once */
        return RA_TAKEN;
    }
    return RA_NOTHING;
}

/* ---- streams ---- */

static uint64_t far(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void grow_window(struct hf_file *f)
{
    uint64_t max = f->fs->opts.readahead_bytes;

    f->ra_window = f->ra_window ? f->ra_window * 2 : WINDOW_MIN;
    if (f->ra_window > max)
        f->ra_window = max;
}

void ra_advance(struct hf_file *f, uint64_t off, uint64_t len)
{
    const struct inode *i = f->inode;
    uint64_t target, least;

    if (f->ra_next > 0 && off == f->ra_next) {
        grow_window(f);
    } else if (f->ra_window == 0 || far(off, f->ra_next) > SLACK) {
        f->ra_window = f->ra_end = 0;
        f->ra_next = off + len;
        return;
    }
    if (f->ra_next < off + len)
        f->ra_next = off + len;
    if (f->ra_end < f->ra_next)
        f->ra_end = f->ra_next;
    target = f->ra_next + f->ra_window < i->size ? f->ra_next + f->ra_window : i->size;
    least = f->ra_window / 2 < BLOCK ? f->ra_window / 2 : BLOCK;
    while (f->ra_end < target && (target - f->ra_end >= least || target == i->size)) {
        uint64_t block = (f->ra_end / BLOCK + 1) * BLOCK, end = block < target ? block : target;

        if (!fetch(f, f->ra_end, (uint32_t)(end - f->ra_end)))
            break;
        f->ra_end = end;
    }
}

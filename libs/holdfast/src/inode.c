/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's table of objects that are open or have buffered bytes.
 */
#include <stdlib.h>

#include "fs_priv.h"

struct inode *inode_find(struct engine *e, uint64_t ino)
{
    return hf_map_get(&e->inodes, ino);
}

static struct inode *inode_new(struct engine *e, struct hf_handle h)
{
    struct inode *i = calloc(1, sizeof(*i));

    if (!i)
        return NULL;
    i->e = e;
    i->ino = h.ino;
    i->gen = h.gen;
    hf_list_init(&i->close_link);
    hf_list_init(&i->open_waiters);
    hf_list_init(&i->files);
    hf_list_init(&i->dirty_link);
    hf_list_init(&i->unstable_link);
    hf_list_init(&i->starved_link);
    hf_list_init(&i->waiters);
    hf_list_init(&i->writers);
    hf_list_init(&i->appends);
    hf_list_init(&i->ras);
    hf__cred__init(&i->wcred);
    hf__cred__init(&i->rcred);
    if (hf_map_put(&e->inodes, h.ino, i)) {
        free(i);
        return NULL;
    }
    return i;
}

struct inode *inode_get(struct engine *e, struct hf_handle h)
{
    struct inode *i = inode_find(e, h.ino);

    if (!i)
        i = inode_new(e, h);
    if (i)
        i->refs++;
    return i;
}

void inode_put(struct inode *i)
{
    HF_ASSERT(i->refs > 0);
    i->refs--;
    if (i->refs || i->opens || i->hold != HOLD_NONE || i->wb)
        return;
    ra_drop(i);
    (void)hf_map_del(&i->e->inodes, i->ino);
    free(i);
}

void inode_seen(struct inode *i, const Hf__Attr *a)
{
    if (!a || a->ino != i->ino)
        return;
    i->change = a->change;
    i->size = a->size;
    i->seen_ns = hf_loop_now_ns(i->e->loop);
}

void inode_changed(struct inode *i, const Hf__Attr *after)
{
    inode_seen(i, after);
    if (after && after->change > i->own_change)
        i->own_change = after->change;
}

void inode_error(struct inode *i, int err)
{
    struct hf_fs *fs = i->e->fs;

    if (err == HF_E_STALE && i->opens == 0)
        return; /* removed after its last close: nobody can miss the bytes */
    i->err = err;
    i->err_seq++;
    atomic_fetch_add(&fs->write_errors, 1);
    if (i->e->draining) {
        pthread_mutex_lock(&fs->lock);
        fs->close_err = err;
        pthread_mutex_unlock(&fs->lock);
    }
}

int file_error(struct hf_file *f)
{
    if (f->err_seen == f->inode->err_seq)
        return 0;
    f->err_seen = f->inode->err_seq;
    return f->inode->err;
}

struct inode *file_inode(struct req *r)
{
    r->inode = r->a.f->inode;
    r->inode->refs++;
    return r->inode;
}

/* Those that wait again do so for the next time. */
void inode_wake(struct inode *i)
{
    struct hf_list now, *l;

    if (hf_list_empty(&i->waiters))
        return;
    hf_list_init(&now);
    while ((l = hf_list_pop_front(&i->waiters)))
        hf_list_push_back(&now, l);
    i->refs++;
    while ((l = hf_list_pop_front(&now))) {
        struct req *r = hf_container_of(l, struct req, link);

        r->step(r);
    }
    inode_put(i);
}

static void fail(struct req *r)
{
    hf_list_remove(&r->link);
    hf_list_remove(&r->order);
    free(r->bytes);
    req_fail(r, HF_E_CLOSED);
}

static void fail_all(struct hf_list *reqs)
{
    while (!hf_list_empty(reqs))
        fail(hf_container_of(reqs->next, struct req, link));
}

/* The engine ends: what still waits is told so; files that were not closed go. */
static void inode_end(struct inode *i)
{
    struct hf_list *l;

    i->refs++;
    fail_all(&i->waiters);
    fail_all(&i->writers);
    fail_all(&i->open_waiters);
    while (!hf_list_empty(&i->appends))
        fail(hf_container_of(i->appends.next, struct req, order));
    while ((l = hf_list_pop_front(&i->files)))
        free(hf_container_of(l, struct hf_file, link));
    if (i->wb) {
        wset_fini(&i->wb->dirty);
        wset_fini(&i->wb->sending);
        wset_fini(&i->wb->unstable);
        free(i->wb);
        i->wb = NULL;
    }
    ra_drop(i);
}

void inode_free_all(struct engine *e)
{
    size_t pos = 0;
    uint64_t ino;
    void *v;

    while (hf_map_next(&e->inodes, &pos, &ino, &v))
        inode_end(v);
    pos = 0;
    while (hf_map_next(&e->inodes, &pos, &ino, &v))
        free(v);
}

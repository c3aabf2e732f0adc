/* SPDX-License-Identifier: Apache-2.0
 *
 * An attribute may come by an engine that does not own the object (with a name or a listing), so
 * what buffered writes change of attributes lies where all engines find it.
 */
#include "fs_priv.h"

void sizes_init(struct sizes *s)
{
    pthread_mutex_init(&s->lock, NULL);
}

void sizes_fini(struct sizes *s)
{
    hf_map_fini(&s->map);
    pthread_mutex_destroy(&s->lock);
}

int sizes_put(struct sizes *s, uint64_t ino, struct sizes_entry *e, const struct sizes_entry *now)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    *e = *now;
    if (!hf_map_get(&s->map, ino)) {
        rc = hf_map_put(&s->map, ino, e);
        if (rc == 0)
            atomic_fetch_add(&s->n, 1);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void sizes_del(struct sizes *s, uint64_t ino)
{
    pthread_mutex_lock(&s->lock);
    if (hf_map_del(&s->map, ino))
        atomic_fetch_sub(&s->n, 1);
    pthread_mutex_unlock(&s->lock);
}

void sizes_apply(struct sizes *s, struct hf_attr *a)
{
    const struct sizes_entry *e;

    if (atomic_load(&s->n) == 0)
        return;
    pthread_mutex_lock(&s->lock);
    e = hf_map_get(&s->map, a->handle.ino);
    /* With our last change, or later ones: then the servers are right. Without it they have
     * restarted, and lost what was not committed. */
    if (e && e->written && a->change >= e->change)
        e = NULL;
    if (e) {
        if (a->size < e->size)
            a->size = e->size;
    }
    if (e && !e->written) {
        if (a->mtime_ns < e->mtime_ns)
            a->mtime_ns = e->mtime_ns;
        if (a->ctime_ns < e->mtime_ns)
            a->ctime_ns = e->mtime_ns;
        a->change ^= 1ull << 63 | e->count << 32; /* not a value that a server counts up to */
    }
    pthread_mutex_unlock(&s->lock);
}

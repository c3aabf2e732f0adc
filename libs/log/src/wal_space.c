/* SPDX-License-Identifier: Apache-2.0
 *
 * Where files come from and go to.
 *
 * fdatasync is cheap only if it has no metadata to write. Blocks that were allocated but never
 * written are metadata at their first write, so a new spare is filled with zeros, by the prep
 * thread, before it is used; a recycled one has been written already. Only the first file of a new
 * wal is used as it is, so that nobody waits for it (hf-store-bench prints what each kind costs).
 *
 * Files are given up oldest first, when no shard needs a record in them or in an older one. Shards
 * checkpoint and trim when they are idle, so that none keeps old files for long.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "holdfast/err.h"
#include "wal_priv.h"

#define ZERO_BYTES      (2u << 20)
#define PREP_RETRY_SECS 1

void wal_path(const struct hf_wal *w, const char *name, char out[WAL_PATH_BYTES + 32])
{
    (void)snprintf(out, WAL_PATH_BYTES + 32, "%s/%s", w->dir, name);
}

void wal_file_free(struct hf_wal *w, struct wal_file *f)
{
    if (f->fd >= 0)
        w->files->close(w->files, f->fd);
    free(f->start);
    free(f);
}

static bool stopping(struct hf_wal *w)
{
    bool stop;

    pthread_mutex_lock(&w->lock);
    stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return stop;
}

static int fill_zero(struct hf_wal *w, struct wal_file *f)
{
    uint8_t *zero = calloc(1, ZERO_BYTES);
    int rc = zero ? 0 : HF_E_NOMEM;

    for (uint64_t off = 0; off < f->bytes && rc == 0; off += ZERO_BYTES) {
        uint64_t n = f->bytes - off < ZERO_BYTES ? f->bytes - off : ZERO_BYTES;

        /* Synced in steps, so that no group waits for all of it. */
        rc = hf_fault(w->o.faults, HF_FAULT_LOG_ZERO);
        if (rc == 0)
            rc = w->files->write(w->files, f->fd, off, zero, (size_t)n);
        if (rc == 0)
            rc = w->files->sync(w->files, f->fd);
        if (rc == 0 && stopping(w))
            rc = HF_E_CANCELED;
    }
    free(zero);
    return rc;
}

/* Makes a file of zeros. Called by whoever set w->creating, without the lock. */
static int file_create(struct hf_wal *w, uint32_t id, bool zero, struct wal_file **ret)
{
    struct wal_file *f = calloc(1, sizeof(*f));
    char path[WAL_PATH_BYTES + 32];
    int rc;

    if (!f)
        return HF_E_NOMEM;
    f->fd = -1;
    f->bytes = w->o.file_bytes;
    hf_list_init(&f->link);
    (void)snprintf(f->name, sizeof(f->name), "wal-%08" PRIx32 ".log", id);
    wal_path(w, f->name, path);
    rc = w->files->open(w->files, path, true, &f->fd);
    if (rc) {
        wal_file_free(w, f);
        return rc;
    }
    rc = hf_fault(w->o.faults, HF_FAULT_LOG_CREATE);
    if (rc == 0)
        rc = w->files->allocate(w->files, f->fd, f->bytes);
    if (rc == 0 && zero)
        rc = fill_zero(w, f);
    if (rc == 0)
        rc = w->files->sync(w->files, f->fd);
    if (rc == 0)
        rc = w->files->sync_dir(w->files, w->dir);
    if (rc) {
        w->files->remove(w->files, path);
        wal_file_free(w, f);
        return rc;
    }
    *ret = f;
    return 0;
}

/* Lock held; released meanwhile. */
static int spare_create(struct hf_wal *w, bool zero)
{
    struct wal_file *f = NULL;
    uint32_t id = w->next_id++;
    int rc;

    if (w->total_bytes + w->o.file_bytes > w->o.max_bytes)
        return HF_E_NOSPC;
    w->creating = true;
    pthread_mutex_unlock(&w->lock);
    rc = file_create(w, id, zero, &f);
    pthread_mutex_lock(&w->lock);
    w->creating = false;
    pthread_cond_broadcast(&w->spare_cond);
    if (rc)
        return rc;
    hf_list_push_back(&w->spares, &f->link);
    w->nspares++;
    w->nfiles++;
    w->total_bytes += f->bytes;
    return 0;
}

int wal_spare_take(struct hf_wal *w, struct wal_file **ret)
{
    int rc = 0;

    pthread_mutex_lock(&w->lock);
    while (w->nspares == 0 && w->creating)
        pthread_cond_wait(&w->spare_cond, &w->lock);
    if (w->nspares == 0)
        rc = spare_create(w, false);
    if (rc == 0) {
        struct hf_list *n = hf_list_pop_front(&w->spares);

        *ret = hf_container_of(n, struct wal_file, link);
        w->nspares--;
        if (w->nspares == 0)
            pthread_cond_signal(&w->prep_cond);
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

/* ---- recycling ---- */

static bool file_needed(const struct hf_wal *w, const struct wal_file *next)
{
    for (unsigned s = 0; s < w->o.shards; s++) {
        if (next->start[s] > w->shards[s].trim)
            return true;
    }
    return false;
}

void wal_recycle(struct hf_wal *w)
{
    while (w->used.next != w->used.prev) {
        struct wal_file *f = hf_container_of(w->used.next, struct wal_file, link);
        struct wal_file *next = hf_container_of(f->link.next, struct wal_file, link);

        if (file_needed(w, next))
            return;
        (void)hf_fault(w->o.faults, HF_FAULT_LOG_RECYCLE); /* cannot fail; crash and delay */
        hf_list_remove(&f->link);
        if (f->bytes == w->o.file_bytes && w->nspares < WAL_SPARES_MAX) {
            hf_list_push_back(&w->spares, &f->link);
            w->nspares++;
            w->st.recycled++;
        } else {
            hf_list_push_back(&w->garbage, &f->link);
            pthread_cond_signal(&w->prep_cond);
        }
    }
}

/* A file that the header of the present one still counts as needed must not disappear: at the next
 * start it would be missed. The next header will not count it. */
static struct wal_file *garbage_next(struct hf_wal *w)
{
    struct wal_file *f;

    if (hf_list_empty(&w->garbage))
        return NULL;
    f = hf_container_of(w->garbage.next, struct wal_file, link);
    return f->seq < w->header_oldest ? f : NULL;
}

static void garbage_remove(struct hf_wal *w, struct wal_file *f)
{
    char path[WAL_PATH_BYTES + 32];

    hf_list_remove(&f->link);
    w->nfiles--;
    w->total_bytes -= f->bytes;
    pthread_mutex_unlock(&w->lock);
    wal_path(w, f->name, path);
    if (hf_fault(w->o.faults, HF_FAULT_LOG_REMOVE) == 0)
        w->files->remove(w->files, path);
    wal_file_free(w, f);
    pthread_mutex_lock(&w->lock);
}

void wal_sweep(struct hf_wal *w)
{
    struct wal_file *f;

    pthread_mutex_lock(&w->lock);
    while ((f = garbage_next(w)))
        garbage_remove(w, f);
    pthread_mutex_unlock(&w->lock);
}

/* ---- the prep thread ---- */

static bool spare_wanted(const struct hf_wal *w)
{
    return w->nspares == 0 && !w->creating && !w->dead;
}

/* Full: waits for recycling, or for the disk. The writer tries for itself when it must. */
static void prep_pause(struct hf_wal *w)
{
    struct timespec until;

    if (w->stop)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PREP_RETRY_SECS;
    pthread_cond_timedwait(&w->prep_cond, &w->lock, &until);
}

void *wal_prep_main(void *arg)
{
    struct hf_wal *w = arg;
    struct wal_file *f;

    pthread_setname_np(pthread_self(), "hf-wal-prep");
    pthread_mutex_lock(&w->lock);
    /* Removing and creating release the lock: look at everything again after each. */
    while (!w->stop) {
        f = garbage_next(w);
        if (f)
            garbage_remove(w, f);
        else if (!spare_wanted(w))
            pthread_cond_wait(&w->prep_cond, &w->lock);
        else if (spare_create(w, true) != 0)
            prep_pause(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

uint64_t wal_room(const struct hf_wal *w)
{
    uint64_t more = w->total_bytes < w->o.max_bytes ? w->o.max_bytes - w->total_bytes : 0;
    uint64_t whole;

    if (more > w->fs_free)
        more = w->fs_free;
    whole = more - more % w->o.file_bytes; /* only whole files are made */
    return w->cur_left + (uint64_t)w->nspares * w->o.file_bytes + whole;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Open files: a bounded table, the least recently used closed first. A file with unsynced bytes is
 * synced before it is closed, because a later descriptor might not be told of an error in between.
 */
#include "posix_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t hash(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h ^ (h >> 15);
}

unsigned px_dir_of(const uint8_t *id)
{
    return hash(id, 10) % PX_DIRS;
}

void px_name(const uint8_t *id, char buf[PX_NAME_BYTES])
{
    static const char hex[] = "0123456789abcdef";
    unsigned d = px_dir_of(id);
    char *p = buf;

    *p++ = hex[d >> 4];
    *p++ = '/';
    *p++ = hex[d & 15];
    *p++ = '/';
    for (unsigned i = 0; i < HF_BE_ID_BYTES; i++) {
        *p++ = hex[id[i] >> 4];
        *p++ = hex[id[i] & 15];
    }
    *p = '\0';
}

static void lru_remove(struct px_file *f)
{
    f->lru_prev->lru_next = f->lru_next;
    f->lru_next->lru_prev = f->lru_prev;
    f->lru_prev = f->lru_next = NULL;
}

static void lru_push(struct px_cache *c, struct px_file *f)
{
    f->lru_prev = c->lru.lru_prev;
    f->lru_next = &c->lru;
    c->lru.lru_prev->lru_next = f;
    c->lru.lru_prev = f;
}

static struct px_file *find(struct px_cache *c, const uint8_t *id)
{
    struct px_file *f = c->buckets[hash(id, HF_BE_ID_BYTES) % PX_FD_BUCKETS];

    while (f && memcmp(f->id, id, HF_BE_ID_BYTES) != 0)
        f = f->hash_next;
    return f;
}

static void unhash(struct px_cache *c, struct px_file *f)
{
    struct px_file **at = &c->buckets[hash(f->id, HF_BE_ID_BYTES) % PX_FD_BUCKETS];

    while (*at != f)
        at = &(*at)->hash_next;
    *at = f->hash_next;
    c->open--;
}

static void file_close(struct px_file *f)
{
    close(f->fd);
    free(f);
}

static struct px_file *ref(struct px_file *f)
{
    if (f->refs++ == 0)
        lru_remove(f);
    return f;
}

/* Closes files until the table is within `max`. A file that cannot be made clean stays, and says so
 * at its next SYNC. Called with the lock held; gives it up while it syncs. */
static void shrink(struct px_cache *c, unsigned max)
{
    for (unsigned tries = c->open; c->open > max && tries > 0; tries--) {
        struct px_file *f = c->lru.lru_next;

        if (f == &c->lru)
            return;
        if (atomic_load(&f->failed)) {
            lru_remove(f);
            lru_push(c, f);
            continue;
        }
        if (atomic_load(&f->dirty)) {
            ref(f);
            pthread_mutex_unlock(&c->lock);
            atomic_store(&f->dirty, false);
            if (fdatasync(f->fd))
                atomic_store(&f->failed, true);
            pthread_mutex_lock(&c->lock);
            if (--f->refs > 0)
                continue;
            if (f->dead) {
                file_close(f);
                continue;
            }
            lru_push(c, f);
            if (atomic_load(&f->dirty) || atomic_load(&f->failed))
                continue;
        }
        lru_remove(f);
        unhash(c, f);
        file_close(f);
    }
}

struct px_file *px_file_peek(struct hf_be *be, const uint8_t *id)
{
    struct px_file *f;

    pthread_mutex_lock(&be->cache.lock);
    f = find(&be->cache, id);
    if (f)
        ref(f);
    pthread_mutex_unlock(&be->cache.lock);
    return f;
}

/* Makes the file; its name is covered by *ret_at. */
static int create_fd(struct hf_be *be, const uint8_t *id, const char *name, uint64_t *ret_at)
{
    struct px_dir *dir = &be->dirs[px_dir_of(id)];
    int fd, e;

    pthread_mutex_lock(&dir->names);
    fd = openat(be->root, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0600);
    e = errno;
    if (fd >= 0) {
        *ret_at = atomic_fetch_add(&dir->changed, 1) + 1;
        atomic_fetch_add(&be->version, 1);
        atomic_fetch_add(&be->objects, 1);
    }
    pthread_mutex_unlock(&dir->names);
    errno = e;
    return fd;
}

/* Opens or creates; *ret_at: the count of its folder that covers its name. */
static int open_fd(struct hf_be *be, const uint8_t *id, bool create, int *ret_fd, uint64_t *ret_at)
{
    char name[PX_NAME_BYTES];
    int fd;

    px_name(id, name);
    for (unsigned tries = 0; tries < 8; tries++) {
        fd = openat(be->root, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
            *ret_at = px_dir_changed(be, px_dir_of(id));
        if (fd < 0 && errno == ENOENT && create) {
            fd = create_fd(be, id, name, ret_at);
            if (fd < 0 && errno == EEXIST)
                continue; /* another thread made it meanwhile */
        }
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            pthread_mutex_lock(&be->cache.lock);
            shrink(&be->cache, be->cache.open / 2);
            pthread_mutex_unlock(&be->cache.lock);
            continue;
        }
        if (fd < 0)
            return px_status(errno);
        *ret_fd = fd;
        return 0;
    }
    return HF_BE_EIO;
}

int px_file_get(struct hf_be *be, const uint8_t *id, bool create, struct px_file **ret)
{
    struct px_cache *c = &be->cache;
    struct px_file *f = px_file_peek(be, id), *other;
    uint64_t name_at = 0;
    int rc;

    if (f) {
        *ret = f;
        return 0;
    }
    f = calloc(1, sizeof(*f));
    if (!f)
        return HF_BE_ENOMEM;
    rc = open_fd(be, id, create, &f->fd, &name_at);
    if (rc) {
        free(f);
        return rc;
    }
    atomic_store(&f->name_at, name_at);
    memcpy(f->id, id, HF_BE_ID_BYTES);
    f->refs = 1;
    pthread_mutex_lock(&c->lock);
    other = find(c, id);
    if (other) {
        if (atomic_load(&other->name_at) < name_at)
            atomic_store(&other->name_at, name_at);
        *ret = ref(other);
    } else {
        struct px_file **b = &c->buckets[hash(id, HF_BE_ID_BYTES) % PX_FD_BUCKETS];

        f->hash_next = *b;
        *b = f;
        c->open++;
        *ret = f;
        shrink(c, c->max);
    }
    pthread_mutex_unlock(&c->lock);
    if (other)
        file_close(f);
    return 0;
}

void px_file_put(struct hf_be *be, struct px_file *f)
{
    bool last;

    pthread_mutex_lock(&be->cache.lock);
    last = --f->refs == 0 && f->dead;
    if (f->refs == 0 && !f->dead)
        lru_push(&be->cache, f);
    pthread_mutex_unlock(&be->cache.lock);
    if (last)
        file_close(f);
}

void px_file_drop(struct hf_be *be, const uint8_t *id)
{
    struct px_file *f;

    pthread_mutex_lock(&be->cache.lock);
    f = find(&be->cache, id);
    if (f) {
        unhash(&be->cache, f);
        f->dead = true;
        if (f->refs == 0)
            lru_remove(f);
        else
            f = NULL;
    }
    pthread_mutex_unlock(&be->cache.lock);
    if (f)
        file_close(f);
}

void px_files_init(struct hf_be *be, unsigned max)
{
    struct px_cache *c = &be->cache;

    pthread_mutex_init(&c->lock, NULL);
    c->lru.lru_prev = c->lru.lru_next = &c->lru;
    c->max = max;
    for (unsigned i = 0; i < PX_DIRS; i++) {
        pthread_mutex_init(&be->dirs[i].lock, NULL);
        pthread_mutex_init(&be->dirs[i].names, NULL);
        atomic_store(&be->dirs[i].changed, 1);
    }
}

int px_files_fini(struct hf_be *be)
{
    struct px_cache *c = &be->cache;
    int rc = 0;

    for (struct px_file *f = c->lru.lru_next, *next; f != &c->lru; f = next) {
        next = f->lru_next;
        if (atomic_load(&f->dirty) && fdatasync(f->fd))
            rc = HF_BE_EIO;
        file_close(f);
    }
    for (unsigned i = 0; i < PX_DIRS; i++) {
        pthread_mutex_destroy(&be->dirs[i].lock);
        pthread_mutex_destroy(&be->dirs[i].names);
    }
    pthread_mutex_destroy(&c->lock);
    return rc;
}

uint64_t px_dir_changed(struct hf_be *be, unsigned d)
{
    uint64_t n;

    pthread_mutex_lock(&be->dirs[d].names);
    n = atomic_load(&be->dirs[d].changed);
    pthread_mutex_unlock(&be->dirs[d].names);
    return n;
}

int px_dir_sync(struct hf_be *be, unsigned d, uint64_t want)
{
    static const char hex[] = "0123456789abcdef";
    struct px_dir *dir = &be->dirs[d];
    const char name[] = {hex[d >> 4], '/', hex[d & 15], '\0'};
    uint64_t upto;
    int fd, rc = 0;

    pthread_mutex_lock(&dir->lock);
    if (dir->failed) {
        rc = HF_BE_EIO;
    } else if (dir->synced < want) {
        upto = atomic_load(&dir->changed);
        fd = openat(be->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            rc = px_status(errno);
        } else if (fsync(fd)) {
            dir->failed = true; /* what it held is unknown from now on */
            rc = HF_BE_EIO;
        } else {
            dir->synced = upto;
        }
        if (fd >= 0)
            close(fd);
    }
    pthread_mutex_unlock(&dir->lock);
    return rc;
}

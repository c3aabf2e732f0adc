/* SPDX-License-Identifier: Apache-2.0
 *
 * Power loss at any moment. A recorder stands between the wal and its files and notes every step.
 * From the notes, disks are made as a power loss after any number of steps may leave them: all that
 * was synced by then is there, of the rest any subset of sectors. On each such disk the log must
 * open, hold every record that had been acknowledged, in order and with its content, and go on.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_log.h"

#define SHARDS     4
#define SECTOR     512u
#define FILES_MAX  64
#define EVENTS_MAX 20000
#define POS_MAX    4000
#define FDS_MAX    1024

enum kind { CREATE, ALLOCATE, WRITE, SYNC, SYNC_DIR, REMOVE };

struct event {
    enum kind kind;
    unsigned file;
    uint64_t off;
    size_t len;
    uint8_t *data;
    size_t began; /* SYNC, SYNC_DIR: covers the events before this one */
};

struct recorder {
    struct wal_files files;
    pthread_mutex_t lock;
    struct event ev[EVENTS_MAX];
    size_t n;
    char names[FILES_MAX][24];
    unsigned nfiles;
    unsigned fd_file[FDS_MAX];
    size_t acked[SHARDS][POS_MAX]; /* number of events when it was acknowledged; 0: never */
    uint64_t trimmed[SHARDS], ends[SHARDS];
    struct {
        size_t at;
        uint64_t pos[SHARDS];
    } trims[1000];
    size_t ntrims;
};

/* Under r->lock. */
static struct event *note(struct recorder *r, enum kind kind, unsigned file)
{
    struct event *e = &r->ev[r->n++];

    cr_assert_lt(r->n, (size_t)EVENTS_MAX);
    e->kind = kind;
    e->file = file;
    return e;
}

static unsigned file_of(struct recorder *r, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    unsigned i;

    for (i = 0; i < r->nfiles; i++) {
        if (strcmp(r->names[i], name) == 0)
            return i;
    }
    cr_assert_lt(r->nfiles, (unsigned)FILES_MAX);
    snprintf(r->names[i], sizeof(r->names[i]), "%s", name);
    return r->nfiles++;
}

static int r_open(const struct wal_files *w, const char *path, bool create, int *ret_fd)
{
    struct recorder *r = w->ctx;
    int rc;

    pthread_mutex_lock(&r->lock);
    rc = wal_files_posix.open(w, path, create, ret_fd);
    if (rc == 0) {
        cr_assert_lt(*ret_fd, FDS_MAX);
        r->fd_file[*ret_fd] = file_of(r, path);
        if (create)
            note(r, CREATE, r->fd_file[*ret_fd]);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static int r_write(const struct wal_files *w, int fd, uint64_t off, const void *buf, size_t len)
{
    struct recorder *r = w->ctx;
    struct event *e;

    pthread_mutex_lock(&r->lock);
    e = note(r, WRITE, r->fd_file[fd]);
    e->off = off;
    e->len = len;
    e->data = malloc(len);
    cr_assert_not_null(e->data);
    memcpy(e->data, buf, len);
    pthread_mutex_unlock(&r->lock);
    return wal_files_posix.write(w, fd, off, buf, len);
}

/* The real sync is not needed: the images stand for the disk. */
static int sync_noted(struct recorder *r, enum kind kind, unsigned file)
{
    struct event *e;
    size_t began;

    pthread_mutex_lock(&r->lock);
    began = r->n;
    e = note(r, kind, file);
    e->began = began;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static int r_sync(const struct wal_files *w, int fd)
{
    struct recorder *r = w->ctx;

    return sync_noted(r, SYNC, r->fd_file[fd]);
}

static int r_sync_dir(const struct wal_files *w, const char *path)
{
    (void)path;
    return sync_noted(w->ctx, SYNC_DIR, 0);
}

static int r_allocate(const struct wal_files *w, int fd, uint64_t bytes)
{
    struct recorder *r = w->ctx;

    pthread_mutex_lock(&r->lock);
    note(r, ALLOCATE, r->fd_file[fd])->len = bytes;
    pthread_mutex_unlock(&r->lock);
    return wal_files_posix.allocate(w, fd, bytes);
}

static int r_remove(const struct wal_files *w, const char *path)
{
    struct recorder *r = w->ctx;

    pthread_mutex_lock(&r->lock);
    note(r, REMOVE, file_of(r, path));
    pthread_mutex_unlock(&r->lock);
    return wal_files_posix.remove(w, path);
}

static struct recorder *recorder_new(void)
{
    struct recorder *r = calloc(1, sizeof(*r));

    cr_assert_not_null(r);
    pthread_mutex_init(&r->lock, NULL);
    r->files = wal_files_posix;
    r->files.ctx = r;
    r->files.open = r_open;
    r->files.write = r_write;
    r->files.sync = r_sync;
    r->files.sync_dir = r_sync_dir;
    r->files.allocate = r_allocate;
    r->files.remove = r_remove;
    return r;
}

static void recorder_free(struct recorder *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->ev[i].data);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void acked(struct harness *h, unsigned shard, uint64_t pos)
{
    struct recorder *r = h->arg;

    pthread_mutex_lock(&r->lock);
    r->acked[shard][pos] = r->n;
    pthread_mutex_unlock(&r->lock);
}

/* ---- images ---- */

struct image {
    bool there;
    size_t size;
    uint8_t *data;
};

/* Is event i, which concerns `file`, surely on the disk after t events? */
static bool durable(const struct recorder *r, size_t i, size_t t, enum kind by)
{
    for (size_t k = i + 1; k < t; k++) {
        if (r->ev[k].kind == by && (by == SYNC_DIR || r->ev[k].file == r->ev[i].file) &&
            r->ev[k].began > i)
            return true;
    }
    return false;
}

static void apply_write(struct image *f, const struct event *e, bool sure, unsigned odds,
                        uint64_t *seed)
{
    for (size_t at = 0; at < e->len;) {
        size_t n = SECTOR - (size_t)((e->off + at) % SECTOR);

        n = n < e->len - at ? n : e->len - at;
        cr_assert_leq(e->off + at + n, f->size);
        if (sure || rnd(seed) % 8 < odds)
            memcpy(f->data + e->off + at, e->data + at, n);
        at += n;
    }
}

static void make_image(const struct recorder *r, size_t t, const char *dir, size_t file_bytes,
                       uint64_t *seed)
{
    struct image img[FILES_MAX] = {0};
    unsigned odds =
        (unsigned)(rnd(seed) % 9); /* how much of what was not synced is there: 0..8 of 8 */

    for (size_t i = 0; i < t; i++) {
        const struct event *e = &r->ev[i];
        struct image *f = &img[e->file];

        switch (e->kind) {
        case CREATE:
            f->there = durable(r, i, t, SYNC_DIR) || rnd(seed) % 2;
            f->size = 0;
            free(f->data);
            f->data = calloc(1, file_bytes);
            cr_assert_not_null(f->data);
            break;
        case ALLOCATE:
            cr_assert_eq(e->len, file_bytes);
            if (durable(r, i, t, SYNC) || rnd(seed) % 2)
                f->size = e->len;
            else
                f->there = false;
            break;
        case WRITE:
            if (f->size > 0)
                apply_write(f, e, durable(r, i, t, SYNC), odds, seed);
            break;
        case REMOVE:
            if (durable(r, i, t, SYNC_DIR) || rnd(seed) % 2)
                f->there = false;
            break;
        case SYNC:
        case SYNC_DIR:
            break;
        }
    }
    for (unsigned i = 0; i < FILES_MAX; i++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", dir, r->names[i]);
        if (img[i].there)
            file_store(dir, r->names[i], img[i].data, img[i].size);
        else if (i < r->nfiles)
            unlink(path);
        free(img[i].data);
    }
}

struct reader {
    unsigned shard;
    uint64_t next, split; /* from split on, records are of salt 1 */
    size_t max;
    uint64_t bad;
};

static int read_one(void *arg, uint64_t pos, struct hf_slice rec)
{
    struct reader *c = arg;

    if (pos != c->next++ || !record_same(c->shard, pos >= c->split, pos, c->max, rec))
        c->bad = pos;
    return c->bad ? -1 : 0;
}

static void read_all(struct harness *h, uint64_t from, struct reader *c, size_t t)
{
    struct hf_log *l = hf_wal_log(h->w, c->shard);

    c->next = from;
    cr_assert_eq(hf_log_read(l, from, read_one, c), 0, "after %zu events: shard %u position %lu", t,
                 c->shard, (unsigned long)c->bad);
    cr_assert_eq(c->next, hf_log_end(l), "after %zu events: shard %u read %lu..%lu, end is %lu", t,
                 c->shard, (unsigned long)from, (unsigned long)c->next,
                 (unsigned long)hf_log_end(l));
}

/* The newest position acknowledged, and trimmed to, within the first t events. */
static void known_at(const struct recorder *r, size_t t, unsigned shard, uint64_t *ret_acked,
                     uint64_t *ret_trimmed)
{
    *ret_acked = 0;
    for (uint64_t pos = 1; pos < r->ends[shard]; pos++) {
        if (r->acked[shard][pos] && r->acked[shard][pos] <= t)
            *ret_acked = pos;
    }
    *ret_trimmed = 1;
    for (size_t i = 0; i < r->ntrims && r->trims[i].at <= t; i++)
        *ret_trimmed = r->trims[i].pos[shard];
}

static void check_image(const struct recorder *r, size_t t, struct harness *h, size_t max)
{
    uint64_t want, trimmed[SHARDS], end[SHARDS];

    h->salt = 1;
    memset(h->done_pos, 0, sizeof(h->done_pos));
    cr_assert_eq(harness_open(h), 0, "after %zu events: %s", t, h->err);
    for (unsigned s = 0; s < SHARDS; s++) {
        struct reader c = {.shard = s, .split = UINT64_MAX, .max = max};

        known_at(r, t, s, &want, &trimmed[s]);
        end[s] = hf_log_end(hf_wal_log(h->w, s));
        cr_assert_gt(end[s], want, "after %zu events: shard %u ends at %lu", t, s,
                     (unsigned long)end[s]);
        if (trimmed[s] < end[s])
            read_all(h, trimmed[s], &c, t);
    }
    /* It goes on, with other content of the same lengths, over what was left of the last write. */
    for (unsigned i = 0; i < 2 * SHARDS; i++)
        harness_append(h, i % SHARDS, max);
    cr_assert_eq(harness_wait(h), 0);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "second time, after %zu events: %s", t, h->err);
    for (unsigned s = 0; s < SHARDS; s++) {
        struct reader c = {.shard = s, .split = end[s], .max = max};

        cr_assert_eq(hf_log_end(hf_wal_log(h->w, s)), end[s] + 2);
        if (trimmed[s] <= end[s] + 2)
            read_all(h, trimmed[s], &c, t);
    }
    harness_close(h);
}

static void trim_all(struct harness *h, struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    cr_assert_lt(r->ntrims, 1000u);
    r->trims[r->ntrims].at = r->n;
    for (unsigned s = 0; s < SHARDS; s++) {
        uint64_t done = h->done_pos[s];

        if (done > r->trimmed[s] + 5)
            r->trimmed[s] = done - 5;
        if (r->trimmed[s] == 0)
            r->trimmed[s] = 1;
        r->trims[r->ntrims].pos[s] = r->trimmed[s];
    }
    r->ntrims++;
    pthread_mutex_unlock(&r->lock);
    for (unsigned s = 0; s < SHARDS; s++)
        hf_log_trim(hf_wal_log(h->w, s), r->trimmed[s]);
}

/* Bursts of appends on all shards over several files and restarts, all noted. */
static void record_run(struct harness *h, struct recorder *r, size_t max, uint64_t *seed)
{
    h->files = &r->files;
    h->on_done = acked;
    h->arg = r;
    for (unsigned life = 0; life < 3; life++) {
        cr_assert_eq(harness_open(h), 0, "%s", h->err);
        for (unsigned burst = 0; burst < 40; burst++) {
            for (unsigned i = 0; i < 1 + burst % 20; i++)
                harness_append(h, (unsigned)(rnd(seed) % SHARDS), max);
            cr_assert_eq(harness_wait(h), 0);
            if (burst % 5 == 4)
                trim_all(h, r);
        }
        for (unsigned s = 0; s < SHARDS; s++)
            r->ends[s] = hf_log_end(hf_wal_log(h->w, s));
        harness_close(h);
    }
    h->files = NULL;
    h->on_done = NULL;
}

static void run_images(size_t max, unsigned images, uint64_t seed)
{
    struct harness *h = harness_new(SHARDS);
    struct recorder *r = recorder_new();
    struct hf_wal_opts o;
    char *dir = temp_dir_new();

    record_run(h, r, max, &seed);
    cr_assert_geq(r->n, 240u); /* a write and a sync per burst at least */
    o = h->o;
    h->o.dir = dir;
    for (unsigned i = 0; i < images; i++) {
        size_t t = (size_t)(rnd(&seed) % (r->n + 1));
        char path[1024];

        make_image(r, t, dir, (size_t)o.file_bytes, &seed);
        check_image(r, t, h, max);
        /* Files that only this image's second life made. */
        for (unsigned id = 0; id < 2 * FILES_MAX; id++) {
            snprintf(path, sizeof(path), "%s/wal-%08x.log", dir, id);
            unlink(path);
        }
    }
    temp_dir_free(dir);
    recorder_free(r);
    harness_free(h);
}

Test(crash, images_small_records, .timeout = 110)
{
    run_images(1, 350, 1);
}

Test(crash, images_medium_records, .timeout = 110)
{
    run_images(600, 350, 2);
}

Test(crash, images_large_records, .timeout = 110)
{
    run_images(6000, 300, 3);
}

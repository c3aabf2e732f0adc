/* SPDX-License-Identifier: Apache-2.0
 *
 * The wal driver: open and close, appending, reading. See wal_priv.h for the parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "wal_priv.h"

#define FILE_BYTES_DEFAULT    (64ull << 20)
#define FILE_BYTES_MIN        (16ull << 10)
#define FILE_BYTES_MAX        (1ull << 30)
#define MAX_BYTES_DEFAULT     (4ull << 30)
#define RESERVE_BYTES_DEFAULT (128ull << 20)

static struct wal_shard *shard_of(struct hf_log *l)
{
    return hf_container_of(l, struct wal_shard, log);
}

/* ---- the log's operations ---- */

static int wal_append(struct hf_log *l, struct hf_log_append *a)
{
    struct wal_shard *s = shard_of(l);
    struct hf_wal *w = s->w;
    size_t len = 0;

    HF_ASSERT(a->nparts <= HF_ARRAY_LEN(a->parts));
    for (unsigned i = 0; i < a->nparts; i++) {
        if (a->parts[i].len > HF_LOG_RECORD_MAX - len)
            return HF_E_TOOBIG;
        len += a->parts[i].len;
    }
    if (WAL_DATA_OFF + wal_rec_span(8 * (size_t)w->o.shards) + wal_rec_span(len) > w->o.file_bytes)
        return HF_E_TOOBIG;
    a->pos = s->next++;
    a->log = l;
    a->next = NULL;
    if (!w->threads) {
        wal_write_list(w, a);
        return 0;
    }
    pthread_mutex_lock(&w->lock);
    *w->tail = a;
    w->tail = &a->next;
    if (w->writer_idle) {
        w->writer_idle = false;
        pthread_cond_signal(&w->queue_cond);
    }
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static uint64_t wal_end(struct hf_log *l)
{
    return shard_of(l)->next;
}

static void wal_trim(struct hf_log *l, uint64_t upto)
{
    struct wal_shard *s = shard_of(l);
    struct hf_wal *w = s->w;

    (void)hf_fault(w->o.faults, HF_FAULT_LOG_TRIM); /* cannot fail; crash and delay */
    pthread_mutex_lock(&w->lock);
    if (upto > s->trim) {
        s->trim = upto;
        wal_recycle(w);
    }
    pthread_mutex_unlock(&w->lock);
}

static bool wal_may_grow(struct hf_log *l)
{
    struct hf_wal *w = shard_of(l)->w;
    uint64_t now = hf_env_mono_ns(w->env);
    uint64_t free_bytes;
    bool due, yes;

    pthread_mutex_lock(&w->lock);
    due = now - w->fs_free_ns >= HF_NS_PER_SEC;
    if (due)
        w->fs_free_ns = now;
    pthread_mutex_unlock(&w->lock);
    if (due && w->files->space(w->files, w->dir, &free_bytes) != 0)
        free_bytes = 0;
    pthread_mutex_lock(&w->lock);
    if (due)
        w->fs_free = free_bytes;
    yes = !w->dead && wal_room(w) >= w->o.reserve_bytes;
    pthread_mutex_unlock(&w->lock);
    return yes;
}

/* ---- reading ---- */

/* What a reader needs of a file, copied under the lock. The file itself stays: its owner, who
 * reads, has not trimmed it. */
struct read_file {
    int fd;
    uint64_t seq, end_off;
    uint32_t salt;
};

static int read_one(struct hf_wal *w, const struct read_file *f, unsigned shard, uint64_t *from,
                    int (*fn)(void *arg, uint64_t pos, struct hf_slice rec), void *arg)
{
    uint8_t *buf = malloc((size_t)f->end_off);
    uint64_t off = WAL_DATA_OFF;
    struct wal_rec r;
    int rc;

    if (!buf)
        return HF_E_NOMEM;
    rc = hf_fault(w->o.faults, HF_FAULT_LOG_READ);
    if (rc == 0)
        rc = w->files->read(w->files, f->fd, 0, buf, (size_t)f->end_off);
    while (rc == 0 && off < f->end_off) {
        const uint8_t *payload = buf + off + WAL_REC_BYTES;

        if (!wal_rec_decode(buf + off, f->end_off - off, f->seq, f->salt, &r)) {
            rc = HF_E_CORRUPT;
            break;
        }
        off += wal_rec_span(r.len);
        if (r.shard != shard || r.pos < *from)
            continue;
        if (r.pos != *from || !wal_rec_payload_ok(&r, payload)) {
            rc = HF_E_CORRUPT;
            break;
        }
        rc = fn(arg, r.pos, hf_slice(payload, r.len));
        ++*from;
    }
    free(buf);
    return rc;
}

static int wal_read(struct hf_log *l, uint64_t from,
                    int (*fn)(void *arg, uint64_t pos, struct hf_slice rec), void *arg)
{
    struct wal_shard *s = shard_of(l);
    struct hf_wal *w = s->w;
    struct read_file *files;
    size_t n = 0;
    int rc = 0;

    if (from == s->next)
        return 0;
    pthread_mutex_lock(&w->lock);
    files = calloc(w->nfiles + 1u, sizeof(*files));
    HF_LIST_FOREACH(it, &w->used)
    {
        struct wal_file *f = hf_container_of(it, struct wal_file, link);
        struct wal_file *next = hf_container_of(it->next, struct wal_file, link);

        if (n == 0 && from < f->start[s->shard])
            rc = HF_E_NOENT;
        if (!files || (it->next != &w->used && next->start[s->shard] <= from))
            continue;
        files[n++] = (struct read_file){f->fd, f->seq, f->end_off, f->salt};
    }
    pthread_mutex_unlock(&w->lock);
    if (!files)
        return HF_E_NOMEM;
    if (from > s->next || from == 0)
        rc = HF_E_NOENT;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_one(w, &files[i], s->shard, &from, fn, arg);
    free(files);
    return rc;
}

static const struct hf_log_ops wal_ops = {
    .append = wal_append,
    .read = wal_read,
    .end = wal_end,
    .trim = wal_trim,
    .may_grow = wal_may_grow,
};

/* ---- open, close ---- */

static int sync_parent(const struct wal_files *files, char *path)
{
    char *slash = strrchr(path, '/');
    int rc;

    if (!slash)
        return files->sync_dir(files, ".");
    if (slash == path)
        return files->sync_dir(files, "/");
    *slash = 0;
    rc = files->sync_dir(files, path);
    *slash = '/';
    return rc;
}

/* Creates path and what is missing above it. */
static int make_dirs(const struct wal_files *files, char *path)
{
    char *slash = strrchr(path, '/');
    int rc;

    if (mkdir(path, 0700) == 0)
        return sync_parent(files, path);
    if (errno == EEXIST) /* perhaps by a process that was killed before it could sync */
        return sync_parent(files, path);
    if (errno != ENOENT || !slash || slash == path)
        return hf_err_from_errno(errno);
    *slash = 0;
    rc = make_dirs(files, path);
    *slash = '/';
    if (rc)
        return rc;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return hf_err_from_errno(errno);
    return sync_parent(files, path);
}

static int lock_dir(struct hf_wal *w)
{
    char path[WAL_PATH_BYTES + 32];

    wal_path(w, "owner.lock", path);
    w->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (w->lock_fd < 0)
        return hf_err_from_errno(errno);
    if (flock(w->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? HF_E_BUSY : hf_err_from_errno(errno);
    return 0;
}

static void free_list(struct hf_wal *w, struct hf_list *head)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(head)))
        wal_file_free(w, hf_container_of(n, struct wal_file, link));
}

static void wal_free(struct hf_wal *w)
{
    free_list(w, &w->used);
    free_list(w, &w->spares);
    free_list(w, &w->garbage);
    if (w->lock_fd >= 0)
        close(w->lock_fd);
    pthread_cond_destroy(&w->queue_cond);
    pthread_cond_destroy(&w->prep_cond);
    pthread_cond_destroy(&w->spare_cond);
    pthread_mutex_destroy(&w->lock);
    hf_buf_fini(&w->buf);
    free(w->pos);
    free(w->shards);
    free(w);
}

static int wal_new(struct hf_env *env, const struct hf_wal_opts *o, const struct wal_files *files,
                   struct hf_wal **ret)
{
    struct hf_wal *w = calloc(1, sizeof(*w));

    if (!w)
        return HF_E_NOMEM;
    w->env = env;
    w->o = *o;
    w->o.dir = w->dir;
    memcpy(w->dir, o->dir, strlen(o->dir));
    w->files = files;
    w->lock_fd = -1;
    w->threads = !hf_env_is_sim(env);
    w->tail = &w->head;
    hf_list_init(&w->used);
    hf_list_init(&w->spares);
    hf_list_init(&w->garbage);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->queue_cond, NULL);
    pthread_cond_init(&w->prep_cond, NULL);
    pthread_cond_init(&w->spare_cond, NULL);
    w->pos = calloc(o->shards, sizeof(*w->pos));
    w->shards = calloc(o->shards, sizeof(*w->shards));
    if (!w->pos || !w->shards) {
        wal_free(w);
        return HF_E_NOMEM;
    }
    for (unsigned i = 0; i < o->shards; i++)
        w->shards[i] = (struct wal_shard){.log.ops = &wal_ops, .w = w, .shard = i};
    *ret = w;
    return 0;
}

static int start_threads(struct hf_wal *w)
{
    if (!w->threads)
        return 0;
    if (pthread_create(&w->writer, NULL, wal_writer_main, w) != 0)
        return HF_E_NOMEM;
    if (pthread_create(&w->prep, NULL, wal_prep_main, w) == 0)
        return 0;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->queue_cond);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->writer, NULL);
    return HF_E_NOMEM;
}

/* What scanning left to do before appends may come. */
static int begin(struct hf_wal *w)
{
    int rc = w->files->space(w->files, w->dir, &w->fs_free);

    w->fs_free_ns = hf_env_mono_ns(w->env);
    if (rc == 0 && !w->cur)
        rc = wal_roll(w);
    else if (rc == 0 && w->cur->shards != w->o.shards)
        rc = wal_reshard(w);
    return rc ? rc : start_threads(w);
}

int wal_open_files(struct hf_env *env, const struct hf_wal_opts *o, const struct wal_files *files,
                   struct hf_wal **ret, char *err, size_t err_bytes)
{
    struct hf_wal_opts opts = *o;
    struct hf_wal *w = NULL;
    int rc;

    opts.file_bytes = opts.file_bytes ? opts.file_bytes : FILE_BYTES_DEFAULT;
    opts.max_bytes = opts.max_bytes ? opts.max_bytes : MAX_BYTES_DEFAULT;
    opts.reserve_bytes = opts.reserve_bytes ? opts.reserve_bytes : RESERVE_BYTES_DEFAULT;
    if (err && err_bytes)
        err[0] = 0;
    if (!o->dir || o->dir[0] == 0 || strlen(o->dir) >= WAL_PATH_BYTES || o->shards == 0 ||
        o->shards > WAL_SHARDS_MAX || opts.file_bytes < FILE_BYTES_MIN ||
        opts.file_bytes > FILE_BYTES_MAX || opts.max_bytes < 2 * opts.file_bytes)
        return HF_E_INVAL;
    rc = wal_new(env, &opts, files, &w);
    if (rc)
        return rc;
    rc = hf_fault(w->o.faults, HF_FAULT_LOG_OPEN);
    if (rc == 0)
        rc = make_dirs(files, w->dir);
    if (rc == 0)
        rc = lock_dir(w);
    if (rc && err && err_bytes)
        (void)snprintf(err, err_bytes, "%s: %s", w->dir,
                       rc == HF_E_BUSY ? "in use by another process" : hf_err_text(rc));
    if (rc == 0) /* names that a killed process left are not durable yet */
        rc = files->sync_dir(files, w->dir);
    if (rc == 0)
        rc = wal_scan(w, err, err_bytes);
    if (rc == 0)
        rc = begin(w);
    if (rc) {
        if (err && err_bytes && err[0] == 0)
            (void)snprintf(err, err_bytes, "%s: %s", w->dir, hf_err_text(rc));
        wal_free(w);
        return rc;
    }
    *ret = w;
    return 0;
}

int hf_wal_open(struct hf_env *env, const struct hf_wal_opts *o, struct hf_wal **ret, char *err,
                size_t err_bytes)
{
    return wal_open_files(env, o, &wal_files_posix, ret, err, err_bytes);
}

void hf_wal_close(struct hf_wal *w)
{
    if (!w)
        return;
    if (w->threads) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->queue_cond);
        pthread_cond_signal(&w->prep_cond);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->writer, NULL);
        pthread_join(w->prep, NULL);
    }
    wal_free(w);
}

struct hf_log *hf_wal_log(struct hf_wal *w, unsigned shard)
{
    HF_ASSERT(shard < w->o.shards);
    return &w->shards[shard].log;
}

void hf_wal_stats(struct hf_wal *w, struct hf_wal_stats *ret)
{
    pthread_mutex_lock(&w->lock);
    *ret = w->st;
    ret->files = w->nfiles;
    ret->used_bytes = 0;
    HF_LIST_FOREACH(it, &w->used)
    ret->used_bytes += hf_container_of(it, struct wal_file, link)->end_off;
    pthread_mutex_unlock(&w->lock);
}

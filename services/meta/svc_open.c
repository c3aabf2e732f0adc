/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and opening the shards of a metadata service. Blocking, before any loop runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/dirs.h"
#include "holdfast/err.h"
#include "svc_priv.h"

static int make_dir(const char *path, char *err, size_t err_bytes)
{
    int rc = hf_dir_make(path);

    if (rc)
        (void)snprintf(err, err_bytes, "cannot make directory %s: %s", path, hf_err_text(rc));
    return rc;
}

static int open_wal(struct hf_metasvc *s, char *err, size_t err_bytes)
{
    struct hf_buf path = {0};
    int rc = hf_buf_printf(&path, "%s/wal", s->opts.dir);

    if (rc == 0)
        rc = hf_wal_open(s->env,
                         &(struct hf_wal_opts){.dir = (const char *)path.data,
                                               .shards = s->nshards,
                                               .file_bytes = s->opts.wal_file_bytes,
                                               .max_bytes = s->opts.wal_max_bytes,
                                               .reserve_bytes = s->opts.wal_reserve_bytes,
                                               .faults = s->faults},
                         &s->wal, err, err_bytes);
    hf_buf_fini(&path);
    return rc;
}

static int open_shard(struct hf_metasvc *s, uint32_t id, const struct hf_meta_format *format,
                      char *err, size_t err_bytes)
{
    struct hf_buf path = {0};
    int rc = hf_buf_printf(&path, "%s/shards/%05" PRIu32, s->opts.dir, id);

    if (rc == 0 && !format && access((const char *)path.data, F_OK) != 0) {
        (void)snprintf(err, err_bytes,
                       "shard %" PRIu32 ": %s is missing; restore it, it is not made anew", id,
                       (const char *)path.data);
        rc = HF_E_NOENT;
    }
    if (rc == 0)
        rc = shard_open(
            &(struct shard_conf){
                .loop = s->threads[id % s->nthreads].loop,
                .env = s->env,
                .log = s->log,
                .faults = s->faults,
                .metrics = &s->metrics,
                .wal = hf_wal_log(s->wal, id),
                .dir = (const char *)path.data,
                .id = id,
                .inline_max = s->map->inline_max,
                .checkpoint_changes = s->opts.checkpoint_changes,
                .checkpoint_idle_ns = s->opts.checkpoint_idle_ms * HF_NS_PER_MS,
                .map_bytes = s->opts.map_bytes,
                .reserve_bytes = s->opts.store_reserve_bytes,
                .noatime = s->opts.noatime,
                .fatal = s->opts.fatal,
                .fatal_arg = s->opts.arg,
            },
            format, &s->shards[id], err, err_bytes);
    hf_buf_fini(&path);
    return rc;
}

/* True if nothing has been made here yet: only then may missing shards be made. The marker is
 * written when every shard is there, so that a start that was killed in the middle is begun again,
 * and a shard that got lost later is never replaced by an empty one. */
static bool is_new(const struct hf_metasvc *s, struct hf_buf *marker)
{
    return hf_buf_printf(marker, "%s/shards/complete", s->opts.dir) == 0 &&
           access((const char *)marker->data, F_OK) != 0;
}

/* Its name must be durable too: what a lost marker protects would be unprotected. */
static int write_marker(const char *path, const char *dir)
{
    static const char text[] = "every shard of this file system has been made\n";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = 0;

    if (fd < 0)
        return hf_err_from_errno(errno);
    if (write(fd, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1 || fsync(fd))
        rc = HF_E_IO;
    if (close(fd))
        rc = HF_E_IO;
    return rc ? rc : hf_dir_sync(dir);
}

static bool same_map(const Hf__MapGetRep *a, const Hf__MapGetRep *b)
{
    if (a->n_shards != b->n_shards || a->n_pools != b->n_pools || a->n_segments != b->n_segments)
        return false;
    for (size_t i = 0; i < a->n_shards; i++)
        if (a->shards[i]->shard != b->shards[i]->shard ||
            strcmp(a->shards[i]->url, b->shards[i]->url) != 0)
            return false;
    for (size_t i = 0; i < a->n_segments; i++)
        if (a->segments[i]->id != b->segments[i]->id ||
            a->segments[i]->pool != b->segments[i]->pool ||
            strcmp(a->segments[i]->url, b->segments[i]->url) != 0)
            return false;
    for (size_t i = 0; i < a->n_pools; i++)
        if (a->pools[i]->id != b->pools[i]->id ||
            strcmp(a->pools[i]->name, b->pools[i]->name) != 0 ||
            a->pools[i]->width != b->pools[i]->width ||
            strcmp(a->pools[i]->backend, b->pools[i]->backend) != 0)
            return false;
    return true;
}

static int put_map(struct shard *s, void *map)
{
    return hf_meta_map_put(s->meta, map);
}

/* On shard 0's thread, before the first call. Goes the way of every change. */
static void store_map(struct hf_task *t)
{
    struct hf_metasvc *s = hf_container_of(t, struct hf_metasvc, store_map);

    (void)shard_change(s->shards[0], put_map, s->map);
}

/* A segment that the stored map knows may hold data: it must be there, in the same pool. */
static int check_segments(const Hf__MapGetRep *stored, const Hf__MapGetRep *now, char *err,
                          size_t err_bytes)
{
    for (size_t i = 0; i < stored->n_segments; i++) {
        bool found = false;

        for (size_t k = 0; k < now->n_segments; k++)
            found |= now->segments[k]->id == stored->segments[i]->id &&
                     now->segments[k]->pool == stored->segments[i]->pool;
        if (!found) {
            (void)snprintf(
                err, err_bytes,
                "the file system keeps data on segment %" PRIu32 " of pool %" PRIu32
                ", which the configuration no longer has; pools and segments can only be added",
                stored->segments[i]->id, stored->segments[i]->pool);
            return HF_E_CONF;
        }
    }
    return 0;
}

/* Where shards and segments answer can change from start to start; the stored map must say it
 * before the first client asks. */
static int refresh_map(struct hf_metasvc *s, char *err, size_t err_bytes)
{
    struct hf_arena a;
    Hf__MapGetRep *stored;
    int rc;

    hf_arena_init(&a, 0);
    rc = hf_meta_map(s->shards[0]->meta, &a, &stored);
    if (rc) {
        (void)snprintf(err, err_bytes, "cannot read the cluster map: %s", hf_err_text(rc));
    } else if (stored->shard_count != s->nshards) {
        (void)snprintf(err, err_bytes,
                       "the file system has %" PRIu32
                       " shards, the configuration says %u; it cannot change",
                       stored->shard_count, s->nshards);
        rc = HF_E_CONF;
    } else {
        rc = check_segments(stored, s->map, err, err_bytes);
        if (rc == 0 && !same_map(stored, s->map)) {
            s->store_map.fn = store_map;
            hf_loop_post(s->threads[0].loop, &s->store_map);
        }
    }
    hf_arena_fini(&a);
    return rc;
}

/* A store's transaction belongs to the thread that began it: a checkpoint ends ours, and the
 * shard's loop begins its own. */
static int hand_over(struct hf_metasvc *s, char *err, size_t err_bytes)
{
    for (uint32_t id = 0; id < s->nshards; id++) {
        int rc = hf_store_checkpoint(s->shards[id]->store, s->shards[id]->last_pos);

        if (rc) {
            (void)snprintf(err, err_bytes, "shard %" PRIu32 ": cannot commit: %s", id,
                           hf_err_text(rc));
            return rc;
        }
    }
    return 0;
}

/* The key of the cookie hash is one per file system. Shard 0 is made first; should that start have
 * been killed, this one goes on with the identity that shard 0 has stored. */
static int cookie_key(struct hf_metasvc *s, uint8_t key[16])
{
    const ProtobufCBinaryData *from = &s->map->handle_key;
    struct hf_arena a;
    Hf__MapGetRep *stored;
    int rc = 0;

    hf_arena_init(&a, 0);
    if (s->shards[0]) {
        rc = hf_meta_map(s->shards[0]->meta, &a, &stored);
        from = &stored->handle_key;
    }
    if (rc == 0 && from->len != 16)
        rc = HF_E_INVAL;
    for (size_t i = 0; i < 16 && rc == 0; i++)
        key[i] = from->data[i] ^ 0x5c;
    hf_arena_fini(&a);
    return rc;
}

static int open_all(struct hf_metasvc *s, bool fresh, char *err, size_t err_bytes)
{
    struct hf_meta_format format = {.now_ns = hf_env_wall_ns(s->env), .root_gen = s->map->root_gen};
    int rc = 0;

    for (uint32_t id = 0; id < s->nshards && rc == 0; id++) {
        format.shard = id;
        format.map = id == 0 ? s->map : NULL;
        rc = fresh ? cookie_key(s, format.cookie_key) : 0;
        if (rc == 0)
            rc = open_shard(s, id, fresh ? &format : NULL, err, err_bytes);
    }
    for (uint32_t id = 0; id < s->nshards && rc == 0; id++)
        rc = hf_meta_set_map(s->shards[id]->meta, s->map);
    return rc;
}

/* shards/ is made before the log: a log without it belongs to shards that got lost. */
static int no_lost_shards(const struct hf_metasvc *s, const char *shards, char *err,
                          size_t err_bytes)
{
    struct hf_buf wal = {0};
    int rc = hf_buf_printf(&wal, "%s/wal", s->opts.dir);

    if (rc == 0 && access(shards, F_OK) != 0 && access((const char *)wal.data, F_OK) == 0) {
        (void)snprintf(err, err_bytes, "%s is missing; restore it, it is not made anew", shards);
        rc = HF_E_NOENT;
    }
    hf_buf_fini(&wal);
    return rc;
}

int svc_open_shards(struct hf_metasvc *s, char *err, size_t err_bytes)
{
    struct hf_buf dir = {0}, marker = {0};
    bool fresh;
    int rc = hf_buf_printf(&dir, "%s/shards", s->opts.dir);

    fresh = is_new(s, &marker);
    if (rc == 0)
        rc = no_lost_shards(s, (const char *)dir.data, err, err_bytes);
    if (rc == 0)
        rc = make_dir(s->opts.dir, err, err_bytes);
    if (rc == 0)
        rc = make_dir((const char *)dir.data, err, err_bytes);
    if (rc == 0)
        rc = open_wal(s, err, err_bytes);
    if (rc == 0)
        rc = open_all(s, fresh, err, err_bytes);
    if (rc == 0 && fresh)
        rc = hf_fault(s->faults, HF_FAULT_SHARD_MADE);
    if (rc == 0 && fresh &&
        (rc = write_marker((const char *)marker.data, (const char *)dir.data)) != 0)
        (void)snprintf(err, err_bytes, "cannot write %s: %s", (const char *)marker.data,
                       hf_err_text(rc));
    if (rc == 0)
        rc = refresh_map(s, err, err_bytes);
    if (rc == 0)
        rc = hand_over(s, err, err_bytes);
    hf_buf_fini(&dir);
    hf_buf_fini(&marker);
    return rc;
}

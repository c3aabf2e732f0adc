/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting and ending.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs_priv.h"

#define CLOSE_MS 3000u

static void set_defaults(struct hf_fs_opts *o)
{
    if (o->threads == 0)
        o->threads = 1;
    if (o->timeout_ms == 0)
        o->timeout_ms = 30000;
    if (o->dirty_max_bytes == 0)
        o->dirty_max_bytes = 64u << 20;
    if (o->file_dirty_bytes == 0)
        o->file_dirty_bytes = 16u << 20;
    if (o->readahead_bytes == 0)
        o->readahead_bytes = 8u << 20;
    if (o->readahead_max == 0)
        o->readahead_max = 128u << 20;
    if (o->writeback_ms == 0)
        o->writeback_ms = 1000;
    if (o->max_calls == 0)
        o->max_calls = 65536;
    if (!o->name)
        o->name = program_invocation_short_name;
}

/* A program built with an older header knows fewer fields. */
static int opts_take(const struct hf_fs_opts *o, struct hf_fs_opts *ret)
{
    struct hf_fs_opts all = {0};

    if (!o || o->struct_size < offsetof(struct hf_fs_opts, name))
        return HF_E_INVAL;
    memcpy(&all, o, o->struct_size < sizeof(all) ? o->struct_size : sizeof(all));
    if (!all.url || !all.url[0] || all.threads > ENGINES_MAX)
        return HF_E_INVAL;
    set_defaults(&all);
    *ret = all;
    return 0;
}

static struct timespec in_ms(uint64_t ms)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

/* Waits until *count, guarded by the lock, is the number of engines. */
static int wait_engines(struct hf_fs *fs, const unsigned *count, uint64_t ms)
{
    struct timespec until = in_ms(ms);
    int rc = 0;

    pthread_mutex_lock(&fs->lock);
    while (*count < fs->nengines && rc == 0)
        rc = pthread_cond_timedwait(&fs->changed, &fs->lock, &until);
    rc = *count < fs->nengines ? HF_E_TIMEDOUT : 0;
    pthread_mutex_unlock(&fs->lock);
    return rc;
}

static void fs_free(struct hf_fs *fs)
{
    for (unsigned i = 0; i < fs->nengines; i++)
        if (fs->engines[i])
            hf_loop_join(fs->engines[i]->loop);
    for (unsigned i = 0; i < fs->nengines; i++)
        engine_free(fs->engines[i]);
    sizes_fini(&fs->sizes);
    pthread_cond_destroy(&fs->changed);
    pthread_mutex_destroy(&fs->lock);
    if (fs->own_env)
        hf_env_free(fs->env);
    free(fs->zeros);
    free(fs);
}

static int start(struct hf_fs *fs)
{
    int rc = 0;

    fs->zeros = calloc(1, HF_CLIENT_IO_MAX);
    if (!fs->zeros)
        return HF_E_NOMEM;
    if (!fs->env) {
        rc = hf_env_real_new(&fs->env);
        fs->own_env = rc == 0;
    }
    for (unsigned i = 0; i < fs->nengines && rc == 0; i++)
        rc = engine_new(fs, i, &fs->engines[i]);
    for (unsigned i = 0; i < fs->nengines && rc == 0; i++)
        rc = hf_loop_start(fs->engines[i]->loop);
    return rc ? rc : wait_engines(fs, &fs->mapped, fs->opts.timeout_ms);
}

int hf_fs_open(const struct hf_fs_opts *o, struct hf_fs **ret)
{
    struct hf_fs_opts opts;
    pthread_condattr_t ca;
    struct hf_fs *fs;
    int rc = opts_take(o, &opts);

    if (rc)
        return -hf_err_to_errno(rc);
    fs = calloc(1, sizeof(*fs));
    if (!fs)
        return -ENOMEM;
    fs->opts = opts;
    fs->env = opts.env;
    fs->nengines = opts.threads;
    sizes_init(&fs->sizes);
    pthread_mutex_init(&fs->lock, NULL);
    pthread_condattr_init(&ca);
    pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
    pthread_cond_init(&fs->changed, &ca);
    pthread_condattr_destroy(&ca);
    rc = start(fs);
    if (rc) {
        fs_free(fs);
        return -hf_err_to_errno(rc);
    }
    fs->opts.url = fs->opts.name = NULL;
    *ret = fs;
    return 0;
}

int hf_fs_close(struct hf_fs *fs)
{
    int rc;

    if (!fs)
        return 0;
    for (unsigned i = 0; i < fs->nengines; i++)
        if (engine_here(fs->engines[i]))
            return -EDEADLK;
    atomic_store(&fs->closing, true);
    for (unsigned i = 0; i < fs->nengines; i++)
        hf_loop_post(fs->engines[i]->loop, &fs->engines[i]->drain_task);
    /* A write and a commit, each within its time, and the ends of sessions. */
    rc = wait_engines(fs, &fs->drained, 2 * fs->opts.timeout_ms + CLOSE_MS);
    pthread_mutex_lock(&fs->lock);
    if (fs->close_err)
        rc = fs->close_err;
    pthread_mutex_unlock(&fs->lock);
    fs_free(fs);
    return -hf_err_to_errno(rc);
}

struct hf_handle hf_root(struct hf_fs *fs)
{
    return fs->root;
}

unsigned hf_fs_nloops(const struct hf_fs *fs)
{
    return fs->nengines;
}

struct hf_loop *hf_fs_loop(struct hf_fs *fs, unsigned i)
{
    HF_ASSERT(i < fs->nengines);
    return fs->engines[i]->loop;
}

uint64_t hf_fs_in_flight(const struct hf_fs *fs)
{
    return atomic_load_explicit(&fs->in_flight, memory_order_relaxed);
}

void hf_fs_stats(struct hf_fs *fs, struct hf_fs_stats *ret)
{
    struct hf_fs_stats st = {
        .struct_size = sizeof(st),
        .calls = atomic_load(&fs->calls),
        .calls_in_flight = atomic_load(&fs->in_flight),
        .open_files = atomic_load(&fs->open_files),
        .write_errors = atomic_load(&fs->write_errors),
        .read_bytes = atomic_load(&fs->read_bytes),
        .write_bytes = atomic_load(&fs->write_bytes),
        .cache_hits = atomic_load(&fs->cache_hits),
    };
    size_t bytes = ret->struct_size < sizeof(st) ? ret->struct_size : sizeof(st);

    for (unsigned i = 0; i < fs->nengines; i++) {
        st.dirty_bytes += atomic_load(&fs->engines[i]->mem);
        st.readahead_bytes += atomic_load(&fs->engines[i]->ra_bytes);
    }
    st.struct_size = ret->struct_size;
    memcpy(ret, &st, bytes);
}

const char *hf_strerror(int err)
{
    return hf_err_text(hf_err_from_errno(err < 0 ? -err : err));
}

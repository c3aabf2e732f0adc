/* SPDX-License-Identifier: Apache-2.0
 *
 * Life of a mount: connect, mount, serve; unmount while still serving (the kernel writes back and
 * closes what is open), then write what is buffered and disconnect.
 *
 * Locks of flock(2) and fcntl(2) are not implemented here on purpose: the kernel then keeps them
 * among the programs of this mount.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuse_priv.h"
#include "holdfast/err.h"

#define BACKGROUND_MAX 256 /* reads ahead and asynchronous requests that the kernel keeps going */
#define READAHEAD      (4u << 20)
#define INIT_SEC       10
#define UNMOUNT_SEC    10

static void op_init(void *user, struct fuse_conn_info *conn)
{
    static const unsigned wanted =
        FUSE_CAP_ASYNC_READ | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_EXPORT_SUPPORT |
        FUSE_CAP_DONT_MASK | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS |
        FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
        FUSE_CAP_POSIX_ACL | FUSE_CAP_HANDLE_KILLPRIV;
    struct hf_fusesvc *s = user;

    conn->want = conn->capable & wanted;
    conn->max_write = FUSE_IO_MAX;
    conn->max_read = FUSE_IO_MAX; /* as the mount option says */
    conn->max_readahead = conn->max_readahead < READAHEAD ? conn->max_readahead : READAHEAD;
    conn->max_background = BACKGROUND_MAX;
    conn->congestion_threshold = BACKGROUND_MAX / 4 * 3;
    conn->time_gran = 1;
    pthread_mutex_lock(&s->lock);
    s->inited = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

const struct fuse_lowlevel_ops fuse_ops = {.init = op_init,
#define X(name, args) .name = op_##name,
                                           OPS(X)
#undef X
};

/* ---- up ---- */

static int fail(char *err, size_t err_bytes, const char *what, int rc)
{
    (void)snprintf(err, err_bytes, "%s: %s", what, hf_err_text(rc));
    return rc;
}

static int connect_fs(struct hf_fusesvc *s, char *err, size_t err_bytes)
{
    const struct hf_fusesvc_opts *o = &s->opts;
    struct hf_user root = {0};
    struct hf_attr a;
    int rc = hf_fs_open(
        &(struct hf_fs_opts){
            .struct_size = sizeof(struct hf_fs_opts),
            .url = o->meta_url,
            .name = "fuse",
            .threads = o->threads,
            .timeout_ms = o->timeout_ms,
            .dirty_max_bytes = o->dirty_max_bytes,
            .readahead_max = o->readahead_max_bytes,
            .insecure = o->insecure,
            .env = o->env,
        },
        &s->fs);

    if (rc)
        return fail(err, err_bytes, o->meta_url, hf_err_from_errno(-rc));
    s->root = hf_root(s->fs);
    if (!o->subdir || strcmp(o->subdir, "/") == 0)
        return 0;
    rc = hf_path_lookup(s->fs, &root, o->subdir, true, &a);
    if (rc == 0 && !S_ISDIR(a.mode))
        rc = -ENOTDIR;
    if (rc)
        return fail(err, err_bytes, o->subdir, hf_err_from_errno(-rc));
    s->root = a.handle;
    return 0;
}

static int session_new(struct hf_fusesvc *s)
{
    bool root = geteuid() == 0; /* others may not say it, and libfuse's default is the other */
    char options[256];
    char program[] = "holdfast-fuse", dash_o[] = "-o";
    char *argv[] = {program, dash_o, options};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);

    (void)snprintf(options, sizeof(options),
                   "fsname=holdfast,subtype=holdfast,default_permissions,max_read=%u%s%s%s",
                   FUSE_IO_MAX, root ? ",suid,dev" : "", s->opts.allow_other ? ",allow_other" : "",
                   s->opts.read_only ? ",ro" : "");
    s->session = fuse_session_new(&args, &fuse_ops, sizeof(fuse_ops), s);
    fuse_opt_free_args(&args);
    return s->session ? 0 : HF_E_NOMEM;
}

static struct timespec in_seconds(int sec)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += sec;
    return t;
}

static int wait_inited(struct hf_fusesvc *s)
{
    struct timespec until = in_seconds(INIT_SEC);
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    while (!s->inited && rc == 0 && atomic_load(&s->running))
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    rc = s->inited && atomic_load(&s->running) ? 0 : HF_E_TIMEDOUT;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int start(struct hf_fusesvc *s, char *err, size_t err_bytes)
{
    const char *mp = s->opts.mountpoint;
    struct stat st;
    int rc;

    if (stat(mp, &st) || !S_ISDIR(st.st_mode))
        return fail(err, err_bytes, mp, HF_E_NOTDIR);
    rc = connect_fs(s, err, err_bytes);
    if (rc)
        return rc;
    if (session_new(s) || fuse_session_mount(s->session, mp)) {
        (void)snprintf(err, err_bytes,
                       "%s: cannot be mounted; is /dev/fuse there, and fusermount3 for others than "
                       "root?",
                       mp);
        return HF_E_PERM;
    }
    s->mounted = true;
    rc = channels_start(s);
    if (rc == 0)
        rc = wait_inited(s);
    return rc ? fail(err, err_bytes, "the kernel does not ask", rc) : 0;
}

int hf_fusesvc_new(const struct hf_fusesvc_opts *o, struct hf_fusesvc **ret, char *err,
                   size_t err_bytes)
{
    struct hf_fusesvc *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return fail(err, err_bytes, "mount", HF_E_NOMEM);
    s->opts = *o;
    s->attr_s = (double)o->attr_timeout_ms / 1000;
    s->entry_s = (double)o->entry_timeout_ms / 1000;
    s->negative_s = (double)o->negative_timeout_ms / 1000;
    s->selinux = access("/sys/fs/selinux/enforce", F_OK) == 0;
    s->attr_ns = o->attr_timeout_ms * HF_NS_PER_MS;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    rc = start(s, err, err_bytes);
    if (rc) {
        hf_fusesvc_free(s);
        return rc;
    }
    hf_log(o->log, HF_INFO, "fuse", "mounted on %s", o->mountpoint);
    *ret = s;
    return 0;
}

/* ---- down ---- */

/* Engines still serve: unmounting makes the kernel write back and close. */
static void unmount(struct hf_fusesvc *s)
{
    struct timespec until = in_seconds(UNMOUNT_SEC);
    int rc = 0;

    if (atomic_load(&s->running) == 0)
        return; /* somebody did */
    atomic_store(&s->ending, true);
    if (umount2(s->opts.mountpoint, 0)) {
        if (errno == EBUSY)
            hf_log(s->opts.log, HF_WARN, "fuse", "%s is in use; files that are open there end now",
                   s->opts.mountpoint);
        if (umount2(s->opts.mountpoint, MNT_DETACH) || errno == EBUSY)
            return;
    }
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->running) && rc == 0)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    pthread_mutex_unlock(&s->lock);
}

void hf_fusesvc_free(struct hf_fusesvc *s)
{
    int rc;

    if (!s)
        return;
    if (s->channels)
        unmount(s);
    channels_stop(s);
    if (s->fs) {
        rc = hf_fs_close(s->fs);
        if (rc)
            hf_log(s->opts.log, HF_ERROR, "fuse", "buffered data was lost: %s", hf_strerror(rc));
    }
    if (s->mounted)
        fuse_session_unmount(s->session);
    if (s->session)
        fuse_session_destroy(s->session);
    nodes_fini(s);
    free(s->channels);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- figures ---- */

bool hf_fusesvc_serving(const struct hf_fusesvc *s)
{
    return atomic_load(&s->running) > 0;
}

void hf_fusesvc_counters(const struct hf_fusesvc *s,
                         void (*fn)(void *arg, const char *name, uint64_t value), void *arg)
{
    struct hf_fs_stats st = {.struct_size = sizeof(st)};

    hf_fs_stats(s->fs, &st);
    fn(arg, "holdfast_fuse_calls_total", st.calls);
    fn(arg, "holdfast_fuse_calls", st.calls_in_flight);
    fn(arg, "holdfast_fuse_open_files", st.open_files);
    fn(arg, "holdfast_fuse_dirty_bytes", st.dirty_bytes);
    fn(arg, "holdfast_fuse_readahead_bytes", st.readahead_bytes);
    fn(arg, "holdfast_fuse_read_bytes_total", st.read_bytes);
    fn(arg, "holdfast_fuse_write_bytes_total", st.write_bytes);
    fn(arg, "holdfast_fuse_write_errors_total", st.write_errors);
    fn(arg, "holdfast_fuse_cache_hits_total", st.cache_hits);
}

void hf_fusesvc_limits(const struct hf_fusesvc *s,
                       void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                       void *arg)
{
    struct hf_fs_stats st = {.struct_size = sizeof(st)};

    hf_fs_stats(s->fs, &st);
    fn(arg, "dirty bytes", st.dirty_bytes, s->opts.dirty_max_bytes);
    fn(arg, "read ahead bytes", st.readahead_bytes, s->opts.readahead_max_bytes);
}

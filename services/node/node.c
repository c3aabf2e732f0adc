/* SPDX-License-Identifier: Apache-2.0
 *
 * Life of a node: segments first (shards need them to free chunks), then shards, then gateways,
 * then the admin socket; down in the opposite order.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "node_priv.h"

static const char usage[] =
    "Usage: holdfast-node [--config FILE] [flags]\n"
    "Runs a Holdfast file system on this machine: metadata shards, segment server and NFS gateway "
    "in one\n"
    "process. Everything is kept below --node-dir, which is made if missing.\n\n"
    "      --fsck          check the file system in --node-dir (it must not be running) and exit\n"
    "      --json          with --fsck: print JSON\n"
    "      --version       print the version and exit\n"
    "\n"
    "Every key is also a flag and an environment variable: nfs: {listen: A} = --nfs-listen A =\n"
    "HOLDFAST_NFS_LISTEN=A. Flags win over environment, environment over file.\n\n";

/* ---- command line ---- */

/* Takes our own words out of argv; what is left is for the configuration. */
static int own_flags(struct hf_node *n, int argc, char **argv, char **rest, struct hf_buf *out)
{
    int count = 0;

    for (int i = 0; i < argc; i++) {
        if (i > 0 && strcmp(argv[i], "--fsck") == 0) {
            n->fsck = true;
        } else if (i > 0 && strcmp(argv[i], "--json") == 0) {
            n->json = true;
        } else if (i > 0 && strcmp(argv[i], "--version") == 0) {
            (void)hf_buf_printf(out, "holdfast-node %s\n", HF_VERSION);
            return HF_E_CANCELED;
        } else {
            rest[count++] = argv[i];
        }
    }
    rest[count] = NULL;
    return count;
}

static int load_conf(struct hf_node *n, int argc, char **argv, char *const *envp,
                     struct hf_buf *out)
{
    char **rest = calloc((size_t)argc + 1, sizeof(char *));
    char err[1024];
    int count, next = 0, rc;

    if (!rest)
        return HF_E_NOMEM;
    count = own_flags(n, argc, argv, rest, out);
    rc = count < 0 ? count : hf_conf_new(node_conf_keys, node_conf_nkeys, &n->keys, &n->conf);
    if (rc == 0)
        rc = hf_conf_load(n->conf, NULL, envp, count, rest, &next, err, sizeof(err));
    if (rc == HF_E_CANCELED && out->len == 0) {
        (void)hf_buf_printf(out, "%s", usage);
        (void)hf_conf_help(n->conf, out);
    } else if (rc == HF_E_CONF) {
        (void)hf_buf_printf(out, "holdfast-node: %s\n", err);
    } else if (rc == 0 && next < count) {
        (void)hf_buf_printf(out, "holdfast-node: '%s' is not a flag; see --help\n", rest[next]);
        rc = HF_E_CONF;
    }
    free(rest);
    return rc;
}

/* ---- the directory ---- */

/* `holdfast status` and down.sh look at the lock by taking it for a moment: that is no other node.
 */
static int take_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    for (unsigned tries = 0; tries < 25; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return -1;
        (void)nanosleep(&pause, NULL);
    }
    return -1;
}

static int lock_dir(struct hf_node *n, char *err, size_t err_bytes)
{
    struct hf_buf path = {0};
    char pid[32] = "";
    int rc = hf_buf_printf(&path, "%s/lock", n->plan.dir);

    if (rc)
        return rc;
    n->lock_fd = open((const char *)path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (n->lock_fd < 0) {
        (void)snprintf(err, err_bytes, "cannot open %s: %s", (const char *)path.data,
                       strerror(errno));
        rc = hf_err_from_errno(errno);
    } else if (take_lock(n->lock_fd)) {
        if (read(n->lock_fd, pid, sizeof(pid) - 1) > 0)
            pid[strcspn(pid, "\n")] = '\0';
        (void)snprintf(err, err_bytes, "%s is in use by another node (pid %s)", n->plan.dir,
                       pid[0] ? pid : "unknown");
        rc = HF_E_BUSY;
    } else if (ftruncate(n->lock_fd, 0) || dprintf(n->lock_fd, "%d\n", (int)getpid()) < 0) {
        (void)snprintf(err, err_bytes, "cannot write %s: %s", (const char *)path.data,
                       strerror(errno));
        rc = hf_err_from_errno(errno);
    }
    hf_buf_fini(&path);
    return rc;
}

/* ---- roles ---- */

static void on_fatal(void *arg, const char *what)
{
    struct hf_node *n = arg;

    hf_log(n->log, HF_ERROR, "node",
           "%s; the process ends at once so that nothing false is acknowledged", what);
    _exit(70);
}

static int start_segment(struct hf_node *n, char *err, size_t err_bytes)
{
    struct node_plan *p = &n->plan;
    struct hf_segsvc_segment *segs = calloc(p->nsegments, sizeof(*segs));
    const char *listen[2] = {p->segment_inproc, p->segment_ipc};
    int rc;

    if (!segs)
        return HF_E_NOMEM;
    for (unsigned i = 0; i < p->nsegments; i++)
        segs[i] = (struct hf_segsvc_segment){.id = p->segments[i].id, .spec = p->segments[i].spec};
    rc = hf_segsvc_new(&(struct hf_segsvc_opts){.env = n->env,
                                                .log = n->log,
                                                .faults = n->faults,
                                                .dir = p->segment_dir,
                                                .plugin_dir = p->plugins,
                                                .segments = segs,
                                                .nsegments = p->nsegments,
                                                .listen = listen,
                                                .nlisten = n->fsck ? 1 : 2,
                                                .limits = HF_RPC_LIMITS_OF(&n->keys),
                                                .reserve_bytes = n->keys.segment_reserve_bytes},
                       &n->segment, err, err_bytes);
    free(segs);
    return rc;
}

static int start_meta(struct hf_node *n, char *err, size_t err_bytes)
{
    const struct node_conf *c = &n->keys;
    const char *listen[2] = {n->plan.meta_inproc, n->plan.meta_ipc};

    return hf_metasvc_new(
        &(struct hf_metasvc_opts){.env = n->env,
                                  .log = n->log,
                                  .faults = n->faults,
                                  .dir = n->plan.meta_dir,
                                  .threads = (unsigned)c->meta_threads,
                                  .listen = listen,
                                  .nlisten = n->fsck ? 1 : 2,
                                  .map_url = n->plan.meta_urls,
                                  .limits = HF_RPC_LIMITS_OF(c),
                                  .map = &n->plan.map,
                                  .checkpoint_changes = c->meta_checkpoint_changes,
                                  .checkpoint_idle_ms = c->meta_checkpoint_idle,
                                  .map_bytes = c->meta_map_bytes,
                                  .store_reserve_bytes = c->meta_reserve_bytes,
                                  .wal_file_bytes = c->wal_file_bytes,
                                  .wal_max_bytes = c->wal_max_bytes,
                                  .wal_reserve_bytes = c->wal_reserve_bytes,
                                  .noatime = c->meta_noatime,
                                  .fatal = on_fatal,
                                  .arg = n},
        &n->meta, err, err_bytes);
}

static int start_nfs(struct hf_node *n, char *err, size_t err_bytes)
{
    const struct node_conf *c = &n->keys;

    return hf_nfssvc_new(
        &(struct hf_nfssvc_opts){.env = n->env,
                                 .log = n->log,
                                 .meta_url = n->plan.meta_inproc_0,
                                 .listen = c->nfs_listen,
                                 .rpcbind = c->nfs_rpcbind,
                                 .max_connections = (unsigned)c->nfs_max_connections,
                                 .max_requests_per_connection =
                                     (unsigned)c->nfs_max_requests_per_connection,
                                 .max_request_bytes = c->nfs_max_request_bytes,
                                 .max_reply_bytes = c->nfs_max_reply_bytes,
                                 .idle_timeout_ms = c->nfs_idle_timeout,
                                 .stall_timeout_ms = c->nfs_stall_timeout,
                                 .drc_entries = (unsigned)c->nfs_drc_entries,
                                 .drc_bytes = c->nfs_drc_bytes},
        &n->nfs, err, err_bytes);
}

static void on_unmounted(void *arg)
{
    struct hf_node *n = arg;

    hf_log(n->log, HF_WARN, "node", "%s was unmounted by somebody else", n->keys.fuse_mount);
}

static int start_fuse(struct hf_node *n, char *err, size_t err_bytes)
{
    const struct node_conf *c = &n->keys;

    return hf_fusesvc_new(&(struct hf_fusesvc_opts){.env = n->env,
                                                    .log = n->log,
                                                    .meta_url = n->plan.meta_inproc_0,
                                                    .mountpoint = c->fuse_mount,
                                                    .subdir = c->fuse_subdir,
                                                    .read_only = c->fuse_read_only,
                                                    .allow_other = c->fuse_allow_other,
                                                    .threads = (unsigned)c->fuse_threads,
                                                    .attr_timeout_ms = c->fuse_attr_timeout,
                                                    .entry_timeout_ms = c->fuse_entry_timeout,
                                                    .negative_timeout_ms = c->fuse_negative_timeout,
                                                    .timeout_ms = c->fuse_timeout,
                                                    .dirty_max_bytes = c->fuse_dirty_max,
                                                    .readahead_max_bytes = c->fuse_readahead_max,
                                                    .ended = on_unmounted,
                                                    .arg = n},
                          &n->fuse, err, err_bytes);
}

static int start_roles(struct hf_node *n, char *err, size_t err_bytes)
{
    int rc = start_segment(n, err, err_bytes);

    if (rc == 0)
        rc = start_meta(n, err, err_bytes);
    if (rc == 0 && n->plan.nfs && !n->fsck)
        rc = start_nfs(n, err, err_bytes);
    if (rc == 0 && n->keys.fuse_mount[0] && !n->fsck)
        rc = start_fuse(n, err, err_bytes);
    if (rc == 0 && !n->fsck)
        rc = node_admin_start(n, err, err_bytes);
    return rc;
}

/* Threads inherit the mask: signals are taken by hf_node_wait alone. */
static void block_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* A check must not make what it was to find. */
static int must_exist(const struct hf_node *n, char *err, size_t err_bytes)
{
    struct hf_buf path = {0};
    int rc = hf_buf_printf(&path, "%s/meta/shards", n->keys.node_dir);

    if (rc == 0 && access((const char *)path.data, F_OK)) {
        rc = hf_err_from_errno(errno);
        (void)snprintf(err, err_bytes, "fsck: no file system in %s (%s: %s)", n->keys.node_dir,
                       (const char *)path.data, strerror(errno));
    }
    hf_buf_fini(&path);
    return rc;
}

static bool there(const struct hf_node *n, const char *name)
{
    struct hf_buf path = {0};
    bool yes = hf_buf_printf(&path, "%s/%s", n->plan.dir, name) == 0 &&
               access((const char *)path.data, F_OK) == 0;

    hf_buf_fini(&path);
    return yes;
}

/* Segments made anew under a complete file system would read as holes: zeros instead of data. */
static int no_lost_segments(const struct hf_node *n, char *err, size_t err_bytes)
{
    if (!there(n, "meta/shards/complete") || there(n, "segments"))
        return 0;
    (void)snprintf(err, err_bytes, "%s/segments is missing; restore it, it is not made anew",
                   n->plan.dir);
    return HF_E_NOENT;
}

/* The error of a key that the plan refused, "section.key: ...", with where its value came from. */
static const char *error_place(const struct hf_node *n, const char *err)
{
    char section[32], key[64];
    const char *dot = strchr(err, '.'), *colon = strchr(err, ':');

    if (!dot || !colon || dot > colon || (size_t)(dot - err) >= sizeof(section) ||
        (size_t)(colon - dot) > sizeof(key))
        return "";
    (void)snprintf(section, sizeof(section), "%.*s", (int)(dot - err), err);
    (void)snprintf(key, sizeof(key), "%.*s", (int)(colon - dot - 1), dot + 1);
    return hf_conf_where(n->conf, section, key);
}

static int start(struct hf_node *n, struct hf_buf *out)
{
    char err[1024] = "out of memory";
    sigset_t set;
    int rc = hf_env_real_new(&n->env);

    block_signals(&set);
    hf_process_tune();
    if (rc == 0 && n->fsck)
        rc = must_exist(n, err, sizeof(err));
    if (rc == 0)
        rc = node_plan_make(&n->keys, n->env, &n->arena, &n->plan, err, sizeof(err));
    if (rc == 0)
        rc =
            hf_logger_new(2, n->fsck && n->plan.level < HF_WARN ? HF_WARN : n->plan.level, &n->log);
    if (rc == 0)
        rc = lock_dir(n, err, sizeof(err));
    if (rc == 0)
        rc = no_lost_segments(n, err, sizeof(err));
    if (rc == 0) {
        n->start_ns = hf_env_mono_ns(n->env);
        rc = start_roles(n, err, sizeof(err));
    }
    if (rc) {
        const char *place = rc == HF_E_CONF ? error_place(n, err) : "";

        (void)hf_buf_printf(out, "holdfast-node: %s%s%s\n", place, place[0] ? ": " : "", err);
    } else
        hf_log(n->log, HF_INFO, "node", "serving file system '%s' from %s, nfs on %s",
               n->keys.node_fs, n->plan.dir, n->nfs ? hf_nfssvc_listen(n->nfs) : "(none)");
    return rc;
}

int hf_node_new(int argc, char **argv, char *const *envp, struct hf_node **ret, struct hf_buf *out)
{
    struct hf_node *n = calloc(1, sizeof(*n));
    const char *bad = NULL;
    int rc;

    if (!n)
        return HF_E_NOMEM;
    n->lock_fd = -1;
    hf_arena_init(&n->arena, 0);
    rc = load_conf(n, argc, argv, envp, out);
    if (rc == 0) {
        rc = hf_faults_new(getenv("HF_FAULT"), &n->faults, &bad);
        if (rc)
            (void)hf_buf_printf(out, "holdfast-node: HF_FAULT: '%s' is not a fault\n",
                                bad ? bad : "");
    }
    if (rc == 0)
        rc = start(n, out);
    if (rc) {
        hf_node_free(n);
        return rc;
    }
    *ret = n;
    return 0;
}

void hf_node_wait(struct hf_node *n)
{
    sigset_t set;
    int sig = 0;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    while (sigwait(&set, &sig))
        ;
    hf_log(n->log, HF_INFO, "node", "stopping on signal %d", sig);
}

void hf_node_free(struct hf_node *n)
{
    if (!n)
        return;
    node_admin_stop(n);
    hf_fusesvc_free(n->fuse);
    if (n->nfs)
        hf_nfssvc_free(n->nfs);
    if (n->meta)
        hf_metasvc_free(n->meta);
    if (n->segment)
        hf_segsvc_free(n->segment);
    if (n->log && n->start_ns)
        hf_log(n->log, HF_INFO, "node", "stopped");
    if (n->lock_fd >= 0)
        (void)close(n->lock_fd);
    hf_faults_free(n->faults);
    if (n->log)
        hf_logger_free(n->log);
    if (n->env)
        hf_env_free(n->env);
    if (n->conf)
        hf_conf_free(n->conf);
    hf_arena_fini(&n->arena);
    free(n);
}

bool hf_node_wants_fsck(const struct hf_node *n)
{
    return n->fsck;
}

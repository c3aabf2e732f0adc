/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/arena.h"
#include "holdfast/assert.h"
#include "holdfast/conf.h"
#include "holdfast/err.h"
#include "holdfast/svc_meta.h"

#define CHUNK_BYTES (4u << 20)

struct process {
#define X(section, key, kind, type, def, min, max, help) type section##_##key;
#include "conf.def"
#include "holdfast/rpc_limits.def"
#include "process.def"
#undef X
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct hf_arena arena;
    Hf__MapGetRep map;
};

static const struct hf_conf_key keys[] = {
#define X(section, key, kind, type, def, min, max, help)                                           \
    {#section, #key, HF_CONF_##kind, def,                                                          \
     min,      max,  help,           offsetof(struct process, section##_##key)},
#include "conf.def"
#include "holdfast/rpc_limits.def"
#include "process.def"
#undef X
};

static const char usage[] =
    "Usage: holdfast-meta [--config FILE] [flags]\n"
    "Serves the metadata shards of a Holdfast file system to gateways and clients.\n"
    "Every key is also a flag and an environment variable: meta: {dir: D} = --meta-dir D =\n"
    "HOLDFAST_META_DIR=D. Flags win over environment, environment over file.\n\n"
    "  --version\n"
    "        print the version and exit\n";

/* ---- the map of a new file system ---- */

static Hf__PoolEntry *find_pool(struct process *p, char *name)
{
    Hf__PoolEntry *pool;

    for (size_t i = 0; i < p->map.n_pools; i++)
        if (strcmp(p->map.pools[i]->name, name) == 0)
            return p->map.pools[i];
    pool = hf_arena_zalloc(&p->arena, sizeof(*pool));
    if (!pool)
        return NULL;
    hf__pool_entry__init(pool);
    pool->id = (uint32_t)p->map.n_pools;
    pool->name = name;
    pool->chunk_bytes = CHUNK_BYTES;
    p->map.pools[p->map.n_pools++] = pool;
    return pool;
}

/* "hot:1:ipc:///path" */
static int add_segment(struct process *p, const char *item, struct hf_buf *out)
{
    char *name = hf_arena_strdup(&p->arena, item);
    Hf__SegmentEntry *seg = hf_arena_zalloc(&p->arena, sizeof(*seg));
    char *id = name ? strchr(name, ':') : NULL;
    char *url = id ? strchr(id + 1, ':') : NULL;
    char *end = NULL;
    Hf__PoolEntry *pool;
    unsigned long n;

    if (!name || !seg)
        return HF_E_NOMEM;
    if (!url || id == name || !url[1])
        goto bad;
    *id++ = '\0';
    *url++ = '\0';
    errno = 0;
    n = strtoul(id, &end, 10);
    if (errno || *end || end == id || n < 1 || n > UINT32_MAX)
        goto bad;
    pool = find_pool(p, name);
    if (!pool)
        return HF_E_NOMEM;
    pool->width++;
    hf__segment_entry__init(seg);
    seg->id = (uint32_t)n;
    seg->pool = pool->id;
    seg->url = url;
    p->map.segments[p->map.n_segments++] = seg;
    return 0;
bad:
    (void)hf_buf_printf(out, "holdfast-meta: meta.segments: '%s' is not POOL:ID:URL\n", item);
    return HF_E_CONF;
}

static int first_export(struct process *p)
{
    static char loopback4[] = "127.0.0.0/8", loopback6[] = "::1/128", root[] = "/";
    static char *clients[] = {loopback4, loopback6};
    Hf__ExportEntry *e = hf_arena_zalloc(&p->arena, sizeof(*e));
    Hf__ExportEntry **list = hf_arena_zalloc(&p->arena, sizeof(Hf__ExportEntry *));
    size_t len = strlen(p->meta_fs) + 2;
    char *path = hf_arena_alloc(&p->arena, len);

    if (!e || !list || !path)
        return HF_E_NOMEM;
    (void)snprintf(path, len, "/%s", p->meta_fs);
    hf__export_entry__init(e);
    e->id = 1;
    e->path = path;
    e->dir = root;
    e->clients = clients;
    e->n_clients = HF_ARRAY_LEN(clients);
    e->anon_uid = e->anon_gid = 65534;
    list[0] = e;
    p->map.exports = list;
    p->map.n_exports = 1;
    return 0;
}

static int make_map(struct process *p, struct hf_buf *out)
{
    int rc = 0;

    hf__map_get_rep__init(&p->map);
    p->map.pools = hf_arena_zalloc(&p->arena, p->meta_segments.n * sizeof(Hf__PoolEntry *));
    p->map.segments = hf_arena_zalloc(&p->arena, p->meta_segments.n * sizeof(Hf__SegmentEntry *));
    p->map.handle_key.data = hf_arena_alloc(&p->arena, 16);
    if (!p->map.pools || !p->map.segments || !p->map.handle_key.data)
        return HF_E_NOMEM;
    p->map.handle_key.len = 16;
    hf_env_random(p->env, p->map.handle_key.data, 16);
    p->map.version = 1;
    p->map.fs_name = p->meta_fs;
    p->map.fsid = hf_env_random_u64(p->env);
    p->map.root_ino = 2;
    p->map.root_gen = (uint32_t)hf_env_random_u64(p->env) | 1u;
    p->map.shard_count = (uint32_t)p->meta_shards;
    p->map.inline_max = (uint32_t)p->meta_inline_max;
    for (size_t i = 0; i < p->meta_segments.n && rc == 0; i++)
        rc = add_segment(p, p->meta_segments.items[i], out);
    return rc ? rc : first_export(p);
}

/* ---- run ---- */

static void on_fatal(void *arg, const char *what)
{
    struct process *p = arg;

    hf_log(p->log, HF_ERROR, "meta",
           "%s; the process ends at once so that nothing false is acknowledged", what);
    _exit(70);
}

static int run(struct process *p, struct hf_buf *out)
{
    struct hf_metasvc_opts o = {
        .env = p->env,
        .log = p->log,
        .faults = p->faults,
        .dir = p->meta_dir,
        .threads = (unsigned)p->meta_threads,
        .listen = (const char *const *)p->meta_listen.items,
        .nlisten = (unsigned)p->meta_listen.n,
        .insecure = p->meta_insecure,
        .limits = HF_RPC_LIMITS_OF(p),
        .map = &p->map,
        .checkpoint_changes = p->meta_checkpoint_changes,
        .checkpoint_idle_ms = p->meta_checkpoint_idle,
        .map_bytes = p->meta_map_bytes,
        .store_reserve_bytes = p->meta_reserve_bytes,
        .wal_file_bytes = p->wal_file_bytes,
        .wal_max_bytes = p->wal_max_bytes,
        .wal_reserve_bytes = p->wal_reserve_bytes,
        .noatime = p->meta_noatime,
        .fatal = on_fatal,
        .arg = p,
    };
    struct hf_metasvc *svc;
    char err[512];
    sigset_t set;
    int sig, rc;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads inherit it; sigwait below takes them */
    (void)signal(SIGPIPE, SIG_IGN);
    hf_process_tune();
    rc = hf_metasvc_new(&o, &svc, err, sizeof(err));
    if (rc) {
        (void)hf_buf_printf(out, "holdfast-meta: %s\n", err);
        return rc;
    }
    hf_log(p->log, HF_INFO, "meta", "serving on %s", hf_metasvc_url(svc));
    while (sigwait(&set, &sig))
        ;
    hf_metasvc_free(svc);
    return 0;
}

static int configure(struct process *p, struct hf_conf *c, int argc, char **argv, char *const *envp,
                     struct hf_buf *out)
{
    const char *bad = NULL;
    char err[1024];
    int next, rc;

    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)hf_buf_printf(out, "holdfast-meta %s\n", HF_VERSION);
        return HF_E_CANCELED;
    }
    rc = hf_conf_load(c, NULL, envp, argc, argv, &next, err, sizeof(err));
    if (rc == HF_E_CANCELED) {
        (void)hf_buf_printf(out, "%s", usage);
        (void)hf_conf_help(c, out);
    } else if (rc == 0 && next < argc) {
        (void)hf_buf_printf(out, "holdfast-meta: '%s' is not a flag; see --help\n", argv[next]);
        rc = HF_E_CONF;
    } else if (rc) {
        (void)hf_buf_printf(out, "holdfast-meta: %s\n", err);
    }
    if (rc == 0 && (rc = hf_faults_new(getenv("HF_FAULT"), &p->faults, &bad)) != 0)
        (void)hf_buf_printf(out, "holdfast-meta: HF_FAULT: '%s' is not a fault\n", bad ? bad : "");
    return rc;
}

int meta_process(int argc, char **argv, char *const *envp, struct hf_buf *out)
{
    struct process p = {0};
    struct hf_conf *c = NULL;
    int rc = hf_conf_new(keys, HF_ARRAY_LEN(keys), &p, &c);

    hf_arena_init(&p.arena, 0);
    if (rc == 0)
        rc = configure(&p, c, argc, argv, envp, out);
    if (rc == 0)
        rc = hf_env_real_new(&p.env);
    if (rc == 0)
        rc = hf_logger_new(2, HF_INFO, &p.log);
    if (rc == 0)
        rc = make_map(&p, out);
    if (rc == 0)
        rc = run(&p, out);
    hf_faults_free(p.faults);
    if (p.log)
        hf_logger_free(p.log);
    if (p.env)
        hf_env_free(p.env);
    if (c)
        hf_conf_free(c);
    hf_arena_fini(&p.arena);
    return rc == 0 || rc == HF_E_CANCELED ? 0 : rc == HF_E_CONF ? 2 : 1;
}

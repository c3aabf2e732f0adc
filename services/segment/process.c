/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/conf.h"
#include "holdfast/err.h"
#include "holdfast/svc_segment.h"

struct process {
#define X(section, key, kind, type, def, min, max, help) type section##_##key;
#include "conf.def"
#include "holdfast/rpc_limits.def"
#include "process.def"
#undef X
    struct hf_env *env;
    struct hf_logger *log;
    struct hf_faults *faults;
    struct hf_segsvc_segment *segments;
    char plugins[PATH_MAX];
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
    "Usage: holdfast-segment [--config FILE] [flags]\n"
    "Serves segments of file data to gateways and clients.\n"
    "Every key is also a flag and an environment variable: segment: {dir: D} = --segment-dir D =\n"
    "HOLDFAST_SEGMENT_DIR=D. Flags win over environment, environment over file.\n\n"
    "  --version\n"
    "        print the version and exit\n";

/* "3" or "3:delay(ms=1)+posix" */
static int parse_segment(const char *item, struct hf_segsvc_segment *ret)
{
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul(item, &end, 10);
    if (errno || end == item || n < 1 || n > UINT32_MAX || (*end != '\0' && *end != ':'))
        return HF_E_CONF;
    ret->id = (uint32_t)n;
    ret->spec = *end == ':' ? end + 1 : NULL;
    return 0;
}

static int make_segments(struct process *p, struct hf_buf *out)
{
    p->segments = calloc(p->segment_segments.n + 1, sizeof(*p->segments));
    if (!p->segments)
        return HF_E_NOMEM;
    for (size_t i = 0; i < p->segment_segments.n; i++) {
        if (parse_segment(p->segment_segments.items[i], &p->segments[i])) {
            (void)hf_buf_printf(
                out, "holdfast-segment: segment.segments: '%s' is not ID or ID:BACKEND\n",
                p->segment_segments.items[i]);
            return HF_E_CONF;
        }
    }
    return 0;
}

/* Where the plugins lie if the configuration does not say: beside the program's folder. */
static int find_plugins(struct process *p)
{
    static const char *const places[] = {"../lib/holdfast", "../lib/x86_64-linux-gnu/holdfast",
                                         "../lib/aarch64-linux-gnu/holdfast"};
    char self[PATH_MAX];
    ssize_t n;

    if (p->segment_plugins[0]) {
        n = snprintf(p->plugins, sizeof(p->plugins), "%s", p->segment_plugins);
        return n < 0 || (size_t)n >= sizeof(p->plugins) ? HF_E_NAMETOOLONG : 0;
    }
    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return hf_err_from_errno(errno);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < HF_ARRAY_LEN(places); i++) {
        n = snprintf(p->plugins, sizeof(p->plugins), "%s/%s", self, places[i]);
        if (n < 0 || (size_t)n >= sizeof(p->plugins))
            return HF_E_NAMETOOLONG;
        if (access(p->plugins, R_OK | X_OK) == 0)
            break;
    }
    return 0;
}

static int run(struct process *p, struct hf_buf *out)
{
    struct hf_segsvc_opts o = {
        .env = p->env,
        .log = p->log,
        .dir = p->segment_dir,
        .plugin_dir = p->plugins,
        .segments = p->segments,
        .nsegments = (unsigned)p->segment_segments.n,
        .listen = (const char *const *)p->segment_listen.items,
        .nlisten = (unsigned)p->segment_listen.n,
        .faults = p->faults,
        .insecure = p->segment_insecure,
        .limits = HF_RPC_LIMITS_OF(p),
        .reserve_bytes = p->segment_reserve_bytes,
    };
    struct hf_segsvc *svc;
    char err[512];
    sigset_t set;
    int sig, rc;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads inherit it; sigwait below takes them */
    (void)signal(SIGPIPE, SIG_IGN);
    hf_process_tune();
    rc = hf_segsvc_new(&o, &svc, err, sizeof(err));
    if (rc) {
        (void)hf_buf_printf(out, "holdfast-segment: %s\n", err);
        return rc;
    }
    hf_log(p->log, HF_INFO, "segment", "serving %u segments on %s", o.nsegments,
           hf_segsvc_url(svc, 0));
    while (sigwait(&set, &sig))
        ;
    hf_segsvc_free(svc);
    return 0;
}

static int configure(struct process *p, struct hf_conf *c, int argc, char **argv, char *const *envp,
                     struct hf_buf *out)
{
    const char *bad = NULL;
    char err[1024];
    int next, rc;

    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)hf_buf_printf(out, "holdfast-segment %s\n", HF_VERSION);
        return HF_E_CANCELED;
    }
    rc = hf_conf_load(c, NULL, envp, argc, argv, &next, err, sizeof(err));
    if (rc == HF_E_CANCELED) {
        (void)hf_buf_printf(out, "%s", usage);
        (void)hf_conf_help(c, out);
    } else if (rc == 0 && next < argc) {
        (void)hf_buf_printf(out, "holdfast-segment: '%s' is not a flag; see --help\n", argv[next]);
        rc = HF_E_CONF;
    } else if (rc) {
        (void)hf_buf_printf(out, "holdfast-segment: %s\n", err);
    }
    if (rc == 0 && (rc = hf_faults_new(getenv("HF_FAULT"), &p->faults, &bad)) != 0)
        (void)hf_buf_printf(out, "holdfast-segment: HF_FAULT: '%s' is not a fault\n",
                            bad ? bad : "");
    return rc;
}

int segment_process(int argc, char **argv, char *const *envp, struct hf_buf *out)
{
    struct process p = {0};
    struct hf_conf *c = NULL;
    int rc = hf_conf_new(keys, HF_ARRAY_LEN(keys), &p, &c);

    if (rc == 0)
        rc = configure(&p, c, argc, argv, envp, out);
    if (rc == 0)
        rc = make_segments(&p, out);
    if (rc == 0)
        rc = find_plugins(&p);
    if (rc == 0)
        rc = hf_env_real_new(&p.env);
    if (rc == 0)
        rc = hf_logger_new(2, HF_INFO, &p.log);
    if (rc == 0)
        rc = run(&p, out);
    hf_faults_free(p.faults);
    if (p.log)
        hf_logger_free(p.log);
    if (p.env)
        hf_env_free(p.env);
    free(p.segments);
    if (c)
        hf_conf_free(c);
    return rc == 0 || rc == HF_E_CANCELED ? 0 : rc == HF_E_CONF ? 2 : 1;
}

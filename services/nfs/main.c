/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-nfs: the NFS gateway as a process of its own.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/conf.h"
#include "holdfast/err.h"
#include "holdfast/svc_nfs.h"

struct config {
#define X(section, key, kind, type, def, min, max, help) type section##_##key;
#include "conf.def"
#include "process.def"
#undef X
};

static const struct hf_conf_key keys[] = {
#define X(section, key, kind, type, def, min, max, help)                                           \
    {#section, #key, HF_CONF_##kind, def, min, max, help, offsetof(struct config, section##_##key)},
#include "conf.def"
#include "process.def"
#undef X
};

static const char usage[] =
    "Usage: holdfast-nfs [--config FILE] [flags]\n"
    "Serves the exports of a Holdfast file system over NFSv3.\n"
    "Every key is also a flag and an environment variable: nfs: {listen: A} = --nfs-listen A =\n"
    "HOLDFAST_NFS_LISTEN=A. Flags win over environment, environment over file.\n\n"
    "  --version\n"
    "        print the version and exit\n";

static int serve(const struct config *c, const sigset_t *signals, char *err, size_t err_bytes)
{
    struct hf_nfssvc_opts o = {
        .meta_url = c->meta_url,
        .listen = c->nfs_listen,
        .insecure = c->nfs_insecure,
        .rpcbind = c->nfs_rpcbind,
        .max_connections = (unsigned)c->nfs_max_connections,
        .max_requests_per_connection = (unsigned)c->nfs_max_requests_per_connection,
        .max_request_bytes = c->nfs_max_request_bytes,
        .max_reply_bytes = c->nfs_max_reply_bytes,
        .idle_timeout_ms = c->nfs_idle_timeout,
        .stall_timeout_ms = c->nfs_stall_timeout,
        .drc_entries = (unsigned)c->nfs_drc_entries,
        .drc_bytes = c->nfs_drc_bytes,
    };
    struct hf_nfssvc *svc;
    int sig, rc = hf_logger_new(STDERR_FILENO, HF_INFO, &o.log);

    if (rc == 0)
        rc = hf_env_real_new(&o.env);
    if (rc == 0)
        rc = hf_nfssvc_new(&o, &svc, err, err_bytes);
    if (rc == 0) {
        (void)sigwait(signals, &sig);
        hf_log(o.log, HF_INFO, "nfs", "stopping");
        hf_nfssvc_free(svc);
    }
    if (o.env)
        hf_env_free(o.env);
    hf_logger_free(o.log);
    return rc;
}

int main(int argc, char **argv)
{
    struct config c = {0};
    struct hf_conf *conf;
    struct hf_buf help = {0};
    char err[512] = "";
    sigset_t signals;
    int next, rc = hf_conf_new(keys, HF_ARRAY_LEN(keys), &c, &conf);

    if (rc)
        return EXIT_FAILURE;
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)printf("holdfast-nfs %s\n", HF_VERSION);
        hf_conf_free(conf);
        return 0;
    }
    rc = hf_conf_load(conf, NULL, environ, argc, argv, &next, err, sizeof(err));
    if (rc == HF_E_CANCELED) {
        rc = hf_conf_help(conf, &help);
        (void)printf("%s%.*s", usage, (int)help.len, (const char *)help.data);
    } else if (rc) {
        (void)fprintf(stderr, "holdfast-nfs: %s\n", err);
        rc = 2;
    } else if (next < argc) {
        (void)fprintf(stderr, "holdfast-nfs: '%s' is not a flag; see --help\n", argv[next]);
        rc = 2;
    } else {
        /* Before any thread exists, so that all of them leave these to sigwait. */
        (void)signal(SIGPIPE, SIG_IGN);
        (void)sigemptyset(&signals);
        (void)sigaddset(&signals, SIGTERM);
        (void)sigaddset(&signals, SIGINT);
        (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
        rc = serve(&c, &signals, err, sizeof(err));
        if (rc)
            (void)fprintf(stderr, "holdfast-nfs: %s\n", err);
        rc = rc == HF_E_CONF ? 2 : rc ? EXIT_FAILURE : 0;
    }
    hf_buf_fini(&help);
    hf_conf_free(conf);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-fuse as a process: its words, going to the background once the mount serves, and the
 * signals that end it.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/arena.h"
#include "holdfast/assert.h"
#include "holdfast/conf.h"
#include "holdfast/err.h"
#include "holdfast/svc_fuse.h"

struct process {
#define X(section, key, kind, type, def, min, max, help) type section##_##key;
#include "conf.def"
#include "process.def"
#undef X
    struct hf_arena arena; /* words made of -o */
    char *mountpoint, *url;
    int tell; /* where the parent waits; -1: in the foreground */
    struct hf_env *env;
    struct hf_logger *log;
};

static const struct hf_conf_key keys[] = {
#define X(section, key, kind, type, def, min, max, help)                                           \
    {#section, #key, HF_CONF_##kind, def,                                                          \
     min,      max,  help,           offsetof(struct process, section##_##key)},
#include "conf.def"
#include "process.def"
#undef X
};

static const char usage[] =
    "Usage: holdfast mount [flags] [-o OPTION,...] DIRECTORY\n"
    "       holdfast-fuse (the same)\n"
    "Mounts a Holdfast file system on DIRECTORY and returns when it can be used; `holdfast umount\n"
    "DIRECTORY` (or umount) ends it. Without flags: the node of $HOLDFAST_DIR or ./.holdfast.\n\n"
    "  -o OPTION,...\n"
    "        ro, and every fuse key without its section: -o attr_timeout=0,subdir=/home\n"
    "  --version\n"
    "        print the version and exit\n\n"
    "Every key is also a flag and an environment variable: fuse: {subdir: D} = --fuse-subdir D =\n"
    "HOLDFAST_FUSE_SUBDIR=D. Flags win over environment, environment over file.\n\n";

/* ---- words ---- */

/* "attr_timeout=0" -> "--fuse-attr-timeout=0"; NULL: nothing to say (what mount(8) adds by itself).
 */
static char *option_flag(struct process *p, const char *o, size_t len, int *rc)
{
    static const char *const silent[] = {"rw", "defaults", "dev", "suid", "exec", "auto", "noauto"};
    const char *name = len == 2 && strncmp(o, "ro", 2) == 0 ? "read_only" : o;
    size_t n = name == o ? len : strlen(name), room = sizeof("--fuse-") + n;
    char *flag;

    for (size_t i = 0; i < HF_ARRAY_LEN(silent); i++)
        if (len == strlen(silent[i]) && strncmp(o, silent[i], len) == 0)
            return NULL;
    flag = hf_arena_alloc(&p->arena, room);
    if (!flag) {
        *rc = HF_E_NOMEM;
        return NULL;
    }
    (void)snprintf(flag, room, "--fuse-%.*s", (int)n, name);
    for (char *c = flag + strlen("--fuse-"); *c && *c != '='; c++)
        if (*c == '_')
            *c = '-';
    return flag;
}

static int take_options(struct process *p, const char *text, char **out, int *n, int room)
{
    int rc = 0;

    while (*text && rc == 0) {
        size_t len = strcspn(text, ",");
        char *flag = len ? option_flag(p, text, len, &rc) : NULL;

        if (flag && *n < room)
            out[(*n)++] = flag;
        else if (flag)
            rc = HF_E_TOOBIG;
        text += len + (text[len] == ',');
    }
    return rc;
}

/* -o wherever it stands becomes flags; the directory may come before them (mount(8) does so). */
static int arrange(struct process *p, int argc, char **argv, char **out, int room, int *ret)
{
    char *words[2] = {NULL, NULL};
    int n = 1, nwords = 0, rc = 0;

    out[0] = argv[0];
    for (int i = 1; i < argc && rc == 0; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            rc = take_options(p, argv[++i], out, &n, room - 4);
        else if (argv[i][0] != '-' && nwords < 1 && (i == 1 || i == argc - 1))
            words[nwords++] = argv[i]; /* elsewhere it is the value of a flag */
        else if (n < room - 4)
            out[n++] = argv[i];
        else
            rc = HF_E_TOOBIG;
    }
    for (int i = 0; i < nwords; i++)
        out[n++] = words[i];
    out[n] = NULL;
    *ret = n;
    return rc;
}

static int load(struct process *p, struct hf_conf *c, int argc, char **argv, char *const *envp)
{
    struct hf_buf help = {0};
    char *words[256], err[1024] = "";
    int n = 0, next = 0, rc = arrange(p, argc, argv, words, (int)HF_ARRAY_LEN(words), &n);

    if (rc == 0)
        rc = hf_conf_load(c, NULL, envp, n, words, &next, err, sizeof(err));
    if (rc == HF_E_CANCELED) {
        (void)hf_conf_help(c, &help);
        (void)printf("%s%.*s", usage, (int)help.len, (const char *)help.data);
        hf_buf_fini(&help);
    } else if (rc) {
        (void)fprintf(stderr, "holdfast-fuse: %s\n", err[0] ? err : hf_err_text(rc));
        rc = HF_E_CONF;
    } else if (next != n - 1) {
        (void)fprintf(stderr, next == n
                                  ? "holdfast-fuse: no directory to mount on; see --help\n"
                                  : "holdfast-fuse: one directory, after the flags; see --help\n");
        rc = HF_E_CONF;
    } else {
        p->mountpoint = realpath(words[next], NULL);
        if (!p->mountpoint) {
            (void)fprintf(stderr, "holdfast-fuse: %s: %s\n", words[next], strerror(errno));
            rc = HF_E_NOENT;
        }
    }
    return rc;
}

/* The socket of a node on this machine. */
static int find_url(struct process *p)
{
    const char *dir = p->_node_dir[0] ? p->_node_dir : getenv("HOLDFAST_DIR");
    size_t room = PATH_MAX + 64;
    char *real;

    if (p->_url[0]) {
        p->url = strdup(p->_url);
        return p->url ? 0 : HF_E_NOMEM;
    }
    if (!dir || !dir[0])
        dir = ".holdfast";
    real = realpath(dir, NULL);
    p->url = malloc(room);
    if (real && p->url)
        (void)snprintf(p->url, room, "ipc://%s/run/meta-0.sock", real);
    if (!real || !p->url || access(p->url + strlen("ipc://"), R_OK | W_OK)) {
        (void)fprintf(stderr, "holdfast-fuse: no node runs in %s: %s\n", dir, strerror(errno));
        free(real);
        return HF_E_NOENT;
    }
    free(real);
    return 0;
}

/* ---- to the background ---- */

/* Returns in the child; the parent waits for its word and exits. */
static int background(struct process *p)
{
    unsigned char status = 1;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return hf_err_from_errno(errno);
    pid = fork();
    if (pid < 0)
        return hf_err_from_errno(errno);
    if (pid == 0) {
        (void)close(ends[0]);
        (void)setsid();
        p->tell = ends[1];
        return 0;
    }
    (void)close(ends[1]);
    if (read(ends[0], &status, 1) != 1)
        (void)waitpid(pid, NULL, 0);
    _exit(status);
}

/* Mounted: the parent may go, and we let go of its terminal. */
static void detach(struct process *p)
{
    const unsigned char ok = 0;
    int null;

    if (p->tell < 0)
        return;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        (void)close(null);
    }
    if (chdir("/") == 0 || true)
        (void)!write(p->tell, &ok, 1);
    (void)close(p->tell);
}

/* ---- run ---- */

static void on_ended(void *arg)
{
    (void)arg;
    (void)kill(getpid(), SIGTERM); /* taken by sigwait below */
}

static int open_log(struct process *p)
{
    int fd = STDERR_FILENO;

    if (p->_log_file[0])
        fd = open(p->_log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0) {
        (void)fprintf(stderr, "holdfast-fuse: %s: %s\n", p->_log_file, strerror(errno));
        return hf_err_from_errno(errno);
    }
    return hf_logger_new(fd, HF_INFO, &p->log);
}

static int serve(struct process *p)
{
    struct hf_fusesvc_opts o = {
        .env = p->env,
        .log = p->log,
        .meta_url = p->url,
        .mountpoint = p->mountpoint,
        .subdir = p->fuse_subdir,
        .read_only = p->fuse_read_only,
        .allow_other = p->fuse_allow_other,
        .threads = (unsigned)p->fuse_threads,
        .attr_timeout_ms = p->fuse_attr_timeout,
        .entry_timeout_ms = p->fuse_entry_timeout,
        .negative_timeout_ms = p->fuse_negative_timeout,
        .timeout_ms = p->fuse_timeout,
        .dirty_max_bytes = p->fuse_dirty_max,
        .readahead_max_bytes = p->fuse_readahead_max,
        .insecure = p->_insecure,
        .ended = on_ended,
        .arg = p,
    };
    struct hf_fusesvc *svc;
    char err[512];
    sigset_t set;
    int sig, rc;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads inherit it; sigwait below takes them */
    (void)signal(SIGPIPE, SIG_IGN);
    hf_process_tune();
    rc = hf_fusesvc_new(&o, &svc, err, sizeof(err));
    if (rc) {
        (void)fprintf(stderr, "holdfast-fuse: %s\n", err);
        return rc;
    }
    detach(p);
    while (sigwait(&set, &sig))
        ;
    hf_fusesvc_free(svc);
    return 0;
}

int fuse_process(int argc, char **argv, char *const *envp)
{
    struct process p = {.tell = -1};
    struct hf_conf *c = NULL;
    int rc;

    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)printf("holdfast-fuse %s\n", HF_VERSION);
        return 0;
    }
    hf_arena_init(&p.arena, 0);
    rc = hf_conf_new(keys, HF_ARRAY_LEN(keys), &p, &c);
    if (rc == 0)
        rc = load(&p, c, argc, argv, envp);
    if (rc == 0)
        rc = find_url(&p);
    if (rc == 0 && !p._foreground)
        rc = background(&p);
    if (rc == 0)
        rc = hf_env_real_new(&p.env);
    if (rc == 0)
        rc = open_log(&p);
    if (rc == 0)
        rc = serve(&p);
    if (p.log)
        hf_logger_free(p.log);
    if (p.env)
        hf_env_free(p.env);
    if (c)
        hf_conf_free(c);
    hf_arena_fini(&p.arena);
    free(p.mountpoint);
    free(p.url);
    return rc == 0 || rc == HF_E_CANCELED ? 0 : rc == HF_E_CONF ? 2 : 1;
}

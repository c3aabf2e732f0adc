/* SPDX-License-Identifier: Apache-2.0
 *
 * faults [--seed S] [--jobs J] [--only POINT] [--verbose]
 *
 * Visits every fault point of fault.def with an error, a full disk where that can be, crashes at
 * the first, the second and a later visit, and a delay, while a mixed load runs. After a start
 * without the fault everything that was acknowledged is there, what was in doubt happened wholly or
 * not at all, and fsck is clean. A process that meets an error of log or LMDB must have ended; none
 * may end by a signal. A point that no crash has reached fails the test: the load is too thin.
 *
 * One visit (case) is: start with the fault, upon what a kill -9 left of the case before; load; an
 * fsck; SIGTERM; start without the fault; compare; a little load; kill -9. Each point is also
 * crashed at in the first start of all, in an empty folder.
 */
#include "kill9.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/fault.h"

#define WORKERS    3
#define JOBS_MAX   16
#define FILL_BYTES 30000u /* inline, so that it goes into the log */
#define FILL_TIMES 170u   /* more than a log file */
#define LATER_MS   1200
#define EXIT_FAULT 70  /* holdfast-node after an error of log or LMDB */
#define EXIT_CRASH 137 /* fault.h */

enum trait {
    SPACE = 1, /* a full disk can show here */
    FATAL = 2, /* an error here must end the process */
    LATER = 4  /* visited by a timer: twice a second chunks of removed files are deleted */
};

static const struct {
    const char *name;
    unsigned traits;
} traits[] = {
    {"log.write", SPACE | FATAL}, {"log.fsync", FATAL},      {"log.header", FATAL},
    {"log.roll", SPACE | FATAL},  {"log.create", SPACE},     {"log.zero", SPACE},
    {"store.begin", FATAL},       {"store.get", FATAL},      {"store.put", SPACE | FATAL},
    {"store.del", SPACE | FATAL}, {"store.scan", FATAL},     {"store.commit", SPACE | FATAL},
    {"store.committed", FATAL},   {"shard.append", FATAL},   {"shard.durable", FATAL},
    {"shard.checkpoint", FATAL},  {"log.open", FATAL},       {"log.scan", FATAL},
    {"log.mend", FATAL},          {"log.read", FATAL},       {"store.open", SPACE | FATAL},
    {"shard.replay", FATAL},      {"segment.open", FATAL},   {"segment.made", SPACE | FATAL},
    {"segment.write", SPACE},     {"segment.header", SPACE}, {"segment.sync", SPACE},
    {"segment.settle", SPACE},    {"segment.mark", SPACE},   {"segment.delete", LATER},
};

struct shared { /* with the parent */
    bool reached[HF_FAULT_COUNT], reached_first[HF_FAULT_COUNT];
    unsigned cases;
    uint64_t acked, refused, read_bytes, in_doubt_done, in_doubt_not;
    char now[96]; /* the case that runs */
};

struct lane {
    struct nt_node node;
    struct worker workers[WORKERS];
    struct nt_fh root;
    struct shared *sh;
    uint64_t rng;
    bool verbose;
};

static unsigned traits_of(enum hf_fault_point p)
{
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        if (strcmp(traits[i].name, hf_fault_name(p)) == 0)
            return traits[i].traits;
    }
    return 0;
}

/* ---- load ---- */

static unsigned quota; /* of changes, per worker */

static void *load_thread(void *arg)
{
    struct worker *w = arg;
    struct nt *c = nt_try_open(w->node, w->node->port);
    uint64_t end = w->acked + quota;
    uint32_t none = 0;

    if (c == NULL)
        return NULL;
    rpc_set_auth(c->rpc, libnfs_authunix_create("faults", 0, 0, 0, &none));
    c->tolerant = true;
    while (w->acked < end && k9_step(w, c)) {
    }
    nt_close(c);
    return NULL;
}

/* Fills the log, so that it rolls. What becomes of the file does not matter. */
static void *fill_thread(void *arg)
{
    struct lane *l = arg;
    struct nt *c = nt_try_open(&l->node, l->node.port);
    struct nt_set set = NT_SET_MODE(0600);
    static uint8_t bytes[FILL_BYTES];
    uint32_t none = 0, st;
    struct nt_fh fh;

    if (c == NULL)
        return NULL;
    rpc_set_auth(c->rpc, libnfs_authunix_create("faults", 0, 0, 0, &none));
    c->tolerant = true;
    st = nt_create(c, &l->root, "filler", UNCHECKED, &set, NULL);
    fh = c->r.fh;
    for (unsigned i = 0; i < FILL_TIMES && st == NFS3_OK; i++)
        st = nt_write(c, &fh, 0, bytes, sizeof(bytes), FILE_SYNC);
    nt_close(c);
    return NULL;
}

static void run_load(struct lane *l, unsigned changes, bool fill, bool may_refuse)
{
    pthread_t threads[WORKERS], filler;

    quota = changes;
    if (fill && pthread_create(&filler, NULL, fill_thread, l) != 0)
        nt_fail(__FILE__, __LINE__, "cannot start a thread");
    for (unsigned i = 0; i < WORKERS; i++) {
        l->workers[i].may_refuse = may_refuse;
        if (pthread_create(&threads[i], NULL, load_thread, &l->workers[i]) != 0)
            nt_fail(__FILE__, __LINE__, "cannot start a thread");
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    if (fill)
        pthread_join(filler, NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &l->workers[i];

        if (w->error[0] != '\0')
            nt_fail(__FILE__, __LINE__, "worker %u: %s", i, w->error);
        l->sh->refused += w->refused != 0;
        w->refused = 0;
    }
}

/* ---- starting and comparing ---- */

/* Each case has log files of another size than the one before: old ones are removed. */
static void configure(struct lane *l)
{
    snprintf(l->node.extra, sizeof(l->node.extra),
             "meta:\n  shards: 2\n  inline_max: 32K\n  checkpoint_changes: 256\n"
             "  checkpoint_idle: 200ms\n  reserve_bytes: 1M\n"
             "wal:\n  file_bytes: %uM\n  max_bytes: 64M\n  reserve_bytes: 1M\n"
             "segment:\n  reserve_bytes: 1M\n",
             4 + l->sh->cases % 2);
}

static int fsck(struct lane *l, char *out, size_t cap)
{
    static const char *const args[] = {"fsck", NULL};

    return nt_cli(&l->node, out, cap, args);
}

static void start_and_compare(struct lane *l)
{
    char out[8192] = "";
    struct nt *c;

    nt_node_start(&l->node);
    c = nt_open(&l->node, 0, 0, 0, NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        k9_resolve(&l->workers[i], c);
        k9_verify(&l->workers[i], c);
    }
    nt_close(c);
    if (fsck(l, out, sizeof(out)) != 0)
        nt_fail(__FILE__, __LINE__, "fsck finds problems:\n%s", out);
}

static void make_workers(struct lane *l)
{
    struct nt *c = nt_open(&l->node, 0, 0, 0, NULL);

    NT_OK(nt_mount(c, l->node.export_path));
    l->root = c->r.fh;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &l->workers[i];

        k9_clear(w);
        *w = (struct worker){.node = &l->node, .id = i, .rng = k9_rand(&l->rng), .nslots = 10};
        k9_worker_init(w, c, &l->root);
    }
    nt_close(c);
}

/* ---- a case ---- */

/* With the fault; false: it did not come up. */
static bool start_with(struct lane *l, enum hf_fault_point p, const char *action, int *ret_status)
{
    char spec[64];
    bool up;

    snprintf(spec, sizeof(spec), "%s=%s", hf_fault_name(p), action);
    snprintf(l->sh->now, sizeof(l->sh->now), "%s", spec);
    if (l->verbose) {
        printf("# %s\n", spec);
        fflush(stdout);
    }
    setenv("HF_FAULT", spec, 1);
    l->sh->cases++;
    configure(l);
    up = nt_node_try_start(&l->node, ret_status);
    unsetenv("HF_FAULT");
    return up;
}

/* How the process may end: in order, refusing to start, by the fault. Whether it crashed. */
static bool judge(enum hf_fault_point p, const char *action, bool up, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool fails = strcmp(action, "error") == 0 || strcmp(action, "nospace") == 0;

    if (code != 0 && code != 1 && code != EXIT_FAULT && code != EXIT_CRASH)
        nt_fail(__FILE__, __LINE__, "the node ended with wait status 0x%x", (unsigned)status);
    if (code == EXIT_CRASH && strncmp(action, "crash", 5) != 0)
        nt_fail(__FILE__, __LINE__, "the node crashed");
    if (strncmp(action, "delay", 5) == 0 && code != 0)
        nt_fail(__FILE__, __LINE__, "a delay ended the node (%d)", code);
    if (up && code == 1)
        nt_fail(__FILE__, __LINE__, "the node ended as if it had not started");
    if (fails && (traits_of(p) & FATAL) && code != EXIT_FAULT && code != 1)
        nt_fail(__FILE__, __LINE__, "the node went on after the error (%d)", code);
    return code == EXIT_CRASH;
}

/* Gives a timer of the node the time to come around. */
static void await_end(struct lane *l)
{
    uint64_t deadline = nt_now_ns() + LATER_MS * 1000000ull;

    while (nt_node_alive(&l->node) && nt_now_ns() < deadline)
        (void)poll(NULL, 0, 20); /* between two looks */
}

static void run_case(struct lane *l, enum hf_fault_point p, const char *action)
{
    bool delay = strncmp(action, "delay", 5) == 0, up;
    int status = 0;

    up = start_with(l, p, action, &status);
    if (up) {
        run_load(l, 60, true, !delay);
        if (traits_of(p) & LATER)
            await_end(l);
        if (nt_node_alive(&l->node)) {
            char out[8192] = "";

            if (fsck(l, out, sizeof(out)) != 0 && delay)
                nt_fail(__FILE__, __LINE__, "fsck finds problems:\n%s", out);
        }
        status = nt_node_alive(&l->node) ? nt_node_end(&l->node, SIGTERM) : l->node.status;
    }
    if (judge(p, action, up, status))
        l->sh->reached[p] = true;
    start_and_compare(l);
    run_load(l, 25, false, false);
    nt_node_end(&l->node, SIGKILL);
}

/* A crash in the first start of all; then the file system is made after all. */
static void first_start(struct lane *l, enum hf_fault_point p, const char *action)
{
    int status = 0;

    nt_remove_tree(l->node.dir);
    l->node.dir[0] = '\0';
    if (start_with(l, p, action, &status))
        status = nt_node_end(&l->node, SIGTERM);
    if (judge(p, action, true, status))
        l->sh->reached_first[p] = true;
    nt_node_start(&l->node);
    make_workers(l);
    run_load(l, 10, false, false);
    nt_node_end(&l->node, SIGKILL);
    start_and_compare(l);
    run_load(l, 25, false, false);
    nt_node_end(&l->node, SIGKILL);
}

static void visit(struct lane *l, enum hf_fault_point p)
{
    char later[32];

    first_start(l, p, "crash@1");
    run_case(l, p, "error");
    run_case(l, p, "crash@1");
    run_case(l, p, "crash@2");
    snprintf(later, sizeof(later), "crash@%u", 3 + (unsigned)(k9_rand(&l->rng) % 60));
    run_case(l, p, later);
    snprintf(later, sizeof(later), "error@%u", 2 + (unsigned)(k9_rand(&l->rng) % 10));
    run_case(l, p, later);
    if (traits_of(p) & SPACE)
        run_case(l, p, "nospace");
    run_case(l, p, "delay:40@2");
}

/* ---- all of them ---- */

static struct lane *lane_now;

static void at_exit(void)
{
    if (lane_now != NULL) { /* a failure */
        nt_node_log(&lane_now->node);
        if (lane_now->node.pid > 0)
            kill(lane_now->node.pid, SIGKILL);
    }
}

static void run_lane(const struct lane *from, struct shared *sh, unsigned job, unsigned jobs,
                     const char *only)
{
    struct lane *l = calloc(1, sizeof(*l));

    *l = *from;
    lane_now = l;
    l->sh = sh;
    l->rng += job;
    for (unsigned p = 0; p < HF_FAULT_COUNT; p++) {
        if (only != NULL ? strcmp(only, hf_fault_name((enum hf_fault_point)p)) != 0
                         : p % jobs != job)
            continue;
        visit(l, (enum hf_fault_point)p);
        for (unsigned i = 0; i < WORKERS; i++) {
            sh->acked += l->workers[i].acked;
            sh->read_bytes += l->workers[i].read_bytes;
            sh->in_doubt_done += l->workers[i].in_doubt_done;
            sh->in_doubt_not += l->workers[i].in_doubt_not;
        }
    }
    for (unsigned i = 0; i < WORKERS; i++)
        k9_clear(&l->workers[i]);
    nt_remove_tree(l->node.dir);
    lane_now = NULL;
    free(l);
}

static bool report(const struct shared *sh, unsigned jobs, const char *only)
{
    struct shared all = {0};
    bool ok = true;

    for (unsigned p = 0; p < HF_FAULT_COUNT; p++) {
        const char *name = hf_fault_name((enum hf_fault_point)p);
        bool first = false, later = false;

        for (unsigned j = 0; j < jobs; j++) {
            first |= sh[j].reached_first[p];
            later |= sh[j].reached[p];
        }
        if (only != NULL && strcmp(only, name) != 0)
            continue;
        if (!first && !later)
            printf("# %s was never reached\n", name);
        ok &= first || later;
    }
    for (unsigned j = 0; j < jobs; j++) {
        all.cases += sh[j].cases;
        all.acked += sh[j].acked;
        all.refused += sh[j].refused;
        all.read_bytes += sh[j].read_bytes;
        all.in_doubt_done += sh[j].in_doubt_done;
        all.in_doubt_not += sh[j].in_doubt_not;
    }
    printf("# %u points, %u cases, %llu acknowledged changes, %llu refused, %llu MiB read; in "
           "doubt: %llu had happened, %llu had not\n",
           (unsigned)HF_FAULT_COUNT, all.cases, (unsigned long long)all.acked,
           (unsigned long long)all.refused, (unsigned long long)(all.read_bytes >> 20),
           (unsigned long long)all.in_doubt_done, (unsigned long long)all.in_doubt_not);
    return ok;
}

static const char *option(int argc, char **argv, const char *name, const char *def)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    }
    return def;
}

int main(int argc, char **argv)
{
    const char *only = option(argc, argv, "--only", NULL), *s = option(argc, argv, "--seed", NULL);
    unsigned jobs =
        only != NULL ? 1 : (unsigned)strtoul(option(argc, argv, "--jobs", "2"), NULL, 0);
    uint64_t seed = s != NULL ? strtoull(s, NULL, 0) : nt_now_ns() & 0xffffff;
    struct shared *sh = mmap(NULL, JOBS_MAX * sizeof(*sh), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct lane *l = calloc(1, sizeof(*l));
    pid_t pids[JOBS_MAX];
    bool ok = true;

    if (jobs < 1 || jobs > JOBS_MAX) {
        fprintf(stderr, "usage: faults [--seed S] [--jobs 1..%d] [--only POINT] [--verbose]\n",
                JOBS_MAX);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    l->rng = seed;
    for (int i = 1; i < argc; i++)
        l->verbose |= strcmp(argv[i], "--verbose") == 0;
    printf("1..1\n# seed %llu, %u jobs\n", (unsigned long long)seed, jobs);
    fflush(stdout);
    for (unsigned j = 0; j < jobs; j++) {
        pids[j] = fork();
        if (pids[j] == 0) {
            atexit(at_exit);
            run_lane(l, &sh[j], j, jobs, only);
            free(l);
            exit(0);
        }
    }
    for (unsigned j = 0; j < jobs; j++) {
        int status = 0;

        waitpid(pids[j], &status, 0);
        if (status != 0)
            printf("# failed at %s\n", sh[j].now);
        ok &= status == 0;
    }
    ok = report(sh, jobs, only) && ok;
    free(l);
    printf("%sok 1 - faults\n", ok ? "" : "not ");
    return !ok;
}

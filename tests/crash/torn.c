/* SPDX-License-Identifier: Apache-2.0
 *
 * torn [--images N] [--seed S] [--jobs J] [--ops N] [--trace FILE] [--only IMAGE] [--keep]
 *
 * Power failures: what a node did to its files under load is recorded, and for random moments of
 * the record a state that the disk may have been in is made, recovered, and compared with what was
 * acknowledged until then. With --trace a record that was kept (a failure keeps it) is used again;
 * --only then repeats one image, --keep leaves its folder.
 */
#include "torn.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 64

struct options {
    unsigned images, jobs, ops;
    uint64_t seed;
    int only;
    bool keep;
    const char *trace;
};

static unsigned long number(int argc, char **argv, const char *name, unsigned long def)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return strtoul(argv[i + 1], NULL, 0);
    }
    return def;
}

static void parse(int argc, char **argv, struct options *o)
{
    o->images = (unsigned)number(argc, argv, "--images", 200);
    o->jobs = (unsigned)number(argc, argv, "--jobs", 2);
    o->ops = (unsigned)number(argc, argv, "--ops", 4000);
    o->seed = number(argc, argv, "--seed", (unsigned long)(nt_now_ns() & 0xffffff));
    o->only = (int)number(argc, argv, "--only", (unsigned long)-1);
    for (int i = 1; i < argc; i++) {
        o->keep |= strcmp(argv[i], "--keep") == 0;
        if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc)
            o->trace = argv[i + 1];
    }
    if (o->images < 1 || o->jobs < 1 || o->jobs > JOBS_MAX || o->ops < 100) {
        fprintf(stderr,
                "usage: torn [--images N] [--seed S] [--jobs 1..%d] [--ops N] "
                "[--trace FILE [--only IMAGE] [--keep]]\n",
                JOBS_MAX);
        exit(2);
    }
    if (o->only >= 0)
        o->jobs = 1;
}

/* Small logs and frequent checkpoints, so that a short load sees many of each; one set of keys for
 * the node that is recorded and for those that recover. */
static void configure(void)
{
    static const char *const keys[][2] = {
        {"HOLDFAST_NODE_POOLS", "hot:posix:2"},
        {"HOLDFAST_NODE_LOG_LEVEL", "error"},
        {"HOLDFAST_META_SHARDS", "2"},
        {"HOLDFAST_META_CHECKPOINT_CHANGES", "512"},
        {"HOLDFAST_META_CHECKPOINT_IDLE", "50ms"},
        {"HOLDFAST_META_RESERVE_BYTES", "1M"},
        {"HOLDFAST_WAL_FILE_BYTES", "4M"},
        {"HOLDFAST_WAL_MAX_BYTES", "64M"},
        {"HOLDFAST_WAL_RESERVE_BYTES", "1M"},
        {"HOLDFAST_SEGMENT_RESERVE_BYTES", "1M"},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        setenv(keys[i][0], keys[i][1], 1);
    if (getenv("HF_PLUGIN_DIR") != NULL)
        setenv("HOLDFAST_NODE_PLUGINS", getenv("HF_PLUGIN_DIR"), 1);
}

/* Images live in memory if there is a file system for that: their syncs mean nothing. */
static void temp_dir(char *out, size_t cap, bool memory)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(out, cap, "%s/hf-torn.XXXXXX",
             memory && access("/dev/shm", W_OK) == 0 ? "/dev/shm"
             : tmp != NULL                           ? tmp
                                                     : "/tmp");
    if (mkdtemp(out) == NULL) {
        perror(out);
        exit(1);
    }
}

static pid_t start_job(const struct options *o, const struct trace *t, const char *top,
                       unsigned job, struct torn_result *res)
{
    struct torn_plan p = {.trace = t,
                          .seed = o->seed,
                          .images = o->images,
                          .job = job,
                          .jobs = o->jobs,
                          .only = o->only};
    char dir[512];
    pid_t pid;

    snprintf(dir, sizeof(dir), "%s/job%u", top, job);
    if (mkdir(dir, 0700) != 0)
        nt_fail(__FILE__, __LINE__, "cannot make %s", dir);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        p.dir = dir;
        torn_play(&p, res);
        exit(0);
    }
    return pid;
}

/* Runs all jobs; false: one failed. The first failure ends the others. */
static bool run_jobs(const struct options *o, const struct trace *t, const char *top,
                     struct torn_result *res)
{
    pid_t pids[JOBS_MAX];
    bool ok = true;

    for (unsigned j = 0; j < o->jobs; j++)
        pids[j] = start_job(o, t, top, j, &res[j]);
    for (unsigned left = o->jobs; left > 0; left--) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, 0);

        for (unsigned j = 0; j < o->jobs; j++) {
            if (pids[j] == pid)
                pids[j] = 0;
            else
                continue;
            if (ok && status != 0)
                printf("# image %u failed (wait status 0x%x): cut at record %llu of %llu\n",
                       res[j].image, (unsigned)status, (unsigned long long)res[j].cut,
                       (unsigned long long)t->n);
        }
        for (unsigned j = 0; j < o->jobs && ok && status != 0; j++) {
            if (pids[j] > 0)
                kill(pids[j], SIGKILL);
        }
        ok = ok && status == 0;
    }
    return ok;
}

static void report(const struct options *o, const struct torn_result *res)
{
    struct torn_result all = {0};

    for (unsigned j = 0; j < o->jobs; j++) {
        all.done += res[j].done;
        all.in_doubt_done += res[j].in_doubt_done;
        all.in_doubt_not += res[j].in_doubt_not;
        all.open_writes += res[j].open_writes;
        all.torn += res[j].torn;
        all.left_out += res[j].left_out;
        all.names_left_out += res[j].names_left_out;
    }
    printf("# %llu images; changes that were not durable: %llu, of these left out %llu, torn %llu; "
           "names left out %llu\n# in doubt: %llu had happened, %llu had not\n",
           (unsigned long long)all.done, (unsigned long long)all.open_writes,
           (unsigned long long)all.left_out, (unsigned long long)all.torn,
           (unsigned long long)all.names_left_out, (unsigned long long)all.in_doubt_done,
           (unsigned long long)all.in_doubt_not);
}

int main(int argc, char **argv)
{
    char top[256], file[300] = "", dir[256];
    struct torn_result *res = mmap(NULL, JOBS_MAX * sizeof(*res), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct options o = {0};
    struct trace t;
    bool ok;

    parse(argc, argv, &o);
    signal(SIGPIPE, SIG_IGN);
    configure();
    temp_dir(top, sizeof(top), true);
    printf("1..1\n# seed %llu, %u images, %u jobs\n", (unsigned long long)o.seed, o.images, o.jobs);
    if (o.trace == NULL) {
        snprintf(file, sizeof(file), "%s/trace", top);
        temp_dir(dir, sizeof(dir), false);
        torn_record(file, dir, o.seed, o.ops);
        o.trace = file;
    }
    torn_trace_open(&t, o.trace);
    printf("# %llu records\n", (unsigned long long)t.n);
    ok = run_jobs(&o, &t, top, res);
    report(&o, res);
    torn_trace_close(&t);
    if (ok && !o.keep)
        nt_remove_tree(top);
    else
        printf("# kept: %s; again: torn --trace %s --seed %llu --images %u --only IMAGE --keep\n",
               top, o.trace, (unsigned long long)o.seed, o.images);
    printf("%sok 1 - torn\n", ok ? "" : "not ");
    return !ok;
}

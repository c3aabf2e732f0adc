/* SPDX-License-Identifier: Apache-2.0
 *
 * Many files in one directory (1,000,000 with --files 1000000; 100,000 by default): the rate of
 * creation does not sink, a listing that goes on meanwhile shows every old name exactly once, and
 * a READDIRPLUS walk (`ls -l`) of it all takes less than 20 s.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cs.h"

#define PARTS   10
#define WALK_NS 20000000000ull

static unsigned file_count(void)
{
    const char *t = getenv("HF_CASES_FILES");

    return t != NULL ? (unsigned)strtoul(t, NULL, 10) : 100000;
}

/* Processor time that the node has used so far, seconds. */
static double cpu_seconds(const struct nt_node *n)
{
    unsigned long long user = 0, sys = 0;
    char path[64], line[1024];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)n->pid);
    f = fopen(path, "re");
    if (f != NULL) {
        char *p = fgets(line, sizeof(line), f) != NULL ? strrchr(line, ')') : NULL;

        if (p == NULL || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
                                &user, &sys) != 2) {
            user = sys = 0;
        }
        fclose(f);
    }
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

struct maker {
    struct nt_node *node;
    struct nt *c;
    struct nt_fh dir;
    unsigned from, to;
    uint32_t bad;
    bool done;
};

static void *make(void *arg)
{
    struct maker *m = arg;

    m->bad = cs_many(m->c, CS_CREATE, &m->dir, NULL, "f", m->from, m->to);
    __atomic_store_n(&m->done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Listings while the last part is created: what was there before is in each exactly once. */
static unsigned list_meanwhile(struct nt_env *e, struct maker *m, unsigned n)
{
    unsigned lists = 0;

    do {
        struct cs_census s;
        unsigned twice = 0;

        cs_census_init(&s, "f", n);
        cs_list(e->root, &e->dir, false, 65536, &s);
        NT_EQ(s.other, 0);
        for (unsigned i = 0; i < n; i++) {
            if (i < m->from ? s.seen[i] != 1 : s.seen[i] > 1) {
                twice++;
            }
        }
        free(s.seen);
        NT_EQ(twice, 0);
        lists++;
    } while (!__atomic_load_n(&m->done, __ATOMIC_ACQUIRE));
    return lists;
}

static void t_million(struct nt_env *e)
{
    unsigned n = file_count(), part = n / PARTS;
    struct maker m = {.dir = e->dir};
    double rate[PARTS], cpu[PARTS], used;
    struct cs_census s;
    pthread_t th;
    uint64_t t0, took;

    m.c = nt_open(&e->node, 0, 0, 0, NULL);
    for (unsigned i = 0; i < PARTS; i++) {
        used = cpu_seconds(&e->node);
        t0 = nt_now_ns();
        NT_OK(cs_many(m.c, CS_CREATE, &e->dir, NULL, "f", i * part, (i + 1) * part));
        rate[i] = part / ((double)(nt_now_ns() - t0) / 1e9);
        cpu[i] = (cpu_seconds(&e->node) - used) / part * 1e6;
        printf("# %u..%u: %.0f creates/s, %.1f us of the node's processor time each\n", i * part,
               (i + 1) * part, rate[i], cpu[i]);
        fflush(stdout);
    }
    printf("# last %u over first: %.2f\n", part, rate[PARTS - 1] / rate[0]);

    m.from = n;
    m.to = n + part;
    t0 = nt_now_ns();
    NT_EQ(pthread_create(&th, NULL, make, &m), 0);
    printf("# %u listings during %u more creates", list_meanwhile(e, &m, m.to), part);
    pthread_join(th, NULL);
    NT_STATUS(m.bad, NFS3_OK);
    printf(" (%.1f s)\n", (double)(nt_now_ns() - t0) / 1e9);

    cs_census_init(&s, "f", n + part);
    t0 = nt_now_ns();
    cs_list(e->root, &e->dir, true, 1u << 20, &s);
    took = nt_now_ns() - t0;
    printf("# ls -l of %u files: %.2f s, %u pages\n", n + part, (double)took / 1e9, s.pages);
    NT_EQ(s.other, 0);
    cs_census_check(&s, 0);
    NT_CHECK(took < WALK_NS);
    /* Small parts measure the machine's other work: there the processor's time must not collapse.
     */
    if (part >= 100000) {
        NT_CHECK(rate[PARTS - 1] >= 0.8 * rate[0]);
    } else {
        NT_CHECK(cpu[PARTS - 1] <= 3 * cpu[0]);
    }
    NT_OK(cs_many(m.c, CS_REMOVE, &e->dir, NULL, "f", 0, n + part));
    nt_close(m.c);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"many files in one directory", t_million, false},
    };

    if (argc > 2 && strcmp(argv[1], "--files") == 0) {
        setenv("HF_CASES_FILES", argv[2], 1);
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * kill9 [--rounds N] [--seed S] [--workers W]: changes over NFS from several connections; the node
 * is killed with signal 9 at a random moment and started again; then everything that was
 * acknowledged must be there, an operation in doubt has happened wholly or not at all, and fsck is
 * clean. The model (the journal of what was acknowledged) lives in this process, which is not
 * killed.
 */
#include "kill9.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKERS_MAX 16
#define MIN_MS      20
#define SPAN_MS     600

static atomic_bool stop_load;

static void *load_thread(void *arg)
{
    struct worker *w = arg;
    struct nt *c = nt_try_open(w->node, w->node->port);
    uint32_t none = 0;

    if (c == NULL) { /* the kill came first */
        return NULL;
    }
    rpc_set_auth(c->rpc, libnfs_authunix_create("kill9", 0, 0, 0, &none));
    c->tolerant = true;
    while (!atomic_load(&stop_load) && k9_step(w, c)) {
    }
    nt_close(c);
    return NULL;
}

static void nap_ms(unsigned ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};

    nanosleep(&ts, NULL); /* the random moment of the kill, not a wait for something */
}

static void fsck(struct nt_node *n)
{
    static const char *const args[] = {"fsck", NULL};
    char out[8192] = "";

    if (nt_cli(n, out, sizeof(out), args) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck finds problems:\n%s", out);
    }
}

static void one_round(struct nt_node *node, struct worker *workers, unsigned n, uint64_t *rng)
{
    pthread_t threads[WORKERS_MAX];
    struct nt *c;

    atomic_store(&stop_load, false);
    for (unsigned i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, load_thread, &workers[i]) != 0) {
            nt_fail(__FILE__, __LINE__, "cannot start a thread");
        }
    }
    nap_ms(MIN_MS + (unsigned)(k9_rand(rng) % SPAN_MS));
    nt_node_kill(node, SIGKILL);
    atomic_store(&stop_load, true);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < n; i++) {
        if (workers[i].error[0] != '\0') {
            nt_fail(__FILE__, __LINE__, "worker %u: %s", i, workers[i].error);
        }
    }
    nt_node_start(node);
    c = nt_open(node, 0, 0, 0, NULL);
    for (unsigned i = 0; i < n; i++) {
        k9_resolve(&workers[i], c);
        k9_verify(&workers[i], c);
    }
    nt_close(c);
    fsck(node);
}

static unsigned long option(int argc, char **argv, const char *name, unsigned long def)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return strtoul(argv[i + 1], NULL, 0);
        }
    }
    return def;
}

static struct nt_node node;
static unsigned round_now;

/* nt_fail ends the program; the log and the round help to find out why. */
static void at_exit(void)
{
    if (node.pid > 0 || round_now > 0) {
        printf("# failed in round %u\n", round_now);
        nt_node_log(&node);
        if (node.pid > 0) {
            kill(node.pid, SIGKILL);
        }
    }
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    unsigned long rounds = option(argc, argv, "--rounds", 20);
    unsigned long n = option(argc, argv, "--workers", 6);
    uint64_t seed = option(argc, argv, "--seed", (unsigned long)(nt_now_ns() & 0xffffff));
    uint64_t rng = seed, acked = 0, done = 0, not_done = 0;
    struct nt *c;
    struct nt_fh root;

    if (n < 1 || n > WORKERS_MAX || rounds < 1) {
        fprintf(stderr, "usage: kill9 [--rounds N] [--seed S] [--workers 1..%d]\n", WORKERS_MAX);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    printf("1..1\n# seed %llu, %lu rounds, %lu workers\n", (unsigned long long)seed, rounds, n);
    fflush(stdout);
    nt_node_start(&node);
    atexit(at_exit);
    c = nt_open(&node, 0, 0, 0, NULL);
    NT_OK(nt_mount(c, node.export_path));
    root = c->r.fh;
    for (unsigned i = 0; i < n; i++) {
        workers[i].node = &node;
        workers[i].id = i;
        workers[i].rng = seed * 1000 + i;
        k9_worker_init(&workers[i], c, &root);
    }
    nt_close(c);
    for (round_now = 1; round_now <= rounds; round_now++) {
        one_round(&node, workers, (unsigned)n, &rng);
    }
    round_now = 0;
    nt_node_remove(&node);
    for (unsigned i = 0; i < n; i++) {
        acked += workers[i].acked;
        done += workers[i].in_doubt_done;
        not_done += workers[i].in_doubt_not;
    }
    printf("# %llu acknowledged changes, in doubt: %llu had happened, %llu had not\n",
           (unsigned long long)acked, (unsigned long long)done, (unsigned long long)not_done);
    printf("ok 1 - kill9\n");
    return acked == 0;
}

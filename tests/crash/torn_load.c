/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a trace: a node with the recorder inside it, under the load of kill9_model.c. It is
 * crashed a few times on the way (HF_FAULT, so that the moment falls between two records) and
 * started again, so that recovery and what it writes are part of the trace; the last time it stops
 * in order.
 */
#include "torn.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "disk.h"

#define SESSIONS 4

struct load {
    struct nt_node node;
    struct worker workers[TORN_WORKERS];
    uint8_t *base;
    unsigned quota; /* changes per worker and session */
};

/* ---- marks ---- */

static void put_mark(uint8_t *base, const struct mark *m, const uint8_t *bytes, uint64_t n)
{
    struct trace_head *h = (struct trace_head *)(void *)base;
    uint64_t at = atomic_fetch_add(&h->end, trace_span(sizeof(*m) + n));
    struct trace_rec *r = (struct trace_rec *)(void *)(base + at);

    r->len = sizeof(*m) + n;
    memcpy(r + 1, m, sizeof(*m));
    if (n > 0)
        memcpy((uint8_t *)(r + 1) + sizeof(*m), bytes, n);
    atomic_thread_fence(memory_order_release);
    *(volatile uint32_t *)&r->kind = TR_MARK;
}

static void journal(struct worker *w, enum k9_event ev, const struct nt_fh *fh)
{
    struct mark m = {.ev = ev, .worker = w->id, .p = w->p};
    const uint8_t *bytes = NULL;
    uint64_t n = 0;

    if (fh != NULL)
        m.fh = *fh;
    if (ev == K9_FOUND) {
        const struct file *f = &w->files[w->p.file];

        m.size = f->size;
        if (f->size > w->p.off) {
            bytes = f->data + w->p.off;
            n = f->size - w->p.off < w->p.len ? f->size - w->p.off : w->p.len;
        }
    }
    put_mark(w->journal_arg, &m, bytes, n);
}

static void make_workers(struct load *l, uint64_t seed)
{
    struct nt *c = nt_open(&l->node, 0, 0, 0, NULL);
    struct mark m = {.ev = MARK_READY};
    struct nt_fh root;

    NT_OK(nt_mount(c, l->node.export_path));
    root = c->r.fh;
    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        struct worker *w = &l->workers[i];
        struct mark made = {.ev = MARK_WORKER, .worker = i};

        w->node = &l->node;
        w->id = i;
        w->rng = seed * 1000 + i;
        w->nslots = TORN_SLOTS;
        k9_worker_init(w, c, &root);
        w->journal = journal;
        w->journal_arg = l->base;
        made.fh = w->top;
        memcpy(made.dirs, w->dirs, sizeof(made.dirs));
        put_mark(l->base, &made, NULL, 0);
    }
    put_mark(l->base, &m, NULL, 0);
    nt_close(c);
}

/* ---- sessions ---- */

static unsigned quota;

static void *load_thread(void *arg)
{
    struct worker *w = arg;
    struct nt *c = nt_open(w->node, 0, 0, 0, NULL);
    uint64_t end = w->acked + quota;

    c->tolerant = true;
    while (w->acked < end && k9_step(w, c)) {
    }
    nt_close(c);
    return NULL;
}

static void run_load(struct load *l)
{
    pthread_t threads[TORN_WORKERS];

    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        if (pthread_create(&threads[i], NULL, load_thread, &l->workers[i]) != 0)
            nt_fail(__FILE__, __LINE__, "cannot start a thread");
    }
    for (unsigned i = 0; i < TORN_WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        if (l->workers[i].error[0] != '\0')
            nt_fail(__FILE__, __LINE__, "worker %u: %s", i, l->workers[i].error);
    }
}

/* How session n ends, if not by its quota. */
static void crash_of(unsigned n, uint64_t *rng, unsigned per_session, char *out, size_t cap)
{
    unsigned some = 1 + (unsigned)(k9_rand(rng) % (per_session / 4 + 1));

    switch (n) {
    case 0:
        snprintf(out, cap, "log.fsync=crash@%u", per_session / 2 + some);
        break;
    case 1:
        snprintf(out, cap, "segment.sync=crash@%u", 4 + some / 4);
        break;
    case 2:
        snprintf(out, cap, "store.commit=crash@%u", 12 + some / 8);
        break;
    default:
        out[0] = '\0';
        break;
    }
}

static void session(struct load *l, unsigned n, uint64_t seed, uint64_t *rng)
{
    char fault[64];
    struct nt *c;

    crash_of(n, rng, l->quota, fault, sizeof(fault));
    setenv("HF_FAULT", fault, 1);
    nt_node_start(&l->node);
    unsetenv("HF_FAULT");
    if (n == 0) {
        make_workers(l, seed);
    } else {
        c = nt_open(&l->node, 0, 0, 0, NULL);
        for (unsigned i = 0; i < TORN_WORKERS; i++) {
            k9_resolve(&l->workers[i], c);
            k9_verify(&l->workers[i], c);
        }
        nt_close(c);
    }
    run_load(l);
    if (nt_node_alive(&l->node))
        nt_node_kill(&l->node, fault[0] != '\0' ? SIGKILL : SIGTERM);
}

/* The first start of all is killed a few times too: what it leaves is there for the next one to
 * see, and need not be durable. */
static void first_starts(struct load *l)
{
    static const char *const faults[] = {
        "segment.open=crash@2",  "segment.made=crash@1", "segment.made=crash@2",
        "log.header=crash@1",    "store.create=crash@1", "shard.format=crash@1",
        "store.committed=crash", "shard.format=crash@1", "shard.made=crash"};
    int status;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        setenv("HF_FAULT", faults[i], 1);
        if (nt_node_try_start(&l->node, &status))
            nt_fail(__FILE__, __LINE__, "%s was not visited", faults[i]);
    }
    unsetenv("HF_FAULT");
}

static void *map_new(const char *file)
{
    int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct trace_head *h;

    if (fd < 0 || ftruncate(fd, (off_t)TRACE_BYTES) != 0)
        nt_fail(__FILE__, __LINE__, "cannot make %s", file);
    h = mmap(NULL, TRACE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (h == MAP_FAILED)
        nt_fail(__FILE__, __LINE__, "cannot map %s", file);
    close(fd);
    atomic_store(&h->end, TRACE_FIRST);
    return h;
}

static void check_trace(const char *file, const char *dir)
{
    struct disk *d = disk_new();
    struct trace t;

    torn_trace_open(&t, file);
    for (uint64_t i = 0; i < t.n; i++)
        disk_apply(d, torn_rec(&t, i));
    if (!disk_matches(d, dir))
        nt_fail(__FILE__, __LINE__, "the recorder missed something");
    disk_free(d);
    torn_trace_close(&t);
}

static struct nt_node *running;

/* A failure must not leave the node behind. */
static void at_exit(void)
{
    if (running != NULL && running->pid > 0)
        kill(running->pid, SIGKILL);
}

void torn_record(const char *file, const char *dir, uint64_t seed, unsigned ops)
{
    struct load *l = calloc(1, sizeof(*l));
    const char *preload = getenv("HF_RECORD_SO");
    uint64_t rng = seed, acked = 0;
    char data[512];

    if (preload == NULL)
        nt_fail(__FILE__, __LINE__, "HF_RECORD_SO must name the recorder");
    running = &l->node;
    atexit(at_exit);
    l->base = map_new(file);
    l->quota = quota = ops / (SESSIONS * TORN_WORKERS) + 1;
    snprintf(l->node.dir, sizeof(l->node.dir), "%s", dir);
    snprintf(data, sizeof(data), "%s/data", dir);
    setenv(TRACE_FILE, file, 1);
    setenv(TRACE_DIR, data, 1);
    setenv("LD_PRELOAD", preload, 1);
    first_starts(l);
    for (unsigned n = 0; n < SESSIONS; n++)
        session(l, n, seed, &rng);
    unsetenv("LD_PRELOAD");
    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        acked += l->workers[i].acked;
        k9_clear(&l->workers[i]);
    }
    printf("# %llu acknowledged changes recorded\n", (unsigned long long)acked);
    munmap(l->base, TRACE_BYTES);
    check_trace(file, data);
    nt_remove_tree(dir);
    running = NULL;
    free(l);
}

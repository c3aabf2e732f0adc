/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads on one connection with several engines: each with files of its own that it knows by
 * heart, and with names that all of them fight for.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lf.h"

#define THREADS 8
#define ROUNDS  600
#define FILES   4
#define BYTES   (700u << 10)

struct file {
    struct hf_file *f;
    uint8_t *mem;
    size_t size;
};

struct worker {
    pthread_t thread;
    struct hf_fs *fs;
    struct hf_handle dir, shared;
    unsigned id, seed;
    atomic_uint *rounds; /* of all workers */
    struct file files[FILES];
    char what[128]; /* went wrong */
};

static bool bad(struct worker *w, const char *what, int64_t rc)
{
    if (w->what[0] == '\0') {
        snprintf(w->what, sizeof(w->what), "thread %u: %s: %lld", w->id, what, (long long)rc);
    }
    return false;
}

static void name_of(const struct worker *w, unsigned k, char *buf, size_t cap)
{
    snprintf(buf, cap, "t%u-%u", w->id, k);
}

static bool do_write(struct worker *w, struct file *x)
{
    size_t off = (size_t)rand_r(&w->seed) % BYTES;
    size_t len = (size_t)rand_r(&w->seed) % (rand_r(&w->seed) % 4 ? 5000u : 200000u) + 1;
    int64_t n;

    len = len > BYTES - off ? BYTES - off : len;
    for (size_t i = 0; i < len; i++) {
        x->mem[off + i] = (uint8_t)rand_r(&w->seed);
    }
    n = hf_write(x->f, x->mem + off, len, off);
    x->size = off + len > x->size ? off + len : x->size;
    return n == (int64_t)len || bad(w, "write", n);
}

static bool do_read(struct worker *w, struct file *x)
{
    static const size_t max = 150000;
    size_t off = (size_t)rand_r(&w->seed) % BYTES, len = (size_t)rand_r(&w->seed) % max;
    int64_t want = off >= x->size ? 0 : (int64_t)(len < x->size - off ? len : x->size - off);
    uint8_t *b = malloc(max);
    int64_t n = hf_read(x->f, b, len, off);
    bool ok = n == want && memcmp(b, x->mem + off, (size_t)n) == 0;

    free(b);
    return ok || bad(w, "read", n);
}

static bool do_cut(struct worker *w, struct file *x)
{
    struct hf_setattr set = {.set = HF_SET_SIZE, .size = (uint64_t)rand_r(&w->seed) % BYTES};
    struct hf_attr a;
    int rc = hf_setattr(w->fs, &lf_root, hf_file_handle(x->f), x->f, &set, &a);

    if (set.size < x->size) {
        memset(x->mem + set.size, 0, x->size - set.size);
    }
    x->size = set.size;
    return (rc == 0 && a.size == x->size) || bad(w, "setattr", rc);
}

static bool do_reopen(struct worker *w, struct file *x, unsigned k)
{
    struct hf_handle h = hf_file_handle(x->f);
    struct hf_attr a;
    char name[32];
    int rc = hf_close(x->f);

    name_of(w, k, name, sizeof(name));
    if (rc == 0) {
        rc = hf_lookup(w->fs, &lf_root, w->dir, name, &a);
    }
    if (rc == 0 && (a.handle.ino != h.ino || a.size != x->size)) {
        return bad(w, "attributes after close", (int64_t)a.size);
    }
    if (rc == 0) {
        rc = hf_open(w->fs, &lf_root, h, O_RDWR, &x->f);
    }
    return rc == 0 || bad(w, "close and open", rc);
}

/* All threads use the same few names: any outcome is right that a file system may give. */
static bool do_fight(struct worker *w)
{
    char a[16], b[16];
    struct hf_attr attr;
    struct hf_file *f;
    int rc, r = rand_r(&w->seed);

    snprintf(a, sizeof(a), "s%d", rand_r(&w->seed) % 4);
    snprintf(b, sizeof(b), "s%d", rand_r(&w->seed) % 4);
    switch (r % 4) {
    case 0:
        rc = hf_create(w->fs, &lf_root, w->shared, a, O_RDWR, 0600, 0, &f, NULL);
        if (rc == 0) { /* it may have no name any more */
            int64_t n = hf_write(f, "x", 1, 0);

            rc = hf_close(f);
            rc = n < 0 ? (int)n : rc;
        }
        return rc == 0 || bad(w, "shared create", rc);
    case 1:
        rc = hf_unlink(w->fs, &lf_root, w->shared, a);
        return rc == 0 || rc == -ENOENT || bad(w, "shared unlink", rc);
    case 2:
        rc = hf_rename(w->fs, &lf_root, w->shared, a, w->shared, b, 0);
        return rc == 0 || rc == -ENOENT || bad(w, "shared rename", rc);
    default:
        rc = hf_lookup(w->fs, &lf_root, w->shared, a, &attr);
        return rc == 0 || rc == -ENOENT || bad(w, "shared lookup", rc);
    }
}

static bool step(struct worker *w)
{
    unsigned k = (unsigned)rand_r(&w->seed) % FILES;
    struct file *x = &w->files[k];
    int rc;

    switch (rand_r(&w->seed) % 16) {
    case 0:
        return do_cut(w, x);
    case 1:
        rc = hf_fsync(x->f, false);
        return rc == 0 || bad(w, "fsync", rc);
    case 2:
        rc = hf_flush(x->f);
        return rc == 0 || bad(w, "flush", rc);
    case 3:
        return do_reopen(w, x, k);
    case 4:
    case 5:
        return do_fight(w);
    case 6:
    case 7:
    case 8:
    case 9:
        return do_read(w, x);
    default:
        return do_write(w, x);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    bool ok = true;

    for (unsigned k = 0; k < FILES && ok; k++) {
        char name[32];
        int rc;

        name_of(w, k, name, sizeof(name));
        rc = hf_create(w->fs, &lf_root, w->dir, name, O_RDWR | O_EXCL, 0644, 0, &w->files[k].f,
                       NULL);
        w->files[k].mem = calloc(1, BYTES);
        ok = rc == 0 || bad(w, "create", rc);
    }
    for (unsigned k = 0; k < ROUNDS && ok; k++) {
        ok = step(w);
        atomic_fetch_add(w->rounds, 1);
    }
    for (unsigned k = 0; k < FILES && ok; k++) {
        int rc = hf_close(w->files[k].f);

        ok = rc == 0 || bad(w, "close", rc);
    }
    return NULL;
}

/* A connection of its own sees what all of them left. */
static void check_all(struct nt_env *e, struct worker *w)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    uint8_t *b = malloc(BYTES);

    for (unsigned i = 0; i < THREADS * FILES; i++) {
        const struct file *x = &w[i / FILES].files[i % FILES];
        struct hf_file *f;
        char name[32];

        name_of(&w[i / FILES], i % FILES, name, sizeof(name));
        f = lf_open_name(fs, dir, name, O_RDONLY);
        LF_IS(hf_read(f, b, BYTES, 0), (int64_t)x->size);
        NT_CHECK(memcmp(b, x->mem, x->size) == 0);
        LF_OK(hf_close(f));
    }
    free(b);
    lf_close(fs);
}

/* Kills the server each time that another quarter of the work is done. */
static void kill_some(struct nt_env *e, struct worker *w)
{
    for (unsigned k = 1; k <= 3; k++) {
        uint64_t deadline = nt_now_ns() + 20000000000ull;

        while (atomic_load(w->rounds) < k * THREADS * ROUNDS / 4 && nt_now_ns() < deadline) {
            struct timespec ts = {.tv_nsec = 1000000};

            nanosleep(&ts, NULL); /* between two looks at a condition with a deadline */
        }
        nt_node_kill(&e->node, SIGKILL);
        nt_node_start(&e->node);
    }
}

static void storm(struct nt_env *e, unsigned engines, bool kills)
{
    struct hf_fs_opts o = {
        .threads = engines, .dirty_max_bytes = 6u << 20, .readahead_max = 4u << 20};
    struct hf_fs *fs = lf_open(e, &o);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_attr shared;
    struct worker *w = calloc(THREADS, sizeof(*w));
    atomic_uint rounds = 0;

    LF_OK(hf_mkdir(fs, &lf_root, dir, "shared", 0755, 0, &shared));
    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.fs = fs,
                               .dir = dir,
                               .shared = shared.handle,
                               .id = i,
                               .rounds = &rounds,
                               .seed = i * 7919 + engines};
        NT_CHECK(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
    }
    if (kills) {
        kill_some(e, w);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (w[i].what[0] != '\0') {
            nt_fail(__FILE__, __LINE__, "%s", w[i].what);
        }
    }
    NT_EQ(lf_stats(fs).open_files, 0);
    NT_EQ(lf_stats(fs).calls_in_flight, 0);
    NT_EQ(lf_stats(fs).write_errors, 0);
    lf_close(fs);
    check_all(e, w);
    for (unsigned i = 0; i < THREADS * FILES; i++) {
        free(w[i / FILES].files[i % FILES].mem);
    }
    free(w);
}

static void t_one_engine(struct nt_env *e)
{
    storm(e, 1, false);
}

static void t_three_engines(struct nt_env *e)
{
    storm(e, 3, false);
}

/* Nobody notices that the server is killed, three times. */
static void t_kills(struct nt_env *e)
{
    storm(e, 2, true);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"one_engine", t_one_engine, true},
        {"three_engines", t_three_engines, true},
        {"kills", t_kills, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

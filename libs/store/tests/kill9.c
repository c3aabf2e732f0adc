/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 of a small engine: operations on a store, their redo in a wal, checkpoints, trimming. The
 * child tells each operation that became durable through a pipe; the parent kills it at some
 * moment, recovers and compares: all that was told is there, and what is there is a whole number of
 * operations. Operation i changes a few keys, all determined by i, and sets the counter to i.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/log.h"
#include "support_store.h"

#define IN_FLIGHT        4
#define CHECKPOINT_EVERY 7
#define COUNTER          "counter"
#define KEYS             400

struct engine {
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_wal *w;
    struct hf_log *l;
    struct hf_store *s;
    char log_dir[1024], store_dir[1024];
    int ack_fd;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned in_flight; /* lock */
};

struct batch {
    struct hf_log_append a;
    struct engine *e;
    uint64_t op;
    struct hf_buf redo;
};

/* ---- operations ---- */

static struct hf_slice op_key(uint64_t *seed, char buf[16])
{
    int n = snprintf(buf, 16, "key%u", (unsigned)(rnd(seed) % KEYS));

    return hf_slice(buf, (size_t)n);
}

/* Applies operation i to s, or to m if s is NULL. */
static void op_apply(uint64_t i, struct hf_store *s, struct model *m)
{
    uint64_t seed = i * 1000003;
    unsigned n = 1 + (unsigned)(rnd(&seed) % 12);
    uint8_t val[6000], count[8];
    char key[16];

    for (unsigned k = 0; k < n; k++) {
        struct hf_slice ks = op_key(&seed, key), vs = {val, 0};
        unsigned t = (unsigned)(rnd(&seed) % 3);
        bool del = rnd(&seed) % 3 == 0;

        vs.len = (size_t)(rnd(&seed) % (rnd(&seed) % 10 == 0 ? sizeof(val) : 200));
        memset(val, (int)(i & 0xff), vs.len);
        if (s)
            cr_assert_eq(del ? hf_store_del(s, t, ks) : hf_store_put(s, t, ks, vs), 0);
        else if (del)
            model_del(m, t, ks);
        else
            model_put(m, t, ks, vs);
    }
    hf_put_le64(count, i);
    if (s)
        cr_assert_eq(hf_store_put(s, 0, hf_slice_str(COUNTER), hf_slice(count, 8)), 0);
    else
        model_put(m, 0, hf_slice_str(COUNTER), hf_slice(count, 8));
}

static uint64_t counter(struct hf_store *s)
{
    struct hf_slice v;

    if (hf_store_get(s, 0, hf_slice_str(COUNTER), &v) != 0 || v.len != 8)
        return 0;
    return hf_get_le64(v.data);
}

/* ---- the engine ---- */

static int replay_one(void *arg, uint64_t pos, struct hf_slice rec)
{
    (void)pos;
    return hf_store_redo_apply(arg, rec);
}

static void engine_open(struct engine *e, const char *dir, struct hf_faults *faults)
{
    struct hf_store_opts so = test_opts(HF_STORE_LMDB, e->store_dir);
    struct hf_wal_opts wo = {.dir = e->log_dir,
                             .shards = 1,
                             .file_bytes = 128u << 10,
                             .max_bytes = 4u << 20,
                             .reserve_bytes = 256u << 10,
                             .faults = faults};
    char err[512];

    so.faults = faults;
    snprintf(e->log_dir, sizeof(e->log_dir), "%s/log", dir);
    snprintf(e->store_dir, sizeof(e->store_dir), "%s/store", dir);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->cond, NULL);
    cr_assert_eq(hf_env_real_new(&e->env), 0);
    cr_assert_eq(hf_loop_new(e->env, "engine", &e->loop), 0);
    cr_assert_eq(hf_wal_open(e->env, &wo, &e->w, err, sizeof(err)), 0, "%s", err);
    e->l = hf_wal_log(e->w, 0);
    cr_assert_eq(hf_store_open(&so, &e->s), 0);
    cr_assert_eq(hf_log_read(e->l, hf_store_applied(e->s) + 1, replay_one, e->s), 0,
                 "the log does not continue the store");
}

static void engine_close(struct engine *e)
{
    hf_wal_close(e->w);
    hf_store_close(e->s);
    hf_loop_free(e->loop);
    hf_env_free(e->env);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->cond);
}

/* In the child: anything unexpected ends it with a code that the parent looks for. */
static void durable(struct hf_task *t)
{
    struct batch *b = hf_container_of(t, struct batch, a.done);
    struct engine *e = b->e;

    if (b->a.status != 0)
        _exit(3);
    if (write(e->ack_fd, &b->op, sizeof(b->op)) != (ssize_t)sizeof(b->op))
        _exit(4);
    pthread_mutex_lock(&e->lock);
    e->in_flight--;
    pthread_cond_signal(&e->cond);
    pthread_mutex_unlock(&e->lock);
    hf_buf_fini(&b->redo);
    free(b);
}

static void wait_below(struct engine *e, unsigned n)
{
    pthread_mutex_lock(&e->lock);
    while (e->in_flight >= n)
        pthread_cond_wait(&e->cond, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void run_op(struct engine *e, uint64_t op)
{
    struct batch *b = calloc(1, sizeof(*b));

    if (!b)
        _exit(5);
    b->e = e;
    b->op = op;
    b->a.done.fn = durable;
    b->a.loop = e->loop;
    op_apply(op, e->s, NULL);
    if (hf_store_redo_take(e->s, &b->redo) != 0)
        _exit(6);
    b->a.parts[0] = hf_buf_slice(&b->redo);
    b->a.nparts = 1;
    wait_below(e, IN_FLIGHT);
    pthread_mutex_lock(&e->lock);
    e->in_flight++;
    pthread_mutex_unlock(&e->lock);
    if (hf_log_append(e->l, &b->a) != 0)
        _exit(7);
}

static void child(const char *dir, int ack_fd, const char *spec)
{
    struct engine e = {.ack_fd = ack_fd};
    struct hf_faults *faults = NULL;
    const char *bad;

    if (hf_faults_new(spec, &faults, &bad) != 0)
        _exit(8);
    engine_open(&e, dir, faults);
    if (hf_loop_start(e.loop) != 0)
        _exit(9);
    for (uint64_t op = counter(e.s) + 1;; op++) {
        run_op(&e, op);
        if (op % CHECKPOINT_EVERY != 0)
            continue;
        wait_below(&e, 1);
        if (hf_store_checkpoint(e.s, hf_log_end(e.l) - 1) != 0)
            _exit(10);
        hf_log_trim(e.l, hf_log_end(e.l));
    }
}

/* Reads acknowledgements until there are `want` or the child is gone. */
static unsigned read_acks(int fd, unsigned want, uint64_t *last)
{
    unsigned n = 0;
    uint64_t op;

    while (n < want && read(fd, &op, sizeof(op)) == (ssize_t)sizeof(op)) {
        cr_assert_gt(op, *last, "acknowledged twice");
        *last = op;
        n++;
    }
    return n;
}

static void check_state(const char *dir, uint64_t acked, struct model *m, uint64_t *model_at)
{
    struct engine e = {0};
    uint64_t n;

    engine_open(&e, dir, NULL);
    n = counter(e.s);
    cr_assert_geq(n, acked, "acknowledged %lu, recovered %lu", (unsigned long)acked,
                  (unsigned long)n);
    while (*model_at < n)
        op_apply(++*model_at, NULL, m);
    cr_assert_eq(*model_at, n, "operations went backwards");
    model_check(m, e.s);
    engine_close(&e);
}

/* One life: until `kill_after` acknowledgements (0: until a fault ends it). */
static void one_life(const char *dir, const char *spec, unsigned kill_after, uint64_t *acked)
{
    int fds[2], status;
    pid_t pid;

    cr_assert_eq(pipe(fds), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        close(fds[0]);
        child(dir, fds[1], spec);
        _exit(11);
    }
    close(fds[1]);
    if (kill_after) {
        cr_assert_eq(read_acks(fds[0], kill_after, acked), kill_after, "the child ended by itself");
        kill(pid, SIGKILL);
    }
    read_acks(fds[0], 1u << 30, acked);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    if (kill_after)
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x",
                  (unsigned)status);
    else
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 137, "status %x", (unsigned)status);
    close(fds[0]);
}

Test(kill9, at_random_moments, .timeout = 110)
{
    char *dir = temp_dir_new();
    struct model m = {0};
    uint64_t acked = 0, model_at = 0, seed = 21;

    for (unsigned round = 0; round < 50; round++) {
        one_life(dir, NULL, 1 + (unsigned)(rnd(&seed) % 90), &acked);
        check_state(dir, acked, &m, &model_at);
    }
    cr_assert_gt(acked, 1000u);
    model_fini(&m);
    temp_dir_free(dir);
}

Test(kill9, at_every_fault_point, .timeout = 110)
{
    const char *points[] = {"store.commit", "store.committed", "log.write", "log.fsync",
                            "log.roll"};
    char *dir = temp_dir_new(), spec[64];
    struct model m = {0};
    uint64_t acked = 0, model_at = 0;

    for (unsigned p = 0; p < 5; p++) {
        for (unsigned n = 1; n <= 4; n++) {
            snprintf(spec, sizeof(spec), "%s=crash@%u", points[p], n);
            one_life(dir, spec, 0, &acked);
            check_state(dir, acked, &m, &model_at);
        }
    }
    cr_assert_gt(acked, 100u);
    model_fini(&m);
    temp_dir_free(dir);
}

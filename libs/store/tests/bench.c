/* SPDX-License-Identifier: Apache-2.0
 *
 * hf-store-bench [FOLDER]: what the disk below FOLDER (default: a new folder in $TMPDIR or /tmp)
 * gives the store and the log. A table as output; compare figures of one machine only.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/log.h"
#include "holdfast/store.h"

#define RECORD_BYTES 600
#define SYNCS        1000

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

_Noreturn static void die(const char *what, int rc)
{
    fprintf(stderr, "hf-store-bench: %s: %s\n", what, hf_err_text(rc));
    exit(1);
}

static void row(const char *what, double value, const char *unit)
{
    printf("%-58s %12.1f %s\n", what, value, unit);
}

/* ---- fdatasync of 600 bytes in three kinds of files ---- */

static void bench_sync(const char *dir, const char *kind, bool allocate, bool written)
{
    static uint8_t zero[1 << 20];
    char path[1200], text[96];
    uint64_t t0, max = 0, sum = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/sync", dir);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || (allocate && fallocate(fd, 0, 0, 16 << 20) != 0))
        die(path, HF_E_IO);
    for (off_t off = 0; written && off < 16 << 20; off += (off_t)sizeof(zero)) {
        if (pwrite(fd, zero, sizeof(zero), off) != (ssize_t)sizeof(zero))
            die(path, HF_E_IO);
    }
    fsync(fd);
    for (unsigned i = 0; i < SYNCS; i++) {
        t0 = now_ns();
        if (pwrite(fd, zero, RECORD_BYTES, (off_t)i * RECORD_BYTES) != RECORD_BYTES ||
            fdatasync(fd) != 0)
            die(path, HF_E_IO);
        t0 = now_ns() - t0;
        sum += t0;
        max = t0 > max ? t0 : max;
    }
    close(fd);
    unlink(path);
    snprintf(text, sizeof(text), "fdatasync after 600 bytes, %s: mean", kind);
    row(text, (double)sum / SYNCS / 1000, "us");
    snprintf(text, sizeof(text), "fdatasync after 600 bytes, %s: max", kind);
    row(text, (double)max / 1000, "us");
}

/* ---- the store ---- */

/* What a create writes: an inode, a name, the parent's inode, a reply slot. */
static void one_create(struct hf_store *s, uint64_t i)
{
    uint8_t key[24] = {0}, val[160] = {0};
    int rc;

    hf_put_be64(key, 1000 + i);
    rc = hf_store_put(s, 0, hf_slice(key, 12), hf_slice(val, sizeof(val)));
    hf_put_be64(key, 2);
    hf_put_be64(key + 8, i * 0x9e3779b97f4a7c15ull);
    if (rc == 0)
        rc = hf_store_put(s, 1, hf_slice(key, 20), hf_slice(val, 48));
    if (rc == 0)
        rc = hf_store_put(s, 0, hf_slice(key, 12), hf_slice(val, sizeof(val)));
    hf_put_be64(key, i % 64);
    if (rc == 0)
        rc = hf_store_put(s, 2, hf_slice(key, 10), hf_slice(val, 120));
    if (rc)
        die("put", rc);
}

static void bench_store(const char *dir)
{
    static const char *const tables[] = {"ino", "dent", "slot"};
    struct hf_store_opts o = {.kind = HF_STORE_LMDB, .tables = tables, .ntables = 3, .format = 1};
    const unsigned n = 200 * 1024;
    struct hf_buf redo = {0};
    struct hf_store *s;
    uint64_t t0, t, commit = 0, commit_max = 0, redo_bytes = 0;
    char path[1200];
    int rc;

    snprintf(path, sizeof(path), "%s/store", dir);
    o.dir = path;
    rc = hf_store_open(&o, &s);
    if (rc)
        die(path, rc);
    t0 = now_ns();
    for (unsigned i = 0; i < n; i++) {
        hf_store_batch(s, i + 1);
        one_create(s, i);
        if (i % 16 == 15) {
            hf_buf_reset(&redo);
            if (hf_store_redo_take(s, &redo) != 0)
                die("redo", HF_E_NOMEM);
            redo_bytes += redo.len;
            hf_store_durable(s, i);
        }
        if (i % 1024 == 1023) {
            t = now_ns();
            rc = hf_store_checkpoint(s, i);
            if (rc)
                die("checkpoint", rc);
            t = now_ns() - t;
            commit += t;
            commit_max = t > commit_max ? t : commit_max;
        }
    }
    t0 = now_ns() - t0;
    row("store: creates (4 puts), a checkpoint per 1024", n * 1e9 / (double)t0, "/s");
    row("store: puts", 4.0 * n * 1e9 / (double)t0, "/s");
    row("store: checkpoint of 1024 creates: mean", (double)commit / (n / 1024) / 1e6, "ms");
    row("store: checkpoint of 1024 creates: max", (double)commit_max / 1e6, "ms");
    row("store: redo of a create", (double)redo_bytes / n, "bytes");
    hf_store_close(s);
    hf_buf_fini(&redo);
}

/* ---- the log ---- */

struct bench_log {
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_log *l;
    unsigned left, in_flight;
};

struct op {
    struct hf_log_append a;
    struct bench_log *b;
};

static void op_start(struct op *op)
{
    static const uint8_t data[RECORD_BYTES];
    int rc;

    op->a.parts[0] = hf_slice(data, sizeof(data));
    op->a.nparts = 1;
    op->b->in_flight++;
    rc = hf_log_append(op->b->l, &op->a);
    if (rc)
        die("append", rc);
}

static void op_done(struct hf_task *t)
{
    struct op *op = hf_container_of(t, struct op, a.done);
    struct bench_log *b = op->b;

    if (op->a.status)
        die("append", op->a.status);
    b->in_flight--;
    if (op->a.pos % 4096 == 0)
        hf_log_trim(b->l, op->a.pos);
    if (b->left > 0) {
        b->left--;
        op_start(op);
    } else if (b->in_flight == 0) {
        hf_loop_stop(b->loop);
    }
}

static void bench_appends(struct bench_log *b, struct hf_wal *w, unsigned depth, unsigned n)
{
    struct op *ops = calloc(depth, sizeof(*ops));
    struct hf_wal_stats s0, s1;
    char text[96];
    uint64_t t0;

    if (!ops)
        die("memory", HF_E_NOMEM);
    hf_wal_stats(w, &s0);
    b->left = n - depth;
    t0 = now_ns();
    for (unsigned i = 0; i < depth; i++) {
        ops[i].b = b;
        ops[i].a.done.fn = op_done;
        ops[i].a.loop = b->loop;
        op_start(&ops[i]);
    }
    if (hf_loop_run(b->loop) != 0)
        die("loop", HF_E_INTERNAL);
    t0 = now_ns() - t0;
    hf_wal_stats(w, &s1);
    snprintf(text, sizeof(text), "wal: appends of 600 bytes, %u in flight", depth);
    row(text, n * 1e9 / (double)t0, "/s");
    snprintf(text, sizeof(text), "wal: records per fdatasync, %u in flight", depth);
    row(text, (double)(s1.records - s0.records) / (double)(s1.fsyncs - s0.fsyncs), "");
    snprintf(text, sizeof(text), "wal: fdatasync mean, %u in flight", depth);
    row(text, (double)(s1.fsync_ns_sum - s0.fsync_ns_sum) / (double)(s1.fsyncs - s0.fsyncs) / 1e3,
        "us");
    free(ops);
}

static void bench_wal(const char *dir)
{
    struct hf_wal_opts o = {.shards = 1};
    struct bench_log b = {0};
    struct hf_wal *w;
    char path[1200], err[512];
    uint64_t t0;
    int rc;

    snprintf(path, sizeof(path), "%s/log", dir);
    o.dir = path;
    if (hf_env_real_new(&b.env) != 0 || hf_loop_new(b.env, "bench", &b.loop) != 0)
        die("loop", HF_E_NOMEM);
    t0 = now_ns();
    rc = hf_wal_open(b.env, &o, &w, err, sizeof(err));
    if (rc)
        die(err, rc);
    row("wal: first open", (double)(now_ns() - t0) / 1e6, "ms");
    b.l = hf_wal_log(w, 0);
    bench_appends(&b, w, 1, 2000);
    bench_appends(&b, w, 32, 40000);
    bench_appends(&b, w, 256, 200000);
    bench_appends(&b, w, 1, 2000);
    hf_wal_close(w);
    hf_loop_free(b.loop);
    hf_env_free(b.env);
}

int main(int argc, char **argv)
{
    const char *base = getenv("TMPDIR");
    char dir[1024];

    snprintf(dir, sizeof(dir), "%s/hf-store-bench-XXXXXX",
             argc > 1 ? argv[1]
             : base   ? base
                      : "/tmp");
    if (!mkdtemp(dir))
        die(dir, HF_E_IO);
    bench_sync(dir, "growing file", false, false);
    bench_sync(dir, "allocated file", true, false);
    bench_sync(dir, "written file", true, true);
    bench_wal(dir);
    bench_store(dir);
    printf("files are in %s\n", dir);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that goes away: what was acknowledged stays, what was buffered arrives, what cannot be
 * written is told.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lf.h"

#define MIB (1u << 20)

static void restart(struct nt_env *e)
{
    nt_node_kill(&e->node, SIGKILL);
    nt_node_start(&e->node);
}

/* With fault points in the new process. */
static void restart_with(struct nt_env *e, const char *faults)
{
    nt_node_kill(&e->node, SIGKILL);
    if (faults != NULL) {
        setenv("HF_FAULT", faults, 1);
    }
    nt_node_start(&e->node);
    unsetenv("HF_FAULT");
}

/* Written, not committed, and then all that the servers had in memory may be gone: an fsync that
 * answers 0 has written it again. */
static void t_verifier(struct nt_env *e)
{
    static const size_t len[] = {3000, 200000, 6 * MIB};
    struct hf_fs *fs = lf_open(e, NULL), *other;
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f[3];
    uint64_t before, all = 3000 + 200000 + 6 * MIB;

    for (uint32_t k = 0; k < 3; k++) {
        char name[16];

        snprintf(name, sizeof(name), "v%u", k);
        f[k] = lf_create(fs, dir, name, 0);
        lf_put(f[k], k, 0, len[k]);
        LF_OK(hf_flush(f[k]));
    }
    NT_CHECK(lf_stats(fs).dirty_bytes >= all);
    restart(e);
    before = lf_stats(fs).write_bytes;
    lf_put(f[2], 9, MIB + 5, 1000); /* newer than what comes again */
    for (uint32_t k = 0; k < 3; k++) {
        LF_OK(hf_fsync(f[k], false));
    }
    NT_CHECK(lf_stats(fs).write_bytes - before >= all);
    NT_EQ(lf_stats(fs).dirty_bytes, 0);
    restart(e);
    other = lf_open(e, NULL);
    for (uint32_t k = 0; k < 3; k++) {
        char name[16];
        struct hf_file *g;

        snprintf(name, sizeof(name), "v%u", k);
        g = lf_open_name(other, dir, name, O_RDONLY);
        NT_EQ(lf_size(other, hf_file_handle(g)), len[k]);
        lf_check(g, k, 0, k < 2 ? len[k] : MIB);
        if (k == 2) {
            lf_check(g, 9, MIB + 5, 1000);
            lf_check(g, 2, MIB + 1005, len[2] - MIB - 1005);
        }
        LF_OK(hf_close(g));
        LF_OK(hf_close(f[k]));
    }
    lf_close(other);
    lf_close(fs);
}

/* What a server has lost is read back all the same, with its size. */
static void t_read_back(struct nt_env *e)
{
    static const size_t len[] = {3000, 200000, 5 * MIB};
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);

    for (uint32_t k = 0; k < 3; k++) {
        char name[16];
        struct hf_file *f;

        snprintf(name, sizeof(name), "r%u", k);
        f = lf_create(fs, dir, name, 0);
        lf_put(f, k, 0, len[k]);
        LF_OK(hf_flush(f));
        restart(e);
        NT_EQ(lf_size(fs, hf_file_handle(f)), len[k]);
        lf_check(f, k, 0, len[k]);
        LF_OK(hf_close(f));
    }
    lf_close(fs);
}

struct stream {
    struct hf_file *f;
    atomic_bool stop;
    atomic_uint_fast64_t written;
    atomic_int failed;
};

static void *stream_main(void *arg)
{
    struct stream *s = arg;
    uint8_t *b = malloc(70000);
    uint64_t off = 0;

    while (!atomic_load(&s->stop) && s->failed == 0) {
        int64_t n;

        nt_pattern(11, off, b, 70000);
        n = hf_write(s->f, b, 70000, off % (48 * MIB));
        s->failed = n == 70000 ? 0 : n < 0 ? (int)n : -EIO;
        off += 70000;
        if (off / 70000 % 100 == 0 && s->failed == 0) {
            s->failed = hf_fsync(s->f, false);
        }
        if (off >= 40 * MIB) {
            off = 0;
        }
        atomic_fetch_add(&s->written, 70000);
    }
    free(b);
    return NULL;
}

static bool wrote_more(void *arg)
{
    struct stream *s = arg;

    return s->failed != 0 || atomic_load(&s->written) > 10 * MIB;
}

/* Writers and readers go on over kill -9, without an error. */
static void t_stream(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct stream s = {.f = lf_create(fs, lf_dir(e, fs), "stream", 0)};
    pthread_t t;

    NT_CHECK(pthread_create(&t, NULL, stream_main, &s) == 0);
    for (unsigned k = 0; k < 3; k++) {
        atomic_store(&s.written, 0);
        lf_until(wrote_more, &s, "the stream goes on");
        restart(e);
    }
    atomic_store(&s.written, 0);
    lf_until(wrote_more, &s, "the stream goes on");
    atomic_store(&s.stop, true);
    pthread_join(t, NULL);
    LF_OK(s.failed);
    LF_OK(hf_fsync(s.f, false));
    restart(e);
    lf_check(s.f, 11, 0, 10 * MIB);
    LF_OK(hf_close(s.f));
    lf_close(fs);
}

/* A file without a name stays as long as anybody has it open: over clients, over kill -9. */
static void t_unlinked(struct nt_env *e)
{
    struct hf_fs *a = lf_open(e, NULL), *b = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, a), h;
    struct hf_file *f = lf_create(a, dir, "gone", 0), *g = NULL;
    struct hf_attr attr;

    h = hf_file_handle(f);
    lf_put(f, 1, 0, 100000);
    LF_OK(hf_fsync(f, false));
    LF_OK(hf_unlink(b, &lf_root, dir, "gone"));
    LF_IS(hf_lookup(b, &lf_root, dir, "gone", &attr), -ENOENT);
    lf_check(f, 1, 0, 100000);
    lf_put(f, 2, 100000, 5000);
    LF_OK(hf_fsync(f, false));
    LF_OK(hf_getattr(a, h, &attr));
    NT_EQ(attr.nlink, 0);
    NT_EQ(attr.size, 105000);
    LF_OK(hf_open(b, &lf_root, h, O_RDONLY, &g));
    lf_check(g, 1, 0, 100000);
    restart(e);
    lf_check(f, 1, 0, 100000);
    lf_check(g, 2, 100000, 5000);
    lf_put(f, 3, 0, 100);
    LF_OK(hf_close(f));
    lf_check(g, 3, 0, 100);
    LF_OK(hf_close(g));
    lf_close(b);
    lf_close(a);
    a = lf_open(e, NULL);
    LF_IS(hf_getattr(a, h, &attr), -ESTALE);
    lf_close(a);
}

/* An error of a buffered write: once by each file that was open then, and by no other. */
static void t_write_error(struct nt_env *e)
{
    static const struct {
        const char *fault;
        int err;
    } cases[] = {{"segment.write=error", -EIO}, {"segment.write=nospace", -ENOSPC}};

    for (unsigned k = 0; k < 2; k++) {
        struct hf_fs *fs = lf_open(e, NULL);
        struct hf_handle dir = lf_dir(e, fs);
        struct hf_file *f, *g, *h;
        char name[16];

        snprintf(name, sizeof(name), "e%u", k);
        f = lf_create(fs, dir, name, 0);
        g = lf_open_name(fs, dir, name, O_RDWR);
        restart_with(e, cases[k].fault);
        lf_put(f, 1, 0, 2 * MIB);
        LF_IS(hf_flush(f), cases[k].err);
        LF_OK(hf_flush(f));
        h = lf_open_name(fs, dir, name, O_RDWR);
        LF_OK(hf_fsync(h, false));
        LF_IS(hf_write(g, "x", 1, 0), cases[k].err);
        NT_CHECK(lf_stats(fs).write_errors > 0);
        restart_with(e, NULL);
        lf_put(f, 2, 0, 2 * MIB);
        LF_OK(hf_close(f));
        LF_OK(hf_fsync(g, false));
        lf_check(h, 2, 0, 2 * MIB);
        LF_OK(hf_close(g));
        LF_OK(hf_close(h));
        lf_close(fs);
    }
}

/* The commit fails: fsync tells, and tells it to each file. */
static void t_commit_error(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "c", 0), *g = lf_open_name(fs, dir, "c", O_RDWR);

    restart_with(e, "segment.sync=error");
    lf_put(f, 1, 0, 9 * MIB);
    LF_OK(hf_flush(f));
    LF_IS(hf_fsync(f, false), -EIO);
    LF_OK(hf_fsync(f, false));
    LF_IS(hf_close(g), -EIO);
    LF_OK(hf_close(f));
    lf_close(fs);
    restart_with(e, NULL);
}

/* Nobody answers: every call ends in time, and so does the connection. */
static void t_timeouts(struct nt_env *e)
{
    struct hf_fs_opts o = {.timeout_ms = 600};
    struct hf_fs *fs = lf_open(e, &o), *none;
    struct hf_handle dir = lf_dir(e, fs);
    struct hf_file *f = lf_create(fs, dir, "t", 0);
    struct hf_attr a;
    uint64_t t0;

    nt_node_kill(&e->node, SIGKILL);
    t0 = nt_now_ns();
    LF_IS(hf_getattr(fs, dir, &a), -ETIMEDOUT);
    LF_IS(hf_mkdir(fs, &lf_root, dir, "d", 0755, 0, &a), -ETIMEDOUT);
    lf_put(f, 1, 0, 1000);
    LF_IS(hf_flush(f), -ETIMEDOUT);
    LF_OK(hf_close(f));
    o.struct_size = sizeof(o);
    o.url = "ipc:///nonexistent/holdfast.sock";
    LF_IS(hf_fs_open(&o, &none), -ETIMEDOUT);
    LF_OK(hf_fs_close(fs));
    NT_CHECK(nt_now_ns() - t0 < 15000000000ull);
    nt_node_start(&e->node);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"verifier", t_verifier, true},       {"read_back", t_read_back, true},
        {"stream", t_stream, true},           {"unlinked", t_unlinked, true},
        {"write_error", t_write_error, true}, {"commit_error", t_commit_error, true},
        {"timeouts", t_timeouts, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The asynchronous form: every call once with its callback on an engine, calls made inside
 * callbacks, many in flight, the limit of calls, waiting inside a callback.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lf.h"

#define MANY  2000
#define CHAIN 100000

/* ---- a script: each callback makes the next call ---- */

enum { STEPS = 24 };

struct script {
    struct hf_fs *fs;
    struct hf_handle dir, file, sub;
    struct hf_file *f;
    pthread_t main;
    atomic_int step;    /* steps done; STEPS: all */
    int64_t failed, at; /* of step `at` */
    char data[4096];
    struct iovec iov[3];
};

static void go_on(struct script *s);

static void ended(struct script *s, int64_t rc, int64_t want)
{
    if (rc != want || pthread_equal(pthread_self(), s->main)) {
        s->failed = rc == want ? -EDEADLK : rc;
        s->at = atomic_load(&s->step);
        atomic_store(&s->step, STEPS);
        return;
    }
    if (atomic_fetch_add(&s->step, 1) + 1 < STEPS) {
        go_on(s);
    }
}

static void on_done(void *arg, int err)
{
    ended(arg, err, 0);
}

static void on_attr(void *arg, int err, const struct hf_attr *a)
{
    struct script *s = arg;

    if (atomic_load(&s->step) == 0 && a != NULL) {
        s->sub = a->handle;
    }
    ended(s, err, 0);
}

static void on_open(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct script *s = arg;

    if (err == 0) {
        s->f = f;
        s->file = a->handle;
    }
    ended(s, err, 0);
}

static void on_written(void *arg, int64_t n)
{
    ended(arg, n, 4096);
}

static void on_data(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    struct script *s = arg;
    size_t at = 0;

    for (unsigned k = 0; k < niov; k++) {
        if (at + iov[k].iov_len > 4096 || memcmp(s->data + at, iov[k].iov_base, iov[k].iov_len)) {
            err = -EIO;
            break;
        }
        at += iov[k].iov_len;
    }
    ended(s, err != 0 ? err : at == n ? (int64_t)n : -EIO, 4096);
}

static void on_value(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    bool ok = niov == 1 && iov[0].iov_len == n && memcmp(iov[0].iov_base, "target!", n) == 0;

    ended(arg, err != 0 ? err : ok ? 0 : -EIO, 0);
}

static void on_list(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    bool ok = niov == 1 && n == 7 && memcmp(iov[0].iov_base, "user.x", 7) == 0;

    ended(arg, err != 0 ? err : ok ? 0 : -EIO, 0);
}

static void on_page(void *arg, int err, const struct hf_dirent *e, size_t n, bool eof)
{
    ended(arg, err != 0 ? err : n == 5 && eof && e[0].cookie == 1 ? 0 : -EIO, 0);
}

static void on_statfs(void *arg, int err, const struct hf_statfs *st)
{
    ended(arg, err != 0 ? err : st->name_max == 255 ? 0 : -EIO, 0);
}

static void go_on(struct script *s)
{
    struct hf_setattr set = {.set = HF_SET_MODE, .mode = 0600};
    struct hf_fs *fs = s->fs;
    const struct hf_user *u = &lf_root;

    switch (atomic_load(&s->step)) {
    case 0:
        hf_mkdir_async(fs, u, s->dir, "sub", 0755, 0, on_attr, s);
        break;
    case 1:
        hf_create_async(fs, u, s->sub, "file", O_RDWR, 0644, 0, on_open, s);
        break;
    case 2:
        hf_write_async(s->f, s->iov, 3, 0, on_written, s);
        break;
    case 3:
        hf_read_async(s->f, 0, 10000, on_data, s);
        break;
    case 4:
        hf_flush_async(s->f, on_done, s);
        break;
    case 5:
        hf_read_async(s->f, 0, 10000, on_data, s);
        break;
    case 6:
        hf_fsync_async(s->f, true, on_done, s);
        break;
    case 7:
        hf_close_async(s->f, on_done, s);
        break;
    case 8:
        hf_lookup_async(fs, u, s->sub, "file", on_attr, s);
        break;
    case 9:
        hf_getattr_async(fs, s->file, on_attr, s);
        break;
    case 10:
        hf_setattr_async(fs, u, s->file, NULL, &set, on_attr, s);
        break;
    case 11:
        hf_access_async(fs, u, s->file, 4, on_done, s);
        break;
    case 12:
        hf_open_async(fs, u, s->file, O_RDONLY, on_open, s);
        break;
    case 13:
        hf_close_async(s->f, on_done, s);
        break;
    case 14:
        hf_link_async(fs, u, s->file, s->sub, "link", on_attr, s);
        break;
    case 15:
        hf_symlink_async(fs, u, s->sub, "sym", "target!", on_attr, s);
        break;
    case 16:
        hf_readdir_async(fs, u, s->sub, 0, 100, HF_READDIR_PLUS, on_page, s);
        break;
    case 17:
        hf_rename_async(fs, u, s->sub, "link", s->sub, "renamed", 0, on_done, s);
        break;
    case 18:
        hf_setxattr_async(fs, u, s->file, "user.x", "target!", 7, 0, on_done, s);
        break;
    case 19:
        hf_getxattr_async(fs, u, s->file, "user.x", on_value, s);
        break;
    case 20:
        hf_listxattr_async(fs, u, s->file, on_list, s);
        break;
    case 21:
        hf_removexattr_async(fs, u, s->file, "user.x", on_done, s);
        break;
    case 22:
        hf_statfs_async(fs, on_statfs, s);
        break;
    case 23:
        hf_unlink_async(fs, u, s->sub, "renamed", on_done, s);
        break;
    }
}

static bool script_ended(void *arg)
{
    return atomic_load(&((struct script *)arg)->step) == STEPS;
}

static void run_script(struct nt_env *e, unsigned threads, const char *dir)
{
    struct hf_fs_opts o = {.threads = threads};
    struct hf_fs *fs = lf_open(e, &o);
    struct script s = {.fs = fs, .main = pthread_self()};
    struct hf_attr a;

    LF_OK(hf_mkdir(fs, &lf_root, lf_dir(e, fs), dir, 0755, 0, &a));
    s.dir = a.handle;
    nt_pattern(1, 0, (uint8_t *)s.data, sizeof(s.data));
    s.iov[0] = (struct iovec){s.data, 1};
    s.iov[1] = (struct iovec){s.data + 1, 4000};
    s.iov[2] = (struct iovec){s.data + 4001, 95};
    go_on(&s);
    lf_until(script_ended, &s, "the script");
    if (s.failed != 0) {
        nt_fail(__FILE__, __LINE__, "step %lld ends with %lld", (long long)s.at,
                (long long)s.failed);
    }
    lf_close(fs);
}

static void t_script(struct nt_env *e)
{
    run_script(e, 1, "one");
    run_script(e, 4, "four");
}

/* ---- calls that end at once, made in each other's callbacks ---- */

struct chain {
    struct hf_file *f;
    struct iovec iov;
    unsigned left;
    int64_t failed;
    atomic_bool done;
};

static void chain_next(void *arg, int64_t n)
{
    struct chain *c = arg;

    if (n != 1 || c->left == 0) {
        c->failed = n == 1 ? 0 : n;
        atomic_store(&c->done, true);
        return;
    }
    c->left--;
    hf_write_async(c->f, &c->iov, 1, CHAIN - 1 - c->left, chain_next, c);
}

static bool chain_done(void *arg)
{
    return atomic_load(&((struct chain *)arg)->done);
}

/* A hundred thousand calls within callbacks need no deeper stack than ten. */
static void t_chain(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct chain c = {.f = lf_create(fs, lf_dir(e, fs), "c", 0), .iov = {"x", 1}, .left = CHAIN};

    chain_next(&c, 1);
    lf_until(chain_done, &c, "the chain");
    LF_OK(c.failed);
    NT_EQ(lf_size(fs, hf_file_handle(c.f)), CHAIN);
    LF_OK(hf_close(c.f));
    lf_close(fs);
}

/* ---- many, and more than are allowed ---- */

struct many {
    atomic_uint ok, again, other;
};

static void many_done(void *arg, int err, const struct hf_attr *a)
{
    struct many *m = arg;

    (void)a;
    atomic_fetch_add(err == 0 ? &m->ok : err == -EAGAIN ? &m->again : &m->other, 1);
}

static bool many_ended(void *arg)
{
    struct many *m = arg;

    return atomic_load(&m->ok) + atomic_load(&m->again) + atomic_load(&m->other) == MANY;
}

static void closed(void *arg, int err)
{
    atomic_store((atomic_int *)arg, err);
}

static bool is_closed(void *arg)
{
    return atomic_load((atomic_int *)arg) != 1;
}

/* A file can be closed all the same. */
static void t_limit(struct nt_env *e)
{
    struct hf_fs_opts o = {.max_calls = 100};
    struct hf_fs *fs = lf_open(e, &o);
    struct hf_file *f = lf_create(fs, lf_dir(e, fs), "f", 0);
    struct many m = {0};
    atomic_int rc = 1;

    for (unsigned k = 0; k < MANY; k++) {
        hf_getattr_async(fs, hf_root(fs), many_done, &m);
        NT_CHECK(lf_stats(fs).calls_in_flight <= 100);
    }
    hf_close_async(f, closed, &rc);
    lf_until(is_closed, &rc, "the file is closed");
    LF_OK(atomic_load(&rc));
    lf_until(many_ended, &m, "all calls have ended");
    NT_CHECK(atomic_load(&m.ok) >= 100 && atomic_load(&m.other) == 0);
    NT_CHECK(atomic_load(&m.again) > 0);
    lf_close(fs);
}

static void t_many(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct hf_handle dir = lf_dir(e, fs);
    struct many m = {0};
    struct hf_attr a;

    for (unsigned k = 0; k < MANY; k++) {
        char name[16]; /* needed until the call returns, not longer */

        snprintf(name, sizeof(name), "m%u", k);
        hf_mknod_async(fs, &lf_root, dir, name, S_IFREG | 0600, 0, 0, 0, many_done, &m);
        memset(name, 'z', sizeof(name));
    }
    lf_until(many_ended, &m, "all calls have ended");
    NT_EQ(atomic_load(&m.ok), MANY);
    LF_OK(hf_lookup(fs, &lf_root, dir, "m1999", &a));
    lf_close(fs);
}

/* ---- waiting inside a callback ---- */

struct inside {
    struct hf_fs *fs;
    struct hf_handle h;
    int wait_rc, close_rc;
    atomic_bool done;
};

static void inside_done(void *arg, int err, const struct hf_attr *a)
{
    struct inside *s = arg;
    struct hf_attr b;

    (void)err;
    (void)a;
    s->wait_rc = hf_getattr(s->fs, s->h, &b);
    s->close_rc = hf_fs_close(s->fs);
    atomic_store(&s->done, true);
}

static bool inside_ended(void *arg)
{
    return atomic_load(&((struct inside *)arg)->done);
}

static void t_deadlock(struct nt_env *e)
{
    struct hf_fs *fs = lf_open(e, NULL);
    struct inside s = {.fs = fs, .h = hf_root(fs)};

    hf_getattr_async(fs, s.h, inside_done, &s);
    lf_until(inside_ended, &s, "the callback");
    LF_IS(s.wait_rc, -EDEADLK);
    LF_IS(s.close_rc, -EDEADLK);
    lf_close(fs);
}

/* ---- the end with calls under way ---- */

static void t_shutdown(struct nt_env *e)
{
    struct hf_fs_opts o = {.timeout_ms = 1000};
    struct hf_fs *fs = lf_open(e, &o);
    struct many m = {0};

    for (unsigned k = 0; k < MANY; k++) {
        hf_getattr_async(fs, hf_root(fs), many_done, &m);
    }
    LF_OK(hf_fs_close(fs)); /* all callbacks have come when it returns */
    NT_CHECK(many_ended(&m));
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"script", t_script, true}, {"chain", t_chain, true},       {"limit", t_limit, true},
        {"many", t_many, true},     {"deadlock", t_deadlock, true}, {"shutdown", t_shutdown, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and what only they hold, in the shard engine: in virtual time (leases end by the service's
 * own looking, over its log and its restarts), through RPC, and over crashes of the process.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expire.h"
#include "holdfast/err.h"
#include "support_meta.h"

#define SEC     UINT64_C(1000000000)
#define LEASE   (90 * SEC)
#define EXPIRED (LEASE + 61 * SEC)

/* ---- one shard in virtual time ---- */

struct world {
    struct fixture f; /* its folder */
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_wal *wal;
    struct meta_metrics metrics;
    struct shard *shard;
    struct expire expire;
    char shard_dir[96], wal_dir[96];
    uint64_t random;
};

static void world_open(struct world *w)
{
    struct hf_meta_format format = {.root_gen = 1, .now_ns = 1, .map = &w->f.map};
    char err[512];

    cr_assert_eq(hf_wal_open(w->env, &(struct hf_wal_opts){.dir = w->wal_dir, .shards = 1}, &w->wal,
                             err, sizeof(err)),
                 0, "%s", err);
    cr_assert_eq(shard_open(&(struct shard_conf){.loop = w->loop,
                                                 .env = w->env,
                                                 .metrics = &w->metrics,
                                                 .wal = hf_wal_log(w->wal, 0),
                                                 .dir = w->shard_dir,
                                                 .inline_max = 8192,
                                                 .checkpoint_changes = 100000,
                                                 .checkpoint_idle_ns = UINT64_C(1) << 62,
                                                 .map_bytes = 64 << 20,
                                                 .reserve_bytes = 1 << 20},
                            &format, &w->shard, err, sizeof(err)),
                 0, "%s", err);
    cr_assert_eq(hf_meta_set_map(w->shard->meta, &w->f.map), 0);
    w->expire = (struct expire){0};
}

static void world_new(struct world *w)
{
    memset(w, 0, sizeof(*w));
    fixture_init(&w->f, NULL);
    (void)snprintf(w->shard_dir, sizeof(w->shard_dir), "%s/shard", w->f.dir);
    (void)snprintf(w->wal_dir, sizeof(w->wal_dir), "%s/wal", w->f.dir);
    cr_assert_eq(hf_env_sim_new(1, INT64_C(1700000000000000000), &w->env), 0);
    cr_assert_eq(hf_loop_new(w->env, "shard", &w->loop), 0);
    world_open(w);
}

static void advance(struct world *w, uint64_t ns)
{
    (void)hf_sim_run(w->env, hf_env_mono_ns(w->env) + ns);
}

/* In the service's order; the loop's timers go with it. */
static void world_end(struct world *w)
{
    hf_wal_close(w->wal);
    shard_free(w->shard);
    hf_loop_free(w->loop);
}

/* The process is gone: what was not sent to the log is lost; LMDB has had no checkpoint. */
static void world_crash(struct world *w)
{
    world_end(w);
    cr_assert_eq(hf_loop_new(w->env, "shard", &w->loop), 0);
    advance(w, SEC);
    world_open(w);
}

static void world_free(struct world *w)
{
    world_end(w);
    hf_env_free(w->env);
    fixture_fini(&w->f);
}

static size_t rows(struct world *w, const char *table)
{
    for (unsigned t = 0; t < hf_meta_ntables; t++)
        if (strcmp(hf_meta_tables[t], table) == 0)
            return (size_t)hf_store_count(w->shard->store, t);
    cr_assert(false, "no table %s", table);
    return 0;
}

/* One operation, as a change of the shard's own. */
struct run {
    struct world *w;
    struct hf_meta_op op;
    struct hf_arena arena;
    void (*fn)(struct run *r, ProtobufCService *meta);
    uint64_t session, ino;
    uint32_t gen;
    const char *name;
    int status;
};

static int run_change(struct shard *s, void *arg)
{
    struct run *r = arg;

    r->op = (struct hf_meta_op){.now_ns = shard_now_ns(s),
                                .random = ++r->w->random,
                                .may_grow = true,
                                .arena = &r->arena,
                                .boot = s->boot,
                                .session = r->session};
    hf_arena_init(&r->arena, 0);
    r->fn(r, hf_meta_service(s->meta));
    hf_store_untracked(s->store, false);
    r->status = r->op.status;
    hf_arena_fini(&r->arena);
    return 0;
}

static int run(struct world *w, struct run *r)
{
    r->w = w;
    for (unsigned k = 0; !shard_change(w->shard, run_change, r); k++) {
        cr_assert_lt(k, 100, "a checkpoint that does not end");
        advance(w, SEC / 1000);
    }
    return r->status;
}

static struct run *run_of(void *data)
{
    return hf_container_of((struct hf_meta_op *)data, struct run, op);
}

static void on_session(const Hf__SessionOpenRep *p, void *data)
{
    (void)p;
    (void)data;
}

static void fn_session(struct run *r, ProtobufCService *meta)
{
    Hf__SessionOpenReq q = HF__SESSION_OPEN_REQ__INIT;

    q.session = r->session;
    q.slots = 4;
    q.opens = true;
    hf__meta__session_open(meta, &q, on_session, &r->op);
}

static void on_create(const Hf__CreateRep *p, void *data)
{
    struct run *r = run_of(data);

    if (p->obj) {
        r->ino = p->obj->ino;
        r->gen = p->obj->gen;
    }
}

static void fn_create(struct run *r, ProtobufCService *meta)
{
    Hf__CreateReq q = HF__CREATE_REQ__INIT;
    Hf__Cred c = HF__CRED__INIT;

    q.cred = &c;
    q.dir = HF_META_ROOT_INO;
    q.gen = 1;
    q.name = (ProtobufCBinaryData){strlen(r->name), (uint8_t *)(uintptr_t)r->name};
    q.open = true;
    hf__meta__create(meta, &q, on_create, &r->op);
}

static void on_remove(const Hf__RemoveRep *p, void *data)
{
    (void)p;
    (void)data;
}

static void fn_remove(struct run *r, ProtobufCService *meta)
{
    Hf__RemoveReq q = HF__REMOVE_REQ__INIT;
    Hf__Cred c = HF__CRED__INIT;

    q.cred = &c;
    q.dir = HF_META_ROOT_INO;
    q.gen = 1;
    q.name = (ProtobufCBinaryData){strlen(r->name), (uint8_t *)(uintptr_t)r->name};
    hf__meta__remove(meta, &q, on_remove, &r->op);
}

/* n files that are only open, by this session. */
static void make_orphans(struct world *w, uint64_t session, unsigned n)
{
    char name[32];

    for (unsigned k = 0; k < n; k++) {
        (void)snprintf(name, sizeof(name), "s%u-%u", (unsigned)session, k);
        cr_assert_eq(run(w, &(struct run){.fn = fn_create, .session = session, .name = name}), 0);
        cr_assert_eq(run(w, &(struct run){.fn = fn_remove, .name = name}), 0);
    }
}

static void renew(struct world *w, uint64_t session)
{
    cr_assert_eq(run(w, &(struct run){.fn = fn_session, .session = session}), 0);
}

/* Many more than one slice; the session that renews itself keeps its own. */
Test(opens, leases_end_in_slices)
{
    struct world w;

    world_new(&w);
    renew(&w, 1);
    renew(&w, 2);
    make_orphans(&w, 1, 1000);
    make_orphans(&w, 2, 10);
    cr_assert_eq(rows(&w, "orph"), 1010);
    for (unsigned k = 0; k < 3; k++) {
        expire_step(w.shard, &w.expire);
        cr_assert_eq(rows(&w, "orph"), 1010);
        advance(&w, EXPIRED / 3 + SEC);
        renew(&w, 2);
    }
    for (unsigned k = 0; k < 20 && rows(&w, "orph") > 10; k++) {
        expire_step(w.shard, &w.expire);
        advance(&w, SEC);
    }
    cr_assert_eq(rows(&w, "orph"), 10);
    cr_assert_eq(rows(&w, "opn"), 20);
    cr_assert_eq(rows(&w, "ino"), 11);
    world_free(&w);
}

/* Replayed from the log alone, the end is the same. */
Test(opens, replay)
{
    struct world w;

    world_new(&w);
    renew(&w, 1);
    make_orphans(&w, 1, 100);
    advance(&w, SEC); /* the batch is sent */
    world_crash(&w);
    cr_assert_eq(rows(&w, "orph"), 100);
    cr_assert_eq(rows(&w, "opn"), 200);
    renew(&w, 1); /* not late: the lease begins anew */
    advance(&w, EXPIRED);
    for (unsigned k = 0; k < 5; k++)
        expire_step(w.shard, &w.expire);
    cr_assert_eq(rows(&w, "orph"), 0);
    advance(&w, SEC);
    world_crash(&w);
    cr_assert_eq(rows(&w, "orph"), 0);
    cr_assert_eq(rows(&w, "opn"), 0);
    cr_assert_eq(rows(&w, "ino"), 1);
    world_free(&w);
}

/* Everybody crashed, and nobody comes back: they go after one lease of the new start. */
Test(opens, nobody_comes_back)
{
    struct world w;

    world_new(&w);
    renew(&w, 1);
    make_orphans(&w, 1, 20);
    advance(&w, SEC);
    world_crash(&w);
    advance(&w, 10 * EXPIRED); /* the shard was away: nobody could renew himself */
    renew(&w, 2);
    expire_step(w.shard, &w.expire);
    cr_assert_eq(rows(&w, "orph"), 20);
    advance(&w, EXPIRED);
    expire_step(w.shard, &w.expire);
    cr_assert_eq(rows(&w, "orph"), 0);
    cr_assert_eq(rows(&w, "opn"), 0);
    world_free(&w);
}

/* ---- through RPC, and over crashes ---- */

static void no_finding(void *arg, const Hf__FsckFinding *f)
{
    (*(unsigned *)arg)++;
    (void)fprintf(stderr, "finding: %s %s\n", f->kind, f->detail);
}

static uint64_t check_clean(struct fixture *f)
{
    unsigned n = 0;
    Hf__FsckRep rep;

    cr_assert_eq(hf_metasvc_fsck(f->svc, false, no_finding, &n, &rep, f->err, sizeof(f->err)), 0,
                 "%s", f->err);
    cr_assert_eq(n, 0);
    return rep.inodes;
}

Test(opens, a_removed_file_stays_over_a_restart)
{
    struct fixture f;
    struct result r;

    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(do_session_open(&f, 7), 0);
    r = do_create_open(&f, "x", 7, 0, 1);
    cr_assert_eq(r.status, 0);
    cr_assert_eq(do_write(&f, r.ino, r.gen, "hello", 5, HF__STABLE__FILE_SYNC).status, 0);
    cr_assert_eq(do_remove(&f, "x").status, 0);
    cr_assert_eq(check_clean(&f), 2);
    fixture_stop(&f);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(do_lookup(&f, "x").status, HF_E_NOENT);
    cr_assert_eq(do_write(&f, r.ino, r.gen, "HELLO", 5, HF__STABLE__FILE_SYNC).status, 0);
    cr_assert_eq(check_clean(&f), 2);
    cr_assert_eq(do_close(&f, r.ino, 7, 0, 2), 0);
    cr_assert_eq(do_close(&f, r.ino, 7, 0, 2), 0, "a repeated call");
    cr_assert_eq(do_session_close(&f, 7), 0);
    cr_assert_eq(do_write(&f, r.ino, r.gen, "gone?", 5, HF__STABLE__FILE_SYNC).status, HF_E_STALE);
    cr_assert_eq(check_clean(&f), 2, "nobody sees it, but others may yet open it again");
    fixture_fini(&f);
}

/* The child creates files open, removes and tells of each; every second one it closes. Whatever it
 * was in when it ended: the names are gone, nothing is found wrong, and with the session everything
 * goes. */
static void crash_at(const char *point)
{
    char path[4096], fd[16];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
    unsigned i, acked = 0;
    int pipes[2], status = 0;
    struct fixture f;
    pid_t pid;

    fixture_init(&f, NULL);
    cr_assert_gt(len, 0);
    path[len] = '\0';
    (void)snprintf(strrchr(path, '/'), 32, "/hf-meta-crash-child");
    cr_assert_eq(pipe(pipes), 0);
    (void)snprintf(fd, sizeof(fd), "%d", pipes[1]);
    pid = fork();
    if (pid == 0) {
        (void)execl(path, path, f.dir, point, fd, "opens", (char *)NULL);
        _exit(96);
    }
    (void)close(pipes[1]);
    while (read(pipes[0], &i, sizeof(i)) == (ssize_t)sizeof(i))
        acked = i + 1;
    (void)close(pipes[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 137, "%s: child status %x after %u",
              point, status, acked);
    cr_assert_eq(fixture_start(&f), 0, "%s: %s", point, f.err);
    for (i = 0; i < acked; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "o%u", i);
        cr_assert_eq(do_lookup(&f, name).status, HF_E_NOENT, "%s: %s was removed", point, name);
    }
    uint64_t inodes = check_clean(&f);
    cr_assert_geq(inodes, acked / 2, "%s: what was not closed is there", point);
    cr_assert_eq(do_session_close(&f, 7), 0);
    (void)check_clean(&f);
    fixture_fini(&f);
}

Test(opens, crash_before_the_log)
{
    crash_at("shard.append=crash@60");
}

Test(opens, crash_in_the_log)
{
    crash_at("log.fsync=crash@60");
}

Test(opens, crash_when_durable)
{
    crash_at("shard.durable=crash@60");
}

Test(opens, crash_in_a_checkpoint)
{
    crash_at("store.commit=crash@9");
}

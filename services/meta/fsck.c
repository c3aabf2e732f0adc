/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of a file system while it serves: each shard makes a checkpoint, a snapshot of it is
 * checked on this thread, then the segments' chunks are compared with the layouts found.
 */
#include "fsck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define REPORT_MAX 1000 /* findings carried in one reply; all are counted */

void fsck_report(struct fsck *f, const char *kind, uint64_t ino, struct hf_slice name,
                 const char *detail)
{
    Hf__FsckFinding finding = HF__FSCK_FINDING__INIT;

    f->totals->problems++;
    /* protobuf-c's fields are not const; the receiver only reads */
    finding.kind = (char *)(uintptr_t)kind;
    finding.ino = ino;
    finding.name.data = (uint8_t *)(uintptr_t)name.data;
    finding.name.len = name.len;
    finding.detail = (char *)(uintptr_t)detail;
    f->fn(f->arg, &finding);
}

/* ---- layouts ---- */

static uint64_t layout_key(uint64_t ino, uint32_t gen)
{
    return hf_hash_u64(ino) ^ gen;
}

void fsck_layouts_clear(struct fsck *f)
{
    size_t pos = 0;
    uint64_t key;
    void *value;

    while (hf_map_next(&f->layouts, &pos, &key, &value))
        free(value);
    hf_map_fini(&f->layouts);
}

const struct fsck_layout *fsck_layout_find(const struct fsck *f, uint64_t ino, uint32_t gen)
{
    return hf_map_get(&f->layouts, layout_key(ino, gen));
}

static void on_layout(void *arg, uint64_t ino, uint32_t gen, uint32_t nchunks,
                      const uint32_t *segments, uint32_t nsegments, uint64_t size, bool gc)
{
    struct fsck *f = arg;
    struct fsck_layout *l;

    (void)size;
    (void)gc;
    if (!f->want_layouts)
        return;
    l = hf_map_get(&f->layouts, layout_key(ino, gen));
    if (l) { /* another range of one that is to be freed */
        if (l->nchunks < nchunks)
            l->nchunks = nchunks;
        return;
    }
    l = malloc(sizeof(*l) + nsegments * sizeof(uint32_t));
    if (!l || hf_map_put(&f->layouts, layout_key(ino, gen), l)) {
        free(l);
        f->status = HF_E_NOMEM;
        return;
    }
    l->gen = gen;
    l->nchunks = nchunks;
    l->nsegments = nsegments;
    memcpy(l->segments, segments, nsegments * sizeof(uint32_t));
}

static void on_problem(void *arg, const char *kind, uint64_t ino, struct hf_slice name,
                       const char *detail)
{
    fsck_report(arg, kind, ino, name, detail);
}

/* ---- one shard ---- */

/* Asks the shard's thread for a checkpoint and waits for it. */
struct checkpoint_wait {
    struct hf_task task;
    struct shard *shard;
    sem_t done;
};

static void on_checkpointed(void *arg)
{
    struct checkpoint_wait *w = arg;

    (void)sem_post(&w->done);
}

static void ask_checkpoint(struct hf_task *t)
{
    struct checkpoint_wait *w = hf_container_of(t, struct checkpoint_wait, task);

    shard_drain(w->shard, on_checkpointed, w);
}

static void checkpoint(struct shard *s)
{
    struct checkpoint_wait w = {.task.fn = ask_checkpoint, .shard = s};

    if (sem_init(&w.done, 0, 0))
        return;
    hf_loop_post(s->conf.loop, &w.task);
    while (sem_wait(&w.done))
        ;
    (void)sem_destroy(&w.done);
}

static int check_shard(struct fsck *f, struct shard *s)
{
    struct hf_meta_check c = {
        .shard = s->conf.id, .arg = f, .problem = on_problem, .layout = on_layout};
    struct hf_store_snap *snap;
    int rc;

    checkpoint(s);
    rc = hf_store_snap_open(s->store, &snap);
    if (rc)
        return rc;
    rc = hf_meta_check(snap, &c);
    hf_store_snap_close(snap);
    f->totals->inodes += c.inodes;
    f->totals->dentries += c.dentries;
    f->totals->bytes += c.bytes;
    return rc ? rc : f->status;
}

int fsck_meta(struct fsck *f, char *err, size_t err_bytes)
{
    for (unsigned i = 0; i < f->svc->nshards; i++) {
        int rc = check_shard(f, f->svc->shards[i]);

        if (rc) {
            (void)snprintf(err, err_bytes, "shard %u: check failed: %s", i, hf_err_text(rc));
            return rc;
        }
    }
    return 0;
}

int hf_metasvc_fsck(struct hf_metasvc *s, bool chunks,
                    void (*fn)(void *arg, const Hf__FsckFinding *f), void *arg, Hf__FsckRep *ret,
                    char *err, size_t err_bytes)
{
    struct fsck f = {.svc = s, .fn = fn, .arg = arg, .totals = ret, .want_layouts = chunks};
    int rc;

    hf__fsck_rep__init(ret);
    (void)pthread_mutex_lock(&s->fsck_lock);
    rc = chunks ? fsck_chunks(&f, err, err_bytes) : fsck_meta(&f, err, err_bytes);
    (void)pthread_mutex_unlock(&s->fsck_lock);
    fsck_layouts_clear(&f);
    return rc;
}

/* ---- the call ---- */

struct fsck_call {
    struct hf_work work;
    struct meta_thread *t;
    struct hf_rpc_req *req;
    bool chunks;
    int status;
    char err[512];
    Hf__FsckRep rep;
    Hf__FsckFinding findings[REPORT_MAX];
    Hf__FsckFinding *ptrs[REPORT_MAX];
    struct hf_arena texts;
};

static void keep_finding(void *arg, const Hf__FsckFinding *f)
{
    struct fsck_call *c = arg;
    size_t i = c->rep.n_findings;
    Hf__FsckFinding *to;

    if (i == REPORT_MAX)
        return;
    to = &c->findings[i];
    *to = *f;
    to->kind = hf_arena_strdup(&c->texts, f->kind);
    to->detail = hf_arena_strdup(&c->texts, f->detail);
    to->name.data = hf_arena_dup(&c->texts, f->name.data, f->name.len);
    if (!to->kind || !to->detail || (f->name.len && !to->name.data))
        return;
    c->ptrs[i] = to;
    c->rep.n_findings++;
}

static void run_check(struct hf_work *w)
{
    struct fsck_call *c = hf_container_of(w, struct fsck_call, work);
    Hf__FsckRep totals;
    size_t n;

    c->status =
        hf_metasvc_fsck(c->t->svc, c->chunks, keep_finding, c, &totals, c->err, sizeof(c->err));
    n = c->rep.n_findings;
    c->rep = totals;
    c->rep.n_findings = n;
    c->rep.findings = c->ptrs;
}

static void on_checked(struct hf_task *t)
{
    struct fsck_call *c =
        hf_container_of(hf_container_of(t, struct hf_work, done), struct fsck_call, work);

    if (c->status)
        hf_log(c->t->svc->log, HF_ERROR, "meta", "fsck: %s", c->err);
    hf_rpc_reply(c->req, c->status, &c->rep.base, NULL, 0);
    hf_arena_fini(&c->texts);
    free(c);
}

void fsck_serve(struct meta_thread *t, struct hf_rpc_req *req, const Hf__FsckReq *in)
{
    struct fsck_call *c = calloc(1, sizeof(*c));
    int rc = HF_E_NOMEM;

    if (c) {
        c->work.run = run_check;
        c->work.done.fn = on_checked;
        c->work.loop = t->loop;
        c->t = t;
        c->req = req;
        c->chunks = in->chunks;
        hf__fsck_rep__init(&c->rep);
        hf_arena_init(&c->texts, 0);
        rc = hf_pool_submit(t->svc->pool, &c->work);
    }
    if (rc) {
        free(c);
        hf_rpc_reply(req, rc, NULL, NULL, 0);
    }
}

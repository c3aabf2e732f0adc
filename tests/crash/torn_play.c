/* SPDX-License-Identifier: Apache-2.0
 *
 * Images and what recovery makes of them. The moments of the power failures are taken in the order
 * of time, so that disk and model only go forward; each image is recovered by a node in this
 * process, and compared through NFS with a copy of the model as it was at that moment.
 */
#include "torn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "holdfast/svc_node.h"

extern char **environ;

/* ---- the trace ---- */

const struct trace_rec *torn_rec(const struct trace *t, uint64_t i)
{
    return (const struct trace_rec *)(const void *)(t->base + t->at[i]);
}

void torn_trace_open(struct trace *t, const char *file)
{
    const struct trace_head *h;
    uint64_t cap = 0, at, end;

    *t = (struct trace){.fd = open(file, O_RDONLY | O_CLOEXEC)};
    if (t->fd < 0)
        nt_fail(__FILE__, __LINE__, "cannot open %s", file);
    t->base = mmap(NULL, TRACE_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE, t->fd, 0);
    if (t->base == MAP_FAILED)
        nt_fail(__FILE__, __LINE__, "cannot map %s", file);
    h = (const struct trace_head *)(const void *)t->base;
    end = atomic_load(&h->end);
    for (at = TRACE_FIRST; at < end; at += trace_span(torn_rec(t, t->n - 1)->len)) {
        if (t->n == cap) {
            cap = cap ? 2 * cap : 65536;
            t->at = realloc(t->at, cap * sizeof(*t->at));
        }
        t->at[t->n++] = at;
        if (torn_rec(t, t->n - 1)->kind == TR_NONE)
            nt_fail(__FILE__, __LINE__, "trace: record %" PRIu64 " was not finished", t->n - 1);
    }
}

void torn_trace_close(struct trace *t)
{
    munmap(t->base, TRACE_BYTES);
    close(t->fd);
    free(t->at);
}

/* ---- disk and model at a moment ---- */

struct player {
    const struct torn_plan *plan;
    struct torn_result *res;
    struct disk *disk;
    struct worker workers[TORN_WORKERS], now[TORN_WORKERS];
    bool ready;
    uint64_t next;
    struct nt_node node;
};

static void apply_mark(struct player *pl, const struct mark *m)
{
    struct worker *w = &pl->workers[m->worker];

    switch (m->ev) {
    case MARK_WORKER:
        w->top = m->fh;
        memcpy(w->dirs, m->dirs, sizeof(w->dirs));
        break;
    case MARK_READY:
        pl->ready = true;
        break;
    case K9_START:
        w->p = m->p;
        break;
    case K9_ACK:
    case K9_HAPPENED:
        k9_apply(w, &m->p, &m->fh);
        break;
    case K9_NOT:
        w->p.op = OP_NONE;
        break;
    case K9_FOUND:
        k9_apply_found(w, &m->p, m->size, (const uint8_t *)(m + 1));
        break;
    default:
        nt_fail(__FILE__, __LINE__, "trace: mark %u", m->ev);
    }
}

static void advance(struct player *pl, uint64_t cut)
{
    for (; pl->next < cut; pl->next++) {
        const struct trace_rec *r = torn_rec(pl->plan->trace, pl->next);

        disk_apply(pl->disk, r);
        if (r->kind == TR_MARK)
            apply_mark(pl, (const struct mark *)(const void *)(r + 1));
    }
}

/* ---- one image ---- */

static struct hf_node *start_node(struct player *pl)
{
    char data[512], listen[32];
    char *argv[] = {(char *)(uintptr_t) "torn",
                    (char *)(uintptr_t) "--node-dir",
                    data,
                    (char *)(uintptr_t) "--nfs-listen",
                    listen,
                    NULL};
    struct hf_buf out = {0};
    struct hf_node *n = NULL;
    int rc;

    snprintf(data, sizeof(data), "%s/data", pl->plan->dir);
    snprintf(listen, sizeof(listen), "127.0.0.1:%d", pl->node.port);
    rc = hf_node_new(5, argv, environ, &n, &out);
    if (rc)
        nt_fail(__FILE__, __LINE__, "the node does not start: %.*s", (int)out.len,
                (const char *)out.data);
    hf_buf_fini(&out);
    return n;
}

/* The file system as the model says. */
static void compare(struct player *pl, struct nt *c)
{
    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        struct worker *w = &pl->now[i];

        k9_copy(w, &pl->workers[i]);
        k9_resolve(w, c);
        k9_verify(w, c);
        pl->res->in_doubt_done += w->in_doubt_done;
        pl->res->in_doubt_not += w->in_doubt_not;
        k9_clear(w);
    }
}

/* Before the workers' folders were there: nothing but what was being made. */
static void compare_new(struct nt *c, const struct nt_fh *root)
{
    NT_OK(nt_readdirplus(c, root, 0, NULL, 65536, 65536));
    for (unsigned i = 0; i < c->r.nentries; i++)
        NT_CHECK(c->entries[i].name[0] == '.' || c->entries[i].name[0] == 'w');
}

static void fsck(struct hf_node *n)
{
    struct hf_buf out = {0};
    int problems = hf_node_fsck(n, &out);

    if (problems != 0)
        nt_fail(__FILE__, __LINE__, "fsck finds %d problems:\n%.*s", problems, (int)out.len,
                (const char *)out.data);
    hf_buf_fini(&out);
}

static void check_image(struct player *pl)
{
    struct hf_node *n = start_node(pl);
    struct nt *c = nt_open(&pl->node, 0, 0, 0, NULL);
    struct nt_fh root;

    NT_OK(nt_mount(c, "/main"));
    root = c->r.fh;
    if (pl->ready)
        compare(pl, c);
    else
        compare_new(c, &root);
    nt_close(c);
    fsck(n);
    hf_node_free(n);
}

static void one(struct player *pl, unsigned image, uint64_t cut, uint64_t rng)
{
    char data[512];

    pl->res->image = image;
    pl->res->cut = cut;
    advance(pl, cut);
    snprintf(data, sizeof(data), "%s/data", pl->plan->dir);
    nt_remove_tree(data);
    if (mkdir(data, 0700) != 0)
        nt_fail(__FILE__, __LINE__, "cannot make %s", data);
    disk_image(pl->disk, data, &rng);
    check_image(pl);
    pl->res->done++;
}

/* ---- all of them ---- */

struct moment {
    uint64_t cut, rng;
    unsigned image;
};

static int by_cut(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return x->cut < y->cut ? -1 : x->cut > y->cut;
}

/* An image depends on the seed and its number alone. */
static struct moment *moments(const struct torn_plan *p)
{
    struct moment *m = calloc(p->images, sizeof(*m));

    for (unsigned i = 0; i < p->images; i++) {
        uint64_t rng = p->seed * 1000003 + i;

        m[i].image = i;
        m[i].cut = k9_rand(&rng) % (p->trace->n + 1);
        m[i].rng = rng;
    }
    qsort(m, p->images, sizeof(*m), by_cut);
    return m;
}

static void report(struct player *pl)
{
    const struct disk_stats *s = disk_stats(pl->disk);

    pl->res->open_writes = s->open_writes;
    pl->res->torn = s->torn;
    pl->res->left_out = s->left_out;
    pl->res->names_left_out = s->names_left_out;
}

void torn_play(const struct torn_plan *p, struct torn_result *res)
{
    struct player *pl = calloc(1, sizeof(*pl));
    struct moment *m = moments(p);

    pl->plan = p;
    pl->res = res;
    pl->disk = disk_new();
    pl->node.port = nt_free_port();
    for (unsigned i = 0; i < TORN_WORKERS; i++) {
        pl->workers[i].id = i;
        pl->workers[i].nslots = TORN_SLOTS;
    }
    for (unsigned i = 0; i < p->images; i++) {
        if (p->only >= 0 ? m[i].image == (unsigned)p->only : i % p->jobs == p->job)
            one(pl, m[i].image, m[i].cut, m[i].rng);
    }
    report(pl);
    for (unsigned i = 0; i < TORN_WORKERS; i++)
        k9_clear(&pl->workers[i]);
    disk_free(pl->disk);
    free(m);
    free(pl);
}

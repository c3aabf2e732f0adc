/* SPDX-License-Identifier: Apache-2.0
 *
 * From a call of the program to work on an engine. A call on the engine's own thread runs at once;
 * from any other thread it is posted. Calls made inside callbacks that complete at once would nest
 * without end, so from DEPTH_MAX on they are posted, too.
 */
#include <stdlib.h>
#include <string.h>

#include "fs_priv.h"

static void run(struct req *r)
{
    struct engine *e = r->a.e;

    e->depth++;
    r->a.run(r);
    e->depth--;
}

static void on_posted(struct hf_task *t)
{
    run(hf_container_of(t, struct req, task));
}

/* ---- copies of what the caller may take back ---- */

static size_t string_bytes(const char *s, size_t max)
{
    return s ? strnlen(s, max) + 1 : 0;
}

/* What names may be is said by the server; here they only get a bound. */
static int sizes_of(const struct args *a, size_t *ret)
{
    static const size_t max = 4096;
    size_t n1 = string_bytes(a->name, max), n2 = string_bytes(a->name2, max);

    if (n1 > max || n2 > max)
        return HF_E_NAMETOOLONG;
    if ((a->u && a->u->ngroups > GROUPS_MAX) || a->niov > IOV_MAX_CALL)
        return HF_E_INVAL;
    *ret = a->niov * sizeof(struct iovec) + (a->u ? a->u->ngroups * sizeof(uint32_t) : 0) + n1 + n2;
    return 0;
}

static const char *copy_string(uint8_t **to, const char *s)
{
    size_t n = string_bytes(s, 4096);
    char *copy = (char *)*to;

    if (!s)
        return NULL;
    memcpy(copy, s, n - 1);
    copy[n - 1] = '\0';
    *to += n;
    return copy;
}

static void take_args(struct req *r, const struct args *a, uint8_t *to)
{
    const struct hf_user *u = a->u;

    r->a = *a;
    r->a.u = NULL;
    r->a.iov = (const struct iovec *)(void *)to;
    if (a->niov)
        memcpy(to, a->iov, a->niov * sizeof(*a->iov));
    to += a->niov * sizeof(*a->iov);
    hf__cred__init(&r->cred);
    if (u) {
        r->cred.uid = u->uid;
        r->cred.gid = u->gid;
        r->cred.n_groups = u->ngroups;
        r->cred.groups = (uint32_t *)(void *)to;
        if (u->ngroups)
            memcpy(to, u->groups, u->ngroups * sizeof(uint32_t));
        to += u->ngroups * sizeof(uint32_t);
    }
    r->a.name = copy_string(&to, a->name);
    r->a.name2 = copy_string(&to, a->name2);
}

/* ---- requests ---- */

static struct req *req_alloc(struct engine *e, bool here)
{
    struct hf_list *l = here ? hf_list_pop_front(&e->free_reqs) : NULL;

    if (l)
        e->nfree--;
    return l ? hf_container_of(l, struct req, link) : malloc(sizeof(struct req));
}

static int req_new(struct hf_fs *fs, const struct args *a, bool here, struct req **ret)
{
    uint64_t n = atomic_fetch_add_explicit(&fs->in_flight, 1, memory_order_relaxed);
    struct req *r = NULL;
    size_t bytes = 0;
    int rc;

    rc = atomic_load_explicit(&fs->closing, memory_order_relaxed) ? HF_E_CLOSED
         : n >= fs->opts.max_calls && !a->always                  ? HF_E_BUSY
                                                                  : sizes_of(a, &bytes);
    if (rc == 0 && (r = req_alloc(a->e, here)) == NULL)
        rc = HF_E_NOMEM;
    if (rc == 0) {
        r->more = bytes > sizeof(r->extra) ? malloc(bytes) : NULL;
        if (bytes > sizeof(r->extra) && !r->more)
            rc = HF_E_NOMEM;
    }
    if (rc) {
        free(r);
        atomic_fetch_sub_explicit(&fs->in_flight, 1, memory_order_relaxed);
        return rc;
    }
    take_args(r, a, r->more ? r->more : (void *)r->extra);
    hf_list_init(&r->link);
    hf_list_init(&r->order);
    r->bytes = NULL;
    r->step = r->then = NULL;
    r->inode = NULL;
    r->seq = r->need = 0;
    r->deadline_ns = 0;
    r->err = 0;
    r->flag = false;
    r->task = (struct hf_task){.fn = on_posted};
    *ret = r;
    return 0;
}

static void refuse(const struct args *a, int err);

void submit(struct hf_fs *fs, const struct args *a)
{
    bool here = engine_here(a->e);
    struct req *r;
    int rc = req_new(fs, a, here, &r);

    if (rc) {
        refuse(a, rc);
        return;
    }
    atomic_fetch_add_explicit(&fs->calls, 1, memory_order_relaxed);
    if (here && a->e->depth < DEPTH_MAX)
        run(r);
    else
        hf_loop_post(a->e->loop, &r->task);
}

void submit_file(struct hf_file *f, struct args *a)
{
    a->e = f->inode->e;
    a->f = f;
    submit(f->fs, a);
}

ProtobufCBinaryData req_name(const char *name)
{
    return (ProtobufCBinaryData){.len = strlen(name), .data = (uint8_t *)(uintptr_t)name};
}

/* ---- ends ---- */

static void call_back(const struct args *a, int err)
{
    switch (a->kind) {
    case K_DONE:
        a->fn.done(a->arg, err);
        break;
    case K_ATTR:
        a->fn.attr(a->arg, err, NULL);
        break;
    case K_OPEN:
        a->fn.open(a->arg, err, NULL, NULL);
        break;
    case K_DATA:
        a->fn.data(a->arg, err, NULL, 0, 0);
        break;
    case K_SIZE:
        a->fn.size(a->arg, err);
        break;
    case K_READDIR:
        a->fn.readdir(a->arg, err, NULL, 0, false);
        break;
    case K_STATFS:
        a->fn.statfs(a->arg, err, NULL);
        break;
    }
}

static void refuse(const struct args *a, int err)
{
    call_back(a, -hf_err_to_errno(err));
}

/* Before the callback: it may make the next call. */
static void ending(struct req *r)
{
    struct inode *i = r->inode;

    r->inode = NULL;
    if (i)
        inode_put(i);
    atomic_fetch_sub_explicit(&r->a.e->fs->in_flight, 1, memory_order_relaxed);
}

static void req_free(struct req *r)
{
    struct engine *e = r->a.e;

    free(r->more);
    r->more = NULL;
    if (e->nfree >= REQS_KEPT) {
        free(r);
        return;
    }
    hf_list_push_front(&e->free_reqs, &r->link);
    e->nfree++;
}

void req_fail(struct req *r, int err)
{
    ending(r);
    call_back(&r->a, -hf_err_to_errno(err));
    req_free(r);
}

void req_forget(struct req *r)
{
    ending(r);
    req_free(r);
}

void req_done(struct req *r, int err)
{
    req_fail(r, err);
}

void req_attr(struct req *r, int err, const Hf__Attr *attr)
{
    struct hf_attr a;

    if (err == 0 && !attr)
        err = HF_E_IO;
    if (err) {
        req_fail(r, err);
        return;
    }
    attr_fill(r->a.e->fs, attr, &a);
    ending(r);
    r->a.fn.attr(r->a.arg, 0, &a);
    req_free(r);
}

void req_open(struct req *r, int err, struct hf_file *f, const struct hf_attr *attr)
{
    if (err) {
        req_fail(r, err);
        return;
    }
    ending(r);
    r->a.fn.open(r->a.arg, 0, f, attr);
    req_free(r);
}

void req_data(struct req *r, int err, const struct iovec *iov, unsigned n, size_t bytes)
{
    if (err) {
        req_fail(r, err);
        return;
    }
    ending(r);
    r->a.fn.data(r->a.arg, 0, iov, n, bytes);
    req_free(r);
}

void req_size(struct req *r, int err, int64_t n)
{
    ending(r);
    r->a.fn.size(r->a.arg, err ? -hf_err_to_errno(err) : n);
    req_free(r);
}

void req_readdir(struct req *r, const struct hf_dirent *e, size_t n, bool eof)
{
    ending(r);
    r->a.fn.readdir(r->a.arg, 0, e, n, eof);
    req_free(r);
}

void req_statfs(struct req *r, const struct hf_statfs *st)
{
    ending(r);
    r->a.fn.statfs(r->a.arg, 0, st);
    req_free(r);
}

/* ---- life ---- */

static void on_map(void *arg, const Hf__MapGetRep *map)
{
    struct engine *e = arg;
    struct hf_fs *fs = e->fs;

    if (e->has_map)
        return;
    e->has_map = true;
    pthread_mutex_lock(&fs->lock);
    fs->root = (struct hf_handle){.ino = map->root_ino, .gen = map->root_gen};
    fs->mapped++;
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
}

static void on_opens_lost(void *arg, uint32_t shard)
{
    opens_lost(arg, shard);
}

static void on_drain(struct hf_task *t)
{
    struct engine *e = hf_container_of(t, struct engine, drain_task);

    e->draining = true;
    wb_drain(e);
    engine_check_drained(e);
}

static void on_client_closed(void *arg)
{
    struct engine *e = arg;
    struct hf_fs *fs = e->fs;

    pthread_mutex_lock(&fs->lock);
    fs->drained++;
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
}

/* Nothing is buffered any more: the sessions end, and with them what is open. */
void engine_check_drained(struct engine *e)
{
    if (!e->draining || e->drained || atomic_load_explicit(&e->mem, memory_order_relaxed) > 0)
        return;
    e->drained = true;
    hf_client_close(e->client, on_client_closed, e);
}

int engine_new(struct hf_fs *fs, unsigned index, struct engine **ret)
{
    struct hf_client_opts o = {
        .meta_url = fs->opts.url,
        .name = fs->opts.name,
        .timeout_ms = fs->opts.timeout_ms,
        .insecure = fs->opts.insecure,
        .opens = true,
        .on_opens_lost = on_opens_lost,
        .on_map = on_map,
    };
    struct engine *e = calloc(1, sizeof(*e));
    int rc;

    if (!e)
        return HF_E_NOMEM;
    e->fs = fs;
    e->index = index;
    e->drain_task.fn = on_drain;
    hf_list_init(&e->free_reqs);
    hf_list_init(&e->ra_lru);
    e->ra_max = fs->opts.readahead_max / fs->nengines;
    rc = hf_loop_new(fs->env, "hf-engine", &e->loop);
    if (rc == 0) {
        open_init(e);
        wb_init(e);
        o.loop = e->loop;
        o.arg = e;
        rc = hf_client_new(&o, &e->client);
    }
    if (rc) {
        engine_free(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void engine_free(struct engine *e)
{
    struct hf_list *l;

    if (!e)
        return;
    hf_client_free(e->client);
    if (e->loop)
        inode_free_all(e);
    hf_map_fini(&e->inodes);
    while ((l = hf_list_pop_front(&e->free_reqs)))
        free(hf_container_of(l, struct req, link));
    hf_loop_free(e->loop);
    free(e);
}

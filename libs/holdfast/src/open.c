/* SPDX-License-Identifier: Apache-2.0
 *
 * Open files. The shard keeps, for each session, which objects it has open, so that an object whose
 * last name goes stays until it is closed everywhere. Here an inode counts its local opens; the
 * shard is told of the first one (in the Open that checks permission anyway, or in the Create) and,
 * some time after the last one, in a Close that carries many.
 *
 *   NONE ──Open──> OPEN ──last close──> CLOSING ──Close sent──> CLOSED ──answer──> NONE
 *                    ^─────────Open─────────┘
 *
 * Between CLOSED and the answer an Open waits: the shard might see them in the other order.
 *
 * Create does not know the object it will find. A new one cannot be in a Close; one that was there
 * is opened once more in order. If the object belongs to another engine than the name, that engine
 * opens it for itself while the first still holds it.
 */
#include <stdlib.h>

#include "fs_priv.h"

#define WANT_READ  4u
#define WANT_WRITE 2u
#define AGAIN_MAX  32u

static void open_send(struct req *r);
static void closes_send(struct engine *e);

/* ---- files ---- */

static struct hf_file *file_new(struct req *r, struct inode *i)
{
    struct hf_file *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->fs = i->e->fs;
    f->inode = i;
    f->h = (struct hf_handle){.ino = i->ino, .gen = i->gen};
    f->flags = r->a.flags;
    f->err_seen = i->err_seq;
    hf__cred__init(&f->cred);
    f->cred.uid = r->cred.uid;
    f->cred.gid = r->cred.gid;
    hf_list_push_back(&i->files, &f->link);
    atomic_fetch_add(&f->fs->open_files, 1);
    return f;
}

void file_free(struct hf_file *f)
{
    atomic_fetch_sub(&f->fs->open_files, 1);
    hf_list_remove(&f->link);
    hold_release(f->inode);
    free(f);
}

struct hf_handle hf_file_handle(const struct hf_file *f)
{
    return f->h;
}

/* ---- Close ---- */

static void maybe_close(struct inode *i)
{
    struct engine *e = i->e;

    if (i->opens || i->hold != HOLD_OPEN || i->reopening)
        return;
    i->hold = HOLD_CLOSING;
    hf_list_push_back(&e->closes, &i->close_link);
    if (++e->ncloses >= CLOSES_MAX)
        closes_send(e);
    else if (!hf_timer_armed(&e->close_timer))
        hf_timer_set(&e->close_timer, CLOSE_NS);
}

void hold_release(struct inode *i)
{
    i->refs++;
    i->opens--;
    maybe_close(i);
    inode_put(i);
}

struct closing {
    struct engine *e;
    struct hf_client_call call;
    Hf__CloseReq req;
    uint64_t inos[CLOSES_MAX];
};

static void on_closed(const Hf__CloseRep *rep, void *arg)
{
    struct closing *c = hf_container_of(arg, struct closing, call);

    (void)rep; /* if it failed, the session's lease ends the opens */
    for (size_t k = 0; k < c->req.n_inos; k++) {
        struct inode *i = inode_find(c->e, c->inos[k]);
        struct hf_list *l;

        if (!i || i->hold != HOLD_CLOSED)
            continue;
        i->hold = HOLD_NONE;
        i->refs++;
        while ((l = hf_list_pop_front(&i->open_waiters)))
            open_send(hf_container_of(l, struct req, link));
        inode_put(i);
    }
    free(c);
}

/* One message for those of the first one's shard. */
static void closes_send_shard(struct engine *e)
{
    struct closing *c = calloc(1, sizeof(*c));
    uint32_t shard = 0;

    if (!c) {
        hf_timer_set(&e->close_timer, CLOSE_NS);
        return;
    }
    c->e = e;
    hf__close_req__init(&c->req);
    c->req.inos = c->inos;
    HF_LIST_FOREACH_SAFE(it, tmp, &e->closes)
    {
        struct inode *i = hf_container_of(it, struct inode, close_link);

        if (c->req.n_inos == 0)
            shard = shard_of(i->ino);
        if (c->req.n_inos == CLOSES_MAX || shard_of(i->ino) != shard)
            continue;
        hf_list_remove(&i->close_link);
        e->ncloses--;
        i->hold = HOLD_CLOSED;
        c->inos[c->req.n_inos++] = i->ino;
    }
    c->call.ino = c->inos[0];
    c->call.change = true;
    c->call.req_stays = true;
    hf__meta__close(hf_client_meta(e->client), &c->req, on_closed, &c->call);
}

static void closes_send(struct engine *e)
{
    unsigned before;

    do {
        before = e->ncloses;
        if (before > 0)
            closes_send_shard(e);
    } while (e->ncloses > 0 && e->ncloses < before);
}

static void on_close_timer(struct hf_timer *t)
{
    closes_send(hf_container_of(t, struct engine, close_timer));
}

void open_init(struct engine *e)
{
    hf_list_init(&e->closes);
    hf_timer_init(&e->close_timer, e->loop, on_close_timer);
}

/* ---- opens that a shard has lost ---- */

struct reopening {
    struct inode *i;
    struct hf_client_call call;
};

static void reopen(struct inode *i);

static void on_reopened(const Hf__OpenRep *rep, void *arg)
{
    struct reopening *o = hf_container_of(arg, struct reopening, call);
    struct inode *i = o->i;
    int status = o->call.status;

    free(o);
    i->reopening = false;
    if (status == HF_E_STALE || status == HF_E_NOENT)
        i->stale = true;
    else if (status == HF_E_TIMEDOUT && i->opens)
        reopen(i);
    else if (rep)
        inode_seen(i, rep->obj);
    maybe_close(i);
    inode_put(i);
}

static void reopen(struct inode *i)
{
    struct reopening *o = calloc(1, sizeof(*o));
    Hf__OpenReq q = HF__OPEN_REQ__INIT;

    if (!o)
        return; /* then it is not kept if its last name goes */
    o->i = i;
    i->refs++;
    i->reopening = true;
    q.ino = i->ino;
    q.gen = i->gen;
    q.hold = true;
    o->call.ino = i->ino;
    o->call.change = true;
    hf__meta__open(hf_client_meta(i->e->client), &q, on_reopened, &o->call);
}

void opens_lost(struct engine *e, uint32_t shard)
{
    size_t pos = 0;
    uint64_t ino;
    void *v;

    while (hf_map_next(&e->inodes, &pos, &ino, &v)) {
        struct inode *i = v;

        if (shard_of(ino) == shard && i->hold == HOLD_OPEN && i->opens && !i->reopening)
            reopen(i);
    }
}

/* ---- Open ---- */

static uint32_t want_of(int flags)
{
    uint32_t want = 0;

    if ((flags & O_ACCMODE) != O_WRONLY)
        want |= WANT_READ;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
        want |= WANT_WRITE;
    return want;
}

static void run_create(struct req *r);

static void open_failed(struct req *r, int err)
{
    struct inode *i = r->inode;

    if (err == HF_E_TIMEDOUT && i->hold == HOLD_NONE)
        i->hold = HOLD_OPEN; /* perhaps: a Close does no harm */
    hold_release(i);
    /* What a create found has been removed before it could be opened: then there is one to make. */
    if (err == HF_E_STALE && r->a.run == run_create && r->need++ < AGAIN_MAX) {
        r->inode = NULL;
        inode_put(i);
        r->a.h = r->a.h2;
        r->flag = false;
        run_create(r);
        return;
    }
    req_fail(r, err);
}

static void opened(struct req *r, const Hf__Attr *attr)
{
    struct inode *i = r->inode;
    struct hf_attr a;
    struct hf_file *f;

    i->gen = attr->gen;
    if (i->change != attr->change)
        ra_drop(i);
    wb_opened(i, attr);
    inode_seen(i, attr);
    f = file_new(r, i);
    if (!f) {
        open_failed(r, HF_E_NOMEM);
        return;
    }
    attr_fill(f->fs, attr, &a);
    req_open(r, 0, f, &a);
}

static void on_open(const Hf__OpenRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    struct inode *i = r->inode;
    int err = r->c.call.status;

    if (err == 0 && (!rep || !rep->obj))
        err = HF_E_IO;
    if (r->s.open.truncate) {
        if (err == 0) {
            wb_cut(i, 0, ~0ull, false);
            ra_drop(i);
            inode_changed(i, rep->obj);
        }
        wb_barrier_end(i);
    }
    if (err) {
        open_failed(r, err);
        return;
    }
    if (i->hold == HOLD_NONE)
        i->hold = HOLD_OPEN;
    opened(r, rep->obj);
}

static void open_send(struct req *r)
{
    struct inode *i = r->inode;
    Hf__OpenReq *q = &r->s.open;

    hf__open_req__init(q);
    q->cred = &r->cred;
    q->ino = r->a.h.ino;
    q->gen = r->a.h.gen;
    q->want = r->flag ? 0 : want_of(r->a.flags);
    q->truncate = !r->flag && (r->a.flags & O_TRUNC);
    q->hold = i->hold != HOLD_OPEN;
    req_call(r, q->ino, true);
    if (q->truncate)
        wb_barrier(i);
    hf_client_open(r->a.e->client, q, on_open, &r->c.call);
}

/* The inode is counted as open from here on. */
static void open_begin(struct req *r)
{
    struct inode *i = r->inode;

    i->opens++;
    if (i->hold == HOLD_CLOSING) {
        hf_list_remove(&i->close_link);
        i->e->ncloses--;
        i->hold = HOLD_OPEN;
    }
    if (i->hold == HOLD_CLOSED)
        hf_list_push_back(&i->open_waiters, &r->link);
    else if ((r->a.flags & O_TRUNC) && !r->flag)
        flush_then(r, open_send);
    else
        open_send(r);
}

static void run_open(struct req *r)
{
    r->inode = inode_get(r->a.e, r->a.h);
    if (!r->inode)
        req_fail(r, HF_E_NOMEM);
    else
        open_begin(r);
}

void hf_open_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h, int flags,
                   hf_open_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_open,
                              .kind = K_OPEN,
                              .fn.open = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .flags = flags});
}

/* ---- Create ---- */

/* The creating engine's hold, until the object's own engine has one. */
struct handover {
    struct hf_task task;
    struct inode *i;
};

static void on_handed_over(struct hf_task *t)
{
    struct handover *h = hf_container_of(t, struct handover, task);
    struct inode *i = h->i;

    hold_release(i);
    free(h);
}

struct handover_req {
    struct args a; /* of the program's call */
    struct handover *h;
};

/* On the object's engine: the program is told, the other engine lets go. */
static void handover_end(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct handover_req *hr = arg;

    hf_loop_post(hr->h->i->e->loop, &hr->h->task);
    hr->a.fn.open(hr->a.arg, err, f, a);
    free(hr);
}

static void run_handover(struct req *r)
{
    r->flag = true;
    run_open(r);
}

static void hand_over(struct req *r, const Hf__Attr *attr)
{
    struct handover_req *hr = malloc(sizeof(*hr));
    struct handover *h = malloc(sizeof(*h));
    struct hf_fs *fs = r->a.e->fs;
    struct hf_user u = {.uid = r->cred.uid, .gid = r->cred.gid}; /* permission was checked */
    struct inode *i = r->inode;
    int flags = r->a.flags;

    if (!hr || !h) {
        free(hr);
        free(h);
        open_failed(r, HF_E_NOMEM);
        return;
    }
    *h = (struct handover){.task = {.fn = on_handed_over}, .i = i};
    *hr = (struct handover_req){.a = r->a, .h = h};
    req_forget(r); /* the program's call ends with the new one's callback */
    submit(fs, &(struct args){.e = engine_of(fs, attr->ino),
                              .run = run_handover,
                              .kind = K_OPEN,
                              .fn.open = handover_end,
                              .arg = hr,
                              .u = &u,
                              .h = {.ino = attr->ino, .gen = attr->gen},
                              .flags = flags});
}

static void created(struct req *r, const Hf__CreateRep *rep)
{
    struct hf_handle h = {.ino = rep->obj->ino, .gen = rep->obj->gen};
    struct inode *i = inode_get(r->a.e, h);

    if (!i) {
        req_fail(r,
                 HF_E_NOMEM); /* the shard's record stays until the object is opened and closed */
        return;
    }
    r->inode = i;
    r->a.h2 = r->a.h;
    r->a.h = h;
    if (!rep->created) {
        if (r->a.flags & O_TRUNC) {
            wb_cut(i, 0, ~0ull, true);
            ra_drop(i);
        }
        r->flag = true;
        open_begin(r);
        return;
    }
    i->opens++;
    i->hold = HOLD_OPEN;
    if (engine_of(i->e->fs, i->ino) != i->e)
        hand_over(r, rep->obj);
    else
        opened(r, rep->obj);
}

static void on_create(const Hf__CreateRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    int err = r->c.call.status;

    if (err == 0 && (!rep || !rep->obj))
        err = HF_E_IO;
    if (err == 0 && rep->obj->type != HF__FILE_TYPE__FT_REG)
        err = HF_E_INVAL;
    if (err)
        req_fail(r, err);
    else
        created(r, rep);
}

static void run_create(struct req *r)
{
    Hf__CreateReq *q = &r->s.create;

    hf__set_attrs__init(&r->set);
    r->set.set_mode = true;
    r->set.mode = r->a.mode & 07777;
    r->set.set_size = r->a.flags & O_TRUNC;
    hf__create_req__init(q);
    q->cred = &r->cred;
    q->dir = r->a.h.ino;
    q->gen = r->a.h.gen;
    q->name = req_name(r->a.name);
    q->how =
        r->a.flags & O_EXCL ? HF__CREATE_HOW__CREATE_GUARDED : HF__CREATE_HOW__CREATE_UNCHECKED;
    q->set = &r->set;
    q->open = true;
    q->want = want_of(r->a.flags);
    q->umask = r->a.umask;
    req_call(r, q->dir, true);
    hf_client_create(r->a.e->client, q, on_create, &r->c.call);
}

void hf_create_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                     const char *name, int flags, mode_t mode, mode_t umask, hf_open_fn *fn,
                     void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_create,
                              .kind = K_OPEN,
                              .fn.open = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .name = name,
                              .flags = flags,
                              .mode = mode,
                              .umask = umask & 0777});
}

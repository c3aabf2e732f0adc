/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of an object that must come in order with its buffered writes: attributes (a time that is
 * set would be overwritten by a later write), sizes, holes. What was written before leaves first,
 * and what is written meanwhile waits behind a barrier.
 */
#include <unistd.h>

#include "fs_priv.h"

#define FALLOC_KEEP_SIZE  0x01
#define FALLOC_PUNCH_HOLE 0x02
#define FALLOC_ZERO_RANGE 0x10

static bool has_buffers(const struct req *r)
{
    return r->inode && r->inode->wb;
}

/* ---- setattr ---- */

static void set_fill(const struct hf_setattr *s, Hf__SetAttrs *m)
{
    hf__set_attrs__init(m);
    m->set_mode = s->set & HF_SET_MODE;
    m->mode = s->mode & 07777;
    m->set_uid = s->set & HF_SET_UID;
    m->uid = s->uid;
    m->set_gid = s->set & HF_SET_GID;
    m->gid = s->gid;
    m->set_size = s->set & HF_SET_SIZE;
    m->size = s->size;
    m->set_atime = s->set & HF_SET_ATIME_NOW ? HF__SET_TIME__TIME_SERVER
                   : s->set & HF_SET_ATIME   ? HF__SET_TIME__TIME_CLIENT
                                             : HF__SET_TIME__TIME_KEEP;
    m->atime_ns = s->atime_ns;
    m->set_mtime = s->set & HF_SET_MTIME_NOW ? HF__SET_TIME__TIME_SERVER
                   : s->set & HF_SET_MTIME   ? HF__SET_TIME__TIME_CLIENT
                                             : HF__SET_TIME__TIME_KEEP;
    m->mtime_ns = s->mtime_ns;
}

static void on_setattr(const Hf__SetattrRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    const Hf__Attr *after = rep && rep->obj ? rep->obj->after : NULL;
    struct inode *i = r->inode;
    int err = r->c.call.status;

    if (i) {
        i->refs++;
        if (err == 0 && r->set.set_size) {
            wb_cut(i, r->set.size, ~0ull, false);
            ra_drop(i);
        }
        inode_changed(i, after);
    }
    req_attr(r, err, after);
    if (i) {
        wb_barrier_end(i);
        inode_put(i);
    }
}

static void setattr_send(struct req *r)
{
    Hf__SetattrReq *q = &r->s.setattr;

    set_fill(&r->a.set, &r->set);
    hf__setattr_req__init(q);
    q->cred = &r->cred;
    q->ino = r->a.h.ino;
    q->gen = r->a.h.gen;
    q->set = &r->set;
    q->opened = r->a.f && file_writes(r->a.f);
    q->no_override = true;
    req_call(r, q->ino, true);
    if (r->inode)
        wb_barrier(r->inode);
    hf_client_setattr(r->a.e->client, q, on_setattr, &r->c.call);
}

static void run_setattr(struct req *r)
{
    if (r->a.f && (r->a.set.set & HF_SET_SIZE) && !file_writes(r->a.f)) {
        req_fail(r, HF_E_INVAL); /* as ftruncate(2) says it */
        return;
    }
    r->inode = inode_find(r->a.e, r->a.h.ino);
    if (r->inode)
        r->inode->refs++;
    if (has_buffers(r))
        flush_then(r, setattr_send);
    else
        setattr_send(r);
}

void hf_setattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                      struct hf_file *f, const struct hf_setattr *set, hf_attr_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_setattr,
                              .kind = K_ATTR,
                              .fn.attr = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .f = f,
                              .set = *set});
}

/* ---- fallocate ---- */

static void on_fallocate(struct hf_client_range *g)
{
    struct req *r = g->arg;
    struct inode *i = r->inode;

    i->refs++;
    if (g->status == 0 && g->mode != HF__FALLOCATE_MODE__FA_ALLOCATE)
        wb_cut(i, r->a.off, r->a.off + r->a.len, false);
    ra_drop(i);
    if (g->wcc)
        inode_changed(i, g->wcc->after);
    req_done(r, g->status);
    wb_barrier_end(i);
    inode_put(i);
}

static void fallocate_send(struct req *r)
{
    const struct inode *i = r->inode;

    r->c.range = (struct hf_client_range){
        .cred = &r->a.f->cred,
        .ino = i->ino,
        .gen = i->gen,
        .mode = r->a.flags & FALLOC_PUNCH_HOLE   ? HF__FALLOCATE_MODE__FA_PUNCH
                : r->a.flags & FALLOC_ZERO_RANGE ? HF__FALLOCATE_MODE__FA_ZERO
                                                 : HF__FALLOCATE_MODE__FA_ALLOCATE,
        .keep_size = r->a.flags & FALLOC_KEEP_SIZE,
        .opened = true,
        .offset = r->a.off,
        .len = r->a.len,
        .done = on_fallocate,
        .arg = r,
    };
    wb_barrier(r->inode);
    hf_client_fallocate(r->a.e->client, &r->c.range);
}

static int fallocate_check(const struct req *r)
{
    switch (r->a.flags) {
    case 0:
    case FALLOC_KEEP_SIZE:
    case FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE:
    case FALLOC_ZERO_RANGE:
    case FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE:
        break;
    default:
        return HF_E_NOTSUPP;
    }
    if (!file_writes(r->a.f))
        return HF_E_BADF;
    if (r->a.len == 0)
        return HF_E_INVAL;
    if (r->a.off > INT64_MAX || r->a.len > INT64_MAX - r->a.off)
        return HF_E_FBIG;
    return r->inode->stale ? HF_E_STALE : 0;
}

static void run_fallocate(struct req *r)
{
    int err;

    (void)file_inode(r);
    err = fallocate_check(r);
    if (err)
        req_fail(r, err);
    else
        flush_then(r, fallocate_send);
}

void hf_fallocate_async(struct hf_file *f, int mode, uint64_t offset, uint64_t len, hf_done_fn *fn,
                        void *arg)
{
    submit_file(f, &(struct args){.run = run_fallocate,
                                  .kind = K_DONE,
                                  .fn.done = fn,
                                  .arg = arg,
                                  .flags = mode,
                                  .off = offset,
                                  .len = len});
}

/* ---- seek ---- */

static void on_seek(struct hf_client_range *g)
{
    struct req *r = g->arg;

    req_size(r, g->status, (int64_t)g->at);
}

static void seek_send(struct req *r)
{
    const struct inode *i = r->inode;

    r->c.range = (struct hf_client_range){
        .cred = &r->a.f->cred,
        .ino = i->ino,
        .gen = i->gen,
        .hole = r->a.flags == SEEK_HOLE,
        .opened = true,
        .offset = r->a.off,
        .done = on_seek,
        .arg = r,
    };
    hf_client_seek(r->a.e->client, &r->c.range);
}

static void run_seek(struct req *r)
{
    (void)file_inode(r);
    if (r->a.flags != SEEK_DATA && r->a.flags != SEEK_HOLE)
        req_fail(r, HF_E_INVAL);
    else if (r->a.off > INT64_MAX)
        req_fail(r, HF_E_NXIO);
    else
        flush_then(r, seek_send);
}

void hf_seek_async(struct hf_file *f, uint64_t offset, int whence, hf_size_fn *fn, void *arg)
{
    submit_file(f, &(struct args){.run = run_seek,
                                  .kind = K_SIZE,
                                  .fn.size = fn,
                                  .arg = arg,
                                  .flags = whence,
                                  .off = offset});
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads. A read is put together piece by piece: what is buffered here and not sent yet, what was
 * read ahead, and the rest from the servers. Pieces point into the messages that came; only
 * buffered bytes are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "fs_priv.h"

struct read_copy {
    struct read_copy *next;
    uint8_t data[];
};

static void read_free(struct read_state *s)
{
    for (unsigned k = 0; k < s->n; k++)
        if (s->msgs[k])
            hf_rpc_msg_unref(s->msgs[k]);
    while (s->copies) {
        struct read_copy *c = s->copies;

        s->copies = c->next;
        free(c);
    }
    if (s->iov != s->in_iov) {
        free(s->iov);
        free(s->msgs);
    }
}

static bool grow(struct read_state *s)
{
    unsigned cap = s->cap * 2;
    struct iovec *iov = malloc(cap * sizeof(*iov));
    struct hf_rpc_msg **msgs = malloc(cap * sizeof(struct hf_rpc_msg *));

    if (!iov || !msgs) {
        free(iov);
        free(msgs);
        return false;
    }
    memcpy(iov, s->iov, s->n * sizeof(*iov));
    memcpy(msgs, s->msgs, s->n * sizeof(struct hf_rpc_msg *));
    if (s->iov != s->in_iov) {
        free(s->iov);
        free(s->msgs);
    }
    s->iov = iov;
    s->msgs = msgs;
    s->cap = cap;
    return true;
}

/* data NULL: zeros. */
bool read_add(struct req *r, const void *data, size_t len, struct hf_rpc_msg *msg)
{
    struct read_state *s = &r->s.read;

    if (len == 0)
        return true;
    if (s->n == s->cap && !grow(s))
        return false;
    if (msg)
        hf_rpc_msg_ref(msg);
    s->iov[s->n] = (struct iovec){(void *)(uintptr_t)(data ? data : r->a.e->fs->zeros), len};
    s->msgs[s->n++] = msg;
    s->got += len;
    s->pos += len;
    return true;
}

static void read_end(struct req *r, int err)
{
    struct read_state s = r->s.read;

    if (s.iov == r->s.read.in_iov) {
        s.iov = s.in_iov;
        s.msgs = s.in_msgs;
    }
    if (err == 0)
        atomic_fetch_add_explicit(&r->a.e->fs->read_bytes, s.got, memory_order_relaxed);
    req_data(r, err, s.iov, s.n, s.got);
    read_free(&s);
}

/* ---- buffered bytes ---- */

static bool copy_from(struct req *r, const struct ext *x, uint64_t end)
{
    struct read_state *s = &r->s.read;
    size_t n = (size_t)((ext_end(x) < end ? ext_end(x) : end) - s->pos);
    struct read_copy *c = malloc(sizeof(*c) + n);

    if (!c)
        return false;
    c->next = s->copies;
    s->copies = c;
    memcpy(c->data, x->data + (s->pos - x->off), n);
    return read_add(r, c->data, n, NULL);
}

/* What was sent and not committed is at the servers, where others may have changed it since; unless
 * one has restarted, which may have lost it until it is sent again. */
static bool servers_forgot(const struct inode *i)
{
    return !i->hidden && i->unstable_epoch != hf_client_epoch(i->e->client);
}

/* 1: bytes were added; 0: none lie at pos, *stop is where the next begin; else an error. */
static int take_buffered(struct req *r, uint64_t *stop)
{
    const struct inode *i = r->inode;
    const struct wset *const sets[] = {
        i->wb ? &i->wb->dirty : NULL,
        i->wb ? &i->wb->sending : NULL,
        i->wb && i->wb->unstable.n && servers_forgot(i) ? &i->wb->unstable : NULL,
    };

    for (unsigned k = 0; k < HF_ARRAY_LEN(sets); k++) { /* the newest first */
        const struct ext *x = sets[k] ? wset_find(sets[k], r->s.read.pos, *stop) : NULL;

        if (x && x->off <= r->s.read.pos)
            return copy_from(r, x, *stop) ? 1 : HF_E_NOMEM;
        if (x)
            *stop = x->off;
    }
    return 0;
}

/* ---- from the servers ---- */

/* The file ends at pos as far as the servers know; buffered bytes may lie beyond. */
static bool past_end(struct req *r)
{
    struct read_state *s = &r->s.read;
    uint64_t to = s->until < s->local ? s->until : s->local;

    if (to <= s->pos)
        s->end = s->pos;
    else if (!read_add(r, NULL, (size_t)(to - s->pos), NULL))
        return false;
    return true;
}

static void on_read(struct hf_client_io *io)
{
    struct req *r = io->arg;
    struct read_state *s = &r->s.read;
    bool ok = true;

    if (io->attr)
        inode_seen(r->inode, io->attr);
    if (s->epoch != hf_client_epoch(r->a.e->client) && r->inode->wb) {
        read_step(r); /* a server has restarted meanwhile */
        return;
    }
    if (io->status || (io->count == 0 && !io->eof)) {
        read_end(r, io->status ? io->status : HF_E_IO);
        return;
    }
    for (unsigned k = 0; k < io->npieces && ok; k++)
        ok = read_add(r, io->pieces[k].data.data, io->pieces[k].data.len, io->pieces[k].msg);
    if (ok && io->eof && s->pos < s->until)
        ok = past_end(r);
    if (ok)
        read_step(r);
    else
        read_end(r, HF_E_NOMEM);
}

static void read_send(struct req *r, uint64_t stop)
{
    struct read_state *s = &r->s.read;
    const struct inode *i = r->inode;

    s->until = stop;
    s->epoch = hf_client_epoch(r->a.e->client);
    s->local = i->sizes_in ? i->sizes.size : 0;
    r->c.io = (struct hf_client_io){
        .cred = &r->a.f->cred,
        .ino = i->ino,
        .gen = i->gen,
        .offset = s->pos,
        .len = (uint32_t)(stop - s->pos),
        .opened = true,
        .done = on_read,
        .arg = r,
    };
    hf_client_read(r->a.e->client, &r->c.io);
}

void read_step(struct req *r)
{
    struct read_state *s = &r->s.read;

    while (s->pos < s->end) {
        uint64_t stop = s->end;
        int rc = take_buffered(r, &stop);

        if (rc == 1)
            continue;
        if (rc) {
            read_end(r, rc);
            return;
        }
        switch (ra_take(r, &stop)) {
        case RA_TAKEN:
            continue;
        case RA_WAIT:
            return;
        case RA_NOMEM:
            read_end(r, HF_E_NOMEM);
            return;
        case RA_NOTHING:
            read_send(r, stop);
            return;
        }
    }
    read_end(r, 0);
}

static void run_read(struct req *r)
{
    struct read_state *s = &r->s.read;
    struct hf_file *f = r->a.f;
    uint64_t len = r->a.len < HF_CLIENT_IO_MAX ? r->a.len : HF_CLIENT_IO_MAX;

    (void)file_inode(r);
    if (r->a.off > INT64_MAX)
        len = 0;
    else if (len > INT64_MAX - r->a.off)
        len = INT64_MAX - r->a.off;
    *s = (struct read_state){.pos = r->a.off, .end = r->a.off + len, .cap = READ_INLINE};
    s->iov = s->in_iov;
    s->msgs = s->in_msgs;
    r->step = read_step;
    if (!file_reads(f)) {
        req_fail(r, HF_E_BADF);
    } else if (r->inode->stale) {
        req_fail(r, HF_E_STALE);
    } else {
        ra_advance(f, r->a.off, len);
        read_step(r);
    }
}

void hf_read_async(struct hf_file *f, uint64_t offset, size_t len, hf_data_fn *fn, void *arg)
{
    submit_file(
        f,
        &(struct args){
            .run = run_read, .kind = K_DATA, .fn.data = fn, .arg = arg, .off = offset, .len = len});
}

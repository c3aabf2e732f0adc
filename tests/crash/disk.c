/* SPDX-License-Identifier: Apache-2.0
 *
 * From records to files, names and what of them is durable.
 */
#include "disk_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../support/nt.h"

static struct inode *inode_new(struct disk *d, bool dir)
{
    struct inode *in = calloc(1, sizeof(*in));

    in->dir = dir;
    in->next = d->all;
    d->all = in;
    return in;
}

struct disk *disk_new(void)
{
    struct disk *d = calloc(1, sizeof(*d));

    d->root = inode_new(d, true);
    return d;
}

static void names_free(struct names *l)
{
    for (unsigned i = 0; i < l->n; i++)
        free(l->v[i].text);
    free(l->v);
}

void disk_free(struct disk *d)
{
    for (struct inode *in = d->all, *next; in != NULL; in = next) {
        next = in->next;
        for (size_t i = 0; i < in->npages; i++)
            free(in->pages[i]);
        free(in->pages);
        free(in->changes);
        names_free(&in->live);
        names_free(&in->durable);
        for (size_t i = 0; i < in->nsteps; i++)
            free(in->steps[i].n.text);
        free(in->steps);
        free(in);
    }
    free(d);
}

const struct disk_stats *disk_stats(const struct disk *d)
{
    return &d->stats;
}

/* ---- names ---- */

struct name *disk_find(struct names *l, const char *text, size_t len)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (strncmp(l->v[i].text, text, len) == 0 && l->v[i].text[len] == '\0')
            return &l->v[i];
    }
    return NULL;
}

void disk_name_add(struct names *l, const char *text, size_t len, struct inode *in)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->v = realloc(l->v, l->cap * sizeof(*l->v));
    }
    l->v[l->n++] = (struct name){strndup(text, len), in};
}

void disk_name_del(struct names *l, struct name *n)
{
    free(n->text);
    *n = l->v[--l->n];
}

static void step_add(struct disk *d, struct inode *dir, bool add, const char *text, size_t len,
                     struct inode *in)
{
    if (dir->nsteps == dir->cap_steps) {
        dir->cap_steps = dir->cap_steps ? 2 * dir->cap_steps : 16;
        dir->steps = realloc(dir->steps, dir->cap_steps * sizeof(*dir->steps));
    }
    dir->steps[dir->nsteps++] = (struct name_change){add, d->seq, {strndup(text, len), in}};
}

/* The folder that holds path's last part, which is *ret_last. */
static struct inode *walk(struct disk *d, const char *path, size_t len, const char **ret_last,
                          size_t *ret_len)
{
    struct inode *dir = d->root;
    const char *slash;

    while ((slash = memchr(path, '/', len)) != NULL) {
        struct name *n = disk_find(&dir->live, path, (size_t)(slash - path));

        if (n == NULL || !n->in->dir)
            nt_fail(__FILE__, __LINE__, "trace: no folder for %.*s", (int)len, path);
        dir = n->in;
        len -= (size_t)(slash - path) + 1;
        path = slash + 1;
    }
    *ret_last = path;
    *ret_len = len;
    return dir;
}

static struct inode *make(struct disk *d, struct inode *parent, const char *text, size_t len,
                          bool dir)
{
    struct inode *in = inode_new(d, dir);

    disk_name_add(&parent->live, text, len, in);
    step_add(d, parent, true, text, len, in);
    return in;
}

static void drop(struct disk *d, const char *path, size_t len)
{
    const char *last;
    struct inode *dir = walk(d, path, len, &last, &len);
    struct name *n = disk_find(&dir->live, last, len);

    if (n == NULL)
        nt_fail(__FILE__, __LINE__, "trace: no %.*s to remove", (int)len, last);
    step_add(d, dir, false, last, len, n->in);
    disk_name_del(&dir->live, n);
}

/* ---- content ---- */

static void change_add(struct disk *d, struct inode *in, struct change c)
{
    if (in->nchanges == in->cap_changes) {
        in->cap_changes = in->cap_changes ? 2 * in->cap_changes : 16;
        in->changes = realloc(in->changes, in->cap_changes * sizeof(*in->changes));
    }
    c.seq = d->seq;
    in->changes[in->nchanges++] = c;
}

static void zero(struct inode *in, uint64_t off, uint64_t end)
{
    while (off < end && off / DISK_PAGE < in->npages) {
        uint64_t stop = (off / DISK_PAGE + 1) * DISK_PAGE;
        uint8_t *page = in->pages[off / DISK_PAGE];

        if (stop > end)
            stop = end;
        if (page != NULL)
            memset(page + off % DISK_PAGE, 0, stop - off);
        off = stop;
    }
}

static void store(struct inode *in, uint64_t off, const uint8_t *data, uint64_t len)
{
    size_t need = (size_t)((off + len + DISK_PAGE - 1) / DISK_PAGE);

    if (need > in->npages) {
        in->pages = realloc(in->pages, need * sizeof(*in->pages));
        memset(in->pages + in->npages, 0, (need - in->npages) * sizeof(*in->pages));
        in->npages = need;
    }
    while (len > 0) {
        uint64_t n = DISK_PAGE - off % DISK_PAGE < len ? DISK_PAGE - off % DISK_PAGE : len;
        uint8_t **page = &in->pages[off / DISK_PAGE];

        if (*page == NULL)
            *page = calloc(1, DISK_PAGE);
        memcpy(*page + off % DISK_PAGE, data, n);
        off += n;
        data += n;
        len -= n;
    }
}

void disk_fold(struct inode *in, const struct change *c)
{
    switch (c->kind) {
    case TR_WRITE:
        store(in, c->off, c->data, c->len);
        if (c->off + c->len > in->size)
            in->size = c->off + c->len;
        break;
    case TR_TRUNCATE:
        if (c->off < in->size)
            zero(in, c->off, in->size);
        in->size = c->off;
        break;
    case TR_ALLOCATE:
        if (c->off > in->size)
            in->size = c->off;
        break;
    default: /* TR_PUNCH */
        zero(in, c->off, c->off + c->len);
        break;
    }
}

/* What is durable without a gap before it becomes the file's content. */
static void settle(struct inode *in)
{
    size_t n = 0;

    while (n < in->nchanges && in->changes[n].durable)
        disk_fold(in, &in->changes[n++]);
    if (n == 0)
        return;
    in->nchanges -= n;
    memmove(in->changes, in->changes + n, in->nchanges * sizeof(*in->changes));
}

/* ---- syncs ---- */

static void sync_begin(struct disk *d, struct inode *in, uint64_t id)
{
    for (unsigned i = 0; i < DISK_SYNCS; i++) {
        if (d->syncs[i].id == 0) {
            d->syncs[i] = (struct sync){id, d->seq, in};
            return;
        }
    }
    nt_fail(__FILE__, __LINE__, "trace: too many syncs at once");
}

static void synced(struct inode *in, uint64_t seq)
{
    size_t n = 0;

    for (size_t i = 0; i < in->nchanges && in->changes[i].seq < seq; i++)
        in->changes[i].durable = true;
    settle(in);
    for (; n < in->nsteps && in->steps[n].seq < seq; n++) {
        struct name_change *s = &in->steps[n];

        if (s->add)
            disk_name_add(&in->durable, s->n.text, strlen(s->n.text), s->n.in);
        else
            disk_name_del(&in->durable, disk_find(&in->durable, s->n.text, strlen(s->n.text)));
        free(s->n.text);
    }
    if (n == 0)
        return;
    in->nsteps -= n;
    memmove(in->steps, in->steps + n, in->nsteps * sizeof(*in->steps));
}

static void sync_end(struct disk *d, uint64_t id, bool ok)
{
    for (unsigned i = 0; i < DISK_SYNCS; i++) {
        if (d->syncs[i].id == id) {
            if (ok)
                synced(d->syncs[i].in, d->syncs[i].seq);
            d->syncs[i].id = 0;
            return;
        }
    }
    nt_fail(__FILE__, __LINE__, "trace: a sync ends that did not begin");
}

/* ---- records ---- */

static void opened(struct disk *d, const struct trace_rec *r, const char *path)
{
    size_t len = r->len;
    const char *last;
    struct inode *dir = walk(d, path, len, &last, &len), *in = d->root;
    struct name *n = len > 0 ? disk_find(&dir->live, last, len) : NULL;

    if (n != NULL)
        in = n->in;
    else if (len > 0)
        in = make(d, dir, last, len, false);
    d->fds[r->fd] = in;
    if (((int)r->a & O_TRUNC) && n != NULL)
        change_add(d, in, (struct change){.kind = TR_TRUNCATE});
}

static struct inode *file_of(struct disk *d, int64_t fd)
{
    if (fd < 0 || fd >= DISK_FDS || d->fds[fd] == NULL)
        nt_fail(__FILE__, __LINE__, "trace: descriptor %d is not open", (int)fd);
    return d->fds[fd];
}

static void on_content(struct disk *d, const struct trace_rec *r, const uint8_t *data)
{
    struct inode *in = file_of(d, r->fd);
    struct change c = {.kind = r->kind, .off = r->a, .len = r->b};

    if (r->kind == TR_WRITE || r->kind == TR_WRITE_SYNC) {
        c.kind = TR_WRITE;
        c.durable = r->kind == TR_WRITE_SYNC;
        c.len = r->len;
        c.data = data;
    }
    change_add(d, in, c);
}

void disk_apply(struct disk *d, const struct trace_rec *r)
{
    const uint8_t *data = (const uint8_t *)(r + 1);
    const char *path = (const char *)data, *last;
    struct inode *dir;
    size_t len = r->len;

    d->seq++;
    switch (r->kind) {
    case TR_PROCESS:
        memset(d->fds, 0, sizeof(d->fds));
        memset(d->syncs, 0, sizeof(d->syncs));
        break;
    case TR_OPEN:
        opened(d, r, path);
        break;
    case TR_CLOSE:
        d->fds[r->fd] = NULL;
        break;
    case TR_DUP:
        d->fds[r->fd] = file_of(d, (int64_t)r->a);
        break;
    case TR_WRITE:
    case TR_WRITE_SYNC:
    case TR_TRUNCATE:
    case TR_ALLOCATE:
    case TR_PUNCH:
        on_content(d, r, data);
        break;
    case TR_SYNC_BEGIN:
        sync_begin(d, file_of(d, r->fd), r->a);
        break;
    case TR_SYNC_END:
        sync_end(d, r->a, r->b != 0);
        break;
    case TR_MKDIR:
        if (len == 0)
            break; /* the folder itself */
        dir = walk(d, path, len, &last, &len);
        (void)make(d, dir, last, len, true);
        break;
    case TR_UNLINK:
    case TR_RMDIR:
        drop(d, path, len);
        break;
    case TR_MARK:
        break;
    default:
        nt_fail(__FILE__, __LINE__, "trace: record %u at %p: %.*s", r->kind, (const void *)r,
                (int)len, path);
    }
}

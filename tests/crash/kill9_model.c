/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of the crash test: chosen at random, done over NFS, booked in the model.
 */
#include "kill9.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t k9_rand(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static unsigned below(struct worker *w, unsigned n)
{
    return (unsigned)(k9_rand(&w->rng) % n);
}

void k9_name(unsigned s, char buf[16])
{
    snprintf(buf, 16, "n%u", s);
}

static void say(struct worker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct worker *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(w->error, sizeof(w->error), fmt, ap);
    va_end(ap);
}

void k9_worker_init(struct worker *w, struct nt *c, const struct nt_fh *parent)
{
    char name[16];

    if (w->nslots == 0) {
        w->nslots = SLOTS;
    }
    snprintf(name, sizeof(name), "w%u", w->id);
    nt_mk_dir(c, parent, name, 0755, &w->top);
    for (unsigned d = 0; d < DIRS; d++) {
        snprintf(name, sizeof(name), "d%u", d);
        nt_mk_dir(c, &w->top, name, 0755, &w->dirs[d]);
    }
}

/* ---- the model's side ---- */

static int free_file(const struct worker *w)
{
    for (int i = 0; i < FILES; i++) {
        if (!w->files[i].live) {
            return i;
        }
    }
    return -1;
}

void k9_file_room(struct file *f, uint64_t size)
{
    if (size > f->cap) {
        f->data = realloc(f->data, size);
        memset(f->data + f->cap, 0, size - f->cap);
        f->cap = size;
    }
}

static void file_resize(struct file *f, uint64_t size)
{
    k9_file_room(f, size);
    if (size < f->size) {
        memset(f->data + size, 0, f->size - size);
    }
    f->size = size;
}

const char *k9_op_name(int op)
{
    static const char *const names[] = {"-",    "create", "mkdir", "symlink", "link", "write",
                                        "size", "remove", "rmdir", "rename",  "mode", "read"};

    return names[op < 0 ? -op : op];
}

void k9_remember(struct file *f, int op, uint64_t off, uint64_t len)
{
    f->history[f->nhistory++ % HISTORY] =
        (struct event){.op = op, .off = off, .len = len, .size = f->size};
}

static void drop_name(struct worker *w, struct slot *s)
{
    if (s->kind == K_FILE) {
        struct file *f = &w->files[s->file];

        if (--f->nlink == 0) {
            free(f->data);
            memset(f, 0, sizeof(*f));
        }
    }
    memset(s, 0, sizeof(*s));
}

/* w->p has happened. fh: the handle of what it made. */
void k9_book(struct worker *w, const struct nt_fh *fh)
{
    struct pending *p = &w->p;
    struct slot *s = &w->slots[p->d][p->s], *t = &w->slots[p->d2][p->s2];
    struct file *f = p->file >= 0 ? &w->files[p->file] : NULL;

    switch (p->op) {
    case OP_CREATE:
        *s = (struct slot){.kind = K_FILE, .file = p->file};
        *f = (struct file){.live = true, .fh = *fh, .nlink = 1, .mode = 0644};
        break;
    case OP_MKDIR:
        *s = (struct slot){.kind = K_DIR, .fh = *fh};
        break;
    case OP_SYMLINK:
        *s = (struct slot){.kind = K_LINK, .fh = *fh, .version = p->seed};
        break;
    case OP_LINK:
        *s = (struct slot){.kind = K_FILE, .file = p->file};
        f->nlink++;
        break;
    case OP_WRITE:
        if (p->off + p->len > f->size) {
            file_resize(f, p->off + p->len);
        }
        nt_pattern(p->seed, p->off, f->data + p->off, p->len);
        f->know_mtime = false;
        break;
    case OP_SIZE:
        file_resize(f, p->off);
        f->know_mtime = false;
        break;
    case OP_MODE:
        f->mode = p->mode;
        f->mtime = p->seed;
        f->know_mtime = true;
        break;
    case OP_REMOVE:
    case OP_RMDIR:
        drop_name(w, s);
        break;
    case OP_RENAME:
        if (s->kind == K_FILE && t->kind == K_FILE && s->file == t->file) {
            break; /* two names of one file: nothing happens */
        }
        drop_name(w, t);
        *t = *s;
        memset(s, 0, sizeof(*s));
        break;
    case OP_READ:
    case OP_NONE:
        break;
    }
    if (f != NULL && f->live) {
        k9_remember(f, (int)p->op, p->off, p->len);
    }
    p->op = OP_NONE;
}

/* ---- choosing ---- */

static void choose_write(struct worker *w, struct pending *p)
{
    unsigned how = below(w, 100);

    p->op = OP_WRITE;
    p->pieces = below(w, 3) == 0 ? 1 + below(w, 4) : 0;
    if (how < 65) { /* inline */
        p->off = below(w, 5000);
        p->len = 1 + below(w, 2500);
    } else if (how < 90) {
        p->off = below(w, 100000);
        p->len = 1 + below(w, 65536);
    } else if (how < 97) {
        p->off = below(w, 300000);
        p->len = 1 + below(w, 262144);
    } else { /* over the border of a chunk */
        p->off = (4u << 20) - 1 - below(w, 10000);
        p->len = 10001 + below(w, 10000);
    }
}

static void choose_new(struct worker *w, struct pending *p)
{
    unsigned how = below(w, 100);

    if (how < 60) {
        p->op = OP_CREATE;
        p->file = free_file(w);
    } else if (how < 70) {
        p->op = OP_MKDIR;
    } else if (how < 80) {
        p->op = OP_SYMLINK;
    } else {
        p->op = OP_LINK;
        p->file = (int)below(w, DIRS * w->nslots);
        if (!w->files[p->file].live) {
            p->op = OP_CREATE;
            p->file = free_file(w);
        }
    }
}

static void choose(struct worker *w)
{
    struct pending *p = &w->p;
    struct slot *s, *t;
    unsigned how = below(w, 100);

    *p = (struct pending){.d = below(w, DIRS),
                          .s = below(w, w->nslots),
                          .d2 = below(w, DIRS),
                          .s2 = below(w, w->nslots),
                          .file = -1,
                          .seed = (uint32_t)k9_rand(&w->rng)};
    s = &w->slots[p->d][p->s];
    t = &w->slots[p->d2][p->s2];
    if (s->kind == K_NONE) {
        choose_new(w, p);
        return;
    }
    p->file = s->kind == K_FILE ? s->file : -1;
    /* a file may replace a file; anything may take a free name */
    if (how < 30 && (t->kind == K_NONE || (t->kind == K_FILE && s->kind == K_FILE)) && s != t) {
        p->op = OP_RENAME;
    } else if (s->kind == K_DIR) {
        p->op = OP_RMDIR;
    } else if (s->kind == K_LINK || how < 45) {
        p->op = OP_REMOVE;
    } else if (how < 53) {
        p->op = OP_SIZE;
        p->off = below(w, below(w, 4) == 0 ? 300000 : 9000);
    } else if (how < 58) {
        p->op = OP_MODE; /* to another mode than it has: so it shows whether it happened */
        p->mode = (w->files[s->file].mode + 1 + below(w, 0777)) & 0777;
        p->seed &= 0x7fffffff;
    } else if (how < 65) {
        p->op = OP_READ;
    } else {
        choose_write(w, p);
    }
}

/* ---- doing ---- */

static uint32_t write_piece(struct worker *w, struct nt *c, const struct nt_fh *fh, uint64_t off,
                            uint32_t len, uint32_t stable)
{
    uint8_t *b = malloc(len);
    uint32_t st;

    nt_pattern(w->p.seed, off, b, len);
    st = nt_write(c, fh, off, b, len, stable);
    free(b);
    if (st == NFS3_OK && c->r.count != len) {
        say(w, "WRITE of %u bytes took %u", len, c->r.count);
        return NFS3ERR_IO;
    }
    return st;
}

/* UNSTABLE writes count once a COMMIT has answered with the verifier of all of them. */
static uint32_t write_unstable(struct worker *w, struct nt *c, const struct nt_fh *fh)
{
    struct pending *p = &w->p;
    uint32_t step = (p->len + p->pieces - 1) / p->pieces, st = NFS3_OK;
    char verf[8] = "";

    for (uint32_t at = 0; at < p->len && st == NFS3_OK; at += step) {
        st = write_piece(w, c, fh, p->off + at, p->len - at < step ? p->len - at : step, UNSTABLE);
        if (st == NFS3_OK && at > 0 && memcmp(verf, c->r.verf, 8) != 0)
            say(w, "the verifier changed without a restart");
        memcpy(verf, c->r.verf, 8);
    }
    if (st == NFS3_OK)
        st = nt_commit(c, fh, p->off, p->len);
    if (st == NFS3_OK && memcmp(verf, c->r.verf, 8) != 0)
        say(w, "the verifier changed without a restart");
    return st;
}

static uint32_t do_write(struct worker *w, struct nt *c, const struct file *f)
{
    struct pending *p = &w->p;

    if (p->pieces > 0)
        return write_unstable(w, c, &f->fh);
    return write_piece(w, c, &f->fh, p->off, p->len, FILE_SYNC);
}

/* What is read is what was written. */
static uint32_t do_read(struct worker *w, struct nt *c, const struct file *f)
{
    uint32_t st = NFS3_OK;

    for (uint64_t at = 0; at < f->size && st == NFS3_OK; at += c->r.count) {
        uint64_t n = f->size - at < NT_IO_MAX ? f->size - at : NT_IO_MAX;

        st = nt_read(c, &f->fh, at, (uint32_t)n);
        if (st != NFS3_OK)
            break;
        if (c->r.count == 0 || memcmp(c->data, f->data + at, c->r.count) != 0) {
            say(w, "a read of [%llu, +%llu) gives something else than was written",
                (unsigned long long)at, (unsigned long long)n);
            break;
        }
        w->read_bytes += c->r.count;
    }
    return st;
}

static uint32_t perform(struct worker *w, struct nt *c)
{
    struct nt_set set = NT_SET_MODE(0644);
    struct pending *p = &w->p;
    struct nt_fh *dir = &w->dirs[p->d];
    struct file *f = p->file >= 0 ? &w->files[p->file] : NULL;
    char name[16], to[16], target[16];

    k9_name(p->s, name);
    k9_name(p->s2, to);
    snprintf(target, sizeof(target), "v%u", p->seed);
    switch (p->op) {
    case OP_CREATE:
        return nt_create(c, dir, name, GUARDED, &set, NULL);
    case OP_MKDIR:
        return nt_mkdir(c, dir, name, &set);
    case OP_SYMLINK:
        return nt_symlink(c, dir, name, target, &set);
    case OP_LINK:
        return nt_link(c, &f->fh, dir, name);
    case OP_WRITE:
        return do_write(w, c, f);
    case OP_SIZE:
        set = NT_SET_NONE;
        set.set_size = true;
        set.size = p->off;
        return nt_setattr(c, &f->fh, &set, NULL);
    case OP_REMOVE:
        return nt_remove(c, dir, name);
    case OP_RMDIR:
        return nt_rmdir(c, dir, name);
    case OP_RENAME:
        return nt_rename(c, dir, name, &w->dirs[p->d2], to);
    case OP_MODE:
        set = NT_SET_MODE(p->mode);
        set.mtime_how = SET_TO_CLIENT_TIME;
        set.mtime.seconds = p->seed;
        return nt_setattr(c, &f->fh, &set, NULL);
    case OP_READ:
        return do_read(w, c, f);
    case OP_NONE:
        break;
    }
    return NFS3_OK;
}

static void tell(struct worker *w, enum k9_event ev, const struct nt_fh *fh)
{
    if (w->journal != NULL) {
        w->journal(w, ev, fh);
    }
}

static bool refusal(const struct worker *w, uint32_t st)
{
    return w->may_refuse && (st == NFS3ERR_IO || st == NFS3ERR_NOSPC || st == NFS3ERR_JUKEBOX);
}

bool k9_step(struct worker *w, struct nt *c)
{
    bool made;
    uint32_t st;

    choose(w);
    made = w->p.op == OP_CREATE || w->p.op == OP_MKDIR || w->p.op == OP_SYMLINK;
    tell(w, K9_START, NULL);
    st = perform(w, c);
    if (st == NT_NO_REPLY || w->error[0] != '\0') {
        return false;
    }
    if (refusal(w, st)) {
        w->refused = st;
        return false;
    }
    if (st != NFS3_OK) {
        say(w, "operation %s on d%u/n%u answers %s", k9_op_name((int)w->p.op), w->p.d, w->p.s,
            nt_status_name(st));
        return false;
    }
    if (made && !c->r.have_fh) {
        say(w, "no handle for what was made");
        return false;
    }
    tell(w, K9_ACK, &c->r.fh);
    w->acked += w->p.op != OP_READ;
    k9_book(w, &c->r.fh);
    return true;
}

/* ---- playing back ---- */

void k9_apply(struct worker *w, const struct pending *p, const struct nt_fh *fh)
{
    w->p = *p;
    k9_book(w, fh);
}

void k9_apply_found(struct worker *w, const struct pending *p, uint64_t size, const uint8_t *bytes)
{
    struct file *f = &w->files[p->file];
    uint64_t end = p->off + p->len < size ? p->off + p->len : size;

    k9_file_room(f, size);
    if (end > p->off) {
        memcpy(f->data + p->off, bytes, end - p->off);
    }
    f->size = size;
    f->know_mtime = false;
    k9_remember(f, -(int)p->op, p->off, p->len);
    w->p.op = OP_NONE;
}

void k9_copy(struct worker *to, const struct worker *from)
{
    *to = *from;
    for (unsigned i = 0; i < FILES; i++) {
        struct file *f = &to->files[i];

        if (f->data != NULL) {
            f->data = malloc(f->cap);
            memcpy(f->data, from->files[i].data, f->cap);
        }
    }
}

void k9_clear(struct worker *w)
{
    for (unsigned i = 0; i < FILES; i++) {
        free(w->files[i].data);
        w->files[i].data = NULL;
    }
}

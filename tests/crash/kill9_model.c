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

static void file_room(struct file *f, uint64_t size)
{
    if (size > f->cap) {
        f->data = realloc(f->data, size);
        memset(f->data + f->cap, 0, size - f->cap);
        f->cap = size;
    }
}

static void file_resize(struct file *f, uint64_t size)
{
    file_room(f, size);
    if (size < f->size) {
        memset(f->data + size, 0, f->size - size);
    }
    f->size = size;
}

static const char *op_name(int op)
{
    static const char *const names[] = {"-",     "create", "mkdir",  "symlink", "link",
                                        "write", "size",   "remove", "rmdir",   "rename"};

    return names[op < 0 ? -op : op];
}

static void remember(struct file *f, int op, uint64_t off, uint64_t len)
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
static void book(struct worker *w, const struct nt_fh *fh)
{
    struct pending *p = &w->p;
    struct slot *s = &w->slots[p->d][p->s], *t = &w->slots[p->d2][p->s2];
    struct file *f = p->file >= 0 ? &w->files[p->file] : NULL;

    switch (p->op) {
    case OP_CREATE:
        *s = (struct slot){.kind = K_FILE, .file = p->file};
        *f = (struct file){.live = true, .fh = *fh, .nlink = 1};
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
        break;
    case OP_SIZE:
        file_resize(f, p->off);
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
    case OP_NONE:
        break;
    }
    if (f != NULL && f->live) {
        remember(f, (int)p->op, p->off, p->len);
    }
    p->op = OP_NONE;
}

/* ---- choosing ---- */

static void choose_write(struct worker *w, struct pending *p)
{
    unsigned how = below(w, 100);

    p->op = OP_WRITE;
    p->commit = below(w, 4) == 0;
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
        p->file = (int)below(w, FILES);
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
                          .s = below(w, SLOTS),
                          .d2 = below(w, DIRS),
                          .s2 = below(w, SLOTS),
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
    } else if (how < 55) {
        p->op = OP_SIZE;
        p->off = below(w, below(w, 4) == 0 ? 300000 : 9000);
    } else {
        choose_write(w, p);
    }
}

/* ---- doing ---- */

/* UNSTABLE writes count once a COMMIT has answered with the same verifier. */
static uint32_t do_write(struct worker *w, struct nt *c, struct file *f)
{
    struct pending *p = &w->p;
    uint8_t *b = malloc(p->len);
    char verf[8];
    uint32_t st;

    nt_pattern(p->seed, p->off, b, p->len);
    st = nt_write(c, &f->fh, p->off, b, p->len, p->commit ? UNSTABLE : FILE_SYNC);
    free(b);
    if (st != NFS3_OK) {
        return st;
    }
    if (c->r.count != p->len) {
        say(w, "WRITE of %u bytes took %u", p->len, c->r.count);
        return NFS3ERR_IO;
    }
    if (p->commit) {
        memcpy(verf, c->r.verf, 8);
        st = nt_commit(c, &f->fh, p->off, p->len);
        if (st == NFS3_OK && memcmp(verf, c->r.verf, 8) != 0) {
            say(w, "the verifier changed without a restart");
            st = NFS3ERR_IO;
        }
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
    case OP_NONE:
        break;
    }
    return NFS3_OK;
}

bool k9_step(struct worker *w, struct nt *c)
{
    uint32_t st;

    choose(w);
    st = perform(w, c);
    if (st == NT_NO_REPLY || w->error[0] != '\0') {
        return false;
    }
    if (st != NFS3_OK) {
        say(w, "operation %d on d%u/n%u answers %s", (int)w->p.op, w->p.d, w->p.s,
            nt_status_name(st));
        return false;
    }
    if ((w->p.op == OP_CREATE || w->p.op == OP_MKDIR || w->p.op == OP_SYMLINK) && !c->r.have_fh) {
        say(w, "no handle for what was made");
        return false;
    }
    book(w, &c->r.fh);
    w->acked++;
    return true;
}

/* ---- after a kill: before or after? ---- */

/* A byte of the range in doubt is old or new; what it is now becomes the model. */
static void resolve_write(struct worker *w, struct nt *c)
{
    struct pending *p = &w->p;
    struct file *f = &w->files[p->file];
    uint64_t end = p->off + p->len, size;
    uint8_t *neu = malloc(p->len);

    nt_pattern(p->seed, p->off, neu, p->len);
    NT_OK(nt_getattr(c, &f->fh));
    size = c->r.attr.size;
    /* longer only by this write, never shorter */
    if (size < f->size || (size > f->size && size > end)) {
        nt_fail(__FILE__, __LINE__,
                "size %llu after a write in doubt; it was %llu, the write ends at %llu",
                (unsigned long long)size, (unsigned long long)f->size, (unsigned long long)end);
    }
    file_room(f, size);
    for (uint64_t at = p->off; at < end && at < size; at += c->r.count) {
        NT_OK(nt_read(c, &f->fh, at, (uint32_t)((end < size ? end : size) - at)));
        NT_CHECK(c->r.count > 0);
        for (uint32_t i = 0; i < c->r.count; i++) {
            uint8_t old = at + i < f->size ? f->data[at + i] : 0;

            if (c->data[i] != old && c->data[i] != neu[at + i - p->off]) {
                nt_fail(__FILE__, __LINE__, "byte %llu is neither old nor new",
                        (unsigned long long)(at + i));
            }
            f->data[at + i] = c->data[i];
        }
    }
    f->size = size;
    free(neu);
    p->op = OP_NONE;
}

static bool exists(struct nt *c, const struct nt_fh *dir, unsigned s)
{
    char name[16];

    k9_name(s, name);
    NT_ONE_OF(nt_lookup(c, dir, name), NFS3_OK, NFS3ERR_NOENT);
    return c->r.status == NFS3_OK;
}

static bool has_happened(struct worker *w, struct nt *c)
{
    struct pending *p = &w->p;

    switch (p->op) {
    case OP_CREATE:
    case OP_MKDIR:
    case OP_SYMLINK:
    case OP_LINK:
        return exists(c, &w->dirs[p->d], p->s);
    case OP_REMOVE:
    case OP_RMDIR:
    case OP_RENAME: /* k9_verify sees whether the other name fits */
        return !exists(c, &w->dirs[p->d], p->s);
    case OP_SIZE:
        NT_OK(nt_getattr(c, &w->files[p->file].fh));
        return c->r.attr.size == p->off;
    case OP_WRITE:
    case OP_NONE:
        break;
    }
    return false;
}

void k9_resolve(struct worker *w, struct nt *c)
{
    struct nt_fh fh;

    if (w->p.file >= 0 && w->files[w->p.file].live) {
        remember(&w->files[w->p.file], -(int)w->p.op, w->p.off, w->p.len);
    }
    if (w->p.op == OP_NONE) {
        return;
    }
    if (w->p.op == OP_WRITE) {
        resolve_write(w, c);
        return;
    }
    if (has_happened(w, c)) {
        fh = c->r.fh;
        book(w, &fh);
        w->in_doubt_done++;
    } else {
        w->p.op = OP_NONE;
        w->in_doubt_not++;
    }
}

/* ---- comparing ---- */

static void verify_entry(struct worker *w, struct nt *c, unsigned d, const struct nt_entry *e)
{
    char *end = NULL;
    unsigned long s = e->name[0] == 'n' ? strtoul(e->name + 1, &end, 10) : SLOTS;
    const struct slot *slot;
    const struct nt_fh *fh;

    if (s >= SLOTS || *end != '\0' || w->slots[d][s].kind == K_NONE) {
        nt_fail(__FILE__, __LINE__, "w%u/d%u/%s should not be there", w->id, d, e->name);
    }
    slot = &w->slots[d][s];
    fh = slot->kind == K_FILE ? &w->files[slot->file].fh : &slot->fh;
    NT_OK(nt_lookup(c, &w->dirs[d], e->name));
    if (!nt_fh_eq(fh, &c->r.fh)) {
        nt_fail(__FILE__, __LINE__, "w%u/d%u/%s is another object", w->id, d, e->name);
    }
    NT_EQ(c->r.attr.fileid, e->fileid);
    if (slot->kind == K_DIR) {
        NT_EQ(c->r.attr.type, NF3DIR);
        NT_EQ(c->r.attr.nlink, 2);
    } else if (slot->kind == K_LINK) {
        char target[16];

        snprintf(target, sizeof(target), "v%u", slot->version);
        NT_OK(nt_readlink(c, fh));
        NT_CHECK(strcmp(c->r.target, target) == 0);
    }
}

static void verify_dir(struct worker *w, struct nt *c, unsigned d)
{
    unsigned want = 0, subdirs = 0, got = 0;
    struct nt_entry *list;
    unsigned n;

    for (unsigned s = 0; s < SLOTS; s++) {
        want += w->slots[d][s].kind != K_NONE;
        subdirs += w->slots[d][s].kind == K_DIR;
    }
    NT_OK(nt_getattr(c, &w->dirs[d]));
    NT_EQ(c->r.attr.nlink, 2 + subdirs);
    NT_OK(nt_readdirplus(c, &w->dirs[d], 0, NULL, 65536, 65536));
    NT_CHECK(c->r.eof);
    n = c->r.nentries;
    list = calloc(n, sizeof(*list));
    memcpy(list, c->entries, n * sizeof(*list));
    for (unsigned i = 0; i < n; i++) {
        if (list[i].name[0] != '.') {
            verify_entry(w, c, d, &list[i]);
            got++;
        }
    }
    free(list);
    NT_EQ(got, want); /* nothing acknowledged is missing */
}

static void content_differs(const struct worker *w, unsigned i, uint64_t at, const uint8_t *got,
                            uint32_t n)
{
    const uint8_t *want = w->files[i].data + at;
    uint32_t first = 0, last = n - 1;

    while (got[first] == want[first]) {
        first++;
    }
    while (got[last] == want[last]) {
        last--;
    }
    for (unsigned k = 0; k < HISTORY; k++) {
        const struct event *e = &w->files[i].history[(w->files[i].nhistory + k) % HISTORY];

        printf("# %s%s [%llu, +%llu), size then %llu\n", e->op < 0 ? "in doubt: " : "",
               op_name(e->op), (unsigned long long)e->off, (unsigned long long)e->len,
               (unsigned long long)e->size);
    }
    nt_fail(__FILE__, __LINE__,
            "w%u: file %u of %llu bytes differs in [%llu, %llu]: 0x%02x where 0x%02x was written",
            w->id, i, (unsigned long long)w->files[i].size, (unsigned long long)(at + first),
            (unsigned long long)(at + last), got[first], want[first]);
}

void k9_verify(struct worker *w, struct nt *c)
{
    for (unsigned d = 0; d < DIRS; d++) {
        verify_dir(w, c, d);
    }
    for (unsigned i = 0; i < FILES; i++) {
        struct file *f = &w->files[i];

        if (!f->live) {
            continue;
        }
        NT_OK(nt_getattr(c, &f->fh));
        NT_EQ(c->r.attr.size, f->size);
        NT_EQ(c->r.attr.nlink, f->nlink);
        for (uint64_t at = 0; at < f->size; at += c->r.count) {
            uint64_t n = f->size - at < NT_IO_MAX ? f->size - at : NT_IO_MAX;

            NT_OK(nt_read(c, &f->fh, at, (uint32_t)n));
            NT_CHECK(c->r.count > 0);
            if (memcmp(c->data, f->data + at, c->r.count) != 0) {
                content_differs(w, i, at, c->data, c->r.count);
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * After a crash: what of the operations in doubt has happened, and whether everything else is as
 * the model says.
 */
#include "kill9.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(struct worker *w, enum k9_event ev, const struct nt_fh *fh)
{
    if (w->journal != NULL) {
        w->journal(w, ev, fh);
    }
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
    k9_file_room(f, size);
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
    f->know_mtime = false;
    free(neu);
    tell(w, K9_FOUND, NULL);
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
    case OP_MODE:
        NT_OK(nt_getattr(c, &w->files[p->file].fh));
        return c->r.attr.mode == p->mode; /* k9_verify sees whether the mtime came with it */
    case OP_READ:
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
        k9_remember(&w->files[w->p.file], -(int)w->p.op, w->p.off, w->p.len);
    }
    if (w->p.op == OP_NONE || w->p.op == OP_READ) {
        w->p.op = OP_NONE;
        return;
    }
    if (w->p.op == OP_WRITE) {
        resolve_write(w, c);
        return;
    }
    if (has_happened(w, c)) {
        fh = c->r.fh;
        tell(w, K9_HAPPENED, &fh);
        k9_book(w, &fh);
        w->in_doubt_done++;
    } else {
        tell(w, K9_NOT, NULL);
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

void k9_content_differs(const struct worker *w, unsigned i, uint64_t at, const uint8_t *got,
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
               k9_op_name(e->op), (unsigned long long)e->off, (unsigned long long)e->len,
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
        NT_EQ(c->r.attr.mode, f->mode);
        if (f->know_mtime) {
            NT_EQ(c->r.attr.mtime.seconds, f->mtime);
        }
        for (uint64_t at = 0; at < f->size; at += c->r.count) {
            uint64_t n = f->size - at < NT_IO_MAX ? f->size - at : NT_IO_MAX;

            NT_OK(nt_read(c, &f->fh, at, (uint32_t)n));
            NT_CHECK(c->r.count > 0);
            if (memcmp(c->data, f->data + at, c->r.count) != 0) {
                k9_content_differs(w, i, at, c->data, c->r.count);
            }
        }
    }
}

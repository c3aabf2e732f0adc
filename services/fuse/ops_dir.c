/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing directories. A cookie of the shards is the kernel's offset, so a listing goes on after
 * removals and restarts, and a directory needs no state while it is open.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuse_priv.h"

#define ENTRY_BYTES      48u /* of a usual name, to guess how many entries fill a page */
#define ENTRY_PLUS_BYTES 176u
#define PAGE_BYTES_MAX   (1u << 20)

struct page {
    fuse_req_t req;
    struct hf_fusesvc *svc;
    bool plus;
    size_t size;
    char bytes[];
};

void op_opendir(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
    (void)id;
    (void)fuse_reply_open(req, fi);
}

void op_fsyncdir(fuse_req_t req, fuse_ino_t id, int datasync, struct fuse_file_info *fi)
{
    (void)id;
    (void)datasync;
    (void)fi;
    reply_err(req, 0); /* names are durable when they are made */
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Returns the bytes that the entry needs; it has been added if that is at most `room`. */
static size_t add(struct page *p, char *at, size_t room, const struct hf_dirent *e)
{
    struct fuse_entry_param ep = {.attr_timeout = p->svc->attr_s, .entry_timeout = p->svc->entry_s};
    size_t need;

    if (e->attr)
        stat_fill(p->svc, e->attr, &ep.attr);
    else
        ep.attr = (struct stat){.st_ino = e->ino, .st_mode = DTTOIF(e->type)};
    if (!p->plus)
        return fuse_add_direntry(p->req, at, room, e->name, &ep.attr, (off_t)e->cookie);
    need = fuse_add_direntry_plus(p->req, NULL, 0, e->name, NULL, 0);
    if (need > room)
        return need;
    if (e->attr && !is_dots(e->name)) { /* with a nodeid the kernel takes it as looked up */
        ep.ino = node_lookup(p->svc, e->attr);
        ep.generation = e->attr->handle.gen;
    }
    return fuse_add_direntry_plus(p->req, at, room, e->name, &ep, (off_t)e->cookie);
}

static void on_page(void *arg, int err, const struct hf_dirent *e, size_t n, bool eof)
{
    struct page *p = arg;
    size_t used = 0;

    (void)eof;
    if (err) {
        reply_err(p->req, err);
        free(p);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t need = add(p, p->bytes + used, p->size - used, &e[i]);

        if (need > p->size - used)
            break;
        used += need;
    }
    (void)fuse_reply_buf(p->req, p->bytes, used);
    free(p);
}

static void list(fuse_req_t req, fuse_ino_t id, size_t size, off_t off, bool plus)
{
    struct hf_handle dir;
    struct page *p;
    struct who w;

    if (!object_of(req, id, &dir))
        return;
    if (size > PAGE_BYTES_MAX)
        size = PAGE_BYTES_MAX;
    p = malloc(sizeof(*p) + size);
    if (!p) {
        reply_err(req, -ENOMEM);
        return;
    }
    p->req = req;
    p->svc = svc_of(req);
    p->plus = plus;
    p->size = size;
    hf_readdir_async(p->svc->fs, who_asks(req, &w), dir, (uint64_t)off,
                     (unsigned)(size / (plus ? ENTRY_PLUS_BYTES : ENTRY_BYTES)) + 1,
                     plus ? HF_READDIR_PLUS : 0, on_page, p);
}

void op_readdir(fuse_req_t req, fuse_ino_t id, size_t size, off_t off, struct fuse_file_info *fi)
{
    (void)fi;
    list(req, id, size, off, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t id, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    (void)fi;
    list(req, id, size, off, true);
}

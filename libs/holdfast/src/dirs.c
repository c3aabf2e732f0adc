/* SPDX-License-Identifier: Apache-2.0
 *
 * Listings and the file system's space.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "fs_priv.h"

#define PAGE_ENTRIES 4096u
#define NAME_BYTES   256u
#define BLOCK_BYTES  4096u
#define SPACE_TRIES  40 /* until the segments have told what they have */
#define SPACE_NS     (25 * HF_NS_PER_MS)

/* One piece of memory: entries, attributes, names. */
static struct hf_dirent *page_make(struct hf_fs *fs, const Hf__ReaddirRep *rep)
{
    size_t n = rep->n_entries, names = 0;
    struct hf_dirent *e;
    struct hf_attr *a;
    char *name;

    for (size_t i = 0; i < n; i++)
        names += rep->entries[i]->name.len + 1;
    e = malloc(n * (sizeof(*e) + sizeof(*a)) + names);
    if (!e)
        return NULL;
    a = (struct hf_attr *)(void *)(e + n);
    name = (char *)(a + n);
    for (size_t i = 0; i < n; i++) {
        const Hf__Dirent *d = rep->entries[i];

        e[i] = (struct hf_dirent){
            .ino = d->ino, .cookie = d->cookie, .type = IFTODT(type_mode(d->type)), .name = name};
        if (d->attr) {
            attr_fill(fs, d->attr, &a[i]);
            e[i].attr = &a[i];
        }
        memcpy(name, d->name.data, d->name.len);
        name[d->name.len] = '\0';
        name += d->name.len + 1;
    }
    return e;
}

static void on_readdir(const Hf__ReaddirRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    struct hf_dirent *e = NULL;
    int err = r->c.call.status;

    if (err == 0 && (!rep || (rep->n_entries == 0 && !rep->eof)))
        err = HF_E_IO;
    if (err == 0 && rep->n_entries > 0) {
        e = page_make(r->a.e->fs, rep);
        if (!e)
            err = HF_E_NOMEM;
    }
    if (err)
        req_fail(r, err);
    else
        req_readdir(r, e, rep->n_entries, rep->eof);
    free(e);
}

static void run_readdir(struct req *r)
{
    Hf__ReaddirReq q = HF__READDIR_REQ__INIT;

    q.cred = &r->cred;
    q.dir = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.cookie = r->a.off;
    q.max_entries = r->a.len == 0 ? 1 : r->a.len > PAGE_ENTRIES ? PAGE_ENTRIES : (uint32_t)r->a.len;
    q.max_bytes = q.max_entries * NAME_BYTES;
    q.plus = (unsigned)r->a.flags & HF_READDIR_PLUS;
    req_call(r, q.dir, false);
    hf__meta__readdir(meta_of(r), &q, on_readdir, &r->c.call);
}

void hf_readdir_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle dir,
                      uint64_t cookie, unsigned max, unsigned flags, hf_readdir_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, dir.ino),
                              .run = run_readdir,
                              .kind = K_READDIR,
                              .fn.readdir = fn,
                              .arg = arg,
                              .u = u,
                              .h = dir,
                              .off = cookie,
                              .len = max,
                              .flags = (int)flags});
}

/* ---- statfs ---- */

static void run_statfs(struct req *r);

static void on_again(struct hf_timer *t)
{
    run_statfs(hf_container_of(t, struct req, c.timer));
}

static void on_statfs(const Hf__FsstatRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);
    struct hf_statfs st = {.name_max = 255, .block_bytes = BLOCK_BYTES};
    struct hf_client_space space;
    int err = r->c.call.status;

    if (err || !rep) {
        req_fail(r, err ? err : HF_E_IO);
        return;
    }
    hf_client_space(r->a.e->client, &space);
    if (space.capacity_bytes == 0 && r->need++ < SPACE_TRIES && !r->a.e->draining) {
        hf_timer_init(&r->c.timer, r->a.e->loop, on_again);
        hf_timer_set(&r->c.timer, SPACE_NS);
        return;
    }
    st.total_bytes = space.capacity_bytes;
    st.free_bytes = space.free_bytes;
    st.free_files = rep->files_free;
    if (__builtin_add_overflow(rep->files_used, rep->files_free, &st.total_files))
        st.total_files = ~0ull;
    req_statfs(r, &st);
}

static void run_statfs(struct req *r)
{
    Hf__FsstatReq q = HF__FSSTAT_REQ__INIT;

    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    req_call(r, q.ino, false);
    hf__meta__fsstat(meta_of(r), &q, on_statfs, &r->c.call);
}

void hf_statfs_async(struct hf_fs *fs, hf_statfs_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, fs->root.ino),
                              .run = run_statfs,
                              .kind = K_STATFS,
                              .fn.statfs = fn,
                              .arg = arg,
                              .h = fs->root});
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a mix works on: a directory of the run's own under the export, in it D directories
 * of F files and L symbolic links each. Sizes are log-uniform, so small files are as many per
 * doubling as large ones. All of it follows from the seed.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast/err.h"

#define NFS_OK     0
#define WRITE_STEP (64u << 10)

/* Each doubling between lo and hi is equally likely; uniform within it. */
static uint32_t log_uniform(uint64_t *rng, uint32_t lo, uint32_t hi)
{
    unsigned doublings = 0;
    uint32_t v;

    while (lo << (doublings + 1) <= hi) {
        doublings++;
    }
    v = doublings > 0 ? lo << (bn_rand(rng) % doublings) : lo;
    return (v + (uint32_t)(bn_rand(rng) % v)) & ~3u;
}

static int fill_file(struct bn_run *run, const struct bn_fh *fh, uint64_t size)
{
    struct bn_conn *c = &run->conns[0];
    uint32_t step = WRITE_STEP < run->wtmax ? WRITE_STEP : run->wtmax;
    int rc = 0;

    if (size >= BN_PAYLOAD && run->wtmax >= BN_PAYLOAD) {
        step = BN_PAYLOAD;
    }
    for (uint64_t off = 0; off < size && rc == 0; off += step) {
        uint32_t n = size - off < step ? (uint32_t)(size - off) : step;

        rc = bn_sync_write(c, fh, off, run->payload, n);
    }
    return rc == 0 && size > 0 ? bn_sync_commit(c, fh) : rc;
}

static int make_dir(struct bn_run *run, unsigned d, const struct bn_tree_spec *spec, uint64_t *rng)
{
    struct bn_tree *t = &run->tree;
    struct bn_dir *dir = &t->dirs[d];
    int rc;

    (void)snprintf(dir->name, sizeof(dir->name), "d%u", d);
    rc = bn_sync_mkdir(&run->conns[0], &t->top, dir->name, &dir->fh);
    if (rc != NFS_OK) {
        return rc;
    }
    t->ndirs++;
    for (unsigned i = 0; i < spec->files_per_dir; i++) {
        struct bn_file *f = &t->files[t->nfiles];

        f->dir = d;
        f->size = spec->max_bytes == 0 ? 0 : log_uniform(rng, spec->min_bytes, spec->max_bytes);
        (void)snprintf(f->name, sizeof(f->name), "f%u", i);
        rc = bn_sync_create(&run->conns[0], &dir->fh, f->name, &f->fh);
        if (rc != NFS_OK) {
            return rc;
        }
        t->nfiles++;
        rc = fill_file(run, &f->fh, f->size);
        if (rc != NFS_OK) {
            return rc;
        }
    }
    for (unsigned i = 0; i < spec->links_per_dir; i++) {
        struct bn_file *l = &t->links[t->nlinks];

        l->dir = d;
        (void)snprintf(l->name, sizeof(l->name), "l%u", i);
        rc = bn_sync_symlink(&run->conns[0], &dir->fh, l->name, "../d0/f0", &l->fh);
        if (rc != NFS_OK) {
            return rc;
        }
        t->nlinks++;
    }
    return 0;
}

/* One file of o.file_mib per connection, in the first directory. */
static int make_big(struct bn_run *run)
{
    struct bn_tree *t = &run->tree;
    uint32_t size = run->o.file_mib << 20;

    for (unsigned i = 0; i < run->o.connections; i++) {
        struct bn_file *f = &t->files[t->nfiles];
        int rc;

        f->size = size;
        (void)snprintf(f->name, sizeof(f->name), "big%u", i);
        rc = bn_sync_create(&run->conns[0], &t->dirs[0].fh, f->name, &f->fh);
        if (rc != NFS_OK) {
            return rc;
        }
        t->nfiles++;
        if (run->o.mix == BN_MIX_SEQREAD) {
            rc = fill_file(run, &f->fh, size);
        }
        if (rc != NFS_OK) {
            return rc;
        }
    }
    return 0;
}

static int make_top(struct bn_run *run)
{
    struct bn_tree *t = &run->tree;
    int rc;

    (void)snprintf(t->top_name, sizeof(t->top_name), "hf-bench.%ld.%llx", (long)getpid(),
                   (unsigned long long)bn_now_ns());
    rc = bn_sync_mkdir(&run->conns[0], &t->export_root, t->top_name, &t->top);
    t->top_made = rc == NFS_OK;
    return rc;
}

int bn_tree_make(struct bn_run *run, const struct bn_tree_spec *spec)
{
    struct bn_tree *t = &run->tree;
    unsigned nmade = run->mix->dirs_per_conn * run->o.connections;
    uint64_t rng = run->o.seed;
    size_t nfiles = (size_t)spec->dirs * spec->files_per_dir + run->o.connections;
    int rc;

    t->dirs = calloc((size_t)spec->dirs + nmade, sizeof(*t->dirs));
    t->files = calloc(nfiles, sizeof(*t->files));
    t->links = calloc((size_t)spec->dirs * spec->links_per_dir + 1, sizeof(*t->links));
    if (t->dirs == NULL || t->files == NULL || t->links == NULL) {
        return HF_E_NOMEM;
    }
    rc = make_top(run);
    for (unsigned d = 0; rc == NFS_OK && d < spec->dirs; d++) {
        rc = make_dir(run, d, spec, &rng);
    }
    if (rc == NFS_OK && run->mix->big_files) {
        rc = make_big(run);
    }
    /* directories for the files that streams create follow those of the tree */
    for (unsigned i = 0; rc == NFS_OK && i < nmade; i++) {
        struct bn_dir *dir = &t->dirs[t->ndirs];

        (void)snprintf(dir->name, sizeof(dir->name), "c%u", i);
        rc = bn_sync_mkdir(&run->conns[0], &t->top, dir->name, &dir->fh);
        t->ndirs += rc == NFS_OK;
    }
    return rc;
}

unsigned bn_tree_remove(struct bn_run *run)
{
    struct bn_tree *t = &run->tree;
    struct bn_conn *c = &run->conns[0];
    unsigned left = 0;

    if (!t->top_made) {
        return 0;
    }
    for (unsigned i = 0; i < t->nfiles && !c->dead; i++) {
        left += bn_sync_remove(c, &t->dirs[t->files[i].dir].fh, t->files[i].name, false) != NFS_OK;
    }
    for (unsigned i = 0; i < t->nlinks && !c->dead; i++) {
        left += bn_sync_remove(c, &t->dirs[t->links[i].dir].fh, t->links[i].name, false) != NFS_OK;
    }
    for (unsigned i = 0; i < t->ndirs && !c->dead; i++) {
        left += bn_sync_remove(c, &t->top, t->dirs[i].name, true) != NFS_OK;
    }
    if (c->dead || bn_sync_remove(c, &t->export_root, t->top_name, true) != NFS_OK) {
        left++;
    }
    return left;
}

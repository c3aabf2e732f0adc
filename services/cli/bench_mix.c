/* SPDX-License-Identifier: Apache-2.0
 *
 * The mixes. `next` makes a stream's next request, `done` judges the reply. Which request comes
 * next depends on the seed, the stream's number and the stream's own history only, so every server
 * is asked the same.
 *
 * sfs: the shares of the NFSv3 mix of the issue over files of 1 KiB to 1 MiB. READ and WRITE move
 * up to 32 KiB at a random 32 KiB boundary inside the file. WRITE is UNSTABLE unless the user says
 * otherwise (what ordinary clients send; the mix has no COMMIT). REMOVE takes the oldest file that
 * the stream created; while there is none, CREATE stands in for it.
 */
#include "bench.h"

#include <stdio.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define FILE_SYNC 2u

static struct bn_file *pick_file(struct bn_stream *s)
{
    return &s->run->tree.files[bn_rand(&s->rng) % s->run->tree.nfiles];
}

static void begin(struct bn_stream *s, enum bn_proc proc)
{
    s->proc = (uint8_t)proc;
    bn_req_begin(s->conn, s->slot, BN_PROG_NFS, proc);
}

/* The directory and name of the nth file a stream creates. */
static const struct bn_dir *made_name(const struct bn_stream *s, uint64_t n, char *name, size_t cap)
{
    const struct bn_tree *t = &s->run->tree;
    unsigned per = s->run->mix->dirs_per_conn;
    unsigned first = t->ndirs - per * s->run->o.connections;

    (void)snprintf(name, cap, "s%u.%llx", s->id, (unsigned long long)n);
    return &t->dirs[first + s->conn_id * per + (unsigned)(n % per)];
}

static bool simple_done(struct bn_stream *s, struct bn_reply *r, bool *ret_error)
{
    (void)s;
    *ret_error = !r->ok_rpc || r->status != 0;
    return true;
}

/* ---- null, getattr, lookup ---- */

static bool null_next(struct bn_stream *s)
{
    begin(s, BN_NULL);
    bn_req_end(s->conn, NULL, 0);
    return true;
}

static bool getattr_next(struct bn_stream *s)
{
    begin(s, BN_GETATTR);
    bn_put_fh(s->conn, &pick_file(s)->fh);
    bn_req_end(s->conn, NULL, 0);
    return true;
}

static bool lookup_next(struct bn_stream *s)
{
    struct bn_file *f = pick_file(s);

    begin(s, BN_LOOKUP);
    bn_put_fh(s->conn, &s->run->tree.dirs[f->dir].fh);
    bn_put_name(s->conn, f->name);
    bn_req_end(s->conn, NULL, 0);
    return true;
}

/* ---- create ---- */

static void create_put(struct bn_stream *s)
{
    char name[32];
    const struct bn_dir *dir = made_name(s, s->made, name, sizeof(name));

    begin(s, BN_CREATE);
    bn_put_fh(s->conn, &dir->fh);
    bn_put_name(s->conn, name);
    bn_put_u32(s->conn, 0); /* UNCHECKED */
    bn_put_sattr(s->conn, true, 0644, 0);
    bn_req_end(s->conn, NULL, 0);
    s->made++;
}

static void write_put(struct bn_stream *s, const struct bn_fh *fh, uint64_t off, uint32_t len,
                      uint32_t stable)
{
    s->want = len;
    begin(s, BN_WRITE);
    bn_put_fh(s->conn, fh);
    bn_put_u64(s->conn, off);
    bn_put_u32(s->conn, len);
    bn_put_u32(s->conn, stable);
    bn_put_u32(s->conn, len);
    bn_req_end(s->conn, s->run->payload, len);
}

static void read_put(struct bn_stream *s, const struct bn_fh *fh, uint64_t off, uint32_t len)
{
    s->want = len;
    begin(s, BN_READ);
    bn_put_fh(s->conn, fh);
    bn_put_u64(s->conn, off);
    bn_put_u32(s->conn, len);
    bn_req_end(s->conn, NULL, 0);
}

static bool create4k_next(struct bn_stream *s)
{
    if (s->step == 0) {
        create_put(s);
    } else {
        write_put(s, &s->cur, 0, BN_CREATE_SZ, FILE_SYNC);
    }
    return true;
}

/* The count of a WRITE or READ reply must be what was asked. */
static bool io_short(struct bn_stream *s, struct bn_reply *r)
{
    uint32_t v, count;

    if (s->proc == BN_WRITE) {
        if (!bn_get_u32(r, &v) || (v != 0 && !bn_skip(r, 24))) {
            return true;
        }
    }
    if (!bn_skip_attr(r) || !bn_get_u32(r, &count) || count != s->want) {
        return true;
    }
    if (s->proc == BN_READ) {
        s->run->res.bytes_read += count;
        return !bn_skip(r, 8) || r->len < count;
    }
    s->run->res.bytes_written += count;
    return false;
}

static bool create4k_done(struct bn_stream *s, struct bn_reply *r, bool *ret_error)
{
    *ret_error = !r->ok_rpc || r->status != 0;
    if (s->step == 0) {
        *ret_error = *ret_error || !bn_get_opt_fh(r, &s->cur);
        if (*ret_error) {
            return true;
        }
        s->step = 1;
        return false;
    }
    s->step = 0;
    *ret_error = *ret_error || io_short(s, r);
    return true;
}

/* ---- sfs ---- */

static const struct {
    uint8_t proc;
    uint8_t share;
} sfs_mix[] = {
    {BN_GETATTR, 26}, {BN_LOOKUP, 24}, {BN_READ, 18},       {BN_ACCESS, 11},
    {BN_WRITE, 10},   {BN_SETATTR, 4}, {BN_READDIRPLUS, 2}, {BN_READLINK, 1},
    {BN_READDIR, 1},  {BN_CREATE, 1},  {BN_REMOVE, 1},      {BN_FSSTAT, 1},
};

static enum bn_proc sfs_draw(struct bn_stream *s)
{
    unsigned x = (unsigned)(bn_rand(&s->rng) % 100);

    for (size_t i = 0; i < HF_ARRAY_LEN(sfs_mix); i++) {
        if (x < sfs_mix[i].share) {
            enum bn_proc p = (enum bn_proc)sfs_mix[i].proc;

            return p == BN_REMOVE && s->removed >= s->made ? BN_CREATE : p;
        }
        x -= sfs_mix[i].share;
    }
    return BN_GETATTR;
}

static void remove_put(struct bn_stream *s)
{
    char name[32];
    const struct bn_dir *dir = made_name(s, s->removed, name, sizeof(name));

    begin(s, BN_REMOVE);
    bn_put_fh(s->conn, &dir->fh);
    bn_put_name(s->conn, name);
    bn_req_end(s->conn, NULL, 0);
    s->removed++;
}

static void sfs_io(struct bn_stream *s, enum bn_proc proc)
{
    struct bn_file *f = pick_file(s);
    uint32_t pieces = (f->size + BN_IO_SFS - 1) / BN_IO_SFS;
    uint32_t off = (uint32_t)(bn_rand(&s->rng) % pieces) * BN_IO_SFS;
    uint32_t len = f->size - off < BN_IO_SFS ? f->size - off : BN_IO_SFS;

    if (proc == BN_READ) {
        read_put(s, &f->fh, off, len);
    } else {
        write_put(s, &f->fh, off, len, s->run->o.stable);
    }
}

static void sfs_listing(struct bn_stream *s, enum bn_proc proc)
{
    static const uint8_t no_verf[8];
    struct bn_tree *t = &s->run->tree;
    unsigned ntree = s->run->mix->spec.dirs;
    struct bn_conn *c = s->conn;

    begin(s, proc);
    bn_put_fh(c, &t->dirs[bn_rand(&s->rng) % ntree].fh);
    bn_put_u64(c, 0);
    memcpy(c->out + c->out_len, no_verf, sizeof(no_verf));
    c->out_len += sizeof(no_verf);
    bn_put_u32(c, 8192);
    if (proc == BN_READDIRPLUS) {
        bn_put_u32(c, 32768);
    }
    bn_req_end(c, NULL, 0);
}

static void sfs_setattr(struct bn_stream *s)
{
    begin(s, BN_SETATTR);
    bn_put_fh(s->conn, &pick_file(s)->fh);
    bn_put_sattr(s->conn, true, 0644, 1); /* mode, mtime from the server's clock */
    bn_put_u32(s->conn, 0);               /* no guard */
    bn_req_end(s->conn, NULL, 0);
}

static bool sfs_next(struct bn_stream *s)
{
    const struct bn_tree *t = &s->run->tree;
    enum bn_proc p = sfs_draw(s);

    switch (p) {
    case BN_GETATTR:
        return getattr_next(s);
    case BN_LOOKUP:
        return lookup_next(s);
    case BN_READ:
    case BN_WRITE:
        sfs_io(s, p);
        return true;
    case BN_SETATTR:
        sfs_setattr(s);
        return true;
    case BN_READDIR:
    case BN_READDIRPLUS:
        sfs_listing(s, p);
        return true;
    case BN_CREATE:
        create_put(s);
        return true;
    case BN_REMOVE:
        remove_put(s);
        return true;
    default:
        break;
    }
    begin(s, p); /* ACCESS, READLINK, FSSTAT: a handle, and what is wanted */
    bn_put_fh(s->conn, p == BN_READLINK ? &t->links[bn_rand(&s->rng) % t->nlinks].fh
                       : p == BN_FSSTAT ? &t->export_root
                                        : &pick_file(s)->fh);
    if (p == BN_ACCESS) {
        bn_put_u32(s->conn, 0x3f);
    }
    bn_req_end(s->conn, NULL, 0);
    return true;
}

static bool sfs_done(struct bn_stream *s, struct bn_reply *r, bool *ret_error)
{
    *ret_error = !r->ok_rpc || r->status != 0;
    if (!*ret_error && (s->proc == BN_READ || s->proc == BN_WRITE)) {
        *ret_error = io_short(s, r);
    }
    return true;
}

/* ---- sequential: the streams of a connection share one file and take its pieces in turn ---- */

static uint64_t seq_offset(struct bn_stream *s, uint32_t step)
{
    uint64_t pieces = ((uint64_t)s->run->o.file_mib << 20) / step;
    uint64_t n = s->made++ * s->run->o.depth + s->id % s->run->o.depth;

    return n % pieces * step;
}

static bool seqread_next(struct bn_stream *s)
{
    uint32_t step = s->run->rtmax < BN_PAYLOAD ? s->run->rtmax : BN_PAYLOAD;

    read_put(s, &s->run->tree.files[s->conn_id].fh, seq_offset(s, step), step);
    return true;
}

static bool seqwrite_next(struct bn_stream *s)
{
    uint32_t step = s->run->wtmax < BN_PAYLOAD ? s->run->wtmax : BN_PAYLOAD;
    const struct bn_fh *fh = &s->run->tree.files[s->conn_id].fh;
    uint64_t off;

    if (s->step ==
        1) { /* the end of the file has been reached: make it durable, then begin again */
        begin(s, BN_COMMIT);
        bn_put_fh(s->conn, fh);
        bn_put_u64(s->conn, 0);
        bn_put_u32(s->conn, 0);
        bn_req_end(s->conn, NULL, 0);
        return true;
    }
    off = seq_offset(s, step);
    s->step = off + step == (uint64_t)s->run->o.file_mib << 20 ? 2 : 0;
    write_put(s, fh, off, step, s->run->o.stable);
    return true;
}

static bool seqwrite_done(struct bn_stream *s, struct bn_reply *r, bool *ret_error)
{
    *ret_error = !r->ok_rpc || r->status != 0;
    if (s->proc == BN_COMMIT) {
        s->step = 0;
        return true;
    }
    *ret_error = *ret_error || io_short(s, r);
    s->step = s->step == 2 ? 1 : 0;
    return s->step == 0;
}

/* ---- removal of created files, after the measured time ---- */

static bool cleanup_next(struct bn_stream *s)
{
    if (s->removed >= s->made) {
        return false;
    }
    remove_put(s);
    return true;
}

const struct bn_mix bn_mix_cleanup = {.name = "cleanup", .next = cleanup_next, .done = simple_done};

#define SMALL_TREE                                                                                 \
    {                                                                                              \
        .dirs = 20, .files_per_dir = 20, .links_per_dir = 0                                        \
    }
#define SFS_TREE                                                                                   \
    {                                                                                              \
        .dirs = 20, .files_per_dir = 20, .links_per_dir = 2, .min_bytes = 1024,                    \
        .max_bytes = 1u << 20                                                                      \
    }

static const struct bn_mix mixes[] = {
    [BN_MIX_NULL] = {"null", "NULL", {0}, 0, false, null_next, simple_done},
    [BN_MIX_GETATTR] = {"getattr", "GETATTR of 400 files", SMALL_TREE, 0, false, getattr_next,
                        simple_done},
    [BN_MIX_LOOKUP] = {"lookup", "LOOKUP of 400 names", SMALL_TREE, 0, false, lookup_next,
                       simple_done},
    [BN_MIX_CREATE4K] = {"create4k",
                         "CREATE, then 4 KiB FILE_SYNC WRITE; counted as files",
                         {0},
                         4,
                         false,
                         create4k_next,
                         create4k_done},
    [BN_MIX_SFS] = {"sfs", "file server mix over 400 files of 1 KiB to 1 MiB", SFS_TREE, 2, false,
                    sfs_next, sfs_done},
    [BN_MIX_SEQREAD] =
        {"seqread", "READ of 1 MiB pieces in order", {.dirs = 1}, 0, true, seqread_next, sfs_done},
    [BN_MIX_SEQWRITE] = {"seqwrite",
                         "WRITE of 1 MiB pieces in order, COMMIT at the end of the file",
                         {.dirs = 1},
                         0,
                         true,
                         seqwrite_next,
                         seqwrite_done},
};

const struct bn_mix *bn_mix_get(enum bn_mix_id id)
{
    return &mixes[id];
}

int bn_mix_find(const char *name, enum bn_mix_id *ret)
{
    for (size_t i = 0; i < HF_ARRAY_LEN(mixes); i++) {
        if (strcmp(mixes[i].name, name) == 0) {
            *ret = (enum bn_mix_id)i;
            return 0;
        }
    }
    return HF_E_NOENT;
}

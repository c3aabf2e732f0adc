/* SPDX-License-Identifier: Apache-2.0 */
#include "support_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support_seg.h"
#include "support_shard.h"

void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    hf_list_init(&w->held);
    w->map_version = 1;
    w->lease_ms = 60000;
    w->next_layout = 1;
    w->sessions = calloc(W_SESSIONS, sizeof(*w->sessions));
    cr_assert(w->sessions);
    cr_assert_eq(hf_env_sim_new(seed, 1700000000000000000, &w->env), 0);
    cr_assert_eq(hf_loop_new(w->env, "client", &w->loop), 0);
    for (unsigned i = 0; i < W_SHARDS; i++) {
        w->place[i] = i % W_SERVERS;
        w->boot[i] = hf_env_random_u64(w->env);
    }
    for (unsigned i = 0; i < W_SERVERS; i++) {
        shard_server_init(w, i);
        seg_server_init(w, i);
    }
}

void world_fini(struct world *w)
{
    world_release_held(w);
    world_run(w, 10);
    for (unsigned i = 0; i < W_SERVERS; i++) {
        shard_server_fini(&w->meta[i]);
        seg_server_fini(&w->seg[i]);
    }
    hf_loop_free(w->loop);
    hf_env_free(w->env);
    free(w->sessions);
}

static void on_map(void *arg, const Hf__MapGetRep *map)
{
    (void)map;
    ((struct world *)arg)->client_maps++;
}

static void on_lost(void *arg, uint32_t shard)
{
    ((struct world *)arg)->lost[shard]++;
}

struct hf_client *world_client(struct world *w, const struct hf_client_opts *o)
{
    struct hf_client_opts opts = o ? *o : (struct hf_client_opts){0};
    struct hf_client *c;

    opts.loop = w->loop;
    opts.meta_url = opts.meta_url ? opts.meta_url : w->meta[0].url;
    opts.name = "test";
    opts.slots = opts.slots ? opts.slots : 32;
    opts.on_map = on_map;
    opts.on_opens_lost = on_lost;
    opts.arg = w;
    cr_assert_eq(hf_client_new(&opts, &c), 0);
    return c;
}

bool world_until(struct world *w, bool (*cond)(void *arg), void *arg, uint64_t ms)
{
    uint64_t end = hf_env_mono_ns(w->env) + ms * HF_NS_PER_MS;

    while (!cond(arg))
        if (hf_env_mono_ns(w->env) >= end || !hf_sim_step(w->env))
            return cond(arg);
    return true;
}

void world_run(struct world *w, uint64_t ms)
{
    hf_sim_run(w->env, hf_env_mono_ns(w->env) + ms * HF_NS_PER_MS);
}

struct wfile *world_file(struct world *w, uint64_t ino)
{
    for (unsigned i = 0; i < w->nfiles; i++)
        if (w->files[i].ino == ino)
            return &w->files[i];
    cr_assert_lt(w->nfiles, W_FILES);
    w->files[w->nfiles] = (struct wfile){.ino = ino, .change = 1};
    return &w->files[w->nfiles++];
}

void world_restart_shard(struct world *w, uint32_t shard)
{
    w->boot[shard] = hf_env_random_u64(w->env);
    cr_assert_eq(hf_rpc_sim_cut(w->env, w->meta[w->place[shard]].url), 0);
}

void world_move_shard(struct world *w, uint32_t shard, unsigned server)
{
    w->place[shard] = server;
    w->map_version++;
}

void world_forget_sessions(struct world *w)
{
    memset(w->sessions, 0, W_SESSIONS * sizeof(*w->sessions));
    w->nsessions = 0;
}

/* ---- probes ---- */

bool probe_done(void *probe)
{
    return ((struct probe *)probe)->done > 0;
}

static void on_getattr(const Hf__GetattrRep *rep, void *arg)
{
    struct probe *p = hf_container_of((struct hf_client_call *)arg, struct probe, call);

    p->done++;
    p->have_body = rep != NULL;
    p->size = rep && rep->obj ? rep->obj->size : 0;
}

void probe_getattr(struct hf_client *c, struct probe *p, uint64_t ino)
{
    Hf__GetattrReq req = HF__GETATTR_REQ__INIT;

    *p = (struct probe){.call = {.ino = ino}};
    req.ino = ino;
    req.gen = 1;
    hf__meta__getattr(hf_client_meta(c), &req, on_getattr, &p->call);
}

static void on_rename(const Hf__RenameRep *rep, void *arg)
{
    struct probe *p = hf_container_of((struct hf_client_call *)arg, struct probe, call);

    p->done++;
    p->have_body = rep != NULL;
}

void probe_rename(struct hf_client *c, struct probe *p, uint64_t ino)
{
    Hf__RenameReq req = HF__RENAME_REQ__INIT;
    static uint8_t name[] =
        "a name long enough that the request does not fit the call's own buffer "
        "................................................................."
        "................................................................."
        ".................................................................";

    *p = (struct probe){.call = {.ino = ino, .change = true}};
    req.from_dir = req.to_dir = ino;
    req.from_name = (ProtobufCBinaryData){sizeof(name) - 1, name};
    req.to_name = (ProtobufCBinaryData){1, name};
    hf__meta__rename(hf_client_meta(c), &req, on_rename, &p->call);
}

struct truncate {
    struct probe *p;
    Hf__SetattrReq req;
    Hf__SetAttrs set;
    Hf__Cred cred;
};

static void on_truncate(const Hf__SetattrRep *rep, void *arg)
{
    struct probe *p = hf_container_of((struct hf_client_call *)arg, struct probe, call);

    p->done++;
    p->have_body = rep != NULL;
    free(p->call.arg);
}

void probe_truncate(struct hf_client *c, struct probe *p, uint64_t ino, uint64_t size)
{
    struct truncate *t = calloc(1, sizeof(*t));

    cr_assert(t);
    hf__setattr_req__init(&t->req);
    hf__set_attrs__init(&t->set);
    hf__cred__init(&t->cred);
    t->req.cred = &t->cred;
    t->req.ino = ino;
    t->req.gen = 1;
    t->req.set = &t->set;
    t->set.set_size = true;
    t->set.size = size;
    *p = (struct probe){.call = {.ino = ino, .arg = t}};
    hf_client_setattr(c, &t->req, on_truncate, &p->call);
}

bool io_done(void *ioprobe)
{
    return ((struct ioprobe *)ioprobe)->done > 0;
}

static void on_io(struct hf_client_io *io)
{
    struct ioprobe *p = hf_container_of(io, struct ioprobe, io);
    size_t at = 0;

    p->done++;
    p->have_attr = io->attr || io->wcc;
    for (unsigned i = 0; p->buf && i < io->npieces; i++) {
        const struct hf_slice *d = &io->pieces[i].data;

        cr_assert_leq(at + d->len, io->len);
        if (d->data)
            memcpy(p->buf + at, d->data, d->len);
        else
            memset(p->buf + at, 0, d->len);
        at += d->len;
    }
    if (p->buf)
        cr_assert_eq(at, io->count);
}

static const Hf__Cred root = HF__CRED__INIT;

static void io_fill(struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len)
{
    *p = (struct ioprobe){
        .io = {.cred = &root, .ino = ino, .gen = 1, .offset = offset, .len = len, .done = on_io}};
}

void io_read(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len,
             uint8_t *buf)
{
    io_fill(p, ino, offset, len);
    p->buf = buf;
    hf_client_read(c, &p->io);
}

/* Odd pieces: slices and chunks must not need to agree. */
static void io_data(struct ioprobe *p, const uint8_t *data, uint32_t len)
{
    uint32_t part = len / 3;

    p->io.data_n = 3;
    p->io.data[0] = (struct hf_slice){data, part};
    p->io.data[1] = (struct hf_slice){data + part, part};
    p->io.data[2] = (struct hf_slice){data + 2 * part, len - 2 * part};
}

void io_write(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len,
              const uint8_t *data, uint32_t stable)
{
    io_fill(p, ino, offset, len);
    p->io.stable = stable;
    io_data(p, data, len);
    hf_client_write(c, &p->io);
}

void io_append(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint32_t len,
               const uint8_t *data, uint32_t stable)
{
    io_fill(p, ino, 0, len);
    p->io.stable = stable;
    p->io.append = true;
    io_data(p, data, len);
    hf_client_write(c, &p->io);
}

void io_commit(struct hf_client *c, struct ioprobe *p, uint64_t ino, uint64_t offset, uint32_t len)
{
    io_fill(p, ino, offset, len);
    hf_client_commit(c, &p->io);
}

/* ---- ranges ---- */

bool range_done(void *rangeprobe)
{
    return ((struct rangeprobe *)rangeprobe)->done > 0;
}

static void on_range(struct hf_client_range *r)
{
    hf_container_of(r, struct rangeprobe, r)->done++;
}

void range_fallocate(struct hf_client *c, struct rangeprobe *p, uint64_t ino, uint32_t mode,
                     bool keep_size, uint64_t offset, uint64_t len)
{
    *p = (struct rangeprobe){.r = {.cred = &root,
                                   .ino = ino,
                                   .gen = 1,
                                   .mode = mode,
                                   .keep_size = keep_size,
                                   .offset = offset,
                                   .len = len,
                                   .done = on_range}};
    hf_client_fallocate(c, &p->r);
}

void range_seek(struct hf_client *c, struct rangeprobe *p, uint64_t ino, uint64_t offset, bool hole)
{
    *p = (struct rangeprobe){
        .r = {
            .cred = &root, .ino = ino, .gen = 1, .offset = offset, .hole = hole, .done = on_range}};
    hf_client_seek(c, &p->r);
}

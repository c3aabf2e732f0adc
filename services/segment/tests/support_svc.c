/* SPDX-License-Identifier: Apache-2.0 */
#include "support_svc.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/crc32c.h"
#include "holdfast/err.h"
#include "holdfast/segment.h"

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void bed_make(struct bed *b)
{
    const char *tmp = getenv("TMPDIR");

    memset(b, 0, sizeof(*b));
    b->url = "inproc://seg-test";
    snprintf(b->dir, sizeof(b->dir), "%s/hf-seg-XXXXXX", tmp ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(b->dir));
    cr_assert_eq(hf_env_real_new(&b->env), 0);
}

void bed_remove(struct bed *b)
{
    hf_env_free(b->env);
    nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void bed_start(struct bed *b, const char *spec)
{
    const char *listen[] = {b->url};
    char err[512] = "";

    b->segment = (struct hf_segsvc_segment){.id = 7, .spec = spec};
    struct hf_segsvc_opts o = {.env = b->env,
                               .dir = b->dir,
                               .plugin_dir = getenv("HF_PLUGIN_DIR"),
                               .segments = &b->segment,
                               .nsegments = 1,
                               .listen = listen,
                               .nlisten = 1,
                               .faults = b->faults};
    cr_assert_eq(hf_segsvc_new(&o, &b->svc, err, sizeof(err)), 0, "%s", err);
    cr_assert_str_eq(hf_segsvc_url(b->svc, 0), listen[0]);
    cr_assert_eq(hf_loop_new(b->env, "client", &b->loop), 0);
    cr_assert_eq(hf_rpc_client_new(b->loop, listen[0], NULL, &b->client), 0);
    b->stub = hf_rpc_client_service(b->client, &hf__segment__descriptor);
}

void bed_stop(struct bed *b)
{
    hf_rpc_client_free(b->client);
    hf_loop_free(b->loop);
    hf_segsvc_free(b->svc);
}

struct find {
    const char *name;
    uint64_t value;
    bool found;
};

static void find_counter(void *arg, const char *name, uint64_t value)
{
    struct find *f = arg;

    if (strcmp(name, f->name) == 0) {
        f->value = value;
        f->found = true;
    }
}

uint64_t bed_counter(struct bed *b, const char *name)
{
    struct find f = {.name = name};

    hf_segsvc_counters(b->svc, find_counter, &f);
    cr_assert(f.found);
    return f.value;
}

void bed_chunk(Hf__ChunkId *id, uint64_t ino)
{
    hf__chunk_id__init(id);
    id->segment = 7;
    id->ino = ino;
    id->index = 1;
    id->gen = 2;
}

static unsigned make_crcs(uint32_t offset, uint32_t len, const uint8_t *data, uint32_t *crcs)
{
    uint32_t at = offset, end = offset + len;
    unsigned i = 0;

    for (; at < end; i++) {
        uint32_t n = HF_SEG_BLOCK_BYTES - at % HF_SEG_BLOCK_BYTES;

        n = n < end - at ? n : end - at;
        crcs[i] = hf_crc32c(0, data, n);
        data += n;
        at += n;
    }
    return i;
}

static void on_write(const Hf__SegWriteRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct bed *b = call->arg;

    if (call->status == 0 && rep)
        b->boot = rep->boot;
}

int bed_write_req(struct bed *b, const Hf__SegWriteReq *req, const void *data, size_t len)
{
    struct hf_rpc_call call = {.arg = b};

    if (len > 0) {
        call.bulk[0] = hf_slice(data, len);
        call.bulk_n = 1;
    }
    hf__segment__write_chunk(b->stub, req, on_write, &call);
    return hf_rpc_wait(b->loop, &call);
}

int bed_write(struct bed *b, uint64_t ino, uint32_t offset, const void *data, uint32_t len,
              bool stable)
{
    Hf__SegWriteReq req = HF__SEG_WRITE_REQ__INIT;
    uint32_t crcs[HF_SEG_BLOCKS];
    Hf__ChunkId id;

    bed_chunk(&id, ino);
    req.chunk = &id;
    req.fence = 1;
    req.offset = offset;
    req.len = len;
    req.crcs = crcs;
    req.n_crcs = make_crcs(offset, len, data, crcs);
    req.stable = stable;
    return bed_write_req(b, &req, data, len);
}

struct read_wait {
    struct bed *b;
    uint32_t offset, len;
    uint8_t *data;
};

static void on_read(const Hf__SegReadRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct read_wait *w = call->arg;
    uint32_t crcs[HF_SEG_BLOCKS];
    unsigned n;

    if (call->status || !rep)
        return;
    w->b->boot = rep->boot;
    w->b->len = rep->len;
    cr_assert_leq(rep->len, w->len);
    cr_assert_eq(call->reply_bulk.len, rep->len);
    n = make_crcs(w->offset, rep->len, call->reply_bulk.data, crcs);
    cr_assert_eq(rep->n_crcs, n);
    if (n > 0)
        cr_assert_eq(memcmp(crcs, rep->crcs, n * sizeof(crcs[0])), 0);
    memset(w->data, 0, w->len);
    if (rep->len)
        memcpy(w->data, call->reply_bulk.data, rep->len);
}

int bed_read(struct bed *b, uint64_t ino, uint32_t offset, void *data, uint32_t len)
{
    struct read_wait w = {.b = b, .offset = offset, .len = len, .data = data};
    struct hf_rpc_call call = {.arg = &w};
    Hf__SegReadReq req = HF__SEG_READ_REQ__INIT;
    Hf__ChunkId id;

    bed_chunk(&id, ino);
    req.chunk = &id;
    req.offset = offset;
    req.len = len;
    hf__segment__read_chunk(b->stub, &req, on_read, &call);
    return hf_rpc_wait(b->loop, &call);
}

static void on_sync(const Hf__SegSyncRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct bed *b = call->arg;

    if (call->status == 0 && rep)
        b->boot = rep->boot;
}

int bed_sync(struct bed *b, uint64_t ino)
{
    struct hf_rpc_call call = {.arg = b};
    Hf__SegSyncReq req = HF__SEG_SYNC_REQ__INIT;
    Hf__ChunkId id;

    bed_chunk(&id, ino);
    req.chunk = &id;
    hf__segment__sync_chunk(b->stub, &req, on_sync, &call);
    return hf_rpc_wait(b->loop, &call);
}

static void on_trunc(const Hf__SegTruncRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct bed *b = call->arg;

    if (call->status == 0 && rep)
        b->boot = rep->boot;
}

int bed_trunc(struct bed *b, uint64_t ino, uint32_t fence, uint32_t len)
{
    struct hf_rpc_call call = {.arg = b};
    Hf__SegTruncReq req = HF__SEG_TRUNC_REQ__INIT;
    Hf__ChunkId id;

    bed_chunk(&id, ino);
    req.chunk = &id;
    req.fence = fence;
    req.len = len;
    hf__segment__truncate_chunk(b->stub, &req, on_trunc, &call);
    return hf_rpc_wait(b->loop, &call);
}

static void on_delete(const Hf__SegDeleteRep *rep, void *data)
{
    struct hf_rpc_call *call = data;

    if (call->status == 0 && rep)
        *(uint64_t *)call->arg = rep->freed_bytes;
}

int bed_delete(struct bed *b, const uint64_t *inos, size_t n, uint64_t *ret_freed)
{
    Hf__SegDeleteReq req = HF__SEG_DELETE_REQ__INIT;
    struct hf_rpc_call call = {.arg = ret_freed};
    Hf__ChunkId *ids = calloc(n, sizeof(*ids)), **ptrs = calloc(n, sizeof(Hf__ChunkId *));
    int rc;

    cr_assert(ids && ptrs);
    for (size_t i = 0; i < n; i++) {
        bed_chunk(&ids[i], inos[i]);
        ptrs[i] = &ids[i];
    }
    req.chunks = ptrs;
    req.n_chunks = n;
    hf__segment__delete_chunks(b->stub, &req, on_delete, &call);
    rc = hf_rpc_wait(b->loop, &call);
    free(ids);
    free(ptrs);
    return rc;
}

void bed_fill(void *data, size_t len, unsigned seed)
{
    uint8_t *p = data;

    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

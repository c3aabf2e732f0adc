/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks against layouts, while both change. A chunk is an orphan if it was listed (1), then no
 * layout of a later checkpoint allows it (2), and then it is still listed (3): a chunk is written
 * only after its layout is durable and deleted before its last reference (the gc row) goes, so
 * nothing that is in use or being deleted looks like that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fsck.h"
#include "holdfast/err.h"
#include "holdfast/wire/segment.pb-c.h"

#define LIST_PAGE 512
#define LOOKS_MAX 4 /* at data that could not be read */

struct chunk {
    uint32_t segment, index, gen;
    uint64_t ino;
    int status;   /* of its data, when last seen */
    bool suspect; /* no layout allows it */
    bool again;   /* seen in the latest listing */
};

struct listing {
    struct fsck *f;
    struct hf_loop *loop;
    struct hf_rpc_client *client;
    struct chunk *chunks;
    size_t n, cap;
    struct hf_map by_id; /* second listing: chunk hash -> struct chunk of the first */
    bool second;
    bool verify_again;
};

static uint64_t chunk_hash(uint32_t segment, uint64_t ino, uint32_t index, uint32_t gen)
{
    return hf_hash_u64(hf_hash_u64(ino ^ ((uint64_t)segment << 48)) ^
                       ((uint64_t)index << 32 | gen));
}

static int note_first(struct listing *l, uint32_t segment, const Hf__SegChunk *c)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 1024;
        struct chunk *p = realloc(l->chunks, cap * sizeof(*p));

        if (!p)
            return HF_E_NOMEM;
        l->chunks = p;
        l->cap = cap;
    }
    l->chunks[l->n++] = (struct chunk){.segment = segment,
                                       .index = c->chunk->index,
                                       .gen = c->chunk->gen,
                                       .ino = c->chunk->ino,
                                       .status = c->status};
    l->f->totals->chunks++;
    return 0;
}

static int note(struct listing *l, uint32_t segment, const Hf__SegChunk *c)
{
    struct chunk *first;

    if (!c->chunk)
        return HF_E_PROTO;
    if (!l->second)
        return note_first(l, segment, c);
    first =
        hf_map_get(&l->by_id, chunk_hash(segment, c->chunk->ino, c->chunk->index, c->chunk->gen));
    if (first) {
        first->again = true;
        first->status = c->status;
    }
    return 0;
}

/* One page; the cursor for the next one in *cursor (empty: the end). */
struct page {
    struct listing *l;
    uint32_t segment;
    struct hf_buf cursor;
    size_t count;
    int status;
};

static void on_page(const Hf__SegListRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct page *p = call->arg;

    p->status = call->status ? call->status : rep ? 0 : HF_E_PROTO;
    p->count = p->status ? 0 : rep->n_chunks;
    for (size_t i = 0; i < p->count && p->status == 0; i++)
        p->status = note(p->l, p->segment, rep->chunks[i]);
    hf_buf_reset(&p->cursor);
    if (p->status == 0)
        p->status = hf_buf_append(&p->cursor, rep->cursor.data, rep->cursor.len);
}

static int list_segment(struct listing *l, uint32_t segment)
{
    struct page p = {.l = l, .segment = segment};

    do {
        struct hf_rpc_call call = {.arg = &p, .timeout_ns = 120 * HF_NS_PER_SEC};
        Hf__SegListReq req = HF__SEG_LIST_REQ__INIT;

        req.segment = segment;
        req.max = LIST_PAGE;
        req.verify = !l->second || l->verify_again;
        req.cursor.data = p.cursor.data;
        req.cursor.len = p.cursor.len;
        hf__segment__list_chunks(hf_rpc_client_service(l->client, &hf__segment__descriptor), &req,
                                 on_page, &call);
        (void)hf_rpc_wait(l->loop, &call);
    } while (p.status == 0 && p.count > 0);
    hf_buf_fini(&p.cursor);
    return p.status;
}

static int list_all(struct listing *l, char *err, size_t err_bytes)
{
    const Hf__MapGetRep *map = l->f->svc->map;
    const struct hf_rpc_client_opts opts = {.insecure = l->f->svc->opts.insecure};

    for (size_t i = 0; i < map->n_segments; i++) {
        int rc = hf_rpc_client_new(l->loop, map->segments[i]->url, &opts, &l->client);

        if (rc == 0) {
            rc = list_segment(l, map->segments[i]->id);
            hf_rpc_client_free(l->client);
        }
        if (rc) {
            (void)snprintf(err, err_bytes, "segment %" PRIu32 ": cannot list its chunks: %s",
                           map->segments[i]->id, hf_err_text(rc));
            return rc;
        }
    }
    return 0;
}

static bool allowed(const struct fsck *f, const struct chunk *c)
{
    const struct fsck_layout *l = fsck_layout_find(f, c->ino, c->gen);

    return l && c->index < l->nchunks && l->nsegments &&
           l->segments[c->index % l->nsegments] == c->segment;
}

/* Enters what must be looked at again; how many. */
static size_t find_suspects(struct listing *l)
{
    size_t n = 0;

    hf_map_clear(&l->by_id);
    l->verify_again = false;
    for (size_t i = 0; i < l->n; i++) {
        struct chunk *c = &l->chunks[i];

        c->again = false;
        c->suspect = !allowed(l->f, c);
        l->verify_again |= !c->suspect && c->status;
        if ((c->suspect || c->status) &&
            hf_map_put(&l->by_id, chunk_hash(c->segment, c->ino, c->index, c->gen), c) == 0)
            n++;
    }
    return n;
}

/* Which of them are no longer there or readable now. */
static bool settle(struct listing *l)
{
    bool unreadable = false;

    for (size_t i = 0; i < l->n; i++) {
        struct chunk *c = &l->chunks[i];

        if (!c->again)
            c->status = 0;
        unreadable |= c->again && !c->suspect && c->status;
    }
    return unreadable;
}

static void report(struct listing *l)
{
    char detail[128];

    for (size_t i = 0; i < l->n; i++) {
        const struct chunk *c = &l->chunks[i];

        if (!c->again || (!c->suspect && !c->status))
            continue;
        (void)snprintf(detail, sizeof(detail),
                       "segment %" PRIu32 ", chunk %" PRIu32 ", generation %" PRIu32 ": %s",
                       c->segment, c->index, c->gen,
                       c->suspect ? "no file refers to it" : hf_err_text(c->status));
        fsck_report(l->f, c->suspect ? "orphan-chunk" : "chunk-data", c->ino, hf_slice(NULL, 0),
                    detail);
    }
}

/* Looks again at what is suspect, and several times at data that could not be read. */
static int look_again(struct listing *l, char *err, size_t err_bytes)
{
    bool unreadable = true;
    int rc = 0;

    l->second = true;
    for (unsigned looks = 1; looks < LOOKS_MAX && unreadable && find_suspects(l); looks++) {
        rc = list_all(l, err, err_bytes);
        if (rc)
            return rc;
        unreadable = settle(l);
    }
    report(l);
    return 0;
}

int fsck_chunks(struct fsck *f, char *err, size_t err_bytes)
{
    struct listing l = {.f = f};
    int rc = hf_loop_new(f->svc->env, "fsck", &l.loop);

    if (rc == 0)
        rc = list_all(&l, err, err_bytes);
    if (rc == 0)
        rc = fsck_meta(f, err, err_bytes);
    if (rc == 0)
        rc = look_again(&l, err, err_bytes);
    if (l.loop)
        hf_loop_free(l.loop);
    free(l.chunks);
    hf_map_fini(&l.by_id);
    return rc;
}

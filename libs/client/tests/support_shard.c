/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards in memory: files by number, without names or permissions, with the whole contract of
 * meta.proto about layouts, promotion, truncation and sessions.
 */
#include "support_shard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

struct ctx {
    struct wmeta *m;
    struct world *w;
    struct hf_rpc_req *req;
    bool change; /* stores its reply in the slot */
};

static struct ctx ctx_of(Hf__Meta_Service *service, void *data)
{
    struct wmeta *m = hf_container_of(service, struct wmeta, impl);

    return (struct ctx){.m = m, .w = m->w, .req = data};
}

static struct wsession *session_find(struct world *w, uint64_t id, uint32_t shard)
{
    for (unsigned i = 0; i < w->nsessions; i++)
        if (w->sessions[i].id == id && w->sessions[i].shard == shard)
            return &w->sessions[i];
    return NULL;
}

static void reply(const struct ctx *x, int status, const ProtobufCMessage *body,
                  struct hf_slice bulk)
{
    struct world *w = x->w;
    struct hf_rpc_req *req = x->req;

    if (x->change && req->session) {
        struct wslot *slot = &session_find(w, req->session, req->target)->slots[req->slot];

        slot->sequence = req->sequence;
        slot->status = status;
        slot->len = protobuf_c_message_get_packed_size(body);
        cr_assert_leq(slot->len, sizeof(slot->reply));
        protobuf_c_message_pack(body, slot->reply);
    }
    if (w->drop_replies) {
        w->drop_replies--;
        hf_rpc_req_drop(req);
        cr_assert_eq(hf_rpc_sim_cut(w->env, x->m->url), 0);
        return;
    }
    hf_rpc_reply(req, status, body, &bulk, bulk.len ? 1 : 0);
}

static const struct hf_slice no_bulk = {NULL, 0};

static void fill_attr(const struct wfile *f, Hf__Attr *a)
{
    hf__attr__init(a);
    a->type = HF__FILE_TYPE__FT_REG;
    a->ino = f->ino;
    a->gen = 1;
    a->size = f->size;
    a->change = f->change;
}

struct full_layout {
    Hf__Layout l;
    uint32_t segments[2];
};

static Hf__Layout *fill_layout(const struct wfile *f, struct full_layout *l)
{
    hf__layout__init(&l->l);
    l->segments[0] = 1;
    l->segments[1] = 2;
    l->l.segments = l->segments;
    l->l.n_segments = 2;
    l->l.chunk_bytes = W_CHUNK;
    l->l.gen = f->layout_gen;
    l->l.fence = f->fence;
    l->l.trim = f->trim;
    l->l.trim_from = f->trim_from;
    l->l.trim_to = f->trim_to;
    return &l->l;
}

static void m_getattr(Hf__Meta_Service *service, const Hf__GetattrReq *q,
                      Hf__GetattrRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__GetattrRep rep = HF__GETATTR_REP__INIT;
    Hf__Attr a;

    (void)closure;
    fill_attr(world_file(x.w, q->ino), &a);
    rep.obj = &a;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_rename(Hf__Meta_Service *service, const Hf__RenameReq *q,
                     Hf__RenameRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__RenameRep rep = HF__RENAME_REP__INIT;

    (void)closure;
    world_file(x.w, q->from_dir)->renames++;
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_setattr(Hf__Meta_Service *service, const Hf__SetattrReq *q,
                      Hf__SetattrRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__SetattrRep rep = HF__SETATTR_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);
    Hf__Wcc wcc = HF__WCC__INIT;
    struct full_layout l;
    Hf__Attr a;
    uint64_t size = q->set->size;

    (void)closure;
    rep.obj = &wcc;
    wcc.after = &a;
    if (f->chunked && f->trim && size > f->trim_from) {
        fill_attr(f, &a);
        rep.layout = fill_layout(f, &l);
        reply(&x, HF_E_CHANGED, &rep.base, no_bulk);
        return;
    }
    cr_assert(f->chunked || size <= W_INLINE_MAX);
    if (size < f->size && f->chunked) {
        f->fence++;
        f->trim_from = f->trim && f->trim_from < size ? f->trim_from : size;
        f->trim_to = f->handed_out;
        f->trim = true;
        rep.layout = fill_layout(f, &l);
    }
    if (size < f->size && !f->chunked)
        memset(f->content + size, 0, f->size - size);
    f->size = size;
    f->change++;
    fill_attr(f, &a);
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_read(Hf__Meta_Service *service, const Hf__ReadReq *q, Hf__ReadRep_Closure closure,
                   void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__ReadRep rep = HF__READ_REP__INIT;
    const struct wfile *f = world_file(x.w, q->ino);
    struct hf_slice bulk = no_bulk;
    struct full_layout l;
    Hf__Attr a;

    (void)closure;
    fill_attr(f, &a);
    rep.obj = &a;
    if (f->chunked) {
        rep.layout = fill_layout(f, &l);
    } else if (q->offset < f->size) {
        bulk = (struct hf_slice){f->content + q->offset, f->size - q->offset};
        bulk.len = bulk.len < q->len ? bulk.len : q->len;
    }
    rep.eof = q->offset + bulk.len >= f->size;
    reply(&x, 0, &rep.base, bulk);
}

/* False: it is not under way any more. Without a token: true. */
static bool append_take(struct wfile *f, uint64_t token)
{
    if (token && f->append_token != token)
        return false;
    if (token)
        f->append_token = 0;
    return true;
}

static void grow(struct wfile *f, uint64_t end)
{
    f->size = f->size > end ? f->size : end;
    f->change++;
}

/* Writers may have put bytes into any chunk that they were given. */
static void hand_out(struct wfile *f, uint64_t end)
{
    end = (end + W_CHUNK - 1) / W_CHUNK * W_CHUNK;
    f->handed_out = f->handed_out > end ? f->handed_out : end;
}

static void m_write(Hf__Meta_Service *service, const Hf__WriteReq *q, Hf__WriteRep_Closure closure,
                    void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__WriteRep rep = HF__WRITE_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);
    Hf__Wcc wcc = HF__WCC__INIT;
    struct hf_slice bulk = no_bulk;
    uint64_t offset = q->append ? f->size : q->offset, end = offset + q->len;
    struct full_layout l;
    Hf__Attr a;

    (void)closure;
    rep.boot = x.w->boot[x.req->target];
    rep.offset = offset;
    x.w->nprefer = (unsigned)q->n_prefer;
    for (size_t i = 0; i < q->n_prefer && i < 8; i++)
        x.w->prefer[i] = q->prefer[i];
    if (q->append && (f->chunked || end > W_INLINE_MAX)) {
        if (f->append_token) {
            reply(&x, HF_E_JUKEBOX, &rep.base, no_bulk);
            return;
        }
        rep.append_token = f->append_token = hf_env_random_u64(x.w->env) | 1;
        f->appends++;
    }
    if (f->chunked) {
        rep.next = HF__WRITE_NEXT__WRITE_CHUNKS;
        hand_out(f, end);
        rep.layout = fill_layout(f, &l);
    } else if (end <= W_INLINE_MAX) {
        cr_assert_eq(x.req->bulk.len, q->len);
        memcpy(f->content + offset, x.req->bulk.data, q->len);
        grow(f, end);
        x.change = true;
    } else {
        cr_assert(x.req->bulk.len == 0 || q->append);
        rep.next = HF__WRITE_NEXT__WRITE_PROMOTE;
        rep.promote_change = f->change;
        rep.layout = fill_layout(f, &l);
        rep.layout->gen = x.w->next_layout++;
        rep.layout->fence = 1;
        bulk = (struct hf_slice){f->content, f->size};
        x.change = true;
    }
    fill_attr(f, &a);
    wcc.after = &a;
    rep.obj = &wcc;
    reply(&x, 0, &rep.base, bulk);
}

static void m_write_end(Hf__Meta_Service *service, const Hf__WriteEndReq *q,
                        Hf__WriteEndRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__WriteEndRep rep = HF__WRITE_END_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);
    uint64_t end = q->offset + q->len;
    bool mine = append_take(f, q->append_token);

    (void)closure;
    rep.boot = x.w->boot[x.req->target];
    if (q->len == 0) {
        f->canceled += mine;
        reply(&x, mine ? 0 : HF_E_CHANGED, &rep.base, no_bulk);
        return;
    }
    if (!mine || !f->chunked || q->layout_gen != f->layout_gen || q->fence != f->fence ||
        (f->trim && end > f->trim_from)) {
        reply(&x, HF_E_CHANGED, &rep.base, no_bulk);
        return;
    }
    if (q->zero)
        f->change++;
    else
        grow(f, end);
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_fallocate(Hf__Meta_Service *service, const Hf__FallocateReq *q,
                        Hf__FallocateRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__FallocateRep rep = HF__FALLOCATE_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);
    uint64_t end = q->offset + q->len, stop = end < f->size ? end : f->size;
    struct full_layout l;

    (void)closure;
    rep.boot = x.w->boot[x.req->target];
    if (f->chunked && f->trim && !q->keep_size && end > f->trim_from) {
        rep.layout = fill_layout(f, &l);
        reply(&x, HF_E_CHANGED, &rep.base, no_bulk);
        return;
    }
    if (!f->chunked && !q->keep_size && end > W_INLINE_MAX)
        end = W_INLINE_MAX; /* this shard does not make it a chunked one */
    if (q->mode != HF__FALLOCATE_MODE__FA_ALLOCATE && q->offset < stop) {
        if (f->chunked) {
            rep.next = HF__WRITE_NEXT__WRITE_CHUNKS;
            rep.layout = fill_layout(f, &l);
            rep.offset = q->offset;
            rep.len = stop - q->offset;
        } else {
            memset(f->content + q->offset, 0, stop - q->offset);
        }
    }
    if (!q->keep_size)
        grow(f, end);
    f->change++;
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_seek(Hf__Meta_Service *service, const Hf__SeekReq *q, Hf__SeekRep_Closure closure,
                   void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__SeekRep rep = HF__SEEK_REP__INIT;
    const struct wfile *f = world_file(x.w, q->ino);
    struct full_layout l;
    Hf__Attr a;

    (void)closure;
    fill_attr(f, &a);
    rep.obj = &a;
    rep.offset = q->offset;
    if (f->chunked) {
        rep.layout = fill_layout(f, &l);
        rep.range_end = f->size;
    } else {
        rep.found = true;
        rep.offset = q->hole ? f->size : q->offset;
    }
    reply(&x, q->offset >= f->size ? HF_E_NXIO : 0, &rep.base, no_bulk);
}

static void m_promote(Hf__Meta_Service *service, const Hf__PromoteReq *q,
                      Hf__PromoteRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__PromoteRep rep = HF__PROMOTE_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);

    (void)closure;
    rep.boot = x.w->boot[x.req->target];
    if (!append_take(f, q->append_token) || f->chunked || q->promote_change != f->change) {
        reply(&x, HF_E_CHANGED, &rep.base, no_bulk);
        return;
    }
    f->chunked = true;
    f->layout_gen = q->layout_gen;
    f->fence = 1;
    hand_out(f, f->size);
    hand_out(f, q->offset + q->len);
    grow(f, q->offset + q->len);
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_trim_done(Hf__Meta_Service *service, const Hf__TrimDoneReq *q,
                        Hf__TrimDoneRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__TrimDoneRep rep = HF__TRIM_DONE_REP__INIT;
    struct wfile *f = world_file(x.w, q->ino);
    struct full_layout l;

    (void)closure;
    if (f->trim && q->layout_gen == f->layout_gen && q->fence == f->fence) {
        f->trim = false;
        f->fence++; /* whoever still trims under the old one cannot cut newer bytes */
    }
    rep.layout = fill_layout(f, &l);
    x.change = true;
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_commit(Hf__Meta_Service *service, const Hf__CommitReq *q,
                     Hf__CommitRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__CommitRep rep = HF__COMMIT_REP__INIT;
    const struct wfile *f = world_file(x.w, q->ino);
    Hf__Wcc wcc = HF__WCC__INIT;
    struct full_layout l;
    Hf__Attr a;

    (void)closure;
    fill_attr(f, &a);
    wcc.after = &a;
    rep.obj = &wcc;
    rep.boot = x.w->boot[x.req->target];
    if (f->chunked)
        rep.layout = fill_layout(f, &l);
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_session_open(Hf__Meta_Service *service, const Hf__SessionOpenReq *q,
                           Hf__SessionOpenRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__SessionOpenRep rep = HF__SESSION_OPEN_REP__INIT;

    (void)closure;
    cr_assert_leq(q->slots, W_SLOTS);
    cr_assert(q->session);
    if (session_find(x.w, q->session, x.req->target)) {
        cr_assert(q->opens, "only sessions with opens are renewed");
        x.w->renewals++;
        rep.opens_lost = x.w->lose_opens;
        x.w->lose_opens = false;
    } else {
        cr_assert_lt(x.w->nsessions, W_SESSIONS);
        x.w->sessions[x.w->nsessions++] =
            (struct wsession){.id = q->session, .shard = x.req->target, .opens = q->opens};
        rep.opens_lost = true;
    }
    rep.lease_ms = x.w->lease_ms;
    rep.boot = x.w->boot[x.req->target];
    reply(&x, 0, &rep.base, no_bulk);
}

static void m_session_close(Hf__Meta_Service *service, const Hf__SessionCloseReq *q,
                            Hf__SessionCloseRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__SessionCloseRep rep = HF__SESSION_CLOSE_REP__INIT;

    (void)closure;
    cr_assert(session_find(x.w, q->session, x.req->target));
    x.w->closes++;
    if (x.w->deaf_to_close)
        hf_rpc_req_drop(x.req);
    else
        reply(&x, 0, &rep.base, no_bulk);
}

static void m_map_get(Hf__Meta_Service *service, const Hf__MapGetReq *q,
                      Hf__MapGetRep_Closure closure, void *data)
{
    struct ctx x = ctx_of(service, data);
    Hf__MapGetRep rep = HF__MAP_GET_REP__INIT;
    Hf__ShardEntry shards[W_SHARDS], *shard_ptrs[W_SHARDS];
    Hf__SegmentEntry segs[W_SERVERS], *seg_ptrs[W_SERVERS];

    (void)closure;
    rep.version = x.w->map_version;
    if (q->known_version == rep.version) {
        hf_rpc_reply(x.req, 0, &rep.base, NULL, 0);
        return;
    }
    for (unsigned i = 0; i < W_SHARDS; i++) {
        hf__shard_entry__init(&shards[i]);
        shards[i].shard = i;
        shards[i].url = x.w->meta[x.w->place[i]].url;
        shard_ptrs[i] = &shards[i];
    }
    for (unsigned i = 0; i < W_SERVERS; i++) {
        hf__segment_entry__init(&segs[i]);
        segs[i].id = i + 1;
        segs[i].url = x.w->seg[i].url;
        seg_ptrs[i] = &segs[i];
    }
    rep.shard_count = W_SHARDS;
    rep.inline_max = W_INLINE_MAX;
    rep.n_shards = W_SHARDS;
    rep.shards = shard_ptrs;
    rep.n_segments = W_SERVERS;
    rep.segments = seg_ptrs;
    hf_rpc_reply(x.req, 0, &rep.base, NULL, 0);
}

/* True: answered or refused by its slot. */
static bool by_slot(struct wmeta *m, struct hf_rpc_req *req)
{
    struct wsession *ss = session_find(m->w, req->session, req->target);
    struct wslot *slot;

    if (!ss || req->slot >= W_SLOTS) {
        hf_rpc_reply(req, HF_E_NOSESSION, NULL, NULL, 0);
        return true;
    }
    slot = &ss->slots[req->slot];
    if (req->sequence > slot->sequence)
        return false;
    if (req->sequence < slot->sequence) {
        hf_rpc_reply(req, HF_E_SEQUENCE, NULL, NULL, 0);
        return true;
    }
    m->w->replays++;
    hf_rpc_reply_packed(req, slot->status, (struct hf_slice){slot->reply, slot->len}, NULL, 0);
    return true;
}

static void run(struct wmeta *m, struct hf_rpc_req *req)
{
    if (req->session && by_slot(m, req))
        return;
    hf_rpc_req_invoke(req, &m->impl.base);
}

static void dispatch(void *arg, struct hf_rpc_req *req)
{
    struct wmeta *m = arg;
    struct world *w = m->w;
    const char *name = req->service->methods[req->method].name;

    if (strcmp(name, "MapGet") == 0) {
        hf_rpc_req_invoke(req, &m->impl.base);
        return;
    }
    cr_assert_lt(req->target, W_SHARDS);
    if (w->place[req->target] != m->index || w->not_leader) {
        w->not_leader -= w->not_leader > 0;
        hf_rpc_reply(req, HF_E_NOTLEADER, NULL, NULL, 0);
        return;
    }
    if (w->answer_busy) {
        w->answer_busy--;
        hf_rpc_reply(req, HF_E_BUSY, NULL, NULL, 0);
        return;
    }
    if (w->hold && strcmp(name, "SessionOpen") != 0) {
        hf_list_push_back(&w->held, &req->link);
        req->user = m;
        w->nheld++;
        return;
    }
    run(m, req);
}

void world_release_held(struct world *w)
{
    struct hf_list *n;

    w->hold = false;
    while ((n = hf_list_pop_front(&w->held)) != NULL) {
        struct hf_rpc_req *req = hf_container_of(n, struct hf_rpc_req, link);

        w->nheld--;
        run(req->user, req);
    }
}

void shard_server_init(struct world *w, unsigned index)
{
    struct wmeta *m = &w->meta[index];
    struct hf_rpc_server_opts o = {.dispatch = dispatch, .arg = m};

    m->w = w;
    m->index = index;
    snprintf(m->url, sizeof(m->url), "sim://m%u", index);
    m->impl = (Hf__Meta_Service){
        .base = HF__META__BASE_INIT,
        .getattr = m_getattr,
        .setattr = m_setattr,
        .rename = m_rename,
        .read = m_read,
        .write = m_write,
        .write_end = m_write_end,
        .promote = m_promote,
        .trim_done = m_trim_done,
        .commit = m_commit,
        .fallocate = m_fallocate,
        .seek = m_seek,
        .session_open = m_session_open,
        .session_close = m_session_close,
        .map_get = m_map_get,
    };
    cr_assert_eq(hf_loop_new(w->env, "shard", &m->loop), 0);
    cr_assert_eq(hf_rpc_server_new(m->loop, &o, &m->server), 0);
    cr_assert_eq(hf_rpc_server_add(m->server, &m->impl.base), 0);
    cr_assert_eq(hf_rpc_server_listen(m->server, m->url), 0);
}

void shard_server_fini(struct wmeta *m)
{
    hf_rpc_server_stop(m->server);
    hf_rpc_server_free(m->server);
    hf_loop_free(m->loop);
}

uint64_t shard_make_file(struct world *w, struct hf_client *c)
{
    (void)c;
    return world_file(w, world_ino(2, 9))->ino;
}

bool shard_limits_size(struct world *w, uint64_t ino)
{
    return !world_file(w, ino)->chunked;
}

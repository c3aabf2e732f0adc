/* SPDX-License-Identifier: Apache-2.0
 *
 * ListChunks: pages through a segment on the pool thread, because listing and verifying block. The
 * cursor is the last chunk of the page before, 16 bytes. A page ends at its maximum or after
 * PAGE_NS, so that verifying stays within a caller's deadline.
 */
#include "svc_priv.h"

#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"

#define CURSOR_BYTES 16u
#define PAGE_NS      (2 * HF_NS_PER_SEC)

struct list_call {
    struct hf_work work;
    struct hf_segsvc *svc;
    struct hf_rpc_req *req;
    struct hf_plug_be *be;
    uint32_t segment, max;
    bool verify, from_start;
    struct hf_chunk_id after;
    uint64_t until_ns;
    /* made by the pool thread */
    struct hf_seg_info *infos; /* room for max */
    uint32_t n;
    int status;
};

static int list_one(void *arg, const struct hf_seg_info *info)
{
    struct list_call *l = arg;

    l->infos[l->n++] = *info;
    return l->n == l->max || hf_env_mono_ns(l->svc->env) >= l->until_ns;
}

static void list_run(struct hf_work *w)
{
    struct list_call *l = hf_container_of(w, struct list_call, work);

    l->until_ns = hf_env_mono_ns(l->svc->env) + PAGE_NS;
    l->status = hf_fault(l->svc->faults, HF_FAULT_SEG_LIST);
    if (l->status)
        return;
    l->status = hf_seg_list(l->be, l->from_start ? NULL : &l->after, l->verify, list_one, l);
}

static void list_reply(struct list_call *l)
{
    Hf__SegListRep rep = HF__SEG_LIST_REP__INIT;
    struct hf_arena *a = l->req->arena;
    Hf__SegChunk *chunks = hf_arena_alloc(a, l->max * sizeof(*chunks));
    Hf__ChunkId *ids = hf_arena_alloc(a, l->max * sizeof(*ids));
    uint8_t cursor[CURSOR_BYTES];

    rep.chunks = hf_arena_alloc(a, l->max * sizeof(Hf__SegChunk *));
    if (!chunks || !ids || !rep.chunks) {
        svc_fail(l->svc, l->req, HF_E_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const struct hf_seg_info *info = &l->infos[i];

        hf__seg_chunk__init(&chunks[i]);
        hf__chunk_id__init(&ids[i]);
        ids[i].segment = l->segment;
        ids[i].ino = info->id.ino;
        ids[i].index = info->id.index;
        ids[i].gen = info->id.gen;
        chunks[i].chunk = &ids[i];
        chunks[i].len = info->len;
        chunks[i].allocated = info->allocated < UINT32_MAX ? (uint32_t)info->allocated : UINT32_MAX;
        chunks[i].status = info->status;
        rep.chunks[rep.n_chunks++] = &chunks[i];
        if (info->status == HF_E_CORRUPT)
            hf_metric_add(&l->svc->m.checksum_errors, 1);
    }
    if (l->n > 0) {
        hf_put_be64(cursor, l->infos[l->n - 1].id.ino);
        hf_put_be32(cursor + 8, l->infos[l->n - 1].id.index);
        hf_put_be32(cursor + 12, l->infos[l->n - 1].id.gen);
        rep.cursor.data = cursor;
        rep.cursor.len = sizeof(cursor);
    }
    hf_rpc_reply(l->req, 0, &rep.base, NULL, 0);
}

static void list_done(struct hf_task *t)
{
    struct hf_work *w = hf_container_of(t, struct hf_work, done);
    struct list_call *l = hf_container_of(w, struct list_call, work);
    struct hf_segsvc *s = l->svc;

    if (l->status)
        svc_fail(s, l->req, l->status);
    else
        list_reply(l);
    free(l->infos);
    free(l);
    s->nlists--;
    svc_stop_step(s);
}

void svc_list_chunks(Hf__Segment_Service *service, const Hf__SegListReq *in,
                     Hf__SegListRep_Closure closure, void *data)
{
    struct hf_segsvc *s = hf_container_of(service, struct hf_segsvc, impl);
    struct segment *seg = svc_segment(s, &(const Hf__ChunkId){.segment = in->segment});
    struct hf_rpc_req *req = data;
    struct list_call *l;

    (void)closure;
    hf_metric_add(&s->m.lists, 1);
    if (!seg || (in->cursor.len != 0 && in->cursor.len != CURSOR_BYTES)) {
        svc_refuse(s, req);
        return;
    }
    l = calloc(1, sizeof(*l));
    if (!l) {
        svc_fail(s, req, HF_E_NOMEM);
        return;
    }
    l->svc = s;
    l->req = req;
    l->be = seg->be;
    l->segment = seg->id;
    l->max = in->max > 0 && in->max < SVC_LIST_MAX ? in->max : SVC_LIST_MAX;
    l->verify = in->verify;
    l->from_start = in->cursor.len == 0;
    if (!l->from_start) {
        l->after.ino = hf_get_be64(in->cursor.data);
        l->after.index = hf_get_be32(in->cursor.data + 8);
        l->after.gen = hf_get_be32(in->cursor.data + 12);
    }
    l->work.run = list_run;
    l->work.done.fn = list_done;
    l->work.loop = s->loop;
    l->infos = malloc(l->max * sizeof(*l->infos));
    if (!l->infos || hf_pool_submit(s->pool, &l->work)) {
        svc_fail(s, req, l->infos ? HF_E_BUSY : HF_E_NOMEM);
        free(l->infos);
        free(l);
        return;
    }
    s->nlists++;
}

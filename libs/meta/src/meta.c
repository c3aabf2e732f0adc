/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard's namespace as an object: formatting, opening, and the table that leads from the
 * generated service to the operations.
 */
#include "meta_priv.h"

#include <stdlib.h>

#include "holdfast/endian.h"

#define FIRST_LOCAL (HF_META_ROOT_INO + 1u)

static_assert(offsetof(struct hf_meta, service) == 0, "a service pointer is a struct hf_meta");

/* ---- from the service to the operations ---- */

static struct hf_meta *op_begin(Hf__Meta_Service *s, struct hf_meta_op *op)
{
    struct hf_meta *m = (struct hf_meta *)s;

    m->now_ns = op->now_ns;
    if (!m->started_ns)
        m->started_ns = op->now_ns;
    op->status = HF_E_NOMEM;
    op->reply_bulk = hf_slice(NULL, 0);
    op->lazy = false;
    hf__event__init(&op->event);
    return m;
}

/* An operation that failed has changed nothing. */
static void op_end(struct hf_meta_op *op, int status)
{
    op->status = status;
    if (status) {
        hf__event__init(&op->event);
        op->lazy = false;
        op->reply_bulk = hf_slice(NULL, 0);
    }
}

/* The reply lies in the arena, so that it may be used as long as what it points to. */
#define X(name, Name)                                                                              \
    static void call_##name(Hf__Meta_Service *s, const Hf__##Name##Req *q,                         \
                            Hf__##Name##Rep_Closure closure, void *data)                           \
    {                                                                                              \
        struct hf_meta_op *op = data;                                                              \
        struct hf_meta *m = op_begin(s, op);                                                       \
        Hf__##Name##Rep none, *p = hf_arena_alloc(op->arena, sizeof(*p));                          \
                                                                                                   \
        hf__##name##_rep__init(p ? p : &none);                                                     \
        if (p)                                                                                     \
            op_end(op, hf_meta_op_##name(m, op, q, p));                                            \
        closure(p ? p : &none, data);                                                              \
    }
#include "ops.def"
#undef X

ProtobufCService *hf_meta_service(struct hf_meta *m)
{
    return &m->service.base;
}

static void service_init(Hf__Meta_Service *s)
{
    static const Hf__Meta_Service table = HF__META__INIT(call_);

    *s = table;
}

/* ---- format ---- */

static int row_put(struct hf_store *s, const char *name, const void *val, size_t len)
{
    return hf_store_put(s, HF_T_META, hf_slice_str(name), hf_slice(val, len));
}

static int root_put(struct hf_store *s, const struct hf_meta_format *f)
{
    struct hf_inode i = {.ino = HF_META_ROOT_INO,
                         .type = HF__FILE_TYPE__FT_DIR,
                         .mode = 0755,
                         .nlink = 2,
                         .gen = f->root_gen ? f->root_gen : 1,
                         .atime_ns = f->now_ns,
                         .mtime_ns = f->now_ns,
                         .ctime_ns = f->now_ns,
                         .btime_ns = f->now_ns,
                         .change = 1,
                         .parent = HF_META_ROOT_INO};
    uint8_t key[HF_KEY_INO], val[HF_INO_VALUE_MAX];
    size_t n = hf_ino_encode(&i, val);

    hf_key_ino(key, i.ino);
    return hf_store_put(s, HF_T_INO, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

int hf_meta_format(struct hf_store *store, const struct hf_meta_format *f)
{
    struct hf_format_row row = {.format = HF_META_FORMAT,
                                .shard = f->shard,
                                .root_gen = f->root_gen ? f->root_gen : 1,
                                .created_ns = f->now_ns};
    uint8_t val[sizeof(struct hf_format_disk)], counter[sizeof(struct hf_counter_disk)];
    int r = hf_meta_is_formatted(store);

    if (r != HF_E_NOENT)
        return r ? r : HF_E_EXIST;
    if (f->shard > UINT16_MAX)
        return HF_E_INVAL;
    memcpy(row.cookie_key, f->cookie_key, sizeof(row.cookie_key));
    hf_format_encode(&row, val);
    hf_counter_encode(FIRST_LOCAL, counter);
    r = row_put(store, HF_ROW_FORMAT, val, sizeof(val));
    if (r == 0)
        r = row_put(store, HF_ROW_NEXT, counter, sizeof(counter));
    if (r == 0 && f->shard == 0)
        r = root_put(store, f);
    if (r == 0 && f->shard == 0 && f->map)
        r = hf_map_store(store, f->map);
    return r;
}

static int format_get(struct hf_store *store, struct hf_format_row *ret)
{
    struct hf_slice val;
    int r = hf_store_get(store, HF_T_META, hf_slice_str(HF_ROW_FORMAT), &val);

    return r ? r : hf_format_decode(val, ret);
}

int hf_meta_is_formatted(struct hf_store *store)
{
    struct hf_format_row row;

    return format_get(store, &row);
}

/* ---- open ---- */

int hf_meta_open(const struct hf_meta_opts *o, struct hf_meta **ret)
{
    struct hf_format_row row;
    struct hf_slice val;
    struct hf_meta *m;
    uint64_t next;
    int r = format_get(o->store, &row);

    if (r)
        return r;
    if (row.shard != o->shard)
        return HF_E_INVAL;
    r = hf_store_get(o->store, HF_T_META, hf_slice_str(HF_ROW_NEXT), &val);
    if (r == 0)
        r = hf_counter_decode(val, &next);
    if (r)
        return r == HF_E_NOENT ? HF_E_CORRUPT : r;
    if (next < FIRST_LOCAL || next > HF_INO_LOCAL_MAX)
        return HF_E_CORRUPT;
    m = calloc(1, sizeof(*m));
    if (!m)
        return HF_E_NOMEM;
    service_init(&m->service);
    m->store = o->store;
    m->shard = o->shard;
    m->inline_max = o->inline_max > HF_META_INLINE_MAX ? HF_META_INLINE_MAX : o->inline_max;
    m->noatime = o->noatime;
    memcpy(m->cookie_key, row.cookie_key, sizeof(m->cookie_key));
    m->next_local = m->end_local = next;
    r = hf_session_any_opens(m, &m->grace);
    if (r == 0)
        r = hf_opens_load(m);
    if (r) {
        hf_meta_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void hf_meta_free(struct hf_meta *m)
{
    if (!m)
        return;
    hf_place_fini(&m->place);
    hf_appends_fini(m);
    hf_map_fini(&m->opens);
    free(m);
}

int hf_meta_set_map(struct hf_meta *m, const Hf__MapGetRep *map)
{
    return hf_place_set(&m->place, map);
}

void hf_meta_set_segment_free(struct hf_meta *m, uint32_t segment, uint64_t free_bytes)
{
    hf_place_set_free(&m->place, segment, free_bytes);
}

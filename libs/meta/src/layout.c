/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"

#define OFF(type, field) offsetof(struct type, field)

const char *const hf_meta_tables[] = {
#define X(id, name) name,
    HF_META_TABLES(X)
#undef X
};
const unsigned hf_meta_ntables = HF_T_COUNT;

static_assert(HF_T_COUNT <= HF_STORE_TABLES_MAX, "tables");

/* ---- keys ---- */

static void put_epoch(uint8_t *p)
{
    hf_put_be32(p, UINT32_MAX - HF_EPOCH_LIVE);
}

void hf_key_ino(uint8_t key[HF_KEY_INO], uint64_t ino)
{
    hf_put_be64(key, ino);
    put_epoch(key + 8);
}

void hf_key_dent(uint8_t key[HF_KEY_DENT], uint64_t dir, uint64_t cookie)
{
    hf_put_be64(key, dir);
    hf_put_be64(key + 8, cookie);
    put_epoch(key + 16);
}

void hf_key_slot(uint8_t key[HF_KEY_SLOT], uint64_t session, uint16_t slot)
{
    hf_put_be64(key, session);
    hf_put_be16(key + 8, slot);
}

void hf_key_gc(uint8_t key[HF_KEY_GC], uint64_t ino, uint32_t gen, uint32_t from)
{
    hf_put_be64(key, ino);
    hf_put_be32(key + 8, gen);
    hf_put_be32(key + 12, from);
}

void hf_key_xat(uint8_t key[HF_KEY_XAT], uint64_t ino, uint8_t ns, uint64_t hash)
{
    hf_put_be64(key, ino);
    key[8] = ns;
    hf_put_be64(key + 9, hash);
    put_epoch(key + 17);
}

/* The epoch at the end of a key. No others are written yet: such a row would be found by nobody. */
static bool is_live(const uint8_t *e4)
{
    return hf_get_be32(e4) == UINT32_MAX - HF_EPOCH_LIVE;
}

int hf_key_ino_parse(struct hf_slice key, uint64_t *ret_ino)
{
    if (key.len != HF_KEY_INO || !is_live((const uint8_t *)key.data + 8))
        return HF_E_CORRUPT;
    *ret_ino = hf_get_be64(key.data);
    return 0;
}

int hf_key_dent_parse(struct hf_slice key, uint64_t *ret_dir, uint64_t *ret_cookie)
{
    if (key.len != HF_KEY_DENT || !is_live((const uint8_t *)key.data + 16))
        return HF_E_CORRUPT;
    *ret_dir = hf_get_be64(key.data);
    *ret_cookie = hf_get_be64((const uint8_t *)key.data + 8);
    return 0;
}

int hf_key_gc_parse(struct hf_slice key, uint64_t *ret_ino, uint32_t *ret_gen, uint32_t *ret_from)
{
    if (key.len != HF_KEY_GC)
        return HF_E_CORRUPT;
    *ret_ino = hf_get_be64(key.data);
    *ret_gen = hf_get_be32((const uint8_t *)key.data + 8);
    *ret_from = hf_get_be32((const uint8_t *)key.data + 12);
    return 0;
}

int hf_key_xat_parse(struct hf_slice key, uint64_t *ret_ino, uint8_t *ret_ns, uint64_t *ret_hash)
{
    const uint8_t *p = key.data;

    if (key.len != HF_KEY_XAT || p[8] < HF_XAT_USER || p[8] >= HF_XAT_NS_END || !is_live(p + 17))
        return HF_E_CORRUPT;
    *ret_ino = hf_get_be64(p);
    *ret_ns = p[8];
    *ret_hash = hf_get_be64(p + 9);
    return 0;
}

/* ---- inode ---- */

static size_t layout_encode(const struct hf_layout *l, uint8_t *p)
{
    HF_ASSERT(l->nsegs >= 1 && l->nsegs <= HF_SEGS_MAX && l->nranges <= HF_RANGES_MAX);
    hf_put_le32(p + OFF(hf_layout_disk, pool), l->pool);
    hf_put_le32(p + OFF(hf_layout_disk, chunk_bytes), l->chunk_bytes);
    hf_put_le32(p + OFF(hf_layout_disk, gen), l->gen);
    hf_put_le32(p + OFF(hf_layout_disk, fence), l->fence);
    hf_put_le32(p + OFF(hf_layout_disk, nranges), l->nranges);
    hf_put_le16(p + OFF(hf_layout_disk, nsegs), l->nsegs);
    p[OFF(hf_layout_disk, trim)] = l->trim;
    p[OFF(hf_layout_disk, pad)] = 0;
    hf_put_le64(p + OFF(hf_layout_disk, trim_from), l->trim_from);
    hf_put_le64(p + OFF(hf_layout_disk, trim_to), l->trim_to);
    hf_put_le64(p + OFF(hf_layout_disk, boot), l->boot);
    p += sizeof(struct hf_layout_disk);
    for (size_t k = 0; k < l->nsegs; k++)
        hf_put_le32(p + 4 * k, l->segs[k]);
    p += (size_t)4 * l->nsegs;
    for (size_t k = 0; k < l->nranges; k++) {
        hf_put_le32(p + 8 * k, l->ranges[k].from);
        hf_put_le32(p + 8 * k + 4, l->ranges[k].to);
    }
    return sizeof(struct hf_layout_disk) + (size_t)4 * l->nsegs + (size_t)8 * l->nranges;
}

size_t hf_ino_encode(const struct hf_inode *i, uint8_t out[HF_INO_VALUE_MAX])
{
    size_t n = sizeof(struct hf_ino_disk);

    memset(out, 0, n);
    out[OFF(hf_ino_disk, version)] = HF_VALUE_VERSION;
    out[OFF(hf_ino_disk, type)] = i->type;
    hf_put_le16(out + OFF(hf_ino_disk, mode), i->mode);
    hf_put_le32(out + OFF(hf_ino_disk, nlink), i->nlink);
    hf_put_le32(out + OFF(hf_ino_disk, uid), i->uid);
    hf_put_le32(out + OFF(hf_ino_disk, gid), i->gid);
    hf_put_le32(out + OFF(hf_ino_disk, gen), i->gen);
    hf_put_le32(out + OFF(hf_ino_disk, flags), i->flags);
    hf_put_le32(out + OFF(hf_ino_disk, rdev_major), i->rdev_major);
    hf_put_le32(out + OFF(hf_ino_disk, rdev_minor), i->rdev_minor);
    hf_put_le64(out + OFF(hf_ino_disk, size), i->size);
    hf_put_le64(out + OFF(hf_ino_disk, allocated), i->allocated);
    hf_put_le64(out + OFF(hf_ino_disk, atime_ns), (uint64_t)i->atime_ns);
    hf_put_le64(out + OFF(hf_ino_disk, mtime_ns), (uint64_t)i->mtime_ns);
    hf_put_le64(out + OFF(hf_ino_disk, ctime_ns), (uint64_t)i->ctime_ns);
    hf_put_le64(out + OFF(hf_ino_disk, btime_ns), (uint64_t)i->btime_ns);
    hf_put_le64(out + OFF(hf_ino_disk, change), i->change);
    hf_put_le64(out + OFF(hf_ino_disk, parent), i->parent);
    hf_put_le64(out + OFF(hf_ino_disk, verf), i->verf);
    hf_put_le32(out + OFF(hf_ino_disk, project), i->project);
    hf_put_le32(out + OFF(hf_ino_disk, layout_gens), i->layout_gens);
    out[OFF(hf_ino_disk, kind)] = i->kind;
    if (i->kind == HF_KIND_CHUNKS)
        n += layout_encode(&i->lay, out + n);
    return n;
}

/* Ascending, and with a gap between two of them. */
static int ranges_decode(const uint8_t *p, struct hf_layout *l)
{
    for (size_t k = 0; k < l->nranges; k++) {
        struct hf_range r = {hf_get_le32(p + 8 * k), hf_get_le32(p + 8 * k + 4)};

        if (r.from >= r.to || (k && r.from <= l->ranges[k - 1].to))
            return HF_E_CORRUPT;
        l->ranges[k] = r;
    }
    return 0;
}

static int layout_decode(const uint8_t *p, size_t len, struct hf_layout *l)
{
    uint32_t nranges;
    if (len < sizeof(struct hf_layout_disk))
        return HF_E_CORRUPT;
    l->pool = hf_get_le32(p + OFF(hf_layout_disk, pool));
    l->chunk_bytes = hf_get_le32(p + OFF(hf_layout_disk, chunk_bytes));
    l->gen = hf_get_le32(p + OFF(hf_layout_disk, gen));
    l->fence = hf_get_le32(p + OFF(hf_layout_disk, fence));
    nranges = hf_get_le32(p + OFF(hf_layout_disk, nranges));
    l->nsegs = hf_get_le16(p + OFF(hf_layout_disk, nsegs));
    l->trim = p[OFF(hf_layout_disk, trim)] != 0;
    l->trim_from = hf_get_le64(p + OFF(hf_layout_disk, trim_from));
    l->trim_to = hf_get_le64(p + OFF(hf_layout_disk, trim_to));
    l->boot = hf_get_le64(p + OFF(hf_layout_disk, boot));
    if (l->nsegs < 1 || l->nsegs > HF_SEGS_MAX || nranges > HF_RANGES_MAX || l->chunk_bytes == 0 ||
        p[OFF(hf_layout_disk, trim)] > 1 || l->trim_from > l->trim_to ||
        len != sizeof(struct hf_layout_disk) + (size_t)4 * l->nsegs + (size_t)8 * nranges)
        return HF_E_CORRUPT;
    l->nranges = (uint16_t)nranges;
    p += sizeof(struct hf_layout_disk);
    for (size_t k = 0; k < l->nsegs; k++)
        l->segs[k] = hf_get_le32(p + 4 * k);
    return ranges_decode(p + (size_t)4 * l->nsegs, l);
}

static void ino_decode_fields(const uint8_t *p, struct hf_inode *i)
{
    i->type = p[OFF(hf_ino_disk, type)];
    i->kind = p[OFF(hf_ino_disk, kind)];
    i->mode = hf_get_le16(p + OFF(hf_ino_disk, mode));
    i->nlink = hf_get_le32(p + OFF(hf_ino_disk, nlink));
    i->uid = hf_get_le32(p + OFF(hf_ino_disk, uid));
    i->gid = hf_get_le32(p + OFF(hf_ino_disk, gid));
    i->gen = hf_get_le32(p + OFF(hf_ino_disk, gen));
    i->flags = hf_get_le32(p + OFF(hf_ino_disk, flags));
    i->rdev_major = hf_get_le32(p + OFF(hf_ino_disk, rdev_major));
    i->rdev_minor = hf_get_le32(p + OFF(hf_ino_disk, rdev_minor));
    i->size = hf_get_le64(p + OFF(hf_ino_disk, size));
    i->allocated = hf_get_le64(p + OFF(hf_ino_disk, allocated));
    i->atime_ns = (int64_t)hf_get_le64(p + OFF(hf_ino_disk, atime_ns));
    i->mtime_ns = (int64_t)hf_get_le64(p + OFF(hf_ino_disk, mtime_ns));
    i->ctime_ns = (int64_t)hf_get_le64(p + OFF(hf_ino_disk, ctime_ns));
    i->btime_ns = (int64_t)hf_get_le64(p + OFF(hf_ino_disk, btime_ns));
    i->change = hf_get_le64(p + OFF(hf_ino_disk, change));
    i->parent = hf_get_le64(p + OFF(hf_ino_disk, parent));
    i->verf = hf_get_le64(p + OFF(hf_ino_disk, verf));
    i->project = hf_get_le32(p + OFF(hf_ino_disk, project));
    i->layout_gens = hf_get_le32(p + OFF(hf_ino_disk, layout_gens));
}

static bool kind_fits(uint8_t type, uint8_t kind)
{
    switch (type) {
    case HF__FILE_TYPE__FT_REG:
        return kind == HF_KIND_INLINE || kind == HF_KIND_CHUNKS;
    case HF__FILE_TYPE__FT_LNK:
        return kind == HF_KIND_INLINE;
    default:
        return kind == HF_KIND_NONE;
    }
}

int hf_ino_decode(struct hf_slice val, uint64_t ino, struct hf_inode *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_ino_disk);

    if (val.len < head || p[0] != HF_VALUE_VERSION)
        return HF_E_CORRUPT;
    ret->ino = ino;
    ino_decode_fields(p, ret);
    if (ret->type < HF__FILE_TYPE__FT_REG || ret->type > HF__FILE_TYPE__FT_FIFO ||
        ret->mode > 07777 || (ret->nlink == 0 && ret->type != HF__FILE_TYPE__FT_REG) ||
        ret->gen == 0 || ret->size > INT64_MAX || ret->allocated > INT64_MAX ||
        !kind_fits(ret->type, ret->kind))
        return HF_E_CORRUPT;
    if (ret->kind == HF_KIND_CHUNKS)
        return layout_decode(p + head, val.len - head, &ret->lay);
    return val.len == head ? 0 : HF_E_CORRUPT;
}

/* ---- dentry, data ---- */

size_t hf_dent_encode(const struct hf_dentry *d, uint8_t out[HF_DENT_VALUE_MAX])
{
    HF_ASSERT(d->name.len >= 1 && d->name.len <= HF_META_NAME_MAX);
    out[OFF(hf_dent_disk, version)] = HF_VALUE_VERSION;
    out[OFF(hf_dent_disk, type)] = d->type;
    hf_put_le16(out + OFF(hf_dent_disk, flags), d->flags);
    hf_put_le32(out + OFF(hf_dent_disk, name_len), (uint32_t)d->name.len);
    hf_put_le64(out + OFF(hf_dent_disk, child), d->child);
    memcpy(out + sizeof(struct hf_dent_disk), d->name.data, d->name.len);
    return sizeof(struct hf_dent_disk) + d->name.len;
}

int hf_dent_decode(struct hf_slice val, struct hf_dentry *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_dent_disk);

    if (val.len <= head || val.len > HF_DENT_VALUE_MAX || p[0] != HF_VALUE_VERSION ||
        hf_get_le32(p + OFF(hf_dent_disk, name_len)) != val.len - head ||
        p[OFF(hf_dent_disk, type)] < HF__FILE_TYPE__FT_REG ||
        p[OFF(hf_dent_disk, type)] > HF__FILE_TYPE__FT_FIFO)
        return HF_E_CORRUPT;
    ret->type = p[OFF(hf_dent_disk, type)];
    ret->flags = hf_get_le16(p + OFF(hf_dent_disk, flags));
    ret->child = hf_get_le64(p + OFF(hf_dent_disk, child));
    ret->name = hf_slice(p + head, val.len - head);
    return 0;
}

void hf_data_encode_head(uint32_t len, uint8_t *out)
{
    memset(out, 0, sizeof(struct hf_data_disk));
    out[OFF(hf_data_disk, version)] = HF_VALUE_VERSION;
    hf_put_le32(out + OFF(hf_data_disk, len), len);
}

int hf_data_decode(struct hf_slice val, struct hf_slice *ret_content)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_data_disk);

    if (val.len < head || p[0] != HF_VALUE_VERSION ||
        hf_get_le32(p + OFF(hf_data_disk, len)) != val.len - head)
        return HF_E_CORRUPT;
    *ret_content = hf_slice(p + head, val.len - head);
    return 0;
}

/* ---- sessions, slots ---- */

size_t hf_sess_encode(const struct hf_sess *s, uint8_t out[HF_SESS_VALUE_MAX])
{
    HF_ASSERT(s->client.len <= HF_CLIENT_NAME_MAX);
    out[OFF(hf_sess_disk, version)] = HF_VALUE_VERSION;
    out[OFF(hf_sess_disk, flags)] = s->flags;
    hf_put_le16(out + OFF(hf_sess_disk, client_len), (uint16_t)s->client.len);
    hf_put_le32(out + OFF(hf_sess_disk, nslots), s->nslots);
    hf_put_le64(out + OFF(hf_sess_disk, opened_ns), (uint64_t)s->opened_ns);
    hf_put_le64(out + OFF(hf_sess_disk, seen_ns), (uint64_t)s->seen_ns);
    if (s->client.len)
        memcpy(out + sizeof(struct hf_sess_disk), s->client.data, s->client.len);
    return sizeof(struct hf_sess_disk) + s->client.len;
}

int hf_sess_decode(struct hf_slice val, struct hf_sess *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_sess_disk);

    if (val.len < head || val.len > HF_SESS_VALUE_MAX || p[0] != HF_VALUE_VERSION ||
        hf_get_le16(p + OFF(hf_sess_disk, client_len)) != val.len - head ||
        hf_get_le32(p + OFF(hf_sess_disk, nslots)) > HF_SESS_SLOTS_MAX)
        return HF_E_CORRUPT;
    ret->flags = p[OFF(hf_sess_disk, flags)];
    ret->nslots = hf_get_le32(p + OFF(hf_sess_disk, nslots));
    ret->opened_ns = (int64_t)hf_get_le64(p + OFF(hf_sess_disk, opened_ns));
    ret->seen_ns = (int64_t)hf_get_le64(p + OFF(hf_sess_disk, seen_ns));
    ret->client = hf_slice(p + head, val.len - head);
    return 0;
}

size_t hf_slot_encode(const struct hf_slot *s, uint8_t out[HF_SLOT_VALUE_MAX])
{
    HF_ASSERT(s->reply.len <= HF_SLOT_REPLY_MAX);
    memset(out, 0, sizeof(struct hf_slot_disk));
    out[OFF(hf_slot_disk, version)] = HF_VALUE_VERSION;
    hf_put_le32(out + OFF(hf_slot_disk, status), (uint32_t)s->status);
    hf_put_le64(out + OFF(hf_slot_disk, sequence), s->sequence);
    if (s->reply.len)
        memcpy(out + sizeof(struct hf_slot_disk), s->reply.data, s->reply.len);
    return sizeof(struct hf_slot_disk) + s->reply.len;
}

int hf_slot_decode(struct hf_slice val, struct hf_slot *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_slot_disk);

    if (val.len < head || val.len > HF_SLOT_VALUE_MAX || p[0] != HF_VALUE_VERSION)
        return HF_E_CORRUPT;
    ret->status = (int32_t)hf_get_le32(p + OFF(hf_slot_disk, status));
    ret->sequence = hf_get_le64(p + OFF(hf_slot_disk, sequence));
    ret->reply = hf_slice(p + head, val.len - head);
    return 0;
}

/* ---- garbage ---- */

size_t hf_gc_encode(const struct hf_gc *g, uint8_t out[HF_GC_VALUE_MAX])
{
    HF_ASSERT(g->nsegs >= 1 && g->nsegs <= HF_SEGS_MAX);
    out[OFF(hf_gc_disk, version)] = HF_VALUE_VERSION;
    out[OFF(hf_gc_disk, pad)] = 0;
    hf_put_le16(out + OFF(hf_gc_disk, nsegs), g->nsegs);
    hf_put_le32(out + OFF(hf_gc_disk, nchunks), g->nchunks);
    hf_put_le64(out + OFF(hf_gc_disk, due_ns), (uint64_t)g->due_ns);
    hf_put_le32(out + OFF(hf_gc_disk, pool), g->pool);
    hf_put_le32(out + OFF(hf_gc_disk, chunk_bytes), g->chunk_bytes);
    for (size_t k = 0; k < g->nsegs; k++)
        hf_put_le32(out + sizeof(struct hf_gc_disk) + 4 * k, g->segs[k]);
    return sizeof(struct hf_gc_disk) + (size_t)4 * g->nsegs;
}

int hf_gc_decode(struct hf_slice val, struct hf_gc *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_gc_disk);
    uint16_t n;

    if (val.len < head || p[0] != HF_VALUE_VERSION)
        return HF_E_CORRUPT;
    n = hf_get_le16(p + OFF(hf_gc_disk, nsegs));
    if (n < 1 || n > HF_SEGS_MAX || val.len != head + (size_t)4 * n ||
        hf_get_le32(p + OFF(hf_gc_disk, chunk_bytes)) == 0)
        return HF_E_CORRUPT;
    ret->nsegs = n;
    ret->nchunks = hf_get_le32(p + OFF(hf_gc_disk, nchunks));
    ret->due_ns = (int64_t)hf_get_le64(p + OFF(hf_gc_disk, due_ns));
    ret->pool = hf_get_le32(p + OFF(hf_gc_disk, pool));
    ret->chunk_bytes = hf_get_le32(p + OFF(hf_gc_disk, chunk_bytes));
    for (size_t k = 0; k < n; k++)
        ret->segs[k] = hf_get_le32(p + head + 4 * k);
    return 0;
}

/* ---- extended attributes ---- */

size_t hf_xat_encode(const struct hf_xat *x, uint8_t *out)
{
    HF_ASSERT(x->name.len >= 1 && x->name.len <= HF_XAT_NAME_MAX);
    HF_ASSERT(x->value.len <= HF_XAT_VALUE_MAX);
    out[OFF(hf_xat_disk, version)] = HF_VALUE_VERSION;
    out[OFF(hf_xat_disk, pad)] = 0;
    hf_put_le16(out + OFF(hf_xat_disk, name_len), (uint16_t)x->name.len);
    hf_put_le32(out + OFF(hf_xat_disk, value_len), (uint32_t)x->value.len);
    out += sizeof(struct hf_xat_disk);
    memcpy(out, x->name.data, x->name.len);
    if (x->value.len)
        memmove(out + x->name.len, x->value.data, x->value.len);
    return sizeof(struct hf_xat_disk) + x->name.len + x->value.len;
}

int hf_xat_decode(struct hf_slice val, struct hf_xat *ret)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_xat_disk), name, value;

    if (val.len < head || p[0] != HF_VALUE_VERSION)
        return HF_E_CORRUPT;
    name = hf_get_le16(p + OFF(hf_xat_disk, name_len));
    value = hf_get_le32(p + OFF(hf_xat_disk, value_len));
    if (name < 1 || name > HF_XAT_NAME_MAX || value > HF_XAT_VALUE_MAX ||
        val.len != head + name + value)
        return HF_E_CORRUPT;
    ret->name = hf_slice(p + head, name);
    ret->value = hf_slice(p + head + name, value);
    return 0;
}

/* ---- rows of table meta ---- */

void hf_format_encode(const struct hf_format_row *f, uint8_t out[sizeof(struct hf_format_disk)])
{
    memset(out, 0, sizeof(struct hf_format_disk));
    out[OFF(hf_format_disk, version)] = HF_VALUE_VERSION;
    hf_put_le32(out + OFF(hf_format_disk, format), f->format);
    hf_put_le32(out + OFF(hf_format_disk, shard), f->shard);
    hf_put_le32(out + OFF(hf_format_disk, root_gen), f->root_gen);
    hf_put_le64(out + OFF(hf_format_disk, created_ns), (uint64_t)f->created_ns);
    memcpy(out + OFF(hf_format_disk, cookie_key), f->cookie_key, sizeof(f->cookie_key));
}

int hf_format_decode(struct hf_slice val, struct hf_format_row *ret)
{
    const uint8_t *p = val.data;

    if (val.len < OFF(hf_format_disk, shard))
        return HF_E_CORRUPT;
    if (p[0] != HF_VALUE_VERSION || hf_get_le32(p + OFF(hf_format_disk, format)) != HF_META_FORMAT)
        return HF_E_VERSION;
    if (val.len != sizeof(struct hf_format_disk))
        return HF_E_CORRUPT;
    ret->format = HF_META_FORMAT;
    ret->shard = hf_get_le32(p + OFF(hf_format_disk, shard));
    ret->root_gen = hf_get_le32(p + OFF(hf_format_disk, root_gen));
    ret->created_ns = (int64_t)hf_get_le64(p + OFF(hf_format_disk, created_ns));
    memcpy(ret->cookie_key, p + OFF(hf_format_disk, cookie_key), sizeof(ret->cookie_key));
    return 0;
}

void hf_counter_encode(uint64_t value, uint8_t out[sizeof(struct hf_counter_disk)])
{
    memset(out, 0, sizeof(struct hf_counter_disk));
    out[OFF(hf_counter_disk, version)] = HF_VALUE_VERSION;
    hf_put_le64(out + OFF(hf_counter_disk, value), value);
}

int hf_counter_decode(struct hf_slice val, uint64_t *ret)
{
    const uint8_t *p = val.data;

    if (val.len != sizeof(struct hf_counter_disk) || p[0] != HF_VALUE_VERSION)
        return HF_E_CORRUPT;
    *ret = hf_get_le64(p + OFF(hf_counter_disk, value));
    return 0;
}

void hf_map_encode_head(uint32_t len, uint8_t out[sizeof(struct hf_map_disk)])
{
    memset(out, 0, sizeof(struct hf_map_disk));
    out[OFF(hf_map_disk, version)] = HF_VALUE_VERSION;
    hf_put_le32(out + OFF(hf_map_disk, len), len);
}

int hf_map_decode(struct hf_slice val, struct hf_slice *ret_packed)
{
    const uint8_t *p = val.data;
    size_t head = sizeof(struct hf_map_disk);

    if (val.len < head || p[0] != HF_VALUE_VERSION ||
        hf_get_le32(p + OFF(hf_map_disk, len)) != val.len - head)
        return HF_E_CORRUPT;
    *ret_packed = hf_slice(p + head, val.len - head);
    return 0;
}

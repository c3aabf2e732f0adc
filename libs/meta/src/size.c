/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes: inline content, and what a new size means for it and for chunks.
 *
 * Cutting a chunked file only notes what has to be cut (trim_from .. trim_to) and raises the fence.
 * Whoever next wants the file to be longer must have the chunks trimmed first, so that old bytes
 * cannot come back as holes; the caller that cut it does so at once, out of courtesy. The duty is
 * handed out one range of chunks at a time.
 */
#include "holdfast/assert.h"
#include "meta_priv.h"

uint64_t hf_round_up(uint64_t v, uint64_t to)
{
    return (v + to - 1) / to * to;
}

int hf_data_get(struct hf_meta *m, uint64_t ino, struct hf_slice *ret)
{
    uint8_t key[HF_KEY_INO];
    struct hf_slice val;
    int r;

    hf_key_ino(key, ino);
    r = hf_store_get(m->store, HF_T_DATA, hf_slice(key, sizeof(key)), &val);
    if (r == HF_E_NOENT) {
        *ret = hf_slice(NULL, 0);
        return 0;
    }
    return r ? r : hf_data_decode(val, ret);
}

int hf_data_put(struct hf_meta *m, uint64_t ino, uint8_t *row, uint32_t len)
{
    uint8_t key[HF_KEY_INO];

    hf_key_ino(key, ino);
    hf_data_encode_head(len, row);
    return hf_store_put(m->store, HF_T_DATA, hf_slice(key, sizeof(key)),
                        hf_slice(row, sizeof(struct hf_data_disk) + len));
}

int hf_data_del(struct hf_meta *m, uint64_t ino)
{
    uint8_t key[HF_KEY_INO];

    hf_key_ino(key, ino);
    return hf_store_del(m->store, HF_T_DATA, hf_slice(key, sizeof(key)));
}

/* The largest file: below HF_META_FILE_MAX, and its chunks can be counted in 32 bits. */
static uint64_t size_max(const struct hf_inode *i)
{
    uint64_t most = HF_META_FILE_MAX;

    if (i->kind == HF_KIND_CHUNKS && most / i->lay.chunk_bytes >= UINT32_MAX)
        most = (uint64_t)i->lay.chunk_bytes * (UINT32_MAX - 1u);
    return most;
}

int hf_size_check(const struct hf_inode *i, uint64_t size)
{
    if (i->type != HF__FILE_TYPE__FT_REG)
        return HF_E_INVAL;
    return size > size_max(i) ? HF_E_FBIG : 0;
}

int hf_size_trim_due(const struct hf_inode *i, uint64_t end)
{
    return i->kind == HF_KIND_CHUNKS && i->lay.trim && end > i->lay.trim_from ? HF_E_CHANGED : 0;
}

int hf_size_scratch(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i,
                    uint64_t size, uint8_t **ret)
{
    struct hf_slice content;
    uint8_t *row;
    int r;

    *ret = NULL;
    if (i->kind != HF_KIND_INLINE || size >= i->allocated || size == 0)
        return 0;
    r = hf_data_get(m, i->ino, &content);
    if (r || content.len <= size)
        return r;
    row = hf_arena_alloc(op->arena, sizeof(struct hf_data_disk) + (size_t)size);
    if (!row)
        return HF_E_NOMEM;
    memcpy(row + sizeof(struct hf_data_disk), content.data, (size_t)size);
    *ret = row;
    return 0;
}

static int inline_size_set(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i,
                           uint64_t size, uint8_t *scratch)
{
    struct hf_layout lay;
    int r = 0;

    if (scratch) {
        r = hf_data_put(m, i->ino, scratch, (uint32_t)size);
        i->allocated = hf_round_up(size, 512);
    } else if (size == 0 && i->allocated) {
        r = hf_data_del(m, i->ino);
        i->allocated = 0;
    } else if (size > m->inline_max && i->allocated == 0 && op->may_grow &&
               hf_place_pick(&m->place, hf_ino_alloc_how(i), NULL, 0, op->random, &lay) == 0) {
        /* A large file without content: holes are better read from chunks that do not exist. */
        lay.gen = ++i->layout_gens;
        lay.fence = 1;
        lay.boot = op->boot;
        i->lay = lay;
        i->kind = HF_KIND_CHUNKS;
    }
    i->size = size;
    return r;
}

/* Cut to nothing, a file lets its chunks go and starts again. */
static int chunks_drop(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i)
{
    int r = hf_gc_put(m, i->ino, &i->lay, op->now_ns);

    i->kind = HF_KIND_INLINE;
    i->size = i->allocated = 0;
    return r;
}

static void chunks_size_set(struct hf_inode *i, uint64_t size)
{
    if (size < i->size)
        hf_layout_cut(&i->lay, size);
    if (size < i->size && hf_round_up(size, 65536) < i->allocated)
        i->allocated = hf_round_up(size, 65536);
    i->size = size;
}

int hf_size_set(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i, uint64_t size,
                uint8_t *scratch)
{
    HF_ASSERT(i->type == HF__FILE_TYPE__FT_REG);
    if (i->kind == HF_KIND_INLINE)
        return inline_size_set(m, op, i, size, scratch);
    if (size == 0)
        return chunks_drop(m, op, i);
    chunks_size_set(i, size);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers as bytes. Little-endian:
 *   0    magic "HFCHUNK1"          24  fence u32         56  crc32c of bytes 512..4095
 *   8    version u32               28  length u32        508 crc32c of bytes 0..507
 *   12   flags: 1 clean, 2 copy    32  fresh u64         512 64 entries of 16 bytes:
 *   16   sequence u64              40  ino, index, gen       length u32, crc32c u32, slot u8, zeros
 * The flags lie in the first sector, which is valid on its own given the crc of the rest in it: a
 * clean mark rewrites only this sector.
 */
#include "seg_priv.h"

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"

#define VERSION     1u
#define FLAG_CLEAN  1u
#define FLAG_COPY   2u
#define ENTRY_BYTES 16u

static const char magic[8] = {'H', 'F', 'C', 'H', 'U', 'N', 'K', '1'};

_Static_assert(SEG_MARK_BYTES + HF_SEG_BLOCKS * ENTRY_BYTES <= SEG_HDR_BYTES, "entries fit");
_Static_assert(2 * SEG_HDR_BYTES <= SEG_DATA_OFFSET, "headers fit");
_Static_assert(SEG_SLOTS >= 2 * HF_SEG_BLOCKS && SEG_SLOTS <= 128, "a commit always makes room");
_Static_assert(SEG_DATA_OFFSET + (uint64_t)SEG_SLOTS * HF_SEG_BLOCK_BYTES <= HF_BE_OBJECT_MAX,
               "size");

void seg_object_id(const struct hf_chunk_id *id, uint8_t ret[HF_BE_ID_BYTES])
{
    memset(ret, 0, HF_BE_ID_BYTES);
    hf_put_be64(ret, id->ino);
    hf_put_be32(ret + 8, id->index);
    hf_put_be32(ret + 12, id->gen);
}

bool seg_object_id_parse(const uint8_t *be_id, struct hf_chunk_id *ret)
{
    static const uint8_t zeros[HF_BE_ID_BYTES - 16];

    ret->ino = hf_get_be64(be_id);
    ret->index = hf_get_be32(be_id + 8);
    ret->gen = hf_get_be32(be_id + 12);
    return memcmp(be_id + 16, zeros, sizeof(zeros)) == 0;
}

void seg_header_encode(const struct hf_chunk_id *id, const struct seg_header *h,
                       uint8_t buf[SEG_HDR_BYTES])
{
    memset(buf, 0, SEG_HDR_BYTES);
    memcpy(buf, magic, sizeof(magic));
    hf_put_le32(buf + 8, VERSION);
    hf_put_le32(buf + 12, (h->clean ? FLAG_CLEAN : 0) | (h->copy ? FLAG_COPY : 0));
    hf_put_le64(buf + 16, h->seq);
    hf_put_le32(buf + 24, h->fence);
    hf_put_le32(buf + 28, h->len);
    hf_put_le64(buf + 32, h->fresh);
    hf_put_le64(buf + 40, id->ino);
    hf_put_le32(buf + 48, id->index);
    hf_put_le32(buf + 52, id->gen);
    for (unsigned b = 0; b < HF_SEG_BLOCKS; b++) {
        uint8_t *p = buf + SEG_MARK_BYTES + (size_t)b * ENTRY_BYTES;

        if (h->e[b].len == 0)
            continue;
        hf_put_le32(p, h->e[b].len);
        hf_put_le32(p + 4, h->e[b].crc);
        p[8] = h->e[b].slot;
    }
    hf_put_le32(buf + 56, hf_crc32c(0, buf + SEG_MARK_BYTES, SEG_HDR_BYTES - SEG_MARK_BYTES));
    hf_put_le32(buf + 508, hf_crc32c(0, buf, 508));
}

void seg_header_make_copy(uint8_t buf[SEG_HDR_BYTES])
{
    hf_put_le32(buf + 12, hf_get_le32(buf + 12) | FLAG_COPY);
    hf_put_le32(buf + 508, hf_crc32c(0, buf, 508));
}

static bool all_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* The entries, which came from a disk: slots exist and are used once, lengths lie within the chunk.
 */
static bool entries_decode(const uint8_t *buf, struct seg_header *h)
{
    struct seg_slots seen = {{0, 0}};

    for (unsigned b = 0; b < HF_SEG_BLOCKS; b++) {
        const uint8_t *p = buf + SEG_MARK_BYTES + (size_t)b * ENTRY_BYTES;
        struct seg_entry *e = &h->e[b];

        e->len = hf_get_le32(p);
        e->crc = hf_get_le32(p + 4);
        e->slot = p[8];
        if (e->len == 0)
            continue;
        if (e->len > HF_SEG_BLOCK_BYTES || e->slot >= SEG_SLOTS || seg_slot_has(&seen, e->slot) ||
            (uint64_t)b * HF_SEG_BLOCK_BYTES + e->len > h->len)
            return false;
        seg_slot_set(&seen, e->slot);
    }
    return true;
}

int seg_header_decode(const struct hf_chunk_id *id, const uint8_t buf[SEG_HDR_BYTES],
                      struct seg_header *ret)
{
    if (all_zero(buf, SEG_HDR_BYTES))
        return HF_E_NOENT;
    if (memcmp(buf, magic, sizeof(magic)) != 0 ||
        hf_get_le32(buf + 508) != hf_crc32c(0, buf, 508) ||
        hf_get_le32(buf + 56) != hf_crc32c(0, buf + SEG_MARK_BYTES, SEG_HDR_BYTES - SEG_MARK_BYTES))
        return HF_E_CORRUPT;
    if (hf_get_le32(buf + 8) != VERSION)
        return HF_E_VERSION;
    memset(ret, 0, sizeof(*ret));
    ret->clean = (hf_get_le32(buf + 12) & FLAG_CLEAN) != 0;
    ret->copy = (hf_get_le32(buf + 12) & FLAG_COPY) != 0;
    ret->seq = hf_get_le64(buf + 16);
    ret->fence = hf_get_le32(buf + 24);
    ret->len = hf_get_le32(buf + 28);
    ret->fresh = hf_get_le64(buf + 32);
    if (hf_get_le64(buf + 40) != id->ino || hf_get_le32(buf + 48) != id->index ||
        hf_get_le32(buf + 52) != id->gen || ret->len > HF_SEG_CHUNK_BYTES ||
        !entries_decode(buf, ret))
        return HF_E_CORRUPT;
    return 0;
}

int seg_header_pick(const struct hf_chunk_id *id, const uint8_t *two, struct seg_header *newest,
                    struct seg_header *other, unsigned *ret_place, int *ret_other)
{
    struct seg_header h[2];
    int rc[2];
    unsigned place;

    rc[0] = seg_header_decode(id, two, &h[0]);
    rc[1] = seg_header_decode(id, two + SEG_HDR_BYTES, &h[1]);
    if (rc[0] == HF_E_VERSION || rc[1] == HF_E_VERSION)
        return HF_E_VERSION;
    if (rc[0] && rc[1]) {
        /* The first commit goes to place 0. As long as place 1 was never written (a clean mark
         * fills it), a broken place 0 is a first commit that was cut off. */
        return rc[1] == HF_E_NOENT ? HF_E_NOENT : HF_E_CORRUPT;
    }
    place = rc[0] || (!rc[1] && h[1].seq > h[0].seq) ? 1 : 0;
    if (!rc[0] && !rc[1] && h[0].seq == h[1].seq) {
        /* The original has been synced, for that is when a copy is made; the copy may not be on
         * disk yet. */
        place = h[0].copy ? 1 : 0;
        h[place].clean = true;
    }
    *newest = h[place];
    *ret_place = place;
    *ret_other = rc[1 - place];
    if (*ret_other == 0)
        *other = h[1 - place];
    return 0;
}

struct seg_slots seg_header_slots(const struct seg_entry *e)
{
    struct seg_slots s = {{0, 0}};

    for (unsigned b = 0; b < HF_SEG_BLOCKS; b++) {
        if (e[b].len)
            seg_slot_set(&s, e[b].slot);
    }
    return s;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The two headers of a chunk. Bit 0 and 1 of the first byte make the checksums of one and the other
 * right, so that the fields behind them are reached.
 */
#include "fuzz.h"
#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "seg_priv.h"

static void sign(uint8_t *h, const struct hf_chunk_id *id)
{
    memcpy(h, "HFCHUNK1", 8);
    hf_put_le32(h + 8, 1);
    hf_put_le64(h + 40, id->ino);
    hf_put_le32(h + 48, id->index);
    hf_put_le32(h + 52, id->gen);
    hf_put_le32(h + 56, hf_crc32c(0, h + SEG_MARK_BYTES, SEG_HDR_BYTES - SEG_MARK_BYTES));
    hf_put_le32(h + 508, hf_crc32c(0, h, 508));
}

static void check(const struct hf_chunk_id *id, const struct seg_header *h)
{
    uint8_t buf[SEG_HDR_BYTES], twice[SEG_HDR_BYTES];
    struct seg_header got;
    struct seg_slots s = seg_header_slots(h->e);
    unsigned used = 0, slots = 0;

    FUZZ_CHECK(h->len <= HF_SEG_CHUNK_BYTES);
    for (unsigned b = 0; b < HF_SEG_BLOCKS; b++) {
        FUZZ_CHECK(h->e[b].len <= HF_SEG_BLOCK_BYTES);
        FUZZ_CHECK(h->e[b].len == 0 || h->e[b].slot < SEG_SLOTS);
        used += h->e[b].len > 0;
    }
    for (unsigned k = 0; k < SEG_SLOTS; k++)
        slots += seg_slot_has(&s, k);
    FUZZ_CHECK(used == slots, "a slot is used twice");
    seg_header_encode(id, h, buf);
    FUZZ_CHECK(seg_header_decode(id, buf, &got) == 0);
    seg_header_encode(id, &got, twice);
    FUZZ_CHECK(memcmp(buf, twice, sizeof(buf)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hf_chunk_id id = {.ino = 5, .index = 1, .gen = 2};
    struct seg_header newest, other;
    static uint8_t two[2 * SEG_HDR_BYTES];
    struct fuzz f = {data, size};
    uint8_t how = fuzz_u8(&f);
    unsigned place;
    int rc_other;

    memset(two, 0, sizeof(two));
    /* Pieces: where, how many, bytes. */
    while (f.left > 0) {
        size_t at = fuzz_uint(&f, 2) % sizeof(two);
        struct hf_slice b = fuzz_bytes(&f, fuzz_u8(&f));

        if (b.len > sizeof(two) - at)
            b.len = sizeof(two) - at;
        memcpy(two + at, b.data, b.len);
    }
    for (unsigned k = 0; k < 2; k++) {
        if (how & (1u << k))
            sign(two + k * SEG_HDR_BYTES, &id);
    }
    if (seg_header_pick(&id, two, &newest, &other, &place, &rc_other))
        return 0;
    FUZZ_CHECK(place < 2);
    check(&id, &newest);
    if (rc_other == 0)
        check(&id, &other);
    return 0;
}

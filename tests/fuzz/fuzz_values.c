/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored values: the first byte chooses the decoder, the rest is the value. What decodes is within
 * its bounds, and encodes to something that decodes and encodes to the same bytes.
 */
#include "fuzz.h"
#include "layout.h"

#define OUT_MAX (HF_STORE_VAL_MAX + 4096u)

static size_t ino(struct hf_slice in, uint8_t *out)
{
    struct hf_inode i;

    if (hf_ino_decode(in, 77, &i))
        return 0;
    FUZZ_CHECK(i.kind != HF_KIND_CHUNKS ||
               (i.lay.nsegs <= HF_SEGS_MAX && i.lay.nranges <= HF_RANGES_MAX));
    FUZZ_CHECK(i.size <= INT64_MAX && i.allocated <= INT64_MAX);
    return hf_ino_encode(&i, out);
}

static size_t dent(struct hf_slice in, uint8_t *out)
{
    struct hf_dentry d;

    if (hf_dent_decode(in, &d))
        return 0;
    FUZZ_CHECK(d.name.len > 0 && d.name.len <= HF_META_NAME_MAX);
    return hf_dent_encode(&d, out);
}

static size_t content(struct hf_slice in, uint8_t *out)
{
    struct hf_slice c;

    if (hf_data_decode(in, &c))
        return 0;
    hf_data_encode_head((uint32_t)c.len, out);
    if (c.len)
        memcpy(out + sizeof(struct hf_data_disk), c.data, c.len);
    return sizeof(struct hf_data_disk) + c.len;
}

static size_t sess(struct hf_slice in, uint8_t *out)
{
    struct hf_sess s;

    if (hf_sess_decode(in, &s))
        return 0;
    FUZZ_CHECK(s.client.len <= HF_CLIENT_NAME_MAX && s.nslots <= HF_SESS_SLOTS_MAX);
    return hf_sess_encode(&s, out);
}

static size_t slot(struct hf_slice in, uint8_t *out)
{
    struct hf_slot s;

    if (hf_slot_decode(in, &s))
        return 0;
    FUZZ_CHECK(s.reply.len <= HF_SLOT_REPLY_MAX);
    return hf_slot_encode(&s, out);
}

static size_t gc(struct hf_slice in, uint8_t *out)
{
    struct hf_gc g;

    if (hf_gc_decode(in, &g))
        return 0;
    FUZZ_CHECK(g.nsegs <= HF_SEGS_MAX);
    return hf_gc_encode(&g, out);
}

static size_t xat(struct hf_slice in, uint8_t *out)
{
    struct hf_xat x;

    if (hf_xat_decode(in, &x))
        return 0;
    FUZZ_CHECK(x.name.len <= HF_XAT_NAME_MAX && x.value.len <= HF_XAT_VALUE_MAX);
    return hf_xat_encode(&x, out);
}

static size_t format(struct hf_slice in, uint8_t *out)
{
    struct hf_format_row f;

    if (hf_format_decode(in, &f))
        return 0;
    hf_format_encode(&f, out);
    return sizeof(struct hf_format_disk);
}

static size_t counter(struct hf_slice in, uint8_t *out)
{
    uint64_t v;

    if (hf_counter_decode(in, &v))
        return 0;
    hf_counter_encode(v, out);
    return sizeof(struct hf_counter_disk);
}

static size_t map(struct hf_slice in, uint8_t *out)
{
    struct hf_slice packed;

    if (hf_map_decode(in, &packed))
        return 0;
    hf_map_encode_head((uint32_t)packed.len, out);
    if (packed.len)
        memcpy(out + sizeof(struct hf_map_disk), packed.data, packed.len);
    return sizeof(struct hf_map_disk) + packed.len;
}

static void keys(struct hf_slice in)
{
    uint64_t a, b;
    uint32_t g, from;
    uint8_t ns, key[HF_KEY_XAT];

    if (hf_key_ino_parse(in, &a) == 0) {
        hf_key_ino(key, a);
        FUZZ_CHECK(hf_slice_eq(in, hf_slice(key, HF_KEY_INO)));
    }
    if (hf_key_dent_parse(in, &a, &b) == 0) {
        hf_key_dent(key, a, b);
        FUZZ_CHECK(hf_slice_eq(in, hf_slice(key, HF_KEY_DENT)));
    }
    if (hf_key_gc_parse(in, &a, &g, &from) == 0) {
        hf_key_gc(key, a, g, from);
        FUZZ_CHECK(hf_slice_eq(in, hf_slice(key, HF_KEY_GC)));
    }
    if (hf_key_xat_parse(in, &a, &ns, &b) == 0) {
        hf_key_xat(key, a, ns, b);
        FUZZ_CHECK(hf_slice_eq(in, hf_slice(key, HF_KEY_XAT)));
    }
}

static size_t (*const again[])(struct hf_slice in, uint8_t *out) = {
    ino, dent, content, sess, slot, gc, xat, format, counter, map};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t once[OUT_MAX], twice[OUT_MAX];
    size_t kinds = sizeof(again) / sizeof(again[0]), which, n;
    struct hf_slice in;

    if (size == 0 || size > HF_STORE_VAL_MAX)
        return 0;
    which = data[0] % (kinds + 1);
    in = hf_slice(data + 1, size - 1);
    if (which == kinds) {
        keys(in);
        return 0;
    }
    n = again[which](in, once);
    if (n > 0)
        FUZZ_CHECK(again[which](hf_slice(once, n), twice) == n && memcmp(once, twice, n) == 0,
                   "value kind %zu", which);
    return 0;
}

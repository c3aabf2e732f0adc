/* SPDX-License-Identifier: Apache-2.0
 *
 * The RPC frame. Everything that arrives is hostile: each length is compared with what is left
 * before it is used, and a frame is checked to its end before anyone looks at its first entry.
 */
#include "holdfast/wire.h"

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"

_Static_assert(HF_WIRE_FRAME_MAX >= HF_WIRE_HEADER + HF_WIRE_ENTRY + HF_WIRE_BODY_MAX +
                                        HF_WIRE_PAD_MAX + HF_WIRE_BULK_MAX,
               "the largest call fits a frame");

uint32_t hf_wire_service_id(const char *full_name)
{
    return hf_crc32c(0, full_name, strlen(full_name));
}

void hf_wire_put_header(void *p, const struct hf_wire_frame *f, size_t length)
{
    uint8_t *b = p;

    hf_put_le32(b, HF_WIRE_MAGIC);
    hf_put_le16(b + 4, HF_WIRE_VERSION);
    hf_put_le16(b + 6, (uint16_t)f->count);
    hf_put_le32(b + 8, (uint32_t)length);
    hf_put_le32(b + 12, f->seq);
    hf_put_le32(b + 16, f->acked);
    hf_put_le64(b + 20, 0);
}

void hf_wire_put_entry(void *p, const struct hf_wire_entry *e)
{
    uint8_t *b = p;

    hf_put_le16(b, e->flags);
    hf_put_le16(b + 2, e->method);
    hf_put_le32(b + 4, e->service);
    hf_put_le64(b + 8, e->id);
    hf_put_le64(b + 16, e->session);
    hf_put_le64(b + 24, e->sequence);
    hf_put_le32(b + 32, e->target);
    hf_put_le32(b + 36, e->slot);
    hf_put_le32(b + 40, e->timeout_us);
    hf_put_le32(b + 44, (uint32_t)e->status);
    hf_put_le32(b + 48, e->body_len);
    hf_put_le32(b + 52, e->pad);
    hf_put_le32(b + 56, e->bulk_len);
    hf_put_le32(b + 60, 0);
}

void hf_wire_get_entry(const void *p, struct hf_wire_entry *ret)
{
    const uint8_t *b = p;

    ret->flags = hf_get_le16(b);
    ret->method = hf_get_le16(b + 2);
    ret->service = hf_get_le32(b + 4);
    ret->id = hf_get_le64(b + 8);
    ret->session = hf_get_le64(b + 16);
    ret->sequence = hf_get_le64(b + 24);
    ret->target = hf_get_le32(b + 32);
    ret->slot = hf_get_le32(b + 36);
    ret->timeout_us = hf_get_le32(b + 40);
    ret->status = (int32_t)hf_get_le32(b + 44);
    ret->body_len = hf_get_le32(b + 48);
    ret->pad = hf_get_le32(b + 52);
    ret->bulk_len = hf_get_le32(b + 56);
}

uint32_t hf_wire_pad(size_t at, size_t body_len, size_t bulk_len)
{
    return bulk_len ? (uint32_t)(-(at + HF_WIRE_ENTRY + body_len) & 15u) : 0;
}

/* How many bytes the entry at p takes, 0 if it is not a valid one within `left` bytes. */
static size_t entry_size(const uint8_t *p, size_t left)
{
    struct hf_wire_entry e;
    size_t size;

    if (left < HF_WIRE_ENTRY)
        return 0;
    hf_wire_get_entry(p, &e);
    if (e.body_len > HF_WIRE_BODY_MAX || e.pad > HF_WIRE_PAD_MAX || e.bulk_len > HF_WIRE_BULK_MAX)
        return 0;
    if ((e.flags & ~(HF_WIRE_CALL | HF_WIRE_REPLY | HF_WIRE_VOID)) != 0 ||
        !(e.flags & HF_WIRE_CALL) == !(e.flags & HF_WIRE_REPLY) || e.status > 0 ||
        hf_get_le32(p + 60) != 0)
        return 0;
    size = (size_t)HF_WIRE_ENTRY + e.body_len + e.pad + e.bulk_len;
    return size <= left ? size : 0;
}

int hf_wire_open(const void *data, size_t len, struct hf_wire_frame *ret, struct hf_wire_reader *rd)
{
    const uint8_t *b = data;
    size_t at = HF_WIRE_HEADER;
    unsigned count;

    if (len < HF_WIRE_HEADER || len > HF_WIRE_FRAME_MAX || hf_get_le32(b) != HF_WIRE_MAGIC)
        return HF_E_PROTO;
    if (hf_get_le16(b + 4) != HF_WIRE_VERSION)
        return HF_E_VERSION;
    count = hf_get_le16(b + 6);
    if (count > HF_WIRE_CALLS_MAX || hf_get_le32(b + 8) != len || hf_get_le64(b + 20) != 0)
        return HF_E_PROTO;
    for (unsigned i = 0; i < count; i++) {
        size_t n = entry_size(b + at, len - at);

        if (n == 0)
            return HF_E_PROTO;
        at += n;
    }
    if (at != len)
        return HF_E_PROTO;
    *ret = (struct hf_wire_frame){hf_get_le32(b + 12), hf_get_le32(b + 16), count};
    *rd = (struct hf_wire_reader){b + HF_WIRE_HEADER, count};
    return 0;
}

int hf_wire_next(struct hf_wire_reader *rd, struct hf_wire_entry *ret, struct hf_slice *ret_body,
                 struct hf_slice *ret_bulk)
{
    const uint8_t *p = rd->pos;

    if (rd->left == 0)
        return 0;
    hf_wire_get_entry(p, ret);
    *ret_body = hf_slice(p + HF_WIRE_ENTRY, ret->body_len);
    *ret_bulk = hf_slice(p + HF_WIRE_ENTRY + ret->body_len + ret->pad, ret->bulk_len);
    rd->pos = p + HF_WIRE_ENTRY + ret->body_len + ret->pad + ret->bulk_len;
    rd->left--;
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wal_format.h"

#include <string.h>

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/log.h"

static const uint8_t file_magic[8] = {'H', 'F', 'W', 'A', 'L', '\r', '\n', 0};

void wal_header_encode(const struct wal_header *h, uint8_t out[WAL_HEADER_BYTES])
{
    memset(out, 0, WAL_HEADER_BYTES);
    memcpy(out, file_magic, sizeof(file_magic));
    hf_put_le32(out + 8, WAL_FORMAT);
    hf_put_le64(out + 16, h->seq);
    hf_put_le64(out + 24, h->oldest);
    hf_put_le32(out + 32, h->salt);
    hf_put_le32(out + 36, h->shards);
    hf_put_le32(out + 12, hf_crc32c(0, out + 16, WAL_HEADER_BYTES - 16));
}

int wal_header_decode(const uint8_t in[WAL_HEADER_BYTES], struct wal_header *ret)
{
    static const uint8_t zero[WAL_HEADER_BYTES];
    struct wal_header h;

    if (memcmp(in, zero, sizeof(zero)) == 0)
        return HF_E_NOENT;
    if (memcmp(in, file_magic, sizeof(file_magic)) != 0)
        return HF_E_CORRUPT;
    if (hf_get_le32(in + 12) != hf_crc32c(0, in + 16, WAL_HEADER_BYTES - 16))
        return HF_E_CORRUPT;
    if (hf_get_le32(in + 8) != WAL_FORMAT)
        return HF_E_VERSION;
    h.seq = hf_get_le64(in + 16);
    h.oldest = hf_get_le64(in + 24);
    h.salt = hf_get_le32(in + 32);
    h.shards = hf_get_le32(in + 36);
    if (h.seq == 0 || h.oldest == 0 || h.oldest > h.seq || h.shards == 0 ||
        h.shards > WAL_SHARDS_MAX)
        return HF_E_CORRUPT;
    *ret = h;
    return 0;
}

void wal_rec_encode(const struct wal_rec *r, uint32_t salt, uint8_t out[WAL_REC_BYTES])
{
    hf_put_le32(out, WAL_REC_MAGIC);
    hf_put_le32(out + 8, r->payload_crc);
    hf_put_le32(out + 12, r->len);
    hf_put_le32(out + 16, r->shard);
    hf_put_le32(out + 20, 0);
    hf_put_le64(out + 24, r->pos);
    hf_put_le64(out + 32, r->seq);
    hf_put_le64(out + 40, r->group);
    hf_put_le32(out + 4, hf_crc32c(salt, out + 8, WAL_REC_BYTES - 8));
}

bool wal_rec_decode(const uint8_t *p, uint64_t left, uint64_t seq, uint32_t salt,
                    struct wal_rec *ret)
{
    struct wal_rec r;

    if (left < WAL_REC_BYTES || hf_get_le32(p) != WAL_REC_MAGIC || hf_get_le64(p + 32) != seq ||
        hf_get_le32(p + 4) != hf_crc32c(salt, p + 8, WAL_REC_BYTES - 8))
        return false;
    r.payload_crc = hf_get_le32(p + 8);
    r.len = hf_get_le32(p + 12);
    r.shard = hf_get_le32(p + 16);
    r.pos = hf_get_le64(p + 24);
    r.seq = seq;
    r.group = hf_get_le64(p + 40);
    if (r.len > HF_LOG_RECORD_MAX || wal_rec_span(r.len) > left)
        return false;
    *ret = r;
    return true;
}

bool wal_rec_payload_ok(const struct wal_rec *r, const uint8_t *payload)
{
    return hf_crc32c(0, payload, r->len) == r->payload_crc;
}

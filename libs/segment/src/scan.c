/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing and checking the chunks of a backend, beside a segment that may be changing them. A chunk
 * is read as the newest header has it; if a block does not match, the headers are read again, for
 * the block may have been given to a newer commit meanwhile.
 */
#include "seg_priv.h"

#include <stdlib.h>

#include "holdfast/crc32c.h"

#define TRIES 5u

struct scan {
    struct hf_plug_be *be;
    bool verify;
    int (*fn)(void *arg, const struct hf_seg_info *info);
    void *arg;
    uint8_t *buf; /* one block or two headers */
};

static int be_do(struct scan *s, const uint8_t *id, uint32_t op, uint64_t offset, size_t len,
                 struct hf_be_io *io)
{
    *io = (struct hf_be_io){.op = op, .offset = offset, .data = s->buf, .len = len};
    memcpy(io->id, id, HF_BE_ID_BYTES);
    return hf_plug_do(s->be, io);
}

static int read_header(struct scan *s, const uint8_t *id, const struct hf_chunk_id *cid,
                       struct seg_header *h, struct seg_header *other, int *ret_other)
{
    struct hf_be_io io;
    unsigned place;
    int rc = be_do(s, id, HF_BE_READ, 0, 2 * (size_t)SEG_HDR_BYTES, &io);

    if (rc)
        return rc == HF_BE_ENOENT ? HF_E_NOENT : HF_E_IO;
    rc = seg_header_pick(cid, s->buf, h, other, &place, ret_other);
    if (rc == HF_E_NOENT) {
        memset(h, 0, sizeof(*h));
        *ret_other = HF_E_NOENT;
        return 0;
    }
    return rc ? HF_E_CORRUPT : 0;
}

/* 0, IO, or CORRUPT with the first bad block. */
static int check_blocks(struct scan *s, const uint8_t *id, const struct seg_header *h,
                        unsigned *ret_block)
{
    struct hf_be_io io;

    for (unsigned b = 0; b < HF_SEG_BLOCKS; b++) {
        const struct seg_entry *e = &h->e[b];

        if (e->len == 0)
            continue;
        if (be_do(s, id, HF_BE_READ, seg_slot_offset(e->slot), e->len, &io))
            return HF_E_IO;
        if (hf_crc32c(0, s->buf, e->len) != e->crc) {
            *ret_block = b;
            return HF_E_CORRUPT;
        }
    }
    return 0;
}

static int check(struct scan *s, const uint8_t *id, struct hf_seg_info *info)
{
    struct seg_header h, other, before;
    int other_status, rc = HF_E_CORRUPT;
    unsigned block = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        rc = read_header(s, id, &info->id, &h, &other, &other_status);
        if (rc == HF_E_CORRUPT)
            continue; /* perhaps read while it was written */
        if (rc)
            return rc;
        info->len = h.len;
        if (!s->verify)
            return 0;
        rc = check_blocks(s, id, &h, &block);
        if (rc != HF_E_CORRUPT)
            return rc;
        before = h;
        rc = read_header(s, id, &info->id, &h, &other, &other_status);
        if (rc && rc != HF_E_CORRUPT)
            return rc;
        if (rc || h.seq != before.seq)
            continue;
        rc = HF_E_CORRUPT;
        if (h.clean || !((h.fresh >> block) & 1u) || other_status == HF_E_CORRUPT)
            return rc;
        /* A commit that was cut off: the chunk is what the older header says. */
        if (other_status)
            memset(&other, 0, sizeof(other));
        info->len = other.len;
        rc = check_blocks(s, id, &other, &block);
        if (rc != HF_E_CORRUPT)
            return rc;
    }
    return rc;
}

static int scan_one(void *arg, const uint8_t *id)
{
    struct hf_seg_info info = {.len = 0};
    struct scan *s = arg;
    struct hf_be_io io;
    int rc;

    if (!seg_object_id_parse(id, &info.id))
        return 0; /* not a chunk */
    rc = be_do(s, id, HF_BE_STAT, 0, 0, &io);
    if (rc == HF_BE_ENOENT)
        return 0;
    info.allocated = rc ? 0 : io.allocated;
    info.status = rc ? HF_E_IO : check(s, id, &info);
    if (info.status == HF_E_NOENT)
        return 0; /* deleted meanwhile */
    return s->fn(s->arg, &info);
}

int hf_seg_list(struct hf_plug_be *backend, const struct hf_chunk_id *after, bool verify,
                int (*fn)(void *arg, const struct hf_seg_info *info), void *arg)
{
    struct scan s = {.be = backend, .verify = verify, .fn = fn, .arg = arg};
    uint8_t id[HF_BE_ID_BYTES];
    int rc;

    s.buf = malloc(HF_SEG_BLOCK_BYTES);
    if (!s.buf)
        return HF_E_NOMEM;
    if (after)
        seg_object_id(after, id);
    rc = hf_plug_ops(backend)->list(hf_plug_handle(backend), after ? id : NULL, scan_one, &s);
    free(s.buf);
    return rc ? seg_io_error(rc) : 0;
}

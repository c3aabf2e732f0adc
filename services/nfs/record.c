/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "holdfast/assert.h"
#include "holdfast/endian.h"

void nfs_record_init(struct nfs_record *r, struct nfs_mem *mem)
{
    *r = (struct nfs_record){.mem = mem};
}

void nfs_record_fini(struct nfs_record *r)
{
    nfs_mem_put(r->mem, r->buf, r->cap);
    nfs_record_init(r, r->mem);
}

/* Takes the fragment header as far as it came; false if it is not complete. */
static bool take_header(struct nfs_record *r, struct hf_slice *in)
{
    size_t n = sizeof(r->hdr) - r->hdr_len;

    if (n > in->len)
        n = in->len;
    if (n)
        memcpy(r->hdr + r->hdr_len, in->data, n);
    r->hdr_len += (unsigned)n;
    *in = hf_slice((const uint8_t *)in->data + n, in->len - n);
    return r->hdr_len == sizeof(r->hdr);
}

static enum nfs_record_result begin_fragment(struct nfs_record *r)
{
    uint32_t mark = hf_get_be32(r->hdr);

    r->hdr_len = 0;
    r->in_frag = true;
    r->last = mark >> 31;
    r->frag_left = mark & 0x7fffffffu;
    if (++r->frags > NFS_RECORD_FRAGMENTS || r->frag_left > NFS_RECORD_MAX - r->len)
        return NFS_RECORD_BAD;
    return NFS_RECORD_MORE;
}

/* Room for the current fragment after what was gathered. Growing by doubling keeps a record of many
 * small fragments linear. */
static bool make_room(struct nfs_record *r)
{
    size_t need = r->len + r->frag_left, cap;
    uint8_t *buf;

    if (need <= r->cap)
        return true;
    if (r->cap && need < 2 * r->cap)
        need = 2 * r->cap;
    if (need > NFS_RECORD_MAX)
        need = NFS_RECORD_MAX;
    buf = nfs_mem_get(r->mem, need, &cap);
    if (!buf)
        return false;
    if (r->buf)
        memcpy(buf, r->buf, r->len);
    nfs_mem_put(r->mem, r->buf, r->cap);
    r->buf = buf;
    r->cap = cap;
    return true;
}

/* The fragment is complete. */
static enum nfs_record_result end_fragment(struct nfs_record *r, struct nfs_record_out *ret)
{
    r->in_frag = false;
    if (!r->last)
        return NFS_RECORD_MORE;
    *ret = (struct nfs_record_out){hf_slice(r->buf, r->len), r->buf, r->cap};
    r->buf = NULL;
    nfs_record_init(r, r->mem);
    return NFS_RECORD_READY;
}

static enum nfs_record_result take_data(struct nfs_record *r, struct hf_slice *in,
                                        struct nfs_record_out *ret)
{
    size_t n = r->frag_left < in->len ? r->frag_left : in->len;

    if (r->last && !r->buf && n == r->frag_left) {
        *ret = (struct nfs_record_out){hf_slice(in->data, n), NULL, 0};
        *in = hf_slice((const uint8_t *)in->data + n, in->len - n);
        nfs_record_init(r, r->mem);
        return NFS_RECORD_READY;
    }
    if (!make_room(r))
        return NFS_RECORD_NOMEM;
    HF_ASSERT(n == 0 || r->buf);
    if (n)
        memcpy(r->buf + r->len, in->data, n);
    *in = hf_slice((const uint8_t *)in->data + n, in->len - n);
    r->len += n;
    r->frag_left -= (uint32_t)n;
    return r->frag_left ? NFS_RECORD_MORE : end_fragment(r, ret);
}

enum nfs_record_result nfs_record_feed(struct nfs_record *r, struct hf_slice *in,
                                       struct nfs_record_out *ret)
{
    enum nfs_record_result res = NFS_RECORD_MORE;

    while (res == NFS_RECORD_MORE) {
        if (!r->in_frag) {
            if (!take_header(r, in))
                break;
            res = begin_fragment(r);
            if (res != NFS_RECORD_MORE)
                break;
        }
        if (in->len == 0 && r->frag_left > 0) {
            /* So that the rest can be read straight into its place. */
            if (!make_room(r))
                res = NFS_RECORD_NOMEM;
            break;
        }
        res = take_data(r, in, ret);
    }
    return res;
}

size_t nfs_record_space(struct nfs_record *r, uint8_t **ret)
{
    if (!r->in_frag || !r->buf)
        return 0;
    *ret = r->buf + r->len;
    return r->frag_left;
}

enum nfs_record_result nfs_record_filled(struct nfs_record *r, size_t n, struct nfs_record_out *ret)
{
    HF_ASSERT(r->in_frag && n <= r->frag_left);
    r->len += n;
    r->frag_left -= (uint32_t)n;
    return r->frag_left ? NFS_RECORD_MORE : end_fragment(r, ret);
}

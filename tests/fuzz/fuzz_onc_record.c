/* SPDX-License-Identifier: Apache-2.0
 *
 * Record marking and call headers of ONC RPC. The first byte says in which pieces the stream comes
 * and whether the gateway reads into the record's own memory; however it comes, the records are the
 * same as when it comes at once.
 */
#include "fuzz.h"
#include "oncrpc.h"
#include "record.h"

static void parse(struct hf_slice rec)
{
    struct onc_call call;

    if (onc_call_parse(rec.data, rec.len, &call) != ONC_CALL)
        return;
    FUZZ_CHECK(call.args_off <= rec.len);
    FUZZ_CHECK(call.ngroups <= ONC_GROUPS_MAX);
}

static void take(struct nfs_mem *mem, const struct nfs_record_out *out, struct hf_buf *all)
{
    uint32_t len = (uint32_t)out->data.len;

    FUZZ_CHECK(out->data.len <= NFS_RECORD_MAX);
    if (hf_buf_append(all, &len, sizeof(len)) || hf_buf_append(all, out->data.data, len))
        abort();
    parse(out->data);
    nfs_mem_put(mem, out->buf, out->cap);
}

/* Reads as the gateway does. false: the stream is lost. */
static bool feed(struct nfs_record *r, struct nfs_mem *mem, struct hf_slice in, bool direct,
                 struct hf_buf *all)
{
    struct nfs_record_out out;
    enum nfs_record_result res;
    uint8_t *to;

    while (in.len > 0) {
        size_t room = direct ? nfs_record_space(r, &to) : 0;

        if (room > 0) {
            size_t n = room < in.len ? room : in.len;

            memcpy(to, in.data, n);
            in = hf_slice((const uint8_t *)in.data + n, in.len - n);
            res = nfs_record_filled(r, n, &out);
        } else {
            res = nfs_record_feed(r, &in, &out);
        }
        if (res == NFS_RECORD_READY)
            take(mem, &out, all);
        else if (res == NFS_RECORD_BAD || res == NFS_RECORD_NOMEM)
            return false;
        else
            FUZZ_CHECK(in.len == 0 || room > 0, "input left over");
    }
    return true;
}

static bool run(struct hf_slice in, size_t piece, bool direct, struct hf_buf *all)
{
    struct nfs_mem mem = {0};
    struct nfs_record r;
    bool ok = true;

    nfs_record_init(&r, &mem);
    while (ok && in.len > 0) {
        size_t n = piece < in.len ? piece : in.len;
        /* Of its own memory, so that a record that points into it is seen. */
        uint8_t *copy = malloc(n);

        if (!copy)
            abort();
        memcpy(copy, in.data, n);
        ok = feed(&r, &mem, hf_slice(copy, n), direct, all);
        free(copy);
        in = hf_slice((const uint8_t *)in.data + n, in.len - n);
    }
    nfs_record_fini(&r);
    FUZZ_CHECK(mem.in_use == 0, "%llu bytes kept", (unsigned long long)mem.in_use);
    nfs_mem_fini(&mem);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_buf whole = {0}, pieces = {0};
    struct hf_slice in;
    bool a, b;

    if (size == 0)
        return 0;
    in = hf_slice(data + 1, size - 1);
    parse(in);
    a = run(in, in.len, false, &whole);
    b = run(in, 1u + (data[0] & 0x7f), data[0] & 0x80, &pieces);
    FUZZ_CHECK(a == b);
    FUZZ_CHECK(hf_slice_eq(hf_buf_slice(&whole), hf_buf_slice(&pieces)));
    hf_buf_fini(&whole);
    hf_buf_fini(&pieces);
    return 0;
}

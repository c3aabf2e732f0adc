/* SPDX-License-Identifier: Apache-2.0
 *
 * The service over inproc rpc on the posix backend: what is written is read, stays over a restart,
 * is listed, cut and deleted; requests whose fields do not fit are refused.
 */
#include "support_svc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/err.h"
#include "holdfast/segment.h"

static struct bed b;

static void setup(void)
{
    bed_make(&b);
    bed_start(&b, "posix");
}

static void teardown(void)
{
    bed_stop(&b);
    bed_remove(&b);
}

TestSuite(service, .init = setup, .fini = teardown, .timeout = 60);

Test(service, reads_what_was_written_also_after_restart)
{
    uint32_t n = HF_SEG_CHUNK_BYTES;
    uint8_t *data = malloc(n), *got = malloc(n);
    uint64_t boot;

    cr_assert(data && got);
    bed_fill(data, n, 1);
    for (uint32_t at = 0; at < n; at += 1u << 20)
        cr_assert_eq(bed_write(&b, 10, at, data + at, 1u << 20, false), 0);
    cr_assert_eq(bed_write(&b, 11, 12345, data, 70000, true), 0);
    boot = b.boot;
    cr_assert_eq(bed_read(&b, 10, 0, got, n), 0);
    cr_assert_eq(b.len, n);
    cr_assert_eq(memcmp(data, got, n), 0);
    cr_assert_eq(bed_sync(&b, 10), 0);
    cr_assert_eq(b.boot, boot);
    cr_assert_eq(bed_write(&b, 12, 0, data, 100, false),
                 0); /* unstable: committed by the clean stop */
    bed_stop(&b);
    bed_start(&b, "posix");
    memset(got, 0, n);
    cr_assert_eq(bed_read(&b, 10, 0, got, n), 0);
    cr_assert_neq(b.boot, boot);
    cr_assert_eq(memcmp(data, got, n), 0);
    cr_assert_eq(bed_read(&b, 11, 0, got, 200000), 0);
    cr_assert_eq(b.len, 12345 + 70000);
    cr_assert_eq(memcmp(got + 12345, data, 70000), 0);
    for (unsigned i = 0; i < 12345; i++)
        cr_assert_eq(got[i], 0);
    cr_assert_eq(bed_read(&b, 12, 0, got, 200), 0);
    cr_assert_eq(b.len, 100);
    cr_assert_eq(memcmp(got, data, 100), 0);
    cr_assert_eq(bed_read(&b, 99, 0, got, 200), 0);
    cr_assert_eq(b.len, 0);
    cr_assert_eq(bed_sync(&b, 99), 0);
    free(data);
    free(got);
}

Test(service, truncates_and_fences)
{
    uint8_t data[100000], got[100000];

    bed_fill(data, sizeof(data), 2);
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), 0);
    cr_assert_eq(bed_trunc(&b, 1, 5, 70000), 0);
    cr_assert_eq(bed_write(&b, 1, 0, data, 10, true), HF_E_FENCED);
    cr_assert_eq(bed_trunc(&b, 2, 5, 0), 0, "a chunk that does not exist");
    bed_stop(&b);
    bed_start(&b, "posix");
    cr_assert_eq(bed_write(&b, 1, 0, data, 10, false), HF_E_FENCED);
    cr_assert_eq(bed_write(&b, 2, 0, data, 10, false), HF_E_FENCED);
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), 0);
    cr_assert_eq(b.len, 70000);
    cr_assert_eq(memcmp(data, got, 70000), 0);
}

static void on_list(const Hf__SegListRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    Hf__SegListRep **out = call->arg;
    uint8_t *packed;
    size_t n;

    cr_assert_eq(call->status, 0);
    n = hf__seg_list_rep__get_packed_size(rep);
    packed = malloc(n + 1);
    cr_assert_not_null(packed);
    hf__seg_list_rep__pack(rep, packed);
    *out = hf__seg_list_rep__unpack(NULL, n, packed);
    free(packed);
}

static Hf__SegListRep *list(uint32_t max, bool verify, const Hf__SegListRep *before)
{
    Hf__SegListReq req = HF__SEG_LIST_REQ__INIT;
    Hf__SegListRep *rep = NULL;
    struct hf_rpc_call call = {.arg = &rep};

    req.segment = 7;
    req.max = max;
    req.verify = verify;
    if (before)
        req.cursor = before->cursor;
    hf__segment__list_chunks(b.stub, &req, on_list, &call);
    cr_assert_eq(hf_rpc_wait(b.loop, &call), 0);
    cr_assert_not_null(rep);
    return rep;
}

Test(service, lists_and_deletes)
{
    enum { N = 25 };
    uint8_t data[70000];
    Hf__SegListRep *page = NULL, *next;
    uint64_t inos[N], freed = 0;
    unsigned total = 0;

    bed_fill(data, sizeof(data), 3);
    for (unsigned i = 0; i < N; i++) {
        inos[i] = 1000 - i;
        cr_assert_eq(bed_write(&b, inos[i], 0, data, 60000 + i, true), 0);
    }
    for (;; page = next) {
        next = list(10, true, page);
        if (page)
            hf__seg_list_rep__free_unpacked(page, NULL);
        if (next->n_chunks == 0)
            break;
        for (size_t i = 0; i < next->n_chunks; i++, total++) {
            cr_assert_eq(next->chunks[i]->chunk->ino, 1000 - N + 1 + total);
            cr_assert_eq(next->chunks[i]->chunk->segment, 7);
            cr_assert_eq(next->chunks[i]->len, 60000 + N - 1 - total);
            cr_assert_eq(next->chunks[i]->status, 0);
            cr_assert_geq(next->chunks[i]->allocated, 60000);
        }
    }
    hf__seg_list_rep__free_unpacked(next, NULL);
    cr_assert_eq(total, N);
    cr_assert_eq(bed_delete(&b, inos, N, &freed), 0);
    cr_assert_geq(freed, (uint64_t)N * 60000);
    cr_assert_eq(bed_delete(&b, inos, N, &freed), 0, "again");
    cr_assert_eq(bed_read(&b, inos[3], 0, data, 10), 0);
    cr_assert_eq(b.len, 0);
    page = list(0, false, NULL);
    cr_assert_eq(page->n_chunks, 0);
    hf__seg_list_rep__free_unpacked(page, NULL);
}

static void on_stat(const Hf__SegStatRep *rep, void *data)
{
    struct hf_rpc_call *call = data;

    (void)call;
    cr_assert_not_null(rep);
    cr_assert_eq(rep->n_segments, 1);
    cr_assert_eq(rep->segments[0]->id, 7);
    cr_assert_str_eq(rep->segments[0]->backend, "posix");
    cr_assert_gt(rep->segments[0]->capacity_bytes, 0);
    cr_assert_eq(rep->segments[0]->chunks, 1);
    cr_assert_gt(rep->n_counters, 5);
}

Test(service, stat)
{
    Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;
    struct hf_rpc_call call = {0};
    uint8_t data[10] = {1};

    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), true), 0);
    hf__segment__stat(b.stub, &req, on_stat, &call);
    cr_assert_eq(hf_rpc_wait(b.loop, &call), 0);
    cr_assert_eq(bed_counter(&b, "holdfast_segment_stable_writes_total"), 1);
    cr_assert_eq(bed_counter(&b, "holdfast_segment_write_bytes_total"), 10);
}

Test(service, refuses_what_does_not_fit)
{
    Hf__SegWriteReq req = HF__SEG_WRITE_REQ__INIT;
    uint32_t crcs[3] = {0};
    uint8_t data[200] = {0};
    Hf__ChunkId id;

    bed_chunk(&id, 1);
    req.crcs = crcs;
    req.n_crcs = 1;
    req.len = 100;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "no chunk");
    req.chunk = &id;
    cr_assert_eq(bed_write_req(&b, &req, data, 99), HF_E_INVAL, "bulk too short");
    cr_assert_eq(bed_write_req(&b, &req, data, 101), HF_E_INVAL, "bulk too long");
    req.n_crcs = 2;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "crcs");
    req.n_crcs = 0;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "no crcs");
    req.n_crcs = 1;
    req.offset = HF_SEG_CHUNK_BYTES - 50;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "beyond the chunk");
    req.offset = UINT32_MAX - 50;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "overflow");
    req.offset = 0;
    id.segment = 8;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_INVAL, "segment");
    cr_assert_eq(bed_counter(&b, "holdfast_segment_refused_total"), 8);
    id.segment = 7;
    cr_assert_eq(bed_write_req(&b, &req, data, 100), HF_E_CORRUPT, "wrong crc");
    cr_assert_eq(bed_counter(&b, "holdfast_segment_checksum_errors_total"), 1);
    cr_assert_eq(bed_read(&b, 1, HF_SEG_CHUNK_BYTES - 10, data, 11), HF_E_INVAL);
    cr_assert_eq(bed_read(&b, 1, 0, data, 100), 0);
    cr_assert_eq(b.len, 0, "nothing of it was stored");
    cr_assert_eq(bed_trunc(&b, 1, 0, HF_SEG_CHUNK_BYTES + 1), HF_E_INVAL);
}

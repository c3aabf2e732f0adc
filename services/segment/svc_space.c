/* SPDX-License-Identifier: Apache-2.0
 *
 * The reserve: a segment never fills its disk, since shards and logs may live on the same one. The
 * backend is asked for its free space at most every 100 ms or every 16 MiB, and what is written in
 * between counts against the last answer.
 */
#include "svc_priv.h"

#define ROOM_NS    (100 * HF_NS_PER_MS)
#define ROOM_BYTES (16u << 20)

static void look(struct segment *seg, uint64_t now_ns)
{
    struct hf_be_space sp = {0};

    seg->room_checked_ns = now_ns;
    seg->room_bytes = ROOM_BYTES;
    if (hf_plug_ops(seg->be)->space(hf_plug_handle(seg->be), &sp) || sp.capacity_bytes == 0)
        return; /* it cannot tell: its own ENOSPC will */
    if (sp.free_bytes <= seg->svc->reserve_bytes)
        seg->room_bytes = 0;
    else if (sp.free_bytes - seg->svc->reserve_bytes < ROOM_BYTES)
        seg->room_bytes = sp.free_bytes - seg->svc->reserve_bytes;
}

bool svc_has_room(struct segment *seg, uint32_t len)
{
    /* A block is written whole to a new place, and the chunk may need a header. */
    uint64_t need = (uint64_t)len + UINT64_C(2) * HF_SEG_BLOCK_BYTES;
    uint64_t now_ns;

    if (seg->svc->reserve_bytes == 0)
        return true;
    now_ns = hf_loop_now_ns(seg->svc->loop);
    if (need > seg->room_bytes || now_ns - seg->room_checked_ns > ROOM_NS)
        look(seg, now_ns);
    if (need > seg->room_bytes)
        return false;
    seg->room_bytes -= need;
    return true;
}

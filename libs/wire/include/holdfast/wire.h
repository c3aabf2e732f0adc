/* SPDX-License-Identifier: Apache-2.0
 *
 * The RPC frame: how calls and replies lie in one message. Pure functions on bytes; no I/O, no
 * memory. All integers are little-endian.
 *
 *   frame  = header (28 bytes), then `count` entries without gaps, nothing after them
 *   header = magic u32, version u16, count u16, length u32 (of the whole frame), seq u32, acked
 * u32, reserved u64 (zero) entry  = entry header (64 bytes), body (protobuf), pad, bulk (not
 * parsed)
 *
 * A transport puts 4 bytes before the frame, so the 28 bytes bring the first entry to offset 32;
 * bulk begins at a multiple of 16 from there. `pad` is the gap before the bulk, so that bulk can be
 * placed before the length of the body is known.
 *
 * seq numbers the messages of one connection and direction from 1; acked is the last seq that the
 * sender has taken from its peer. A frame with count 0 only carries acked and is not numbered.
 */
#ifndef HOLDFAST_WIRE_H
#define HOLDFAST_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"

#define HF_WIRE_MAGIC     0x43524648u /* "HFRC" */
#define HF_WIRE_VERSION   1u
#define HF_WIRE_HEADER    28u
#define HF_WIRE_ENTRY     64u
#define HF_WIRE_CALLS_MAX 64u
#define HF_WIRE_BODY_MAX  (1u << 20)
#define HF_WIRE_BULK_MAX  (4u << 20)
#define HF_WIRE_PAD_MAX   2048u
/* One call of the greatest size fits. */
#define HF_WIRE_FRAME_MAX ((5u << 20) + 4096u)

/* Entry flags: exactly one of CALL and REPLY. */
#define HF_WIRE_CALL  1u
#define HF_WIRE_REPLY 2u
#define HF_WIRE_VOID  4u /* given up before it was sent; to be skipped */

struct hf_wire_frame {
    uint32_t seq;
    uint32_t acked;
    unsigned count;
};

struct hf_wire_entry {
    uint16_t flags;
    uint16_t method;  /* index in the service's methods */
    uint32_t service; /* hf_wire_service_id */
    uint64_t id;      /* chosen by the caller, given back in the reply */
    uint64_t session;
    uint64_t sequence;
    uint32_t target;
    uint32_t slot;
    uint32_t timeout_us; /* what is left of the call's time when it is sent */
    int32_t status;      /* replies: 0 or a negative HF_E_ number */
    uint32_t body_len;
    uint32_t pad;
    uint32_t bulk_len;
};

/* Walks the entries of a frame that hf_wire_open has checked. */
struct hf_wire_reader {
    const uint8_t *pos;
    unsigned left;
};

/* crc32c of the full protobuf service name ("hf.Segment"). */
uint32_t hf_wire_service_id(const char *full_name);

/* Writes HF_WIRE_HEADER bytes; `length` is the length of the whole frame. */
void hf_wire_put_header(void *p, const struct hf_wire_frame *f, size_t length);
/* Writes HF_WIRE_ENTRY bytes. */
void hf_wire_put_entry(void *p, const struct hf_wire_entry *e);
void hf_wire_get_entry(const void *p, struct hf_wire_entry *ret);
/* The pad that a bulk of bulk_len needs after body_len bytes of an entry which begins at a multiple
 * of 16 from the first entry + `at`. */
uint32_t hf_wire_pad(size_t at, size_t body_len, size_t bulk_len);

/* Checks a whole received frame: header, each entry's lengths and flags, no bytes left over. PROTO
 * if anything is wrong, VERSION for another version; outputs are then untouched. */
int hf_wire_open(const void *data, size_t len, struct hf_wire_frame *ret,
                 struct hf_wire_reader *rd);
/* The next entry: 1, or 0 after the last. Slices point into the frame. */
int hf_wire_next(struct hf_wire_reader *rd, struct hf_wire_entry *ret, struct hf_slice *ret_body,
                 struct hf_slice *ret_bulk);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The redo of a batch, as it stands in log records:
 *
 *   u8 version (1)   u32le number of operations
 *   per operation:   u8 table (0..31), bit 7 set: delete
 *                    varint key length (1..511), for a put varint value length, key, value
 *
 * varint: 7 bits per byte, low bits first, bit 7: another one follows; at most 3 bytes.
 * No change at all: no bytes.
 */
#ifndef HF_STORE_REDO_H
#define HF_STORE_REDO_H

#include "holdfast/store.h"

#define REDO_VERSION 1
#define REDO_HEADER  5
#define REDO_OP_MAX  (1 + 2 + 3)
#define REDO_DEL     0x80

struct redo_op {
    unsigned table;
    bool del;
    struct hf_slice key, val;
};

struct redo {
    struct hf_buf buf;
    uint32_t nops;
};

/* Appends op; NOMEM. The copies of key and value in the buffer are returned in *ret_stored, valid
 * until the next add: whoever applies them is safe from a caller's slices that point into the
 * store. */
int redo_add(struct redo *r, const struct redo_op *op, struct redo_op *ret_stored);
/* Takes the last add back; mark is r->buf.len before it. */
void redo_undo(struct redo *r, size_t mark);
/* Appends to out and starts anew. */
int redo_take(struct redo *r, struct hf_buf *out);

struct redo_reader {
    const uint8_t *p, *end;
    uint32_t left;
};

/* CORRUPT, or VERSION for another version. */
int redo_read_begin(struct redo_reader *rd, struct hf_slice redo);
/* NOENT after the last operation, CORRUPT if it does not parse. */
int redo_read_next(struct redo_reader *rd, unsigned ntables, struct redo_op *ret);
/* Reads it all. */
int redo_validate(struct hf_slice redo, unsigned ntables);

#endif

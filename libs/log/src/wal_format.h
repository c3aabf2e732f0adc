/* SPDX-License-Identifier: Apache-2.0
 *
 * What the wal's files look like. All numbers little-endian.
 *
 * File: one header sector at 0, records from WAL_DATA_OFF on, 8-byte aligned.
 * Files are numbered by `seq` as they are begun, without gaps; names say nothing. A file's content
 * from an earlier life is told from the present one by seq and salt.
 *
 * Header (512 bytes, so that a disk writes it whole or not at all; all zero: a file never used):
 *    0 u8[8] magic   8 u32 format   12 u32 crc of bytes 16..511   16 u64 seq
 *   24 u64 oldest: the oldest file that was still needed when this one was begun
 *   32 u32 salt     36 u32 shards   40.. zero
 *
 * Record (48 bytes and the payload):
 *    0 u32 magic  4 u32 crc of bytes 8..47, started with the salt   8 u32 crc of the payload
 *   12 u32 len   16 u32 shard   20 u32 zero   24 u64 pos   32 u64 seq
 *   40 u64 group: file offset where the write began that this record was part of. Everything before
 * it was durable then. The salt is random and stays in the file: nobody can put bytes into a
 * payload that look like a record.
 *
 * The first record of a file is its start record (shard WAL_START): the next position of each
 * shard, u64 each; pos is the file's seq.
 */
#ifndef HF_LOG_WAL_FORMAT_H
#define HF_LOG_WAL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAL_FORMAT       1u
#define WAL_HEADER_BYTES 512u
#define WAL_DATA_OFF     4096u
#define WAL_REC_BYTES    48u
#define WAL_REC_MAGIC    0x52576648u /* "HfWR" */
#define WAL_START        0xffffffffu
#define WAL_SHARDS_MAX   65535u

struct wal_header {
    uint64_t seq, oldest;
    uint32_t salt, shards;
};

struct wal_rec {
    uint32_t shard, len, payload_crc;
    uint64_t pos, seq, group;
};

/* Bytes of a record with its padding. */
static inline size_t wal_rec_span(size_t len)
{
    return (WAL_REC_BYTES + len + 7) & ~(size_t)7;
}

void wal_header_encode(const struct wal_header *h, uint8_t out[WAL_HEADER_BYTES]);
/* NOENT: all zero. VERSION. CORRUPT. */
int wal_header_decode(const uint8_t in[WAL_HEADER_BYTES], struct wal_header *ret);

void wal_rec_encode(const struct wal_rec *r, uint32_t salt, uint8_t out[WAL_REC_BYTES]);
/* Is there a record header of this file at p (left bytes follow)? It then fits into them. */
bool wal_rec_decode(const uint8_t *p, uint64_t left, uint64_t seq, uint32_t salt,
                    struct wal_rec *ret);
bool wal_rec_payload_ok(const struct wal_rec *r, const uint8_t *payload);

#endif

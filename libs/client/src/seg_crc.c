/* SPDX-License-Identifier: Apache-2.0 */
#include "client_priv.h"
#include "holdfast/crc32c.h"

/* One crc32c per 64 KiB block of the chunk that [offset, offset + len) touches, each over the piece
 * of the data that lies in the block. The slices hold at least len bytes. Returns how many. */
unsigned crc_blocks(const struct hf_slice *data, unsigned n, uint32_t offset, uint32_t len,
                    uint32_t crcs[CHUNK_BLOCKS_MAX])
{
    unsigned blocks = 0, i = 0;
    size_t at = 0;

    while (len > 0 && i < n) {
        uint32_t left = BLOCK_BYTES - offset % BLOCK_BYTES;
        uint32_t crc = 0;

        if (left > len)
            left = len;
        offset += left;
        len -= left;
        while (left > 0 && i < n) {
            size_t take = data[i].len - at < left ? data[i].len - at : left;

            crc = hf_crc32c(crc, (const uint8_t *)data[i].data + at, take);
            at += take;
            left -= (uint32_t)take;
            if (at == data[i].len) {
                i++;
                at = 0;
            }
        }
        crcs[blocks++] = crc;
    }
    return blocks;
}

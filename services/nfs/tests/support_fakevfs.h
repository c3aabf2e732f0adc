/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for libs/vfs and libs/client behind the gateway: answers from a script, so that tests
 * of the protocol side need no file system. One per test process (the functions it replaces have no
 * room for more); Criterion runs each test in a process of its own.
 */
#ifndef HF_NFS_SUPPORT_FAKEVFS_H
#define HF_NFS_SUPPORT_FAKEVFS_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/vfs.h"

#define FAKE_FH_BYTES 37u
#define FAKE_ROOT     2u
#define FAKE_FSID     0x1122334455667788u

struct fake {
    /* the script; written before the calls it is about */
    int status; /* of every operation but getattr */
    int getattr_status;
    bool bare_errors;  /* failures come without a reply body */
    bool hold_changes; /* changes wait for fake_release */
    uint32_t dir_entries;
    uint32_t read_bytes; /* size of every file */
    bool read_zeros;     /* the middle of a read is a hole */
    uint32_t link_bytes; /* length of every symlink's target */
    bool not_ready;
    /* what came; read by fake_get */
    unsigned calls, changes, held;
    uint64_t write_crc;
    uint32_t write_len, write_stable;
    uint32_t uid, gid, ngroups;
    uint32_t readdir_max_entries, readdir_max_bytes, readdir_overhead;
    uint64_t verf;
    uint32_t how;
    bool guard;
    int64_t guard_ns;
    uint32_t name_len;
    unsigned msg_refs; /* of the read's message; 0 again when all is sent */
};

/* Runs fn under the lock that guards the script. */
void fake_set(void (*fn)(struct fake *f, void *arg), void *arg);
struct fake fake_get(void);
/* Completes the changes that are held, on the loop. */
void fake_release(void);
/* The handle of an object. */
void fake_fh(uint64_t ino, uint8_t fh[FAKE_FH_BYTES]);
/* Byte i of every file. */
static inline uint8_t fake_byte(uint64_t i)
{
    return (uint8_t)(i * 7 + (i >> 8));
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace of the torn-write test: a shared, memory-mapped file to which the recorder inside the
 * node (record.c) and the load (torn_load.c) append, so that what went to the files and what was
 * acknowledged stand in one order. A record's place is taken by one atomic addition.
 *
 * The recorder holds a lock of its process over the call and the record of it, so the order of
 * records is the order of the calls. A sync has two records, before and after.
 */
#ifndef HF_TESTS_TRACE_H
#define HF_TESTS_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_BYTES (16ull << 30) /* sparse */
#define TRACE_FIRST 64u
#define TRACE_FILE  "HF_RECORD_TRACE" /* environment: the trace */
#define TRACE_DIR   "HF_RECORD_DIR"   /* environment: only what lies below is recorded */

enum trace_kind {
    TR_NONE,       /* never: a record that was not finished */
    TR_PROCESS,    /* a process begins: it has no files open */
    TR_OPEN,       /* fd, flags in a; data: path */
    TR_CLOSE,      /* fd */
    TR_DUP,        /* fd is the copy of a */
    TR_WRITE,      /* fd, at offset a; data: the bytes */
    TR_WRITE_SYNC, /* the same through O_DSYNC: on the disk when the call returned */
    TR_TRUNCATE,   /* fd to size a */
    TR_ALLOCATE,   /* fd to size a at least */
    TR_PUNCH,      /* fd, from a, b bytes */
    TR_SYNC_BEGIN, /* fd, number a */
    TR_SYNC_END,   /* number a; b: it succeeded */
    TR_MKDIR,      /* data: path */
    TR_UNLINK,     /* data: path */
    TR_RMDIR,      /* data: path */
    TR_UNKNOWN,    /* data: a call that this recorder does not know how to describe */
    TR_MARK        /* the load's: see torn.h */
};

struct trace_head {
    atomic_uint_least64_t end;
};

struct trace_rec {
    uint32_t kind; /* stored last */
    int32_t fd;
    uint64_t a, b;
    uint64_t len; /* of data, which follows; the next record is at the next multiple of 8 */
};

static inline uint64_t trace_span(uint64_t len)
{
    return sizeof(struct trace_rec) + ((len + 7) & ~7ull);
}

#endif

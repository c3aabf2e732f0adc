/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend ABI: how a segment server stores bytes. This is the only Holdfast header that a
 * plugin includes. A plugin is a shared object that exports one symbol,
 *
 *   const struct hf_backend_ops *hf_backend_plugin(void);
 *
 *
 * A backend instance stores objects of one segment: named by 24 bytes, each a sparse sequence of
 * bytes up to HF_BE_OBJECT_MAX. What the bytes mean (checksums, headers, copy on write) is the
 * segment library's.
 *
 * Every operation is asynchronous: submit(io) returns at once and io->done(io) is called exactly
 * once, from any thread, possibly before submit returns, with io->status set (0 or a negative
 * HF_BE_E*). Operations on one object may run in any order unless the caller waits; a caller that
 * needs order waits for the completion. Reads beyond the end, or of holes, give zeros. Durability:
 * WRITE and TRUNCATE are durable after a later SYNC of the object has completed with 0; CREATE (of
 * the first WRITE) is covered by the same SYNC; DELETE is durable when it completes. A SYNC that
 * failed is final: the caller must not trust the object's unsynced bytes and must not retry.
 *
 * Versioning: struct_size and abi_major/minor come first. Fields are only appended; a loader fills
 * what an older plugin lacks with defaults and refuses another major.
 */
#ifndef HOLDFAST_BACKEND_H
#define HOLDFAST_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#define HF_BE_ABI_MAJOR  1
#define HF_BE_ABI_MINOR  0
#define HF_BE_ID_BYTES   24
#define HF_BE_OBJECT_MAX (64u << 20)

/* negative, equal to the same errors of Holdfast (err.def) */
enum {
    HF_BE_ENOENT = -2,
    HF_BE_EIO = -3,
    HF_BE_EINVAL = -11,
    HF_BE_ENOSPC = -13,
    HF_BE_ENOTSUPP = -23,
    HF_BE_ENOMEM = -40,
};

enum hf_be_op {
    HF_BE_READ = 1, /* data, len at offset; short objects read as zeros. A missing object: ENOENT */
    HF_BE_WRITE,    /* creates the object */
    HF_BE_SYNC,     /* a missing object: ENOENT */
    HF_BE_TRUNCATE, /* to offset bytes; a missing object: ENOENT */
    HF_BE_PUNCH,    /* len bytes at offset become a hole; ENOTSUPP unless HF_BE_CAP_PUNCH */
    HF_BE_DELETE, /* a missing object: 0. allocated: bytes freed, 0 if the backend does not know */
    HF_BE_STAT,   /* -> size, allocated; ENOENT */
};

struct hf_be_io {
    uint32_t op;
    uint8_t id[HF_BE_ID_BYTES];
    uint64_t offset;
    size_t len;
    void *data; /* READ: filled; WRITE: const; owned by the caller until done */
    void (*done)(struct hf_be_io *io);
    /* results */
    int32_t status;
    uint64_t size;      /* STAT */
    uint64_t allocated; /* STAT, DELETE */
    /* the backend's own while in flight */
    void *be[4];
};

enum {
    HF_BE_CAP_PERSISTENT = 1u << 0, /* objects survive close and open */
    HF_BE_CAP_PUNCH = 1u << 1,
    HF_BE_CAP_STACKED = 1u << 2, /* stands on another backend (opts->lower) */
};

struct hf_be_space {
    uint64_t capacity_bytes, free_bytes, objects;
    /* Instances of one process with an equal one, not 0, share the same space (one disk). */
    uint64_t domain;
};

struct hf_be;

struct hf_be_opts {
    uint32_t struct_size;
    const char *path; /* a directory (posix) or whatever the backend calls its place; may be NULL */
    const char *args; /* "key=value,key=value", the backend's own; may be NULL */
    uint32_t threads; /* for blocking work; 0 = the backend's choice */
    /* STACKED: the backend below, already open; the stacked one closes it. */
    const struct hf_backend_ops *lower_ops;
    struct hf_be *lower;
};

struct hf_backend_ops {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    const char *name; /* "posix" */
    uint64_t caps;
    /* Opens or creates. err: >= 256 bytes, one line. */
    int (*open)(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes);
    /* After every io has completed. */
    void (*close)(struct hf_be *be);
    void (*submit)(struct hf_be *be, struct hf_be_io *io);
    int (*space)(struct hf_be *be, struct hf_be_space *ret); /* may block briefly; any thread */
    /* Lists objects in any order that is stable while nothing changes: calls fn for each with id >
     * after (NULL: from the start) in memcmp order of id until it returns non-zero. May block. */
    int (*list)(struct hf_be *be, const uint8_t *after, int (*fn)(void *arg, const uint8_t *id),
                void *arg);
};

#endif

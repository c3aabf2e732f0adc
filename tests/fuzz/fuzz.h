/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: the input as a stream of choices, checks that are findings, messages
 * made from descriptors. Reading past the end of the input gives zeros.
 */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/arena.h"
#include "holdfast/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond, ...)                                                                      \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                             \
            fprintf(stderr, " " __VA_ARGS__);                                                      \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct fuzz {
    const uint8_t *p;
    size_t left;
};

static inline uint64_t fuzz_uint(struct fuzz *f, size_t bytes)
{
    uint64_t v = 0;

    for (size_t k = 0; k < bytes && f->left > 0; k++, f->left--)
        v |= (uint64_t)*f->p++ << (8 * k);
    return v;
}

static inline uint8_t fuzz_u8(struct fuzz *f)
{
    return (uint8_t)fuzz_uint(f, 1);
}

/* Up to len bytes of the input. */
static inline struct hf_slice fuzz_bytes(struct fuzz *f, size_t len)
{
    struct hf_slice s;

    if (len > f->left)
        len = f->left;
    s = hf_slice(f->p, len);
    f->p += len;
    f->left -= len;
    return s;
}

/* A number as interesting ones are: small, around a power of two, or anything. */
uint64_t fuzz_number(struct fuzz *f);

/* ---- protobuf ---- */

/* What fields of a message are chosen from besides the input. */
struct fuzz_pb {
    struct hf_arena *arena;
    const uint64_t *inos; /* for fixed64 fields, */
    const uint32_t *gens; /* and the fixed32 field that follows one */
    size_t ninos;
    const char *const *words; /* for bytes and strings */
    size_t nwords;
    uint32_t gen; /* private */
};

/* A message of this type with fields from the input. NULL: no memory. */
ProtobufCMessage *fuzz_pb_make(struct fuzz *f, struct fuzz_pb *pb,
                               const ProtobufCMessageDescriptor *d);
/* A message from bytes of the input, as a server gets it. NULL: it does not parse. */
ProtobufCMessage *fuzz_pb_parse(struct hf_arena *arena, const ProtobufCMessageDescriptor *d,
                                struct hf_slice packed);
/* Calls fn for m and each message in it. */
void fuzz_pb_each(const ProtobufCMessage *m, void (*fn)(void *arg, const ProtobufCMessage *m),
                  void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#define DEPTH_MAX  4u
#define REPEAT_MAX 4u
#define RAW_WORD   0xf0u /* from here on a selector means bytes of the input */

uint64_t fuzz_number(struct fuzz *f)
{
    uint8_t how = fuzz_u8(f);

    if (how < 0xa0)
        return how;
    if (how < 0xe0)
        return (UINT64_C(1) << (how & 63)) + fuzz_uint(f, 1) - 128;
    return fuzz_uint(f, 1 + (how & 7));
}

static void *arena_alloc(void *arena, size_t bytes)
{
    return hf_arena_alloc(arena, bytes);
}

static void arena_free(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

ProtobufCMessage *fuzz_pb_parse(struct hf_arena *arena, const ProtobufCMessageDescriptor *d,
                                struct hf_slice packed)
{
    ProtobufCAllocator a = {arena_alloc, arena_free, arena};

    return protobuf_c_message_unpack(d, &a, packed.len, packed.data);
}

static struct hf_slice word(struct fuzz *f, const struct fuzz_pb *pb)
{
    uint8_t how = fuzz_u8(f);

    if (how < RAW_WORD && pb->nwords > 0)
        return hf_slice_str(pb->words[how % pb->nwords]);
    return fuzz_bytes(f, fuzz_uint(f, how == 0xff ? 2 : 1));
}

static uint64_t fixed64(struct fuzz *f, struct fuzz_pb *pb)
{
    uint8_t how = fuzz_u8(f);

    if (how >= RAW_WORD || pb->ninos == 0)
        return fuzz_uint(f, 8);
    pb->gen = pb->gens[how % pb->ninos];
    return pb->inos[how % pb->ninos];
}

static ProtobufCMessage *make(struct fuzz *f, struct fuzz_pb *pb,
                              const ProtobufCMessageDescriptor *d, unsigned depth);

static bool value(struct fuzz *f, struct fuzz_pb *pb, const ProtobufCFieldDescriptor *fd,
                  unsigned depth, void *out)
{
    struct hf_slice w;

    switch (fd->type) {
    case PROTOBUF_C_TYPE_FIXED64:
        *(uint64_t *)out = fixed64(f, pb);
        return true;
    case PROTOBUF_C_TYPE_FIXED32:
        *(uint32_t *)out = pb->ninos && fuzz_u8(f) < RAW_WORD ? pb->gen : (uint32_t)fuzz_uint(f, 4);
        return true;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        *(uint64_t *)out = fuzz_number(f);
        return true;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)out = fuzz_u8(f) & 1;
        return true;
    case PROTOBUF_C_TYPE_BYTES:
        w = word(f, pb);
        ((ProtobufCBinaryData *)out)->len = w.len;
        ((ProtobufCBinaryData *)out)->data = hf_arena_dup(pb->arena, w.data, w.len);
        return ((ProtobufCBinaryData *)out)->data != NULL;
    case PROTOBUF_C_TYPE_STRING: {
        char *s;

        w = word(f, pb);
        s = hf_arena_zalloc(pb->arena, w.len + 1);
        if (s && w.len)
            memcpy(s, w.data, w.len);
        *(char **)out = s;
        return s != NULL;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)out = make(f, pb, fd->descriptor, depth + 1);
        return *(ProtobufCMessage **)out != NULL;
    default: /* 32 bits */
        *(uint32_t *)out = (uint32_t)fuzz_number(f);
        return true;
    }
}

static size_t value_bytes(const ProtobufCFieldDescriptor *fd)
{
    switch (fd->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

static bool repeated(struct fuzz *f, struct fuzz_pb *pb, const ProtobufCFieldDescriptor *fd,
                     unsigned depth, uint8_t *m)
{
    size_t n = fuzz_u8(f) % (REPEAT_MAX + 1), each = value_bytes(fd);
    uint8_t *all;

    if (n == 0)
        return true;
    all = hf_arena_zalloc(pb->arena, n * each);
    for (size_t k = 0; all && k < n; k++) {
        if (!value(f, pb, fd, depth, all + k * each))
            return false;
    }
    *(size_t *)(void *)(m + fd->quantifier_offset) = n;
    *(void **)(void *)(m + fd->offset) = all;
    return all != NULL;
}

static ProtobufCMessage *make(struct fuzz *f, struct fuzz_pb *pb,
                              const ProtobufCMessageDescriptor *d, unsigned depth)
{
    uint8_t *m = hf_arena_zalloc(pb->arena, d->sizeof_message);

    if (!m)
        return NULL;
    d->message_init((ProtobufCMessage *)(void *)m);
    for (unsigned k = 0; k < d->n_fields; k++) {
        const ProtobufCFieldDescriptor *fd = &d->fields[k];

        if (fd->label == PROTOBUF_C_LABEL_REPEATED) {
            if (!repeated(f, pb, fd, depth, m))
                return NULL;
            continue;
        }
        /* A message is left out now and then; and always when they nest too deep. */
        if (fd->type == PROTOBUF_C_TYPE_MESSAGE && (depth >= DEPTH_MAX || fuzz_u8(f) >= RAW_WORD))
            continue;
        if (!value(f, pb, fd, depth, m + fd->offset))
            return NULL;
    }
    return (ProtobufCMessage *)(void *)m;
}

ProtobufCMessage *fuzz_pb_make(struct fuzz *f, struct fuzz_pb *pb,
                               const ProtobufCMessageDescriptor *d)
{
    return make(f, pb, d, 0);
}

void fuzz_pb_each(const ProtobufCMessage *m, void (*fn)(void *arg, const ProtobufCMessage *m),
                  void *arg)
{
    const uint8_t *base = (const uint8_t *)m;

    fn(arg, m);
    for (unsigned k = 0; k < m->descriptor->n_fields; k++) {
        const ProtobufCFieldDescriptor *fd = &m->descriptor->fields[k];
        const void *at = base + fd->offset;

        if (fd->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (fd->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(const void *)(base + fd->quantifier_offset);
            ProtobufCMessage *const *all = *(ProtobufCMessage *const *const *)at;

            for (size_t j = 0; j < n; j++)
                fuzz_pb_each(all[j], fn, arg);
        } else if (*(ProtobufCMessage *const *)at) {
            fuzz_pb_each(*(ProtobufCMessage *const *)at, fn, arg);
        }
    }
}

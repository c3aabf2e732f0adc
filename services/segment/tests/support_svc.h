/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment service and a client to it.
 */
#ifndef HF_SVC_SEGMENT_SUPPORT_H
#define HF_SVC_SEGMENT_SUPPORT_H

#include "holdfast/rpc.h"
#include "holdfast/svc_segment.h"
#include "holdfast/wire/segment.pb-c.h"

struct bed {
    char dir[256];
    const char *url;
    struct hf_env *env;
    struct hf_segsvc *svc;
    struct hf_loop *loop; /* the client's */
    struct hf_rpc_client *client;
    ProtobufCService *stub;
    struct hf_segsvc_segment segment;
    struct hf_faults *faults; /* owned by the test */
    uint64_t boot;            /* of the last answer */
    uint32_t len;             /* of the last read */
};

void bed_make(struct bed *b);
void bed_remove(struct bed *b);
void bed_start(struct bed *b, const char *spec);
void bed_stop(struct bed *b);
uint64_t bed_counter(struct bed *b, const char *name);

void bed_chunk(Hf__ChunkId *id, uint64_t ino);
int bed_write(struct bed *b, uint64_t ino, uint32_t offset, const void *data, uint32_t len,
              bool stable);
/* Checks the crcs of the reply; bytes behind b->len are zeroed. */
int bed_read(struct bed *b, uint64_t ino, uint32_t offset, void *data, uint32_t len);
int bed_sync(struct bed *b, uint64_t ino);
int bed_trunc(struct bed *b, uint64_t ino, uint32_t fence, uint32_t len);
int bed_delete(struct bed *b, const uint64_t *inos, size_t n, uint64_t *ret_freed);
/* Any request. */
int bed_write_req(struct bed *b, const Hf__SegWriteReq *req, const void *data, size_t len);
void bed_fill(void *data, size_t len, unsigned seed);

#endif

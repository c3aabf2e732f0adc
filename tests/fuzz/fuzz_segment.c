/* SPDX-License-Identifier: Apache-2.0
 *
 * The segment service with its backend in memory, in simulated time: calls with bodies made field
 * by field or parsed from bytes. Every call is answered once.
 */
#include "fuzz.h"

#include <dlfcn.h>
#include <ftw.h>
#include <unistd.h>

#include "holdfast/crc32c.h"
#include "holdfast/err.h"
#include "holdfast/segment.h"
#include "holdfast/svc_segment.h"
#include "holdfast/wire/segment.pb-c.h"

#define CALLS_MAX 24u

struct bed {
    char dir[64];
    struct hf_env *env;
    struct hf_segsvc *svc;
    struct hf_loop *loop;
    struct hf_rpc_client *client;
    ProtobufCService *stub;
    struct hf_arena arena;
    struct hf_rpc_call calls[CALLS_MAX];
    unsigned ncalls, answered;
};

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void bed_open(struct bed *b)
{
    static const char *const url = "sim://segment";
    static char spec[] = "mem";
    struct hf_segsvc_segment seg = {.id = 1, .spec = spec};
    char err[512] = "";
    struct hf_segsvc_opts o = {.dir = b->dir,
                               .plugin_dir = FUZZ_PLUGIN_DIR,
                               .segments = &seg,
                               .nsegments = 1,
                               .listen = &url,
                               .nlisten = 1};

    /* libFuzzer counts in the plugin's memory: it must stay when the service lets go of it. */
    FUZZ_CHECK(dlopen(FUZZ_PLUGIN_DIR "/backend-mem.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    snprintf(b->dir, sizeof(b->dir), "%s/hf-fuzz-seg-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(b->dir));
    FUZZ_CHECK(hf_env_sim_new(1, 0, &b->env) == 0);
    o.env = b->env;
    FUZZ_CHECK(hf_segsvc_new(&o, &b->svc, err, sizeof(err)) == 0, "%s", err);
    FUZZ_CHECK(hf_loop_new(b->env, "client", &b->loop) == 0);
    FUZZ_CHECK(hf_rpc_client_new(b->loop, url, NULL, &b->client) == 0);
    b->stub = hf_rpc_client_service(b->client, &hf__segment__descriptor);
    hf_arena_init(&b->arena, 0);
}

static void bed_close(struct bed *b)
{
    hf_rpc_client_free(b->client);
    hf_loop_free(b->loop);
    hf_segsvc_free(b->svc);
    hf_env_free(b->env);
    hf_arena_fini(&b->arena);
    nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void on_reply(const ProtobufCMessage *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct bed *b = call->arg;

    b->answered++;
    FUZZ_CHECK(call->status <= 0 && (call->status || rep));
    FUZZ_CHECK(call->status != HF_E_IO && call->status != HF_E_TIMEDOUT, "%s",
               hf_err_name(call->status));
}

/* Makes a write one that the service takes. */
static void fit(struct bed *b, Hf__SegWriteReq *q, struct hf_slice bulk)
{
    const uint8_t *p = bulk.data;
    uint32_t at = q->offset % HF_SEG_CHUNK_BYTES, end;

    if (bulk.len > HF_SEG_CHUNK_BYTES - at)
        at = 0;
    q->offset = at;
    q->len = (uint32_t)bulk.len;
    q->n_crcs = hf_seg_ncrcs(q->offset, q->len);
    q->crcs = hf_arena_zalloc(&b->arena, (q->n_crcs + 1) * sizeof(uint32_t));
    FUZZ_CHECK(q->crcs);
    end = at + q->len;
    for (size_t k = 0; at < end; k++) {
        uint32_t n = HF_SEG_BLOCK_BYTES - at % HF_SEG_BLOCK_BYTES;

        n = n < end - at ? n : end - at;
        q->crcs[k] = hf_crc32c(0, p, n);
        p += n;
        at += n;
    }
}

/* Most calls are about few chunks of the segment that exists. */
static void aim(void *arg, const ProtobufCMessage *m)
{
    Hf__ChunkId *id = (Hf__ChunkId *)(uintptr_t)m;

    (void)arg;
    if (m->descriptor != &hf__chunk_id__descriptor || id->segment > 0xe0)
        return;
    id->segment = 1;
    id->index &= 1;
    id->gen = 1;
    id->ino &= 1;
}

static void call_one(struct bed *b, struct fuzz *f)
{
    struct fuzz_pb pb = {.arena = &b->arena};
    unsigned method = fuzz_u8(f) % b->stub->descriptor->n_methods;
    const ProtobufCMessageDescriptor *d = b->stub->descriptor->methods[method].input;
    uint8_t how = fuzz_u8(f);
    struct hf_rpc_call *call = &b->calls[b->ncalls];
    ProtobufCMessage *q;

    if (how & 1)
        q = fuzz_pb_parse(&b->arena, d, fuzz_bytes(f, fuzz_uint(f, 1)));
    else
        q = fuzz_pb_make(f, &pb, d);
    if (!q)
        return;
    if (how & 2)
        fuzz_pb_each(q, aim, NULL);
    *call = (struct hf_rpc_call){.arg = b};
    call->bulk[0] = fuzz_bytes(f, how & 4 ? fuzz_uint(f, how & 8 ? 2 : 1) : 0);
    call->bulk_n = call->bulk[0].len ? 1 : 0;
    if (d == &hf__seg_write_req__descriptor && (how & 16))
        fit(b, (Hf__SegWriteReq *)(void *)q, call->bulk[0]);
    b->ncalls++;
    b->stub->invoke(b->stub, method, q, on_reply, call);
    if (how & 32)
        (void)hf_sim_run(b->env, hf_env_mono_ns(b->env) + HF_NS_PER_SEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {data, size};
    static struct bed b;

    memset(&b, 0, sizeof(b));
    bed_open(&b);
    while (b.ncalls < CALLS_MAX && f.left > 0)
        call_one(&b, &f);
    for (unsigned k = 0; b.answered < b.ncalls && k < 70; k++)
        (void)hf_sim_run(b.env, hf_env_mono_ns(b.env) + HF_NS_PER_SEC);
    FUZZ_CHECK(b.answered == b.ncalls, "%u of %u", b.answered, b.ncalls);
    bed_close(&b);
    return 0;
}

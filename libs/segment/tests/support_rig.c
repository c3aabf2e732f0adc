/* SPDX-License-Identifier: Apache-2.0 */
#include "support_rig.h"

#include <criterion/criterion.h>
#include <string.h>

#include "holdfast/crc32c.h"
#include "holdfast/err.h"

static void on_error(void *arg, const struct hf_chunk_id *id, uint32_t block, int err,
                     const char *what)
{
    struct rig *r = arg;

    (void)id;
    (void)block;
    cr_assert_not_null(what);
    if (err == HF_E_CORRUPT)
        r->corrupt++;
    else
        r->errors++;
}

void rig_open(struct rig *r, struct disk *d, uint64_t seed, bool auto_run)
{
    struct hf_seg_opts o;

    r->rng = seed;
    r->disk = d;
    r->closed = false;
    r->errors = r->corrupt = 0;
    cr_assert_eq(hf_env_sim_new(seed, 0, &r->env), 0);
    cr_assert_eq(hf_loop_new(r->env, "seg", &r->loop), 0);
    r->be = disk_open(d, auto_run);
    o = (struct hf_seg_opts){.id = 1,
                             .loop = r->loop,
                             .backend = r->be,
                             .cache_chunks = r->cache_chunks,
                             .writeback_ms = r->writeback_ms,
                             .faults = r->faults,
                             .on_error = on_error,
                             .arg = r};
    cr_assert_eq(hf_seg_open(&o, &r->seg), 0);
}

void rig_run(struct rig *r, const bool *done)
{
    for (unsigned i = 0; i < 1000000; i++) {
        bool any = disk_step(r->be, &r->rng);

        if (*done)
            return;
        if (!hf_sim_step(r->env) && !any)
            return;
    }
    cr_assert_fail("does not come to an end");
}

void rig_sleep(struct rig *r, uint64_t ms)
{
    uint64_t until = hf_env_mono_ns(r->env) + ms * HF_NS_PER_MS;
    bool any = true;

    while (any) {
        (void)hf_sim_run(r->env, until);
        any = disk_step(r->be, &r->rng);
    }
}

static void closed(void *arg)
{
    ((struct rig *)arg)->closed = true;
}

void rig_close(struct rig *r)
{
    hf_seg_close(r->seg, closed, r);
    rig_run(r, &r->closed);
    cr_assert(r->closed);
    hf_loop_free(r->loop);
    hf_env_free(r->env);
    hf_plug_close(r->be);
}

void rig_kill(struct rig *r)
{
    disk_kill(r->be);
    rig_close(r);
}

struct hf_chunk_id rig_chunk(uint64_t ino)
{
    return (struct hf_chunk_id){.ino = ino, .index = 3, .gen = 9};
}

static void op_done(struct hf_seg_op *op)
{
    *(bool *)op->arg = true;
}

void rig_submit(struct rig *r, struct rig_op *o)
{
    o->done = false;
    if (!o->op.crcs)
        o->op.crcs = o->crcs;
    if (!o->op.done) {
        o->op.done = op_done;
        o->op.arg = &o->done;
    }
    hf_seg_submit(r->seg, &o->op);
}

static void pieces(const struct rig_op *o, uint32_t len, uint32_t *crcs)
{
    uint32_t at = o->op.offset, end = o->op.offset + len;
    const uint8_t *p = o->op.data;

    for (unsigned i = 0; at < end; i++) {
        uint32_t n = HF_SEG_BLOCK_BYTES - at % HF_SEG_BLOCK_BYTES;

        n = n < end - at ? n : end - at;
        crcs[i] = hf_crc32c(0, p, n);
        p += n;
        at += n;
    }
}

void rig_crcs(struct rig_op *o)
{
    pieces(o, o->op.len, o->crcs);
}

void rig_check_crcs(const struct rig_op *o)
{
    uint32_t want[HF_SEG_BLOCKS];

    pieces(o, o->op.len_done, want);
    cr_assert_eq(memcmp(want, o->op.crcs, hf_seg_ncrcs(o->op.offset, o->op.len_done) * 4u), 0);
}

static int run(struct rig *r, struct rig_op *o)
{
    rig_submit(r, o);
    cr_assert(!o->done, "done is never called from inside submit");
    rig_run(r, &o->done);
    cr_assert(o->done);
    return o->op.status;
}

int rig_write(struct rig *r, uint64_t ino, uint32_t offset, const void *data, uint32_t len,
              bool stable)
{
    struct rig_op o = {
        .op = {.kind = HF_SEG_WRITE, .offset = offset, .len = len, .stable = stable}};
    const void *d = data;

    o.op.id = rig_chunk(ino);
    memcpy(&o.op.data, &d, sizeof(d));
    o.op.fence = 1;
    rig_crcs(&o);
    return run(r, &o);
}

int rig_read(struct rig *r, uint64_t ino, uint32_t offset, void *data, uint32_t len,
             uint32_t *ret_len)
{
    struct rig_op o = {.op = {.kind = HF_SEG_READ, .offset = offset, .len = len, .data = data}};
    int rc;

    o.op.id = rig_chunk(ino);
    rc = run(r, &o);
    if (rc == 0)
        rig_check_crcs(&o);
    if (ret_len)
        *ret_len = o.op.len_done;
    return rc;
}

int rig_sync(struct rig *r, uint64_t ino)
{
    struct rig_op o = {.op = {.kind = HF_SEG_SYNC}};

    o.op.id = rig_chunk(ino);
    return run(r, &o);
}

int rig_trunc(struct rig *r, uint64_t ino, uint32_t fence, uint32_t len)
{
    struct rig_op o = {.op = {.kind = HF_SEG_TRUNC, .fence = fence, .len = len}};

    o.op.id = rig_chunk(ino);
    return run(r, &o);
}

int rig_punch(struct rig *r, uint64_t ino, uint32_t fence, uint32_t offset, uint32_t len)
{
    struct rig_op o = {.op = {.kind = HF_SEG_PUNCH, .fence = fence, .offset = offset, .len = len}};

    o.op.id = rig_chunk(ino);
    return run(r, &o);
}

int rig_seek(struct rig *r, uint64_t ino, uint32_t offset, uint32_t len, bool hole, bool *ret_found,
             uint32_t *ret_at)
{
    struct rig_op o = {.op = {.kind = HF_SEG_SEEK, .offset = offset, .len = len, .hole = hole}};
    int rc;

    o.op.id = rig_chunk(ino);
    rc = run(r, &o);
    *ret_found = o.op.found;
    *ret_at = o.op.found_at;
    return rc;
}

int rig_delete(struct rig *r, uint64_t ino, uint64_t *ret_freed)
{
    struct rig_op o = {.op = {.kind = HF_SEG_DELETE}};
    int rc;

    o.op.id = rig_chunk(ino);
    rc = run(r, &o);
    if (ret_freed)
        *ret_freed = o.op.freed;
    return rc;
}

void rig_fill(void *data, size_t len, uint64_t seed)
{
    uint8_t *p = data;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t v = disk_rand(&seed);

        memcpy(p + i, &v, len - i < 8 ? len - i : 8);
    }
}

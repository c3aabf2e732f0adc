/* SPDX-License-Identifier: Apache-2.0
 *
 * The set-up phase's calls: one at a time on slot 0 of a connection.
 */
#include "bench.h"

#include <event2/event.h>

#include "holdfast/err.h"

#define REPLY_KEEP 512u
#define SYNC_SEC   30

bool bn_get_fh(struct bn_reply *r, struct bn_fh *ret)
{
    uint32_t len;

    if (!bn_get_u32(r, &len) || len == 0 || len > BN_FH_MAX || r->len < len) {
        return false;
    }
    ret->len = len;
    memcpy(ret->data, r->body, len);
    return bn_skip(r, len + (4 - len % 4) % 4);
}

bool bn_skip_attr(struct bn_reply *r)
{
    uint32_t follows;

    return bn_get_u32(r, &follows) && (follows == 0 || bn_skip(r, 84));
}

bool bn_get_opt_fh(struct bn_reply *r, struct bn_fh *ret)
{
    uint32_t follows;

    return bn_get_u32(r, &follows) && follows == 1 && bn_get_fh(r, ret);
}

struct sync_call {
    bool done;
    struct bn_reply r;
    uint8_t keep[REPLY_KEEP];
};

static void sync_done(struct bn_slot *slot, const struct bn_reply *r)
{
    struct sync_call *call = slot->arg;

    call->done = true;
    call->r = *r;
    call->r.len = r->len < REPLY_KEEP ? r->len : REPLY_KEEP;
    if (call->r.len > 0) {
        memcpy(call->keep, r->body, call->r.len);
    }
    call->r.body = call->keep;
}

static void sync_begin(struct bn_conn *c, struct sync_call *call, enum bn_prog prog, uint32_t proc)
{
    memset(call, 0, sizeof(*call));
    c->slots[0].done = sync_done;
    c->slots[0].arg = call;
    bn_req_begin(c, &c->slots[0], prog, proc);
}

static int sync_end(struct bn_conn *c, struct sync_call *call, const uint8_t *ext, size_t ext_len)
{
    uint64_t deadline = bn_now_ns() + SYNC_SEC * 1000000000ull;

    bn_req_end(c, ext, ext_len);
    /* the run's ticker wakes the loop, so the deadline is seen without an answer too */
    while (!call->done && !c->dead && bn_now_ns() < deadline) {
        if (event_base_loop(c->base, EVLOOP_ONCE) < 0) {
            return HF_E_IO;
        }
    }
    if (!call->done) {
        c->slots[0].busy = false;
        return HF_E_TIMEDOUT;
    }
    if (c->dead) {
        return HF_E_CONNRESET;
    }
    return call->r.ok_rpc ? (int)call->r.status : HF_E_PROTO;
}

int bn_sync_mount(struct event_base *base, const struct bn_opts *o, struct bn_fh *ret)
{
    struct bn_conn c;
    struct sync_call call;
    int rc = bn_conn_open(base, o->host, o->mount_port, 1, o->uid, o->gid, &c);

    if (rc != 0) {
        return rc;
    }
    sync_begin(&c, &call, BN_PROG_MOUNT, 1);
    bn_put_name(&c, o->export_path);
    rc = sync_end(&c, &call, NULL, 0);
    if (rc == 0 && !bn_get_fh(&call.r, ret)) {
        rc = HF_E_PROTO;
    }
    bn_conn_close(&c);
    return rc;
}

int bn_sync_lookup(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret)
{
    struct sync_call call;
    int rc;

    sync_begin(c, &call, BN_PROG_NFS, BN_LOOKUP);
    bn_put_fh(c, dir);
    bn_put_name(c, name);
    rc = sync_end(c, &call, NULL, 0);
    return rc == 0 && !bn_get_fh(&call.r, ret) ? HF_E_PROTO : rc;
}

/* What CREATE, MKDIR and SYMLINK answer: the handle, or it must be looked up. */
static int made(struct bn_conn *c, struct sync_call *call, int rc, const struct bn_fh *dir,
                const char *name, struct bn_fh *ret)
{
    if (rc != 0) {
        return rc;
    }
    return bn_get_opt_fh(&call->r, ret) ? 0 : bn_sync_lookup(c, dir, name, ret);
}

int bn_sync_mkdir(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret)
{
    struct sync_call call;

    sync_begin(c, &call, BN_PROG_NFS, BN_MKDIR);
    bn_put_fh(c, dir);
    bn_put_name(c, name);
    bn_put_sattr(c, true, 0755, 0);
    return made(c, &call, sync_end(c, &call, NULL, 0), dir, name, ret);
}

int bn_sync_create(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret)
{
    struct sync_call call;

    sync_begin(c, &call, BN_PROG_NFS, BN_CREATE);
    bn_put_fh(c, dir);
    bn_put_name(c, name);
    bn_put_u32(c, 0); /* UNCHECKED */
    bn_put_sattr(c, true, 0644, 0);
    return made(c, &call, sync_end(c, &call, NULL, 0), dir, name, ret);
}

int bn_sync_symlink(struct bn_conn *c, const struct bn_fh *dir, const char *name,
                    const char *target, struct bn_fh *ret)
{
    struct sync_call call;

    sync_begin(c, &call, BN_PROG_NFS, BN_SYMLINK);
    bn_put_fh(c, dir);
    bn_put_name(c, name);
    bn_put_sattr(c, true, 0777, 0);
    bn_put_name(c, target);
    return made(c, &call, sync_end(c, &call, NULL, 0), dir, name, ret);
}

int bn_sync_remove(struct bn_conn *c, const struct bn_fh *dir, const char *name, bool is_dir)
{
    struct sync_call call;

    sync_begin(c, &call, BN_PROG_NFS, is_dir ? BN_RMDIR : BN_REMOVE);
    bn_put_fh(c, dir);
    bn_put_name(c, name);
    return sync_end(c, &call, NULL, 0);
}

int bn_sync_write(struct bn_conn *c, const struct bn_fh *fh, uint64_t off, const uint8_t *data,
                  uint32_t len)
{
    struct sync_call call;
    uint32_t count;
    int rc;

    sync_begin(c, &call, BN_PROG_NFS, BN_WRITE);
    bn_put_fh(c, fh);
    bn_put_u64(c, off);
    bn_put_u32(c, len);
    bn_put_u32(c, 0);
    bn_put_u32(c, len);
    rc = sync_end(c, &call, data, len);
    if (rc != 0) {
        return rc;
    }
    /* wcc_data: pre_op_attr (24 bytes if present), post_op_attr */
    if (!bn_get_u32(&call.r, &count) || (count != 0 && !bn_skip(&call.r, 24)) ||
        !bn_skip_attr(&call.r) || !bn_get_u32(&call.r, &count)) {
        return HF_E_PROTO;
    }
    return count == len ? 0 : HF_E_IO;
}

int bn_sync_commit(struct bn_conn *c, const struct bn_fh *fh)
{
    struct sync_call call;

    sync_begin(c, &call, BN_PROG_NFS, BN_COMMIT);
    bn_put_fh(c, fh);
    bn_put_u64(c, 0);
    bn_put_u32(c, 0);
    return sync_end(c, &call, NULL, 0);
}

int bn_sync_fsinfo(struct bn_conn *c, const struct bn_fh *fh, uint32_t *ret_rtmax,
                   uint32_t *ret_wtmax)
{
    struct sync_call call;
    uint32_t rtmax, wtmax;
    int rc;

    sync_begin(c, &call, BN_PROG_NFS, BN_FSINFO);
    bn_put_fh(c, fh);
    rc = sync_end(c, &call, NULL, 0);
    if (rc != 0) {
        return rc;
    }
    if (!bn_skip_attr(&call.r) || !bn_get_u32(&call.r, &rtmax) || !bn_skip(&call.r, 8) ||
        !bn_get_u32(&call.r, &wtmax)) {
        return HF_E_PROTO;
    }
    *ret_rtmax = rtmax;
    *ret_wtmax = wtmax;
    return 0;
}

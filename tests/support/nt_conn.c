/* SPDX-License-Identifier: Apache-2.0
 *
 * Synchronous procedure calls over libnfs' raw interface. libnfs frees a result when the callback
 * returns, so callbacks copy what tests look at into c->r.
 */
#include "nt_priv.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 60000

static int turn(struct nt *c, int ms)
{
    struct pollfd p = {.fd = rpc_get_fd(c->rpc), .events = (short)rpc_which_events(c->rpc)};

    if (poll(&p, 1, ms) < 0) {
        return -1;
    }
    return rpc_service(c->rpc, p.revents);
}

static bool wait_done(struct nt *c)
{
    uint64_t deadline = nt_now_ns() + CALL_MS * 1000000ull;

    while (!c->done && nt_now_ns() < deadline) {
        if (turn(c, 100) < 0) {
            break;
        }
    }
    return c->done && c->rpc_status == RPC_STATUS_SUCCESS;
}

/* ---- connecting ---- */

static void connect_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;

    (void)rpc;
    (void)data;
    c->done = true;
    c->rpc_status = status;
}

struct nt *nt_try_open(const struct nt_node *n, int port)
{
    struct nt *c = calloc(1, sizeof(*c));

    (void)n;
    c->rpc = rpc_init_context();
    c->data = malloc(NT_IO_MAX + 4096);
    if (rpc_connect_async(c->rpc, "127.0.0.1", port, connect_cb, c) != 0 || !wait_done(c)) {
        nt_close(c);
        return NULL;
    }
    return c;
}

struct nt *nt_open(const struct nt_node *n, uint32_t uid, uint32_t gid, unsigned ngroups,
                   const uint32_t *groups)
{
    struct nt *c = nt_try_open(n, n->port);
    uint32_t copy[16] = {0};

    if (c == NULL) {
        nt_fail(__FILE__, __LINE__, "cannot connect to port %d", n->port);
    }
    if (ngroups > 0) {
        memcpy(copy, groups, ngroups * sizeof(copy[0]));
    }
    rpc_set_auth(c->rpc, libnfs_authunix_create("hf-test", uid, gid, ngroups, copy));
    return c;
}

void nt_close(struct nt *c)
{
    if (c != NULL) {
        rpc_destroy_context(c->rpc);
        free(c->data);
        free(c->entries);
        free(c);
    }
}

/* ---- the common course of a call ---- */

void nt_p_start(struct nt *c)
{
    c->done = false; /* c->r stays until the reply: arguments may point into it */
}

uint32_t nt_p_finish(struct nt *c, int queued, const char *what)
{
    if (queued != 0 || !wait_done(c)) {
        if (c->tolerant) {
            return NT_NO_REPLY;
        }
        nt_fail(__FILE__, __LINE__, "%s: no reply (%s)", what, rpc_get_error(c->rpc));
    }
    return c->r.status;
}

/* The callback of every procedure starts with this; false: there is no result. */
bool nt_p_got(struct nt *c, int status)
{
    c->done = true;
    c->rpc_status = status;
    memset(&c->r, 0, sizeof(c->r));
    return status == RPC_STATUS_SUCCESS;
}

nfs_fh3 nt_p_fh_arg(const struct nt_fh *fh)
{
    nfs_fh3 a;

    a.data.data_len = fh->len;
    a.data.data_val = (char *)(uintptr_t)fh->data;
    return a;
}

diropargs3 nt_p_name_arg(const struct nt_fh *dir, const char *name)
{
    diropargs3 a = {.dir = nt_p_fh_arg(dir), .name = (char *)(uintptr_t)name};

    return a;
}

void nt_p_copy_fh(struct nt_fh *to, const nfs_fh3 *from)
{
    to->len = from->data.data_len <= NT_FH_MAX ? from->data.data_len : NT_FH_MAX;
    memcpy(to->data, from->data.data_val, to->len);
}

void nt_p_copy_attr(bool *have, fattr3 *to, const post_op_attr *from)
{
    *have = from->attributes_follow != 0;
    if (*have) {
        *to = from->post_op_attr_u.attributes;
    }
}

void nt_p_copy_wcc(struct nt_wcc *to, const wcc_data *from)
{
    to->have_before = from->before.attributes_follow != 0;
    if (to->have_before) {
        to->before = from->before.pre_op_attr_u.attributes;
    }
    nt_p_copy_attr(&to->have_after, &to->after, &from->after);
}

void nt_p_copy_new(struct nt_res *r, const post_op_fh3 *fh, const post_op_attr *attr)
{
    r->have_fh = fh->handle_follows != 0;
    if (r->have_fh) {
        nt_p_copy_fh(&r->fh, &fh->post_op_fh3_u.handle);
    }
    nt_p_copy_attr(&r->have_attr, &r->attr, attr);
}

sattr3 nt_p_sattr_arg(const struct nt_set *s)
{
    sattr3 a;

    memset(&a, 0, sizeof(a));
    if (s == NULL) {
        return a;
    }
    a.mode.set_it = s->mode != NT_KEEP;
    a.mode.set_mode3_u.mode = s->mode;
    a.uid.set_it = s->uid != NT_KEEP;
    a.uid.set_uid3_u.uid = s->uid;
    a.gid.set_it = s->gid != NT_KEEP;
    a.gid.set_gid3_u.gid = s->gid;
    a.size.set_it = s->set_size;
    a.size.set_size3_u.size = s->size;
    a.atime.set_it = (time_how)s->atime_how;
    a.atime.set_atime_u.atime = s->atime;
    a.mtime.set_it = (time_how)s->mtime_how;
    a.mtime.set_mtime_u.mtime = s->mtime;
    return a;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nt_priv.h"

#define WINDOW    200
#define STALL_SEC 60

struct flight {
    unsigned in_flight, done;
    uint32_t bad;
};

/* Every result begins with its status. */
static void answered(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct flight *f = arg;
    uint32_t st = NT_NO_REPLY;

    (void)rpc;
    f->in_flight--;
    f->done++;
    if (status == RPC_STATUS_SUCCESS) {
        memcpy(&st, data, sizeof(st));
    }
    if (f->bad == NFS3_OK) {
        f->bad = st;
    }
}

static int submit(struct nt *c, struct flight *f, enum cs_op op, const struct nt_fh *dir,
                  const struct nt_fh *obj, const char *name)
{
    static const struct nt_set set = {.mode = 0644, .uid = NT_KEEP, .gid = NT_KEEP};
    diropargs3 where = nt_p_name_arg(dir, name);

    switch (op) {
    case CS_CREATE: {
        CREATE3args a;

        memset(&a, 0, sizeof(a));
        a.where = where;
        a.how.mode = GUARDED;
        a.how.createhow3_u.obj_attributes = nt_p_sattr_arg(&set);
        return rpc_nfs3_create_async(c->rpc, answered, &a, f);
    }
    case CS_REMOVE: {
        REMOVE3args a = {.object = where};

        return rpc_nfs3_remove_async(c->rpc, answered, &a, f);
    }
    case CS_LINK: {
        LINK3args a = {.file = nt_p_fh_arg(obj), .link = where};

        return rpc_nfs3_link_async(c->rpc, answered, &a, f);
    }
    case CS_READ: {
        READ3args a = {.file = nt_p_fh_arg(obj), .offset = 0, .count = 1};

        return rpc_nfs3_read_async(c->rpc, answered, &a, f);
    }
    }
    return -1;
}

uint32_t cs_many(struct nt *c, enum cs_op op, const struct nt_fh *dir, const struct nt_fh *obj,
                 const char *prefix, unsigned from, unsigned to)
{
    struct flight *f = calloc(1, sizeof(*f)); /* late replies of a stalled connection find it */
    uint64_t deadline = cs_after(STALL_SEC);
    unsigned next = from, seen = 0;
    uint32_t rc;

    while (f->done < to - from && f->bad == NFS3_OK) {
        struct pollfd p;

        while (next < to && f->in_flight < WINDOW) {
            char name[64];

            snprintf(name, sizeof(name), "%s%u", prefix, next++);
            if (submit(c, f, op, dir, obj, name) != 0) {
                return NT_NO_REPLY;
            }
            f->in_flight++;
        }
        p = (struct pollfd){.fd = rpc_get_fd(c->rpc), .events = (short)rpc_which_events(c->rpc)};
        if (poll(&p, 1, 1000) < 0 || rpc_service(c->rpc, p.revents) < 0) {
            return NT_NO_REPLY;
        }
        if (f->done != seen) {
            seen = f->done;
            deadline = cs_after(STALL_SEC);
        } else if (nt_now_ns() > deadline) {
            return NT_NO_REPLY;
        }
    }
    while (f->in_flight > 0) { /* only after a bad status */
        struct pollfd p = {.fd = rpc_get_fd(c->rpc), .events = (short)rpc_which_events(c->rpc)};

        if (poll(&p, 1, 10000) <= 0 || rpc_service(c->rpc, p.revents) < 0) {
            return f->bad;
        }
    }
    rc = f->bad;
    free(f);
    return rc;
}

/* ---- listings ---- */

#define COOKIE_MAX 0x7fffffffffffffffull

void cs_census_init(struct cs_census *s, const char *prefix, unsigned n)
{
    *s = (struct cs_census){.prefix = prefix, .n = n, .seen = calloc(n + 1, 1)};
}

void cs_census_add(struct cs_census *s, const char *name)
{
    size_t k = strlen(s->prefix);
    char *end = NULL;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        s->dots++;
        return;
    }
    if (strncmp(name, s->prefix, k) == 0) {
        unsigned long v = strtoul(name + k, &end, 10);

        if (*end == '\0' && v < s->n) {
            s->seen[v] = (uint8_t)(s->seen[v] < 255 ? s->seen[v] + 1 : 255);
            return;
        }
    }
    s->other++;
}

void cs_list(struct nt *c, const struct nt_fh *dir, bool plus, uint32_t count, struct cs_census *s)
{
    uint64_t cookie = 0;
    char verf[8] = {0};

    do {
        NT_OK(plus ? nt_readdirplus(c, dir, cookie, verf, count, count)
                   : nt_readdir(c, dir, cookie, verf, count));
        s->pages++;
        s->eofs += c->r.eof;
        NT_CHECK(c->r.eof || c->r.nentries > 0);
        NT_CHECK(c->r.reply_bytes <= count);
        if (c->r.reply_bytes > s->most_bytes) {
            s->most_bytes = c->r.reply_bytes;
        }
        memcpy(verf, c->r.verf, 8);
        for (unsigned i = 0; i < c->r.nentries; i++) {
            NT_CHECK(c->entries[i].cookie > cookie && c->entries[i].cookie <= COOKIE_MAX);
            NT_CHECK(c->entries[i].fileid <= COOKIE_MAX);
            cookie = c->entries[i].cookie;
            cs_census_add(s, c->entries[i].name);
        }
    } while (!c->r.eof);
}

void cs_census_check(struct cs_census *s, unsigned lo)
{
    NT_EQ(s->dots, 2);
    for (unsigned i = lo; i < s->n; i++) {
        if (s->seen[i] != 1) {
            nt_fail(__FILE__, __LINE__, "%s%u was listed %u times", s->prefix, i, s->seen[i]);
        }
    }
    free(s->seen);
    s->seen = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "nt_priv.h"

#include <stdlib.h>
#include <string.h>

/* ---- listings ---- */

static struct nt_entry *add_entry(struct nt *c, uint64_t fileid, uint64_t cookie, const char *name)
{
    struct nt_entry *e;

    if (c->r.nentries == c->cap_entries) {
        c->cap_entries = c->cap_entries ? 2 * c->cap_entries : 256;
        c->entries = reallocarray(c->entries, c->cap_entries, sizeof(*c->entries));
    }
    e = &c->entries[c->r.nentries++];
    memset(e, 0, sizeof(*e));
    e->fileid = fileid;
    e->cookie = cookie;
    strncpy(e->name, name, sizeof(e->name) - 1);
    c->r.reply_bytes += 4 + 8 + 4 + ((strlen(name) + 3) & ~3ul) + 8;
    return e;
}

static void readdir_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    READDIR3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    nt_p_copy_attr(&c->r.have_dir, &c->r.dir_attr, &res->READDIR3res_u.resok.dir_attributes);
    if (res->status != NFS3_OK) {
        return;
    }
    /* READDIR3resok: attributes, verifier, end of list, eof */
    c->r.reply_bytes = 4 + (c->r.have_dir ? 84 : 0) + 8 + 4 + 4;
    memcpy(c->r.verf, res->READDIR3res_u.resok.cookieverf, 8);
    c->r.eof = res->READDIR3res_u.resok.reply.eof != 0;
    for (const void *p = res->READDIR3res_u.resok.reply.entries; p != NULL;) {
        entry3 e;

        memcpy(&e, p, sizeof(e)); /* libnfs does not align them */
        add_entry(c, e.fileid, e.cookie, e.name);
        p = e.nextentry;
    }
}

uint32_t nt_readdir(struct nt *c, const struct nt_fh *dir, uint64_t cookie, const char *verf,
                    uint32_t count)
{
    READDIR3args a;

    memset(&a, 0, sizeof(a));
    a.dir = nt_p_fh_arg(dir);
    a.cookie = cookie;
    if (verf != NULL) {
        memcpy(a.cookieverf, verf, 8);
    }
    a.count = count;
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_readdir_async(c->rpc, readdir_cb, &a, c), "READDIR");
}

static void readdirplus_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    READDIRPLUS3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    nt_p_copy_attr(&c->r.have_dir, &c->r.dir_attr, &res->READDIRPLUS3res_u.resok.dir_attributes);
    if (res->status != NFS3_OK) {
        return;
    }
    c->r.reply_bytes = 4 + (c->r.have_dir ? 84 : 0) + 8 + 4 + 4;
    memcpy(c->r.verf, res->READDIRPLUS3res_u.resok.cookieverf, 8);
    c->r.eof = res->READDIRPLUS3res_u.resok.reply.eof != 0;
    for (const void *p = res->READDIRPLUS3res_u.resok.reply.entries; p != NULL;) {
        struct nt_entry *n;
        entryplus3 e;

        memcpy(&e, p, sizeof(e));
        p = e.nextentry;
        n = add_entry(c, e.fileid, e.cookie, e.name);

        nt_p_copy_attr(&n->have_attr, &n->attr, &e.name_attributes);
        n->have_fh = e.name_handle.handle_follows != 0;
        if (n->have_fh) {
            nt_p_copy_fh(&n->fh, &e.name_handle.post_op_fh3_u.handle);
        }
        c->r.reply_bytes +=
            4 + (n->have_attr ? 84u : 0u) + 4 + (n->have_fh ? 4 + ((n->fh.len + 3) & ~3u) : 0u);
    }
}

uint32_t nt_readdirplus(struct nt *c, const struct nt_fh *dir, uint64_t cookie, const char *verf,
                        uint32_t dircount, uint32_t maxcount)
{
    READDIRPLUS3args a;

    memset(&a, 0, sizeof(a));
    a.dir = nt_p_fh_arg(dir);
    a.cookie = cookie;
    if (verf != NULL) {
        memcpy(a.cookieverf, verf, 8);
    }
    a.dircount = dircount;
    a.maxcount = maxcount;
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_readdirplus_async(c->rpc, readdirplus_cb, &a, c), "READDIRPLUS");
}

/* ---- the file system ---- */

static void fsstat_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    FSSTAT3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        c->r.fsstat = res->FSSTAT3res_u.resok;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->FSSTAT3res_u.resok.obj_attributes);
    }
}

uint32_t nt_fsstat(struct nt *c, const struct nt_fh *fh)
{
    FSSTAT3args a = {.fsroot = nt_p_fh_arg(fh)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_fsstat_async(c->rpc, fsstat_cb, &a, c), "FSSTAT");
}

static void fsinfo_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    FSINFO3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        c->r.fsinfo = res->FSINFO3res_u.resok;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->FSINFO3res_u.resok.obj_attributes);
    }
}

uint32_t nt_fsinfo(struct nt *c, const struct nt_fh *fh)
{
    FSINFO3args a = {.fsroot = nt_p_fh_arg(fh)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_fsinfo_async(c->rpc, fsinfo_cb, &a, c), "FSINFO");
}

static void pathconf_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    PATHCONF3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        c->r.pathconf = res->PATHCONF3res_u.resok;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->PATHCONF3res_u.resok.obj_attributes);
    }
}

uint32_t nt_pathconf(struct nt *c, const struct nt_fh *fh)
{
    PATHCONF3args a = {.object = nt_p_fh_arg(fh)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_pathconf_async(c->rpc, pathconf_cb, &a, c), "PATHCONF");
}

static void commit_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    COMMIT3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_wcc(&c->r.wcc, &res->COMMIT3res_u.resok.file_wcc);
        if (res->status == NFS3_OK) {
            memcpy(c->r.verf, res->COMMIT3res_u.resok.verf, 8);
        }
    }
}

uint32_t nt_commit(struct nt *c, const struct nt_fh *fh, uint64_t off, uint32_t count)
{
    COMMIT3args a = {.file = nt_p_fh_arg(fh), .offset = off, .count = count};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_commit_async(c->rpc, commit_cb, &a, c), "COMMIT");
}

static void mount_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    mountres3 *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->fhs_status;
        if (res->fhs_status == MNT3_OK) {
            const fhandle3 *fh = &res->mountres3_u.mountinfo.fhandle;

            c->r.have_fh = fh->fhandle3_len <= NT_FH_MAX;
            c->r.fh.len = c->r.have_fh ? fh->fhandle3_len : 0;
            memcpy(c->r.fh.data, fh->fhandle3_val, c->r.fh.len);
        }
    }
}

uint32_t nt_mount(struct nt *c, const char *path)
{
    nt_p_start(c);
    return nt_p_finish(c, rpc_mount3_mnt_async(c->rpc, mount_cb, (char *)(uintptr_t)path, c),
                       "MNT");
}

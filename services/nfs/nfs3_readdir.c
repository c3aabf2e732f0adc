/* SPDX-License-Identifier: Apache-2.0
 *
 * READDIR and READDIRPLUS, RFC 1813 sections 3.3.16 and 3.3.17: one code path.
 *
 * Cookies are keys of the directory's order and never become invalid, so the verifier is a
 * constant, and whatever verifier comes with a cookie is taken. The list is written entry by entry:
 * rpcgen's own would recurse once for each.
 */
#include "readdir_budget.h"
#include "svc_priv.h"

static bool put_bool(XDR *x, bool value)
{
    bool_t b = value;

    return xdr_bool(x, &b);
}

static bool put_entry(struct nfs_req *r, XDR *x, const Hf__Dirent *e, bool plus)
{
    uint8_t fh[HF_VFS_FH_MAX];
    entryplus3 p;

    p.entry = (entry3){e->ino, hf_slice(e->name.data, e->name.len), e->cookie};
    if (!put_bool(x, true) || !xdr_entry3(x, &p.entry))
        return false;
    if (!plus)
        return true;
    nfs3_post_attr(r->svc, e->attr, &p.name_attributes);
    nfs3_post_fh(r, e->attr, fh, &p.name_handle);
    return xdr_post_op_attr(x, &p.name_attributes) && xdr_post_op_fh3(x, &p.name_handle);
}

/* Writes entries while they fit; *ret_all: all of them. The server was told the same budget, so
 * nothing is left over but what dircount cuts off. */
static bool put_entries(struct nfs_req *r, XDR *x, const Hf__ReaddirRep *rep, u_int start,
                        bool plus, size_t *ret_n)
{
    const uint32_t fh_bytes = plus ? HF_VFS_FH_MAX : 0;
    const uint32_t tail = 8; /* end of list, eof */
    uint64_t dir_bytes = 0;
    size_t i;

    for (i = 0; i < rep->n_entries; i++) {
        const Hf__Dirent *e = rep->entries[i];
        u_int mark = xdr_getpos(x);

        dir_bytes += NFS_DIR_ENTRY + nfs_dir_pad((uint32_t)e->name.len);
        if (i > 0 && dir_bytes > r->s.dir.dir_limit)
            break;
        /* The largest an entry can get must fit in the encoding memory. */
        if (mark + NFS_DIR_ENTRY + e->name.len + NFS_FATTR3_BYTES + fh_bytes + 64 >
            NFS_ENCODE_BYTES)
            break;
        if (!put_entry(r, x, e, plus))
            return false;
        if (xdr_getpos(x) - start + tail > r->s.dir.limit) {
            if (!xdr_setpos(x, mark))
                return false;
            break;
        }
    }
    *ret_n = i;
    return true;
}

static void fail(struct nfs_req *r, int rc, const Hf__Attr *dir)
{
    union nfs_res res;

    if (nfs3_blind_failure(r, rc, dir))
        return;
    res.readdir.status = nfs3_status(r, rc);
    nfs3_post_attr(r->svc, dir, &res.readdir.READDIR3res_u.dir_attributes);
    nfs3_reply(r, &res);
}

static void succeed(struct nfs_req *r, const Hf__ReaddirRep *rep, bool plus)
{
    XDR *x = nfs_reply_begin(r);
    union nfs_res res;
    size_t n;

    memset(&res.readdir, 0, sizeof(res.readdir));
    nfs3_post_attr(r->svc, rep->dir, &res.readdir.READDIR3res_u.resok.dir_attributes);
    /* The status is not part of the resok that the limit is about. */
    if (!xdr_READDIR3res(x, &res.readdir) || !put_entries(r, x, rep, 4, plus, &n)) {
        nfs_reply_end(r, false);
        return;
    }
    if ((n == 0 && rep->n_entries > 0) || xdr_getpos(x) - 4 + 8 > r->s.dir.limit) {
        fail(r, HF_E_TOOSMALL, rep->dir);
        return;
    }
    nfs_reply_end(r, put_bool(x, false) && put_bool(x, rep->eof && n == rep->n_entries));
}

static void finish(struct hf_vfs_req *v, bool plus)
{
    struct nfs_req *r = v->arg;
    const Hf__ReaddirRep *rep = v->rep;

    if (v->status || !rep)
        fail(r, v->status ? v->status : HF_E_INTERNAL, rep ? rep->dir : NULL);
    else
        succeed(r, rep, plus);
}

static void done(struct hf_vfs_req *v)
{
    finish(v, false);
}

static void done_plus(struct hf_vfs_req *v)
{
    finish(v, true);
}

static void start(struct nfs_req *r, uint64_t cookie, const struct nfs_dir_budget *b, bool plus)
{
    nfs_expect(r, b->limit);
    r->s.dir.limit = b->limit;
    r->s.dir.dir_limit = b->dir_limit;
    hf_vfs_readdir(r->svc->vfs, nfs3_vfs(r, plus ? done_plus : done), &r->obj, cookie, b->max_bytes,
                   b->overhead, b->max_entries, plus);
}

void nfs3_readdir(struct nfs_req *r)
{
    const READDIR3args *a = &r->a.readdir;
    struct nfs_dir_budget b = nfs_dir_budget(a->count, NFS_DIR_MAX, NFS_DIR_ENTRIES);

    if (nfs3_handle(r, &a->dir, &r->obj))
        start(r, a->cookie, &b, false);
}

void nfs3_readdirplus(struct nfs_req *r)
{
    const READDIRPLUS3args *a = &r->a.readdirplus;
    struct nfs_dir_budget b;

    if (!nfs3_handle(r, &a->dir, &r->obj))
        return;
    /* All handles are as long as the directory's. */
    b = nfs_dir_budget_plus(a->dircount, a->maxcount, (uint32_t)a->dir.len, NFS_DIR_MAX,
                            NFS_DIR_ENTRIES);
    start(r, a->cookie, &b, true);
}

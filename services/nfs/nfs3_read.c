/* SPDX-License-Identifier: Apache-2.0
 *
 * READ, RFC 1813 section 3.3.6. The data goes out by reference: the pieces belong to messages that
 * the output buffer holds until they have been sent. Small ones are copied, which is cheaper.
 */
#include "svc_priv.h"

#define COPY_BELOW (8u << 10)

static const uint8_t zeros[64u << 10];

static void unref_msg(const void *data, size_t len, void *arg)
{
    (void)data;
    (void)len;
    hf_rpc_msg_unref(arg);
}

static bool add_zeros(struct evbuffer *out, size_t len)
{
    while (len) {
        size_t n = len < sizeof(zeros) ? len : sizeof(zeros);

        if (n < 512 ? evbuffer_add(out, zeros, n)
                    : evbuffer_add_reference(out, zeros, n, NULL, NULL))
            return false;
        len -= n;
    }
    return true;
}

static bool add_piece(struct evbuffer *out, const struct hf_client_piece *p)
{
    if (!p->data.data)
        return add_zeros(out, p->data.len);
    if (p->data.len < COPY_BELOW || !p->msg)
        return evbuffer_add(out, p->data.data, p->data.len) == 0;
    hf_rpc_msg_ref(p->msg);
    if (evbuffer_add_reference(out, p->data.data, p->data.len, unref_msg, p->msg) == 0)
        return true;
    hf_rpc_msg_unref(p->msg);
    return false;
}

static void send_data(struct nfs_req *r, const struct hf_client_io *io, union nfs_res *res)
{
    const size_t pad = (4 - io->count % 4) % 4;
    struct nfs_conn *c;
    bool ok = r->proc->encode(nfs_reply_begin(r), res);

    if (!nfs_reply_head(r, ok, io->count + pad))
        return;
    c = r->conn;
    for (unsigned i = 0; i < io->npieces && ok; i++)
        ok = add_piece(c->out, &io->pieces[i]);
    if (!ok || !add_zeros(c->out, pad))
        c->broken = true; /* a reply with a hole: the stream is lost */
    nfs_req_free(r);
}

static void done(struct hf_vfs_req *v)
{
    struct nfs_req *r = v->arg;
    const struct hf_client_io *io = v->io;
    READ3resok *ok;
    union nfs_res res;
    int rc = v->status;

    if (rc == 0 && !io)
        rc = HF_E_INTERNAL;
    if (nfs3_blind_failure(r, rc, io ? io->attr : NULL))
        return;
    res.read.status = nfs3_status(r, rc);
    if (rc) {
        nfs3_post_attr(r->svc, io ? io->attr : NULL, &res.read.READ3res_u.file_attributes);
        nfs3_reply(r, &res);
        return;
    }
    ok = &res.read.READ3res_u.resok;
    nfs3_post_attr(r->svc, io->attr, &ok->file_attributes);
    ok->count = ok->data_len = io->count;
    ok->eof = io->eof;
    send_data(r, io, &res);
}

void nfs3_read(struct nfs_req *r)
{
    const READ3args *a = &r->a.read;
    uint32_t len = a->count < NFS_IO_MAX ? a->count : NFS_IO_MAX;

    if (!nfs3_handle(r, &a->file, &r->obj))
        return;
    nfs_expect(r, len);
    hf_vfs_read(r->svc->vfs, nfs3_vfs(r, done), &r->obj, a->offset, len);
}

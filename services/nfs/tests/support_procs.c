/* SPDX-License-Identifier: Apache-2.0 */
#include "support_procs.h"

#include <criterion/criterion.h>
#include <unistd.h>

struct procs *procs(void)
{
    static struct procs p;

    return &p;
}

void procs_start(void)
{
    struct procs *p = procs();

    gateway_start(&p->g, NULL);
    p->fd = client_connect(&p->g);
    p->xid = 1;
}

void procs_stop(void)
{
    close(procs()->fd);
    gateway_stop(&procs()->g);
}

void procs_begin(struct call_buf *c, uint32_t proc, uint64_t ino)
{
    call_begin(c, ++procs()->xid, NFS_PROGRAM, 3, proc);
    call_fh(c, ino);
}

void procs_zeros(struct call_buf *c, unsigned words)
{
    while (words--)
        call_u32(c, 0);
}

void procs_any_call(struct call_buf *c, uint32_t proc)
{
    procs_begin(c, proc, 100);
    switch (proc) {
    case 2:
        procs_zeros(c, 7);
        break;
    case 3:
    case 12:
    case 13:
        call_bytes(c, "name", 4);
        break;
    case 4:
        call_u32(c, 0x3f);
        break;
    case 6:
        procs_zeros(c, 2);
        call_u32(c, 4096);
        break;
    case 7:
        procs_zeros(c, 2);
        call_u32(c, 5);
        call_u32(c, 0);
        call_bytes(c, "12345", 5);
        break;
    case 8:
        call_bytes(c, "name", 4);
        procs_zeros(c, 7);
        break;
    case 9:
        call_bytes(c, "name", 4);
        procs_zeros(c, 6);
        break;
    case 10:
        call_bytes(c, "name", 4);
        procs_zeros(c, 6);
        call_bytes(c, "target", 6);
        break;
    case 11:
        call_bytes(c, "name", 4);
        call_u32(c, NF3FIFO);
        procs_zeros(c, 6);
        break;
    case 14:
        call_bytes(c, "name", 4);
        call_fh(c, 101);
        call_bytes(c, "new", 3);
        break;
    case 15:
        call_fh(c, 101);
        call_bytes(c, "new", 3);
        break;
    case 16:
        procs_zeros(c, 4);
        call_u32(c, 4096);
        break;
    case 17:
        procs_zeros(c, 4);
        call_u32(c, 4096);
        call_u32(c, 8192);
        break;
    case 21:
        procs_zeros(c, 3);
        break;
    default:
        break;
    }
}

bool procs_decode(uint32_t proc, XDR *x, union nfs_res *res)
{
    memset(res, 0, sizeof(*res));
    switch (proc) {
#define X(num, NAME, name, remembered, failure, errors)                                            \
    case num:                                                                                      \
        return xdr_##NAME##3res(x, &res->name);
#include "procs.def"
#undef X
    default:
        return false;
    }
}

void procs_call(const struct call_buf *c, uint32_t proc, struct reply *r, union nfs_res *res)
{
    client_call(procs()->fd, c);
    client_recv_ok(procs()->fd, procs()->xid, r);
    cr_assert(procs_decode(proc, &r->x, res), "procedure %u", proc);
}

void procs_check_attr(const post_op_attr *a, uint64_t ino)
{
    const fattr3 *f = &a->post_op_attr_u.attributes;

    cr_assert(a->attributes_follow);
    cr_assert_eq(f->fileid, ino);
    cr_assert_eq(f->fsid, FAKE_FSID);
    cr_assert_eq(f->mode, 0755);
    cr_assert_eq(f->size, 12345);
    cr_assert_eq(f->used, 16384);
    cr_assert(f->atime.seconds == 1 && f->atime.nseconds == 1);
    cr_assert(f->mtime.seconds == 0 && f->mtime.nseconds == 0, "before 1970");
    cr_assert_eq(f->ctime.seconds, UINT32_MAX, "after 2106");
}

void procs_check_wcc(const wcc_data *w, uint64_t ino)
{
    cr_assert(w->before.attributes_follow);
    cr_assert_eq(w->before.pre_op_attr_u.attributes.size, 1);
    procs_check_attr(&w->after, ino);
}

void procs_check_fh(struct hf_slice fh, uint64_t ino)
{
    uint8_t want[FAKE_FH_BYTES];

    fake_fh(ino, want);
    cr_assert(hf_slice_eq(fh, hf_slice(want, FAKE_FH_BYTES)));
}

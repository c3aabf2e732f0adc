/* SPDX-License-Identifier: Apache-2.0
 *
 * MOUNT version 3 on a real socket.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support_procs.h"

TestSuite(mount, .init = procs_start, .fini = procs_stop);

static void mount_begin(struct call_buf *c, uint32_t proc)
{
    call_begin(c, ++procs()->xid, MOUNT_PROGRAM, 3, proc);
}

static size_t dump_entries(void)
{
    struct call_buf c;
    struct reply r;
    bool_t more;
    size_t n = 0;

    mount_begin(&c, 2);
    client_call(procs()->fd, &c);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    while (xdr_bool(&r.x, &more) && more) {
        nfspath3 host, dir;

        cr_assert(xdr_nfspath3(&r.x, &host) && xdr_nfspath3(&r.x, &dir));
        cr_assert(hf_slice_eq(host, hf_slice_str("127.0.0.1")));
        cr_assert(hf_slice_eq(dir, hf_slice_str("/main")));
        n++;
    }
    cr_assert_eq(xdr_getpos(&r.x), r.n - 24);
    reply_free(&r);
    return n;
}

static uint32_t mount_path(const char *path, uint32_t len)
{
    struct call_buf c;
    struct reply r;
    MNT3res res = {0};

    mount_begin(&c, 1);
    call_bytes(&c, path, len);
    client_call(procs()->fd, &c);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    cr_assert(xdr_MNT3res(&r.x, &res));
    if (res.status == MNT3_OK) {
        procs_check_fh(res.MNT3res_u.resok.fhandle, FAKE_ROOT);
        cr_assert_geq(res.MNT3res_u.resok.auth_flavors.auth_flavors_len, 1);
        cr_assert_eq(res.MNT3res_u.resok.auth_flavors.auth_flavors_val[0], 1, "AUTH_SYS first");
        xdr_free((xdrproc_t)(void (*)(void))xdr_MNT3res, &res);
    }
    reply_free(&r);
    return res.status;
}

Test(mount, every_procedure)
{
    static const char longest[2000];
    struct call_buf c;
    struct reply r;
    bool_t more;
    nfspath3 s;

    cr_assert_eq(mount_path("/main", 5), MNT3_OK);
    cr_assert_eq(mount_path("/main", 5), MNT3_OK);
    cr_assert_eq(mount_path("/other", 6), MNT3ERR_NOENT);
    cr_assert_eq(mount_path("", 0), MNT3ERR_NOENT);
    cr_assert_eq(mount_path(longest, 1025), MNT3ERR_NAMETOOLONG);
    cr_assert_eq(dump_entries(), 1);

    mount_begin(&c, 3);
    call_bytes(&c, "/main", 5);
    client_call(procs()->fd, &c);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    cr_assert_eq(r.n, 24);
    reply_free(&r);
    cr_assert_eq(dump_entries(), 0);

    cr_assert_eq(mount_path("/main", 5), MNT3_OK);
    mount_begin(&c, 4);
    client_call(procs()->fd, &c);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    reply_free(&r);
    cr_assert_eq(dump_entries(), 0);

    mount_begin(&c, 5);
    client_call(procs()->fd, &c);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    cr_assert(xdr_bool(&r.x, &more) && more && xdr_nfspath3(&r.x, &s));
    cr_assert(hf_slice_eq(s, hf_slice_str("/main")));
    cr_assert(xdr_bool(&r.x, &more) && more && xdr_nfspath3(&r.x, &s));
    cr_assert(hf_slice_eq(s, hf_slice_str("127.0.0.0/8")));
    cr_assert(xdr_bool(&r.x, &more) && !more && xdr_bool(&r.x, &more) && !more);
    cr_assert_eq(xdr_getpos(&r.x), r.n - 24);
    reply_free(&r);
}

Test(mount, list_is_bounded)
{
    struct nfs_mounts m;

    nfs_mounts_init(&m);
    for (unsigned i = 0; i < 3 * NFS_MOUNTS_MAX; i++) {
        char host[32];

        (void)snprintf(host, sizeof(host), "h%u", i);
        nfs_mounts_add(&m, host, hf_slice_str("/main"));
    }
    cr_assert_eq(m.n, NFS_MOUNTS_MAX);
    nfs_mounts_fini(&m);
}

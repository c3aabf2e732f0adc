/* SPDX-License-Identifier: Apache-2.0
 *
 * READDIR and READDIRPLUS on a real socket over the fake vfs: pages of every size.
 */
#include <criterion/criterion.h>

#include "readdir_budget.h"
#include "support_procs.h"

TestSuite(readdir, .init = procs_start, .fini = procs_stop);

static void set_entries(struct fake *f, void *arg)
{
    f->dir_entries = *(uint32_t *)arg;
}

/* One page; returns the cookie to go on from. *n counts names. */
static uint64_t page(uint64_t cookie, uint32_t dircount, uint32_t count, bool plus, uint32_t *n,
                     bool *eof)
{
    const uint32_t proc = plus ? 17 : 16;
    struct call_buf c;
    struct reply r;
    union nfs_res res;
    bool_t more;
    uint32_t dir_bytes = 0, in_page = 0;

    procs_begin(&c, proc, FAKE_ROOT);
    call_u32(&c, (uint32_t)(cookie >> 32));
    call_u32(&c, (uint32_t)cookie);
    call_u32(&c, 0xdead); /* any verifier will do */
    call_u32(&c, 0xbeef);
    if (plus)
        call_u32(&c, dircount);
    call_u32(&c, count);
    procs_call(&c, proc, &r, &res);
    cr_assert_eq(res.readdir.status, NFS3_OK);
    procs_check_attr(&res.readdir.READDIR3res_u.resok.dir_attributes, FAKE_ROOT);
    while (xdr_bool(&r.x, &more) && more) {
        entryplus3 e;

        cr_assert(xdr_entry3(&r.x, &e.entry));
        cr_assert_eq(e.entry.cookie, cookie + 1, "no name twice, none left out");
        cr_assert_eq(e.entry.fileid, 1000 + cookie);
        cookie = e.entry.cookie;
        dir_bytes += NFS_DIR_ENTRY + nfs_dir_pad((uint32_t)e.entry.name.len);
        in_page++;
        if (plus) {
            cr_assert(xdr_post_op_attr(&r.x, &e.name_attributes) &&
                      xdr_post_op_fh3(&r.x, &e.name_handle));
            procs_check_attr(&e.name_attributes, e.entry.fileid);
            procs_check_fh(e.name_handle.post_op_fh3_u.handle, e.entry.fileid);
        }
    }
    cr_assert(xdr_bool(&r.x, &more));
    *eof = more;
    *n += in_page;
    cr_assert_eq(xdr_getpos(&r.x), r.n - 24, "nothing follows");
    cr_assert_leq(r.n - 24 - 4, count, "the reply is within count");
    cr_assert(in_page <= 1 || !plus || dir_bytes <= dircount);
    reply_free(&r);
    return cookie;
}

static void check_listing(uint32_t entries, uint32_t dircount, uint32_t count, bool plus)
{
    uint64_t cookie = 0, next;
    uint32_t n = 0;
    bool eof = false;

    fake_set(set_entries, &entries);
    while (!eof) {
        next = page(cookie, dircount, count, plus, &n, &eof);
        cr_assert(next > cookie || eof, "a page without a name is no progress");
        cookie = next;
    }
    cr_assert_eq(n, entries);
}

Test(readdir, pages)
{
    static const uint32_t counts[] = {300, 511, 1000, 4096, 65536, 1u << 20, UINT32_MAX};

    for (size_t i = 0; i < HF_ARRAY_LEN(counts); i++) {
        check_listing(0, 4096, counts[i], false);
        check_listing(700, 0, counts[i], false);
        if (i > 0) { /* the longest entry does not fit in 300 */
            check_listing(700, counts[i], counts[i], true);
            check_listing(700, 500, counts[i], true);
        }
    }
    check_listing(20, 0, 4096, true);
    check_listing(20000, 0, UINT32_MAX, false);
    check_listing(20000, UINT32_MAX, UINT32_MAX, true);
}

Test(readdir, of_every_small_count)
{
    const uint32_t one = 1;

    fake_set(set_entries, (void *)(uintptr_t)&one);
    for (uint32_t count = 0; count < 300; count++) {
        for (uint32_t proc = 16; proc <= 17; proc++) {
            /* Entry 0 is called f00000. */
            const uint32_t need =
                NFS_DIR_FIXED + NFS_DIR_ENTRY + 8 + (proc == 17 ? 4 + 84 + 8 + 40 : 0);
            struct call_buf c;
            struct reply r;
            union nfs_res res;

            procs_begin(&c, proc, FAKE_ROOT);
            procs_zeros(&c, 4);
            if (proc == 17)
                call_u32(&c, 4096);
            call_u32(&c, count);
            procs_call(&c, proc, &r, &res);
            cr_assert_eq(res.readdir.status, count < need ? NFS3ERR_TOOSMALL : NFS3_OK,
                         "%u: count %u", proc, count);
            if (count < need)
                procs_check_attr(&res.readdir.READDIR3res_u.dir_attributes, FAKE_ROOT);
            reply_free(&r);
        }
    }
}

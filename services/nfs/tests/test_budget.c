/* SPDX-License-Identifier: Apache-2.0
 *
 * Directory budgets against what XDR really makes of a reply.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "nfs3.h"
#include "readdir_budget.h"

static uint8_t buf[4096] __attribute__((aligned(16)));

/* Bytes of a READDIR3resok with one entry of the given name length. */
static uint32_t encoded(uint32_t name_len, uint32_t fh_len)
{
    static const uint8_t bytes[256];
    READDIR3res res = {.status = NFS3_OK};
    entry3 e = {1, hf_slice(bytes, name_len), 2};
    post_op_attr attr = {.attributes_follow = TRUE};
    post_op_fh3 fh = {.handle_follows = TRUE};
    bool_t yes = TRUE, no = FALSE;
    XDR x;

    xdrmem_create(&x, (char *)buf, sizeof(buf), XDR_ENCODE);
    res.READDIR3res_u.resok.dir_attributes.attributes_follow = TRUE;
    fh.post_op_fh3_u.handle = hf_slice(bytes, fh_len);
    cr_assert(xdr_READDIR3res(&x, &res) && xdr_bool(&x, &yes) && xdr_entry3(&x, &e));
    if (fh_len)
        cr_assert(xdr_post_op_attr(&x, &attr) && xdr_post_op_fh3(&x, &fh));
    cr_assert(xdr_bool(&x, &no) && xdr_bool(&x, &yes));
    return xdr_getpos(&x) - 4; /* without the status */
}

Test(budget, readdir_is_exact)
{
    for (uint32_t name = 1; name <= 255; name++) {
        struct nfs_dir_budget b = nfs_dir_budget(encoded(name, 0), 1u << 20, 4096);

        cr_assert_eq(b.max_bytes, b.overhead + nfs_dir_pad(name), "name of %u", name);
    }
}

Test(budget, readdirplus_is_exact)
{
    for (uint32_t fh = 1; fh <= 64; fh += 3) {
        for (uint32_t name = 1; name <= 255; name++) {
            struct nfs_dir_budget b =
                nfs_dir_budget_plus(1u << 20, encoded(name, fh), fh, 1u << 20, 4096);

            cr_assert_eq(b.max_bytes, b.overhead + nfs_dir_pad(name));
        }
    }
}

Test(budget, too_small_counts_leave_nothing)
{
    for (uint32_t count = 0; count <= NFS_DIR_FIXED; count++) {
        cr_assert_eq(nfs_dir_budget(count, 65536, 100).max_bytes, 0);
        cr_assert_eq(nfs_dir_budget_plus(65536, count, 37, 65536, 100).max_bytes, 0);
    }
    cr_assert_eq(nfs_dir_budget(NFS_DIR_FIXED + 1, 65536, 100).max_bytes, 1);
}

Test(budget, bounds_of_the_server)
{
    struct nfs_dir_budget b = nfs_dir_budget(UINT32_MAX, 65536, 100);

    cr_assert_eq(b.limit, 65536);
    cr_assert_eq(b.max_bytes, 65536 - NFS_DIR_FIXED);
    cr_assert_eq(b.max_entries, 100);
    b = nfs_dir_budget_plus(0, UINT32_MAX, 37, 65536, 100);
    cr_assert_eq(b.max_entries, 1, "dircount 0 still gives one entry");
    b = nfs_dir_budget_plus(28 * 7, UINT32_MAX, 37, 65536, 100);
    cr_assert_eq(b.max_entries, 7);
    b = nfs_dir_budget_plus(UINT32_MAX, UINT32_MAX, 64, 65536, 100);
    cr_assert_eq(b.max_entries, 100);
}

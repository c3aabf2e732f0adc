/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "drc.h"

static struct nfs_drc_key key(const struct nfs_drc *d, uint32_t xid, const char *args)
{
    struct nfs_drc_key k = {
        .family = AF_INET, .xid = xid, .prog = 100003, .vers = 3, .proc = 9, .uid = 5};

    k.addr[0] = 127;
    nfs_drc_key_args(d, &k, hf_slice_str(args));
    return k;
}

Test(drc, new_running_replayed)
{
    struct nfs_drc *d = nfs_drc_new(10, 1000, 1);
    struct nfs_drc_key k = key(d, 1, "mkdir a");
    struct nfs_drc_entry *e, *again;

    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &again), NFS_DRC_WAIT);
    cr_assert_eq(e, again);
    nfs_drc_done(d, e, "reply", 5, 0);
    cr_assert_eq(nfs_drc_begin(d, &k, 1, &again), NFS_DRC_REPLAY);
    cr_assert(hf_slice_eq(hf_slice(again->reply, again->reply_len), hf_slice_str("reply")));
    nfs_drc_free(d);
}

Test(drc, every_part_of_the_key_counts)
{
    struct nfs_drc *d = nfs_drc_new(100, 1000, 1);
    struct nfs_drc_key k = key(d, 1, "mkdir a");
    struct nfs_drc_key other[7];
    struct nfs_drc_entry *e;

    for (int i = 0; i < 7; i++)
        other[i] = k;
    other[0].xid++;
    other[1].proc++;
    other[2].addr[3]++;
    other[3].prog++;
    other[4].uid++;
    other[5] = key(d, 1, "mkdir b");
    other[6] = key(d, 1, "mkdir aa");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    nfs_drc_done(d, e, "x", 1, 0);
    for (int i = 0; i < 7; i++) {
        cr_assert_eq(nfs_drc_begin(d, &other[i], 0, &e), NFS_DRC_NEW, "%d", i);
        nfs_drc_done(d, e, "x", 1, 0);
    }
    nfs_drc_free(d);
}

Test(drc, forgotten_runs_again)
{
    struct nfs_drc *d = nfs_drc_new(10, 1000, 1);
    struct nfs_drc_key k = key(d, 1, "mkdir a");
    struct nfs_drc_entry *e;

    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    nfs_drc_forget(d, e);
    cr_assert_eq(nfs_drc_entries(d), 0);
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    nfs_drc_forget(d, e);
    nfs_drc_free(d);
}

Test(drc, oldest_goes_first_and_running_ones_stay)
{
    struct nfs_drc *d = nfs_drc_new(4, 1000, 1);
    struct nfs_drc_entry *running, *e;
    struct nfs_drc_key k = key(d, 1, "running");

    cr_assert_eq(nfs_drc_begin(d, &k, 0, &running), NFS_DRC_NEW);
    for (uint32_t i = 2; i < 10; i++) {
        k = key(d, i, "a");
        cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
        nfs_drc_done(d, e, "r", 1, 0);
        cr_assert_leq(nfs_drc_entries(d), 4);
    }
    k = key(d, 9, "a");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_REPLAY);
    k = key(d, 1, "running");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_WAIT);
    k = key(d, 2, "a");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW, "2 was dropped");
    nfs_drc_free(d);
}

Test(drc, full_of_running_ones)
{
    struct nfs_drc *d = nfs_drc_new(2, 1000, 1);
    struct nfs_drc_entry *e;
    struct nfs_drc_key k;

    for (uint32_t i = 0; i < 2; i++) {
        k = key(d, i, "a");
        cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    }
    k = key(d, 2, "a");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_FULL);
    cr_assert_null(e);
    nfs_drc_free(d);
}

Test(drc, bytes_are_bounded)
{
    struct nfs_drc *d = nfs_drc_new(1000, 100, 1);
    uint8_t reply[60] = {0};
    struct nfs_drc_entry *e;
    struct nfs_drc_key k;

    for (uint32_t i = 0; i < 50; i++) {
        k = key(d, i, "a");
        cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
        nfs_drc_done(d, e, reply, i % 2 ? 60 : 30, 0);
        cr_assert_leq(nfs_drc_bytes(d), 100);
    }
    k = key(d, 1000, "too large");
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    nfs_drc_done(d, e, (uint8_t[101]){0}, 101, 0);
    cr_assert_eq(nfs_drc_begin(d, &k, 0, &e), NFS_DRC_NEW);
    nfs_drc_free(d);
}

Test(drc, entries_age)
{
    struct nfs_drc *d = nfs_drc_new(10, 1000, 1);
    struct nfs_drc_key k = key(d, 1, "a");
    struct nfs_drc_entry *e;

    cr_assert_eq(nfs_drc_begin(d, &k, 5, &e), NFS_DRC_NEW);
    nfs_drc_done(d, e, "r", 1, 5);
    cr_assert_eq(nfs_drc_begin(d, &k, NFS_DRC_AGE_NS, &e), NFS_DRC_REPLAY);
    nfs_drc_expire(d, NFS_DRC_AGE_NS + 5);
    cr_assert_eq(nfs_drc_entries(d), 0);
    cr_assert_eq(nfs_drc_bytes(d), 0);
    nfs_drc_free(d);
}

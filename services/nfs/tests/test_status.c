/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors: every one of ours has a status, and every procedure's are those that RFC 1813 or custom
 * allows.
 */
#include <criterion/criterion.h>

#include "holdfast/err.h"
#include "svc_priv.h"

static const int all_errors[] = {
#define X(name, number, text) HF_E_##name,
#include "holdfast/err.def"
#undef X
};

static const int mapped[] = {
#define X(name, nfs, mount) HF_E_##name,
#include "status.def"
#undef X
};

Test(status, every_error_has_a_row)
{
    for (size_t i = 0; i < HF_ARRAY_LEN(all_errors); i++) {
        bool found = false;

        for (size_t j = 0; j < HF_ARRAY_LEN(mapped); j++)
            found = found || mapped[j] == all_errors[i];
        cr_assert(found, "%s has no row in status.def", hf_err_name(all_errors[i]));
        cr_assert_neq(nfs_status_nfs3(all_errors[i]), NFS3_OK);
        cr_assert_neq(nfs_status_mount3(all_errors[i]), MNT3_OK);
    }
}

Test(status, unknown_numbers_are_server_faults)
{
    const int odd[] = {1, 1000, -1000, INT32_MIN, INT32_MAX, -39};

    for (size_t i = 0; i < HF_ARRAY_LEN(odd); i++) {
        cr_assert_eq(nfs_status_nfs3(odd[i]), NFS3ERR_SERVERFAULT);
        cr_assert_eq(nfs_status_mount3(odd[i]), MNT3ERR_SERVERFAULT);
    }
    cr_assert_eq(nfs_status_nfs3(0), NFS3_OK);
    cr_assert_eq(nfs_status_mount3(0), MNT3_OK);
}

Test(status, what_may_heal_is_jukebox)
{
    const int retry[] = {HF_E_TIMEDOUT,  HF_E_BUSY,    HF_E_CONNRESET, HF_E_CONNREFUSED,
                         HF_E_NOTLEADER, HF_E_JUKEBOX, HF_E_NOMEM};

    for (size_t i = 0; i < HF_ARRAY_LEN(retry); i++) {
        cr_assert_eq(nfs_status_nfs3(retry[i]), NFS3ERR_JUKEBOX);
        for (size_t p = 1; p < NFS3_PROCS; p++)
            cr_assert(nfs_status_allowed(nfs3_procs[p].errors, retry[i]));
    }
    cr_assert_eq(nfs_status_nfs3(HF_E_CORRUPT), NFS3ERR_IO);
}

/* The lists of RFC 1813 section 3.3: each of them must be possible. */
#define ALLOWED(p, ...) check(p, (const int[]){__VA_ARGS__, 0})
static void check(unsigned proc, const int *errors)
{
    for (; *errors; errors++)
        cr_assert(nfs_status_allowed(nfs3_procs[proc].errors, *errors), "%s may return %s",
                  nfs3_procs[proc].name, hf_err_name(*errors));
}

Test(status, what_the_rfc_lists_is_allowed)
{
    ALLOWED(1, HF_E_IO, HF_E_STALE, HF_E_BADHANDLE, HF_E_INTERNAL);
    ALLOWED(2, HF_E_PERM, HF_E_ACCES, HF_E_INVAL, HF_E_NOSPC, HF_E_ROFS, HF_E_DQUOT, HF_E_NOT_SYNC);
    ALLOWED(3, HF_E_NOENT, HF_E_ACCES, HF_E_NOTDIR, HF_E_NAMETOOLONG);
    ALLOWED(5, HF_E_INVAL, HF_E_ACCES, HF_E_NOTSUPP);
    ALLOWED(6, HF_E_NXIO, HF_E_ACCES, HF_E_INVAL);
    ALLOWED(7, HF_E_ACCES, HF_E_FBIG, HF_E_DQUOT, HF_E_NOSPC, HF_E_ROFS, HF_E_INVAL);
    ALLOWED(8, HF_E_ACCES, HF_E_EXIST, HF_E_NOTDIR, HF_E_NOSPC, HF_E_ROFS, HF_E_NAMETOOLONG,
            HF_E_DQUOT, HF_E_NOTSUPP);
    ALLOWED(11, HF_E_BADTYPE, HF_E_EXIST);
    ALLOWED(12, HF_E_NOENT, HF_E_ACCES, HF_E_NOTDIR, HF_E_NAMETOOLONG, HF_E_ROFS);
    ALLOWED(13, HF_E_NOENT, HF_E_INVAL, HF_E_EXIST, HF_E_NOTDIR, HF_E_NOTEMPTY, HF_E_ROFS);
    ALLOWED(14, HF_E_NOENT, HF_E_EXIST, HF_E_XDEV, HF_E_NOTDIR, HF_E_ISDIR, HF_E_INVAL, HF_E_NOSPC,
            HF_E_MLINK, HF_E_NOTEMPTY, HF_E_DQUOT);
    ALLOWED(15, HF_E_EXIST, HF_E_XDEV, HF_E_NOTDIR, HF_E_INVAL, HF_E_MLINK, HF_E_DQUOT);
    ALLOWED(16, HF_E_NOTDIR, HF_E_BAD_COOKIE, HF_E_TOOSMALL);
    ALLOWED(17, HF_E_NOTDIR, HF_E_BAD_COOKIE, HF_E_TOOSMALL, HF_E_NOTSUPP);
}

Test(status, what_makes_no_sense_is_not)
{
    cr_assert_not(nfs_status_allowed(nfs3_procs[1].errors, HF_E_NOENT));
    cr_assert_not(nfs_status_allowed(nfs3_procs[1].errors, HF_E_NOTEMPTY));
    cr_assert_not(nfs_status_allowed(nfs3_procs[6].errors, HF_E_NOSPC));
    cr_assert_not(nfs_status_allowed(nfs3_procs[16].errors, HF_E_EXIST));
    cr_assert_not(nfs_status_allowed(nfs3_procs[21].errors, HF_E_NOT_SYNC));
}

Test(status, tables_are_complete)
{
    for (size_t p = 0; p < NFS3_PROCS; p++) {
        cr_assert_not_null(nfs3_procs[p].run);
        cr_assert_not_null(nfs3_procs[p].decode);
        cr_assert(p == 0 || nfs3_procs[p].encode);
    }
    for (size_t p = 0; p < MOUNT3_PROCS; p++)
        cr_assert_not_null(mount3_procs[p].run);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of every procedure: encoded samples, each truncated at every byte, with every length
 * field spoilt, and random bytes. What does not decode is refused; nothing is read beyond the
 * record.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "svc_priv.h"

static uint8_t fh_bytes[64];

static diropargs3 where(void)
{
    return (diropargs3){hf_slice(fh_bytes, 37), hf_slice_str("name")};
}

static sattr3 all_set(void)
{
    sattr3 a = {0};

    a.mode.set_it = a.uid.set_it = a.gid.set_it = TRUE;
    a.size.set_it = TRUE;
    a.size.set_size3_u.size = 1ull << 40;
    a.atime.set_it = SET_TO_SERVER_TIME;
    a.mtime.set_it = SET_TO_CLIENT_TIME;
    a.mtime.set_time3_u.time = (nfstime3){1, 2};
    return a;
}

/* Fills *a with a sample and encodes it; returns the length. */
static size_t sample(unsigned proc, uint8_t *buf, size_t cap)
{
    union nfs_args a;
    XDR x;
    bool ok = false;

    memset(&a, 0, sizeof(a));
    xdrmem_create(&x, (char *)buf, (u_int)cap, XDR_ENCODE);
    switch (proc) {
    case 2:
        a.setattr.object = hf_slice(fh_bytes, 37);
        a.setattr.new_attributes = all_set();
        a.setattr.guard.check = TRUE;
        break;
    case 3:
    case 12:
    case 13:
        a.lookup.what = where();
        break;
    case 7:
        a.write.file = hf_slice(fh_bytes, 37);
        a.write.count = 61;
        a.write.stable = FILE_SYNC;
        a.write.data = hf_slice(fh_bytes, 61);
        break;
    case 8:
        a.create.where = where();
        a.create.how.mode = GUARDED;
        a.create.how.createhow3_u.obj_attributes = all_set();
        break;
    case 9:
        a.mkdir.where = where();
        a.mkdir.attributes = all_set();
        break;
    case 10:
        a.symlink.where = where();
        a.symlink.symlink_attributes = all_set();
        a.symlink.symlink_data = hf_slice_str("target");
        break;
    case 11:
        a.mknod.where = where();
        a.mknod.what.type = NF3CHR;
        a.mknod.what.mknoddata3_u.device.dev_attributes = all_set();
        break;
    case 14:
        a.rename.from = where();
        a.rename.to = where();
        break;
    case 15:
        a.link.file = hf_slice(fh_bytes, 37);
        a.link.link = where();
        break;
    default: /* all others begin with a handle; the rest may be zero */
        a.getattr.object = hf_slice(fh_bytes, 37);
        break;
    }
    switch (proc) {
#define X(num, NAME, name, remembered, failure, errors)                                            \
    case num:                                                                                      \
        ok = xdr_##NAME##3args(&x, &a.name);                                                       \
        break;
#include "procs.def"
#undef X
    default:
        break;
    }
    cr_assert(ok);
    return xdr_getpos(&x);
}

/* Decodes a copy of exactly len bytes, so that the sanitizer sees a step beyond it. */
static bool decode(unsigned proc, const uint8_t *buf, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    union nfs_args a;
    XDR x;
    bool ok;

    memcpy(copy, buf, len);
    memset(&a, 0, sizeof(a));
    xdrmem_create(&x, (char *)copy, (u_int)len, XDR_DECODE);
    ok = nfs3_procs[proc].decode(&x, &a);
    free(copy);
    return ok;
}

Test(xdr, samples_decode_and_no_truncation_does)
{
    uint8_t buf[1024];

    for (unsigned proc = 1; proc < NFS3_PROCS; proc++) {
        size_t len = sample(proc, buf, sizeof(buf));

        cr_assert(decode(proc, buf, len), "%s", nfs3_procs[proc].name);
        for (size_t cut = 0; cut < len; cut++)
            cr_assert_not(decode(proc, buf, cut), "%s cut at %zu of %zu", nfs3_procs[proc].name,
                          cut, len);
    }
}

Test(xdr, handles_longer_than_64_bytes_are_garbage)
{
    uint8_t buf[1024] = {0};

    for (unsigned proc = 1; proc < NFS3_PROCS; proc++) {
        buf[3] = 65;
        cr_assert_not(decode(proc, buf, sizeof(buf)));
        memset(buf, 0xff, 4);
        cr_assert_not(decode(proc, buf, sizeof(buf)));
        memset(buf, 0, 4);
    }
}

/* Any word of a sample replaced by a huge one: decoded or refused, within the record. */
Test(xdr, spoilt_words)
{
    static const uint32_t bad[] = {0xffffffff, 0x7fffffff, 0xfffffffc, 0x80000000, 0x10000, 2};
    uint8_t buf[1024], copy[1024];
    unsigned refused = 0;

    for (unsigned proc = 1; proc < NFS3_PROCS; proc++) {
        size_t len = sample(proc, buf, sizeof(buf));

        for (size_t at = 0; at < len; at += 4) {
            for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
                memcpy(copy, buf, len);
                for (unsigned b = 0; b < 4; b++)
                    copy[at + b] = (uint8_t)(bad[i] >> (24 - 8 * b) & 0xff);
                refused += !decode(proc, copy, len);
            }
        }
    }
    cr_assert_gt(refused, 100);
}

Test(xdr, random_bytes)
{
    uint8_t buf[512];
    unsigned refused = 0;

    srand(3);
    for (int round = 0; round < 20000; round++) {
        size_t len = 4 * (size_t)(rand() % 128);

        for (size_t i = 0; i < len; i++)
            buf[i] = rand() % 3 ? 0 : (uint8_t)((unsigned)rand() % 64);
        refused += !decode(1 + (unsigned)rand() % (NFS3_PROCS - 1), buf, len);
    }
    cr_assert_gt(refused, 1000);
}

Test(xdr, unknown_discriminants_are_garbage)
{
    uint8_t buf[1024];
    size_t len = sample(8, buf, sizeof(buf));
    size_t mode_at = 4 + 40 + 4 + 4;

    cr_assert(decode(8, buf, len));
    buf[mode_at + 3] = 3;
    cr_assert_not(decode(8, buf, len), "createmode3 3");
}

/* ---- attributes ---- */

Test(xdr, times_are_clamped)
{
    nfstime3 t = nfs3_time(-1);

    cr_assert(t.seconds == 0 && t.nseconds == 0);
    t = nfs3_time(INT64_MAX);
    cr_assert(t.seconds == UINT32_MAX && t.nseconds == 999999999);
    t = nfs3_time((int64_t)UINT32_MAX * 1000000000 + 999999999);
    cr_assert(t.seconds == UINT32_MAX && t.nseconds == 999999999);
    t = nfs3_time(1234567890123456789);
    cr_assert(t.seconds == 1234567890 && t.nseconds == 123456789);
}

Test(xdr, nanoseconds_out_of_range_are_invalid)
{
    sattr3 a = all_set();
    Hf__SetAttrs set;

    cr_assert_eq(nfs3_sattr(&a, &set), 0);
    cr_assert_eq(set.mtime_ns, 1000000002);
    cr_assert_eq(set.set_atime, HF__SET_TIME__TIME_SERVER);
    cr_assert_eq(set.set_mtime, HF__SET_TIME__TIME_CLIENT);
    cr_assert(set.set_size && set.size == 1ull << 40);
    a.mtime.set_time3_u.time.nseconds = 1000000000;
    cr_assert_eq(nfs3_sattr(&a, &set), HF_E_INVAL);
    a.mtime.set_time3_u.time = (nfstime3){UINT32_MAX, 999999999};
    cr_assert_eq(nfs3_sattr(&a, &set), 0);
    cr_assert_eq(set.mtime_ns, (int64_t)UINT32_MAX * 1000000000 + 999999999);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Every procedure on a real socket over the fake vfs: results decoded with the generated XDR,
 * failures with their attributes.
 */
#include <criterion/criterion.h>

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "readdir_budget.h"
#include "support_procs.h"

TestSuite(procs, .init = procs_start, .fini = procs_stop);

static void set_status(struct fake *f, void *arg)
{
    f->status = *(int *)arg;
}

static void set_bare(struct fake *f, void *arg)
{
    f->bare_errors = *(bool *)arg;
}

static void status(int rc)
{
    fake_set(set_status, &rc);
}

/* ---- successes ---- */

Test(procs, getattr_setattr_lookup_access_readlink)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    procs_any_call(&c, 1);
    procs_call(&c, 1, &r, &res);
    cr_assert_eq(res.getattr.status, NFS3_OK);
    cr_assert_eq(res.getattr.GETATTR3res_u.obj_attributes.fileid, 100);
    cr_assert_eq(r.n, 24 + 4 + NFS_FATTR3_BYTES);
    reply_free(&r);

    procs_begin(&c, 2, 100);
    procs_zeros(&c, 6);
    call_u32(&c, 1);
    call_u32(&c, 12);
    call_u32(&c, 34);
    procs_call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3_OK);
    procs_check_wcc(&res.setattr.obj_wcc, 100);
    cr_assert(fake_get().guard && fake_get().guard_ns == 12000000034);
    reply_free(&r);

    procs_any_call(&c, 3);
    procs_call(&c, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3_OK);
    procs_check_fh(res.lookup.LOOKUP3res_u.resok.object, 200);
    procs_check_attr(&res.lookup.LOOKUP3res_u.resok.obj_attributes, 200);
    procs_check_attr(&res.lookup.LOOKUP3res_u.resok.dir_attributes, 100);
    reply_free(&r);

    procs_begin(&c, 4, 100);
    call_u32(&c, 0x25);
    procs_call(&c, 4, &r, &res);
    cr_assert_eq(res.access.ACCESS3res_u.resok.access, 0x25, "never more than was asked for");
    procs_check_attr(&res.access.ACCESS3res_u.resok.obj_attributes, 100);
    reply_free(&r);

    procs_any_call(&c, 5);
    procs_call(&c, 5, &r, &res);
    cr_assert(hf_slice_eq(res.readlink.READLINK3res_u.resok.data, hf_slice_str("ttttttttttt")));
    procs_check_attr(&res.readlink.READLINK3res_u.resok.symlink_attributes, 100);
    reply_free(&r);
}

static void set_read(struct fake *f, void *arg)
{
    f->read_bytes = *(uint32_t *)arg;
}

static void set_zeros(struct fake *f, void *arg)
{
    f->read_zeros = *(bool *)arg;
}

static void check_read(uint32_t size, uint32_t count, bool holes)
{
    uint32_t want = count < size ? count : size;
    struct call_buf c;
    struct reply r;
    union nfs_res res;
    const READ3resok *ok = &res.read.READ3res_u.resok;
    const uint8_t *data;

    want = want < (1u << 20) ? want : 1u << 20;
    fake_set(set_read, &size);
    fake_set(set_zeros, &holes);
    procs_begin(&c, 6, 100);
    procs_zeros(&c, 2);
    call_u32(&c, count);
    procs_call(&c, 6, &r, &res);
    cr_assert_eq(res.read.status, NFS3_OK);
    cr_assert_eq(ok->count, want);
    cr_assert_eq(ok->data_len, want);
    cr_assert_eq((bool)ok->eof, want == size);
    procs_check_attr(&ok->file_attributes, 100);
    cr_assert_eq(r.n, 24 + 4 + 88 + 12 + ((want + 3) & ~3u));
    data = r.b + 24 + 4 + 88 + 12;
    for (uint32_t i = 0; i < want; i++) {
        bool hole = holes && want >= 3 && i >= want / 3 && i < 2 * (want / 3);

        cr_assert_eq(data[i], hole ? 0 : fake_byte(i), "byte %u of %u", i, want);
    }
    reply_free(&r);
}

Test(procs, read)
{
    static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 4095, 8191, 8192, 8193, 65537, 300001};

    for (size_t i = 0; i < HF_ARRAY_LEN(sizes); i++) {
        check_read(sizes[i], 1u << 20, false);
        check_read(sizes[i], 1u << 20, true);
        check_read(sizes[i], 100, false);
        check_read(sizes[i], 0, false);
    }
    check_read(1u << 20, 1u << 20, false);
    check_read((1u << 20) + 5, UINT32_MAX, true);
    cr_assert_eq(fake_get().msg_refs, 0, "every message was given back");
}

static void check_write(uint32_t len, uint32_t stable)
{
    static uint8_t data[1100000];
    const uint32_t want = len < (1u << 20) ? len : 1u << 20;
    struct call_buf c;
    struct reply r;
    union nfs_res res;
    uint8_t mark[4];

    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 13);
    procs_begin(&c, 7, 100);
    procs_zeros(&c, 2);
    call_u32(&c, len);
    call_u32(&c, stable);
    call_u32(&c, len);
    hf_put_be32(mark, 0x80000000u | (uint32_t)(c.n + ((len + 3) & ~3u)));
    client_send(procs()->fd, mark, 4);
    client_send(procs()->fd, c.b, c.n);
    client_send(procs()->fd, data, (len + 3) & ~3u);
    client_recv_ok(procs()->fd, procs()->xid, &r);
    cr_assert(procs_decode(7, &r.x, &res));
    cr_assert_eq(res.write.status, NFS3_OK);
    cr_assert_eq(res.write.WRITE3res_u.resok.count, want);
    cr_assert_eq(res.write.WRITE3res_u.resok.committed, stable ? FILE_SYNC : UNSTABLE);
    cr_assert_eq(memcmp(res.write.WRITE3res_u.resok.verf, "\1\2\3\4\5\6\7\10", 8), 0);
    procs_check_wcc(&res.write.WRITE3res_u.resok.file_wcc, 100);
    cr_assert_eq(fake_get().write_len, want);
    cr_assert_eq(fake_get().write_crc, hf_crc32c(0, data, want));
    cr_assert_eq(fake_get().write_stable, stable ? HF__STABLE__FILE_SYNC : HF__STABLE__UNSTABLE);
    reply_free(&r);
}

Test(procs, write)
{
    static const uint32_t sizes[] = {0,    1,     3,     4,      200,      449,
                                     4096, 40000, 65536, 200000, 1u << 20, (1u << 20) + 8};

    for (size_t i = 0; i < HF_ARRAY_LEN(sizes); i++)
        for (uint32_t stable = 0; stable < 3; stable++)
            check_write(sizes[i], stable);
}

static void expect_garbage(const struct call_buf *c)
{
    struct reply r;

    client_call(procs()->fd, c);
    cr_assert(client_recv(procs()->fd, &r));
    cr_assert_eq(r.n, 24);
    cr_assert_eq(reply_word(&r, 5), ONC_GARBAGE_ARGS);
    reply_free(&r);
}

Test(procs, write_that_contradicts_itself)
{
    struct call_buf c;

    procs_begin(&c, 7, 100);
    procs_zeros(&c, 2);
    call_u32(&c, 6);
    call_u32(&c, 0);
    call_bytes(&c, "12345", 5);
    expect_garbage(&c);
    procs_begin(&c, 7, 100);
    procs_zeros(&c, 2);
    call_u32(&c, 5);
    call_u32(&c, 3);
    call_bytes(&c, "12345", 5);
    expect_garbage(&c);
    cr_assert_eq(fake_get().calls, 0);
}

Test(procs, create_in_three_modes_and_its_kin)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    for (uint32_t mode = 0; mode < 3; mode++) {
        procs_begin(&c, 8, 100);
        call_bytes(&c, "name", 4);
        call_u32(&c, mode);
        if (mode == 2) {
            call_u32(&c, 0xfedcba98);
            call_u32(&c, 0x76543210);
        } else {
            procs_zeros(&c, 6);
        }
        procs_call(&c, 8, &r, &res);
        cr_assert_eq(res.create.status, NFS3_OK);
        procs_check_fh(res.create.CREATE3res_u.resok.obj.post_op_fh3_u.handle, 200);
        procs_check_attr(&res.create.CREATE3res_u.resok.obj_attributes, 200);
        procs_check_wcc(&res.create.CREATE3res_u.resok.dir_wcc, 100);
        cr_assert_eq(fake_get().how, mode);
        cr_assert_eq(fake_get().verf, mode == 2 ? 0xfedcba9876543210u : 0);
        reply_free(&r);
    }
    for (uint32_t proc = 9; proc <= 11; proc++) {
        procs_any_call(&c, proc);
        procs_call(&c, proc, &r, &res);
        cr_assert_eq(res.create.status, NFS3_OK);
        procs_check_fh(res.create.CREATE3res_u.resok.obj.post_op_fh3_u.handle, 200);
        procs_check_wcc(&res.create.CREATE3res_u.resok.dir_wcc, 100);
        reply_free(&r);
    }
    for (uint32_t type = 0; type < 9; type++) {
        bool device = type == NF3BLK || type == NF3CHR, pipe = type == NF3SOCK || type == NF3FIFO;

        procs_begin(&c, 11, 100);
        call_bytes(&c, "name", 4);
        call_u32(&c, type);
        procs_zeros(&c, device ? 8 : pipe ? 6 : 0);
        procs_call(&c, 11, &r, &res);
        cr_assert_eq(res.mknod.status, device || pipe ? NFS3_OK : NFS3ERR_BADTYPE, "type %u", type);
        if (!device && !pipe)
            procs_check_attr(&res.mknod.CREATE3res_u.dir_wcc.after, 100);
        reply_free(&r);
    }
}

Test(procs, remove_rename_link_commit)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    for (uint32_t proc = 12; proc <= 13; proc++) {
        procs_any_call(&c, proc);
        procs_call(&c, proc, &r, &res);
        cr_assert_eq(res.remove.status, NFS3_OK);
        procs_check_wcc(&res.remove.dir_wcc, 100);
        reply_free(&r);
    }
    procs_any_call(&c, 14);
    procs_call(&c, 14, &r, &res);
    cr_assert_eq(res.rename.status, NFS3_OK);
    procs_check_wcc(&res.rename.fromdir_wcc, 100);
    procs_check_wcc(&res.rename.todir_wcc, 100);
    reply_free(&r);
    procs_any_call(&c, 15);
    procs_call(&c, 15, &r, &res);
    cr_assert_eq(res.link.status, NFS3_OK);
    procs_check_attr(&res.link.file_attributes, 100);
    procs_check_wcc(&res.link.linkdir_wcc, 100);
    reply_free(&r);
    procs_any_call(&c, 21);
    procs_call(&c, 21, &r, &res);
    cr_assert_eq(res.commit.status, NFS3_OK);
    procs_check_wcc(&res.commit.COMMIT3res_u.resok.file_wcc, 100);
    cr_assert_eq(memcmp(res.commit.COMMIT3res_u.resok.verf, "\1\2\3\4\5\6\7\10", 8), 0);
    reply_free(&r);
}

Test(procs, fsstat_fsinfo_pathconf)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;
    const FSINFO3resok *info = &res.fsinfo.FSINFO3res_u.resok;
    const PATHCONF3resok *conf = &res.pathconf.PATHCONF3res_u.resok;
    const FSSTAT3resok *stat = &res.fsstat.FSSTAT3res_u.resok;

    procs_any_call(&c, 18);
    procs_call(&c, 18, &r, &res);
    cr_assert_eq(res.fsstat.status, NFS3_OK);
    cr_assert(stat->tbytes == 1000 && stat->fbytes == 400 && stat->abytes == 400);
    cr_assert(stat->tfiles == 50 && stat->ffiles == 20 && stat->afiles == 20);
    procs_check_attr(&stat->obj_attributes, 100);
    reply_free(&r);
    procs_any_call(&c, 19);
    procs_call(&c, 19, &r, &res);
    cr_assert_eq(res.fsinfo.status, NFS3_OK);
    cr_assert(info->rtmax == 1u << 20 && info->wtmax == 1u << 20 && info->rtpref == 1u << 20);
    cr_assert(info->time_delta.seconds == 0 && info->time_delta.nseconds == 1);
    cr_assert_eq(info->properties, 0x1b);
    cr_assert_geq(info->maxfilesize, 1ull << 53);
    procs_check_attr(&info->obj_attributes, 100);
    reply_free(&r);
    procs_any_call(&c, 20);
    procs_call(&c, 20, &r, &res);
    cr_assert_eq(res.pathconf.status, NFS3_OK);
    cr_assert(conf->name_max == 255 && conf->linkmax == 65000 && conf->no_trunc);
    cr_assert(conf->chown_restricted && !conf->case_insensitive && conf->case_preserving);
    procs_check_attr(&conf->obj_attributes, 100);
    reply_free(&r);
}

/* ---- failures ---- */

static const post_op_attr *failure_attr(uint32_t proc, const union nfs_res *res)
{
    switch (nfs3_procs[proc].failure) {
    case NFS_FAIL_ATTR:
        return &res->lookup.LOOKUP3res_u.dir_attributes;
    case NFS_FAIL_WCC:
        return &res->setattr.obj_wcc.after;
    case NFS_FAIL_RENAME:
        return &res->rename.fromdir_wcc.after;
    case NFS_FAIL_LINK:
        return &res->link.file_attributes;
    case NFS_FAIL_NONE:
        break;
    }
    return NULL;
}

static void check_failures(bool bare)
{
    fake_set(set_bare, &bare);
    status(HF_E_ACCES);
    for (uint32_t proc = 2; proc < NFS3_PROCS; proc++) {
        struct call_buf c;
        struct reply r;
        union nfs_res res;

        if (proc == 19 || proc == 20)
            continue; /* getattr for the vfs */
        procs_any_call(&c, proc);
        procs_call(&c, proc, &r, &res);
        cr_assert_eq(res.getattr.status, NFS3ERR_ACCES, "%s", nfs3_procs[proc].name);
        cr_assert(failure_attr(proc, &res)->attributes_follow, "%s: attributes with the error",
                  nfs3_procs[proc].name);
        cr_assert_eq(failure_attr(proc, &res)->post_op_attr_u.attributes.fileid, 100);
        if (bare && proc == 14)
            cr_assert_eq(res.rename.todir_wcc.after.post_op_attr_u.attributes.fileid, 101);
        if (bare && proc == 15)
            cr_assert_eq(res.link.linkdir_wcc.after.post_op_attr_u.attributes.fileid, 101);
        cr_assert_eq(xdr_getpos(&r.x), r.n - 24, "%s: nothing follows", nfs3_procs[proc].name);
        reply_free(&r);
    }
}

Test(procs, failures_carry_attributes)
{
    check_failures(false);
}

Test(procs, failures_without_a_reply_body_carry_attributes_too)
{
    check_failures(true);
}

Test(procs, bad_handles)
{
    for (uint32_t proc = 1; proc < NFS3_PROCS; proc++) {
        struct call_buf c;
        struct reply r;
        union nfs_res res;

        procs_any_call(&c, proc);
        c.b[60 + 4 + 8] ^= 1; /* in the handle */
        procs_call(&c, proc, &r, &res);
        cr_assert_eq(res.getattr.status, NFS3ERR_BADHANDLE, "%s", nfs3_procs[proc].name);
        cr_assert_eq(xdr_getpos(&r.x), r.n - 24);
        reply_free(&r);
    }
    cr_assert_eq(fake_get().calls, 0);
}

Test(procs, statuses_a_procedure_may_not_return_are_folded)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    status(HF_E_NOTEMPTY);
    procs_any_call(&c, 6);
    procs_call(&c, 6, &r, &res);
    cr_assert_eq(res.read.status, NFS3ERR_SERVERFAULT);
    cr_assert_eq(gateway_counter(&procs()->g, "status_folded"), 1);
    reply_free(&r);
}

Test(procs, names_too_long_reach_the_file_system)
{
    static const char name[2000];
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    status(HF_E_NAMETOOLONG);
    procs_begin(&c, 3, 100);
    call_bytes(&c, name, 2000);
    procs_call(&c, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3ERR_NAMETOOLONG);
    cr_assert_eq(fake_get().name_len, 2000);
    reply_free(&r);
}

Test(procs, setattr_times_out_of_range)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    procs_begin(&c, 2, 100);
    procs_zeros(&c, 5);
    call_u32(&c, SET_TO_CLIENT_TIME);
    call_u32(&c, 5);
    call_u32(&c, 1000000000);
    procs_zeros(&c, 1);
    procs_call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3ERR_INVAL);
    procs_check_attr(&res.setattr.obj_wcc.after, 100);
    reply_free(&r);
    procs_begin(&c, 2, 100);
    procs_zeros(&c, 6);
    call_u32(&c, 1);
    call_u32(&c, 5);
    call_u32(&c, 0xffffffff);
    procs_call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3ERR_INVAL);
    reply_free(&r);
    cr_assert_eq(fake_get().changes, 0);
}

Test(procs, auth_none_is_the_anonymous_user)
{
    struct call_buf c, none;
    struct reply r;
    union nfs_res res;

    procs_any_call(&c, 3);
    /* The header with flavor 0 instead of the 20 bytes of AUTH_SYS. */
    memcpy(none.b, c.b, 24);
    none.n = 24;
    call_u32(&none, 0);
    call_u32(&none, 0);
    memcpy(none.b + none.n, c.b + 52, c.n - 52);
    none.n += c.n - 52;
    procs_call(&none, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3_OK);
    cr_assert_eq(fake_get().uid, 65534);
    cr_assert_eq(fake_get().gid, 65533);
    reply_free(&r);
}

/* Many calls at once on one connection: each gets its own answer. */
Test(procs, pipelined_calls)
{
    bool seen[400] = {false};
    struct call_buf c;

    for (uint32_t i = 0; i < 400; i++) {
        call_begin(&c, 5000 + i, NFS_PROGRAM, 3, 1);
        call_fh(&c, 10000 + i);
        client_call(procs()->fd, &c);
    }
    for (uint32_t i = 0; i < 400; i++) {
        struct reply r;
        union nfs_res res;

        cr_assert(client_recv(procs()->fd, &r));
        cr_assert(r.xid >= 5000 && r.xid < 5400 && !seen[r.xid - 5000]);
        seen[r.xid - 5000] = true;
        cr_assert(procs_decode(1, &r.x, &res));
        cr_assert_eq(res.getattr.status, NFS3_OK);
        reply_free(&r);
    }
}

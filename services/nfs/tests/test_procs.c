/* SPDX-License-Identifier: Apache-2.0
 *
 * Every procedure on a real socket over the fake vfs: results decoded with the generated XDR,
 * failures with their attributes.
 */
#include <criterion/criterion.h>
#include <unistd.h>

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "readdir_budget.h"
#include "support_client.h"

static struct gateway g;
static int fd;
static uint32_t xid;

static void start(void)
{
    gateway_start(&g, NULL);
    fd = client_connect(&g);
    xid = 1;
}

static void stop(void)
{
    close(fd);
    gateway_stop(&g);
}

TestSuite(procs, .init = start, .fini = stop);

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

static void begin(struct call_buf *c, uint32_t proc, uint64_t ino)
{
    call_begin(c, ++xid, NFS_PROGRAM, 3, proc);
    call_fh(c, ino);
}

static void zeros(struct call_buf *c, unsigned words)
{
    while (words--)
        call_u32(c, 0);
}

/* A plain valid call of every procedure, on object 100. */
static void any_call(struct call_buf *c, uint32_t proc)
{
    begin(c, proc, 100);
    switch (proc) {
    case 2:
        zeros(c, 7);
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
        zeros(c, 2);
        call_u32(c, 4096);
        break;
    case 7:
        zeros(c, 2);
        call_u32(c, 5);
        call_u32(c, 0);
        call_bytes(c, "12345", 5);
        break;
    case 8:
        call_bytes(c, "name", 4);
        zeros(c, 7);
        break;
    case 9:
        call_bytes(c, "name", 4);
        zeros(c, 6);
        break;
    case 10:
        call_bytes(c, "name", 4);
        zeros(c, 6);
        call_bytes(c, "target", 6);
        break;
    case 11:
        call_bytes(c, "name", 4);
        call_u32(c, NF3FIFO);
        zeros(c, 6);
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
        zeros(c, 4);
        call_u32(c, 4096);
        break;
    case 17:
        zeros(c, 4);
        call_u32(c, 4096);
        call_u32(c, 8192);
        break;
    case 21:
        zeros(c, 3);
        break;
    default:
        break;
    }
}

static bool decode(uint32_t proc, XDR *x, union nfs_res *res)
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

/* Calls and decodes; the reply stays in *r, its stream after the decoded part. */
static void call(const struct call_buf *c, uint32_t proc, struct reply *r, union nfs_res *res)
{
    client_call(fd, c);
    client_recv_ok(fd, xid, r);
    cr_assert(decode(proc, &r->x, res), "procedure %u", proc);
}

static void check_attr(const post_op_attr *a, uint64_t ino)
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

static void check_wcc(const wcc_data *w, uint64_t ino)
{
    cr_assert(w->before.attributes_follow);
    cr_assert_eq(w->before.pre_op_attr_u.attributes.size, 1);
    check_attr(&w->after, ino);
}

static void check_fh(struct hf_slice fh, uint64_t ino)
{
    uint8_t want[FAKE_FH_BYTES];

    fake_fh(ino, want);
    cr_assert(hf_slice_eq(fh, hf_slice(want, FAKE_FH_BYTES)));
}

/* ---- successes ---- */

Test(procs, getattr_setattr_lookup_access_readlink)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    any_call(&c, 1);
    call(&c, 1, &r, &res);
    cr_assert_eq(res.getattr.status, NFS3_OK);
    cr_assert_eq(res.getattr.GETATTR3res_u.obj_attributes.fileid, 100);
    cr_assert_eq(r.n, 24 + 4 + NFS_FATTR3_BYTES);
    reply_free(&r);

    begin(&c, 2, 100);
    zeros(&c, 6);
    call_u32(&c, 1);
    call_u32(&c, 12);
    call_u32(&c, 34);
    call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3_OK);
    check_wcc(&res.setattr.obj_wcc, 100);
    cr_assert(fake_get().guard && fake_get().guard_ns == 12000000034);
    reply_free(&r);

    any_call(&c, 3);
    call(&c, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3_OK);
    check_fh(res.lookup.LOOKUP3res_u.resok.object, 200);
    check_attr(&res.lookup.LOOKUP3res_u.resok.obj_attributes, 200);
    check_attr(&res.lookup.LOOKUP3res_u.resok.dir_attributes, 100);
    reply_free(&r);

    begin(&c, 4, 100);
    call_u32(&c, 0x25);
    call(&c, 4, &r, &res);
    cr_assert_eq(res.access.ACCESS3res_u.resok.access, 0x25, "never more than was asked for");
    check_attr(&res.access.ACCESS3res_u.resok.obj_attributes, 100);
    reply_free(&r);

    any_call(&c, 5);
    call(&c, 5, &r, &res);
    cr_assert(hf_slice_eq(res.readlink.READLINK3res_u.resok.data, hf_slice_str("ttttttttttt")));
    check_attr(&res.readlink.READLINK3res_u.resok.symlink_attributes, 100);
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
    begin(&c, 6, 100);
    zeros(&c, 2);
    call_u32(&c, count);
    call(&c, 6, &r, &res);
    cr_assert_eq(res.read.status, NFS3_OK);
    cr_assert_eq(ok->count, want);
    cr_assert_eq(ok->data_len, want);
    cr_assert_eq((bool)ok->eof, want == size);
    check_attr(&ok->file_attributes, 100);
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
    begin(&c, 7, 100);
    zeros(&c, 2);
    call_u32(&c, len);
    call_u32(&c, stable);
    call_u32(&c, len);
    hf_put_be32(mark, 0x80000000u | (uint32_t)(c.n + ((len + 3) & ~3u)));
    client_send(fd, mark, 4);
    client_send(fd, c.b, c.n);
    client_send(fd, data, (len + 3) & ~3u);
    client_recv_ok(fd, xid, &r);
    cr_assert(decode(7, &r.x, &res));
    cr_assert_eq(res.write.status, NFS3_OK);
    cr_assert_eq(res.write.WRITE3res_u.resok.count, want);
    cr_assert_eq(res.write.WRITE3res_u.resok.committed, stable ? FILE_SYNC : UNSTABLE);
    cr_assert_eq(memcmp(res.write.WRITE3res_u.resok.verf, "\1\2\3\4\5\6\7\10", 8), 0);
    check_wcc(&res.write.WRITE3res_u.resok.file_wcc, 100);
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

    client_call(fd, c);
    cr_assert(client_recv(fd, &r));
    cr_assert_eq(r.n, 24);
    cr_assert_eq(reply_word(&r, 5), ONC_GARBAGE_ARGS);
    reply_free(&r);
}

Test(procs, write_that_contradicts_itself)
{
    struct call_buf c;

    begin(&c, 7, 100);
    zeros(&c, 2);
    call_u32(&c, 6);
    call_u32(&c, 0);
    call_bytes(&c, "12345", 5);
    expect_garbage(&c);
    begin(&c, 7, 100);
    zeros(&c, 2);
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
        begin(&c, 8, 100);
        call_bytes(&c, "name", 4);
        call_u32(&c, mode);
        if (mode == 2) {
            call_u32(&c, 0xfedcba98);
            call_u32(&c, 0x76543210);
        } else {
            zeros(&c, 6);
        }
        call(&c, 8, &r, &res);
        cr_assert_eq(res.create.status, NFS3_OK);
        check_fh(res.create.CREATE3res_u.resok.obj.post_op_fh3_u.handle, 200);
        check_attr(&res.create.CREATE3res_u.resok.obj_attributes, 200);
        check_wcc(&res.create.CREATE3res_u.resok.dir_wcc, 100);
        cr_assert_eq(fake_get().how, mode);
        cr_assert_eq(fake_get().verf, mode == 2 ? 0xfedcba9876543210u : 0);
        reply_free(&r);
    }
    for (uint32_t proc = 9; proc <= 11; proc++) {
        any_call(&c, proc);
        call(&c, proc, &r, &res);
        cr_assert_eq(res.create.status, NFS3_OK);
        check_fh(res.create.CREATE3res_u.resok.obj.post_op_fh3_u.handle, 200);
        check_wcc(&res.create.CREATE3res_u.resok.dir_wcc, 100);
        reply_free(&r);
    }
    for (uint32_t type = 0; type < 9; type++) {
        bool device = type == NF3BLK || type == NF3CHR, pipe = type == NF3SOCK || type == NF3FIFO;

        begin(&c, 11, 100);
        call_bytes(&c, "name", 4);
        call_u32(&c, type);
        zeros(&c, device ? 8 : pipe ? 6 : 0);
        call(&c, 11, &r, &res);
        cr_assert_eq(res.mknod.status, device || pipe ? NFS3_OK : NFS3ERR_BADTYPE, "type %u", type);
        if (!device && !pipe)
            check_attr(&res.mknod.CREATE3res_u.dir_wcc.after, 100);
        reply_free(&r);
    }
}

Test(procs, remove_rename_link_commit)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    for (uint32_t proc = 12; proc <= 13; proc++) {
        any_call(&c, proc);
        call(&c, proc, &r, &res);
        cr_assert_eq(res.remove.status, NFS3_OK);
        check_wcc(&res.remove.dir_wcc, 100);
        reply_free(&r);
    }
    any_call(&c, 14);
    call(&c, 14, &r, &res);
    cr_assert_eq(res.rename.status, NFS3_OK);
    check_wcc(&res.rename.fromdir_wcc, 100);
    check_wcc(&res.rename.todir_wcc, 100);
    reply_free(&r);
    any_call(&c, 15);
    call(&c, 15, &r, &res);
    cr_assert_eq(res.link.status, NFS3_OK);
    check_attr(&res.link.file_attributes, 100);
    check_wcc(&res.link.linkdir_wcc, 100);
    reply_free(&r);
    any_call(&c, 21);
    call(&c, 21, &r, &res);
    cr_assert_eq(res.commit.status, NFS3_OK);
    check_wcc(&res.commit.COMMIT3res_u.resok.file_wcc, 100);
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

    any_call(&c, 18);
    call(&c, 18, &r, &res);
    cr_assert_eq(res.fsstat.status, NFS3_OK);
    cr_assert(stat->tbytes == 1000 && stat->fbytes == 400 && stat->abytes == 400);
    cr_assert(stat->tfiles == 50 && stat->ffiles == 20 && stat->afiles == 20);
    check_attr(&stat->obj_attributes, 100);
    reply_free(&r);
    any_call(&c, 19);
    call(&c, 19, &r, &res);
    cr_assert_eq(res.fsinfo.status, NFS3_OK);
    cr_assert(info->rtmax == 1u << 20 && info->wtmax == 1u << 20 && info->rtpref == 1u << 20);
    cr_assert(info->time_delta.seconds == 0 && info->time_delta.nseconds == 1);
    cr_assert_eq(info->properties, 0x1b);
    cr_assert_geq(info->maxfilesize, 1ull << 53);
    check_attr(&info->obj_attributes, 100);
    reply_free(&r);
    any_call(&c, 20);
    call(&c, 20, &r, &res);
    cr_assert_eq(res.pathconf.status, NFS3_OK);
    cr_assert(conf->name_max == 255 && conf->linkmax == 65000 && conf->no_trunc);
    cr_assert(conf->chown_restricted && !conf->case_insensitive && conf->case_preserving);
    check_attr(&conf->obj_attributes, 100);
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
        any_call(&c, proc);
        call(&c, proc, &r, &res);
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

        any_call(&c, proc);
        c.b[60 + 4 + 8] ^= 1; /* in the handle */
        call(&c, proc, &r, &res);
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
    any_call(&c, 6);
    call(&c, 6, &r, &res);
    cr_assert_eq(res.read.status, NFS3ERR_SERVERFAULT);
    cr_assert_eq(gateway_counter(&g, "status_folded"), 1);
    reply_free(&r);
}

Test(procs, names_too_long_reach_the_file_system)
{
    static const char name[2000];
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    status(HF_E_NAMETOOLONG);
    begin(&c, 3, 100);
    call_bytes(&c, name, 2000);
    call(&c, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3ERR_NAMETOOLONG);
    cr_assert_eq(fake_get().name_len, 2000);
    reply_free(&r);
}

Test(procs, setattr_times_out_of_range)
{
    struct call_buf c;
    struct reply r;
    union nfs_res res;

    begin(&c, 2, 100);
    zeros(&c, 5);
    call_u32(&c, SET_TO_CLIENT_TIME);
    call_u32(&c, 5);
    call_u32(&c, 1000000000);
    zeros(&c, 1);
    call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3ERR_INVAL);
    check_attr(&res.setattr.obj_wcc.after, 100);
    reply_free(&r);
    begin(&c, 2, 100);
    zeros(&c, 6);
    call_u32(&c, 1);
    call_u32(&c, 5);
    call_u32(&c, 0xffffffff);
    call(&c, 2, &r, &res);
    cr_assert_eq(res.setattr.status, NFS3ERR_INVAL);
    reply_free(&r);
    cr_assert_eq(fake_get().changes, 0);
}

Test(procs, auth_none_is_the_anonymous_user)
{
    struct call_buf c, none;
    struct reply r;
    union nfs_res res;

    any_call(&c, 3);
    /* The header with flavor 0 instead of the 20 bytes of AUTH_SYS. */
    memcpy(none.b, c.b, 24);
    none.n = 24;
    call_u32(&none, 0);
    call_u32(&none, 0);
    memcpy(none.b + none.n, c.b + 52, c.n - 52);
    none.n += c.n - 52;
    call(&none, 3, &r, &res);
    cr_assert_eq(res.lookup.status, NFS3_OK);
    cr_assert_eq(fake_get().uid, 65534);
    cr_assert_eq(fake_get().gid, 65533);
    reply_free(&r);
}

/* ---- directories ---- */

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

    begin(&c, proc, FAKE_ROOT);
    call_u32(&c, (uint32_t)(cookie >> 32));
    call_u32(&c, (uint32_t)cookie);
    call_u32(&c, 0xdead); /* any verifier will do */
    call_u32(&c, 0xbeef);
    if (plus)
        call_u32(&c, dircount);
    call_u32(&c, count);
    call(&c, proc, &r, &res);
    cr_assert_eq(res.readdir.status, NFS3_OK);
    check_attr(&res.readdir.READDIR3res_u.resok.dir_attributes, FAKE_ROOT);
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
            check_attr(&e.name_attributes, e.entry.fileid);
            check_fh(e.name_handle.post_op_fh3_u.handle, e.entry.fileid);
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

Test(procs, readdir_pages)
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

Test(procs, readdir_of_every_small_count)
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

            begin(&c, proc, FAKE_ROOT);
            zeros(&c, 4);
            if (proc == 17)
                call_u32(&c, 4096);
            call_u32(&c, count);
            call(&c, proc, &r, &res);
            cr_assert_eq(res.readdir.status, count < need ? NFS3ERR_TOOSMALL : NFS3_OK,
                         "%u: count %u", proc, count);
            if (count < need)
                check_attr(&res.readdir.READDIR3res_u.dir_attributes, FAKE_ROOT);
            reply_free(&r);
        }
    }
}

/* ---- MOUNT ---- */

static void mount_begin(struct call_buf *c, uint32_t proc)
{
    call_begin(c, ++xid, MOUNT_PROGRAM, 3, proc);
}

static size_t dump_entries(void)
{
    struct call_buf c;
    struct reply r;
    bool_t more;
    size_t n = 0;

    mount_begin(&c, 2);
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
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
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
    cr_assert(xdr_MNT3res(&r.x, &res));
    if (res.status == MNT3_OK) {
        check_fh(res.MNT3res_u.resok.fhandle, FAKE_ROOT);
        cr_assert_geq(res.MNT3res_u.resok.auth_flavors.auth_flavors_len, 1);
        cr_assert_eq(res.MNT3res_u.resok.auth_flavors.auth_flavors_val[0], 1, "AUTH_SYS first");
        xdr_free((xdrproc_t)(void (*)(void))xdr_MNT3res, &res);
    }
    reply_free(&r);
    return res.status;
}

Test(procs, mount)
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
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
    cr_assert_eq(r.n, 24);
    reply_free(&r);
    cr_assert_eq(dump_entries(), 0);

    cr_assert_eq(mount_path("/main", 5), MNT3_OK);
    mount_begin(&c, 4);
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
    reply_free(&r);
    cr_assert_eq(dump_entries(), 0);

    mount_begin(&c, 5);
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
    cr_assert(xdr_bool(&r.x, &more) && more && xdr_nfspath3(&r.x, &s));
    cr_assert(hf_slice_eq(s, hf_slice_str("/main")));
    cr_assert(xdr_bool(&r.x, &more) && more && xdr_nfspath3(&r.x, &s));
    cr_assert(hf_slice_eq(s, hf_slice_str("127.0.0.0/8")));
    cr_assert(xdr_bool(&r.x, &more) && !more && xdr_bool(&r.x, &more) && !more);
    cr_assert_eq(xdr_getpos(&r.x), r.n - 24);
    reply_free(&r);
}

Test(procs, mount_list_is_bounded)
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

/* Many calls at once on one connection: each gets its own answer. */
Test(procs, pipelined_calls)
{
    bool seen[400] = {false};
    struct call_buf c;

    for (uint32_t i = 0; i < 400; i++) {
        call_begin(&c, 5000 + i, NFS_PROGRAM, 3, 1);
        call_fh(&c, 10000 + i);
        client_call(fd, &c);
    }
    for (uint32_t i = 0; i < 400; i++) {
        struct reply r;
        union nfs_res res;

        cr_assert(client_recv(fd, &r));
        cr_assert(r.xid >= 5000 && r.xid < 5400 && !seen[r.xid - 5000]);
        seen[r.xid - 5000] = true;
        cr_assert(decode(1, &r.x, &res));
        cr_assert_eq(res.getattr.status, NFS3_OK);
        reply_free(&r);
    }
}

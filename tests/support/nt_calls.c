/* SPDX-License-Identifier: Apache-2.0 */
#include "nt_priv.h"

#include <stdlib.h>
#include <string.h>

static void null_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    (void)rpc;
    (void)data;
    nt_p_got(arg, status);
}

uint32_t nt_null(struct nt *c)
{
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_null_async(c->rpc, null_cb, c), "NULL");
}

static void getattr_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    GETATTR3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        if (res->status == NFS3_OK) {
            c->r.have_attr = true;
            c->r.attr = res->GETATTR3res_u.resok.obj_attributes;
        }
    }
}

uint32_t nt_getattr(struct nt *c, const struct nt_fh *fh)
{
    GETATTR3args a = {.object = nt_p_fh_arg(fh)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_getattr_async(c->rpc, getattr_cb, &a, c), "GETATTR");
}

static void setattr_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    SETATTR3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        /* resok and resfail have the same layout */
        nt_p_copy_wcc(&c->r.wcc, &res->SETATTR3res_u.resok.obj_wcc);
    }
}

uint32_t nt_setattr(struct nt *c, const struct nt_fh *fh, const struct nt_set *set,
                    const nfstime3 *guard)
{
    SETATTR3args a;

    memset(&a, 0, sizeof(a));
    a.object = nt_p_fh_arg(fh);
    a.new_attributes = nt_p_sattr_arg(set);
    if (guard != NULL) {
        a.guard.check = 1;
        a.guard.sattrguard3_u.obj_ctime = *guard;
    }
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_setattr_async(c->rpc, setattr_cb, &a, c), "SETATTR");
}

static void lookup_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    LOOKUP3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    if (res->status != NFS3_OK) {
        nt_p_copy_attr(&c->r.have_dir, &c->r.dir_attr, &res->LOOKUP3res_u.resfail.dir_attributes);
        return;
    }
    c->r.have_fh = true;
    nt_p_copy_fh(&c->r.fh, &res->LOOKUP3res_u.resok.object);
    nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->LOOKUP3res_u.resok.obj_attributes);
    nt_p_copy_attr(&c->r.have_dir, &c->r.dir_attr, &res->LOOKUP3res_u.resok.dir_attributes);
}

uint32_t nt_lookup(struct nt *c, const struct nt_fh *dir, const char *name)
{
    LOOKUP3args a = {.what = nt_p_name_arg(dir, name)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_lookup_async(c->rpc, lookup_cb, &a, c), "LOOKUP");
}

static void access_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    ACCESS3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->ACCESS3res_u.resok.obj_attributes);
        if (res->status == NFS3_OK) {
            c->r.access = res->ACCESS3res_u.resok.access;
        }
    }
}

uint32_t nt_access(struct nt *c, const struct nt_fh *fh, uint32_t want)
{
    ACCESS3args a = {.object = nt_p_fh_arg(fh), .access = want};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_access_async(c->rpc, access_cb, &a, c), "ACCESS");
}

static void readlink_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    READLINK3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->READLINK3res_u.resok.symlink_attributes);
        if (res->status == NFS3_OK) {
            size_t n = strlen(res->READLINK3res_u.resok.data);

            n = n < sizeof(c->r.target) ? n : sizeof(c->r.target) - 1;
            memcpy(c->r.target, res->READLINK3res_u.resok.data, n);
        }
    }
}

uint32_t nt_readlink(struct nt *c, const struct nt_fh *fh)
{
    READLINK3args a = {.symlink = nt_p_fh_arg(fh)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_readlink_async(c->rpc, readlink_cb, &a, c), "READLINK");
}

static void read_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    READ3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->READ3res_u.resok.file_attributes);
    if (res->status == NFS3_OK) {
        const READ3resok *ok = &res->READ3res_u.resok;

        c->r.count = ok->count;
        c->r.eof = ok->eof != 0;
        if (ok->data.data_len != ok->count || ok->count > NT_IO_MAX) {
            c->r.status = NFS3ERR_SERVERFAULT; /* count and data must agree */
            return;
        }
        memcpy(c->data, ok->data.data_val, ok->count);
    }
}

uint32_t nt_read(struct nt *c, const struct nt_fh *fh, uint64_t off, uint32_t count)
{
    READ3args a = {.file = nt_p_fh_arg(fh), .offset = off, .count = count};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_read_async(c->rpc, read_cb, &a, c), "READ");
}

static void write_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    WRITE3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_wcc(&c->r.wcc, &res->WRITE3res_u.resok.file_wcc);
        if (res->status == NFS3_OK) {
            c->r.count = res->WRITE3res_u.resok.count;
            c->r.committed = res->WRITE3res_u.resok.committed;
            memcpy(c->r.verf, res->WRITE3res_u.resok.verf, 8);
        }
    }
}

uint32_t nt_write(struct nt *c, const struct nt_fh *fh, uint64_t off, const void *data,
                  uint32_t count, uint32_t stable)
{
    WRITE3args a = {
        .file = nt_p_fh_arg(fh), .offset = off, .count = count, .stable = (stable_how)stable};

    a.data.data_len = count;
    a.data.data_val = (char *)(uintptr_t)data;
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_write_async(c->rpc, write_cb, &a, c), "WRITE");
}

static void create_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    CREATE3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    if (res->status == NFS3_OK) {
        nt_p_copy_new(&c->r, &res->CREATE3res_u.resok.obj, &res->CREATE3res_u.resok.obj_attributes);
        nt_p_copy_wcc(&c->r.wcc, &res->CREATE3res_u.resok.dir_wcc);
    } else {
        nt_p_copy_wcc(&c->r.wcc, &res->CREATE3res_u.resfail.dir_wcc);
    }
}

uint32_t nt_create(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t how,
                   const struct nt_set *set, const char verf[8])
{
    CREATE3args a;

    memset(&a, 0, sizeof(a));
    a.where = nt_p_name_arg(dir, name);
    a.how.mode = (createmode3)how;
    if (how == EXCLUSIVE) {
        memcpy(a.how.createhow3_u.verf, verf, 8);
    } else {
        a.how.createhow3_u.obj_attributes = nt_p_sattr_arg(set);
    }
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_create_async(c->rpc, create_cb, &a, c), "CREATE");
}

static void mkdir_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    MKDIR3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    if (res->status == NFS3_OK) {
        nt_p_copy_new(&c->r, &res->MKDIR3res_u.resok.obj, &res->MKDIR3res_u.resok.obj_attributes);
        nt_p_copy_wcc(&c->r.wcc, &res->MKDIR3res_u.resok.dir_wcc);
    } else {
        nt_p_copy_wcc(&c->r.wcc, &res->MKDIR3res_u.resfail.dir_wcc);
    }
}

uint32_t nt_mkdir(struct nt *c, const struct nt_fh *dir, const char *name, const struct nt_set *set)
{
    MKDIR3args a = {.where = nt_p_name_arg(dir, name), .attributes = nt_p_sattr_arg(set)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_mkdir_async(c->rpc, mkdir_cb, &a, c), "MKDIR");
}

static void symlink_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    SYMLINK3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    if (res->status == NFS3_OK) {
        nt_p_copy_new(&c->r, &res->SYMLINK3res_u.resok.obj,
                      &res->SYMLINK3res_u.resok.obj_attributes);
        nt_p_copy_wcc(&c->r.wcc, &res->SYMLINK3res_u.resok.dir_wcc);
    } else {
        nt_p_copy_wcc(&c->r.wcc, &res->SYMLINK3res_u.resfail.dir_wcc);
    }
}

uint32_t nt_symlink(struct nt *c, const struct nt_fh *dir, const char *name, const char *target,
                    const struct nt_set *set)
{
    SYMLINK3args a = {.where = nt_p_name_arg(dir, name)};

    a.symlink.symlink_attributes = nt_p_sattr_arg(set);
    a.symlink.symlink_data = (char *)(uintptr_t)target;
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_symlink_async(c->rpc, symlink_cb, &a, c), "SYMLINK");
}

static void mknod_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    MKNOD3res *res = data;

    (void)rpc;
    if (!nt_p_got(c, status)) {
        return;
    }
    c->r.status = res->status;
    if (res->status == NFS3_OK) {
        nt_p_copy_new(&c->r, &res->MKNOD3res_u.resok.obj, &res->MKNOD3res_u.resok.obj_attributes);
        nt_p_copy_wcc(&c->r.wcc, &res->MKNOD3res_u.resok.dir_wcc);
    } else {
        nt_p_copy_wcc(&c->r.wcc, &res->MKNOD3res_u.resfail.dir_wcc);
    }
}

uint32_t nt_mknod(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t type,
                  const struct nt_set *set, uint32_t rmajor, uint32_t rminor)
{
    MKNOD3args a;

    memset(&a, 0, sizeof(a));
    a.where = nt_p_name_arg(dir, name);
    a.what.type = (ftype3)type;
    if (type == NF3CHR || type == NF3BLK) {
        a.what.mknoddata3_u.chr_device.dev_attributes = nt_p_sattr_arg(set);
        a.what.mknoddata3_u.chr_device.spec.specdata1 = rmajor;
        a.what.mknoddata3_u.chr_device.spec.specdata2 = rminor;
    } else {
        a.what.mknoddata3_u.sock_attributes = nt_p_sattr_arg(set);
    }
    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_mknod_async(c->rpc, mknod_cb, &a, c), "MKNOD");
}

static void remove_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    REMOVE3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_wcc(&c->r.wcc, &res->REMOVE3res_u.resok.dir_wcc);
    }
}

uint32_t nt_remove(struct nt *c, const struct nt_fh *dir, const char *name)
{
    REMOVE3args a = {.object = nt_p_name_arg(dir, name)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_remove_async(c->rpc, remove_cb, &a, c), "REMOVE");
}

static void rmdir_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    RMDIR3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_wcc(&c->r.wcc, &res->RMDIR3res_u.resok.dir_wcc);
    }
}

uint32_t nt_rmdir(struct nt *c, const struct nt_fh *dir, const char *name)
{
    RMDIR3args a = {.object = nt_p_name_arg(dir, name)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_rmdir_async(c->rpc, rmdir_cb, &a, c), "RMDIR");
}

static void rename_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    RENAME3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_wcc(&c->r.wcc, &res->RENAME3res_u.resok.fromdir_wcc);
        nt_p_copy_wcc(&c->r.wcc2, &res->RENAME3res_u.resok.todir_wcc);
    }
}

uint32_t nt_rename(struct nt *c, const struct nt_fh *from, const char *from_name,
                   const struct nt_fh *to, const char *to_name)
{
    RENAME3args a = {.from = nt_p_name_arg(from, from_name), .to = nt_p_name_arg(to, to_name)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_rename_async(c->rpc, rename_cb, &a, c), "RENAME");
}

static void link_cb(struct rpc_context *rpc, int status, void *data, void *arg)
{
    struct nt *c = arg;
    LINK3res *res = data;

    (void)rpc;
    if (nt_p_got(c, status)) {
        c->r.status = res->status;
        nt_p_copy_attr(&c->r.have_attr, &c->r.attr, &res->LINK3res_u.resok.file_attributes);
        nt_p_copy_wcc(&c->r.wcc, &res->LINK3res_u.resok.linkdir_wcc);
    }
}

uint32_t nt_link(struct nt *c, const struct nt_fh *fh, const struct nt_fh *dir, const char *name)
{
    LINK3args a = {.file = nt_p_fh_arg(fh), .link = nt_p_name_arg(dir, name)};

    nt_p_start(c);
    return nt_p_finish(c, rpc_nfs3_link_async(c->rpc, link_cb, &a, c), "LINK");
}

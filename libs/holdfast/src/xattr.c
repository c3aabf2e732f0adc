/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes.
 */
#include <sys/xattr.h>

#include "fs_priv.h"

#define VALUE_MAX (64u << 10)

static void data_end(struct req *r, bool body)
{
    struct hf_slice bulk = r->c.call.reply_bulk;
    struct iovec v = {(void *)(uintptr_t)bulk.data, bulk.len};
    int err = r->c.call.status;

    req_data(r, err == 0 && !body ? HF_E_IO : err, &v, bulk.len > 0, bulk.len);
}

static void on_get(const Hf__GetxattrRep *rep, void *arg)
{
    data_end(req_of_call(arg), rep);
}

static void run_get(struct req *r)
{
    Hf__GetxattrReq q = HF__GETXATTR_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    req_call(r, q.ino, false);
    hf__meta__getxattr(meta_of(r), &q, on_get, &r->c.call);
}

void hf_getxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       const char *name, hf_data_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_get,
                              .kind = K_DATA,
                              .fn.data = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .name = name});
}

static void on_list(const Hf__ListxattrRep *rep, void *arg)
{
    data_end(req_of_call(arg), rep);
}

static void run_list(struct req *r)
{
    Hf__ListxattrReq q = HF__LISTXATTR_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    req_call(r, q.ino, false);
    hf__meta__listxattr(meta_of(r), &q, on_list, &r->c.call);
}

void hf_listxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                        hf_data_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_list,
                              .kind = K_DATA,
                              .fn.data = fn,
                              .arg = arg,
                              .u = u,
                              .h = h});
}

static void on_set(const Hf__SetxattrRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    (void)rep;
    req_done(r, r->c.call.status);
}

static void run_set(struct req *r)
{
    Hf__SetxattrReq q = HF__SETXATTR_REQ__INIT;

    if (r->a.flags & ~(XATTR_CREATE | XATTR_REPLACE)) {
        req_fail(r, HF_E_INVAL);
        return;
    }
    if (r->a.len > VALUE_MAX) {
        req_fail(r, HF_E_TOOBIG);
        return;
    }
    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    if (r->a.flags & XATTR_CREATE)
        q.flags = HF__XATTR_FLAG__XA_CREATE;
    else if (r->a.flags & XATTR_REPLACE)
        q.flags = HF__XATTR_FLAG__XA_REPLACE;
    req_call(r, q.ino, true);
    r->c.call.bulk[0] = (struct hf_slice){r->a.value, r->a.len};
    r->c.call.bulk_n = r->a.len > 0;
    hf__meta__setxattr(meta_of(r), &q, on_set, &r->c.call);
}

void hf_setxattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                       const char *name, const void *value, size_t len, int flags, hf_done_fn *fn,
                       void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_set,
                              .kind = K_DONE,
                              .fn.done = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .name = name,
                              .value = value,
                              .len = len,
                              .flags = flags});
}

static void on_remove(const Hf__RemovexattrRep *rep, void *arg)
{
    struct req *r = req_of_call(arg);

    (void)rep;
    req_done(r, r->c.call.status);
}

static void run_remove(struct req *r)
{
    Hf__RemovexattrReq q = HF__REMOVEXATTR_REQ__INIT;

    q.cred = &r->cred;
    q.ino = r->a.h.ino;
    q.gen = r->a.h.gen;
    q.name = req_name(r->a.name);
    req_call(r, q.ino, true);
    hf__meta__removexattr(meta_of(r), &q, on_remove, &r->c.call);
}

void hf_removexattr_async(struct hf_fs *fs, const struct hf_user *u, struct hf_handle h,
                          const char *name, hf_done_fn *fn, void *arg)
{
    submit(fs, &(struct args){.e = engine_of(fs, h.ino),
                              .run = run_remove,
                              .kind = K_DONE,
                              .fn.done = fn,
                              .arg = arg,
                              .u = u,
                              .h = h,
                              .name = name});
}

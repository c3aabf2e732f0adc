/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations: check what the export allows, squash the credentials, call the client. The request
 * holds everything that the call needs, so an operation allocates nothing here.
 */
#include <sodium.h>
#include <stdlib.h>

#include "vfs_priv.h"

/* RFC 1813 3.3.4 */
#define ACCESS_MODIFY  0x04u
#define ACCESS_EXTEND  0x08u
#define ACCESS_DELETE  0x10u
#define ACCESS_CHANGES (ACCESS_MODIFY | ACCESS_EXTEND | ACCESS_DELETE)

int hf_vfs_new(struct hf_loop *loop, struct hf_client *client, struct hf_vfs **ret)
{
    struct hf_vfs *v;

    if (sodium_init() < 0)
        return HF_E_INTERNAL;
    v = calloc(1, sizeof(*v));
    if (!v)
        return HF_E_NOMEM;
    v->loop = loop;
    v->client = client;
    hf_list_init(&v->resolvers);
    hf_timer_init(&v->retry, loop, exports_retry);
    if (hf_client_map(client))
        hf_vfs_map_changed(v, hf_client_map(client));
    *ret = v;
    return 0;
}

void hf_vfs_free(struct hf_vfs *v)
{
    if (!v)
        return;
    hf_timer_cancel(&v->retry);
    resolve_orphan_all(v);
    exports_fini(v);
    free(v);
}

/* ---- the frame of every operation ---- */

static void on_refused(struct hf_task *t)
{
    struct hf_vfs_req *r = hf_container_of(t, struct hf_vfs_req, task);

    r->done(r);
}

static void refuse(struct hf_vfs_req *r, int status)
{
    r->status = status;
    r->task = (struct hf_task){.fn = on_refused};
    hf_loop_post(r->vfs->loop, &r->task);
}

static void squash(struct hf_vfs_req *r, const struct hf_vfs_export *exp)
{
    const struct hf_vfs_cred *in = &r->cred;
    Hf__Cred *out = &r->wire_cred;
    bool root = exp->squash == HF_SQUASH_ROOT;

    hf__cred__init(out);
    out->groups = r->groups;
    if (exp->squash == HF_SQUASH_ALL) {
        out->uid = exp->anon_uid;
        out->gid = exp->anon_gid;
        return;
    }
    out->uid = root && in->uid == 0 ? exp->anon_uid : in->uid;
    out->gid = root && in->gid == 0 ? exp->anon_gid : in->gid;
    out->n_groups = in->ngroups < HF_VFS_GROUPS_MAX ? in->ngroups : HF_VFS_GROUPS_MAX;
    for (size_t i = 0; i < out->n_groups; i++)
        r->groups[i] = root && in->groups[i] == 0 ? exp->anon_gid : in->groups[i];
}

/* False: refused. */
static bool begin(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o, bool change)
{
    r->vfs = v;
    r->status = 0;
    r->rep = NULL;
    r->io = NULL;
    r->exp = o->exp;
    r->ino = o->ino;
    if (change && o->exp.read_only) {
        refuse(r, HF_E_ROFS);
        return false;
    }
    squash(r, &o->exp);
    r->call.ino = o->ino;
    r->call.change = change;
    r->call.deadline_ns = 0;
    r->call.req_stays = true; /* r->wire */
    r->call.bulk_n = 0;
    return true;
}

static ProtobufCBinaryData bytes(struct hf_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.data}; /* only read */
}

static void finish(struct hf_client_call *call, const void *rep)
{
    struct hf_vfs_req *r = hf_container_of(call, struct hf_vfs_req, call);

    r->status = call->status;
    r->rep = rep;
    r->done(r);
}

/* ---- the operations, in the order of vfs.h ---- */

static void on_getattr(const Hf__GetattrRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_getattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    if (!begin(v, r, o, false))
        return;
    hf__getattr_req__init(&r->wire.getattr);
    r->wire.getattr.ino = o->ino;
    r->wire.getattr.gen = o->gen;
    hf__meta__getattr(hf_client_meta(v->client), &r->wire.getattr, on_getattr, &r->call);
}

static void on_setattr(const Hf__SetattrRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_setattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                    Hf__SetAttrs *set, bool guard, int64_t guard_ctime_ns)
{
    Hf__SetattrReq *q = &r->wire.setattr;

    if (!begin(v, r, o, true))
        return;
    hf__setattr_req__init(q);
    q->cred = &r->wire_cred;
    q->ino = o->ino;
    q->gen = o->gen;
    q->set = set;
    q->guard = guard;
    q->guard_ctime_ns = guard_ctime_ns;
    hf_client_setattr(v->client, q, on_setattr, &r->call);
}

/* The export's root is its own parent. */
static void on_root_attr(const Hf__GetattrRep *rep, void *arg)
{
    Hf__LookupRep lookup = HF__LOOKUP_REP__INIT;

    if (rep)
        lookup.obj = lookup.dir = rep->obj;
    finish(arg, rep ? &lookup : NULL);
}

static void on_lookup(const Hf__LookupRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_lookup(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name)
{
    if (!begin(v, r, dir, false))
        return;
    if (dir->ino == dir->exp.root_ino && hf_slice_eq(name, hf_slice("..", 2))) {
        hf__getattr_req__init(&r->wire.getattr);
        r->wire.getattr.ino = dir->ino;
        r->wire.getattr.gen = dir->gen;
        hf__meta__getattr(hf_client_meta(v->client), &r->wire.getattr, on_root_attr, &r->call);
        return;
    }
    hf__lookup_req__init(&r->wire.lookup);
    r->wire.lookup.cred = &r->wire_cred;
    r->wire.lookup.dir = dir->ino;
    r->wire.lookup.gen = dir->gen;
    r->wire.lookup.name = bytes(name);
    hf__meta__lookup(hf_client_meta(v->client), &r->wire.lookup, on_lookup, &r->call);
}

static void on_access(const Hf__AccessRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_access(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint32_t want)
{
    if (!begin(v, r, o, false))
        return;
    hf__access_req__init(&r->wire.access);
    r->wire.access.cred = &r->wire_cred;
    r->wire.access.ino = o->ino;
    r->wire.access.gen = o->gen;
    r->wire.access.want = o->exp.read_only ? want & ~ACCESS_CHANGES : want;
    hf__meta__access(hf_client_meta(v->client), &r->wire.access, on_access, &r->call);
}

static void on_readlink(const Hf__ReadlinkRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_readlink(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    if (!begin(v, r, o, false))
        return;
    hf__readlink_req__init(&r->wire.readlink);
    r->wire.readlink.cred = &r->wire_cred;
    r->wire.readlink.ino = o->ino;
    r->wire.readlink.gen = o->gen;
    hf__meta__readlink(hf_client_meta(v->client), &r->wire.readlink, on_readlink, &r->call);
}

static void on_io(struct hf_client_io *io)
{
    struct hf_vfs_req *r = hf_container_of(io, struct hf_vfs_req, data);

    r->status = io->status;
    r->io = io;
    r->done(r);
}

static void io_prepare(struct hf_vfs_req *r, const struct hf_vfs_obj *o, uint64_t offset,
                       uint32_t len)
{
    r->data.cred = &r->wire_cred;
    r->data.ino = o->ino;
    r->data.gen = o->gen;
    r->data.offset = offset;
    r->data.len = len;
    r->data.stable = 0;
    r->data.owner_override = true; /* RFC 1813 4.4 */
    r->data.data_n = 0;
    r->data.done = on_io;
}

void hf_vfs_read(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 uint64_t offset, uint32_t len)
{
    if (!begin(v, r, o, false))
        return;
    io_prepare(r, o, offset, len);
    hf_client_read(v->client, &r->data);
}

void hf_vfs_write(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                  uint64_t offset, const struct hf_slice *data, unsigned n, uint32_t stable)
{
    uint64_t len = 0;

    if (!begin(v, r, o, true))
        return;
    for (unsigned i = 0; i < n; i++)
        len += data[i].len;
    if (n > HF_RPC_BULK_IOV - 1 || len > HF_CLIENT_IO_MAX) {
        refuse(r, HF_E_INVAL);
        return;
    }
    io_prepare(r, o, offset, (uint32_t)len);
    r->data.stable = stable;
    for (unsigned i = 0; i < n; i++)
        r->data.data[i] = data[i];
    r->data.data_n = n;
    hf_client_write(v->client, &r->data);
}

void hf_vfs_commit(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint64_t offset, uint32_t len)
{
    if (!begin(v, r, o, true))
        return;
    io_prepare(r, o, offset, len);
    hf_client_commit(v->client, &r->data);
}

static void on_create(const Hf__CreateRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_create(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, uint32_t how, Hf__SetAttrs *set, uint64_t verf)
{
    Hf__CreateReq *q = &r->wire.create;

    if (!begin(v, r, dir, true))
        return;
    hf__create_req__init(q);
    q->cred = &r->wire_cred;
    q->dir = dir->ino;
    q->gen = dir->gen;
    q->name = bytes(name);
    q->how = how;
    q->set = set;
    q->verf = verf;
    hf_client_create(v->client, q, on_create, &r->call);
}

static void on_make(const Hf__MakeRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_make(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                 struct hf_slice name, uint32_t type, Hf__SetAttrs *set, struct hf_slice target,
                 uint32_t rmajor, uint32_t rminor)
{
    Hf__MakeReq *q = &r->wire.make;

    if (!begin(v, r, dir, true))
        return;
    hf__make_req__init(q);
    q->cred = &r->wire_cred;
    q->dir = dir->ino;
    q->gen = dir->gen;
    q->name = bytes(name);
    q->type = type;
    q->set = set;
    q->target = bytes(target);
    q->rdev_major = rmajor;
    q->rdev_minor = rminor;
    hf__meta__make(hf_client_meta(v->client), q, on_make, &r->call);
}

static void on_remove(const Hf__RemoveRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_remove(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, bool is_dir)
{
    Hf__RemoveReq *q = &r->wire.remove;

    if (!begin(v, r, dir, true))
        return;
    hf__remove_req__init(q);
    q->cred = &r->wire_cred;
    q->dir = dir->ino;
    q->gen = dir->gen;
    q->name = bytes(name);
    q->is_dir = is_dir;
    hf__meta__remove(hf_client_meta(v->client), q, on_remove, &r->call);
}

static void on_rename(const Hf__RenameRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_rename(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *from,
                   struct hf_slice from_name, const struct hf_vfs_obj *to, struct hf_slice to_name)
{
    Hf__RenameReq *q = &r->wire.rename;

    if (!begin(v, r, from, true))
        return;
    if (from->exp.id != to->exp.id) {
        refuse(r, HF_E_XDEV);
        return;
    }
    hf__rename_req__init(q);
    q->cred = &r->wire_cred;
    q->from_dir = from->ino;
    q->from_gen = from->gen;
    q->from_name = bytes(from_name);
    q->to_dir = to->ino;
    q->to_gen = to->gen;
    q->to_name = bytes(to_name);
    r->call.ino = to->ino; /* who owns the resulting name drives it */
    hf__meta__rename(hf_client_meta(v->client), q, on_rename, &r->call);
}

static void on_link(const Hf__LinkRep *rep, void *arg)
{
    finish(arg, rep);
}

void hf_vfs_link(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 const struct hf_vfs_obj *dir, struct hf_slice name)
{
    Hf__LinkReq *q = &r->wire.link;

    if (!begin(v, r, o, true))
        return;
    if (o->exp.id != dir->exp.id) {
        refuse(r, HF_E_XDEV);
        return;
    }
    hf__link_req__init(q);
    q->cred = &r->wire_cred;
    q->ino = o->ino;
    q->gen = o->gen;
    q->dir = dir->ino;
    q->dir_gen = dir->gen;
    q->name = bytes(name);
    r->call.ino = dir->ino;
    hf__meta__link(hf_client_meta(v->client), q, on_link, &r->call);
}

/* At the export's root, ".." is the root itself: what lies above is not shown. */
static void on_readdir(const Hf__ReaddirRep *rep, void *arg)
{
    const struct hf_vfs_req *r =
        hf_container_of((struct hf_client_call *)arg, struct hf_vfs_req, call);

    for (size_t i = 0; rep && r->ino == r->exp.root_ino && i < rep->n_entries && i < 2; i++) {
        Hf__Dirent *e = rep->entries[i];

        if (e->name.len == 2 && memcmp(e->name.data, "..", 2) == 0 && e->ino != r->ino) {
            e->ino = r->ino;
            e->attr = NULL; /* in the message's memory */
        }
    }
    finish(arg, rep);
}

void hf_vfs_readdir(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                    uint64_t cookie, uint32_t max_bytes, uint32_t entry_overhead,
                    uint32_t max_entries, bool plus)
{
    Hf__ReaddirReq *q = &r->wire.readdir;

    if (!begin(v, r, dir, false))
        return;
    hf__readdir_req__init(q);
    q->cred = &r->wire_cred;
    q->dir = dir->ino;
    q->gen = dir->gen;
    q->cookie = cookie;
    q->max_bytes = max_bytes;
    q->entry_overhead = entry_overhead;
    q->max_entries = max_entries;
    q->plus = plus;
    hf__meta__readdir(hf_client_meta(v->client), q, on_readdir, &r->call);
}

static void on_fsstat(const Hf__FsstatRep *rep, void *arg)
{
    struct hf_vfs_req *r = hf_container_of((struct hf_client_call *)arg, struct hf_vfs_req, call);
    struct hf_client_space space;

    hf_client_space(r->vfs->client, &space);
    r->space.total_bytes = space.capacity_bytes;
    r->space.free_bytes = space.free_bytes;
    if (rep) {
        r->space.free_files = rep->files_free;
        if (__builtin_add_overflow(rep->files_used, rep->files_free, &r->space.total_files))
            r->space.total_files = ~0ull;
    }
    finish(arg, rep);
}

void hf_vfs_fsstat(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    if (!begin(v, r, o, false))
        return;
    hf__fsstat_req__init(&r->wire.fsstat);
    r->wire.fsstat.ino = o->ino;
    r->wire.fsstat.gen = o->gen;
    hf__meta__fsstat(hf_client_meta(v->client), &r->wire.fsstat, on_fsstat, &r->call);
}

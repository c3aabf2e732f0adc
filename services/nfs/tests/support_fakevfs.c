/* SPDX-License-Identifier: Apache-2.0 */
#include "support_fakevfs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"

struct hf_client {
    struct hf_loop *loop;
};

struct hf_vfs {
    struct hf_loop *loop;
};

/* What the tests and the loop thread share: guarded by lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake fake = {.read_bytes = 100000, .dir_entries = 10, .link_bytes = 11};
static struct hf_vfs *the_vfs;
static struct hf_vfs_req *held[64];
static struct hf_task release_task;

struct hf_rpc_msg {
    int unused;
};
static struct hf_rpc_msg read_msg;
static uint8_t read_data[2u << 20];

void fake_set(void (*fn)(struct fake *f, void *arg), void *arg)
{
    pthread_mutex_lock(&lock);
    fn(&fake, arg);
    pthread_mutex_unlock(&lock);
}

struct fake fake_get(void)
{
    struct fake f;

    pthread_mutex_lock(&lock);
    f = fake;
    pthread_mutex_unlock(&lock);
    return f;
}

void fake_fh(uint64_t ino, uint8_t fh[FAKE_FH_BYTES])
{
    memset(fh, 0xab, FAKE_FH_BYTES);
    hf_put_le64(fh, ino);
}

/* ---- rpc, client ---- */

void hf_rpc_msg_ref(struct hf_rpc_msg *m)
{
    (void)m;
    pthread_mutex_lock(&lock);
    fake.msg_refs++;
    pthread_mutex_unlock(&lock);
}

void hf_rpc_msg_unref(struct hf_rpc_msg *m)
{
    (void)m;
    pthread_mutex_lock(&lock);
    fake.msg_refs--;
    pthread_mutex_unlock(&lock);
}

int hf_client_new(const struct hf_client_opts *o, struct hf_client **ret)
{
    *ret = calloc(1, sizeof(**ret));
    if (!*ret)
        return HF_E_NOMEM;
    (*ret)->loop = o->loop;
    return 0;
}

static void release_all(int status)
{
    struct hf_vfs_req *now[64];
    unsigned n;

    pthread_mutex_lock(&lock);
    n = fake.held;
    memcpy(now, held, sizeof(now));
    fake.held = 0;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < n; i++) {
        if (status) {
            now[i]->status = status;
            now[i]->rep = NULL;
        }
        now[i]->done(now[i]);
    }
}

void hf_client_free(struct hf_client *c)
{
    release_all(HF_E_CLOSED);
    free(c);
}

void hf_client_stats(const struct hf_client *c, struct hf_client_stats *ret)
{
    (void)c;
    *ret = (struct hf_client_stats){0};
}

/* ---- vfs ---- */

int hf_vfs_new(struct hf_loop *loop, struct hf_client *client, struct hf_vfs **ret)
{
    (void)client;
    *ret = calloc(1, sizeof(**ret));
    if (!*ret)
        return HF_E_NOMEM;
    (*ret)->loop = loop;
    the_vfs = *ret;
    return 0;
}

void hf_vfs_free(struct hf_vfs *v)
{
    free(v);
}

void hf_vfs_map_changed(struct hf_vfs *v, const Hf__MapGetRep *map)
{
    (void)v;
    (void)map;
}

bool hf_vfs_ready(const struct hf_vfs *v)
{
    (void)v;
    return !fake_get().not_ready;
}

uint64_t hf_vfs_fsid(const struct hf_vfs *v)
{
    (void)v;
    return FAKE_FSID;
}

void hf_vfs_exports(struct hf_vfs *v, void (*fn)(void *arg, const Hf__ExportEntry *e), void *arg)
{
    char path[] = "/main", client[] = "127.0.0.0/8";
    char *clients[] = {client};
    Hf__ExportEntry e = HF__EXPORT_ENTRY__INIT;

    (void)v;
    e.path = path;
    e.n_clients = 1;
    e.clients = clients;
    fn(arg, &e);
}

static struct hf_vfs_export export_of(void)
{
    return (struct hf_vfs_export){
        .id = 1, .root_ino = FAKE_ROOT, .root_gen = 1, .anon_uid = 65534, .anon_gid = 65533};
}

int hf_vfs_mount(struct hf_vfs *v, struct hf_slice path, const struct sockaddr *peer,
                 struct hf_vfs_obj *ret)
{
    (void)v;
    (void)peer;
    if (!hf_slice_eq(path, hf_slice_str("/main")))
        return HF_E_NOENT;
    *ret = (struct hf_vfs_obj){export_of(), FAKE_ROOT, 1};
    return 0;
}

int hf_vfs_fh_decode(struct hf_vfs *v, struct hf_slice fh, const struct sockaddr *peer,
                     struct hf_vfs_obj *ret)
{
    (void)v;
    (void)peer;
    if (fh.len != FAKE_FH_BYTES || ((const uint8_t *)fh.data)[8] != 0xab)
        return HF_E_BADHANDLE;
    *ret = (struct hf_vfs_obj){export_of(), hf_get_le64(fh.data), 1};
    return 0;
}

uint32_t hf_vfs_fh_encode(struct hf_vfs *v, const struct hf_vfs_export *exp, uint64_t ino,
                          uint32_t gen, void *buf)
{
    (void)v;
    (void)exp;
    (void)gen;
    fake_fh(ino, buf);
    return FAKE_FH_BYTES;
}

static Hf__Attr attr_of(uint64_t ino)
{
    Hf__Attr a = HF__ATTR__INIT;

    a.type = ino == FAKE_ROOT ? HF__FILE_TYPE__FT_DIR : HF__FILE_TYPE__FT_REG;
    a.mode = 0100755;
    a.nlink = 1;
    a.uid = 1000;
    a.gid = 100;
    a.size = 12345;
    a.allocated = 16384;
    a.ino = ino;
    a.gen = 1;
    a.atime_ns = 1000000001;
    a.mtime_ns = -5;
    a.ctime_ns = INT64_MAX;
    return a;
}

static void on_task(struct hf_task *t)
{
    struct hf_vfs_req *r = hf_container_of(t, struct hf_vfs_req, task);

    r->done(r);
}

static void later(struct hf_vfs *v, struct hf_vfs_req *r)
{
    r->task = (struct hf_task){.fn = on_task};
    hf_loop_post(v->loop, &r->task);
}

/* The reply's parts, one set for all: requests complete before the next one is answered from them,
 * as far as their contents matter. */
static Hf__Attr obj_attr, dir_attr;
static Hf__Wcc wcc;

static void answer(struct hf_vfs *v, struct hf_vfs_req *r, uint64_t ino, const void *rep,
                   bool change)
{
    obj_attr = attr_of(ino + 100);
    dir_attr = attr_of(ino);
    hf__wcc__init(&wcc);
    wcc.have_before = true;
    wcc.size = 1;
    wcc.after = &dir_attr;
    pthread_mutex_lock(&lock);
    fake.calls++;
    fake.changes += change;
    fake.uid = r->cred.uid;
    fake.gid = r->cred.gid;
    fake.ngroups = r->cred.ngroups;
    r->status = fake.status;
    r->rep = fake.status && fake.bare_errors ? NULL : rep;
    if (change && fake.hold_changes && fake.held < 64) {
        held[fake.held++] = r;
        pthread_mutex_unlock(&lock);
        return;
    }
    pthread_mutex_unlock(&lock);
    later(v, r);
}

static void on_release(struct hf_task *t)
{
    (void)t;
    release_all(0);
}

void fake_release(void)
{
    release_task = (struct hf_task){.fn = on_release};
    hf_loop_post(the_vfs->loop, &release_task);
}

void hf_vfs_getattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    static Hf__GetattrRep rep;
    static Hf__Attr a;

    a = attr_of(o->ino);
    hf__getattr_rep__init(&rep);
    rep.obj = &a;
    r->status = fake_get().getattr_status;
    r->rep = r->status ? NULL : &rep;
    later(v, r);
}

void hf_vfs_setattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                    Hf__SetAttrs *set, bool guard, int64_t guard_ctime_ns)
{
    static Hf__SetattrRep rep;

    (void)set;
    hf__setattr_rep__init(&rep);
    rep.obj = &wcc;
    pthread_mutex_lock(&lock);
    fake.guard = guard;
    fake.guard_ns = guard_ctime_ns;
    pthread_mutex_unlock(&lock);
    answer(v, r, o->ino, &rep, true);
}

static void note_name(struct hf_slice name)
{
    pthread_mutex_lock(&lock);
    fake.name_len = (uint32_t)name.len;
    pthread_mutex_unlock(&lock);
}

void hf_vfs_lookup(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name)
{
    static Hf__LookupRep rep;

    note_name(name);
    hf__lookup_rep__init(&rep);
    rep.obj = &obj_attr;
    rep.dir = &dir_attr;
    answer(v, r, dir->ino, &rep, false);
}

void hf_vfs_access(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint32_t want)
{
    static Hf__AccessRep rep;

    (void)want;
    hf__access_rep__init(&rep);
    rep.obj = &dir_attr;
    rep.granted = 0x3f;
    answer(v, r, o->ino, &rep, false);
}

void hf_vfs_readlink(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    static Hf__ReadlinkRep rep;
    static uint8_t target[8192];

    memset(target, 't', sizeof(target));
    hf__readlink_rep__init(&rep);
    rep.obj = &dir_attr;
    rep.target = (ProtobufCBinaryData){fake_get().link_bytes, target};
    answer(v, r, o->ino, &rep, false);
}

void hf_vfs_read(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 uint64_t offset, uint32_t len)
{
    const struct fake f = fake_get();
    struct hf_client_io *io = &r->data;
    uint64_t left = offset < f.read_bytes ? f.read_bytes - offset : 0;

    for (size_t i = 0; i < sizeof(read_data); i++)
        read_data[i] = fake_byte(i);
    io->count = left < len ? (uint32_t)left : len;
    io->eof = io->count == left;
    io->attr = f.status && f.bare_errors ? NULL : &dir_attr;
    if (f.read_zeros && io->count >= 3) {
        uint32_t third = io->count / 3;

        io->pieces[0] = (struct hf_client_piece){{read_data + offset, third}, &read_msg};
        io->pieces[1] = (struct hf_client_piece){{NULL, third}, NULL};
        io->pieces[2] = (struct hf_client_piece){
            {read_data + offset + 2ull * third, io->count - 2 * third}, &read_msg};
        io->npieces = 3;
    } else {
        io->pieces[0] = (struct hf_client_piece){{read_data + offset, io->count}, &read_msg};
        io->npieces = 1;
    }
    r->io = io;
    answer(v, r, o->ino, NULL, false);
}

void hf_vfs_write(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                  uint64_t offset, const struct hf_slice *data, unsigned n, uint32_t stable)
{
    struct hf_client_io *io = &r->data;
    uint32_t crc = 0, len = 0;

    (void)offset;
    for (unsigned i = 0; i < n; i++) {
        crc = hf_crc32c(crc, data[i].data, data[i].len);
        len += (uint32_t)data[i].len;
    }
    pthread_mutex_lock(&lock);
    fake.write_crc = crc;
    fake.write_len = len;
    fake.write_stable = stable;
    io->wcc = fake.status && fake.bare_errors ? NULL : &wcc;
    pthread_mutex_unlock(&lock);
    io->count = len;
    io->verifier = 0x0102030405060708u;
    r->io = io;
    answer(v, r, o->ino, NULL, true);
}

void hf_vfs_commit(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint64_t offset, uint32_t len)
{
    (void)offset;
    (void)len;
    r->data.wcc = &wcc;
    r->data.verifier = 0x0102030405060708u;
    r->io = &r->data;
    answer(v, r, o->ino, NULL, true);
}

void hf_vfs_create(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, uint32_t how, Hf__SetAttrs *set, uint64_t verf)
{
    static Hf__CreateRep rep;

    (void)set;
    note_name(name);
    pthread_mutex_lock(&lock);
    fake.how = how;
    fake.verf = verf;
    pthread_mutex_unlock(&lock);
    hf__create_rep__init(&rep);
    rep.obj = &obj_attr;
    rep.dir = &wcc;
    answer(v, r, dir->ino, &rep, true);
}

void hf_vfs_make(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                 struct hf_slice name, uint32_t type, Hf__SetAttrs *set, struct hf_slice target,
                 uint32_t rmajor, uint32_t rminor)
{
    static Hf__MakeRep rep;

    (void)type;
    (void)set;
    (void)target;
    (void)rmajor;
    (void)rminor;
    note_name(name);
    hf__make_rep__init(&rep);
    rep.obj = &obj_attr;
    rep.dir = &wcc;
    answer(v, r, dir->ino, &rep, true);
}

void hf_vfs_remove(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, bool is_dir)
{
    static Hf__RemoveRep rep;

    (void)is_dir;
    note_name(name);
    hf__remove_rep__init(&rep);
    rep.dir = &wcc;
    answer(v, r, dir->ino, &rep, true);
}

void hf_vfs_rename(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *from,
                   struct hf_slice from_name, const struct hf_vfs_obj *to, struct hf_slice to_name)
{
    static Hf__RenameRep rep;

    (void)to;
    (void)from_name;
    note_name(to_name);
    hf__rename_rep__init(&rep);
    rep.from = &wcc;
    rep.to = &wcc;
    answer(v, r, from->ino, &rep, true);
}

void hf_vfs_link(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 const struct hf_vfs_obj *dir, struct hf_slice name)
{
    static Hf__LinkRep rep;

    (void)dir;
    note_name(name);
    hf__link_rep__init(&rep);
    rep.obj = &dir_attr;
    rep.dir = &wcc;
    answer(v, r, o->ino, &rep, true);
}

#define ENTRIES 5000
static Hf__Dirent entries[ENTRIES];
static Hf__Dirent *entry_ptrs[ENTRIES];
static Hf__Attr entry_attrs[ENTRIES];
static char names[ENTRIES][64];

/* Names of 6 to 50 bytes; entry i has cookie i + 1. */
static void make_entry(uint32_t at, uint32_t i, bool plus)
{
    int n = snprintf(names[at], sizeof(names[at]), "f%05u%.*s", i, (int)(i % 45),
                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");

    entry_attrs[at] = attr_of(1000 + i);
    hf__dirent__init(&entries[at]);
    entries[at].ino = 1000 + i;
    entries[at].cookie = i + 1;
    entries[at].name = (ProtobufCBinaryData){(size_t)n, (uint8_t *)names[at]};
    entries[at].attr = plus ? &entry_attrs[at] : NULL;
    entry_ptrs[at] = &entries[at];
}

void hf_vfs_readdir(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                    uint64_t cookie, uint32_t max_bytes, uint32_t entry_overhead,
                    uint32_t max_entries, bool plus)
{
    static Hf__ReaddirRep rep;
    const struct fake f = fake_get();
    uint32_t used = 0, n = 0, i = (uint32_t)cookie;

    pthread_mutex_lock(&lock);
    fake.readdir_max_bytes = max_bytes;
    fake.readdir_max_entries = max_entries;
    fake.readdir_overhead = entry_overhead;
    pthread_mutex_unlock(&lock);
    for (; i < f.dir_entries && n < max_entries && n < ENTRIES; i++, n++) {
        make_entry(n, i, plus);
        used += entry_overhead + (((uint32_t)entries[n].name.len + 3) & ~3u);
        if (used > max_bytes)
            break;
    }
    hf__readdir_rep__init(&rep);
    rep.dir = &dir_attr;
    rep.entries = entry_ptrs;
    rep.n_entries = n;
    rep.eof = i >= f.dir_entries;
    answer(v, r, dir->ino, &rep, false);
    if (n == 0 && i < f.dir_entries)
        r->status = HF_E_TOOSMALL; /* nobody else looks at r before the next turn */
}

void hf_vfs_fsstat(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    static Hf__FsstatRep rep;

    hf__fsstat_rep__init(&rep);
    rep.obj = &dir_attr;
    r->space.total_bytes = 1000;
    r->space.free_bytes = 400;
    r->space.total_files = 50;
    r->space.free_files = 20;
    answer(v, r, o->ino, &rep, false);
}

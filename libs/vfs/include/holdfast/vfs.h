/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol-neutral file server that gateways share: exports and who may use them, credentials
 * and squashing, file handles, and every file operation as one call. Front ends decode, call here,
 * encode.
 *
 * Threads: a vfs belongs to one loop; all calls and callbacks are on it.
 */
#ifndef HOLDFAST_VFS_H
#define HOLDFAST_VFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "holdfast/client.h"

struct hf_vfs;

#define HF_VFS_FH_MAX     64
#define HF_VFS_GROUPS_MAX 16

/* ---- exports ---- */

enum hf_vfs_squash { HF_SQUASH_NONE, HF_SQUASH_ROOT, HF_SQUASH_ALL };

struct hf_vfs_export {
    uint32_t id; /* stable: part of handles */
    bool read_only;
    uint8_t squash;
    uint32_t anon_uid, anon_gid;
    uint64_t root_ino; /* ".." of it is itself */
    uint32_t root_gen;
};

/* client: takes its map (exports, handle key, fsid) from it; borrowed. */
int hf_vfs_new(struct hf_loop *loop, struct hf_client *client, struct hf_vfs **ret);
void hf_vfs_free(struct hf_vfs *v);
/* To be called from the client's on_map. Resolves the exports' directories in the background. */
void hf_vfs_map_changed(struct hf_vfs *v, const Hf__MapGetRep *map);
/* false until the first map has come and its exports have been resolved. */
bool hf_vfs_ready(const struct hf_vfs *v);
uint64_t hf_vfs_fsid(const struct hf_vfs *v);
/* Lists exports in order of their path: fn gets path and client list (borrowed). */
void hf_vfs_exports(struct hf_vfs *v, void (*fn)(void *arg, const Hf__ExportEntry *e), void *arg);

/* ---- objects and handles ---- */

/* An object as a request sees it: a decoded handle. Plain value. */
struct hf_vfs_obj {
    struct hf_vfs_export exp;
    uint64_t ino;
    uint32_t gen;
};

/* Finds an export by path for a client; NOENT, ACCES (address not admitted). Path is what MOUNT
 * names; a path below an export ("/main/dir") is refused with ACCES unless exported itself. */
int hf_vfs_mount(struct hf_vfs *v, struct hf_slice path, const struct sockaddr *peer,
                 struct hf_vfs_obj *ret);
/* BADHANDLE: malformed or its MAC is wrong; STALE: the export is gone or another file system's;
 * ACCES: the export does not admit this address. */
int hf_vfs_fh_decode(struct hf_vfs *v, struct hf_slice fh, const struct sockaddr *peer,
                     struct hf_vfs_obj *ret);
/* buf: HF_VFS_FH_MAX bytes; returns the length used. Equal objects have equal handles. */
uint32_t hf_vfs_fh_encode(struct hf_vfs *v, const struct hf_vfs_export *exp, uint64_t ino,
                          uint32_t gen, void *buf);

/* ---- operations ---- */

struct hf_vfs_cred {
    uint32_t uid, gid;
    uint32_t ngroups;
    uint32_t groups[HF_VFS_GROUPS_MAX];
};

/* One operation in flight. Caller-owned; zero it, set cred, done, arg; keep it valid until done
 * returns. done is called exactly once, never from inside the call, as the last statement of the
 * work. Bytes given by reference (names, targets, write data, SetAttrs) must stay valid until done.
 */
struct hf_vfs_req {
    struct hf_vfs_cred cred; /* as the protocol gave it; squashing happens here */
    void (*done)(struct hf_vfs_req *r);
    void *arg;
    /* outputs, valid inside done (body and pieces live in *msg / pieces[].msg) */
    int status;                    /* HF_E_* */
    const void *rep;               /* the Hf__...Rep of the operation, may be NULL on errors */
    const struct hf_client_io *io; /* read, write, commit: see struct hf_client_io's outputs */
    struct hf_vfs_space {
        uint64_t total_bytes, free_bytes, total_files, free_files;
    } space; /* fsstat */
    /* private */
    struct hf_client_call call;
    struct hf_client_io data;
    Hf__Cred wire_cred;
    uint32_t groups[HF_VFS_GROUPS_MAX]; /* squashed */
    struct hf_vfs_export exp;
    uint64_t ino; /* the object that a reply is completed with (lookup, readdir, access) */
    union {
        Hf__LookupReq lookup;
        Hf__GetattrReq getattr;
        Hf__SetattrReq setattr;
        Hf__AccessReq access;
        Hf__ReadlinkReq readlink;
        Hf__CreateReq create;
        Hf__MakeReq make;
        Hf__RemoveReq remove;
        Hf__RenameReq rename;
        Hf__LinkReq link;
        Hf__ReaddirReq readdir;
        Hf__FsstatReq fsstat;
    } wire;
    struct hf_vfs *vfs;
    struct hf_task task; /* completes requests that were refused at once */
};

/* rep: Hf__GetattrRep. No permission needed. */
void hf_vfs_getattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o);
/* rep: Hf__SetattrRep. ROFS on a read-only export (the same for every change below). */
void hf_vfs_setattr(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                    Hf__SetAttrs *set, bool guard, int64_t guard_ctime_ns);
/* rep: Hf__LookupRep. ".." at the export's root is the root. */
void hf_vfs_lookup(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name);
/* rep: Hf__AccessRep. want: RFC 1813 3.3.4 bits; changes are masked on a read-only export. */
void hf_vfs_access(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint32_t want);
void hf_vfs_readlink(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o);
/* io: pieces, count, eof, attr. */
void hf_vfs_read(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 uint64_t offset, uint32_t len);
/* io: wcc, count, verifier. data: up to HF_RPC_BULK_IOV - 1 slices. */
void hf_vfs_write(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                  uint64_t offset, const struct hf_slice *data, unsigned n, uint32_t stable);
void hf_vfs_commit(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                   uint64_t offset, uint32_t len);
/* rep: Hf__CreateRep. how: enum Hf__CreateHow. */
void hf_vfs_create(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, uint32_t how, Hf__SetAttrs *set, uint64_t verf);
/* rep: Hf__MakeRep. type: FT_DIR, FT_LNK (target), FT_BLK/FT_CHR (major, minor), FT_SOCK, FT_FIFO.
 */
void hf_vfs_make(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                 struct hf_slice name, uint32_t type, Hf__SetAttrs *set, struct hf_slice target,
                 uint32_t rmajor, uint32_t rminor);
/* rep: Hf__RemoveRep. */
void hf_vfs_remove(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                   struct hf_slice name, bool is_dir);
/* rep: Hf__RenameRep. XDEV between exports. */
void hf_vfs_rename(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *from,
                   struct hf_slice from_name, const struct hf_vfs_obj *to, struct hf_slice to_name);
/* rep: Hf__LinkRep. */
void hf_vfs_link(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o,
                 const struct hf_vfs_obj *dir, struct hf_slice name);
/* rep: Hf__ReaddirRep; see ReaddirReq in meta.proto for the limits. */
void hf_vfs_readdir(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *dir,
                    uint64_t cookie, uint32_t max_bytes, uint32_t entry_overhead,
                    uint32_t max_entries, bool plus);
/* rep: Hf__FsstatRep, and space. */
void hf_vfs_fsstat(struct hf_vfs *v, struct hf_vfs_req *r, const struct hf_vfs_obj *o);

#endif

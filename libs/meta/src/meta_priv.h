/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operations of meta share. An operation is a function of ops.def:
 *
 *     int hf_meta_op_NAME(struct hf_meta *m, struct hf_meta_op *op, const Hf__NAMEReq *q,
 * Hf__NAMERep *p);
 *
 * It returns the status. Its shape is always the same: load the objects (which puts their
 * attributes into the reply), check, take what memory is needed, and only then write. After the
 * first write only the store can fail, and then it is broken for good.
 */
#ifndef HOLDFAST_META_PRIV_H
#define HOLDFAST_META_PRIV_H

#include "holdfast/err.h"
#include "holdfast/map.h"
#include "holdfast/meta.h"
#include "layout.h"

#define HF_META_INLINE_MAX (32u << 10)
#define HF_NSEC_PER_SEC    INT64_C(1000000000)

/* Where new chunks go: pools and segments of the cluster map. */
struct hf_place_pool {
    uint32_t id, chunk_bytes, width;
    bool hot;
};
struct hf_place_seg {
    uint32_t id, pool;
    bool known; /* free_bytes has been told */
    uint64_t free_bytes;
    uint64_t weight; /* of the running choice */
};
struct hf_place {
    struct hf_place_pool *pools;
    struct hf_place_seg *segs;
    size_t npools, nsegs;
    size_t turn; /* where the next round-robin choice starts among segs */
};

struct hf_meta {
    Hf__Meta_Service service; /* first: a service pointer is a struct hf_meta */
    struct hf_store *store;
    uint32_t shard, inline_max;
    bool noatime;
    uint8_t cookie_key[16];
    uint64_t next_local, end_local; /* local inode numbers that the stored counter allows */
    int64_t now_ns;                 /* of the latest operation; ages sessions */
    uint64_t seen_session;          /* the session of the latest slot check, 0: none */
    int64_t seen_ns;                /* and when its row says it was seen */
    int64_t started_ns; /* of the first operation since the shard was opened; 0: none yet */
    bool grace;         /* sessions have opens that the log may not tell of: see open.c */
    struct hf_place place;
    struct hf_map appends; /* ino -> append to chunks under way (write.c) */
    struct hf_map opens;   /* session -> how many objects it has open, as a number (open.c) */
};

#define X(name, Name)                                                                              \
    int hf_meta_op_##name(struct hf_meta *m, struct hf_meta_op *op, const Hf__##Name##Req *q,      \
                          Hf__##Name##Rep *p);
#include "ops.def"
#undef X

/* ---- objects (object.c) ---- */

/* An inode in the hands of an operation. msg fields lie in the reply (arena); NULL: not wanted. */
struct hf_obj {
    struct hf_inode i;
    Hf__Attr *attr;
};

/* Loads (ino, gen), also if no name leads to it and nobody has it open (any more). */
int hf_obj_load_orphan(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                       struct hf_obj *o, Hf__Attr **ret_attr);
/* Loads (ino, gen) and puts its attributes into *ret_attr. STALE, NOMEM, CORRUPT. */
int hf_obj_load(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                struct hf_obj *o, Hf__Attr **ret_attr);
/* The same with a before-image: *ret_wcc->after is what hf_obj_save refreshes. */
int hf_obj_load_wcc(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                    struct hf_obj *o, Hf__Wcc **ret_wcc);
/* Like hf_obj_load_wcc; NOTDIR. */
int hf_dir_load_wcc(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, uint32_t gen,
                    struct hf_obj *o, Hf__Wcc **ret_wcc);
/* An object that a name refers to: no generation is known. ret_attr NULL: no attributes wanted.
 * CORRUPT if it does not exist. */
int hf_obj_load_child(struct hf_meta *m, struct hf_meta_op *op, uint64_t ino, struct hf_obj *o,
                      Hf__Attr **ret_attr);
/* A fresh object with zeros in what the caller does not set; takes no inode number yet. NOMEM. */
int hf_obj_new(struct hf_meta_op *op, uint8_t type, struct hf_obj *o, Hf__Attr **ret_attr);
int hf_obj_save(struct hf_meta *m, struct hf_obj *o);
int hf_ino_get(struct hf_meta *m, uint64_t ino, struct hf_inode *ret); /* NOENT */
int hf_ino_put(struct hf_meta *m, const struct hf_inode *i);
int hf_ino_del(struct hf_meta *m, uint64_t ino);
/* A number never used before. Writes. */
int hf_ino_alloc(struct hf_meta *m, uint64_t *ret);
void hf_attr_fill(Hf__Attr *a, const struct hf_inode *i);
/* The object changed: change counter and ctime (which always moves forward), and mtime. */
void hf_touch(struct hf_inode *i, int64_t now_ns, bool mtime);
/* relatime; saves the inode and makes the operation lazy if the access time is to be moved. */
int hf_touch_atime(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o);
/* What happened. Copies the name into the arena: NOMEM, so it comes before the first write. */
int hf_event(struct hf_meta_op *op, Hf__EventOp what, const struct hf_inode *i, uint64_t parent,
             struct hf_slice name, const Hf__Cred *cred);

/* ---- permissions (perm.c). cred NULL: nobody, everything is refused ---- */

enum { HF_R = 4, HF_W = 2, HF_X = 1 };

bool hf_cred_is_root(const Hf__Cred *c);
bool hf_cred_owns(const Hf__Cred *c, const struct hf_inode *i);
bool hf_cred_in_group(const Hf__Cred *c, uint32_t gid);
/* ACCES unless all of the bits are granted. CORRUPT: there is an ACL, but it cannot be read. */
int hf_may(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits);
/* For file content: the owner may always, if the protocol asks for it; then also execute gives
 * read. */
int hf_may_data(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits,
                bool owner_override);
/* May the name of `victim` be taken out of `dir`: ACCES without w and x, PERM in a sticky
 * directory. */
int hf_may_remove(struct hf_meta *m, const struct hf_inode *dir, const struct hf_inode *victim,
                  const Hf__Cred *c);
/* Data was written by c: setuid and (with group execute) setgid go, unless c is root; and
 * security.capability goes. Writes, but does not save the inode. */
int hf_kill_suid(struct hf_meta *m, struct hf_inode *i, const Hf__Cred *c);

/* ---- names (dent.c) ---- */

struct hf_dent {
    uint64_t
        cookie; /* of the entry; after NOENT the free one for the name, 0 if the bucket is full */
    uint64_t child;
    uint8_t type;
};

/* INVAL: empty, '/' or NUL inside; NAMETOOLONG. */
int hf_name_check(struct hf_slice name);
bool hf_name_is_dot(struct hf_slice name);    /* "." */
bool hf_name_is_dotdot(struct hf_slice name); /* ".." */
static inline struct hf_slice hf_name(const ProtobufCBinaryData *b)
{
    return hf_slice(b->data, b->len);
}
/* NOENT. */
int hf_dent_find(struct hf_meta *m, uint64_t dir, struct hf_slice name, struct hf_dent *ret);
int hf_dent_put(struct hf_meta *m, uint64_t dir, uint64_t cookie, uint64_t child, uint8_t type,
                struct hf_slice name);
int hf_dent_del(struct hf_meta *m, uint64_t dir, uint64_t cookie);
/* 0, or NOTEMPTY. */
int hf_dir_is_empty(struct hf_meta *m, const struct hf_inode *dir);
/* A name that is to be removed or taken: checks it, search permission, and finds it. NOENT with
 * *ret filled as by hf_dent_find; special: what "." and ".." are refused with. */
int hf_dir_search(struct hf_meta *m, const struct hf_inode *dir, const Hf__Cred *c,
                  struct hf_slice name, int special, struct hf_dent *ret);
/* hf_dir_search for a name that must be free; then write permission and room. EXIST, NOSPC (also:
 * 8192 names with one hash, that is names that differ in case only, are in the directory). */
int hf_dir_may_add(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *dir,
                   const Hf__Cred *c, struct hf_slice name, struct hf_dent *ret);

/* ---- sizes and layouts (size.c, place.c, gc.c) ---- */

/* May the object get this size: INVAL unless it is a regular file, FBIG. */
int hf_size_check(const struct hf_inode *i, uint64_t size);
/* CHANGED: chunks have to be trimmed before the file may reach up to `end`. */
int hf_size_trim_due(const struct hf_inode *i, uint64_t end);
/* Sets the size of a checked file; the inode is not saved. scratch: from hf_size_scratch. */
int hf_size_set(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i, uint64_t size,
                uint8_t *scratch);
/* Memory that hf_size_set needs to cut inline content. NOMEM. *ret may become NULL. */
int hf_size_scratch(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i,
                    uint64_t size, uint8_t **ret);
uint64_t hf_round_up(uint64_t v, uint64_t to);
/* The inline content of a file; empty if there is no row. Valid until the next store call. */
int hf_data_get(struct hf_meta *m, uint64_t ino, struct hf_slice *ret);
/* row: room for the header, followed by len bytes of content. */
int hf_data_put(struct hf_meta *m, uint64_t ino, uint8_t *row, uint32_t len);
int hf_data_del(struct hf_meta *m, uint64_t ino);

int hf_place_set(struct hf_place *p, const Hf__MapGetRep *map);
void hf_place_fini(struct hf_place *p);
void hf_place_set_free(struct hf_place *p, uint32_t segment, uint64_t free_bytes);
/* Free bytes of the pool that new files go to; ~0 while a segment has not told. */
uint64_t hf_place_free(const struct hf_place *p);
/* Chooses segments for a new file: pool, chunk_bytes, nsegs, segs; the rest is zeroed. prefer: for
 * HF_ALLOC_LOCAL, in order of preference; unknown ones are ignored. NOSPC if there are none. */
int hf_place_pick(struct hf_place *p, enum hf_alloc how, const uint32_t *prefer, size_t nprefer,
                  uint64_t random, struct hf_layout *ret);
/* Enters the chunks of [offset, end), which is not empty; false if they may exist already. A range
 * that grows runs ahead, so that a growing file seldom needs a change of its inode for this. */
bool hf_layout_reserve(struct hf_layout *l, uint64_t offset, uint64_t end);
/* The end of the last range. */
uint32_t hf_layout_nchunks(const struct hf_layout *l);
/* Bytes below `size` that the ranges cover: an upper bound of what is stored. */
uint64_t hf_layout_bytes(const struct hf_layout *l, uint64_t size);
/* The first piece of what has to be trimmed: it lies in one range. false: nothing. */
bool hf_layout_stale(const struct hf_layout *l, uint64_t *ret_from, uint64_t *ret_to);
/* The file gets shorter: notes what has to be trimmed. */
void hf_layout_cut(struct hf_layout *l, uint64_t size);
/* Before the file gets longer. A writer that this start of the shard (boot) does not know may have
 * left bytes beyond the size without having told their end: they have to be trimmed first. True:
 * the layout changed. */
bool hf_layout_settle(struct hf_layout *l, uint64_t size, uint64_t boot);
/* The first piece has been trimmed: the duty goes on with the next one or ends. */
void hf_layout_trimmed(struct hf_layout *l);
/* The layout as a message; with_trim: with its trim duty. NOMEM. */
int hf_layout_msg(struct hf_meta_op *op, const struct hf_layout *l, bool with_trim,
                  Hf__Layout **ret);
/* Brings a message made before up to date with l: fence and trim duty. */
void hf_layout_msg_refresh(Hf__Layout *msg, const struct hf_layout *l);
/* Enters the chunks of a layout, to be freed at due_ns. */
int hf_gc_put(struct hf_meta *m, uint64_t ino, const struct hf_layout *l, int64_t due_ns);
/* Takes the entries of a layout back. */
int hf_gc_unput(struct hf_meta *m, uint64_t ino, const struct hf_layout *l);
/* The layout that a promotion got, still its own: CHANGED if an entry is gone or due, since then
 * its chunks may be going. fence stays 0. */
int hf_gc_claim(struct hf_meta *m, uint64_t ino, uint32_t gen, int64_t now_ns,
                struct hf_layout *ret);
/* The object goes, with all that belongs to it. */
int hf_obj_del(struct hf_meta *m, const struct hf_inode *i, int64_t now_ns);
/* One link less, at the time of the operation; with the last one the object goes. Saves. */
int hf_obj_unlink(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, uint64_t dir);

void hf_appends_fini(struct hf_meta *m);
void hf_append_forget(struct hf_meta *m, uint64_t ino); /* the object goes */

/* ---- opens and sessions (open.c, session.c) ---- */

/* Somebody has the object open: 0, or NOENT. */
int hf_open_any(struct hf_meta *m, uint64_t ino);
int hf_open_put(struct hf_meta *m, uint64_t ino, uint64_t session);
/* Before the first write: NOSPC if the session has too many. *ret_new: it has not this one yet. ino
 * 0: an object that is being made. */
int hf_open_room(struct hf_meta *m, uint64_t ino, uint64_t session, bool *ret_new);
/* Records an open that is new. Lazy, unless the operation has changed something before. */
int hf_open_hold(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i,
                 const Hf__Cred *c);
/* Counts the opens of every session. */
int hf_opens_load(struct hf_meta *m);
/* May c open the object for `want` (R, W, X). ISDIR, ACCES. */
int hf_open_check(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, uint32_t want);
/* The last name has gone while the object is open. Saves. */
int hf_open_orphan(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o);
/* Up to max opens of a session end. */
int hf_opens_drop(struct hf_meta *m, uint64_t session, int64_t now_ns, unsigned max,
                  unsigned *ret_n);
/* It is not known, or has not renewed itself in time. */
bool hf_session_late(struct hf_meta *m, uint64_t session, int64_t now_ns);
int hf_session_lose_opens(struct hf_meta *m, uint64_t session);
/* Whether any session holds opens. */
int hf_session_any_opens(struct hf_meta *m, bool *ret);
/* Shortly after a restart: opens that the log has lost are being made again. */
bool hf_session_grace(const struct hf_meta *m, int64_t now_ns);

/* ---- attributes (setattr.c) ---- */

/* A change of size, in two steps around the first write. */
struct hf_resize {
    uint64_t size;
    uint8_t *scratch;
    Hf__Layout *layout; /* for a chunked file */
};
/* Everything that can fail. CHANGED: *ret_duty is the layout that has to be trimmed first. */
int hf_size_prepare(struct hf_meta *m, struct hf_meta_op *op, struct hf_obj *o, uint64_t size,
                    struct hf_resize *z, Hf__Layout **ret_duty);
/* Sets the size, takes setuid and setgid away; the inode is not saved. *ret_duty is set if chunks
 * are now to be trimmed. */
int hf_size_apply(struct hf_meta *m, struct hf_meta_op *op, struct hf_inode *i, const Hf__Cred *c,
                  const struct hf_resize *z, Hf__Layout **ret_duty);

/* Client or server time for an inode that is being made. */
void hf_set_times(struct hf_inode *i, const Hf__SetAttrs *s, int64_t now_ns);

/* The check of table xat (check_xattr.c): rows of nothing, rows and inode flags that disagree, ACLs
 * that are none. Adds to c->problems. */
int hf_check_xattrs(struct hf_store_snap *snap, const uint8_t cookie_key[16],
                    struct hf_meta_check *c);

/* The stored cluster map (export.c). NOSPC: too large. */
int hf_map_store(struct hf_store *store, const Hf__MapGetRep *map);

/* protobuf-c memory in an arena. */
ProtobufCAllocator hf_arena_allocator(struct hf_arena *a);

#endif

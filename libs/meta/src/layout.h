/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored layout of a shard: every table, key and value that meta puts into the store. This
 * header is the format; what it says stays true for every file system of HF_META_FORMAT.
 *
 * - Keys are big-endian, so that memcmp sorts them. E4 = 0xffffffff - snapshot epoch, so that the
 *   newest version of a key sorts first. The live tree is epoch 0: snapshots are not made yet.
 * - Values are little-endian; byte 0 is the value's version. The structs below give sizes and
 *   offsets, pinned by static_assert; a value is never cast to them but read and written field by
 *   field.
 * - An inode number is 0 | shard(16) | local(47): positive as int64. A local number is used once.
 * - A cookie is hash(50) << 13 | slot(13): below 2^63. See fold.h for the hash; hash 0 counts as 1,
 *   so that cookies 0 (start), 1 (".") and 2 ("..") are never an entry's.
 *
 * Everything that is read comes from a disk: decoders check lengths, versions and ranges before use
 * and say CORRUPT.
 *
 * A regular file is inline or chunked:
 *
 * - Inline: its content is in table data; the row may be shorter than the file's size, the rest
 *   reads as zeros, and a file without content has no row.
 * - Chunked: struct hf_layout_disk follows the inode, with up to HF_RANGES_MAX ranges of chunks
 * that may exist. A range is entered before one of its chunks is handed out for writing, so that
 *   removal and truncation find every chunk, and need not look for those of a hole. Cut to nothing,
 *   the file is inline again; its next layout has another generation.
 *
 * Extended attributes: a row each in table xat, named without the prefix that its namespace (the
 * key's ns1) stands for. hash8 is a keyed hash of the name (56 bits) and a slot (8 bits), the
 * lowest that was free in its bucket; of the two ACLs it is fixed. ACLs are stored as the kernel
 * writes them (version 2). An access ACL always has a mask, and its entries for the owner, the mask
 * and others count for nothing: the inode's mode has these. Inode flags say which rows there are.
 *
 * Parent pointers: a directory's names its parent (the root's: itself). Another object's is 0 (not
 * known) or a directory that holds one of its names: create, link (if unknown) and rename set it,
 * removing a name in that very directory while others remain sets it to 0.
 */
#ifndef HOLDFAST_META_LAYOUT_H
#define HOLDFAST_META_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/buf.h"
#include "holdfast/meta.h"

/* X(ID, "name")            key                   value */
#define HF_META_TABLES(X)                                                                          \
    X(META,                                                                                        \
      "meta") /*      ascii name            struct hf_format_disk, _counter_disk, _map_disk */     \
    X(INO,                                                                                         \
      "ino") /*      ino8 E4               struct hf_ino_disk [struct hf_layout_disk segs4..] */   \
    X(DENT, "dent") /*      dir8 cookie8 E4       struct hf_dent_disk name */                      \
    X(DATA, "data") /*      ino8 E4               struct hf_data_disk bytes */                     \
    X(XAT, "xat")   /*      ino8 ns1 hash8 E4     struct hf_xat_disk name value */                 \
    X(SESS, "sess") /*      session8              struct hf_sess_disk client */                    \
    X(SLOT, "slot") /*      session8 slot2        struct hf_slot_disk reply */                     \
    X(OPN, "opn")   /*      ino8 session8, and ff session8 ino8: opens */                          \
    X(LK, "lk")     /*      ino8 owner..          locks, leases */                                 \
    X(PREP, "prep") /*      tx16                  prepared part of a transaction */                \
    X(TX, "tx")     /*      tx16                  coordinated transaction */                       \
    X(OB, "ob")     /*      shard4 seq8           one-way message to send */                       \
    X(IB, "ib")     /*      shard4                last message applied */                          \
    X(GC, "gc")     /*      ino8 gen4 from4       struct hf_gc_disk segs4.. */                     \
    X(ORPH, "orph") /*      ino8                  unlinked but open */                             \
    X(Q, "q")       /*      project4              usage */                                         \
    X(SNAP, "snap") /*      epoch4                snapshot */

enum hf_meta_table {
#define X(id, name) HF_T_##id,
    HF_META_TABLES(X)
#undef X
        HF_T_COUNT
};

#define HF_EPOCH_LIVE 0u

/* ---- keys ---- */

#define HF_KEY_INO  12u /* ino8 E4 */
#define HF_KEY_DENT 20u /* dir8 cookie8 E4 */
#define HF_KEY_SESS 8u
#define HF_KEY_SLOT 10u
#define HF_KEY_GC   16u /* ino8 gen4 from4 */
#define HF_KEY_XAT  21u /* ino8 ns1 hash8 E4 */

#define HF_INO_LOCAL_BITS 47u
#define HF_INO_LOCAL_MAX  ((UINT64_C(1) << HF_INO_LOCAL_BITS) - 1)
#define HF_SLOT_BITS      13u
#define HF_SLOT_COUNT     (1u << HF_SLOT_BITS) /* names of one hash in one directory */
#define HF_HASH_BITS      50u

void hf_key_ino(uint8_t key[HF_KEY_INO], uint64_t ino);
void hf_key_dent(uint8_t key[HF_KEY_DENT], uint64_t dir, uint64_t cookie);
void hf_key_slot(uint8_t key[HF_KEY_SLOT], uint64_t session, uint16_t slot);
void hf_key_gc(uint8_t key[HF_KEY_GC], uint64_t ino, uint32_t gen, uint32_t from);
void hf_key_xat(uint8_t key[HF_KEY_XAT], uint64_t ino, uint8_t ns, uint64_t hash);

/* CORRUPT. Outputs untouched on error. */
int hf_key_ino_parse(struct hf_slice key, uint64_t *ret_ino);
int hf_key_dent_parse(struct hf_slice key, uint64_t *ret_dir, uint64_t *ret_cookie);
int hf_key_gc_parse(struct hf_slice key, uint64_t *ret_ino, uint32_t *ret_gen, uint32_t *ret_from);
int hf_key_xat_parse(struct hf_slice key, uint64_t *ret_ino, uint8_t *ret_ns, uint64_t *ret_hash);

/* ---- values on disk ---- */

#define HF_VALUE_VERSION 1u

struct hf_ino_disk {
    uint8_t version, type;
    uint16_t mode;
    uint32_t nlink, uid, gid, gen, flags, rdev_major, rdev_minor;
    uint64_t size, allocated;
    int64_t atime_ns, mtime_ns, ctime_ns, btime_ns;
    uint64_t change, parent, verf;
    uint32_t project, layout_gens;
    uint8_t kind, pad[7];
};
struct hf_layout_disk {
    uint32_t pool, chunk_bytes, gen, fence, nranges;
    uint16_t nsegs;
    uint8_t trim, pad;
    uint64_t trim_from, trim_to;
    uint64_t boot;
    /* then nsegs segment numbers, then nranges pairs of chunk numbers: first, end */
};
struct hf_dent_disk {
    uint8_t version, type;
    uint16_t flags;
    uint32_t name_len;
    uint64_t child;
};
struct hf_data_disk {
    uint8_t version, pad[3];
    uint32_t len;
};
struct hf_sess_disk {
    uint8_t version, flags;
    uint16_t client_len;
    uint32_t nslots;
    int64_t opened_ns, seen_ns;
};
struct hf_slot_disk {
    uint8_t version, pad[3];
    int32_t status;
    uint64_t sequence;
};
struct hf_gc_disk {
    uint8_t version, pad;
    uint16_t nsegs;
    uint32_t nchunks;
    int64_t due_ns;
    uint32_t pool, chunk_bytes;
};
struct hf_xat_disk {
    uint8_t version, pad;
    uint16_t name_len;
    uint32_t value_len;
    /* then the name, then the value */
};
struct hf_format_disk {
    uint8_t version, pad[3];
    uint32_t format, shard, root_gen;
    int64_t created_ns;
    uint8_t cookie_key[16];
};
struct hf_counter_disk {
    uint8_t version, pad[7];
    uint64_t value;
};
struct hf_map_disk {
    uint8_t version, pad[3];
    uint32_t len;
};

#define HF_AT(type, field, offset)                                                                 \
    static_assert(offsetof(struct type, field) == (offset), #type "." #field)
static_assert(sizeof(struct hf_ino_disk) == 120, "inode");
HF_AT(hf_ino_disk, type, 1);
HF_AT(hf_ino_disk, mode, 2);
HF_AT(hf_ino_disk, nlink, 4);
HF_AT(hf_ino_disk, uid, 8);
HF_AT(hf_ino_disk, gid, 12);
HF_AT(hf_ino_disk, gen, 16);
HF_AT(hf_ino_disk, flags, 20);
HF_AT(hf_ino_disk, rdev_major, 24);
HF_AT(hf_ino_disk, rdev_minor, 28);
HF_AT(hf_ino_disk, size, 32);
HF_AT(hf_ino_disk, allocated, 40);
HF_AT(hf_ino_disk, atime_ns, 48);
HF_AT(hf_ino_disk, mtime_ns, 56);
HF_AT(hf_ino_disk, ctime_ns, 64);
HF_AT(hf_ino_disk, btime_ns, 72);
HF_AT(hf_ino_disk, change, 80);
HF_AT(hf_ino_disk, parent, 88);
HF_AT(hf_ino_disk, verf, 96);
HF_AT(hf_ino_disk, project, 104);
HF_AT(hf_ino_disk, layout_gens, 108);
HF_AT(hf_ino_disk, kind, 112);
static_assert(sizeof(struct hf_layout_disk) == 48, "layout");
HF_AT(hf_layout_disk, chunk_bytes, 4);
HF_AT(hf_layout_disk, gen, 8);
HF_AT(hf_layout_disk, fence, 12);
HF_AT(hf_layout_disk, nranges, 16);
HF_AT(hf_layout_disk, nsegs, 20);
HF_AT(hf_layout_disk, trim, 22);
HF_AT(hf_layout_disk, trim_from, 24);
HF_AT(hf_layout_disk, trim_to, 32);
HF_AT(hf_layout_disk, boot, 40);
static_assert(sizeof(struct hf_dent_disk) == 16, "dentry");
HF_AT(hf_dent_disk, type, 1);
HF_AT(hf_dent_disk, flags, 2);
HF_AT(hf_dent_disk, name_len, 4);
HF_AT(hf_dent_disk, child, 8);
static_assert(sizeof(struct hf_data_disk) == 8, "data");
HF_AT(hf_data_disk, len, 4);
static_assert(sizeof(struct hf_sess_disk) == 24, "session");
HF_AT(hf_sess_disk, client_len, 2);
HF_AT(hf_sess_disk, nslots, 4);
HF_AT(hf_sess_disk, opened_ns, 8);
HF_AT(hf_sess_disk, seen_ns, 16);
static_assert(sizeof(struct hf_slot_disk) == 16, "slot");
HF_AT(hf_slot_disk, status, 4);
HF_AT(hf_slot_disk, sequence, 8);
static_assert(sizeof(struct hf_gc_disk) == 24, "gc");
HF_AT(hf_gc_disk, nsegs, 2);
HF_AT(hf_gc_disk, nchunks, 4);
HF_AT(hf_gc_disk, due_ns, 8);
HF_AT(hf_gc_disk, pool, 16);
HF_AT(hf_gc_disk, chunk_bytes, 20);
static_assert(sizeof(struct hf_xat_disk) == 8, "extended attribute");
HF_AT(hf_xat_disk, name_len, 2);
HF_AT(hf_xat_disk, value_len, 4);
static_assert(sizeof(struct hf_format_disk) == 40, "format");
HF_AT(hf_format_disk, format, 4);
HF_AT(hf_format_disk, shard, 8);
HF_AT(hf_format_disk, root_gen, 12);
HF_AT(hf_format_disk, created_ns, 16);
HF_AT(hf_format_disk, cookie_key, 24);
static_assert(sizeof(struct hf_counter_disk) == 16, "counter");
HF_AT(hf_counter_disk, value, 8);
static_assert(sizeof(struct hf_map_disk) == 8, "map");
HF_AT(hf_map_disk, len, 4);
#undef HF_AT

/* Rows of table meta. */
#define HF_ROW_FORMAT "format"
#define HF_ROW_NEXT   "next"   /* counter: local inode numbers below it may have been used */
#define HF_ROW_EXPORT "export" /* counter: the last export id given out */
#define HF_ROW_MAP    "map"    /* shard 0: the cluster map, a packed MapGetRep */

/* ---- values in memory ---- */

enum hf_ino_kind {
    HF_KIND_NONE = 0,   /* directories, devices, sockets, pipes */
    HF_KIND_INLINE = 1, /* regular files, symbolic links (the target) */
    HF_KIND_CHUNKS = 2, /* regular files */
};

#define HF_INO_EXCLUSIVE   1u  /* flags: made by an EXCLUSIVE create, verf is its verifier */
#define HF_INO_XATTR       2u  /* flags: has rows in table xat */
#define HF_INO_ACL         4u  /* among them an access ACL, */
#define HF_INO_DEFAULT_ACL 8u  /* a default ACL, */
#define HF_INO_CAPABILITY  16u /* security.capability */
#define HF_INO_ALLOC_SHIFT 5u  /* two bits: enum hf_alloc */
#define HF_INO_ALLOC       (3u << HF_INO_ALLOC_SHIFT)

/* How segments are chosen for a new file: of a directory, inherited by what is made in it. */
enum hf_alloc {
    HF_ALLOC_UNSET = 0, /* as HF_ALLOC_FREE_SPACE */
    HF_ALLOC_FREE_SPACE = 1,
    HF_ALLOC_ROUND_ROBIN = 2,
    HF_ALLOC_LOCAL = 3,
};

#define HF_SEGS_MAX   64u
#define HF_RANGES_MAX 8u

/* Chunks from <= i < to. */
struct hf_range {
    uint32_t from, to;
};

struct hf_layout {
    uint32_t pool, chunk_bytes, gen, fence;
    uint16_t nsegs, nranges;
    bool trim; /* what the ranges have of bytes [trim_from, trim_to) may be stale */
    uint64_t trim_from, trim_to;
    /* Of the shard, when bytes beyond the size were last known to be in good hands. */
    uint64_t boot;
    struct hf_range ranges[HF_RANGES_MAX]; /* ascending, not touching */
    uint32_t segs[HF_SEGS_MAX];
};

struct hf_inode {
    uint64_t ino;
    uint8_t type, kind;
    uint16_t mode;
    uint32_t nlink, uid, gid, gen, flags, rdev_major, rdev_minor;
    uint64_t size, allocated;
    int64_t atime_ns, mtime_ns, ctime_ns, btime_ns;
    uint64_t change, parent, verf;
    uint32_t project, layout_gens;
    struct hf_layout lay; /* set only if kind is HF_KIND_CHUNKS */
};
#define HF_INO_VALUE_MAX                                                                           \
    (sizeof(struct hf_ino_disk) + sizeof(struct hf_layout_disk) + HF_SEGS_MAX * sizeof(uint32_t) + \
     HF_RANGES_MAX * sizeof(struct hf_range))

static inline enum hf_alloc hf_ino_alloc_how(const struct hf_inode *i)
{
    return (enum hf_alloc)((i->flags & HF_INO_ALLOC) >> HF_INO_ALLOC_SHIFT);
}

size_t hf_ino_encode(const struct hf_inode *i, uint8_t out[HF_INO_VALUE_MAX]);
int hf_ino_decode(struct hf_slice val, uint64_t ino, struct hf_inode *ret);

struct hf_dentry {
    uint64_t child;
    uint8_t type;
    uint16_t flags;
    struct hf_slice name; /* in the value */
};
#define HF_DENT_VALUE_MAX (sizeof(struct hf_dent_disk) + HF_META_NAME_MAX)
size_t hf_dent_encode(const struct hf_dentry *d, uint8_t out[HF_DENT_VALUE_MAX]);
int hf_dent_decode(struct hf_slice val, struct hf_dentry *ret);

/* out: room for sizeof(struct hf_data_disk) + len; the content is put behind the header by the
 * caller. */
void hf_data_encode_head(uint32_t len, uint8_t *out);
int hf_data_decode(struct hf_slice val, struct hf_slice *ret_content);

#define HF_SESS_OPENS 1u /* holds opens, and opens them again after a restart of the shard */
#define HF_SESS_LOST  2u /* its opens have been dropped since it renewed itself */
struct hf_sess {
    uint8_t flags;
    uint32_t nslots;
    int64_t opened_ns, seen_ns;
    struct hf_slice client;
};
#define HF_CLIENT_NAME_MAX 255u
#define HF_SESS_VALUE_MAX  (sizeof(struct hf_sess_disk) + HF_CLIENT_NAME_MAX)
#define HF_SESS_SLOTS_MAX  1024u
size_t hf_sess_encode(const struct hf_sess *s, uint8_t out[HF_SESS_VALUE_MAX]);
int hf_sess_decode(struct hf_slice val, struct hf_sess *ret);

struct hf_slot {
    int32_t status;
    uint64_t sequence;
    struct hf_slice reply;
};
#define HF_SLOT_REPLY_MAX 4096u
#define HF_SLOT_VALUE_MAX (sizeof(struct hf_slot_disk) + HF_SLOT_REPLY_MAX)
size_t hf_slot_encode(const struct hf_slot *s, uint8_t out[HF_SLOT_VALUE_MAX]);
int hf_slot_decode(struct hf_slice val, struct hf_slot *ret);

struct hf_gc {
    uint32_t nchunks; /* the range's end; its start is in the key */
    uint32_t pool, chunk_bytes;
    int64_t due_ns;
    uint16_t nsegs;
    uint32_t segs[HF_SEGS_MAX];
};
#define HF_GC_VALUE_MAX (sizeof(struct hf_gc_disk) + HF_SEGS_MAX * sizeof(uint32_t))
size_t hf_gc_encode(const struct hf_gc *g, uint8_t out[HF_GC_VALUE_MAX]);
int hf_gc_decode(struct hf_slice val, struct hf_gc *ret);

enum hf_xat_ns { HF_XAT_USER = 1, HF_XAT_TRUSTED, HF_XAT_SECURITY, HF_XAT_SYSTEM, HF_XAT_NS_END };
struct hf_xat {
    struct hf_slice name, value;
};
#define HF_XAT_NAME_MAX  255u        /* with its prefix */
#define HF_XAT_VALUE_MAX (64u << 10) /* bytes of a value */
/* out: room for the header and both; value may lie where it belongs already. */
size_t hf_xat_encode(const struct hf_xat *x, uint8_t *out);
int hf_xat_decode(struct hf_slice val, struct hf_xat *ret);

struct hf_format_row {
    uint32_t format, shard, root_gen;
    int64_t created_ns;
    uint8_t cookie_key[16];
};
void hf_format_encode(const struct hf_format_row *f, uint8_t out[sizeof(struct hf_format_disk)]);
/* VERSION: another HF_META_FORMAT. */
int hf_format_decode(struct hf_slice val, struct hf_format_row *ret);

void hf_counter_encode(uint64_t value, uint8_t out[sizeof(struct hf_counter_disk)]);
int hf_counter_decode(struct hf_slice val, uint64_t *ret);

void hf_map_encode_head(uint32_t len, uint8_t out[sizeof(struct hf_map_disk)]);
int hf_map_decode(struct hf_slice val, struct hf_slice *ret_packed);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard on a store, and its operations as plain calls for tests.
 */
#ifndef HOLDFAST_META_TESTS_SUPPORT_H
#define HOLDFAST_META_TESTS_SUPPORT_H

#include <criterion/criterion.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/meta.h"
#include "layout.h"

#define T_INLINE_MAX 8192u
#define T_START_NS   INT64_C(1700000000000000000)

struct shard {
    struct hf_store *store;
    struct hf_meta *meta;
    struct hf_arena arena;
    int64_t now_ns;
    uint64_t random;
    uint64_t session; /* of the operations to come; 0: none */
    uint64_t boot;    /* 0: one that is always the same */
    bool may_grow;
    struct hf_slice bulk; /* for the next operation */
    struct hf_meta_op op; /* the latest */
    const void *rep;
    char dir[64];
};

enum {
    REG = HF__FILE_TYPE__FT_REG,
    DIR_ = HF__FILE_TYPE__FT_DIR,
    LNK = HF__FILE_TYPE__FT_LNK,
    BLK = HF__FILE_TYPE__FT_BLK,
    CHR = HF__FILE_TYPE__FT_CHR,
    FIFO = HF__FILE_TYPE__FT_FIFO,
    SOCK = HF__FILE_TYPE__FT_SOCK
};

/* An object as a client knows it. */
struct fh {
    uint64_t ino;
    uint32_t gen;
};

void shard_open(struct shard *s, enum hf_store_kind kind);
void shard_close(struct shard *s);
/* A store without a shard in it, as the second side of a replay. */
struct hf_store *store_open(enum hf_store_kind kind, char dir[64]);
void store_close(struct hf_store *st, const char *dir);
/* Reopens hf_meta on the same store, as after a replay. */
void shard_reopen(struct shard *s);
/* Makes what was done visible to snapshots. */
void shard_checkpoint(struct shard *s);
/* Runs the check; the number of problems. kinds: their words, each followed by a space; may be
 * NULL. */
uint64_t shard_check(struct shard *s, char kinds[512]);

/* Each operation: *rep is the reply (in s->arena, never NULL); returns the status. */
#define X(name, Name)                                                                              \
    int do_##name(struct shard *s, const Hf__##Name##Req *q, const Hf__##Name##Rep **rep);
#include "ops.def"
#undef X

extern Hf__Cred t_root, t_u1,
    t_u2; /* u1: uid 1001, gid 1001, group 500; u2: uid 1002, gid 1002, group 500 */
extern const struct fh t_root_dir;

ProtobufCBinaryData t_bytes(const char *s);
struct fh t_fh(const Hf__Attr *a);
/* Plain forms. *ret may be NULL. */
int t_create(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, uint32_t mode,
             struct fh *ret);
int t_make(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, uint32_t type,
           uint32_t mode, struct fh *ret);
int t_symlink(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, const char *target,
              struct fh *ret);
int t_lookup(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, struct fh *ret);
int t_remove(struct shard *s, Hf__Cred *c, struct fh dir, const char *name, bool is_dir);
int t_rename(struct shard *s, Hf__Cred *c, struct fh from, const char *name, struct fh to,
             const char *to_name);
int t_link(struct shard *s, Hf__Cred *c, struct fh o, struct fh dir, const char *name);
int t_setattr(struct shard *s, Hf__Cred *c, struct fh o, Hf__SetAttrs *set);
int t_chmod(struct shard *s, Hf__Cred *c, struct fh o, uint32_t mode);
int t_chown(struct shard *s, Hf__Cred *c, struct fh o, int64_t uid, int64_t gid); /* -1: keep */
int t_truncate(struct shard *s, Hf__Cred *c, struct fh o, uint64_t size);
int t_write(struct shard *s, Hf__Cred *c, struct fh o, uint64_t offset, const void *data,
            uint32_t len);
int t_read(struct shard *s, Hf__Cred *c, struct fh o, uint64_t offset, uint32_t len);
Hf__Attr t_attr(struct shard *s, struct fh o); /* asserts that it exists */

#define BOTH_STORES(suite, name)                                                                   \
    static void name##_on(enum hf_store_kind kind);                                                \
    Test(suite, name##_mem)                                                                        \
    {                                                                                              \
        name##_on(HF_STORE_MEM);                                                                   \
    }                                                                                              \
    Test(suite, name##_lmdb)                                                                       \
    {                                                                                              \
        name##_on(HF_STORE_LMDB);                                                                  \
    }                                                                                              \
    static void name##_on(enum hf_store_kind kind)

/* A tree for tables of cases: /d (u1 0755) /d/f (u1) /d/l -> target /d/sub/ (u1) /d/sub/x; /closed
 * (root 0700); /ro (root 0755); /sticky (root 1777) with u1's file s1; gone: removed; wrong: d of
 * another generation */
struct tree {
    struct fh d, f, l, sub, x, closed, ro, sticky, s1, gone, wrong;
};
void tree_make(struct shard *s, struct tree *t);
extern char name255[256], name256[257];

#define cr_status(expr, want)                                                                      \
    do {                                                                                           \
        int got_ = (expr), want_ = (want);                                                         \
        cr_assert(got_ == want_, "%s: %s, want %s", #expr, hf_err_name(got_), hf_err_name(want_)); \
    } while (0)
#define cr_ok(expr) cr_status(expr, 0)

#endif

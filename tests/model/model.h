/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of POSIX namespace semantics, and the operations that are run against it and against the
 * system.
 *
 * The model says of an operation which errors it must end with one of (`must`, empty: it has to
 * succeed) and which it also may end with (`may`): POSIX leaves the order of checks open. When the
 * system has succeeded, the model makes the change too, and says what must be seen.
 */
#ifndef HF_MODEL_H
#define HF_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NAMES      12 /* of the small alphabet that paths are made of; the last is too long */
#define DEPTH      4  /* of the paths of operations */
#define DEPTH_MAX  64 /* that renames can make */
#define USERS      4
#define CLIENTS    3
#define SLOTS      6 /* open files */
#define XATTRS     3
#define XATTR_SIZE 3000
#define DATA_MAX   (160u << 10) /* of a file: inline, promoted, several blocks */

extern const char *const op_names[];
const char *name_text(unsigned name);

struct user {
    uint32_t uid, gid;
    uint32_t ngroups;
    uint32_t groups[2];
};
extern const struct user users[USERS];

struct path {
    uint8_t n;
    uint8_t name[DEPTH_MAX];
};

enum op_kind {
    OP_LOOKUP,
    OP_CREATE,
    OP_MKDIR,
    OP_MKNOD,
    OP_SYMLINK,
    OP_LINK,
    OP_UNLINK,
    OP_RMDIR,
    OP_RENAME,
    OP_CHMOD,
    OP_CHOWN,
    OP_TRUNCATE,
    OP_OPEN,
    OP_CLOSE,
    OP_WRITE,
    OP_READ,
    OP_FTRUNCATE,
    OP_PUNCH,
    OP_FSTAT,
    OP_READDIR,
    OP_SETXATTR,
    OP_GETXATTR,
    OP_REMOVEXATTR,
    OP_ACCESS,
    OP_KINDS
};

struct op {
    uint8_t kind, client, user, slot;
    struct path path, to;
    uint32_t mode;        /* also: access mask */
    uint32_t uid, gid;    /* chown */
    uint32_t flags;       /* open: O_*; rename: HF_RENAME_*; xattr: XATTR_* */
    uint32_t offset, len; /* also: sizes */
    uint8_t fill;         /* what the bytes are made of */
    uint8_t xattr;
};

void op_random(struct op *op, uint64_t *rng);
/* One line; returns buf. */
const char *op_text(const struct op *op, char *buf, size_t bytes);
uint64_t rng_next(uint64_t *rng);

/* ---- errors ---- */

struct errors {
    uint8_t n;
    int e[12];
};
void errors_add(struct errors *s, int e); /* positive errno */
bool errors_has(const struct errors *s, int e);

/* ---- what is seen ---- */

struct seen_entry {
    uint8_t name;
    uint32_t type; /* S_IFMT */
};

struct seen {
    /* attributes: lookup, create, mkdir, mknod, symlink, link, chmod, chown, truncate, fstat */
    bool have_attr;
    uint32_t mode, nlink, uid, gid;
    uint64_t size;
    /* data: read, getxattr */
    bool have_data;
    const uint8_t *data;
    size_t len;
    /* readdir */
    bool have_entries;
    unsigned nentries;
    struct seen_entry entries[NAMES];
};

struct model;
struct model *model_new(void); /* an empty directory, mode 0777, owned by root */
void model_free(struct model *m);

/* What the operation must and may end with. */
void model_check(const struct model *m, const struct op *op, struct errors *must,
                 struct errors *may);
/* The system has succeeded: changes the model, and says what must be seen (pointers valid until the
 * next call). */
void model_apply(struct model *m, const struct op *op, struct seen *ret);
/* Reads through this slot need not show what the model has: another client has changed the file
 * since it was opened here (close-to-open). */
bool model_stale(const struct model *m, const struct op *op);
/* Every object below the run's directory with its path, for the check at the end. Stops at
 * non-zero. */
int model_visit(const struct model *m,
                int (*fn)(void *arg, const struct path *path, const struct seen *seen), void *arg);

/* ---- the system ---- */

struct system;
/* Connects CLIENTS clients. 0 or -errno. */
int system_new(const char *url, struct system **ret);
void system_free(struct system *s);
/* A new empty directory for a run. */
int system_begin(struct system *s);
/* Closes what is open; removes everything. */
int system_end(struct system *s);
/* 0 or a positive errno; what was seen (pointers valid until the next call). */
int system_run(struct system *s, const struct op *op, struct seen *ret);
/* As root, by client: what is at the path. For the check at the end; data only of regular files. */
int system_look(struct system *s, unsigned client, const struct path *p, struct seen *ret);
/* How many names there are below the run's directory. */
int system_count(struct system *s, size_t *ret);

#endif

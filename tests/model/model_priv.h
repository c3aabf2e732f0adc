/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_MODEL_PRIV_H
#define HF_MODEL_PRIV_H

#include "model.h"

struct xattr {
    bool set;
    uint32_t len;
    uint8_t value[XATTR_SIZE];
};

struct object {
    uint32_t type, mode, uid, gid, nlink;
    uint64_t size;
    uint8_t *data;
    struct object *parent;       /* of a directory */
    struct object *child[NAMES]; /* of a directory, by name */
    struct xattr xattr[XATTRS];
    unsigned opens;
    uint64_t changed[CLIENTS]; /* when its content was last changed by each client */
};

struct slot {
    struct object *obj;
    uint32_t flags;
    unsigned client;
    uint64_t since;
};

struct model {
    struct object *root;
    struct slot slot[SLOTS];
    uint64_t seq;
};

/* A name in a directory; obj NULL: there is none of that name. */
struct at {
    struct object *dir, *obj;
    unsigned name;
};

static inline bool user_in_group(const struct user *u, uint32_t gid)
{
    for (unsigned i = 0; i < u->ngroups; i++)
        if (u->groups[i] == gid)
            return true;
    return u->gid == gid;
}

static inline bool op_is_of_slot(const struct op *op)
{
    return op->kind == OP_CLOSE || op->kind == OP_WRITE || op->kind == OP_READ ||
           op->kind == OP_FTRUNCATE || op->kind == OP_PUNCH || op->kind == OP_FSTAT;
}

/* Walks to the last component. False: an error on the way, in *e. The last name's own errors are in
 * *e, too, and then ret is set. */
bool resolve(const struct model *m, const struct user *u, const struct path *p, struct at *ret,
             struct errors *e);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of table xat: what xattr.c and acl.c share.
 */
#ifndef HOLDFAST_META_XAT_H
#define HOLDFAST_META_XAT_H

#include "meta_priv.h"

#define HF_XAT_ACL_ACCESS  "posix_acl_access"
#define HF_XAT_ACL_DEFAULT "posix_acl_default"
#define HF_XAT_CAPABILITY  "capability"
#define HF_XAT_ALLOCATION  "holdfast.allocation"

#define HF_XAT_LIST_MAX  (64u << 10) /* bytes of a list of names, each with its NUL */
#define HF_XAT_COUNT_MAX 1024u       /* attributes of an object */

/* "user." for HF_XAT_USER. */
const char *hf_xat_prefix(uint8_t ns);

#define HF_XAT_SLOTS 256u /* of a bucket: the last byte of the hash */
/* The first slot of a name's bucket. */
uint64_t hf_xat_hash(const uint8_t cookie_key[16], uint8_t ns, struct hf_slice name);

/* A row, or the place for one. */
struct hf_xat_row {
    uint8_t key[HF_KEY_XAT];
    bool found, full; /* full: there is no place for it */
    uint32_t bytes;   /* of the value found */
    /* A row to be written, in the arena. */
    uint8_t *val;
    size_t len;
};

/* Looks for an attribute. 0 also if there is none. *ret_value, valid until the next store call, is
 * empty then; may be NULL. */
int hf_xat_find(struct hf_meta *m, const struct hf_inode *i, uint8_t ns, struct hf_slice name,
                struct hf_xat_row *ret, struct hf_slice *ret_value);
/* Takes the memory for the new value of a row that was looked for, and checks that there is room
 * for it: NOSPC, NOMEM. */
int hf_xat_prepare(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i, uint8_t ns,
                   struct hf_slice name, struct hf_slice value, struct hf_xat_row *row);
/* A row for an object that is yet to be made; hf_xat_put_new writes it. NOMEM. */
int hf_xat_prepare_new(struct hf_meta_op *op, struct hf_slice name, struct hf_slice value,
                       struct hf_xat_row *row);
/* Writes; the flags of the inode follow, the inode is not saved. */
int hf_xat_put(struct hf_meta *m, struct hf_inode *i, const struct hf_xat_row *row);
int hf_xat_put_new(struct hf_meta *m, struct hf_inode *i, uint8_t ns, struct hf_slice name,
                   struct hf_xat_row *row);
int hf_xat_del(struct hf_meta *m, struct hf_inode *i, const struct hf_xat_row *row);

/* Calls fn for each attribute until it returns non-zero, which is returned. fn makes no store
 * calls.
 */
typedef int (*hf_xat_fn)(void *arg, uint8_t ns, const struct hf_xat *x);
int hf_xat_each(struct hf_meta *m, const struct hf_inode *i, hf_xat_fn fn, void *arg);
/* The flag of an inode that stands for this very row; 0: none does. */
uint32_t hf_xat_flag(uint8_t ns, struct hf_slice name);
/* security.capability goes. Called after the first write, it does not mind what it cannot read:
 * that gives nobody a capability. */
int hf_xat_del_capability(struct hf_meta *m, struct hf_inode *i);

#endif

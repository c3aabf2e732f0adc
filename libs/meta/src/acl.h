/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX access control lists: their format, their rule, their inheritance.
 */
#ifndef HOLDFAST_META_ACL_H
#define HOLDFAST_META_ACL_H

#include "xat.h"

#define HF_ACL_ENTRIES_MAX 512u

/* What an ACL says about the classes that a mode has; three bits each. */
struct hf_acl {
    struct hf_slice blob; /* as the kernel writes it; empty: no entries */
    unsigned user, group, mask, other;
    bool has_mask; /* else mask is 0 and the ACL says nothing that a mode cannot */
};

/* Checks an ACL and reads it. INVAL. */
int hf_acl_parse(struct hf_slice blob, struct hf_acl *ret);
/* Ids where they mean nothing get the value that the kernel gives them. */
void hf_acl_normalize(uint8_t *blob, size_t len);
/* The permission bits of the mode that goes with it. */
unsigned hf_acl_mode(const struct hf_acl *a);
/* Puts the owner's, the mask's and others' bits of a mode into a stored access ACL. */
void hf_acl_set_mode(uint8_t *blob, size_t len, unsigned mode);
/* The rule for who is neither root nor the owner, for an object with an ACL: as hf_may. */
int hf_acl_may(struct hf_meta *m, const struct hf_inode *i, const Hf__Cred *c, unsigned bits);

/* Permissions of a new object, in two steps around the first write. */
struct hf_inherit {
    bool access, dflt; /* ACLs to be stored */
    struct hf_xat_row access_row, dflt_row;
};
/* Takes what the directory's default ACL, or else umask, does not allow out of the mode, which is
 * set. CORRUPT, NOMEM. */
int hf_inherit_prepare(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *dir,
                       struct hf_inode *i, uint32_t umask, struct hf_inherit *h);
/* Once the inode has its number; it is not saved. */
int hf_inherit_put(struct hf_meta *m, struct hf_inode *i, struct hf_inherit *h);

#endif

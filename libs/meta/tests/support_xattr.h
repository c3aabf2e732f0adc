/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes and ACLs as plain calls for tests.
 */
#ifndef HOLDFAST_META_TESTS_SUPPORT_XATTR_H
#define HOLDFAST_META_TESTS_SUPPORT_XATTR_H

#include "support_meta.h"

#define T_ACL_ACCESS  "system.posix_acl_access"
#define T_ACL_DEFAULT "system.posix_acl_default"

int t_setx(struct shard *s, Hf__Cred *c, struct fh o, const char *name, struct hf_slice value,
           uint32_t flags);
/* The value is s->op.reply_bulk. */
int t_getx(struct shard *s, Hf__Cred *c, struct fh o, const char *name);
int t_delx(struct shard *s, Hf__Cred *c, struct fh o, const char *name);
/* The names, in any order but sorted here, with a space after each. */
int t_listx(struct shard *s, Hf__Cred *c, struct fh o, char *out, size_t size);
/* ACLs as text: "u::rwx,u:1001:r-x,g::r--,m::rwx,o::---"; any order, nothing is checked. Returns
 * the bytes. */
#define T_ACL_BYTES (4u + 8u * 600u)
size_t t_acl(const char *text, uint8_t out[T_ACL_BYTES]);
int t_set_acl(struct shard *s, Hf__Cred *c, struct fh o, const char *name, const char *text);
/* As text; "" if there is none. */
const char *t_get_acl(struct shard *s, struct fh o, const char *name, char out[512]);
/* The ACCESS bits that a caller has. */
uint32_t t_access(struct shard *s, Hf__Cred *c, struct fh o);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX ACLs as text: "u::rwx,u:64001:r--,g::r-x,m::rwx,o::---", in the order the kernel keeps.
 * They are set and read as the system.posix_acl_* attributes, which is what the acl library does.
 */
#ifndef PX_ACL_H
#define PX_ACL_H

#include "px.h"

/* Bytes of the attribute's value; the text must be well formed, the ACL need not be valid. */
size_t px_acl_bytes(const char *text, uint8_t *buf, size_t room);
/* Ends the case: skipped where there are no ACLs. */
void px_acl_set(const char *name, const char *text);
void px_acl_set_default(const char *name, const char *text);
/* Fails the case unless name has exactly this; "": none. */
void px_acl_is(const char *file, int line, const char *name, const char *attr, const char *want);

#define ACCESS_ACL         "system.posix_acl_access"
#define DEFAULT_ACL        "system.posix_acl_default"
#define ACL_IS(name, want) px_acl_is(PX_AT, name, ACCESS_ACL, want)
#define DEF_IS(name, want) px_acl_is(PX_AT, name, DEFAULT_ACL, want)
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * ONC RPC call and reply headers (RFC 5531 sections 8 and 9) with AUTH_NONE and AUTH_SYS. Pure.
 */
#ifndef HF_NFS_ONCRPC_H
#define HF_NFS_ONCRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONC_GROUPS_MAX 16u

enum onc_accept {
    ONC_SUCCESS,
    ONC_PROG_UNAVAIL,
    ONC_PROG_MISMATCH,
    ONC_PROC_UNAVAIL,
    ONC_GARBAGE_ARGS,
    ONC_SYSTEM_ERR
};
enum onc_auth_stat {
    ONC_AUTH_OK = 0,
    ONC_AUTH_BADCRED = 1,
    ONC_AUTH_REJECTEDCRED = 2,
    ONC_AUTH_BADVERF = 3
};

enum onc_parse {
    ONC_CALL,     /* a call; args_off is where its arguments begin */
    ONC_NOT_CALL, /* no answer is possible: close the connection */
    ONC_MISMATCH, /* not version 2: onc_reply_mismatch */
    ONC_DENIED,   /* onc_reply_denied with `auth` */
};

struct onc_call {
    uint32_t xid, prog, vers, proc;
    enum onc_auth_stat auth;
    bool auth_none; /* no credential was given; uid, gid are not set */
    uint32_t uid, gid;
    uint32_t ngroups;
    uint32_t groups[ONC_GROUPS_MAX];
    size_t args_off;
};

enum onc_parse onc_call_parse(const uint8_t *p, size_t len, struct onc_call *ret);

/* Replies with the fragment header, written to buf. */
#define ONC_REPLY_HEAD 28u /* an accepted reply up to its results */
#define ONC_REPLY_MAX  36u /* any reply without results */
/* body: bytes of results that follow, the record mark counts them. Returns ONC_REPLY_HEAD. */
size_t onc_reply_accepted(uint8_t *buf, uint32_t xid, enum onc_accept stat, size_t body);
/* low and high: the versions that exist. */
size_t onc_reply_prog_mismatch(uint8_t *buf, uint32_t xid, uint32_t low, uint32_t high);
size_t onc_reply_mismatch(uint8_t *buf, uint32_t xid);
size_t onc_reply_denied(uint8_t *buf, uint32_t xid, enum onc_auth_stat why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "oncrpc.h"

#include "holdfast/endian.h"

enum { MSG_CALL = 0, MSG_REPLY = 1, REPLY_ACCEPTED = 0, REPLY_DENIED = 1, RPC_VERSION = 2 };
enum { DENIED_RPC_MISMATCH = 0, DENIED_AUTH_ERROR = 1 };
enum { FLAVOR_NONE = 0, FLAVOR_SYS = 1 };
enum { AUTH_BYTES_MAX = 400, MACHINE_NAME_MAX = 255 };

struct cursor {
    const uint8_t *p;
    size_t left;
};

static bool get_u32(struct cursor *c, uint32_t *ret)
{
    if (c->left < 4)
        return false;
    *ret = hf_get_be32(c->p);
    c->p += 4;
    c->left -= 4;
    return true;
}

/* An opaque of at most max bytes with its padding. */
static bool get_opaque(struct cursor *c, uint32_t max, struct cursor *ret)
{
    uint32_t len;
    size_t padded;

    if (!get_u32(c, &len) || len > max)
        return false;
    padded = ((size_t)len + 3) & ~(size_t)3;
    if (padded > c->left)
        return false;
    *ret = (struct cursor){c->p, len};
    c->p += padded;
    c->left -= padded;
    return true;
}

/* authsys_parms (RFC 5531 appendix A). */
static bool parse_auth_sys(struct cursor body, struct onc_call *call)
{
    struct cursor machine;
    uint32_t stamp;

    if (!get_u32(&body, &stamp) || !get_opaque(&body, MACHINE_NAME_MAX, &machine) ||
        !get_u32(&body, &call->uid) || !get_u32(&body, &call->gid) ||
        !get_u32(&body, &call->ngroups))
        return false;
    if (call->ngroups > ONC_GROUPS_MAX)
        return false;
    for (uint32_t i = 0; i < call->ngroups; i++) {
        if (!get_u32(&body, &call->groups[i]))
            return false;
    }
    return true;
}

static enum onc_auth_stat parse_auth(struct cursor *c, struct onc_call *call)
{
    struct cursor cred, verf;
    uint32_t flavor;

    if (!get_u32(c, &flavor) || !get_opaque(c, AUTH_BYTES_MAX, &cred))
        return ONC_AUTH_BADCRED;
    if (flavor == FLAVOR_NONE)
        call->auth_none = true;
    else if (flavor != FLAVOR_SYS)
        return ONC_AUTH_REJECTEDCRED;
    else if (!parse_auth_sys(cred, call))
        return ONC_AUTH_BADCRED;
    if (!get_u32(c, &flavor) || !get_opaque(c, AUTH_BYTES_MAX, &verf) || flavor != FLAVOR_NONE)
        return ONC_AUTH_BADVERF;
    return ONC_AUTH_OK;
}

enum onc_parse onc_call_parse(const uint8_t *p, size_t len, struct onc_call *ret)
{
    struct cursor c = {p, len};
    uint32_t type, version;

    *ret = (struct onc_call){0};
    if (!get_u32(&c, &ret->xid) || !get_u32(&c, &type) || type != MSG_CALL ||
        !get_u32(&c, &version))
        return ONC_NOT_CALL;
    if (version != RPC_VERSION)
        return ONC_MISMATCH;
    if (!get_u32(&c, &ret->prog) || !get_u32(&c, &ret->vers) || !get_u32(&c, &ret->proc))
        return ONC_NOT_CALL;
    ret->auth = parse_auth(&c, ret);
    if (ret->auth != ONC_AUTH_OK)
        return ONC_DENIED;
    ret->args_off = len - c.left;
    return ONC_CALL;
}

/* Words after the record mark, which is written last. */
static size_t put_words(uint8_t *buf, const uint32_t *words, size_t n, size_t body)
{
    hf_put_be32(buf, 0x80000000u | (uint32_t)(4 * n + body));
    for (size_t i = 0; i < n; i++)
        hf_put_be32(buf + 4 + 4 * i, words[i]);
    return 4 + 4 * n;
}

size_t onc_reply_accepted(uint8_t *buf, uint32_t xid, enum onc_accept stat, size_t body)
{
    const uint32_t w[] = {xid, MSG_REPLY, REPLY_ACCEPTED, FLAVOR_NONE, 0, (uint32_t)stat};

    return put_words(buf, w, 6, body);
}

size_t onc_reply_prog_mismatch(uint8_t *buf, uint32_t xid, uint32_t low, uint32_t high)
{
    const uint32_t w[] = {xid, MSG_REPLY, REPLY_ACCEPTED, FLAVOR_NONE, 0, ONC_PROG_MISMATCH,
                          low, high};

    return put_words(buf, w, 8, 0);
}

size_t onc_reply_mismatch(uint8_t *buf, uint32_t xid)
{
    const uint32_t w[] = {xid,         MSG_REPLY,  REPLY_DENIED, DENIED_RPC_MISMATCH,
                          RPC_VERSION, RPC_VERSION};

    return put_words(buf, w, 6, 0);
}

size_t onc_reply_denied(uint8_t *buf, uint32_t xid, enum onc_auth_stat why)
{
    const uint32_t w[] = {xid, MSG_REPLY, REPLY_DENIED, DENIED_AUTH_ERROR, (uint32_t)why};

    return put_words(buf, w, 5, 0);
}

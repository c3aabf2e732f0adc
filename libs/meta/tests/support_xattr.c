/* SPDX-License-Identifier: Apache-2.0 */
#include "support_xattr.h"

#include <stdio.h>
#include <stdlib.h>

#include "holdfast/endian.h"

int t_setx(struct shard *s, Hf__Cred *c, struct fh o, const char *name, struct hf_slice value,
           uint32_t flags)
{
    Hf__SetxattrReq q = HF__SETXATTR_REQ__INIT;
    const Hf__SetxattrRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.name = t_bytes(name);
    q.flags = flags;
    s->bulk = value;
    return do_setxattr(s, &q, &p);
}

int t_getx(struct shard *s, Hf__Cred *c, struct fh o, const char *name)
{
    Hf__GetxattrReq q = HF__GETXATTR_REQ__INIT;
    const Hf__GetxattrRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.name = t_bytes(name);
    return do_getxattr(s, &q, &p);
}

int t_delx(struct shard *s, Hf__Cred *c, struct fh o, const char *name)
{
    Hf__RemovexattrReq q = HF__REMOVEXATTR_REQ__INIT;
    const Hf__RemovexattrRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.name = t_bytes(name);
    return do_removexattr(s, &q, &p);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int t_listx(struct shard *s, Hf__Cred *c, struct fh o, char *out, size_t size)
{
    Hf__ListxattrReq q = HF__LISTXATTR_REQ__INIT;
    const Hf__ListxattrRep *p;
    const char *names[1100], *at;
    size_t n = 0, len = 0;
    int r;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    r = do_listxattr(s, &q, &p);
    out[0] = 0;
    at = s->op.reply_bulk.data;
    for (size_t left = s->op.reply_bulk.len; left;) {
        size_t k = strnlen(at, left);

        cr_assert(k > 0 && k < left && n < 1100);
        names[n++] = at;
        at += k + 1;
        left -= k + 1;
    }
    qsort(names, n, sizeof(names[0]), by_text);
    for (size_t k = 0; k < n && len < size; k++)
        len += (size_t)snprintf(out + len, size - len, "%s ", names[k]);
    return r;
}

/* ---- ACLs ---- */

static uint16_t tag_of(char c, bool named)
{
    switch (c) {
    case 'u':
        return named ? 2 : 1;
    case 'g':
        return named ? 8 : 4;
    case 'm':
        return 16;
    default:
        return 32;
    }
}

size_t t_acl(const char *text, uint8_t out[T_ACL_BYTES])
{
    size_t n = 4;

    hf_put_le32(out, 2);
    while (*text) {
        char c = *text;
        const char *id = text + 2;
        char *end;
        unsigned long value = strtoul(id, &end, 10);
        uint16_t perm = 0;

        cr_assert(text[1] == ':' && *end == ':');
        for (text = end + 1; *text && *text != ','; text++)
            perm |= *text == 'r' ? 4 : *text == 'w' ? 2 : *text == 'x' ? 1 : 0;
        text += *text == ',';
        hf_put_le16(out + n, tag_of(c, end != id));
        hf_put_le16(out + n + 2, perm);
        hf_put_le32(out + n + 4, end != id ? (uint32_t)value : UINT32_MAX);
        n += 8;
        cr_assert(n <= T_ACL_BYTES - 8);
    }
    return n;
}

int t_set_acl(struct shard *s, Hf__Cred *c, struct fh o, const char *name, const char *text)
{
    uint8_t blob[T_ACL_BYTES];

    return t_setx(s, c, o, name, hf_slice(blob, t_acl(text, blob)), 0);
}

const char *t_get_acl(struct shard *s, struct fh o, const char *name, char out[512])
{
    int r = t_getx(s, &t_root, o, name);
    const uint8_t *p = s->op.reply_bulk.data;
    size_t len = 0;

    out[0] = 0;
    if (r == HF_E_NODATA)
        return out;
    cr_ok(r);
    for (size_t k = 4; k + 8 <= s->op.reply_bulk.len; k += 8) {
        uint16_t tag = hf_get_le16(p + k), perm = hf_get_le16(p + k + 2);
        char id[16] = "";

        if (tag == 2 || tag == 8)
            snprintf(id, sizeof(id), "%u", hf_get_le32(p + k + 4));
        len +=
            (size_t)snprintf(out + len, 512 - len, "%s%c:%s:%c%c%c", k > 4 ? "," : "",
                             tag <= 2    ? 'u'
                             : tag <= 8  ? 'g'
                             : tag == 16 ? 'm'
                                         : 'o',
                             id, perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
        cr_assert(len < 512);
    }
    return out;
}

uint32_t t_access(struct shard *s, Hf__Cred *c, struct fh o)
{
    Hf__AccessReq q = HF__ACCESS_REQ__INIT;
    const Hf__AccessRep *p;

    q.cred = c;
    q.ino = o.ino;
    q.gen = o.gen;
    q.want = 0x3f;
    cr_ok(do_access(s, &q, &p));
    return p->granted;
}

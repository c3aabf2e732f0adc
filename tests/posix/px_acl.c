/* SPDX-License-Identifier: Apache-2.0
 *
 * ACLs between text and the attribute's bytes: version 2, then entries of tag, permissions, id, all
 * little-endian (linux/posix_acl_xattr.h).
 */
#include "px_acl.h"

#include <sys/xattr.h>

static const struct {
    char letter;
    bool named;
    uint16_t tag;
} tags[] = {
    {'u', false, 0x01}, {'u', true, 0x02},  {'g', false, 0x04},
    {'g', true, 0x08},  {'m', false, 0x10}, {'o', false, 0x20},
};
#define NTAGS (sizeof(tags) / sizeof(tags[0]))

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v & 0xffff);
    put16(p + 2, v >> 16);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

size_t px_acl_bytes(const char *text, uint8_t *buf, size_t room)
{
    size_t n = 4;

    put32(buf, 2);
    while (*text != '\0' && n + 8 <= room) {
        char *end;
        bool named = text[2] != ':';
        unsigned long id = named ? strtoul(text + 2, &end, 10) : 0xffffffffu;
        const char *perm = named ? end + 1 : text + 3;

        for (size_t i = 0; i < NTAGS; i++) {
            if (tags[i].letter == text[0] && tags[i].named == named) {
                put16(buf + n, tags[i].tag);
            }
        }
        put16(buf + n + 2, (perm[0] == 'r') * 4u + (perm[1] == 'w') * 2u + (perm[2] == 'x'));
        put32(buf + n + 4, (uint32_t)id);
        n += 8;
        text = perm + 3 + (perm[3] == ',');
    }
    return n;
}

static void to_text(const uint8_t *buf, size_t len, char *text, size_t room)
{
    size_t at = 0;

    text[0] = '\0';
    if (len < 4 || get32(buf) != 2 || (len - 4) % 8 != 0) {
        snprintf(text, room, "no ACL of version 2");
        return;
    }
    for (size_t n = 4; n + 8 <= len && at < room; n += 8) {
        unsigned tag = buf[n] | (unsigned)buf[n + 1] << 8, perm = buf[n + 2];
        char id[16] = "", letter = '?';

        for (size_t i = 0; i < NTAGS; i++) {
            if (tags[i].tag == tag) {
                letter = tags[i].letter;
                if (tags[i].named) {
                    snprintf(id, sizeof(id), "%u", get32(buf + n + 4));
                }
            }
        }
        at += (size_t)snprintf(text + at, room - at, "%s%c:%s:%c%c%c", n > 4 ? "," : "", letter, id,
                               perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
    }
}

static void set_attr(const char *name, const char *attr, const char *text)
{
    uint8_t buf[4096];
    size_t n = px_acl_bytes(text, buf, sizeof(buf));

    if (setxattr(name, attr, buf, n, 0) != 0) {
        if (errno == EOPNOTSUPP) {
            PX_SKIP("POSIX ACLs are not supported");
        }
        PX_FAIL("setting %s of %s", text, name);
        PX_OK(-1);
    }
}

void px_acl_set(const char *name, const char *text)
{
    set_attr(name, ACCESS_ACL, text);
}

void px_acl_set_default(const char *name, const char *text)
{
    set_attr(name, DEFAULT_ACL, text);
}

void px_acl_is(const char *file, int line, const char *name, const char *attr, const char *want)
{
    uint8_t buf[4096];
    char text[2048] = "";
    ssize_t n = getxattr(name, attr, buf, sizeof(buf));

    if (n < 0 && errno != ENODATA) {
        px_fail(file, line, "%s of %s: %s", attr, name, px_errno_name(errno));
        return;
    }
    if (n >= 0) {
        to_text(buf, (size_t)n, text, sizeof(text));
    }
    if (strcmp(text, want) != 0) {
        px_fail(file, line, "%s of %s is \"%s\", expected \"%s\"", attr, name, text, want);
    }
}

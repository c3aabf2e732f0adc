/* SPDX-License-Identifier: Apache-2.0
 *
 * Client addresses of exports. IPv4 lives in ::ffff:0:0/96, so that a peer is the same whether its
 * connection came over an IPv4 or a dual-stack socket.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "vfs_priv.h"

#define V4_BITS 96u

static void addr_v4(struct addr *a, const void *v4)
{
    memset(a->b, 0, 10);
    memset(a->b + 10, 0xff, 2);
    memcpy(a->b + 12, v4, 4);
}

/* Decimal digits only, at most `max`. */
static int parse_bits(const char *s, unsigned max, unsigned *ret)
{
    unsigned v = 0;

    if (!*s)
        return HF_E_INVAL;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return HF_E_INVAL;
        v = v * 10 + (unsigned)(*s - '0');
        if (v > max)
            return HF_E_INVAL;
    }
    *ret = v;
    return 0;
}

int prefix_parse(const char *text, struct prefix *ret)
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    char host[INET6_ADDRSTRLEN];
    struct prefix p = {.bits = 128};
    uint8_t v4[4];
    unsigned bits, base = 0;

    if (strcmp(text, "*") == 0) {
        *ret = (struct prefix){.bits = 0};
        return 0;
    }
    if (n == 0 || n >= sizeof(host))
        return HF_E_INVAL;
    memcpy(host, text, n);
    host[n] = 0;
    if (inet_pton(AF_INET, host, v4) == 1) {
        addr_v4(&p.addr, v4);
        base = V4_BITS;
    } else if (inet_pton(AF_INET6, host, p.addr.b) != 1) {
        return HF_E_INVAL;
    }
    if (slash) {
        if (parse_bits(slash + 1, 128 - base, &bits))
            return HF_E_INVAL;
        p.bits = (uint8_t)(base + bits);
    }
    *ret = p;
    return 0;
}

bool prefix_match(const struct prefix *p, const struct addr *a)
{
    unsigned bytes = p->bits / 8, rest = p->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    if (memcmp(p->addr.b, a->b, bytes) != 0)
        return false;
    return rest == 0 || ((p->addr.b[bytes] ^ a->b[bytes]) & mask) == 0;
}

bool addr_from(const struct sockaddr *sa, struct addr *ret)
{
    if (sa && sa->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, sa, sizeof(in));
        addr_v4(ret, &in.sin_addr);
        return true;
    }
    if (sa && sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, sa, sizeof(in6));
        memcpy(ret->b, &in6.sin6_addr, sizeof(ret->b));
        return true;
    }
    return false;
}

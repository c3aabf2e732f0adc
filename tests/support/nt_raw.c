/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC messages as bytes, for what a well-behaved library cannot send.
 */
#include "nt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECV_MS 10000

int nt_raw_connect(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        nt_fail(__FILE__, __LINE__, "cannot connect to port %d", port);
    }
    return fd;
}

void nt_raw_u32(struct nt_buf *m, uint32_t v)
{
    uint32_t be = htonl(v);

    NT_CHECK(m->n + 4 <= sizeof(m->b));
    memcpy(m->b + m->n, &be, 4);
    m->n += 4;
}

void nt_raw_opaque(struct nt_buf *m, const void *data, uint32_t len)
{
    nt_raw_u32(m, len);
    NT_CHECK(m->n + len + 4 <= sizeof(m->b));
    memcpy(m->b + m->n, data, len);
    memset(m->b + m->n + len, 0, 4);
    m->n += (len + 3) & ~3u;
}

void nt_raw_call(struct nt_buf *m, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc)
{
    m->n = 0;
    nt_raw_u32(m, 0);
    nt_raw_u32(m, xid);
    nt_raw_u32(m, 0);
    nt_raw_u32(m, 2);
    nt_raw_u32(m, prog);
    nt_raw_u32(m, vers);
    nt_raw_u32(m, proc);
    nt_raw_u32(m, 1);
    nt_raw_u32(m, 24);
    nt_raw_u32(m, 0);
    nt_raw_opaque(m, "raw", 3);
    nt_raw_u32(m, 0);
    nt_raw_u32(m, 0);
    nt_raw_u32(m, 0);
    nt_raw_u32(m, 0);
    nt_raw_u32(m, 0);
}

void nt_raw_seal(struct nt_buf *m)
{
    uint32_t mark = htonl(0x80000000u | (uint32_t)(m->n - 4));

    memcpy(m->b, &mark, 4);
}

bool nt_raw_send(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n <= 0) {
            return false;
        }
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* Exactly len bytes: 1; 0 closed; -1 nothing came in time. */
static int recv_all(int fd, uint8_t *p, size_t len)
{
    while (len > 0) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&pfd, 1, RECV_MS) != 1) {
            return -1;
        }
        n = recv(fd, p, len, 0);
        if (n <= 0) {
            return 0;
        }
        p += n;
        len -= (size_t)n;
    }
    return 1;
}

ssize_t nt_raw_recv(int fd, void *buf, size_t cap)
{
    uint8_t mark[4];
    size_t total = 0;
    bool last = false;
    int rc;

    while (!last) {
        uint32_t v;

        rc = recv_all(fd, mark, 4);
        if (rc != 1) {
            return rc;
        }
        v = nt_raw_get(mark);
        last = (v & 0x80000000u) != 0;
        v &= 0x7fffffffu;
        if (total + v > cap) {
            nt_fail(__FILE__, __LINE__, "a reply of more than %zu bytes", cap);
        }
        rc = recv_all(fd, (uint8_t *)buf + total, v);
        if (rc != 1) {
            return rc;
        }
        total += v;
    }
    return (ssize_t)total;
}

uint32_t nt_raw_get(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

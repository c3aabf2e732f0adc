/* SPDX-License-Identifier: Apache-2.0 */
#include "support_client.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "holdfast/endian.h"

#define DEADLINE_MS 20000

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void gateway_start(struct gateway *g, const struct hf_nfssvc_opts *o)
{
    struct hf_nfssvc_opts mine = {0};
    char err[256];
    int rc;

    if (o)
        mine = *o;
    cr_assert_eq(hf_env_real_new(&g->env), 0);
    mine.env = g->env;
    mine.meta_url = "inproc://none";
    mine.listen = "127.0.0.1:0";
    rc = hf_nfssvc_new(&mine, &g->svc, err, sizeof(err));
    cr_assert_eq(rc, 0, "%s", err);
}

void gateway_stop(struct gateway *g)
{
    hf_nfssvc_free(g->svc);
    hf_env_free(g->env);
}

struct search {
    const char *name;
    uint64_t value;
    bool found;
};

static void on_counter(void *arg, const char *name, uint64_t value)
{
    struct search *s = arg;

    if (strcmp(s->name, name) == 0) {
        s->value = value;
        s->found = true;
    }
}

uint64_t gateway_counter(const struct gateway *g, const char *name)
{
    struct search s = {name, 0, false};

    hf_nfssvc_counters(g->svc, on_counter, &s);
    cr_assert(s.found, "no counter %s", name);
    return s.value;
}

void gateway_wait_counter(const struct gateway *g, const char *name, uint64_t at_least)
{
    uint64_t end = now_ms() + DEADLINE_MS;

    while (gateway_counter(g, name) < at_least) {
        cr_assert_lt(now_ms(), end, "%s stays at %lu", name, gateway_counter(g, name));
        (void)poll(NULL, 0, 1);
    }
}

void call_u32(struct call_buf *c, uint32_t v)
{
    cr_assert_leq(c->n + 4, sizeof(c->b));
    hf_put_be32(c->b + c->n, v);
    c->n += 4;
}

void call_bytes(struct call_buf *c, const void *data, uint32_t len)
{
    call_u32(c, len);
    cr_assert_leq(c->n + len + 3, sizeof(c->b));
    memset(c->b + c->n, 0, (len + 3) & ~3u);
    memcpy(c->b + c->n, data, len);
    c->n += (len + 3) & ~3u;
}

void call_fh(struct call_buf *c, uint64_t ino)
{
    uint8_t fh[FAKE_FH_BYTES];

    fake_fh(ino, fh);
    call_bytes(c, fh, FAKE_FH_BYTES);
}

void call_begin(struct call_buf *c, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc)
{
    const uint32_t words[] = {xid, 0, 2, prog, vers, proc, 1, 20, 0, 0, 1000, 100, 0, 0, 0};

    c->n = 0;
    for (size_t i = 0; i < HF_ARRAY_LEN(words); i++)
        call_u32(c, words[i]);
}

void call_args(struct call_buf *c, bool (*encode)(XDR *x, void *arg), void *arg)
{
    XDR x;

    xdrmem_create(&x, (char *)c->b + c->n, (u_int)(sizeof(c->b) - c->n), XDR_ENCODE);
    cr_assert(encode(&x, arg));
    c->n += xdr_getpos(&x);
}

int client_connect(const struct gateway *g)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)hf_nfssvc_port(g->svc)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {DEADLINE_MS / 1000, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fd;
}

void client_send(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;

    while (len) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        cr_assert_gt(n, 0, "send: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

void client_call(int fd, const struct call_buf *c)
{
    uint8_t mark[4];

    hf_put_be32(mark, 0x80000000u | (uint32_t)c->n);
    client_send(fd, mark, 4);
    client_send(fd, c->b, c->n);
}

static bool recv_all(int fd, uint8_t *p, size_t len)
{
    while (len) {
        ssize_t n = recv(fd, p, len, 0);

        cr_assert(n >= 0 || errno == ECONNRESET, "recv: %s", strerror(errno));
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool client_recv(int fd, struct reply *r)
{
    uint8_t mark[4];

    r->b = NULL;
    if (!recv_all(fd, mark, 4))
        return false;
    cr_assert(hf_get_be32(mark) >> 31, "replies are one fragment");
    r->n = hf_get_be32(mark) & 0x7fffffff;
    cr_assert_geq(r->n, 20);
    cr_assert_leq(r->n, 2u << 20);
    cr_assert_eq(r->n % 4, 0);
    r->b = malloc(r->n);
    if (!recv_all(fd, r->b, r->n)) {
        reply_free(r);
        return false;
    }
    r->xid = reply_word(r, 0);
    if (r->n >= 24)
        xdrmem_create(&r->x, (char *)r->b + 24, (u_int)(r->n - 24), XDR_DECODE);
    return true;
}

void reply_free(struct reply *r)
{
    free(r->b);
    r->b = NULL;
}

uint32_t reply_word(const struct reply *r, size_t i)
{
    cr_assert_lt(4 * i, r->n);
    return hf_get_be32(r->b + 4 * i);
}

void client_recv_ok(int fd, uint32_t xid, struct reply *r)
{
    cr_assert(client_recv(fd, r), "connection closed");
    cr_assert_eq(r->xid, xid, "xid %u, not %u", r->xid, xid);
    for (size_t i = 2; i < 6; i++)
        cr_assert_eq(reply_word(r, i), 0, "word %zu is %u", i, reply_word(r, i));
}

bool client_closed(int fd)
{
    uint8_t b;
    ssize_t n = recv(fd, &b, 1, 0);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}

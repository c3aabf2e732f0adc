/* SPDX-License-Identifier: Apache-2.0
 *
 * What strangers do to a server: bytes that are no frame, connections that stop half way, lengths
 * beyond reason, well-formed frames that make no sense. After each it must serve as before.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "holdfast/wire.h"
#include "support_rpc.h"

static int ipc_connect(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    cr_assert_lt(strlen(path), sizeof(sa.sun_path));
    memcpy(sa.sun_path, path, strlen(path) + 1);
    cr_assert_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static int tcp_connect(const struct world *w)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_geq(fd, 0);
    sa.sin_port = htons((uint16_t)strtoul(strrchr(w->url, ':') + 1, NULL, 10));
    cr_assert_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

static void tcp_close(int fd, bool reset)
{
    const struct linger now = {1, 0};

    if (reset)
        cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    (void)close(fd);
}

static void still_serves(struct world *w, uint32_t n)
{
    struct probe p = {0};

    probe_echo(w, &p, n);
    cr_assert_eq(probe_wait(w, &p), 0);
    cr_assert_eq(p.boot, n);
    cr_assert_eq(hf_rpc_client_epoch(w->client), 1);
}

static void raw_send(int fd, const void *data, size_t len)
{
    cr_assert_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* A stranger's connection to the world's server, over tcp or ipc. */
static int stranger(const struct world *w)
{
    return strncmp(w->url, "ipc://", 6) == 0 ? ipc_connect(w->url + 6) : tcp_connect(w);
}

/* A thousand of each, ended by FIN or RST. */
static void scan(const char *transport)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const struct hf_wire_frame f = {.seq = 1, .count = 1};
    uint8_t header[HF_WIRE_HEADER];
    struct world w;

    hf_wire_put_header(header, &f, 100000);
    world_init(&w, transport, NULL, NULL);
    still_serves(&w, 1);
    for (unsigned i = 0; i < 1000; i++) {
        int none = stranger(&w), half = stranger(&w), bad = stranger(&w);

        raw_send(half, header, 1 + i % sizeof(header));
        raw_send(bad, http, sizeof(http) - 1);
        tcp_close(none, i % 2);
        tcp_close(half, i % 2);
        tcp_close(bad, i % 2);
        if (i % 100 == 0)
            still_serves(&w, i);
    }
    still_serves(&w, 7);
    world_fini(&w);
}

Test(hostile, scans_and_half_frames_tcp)
{
    scan("tcp");
}

/* nng's own listeners stopped here for good after one connection that closed at once (nng issue
 * 1518). */
Test(hostile, scans_and_half_frames_ipc)
{
    scan("ipc");
}

static bool peer_closed(void *arg)
{
    char c[64];

    return recv(*(int *)arg, c, sizeof(c), MSG_DONTWAIT) == 0;
}

/* As far as the field goes: 2^32 - 1, and with the bytes of 2^62 before it. */
Test(hostile, announces_more_than_there_is)
{
    static const uint8_t huge[16] = {0x40};
    const struct hf_wire_frame f = {.seq = 1, .count = 1};
    uint8_t header[HF_WIRE_HEADER];
    struct world w;
    struct rusage before, after;

    world_init(&w, "tcp", NULL, NULL);
    still_serves(&w, 1);
    (void)getrusage(RUSAGE_SELF, &before);
    hf_wire_put_header(header, &f, 0xffffffff);
    for (unsigned i = 0; i < 2; i++) {
        int fd = tcp_connect(&w);

        if (i == 1)
            raw_send(fd, huge, sizeof(huge));
        raw_send(fd, header, sizeof(header));
        cr_assert(world_until(&w, peer_closed, &fd), "the server hangs up");
        tcp_close(fd, false);
    }
    (void)getrusage(RUSAGE_SELF, &after);
    cr_assert_lt(after.ru_maxrss - before.ru_maxrss, 65536); /* KiB */
    still_serves(&w, 2);
    world_fini(&w);
}

/* ---- frames of our own making ---- */

struct bad_frames {
    struct world *w;
    uint64_t want;
};

static bool bad_frames_seen(void *arg)
{
    const struct bad_frames *b = arg;
    struct hf_rpc_stats st = {0};

    hf_rpc_server_stats(b->w->server, &st);
    return st.bad_frames >= b->want;
}

Test(hostile, bad_frames_cost_the_connection)
{
    struct world w;
    struct bad_frames b = {&w, 0};
    struct hf_rpc_stats st = {0};
    uint64_t x = 88172645463325252ull;

    world_init(&w, "tcp", NULL, NULL);
    still_serves(&w, 1);
    for (unsigned i = 0; i < 50; i++) {
        int fd = tcp_connect(&w);
        uint8_t junk[200];

        for (size_t k = 0; k < sizeof(junk); k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            junk[k] = (uint8_t)x;
        }
        if (i % 2) { /* a good header over junk */
            const struct hf_wire_frame f = {.seq = 1, .count = 1};

            hf_wire_put_header(junk, &f, sizeof(junk));
        }
        raw_send(fd, junk, sizeof(junk));
        b.want++;
        cr_assert(world_until(&w, bad_frames_seen, &b));
        tcp_close(fd, false);
    }
    still_serves(&w, 2);
    hf_rpc_server_stats(w.server, &st);
    cr_assert_eq(st.bad_frames, 50);
    world_fini(&w);
}

struct answer {
    int fd;
    uint8_t bytes[256];
    size_t have;
};

/* Skips empty frames. */
static bool answered(void *arg)
{
    struct answer *a = arg;
    ssize_t n = recv(a->fd, a->bytes + a->have, sizeof(a->bytes) - a->have, MSG_DONTWAIT);

    a->have += n > 0 ? (size_t)n : 0;
    return a->have >= HF_WIRE_HEADER && a->have == hf_get_le32(a->bytes + 8);
}

/* Sends one call and returns the status of its answer. */
static int raw_call(struct world *w, int fd, uint32_t seq, struct hf_wire_entry e, const char *body)
{
    const struct hf_wire_frame f = {.seq = seq, .count = 1};
    uint8_t b[256];
    struct answer a = {.fd = fd};
    struct hf_wire_frame rf;
    struct hf_wire_reader rd;
    struct hf_wire_entry re;
    struct hf_slice rb, rk;

    e.flags = HF_WIRE_CALL;
    e.timeout_us = 1000000;
    e.body_len = (uint32_t)strlen(body);
    hf_wire_put_header(b, &f, HF_WIRE_HEADER + HF_WIRE_ENTRY + e.body_len);
    hf_wire_put_entry(b + HF_WIRE_HEADER, &e);
    memcpy(b + HF_WIRE_HEADER + HF_WIRE_ENTRY, body, e.body_len);
    raw_send(fd, b, HF_WIRE_HEADER + HF_WIRE_ENTRY + e.body_len);
    cr_assert(world_until(w, answered, &a));
    cr_assert_eq(hf_wire_open(a.bytes, a.have, &rf, &rd), 0);
    cr_assert_eq(hf_wire_next(&rd, &re, &rb, &rk), 1);
    cr_assert_eq(re.id, e.id);
    cr_assert_eq(re.flags, HF_WIRE_REPLY);
    return re.status;
}

Test(hostile, calls_that_cannot_be_served)
{
    uint32_t seg = hf_wire_service_id("hf.Segment");
    struct world w;
    int fd;

    world_init(&w, "tcp", NULL, NULL);
    still_serves(&w, 1);
    fd = tcp_connect(&w);
    cr_assert_eq(
        raw_call(&w, fd, 1, (struct hf_wire_entry){.service = seg, .method = 3, .id = 5}, ""), 0);
    cr_assert_eq(raw_call(&w, fd, 2, (struct hf_wire_entry){.service = seg, .method = 3, .id = 6},
                          "\xff\xff\xff\xff"),
                 HF_E_PROTO);
    cr_assert_eq(
        raw_call(&w, fd, 3, (struct hf_wire_entry){.service = seg, .method = 999, .id = 7}, ""),
        HF_E_NOTSUPP);
    cr_assert_eq(raw_call(&w, fd, 4, (struct hf_wire_entry){.service = seg + 1, .id = 8}, ""),
                 HF_E_NOTSUPP);
    cr_assert_eq(w.executed, 2);
    tcp_close(fd, false);
    still_serves(&w, 2);
    world_fini(&w);
}

/* A message seen before is not run again; a missing one ends the connection. */
Test(hostile, sequence_of_messages)
{
    struct hf_wire_entry e = {.service = hf_wire_service_id("hf.Segment"), .method = 3};
    const struct hf_wire_frame again = {.seq = 1, .count = 1}, gap = {.seq = 9, .count = 1};
    struct world w;
    struct bad_frames b = {&w, 1};
    uint8_t f[HF_WIRE_HEADER + HF_WIRE_ENTRY];
    int fd;

    world_init(&w, "tcp", NULL, NULL);
    fd = tcp_connect(&w);
    cr_assert_eq(raw_call(&w, fd, 1, e, ""), 0);
    e.flags = HF_WIRE_CALL;
    hf_wire_put_entry(f + HF_WIRE_HEADER, &e);
    hf_wire_put_header(f, &again, sizeof(f));
    raw_send(fd, f, sizeof(f));
    e.id = 2;
    cr_assert_eq(raw_call(&w, fd, 2, e, ""), 0);
    cr_assert_eq(w.executed, 2);
    hf_wire_put_header(f, &gap, sizeof(f));
    raw_send(fd, f, sizeof(f));
    cr_assert(world_until(&w, bad_frames_seen, &b));
    cr_assert_eq(w.executed, 2);
    tcp_close(fd, false);
    still_serves(&w, 1);
    world_fini(&w);
}

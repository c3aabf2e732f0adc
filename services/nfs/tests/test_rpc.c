/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway on a real socket: RPC errors, odd streams, limits, the duplicate-request cache,
 * stopping.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <unistd.h>

#include "holdfast/endian.h"
#include "support_client.h"

static struct gateway g;

static void stop(void)
{
    gateway_stop(&g);
}

static void start(void)
{
    gateway_start(&g, NULL);
}

TestSuite(rpc, .init = start, .fini = stop);

static void null_call(int fd, uint32_t xid)
{
    struct call_buf c;
    struct reply r;

    call_begin(&c, xid, NFS_PROGRAM, 3, 0);
    client_call(fd, &c);
    client_recv_ok(fd, xid, &r);
    cr_assert_eq(r.n, 24);
    reply_free(&r);
}

static void expect_reply(int fd, const struct call_buf *c, const uint32_t *words, size_t n)
{
    struct reply r;

    client_call(fd, c);
    cr_assert(client_recv(fd, &r));
    cr_assert_eq(r.n, 4 * n, "%zu bytes", r.n);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(reply_word(&r, i), words[i], "word %zu is %u", i, reply_word(&r, i));
    reply_free(&r);
}

#define EXPECT(fd, c, ...)                                                                         \
    expect_reply(fd, c, (const uint32_t[]){__VA_ARGS__},                                           \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

Test(rpc, null_of_both_programs)
{
    int fd = client_connect(&g);
    struct call_buf c;

    null_call(fd, 1);
    call_begin(&c, 2, MOUNT_PROGRAM, 3, 0);
    EXPECT(fd, &c, 2, 1, 0, 0, 0, 0);
    close(fd);
}

Test(rpc, errors_of_rfc_5531)
{
    int fd = client_connect(&g);
    struct call_buf c;

    call_begin(&c, 5, 100227, 3, 0);
    EXPECT(fd, &c, 5, 1, 0, 0, 0, 1);
    call_begin(&c, 6, NFS_PROGRAM, 4, 0);
    EXPECT(fd, &c, 6, 1, 0, 0, 0, 2, 3, 3);
    call_begin(&c, 7, NFS_PROGRAM, 2, 0);
    EXPECT(fd, &c, 7, 1, 0, 0, 0, 2, 3, 3);
    call_begin(&c, 8, MOUNT_PROGRAM, 1, 1);
    EXPECT(fd, &c, 8, 1, 0, 0, 0, 2, 3, 3);
    call_begin(&c, 9, NFS_PROGRAM, 3, 22);
    EXPECT(fd, &c, 9, 1, 0, 0, 0, 3);
    call_begin(&c, 10, MOUNT_PROGRAM, 3, 6);
    EXPECT(fd, &c, 10, 1, 0, 0, 0, 3);
    call_begin(&c, 11, NFS_PROGRAM, 3, 0xffffffff);
    EXPECT(fd, &c, 11, 1, 0, 0, 0, 3);
    call_begin(&c, 12, NFS_PROGRAM, 3, 1); /* no arguments */
    EXPECT(fd, &c, 12, 1, 0, 0, 0, 4);
    call_begin(&c, 13, NFS_PROGRAM, 3, 0);
    hf_put_be32(c.b + 8, 4);
    EXPECT(fd, &c, 13, 1, 1, 0, 2, 2);
    call_begin(&c, 14, NFS_PROGRAM, 3, 0);
    hf_put_be32(c.b + 24, 6); /* RPCSEC_GSS */
    EXPECT(fd, &c, 14, 1, 1, 1, 2);
    call_begin(&c, 15, NFS_PROGRAM, 3, 0);
    hf_put_be32(c.b + 48, 17); /* groups */
    EXPECT(fd, &c, 15, 1, 1, 1, 1);
    null_call(fd, 16); /* the connection is as good as new */
    close(fd);
}

Test(rpc, garbage_arguments_of_every_procedure)
{
    int fd = client_connect(&g);
    uint32_t xid = 100;

    for (uint32_t proc = 1; proc < NFS3_PROCS; proc++) {
        struct call_buf c;

        call_begin(&c, ++xid, NFS_PROGRAM, 3, proc);
        call_u32(&c, 65); /* a handle too long */
        c.n += 68;
        EXPECT(fd, &c, xid, 1, 0, 0, 0, 4);
        call_begin(&c, ++xid, NFS_PROGRAM, 3, proc);
        call_u32(&c, 0x7fffffff);
        EXPECT(fd, &c, xid, 1, 0, 0, 0, 4);
    }
    cr_assert_eq(gateway_counter(&g, "rpc_garbage"), 2 * (NFS3_PROCS - 1));
    close(fd);
}

/* A call in fragments of every size, and byte by byte. */
Test(rpc, fragments)
{
    int fd = client_connect(&g);
    struct call_buf c;
    uint32_t xid = 1;

    for (size_t size = 1; size <= 60; size++, xid++) {
        struct reply r;

        call_begin(&c, xid, NFS_PROGRAM, 3, 0);
        for (size_t at = 0; at < c.n; at += size) {
            size_t n = c.n - at < size ? c.n - at : size;
            uint8_t mark[4];

            hf_put_be32(mark, (at + n == c.n ? 0x80000000u : 0) | (uint32_t)n);
            client_send(fd, mark, 4);
            client_send(fd, c.b + at, n);
        }
        client_recv_ok(fd, xid, &r);
        reply_free(&r);
    }
    close(fd);
}

static void expect_close(const void *data, size_t len)
{
    int fd = client_connect(&g);

    client_send(fd, data, len);
    cr_assert(client_closed(fd));
    close(fd);
    fd = client_connect(&g);
    null_call(fd, 99);
    close(fd);
}

Test(rpc, streams_that_are_no_calls_are_closed)
{
    expect_close("GET / HTTP/1.0\r\n\r\n", 18);
    expect_close("\xff\xff\xff\xff", 4);
    expect_close("\x00\x20\x00\x00", 4); /* a fragment of 2 MiB */
    expect_close("\x80\x00\x00\x00", 4); /* an empty record */
    expect_close("\x80\x00\x00\x03"
                 "abc",
                 7); /* too short for a header */
    expect_close("\x80\x00\x00\x0c"
                 "xid.\0\0\0\1"
                 "1234",
                 16); /* a reply */
    cr_assert_eq(gateway_counter(&g, "bad_records"), 6);
}

Test(rpc, truncated_calls_end_with_the_connection)
{
    struct call_buf c;

    call_begin(&c, 1, NFS_PROGRAM, 3, 1);
    call_fh(&c, 2);
    for (size_t cut = 0; cut < c.n; cut += 3) {
        int fd = client_connect(&g);
        uint8_t mark[4];

        hf_put_be32(mark, 0x80000000u | (uint32_t)c.n);
        client_send(fd, mark, 4);
        client_send(fd, c.b, cut);
        (void)shutdown(fd, SHUT_WR);
        cr_assert(client_closed(fd));
        close(fd);
    }
    cr_assert_eq(fake_get().calls, 0);
}

Test(rpc, half_closed_connection_still_gets_its_replies)
{
    int fd = client_connect(&g);
    struct call_buf c;
    struct reply r;

    for (uint32_t i = 0; i < 50; i++) {
        call_begin(&c, i, NFS_PROGRAM, 3, 1);
        call_fh(&c, 2);
        client_call(fd, &c);
    }
    (void)shutdown(fd, SHUT_WR);
    for (uint32_t i = 0; i < 50; i++) {
        client_recv_ok(fd, i, &r);
        reply_free(&r);
    }
    cr_assert(client_closed(fd));
    close(fd);
}

Test(rpc, random_streams)
{
    srand(11);
    for (int round = 0; round < 200; round++) {
        int fd = client_connect(&g);
        uint8_t b[512];
        size_t n = (size_t)(rand() % 512);
        struct call_buf c;

        /* A valid call with some bytes spoilt, then noise. */
        call_begin(&c, 1, NFS_PROGRAM, 3, (uint32_t)rand() % NFS3_PROCS);
        call_fh(&c, 2);
        for (size_t i = 0; i < 100; i++)
            call_u32(&c, rand() % 3 ? 0 : (uint32_t)rand());
        for (int i = 0; i < 4; i++)
            c.b[(size_t)rand() % c.n] = (uint8_t)rand();
        client_call(fd, &c);
        for (size_t i = 0; i < n; i++)
            b[i] = (uint8_t)rand();
        (void)!send(fd, b, n, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_RDWR);
        close(fd);
    }
    for (int i = 0; i < 3; i++) {
        int fd = client_connect(&g);

        null_call(fd, 5);
        close(fd);
    }
}

/* ---- duplicate requests ---- */

static void make_mkdir(struct call_buf *c, uint32_t xid, const char *name)
{
    call_begin(c, xid, NFS_PROGRAM, 3, 9);
    call_fh(c, 2);
    call_bytes(c, name, (uint32_t)strlen(name));
    for (int i = 0; i < 6; i++)
        call_u32(c, 0);
}

static void expect_status(int fd, uint32_t xid, uint32_t status)
{
    struct reply r;

    client_recv_ok(fd, xid, &r);
    cr_assert_eq(reply_word(&r, 6), status, "status %u", reply_word(&r, 6));
    reply_free(&r);
}

static void set_status(struct fake *f, void *arg)
{
    f->status = *(int *)arg;
}

static void set_hold(struct fake *f, void *arg)
{
    f->hold_changes = *(bool *)arg;
}

static void status(int rc)
{
    fake_set(set_status, &rc);
}

static void hold(bool on)
{
    fake_set(set_hold, &on);
}

Test(rpc, repeated_change_from_a_new_port_is_replayed)
{
    int fd = client_connect(&g), fd2;
    struct call_buf c;

    make_mkdir(&c, 77, "d");
    client_call(fd, &c);
    expect_status(fd, 77, NFS3_OK);
    close(fd);
    status(HF_E_EXIST);
    fd2 = client_connect(&g);
    for (uint32_t i = 0; i < 10000; i++) { /* reads do not drive it out */
        struct call_buf get;
        struct reply r;

        call_begin(&get, i + 1000, NFS_PROGRAM, 3, 1);
        call_fh(&get, 2);
        client_call(fd2, &get);
        client_recv_ok(fd2, i + 1000, &r);
        reply_free(&r);
    }
    client_call(fd2, &c);
    expect_status(fd2, 77, NFS3_OK);
    cr_assert_eq(fake_get().changes, 1);
    cr_assert_eq(gateway_counter(&g, "drc_hits"), 1);
    make_mkdir(&c, 77, "e"); /* the same xid for something else */
    client_call(fd2, &c);
    expect_status(fd2, 77, NFS3ERR_EXIST);
    make_mkdir(&c, 78, "d");
    client_call(fd2, &c);
    expect_status(fd2, 78, NFS3ERR_EXIST);
    cr_assert_eq(fake_get().changes, 3);
    close(fd2);
}

Test(rpc, repeated_change_waits_for_the_first)
{
    int fd = client_connect(&g), fd2 = client_connect(&g);
    struct call_buf c;

    hold(true);
    make_mkdir(&c, 5, "d");
    client_call(fd, &c);
    gateway_wait_counter(&g, "nfs3_mkdir_calls", 1);
    client_call(fd2, &c);
    gateway_wait_counter(&g, "drc_waits", 1);
    client_call(fd2, &c);
    gateway_wait_counter(&g, "drc_waits", 2);
    close(fd); /* the first asker is gone */
    gateway_wait_counter(&g, "nfs3_mkdir_calls", 3);
    hold(false);
    fake_release();
    expect_status(fd2, 5, NFS3_OK);
    expect_status(fd2, 5, NFS3_OK);
    cr_assert_eq(fake_get().changes, 1);
    close(fd2);
}

Test(rpc, reply_is_remembered_though_nobody_was_there_to_take_it)
{
    int fd = client_connect(&g);
    struct call_buf c;

    hold(true);
    make_mkdir(&c, 5, "d");
    client_call(fd, &c);
    gateway_wait_counter(&g, "nfs3_mkdir_calls", 1);
    close(fd);
    fd = client_connect(&g);
    null_call(fd, 1);
    hold(false);
    fake_release();
    client_call(fd, &c);
    expect_status(fd, 5, NFS3_OK);
    cr_assert_eq(fake_get().changes, 1);
    close(fd);
}

Test(rpc, jukebox_is_not_remembered)
{
    int fd = client_connect(&g);
    struct call_buf c;

    status(HF_E_TIMEDOUT);
    make_mkdir(&c, 5, "d");
    client_call(fd, &c);
    expect_status(fd, 5, NFS3ERR_JUKEBOX);
    status(0);
    client_call(fd, &c);
    expect_status(fd, 5, NFS3_OK);
    cr_assert_eq(fake_get().changes, 2);
    close(fd);
}

/* ---- limits ---- */

static void limited(const struct hf_nfssvc_opts *o)
{
    gateway_stop(&g);
    gateway_start(&g, o);
}

Test(rpc, requests_per_connection_are_limited_and_none_is_lost)
{
    const struct hf_nfssvc_opts o = {.max_requests_per_connection = 4};
    struct call_buf c;
    int fd;

    limited(&o);
    fd = client_connect(&g);
    hold(true);
    for (uint32_t i = 0; i < 20; i++) {
        make_mkdir(&c, i, "d");
        client_call(fd, &c);
    }
    gateway_wait_counter(&g, "read_pauses", 1);
    cr_assert_eq(gateway_counter(&g, "requests_in_progress"), 4);
    hold(false);
    fake_release();
    for (uint32_t i = 0; i < 20; i++) {
        struct reply r;

        cr_assert(client_recv(fd, &r));
        reply_free(&r);
    }
    cr_assert_eq(fake_get().changes, 20);
    close(fd);
}

Test(rpc, connections_are_limited_and_the_next_waits)
{
    const struct hf_nfssvc_opts o = {.max_connections = 2};
    int a, b, c;

    limited(&o);
    a = client_connect(&g);
    b = client_connect(&g);
    null_call(a, 1);
    null_call(b, 2);
    c = client_connect(&g); /* in the backlog */
    null_call(a, 3);
    cr_assert_eq(gateway_counter(&g, "connections"), 2);
    close(b);
    null_call(c, 4);
    close(a);
    close(c);
}

Test(rpc, idle_connections_are_closed)
{
    const struct hf_nfssvc_opts o = {.idle_timeout_ms = 100};
    int fd;

    limited(&o);
    fd = client_connect(&g);
    null_call(fd, 1);
    cr_assert(client_closed(fd));
    cr_assert_eq(gateway_counter(&g, "connections_idle"), 1);
    close(fd);
}

Test(rpc, idle_connections_make_room_when_all_places_are_taken)
{
    const struct hf_nfssvc_opts o = {.max_connections = 2};
    int idle[2], fd;

    limited(&o); /* idle timeout: six minutes */
    for (size_t i = 0; i < HF_ARRAY_LEN(idle); i++)
        idle[i] = client_connect(&g);
    gateway_wait_counter(&g, "connections_accepted", HF_ARRAY_LEN(idle));
    fd = client_connect(&g);
    null_call(fd, 1);
    cr_assert_geq(gateway_counter(&g, "connections_idle"), 1);
    for (size_t i = 0; i < HF_ARRAY_LEN(idle); i++)
        close(idle[i]);
    close(fd);
}

Test(rpc, half_a_call_is_not_waited_for_for_ever)
{
    const struct hf_nfssvc_opts o = {.stall_timeout_ms = 100};
    int fd;

    limited(&o);
    fd = client_connect(&g);
    client_send(fd,
                "\x80\x00\x10\x00"
                "abcd",
                8);
    cr_assert(client_closed(fd));
    cr_assert_eq(gateway_counter(&g, "connections_stalled"), 1);
    close(fd);
}

/* Announced, never sent: they fill the memory of calls, and others wait no minute for it. */
Test(rpc, half_calls_that_fill_memory_go_sooner)
{
    const struct hf_nfssvc_opts o = {.max_request_bytes = 4u << 20};
    int half[4], fd;

    limited(&o); /* stall timeout: a minute */
    for (size_t i = 0; i < HF_ARRAY_LEN(half); i++) {
        half[i] = client_connect(&g);
        client_send(half[i], "\x80\x10\x00\x00", 4);
    }
    gateway_wait_counter(&g, "request_bytes", 4u << 20);
    fd = client_connect(&g);
    null_call(fd, 1);
    /* As many as it takes: with the memory back, the others have their minute. */
    cr_assert_geq(gateway_counter(&g, "connections_stalled"), 1);
    for (size_t i = 0; i < HF_ARRAY_LEN(half); i++)
        close(half[i]);
    close(fd);
}

static void set_read_bytes(struct fake *f, void *arg)
{
    (void)arg;
    f->read_bytes = 1u << 20;
}

Test(rpc, slow_readers_are_not_read_and_then_dropped)
{
    const struct hf_nfssvc_opts o = {.stall_timeout_ms = 500, .max_reply_bytes = 2u << 20};
    struct call_buf c;
    int fd;

    limited(&o);
    fake_set(set_read_bytes, NULL);
    fd = client_connect(&g);
    for (uint32_t i = 0; i < 64; i++) {
        call_begin(&c, i, NFS_PROGRAM, 3, 6);
        call_fh(&c, 100);
        call_u32(&c, 0);
        call_u32(&c, 0);
        call_u32(&c, 1u << 20);
        client_call(fd, &c);
    }
    gateway_wait_counter(&g, "connections_stalled", 1);
    cr_assert_lt(gateway_counter(&g, "nfs3_read_calls"), 64);
    close(fd);
    fd = client_connect(&g);
    null_call(fd, 1);
    cr_assert_eq(fake_get().msg_refs, 0);
    close(fd);
}

/* Sends what the sockets take, in turns, until all of it is sent. */
static void send_all(const int *fds, size_t n, const uint8_t *data, size_t len)
{
    size_t sent[8] = {0}, left = n * len;

    while (left) {
        for (size_t i = 0; i < n; i++) {
            ssize_t k = send(fds[i], data + sent[i], len - sent[i], MSG_NOSIGNAL | MSG_DONTWAIT);

            cr_assert(k >= 0 || errno == EAGAIN);
            sent[i] += k > 0 ? (size_t)k : 0;
            left -= k > 0 ? (size_t)k : 0;
        }
        (void)poll(NULL, 0, 1);
    }
}

Test(rpc, memory_of_requests_is_limited_and_all_are_served)
{
    const struct hf_nfssvc_opts o = {.max_request_bytes = 4u << 20};
    static uint8_t data[1u << 20];
    int fds[8];
    struct call_buf c;
    struct reply r;

    limited(&o);
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t mark[4];

        fds[i] = client_connect(&g);
        call_begin(&c, i, NFS_PROGRAM, 3, 7);
        call_fh(&c, 100);
        call_u32(&c, 0);
        call_u32(&c, 0);
        call_u32(&c, sizeof(data));
        call_u32(&c, 2);
        call_u32(&c, sizeof(data));
        hf_put_be32(mark, 0x80000000u | (uint32_t)(c.n + sizeof(data)));
        client_send(fds[i], mark, 4);
        client_send(fds[i], c.b, c.n);
    }
    /* Four records of 1 MiB are begun; the others have to wait for their end. */
    gateway_wait_counter(&g, "read_pauses", 4);
    cr_assert_eq(gateway_counter(&g, "nfs3_write_calls"), 0);
    send_all(fds, 8, data, sizeof(data));
    for (uint32_t i = 0; i < 8; i++) {
        client_recv_ok(fds[i], i, &r);
        reply_free(&r);
        close(fds[i]);
    }
    cr_assert_eq(fake_get().changes, 8);
}

/* ---- life ---- */

Test(rpc, stop_answers_what_runs)
{
    int fd = client_connect(&g);
    struct call_buf c;

    hold(true);
    make_mkdir(&c, 9, "d");
    client_call(fd, &c);
    gateway_wait_counter(&g, "nfs3_mkdir_calls", 1);
    /* The fake completes it with CLOSED when the client library goes: no reply, the client repeats.
     */
    gateway_stop(&g);
    cr_assert(client_closed(fd));
    close(fd);
    gateway_start(&g, NULL);
    hold(false);
}

Test(rpc, port_in_use_is_told)
{
    struct hf_nfssvc_opts o = {.env = g.env, .meta_url = "inproc://none"};
    struct hf_nfssvc *svc = NULL;
    char err[256];

    o.listen = hf_nfssvc_listen(g.svc);
    cr_assert_eq(hf_nfssvc_new(&o, &svc, err, sizeof(err)), HF_E_ADDRINUSE);
    cr_assert_not_null(strstr(err, "in use"), "%s", err);
    cr_assert_null(strchr(err, '\n'));
    cr_assert_null(svc);
}

Test(rpc, listen_addresses)
{
    static const char *const bad[] = {"",         "127.0.0.1",       "127.0.0.1:",  ":2049",
                                      "::1:2049", "127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:0,",
                                      "[::1]"};
    struct hf_nfssvc_opts o = {.env = g.env, .meta_url = "inproc://none"};
    struct hf_nfssvc *svc = NULL;
    char err[256];

    for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
        o.listen = bad[i];
        cr_assert_neq(hf_nfssvc_new(&o, &svc, err, sizeof(err)), 0, "%s", bad[i]);
        cr_assert_neq(err[0], '\0');
    }
    o.listen = "127.0.0.1:0, [::1]:0";
    if (hf_nfssvc_new(&o, &svc, err, sizeof(err)) == 0) { /* not every machine has IPv6 */
        cr_assert_gt(hf_nfssvc_port(svc), 0);
        cr_assert_eq(strncmp(hf_nfssvc_listen(svc), "127.0.0.1:", 10), 0);
        hf_nfssvc_free(svc);
    } else {
        cr_assert_not_null(strstr(err, "[::1]"), "%s", err);
    }
}

static void set_ready(struct fake *f, void *arg)
{
    f->not_ready = !*(bool *)arg;
}

Test(rpc, nobody_is_served_before_the_file_system_is_known)
{
    bool ready = false;
    struct pollfd p;
    struct call_buf c;
    int fd;

    fake_set(set_ready, &ready);
    limited(NULL);
    cr_assert_not(hf_nfssvc_ready(g.svc));
    fd = client_connect(&g); /* waits in the backlog */
    call_begin(&c, 1, NFS_PROGRAM, 3, 0);
    client_call(fd, &c);
    p = (struct pollfd){fd, POLLIN, 0};
    cr_assert_eq(poll(&p, 1, 50), 0);
    ready = true;
    fake_set(set_ready, &ready);
    cr_assert_eq(poll(&p, 1, 20000), 1);
    cr_assert(hf_nfssvc_ready(g.svc));
    close(fd);
}

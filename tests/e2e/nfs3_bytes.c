/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that no well-behaved client sends, and retransmissions (duplicate requests), which libnfs
 * does not do on demand. Whatever comes, the node answers in the protocol or closes the connection,
 * goes on serving others, and does not grow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/nt.h"

#define PROC_MKDIR  9
#define PROC_REMOVE 12
#define PROC_RENAME 14
#define PROC_LINK   15

static uint32_t next_xid(void)
{
    static uint32_t xid;

    if (xid == 0) {
        xid = (uint32_t)nt_now_ns();
    }
    return ++xid;
}

/* Sends one call, receives its reply; returns the length, and the reply from its xid on. */
static ssize_t exchange(int fd, const struct nt_buf *m, uint8_t *rep, size_t cap)
{
    ssize_t n;

    NT_CHECK(nt_raw_send(fd, m->b, m->n));
    n = nt_raw_recv(fd, rep, cap);
    if (n > 0) {
        NT_EQ(nt_raw_get(rep), nt_raw_get(m->b + 4)); /* the xid */
        NT_EQ(nt_raw_get(rep + 4), 1);
    }
    return n;
}

/* ---- B3: a retransmission gets the first answer ---- */

struct retry {
    const char *name;
    uint32_t proc;
    const char *a, *b;
};

static void put_diropargs(struct nt_buf *m, const struct nt_fh *dir, const char *name)
{
    nt_raw_opaque(m, dir->data, dir->len);
    nt_raw_opaque(m, name, (uint32_t)strlen(name));
}

static void put_retry(struct nt_buf *m, const struct retry *t, struct nt_env *e,
                      const struct nt_fh *file)
{
    nt_raw_call(m, next_xid(), NFS_PROGRAM, 3, t->proc);
    if (t->proc == PROC_LINK) {
        nt_raw_opaque(m, file->data, file->len);
    }
    put_diropargs(m, &e->dir, t->a);
    if (t->b != NULL) {
        put_diropargs(m, &e->dir, t->b);
    }
    if (t->proc == PROC_MKDIR) {
        for (int i = 0; i < 6; i++) {
            nt_raw_u32(m, 0);
        }
    }
    nt_raw_seal(m);
}

static void t_retransmission(struct nt_env *e)
{
    static const struct retry table[] = {
        {"mkdir", PROC_MKDIR, "made", NULL},
        {"remove", PROC_REMOVE, "victim", NULL},
        {"rename", PROC_RENAME, "old", "new"},
        {"link", PROC_LINK, "hard", NULL},
    };
    struct nt_fh file, fh;

    nt_mk_file(e->root, &e->dir, "file", 0644, &file);
    nt_mk_file(e->root, &e->dir, "victim", 0644, &fh);
    nt_mk_file(e->root, &e->dir, "old", 0644, &fh);
    for (unsigned i = 0; i < 4; i++) {
        uint8_t first[512], second[512];
        struct nt_buf m;
        ssize_t n, k;
        int fd = nt_raw_connect(e->node.port), again = nt_raw_connect(e->node.port);

        put_retry(&m, &table[i], e, &file);
        n = exchange(fd, &m, first, sizeof(first));
        NT_CHECK(n >= 28);
        NT_STATUS(nt_raw_get(first + 24), NFS3_OK);
        k = exchange(fd, &m, second, sizeof(second)); /* on the same connection */
        NT_CHECK(k == n && memcmp(first, second, (size_t)n) == 0);
        close(fd);
        k = exchange(again, &m, second, sizeof(second)); /* and from a new port */
        if (k != n || memcmp(first, second, (size_t)n) != 0) {
            nt_fail(__FILE__, __LINE__, "%s sent again: %s", table[i].name,
                    nt_status_name(nt_raw_get(second + 24)));
        }
        for (unsigned j = 0; j < 10000 && i == 0; j++) { /* reads must not drive it out */
            NT_OK(nt_read(e->root, &file, 0, 1));
        }
        k = exchange(again, &m, second, sizeof(second));
        NT_CHECK(k == n && memcmp(first, second, (size_t)n) == 0);
        close(again);
    }
    NT_OK(nt_getattr(e->root, &file));
    NT_EQ(e->root->r.attr.nlink, 2);
}

/* Sent twice before the first is answered: one execution, the same answer (or one answer only). */
static void t_retransmission_in_flight(struct nt_env *e)
{
    for (unsigned i = 0; i < 50; i++) {
        struct retry t = {"mkdir", PROC_MKDIR, "x", NULL};
        uint8_t rep[2][512];
        struct nt_buf m;
        char name[16];
        int a = nt_raw_connect(e->node.port), b = nt_raw_connect(e->node.port);
        ssize_t na;

        snprintf(name, sizeof(name), "m%u", i);
        t.a = name;
        put_retry(&m, &t, e, &e->dir);
        NT_CHECK(nt_raw_send(a, m.b, m.n) && nt_raw_send(b, m.b, m.n));
        na = nt_raw_recv(a, rep[0], 512);
        NT_CHECK(na >= 28);
        NT_STATUS(nt_raw_get(rep[0] + 24), NFS3_OK);
        /* the second may be dropped while the first runs; sent once more, it must be answered */
        NT_CHECK(nt_raw_send(b, m.b, m.n));
        NT_CHECK(nt_raw_recv(b, rep[1], 512) == na);
        NT_STATUS(nt_raw_get(rep[1] + 24), NFS3_OK);
        close(a);
        close(b);
    }
}

/* The same xid with another call is another call. */
static void t_xid_reuse(struct nt_env *e)
{
    struct retry t = {"mkdir", PROC_MKDIR, "one", NULL};
    uint8_t rep[512];
    struct nt_buf m, m2;
    int fd = nt_raw_connect(e->node.port);

    put_retry(&m, &t, e, &e->dir);
    NT_CHECK(exchange(fd, &m, rep, sizeof(rep)) >= 28);
    NT_STATUS(nt_raw_get(rep + 24), NFS3_OK);
    t.a = "two";
    put_retry(&m2, &t, e, &e->dir);
    memcpy(m2.b + 4, m.b + 4, 4);
    NT_CHECK(exchange(fd, &m2, rep, sizeof(rep)) >= 28);
    NT_STATUS(nt_raw_get(rep + 24), NFS3_OK);
    NT_OK(nt_lookup(e->root, &e->dir, "two"));
    close(fd);
}

/* ---- what the RPC layer must say ---- */

static void t_rpc_errors(struct nt_env *e)
{
    static const struct {
        uint32_t prog, vers, proc, accept;
    } table[] = {
        {200000, 3, 0, 1}, /* PROG_UNAVAIL */
        {100003, 2, 0, 2}, /* PROG_MISMATCH */
        {100003, 9, 0, 2},   {100005, 9, 0, 2},
        {100003, 3, 22, 3}, /* PROC_UNAVAIL */
        {100003, 3, 999, 3}, {100005, 3, 6, 3},
        {100003, 3, 1, 4}, /* GETATTR without arguments: GARBAGE_ARGS */
        {100003, 3, 8, 4},   {100005, 3, 1, 4},
    };
    int fd = nt_raw_connect(e->node.port);
    uint8_t rep[512];
    struct nt_buf m;

    for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        nt_raw_call(&m, next_xid(), table[i].prog, table[i].vers, table[i].proc);
        nt_raw_seal(&m);
        NT_CHECK(exchange(fd, &m, rep, sizeof(rep)) >= 24);
        NT_EQ(nt_raw_get(rep + 8), 0); /* accepted */
        if (nt_raw_get(rep + 20) != table[i].accept) {
            nt_fail(__FILE__, __LINE__,
                    "program %u version %u procedure %u: accept_stat %u, expected %u",
                    table[i].prog, table[i].vers, table[i].proc, nt_raw_get(rep + 20),
                    table[i].accept);
        }
    }
    nt_raw_call(&m, next_xid(), 100003, 3, 0);
    m.b[15] = 3; /* RPC version 3 */
    nt_raw_seal(&m);
    NT_CHECK(exchange(fd, &m, rep, sizeof(rep)) >= 16);
    NT_EQ(nt_raw_get(rep + 8), 1);  /* denied */
    NT_EQ(nt_raw_get(rep + 12), 0); /* RPC_MISMATCH */
    close(fd);
}

/* Lengths that lie. Each is answered with GARBAGE_ARGS or an NFS error, or the connection ends. */
static void t_lying_lengths(struct nt_env *e)
{
    static const uint32_t lens[] = {65, 256, 70000, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    uint8_t rep[512];
    struct nt_buf m;

    for (unsigned i = 0; i < 2 * sizeof(lens) / sizeof(lens[0]); i++) {
        int fd = nt_raw_connect(e->node.port);
        ssize_t n;

        nt_raw_call(&m, next_xid(), 100003, 3, 3);
        if (i % 2 == 0) {
            nt_raw_u32(&m, lens[i / 2]); /* the handle's */
        } else {
            nt_raw_opaque(&m, e->dir.data, e->dir.len);
            nt_raw_u32(&m, lens[i / 2]); /* the name's */
        }
        nt_raw_u32(&m, 0x41414141);
        nt_raw_seal(&m);
        n = exchange(fd, &m, rep, sizeof(rep));
        NT_CHECK(n >= 0);
        if (n > 0) {
            NT_CHECK(nt_raw_get(rep + 20) == 4 ||
                     (nt_raw_get(rep + 20) == 0 && nt_raw_get(rep + 24) != 0));
        }
        close(fd);
    }
    NT_OK(nt_null(e->root));
}

static void t_names_with_nul(struct nt_env *e)
{
    static const char *const names[] = {"a\0b", "a/b", "/ab"};
    uint8_t rep[512];
    int fd = nt_raw_connect(e->node.port);

    for (unsigned i = 0; i < 3; i++) {
        struct nt_buf m;

        nt_raw_call(&m, next_xid(), 100003, 3, PROC_MKDIR);
        nt_raw_opaque(&m, e->dir.data, e->dir.len);
        nt_raw_opaque(&m, names[i], 3);
        for (int k = 0; k < 6; k++) {
            nt_raw_u32(&m, 0);
        }
        nt_raw_seal(&m);
        NT_CHECK(exchange(fd, &m, rep, sizeof(rep)) >= 28);
        NT_EQ(nt_raw_get(rep + 20), 0);
        NT_ONE_OF(nt_raw_get(rep + 24), NFS3ERR_INVAL, NFS3ERR_ACCES);
    }
    close(fd);
    NT_OK(nt_readdir(e->root, &e->dir, 0, NULL, 4096));
    NT_EQ(e->root->r.nentries, 2);
}

static void t_credentials(struct nt_env *e)
{
    uint8_t rep[512];
    struct nt_buf m;

    for (uint32_t kind = 0; kind < 5; kind++) {
        int fd = nt_raw_connect(e->node.port);
        static const uint8_t junk[1024];
        ssize_t n;

        nt_raw_call(&m, next_xid(), 100003, 3, 1);
        m.n = 28;        /* up to the credentials */
        if (kind == 0) { /* AUTH_SYS, cut short */
            nt_raw_u32(&m, 1);
            nt_raw_opaque(&m, junk, 8);
        } else if (kind == 1) { /* 17 groups */
            nt_raw_u32(&m, 1);
            nt_raw_u32(&m, 20 + 17 * 4);
            for (int i = 0; i < 4; i++) {
                nt_raw_u32(&m, 0);
            }
            nt_raw_u32(&m, 17);
            for (int i = 0; i < 17; i++) {
                nt_raw_u32(&m, 0);
            }
        } else if (kind == 2) { /* a flavour nobody knows */
            nt_raw_u32(&m, 4711);
            nt_raw_opaque(&m, junk, 16);
        } else if (kind == 3) { /* a body over the 400 bytes of RFC 5531 */
            nt_raw_u32(&m, 1);
            nt_raw_opaque(&m, junk, 1000);
        } else { /* AUTH_NONE: anonymous, or too weak */
            nt_raw_u32(&m, 0);
            nt_raw_u32(&m, 0);
        }
        nt_raw_u32(&m, 0);
        nt_raw_u32(&m, 0);
        nt_raw_opaque(&m, e->dir.data, e->dir.len);
        nt_raw_seal(&m);
        n = exchange(fd, &m, rep, sizeof(rep));
        NT_CHECK(n >= 0);
        if (n > 0 && kind < 4) { /* denied with AUTH_ERROR, or arguments that make no sense */
            NT_CHECK(nt_raw_get(rep + 8) == 1 || nt_raw_get(rep + 20) != 0);
        }
        close(fd);
    }
    NT_OK(nt_null(e->root));
}

/* ---- bytes without sense ---- */

static uint64_t rng_next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void valid_call(struct nt_buf *m, struct nt_env *e, uint32_t proc)
{
    nt_raw_call(m, next_xid(), 100003, 3, proc);
    nt_raw_opaque(m, e->dir.data, e->dir.len);
    for (uint32_t i = 0; i < 20; i++) {
        if (i == 3) {
            nt_raw_opaque(m, "name", 4);
        }
        nt_raw_u32(m, i % 3);
    }
    nt_raw_seal(m);
}

/* Valid calls with some bytes changed, many on one connection, without waiting for answers. */
static void t_mutations(struct nt_env *e)
{
    uint64_t rng = 88172645463325252ull;
    long before, after;

    before = nt_node_rss_kib(&e->node);
    for (unsigned round = 0; round < 400; round++) {
        int fd = nt_raw_connect(e->node.port);

        for (unsigned i = 0; i < 50; i++) {
            struct nt_buf m;
            unsigned flips = 1 + (unsigned)(rng_next(&rng) % 6);

            valid_call(&m, e, (uint32_t)(rng_next(&rng) % 22));
            for (unsigned k = 0; k < flips; k++) {
                size_t at = rng_next(&rng) % 16 == 0 ? rng_next(&rng) % m.n
                                                     : 8 + rng_next(&rng) % (m.n - 8);

                m.b[at] = (uint8_t)rng_next(&rng);
            }
            if (!nt_raw_send(fd, m.b, m.n)) {
                break;
            }
        }
        close(fd);
    }
    NT_OK(nt_null(e->root));
    if (!e->node.foreign) {
        after = nt_node_rss_kib(&e->node);
        printf("# resident set %ld -> %ld KiB\n", before, after);
        NT_CHECK(after < before + 64 * 1024);
    }
}

static void t_record_marks(struct nt_env *e)
{
    static const uint32_t marks[] = {0xffffffff, 0x7fffffff, 0x80000000,
                                     0x00000000, 0x80000003, 0x88000000};
    uint8_t rep[512];

    for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        int fd = nt_raw_connect(e->node.port);
        struct nt_buf m = {.n = 0};

        nt_raw_u32(&m, marks[i]);
        nt_raw_u32(&m, 0);
        for (unsigned k = 0; k < 200 && nt_raw_send(fd, m.b, m.n); k++) {
        }
        shutdown(fd, SHUT_WR);
        NT_CHECK(nt_raw_recv(fd, rep, sizeof(rep)) >= 0); /* an answer or the end, not silence */
        close(fd);
    }
    NT_OK(nt_null(e->root));
}

/* A call in fragments of one byte is a call. */
static void t_fragments(struct nt_env *e)
{
    int fd = nt_raw_connect(e->node.port);
    struct nt_buf m, f = {.n = 0};
    uint8_t rep[512];

    nt_raw_call(&m, next_xid(), 100003, 3, 1);
    nt_raw_opaque(&m, e->dir.data, e->dir.len);
    for (size_t i = 4; i < m.n; i++) {
        nt_raw_u32(&f, (i == m.n - 1 ? 0x80000000u : 0) | 1);
        f.b[f.n++] = m.b[i];
    }
    NT_CHECK(nt_raw_send(fd, f.b, f.n));
    NT_CHECK(nt_raw_recv(fd, rep, sizeof(rep)) == 28 + 84);
    NT_STATUS(nt_raw_get(rep + 24), NFS3_OK);
    close(fd);
}

/* Connections that begin a call and never end it; all the while others are served. */
static void t_half_calls(struct nt_env *e)
{
    enum { N = 200 };
    int fds[N];
    struct nt_buf m;

    valid_call(&m, e, 7);
    for (int i = 0; i < N; i++) {
        fds[i] = nt_raw_connect(e->node.port);
        NT_CHECK(nt_raw_send(fds[i], m.b, 1 + (size_t)i % (m.n - 1)));
    }
    NT_OK(nt_null(e->root));
    NT_OK(nt_getattr(e->root, &e->dir));
    for (int i = 0; i < N; i++) {
        close(fds[i]);
    }
    NT_OK(nt_null(e->root));
}

/* Asks for 1 GiB in READs of 1 MiB and takes nothing: the node keeps at most
 * nfs.max_request_bytes (256 MiB) of it in memory. */
static void t_slow_reader(struct nt_env *e)
{
    uint8_t *b = calloc(1, 1u << 20);
    int fd = nt_raw_connect(e->node.port);
    struct nt_fh fh;
    long before;

    nt_mk_file(e->root, &e->dir, "big", 0644, &fh);
    NT_OK(nt_write(e->root, &fh, 0, b, 1u << 20, FILE_SYNC));
    free(b);
    before = nt_node_rss_kib(&e->node);
    for (unsigned i = 0; i < 1024; i++) {
        struct nt_buf m;

        nt_raw_call(&m, next_xid(), 100003, 3, 6);
        nt_raw_opaque(&m, fh.data, fh.len);
        nt_raw_u32(&m, 0);
        nt_raw_u32(&m, 0);
        nt_raw_u32(&m, 1u << 20);
        nt_raw_seal(&m);
        if (send(fd, m.b, m.n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)m.n) {
            break;
        }
    }
    for (unsigned i = 0; i < 500; i++) { /* others are served, and time passes */
        NT_OK(nt_getattr(e->root, &fh));
        NT_OK(nt_read(e->root, &fh, 0, 4096));
    }
    printf("# resident set %ld -> %ld KiB\n", before, nt_node_rss_kib(&e->node));
    NT_CHECK(nt_node_rss_kib(&e->node) < before + 320 * 1024);
    close(fd);
    NT_OK(nt_null(e->root));
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"retransmission", t_retransmission, false},
        {"retransmission_in_flight", t_retransmission_in_flight, false},
        {"xid_reuse", t_xid_reuse, false},
        {"rpc_errors", t_rpc_errors, false},
        {"lying_lengths", t_lying_lengths, false},
        {"names_with_nul", t_names_with_nul, false},
        {"credentials", t_credentials, false},
        {"mutations", t_mutations, true},
        {"record_marks", t_record_marks, true},
        {"fragments", t_fragments, false},
        {"half_calls", t_half_calls, true},
        {"slow_reader", t_slow_reader, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

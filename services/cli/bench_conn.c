/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection of the load generator. Output is a list of pieces: bytes encoded into `out`, and
 * callers' data in between (WRITE payloads are not copied). Input is one buffer that replies are
 * parsed from in place. The xid of a call is (sequence << 10) | slot, so a reply finds its slot
 * without a search; the sequence starts at random, so that two runs never look like retransmissions
 * of each other to a server's duplicate-request cache.
 */
#include "bench.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define SLOT_BITS 10u
#define IN_CAP    (3u << 20)
#define IN_LOW    (256u << 10)
#define OUT_ROOM                                                                                   \
    2048u /* the largest request without data: three handles, two names, attributes                \
           */
#define CONNECT_MS    5000
#define IOV_BATCH     64
#define RECORD_MAX    (2u << 20)
#define TMPL_XID      4
#define TMPL_PROG     16
#define TMPL_PROC     24
#define LAST_FRAGMENT 0x80000000u

static void store_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- connecting ---- */

static int connect_one(const struct addrinfo *ai, int *ret_fd)
{
    struct pollfd pfd;
    int err = 0, one = 1;
    socklen_t len = sizeof(err);
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return hf_err_from_errno(errno);
    }
    if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
        if (errno != EINPROGRESS) {
            err = errno;
            goto fail;
        }
        pfd = (struct pollfd){.fd = fd, .events = POLLOUT};
        if (poll(&pfd, 1, CONNECT_MS) != 1) {
            err = ETIMEDOUT;
            goto fail;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0) {
            goto fail;
        }
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *ret_fd = fd;
    return 0;
fail:
    close(fd);
    return err == ETIMEDOUT ? HF_E_TIMEDOUT : HF_E_CONNREFUSED;
}

static int connect_any(const char *host, const char *port, int *ret_fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc = HF_E_CONNREFUSED;

    if (getaddrinfo(host, port, &hints, &list) != 0) {
        return HF_E_NOENT;
    }
    for (struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next) {
        rc = connect_one(ai, ret_fd);
        if (rc == 0) {
            break;
        }
    }
    freeaddrinfo(list);
    return rc;
}

/* Everything of a call up to its arguments; xid, program and procedure are put in for each. */
static void make_template(struct bn_conn *c, uint32_t uid, uint32_t gid)
{
    static const char machine[8] = "hf-bench";
    uint8_t *p = c->tmpl;

    store_u32(p, 0); /* record mark */
    store_u32(p + TMPL_XID, 0);
    store_u32(p + 8, 0);  /* CALL */
    store_u32(p + 12, 2); /* RPC version */
    store_u32(p + TMPL_PROG, BN_PROG_NFS);
    store_u32(p + 20, 3);
    store_u32(p + TMPL_PROC, 0);
    store_u32(p + 28, 1); /* AUTH_SYS */
    store_u32(p + 32, 28);
    store_u32(p + 36, 0);
    store_u32(p + 40, sizeof(machine));
    memcpy(p + 44, machine, sizeof(machine));
    store_u32(p + 52, uid);
    store_u32(p + 56, gid);
    store_u32(p + 60, 0); /* no further groups */
    store_u32(p + 64, 0); /* verifier AUTH_NONE */
    store_u32(p + 68, 0);
    c->tmpl_len = 72;
}

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_writable(evutil_socket_t fd, short what, void *arg);

int bn_conn_open(struct event_base *base, const char *host, const char *port, unsigned nslots,
                 uint32_t uid, uint32_t gid, struct bn_conn *ret)
{
    struct bn_conn *c = ret;
    int rc;

    HF_ASSERT(nslots >= 1 && nslots <= BN_DEPTH_MAX);
    memset(c, 0, sizeof(*c));
    c->fd = -1;
    c->base = base;
    c->nslots = nslots;
    rc = connect_any(host, port, &c->fd);
    if (rc != 0) {
        return rc;
    }
    make_template(c, uid, gid);
    if (getrandom(&c->xid_seq, sizeof(c->xid_seq), 0) != (ssize_t)sizeof(c->xid_seq)) {
        c->xid_seq = (uint32_t)bn_now_ns();
    }
    c->slots = calloc(nslots, sizeof(*c->slots));
    c->in_cap = IN_CAP;
    c->in = malloc(IN_CAP);
    c->out_cap = (size_t)OUT_ROOM * (nslots + 1);
    c->out = malloc(c->out_cap);
    c->cap_pieces = 2 * nslots + 2;
    c->pieces = calloc(c->cap_pieces, sizeof(*c->pieces));
    c->rd = event_new(base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    c->wr = event_new(base, c->fd, EV_WRITE, on_writable, c);
    if (c->slots == NULL || c->in == NULL || c->out == NULL || c->pieces == NULL || c->rd == NULL ||
        c->wr == NULL || event_add(c->rd, NULL) != 0) {
        bn_conn_close(c);
        return HF_E_NOMEM;
    }
    return 0;
}

void bn_conn_close(struct bn_conn *c)
{
    if (c->rd != NULL) {
        event_free(c->rd);
    }
    if (c->wr != NULL) {
        event_free(c->wr);
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    free(c->slots);
    free(c->in);
    free(c->out);
    free(c->pieces);
    memset(c, 0, sizeof(*c));
    c->fd = -1;
}

/* The connection is lost: every call in flight ends without an answer. */
static void conn_dead(struct bn_conn *c)
{
    static const struct bn_reply none;

    if (c->dead) {
        return;
    }
    c->dead = true;
    event_del(c->rd);
    event_del(c->wr);
    for (unsigned i = 0; i < c->nslots; i++) {
        struct bn_slot *s = &c->slots[i];

        if (s->busy) {
            s->busy = false;
            c->busy--;
            s->done(s, &none);
        }
    }
}

/* ---- output ---- */

void bn_req_begin(struct bn_conn *c, struct bn_slot *slot, enum bn_prog prog, uint32_t proc)
{
    uint32_t index = (uint32_t)(slot - c->slots);
    uint8_t *p;

    HF_ASSERT(!slot->busy);
    /* one request per slot is unsent at most, and the buffer starts anew when all are sent */
    HF_ASSERT(c->out_len + OUT_ROOM <= c->out_cap);
    p = c->out + c->out_len;
    memcpy(p, c->tmpl, c->tmpl_len);
    slot->xid = ++c->xid_seq << SLOT_BITS | index;
    slot->busy = true;
    c->busy++;
    store_u32(p + TMPL_XID, slot->xid);
    store_u32(p + TMPL_PROG, prog);
    store_u32(p + TMPL_PROC, proc);
    c->req_start = c->out_len;
    c->out_len += c->tmpl_len;
}

void bn_req_end(struct bn_conn *c, const uint8_t *ext, size_t ext_len)
{
    size_t len = c->out_len - c->req_start;
    struct bn_piece *last = c->npieces > c->next_piece ? &c->pieces[c->npieces - 1] : NULL;

    HF_ASSERT(len <= OUT_ROOM && ext_len % 4 == 0);
    store_u32(c->out + c->req_start, LAST_FRAGMENT | (uint32_t)(len - 4 + ext_len));
    if (last != NULL && last->ext == NULL && last->off + last->len == c->req_start) {
        last->len += len;
    } else {
        HF_ASSERT(c->pieces != NULL && c->npieces < c->cap_pieces);
        c->pieces[c->npieces++] = (struct bn_piece){.off = c->req_start, .len = len};
    }
    if (ext != NULL && ext_len > 0) {
        HF_ASSERT(c->npieces < c->cap_pieces);
        c->pieces[c->npieces++] = (struct bn_piece){.ext = ext, .len = ext_len};
    }
    if (!c->in_turn) {
        bn_conn_flush(c);
    }
}

/* Drops `n` sent bytes from the front of the piece list. */
static void pieces_sent(struct bn_conn *c, size_t n)
{
    c->bytes_out += n;
    while (n > 0) {
        struct bn_piece *p = &c->pieces[c->next_piece];

        if (n < p->len) {
            p->len -= n;
            if (p->ext != NULL) {
                p->ext += n;
            } else {
                p->off += n;
            }
            return;
        }
        n -= p->len;
        c->next_piece++;
    }
}

/* What is left after a partial write moves to the front, so that there is room for every slot. */
static void compact(struct bn_conn *c)
{
    size_t to = 0;
    unsigned k = 0;

    HF_ASSERT(c->pieces != NULL);
    for (unsigned i = c->next_piece; i < c->npieces; i++) {
        struct bn_piece p = c->pieces[i];

        if (p.ext == NULL) {
            memmove(c->out + to, c->out + p.off, p.len);
            p.off = to;
            to += p.len;
        }
        c->pieces[k++] = p;
    }
    c->npieces = k;
    c->next_piece = 0;
    c->out_len = to;
}

void bn_conn_flush(struct bn_conn *c)
{
    while (!c->dead && c->next_piece < c->npieces) {
        struct iovec iov[IOV_BATCH];
        int n = 0;
        ssize_t sent;

        for (unsigned i = c->next_piece; i < c->npieces && n < IOV_BATCH; i++, n++) {
            const struct bn_piece *p = &c->pieces[i];

            /* writev reads only; iovec has no const */
            iov[n].iov_base = p->ext != NULL ? (void *)(uintptr_t)p->ext : c->out + p->off;
            iov[n].iov_len = p->len;
        }
        sent = writev(c->fd, iov, n);
        if (sent < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN) {
                conn_dead(c);
                return;
            }
            compact(c);
            event_add(c->wr, NULL);
            return;
        }
        pieces_sent(c, (size_t)sent);
    }
    c->npieces = c->next_piece = 0;
    c->out_len = 0;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    bn_conn_flush(arg);
}

/* ---- input ---- */

/* reply_body of RFC 5531 section 9; false: not a reply at all, the stream cannot be trusted. */
static bool parse_reply(struct bn_conn *c, const uint8_t *p, size_t len)
{
    struct bn_reply r = {.body = p, .len = len};
    uint32_t xid, type, stat, flavor, vlen, accept;
    struct bn_slot *slot;

    if (!bn_get_u32(&r, &xid) || !bn_get_u32(&r, &type) || !bn_get_u32(&r, &stat) || type != 1) {
        return false;
    }
    if ((xid & (BN_DEPTH_MAX - 1)) >= c->nslots) {
        return false;
    }
    slot = &c->slots[xid & (BN_DEPTH_MAX - 1)];
    if (!slot->busy || slot->xid != xid) {
        return false;
    }
    if (stat == 0) {
        if (!bn_get_u32(&r, &flavor) || !bn_get_u32(&r, &vlen) ||
            !bn_skip(&r, (size_t)vlen + (4 - vlen % 4) % 4) || !bn_get_u32(&r, &accept)) {
            return false;
        }
        r.ok_rpc = accept == 0;
        if (r.ok_rpc && r.len > 0 && !bn_get_u32(&r, &r.status)) {
            return false;
        }
    }
    slot->busy = false;
    c->busy--;
    slot->done(slot, &r);
    return true;
}

/* One whole record at in_pos: 1 and its length, 0 if more bytes must come, -1 if it is nonsense. A
 * record of several fragments is joined in place. */
static int find_record(struct bn_conn *c, size_t *ret_len, size_t *ret_total)
{
    const uint8_t *p = c->in + c->in_pos;
    size_t avail = c->in_len - c->in_pos, off = 0, len = 0;
    bool last = false;

    while (!last) {
        uint32_t mark;

        if (avail - off < 4) {
            return 0;
        }
        mark = load_u32(p + off);
        last = (mark & LAST_FRAGMENT) != 0;
        mark &= ~LAST_FRAGMENT;
        if (mark > RECORD_MAX || len + mark > RECORD_MAX) {
            return -1;
        }
        if (avail - off - 4 < mark) {
            return 0;
        }
        off += 4 + mark;
        len += mark;
    }
    *ret_len = len;
    *ret_total = off;
    return 1;
}

static const uint8_t *join_record(struct bn_conn *c, size_t len, size_t total)
{
    uint8_t *p = c->in + c->in_pos;
    size_t from = 0, to = 4;

    if (total == len + 4) {
        return p + 4;
    }
    while (from < total) {
        size_t n = load_u32(p + from) & ~LAST_FRAGMENT;

        memmove(p + to, p + from + 4, n);
        to += n;
        from += 4 + n;
    }
    return p + 4;
}

static void parse_input(struct bn_conn *c)
{
    size_t len, total;
    int rc = 0;

    while (!c->dead && (rc = find_record(c, &len, &total)) == 1) {
        const uint8_t *rec = join_record(c, len, total);

        c->in_pos += total;
        if (!parse_reply(c, rec, len)) {
            rc = -1;
            break;
        }
    }
    if (rc < 0) {
        conn_dead(c);
        return;
    }
    if (c->in_pos == c->in_len) {
        c->in_pos = c->in_len = 0;
    } else if (c->in_cap - c->in_len < IN_LOW || c->in_len - c->in_pos < 4096) {
        memmove(c->in, c->in + c->in_pos, c->in_len - c->in_pos);
        c->in_len -= c->in_pos;
        c->in_pos = 0;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct bn_conn *c = arg;
    ssize_t n;

    (void)fd;
    (void)what;
    n = read(c->fd, c->in + c->in_len, c->in_cap - c->in_len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        conn_dead(c);
        return;
    }
    c->in_len += (size_t)n;
    c->bytes_in += (uint64_t)n;
    c->in_turn = true;
    parse_input(c);
    c->in_turn = false;
    bn_conn_flush(c);
}

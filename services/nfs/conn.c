/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection: its output, its end, and its time limits. What it reads is in conn_read.c.
 *
 * Replies are gathered in the connection's output buffer and leave once per turn of the loop (one
 * writev for all of them), from the flush task. There also connections are closed, so that no
 * caller loses one under its feet, and paused ones are looked at again.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "conn_priv.h"

#define PRESSED_STALL_NS (5000 * HF_NS_PER_MS)
#define PRESSED_IDLE_NS  (5000 * HF_NS_PER_MS)

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct nfs_conn *c = arg;

    (void)fd;
    (void)what;
    c->writing = false;
    nfs_conn_touch(c);
}

static void set_option(int fd, int level, int name, int value)
{
    /* All of them are improvements only; a socket that refuses one still works. */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

int nfs_conn_new(struct hf_nfssvc *s, int fd, const struct sockaddr *peer)
{
    struct event_base *base = hf_loop_base(s->loop);
    struct nfs_conn *c = calloc(1, sizeof(*c));

    if (!c)
        return HF_E_NOMEM;
    hf_list_init(&c->link);
    hf_list_init(&c->dirty_link);
    hf_list_init(&c->paused_link);
    hf_list_init(&c->reqs);
    c->svc = s;
    c->fd = -1;
    c->out = evbuffer_new();
    c->rd = event_new(base, fd, EV_READ | EV_PERSIST, nfs_conn_readable, c);
    c->wr = event_new(base, fd, EV_WRITE, on_writable, c);
    if (!c->out || !c->rd || !c->wr || event_add(c->rd, NULL) != 0)
        goto fail;
    memcpy(&c->peer, peer,
           peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
    nfs_record_init(&c->record, &s->mem);
    c->fd = fd;
    c->reading = true;
    c->last_call_ns = c->out_progress_ns = hf_loop_now_ns(s->loop);
    hf_list_push_back(&s->conns, &c->link);
    s->nconns++;
    hf_metric_set(&s->m.connections, s->nconns);
    return 0;
fail:
    if (c->rd)
        event_free(c->rd);
    if (c->wr)
        event_free(c->wr);
    if (c->out)
        evbuffer_free(c->out);
    free(c);
    return HF_E_NOMEM;
}

void nfs_conn_free(struct nfs_conn *c)
{
    struct hf_nfssvc *s = c->svc;
    struct hf_list *l;

    while ((l = hf_list_pop_front(&c->reqs)) != NULL)
        hf_container_of(l, struct nfs_req, link)->conn = NULL;
    event_free(c->rd);
    event_free(c->wr);
    (void)close(c->fd);
    evbuffer_free(c->out);
    nfs_record_fini(&c->record);
    nfs_conn_stash_drop(c);
    hf_list_remove(&c->link);
    hf_list_remove(&c->dirty_link);
    hf_list_remove(&c->paused_link);
    s->out_bytes -= c->out_counted;
    s->nconns--;
    hf_metric_set(&s->m.connections, s->nconns);
    free(c);
    nfs_listen_resume(s);
}

void nfs_conn_touch(struct nfs_conn *c)
{
    if (!c->dirty) {
        c->dirty = true;
        hf_list_push_back(&c->svc->dirty, &c->dirty_link);
        hf_loop_defer(c->svc->loop, &c->svc->flush);
    }
}

void nfs_conn_send(struct nfs_conn *c, const void *data, size_t len)
{
    if (evbuffer_get_length(c->out) == 0)
        c->out_progress_ns = hf_loop_now_ns(c->svc->loop);
    if (evbuffer_add(c->out, data, len) != 0)
        c->broken = true;
    nfs_conn_touch(c);
}

void nfs_conn_drain(struct nfs_conn *c)
{
    if (!c->draining) {
        c->draining = true;
        nfs_conn_reading(c, false);
        nfs_record_fini(&c->record);
        nfs_conn_stash_drop(c);
    }
    nfs_conn_touch(c);
}

/* Sends what the socket takes; the rest waits until it takes more. */
static void send_output(struct nfs_conn *c)
{
    int n = 1;

    while (evbuffer_get_length(c->out) > 0 && n > 0) {
        n = evbuffer_write(c->out, c->fd);
        if (n > 0) {
            hf_metric_add(&c->svc->m.bytes_out, (uint64_t)n);
            c->out_progress_ns = hf_loop_now_ns(c->svc->loop);
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            c->broken = true;
            return;
        }
    }
    if (evbuffer_get_length(c->out) > 0 && !c->writing) {
        c->writing = event_add(c->wr, NULL) == 0;
        c->broken = !c->writing;
    }
}

void nfs_conn_flush_task(struct hf_task *t)
{
    struct hf_nfssvc *s = hf_container_of(t, struct hf_nfssvc, flush);
    struct hf_list *l;

    while ((l = hf_list_pop_front(&s->dirty)) != NULL) {
        struct nfs_conn *c = hf_container_of(l, struct nfs_conn, dirty_link);

        c->dirty = false;
        if (!c->broken && !c->writing)
            send_output(c);
        s->out_bytes = s->out_bytes - c->out_counted + evbuffer_get_length(c->out);
        c->out_counted = evbuffer_get_length(c->out);
        if (c->broken || (c->draining && c->inflight == 0 && evbuffer_get_length(c->out) == 0))
            nfs_conn_free(c);
    }
    nfs_conn_resume_all(s);
}

/* Half a call keeps memory that others may be waiting for: then it has less time to become whole.
 */
static bool half_call_too_old(const struct nfs_conn *c, uint64_t now, uint64_t stall)
{
    const struct hf_nfssvc *s = c->svc;

    if (c->paused || nfs_record_at_boundary(&c->record))
        return false;
    if (s->mem.in_use >= s->o.max_request_bytes && stall > PRESSED_STALL_NS)
        stall = PRESSED_STALL_NS;
    return now - c->record_since_ns > stall;
}

/* With every place taken, who says nothing makes room sooner: NFS clients connect again when they
 * have something to say. */
static uint64_t idle_limit(const struct hf_nfssvc *s)
{
    uint64_t idle = s->o.idle_timeout_ms * HF_NS_PER_MS;

    return s->nconns >= s->o.max_connections && idle > PRESSED_IDLE_NS ? PRESSED_IDLE_NS : idle;
}

/* Once a second. */
static void sweep_one(struct nfs_conn *c, uint64_t now)
{
    struct hf_nfssvc *s = c->svc;
    const uint64_t stall = s->o.stall_timeout_ms * HF_NS_PER_MS;
    const uint64_t idle = idle_limit(s);
    const bool output = evbuffer_get_length(c->out) > 0;

    if ((output && now - c->out_progress_ns > stall) || half_call_too_old(c, now, stall)) {
        hf_metric_add(&s->m.connections_stalled, 1);
        c->broken = true;
        nfs_conn_touch(c);
    } else if (!output && c->inflight == 0 && now - c->last_call_ns > idle &&
               now - c->out_progress_ns > idle) {
        hf_metric_add(&s->m.connections_idle, 1);
        nfs_conn_drain(c);
    }
}

void nfs_conn_sweep(struct hf_nfssvc *s)
{
    uint64_t now = hf_loop_now_ns(s->loop);

    HF_LIST_FOREACH(l, &s->conns)
    sweep_one(hf_container_of(l, struct nfs_conn, link), now);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening sockets. Accepting pauses at max_connections and when descriptors run out, and resumes
 * when a connection ends or a second later.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "svc_priv.h"

#define BACKLOG        1024
#define ACCEPTS_A_TURN 64

static void accept_pause(struct hf_nfssvc *s)
{
    for (unsigned i = 0; s->accepting && i < s->nlisteners; i++)
        (void)event_del(s->listeners[i].ev);
    s->accepting = false;
}

static void accept_failed(struct hf_nfssvc *s, int err)
{
    if (err == EAGAIN || err == EINTR || err == ECONNABORTED)
        return;
    hf_metric_add(&s->m.accept_errors, 1);
    if (hf_log_rate_ok(&s->accept_rate, 1))
        hf_log(s->log, HF_WARN, "nfs", "accept: %s; trying again in a second", strerror(err));
    accept_pause(s);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    struct nfs_listener *l = arg;
    struct hf_nfssvc *s = l->svc;

    (void)what;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof(peer);
        int c;

        if (s->nconns >= s->o.max_connections) {
            accept_pause(s);
            return;
        }
        c = accept4(fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (c < 0) {
            accept_failed(s, errno);
            return;
        }
        if (nfs_conn_new(s, c, (struct sockaddr *)&peer) != 0) {
            (void)close(c);
            accept_failed(s, ENOMEM);
            return;
        }
        hf_metric_add(&s->m.connections_accepted, 1);
    }
}

int nfs_listen_start(struct hf_nfssvc *s)
{
    if (s->accepting || s->stopping)
        return 0;
    for (unsigned i = 0; i < s->nlisteners; i++) {
        struct nfs_listener *l = &s->listeners[i];

        if (!l->ev)
            l->ev = event_new(hf_loop_base(s->loop), l->fd, EV_READ | EV_PERSIST, on_acceptable, l);
        if (!l->ev || event_add(l->ev, NULL) != 0)
            return HF_E_NOMEM;
    }
    s->accepting = true;
    return 0;
}

void nfs_listen_resume(struct hf_nfssvc *s)
{
    if (!s->accepting && s->ready && s->nconns < s->o.max_connections)
        (void)nfs_listen_start(s);
}

void nfs_listen_close(struct hf_nfssvc *s)
{
    for (unsigned i = 0; i < s->nlisteners; i++) {
        struct nfs_listener *l = &s->listeners[i];

        if (l->ev)
            event_free(l->ev);
        l->ev = NULL;
        if (l->fd >= 0)
            (void)close(l->fd);
        l->fd = -1;
    }
    s->accepting = false;
}

/* ---- opening ---- */

/* "host:port" or "[host]:port" into its parts. */
static bool split(const char *item, size_t len, char *host, size_t host_bytes, char *port,
                  size_t port_bytes)
{
    const char *colon = memrchr(item, ':', len);
    size_t hl, pl;

    if (!colon)
        return false;
    hl = (size_t)(colon - item);
    pl = len - hl - 1;
    if (hl >= 2 && item[0] == '[' && item[hl - 1] == ']') {
        item++;
        hl -= 2;
    } else if (memchr(item, ':', hl)) {
        return false; /* an IPv6 address without brackets */
    }
    if (hl == 0 || pl == 0 || hl >= host_bytes || pl >= port_bytes)
        return false;
    memcpy(host, item, hl);
    host[hl] = '\0';
    memcpy(port, colon + 1, pl);
    port[pl] = '\0';
    /* getaddrinfo would take 99999 modulo 65536. */
    return strspn(port, "0123456789") == pl && strtoul(port, NULL, 10) <= 65535;
}

static int name_listener(struct nfs_listener *l)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof(a);
    char host[64], port[8];

    if (getsockname(l->fd, (struct sockaddr *)&a, &len) != 0)
        return hf_err_from_errno(errno);
    if (getnameinfo((struct sockaddr *)&a, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return HF_E_INTERNAL;
    (void)snprintf(l->name, sizeof(l->name), a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                   port);
    l->port = (int)strtoul(port, NULL, 10);
    return 0;
}

static int open_socket(const struct addrinfo *ai)
{
    const int one = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int err;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* [::] and 0.0.0.0 are two listeners, so that a peer has one kind of address only. */
    if (ai->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    err = errno;
    (void)close(fd);
    return -err;
}

static int open_one(struct hf_nfssvc *s, const char *item, size_t len, char *err, size_t err_bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct nfs_listener *l = &s->listeners[s->nlisteners];
    struct addrinfo *ai;
    char host[256], port[6];
    int rc;

    if (s->nlisteners == NFS_LISTENERS ||
        !split(item, len, host, sizeof(host), port, sizeof(port))) {
        (void)snprintf(err, err_bytes,
                       "nfs.listen: \"%.*s\" is not address:port (at most %u of them)", (int)len,
                       item, NFS_LISTENERS);
        return HF_E_CONF;
    }
    rc = getaddrinfo(host, port, &hints, &ai);
    if (rc != 0) {
        (void)snprintf(err, err_bytes, "nfs.listen: %.*s: %s", (int)len, item, gai_strerror(rc));
        return HF_E_CONF;
    }
    l->fd = open_socket(ai);
    freeaddrinfo(ai);
    if (l->fd < 0) {
        rc = -l->fd;
        l->fd = -1;
        (void)snprintf(err, err_bytes, "nfs.listen: %.*s: %s", (int)len, item, strerror(rc));
        return rc == EADDRINUSE ? HF_E_ADDRINUSE : hf_err_from_errno(rc);
    }
    l->svc = s;
    s->nlisteners++;
    return name_listener(l);
}

int nfs_listen_open(struct hf_nfssvc *s, const char *spec, char *err, size_t err_bytes)
{
    int rc = 0;

    while (rc == 0) {
        size_t len = strcspn(spec, ",");

        while (len && *spec == ' ') {
            spec++;
            len--;
        }
        rc = open_one(s, spec, len, err, err_bytes);
        if (spec[len] == '\0')
            break;
        spec += len + 1;
    }
    return rc;
}

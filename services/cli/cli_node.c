/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "holdfast/rpc.h"
#include "holdfast/rt.h"

#define STATUS_SEC 5

struct cli_node {
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_rpc_client *admin;
    struct hf_rpc_client *meta; /* connected at first use */
    Hf__NodeStatusRep *status;
};

/* A deep copy: the message lives only until the closure returns. */
static ProtobufCMessage *copy_message(const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *buf = malloc(len + 1);
    ProtobufCMessage *copy = NULL;

    if (buf != NULL) {
        protobuf_c_message_pack(m, buf);
        copy = protobuf_c_message_unpack(m->descriptor, NULL, len, buf);
        free(buf);
    }
    return copy;
}

static void keep_reply(const ProtobufCMessage *m, void *data)
{
    struct hf_rpc_call *call = data;
    ProtobufCMessage **ret = call->arg;

    if (m != NULL) {
        *ret = copy_message(m);
    }
}

static int call_method(struct cli_node *n, struct hf_rpc_client *client,
                       const ProtobufCServiceDescriptor *d, const char *method,
                       const ProtobufCMessage *req, unsigned timeout_s, ProtobufCMessage **ret)
{
    const ProtobufCMethodDescriptor *m =
        protobuf_c_service_descriptor_get_method_by_name(d, method);
    ProtobufCService *service = hf_rpc_client_service(client, d);
    ProtobufCMessage *reply = NULL;
    struct hf_rpc_call call = {.timeout_ns = timeout_s * HF_NS_PER_SEC, .arg = &reply};
    int rc;

    if (m == NULL || service == NULL) {
        return HF_E_NOMEM;
    }
    service->invoke(service, (unsigned)(m - d->methods), req, keep_reply, &call);
    rc = hf_rpc_wait(n->loop, &call);
    if (rc == 0 && reply == NULL) {
        rc = HF_E_PROTO;
    }
    if (rc != 0) {
        if (reply != NULL) {
            protobuf_c_message_free_unpacked(reply, NULL);
        }
        return rc;
    }
    *ret = reply;
    return 0;
}

/* A running node holds the lock of its directory. Asked first: without a node the rpc client would
 * wait and try again. (Connecting to the socket to find out, and closing at once, is no harmless
 * question: nng's listener gives up when a peer is gone before the handshake.) */
static bool is_running(const char *dir)
{
    char path[4200];
    bool running;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/lock", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES; /* then connecting tells */
    }
    running = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return running;
}

static int connect_admin(struct cli_node *n, const char *path)
{
    Hf__NodeStatusReq req = HF__NODE_STATUS_REQ__INIT;
    ProtobufCMessage *rep = NULL;
    char url[160];
    int rc;

    (void)snprintf(url, sizeof(url), "ipc://%s", path);
    rc = hf_env_real_new(&n->env);
    if (rc == 0) {
        rc = hf_loop_new(n->env, "cli", &n->loop);
    }
    if (rc == 0) {
        rc = hf_rpc_client_new(n->loop, url, NULL, &n->admin);
    }
    if (rc == 0) {
        rc = call_method(n, n->admin, &hf__node__descriptor, "Status", &req.base, STATUS_SEC, &rep);
    }
    if (rc == 0) {
        n->status = (Hf__NodeStatusRep *)rep;
    }
    return rc;
}

int cli_node_open(const struct cli *cli, struct cli_node **ret)
{
    struct cli_node *n;
    char *dir = realpath(cli->dir, NULL);
    char path[128];
    bool running;
    int rc, len;

    if (dir == NULL) {
        return cli_fail(CLI_UNREACHABLE, "no node in %s: %s", cli->dir, strerror(errno));
    }
    len = snprintf(path, sizeof(path), "%s/run/admin.sock", dir);
    running = is_running(dir);
    free(dir);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return cli_fail(CLI_UNREACHABLE, "the path of %s is too long for a socket", cli->dir);
    }
    if (!running) {
        return cli_fail(CLI_UNREACHABLE, "no node runs in %s", cli->dir);
    }
    if (access(path, W_OK) != 0) {
        return cli_fail(CLI_UNREACHABLE, "%s: %s", path, strerror(errno));
    }
    n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return cli_fail(CLI_PROBLEM, "out of memory");
    }
    rc = connect_admin(n, path);
    if (rc != 0) {
        cli_node_close(n);
        return cli_fail(CLI_UNREACHABLE, "the node in %s does not answer: %s", cli->dir,
                        hf_err_text(rc));
    }
    *ret = n;
    return CLI_OK;
}

void cli_node_close(struct cli_node *n)
{
    if (n->meta != NULL) {
        hf_rpc_client_free(n->meta);
    }
    if (n->admin != NULL) {
        hf_rpc_client_free(n->admin);
    }
    if (n->loop != NULL) {
        hf_loop_free(n->loop);
    }
    if (n->env != NULL) {
        hf_env_free(n->env);
    }
    if (n->status != NULL) {
        hf__node_status_rep__free_unpacked(n->status, NULL);
    }
    free(n);
}

const Hf__NodeStatusRep *cli_node_status(const struct cli_node *n)
{
    return n->status;
}

int cli_node_meta_call(struct cli_node *n, const ProtobufCServiceDescriptor *service,
                       const char *method, const ProtobufCMessage *req, unsigned timeout_s,
                       ProtobufCMessage **ret)
{
    if (n->meta == NULL) {
        int rc = hf_rpc_client_new(n->loop, n->status->meta_url, NULL, &n->meta);

        if (rc != 0) {
            return rc;
        }
    }
    return call_method(n, n->meta, service, method, req, timeout_s, ret);
}

int cli_node_map(struct cli_node *n, Hf__MapGetRep **ret)
{
    Hf__MapGetReq req = HF__MAP_GET_REQ__INIT;
    ProtobufCMessage *rep = NULL;
    int rc = cli_node_meta_call(n, &hf__meta__descriptor, "MapGet", &req.base, STATUS_SEC, &rep);

    if (rc != 0) {
        return cli_fail(CLI_UNREACHABLE, "the metadata service does not answer: %s",
                        hf_err_text(rc));
    }
    *ret = (Hf__MapGetRep *)rep;
    return CLI_OK;
}

int cli_node_segments(struct cli_node *n, void (*fn)(void *arg, const Hf__SegStat *s), void *arg)
{
    Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;

    for (size_t i = 0; i < n->status->n_segment_urls; i++) {
        struct hf_rpc_client *client = NULL;
        ProtobufCMessage *msg = NULL;
        const Hf__SegStatRep *rep;
        int rc = hf_rpc_client_new(n->loop, n->status->segment_urls[i], NULL, &client);

        if (rc == 0) {
            rc = call_method(n, client, &hf__segment__descriptor, "Stat", &req.base, STATUS_SEC,
                             &msg);
            hf_rpc_client_free(client);
        }
        if (rc != 0) {
            return cli_fail(CLI_UNREACHABLE, "the segment server at %s does not answer: %s",
                            n->status->segment_urls[i], hf_err_text(rc));
        }
        rep = (const Hf__SegStatRep *)msg;
        for (size_t k = 0; k < rep->n_segments; k++) {
            fn(arg, rep->segments[k]);
        }
        protobuf_c_message_free_unpacked(msg, NULL);
    }
    return CLI_OK;
}

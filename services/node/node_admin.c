/* SPDX-License-Identifier: Apache-2.0
 *
 * The admin socket DIR/run/admin.sock: status for the CLI, and stop. The directory is 0700, so only
 * its owner and root reach it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "node_priv.h"

#define COUNTERS_MAX 256
#define LIMITS_MAX   16

/* A role's counters while a reply is made; in the request's arena. */
struct role_list {
    Hf__NodeRole role;
    Hf__NodeCounter *ptrs[COUNTERS_MAX];
    Hf__NodeLimit *limits[LIMITS_MAX];
    struct hf_arena *arena;
};

static void add_counter(void *arg, const char *name, uint64_t value)
{
    struct role_list *l = arg;
    Hf__NodeCounter *c = hf_arena_alloc(l->arena, sizeof(*c));

    if (!c || l->role.n_counters == COUNTERS_MAX)
        return;
    hf__node_counter__init(c);
    /* protobuf-c's strings are not const; the message is only packed */
    c->name = (char *)(uintptr_t)name;
    c->value = value;
    l->ptrs[l->role.n_counters++] = c;
}

static void add_limit(void *arg, const char *name, uint64_t used, uint64_t max)
{
    struct role_list *l = arg;
    Hf__NodeLimit *m = hf_arena_alloc(l->arena, sizeof(*m));

    if (!m || l->role.n_limits == LIMITS_MAX)
        return;
    hf__node_limit__init(m);
    m->name = (char *)(uintptr_t)name; /* as above */
    m->used = used;
    m->max = max;
    l->limits[l->role.n_limits++] = m;
}

static Hf__NodeRole *add_role(struct hf_arena *a, char *name, char *state, struct role_list **ret)
{
    struct role_list *l = hf_arena_zalloc(a, sizeof(*l));

    if (!l)
        return NULL;
    hf__node_role__init(&l->role);
    l->role.name = name;
    l->role.state = state;
    l->role.counters = l->ptrs;
    l->role.limits = l->limits;
    l->arena = a;
    *ret = l;
    return &l->role;
}

static size_t fill_roles(struct hf_node *n, struct hf_arena *a, Hf__NodeRole **roles)
{
    static char meta[] = "meta", segment[] = "segment", nfs[] = "nfs", fuse[] = "fuse",
                serving[] = "serving", starting[] = "starting", ended[] = "unmounted";
    struct role_list *l;
    size_t count = 0;

    if (n->meta && (roles[count] = add_role(a, meta, serving, &l))) {
        hf_metasvc_counters(n->meta, add_counter, l);
        hf_metasvc_limits(n->meta, add_limit, l);
        count++;
    }
    if (n->segment && (roles[count] = add_role(a, segment, serving, &l))) {
        hf_segsvc_counters(n->segment, add_counter, l);
        hf_segsvc_limits(n->segment, add_limit, l);
        count++;
    }
    if (n->nfs &&
        (roles[count] = add_role(a, nfs, hf_nfssvc_ready(n->nfs) ? serving : starting, &l))) {
        hf_nfssvc_counters(n->nfs, add_counter, l);
        hf_nfssvc_limits(n->nfs, add_limit, l);
        count++;
    }
    if (n->fuse &&
        (roles[count] = add_role(a, fuse, hf_fusesvc_serving(n->fuse) ? serving : ended, &l))) {
        hf_fusesvc_counters(n->fuse, add_counter, l);
        hf_fusesvc_limits(n->fuse, add_limit, l);
        count++;
    }
    return count;
}

static void on_status(Hf__Node_Service *impl, const Hf__NodeStatusReq *in,
                      Hf__NodeStatusRep_Closure closure, void *data)
{
    static char version[] = HF_VERSION, none[] = "";
    struct hf_node *n = hf_container_of(impl, struct hf_node, admin);
    struct hf_rpc_req *req = data;
    Hf__NodeStatusRep rep = HF__NODE_STATUS_REP__INIT;
    Hf__NodeRole *roles[4];
    char *urls[1] = {n->plan.segment_ipc};
    char *meta_url = hf_arena_strdup(req->arena, n->plan.meta_ipc);
    char *at = meta_url ? strstr(meta_url, "%u") : NULL;

    (void)in;
    if (!at) {
        hf_rpc_reply(req, HF_E_NOMEM, NULL, NULL, 0);
        return;
    }
    *at = '0'; /* thread 0 */
    memmove(at + 1, at + 2, strlen(at + 2) + 1);
    rep.version = version;
    rep.fs_name = n->keys.node_fs;
    rep.uptime_ms = (hf_env_mono_ns(n->env) - n->start_ns) / HF_NS_PER_MS;
    rep.pid = (uint32_t)getpid();
    rep.dir = n->plan.dir;
    rep.nfs_listen = n->nfs ? hf_arena_strdup(req->arena, hf_nfssvc_listen(n->nfs)) : none;
    if (!rep.nfs_listen)
        rep.nfs_listen = none;
    rep.meta_url = meta_url;
    rep.segment_urls = urls;
    rep.n_segment_urls = 1;
    rep.roles = roles;
    rep.n_roles = fill_roles(n, req->arena, roles);
    closure(&rep, data);
}

static void on_stop(Hf__Node_Service *impl, const Hf__NodeStopReq *in,
                    Hf__NodeStopRep_Closure closure, void *data)
{
    Hf__NodeStopRep rep = HF__NODE_STOP_REP__INIT;

    (void)impl;
    (void)in;
    closure(&rep, data);
    (void)kill(getpid(), SIGTERM); /* the one way to stop: hf_node_wait sees it */
}

int node_admin_start(struct hf_node *n, char *err, size_t err_bytes)
{
    const struct hf_rpc_server_opts opts = {0};
    int rc = hf_loop_new(n->env, "admin", &n->admin_loop);

    n->admin = (Hf__Node_Service){
        .base = {.descriptor = &hf__node__descriptor, .invoke = protobuf_c_service_invoke_internal},
        .status = on_status,
        .stop = on_stop,
    };
    if (rc == 0)
        rc = hf_rpc_server_new(n->admin_loop, &opts, &n->admin_server);
    if (rc == 0)
        rc = hf_rpc_server_add(n->admin_server, &n->admin.base);
    if (rc == 0)
        rc = hf_rpc_server_listen(n->admin_server, n->plan.admin_ipc);
    if (rc == 0)
        rc = hf_loop_start(n->admin_loop);
    if (rc)
        (void)snprintf(err, err_bytes, "cannot listen on %s: %s", n->plan.admin_ipc,
                       hf_err_text(rc));
    return rc;
}

void node_admin_stop(struct hf_node *n)
{
    if (!n->admin_loop)
        return;
    hf_loop_join(n->admin_loop);
    if (n->admin_server)
        hf_rpc_server_free(n->admin_server);
    hf_loop_free(n->admin_loop);
    n->admin_loop = NULL;
}

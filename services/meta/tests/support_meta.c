/* SPDX-License-Identifier: Apache-2.0 */
#include "support_meta.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

static const char *listen_urls[1];

static void on_fatal(void *arg, const char *what)
{
    struct fixture *f = arg;

    (void)what;
    __atomic_fetch_add(&f->fatal, 1, __ATOMIC_SEQ_CST);
}

void fixture_init_in(struct fixture *f, const char *dir, const char *faults)
{
    static char name[] = "main";
    static uint8_t key[16] = "0123456789abcde";
    const char *bad;

    memset(f, 0, sizeof(*f));
    if (dir) {
        (void)snprintf(f->dir, sizeof(f->dir), "%s", dir);
    } else {
        (void)snprintf(f->dir, sizeof(f->dir), "/tmp/hf-meta-XXXXXX");
        HF_ASSERT(mkdtemp(f->dir));
    }
    (void)snprintf(f->url, sizeof(f->url), "inproc://%s/meta", f->dir);
    HF_ASSERT(hf_env_real_new(&f->env) == 0);
    HF_ASSERT(hf_faults_new(faults, &f->faults, &bad) == 0);
    hf__map_get_rep__init(&f->map);
    f->map.version = 1;
    f->map.fs_name = name;
    f->map.fsid = 77;
    f->map.handle_key.data = key;
    f->map.handle_key.len = sizeof(key);
    f->map.shard_count = 4;
    f->map.inline_max = 8192;
    f->map.root_ino = 2;
    f->map.root_gen = 1;
    listen_urls[0] = f->url;
    f->opts = (struct hf_metasvc_opts){
        .env = f->env,
        .faults = f->faults,
        .dir = f->dir,
        .listen = listen_urls,
        .nlisten = 1,
        .map = &f->map,
        .wal_file_bytes = 4u << 20,
        .fatal = on_fatal,
        .arg = f,
    };
}

void fixture_init(struct fixture *f, const char *faults)
{
    fixture_init_in(f, NULL, faults);
}

int fixture_start(struct fixture *f)
{
    int rc = hf_metasvc_new(&f->opts, &f->svc, f->err, sizeof(f->err));

    if (rc)
        return rc;
    HF_ASSERT(hf_loop_new(f->env, "test", &f->loop) == 0);
    HF_ASSERT(hf_rpc_client_new(f->loop, f->url, NULL, &f->client) == 0);
    return 0;
}

void fixture_stop(struct fixture *f)
{
    if (f->client)
        hf_rpc_client_free(f->client);
    if (f->loop)
        hf_loop_free(f->loop);
    hf_metasvc_free(f->svc);
    f->client = NULL;
    f->loop = NULL;
    f->svc = NULL;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_fini(struct fixture *f)
{
    fixture_stop(f);
    hf_faults_free(f->faults);
    hf_env_free(f->env);
    (void)nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static ProtobufCService *meta(struct fixture *f)
{
    return hf_rpc_client_service(f->client, &hf__meta__descriptor);
}

static void note_attr(struct result *r, const Hf__Attr *a)
{
    if (!a)
        return;
    r->ino = a->ino;
    r->gen = a->gen;
    r->size = a->size;
}

static void on_create(const Hf__CreateRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct result *r = call->arg;

    if (rep) {
        note_attr(r, rep->obj);
        r->created = rep->created;
    }
}

static void create_req(Hf__CreateReq *req, Hf__Cred *cred, Hf__SetAttrs *set, const char *name)
{
    hf__create_req__init(req);
    hf__cred__init(cred);
    hf__set_attrs__init(set);
    req->cred = cred;
    req->set = set;
    req->dir = 2;
    req->gen = 1;
    req->name.data = (uint8_t *)(uintptr_t)name;
    req->name.len = strlen(name);
    req->how = HF__CREATE_HOW__CREATE_GUARDED;
}

static struct result create(struct fixture *f, const char *name, uint64_t session, uint32_t slot,
                            uint64_t sequence, bool open)
{
    struct result r = {0};
    struct hf_rpc_call call = {.arg = &r, .session = session, .slot = slot, .sequence = sequence};
    Hf__CreateReq req;
    Hf__Cred cred;
    Hf__SetAttrs set;

    create_req(&req, &cred, &set, name);
    req.open = open;
    hf__meta__create(meta(f), &req, on_create, &call);
    r.status = hf_rpc_wait(f->loop, &call);
    return r;
}

struct result do_create(struct fixture *f, const char *name, uint64_t session, uint32_t slot,
                        uint64_t sequence)
{
    return create(f, name, session, slot, sequence, false);
}

struct result do_create_open(struct fixture *f, const char *name, uint64_t session, uint32_t slot,
                             uint64_t sequence)
{
    return create(f, name, session, slot, sequence, true);
}

static void on_close(const Hf__CloseRep *rep, void *data)
{
    (void)rep;
    (void)data;
}

int do_close(struct fixture *f, uint64_t ino, uint64_t session, uint32_t slot, uint64_t sequence)
{
    struct hf_rpc_call call = {.session = session, .slot = slot, .sequence = sequence};
    Hf__CloseReq req = HF__CLOSE_REQ__INIT;

    req.inos = &ino;
    req.n_inos = 1;
    hf__meta__close(meta(f), &req, on_close, &call);
    return hf_rpc_wait(f->loop, &call);
}

static void on_lookup(const Hf__LookupRep *rep, void *data)
{
    struct hf_rpc_call *call = data;

    if (rep)
        note_attr(call->arg, rep->obj);
}

struct result do_lookup(struct fixture *f, const char *name)
{
    struct result r = {0};
    struct hf_rpc_call call = {.arg = &r};
    Hf__LookupReq req = HF__LOOKUP_REQ__INIT;
    Hf__Cred cred = HF__CRED__INIT;

    req.cred = &cred;
    req.dir = 2;
    req.gen = 1;
    req.name.data = (uint8_t *)(uintptr_t)name;
    req.name.len = strlen(name);
    hf__meta__lookup(meta(f), &req, on_lookup, &call);
    r.status = hf_rpc_wait(f->loop, &call);
    return r;
}

static void on_remove(const Hf__RemoveRep *rep, void *data)
{
    (void)rep;
    (void)data;
}

struct result do_remove(struct fixture *f, const char *name)
{
    struct result r = {0};
    struct hf_rpc_call call = {.arg = &r};
    Hf__RemoveReq req = HF__REMOVE_REQ__INIT;
    Hf__Cred cred = HF__CRED__INIT;

    req.cred = &cred;
    req.dir = 2;
    req.gen = 1;
    req.name.data = (uint8_t *)(uintptr_t)name;
    req.name.len = strlen(name);
    hf__meta__remove(meta(f), &req, on_remove, &call);
    r.status = hf_rpc_wait(f->loop, &call);
    return r;
}

static void on_write(const Hf__WriteRep *rep, void *data)
{
    struct hf_rpc_call *call = data;

    if (rep && rep->obj)
        note_attr(call->arg, rep->obj->after);
}

struct result do_write(struct fixture *f, uint64_t ino, uint32_t gen, const void *data,
                       uint32_t len, uint32_t stable)
{
    struct result r = {0};
    struct hf_rpc_call call = {.arg = &r, .bulk = {hf_slice(data, len)}, .bulk_n = 1};
    Hf__WriteReq req = HF__WRITE_REQ__INIT;
    Hf__Cred cred = HF__CRED__INIT;

    req.cred = &cred;
    req.ino = ino;
    req.gen = gen;
    req.len = len;
    req.stable = stable;
    hf__meta__write(meta(f), &req, on_write, &call);
    r.status = hf_rpc_wait(f->loop, &call);
    return r;
}

static void on_session(const Hf__SessionOpenRep *rep, void *data)
{
    (void)rep;
    (void)data;
}

int do_session_open(struct fixture *f, uint64_t session)
{
    struct hf_rpc_call call = {0};
    Hf__SessionOpenReq req = HF__SESSION_OPEN_REQ__INIT;

    req.session = session;
    req.slots = 8;
    req.opens = true;
    hf__meta__session_open(meta(f), &req, on_session, &call);
    return hf_rpc_wait(f->loop, &call);
}

static void on_session_close(const Hf__SessionCloseRep *rep, void *data)
{
    (void)rep;
    (void)data;
}

int do_session_close(struct fixture *f, uint64_t session)
{
    struct hf_rpc_call call = {0};
    Hf__SessionCloseReq req = HF__SESSION_CLOSE_REQ__INIT;

    req.session = session;
    hf__meta__session_close(meta(f), &req, on_session_close, &call);
    return hf_rpc_wait(f->loop, &call);
}

/* ---- many creates in flight ---- */

struct many {
    struct fixture *f;
    const char *prefix;
    unsigned next, n, ok;
    void (*acked)(void *arg, unsigned i);
    void *arg;
};

struct lane {
    struct hf_rpc_call call;
    struct many *m;
    unsigned i;
    bool idle;
};

static void lane_go(struct lane *l);

static void on_lane(const Hf__CreateRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct lane *l = call->arg;

    (void)rep;
    if (call->status == 0) {
        l->m->ok++;
        if (l->m->acked)
            l->m->acked(l->m->arg, l->i);
    }
    l->idle = true;
    if (call->status == 0 || call->status == HF_E_NOSPC)
        lane_go(l);
}

static void lane_go(struct lane *l)
{
    Hf__CreateReq req;
    Hf__Cred cred;
    Hf__SetAttrs set;
    char name[64];

    if (l->m->next == l->m->n)
        return;
    l->i = l->m->next++;
    l->idle = false;
    (void)snprintf(name, sizeof(name), "%s%u", l->m->prefix, l->i);
    create_req(&req, &cred, &set, name);
    l->call = (struct hf_rpc_call){.arg = l, .timeout_ns = 5 * HF_NS_PER_SEC};
    hf__meta__create(meta(l->m->f), &req, on_lane, &l->call);
}

unsigned create_many(struct fixture *f, const char *prefix, unsigned n, unsigned depth,
                     void (*acked)(void *arg, unsigned i), void *arg)
{
    struct many m = {.f = f, .prefix = prefix, .n = n, .acked = acked, .arg = arg};
    struct lane *lanes = calloc(depth, sizeof(*lanes));

    HF_ASSERT(lanes);
    for (unsigned i = 0; i < depth; i++) {
        lanes[i].m = &m;
        lanes[i].idle = true;
        lane_go(&lanes[i]);
    }
    for (unsigned i = 0; i < depth; i++)
        while (!lanes[i].idle)
            (void)hf_rpc_wait(f->loop, &lanes[i].call);
    free(lanes);
    return m.ok;
}

struct counter_find {
    const char *name;
    uint64_t value;
};

static void find_counter(void *arg, const char *name, uint64_t value)
{
    struct counter_find *c = arg;

    if (strcmp(name, c->name) == 0)
        c->value = value;
}

uint64_t counter(struct fixture *f, const char *name)
{
    struct counter_find c = {.name = name};

    hf_metasvc_counters(f->svc, find_counter, &c);
    return c.value;
}

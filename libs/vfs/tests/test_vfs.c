/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports, handles, credentials and refusals, against a shard that remembers what it was asked.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "vfs_priv.h"

#define ROOT 2u
#define SUB  77u /* the directory /sub */

struct world {
    struct hf_env *env;
    struct hf_loop *loop, *sloop;
    struct hf_rpc_server *server;
    Hf__Meta_Service impl;
    struct hf_client *client;
    struct hf_vfs *vfs;
    uint64_t version;
    unsigned nexports;
    Hf__ExportEntry exports[8];
    char *clients[8][4];
    bool hide_sub;
    /* the last request */
    unsigned requests;
    uint32_t uid, gid, groups[HF_VFS_GROUPS_MAX];
    size_t ngroups;
    uint32_t access_want;
    char name[64];
};

static void note(struct world *w, const Hf__Cred *c)
{
    w->requests++;
    if (!c)
        return;
    w->uid = c->uid;
    w->gid = c->gid;
    w->ngroups = c->n_groups;
    for (size_t i = 0; i < c->n_groups; i++)
        w->groups[i] = c->groups[i];
}

static struct world *world_of(Hf__Meta_Service *s)
{
    return hf_container_of(s, struct world, impl);
}

static void m_map_get(Hf__Meta_Service *s, const Hf__MapGetReq *q, Hf__MapGetRep_Closure closure,
                      void *data)
{
    struct world *w = world_of(s);
    Hf__MapGetRep rep = HF__MAP_GET_REP__INIT;
    Hf__ShardEntry shard = HF__SHARD_ENTRY__INIT, *shards[1] = {&shard};
    Hf__ExportEntry *exports[8];
    static uint8_t key[16] = "0123456789abcdef";
    static char url[] = "sim://meta";

    (void)closure;
    rep.version = w->version;
    if (q->known_version == w->version) {
        hf_rpc_reply(data, 0, &rep.base, NULL, 0);
        return;
    }
    shard.url = url;
    rep.shards = shards;
    rep.n_shards = rep.shard_count = 1;
    rep.fsid = 4711;
    rep.root_ino = ROOT;
    rep.root_gen = 1;
    rep.handle_key = (ProtobufCBinaryData){sizeof(key), key};
    for (unsigned i = 0; i < w->nexports; i++)
        exports[i] = &w->exports[i];
    rep.exports = exports;
    rep.n_exports = w->nexports;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_session_open(Hf__Meta_Service *s, const Hf__SessionOpenReq *q,
                           Hf__SessionOpenRep_Closure closure, void *data)
{
    Hf__SessionOpenRep rep = HF__SESSION_OPEN_REP__INIT;

    (void)s;
    (void)q;
    (void)closure;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_lookup(Hf__Meta_Service *s, const Hf__LookupReq *q, Hf__LookupRep_Closure closure,
                     void *data)
{
    struct world *w = world_of(s);
    Hf__LookupRep rep = HF__LOOKUP_REP__INIT;
    Hf__Attr a = HF__ATTR__INIT;

    (void)closure;
    note(w, q->cred);
    snprintf(w->name, sizeof(w->name), "%.*s", (int)q->name.len, (const char *)q->name.data);
    if (q->dir != ROOT || strcmp(w->name, "sub") != 0 || w->hide_sub) {
        hf_rpc_reply(data, HF_E_NOENT, NULL, NULL, 0);
        return;
    }
    a.type = HF__FILE_TYPE__FT_DIR;
    a.ino = SUB;
    a.gen = 9;
    rep.obj = &a;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_getattr(Hf__Meta_Service *s, const Hf__GetattrReq *q, Hf__GetattrRep_Closure closure,
                      void *data)
{
    Hf__GetattrRep rep = HF__GETATTR_REP__INIT;
    Hf__Attr a = HF__ATTR__INIT;

    (void)closure;
    note(world_of(s), NULL);
    a.ino = q->ino;
    a.gen = q->gen;
    rep.obj = &a;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_access(Hf__Meta_Service *s, const Hf__AccessReq *q, Hf__AccessRep_Closure closure,
                     void *data)
{
    struct world *w = world_of(s);
    Hf__AccessRep rep = HF__ACCESS_REP__INIT;

    (void)closure;
    note(w, q->cred);
    w->access_want = q->want;
    rep.granted = q->want;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_create(Hf__Meta_Service *s, const Hf__CreateReq *q, Hf__CreateRep_Closure closure,
                     void *data)
{
    Hf__CreateRep rep = HF__CREATE_REP__INIT;

    (void)closure;
    note(world_of(s), q->cred);
    rep.created = true;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void m_readdir(Hf__Meta_Service *s, const Hf__ReaddirReq *q, Hf__ReaddirRep_Closure closure,
                      void *data)
{
    Hf__ReaddirRep rep = HF__READDIR_REP__INIT;
    Hf__Dirent e[2] = {HF__DIRENT__INIT, HF__DIRENT__INIT}, *entries[2] = {&e[0], &e[1]};
    Hf__Attr above = HF__ATTR__INIT;
    static uint8_t dots[] = "..";

    (void)closure;
    note(world_of(s), q->cred);
    e[0].ino = q->dir;
    e[0].name = (ProtobufCBinaryData){1, dots};
    e[1].ino = above.ino = ROOT;
    e[1].name = (ProtobufCBinaryData){2, dots};
    e[1].attr = &above;
    rep.entries = entries;
    rep.n_entries = 2;
    hf_rpc_reply(data, 0, &rep.base, NULL, 0);
}

static void add_export(struct world *w, uint32_t id, const char *path, const char *dir,
                       const char *c0, const char *c1)
{
    Hf__ExportEntry *e = &w->exports[w->nexports];
    char **clients = w->clients[w->nexports++];

    hf__export_entry__init(e);
    e->id = id;
    e->path = strdup(path);
    e->dir = strdup(dir);
    e->clients = clients;
    e->n_clients = 0;
    if (c0)
        clients[e->n_clients++] = strdup(c0);
    if (c1)
        clients[e->n_clients++] = strdup(c1);
    e->anon_uid = 65534;
    e->anon_gid = 65533;
}

static void on_map(void *arg, const Hf__MapGetRep *map)
{
    struct world *w = arg;

    if (w->vfs)
        hf_vfs_map_changed(w->vfs, map);
}

static void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->version = 1;
    w->impl = (Hf__Meta_Service){
        .base = HF__META__BASE_INIT,
        .map_get = m_map_get,
        .session_open = m_session_open,
        .lookup = m_lookup,
        .getattr = m_getattr,
        .access = m_access,
        .create = m_create,
        .readdir = m_readdir,
    };
    cr_assert_eq(hf_env_sim_new(1, 0, &w->env), 0);
    cr_assert_eq(hf_loop_new(w->env, "vfs", &w->loop), 0);
    cr_assert_eq(hf_loop_new(w->env, "shard", &w->sloop), 0);
    cr_assert_eq(hf_rpc_server_new(w->sloop, &(struct hf_rpc_server_opts){0}, &w->server), 0);
    cr_assert_eq(hf_rpc_server_add(w->server, &w->impl.base), 0);
    cr_assert_eq(hf_rpc_server_listen(w->server, "sim://meta"), 0);
}

static void run(struct world *w, uint64_t ms)
{
    hf_sim_run(w->env, hf_env_mono_ns(w->env) + ms * HF_NS_PER_MS);
}

static void world_start(struct world *w)
{
    const struct hf_client_opts o = {.loop = w->loop,
                                     .meta_url = "sim://meta",
                                     .slots = 4,
                                     .map_poll_ms = 100,
                                     .on_map = on_map,
                                     .arg = w};

    cr_assert_eq(hf_client_new(&o, &w->client), 0);
    cr_assert_eq(hf_vfs_new(w->loop, w->client, &w->vfs), 0);
    cr_assert_not(hf_vfs_ready(w->vfs));
    run(w, 1000);
    cr_assert(hf_vfs_ready(w->vfs));
}

static void world_fini(struct world *w)
{
    hf_client_free(w->client);
    hf_vfs_free(w->vfs);
    hf_rpc_server_stop(w->server);
    hf_rpc_server_free(w->server);
    hf_loop_free(w->loop);
    hf_loop_free(w->sloop);
    hf_env_free(w->env);
    for (unsigned i = 0; i < w->nexports; i++) {
        free(w->exports[i].path);
        free(w->exports[i].dir);
        for (size_t k = 0; k < w->exports[i].n_clients; k++)
            free(w->clients[i][k]);
    }
}

/* "10.0.0.1" or "fe80::1"; NULL: an AF_UNIX peer. */
static const struct sockaddr *peer(const char *text)
{
    static struct sockaddr_storage ss;
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    memset(&ss, 0, sizeof(ss));
    ss.ss_family = AF_UNIX;
    if (text && inet_pton(AF_INET, text, &in.sin_addr) == 1)
        memcpy(&ss, &in, sizeof(in));
    else if (text && inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        memcpy(&ss, &in6, sizeof(in6));
    return (const struct sockaddr *)&ss;
}

static struct hf_vfs_obj mount_ok(struct world *w, const char *path)
{
    struct hf_vfs_obj o;

    cr_assert_eq(hf_vfs_mount(w->vfs, hf_slice_str(path), peer("10.1.2.3"), &o), 0, "%s", path);
    return o;
}

static unsigned ndone;
static int last_status;
static uint64_t last_ino, last_dir;

static void on_done(struct hf_vfs_req *r)
{
    ndone++;
    last_status = r->status;
}

static void wait_done(struct world *w)
{
    unsigned before = ndone;

    for (unsigned i = 0; i < 100000 && ndone == before; i++)
        cr_assert(hf_sim_step(w->env));
    cr_assert_eq(ndone, before + 1);
}

/* ---- addresses ---- */

Test(vfs, prefixes)
{
    static const struct {
        const char *prefix, *addr;
        bool match;
    } t[] = {
        {"*", "10.0.0.1", true},
        {"*", "fe80::1", true},
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"::ffff:10.0.0.1", "10.0.0.1", true},
        {"::ffff:10.0.0.0/104", "10.200.0.1", true},
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"10.0.0.0/8", "::10.0.0.1", false},
        {"10.1.2.128/25", "10.1.2.127", false},
        {"10.1.2.128/25", "10.1.2.128", true},
        {"10.1.2.9/31", "10.1.2.8", true},
        {"10.1.2.9/31", "10.1.2.10", false},
        {"0.0.0.0/0", "192.0.2.1", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "192.0.2.1", true},
        {"2001:db8::/32", "2001:db8:ffff::1", true},
        {"2001:db8::/32", "2001:db9::1", false},
        {"2001:db8::1", "2001:db8::1", true},
        {"2001:db8::1", "2001:db8::2", false},
        {"fd00::/7", "fc00::1", true},
    };
    static const char *const bad[] = {"",
                                      "10.0.0",
                                      "10.0.0.1/33",
                                      "10.0.0.1/",
                                      "/8",
                                      "::1/129",
                                      "10.0.0.1/8x",
                                      "host",
                                      "10.0.0.0/-1",
                                      "10.0.0.1 ",
                                      "**",
                                      "1::2::3",
                                      "10.0.0.0/99999999999"};

    for (size_t i = 0; i < HF_ARRAY_LEN(t); i++) {
        struct prefix p;
        struct addr a;

        cr_assert_eq(prefix_parse(t[i].prefix, &p), 0, "%s", t[i].prefix);
        cr_assert(addr_from(peer(t[i].addr), &a));
        cr_assert_eq(prefix_match(&p, &a), t[i].match, "%s %s", t[i].prefix, t[i].addr);
    }
    for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
        struct prefix p;

        cr_assert_eq(prefix_parse(bad[i], &p), HF_E_INVAL, "%s", bad[i]);
    }
}

/* ---- exports ---- */

static void collect(void *arg, const Hf__ExportEntry *e)
{
    char *s = arg;

    strncat(s, e->path, 100);
    strncat(s, ";", 2);
}

Test(vfs, mounts)
{
    char list[512] = "";
    struct hf_vfs_obj o;
    struct world w;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "10.0.0.0/8", NULL);
    add_export(&w, 3, "/data", "/sub/", "*", NULL);
    add_export(&w, 4, "/nobody", "/", NULL, NULL);
    add_export(&w, 5, "/broken", "/", "10.0.0.0/99", "300.1.1.1");
    add_export(&w, 6, "/gone", "/missing/dir", "*", NULL);
    world_start(&w);

    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main"), peer("10.9.9.9"), &o), 0);
    cr_assert_eq(o.ino, ROOT);
    cr_assert_eq(o.gen, 1);
    cr_assert_eq(o.exp.id, 1);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main"), peer("11.9.9.9"), &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main"), peer(NULL), &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main"), NULL, &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main//"), peer("10.0.0.1"), &o), 0);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/data"), peer(NULL), &o), 0);
    cr_assert_eq(o.ino, SUB);
    cr_assert_eq(o.gen, 9);
    cr_assert_eq(o.exp.root_ino, SUB);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/main/dir"), peer("10.0.0.1"), &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/mainland"), peer("10.0.0.1"), &o), HF_E_NOENT);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/"), peer("10.0.0.1"), &o), HF_E_NOENT);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str(""), peer("10.0.0.1"), &o), HF_E_NOENT);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/nobody"), peer("10.0.0.1"), &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/broken"), peer("10.0.0.1"), &o), HF_E_ACCES);
    cr_assert_eq(hf_vfs_mount(w.vfs, hf_slice_str("/gone"), peer("10.0.0.1"), &o), HF_E_NOENT);
    hf_vfs_exports(w.vfs, collect, list);
    cr_assert_str_eq(list, "/broken;/data;/gone;/main;/nobody;");
    cr_assert_eq(hf_vfs_fsid(w.vfs), 4711);
    world_fini(&w);
}

Test(vfs, a_removed_export_is_stale_and_others_go_on)
{
    uint8_t main_fh[HF_VFS_FH_MAX], data_fh[HF_VFS_FH_MAX];
    struct hf_vfs_obj m, d, o;
    uint32_t nm, nd;
    struct world w;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "*", NULL);
    add_export(&w, 3, "/data", "/sub", "*", NULL);
    world_start(&w);
    m = mount_ok(&w, "/main");
    d = mount_ok(&w, "/data");
    nm = hf_vfs_fh_encode(w.vfs, &m.exp, m.ino, m.gen, main_fh);
    nd = hf_vfs_fh_encode(w.vfs, &d.exp, 1234, 5, data_fh);
    w.version = 2;
    w.exports[1].read_only = true;
    w.exports[0].id = 99; /* another export under the same path is another export */
    w.hide_sub = true;
    run(&w, 101);
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(main_fh, nm), peer("10.0.0.1"), &o), HF_E_STALE);
    cr_assert_eq(mount_ok(&w, "/main").exp.id, 99);
    run(&w, 1000); /* the directory has gone */
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(data_fh, nd), peer("10.0.0.1"), &o), HF_E_STALE);
    w.hide_sub = false; /* and comes back: looked for again without a new map */
    run(&w, 5000);
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(data_fh, nd), peer("10.0.0.1"), &o), 0);
    cr_assert(o.exp.read_only);
    cr_assert_eq(o.ino, 1234);
    cr_assert_eq(o.gen, 5);
    world_fini(&w);
}

/* ---- handles ---- */

Test(vfs, handles_cannot_be_forged)
{
    uint8_t fh[HF_VFS_FH_MAX], again[HF_VFS_FH_MAX];
    struct hf_vfs_obj o, got;
    struct world w;
    uint32_t n;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "10.0.0.0/8", NULL);
    world_start(&w);
    o = mount_ok(&w, "/main");
    n = hf_vfs_fh_encode(w.vfs, &o.exp, 0x123456789abcull, 77, fh);
    cr_assert_eq(n, 37);
    cr_assert_eq(hf_vfs_fh_encode(w.vfs, &o.exp, 0x123456789abcull, 77, again), n);
    cr_assert_eq(memcmp(fh, again, n), 0);
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(fh, n), peer("10.0.0.1"), &got), 0);
    cr_assert_eq(got.ino, 0x123456789abcull);
    cr_assert_eq(got.gen, 77);
    cr_assert_eq(got.exp.id, 1);
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(fh, n), peer("11.0.0.1"), &got), HF_E_ACCES);
    for (uint32_t bit = 0; bit < n * 8; bit++) {
        fh[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(fh, n), peer("10.0.0.1"), &got),
                     HF_E_BADHANDLE, "bit %u", bit);
        fh[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (uint32_t len = 0; len <= HF_VFS_FH_MAX; len++)
        if (len != n)
            cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(fh, len), peer("10.0.0.1"), &got),
                         HF_E_BADHANDLE);
    /* Another file system with the same key. */
    w.vfs->fsid++;
    hf_vfs_fh_encode(w.vfs, &o.exp, 1, 1, fh);
    w.vfs->fsid--;
    cr_assert_eq(hf_vfs_fh_decode(w.vfs, hf_slice(fh, n), peer("10.0.0.1"), &got), HF_E_STALE);
    world_fini(&w);
}

/* ---- credentials ---- */

Test(vfs, squashing)
{
    static const struct {
        uint32_t squash;
        struct hf_vfs_cred in, want;
    } t[] = {
        {0, {0, 0, 2, {0, 5}}, {0, 0, 2, {0, 5}}},
        {0, {7, 8, 1, {9}}, {7, 8, 1, {9}}},
        {1, {0, 0, 2, {0, 5}}, {65534, 65533, 2, {65533, 5}}},
        {1, {0, 10, 0, {0}}, {65534, 10, 0, {0}}},
        {1, {7, 0, 3, {4, 0, 6}}, {7, 65533, 3, {4, 65533, 6}}},
        {1, {7, 8, 1, {9}}, {7, 8, 1, {9}}},
        {2, {0, 0, 2, {0, 5}}, {65534, 65533, 0, {0}}},
        {2, {7, 8, 1, {9}}, {65534, 65533, 0, {0}}},
        {3, {7, 8, 1, {9}}, {65534, 65533, 0, {0}}}, /* from a newer version: the safest */
        {0,
         {1, 1, 99, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
         {1, 1, 16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}},
    };

    for (size_t i = 0; i < HF_ARRAY_LEN(t); i++) {
        struct hf_vfs_req r = {.cred = t[i].in, .done = on_done};
        struct hf_vfs_obj o;
        struct world w;

        world_init(&w);
        add_export(&w, 1, "/main", "/", "*", NULL);
        w.exports[0].squash = t[i].squash;
        world_start(&w);
        o = mount_ok(&w, "/main");
        hf_vfs_lookup(w.vfs, &r, &o, hf_slice_str("sub"));
        wait_done(&w);
        cr_assert_eq(r.status, 0);
        cr_assert_eq(w.uid, t[i].want.uid, "row %zu", i);
        cr_assert_eq(w.gid, t[i].want.gid, "row %zu", i);
        cr_assert_eq(w.ngroups, t[i].want.ngroups, "row %zu", i);
        cr_assert_eq(memcmp(w.groups, t[i].want.groups, w.ngroups * sizeof(w.groups[0])), 0,
                     "row %zu", i);
        world_fini(&w);
    }
}

/* ---- read-only exports and other refusals ---- */

typedef void start_fn(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o);

static void do_setattr(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_setattr(w->vfs, r, o, NULL, false, 0);
}
static void do_write(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_write(w->vfs, r, o, 0, &(struct hf_slice){"x", 1}, 1, 0);
}
static void do_commit(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_commit(w->vfs, r, o, 0, 0);
}
static void do_create(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_create(w->vfs, r, o, hf_slice_str("f"), 0, NULL, 0);
}
static void do_make(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_make(w->vfs, r, o, hf_slice_str("d"), HF__FILE_TYPE__FT_DIR, NULL, hf_slice(NULL, 0), 0,
                0);
}
static void do_remove(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_remove(w->vfs, r, o, hf_slice_str("f"), false);
}
static void do_rename(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_rename(w->vfs, r, o, hf_slice_str("a"), o, hf_slice_str("b"));
}
static void do_link(struct world *w, struct hf_vfs_req *r, const struct hf_vfs_obj *o)
{
    hf_vfs_link(w->vfs, r, o, o, hf_slice_str("l"));
}

Test(vfs, read_only_exports_refuse_changes)
{
    static start_fn *const ops[] = {do_setattr, do_write,  do_commit, do_create,
                                    do_make,    do_remove, do_rename, do_link};
    struct hf_vfs_req r = {.done = on_done};
    struct hf_vfs_obj o;
    struct world w;
    unsigned asked;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "*", NULL);
    w.exports[0].read_only = true;
    world_start(&w);
    o = mount_ok(&w, "/main");
    asked = w.requests;
    for (size_t i = 0; i < HF_ARRAY_LEN(ops); i++) {
        unsigned before = ndone;

        r = (struct hf_vfs_req){.done = on_done};
        ops[i](&w, &r, &o);
        cr_assert_eq(ndone, before); /* never from inside the call */
        wait_done(&w);
        cr_assert_eq(last_status, HF_E_ROFS, "operation %zu", i);
    }
    cr_assert_eq(w.requests, asked);
    r = (struct hf_vfs_req){.done = on_done};
    hf_vfs_access(w.vfs, &r, &o, 0x3f);
    wait_done(&w);
    cr_assert_eq(last_status, 0);
    cr_assert_eq(w.access_want, 0x23); /* READ, LOOKUP, EXECUTE */
    world_fini(&w);
}

Test(vfs, between_exports_is_xdev)
{
    struct hf_vfs_req r = {.done = on_done};
    struct hf_vfs_obj a, b;
    struct world w;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "*", NULL);
    add_export(&w, 2, "/data", "/sub", "*", NULL);
    world_start(&w);
    a = mount_ok(&w, "/main");
    b = mount_ok(&w, "/data");
    hf_vfs_rename(w.vfs, &r, &a, hf_slice_str("x"), &b, hf_slice_str("y"));
    wait_done(&w);
    cr_assert_eq(last_status, HF_E_XDEV);
    r = (struct hf_vfs_req){.done = on_done};
    hf_vfs_link(w.vfs, &r, &a, &b, hf_slice_str("y"));
    wait_done(&w);
    cr_assert_eq(last_status, HF_E_XDEV);
    r = (struct hf_vfs_req){.done = on_done};
    do_create(&w, &r, &a);
    wait_done(&w);
    cr_assert_eq(last_status, 0);
    world_fini(&w);
}

static void on_lookup_done(struct hf_vfs_req *r)
{
    const Hf__LookupRep *rep = r->rep;

    on_done(r);
    if (rep) {

        last_ino = rep->obj->ino;
        last_dir = rep->dir ? rep->dir->ino : 0;
    }
}

static void on_readdir_done(struct hf_vfs_req *r)
{
    const Hf__ReaddirRep *rep = r->rep;

    on_done(r);
    cr_assert_eq(rep->n_entries, 2);
    last_ino = rep->entries[1]->ino;
    cr_assert_null(rep->entries[1]->attr);
}

Test(vfs, nothing_leads_out_of_an_export)
{
    struct hf_vfs_req r = {.done = on_lookup_done};
    struct hf_vfs_obj o;
    struct world w;

    world_init(&w);
    add_export(&w, 2, "/data", "/sub", "*", NULL);
    world_start(&w);
    o = mount_ok(&w, "/data");
    hf_vfs_lookup(w.vfs, &r, &o, hf_slice_str(".."));
    wait_done(&w);
    cr_assert_eq(last_status, 0);
    cr_assert_eq(last_ino, SUB);
    cr_assert_eq(last_dir, SUB);
    r = (struct hf_vfs_req){.done = on_readdir_done};
    hf_vfs_readdir(w.vfs, &r, &o, 0, 4096, 24, 100, true);
    wait_done(&w);
    cr_assert_eq(last_ino, SUB);
    world_fini(&w);
}

/* What is under way when the gateway stops completes, and walks to exports leave nothing behind. */
Test(vfs, ends_cleanly_with_requests_under_way)
{
    struct hf_vfs_req r = {.done = on_done};
    struct hf_vfs_obj o;
    unsigned before;
    struct world w;

    world_init(&w);
    add_export(&w, 1, "/main", "/", "*", NULL);
    add_export(&w, 2, "/data", "/sub", "*", NULL);
    world_start(&w);
    o = mount_ok(&w, "/main");
    w.version = 2;
    while (hf_client_map(w.client)->version == 1)
        cr_assert(hf_sim_step(w.env));
    before = ndone;
    hf_vfs_getattr(w.vfs, &r, &o);
    world_fini(&w);
    cr_assert_eq(ndone, before + 1);
    cr_assert_eq(last_status, HF_E_CLOSED);
}

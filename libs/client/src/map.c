/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster map: fetched from meta_url, checked, and turned into tables of shards and servers.
 * The body of the newest map stays in the message it came with; the one before it is kept as long,
 * so that what callers hold survives the turn in which a new map arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

#define URL_MAX      255u
#define SHARDS_MAX   65535u
#define ENTRIES_MAX  65536u
#define SEGMENTS_MAX 4096u

/* ---- servers ---- */

static int meta_server_get(struct hf_client *c, const char *url, struct meta_server **ret)
{
    struct hf_rpc_client_opts o = {.insecure = c->opts.insecure};
    struct meta_server *s;
    int rc;

    HF_LIST_FOREACH(it, &c->meta_servers)
    {
        s = hf_container_of(it, struct meta_server, link);
        if (strcmp(s->url, url) == 0) {
            *ret = s;
            return 0;
        }
    }
    s = calloc(1, sizeof(*s) + strlen(url) + 1);
    if (!s)
        return HF_E_NOMEM;
    memcpy(s->url, url, strlen(url));
    rc = hf_rpc_client_new(c->loop, url, &o, &s->rpc);
    if (rc) {
        free(s);
        return rc;
    }
    s->service = hf_rpc_client_service(s->rpc, &hf__meta__descriptor);
    hf_list_push_back(&c->meta_servers, &s->link);
    *ret = s;
    return 0;
}

static void meta_server_free(struct meta_server *s)
{
    hf_rpc_client_free(s->rpc);
    hf_list_remove(&s->link);
    free(s);
}

static int seg_server_get(struct hf_client *c, const char *url, struct seg_server **ret)
{
    struct hf_rpc_client_opts o = {.insecure = c->opts.insecure};
    struct seg_server *s;
    int rc;

    HF_LIST_FOREACH(it, &c->seg_servers)
    {
        s = hf_container_of(it, struct seg_server, link);
        if (strcmp(s->url, url) == 0) {
            *ret = s;
            return 0;
        }
    }
    s = calloc(1, sizeof(*s) + strlen(url) + 1);
    if (!s)
        return HF_E_NOMEM;
    memcpy(s->url, url, strlen(url));
    s->client = c;
    rc = hf_rpc_client_new(c->loop, url, &o, &s->rpc);
    if (rc) {
        free(s);
        return rc;
    }
    s->service = hf_rpc_client_service(s->rpc, &hf__segment__descriptor);
    hf_list_push_back(&c->seg_servers, &s->link);
    stat_send(s);
    *ret = s;
    return 0;
}

static void seg_server_free(struct seg_server *s)
{
    hf_rpc_client_free(s->rpc);
    hf_list_remove(&s->link);
    free(s);
}

/* Servers that the map no longer names; one that still has calls waits for the next map. */
static void sweep(struct hf_client *c)
{
    HF_LIST_FOREACH_SAFE(it, tmp, &c->meta_servers)
    {
        struct meta_server *s = hf_container_of(it, struct meta_server, link);

        if (!s->keep && s != c->home)
            meta_server_free(s);
    }
    HF_LIST_FOREACH_SAFE(it, tmp, &c->seg_servers)
    {
        struct seg_server *s = hf_container_of(it, struct seg_server, link);

        if (!s->keep && s->inflight == 0 && !s->stat_busy)
            seg_server_free(s);
    }
}

/* ---- checking and taking a map ---- */

static bool url_ok(const char *url)
{
    return url && url[0] && strnlen(url, URL_MAX + 1) <= URL_MAX;
}

static bool map_ok(const Hf__MapGetRep *m)
{
    if (m->shard_count == 0 || m->shard_count > SHARDS_MAX || m->n_shards > ENTRIES_MAX ||
        m->n_segments > SEGMENTS_MAX)
        return false;
    for (size_t i = 0; i < m->n_shards; i++)
        if (m->shards[i]->shard >= m->shard_count || !url_ok(m->shards[i]->url))
            return false;
    for (size_t i = 0; i < m->n_segments; i++)
        if (!url_ok(m->segments[i]->url))
            return false;
    return true;
}

static struct shard *shard_new(struct hf_client *c, uint32_t id)
{
    struct shard *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->client = c;
    s->id = id;
    hf_list_init(&s->waiting);
    hf_list_init(&s->inflight);
    return s;
}

static int take_shards(struct hf_client *c, const Hf__MapGetRep *m)
{
    if (m->shard_count > c->nshards) {
        struct shard **t = calloc(m->shard_count, sizeof(struct shard *));

        if (!t)
            return HF_E_NOMEM;
        for (uint32_t i = 0; i < c->nshards; i++)
            t[i] = c->shards[i];
        free(c->shards);
        c->shards = t;
        c->nshards = m->shard_count;
    }
    for (size_t i = 0; i < m->n_shards; i++) {
        struct shard **s = &c->shards[m->shards[i]->shard];
        struct meta_server *server;
        int rc;

        if (!*s && !(*s = shard_new(c, m->shards[i]->shard)))
            return HF_E_NOMEM;
        rc = meta_server_get(c, m->shards[i]->url, &server);
        if (rc == HF_E_NOMEM)
            return rc;
        if (rc) /* a URL that cannot be used: as if the map had none */
            continue;
        server->keep = true;
        if ((*s)->server && (*s)->server != server) {
            (*s)->server = server;
            call_shard_moved(*s);
        }
        (*s)->server = server;
    }
    return 0;
}

/* Only what is sure: a shared name space of this process or this machine. */
static bool is_near(const char *urls)
{
    return strstr(urls, "inproc://") || strstr(urls, "ipc://") || strstr(urls, "tcp://127.") ||
           strstr(urls, "tcp://[::1]");
}

static void take_local(struct hf_client *c, const Hf__MapGetRep *m)
{
    c->nlocal = 0;
    for (size_t i = 0; i < m->n_segments && c->nlocal < LAYOUT_SEGMENTS_MAX; i++)
        if (is_near(m->segments[i]->url))
            c->local[c->nlocal++] = m->segments[i]->id;
    if (c->nlocal == m->n_segments)
        c->nlocal = 0; /* no choice */
}

void map_prefer(struct hf_client *c, Hf__WriteReq *req)
{
    req->prefer = c->local;
    req->n_prefer = c->nlocal;
}

static int take_segments(struct hf_client *c, const Hf__MapGetRep *m)
{
    hf_map_clear(&c->segs);
    take_local(c, m);
    for (size_t i = 0; i < m->n_segments; i++) {
        struct seg_server *server;
        int rc = seg_server_get(c, m->segments[i]->url, &server);

        if (rc == HF_E_NOMEM)
            return rc;
        if (rc)
            continue;
        server->keep = true;
        rc = hf_map_put(&c->segs, m->segments[i]->id, server);
        if (rc)
            return rc;
    }
    return 0;
}

static int map_take(struct hf_client *c, const Hf__MapGetRep *m, struct hf_rpc_msg *msg)
{
    int rc;

    if (!map_ok(m))
        return HF_E_PROTO;
    HF_LIST_FOREACH(it, &c->meta_servers)
    hf_container_of(it, struct meta_server, link)->keep = false;
    HF_LIST_FOREACH(it, &c->seg_servers)
    hf_container_of(it, struct seg_server, link)->keep = false;
    rc = take_shards(c, m);
    if (!rc)
        rc = take_segments(c, m);
    if (rc)
        return rc; /* what was taken so far is true; the rest comes with the next try */
    HF_LIST_FOREACH(it, &c->meta_servers)
    {
        struct meta_server *server = hf_container_of(it, struct meta_server, link);

        /* A shard that the map has no place for any more stays where it was. */
        for (uint32_t i = 0; !server->keep && i < c->nshards; i++)
            server->keep = c->shards[i] && c->shards[i]->server == server;
    }
    sweep(c);
    hf_rpc_msg_ref(msg);
    if (c->map_old_msg)
        hf_rpc_msg_unref(c->map_old_msg);
    c->map_old_msg = c->map_msg;
    c->map_msg = msg;
    c->map = m;
    boot_mix(c);
    if (c->opts.on_map)
        c->opts.on_map(c->opts.arg, m);
    while (!hf_list_empty(&c->nomap))
        call_resume(hf_container_of(c->nomap.next, struct hf_client_call, p.link));
    return 0;
}

/* ---- polling ---- */

static void on_map_reply(const Hf__MapGetRep *rep, void *arg)
{
    struct hf_client *c = hf_container_of(arg, struct hf_client, map_rpc);
    int status = c->map_rpc.status;

    c->map_busy = false;
    if (c->closing)
        return;
    if (status == 0 && !rep)
        status = HF_E_PROTO;
    if (status == 0 && (!c->map || rep->version != c->map->version))
        status = map_take(c, rep, c->map_rpc.msg);
    if (status == 0) {
        c->map_tries = 0;
        hf_timer_set(&c->map_timer, c->map_again ? 0 : c->opts.map_poll_ms * HF_NS_PER_MS);
    } else {
        hf_timer_set(&c->map_timer, backoff_ns(c, ++c->map_tries));
    }
    c->map_again = false;
}

static void map_send(struct hf_client *c)
{
    Hf__MapGetReq req = HF__MAP_GET_REQ__INIT;

    c->map_busy = true;
    c->map_rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS};
    req.known_version = c->map ? c->map->version : 0;
    hf__meta__map_get(c->home->service, &req, on_map_reply, &c->map_rpc);
}

static void on_map_timer(struct hf_timer *t)
{
    struct hf_client *c = hf_container_of(t, struct hf_client, map_timer);

    if (!c->map_busy)
        map_send(c);
}

/* Many calls may find out at once that the map is old: one look in flight, and one after it. */
void hf_client_map_refresh(struct hf_client *c)
{
    if (c->closing)
        return;
    if (c->map_busy)
        c->map_again = true;
    else if (c->map_tries == 0)
        hf_timer_set(&c->map_timer, 0);
}

const Hf__MapGetRep *hf_client_map(const struct hf_client *c)
{
    return c->map;
}

struct shard *map_shard(struct hf_client *c, uint64_t ino)
{
    struct shard *s = ino_shard(ino) < c->nshards ? c->shards[ino_shard(ino)] : NULL;

    return s && s->server ? s : NULL;
}

int map_init(struct hf_client *c)
{
    int rc;

    hf_timer_init(&c->map_timer, c->loop, on_map_timer);
    rc = meta_server_get(c, c->strings, &c->home);
    if (rc)
        return rc;
    hf_timer_set(&c->map_timer, 0);
    return 0;
}

/* Everything in flight ends with CLOSED here. */
void map_fini_servers(struct hf_client *c)
{
    struct hf_list *it;

    hf_timer_cancel(&c->map_timer);
    while ((it = hf_list_pop_front(&c->meta_servers)) != NULL)
        meta_server_free(hf_container_of(it, struct meta_server, link));
    while ((it = hf_list_pop_front(&c->seg_servers)) != NULL)
        seg_server_free(hf_container_of(it, struct seg_server, link));
}

void map_fini(struct hf_client *c)
{
    for (uint32_t i = 0; i < c->nshards; i++) {
        if (c->shards[i]) {
            session_fini(c->shards[i]);
            free(c->shards[i]);
        }
    }
    free(c->shards);
    hf_map_fini(&c->segs);
    if (c->map_old_msg)
        hf_rpc_msg_unref(c->map_old_msg);
    if (c->map_msg)
        hf_rpc_msg_unref(c->map_msg);
}

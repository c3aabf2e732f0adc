/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks to the directories of exports: look-ups from the root of the file system, as root. A walk
 * that a newer map has overtaken goes on as an orphan and tells nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "vfs_priv.h"

#define DEPTH_MAX 128u

struct resolver {
    struct hf_list link; /* hf_vfs.resolvers */
    struct hf_vfs *vfs;  /* NULL: orphan */
    uint64_t generation;
    uint32_t id;
    uint64_t ino;
    uint32_t gen;
    unsigned depth;
    struct hf_client_call call;
    Hf__LookupReq req;
    Hf__Cred cred;
    const char *rest;
    char path[];
};

static void resolver_end(struct resolver *r, int status)
{
    hf_list_remove(&r->link);
    if (r->vfs)
        exports_resolved(r->vfs, r->generation, r->id, status, r->ino, r->gen);
    free(r);
}

/* The next component; empty at the end. */
static struct hf_slice next_name(struct resolver *r)
{
    const char *name;

    for (;;) {
        while (*r->rest == '/')
            r->rest++;
        name = r->rest;
        while (*r->rest && *r->rest != '/')
            r->rest++;
        if (r->rest - name != 1 || *name != '.')
            return (struct hf_slice){name, (size_t)(r->rest - name)};
    }
}

static void walk(struct resolver *r);

static void on_lookup(const Hf__LookupRep *rep, void *arg)
{
    struct resolver *r = hf_container_of(arg, struct resolver, call);
    int status = r->call.status;

    if (!r->vfs) {
        resolver_end(r, HF_E_CANCELED);
        return;
    }
    if (status == 0 && (!rep || !rep->obj))
        status = HF_E_PROTO;
    if (status == 0 && rep->obj->type != HF__FILE_TYPE__FT_DIR)
        status = HF_E_NOTDIR;
    if (status) {
        resolver_end(r, status);
        return;
    }
    r->ino = rep->obj->ino;
    r->gen = rep->obj->gen;
    walk(r);
}

static void walk(struct resolver *r)
{
    struct hf_slice name = next_name(r);

    if (name.len == 0) {
        resolver_end(r, 0);
        return;
    }
    if (++r->depth > DEPTH_MAX || (name.len == 2 && memcmp(name.data, "..", 2) == 0)) {
        resolver_end(r, HF_E_NOENT);
        return;
    }
    hf__lookup_req__init(&r->req);
    r->req.cred = &r->cred;
    r->req.dir = r->ino;
    r->req.gen = r->gen;
    r->req.name.data = (uint8_t *)r->path + ((const char *)name.data - r->path);
    r->req.name.len = name.len;
    r->call.ino = r->ino;
    r->call.req_stays = true;
    hf__meta__lookup(hf_client_meta(r->vfs->client), &r->req, on_lookup, &r->call);
}

void resolve_start(struct hf_vfs *v, const struct export *e)
{
    size_t n = strlen(e->entry->dir);
    struct resolver *r = calloc(1, sizeof(*r) + n + 1);

    if (!r) {
        exports_resolved(v, v->generation, e->pub.id, HF_E_NOMEM, 0, 0);
        return;
    }
    memcpy(r->path, e->entry->dir, n);
    r->rest = r->path;
    r->vfs = v;
    r->generation = v->generation;
    r->id = e->pub.id;
    r->ino = v->map->root_ino;
    r->gen = v->map->root_gen;
    hf__cred__init(&r->cred);
    hf_list_push_back(&v->resolvers, &r->link);
    walk(r);
}

void resolve_orphan_all(struct hf_vfs *v)
{
    struct hf_list *n;

    while ((n = hf_list_pop_front(&v->resolvers)) != NULL)
        hf_container_of(n, struct resolver, link)->vfs = NULL;
}

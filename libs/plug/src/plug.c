/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader. A plugin stays loaded until hf_plug_free, because a closed backend's threads may
 * still be returning from its code. Its vtable is copied into one of the size this program knows,
 * with defaults for what an older plugin lacks, so that nobody else has to look at struct_size.
 */
#include "plug_priv.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

struct plugin {
    struct plugin *next;
    char name[HF_PLUG_NAME_MAX + 1];
    void *handle;
    struct hf_backend_ops ops;
};

struct hf_plug {
    char *dir;
    struct plugin *plugins;
};

struct hf_plug_be {
    const struct hf_backend_ops *ops;
    struct hf_be *be;
    struct hf_backend_ops own; /* the top's normalised vtable with the capabilities of the stack */
};

static int default_space(struct hf_be *be, struct hf_be_space *ret)
{
    (void)be;
    memset(ret, 0, sizeof(*ret));
    return HF_BE_ENOTSUPP;
}

static int default_list(struct hf_be *be, const uint8_t *after,
                        int (*fn)(void *arg, const uint8_t *id), void *arg)
{
    (void)be;
    (void)after;
    (void)fn;
    (void)arg;
    return HF_BE_ENOTSUPP;
}

/* Copies what the plugin has, fills what it lacks. */
static int normalise(const struct hf_backend_ops *in, struct hf_backend_ops *out,
                     const char **ret_why)
{
    size_t n = in->struct_size;

    if (n < offsetof(struct hf_backend_ops, name)) {
        *ret_why = "its method table is too small";
        return HF_E_VERSION;
    }
    if (in->abi_major != HF_BE_ABI_MAJOR) {
        *ret_why = "it was built for another major version of the backend ABI";
        return HF_E_VERSION;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, in, n < sizeof(*out) ? n : sizeof(*out));
    out->struct_size = (uint32_t)sizeof(*out);
    if (!out->name || !out->open || !out->close || !out->submit) {
        *ret_why = "its method table lacks name, open, close or submit";
        return HF_E_VERSION;
    }
    if (!out->space)
        out->space = default_space;
    if (!out->list)
        out->list = default_list;
    return 0;
}

int hf_plug_new(const char *dir, struct hf_plug **ret)
{
    struct hf_plug *p = calloc(1, sizeof(*p));

    if (!p)
        return HF_E_NOMEM;
    p->dir = strdup(dir);
    if (!p->dir) {
        free(p);
        return HF_E_NOMEM;
    }
    *ret = p;
    return 0;
}

void hf_plug_free(struct hf_plug *p)
{
    if (!p)
        return;
    while (p->plugins) {
        struct plugin *pl = p->plugins;

        p->plugins = pl->next;
        dlclose(pl->handle);
        free(pl);
    }
    free(p->dir);
    free(p);
}

static int plugin_load(struct hf_plug *p, const char *name, struct plugin **ret, char *err,
                       size_t err_bytes)
{
    const struct hf_backend_ops *(*entry)(void) = NULL;
    const struct hf_backend_ops *ops;
    const char *why = NULL;
    char path[4096];
    struct plugin *pl;
    void *sym;
    int rc;

    rc = snprintf(path, sizeof(path), "%s/backend-%s.so", p->dir, name);
    if (rc < 0 || (size_t)rc >= sizeof(path) || access(path, F_OK) != 0) {
        (void)snprintf(err, err_bytes, "backend '%s': no plugin backend-%s.so in %.300s", name,
                       name, p->dir);
        return HF_E_NOENT;
    }
    pl = calloc(1, sizeof(*pl));
    if (!pl)
        return HF_E_NOMEM;
    rc = HF_E_VERSION;
    pl->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!pl->handle) {
        (void)snprintf(err, err_bytes, "backend '%s': cannot load: %.400s", name, dlerror());
        goto fail;
    }
    sym = dlsym(pl->handle, "hf_backend_plugin");
    memcpy(&entry, &sym,
           sizeof(entry)); /* ISO C has no cast from an object to a function pointer */
    ops = entry ? entry() : NULL;
    if (!ops) {
        (void)snprintf(err, err_bytes, "backend '%s': it exports no hf_backend_plugin", name);
        goto fail;
    }
    rc = normalise(ops, &pl->ops, &why);
    if (rc) {
        (void)snprintf(err, err_bytes, "backend '%s': %s (it says %u.%u, this program has %d.%d)",
                       name, why, ops->abi_major, ops->abi_minor, HF_BE_ABI_MAJOR, HF_BE_ABI_MINOR);
        goto fail;
    }
    (void)snprintf(pl->name, sizeof(pl->name), "%s", name);
    pl->next = p->plugins;
    p->plugins = pl;
    *ret = pl;
    return 0;
fail:
    if (pl->handle)
        dlclose(pl->handle);
    free(pl);
    return rc;
}

static int plugin_find(struct hf_plug *p, const char *name, struct plugin **ret, char *err,
                       size_t err_bytes)
{
    for (struct plugin *pl = p->plugins; pl; pl = pl->next) {
        if (strcmp(pl->name, name) == 0) {
            *ret = pl;
            return 0;
        }
    }
    return plugin_load(p, name, ret, err, err_bytes);
}

/* Opens the layers from the lowest up; each stacked one owns what is below it once it is open. */
static int open_layers(struct plugin *const *pl, const struct hf_plug_layer *layers, unsigned n,
                       const char *path, unsigned threads, struct hf_plug_be *be, char *err,
                       size_t err_bytes)
{
    struct hf_be *lower = NULL;
    const struct hf_backend_ops *lower_ops = NULL;

    HF_ASSERT(n > 0); /* a spec that parses has a layer */
    for (unsigned i = n; i-- > 0;) {
        struct hf_be_opts o = {
            .struct_size = (uint32_t)sizeof(o),
            .path = i == n - 1 ? path : NULL,
            .args = layers[i].args[0] ? layers[i].args : NULL,
            .threads = threads,
            .lower_ops = lower_ops,
            .lower = lower,
        };
        struct hf_be *h = NULL;
        char why[384] = "no reason given";
        int rc = pl[i]->ops.open(&o, &h, why, sizeof(why));

        if (rc || !h) {
            (void)snprintf(err, err_bytes, "backend '%s': %s", layers[i].name, why);
            if (lower)
                lower_ops->close(lower);
            return rc ? rc : HF_E_INTERNAL;
        }
        lower = h;
        lower_ops = &pl[i]->ops;
    }
    /* What the lowest can do, its stack can. */
    be->own = pl[0]->ops;
    be->own.caps |= pl[n - 1]->ops.caps;
    be->ops = &be->own;
    be->be = lower;
    return 0;
}

int hf_plug_open(struct hf_plug *p, const char *spec, const char *path, unsigned threads,
                 struct hf_plug_be **ret, char *err, size_t err_bytes)
{
    struct hf_plug_layer *layers = calloc(HF_PLUG_DEPTH_MAX, sizeof(*layers));
    struct plugin *pl[HF_PLUG_DEPTH_MAX];
    struct hf_plug_be *be = calloc(1, sizeof(*be));
    unsigned n = 0;
    int rc = HF_E_NOMEM;

    if (err_bytes)
        (void)snprintf(err, err_bytes, "out of memory");
    if (!layers || !be)
        goto fail;
    rc = hf_plug_spec_parse(spec, layers, &n, err, err_bytes);
    if (rc)
        goto fail;
    for (unsigned i = 0; i < n; i++) {
        bool stacked;

        rc = plugin_find(p, layers[i].name, &pl[i], err, err_bytes);
        if (rc)
            goto fail;
        stacked = (pl[i]->ops.caps & HF_BE_CAP_STACKED) != 0;
        if (stacked != (i < n - 1)) {
            (void)snprintf(err, err_bytes, "backend '%.100s': '%s' %s", spec, layers[i].name,
                           stacked ? "needs another backend below it" : "must be the last");
            rc = HF_E_CONF;
            goto fail;
        }
    }
    rc = open_layers(pl, layers, n, path, threads, be, err, err_bytes);
    if (rc)
        goto fail;
    free(layers);
    *ret = be;
    return 0;
fail:
    free(layers);
    free(be);
    return rc;
}

int hf_plug_open_ops(const struct hf_backend_ops *ops, const struct hf_be_opts *opts,
                     struct hf_plug_be **ret, char *err, size_t err_bytes)
{
    struct hf_plug_be *be = calloc(1, sizeof(*be));
    const char *why = NULL;
    int rc;

    if (!be)
        return HF_E_NOMEM;
    rc = normalise(ops, &be->own, &why);
    if (rc) {
        (void)snprintf(err, err_bytes, "backend: %s", why);
        free(be);
        return rc;
    }
    rc = be->own.open(opts, &be->be, err, err_bytes);
    if (rc) {
        free(be);
        return rc;
    }
    be->ops = &be->own;
    *ret = be;
    return 0;
}

void hf_plug_close(struct hf_plug_be *be)
{
    if (!be)
        return;
    be->ops->close(be->be);
    free(be);
}

const struct hf_backend_ops *hf_plug_ops(const struct hf_plug_be *be)
{
    return be->ops;
}

struct hf_be *hf_plug_handle(const struct hf_plug_be *be)
{
    return be->be;
}

void hf_plug_submit(struct hf_plug_be *be, struct hf_be_io *io)
{
    be->ops->submit(be->be, io);
}

struct waiter {
    struct hf_be_io io;
    pthread_mutex_t lock; /* guards finished */
    pthread_cond_t cond;
    bool finished;
};

static void waiter_done(struct hf_be_io *io)
{
    struct waiter *w = hf_container_of(io, struct waiter, io);

    pthread_mutex_lock(&w->lock);
    w->finished = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

int hf_plug_do(struct hf_plug_be *be, struct hf_be_io *io)
{
    struct waiter w = {.io = *io, .finished = false};

    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.cond, NULL);
    w.io.done = waiter_done;
    hf_plug_submit(be, &w.io);
    pthread_mutex_lock(&w.lock);
    while (!w.finished)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.cond);
    pthread_mutex_destroy(&w.lock);
    io->status = w.io.status;
    io->size = w.io.size;
    io->allocated = w.io.allocated;
    return io->status;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects that the kernel knows. A nodeid is the inode number, which is never used twice; the
 * mount's root is 1. What the kernel forgets is forgotten here, so the table is as large as the
 * kernel's own.
 */
#include <stdlib.h>

#include "fuse_priv.h"
#include "holdfast/err.h"

struct node {
    uint32_t gen;
    uint32_t flags; /* HF_ATTR_*, as of seen_ns */
    uint64_t nlookup;
    uint64_t seen_ns;
    uint64_t pages_change; /* of the content that the kernel's pages may hold; 0: none */
    uint64_t told_change;  /* of the attributes that the kernel was told last */
};

static fuse_ino_t id_of(const struct hf_fusesvc *s, uint64_t ino)
{
    return ino == s->root.ino ? FUSE_ROOT_ID : ino;
}

static uint64_t now_ns(struct hf_fusesvc *s)
{
    return hf_env_mono_ns(s->opts.env);
}

static void note(struct hf_fusesvc *s, struct node *n, const struct hf_attr *a)
{
    n->gen = a->handle.gen;
    n->flags = a->flags;
    n->seen_ns = now_ns(s);
}

/* lock held; makes it */
static struct node *get(struct hf_fusesvc *s, fuse_ino_t id)
{
    struct node *n = hf_map_get(&s->nodes, id);

    if (n)
        return n;
    n = calloc(1, sizeof(*n));
    if (n && hf_map_put(&s->nodes, id, n)) {
        free(n);
        return NULL;
    }
    return n;
}

fuse_ino_t node_lookup(struct hf_fusesvc *s, const struct hf_attr *a)
{
    fuse_ino_t id = id_of(s, a->handle.ino);
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = get(s, id);
    if (n) {
        n->nlookup++;
        n->told_change = a->change;
        note(s, n, a);
    }
    pthread_mutex_unlock(&s->lock);
    return n ? id : 0;
}

void node_forget(struct hf_fusesvc *s, fuse_ino_t id, uint64_t nlookup)
{
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id);
    if (n && n->nlookup > nlookup)
        n->nlookup -= nlookup;
    else if (n)
        free(hf_map_del(&s->nodes, id));
    pthread_mutex_unlock(&s->lock);
}

bool node_handle(struct hf_fusesvc *s, fuse_ino_t id, struct hf_handle *ret)
{
    struct node *n;

    if (id == FUSE_ROOT_ID) {
        *ret = s->root;
        return true;
    }
    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id);
    if (n)
        *ret = (struct hf_handle){.ino = id, .gen = n->gen};
    pthread_mutex_unlock(&s->lock);
    return n != NULL;
}

void node_seen(struct hf_fusesvc *s, const struct hf_attr *a)
{
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id_of(s, a->handle.ino));
    if (n) {
        n->told_change = a->change;
        note(s, n, a);
    }
    pthread_mutex_unlock(&s->lock);
}

void node_has_xattr(struct hf_fusesvc *s, fuse_ino_t id)
{
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id);
    if (n)
        n->flags |= HF_ATTR_XATTR;
    pthread_mutex_unlock(&s->lock);
}

/* Before writes the kernel asks for security.capability, for a new file too. */
bool node_no_xattrs(struct hf_fusesvc *s, fuse_ino_t id)
{
    bool none = false;
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id);
    if (n)
        none = !(n->flags & (HF_ATTR_XATTR | HF_ATTR_ACL | HF_ATTR_DEFAULT_ACL)) &&
               now_ns(s) - n->seen_ns <= s->attr_ns;
    pthread_mutex_unlock(&s->lock);
    return none;
}

bool node_pages_good(struct hf_fusesvc *s, const struct hf_attr *a)
{
    fuse_ino_t id = id_of(s, a->handle.ino);
    bool good = false, told = true;
    struct node *n;

    pthread_mutex_lock(&s->lock);
    n = hf_map_get(&s->nodes, id);
    if (n) {
        note(s, n, a);
        told = n->told_change == a->change;
        good = n->pages_change == a->change;
        n->pages_change = a->change;
    }
    pthread_mutex_unlock(&s->lock);
    if (!told) /* the kernel would read as far as the size it believes in */
        (void)fuse_lowlevel_notify_inval_inode(s->session, id, -1, 0);
    return good;
}

void nodes_fini(struct hf_fusesvc *s)
{
    size_t pos = 0;
    uint64_t id;
    void *n;

    while (hf_map_next(&s->nodes, &pos, &id, &n))
        free(n);
    hf_map_fini(&s->nodes);
}

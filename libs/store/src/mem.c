/* SPDX-License-Identifier: Apache-2.0
 *
 * The in-memory provider: a fake for tests and simulation with the semantics of the real one.
 *
 * Each table is a treap (a binary search tree by key, a heap by a priority that is a hash of the
 * key) of reference-counted nodes. A node with one reference may be changed in place if all nodes
 * above it may; any other is copied first. So a checkpoint is one reference to each root, a
 * snapshot another, and neither ever sees a later change. Entries (key and value) are immutable and
 * shared by copies.
 *
 * Nothing survives close: there is no crash to recover from.
 */
#include "provider.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/map.h"

struct entry {
    atomic_size_t refs;
    size_t klen, vlen;
    uint8_t bytes[]; /* key, value */
};

struct node {
    atomic_size_t refs;
    uint64_t prio;
    struct node *left, *right;
    struct entry *e;
};

struct mem_snap {
    struct node *roots[HF_STORE_TABLES_MAX];
};

struct mem {
    unsigned ntables;
    struct node *roots[HF_STORE_TABLES_MAX];
    uint64_t counts[HF_STORE_TABLES_MAX];
    uint64_t bytes;
    pthread_mutex_t lock;      /* guards `committed` */
    struct mem_snap committed; /* the last checkpoint */
};

/* ---- entries and nodes ---- */

static struct entry *entry_new(struct hf_slice key, struct hf_slice val)
{
    struct entry *e = malloc(sizeof(*e) + key.len + val.len);

    if (!e)
        return NULL;
    atomic_init(&e->refs, 1);
    e->klen = key.len;
    e->vlen = val.len;
    memcpy(e->bytes, key.data, key.len);
    if (val.len)
        memcpy(e->bytes + key.len, val.data, val.len);
    return e;
}

static void entry_unref(struct entry *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1)
        free(e);
}

static struct hf_slice entry_key(const struct entry *e)
{
    return hf_slice(e->bytes, e->klen);
}

static struct hf_slice entry_val(const struct entry *e)
{
    return hf_slice(e->bytes + e->klen, e->vlen);
}

static struct node *node_ref(struct node *n)
{
    if (n)
        atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

/* Depth is that of the treap: some dozens. */
static void node_unref(struct node *n)
{
    if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    node_unref(n->left);
    node_unref(n->right);
    entry_unref(n->e);
    free(n);
}

/* Takes e and the children over. */
static struct node *node_new(struct entry *e, uint64_t prio, struct node *left, struct node *right)
{
    struct node *n = malloc(sizeof(*n));

    if (!n)
        return NULL;
    atomic_init(&n->refs, 1);
    n->prio = prio;
    n->left = left;
    n->right = right;
    n->e = e;
    return n;
}

/* Makes *slot, whose holder is exclusively ours, exclusively ours too. */
static int node_own(struct node **slot)
{
    struct node *n = *slot;
    struct node *copy;

    if (atomic_load_explicit(&n->refs, memory_order_acquire) == 1)
        return 0;
    copy = node_new(n->e, n->prio, n->left, n->right);
    if (!copy)
        return HF_E_NOMEM;
    atomic_fetch_add_explicit(&n->e->refs, 1, memory_order_relaxed);
    node_ref(n->left);
    node_ref(n->right);
    node_unref(n);
    *slot = copy;
    return 0;
}

/* ---- treap ---- */

static struct node *tree_find(struct node *n, struct hf_slice key)
{
    while (n) {
        int c = store_key_cmp(key, entry_key(n->e));

        if (c == 0)
            return n;
        n = c < 0 ? n->left : n->right;
    }
    return NULL;
}

static struct node *tree_seek(struct node *n, struct hf_slice from, bool after)
{
    struct node *best = NULL;

    while (n) {
        int c = store_key_cmp(from, entry_key(n->e));

        if (c < 0 || (c == 0 && !after)) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
}

/* Splits what *slot holds (it is emptied) by a key that is not in it. Out of memory: the rest is
 * dropped; the front never looks at the tree again. */
static int tree_split(struct node **slot, struct hf_slice key, struct node **l, struct node **r)
{
    struct node *n = *slot;
    int rc = 0;

    *slot = NULL;
    while (n && rc == 0) {
        rc = node_own(&n);
        if (rc) {
            node_unref(n);
        } else if (store_key_cmp(entry_key(n->e), key) < 0) {
            *l = n;
            l = &n->right;
            n = n->right;
        } else {
            *r = n;
            r = &n->left;
            n = n->left;
        }
    }
    *l = NULL;
    *r = NULL;
    return rc;
}

/* Joins l and r, all of l's keys below r's, into *slot. */
static int tree_join(struct node *l, struct node *r, struct node **slot)
{
    while (l && r) {
        struct node **top = l->prio > r->prio ? &l : &r;
        int rc = node_own(top);

        if (rc) {
            *slot = NULL;
            node_unref(l);
            node_unref(r);
            return rc;
        }
        *slot = *top;
        if (top == &l) {
            slot = &l->right;
            l = l->right;
        } else {
            slot = &r->left;
            r = r->left;
        }
    }
    *slot = l ? l : r;
    return 0;
}

/* Walks to the node of the key, or to the link where a node of this priority belongs, owning the
 * way. */
static int tree_descend(struct node **root, struct hf_slice key, uint64_t prio, struct node ***ret)
{
    struct node **slot = root;
    int rc, c;

    while (*slot && (*slot)->prio >= prio) {
        c = store_key_cmp(key, entry_key((*slot)->e));
        rc = node_own(slot);
        if (rc)
            return rc;
        if (c == 0)
            break;
        slot = c < 0 ? &(*slot)->left : &(*slot)->right;
    }
    *ret = slot;
    return 0;
}

/* ---- provider ---- */

static uint64_t key_prio(struct hf_slice key)
{
    return hf_hash_bytes(key.data, key.len, 0x7265617074686f6cull);
}

static int mem_get(void *p, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    struct mem *m = p;
    struct node *n = tree_find(m->roots[table], key);

    if (!n)
        return HF_E_NOENT;
    *ret_val = entry_val(n->e);
    return 0;
}

static int mem_put(void *p, unsigned table, struct hf_slice key, struct hf_slice val)
{
    struct mem *m = p;
    uint64_t prio = key_prio(key);
    struct node **slot, *n;
    struct entry *e;
    int rc = tree_descend(&m->roots[table], key, prio, &slot);

    if (rc)
        return rc;
    e = entry_new(key, val);
    if (!e)
        return HF_E_NOMEM;
    n = *slot;
    if (n && store_key_cmp(entry_key(n->e), key) == 0) {
        m->bytes += val.len - n->e->vlen;
        entry_unref(n->e);
        n->e = e;
        return 0;
    }
    n = node_new(e, prio, NULL, NULL);
    if (!n) {
        entry_unref(e);
        return HF_E_NOMEM;
    }
    rc = tree_split(slot, key, &n->left, &n->right);
    *slot = n;
    m->bytes += key.len + val.len + sizeof(*n) + sizeof(*e);
    m->counts[table]++;
    return rc;
}

static int mem_del(void *p, unsigned table, struct hf_slice key)
{
    struct mem *m = p;
    struct node **slot, *n;
    int rc;

    if (!tree_find(m->roots[table], key))
        return HF_E_NOENT;
    rc = tree_descend(&m->roots[table], key, key_prio(key), &slot);
    if (rc)
        return rc;
    n = *slot;
    HF_ASSERT(n != NULL);
    HF_ASSERT(store_key_cmp(entry_key(n->e), key) == 0);
    m->bytes -= n->e->klen + n->e->vlen + sizeof(*n) + sizeof(*n->e);
    m->counts[table]--;
    rc = tree_join(n->left, n->right, slot);
    n->left = n->right = NULL;
    node_unref(n);
    return rc;
}

static int mem_seek(void *p, unsigned table, struct hf_slice from, bool after, uint64_t scan,
                    struct hf_slice *ret_key, struct hf_slice *ret_val)
{
    struct mem *m = p;
    struct node *n = tree_seek(m->roots[table], from, after);

    (void)scan;
    if (!n)
        return HF_E_NOENT;
    *ret_key = entry_key(n->e);
    *ret_val = entry_val(n->e);
    return 0;
}

static int mem_count(void *p, unsigned table, uint64_t *ret)
{
    *ret = ((struct mem *)p)->counts[table];
    return 0;
}

static int mem_commit(void *p, uint64_t applied)
{
    struct mem *m = p;
    struct mem_snap old;

    (void)applied;
    pthread_mutex_lock(&m->lock);
    old = m->committed;
    for (unsigned t = 0; t < m->ntables; t++)
        m->committed.roots[t] = node_ref(m->roots[t]);
    pthread_mutex_unlock(&m->lock);
    for (unsigned t = 0; t < m->ntables; t++)
        node_unref(old.roots[t]);
    return 0;
}

static int mem_fill(void *p, struct store_fill *ret)
{
    ret->used_bytes = ((struct mem *)p)->bytes;
    ret->fs_free_bytes = UINT64_MAX;
    return 0;
}

static int mem_snap_open(void *p, void **ret)
{
    struct mem *m = p;
    struct mem_snap *s = calloc(1, sizeof(*s));

    if (!s)
        return HF_E_NOMEM;
    pthread_mutex_lock(&m->lock);
    for (unsigned t = 0; t < m->ntables; t++)
        s->roots[t] = node_ref(m->committed.roots[t]);
    pthread_mutex_unlock(&m->lock);
    *ret = s;
    return 0;
}

static void snap_unref(struct mem_snap *s)
{
    for (unsigned t = 0; t < HF_STORE_TABLES_MAX; t++)
        node_unref(s->roots[t]);
}

static void mem_snap_close(void *snap)
{
    snap_unref(snap);
    free(snap);
}

static int mem_snap_get(void *snap, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    struct node *n = tree_find(((struct mem_snap *)snap)->roots[table], key);

    if (!n)
        return HF_E_NOENT;
    *ret_val = entry_val(n->e);
    return 0;
}

static int mem_snap_scan(void *snap, unsigned table, struct hf_slice from,
                         int (*fn)(void *arg, struct hf_slice key, struct hf_slice val), void *arg)
{
    struct node *root = ((struct mem_snap *)snap)->roots[table];
    struct node *n = tree_seek(root, from, false);
    int rc = 0;

    while (n && rc == 0) {
        rc = fn(arg, entry_key(n->e), entry_val(n->e));
        n = tree_seek(root, entry_key(n->e), true);
    }
    return rc;
}

static void mem_close(void *p)
{
    struct mem *m = p;

    for (unsigned t = 0; t < m->ntables; t++)
        node_unref(m->roots[t]);
    snap_unref(&m->committed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct store_ops mem_ops = {
    .get = mem_get,
    .put = mem_put,
    .del = mem_del,
    .seek = mem_seek,
    .count = mem_count,
    .commit = mem_commit,
    .fill = mem_fill,
    .snap_open = mem_snap_open,
    .snap_close = mem_snap_close,
    .snap_get = mem_snap_get,
    .snap_scan = mem_snap_scan,
    .close = mem_close,
};

int store_mem_open(const struct hf_store_opts *o, const struct store_ops **ret_ops, void **ret,
                   uint64_t *ret_applied)
{
    struct mem *m = calloc(1, sizeof(*m));

    if (!m)
        return HF_E_NOMEM;
    m->ntables = o->ntables;
    pthread_mutex_init(&m->lock, NULL);
    *ret_ops = &mem_ops;
    *ret = m;
    *ret_applied = 0;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of a shard's namespace, on a snapshot.
 *
 * Pass 1 reads the inodes into a hash map (one small node each: memory grows with the number of
 * inodes), pass 2 the names, in directory and cookie order, counting them at the objects they name;
 * pass 3 the inline content, pass 4 the garbage, then opens and what only they hold. At the end
 * every node must have what its inode says. Directories are reachable if the chain of directories
 * that hold their names ends at the root; a chain that does not is reported once, at the first
 * directory of it that is not reachable.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fold.h"
#include "holdfast/arena.h"
#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/map.h"
#include "meta_priv.h"

enum reach { REACH_UNKNOWN, REACH_WALKING, REACH_YES, REACH_NO };

/* What the check remembers of an inode. */
struct node {
    uint64_t ino, parent, size;
    struct node *holder; /* the directory that holds a directory's name */
    uint32_t nlink, names, subdirs;
    uint8_t type, kind, reach;
    bool has_content, content_seen, parent_seen;
    bool orphan;    /* has a row in table orph */
    uint64_t opens; /* sum over its opens less sum over their index: 0 if they match */
};

struct check {
    struct hf_meta_check *c;
    uint8_t cookie_key[16];
    struct hf_arena arena;
    struct hf_map nodes;  /* ino -> struct node, in the arena */
    struct hf_buf bucket; /* names of the running bucket: length byte, name */
    uint64_t bucket_dir, bucket_hash;
};

static void problem_at(struct check *k, const char *kind, uint64_t ino, struct hf_slice name,
                       const char *detail)
{
    k->c->problems++;
    if (k->c->problem)
        k->c->problem(k->c->arg, kind, ino, name, detail);
}

static void problem(struct check *k, const char *kind, uint64_t ino, const char *detail)
{
    problem_at(k, kind, ino, hf_slice(NULL, 0), detail);
}

static struct node *node_get(struct check *k, uint64_t ino)
{
    return hf_map_get(&k->nodes, ino);
}

/* ---- pass 1: inodes ---- */

static int on_ino(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct check *k = arg;
    struct hf_inode i;
    struct node *n;
    uint64_t ino = 0;

    if (hf_key_ino_parse(key, &ino) || hf_ino_decode(val, ino, &i)) {
        problem(k, "bad-value", ino, "inode does not decode");
        return 0;
    }
    if (hf_meta_ino_shard(ino) != k->c->shard || (ino >> 63) != 0)
        problem(k, "bad-value", ino, "inode number of another shard");
    k->c->inodes++;
    k->c->bytes += i.size;
    n = hf_arena_zalloc(&k->arena, sizeof(*n));
    if (!n)
        return HF_E_NOMEM;
    n->ino = ino;
    n->parent = i.parent;
    n->nlink = i.nlink;
    n->size = i.size;
    n->type = i.type;
    n->kind = i.kind;
    n->has_content = i.allocated != 0;
    if (i.kind == HF_KIND_CHUNKS && k->c->layout)
        k->c->layout(k->c->arg, ino, i.lay.gen, hf_layout_nchunks(&i.lay), i.lay.segs, i.lay.nsegs,
                     i.size, false);
    return hf_map_put(&k->nodes, ino, n);
}

/* ---- pass 2: names ---- */

/* Names of one bucket follow each other; the ones seen so far are kept to find a name twice. */
static int bucket_add(struct check *k, uint64_t dir, uint64_t cookie, const struct hf_dentry *d)
{
    uint8_t len = (uint8_t)d->name.len;
    int r;

    if (k->bucket_dir != dir || k->bucket_hash != cookie >> HF_SLOT_BITS) {
        k->bucket_dir = dir;
        k->bucket_hash = cookie >> HF_SLOT_BITS;
        hf_buf_reset(&k->bucket);
    }
    for (size_t at = 0; at < k->bucket.len; at += 1u + k->bucket.data[at])
        if (hf_slice_eq(hf_slice(k->bucket.data + at + 1, k->bucket.data[at]), d->name))
            problem_at(k, "duplicate-name", dir, d->name, "the directory has this name twice");
    r = hf_buf_append(&k->bucket, &len, 1);
    return r ? r : hf_buf_append(&k->bucket, d->name.data, d->name.len);
}

/* The object that the name leads to. */
static void count_name(struct check *k, struct node *dir, struct node *child,
                       const struct hf_dentry *d)
{
    if (child->type != d->type)
        problem_at(k, "type", d->child, d->name, "name and inode differ in type");
    child->names++;
    if (child->parent == dir->ino)
        child->parent_seen = true;
    if (child->type == HF__FILE_TYPE__FT_DIR) {
        dir->subdirs++;
        child->holder = dir;
    }
}

static void check_name(struct check *k, uint64_t dir_ino, uint64_t cookie,
                       const struct hf_dentry *d)
{
    struct node *dir = node_get(k, dir_ino), *child = node_get(k, d->child);

    if (hf_name_check(d->name) || hf_name_is_dot(d->name) || hf_name_is_dotdot(d->name))
        problem_at(k, "bad-value", dir_ino, d->name, "not a valid name");
    if (hf_cookie_base(k->cookie_key, d->name) >> HF_SLOT_BITS != cookie >> HF_SLOT_BITS)
        problem_at(k, "cookie", dir_ino, d->name, "the name does not hash to its cookie");
    if (!dir)
        problem_at(k, "dangling-name", dir_ino, d->name, "its directory does not exist");
    else if (dir->type != HF__FILE_TYPE__FT_DIR)
        problem_at(k, "dangling-name", dir_ino, d->name, "it lies in what is no directory");
    else if (!child)
        problem_at(k, "dangling-name", d->child, d->name, "the object does not exist");
    else
        count_name(k, dir, child, d);
}

static int on_dent(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct check *k = arg;
    struct hf_dentry d;
    uint64_t dir = 0, cookie;

    if (hf_key_dent_parse(key, &dir, &cookie) || hf_dent_decode(val, &d)) {
        problem(k, "bad-value", dir, "name does not decode");
        return 0;
    }
    k->c->dentries++;
    check_name(k, dir, cookie, &d);
    return bucket_add(k, dir, cookie, &d);
}

/* ---- pass 3 and 4: content, garbage ---- */

static int on_data(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct check *k = arg;
    struct hf_slice content;
    struct node *n;
    uint64_t ino = 0;

    if (hf_key_ino_parse(key, &ino) || hf_data_decode(val, &content)) {
        problem(k, "bad-value", ino, "inline content does not decode");
        return 0;
    }
    n = node_get(k, ino);
    if (!n || n->kind != HF_KIND_INLINE) {
        problem(k, "inline", ino, "inline content of nothing that is inline");
        return 0;
    }
    n->content_seen = true;
    if (content.len > n->size)
        problem(k, "inline", ino, "inline content is longer than the file");
    if (n->type == HF__FILE_TYPE__FT_LNK && content.len != n->size)
        problem(k, "size", ino, "the target's length is not the link's size");
    return 0;
}

static int on_gc(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct check *k = arg;
    struct hf_gc g;
    uint64_t ino = 0;
    uint32_t gen, from;

    if (hf_key_gc_parse(key, &ino, &gen, &from) || hf_gc_decode(val, &g))
        problem(k, "bad-value", ino, "garbage entry does not decode");
    else if (k->c->layout)
        k->c->layout(k->c->arg, ino, gen, g.nchunks, g.segs, g.nsegs, 0, true);
    return 0;
}

/* ---- opens and orphans ---- */

static int on_orph(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct check *k = arg;
    uint64_t ino = key.len == 8 ? hf_get_be64(key.data) : 0;
    struct node *n = node_get(k, ino);

    (void)val;
    if (!n || n->type == HF__FILE_TYPE__FT_DIR)
        problem(k, "orphan", ino, "a row for an object that does not exist, or is a directory");
    else
        n->orphan = true;
    return 0;
}

static int on_opn(void *arg, struct hf_slice key, struct hf_slice val)
{
    const uint8_t *p = key.data;
    struct check *k = arg;
    bool index = key.len == 17 && p[0] == 0xff;
    uint64_t ino, session;
    struct node *n;

    (void)val;
    if (!index && key.len != 16) {
        problem(k, "bad-value", 0, "an open that does not decode");
        return 0;
    }
    ino = hf_get_be64(index ? p + 9 : p);
    session = hf_get_be64(index ? p + 1 : p + 8);
    n = node_get(k, ino);
    if (!n)
        problem(k, "open", ino, "an open of an object that does not exist");
    else if (index)
        n->opens -= hf_hash_u64(session);
    else
        n->opens += hf_hash_u64(session);
    return 0;
}

/* ---- the sums ---- */

static void check_counts(struct check *k, const struct node *n, bool root)
{
    bool dir = n->type == HF__FILE_TYPE__FT_DIR;
    uint64_t want = dir ? 2 + n->subdirs : n->names;
    char text[96];

    if (dir && !root && n->names > 1)
        problem(k, "nlink", n->ino, "a directory with more than one name");
    if (!dir && n->orphan && (n->names || n->nlink))
        problem(k, "orphan", n->ino, "counted as without names, and has some");
    else if (!dir && n->names == 0 && n->nlink == 0 && !n->orphan)
        problem(k, "orphan", n->ino, "without names, and nobody would remove it");
    else if (!dir && n->names == 0 && !n->orphan)
        problem(k, "unreachable", n->ino, "no name leads here");
    else if (n->nlink != want) {
        (void)snprintf(text, sizeof(text), "link count is %u, should be %llu", n->nlink,
                       (unsigned long long)want);
        problem(k, "nlink", n->ino, text);
    }
    if (root  ? n->parent != n->ino
        : dir ? n->names && !n->parent_seen
              : n->parent && !n->parent_seen)
        problem(k, "parent", n->ino, "the parent pointer names no directory that holds it");
    if (n->opens)
        problem(k, "open", n->ino, "its opens and the index of opens by session differ");
    if (n->kind == HF_KIND_INLINE && n->has_content != n->content_seen)
        problem(k, "inline", n->ino, "inline content is missing, or not accounted for");
}

/* Walks up from a directory; every directory passed gets the answer. */
static void check_reach(struct check *k, struct node *n)
{
    struct node *at = n;
    bool ok;

    while (at->reach == REACH_UNKNOWN && at->holder) {
        at->reach = REACH_WALKING;
        at = at->holder;
    }
    ok = at->reach == REACH_YES;
    if (!ok && at->reach != REACH_NO)
        problem(k, "unreachable", at->ino,
                at->holder ? "directories in a loop" : "no name leads to this directory");
    if (at->reach == REACH_UNKNOWN)
        at->reach = REACH_NO;
    for (at = n; at && at->reach == REACH_WALKING; at = at->holder)
        at->reach = ok ? REACH_YES : REACH_NO;
}

static int check_sums(struct check *k)
{
    uint64_t root_ino = k->c->shard == 0 ? HF_META_ROOT_INO : 0, ino;
    struct node *root = node_get(k, root_ino);
    size_t pos = 0;
    void *v;

    if (root_ino && (!root || root->type != HF__FILE_TYPE__FT_DIR))
        problem(k, "bad-value", root_ino, "the root directory does not exist");
    else if (root)
        root->reach = REACH_YES;
    if (root && root->names)
        problem(k, "bad-value", root_ino, "a name leads to the root directory");
    while (hf_map_next(&k->nodes, &pos, &ino, &v)) {
        struct node *n = v;

        HF_ASSERT(n != NULL);
        check_counts(k, n, n == root);
        if (n->type == HF__FILE_TYPE__FT_DIR)
            check_reach(k, n);
    }
    return 0;
}

static int load_format(struct check *k, struct hf_store_snap *snap)
{
    struct hf_format_row row;
    struct hf_slice val;
    int r = hf_store_snap_get(snap, HF_T_META, hf_slice_str(HF_ROW_FORMAT), &val);

    if (r == 0)
        r = hf_format_decode(val, &row);
    if (r == 0)
        memcpy(k->cookie_key, row.cookie_key, sizeof(k->cookie_key));
    return r;
}

int hf_meta_check(struct hf_store_snap *snap, struct hf_meta_check *c)
{
    struct check k = {.c = c};
    struct hf_slice start = hf_slice("", 1); /* no key is smaller */
    int r;

    c->inodes = c->dentries = c->bytes = c->problems = 0;
    hf_arena_init(&k.arena, 0);
    r = load_format(&k, snap);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_INO, start, on_ino, &k);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_DENT, start, on_dent, &k);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_DATA, start, on_data, &k);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_GC, start, on_gc, &k);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_ORPH, start, on_orph, &k);
    if (r == 0)
        r = hf_store_snap_scan(snap, HF_T_OPN, start, on_opn, &k);
    if (r == 0)
        r = hf_check_xattrs(snap, k.cookie_key, c);
    if (r == 0)
        r = check_sums(&k);
    hf_buf_fini(&k.bucket);
    hf_map_fini(&k.nodes);
    hf_arena_fini(&k.arena);
    return r;
}

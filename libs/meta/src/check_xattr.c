/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of table xat, on a snapshot. Rows come in the order of their objects: an object's are
 * summed up and then compared with the flags of its inode. A second pass finds the inodes that
 * promise rows and have none.
 */
#include "acl.h"

#include "holdfast/endian.h"

#define FLAGS (HF_INO_XATTR | HF_INO_ACL | HF_INO_DEFAULT_ACL | HF_INO_CAPABILITY)

struct xcheck {
    struct hf_store_snap *snap;
    struct hf_meta_check *c;
    const uint8_t *cookie_key;
    /* the running object */
    uint64_t ino;
    bool exists;
    uint32_t flags; /* what its rows stand for */
    size_t names, rows;
    struct hf_inode inode;
};

static void problem(struct xcheck *k, const char *kind, uint64_t ino, struct hf_slice name,
                    const char *detail)
{
    k->c->problems++;
    if (k->c->problem)
        k->c->problem(k->c->arg, kind, ino, name, detail);
}

static void flag_problems(struct xcheck *k, const struct hf_inode *i, uint32_t flags)
{
    struct hf_slice none = {NULL, 0};

    if ((i->flags ^ flags) & HF_INO_XATTR)
        problem(k, "xattr", i->ino, none,
                flags & HF_INO_XATTR ? "has attributes that its inode does not tell of"
                                     : "its inode tells of attributes, there are none");
    if ((i->flags ^ flags) & HF_INO_ACL)
        problem(k, "acl", i->ino, none, "inode and attributes disagree about an access ACL");
    if ((i->flags ^ flags) & HF_INO_DEFAULT_ACL)
        problem(k, "acl", i->ino, none, "inode and attributes disagree about a default ACL");
    if ((i->flags ^ flags) & HF_INO_CAPABILITY)
        problem(k, "xattr", i->ino, none, "inode and attributes disagree about a capability");
}

static void finish(struct xcheck *k)
{
    struct hf_slice none = {NULL, 0};

    if (!k->exists || k->rows == 0)
        return;
    flag_problems(k, &k->inode, k->flags);
    if (k->names > HF_XAT_LIST_MAX || k->rows > HF_XAT_COUNT_MAX)
        problem(k, "xattr", k->ino, none, "more attributes than an object may have");
}

/* An inode that does not decode is the other check's to report. */
static void start(struct xcheck *k, uint64_t ino)
{
    uint8_t key[HF_KEY_INO];
    struct hf_slice val;
    int r;

    k->ino = ino;
    k->flags = 0;
    k->rows = k->names = 0;
    hf_key_ino(key, ino);
    r = hf_store_snap_get(k->snap, HF_T_INO, hf_slice(key, sizeof(key)), &val);
    k->exists = r == 0 && hf_ino_decode(val, ino, &k->inode) == 0;
    if (r == HF_E_NOENT)
        problem(k, "dangling-xattr", ino, hf_slice(NULL, 0), "attributes of nothing");
}

static void check_acl(struct xcheck *k, uint32_t flag, const struct hf_xat *x)
{
    struct hf_acl a;

    if (hf_acl_parse(x->value, &a) || a.blob.len == 0)
        problem(k, "acl", k->ino, x->name, "does not decode");
    else if (flag == HF_INO_ACL && !a.has_mask)
        problem(k, "acl", k->ino, x->name, "says nothing that the mode does not");
    else if (flag == HF_INO_DEFAULT_ACL && k->exists && k->inode.type != HF__FILE_TYPE__FT_DIR)
        problem(k, "acl", k->ino, x->name, "a default ACL of what is no directory");
}

static int on_xat(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct xcheck *k = arg;
    uint64_t ino = 0, hash = 0;
    struct hf_xat x;
    uint32_t flag;
    uint8_t ns;

    if (hf_key_xat_parse(key, &ino, &ns, &hash) || hf_xat_decode(val, &x)) {
        problem(k, "bad-value", ino, hf_slice(NULL, 0), "extended attribute does not decode");
        return 0;
    }
    if (ino != k->ino || k->rows == 0) {
        finish(k);
        start(k, ino);
    }
    k->rows++;
    k->names += strlen(hf_xat_prefix(ns)) + x.name.len + 1;
    flag = hf_xat_flag(ns, x.name);
    k->flags |= HF_INO_XATTR | flag;
    if (hf_xat_hash(k->cookie_key, ns, x.name) != (hash & ~(uint64_t)(HF_XAT_SLOTS - 1)))
        problem(k, "cookie", ino, x.name, "the attribute's name does not hash to its key");
    if (ns == HF_XAT_SYSTEM && flag == 0)
        problem(k, "bad-value", ino, x.name, "not an attribute of the system");
    else if (ns == HF_XAT_SYSTEM)
        check_acl(k, flag, &x);
    return 0;
}

/* ---- inodes that promise rows ---- */

static int on_first(void *arg, struct hf_slice key, struct hf_slice val)
{
    uint64_t *ino = arg;

    (void)val;
    *ino = key.len >= 8 ? hf_get_be64(key.data) : 0;
    return HF_E_EXIST;
}

static int on_ino(void *arg, struct hf_slice key, struct hf_slice val)
{
    struct xcheck *k = arg;
    uint64_t ino = 0, found = 0;
    uint8_t from[HF_KEY_INO];
    struct hf_inode i;
    int r;

    if (hf_key_ino_parse(key, &ino) || hf_ino_decode(val, ino, &i) || !(i.flags & FLAGS))
        return 0;
    hf_key_ino(from, ino);
    r = hf_store_snap_scan(k->snap, HF_T_XAT, hf_slice(from, 8), on_first, &found);
    if (r && r != HF_E_EXIST)
        return r;
    if (found != ino)
        flag_problems(k, &i, 0);
    return 0;
}

int hf_check_xattrs(struct hf_store_snap *snap, const uint8_t cookie_key[16],
                    struct hf_meta_check *c)
{
    struct xcheck k = {.snap = snap, .c = c, .cookie_key = cookie_key};
    struct hf_slice first = hf_slice("", 1); /* no key is smaller */
    int r = hf_store_snap_scan(snap, HF_T_XAT, first, on_xat, &k);

    if (r)
        return r;
    finish(&k);
    return hf_store_snap_scan(snap, HF_T_INO, first, on_ino, &k);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Directory entries. A name's entry lies in the bucket that its folded name hashes to, at the
 * lowest slot that was free when it was made. A name alone in its bucket, nearly always, lies at
 * slot 0: a lookup is one get. Only when slot 0 holds another name or none is the bucket scanned,
 * which costs as many steps as the bucket has names.
 */
#include "fold.h"
#include "meta_priv.h"

int hf_name_check(struct hf_slice name)
{
    if (name.len == 0)
        return HF_E_INVAL;
    if (name.len > HF_META_NAME_MAX)
        return HF_E_NAMETOOLONG;
    if (memchr(name.data, '/', name.len) || memchr(name.data, 0, name.len))
        return HF_E_INVAL;
    return 0;
}

bool hf_name_is_dot(struct hf_slice name)
{
    return name.len == 1 && memcmp(name.data, ".", 1) == 0;
}

bool hf_name_is_dotdot(struct hf_slice name)
{
    return name.len == 2 && memcmp(name.data, "..", 2) == 0;
}

/* 1: this entry has the name. */
static int dent_matches(struct hf_slice val, struct hf_slice name, struct hf_dent *ret)
{
    struct hf_dentry d;
    int r = hf_dent_decode(val, &d);

    if (r)
        return r;
    if (!hf_slice_eq(d.name, name))
        return 0;
    ret->child = d.child;
    ret->type = d.type;
    return 1;
}

/* The slots after 0. *expect: the lowest slot that may be free, kept up to date. */
static int bucket_scan(struct hf_meta *m, uint64_t dir, uint64_t base, struct hf_slice name,
                       uint64_t *expect, struct hf_dent *ret)
{
    uint8_t from[HF_KEY_DENT];
    struct hf_store_iter it;
    struct hf_slice key, val;
    uint64_t d, cookie;
    int r;

    hf_key_dent(from, dir, base + 1);
    r = hf_store_seek(m->store, HF_T_DENT, hf_slice(from, 8), hf_slice(from, sizeof(from)), &it);
    if (r)
        return r;
    while (r == 0) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = hf_key_dent_parse(key, &d, &cookie);
        if (r || d != dir || cookie >> HF_SLOT_BITS != base >> HF_SLOT_BITS)
            break;
        r = dent_matches(val, name, ret);
        if (r == 1)
            ret->cookie = cookie;
        else if (r == 0 && cookie == base + *expect)
            (*expect)++;
    }
    hf_store_iter_end(&it);
    return r == HF_E_NOENT ? 0 : r;
}

int hf_dent_find(struct hf_meta *m, uint64_t dir, struct hf_slice name, struct hf_dent *ret)
{
    uint64_t base = hf_cookie_base(m->cookie_key, name), expect = 1;
    uint8_t key[HF_KEY_DENT];
    struct hf_slice val;
    bool first;
    int r;

    hf_key_dent(key, dir, base);
    r = hf_store_get(m->store, HF_T_DENT, hf_slice(key, sizeof(key)), &val);
    if (r && r != HF_E_NOENT)
        return r;
    first = r == 0;
    r = first ? dent_matches(val, name, ret) : 0;
    if (r == 1)
        ret->cookie = base;
    else if (r == 0)
        r = bucket_scan(m, dir, base, name, &expect, ret);
    if (r)
        return r == 1 ? 0 : r;
    ret->cookie = !first ? base : expect < HF_SLOT_COUNT ? base + expect : 0;
    return HF_E_NOENT;
}

int hf_dent_put(struct hf_meta *m, uint64_t dir, uint64_t cookie, uint64_t child, uint8_t type,
                struct hf_slice name)
{
    struct hf_dentry d = {.child = child, .type = type, .name = name};
    uint8_t key[HF_KEY_DENT], val[HF_DENT_VALUE_MAX];
    size_t n = hf_dent_encode(&d, val);

    hf_key_dent(key, dir, cookie);
    return hf_store_put(m->store, HF_T_DENT, hf_slice(key, sizeof(key)), hf_slice(val, n));
}

int hf_dent_del(struct hf_meta *m, uint64_t dir, uint64_t cookie)
{
    uint8_t key[HF_KEY_DENT];

    hf_key_dent(key, dir, cookie);
    return hf_store_del(m->store, HF_T_DENT, hf_slice(key, sizeof(key)));
}

int hf_dir_is_empty(struct hf_meta *m, const struct hf_inode *dir)
{
    uint8_t from[HF_KEY_DENT];
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    if (dir->nlink > 2)
        return HF_E_NOTEMPTY;
    hf_key_dent(from, dir->ino, 0);
    r = hf_store_seek(m->store, HF_T_DENT, hf_slice(from, 8), hf_slice(from, 8), &it);
    if (r)
        return r;
    r = hf_store_next(&it, &key, &val);
    hf_store_iter_end(&it);
    if (r == 0)
        return HF_E_NOTEMPTY;
    return r == HF_E_NOENT ? 0 : r;
}

int hf_dir_search(struct hf_meta *m, const struct hf_inode *dir, const Hf__Cred *c,
                  struct hf_slice name, int special, struct hf_dent *ret)
{
    int r = hf_name_check(name);

    if (r == 0)
        r = hf_may(m, dir, c, HF_X);
    if (r)
        return r;
    if (hf_name_is_dot(name) || hf_name_is_dotdot(name))
        return special;
    return hf_dent_find(m, dir->ino, name, ret);
}

int hf_dir_may_add(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *dir,
                   const Hf__Cred *c, struct hf_slice name, struct hf_dent *ret)
{
    int r = hf_dir_search(m, dir, c, name, HF_E_EXIST, ret);

    if (r != HF_E_NOENT)
        return r ? r : HF_E_EXIST;
    r = hf_may(m, dir, c, HF_W | HF_X); /* at once: an ACL may give them only one by one */
    if (r)
        return r;
    return op->may_grow && ret->cookie ? 0 : HF_E_NOSPC;
}

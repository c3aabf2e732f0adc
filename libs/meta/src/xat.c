/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of table xat. As with names of a directory, an attribute lies in the bucket of its name's
 * hash, at the lowest slot that was free when it was made: finding one is one get, unless others
 * share its bucket. A bucket holds 256, which with a hash that nobody can aim at is never reached.
 */
#include "xat.h"

#include <sodium.h>

#include "holdfast/endian.h"

#define PREFIX 16u /* of a key: its bucket */

const char *hf_xat_prefix(uint8_t ns)
{
    static const char *const prefix[HF_XAT_NS_END] = {"", "user.", "trusted.", "security.",
                                                      "system."};

    return ns < HF_XAT_NS_END ? prefix[ns] : "";
}

static bool is(struct hf_slice name, const char *text)
{
    return hf_slice_eq(name, hf_slice_str(text));
}

uint32_t hf_xat_flag(uint8_t ns, struct hf_slice name)
{
    if (ns == HF_XAT_SYSTEM && is(name, HF_XAT_ACL_ACCESS))
        return HF_INO_ACL;
    if (ns == HF_XAT_SYSTEM && is(name, HF_XAT_ACL_DEFAULT))
        return HF_INO_DEFAULT_ACL;
    if (ns == HF_XAT_SECURITY && is(name, HF_XAT_CAPABILITY))
        return HF_INO_CAPABILITY;
    return 0;
}

uint64_t hf_xat_hash(const uint8_t cookie_key[16], uint8_t ns, struct hf_slice name)
{
    uint8_t hash[crypto_shorthash_BYTES];

    if (ns == HF_XAT_SYSTEM)
        return is(name, HF_XAT_ACL_ACCESS) ? HF_XAT_SLOTS : 2 * HF_XAT_SLOTS;
    crypto_shorthash(hash, name.data, name.len, cookie_key);
    return hf_get_le64(hash) & ~(uint64_t)(HF_XAT_SLOTS - 1);
}

/* Looks at one row; the number of the lowest slot that may be free is kept up to date. */
static int look(struct hf_slice key, struct hf_slice val, struct hf_slice name, unsigned *free_slot,
                struct hf_xat_row *row, struct hf_slice *value)
{
    struct hf_xat x;
    int r = hf_xat_decode(val, &x);

    if (r)
        return r;
    if (key.len != HF_KEY_XAT)
        return HF_E_CORRUPT;
    if (hf_slice_eq(x.name, name)) {
        memcpy(row->key, key.data, HF_KEY_XAT);
        row->found = true;
        row->bytes = (uint32_t)x.value.len;
        *value = x.value;
    } else if (((const uint8_t *)key.data)[PREFIX] == *free_slot) {
        (*free_slot)++;
    }
    return 0;
}

static int bucket_scan(struct hf_meta *m, struct hf_slice name, uint64_t hash, uint8_t ns,
                       uint64_t ino, struct hf_xat_row *row, struct hf_slice *value)
{
    struct hf_slice bucket = hf_slice(row->key, PREFIX), key, val;
    struct hf_store_iter it;
    unsigned free_slot = 0;
    int r = hf_store_seek(m->store, HF_T_XAT, bucket, bucket, &it);

    if (r)
        return r;
    while (r == 0 && !row->found) {
        r = hf_store_next(&it, &key, &val);
        if (r == 0)
            r = look(key, val, name, &free_slot, row, value);
    }
    hf_store_iter_end(&it);
    if (r && r != HF_E_NOENT)
        return r;
    row->full = !row->found && free_slot == HF_XAT_SLOTS;
    if (!row->found && !row->full)
        hf_key_xat(row->key, ino, ns, hash + free_slot);
    return 0;
}

int hf_xat_find(struct hf_meta *m, const struct hf_inode *i, uint8_t ns, struct hf_slice name,
                struct hf_xat_row *ret, struct hf_slice *ret_value)
{
    uint64_t hash = hf_xat_hash(m->cookie_key, ns, name);
    struct hf_slice val, value = {NULL, 0};
    unsigned free_slot = 0;
    int r = HF_E_NOENT;

    *ret = (struct hf_xat_row){.found = false};
    hf_key_xat(ret->key, i->ino, ns, hash);
    if (i->flags & HF_INO_XATTR)
        r = hf_store_get(m->store, HF_T_XAT, hf_slice(ret->key, HF_KEY_XAT), &val);
    if (r == 0)
        r = look(hf_slice(ret->key, HF_KEY_XAT), val, name, &free_slot, ret, &value);
    else if (r == HF_E_NOENT)
        r = 0;
    if (r == 0 && !ret->found && (i->flags & HF_INO_XATTR))
        r = bucket_scan(m, name, hash, ns, i->ino, ret, &value);
    if (ret_value)
        *ret_value = value;
    return r;
}

int hf_xat_each(struct hf_meta *m, const struct hf_inode *i, hf_xat_fn fn, void *arg)
{
    uint8_t from[HF_KEY_INO];
    struct hf_store_iter it;
    struct hf_slice key, val;
    int r;

    if (!(i->flags & HF_INO_XATTR))
        return 0;
    hf_key_ino(from, i->ino);
    r = hf_store_seek(m->store, HF_T_XAT, hf_slice(from, 8), hf_slice(from, 8), &it);
    while (r == 0) {
        uint64_t ino, hash;
        struct hf_xat x;
        uint8_t ns;

        r = hf_store_next(&it, &key, &val);
        if (r == HF_E_NOENT) {
            r = 0;
            break;
        }
        if (r == 0)
            r = hf_key_xat_parse(key, &ino, &ns, &hash);
        if (r == 0)
            r = hf_xat_decode(val, &x);
        if (r == 0)
            r = fn(arg, ns, &x);
    }
    hf_store_iter_end(&it);
    return r;
}

/* ---- writing ---- */

struct sum {
    size_t bytes, count;
};

static int add(void *arg, uint8_t ns, const struct hf_xat *x)
{
    struct sum *s = arg;

    s->bytes += strlen(hf_xat_prefix(ns)) + x->name.len + 1;
    s->count++;
    return 0;
}

int hf_xat_prepare_new(struct hf_meta_op *op, struct hf_slice name, struct hf_slice value,
                       struct hf_xat_row *row)
{
    struct hf_xat x = {name, value};

    row->val = hf_arena_alloc(op->arena, sizeof(struct hf_xat_disk) + name.len + value.len);
    if (!row->val)
        return HF_E_NOMEM;
    row->len = hf_xat_encode(&x, row->val);
    return 0;
}

/* The virtual attribute finds room in every list. */
int hf_xat_prepare(struct hf_meta *m, struct hf_meta_op *op, const struct hf_inode *i, uint8_t ns,
                   struct hf_slice name, struct hf_slice value, struct hf_xat_row *row)
{
    struct sum s = {sizeof(HF_XAT_ALLOCATION), 0};
    struct hf_xat x = {name, value};
    int r;

    if (!op->may_grow && (!row->found || value.len > row->bytes))
        return HF_E_NOSPC;
    if (row->found)
        return hf_xat_prepare_new(op, name, value, row);
    add(&s, ns, &x);
    r = hf_xat_each(m, i, add, &s);
    if (r)
        return r;
    if (row->full || s.bytes > HF_XAT_LIST_MAX || s.count > HF_XAT_COUNT_MAX)
        return HF_E_NOSPC;
    return hf_xat_prepare_new(op, name, value, row);
}

/* The flags that the row brings. */
static int flags_of(const struct hf_xat_row *row, struct hf_slice val, uint32_t *ret)
{
    struct hf_xat x;
    int r = hf_xat_decode(val, &x);

    if (r == 0)
        *ret = hf_xat_flag(row->key[8], x.name);
    return r;
}

int hf_xat_put(struct hf_meta *m, struct hf_inode *i, const struct hf_xat_row *row)
{
    uint32_t flags;
    int r = flags_of(row, hf_slice(row->val, row->len), &flags);

    if (r)
        return r;
    i->flags |= HF_INO_XATTR | flags;
    return hf_store_put(m->store, HF_T_XAT, hf_slice(row->key, HF_KEY_XAT),
                        hf_slice(row->val, row->len));
}

int hf_xat_put_new(struct hf_meta *m, struct hf_inode *i, uint8_t ns, struct hf_slice name,
                   struct hf_xat_row *row)
{
    hf_key_xat(row->key, i->ino, ns, hf_xat_hash(m->cookie_key, ns, name));
    return hf_xat_put(m, i, row);
}

static int count_two(void *arg, uint8_t ns, const struct hf_xat *x)
{
    unsigned *n = arg;

    (void)ns;
    (void)x;
    return ++*n == 2 ? HF_E_EXIST : 0;
}

int hf_xat_del(struct hf_meta *m, struct hf_inode *i, const struct hf_xat_row *row)
{
    struct hf_slice key = hf_slice(row->key, HF_KEY_XAT), val;
    uint32_t flags = 0;
    unsigned n = 0;
    int r = hf_xat_each(m, i, count_two, &n);

    if (r == HF_E_EXIST)
        r = 0;
    if (r == 0)
        r = hf_store_get(m->store, HF_T_XAT, key, &val);
    if (r == 0)
        r = flags_of(row, val, &flags);
    if (r)
        return r;
    i->flags &= ~(flags | (n == 1 ? HF_INO_XATTR : 0));
    return hf_store_del(m->store, HF_T_XAT, key);
}

int hf_xat_del_capability(struct hf_meta *m, struct hf_inode *i)
{
    struct hf_xat_row row;
    int r = hf_xat_find(m, i, HF_XAT_SECURITY, hf_slice_str(HF_XAT_CAPABILITY), &row, NULL);

    if (r == 0 && row.found)
        r = hf_xat_del(m, i, &row);
    i->flags &= ~HF_INO_CAPABILITY;
    return r == HF_E_CORRUPT ? 0 : r;
}

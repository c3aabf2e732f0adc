/* SPDX-License-Identifier: Apache-2.0
 *
 * The check finds what is wrong with attributes: each kind of damage is made by hand.
 */
#include "support_xattr.h"

#include "meta_priv.h"
#include "xat.h"

#define ACL "u::rw-,u:7:rwx,g::r--,m::rwx,o::r--"

struct world {
    struct shard s;
    struct fh d, f, bare;
};

static void world_open(struct world *w)
{
    struct shard *s = &w->s;

    shard_open(s, HF_STORE_MEM);
    cr_ok(t_make(s, &t_root, t_root_dir, "d", DIR_, 0755, &w->d));
    cr_ok(t_create(s, &t_root, w->d, "f", 0644, &w->f));
    cr_ok(t_create(s, &t_root, w->d, "bare", 0644, &w->bare));
    cr_ok(t_set_acl(s, &t_root, w->d, T_ACL_DEFAULT, ACL));
    cr_ok(t_set_acl(s, &t_root, w->f, T_ACL_ACCESS, ACL));
    cr_ok(t_setx(s, &t_root, w->f, "security.capability", hf_slice("c", 1), 0));
    cr_ok(t_setx(s, &t_root, w->f, "user.a", hf_slice("a", 1), 0));
    cr_assert_eq(shard_check(s, NULL), 0);
}

static void expect(struct world *w, const char *want)
{
    char kinds[512];

    shard_check(&w->s, kinds);
    cr_assert_str_eq(kinds, want);
    shard_close(&w->s);
}

static void key_of(struct world *w, struct fh o, uint8_t ns, const char *name,
                   uint8_t key[HF_KEY_XAT])
{
    hf_key_xat(key, o.ino, ns, hf_xat_hash(w->s.meta->cookie_key, ns, hf_slice_str(name)));
}

static void put(struct world *w, struct fh o, uint8_t ns, const char *name, const char *acl)
{
    uint8_t key[HF_KEY_XAT], val[1024], blob[T_ACL_BYTES];
    struct hf_xat x = {hf_slice_str(name), hf_slice(blob, t_acl(acl, blob))};

    key_of(w, o, ns, name, key);
    cr_ok(hf_store_put(w->s.store, HF_T_XAT, hf_slice(key, sizeof(key)),
                       hf_slice(val, hf_xat_encode(&x, val))));
}

static void del(struct world *w, struct fh o, uint8_t ns, const char *name)
{
    uint8_t key[HF_KEY_XAT];

    key_of(w, o, ns, name, key);
    cr_ok(hf_store_del(w->s.store, HF_T_XAT, hf_slice(key, sizeof(key))));
}

static void flip(struct world *w, struct fh o, uint32_t flags)
{
    struct hf_inode i;

    cr_ok(hf_ino_get(w->s.meta, o.ino, &i));
    i.flags ^= flags;
    cr_ok(hf_ino_put(w->s.meta, &i));
}

Test(xattr_check, flags)
{
    static const struct {
        uint32_t flags;
        const char *f, *bare;
    } cases[] = {
        {HF_INO_XATTR, "xattr ", "xattr "},
        {HF_INO_ACL, "acl ", "acl "},
        {HF_INO_CAPABILITY, "xattr ", "xattr "},
        {HF_INO_DEFAULT_ACL, "acl ", "acl "},
        {HF_INO_XATTR | HF_INO_ACL, "xattr acl ", "xattr acl "},
    };

    for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(cases[0]); k++) {
        struct world w;

        world_open(&w);
        flip(&w, k % 2 ? w.bare : w.f, cases[k / 2].flags);
        expect(&w, k % 2 ? cases[k / 2].bare : cases[k / 2].f);
    }
}

Test(xattr_check, rows)
{
    static const struct {
        uint8_t ns;
        const char *name, *want;
    } cases[] = {
        {HF_XAT_SYSTEM, HF_XAT_ACL_ACCESS, "acl "},
        {HF_XAT_SECURITY, HF_XAT_CAPABILITY, "xattr "},
    };
    struct world w;

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        world_open(&w);
        del(&w, w.f, cases[k].ns, cases[k].name);
        expect(&w, cases[k].want);
    }
    world_open(&w);
    del(&w, w.d, HF_XAT_SYSTEM, HF_XAT_ACL_DEFAULT); /* the only one */
    expect(&w, "xattr acl ");
    world_open(&w);
    put(&w, (struct fh){w.bare.ino + 1000, 1}, HF_XAT_USER, "a", "");
    put(&w, (struct fh){w.bare.ino + 1000, 1}, HF_XAT_USER, "b", "");
    expect(&w, "dangling-xattr ");
}

Test(xattr_check, acls)
{
    static const struct {
        bool dir;
        const char *name, *acl, *want;
    } cases[] = {
        {false, HF_XAT_ACL_ACCESS, "u::rw-,g::r--,o::r--", "acl "}, /* the mode says it */
        {false, HF_XAT_ACL_ACCESS, "u::rw-,u:7:r--,u:7:r--,g::r--,m::r--,o::r--", "acl "},
        {false, HF_XAT_ACL_ACCESS, "", "acl "},
        {true, HF_XAT_ACL_DEFAULT, "u::rw-,g::r--", "acl "},
        {true, HF_XAT_ACL_DEFAULT, "", "acl "},
        {false, HF_XAT_ACL_DEFAULT, ACL, "acl acl "}, /* no directory, and no flag */
        {false, "other", ACL, "bad-value "},
    };

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct world w;

        world_open(&w);
        put(&w, cases[k].dir ? w.d : w.f, HF_XAT_SYSTEM, cases[k].name, cases[k].acl);
        expect(&w, cases[k].want);
    }
}

Test(xattr_check, values)
{
    uint8_t key[HF_KEY_XAT], val[64];
    struct hf_xat x = {hf_slice_str("a"), hf_slice("v", 1)};
    size_t n = hf_xat_encode(&x, val);
    struct world w;

    world_open(&w);
    key_of(&w, w.f, HF_XAT_USER, "b", key); /* not where it belongs */
    cr_ok(hf_store_put(w.s.store, HF_T_XAT, hf_slice(key, sizeof(key)), hf_slice(val, n)));
    expect(&w, "cookie ");
    for (unsigned k = 0; k < 4; k++) {
        size_t len = k == 0 ? n - 1 : k == 1 ? 3 : n;

        world_open(&w);
        key_of(&w, w.f, HF_XAT_USER, "a", key);
        val[0] = k == 2 ? 9 : HF_VALUE_VERSION;
        if (k == 3)
            key[8] = HF_XAT_NS_END;
        cr_ok(hf_store_put(w.s.store, HF_T_XAT, hf_slice(key, sizeof(key)), hf_slice(val, len)));
        expect(&w, "bad-value ");
    }
}

/* Permission is not given on the word of an ACL that cannot be read, nor is anything made under it.
 */
Test(xattr_check, damage_refuses)
{
    struct world w;

    world_open(&w);
    put(&w, w.f, HF_XAT_SYSTEM, HF_XAT_ACL_ACCESS, "u::rw-");
    put(&w, w.d, HF_XAT_SYSTEM, HF_XAT_ACL_DEFAULT, "u::rw-");
    cr_status(t_read(&w.s, &t_u1, w.f, 0, 1), HF_E_CORRUPT);
    cr_assert_eq(t_access(&w.s, &t_u1, w.f), 0);
    cr_ok(t_read(&w.s, &t_root, w.f, 0, 1));
    cr_status(t_create(&w.s, &t_root, w.d, "new", 0644, NULL), HF_E_CORRUPT);
    cr_status(t_make(&w.s, &t_root, w.d, "new", DIR_, 0755, NULL), HF_E_CORRUPT);
    cr_ok(t_set_acl(&w.s, &t_root, w.f, T_ACL_ACCESS, ACL)); /* and can be set right */
    cr_ok(t_delx(&w.s, &t_root, w.d, T_ACL_DEFAULT));
    cr_ok(t_create(&w.s, &t_root, w.d, "new", 0644, NULL));
    cr_ok(t_read(&w.s, &t_u1, w.f, 0, 1));
    expect(&w, "");
}

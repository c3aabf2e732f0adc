/* SPDX-License-Identifier: Apache-2.0
 *
 * One suite for both providers: each test body runs on MEM and on LMDB.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "support_store.h"

struct fixture {
    enum hf_store_kind kind;
    char *dir;
    struct hf_store *s;
};

static struct fixture setup(enum hf_store_kind kind)
{
    struct fixture f = {.kind = kind, .dir = temp_dir_new()};
    struct hf_store_opts o = test_opts(kind, f.dir);

    cr_assert_eq(hf_store_open(&o, &f.s), 0);
    return f;
}

static void teardown(struct fixture *f)
{
    hf_store_close(f->s);
    temp_dir_free(f->dir);
}

#define ON_BOTH(name)                                                                              \
    static void name(struct fixture *f);                                                           \
    Test(conformance, name##_mem)                                                                  \
    {                                                                                              \
        struct fixture f = setup(HF_STORE_MEM);                                                    \
        name(&f);                                                                                  \
        teardown(&f);                                                                              \
    }                                                                                              \
    Test(conformance, name##_lmdb)                                                                 \
    {                                                                                              \
        struct fixture f = setup(HF_STORE_LMDB);                                                   \
        name(&f);                                                                                  \
        teardown(&f);                                                                              \
    }                                                                                              \
    static void name(struct fixture *f)

static struct hf_slice str(const char *s)
{
    return hf_slice_str(s);
}

static int put(struct hf_store *s, unsigned t, const char *k, const char *v)
{
    return hf_store_put(s, t, str(k), str(v));
}

static void expect(struct hf_store *s, unsigned t, const char *k, const char *v)
{
    struct hf_slice got;
    int rc = hf_store_get(s, t, str(k), &got);

    if (!v) {
        cr_assert_eq(rc, HF_E_NOENT, "%s is there", k);
        return;
    }
    cr_assert_eq(rc, 0, "%s: %d", k, rc);
    cr_assert(hf_slice_eq(got, str(v)), "%s has another value", k);
}

/* Keys from a small space, so that puts hit existing ones; some long, with long common prefixes. */
static struct hf_slice random_key(uint64_t *seed, uint8_t *buf)
{
    size_t len = 2 + rnd(seed) % 3;

    for (size_t i = 0; i < len; i++)
        buf[i] = (uint8_t)(rnd(seed) % 6 * 51);
    if (rnd(seed) % 8 == 0) {
        memset(buf + len, 'k', HF_STORE_KEY_MAX - len);
        len = HF_STORE_KEY_MAX - rnd(seed) % 3;
    }
    return hf_slice(buf, len);
}

static struct hf_slice random_val(uint64_t *seed, uint8_t *buf)
{
    size_t len = rnd(seed) % 64;

    if (rnd(seed) % 50 == 0)
        len = rnd(seed) % 9000;
    memset(buf, (int)(rnd(seed) & 0xff), len);
    return hf_slice(buf, len);
}

static void random_op(struct hf_store *s, struct model *m, uint64_t *seed)
{
    uint8_t kbuf[HF_STORE_KEY_MAX], vbuf[9000];
    unsigned t = (unsigned)(rnd(seed) % 3);
    struct hf_slice key = random_key(seed, kbuf);

    if (rnd(seed) % 3 == 0) {
        cr_assert_eq(hf_store_del(s, t, key), 0);
        model_del(m, t, key);
    } else {
        struct hf_slice val = random_val(seed, vbuf);

        cr_assert_eq(hf_store_put(s, t, key, val), 0);
        model_put(m, t, key, val);
    }
}

ON_BOTH(random_ops_equal_the_model)
{
    struct model m = {0};
    uint64_t seed = 1;

    for (unsigned i = 0; i < 20000; i++) {
        random_op(f->s, &m, &seed);
        if (i % 997 == 0)
            cr_assert_eq(hf_store_checkpoint(f->s, i), 0);
        if (i % 4001 == 0)
            model_check(&m, f->s);
    }
    model_check(&m, f->s);
    model_fini(&m);
}

ON_BOTH(scans_with_prefix_and_from)
{
    struct model m = {0};
    uint64_t seed = 2;
    uint8_t kbuf[HF_STORE_KEY_MAX], fbuf[HF_STORE_KEY_MAX];

    for (unsigned i = 0; i < 1500; i++)
        random_op(f->s, &m, &seed);
    for (unsigned i = 0; i < 3000; i++) {
        unsigned t = (unsigned)(rnd(&seed) % 3);
        struct hf_slice prefix = hf_slice(random_key(&seed, kbuf).data, rnd(&seed) % 4);
        struct hf_slice from = random_key(&seed, fbuf);
        struct hf_store_iter it;
        struct hf_slice k, v;
        bool equal;
        size_t at;

        if (rnd(&seed) % 2)
            from.len = 0;
        /* from below, inside or above the prefix */
        if (rnd(&seed) % 2)
            memcpy(fbuf, kbuf, prefix.len);
        at = model_find(&m, t, from, &equal);
        cr_assert_eq(hf_store_seek(f->s, t, prefix, from, &it), 0);
        for (; at < m.n && m.e[at].table == t; at++) {
            if (m.e[at].klen < prefix.len || memcmp(m.e[at].key, prefix.data, prefix.len) != 0)
                continue;
            cr_assert_eq(hf_store_next(&it, &k, &v), 0);
            cr_assert(hf_slice_eq(k, hf_slice(m.e[at].key, m.e[at].klen)));
            cr_assert(hf_slice_eq(v, hf_slice(m.e[at].val, m.e[at].vlen)));
        }
        cr_assert_eq(hf_store_next(&it, &k, &v), HF_E_NOENT);
        cr_assert_eq(hf_store_next(&it, &k, &v), HF_E_NOENT);
        hf_store_iter_end(&it);
    }
    model_fini(&m);
}

ON_BOTH(nested_scans_of_one_table)
{
    struct hf_store_iter a, b;
    struct hf_slice ka, kb, v;
    unsigned pairs = 0;

    for (char c = 'a'; c <= 'e'; c++)
        cr_assert_eq(hf_store_put(f->s, 0, hf_slice(&c, 1), str("v")), 0);
    cr_assert_eq(hf_store_seek(f->s, 0, str(""), str(""), &a), 0);
    while (hf_store_next(&a, &ka, &v) == 0) {
        cr_assert_eq(hf_store_seek(f->s, 0, str(""), str(""), &b), 0);
        while (hf_store_next(&b, &kb, &v) == 0)
            pairs++;
        hf_store_iter_end(&b);
    }
    hf_store_iter_end(&a);
    cr_assert_eq(pairs, 25);
}

ON_BOTH(removing_what_a_scan_finds)
{
    struct hf_store_iter it;
    struct hf_slice k, v;
    char key[8];
    unsigned n = 0;

    for (unsigned i = 0; i < 500; i++) {
        snprintf(key, sizeof(key), "k%03u", i);
        cr_assert_eq(put(f->s, 0, key, "value"), 0);
    }
    for (;;) {
        cr_assert_eq(hf_store_seek(f->s, 0, str("k"), str(""), &it), 0);
        if (hf_store_next(&it, &k, &v) != 0)
            break;
        cr_assert_eq(hf_store_del(f->s, 0, k), 0);
        n++;
    }
    hf_store_iter_end(&it);
    cr_assert_eq(n, 500);
    cr_assert_eq(hf_store_count(f->s, 0), 0);
}

ON_BOTH(a_value_from_the_store_can_be_put_back)
{
    struct hf_slice v;
    char key[8], big[1500];

    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = 'y';
    cr_assert_eq(hf_store_put(f->s, 0, str("k000"), hf_slice(big, sizeof(big))), 0);
    for (unsigned i = 1; i < 200; i++) {
        snprintf(key, sizeof(key), "k%03u", i - 1);
        cr_assert_eq(hf_store_get(f->s, 0, str(key), &v), 0);
        snprintf(key, sizeof(key), "k%03u", i);
        cr_assert_eq(hf_store_put(f->s, 0, str(key), v), 0);
    }
    for (unsigned i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "k%03u", i);
        cr_assert_eq(hf_store_get(f->s, 0, str(key), &v), 0);
        cr_assert(hf_slice_eq(v, hf_slice(big, sizeof(big))), "%s", key);
    }
}

ON_BOTH(limits)
{
    uint8_t key[HF_STORE_KEY_MAX + 1] = {1};
    uint8_t *val = calloc(1, HF_STORE_VAL_MAX + 1);
    struct hf_slice got;
    struct hf_store_iter it;

    cr_assert_not_null(val);
    val[HF_STORE_VAL_MAX - 1] = 9;
    cr_assert_eq(hf_store_put(f->s, 0, hf_slice(key, 511), hf_slice(val, HF_STORE_VAL_MAX)), 0);
    cr_assert_eq(hf_store_get(f->s, 0, hf_slice(key, 511), &got), 0);
    cr_assert(hf_slice_eq(got, hf_slice(val, HF_STORE_VAL_MAX)));
    cr_assert_eq(hf_store_put(f->s, 0, hf_slice(key, 512), str("v")), HF_E_TOOBIG);
    cr_assert_eq(hf_store_get(f->s, 0, hf_slice(key, 512), &got), HF_E_TOOBIG);
    cr_assert_eq(hf_store_del(f->s, 0, hf_slice(key, 512)), HF_E_TOOBIG);
    cr_assert_eq(hf_store_put(f->s, 0, hf_slice(key, 0), str("v")), HF_E_INVAL);
    cr_assert_eq(hf_store_put(f->s, 0, str("k"), hf_slice(val, HF_STORE_VAL_MAX + 1)), HF_E_TOOBIG);
    cr_assert_eq(hf_store_put(f->s, 3, str("k"), str("v")), HF_E_INVAL);
    cr_assert_eq(hf_store_seek(f->s, 3, str(""), str(""), &it), HF_E_INVAL);
    cr_assert_eq(hf_store_seek(f->s, 0, hf_slice(key, 17), str(""), &it), HF_E_INVAL);
    cr_assert_eq(hf_store_seek(f->s, 0, str(""), hf_slice(key, 512), &it), HF_E_TOOBIG);
    cr_assert_eq(hf_store_put(f->s, 0, str("empty"), str("")), 0);
    expect(f->s, 0, "empty", "");
    cr_assert_eq(hf_store_dirty(f->s), 2);
    free(val);
}

ON_BOTH(redo_makes_the_same_state)
{
    struct fixture g = setup(f->kind);
    struct model m = {0};
    struct hf_buf redo = {0};
    uint64_t seed = 3;

    cr_assert_eq(hf_store_redo_bytes(f->s), 0);
    cr_assert_eq(hf_store_del(f->s, 0, str("absent")), 0);
    cr_assert_eq(hf_store_redo_bytes(f->s), 0);
    cr_assert_eq(hf_store_redo_take(f->s, &redo), 0);
    cr_assert_eq(redo.len, 0);
    cr_assert_eq(hf_store_redo_apply(g.s, hf_buf_slice(&redo)), 0);
    for (unsigned batch = 0; batch < 200; batch++) {
        size_t n;

        for (unsigned i = 0; i < 20; i++)
            random_op(f->s, &m, &seed);
        hf_buf_reset(&redo);
        n = hf_store_redo_bytes(f->s);
        cr_assert_eq(hf_store_redo_take(f->s, &redo), 0);
        cr_assert_eq(redo.len, n);
        cr_assert_eq(hf_store_redo_bytes(f->s), 0);
        cr_assert_eq(hf_store_redo_apply(g.s, hf_buf_slice(&redo)), 0);
    }
    cr_assert_eq(hf_store_redo_bytes(g.s), 0, "what is applied is not captured again");
    cr_assert_eq(hf_store_seen(g.s), 0);
    model_check(&m, f->s);
    model_check(&m, g.s);
    model_fini(&m);
    hf_buf_fini(&redo);
    teardown(&g);
}

ON_BOTH(bad_redo_changes_nothing)
{
    struct fixture g = setup(f->kind);
    struct model none = {0};
    struct hf_buf redo = {0};
    uint64_t seed = 4;
    unsigned refused = 0;

    cr_assert_eq(put(f->s, 0, "key", "value"), 0);
    cr_assert_eq(put(f->s, 2, "other", "value"), 0);
    cr_assert_eq(hf_store_del(f->s, 0, str("key")), 0);
    cr_assert_eq(hf_store_redo_take(f->s, &redo), 0);
    for (size_t n = 1; n < redo.len; n++)
        cr_assert_eq(hf_store_redo_apply(g.s, hf_slice(redo.data, n)), HF_E_CORRUPT, "cut at %zu",
                     n);
    model_check(&none, g.s);
    /* Any bytes: refused as a whole, or harmless. */
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t copy[256];
        size_t dirty = hf_store_dirty(g.s);

        cr_assert_lt(redo.len, sizeof(copy));
        memcpy(copy, redo.data, redo.len);
        for (unsigned j = 0; j <= i % 3; j++)
            copy[rnd(&seed) % redo.len] = (uint8_t)rnd(&seed);
        if (hf_store_redo_apply(g.s, hf_slice(copy, redo.len)) != 0) {
            refused++;
            cr_assert_eq(hf_store_dirty(g.s), dirty);
        }
    }
    cr_assert_gt(refused, 5000);
    cr_assert_eq(put(g.s, 0, "still", "usable"), 0);
    hf_buf_fini(&redo);
    teardown(&g);
}

ON_BOTH(seen_tells_the_batch_that_a_read_depends_on)
{
    struct hf_slice v;
    struct hf_store_iter it;
    struct hf_store *s = f->s;

    cr_assert_eq(put(s, 0, "before", "x"), 0);
    expect(s, 0, "before", "x");
    cr_assert_eq(hf_store_seen(s), 0, "not tracked before the first batch");
    hf_store_batch(s, 1);
    cr_assert_eq(put(s, 0, "object01a", "x"), 0);
    hf_store_batch(s, 2);
    cr_assert_eq(put(s, 0, "object02a", "x"), 0);
    cr_assert_eq(put(s, 1, "object01a", "x"), 0);

    hf_store_seen_reset(s);
    expect(s, 0, "before", "x");
    cr_assert_eq(hf_store_seen(s), 0);
    expect(s, 0, "object01a", "x");
    cr_assert_eq(hf_store_seen(s), 1);
    cr_assert_eq(hf_store_get(s, 0, str("object01b"), &v), HF_E_NOENT);
    cr_assert_eq(hf_store_seen(s), 1);
    expect(s, 1, "object01a", "x");
    cr_assert_eq(hf_store_seen(s), 2);

    hf_store_seen_reset(s);
    cr_assert_eq(hf_store_seen(s), 0);
    cr_assert_eq(hf_store_seek(s, 0, str("object01"), str("object01zzz"), &it), 0);
    cr_assert_eq(hf_store_seen(s), 1, "a scan depends on its object, also where it finds nothing");
    cr_assert_eq(hf_store_seek(s, 0, str("object02a"), str(""), &it), 0);
    cr_assert_eq(hf_store_seen(s), 2);
    hf_store_seen_reset(s);
    cr_assert_eq(hf_store_seek(s, 0, str("before"), str(""), &it), 0);
    cr_assert_eq(hf_store_seen(s), 2, "a short prefix: the table");
    hf_store_seen_reset(s);
    cr_assert_eq(hf_store_seek(s, 2, str(""), str(""), &it), 0);
    cr_assert_eq(hf_store_seen(s), 0, "nothing changed in that table");
    hf_store_iter_end(&it);

    /* A deletion counts like a change; the newest batch of a key wins. */
    hf_store_batch(s, 3);
    cr_assert_eq(hf_store_del(s, 0, str("object01a")), 0);
    hf_store_seen_reset(s);
    expect(s, 0, "object01a", NULL);
    cr_assert_eq(hf_store_seen(s), 3);
    hf_store_durable(s, 2);
    cr_assert_eq(hf_store_seen(s), 3);
    hf_store_seen_reset(s);
    expect(s, 0, "object02a", "x");
    cr_assert_eq(hf_store_seen(s), 0, "durable");
    expect(s, 0, "object01a", NULL);
    cr_assert_eq(hf_store_seen(s), 3);
    hf_store_durable(s, 3);
    cr_assert_eq(hf_store_seen(s), 0);
    cr_assert_eq(hf_store_seek(s, 0, str(""), str(""), &it), 0);
    cr_assert_eq(hf_store_seen(s), 0);
}

ON_BOTH(seen_never_too_little_over_many_batches)
{
    uint64_t seed = 5, last[256] = {0}, durable = 0;
    char key[16];

    for (uint64_t batch = 1; batch < 2000; batch++) {
        hf_store_batch(f->s, batch);
        for (unsigned i = 0; i < 5; i++) {
            unsigned k = (unsigned)(rnd(&seed) % 256);

            snprintf(key, sizeof(key), "key-%04u-x", k);
            cr_assert_eq(put(f->s, 0, key, "v"), 0);
            last[k] = batch;
        }
        if (batch > 40 && rnd(&seed) % 4 == 0) {
            uint64_t upto = batch - rnd(&seed) % 40;

            hf_store_durable(f->s, upto);
            durable = upto > durable ? upto : durable;
        }
        for (unsigned i = 0; i < 5; i++) {
            unsigned k = (unsigned)(rnd(&seed) % 256);
            struct hf_slice v;

            snprintf(key, sizeof(key), "key-%04u-x", k);
            hf_store_seen_reset(f->s);
            (void)hf_store_get(f->s, 0, str(key), &v);
            cr_assert_eq(hf_store_seen(f->s), last[k] > durable ? last[k] : 0);
        }
    }
}

struct scan_check {
    struct model *m;
    size_t at;
    int stop_after;
};

static int scan_one(void *arg, struct hf_slice k, struct hf_slice v)
{
    struct scan_check *c = arg;
    const struct model_entry *e = &c->m->e[c->at++];

    if (!hf_slice_eq(k, hf_slice(e->key, e->klen)) || !hf_slice_eq(v, hf_slice(e->val, e->vlen)))
        return -1;
    return c->stop_after && --c->stop_after == 0 ? 77 : 0;
}

struct snap_thread {
    struct hf_store_snap *snap;
    struct model *m;
    int rc;
};

static void *snap_read(void *arg)
{
    struct snap_thread *t = arg;
    struct scan_check c = {.m = t->m};

    for (unsigned table = 0; table < 3 && t->rc == 0; table++)
        t->rc = hf_store_snap_scan(t->snap, table, hf_slice("", 0), scan_one, &c);
    if (c.at != t->m->n)
        t->rc = -1;
    return NULL;
}

ON_BOTH(snapshots_see_only_the_checkpoint)
{
    struct model m = {0};
    struct snap_thread t = {.m = &m};
    struct hf_store_snap *early, *late;
    struct hf_slice v;
    uint64_t seed = 6;
    pthread_t th;

    cr_assert_eq(put(f->s, 0, "a", "1"), 0);
    cr_assert_eq(hf_store_snap_open(f->s, &early), 0);
    cr_assert_eq(hf_store_snap_get(early, 0, str("a"), &v), HF_E_NOENT);
    cr_assert_eq(hf_store_del(f->s, 0, str("a")), 0);
    for (unsigned i = 0; i < 2000; i++)
        random_op(f->s, &m, &seed);
    cr_assert_eq(hf_store_checkpoint(f->s, 1), 0);
    cr_assert_eq(hf_store_snap_open(f->s, &late), 0);
    cr_assert_eq(hf_store_snap_get(early, 0, str("a"), &v), HF_E_NOENT);
    t.snap = late;
    cr_assert_eq(pthread_create(&th, NULL, snap_read, &t), 0);
    /* Meanwhile the owner goes on, over checkpoints. */
    for (unsigned i = 0; i < 3000; i++) {
        char key[16];

        snprintf(key, sizeof(key), "later%u", i % 700);
        cr_assert_eq(put(f->s, i % 3, key, "x"), 0);
        if (i % 500 == 0)
            cr_assert_eq(hf_store_checkpoint(f->s, 2 + i), 0);
    }
    pthread_join(th, NULL);
    cr_assert_eq(t.rc, 0);
    snap_read(&t);
    cr_assert_eq(t.rc, 0, "unchanged by later checkpoints");
    {
        struct scan_check c = {.m = &m, .at = 3, .stop_after = 2};
        struct hf_slice from = hf_slice(m.e[3].key, m.e[3].klen);

        cr_assert_eq(hf_store_snap_scan(late, m.e[3].table, from, scan_one, &c), 77);
        cr_assert_eq(c.at, 5);
    }
    hf_store_snap_close(early);
    hf_store_snap_close(late);
    model_fini(&m);
}

ON_BOTH(may_grow_turns_false_and_recovers)
{
    struct hf_store_opts o = test_opts(f->kind, NULL);
    struct hf_store *s;
    struct hf_store_space sp;
    char *dir = temp_dir_new(), key[16], val[4000];
    unsigned n = 0;

    o.dir = dir;
    o.map_bytes = 8u << 20;
    o.reserve_bytes = 2u << 20;
    cr_assert_eq(hf_store_open(&o, &s), 0);
    memset(val, 'v', sizeof(val));
    while (hf_store_may_grow(s, 1)) {
        snprintf(key, sizeof(key), "k%06u", n++);
        cr_assert_eq(hf_store_put(s, 0, str(key), hf_slice(val, sizeof(val))), 0);
        cr_assert_lt(n, 100000u);
        if (n % 100 == 0)
            cr_assert_eq(hf_store_checkpoint(s, n), 0);
    }
    cr_assert_gt(n, 500u);
    hf_store_space(s, &sp);
    cr_assert_eq(sp.limit_bytes, 8u << 20);
    cr_assert_gt(sp.used_bytes, 3u << 20);
    /* Removing goes on, and makes room again. */
    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "k%06u", i);
        cr_assert_eq(hf_store_del(s, 0, str(key)), 0);
        if (i % 100 == 99)
            cr_assert_eq(hf_store_checkpoint(s, n + i), 0);
    }
    cr_assert_eq(hf_store_checkpoint(s, 2 * n), 0);
    cr_assert(hf_store_may_grow(s, 2));
    hf_store_close(s);
    temp_dir_free(dir);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The stored layout: what is encoded decodes to the same, everything else is refused; folding.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support_meta.h"

#include "acl.h"
#include "fold.h"
#include "holdfast/endian.h"
#include "holdfast/map.h"
#include "meta_priv.h"

static struct hf_inode sample(uint8_t type, uint8_t kind)
{
    struct hf_inode i;

    memset(&i, 0, sizeof(i));
    i.ino = 99;
    i.type = type;
    i.kind = kind;
    i.mode = 06754;
    i.nlink = 3;
    i.uid = 4;
    i.gid = 5;
    i.gen = 6;
    i.flags = 7;
    i.rdev_major = 8;
    i.rdev_minor = 9;
    i.size = INT64_MAX;
    i.allocated = 11;
    i.atime_ns = INT64_MIN;
    i.mtime_ns = -1;
    i.ctime_ns = INT64_MAX;
    i.btime_ns = 15;
    i.change = UINT64_MAX;
    i.parent = 17;
    i.verf = UINT64_MAX - 1;
    i.project = 19;
    i.layout_gens = 20;
    if (kind == HF_KIND_CHUNKS) {
        i.lay = (struct hf_layout){.pool = 1,
                                   .chunk_bytes = 2,
                                   .gen = 3,
                                   .fence = 4,
                                   .nranges = 2,
                                   .ranges = {{0, 3}, {4, 9}},
                                   .nsegs = 64,
                                   .trim = true,
                                   .trim_from = 6,
                                   .trim_to = 7};
        for (uint32_t k = 0; k < 64; k++)
            i.lay.segs[k] = k * 1000;
    }
    return i;
}

Test(layout, inode)
{
    static const uint8_t kinds[][2] = {{REG, 1}, {REG, 2},  {DIR_, 0}, {LNK, 1},
                                       {BLK, 0}, {SOCK, 0}, {FIFO, 0}};
    uint8_t val[HF_INO_VALUE_MAX + 1];

    for (size_t k = 0; k < HF_ARRAY_LEN(kinds); k++) {
        struct hf_inode i = sample(kinds[k][0], kinds[k][1]), got;
        size_t n = hf_ino_encode(&i, val);

        memset(&got, 0, sizeof(got));
        cr_ok(hf_ino_decode(hf_slice(val, n), 99, &got));
        cr_assert(memcmp(&i, &got, offsetof(struct hf_inode, lay)) == 0);
        cr_assert(memcmp(&i.lay, &got.lay, sizeof(i.lay)) == 0);
        for (size_t cut = 0; cut < n; cut++)
            cr_status(hf_ino_decode(hf_slice(val, cut), 99, &got), HF_E_CORRUPT);
        cr_status(hf_ino_decode(hf_slice(val, n + 1), 99, &got), HF_E_CORRUPT);
    }
}

Test(layout, inode_ranges)
{
    struct hf_inode i = sample(REG, HF_KIND_CHUNKS), got;
    uint8_t good[HF_INO_VALUE_MAX], bad[HF_INO_VALUE_MAX];
    size_t n = hf_ino_encode(&i, good);
    const struct {
        size_t at;
        uint8_t value;
    } cases[] = {
        {0, 0},
        {0, 2},
        {1, 0},
        {1, 8},
        {1, DIR_},
        {3, 0x10},
        {offsetof(struct hf_ino_disk, kind), 0},
        {offsetof(struct hf_ino_disk, kind), 3},
        {offsetof(struct hf_ino_disk, size) + 7, 0x80},
        {offsetof(struct hf_ino_disk, allocated) + 7, 0x80},
        {offsetof(struct hf_ino_disk, gen), 0},
        {120 + offsetof(struct hf_layout_disk, nsegs), 65},
        {120 + offsetof(struct hf_layout_disk, nsegs), 0},
        {120 + offsetof(struct hf_layout_disk, nsegs), 63},
        {120 + offsetof(struct hf_layout_disk, chunk_bytes), 0},
        {120 + offsetof(struct hf_layout_disk, trim), 2},
        {120 + offsetof(struct hf_layout_disk, trim_from), 8},
        {120 + offsetof(struct hf_layout_disk, nranges), 1},
        {120 + offsetof(struct hf_layout_disk, nranges), 9},
        {120 + 48 + 64 * 4, 3},      /* 3..3 */
        {120 + 48 + 64 * 4 + 8, 3},  /* 0..3 3..9 */
        {120 + 48 + 64 * 4 + 12, 4}, /* 4..4 */
    };

    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        memcpy(bad, good, n);
        bad[cases[k].at] = cases[k].value;
        int r = hf_ino_decode(hf_slice(bad, n), 99, &got);
        cr_assert(r == HF_E_CORRUPT, "case %zu: %s", k, hf_err_name(r));
    }
}

/* A file may be without names, as long as it is open; nothing else may. */
Test(layout, inode_without_names)
{
    static const uint8_t kinds[][2] = {{REG, 1}, {REG, 2}, {DIR_, 0}, {LNK, 1}, {FIFO, 0}};
    uint8_t val[HF_INO_VALUE_MAX];

    for (size_t k = 0; k < HF_ARRAY_LEN(kinds); k++) {
        struct hf_inode i = sample(kinds[k][0], kinds[k][1]), got;
        size_t n;

        i.nlink = 0;
        n = hf_ino_encode(&i, val);
        cr_status(hf_ino_decode(hf_slice(val, n), 99, &got), i.type == REG ? 0 : HF_E_CORRUPT);
    }
}

/* Whatever the bytes, every decoder returns 0 or an error and reads inside the value (the sanitizer
 * watches: each value has its own allocation). */
static void decode_all(const uint8_t *data, size_t len)
{
    uint8_t *own = malloc(len ? len : 1);
    struct hf_slice v = hf_slice(own, len), out;
    struct hf_format_row format;
    struct hf_inode i;
    struct hf_dentry d;
    struct hf_sess se;
    struct hf_slot sl;
    struct hf_gc g;
    struct hf_xat x;
    struct hf_acl acl;
    uint64_t a, b;
    uint32_t c, e;
    uint8_t ns;

    cr_assert(own);
    if (len)
        memcpy(own, data, len);
    if (hf_ino_decode(v, 1, &i) == 0) {
        uint8_t again[HF_INO_VALUE_MAX];
        cr_assert_eq(hf_ino_encode(&i, again), len);
    }
    if (hf_dent_decode(v, &d) == 0)
        cr_assert(d.name.len >= 1 && d.name.len <= HF_META_NAME_MAX);
    if (hf_data_decode(v, &out) == 0)
        cr_assert(out.len == len - sizeof(struct hf_data_disk));
    if (hf_sess_decode(v, &se) == 0)
        cr_assert(se.client.len <= HF_CLIENT_NAME_MAX && se.nslots <= HF_SESS_SLOTS_MAX);
    if (hf_slot_decode(v, &sl) == 0)
        cr_assert(sl.reply.len <= HF_SLOT_REPLY_MAX);
    if (hf_gc_decode(v, &g) == 0)
        cr_assert(g.nsegs >= 1 && g.nsegs <= HF_SEGS_MAX);
    if (hf_xat_decode(v, &x) == 0) {
        cr_assert(x.name.len >= 1 && x.name.len <= HF_XAT_NAME_MAX &&
                  x.value.len <= HF_XAT_VALUE_MAX);
        cr_assert((const uint8_t *)x.value.data + x.value.len == own + len);
    }
    if (hf_acl_parse(v, &acl) == 0)
        cr_assert((acl.blob.len - 4) / 8 <= HF_ACL_ENTRIES_MAX || acl.blob.len == 0);
    (void)hf_key_xat_parse(v, &a, &ns, &b);
    (void)hf_format_decode(v, &format);
    (void)hf_counter_decode(v, &a);
    (void)hf_map_decode(v, &out);
    (void)hf_key_ino_parse(v, &a);
    (void)hf_key_dent_parse(v, &a, &b);
    (void)hf_key_gc_parse(v, &a, &c, &e);
    free(own);
}

Test(layout, random_bytes, .timeout = 60)
{
    struct hf_inode i = sample(REG, HF_KIND_CHUNKS);
    struct hf_dentry d = {.child = 5, .type = REG, .name = hf_slice("name", 4)};
    struct hf_gc g = {.nchunks = 1, .chunk_bytes = 4, .nsegs = 2};
    struct hf_xat x = {hf_slice("name", 4), hf_slice("value", 5)};
    static const uint8_t acl[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  5,
                                  0, 7, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                                  7, 0, 255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255};
    uint8_t buf[600];
    uint64_t r = 1;
#define NEXT(n) (r = hf_hash_u64(r + (n) + 1))

    for (unsigned k = 0; k < 300000; k++) {
        size_t len;

        switch (k % 6) {
        case 0:
            len = hf_ino_encode(&i, buf);
            break;
        case 1:
            len = hf_dent_encode(&d, buf);
            break;
        case 2:
            len = hf_gc_encode(&g, buf);
            break;
        case 3:
            len = hf_xat_encode(&x, buf);
            break;
        case 4:
            len = sizeof(acl);
            memcpy(buf, acl, len);
            break;
        default:
            len = NEXT(k) % 200;
            for (size_t n = 0; n < len; n++)
                buf[n] = (uint8_t)(NEXT(n) % (n ? 256 : 3));
            break;
        }
        for (unsigned n = (unsigned)(NEXT(k) % 4); n && len; n--) {
            size_t at = NEXT(n) % len;

            buf[at] = (uint8_t)(r >> 32);
        }
        if (len && (r & 0x700) == 0)
            len -= (r >> 16) % len;
        decode_all(buf, len);
    }
}

Test(layout, xattr_bytes)
{
    static const uint8_t want[] = {1,   0,   4,   0,   5,   0,   0,   0,  'n',
                                   'a', 'm', 'e', 'v', 'a', 'l', 'u', 'e'};
    static const uint8_t want_key[HF_KEY_XAT] = {0,    0,    0,    0,    0,    0,    1,
                                                 2,    3,    0x11, 0x22, 0x33, 0x44, 0x55,
                                                 0x66, 0x77, 0x88, 255,  255,  255,  255};
    struct hf_xat x = {hf_slice("name", 4), hf_slice("value", 5)}, got;
    uint8_t val[32], key[HF_KEY_XAT], ns;
    uint64_t ino, hash;

    cr_assert_eq(hf_xat_encode(&x, val), sizeof(want));
    cr_assert_eq(memcmp(val, want, sizeof(want)), 0);
    cr_ok(hf_xat_decode(hf_slice(val, sizeof(want)), &got));
    cr_assert(hf_slice_eq(got.name, x.name) && hf_slice_eq(got.value, x.value));
    for (size_t len = 0; len < sizeof(want); len++)
        cr_status(hf_xat_decode(hf_slice(val, len), &got), HF_E_CORRUPT);
    hf_key_xat(key, 0x102, HF_XAT_SECURITY, 0x1122334455667788);
    cr_assert_eq(memcmp(key, want_key, sizeof(key)), 0);
    cr_ok(hf_key_xat_parse(hf_slice(key, sizeof(key)), &ino, &ns, &hash));
    cr_assert(ino == 0x102 && ns == HF_XAT_SECURITY && hash == 0x1122334455667788);
    cr_status(hf_key_xat_parse(hf_slice(key, sizeof(key) - 1), &ino, &ns, &hash), HF_E_CORRUPT);
}

Test(layout, keys_sort)
{
    uint8_t a[HF_KEY_DENT], b[HF_KEY_DENT];
    uint64_t dir, cookie;

    hf_key_dent(a, 0x1ff, 0xffff);
    hf_key_dent(b, 0x200, 0);
    cr_assert(memcmp(a, b, sizeof(a)) < 0);
    hf_key_dent(b, 0x1ff, 0x10000);
    cr_assert(memcmp(a, b, sizeof(a)) < 0);
    cr_ok(hf_key_dent_parse(hf_slice(b, sizeof(b)), &dir, &cookie));
    cr_assert(dir == 0x1ff && cookie == 0x10000);
    cr_assert(b[16] == 0xff && b[19] == 0xff, "the live tree sorts behind every snapshot");
    cr_status(hf_key_dent_parse(hf_slice(b, 19), &dir, &cookie), HF_E_CORRUPT);
}

static bool reserve(struct hf_layout *l, uint64_t from, uint64_t to)
{
    return hf_layout_reserve(l, from * l->chunk_bytes, to * l->chunk_bytes);
}

/* Whatever is entered stays covered; ranges are sound and few. */
Test(layout, ranges)
{
    struct hf_layout l;
    uint64_t r = 1;

    for (unsigned round = 0; round < 2000; round++) {
        struct hf_range added[40];

        l = (struct hf_layout){.chunk_bytes = 65536, .nsegs = 1};
        for (unsigned k = 0; k < 40; k++) {
            uint64_t wide = (r = hf_hash_u64(r + k)) % 3 ? 50 : 4000000000;
            uint64_t from = (r = hf_hash_u64(r)) % wide, len = 1 + (r >> 40) % 20;

            added[k] = (struct hf_range){(uint32_t)from, (uint32_t)(from + len)};
            reserve(&l, from, from + len);
            cr_assert(!reserve(&l, from, from + len), "entered twice");
            cr_assert(l.nranges >= 1 && l.nranges <= HF_RANGES_MAX);
            for (unsigned n = 0; n < l.nranges; n++)
                cr_assert(l.ranges[n].from < l.ranges[n].to &&
                          (n == 0 || l.ranges[n - 1].to < l.ranges[n].from));
            for (unsigned n = 0; n <= k; n++) {
                bool covered = false;

                for (unsigned x = 0; x < l.nranges; x++)
                    covered |= l.ranges[x].from <= added[n].from && added[n].to <= l.ranges[x].to;
                cr_assert(covered);
            }
        }
    }
}

Test(layout, ranges_grow_ahead)
{
    struct hf_layout l = {.chunk_bytes = 4u << 20, .nsegs = 1};
    unsigned changes = 0;

    for (uint64_t k = 0; k < 1000; k++)
        changes += reserve(&l, k, k + 1);
    cr_assert(l.nranges == 1 && l.ranges[0].from == 0 && l.ranges[0].to == 1024);
    cr_assert(changes < 30, "%u", changes);
}

Test(layout, trim_pieces)
{
    struct hf_layout l = {.chunk_bytes = 100000, .nsegs = 1, .fence = 1};
    uint64_t from, to;

    reserve(&l, 0, 2);
    reserve(&l, 10, 11);
    reserve(&l, 1000000, 1000001);
    hf_layout_cut(&l, UINT64_C(200000000000)); /* nothing there */
    cr_assert(!l.trim && l.fence == 1);
    hf_layout_cut(&l, 150000);
    cr_assert(l.fence == 2 && hf_layout_stale(&l, &from, &to) && from == 150000 && to == 200000);
    hf_layout_trimmed(&l);
    cr_assert(l.fence == 3 && l.trim_from == 1000000);
    cr_assert(hf_layout_stale(&l, &from, &to) && from == 1000000 && to == 1100000);
    hf_layout_cut(&l, 120000); /* shorter still, in between */
    cr_assert(l.fence == 4 && hf_layout_stale(&l, &from, &to) && from == 120000 && to == 200000);
    hf_layout_trimmed(&l);
    hf_layout_trimmed(&l);
    cr_assert(hf_layout_stale(&l, &from, &to) && from == UINT64_C(100000000000));
    hf_layout_trimmed(&l);
    cr_assert(!l.trim && !hf_layout_stale(&l, &from, &to) && l.fence == 7);
}

static void fold_is(const char *name, const char *want)
{
    uint8_t out[HF_FOLD_MAX];
    size_t n = hf_fold(hf_slice_str(name), out);

    cr_assert(n == strlen(want) && memcmp(out, want, n) == 0, "%s", name);
}

Test(layout, fold)
{
    uint8_t out[HF_FOLD_MAX];
    char name[256];

    fold_is("Hello World.TXT", "hello world.txt");
    fold_is("\xc3\x84\xc3\x96\xc3\x9c", "\xc3\xa4\xc3\xb6\xc3\xbc"); /* Ä Ö Ü */
    fold_is("\xe1\xba\x9e", "\xc3\x9f");                             /* capital sharp s: status S */
    fold_is("\xc3\x9f", "\xc3\x9f");                 /* ß has a full folding only */
    fold_is("\xce\xa3\xcf\x82", "\xcf\x83\xcf\x83"); /* Σ and final ς */
    fold_is("\xc4\xb0", "\xc4\xb0");                 /* İ: full and Turkic only */
    fold_is("\xe2\x84\xaa", "k");                    /* Kelvin sign */
    fold_is("\xc8\xba", "\xe2\xb1\xa5");             /* Ⱥ grows to 3 bytes */
    fold_is("\xf0\x90\x90\x80", "\xf0\x90\x90\xa8"); /* Deseret */
    fold_is("\xc4\x80\xc4\x81\xc4\x82", "\xc4\x81\xc4\x81\xc4\x83"); /* every second one */
    fold_is("\xff\xc3", "\xff\xc3");                                 /* not UTF-8 */
    fold_is("\xc1\x81"
            "A",
            "\xc1\x81"
            "a"); /* overlong */
    fold_is("\xed\xa0\x80"
            "Z",
            "\xed\xa0\x80"
            "z");                                    /* surrogate */
    fold_is("\xe2\x84", "\xe2\x84");                 /* cut */
    fold_is("\xf4\x90\x80\x80", "\xf4\x90\x80\x80"); /* beyond U+10FFFF */
    for (unsigned k = 0; k < 254; k += 2)
        memcpy(name + k, "\xc8\xba", 2); /* the longest result */
    name[254] = 'X';
    cr_assert(hf_fold(hf_slice(name, 255), out) == 127 * 3 + 1);
    cr_assert(127 * 3 + 1 <= HF_FOLD_MAX);
}

/* Folding twice is folding once, for every code point; 1454 are folded by C and S of Unicode 15.0.
 */
Test(layout, fold_all)
{
    unsigned folded = 0;

    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        uint32_t f = hf_fold_code_point(c);

        cr_assert(hf_fold_code_point(f) == f, "U+%04X", c);
        folded += f != c;
    }
    cr_assert_eq(folded, 1454);
}

Test(layout, cookies)
{
    static const uint8_t key[16] = "key", other[16] = "other";
    uint64_t base = hf_cookie_base(key, hf_slice_str("Name"));
    char name[16];

    cr_assert_eq(base, hf_cookie_base(key, hf_slice_str("nAME")));
    cr_assert_neq(base, hf_cookie_base(other, hf_slice_str("Name")));
    cr_assert_neq(base, hf_cookie_base(key, hf_slice_str("Nam")));
    for (unsigned k = 0; k < 100000; k++) {
        snprintf(name, sizeof(name), "%u", k);
        base = hf_cookie_base(key, hf_slice_str(name));
        cr_assert(base % HF_SLOT_COUNT == 0 && base > 2 && base + HF_SLOT_COUNT - 1 <= INT64_MAX);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "holdfast/endian.h"
#include "oncrpc.h"

struct msg {
    uint8_t b[2048];
    size_t n;
};

static void u32(struct msg *m, uint32_t v)
{
    hf_put_be32(m->b + m->n, v);
    m->n += 4;
}

static void opaque(struct msg *m, uint32_t len)
{
    u32(m, len);
    memset(m->b + m->n, 'm', (len + 3) & ~3u);
    m->n += (len + 3) & ~3u;
}

static void header(struct msg *m)
{
    m->n = 0;
    u32(m, 0xdeadbeef);
    u32(m, 0);
    u32(m, 2);
    u32(m, 100003);
    u32(m, 3);
    u32(m, 1);
}

static void auth_sys(struct msg *m, uint32_t name, uint32_t groups)
{
    size_t len_at;

    u32(m, 1);
    len_at = m->n;
    u32(m, 0);
    u32(m, 77);
    opaque(m, name);
    u32(m, 1000);
    u32(m, 100);
    u32(m, groups);
    for (uint32_t i = 0; i < groups; i++)
        u32(m, 2000 + i);
    hf_put_be32(m->b + len_at, (uint32_t)(m->n - len_at - 4));
}

static void no_verf(struct msg *m)
{
    u32(m, 0);
    u32(m, 0);
}

Test(oncrpc, auth_sys_with_sixteen_groups)
{
    struct msg m;
    struct onc_call c;

    header(&m);
    auth_sys(&m, 7, 16);
    no_verf(&m);
    u32(&m, 42);
    cr_assert_eq(onc_call_parse(m.b, m.n, &c), ONC_CALL);
    cr_assert_eq(c.xid, 0xdeadbeef);
    cr_assert_eq(c.prog, 100003);
    cr_assert_eq(c.vers, 3);
    cr_assert_eq(c.proc, 1);
    cr_assert_eq(c.uid, 1000);
    cr_assert_eq(c.gid, 100);
    cr_assert_eq(c.ngroups, 16);
    cr_assert_eq(c.groups[15], 2015);
    cr_assert_not(c.auth_none);
    cr_assert_eq(c.args_off, m.n - 4);
    cr_assert_eq(c.args_off % 4, 0);
}

static enum onc_auth_stat denied(const struct msg *m)
{
    struct onc_call c;

    cr_assert_eq(onc_call_parse(m->b, m->n, &c), ONC_DENIED);
    return c.auth;
}

Test(oncrpc, bad_credentials)
{
    struct msg m;

    header(&m);
    auth_sys(&m, 7, 17);
    no_verf(&m);
    cr_assert_eq(denied(&m), ONC_AUTH_BADCRED, "seventeen groups");
    header(&m);
    auth_sys(&m, 256, 0);
    no_verf(&m);
    cr_assert_eq(denied(&m), ONC_AUTH_BADCRED, "long machine name");
    header(&m);
    u32(&m, 1);
    opaque(&m, 404);
    no_verf(&m);
    cr_assert_eq(denied(&m), ONC_AUTH_BADCRED, "more than 400 bytes");
    header(&m);
    u32(&m, 1);
    opaque(&m, 0);
    no_verf(&m);
    cr_assert_eq(denied(&m), ONC_AUTH_BADCRED, "empty");
    header(&m);
    u32(&m, 6);
    opaque(&m, 20);
    no_verf(&m);
    cr_assert_eq(denied(&m), ONC_AUTH_REJECTEDCRED, "RPCSEC_GSS");
    header(&m);
    u32(&m, 0);
    u32(&m, 0);
    u32(&m, 6);
    opaque(&m, 8);
    cr_assert_eq(denied(&m), ONC_AUTH_BADVERF);
}

Test(oncrpc, auth_none)
{
    struct msg m;
    struct onc_call c;

    header(&m);
    no_verf(&m); /* the same bytes as an empty credential */
    no_verf(&m);
    cr_assert_eq(onc_call_parse(m.b, m.n, &c), ONC_CALL);
    cr_assert(c.auth_none);
}

Test(oncrpc, wrong_version_and_not_a_call)
{
    struct msg m;
    struct onc_call c;

    header(&m);
    hf_put_be32(m.b + 8, 3);
    cr_assert_eq(onc_call_parse(m.b, m.n, &c), ONC_MISMATCH);
    cr_assert_eq(c.xid, 0xdeadbeef);
    header(&m);
    hf_put_be32(m.b + 4, 1); /* a reply */
    no_verf(&m);
    no_verf(&m);
    cr_assert_eq(onc_call_parse(m.b, m.n, &c), ONC_NOT_CALL);
}

Test(oncrpc, every_truncation_is_refused)
{
    struct msg m;

    header(&m);
    auth_sys(&m, 5, 3);
    no_verf(&m);
    for (size_t cut = 0; cut < m.n; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1); /* so that the sanitizer sees a step too far */
        struct onc_call c;
        enum onc_parse res;

        memcpy(copy, m.b, cut);
        res = onc_call_parse(copy, cut, &c);
        cr_assert(cut < 24 ? res == ONC_NOT_CALL : res == ONC_DENIED, "cut at %zu: %d", cut, res);
        free(copy);
    }
}

Test(oncrpc, lengths_that_wrap)
{
    static const uint32_t lengths[] = {0xffffffff, 0xfffffffc, 0xfffffffd, 0x7fffffff, 401};

    for (size_t i = 0; i < 5; i++) {
        struct msg m;

        header(&m);
        u32(&m, 1);
        u32(&m, lengths[i]);
        m.n += 64;
        cr_assert_eq(denied(&m), ONC_AUTH_BADCRED);
    }
}

static void expect_words(const uint8_t *b, size_t n, const uint32_t *w, size_t nw)
{
    cr_assert_eq(n, 4 * nw);
    for (size_t i = 0; i < nw; i++)
        cr_assert_eq(hf_get_be32(b + 4 * i), w[i], "word %zu", i);
}

Test(oncrpc, replies_are_those_of_rfc_5531)
{
    uint8_t b[ONC_REPLY_MAX];

    expect_words(b, onc_reply_accepted(b, 7, ONC_SUCCESS, 100),
                 (uint32_t[]){0x80000000 | 124, 7, 1, 0, 0, 0, 0}, 7);
    expect_words(b, onc_reply_accepted(b, 7, ONC_PROG_UNAVAIL, 0),
                 (uint32_t[]){0x80000000 | 24, 7, 1, 0, 0, 0, 1}, 7);
    expect_words(b, onc_reply_prog_mismatch(b, 7, 3, 3),
                 (uint32_t[]){0x80000000 | 32, 7, 1, 0, 0, 0, 2, 3, 3}, 9);
    expect_words(b, onc_reply_accepted(b, 7, ONC_PROC_UNAVAIL, 0),
                 (uint32_t[]){0x80000000 | 24, 7, 1, 0, 0, 0, 3}, 7);
    expect_words(b, onc_reply_accepted(b, 7, ONC_GARBAGE_ARGS, 0),
                 (uint32_t[]){0x80000000 | 24, 7, 1, 0, 0, 0, 4}, 7);
    expect_words(b, onc_reply_mismatch(b, 7), (uint32_t[]){0x80000000 | 24, 7, 1, 1, 0, 2, 2}, 7);
    expect_words(b, onc_reply_denied(b, 7, ONC_AUTH_BADCRED),
                 (uint32_t[]){0x80000000 | 20, 7, 1, 1, 1, 1}, 6);
}

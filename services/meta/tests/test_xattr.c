/* SPDX-License-Identifier: Apache-2.0
 *
 * Extended attributes through the RPC service: many of the largest values in flight, a restart,
 * fsck.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/err.h"
#include "support_meta.h"

enum { FILES = 60, VALUE_BYTES = 65536 };

struct value {
    uint8_t bytes[VALUE_BYTES];
};

static void fill(struct value *v, unsigned seed)
{
    for (size_t k = 0; k < sizeof(v->bytes); k++)
        v->bytes[k] = (uint8_t)(k * 7 + (k >> 8) + seed);
}

static void on_set(const Hf__SetxattrRep *rep, void *data)
{
    (void)rep;
    (void)data;
}

static void on_get(const Hf__GetxattrRep *rep, void *data)
{
    struct hf_rpc_call *call = data;
    struct value *got = call->arg;

    (void)rep;
    if (call->status == 0 && call->reply_bulk.len == sizeof(got->bytes))
        memcpy(got->bytes, call->reply_bulk.data, sizeof(got->bytes));
}

static ProtobufCService *meta(struct fixture *f)
{
    return hf_rpc_client_service(f->client, &hf__meta__descriptor);
}

static void set_all(struct fixture *f, const struct result *files, struct value *v)
{
    struct hf_rpc_call *calls = calloc(FILES, sizeof(*calls));
    Hf__Cred root = HF__CRED__INIT;

    cr_assert(calls);
    for (unsigned k = 0; k < FILES; k++) {
        Hf__SetxattrReq q = HF__SETXATTR_REQ__INIT;

        fill(v, k);
        q.cred = &root;
        q.ino = files[k].ino;
        q.gen = files[k].gen;
        q.name = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t) "user.big"};
        calls[k].bulk[0] = hf_slice(v->bytes, sizeof(v->bytes));
        calls[k].bulk_n = 1;
        hf__meta__setxattr(meta(f), &q, on_set, &calls[k]); /* copies the value */
    }
    for (unsigned k = 0; k < FILES; k++)
        cr_assert_eq(hf_rpc_wait(f->loop, &calls[k]), 0);
    free(calls);
}

static void expect_all(struct fixture *f, const struct result *files, struct value *v)
{
    struct value *got = malloc(sizeof(*got));
    Hf__Cred root = HF__CRED__INIT;

    cr_assert(got);
    for (unsigned k = 0; k < FILES; k++) {
        struct hf_rpc_call call = {.arg = got};
        Hf__GetxattrReq q = HF__GETXATTR_REQ__INIT;

        fill(v, k);
        memset(got, 0, sizeof(*got));
        q.cred = &root;
        q.ino = files[k].ino;
        q.gen = files[k].gen;
        q.name = (ProtobufCBinaryData){8, (uint8_t *)(uintptr_t) "user.big"};
        hf__meta__getxattr(meta(f), &q, on_get, &call);
        cr_assert_eq(hf_rpc_wait(f->loop, &call), 0);
        cr_assert_eq(memcmp(got, v, sizeof(*got)), 0);
    }
    free(got);
}

static void no_finding(void *arg, const Hf__FsckFinding *finding)
{
    (*(unsigned *)arg)++;
    (void)fprintf(stderr, "finding: %s %s\n", finding->kind, finding->detail);
}

Test(xattr, large_values_in_flight)
{
    struct value *v = malloc(sizeof(*v));
    struct result files[FILES];
    unsigned findings = 0;
    struct fixture f;
    Hf__FsckRep rep;

    cr_assert(v);
    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    for (unsigned k = 0; k < FILES; k++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "f%u", k);
        files[k] = do_create(&f, name, 0, 0, 0);
        cr_assert_eq(files[k].status, 0);
    }
    set_all(&f, files, v);
    expect_all(&f, files, v);
    fixture_stop(&f);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    expect_all(&f, files, v);
    cr_assert_eq(hf_metasvc_fsck(f.svc, false, no_finding, &findings, &rep, f.err, sizeof(f.err)),
                 0, "%s", f.err);
    cr_assert_eq(findings, 0);
    cr_assert_eq(rep.problems, 0);
    fixture_fini(&f);
    free(v);
}

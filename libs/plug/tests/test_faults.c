/* SPDX-License-Identifier: Apache-2.0
 *
 * The stackable backends do what their arguments say, and the posix one lists 100,000 objects.
 */
#include "support_dir.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "holdfast/err.h"
#include "holdfast/plug.h"

static struct hf_plug *plug;

static void setup(void)
{
    cr_assert_eq(hf_plug_new(getenv("HF_PLUGIN_DIR"), &plug), 0);
}

static void teardown(void)
{
    hf_plug_free(plug);
}

static struct hf_plug_be *open_spec(const char *spec, const char *path)
{
    struct hf_plug_be *be = NULL;
    char err[512] = "";

    cr_assert_eq(hf_plug_open(plug, spec, path, 4, &be, err, sizeof(err)), 0, "%s", err);
    return be;
}

static int run(struct hf_plug_be *be, uint32_t op, void *data, size_t len)
{
    struct hf_be_io io = {.op = op, .data = data, .len = len};

    return hf_plug_do(be, &io);
}

Test(faults, error_every_and_after, .init = setup, .fini = teardown)
{
    struct hf_plug_be *be =
        open_spec("error(op=write,after=2,every=3,times=2,status=ENOSPC)+mem", NULL);
    static const int want[] = {0, 0, 0, 0, -13, 0, 0, -13, 0, 0, 0};
    char b[8] = "abc";

    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        cr_assert_eq(run(be, HF_BE_WRITE, b, sizeof(b)), want[i], "write %u", i);
        cr_assert_eq(run(be, HF_BE_READ, b, sizeof(b)), 0);
    }
    hf_plug_close(be);
}

Test(faults, error_flips_one_bit, .init = setup, .fini = teardown)
{
    struct hf_plug_be *be = open_spec("error(flip=1,every=2)+mem", NULL);
    uint8_t a[1000], got[1000];
    unsigned bits = 0;

    memset(a, 0x5a, sizeof(a));
    cr_assert_eq(run(be, HF_BE_WRITE, a, sizeof(a)), 0);
    cr_assert_eq(run(be, HF_BE_READ, got, sizeof(got)), 0);
    cr_assert_eq(memcmp(a, got, sizeof(a)), 0);
    cr_assert_eq(run(be, HF_BE_READ, got, sizeof(got)), 0);
    for (unsigned i = 0; i < sizeof(a); i++)
        bits += (unsigned)__builtin_popcount((unsigned)(a[i] ^ got[i]));
    cr_assert_eq(bits, 1);
    hf_plug_close(be);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

Test(faults, delay_waits, .init = setup, .fini = teardown)
{
    struct hf_plug_be *be = open_spec("delay(ms=30,op=sync)+mem", NULL);
    char b[8] = "abc";
    double t0;

    cr_assert_eq(run(be, HF_BE_WRITE, b, sizeof(b)), 0);
    t0 = now_ms();
    cr_assert_eq(run(be, HF_BE_SYNC, NULL, 0), 0);
    cr_assert_geq(now_ms() - t0, 30.0);
    hf_plug_close(be);
}

Test(faults, mem_is_full_at_its_capacity, .init = setup, .fini = teardown)
{
    struct hf_plug_be *be = open_spec("mem(capacity=131072)", NULL);
    uint8_t *b = calloc(1, 200000);

    cr_assert_not_null(b);
    cr_assert_eq(run(be, HF_BE_WRITE, b, 200000), HF_BE_ENOSPC);
    cr_assert_eq(run(be, HF_BE_WRITE, b, 131072), 0);
    hf_plug_close(be);
    free(b);
}

struct walk {
    uint64_t n, page;
    uint8_t last[HF_BE_ID_BYTES];
    bool ordered;
};

static int walk_one(void *arg, const uint8_t *id)
{
    struct walk *w = arg;

    if (w->n > 0 && memcmp(id, w->last, HF_BE_ID_BYTES) <= 0)
        w->ordered = false;
    memcpy(w->last, id, HF_BE_ID_BYTES);
    w->n++;
    return ++w->page == 1000;
}

Test(faults, posix_lists_many, .init = setup, .fini = teardown, .timeout = 100)
{
    enum { N = 30000 };
    struct walk w = {.ordered = true};
    struct hf_plug_be *be;
    char dir[256], b = 1;
    uint64_t before;

    support_dir_make(dir, sizeof(dir));
    be = open_spec("posix", dir);
    for (uint32_t i = 0; i < N; i++) {
        struct hf_be_io io = {.op = HF_BE_WRITE, .data = &b, .len = 0};
        uint32_t v = i * 2654435761u;

        memcpy(io.id, &v, sizeof(v));
        cr_assert_eq(hf_plug_do(be, &io), 0);
    }
    do {
        before = w.n;
        w.page = 0;
        cr_assert_eq(
            hf_plug_ops(be)->list(hf_plug_handle(be), before ? w.last : NULL, walk_one, &w), 0);
    } while (w.n > before);
    cr_assert_eq(w.n, N);
    cr_assert(w.ordered);
    hf_plug_close(be);
    support_dir_remove(dir);
}

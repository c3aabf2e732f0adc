/* SPDX-License-Identifier: Apache-2.0
 *
 * Redo records: what parses can be written again with the same meaning, and is applied to a store
 * without a trace of what does not parse.
 */
#include "fuzz.h"
#include "holdfast/err.h"
#include "redo.h"

#define TABLES 4u

static const char *const names[TABLES] = {"a", "b", "c", "d"};

static void again(struct hf_slice in)
{
    struct hf_buf out = {0};
    struct redo_reader a, b;
    struct redo_op x, y, kept;
    struct redo r = {0};
    int rc = redo_read_begin(&a, in);

    FUZZ_CHECK(rc == 0);
    while ((rc = redo_read_next(&a, TABLES, &x)) == 0)
        FUZZ_CHECK(redo_add(&r, &x, &kept) == 0);
    FUZZ_CHECK(rc == HF_E_NOENT);
    FUZZ_CHECK(redo_take(&r, &out) == 0);
    FUZZ_CHECK(redo_validate(hf_buf_slice(&out), TABLES) == 0);
    FUZZ_CHECK(redo_read_begin(&a, in) == 0 && redo_read_begin(&b, hf_buf_slice(&out)) == 0);
    while (redo_read_next(&a, TABLES, &x) == 0) {
        FUZZ_CHECK(redo_read_next(&b, TABLES, &y) == 0);
        FUZZ_CHECK(x.table == y.table && x.del == y.del && hf_slice_eq(x.key, y.key) &&
                   hf_slice_eq(x.val, y.val));
    }
    FUZZ_CHECK(redo_read_next(&b, TABLES, &y) == HF_E_NOENT);
    hf_buf_fini(&out);
    hf_buf_fini(&r.buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_store_opts o = {
        .kind = HF_STORE_MEM, .tables = names, .ntables = TABLES, .format = 1};
    struct hf_slice in = hf_slice(data, size);
    int valid = redo_validate(in, TABLES), rc;
    struct hf_store *s;

    if (valid == 0)
        again(in);
    FUZZ_CHECK(hf_store_open(&o, &s) == 0);
    hf_store_batch(s, 1);
    rc = hf_store_redo_apply(s, in);
    FUZZ_CHECK(rc == valid, "applied %d, parsed %d", rc, valid);
    for (unsigned t = 0; rc && t < TABLES; t++)
        FUZZ_CHECK(hf_store_count(s, t) == 0);
    hf_store_close(s);
    return 0;
}

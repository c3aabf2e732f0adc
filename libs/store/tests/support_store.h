/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the store share: temporary folders, a generator, a model.
 */
#ifndef HF_STORE_TESTS_SUPPORT_H
#define HF_STORE_TESTS_SUPPORT_H

#include "holdfast/store.h"

/* A new folder below $TMPDIR or /tmp; removed with all in it by temp_dir_free. */
char *temp_dir_new(void);
void temp_dir_free(char *dir);

/* splitmix64 */
uint64_t rnd(uint64_t *state);

extern const char *const test_tables[3];
struct hf_store_opts test_opts(enum hf_store_kind kind, const char *dir);

/* A model of a store: a flat array of entries, sorted by table and key. */
struct model_entry {
    unsigned table;
    size_t klen, vlen;
    uint8_t *key, *val;
};
struct model {
    struct model_entry *e;
    size_t n, cap;
};
void model_fini(struct model *m);
void model_put(struct model *m, unsigned table, struct hf_slice key, struct hf_slice val);
bool model_del(struct model *m, unsigned table, struct hf_slice key);
/* Index of the first entry >= (table, key); *ret_equal if it is that key. */
size_t model_find(const struct model *m, unsigned table, struct hf_slice key, bool *ret_equal);
/* Criterion-asserts that s holds exactly what m holds (scan, get and count of all three tables). */
void model_check(const struct model *m, struct hf_store *s);

#endif

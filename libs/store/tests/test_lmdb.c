/* SPDX-License-Identifier: Apache-2.0
 *
 * What only the LMDB provider has: a life after close, formats, damage, an owner.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_store.h"

static struct hf_store *open_at(const char *dir)
{
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s = NULL;

    cr_assert_eq(hf_store_open(&o, &s), 0);
    return s;
}

static void put_str(struct hf_store *s, const char *k, const char *v)
{
    cr_assert_eq(hf_store_put(s, 0, hf_slice_str(k), hf_slice_str(v)), 0);
}

static bool has(struct hf_store *s, const char *k)
{
    struct hf_slice v;
    int rc = hf_store_get(s, 0, hf_slice_str(k), &v);

    cr_assert(rc == 0 || rc == HF_E_NOENT);
    return rc == 0;
}

static struct hf_buf load(const char *dir, const char *name)
{
    struct hf_buf b = {0};
    struct stat st;
    char path[1024];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_RDONLY);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(hf_buf_reserve(&b, (size_t)st.st_size + 1), 0);
    b.len = (size_t)st.st_size;
    cr_assert_eq(pread(fd, b.data, b.len, 0), (ssize_t)b.len);
    close(fd);
    return b;
}

static void save(const char *dir, const char *name, const void *data, size_t len)
{
    char path[1024];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
}

Test(lmdb, reopen_and_replay)
{
    char *dir = temp_dir_new();
    struct model m = {0};
    struct hf_buf redo[40] = {0};
    struct hf_store *s = open_at(dir);
    uint64_t seed = 11;
    unsigned applied = 0, upto = 0;

    cr_assert_eq(hf_store_applied(s), 0);
    for (unsigned life = 0; life < 5; life++) {
        for (unsigned i = 0; i < 8; i++) {
            for (unsigned k = 0; k < 300; k++) {
                char key[16];

                snprintf(key, sizeof(key), "k%u", (unsigned)(rnd(&seed) % 2000));
                if (rnd(&seed) % 3) {
                    uint64_t v = rnd(&seed);

                    cr_assert_eq(hf_store_put(s, k % 3, hf_slice_str(key), hf_slice(&v, 8)), 0);
                    model_put(&m, k % 3, hf_slice_str(key), hf_slice(&v, 8));
                } else {
                    cr_assert_eq(hf_store_del(s, k % 3, hf_slice_str(key)), 0);
                    model_del(&m, k % 3, hf_slice_str(key));
                }
            }
            cr_assert_eq(hf_store_redo_take(s, &redo[upto++]), 0);
            if (i == 4)
                cr_assert_eq(hf_store_checkpoint(s, applied = upto), 0);
        }
        cr_assert_gt(hf_store_dirty(s), 0u);
        hf_store_close(s);
        s = open_at(dir);
        cr_assert_eq(hf_store_applied(s), applied);
        for (unsigned i = applied; i < upto; i++)
            cr_assert_eq(hf_store_redo_apply(s, hf_buf_slice(&redo[i])), 0);
        model_check(&m, s);
    }
    hf_store_close(s);
    for (unsigned i = 0; i < upto; i++)
        hf_buf_fini(&redo[i]);
    model_fini(&m);
    temp_dir_free(dir);
}

Test(lmdb, another_format_is_refused_and_untouched)
{
    char *dir = temp_dir_new();
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s = open_at(dir);
    struct hf_buf before, after;
    const char *fewer[] = {"one", "two", "three", "new"};

    put_str(s, "a", "1");
    cr_assert_eq(hf_store_checkpoint(s, 5), 0);
    hf_store_close(s);
    before = load(dir, "data.mdb");
    o.format = 8;
    cr_assert_eq(hf_store_open(&o, &s), HF_E_VERSION);
    o.format = 7;
    o.tables = fewer;
    o.ntables = 4;
    cr_assert_eq(hf_store_open(&o, &s), HF_E_VERSION, "a table is missing");
    after = load(dir, "data.mdb");
    cr_assert(hf_slice_eq(hf_buf_slice(&before), hf_buf_slice(&after)));
    hf_buf_fini(&after);
    s = open_at(dir);
    cr_assert(has(s, "a"));
    cr_assert_eq(hf_store_applied(s), 5);
    hf_store_close(s);
    hf_buf_fini(&before);
    temp_dir_free(dir);
}

static void make_foreign(const char *dir)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    char key[] = "k";
    MDB_val v = {1, key};

    cr_assert_eq(mdb_env_create(&env), 0);
    cr_assert_eq(mdb_env_open(env, dir, 0, 0600), 0);
    cr_assert_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    cr_assert_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    cr_assert_eq(mdb_put(txn, dbi, &v, &v, 0), 0);
    cr_assert_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

Test(lmdb, foreign_files_are_refused_and_untouched)
{
    char *dir = temp_dir_new();
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s;
    struct hf_buf before, after;
    char junk[20000];

    make_foreign(dir);
    before = load(dir, "data.mdb");
    cr_assert_eq(hf_store_open(&o, &s), HF_E_VERSION, "LMDB, but not a store");
    after = load(dir, "data.mdb");
    cr_assert(hf_slice_eq(hf_buf_slice(&before), hf_buf_slice(&after)));
    hf_buf_fini(&before);
    hf_buf_fini(&after);

    memset(junk, 'j', sizeof(junk));
    for (size_t len = 1; len <= sizeof(junk); len = len * 3 + 1) {
        save(dir, "data.mdb", junk, len);
        cr_assert_eq(hf_store_open(&o, &s), HF_E_CORRUPT, "%zu bytes", len);
        after = load(dir, "data.mdb");
        cr_assert(hf_slice_eq(hf_slice(junk, len), hf_buf_slice(&after)));
        hf_buf_fini(&after);
    }
    temp_dir_free(dir);
}

Test(lmdb, a_file_that_was_cut_off_is_corrupt)
{
    char *dir = temp_dir_new();
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s = open_at(dir);
    struct hf_buf good, after;
    char key[16], val[3000] = {0};
    size_t cut;

    for (unsigned i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        cr_assert_eq(hf_store_put(s, 0, hf_slice_str(key), hf_slice(val, sizeof(val))), 0);
        if (i % 40 == 39)
            cr_assert_eq(hf_store_checkpoint(s, i), 0);
    }
    cr_assert_eq(hf_store_checkpoint(s, 200), 0);
    hf_store_close(s);
    good = load(dir, "data.mdb");
    for (cut = 3 * 4096; cut < good.len - 8 * 4096; cut += 13 * 4096) {
        save(dir, "data.mdb", good.data, cut);
        cr_assert_eq(hf_store_open(&o, &s), HF_E_CORRUPT, "%zu of %zu bytes", cut, good.len);
        after = load(dir, "data.mdb");
        cr_assert_eq(after.len, cut);
        hf_buf_fini(&after);
    }
    save(dir, "data.mdb", good.data, good.len);
    s = open_at(dir);
    cr_assert_eq(hf_store_count(s, 0), 200);
    hf_store_close(s);
    hf_buf_fini(&good);
    temp_dir_free(dir);
}

/* Pages taken and given back in one transaction leave a file that is shorter than its meta page
 * says. */
Test(lmdb, reopen_after_much_was_removed_at_once)
{
    char *dir = temp_dir_new();
    struct hf_store *s = open_at(dir);
    char key[16], val[9000] = {0};

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 50 + round * 7; i++) {
            snprintf(key, sizeof(key), "k%04u", i);
            cr_assert_eq(hf_store_put(s, 0, hf_slice_str(key), hf_slice(val, sizeof(val) - round)),
                         0);
        }
        for (unsigned i = round; i < 50 + round * 7; i++) {
            snprintf(key, sizeof(key), "k%04u", i);
            cr_assert_eq(hf_store_del(s, 0, hf_slice_str(key)), 0);
        }
        cr_assert_eq(hf_store_checkpoint(s, round), 0);
        hf_store_close(s);
        s = open_at(dir);
        cr_assert_eq(hf_store_count(s, 0), round);
    }
    hf_store_close(s);
    temp_dir_free(dir);
}

Test(lmdb, one_owner)
{
    char *dir = temp_dir_new(), sub[1024];
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s = open_at(dir), *other;

    cr_assert_eq(hf_store_open(&o, &other), HF_E_BUSY);
    hf_store_close(s);
    snprintf(sub, sizeof(sub), "%s/a/b/c", dir);
    o.dir = sub;
    cr_assert_eq(hf_store_open(&o, &s), 0, "missing folders are made");
    hf_store_close(s);
    o.dir = "/proc/nowhere/x";
    cr_assert_lt(hf_store_open(&o, &s), 0);
    o.dir = NULL;
    cr_assert_eq(hf_store_open(&o, &s), HF_E_INVAL);
    temp_dir_free(dir);
}

static void *use_in_thread(void *arg)
{
    struct hf_store *s = arg;

    for (unsigned i = 0; i < 3; i++) {
        put_str(s, "thread", "1");
        cr_assert_eq(hf_store_checkpoint(s, 2 + i), 0);
    }
    put_str(s, "open", "1");
    return NULL;
}

/* Opened and replayed in one thread, owned by another, closed by the first. */
Test(lmdb, the_owner_may_change_after_a_checkpoint)
{
    char *dir = temp_dir_new();

    for (unsigned i = 0; i < 3; i++) {
        struct hf_store *s = open_at(dir);
        pthread_t th;

        put_str(s, "main", "1");
        cr_assert_eq(hf_store_checkpoint(s, 1), 0);
        cr_assert_eq(pthread_create(&th, NULL, use_in_thread, s), 0);
        pthread_join(th, NULL);
        hf_store_close(s);
        s = open_at(dir);
        cr_assert(has(s, "thread"));
        cr_assert_not(has(s, "open"));
        cr_assert_eq(hf_store_applied(s), 4);
        hf_store_close(s);
    }
    temp_dir_free(dir);
}

static void commit_fails(const char *spec, uint64_t want_applied)
{
    char *dir = temp_dir_new();
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s;
    struct hf_slice v;
    const char *bad;

    cr_assert_eq(hf_faults_new(spec, &o.faults, &bad), 0);
    cr_assert_eq(hf_store_open(&o, &s), 0);
    put_str(s, "first", "1");
    cr_assert_eq(hf_store_checkpoint(s, 1), 0);
    put_str(s, "second", "1");
    cr_assert_not(hf_store_broken(s));
    cr_assert_eq(hf_store_checkpoint(s, 2), HF_E_IO);
    cr_assert(hf_store_broken(s));
    cr_assert_eq(hf_store_checkpoint(s, 2), HF_E_STOPPED);
    cr_assert_eq(hf_store_get(s, 0, hf_slice_str("first"), &v), HF_E_STOPPED);
    cr_assert_eq(hf_store_put(s, 0, hf_slice_str("x"), hf_slice_str("y")), HF_E_STOPPED);
    cr_assert_eq(hf_store_del(s, 0, hf_slice_str("first")), HF_E_STOPPED);
    cr_assert_not(hf_store_may_grow(s, 1));
    hf_store_close(s);
    hf_faults_free(o.faults);
    s = open_at(dir);
    cr_assert_eq(hf_store_applied(s), want_applied);
    cr_assert(has(s, "first"));
    cr_assert_eq(has(s, "second"), want_applied == 2);
    hf_store_close(s);
    temp_dir_free(dir);
}

Test(lmdb, a_failed_commit_stops_the_store)
{
    commit_fails("store.commit=error@2", 1);
    commit_fails("store.committed=error@2", 2);
}

/* Nobody knows what a store holds that could not be read. */
static void read_fails(const char *spec, bool scan)
{
    char *dir = temp_dir_new();
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store_iter it;
    struct hf_slice k, v;
    struct hf_store *s;
    const char *bad;

    cr_assert_eq(hf_faults_new(spec, &o.faults, &bad), 0);
    cr_assert_eq(hf_store_open(&o, &s), 0);
    put_str(s, "first", "1");
    if (scan) {
        cr_assert_eq(hf_store_seek(s, 0, hf_slice(NULL, 0), hf_slice(NULL, 0), &it), 0);
        cr_assert_eq(hf_store_next(&it, &k, &v), HF_E_IO);
        hf_store_iter_end(&it);
    } else {
        cr_assert_eq(hf_store_get(s, 0, hf_slice_str("first"), &v), HF_E_IO);
    }
    cr_assert(hf_store_broken(s));
    cr_assert_eq(hf_store_checkpoint(s, 1), HF_E_STOPPED);
    hf_store_close(s);
    hf_faults_free(o.faults);
    temp_dir_free(dir);
}

Test(lmdb, a_failed_read_stops_the_store)
{
    read_fails("store.get=error@1", false);
    read_fails("store.scan=error@1", true);
}

/* What a power failure may leave of LMDB's first pages. */
Test(lmdb, a_store_that_was_not_finished_can_be_discarded)
{
    static const uint8_t part[512] = {[10] = 8};
    char *dir = temp_dir_new(), path[4200];
    struct hf_store_opts o = test_opts(HF_STORE_LMDB, dir);
    struct hf_store *s;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/data.mdb", dir);
    f = fopen(path, "we");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(part, 1, sizeof(part), f), sizeof(part));
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(hf_store_open(&o, &s), HF_E_CORRUPT);
    cr_assert_eq(hf_store_discard(dir), 0);
    cr_assert_eq(hf_store_open(&o, &s), 0);
    hf_store_close(s);
    temp_dir_free(dir);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of the disk: final, ordered, and what had been acknowledged stays.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "holdfast/err.h"
#include "support_log.h"

/* Passes through to the real files; fails the steps it is told to. */
struct failing {
    struct wal_files files;
    atomic_int write, sync, allocate, dir; /* error to return; 0: none */
    atomic_int syncs_left;                 /* sync fails when this many were done; -1: never */
    atomic_int calls_after;                /* writes and syncs after the first failure */
    atomic_bool failed;
};

static int step(struct failing *f, int rc)
{
    if (atomic_load(&f->failed))
        atomic_fetch_add(&f->calls_after, 1);
    if (rc)
        atomic_store(&f->failed, true);
    return rc;
}

static int f_write(const struct wal_files *w, int fd, uint64_t off, const void *buf, size_t len)
{
    int rc = step(w->ctx, atomic_load(&((struct failing *)w->ctx)->write));

    return rc ? rc : wal_files_posix.write(w, fd, off, buf, len);
}

static int f_sync(const struct wal_files *w, int fd)
{
    struct failing *f = w->ctx;
    int rc = atomic_load(&f->sync);

    if (atomic_load(&f->syncs_left) > 0 && atomic_fetch_sub(&f->syncs_left, 1) == 1)
        rc = HF_E_IO;
    rc = step(f, rc);
    return rc ? rc : wal_files_posix.sync(w, fd);
}

static int f_allocate(const struct wal_files *w, int fd, uint64_t bytes)
{
    int rc = atomic_load(&((struct failing *)w->ctx)->allocate);

    return rc ? rc : wal_files_posix.allocate(w, fd, bytes);
}

static int f_sync_dir(const struct wal_files *w, const char *path)
{
    int rc = atomic_load(&((struct failing *)w->ctx)->dir);

    return rc ? rc : wal_files_posix.sync_dir(w, path);
}

static struct failing *failing_init(struct failing *f)
{
    f->files = wal_files_posix;
    f->files.ctx = f;
    f->files.write = f_write;
    f->files.sync = f_sync;
    f->files.allocate = f_allocate;
    f->files.sync_dir = f_sync_dir;
    atomic_init(&f->syncs_left, -1);
    return f;
}

/* With a spare at hand the prep thread is quiet, so that the failing step is the writer's. */
static void wait_for_spare(struct harness *h)
{
    struct hf_wal_stats st;
    uint64_t until = hf_env_mono_ns(h->env) + 30 * HF_NS_PER_SEC;

    do {
        hf_wal_stats(h->w, &st);
    } while (st.files < 2 && hf_env_mono_ns(h->env) < until);
    cr_assert_geq(st.files, 2u);
}

static void fails_for_good(struct harness *h, struct failing *f, atomic_int *what)
{
    for (unsigned i = 0; i < 10; i++)
        harness_append(h, i % 2, 200);
    cr_assert_eq(harness_wait(h), 0);
    atomic_store(what, HF_E_IO);
    for (unsigned i = 0; i < 10; i++)
        harness_append(h, i % 2, 200);
    cr_assert_eq(harness_wait(h), HF_E_IO);
    atomic_store(what, 0); /* the disk is well again: too late */
    for (unsigned i = 0; i < 10; i++)
        harness_append(h, i % 2, 200);
    cr_assert_eq(harness_wait(h), HF_E_IO);
    cr_assert_eq(atomic_load(&f->calls_after), 0, "nothing was tried again");
    cr_assert_eq(h->done_pos[0], 5);
    cr_assert_eq(h->done_pos[1], 5);
    cr_assert_not(hf_log_may_grow(hf_wal_log(h->w, 0)));
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    /* What failed may or may not be there, in order. */
    for (unsigned s = 0; s < 2; s++) {
        uint64_t n = harness_check(h, s, 1, 200);

        cr_assert_geq(n, 5u);
        cr_assert_leq(n, 10u);
    }
}

Test(faults, write_error)
{
    struct harness *h = harness_new(2);
    struct failing f = {0};

    h->files = &failing_init(&f)->files;
    cr_assert_eq(harness_open(h), 0);
    wait_for_spare(h);
    fails_for_good(h, &f, &f.write);
    harness_free(h);
}

Test(faults, sync_error)
{
    struct harness *h = harness_new(2);
    struct failing f = {0};

    h->files = &failing_init(&f)->files;
    cr_assert_eq(harness_open(h), 0);
    wait_for_spare(h);
    fails_for_good(h, &f, &f.sync);
    harness_free(h);
}

/* Any sync, also those of new files and headers: no acknowledged record is lost. */
Test(faults, the_nth_sync_fails)
{
    for (int n = 1; n < 60; n++) {
        struct harness *h = harness_new(2);
        struct failing f = {0};
        uint64_t acked[2];

        h->files = &failing_init(&f)->files;
        atomic_store(&f.syncs_left, n);
        if (harness_open(h) == 0) {
            for (unsigned i = 0; i < 200; i++) {
                harness_append(h, i % 2, 2500);
                if (harness_wait(h) != 0)
                    break;
            }
            harness_close(h);
        }
        acked[0] = h->done_pos[0];
        acked[1] = h->done_pos[1];
        atomic_store(&f.syncs_left, -1);
        cr_assert_eq(harness_open(h), 0, "n %d: %s", n, h->err);
        for (unsigned s = 0; s < 2; s++)
            cr_assert_geq(harness_check(h, s, 1, 2500), acked[s], "n %d", n);
        harness_free(h);
    }
}

Test(faults, disk_full_for_new_files)
{
    struct harness *h = harness_new(1);
    struct failing f = {0};
    uint64_t ok;

    h->files = &failing_init(&f)->files;
    cr_assert_eq(harness_open(h), 0);
    wait_for_spare(h);
    atomic_store(&f.allocate, HF_E_NOSPC);
    /* What is preallocated can be used: this file and the spare. */
    for (unsigned i = 0; i < 20; i++) {
        harness_append(h, 0, 4000);
        cr_assert_eq(harness_wait(h), 0);
    }
    ok = hf_log_end(hf_wal_log(h->w, 0));
    cr_assert_gt(h->w->cur->seq, 0u);
    /* Trimming makes files free without the disk. */
    for (unsigned i = 0; i < 300; i++) {
        harness_append(h, 0, 4000);
        cr_assert_eq(harness_wait(h), 0, "append %u", i);
        hf_log_trim(hf_wal_log(h->w, 0), hf_log_end(hf_wal_log(h->w, 0)));
    }
    /* Nothing trimmed, nothing free: NOSPC, and positions stay dense. */
    for (unsigned i = 0; i < 200; i++)
        harness_append(h, 0, 4000);
    cr_assert_eq(harness_wait(h), HF_E_NOSPC);
    harness_close(h);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    cr_assert_gt(hf_log_end(hf_wal_log(h->w, 0)), ok + 300);
    cr_assert_eq(hf_log_end(hf_wal_log(h->w, 0)), h->done_pos[0] + 1);
    harness_close(h);
    atomic_store(&f.allocate, 0);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    harness_append(h, 0, 4000);
    cr_assert_eq(harness_wait(h), 0);
    harness_free(h);
}

Test(faults, no_room_for_the_first_file)
{
    struct harness *h = harness_new(1);
    struct failing f = {0};

    h->files = &failing_init(&f)->files;
    atomic_store(&f.allocate, HF_E_NOSPC);
    cr_assert_eq(harness_open(h), HF_E_NOSPC);
    cr_assert_neq(h->err[0], 0);
    atomic_store(&f.allocate, 0);
    atomic_store(&f.dir, HF_E_IO);
    cr_assert_eq(harness_open(h), HF_E_IO);
    atomic_store(&f.dir, 0);
    cr_assert_eq(harness_open(h), 0, "%s", h->err);
    harness_append(h, 0, 4000);
    cr_assert_eq(harness_wait(h), 0);
    harness_free(h);
}

Test(faults, named_fault_points)
{
    const char *specs[] = {"log.write=error@3", "log.fsync=error@3", "log.roll=error@2"};

    for (unsigned i = 0; i < 3; i++) {
        struct harness *h = harness_new(1);
        const char *bad;
        int rc = 0;

        cr_assert_eq(hf_faults_new(specs[i], &h->o.faults, &bad), 0);
        cr_assert_eq(harness_open(h), 0);
        for (unsigned k = 0; k < 100 && rc == 0; k++) {
            harness_append(h, 0, 4000);
            rc = harness_wait(h);
        }
        cr_assert_eq(rc, HF_E_IO, "%s", specs[i]);
        cr_assert_gt(h->done_pos[0], 1u);
        harness_close(h);
        hf_faults_free(h->o.faults);
        h->o.faults = NULL;
        cr_assert_eq(harness_open(h), 0, "%s", h->err);
        cr_assert_geq(harness_check(h, 0, 1, 4000), h->done_pos[0]);
        harness_free(h);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The shard engine through its RPC service: what is acknowledged is there after every kind of end.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "support_meta.h"

static void no_finding(void *arg, const Hf__FsckFinding *f)
{
    unsigned *n = arg;

    (*n)++;
    (void)fprintf(stderr, "finding: %s %s\n", f->kind, f->detail);
}

static void check_clean(struct fixture *f, uint64_t inodes)
{
    Hf__FsckRep rep;
    unsigned n = 0;

    cr_assert_eq(hf_metasvc_fsck(f->svc, false, no_finding, &n, &rep, f->err, sizeof(f->err)), 0,
                 "%s", f->err);
    cr_assert_eq(n, 0);
    cr_assert_eq(rep.problems, 0);
    if (inodes)
        cr_assert_eq(rep.inodes, inodes, "%lu inodes", (unsigned long)rep.inodes);
}

static unsigned count_present(struct fixture *f, const char *prefix, unsigned n)
{
    unsigned present = 0;

    for (unsigned i = 0; i < n; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "%s%u", prefix, i);
        present += do_lookup(f, name).status == 0;
    }
    return present;
}

Test(shard, files_survive_a_clean_restart)
{
    struct fixture f;

    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(create_many(&f, "f", 500, 16, NULL, NULL), 500);
    struct result before = do_lookup(&f, "f17");
    fixture_stop(&f);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(counter(&f, "holdfast_meta_recovered_records_total"), 0,
                 "a clean stop checkpoints");
    cr_assert_eq(count_present(&f, "f", 500), 500);
    struct result after = do_lookup(&f, "f17");
    cr_assert_eq(before.ino, after.ino);
    cr_assert_eq(before.gen, after.gen);
    check_clean(&f, 501);
    fixture_fini(&f);
}

Test(shard, calls_of_a_turn_share_a_record)
{
    struct fixture f;

    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(create_many(&f, "f", 2000, 64, NULL, NULL), 2000);
    cr_assert_lt(counter(&f, "holdfast_meta_batches_total"), 1000);
    fixture_fini(&f);
}

Test(shard, checkpoints_under_load_lose_nothing)
{
    struct fixture f;

    fixture_init(&f, NULL);
    f.opts.checkpoint_changes = 64;
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(create_many(&f, "f", 1500, 32, NULL, NULL), 1500);
    cr_assert_gt(counter(&f, "holdfast_meta_checkpoints_total"), 5);
    cr_assert_eq(count_present(&f, "f", 1500), 1500);
    check_clean(&f, 1501);
    fixture_fini(&f);
}

Test(shard, a_repeated_change_gets_its_stored_reply)
{
    struct fixture f;

    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(do_create(&f, "x", 99, 1, 1).status, HF_E_NOSESSION);
    cr_assert_eq(do_session_open(&f, 99), 0);
    struct result first = do_create(&f, "x", 99, 1, 1);
    cr_assert_eq(first.status, 0);
    struct result again = do_create(&f, "x", 99, 1, 1);
    cr_assert_eq(again.status, 0);
    cr_assert_eq(again.ino, first.ino);
    cr_assert_eq(do_create(&f, "x", 99, 1, 2).status, HF_E_EXIST,
                 "the next sequence is a new call");
    fixture_stop(&f);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(do_create(&f, "y", 99, 2, 1).status, 0, "sessions survive a restart");
    cr_assert_eq(do_create(&f, "y", 99, 2, 1).status, 0);
    cr_assert_gt(counter(&f, "holdfast_meta_replayed_replies_total"), 0);
    fixture_fini(&f);
}

Test(shard, a_failed_fsync_stops_it_and_acknowledges_nothing)
{
    struct fixture f;

    fixture_init(&f, "log.fsync=error@8");
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    unsigned acked = create_many(&f, "f", 1000, 4, NULL, NULL);
    cr_assert_lt(acked, 1000);
    cr_assert_eq(__atomic_load_n(&f.fatal, __ATOMIC_SEQ_CST), 1);
    cr_assert_neq(do_create(&f, "later", 0, 0, 0).status, 0);
    fixture_stop(&f);
    hf_faults_free(f.faults);
    f.faults = NULL;
    f.opts.faults = NULL;
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_geq(count_present(&f, "f", 1000), acked);
    check_clean(&f, 0);
    fixture_fini(&f);
}

Test(shard, a_full_shard_refuses_growth_and_goes_on_removing)
{
    struct fixture f;
    static uint8_t data[8192];

    fixture_init(&f, NULL);
    f.opts.map_bytes = 16u << 20;
    f.opts.store_reserve_bytes = 8u << 20;
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    int status = 0;
    unsigned n = 0;
    for (; n < 4000 && status == 0; n++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "f%u", n);
        struct result r = do_create(&f, name, 0, 0, 0);
        status = r.status;
        if (status == 0)
            status = do_write(&f, r.ino, r.gen, data, sizeof(data), HF__STABLE__FILE_SYNC).status;
    }
    cr_assert_eq(status, HF_E_NOSPC, "%u files, then %s", n, hf_err_name(status));
    for (unsigned i = 0; i < n / 2; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "f%u", i);
        cr_assert_eq(do_remove(&f, name).status, 0);
    }
    fixture_stop(&f);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    cr_assert_eq(do_create(&f, "room-again", 0, 0, 0).status, 0);
    check_clean(&f, 0);
    fixture_fini(&f);
}

Test(shard, a_lost_shard_is_not_replaced_by_an_empty_one)
{
    struct fixture f;
    char path[128], moved[160];

    fixture_init(&f, NULL);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    fixture_stop(&f);
    (void)snprintf(path, sizeof(path), "%s/shards/00002", f.dir);
    (void)snprintf(moved, sizeof(moved), "%s.away", path);
    cr_assert_eq(rename(path, moved), 0);
    cr_assert_neq(fixture_start(&f), 0);
    cr_assert(strstr(f.err, "shard 2"), "%s", f.err);
    cr_assert_eq(rename(moved, path), 0);
    cr_assert_eq(fixture_start(&f), 0, "%s", f.err);
    fixture_fini(&f);
}

/* ---- crash at each fault point ---- */

static const char *const crash_points[] = {
    "log.write=crash@20",       "log.fsync=crash@20",    "store.commit=crash@9",
    "store.committed=crash@9",  "shard.append=crash@20", "shard.durable=crash@20",
    "shard.checkpoint=crash@3", "log.fsync=crash@1",     "store.commit=crash@1",
    "shard.checkpoint=crash@1",
};

/* Starts the child (crash_child.c) on the fixture's folder; *ret_fd gives a number per acknowledged
 * file. The child is a program of its own because nng, which Criterion uses too, does not survive a
 * fork. */
static pid_t start_child(const struct fixture *f, const char *faults, int *ret_fd)
{
    char path[4096], fd[16];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
    int pipes[2];
    pid_t pid;

    cr_assert_gt(len, 0);
    path[len] = '\0';
    (void)snprintf(strrchr(path, '/'), 32, "/hf-meta-crash-child");
    cr_assert_eq(pipe(pipes), 0);
    (void)snprintf(fd, sizeof(fd), "%d", pipes[1]);
    pid = fork();
    if (pid == 0) {
        (void)execl(path, path, f->dir, faults, fd, (char *)NULL);
        _exit(96);
    }
    (void)close(pipes[1]);
    *ret_fd = pipes[0];
    return pid;
}

ParameterizedTestParameters(shard, a_crash_at_any_step_keeps_what_was_acknowledged)
{
    static int
        index[sizeof(crash_points) / sizeof(crash_points[0])]; /* pointers do not cross processes */

    for (int i = 0; i < (int)(sizeof(index) / sizeof(index[0])); i++)
        index[i] = i;
    return cr_make_param_array(int, index, sizeof(index) / sizeof(index[0]));
}

ParameterizedTest(int *index, shard, a_crash_at_any_step_keeps_what_was_acknowledged)
{
    const char *point = crash_points[*index];
    struct fixture f;
    int fd, status = 0;
    unsigned i, acked = 0;
    static bool seen[4000];

    fixture_init(&f, NULL);
    pid_t pid = start_child(&f, point, &fd);
    while (read(fd, &i, sizeof(i)) == (ssize_t)sizeof(i)) {
        seen[i] = true;
        acked++;
    }
    (void)close(fd);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 137, "%s: child status %x after %u acks",
              point, status, acked);
    cr_assert_eq(fixture_start(&f), 0, "%s: %s", point, f.err);
    for (i = 0; i < 4000; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "f%u", i);
        if (seen[i])
            cr_assert_eq(do_lookup(&f, name).status, 0, "%s: %s was acknowledged", point, name);
    }
    check_clean(&f, 0);
    fixture_fini(&f);
}

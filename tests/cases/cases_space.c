/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bugs D6, D7 and L6: segments on small tmpfs and a small LMDB map. What needs space is
 * refused with NOSPC within seconds; removing goes on; what is removed can be used again; nothing
 * is half done. Needs root, for the tmpfs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cs.h"

#define MIB (1u << 20)
#define SEC 1000000000ull

/* Removed chunks are deleted in the background. */
static void segments_empty(const struct cs_layout *l)
{
    uint64_t deadline = cs_after(30);

    while (cs_du(l->seg_dir[0]) + cs_du(l->seg_dir[1]) > 8 * MIB) {
        NT_CHECK(nt_now_ns() < deadline);
        cs_nap_ms(20);
    }
}

/* Two segment servers on a tmpfs of `mib` MiB each, the metadata on one of 256 MiB. */
static void small_start(struct cs_layout *l, const char *base, unsigned mib, const char *map)
{
    char name[3][40];

    for (unsigned i = 0; i < 3; i++) { /* a failed test leaves its own behind for main */
        snprintf(name[i], sizeof(name[i]), "%u.%llx", i, (unsigned long long)nt_now_ns());
    }
    cs_tmpfs(base, name[0], mib, l->seg_dir[0]);
    cs_tmpfs(base, name[1], mib, l->seg_dir[1]);
    cs_tmpfs(base, name[2], 512, l->meta_dir);
    snprintf(l->seg_args[0], sizeof(l->seg_args[0]), "--segment-reserve-bytes=4M");
    snprintf(l->meta_args[0], sizeof(l->meta_args[0]), "--meta-map-bytes=%s", map);
    snprintf(l->meta_args[1], sizeof(l->meta_args[1]), "--meta-reserve-bytes=4M");
    snprintf(l->meta_args[2], sizeof(l->meta_args[2]), "--wal-file-bytes=4M");
    snprintf(l->meta_args[3], sizeof(l->meta_args[3]), "--wal-reserve-bytes=16M");
    cs_layout_start(l);
}

static void small_stop(struct cs_layout *l)
{
    cs_layout_stop(l);
    cs_tmpfs_end(l->seg_dir[0]);
    cs_tmpfs_end(l->seg_dir[1]);
    cs_tmpfs_end(l->meta_dir);
}

static void none_died(struct cs_layout *l)
{
    for (unsigned i = 0; i < CS_PROCS; i++) {
        if (l->pid[i] > 0) {
            NT_EQ(kill(l->pid[i], 0), 0);
            NT_CHECK(cs_rss_kib(l->pid[i]) > 0); /* no zombie */
        }
    }
}

/* `dd`: WRITE until NOSPC by WRITE or by the COMMIT each 8 MiB; bytes that WRITE acknowledged, and
 * those that COMMIT did. */
static uint64_t dd(struct nt *c, const struct nt_fh *fh, uint64_t *ret_committed)
{
    uint8_t *b = malloc(MIB);
    uint64_t off = 0, t0, slowest = 0;
    uint32_t st = NFS3_OK;

    *ret_committed = 0;
    while (st == NFS3_OK && off < 1024ull * MIB) {
        t0 = nt_now_ns();
        nt_pattern(9, off, b, MIB);
        st = nt_write(c, fh, off, b, MIB, UNSTABLE);
        if (st == NFS3_OK) {
            off += c->r.count;
            if (off % (8 * MIB) == 0) {
                st = nt_commit(c, fh, 0, 0);
                *ret_committed = st == NFS3_OK ? off : *ret_committed;
            }
        }
        slowest = nt_now_ns() - t0 > slowest ? nt_now_ns() - t0 : slowest;
    }
    free(b);
    NT_STATUS(st, NFS3ERR_NOSPC);
    printf("# NOSPC after %.1f MiB, slowest step %.2f s\n", (double)off / MIB,
           (double)slowest / 1e9);
    NT_CHECK(slowest < 10 * SEC);
    return off;
}

static void check_data(struct nt *c, const struct nt_fh *fh, uint64_t to)
{
    for (uint64_t off = 0; off + MIB <= to; off += MIB) {
        NT_OK(nt_read(c, fh, off, MIB));
        NT_EQ(c->r.count, MIB);
        NT_CHECK(nt_pattern_ok(9, off, c->data, MIB));
    }
}

/* Writes until there is space again. */
static void space_comes_back(struct nt *c, const struct nt_fh *fh)
{
    uint64_t deadline = cs_after(30);
    uint8_t *b = malloc(MIB);

    nt_pattern(9, 0, b, MIB);
    while (nt_write(c, fh, 0, b, MIB, FILE_SYNC) != NFS3_OK) {
        NT_EQ(c->r.status, NFS3ERR_NOSPC);
        NT_CHECK(nt_now_ns() < deadline);
        cs_nap_ms(20);
    }
    free(b);
    check_data(c, fh, MIB);
}

static void t_d6(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_fh fh, again;
    uint64_t acked, committed, t0;
    struct nt *c;

    small_start(&l, e->node.dir, 48, "1G");
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "big", 0644, &fh);
    nt_mk_file(c, &l.root, "again", 0644, &again);
    acked = dd(c, &fh, &committed);
    NT_CHECK(committed >= 16 * MIB);
    NT_OK(nt_getattr(c, &fh));
    NT_EQ(c->r.attr.size, acked);
    check_data(c, &fh, committed);
    NT_OK(nt_write(c, &again, 0, "small", 5, FILE_SYNC)); /* inline: its place is the shard */
    none_died(&l);
    for (int i = 0; i < CS_META; i++) {
        cs_bounce(&l, (enum cs_who)i);
    }
    check_data(c, &fh, committed);
    t0 = nt_now_ns();
    NT_OK(nt_remove(c, &l.root, "big"));
    NT_CHECK(nt_now_ns() - t0 < 5 * SEC);
    space_comes_back(c, &again);
    segments_empty(&l);
    nt_mk_file(c, &l.root, "big", 0644, &fh);
    NT_CHECK(dd(c, &fh, &committed) > acked / 2); /* as much as before, but for what `again` has */
    none_died(&l);
    nt_close(c);
    small_stop(&l);
}

/* One server full, one down: NOSPC, not an endless wait; with it back all goes on. */
static void t_d6_down(struct nt_env *e)
{
    struct cs_layout l = {0};
    uint8_t *b = calloc(1, MIB);
    uint64_t committed, acked, t0, edge = 0;
    struct nt_fh fh;
    struct nt *c;
    uint32_t st;

    small_start(&l, e->node.dir, 48, "1G");
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "big", 0644, &fh);
    acked = dd(c, &fh, &committed);
    for (unsigned i = 0; i < 2; i++) { /* dd ended when one was full: the chunks of each */
        uint64_t off = ((acked / (8 * MIB) + 1) * 2 + i) * 4 * MIB;

        for (st = NFS3_OK; st == NFS3_OK; off += off % (4 * MIB) == 3 * MIB ? 5 * MIB : MIB) {
            st = nt_write(c, &fh, off, b, MIB, UNSTABLE);
        }
        for (st = NFS3_OK, off &= ~(uint64_t)(MIB - 1); st == NFS3_OK; off += 65536) {
            st = nt_write(c, &fh, off, b, 65536, UNSTABLE);
        }
        NT_STATUS(st, NFS3ERR_NOSPC);
        edge = off > edge ? off : edge;
    }
    cs_end(&l, CS_SEG2, SIGKILL);
    t0 = nt_now_ns();
    /* half of it for a chunk of each server */
    st = nt_write(c, &fh, (edge / (8 * MIB) + 2) * 8 * MIB + 4 * MIB - MIB / 2, b, MIB, UNSTABLE);
    printf("# one full, one down: %s after %.2f s\n", nt_status_name(st),
           (double)(nt_now_ns() - t0) / 1e9);
    /* the call to the dead server ends with the request's time, 30 s; NOSPC wins over it */
    NT_CHECK(nt_now_ns() - t0 < 40 * SEC);
    NT_STATUS(st, NFS3ERR_NOSPC);
    cs_start(&l, CS_SEG2);
    cs_wait_serves(&l);
    check_data(c, &fh, committed);
    NT_OK(nt_remove(c, &l.root, "big"));
    nt_mk_file(c, &l.root, "again", 0644, &fh);
    space_comes_back(c, &fh);
    none_died(&l);
    nt_close(c);
    free(b);
    small_stop(&l);
}

/* ---- D7, L6 ---- */

/* Small files until the shard refuses; how many there are. */
static unsigned fill_shard(struct nt *c, const struct nt_fh *dir, const char *prefix)
{
    static uint8_t data[8000];
    char name[32];

    for (unsigned i = 0; i < 100000; i++) {
        uint32_t st;

        snprintf(name, sizeof(name), "%s%u", prefix, i);
        st = nt_create(c, dir, name, GUARDED, &NT_SET_MODE(0644), NULL);
        if (st == NFS3_OK) {
            st = nt_write(c, &c->r.fh, 0, data, sizeof(data), FILE_SYNC);
            if (st != NFS3_OK) {
                NT_OK(nt_remove(c, dir, name));
            }
        }
        if (st != NFS3_OK) {
            NT_STATUS(st, NFS3ERR_NOSPC);
            return i;
        }
    }
    nt_fail(__FILE__, __LINE__, "the shard never fills");
}

/* Each of the n files is in `a` under its old name or in `b` under its new one, never both. */
static void one_place_each(struct nt *c, const struct nt_fh *a, const struct nt_fh *b,
                           const bool *moved, const bool *gone, unsigned n)
{
    struct cs_census in_a, in_b;

    cs_census_init(&in_a, "f", n);
    cs_census_init(&in_b, "g", n);
    cs_list(c, a, false, 8192, &in_a);
    cs_list(c, b, false, 8192, &in_b);
    for (unsigned i = 0; i < n; i++) {
        NT_EQ(in_a.seen[i], !gone[i] && !moved[i]);
        NT_EQ(in_b.seen[i], !gone[i] && moved[i]);
    }
    free(in_a.seen);
    free(in_b.seen);
}

static void t_d7(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_fh a, b, big, fh;
    uint64_t committed;
    unsigned n, ok = 0;
    bool *moved, *gone;
    struct nt *c;

    small_start(&l, e->node.dir, 48, "16M");
    c = cs_gw(&l, 0);
    nt_mk_dir(c, &l.root, "a", 0755, &a);
    nt_mk_dir(c, &l.root, "b", 0755, &b);
    nt_mk_file(c, &l.root, "big", 0644, &big);
    nt_mk_file(c, &l.root, "later", 0644, &fh);
    dd(c, &big, &committed); /* segments are full */
    n = fill_shard(c, &a, "f");
    printf("# the shard is full after %u files\n", n);
    NT_CHECK(n > 500);
    moved = calloc(n, sizeof(*moved));
    gone = calloc(n, sizeof(*gone));
    for (unsigned k = 0; k < 1000; k++) { /* within the directory and across */
        unsigned i = k % n;
        char from[16], to[16];
        uint32_t st;

        snprintf(from, sizeof(from), "%c%u", moved[i] ? 'g' : 'f', i);
        snprintf(to, sizeof(to), "%c%u", moved[i] ? 'f' : 'g', i);
        if (k % 4 == 3) { /* within: to a passing name and back */
            st = nt_rename(c, moved[i] ? &b : &a, from, moved[i] ? &b : &a, "passing");
            NT_ONE_OF(st, NFS3_OK, NFS3ERR_NOSPC);
            if (st == NFS3_OK) {
                NT_OK(nt_rename(c, moved[i] ? &b : &a, "passing", moved[i] ? &b : &a, from));
                ok++;
            }
            continue;
        }
        st = nt_rename(c, moved[i] ? &b : &a, from, moved[i] ? &a : &b, to);
        NT_ONE_OF(st, NFS3_OK, NFS3ERR_NOSPC);
        if (st == NFS3_OK) {
            moved[i] = !moved[i];
            ok++;
        }
    }
    printf("# %u of 1000 renames went through\n", ok);
    one_place_each(c, &a, &b, moved, gone, n);
    cs_bounce(&l, CS_META);
    one_place_each(c, &a, &b, moved, gone, n);
    for (unsigned i = 0; i < 500; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%c%u", moved[i] ? 'g' : 'f', i);
        NT_OK(nt_remove(c, moved[i] ? &b : &a, name));
        gone[i] = true;
    }
    NT_OK(nt_remove(c, &l.root, "big"));
    space_comes_back(c, &fh);
    NT_CHECK(fill_shard(c, &l.root, "n") > 100); /* the shard's space too */
    one_place_each(c, &a, &b, moved, gone, n);
    none_died(&l);
    nt_close(c);
    free(moved);
    free(gone);
    small_stop(&l);
}

static uint64_t map_file_bytes(const struct cs_layout *l)
{
    char path[300];
    struct stat st;

    snprintf(path, sizeof(path), "%s/shards/00000/data.mdb", l->meta_dir);
    if (stat(path, &st) != 0) {
        nt_fail(__FILE__, __LINE__, "no %s", path);
    }
    return (uint64_t)st.st_blocks * 512;
}

static void t_l6(struct nt_env *e)
{
    struct cs_layout l = {0};
    struct nt_set set = NT_SET_MODE(0600);
    struct nt_fh d, fh;
    uint64_t size, deadline;
    unsigned n, m = 0;
    struct nt *c;
    char name[32];

    small_start(&l, e->node.dir, 48, "16M");
    c = cs_gw(&l, 0);
    nt_mk_dir(c, &l.root, "d", 0755, &d);
    n = fill_shard(c, &d, "f");
    size = map_file_bytes(&l);
    printf("# full after %u files, data.mdb %.1f MiB\n", n, (double)size / MIB);
    for (unsigned i = 0; i < 100; i++) { /* the reserve keeps these going */
        snprintf(name, sizeof(name), "f%u", i);
        NT_OK(nt_lookup(c, &d, name));
        fh = c->r.fh;
        NT_OK(nt_setattr(c, &fh, &set, NULL));
        NT_ONE_OF(nt_rename(c, &d, name, &d, "other"), NFS3_OK, NFS3ERR_NOSPC);
        NT_OK(nt_remove(c, &d, c->r.status == NFS3_OK ? "other" : name));
    }
    for (unsigned round = 0; round < 10; round++) { /* churn: the file does not grow for ever */
        for (unsigned i = 0; i < 100; i++) {
            snprintf(name, sizeof(name), "c%u", i);
            NT_ONE_OF(nt_create(c, &d, name, GUARDED, &set, NULL), NFS3_OK, NFS3ERR_NOSPC);
            if (c->r.status == NFS3_OK) {
                NT_OK(nt_remove(c, &d, name));
                m++;
            }
        }
    }
    NT_CHECK(m > 0);
    printf("# after churn data.mdb %.1f MiB\n", (double)map_file_bytes(&l) / MIB);
    NT_CHECK(map_file_bytes(&l) <= 2 * 16 * MIB + 8 * MIB);
    /* a larger map by configuration, at the next start */
    snprintf(l.meta_args[0], sizeof(l.meta_args[0]), "--meta-map-bytes=64M");
    cs_bounce(&l, CS_META);
    NT_CHECK(fill_shard(c, &d, "g") > n);
    /* and smaller again: what is there stays, growth is refused, removal works */
    snprintf(l.meta_args[0], sizeof(l.meta_args[0]), "--meta-map-bytes=16M");
    cs_bounce(&l, CS_META);
    NT_STATUS(nt_create(c, &d, "no", GUARDED, &set, NULL), NFS3ERR_NOSPC);
    NT_OK(nt_lookup(c, &d, "g0"));
    NT_OK(nt_remove(c, &d, "g0"));
    snprintf(l.meta_args[0], sizeof(l.meta_args[0]), "--meta-map-bytes=64M");
    cs_bounce(&l, CS_META);
    for (unsigned i = 1; i < n; i++) {
        snprintf(name, sizeof(name), "g%u", i);
        NT_OK(nt_remove(c, &d, name));
    }
    deadline = cs_after(30);
    while (nt_create(c, &d, "yes", GUARDED, &set, NULL) != NFS3_OK) {
        NT_EQ(c->r.status, NFS3ERR_NOSPC);
        NT_CHECK(nt_now_ns() < deadline);
        cs_nap_ms(20);
    }
    none_died(&l);
    nt_close(c);
    small_stop(&l);
}

/* A reader of an old state (fsck holds one per shard) while files come and go: freed pages cannot
 * be used again meanwhile, and the file stays within its bound. */
struct reader {
    struct nt_env *e;
    bool stop;
    unsigned runs, bad;
};

static void *read_old_states(void *arg)
{
    static const char *const fsck[] = {"fsck", NULL};
    struct reader *r = arg;

    while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
        r->bad += nt_cli(&r->e->node, NULL, 0, fsck) != 0;
        r->runs++;
    }
    return NULL;
}

static void t_l6_reader(struct nt_env *e)
{
    struct reader r = {.e = e};
    uint64_t deadline = cs_after(6);
    unsigned rounds = 0;
    pthread_t th;
    char path[300];
    struct stat st;

    NT_EQ(pthread_create(&th, NULL, read_old_states, &r), 0);
    while (nt_now_ns() < deadline) {
        uint32_t made = cs_many(e->root, CS_CREATE, &e->dir, NULL, "f", 0, 500);
        uint32_t removed = cs_many(e->root, CS_REMOVE, &e->dir, NULL, "f", 0, 500);

        if (made != NFS3_OK || removed != NFS3_OK) {
            printf("# create %s, remove %s\n", nt_status_name(made), nt_status_name(removed));
            rounds = 0;
            break;
        }
        rounds++;
    }
    __atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
    pthread_join(th, NULL);
    snprintf(path, sizeof(path), "%s/data/meta/shards/00000/data.mdb", e->node.dir);
    NT_EQ(stat(path, &st), 0);
    printf("# %u rounds of 500 files, %u checks, data.mdb %.1f MiB\n", rounds, r.runs,
           (double)st.st_size / MIB);
    NT_CHECK(rounds > 0 && r.runs > 0);
    NT_EQ(r.bad, 0);
    NT_CHECK(st.st_size < 2 * 64ll * MIB + 8 * MIB);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"D6 every segment full in mid-write", t_d6, true},
        {"D6 one segment full, one down", t_d6_down, true},
        {"D7 moves and removals when all is full", t_d7, true},
        {"L6 a full map: removals work, a larger one helps", t_l6, true},
        {"L6 an old reader under churn", t_l6_reader, true},
    };

    char dir[] = "/tmp/hf-cases.XXXXXX";
    int rc;

    /* all mounts lie below this one, and go with it */
    if (mkdtemp(dir) == NULL || mount("tmpfs", dir, "tmpfs", 0, "size=1g") != 0) {
        perror("a tmpfs for the test");
        return 1;
    }
    setenv("TMPDIR", dir, 1);
    rc = nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]),
                 "meta:\n  map_bytes: 64M\n  reserve_bytes: 4M\n");
    umount2(dir, MNT_DETACH);
    rmdir(dir);
    return rc;
}

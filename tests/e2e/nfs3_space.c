/* SPDX-License-Identifier: Apache-2.0
 *
 * No space: the node lives on a small tmpfs and its shards are small. What needs space is refused
 * with NOSPC, by WRITE or by COMMIT; reading and removing go on; what is removed can be used again;
 * after a restart everything acknowledged is there. Needs root, for the tmpfs.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "../support/nt.h"

#define MIB      (1u << 20)
#define FREE_SEC 60

static void nap(void)
{
    struct timespec ts = {.tv_nsec = 20000000};

    nanosleep(&ts, NULL);
}

static void fsck(struct nt_env *e)
{
    static const char *const args[] = {"fsck", NULL};
    char out[4096] = "";

    if (nt_cli(&e->node, out, sizeof(out), args) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck: %s", out);
    }
}

static void restart(struct nt_env *e, int sig)
{
    nt_node_kill(&e->node, sig);
    nt_node_start(&e->node);
    nt_reconnect(e);
}

/* Inline files until the shard is full. */
static unsigned fill_shard(struct nt_env *e, const uint8_t *b, uint32_t len)
{
    char name[32];

    for (unsigned i = 0; i < 20000; i++) {
        struct nt *c = e->root;

        snprintf(name, sizeof(name), "f%u", i);
        NT_ONE_OF(nt_create(c, &e->dir, name, GUARDED, &NT_SET_MODE(0644), NULL), NFS3_OK,
                  NFS3ERR_NOSPC);
        if (c->r.status == NFS3ERR_NOSPC) {
            NT_CHECK(c->r.wcc.have_after);
            return i;
        }
        NT_ONE_OF(nt_write(c, &c->r.fh, 0, b, len, FILE_SYNC), NFS3_OK, NFS3ERR_NOSPC);
        if (c->r.status == NFS3ERR_NOSPC) {
            NT_OK(nt_remove(c, &e->dir, name));
            return i;
        }
    }
    nt_fail(__FILE__, __LINE__, "the shard never fills");
}

static void check_files(struct nt_env *e, unsigned from, unsigned to, const uint8_t *b,
                        uint32_t len)
{
    char name[32];

    for (unsigned i = from; i < to; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        NT_OK(nt_lookup(e->root, &e->dir, name));
        NT_OK(nt_read(e->root, &e->root->r.fh, 0, len));
        NT_EQ(e->root->r.count, len);
        NT_CHECK(memcmp(e->root->data, b, len) == 0);
    }
}

static void t_metadata(struct nt_env *e)
{
    enum { LEN = 8000 };
    uint8_t *b = malloc(LEN);
    uint64_t deadline;
    char name[32];
    unsigned n;

    nt_pattern(1, 0, b, LEN);
    n = fill_shard(e, b, LEN);
    printf("# full after %u files\n", n);
    NT_CHECK(n > 100);
    check_files(e, 0, n, b, LEN);
    NT_OK(nt_readdirplus(e->root, &e->dir, 0, NULL, 65536, 65536));
    restart(e, SIGKILL);
    check_files(e, 0, n, b, LEN);
    fsck(e);
    for (unsigned i = 0; i < n / 2; i++) { /* removal goes on when nothing else does */
        snprintf(name, sizeof(name), "f%u", i);
        NT_OK(nt_remove(e->root, &e->dir, name));
    }
    deadline = nt_now_ns() + FREE_SEC * 1000000000ull;
    while (nt_create(e->root, &e->dir, "again", UNCHECKED, &NT_SET_MODE(0644), NULL) != NFS3_OK) {
        NT_EQ(e->root->r.status, NFS3ERR_NOSPC);
        NT_CHECK(nt_now_ns() < deadline);
        nap();
    }
    check_files(e, n / 2, n, b, LEN);
    for (unsigned i = n / 2; i < n; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        NT_OK(nt_remove(e->root, &e->dir, name));
    }
    restart(e, SIGTERM);
    fsck(e);
    free(b);
}

/* A large file until the disk is full. The client's rule: data counts when COMMIT has said so. */
static uint64_t fill_disk(struct nt_env *e, const struct nt_fh *fh, uint8_t *b)
{
    uint64_t committed = 0;

    for (uint64_t off = 0; off < 4096ull * MIB; off += MIB) {
        nt_pattern(7, off, b, MIB);
        NT_ONE_OF(nt_write(e->root, fh, off, b, MIB, UNSTABLE), NFS3_OK, NFS3ERR_NOSPC);
        if (e->root->r.status != NFS3_OK) {
            return committed;
        }
        NT_CHECK(e->root->r.count > 0);
        off -= MIB - e->root->r.count; /* a short write near the end is a write */
        if (off % (8 * MIB) == 0) {
            NT_ONE_OF(nt_commit(e->root, fh, 0, 0), NFS3_OK, NFS3ERR_NOSPC);
            if (e->root->r.status != NFS3_OK) {
                return committed;
            }
            committed = off;
        }
    }
    nt_fail(__FILE__, __LINE__, "the disk never fills");
}

static void t_data(struct nt_env *e)
{
    uint8_t *b = malloc(MIB);
    struct nt_fh fh, small;
    uint64_t committed, deadline;

    nt_mk_file(e->root, &e->dir, "big", 0644, &fh);
    nt_mk_file(e->root, &e->dir, "small", 0644, &small);
    committed = fill_disk(e, &fh, b);
    printf("# full after %llu MiB\n", (unsigned long long)(committed / MIB));
    NT_CHECK(committed >= 8 * MIB);
    for (int round = 0; round < 2; round++) {
        for (uint64_t off = 0; off < committed; off += MIB) {
            NT_OK(nt_read(e->root, &fh, off, MIB));
            NT_EQ(e->root->r.count, MIB);
            NT_CHECK(nt_pattern_ok(7, off, e->root->data, MIB));
        }
        restart(e, SIGKILL);
    }
    NT_OK(nt_remove(e->root, &e->dir, "big"));
    deadline = nt_now_ns() + FREE_SEC * 1000000000ull;
    while (nt_write(e->root, &small, 0, b, MIB, FILE_SYNC) !=
           NFS3_OK) { /* freed in the background */
        NT_EQ(e->root->r.status, NFS3ERR_NOSPC);
        NT_CHECK(nt_now_ns() < deadline);
        nap();
    }
    NT_OK(nt_read(e->root, &small, 0, MIB));
    NT_EQ(e->root->r.count, MIB);
    fsck(e);
    free(b);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"metadata", t_metadata, true},
        {"data", t_data, true},
    };
    char dir[] = "/tmp/hf-space.XXXXXX";
    int rc;

    if (mkdtemp(dir) == NULL || mount("tmpfs", dir, "tmpfs", 0, "size=1g") != 0) {
        perror("a tmpfs for the test");
        return 1;
    }
    setenv("TMPDIR", dir, 1);
    rc = nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]),
                 "meta:\n  map_bytes: 16M\n  reserve_bytes: 4M\n"
                 "wal:\n  file_bytes: 4M\n  max_bytes: 64M\n  reserve_bytes: 16M\n");
    umount2(dir, MNT_DETACH);
    rmdir(dir);
    return rc;
}

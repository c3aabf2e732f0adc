/* SPDX-License-Identifier: Apache-2.0
 *
 * Failing backends below a whole node: a device that flips bits or says EIO gives NFS3ERR_IO and a
 * logged event, never wrong data; what does not touch it goes on; with a sound device everything is
 * there again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/nt.h"

#define MIB (1u << 20)

static void restart_with(struct nt_env *e, const char *hot)
{
    snprintf(e->node.hot, sizeof(e->node.hot), "%s", hot);
    nt_node_kill(&e->node, SIGTERM);
    nt_node_start(&e->node);
    nt_reconnect(e);
}

static uint8_t *pattern(void)
{
    uint8_t *b = malloc(MIB);

    NT_CHECK(b != NULL);
    for (size_t i = 0; i < MIB; i++) {
        b[i] = (uint8_t)(i * 7 + i / 251);
    }
    return b;
}

static struct nt_fh make(struct nt_env *e, const char *name, const uint8_t *b, uint32_t len)
{
    struct nt_fh fh;

    NT_OK(nt_create(e->root, &e->dir, name, GUARDED, &NT_SET_MODE(0644), NULL));
    fh = e->root->r.fh;
    NT_OK(nt_write(e->root, &fh, 0, b, len, FILE_SYNC));
    return fh;
}

static void check_content(struct nt_env *e, const struct nt_fh *fh, const uint8_t *b, uint32_t len)
{
    NT_OK(nt_read(e->root, fh, 0, len));
    NT_EQ(e->root->r.count, len);
    NT_CHECK(memcmp(e->root->data, b, len) == 0);
}

static bool log_has(const struct nt_node *n, const char *text)
{
    char path[300], line[2048];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/log", n->dir);
    f = fopen(path, "re");
    NT_CHECK(f != NULL);
    while (!found && fgets(line, sizeof(line), f) != NULL) {
        found = strstr(line, text) != NULL;
    }
    fclose(f);
    return found;
}

/* Flipped bits on every read: no byte of them reaches a client. */
static void t_flipped_bits(struct nt_env *e)
{
    static const char *const status[] = {"--json", "status", NULL}, *const fsck[] = {"fsck", NULL};
    uint8_t *b = pattern();
    struct nt_fh big = make(e, "big", b, MIB), small = make(e, "small", b, 4096);
    static char out[65536];

    restart_with(e, "error(flip=1)+posix");
    NT_STATUS(nt_read(e->root, &big, 0, MIB), NFS3ERR_IO);
    NT_STATUS(nt_read(e->root, &big, 70000, 100), NFS3ERR_IO);
    check_content(e, &small, b, 4096); /* inline: not on that device */
    NT_EQ(nt_cli(&e->node, out, sizeof(out), status), 0);
    NT_CHECK(log_has(&e->node, "WARN") || log_has(&e->node, "ERROR"));
    out[0] = '\0';
    NT_EQ(nt_cli(&e->node, out, sizeof(out), fsck), 1);
    NT_CHECK(strstr(out, "chunk-data") != NULL);
    restart_with(e, "posix");
    check_content(e, &big, b, MIB);
    out[0] = '\0';
    NT_EQ(nt_cli(&e->node, out, sizeof(out), fsck), 0);
    free(b);
}

/* EIO on writes and on syncs: the client is told by WRITE or COMMIT; old data stays. */
static void t_failing_device(struct nt_env *e)
{
    static const char *const specs[] = {"error(op=write,status=EIO)+posix",
                                        "error(op=sync,status=EIO)+posix"};
    uint8_t *b = pattern();
    struct nt_fh old = make(e, "old", b, MIB), fh;

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        char name[16];

        restart_with(e, specs[i]);
        snprintf(name, sizeof(name), "new%zu", i);
        NT_OK(nt_create(e->root, &e->dir, name, GUARDED, &NT_SET_MODE(0644), NULL));
        fh = e->root->r.fh;
        NT_STATUS(nt_write(e->root, &fh, 0, b, MIB, FILE_SYNC), NFS3ERR_IO);
        if (nt_write(e->root, &fh, 0, b, MIB, UNSTABLE) == NFS3_OK) {
            NT_STATUS(nt_commit(e->root, &fh, 0, 0), NFS3ERR_IO);
        } else {
            NT_EQ(e->root->r.status, NFS3ERR_IO);
        }
        check_content(e, &old, b, MIB);
        NT_OK(nt_remove(e->root, &e->dir, name));
    }
    restart_with(e, "posix");
    check_content(e, &old, b, MIB);
    free(b);
}

/* A slow device: nothing fails, nothing is lost. */
static void t_slow_device(struct nt_env *e)
{
    uint8_t *b = pattern();
    struct nt_fh fh;

    restart_with(e, "delay(ms=20)+posix");
    fh = make(e, "slow", b, MIB);
    check_content(e, &fh, b, MIB);
    restart_with(e, "posix");
    check_content(e, &fh, b, MIB);
    free(b);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"flipped bits", t_flipped_bits, true},
        {"failing device", t_failing_device, true},
        {"slow device", t_slow_device, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

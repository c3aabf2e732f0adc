/* SPDX-License-Identifier: Apache-2.0
 *
 * Public bug L8: the metadata server dies after a change is durable and before it is answered. The
 * gateway sends the change again; it must run once. (That the sender of a message that is too long
 * refuses it itself is rpc's conformance suite: oversize_is_refused_here.)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cs.h"

enum { OPS = 6 };

struct doer {
    struct nt *c;
    struct nt_fh root, file;
    unsigned round, n;
    bool done;
    uint32_t bad;
    unsigned bad_op;
};

/* Changes that fail when they run twice. */
static uint32_t change(struct doer *d, unsigned op, unsigned i)
{
    char a[32], b[32];

    snprintf(a, sizeof(a), "r%u.%u", d->round, i);
    snprintf(b, sizeof(b), "s%u.%u", d->round, i);
    switch (op) {
    case 0:
        return nt_create(d->c, &d->root, a, GUARDED, &NT_SET_MODE(0644), NULL);
    case 1:
        return nt_rename(d->c, &d->root, a, &d->root, b);
    case 2:
        return nt_link(d->c, &d->file, &d->root, a);
    case 3:
        return nt_remove(d->c, &d->root, b);
    case 4:
        return nt_mkdir(d->c, &d->root, b, &NT_SET_MODE(0755));
    default:
        return nt_rmdir(d->c, &d->root, b);
    }
}

static void *doing(void *arg)
{
    struct doer *d = arg;

    for (unsigned k = 0; k < d->n && d->bad == NFS3_OK; k++) {
        d->bad_op = k % OPS;
        d->bad = change(d, d->bad_op, k / OPS);
    }
    __atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Starts the metadata server anew when its fault has ended it; whether it has. */
static bool mourn(struct cs_layout *l, struct doer *d)
{
    int status;

    while (!__atomic_load_n(&d->done, __ATOMIC_ACQUIRE)) {
        if (waitpid(l->pid[CS_META], &status, WNOHANG) == l->pid[CS_META]) {
            NT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 137);
            l->fault[CS_META][0] = '\0';
            cs_start(l, CS_META);
            return true;
        }
        cs_nap_ms(2);
    }
    return false;
}

static void t_l8(struct nt_env *e)
{
    struct cs_layout l = {0};
    unsigned crashes = 0;
    struct nt_fh file;
    struct nt *c;

    (void)e;
    cs_layout_start(&l);
    c = cs_gw(&l, 0);
    nt_mk_file(c, &l.root, "file", 0644, &file);
    for (unsigned round = 0; round < 8; round++) {
        struct doer d = {.root = l.root, .file = file, .round = round, .n = 10 * OPS};
        pthread_t th;

        snprintf(l.fault[CS_META], sizeof(l.fault[0]), "shard.durable=crash@%u", 10 + 3 * round);
        cs_bounce(&l, CS_META);
        d.c = cs_gw(&l, round % 2);
        d.c->tolerant = true;
        NT_EQ(pthread_create(&th, NULL, doing, &d), 0);
        crashes += mourn(&l, &d);
        pthread_join(th, NULL);
        nt_close(d.c);
        if (d.bad != NFS3_OK) {
            nt_fail(__FILE__, __LINE__, "round %u: change of kind %u answers %s", round, d.bad_op,
                    nt_status_name(d.bad));
        }
        NT_OK(nt_getattr(c, &file)); /* one link each, no more */
        NT_EQ(c->r.attr.nlink, 1 + 10 * (round + 1));
        l.fault[CS_META][0] = '\0';
    }
    printf("# died %u times between log and reply\n", crashes);
    NT_CHECK(crashes >= 5);
    nt_close(c);
    cs_layout_stop(&l);
}

int main(int argc, char **argv)
{
    static const struct nt_test tests[] = {
        {"L8 a change runs once when the server dies before it replies", t_l8, true},
    };

    return nt_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), NULL);
}

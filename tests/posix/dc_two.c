/* SPDX-License-Identifier: Apache-2.0
 *
 * Two mounts of one file system take turns: a process works on the file through A for a while,
 * closes it and hands over; the other one opens it through B and must find exactly that. The model
 * is handed over with it, through memory that both share.
 */
#include "dc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_OPS 200u

/* Shared by both processes; whoever has the turn owns it. */
struct baton {
    uint64_t rng, op;
    size_t size;
    uint8_t model[];
};

static int turn(const struct dc_opts *o, struct baton *b, uint64_t n)
{
    struct dc_opts mine = *o;
    struct dc d;
    int rc = -1;

    mine.ops = n;
    mine.quiet = true;
    if (dc_init(&d, &mine) != 0) {
        return -1;
    }
    d.rng = b->rng;
    d.op = b->op;
    d.size = b->size;
    memcpy(d.model, b->model, o->max_size);
    d.fd = open(o->path, O_RDWR | O_CREAT, 0644);
    if (d.fd < 0) {
        printf("datacheck: %s: %s\n", o->path, strerror(errno));
    } else {
        dc_note(&d, "handed over to %s", o->path);
        rc = dc_check_all(&d);
    }
    if (rc == 0) {
        rc = dc_run(&d);
    }
    b->rng = d.rng;
    b->op = d.op;
    b->size = d.size;
    memcpy(b->model, d.model, o->max_size);
    dc_fini(&d); /* closes: that is what hands over */
    return rc;
}

static int player(const struct dc_opts *o, struct baton *b, int take, int give)
{
    char c;

    while (read(take, &c, 1) == 1) {
        uint64_t left = o->ops - b->op;

        if (left == 0) {
            return 0;
        }
        if (turn(o, b, left < TURN_OPS ? left : TURN_OPS) != 0) {
            return 1;
        }
        if (write(give, "t", 1) != 1) {
            return 1;
        }
    }
    return b->op == o->ops ? 0 : 1;
}

int dc_two(const struct dc_opts *o, const char *dir_a, const char *dir_b)
{
    int ab[2], ba[2], status = 0;
    struct dc_opts a = *o, b = *o;
    char path_a[4096], path_b[4096];
    struct baton *baton;
    pid_t pid;
    int rc;

    if ((size_t)snprintf(path_a, sizeof(path_a), "%s/%s", dir_a, o->path) >= sizeof(path_a) ||
        (size_t)snprintf(path_b, sizeof(path_b), "%s/%s", dir_b, o->path) >= sizeof(path_b)) {
        return 1;
    }
    a.path = path_a;
    b.path = path_b;
    baton = mmap(NULL, sizeof(*baton) + o->max_size, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (baton == MAP_FAILED || pipe2(ab, O_CLOEXEC) != 0 || pipe2(ba, O_CLOEXEC) != 0) {
        perror("datacheck");
        return 1;
    }
    baton->rng = o->seed;
    signal(SIGPIPE, SIG_IGN);
    fflush(stdout);
    pid = fork();
    if (pid < 0) {
        perror("datacheck");
        return 1;
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ab[1]);
        close(ba[0]);
        rc = player(&b, baton, ab[0], ba[1]);
        fflush(stdout);
        _exit(rc);
    }
    close(ab[0]);
    close(ba[1]);
    rc = turn(&a, baton, o->ops < TURN_OPS ? o->ops : TURN_OPS) != 0 || write(ab[1], "t", 1) != 1;
    if (rc == 0) {
        rc = player(&a, baton, ba[0], ab[1]);
    }
    close(ab[1]);
    close(ba[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        rc = 1;
    }
    (void)unlink(path_a);
    munmap(baton, sizeof(*baton) + o->max_size);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * crash_child DIR FAULTS FD [opens]: serves the shards in DIR and creates files until a fault ends
 * the process; writes the number of each file to FD when it has been acknowledged. opens: each file
 * is open, and removed before it is told of; every second one is closed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support_meta.h"

static void tell(void *arg, unsigned i)
{
    int fd = *(int *)arg;

    if (write(fd, &i, sizeof(i)) != (ssize_t)sizeof(i))
        _exit(99);
}

static void opens(struct fixture *f, int fd)
{
    uint64_t seq = 0;

    if (do_session_open(f, 7))
        _exit(95);
    for (unsigned i = 0; i < 4000; i++) {
        char name[32];
        struct result r;

        (void)snprintf(name, sizeof(name), "o%u", i);
        r = do_create_open(f, name, 7, 0, ++seq);
        if (r.status || do_remove(f, name).status)
            _exit(94);
        if (i % 2 && do_close(f, r.ino, 7, 0, ++seq))
            _exit(93);
        tell(&fd, i);
    }
}

int main(int argc, char **argv)
{
    struct fixture f;
    int fd;

    if (argc != 4 && argc != 5)
        return 98;
    fd = (int)strtol(argv[3], NULL, 10);
    fixture_init_in(&f, argv[1], argv[2]);
    f.opts.checkpoint_changes = 128;
    if (fixture_start(&f))
        return 97;
    if (argc == 5)
        opens(&f, fd);
    else
        (void)create_many(&f, "f", 4000, 8, tell, &fd);
    _exit(0); /* the fault was not reached */
}

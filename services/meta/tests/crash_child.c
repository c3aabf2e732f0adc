/* SPDX-License-Identifier: Apache-2.0
 *
 * crash_child DIR FAULTS FD: serves the shards in DIR and creates files until a fault ends the
 * process; writes the number of each file to FD when it has been acknowledged.
 */
#include <stdlib.h>
#include <unistd.h>

#include "support_meta.h"

static void tell(void *arg, unsigned i)
{
    int fd = *(int *)arg;

    if (write(fd, &i, sizeof(i)) != (ssize_t)sizeof(i))
        _exit(99);
}

int main(int argc, char **argv)
{
    struct fixture f;
    int fd;

    if (argc != 4)
        return 98;
    fd = (int)strtol(argv[3], NULL, 10);
    fixture_init_in(&f, argv[1], argv[2]);
    f.opts.checkpoint_changes = 128;
    if (fixture_start(&f))
        return 97;
    (void)create_many(&f, "f", 4000, 8, tell, &fd);
    _exit(0); /* the fault was not reached */
}

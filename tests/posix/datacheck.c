/* SPDX-License-Identifier: Apache-2.0
 *
 * datacheck: does a file hold what was written to it? See dc.h.
 *
 *   datacheck [flags] FILE
 *   datacheck [flags] --two-dirs DIR DIR
 */
#include "dc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: datacheck [flags] FILE\n"
    "       datacheck [flags] --two-dirs DIR DIR   the same directory through two mounts, in "
    "turns\n"
    "\n"
    "  --seed N        the operations to draw (default: the time)\n"
    "  --ops N         how many (default 100000)\n"
    "  --max-size N    of the file, in bytes (default 10485760)\n"
    "  --every N       compare the whole file after N operations (default 1000)\n"
    "  --no-mmap       no maps\n"
    "  --no-punch      no fallocate\n"
    "  --no-copy       no copy_file_range\n"
    "  --no-seek       no SEEK_DATA\n"
    "  --no-append     no O_APPEND\n"
    "  --spoil N       change a byte behind its own back after operation N: it must notice\n"
    "  --quiet         no progress\n"
    "\n"
    "exit codes: 0 all is right, 1 not, 2 wrong usage\n";

static bool number(const char *text, uint64_t *ret)
{
    char *end;

    *ret = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

static int wrong_usage(void)
{
    fputs(usage, stderr);
    return 2;
}

static int run_one(const struct dc_opts *o)
{
    struct dc d;
    int rc = dc_init(&d, o);

    (void)unlink(o->path);
    if (rc == 0) {
        rc = dc_run(&d);
    }
    dc_fini(&d);
    if (rc == 0) {
        (void)unlink(o->path); /* when it is wrong it stays, to be looked at */
    }
    return rc != 0;
}

int main(int argc, char **argv)
{
    struct dc_opts o = {.ops = 100000, .max_size = 10u << 20, .every = 1000};
    const char *dirs[2] = {NULL, NULL};
    struct timespec now;
    uint64_t max = o.max_size;
    int rc;

    clock_gettime(CLOCK_REALTIME, &now);
    o.seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";
        uint64_t *n = strcmp(a, "--seed") == 0       ? &o.seed
                      : strcmp(a, "--ops") == 0      ? &o.ops
                      : strcmp(a, "--max-size") == 0 ? &max
                      : strcmp(a, "--every") == 0    ? &o.every
                      : strcmp(a, "--spoil") == 0    ? &o.spoil
                                                     : NULL;

        if (n != NULL) {
            if (!number(v, n)) {
                return wrong_usage();
            }
            i++;
        } else if (strcmp(a, "--two-dirs") == 0 && i + 2 < argc) {
            dirs[0] = argv[++i];
            dirs[1] = argv[++i];
        } else if (strcmp(a, "--no-mmap") == 0) {
            o.no_mmap = true;
        } else if (strcmp(a, "--no-punch") == 0) {
            o.no_punch = true;
        } else if (strcmp(a, "--no-copy") == 0) {
            o.no_copy = true;
        } else if (strcmp(a, "--no-seek") == 0) {
            o.no_seek = true;
        } else if (strcmp(a, "--no-append") == 0) {
            o.no_append = true;
        } else if (strcmp(a, "--quiet") == 0) {
            o.quiet = true;
        } else if (a[0] == '-' || o.path != NULL) {
            return wrong_usage();
        } else {
            o.path = a;
        }
    }
    o.max_size = (size_t)max;
    if ((o.path == NULL) == (dirs[0] == NULL) || max < 4096 || max > (UINT64_C(1) << 31) ||
        o.every == 0 || o.ops == 0) {
        return wrong_usage();
    }
    printf("datacheck: seed %" PRIu64 ", %" PRIu64 " operations, up to %zu bytes\n", o.seed, o.ops,
           o.max_size);
    fflush(stdout);
    if (dirs[0] != NULL) {
        o.path = "datacheck.two";
        rc = dc_two(&o, dirs[0], dirs[1]);
    } else {
        rc = run_one(&o);
    }
    printf("datacheck: %s\n", rc == 0 ? "all is right" : "FAILED");
    return rc;
}

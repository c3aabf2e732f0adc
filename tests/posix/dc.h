/* SPDX-License-Identifier: Apache-2.0
 *
 * The data checker: random operations on one file, each done on a model in memory as well, and the
 * two compared. A seed gives the same operations again.
 */
#ifndef DC_H
#define DC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dc_opts {
    const char *path;
    uint64_t seed, ops;
    size_t max_size;
    uint64_t every; /* the whole file is compared after this many operations */
    uint64_t spoil; /* before this operation a byte is changed behind the model; 0: never */
    bool no_mmap, no_punch, no_copy, no_seek, no_append, quiet;
};

struct dc {
    const struct dc_opts *o;
    uint64_t rng, op;
    int fd;
    bool append;    /* how fd is open */
    uint8_t *model; /* max_size bytes; beyond size all zero */
    uint8_t *buf;
    size_t size;
    bool punch_ok, zero_ok, keep_ok, copy_ok; /* what this file system has */
    char (*log)[96];                          /* the last operations, a ring */
};

#define DC_LOG 50u

int dc_init(struct dc *d, const struct dc_opts *o);
void dc_fini(struct dc *d);
/* 0, or -1 after printing what is wrong. */
int dc_run(struct dc *d);
int dc_check_all(struct dc *d);
/* Prints seed, number and the last operations. Returns -1. */
int dc_wrong(struct dc *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void dc_note(struct dc *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t dc_random(struct dc *d, uint64_t below);

/* Two processes, dir_a and dir_b the same directory through two mounts. */
int dc_two(const struct dc_opts *o, const char *dir_a, const char *dir_b);

#endif

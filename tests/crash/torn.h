/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the torn-write test: torn_load.c makes a trace, torn_play.c turns it into images and
 * checks what recovery makes of them, torn.c has the options.
 */
#ifndef HF_TESTS_TORN_H
#define HF_TESTS_TORN_H

#include "kill9.h"
#include "trace.h"

#define TORN_WORKERS 4
#define TORN_SLOTS   10

/* Data of a TR_MARK. ev is an enum k9_event, or: */
#define MARK_WORKER 100 /* a worker's folders have been made: fh and dirs */
#define MARK_READY  101 /* so have all */

struct mark {
    uint32_t ev, worker;
    struct pending p;
    struct nt_fh fh, dirs[DIRS];
    uint64_t size; /* K9_FOUND: of the file; its bytes from p.off on, up to p.len, follow */
};

struct trace {
    uint8_t *base;
    uint64_t *at; /* of each record */
    uint64_t n;
    int fd;
};

/* ---- torn_load.c ---- */

/* Makes the trace in file, from a node whose folder is made in dir, and checks that it tells all:
 * played back it gives the node's folder. ops: acknowledged changes, about. */
void torn_record(const char *file, const char *dir, uint64_t seed, unsigned ops);

/* ---- torn_play.c ---- */

void torn_trace_open(struct trace *t, const char *file);
void torn_trace_close(struct trace *t);
/* The record at place i, and its data behind it. */
const struct trace_rec *torn_rec(const struct trace *t, uint64_t i);

struct torn_plan {
    const struct trace *trace;
    uint64_t seed;
    unsigned images;
    unsigned job, jobs; /* this process does the images whose place in the order is job mod jobs */
    int only;           /* >= 0: this image alone */
    const char *dir;    /* for images */
};

struct torn_result { /* in memory shared with the parent */
    unsigned image;  /* being checked */
    uint64_t cut;
    uint64_t done, in_doubt_done, in_doubt_not;
    uint64_t open_writes, torn, left_out, names_left_out;
};

/* Ends the process with a message at the first image that fails. */
void torn_play(const struct torn_plan *p, struct torn_result *res);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-segment: the segment service as a process of its own. Private to main.c and process.c.
 */
#ifndef HOLDFAST_SVC_SEGMENT_PROCESS_H
#define HOLDFAST_SVC_SEGMENT_PROCESS_H

#include "holdfast/buf.h"

/* Runs until SIGTERM or SIGINT. Returns the exit status: 0 stopped cleanly, 1 could not start, 2
 * bad configuration; *out holds what to print (help on stdout with 0, errors otherwise). */
int segment_process(int argc, char **argv, char *const *envp, struct hf_buf *out);

#endif

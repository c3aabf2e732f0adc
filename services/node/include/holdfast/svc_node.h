/* SPDX-License-Identifier: Apache-2.0
 *
 * A node: any set of roles in one process, speaking inproc to each other, with a local admin socket
 * for the CLI (DIR/run/admin.sock).
 *
 * Threads: the caller's thread starts and frees; each role has its own; the admin socket has one.
 */
#ifndef HOLDFAST_SVC_NODE_H
#define HOLDFAST_SVC_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/buf.h"

struct hf_node;

/* Parses flags, environment and file (--config), then starts every role. argv as main() got it.
 * CANCELED: --help or --version was asked for, the text is in *out. CONF: bad configuration, *out
 * says file, line, key and what is allowed. Anything else: *out has one line for people.
 */
int hf_node_new(int argc, char **argv, char *const *envp, struct hf_node **ret, struct hf_buf *out);
/* Blocks until SIGTERM, SIGINT or a Stop call. */
void hf_node_wait(struct hf_node *n);
/* Clean stop: requests in flight are answered, every shard is checkpointed. */
void hf_node_free(struct hf_node *n);
/* --fsck was given: the node serves nobody; run the check and stop. */
bool hf_node_wants_fsck(const struct hf_node *n);
/* Checks the file system; prints counts and findings (JSON with --json). Returns the number of
 * problems, or a negative error with its line in *out. */
int hf_node_fsck(struct hf_node *n, struct hf_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The CLI's connection to a running node: its admin socket, and the metadata service that the admin
 * socket names. Everything is synchronous, on the calling thread.
 */
#ifndef HF_CLI_CLI_NODE_H
#define HF_CLI_CLI_NODE_H

#include "cli.h"

#include "holdfast/wire/meta.pb-c.h"
#include "holdfast/wire/node.pb-c.h"
#include "holdfast/wire/segment.pb-c.h"

struct cli_node;

/* CLI_OK, or CLI_UNREACHABLE with a message on stderr. */
int cli_node_open(const struct cli *cli, struct cli_node **ret);
void cli_node_close(struct cli_node *n);
/* The node's answer to Status; lives as long as n. */
const Hf__NodeStatusRep *cli_node_status(const struct cli_node *n);

/* One call to the metadata service: `method` of `service` (as in the .proto). *ret is the caller's
 * to free with protobuf_c_message_free_unpacked; HF_E_* is returned as it came. */
int cli_node_meta_call(struct cli_node *n, const ProtobufCServiceDescriptor *service,
                       const char *method, const ProtobufCMessage *req, unsigned timeout_s,
                       ProtobufCMessage **ret);
/* The cluster map, as MapGet tells it; free with hf__map_get_rep__free_unpacked. */
int cli_node_map(struct cli_node *n, Hf__MapGetRep **ret);

/* What each segment server says of its segments: fn(arg, segment), for every one. CLI_OK, or
 * CLI_UNREACHABLE with a message on stderr. */
int cli_node_segments(struct cli_node *n, void (*fn)(void *arg, const Hf__SegStat *s), void *arg);

#endif

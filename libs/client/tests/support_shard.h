/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_SUPPORT_SHARD_H
#define CLIENT_SUPPORT_SHARD_H

#include "support_world.h"

void shard_server_init(struct world *w, unsigned index);
void shard_server_fini(struct wmeta *m);
/* An empty file. */
uint64_t shard_make_file(struct world *w, struct hf_client *c);
/* True: the file cannot be made longer than W_INLINE_MAX by SETATTR. */
bool shard_limits_size(struct world *w, uint64_t ino);

#endif

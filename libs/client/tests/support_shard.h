/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_SUPPORT_SHARD_H
#define CLIENT_SUPPORT_SHARD_H

#include "support_world.h"

void shard_server_init(struct world *w, unsigned index);
void shard_server_fini(struct wmeta *m);

#endif

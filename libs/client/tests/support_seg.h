/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_SUPPORT_SEG_H
#define CLIENT_SUPPORT_SEG_H

#include "support_world.h"

void seg_server_init(struct world *w, unsigned index);
void seg_server_fini(struct wseg *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "expire.h"

#include <inttypes.h>

#include "holdfast/err.h"

#define SLICE 128u /* opens in one change */

struct slice {
    uint64_t id; /* session or inode */
    int64_t now_ns;
};

static int drop_opens(struct shard *s, void *arg)
{
    const struct slice *x = arg;

    return hf_meta_opens_expire(s->meta, x->id, x->now_ns, SLICE);
}

static int drop_orphan(struct shard *s, void *arg)
{
    const struct slice *x = arg;

    return hf_meta_orphan_del(s->meta, x->id, x->now_ns);
}

static int drop_append(struct shard *s, void *arg)
{
    const struct slice *x = arg;

    return hf_meta_append_drop(s->meta, x->id);
}

void expire_step(struct shard *s, struct expire *e)
{
    struct slice x = {.now_ns = shard_now_ns(s)};

    if (s->dead || s->checkpointing)
        return;
    for (unsigned n = 0; n < SLICE; n++) {
        if (hf_meta_opens_expired(s->meta, x.now_ns, &e->session, &x.id))
            break;
        if (!shard_change(s, drop_opens, &x))
            return;
        e->session = x.id; /* it may have more */
    }
    for (unsigned n = 0; n < SLICE; n++) {
        if (hf_meta_orphans_next(s->meta, x.now_ns, &e->orphan, &x.id))
            break;
        if (!shard_change(s, drop_orphan, &x))
            return;
    }
    for (unsigned n = 0; n < SLICE; n++)
        if (hf_meta_append_late(s->meta, x.now_ns, &x.id) || !shard_change(s, drop_append, &x))
            return;
}

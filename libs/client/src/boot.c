/* SPDX-License-Identifier: Apache-2.0
 *
 * Boots and write verifiers.
 *
 * Every reply that vouches for data carries the boot of the process that gave it: a number that is
 * new at every start. The verifier of a file is one hash of the boot of its shard and of the boots
 * of all segment servers in the map, as this client last knew them. So it is the same for all
 * writes and commits of a file as long as nothing restarted, whatever chunks they touch and whether
 * the file is inline or has moved to chunks meanwhile; two gateways that know the same boots give
 * the same one; and it changes when anything restarted that may have held data. It also changes,
 * needlessly but rarely, when a segment server comes into the map or answers for the first time.
 *
 * A write must not be answered with a verifier of later boots than its data went to, else a restart
 * in between would go unnoticed: boot_epoch counts the changes seen, and a write during which it
 * moved is answered with a value that no commit will ever return.
 *
 * A stored reply of a shard (exactly once) may carry the boot before the present one; it changes
 * nothing.
 */
#include "client_priv.h"

#define SPACE_USED_NS (10 * HF_NS_PER_SEC)

void boot_shard_seen(struct hf_client *c, uint64_t ino, uint64_t boot)
{
    struct shard *s = map_shard(c, ino);

    if (!s || boot == 0 || boot == s->boot || boot == s->prev_boot)
        return;
    if (s->boot)
        c->boot_epoch++;
    s->prev_boot = s->boot;
    s->boot = boot;
}

void boot_server_seen(struct seg_server *s, uint64_t boot)
{
    if (boot == 0 || boot == s->boot)
        return;
    if (s->boot)
        s->client->boot_epoch++;
    s->boot = boot;
    boot_mix(s->client);
}

void boot_mix(struct hf_client *c)
{
    uint64_t mix = 0, id;
    size_t pos = 0;
    void *v;

    while (hf_map_next(&c->segs, &pos, &id, &v)) {
        const struct seg_server *s = v;

        mix += hf_hash_u64(s->boot ^ hf_hash_u64(id + 1));
    }
    c->seg_mix = mix;
}

uint64_t boot_verifier(struct hf_client *c, uint64_t ino)
{
    const struct shard *s = map_shard(c, ino);

    return hf_hash_u64((s ? s->boot : 0) ^ hf_hash_u64(c->seg_mix));
}

/* ---- capacity ---- */

/* Segments on one disk see the same free space: it counts once. */
static bool shares_disk(const Hf__SegStatRep *rep, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (rep->segments[i]->domain && rep->segments[k]->domain == rep->segments[i]->domain)
            return true;
    return false;
}

static void on_stat(const Hf__SegStatRep *rep, void *arg)
{
    struct seg_server *s = hf_container_of(arg, struct seg_server, stat_rpc);
    uint64_t capacity = 0, free_bytes = 0;

    s->stat_busy = false;
    if (s->client->closing || s->stat_rpc.status || !rep)
        return;
    for (size_t i = 0; i < rep->n_segments; i++) {
        if (hf_map_get(&s->client->segs, rep->segments[i]->id) != s || shares_disk(rep, i))
            continue;
        if (__builtin_add_overflow(capacity, rep->segments[i]->capacity_bytes, &capacity))
            capacity = ~0ull;
        if (__builtin_add_overflow(free_bytes, rep->segments[i]->free_bytes, &free_bytes))
            free_bytes = ~0ull;
    }
    s->capacity = capacity;
    s->free = free_bytes;
    boot_server_seen(s, rep->boot);
}

void stat_send(struct seg_server *s)
{
    Hf__SegStatReq req = HF__SEG_STAT_REQ__INIT;

    if (s->stat_busy)
        return;
    s->stat_busy = true;
    s->stat_rpc = (struct hf_rpc_call){.timeout_ns = SMALL_RPC_NS};
    hf__segment__stat(s->service, &req, on_stat, &s->stat_rpc);
}

/* Each second: servers whose boot is not known, and all while somebody asks for the space. */
static void on_stat_timer(struct hf_timer *t)
{
    struct hf_client *c = hf_container_of(t, struct hf_client, stat_timer);
    bool used = c->space_used_ns && hf_loop_now_ns(c->loop) - c->space_used_ns < SPACE_USED_NS;

    HF_LIST_FOREACH(it, &c->seg_servers)
    {
        struct seg_server *s = hf_container_of(it, struct seg_server, link);

        if (used || s->boot == 0)
            stat_send(s);
    }
    sessions_tick(c);
    hf_timer_set(&c->stat_timer, HF_NS_PER_SEC);
}

void stat_init(struct hf_client *c)
{
    hf_timer_init(&c->stat_timer, c->loop, on_stat_timer);
    hf_timer_set(&c->stat_timer, HF_NS_PER_SEC);
}

void hf_client_space(struct hf_client *c, struct hf_client_space *ret)
{
    bool stale = !c->space_used_ns || hf_loop_now_ns(c->loop) - c->space_used_ns >= SPACE_USED_NS;

    *ret = (struct hf_client_space){0, 0};
    c->space_used_ns = hf_loop_now_ns(c->loop) + 1;
    HF_LIST_FOREACH(it, &c->seg_servers)
    {
        struct seg_server *s = hf_container_of(it, struct seg_server, link);

        if (stale && !c->closing)
            stat_send(s);
        if (!s->keep)
            continue;
        if (__builtin_add_overflow(ret->capacity_bytes, s->capacity, &ret->capacity_bytes))
            ret->capacity_bytes = ~0ull;
        if (__builtin_add_overflow(ret->free_bytes, s->free, &ret->free_bytes))
            ret->free_bytes = ~0ull;
    }
}

uint64_t hf_client_epoch(const struct hf_client *c)
{
    uint64_t sum = 0;

    HF_LIST_FOREACH(it, &c->meta_servers)
    sum += hf_rpc_client_epoch(hf_container_of(it, struct meta_server, link)->rpc);
    HF_LIST_FOREACH(it, &c->seg_servers)
    sum += hf_rpc_client_epoch(hf_container_of(it, struct seg_server, link)->rpc);
    return sum;
}

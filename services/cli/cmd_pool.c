/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: holdfast pool list\n"
    "\n"
    "Lists the pools: segments of one class, where file data lies, and how full they are.\n"
    "Pools on one disk show the same space. FREE is what files may still take: the\n"
    "reserve (segment.reserve_bytes) is left out.\n"
    "\n"
    "exit codes: 0 fine, 2 wrong usage, 3 not running or unreachable\n";

static size_t count_segments(const Hf__MapGetRep *m, uint32_t pool)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_segments; i++) {
        n += m->segments[i]->pool == pool;
    }
    return n;
}

#define DISKS_MAX 64

/* What the segments of a pool have together; segments on one disk share it. */
struct pool_space {
    uint64_t capacity, free_bytes, chunks;
    uint64_t disks[DISKS_MAX];
    size_t ndisks;
};

struct spaces {
    const Hf__MapGetRep *map;
    struct pool_space *pools; /* as in the map */
};

static bool seen_disk(struct pool_space *p, uint64_t disk)
{
    for (size_t i = 0; i < p->ndisks; i++) {
        if (p->disks[i] == disk) {
            return true;
        }
    }
    if (p->ndisks < DISKS_MAX && disk != 0) {
        p->disks[p->ndisks++] = disk;
    }
    return false;
}

static void add_segment(void *arg, const Hf__SegStat *s)
{
    struct spaces *all = arg;

    for (size_t i = 0; i < all->map->n_segments; i++) {
        const Hf__SegmentEntry *e = all->map->segments[i];

        for (size_t k = 0; e->id == s->id && k < all->map->n_pools; k++) {
            struct pool_space *p = &all->pools[k];

            if (all->map->pools[k]->id != e->pool) {
                continue;
            }
            p->chunks += s->chunks;
            if (!seen_disk(p, s->domain)) {
                p->capacity += s->capacity_bytes;
                p->free_bytes += s->free_bytes;
            }
        }
    }
}

static void add_bytes(struct cli_table *t, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes;
    size_t u = 0;

    for (; v >= 1024 && u + 1 < sizeof(units) / sizeof(units[0]); u++) {
        v /= 1024;
    }
    cli_table_addf(t, "%.*f %s", u ? 1 : 0, v, units[u]);
}

static void print_json(const Hf__MapGetRep *m, const struct pool_space *space)
{
    json_t *pools = json_array();

    for (size_t i = 0; i < m->n_pools; i++) {
        const Hf__PoolEntry *p = m->pools[i];
        json_t *segments = json_array();

        for (size_t k = 0; k < m->n_segments; k++) {
            if (m->segments[k]->pool == p->id) {
                json_array_append_new(segments,
                                      json_pack("{s:I, s:s}", "id", (json_int_t)m->segments[k]->id,
                                                "url", m->segments[k]->url));
            }
        }
        json_array_append_new(
            pools,
            json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "id", (json_int_t)p->id,
                      "name", p->name, "backend", p->backend, "chunk_bytes",
                      (json_int_t)p->chunk_bytes, "width", (json_int_t)p->width, "capacity_bytes",
                      (json_int_t)space[i].capacity, "free_bytes", (json_int_t)space[i].free_bytes,
                      "chunks", (json_int_t)space[i].chunks, "segments", segments));
    }
    cli_print_json(json_pack("{s:o}", "pools", pools));
}

static void print_table(const Hf__MapGetRep *m, const struct pool_space *space)
{
    static const char *const head[] = {"ID",    "NAME",   "BACKEND",  "SEGMENTS", "CHUNK",
                                       "WIDTH", "CHUNKS", "CAPACITY", "FREE"};
    struct cli_table *t = cli_table_new(9);

    for (size_t i = 0; i < 9; i++) {
        cli_table_add(t, head[i]);
    }
    for (unsigned i = 3; i < 9; i++) {
        cli_table_right(t, i);
    }
    for (size_t i = 0; i < m->n_pools; i++) {
        const Hf__PoolEntry *p = m->pools[i];

        cli_table_addf(t, "%" PRIu32, p->id);
        cli_table_add(t, p->name);
        cli_table_add(t, p->backend);
        cli_table_addf(t, "%zu", count_segments(m, p->id));
        cli_table_addf(t, "%" PRIu32 " KiB", p->chunk_bytes / 1024);
        cli_table_addf(t, "%" PRIu32, p->width);
        cli_table_addf(t, "%" PRIu64, space[i].chunks);
        add_bytes(t, space[i].capacity);
        add_bytes(t, space[i].free_bytes);
    }
    cli_table_print(t);
}

static int show(const struct cli *cli, struct cli_node *n, const Hf__MapGetRep *map)
{
    struct spaces all = {.map = map, .pools = calloc(map->n_pools + 1, sizeof(*all.pools))};
    int rc;

    if (all.pools == NULL) {
        return cli_fail(CLI_PROBLEM, "out of memory");
    }
    rc = cli_node_segments(n, add_segment, &all);
    if (rc == CLI_OK && cli->json) {
        print_json(map, all.pools);
    } else if (rc == CLI_OK) {
        print_table(map, all.pools);
    }
    free(all.pools);
    return rc;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct cli_node *n = NULL;
    Hf__MapGetRep *map = NULL;
    int rc;

    if (argc != 2 || strcmp(argv[1], "list") != 0) {
        return cli_fail(CLI_USAGE, "usage: holdfast pool list");
    }
    rc = cli_node_open(cli, &n);
    if (rc != CLI_OK) {
        return rc;
    }
    rc = cli_node_map(n, &map);
    if (rc == CLI_OK) {
        rc = show(cli, n, map);
        hf__map_get_rep__free_unpacked(map, NULL);
    }
    cli_node_close(n);
    return rc;
}

const struct cli_command cli_cmd_pool = {
    .name = "pool",
    .summary = "list pools",
    .help = help_text,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <inttypes.h>
#include <string.h>

static const char help_text[] = "usage: holdfast pool list\n"
                                "\n"
                                "Lists the pools: segments of one class, where file data lies.\n"
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

static void print_json(const Hf__MapGetRep *m)
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
        json_array_append_new(pools,
                              json_pack("{s:I, s:s, s:s, s:I, s:I, s:o}", "id", (json_int_t)p->id,
                                        "name", p->name, "backend", p->backend, "chunk_bytes",
                                        (json_int_t)p->chunk_bytes, "width", (json_int_t)p->width,
                                        "segments", segments));
    }
    cli_print_json(json_pack("{s:o}", "pools", pools));
}

static void print_table(const Hf__MapGetRep *m)
{
    static const char *const head[] = {"ID", "NAME", "BACKEND", "SEGMENTS", "CHUNK", "WIDTH"};
    struct cli_table *t = cli_table_new(6);

    for (size_t i = 0; i < 6; i++) {
        cli_table_add(t, head[i]);
    }
    cli_table_right(t, 3);
    cli_table_right(t, 4);
    cli_table_right(t, 5);
    for (size_t i = 0; i < m->n_pools; i++) {
        const Hf__PoolEntry *p = m->pools[i];

        cli_table_addf(t, "%" PRIu32, p->id);
        cli_table_add(t, p->name);
        cli_table_add(t, p->backend);
        cli_table_addf(t, "%zu", count_segments(m, p->id));
        cli_table_addf(t, "%" PRIu32 " KiB", p->chunk_bytes / 1024);
        cli_table_addf(t, "%" PRIu32, p->width);
    }
    cli_table_print(t);
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
        if (cli->json) {
            print_json(map);
        } else {
            print_table(map);
        }
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char help_text[] =
    "usage: holdfast status [--counters]\n"
    "\n"
    "Tells whether a node runs in the directory, what it does and where it serves.\n"
    "\n"
    "  --counters  print every counter of every role, too (--json always has them)\n"
    "\n"
    "exit codes: 0 running, 2 wrong usage, 3 not running or unreachable\n";

static void print_json(const Hf__NodeStatusRep *s)
{
    json_t *roles = json_array();

    for (size_t i = 0; i < s->n_roles; i++) {
        json_t *counters = json_object(), *limits = json_object();

        for (size_t k = 0; k < s->roles[i]->n_counters; k++) {
            json_object_set_new(counters, s->roles[i]->counters[k]->name,
                                json_integer((json_int_t)s->roles[i]->counters[k]->value));
        }
        for (size_t k = 0; k < s->roles[i]->n_limits; k++) {
            const Hf__NodeLimit *l = s->roles[i]->limits[k];

            json_object_set_new(
                limits, l->name,
                json_pack("{s:I, s:I}", "used", (json_int_t)l->used, "max", (json_int_t)l->max));
        }
        json_array_append_new(roles, json_pack("{s:s, s:s, s:o, s:o}", "name", s->roles[i]->name,
                                               "state", s->roles[i]->state, "limits", limits,
                                               "counters", counters));
    }
    cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:o}", "version", s->version,
                             "fs_name", s->fs_name, "uptime_ms", (json_int_t)s->uptime_ms, "pid",
                             (json_int_t)s->pid, "dir", s->dir, "nfs_listen", s->nfs_listen,
                             "roles", roles));
}

static void print_limits(const Hf__NodeStatusRep *s)
{
    struct cli_table *t = cli_table_new(4);

    cli_table_add(t, "ROLE");
    cli_table_add(t, "LIMIT");
    cli_table_add(t, "USED");
    cli_table_add(t, "ALLOWED");
    cli_table_right(t, 2);
    cli_table_right(t, 3);
    for (size_t i = 0; i < s->n_roles; i++) {
        for (size_t k = 0; k < s->roles[i]->n_limits; k++) {
            cli_table_add(t, s->roles[i]->name);
            cli_table_add(t, s->roles[i]->limits[k]->name);
            cli_table_addf(t, "%" PRIu64, s->roles[i]->limits[k]->used);
            cli_table_addf(t, "%" PRIu64, s->roles[i]->limits[k]->max);
        }
    }
    cli_table_print(t);
}

static void print_table(const Hf__NodeStatusRep *s, bool counters)
{
    struct cli_table *t = cli_table_new(2);
    uint64_t sec = s->uptime_ms / 1000;

    cli_table_add(t, "file system");
    cli_table_add(t, s->fs_name);
    cli_table_add(t, "NFS at");
    cli_table_add(t, s->nfs_listen[0] != '\0' ? s->nfs_listen : "(not served)");
    cli_table_add(t, "directory");
    cli_table_add(t, s->dir);
    cli_table_add(t, "version");
    cli_table_add(t, s->version);
    cli_table_add(t, "process");
    cli_table_addf(t, "%" PRIu32, s->pid);
    cli_table_add(t, "up for");
    cli_table_addf(t, "%" PRIu64 " d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, sec / 86400,
                   sec / 3600 % 24, sec / 60 % 60, sec % 60);
    cli_table_print(t);
    printf("\n");
    t = cli_table_new(2);
    cli_table_add(t, "ROLE");
    cli_table_add(t, "STATE");
    for (size_t i = 0; i < s->n_roles; i++) {
        cli_table_add(t, s->roles[i]->name);
        cli_table_add(t, s->roles[i]->state);
    }
    cli_table_print(t);
    printf("\n");
    print_limits(s);
    if (!counters) {
        return;
    }
    printf("\n");
    t = cli_table_new(3);
    cli_table_add(t, "ROLE");
    cli_table_add(t, "COUNTER");
    cli_table_add(t, "VALUE");
    cli_table_right(t, 2);
    for (size_t i = 0; i < s->n_roles; i++) {
        for (size_t k = 0; k < s->roles[i]->n_counters; k++) {
            cli_table_add(t, s->roles[i]->name);
            cli_table_add(t, s->roles[i]->counters[k]->name);
            cli_table_addf(t, "%" PRIu64, s->roles[i]->counters[k]->value);
        }
    }
    cli_table_print(t);
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct cli_node *n = NULL;
    bool counters = false;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--counters") != 0) {
            return cli_fail(CLI_USAGE, "unknown argument '%s'; see `holdfast status --help`",
                            argv[i]);
        }
        counters = true;
    }
    rc = cli_node_open(cli, &n);
    if (rc != CLI_OK) {
        return rc;
    }
    if (cli->json) {
        print_json(cli_node_status(n));
    } else {
        print_table(cli_node_status(n), counters);
    }
    cli_node_close(n);
    return CLI_OK;
}

const struct cli_command cli_cmd_status = {
    .name = "status",
    .summary = "tell what the node does",
    .help = help_text,
    .run = run,
};

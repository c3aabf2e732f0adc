/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"

static const struct cli_command *const commands[] = {
    &cli_cmd_status, &cli_cmd_pool, &cli_cmd_export, &cli_cmd_mount,
    &cli_cmd_umount, &cli_cmd_fsck, &cli_cmd_bench,  &cli_cmd_version,
};

static void usage(FILE *out)
{
    (void)fprintf(out, "usage: holdfast [--dir DIR] [--json] COMMAND [ARGUMENTS]\n\ncommands:\n");
    for (size_t i = 0; i < HF_ARRAY_LEN(commands); i++) {
        (void)fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fprintf(out, "  %-10s %s\n", "help", "this text, or `help COMMAND`");
    (void)fprintf(
        out,
        "\n"
        "options:\n"
        "  --dir DIR  the node's directory (default $HOLDFAST_DIR, else ./.holdfast)\n"
        "  --json     print JSON instead of tables\n"
        "\n"
        "exit codes: 0 fine, 1 a problem was found, 2 wrong usage, 3 not running or unreachable\n"
        "`holdfast COMMAND --help` tells the rest.\n");
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < HF_ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int help(int argc, char **argv)
{
    const struct cli_command *c;

    if (argc < 2 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return CLI_OK;
    }
    c = find(argv[1]);
    if (c == NULL) {
        return cli_fail(CLI_USAGE, "no command '%s'; `holdfast help` lists them", argv[1]);
    }
    (void)fputs(c->help, stdout);
    return CLI_OK;
}

/* Takes the global options out of the arguments, wherever they stand; returns the new count, -1 on
 * error. */
static int take_globals(struct cli *cli, int argc, char **argv)
{
    int n = 1;

    for (int i = 1; i < argc; i++) {
        /* after the command, --dir belongs to a command that has one of its own (export add) */
        bool own_dir = n > 1 && strcmp(argv[1], "export") == 0;
        int took = own_dir ? 0 : cli_opt_value("--dir", argc, argv, &i, &cli->dir);

        if (took < 0) {
            return -1;
        }
        if (took > 0) {
            continue;
        }
        if (strcmp(argv[i], "--json") == 0) {
            cli->json = true;
            continue;
        }
        argv[n++] = argv[i];
    }
    argv[n] = NULL;
    return n;
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {.dir = getenv("HOLDFAST_DIR")};
    const struct cli_command *c;

    if (cli.dir == NULL || cli.dir[0] == '\0') {
        cli.dir = ".holdfast";
    }
    argc = take_globals(&cli, argc, argv);
    if (argc < 0) {
        return CLI_USAGE;
    }
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0) {
        return help(argc - 1, argv + 1);
    }
    c = find(strcmp(argv[1], "--version") == 0 ? "version" : argv[1]);
    if (c == NULL) {
        return cli_fail(CLI_USAGE, "no command '%s'; `holdfast help` lists them", argv[1]);
    }
    if (!c->own_help && cli_wants_help(argc - 1, argv + 1)) {
        (void)fputs(c->help, stdout);
        return CLI_OK;
    }
    return c->run(&cli, argc - 1, argv + 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <stdio.h>

static int run(const struct cli *cli, int argc, char **argv)
{
    if (argc > 1) {
        return cli_fail(CLI_USAGE, "version takes no argument, not '%s'", argv[1]);
    }
    if (cli->json) {
        cli_print_json(json_pack("{s:s}", "version", HF_VERSION));
    } else {
        printf("holdfast %s\n", HF_VERSION);
    }
    return CLI_OK;
}

const struct cli_command cli_cmd_version = {
    .name = "version",
    .summary = "print the version",
    .help = "usage: holdfast version\n\nPrints the version of this program.\n",
    .run = run,
};

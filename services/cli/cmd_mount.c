/* SPDX-License-Identifier: Apache-2.0
 *
 * `holdfast mount` is holdfast-fuse; `holdfast umount` is umount(2), or fusermount3 for users.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static const char mount_help[] =
    "usage: holdfast mount [--node-dir DIR | --url URL] [--foreground] [-o OPTION,...] DIRECTORY\n"
    "\n"
    "Mounts the file system on DIRECTORY (FUSE) and returns when it can be used.\n"
    "\n"
    "  --node-dir DIR  a node on this machine (default --dir, $HOLDFAST_DIR, else ./.holdfast)\n"
    "  --url URL       where shard 0 answers, instead\n"
    "  --foreground    stay, and log to standard error\n"
    "  -o OPTION,...   ro, subdir=/DIR, attr_timeout=TIME, entry_timeout=TIME, timeout=TIME, ...\n"
    "\n"
    "`holdfast-fuse --help` lists every key. exit codes: 0 mounted, 1 cannot, 2 wrong usage\n";

static int run_mount(const struct cli *cli, int argc, char **argv)
{
    char **words = calloc((size_t)argc + 3, sizeof(char *));
    char name[] = "holdfast-fuse", flag[] = "--node-dir";
    char *dir = strdup(cli->dir);
    const char *env = getenv("HOLDFAST_DIR");
    bool own = env != NULL && strcmp(cli->dir, env) == 0;
    int n = 0, rc;

    if (words == NULL || dir == NULL) {
        free(words);
        free(dir);
        return cli_fail(CLI_PROBLEM, "out of memory");
    }
    words[n++] = name;
    if (!own && strcmp(dir, ".holdfast") != 0) { /* --dir; what is said after it wins */
        words[n++] = flag;
        words[n++] = dir;
    }
    for (int i = 1; i < argc; i++) {
        words[n++] = argv[i];
    }
    rc = cli_exec_beside(words);
    free(words);
    free(dir);
    return rc;
}

const struct cli_command cli_cmd_mount = {
    .name = "mount",
    .summary = "mount the file system on a directory",
    .help = mount_help,
    .run = run_mount,
};

static int run_umount(const struct cli *cli, int argc, char **argv)
{
    int saved;

    (void)cli;
    if (argc != 2) {
        return cli_fail(CLI_USAGE, "umount takes one directory");
    }
    if (umount2(argv[1], UMOUNT_NOFOLLOW) == 0) {
        return CLI_OK;
    }
    saved = errno;
    if (saved == EPERM) {
        execlp("fusermount3", "fusermount3", "-u", argv[1], (char *)NULL);
    }
    return cli_fail(CLI_PROBLEM, "%s: %s", argv[1], strerror(saved));
}

const struct cli_command cli_cmd_umount = {
    .name = "umount",
    .summary = "end a mount",
    .help = "usage: holdfast umount DIRECTORY\n\nEnds a mount made by `holdfast mount`; files that "
            "are open there must be closed first.\n\nexit codes: 0 done, 1 cannot, 2 wrong usage\n",
    .run = run_umount,
};

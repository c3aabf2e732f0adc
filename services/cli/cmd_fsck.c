/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/err.h"

#define FSCK_SEC 86400u

static const char help_text[] =
    "usage: holdfast fsck [--offline] [--no-chunks]\n"
    "\n"
    "Checks names, inodes, link counts and chunks against each other; changes nothing. On a "
    "running\n"
    "node the check works on the last checkpoint while files are in use.\n"
    "\n"
    "  --offline    check the directory of a node that does not run\n"
    "  --no-chunks  leave out the chunks on the segments (running node only)\n"
    "\n"
    "exit codes: 0 clean, 1 problems found or the check failed, 2 wrong usage,\n"
    "            3 not running or unreachable\n";

/* Names are bytes: what is not printable ASCII is shown as \xNN. */
static void escape(const uint8_t *s, size_t len, char *buf, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 5 < cap; i++) {
        if (s[i] >= 0x20 && s[i] <= 0x7e && s[i] != '\\') {
            buf[n++] = (char)s[i];
        } else {
            n += (size_t)snprintf(buf + n, cap - n, "\\x%02x", s[i]);
        }
    }
    buf[n] = '\0';
}

static void print_json(const Hf__FsckRep *r)
{
    json_t *findings = json_array();
    char name[1100];

    for (size_t i = 0; i < r->n_findings; i++) {
        const Hf__FsckFinding *f = r->findings[i];

        escape(f->name.data, f->name.len, name, sizeof(name));
        json_array_append_new(findings,
                              json_pack("{s:s, s:I, s:s, s:s}", "kind", f->kind, "ino",
                                        (json_int_t)f->ino, "name", name, "detail", f->detail));
    }
    cli_print_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "findings", findings, "inodes",
                             (json_int_t)r->inodes, "names", (json_int_t)r->dentries, "chunks",
                             (json_int_t)r->chunks, "bytes", (json_int_t)r->bytes, "problems",
                             (json_int_t)r->problems));
}

static void print_table(const Hf__FsckRep *r)
{
    char name[1100];

    for (size_t i = 0; i < r->n_findings; i++) {
        const Hf__FsckFinding *f = r->findings[i];

        escape(f->name.data, f->name.len, name, sizeof(name));
        printf("%-18s inode %" PRIu64 " \"%s\": %s\n", f->kind, f->ino, name, f->detail);
    }
    if (r->problems > r->n_findings) {
        printf("... and %" PRIu64 " more\n", r->problems - r->n_findings);
    }
    printf("%" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64 " chunks, %" PRIu64 " bytes: %" PRIu64
           " problems\n",
           r->inodes, r->dentries, r->chunks, r->bytes, r->problems);
}

static int online(const struct cli *cli, bool chunks)
{
    Hf__FsckReq req = HF__FSCK_REQ__INIT;
    ProtobufCMessage *rep = NULL;
    struct cli_node *n = NULL;
    int rc = cli_node_open(cli, &n);

    if (rc != CLI_OK) {
        return rc;
    }
    req.chunks = chunks;
    rc = cli_node_meta_call(n, &hf__meta_admin__descriptor, "Fsck", &req.base, FSCK_SEC, &rep);
    if (rc != 0) {
        rc = cli_fail(CLI_PROBLEM, "the check failed: %s", hf_err_text(rc));
    } else {
        const Hf__FsckRep *r = (const Hf__FsckRep *)rep;

        if (cli->json) {
            print_json(r);
        } else {
            print_table(r);
        }
        rc = r->problems > 0 ? CLI_PROBLEM : CLI_OK;
        protobuf_c_message_free_unpacked(rep, NULL);
    }
    cli_node_close(n);
    return rc;
}

/* holdfast-node lies beside this program; it opens the shards as at every start, and checks them.
 */
static int offline(const struct cli *cli)
{
    char name[] = "holdfast-node", fsck[] = "--fsck", flag[] = "--node-dir", json[] = "--json";
    char *dir = strdup(cli->dir);
    char *argv[] = {name, fsck, flag, dir, cli->json ? json : NULL, NULL};
    int rc;

    if (access(cli->dir, F_OK) != 0) {
        rc = cli_fail(CLI_UNREACHABLE, "no node directory %s", cli->dir);
    } else {
        rc = cli_exec_beside(argv);
    }
    free(dir);
    return rc;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    bool off = false, chunks = true;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--offline") == 0) {
            off = true;
        } else if (strcmp(argv[i], "--no-chunks") == 0) {
            chunks = false;
        } else {
            return cli_fail(CLI_USAGE, "unknown argument '%s'; see `holdfast fsck --help`",
                            argv[i]);
        }
    }
    return off ? offline(cli) : online(cli, chunks);
}

const struct cli_command cli_cmd_fsck = {
    .name = "fsck",
    .summary = "check the file system",
    .help = help_text,
    .run = run,
};

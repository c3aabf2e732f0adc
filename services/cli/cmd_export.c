/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define CALL_SEC    30
#define ANON_ID     65534u
#define CLIENTS_MAX 64

static const char help_text[] =
    "usage: holdfast export list\n"
    "       holdfast export add PATH [OPTIONS]\n"
    "       holdfast export remove PATH\n"
    "\n"
    "Exports are what NFS clients can mount. Changes take effect at once, without a restart.\n"
    "\n"
    "  --dir D            the directory inside the file system (/)\n"
    "  --ro               read-only\n"
    "  --clients A,B      who may mount: addresses or address/prefix; * for all (127.0.0.1,::1)\n"
    "  --squash HOW       none, root (uid 0 becomes anonymous) or all (root)\n"
    "  --anon-uid U       the anonymous user (65534)\n"
    "  --anon-gid G       the anonymous group (65534)\n"
    "\n"
    "The node's directory, where it matters, goes before the command: holdfast --dir DIR export "
    "...\n"
    "\n"
    "exit codes: 0 fine, 1 refused (the path is taken, no such export), 2 wrong usage,\n"
    "            3 not running or unreachable\n";

static const char *const squash_names[] = {"none", "root", "all"};

static const char *squash_name(uint32_t squash)
{
    return squash < HF_ARRAY_LEN(squash_names) ? squash_names[squash] : "?";
}

/* ---- list ---- */

static void list_json(const Hf__MapGetRep *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n_exports; i++) {
        const Hf__ExportEntry *e = m->exports[i];
        json_t *clients = json_array();

        for (size_t k = 0; k < e->n_clients; k++) {
            json_array_append_new(clients, json_string(e->clients[k]));
        }
        json_array_append_new(
            list, json_pack("{s:I, s:s, s:s, s:b, s:o, s:s, s:I, s:I}", "id", (json_int_t)e->id,
                            "path", e->path, "dir", e->dir, "read_only", (int)e->read_only,
                            "clients", clients, "squash", squash_name(e->squash), "anon_uid",
                            (json_int_t)e->anon_uid, "anon_gid", (json_int_t)e->anon_gid));
    }
    cli_print_json(json_pack("{s:o}", "exports", list));
}

static void add_clients_cell(struct cli_table *t, const Hf__ExportEntry *e)
{
    char text[1024] = "";
    size_t used = 0;

    for (size_t k = 0; k < e->n_clients && used < sizeof(text); k++) {
        int n = snprintf(text + used, sizeof(text) - used, "%s%s", k > 0 ? "," : "", e->clients[k]);

        used += n > 0 ? (size_t)n : 0;
    }
    cli_table_add(t, text);
}

static void list_table(const Hf__MapGetRep *m)
{
    static const char *const head[] = {"PATH", "DIRECTORY", "ACCESS", "SQUASH", "ANON", "CLIENTS"};
    struct cli_table *t = cli_table_new(6);

    for (size_t i = 0; i < 6; i++) {
        cli_table_add(t, head[i]);
    }
    for (size_t i = 0; i < m->n_exports; i++) {
        const Hf__ExportEntry *e = m->exports[i];

        cli_table_add(t, e->path);
        cli_table_add(t, e->dir);
        cli_table_add(t, e->read_only ? "ro" : "rw");
        cli_table_add(t, squash_name(e->squash));
        cli_table_addf(t, "%" PRIu32 ":%" PRIu32, e->anon_uid, e->anon_gid);
        add_clients_cell(t, e);
    }
    cli_table_print(t);
}

static int list(const struct cli *cli, struct cli_node *n)
{
    Hf__MapGetRep *map = NULL;
    int rc = cli_node_map(n, &map);

    if (rc != CLI_OK) {
        return rc;
    }
    if (cli->json) {
        list_json(map);
    } else {
        list_table(map);
    }
    hf__map_get_rep__free_unpacked(map, NULL);
    return CLI_OK;
}

/* ---- add and remove ---- */

struct add_args {
    Hf__ExportEntry entry;
    char *clients[CLIENTS_MAX];
    char *clients_text;
};

/* protobuf-c's strings are not const; the message is only packed. */
static char *unconst(const char *s)
{
    return (char *)(uintptr_t)s;
}

static int set_clients(struct add_args *a, const char *text)
{
    char *save = NULL;

    free(a->clients_text);
    a->clients_text = strdup(text);
    HF_ASSERT(a->clients_text != NULL);
    a->entry.n_clients = 0;
    for (char *c = strtok_r(a->clients_text, ",", &save); c != NULL;
         c = strtok_r(NULL, ",", &save)) {
        if (a->entry.n_clients == CLIENTS_MAX) {
            return cli_fail(CLI_USAGE, "more than %d clients", CLIENTS_MAX);
        }
        a->clients[a->entry.n_clients++] = c;
    }
    a->entry.clients = a->clients;
    if (a->entry.n_clients == 0) {
        return cli_fail(CLI_USAGE, "--clients needs at least one address");
    }
    return CLI_OK;
}

static int set_squash(struct add_args *a, const char *text)
{
    for (uint32_t i = 0; i < HF_ARRAY_LEN(squash_names); i++) {
        if (strcmp(text, squash_names[i]) == 0) {
            a->entry.squash = i;
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, "--squash is none, root or all, not '%s'", text);
}

/* One option with a value: 1 taken, 0 another argument, -1 wrong. */
static int take_option(struct add_args *a, int argc, char **argv, int *i)
{
    static const char *const names[] = {"--dir", "--clients", "--squash", "--anon-uid",
                                        "--anon-gid"};
    unsigned long long v;
    const char *text;

    for (unsigned k = 0; k < HF_ARRAY_LEN(names); k++) {
        int took = cli_opt_value(names[k], argc, argv, i, &text);

        if (took == 0) {
            continue;
        }
        if (took < 0) {
            return -1;
        }
        if (k == 0) {
            a->entry.dir = unconst(text);
            return 1;
        }
        if (k == 1 || k == 2) {
            return (k == 1 ? set_clients(a, text) : set_squash(a, text)) == CLI_OK ? 1 : -1;
        }
        if (!cli_number(names[k], text, 0, UINT32_MAX, &v)) {
            return -1;
        }
        *(k == 3 ? &a->entry.anon_uid : &a->entry.anon_gid) = (uint32_t)v;
        return 1;
    }
    return 0;
}

static int parse_add(struct add_args *a, int argc, char **argv)
{
    hf__export_entry__init(&a->entry);
    a->entry.dir = unconst("/");
    a->entry.squash = 1;
    a->entry.anon_uid = a->entry.anon_gid = ANON_ID;
    if (set_clients(a, "127.0.0.1,::1") != CLI_OK) {
        return CLI_USAGE;
    }
    for (int i = 2; i < argc; i++) {
        int took = take_option(a, argc, argv, &i);

        if (took < 0) {
            return CLI_USAGE;
        }
        if (took > 0) {
            continue;
        }
        if (strcmp(argv[i], "--ro") == 0) {
            a->entry.read_only = true;
        } else if (argv[i][0] == '/' && a->entry.path[0] == '\0') {
            a->entry.path = argv[i];
        } else {
            return cli_fail(CLI_USAGE, "unknown argument '%s'; see `holdfast export --help`",
                            argv[i]);
        }
    }
    if (a->entry.path[0] == '\0') {
        return cli_fail(CLI_USAGE, "export add needs a PATH that begins with /");
    }
    return CLI_OK;
}

/* What the shard's answer means for an export; the errors are named after files. */
static const char *reason(int rc)
{
    switch (rc) {
    case HF_E_EXIST:
        return "it is exported already; remove it first";
    case HF_E_NOENT:
        return "there is no such export";
    case HF_E_INVAL:
        return "PATH and --dir begin with / and do not end with one; a client is an address, "
               "address/prefix or *";
    default:
        return hf_err_text(rc);
    }
}

static int add(const struct cli *cli, struct cli_node *n, const struct add_args *a)
{
    Hf__ExportSetReq req = HF__EXPORT_SET_REQ__INIT;
    ProtobufCMessage *rep = NULL;
    Hf__ExportEntry entry = a->entry;
    int rc;

    req.entry = &entry;
    rc = cli_node_meta_call(n, &hf__meta__descriptor, "ExportSet", &req.base, CALL_SEC, &rep);
    if (rc != 0) {
        return cli_fail(CLI_PROBLEM, "cannot add export %s: %s", entry.path, reason(rc));
    }
    if (cli->json) {
        const Hf__ExportSetRep *r = (const Hf__ExportSetRep *)rep;

        cli_print_json(json_pack("{s:s, s:I}", "path", entry.path, "id", (json_int_t)r->id));
    } else {
        printf("added %s (%s, squash %s)\n", entry.path, entry.read_only ? "ro" : "rw",
               squash_name(entry.squash));
    }
    protobuf_c_message_free_unpacked(rep, NULL);
    return CLI_OK;
}

static int drop(const struct cli *cli, struct cli_node *n, char *path)
{
    Hf__ExportDelReq req = HF__EXPORT_DEL_REQ__INIT;
    ProtobufCMessage *rep = NULL;
    int rc;

    req.path = path;
    rc = cli_node_meta_call(n, &hf__meta__descriptor, "ExportDel", &req.base, CALL_SEC, &rep);
    if (rc != 0) {
        return cli_fail(CLI_PROBLEM, "cannot remove export %s: %s", path, reason(rc));
    }
    protobuf_c_message_free_unpacked(rep, NULL);
    if (cli->json) {
        cli_print_json(json_pack("{s:s}", "path", path));
    } else {
        printf("removed %s\n", path);
    }
    return CLI_OK;
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct add_args a = {0};
    struct cli_node *n = NULL;
    const char *what = argc > 1 ? argv[1] : "";
    int rc;

    if (strcmp(what, "add") == 0) {
        rc = parse_add(&a, argc, argv);
    } else if ((strcmp(what, "list") == 0 && argc == 2) ||
               (strcmp(what, "remove") == 0 && argc == 3)) {
        rc = CLI_OK;
    } else {
        rc = cli_fail(CLI_USAGE,
                      "usage: holdfast export list|add PATH|remove PATH; --help tells more");
    }
    if (rc == CLI_OK) {
        rc = cli_node_open(cli, &n);
    }
    if (rc == CLI_OK) {
        rc = what[0] == 'a'   ? add(cli, n, &a)
             : what[0] == 'r' ? drop(cli, n, argv[2])
                              : list(cli, n);
    }
    if (n != NULL) {
        cli_node_close(n);
    }
    free(a.clients_text);
    return rc;
}

const struct cli_command cli_cmd_export = {
    .name = "export",
    .summary = "list, add and remove NFS exports",
    .help = help_text,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "holdfast/assert.h"

static const char help_text[] =
    "usage: holdfast bench nfs HOST:PORT[/EXPORT] --mix MIX [OPTIONS]\n"
    "       holdfast bench native --mix MIX [OPTIONS]      (see holdfast bench native --help)\n"
    "\n"
    "Loads any NFSv3 server (TCP, AUTH_SYS) and reports rate, latency and errors. EXPORT is /main\n"
    "if it is left out. Works in a directory of its own below the export and removes it "
    "afterwards.\n"
    "\n"
    "  --mix MIX          null      NULL\n"
    "                     getattr   GETATTR of 400 files\n"
    "                     lookup    LOOKUP of 400 names\n"
    "                     create4k  CREATE (UNCHECKED) and a 4 KiB FILE_SYNC WRITE; one op is a "
    "file\n"
    "                     sfs       GETATTR 26, LOOKUP 24, READ 18, ACCESS 11, WRITE 10, SETATTR "
    "4,\n"
    "                               READDIRPLUS 2, READLINK, READDIR, CREATE, REMOVE, FSSTAT 1 "
    "each,\n"
    "                               over 400 files of 1 KiB to 1 MiB; I/O in pieces of up to 32 "
    "KiB\n"
    "                     seqread   READ of 1 MiB pieces in order, a file per connection\n"
    "                     seqwrite  WRITE of 1 MiB pieces in order, COMMIT at the end of the file\n"
    "  --connections C    TCP connections (4)\n"
    "  --depth D          calls in flight per connection (8)\n"
    "  --seconds S        measured time (10)\n"
    "  --mount-port P     where MOUNT is served, if not on the same port\n"
    "  --uid U, --gid G   AUTH_SYS identity (0, 0)\n"
    "  --stable HOW       unstable, data or file: WRITEs of sfs and seqwrite (unstable)\n"
    "  --file-mib M       size of the files of seqread and seqwrite (256)\n"
    "  --seed N           the same seed asks the same of every server (1)\n"
    "  --keep             leave the files behind\n"
    "  --json             JSON instead of a table\n"
    "\n"
    "exit codes: 0 no errors, 1 some calls failed, 2 wrong usage, 3 cannot connect, mount or "
    "prepare\n";

/* Splits HOST:PORT[/EXPORT]; [v6 address]:PORT works too. */
static int parse_target(const char *text, struct bn_opts *o)
{
    const char *host = text, *slash, *colon;
    size_t host_len, port_len;
    unsigned long long port;

    slash = strchr(text, '/');
    if (slash == NULL) {
        slash = text + strlen(text);
    }
    colon = slash;
    while (colon > text && colon[-1] != ':') {
        colon--;
    }
    if (colon == text) {
        return cli_fail(CLI_USAGE, "'%s' is not HOST:PORT[/EXPORT]", text);
    }
    host_len = (size_t)(colon - 1 - host);
    port_len = (size_t)(slash - colon);
    if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    }
    if (host_len == 0 || host_len >= sizeof(o->host) || port_len == 0 ||
        port_len >= sizeof(o->port) || strlen(slash) >= sizeof(o->export_path)) {
        return cli_fail(CLI_USAGE, "'%s' is not HOST:PORT[/EXPORT]", text);
    }
    memcpy(o->host, host, host_len);
    memcpy(o->port, colon, port_len);
    if (!cli_number("the port", o->port, 1, 65535, &port)) {
        return CLI_USAGE;
    }
    (void)snprintf(o->export_path, sizeof(o->export_path), "%s", *slash != '\0' ? slash : "/main");
    return CLI_OK;
}

/* A numeric option: 1 taken, 0 another argument, -1 wrong. */
static int take_number(int argc, char **argv, int *i, struct bn_opts *o)
{
    const struct {
        const char *name;
        unsigned long long lo, hi;
        unsigned *u;
        uint64_t *u64;
    } table[] = {
        {"--connections", 1, BN_CONN_MAX, &o->connections, NULL},
        {"--depth", 1, BN_DEPTH_MAX, &o->depth, NULL},
        {"--seconds", 1, 86400, &o->seconds, NULL},
        {"--file-mib", 1, 4095, &o->file_mib, NULL},
        {"--uid", 0, UINT32_MAX, &o->uid, NULL},
        {"--gid", 0, UINT32_MAX, &o->gid, NULL},
        {"--seed", 0, UINT64_MAX, NULL, &o->seed},
    };

    for (size_t k = 0; k < HF_ARRAY_LEN(table); k++) {
        const char *text;
        unsigned long long v;
        int took = cli_opt_value(table[k].name, argc, argv, i, &text);

        if (took == 0) {
            continue;
        }
        if (took < 0 || !cli_number(table[k].name, text, table[k].lo, table[k].hi, &v)) {
            return -1;
        }
        if (table[k].u != NULL) {
            *table[k].u = (unsigned)v;
        } else {
            *table[k].u64 = v;
        }
        return 1;
    }
    return 0;
}

/* Options whose value is a word, in the same manner. */
static int take_word(int argc, char **argv, int *i, struct bn_opts *o, bool *ret_mix)
{
    static const char *const stable[] = {"unstable", "data", "file"};
    const char *text;
    unsigned long long v;
    int took = cli_opt_value("--mix", argc, argv, i, &text);

    if (took > 0 && bn_mix_find(text, &o->mix) != 0) {
        cli_fail(CLI_USAGE, "no mix '%s'; see `holdfast bench --help`", text);
        return -1;
    }
    *ret_mix = *ret_mix || took > 0;
    if (took != 0) {
        return took;
    }
    took = cli_opt_value("--mount-port", argc, argv, i, &text);
    if (took > 0) {
        if (!cli_number("--mount-port", text, 1, 65535, &v)) {
            return -1;
        }
        (void)snprintf(o->mount_port, sizeof(o->mount_port), "%llu", v);
        return 1;
    }
    took = took == 0 ? cli_opt_value("--stable", argc, argv, i, &text) : took;
    if (took > 0) {
        for (uint32_t k = 0; k < HF_ARRAY_LEN(stable); k++) {
            if (strcmp(stable[k], text) == 0) {
                o->stable = k;
                return 1;
            }
        }
        cli_fail(CLI_USAGE, "--stable is unstable, data or file, not '%s'", text);
        return -1;
    }
    return took;
}

static int parse(int argc, char **argv, struct bn_opts *o)
{
    bool have_mix = false;
    const char *target = NULL;

    if (argc < 2 || strcmp(argv[1], "nfs") != 0) {
        return cli_fail(CLI_USAGE,
                        "what to measure? `holdfast bench nfs HOST:PORT/EXPORT --mix MIX` or "
                        "`holdfast bench native --mix MIX`");
    }
    for (int i = 2; i < argc; i++) {
        int took = take_number(argc, argv, &i, o);

        took = took == 0 ? take_word(argc, argv, &i, o, &have_mix) : took;
        if (took < 0) {
            return CLI_USAGE;
        }
        if (took > 0) {
            continue;
        }
        if (strcmp(argv[i], "--keep") == 0) {
            o->keep = true;
        } else if (argv[i][0] != '-' && target == NULL) {
            target = argv[i];
        } else {
            return cli_fail(CLI_USAGE, "unknown argument '%s'; see `holdfast bench --help`",
                            argv[i]);
        }
    }
    if (target == NULL || !have_mix) {
        return cli_fail(CLI_USAGE, "HOST:PORT/EXPORT and --mix are needed");
    }
    if (parse_target(target, o) != CLI_OK) {
        return CLI_USAGE;
    }
    if (o->mount_port[0] == '\0') {
        memcpy(o->mount_port, o->port, sizeof(o->port));
    }
    return CLI_OK;
}

/* ---- report ---- */

static const char *proc_name(unsigned proc)
{
    static const char *const names[BN_PROCS] = {
        "NULL",    "GETATTR",     "SETATTR", "LOOKUP", "ACCESS",   "READLINK", "READ",   "WRITE",
        "CREATE",  "MKDIR",       "SYMLINK", "MKNOD",  "REMOVE",   "RMDIR",    "RENAME", "LINK",
        "READDIR", "READDIRPLUS", "FSSTAT",  "FSINFO", "PATHCONF", "COMMIT",
    };

    return names[proc];
}

static double mean_us(const struct bn_hist *h)
{
    return h->count > 0 ? (double)h->sum_ns / (double)h->count / 1e3 : 0;
}

static double quantile_us(const struct bn_hist *h, double q)
{
    return (double)bn_hist_quantile(h, q) / 1e3;
}

static json_t *hist_json(const struct bn_hist *h, uint64_t errors)
{
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "ops", (json_int_t)h->count, "errors",
                     (json_int_t)errors, "mean_us", mean_us(h), "p50_us", quantile_us(h, 0.5),
                     "p99_us", quantile_us(h, 0.99), "max_us", (double)h->max_ns / 1e3);
}

static void report_json(const struct bn_opts *o, const struct bn_result *r)
{
    json_t *v = hist_json(&r->all, r->errors);
    json_t *procs = json_object();
    double sec = r->seconds > 0 ? r->seconds : 1;

    json_object_set_new(v, "mix", json_string(bn_mix_get(o->mix)->name));
    json_object_set_new(v, "connections", json_integer(o->connections));
    json_object_set_new(v, "depth", json_integer(o->depth));
    json_object_set_new(v, "seed", json_integer((json_int_t)o->seed));
    json_object_set_new(v, "seconds", json_real(r->seconds));
    json_object_set_new(v, "ops_per_s", json_real((double)r->ops / sec));
    json_object_set_new(v, "read_mb_per_s", json_real((double)r->bytes_read / sec / 1e6));
    json_object_set_new(v, "write_mb_per_s", json_real((double)r->bytes_written / sec / 1e6));
    json_object_set_new(v, "lost", json_integer((json_int_t)r->lost));
    json_object_set_new(v, "left_behind", json_integer((json_int_t)r->left_behind));
    json_object_set_new(v, "client_cpu_seconds", json_real(r->cpu_seconds));
    for (unsigned p = 0; p < BN_PROCS; p++) {
        if (r->op[p].hist.count > 0 || r->op[p].errors > 0) {
            json_object_set_new(procs, proc_name(p), hist_json(&r->op[p].hist, r->op[p].errors));
        }
    }
    json_object_set_new(v, "procedures", procs);
    cli_print_json(v);
}

static void report_row(struct cli_table *t, const char *name, const struct bn_hist *h, double sec,
                       uint64_t errors)
{
    cli_table_add(t, name);
    cli_table_addf(t, "%llu", (unsigned long long)h->count);
    cli_table_addf(t, "%.0f", (double)h->count / sec);
    cli_table_addf(t, "%.0f", mean_us(h));
    cli_table_addf(t, "%.0f", quantile_us(h, 0.5));
    cli_table_addf(t, "%.0f", quantile_us(h, 0.99));
    cli_table_addf(t, "%.0f", (double)h->max_ns / 1e3);
    cli_table_addf(t, "%llu", (unsigned long long)errors);
}

static void report_table(const struct bn_opts *o, const struct bn_result *r)
{
    static const char *const head[] = {"",       "ops",    "ops/s",  "mean us",
                                       "p50 us", "p99 us", "max us", "errors"};
    struct cli_table *t = cli_table_new(HF_ARRAY_LEN(head));
    double sec = r->seconds > 0 ? r->seconds : 1;

    printf("%s, %u connections x depth %u, %.2f s, seed %llu\n", bn_mix_get(o->mix)->name,
           o->connections, o->depth, r->seconds, (unsigned long long)o->seed);
    for (unsigned i = 0; i < HF_ARRAY_LEN(head); i++) {
        cli_table_add(t, head[i]);
        if (i > 0) {
            cli_table_right(t, i);
        }
    }
    report_row(t, "all", &r->all, sec, r->errors);
    for (unsigned p = 0; p < BN_PROCS && o->mix == BN_MIX_SFS; p++) {
        if (r->op[p].hist.count > 0 || r->op[p].errors > 0) {
            report_row(t, proc_name(p), &r->op[p].hist, sec, r->op[p].errors);
        }
    }
    cli_table_print(t);
    if (r->bytes_read + r->bytes_written > 0) {
        printf("read %.1f MB/s, written %.1f MB/s\n", (double)r->bytes_read / sec / 1e6,
               (double)r->bytes_written / sec / 1e6);
    }
    printf("the load generator used %.0f %% of one CPU\n", 100 * r->cpu_seconds / sec);
}

static int run(const struct cli *cli, int argc, char **argv)
{
    struct bn_opts o = {.connections = 4, .depth = 8, .seconds = 10, .file_mib = 256, .seed = 1};
    struct bn_result *r;
    char err[512];
    int rc;

    if (argc > 1 && strcmp(argv[1], "native") == 0) {
        return bn_native(cli, argc, argv);
    }
    if (cli_wants_help(argc, argv)) {
        (void)fputs(help_text, stdout);
        return CLI_OK;
    }
    rc = parse(argc, argv, &o);
    if (rc != CLI_OK) {
        return rc;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return cli_fail(CLI_PROBLEM, "out of memory");
    }
    if (bn_run(&o, r, err, sizeof(err)) != 0) {
        free(r);
        return cli_fail(CLI_UNREACHABLE, "%s", err[0] != '\0' ? err : "out of memory");
    }
    if (cli->json) {
        report_json(&o, r);
    } else {
        report_table(&o, r);
    }
    if (r->errors > 0) {
        cli_fail(CLI_PROBLEM, "%llu calls failed; the first: %s, status %d",
                 (unsigned long long)r->errors, proc_name(r->first_error_proc),
                 (int)r->first_error);
    }
    if (r->lost > 0 || r->left_behind > 0) {
        cli_fail(CLI_PROBLEM, "%llu calls without an answer, %u files left behind",
                 (unsigned long long)r->lost, r->left_behind);
    }
    rc = r->errors > 0 || r->lost > 0 || r->left_behind > 0 ? CLI_PROBLEM : CLI_OK;
    free(r);
    return rc;
}

const struct cli_command cli_cmd_bench = {
    .name = "bench",
    .summary = "measure an NFSv3 server, or this file system without a gateway",
    .help = help_text,
    .run = run,
    .own_help = true,
};

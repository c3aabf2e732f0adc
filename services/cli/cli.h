/* SPDX-License-Identifier: Apache-2.0
 *
 * The program `holdfast`: one table of commands, one file per command.
 */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Exit codes, the same for every command. */
enum cli_exit {
    CLI_OK = 0,
    CLI_PROBLEM = 1,     /* the command ran and found or met a problem */
    CLI_USAGE = 2,       /* the command line is wrong */
    CLI_UNREACHABLE = 3, /* the node or server is not running or does not answer */
};

struct cli {
    const char *dir; /* the node's directory */
    bool json;
};

struct cli_command {
    const char *name;
    const char *summary;
    const char *help; /* the whole text of `holdfast NAME --help` */
    /* argv[0] is the command's name; global options are already taken out. */
    int (*run)(const struct cli *cli, int argc, char **argv);
    bool own_help; /* it answers --help itself: it has several texts */
};

extern const struct cli_command cli_cmd_status;
extern const struct cli_command cli_cmd_pool;
extern const struct cli_command cli_cmd_export;
extern const struct cli_command cli_cmd_fsck;
extern const struct cli_command cli_cmd_mount;
extern const struct cli_command cli_cmd_umount;
extern const struct cli_command cli_cmd_bench;
extern const struct cli_command cli_cmd_version;

/* The whole program. */
int cli_main(int argc, char **argv);

/* Becomes the program argv[0] that lies beside this one; returns (CLI_PROBLEM, said) only if it
 * cannot.
 */
int cli_exec_beside(char **argv);

/* ---- output ---- */

/* "holdfast: MESSAGE" on stderr; returns code. */
int cli_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints and releases the value. */
void cli_print_json(json_t *value);

/* A table of cells, columns as wide as they need to be; cells are copied. */
struct cli_table;
struct cli_table *cli_table_new(unsigned columns);
void cli_table_add(struct cli_table *t, const char *cell);
void cli_table_addf(struct cli_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cli_table_right(struct cli_table *t, unsigned column); /* align to the right */
void cli_table_print(struct cli_table *t);                  /* and free */

/* ---- options ---- */

/* Takes option `name` (with a value) at argv[*i]: "--name VALUE" or "--name=VALUE". 1 taken, 0
 * another argument, -1 the value is missing (said on stderr). */
int cli_opt_value(const char *name, int argc, char **argv, int *i, const char **ret);
/* A decimal number lo..hi; false (said on stderr) if it is none. */
bool cli_number(const char *what, const char *text, unsigned long long lo, unsigned long long hi,
                unsigned long long *ret);
/* "--help" or "-h" anywhere. */
bool cli_wants_help(int argc, char **argv);

#endif

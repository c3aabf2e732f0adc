/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/assert.h"

int cli_fail(int code, const char *fmt, ...)
{
    va_list ap;

    (void)fputs("holdfast: ", stderr);
    va_start(ap, fmt);
    /* clang-tidy 14 forgets va_start when it checks several files in one run */
    (void)vfprintf(stderr, fmt, ap); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(ap);
    (void)fputc('\n', stderr);
    return code;
}

void cli_print_json(json_t *value)
{
    HF_ASSERT(value != NULL);
    json_dumpf(value, stdout, JSON_INDENT(2));
    (void)fputc('\n', stdout);
    json_decref(value);
}

/* ---- tables ---- */

#define COLUMNS_MAX 16

struct cli_table {
    unsigned columns;
    unsigned right; /* bit per column */
    size_t n, cap;
    char **cells;
};

struct cli_table *cli_table_new(unsigned columns)
{
    struct cli_table *t = calloc(1, sizeof(*t));

    HF_ASSERT(t != NULL && columns >= 1 && columns <= COLUMNS_MAX);
    t->columns = columns;
    return t;
}

void cli_table_add(struct cli_table *t, const char *cell)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->cells = reallocarray(t->cells, t->cap, sizeof(*t->cells));
        HF_ASSERT(t->cells != NULL);
    }
    t->cells[t->n] = strdup(cell);
    HF_ASSERT(t->cells[t->n] != NULL);
    t->n++;
}

void cli_table_addf(struct cli_table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    HF_ASSERT(n >= 0);
    cli_table_add(t, text);
    free(text);
}

void cli_table_right(struct cli_table *t, unsigned column)
{
    t->right |= 1u << column;
}

void cli_table_print(struct cli_table *t)
{
    int width[COLUMNS_MAX] = {0};

    for (size_t i = 0; i < t->n; i++) {
        int len = (int)strlen(t->cells[i]);

        if (len > width[i % t->columns]) {
            width[i % t->columns] = len;
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        unsigned col = (unsigned)(i % t->columns);
        bool last = col == t->columns - 1;

        if ((t->right >> col) & 1) {
            printf("%*s", width[col], t->cells[i]);
        } else {
            printf("%-*s", last ? 0 : width[col], t->cells[i]);
        }
        (void)fputs(last ? "\n" : "  ", stdout);
        free(t->cells[i]);
    }
    free(t->cells);
    free(t);
}

/* ---- options ---- */

int cli_opt_value(const char *name, int argc, char **argv, int *i, const char **ret)
{
    size_t n = strlen(name);

    if (strncmp(argv[*i], name, n) != 0) {
        return 0;
    }
    if (argv[*i][n] == '=') {
        *ret = argv[*i] + n + 1;
        return 1;
    }
    if (argv[*i][n] != '\0') {
        return 0;
    }
    if (*i + 1 >= argc) {
        cli_fail(CLI_USAGE, "%s needs a value", name);
        return -1;
    }
    *ret = argv[++*i];
    return 1;
}

bool cli_number(const char *what, const char *text, unsigned long long lo, unsigned long long hi,
                unsigned long long *ret)
{
    char *end = NULL;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno != 0 || !isdigit((unsigned char)text[0]) || *end != '\0' || v < lo || v > hi) {
        cli_fail(CLI_USAGE, "%s must be a number from %llu to %llu, not '%s'", what, lo, hi, text);
        return false;
    }
    *ret = v;
    return true;
}

bool cli_wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

int cli_exec_beside(char **argv)
{
    char self[4096], path[4352];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (n <= 0) {
        return cli_fail(CLI_PROBLEM, "cannot find the folder of this program");
    }
    self[n] = '\0';
    slash = strrchr(self, '/');
    (void)snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - self) : 0, self, argv[0]);
    execv(path, argv);
    return cli_fail(CLI_PROBLEM, "cannot run %s: %s", path, strerror(errno));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define ARGS_MAX 16

static void redirect(void)
{
    cr_redirect_stdout();
    cr_redirect_stderr();
}

/* Runs the program on a line of words. */
static int run(const char *line)
{
    char *copy = strdup(line), *save = NULL;
    char *argv[ARGS_MAX + 1] = {NULL};
    int argc = 0, rc;

    for (char *w = strtok_r(copy, " ", &save); w != NULL && argc < ARGS_MAX;
         w = strtok_r(NULL, " ", &save)) {
        argv[argc++] = w;
    }
    rc = cli_main(argc, argv);
    free(copy);
    return rc;
}

Test(cli, wrong_usage_is_2, .init = redirect)
{
    static const char *const lines[] = {
        "holdfast",
        "holdfast nothing",
        "holdfast --dir",
        "holdfast help nothing",
        "holdfast version now",
        "holdfast status --quickly",
        "holdfast pool",
        "holdfast pool make",
        "holdfast export",
        "holdfast export add",
        "holdfast export add relative",
        "holdfast export add /x --squash some",
        "holdfast export add /x --anon-uid 4294967296",
        "holdfast export add /x --clients ,",
        "holdfast export add /x /y",
        "holdfast export remove",
        "holdfast fsck --fast",
        "holdfast bench",
        "holdfast bench smb 127.0.0.1:1 --mix null",
        "holdfast bench nfs 127.0.0.1:1",
        "holdfast bench nfs --mix null",
        "holdfast bench nfs 127.0.0.1 --mix null",
        "holdfast bench nfs 127.0.0.1:0 --mix null",
        "holdfast bench nfs 127.0.0.1:70000 --mix null",
        "holdfast bench nfs 127.0.0.1:1 --mix fast",
        "holdfast bench nfs 127.0.0.1:1 --mix null --depth 0",
        "holdfast bench nfs 127.0.0.1:1 --mix null --seconds 1x",
        "holdfast bench nfs 127.0.0.1:1 --mix null --stable now",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        cr_expect_eq(run(lines[i]), CLI_USAGE, "%s", lines[i]);
    }
}

Test(cli, not_running_is_3, .init = redirect)
{
    char dir[] = "/tmp/hf-cli-test.XXXXXX", line[256];
    static const char *const rest[] = {"status",        "pool list", "export list",
                                       "export add /x", "fsck",      "export remove /x"};

    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        (void)snprintf(line, sizeof(line), "holdfast --dir %s %s", dir, rest[i]);
        cr_expect_eq(run(line), CLI_UNREACHABLE, "%s", line);
        (void)snprintf(line, sizeof(line), "holdfast --dir %s/absent %s", dir, rest[i]);
        cr_expect_eq(run(line), CLI_UNREACHABLE, "%s", line);
    }
    cr_expect_eq(run("holdfast bench nfs 127.0.0.1:1 --mix null --seconds 1"), CLI_UNREACHABLE);
    cr_assert_eq(remove(dir), 0);
}

Test(cli, help_is_0, .init = redirect)
{
    static const char *const lines[] = {
        "holdfast help",           "holdfast --help",    "holdfast help bench",
        "holdfast bench --help",   "holdfast status -h", "holdfast export --help",
        "holdfast version",        "holdfast --version", "holdfast fsck --help",
        "holdfast --json version", "holdfast pool -h",
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        cr_expect_eq(run(lines[i]), CLI_OK, "%s", lines[i]);
    }
}

Test(options, value_in_both_forms)
{
    char a0[] = "x", a1[] = "--name", a2[] = "v", a3[] = "--name=w", a4[] = "--names",
         *argv[] = {a0, a1, a2, a3, a4, NULL};
    const char *v = NULL;
    int i = 1;

    cr_assert_eq(cli_opt_value("--name", 5, argv, &i, &v), 1);
    cr_assert_eq(i, 2);
    cr_assert_str_eq(v, "v");
    i = 3;
    cr_assert_eq(cli_opt_value("--name", 5, argv, &i, &v), 1);
    cr_assert_str_eq(v, "w");
    i = 4;
    cr_assert_eq(cli_opt_value("--name", 5, argv, &i, &v), 0);
}

Test(table, columns_align, .init = redirect)
{
    struct cli_table *t = cli_table_new(2);

    cli_table_add(t, "NAME");
    cli_table_add(t, "N");
    cli_table_right(t, 1);
    cli_table_add(t, "a longer name");
    cli_table_addf(t, "%d", 1234);
    cli_table_print(t);
    (void)fflush(stdout);
    cr_assert_stdout_eq_str("NAME              N\na longer name  1234\n");
}

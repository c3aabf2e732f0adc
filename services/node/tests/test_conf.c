/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node says to bad configuration: where the value came from, which key, what is allowed.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "holdfast/svc_node.h"

static char dir[] = "/tmp/hf-node-XXXXXX";
static char file[64];

static void make_dir(void)
{
    cr_assert(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/node.yaml", dir);
}

static void remove_dir(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/data/run", dir);
    (void)rmdir(path);
    (void)snprintf(path, sizeof(path), "%s/data", dir);
    (void)rmdir(path);
    (void)unlink(file);
    (void)rmdir(dir);
}

TestSuite(conf, .init = make_dir, .fini = remove_dir);

static void write_file(const char *text)
{
    FILE *f = fopen(file, "w");

    cr_assert(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

/* Starts a node with the file and, if given, one flag; it must be refused with all of these words.
 */
static void refused(char *flag, char *value, const char *const *words)
{
    static char prog[] = "holdfast-node", config[] = "--config";
    char *argv[] = {prog, config, file, flag, value, NULL};
    char *env[] = {NULL};
    struct hf_buf out = {0};
    struct hf_node *n = NULL;

    cr_assert_eq(hf_node_new(flag ? 5 : 3, argv, env, &n, &out), HF_E_CONF);
    cr_assert_eq(hf_buf_append(&out, "", 1), 0);
    for (; *words; words++)
        cr_assert(strstr((const char *)out.data, *words), "'%s' lacks '%s'", (const char *)out.data,
                  *words);
    hf_buf_fini(&out);
}

Test(conf, unknown_key)
{
    write_file("nfs:\n  listen: 127.0.0.1:0\n  colour: red\n");
    refused(NULL, NULL, (const char *const[]){"node.yaml:3", "colour", NULL});
}

Test(conf, value_out_of_range)
{
    write_file("meta:\n  threads: 0\n");
    refused(NULL, NULL, (const char *const[]){"node.yaml:2", "threads", "from 1 to 64", NULL});
}

Test(conf, what_only_the_node_can_judge)
{
    char text[256];

    write_file("node:\n  fs: main\n  log_level: loud\n");
    refused(NULL, NULL,
            (const char *const[]){"node.yaml:3", "log_level", "loud", "debug, info, warn, error",
                                  NULL});
    write_file("node:\n  roles: [meta, chef]\n");
    refused(NULL, NULL, (const char *const[]){"node.yaml:2", "roles", "chef", NULL});
    (void)snprintf(text, sizeof(text), "node:\n  dir: %s/data\n  pools:\n    - hot:posix\n", dir);
    write_file(text);
    refused(
        NULL, NULL,
        (const char *const[]){"node.yaml:", "pools", "hot:posix", "NAME:BACKEND:SEGMENTS", NULL});
}

Test(conf, a_flag_is_named)
{
    static char flag[] = "--node-log-level", value[] = "loud";

    write_file("node:\n  log_level: info\n");
    refused(flag, value, (const char *const[]){"--node-log-level", "loud", NULL});
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader: which plugins and specifications are taken, which refused, and with what words.
 */
#include "support_dir.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/plug.h"

static int try_open(const char *dir, const char *spec, const char *path, char *err,
                    size_t err_bytes)
{
    struct hf_plug_be *be = NULL;
    struct hf_plug *p;
    int rc;

    cr_assert_eq(hf_plug_new(dir, &p), 0);
    err[0] = '\0';
    rc = hf_plug_open(p, spec, path, 1, &be, err, err_bytes);
    if (rc == 0)
        hf_plug_close(be);
    else
        cr_assert_null(be);
    hf_plug_free(p);
    return rc;
}

Test(loader, bad_specs)
{
    static const char *const bad[] = {
        "",
        "+mem",
        "mem+",
        "mem+mem",
        "delay",
        "error+delay",
        "mem(",
        "mem)x",
        "mem(x)y",
        "../../etc/mem",
        "Mem",
        "mem mem",
        "a+a+a+a+a+a+a+a+a+a",
        "delay(ms=x)+mem",
        "delay(what=1)+mem",
        "mem(capacity=1z)",
        "error(op=fly)+mem",
        "error(status=EFOO)+mem",
        "error(every=0)+mem",
        "error(flip=2)+mem",
        "posix(fds=0)",
        "delay(ms=99999999999)+mem",
    };
    char err[512], dir[256];

    support_dir_make(dir, sizeof(dir));
    for (unsigned i = 0; i < HF_ARRAY_LEN(bad); i++) {
        int rc = try_open(getenv("HF_PLUGIN_DIR"), bad[i], dir, err, sizeof(err));

        cr_assert(rc == HF_E_CONF || rc == HF_E_INVAL, "'%s' gave %d", bad[i], rc);
        cr_assert_neq(err[0], '\0', "'%s' gave no reason", bad[i]);
        cr_assert_null(strchr(err, '\n'));
    }
    support_dir_remove(dir);
}

Test(loader, missing_plugin)
{
    char err[512];

    cr_assert_eq(try_open(getenv("HF_PLUGIN_DIR"), "nosuch", NULL, err, sizeof(err)), HF_E_NOENT);
    cr_assert_not_null(strstr(err, "nosuch"));
    cr_assert_eq(try_open("/nonexistent", "mem", NULL, err, sizeof(err)), HF_E_NOENT);
}

Test(loader, wrong_versions)
{
    char err[512];

    cr_assert_eq(try_open(HF_BAD_PLUGIN_DIR, "major", NULL, err, sizeof(err)), HF_E_VERSION);
    cr_assert_not_null(strstr(err, "major"));
    cr_assert_eq(try_open(HF_BAD_PLUGIN_DIR, "small", NULL, err, sizeof(err)), HF_E_VERSION);
    cr_assert_eq(try_open(HF_BAD_PLUGIN_DIR, "nosym", NULL, err, sizeof(err)), HF_E_VERSION);
    cr_assert_not_null(strstr(err, "hf_backend_plugin"));
}

static int never(void *arg, const uint8_t *id)
{
    (void)id;
    *(int *)arg = 1;
    return 1;
}

Test(loader, older_plugin_gets_defaults)
{
    struct hf_be_space sp;
    struct hf_plug_be *be;
    struct hf_plug *p;
    int called = 0;
    char err[512];

    cr_assert_eq(hf_plug_new(HF_BAD_PLUGIN_DIR, &p), 0);
    cr_assert_eq(hf_plug_open(p, "old", NULL, 0, &be, err, sizeof(err)), 0, "%s", err);
    cr_assert_eq(hf_plug_ops(be)->space(hf_plug_handle(be), &sp), HF_E_NOTSUPP);
    cr_assert_eq(hf_plug_ops(be)->list(hf_plug_handle(be), NULL, never, &called), HF_E_NOTSUPP);
    cr_assert_eq(called, 0);
    hf_plug_close(be);
    hf_plug_free(p);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

Test(loader, posix_says_what_is_wrong_with_its_folder)
{
    char err[512], dir[256], path[300], text[340];

    support_dir_make(dir, sizeof(dir));
    snprintf(path, sizeof(path), "%s/no/such", dir);
    cr_assert_lt(try_open(getenv("HF_PLUGIN_DIR"), "posix", path, err, sizeof(err)), 0);
    cr_assert_not_null(strstr(err, path), "%s", err);
    cr_assert_not_null(strstr(err, "No such file"), "%s", err);
    cr_assert_lt(try_open(getenv("HF_PLUGIN_DIR"), "posix", NULL, err, sizeof(err)), 0);
    cr_assert_not_null(strstr(err, "path"), "%s", err);
    snprintf(path, sizeof(path), "%s/file", dir);
    write_file(path, "x");
    cr_assert_lt(try_open(getenv("HF_PLUGIN_DIR"), "posix", path, err, sizeof(err)), 0);
    cr_assert_not_null(strstr(err, "Not a directory"), "%s", err);
    snprintf(path, sizeof(path), "%s/newer", dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(text, sizeof(text), "%s/format", path);
    write_file(text, "holdfast-posix 2\n");
    cr_assert_lt(try_open(getenv("HF_PLUGIN_DIR"), "posix", path, err, sizeof(err)), 0);
    cr_assert_not_null(strstr(err, "format"), "%s", err);
    if (geteuid() != 0) { /* root may write anywhere */
        cr_assert_eq(chmod(dir, 0500), 0);
        snprintf(path, sizeof(path), "%s/new", dir);
        cr_assert_lt(try_open(getenv("HF_PLUGIN_DIR"), "posix", path, err, sizeof(err)), 0);
        cr_assert_not_null(strstr(err, "Permission denied"), "%s", err);
        cr_assert_eq(chmod(dir, 0700), 0);
    }
    support_dir_remove(dir);
}

Test(loader, posix_folder_is_for_one_process)
{
    char err[512] = "", dir[256], pid[32];
    struct hf_plug_be *be;
    struct hf_plug *p;
    int status;
    pid_t child;

    support_dir_make(dir, sizeof(dir));
    cr_assert_eq(hf_plug_new(getenv("HF_PLUGIN_DIR"), &p), 0);
    cr_assert_eq(hf_plug_open(p, "posix", dir, 1, &be, err, sizeof(err)), 0, "%s", err);
    child = fork();
    if (child == 0)
        _exit(try_open(getenv("HF_PLUGIN_DIR"), "posix", dir, err, sizeof(err)) == HF_E_IO ? 0 : 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(try_open(getenv("HF_PLUGIN_DIR"), "posix", dir, err, sizeof(err)), HF_E_IO);
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    cr_assert_not_null(strstr(err, pid), "%s", err);
    hf_plug_close(be);
    cr_assert_eq(try_open(getenv("HF_PLUGIN_DIR"), "posix", dir, err, sizeof(err)), 0);
    hf_plug_free(p);
    support_dir_remove(dir);
}

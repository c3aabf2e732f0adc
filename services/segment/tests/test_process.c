/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-segment as a process: it serves, stops on SIGTERM, and what it acknowledged as stable is
 * there after kill -9, whenever that comes.
 */
#include "support_svc.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

static struct bed b;
static pid_t pid;
static char url[300];

static void setup(void)
{
    bed_make(&b);
    snprintf(url, sizeof(url), "ipc://%s/s.sock", b.dir);
    cr_assert_eq(hf_loop_new(b.env, "client", &b.loop), 0);
}

static void teardown(void)
{
    hf_loop_free(b.loop);
    bed_remove(&b);
}

TestSuite(process, .init = setup, .fini = teardown, .timeout = 100);

static void spawn(const char *fault, const char *segments)
{
    char prog[4096], dir[300];

    snprintf(prog, sizeof(prog), "%s/holdfast-segment", getenv("HF_BIN_DIR"));
    snprintf(dir, sizeof(dir), "%s/data", b.dir);
    pid = fork();
    if (pid == 0) {
        setenv("HF_FAULT", fault, 1);
        execl(prog, prog, "--segment-dir", dir, "--segment-listen", url, "--segment-segments",
              segments, "--segment-plugins", getenv("HF_PLUGIN_DIR"), (char *)NULL);
        _exit(99);
    }
    cr_assert_gt(pid, 0);
}

static void start(const char *fault)
{
    spawn(fault, "7:posix");
    cr_assert_eq(hf_rpc_client_new(b.loop, url, NULL, &b.client), 0);
    b.stub = hf_rpc_client_service(b.client, &hf__segment__descriptor);
}

static int end(int sig)
{
    int status;

    if (b.client)
        hf_rpc_client_free(b.client);
    b.client = NULL;
    if (sig)
        cr_assert_eq(kill(pid, sig), 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(process, serves_and_stops)
{
    uint8_t data[100000], got[100000];
    uint64_t boot;

    bed_fill(data, sizeof(data), 1);
    start("");
    cr_assert_eq(bed_write(&b, 1, 0, data, sizeof(data), false), 0);
    boot = b.boot;
    cr_assert_eq(end(SIGTERM), 0);
    start("");
    cr_assert_eq(bed_read(&b, 1, 0, got, sizeof(got)), 0);
    cr_assert_eq(b.len, sizeof(data));
    cr_assert_eq(memcmp(got, data, sizeof(data)), 0);
    cr_assert_neq(b.boot, boot);
    cr_assert_eq(end(SIGTERM), 0);
}

Test(process, says_what_is_wrong)
{
    spawn("", "x");
    cr_assert_eq(end(0), 2);
    spawn("nosuch.fault=crash", "7");
    cr_assert_eq(end(0), 2);
    spawn("", "7:nosuch");
    cr_assert_eq(end(0), 1);
}

/* Writes version after version of three blocks until the process dies at a fault point; what was
 * acknowledged, or the one version that was under way, is there afterwards. */
static void crash_at(const char *fault)
{
    enum { BYTES = 150000 };
    uint8_t *data = malloc(BYTES), *got = malloc(BYTES);
    unsigned acked = 0, i;
    bool old, new;

    cr_assert(data && got);
    start(fault);
    for (i = 1; i < 50; i++) {
        bed_fill(data, BYTES, i);
        if (bed_write(&b, 1, 0, data, BYTES, true))
            break;
        acked = i;
        if (i % 3 == 0 && bed_trunc(&b, 1, 1, BYTES))
            break;
    }
    cr_assert_lt(i, 50, "%s did not happen", fault);
    cr_assert_eq(end(0), 137);
    start("");
    cr_assert_eq(bed_read(&b, 1, 0, got, BYTES), 0);
    bed_fill(data, BYTES, acked);
    old = acked == 0 ? b.len == 0 : memcmp(got, data, BYTES) == 0;
    bed_fill(data, BYTES, acked + 1);
    new = memcmp(got, data, BYTES) == 0;
    cr_assert(old || new, "%s: neither version %u nor %u", fault, acked, acked + 1);
    cr_assert_eq(end(SIGKILL), -1);
    free(data);
    free(got);
}

Test(process, killed_at_every_fault_point)
{
    static const char *const points[] = {
        "segment.write=crash@1",  "segment.write=crash@5",    "segment.header=crash@1",
        "segment.header=crash@7", "segment.sync=crash@1",     "segment.sync=crash@2",
        "segment.sync=crash@9",   "segment.truncate=crash@2",
    };

    for (unsigned i = 0; i < HF_ARRAY_LEN(points); i++) {
        crash_at(points[i]);
        /* each begins with nothing */
        teardown();
        setup();
    }
}

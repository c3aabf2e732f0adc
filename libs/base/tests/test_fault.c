/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/err.h"
#include "holdfast/fault.h"

Test(fault, nothing_asked_nothing_happens)
{
    struct hf_faults *f = (struct hf_faults *)&f;
    const char *bad = NULL;

    cr_assert_eq(hf_faults_new(NULL, &f, &bad), 0);
    cr_assert_null(f);
    cr_assert_eq(hf_faults_new("", &f, &bad), 0);
    cr_assert_null(f);
    cr_assert_eq(hf_fault(f, HF_FAULT_LOG_WRITE), 0);
    cr_assert_str_eq(hf_fault_name(HF_FAULT_STORE_COMMIT), "store.commit");
    cr_assert_str_eq(hf_fault_name(HF_FAULT_COUNT), "unknown");
}

Test(fault, actions_and_visits)
{
    struct hf_faults *f;

    cr_assert_eq(hf_faults_new("log.write=error,log.fsync=nospace@3,segment.sync=delay:30,"
                               "segment.sync=error@2",
                               &f, NULL),
                 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(hf_fault(f, HF_FAULT_LOG_WRITE), HF_E_IO);
    cr_assert_eq(hf_fault(f, HF_FAULT_LOG_FSYNC), 0);
    cr_assert_eq(hf_fault(f, HF_FAULT_LOG_FSYNC), 0);
    cr_assert_eq(hf_fault(f, HF_FAULT_LOG_FSYNC), HF_E_NOSPC);
    cr_assert_eq(hf_fault(f, HF_FAULT_LOG_FSYNC), 0);
    cr_assert_eq(hf_fault(f, HF_FAULT_STORE_COMMIT), 0);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    cr_assert_eq(hf_fault(f, HF_FAULT_SEG_SYNC), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_assert_geq((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000, 29);
    cr_assert_eq(hf_fault(f, HF_FAULT_SEG_SYNC), HF_E_IO);
    hf_faults_free(f);
}

Test(fault, crash_is_like_kill)
{
    struct hf_faults *f;
    int status = 0;
    pid_t pid;

    cr_assert_eq(hf_faults_new("store.commit=crash@2", &f, NULL), 0);
    pid = fork();
    if (pid == 0) {
        (void)hf_fault(f, HF_FAULT_STORE_COMMIT);
        (void)hf_fault(f, HF_FAULT_STORE_COMMIT);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 137);
    hf_faults_free(f);
}

Test(fault, bad_specifications_point_at_the_part)
{
    static const struct {
        const char *spec;
        size_t at;
    } bad[] = {
        {"nosuch=error", 0},
        {"log.write", 0},
        {"log.write=", 0},
        {"log.write=explode", 0},
        {"log.write=errors", 0},
        {"log.write=error@", 0},
        {"log.write=error@0", 0},
        {"log.write=error@x", 0},
        {"log.write=error@99999999999999999999", 0},
        {"log.write=delay:", 0},
        {"log.write=delay:-1", 0},
        {"log.write=delay:99999999999", 0},
        {"log.write=error,", 16},
        {",log.write=error", 0},
        {"log.write=error,log.fsync=crash@3,x=y", 34},
        {"=error", 0},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_faults *f = NULL;
        const char *where = NULL;

        cr_assert_eq(hf_faults_new(bad[i].spec, &f, &where), HF_E_CONF, "%s", bad[i].spec);
        cr_assert_null(f);
        cr_assert_eq(where, bad[i].spec + bad[i].at, "%s", bad[i].spec);
    }
}

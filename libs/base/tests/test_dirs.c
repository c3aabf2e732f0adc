/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/dirs.h"
#include "holdfast/err.h"

/* That names are synced is what tests/crash/torn finds out; here: what is made, and the errors. */
Test(dirs, make)
{
    char top[] = "/tmp/hf-dirs.XXXXXX", path[64];
    struct stat st;

    cr_assert_not_null(mkdtemp(top));
    cr_assert_eq(chdir(top), 0);
    cr_assert_eq(hf_dir_make("a"), 0);
    cr_assert_eq(hf_dir_make("a"), 0);
    cr_assert_eq(hf_dir_make("a/b//"), 0);
    cr_assert_eq(stat("a/b", &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0700);
    snprintf(path, sizeof(path), "%s/c", top);
    cr_assert_eq(hf_dir_make(path), 0);
    cr_assert_eq(hf_dir_make("/"), 0);
    cr_assert_eq(hf_dir_make("x/y"), HF_E_NOENT);
    cr_assert_eq(hf_dir_sync("a"), 0);
    cr_assert_eq(hf_dir_sync("x"), HF_E_NOENT);
    cr_assert_eq(rmdir("a/b") | rmdir("a") | rmdir("c") | rmdir(top), 0);
}

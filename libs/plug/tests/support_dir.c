/* SPDX-License-Identifier: Apache-2.0 */
#include "support_dir.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

void support_dir_make(char *buf, size_t bytes)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(buf, bytes, "%s/hf-plug-XXXXXX", tmp ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(buf));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void support_dir_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "holdfast/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/err.h"

static int sync_errno(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e;

    if (fd < 0)
        return errno;
    e = fsync(fd) ? errno : 0;
    (void)close(fd);
    return e;
}

int hf_dir_sync(const char *path)
{
    int e = sync_errno(path);

    return e ? hf_err_from_errno(e) : 0;
}

/* The folder above path, to be freed. */
static char *parent(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

int hf_dir_make(const char *path)
{
    bool made = mkdir(path, 0700) == 0;
    char *above;
    int e;

    if (!made && errno != EEXIST)
        return hf_err_from_errno(errno);
    above = parent(path);
    if (!above)
        return HF_E_NOMEM;
    e = sync_errno(above);
    free(above);
    if (!made && (e == EACCES || e == EINVAL || e == EROFS))
        e = 0;
    return e ? hf_err_from_errno(e) : 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A segment that was made is never made again: an empty one in its place (a lost folder, a disk
 * that is not mounted) would give zeros for data, since a chunk that does not exist is a hole. Two
 * marks tell: DIR/made lists the segments that were made here, and each has a file of its own
 * inside. The inner one is written first.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/dirs.h"
#include "svc_priv.h"

#define INNER "holdfast-segment"

static bool listed(const char *list, uint32_t id)
{
    FILE *f = fopen(list, "re");
    char line[32], *end;
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f))
        found = strtoul(line, &end, 10) == id && end != line;
    if (f)
        (void)fclose(f);
    return found;
}

/* Appends a line with the segment's number if it is not there, and makes it durable in any case: a
 * process that was killed may have written it a moment ago. */
static int note(const char *path, const char *dir, uint32_t id, bool there)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int rc = 0;

    if (fd < 0)
        return hf_err_from_errno(errno);
    if ((!there && dprintf(fd, "%" PRIu32 "\n", id) < 0) || fsync(fd))
        rc = HF_E_IO;
    if (close(fd))
        rc = HF_E_IO;
    return rc ? rc : hf_dir_sync(dir);
}

int svc_made_check(const char *dir, const char *path, uint32_t id, char *err, size_t err_bytes)
{
    char list[4300], inner[4300];

    (void)snprintf(list, sizeof(list), "%s/made", dir);
    (void)snprintf(inner, sizeof(inner), "%s/" INNER, path);
    if (!listed(list, id) || access(inner, F_OK) == 0)
        return 0;
    (void)snprintf(err, err_bytes,
                   "segment %" PRIu32
                   ": %.300s is missing or empty; restore or mount it, it is not made anew",
                   id, path);
    return HF_E_NOENT;
}

int svc_made_note(const char *dir, const char *path, uint32_t id, struct hf_faults *faults,
                  char *err, size_t err_bytes)
{
    char list[4300], inner[4300];
    int rc;

    (void)snprintf(list, sizeof(list), "%s/made", dir);
    (void)snprintf(inner, sizeof(inner), "%s/" INNER, path);
    rc = note(inner, path, id, access(inner, F_OK) == 0);
    if (rc == 0) /* the segment's own name, before the list says that it is there */
        rc = hf_dir_sync(dir);
    if (rc == 0)
        rc = hf_fault(faults, HF_FAULT_SEG_MADE);
    if (rc == 0)
        rc = note(list, dir, id, listed(list, id));
    if (rc)
        (void)snprintf(err, err_bytes, "segment %" PRIu32 ": cannot write %.300s: %s", id, list,
                       hf_err_text(rc));
    return rc;
}

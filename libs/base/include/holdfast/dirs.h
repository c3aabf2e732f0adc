/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders whose names survive a power failure. Any thread, blocking.
 */
#ifndef HOLDFAST_DIRS_H
#define HOLDFAST_DIRS_H

/* Makes the names in the folder durable. Errors of open and fsync. */
int hf_dir_sync(const char *path);
/* Makes the folder (mode 0700) if it is missing, and its name durable in either case: a process
 * that was killed may have made it a moment ago. The folder above must exist; if it is not ours to
 * read, a folder that was there is taken as it is. Errors of mkdir, open and fsync. */
int hf_dir_make(const char *path);

#endif

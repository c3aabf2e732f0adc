/* SPDX-License-Identifier: Apache-2.0
 *
 * The wal's way to its files. Tests put another one in its place, to fail steps and to keep a
 * record of what had reached the disk at each moment. All return 0 or HF_E_*; any thread.
 */
#ifndef HF_LOG_FILES_H
#define HF_LOG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wal_files {
    void *ctx;
    /* create: must not exist yet (EXIST). */
    int (*open)(const struct wal_files *f, const char *path, bool create, int *ret_fd);
    void (*close)(const struct wal_files *f, int fd);
    int (*size)(const struct wal_files *f, int fd, uint64_t *ret);
    /* All of len bytes, or an error; IO beyond the end. */
    int (*read)(const struct wal_files *f, int fd, uint64_t off, void *buf, size_t len);
    int (*write)(const struct wal_files *f, int fd, uint64_t off, const void *buf, size_t len);
    int (*sync)(const struct wal_files *f, int fd); /* fdatasync */
    int (*allocate)(const struct wal_files *f, int fd, uint64_t bytes);
    int (*remove)(const struct wal_files *f, const char *path);
    int (*sync_dir)(const struct wal_files *f, const char *path);
    int (*space)(const struct wal_files *f, const char *path, uint64_t *ret_free_bytes);
};

extern const struct wal_files wal_files_posix;

#endif

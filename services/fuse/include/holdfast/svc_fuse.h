/* SPDX-License-Identifier: Apache-2.0
 *
 * The FUSE mount as a service: libfuse3's low-level interface on the engines of libholdfast. Each
 * engine reads its own clone of the FUSE device, so a request is parsed, sent and answered without
 * changing threads.
 *
 * Needs the right to mount (root); unprivileged users mount through fusermount3 if it is installed.
 */
#ifndef HOLDFAST_SVC_FUSE_H
#define HOLDFAST_SVC_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/logger.h"
#include "holdfast/rt.h"

struct hf_fusesvc;

struct hf_fusesvc_opts {
    struct hf_env *env; /* borrowed */
    struct hf_logger *log;
    const char *meta_url;   /* where shard 0 answers; a list as in libholdfast */
    const char *mountpoint; /* an existing directory */
    const char *subdir; /* what to show there: an absolute path in the file system; NULL = "/" */
    bool read_only;
    bool allow_other; /* other users than the one who mounts */
    unsigned threads; /* engines; 0 = 1 */
    uint64_t attr_timeout_ms, entry_timeout_ms,
        negative_timeout_ms;                       /* the kernel's caches; as given */
    uint64_t timeout_ms;                           /* of one request; 0 = 30 s */
    uint64_t dirty_max_bytes, readahead_max_bytes; /* see struct hf_fs_opts; 0: defaults */
    bool insecure;
    /* The mount ended (umount) without hf_fusesvc_free; called once, on an engine. May be NULL. */
    void (*ended)(void *arg);
    void *arg;
};

/* Mounts; returns when requests are served. err: one line. */
int hf_fusesvc_new(const struct hf_fusesvc_opts *o, struct hf_fusesvc **ret, char *err,
                   size_t err_bytes);
/* False once the mount has ended. Any thread. */
bool hf_fusesvc_serving(const struct hf_fusesvc *s);
/* Name and value of each counter. Any thread. */
void hf_fusesvc_counters(const struct hf_fusesvc *s,
                         void (*fn)(void *arg, const char *name, uint64_t value), void *arg);
/* What fills up: name, used, allowed. Any thread. */
void hf_fusesvc_limits(const struct hf_fusesvc *s,
                       void (*fn)(void *arg, const char *name, uint64_t used, uint64_t max),
                       void *arg);
/* Unmounts, writes what is buffered, and ends the threads. */
void hf_fusesvc_free(struct hf_fusesvc *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_DISK_PRIV_H
#define HF_TESTS_DISK_PRIV_H

#include "disk.h"

#include <stddef.h>

#define DISK_PAGE   65536u
#define DISK_FDS    4096
#define DISK_SYNCS  64
#define DISK_SECTOR 512u

struct change {
    uint32_t kind; /* TR_WRITE, TR_TRUNCATE, TR_ALLOCATE, TR_PUNCH */
    bool durable;
    uint64_t seq, off, len;
    const uint8_t *data;
};

struct name {
    char *text;
    struct inode *in;
};

struct name_change {
    bool add;
    uint64_t seq;
    struct name n;
};

struct names {
    struct name *v;
    unsigned n, cap;
};

struct inode {
    bool dir;
    struct inode *next; /* of all, to free them */
    /* a file: what is durable, and what came since */
    uint8_t **pages; /* NULL: zeros */
    size_t npages;
    uint64_t size;
    struct change *changes;
    size_t nchanges, cap_changes;
    /* a folder: as programs see it, what is durable, and what came since */
    struct names live, durable;
    struct name_change *steps;
    size_t nsteps, cap_steps;
};

struct sync {
    uint64_t id, seq; /* id 0: free */
    struct inode *in;
};

struct disk {
    struct inode *root, *all;
    struct inode *fds[DISK_FDS];
    struct sync syncs[DISK_SYNCS];
    uint64_t seq;
    struct disk_stats stats;
};

/* The durable content with one more change. */
void disk_fold(struct inode *in, const struct change *c);
struct name *disk_find(struct names *l, const char *text, size_t len);
void disk_name_add(struct names *l, const char *text, size_t len, struct inode *in);
void disk_name_del(struct names *l, struct name *n);

#endif

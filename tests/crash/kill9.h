/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of the crash test: what a worker has been told is there. Each worker owns a few
 * directories with numbered name slots, and has one call in flight, so after a kill at most one
 * operation per worker is in doubt.
 */
#ifndef HF_TESTS_KILL9_H
#define HF_TESTS_KILL9_H

#include "../support/nt.h"

#define DIRS    3
#define SLOTS   24
#define FILES   (DIRS * SLOTS)
#define HISTORY 12

enum kind { K_NONE, K_FILE, K_DIR, K_LINK };

struct slot {
    enum kind kind;
    int file;         /* K_FILE: index in files */
    struct nt_fh fh;  /* K_DIR, K_LINK */
    uint32_t version; /* K_LINK: its target is "v<version>" */
};

struct file {
    bool live;
    struct nt_fh fh;
    uint32_t nlink;
    uint8_t *data;
    uint64_t size, cap;
    struct event { /* what was done to it last, for messages */
        int op;    /* enum op; in doubt: negative */
        uint64_t off, len, size;
    } history[HISTORY];
    unsigned nhistory;
};

enum op {
    OP_NONE,
    OP_CREATE,
    OP_MKDIR,
    OP_SYMLINK,
    OP_LINK,
    OP_WRITE,
    OP_SIZE,
    OP_REMOVE,
    OP_RMDIR,
    OP_RENAME
};

struct pending {
    enum op op;
    unsigned d, s, d2, s2; /* slot worked on, slot renamed to */
    int file;
    uint64_t off;
    uint32_t len;
    uint32_t seed;
    bool commit; /* WRITE UNSTABLE, then COMMIT */
};

struct worker {
    struct nt_node *node;
    unsigned id;
    uint64_t rng;
    struct nt_fh top, dirs[DIRS];
    struct slot slots[DIRS][SLOTS];
    struct file files[FILES];
    struct pending p;
    uint64_t acked, in_doubt_done, in_doubt_not;
    char error[256]; /* an answer that contradicts the model */
};

uint64_t k9_rand(uint64_t *s);
void k9_name(unsigned s, char buf[16]);
/* Makes the worker's directories in parent. */
void k9_worker_init(struct worker *w, struct nt *c, const struct nt_fh *parent);
/* Chooses an operation, does it, books it when it is acknowledged. false: no answer (w->p is in
 * doubt), or w->error is set. */
bool k9_step(struct worker *w, struct nt *c);
/* After a restart: finds out whether w->p happened, and books it if so. */
void k9_resolve(struct worker *w, struct nt *c);
/* Compares everything with the model; ends the test on a difference. */
void k9_verify(struct worker *w, struct nt *c);

#endif

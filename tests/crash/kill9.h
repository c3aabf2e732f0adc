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
    uint32_t nlink, mode;
    bool know_mtime; /* it was set, and nothing has changed it since */
    uint32_t mtime;
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
    OP_RENAME,
    OP_MODE, /* SETATTR of mode and mtime */
    OP_READ
};

struct pending {
    enum op op;
    unsigned d, s, d2, s2; /* slot worked on, slot renamed to */
    int file;
    uint64_t off;
    uint32_t len;
    uint32_t seed, mode;
    unsigned pieces; /* WRITE UNSTABLE in so many calls, then COMMIT; 0: one WRITE FILE_SYNC */
};

/* What a worker tells its journal. */
enum k9_event {
    K9_START,    /* w->p is about to be sent */
    K9_ACK,      /* it was acknowledged */
    K9_HAPPENED, /* after a restart: it was in doubt, and it is there */
    K9_NOT,      /* ... and it is not */
    K9_FOUND     /* a write was in doubt: the file is what w->files[w->p.file] says now */
};

struct worker {
    struct nt_node *node;
    unsigned id;
    unsigned nslots;     /* names used of each directory; 0: all */
    bool may_refuse;     /* IO, NOSPC and JUKEBOX are answers: the operation is in doubt */
    uint32_t refused;    /* the last such answer */
    uint64_t read_bytes; /* compared during the load */
    void (*journal)(struct worker *w, enum k9_event ev, const struct nt_fh *fh); /* or NULL */
    void *journal_arg;
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

/* For those who play a journal back. p has happened, and made fh. */
void k9_apply(struct worker *w, const struct pending *p, const struct nt_fh *fh);
/* A write p that was in doubt left the file size bytes long, with these bytes from p->off on. */
void k9_apply_found(struct worker *w, const struct pending *p, uint64_t size, const uint8_t *bytes);
/* A copy with content of its own; free with k9_clear. */
void k9_copy(struct worker *to, const struct worker *from);
void k9_clear(struct worker *w);

/* Between the files of the model. */
void k9_file_room(struct file *f, uint64_t size);
void k9_remember(struct file *f, int op, uint64_t off, uint64_t len);
void k9_book(struct worker *w, const struct nt_fh *fh);
const char *k9_op_name(int op);
void k9_content_differs(const struct worker *w, unsigned i, uint64_t at, const uint8_t *got,
                        uint32_t n);

#endif

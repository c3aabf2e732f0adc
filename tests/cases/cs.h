/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the public-bugs cases: a file system served by processes of their own (two segment
 * servers, a metadata server, two gateways, each of which can be killed), many calls in flight on
 * one connection, a census of listed names, small tmpfs.
 *
 * Functions that say "any thread" never end the test; all others are for the main thread.
 */
#ifndef HF_TESTS_CS_H
#define HF_TESTS_CS_H

#include "nt.h"

/* ---- several processes ---- */

enum cs_who { CS_SEG1, CS_SEG2, CS_META, CS_GW_A, CS_GW_B, CS_PROCS };

struct cs_layout {
    char dir[200]; /* sockets, logs; the data too unless the next two are set */
    char seg_dir[2][200], meta_dir[200];
    char meta_args[4][64], seg_args[4][64]; /* further flags, before cs_layout_start */
    char fault[CS_PROCS][96];               /* HF_FAULT of the next start of each */
    pid_t pid[CS_PROCS];
    struct nt_node gw[2]; /* the gateways, for nt_open */
    struct nt_fh root;    /* handle of the export */
};

/* Makes the folders, starts everything, waits until both gateways serve. Zero *l first. */
void cs_layout_start(struct cs_layout *l);
/* Starts one process that does not run; it need not serve yet. Any thread. */
void cs_start(struct cs_layout *l, enum cs_who who);
/* Sends sig and reaps; the wait status. Any thread. */
int cs_end(struct cs_layout *l, enum cs_who who, int sig);
/* SIGKILL and start anew, then waits until both gateways serve. */
void cs_bounce(struct cs_layout *l, enum cs_who who);
/* Until both gateways answer a GETATTR of the root (60 s). */
void cs_wait_serves(struct cs_layout *l);
void cs_layout_stop(struct cs_layout *l); /* kills all, removes the folders */
/* A connection as root to gateway 0 or 1. */
struct nt *cs_gw(struct cs_layout *l, unsigned which);

/* ---- many calls ---- */

enum cs_op { CS_CREATE, CS_REMOVE, CS_LINK, CS_READ };

/* op on PREFIX<from> .. PREFIX<to - 1> in dir, up to 200 in flight; the first status that is not
 * OK, NT_NO_REPLY, or NFS3_OK. obj: LINK's file; READ reads one byte of it each time. Any thread.
 */
uint32_t cs_many(struct nt *c, enum cs_op op, const struct nt_fh *dir, const struct nt_fh *obj,
                 const char *prefix, unsigned from, unsigned to);

/* How often each of PREFIX0 .. PREFIX(n-1) was seen; `other` are all other names but . and .. */
struct cs_census {
    const char *prefix;
    unsigned n, dots, other, pages, eofs;
    uint8_t *seen;
    size_t most_bytes; /* largest reply */
};

void cs_census_init(struct cs_census *s, const char *prefix, unsigned n);
void cs_census_add(struct cs_census *s, const char *name);
/* From the first page to eof, cookies strictly advance and stay below 2^63. `from_page` restarts
 * are the caller's. */
void cs_list(struct nt *c, const struct nt_fh *dir, bool plus, uint32_t count, struct cs_census *s);
/* Every name from lo on exactly once; frees. */
void cs_census_check(struct cs_census *s, unsigned lo);

/* ---- small things ---- */

/* VmRSS of a process, or -1. */
long cs_rss_kib(pid_t pid);
void cs_nap_ms(long ms); /* between two looks at a condition */
uint64_t cs_after(unsigned sec);
/* Bytes that the files below a folder occupy. */
uint64_t cs_du(const char *dir);
/* Mounts a tmpfs of mib MiB on a new folder below base; dir (200 bytes) is its path. */
void cs_tmpfs(const char *base, const char *name, unsigned mib, char *dir);
void cs_tmpfs_end(const char *dir);
/* `holdfast ARGS...` on the runner's node must end with status 0. */
void cs_cli(struct nt_env *e, const char *a0, ...) __attribute__((sentinel));
void cs_restart_node(struct nt_env *e, int sig);

#endif

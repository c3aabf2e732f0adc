/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for the NFS protocol tests: one synchronous function per NFSv3 and MOUNT procedure over
 * raw libnfs calls (cookies, verifiers, guards and identities are the test's own), a node to test
 * against, raw bytes on a socket, and a runner that prints TAP.
 *
 * Every call function returns the nfsstat3 and leaves everything else the reply held in c->r. A
 * call that gets no reply ends the test as failed, unless c->tolerant is set (then NT_NO_REPLY is
 * returned).
 */
#ifndef HF_TESTS_NT_H
#define HF_TESTS_NT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* the order matters */
#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#define NT_FH_MAX   64
#define NT_NO_REPLY 0xfffffffeu
#define NT_KEEP     0xffffffffu /* in struct nt_set: leave as it is */
#define NT_IO_MAX   (1u << 20)

struct nt_fh {
    uint32_t len;
    uint8_t data[NT_FH_MAX];
};

struct nt_wcc {
    bool have_before, have_after;
    wcc_attr before;
    fattr3 after;
};

struct nt_entry {
    uint64_t fileid;
    uint64_t cookie;
    char name[256];
    bool have_attr, have_fh;
    fattr3 attr;
    struct nt_fh fh;
};

struct nt_res {
    uint32_t status;
    bool have_fh, have_attr, have_dir;
    struct nt_fh fh;
    fattr3 attr;        /* the object's post-op attributes */
    fattr3 dir_attr;    /* LOOKUP: the directory's */
    struct nt_wcc wcc;  /* of the object or directory; RENAME: from directory */
    struct nt_wcc wcc2; /* RENAME: to directory */
    uint32_t access;
    uint32_t count, committed;
    bool eof;
    char verf[8]; /* WRITE, COMMIT, READDIR(PLUS) */
    char target[4200];
    FSINFO3resok fsinfo;
    FSSTAT3resok fsstat;
    PATHCONF3resok pathconf;
    unsigned nentries;
    size_t reply_bytes; /* READDIR(PLUS): what the entries take in XDR, with the fixed part */
};

/* One connection with one identity. */
struct nt {
    struct rpc_context *rpc;
    bool tolerant;
    bool done;
    int rpc_status;
    struct nt_res r;
    uint8_t *data; /* READ: r.count bytes */
    struct nt_entry *entries;
    unsigned cap_entries;
};

/* What SETATTR, CREATE and the like set. Initialise with NT_SET_NONE. */
struct nt_set {
    uint32_t mode, uid, gid;
    bool set_size;
    uint64_t size;
    uint32_t atime_how, mtime_how; /* enum time_how */
    nfstime3 atime, mtime;
};
#define NT_SET_NONE    ((struct nt_set){.mode = NT_KEEP, .uid = NT_KEEP, .gid = NT_KEEP})
#define NT_SET_MODE(m) ((struct nt_set){.mode = (m), .uid = NT_KEEP, .gid = NT_KEEP})

/* ---- the server under test ---- */

/* A node of its own in a temporary folder, or a server given by --server. */
struct nt_node {
    char dir[256];    /* holds conf.yml, log, data/ */
    char extra[1024]; /* further configuration lines */
    char hot[128];    /* backend of the first pool, if not the default */
    int port, mount_port;
    pid_t pid;
    int status;   /* of the process that nt_node_alive found ended: as wait says it */
    bool foreign; /* --server: cannot be restarted, lacks the CLI */
    char export_path[256];
};

int nt_free_port(void); /* that was free a moment ago */
/* Starts a node and waits (60 s) until it serves. Dies with a message and the node's log otherwise.
 */
void nt_node_start(struct nt_node *n);
/* Starts once; false: the process ended instead of serving, *ret_status is its wait status. */
bool nt_node_try_start(struct nt_node *n, int *ret_status);
/* Ends it with sig if it still runs; its wait status, whatever that is. */
int nt_node_end(struct nt_node *n, int sig);
void nt_node_kill(struct nt_node *n, int sig); /* and reaps; SIGTERM must end with status 0 */
void nt_node_remove(struct nt_node *n);        /* stops it, deletes the folder */
void nt_remove_tree(const char *path);         /* rm -r */
void nt_node_log(const struct nt_node *n);     /* to stderr */
long nt_node_rss_kib(const struct nt_node *n);
bool nt_node_alive(struct nt_node *n);
/* Runs `holdfast --dir DIR ARGS...` (NULL-terminated); the exit status. Output is appended to ret
 * if that is not NULL. */
int nt_cli(struct nt_node *n, char *ret, size_t cap, const char *const *args);

/* ---- the runner ---- */

struct nt_env {
    struct nt_node node;
    struct nt *root; /* uid 0 */
    struct nt_fh export_fh;
    struct nt_fh dir; /* this test's own directory, mode 0777 */
    char dir_name[64];
};

struct nt_test {
    const char *name;
    void (*fn)(struct nt_env *e);
    bool needs_node; /* skipped against a foreign server */
};

/* main() of a test program. extra: configuration lines for the node, or NULL. */
int nt_main(int argc, char **argv, const struct nt_test *tests, size_t n, const char *extra_conf);
/* Ends the present test as failed. */
_Noreturn void nt_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Connects e->root anew, after a restart. */
void nt_reconnect(struct nt_env *e);

#define NT_CHECK(cond)        ((cond) ? (void)0 : nt_fail(__FILE__, __LINE__, "not true: %s", #cond))
#define NT_EQ(a, b)           nt_eq(__FILE__, __LINE__, #a, (uint64_t)(a), (uint64_t)(b))
#define NT_STATUS(call, want) nt_status(__FILE__, __LINE__, #call, (call), (want))
#define NT_OK(call)           NT_STATUS(call, NFS3_OK)
/* One of several statuses that the RFC allows: NT_ONE_OF(call, A, B, C). */
#define NT_ONE_OF(call, ...)                                                                       \
    nt_one_of(__FILE__, __LINE__, #call, (call), (const uint32_t[]){__VA_ARGS__, NT_END})
#define NT_END 0xfffffffdu
void nt_one_of(const char *file, int line, const char *what, uint32_t got, const uint32_t *want);
void nt_eq(const char *file, int line, const char *what, uint64_t a, uint64_t b);
void nt_status(const char *file, int line, const char *what, uint32_t got, uint32_t want);
const char *nt_status_name(uint32_t status);
uint64_t nt_now_ns(void);

/* ---- connections and calls ---- */

struct nt *nt_open(const struct nt_node *n, uint32_t uid, uint32_t gid, unsigned ngroups,
                   const uint32_t *groups);
struct nt *nt_try_open(const struct nt_node *n, int port); /* NULL: nobody listens */
void nt_close(struct nt *c);

uint32_t nt_null(struct nt *c);
uint32_t nt_getattr(struct nt *c, const struct nt_fh *fh); /* attributes in r.attr */
uint32_t nt_setattr(struct nt *c, const struct nt_fh *fh, const struct nt_set *set,
                    const nfstime3 *guard);
uint32_t nt_lookup(struct nt *c, const struct nt_fh *dir, const char *name);
uint32_t nt_access(struct nt *c, const struct nt_fh *fh, uint32_t want);
uint32_t nt_readlink(struct nt *c, const struct nt_fh *fh);
uint32_t nt_read(struct nt *c, const struct nt_fh *fh, uint64_t off, uint32_t count);
uint32_t nt_write(struct nt *c, const struct nt_fh *fh, uint64_t off, const void *data,
                  uint32_t count, uint32_t stable);
uint32_t nt_create(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t how,
                   const struct nt_set *set, const char verf[8]);
uint32_t nt_mkdir(struct nt *c, const struct nt_fh *dir, const char *name,
                  const struct nt_set *set);
uint32_t nt_symlink(struct nt *c, const struct nt_fh *dir, const char *name, const char *target,
                    const struct nt_set *set);
uint32_t nt_mknod(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t type,
                  const struct nt_set *set, uint32_t major, uint32_t minor);
uint32_t nt_remove(struct nt *c, const struct nt_fh *dir, const char *name);
uint32_t nt_rmdir(struct nt *c, const struct nt_fh *dir, const char *name);
uint32_t nt_rename(struct nt *c, const struct nt_fh *from, const char *from_name,
                   const struct nt_fh *to, const char *to_name);
uint32_t nt_link(struct nt *c, const struct nt_fh *fh, const struct nt_fh *dir, const char *name);
/* Entries in c->entries[0 .. r.nentries). verf: the cookie verifier, NULL for zeros. */
uint32_t nt_readdir(struct nt *c, const struct nt_fh *dir, uint64_t cookie, const char *verf,
                    uint32_t count);
uint32_t nt_readdirplus(struct nt *c, const struct nt_fh *dir, uint64_t cookie, const char *verf,
                        uint32_t dircount, uint32_t maxcount);
uint32_t nt_fsstat(struct nt *c, const struct nt_fh *fh);
uint32_t nt_fsinfo(struct nt *c, const struct nt_fh *fh);
uint32_t nt_pathconf(struct nt *c, const struct nt_fh *fh);
uint32_t nt_commit(struct nt *c, const struct nt_fh *fh, uint64_t off, uint32_t count);
/* MOUNT MNT: mountstat3; the handle in r.fh. */
uint32_t nt_mount(struct nt *c, const char *path);

/* Shorthands that must succeed; the new object's handle in *ret. */
void nt_mk_file(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t mode,
                struct nt_fh *ret);
void nt_mk_dir(struct nt *c, const struct nt_fh *dir, const char *name, uint32_t mode,
               struct nt_fh *ret);
bool nt_fh_eq(const struct nt_fh *a, const struct nt_fh *b);
bool nt_time_eq(nfstime3 a, nfstime3 b);
int nt_time_cmp(nfstime3 a, nfstime3 b);
/* Bytes that depend on (seed, offset): any piece of a file can be made and checked by itself. */
void nt_pattern(uint32_t seed, uint64_t off, uint8_t *buf, size_t len);
bool nt_pattern_ok(uint32_t seed, uint64_t off, const uint8_t *buf, size_t len);

/* ---- bytes on a socket ---- */

struct nt_buf {
    uint8_t b[8192];
    size_t n;
};

int nt_raw_connect(int port);
/* A call header (AUTH_SYS uid 0) with room for the record mark; arguments follow; then nt_raw_seal.
 */
void nt_raw_call(struct nt_buf *m, uint32_t xid, uint32_t prog, uint32_t vers, uint32_t proc);
void nt_raw_u32(struct nt_buf *m, uint32_t v);
void nt_raw_opaque(struct nt_buf *m, const void *data, uint32_t len);
void nt_raw_seal(struct nt_buf *m);
bool nt_raw_send(int fd, const void *data, size_t len);
/* One record, 10 s; its length, 0: closed by the server, -1: nothing came. */
ssize_t nt_raw_recv(int fd, void *buf, size_t cap);
uint32_t nt_raw_get(const uint8_t *p);

#endif

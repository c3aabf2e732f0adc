/* SPDX-License-Identifier: Apache-2.0
 *
 * The NFSv3 load generator behind `holdfast bench nfs`.
 *
 * One thread, one epoll (libevent's core), C connections, D streams per connection. A stream is a
 * client with one call in flight: its reply makes the next request. A turn of the loop reads what a
 * socket holds, makes all the next requests and sends them with one writev, so the generator costs
 * the machine as little as possible: what is measured is the server.
 *
 *   bench_conn.c  a connection: record marking, xids, slots, buffers
 *   bench_sync.c  the calls of the set-up phase, one at a time
 *   bench_tree.c  the files a mix works on, made before and removed after
 *   bench_mix.c   the mixes: which request a stream sends next
 *   bench_hist.c  latency histograms
 *   bench_nfs.c   phases of a run
 *   cmd_bench.c   options and report
 *   bench_native.c  the same for libholdfast, whole
 *
 * The XDR here is the generator's own and knows only what the mixes need; it shares no code with
 * the server that it measures.
 */
#ifndef HF_CLI_BENCH_H
#define HF_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cli;
struct event;
struct event_base;

#define BN_FH_MAX    64
#define BN_DEPTH_MAX 1024u
#define BN_CONN_MAX  1024u
#define BN_PROCS     22
#define BN_IO_SFS    32768u
#define BN_CREATE_SZ 4096u

/* NFSv3 procedure numbers (RFC 1813 section 3.3). */
enum bn_proc {
    BN_NULL = 0,
    BN_GETATTR = 1,
    BN_SETATTR = 2,
    BN_LOOKUP = 3,
    BN_ACCESS = 4,
    BN_READLINK = 5,
    BN_READ = 6,
    BN_WRITE = 7,
    BN_CREATE = 8,
    BN_MKDIR = 9,
    BN_SYMLINK = 10,
    BN_REMOVE = 12,
    BN_RMDIR = 13,
    BN_READDIR = 16,
    BN_READDIRPLUS = 17,
    BN_FSSTAT = 18,
    BN_FSINFO = 19,
    BN_COMMIT = 21
};

enum bn_prog { BN_PROG_NFS = 100003, BN_PROG_MOUNT = 100005 };

enum bn_mix_id {
    BN_MIX_NULL,
    BN_MIX_GETATTR,
    BN_MIX_LOOKUP,
    BN_MIX_CREATE4K,
    BN_MIX_SFS,
    BN_MIX_SEQREAD,
    BN_MIX_SEQWRITE
};

struct bn_opts {
    char host[256];
    char port[8];
    char mount_port[8];
    char export_path[1024];
    enum bn_mix_id mix;
    unsigned connections;
    unsigned depth;
    unsigned seconds;
    unsigned file_mib; /* seqread, seqwrite: MiB per connection */
    uint32_t stable;   /* stable_how of sfs and seqwrite WRITEs */
    uint32_t uid;
    uint32_t gid;
    uint64_t seed;
    bool keep;
    bool json;
};

struct bn_fh {
    uint32_t len;
    uint8_t data[BN_FH_MAX];
};

/* ---- histogram: 32 steps per power of two, 3 % wide ---- */

#define BN_HIST_SUB     5
#define BN_HIST_BUCKETS ((64 - BN_HIST_SUB + 1) << BN_HIST_SUB)

struct bn_hist {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t bucket[BN_HIST_BUCKETS];
};

void bn_hist_add(struct bn_hist *h, uint64_t ns);
/* The latency that a share q (0..1) of the calls did not exceed; 0 when empty. */
uint64_t bn_hist_quantile(const struct bn_hist *h, double q);

/* ---- a reply, as far as the mixes care ---- */

struct bn_reply {
    bool ok_rpc;         /* accepted, SUCCESS */
    uint32_t status;     /* nfsstat3 or mountstat3; 0 for NULL */
    const uint8_t *body; /* after the status */
    size_t len;
};

/* ---- connection ---- */

struct bn_conn;

struct bn_slot {
    void (*done)(struct bn_slot *slot, const struct bn_reply *r);
    void *arg;
    uint32_t xid;
    bool busy;
};

struct bn_piece {
    const uint8_t *ext; /* caller's bytes, or NULL: the bytes at off of the connection's buffer */
    size_t off;
    size_t len;
};

struct bn_conn {
    struct event_base *base;
    struct event *rd;
    struct event *wr;
    int fd;
    bool dead;
    bool in_turn; /* requests made now are sent at the end of the turn */
    uint32_t xid_seq;
    unsigned nslots;
    unsigned busy;
    struct bn_slot *slots;
    /* request template: record mark .. verifier */
    uint8_t tmpl[256];
    size_t tmpl_len;
    /* output */
    uint8_t *out;
    size_t out_len, out_cap;
    size_t req_start;
    struct bn_piece *pieces;
    unsigned npieces, cap_pieces, next_piece;
    /* input */
    uint8_t *in;
    size_t in_pos, in_len, in_cap;
    uint64_t bytes_in, bytes_out;
};

/* Connects (blocking, 5 s). 0 or a negative HF_E_*. */
int bn_conn_open(struct event_base *base, const char *host, const char *port, unsigned nslots,
                 uint32_t uid, uint32_t gid, struct bn_conn *ret);
void bn_conn_close(struct bn_conn *c);
/* Starts a request on a free slot; arguments follow through bn_put_*, then bn_req_end. */
void bn_req_begin(struct bn_conn *c, struct bn_slot *slot, enum bn_prog prog, uint32_t proc);
/* ext: bytes that follow the arguments (their length word is already put), not copied, a multiple
 * of 4 long, unchanged until the reply; NULL for none. */
void bn_req_end(struct bn_conn *c, const uint8_t *ext, size_t ext_len);
/* Sends what is queued; called by the connection itself at the end of its turns. */
void bn_conn_flush(struct bn_conn *c);

/* ---- encoding: room for a whole request without data is reserved by bn_req_begin ---- */

static inline void bn_put_u32(struct bn_conn *c, uint32_t v)
{
    uint8_t *p = c->out + c->out_len;

    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
    c->out_len += 4;
}

static inline void bn_put_u64(struct bn_conn *c, uint64_t v)
{
    bn_put_u32(c, (uint32_t)(v >> 32));
    bn_put_u32(c, (uint32_t)v);
}

static inline void bn_put_opaque(struct bn_conn *c, const void *data, uint32_t len)
{
    static const uint8_t zero[4];

    bn_put_u32(c, len);
    memcpy(c->out + c->out_len, data, len);
    c->out_len += len;
    memcpy(c->out + c->out_len, zero, (4 - len % 4) % 4);
    c->out_len += (4 - len % 4) % 4;
}

static inline void bn_put_fh(struct bn_conn *c, const struct bn_fh *fh)
{
    bn_put_opaque(c, fh->data, fh->len);
}

static inline void bn_put_name(struct bn_conn *c, const char *name)
{
    bn_put_opaque(c, name, (uint32_t)strlen(name));
}

/* sattr3 with a mode only, if set_mode, and nothing else (24 bytes of discriminants). */
static inline void bn_put_sattr(struct bn_conn *c, bool set_mode, uint32_t mode, uint32_t mtime_how)
{
    bn_put_u32(c, set_mode);
    if (set_mode) {
        bn_put_u32(c, mode);
    }
    bn_put_u32(c, 0);
    bn_put_u32(c, 0);
    bn_put_u32(c, 0);
    bn_put_u32(c, 0);
    bn_put_u32(c, mtime_how);
}

/* ---- decoding: false when the bytes run out ---- */

static inline bool bn_get_u32(struct bn_reply *r, uint32_t *ret)
{
    if (r->len < 4) {
        return false;
    }
    *ret = (uint32_t)r->body[0] << 24 | (uint32_t)r->body[1] << 16 | (uint32_t)r->body[2] << 8 |
           r->body[3];
    r->body += 4;
    r->len -= 4;
    return true;
}

static inline bool bn_skip(struct bn_reply *r, size_t n)
{
    if (r->len < n) {
        return false;
    }
    r->body += n;
    r->len -= n;
    return true;
}

bool bn_get_fh(struct bn_reply *r, struct bn_fh *ret);
/* post_op_attr: skipped. */
bool bn_skip_attr(struct bn_reply *r);
/* post_op_fh3: false when it is absent. */
bool bn_get_opt_fh(struct bn_reply *r, struct bn_fh *ret);

/* ---- synchronous calls of the set-up phase: status of NFS (>= 0) or a negative HF_E_* ---- */

int bn_sync_mount(struct event_base *base, const struct bn_opts *o, struct bn_fh *ret);
int bn_sync_lookup(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret);
int bn_sync_mkdir(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret);
int bn_sync_create(struct bn_conn *c, const struct bn_fh *dir, const char *name, struct bn_fh *ret);
int bn_sync_symlink(struct bn_conn *c, const struct bn_fh *dir, const char *name,
                    const char *target, struct bn_fh *ret);
int bn_sync_remove(struct bn_conn *c, const struct bn_fh *dir, const char *name, bool is_dir);
/* Writes [off, off + len) from data, UNSTABLE. */
int bn_sync_write(struct bn_conn *c, const struct bn_fh *fh, uint64_t off, const uint8_t *data,
                  uint32_t len);
int bn_sync_commit(struct bn_conn *c, const struct bn_fh *fh);
int bn_sync_fsinfo(struct bn_conn *c, const struct bn_fh *fh, uint32_t *ret_rtmax,
                   uint32_t *ret_wtmax);

/* ---- the files ---- */

struct bn_file {
    struct bn_fh fh;
    uint32_t size;
    uint32_t dir;
    char name[16];
};

struct bn_dir {
    struct bn_fh fh;
    char name[16];
};

struct bn_tree {
    struct bn_fh export_root;
    struct bn_fh top;
    char top_name[64];
    bool top_made;
    struct bn_dir *dirs;
    unsigned ndirs;
    struct bn_file *files;
    unsigned nfiles;
    struct bn_file *links;
    unsigned nlinks;
};

struct bn_tree_spec {
    unsigned dirs;
    unsigned files_per_dir;
    unsigned links_per_dir;
    uint32_t min_bytes; /* sizes are log-uniform between the two, multiples of 4 */
    uint32_t max_bytes;
};

struct bn_run;
int bn_tree_make(struct bn_run *run, const struct bn_tree_spec *spec);
/* Removes what bn_tree_make made; counts what could not be removed. */
unsigned bn_tree_remove(struct bn_run *run);

/* ---- streams ---- */

struct bn_stream {
    struct bn_run *run;
    struct bn_conn *conn;
    struct bn_slot *slot;
    unsigned id; /* over all connections */
    unsigned conn_id;
    uint64_t rng;
    uint64_t t0_ns; /* start of the operation being measured */
    uint64_t made;  /* files created / operations begun, by mix */
    uint64_t removed;
    uint32_t want; /* bytes a READ or WRITE should answer */
    uint8_t proc;  /* in flight */
    uint8_t step;
    bool stopped;
    struct bn_fh cur;
};

/* next: puts one request for the stream (begin .. end), or returns false: the stream has finished.
 * done: looks at the reply; returns true when an operation is complete (it is then counted). */
struct bn_mix {
    const char *name;
    const char *help;
    struct bn_tree_spec spec;
    unsigned dirs_per_conn; /* directories for files the streams create */
    bool big_files;         /* one large file per connection */
    bool (*next)(struct bn_stream *s);
    bool (*done)(struct bn_stream *s, struct bn_reply *r, bool *ret_error);
};

const struct bn_mix *bn_mix_get(enum bn_mix_id id);
int bn_mix_find(const char *name, enum bn_mix_id *ret);
/* Removes what the streams have created; a mix of its own. */
extern const struct bn_mix bn_mix_cleanup;

struct bn_op_stat {
    struct bn_hist hist;
    uint64_t errors;
};

struct bn_result {
    double seconds;
    double cpu_seconds; /* of this process during the run */
    uint64_t ops;
    uint64_t errors;
    uint64_t bytes_read, bytes_written;
    uint64_t lost; /* calls without an answer */
    unsigned left_behind;
    struct bn_hist all;
    struct bn_op_stat op[BN_PROCS];
    uint32_t first_error; /* status of the first error, for the report */
    uint8_t first_error_proc;
};

struct bn_run {
    struct bn_opts o;
    const struct bn_mix *mix;
    struct event_base *base;
    struct bn_conn *conns;
    struct bn_stream *streams;
    unsigned nstreams;
    unsigned active;
    uint64_t start_ns, end_ns;
    bool stopping;
    bool measuring; /* replies count; not while files are removed */
    bool conn_lost;
    uint32_t rtmax, wtmax;
    uint8_t *payload; /* 1 MiB of pseudo-random bytes */
    struct bn_tree tree;
    struct bn_result res;
};

#define BN_PAYLOAD (1u << 20)

uint64_t bn_now_ns(void);
uint64_t bn_rand(uint64_t *state); /* splitmix64 */

/* The whole run: connect, prepare, measure, clean up. 0; HF_E_CONNREFUSED and the like when the
 * server cannot be reached or not be prepared (a message is in `err`). */
int bn_run(const struct bn_opts *o, struct bn_result *ret, char *err, size_t err_cap);

/* ---- libholdfast (bench_native.c) ---- */

/* The whole of `holdfast bench native`; argv[1] is "native". Returns an exit code. */
int bn_native(const struct cli *cli, int argc, char **argv);

#endif

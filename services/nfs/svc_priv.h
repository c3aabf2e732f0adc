/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway's objects. All of it belongs to the loop thread, except where noted.
 *
 *   struct hf_nfssvc   one gateway: loop, client, vfs, listeners, connections, duplicate-request
 * cache struct nfs_conn    one TCP connection; dies in the flush at the end of a turn or in the
 * sweep, never under a caller struct nfs_req     one call, from its complete record to its reply;
 * outlives its connection (then conn is NULL and the reply only goes to the duplicate-request
 * cache)
 */
#ifndef HF_NFS_SVC_PRIV_H
#define HF_NFS_SVC_PRIV_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <pthread.h>

#include "drc.h"
#include "holdfast/client.h"
#include "holdfast/err.h"
#include "holdfast/metrics.h"
#include "holdfast/svc_nfs.h"
#include "holdfast/vfs.h"
#include "mem.h"
#include "mount3.h"
#include "mounts.h"
#include "nfs3.h"
#include "oncrpc.h"
#include "record.h"

#define NFS_PROGRAM   100003u
#define MOUNT_PROGRAM 100005u
#define NFS_V3        3u
#define MOUNT_V3      3u
#define NFS3_PROCS    22u
#define MOUNT3_PROCS  6u

#define NFS_IO_MAX       (1u << 20)   /* rtmax, wtmax */
#define NFS_DIR_MAX      (256u << 10) /* largest directory reply */
#define NFS_DIR_PREF     (64u << 10)
#define NFS_DIR_ENTRIES  4096u
#define NFS_MOUNT_MAX    (256u << 10) /* largest DUMP or EXPORT reply */
#define NFS_ENCODE_BYTES (NFS_DIR_MAX + (64u << 10))
#define NFS_SCRATCH      (64u << 10)
#define NFS_REPLY_FLOOR  (256u << 10) /* unsent replies per connection, when all have too many */
#define NFS_LISTENERS    16u
#define NFS_REQ_SPARE    512u
#define NFS_REQ_INLINE   448u

struct nfs_metrics {
#define X(name, kind, help) uint64_t name;
#include "metrics.def"
#undef X
    uint64_t nfs_calls[NFS3_PROCS], nfs_errors[NFS3_PROCS];
    uint64_t mount_calls[MOUNT3_PROCS], mount_errors[MOUNT3_PROCS];
};

struct nfs_listener {
    struct hf_nfssvc *svc;
    int fd;
    struct event *ev;
    char name[80]; /* "127.0.0.1:20490" */
    int port;
};

struct hf_nfssvc {
    struct hf_nfssvc_opts o; /* with the defaults filled in; strings are not kept */
    struct hf_logger *log;
    struct hf_loop *loop;
    struct hf_client *client;
    struct hf_vfs *vfs;
    bool ready; /* atomic: read by other threads */

    struct nfs_listener listeners[NFS_LISTENERS];
    unsigned nlisteners;
    bool accepting;
    bool registered[2]; /* with rpcbind: NFS, MOUNT */

    struct hf_list conns;
    struct hf_list dirty;  /* have output, or are to be looked at, at the end of the turn */
    struct hf_list paused; /* not read because of a limit */
    unsigned nconns;
    struct hf_task flush;
    struct hf_timer sweep, ready_poll, stop_timer;

    struct nfs_mem mem;
    struct hf_list spare_reqs;
    unsigned nspare_reqs;
    unsigned inflight;
    uint64_t out_bytes; /* unsent replies of all connections, as of the last flush */
    struct nfs_drc *drc;
    struct nfs_mounts mounts;
    uint8_t *scratch; /* what a read brought, until it is parsed */
    uint8_t *encode;  /* a reply being written */
    XDR xdr;

    bool stopping; /* no new calls */
    bool closing;  /* replies are dropped: the client library is going away */
    struct hf_task init_task, stop_task, end_task;
    struct hf_log_rate accept_rate, status_rate, garbage_rate;

    uint64_t stop_at_ns;

    /* guards init_done, init_rc, ended: whoever makes or frees waits for the loop thread to get
     * there */
    pthread_mutex_t life_lock;
    pthread_cond_t life_cond;
    bool init_done, ended;
    int init_rc;

    struct nfs_metrics m; /* relaxed atomics */
};

struct nfs_conn {
    struct hf_list link, dirty_link, paused_link;
    struct hf_nfssvc *svc;
    int fd;
    struct event *rd, *wr;
    struct sockaddr_storage peer; /* IPv4 as such, also when it came over an IPv6 socket */
    struct nfs_record record;
    uint8_t *stash; /* read but not yet parsed: the connection was paused */
    size_t stash_len;
    struct evbuffer *out;
    size_t out_counted; /* of it in svc->out_bytes */
    size_t expected;    /* data that the calls in progress will bring */
    struct hf_list reqs;
    unsigned inflight;
    bool dirty, paused, reading, writing;
    bool draining; /* nothing more is read; closed when the last reply has left */
    bool broken;   /* to be closed at once, at the end of the turn */
    uint64_t last_call_ns, record_since_ns, out_progress_ns;
};

union nfs_args {
/* A type's name cannot be in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define X(num, NAME, name, remembered, failure, errors) NAME##3args name;
#include "procs.def"
#undef X
    MNT3args mnt;
};

union nfs_res {
#define X(num, NAME, name, remembered, failure, errors) NAME##3res name;
#include "procs.def"
#undef X
};
/* NOLINTEND(bugprone-macro-parentheses) */

struct nfs_req;

/* What a failed reply carries of the objects that the call named. */
enum nfs_failure {
    NFS_FAIL_NONE,
    NFS_FAIL_ATTR,   /* attributes of r->obj */
    NFS_FAIL_WCC,    /* wcc_data of r->obj */
    NFS_FAIL_RENAME, /* wcc_data of r->obj and r->obj2 */
    NFS_FAIL_LINK,   /* attributes of r->obj, wcc_data of r->obj2 */
};

struct nfs_proc {
    const char *name;
    bool (*decode)(XDR *x, union nfs_args *a);
    bool (*encode)(XDR *x, union nfs_res *res); /* NFS procedures but NULL */
    void (*run)(struct nfs_req *r);
    bool remembered;
    enum nfs_failure failure;
    uint64_t errors; /* allowed HF_E_*, as bits */
};

struct nfs_req {
    struct hf_list link;        /* in conn->reqs, or among the spare ones */
    struct hf_list waiter_link; /* in a running drc entry's waiters */
    struct hf_nfssvc *svc;
    struct nfs_conn *conn;
    uint32_t xid, prog, proc_no;
    const struct nfs_proc *proc;
    struct nfs_drc_entry *drc; /* ours: to be done or forgotten */
    size_t expect;             /* this call's share of conn->expected */
    bool auth_none;
    bool transient; /* the reply is not to be remembered: the client will repeat the call */
    struct hf_vfs_cred cred;
    struct hf_vfs_obj obj, obj2;
    union nfs_args a;
    union {
        Hf__SetAttrs set;     /* SETATTR, CREATE and its kin */
        struct hf_slice data; /* WRITE */
        struct {
            uint32_t limit, dir_limit;
        } dir; /* READDIR* */
        struct {
            int rc;
            post_op_attr attr[2]; /* of obj, obj2 */
        } fail;                   /* while attributes for a failed reply are fetched */
    } s;
    struct hf_vfs_req v;
    uint8_t *rec; /* the record: inl or mem */
    size_t rec_len, rec_cap;
    _Alignas(16) uint8_t inl[NFS_REQ_INLINE];
};

/* ---- listen.c (any thread before the loop runs; then the loop's) ---- */

int nfs_listen_open(struct hf_nfssvc *s, const char *spec, char *err, size_t err_bytes);
int nfs_listen_start(struct hf_nfssvc *s);   /* begins accepting */
void nfs_listen_resume(struct hf_nfssvc *s); /* after a pause for a limit, if there is room again */
void nfs_listen_close(struct hf_nfssvc *s);

/* ---- conn.c ---- */

int nfs_conn_new(struct hf_nfssvc *s, int fd, const struct sockaddr *peer);
void nfs_conn_free(struct nfs_conn *c);
/* Looked at when the turn ends: output sent, closed if draining. */
void nfs_conn_touch(struct nfs_conn *c);
/* Adds to the output; a failure marks the connection broken. */
void nfs_conn_send(struct nfs_conn *c, const void *data, size_t len);
/* No more calls are read; closes once all replies are sent. */
void nfs_conn_drain(struct nfs_conn *c);
void nfs_conn_flush_task(struct hf_task *t);
void nfs_conn_sweep(struct hf_nfssvc *s);

/* ---- call.c ---- */

/* One complete record; takes over out->buf. false: the connection makes no sense, close it. */
bool nfs_call(struct nfs_conn *c, struct nfs_record_out *out);
/* The stream for a reply's results; then nfs_reply_end. Only one reply can be written at a time. */
XDR *nfs_reply_begin(struct nfs_req *r);
/* ok: everything was encoded (else SYSTEM_ERR is sent). error: counted, not remembered if JUKEBOX.
 * Sends, answers waiting duplicates, frees the request. */
void nfs_reply_end(struct nfs_req *r, bool ok);
/* The same for a reply whose results go on with `body` bytes that the caller adds to conn->out
 * right after (r is still valid then, and to be freed with nfs_req_free). false: do not, it is all
 * over. */
bool nfs_reply_head(struct nfs_req *r, bool ok, size_t body);
void nfs_req_free(struct nfs_req *r);
/* Tells that the reply will have this many bytes of data: they count as the request's memory and
 * against the connection's limit of unsent replies from now on. At most once per request. */
void nfs_expect(struct nfs_req *r, size_t bytes);

/* ---- procs.c ---- */

extern const struct nfs_proc nfs3_procs[NFS3_PROCS];
extern const struct nfs_proc mount3_procs[MOUNT3_PROCS];
#define X(num, NAME, name, remembered, failure, errors) void nfs3_##name(struct nfs_req *r);
#include "procs.def"
#undef X
void nfs3_null(struct nfs_req *r);
void mount3_mnt(struct nfs_req *r);
void mount3_dump(struct nfs_req *r);
void mount3_umnt(struct nfs_req *r);
void mount3_umntall(struct nfs_req *r);
void mount3_export(struct nfs_req *r);

/* ---- reply.c: what the procedures share ---- */

/* Decodes a handle. false: the call has been answered. */
bool nfs3_handle(struct nfs_req *r, const nfs_fh3 *fh, struct hf_vfs_obj *ret);
/* r->v, ready for a vfs call. */
struct hf_vfs_req *nfs3_vfs(struct nfs_req *r, void (*done)(struct hf_vfs_req *v));
/* Encodes the procedure's result and ends the request. */
void nfs3_reply(struct nfs_req *r, union nfs_res *res);
/* A failure of which nothing else is known. rc: HF_E_*. */
void nfs3_fail(struct nfs_req *r, int rc);
/* A failure after the handles were accepted: the attributes that its reply carries are fetched
 * first. */
void nfs3_fail_attr(struct nfs_req *r, int rc);
/* For failures that came without attributes (known == NULL) although the object may well exist,
 * such as those of a read-only export. true: nfs3_fail_attr has taken over. */
bool nfs3_blind_failure(struct nfs_req *r, int rc, const Hf__Attr *known);
/* A call that violates the protocol in what XDR does not check. */
void nfs3_garbage(struct nfs_req *r);
/* What the client gets for rc in this procedure. */
nfsstat3 nfs3_status(struct nfs_req *r, int rc);

/* ---- attr.c ---- */

nfstime3 nfs3_time(int64_t ns);
void nfs3_fattr(const struct hf_nfssvc *s, const Hf__Attr *a, fattr3 *ret);
void nfs3_post_attr(const struct hf_nfssvc *s, const Hf__Attr *a,
                    post_op_attr *ret);                                    /* a may be NULL */
void nfs3_wcc(const struct hf_nfssvc *s, const Hf__Wcc *w, wcc_data *ret); /* w may be NULL */
/* INVAL: a time's nanoseconds are out of range. */
int nfs3_sattr(const sattr3 *a, Hf__SetAttrs *ret);
/* buf: HF_VFS_FH_MAX bytes, must outlive the encoding. */
void nfs3_post_fh(struct nfs_req *r, const Hf__Attr *a, uint8_t *buf, post_op_fh3 *ret);

/* ---- status.c ---- */

nfsstat3 nfs_status_nfs3(int rc);
mountstat3 nfs_status_mount3(int rc);
/* true if a procedure with this mask of allowed errors may return what rc maps to. */
bool nfs_status_allowed(uint64_t mask, int rc);

/* ---- rpcbind.c ---- */

void nfs_rpcbind_set(struct hf_nfssvc *s);
void nfs_rpcbind_unset(struct hf_nfssvc *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside libholdfast: who is who.
 *
 *   hf_fs     options, the engines, figures (fs.c)
 *   engine    a thread: a loop and a client of its own (engine.c). Every object belongs to the
 * engine of its number, every name to that of its directory; what belongs to an engine is touched
 * on its thread only req       a call of the program (engine.c): made on the calling thread, run on
 * its engine, ends with its callback inode     an object that is open here, or has bytes that are
 * not yet on stable storage (inode.c, open.c) hf_file   an open file of the program wset buffered
 * bytes of an inode (wset.c), written back by writeback.c ra        bytes read ahead (readahead.c)
 *   sizes     what buffered writes change of attributes; the one table that all engines share
 *             (sizes.c)
 */
#ifndef HF_FS_PRIV_H
#define HF_FS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/client.h"
#include "holdfast/err.h"
#include "holdfast/holdfast.h"
#include "holdfast/holdfast_loop.h"
#include "holdfast/map.h"
#include "wset.h"

#define ENGINES_MAX   16u
#define GROUPS_MAX    1024u
#define IOV_MAX_CALL  16u
#define REQS_KEPT     512u /* free requests an engine keeps */
#define DEPTH_MAX     8u /* calls made inside callbacks that run at once; deeper ones are posted */
#define CLOSES_MAX    256u /* objects in one Close */
#define CLOSE_NS      (50 * HF_NS_PER_MS)
#define READ_INLINE   12u /* pieces of a read without memory of their own */
#define READ_AHEAD_NS HF_NS_PER_SEC

struct engine;
struct inode;
struct req;

/* ---- buffered writes as others see them: sizes.c ---- */

struct sizes_entry {
    uint64_t size;    /* the end of the buffered bytes */
    int64_t mtime_ns; /* of the last buffered write */
    uint64_t count;   /* of buffered writes */
    bool written;     /* nothing is left to send: only the size is ours to tell */
    uint64_t change;  /* written: of the last change by us */
};
struct sizes {
    atomic_size_t n;
    pthread_mutex_t lock; /* guards the map and the entries in it */
    struct hf_map map;    /* ino -> sizes_entry */
};
void sizes_init(struct sizes *s);
void sizes_fini(struct sizes *s);
/* The entry belongs to the caller and stays valid until sizes_del. NOMEM. */
int sizes_put(struct sizes *s, uint64_t ino, struct sizes_entry *e, const struct sizes_entry *now);
void sizes_del(struct sizes *s, uint64_t ino);
/* Any thread: lays what is buffered over what the server said. */
void sizes_apply(struct sizes *s, struct hf_attr *a);

/* ---- the file system ---- */

struct hf_fs {
    struct hf_env *env;
    bool own_env;
    struct hf_fs_opts opts; /* defaults filled in; strings are not kept */
    unsigned nengines;
    struct engine *engines[ENGINES_MAX];
    struct hf_handle root;
    atomic_bool closing;
    atomic_uint_fast64_t in_flight;
    struct sizes sizes;
    uint8_t *zeros; /* HF_CLIENT_IO_MAX of them, for holes */
    /* figures */
    atomic_uint_fast64_t calls, open_files, write_errors, read_bytes, write_bytes, cache_hits;

    pthread_mutex_t lock; /* guards what follows: hf_fs_open and hf_fs_close wait for engines */
    pthread_cond_t changed;
    unsigned mapped, drained; /* engines that have the map; that have written everything */
    int close_err;
};

struct engine {
    struct hf_fs *fs;
    struct hf_loop *loop;
    struct hf_client *client;
    unsigned index;
    unsigned depth; /* requests running inside each other */
    bool has_map, draining, drained;
    struct hf_task drain_task;
    struct hf_list free_reqs; /* req.link */
    unsigned nfree;
    struct hf_map inodes; /* ino -> inode */

    /* open.c */
    struct hf_list closes; /* inode.close_link: not sent yet */
    unsigned ncloses;
    struct hf_timer close_timer;

    /* writeback.c */
    uint64_t mem_max, file_max; /* bytes */
    atomic_uint_fast64_t mem;   /* of all buffers here; written by the engine only */
    uint64_t unstable;          /* of that: written, not committed */
    struct hf_list dirty;       /* inode.dirty_link, in the order of their first buffered byte */
    struct hf_list uncommitted; /* inode.unstable_link, the same */
    struct hf_list starved;     /* inode.starved_link: writers of it wait for room */
    unsigned commits;           /* in flight */
    struct hf_timer write_timer;

    /* readahead.c */
    uint64_t ra_max;
    atomic_uint_fast64_t ra_bytes; /* written by the engine only */
    struct hf_list ra_lru;         /* ra.lru: what came, longest unused first */
};

static inline bool engine_here(const struct engine *e)
{
    return hf_loop_in_thread(e->loop);
}
static inline struct engine *engine_of(const struct hf_fs *fs, uint64_t ino)
{
    return fs->engines[fs->nengines == 1 ? 0 : hf_hash_u64(ino) % fs->nengines];
}
int engine_new(struct hf_fs *fs, unsigned index, struct engine **ret);
void engine_free(struct engine *e); /* after its loop has ended */
/* Engine thread, any number of times: tells hf_fs_close when nothing is left to write. */
void engine_check_drained(struct engine *e);

/* ---- requests ---- */

enum kind { K_DONE, K_ATTR, K_OPEN, K_DATA, K_SIZE, K_READDIR, K_STATFS };

/* What a call was given. Pointers are the caller's; in a req they point to its own copies (but
 * `value` and what iov points to: those stay until the callback). */
struct args {
    struct engine *e;
    void (*run)(struct req *r);
    enum kind kind;
    bool always; /* the limit of calls does not hold: it gives something back */
    union {
        hf_done_fn *done;
        hf_attr_fn *attr;
        hf_open_fn *open;
        hf_data_fn *data;
        hf_size_fn *size;
        hf_readdir_fn *readdir;
        hf_statfs_fn *statfs;
    } fn;
    void *arg;
    const struct hf_user *u;
    struct hf_handle h, h2;
    const char *name, *name2;
    struct hf_file *f;
    uint64_t off, len;
    const void *value;
    const struct iovec *iov;
    unsigned niov;
    int flags;
    mode_t mode, umask;
    uint32_t major, minor;
    struct hf_setattr set;
};

struct read_state {
    uint64_t pos, end;
    uint64_t epoch; /* hf_client_epoch when the present piece was asked for */
    uint64_t local; /* the end of buffered bytes when the present piece was asked for */
    uint64_t until; /* the end of that piece */
    size_t got;
    unsigned n, cap;
    struct iovec *iov;        /* n of cap */
    struct hf_rpc_msg **msgs; /* who owns iov[i]; NULL: zeros or `copies` */
    struct iovec in_iov[READ_INLINE];
    struct hf_rpc_msg *in_msgs[READ_INLINE];
    struct read_copy *copies;
};

struct req {
    struct args a;
    struct hf_list link;         /* in whatever it waits for */
    struct hf_list order;        /* inode.appends */
    void *bytes;                 /* an append's, gathered */
    void (*step)(struct req *r); /* goes on after waiting */
    void (*then)(struct req *r); /* after a flush */
    struct inode *inode;
    uint64_t seq, need; /* flush and fsync: what must have been written; the commit that must have
                         * ended */
    uint64_t deadline_ns;
    int err;
    bool flag;
    Hf__Cred cred;
    Hf__SetAttrs set;
    union {
        struct hf_client_call call;
        struct hf_client_io io;
        struct hf_client_range range;
        struct hf_timer timer;
    } c;
    union {
        Hf__CreateReq create;
        Hf__SetattrReq setattr;
        Hf__OpenReq open;
        struct read_state read;
    } s;
    struct hf_task task;
    void *more; /* memory of copies that do not fit in */
    uint64_t extra[40];
};

/* Makes a request of what the call was given and runs it, or posts it to its engine. A call that
 * cannot be made (EAGAIN, ENOMEM, ESHUTDOWN, ENAMETOOLONG, EINVAL) ends at once. */
void submit(struct hf_fs *fs, const struct args *a);
/* A call on an open file. */
void submit_file(struct hf_file *f, struct args *a);
static inline struct req *req_of_call(void *call)
{
    return hf_container_of(call, struct req, c.call);
}
static inline ProtobufCService *meta_of(struct req *r)
{
    return hf_client_meta(r->a.e->client);
}
/* Prepares r->c.call for a call that routes to `ino`. */
static inline void req_call(struct req *r, uint64_t ino, bool change)
{
    r->c.call.ino = ino;
    r->c.call.change = change;
    r->c.call.bulk_n = 0;
    r->c.call.deadline_ns = 0;
    r->c.call.req_stays = false;
}
ProtobufCBinaryData req_name(const char *name);
void req_iov_slices(const struct req *r, struct hf_slice *s, unsigned n);

/* Ends: the callback, then the request is gone. err: 0 or HF_E_*. */
void req_fail(struct req *r, int err);
void req_done(struct req *r, int err);
void req_forget(struct req *r); /* without a callback */
void req_attr(struct req *r, int err, const Hf__Attr *attr);
void req_open(struct req *r, int err, struct hf_file *f, const struct hf_attr *attr);
void req_data(struct req *r, int err, const struct iovec *iov, unsigned n, size_t bytes);
void req_size(struct req *r, int err, int64_t n);
void req_readdir(struct req *r, const struct hf_dirent *e, size_t n, bool eof);
void req_statfs(struct req *r, const struct hf_statfs *st);

mode_t type_mode(uint32_t type); /* S_IF* of enum Hf__FileType */
void attr_fill(struct hf_fs *fs, const Hf__Attr *m, struct hf_attr *a);

/* ---- objects ---- */

/* Buffered bytes: not sent yet; on their way; at the servers, but not known to be on stable
 * storage. The second and the third may be needed again: they are kept until a commit says that
 * they are safe. */
struct wbuf {
    struct wset dirty, sending, unstable;
};

enum hold { /* the server's record that we have the object open */
            HOLD_NONE,
            HOLD_OPEN,
            HOLD_CLOSING, /* in engine.closes */
            HOLD_CLOSED,  /* Close is on its way: an Open waits until it is answered */
};

struct inode {
    struct engine *e;
    uint64_t ino;
    uint32_t gen;
    unsigned refs; /* requests and internal work that use it; it goes with the last one unless
                    * something below keeps it */
    /* open.c */
    enum hold hold;
    unsigned opens; /* open files, and opens and creates under way */
    bool stale;     /* the object is gone */
    bool reopening; /* after opens were lost */
    struct hf_list close_link;
    struct hf_list open_waiters; /* req.link */
    struct hf_list files;        /* hf_file.link */
    /* errors of buffered writes */
    int err;
    uint64_t err_seq;
    /* what the server said last */
    uint64_t change, size;
    uint64_t seen_ns;
    /* writeback.c */
    struct wbuf *wb;                    /* NULL: nothing buffered */
    uint64_t charged, charged_unstable; /* of it, in the engine's figures */
    struct hf_list dirty_link, unstable_link, starved_link;
    uint64_t dirty_ns, unstable_ns;
    uint64_t wseq;      /* of the last buffered write */
    uint64_t flush_seq; /* all writes up to it are to leave */
    unsigned sending;   /* writes in flight */
    unsigned barriers;  /* no write may leave: a truncation is under way */
    uint64_t commits_started, commits_done;
    int commit_status; /* of the last */
    bool committing;
    uint64_t verifier;       /* of the last unstable write */
    uint64_t unstable_epoch; /* hf_client_epoch when the first of wb->unstable was written */
    uint64_t own_change;     /* the file's change counter after the last of our writes */
    bool hidden; /* others have changed the file since: uncommitted bytes are not read from here */
    struct hf_client_io commit;
    Hf__Cred wcred, rcred;  /* who writes and reads, without groups */
    struct hf_list waiters; /* req.link: run again when writes or a commit have ended */
    struct hf_list writers; /* req.link: wait for room */
    struct hf_list appends; /* req.order: the first is under way */
    struct sizes_entry sizes;
    bool sizes_in;
    /* readahead.c */
    struct hf_list ras; /* ra.link, by offset */
};

/* NULL: not known here. */
struct inode *inode_find(struct engine *e, uint64_t ino);
/* Finds or makes it, with a reference; NULL: no memory. */
struct inode *inode_get(struct engine *e, struct hf_handle h);
void inode_put(struct inode *i);
void inode_seen(struct inode *i, const Hf__Attr *a);
/* The same after a change of our own. */
void inode_changed(struct inode *i, const Hf__Attr *after);
/* A buffered write has failed. err: HF_E_*. */
void inode_error(struct inode *i, int err);
/* Runs all that wait for a change of the buffers. */
void inode_wake(struct inode *i);
void inode_free_all(struct engine *e);

struct hf_file {
    struct hf_fs *fs;
    struct inode *inode;
    struct hf_handle h;
    struct hf_list link; /* inode.files */
    int flags;
    uint64_t err_seen;
    Hf__Cred cred; /* without groups: permission was checked at the open */
    /* readahead.c */
    uint64_t ra_next, ra_end, ra_window;
};

static inline bool file_reads(const struct hf_file *f)
{
    return (f->flags & O_ACCMODE) != O_WRONLY;
}
static inline bool file_writes(const struct hf_file *f)
{
    return (f->flags & O_ACCMODE) != O_RDONLY;
}
/* An error of a buffered write that this file has not told yet, else 0. */
int file_error(struct hf_file *f);

/* For a call on an open file: its inode with a reference in r->inode. */
struct inode *file_inode(struct req *r);

/* open.c */
void open_init(struct engine *e);
void opens_lost(struct engine *e, uint32_t shard);
void hold_release(struct inode *i); /* an open less */
void file_free(struct hf_file *f);

/* writeback.c */
void wb_init(struct engine *e);
/* Buffers bytes; returns how many, or NOMEM. */
int64_t wb_write(struct inode *i, uint64_t off, const struct iovec *iov, unsigned niov,
                 uint64_t len, bool sync);
bool wb_room(const struct inode *i, uint64_t len);
/* Makes room: the oldest leave. */
void wb_press(struct engine *e);
/* Lets everything leave that was written up to now. */
void wb_flush(struct inode *i);
void wb_pump(struct inode *i);
bool wb_clean(const struct inode *i, uint64_t seq); /* all writes up to seq have left */
/* No write leaves until the barrier is taken away. */
void wb_barrier(struct inode *i);
void wb_barrier_end(struct inode *i);
/* Bytes there are superseded by what a server did after they were written. Those of `dirty` as well
 * if they are older than that. */
void wb_cut(struct inode *i, uint64_t from, uint64_t to, bool dirty);
/* The file is being opened: whether uncommitted bytes are still what it has. */
void wb_opened(struct inode *i, const Hf__Attr *a);
void wb_drain(struct engine *e);
/* After anything changed in the buffers. */
void wb_changed(struct inode *i);
/* commit.c */
bool wb_uncommitted(const struct inode *i);
void wb_commit(struct inode *i);
/* fsync of what fits in one write: it leaves as a stable one. */
void wb_prefer_sync(struct inode *i);
/* write.c */
void write_admit(struct engine *e);
/* Waits until what was written before has left, then calls `then`. */
void flush_then(struct req *r, void (*then)(struct req *r));

/* read.c */
bool read_add(struct req *r, const void *data, size_t len, struct hf_rpc_msg *msg);
void read_step(struct req *r);

/* readahead.c */
enum ra_has {
    RA_NOTHING, /* *stop has been lowered to where something begins */
    RA_TAKEN,   /* bytes were added to the read */
    RA_WAIT,    /* they are on their way; the request is queued there */
    RA_NOMEM,
};
enum ra_has ra_take(struct req *r, uint64_t *stop);
/* A read of the file begins: notes whether it goes on where the last one ended, and fetches. */
void ra_advance(struct hf_file *f, uint64_t off, uint64_t len);
void ra_cut(struct inode *i, uint64_t from, uint64_t to);
void ra_drop(struct inode *i);

static inline uint32_t shard_of(uint64_t ino)
{
    return (uint32_t)(ino >> 47) & 0xffffu;
}

#endif

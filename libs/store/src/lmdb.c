/* SPDX-License-Identifier: Apache-2.0
 *
 * The LMDB provider: one environment per store, each table a named database, and a database "sys"
 * that holds one record: our format, the caller's, and the log position of the checkpoint. It is
 * written in the same transaction as everything else, so the position always fits the data.
 *
 * Durability is LMDB's default: pages, fdatasync, then the meta page synchronously; two meta pages
 * take turns. MDB_NOSYNC and MDB_NOMETASYNC give that order up: after a power loss the position
 * might be newer than pages it speaks for, and the log has been trimmed by then. MDB_WRITEMAP would
 * save a copy of each dirty page, but on a sparse map a full disk is a SIGBUS instead of an error,
 * and a stray pointer reaches the file. MDB_NORDAHEAD is not set: scans over a cold file (policies,
 * fsck, a new standby) would read one page per fault.
 *
 * The one long write transaction holds a robust mutex that belongs to a thread, so it is begun at
 * the first use after open or checkpoint; between these the owner may change. MDB_NOTLS lets
 * snapshots be opened in any thread, also in the owner's.
 *
 * LMDB's map is made larger than the limit that the caller set: address space costs nothing, and
 * big values need runs of free pages, which may miss in a fragmented file that is far from full.
 * The limit itself is kept by hf_store_may_grow with the reserve below it.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "lmdb_check.h"
#include "provider.h"

#define PATH_BYTES      4096
#define SYS_TABLE       "sys"
#define SYS_KEY         "holdfast-store"
#define SYS_FORMAT      1
#define SYS_BYTES       16 /* u32le our format, u32le the caller's, u64le applied */
#define MAP_SLACK_BYTES (1ull << 30)
#define MAP_DEFAULT     (64ull << 30)
#define READERS_MAX     126
#define FREE_DBI        0 /* LMDB's own list of free pages */

struct lmdb_store {
    MDB_env *env;
    MDB_txn *txn;    /* the open write transaction, NULL until the first use */
    pthread_t owner; /* who began txn */
    int lock_fd;
    unsigned ntables;
    uint32_t format;
    MDB_dbi dbi[HF_STORE_TABLES_MAX];
    MDB_dbi sys;
    struct hf_faults *faults;
    char dir[PATH_BYTES];
    /* The scan that stepped last in each table, and its cursor while the table stays unchanged. */
    MDB_cursor *cursor[HF_STORE_TABLES_MAX];
    uint64_t scan[HF_STORE_TABLES_MAX];
};

struct lmdb_snap {
    struct lmdb_store *l;
    MDB_txn *txn;
};

static int map_err(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return HF_E_NOENT;
    case MDB_MAP_FULL:
        return HF_E_NOSPC;
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return HF_E_VERSION;
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
        return HF_E_CORRUPT;
    case MDB_READERS_FULL:
        return HF_E_BUSY;
    default:
        return rc > 0 ? hf_err_from_errno(rc) : HF_E_INTERNAL;
    }
}

/* LMDB's API takes keys as void *, but does not write to them. */
static MDB_val to_val(struct hf_slice s)
{
    union {
        const void *in;
        void *out;
    } u = {s.data};

    return (MDB_val){s.len, u.out};
}

static struct hf_slice from_val(MDB_val v)
{
    return hf_slice(v.mv_data, v.mv_size);
}

/* ---- the write transaction ---- */

static int txn_need(struct lmdb_store *l)
{
    int rc;

    if (l->txn) {
        HF_ASSERT(pthread_equal(l->owner, pthread_self()));
        return 0;
    }
    rc = hf_fault(l->faults, HF_FAULT_STORE_BEGIN);
    if (rc)
        return rc;
    rc = mdb_txn_begin(l->env, NULL, 0, &l->txn);
    if (rc)
        l->txn = NULL;
    l->owner = pthread_self();
    return map_err(rc);
}

static int lmdb_get(void *p, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    struct lmdb_store *l = p;
    MDB_val k = to_val(key), v;
    int rc = txn_need(l);

    if (rc == 0)
        rc = hf_fault(l->faults, HF_FAULT_STORE_GET);
    if (rc == 0)
        rc = map_err(mdb_get(l->txn, l->dbi[table], &k, &v));
    if (rc == 0)
        *ret_val = from_val(v);
    return rc;
}

static int lmdb_put(void *p, unsigned table, struct hf_slice key, struct hf_slice val)
{
    struct lmdb_store *l = p;
    MDB_val k = to_val(key), v = to_val(val);
    int rc = txn_need(l);

    l->scan[table] = 0;
    if (rc == 0)
        rc = hf_fault(l->faults, HF_FAULT_STORE_PUT);
    return rc ? rc : map_err(mdb_put(l->txn, l->dbi[table], &k, &v, 0));
}

static int lmdb_del(void *p, unsigned table, struct hf_slice key)
{
    struct lmdb_store *l = p;
    MDB_val k = to_val(key);
    int rc = txn_need(l);

    l->scan[table] = 0;
    if (rc == 0)
        rc = hf_fault(l->faults, HF_FAULT_STORE_DEL);
    return rc ? rc : map_err(mdb_del(l->txn, l->dbi[table], &k, NULL));
}

/* Positions c at the first key >= from (after: > from). */
static int cursor_seek(MDB_cursor *c, struct hf_slice from, bool after, MDB_val *k, MDB_val *v)
{
    int rc;

    if (from.len == 0)
        return mdb_cursor_get(c, k, v, MDB_FIRST);
    *k = to_val(from);
    rc = mdb_cursor_get(c, k, v, MDB_SET_RANGE);
    if (rc == 0 && after && store_key_cmp(from_val(*k), from) == 0)
        rc = mdb_cursor_get(c, k, v, MDB_NEXT);
    return rc;
}

static int lmdb_seek(void *p, unsigned table, struct hf_slice from, bool after, uint64_t scan,
                     struct hf_slice *ret_key, struct hf_slice *ret_val)
{
    struct lmdb_store *l = p;
    MDB_val k = {0}, v = {0};
    int rc = txn_need(l);

    if (rc == 0)
        rc = hf_fault(l->faults, HF_FAULT_STORE_SCAN);
    if (rc)
        return rc;
    if (!l->cursor[table]) {
        rc = mdb_cursor_open(l->txn, l->dbi[table], &l->cursor[table]);
        if (rc) {
            l->cursor[table] = NULL;
            return map_err(rc);
        }
    }
    if (after && l->scan[table] == scan)
        rc = mdb_cursor_get(l->cursor[table], &k, &v, MDB_NEXT);
    else
        rc = cursor_seek(l->cursor[table], from, after, &k, &v);
    /* At the end the cursor stands elsewhere: the next step has to search. */
    l->scan[table] = rc ? 0 : scan;
    if (rc)
        return map_err(rc);
    *ret_key = from_val(k);
    *ret_val = from_val(v);
    return 0;
}

static int lmdb_count(void *p, unsigned table, uint64_t *ret)
{
    struct lmdb_store *l = p;
    MDB_stat st;
    int rc = txn_need(l);

    if (rc == 0)
        rc = map_err(mdb_stat(l->txn, l->dbi[table], &st));
    if (rc == 0)
        *ret = st.ms_entries;
    return rc;
}

static int sys_put(struct lmdb_store *l, MDB_txn *txn, uint64_t applied)
{
    uint8_t rec[SYS_BYTES];
    MDB_val k = to_val(hf_slice_str(SYS_KEY)), v = {sizeof(rec), rec};

    hf_put_le32(rec, SYS_FORMAT);
    hf_put_le32(rec + 4, l->format);
    hf_put_le64(rec + 8, applied);
    return mdb_put(txn, l->sys, &k, &v, 0);
}

/* A commit or abort closes the cursors of the transaction. */
static void cursors_forget(struct lmdb_store *l)
{
    for (unsigned t = 0; t < l->ntables; t++) {
        if (l->cursor[t])
            mdb_cursor_close(l->cursor[t]);
        l->cursor[t] = NULL;
        l->scan[t] = 0;
    }
}

static int lmdb_commit(void *p, uint64_t applied)
{
    struct lmdb_store *l = p;
    MDB_txn *txn;
    int rc = txn_need(l);

    if (rc)
        return rc;
    rc = hf_fault(l->faults, HF_FAULT_STORE_COMMIT);
    if (rc)
        return rc;
    rc = sys_put(l, l->txn, applied);
    if (rc)
        return map_err(rc);
    cursors_forget(l);
    txn = l->txn;
    l->txn = NULL; /* mdb_txn_commit frees it in any case */
    rc = mdb_txn_commit(txn);
    if (rc)
        return map_err(rc);
    return hf_fault(l->faults, HF_FAULT_STORE_COMMITTED);
}

/* ---- space ---- */

/* Each record of the list begins with the number of pages in it. */
static int count_free(MDB_txn *txn, uint64_t *ret)
{
    MDB_cursor *c;
    MDB_val k, v;
    uint64_t n = 0;
    int rc = mdb_cursor_open(txn, FREE_DBI, &c);

    if (rc)
        return rc;
    while ((rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) == 0) {
        size_t pages;

        if (v.mv_size < sizeof(pages))
            continue;
        memcpy(&pages, v.mv_data, sizeof(pages));
        n += pages;
    }
    mdb_cursor_close(c);
    *ret = n;
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int lmdb_fill(void *p, struct store_fill *ret)
{
    struct lmdb_store *l = p;
    MDB_envinfo info;
    MDB_stat st;
    struct statvfs vfs;
    MDB_txn *txn;
    uint64_t nfree = 0, pages;
    int rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn);

    if (rc)
        return map_err(rc);
    rc = mdb_env_info(l->env, &info);
    if (rc == 0)
        rc = mdb_env_stat(l->env, &st);
    if (rc == 0)
        rc = count_free(txn, &nfree);
    mdb_txn_abort(txn);
    if (rc)
        return map_err(rc);
    if (statvfs(l->dir, &vfs) != 0)
        return hf_err_from_errno(errno);
    pages = info.me_last_pgno + 1;
    ret->used_bytes = (pages > nfree ? pages - nfree : 0) * st.ms_psize;
    ret->fs_free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    return 0;
}

/* ---- snapshots ---- */

static int lmdb_snap_open(void *p, void **ret)
{
    struct lmdb_snap *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return HF_E_NOMEM;
    s->l = p;
    rc = hf_fault(s->l->faults, HF_FAULT_STORE_SNAPSHOT);
    if (rc == 0)
        rc = map_err(mdb_txn_begin(s->l->env, NULL, MDB_RDONLY, &s->txn));
    if (rc) {
        free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

static void lmdb_snap_close(void *snap)
{
    struct lmdb_snap *s = snap;

    mdb_txn_abort(s->txn);
    free(s);
}

static int lmdb_snap_get(void *snap, unsigned table, struct hf_slice key, struct hf_slice *ret_val)
{
    struct lmdb_snap *s = snap;
    MDB_val k = to_val(key), v;
    int rc = mdb_get(s->txn, s->l->dbi[table], &k, &v);

    if (rc == 0)
        *ret_val = from_val(v);
    return map_err(rc);
}

static int lmdb_snap_scan(void *snap, unsigned table, struct hf_slice from,
                          int (*fn)(void *arg, struct hf_slice key, struct hf_slice val), void *arg)
{
    struct lmdb_snap *s = snap;
    MDB_cursor *c;
    MDB_val k = {0}, v = {0};
    int stop = 0;
    int rc = mdb_cursor_open(s->txn, s->l->dbi[table], &c);

    if (rc)
        return map_err(rc);
    rc = cursor_seek(c, from, false, &k, &v);
    while (rc == 0) {
        stop = fn(arg, from_val(k), from_val(v));
        if (stop)
            break;
        rc = mdb_cursor_get(c, &k, &v, MDB_NEXT);
    }
    mdb_cursor_close(c);
    if (stop)
        return stop;
    return rc == MDB_NOTFOUND ? 0 : map_err(rc);
}

/* ---- open, close ---- */

/* Not by the owner, after it ended with a transaction open: LMDB's unlock is refused, which is
 * harmless, since the only process that has the environment open sets its locks up anew. */
static void lmdb_close(void *p)
{
    struct lmdb_store *l = p;

    cursors_forget(l);
    if (l->txn)
        mdb_txn_abort(l->txn);
    if (l->env)
        mdb_env_close(l->env);
    if (l->lock_fd >= 0)
        close(l->lock_fd);
    free(l);
}

/* Makes the names in a folder durable. */
static int sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return hf_err_from_errno(errno);
    if (fsync(fd) != 0)
        rc = hf_err_from_errno(errno);
    close(fd);
    return rc;
}

/* Creates path and what is missing above it. */
static int make_dirs(char *path)
{
    char *slash = strrchr(path, '/');
    int rc;

    /* One that is there may come from a process that was killed before it could sync. */
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        if (errno != ENOENT || !slash || slash == path)
            return hf_err_from_errno(errno);
        *slash = 0;
        rc = make_dirs(path);
        *slash = '/';
        if (rc)
            return rc;
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return hf_err_from_errno(errno);
    }
    if (!slash)
        return sync_dir(".");
    if (slash == path)
        return sync_dir("/");
    *slash = 0;
    rc = sync_dir(path);
    *slash = '/';
    return rc;
}

/* A second process (or a second open here, which LMDB forbids) would wait for the first one's write
 * transaction for ever. */
static int lock_dir(struct lmdb_store *l)
{
    char path[PATH_BYTES + 16];

    (void)snprintf(path, sizeof(path), "%s/owner.lock", l->dir);
    l->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (l->lock_fd < 0)
        return hf_err_from_errno(errno);
    if (flock(l->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? HF_E_BUSY : hf_err_from_errno(errno);
    return 0;
}

/* A new environment: all tables and the sys record appear in one commit. */
static int create_tables(struct lmdb_store *l, const struct hf_store_opts *o)
{
    MDB_txn *txn;
    int rc = hf_fault(l->faults, HF_FAULT_STORE_CREATE);

    if (rc)
        return rc;
    rc = mdb_txn_begin(l->env, NULL, 0, &txn);
    if (rc)
        return map_err(rc);
    rc = mdb_dbi_open(txn, SYS_TABLE, MDB_CREATE, &l->sys);
    for (unsigned t = 0; t < o->ntables && rc == 0; t++) {
        char name[80];

        (void)snprintf(name, sizeof(name), "t.%s", o->tables[t]);
        rc = mdb_dbi_open(txn, name, MDB_CREATE, &l->dbi[t]);
    }
    if (rc == 0)
        rc = sys_put(l, txn, 0);
    if (rc) {
        mdb_txn_abort(txn);
        return map_err(rc);
    }
    return map_err(mdb_txn_commit(txn));
}

int hf_store_discard(const char *dir)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    char path[PATH_BYTES + 16];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

        if (n < 0 || (size_t)n >= sizeof(path))
            return HF_E_NAMETOOLONG;
        if (unlink(path) != 0 && errno != ENOENT)
            return hf_err_from_errno(errno);
    }
    return sync_dir(dir);
}

static int sys_read(struct lmdb_store *l, MDB_txn *txn, uint64_t *ret_applied)
{
    MDB_val k = to_val(hf_slice_str(SYS_KEY)), v = {0};
    int rc = mdb_get(txn, l->sys, &k, &v);
    const uint8_t *rec = v.mv_data;

    if (rc == MDB_NOTFOUND)
        return HF_E_VERSION;
    if (rc)
        return map_err(rc);
    if (v.mv_size < 4 || hf_get_le32(rec) != SYS_FORMAT)
        return HF_E_VERSION;
    if (v.mv_size != SYS_BYTES)
        return HF_E_CORRUPT;
    if (hf_get_le32(rec + 4) != l->format)
        return HF_E_VERSION;
    *ret_applied = hf_get_le64(rec + 8);
    return 0;
}

/* Opens the tables without changing anything. NOENT: the environment is new. */
static int open_tables(struct lmdb_store *l, const struct hf_store_opts *o, uint64_t *ret_applied)
{
    MDB_stat st;
    MDB_txn *txn;
    int rc = mdb_env_stat(l->env, &st);

    if (rc)
        return map_err(rc);
    if (st.ms_entries == 0)
        return HF_E_NOENT;
    rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn);
    if (rc)
        return map_err(rc);
    rc = mdb_dbi_open(txn, SYS_TABLE, 0, &l->sys);
    rc = rc == MDB_NOTFOUND ? HF_E_VERSION : map_err(rc);
    if (rc == 0)
        rc = sys_read(l, txn, ret_applied);
    for (unsigned t = 0; t < o->ntables && rc == 0; t++) {
        char name[80];

        (void)snprintf(name, sizeof(name), "t.%s", o->tables[t]);
        rc = mdb_dbi_open(txn, name, 0, &l->dbi[t]);
        rc = rc == MDB_NOTFOUND ? HF_E_VERSION : map_err(rc);
    }
    /* Handles opened in a transaction last only if it commits; a read transaction changes nothing.
     */
    if (rc == 0)
        return map_err(mdb_txn_commit(txn));
    mdb_txn_abort(txn);
    return rc;
}

static int env_open(struct lmdb_store *l, const struct hf_store_opts *o)
{
    uint64_t limit = o->map_bytes ? o->map_bytes : MAP_DEFAULT;
    int dead;
    int rc = mdb_env_create(&l->env);

    if (rc)
        return map_err(rc);
    rc = mdb_env_set_maxdbs(l->env, o->ntables + 1);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(l->env, READERS_MAX);
    if (rc == 0)
        rc = mdb_env_set_mapsize(l->env, 2 * limit + MAP_SLACK_BYTES);
    if (rc == 0)
        rc = mdb_env_open(l->env, l->dir, MDB_NOTLS, 0600);
    if (rc == 0)
        rc = mdb_reader_check(l->env, &dead);
    return rc ? map_err(rc) : store_lmdb_check_size(l->env);
}

static const struct store_ops lmdb_ops = {
    .get = lmdb_get,
    .put = lmdb_put,
    .del = lmdb_del,
    .seek = lmdb_seek,
    .count = lmdb_count,
    .commit = lmdb_commit,
    .fill = lmdb_fill,
    .snap_open = lmdb_snap_open,
    .snap_close = lmdb_snap_close,
    .snap_get = lmdb_snap_get,
    .snap_scan = lmdb_snap_scan,
    .close = lmdb_close,
};

int store_lmdb_open(const struct hf_store_opts *o, const struct store_ops **ret_ops, void **ret,
                    uint64_t *ret_applied)
{
    struct lmdb_store *l;
    uint64_t applied = 0;
    int rc;

    if (!o->dir || o->dir[0] == 0 || strlen(o->dir) >= PATH_BYTES)
        return HF_E_INVAL;
    l = calloc(1, sizeof(*l));
    if (!l)
        return HF_E_NOMEM;
    l->lock_fd = -1;
    l->ntables = o->ntables;
    l->format = o->format;
    l->faults = o->faults;
    memcpy(l->dir, o->dir, strlen(o->dir));
    rc = hf_fault(l->faults, HF_FAULT_STORE_OPEN);
    if (rc == 0)
        rc = make_dirs(l->dir);
    if (rc == 0)
        rc = lock_dir(l);
    if (rc == 0)
        rc = env_open(l, o);
    if (rc == 0) {
        rc = open_tables(l, o, &applied);
        if (rc == HF_E_NOENT)
            rc = create_tables(l, o);
    }
    if (rc == 0) /* also if they are not of our making: see make_dirs */
        rc = sync_dir(l->dir);
    if (rc) {
        lmdb_close(l);
        return rc;
    }
    *ret_ops = &lmdb_ops;
    *ret = l;
    *ret_applied = applied;
    return 0;
}

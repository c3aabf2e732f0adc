/* SPDX-License-Identifier: Apache-2.0
 *
 * Is the file long enough for what its meta page says? LMDB trusts it, and touching a mapped page
 * beyond the end of the file is a SIGBUS. A file may be shorter by pages that are free: LMDB does
 * not write a page that was taken and given back in one transaction. Anything else has been cut
 * off.
 */
#include "lmdb_check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/err.h"

#define FREE_DBI   0 /* LMDB's own list of free pages */
#define TAIL_PAGES (1u << 20)

struct tail {
    size_t first, n; /* pages beyond the end of the file */
    size_t found;    /* of them in the free list */
};

/* A record of the free list: count, then page numbers. No page stands in it twice. */
static void count_in_tail(struct tail *t, MDB_val v)
{
    const uint8_t *p = v.mv_data;
    size_t n, pgno;

    if (v.mv_size < sizeof(n))
        return;
    memcpy(&n, p, sizeof(n));
    if (n > v.mv_size / sizeof(n) - 1)
        return;
    for (size_t i = 1; i <= n; i++) {
        memcpy(&pgno, p + i * sizeof(pgno), sizeof(pgno));
        if (pgno >= t->first && pgno - t->first < t->n)
            t->found++;
    }
}

static int scan_free(MDB_env *env, struct tail *t)
{
    MDB_txn *txn;
    MDB_cursor *c;
    MDB_val k, v;
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

    if (rc)
        return HF_E_CORRUPT;
    rc = mdb_cursor_open(txn, FREE_DBI, &c);
    if (rc == 0) {
        while ((rc = mdb_cursor_get(c, &k, &v, MDB_NEXT)) == 0)
            count_in_tail(t, v);
        mdb_cursor_close(c);
    }
    mdb_txn_abort(txn);
    return rc == MDB_NOTFOUND && t->found == t->n ? 0 : HF_E_CORRUPT;
}

int store_lmdb_check_size(MDB_env *env)
{
    struct tail t = {0};
    struct stat sb;
    MDB_envinfo info;
    MDB_stat st;
    mdb_filehandle_t fd;
    int rc;

    if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &st) != 0 ||
        mdb_env_get_fd(env, &fd) != 0)
        return HF_E_INTERNAL;
    if (fstat(fd, &sb) != 0)
        return hf_err_from_errno(errno);
    t.first = (size_t)sb.st_size / st.ms_psize;
    if (info.me_last_pgno < t.first)
        return 0;
    t.n = info.me_last_pgno + 1 - t.first;
    if (t.n > TAIL_PAGES)
        return HF_E_CORRUPT;
    /* With the tail as a hole the list can be read wherever it stands: a page of zeros is no page.
     */
    if (ftruncate(fd, (off_t)((info.me_last_pgno + 1) * st.ms_psize)) != 0)
        return hf_err_from_errno(errno);
    rc = scan_free(env, &t);
    if (rc && ftruncate(fd, sb.st_size) != 0)
        return hf_err_from_errno(errno);
    return rc;
}

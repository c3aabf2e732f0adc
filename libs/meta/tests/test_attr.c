/* SPDX-License-Identifier: Apache-2.0
 *
 * SETATTR: owners, modes, times, guards; setuid and setgid.
 */
#include "support_meta.h"

enum {
    KEEP = HF__SET_TIME__TIME_KEEP,
    SERVER = HF__SET_TIME__TIME_SERVER,
    CLIENT = HF__SET_TIME__TIME_CLIENT
};

static int set_times(struct shard *s, Hf__Cred *c, struct fh o, uint32_t atime, uint32_t mtime)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;

    set.set_atime = atime;
    set.set_mtime = mtime;
    set.atime_ns = 11;
    set.mtime_ns = -22;
    return t_setattr(s, c, o, &set);
}

BOTH_STORES(attr, errors)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct shard s;
    struct fh f, d, w;

    shard_open(&s, kind);
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    cr_ok(t_create(&s, &t_u1, d, "f", 0640, &f));
    cr_ok(t_create(&s, &t_u1, d, "w", 0666, &w));
    cr_status(t_chmod(&s, &t_u2, f, 0777), HF_E_PERM);
    cr_status(t_chmod(&s, NULL, f, 0777), HF_E_ACCES);
    cr_status(t_chown(&s, &t_u1, f, 1002, -1), HF_E_PERM);
    cr_status(t_chown(&s, &t_u1, f, 0, -1), HF_E_PERM);
    cr_ok(t_chown(&s, &t_u1, f, 1001, -1)); /* to himself */
    cr_status(t_chown(&s, &t_u2, f, 1001, -1), HF_E_PERM);
    cr_status(t_chown(&s, &t_u1, f, -1, 777), HF_E_PERM);
    cr_ok(t_chown(&s, &t_u1, f, -1, 500)); /* a group he is in */
    cr_status(t_chown(&s, &t_u2, f, -1, 500), HF_E_PERM);
    cr_status(t_chown(&s, &t_root, f, UINT32_MAX, -1), HF_E_INVAL);
    cr_status(t_chown(&s, &t_root, f, -1, UINT32_MAX), HF_E_INVAL);
    cr_ok(t_chown(&s, &t_root, f, 4000000000, 4000000001));
    cr_assert(t_attr(&s, f).uid == 4000000000 && t_attr(&s, f).gid == 4000000001);
    cr_ok(t_chown(&s, &t_root, f, 1001, 1001));
    cr_status(t_truncate(&s, &t_u2, f, 1), HF_E_ACCES);
    cr_ok(t_truncate(&s, &t_u2, w, 1)); /* write permission is enough */
    cr_ok(t_chmod(&s, &t_u1, f, 0444));
    cr_ok(t_truncate(&s, &t_u1, f, 1)); /* the owner may, whatever the mode */
    cr_status(t_truncate(&s, &t_root, d, 1), HF_E_INVAL);
    cr_status(t_truncate(&s, &t_root, f, HF_META_FILE_MAX + 1), HF_E_FBIG);
    cr_status(t_truncate(&s, &t_root, f, UINT64_MAX), HF_E_FBIG);
    cr_ok(t_truncate(&s, &t_root, f, HF_META_FILE_MAX));
    set.set_atime = 3;
    cr_status(t_setattr(&s, &t_root, f, &set), HF_E_INVAL);
    f.gen++;
    cr_status(t_chmod(&s, &t_root, f, 0), HF_E_STALE);
    shard_close(&s);
}

BOTH_STORES(attr, times)
{
    static const struct {
        uint32_t atime, mtime;
        int owner, writer, other;
    } cases[] = {
        {CLIENT, CLIENT, 0, HF_E_PERM, HF_E_PERM}, {CLIENT, KEEP, 0, HF_E_PERM, HF_E_PERM},
        {KEEP, CLIENT, 0, HF_E_PERM, HF_E_PERM},   {SERVER, CLIENT, 0, HF_E_PERM, HF_E_PERM},
        {SERVER, SERVER, 0, 0, HF_E_ACCES},        {SERVER, KEEP, 0, 0, HF_E_ACCES},
        {KEEP, SERVER, 0, 0, HF_E_ACCES},          {KEEP, KEEP, 0, 0, 0},
    };
    Hf__Cred other = {PROTOBUF_C_MESSAGE_INIT(&hf__cred__descriptor), 9, 9, 0, NULL};
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0664, &f));
    cr_ok(t_chown(&s, &t_root, f, 1001, 500));
    for (size_t k = 0; k < HF_ARRAY_LEN(cases); k++) {
        Hf__Attr before = t_attr(&s, f), after;

        cr_status(set_times(&s, &t_u2, f, cases[k].atime, cases[k].mtime), cases[k].writer);
        cr_status(set_times(&s, &other, f, cases[k].atime, cases[k].mtime), cases[k].other);
        before = t_attr(&s, f);
        cr_status(set_times(&s, &t_u1, f, cases[k].atime, cases[k].mtime), cases[k].owner);
        after = t_attr(&s, f);
        int64_t at = s.op.now_ns;
        int64_t a[3] = {before.atime_ns, at - 1000, 11}, m[3] = {before.mtime_ns, at - 1000, -22};
        cr_assert(after.atime_ns == a[cases[k].atime] && after.mtime_ns == m[cases[k].mtime],
                  "case %zu", k);
        cr_assert((after.ctime_ns > before.ctime_ns) == (cases[k].atime || cases[k].mtime));
    }
    shard_close(&s);
}

/* B5 */
BOTH_STORES(attr, guard)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    Hf__SetattrReq q = HF__SETATTR_REQ__INIT;
    const Hf__SetattrRep *p;
    struct shard s;
    struct fh f;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, &f));
    set.set_mode = true;
    q.cred = &t_root;
    q.ino = f.ino;
    q.gen = f.gen;
    q.set = &set;
    q.guard = true;
    for (unsigned k = 0; k < 500; k++) {
        q.guard_ctime_ns = t_attr(&s, f).ctime_ns;
        s.now_ns -= 2000; /* the clock stands still */
        set.mode = 0600 + (k & 7);
        cr_ok(do_setattr(&s, &q, &p));
        set.mode = 0777;
        cr_status(do_setattr(&s, &q, &p), HF_E_NOT_SYNC);
        cr_assert(p->obj->have_before && p->obj->after->mode == 0600 + (k & 7));
    }
    shard_close(&s);
}

/* E3 */
BOTH_STORES(attr, setuid)
{
    struct shard s;
    struct fh f, d;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0, &f));
    cr_ok(t_make(&s, &t_root, t_root_dir, "d", DIR_, 0777, &d));
    cr_ok(t_chown(&s, &t_root, f, 1001, 500));
#define RESET(mode)   cr_ok(t_chmod(&s, &t_root, f, mode))
#define MODE_IS(want) cr_assert(t_attr(&s, f).mode == (want), "%o", t_attr(&s, f).mode)
    RESET(06775);
    cr_ok(t_write(&s, &t_u2, f, 0, "x", 1));
    MODE_IS(0775);
    RESET(06765);
    cr_ok(t_write(&s, &t_u1, f, 0, "x", 1));
    MODE_IS(02765); /* without group execute setgid means locking, and stays */
    RESET(06775);
    cr_ok(t_write(&s, &t_root, f, 0, "x", 1));
    MODE_IS(06775);
    cr_ok(t_write(&s, &t_u1, f, 0, "", 0));
    MODE_IS(06775);
    cr_ok(t_truncate(&s, &t_u1, f, 0));
    MODE_IS(0775);
    RESET(06775);
    cr_ok(t_chown(&s, &t_u1, f, -1, 1001));
    MODE_IS(0775);
    RESET(06775);
    cr_ok(t_chown(&s, &t_root, f, 1001, 777));
    MODE_IS(0775);
    cr_ok(t_chmod(&s, &t_u1, f, 06755)); /* he is not in group 777 */
    MODE_IS(04755);
    cr_ok(t_chown(&s, &t_root, f, -1, 500));
    cr_ok(t_chmod(&s, &t_u1, f, 02755));
    MODE_IS(02755);
    cr_ok(t_chmod(&s, &t_root, d, 02777));
    cr_ok(t_chown(&s, &t_root, d, 1001, 500));
    cr_assert(t_attr(&s, d).mode == 02777, "a directory keeps setgid");
    shard_close(&s);
}

BOTH_STORES(attr, nothing_to_set)
{
    Hf__SetAttrs set = HF__SET_ATTRS__INIT;
    struct shard s;
    Hf__Attr a;

    shard_open(&s, kind);
    a = t_attr(&s, t_root_dir);
    cr_ok(t_setattr(&s, &t_u1, t_root_dir, &set));
    cr_ok(t_setattr(&s, &t_u1, t_root_dir, NULL));
    cr_assert(t_attr(&s, t_root_dir).ctime_ns == a.ctime_ns);
    cr_ok(t_chmod(&s, &t_root, t_root_dir, 01777));
    a = t_attr(&s, t_root_dir);
    cr_assert(a.mode == 01777 && a.type == DIR_ && a.nlink == 2);
    shard_close(&s);
}

BOTH_STORES(attr, fsstat)
{
    Hf__FsstatReq q = HF__FSSTAT_REQ__INIT;
    const Hf__FsstatRep *p;
    struct shard s;

    shard_open(&s, kind);
    cr_ok(t_create(&s, &t_root, t_root_dir, "f", 0644, NULL));
    q.ino = t_root_dir.ino;
    q.gen = t_root_dir.gen;
    cr_ok(do_fsstat(&s, &q, &p));
    cr_assert(p->files_used == 2 && p->files_free > 0 && p->meta_free_bytes > 0);
    q.gen++;
    cr_status(do_fsstat(&s, &q, &p), HF_E_STALE);
    shard_close(&s);
}

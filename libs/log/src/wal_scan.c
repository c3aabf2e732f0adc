/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in the files at start. The rules, and why a crash can produce no other picture:
 *
 * - A header is one sector and durable before the file's first record: damaged is corrupt.
 * - The newest header names the oldest file needed; from it to the newest none may be missing.
 * Files before it are spares.
 * - A file begins with the next position of each shard, so a file that ends early shows in the next
 * one.
 * - Inside a file the first place without a valid record is its end. In any but the newest file
 *   everything was durable before the next was begun: a valid record further on means damage.
 * - In the newest, records of the last write may be there in any subset. A record says where its
 * write began; if that is beyond the bad place, the bad place had been durable: damage. If not, the
 * rest of that write was never acknowledged. It is zeroed, lest it continue what will be written
 * before it.
 * - The last write's good records are written again and synced: a fdatasync that failed before a
 * restart may have left them in the page cache only, and marked as clean.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "wal_priv.h"

#define FILE_BYTES_MAX (1ull << 30)

struct scan {
    struct hf_wal *w;
    char *err;
    size_t err_bytes;
    struct wal_file **files; /* by seq; those never used first */
    size_t n, cap;
    uint64_t newest_oldest; /* `oldest` of the newest header */
    bool have_pos;
    /* of the newest file */
    uint64_t last_group, end, torn_end; /* torn_end > end: zero what lies between */
};

__attribute__((format(printf, 3, 4))) static int fail(struct scan *s, int rc, const char *fmt, ...)
{
    va_list ap;

    if (s->err && s->err_bytes) {
        va_start(ap, fmt);
        (void)vsnprintf(s->err, s->err_bytes, fmt, ap);
        va_end(ap);
    }
    return rc;
}

/* ---- the folder ---- */

static bool parse_name(const char *name, uint32_t *ret_id)
{
    char again[24];

    if (strlen(name) != 16)
        return false;
    /* Whatever this makes of a wrong name, writing the number again does not give that name. */
    *ret_id = (uint32_t)strtoul(name + 4, NULL, 16);
    (void)snprintf(again, sizeof(again), "wal-%08" PRIx32 ".log", *ret_id);
    return strcmp(again, name) == 0;
}

static int read_header(struct scan *s, struct wal_file *f)
{
    struct hf_wal *w = s->w;
    uint8_t sector[WAL_HEADER_BYTES];
    struct wal_header h;
    int rc;

    if (f->bytes < WAL_HEADER_BYTES)
        return 0; /* being created when the machine went down */
    rc = w->files->read(w->files, f->fd, 0, sector, sizeof(sector));
    if (rc)
        return fail(s, rc, "%s/%s: cannot read", w->dir, f->name);
    rc = wal_header_decode(sector, &h);
    if (rc == HF_E_NOENT)
        return 0;
    if (rc == HF_E_VERSION)
        return fail(s, rc, "%s/%s: format not known to this version", w->dir, f->name);
    if (rc || f->bytes < WAL_DATA_OFF || f->bytes > FILE_BYTES_MAX)
        return fail(s, HF_E_CORRUPT, "%s/%s: offset 0: file header is damaged", w->dir, f->name);
    if (h.shards > w->o.shards)
        return fail(s, HF_E_CONF, "%s/%s: written for %" PRIu32 " shards, configured are %u",
                    w->dir, f->name, h.shards, w->o.shards);
    f->seq = h.seq;
    f->salt = h.salt;
    f->shards = h.shards;
    if (s->n == 0 || h.seq >= s->files[s->n - 1]->seq)
        s->newest_oldest = h.oldest;
    return 0;
}

/* Keeps s->files sorted by seq. */
static int insert_file(struct scan *s, struct wal_file *f)
{
    size_t i = s->n;

    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct wal_file **p = realloc(s->files, cap * sizeof(struct wal_file *));

        if (!p)
            return HF_E_NOMEM;
        s->files = p;
        s->cap = cap;
    }
    for (; i > 0 && s->files[i - 1]->seq > f->seq; i--)
        s->files[i] = s->files[i - 1];
    s->files[i] = f;
    s->n++;
    return 0;
}

static int add_file(struct scan *s, const char *name)
{
    struct hf_wal *w = s->w;
    struct wal_file *f = calloc(1, sizeof(*f));
    char path[WAL_PATH_BYTES + 32];
    int rc;

    if (!f)
        return HF_E_NOMEM;
    f->fd = -1;
    hf_list_init(&f->link);
    (void)snprintf(f->name, sizeof(f->name), "%s", name);
    wal_path(w, name, path);
    rc = w->files->open(w->files, path, false, &f->fd);
    if (rc == 0)
        rc = w->files->size(w->files, f->fd, &f->bytes);
    if (rc)
        fail(s, rc, "%s: %s", path, hf_err_text(rc));
    else
        rc = read_header(s, f);
    if (rc == 0)
        rc = insert_file(s, f);
    if (rc)
        wal_file_free(w, f);
    return rc;
}

static int list_files(struct scan *s)
{
    struct hf_wal *w = s->w;
    DIR *d = opendir(w->dir);
    struct dirent *e;
    uint32_t id;
    int rc = 0;

    if (!d)
        return fail(s, hf_err_from_errno(errno), "%s: cannot list", w->dir);
    while (rc == 0 && (errno = 0, e = readdir(d))) {
        if (!parse_name(e->d_name, &id))
            continue;
        if (id >= w->next_id)
            w->next_id = id + 1;
        rc = add_file(s, e->d_name);
    }
    if (rc == 0 && errno != 0)
        rc = fail(s, hf_err_from_errno(errno), "%s: cannot list", w->dir);
    closedir(d);
    return rc;
}

/* ---- one file ---- */

static int take_start(struct scan *s, struct wal_file *f, const struct wal_rec *r, const uint8_t *p)
{
    struct hf_wal *w = s->w;

    if (r->shard != WAL_START || r->pos != f->seq || r->len != 8 * f->shards)
        return fail(s, HF_E_CORRUPT, "%s/%s: offset %u: no start record", w->dir, f->name,
                    WAL_DATA_OFF);
    for (unsigned i = 0; i < f->shards; i++) {
        uint64_t pos = hf_get_le64(p + 8 * (size_t)i);

        if (pos == 0 || (s->have_pos && pos != w->pos[i]))
            return fail(s, HF_E_CORRUPT,
                        "%s/%s: offset %u: shard %u continues at position %" PRIu64
                        ", but the files before it end at %" PRIu64,
                        w->dir, f->name, WAL_DATA_OFF, i, pos, w->pos[i]);
        w->pos[i] = pos;
    }
    s->have_pos = true;
    return 0;
}

static int take_record(struct scan *s, struct wal_file *f, uint64_t off, const struct wal_rec *r)
{
    struct hf_wal *w = s->w;

    if (r->shard >= f->shards || r->group > off)
        return fail(s, HF_E_CORRUPT, "%s/%s: offset %" PRIu64 ": shard %" PRIu32 " does not exist",
                    w->dir, f->name, off, r->shard);
    if (r->pos != w->pos[r->shard])
        return fail(s, HF_E_CORRUPT,
                    "%s/%s: offset %" PRIu64 ": shard %" PRIu32 ": position %" PRIu64
                    " where %" PRIu64 " is due",
                    w->dir, f->name, off, r->shard, r->pos, w->pos[r->shard]);
    w->pos[r->shard]++;
    return 0;
}

/* The shard whose record is missing at `end`, told by the record itself or by those behind it; only
 * for the message: it spoils w->pos. */
static int damage(struct scan *s, struct wal_file *f, const uint8_t *buf, uint64_t end)
{
    struct hf_wal *w = s->w;
    struct wal_rec r;

    for (uint64_t p = end; p + WAL_REC_BYTES <= f->bytes; p += 8) {
        if (!wal_rec_decode(buf + p, f->bytes - p, f->seq, f->salt, &r) || r.shard >= w->o.shards)
            continue;
        if (p == end || r.pos > w->pos[r.shard])
            return fail(s, HF_E_CORRUPT,
                        "%s/%s: offset %" PRIu64 ": shard %" PRIu32
                        ": damaged record, valid ones follow",
                        w->dir, f->name, end, r.shard);
        w->pos[r.shard] = r.pos + 1;
    }
    return fail(s, HF_E_CORRUPT, "%s/%s: offset %" PRIu64 ": damaged record, valid ones follow",
                w->dir, f->name, end);
}

/* Nothing valid stands at `end`. Looks at what follows: damage or a torn write? */
static int judge_tail(struct scan *s, struct wal_file *f, const uint8_t *buf, uint64_t end,
                      bool newest)
{
    struct wal_rec r;

    s->end = s->torn_end = end;
    for (uint64_t p = end + 8; p + WAL_REC_BYTES <= f->bytes; p += 8) {
        if (!wal_rec_decode(buf + p, f->bytes - p, f->seq, f->salt, &r))
            continue;
        if (!newest || r.group > end)
            return damage(s, f, buf, end);
        if (p + wal_rec_span(r.len) > s->torn_end)
            s->torn_end = p + wal_rec_span(r.len);
    }
    return 0;
}

static int scan_records(struct scan *s, struct wal_file *f, const uint8_t *buf, bool newest)
{
    struct hf_wal *w = s->w;
    uint64_t off = WAL_DATA_OFF;
    struct wal_rec r;
    bool first = true;
    int rc = 0;

    s->last_group = off;
    while (off < f->bytes && wal_rec_decode(buf + off, f->bytes - off, f->seq, f->salt, &r) &&
           wal_rec_payload_ok(&r, buf + off + WAL_REC_BYTES)) {
        rc = first ? take_start(s, f, &r, buf + off + WAL_REC_BYTES) : take_record(s, f, off, &r);
        if (rc)
            return rc;
        if (first)
            memcpy(f->start, w->pos, w->o.shards * sizeof(*f->start));
        first = false;
        s->last_group = r.group;
        off += wal_rec_span(r.len);
    }
    f->end_off = off;
    rc = judge_tail(s, f, buf, off, newest);
    if (rc || !first)
        return rc;
    /* No start record: begun, and nothing written yet. */
    if (!newest || (!s->have_pos && f->seq != 1))
        return fail(s, HF_E_CORRUPT, "%s/%s: offset %" PRIu64 ": no start record", w->dir, f->name,
                    off);
    memcpy(f->start, w->pos, w->o.shards * sizeof(*f->start));
    w->need_start = true;
    return 0;
}

/* The last write of the newest file: its good part anew, its torn part away. */
static int mend_tail(struct scan *s, struct wal_file *f, uint8_t *buf)
{
    struct hf_wal *w = s->w;
    int rc = hf_fault(w->o.faults, HF_FAULT_LOG_MEND);

    memset(buf + s->end, 0, (size_t)(s->torn_end - s->end));
    if (rc == 0 && s->torn_end > s->last_group)
        rc = w->files->write(w->files, f->fd, s->last_group, buf + s->last_group,
                             (size_t)(s->torn_end - s->last_group));
    if (rc == 0)
        rc = w->files->sync(w->files, f->fd);
    return rc ? fail(s, rc, "%s/%s: cannot write", w->dir, f->name) : 0;
}

static int scan_file(struct scan *s, struct wal_file *f, bool newest)
{
    struct hf_wal *w = s->w;
    uint8_t *buf = malloc((size_t)f->bytes);
    int rc;

    f->start = calloc(w->o.shards, sizeof(*f->start));
    if (!buf || !f->start) {
        free(buf);
        return HF_E_NOMEM;
    }
    rc = hf_fault(w->o.faults, HF_FAULT_LOG_SCAN);
    if (rc == 0)
        rc = w->files->read(w->files, f->fd, 0, buf, (size_t)f->bytes);
    if (rc)
        fail(s, rc, "%s/%s: cannot read", w->dir, f->name);
    else
        rc = scan_records(s, f, buf, newest);
    if (rc == 0 && newest)
        rc = mend_tail(s, f, buf);
    free(buf);
    return rc;
}

/* ---- all of them ---- */

/* Index of the first file needed; n: none. */
static int find_used(struct scan *s, size_t *ret_first)
{
    struct hf_wal *w = s->w;
    uint64_t want = s->newest_oldest;
    size_t i = 0;

    if (s->n == 0 || s->files[s->n - 1]->seq == 0) {
        *ret_first = s->n;
        return 0;
    }
    while (s->files[i]->seq < want)
        i++;
    *ret_first = i;
    for (; i < s->n; i++, want++) {
        if (s->files[i]->seq != want)
            return fail(s, HF_E_CORRUPT,
                        "%s: file number %" PRIu64 " is missing (%s is number %" PRIu64 ")", w->dir,
                        want, s->files[i]->name, s->files[i]->seq);
    }
    return 0;
}

static void hand_over(struct scan *s, size_t first)
{
    struct hf_wal *w = s->w;

    for (size_t i = 0; i < s->n; i++) {
        struct wal_file *f = s->files[i];

        w->nfiles++;
        w->total_bytes += f->bytes;
        if (i >= first) {
            hf_list_push_back(&w->used, &f->link);
        } else if (f->bytes == w->o.file_bytes && w->nspares < WAL_SPARES_MAX) {
            hf_list_push_back(&w->spares, &f->link);
            w->nspares++;
        } else {
            hf_list_push_back(&w->garbage, &f->link);
        }
    }
    if (first == s->n)
        return;
    w->cur = s->files[s->n - 1];
    w->off = w->cur->end_off;
    w->cur_left = w->cur->bytes - w->off;
    w->header_oldest = s->newest_oldest;
}

int wal_scan(struct hf_wal *w, char *err, size_t err_bytes)
{
    struct scan s = {.w = w, .err = err, .err_bytes = err_bytes};
    size_t first = 0;
    int rc = list_files(&s);

    for (unsigned i = 0; i < w->o.shards; i++)
        w->pos[i] = 1;
    if (rc == 0)
        rc = find_used(&s, &first);
    for (size_t i = first; i < s.n && rc == 0; i++)
        rc = scan_file(&s, s.files[i], i + 1 == s.n);
    if (rc == 0) {
        for (unsigned i = 0; i < w->o.shards; i++) {
            w->shards[i].next = w->pos[i];
            w->shards[i].trim = first < s.n ? s.files[first]->start[i] : 1;
        }
        hand_over(&s, first);
    }
    for (size_t i = 0; i < s.n && rc != 0; i++)
        wal_file_free(w, s.files[i]);
    free(s.files);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A wal on a damaged disk. The input says what is appended, then how the files are damaged: bytes
 * over bytes, cut, removed, copied, or a record header with a right checksum and any fields. Then
 * the wal is opened again: whatever it says, it does not hand out a record that was never written,
 * unless the damage carried a checksum of its own.
 */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "holdfast/err.h"
#include "holdfast/log.h"
#include "wal_format.h"
#include "wal_priv.h"

#define SHARDS      2u
#define RECORDS_MAX 48u
#define RECORD_MAX  8192u
#define NAMES_MAX   16u

struct wal_run {
    char dir[64];
    struct hf_env *env;
    struct hf_loop *loop;
    struct hf_wal *w;
    struct wal_files files;
    char err[512];
    bool forged; /* the damage had a checksum of its own */
    uint64_t appended[SHARDS];
    uint32_t len[SHARDS][RECORDS_MAX + 2];
    uint8_t fill[SHARDS][RECORDS_MAX + 2];
    unsigned shard; /* being read */
};

static int no_sync(const struct wal_files *f, int fd)
{
    (void)f;
    (void)fd;
    return 0;
}

static int no_sync_dir(const struct wal_files *f, const char *path)
{
    (void)f;
    (void)path;
    return 0;
}

static int list(const char *dir, char names[NAMES_MAX][64])
{
    struct dirent **all;
    int n = scandir(dir, &all, NULL, alphasort), found = 0;

    for (int k = 0; k < n; k++) {
        if (all[k]->d_name[0] != '.' && found < (int)NAMES_MAX)
            snprintf(names[found++], 64, "%.63s", all[k]->d_name);
        free(all[k]);
    }
    if (n >= 0)
        free(all);
    return found;
}

static void wipe(const char *dir)
{
    char names[NAMES_MAX][64], path[160];
    int n = list(dir, names);

    for (int k = 0; k < n; k++) {
        snprintf(path, sizeof(path), "%s/%.63s", dir, names[k]);
        unlink(path);
    }
}

static int wal_start(struct wal_run *r)
{
    struct hf_wal_opts o = {.dir = r->dir,
                            .shards = SHARDS,
                            .file_bytes = 16384,
                            .max_bytes = 16384 * 8,
                            .reserve_bytes = 32768};

    FUZZ_CHECK(hf_env_sim_new(1, 0, &r->env) == 0);
    FUZZ_CHECK(hf_loop_new(r->env, "wal", &r->loop) == 0);
    return wal_open_files(r->env, &o, &r->files, &r->w, r->err, sizeof(r->err));
}

static void wal_stop(struct wal_run *r)
{
    if (r->w)
        hf_wal_close(r->w);
    r->w = NULL;
    (void)hf_sim_run(r->env, ~UINT64_C(0));
    hf_loop_free(r->loop);
    hf_env_free(r->env);
}

static void on_done(struct hf_task *t)
{
    (void)t;
}

static void append(struct wal_run *r, struct fuzz *f)
{
    static uint8_t data[RECORD_MAX];
    unsigned n = fuzz_u8(f) % RECORDS_MAX;

    for (unsigned k = 0; k < n; k++) {
        uint8_t how = fuzz_u8(f);
        unsigned shard = how & 1;
        uint32_t len = (how & 2) ? (uint32_t)fuzz_uint(f, 2) % RECORD_MAX : how >> 2;
        struct hf_log_append a = {.loop = r->loop, .nparts = 1};
        uint64_t pos = r->appended[shard] + 1;

        a.done.fn = on_done;
        r->len[shard][pos] = len;
        r->fill[shard][pos] = (uint8_t)(k * 37 + shard);
        memset(data, r->fill[shard][pos], len);
        a.parts[0] = hf_slice(data, len);
        if (hf_log_append(hf_wal_log(r->w, shard), &a))
            return;
        (void)hf_sim_run(r->env, ~UINT64_C(0));
        if (a.status)
            return;
        FUZZ_CHECK(a.pos == pos);
        r->appended[shard] = pos;
        if ((how & 0xf8) == 0xf8)
            hf_log_trim(hf_wal_log(r->w, shard), pos);
    }
}

static void forge(struct wal_run *r, struct fuzz *f, int fd, off_t at)
{
    uint8_t raw[WAL_HEADER_BYTES] = {0}, out[WAL_HEADER_BYTES];
    struct wal_header h = {0};
    struct wal_rec rec = {0};

    r->forged = true;
    if (pread(fd, raw, sizeof(raw), 0) == (ssize_t)sizeof(raw))
        (void)wal_header_decode(raw, &h);
    if (fuzz_u8(f) & 1) {
        h.seq = fuzz_number(f);
        h.oldest = fuzz_number(f);
        h.shards = (uint32_t)fuzz_number(f);
        wal_header_encode(&h, out);
        FUZZ_CHECK(pwrite(fd, out, WAL_HEADER_BYTES, 0) == (ssize_t)WAL_HEADER_BYTES);
        return;
    }
    rec.shard = fuzz_u8(f) & 1 ? WAL_START : (uint32_t)fuzz_number(f);
    rec.len = (uint32_t)fuzz_number(f);
    rec.payload_crc = fuzz_u8(f) & 1 ? 0 : (uint32_t)fuzz_uint(f, 4);
    rec.pos = fuzz_number(f);
    rec.seq = fuzz_u8(f) & 1 ? fuzz_number(f) : h.seq;
    rec.group = fuzz_number(f);
    wal_rec_encode(&rec, h.salt, out);
    FUZZ_CHECK(pwrite(fd, out, WAL_REC_BYTES, at) == (ssize_t)WAL_REC_BYTES);
}

static void damage_one(struct wal_run *r, struct fuzz *f, const char *path, const char *other)
{
    int fd = open(path, O_RDWR), to;
    uint8_t how = fuzz_u8(f);
    off_t at = (off_t)((how & 0x80 ? WAL_DATA_OFF : 0) + fuzz_uint(f, 2));
    struct hf_slice b;
    uint8_t buf[4096];
    ssize_t n;

    if (fd < 0)
        return;
    if ((how & 8) == 0)
        at &= ~(off_t)7;
    switch (how & 7) {
    case 0:
        FUZZ_CHECK(ftruncate(fd, at) == 0);
        break;
    case 1:
        unlink(path);
        break;
    case 2:
    case 3:
        forge(r, f, fd, at & ~(off_t)7);
        break;
    case 4: /* a piece of another file */
        to = open(other, O_RDWR);
        n = to < 0 ? 0 : pread(fd, buf, sizeof(buf), at);
        if (n > 0)
            FUZZ_CHECK(pwrite(to, buf, (size_t)n, at) == n);
        if (to >= 0)
            close(to);
        r->forged = true; /* it brings its salt with it, if it is a header */
        break;
    default:
        b = fuzz_bytes(f, fuzz_u8(f));
        if (b.len)
            FUZZ_CHECK(pwrite(fd, b.data, b.len, at) == (ssize_t)b.len);
        break;
    }
    close(fd);
}

static void damage(struct wal_run *r, struct fuzz *f)
{
    for (unsigned k = 0; k < 8 && f->left > 0; k++) {
        char names[NAMES_MAX][64], path[160], other[160];
        unsigned n = (unsigned)list(r->dir, names), which = fuzz_u8(f);

        if (n == 0)
            return;
        snprintf(path, sizeof(path), "%s/%.63s", r->dir, names[which % n]);
        snprintf(other, sizeof(other), "%s/%.63s", r->dir, names[(which / n) % n]);
        damage_one(r, f, path, other);
    }
}

static int on_record(void *arg, uint64_t pos, struct hf_slice rec)
{
    struct wal_run *r = arg;
    const uint8_t *p = rec.data;

    FUZZ_CHECK(rec.len <= HF_LOG_RECORD_MAX);
    for (size_t k = 0; k < rec.len; k++) {
        if (!r->forged)
            FUZZ_CHECK(p[k] == r->fill[r->shard][pos]);
        else
            (void)*(const volatile uint8_t *)(p + k);
    }
    if (r->forged)
        return 0;
    FUZZ_CHECK(pos >= 1 && pos <= r->appended[r->shard] && rec.len == r->len[r->shard][pos]);
    return 0;
}

/* Reads all that there is, appends, and opens once more: what opened once opens again. */
static void reread(struct wal_run *r)
{
    for (r->shard = 0; r->shard < SHARDS; r->shard++) {
        struct hf_log *l = hf_wal_log(r->w, r->shard);
        uint64_t end = hf_log_end(l);

        if (!r->forged)
            FUZZ_CHECK(end <= r->appended[r->shard] + 1);
        for (uint64_t from = end > 64 ? end - 64 : 1; from <= end; from++) {
            if (hf_log_read(l, from, on_record, r) == 0)
                break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal_run r = {.files = wal_files_posix};
    struct fuzz f = {data, size};
    int rc;

    if (size > 16384)
        return 0;
    r.files.sync = no_sync;
    r.files.sync_dir = no_sync_dir;
    snprintf(r.dir, sizeof(r.dir), "%s/hf-fuzz-wal-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(r.dir));
    FUZZ_CHECK(wal_start(&r) == 0, "%s", r.err);
    append(&r, &f);
    wal_stop(&r);
    damage(&r, &f);
    rc = wal_start(&r);
    if (rc == 0)
        reread(&r);
    else
        FUZZ_CHECK(r.err[0] && strnlen(r.err, sizeof(r.err)) < sizeof(r.err), "%s",
                   hf_err_name(rc));
    wal_stop(&r);
    if (rc == 0 && !r.forged) {
        FUZZ_CHECK(wal_start(&r) == 0, "the second time: %s", r.err);
        wal_stop(&r);
    }
    wipe(r.dir);
    rmdir(r.dir);
    return 0;
}

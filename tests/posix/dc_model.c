/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations. Offsets and lengths are drawn so that the borders at which a store changes its
 * ways are met often: what is kept inline (8 KiB), pages, blocks (64 KiB), chunks (4 MiB), the end.
 */
#include "dc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int dc_init(struct dc *d, const struct dc_opts *o)
{
    *d = (struct dc){
        .o = o,
        .fd = -1,
    };
    d->punch_ok = d->zero_ok = d->keep_ok = !o->no_punch;
    d->copy_ok = !o->no_copy;
    d->rng = (o->seed ^ (o->seed >> 29)) * UINT64_C(0xff51afd7ed558ccd); /* streams far apart */
    d->model = calloc(1, o->max_size + 4096);
    d->buf = malloc(o->max_size + 4096);
    d->log = calloc(DC_LOG, sizeof(*d->log));
    if (d->model == NULL || d->buf == NULL || d->log == NULL) {
        fprintf(stderr, "datacheck: out of memory\n");
        return -1;
    }
    return 0;
}

void dc_fini(struct dc *d)
{
    if (d->fd >= 0) {
        close(d->fd);
    }
    free(d->model);
    free(d->buf);
    free(d->log);
}

uint64_t dc_random(struct dc *d, uint64_t below)
{
    uint64_t z = (d->rng += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return below == 0 ? 0 : (z ^ (z >> 31)) % below;
}

void dc_note(struct dc *d, const char *fmt, ...)
{
    char *line = d->log[d->op % DC_LOG];
    va_list ap;
    int n = snprintf(line, sizeof(*d->log), "%8llu: ", (unsigned long long)d->op);

    va_start(ap, fmt);
    vsnprintf(line + n, sizeof(*d->log) - (size_t)n, fmt, ap);
    va_end(ap);
}

int dc_wrong(struct dc *d, const char *fmt, ...)
{
    va_list ap;

    printf(
        "datacheck: WRONG at operation %llu of seed %llu (--seed %llu --max-size %zu%s%s%s%s%s): ",
        (unsigned long long)d->op, (unsigned long long)d->o->seed, (unsigned long long)d->o->seed,
        d->o->max_size, d->o->no_mmap ? " --no-mmap" : "", d->o->no_punch ? " --no-punch" : "",
        d->o->no_copy ? " --no-copy" : "", d->o->no_seek ? " --no-seek" : "",
        d->o->no_append ? " --no-append" : "");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\nthe last operations (the size is the one before):\n");
    for (uint64_t i = d->op >= DC_LOG - 1 ? d->op - (DC_LOG - 1) : 0; i <= d->op; i++) {
        printf("  %s\n", d->log[i % DC_LOG]);
    }
    fflush(stdout);
    return -1;
}

/* ---- where ---- */

static const uint64_t borders[] = {0,        4096,     8192,     16384,     65536,     131072,
                                   1u << 20, 4u << 20, 8u << 20, 12u << 20, 16u << 20, 32u << 20};
#define NBORDERS (sizeof(borders) / sizeof(borders[0]))

static size_t position(struct dc *d)
{
    size_t max = d->o->max_size;
    uint64_t at;

    switch (dc_random(d, 8)) {
    case 0:
    case 1:
    case 2:
        at = borders[dc_random(d, NBORDERS)] + 64 - dc_random(d, 128);
        break;
    case 3:
        at = d->size + 64 - dc_random(d, 128);
        break;
    case 4:
        at = dc_random(d, 10000);
        break;
    case 5:
        at = dc_random(d, max) & ~UINT64_C(4095);
        break;
    default:
        at = dc_random(d, d->size + 5000);
        break;
    }
    return at >= max ? (size_t)dc_random(d, max) : (size_t)at; /* also what is below 0 */
}

static size_t length(struct dc *d, size_t at)
{
    size_t len;

    switch (dc_random(d, 8)) {
    case 0:
        len = 1 + (size_t)dc_random(d, 16);
        break;
    case 1:
    case 2:
    case 3:
        len = 1 + (size_t)dc_random(d, 5000);
        break;
    case 4:
    case 5:
        len = 1 + (size_t)dc_random(d, 70000);
        break;
    case 6:
        len = (size_t)(1 + dc_random(d, 32)) * 4096;
        break;
    default:
        len = 1 + (size_t)dc_random(d, dc_random(d, 8) == 0 ? d->o->max_size : 300000);
        break;
    }
    return at + len > d->o->max_size ? d->o->max_size - at : len;
}

static void fill(struct dc *d, uint8_t *p, size_t len)
{
    uint64_t v = 0;

    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0) {
            v = dc_random(d, UINT64_MAX);
        }
        p[i] = (uint8_t)((v >> (8 * (i % 8))) | 1); /* not zero: a lost byte is seen */
    }
}

/* ---- comparing ---- */

static int check_size(struct dc *d)
{
    struct stat st;

    if (fstat(d->fd, &st) != 0) {
        return dc_wrong(d, "fstat: %s", strerror(errno));
    }
    if ((uint64_t)st.st_size != d->size) {
        return dc_wrong(d, "the size is %lld, expected %zu", (long long)st.st_size, d->size);
    }
    return 0;
}

static int compare(struct dc *d, const uint8_t *got, size_t at, size_t len, const char *how)
{
    size_t first = 0, last = len;

    if (memcmp(got, d->model + at, len) == 0) {
        return 0;
    }
    while (got[first] == d->model[at + first]) {
        first++;
    }
    while (got[last - 1] == d->model[at + last - 1]) {
        last--;
    }
    return dc_wrong(
        d, "%s of %zu bytes at %zu: bytes %zu to %zu differ, the first is 0x%02x, expected 0x%02x",
        how, len, at, at + first, at + last, got[first], d->model[at + first]);
}

static int read_range(struct dc *d, size_t at, size_t len)
{
    size_t want = at >= d->size ? 0 : at + len > d->size ? d->size - at : len, have = 0;

    while (have < len) {
        ssize_t n = pread(d->fd, d->buf + have, len - have, (off_t)(at + have));

        if (n < 0) {
            return dc_wrong(d, "pread of %zu at %zu: %s", len, at, strerror(errno));
        }
        if (n == 0) {
            break;
        }
        have += (size_t)n;
    }
    if (have != want) {
        return dc_wrong(d, "pread of %zu at %zu gives %zu bytes, expected %zu", len, at, have,
                        want);
    }
    return compare(d, d->buf, at, want, "pread");
}

int dc_check_all(struct dc *d)
{
    if (check_size(d) != 0) {
        return -1;
    }
    return read_range(d, 0, d->o->max_size);
}

/* ---- the operations ---- */

static void model_write(struct dc *d, size_t at, size_t len)
{
    memcpy(d->model + at, d->buf, len);
    if (at + len > d->size) {
        d->size = at + len;
    }
}

static int op_read(struct dc *d)
{
    size_t at = position(d), len = length(d, at);

    dc_note(d, "read      %9zu + %-8zu size %zu", at, len, d->size);
    return read_range(d, at, len);
}

static int write_all(struct dc *d, size_t at, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = d->append ? write(d->fd, d->buf + done, len - done)
                              : pwrite(d->fd, d->buf + done, len - done, (off_t)(at + done));

        if (n <= 0) {
            return dc_wrong(d, "write: %s", n < 0 ? strerror(errno) : "nothing written");
        }
        done += (size_t)n;
    }
    return 0;
}

static int op_write(struct dc *d)
{
    size_t at = d->append ? d->size : position(d), len = length(d, at);

    if (len == 0) {
        return 0;
    }
    dc_note(d, "%s %9zu + %-8zu size %zu", d->append ? "append   " : "write    ", at, len, d->size);
    fill(d, d->buf, len);
    if (write_all(d, at, len) != 0) {
        return -1;
    }
    model_write(d, at, len);
    return dc_random(d, 4) == 0 ? read_range(d, at, len) : check_size(d);
}

static int op_truncate(struct dc *d)
{
    size_t to = dc_random(d, 20) == 0 ? 0 : position(d);

    dc_note(d, "truncate  %9zu            size %zu", to, d->size);
    if (ftruncate(d->fd, (off_t)to) != 0) {
        return dc_wrong(d, "ftruncate: %s", strerror(errno));
    }
    if (to < d->size) {
        memset(d->model + to, 0, d->size - to);
    }
    d->size = to;
    return check_size(d);
}

/* FUSE has no shared maps of descriptors with O_APPEND (they are direct): by another one then. */
static uint8_t *map_file(struct dc *d, size_t page, size_t span, bool writes)
{
    int prot = PROT_READ | (writes ? PROT_WRITE : 0), fd;
    void *m = mmap(NULL, span, prot, MAP_SHARED, d->fd, (off_t)page);

    if (m == MAP_FAILED && errno == ENODEV && d->append) {
        fd = open(d->o->path, O_RDWR);
        if (fd >= 0) {
            m = mmap(NULL, span, prot, MAP_SHARED, fd, (off_t)page);
            close(fd);
        }
    }
    return m == MAP_FAILED ? NULL : m;
}

/* A map of whole pages around the range; what lies behind the end is not touched. */
static int op_map(struct dc *d, bool writes)
{
    size_t at = position(d), len, page, span;
    uint8_t *m;
    int rc = 0;

    if (d->size == 0) {
        return 0;
    }
    at %= d->size;
    len = length(d, at);
    len = at + len > d->size ? d->size - at : len;
    page = at & ~(size_t)4095;
    span = at + len - page;
    dc_note(d, "%s %9zu + %-8zu size %zu", writes ? "map write" : "map read ", at, len, d->size);
    m = map_file(d, page, span, writes);
    if (m == NULL) {
        return dc_wrong(d, "mmap: %s", strerror(errno));
    }
    if (writes) {
        fill(d, d->buf, len);
        memcpy(m + (at - page), d->buf, len);
        model_write(d, at, len);
        if (dc_random(d, 2) == 0 && msync(m, span, MS_SYNC) != 0) {
            rc = dc_wrong(d, "msync: %s", strerror(errno));
        }
    } else {
        rc = compare(d, m + (at - page), at, len, "reading the map");
    }
    if (munmap(m, span) != 0) {
        return dc_wrong(d, "munmap: %s", strerror(errno));
    }
    return rc != 0 ? rc : check_size(d);
}

/* *ok: whether the file system has this mode; the first refusal is said once. */
static int allocate(struct dc *d, int mode, size_t at, size_t len, bool *ok)
{
    if (fallocate(d->fd, mode, (off_t)at, (off_t)len) == 0) {
        return 0;
    }
    if (errno == EOPNOTSUPP) {
        printf("datacheck: fallocate mode 0x%x is not supported; not used\n", (unsigned)mode);
        *ok = false;
        return 1;
    }
    return dc_wrong(d, "fallocate mode 0x%x: %s", (unsigned)mode, strerror(errno));
}

static int op_zeros(struct dc *d, bool punch)
{
    size_t at = position(d), len = length(d, at);
    int mode = punch ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : FALLOC_FL_ZERO_RANGE;
    int rc;

    if (len == 0) {
        return 0;
    }
    if (!punch && dc_random(d, 2) == 0) {
        mode |= FALLOC_FL_KEEP_SIZE;
    }
    dc_note(d, "%s %9zu + %-8zu size %zu%s", punch ? "punch    " : "zero     ", at, len, d->size,
            mode & FALLOC_FL_KEEP_SIZE && !punch ? ", kept" : "");
    rc = allocate(d, mode, at, len, punch ? &d->punch_ok : &d->zero_ok);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    memset(d->model + at, 0, len);
    if (!(mode & FALLOC_FL_KEEP_SIZE) && at + len > d->size) {
        d->size = at + len;
    }
    return check_size(d);
}

static int op_allocate(struct dc *d)
{
    size_t at = position(d), len = length(d, at);
    bool keep = dc_random(d, 2) == 0;
    int rc;

    if (len == 0) {
        return 0;
    }
    dc_note(d, "allocate  %9zu + %-8zu size %zu%s", at, len, d->size, keep ? ", kept" : "");
    rc = allocate(d, keep ? FALLOC_FL_KEEP_SIZE : 0, at, len, &d->keep_ok);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    if (!keep && at + len > d->size) {
        d->size = at + len;
    }
    return check_size(d);
}

static int op_copy(struct dc *d)
{
    size_t from = position(d), to = position(d), len = length(d, to), room;

    if (d->append || d->size == 0) {
        return 0;
    }
    from %= d->size;
    len = from + len > d->size ? d->size - from : len;
    room = from > to ? from - to : to - from; /* the ranges must not overlap */
    len = len > room ? room : len;
    dc_note(d, "copy      %9zu + %-8zu size %zu, to %zu", from, len, d->size, to);
    for (size_t done = 0; done < len;) {
        off_t in = (off_t)(from + done), out = (off_t)(to + done);
        ssize_t n = copy_file_range(d->fd, &in, d->fd, &out, len - done, 0);

        if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EXDEV)) {
            printf("datacheck: copy_file_range is not supported; not used\n");
            d->copy_ok = false;
            return 0;
        }
        if (n <= 0) {
            return dc_wrong(d, "copy_file_range: %s", n < 0 ? strerror(errno) : "nothing copied");
        }
        done += (size_t)n;
    }
    memcpy(d->buf, d->model + from, len);
    model_write(d, to, len);
    return check_size(d);
}

static int op_seek(struct dc *d)
{
    size_t at = position(d);
    off_t data;

    if (at >= d->size) {
        return 0;
    }
    dc_note(d, "seek data %9zu            size %zu", at, d->size);
    data = lseek(d->fd, (off_t)at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
        data = (off_t)d->size;
    }
    if (data < (off_t)at || data > (off_t)d->size) {
        return dc_wrong(d, "SEEK_DATA from %zu gives %lld (%s)", at, (long long)data,
                        data < 0 ? strerror(errno) : "out of range");
    }
    for (size_t i = at; i < (size_t)data; i++) {
        if (d->model[i] != 0) {
            return dc_wrong(d, "SEEK_DATA from %zu skips to %lld over data at %zu", at,
                            (long long)data, i);
        }
    }
    return 0;
}

static int reopen(struct dc *d)
{
    if (d->fd >= 0 && close(d->fd) != 0) {
        return dc_wrong(d, "close: %s", strerror(errno));
    }
    d->append = dc_random(d, 3) == 0 && !d->o->no_append;
    d->fd = open(d->o->path, O_RDWR | O_CREAT | (d->append ? O_APPEND : 0), 0644);
    return d->fd < 0 ? dc_wrong(d, "open: %s", strerror(errno)) : check_size(d);
}

static int op_reopen(struct dc *d)
{
    dc_note(d, "reopen                          size %zu", d->size);
    return reopen(d);
}

static int op_sync(struct dc *d)
{
    dc_note(d, "fsync                           size %zu", d->size);
    return fsync(d->fd) != 0 ? dc_wrong(d, "fsync: %s", strerror(errno)) : 0;
}

static int one(struct dc *d)
{
    uint64_t r = dc_random(d, 100);

    dc_note(d, "-");
    if (r < 30) {
        return op_write(d);
    }
    if (r < 52) {
        return op_read(d);
    }
    if (r < 60) {
        return op_truncate(d);
    }
    if (r < 76) {
        return d->o->no_mmap ? op_read(d) : op_map(d, r % 2 == 0);
    }
    if (r < 82) {
        return (r % 2 == 0 ? d->punch_ok : d->zero_ok) ? op_zeros(d, r % 2 == 0) : op_write(d);
    }
    if (r < 85) {
        return d->keep_ok ? op_allocate(d) : op_truncate(d);
    }
    if (r < 89) {
        return op_sync(d);
    }
    if (r < 93) {
        return op_reopen(d);
    }
    if (r < 96) {
        return d->o->no_seek ? op_read(d) : op_seek(d);
    }
    return d->copy_ok ? op_copy(d) : op_read(d);
}

/* A fault of our own making, to show that one would be found. */
static int spoil(struct dc *d)
{
    int fd = open(d->o->path, O_RDWR);
    size_t at = d->size / 2;
    char c = 0;
    int rc = -1;

    if (fd >= 0 && d->size > 0 && pread(fd, &c, 1, (off_t)at) == 1) {
        c = (char)~c;
        rc = pwrite(fd, &c, 1, (off_t)at) == 1 ? 0 : -1;
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? dc_check_all(d) : dc_wrong(d, "cannot spoil the file: it is empty");
}

int dc_run(struct dc *d)
{
    uint64_t end = d->op + d->o->ops;

    if (d->fd < 0 && reopen(d) != 0) {
        return -1;
    }
    for (; d->op < end; d->op++) {
        if (one(d) != 0 || (d->o->spoil != 0 && d->op == d->o->spoil && spoil(d) != 0)) {
            return -1;
        }
        if ((d->op + 1) % d->o->every == 0 && dc_check_all(d) != 0) {
            return -1;
        }
        if (!d->o->quiet && (d->op + 1) % 100000 == 0) {
            printf("datacheck: %llu operations\n", (unsigned long long)d->op + 1);
            fflush(stdout);
        }
    }
    if (d->op > 0) {
        d->op--; /* the last that was done */
    }
    if (dc_check_all(d) != 0) {
        return -1;
    }
    d->op++;
    if (close(d->fd) != 0) {
        d->fd = -1;
        return dc_wrong(d, "close: %s", strerror(errno));
    }
    d->fd = open(d->o->path, O_RDWR);
    d->append = false;
    return d->fd < 0 ? dc_wrong(d, "open: %s", strerror(errno)) : dc_check_all(d);
}

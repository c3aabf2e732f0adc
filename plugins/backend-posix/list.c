/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing in the order of ids. Folders are hashed, so one scan of all names picks the smallest
 * WINDOW ids behind `after` and sorts them. The window is kept: a caller who pages through with
 * small pages scans once per window while no name comes or goes, and once per page otherwise.
 * Memory: 2 x WINDOW x 24 bytes.
 */
#include "posix_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW 131072u

static int cmp_id(const void *a, const void *b)
{
    return memcmp(a, b, HF_BE_ID_BYTES);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a folder entry is an object's; other files are left alone. */
static bool parse_name(const char *name, uint8_t *id)
{
    if (strlen(name) != (size_t)2 * HF_BE_ID_BYTES)
        return false;
    for (size_t i = 0; i < HF_BE_ID_BYTES; i++) {
        int hi = hex_digit(name[2 * i]), lo = hex_digit(name[2 * i + 1]);

        if (hi < 0 || lo < 0)
            return false;
        id[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

/* Calls fn for every object name of folder d, in no order. */
static int scan_dir(struct hf_be *be, unsigned d, void (*fn)(void *arg, const uint8_t *id),
                    void *arg)
{
    static const char hex[] = "0123456789abcdef";
    const char name[] = {hex[d >> 4], '/', hex[d & 15], '\0'};
    int fd = openat(be->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    uint8_t id[HF_BE_ID_BYTES];
    struct dirent *e;
    DIR *dir;

    if (fd < 0)
        return px_status(errno);
    dir = fdopendir(fd);
    if (!dir) {
        rc = px_status(errno);
        close(fd);
        return rc;
    }
    errno = 0;
    while ((e = readdir(dir)) != NULL) {
        if (parse_name(e->d_name, id) && px_dir_of(id) == d)
            fn(arg, id);
    }
    rc = errno ? px_status(errno) : 0;
    closedir(dir);
    return rc;
}

static void count_one(void *arg, const uint8_t *id)
{
    uint64_t *n = arg;

    (void)id;
    (*n)++;
}

int px_count(struct hf_be *be, uint64_t *ret)
{
    uint64_t n = 0;

    for (unsigned d = 0; d < PX_DIRS; d++) {
        int rc = scan_dir(be, d, count_one, &n);

        if (rc)
            return rc;
    }
    *ret = n;
    return 0;
}

struct gather {
    uint8_t (*ids)[HF_BE_ID_BYTES]; /* room for 2 x WINDOW */
    size_t n;
    const uint8_t *after;
    bool cut; /* some were left out because the window is full */
};

static void gather_one(void *arg, const uint8_t *id)
{
    struct gather *g = arg;

    if (g->after && memcmp(id, g->after, HF_BE_ID_BYTES) <= 0)
        return;
    if (g->cut && memcmp(id, g->ids[WINDOW - 1], HF_BE_ID_BYTES) >= 0)
        return; /* the first WINDOW are sorted once cut is set */
    memcpy(g->ids[g->n++], id, HF_BE_ID_BYTES);
    if (g->n == 2 * (size_t)WINDOW) {
        qsort(g->ids, g->n, sizeof(*g->ids), cmp_id);
        g->n = WINDOW;
        g->cut = true;
    }
}

/* Fills the window with the ids behind `after` (NULL: all). Called with list.lock held. */
static int window_fill(struct hf_be *be, const uint8_t *after)
{
    struct gather g = {.ids = be->list.ids, .after = after};
    uint64_t version = atomic_load(&be->version);

    be->list.valid = false;
    if (!g.ids) {
        g.ids = malloc(2 * (size_t)WINDOW * sizeof(*g.ids));
        if (!g.ids)
            return HF_BE_ENOMEM;
        be->list.ids = g.ids;
    }
    for (unsigned d = 0; d < PX_DIRS; d++) {
        int rc = scan_dir(be, d, gather_one, &g);

        if (rc)
            return rc;
    }
    qsort(g.ids, g.n, sizeof(*g.ids), cmp_id);
    if (g.n > WINDOW) {
        g.n = WINDOW;
        g.cut = true;
    }
    be->list.n = g.n;
    be->list.to_end = !g.cut;
    be->list.from_start = !after;
    if (after)
        memcpy(be->list.after, after, HF_BE_ID_BYTES);
    be->list.version = version;
    be->list.valid = true;
    return 0;
}

/* Whether the window still tells what comes behind `after`. */
static bool window_covers(const struct hf_be *be, const uint8_t *after)
{
    if (!be->list.valid || be->list.version != atomic_load(&be->version))
        return false;
    if (!after)
        return be->list.from_start;
    if (!be->list.from_start && memcmp(after, be->list.after, HF_BE_ID_BYTES) < 0)
        return false;
    return be->list.to_end ||
           (be->list.n > 0 && memcmp(after, be->list.ids[be->list.n - 1], HF_BE_ID_BYTES) < 0);
}

/* Index of the first id behind `after`. */
static size_t window_seek(const struct hf_be *be, const uint8_t *after)
{
    size_t lo = 0, hi = be->list.n;

    while (after && lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (memcmp(be->list.ids[mid], after, HF_BE_ID_BYTES) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Copies up to max ids behind `after`; *ret_end: none follow them. */
static int take(struct hf_be *be, const uint8_t *after, uint8_t (*out)[HF_BE_ID_BYTES], size_t max,
                size_t *ret_n, bool *ret_end)
{
    size_t at, n;
    int rc = 0;

    pthread_mutex_lock(&be->list.lock);
    if (!window_covers(be, after))
        rc = window_fill(be, after);
    if (rc == 0) {
        at = window_seek(be, after);
        n = be->list.n - at < max ? be->list.n - at : max;
        memcpy(out, be->list.ids + at, n * sizeof(*out));
        *ret_n = n;
        *ret_end = at + n == be->list.n && be->list.to_end;
    }
    pthread_mutex_unlock(&be->list.lock);
    return rc;
}

int px_list(struct hf_be *be, const uint8_t *after, int (*fn)(void *arg, const uint8_t *id),
            void *arg)
{
    enum { BATCH = 1024 };
    uint8_t(*ids)[HF_BE_ID_BYTES] = malloc(BATCH * sizeof(*ids)), last[HF_BE_ID_BYTES];
    bool end = false, stop = false;
    size_t n = 0;
    int rc = 0;

    if (!ids)
        return HF_BE_ENOMEM;
    while (!end && !stop) {
        rc = take(be, after, ids, BATCH, &n, &end);
        if (rc)
            break;
        for (size_t i = 0; i < n && !stop; i++)
            stop = fn(arg, ids[i]) != 0;
        if (n == 0)
            break;
        memcpy(last, ids[n - 1], HF_BE_ID_BYTES);
        after = last;
    }
    free(ids);
    return rc;
}

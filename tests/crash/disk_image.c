/* SPDX-License-Identifier: Apache-2.0
 *
 * From the model of a disk to a folder, and back again for comparing.
 */
#include "disk_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/nt.h"
#include "kill9.h"

#define HOLE 4096u /* zeros in units of this are left out of an image */

enum style { NOTHING, EVERYTHING, ANY }; /* of what is not durable */

struct image {
    struct disk *d;
    uint64_t *rng;
    enum style style;
};

static unsigned below(struct image *m, uint64_t n)
{
    return (unsigned)(k9_rand(m->rng) % n);
}

static void check(bool ok, const char *what)
{
    if (!ok)
        nt_fail(__FILE__, __LINE__, "image: %s: %s", what, strerror(errno));
}

static void put(int fd, const uint8_t *data, uint64_t len, uint64_t off)
{
    check(pwrite(fd, data, len, (off_t)off) == (ssize_t)len, "write");
}

static bool zeros(const uint8_t *p, size_t n)
{
    return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static void put_durable(int fd, const struct inode *in)
{
    for (size_t i = 0; i < in->npages; i++) {
        const uint8_t *p = in->pages[i];
        size_t from = 0, to;

        if (p == NULL || zeros(p, DISK_PAGE))
            continue;
        for (; from < DISK_PAGE; from = to) {
            to = from + HOLE;
            if (zeros(p + from, HOLE))
                continue;
            while (to < DISK_PAGE && !zeros(p + to, HOLE))
                to += HOLE;
            put(fd, p + from, to - from, (uint64_t)i * DISK_PAGE + from);
        }
    }
    check(ftruncate(fd, (off_t)in->size) == 0, "size");
}

/* Sectors [from, to) of a write, cut to it. */
static void put_sectors(int fd, const struct change *c, uint64_t from, uint64_t to)
{
    uint64_t a = from * DISK_SECTOR, b = to * DISK_SECTOR;

    if (a < c->off)
        a = c->off;
    if (b > c->off + c->len)
        b = c->off + c->len;
    if (a < b)
        put(fd, c->data + (a - c->off), b - a, a);
}

static void put_torn(struct image *m, int fd, const struct change *c)
{
    uint64_t first = c->off / DISK_SECTOR, end = (c->off + c->len - 1) / DISK_SECTOR + 1;
    unsigned odds;

    m->d->stats.torn++;
    if (below(m, 2) == 0) { /* its beginning */
        put_sectors(fd, c, first, first + below(m, end - first + 1));
        return;
    }
    odds = 1 + below(m, 7); /* of 8, per sector */
    for (uint64_t s = first; s < end; s++) {
        uint64_t run = s;

        while (run < end && below(m, 8) < odds)
            run++;
        put_sectors(fd, c, s, run);
        s = run;
    }
}

static void put_change(int fd, const struct change *c)
{
    struct stat st;

    switch (c->kind) {
    case TR_WRITE:
        put(fd, c->data, c->len, c->off);
        break;
    case TR_TRUNCATE:
        check(ftruncate(fd, (off_t)c->off) == 0, "truncate");
        break;
    case TR_ALLOCATE:
        check(fstat(fd, &st) == 0, "stat");
        if ((uint64_t)st.st_size < c->off)
            check(ftruncate(fd, (off_t)c->off) == 0, "allocate");
        break;
    default:
        check(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)c->off,
                        (off_t)c->len) == 0,
              "punch");
        break;
    }
}

static void put_open_change(struct image *m, int fd, const struct change *c)
{
    unsigned how = m->style == NOTHING ? 0 : m->style == EVERYTHING ? 3 : below(m, 8);

    m->d->stats.open_writes++;
    if (how < 3)
        m->d->stats.left_out++;
    else if (how < 6 || c->kind != TR_WRITE)
        put_change(fd, c);
    else
        put_torn(m, fd, c);
}

static void put_file(struct image *m, int dirfd, const char *name, const struct inode *in)
{
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    check(fd >= 0, name);
    put_durable(fd, in);
    for (size_t i = 0; i < in->nchanges; i++) {
        if (in->changes[i].durable)
            put_change(fd, &in->changes[i]);
        else
            put_open_change(m, fd, &in->changes[i]);
    }
    close(fd);
}

static void put_dir(struct image *m, int fd, const struct inode *dir);

static void put_name(struct image *m, int dirfd, const struct name *n)
{
    int fd;

    if (!n->in->dir) {
        put_file(m, dirfd, n->text, n->in);
        return;
    }
    check(mkdirat(dirfd, n->text, 0700) == 0, n->text);
    fd = openat(dirfd, n->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(fd >= 0, n->text);
    put_dir(m, fd, n->in);
    close(fd);
}

static void put_dir(struct image *m, int fd, const struct inode *dir)
{
    size_t upto = m->style == NOTHING ? 0 : dir->nsteps;
    struct names l = {0};

    if (m->style == ANY && dir->nsteps > 0)
        upto = below(m, dir->nsteps + 1);
    m->d->stats.names_left_out += dir->nsteps - upto;
    for (unsigned i = 0; i < dir->durable.n; i++)
        disk_name_add(&l, dir->durable.v[i].text, strlen(dir->durable.v[i].text),
                      dir->durable.v[i].in);
    for (size_t i = 0; i < upto; i++) {
        const struct name_change *s = &dir->steps[i];
        size_t len = strlen(s->n.text);

        if (s->add)
            disk_name_add(&l, s->n.text, len, s->n.in);
        else
            disk_name_del(&l, disk_find(&l, s->n.text, len));
    }
    for (unsigned i = 0; i < l.n; i++) {
        put_name(m, fd, &l.v[i]);
        free(l.v[i].text);
    }
    free(l.v);
}

void disk_image(struct disk *d, const char *dir, uint64_t *rng)
{
    struct image m = {.d = d, .rng = rng};
    unsigned how = below(&m, 8);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    check(fd >= 0, dir);
    m.style = how == 0 ? NOTHING : how == 1 ? EVERYTHING : ANY;
    put_dir(&m, fd, d->root);
    close(fd);
}

/* ---- comparing ---- */

static bool differs(const char *path, const char *what)
{
    printf("# replayed and real folder differ: %s: %s\n", path, what);
    return false;
}

static bool same_file(struct inode *in, int dirfd, const char *name, const char *path)
{
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    static const uint8_t none[DISK_PAGE];
    uint8_t page[DISK_PAGE];
    struct stat st;
    bool ok = true;

    check(fd >= 0 && fstat(fd, &st) == 0, path);
    for (size_t i = 0; i < in->nchanges; i++)
        disk_fold(in, &in->changes[i]);
    in->nchanges = 0;
    if ((uint64_t)st.st_size != in->size)
        ok = differs(path, "size");
    for (uint64_t off = 0; ok && off < in->size; off += DISK_PAGE) {
        uint64_t i = off / DISK_PAGE, n = in->size - off < DISK_PAGE ? in->size - off : DISK_PAGE;

        check(pread(fd, page, n, (off_t)off) == (ssize_t)n, path);
        if (memcmp(page, i < in->npages && in->pages[i] ? in->pages[i] : none, n) != 0)
            ok = strcmp(name, "lock.mdb") == 0 || differs(path, "content");
    }
    close(fd);
    return ok;
}

static bool same_dir(struct inode *dir, int fd, const char *path)
{
    DIR *list = fdopendir(fd);
    struct dirent *e;
    unsigned n = 0;
    bool ok = true;

    check(list != NULL, path);
    while (ok && (e = readdir(list)) != NULL) {
        struct name *name;
        char sub[1024];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            (path[0] == '\0' && strcmp(e->d_name, "run") == 0))
            continue;
        snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
        name = disk_find(&dir->live, e->d_name, strlen(e->d_name));
        n++;
        if (name == NULL)
            ok = differs(sub, "was not recorded");
        else if (name->in->dir)
            ok = same_dir(name->in,
                          openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
                          sub);
        else
            ok = same_file(name->in, fd, e->d_name, sub);
    }
    closedir(list);
    return ok && (n == dir->live.n || differs(path, "something is missing"));
}

bool disk_matches(struct disk *d, const char *dir)
{
    return same_dir(d->root, open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "");
}

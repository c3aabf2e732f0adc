/* SPDX-License-Identifier: Apache-2.0
 *
 * Random operations: a small alphabet, so that they meet each other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "holdfast/holdfast.h"
#include "model.h"

const char *const op_names[] = {
    "lookup",    "create", "mkdir", "mknod",    "symlink",  "link",     "unlink",      "rmdir",
    "rename",    "chmod",  "chown", "truncate", "open",     "close",    "write",       "read",
    "ftruncate", "punch",  "fstat", "readdir",  "setxattr", "getxattr", "removexattr", "access",
};

/* How often, of 1000. */
static const uint16_t weights[OP_KINDS] = {60, 90, 80, 15, 15, 40, 90, 40, 110, 40, 25, 30,
                                           60, 40, 90, 60, 20, 20, 20, 40, 25,  20, 10, 10};

const struct user users[USERS] = {
    {0, 0, 0, {0}},
    {1000, 1000, 1, {2000}},
    {1001, 1001, 1, {1000}},
    {1002, 2000, 0, {0}},
};

static const uint32_t modes[] = {0777, 0755, 0700, 0644, 0600,  0000,
                                 0770, 0070, 0007, 0555, 01777, 02775};

const char *name_text(unsigned name)
{
    static char longest[256], too_long[257];
    static const char *const names[NAMES - 2] = {"a",        "b",        "c",   "d", "A",
                                                 "\xc3\xa4", "\xc3\x84", "x y", "e", "f.txt"};

    if (name < NAMES - 2)
        return names[name];
    memset(longest, 'l', 255);
    memset(too_long, 't', 256);
    return name == NAMES - 2 ? longest : too_long;
}

uint64_t rng_next(uint64_t *rng)
{
    uint64_t z = *rng += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t below(uint64_t *rng, uint32_t n)
{
    return (uint32_t)(rng_next(rng) >> 33) % n;
}

static uint8_t pick_name(uint64_t *rng)
{
    uint32_t r = below(rng, 200);

    if (r == 0)
        return NAMES - 1;
    if (r < 4)
        return NAMES - 2;
    return (uint8_t)below(rng, r < 150 ? 4 : NAMES - 2);
}

static void pick_path(struct path *p, uint64_t *rng)
{
    static const uint8_t depths[] = {1, 1, 1, 2, 2, 2, 2, 3, 3, 4};

    p->n = depths[below(rng, sizeof(depths))];
    for (unsigned i = 0; i < p->n; i++)
        p->name[i] = pick_name(rng);
}

/* Around the borders: inline files, blocks. */
static uint32_t pick_size(uint64_t *rng)
{
    static const uint32_t marks[] = {0,    1,     100,   4096,  8191,  8192,
                                     8193, 20000, 65535, 65536, 65537, 130000};
    uint32_t size =
        marks[below(rng, sizeof(marks) / sizeof(marks[0]))] + below(rng, 5) * below(rng, 300);

    return size < DATA_MAX ? size : DATA_MAX;
}

static void pick_open(struct op *op, uint64_t *rng)
{
    static const uint32_t access_modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
    static const uint32_t more[] = {0, 0, 0, O_APPEND, O_TRUNC};

    op->flags = access_modes[below(rng, 4)] | more[below(rng, 5)];
    if ((op->flags & O_ACCMODE) == O_RDONLY)
        op->flags = O_RDONLY;
}

static uint8_t pick_kind(uint64_t *rng)
{
    uint32_t total = 0, r;
    uint8_t k = 0;

    for (unsigned i = 0; i < OP_KINDS; i++)
        total += weights[i];
    r = below(rng, total);
    while (r >= weights[k])
        r -= weights[k++];
    return k;
}

void op_random(struct op *op, uint64_t *rng)
{
    memset(op, 0, sizeof(*op));
    op->kind = pick_kind(rng);
    op->client = (uint8_t)below(rng, CLIENTS);
    op->user = below(rng, 2) ? 0 : (uint8_t)below(rng, USERS);
    op->slot = (uint8_t)below(rng, SLOTS);
    pick_path(&op->path, rng);
    pick_path(&op->to, rng);
    op->mode = modes[below(rng, sizeof(modes) / sizeof(modes[0]))];
    op->uid = below(rng, 3) ? users[below(rng, USERS)].uid : UINT32_MAX;
    op->gid = below(rng, 3) ? users[below(rng, USERS)].gid : UINT32_MAX;
    op->offset = below(rng, 4) ? pick_size(rng) : 0;
    op->len = pick_size(rng) / (1 + below(rng, 4));
    if (op->offset + op->len > DATA_MAX)
        op->len = DATA_MAX - op->offset;
    op->fill = (uint8_t)(1 + below(rng, 255));
    op->xattr = (uint8_t)below(rng, XATTRS);
    if (op->kind == OP_OPEN)
        pick_open(op, rng);
    else if (op->kind == OP_CREATE)
        op->flags = below(rng, 2) ? O_EXCL : 0;
    else if (op->kind == OP_RENAME)
        op->flags = below(rng, 3) ? 0 : below(rng, 2) ? HF_RENAME_EXCHANGE : HF_RENAME_NOREPLACE;
    else if (op->kind == OP_SETXATTR) {
        op->flags = below(rng, 2) ? 0 : below(rng, 2) ? XATTR_CREATE : XATTR_REPLACE;
        op->len = below(rng, XATTR_SIZE);
    } else if (op->kind == OP_ACCESS)
        op->mode = 1 + below(rng, 7);
}

static size_t path_text(const struct path *p, char *buf, size_t bytes)
{
    size_t n = 0;

    for (unsigned i = 0; i < p->n && n < bytes; i++)
        n += (size_t)snprintf(buf + n, bytes - n, "%s%s", i ? "/" : "",
                              p->name[i] < NAMES - 2    ? name_text(p->name[i])
                              : p->name[i] == NAMES - 2 ? "LONGEST"
                                                        : "TOOLONG");
    return n;
}

const char *op_text(const struct op *op, char *buf, size_t bytes)
{
    char path[128], to[128];

    path_text(&op->path, path, sizeof(path));
    path_text(&op->to, to, sizeof(to));
    (void)snprintf(
        buf, bytes,
        "client %u user %u %s %s to=%s slot=%u mode=%o uid=%d gid=%d flags=%#x offset=%u len=%u "
        "fill=%u xattr=%u",
        op->client, op->user, op_names[op->kind], path, to, op->slot, op->mode, (int)op->uid,
        (int)op->gid, op->flags, op->offset, op->len, op->fill, op->xattr);
    return buf;
}

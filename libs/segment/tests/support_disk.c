/* SPDX-License-Identifier: Apache-2.0 */
#include "support_disk.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/assert.h"
#include "holdfast/endian.h"

#define PIECE   65536u
#define PIECES  129u
#define OBJECTS 64u

/* Content as pieces that exist once written. */
struct content {
    uint8_t *piece[PIECES];
};

struct unsynced {
    struct unsynced *next;
    uint64_t offset;
    size_t len;
    uint8_t data[];
};

struct object {
    bool exists, name_durable;
    uint8_t id[HF_BE_ID_BYTES];
    uint64_t size;
    struct content now, durable;
    struct unsynced *head, **tail;
};

struct disk {
    struct object objects[OBJECTS];
};

struct hf_be {
    struct disk *disk;
    bool auto_run, dead;
    struct hf_be_io *queue[1024];
    unsigned nqueue;
    struct disk_counts counts;
    struct {
        uint32_t op;
        unsigned skip, times;
        int status;
    } fail;
};

static void content_write(struct content *c, uint64_t offset, const uint8_t *data, size_t len)
{
    while (len > 0) {
        size_t i = offset / PIECE, in = offset % PIECE, n = PIECE - in < len ? PIECE - in : len;

        cr_assert_lt(i, PIECES);
        if (!c->piece[i])
            c->piece[i] = calloc(1, PIECE);
        memcpy(c->piece[i] + in, data, n);
        offset += n;
        data += n;
        len -= n;
    }
}

static void content_read(const struct content *c, uint64_t offset, uint8_t *data, size_t len)
{
    while (len > 0) {
        size_t i = offset / PIECE, in = offset % PIECE, n = PIECE - in < len ? PIECE - in : len;

        if (i < PIECES && c->piece[i])
            memcpy(data, c->piece[i] + in, n);
        else
            memset(data, 0, n);
        offset += n;
        data += n;
        len -= n;
    }
}

static void content_copy(struct content *to, const struct content *from)
{
    for (unsigned i = 0; i < PIECES; i++) {
        if (from->piece[i])
            content_write(to, (uint64_t)i * PIECE, from->piece[i], PIECE);
    }
}

static void object_clear(struct object *o)
{
    struct unsynced *u;

    while ((u = o->head) != NULL) {
        o->head = u->next;
        free(u);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        free(o->now.piece[i]);
        free(o->durable.piece[i]);
    }
    memset(o, 0, sizeof(*o));
    o->tail = &o->head;
}

struct disk *disk_new(void)
{
    struct disk *d = calloc(1, sizeof(*d));

    cr_assert_not_null(d);
    for (unsigned i = 0; i < OBJECTS; i++)
        d->objects[i].tail = &d->objects[i].head;
    return d;
}

void disk_free(struct disk *d)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        object_clear(&d->objects[i]);
    free(d);
}

static struct object *find(struct disk *d, const uint8_t *id, bool create)
{
    struct object *unused = NULL;

    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *o = &d->objects[i];

        if (o->exists && memcmp(o->id, id, HF_BE_ID_BYTES) == 0)
            return o;
        if (!o->exists && !unused)
            unused = o;
    }
    if (!create)
        return NULL;
    cr_assert_not_null(unused);
    unused->exists = true;
    memcpy(unused->id, id, HF_BE_ID_BYTES);
    return unused;
}

static void object_write(struct object *o, uint64_t offset, const void *data, size_t len)
{
    struct unsynced *u = malloc(sizeof(*u) + len);

    cr_assert_not_null(u);
    *u = (struct unsynced){.offset = offset, .len = len};
    if (data)
        memcpy(u->data, data, len);
    else
        memset(u->data, 0, len);
    *o->tail = u;
    o->tail = &u->next;
    content_write(&o->now, offset, u->data, len);
    if (data && offset + len > o->size)
        o->size = offset + len;
}

static void object_sync(struct object *o)
{
    struct unsynced *u;

    while ((u = o->head) != NULL) {
        content_write(&o->durable, u->offset, u->data, u->len);
        o->head = u->next;
        free(u);
    }
    o->tail = &o->head;
    o->name_durable = true;
}

/* One unit (page or sector) of the image: the durable bytes and a random number of the writes
 * since. */
static void crash_unit(struct object *to, const struct object *o, uint64_t at, size_t len,
                       uint64_t *rng)
{
    unsigned n = 0, keep;
    uint8_t b[4096];

    for (const struct unsynced *u = o->head; u; u = u->next)
        n += u->offset < at + len && at < u->offset + u->len;
    if (n == 0)
        return;
    keep = (unsigned)(disk_rand(rng) % (n + 1));
    content_read(&o->durable, at, b, len);
    for (const struct unsynced *u = o->head; u && keep > 0; u = u->next) {
        uint64_t from = u->offset > at ? u->offset : at;
        uint64_t to_end = u->offset + u->len < at + len ? u->offset + u->len : at + len;

        if (from >= to_end)
            continue;
        memcpy(b + (from - at), u->data + (from - u->offset), to_end - from);
        keep--;
    }
    content_write(&to->now, at, b, len);
}

static void crash_object(struct object *to, const struct object *o, uint64_t *rng, bool torn)
{
    content_copy(&to->now, &o->durable);
    for (unsigned i = 0; i < PIECES; i++) {
        if (!o->now.piece[i])
            continue;
        for (uint64_t page = (uint64_t)i * PIECE; page < (uint64_t)(i + 1) * PIECE; page += 4096) {
            bool split = torn && disk_rand(rng) % 4 == 0;

            for (unsigned k = 0; k < (split ? 8u : 1u); k++)
                crash_unit(to, o, page + k * 512u, split ? 512 : 4096, rng);
        }
    }
}

struct disk *disk_crash(const struct disk *d, uint64_t *rng, bool torn)
{
    struct disk *to = disk_new();

    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct object *o = &d->objects[i];
        struct object *t = &to->objects[i];

        if (!o->exists || (!o->name_durable && disk_rand(rng) % 2))
            continue;
        t->exists = t->name_durable = true;
        memcpy(t->id, o->id, sizeof(t->id));
        t->size = o->size;
        crash_object(t, o, rng, torn);
        content_copy(&t->durable, &t->now);
    }
    return to;
}

struct disk *disk_clone(const struct disk *d)
{
    struct disk *to = disk_new();

    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct object *o = &d->objects[i];
        struct object *t = &to->objects[i];

        if (!o->exists)
            continue;
        t->exists = true;
        t->name_durable = o->name_durable;
        memcpy(t->id, o->id, sizeof(t->id));
        content_copy(&t->durable, &o->durable);
        content_copy(&t->now, &o->durable);
        for (const struct unsynced *u = o->head; u; u = u->next)
            object_write(t, u->offset, u->data, u->len);
        t->size = o->size;
    }
    return to;
}

void disk_rot(struct disk *d, uint64_t ino, uint64_t offset)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *o = &d->objects[i];

        if (o->exists && hf_get_be64(o->id) == ino) {
            cr_assert_not_null(o->now.piece[offset / PIECE]);
            o->now.piece[offset / PIECE][offset % PIECE] ^= 4;
            return;
        }
    }
    cr_assert_fail("no such object");
}

static int run(struct hf_be *be, struct hf_be_io *io)
{
    struct object *o = find(be->disk, io->id, io->op == HF_BE_WRITE);

    if (be->fail.times > 0 && be->fail.op == io->op) {
        if (be->fail.skip > 0) {
            be->fail.skip--;
        } else {
            be->fail.times--;
            return be->fail.status;
        }
    }
    if (!o)
        return io->op == HF_BE_DELETE ? 0 : HF_BE_ENOENT;
    switch (io->op) {
    case HF_BE_READ:
        content_read(&o->now, io->offset, io->data, io->len);
        return 0;
    case HF_BE_WRITE:
        object_write(o, io->offset, io->data, io->len);
        return 0;
    case HF_BE_SYNC:
        object_sync(o);
        return 0;
    case HF_BE_TRUNCATE:
        if (io->offset < o->size)
            object_write(o, io->offset, NULL, o->size - io->offset);
        o->size = io->offset;
        return 0;
    case HF_BE_PUNCH:
        object_write(o, io->offset, NULL, io->len);
        return 0;
    case HF_BE_DELETE:
        object_clear(o);
        return 0;
    case HF_BE_STAT:
        io->size = io->allocated = o->size;
        return 0;
    default:
        return HF_BE_EINVAL;
    }
}

static void finish(struct hf_be *be, struct hf_be_io *io)
{
    if (io->op < HF_ARRAY_LEN(be->counts.ops))
        be->counts.ops[io->op]++;
    if (io->op == HF_BE_READ && io->len > be->counts.largest_read)
        be->counts.largest_read = io->len;
    if (io->op == HF_BE_WRITE && io->len > be->counts.largest_write)
        be->counts.largest_write = io->len;
    io->status = be->dead ? HF_BE_EIO : run(be, io);
    io->done(io);
}

static void disk_submit(struct hf_be *be, struct hf_be_io *io)
{
    if (be->auto_run || be->dead) {
        finish(be, io);
        return;
    }
    cr_assert_lt(be->nqueue, HF_ARRAY_LEN(be->queue));
    be->queue[be->nqueue++] = io;
}

bool disk_step(struct hf_plug_be *pbe, uint64_t *rng)
{
    struct hf_be *be = hf_plug_handle(pbe);
    struct hf_be_io *io;
    unsigned i;

    if (be->nqueue == 0)
        return false;
    i = (unsigned)(disk_rand(rng) % be->nqueue);
    io = be->queue[i];
    be->queue[i] = be->queue[--be->nqueue];
    finish(be, io);
    return true;
}

void disk_kill(struct hf_plug_be *pbe)
{
    struct hf_be *be = hf_plug_handle(pbe);

    be->dead = true;
    while (be->nqueue > 0)
        finish(be, be->queue[--be->nqueue]);
}

struct disk_counts *disk_counts(struct hf_plug_be *pbe)
{
    return &hf_plug_handle(pbe)->counts;
}

void disk_fail(struct hf_plug_be *pbe, uint32_t op, unsigned skip, unsigned times, int status)
{
    struct hf_be *be = hf_plug_handle(pbe);

    be->fail.op = op;
    be->fail.skip = skip;
    be->fail.times = times;
    be->fail.status = status;
}

static int rec_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    (void)o;
    (void)err;
    (void)err_bytes;
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : HF_BE_ENOMEM;
}

static void rec_close(struct hf_be *be)
{
    cr_assert_eq(be->nqueue, 0);
    free(be);
}

static int rec_space(struct hf_be *be, struct hf_be_space *ret)
{
    (void)be;
    *ret = (struct hf_be_space){.capacity_bytes = 1000, .free_bytes = 400, .objects = 0};
    return 0;
}

static int cmp_id(const void *a, const void *b)
{
    return memcmp(a, b, HF_BE_ID_BYTES);
}

static int rec_list(struct hf_be *be, const uint8_t *after, int (*fn)(void *arg, const uint8_t *id),
                    void *arg)
{
    uint8_t ids[OBJECTS][HF_BE_ID_BYTES];
    unsigned n = 0;

    for (unsigned i = 0; i < OBJECTS; i++) {
        if (be->disk->objects[i].exists &&
            (!after || memcmp(be->disk->objects[i].id, after, HF_BE_ID_BYTES) > 0))
            memcpy(ids[n++], be->disk->objects[i].id, HF_BE_ID_BYTES);
    }
    qsort(ids, n, sizeof(ids[0]), cmp_id);
    for (unsigned i = 0; i < n; i++) {
        if (fn(arg, ids[i]))
            break;
    }
    return 0;
}

static const struct hf_backend_ops ops = {
    .struct_size = sizeof(ops),
    .abi_major = HF_BE_ABI_MAJOR,
    .name = "disk",
    .caps = HF_BE_CAP_PERSISTENT | HF_BE_CAP_PUNCH,
    .open = rec_open,
    .close = rec_close,
    .submit = disk_submit,
    .space = rec_space,
    .list = rec_list,
};

struct hf_plug_be *disk_open(struct disk *d, bool auto_run)
{
    struct hf_be_opts o = {.struct_size = sizeof(o)};
    struct hf_plug_be *be = NULL;
    char err[512];

    cr_assert_eq(hf_plug_open_ops(&ops, &o, &be, err, sizeof(err)), 0);
    hf_plug_handle(be)->disk = d;
    hf_plug_handle(be)->auto_run = auto_run;
    return be;
}

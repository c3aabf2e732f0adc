/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects in memory, for tests and simulation. Everything completes inside submit. Bytes are kept
 * in pages of 64 KiB that exist once written, so holes cost nothing. Argument: capacity=BYTES
 * (default 1 TiB), beyond which writes say ENOSPC.
 */
#include <holdfast/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 65536u
#define BUCKETS    4096u

struct object {
    struct object *next;
    uint8_t id[HF_BE_ID_BYTES];
    uint64_t size;
    uint8_t **pages; /* npages pointers, NULL = hole */
    size_t npages;
};

struct hf_be {
    pthread_mutex_t lock; /* guards everything below */
    struct object *buckets[BUCKETS];
    uint64_t capacity, used, objects;
};

static unsigned bucket(const uint8_t *id)
{
    uint32_t h = 2166136261u;

    for (unsigned i = 0; i < HF_BE_ID_BYTES; i++)
        h = (h ^ id[i]) * 16777619u;
    return (h ^ (h >> 15)) % BUCKETS;
}

static struct object *find(struct hf_be *be, const uint8_t *id)
{
    struct object *o = be->buckets[bucket(id)];

    while (o && memcmp(o->id, id, HF_BE_ID_BYTES) != 0)
        o = o->next;
    return o;
}

static void page_drop(struct hf_be *be, struct object *o, size_t i)
{
    if (o->pages[i]) {
        free(o->pages[i]);
        o->pages[i] = NULL;
        be->used -= PAGE_BYTES;
    }
}

static struct object *create(struct hf_be *be, const uint8_t *id)
{
    unsigned b = bucket(id);
    struct object *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    memcpy(o->id, id, HF_BE_ID_BYTES);
    o->next = be->buckets[b];
    be->buckets[b] = o;
    be->objects++;
    return o;
}

/* Makes every page of [offset, offset+len) exist, or changes nothing that a reader can see. */
static int pages_make(struct hf_be *be, struct object *o, uint64_t offset, size_t len)
{
    size_t first = (size_t)(offset / PAGE_BYTES), last = (size_t)((offset + len - 1) / PAGE_BYTES);

    if (last >= o->npages) {
        uint8_t **p = realloc(o->pages, (last + 1) * sizeof(*p));

        if (!p)
            return HF_BE_ENOMEM;
        memset(p + o->npages, 0, (last + 1 - o->npages) * sizeof(*p));
        o->pages = p;
        o->npages = last + 1;
    }
    for (size_t i = first; i <= last; i++) {
        if (o->pages[i])
            continue;
        if (be->used + PAGE_BYTES > be->capacity)
            return HF_BE_ENOSPC;
        o->pages[i] = calloc(1, PAGE_BYTES);
        if (!o->pages[i])
            return HF_BE_ENOMEM;
        be->used += PAGE_BYTES;
    }
    return 0;
}

/* The part of a range that lies in its first page. */
static size_t first_piece(uint64_t offset, size_t len, size_t *ret_page, size_t *ret_in)
{
    size_t in = (size_t)(offset % PAGE_BYTES);

    *ret_page = (size_t)(offset / PAGE_BYTES);
    *ret_in = in;
    return PAGE_BYTES - in < len ? PAGE_BYTES - in : len;
}

/* The pages exist. */
static void copy_in(struct object *o, uint64_t offset, const uint8_t *data, size_t len)
{
    for (size_t page, in, n; len > 0; data += n, offset += n, len -= n) {
        n = first_piece(offset, len, &page, &in);
        memcpy(o->pages[page] + in, data, n);
    }
}

/* Missing pages read as zeros. */
static void copy_out(const struct object *o, uint64_t offset, uint8_t *data, size_t len)
{
    for (size_t page, in, n; len > 0; data += n, offset += n, len -= n) {
        n = first_piece(offset, len, &page, &in);
        if (page < o->npages && o->pages[page])
            memcpy(data, o->pages[page] + in, n);
        else
            memset(data, 0, n);
    }
}

/* Missing pages stay holes. */
static void zero(struct object *o, uint64_t offset, size_t len)
{
    for (size_t page, in, n; len > 0; offset += n, len -= n) {
        n = first_piece(offset, len, &page, &in);
        if (page < o->npages && o->pages[page])
            memset(o->pages[page] + in, 0, n);
    }
}

static int do_write(struct hf_be *be, const struct hf_be_io *io)
{
    struct object *o = find(be, io->id);
    int rc;

    if (!o)
        o = create(be, io->id);
    if (!o)
        return HF_BE_ENOMEM;
    if (io->len == 0)
        return 0;
    rc = pages_make(be, o, io->offset, io->len);
    if (rc)
        return rc;
    copy_in(o, io->offset, io->data, io->len);
    if (io->offset + io->len > o->size)
        o->size = io->offset + io->len;
    return 0;
}

static void do_truncate(struct hf_be *be, struct object *o, uint64_t size)
{
    if (size < o->size) {
        size_t keep = (size_t)((size + PAGE_BYTES - 1) / PAGE_BYTES);

        for (size_t i = keep; i < o->npages; i++)
            page_drop(be, o, i);
        if (size % PAGE_BYTES)
            zero(o, size, (size_t)(PAGE_BYTES - size % PAGE_BYTES));
    }
    o->size = size;
}

static void do_punch(struct hf_be *be, struct object *o, uint64_t offset, size_t len)
{
    zero(o, offset, len);
    for (size_t i = 0; i < o->npages; i++) {
        if ((uint64_t)i * PAGE_BYTES >= offset && (uint64_t)(i + 1) * PAGE_BYTES <= offset + len)
            page_drop(be, o, i);
    }
}

static uint64_t allocated(const struct object *o)
{
    uint64_t n = 0;

    for (size_t i = 0; i < o->npages; i++)
        n += o->pages[i] ? PAGE_BYTES : 0;
    return n;
}

static uint64_t do_delete(struct hf_be *be, const uint8_t *id)
{
    struct object **at = &be->buckets[bucket(id)], *o;
    uint64_t freed;

    while (*at && memcmp((*at)->id, id, HF_BE_ID_BYTES) != 0)
        at = &(*at)->next;
    o = *at;
    if (!o)
        return 0;
    *at = o->next;
    freed = allocated(o);
    do_truncate(be, o, 0);
    free(o->pages);
    free(o);
    be->objects--;
    return freed;
}

static int run(struct hf_be *be, struct hf_be_io *io)
{
    struct object *o;

    if (io->offset > HF_BE_OBJECT_MAX || io->len > HF_BE_OBJECT_MAX - io->offset)
        return HF_BE_EINVAL;
    if (io->op == HF_BE_WRITE)
        return do_write(be, io);
    if (io->op == HF_BE_DELETE) {
        io->allocated = do_delete(be, io->id);
        return 0;
    }
    o = find(be, io->id);
    if (!o)
        return HF_BE_ENOENT;
    switch (io->op) {
    case HF_BE_READ:
        copy_out(o, io->offset, io->data, io->len);
        return 0;
    case HF_BE_SYNC:
        return 0;
    case HF_BE_TRUNCATE:
        do_truncate(be, o, io->offset);
        return 0;
    case HF_BE_PUNCH:
        do_punch(be, o, io->offset, io->len);
        return 0;
    case HF_BE_STAT:
        io->size = o->size;
        io->allocated = allocated(o);
        return 0;
    default:
        return HF_BE_EINVAL;
    }
}

static void mem_submit(struct hf_be *be, struct hf_be_io *io)
{
    pthread_mutex_lock(&be->lock);
    io->status = run(be, io);
    pthread_mutex_unlock(&be->lock);
    io->done(io);
}

static int mem_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    struct hf_be *be;
    uint64_t capacity = 1ull << 40;

    if (o->args && *o->args) {
        char *end = NULL;

        errno = 0;
        if (strncmp(o->args, "capacity=", 9) == 0)
            capacity = strtoull(o->args + 9, &end, 10);
        if (!end || *end != '\0' || end == o->args + 9 || errno) {
            (void)snprintf(err, err_bytes, "mem: '%s' is not capacity=BYTES", o->args);
            return HF_BE_EINVAL;
        }
    }
    be = calloc(1, sizeof(*be));
    if (!be) {
        (void)snprintf(err, err_bytes, "mem: out of memory");
        return HF_BE_ENOMEM;
    }
    be->capacity = capacity;
    pthread_mutex_init(&be->lock, NULL);
    *ret = be;
    return 0;
}

static void mem_close(struct hf_be *be)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (be->buckets[i])
            do_delete(be, be->buckets[i]->id);
    }
    pthread_mutex_destroy(&be->lock);
    free(be);
}

static int mem_space(struct hf_be *be, struct hf_be_space *ret)
{
    pthread_mutex_lock(&be->lock);
    ret->capacity_bytes = be->capacity;
    ret->free_bytes = be->used < be->capacity ? be->capacity - be->used : 0;
    ret->objects = be->objects;
    ret->domain = 0;
    pthread_mutex_unlock(&be->lock);
    return 0;
}

static int cmp_id(const void *a, const void *b)
{
    return memcmp(a, b, HF_BE_ID_BYTES);
}

/* Lists from a sorted copy of the names, so that fn may use the backend. */
static int mem_list(struct hf_be *be, const uint8_t *after, int (*fn)(void *arg, const uint8_t *id),
                    void *arg)
{
    uint8_t(*ids)[HF_BE_ID_BYTES];
    size_t n = 0;

    pthread_mutex_lock(&be->lock);
    ids = malloc((be->objects + 1) * sizeof(*ids));
    for (unsigned i = 0; ids && i < BUCKETS; i++) {
        for (struct object *o = be->buckets[i]; o; o = o->next) {
            if (!after || memcmp(o->id, after, HF_BE_ID_BYTES) > 0)
                memcpy(ids[n++], o->id, HF_BE_ID_BYTES);
        }
    }
    pthread_mutex_unlock(&be->lock);
    if (!ids)
        return HF_BE_ENOMEM;
    qsort(ids, n, sizeof(*ids), cmp_id);
    for (size_t i = 0; i < n; i++) {
        if (fn(arg, ids[i]))
            break;
    }
    free(ids);
    return 0;
}

static const struct hf_backend_ops ops = {
    .struct_size = sizeof(ops),
    .abi_major = HF_BE_ABI_MAJOR,
    .abi_minor = HF_BE_ABI_MINOR,
    .name = "mem",
    .caps = HF_BE_CAP_PUNCH,
    .open = mem_open,
    .close = mem_close,
    .submit = mem_submit,
    .space = mem_space,
    .list = mem_list,
};

const struct hf_backend_ops *hf_backend_plugin(void);
__attribute__((visibility("default"))) const struct hf_backend_ops *hf_backend_plugin(void)
{
    return &ops;
}

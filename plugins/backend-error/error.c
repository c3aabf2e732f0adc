/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands on another backend and makes its operations fail. Arguments, joined by commas:
 *   op=read|write|sync|truncate|punch|delete|stat|any   which operations count (default any)
 *   after=N      the first N of them pass (default 0)
 *   every=N      of the rest each Nth is hit (default 1: all)
 *   times=N      at most N are hit (default: no limit)
 *   status=EIO|ENOSPC|ENOMEM|ENOENT   how a hit ends, without reaching the backend below
 *   flip=1       instead: a hit READ succeeds with one bit of its data flipped
 * With neither status nor flip nothing is hit.
 */
#include <holdfast/backend.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_be {
    const struct hf_backend_ops *lower_ops;
    struct hf_be *lower;
    uint32_t op; /* 0 = any */
    uint64_t after, every, times;
    int32_t status;
    bool flip;
    atomic_uint_fast64_t seen, hits;
};

/* An io of ours on the backend below, on behalf of io. */
struct inner {
    struct hf_be_io io;
    struct hf_be_io *outer;
    uint64_t flip_at; /* bit number + 1, 0 = leave the data alone */
};

static const struct {
    const char *name;
    uint32_t op;
} op_names[] = {
    {"any", 0},
    {"read", HF_BE_READ},
    {"write", HF_BE_WRITE},
    {"sync", HF_BE_SYNC},
    {"truncate", HF_BE_TRUNCATE},
    {"punch", HF_BE_PUNCH},
    {"delete", HF_BE_DELETE},
    {"stat", HF_BE_STAT},
};

static const struct {
    const char *name;
    int32_t status;
} status_names[] = {
    {"EIO", HF_BE_EIO},
    {"ENOSPC", HF_BE_ENOSPC},
    {"ENOMEM", HF_BE_ENOMEM},
    {"ENOENT", HF_BE_ENOENT},
};

/* Whether this operation is one to hit; *ret_n: its number among the hits. */
static bool hit(struct hf_be *be, uint32_t op, uint64_t *ret_n)
{
    uint64_t n;

    if (!be->status && !be->flip)
        return false;
    if ((be->op && be->op != op) || (be->flip && op != HF_BE_READ))
        return false;
    n = atomic_fetch_add(&be->seen, 1);
    if (n < be->after || (n - be->after) % be->every != be->every - 1)
        return false;
    *ret_n = atomic_fetch_add(&be->hits, 1);
    return be->times == 0 || *ret_n < be->times;
}

static void inner_done(struct hf_be_io *io)
{
    struct inner *in = (struct inner *)(void *)((char *)io - offsetof(struct inner, io));
    struct hf_be_io *outer = in->outer;

    outer->status = io->status;
    outer->size = io->size;
    outer->allocated = io->allocated;
    if (in->flip_at && io->status == 0 && io->len > 0) {
        uint64_t bit = (in->flip_at - 1) % (io->len * 8u);

        ((uint8_t *)io->data)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    free(in);
    outer->done(outer);
}

static void error_submit(struct hf_be *be, struct hf_be_io *io)
{
    uint64_t n = 0;
    bool h = hit(be, io->op, &n);
    struct inner *in;

    if (h && !be->flip) {
        io->status = be->status;
        io->done(io);
        return;
    }
    in = malloc(sizeof(*in));
    if (!in) {
        io->status = HF_BE_ENOMEM;
        io->done(io);
        return;
    }
    in->io = *io;
    in->io.done = inner_done;
    in->outer = io;
    in->flip_at = h ? n * 7919 + 1 : 0;
    be->lower_ops->submit(be->lower, &in->io);
}

static int parse_u64(const char *v, uint64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoull(v, &end, 10);
    return errno || end == v || *end ? -1 : 0;
}

static int parse_one(struct hf_be *be, const char *key, const char *value)
{
    uint64_t n = 0;

    if (strcmp(key, "op") == 0) {
        for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
            if (strcmp(value, op_names[i].name) == 0) {
                be->op = op_names[i].op;
                return 0;
            }
        }
        return -1;
    }
    if (strcmp(key, "status") == 0) {
        for (size_t i = 0; i < sizeof(status_names) / sizeof(status_names[0]); i++) {
            if (strcmp(value, status_names[i].name) == 0) {
                be->status = status_names[i].status;
                return 0;
            }
        }
        return -1;
    }
    if (parse_u64(value, &n))
        return -1;
    if (strcmp(key, "after") == 0)
        be->after = n;
    else if (strcmp(key, "every") == 0 && n > 0)
        be->every = n;
    else if (strcmp(key, "times") == 0)
        be->times = n;
    else if (strcmp(key, "flip") == 0 && n <= 1)
        be->flip = n == 1;
    else
        return -1;
    return 0;
}

static int parse_args(struct hf_be *be, const char *args, char *err, size_t err_bytes)
{
    char text[512], *rest = text, *part;

    if (strlen(args) >= sizeof(text)) {
        (void)snprintf(err, err_bytes, "error: arguments are too long");
        return HF_BE_EINVAL;
    }
    memcpy(text, args, strlen(args) + 1);
    while ((part = strsep(&rest, ",")) != NULL) {
        char *value = strchr(part, '=');

        if (value)
            *value++ = '\0';
        if (!value || parse_one(be, part, value)) {
            (void)snprintf(err, err_bytes,
                           "error: argument '%.64s' is not known or its value is wrong", part);
            return HF_BE_EINVAL;
        }
    }
    return 0;
}

static int error_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    struct hf_be *be;
    int rc;

    if (!o->lower || !o->lower_ops) {
        (void)snprintf(err, err_bytes, "error: needs a backend below it");
        return HF_BE_EINVAL;
    }
    be = calloc(1, sizeof(*be));
    if (!be) {
        (void)snprintf(err, err_bytes, "error: out of memory");
        return HF_BE_ENOMEM;
    }
    be->lower = o->lower;
    be->lower_ops = o->lower_ops;
    be->every = 1;
    rc = o->args ? parse_args(be, o->args, err, err_bytes) : 0;
    if (rc) {
        free(be);
        return rc;
    }
    *ret = be;
    return 0;
}

static void error_close(struct hf_be *be)
{
    be->lower_ops->close(be->lower);
    free(be);
}

static int error_space(struct hf_be *be, struct hf_be_space *ret)
{
    return be->lower_ops->space(be->lower, ret);
}

static int error_list(struct hf_be *be, const uint8_t *after,
                      int (*fn)(void *arg, const uint8_t *id), void *arg)
{
    return be->lower_ops->list(be->lower, after, fn, arg);
}

static const struct hf_backend_ops ops = {
    .struct_size = sizeof(ops),
    .abi_major = HF_BE_ABI_MAJOR,
    .abi_minor = HF_BE_ABI_MINOR,
    .name = "error",
    .caps = HF_BE_CAP_STACKED,
    .open = error_open,
    .close = error_close,
    .submit = error_submit,
    .space = error_space,
    .list = error_list,
};

const struct hf_backend_ops *hf_backend_plugin(void);
__attribute__((visibility("default"))) const struct hf_backend_ops *hf_backend_plugin(void)
{
    return &ops;
}

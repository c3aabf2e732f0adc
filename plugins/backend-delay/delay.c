/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands on another backend and starts its operations later. Arguments, joined by commas:
 *   ms=N or us=N   how long an operation waits (default 1 ms)
 *   op=read|write|sync|truncate|punch|delete|stat|any   which ones (default any)
 * All wait equally long, so one queue in order of arrival is also one in order of time; one thread
 * starts what is due.
 */
#include <holdfast/backend.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct inner {
    struct inner *next;
    struct hf_be_io io;
    struct hf_be_io *outer;
    struct timespec due;
};

struct hf_be {
    const struct hf_backend_ops *lower_ops;
    struct hf_be *lower;
    uint32_t op; /* 0 = any */
    uint64_t delay_ns;
    pthread_t thread;
    pthread_mutex_t lock; /* guards head, tail, stop */
    pthread_cond_t cond;
    struct inner *head, **tail;
    bool stop;
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

static void inner_done(struct hf_be_io *io)
{
    struct inner *in = (struct inner *)(void *)((char *)io - offsetof(struct inner, io));
    struct hf_be_io *outer = in->outer;

    outer->status = io->status;
    outer->size = io->size;
    outer->allocated = io->allocated;
    free(in);
    outer->done(outer);
}

static bool reached(const struct timespec *t)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > t->tv_sec || (now.tv_sec == t->tv_sec && now.tv_nsec >= t->tv_nsec);
}

static void *delay_thread(void *arg)
{
    struct hf_be *be = arg;

    pthread_mutex_lock(&be->lock);
    while (!be->stop || be->head) {
        struct inner *in = be->head;

        if (!in) {
            pthread_cond_wait(&be->cond, &be->lock);
            continue;
        }
        if (!reached(&in->due)) {
            struct timespec due = in->due; /* a copy: the wait gives up the lock */

            pthread_cond_timedwait(&be->cond, &be->lock, &due);
            continue;
        }
        be->head = in->next;
        if (!be->head)
            be->tail = &be->head;
        pthread_mutex_unlock(&be->lock);
        be->lower_ops->submit(be->lower, &in->io);
        pthread_mutex_lock(&be->lock);
    }
    pthread_mutex_unlock(&be->lock);
    return NULL;
}

static void delay_submit(struct hf_be *be, struct hf_be_io *io)
{
    struct inner *in = malloc(sizeof(*in));

    if (!in) {
        io->status = HF_BE_ENOMEM;
        io->done(io);
        return;
    }
    in->io = *io;
    in->io.done = inner_done;
    in->outer = io;
    in->next = NULL;
    if (be->op && be->op != io->op) {
        be->lower_ops->submit(be->lower, &in->io);
        return;
    }
    pthread_mutex_lock(&be->lock);
    clock_gettime(CLOCK_MONOTONIC, &in->due);
    in->due.tv_sec += (time_t)(be->delay_ns / 1000000000u);
    in->due.tv_nsec += (long)(be->delay_ns % 1000000000u);
    if (in->due.tv_nsec >= 1000000000) {
        in->due.tv_nsec -= 1000000000;
        in->due.tv_sec++;
    }
    if (!be->head)
        pthread_cond_signal(&be->cond);
    *be->tail = in;
    be->tail = &in->next;
    pthread_mutex_unlock(&be->lock);
}

static int parse_one(struct hf_be *be, const char *key, const char *value)
{
    uint64_t n;
    char *end;

    if (strcmp(key, "op") == 0) {
        for (size_t i = 0; i < sizeof(op_names) / sizeof(op_names[0]); i++) {
            if (strcmp(value, op_names[i].name) == 0) {
                be->op = op_names[i].op;
                return 0;
            }
        }
        return -1;
    }
    errno = 0;
    n = strtoull(value, &end, 10);
    if (errno || end == value || *end || n > UINT64_C(3600) * 1000 * 1000)
        return -1;
    if (strcmp(key, "ms") == 0)
        be->delay_ns = n * 1000000;
    else if (strcmp(key, "us") == 0)
        be->delay_ns = n * 1000;
    else
        return -1;
    return 0;
}

static int parse_args(struct hf_be *be, const char *args, char *err, size_t err_bytes)
{
    char text[512], *rest = text, *part;

    if (strlen(args) >= sizeof(text)) {
        (void)snprintf(err, err_bytes, "delay: arguments are too long");
        return HF_BE_EINVAL;
    }
    memcpy(text, args, strlen(args) + 1);
    while ((part = strsep(&rest, ",")) != NULL) {
        char *value = strchr(part, '=');

        if (value)
            *value++ = '\0';
        if (!value || parse_one(be, part, value)) {
            (void)snprintf(err, err_bytes,
                           "delay: argument '%.64s' is not known or its value is wrong", part);
            return HF_BE_EINVAL;
        }
    }
    return 0;
}

static int delay_open(const struct hf_be_opts *o, struct hf_be **ret, char *err, size_t err_bytes)
{
    pthread_condattr_t ca;
    struct hf_be *be;
    int rc;

    if (!o->lower || !o->lower_ops) {
        (void)snprintf(err, err_bytes, "delay: needs a backend below it");
        return HF_BE_EINVAL;
    }
    be = calloc(1, sizeof(*be));
    if (!be) {
        (void)snprintf(err, err_bytes, "delay: out of memory");
        return HF_BE_ENOMEM;
    }
    be->lower = o->lower;
    be->lower_ops = o->lower_ops;
    be->delay_ns = 1000000;
    be->tail = &be->head;
    rc = o->args ? parse_args(be, o->args, err, err_bytes) : 0;
    if (rc) {
        free(be);
        return rc;
    }
    pthread_mutex_init(&be->lock, NULL);
    pthread_condattr_init(&ca);
    pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
    pthread_cond_init(&be->cond, &ca);
    pthread_condattr_destroy(&ca);
    if (pthread_create(&be->thread, NULL, delay_thread, be)) {
        (void)snprintf(err, err_bytes, "delay: cannot start a thread");
        pthread_cond_destroy(&be->cond);
        pthread_mutex_destroy(&be->lock);
        free(be);
        return HF_BE_ENOMEM;
    }
    *ret = be;
    return 0;
}

static void delay_close(struct hf_be *be)
{
    pthread_mutex_lock(&be->lock);
    be->stop = true;
    pthread_cond_signal(&be->cond);
    pthread_mutex_unlock(&be->lock);
    pthread_join(be->thread, NULL);
    be->lower_ops->close(be->lower);
    pthread_cond_destroy(&be->cond);
    pthread_mutex_destroy(&be->lock);
    free(be);
}

static int delay_space(struct hf_be *be, struct hf_be_space *ret)
{
    return be->lower_ops->space(be->lower, ret);
}

static int delay_list(struct hf_be *be, const uint8_t *after,
                      int (*fn)(void *arg, const uint8_t *id), void *arg)
{
    return be->lower_ops->list(be->lower, after, fn, arg);
}

static const struct hf_backend_ops ops = {
    .struct_size = sizeof(ops),
    .abi_major = HF_BE_ABI_MAJOR,
    .abi_minor = HF_BE_ABI_MINOR,
    .name = "delay",
    .caps = HF_BE_CAP_STACKED,
    .open = delay_open,
    .close = delay_close,
    .submit = delay_submit,
    .space = delay_space,
    .list = delay_list,
};

const struct hf_backend_ops *hf_backend_plugin(void);
__attribute__((visibility("default"))) const struct hf_backend_ops *hf_backend_plugin(void)
{
    return &ops;
}

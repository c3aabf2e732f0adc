/* SPDX-License-Identifier: Apache-2.0
 *
 * The FUSE device on the engines' loops. A loop takes up to BURST requests in a turn, so that what
 * they ask of the servers leaves in few messages; the answers are written by the callbacks.
 *
 * Every engine reads the same descriptor, not blocking: the kernel gives a request to one of them.
 *
 * A program that asks one small thing after the other (`ls -l`) has its answer from here, mostly
 * without a server, and asks again within microseconds. To sleep and be woken costs more than the
 * answer, so a channel that waits for no server looks again for a moment before it sleeps.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuse_priv.h"
#include "holdfast/assert.h"
#include "holdfast/err.h"
#include "holdfast/holdfast_loop.h"
#include "holdfast/list.h"

#define BURST      32u
#define SPARES_MAX 16u
#define LINGER_NS  UINT64_C(40000)

/* What a request came in. One is filled by the device; a request that needs its bytes longer takes
 * a reference, and then the channel goes on with another. */
struct request_buf {
    struct hf_list link;
    struct channel *channel;
    unsigned refs;
    struct fuse_buf buf;
};

struct channel {
    struct hf_fusesvc *svc;
    struct hf_loop *loop;
    struct event *event;
    struct hf_task start, stop;
    bool reading, gone;
    struct request_buf *current;
    struct hf_list spares;
    unsigned nspares;
};

static void buf_free(struct request_buf *b)
{
    free(b->buf.mem);
    free(b);
}

static struct request_buf *buf_get(struct channel *c)
{
    struct hf_list *l = hf_list_pop_front(&c->spares);
    struct request_buf *b;

    if (l) {
        c->nspares--;
        b = hf_container_of(l, struct request_buf, link);
    } else {
        b = calloc(1, sizeof(*b));
        if (!b)
            return NULL;
        hf_list_init(&b->link);
        b->channel = c;
    }
    b->refs = 1;
    return b;
}

/* Answers come on the engine that asked or on the object's own: with several engines a buffer may
 * come back on another thread, so it then goes to the heap and not to the spares. */
void request_buf_put(struct request_buf *b)
{
    struct channel *c = b->channel;

    if (c->svc->nchannels == 1) {
        if (--b->refs)
            return;
    } else if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    if (c->svc->nchannels == 1 && c->nspares < SPARES_MAX && !c->gone) {
        hf_list_push_front(&c->spares, &b->link);
        c->nspares++;
    } else {
        buf_free(b);
    }
}

static struct channel *channel_here(struct hf_fusesvc *s)
{
    for (unsigned i = 0; i < s->nchannels; i++)
        if (hf_loop_in_thread(s->channels[i].loop))
            return &s->channels[i];
    return NULL;
}

struct request_buf *request_buf_take(struct hf_fusesvc *s)
{
    struct channel *c = channel_here(s);

    HF_ASSERT(c && c->current);
    (void)__atomic_add_fetch(&c->current->refs, 1, __ATOMIC_RELAXED);
    return c->current;
}

static void ended(struct channel *c)
{
    struct hf_fusesvc *s = c->svc;

    if (!c->reading)
        return;
    c->reading = false;
    event_free(c->event);
    c->event = NULL;
    if (atomic_fetch_sub(&s->running, 1) == 1 && s->opts.ended && !atomic_load(&s->ending))
        s->opts.ended(s->opts.arg);
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* One request; false: there is none, or the mount is gone. */
static bool take(struct channel *c)
{
    struct fuse_session *se = c->svc->session;
    struct request_buf *b = buf_get(c);
    int n;

    if (!b)
        return false; /* the loop comes again */
    n = fuse_session_receive_buf(se, &b->buf);
    if (n > 0) {
        c->current = b;
        fuse_session_process_buf(se, &b->buf);
        c->current = NULL;
    }
    request_buf_put(b);
    if (fuse_session_exited(se) || n == 0 ||
        (n < 0 && n != -EAGAIN && n != -EINTR && n != -ENOENT)) {
        ended(c);
        return false;
    }
    return n > 0;
}

/* Looks again until there is a request; false: there was none for a while. */
static bool linger(struct channel *c)
{
    struct hf_env *env = c->svc->opts.env;
    uint64_t end = hf_env_mono_ns(env) + LINGER_NS;

    while (c->reading && hf_fs_in_flight(c->svc->fs) == 0 && hf_env_mono_ns(env) < end)
        if (take(c))
            return true;
    return false;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct channel *c = arg;

    (void)fd;
    (void)what;
    for (unsigned i = 0; i < BURST && c->reading; i++)
        if (!take(c) && !linger(c))
            break;
}

static void on_start(struct hf_task *t)
{
    struct channel *c = hf_container_of(t, struct channel, start);

    c->event = event_new(hf_loop_base(c->loop), fuse_session_fd(c->svc->session),
                         EV_READ | EV_PERSIST, on_ready, c);
    c->reading = true;
    if (!c->event || event_add(c->event, NULL)) {
        hf_log(c->svc->opts.log, HF_ERROR, "fuse", "the device cannot be watched");
        if (c->event)
            ended(c);
        else
            c->reading = false;
    }
}

int channels_start(struct hf_fusesvc *s)
{
    int fd = fuse_session_fd(s->session), flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return hf_err_from_errno(errno);
    s->channels = calloc(hf_fs_nloops(s->fs), sizeof(*s->channels));
    if (!s->channels)
        return HF_E_NOMEM;
    s->nchannels = hf_fs_nloops(s->fs);
    atomic_store(&s->running, s->nchannels);
    for (unsigned i = 0; i < s->nchannels; i++) {
        struct channel *c = &s->channels[i];

        c->svc = s;
        c->loop = hf_fs_loop(s->fs, i);
        hf_list_init(&c->spares);
        c->start.fn = on_start;
    }
    for (unsigned i = 0; i < s->nchannels; i++)
        hf_loop_post(s->channels[i].loop, &s->channels[i].start);
    return 0;
}

static void on_stop(struct hf_task *t)
{
    struct channel *c = hf_container_of(t, struct channel, stop);
    struct hf_fusesvc *s = c->svc;
    struct hf_list *l;

    ended(c);
    while ((l = hf_list_pop_front(&c->spares)))
        buf_free(hf_container_of(l, struct request_buf, link));
    pthread_mutex_lock(&s->lock);
    c->gone = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void channels_stop(struct hf_fusesvc *s)
{
    atomic_store(&s->ending, true);
    for (unsigned i = 0; i < s->nchannels; i++) {
        s->channels[i].stop.fn = on_stop;
        hf_loop_post(s->channels[i].loop, &s->channels[i].stop);
    }
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->nchannels; i++)
        while (!s->channels[i].gone)
            pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading calls. A readv fills first the rest of a record that is being gathered (so that WRITE
 * data goes from the socket to where it stays) and then the loop's common scratch memory, in which
 * small records are parsed where they are.
 *
 * A connection is paused, between two records only, while it has its fill of calls in progress or
 * of unsent replies, or while all requests together use their memory. What was read but not yet
 * parsed is then put aside (the stash, at most NFS_SCRATCH bytes). The flush at the end of each
 * turn looks at the paused ones again; so does the sweep.
 */
#include <errno.h>
#include <sys/uio.h>

#include "conn_priv.h"

/* While a large record streams in, only the start of the next is wanted in scratch memory. */
#define BIG_REST     (32u << 10)
#define BIG_REST_TOP (4u << 10)
#define READS_A_TURN 8

void nfs_conn_reading(struct nfs_conn *c, bool on)
{
    if (c->reading == on)
        return;
    if (on ? event_add(c->rd, NULL) : event_del(c->rd))
        c->broken = true;
    c->reading = on;
}

void nfs_conn_stash_drop(struct nfs_conn *c)
{
    free(c->stash);
    c->stash = NULL;
    c->stash_len = 0;
}

static bool may_start_call(const struct nfs_conn *c)
{
    const struct hf_nfssvc *s = c->svc;
    uint64_t out_max = s->o.max_reply_bytes;

    /* Many slow readers together: those who read fast hardly have anything unsent. */
    if (s->out_bytes >= s->o.max_request_bytes && out_max > NFS_REPLY_FLOOR)
        out_max = NFS_REPLY_FLOOR;
    return c->inflight < s->o.max_requests_per_connection &&
           evbuffer_get_length(c->out) + c->expected < out_max &&
           s->mem.in_use < s->o.max_request_bytes;
}

static void pause_reading(struct nfs_conn *c)
{
    if (c->paused)
        return;
    c->paused = true;
    hf_list_push_back(&c->svc->paused, &c->paused_link);
    hf_metric_add(&c->svc->m.read_pauses, 1);
    nfs_conn_reading(c, false);
}

/* Puts what is left aside. Not counted as requests' memory: stashes that wait for memory must not
 * be what uses it up. */
static void stash(struct nfs_conn *c, struct hf_slice rest)
{
    HF_ASSERT(!c->stash && rest.len > 0);
    c->stash = malloc(rest.len);
    if (!c->stash) {
        hf_metric_add(&c->svc->m.no_memory, 1);
        c->broken = true;
        nfs_conn_touch(c);
        return;
    }
    memcpy(c->stash, rest.data, rest.len);
    c->stash_len = rest.len;
}

/* true: go on with what follows. */
static bool take_result(struct nfs_conn *c, enum nfs_record_result res, struct nfs_record_out *out)
{
    struct hf_nfssvc *s = c->svc;

    switch (res) {
    case NFS_RECORD_READY:
        c->last_call_ns = c->record_since_ns = hf_loop_now_ns(s->loop);
        if (nfs_call(c, out))
            return !c->broken;
        nfs_conn_drain(c);
        return false;
    case NFS_RECORD_BAD:
        hf_metric_add(&s->m.bad_records, 1);
        nfs_conn_drain(c);
        return false;
    case NFS_RECORD_NOMEM:
        hf_metric_add(&s->m.no_memory, 1);
        c->broken = true;
        nfs_conn_touch(c);
        return false;
    case NFS_RECORD_MORE:
        break;
    }
    return false;
}

/* Runs the calls in `in`; pauses and puts the rest aside when a limit is reached. */
static void parse(struct nfs_conn *c, struct hf_slice in)
{
    struct nfs_record_out out = {0};

    while (in.len > 0) {
        if (nfs_record_at_boundary(&c->record)) {
            if (!may_start_call(c)) {
                pause_reading(c);
                stash(c, in);
                return;
            }
            c->record_since_ns = hf_loop_now_ns(c->svc->loop);
        }
        if (!take_result(c, nfs_record_feed(&c->record, &in, &out), &out))
            return;
    }
}

static void resume(struct nfs_conn *c)
{
    uint8_t *data = c->stash;
    size_t len = c->stash_len;

    c->paused = false;
    hf_list_remove(&c->paused_link);
    c->stash = NULL;
    c->stash_len = 0;
    if (data)
        parse(c, hf_slice(data, len));
    free(data);
    if (!c->paused && !c->draining && !c->broken)
        nfs_conn_reading(c, true);
}

void nfs_conn_resume_all(struct hf_nfssvc *s)
{
    struct hf_list again;
    struct hf_list *l;

    if (hf_list_empty(&s->paused))
        return;
    hf_list_init(&again);
    while ((l = hf_list_pop_front(&s->paused)) != NULL)
        hf_list_push_back(&again, l);
    while ((l = hf_list_pop_front(&again)) != NULL) {
        struct nfs_conn *c = hf_container_of(l, struct nfs_conn, paused_link);

        if (c->broken || c->draining || may_start_call(c))
            resume(c);
        else
            hf_list_push_back(&s->paused, l);
    }
}

/* The peer sends no more: what it asked for is still answered. */
static void on_end(struct nfs_conn *c, ssize_t n)
{
    if (n < 0) {
        c->broken = true;
        nfs_conn_touch(c);
        return;
    }
    nfs_conn_drain(c);
}

/* One read; true if there may be more. */
static bool read_once(struct nfs_conn *c)
{
    struct hf_nfssvc *s = c->svc;
    struct nfs_record_out out = {0};
    uint8_t *rest;
    size_t direct = nfs_record_space(&c->record, &rest);
    struct iovec iov[2] = {{direct ? rest : NULL, direct},
                           {s->scratch, direct > BIG_REST ? BIG_REST_TOP : NFS_SCRATCH}};
    ssize_t n = readv(c->fd, direct ? iov : iov + 1, direct ? 2 : 1);
    size_t got;

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            on_end(c, n);
        return false;
    }
    got = (size_t)n;
    hf_metric_add(&s->m.bytes_in, got);
    if (direct) {
        size_t used = got < direct ? got : direct;
        enum nfs_record_result res = nfs_record_filled(&c->record, used, &out);

        if (res != NFS_RECORD_MORE && !take_result(c, res, &out))
            return false;
        if (got > used)
            parse(c, hf_slice(s->scratch, got - used));
    } else {
        parse(c, hf_slice(s->scratch, got));
    }
    return got == direct + iov[1].iov_len && c->reading;
}

void nfs_conn_readable(evutil_socket_t fd, short what, void *arg)
{
    struct nfs_conn *c = arg;

    (void)fd;
    (void)what;
    for (int i = 0; i < READS_A_TURN && c->reading && !c->broken && read_once(c); i++)
        ;
}

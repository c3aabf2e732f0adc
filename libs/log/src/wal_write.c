/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer. It takes all appends queued since its last turn, encodes them into one buffer, writes
 * and syncs it once, and posts the done tasks: the slower the disk, the larger the groups. One
 * group is under way at a time, so what a crash leaves half-written is the last group of the last
 * file.
 *
 * After an error nothing more is ever written: the failed group, what is queued and what comes
 * later complete with the same status. What fdatasync failed for may or may not be on the disk, and
 * the kernel has dropped it from its list, so that a second fdatasync would lie.
 */
#include <stdlib.h>

#include "holdfast/crc32c.h"
#include "holdfast/endian.h"
#include "holdfast/err.h"
#include "wal_priv.h"

static size_t append_len(const struct hf_log_append *a)
{
    size_t len = 0;

    for (unsigned i = 0; i < a->nparts; i++)
        len += a->parts[i].len;
    return len;
}

static unsigned append_shard(const struct hf_log_append *a)
{
    return hf_container_of(a->log, struct wal_shard, log)->shard;
}

/* Adds a record's header and returns where its payload belongs. */
static int rec_begin(struct hf_wal *w, size_t len, uint8_t **ret_head)
{
    int rc = hf_buf_reserve(&w->buf, wal_rec_span(len));

    if (rc)
        return rc;
    *ret_head = w->buf.data + w->buf.len;
    memset(*ret_head + wal_rec_span(len) - 8, 0, 8);
    return 0;
}

static void rec_end(struct hf_wal *w, uint8_t *head, struct wal_rec *r)
{
    r->payload_crc = hf_crc32c(0, head + WAL_REC_BYTES, r->len);
    r->seq = w->cur->seq;
    r->group = w->off;
    wal_rec_encode(r, w->cur->salt, head);
    w->buf.len += wal_rec_span(r->len);
}

static int start_add(struct hf_wal *w)
{
    struct wal_rec r = {.shard = WAL_START, .len = 8 * w->o.shards, .pos = w->cur->seq};
    uint8_t *head;
    int rc = rec_begin(w, r.len, &head);

    if (rc)
        return rc;
    for (unsigned s = 0; s < w->o.shards; s++)
        hf_put_le64(head + WAL_REC_BYTES + 8 * (size_t)s, w->pos[s]);
    rec_end(w, head, &r);
    w->need_start = false;
    return 0;
}

static int append_add(struct hf_wal *w, const struct hf_log_append *a)
{
    struct wal_rec r = {.shard = append_shard(a), .len = (uint32_t)append_len(a), .pos = a->pos};
    uint8_t *head, *p;
    int rc = w->need_start ? start_add(w) : 0;

    if (rc == 0)
        rc = rec_begin(w, r.len, &head);
    if (rc)
        return rc;
    p = head + WAL_REC_BYTES;
    for (unsigned i = 0; i < a->nparts; i++) {
        if (a->parts[i].len)
            memcpy(p, a->parts[i].data, a->parts[i].len);
        p += a->parts[i].len;
    }
    rec_end(w, head, &r);
    w->pos[r.shard] = a->pos + 1;
    return 0;
}

static int group_write(struct hf_wal *w, uint64_t *ret_ns)
{
    uint64_t t0;
    int rc = hf_fault(w->o.faults, HF_FAULT_LOG_WRITE);

    if (rc == 0)
        rc = w->files->write(w->files, w->cur->fd, w->off, w->buf.data, w->buf.len);
    if (rc == 0)
        rc = hf_fault(w->o.faults, HF_FAULT_LOG_FSYNC);
    t0 = hf_env_mono_ns(w->env);
    if (rc == 0)
        rc = w->files->sync(w->files, w->cur->fd);
    *ret_ns = hf_env_mono_ns(w->env) - t0;
    return rc ? HF_E_IO : 0;
}

static void group_account(struct hf_wal *w, uint64_t records, uint64_t ns)
{
    w->st.records += records;
    w->st.bytes += w->buf.len;
    w->st.fsyncs++;
    w->st.fsync_ns_sum += ns;
    if (ns > w->st.fsync_ns_max)
        w->st.fsync_ns_max = ns;
}

static void die(struct hf_wal *w, int rc)
{
    pthread_mutex_lock(&w->lock);
    if (!w->dead)
        w->dead = rc;
    pthread_mutex_unlock(&w->lock);
}

/* Makes what was gathered durable and completes the appends from `first` up to `end` (not
 * included). */
static void group_flush(struct hf_wal *w, struct hf_log_append *first, struct hf_log_append *end)
{
    struct hf_log_append *a, *next;
    uint64_t ns = 0, n = 0;
    int status;

    for (a = first; a != end; a = a->next)
        n++;
    if (!w->dead && w->buf.len > 0) {
        int rc = group_write(w, &ns);

        if (rc) {
            die(w, rc);
        } else {
            pthread_mutex_lock(&w->lock);
            w->off += w->buf.len;
            w->cur->end_off = w->off;
            w->cur_left = w->cur->bytes - w->off;
            group_account(w, n, ns);
            pthread_mutex_unlock(&w->lock);
        }
    }
    hf_buf_reset(&w->buf);
    status = w->dead;
    for (a = first; a != end; a = next) {
        next = a->next; /* its owner may reuse it as soon as it is posted */
        a->status = status;
        hf_loop_post(a->loop, &a->done);
    }
}

/* The header alone, and durable, before any record: until then the file is what it was before. */
static int header_write(struct hf_wal *w, const struct wal_header *h)
{
    uint8_t sector[WAL_HEADER_BYTES];
    int rc;

    wal_header_encode(h, sector);
    rc = hf_fault(w->o.faults, HF_FAULT_LOG_HEADER);
    if (rc == 0)
        rc = w->files->write(w->files, w->cur->fd, 0, sector, sizeof(sector));
    if (rc == 0)
        rc = w->files->sync(w->files, w->cur->fd);
    if (rc)
        return HF_E_IO;
    pthread_mutex_lock(&w->lock);
    w->header_oldest = h->oldest;
    if (!hf_list_empty(&w->garbage))
        pthread_cond_signal(&w->prep_cond);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int wal_roll(struct hf_wal *w)
{
    struct wal_header h = {.shards = w->o.shards, .seq = 1, .oldest = 1};
    struct wal_file *f;
    uint64_t *start;
    int rc = hf_fault(w->o.faults, HF_FAULT_LOG_ROLL);

    if (rc)
        return rc;
    start = calloc(w->o.shards, sizeof(*start));
    if (!start)
        return HF_E_NOMEM;
    rc = wal_spare_take(w, &f);
    if (rc) {
        free(start);
        return rc;
    }
    memcpy(start, w->pos, w->o.shards * sizeof(*start));
    free(f->start);
    f->start = start;
    pthread_mutex_lock(&w->lock);
    if (w->cur) {
        h.seq = w->cur->seq + 1;
        h.oldest = hf_container_of(w->used.next, struct wal_file, link)->seq;
    }
    hf_list_push_back(&w->used, &f->link); /* before anything can fail: it has one owner */
    f->seq = h.seq;
    f->shards = h.shards;
    f->salt = h.salt = (uint32_t)hf_env_random_u64(w->env);
    f->end_off = WAL_DATA_OFF;
    w->cur_left = f->bytes - WAL_DATA_OFF;
    pthread_mutex_unlock(&w->lock);
    w->cur = f;
    w->off = WAL_DATA_OFF;
    w->need_start = true;
    return header_write(w, &h);
}

int wal_reshard(struct hf_wal *w)
{
    struct wal_header h = {.seq = w->cur->seq, .oldest = w->header_oldest, .salt = w->cur->salt};

    if (!w->need_start)
        return wal_roll(w);
    h.shards = w->cur->shards = w->o.shards;
    return header_write(w, &h);
}

static bool fits(const struct hf_wal *w, const struct hf_log_append *a)
{
    uint64_t need = wal_rec_span(append_len(a));

    if (w->need_start)
        need += wal_rec_span(8 * (size_t)w->o.shards);
    return w->off + w->buf.len + need <= w->cur->bytes;
}

void wal_write_list(struct hf_wal *w, struct hf_log_append *list)
{
    struct hf_log_append *first = list, *next;

    for (struct hf_log_append *a = list; a; a = next) {
        int rc = 0;

        next = a->next;
        if (!w->dead && w->buf.len > 0 &&
            (!fits(w, a) || w->buf.len + wal_rec_span(append_len(a)) > WAL_GROUP_BYTES)) {
            group_flush(w, first, a);
            first = a;
        }
        if (!w->dead && !fits(w, a)) {
            rc = wal_roll(w);
            if (!w->threads)
                wal_sweep(w);
        }
        if (!w->dead && rc == 0)
            rc = append_add(w, a);
        if (rc) {
            /* What was gathered before is complete and is still written. */
            group_flush(w, first, a);
            first = a;
            die(w, rc == HF_E_NOSPC ? HF_E_NOSPC : HF_E_IO);
        }
    }
    group_flush(w, first, NULL);
}

void *wal_writer_main(void *arg)
{
    struct hf_wal *w = arg;
    struct hf_log_append *list;

    pthread_setname_np(pthread_self(), "hf-wal");
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (!w->head && !w->stop) {
            w->writer_idle = true;
            pthread_cond_wait(&w->queue_cond, &w->lock);
        }
        w->writer_idle = false;
        list = w->head;
        w->head = NULL;
        w->tail = &w->head;
        pthread_mutex_unlock(&w->lock);
        if (!list)
            return NULL;
        wal_write_list(w, list);
    }
}

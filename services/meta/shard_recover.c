/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a shard: the store stands at its last checkpoint, the log is replayed from there, and the
 * result is checkpointed before the shard serves. Replaying is idempotent: killed anywhere in here,
 * the next start does the same again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/err.h"
#include "holdfast/wire/record.pb-c.h"
#include "shard.h"
#include "shard_batch.h"

#define REPLAY_CHECKPOINT 16384 /* puts and deletes between checkpoints while replaying */

struct replay {
    struct shard *s;
    uint64_t expect; /* the position that must come next */
    char *err;
    size_t err_bytes;
};

static int replay_record(void *arg, uint64_t pos, struct hf_slice rec)
{
    struct replay *r = arg;
    struct shard *s = r->s;
    Hf__Record *msg;
    int rc;

    if (pos != r->expect) {
        (void)snprintf(r->err, r->err_bytes,
                       "shard %" PRIu32 ": the log goes on at position %" PRIu64
                       " but the checkpoint needs %" PRIu64
                       "; the log files do not belong to this shard or some are missing",
                       s->conf.id, pos, r->expect);
        return HF_E_CORRUPT;
    }
    msg = hf__record__unpack(NULL, rec.len, rec.data);
    if (!msg || msg->version != 1) {
        rc = msg ? HF_E_VERSION : HF_E_CORRUPT;
        (void)snprintf(r->err, r->err_bytes, "shard %" PRIu32 ": log record %" PRIu64 ": %s",
                       s->conf.id, pos, msg ? "version not supported" : "does not parse");
    } else {
        rc = hf_fault(s->conf.faults, HF_FAULT_SHARD_REPLAY);
        if (rc == 0)
            rc = hf_store_redo_apply(s->store, hf_slice(msg->redo.data, msg->redo.len));
        if (rc)
            (void)snprintf(r->err, r->err_bytes, "shard %" PRIu32 ": log record %" PRIu64 ": %s",
                           s->conf.id, pos, hf_err_text(rc));
    }
    if (msg)
        hf__record__free_unpacked(msg, NULL);
    if (rc)
        return rc;
    r->expect = pos + 1;
    s->last_pos = pos;
    hf_metric_add(&s->conf.metrics->recovered, 1);
    if (hf_store_dirty(s->store) >= REPLAY_CHECKPOINT)
        rc = hf_store_checkpoint(s->store, pos);
    return rc;
}

/* Brings the store to the end of the log. */
static int replay(struct shard *s, char *err, size_t err_bytes)
{
    struct replay r = {
        .s = s, .expect = hf_store_applied(s->store) + 1, .err = err, .err_bytes = err_bytes};
    int rc;

    s->last_pos = hf_store_applied(s->store);
    err[0] = '\0';
    rc = hf_log_read(s->conf.wal, r.expect, replay_record, &r);
    if (rc == 0 && hf_store_dirty(s->store))
        rc = hf_store_checkpoint(s->store, s->last_pos);
    if (rc && err[0] == '\0')
        (void)snprintf(err, err_bytes, "shard %" PRIu32 ": replay failed: %s", s->conf.id,
                       hf_err_text(rc));
    if (rc == 0 && hf_log_end(s->conf.wal) != s->last_pos + 1) {
        (void)snprintf(err, err_bytes,
                       "shard %" PRIu32 ": the log ends at position %" PRIu64
                       " but the store holds %" PRIu64
                       "; the log files do not belong to this shard or some are missing",
                       s->conf.id, hf_log_end(s->conf.wal) - 1, s->last_pos);
        rc = HF_E_CORRUPT;
    }
    return rc;
}

static int format_if_new(struct shard *s, const struct hf_meta_format *format, char *err,
                         size_t err_bytes)
{
    int rc = hf_meta_is_formatted(s->store);

    if (rc != HF_E_NOENT || !format) {
        if (rc)
            (void)snprintf(err, err_bytes, "shard %" PRIu32 ": %s", s->conf.id,
                           rc == HF_E_NOENT ? "holds no file system" : hf_err_text(rc));
        return rc;
    }
    rc = hf_fault(s->conf.faults, HF_FAULT_SHARD_FORMAT);
    if (rc == 0)
        rc = hf_meta_format(s->store, format);
    if (rc == 0) /* the format is not in the log: the checkpoint makes it durable */
        rc = hf_store_checkpoint(s->store, hf_log_end(s->conf.wal) - 1);
    if (rc)
        (void)snprintf(err, err_bytes, "shard %" PRIu32 ": cannot make a new shard: %s", s->conf.id,
                       hf_err_text(rc));
    return rc;
}

/* fresh: the file system was never finished. Then a store that cannot be read, and whose log is
 * empty, was being made when the power failed: it is made anew. */
static int open_store(struct shard *s, bool fresh, char *err, size_t err_bytes)
{
    const struct hf_store_opts o = {
        .kind = HF_STORE_LMDB,
        .dir = s->conf.dir,
        .tables = hf_meta_tables,
        .ntables = hf_meta_ntables,
        .format = HF_META_FORMAT,
        .map_bytes = s->conf.map_bytes,
        .reserve_bytes = s->conf.reserve_bytes,
        .faults = s->conf.faults,
    };
    int rc = hf_store_open(&o, &s->store);

    if (rc == HF_E_CORRUPT && fresh && hf_log_end(s->conf.wal) == 1) {
        hf_log(s->conf.log, HF_WARN, "meta", "shard=%" PRIu32 ": was not finished; made anew",
               s->conf.id);
        rc = hf_store_discard(s->conf.dir);
        if (rc == 0)
            rc = hf_store_open(&o, &s->store);
    }
    if (rc)
        (void)snprintf(
            err, err_bytes, "shard %" PRIu32 ": cannot open %s: %s", s->conf.id, s->conf.dir,
            rc == HF_E_VERSION
                ? "it was written by another version of Holdfast (format not supported); "
                  "nothing was changed"
                : hf_err_text(rc));
    return rc;
}

int shard_open(const struct shard_conf *c, const struct hf_meta_format *format, struct shard **ret,
               char *err, size_t err_bytes)
{
    struct shard *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return HF_E_NOMEM;
    s->conf = *c;
    s->boot = hf_env_random_u64(c->env);
    s->random = hf_env_random_u64(c->env);
    rc = batch_init(s);
    if (rc)
        goto fail;
    rc = open_store(s, format != NULL, err, err_bytes);
    if (rc)
        goto fail;
    rc = format_if_new(s, format, err, err_bytes);
    if (rc)
        goto fail;
    rc = replay(s, err, err_bytes);
    if (rc)
        goto fail;
    hf_log_trim(c->wal, s->last_pos + 1);
    rc = hf_meta_open(
        &(struct hf_meta_opts){
            .store = s->store, .shard = c->id, .inline_max = c->inline_max, .noatime = c->noatime},
        &s->meta);
    if (rc) {
        (void)snprintf(err, err_bytes, "shard %" PRIu32 ": %s", c->id, hf_err_text(rc));
        goto fail;
    }
    *ret = s;
    return 0;
fail:
    shard_free(s);
    return rc;
}

void shard_free(struct shard *s)
{
    if (!s)
        return;
    batch_fini(s);
    if (s->meta)
        hf_meta_free(s->meta);
    if (s->store)
        hf_store_close(s->store);
    free(s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A wal with a loop for its completions. Records are a function of (shard, position), so that
 * whatever is read can be checked without keeping what was written.
 */
#ifndef HF_LOG_TESTS_SUPPORT_H
#define HF_LOG_TESTS_SUPPORT_H

#include <pthread.h>

#include "holdfast/log.h"
#include "wal_priv.h"

struct harness {
    struct hf_env *env;
    struct hf_loop *loop;
    char *dir;
    struct hf_wal_opts o;
    const struct wal_files *files; /* NULL: posix */
    struct hf_wal *w;
    char err[512];
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t cond;
    unsigned pending;
    int status;            /* the first that is not 0 */
    unsigned salt;         /* makes other content of the same length, see record_fill */
    uint64_t done_pos[64]; /* per shard: the last position that completed with 0 */
    void (*on_done)(struct harness *h, unsigned shard, uint64_t pos); /* on the loop's thread */
    void *arg;
};

/* shards: up to 64. Small files of 64 KiB, 1 MiB in all. */
struct harness *harness_new(unsigned shards);
void harness_free(struct harness *h);
int harness_open(struct harness *h);
void harness_close(struct harness *h);

/* The record's bytes; len 1..max, also a function of shard, pos and max. */
size_t record_len(unsigned shard, uint64_t pos, size_t max);
void record_fill(unsigned shard, unsigned salt, uint64_t pos, uint8_t *out, size_t len);
bool record_same(unsigned shard, unsigned salt, uint64_t pos, size_t max, struct hf_slice rec);

/* Queues one record. */
void harness_append(struct harness *h, unsigned shard, size_t max);
/* Waits until nothing is pending; returns and clears the first bad status. */
int harness_wait(struct harness *h);
/* Reads from..end of the shard and asserts each record (made with max). Returns how many. */
uint64_t harness_check(struct harness *h, unsigned shard, uint64_t from, size_t max);

char *temp_dir_new(void);
void temp_dir_free(char *dir);
uint64_t rnd(uint64_t *state);

/* A whole file of the wal's folder; free data. */
struct hf_buf file_load(const char *dir, const char *name);
void file_store(const char *dir, const char *name, const void *data, size_t len);
/* Name of the file that is written to now. */
void current_name(struct harness *h, char out[24], uint64_t *ret_end);

#endif

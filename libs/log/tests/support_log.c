/* SPDX-License-Identifier: Apache-2.0 */
#include "support_log.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/err.h"

#define WAIT_SECONDS 60

struct pending {
    struct hf_log_append a;
    struct harness *h;
    unsigned shard;
    uint8_t data[];
};

char *temp_dir_new(void)
{
    const char *base = getenv("TMPDIR");
    struct hf_buf b = {0};

    cr_assert_eq(hf_buf_printf(&b, "%s/hf-log-XXXXXX", base ? base : "/tmp"), 0);
    cr_assert_eq(hf_buf_append(&b, "", 1), 0);
    cr_assert_not_null(mkdtemp((char *)b.data));
    return (char *)b.data;
}

void temp_dir_free(char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[1024];

    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
    free(dir);
}

uint64_t rnd(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

struct harness *harness_new(unsigned shards)
{
    struct harness *h = calloc(1, sizeof(*h));

    cr_assert_not_null(h);
    h->dir = temp_dir_new();
    h->o = (struct hf_wal_opts){.dir = h->dir,
                                .shards = shards,
                                .file_bytes = 64u << 10,
                                .max_bytes = 1u << 20,
                                .reserve_bytes = 128u << 10};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->cond, NULL);
    cr_assert_eq(hf_env_real_new(&h->env), 0);
    cr_assert_eq(hf_loop_new(h->env, "test", &h->loop), 0);
    cr_assert_eq(hf_loop_start(h->loop), 0);
    return h;
}

void harness_free(struct harness *h)
{
    harness_close(h);
    hf_loop_join(h->loop);
    hf_loop_free(h->loop);
    hf_env_free(h->env);
    temp_dir_free(h->dir);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->cond);
    free(h);
}

int harness_open(struct harness *h)
{
    return wal_open_files(h->env, &h->o, h->files ? h->files : &wal_files_posix, &h->w, h->err,
                          sizeof(h->err));
}

void harness_close(struct harness *h)
{
    if (!h->w)
        return;
    hf_wal_close(h->w);
    h->w = NULL;
    (void)harness_wait(h);
}

size_t record_len(unsigned shard, uint64_t pos, size_t max)
{
    uint64_t s = pos * 64 + shard;

    return 1 + (size_t)(rnd(&s) % max);
}

void record_fill(unsigned shard, unsigned salt, uint64_t pos, uint8_t *out, size_t len)
{
    uint64_t s = pos * 64 + shard + ((uint64_t)salt << 48) + (1ull << 60);

    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)rnd(&s);
}

static void append_done(struct hf_task *t)
{
    struct pending *p = hf_container_of(t, struct pending, a.done);
    struct harness *h = p->h;

    pthread_mutex_lock(&h->lock);
    if (p->a.status == 0) {
        cr_assert_gt(p->a.pos, h->done_pos[p->shard], "completions out of order");
        h->done_pos[p->shard] = p->a.pos;
        if (h->on_done)
            h->on_done(h, p->shard, p->a.pos);
    } else if (h->status == 0) {
        h->status = p->a.status;
    }
    if (--h->pending == 0)
        pthread_cond_broadcast(&h->cond);
    pthread_mutex_unlock(&h->lock);
    free(p);
}

void harness_append(struct harness *h, unsigned shard, size_t max)
{
    struct hf_log *l = hf_wal_log(h->w, shard);
    uint64_t pos = hf_log_end(l);
    size_t len = record_len(shard, pos, max);
    struct pending *p = malloc(sizeof(*p) + len);
    size_t a = len / 3, b = len / 2;

    cr_assert_not_null(p);
    *p = (struct pending){.h = h, .shard = shard, .a.done.fn = append_done, .a.loop = h->loop};
    record_fill(shard, h->salt, pos, p->data, len);
    p->a.nparts = 3;
    p->a.parts[0] = hf_slice(p->data, a);
    p->a.parts[1] = hf_slice(p->data + a, b - a);
    p->a.parts[2] = hf_slice(p->data + b, len - b);
    pthread_mutex_lock(&h->lock);
    h->pending++;
    pthread_mutex_unlock(&h->lock);
    cr_assert_eq(hf_log_append(l, &p->a), 0);
}

int harness_wait(struct harness *h)
{
    struct timespec until;
    int status, rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&h->lock);
    while (h->pending > 0 && rc == 0)
        rc = pthread_cond_timedwait(&h->cond, &h->lock, &until);
    cr_assert_eq(h->pending, 0, "appends did not complete");
    status = h->status;
    h->status = 0;
    pthread_mutex_unlock(&h->lock);
    return status;
}

bool record_same(unsigned shard, unsigned salt, uint64_t pos, size_t max, struct hf_slice rec)
{
    uint8_t *want = malloc(rec.len + 1);
    bool same;

    cr_assert_not_null(want);
    record_fill(shard, salt, pos, want, rec.len);
    same = rec.len == record_len(shard, pos, max) && memcmp(want, rec.data, rec.len) == 0;
    free(want);
    return same;
}

struct check {
    unsigned shard;
    uint64_t next;
    size_t max;
};

static int check_one(void *arg, uint64_t pos, struct hf_slice rec)
{
    struct check *c = arg;
    cr_assert_eq(pos, c->next, "position %lu where %lu is due", (unsigned long)pos,
                 (unsigned long)c->next);
    c->next++;
    cr_assert(record_same(c->shard, 0, pos, c->max, rec), "content of shard %u position %lu",
              c->shard, (unsigned long)pos);
    return 0;
}

uint64_t harness_check(struct harness *h, unsigned shard, uint64_t from, size_t max)
{
    struct check c = {.shard = shard, .next = from, .max = max};
    struct hf_log *l = hf_wal_log(h->w, shard);

    cr_assert_eq(hf_log_read(l, from, check_one, &c), 0);
    cr_assert_eq(c.next, hf_log_end(l));
    return c.next - from;
}

struct hf_buf file_load(const char *dir, const char *name)
{
    struct hf_buf b = {0};
    struct stat st;
    char path[1024];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_RDONLY);
    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_eq(hf_buf_reserve(&b, (size_t)st.st_size + 1), 0);
    b.len = (size_t)st.st_size;
    cr_assert_eq(pread(fd, b.data, b.len, 0), (ssize_t)b.len);
    close(fd);
    return b;
}

void file_store(const char *dir, const char *name, const void *data, size_t len)
{
    char path[1024];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
}

void current_name(struct harness *h, char out[24], uint64_t *ret_end)
{
    memcpy(out, h->w->cur->name, sizeof(h->w->cur->name));
    *ret_end = h->w->off;
}

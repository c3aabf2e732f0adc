/* SPDX-License-Identifier: Apache-2.0
 *
 * `holdfast bench native`: load through libholdfast, so that the servers are measured without a
 * gateway. A stream is a caller with one call in flight: the callback of one starts the next, on
 * the library's engine.
 */
#include "bench.h"
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/assert.h"
#include "holdfast/holdfast.h"

#define STREAMS_MAX 4096u
#define FILES       400u /* of getattr and lookup */
#define PIECE       (1u << 20)
#define SMALL       4096u
#define TENTHS      10u

static const char help_text[] =
    "usage: holdfast bench native --mix MIX [OPTIONS]\n"
    "\n"
    "Loads the node of --dir through libholdfast, without a gateway, and reports rate, latency "
    "and\n"
    "errors. Works in a directory of its own below the root and removes it afterwards.\n"
    "\n"
    "  --mix MIX       create    an empty file, durable\n"
    "                  create4k  create, write 4 KiB, fsync and close; one op is a file\n"
    "                  getattr   attributes of 400 files\n"
    "                  lookup    names of 400 files\n"
    "                  seqread   pieces of 1 MiB of one file in order\n"
    "                  seqwrite  the same, with an fsync at the end\n"
    "  --inflight N    calls in flight (64; seqread, seqwrite 8)\n"
    "  --seconds S     measured time (10)\n"
    "  --file-mib M    size of the file of seqread and seqwrite (1024); they end with it\n"
    "  --threads T     engines of the library (1)\n"
    "  --url URL       where shard 0 answers, instead of the node of --dir\n"
    "  --keep          leave the files behind\n"
    "  --json          JSON instead of a table\n"
    "\n"
    "exit codes: 0 no errors, 1 some calls failed, 2 wrong usage, 3 cannot connect\n";

struct nb;
struct stream {
    struct nb *nb;
    uint64_t started_ns;
    uint64_t n; /* of its present op */
    struct hf_file *file;
};

struct mix {
    const char *name;
    bool bytes; /* one file in pieces, not ops for a time */
    bool files; /* works on FILES files made before */
    void (*start)(struct stream *s);
};

struct nb {
    const struct mix *mix;
    unsigned inflight, seconds, file_mib, threads;
    const char *url;
    bool keep;
    char *own_url;

    struct hf_fs *fs;
    struct hf_user user;
    struct hf_handle dir;
    char name[64];
    struct hf_handle files[FILES];
    struct hf_file *file; /* seqread, seqwrite */
    uint8_t *piece;
    struct stream *streams;
    uint64_t begin_ns, end_ns;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t done;
    uint64_t next, running;
    bool cleaning; /* what is done now is not measured */
    uint64_t errors, moved;
    uint64_t tenths[TENTHS]; /* ops that ended in each tenth of the time */
    int first_error;
    struct bn_hist hist;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void file_name(char buf[32], uint64_t n)
{
    (void)snprintf(buf, 32, "f%09llu", (unsigned long long)n);
}

/* ---- streams ---- */

static void count_tenth(struct nb *b, uint64_t now)
{
    uint64_t part = (now - b->begin_ns) / ((uint64_t)b->seconds * 1000000000u / TENTHS);

    b->tenths[part < TENTHS ? part : TENTHS - 1]++;
}

/* Ends the op, and begins the next unless the time is over. */
static void op_done(struct stream *s, int err, uint64_t bytes)
{
    struct nb *b = s->nb;
    uint64_t now = now_ns(), pieces = b->file_mib;
    bool go;

    pthread_mutex_lock(&b->lock);
    if (!b->cleaning) {
        bn_hist_add(&b->hist, now - s->started_ns);
        b->moved += bytes;
        count_tenth(b, now);
    }
    if (err) {
        b->errors++;
        if (!b->first_error)
            b->first_error = err;
    }
    go = (b->mix->bytes ? b->next < pieces : now < b->end_ns) && b->errors < 1000;
    if (go)
        s->n = b->next++;
    else if (--b->running == 0)
        pthread_cond_broadcast(&b->done);
    pthread_mutex_unlock(&b->lock);
    if (!go)
        return;
    s->started_ns = now;
    b->mix->start(s);
}

static void on_attr(void *arg, int err, const struct hf_attr *a)
{
    (void)a;
    op_done(arg, err, 0);
}

static void start_create(struct stream *s)
{
    char name[32];

    file_name(name, s->n);
    hf_mknod_async(s->nb->fs, &s->nb->user, s->nb->dir, name, S_IFREG | 0644, 0, 0, 0, on_attr, s);
}

static void on_closed(void *arg, int err)
{
    op_done(arg, err, SMALL);
}

static void on_synced(void *arg, int err)
{
    struct stream *s = arg;

    if (err)
        on_closed(s, err);
    else
        hf_close_async(s->file, on_closed, s);
}

static void on_written(void *arg, int64_t n)
{
    struct stream *s = arg;

    if (n < 0)
        on_closed(s, (int)n);
    else
        hf_fsync_async(s->file, false, on_synced, s);
}

static void on_created(void *arg, int err, struct hf_file *f, const struct hf_attr *a)
{
    struct stream *s = arg;
    struct iovec iov = {s->nb->piece, SMALL};

    (void)a;
    s->file = f;
    if (err)
        op_done(s, err, 0);
    else
        hf_write_async(f, &iov, 1, 0, on_written, s);
}

static void start_create4k(struct stream *s)
{
    char name[32];

    file_name(name, s->n);
    hf_create_async(s->nb->fs, &s->nb->user, s->nb->dir, name, O_WRONLY | O_EXCL, 0644, 0,
                    on_created, s);
}

static void start_getattr(struct stream *s)
{
    hf_getattr_async(s->nb->fs, s->nb->files[s->n % FILES], on_attr, s);
}

static void start_lookup(struct stream *s)
{
    char name[32];

    file_name(name, s->n % FILES);
    hf_lookup_async(s->nb->fs, &s->nb->user, s->nb->dir, name, on_attr, s);
}

static void on_piece_read(void *arg, int err, const struct iovec *iov, unsigned niov, size_t n)
{
    (void)iov;
    (void)niov;
    op_done(arg, err ? err : n == PIECE ? 0 : -EIO, n);
}

static void start_read(struct stream *s)
{
    hf_read_async(s->nb->file, s->n * PIECE, PIECE, on_piece_read, s);
}

static void on_piece_written(void *arg, int64_t n)
{
    op_done(arg, n < 0 ? (int)n : n == PIECE ? 0 : -EIO, n > 0 ? (uint64_t)n : 0);
}

static void start_write(struct stream *s)
{
    struct iovec iov = {s->nb->piece, PIECE};

    hf_write_async(s->nb->file, &iov, 1, s->n * PIECE, on_piece_written, s);
}

static const struct mix mixes[] = {
    {"create", false, false, start_create},  {"create4k", false, false, start_create4k},
    {"getattr", false, true, start_getattr}, {"lookup", false, true, start_lookup},
    {"seqread", true, false, start_read},    {"seqwrite", true, false, start_write},
};

/* ---- phases ---- */

static int make_files(struct nb *b)
{
    struct hf_attr a;
    char name[32];
    int rc = 0;

    for (unsigned i = 0; i < FILES && rc == 0; i++) {
        file_name(name, i);
        rc = hf_mknod(b->fs, &b->user, b->dir, name, S_IFREG | 0644, 0, 0, 0, &a);
        b->files[i] = a.handle;
    }
    return rc;
}

static int make_file(struct nb *b)
{
    int rc = hf_create(b->fs, &b->user, b->dir, "data", O_RDWR | O_EXCL, 0644, 0, &b->file, NULL);

    for (unsigned i = 0; rc == 0 && b->mix->start == start_read && i < b->file_mib; i++) {
        ssize_t n = hf_write(b->file, b->piece, PIECE, (uint64_t)i * PIECE);

        rc = n < 0 ? (int)n : n == PIECE ? 0 : -EIO;
    }
    return rc ? rc : hf_fsync(b->file, false);
}

static int prepare(struct nb *b)
{
    struct hf_fs_opts o = {
        .struct_size = sizeof(o), .url = b->url, .name = "bench", .threads = b->threads};
    struct hf_attr a;
    int rc = hf_fs_open(&o, &b->fs);

    if (rc)
        return rc;
    (void)snprintf(b->name, sizeof(b->name), ".bench-native-%d", (int)getpid());
    rc = hf_mkdir(b->fs, &b->user, hf_root(b->fs), b->name, 0755, 0, &a);
    if (rc)
        return rc;
    b->dir = a.handle;
    return b->mix->bytes ? make_file(b) : b->mix->files ? make_files(b) : 0;
}

/* Until the streams have nothing more to do. */
static void run_streams(struct nb *b)
{
    b->running = b->next = b->inflight;
    for (unsigned i = 0; i < b->inflight; i++) {
        b->streams[i] = (struct stream){.nb = b, .n = i, .started_ns = now_ns()};
        b->mix->start(&b->streams[i]);
    }
    pthread_mutex_lock(&b->lock);
    while (b->running)
        pthread_cond_wait(&b->done, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void measure(struct nb *b)
{
    b->begin_ns = now_ns();
    b->end_ns = b->begin_ns + (uint64_t)b->seconds * 1000000000u;
    run_streams(b);
    if (b->file) {
        int rc = hf_fsync(b->file, false);

        if (rc && !b->first_error)
            b->first_error = rc;
        b->errors += rc != 0;
    }
    b->end_ns = now_ns();
}

/* Removing runs in streams too: there may be a million files. */
static void start_remove(struct stream *s);
static const struct mix removing = {"remove", true, false, start_remove};

static void on_removed(void *arg, int err)
{
    op_done(arg, err == -ENOENT ? 0 : err, 0);
}

static void start_remove(struct stream *s)
{
    char name[32];

    file_name(name, s->n);
    hf_unlink_async(s->nb->fs, &s->nb->user, s->nb->dir, name, on_removed, s);
}

static int clean(struct nb *b)
{
    uint64_t made = b->mix->files ? FILES : b->next;
    int rc = 0;

    if (b->file) {
        (void)hf_close(b->file);
        rc = hf_unlink(b->fs, &b->user, b->dir, "data");
    } else {
        b->mix = &removing;
        b->cleaning = true;
        b->file_mib = made < UINT_MAX ? (unsigned)made : UINT_MAX;
        run_streams(b);
    }
    return rc ? rc : hf_rmdir(b->fs, &b->user, hf_root(b->fs), b->name);
}

/* ---- report ---- */

static void report(const struct cli *cli, const struct nb *b)
{
    double sec = (double)(b->end_ns - b->begin_ns) / 1e9, mb = (double)b->moved / sec / 1e6;
    const struct bn_hist *h = &b->hist;
    double first = (double)b->tenths[0] * TENTHS / b->seconds,
           last = (double)b->tenths[TENTHS - 1] * TENTHS / b->seconds;
    double mean = h->count ? (double)h->sum_ns / (double)h->count / 1e3 : 0;
    double p50 = (double)bn_hist_quantile(h, 0.5) / 1e3,
           p99 = (double)bn_hist_quantile(h, 0.99) / 1e3;

    if (cli->json) {
        cli_print_json(json_pack(
            "{s:s, s:i, s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:f}", "mix",
            b->mix->name, "inflight", (int)b->inflight, "seconds", sec, "ops", (json_int_t)h->count,
            "ops_per_s", (double)h->count / sec, "mb_per_s", mb, "mean_us", mean, "p50_us", p50,
            "p99_us", p99, "max_us", (double)h->max_ns / 1e3, "errors", (json_int_t)b->errors,
            "first_tenth_per_s", first, "last_tenth_per_s", last));
        return;
    }
    printf("native %s, %u in flight, %.2f s\n", b->mix->name, b->inflight, sec);
    printf("%llu ops, %.0f/s, mean %.0f us, p50 %.0f us, p99 %.0f us, max %.0f us, %llu errors\n",
           (unsigned long long)h->count, (double)h->count / sec, mean, p50, p99,
           (double)h->max_ns / 1e3, (unsigned long long)b->errors);
    if (b->moved)
        printf("%.1f MB/s\n", mb);
    if (!b->mix->bytes)
        printf("first tenth of the time %.0f/s, last %.0f/s\n", first, last);
}

static int find_url(const struct cli *cli, struct nb *b)
{
    char *real = realpath(cli->dir, NULL);

    b->own_url = malloc(PATH_MAX + 64);
    if (!real || !b->own_url) {
        free(real);
        return cli_fail(CLI_UNREACHABLE, "no node in %s: %s", cli->dir, strerror(errno));
    }
    (void)snprintf(b->own_url, PATH_MAX + 64, "ipc://%s/run/meta-0.sock", real);
    free(real);
    if (access(b->own_url + strlen("ipc://"), R_OK | W_OK))
        return cli_fail(CLI_UNREACHABLE, "no node runs in %s", cli->dir);
    b->url = b->own_url;
    return CLI_OK;
}

static int parse(int argc, char **argv, struct nb *b)
{
    const struct {
        const char *name;
        unsigned long long lo, hi;
        unsigned *to;
    } numbers[] = {{"--inflight", 1, STREAMS_MAX, &b->inflight},
                   {"--seconds", 1, 86400, &b->seconds},
                   {"--file-mib", 1, 1u << 20, &b->file_mib},
                   {"--threads", 1, 16, &b->threads}};
    const char *text;

    for (int i = 2; i < argc; i++) {
        int took = cli_opt_value("--url", argc, argv, &i, &b->url);
        unsigned long long v;

        for (size_t k = 0; k < HF_ARRAY_LEN(numbers) && took == 0; k++) {
            took = cli_opt_value(numbers[k].name, argc, argv, &i, &text);
            if (took > 0 && !cli_number(numbers[k].name, text, numbers[k].lo, numbers[k].hi, &v))
                return CLI_USAGE;
            if (took > 0)
                *numbers[k].to = (unsigned)v;
        }
        if (took == 0 && (took = cli_opt_value("--mix", argc, argv, &i, &text)) > 0) {
            for (size_t k = 0; k < HF_ARRAY_LEN(mixes); k++)
                if (strcmp(mixes[k].name, text) == 0)
                    b->mix = &mixes[k];
            if (!b->mix)
                return cli_fail(CLI_USAGE, "no mix '%s'; see `holdfast bench native --help`", text);
        }
        if (took == 0 && strcmp(argv[i], "--keep") == 0)
            took = b->keep = true;
        if (took <= 0)
            return took < 0 ? CLI_USAGE
                            : cli_fail(CLI_USAGE,
                                       "unknown argument '%s'; see `holdfast bench native "
                                       "--help`",
                                       argv[i]);
    }
    if (!b->mix)
        return cli_fail(CLI_USAGE, "--mix is needed; see `holdfast bench native --help`");
    if (b->inflight == 0)
        b->inflight = b->mix->bytes ? 8 : 64;
    if (b->mix->bytes && b->inflight > b->file_mib)
        b->inflight = b->file_mib;
    return CLI_OK;
}

int bn_native(const struct cli *cli, int argc, char **argv)
{
    struct nb *b = calloc(1, sizeof(*b));
    int rc, e;

    if (!b)
        return cli_fail(CLI_PROBLEM, "out of memory");
    if (cli_wants_help(argc, argv)) {
        (void)fputs(help_text, stdout);
        free(b);
        return CLI_OK;
    }
    b->seconds = 10;
    b->file_mib = 1024;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->done, NULL);
    rc = parse(argc, argv, b);
    if (rc == CLI_OK && !b->url)
        rc = find_url(cli, b);
    b->streams = calloc(STREAMS_MAX, sizeof(*b->streams));
    b->piece = calloc(1, PIECE);
    if (rc == CLI_OK && b->streams && b->piece) {
        for (unsigned i = 0; i < PIECE; i++)
            b->piece[i] = (uint8_t)(i * 2654435761u >> 13);
        e = prepare(b);
        if (e)
            rc = cli_fail(CLI_UNREACHABLE, "%s: %s", b->url, hf_strerror(e));
        if (rc == CLI_OK) {
            measure(b);
            report(cli, b);
            if (b->errors)
                rc = cli_fail(CLI_PROBLEM, "%llu calls failed; the first: %s",
                              (unsigned long long)b->errors, hf_strerror(b->first_error));
        }
        if (rc == CLI_OK && !b->keep && (e = clean(b)) != 0)
            rc = cli_fail(CLI_PROBLEM, "/%s is left behind: %s", b->name, hf_strerror(e));
        if (b->fs)
            (void)hf_fs_close(b->fs);
    }
    free(b->streams);
    free(b->piece);
    free(b->own_url);
    pthread_cond_destroy(&b->done);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return rc;
}

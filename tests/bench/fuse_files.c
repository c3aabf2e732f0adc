/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse_files --dir D [--threads T] [--files N] [--bytes B]: T threads create N files in all, each
 * in a directory of its own thread, write B bytes, fsync and close; prints files per second. The
 * files are left for the caller to remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64u
#define BYTES_MAX   (1u << 20)
#define PATH_BYTES  4096u

struct load {
    const char *dir;
    unsigned threads, files, bytes;
    unsigned char *data;
};

struct worker {
    const struct load *load;
    pthread_t thread;
    unsigned index, files;
    int err; /* errno of the first failure */
};

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int one_file(const struct load *l, const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644), err = 0;

    if (fd < 0)
        return errno;
    errno = EIO; /* of a short write */
    if (write(fd, l->data, l->bytes) != (ssize_t)l->bytes || fsync(fd) != 0)
        err = errno;
    if (close(fd) != 0 && err == 0)
        err = errno;
    return err;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "%s/t%u", w->load->dir, w->index);
    if (mkdir(path, 0755) != 0)
        w->err = errno;
    for (unsigned i = 0; i < w->files && w->err == 0; i++) {
        (void)snprintf(path, sizeof(path), "%s/t%u/f%06u", w->load->dir, w->index, i);
        w->err = one_file(w->load, path);
    }
    return NULL;
}

static bool number(const char *text, unsigned max, unsigned *ret)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(text, &end, 10);
    if (errno || *end || end == text || v < 1 || v > max)
        return false;
    *ret = (unsigned)v;
    return true;
}

static bool parse(int argc, char **argv, struct load *l)
{
    for (int i = 1; i < argc; i += 2) {
        const char *v = i + 1 < argc ? argv[i + 1] : "";
        bool ok = strcmp(argv[i], "--dir") == 0       ? (l->dir = v)[0] != '\0'
                  : strcmp(argv[i], "--threads") == 0 ? number(v, THREADS_MAX, &l->threads)
                  : strcmp(argv[i], "--files") == 0   ? number(v, 100000000, &l->files)
                  : strcmp(argv[i], "--bytes") == 0   ? number(v, BYTES_MAX, &l->bytes)
                                                      : false;

        if (!ok)
            return false;
    }
    return l->dir && strlen(l->dir) < PATH_BYTES - 64;
}

static int run(const struct load *l)
{
    struct worker w[THREADS_MAX];
    double begin = now_s(), seconds;
    unsigned started = 0;
    int err = 0;

    for (; started < l->threads && err == 0; started++) {
        unsigned extra = started < l->files % l->threads ? 1 : 0;

        w[started] =
            (struct worker){.load = l, .index = started, .files = l->files / l->threads + extra};
        err = pthread_create(&w[started].thread, NULL, work, &w[started]);
        if (err)
            break;
    }
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(w[i].thread, NULL);
        if (err == 0)
            err = w[i].err;
    }
    seconds = now_s() - begin;
    if (err) {
        (void)fprintf(stderr, "fuse_files: %s: %s\n", l->dir, strerror(err));
        return 1;
    }
    printf("%u files, %.2f s, %.0f files/s\n", l->files, seconds, l->files / seconds);
    return 0;
}

int main(int argc, char **argv)
{
    struct load l = {.threads = 8, .files = 20000, .bytes = 4096};
    int rc;

    if (!parse(argc, argv, &l)) {
        (void)fprintf(stderr, "usage: fuse_files --dir D [--threads T] [--files N] [--bytes B]\n");
        return 2;
    }
    l.data = malloc(l.bytes);
    if (!l.data)
        return 1;
    memset(l.data, 'x', l.bytes);
    rc = run(&l);
    free(l.data);
    return rc;
}

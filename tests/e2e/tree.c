/* SPDX-License-Identifier: Apache-2.0
 *
 * tree [--files N] [DIR...]: copies a tree of real files (default /usr/include and /usr/share/doc,
 * at least N = 20000 files; what is missing is generated) in over NFS from several connections,
 * reads it back and compares every byte and a checksum over all, stops the node and compares again,
 * kills it and compares again; fsck is clean throughout.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/nt.h"

#define THREADS    6
#define FILES_MAX  60000
#define BYTES_MAX  (1ull << 30)
#define WRITE_STEP (1u << 20)

struct item {
    char *path;   /* local */
    char *name;   /* in its directory */
    unsigned dir; /* index in dirs */
    struct stat st;
    struct nt_fh fh;
};

static struct item *dirs, *files;
static unsigned ndirs, nfiles;
static uint64_t total_bytes;
static struct nt_node node;

struct job {
    pthread_t thread;
    void (*fn)(struct job *j, struct nt *c, struct item *it);
    char error[512];
    uint64_t sum; /* order does not matter: sums of the files are added */
};

static atomic_uint next_item;

/* ---- the local side ---- */

static struct item *add(struct item **list, unsigned *n, const char *path, const char *name,
                        unsigned dir)
{
    struct item *it;

    if (*n % 1024 == 0) {
        *list = reallocarray(*list, *n + 1024, sizeof(**list));
    }
    it = &(*list)[(*n)++];
    memset(it, 0, sizeof(*it));
    it->path = strdup(path);
    it->name = strdup(name);
    it->dir = dir;
    return it;
}

static void scan(const char *path, unsigned dir)
{
    DIR *d = opendir(path);
    struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL && nfiles < FILES_MAX && total_bytes < BYTES_MAX) {
        char sub[4096];
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
        if (lstat(sub, &st) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            add(&dirs, &ndirs, sub, e->d_name, dir)->st = st;
            scan(sub, ndirs - 1);
        } else if ((S_ISREG(st.st_mode) && access(sub, R_OK) == 0) || S_ISLNK(st.st_mode)) {
            add(&files, &nfiles, sub, e->d_name, dir)->st = st;
            total_bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
}

/* Files of many sizes where the machine has too few of its own. */
static void generate(char *dir, unsigned n)
{
    static uint8_t buf[300000];
    char path[512];

    if (mkdtemp(dir) == NULL) {
        perror(dir);
        exit(1);
    }
    for (unsigned i = 0; i < n; i++) {
        size_t len = (size_t)1 << (i % 19);
        int fd;

        if (i % 100 == 0) {
            snprintf(path, sizeof(path), "%s/%u", dir, i / 100);
            mkdir(path, 0755);
        }
        snprintf(path, sizeof(path), "%s/%u/%u", dir, i / 100, i);
        len = len > sizeof(buf) ? sizeof(buf) : len - i % 2;
        nt_pattern(i, 0, buf, len);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, buf, len) != (ssize_t)len) {
            perror(path);
            exit(1);
        }
        close(fd);
    }
}

static uint64_t fnv(uint64_t h, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3ull;
    }
    return h;
}

/* ---- one file over NFS ---- */

static void fail(struct job *j, const struct item *it, const char *what, uint32_t status)
{
    snprintf(j->error, sizeof(j->error), "%s: %s: %s", it->path, what, nt_status_name(status));
}

static void put_link(struct job *j, struct nt *c, struct item *it)
{
    char target[4096];
    ssize_t n = readlink(it->path, target, sizeof(target) - 1);

    target[n < 0 ? 0 : n] = '\0';
    if (nt_symlink(c, &dirs[it->dir].fh, it->name, target, NULL) != NFS3_OK) {
        fail(j, it, "SYMLINK", c->r.status);
    }
    it->fh = c->r.fh;
}

static void put_file(struct job *j, struct nt *c, struct item *it)
{
    struct nt_set set = NT_SET_MODE(it->st.st_mode & 07777u);
    uint32_t how = it->st.st_size <= WRITE_STEP ? FILE_SYNC : UNSTABLE;
    uint8_t *b;
    off_t off = 0;
    ssize_t n;
    int fd;

    if (S_ISLNK(it->st.st_mode)) {
        put_link(j, c, it);
        return;
    }
    if (nt_create(c, &dirs[it->dir].fh, it->name, GUARDED, &set, NULL) != NFS3_OK) {
        fail(j, it, "CREATE", c->r.status);
        return;
    }
    it->fh = c->r.fh;
    fd = open(it->path, O_RDONLY | O_CLOEXEC);
    b = malloc(WRITE_STEP);
    while ((n = pread(fd, b, WRITE_STEP, off)) > 0) {
        if (nt_write(c, &it->fh, (uint64_t)off, b, (uint32_t)n, how) != NFS3_OK) {
            fail(j, it, "WRITE", c->r.status);
            break;
        }
        off += c->r.count;
    }
    free(b);
    close(fd);
    if (how == UNSTABLE && nt_commit(c, &it->fh, 0, 0) != NFS3_OK) {
        fail(j, it, "COMMIT", c->r.status);
    }
}

static void check_file(struct job *j, struct nt *c, struct item *it)
{
    uint64_t h = 0xcbf29ce484222325ull, off = 0;
    uint8_t *b;
    int fd;

    if (nt_lookup(c, &dirs[it->dir].fh, it->name) != NFS3_OK) {
        fail(j, it, "LOOKUP", c->r.status);
        return;
    }
    if (!nt_fh_eq(&c->r.fh, &it->fh) || c->r.attr.size != (uint64_t)it->st.st_size) {
        fail(j, it, "another handle or size", 0);
        return;
    }
    if (S_ISLNK(it->st.st_mode)) {
        char target[4096] = "";

        if (readlink(it->path, target, sizeof(target) - 1) < 0 ||
            nt_readlink(c, &it->fh) != NFS3_OK || strcmp(target, c->r.target) != 0) {
            fail(j, it, "another target", c->r.status);
        }
        return;
    }
    b = malloc(WRITE_STEP);
    fd = open(it->path, O_RDONLY | O_CLOEXEC);
    while (off < (uint64_t)it->st.st_size && j->error[0] == '\0') {
        if (nt_read(c, &it->fh, off, WRITE_STEP) != NFS3_OK || c->r.count == 0) {
            fail(j, it, "READ", c->r.status);
        } else if (pread(fd, b, c->r.count, (off_t)off) != (ssize_t)c->r.count ||
                   memcmp(b, c->data, c->r.count) != 0) {
            fail(j, it, "other bytes", 0);
        }
        h = fnv(h, c->data, c->r.count);
        off += c->r.count;
    }
    j->sum += h;
    close(fd);
    free(b);
}

/* ---- all files, from several connections ---- */

static void *run_job(void *arg)
{
    struct job *j = arg;
    uint32_t none = 0;
    struct nt *c = nt_try_open(&node, node.port);

    if (c == NULL) {
        snprintf(j->error, sizeof(j->error), "cannot connect");
        return NULL;
    }
    c->tolerant = true;
    rpc_set_auth(c->rpc, libnfs_authunix_create("tree", 0, 0, 0, &none));
    for (unsigned i; (i = atomic_fetch_add(&next_item, 1)) < nfiles && j->error[0] == '\0';) {
        j->fn(j, c, &files[i]);
    }
    nt_close(c);
    return NULL;
}

static void run_all(const char *what, void (*fn)(struct job *j, struct nt *c, struct item *it),
                    uint64_t *sum)
{
    static struct job jobs[THREADS];
    uint64_t t0 = nt_now_ns();

    memset(jobs, 0, sizeof(jobs));
    atomic_store(&next_item, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i].fn = fn;
        NT_EQ(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
    }
    *sum = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(jobs[i].thread, NULL);
        *sum += jobs[i].sum;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (jobs[i].error[0] != '\0') {
            nt_fail(__FILE__, __LINE__, "%s: %s", what, jobs[i].error);
        }
    }
    printf("# %s: %.1f s\n", what, (double)(nt_now_ns() - t0) / 1e9);
    fflush(stdout);
}

static void put_dirs(void)
{
    struct nt *c = nt_open(&node, 0, 0, 0, NULL);

    NT_OK(nt_mount(c, node.export_path));
    dirs[0].fh = c->r.fh;
    for (unsigned i = 1; i < ndirs; i++) {
        char top[32];

        snprintf(top, sizeof(top), "top%u", i);
        NT_OK(nt_mkdir(c, &dirs[dirs[i].dir].fh, dirs[i].dir == 0 ? top : dirs[i].name,
                       &NT_SET_MODE(0755)));
        dirs[i].fh = c->r.fh;
    }
    nt_close(c);
}

static void fsck(void)
{
    static const char *const args[] = {"fsck", NULL};
    char out[4096] = "";

    if (nt_cli(&node, out, sizeof(out), args) != 0) {
        nt_fail(__FILE__, __LINE__, "fsck: %s", out);
    }
    printf("# fsck: %s", out);
}

static void at_exit(void)
{
    if (node.pid > 0) {
        nt_node_log(&node);
        kill(node.pid, SIGKILL);
    }
}

static void collect(int argc, char **argv, unsigned want, char *generated)
{
    static char include[] = "/usr/include", doc[] = "/usr/share/doc";
    char *defaults[] = {include, doc, NULL};
    char **from = argc > 0 ? argv : defaults;

    add(&dirs, &ndirs, "", "", 0);
    for (; *from != NULL; from++) {
        add(&dirs, &ndirs, *from, *from, 0);
        scan(*from, ndirs - 1);
    }
    if (nfiles < want) {
        generate(generated, want - nfiles);
        add(&dirs, &ndirs, generated, generated, 0);
        scan(generated, ndirs - 1);
    } else {
        generated[0] = '\0';
    }
    printf("1..1\n# %u files, %u directories, %.1f MB\n", nfiles, ndirs, (double)total_bytes / 1e6);
}

int main(int argc, char **argv)
{
    char generated[] = "/tmp/hf-tree.XXXXXX";
    uint64_t sum[4];
    unsigned want = 20000;

    if (argc > 2 && strcmp(argv[1], "--files") == 0) {
        want = (unsigned)strtoul(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    signal(SIGPIPE, SIG_IGN);
    collect(argc - 1, argv + 1, want, generated);
    nt_node_start(&node);
    atexit(at_exit);
    put_dirs();
    run_all("copied in", put_file, &sum[0]);
    run_all("read back", check_file, &sum[1]);
    fsck();
    nt_node_kill(&node, SIGTERM);
    nt_node_start(&node);
    run_all("read after a restart", check_file, &sum[2]);
    nt_node_kill(&node, SIGKILL);
    nt_node_start(&node);
    run_all("read after kill -9", check_file, &sum[3]);
    fsck();
    NT_CHECK(sum[1] == sum[2] && sum[2] == sum[3] && sum[1] != 0);
    printf("# checksum over all files: %016llx\n", (unsigned long long)sum[1]);
    nt_node_remove(&node);
    if (generated[0] != '\0') {
        nt_remove_tree(generated);
    }
    printf("ok 1 - tree\n");
    return 0;
}

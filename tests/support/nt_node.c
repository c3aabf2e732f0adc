/* SPDX-License-Identifier: Apache-2.0
 *
 * A node of the test's own: a temporary folder, a free port, a child process. The programs are
 * found in $HF_BIN_DIR.
 */
#include "nt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_SEC  60
#define STOP_SEC   60
#define PORT_FIRST 21000
#define PORTS      11000u

static const char *bin_dir(void)
{
    const char *d = getenv("HF_BIN_DIR");

    if (d == NULL) {
        fprintf(stderr, "HF_BIN_DIR must name the folder of holdfast-node\n");
        exit(1);
    }
    return d;
}

static bool port_is_free(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

/* Below the range from which the kernel takes ports for outgoing connections: a node is restarted
 * on its port many times, and must find it free each time. */
int nt_free_port(void)
{
    uint64_t n = nt_now_ns() / 1000 * 2654435761u + (uint64_t)getpid() * 40503u;

    for (int tries = 0; tries < 100; tries++, n += 7919) {
        int port = PORT_FIRST + (int)(n % PORTS);

        if (port_is_free(port)) {
            return port;
        }
    }
    return 0;
}

static void path_in(const struct nt_node *n, const char *name, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s/%s", n->dir, name);
}

static void make_dir(struct nt_node *n)
{
    const char *base = getenv("TMPDIR");

    if (n->dir[0] == '\0') {
        snprintf(n->dir, sizeof(n->dir), "%s/hf-test.XXXXXX", base != NULL ? base : "/tmp");
        if (mkdtemp(n->dir) == NULL) {
            perror(n->dir);
            exit(1);
        }
    }
    snprintf(n->export_path, sizeof(n->export_path), "/main");
}

static void write_conf(struct nt_node *n)
{
    char path[300];
    FILE *f;

    path_in(n, "conf.yml", path, sizeof(path));
    f = fopen(path, "we");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    fprintf(f, "node:\n  dir: %s/data\n", n->dir);
    if (n->hot[0] != '\0') {
        fprintf(f, "  pools: [\"hot:%s:2\", \"cold:posix:1\"]\n", n->hot);
    }
    fprintf(f, "nfs:\n  listen: 127.0.0.1:%d\n%s", n->port, n->extra);
    fclose(f);
}

static pid_t spawn(const struct nt_node *n)
{
    char prog[512], conf[300], log[300];
    pid_t pid;

    snprintf(prog, sizeof(prog), "%s/holdfast-node", bin_dir());
    path_in(n, "conf.yml", conf, sizeof(conf));
    path_in(n, "log", log, sizeof(log));
    pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execl(prog, prog, "--config", conf, (char *)NULL);
        perror(prog);
        _exit(127);
    }
    return pid;
}

bool nt_node_alive(struct nt_node *n)
{
    if (n->pid > 0 && waitpid(n->pid, &n->status, WNOHANG) == n->pid) {
        n->pid = 0;
    }
    return n->pid > 0;
}

/* It serves when the export can be mounted. */
static bool serves(struct nt_node *n)
{
    struct nt *c = nt_try_open(n, n->port);
    bool ok = false;

    if (c != NULL) {
        c->tolerant = true;
        ok = nt_mount(c, n->export_path) == MNT3_OK;
        nt_close(c);
    }
    return ok;
}

static void nap_ms(long ms)
{
    struct timespec ts = {.tv_nsec = ms * 1000000L};

    nanosleep(&ts, NULL); /* between two looks at a condition with a deadline */
}

/* Starts the process and waits until it serves or ends; false: it ended (n->pid is 0). */
static bool start_once(struct nt_node *n, uint64_t deadline, int *ret_status)
{
    if (n->port == 0) {
        n->port = n->mount_port = nt_free_port();
    }
    write_conf(n);
    n->pid = spawn(n);
    for (;;) {
        if (waitpid(n->pid, ret_status, WNOHANG) == n->pid) {
            n->pid = 0;
            return false;
        }
        if (serves(n)) {
            return true;
        }
        if (nt_now_ns() > deadline) {
            fprintf(stderr, "the node does not serve\n");
            nt_node_log(n);
            kill(n->pid, SIGKILL);
            exit(1);
        }
        nap_ms(10);
    }
}

bool nt_node_try_start(struct nt_node *n, int *ret_status)
{
    make_dir(n);
    return start_once(n, nt_now_ns() + START_SEC * 1000000000ull, ret_status);
}

void nt_node_start(struct nt_node *n)
{
    int status;

    make_dir(n);
    for (int tries = 0; tries < 3; tries++) {
        if (start_once(n, nt_now_ns() + START_SEC * 1000000000ull, &status)) {
            return;
        }
    }
    fprintf(stderr, "the node does not serve\n");
    nt_node_log(n);
    exit(1);
}

/* Waits for the end of a node that was asked to stop; its wait status. */
static int reap(struct nt_node *n, int sig)
{
    uint64_t deadline = nt_now_ns() + STOP_SEC * 1000000000ull;
    int status = 0;

    while (waitpid(n->pid, &status, WNOHANG) != n->pid) {
        if (nt_now_ns() > deadline) {
            kill(n->pid, SIGKILL);
            waitpid(n->pid, &status, 0);
            n->pid = 0;
            nt_fail(__FILE__, __LINE__, "the node did not end within %d s of signal %d", STOP_SEC,
                    sig);
        }
        nap_ms(2);
    }
    n->pid = 0;
    return status;
}

int nt_node_end(struct nt_node *n, int sig)
{
    if (n->pid <= 0) {
        return n->status;
    }
    kill(n->pid, sig);
    return reap(n, sig);
}

void nt_node_kill(struct nt_node *n, int sig)
{
    int status;

    if (n->pid <= 0) {
        return;
    }
    status = nt_node_end(n, sig);
    if (sig == SIGTERM && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        nt_fail(__FILE__, __LINE__, "the node ended with wait status 0x%x after SIGTERM",
                (unsigned)status);
    }
}

static int rm_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void nt_remove_tree(const char *path)
{
    nftw(path, rm_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void nt_node_remove(struct nt_node *n)
{
    if (!n->foreign) {
        nt_node_kill(n, SIGTERM);
        nt_remove_tree(n->dir);
    }
}

void nt_node_log(const struct nt_node *n)
{
    char path[300], line[2048];
    FILE *f;

    path_in(n, "log", path, sizeof(path));
    f = fopen(path, "re");
    if (f == NULL) {
        return;
    }
    fprintf(stderr, "---- log of the node (%s)\n", path);
    while (fgets(line, sizeof(line), f) != NULL) {
        fputs(line, stderr);
    }
    fprintf(stderr, "---- end of log\n");
    fclose(f);
}

long nt_node_rss_kib(const struct nt_node *n)
{
    char path[64], line[256];
    long kib = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)n->pid);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib;
}

int nt_cli(struct nt_node *n, char *ret, size_t cap, const char *const *args)
{
    char prog[512], data[300];
    const char *argv[32] = {prog, "--dir", data};
    size_t used = ret != NULL ? strlen(ret) : 0;
    int fds[2], status = 0, k = 3;
    ssize_t got;
    char buf[4096];
    pid_t pid;

    snprintf(prog, sizeof(prog), "%s/holdfast", bin_dir());
    path_in(n, "data", data, sizeof(data));
    for (; *args != NULL && k < 31; args++) {
        argv[k++] = *args;
    }
    if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
        return -1;
    }
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        execv(prog, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(fds[1]);
    while ((got = read(fds[0], buf, sizeof(buf))) > 0) {
        for (ssize_t i = 0; i < got && ret != NULL && used + 1 < cap; i++) {
            ret[used++] = buf[i];
            ret[used] = '\0';
        }
    }
    close(fds[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

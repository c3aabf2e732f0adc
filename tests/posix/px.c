/* SPDX-License-Identifier: Apache-2.0
 *
 * What cases are made of: files, users, times, patterns, other processes.
 */
#include "px.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

const char *const px_zoo_names[] = {"file", "dir", "link", "dangling", "fifo", "sock", NULL};

void px_file(const char *name, mode_t mode)
{
    int fd = (int)PX_OK(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600));

    PX_OK(fchmod(fd, mode));
    PX_OK(close(fd));
}

void px_dir(const char *name, mode_t mode)
{
    PX_OK(mkdir(name, 0700));
    PX_OK(chmod(name, mode));
}

void px_own(const char *name, uid_t uid, gid_t gid)
{
    PX_OK(lchown(name, uid, gid));
}

void px_put(const char *name, const void *data, size_t len)
{
    int fd = (int)PX_OK(open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666));

    PX_EQ(PX_OK(write(fd, data, len)), len);
    PX_OK(close(fd));
}

void px_zoo(void)
{
    px_file("file", 0644);
    px_dir("dir", 0755);
    PX_OK(symlink("file", "link"));
    PX_OK(symlink("nothing", "dangling"));
    PX_OK(mkfifo("fifo", 0644));
    PX_OK(mknod("sock", S_IFSOCK | 0644, 0));
}

struct stat px_stat(const char *name)
{
    struct stat st;

    PX_OK(lstat(name, &st));
    return st;
}

mode_t px_mode(const char *name)
{
    return px_stat(name).st_mode & 07777;
}

nlink_t px_nlink(const char *name)
{
    return px_stat(name).st_nlink;
}

uint64_t px_size(const char *name)
{
    return (uint64_t)px_stat(name).st_size;
}

bool px_exists(const char *name)
{
    struct stat st;

    if (lstat(name, &st) == 0) {
        return true;
    }
    if (errno != ENOENT) {
        PX_OK(lstat(name, &st));
    }
    return false;
}

bool px_holds(const char *name, const void *data, size_t len)
{
    int fd = (int)PX_OK(open(name, O_RDONLY));
    char *buf = malloc(len + 1);
    size_t have = 0;
    bool same;

    if (buf == NULL) {
        PX_SKIP("no memory");
    }
    for (;;) {
        ssize_t n = (ssize_t)PX_OK(read(fd, buf + have, len + 1 - have));

        have += (size_t)n;
        if (n == 0 || have == len + 1) {
            break;
        }
    }
    same = have == len && memcmp(buf, data, len) == 0;
    free(buf);
    PX_OK(close(fd));
    return same;
}

/* ---- times ---- */

int px_time_cmp(struct timespec a, struct timespec b)
{
    if (a.tv_sec != b.tv_sec) {
        return a.tv_sec < b.tv_sec ? -1 : 1;
    }
    return a.tv_nsec < b.tv_nsec ? -1 : a.tv_nsec > b.tv_nsec;
}

/* File systems may take the kernel's coarse clock, which moves a few hundred times a second; two
 * steps of it are surely another time. */
void px_tick(void)
{
    struct timespec first, now;

    for (int i = 0; i < 2; i++) {
        clock_gettime(CLOCK_REALTIME_COARSE, &first);
        do {
            poll(NULL, 0, 1);
            clock_gettime(CLOCK_REALTIME_COARSE, &now);
        } while (px_time_cmp(now, first) == 0);
    }
}

struct stat px_see(const char *name)
{
    struct stat st = px_stat(name);

    px_tick();
    return st;
}

void px_moved(const char *file, int line, const char *name, const struct stat *before,
              const char *which)
{
    struct stat now = px_stat(name);
    bool m = px_time_cmp(now.st_mtim, before->st_mtim) > 0;
    bool c = px_time_cmp(now.st_ctim, before->st_ctim) > 0;

    if (px_time_cmp(now.st_mtim, before->st_mtim) < 0 ||
        px_time_cmp(now.st_ctim, before->st_ctim) < 0) {
        px_fail(file, line, "a time of %s went back", name);
    }
    if (m != (strchr(which, 'm') != NULL)) {
        px_fail(file, line, "mtime of %s %s", name, m ? "moved" : "did not move");
    }
    if (c != (strchr(which, 'c') != NULL)) {
        px_fail(file, line, "ctime of %s %s", name, c ? "moved" : "did not move");
    }
}

/* ---- users ---- */

void px_user_in(uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
    px_root();
    PX_OK(setgroups(n, groups));
    PX_OK(setresgid(gid, gid, 0));
    PX_OK(setresuid(uid, uid, 0));
}

void px_user(uid_t uid, gid_t gid)
{
    px_user_in(uid, gid, NULL, 0);
}

void px_root(void)
{
    if (setresuid(0, 0, 0) != 0 || setresgid(0, 0, 0) != 0 || setgroups(0, NULL) != 0) {
        perror("becoming root again");
        _exit(1);
    }
}

/* ---- patterns ---- */

static uint8_t pattern_byte(uint32_t seed, uint64_t off)
{
    uint64_t z = (off >> 3) * UINT64_C(0x9e3779b97f4a7c15) + seed * UINT64_C(0xd1342543de82ef95);

    z = (z ^ (z >> 31)) * UINT64_C(0x94d049bb133111eb);
    return (uint8_t)((z >> (8 * (off & 7))) | 1); /* never zero */
}

void px_fill(uint32_t seed, uint64_t off, void *buf, size_t len)
{
    uint8_t *p = buf;

    for (size_t i = 0; i < len; i++) {
        p[i] = pattern_byte(seed, off + i);
    }
}

bool px_filled(uint32_t seed, uint64_t off, const void *buf, size_t len)
{
    const uint8_t *p = buf;

    for (size_t i = 0; i < len; i++) {
        if (p[i] != pattern_byte(seed, off + i)) {
            printf("# byte %llu is 0x%02x, not 0x%02x\n", (unsigned long long)(off + i), p[i],
                   pattern_byte(seed, off + i));
            return false;
        }
    }
    return true;
}

bool px_zeros(const void *buf, size_t len)
{
    const uint8_t *p = buf;

    for (size_t i = 0; i < len; i++) {
        if (p[i] != 0) {
            printf("# byte %zu is 0x%02x, not zero\n", i, p[i]);
            return false;
        }
    }
    return true;
}

/* ---- other processes ---- */

void px_in_child(void (*fn)(void *arg), void *arg)
{
    px_join(px_spawn(fn, arg));
}

void px_join(pid_t pid)
{
    int status = 0, pidfd = (int)PX_OK(syscall(SYS_pidfd_open, pid, 0));
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (poll(&p, 1, 60000) != 1) {
        PX_FAIL("a process of the case did not end within 60 s");
        (void)kill(pid, SIGKILL);
    }
    close(pidfd);
    PX_OK(waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        PX_FAIL("a process of the case ended with status 0x%x", (unsigned)status);
    }
}

/* ---- the rest ---- */

void *px_bad_pointer(void)
{
    static void *page;

    if (page == NULL) {
        page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return page;
}

const char *px_elsewhere(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp", "/run", "/var/tmp"};
    struct stat here, there;

    PX_OK(stat(".", &here));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (stat(places[i], &there) == 0 && there.st_dev != here.st_dev) {
            return places[i];
        }
    }
    return NULL;
}

const char *px_errno_name(int e)
{
    const char *name = e == 0 ? "success" : strerrorname_np(e);

    return name != NULL ? name : "an unknown errno";
}

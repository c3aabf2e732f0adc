/* SPDX-License-Identifier: Apache-2.0
 *
 * flock, fcntl's record locks (POSIX) and those of open file descriptions.
 */
#include <poll.h>
#include <sys/file.h>

#include "px.h"

static int opened(int flags)
{
    return (int)PX_OK(open("f", O_CREAT | flags, 0644));
}

static void try_flock_shared(void *arg)
{
    int fd = opened(O_RDWR);

    if (*(int *)arg == 0) {
        PX_OK(flock(fd, LOCK_SH | LOCK_NB));
    } else {
        PX_ERR(flock(fd, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    }
}

static void try_flock_exclusive(void *arg)
{
    int fd = opened(O_RDWR);

    if (*(int *)arg == 0) {
        PX_OK(flock(fd, LOCK_EX | LOCK_NB));
    } else {
        PX_ERR(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    }
}

static void others(int shared, int exclusive)
{
    px_in_child(try_flock_shared, &shared);
    px_in_child(try_flock_exclusive, &exclusive);
}

static void whole_files(void)
{
    int fd = opened(O_RDWR), fd2 = opened(O_RDONLY);

    others(0, 0);
    PX_OK(flock(fd, LOCK_SH));
    others(0, 1);
    PX_OK(flock(fd2, LOCK_SH)); /* another description, even in this process */
    PX_ERR(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    PX_OK(flock(fd2, LOCK_UN));
    PX_OK(flock(fd, LOCK_EX));
    others(1, 1);
    PX_ERR(flock(fd2, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    PX_OK(flock(fd, LOCK_SH)); /* and down again */
    others(0, 1);
    PX_OK(flock(fd, LOCK_UN));
    others(0, 0);
    PX_OK(flock(fd2, LOCK_EX)); /* a reader's description may */
    PX_OK(close(fd));
    PX_OK(close(fd2));
    others(0, 0);
}

static void goes_with_the_last_descriptor(void)
{
    int fd = opened(O_RDWR), copy;

    PX_OK(flock(fd, LOCK_EX));
    copy = (int)PX_OK(dup(fd));
    PX_OK(close(fd));
    others(1, 1);
    PX_OK(close(copy));
    others(0, 0);
}

static void unlock_it(void *arg)
{
    PX_OK(flock(*(int *)arg, LOCK_UN)); /* inherited, so it is the same lock */
}

static void is_inherited(void)
{
    int fd = opened(O_RDWR);

    PX_OK(flock(fd, LOCK_EX));
    px_in_child(unlock_it, &fd);
    others(0, 0);
    PX_OK(close(fd));
}

struct waiter {
    int tell[2];
    int kind; /* 0: flock, 1: fcntl */
};

static void wait_for_it(void *arg)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct waiter *w = arg;
    int fd = opened(O_RDWR);

    PX_EQ(PX_OK(write(w->tell[1], "t", 1)), 1);
    PX_OK(w->kind == 0 ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLKW, &l));
    PX_EQ(PX_OK(write(w->tell[1], "g", 1)), 1);
}

static void waits(int kind)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct waiter w = {.kind = kind};
    struct pollfd p = {.events = POLLIN};
    int fd = opened(O_RDWR);
    pid_t pid;
    char c;

    PX_OK(kind == 0 ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLK, &l));
    PX_OK(pipe2(w.tell, O_CLOEXEC));
    pid = px_spawn(wait_for_it, &w);
    PX_EQ(PX_OK(read(w.tell[0], &c, 1)), 1);
    p.fd = w.tell[0];
    PX_EQ(PX_OK(poll(&p, 1, 100)), 0); /* it does not get it */
    if (kind == 0) {
        PX_OK(
            flock(fd, LOCK_UN)); /* the child has inherited the description: close is not enough */
    }
    PX_OK(close(fd));
    PX_EQ(PX_OK(poll(&p, 1, 10000)), 1); /* and now it does */
    px_join(pid);
    PX_OK(close(w.tell[0]));
    PX_OK(close(w.tell[1]));
}

static void waits_its_turn(void)
{
    waits(0);
}

PX_GROUP(flock, T(whole_files), T(goes_with_the_last_descriptor), T(is_inherited),
         T(waits_its_turn));

/* ---- record locks ---- */

static int range(int fd, int cmd, int type, off_t off, off_t len)
{
    struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = off, .l_len = len};

    return fcntl(fd, cmd, &l);
}

struct ask {
    int type;
    off_t off, len;
    /* what F_GETLK must say; F_UNLCK: it is free */
    int found;
    off_t found_off, found_len;
    pid_t owner;
};

static void asks(void *arg)
{
    struct ask *a = arg;
    struct flock l = {
        .l_type = (short)a->type, .l_whence = SEEK_SET, .l_start = a->off, .l_len = a->len};
    int fd = opened(O_RDWR);

    PX_OK(fcntl(fd, F_GETLK, &l));
    PX_EQ(l.l_type, a->found);
    if (a->found == F_UNLCK) {
        PX_OK(range(fd, F_SETLK, a->type, a->off, a->len));
        return;
    }
    PX_EQ(l.l_start, a->found_off);
    PX_EQ(l.l_len, a->found_len);
    PX_EQ(l.l_whence, SEEK_SET);
    if (a->owner != 0) {
        PX_EQ(l.l_pid, a->owner);
    }
    PX_ERR2(range(fd, F_SETLK, a->type, a->off, a->len), EAGAIN, EACCES);
}

static void free_for(int type, off_t off, off_t len)
{
    struct ask a = {.type = type, .off = off, .len = len, .found = F_UNLCK};

    px_in_child(asks, &a);
}

static void held(int type, off_t off, off_t len, int found, off_t found_off, off_t found_len)
{
    struct ask a = {type, off, len, found, found_off, found_len, getpid()};

    px_in_child(asks, &a);
}

static void ranges(void)
{
    int fd = opened(O_RDWR);

    PX_OK(range(fd, F_SETLK, F_WRLCK, 100, 100));
    free_for(F_WRLCK, 0, 100);
    free_for(F_WRLCK, 200, 0);
    held(F_RDLCK, 0, 101, F_WRLCK, 100, 100);
    held(F_WRLCK, 199, 1, F_WRLCK, 100, 100);
    held(F_WRLCK, 0, 0, F_WRLCK, 100, 100);
    PX_OK(range(fd, F_SETLK, F_RDLCK, 120, 20)); /* down in the middle: three pieces */
    held(F_RDLCK, 110, 1, F_WRLCK, 100, 20);
    free_for(F_RDLCK, 120, 20);
    held(F_WRLCK, 125, 1, F_RDLCK, 120, 20);
    held(F_RDLCK, 150, 1, F_WRLCK, 140, 60);
    PX_OK(range(fd, F_SETLK, F_UNLCK, 110, 60));
    held(F_RDLCK, 105, 10, F_WRLCK, 100, 10);
    free_for(F_WRLCK, 110, 60);
    held(F_RDLCK, 170, 1, F_WRLCK, 170, 30);
    PX_OK(range(fd, F_SETLK, F_WRLCK, 110, 60)); /* filled: one again */
    held(F_RDLCK, 150, 1, F_WRLCK, 100, 100);
    PX_OK(close(fd));
    free_for(F_WRLCK, 0, 0);
}

static void shared_and_exclusive(void)
{
    int fd = opened(O_RDWR);

    PX_OK(range(fd, F_SETLK, F_RDLCK, 0, 10));
    free_for(F_RDLCK, 0, 10);
    held(F_WRLCK, 0, 10, F_RDLCK, 0, 10);
    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 10));
    held(F_RDLCK, 0, 10, F_WRLCK, 0, 10);
    PX_OK(range(fd, F_SETLK, F_UNLCK, 0, 0));
    free_for(F_WRLCK, 0, 0);
    PX_OK(close(fd));
}

static void any_close_drops_them(void)
{
    int fd = opened(O_RDWR), other;

    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 10));
    other = opened(O_RDONLY);
    PX_OK(close(other)); /* POSIX says so, sadly */
    free_for(F_WRLCK, 0, 0);
    PX_OK(close(fd));
}

static void not_inherited(void)
{
    int fd = opened(O_RDWR);

    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 10));
    held(F_WRLCK, 0, 10, F_WRLCK, 0, 10); /* the child is another owner */
    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 20));
    held(F_WRLCK, 0, 10, F_WRLCK, 0, 20);
    PX_OK(close(fd));
}

static void far_ranges(void)
{
    const off_t far = (off_t)1 << 40;
    int fd = opened(O_RDWR);

    PX_OK(range(fd, F_SETLK, F_WRLCK, far, 10));
    free_for(F_WRLCK, 0, far);
    held(F_WRLCK, far + 9, 1, F_WRLCK, far, 10);
    PX_OK(range(fd, F_SETLK, F_UNLCK, 0, 0));
    PX_OK(range(fd, F_SETLK, F_WRLCK, INT64_MAX, 0));
    held(F_WRLCK, 0, 0, F_WRLCK, INT64_MAX, 0); /* up to the end of time */
    PX_OK(range(fd, F_SETLK, F_WRLCK, (off_t)1 << 31, (off_t)1 << 32));
    free_for(F_WRLCK, 0, (off_t)1 << 31);
    held(F_WRLCK, ((off_t)1 << 31) + ((off_t)1 << 32) - 1, 1, F_WRLCK, (off_t)1 << 31,
         (off_t)1 << 32);
    PX_OK(close(fd));
}

static void relative_ranges(void)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -10, .l_len = 5};
    int fd;

    px_put("f", "0123456789012345678901234567890123456789", 40);
    fd = opened(O_RDWR);
    PX_OK(fcntl(fd, F_SETLK, &l));
    held(F_WRLCK, 0, 0, F_WRLCK, 30, 5);
    l.l_type = F_UNLCK;
    l.l_start = -40;
    l.l_len = 0;
    PX_OK(fcntl(fd, F_SETLK, &l));
    PX_EQ(PX_OK(lseek(fd, 20, SEEK_SET)), 20);
    l.l_type = F_WRLCK;
    l.l_whence = SEEK_CUR;
    l.l_start = 2;
    l.l_len = -5; /* before it */
    PX_OK(fcntl(fd, F_SETLK, &l));
    held(F_WRLCK, 0, 0, F_WRLCK, 17, 5);
    PX_OK(close(fd));
}

static void errnos(void)
{
    int ro = opened(O_RDONLY), wo = (int)PX_OK(open("f", O_WRONLY));

    PX_ERR(range(ro, F_SETLK, F_WRLCK, 0, 1), EBADF);
    PX_ERR(range(wo, F_SETLK, F_RDLCK, 0, 1), EBADF);
    PX_ERR(range(ro, F_SETLK, F_RDLCK, -1, 1), EINVAL);
    PX_ERR(range(ro, F_SETLK, 77, 0, 1), EINVAL);
    PX_ERR2(range(ro, F_SETLK, F_RDLCK, INT64_MAX, 2), EOVERFLOW, EINVAL);
    PX_OK(close(ro));
    PX_OK(close(wo));
    PX_ERR(range(ro, F_SETLK, F_RDLCK, 0, 1), EBADF);
}

static void waits_for_a_range(void)
{
    waits(1);
}

static void dies_with_it(void *arg)
{
    int fd = opened(O_RDWR);

    (void)arg;
    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 0));
}

static void released_at_exit(void)
{
    px_in_child(dies_with_it, NULL);
    free_for(F_WRLCK, 0, 0);
}

struct deadlock {
    int to[2], from[2];
};

static void other_half(void *arg)
{
    struct deadlock *d = arg;
    int fd = opened(O_RDWR);
    char c;

    PX_OK(range(fd, F_SETLK, F_WRLCK, 10, 1));
    PX_EQ(PX_OK(write(d->from[1], "r", 1)), 1);
    PX_EQ(PX_OK(read(d->to[0], &c, 1)), 1);
    PX_OK(range(fd, F_SETLKW, F_WRLCK, 0, 1)); /* waits for the parent's, and gets it in the end */
}

/* Each waits for the other's: whoever would wait last is told, the other one goes on. */
static void deadlock(void)
{
    struct deadlock d;
    int fd = opened(O_RDWR), rc;
    pid_t pid;
    char c;

    PX_OK(pipe2(d.to, O_CLOEXEC));
    PX_OK(pipe2(d.from, O_CLOEXEC));
    PX_OK(range(fd, F_SETLK, F_WRLCK, 0, 1));
    pid = px_spawn(other_half, &d);
    PX_EQ(PX_OK(read(d.from[0], &c, 1)), 1);
    PX_EQ(PX_OK(write(d.to[1], "g", 1)), 1);
    for (int i = 0; i < 1000; i++) { /* until it waits: then we would wait for ever */
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 1};

        PX_OK(fcntl(fd, F_GETLK, &l));
        PX_EQ(l.l_type, F_WRLCK);
        poll(NULL, 0, 1);
        if (i > 50) {
            break;
        }
    }
    errno = 0;
    rc = range(fd, F_SETLKW, F_WRLCK, 10, 1);
    PX_CHECK(rc < 0 && errno == EDEADLK);
    PX_OK(close(fd));
    px_join(pid);
    for (int i = 0; i < 2; i++) {
        PX_OK(close(d.to[i]));
        PX_OK(close(d.from[i]));
    }
}

PX_GROUP(fcntl_lock, T(ranges), T(shared_and_exclusive), T(any_close_drops_them), T(not_inherited),
         T(far_ranges), T(relative_ranges), T(errnos), T(waits_for_a_range), T(released_at_exit),
         T(deadlock));

/* ---- locks of open file descriptions ---- */

static void of_descriptions(void)
{
    int a = opened(O_RDWR), b = opened(O_RDWR), copy;

    PX_OK(range(a, F_OFD_SETLK, F_WRLCK, 0, 10));
    PX_ERR(range(b, F_OFD_SETLK, F_RDLCK, 5, 10), EAGAIN);
    PX_OK(range(b, F_OFD_SETLK, F_WRLCK, 10, 10));
    copy = (int)PX_OK(dup(a));
    PX_OK(close(opened(O_RDWR))); /* drops nothing */
    PX_ERR(range(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
    PX_OK(close(a));
    PX_ERR(range(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
    PX_OK(close(copy));
    PX_OK(range(b, F_OFD_SETLK, F_RDLCK, 5, 1));
    PX_OK(close(b));
}

static void against_record_locks(void)
{
    int a = opened(O_RDWR);
    struct ask q = {F_WRLCK, 0, 1, F_WRLCK, 0, 10, 0};

    PX_OK(range(a, F_OFD_SETLK, F_WRLCK, 0, 10));
    px_in_child(asks, &q);
    PX_OK(close(a));
}

PX_GROUP(ofd_lock, T(of_descriptions), T(against_record_locks));

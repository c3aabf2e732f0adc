/* SPDX-License-Identifier: Apache-2.0
 *
 * open: access decided by the mode bits, the flags, and the errnos that are open's own.
 */
#include "px.h"

#include <signal.h>
#include <sys/wait.h>

/* The class decides alone: the owner's bits for the owner, even if the group's would say more. */
static void every_mode_and_class(void)
{
    static const struct {
        uid_t uid;
        gid_t gid;
        unsigned shift;
    } who[] = {{U1, G2, 6}, {U2, G1, 3}, {U2, G2, 0}};
    static const struct {
        int flags;
        unsigned need;
    } ways[] = {{O_RDONLY, 4}, {O_WRONLY, 2}, {O_RDWR, 6}};

    px_file("f", 0666);
    px_own("f", U1, G1);
    for (size_t w = 0; w < 3; w++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            mode_t mode = 0777 & ~(07u << who[w].shift);

            px_root();
            PX_OK(chmod("f", mode | bits << who[w].shift));
            px_user(who[w].uid, who[w].gid);
            for (size_t i = 0; i < 3; i++) {
                if ((bits & ways[i].need) == ways[i].need) {
                    PX_OK(close((int)PX_OK(open("f", ways[i].flags))));
                } else {
                    PX_ERR(open("f", ways[i].flags), EACCES);
                }
            }
        }
    }
}

static void group_by_membership(void)
{
    gid_t more[] = {G3, G1};

    px_file("f", 0640);
    px_own("f", U1, G1);
    px_user_in(U2, G2, more, 2);
    PX_OK(close((int)PX_OK(open("f", O_RDONLY))));
    PX_ERR(open("f", O_WRONLY), EACCES);
    px_user_in(U2, G2, more, 1);
    PX_ERR(open("f", O_RDONLY), EACCES);
}

static void truncating_needs_write(void)
{
    px_put("f", "abc", 3);
    px_own("f", U1, G1);
    PX_OK(chmod("f", 0444));
    px_user(U1, G1);
    PX_ERR(open("f", O_RDONLY | O_TRUNC), EACCES);
    PX_ERR(open("f", O_WRONLY | O_TRUNC), EACCES);
    PX_EQ(px_size("f"), 3);
}

static void truncates(void)
{
    struct stat st;

    px_put("f", "abcdef", 6);
    st = px_see("f");
    PX_OK(close((int)PX_OK(open("f", O_WRONLY | O_TRUNC))));
    PX_EQ(px_size("f"), 0);
    PX_MOVED("f", &st, "cm");
    px_put("f", "abcdef", 6);
    PX_OK(close((int)PX_OK(open("f", O_WRONLY | O_CREAT, 0600))));
    PX_EQ(px_size("f"), 6);
    PX_OK(close((int)PX_OK(open("f", O_WRONLY | O_CREAT | O_TRUNC, 0600))));
    PX_EQ(px_size("f"), 0);
    PX_EQ(px_mode("f"), 0644);
}

static void trunc_of_a_large_file(void)
{
    static char buf[3 * 64 * 1024];
    int fd;

    px_fill(1, 0, buf, sizeof(buf));
    px_put("f", buf, sizeof(buf));
    fd = (int)PX_OK(open("f", O_RDWR | O_TRUNC));
    PX_EQ(px_size("f"), 0);
    PX_OK(ftruncate(fd, sizeof(buf)));
    PX_EQ(PX_OK(pread(fd, buf, sizeof(buf), 0)), sizeof(buf));
    PX_CHECK(px_zeros(buf, sizeof(buf)));
    PX_OK(close(fd));
}

static void excl(void)
{
    px_zoo();
    for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
        PX_ERR(open(px_zoo_names[i], O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
    }
    PX_CHECK(!px_exists("nothing"));
}

static void creat_through_a_dangling_link(void)
{
    px_zoo();
    PX_OK(close((int)PX_OK(open("dangling", O_CREAT | O_WRONLY, 0644))));
    PX_EQ(px_stat("nothing").st_mode & S_IFMT, S_IFREG);
}

static void nofollow(void)
{
    px_zoo();
    PX_ERR(open("link", O_RDONLY | O_NOFOLLOW), ELOOP);
    PX_ERR(open("dangling", O_RDONLY | O_NOFOLLOW), ELOOP);
    PX_ERR(open("dangling", O_CREAT | O_WRONLY | O_NOFOLLOW, 0644), ELOOP);
    PX_OK(close((int)PX_OK(open("file", O_RDONLY | O_NOFOLLOW))));
    PX_OK(symlink("dir", "todir"));
    px_file("dir/f", 0644);
    PX_OK(close((int)PX_OK(open("todir/f", O_RDONLY | O_NOFOLLOW)))); /* the last name only */
}

static void directory(void)
{
    px_zoo();
    PX_ERR(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
    PX_ERR(open("fifo", O_RDONLY | O_DIRECTORY), ENOTDIR);
    PX_ERR(open("link", O_RDONLY | O_DIRECTORY), ENOTDIR);
    PX_OK(close((int)PX_OK(open("dir", O_RDONLY | O_DIRECTORY))));
}

static void is_a_directory(void)
{
    px_zoo();
    PX_ERR(open("dir", O_WRONLY), EISDIR);
    PX_ERR(open("dir", O_RDWR), EISDIR);
    PX_ERR(open("dir", O_RDONLY | O_TRUNC), EISDIR);
    PX_ERR(open("dir", O_RDONLY | O_CREAT, 0644), EISDIR);
    PX_ERR(open("new/", O_WRONLY | O_CREAT, 0644), EISDIR);
    PX_CHECK(!px_exists("new"));
}

static void reading_a_directory(void)
{
    char c;
    int fd;

    px_dir("d", 0755);
    fd = (int)PX_OK(open("d", O_RDONLY));
    PX_ERR(read(fd, &c, 1), EISDIR);
    PX_ERR2(write(fd, &c, 1), EBADF, EISDIR);
    PX_OK(fsync(fd));
    PX_OK(close(fd));
}

static void fifo_and_socket(void)
{
    px_zoo();
    PX_ERR(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO); /* nobody reads */
    PX_OK(close((int)PX_OK(open("fifo", O_RDONLY | O_NONBLOCK))));
    PX_ERR(open("sock", O_RDWR), ENXIO);
}

static void fifo_carries(void)
{
    char c = 0;
    int r, w;

    px_zoo();
    r = (int)PX_OK(open("fifo", O_RDONLY | O_NONBLOCK));
    w = (int)PX_OK(open("fifo", O_WRONLY | O_NONBLOCK));
    PX_EQ(PX_OK(write(w, "z", 1)), 1);
    PX_EQ(PX_OK(read(r, &c, 1)), 1);
    PX_EQ(c, 'z');
    PX_OK(close(r));
    PX_OK(close(w));
}

static void flags_hold(void)
{
    char c;
    int fd;

    px_put("f", "abc", 3);
    fd = (int)PX_OK(open("f", O_RDONLY));
    PX_ERR(write(fd, "x", 1), EBADF);
    PX_ERR2(ftruncate(fd, 0), EINVAL, EBADF);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_WRONLY));
    PX_ERR(read(fd, &c, 1), EBADF);
    PX_OK(close(fd));
    fd = (int)PX_OK(open("f", O_PATH));
    PX_ERR(read(fd, &c, 1), EBADF);
    PX_OK(close(fd));
    PX_EQ(px_size("f"), 3);
}

/* B14: git, install and tar do this. */
static void read_only_file_is_written_by_its_maker(void)
{
    char buf[3];
    int fd;

    px_user(U1, G1);
    fd = (int)PX_OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0444));
    PX_EQ(PX_OK(write(fd, "abc", 3)), 3);
    PX_EQ(PX_OK(pread(fd, buf, 3, 0)), 3);
    PX_OK(fsync(fd));
    PX_OK(ftruncate(fd, 2));
    PX_OK(close(fd));
    PX_EQ(px_size("f"), 2);
    PX_EQ(px_mode("f"), 0444);
    PX_ERR(open("f", O_WRONLY), EACCES);
    fd = (int)PX_OK(open("g", O_CREAT | O_EXCL | O_WRONLY, 0));
    PX_EQ(PX_OK(write(fd, "abc", 3)), 3);
    PX_OK(close(fd));
    PX_ERR(open("g", O_RDONLY), EACCES);
    px_user(U2, G2);
    PX_ERR(open("f", O_WRONLY), EACCES);
}

static void creat_of_what_is_there_checks_it(void)
{
    px_file("f", 0644);
    px_own("f", U1, G1);
    px_user(U2, G2);
    PX_ERR(open("f", O_CREAT | O_WRONLY, 0666), EACCES);
    PX_OK(close((int)PX_OK(open("f", O_CREAT | O_RDONLY, 0666))));
    PX_EQ(px_mode("f"), 0644);
}

static void running_program_is_busy(void)
{
    int in[2], out[2], status;
    char buf[65536], c;
    ssize_t n;
    int src, dst;
    pid_t pid;

    src = (int)PX_OK(open(px_self(), O_RDONLY));
    dst = (int)PX_OK(open("prog", O_CREAT | O_WRONLY, 0755));
    while ((n = (ssize_t)PX_OK(read(src, buf, sizeof(buf)))) > 0) {
        PX_EQ(PX_OK(write(dst, buf, (size_t)n)), n);
    }
    PX_OK(close(src));
    PX_OK(close(dst));
    PX_OK(pipe2(in, O_CLOEXEC));
    PX_OK(pipe2(out, O_CLOEXEC));
    pid = (pid_t)PX_OK(fork());
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("./prog", "prog", "--hold", (char *)NULL);
        _exit(9);
    }
    PX_OK(close(in[0]));
    PX_OK(close(out[1]));
    if (PX_OK(read(out[0], &c, 1)) == 1) {
        PX_ERR(open("prog", O_WRONLY), ETXTBSY);
        PX_ERR(open("prog", O_RDWR | O_TRUNC), ETXTBSY);
        PX_ERR(truncate("prog", 0), ETXTBSY);
        PX_OK(close((int)PX_OK(open("prog", O_RDONLY))));
        PX_OK(rename("prog", "prog2"));
        PX_OK(unlink("prog2"));
    } else {
        PX_FAIL("the program did not start");
    }
    PX_OK(close(in[1]));
    PX_OK(close(out[0]));
    PX_OK(waitpid(pid, &status, 0));
    PX_EQ(status, 0);
}

static void exec_needs_the_bit(void)
{
    char *argv[] = {NULL};

    px_file("f", 0644);
    PX_ERR(execve("f", argv, argv), EACCES);
    px_dir("d", 0755);
    PX_ERR(execve("d", argv, argv), EACCES);
    PX_OK(chmod("f", 0711));
    px_own("f", U1, G1);
    px_user(U1, G1);
    PX_OK(chmod("f", 0677));
    PX_ERR(execve("f", argv, argv), EACCES);
}

static void tmpfile_is_nameless(void)
{
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    struct stat st;

    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        PX_SKIP("O_TMPFILE is not supported");
    }
    PX_OK(fd);
    PX_OK(fstat(fd, &st));
    PX_EQ(st.st_nlink, 0);
    PX_EQ(PX_OK(write(fd, "abc", 3)), 3);
    PX_OK(linkat(fd, "", AT_FDCWD, "named", AT_EMPTY_PATH));
    PX_OK(close(fd));
    PX_CHECK(px_holds("named", "abc", 3));
    PX_EQ(px_nlink("named"), 1);
}

PX_GROUP(open, T(every_mode_and_class), T(group_by_membership), T(truncating_needs_write),
         T(truncates), T(trunc_of_a_large_file), T(excl), T(creat_through_a_dangling_link),
         T(nofollow), T(directory), T(is_a_directory), T(reading_a_directory), T(fifo_and_socket),
         T(fifo_carries), T(flags_hold), T(read_only_file_is_written_by_its_maker),
         T(creat_of_what_is_there_checks_it), T(running_program_is_busy), T(exec_needs_the_bit),
         T(tmpfile_is_nameless));

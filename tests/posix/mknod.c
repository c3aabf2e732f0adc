/* SPDX-License-Identifier: Apache-2.0
 *
 * mknod and mkfifo; devices are root's.
 */
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "px.h"

static void devices(void)
{
    struct stat st;

    PX_OK(mknod("c", S_IFCHR | 0640, makedev(1, 3)));
    st = px_stat("c");
    PX_EQ(st.st_mode, S_IFCHR | 0640);
    PX_EQ(major(st.st_rdev), 1);
    PX_EQ(minor(st.st_rdev), 3);
    PX_OK(mknod("b", S_IFBLK | 0600, makedev(200, 300)));
    st = px_stat("b");
    PX_EQ(st.st_mode, S_IFBLK | 0600);
    PX_EQ(major(st.st_rdev), 200);
    PX_EQ(minor(st.st_rdev), 300);
    PX_OK(mknod("large", S_IFCHR | 0600, makedev(0xfff, 0xfffff)));
    st = px_stat("large");
    PX_EQ(major(st.st_rdev), 0xfff);
    PX_EQ(minor(st.st_rdev), 0xfffff);
}

static void devices_are_roots(void)
{
    px_user(U1, G1);
    PX_ERR(mknod("c", S_IFCHR | 0666, makedev(1, 3)), EPERM);
    PX_ERR(mknod("b", S_IFBLK | 0666, makedev(1, 3)), EPERM);
    PX_OK(mknod("p", S_IFIFO | 0666, 0));
    PX_OK(mknod("s", S_IFSOCK | 0666, 0));
    PX_OK(mknod("f", S_IFREG | 0666, 0));
    PX_OK(mknod("g", 0666, 0)); /* no type: a regular file */
    PX_EQ(px_stat("g").st_mode & S_IFMT, S_IFREG);
    PX_EQ(px_stat("g").st_size, 0);
}

static void not_directories(void)
{
    PX_ERR(mknod("d", S_IFDIR | 0755, 0), EPERM);
    PX_ERR(mknod("l", S_IFLNK | 0755, 0), EINVAL);
    PX_ERR(mknod("x", 0110000 | 0755, 0), EINVAL);
    PX_CHECK(!px_exists("d") && !px_exists("l") && !px_exists("x"));
}

static void a_made_file_holds_data(void)
{
    PX_OK(mknod("f", S_IFREG | 0644, 0));
    px_put("f", "abc", 3);
    PX_CHECK(px_holds("f", "abc", 3));
}

static void sockets_connect(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sock"};
    int s, c;

    s = (int)PX_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    c = (int)PX_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    PX_OK(bind(s, (struct sockaddr *)&a, sizeof(a)));
    PX_EQ(px_stat("sock").st_mode & S_IFMT, S_IFSOCK);
    PX_OK(listen(s, 1));
    PX_OK(connect(c, (struct sockaddr *)&a, sizeof(a)));
    PX_OK(close(c));
    PX_OK(close(s));
    s = (int)PX_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    PX_ERR(bind(s, (struct sockaddr *)&a, sizeof(a)), EADDRINUSE);
    PX_ERR(connect(s, (struct sockaddr *)&a, sizeof(a)), ECONNREFUSED);
    PX_OK(close(s));
    PX_OK(unlink("sock"));
}

static void fifo_times(void)
{
    struct stat here = px_see(".");

    PX_OK(mkfifo("p", 0644));
    PX_MOVED(".", &here, "cm");
    PX_EQ(px_nlink("p"), 1);
    PX_EQ(px_size("p"), 0);
    PX_ERR(mkfifo("p", 0644), EEXIST);
    PX_ERR(truncate("p", 0), EINVAL);
}

PX_GROUP(mknod, T(devices), T(devices_are_roots), T(not_directories), T(a_made_file_holds_data),
         T(sockets_connect), T(fifo_times));

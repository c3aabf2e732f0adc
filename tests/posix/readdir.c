/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing directories: every name once, whatever else happens (A1, A2, A5).
 */
#include <dirent.h>

#include "px.h"

#define MANY 5000

static void make_many(int n)
{
    char name[32];

    for (int i = 0; i < n; i++) {
        int fd;

        snprintf(name, sizeof(name), "name-of-a-file-%d", i);
        fd = (int)PX_OK(open(name, O_CREAT | O_EXCL | O_WRONLY, 0644));
        PX_OK(close(fd));
    }
}

static int number_of(const char *name)
{
    int n = -1;

    return sscanf(name, "name-of-a-file-%d", &n) == 1 && n >= 0 && n < MANY ? n : -1;
}

static DIR *list(const char *name)
{
    DIR *d = opendir(name);

    PX_OK(d == NULL ? -1 : 0);
    return d;
}

static void each_once(void)
{
    static uint8_t seen[MANY];
    struct dirent *e;
    int dots = 0, n = 0;
    DIR *d;

    memset(seen, 0, sizeof(seen));
    px_dir("d", 0755);
    PX_OK(chdir("d"));
    make_many(MANY);
    d = list(".");
    while ((errno = 0, e = readdir(d)) != NULL) {
        int i = number_of(e->d_name);

        if (i < 0) {
            PX_CHECK(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
            dots++;
            continue;
        }
        PX_CHECK(seen[i]++ == 0);
        PX_CHECK(e->d_off >= 0); /* a signed 64 bit number for everybody (A5) */
        PX_CHECK(e->d_type == DT_REG || e->d_type == DT_UNKNOWN);
        n++;
    }
    PX_EQ(errno, 0);
    PX_EQ(n, MANY);
    PX_EQ(dots, 2);
    PX_OK(closedir(d));
    for (int i = 0; i < MANY; i++) {
        char name[32];

        snprintf(name, sizeof(name), "name-of-a-file-%d", i);
        PX_OK(unlink(name));
    }
    PX_OK(chdir(".."));
    PX_OK(rmdir("d"));
}

/* rm -r: each name removed as it is read; the directory is empty in the end. */
static void removing_while_reading(void)
{
    struct dirent *e;
    int n = 0;
    DIR *d;

    px_dir("d", 0755);
    PX_OK(chdir("d"));
    make_many(MANY);
    d = list(".");
    while ((errno = 0, e = readdir(d)) != NULL) {
        if (number_of(e->d_name) >= 0) {
            PX_OK(unlink(e->d_name));
            n++;
        }
    }
    PX_EQ(errno, 0);
    PX_EQ(n, MANY);
    PX_OK(closedir(d));
    PX_OK(chdir(".."));
    PX_OK(rmdir("d"));
}

/* With changes all around, what is there from begin to end is seen exactly once. */
static void changes_while_reading(void)
{
    static uint8_t seen[MANY];
    struct dirent *e;
    int step = 0;
    DIR *d;

    memset(seen, 0, sizeof(seen));
    make_many(1500);
    d = list(".");
    while ((errno = 0, e = readdir(d)) != NULL) {
        int i = number_of(e->d_name);
        char name[32];

        if (i >= 0 && i % 3 == 0) {
            PX_CHECK(seen[i]++ == 0);
        }
        snprintf(name, sizeof(name), "name-of-a-file-%d", step * 3 + 1);
        if (step < 500) {
            PX_OK(unlink(name));
            snprintf(name, sizeof(name), "new-%d", step);
            px_file(name, 0644);
            snprintf(name, sizeof(name), "name-of-a-file-%d", step * 3 + 2);
            PX_OK(rename(name, "moved"));
            PX_OK(rename("moved", name));
        }
        step++;
    }
    PX_EQ(errno, 0);
    PX_OK(closedir(d));
    for (int i = 0; i < 1500; i += 3) {
        PX_EQ(seen[i], 1);
    }
}

static void places(void)
{
    enum { N = 700 };
    static long at[N + 2];
    static char names[N + 2][256];
    struct dirent *e;
    int n = 0;
    DIR *d;

    make_many(N);
    d = list(".");
    for (n = 0; n < N + 2; n++) {
        at[n] = telldir(d);
        e = readdir(d);
        if (e == NULL) {
            break;
        }
        snprintf(names[n], sizeof(names[n]), "%s", e->d_name);
    }
    PX_EQ(n, N + 2);
    for (int i = n - 1; i >= 0; i -= 37) {
        seekdir(d, at[i]);
        e = readdir(d);
        PX_CHECK(e != NULL);
        if (e != NULL) {
            PX_SAYS(e->d_name, names[i]);
        }
    }
    /* places stay good when other names go */
    for (int i = 0; i < n; i += 2) {
        if (names[i][0] != '.') {
            PX_OK(unlink(names[i]));
        }
    }
    for (int i = 1; i < n; i += 50) {
        seekdir(d, at[i]);
        e = readdir(d);
        PX_CHECK(e != NULL);
        if (e != NULL && names[i][0] != '.') {
            PX_SAYS(e->d_name, names[i]);
        }
    }
    rewinddir(d);
    for (n = 0; readdir(d) != NULL; n++) {
    }
    PX_CHECK(n >= N / 2 && n <= N / 2 + 4);
    PX_OK(closedir(d));
}

static void rewind_sees_what_is_new(void)
{
    bool found = false;
    struct dirent *e;
    DIR *d;

    px_file("a", 0644);
    d = list(".");
    while (readdir(d) != NULL) {
    }
    px_file("b", 0644);
    rewinddir(d);
    while ((e = readdir(d)) != NULL) {
        found = found || strcmp(e->d_name, "b") == 0;
    }
    PX_CHECK(found);
    PX_OK(closedir(d));
}

static void types_and_numbers(void)
{
    static const unsigned char want[] = {DT_REG, DT_DIR, DT_LNK, DT_LNK, DT_FIFO, DT_SOCK};
    struct dirent *e;
    size_t n = 0;
    DIR *d;

    px_zoo();
    d = list(".");
    while ((e = readdir(d)) != NULL) {
        for (size_t i = 0; px_zoo_names[i] != NULL; i++) {
            if (strcmp(e->d_name, px_zoo_names[i]) == 0) {
                PX_CHECK(e->d_type == want[i] || e->d_type == DT_UNKNOWN);
                PX_EQ(e->d_ino, px_stat(e->d_name).st_ino);
                n++;
            }
        }
        if (strcmp(e->d_name, ".") == 0) {
            PX_EQ(e->d_ino, px_stat(".").st_ino);
        }
    }
    PX_EQ(n, 6);
    PX_OK(closedir(d));
}

static void rights(void)
{
    struct stat st;
    DIR *d;

    px_dir("d", 0755);
    px_file("d/f", 0644);
    PX_OK(chmod("d", 0711));
    px_user(U1, G1);
    PX_CHECK(opendir("d") == NULL && errno == EACCES);
    PX_OK(stat("d/f", &st)); /* search is another right */
    px_root();
    PX_OK(chmod("d", 0744));
    px_user(U1, G1);
    d = list("d");
    PX_CHECK(readdir(d) != NULL);
    PX_OK(closedir(d));
    PX_ERR(stat("d/f", &st), EACCES);
}

static void removed_directory(void)
{
    struct dirent *e;
    DIR *d;

    px_dir("d", 0755);
    d = list("d");
    PX_OK(rmdir("d"));
    while ((errno = 0, e = readdir(d)) != NULL) {
        PX_CHECK(e->d_name[0] == '.');
    }
    PX_CHECK(errno == 0 || errno == ENOENT);
    PX_OK(closedir(d));
}

/* Two listings at once do not share their place. */
static void two_at_once(void)
{
    int na = 0, nb = 0;
    DIR *a, *b;

    make_many(1000);
    a = list(".");
    b = list(".");
    for (int i = 0; i < 300; i++) {
        na += readdir(a) != NULL;
    }
    while (readdir(b) != NULL) {
        nb++;
    }
    while (readdir(a) != NULL) {
        na++;
    }
    PX_EQ(na, 1002);
    PX_EQ(nb, 1002);
    PX_OK(closedir(a));
    PX_OK(closedir(b));
}

static void child_changes(void *arg)
{
    char name[32];

    (void)arg;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "new-%d", i % 100);
        if (i / 100 % 2 == 0) {
            px_file(name, 0644);
        } else {
            PX_OK(unlink(name));
        }
    }
}

static void while_others_change(void)
{
    static uint8_t seen[MANY];
    pid_t pid;

    make_many(1000);
    pid = px_spawn(child_changes, NULL);
    for (int round = 0; round < 10; round++) {
        struct dirent *e;
        DIR *d = list(".");

        memset(seen, 0, sizeof(seen));
        while ((e = readdir(d)) != NULL) {
            int i = number_of(e->d_name);

            if (i >= 0) {
                PX_CHECK(seen[i]++ == 0);
            }
        }
        PX_OK(closedir(d));
        for (int i = 0; i < 1000; i++) {
            if (seen[i] != 1) {
                PX_FAIL("round %d: file %d seen %d times", round, i, seen[i]);
            }
        }
    }
    px_join(pid);
}

PX_GROUP(readdir, T(each_once), T(removing_while_reading), T(changes_while_reading), T(places),
         T(rewind_sees_what_is_new), T(types_and_numbers), T(rights), T(removed_directory),
         T(two_at_once), T(while_others_change));

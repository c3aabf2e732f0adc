/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a file into a Holdfast file system or out of it.
 *
 *   holdfast-copy URL put LOCAL /path
 *   holdfast-copy URL get /path LOCAL
 *
 * Built outside of Holdfast: cc copy.c $(pkg-config --cflags --libs libholdfast)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/holdfast.h>

#define PIECE (4u << 20)

static int complain(const char *what, int err)
{
    (void)fprintf(stderr, "%s: %s\n", what, hf_strerror(err));
    return 1;
}

static struct hf_user myself(void)
{
    return (struct hf_user){.uid = geteuid(), .gid = getegid()};
}

static int put(struct hf_fs *fs, const char *local, const char *path)
{
    struct hf_user me = myself();
    struct hf_file *f;
    char *piece = malloc(PIECE);
    uint64_t at = 0;
    size_t n;
    FILE *in = fopen(local, "rb");
    int rc, end;

    if (!in || !piece) {
        rc = complain(local, -errno);
        goto out;
    }
    rc = hf_path_open(fs, &me, path, O_CREAT | O_TRUNC | O_WRONLY, 0644, &f);
    if (rc) {
        rc = complain(path, rc);
        goto out;
    }
    while (rc == 0 && (n = fread(piece, 1, PIECE, in)) > 0) {
        ssize_t put_n = hf_write(f, piece, n, at);

        if (put_n < 0)
            rc = (int)put_n;
        else
            at += (uint64_t)put_n;
    }
    if (rc == 0)
        rc = ferror(in) ? -EIO : hf_fsync(f, false); /* now it is safe */
    end = hf_close(f);
    rc = rc ? rc : end;
    if (rc)
        rc = complain(path, rc);
out:
    if (in)
        (void)fclose(in);
    free(piece);
    return rc;
}

static int get(struct hf_fs *fs, const char *path, const char *local)
{
    struct hf_user me = myself();
    struct hf_file *f;
    char *piece = malloc(PIECE);
    uint64_t at = 0;
    ssize_t n = 0;
    FILE *out = NULL;
    int rc = hf_path_open(fs, &me, path, O_RDONLY, 0, &f);

    if (rc || !piece) {
        free(piece);
        return complain(path, rc ? rc : -ENOMEM);
    }
    out = fopen(local, "wb");
    if (!out) {
        rc = complain(local, -errno);
    } else {
        while ((n = hf_read(f, piece, PIECE, at)) > 0 &&
               fwrite(piece, 1, (size_t)n, out) == (size_t)n)
            at += (uint64_t)n;
        if (n < 0)
            rc = complain(path, (int)n);
        if ((fclose(out) || n > 0) && rc == 0)
            rc = complain(local, -EIO);
    }
    (void)hf_close(f);
    free(piece);
    return rc;
}

int main(int argc, char **argv)
{
    struct hf_fs_opts o = {.struct_size = sizeof(o), .name = "copy"};
    struct hf_fs *fs;
    int rc;

    if (argc != 5 || (strcmp(argv[2], "put") != 0 && strcmp(argv[2], "get") != 0)) {
        (void)fprintf(stderr, "usage: %s URL put LOCAL /path | URL get /path LOCAL\n", argv[0]);
        return 2;
    }
    o.url = argv[1];
    rc = hf_fs_open(&o, &fs);
    if (rc)
        return complain(argv[1], rc);
    rc = argv[2][0] == 'p' ? put(fs, argv[3], argv[4]) : get(fs, argv[3], argv[4]);
    if (hf_fs_close(fs))
        rc = 1;
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target on files: each argument is a file or a folder of files. It stands in for
 * libFuzzer's main where that is not built; no file at all is a failure.
 */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static unsigned done;

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct hf_buf b = {0};
    uint8_t *exact;
    int rc = 1;

    if (!f)
        goto out;
    for (;;) {
        size_t n;

        if (hf_buf_reserve(&b, 65536))
            goto out;
        n = fread(b.data + b.len, 1, 65536, f);
        b.len += n;
        if (n == 0)
            break;
    }
    /* Of its very size, so that a sanitizer sees each read beyond it. */
    exact = malloc(b.len ? b.len : 1);
    if (!exact)
        goto out;
    memcpy(exact, b.data, b.len);
    LLVMFuzzerTestOneInput(exact, b.len);
    free(exact);
    done++;
    rc = 0;
out:
    if (rc)
        perror(path);
    if (f)
        fclose(f);
    hf_buf_fini(&b);
    return rc;
}

static int replay_dir(const char *dir)
{
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort), rc = n < 0;

    for (int k = 0; k < n; k++) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", dir, names[k]->d_name);
        if (names[k]->d_name[0] != '.')
            rc |= replay_file(path);
        free(names[k]);
    }
    if (n >= 0)
        free(names);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;

    for (int k = 1; k < argc; k++) {
        struct stat st;

        if (stat(argv[k], &st) == 0 && S_ISDIR(st.st_mode))
            rc |= replay_dir(argv[k]);
        else
            rc |= replay_file(argv[k]);
    }
    printf("replayed %u inputs\n", done);
    return rc || done == 0 ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files. What loads is within the bounds of its keys and can be dumped; what does not
 * load says why in one line.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "holdfast/conf.h"
#include "holdfast/err.h"

struct target {
    char *name, *listen;
    uint64_t cache, max_conns, idle;
    bool insecure, v3;
    struct hf_conf_list exports;
};

#define KEY(section, key, kind, def, min, max, field)                                              \
    {                                                                                              \
        section, key, kind, def, min, max, "help of " key, offsetof(struct target, field)          \
    }

static const struct hf_conf_key keys[] = {
    KEY("", "name", HF_CONF_STR, "node", 1, 16, name),
    KEY("", "cache_bytes", HF_CONF_U64, "4M", 1024, 1ull << 40, cache),
    KEY("", "insecure", HF_CONF_BOOL, "no", 0, 0, insecure),
    KEY("nfs", "listen", HF_CONF_STR, "0.0.0.0:2049", 0, 0, listen),
    KEY("nfs", "max_conns", HF_CONF_U64, "100", 1, 65535, max_conns),
    KEY("nfs", "idle", HF_CONF_MS, "5m", 10, 86400000, idle),
    KEY("nfs", "exports", HF_CONF_LIST, "", 0, 3, exports),
    KEY("smb", "v3", HF_CONF_BOOL, "true", 0, 0, v3),
};

static int load(struct hf_slice text, struct target *t, struct hf_conf **ret)
{
    int fd = memfd_create("conf", MFD_CLOEXEC), rc;
    char path[64], err[512];

    *t = (struct target){0};
    memset(err, 'x', sizeof(err));
    FUZZ_CHECK(fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    FUZZ_CHECK(hf_conf_new(keys, sizeof(keys) / sizeof(keys[0]), t, ret) == 0);
    rc = hf_conf_load(*ret, path, NULL, 0, NULL, NULL, err, sizeof(err));
    close(fd);
    if (rc) {
        size_t n = strnlen(err, sizeof(err));

        FUZZ_CHECK(n > 0 && n < sizeof(err));
        for (size_t k = 0; k < n; k++)
            FUZZ_CHECK((uint8_t)err[k] >= ' ', "byte %u in the message", (uint8_t)err[k]);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target t;
    struct hf_conf *c;
    struct hf_buf out = {0};

    if (size == 0 || size > 65536)
        return 0;
    if (load(hf_slice(data, size), &t, &c) == 0) {
        FUZZ_CHECK(strlen(t.name) >= 1 && strlen(t.name) <= 16);
        FUZZ_CHECK(t.cache >= 1024 && t.cache <= 1ull << 40);
        FUZZ_CHECK(t.max_conns >= 1 && t.max_conns <= 65535);
        FUZZ_CHECK(t.idle >= 10 && t.idle <= 86400000);
        FUZZ_CHECK(hf_conf_dump(c, &out) == 0);
        hf_conf_free(c);
        /* The dump means the same. */
        FUZZ_CHECK(load(hf_buf_slice(&out), &t, &c) == 0, "%.*s", (int)out.len,
                   (const char *)out.data);
    }
    hf_conf_free(c);
    hf_buf_fini(&out);
    return 0;
}
